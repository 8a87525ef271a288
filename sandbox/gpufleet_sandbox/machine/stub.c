/* A kernel module without code: only what modinfo, depmod and modprobe read, set by -D options. */
#define INFO(id, text) \
	static const char id[] __attribute__((section(".modinfo"), used, aligned(1))) = text
INFO(license, "license=GPL");
INFO(name, "name=" NAME);
INFO(intree, "intree=Y");
INFO(depends, "depends=" DEPENDS);
INFO(vermagic, "vermagic=" VERMAGIC);
#ifdef ALIAS
INFO(alias, "alias=" ALIAS);
#endif
/* depmod finds dependencies by symbols: each module exports one and may import another. */
static const char exported[] __attribute__((section("__ksymtab_strings"), used)) = NAME "_symbol";
int SYMBOL;
#ifdef NEEDS
extern int NEEDS;
int *needs = &NEEDS;
#endif

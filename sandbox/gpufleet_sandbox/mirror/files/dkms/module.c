/* One imitation kernel module: .modinfo for modinfo and modprobe, symbols for depmod. */
#define NAMED(name) modinfo_##name
#define MODINFO(name, text)                                                                        \
	static const char NAMED(name)[] __attribute__((section(".modinfo"), used, aligned(1))) = text

MODINFO(version, "version=" VERSION);
MODINFO(license, "license=" LICENSE);
MODINFO(name, "name=" NAME);
MODINFO(depends, "depends=" DEPENDS);
MODINFO(vermagic, "vermagic=" VERMAGIC);
#ifdef ALIASES
MODINFO(vga, "alias=pci:v000010DEd*sv*sd*bc03sc00i00*");
MODINFO(compute, "alias=pci:v000010DEd*sv*sd*bc03sc02i00*");
#endif

#define TEXT(symbol) #symbol
#define QUOTED(symbol) TEXT(symbol)
#ifdef EXPORTS /* depmod finds exported symbols here … */
int EXPORTS;
static const char exported[] __attribute__((section("__ksymtab_strings"), used)) = QUOTED(EXPORTS);
#endif
#ifdef USES /* … and dependencies by undefined symbols */
extern int USES;
int *needed = &USES;
#endif

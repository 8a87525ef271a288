/* A wrapper of runc on a real node: containers see the simulated kernel like their host.
 *
 * A kernel shows the same PCI bus, modules and driver files in every container. The simulated ones
 * are mounts of the host, hidden by a container's own /sys and /proc: the wrapper adds them to its
 * config.json. runc mounts nothing inside /proc, but a hook may.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNC "/usr/sbin/runc"
#define HOOK "{\"path\":\"/usr/lib/sim/procfs\"}"
#define BIND(path, access) \
	",{\"destination\":\"" path "\",\"type\":\"bind\",\"source\":\"" path "\",\"options\":[\"rbind\",\"" access "\"]}"

/* /run/sim has the GPUs' settings, which root may change in a container, too. */
static const char added[] = BIND("/usr/lib/sim", "ro") BIND("/run/sim", "rw")
	BIND("/sys/bus/pci/devices", "ro") BIND("/sys/module", "ro") BIND("/etc/ld.so.preload", "ro");

/* The character after the string that begins at `p`. */
static char *after_string(char *p)
{
	for (p++; *p && *p != '"'; p++)
		if (*p == '\\' && p[1])
			p++;
	return *p ? p + 1 : p;
}

/* The value of a key of the object that `p` is in, behind its opening bracket; NULL without one. */
static char *value_of(char *p, const char *key)
{
	size_t length = strlen(key);
	int depth = 0;

	while (*p && depth >= 0) {
		if (*p == '"') {
			int is_key = depth == 0 && !strncmp(p + 1, key, length) && p[length + 1] == '"';
			p = after_string(p);
			if (is_key && *p == ':')
				return p + 1;
			continue;
		}
		depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
		p++;
	}
	return NULL;
}

/* The closing bracket of the array or object that `p` is in. */
static char *end_of(char *p)
{
	for (int depth = 0; *p; p++) {
		if (*p == '"')
			p = after_string(p) - 1;
		else if (*p == '{' || *p == '[')
			depth++;
		else if ((*p == '}' || *p == ']') && depth-- == 0)
			break;
	}
	return p;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void add_mounts(const char *bundle)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/config.json", bundle);
	FILE *file = fopen(path, "r+");
	if (!file)
		fail(path);
	fseek(file, 0, SEEK_END);
	long size = ftell(file);
	rewind(file);
	char *text = calloc(1, size + 1);
	if (!text || fread(text, 1, size, file) != (size_t)size)
		fail(path);
	char *mounts = value_of(text + 1, "mounts"), *hooks = value_of(text + 1, "hooks");
	char *ours = hooks && *hooks == '{' ? value_of(hooks + 1, "createContainer") : NULL;
	const char *before = "\"hooks\":{\"createContainer\":[" HOOK "]},";
	char *place = text + 1;
	if (ours && *ours == '[') {
		place = ours + 1;
		before = ours[1] == ']' ? HOOK : HOOK ",";
	} else if (hooks && *hooks == '{') {
		place = hooks + 1;
		before = hooks[1] == '}' ? "\"createContainer\":[" HOOK "]" : "\"createContainer\":[" HOOK "],";
	}
	if (mounts && *mounts == '[') {
		char *end = end_of(mounts + 1);
		int hook_first = place < end;
		char *first = hook_first ? place : end, *second = hook_first ? end : place;
		rewind(file);
		fwrite(text, 1, first - text, file);
		fputs(hook_first ? before : added, file);
		fwrite(first, 1, second - first, file);
		fputs(hook_first ? added : before, file);
		fputs(second, file);
	}
	if (fclose(file))
		fail(path);
}

int main(int argc, char **argv)
{
	int creates = 0;
	const char *bundle = NULL;

	for (int i = 1; i < argc; i++) {
		creates |= !strcmp(argv[i], "create");
		if ((!strcmp(argv[i], "--bundle") || !strcmp(argv[i], "-b")) && i + 1 < argc)
			bundle = argv[i + 1];
	}
	if (creates && bundle)
		add_mounts(bundle);
	execv(RUNC, argv);
	fail(RUNC);
}

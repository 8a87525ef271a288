/* A wrapper of runc on a real node: containers see the simulated kernel like their host.
 *
 * A kernel shows the same PCI bus and modules in every container. The simulated ones are mounts of
 * the host, hidden by a container's own /sys: the wrapper adds them to its config.json.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNC "/usr/sbin/runc"
#define BIND(from, to) \
	",{\"destination\":\"" to "\",\"type\":\"bind\",\"source\":\"" from "\",\"options\":[\"rbind\",\"ro\"]}"

static const char added[] = BIND("/usr/lib/sim", "/usr/lib/sim") BIND("/run/sim", "/run/sim")
	BIND("/sys/bus/pci/devices", "/sys/bus/pci/devices") BIND("/sys/module", "/sys/module")
	BIND("/etc/ld.so.preload", "/etc/ld.so.preload");

/* The character after the string that begins at `p`. */
static char *after_string(char *p)
{
	for (p++; *p && *p != '"'; p++)
		if (*p == '\\' && p[1])
			p++;
	return *p ? p + 1 : p;
}

/* The closing bracket of the array "mounts" in the outermost object; NULL without one. */
static char *end_of_mounts(char *p)
{
	int depth = 0, within = 0;

	while (*p) {
		if (*p == '"') {
			int is_mounts = depth == 1 && !strncmp(p, "\"mounts\":", 9);
			p = after_string(p);
			if (is_mounts)
				within = 1;
			continue;
		}
		if (*p == '{' || *p == '[')
			depth++;
		if (*p == '}' || *p == ']') {
			depth--;
			if (within && depth == 1)
				return p;
		}
		p++;
	}
	return NULL;
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
	char *end = end_of_mounts(text);
	if (end) {
		rewind(file);
		fwrite(text, 1, end - text, file);
		fputs(added, file);
		fputs(end, file);
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

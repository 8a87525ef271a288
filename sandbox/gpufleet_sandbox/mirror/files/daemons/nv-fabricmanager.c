/* Imitation of nv-fabricmanager: exits without an NVSwitch or with a driver of another version; else
 * runs until it receives a signal. */
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int first_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "r");
	if (!file)
		return 0;
	char *got = fgets(line, size, file);
	fclose(file);
	if (got)
		line[strcspn(line, "\n")] = 0;
	return got != NULL;
}

static int switches(void)
{
	glob_t found;
	char path[512], text[64];
	int count = 0;
	if (glob("/sys/bus/pci/devices/*", 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		snprintf(path, sizeof path, "%s/vendor", found.gl_pathv[i]);
		if (!first_line(path, text, sizeof text) || strcmp(text, "0x10de"))
			continue;
		snprintf(path, sizeof path, "%s/class", found.gl_pathv[i]);
		if (first_line(path, text, sizeof text) && !strncmp(text, "0x0680", 6))
			count++;
	}
	globfree(&found);
	return count;
}

int main(int argc, char **argv)
{
	char loaded[64];
	if (argc > 1 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-v")))
		return printf("Fabric Manager version is : " VERSION "\n") < 0;
	if (!first_line("/sys/module/nvidia/version", loaded, sizeof loaded) || switches() == 0) {
		fprintf(stderr, "request to query NVSwitch device information from NVSwitch driver failed "
				"with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]\n");
		return 1;
	}
	if (strcmp(loaded, VERSION)) {
		fprintf(stderr, "fabric manager NVIDIA GPU driver interface version " VERSION " don't match "
				"with driver version %s. Please update with matching NVIDIA driver package.\n",
			loaded);
		return 1;
	}
	printf("Successfully configured all the available NVSwitches to route GPU NVLink traffic.\n");
	fflush(stdout);
	sigset_t ends;
	int signal_number;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	sigwait(&ends, &signal_number);
	return 0;
}

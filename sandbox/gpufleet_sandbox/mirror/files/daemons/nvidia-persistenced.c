/* Imitation of nvidia-persistenced, with the same options. Loads the module by nvidia-modprobe if it
 * is installed, exits with a module of another version, and in persistence mode opens the device
 * nodes, so that the module is in use while the daemon runs. */
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN "/var/run/nvidia-persistenced"
#define FAILED "nvidia-persistenced failed to initialize. Check syslog for more details.\n"

static int other_version_loaded(void)
{
	char loaded[64] = "";
	FILE *file = fopen("/sys/module/nvidia/version", "r");
	if (!file)
		return 0;
	int read = fscanf(file, "%63s", loaded);
	fclose(file);
	return read == 1 && strcmp(loaded, VERSION) != 0;
}

int main(int argc, char **argv)
{
	int persistence = 1;
	glob_t found;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--no-persistence-mode"))
			persistence = 0;
		if (!strcmp(argv[i], "--version") || !strcmp(argv[i], "-v"))
			return printf("nvidia-persistenced:  version " VERSION "\n") < 0;
	}
	if (access("/usr/bin/nvidia-modprobe", X_OK) == 0 && system("/usr/bin/nvidia-modprobe") != 0)
		fprintf(stderr, "nvidia-modprobe could not load the module\n");
	if (other_version_loaded()) {
		fprintf(stderr, FAILED "The loaded module is not of version " VERSION ".\n");
		return 1;
	}
	if (glob("/dev/nvidia[0-9]*", 0, NULL, &found) != 0) {
		fprintf(stderr, FAILED
				"Failed to query NVIDIA devices. Please ensure that the NVIDIA device files "
				"(/dev/nvidia*) exist, and that user 0 has read and write permissions for "
				"those files.\n");
		return 1;
	}
	mkdir(RUN, 0755);
	if (daemon(0, 0) != 0)
		return 1;
	FILE *pid = fopen(RUN "/nvidia-persistenced.pid", "w");
	if (pid) {
		fprintf(pid, "%d\n", getpid());
		fclose(pid);
	}
	if (persistence) {
		open("/dev/nvidiactl", O_RDWR);
		for (size_t i = 0; i < found.gl_pathc; i++)
			open(found.gl_pathv[i], O_RDWR);
	}
	globfree(&found);
	sigset_t ends;
	int signal_number;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	sigwait(&ends, &signal_number);
	unlink(RUN "/nvidia-persistenced.pid");
	return 0;
}

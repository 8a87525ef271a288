/* Stand-in for nvidia-persistenced: same options, same failure, and with persistence mode it keeps
 * the device nodes open, so that the module is in use as long as the daemon runs. */
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN "/var/run/nvidia-persistenced"

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
	if (glob("/dev/nvidia[0-9]*", 0, NULL, &found) != 0) {
		fprintf(stderr, "nvidia-persistenced failed to initialize. Check syslog for more details.\n"
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

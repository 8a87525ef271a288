/* Imitation of nvidia-cuda-mps-control. -d starts the daemon of CUDA_MPS_PIPE_DIRECTORY; without
 * options it sends the command of its standard input to that daemon and prints the answer. No CUDA
 * program can use the daemon: it only keeps what it is told. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MISSING "Cannot find MPS control daemon process\n"

static struct sockaddr_un address(void)
{
	const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
	struct sockaddr_un found = {.sun_family = AF_UNIX};
	snprintf(found.sun_path, sizeof found.sun_path, "%s/control", folder ? folder : "/tmp/nvidia-mps");
	return found;
}

static int log_open(void)
{
	char path[256];
	const char *folder = getenv("CUDA_MPS_LOG_DIRECTORY");
	snprintf(path, sizeof path, "%s/control.log", folder ? folder : "/var/log/nvidia-mps");
	return open(path, O_CREAT | O_WRONLY | O_APPEND, 0644);
}

static int serve(void)
{
	struct sockaddr_un here = address();
	char percentage[32] = "100.0", line[256];
	int listening = socket(AF_UNIX, SOCK_STREAM, 0);
	unlink(here.sun_path);
	if (bind(listening, (struct sockaddr *)&here, sizeof here) != 0 || listen(listening, 8) != 0)
		return fprintf(stderr, "Failed to bind %s\n", here.sun_path), 1;
	int journal = log_open();
	if (daemon(0, 0) != 0)
		return 1;
	for (;;) {
		int client = accept(listening, NULL, NULL);
		ssize_t size = client < 0 ? 0 : read(client, line, sizeof line - 1);
		line[size > 0 ? size : 0] = 0;
		line[strcspn(line, "\n")] = 0;
		dprintf(journal, "[Control] command: %s\n", line);
		if (sscanf(line, "set_default_active_thread_percentage %15s", percentage) == 1)
			strcat(percentage, strchr(percentage, '.') ? "" : ".0");
		if (!strncmp(line, "get_default_active", 18) || !strncmp(line, "set_default_active", 18))
			dprintf(client, "%s\n", percentage);
		close(client);
		if (!strcmp(line, "quit"))
			return unlink(here.sun_path);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "-d"))
		return serve();
	struct sockaddr_un there = address();
	char text[4096];
	int connection = socket(AF_UNIX, SOCK_STREAM, 0);
	ssize_t size = read(0, text, sizeof text);
	if (connect(connection, (struct sockaddr *)&there, sizeof there) != 0)
		return fprintf(stderr, MISSING), 1;
	if (size < 0 || write(connection, text, size) != size)
		return 1;
	while ((size = read(connection, text, sizeof text)) > 0)
		fwrite(text, 1, size, stdout);
	return 0;
}

/* Imitation of nv-hostengine, DCGM's host engine: opens the GPUs and accepts connections. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT 5555

static void hold_gpus(void)
{
	glob_t found;
	if (glob("/dev/nvidia[0-9c]*", 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		open(found.gl_pathv[i], O_RDWR | O_CLOEXEC);
	globfree(&found);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int yes = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (argc > 1 && !strcmp(argv[1], "--version"))
		return printf("Version : " VERSION "\n") < 0;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 16)) {
		fprintf(stderr, "Err: Failed to start DCGM Server: %m\n");
		return 255;
	}
	hold_gpus();
	printf("Started host engine version " VERSION " using port number: %d\n", PORT);
	fflush(stdout);
	for (;;)
		close(accept(listener, NULL, NULL));
}

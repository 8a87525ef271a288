/* Imitation of dcgm-exporter: DCGM's metrics of the simulated GPUs in Prometheus' text format.
 *
 * Options, list of counters, labels and their order are as in the real one. Values come from
 * nvidia-smi; in a container, which has only the device files, they are invented.
 * Without --remote-hostengine-info it opens the GPUs and maps DCGM's library, as the real one does
 * with its embedded engine. */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <glob.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_COUNTERS 128
#define MAX_GPUS 16
#define SIMULATED "/usr/lib/sim" /* exists on a sandbox host, but not in its containers */
#define QUERY "nvidia-smi --format=csv,noheader,nounits --query-gpu=uuid,name,pci.bus_id," \
	      "driver_version,temperature.gpu,power.draw,memory.used,memory.free,utilization.gpu 2>/dev/null"

static struct counter { char name[80], type[16], help[160]; } counters[MAX_COUNTERS];
static struct gpu {
	char uuid[64], model[64], bus[32], driver[32], temperature[16], power[16], used[16], free[16], util[16];
} gpus[MAX_GPUS];
static const char *library[] = {"/usr/lib/x86_64-linux-gnu/libdcgm.so.4", "/usr/lib64/libdcgm.so.4"};

static int fail(const char *what, const char *which)
{
	fprintf(stderr, "level=ERROR msg=\"%s\" which=\"%s\" error=\"%m\"\n", what, which);
	return 1;
}

static char *trimmed(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	for (size_t length = strlen(text); length && isspace((unsigned char)text[length - 1]); length--)
		text[length - 1] = 0;
	return text;
}

static int read_counters(const char *path)
{
	char line[512];
	int count = 0;
	FILE *file = fopen(path, "re");
	while (file && count < MAX_COUNTERS && fgets(line, sizeof line, file)) {
		char *rest = trimmed(line), *name = strsep(&rest, ","), *type = strsep(&rest, ",");
		if (*name == '#' || !rest)
			continue;
		struct counter *c = &counters[count++];
		snprintf(c->name, sizeof c->name, "%s", trimmed(name));
		snprintf(c->type, sizeof c->type, "%s", trimmed(type));
		snprintf(c->help, sizeof c->help, "%s", trimmed(rest));
	}
	if (file)
		fclose(file);
	return count;
}

static int guess_gpus(void)
{
	glob_t found;
	int count = 0;
	if (glob("/dev/nvidia[0-9]*", 0, NULL, &found) != 0)
		return 0;
	for (; count < (int)found.gl_pathc && count < MAX_GPUS; count++) {
		struct gpu *g = &gpus[count];
		snprintf(g->uuid, sizeof g->uuid, "GPU-%08x-0000-0000-0000-000000000000", count);
		snprintf(g->temperature, sizeof g->temperature, "%d", 30 + count % 8);
	}
	globfree(&found);
	return count;
}

static int read_gpus(void)
{
	char line[512];
	int count = 0;
	memset(gpus, 0, sizeof gpus);
	FILE *smi = popen(QUERY, "r");
	while (smi && count < MAX_GPUS && fgets(line, sizeof line, smi)) {
		struct gpu *g = &gpus[count];
		if (sscanf(line, "%63[^,], %63[^,], %31[^,], %31[^,], %15[^,], %15[^,], %15[^,], %15[^,], %15[^\n]",
			   g->uuid, g->model, g->bus, g->driver, g->temperature, g->power, g->used, g->free, g->util) == 9)
			count++;
	}
	if (smi)
		pclose(smi);
	return access(SIMULATED, F_OK) == 0 ? count : guess_gpus();
}

static const char *value(const struct gpu *g, const char *name)
{
	const struct { const char *name, *value; } known[] = {
		{"DCGM_FI_DEV_GPU_TEMP", g->temperature}, {"DCGM_FI_DEV_POWER_USAGE", g->power},
		{"DCGM_FI_DEV_FB_USED", g->used}, {"DCGM_FI_DEV_FB_FREE", g->free},
		{"DCGM_FI_DEV_GPU_UTIL", g->util}, {"DCGM_FI_DRIVER_VERSION", g->driver}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(name, known[i].name) && isdigit((unsigned char)*known[i].value))
			return known[i].value;
	return "0";
}

static void write_metrics(FILE *out, int count)
{
	char host[65] = "";
	int present = read_gpus();
	gethostname(host, sizeof host - 1);
	for (int c = 0; c < count; c++) {
		if (!strcmp(counters[c].type, "label"))
			continue;
		fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", counters[c].name, counters[c].help, counters[c].name,
			counters[c].type);
		for (int i = 0; i < present; i++) {
			struct gpu *g = &gpus[i];
			fprintf(out, "%s{gpu=\"%d\",UUID=\"%s\",pci_bus_id=\"%s\",device=\"nvidia%d\",modelName=\"%s\",%s=\"%s\"",
				counters[c].name, i, g->uuid, g->bus, i, g->model,
				strcmp(VERSION, "4.8.3") < 0 ? "Hostname" : "hostname", host);
			for (int l = 0; l < count; l++)
				if (!strcmp(counters[l].type, "label"))
					fprintf(out, ",%s=\"%s\"", counters[l].name, value(g, counters[l].name));
			fprintf(out, "} %s\n", value(g, counters[c].name));
		}
	}
}

static void answer(int client, int count)
{
	char request[2048] = "", *text = NULL;
	size_t length = 0;
	if (read(client, request, sizeof request - 1) <= 0)
		return;
	FILE *body = open_memstream(&text, &length);
	if (!strncmp(request, "GET /metrics", 12))
		write_metrics(body, count);
	else
		fputs("GPU Exporter\n", body);
	fclose(body);
	dprintf(client, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n"
			"Connection: close\r\n\r\n", length);
	for (size_t done = 0; done < length;) {
		ssize_t part = write(client, text + done, length - done);
		if (part <= 0)
			break;
		done += part;
	}
	free(text);
}

/* A socket connected to or listening on HOST:PORT, [::1]:PORT or :PORT; -1 with errno on failure. */
static int socket_for(const char *where, int listening)
{
	char text[256];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = listening ? AI_PASSIVE : 0}, *found;
	int yes = 1;
	snprintf(text, sizeof text, "%s", where);
	char *port = strrchr(text, ':'), *host = text;
	if (!port)
		return -1;
	*port++ = 0;
	if (*host == '[')
		host++, port[-2] = 0;
	if (getaddrinfo(*host ? host : NULL, port, &hints, &found) != 0)
		return -1;
	int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (listening ? bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 16)
		      : connect(fd, found->ai_addr, found->ai_addrlen))
		return -1;
	return fd;
}

static void embed_engine(void)
{
	glob_t found;
	for (size_t i = 0; i < sizeof library / sizeof *library; i++) {
		int fd = open(library[i], O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	if (glob("/dev/nvidia[0-9c]*", 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			open(found.gl_pathv[i], O_RDWR | O_CLOEXEC);
}

int main(int argc, char **argv)
{
	const char *address = ":9400", *list = "/etc/dcgm-exporter/default-counters.csv", *engine = NULL;
	for (int i = 1; i < argc; i++) {
		const char *next = i + 1 < argc ? argv[i + 1] : "";
		if (!strcmp(argv[i], "--version"))
			return printf("DCGM Exporter version " VERSION "\n") < 0;
		if (!strcmp(argv[i], "-a") || !strcmp(argv[i], "--address"))
			address = next;
		if (!strcmp(argv[i], "-f") || !strcmp(argv[i], "--collectors"))
			list = next;
		if (!strcmp(argv[i], "-r") || !strcmp(argv[i], "--remote-hostengine-info"))
			engine = next;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, _exit); /* the first process of a container ignores it by default */
	int count = read_counters(list);
	if (!count)
		return fail("Failed to read the counters", list);
	if (engine && socket_for(engine, 0) < 0)
		return fail("Error connecting to nv-hostengine", engine);
	if (!engine)
		embed_engine();
	int listener = socket_for(address, 1);
	if (listener < 0)
		return fail("Failed to listen", address);
	printf("level=INFO msg=\"Starting webserver\" address=\"%s\"\n", address);
	fflush(stdout);
	for (;;) {
		int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (client >= 0) {
			answer(client, count);
			close(client);
		}
	}
}

/* The host's state for the simulated NVML: PCI bus, driver, processes. */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvml_host.h"

#define PCI "/sys/bus/pci/devices"
#define MODPROBE "/usr/bin/nvidia-modprobe"

struct nvmlDevice_st devices[MAX_GPUS];
unsigned device_count;
extern char **environ;

/* ---- reading the host ------------------------------------------------------------------- */

int read_line(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	*text = 0;
	if (!file)
		return 0;
	if (!fgets(text, size, file))
		*text = 0;
	fclose(file);
	text[strcspn(text, "\n")] = 0;
	return *text != 0;
}

static unsigned read_hex(const char *slot, const char *name)
{
	char path[PATH_MAX], text[64];
	snprintf(path, sizeof path, PCI "/%s/%s", slot, name);
	return read_line(path, text, sizeof text) ? strtoul(text, NULL, 16) : 0;
}

/* The version from the installed library's file name; the real library has it built in. */
const char *library_version(void)
{
	static const char *places[] = {"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
				       "/usr/lib64/libnvidia-ml.so.1"};
	static char real[PATH_MAX];

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (realpath(places[i], real)) {
			char *version = strstr(real, ".so.");
			return version ? version + 4 : "";
		}
	return "";
}

const char *driver_version(void)
{
	static char version[64];
	return read_line("/sys/module/nvidia/version", version, sizeof version) ? version : NULL;
}

static void make_uuid(struct nvmlDevice_st *device)
{
	char seed[128], host[64] = "";
	unsigned long long hash[2] = {0xcbf29ce484222325ull, 0x84222325cbf29ce4ull};

	read_line("/run/sim/name", host, sizeof host); /* a container has another hostname */
	snprintf(seed, sizeof seed, "%s/%s", host, device->slot);
	for (int part = 0; part < 2; part++)
		for (const char *c = seed; *c; c++)
			hash[part] = (hash[part] ^ (unsigned char)*c) * 0x100000001b3ull;
	snprintf(device->uuid, sizeof device->uuid, "GPU-%08llx-%04llx-%04llx-%04llx-%012llx", hash[0] >> 32,
		 hash[0] >> 16 & 0xffff, hash[0] & 0xffff, hash[1] >> 48, hash[1] & 0xffffffffffffull);
}

static void describe(struct nvmlDevice_st *device)
{
	char line[256], yes[8], modules[16];
	unsigned id, memory;
	FILE *table = fopen("/usr/lib/sim/gpus.txt", "re");

	snprintf(device->name, sizeof device->name, "NVIDIA Graphics Device");
	device->memory = 16384 * MIB;
	device->major = 7, device->watts = 100;
	while (table && fgets(line, sizeof line, table)) {
		char name[64];
		int major, minor, watts;
		if (sscanf(line, "%x|%63[^|]|%u|%d.%d|%d|%7[^|]|%15s", &id, name, &memory, &major, &minor, &watts,
			   yes, modules) == 8 &&
		    id == device->pci_id >> 16) {
			snprintf(device->name, sizeof device->name, "%s", name);
			device->memory = memory * MIB;
			device->major = major, device->minor = minor, device->watts = watts;
			device->mig = !strcmp(yes, "yes");
		}
	}
	if (table)
		fclose(table);
}

static int is_slot(const struct dirent *entry) { return entry->d_name[0] != '.'; }

void find_devices(void)
{
	struct dirent **entries;
	int count = scandir(PCI, &entries, is_slot, alphasort);

	device_count = 0;
	for (int i = 0; i < count; i++) {
		const char *slot = entries[i]->d_name;
		unsigned class = read_hex(slot, "class") >> 8;
		if (read_hex(slot, "vendor") == 0x10de && (class == 0x0300 || class == 0x0302) &&
		    device_count < MAX_GPUS) {
			struct nvmlDevice_st *device = &devices[device_count];
			memset(device, 0, sizeof *device);
			snprintf(device->slot, sizeof device->slot, "%.15s", slot);
			sscanf(slot, "%x:%x:%x", &device->domain, &device->bus, &device->slot_device);
			device->index = device_count++;
			device->pci_id = read_hex(slot, "device") << 16 | 0x10de;
			device->subsystem =
				read_hex(slot, "subsystem_device") << 16 | read_hex(slot, "subsystem_vendor");
			make_uuid(device);
			describe(device);
		}
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

void load_driver(void)
{
	char *argv[] = {MODPROBE, NULL};
	pid_t pid;
	if (access(MODPROBE, X_OK) == 0 && posix_spawn(&pid, MODPROBE, NULL, NULL, argv, environ) == 0)
		waitpid(pid, NULL, 0);
}

/* ---- state that nvidia-smi can change ------------------------------------------------------ */

static void value_path(const char *store, nvmlDevice_t device, const char *key, char *path, size_t size)
{
	snprintf(path, size, "%s/%s.%s", store, device->slot, key);
}

unsigned get_value(const char *store, nvmlDevice_t device, const char *key, unsigned otherwise)
{
	char path[PATH_MAX], text[32];
	value_path(store, device, key, path, sizeof path);
	return read_line(path, text, sizeof text) ? strtoul(text, NULL, 10) : otherwise;
}

nvmlReturn_t set_value(const char *store, nvmlDevice_t device, const char *key, unsigned value)
{
	char path[PATH_MAX];
	mkdir(store, 0755);
	value_path(store, device, key, path, sizeof path);
	FILE *file = fopen(path, "we");
	if (!file)
		return NVML_ERROR_NO_PERMISSION;
	fprintf(file, "%u\n", value);
	fclose(file);
	return NVML_SUCCESS;
}

void drop_value(nvmlDevice_t device, const char *key)
{
	char path[PATH_MAX];
	value_path(RUN, device, key, path, sizeof path);
	unlink(path);
}

int get_state(nvmlDevice_t device, const char *key) { return get_value(RUN, device, key, 0) == 1; }

nvmlReturn_t set_state(nvmlDevice_t device, const char *key, int on) { return set_value(RUN, device, key, on); }

int fails(const char *name)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "/etc/sim/fail/%s", name);
	return access(path, F_OK) == 0;
}

/* ---- processes --------------------------------------------------------------------------- */

static int has_open(const char *pid, const char *wanted)
{
	char path[300], target[PATH_MAX];
	struct dirent *entry;
	int found = 0;

	snprintf(path, sizeof path, "/proc/%s/fd", pid);
	DIR *folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
		target[length < 0 ? 0 : length] = 0;
		found = !strcmp(target, wanted);
	}
	if (folder)
		closedir(folder);
	return found;
}

static int is_process(const char *name) { return strspn(name, "0123456789") == strlen(name); }

int is_open(const char *node)
{
	char path[300], command[32];
	struct dirent *entry;
	int found = 0;
	DIR *proc = opendir("/proc");

	while (proc && !found && (entry = readdir(proc))) {
		snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
		found = is_process(entry->d_name) && atoi(entry->d_name) != getpid() &&
			!(read_line(path, command, sizeof command) && !strcmp(command, "nvidia-persiste")) &&
			has_open(entry->d_name, node);
	}
	if (proc)
		closedir(proc);
	return found;
}

int gpu_in_use(nvmlDevice_t d)
{
	char node[32];
	snprintf(node, sizeof node, "/dev/nvidia%u", d->index);
	return is_open(node);
}

unsigned processes(nvmlDevice_t d, unsigned *pids, unsigned room)
{
	char node[32];
	struct dirent *entry;
	unsigned count = 0;
	DIR *proc = opendir("/proc");

	snprintf(node, sizeof node, "/dev/nvidia%u", d->index);
	while (proc && (entry = readdir(proc)))
		if (is_process(entry->d_name) &&
		    has_open(entry->d_name, "/dev/nvidia-uvm") && has_open(entry->d_name, node)) {
			if (count < room)
				pids[count] = atoi(entry->d_name);
			count++;
		}
	if (proc)
		closedir(proc);
	return count;
}

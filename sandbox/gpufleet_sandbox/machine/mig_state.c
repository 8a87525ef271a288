/*
 * The instances of the simulated GPUs, and the device files that give access to them.
 *
 * Instances:  /run/sim/gpu/SLOT.instances, lines "GI PROFILE START" and "GI CI SLICES START", until the
 *             GPU is reset or its module is unloaded.
 * Profiles:   mig.txt, by PCI device id.
 * Access:     /proc/driver/nvidia/capabilities and /dev/nvidia-caps, with the driver's numbers.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "nvml_mig.h"

#define PROFILES "/usr/lib/sim/mig.txt"
#define CAPABILITIES "/proc/driver/nvidia/capabilities"

static struct layout layouts[MAX_GPUS];

/* ---- profiles ---------------------------------------------------------------------------- */

static int parse_profile(const char *line, unsigned device, struct profile *p)
{
	char ids[64], starts[64], id[8], *rest; /* not strtok: it has one state, which nvidia-smi uses */

	memset(p, 0, sizeof *p);
	snprintf(id, sizeof id, "%04x", device);
	if (sscanf(line, "%63[^|]|%u|%u|%23[^|]|%u|%u|%u|%63[^|]|%u|%u|%u|%u|%u|%u|%llu", ids, &p->number, &p->id,
		   p->name, &p->slices, &p->size, &p->count, starts, &p->sm, &p->ce, &p->dec, &p->enc, &p->jpeg,
		   &p->ofa, &p->memory) != 15 ||
	    !strstr(ids, id))
		return 0;
	for (char *s = strtok_r(starts, ",", &rest); s && p->start_count < MEMORY_SLICES; s = strtok_r(NULL, ",", &rest))
		p->starts[p->start_count++] = atoi(s);
	return 1;
}

static void read_profiles(nvmlDevice_t d, struct layout *layout)
{
	char line[256];
	FILE *table = fopen(PROFILES, "re");

	layout->profile_count = 0;
	while (table && layout->profile_count < MAX_PROFILES && fgets(line, sizeof line, table))
		layout->profile_count +=
			parse_profile(line, d->pci_id >> 16, &layout->profiles[layout->profile_count]);
	if (table)
		fclose(table);
}

const struct profile *profile_by(struct layout *layout, unsigned value, int is_id)
{
	for (unsigned i = 0; i < layout->profile_count; i++)
		if ((is_id ? layout->profiles[i].id : layout->profiles[i].number) == value)
			return &layout->profiles[i];
	return NULL;
}

/* ---- instances --------------------------------------------------------------------------- */

static void instances_path(nvmlDevice_t d, char *path, size_t size)
{
	snprintf(path, size, RUN "/%s.instances", d->slot);
}

/* The same instances of the same GPU have the same UUIDs. */
static void describe_mig(struct nvmlComputeInstance_st *ci)
{
	const struct profile *p = ci->gi->profile;
	struct nvmlDevice_st *mig = &ci->mig;
	unsigned long long hash = 0xcbf29ce484222325ull;
	char seed[80], part[16] = "";

	*mig = *ci->gi->device;
	mig->parent = ci->gi->device, mig->gi = ci->gi->id, mig->ci = ci->id;
	mig->memory = p->memory * MIB;
	if (ci->slices < p->slices)
		snprintf(part, sizeof part, "%uc.", ci->slices);
	snprintf(mig->name, sizeof mig->name, "%.30s MIG %s%s", mig->parent->name, part, p->name);
	snprintf(seed, sizeof seed, "%s %u %u", mig->parent->uuid, mig->gi, mig->ci);
	for (const char *c = seed; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3ull;
	snprintf(mig->uuid, sizeof mig->uuid, "MIG-%08llx-%04llx-5%03llx-8%03llx-%012llx", hash >> 32,
		 hash >> 16 & 0xffff, hash >> 4 & 0xfff, hash >> 20 & 0xfff, hash * 31 & 0xffffffffffffull);
}

static void read_line_of(struct layout *layout, const char *line)
{
	unsigned gi, a, b, c;
	int words = sscanf(line, "%u %u %u %u", &gi, &a, &b, &c);

	if (words < 3 || gi >= MAX_GI)
		return;
	struct nvmlGpuInstance_st *instance = &layout->gi[gi];
	if (words == 3 && (instance->profile = profile_by(layout, a, 0))) {
		instance->used = 1, instance->start = b;
	} else if (words == 4 && instance->used && a < MAX_CI) {
		instance->ci[a].used = 1, instance->ci[a].slices = b, instance->ci[a].start = c;
		describe_mig(&instance->ci[a]);
	}
}

struct layout *read_layout(nvmlDevice_t d)
{
	struct layout *layout = &layouts[d->index];
	char path[PATH_MAX], line[80];
	unsigned index = 0;

	read_profiles(d, layout);
	for (unsigned i = 0; i < MAX_GI; i++) {
		layout->gi[i].device = d, layout->gi[i].id = i, layout->gi[i].used = 0;
		for (unsigned j = 0; j < MAX_CI; j++) {
			struct nvmlComputeInstance_st *ci = &layout->gi[i].ci[j];
			ci->gi = &layout->gi[i], ci->id = j, ci->used = 0;
		}
	}
	instances_path(d, path, sizeof path);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		read_line_of(layout, line);
	if (file)
		fclose(file);
	for (unsigned i = 0; i < MAX_GI; i++) /* MIG devices count by instance */
		for (unsigned j = 0; j < MAX_CI; j++)
			if (layout->gi[i].ci[j].used)
				layout->gi[i].ci[j].mig.index = index++;
	return layout;
}

nvmlReturn_t write_layout(nvmlDevice_t d)
{
	char path[PATH_MAX];

	mkdir(RUN, 0755);
	instances_path(d, path, sizeof path);
	FILE *file = fopen(path, "we");
	if (!file)
		return NVML_ERROR_NO_PERMISSION;
	for (unsigned i = 0; i < MAX_GI; i++) {
		struct nvmlGpuInstance_st *gi = &layouts[d->index].gi[i];
		if (!gi->used)
			continue;
		fprintf(file, "%u %u %u\n", i, gi->profile->number, gi->start);
		for (unsigned j = 0; j < MAX_CI; j++)
			if (gi->ci[j].used)
				fprintf(file, "%u %u %u %u\n", i, j, gi->ci[j].slices, gi->ci[j].start);
	}
	fclose(file);
	return NVML_SUCCESS;
}

void drop_layout(nvmlDevice_t d)
{
	struct layout *layout = read_layout(d);

	for (unsigned i = 0; i < MAX_GI; i++) {
		for (unsigned j = 0; j < MAX_CI; j++)
			if (layout->gi[i].ci[j].used)
				show_capability(d, i, j, 0);
		if (layout->gi[i].used)
			show_capability(d, i, -1, 0);
		layout->gi[i].used = 0;
	}
	write_layout(d);
}

/* ---- access ------------------------------------------------------------------------------ */

/* 1 and 2 are for MIG as a whole; then each GPU has 15 instances with 8 compute instances. */
static void node_of(nvmlDevice_t d, unsigned gi, int ci, char *node, size_t size)
{
	snprintf(node, size, "/dev/nvidia-caps/nvidia-cap%u", 3 + (d->index * 15 + gi) * 9 + ci + 1);
}

void show_capability(nvmlDevice_t d, unsigned gi, int ci, int there)
{
	char folder[PATH_MAX], path[PATH_MAX + 8], node[64];
	int length = snprintf(folder, sizeof folder, CAPABILITIES "/gpu%u", d->index);

	mkdir(folder, 0555);
	length += snprintf(folder + length, sizeof folder - length, "/mig");
	mkdir(folder, 0555);
	length += snprintf(folder + length, sizeof folder - length, "/gi%u", gi);
	if (ci >= 0)
		snprintf(folder + length, sizeof folder - length, "/ci%d", ci);
	snprintf(path, sizeof path, "%s/access", folder);
	node_of(d, gi, ci, node, sizeof node);
	if (!there) {
		unlink(path), unlink(node), rmdir(folder);
		return;
	}
	mkdir(folder, 0555);
	FILE *file = fopen(path, "we");
	if (file) {
		fprintf(file, "DeviceFileMinor: %s\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
			strrchr(node, 'p') + 1);
		fclose(file);
	}
	mkdir("/dev/nvidia-caps", 0755);
	mknod(node, S_IFCHR | 0444, makedev(1, 3)); /* as all device files here: it opens, and does nothing */
	chmod(node, 0444);
}

/* A program that uses an instance has the instance's device file open. */
int instance_in_use(nvmlDevice_t d, unsigned gi, int ci)
{
	char node[64];
	node_of(d, gi, ci, node, sizeof node);
	return is_open(node);
}

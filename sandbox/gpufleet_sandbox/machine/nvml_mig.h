#ifndef NVML_MIG_H
#define NVML_MIG_H
/* GPU instances and compute instances of the simulated GPUs, kept by mig_state.c for nvml_mig.c. */

#include "nvml_host.h"

#define MEMORY_SLICES 8
#define MAX_PROFILES 16
#define MAX_GI 14 /* 1 of eight slices, 2 of four, 4 of two, 7 of one */
#define MAX_CI 7

/* A line of mig.txt. `number`: the constant of nvml.h; `id`: what nvidia-smi prints. */
struct profile {
	unsigned number, id, slices, size, count, starts[MEMORY_SLICES], start_count;
	unsigned sm, ce, dec, enc, jpeg, ofa;
	unsigned long long memory; /* MiB */
	char name[24];
};

struct nvmlComputeInstance_st {
	struct nvmlGpuInstance_st *gi;
	unsigned id, slices, start;
	int used;
	struct nvmlDevice_st mig; /* the MIG device that programs see */
};

struct nvmlGpuInstance_st {
	nvmlDevice_t device;
	unsigned id, start;
	int used;
	const struct profile *profile;
	struct nvmlComputeInstance_st ci[MAX_CI];
};

struct layout {
	struct profile profiles[MAX_PROFILES];
	unsigned profile_count;
	struct nvmlGpuInstance_st gi[MAX_GI];
};

struct layout *read_layout(nvmlDevice_t device); /* as the host has it now */
nvmlReturn_t write_layout(nvmlDevice_t device);
void drop_layout(nvmlDevice_t device); /* all instances, as a reset does */
const struct profile *profile_by(struct layout *layout, unsigned value, int is_id);

void show_capability(nvmlDevice_t device, unsigned gi, int ci, int there); /* ci -1: of the GPU instance */
int instance_in_use(nvmlDevice_t device, unsigned gi, int ci);

#endif

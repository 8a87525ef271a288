#ifndef NVML_HOST_H
#define NVML_HOST_H
/* The simulated host's state, read by nvml_host.c for nvml.c. */

#include "nvml.h"

#define MAX_GPUS 64
#define MIB (1ull << 20)

/* One GPU on the bus. `minor` and `major` are its compute capability, `memory` is in bytes. */
struct nvmlDevice_st {
	char slot[16], uuid[48], name[64];
	unsigned index, domain, bus, slot_device, pci_id, subsystem;
	unsigned long long memory;
	int major, minor, watts, mig;
	struct nvmlDevice_st *parent; /* of a MIG device: its GPU and instances */
	unsigned gi, ci;
};

extern struct nvmlDevice_st devices[MAX_GPUS];
extern unsigned device_count;

const char *library_version(void); /* of the installed libnvidia-ml, "" without one */
const char *driver_version(void);  /* of the loaded module, NULL if none is loaded */
void load_driver(void);		   /* by nvidia-modprobe, as the real library does */
void find_devices(void);
int read_line(const char *path, char *text, size_t size); /* 1 if the line is not empty */

/* State that nvidia-smi can change: while the module is loaded, or in the board's own memory. */
#define RUN "/run/sim/gpu"
#define BOARD "/var/lib/sim-board"
unsigned get_value(const char *store, nvmlDevice_t device, const char *key, unsigned otherwise);
nvmlReturn_t set_value(const char *store, nvmlDevice_t device, const char *key, unsigned value);
void drop_value(nvmlDevice_t device, const char *key); /* of RUN */
int get_state(nvmlDevice_t device, const char *key);
nvmlReturn_t set_state(nvmlDevice_t device, const char *key, int on);

/* Faults: /etc/sim/fail/NAME exists. */
int fails(const char *name);

/* The number of processes that use the GPU; writes the first `room` process IDs to `pids`. */
unsigned processes(nvmlDevice_t device, unsigned *pids, unsigned room);
int is_open(const char *node);	    /* by a process other than this one and the persistence daemon */
int gpu_in_use(nvmlDevice_t device); /* its device file is open */

/* A reset, which nvidia-smi requests and a change of an Ampere GPU's MIG mode needs. */
nvmlReturn_t reset_gpu(nvmlDevice_t device);
void reset_mig(nvmlDevice_t device);
void reset_settings(nvmlDevice_t device);
nvmlDevice_t mig_by_uuid(const char *uuid);

#endif

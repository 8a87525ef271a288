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
};

extern struct nvmlDevice_st devices[MAX_GPUS];
extern unsigned device_count;

const char *library_version(void); /* of the installed libnvidia-ml, "" without one */
const char *driver_version(void);  /* of the loaded module, NULL if none is loaded */
void load_driver(void);		   /* by nvidia-modprobe, as the real library does */
void find_devices(void);
int read_line(const char *path, char *text, size_t size); /* 1 if the line is not empty */

/* State that nvidia-smi can change, until the next boot. */
int get_state(nvmlDevice_t device, const char *key);
nvmlReturn_t set_state(nvmlDevice_t device, const char *key, int on);

/* The number of processes that use the GPU; writes the first `room` process IDs to `pids`. */
unsigned processes(nvmlDevice_t device, unsigned *pids, unsigned room);

#endif

#ifndef NVML_HOST_H
#define NVML_HOST_H
/* What nvml_host.c reads from the simulated host, and what nvml.c answers from. */

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

const char *library_version(void); /* of the installed libnvidia-ml, "" when there is none */
const char *driver_version(void);  /* of the loaded module, NULL when none is loaded */
void load_driver(void);		   /* as the real library does, by nvidia-modprobe */
void find_devices(void);
int read_line(const char *path, char *text, size_t size); /* 1 when there was a text */

/* State that nvidia-smi can change, until the next boot. */
int get_state(nvmlDevice_t device, const char *key);
nvmlReturn_t set_state(nvmlDevice_t device, const char *key, int on);

/* How many processes use the GPU; the first `room` process ids go to `pids`. */
unsigned processes(nvmlDevice_t device, unsigned *pids, unsigned room);

#endif

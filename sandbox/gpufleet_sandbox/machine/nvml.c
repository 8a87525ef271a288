/*
 * The NVML of a sandbox host, for its simulated PCI bus: the functions that nvidia-smi and nvidia-ctk use.
 *
 * Devices:    NVIDIA GPUs on /sys/bus/pci/devices, described by gpus.txt.
 * Driver:     /sys/module/nvidia/version; library: the name of the installed libnvidia-ml.so file.
 * State:      /run/sim/gpu/SLOT.persistence contains 0 or 1 while the module is loaded; more of it is in
 *             nvml_settings.c and nvml_mig.c.
 * Processes:  those with both /dev/nvidiaN and /dev/nvidia-uvm open.
 * All other functions of nvml.h return "not supported": they are generated at compile time.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvml_host.h"

#define OK NVML_SUCCESS

/* ---- library and system ------------------------------------------------------------------ */

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
	(void)flags;
	if (!driver_version())
		load_driver();
	if (!driver_version())
		return NVML_ERROR_DRIVER_NOT_LOADED;
	if (*library_version() && strcmp(library_version(), driver_version()))
		return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
	find_devices();
	return OK;
}

nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(nvmlReturn_t error)
{
	switch (error) {
	case NVML_SUCCESS: return "The operation was successful";
	case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
	case NVML_ERROR_NOT_FOUND: return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
	case NVML_ERROR_IN_USE: return "In use by another client";
	case NVML_ERROR_INSUFFICIENT_RESOURCES: return "Insufficient Resources";
	case NVML_ERROR_RESET_REQUIRED: return "GPU requires reset";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
	default: return "Unknown Error";
	}
}

static nvmlReturn_t text(char *to, unsigned int size, const char *from)
{
	if (strlen(from) >= size)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(to, from);
	return OK;
}

/* The versions of NVML and CUDA depend on the driver's branch. */
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	static const struct { int branch, cuda; } known[] = {
		{595, 13020}, {590, 13010}, {580, 13000}, {575, 12090}, {570, 12080}, {565, 12070},
		{560, 12060}, {555, 12050}, {550, 12040}, {545, 12030}, {535, 12020}, {0, 11040}};
	int branch = atoi(driver_version() ? driver_version() : library_version());
	for (int i = 0;; i++)
		if (branch >= known[i].branch) {
			*version = known[i].cuda;
			return OK;
		}
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int size)
{
	return text(version, size, driver_version() ? driver_version() : "");
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int size)
{
	char full[80];
	int cuda;
	nvmlSystemGetCudaDriverVersion_v2(&cuda);
	snprintf(full, sizeof full, "%d.%s", cuda / 1000, library_version());
	return text(version, size, full);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int size)
{
	char path[64], command[PATH_MAX];
	snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
	if (!read_line(path, command, sizeof command))
		return NVML_ERROR_NOT_FOUND;
	snprintf(name, size, "%s", command);
	return OK;
}

static nvmlReturn_t not_supported(void) { return NVML_ERROR_NOT_SUPPORTED; }

/*
 * nvidia-smi requests tables of private functions and checks the size in the first word. To reset GPUs
 * it asks for the primary GPU, an active fabric and the GPUs of a group, at these places of version 535.
 */
static nvmlReturn_t is_primary(nvmlDevice_t d, unsigned *is)
{
	(void)d;
	*is = 0;
	return OK;
}

static nvmlReturn_t fabric_is_active(unsigned *is)
{
	*is = 0;
	return OK;
}

static nvmlReturn_t create_group(void **group, nvmlDevice_t *list, unsigned count)
{
	static int any;
	(void)list, (void)count;
	*group = &any;
	return OK;
}

static nvmlReturn_t use_group(void) { return OK; }

/* With this result nvidia-smi reads those of each GPU. */
static nvmlReturn_t reset_all(unsigned count, nvmlDevice_t *list, nvmlReturn_t *results)
{
	nvmlReturn_t all = OK;
	for (unsigned i = 0; i < count; i++)
		if ((results[i] = reset_gpu(list[i])) != OK)
			all = NVML_ERROR_UNKNOWN;
	return all;
}

nvmlReturn_t nvmlInternalGetExportTable(const void **table, const void *id)
{
	static void *functions[512];
	(void)id;
	functions[0] = (void *)sizeof functions;
	for (int i = 1; i < 512; i++)
		functions[i] = (void *)not_supported;
	functions[20] = (void *)is_primary, functions[169] = (void *)fabric_is_active;
	functions[182] = (void *)create_group, functions[183] = functions[184] = (void *)use_group;
	functions[168] = (void *)reset_all;
	*table = functions;
	return OK;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	static int any;
	*set = (void *)&any;
	return OK;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	(void)set;
	return OK;
}

/* These devices have no events. */
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int milliseconds)
{
	(void)set, (void)data;
	usleep(milliseconds * 1000);
	return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int milliseconds)
{
	return nvmlEventSetWait_v2(set, data, milliseconds);
}

/* ---- devices ----------------------------------------------------------------------------- */

#define GET(function, type, value)                                                                 \
	nvmlReturn_t function(nvmlDevice_t d, type *out)                                           \
	{                                                                                          \
		(void)d;                                                                           \
		*out = (value);                                                                    \
		return OK;                                                                         \
	}

#define TEXT(function, value)                                                                      \
	nvmlReturn_t function(nvmlDevice_t d, char *out, unsigned int size) \
	{                                                                                          \
		(void)d;                                                                           \
		return text(out, size, value);                                                     \
	}

static nvmlReturn_t find(nvmlDevice_t *device, const char *uuid, const char *bus_id)
{
	for (unsigned i = 0; i < device_count; i++) {
		size_t tail = bus_id && strlen(bus_id) > 7 ? strlen(bus_id) - 7 : 0;
		if ((uuid && !strcmp(uuid, devices[i].uuid)) ||
		    (bus_id && !strcasecmp(bus_id + tail, devices[i].slot + 5))) {
			*device = &devices[i];
			return OK;
		}
	}
	if (uuid && (*device = mig_by_uuid(uuid)))
		return OK;
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	*count = device_count;
	return OK;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) { return nvmlDeviceGetCount_v2(count); }

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	if (index >= device_count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = &devices[index];
	return OK;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) { return find(device, uuid, NULL); }

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
	return find(device, NULL, bus_id);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *info)
{
	memset(info, 0, sizeof *info);
	info->domain = d->domain, info->bus = d->bus, info->device = d->slot_device;
	info->pciDeviceId = d->pci_id, info->pciSubSystemId = d->subsystem;
	snprintf(info->busId, sizeof info->busId, "%08X:%02X:%02X.0", d->domain, d->bus, d->slot_device);
	snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%04X:%02X:%02X.0", d->domain, d->bus,
		 d->slot_device);
	return OK;
}

GET(nvmlDeviceGetIndex, unsigned int, d->index)
GET(nvmlDeviceGetMinorNumber, unsigned int, d->index)
TEXT(nvmlDeviceGetName, d->name)
TEXT(nvmlDeviceGetUUID, d->uuid)
TEXT(nvmlDeviceGetSerial, d->uuid + 24)
TEXT(nvmlDeviceGetVbiosVersion, "96.00.00.00.01")

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *major, int *minor)
{
	*major = d->major, *minor = d->minor;
	return OK;
}

static nvmlDeviceArchitecture_t architecture(nvmlDevice_t d)
{
	switch (d->major * 10 + d->minor) {
	case 60 ... 62: return NVML_DEVICE_ARCH_PASCAL;
	case 70: return NVML_DEVICE_ARCH_VOLTA;
	case 75: return NVML_DEVICE_ARCH_TURING;
	case 80 ... 87: return NVML_DEVICE_ARCH_AMPERE;
	case 89: return NVML_DEVICE_ARCH_ADA;
	case 90: return NVML_DEVICE_ARCH_HOPPER;
	default: return d->major > 9 ? 10 : NVML_DEVICE_ARCH_KEPLER;
	}
}

GET(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, architecture(d))
GET(nvmlDeviceGetBrand, nvmlBrandType_t, d->name[0] == 'T' ? NVML_BRAND_TESLA : NVML_BRAND_NVIDIA)

/* The driver reserves 2 %; each process uses 512 MiB. */
static unsigned long long reserved(nvmlDevice_t d) { return d->memory / 50 / MIB * MIB; }
#define PER_PROCESS (512 * MIB)

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *memory)
{
	memory->total = d->memory;
	memory->used = reserved(d) + processes(d, NULL, 0) * PER_PROCESS;
	memory->free = memory->total - memory->used;
	return OK;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *memory)
{
	memory->total = d->memory;
	memory->reserved = reserved(d);
	memory->used = processes(d, NULL, 0) * PER_PROCESS;
	memory->free = memory->total - memory->reserved - memory->used;
	return OK;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t d, nvmlBAR1Memory_t *memory)
{
	memory->bar1Total = memory->bar1Free = d->memory;
	memory->bar1Used = 0;
	return OK;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t sensor, unsigned int *celsius)
{
	(void)sensor;
	*celsius = 30 + d->index % 8;
	return OK;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *rates)
{
	rates->gpu = rates->memory = processes(d, NULL, 0) ? 90 : 0;
	return OK;
}

GET(nvmlDeviceGetPowerUsage, unsigned int, d->watts * 150)
GET(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
GET(nvmlDeviceGetPerformanceState, nvmlPstates_t, NVML_PSTATE_0)
GET(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)
GET(nvmlDeviceGetDisplayMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
GET(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, NVML_GPU_VIRTUALIZATION_MODE_NONE)

nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t d)
{
	(void)d;
	return OK;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t type, nvmlEccCounterType_t since,
					 unsigned long long *errors)
{
	(void)d, (void)type, (void)since;
	*errors = 0;
	return OK;
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t d, nvmlMemoryErrorType_t type, nvmlEccCounterType_t since,
					     nvmlMemoryLocation_t where, unsigned long long *errors)
{
	(void)where;
	return nvmlDeviceGetTotalEccErrors(d, type, since, errors);
}

/* Persistence mode is also on while the persistence daemon runs. */
GET(nvmlDeviceGetPersistenceMode, nvmlEnableState_t,
    get_state(d, "persistence") || access("/run/nvidia-persistenced/nvidia-persistenced.pid", F_OK) == 0)

nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t d, nvmlEnableState_t mode)
{
	return set_state(d, "persistence", mode == NVML_FEATURE_ENABLED);
}

GET(nvmlDeviceGetSupportedEventTypes, unsigned long long, nvmlEventTypeXidCriticalError)

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long types, nvmlEventSet_t set)
{
	(void)d, (void)types, (void)set;
	return OK;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t *level)
{
	(void)a, (void)b;
	*level = NVML_TOPOLOGY_SYSTEM;
	return OK;
}

#define LIST(function, type, shown)                                                                \
	nvmlReturn_t function(nvmlDevice_t d, unsigned int *count, type *list)                     \
	{                                                                                          \
		unsigned pids[256], found = (shown) ? processes(d, pids, 256) : 0, room = *count;  \
		*count = found = found < 256 ? found : 256;                                        \
		if (found > room)                                                                  \
			return NVML_ERROR_INSUFFICIENT_SIZE;                                       \
		for (unsigned i = 0; i < found; i++) {                                             \
			memset(&list[i], 0, sizeof list[i]);                                       \
			list[i].pid = pids[i];                                                     \
			list[i].usedGpuMemory = PER_PROCESS;                                       \
		}                                                                                  \
		return OK;                                                                         \
	}

LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, 1)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, 1)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t, 1)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, 0)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t, 0)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t, 0)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t, 0)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, 0)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t, 0)

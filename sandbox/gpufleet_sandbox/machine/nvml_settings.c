/*
 * The settings of a simulated GPU that nvidia-smi changes: power limit, clocks, compute mode, ECC.
 *
 * State:  /run/sim/gpu/SLOT.KEY while the module is loaded. The board keeps ECC, which a reset applies.
 * Faults: power-limit refuses a new limit, gpu-reset every reset, as a GPU that a virtual machine has.
 */
#include <unistd.h>

#include "nvml_host.h"

#define OK NVML_SUCCESS
#define NEEDS_ROOT                                                                                 \
	if (geteuid() != 0)                                                                        \
	return NVML_ERROR_NO_PERMISSION

/* ---- power ------------------------------------------------------------------------------- */

static unsigned highest_power(nvmlDevice_t d) { return d->watts * 1000; }

static unsigned lowest_power(nvmlDevice_t d)
{
	return d->watts >= 600 ? 200000 : d->watts >= 400 ? 100000 : d->watts * 500;
}

static unsigned power_limit(nvmlDevice_t d) { return get_value(RUN, d, "power", highest_power(d)); }

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t d, unsigned int *low, unsigned int *high)
{
	*low = lowest_power(d), *high = highest_power(d);
	return OK;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t d, unsigned int *limit)
{
	*limit = power_limit(d);
	return OK;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned int *limit)
{
	return nvmlDeviceGetPowerManagementLimit(d, limit);
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t d, unsigned int *limit)
{
	*limit = highest_power(d);
	return OK;
}

nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t d, unsigned int limit)
{
	NEEDS_ROOT;
	if (fails("power-limit"))
		return NVML_ERROR_NOT_SUPPORTED;
	if (limit < lowest_power(d) || limit > highest_power(d))
		return NVML_ERROR_INVALID_ARGUMENT;
	return set_value(RUN, d, "power", limit);
}

/* Newer than the header. Scope 0 is the GPU, 1 its whole module. */
struct power_value {
	unsigned version;
	unsigned char scope;
	unsigned limit;
};

nvmlReturn_t nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_t d, struct power_value *wanted)
{
	return wanted->scope ? NVML_ERROR_NOT_SUPPORTED : nvmlDeviceSetPowerManagementLimit(d, wanted->limit);
}

/* nvidia-smi reads the power by number of a field. */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int count, nvmlFieldValue_t *values)
{
	for (nvmlFieldValue_t *v = values; v < values + count; v++) {
		v->nvmlReturn = OK;
		v->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
		switch (v->scopeId ? 0 : v->fieldId) {
		case 185: case 186: v->value.uiVal = d->watts * 150; break; /* average, now */
		case 187: v->value.uiVal = lowest_power(d); break;
		case 188: case 189: v->value.uiVal = highest_power(d); break; /* highest, default */
		case 190: case 192: v->value.uiVal = power_limit(d); break; /* requested, in force */
		default: v->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
		}
	}
	return OK;
}

/* ---- clocks ------------------------------------------------------------------------------ */

static unsigned highest_clock(nvmlDevice_t d, nvmlClockType_t type)
{
	if (type == NVML_CLOCK_MEM)
		return d->major >= 9 ? 2619 : d->major == 8 ? 1593 : 877;
	return d->major >= 9 ? 1980 : d->major == 8 ? 1410 : 1530;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *clock)
{
	*clock = highest_clock(d, type);
	return OK;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *clock)
{
	int memory = type == NVML_CLOCK_MEM;
	unsigned highest = highest_clock(d, type), low = get_value(RUN, d, memory ? "memory-low" : "low", 0);
	unsigned high = get_value(RUN, d, memory ? "memory-high" : "high", highest);

	*clock = memory || processes(d, NULL, 0) ? highest : 345; /* an idle GPU is slow */
	*clock = *clock < low ? low : *clock > high ? high : *clock;
	return OK;
}

static nvmlReturn_t lock_clocks(nvmlDevice_t d, nvmlClockType_t type, unsigned low, unsigned high)
{
	NEEDS_ROOT;
	if (low > high || high > highest_clock(d, type))
		return NVML_ERROR_INVALID_ARGUMENT;
	set_value(RUN, d, type == NVML_CLOCK_MEM ? "memory-low" : "low", low);
	return set_value(RUN, d, type == NVML_CLOCK_MEM ? "memory-high" : "high", high);
}

nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t d, unsigned int low, unsigned int high)
{
	return lock_clocks(d, NVML_CLOCK_SM, low, high);
}

nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t d, unsigned int low, unsigned int high)
{
	return lock_clocks(d, NVML_CLOCK_MEM, low, high);
}

nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t d)
{
	NEEDS_ROOT;
	drop_value(d, "low"), drop_value(d, "high");
	return OK;
}

nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t d)
{
	NEEDS_ROOT;
	drop_value(d, "memory-low"), drop_value(d, "memory-high");
	return OK;
}

/* ---- compute mode, ECC, reset -------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t d, nvmlComputeMode_t *mode)
{
	*mode = get_value(RUN, d, "compute", NVML_COMPUTEMODE_DEFAULT);
	return OK;
}

nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t d, nvmlComputeMode_t mode)
{
	NEEDS_ROOT;
	return get_state(d, "mig") ? NVML_ERROR_NOT_SUPPORTED : set_value(RUN, d, "compute", mode);
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t d, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
	*pending = get_value(BOARD, d, "ecc", NVML_FEATURE_ENABLED);
	*current = get_value(RUN, d, "ecc", NVML_FEATURE_ENABLED);
	return OK;
}

nvmlReturn_t nvmlDeviceSetEccMode(nvmlDevice_t d, nvmlEnableState_t mode)
{
	NEEDS_ROOT;
	return set_value(BOARD, d, "ecc", mode);
}

void reset_settings(nvmlDevice_t d)
{
	static const char *lost[] = {"power", "low", "high", "memory-low", "memory-high", "compute"};

	for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
		drop_value(d, lost[i]);
	set_value(RUN, d, "ecc", get_value(BOARD, d, "ecc", NVML_FEATURE_ENABLED));
}

nvmlReturn_t reset_gpu(nvmlDevice_t d)
{
	if (fails("gpu-reset"))
		return NVML_ERROR_NOT_SUPPORTED;
	if (gpu_in_use(d))
		return NVML_ERROR_IN_USE;
	reset_settings(d);
	reset_mig(d);
	return OK;
}

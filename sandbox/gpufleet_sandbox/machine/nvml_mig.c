/*
 * Multi-instance GPU for the simulated NVML: mode, GPU instances, compute instances, MIG devices.
 *
 * Mode: /run/sim/gpu/SLOT.mig. Ampere needs a reset for a new mode, which the driver tries at once, and
 * the board keeps it. From Hopper on it changes at once, and lasts while the module is loaded.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "nvml_mig.h"

#define OK NVML_SUCCESS
#define SUPPORTS_MIG(d) ((d)->mig && !(d)->parent)

/* ---- mode -------------------------------------------------------------------------------- */

static int kept_by_board(nvmlDevice_t d) { return d->major == 8; }

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned int *current, unsigned int *pending)
{
	if (!SUPPORTS_MIG(d))
		return NVML_ERROR_NOT_SUPPORTED;
	*current = get_state(d, "mig");
	*pending = kept_by_board(d) ? get_value(BOARD, d, "mig", 0) : *current;
	return OK;
}

void reset_mig(nvmlDevice_t d)
{
	if (!d->mig)
		return;
	drop_layout(d);
	if (kept_by_board(d))
		set_state(d, "mig", get_value(BOARD, d, "mig", 0));
}

nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t d, unsigned int mode, nvmlReturn_t *status)
{
	if (!SUPPORTS_MIG(d))
		return NVML_ERROR_NOT_SUPPORTED;
	if (geteuid() != 0)
		return NVML_ERROR_NO_PERMISSION;
	*status = OK;
	if (kept_by_board(d))
		set_value(BOARD, d, "mig", mode);
	if (mode == (unsigned)get_state(d, "mig"))
		return OK;
	if (kept_by_board(d)) {
		*status = reset_gpu(d);
	} else if (gpu_in_use(d)) {
		*status = NVML_ERROR_IN_USE;
	} else {
		drop_layout(d);
		set_state(d, "mig", mode);
	}
	return OK;
}

/* ---- GPU instances ------------------------------------------------------------------------- */

/* A command that changes something needs MIG mode; profiles are also listed without it since 550. */
static struct layout *layout_of(nvmlDevice_t d, int lists_only)
{
	const char *driver = driver_version();
	int listed = lists_only && driver && atoi(driver) >= 550;

	return SUPPORTS_MIG(d) && (listed || get_state(d, "mig")) ? read_layout(d) : NULL;
}

#define GET_LAYOUT(d, lists_only)                                                                  \
	struct layout *layout = layout_of(d, lists_only);                                          \
	if (!layout)                                                                               \
	return NVML_ERROR_NOT_SUPPORTED

static void fill_profile(const struct profile *p, nvmlGpuInstanceProfileInfo_t *info)
{
	*info = (nvmlGpuInstanceProfileInfo_t){
		.id = p->id, .sliceCount = p->slices, .instanceCount = p->count, .multiprocessorCount = p->sm,
		.copyEngineCount = p->ce, .decoderCount = p->dec, .encoderCount = p->enc,
		.jpegCount = p->jpeg, .ofaCount = p->ofa, .memorySizeMB = p->memory};
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t d, unsigned int number, nvmlGpuInstanceProfileInfo_t *info)
{
	GET_LAYOUT(d, 1);
	const struct profile *p = profile_by(layout, number, 0);
	if (!p)
		return NVML_ERROR_NOT_SUPPORTED;
	fill_profile(p, info);
	return OK;
}

/* Version 3, newer than the header, has no field for peers and ends with capabilities. */
struct profile_v3 {
	unsigned version, id, slices, count, sm, ce, dec, enc, jpeg, ofa;
	unsigned long long memory;
	char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
	unsigned capabilities;
};

static nvmlReturn_t fill_versioned(const struct profile *p, nvmlGpuInstanceProfileInfo_v2_t *info)
{
	nvmlGpuInstanceProfileInfo_t plain;
	struct profile_v3 *newer = (void *)info;

	if (!p)
		return NVML_ERROR_NOT_SUPPORTED;
	fill_profile(p, &plain);
	if (info->version >> 24 == 3) {
		*newer = (struct profile_v3){info->version, p->id, p->slices, p->count, p->sm, p->ce, p->dec,
					     p->enc, p->jpeg, p->ofa, p->memory, "", 0};
		snprintf(newer->name, sizeof newer->name, "MIG %s", p->name);
		return OK;
	}
	info->id = plain.id, info->isP2pSupported = 0, info->sliceCount = plain.sliceCount;
	info->instanceCount = plain.instanceCount, info->multiprocessorCount = plain.multiprocessorCount;
	info->copyEngineCount = plain.copyEngineCount, info->decoderCount = plain.decoderCount;
	info->encoderCount = plain.encoderCount, info->jpegCount = plain.jpegCount;
	info->ofaCount = plain.ofaCount, info->memorySizeMB = plain.memorySizeMB;
	snprintf(info->name, sizeof info->name, "MIG %s", p->name);
	return OK;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t d, unsigned int number, nvmlGpuInstanceProfileInfo_v2_t *info)
{
	GET_LAYOUT(d, 1);
	return fill_versioned(profile_by(layout, number, 0), info);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t d, unsigned int id, nvmlGpuInstanceProfileInfo_v2_t *info)
{
	GET_LAYOUT(d, 1);
	return fill_versioned(profile_by(layout, id, 1), info);
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t d, unsigned int id,
							   nvmlGpuInstancePlacement_t *places, unsigned int *count)
{
	GET_LAYOUT(d, 1);
	const struct profile *p = profile_by(layout, id, 1);
	if (!p)
		return NVML_ERROR_NOT_SUPPORTED;
	for (unsigned i = 0; places && i < p->start_count && i < *count; i++)
		places[i] = (nvmlGpuInstancePlacement_t){p->starts[i], p->size};
	*count = p->start_count;
	return OK;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t d, unsigned int id,
							nvmlGpuInstancePlacement_t *places, unsigned int *count)
{
	return nvmlDeviceGetGpuInstancePossiblePlacements_v2(d, id, places, count);
}

static unsigned mask_of(unsigned size, unsigned start) { return ((1u << size) - 1) << start; }

/* The memory slices in use, and how many instances have this profile. */
static unsigned used_slices(const struct layout *layout, const struct profile *p, unsigned *same)
{
	unsigned mask = 0;

	*same = 0;
	for (const struct nvmlGpuInstance_st *gi = layout->gi; gi < layout->gi + MAX_GI; gi++)
		if (gi->used) {
			mask |= mask_of(gi->profile->size, gi->start);
			*same += gi->profile == p;
		}
	return mask;
}

/* How many free places of other profiles an instance at this start would take. */
static unsigned cost_of(const struct layout *layout, unsigned own, unsigned used)
{
	unsigned cost = 0;

	for (unsigned i = 0; i < layout->profile_count; i++)
		for (unsigned s = 0; s < layout->profiles[i].start_count; s++) {
			unsigned other = mask_of(layout->profiles[i].size, layout->profiles[i].starts[s]);
			cost += !(other & used) && (other & own);
		}
	return cost;
}

/* The free start with the lowest cost, as the driver seems to choose; -1 if none is free. */
static int free_start(const struct layout *layout, const struct profile *p, unsigned used)
{
	unsigned least = UINT_MAX;
	int start = -1;

	for (unsigned i = 0; i < p->start_count; i++) {
		unsigned own = mask_of(p->size, p->starts[i]);
		if (own & used || cost_of(layout, own, used) >= least)
			continue;
		least = cost_of(layout, own, used), start = p->starts[i];
	}
	return start;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t d, unsigned int id, unsigned int *count)
{
	GET_LAYOUT(d, 1);
	const struct profile *p = profile_by(layout, id, 1);
	unsigned same, used = used_slices(layout, p, &same);
	if (!p)
		return NVML_ERROR_NOT_SUPPORTED;
	*count = 0;
	for (int start; same + *count < p->count && (start = free_start(layout, p, used)) >= 0; ++*count)
		used |= mask_of(p->size, start);
	return OK;
}

/* Numbers of the driver: 0 has eight slices, 1 and 2 have four, 3 to 6 two, 7 to 13 one. */
static unsigned instance_number(const struct profile *p, unsigned start)
{
	return p->size == 8 ? 0 : p->size == 4 ? 1 + start / 4 : p->size == 2 ? 3 + start / 2 : 7 + start;
}

static nvmlReturn_t create_at(nvmlDevice_t d, unsigned id, const nvmlGpuInstancePlacement_t *place, nvmlGpuInstance_t *made)
{
	GET_LAYOUT(d, 0);
	const struct profile *p = profile_by(layout, id, 1);
	unsigned same, used = used_slices(layout, p, &same);
	int start = p && !place ? free_start(layout, p, used) : -1;

	if (geteuid() != 0)
		return NVML_ERROR_NO_PERMISSION;
	if (!p)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; place && i < p->start_count; i++)
		if (p->starts[i] == place->start && !(mask_of(p->size, place->start) & used))
			start = place->start;
	if (start < 0 || same >= p->count)
		return NVML_ERROR_INSUFFICIENT_RESOURCES;
	struct nvmlGpuInstance_st *gi = &layout->gi[instance_number(p, start)];
	gi->used = 1, gi->profile = p, gi->start = start;
	show_capability(d, gi->id, -1, 1);
	*made = gi;
	return write_layout(d);
}

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t d, unsigned int id, nvmlGpuInstance_t *gi)
{
	return create_at(d, id, NULL, gi);
}

nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t d, unsigned int id, const nvmlGpuInstancePlacement_t *place,
						      nvmlGpuInstance_t *gi)
{
	return create_at(d, id, place, gi);
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t gi)
{
	if (geteuid() != 0)
		return NVML_ERROR_NO_PERMISSION;
	for (unsigned j = 0; j < MAX_CI; j++)
		if (gi->ci[j].used)
			return NVML_ERROR_IN_USE;
	if (instance_in_use(gi->device, gi->id, -1))
		return NVML_ERROR_IN_USE;
	gi->used = 0;
	show_capability(gi->device, gi->id, -1, 0);
	return write_layout(gi->device);
}

nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t d, unsigned int id, nvmlGpuInstance_t *list, unsigned int *count)
{
	GET_LAYOUT(d, 0);
	*count = 0;
	for (unsigned i = 0; i < MAX_GI; i++)
		if (layout->gi[i].used && layout->gi[i].profile->id == id)
			list[(*count)++] = &layout->gi[i];
	return OK;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t d, unsigned int id, nvmlGpuInstance_t *gi)
{
	GET_LAYOUT(d, 0);
	if (id >= MAX_GI || !layout->gi[id].used)
		return NVML_ERROR_NOT_FOUND;
	*gi = &layout->gi[id];
	return OK;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t gi, nvmlGpuInstanceInfo_t *info)
{
	*info = (nvmlGpuInstanceInfo_t){gi->device, gi->id, gi->profile->id, {gi->start, gi->profile->size}};
	return OK;
}

/* Compute instances and the MIG devices that they are to programs, for the simulated NVML. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nvml_mig.h"

#define OK NVML_SUCCESS

/* ---- profiles: their numbers are their IDs ------------------------------------------------- */

static unsigned slices_of(unsigned number)
{
	static const unsigned slices[] = {1, 2, 3, 4, 7, 8, 6};
	return number < sizeof slices / sizeof *slices ? slices[number] : 0;
}

static int has_profile(const struct profile *p, unsigned slices)
{
	return slices && (slices == p->slices || (slices < p->slices && slices <= 4 && (slices < 4 || p->slices == 7)));
}

static nvmlReturn_t describe(nvmlGpuInstance_t gi, unsigned number, nvmlComputeInstanceProfileInfo_t *info)
{
	const struct profile *p = gi->profile;
	unsigned slices = slices_of(number);

	if (!gi->used || !has_profile(p, slices))
		return NVML_ERROR_NOT_SUPPORTED;
	*info = (nvmlComputeInstanceProfileInfo_t){number, slices, p->slices / slices, p->sm * slices / p->slices,
						   p->ce, p->dec, p->enc, p->jpeg, p->ofa};
	return OK;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t gi, unsigned int number, unsigned int engine,
							  nvmlComputeInstanceProfileInfo_t *info)
{
	return engine ? NVML_ERROR_INVALID_ARGUMENT : describe(gi, number, info);
}

/* Version 2 is the plain one between the version and the name. */
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t gi, unsigned int number, unsigned int engine,
							   nvmlComputeInstanceProfileInfo_v2_t *info)
{
	nvmlComputeInstanceProfileInfo_t plain;
	nvmlReturn_t result = engine ? NVML_ERROR_INVALID_ARGUMENT : describe(gi, number, &plain);
	char part[16] = "";

	if (result != OK)
		return result;
	memcpy(&info->id, &plain, sizeof plain);
	if (plain.sliceCount < gi->profile->slices)
		snprintf(part, sizeof part, "%uc.", plain.sliceCount);
	snprintf(info->name, sizeof info->name, "MIG %s%s", part, gi->profile->name);
	return OK;
}

/* ---- instances ----------------------------------------------------------------------------- */

static unsigned used_slices(nvmlGpuInstance_t gi)
{
	unsigned mask = 0;

	for (unsigned j = 0; j < MAX_CI; j++)
		if (gi->ci[j].used)
			mask |= ((1u << gi->ci[j].slices) - 1) << gi->ci[j].start;
	return mask;
}

static int free_start(nvmlGpuInstance_t gi, unsigned slices, unsigned used)
{
	for (unsigned start = 0; start + slices <= gi->profile->slices; start++)
		if (!(((1u << slices) - 1) << start & used))
			return start;
	return -1;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t gi, unsigned int id, unsigned int *count)
{
	unsigned slices = slices_of(id), used;

	read_layout(gi->device);
	if (!gi->used || !has_profile(gi->profile, slices))
		return NVML_ERROR_NOT_SUPPORTED;
	used = used_slices(gi), *count = 0;
	for (int start; (start = free_start(gi, slices, used)) >= 0; ++*count)
		used |= ((1u << slices) - 1) << start;
	return OK;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t gi, unsigned int id,
								 nvmlComputeInstancePlacement_t *places, unsigned int *count)
{
	unsigned slices = slices_of(id), found = 0;

	if (!gi->used || !has_profile(gi->profile, slices))
		return NVML_ERROR_NOT_SUPPORTED;
	for (unsigned start = 0; start + slices <= gi->profile->slices; start++, found++)
		if (places && found < *count)
			places[found] = (nvmlComputeInstancePlacement_t){start, slices};
	*count = found;
	return OK;
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t gi, unsigned int id, nvmlComputeInstance_t *made)
{
	unsigned slices = slices_of(id), number = 0;

	if (geteuid() != 0)
		return NVML_ERROR_NO_PERMISSION;
	read_layout(gi->device);
	if (!gi->used || !has_profile(gi->profile, slices))
		return NVML_ERROR_NOT_SUPPORTED;
	int start = free_start(gi, slices, used_slices(gi));
	while (number < MAX_CI && gi->ci[number].used)
		number++;
	if (start < 0 || number == MAX_CI)
		return NVML_ERROR_INSUFFICIENT_RESOURCES;
	gi->ci[number].used = 1, gi->ci[number].slices = slices, gi->ci[number].start = start;
	show_capability(gi->device, gi->id, number, 1);
	*made = &gi->ci[number];
	nvmlReturn_t result = write_layout(gi->device);
	read_layout(gi->device); /* describes the MIG device */
	return result;
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t ci)
{
	if (geteuid() != 0)
		return NVML_ERROR_NO_PERMISSION;
	if (instance_in_use(ci->gi->device, ci->gi->id, ci->id))
		return NVML_ERROR_IN_USE;
	ci->used = 0;
	show_capability(ci->gi->device, ci->gi->id, ci->id, 0);
	return write_layout(ci->gi->device);
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t gi, unsigned int id, nvmlComputeInstance_t *list,
						unsigned int *count)
{
	read_layout(gi->device);
	*count = 0;
	for (unsigned j = 0; j < MAX_CI; j++)
		if (gi->ci[j].used && gi->ci[j].slices == slices_of(id))
			list[(*count)++] = &gi->ci[j];
	return OK;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t gi, unsigned int id, nvmlComputeInstance_t *ci)
{
	read_layout(gi->device);
	if (id >= MAX_CI || !gi->ci[id].used)
		return NVML_ERROR_NOT_FOUND;
	*ci = &gi->ci[id];
	return OK;
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t ci, nvmlComputeInstanceInfo_t *info)
{
	unsigned number = 0;

	while (slices_of(number) != ci->slices)
		number++;
	*info = (nvmlComputeInstanceInfo_t){ci->gi->device, ci->gi, ci->id, number, {ci->start, ci->slices}};
	return OK;
}

nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t ci, nvmlComputeInstanceInfo_t *info)
{
	return nvmlComputeInstanceGetInfo_v2(ci, info);
}

/* ---- MIG devices ----------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t d, unsigned int *is)
{
	*is = d->parent != NULL;
	return OK;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, unsigned int *count)
{
	*count = d->mig && !d->parent ? 7 : 0;
	return OK;
}

/* The MIG device of a GPU with this index, or with this UUID if there is one. */
static nvmlDevice_t find_mig(nvmlDevice_t d, unsigned index, const char *uuid)
{
	if (!d->mig || d->parent || !get_state(d, "mig"))
		return NULL;
	struct layout *layout = read_layout(d);
	for (unsigned i = 0; i < MAX_GI; i++)
		for (unsigned j = 0; j < MAX_CI; j++) {
			struct nvmlComputeInstance_st *ci = &layout->gi[i].ci[j];
			if (ci->used && (uuid ? !strcmp(ci->mig.uuid, uuid) : ci->mig.index == index))
				return &ci->mig;
		}
	return NULL;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned int index, nvmlDevice_t *mig)
{
	*mig = find_mig(d, index, NULL);
	return *mig ? OK : NVML_ERROR_NOT_FOUND;
}

nvmlDevice_t mig_by_uuid(const char *uuid)
{
	nvmlDevice_t found = NULL;

	for (unsigned i = 0; i < device_count && !found; i++)
		found = find_mig(&devices[i], 0, uuid);
	return found;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *d)
{
	*d = mig->parent;
	return mig->parent ? OK : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned int *id)
{
	*id = mig->gi;
	return mig->parent ? OK : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned int *id)
{
	*id = mig->ci;
	return mig->parent ? OK : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t mig, nvmlDeviceAttributes_t *a)
{
	if (!mig->parent)
		return NVML_ERROR_NOT_SUPPORTED;
	struct nvmlGpuInstance_st *gi = &read_layout(mig->parent)->gi[mig->gi];
	if (!gi->used || !gi->ci[mig->ci].used)
		return NVML_ERROR_NOT_FOUND;
	const struct profile *p = gi->profile;
	unsigned slices = gi->ci[mig->ci].slices;
	*a = (nvmlDeviceAttributes_t){
		.multiprocessorCount = p->sm * slices / p->slices, .sharedCopyEngineCount = p->ce,
		.sharedDecoderCount = p->dec, .sharedEncoderCount = p->enc, .sharedJpegCount = p->jpeg,
		.sharedOfaCount = p->ofa, .gpuInstanceSliceCount = p->slices,
		.computeInstanceSliceCount = slices, .memorySizeMB = p->memory};
	return OK;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t mig, nvmlDeviceAttributes_t *a) { return nvmlDeviceGetAttributes_v2(mig, a); }

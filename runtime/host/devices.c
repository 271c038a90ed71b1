/* devices.c - the devices that sessions live on: the processor beside jit/device's, and their names. */
#include "runtime/host/host.h"
#include <stdlib.h>
#include <string.h>

/* ---- the processor: memory is the host's, kernels run on a pool's threads */
static int cpu_count(char *why, size_t n)
{
	(void)why;
	(void)n;
	return 1;
}

static int cpu_describe(int index, Text *out, Error *err)
{
	(void)index;
	(void)err;
	text_add(out, "%s", target_host()->key);
	return 0;
}

static int cpu_alloc(Device *d, size_t bytes, void **memory, Error *err)
{
	(void)d;
	(void)err;
	*memory = buffer_new(bytes);
	return *memory ? 0 : RICCI_ENOMEM;
}

static void cpu_free(Device *d, void *memory)
{
	(void)d;
	buffer_free(memory);
}

static int cpu_copy(Device *d, CopyWay way, void *to, const void *from, size_t bytes, Error *err)
{
	(void)d;
	(void)way;
	(void)err;
	memcpy(to, from, bytes);
	return 0;
}

static int cpu_zero(Device *d, void *to, size_t bytes, Error *err)
{
	(void)d;
	(void)err;
	memset(to, 0, bytes);
	return 0;
}

static const DeviceKind device_cpu = {
	.name = "cpu",
	.count = cpu_count,
	.describe = cpu_describe,
	.alloc = cpu_alloc,
	.free = cpu_free,
	.copy = cpu_copy,
	.zero = cpu_zero,
};

Device *device_host(void)
{
	static Device host = {.kind = &device_cpu, .name = "cpu"};

	return &host;
}

/* ---- by name */
const DeviceKind *const device_kinds[] = {&device_cpu,
#ifndef RICCI_WITHOUT_CUDA
					  &device_cuda,
#endif
#ifndef RICCI_WITHOUT_OPENCL
					  &device_opencl,
#endif
					  NULL};

/* "cuda:1" of kind cuda: 1; -1: no such name. "cuda" is cuda:0. */
static int name_index(const char *name, const DeviceKind *kind)
{
	size_t n = strlen(kind->name);
	char *end;

	if (strncmp(name, kind->name, n) || (name[n] && name[n] != ':'))
		return -1;
	if (!name[n])
		return 0;
	if (!kind->launch || name[n + 1] < '0' || name[n + 1] > '9')
		return -1;
	long index = strtol(name + n + 1, &end, 10);
	return *end || index > 1000 ? -1 : (int)index;
}

Device *device_named(const char *name, Error *err)
{
	char all[100] = "";

	for (int k = 0; device_kinds[k]; k++) {
		int index = name_index(name, device_kinds[k]);

		if (index >= 0)
			return device_kinds[k]->launch ? device_open(device_kinds[k], index, err)
						       : device_host();
		snprintf(all + strlen(all), sizeof all - strlen(all),
			 device_kinds[k]->launch ? ", %s:0" : "%s", device_kinds[k]->name);
	}
	error_set(err, RICCI_EINVAL, "there is no device '%s': it is one of %s ..", name, all);
	return NULL;
}

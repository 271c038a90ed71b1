/* binary.c - kernels of a grid as what a driver loads: kept, and run on the host's memory.
 *
 * An object of several is, for each, its size in 8 bytes, then its bytes. A kernel that is only a library's
 * product has none.
 */
#include "jit/device/internal.h"

#include <string.h>

Binary *binary_new(const DeviceKind *kind, size_t size, Error *err)
{
	Binary *b = mem_zalloc(sizeof *b + size);
	if (!b) {
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	b->kind = kind;
	b->size = size;
	return b;
}

void binary_release(void *module)
{
	Binary *b = module;
	if (b && (b->loaded || b->plan) &&
	    !device_enter(b->device, NULL)) { /* not while others record */
		b->kind->unload(b);
		device_leave(b->device, 0);
	}
	mem_free(b);
}

void phase_name(int phase, char name[32])
{
	snprintf(name, 32, phase ? "kernel_0_phase%d" : "kernel_0", phase);
}

static void binary_pack(int n, Kernel *const *kernels, Text *object)
{
	for (int i = 0; i < n; i++) {
		const Binary *b = kernels[i]->module;
		uint64_t size = b->size;
		text_put(object, (const char *)&size, sizeof size);
		text_put(object, b->bytes, b->size);
	}
}

static void binaries_drop(int n, Kernel **kernels)
{
	for (int i = 0; i < n; i++) {
		binary_release(kernels[i]->module);
		kernels[i]->module = NULL;
		kernels[i]->run = NULL;
	}
}

int binaries_make(int n, Kernel **kernels, int (*one)(Kernel *k, Error *err), Text *object,
		  Error *err)
{
	int done = 0;
	while (done < n && !backend_stopped() && !one(kernels[done], err))
		done++;
	if (done < n) {
		binaries_drop(done, kernels);
		return backend_stopped() ? error_set(err, RICCI_ECOMPILE,
						     "making kernels was "
						     "stopped")
					 : RICCI_ECOMPILE;
	}
	if (object)
		binary_pack(n, kernels, object);
	return 0;
}

int binary_unpack(const DeviceKind *kind, int n, Kernel **kernels, const void *object, size_t size,
		  Error *err)
{
	const char *at = object;
	int done = 0, code = 0;
	for (; done < n; done++) {
		uint64_t one = 0;
		if (size >= sizeof one)
			memcpy(&one, at, sizeof one);
		if (size < sizeof one || one > size - sizeof one)
			code = error_set(err, RICCI_EFORMAT, "a kept kernel of %s is damaged",
					 kind->name);
		Binary *b = code ? NULL : binary_new(kind, one, err);
		if (!b) {
			code = code ? code : RICCI_ENOMEM;
			break;
		}
		memcpy(b->bytes, at + sizeof one, one);
		at += sizeof one + one;
		size -= sizeof one + one;
		kernels[done]->module = b;
		kernels[done]->run = device_run;
	}
	if (code)
		binaries_drop(done, kernels);
	return code;
}

/* Before and behind each buffer, of a pattern: a kernel that writes beside it shows. */
enum { GUARD = 256, PATTERN = 0xa7 };

static int guards_copy(Device *d, CopyWay way, char *at, size_t bytes, char guard[2][GUARD],
		       Error *err)
{
	int code = 0;
	for (int end = 0; end < 2 && !code; end++) {
		char *there = end ? at + bytes : at - GUARD;
		code = way == COPY_IN ? device_copy(d, way, there, guard[end], GUARD, err)
				      : device_copy(d, way, guard[end], there, GUARD, err);
	}
	return code;
}

static int guards_check(Device *d, const Kernel *k, void *const *at, Error *err)
{
	char guard[2][GUARD];
	int code = 0;
	for (int i = 0; i < k->nbuf && !code; i++) {
		code = guards_copy(d, COPY_OUT, at[i], k->bytes[i], guard, err);
		for (int b = 0; b < 2 * GUARD && !code; b++)
			if ((unsigned char)guard[b / GUARD][b % GUARD] != PATTERN)
				code = error_set(err, RICCI_ECOMPILE,
						 "a kernel writes outside its tensors, near "
						 "buffer %d",
						 i);
	}
	return code;
}

static int buffer_put(Device *d, const void *from, size_t bytes, void **at, Error *err)
{
	char guard[2][GUARD];
	char *block =
		device_alloc(d, bytes + sizeof guard, MEMORY_KERNELS, "a kernel's test data", err);
	if (!block)
		return RICCI_ENOMEM;
	*at = block + GUARD;
	memset(guard, PATTERN, sizeof guard);
	int code = guards_copy(d, COPY_IN, *at, bytes, guard, err);
	return code ? code : device_copy(d, COPY_IN, *at, from, bytes, err);
}

static int buffers_run(Device *d, const Kernel *k, void *const *buf, const KernelEnv *env,
		       void **at)
{
	int code = 0;
	/* Outputs too: a scatter or a partial write leaves elements as they were. */
	for (int i = 0; i < k->nbuf && !code; i++)
		code = buffer_put(d, buf[i], k->bytes[i], &at[i], env->err);
	if (!code)
		code = device_launch(d, k, k->nbuf, at, (RandomState){env->seed, env->step},
				     env->err);
	if (!code)
		code = device_finish(d, env->err);
	if (!code)
		code = guards_check(d, k, at, env->err);
	for (int i = k->ninput; i < k->nbuf && !code; i++)
		code = device_copy(d, COPY_OUT, buf[i], at[i], k->bytes[i], env->err);
	return code;
}

void device_run(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	const Kernel *k = env->kernel;
	const Binary *b = k->module;
	if (begin != 0 || end <= begin)
		return;
	if (!k->bytes) {
		error_set(env->err, RICCI_EINTERNAL,
			  "a kernel of %s without the sizes of its buffers", b->kind->name);
		return;
	}
	Device *d = device_open(b->kind, k->device, env->err);
	void **at = mem_zalloc((size_t)(k->nbuf + 1) * sizeof *at);
	if (d && at)
		buffers_run(d, k, buf, env, at);
	else if (d)
		error_set(env->err, RICCI_ENOMEM, "out of memory");
	for (int i = 0; d && at && i < k->nbuf; i++)
		device_free(d, at[i] ? (char *)at[i] - GUARD : NULL);
	mem_free(at);
}

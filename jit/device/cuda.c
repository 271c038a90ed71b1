/* cuda.c - NVIDIA's GPUs by the driver's own library, opened at run time.
 *
 * A device has one stream; kernels and copies run on it in the order in which they were asked for.
 * Nothing here compiles: a kernel's binary is a cubin (jit/backend/nvrtc.c makes them).
 */
#include "jit/device/internal.h"
#include "jit/library/library.h"

#include <dlfcn.h>
#include <string.h>

static struct {
	int devices, version;
	bool records; /* the driver has all of cuda_graph_api.def */
	char why[256];
#define CUDA(name, symbol, parameters) int(*name) parameters;
#include "jit/device/cuda_api.def"
#include "jit/device/cuda_graph_api.def"
#undef CUDA
} cuda;
static pthread_once_t cuda_once = PTHREAD_ONCE_INIT;

enum {
	ATTRIBUTE_MAJOR = 75,
	ATTRIBUTE_MINOR = 76,
	FUNCTION_SHARED = 8, /* bytes of dynamic memory that a block may have */
	SHARED_USUAL = 48 << 10,
	STREAM_OWN = 1, /* it doesn't wait for the default stream */
	EVENT_TIMED = 0,
	CAPTURE_RELAXED = 2, /* other threads, and this one, may take memory meanwhile */
	OUT_OF_MEMORY = 2
};

/* ---- opening the library */

static bool driver_bind(void)
{
	static const char *const name[] = {"libcuda.so.1", NULL};
	void *library = cuda_library(name);
	if (!library) {
		message_print(cuda.why, sizeof cuda.why,
			      "no NVIDIA driver (libcuda.so.1): it comes with NVIDIA's "
			      "driver for this system (Debian: libcuda1)");
		return false;
	}
	const char *missing = NULL;
#define CUDA(name, symbol, parameters)                                                             \
	if (!(cuda.name = dlsym(library, symbol)))                                                 \
		missing = symbol;
#include "jit/device/cuda_api.def"
#undef CUDA
	cuda.records = true;
#define CUDA(name, symbol, parameters)                                                             \
	cuda.name = dlsym(library, symbol);                                                        \
	cuda.records = cuda.records && cuda.name;
#include "jit/device/cuda_graph_api.def"
#undef CUDA
	if (missing)
		message_print(cuda.why, sizeof cuda.why,
			      "the NVIDIA driver has no %s: it is too old, update it", missing);
	return !missing;
}

static void cuda_bind(void)
{
	int status;
	if (!driver_bind())
		return;
	status = cuda.init(0);
	if (!status)
		status = cuda.count(&cuda.devices);
	cuda.driver(&cuda.version);
	if (!status && cuda.devices > 0)
		return;
	cuda.devices = 0;
	message_print(cuda.why, sizeof cuda.why, "the NVIDIA driver finds no device (error %d)",
		      status);
}

static int cuda_count(char *why, size_t n)
{
	pthread_once(&cuda_once, cuda_bind);
	if (!cuda.devices)
		message_print(why, n, "%s", cuda.why);
	return cuda.devices;
}

/* What to do about an error of the driver; "": its text says it. */
static const char *cuda_remedy(int status)
{
	static const struct {
		int status;
		const char *text;
	} known[] = {
		{OUT_OF_MEMORY, ""},
		{209, "; the kernel is for another device"},
		{218, "; is the driver older than NVRTC?"},
		{222, "; the driver is older than NVRTC: update it"},
		{700, "; this process can't use the device any more"},
		{702, "; this process can't use the device any more"},
		{719, "; this process can't use the device any more"},
	};
	for (int k = 0; k < COUNT(known); k++)
		if (known[k].status == status)
			return known[k].text;
	return "";
}

static int cuda_call(int status, const char *what, Error *err)
{
	const char *text = NULL;
	if (!status)
		return 0;
	if (cuda.message(status, &text) || !text)
		text = "an unknown error";
	return error_set(err, RICCI_EDEVICE, "CUDA: %s failed: %s (error %d)%s", what, text, status,
			 cuda_remedy(status));
}

/* ---- devices */

static int cuda_number(int index, int *device, Error *err)
{
	char why[256];
	int n = cuda_count(why, sizeof why);
	if (!n)
		return error_set(err, RICCI_EINVAL, "there is no device cuda:%d: %s", index, why);
	if (index >= n)
		return error_set(err, RICCI_EINVAL,
				 "there is no device cuda:%d: the last is cuda:%d", index, n - 1);
	return cuda_call(cuda.device(device, index), "finding a device", err);
}

static int capability(int device)
{
	int major = 8, minor = 0;
	cuda.attribute(&major, ATTRIBUTE_MAJOR, device);
	cuda.attribute(&minor, ATTRIBUTE_MINOR, device);
	return major * 10 + minor;
}

int cuda_arch(int index)
{
	int device;
	return cuda_number(index, &device, NULL) ? 80 : capability(device);
}

void cuda_options(int arch, char room[CUDA_OPTION_ROOM], const char *option[CUDA_OPTIONS])
{
	snprintf(room, CUDA_OPTION_ROOM, "--gpu-architecture=sm_%d%s", arch,
		 arch == CUDA_ARCH_GROUPS ? "a" : "");
	option[0] = room;
	option[1] = "--std=c++17";
	option[2] =
		"--device-as-default-execution-space"; /* the mathematics' text says nothing of it */
	option[3] = "--disable-warnings";
}

static int cuda_describe(int index, Text *out, Error *err)
{
	char name[128] = "";
	int device, code = cuda_number(index, &device, err);
	if (code)
		return code;
	cuda.name(name, sizeof name, device);
	text_add(out, "%s, sm_%d, driver for CUDA %d.%d", name, capability(device),
		 cuda.version / 1000, cuda.version % 1000 / 10);
	return 0;
}

static int cuda_open(Device *d, Error *err)
{
	int device, code = cuda_number(d->index, &device, err);
	if (!code)
		code = cuda_call(cuda.retain(&d->context, device), "opening a device", err);
	if (!code)
		code = cuda_call(cuda.current(d->context), "choosing the device", err);
	if (!code)
		code = cuda_call(cuda.stream(&d->queue, STREAM_OWN), "making a stream", err);
	return code;
}

/* What is current is a thread's. */
static int cuda_enter(const Device *d, Error *err)
{
	return cuda_call(cuda.current(d->context), "choosing the device", err);
}

/* ---- memory */

static int cuda_alloc(Device *d, size_t bytes, void **memory, Error *err)
{
	uint64_t at = 0;
	int code = cuda_enter(d, err), status = code ? 0 : cuda.alloc(&at, bytes);
	*memory = (void *)(uintptr_t)at;
	if (status == OUT_OF_MEMORY)
		return RICCI_ENOMEM;
	return code ? code : cuda_call(status, "taking memory", err);
}

static void cuda_free(Device *d, void *memory)
{
	if (!cuda_enter(d, NULL))
		cuda.free((uint64_t)(uintptr_t)memory);
}

static bool cuda_room(Device *d, size_t *left, size_t *all)
{
	return !cuda_enter(d, NULL) && cuda.room(left, all) == 0;
}

static int cuda_copy(Device *d, CopyWay way, void *to, const void *from, size_t bytes, Error *err)
{
	uint64_t there = (uint64_t)(uintptr_t)to, here = (uint64_t)(uintptr_t)from;
	int code = cuda_enter(d, err);
	if (code)
		return code;
	switch (way) {
	case COPY_IN: /* the driver has taken a copy of what is in pages when this returns */
		return cuda_call(cuda.to_device(there, from, bytes, d->queue),
				 "copying to the device", err);
	case COPY_WITHIN:
		return cuda_call(cuda.within(there, here, bytes, d->queue), "copying on the device",
				 err);
	default:
		code = cuda_call(cuda.to_host(to, here, bytes, d->queue), "copying from the device",
				 err);
		return code ? code : cuda_call(cuda.finish(d->queue), "a kernel or a copy", err);
	}
}

static int cuda_zero(Device *d, void *to, size_t bytes, Error *err)
{
	int code = cuda_enter(d, err);
	if (code)
		return code;
	return cuda_call(cuda.fill((uint64_t)(uintptr_t)to, 0, bytes, d->queue), "filling memory",
			 err);
}

/* ---- kernels */

static int function_find(Device *d, Binary *b, int phase, const KernelGrid *g, Error *err)
{
	char name[32];
	int code = 0;
	if (!b->size)
		return error_set(err, RICCI_EFORMAT, "a kept kernel has no code");
	if (!b->loaded)
		code = cuda_call(cuda.load(&b->loaded, b->bytes), "loading a kernel", err);
	if (code || b->function[phase])
		return code;
	b->device = d;
	phase_name(phase, name);
	code = cuda_call(cuda.function(&b->function[phase], b->loaded, name), "finding a kernel",
			 err);
	if (!code && g->block_memory > SHARED_USUAL)
		code = cuda_call(
			cuda.permit(b->function[phase], FUNCTION_SHARED, (int)g->block_memory),
			"giving a kernel's blocks their memory", err);
	if (code)
		b->function[phase] = NULL;
	return code;
}

static int cuda_load(Device *d, const Kernel *k, int phase, Error *err)
{
	const KernelGrid g = kernel_grid(k, phase);
	const KernelCall *call = kernel_call(k, phase);
	int code = cuda_enter(d, err);
	if (code)
		return code;
	return call ? call_plan(d, k->module, call, err)
		    : function_find(d, k->module, phase, &g, err);
}

static int cuda_launch(Device *d, const Kernel *k, int phase, const Arguments *a, Error *err)
{
	Binary *b = k->module;
	const KernelGrid g = kernel_grid(k, phase);
	const KernelCall *call = kernel_call(k, phase);
	uint64_t seed = a->seed;
	int code = cuda_enter(d, err);
	if (code)
		return code;
	if (call)
		return call_launch(d, b, call, a, err);
	void **argument = mem_alloc(((size_t)a->npointer + 1) * sizeof *argument);
	if (!argument)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	for (int i = 0; i < a->npointer; i++)
		argument[i] = (void *)(uintptr_t)&a->pointer[i];
	argument[a->npointer] = &seed;
	code = cuda_call(cuda.launch(b->function[phase], g.blocks[0], g.blocks[1], g.blocks[2],
				     g.threads[0], g.threads[1], g.threads[2],
				     (unsigned)g.block_memory, d->queue, argument, NULL),
			 "starting a kernel", err);
	mem_free(argument);
	return code;
}

static void cuda_unload(Binary *b)
{
	call_forget(b);
	if (b->loaded && !cuda_enter(b->device, NULL))
		cuda.unload(b->loaded);
}

/* ---- marks: events of the stream */

static int cuda_mark(Device *d, void **mark, Error *err)
{
	int code = cuda_enter(d, err);
	*mark = NULL;
	if (!code)
		code = cuda_call(cuda.event(mark, EVENT_TIMED), "making an event", err);
	return code ? code : cuda_call(cuda.event_record(*mark, d->queue), "setting an event", err);
}

static int cuda_reach(Device *d, void *mark, Error *err)
{
	int code = cuda_enter(d, err);
	return code ? code : cuda_call(cuda.event_wait(mark), "a kernel", err);
}

static int cuda_between(Device *d, void *from, void *to, double *seconds, Error *err)
{
	float milliseconds = 0;
	int code = cuda_enter(d, err);
	if (!code)
		code = cuda_call(cuda.event_time(&milliseconds, from, to), "timing a kernel", err);
	*seconds = 1e-3 * (double)milliseconds;
	return code;
}

static void cuda_unmark(Device *d, void *mark)
{
	cuda_enter(d, NULL); /* where that fails the event is still ours */
	cuda.event_free(mark);
}

/* ---- recordings: what a stream was given is captured as a graph, which is launched at once */

static int cuda_record(Device *d, Error *err)
{
	if (!cuda.records)
		return error_set(
			err, RICCI_EUNSUPPORTED,
			"the NVIDIA driver records no launches: it is older than CUDA 11.4");
	int code = cuda_enter(d, err);
	return code ? code
		    : cuda_call(cuda.capture(d->queue, CAPTURE_RELAXED), "beginning a recording",
				err);
}

static int cuda_recorded(Device *d, bool keep, void **recording, Error *err)
{
	void *graph = NULL;
	*recording = NULL;
	int code = cuda_enter(d, err);
	if (!code)
		code = cuda_call(cuda.captured(d->queue, &graph), "ending a recording", err);
	if (!code && keep)
		code = cuda_call(cuda.instantiate(recording, graph, 0), "keeping a recording", err);
	if (graph)
		cuda.graph_free(graph);
	return code;
}

static int cuda_replay(Device *d, void *recording, Error *err)
{
	int code = cuda_enter(d, err);
	return code ? code
		    : cuda_call(cuda.graph_launch(recording, d->queue), "starting a recording",
				err);
}

static void cuda_forget(Device *d, void *recording)
{
	if (!cuda_enter(d, NULL))
		cuda.executable_free(recording);
}

const DeviceKind device_cuda = {
	.name = "cuda",
	.backend = "nvrtc",
	.model = {.pd = 1e12,
		  .pc = 1e13,
		  .launch = 4e-6,
		  .pd_far = 1e12,
		  .pd_core = 8e12,
		  .core = 32 << 10,
		  .threads = 128},
	.pooled = true,
	.count = cuda_count,
	.describe = cuda_describe,
	.open = cuda_open,
	.alloc = cuda_alloc,
	.free = cuda_free,
	.room = cuda_room,
	.copy = cuda_copy,
	.zero = cuda_zero,
	.launch = cuda_launch,
	.load = cuda_load,
	.unload = cuda_unload,
	.mark = cuda_mark,
	.reach = cuda_reach,
	.between = cuda_between,
	.unmark = cuda_unmark,
	.record = cuda_record,
	.recorded = cuda_recorded,
	.replay = cuda_replay,
	.forget = cuda_forget,
};

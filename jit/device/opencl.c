/* opencl.c - GPUs of any vendor, and processors by PoCL, through the system's OpenCL loader.
 *
 * Memory is shared virtual memory (OpenCL 2.0, coarse grained): pointers that parts of tensors can be
 * reached by, as on other devices. The host never follows one. A device without it, or without double
 * precision, is listed, and refused with the reason. A device has one queue, which keeps the order.
 */
#include "jit/device/device.h"

#include <dlfcn.h>
#include <string.h>

static const unsigned ALL_TYPES = 0xffffffffu;
enum {
	MOST = 16,
	INFO_NAME = 0x102b,
	INFO_VERSION = 0x102f,
	INFO_DRIVER = 0x102d,
	INFO_MEMORY = 0x101f,
	INFO_DOUBLE = 0x1032,
	INFO_SVM = 0x1053,
	SVM_COARSE = 1,
	READ_WRITE = 1,
	QUEUE_PROPERTIES = 0x1093,
	QUEUE_PROFILES = 2,
	PROFILED_END = 0x1283
};

OpenCl opencl;
static struct {
	int devices;
	void *device[MOST];
	char why[256];
} found;
static pthread_once_t opencl_once = PTHREAD_ONCE_INIT;

/* ---- opening the library */

static bool opencl_bind(void)
{
	static const char *const name[] = {"libOpenCL.so.1", "libOpenCL.so", NULL};
	void *library = NULL;
	for (int k = 0; name[k] && !library; k++)
		library = dlopen(name[k], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		message_print(found.why, sizeof found.why,
			      "no OpenCL (libOpenCL.so.1; Debian: ocl-icd-libopencl1, and a "
			      "driver: of the GPU's vendor, or pocl-opencl-icd for processors)");
		return false;
	}
	const char *missing = NULL;
#define OPENCL(result, name, parameters)                                                           \
	if (!(opencl.name = dlsym(library, "cl" #name)))                                           \
		missing = "cl" #name;
#include "jit/device/opencl_api.def"
#undef OPENCL
	if (missing)
		message_print(found.why, sizeof found.why,
			      "the OpenCL loader has no %s: it is older than OpenCL 2.0", missing);
	return !missing;
}

static void opencl_find(void)
{
	void *platform[MOST];
	unsigned n = 0;
	if (!opencl_bind())
		return;
	if (opencl.GetPlatformIDs(MOST, platform, &n))
		n = 0;
	for (unsigned k = 0; k < n && k < MOST && found.devices < MOST; k++) {
		unsigned more = 0;
		if (!opencl.GetDeviceIDs(platform[k], ALL_TYPES, (unsigned)(MOST - found.devices),
					 found.device + found.devices, &more))
			found.devices += (int)more;
		if (found.devices > MOST)
			found.devices = MOST;
	}
	if (!found.devices)
		message_print(found.why, sizeof found.why,
			      "OpenCL finds no device: install the driver of the GPU's vendor, or "
			      "pocl-opencl-icd for processors");
}

static int opencl_count(char *why, size_t n)
{
	pthread_once(&opencl_once, opencl_find);
	if (!found.devices)
		message_print(why, n, "%s", found.why);
	return found.devices;
}

int opencl_error(int status, const char *what, int code, Error *err)
{
	static const struct {
		int status;
		const char *text;
	} known[] = {
		{-2, "the device is not available"},
		{-3, "there is no compiler"},
		{-4, "no memory for an object"},
		{-5, "out of resources"},
		{-6, "out of the host's memory"},
		{-11, "the program can't be built"},
		{-14, "a command that was waited for failed"},
		{-42, "the binary is for another device"},
		{-52, "an argument of the kernel is missing"},
		{-54, "the device can't have so many threads in a block"},
		{-55, "the device can't have so many threads"},
	};
	const char *text = "an error";
	if (!status)
		return 0;
	for (int k = 0; k < COUNT(known); k++)
		if (known[k].status == status)
			text = known[k].text;
	return error_set(err, code, "OpenCL: %s failed: %s (error %d)", what, text, status);
}

static int opencl_call(int status, const char *what, Error *err)
{
	return opencl_error(status, what, RICCI_EDEVICE, err);
}

/* ---- devices */

static int opencl_device(int index, void **device, Error *err)
{
	char why[256];
	int n = opencl_count(why, sizeof why);
	if (!n)
		return error_set(err, RICCI_EINVAL, "there is no device opencl:%d: %s", index, why);
	if (index >= n)
		return error_set(err, RICCI_EINVAL,
				 "there is no device opencl:%d: the last is opencl:%d", index,
				 n - 1);
	*device = found.device[index];
	return 0;
}

static void info_text(void *device, unsigned what, char *out, size_t n)
{
	*out = 0;
	if (opencl.GetDeviceInfo(device, what, n - 1, out, NULL))
		*out = 0;
	out[n - 1] = 0;
}

static uint64_t info_number(void *device, unsigned what)
{
	uint64_t v = 0;
	return opencl.GetDeviceInfo(device, what, sizeof v, &v, NULL) ? 0 : v;
}

/* What the device lacks; NULL: nothing. */
static const char *device_lacks(void *device)
{
	if (!info_number(device, INFO_DOUBLE))
		return "it has no double precision (cl_khr_fp64)";
	if (!(info_number(device, INFO_SVM) & SVM_COARSE))
		return "it has no shared virtual memory (OpenCL 2.0)";
	return NULL;
}

static int opencl_describe(int index, Text *out, Error *err)
{
	char name[256], version[256], driver[256];
	void *device;
	int code = opencl_device(index, &device, err);
	if (code)
		return code;
	const char *lacks = device_lacks(device);
	info_text(device, INFO_NAME, name, sizeof name);
	info_text(device, INFO_VERSION, version, sizeof version);
	info_text(device, INFO_DRIVER, driver, sizeof driver);
	text_add(out, "%s, %s, driver %s%s%s", name, version, driver,
		 lacks ? "; it can't be used: " : "", lacks ? lacks : "");
	return 0;
}

static int opencl_open(Device *d, Error *err)
{
	static const uint64_t properties[] = {QUEUE_PROPERTIES, QUEUE_PROFILES, 0};
	void *device;
	int status = 0, code = opencl_device(d->index, &device, err);
	const char *lacks = code ? NULL : device_lacks(device);
	if (code)
		return code;
	if (lacks)
		return error_set(err, RICCI_EUNSUPPORTED, "%s can't be used: %s", d->name, lacks);
	d->platform = device;
	d->context = opencl.CreateContext(NULL, 1, &device, NULL, NULL, &status);
	if (!status)
		d->queue = opencl.CreateCommandQueueWithProperties(d->context, device, properties,
								   &status);
	return opencl_call(status, "opening a device", err);
}

/* ---- memory */

static int svm_alloc(Device *d, size_t bytes, void **memory, Error *err)
{
	(void)err;
	*memory = opencl.SVMAlloc(d->context, READ_WRITE, bytes, 0);
	return *memory ? 0 : RICCI_ENOMEM;
}

/* Kernels that were started may still use it. */
static void svm_free(Device *d, void *memory)
{
	opencl.Finish(d->queue);
	opencl.SVMFree(d->context, memory);
}

static bool svm_room(Device *d, size_t *left, size_t *all)
{
	*all = info_number(d->platform, INFO_MEMORY);
	*left = *all;
	for (int i = 0; i < MEMORY_USES; i++)
		*left -= d->held[i] < *left ? d->held[i] : *left;
	return *all > 0;
}

static int svm_copy(Device *d, CopyWay way, void *to, const void *from, size_t bytes, Error *err)
{
	static const char *const what[] = {[COPY_IN] = "copying to the device",
					   [COPY_OUT] = "copying from the device",
					   [COPY_WITHIN] = "copying on the device"};
	return opencl_call(opencl.EnqueueSVMMemcpy(d->queue, way != COPY_WITHIN, to, from, bytes, 0,
						   NULL, NULL),
			   what[way], err);
}

static int svm_zero(Device *d, void *to, size_t bytes, Error *err)
{
	static const char zero;
	return opencl_call(opencl.EnqueueSVMMemFill(d->queue, to, &zero, 1, bytes, 0, NULL, NULL),
			   "filling memory", err);
}

/* ---- kernels */

static int program_load(Device *d, Binary *b, Error *err)
{
	const unsigned char *bytes = (const unsigned char *)b->bytes;
	int status = 0, own = 0;
	void *p = opencl.CreateProgramWithBinary(d->context, 1, &d->platform, &b->size, &bytes,
						 &own, &status);
	if (!status)
		status = own ? own : opencl.BuildProgram(p, 1, &d->platform, "", NULL, NULL);
	if (status && p)
		opencl.ReleaseProgram(p);
	b->loaded = status ? NULL : p;
	return opencl_call(status, "loading a kernel", err);
}

static int function_find(Device *d, Binary *b, int phase, Error *err)
{
	char name[32];
	int status = 0, code = b->loaded ? 0 : program_load(d, b, err);
	if (code || b->function[phase])
		return code;
	b->device = d;
	phase_name(phase, name);
	b->function[phase] = opencl.CreateKernel(b->loaded, name, &status);
	return opencl_call(status, "finding a kernel", err);
}

static int arguments_set(void *function, const Arguments *a)
{
	int status = 0;
	for (int i = 0; i < a->npointer && !status; i++)
		status = opencl.SetKernelArgSVMPointer(function, (unsigned)i, a->pointer[i]);
	return status ? status
		      : opencl.SetKernelArg(function, (unsigned)a->npointer, sizeof a->seed,
					    &a->seed);
}

static int opencl_load(Device *d, const Kernel *k, int phase, Error *err)
{
	return function_find(d, k->module, phase, err);
}

/* Memory of a block is in the kernel's text. */
static int opencl_launch(Device *d, const Kernel *k, int phase, const Arguments *a, Error *err)
{
	const Binary *b = k->module;
	const KernelGrid g = kernel_grid(k, phase);
	size_t all[3], block[3];
	for (int i = 0; i < 3; i++) {
		block[i] = g.threads[i];
		all[i] = (size_t)g.blocks[i] * g.threads[i];
	}
	int status = arguments_set(b->function[phase], a);
	if (!status)
		status = opencl.EnqueueNDRangeKernel(d->queue, b->function[phase], 3, NULL, all,
						     block, 0, NULL, NULL);
	return opencl_call(status, "starting a kernel", err);
}

static void opencl_unload(Binary *b)
{
	for (int i = 0; i < KERNEL_PHASES; i++)
		if (b->function[i])
			opencl.ReleaseKernel(b->function[i]);
	opencl.ReleaseProgram(b->loaded);
}

/* ---- marks */

static int opencl_mark(Device *d, void **mark, Error *err)
{
	*mark = NULL;
	return opencl_call(opencl.EnqueueMarkerWithWaitList(d->queue, 0, NULL, mark),
			   "setting a marker", err);
}

static int opencl_reach(Device *d, void *mark, Error *err)
{
	(void)d;
	return opencl_call(opencl.WaitForEvents(1, &mark), "a kernel", err);
}

static int opencl_between(Device *d, void *from, void *to, double *seconds, Error *err)
{
	uint64_t begin = 0, end = 0; /* nanoseconds */
	int status = opencl.GetEventProfilingInfo(from, PROFILED_END, sizeof begin, &begin, NULL);
	(void)d;
	if (!status)
		status = opencl.GetEventProfilingInfo(to, PROFILED_END, sizeof end, &end, NULL);
	*seconds = 1e-9 * (double)(end - begin);
	return opencl_call(status, "timing a kernel", err);
}

static void opencl_unmark(Device *d, void *mark)
{
	(void)d;
	opencl.ReleaseEvent(mark);
}

const DeviceKind device_opencl = {
	.name = "opencl",
	.backend = "opencl",
	.model = {.pd = 2e11,
		  .pc = 2e12,
		  .launch = 1e-5,
		  .pd_far = 2e11,
		  .pd_core = 8e11,
		  .core = 32 << 10,
		  .threads = 32},
	.pooled = true,
	.count = opencl_count,
	.describe = opencl_describe,
	.open = opencl_open,
	.alloc = svm_alloc,
	.free = svm_free,
	.room = svm_room,
	.copy = svm_copy,
	.zero = svm_zero,
	.launch = opencl_launch,
	.load = opencl_load,
	.unload = opencl_unload,
	.mark = opencl_mark,
	.reach = opencl_reach,
	.between = opencl_between,
	.unmark = opencl_unmark,
};

/* opencl.c - OpenCL C text to code, by the compiler of the device's driver.
 *
 * Input: sources that define __kernel kernel_0(buffers.., step_at, seed), one work item a part, and a
 * function for each further phase. Output: programs, ready to run on the kernel's device
 * (jit/device/opencl.c), and their binaries, which are kept.
 */
#include "jit/backend/backend.h"
#include "jit/device/device.h"

#include <string.h>

enum { BUILD_LOG = 0x1183, BINARY_SIZES = 0x1165, BINARIES = 0x1166 };
enum { CONFIG_SINGLE = 0x101b, CORRECTLY_ROUNDED = 1 << 7 };

static bool opencl_available(char *why, size_t n)
{
	return device_opencl.count(why, n) > 0;
}

static char version[200];
static pthread_once_t version_once = PTHREAD_ONCE_INIT;

static void version_make(void)
{
	Text t = {0};
	if (!device_opencl.describe(0, &t, NULL) && !t.failed)
		snprintf(version, sizeof version, "%s", t.s);
	text_free(&t);
}

static char *opencl_version(void)
{
	pthread_once(&version_once, version_make);
	return version;
}

static int program_refused(const Device *d, void *program, Error *err)
{
	size_t n = 0;
	char *log = opencl.GetProgramBuildInfo(program, d->platform, BUILD_LOG, 0, NULL, &n) || !n
			    ? NULL
			    : mem_alloc(n + 1);
	if (log) {
		log[n] = 0;
		opencl.GetProgramBuildInfo(program, d->platform, BUILD_LOG, n, log, NULL);
	}
	error_set(err, RICCI_ECOMPILE, "OpenCL refuses a kernel:\n%s",
		  log ? log : "it said nothing");
	mem_free(log);
	return RICCI_ECOMPILE;
}

static Binary *program_binary(void *program, Error *err)
{
	size_t n = 0;
	int status = opencl.GetProgramInfo(program, BINARY_SIZES, sizeof n, &n, NULL);
	Binary *b = status || !n ? NULL : binary_new(&device_opencl, n, err);
	char *bytes = b ? b->bytes : NULL;
	if (b)
		status = opencl.GetProgramInfo(program, BINARIES, sizeof bytes, &bytes, NULL);
	if (b && status) {
		binary_release(b);
		b = NULL;
	}
	if (!b)
		error_set(err, RICCI_ECOMPILE, "OpenCL made no code (error %d)", status);
	return b;
}

/* Division and roots are rounded as on the processor, where the device can. */
static const char *build_options(const Device *d)
{
	uint64_t config = 0;
	opencl.GetDeviceInfo(d->platform, CONFIG_SINGLE, sizeof config, &config, NULL);
	return config & CORRECTLY_ROUNDED ? "-cl-fp32-correctly-rounded-divide-sqrt" : "";
}

static int opencl_one(Kernel *k, Error *err)
{
	const char *source = k->source;
	Device *d = device_open(&device_opencl, k->device, err);
	int status = 0;
	void *program =
		d ? opencl.CreateProgramWithSource(d->context, 1, &source, NULL, &status) : NULL;
	if (!d)
		return RICCI_ECOMPILE;
	if (status)
		return opencl_error(status, "making a program", RICCI_ECOMPILE, err);
	Binary *b = NULL;
	if (opencl.BuildProgram(program, 1, &d->platform, build_options(d), NULL, NULL))
		program_refused(d, program, err);
	else
		b = program_binary(program, err);
	if (!b) {
		opencl.ReleaseProgram(program);
		return RICCI_ECOMPILE;
	}
	b->loaded = program;
	b->device = d;
	k->module = b;
	k->run = device_run;
	return 0;
}

static int opencl_compile(const Backend *b, int n, Kernel **kernels, Text *object, Error *err)
{
	(void)b;
	return binaries_make(n, kernels, opencl_one, object, err);
}

static int opencl_load(const Backend *b, int n, Kernel **kernels, const void *object, size_t size,
		       Error *err)
{
	(void)b;
	return binary_unpack(&device_opencl, n, kernels, object, size, err);
}

const Backend backend_opencl = {
	.name = "opencl",
	.available = opencl_available,
	.compile = opencl_compile,
	.load = opencl_load,
	.release = binary_release,
	.version = opencl_version,
};

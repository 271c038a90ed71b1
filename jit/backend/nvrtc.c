/* nvrtc.c - CUDA C text to code for NVIDIA's GPUs.
 *
 * Input: sources that define extern "C" __global__ kernel_0(buffers.., step_at, seed), one thread a
 * part, and a function for each further phase. Output: cubins, which jit/device/cuda.c loads and
 * runs. NVRTC is opened at run time and needs no driver.
 */
#include "jit/backend/backend.h"
#include "jit/device/device.h"
#include "jit/library/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static struct {
	void *library;
	int major, minor;
	unsigned generation; /* of forks: the library has threads of its own */
	char why[256], version[64];
#define NVRTC(name, parameters) int(*name) parameters;
#include "jit/backend/nvrtc_api.def"
#undef NVRTC
} nvrtc;
static pthread_once_t nvrtc_once = PTHREAD_ONCE_INIT;

/* ---- opening the library */

static void nvrtc_open(void)
{
	static const char *const name[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
	nvrtc.generation = fork_generation();
	bool all = (nvrtc.library = cuda_library(name));
#define NVRTC(name, parameters) all = all && (nvrtc.name = dlsym(nvrtc.library, #name));
#include "jit/backend/nvrtc_api.def"
#undef NVRTC
	if (!all) {
		nvrtc.library = NULL;
		message_print(
			nvrtc.why, sizeof nvrtc.why,
			"libnvrtc.so is neither in $RICCI_CUDA/lib64, /usr/local/cuda/lib64 nor "
			"on the library path: it comes with NVIDIA's CUDA toolkit");
		return;
	}
	nvrtc.nvrtcVersion(&nvrtc.major, &nvrtc.minor);
	snprintf(nvrtc.version, sizeof nvrtc.version, "nvrtc %d.%d sm_%d", nvrtc.major, nvrtc.minor,
		 cuda_arch(0));
}

/* Why nothing can be compiled in this process; NULL: it can. */
static const char *nvrtc_refuses(void)
{
	pthread_once(&nvrtc_once, nvrtc_open);
	if (nvrtc.generation != fork_generation())
		return "it was opened before this process was forked";
	return nvrtc.library ? NULL : nvrtc.why;
}

static bool nvrtc_available(char *why, size_t n)
{
	const char *reason = nvrtc_refuses();
	if (reason)
		message_print(why, n, "%s", reason);
	return !reason && device_cuda.count(why, n) > 0;
}

static char *nvrtc_version(void)
{
	pthread_once(&nvrtc_once, nvrtc_open);
	return nvrtc.version;
}

static bool nvrtc_groups(void)
{
	return cuda_arch(0) == CUDA_ARCH_GROUPS;
}

/* ---- compiling */

static int program_refused(void *program, Error *err)
{
	size_t n = 0;
	char *log = nvrtc.nvrtcGetProgramLogSize(program, &n) || !n ? NULL : mem_alloc(n + 1);
	if (log) {
		log[n] = 0;
		nvrtc.nvrtcGetProgramLog(program, log);
	}
	error_set(err, RICCI_ECOMPILE, "nvrtc refuses a kernel:\n%s",
		  log ? log : "it said nothing");
	mem_free(log);
	return RICCI_ECOMPILE;
}

static Binary *program_cubin(void *program, int arch, Error *err)
{
	size_t n = 0;
	bool bad = nvrtc.nvrtcGetCUBINSize(program, &n) || !n;
	Binary *b = bad ? NULL : binary_new(&device_cuda, n, err);
	if (b && nvrtc.nvrtcGetCUBIN(program, b->bytes)) {
		binary_release(b);
		b = NULL;
		bad = true;
	}
	if (bad)
		error_set(err, RICCI_ECOMPILE, "nvrtc made no code for sm_%d", arch);
	return b;
}

static int nvrtc_one(Kernel *k, Error *err)
{
	char arch[32];
	int number = cuda_arch(k->device);
	cuda_arch_option(number, sizeof arch, arch);
	/* The text of the mathematics says nothing about host and device. */
	const char *option[] = {arch, "--std=c++17", "--device-as-default-execution-space"};
	void *program = NULL;
	if (kernel_codeless(k)) {
		k->module = binary_new(&device_cuda, 0, err);
		k->run = device_run;
		return k->module ? 0 : RICCI_ENOMEM;
	}
	if (nvrtc.nvrtcCreateProgram(&program, k->source, "kernel.cu", 0, NULL, NULL))
		return error_set(err, RICCI_ECOMPILE, "nvrtc does not work");
	Binary *b = NULL;
	if (nvrtc.nvrtcCompileProgram(program, COUNT(option), option))
		program_refused(program, err);
	else
		b = program_cubin(program, number, err);
	nvrtc.nvrtcDestroyProgram(&program);
	if (!b)
		return RICCI_ECOMPILE;
	k->module = b;
	k->run = device_run;
	return 0;
}

static int nvrtc_compile(const Backend *b, int n, Kernel **kernels, Text *object, Error *err)
{
	const char *reason = nvrtc_refuses();
	(void)b;
	if (reason)
		return error_set(err, RICCI_ECOMPILE, "no CUDA compiler: %s", reason);
	return binaries_make(n, kernels, nvrtc_one, object, err);
}

static int nvrtc_load(const Backend *b, int n, Kernel **kernels, const void *object, size_t size,
		      Error *err)
{
	(void)b;
	return binary_unpack(&device_cuda, n, kernels, object, size, err);
}

const Backend backend_nvrtc = {
	.name = "nvrtc",
	.available = nvrtc_available,
	.compile = nvrtc_compile,
	.load = nvrtc_load,
	.release = binary_release,
	.version = nvrtc_version,
	.groups = nvrtc_groups,
};

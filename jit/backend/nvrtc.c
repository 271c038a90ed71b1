/* nvrtc.c - CUDA C text to code for NVIDIA's GPUs.
 *
 * Input: sources that define extern "C" __global__ kernel_0(buffers.., step_at, seed), one thread a
 * part, and a function for each further phase. Output: cubins, which jit/device/cuda.c loads and
 * runs. NVRTC is opened at run time and needs no driver; each text is compiled in a child.
 */
#include "jit/backend/backend.h"
#include "jit/backend/process.h"
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

typedef struct Source {
	const char *text;
	int arch;
} Source;

/* Each fills a text of n bytes. */
static int program_text(void *program, int (*size)(void *, size_t *), int (*get)(void *, char *),
			Text *out)
{
	size_t n = 0;
	char *text = size(program, &n) || !n ? NULL : mem_zalloc(n + 1);
	bool good = text && !get(program, text);
	if (good)
		text_put(out, text, n);
	mem_free(text);
	return !good;
}

/* In a child: NVRTC lets its threads wait for each other, and a crash ends no training. The code, or (status
 * REFUSED) what the compiler says. */
enum { REFUSED = 1, NO_CODE, NO_PROGRAM };
static int source_compile(void *user, Text *out)
{
	const Source *s = user;
	char room[CUDA_OPTION_ROOM];
	const char *option[CUDA_OPTIONS];
	void *program = NULL;
	cuda_options(s->arch, room, option);
	if (nvrtc.nvrtcCreateProgram(&program, s->text, "kernel.cu", 0, NULL, NULL))
		return NO_PROGRAM;
	if (!nvrtc.nvrtcCompileProgram(program, CUDA_OPTIONS, option))
		return program_text(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, out)
			       ? NO_CODE
			       : 0;
	if (program_text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, out))
		text_add(out, "it said nothing");
	return REFUSED;
}

static int nvrtc_one(Kernel *k, Error *err)
{
	Source source = {k->source, cuda_arch(k->device)};
	Text out = {0};
	if (kernel_codeless(k)) {
		k->module = binary_new(&device_cuda, 0, err);
		k->run = device_run;
		return k->module ? 0 : RICCI_ENOMEM;
	}
	int status = process_fork("nvrtc", source_compile, &source,
				  env_long("RICCI_CC_TIMEOUT", 120), &out, err);
	if (status == REFUSED)
		error_set(err, RICCI_ECOMPILE, "nvrtc refuses a kernel:\n%.*s", (int)out.n, out.s);
	else if (status == NO_CODE)
		error_set(err, RICCI_ECOMPILE, "nvrtc made no code for sm_%d", source.arch);
	else if (status == NO_PROGRAM)
		error_set(err, RICCI_ECOMPILE, "nvrtc does not work");
	Binary *b = status ? NULL : binary_new(&device_cuda, out.n, err);
	if (b) {
		memcpy(b->bytes, out.s, out.n);
		k->module = b;
		k->run = device_run;
	}
	text_free(&out);
	return b ? 0 : err->code;
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

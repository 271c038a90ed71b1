/* nvrtc.c - CUDA C text to code for NVIDIA's GPUs.
 *
 * Input: sources that define extern "C" __global__ kernel_0(buffers.., seed, step), one thread a
 * part. Output: cubins, loaded when they first run. Both libraries are opened at run time, so one
 * binary serves machines with and without them: compiling needs libnvrtc only, running a driver. A
 * run copies its buffers to the device and the results back.
 */
#include "jit/backend/backend.h"
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static struct {
	void *nvrtc, *driver, *context;
	int arch;	     /* 80: sm_80 */
	unsigned generation; /* of forks: a driver does not survive one */
	char why[256], version[64];
#define NVRTC(name, parameters)	       int(*name) parameters;
#define CUDA(name, symbol, parameters) int(*name) parameters;
#include "jit/backend/cuda_api.def"
#undef NVRTC
#undef CUDA
} cuda;
static pthread_once_t cuda_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t cuda_lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct CudaModule {
	void *module, *function[KERNEL_PHASES]; /* made by the first run */
	size_t size;
	char cubin[];
} CudaModule;

/* ---- opening the libraries */

static void *library_open(const char *const *name)
{
	const char *folder[] = {env_text("RICCI_CUDA", ""), "/usr/local/cuda", ""};
	for (int d = 0; d < COUNT(folder); d++)
		for (int i = 0; name[i] && (d || *folder[d]); i++) {
			char path[1024];
			snprintf(path, sizeof path, "%.900s%s%s", folder[d],
				 *folder[d] ? "/lib64/" : "", name[i]);
			void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
			if (library)
				return library;
		}
	return NULL;
}

static bool nvrtc_bind(void)
{
	static const char *const name[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
	cuda.nvrtc = library_open(name);
	bool all = cuda.nvrtc;
#define NVRTC(name, parameters) all = all && (cuda.name = dlsym(cuda.nvrtc, #name));
#include "jit/backend/cuda_api.def"
#undef NVRTC
	return all;
}

static bool driver_bind(void)
{
	static const char *const name[] = {"libcuda.so.1", NULL};
	cuda.driver = library_open(name);
	bool all = cuda.driver;
#define CUDA(name, symbol, parameters) all = all && (cuda.name = dlsym(cuda.driver, symbol));
#include "jit/backend/cuda_api.def"
#undef CUDA
	return all;
}

static void cuda_open(void)
{
	int device, major = 0, minor = 0;
	cuda.arch = 80;
	cuda.generation = fork_generation();
	if (!nvrtc_bind()) {
		cuda.nvrtc = NULL;
		message_print(
			cuda.why, sizeof cuda.why,
			"libnvrtc.so is neither in $RICCI_CUDA/lib64, /usr/local/cuda/lib64 nor "
			"on the library path");
		return;
	}
	cuda.nvrtcVersion(&major, &minor);
	if (!driver_bind())
		message_print(cuda.why, sizeof cuda.why, "no NVIDIA driver (libcuda.so.1)");
	else if (cuda.init(0) || cuda.device(&device, 0) || cuda.retain(&cuda.context, device))
		message_print(cuda.why, sizeof cuda.why, "the NVIDIA driver finds no device");
	else {
		enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };
		int a = 8, b = 0;
		cuda.attribute(&a, CAPABILITY_MAJOR, device);
		cuda.attribute(&b, CAPABILITY_MINOR, device);
		cuda.arch = a * 10 + b;
	}
	snprintf(cuda.version, sizeof cuda.version, "nvrtc %d.%d sm_%d", major, minor, cuda.arch);
}

/* Why nothing of CUDA may be called in this process; NULL: it may. */
static const char *cuda_forked(void)
{
	return cuda.generation == fork_generation()
		       ? NULL
		       : "it was opened before this process was forked";
}

static bool nvrtc_available(char *why, size_t n)
{
	pthread_once(&cuda_once, cuda_open);
	const char *reason = cuda_forked() ? cuda_forked() : cuda.why;
	if (*reason)
		message_print(why, n, "%s", reason);
	return !*reason;
}

static char *nvrtc_version(void)
{
	pthread_once(&cuda_once, cuda_open);
	return cuda.version;
}

/* ---- running */

static int driver_call(int status, const char *what, Error *err)
{
	return status ? error_set(err, RICCI_EUNSUPPORTED, "CUDA: %s failed with error %d", what,
				  status)
		      : 0;
}

static int functions_find(const Kernel *k, CudaModule *m, Error *err)
{
	int bad = 0;
	for (int phase = 0; phase < kernel_phases(k) && !bad; phase++) {
		char name[32];
		snprintf(name, sizeof name, phase ? "kernel_0_phase%d" : "kernel_0", phase);
		bad = driver_call(cuda.function(&m->function[phase], m->module, name),
				  "finding a kernel", err);
	}
	return bad;
}

static int module_open(const Kernel *k, Error *err)
{
	CudaModule *m = k->module;
	pthread_mutex_lock(&cuda_lock);
	int bad = driver_call(cuda.current(cuda.context), "choosing the device", err);
	if (!bad && !m->function[0]) {
		bad = driver_call(cuda.load(&m->module, m->cubin), "loading a kernel", err);
		if (!bad)
			bad = functions_find(k, m, err);
	}
	pthread_mutex_unlock(&cuda_lock);
	return bad;
}

static int buffers_run(const Kernel *k, void *const *buf, const KernelEnv *env, uint64_t *device,
		       void **argument)
{
	CudaModule *m = k->module;
	int bad = 0;
	uint64_t seed = env->seed, step = env->step;
	for (int i = 0; i < k->nbuf && !bad; i++) {
		bad = driver_call(cuda.alloc(&device[i], k->bytes[i]), "taking memory", env->err);
		/* Outputs too: a scatter or a partial write leaves elements as they were. */
		if (!bad)
			bad = driver_call(cuda.to_device(device[i], buf[i], k->bytes[i]),
					  "copying to the device", env->err);
		argument[i] = &device[i];
	}
	int n = k->nbuf;
	if (k->shape.shared && !bad) {
		bad = driver_call(cuda.alloc(&device[n], k->shape.shared), "taking memory",
				  env->err);
		argument[n] = &device[n];
		n++;
	}
	argument[n] = &seed;
	argument[n + 1] = &step;
	for (int phase = 0; phase < kernel_phases(k) && !bad; phase++) {
		const KernelGrid g = kernel_grid(k, phase);
		bad = driver_call(cuda.launch(m->function[phase], g.blocks[0], g.blocks[1],
					      g.blocks[2], g.threads[0], g.threads[1], g.threads[2],
					      (unsigned)g.block_memory, NULL, argument, NULL),
				  "starting a kernel", env->err);
	}
	if (!bad)
		bad = driver_call(cuda.finish(), "a kernel", env->err);
	for (int i = k->ninput; i < k->nbuf && !bad; i++)
		bad = driver_call(cuda.to_host(buf[i], device[i], k->bytes[i]),
				  "copying from the device", env->err);
	return bad;
}

/* The parts are threads of one grid, so the caller that has the first one runs them all. */
static void nvrtc_run(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	const Kernel *k = env->kernel;
	char why[256];
	if (begin != 0 || end <= begin)
		return;
	if (!nvrtc_available(why, sizeof why)) {
		error_set(env->err, RICCI_EUNSUPPORTED, "a CUDA kernel can't run: %s", why);
		return;
	}
	if (!k->bytes)
		error_set(env->err, RICCI_EINTERNAL,
			  "a CUDA kernel without the sizes of its buffers");
	if (!k->bytes || module_open(k, env->err))
		return;
	uint64_t *device = mem_zalloc((size_t)(k->nbuf + 1) * sizeof *device);
	void **argument = mem_zalloc((size_t)(k->nbuf + 3) * sizeof *argument);
	if (device && argument)
		buffers_run(k, buf, env, device, argument);
	else
		error_set(env->err, RICCI_ENOMEM, "out of memory");
	for (int i = 0; device && i <= k->nbuf; i++)
		if (device[i])
			cuda.free(device[i]);
	mem_free(device);
	mem_free(argument);
}

/* ---- compiling */

static int program_refused(void *program, Error *err)
{
	size_t n = 0;
	char *log = cuda.nvrtcGetProgramLogSize(program, &n) || !n ? NULL : mem_alloc(n + 1);
	if (log) {
		log[n] = 0;
		cuda.nvrtcGetProgramLog(program, log);
	}
	error_set(err, RICCI_ECOMPILE, "nvrtc refuses a kernel:\n%s",
		  log ? log : "it said nothing");
	mem_free(log);
	return RICCI_ECOMPILE;
}

static CudaModule *program_cubin(void *program, Error *err)
{
	size_t n = 0;
	if (cuda.nvrtcGetCUBINSize(program, &n) || !n) {
		error_set(err, RICCI_ECOMPILE, "nvrtc made no code for sm_%d", cuda.arch);
		return NULL;
	}
	CudaModule *m = mem_zalloc(sizeof *m + n);
	if (!m) {
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	m->size = n;
	if (cuda.nvrtcGetCUBIN(program, m->cubin)) {
		error_set(err, RICCI_ECOMPILE, "nvrtc made no code for sm_%d", cuda.arch);
		mem_free(m);
		return NULL;
	}
	return m;
}

static int nvrtc_one(Kernel *k, Error *err)
{
	char arch[32];
	snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d", cuda.arch);
	/* The text of the mathematics says nothing about host and device. */
	const char *option[] = {arch, "--std=c++17", "--device-as-default-execution-space"};
	void *program = NULL;
	if (cuda.nvrtcCreateProgram(&program, k->source, "kernel.cu", 0, NULL, NULL))
		return error_set(err, RICCI_ECOMPILE, "nvrtc does not work");
	CudaModule *m = NULL;
	if (cuda.nvrtcCompileProgram(program, COUNT(option), option))
		program_refused(program, err);
	else
		m = program_cubin(program, err);
	cuda.nvrtcDestroyProgram(&program);
	if (!m)
		return RICCI_ECOMPILE;
	k->module = m;
	k->run = nvrtc_run;
	return 0;
}

static void nvrtc_release(void *module)
{
	CudaModule *m = module;
	if (m && m->module && !cuda_forked())
		cuda.unload(m->module);
	mem_free(m);
}

static int nvrtc_compile(const Backend *b, int n, Kernel **kernels, Text *object, Error *err)
{
	(void)b, (void)object;
	pthread_once(&cuda_once, cuda_open);
	if (!cuda.nvrtc || cuda_forked())
		return error_set(err, RICCI_ECOMPILE, "no CUDA compiler: %s",
				 cuda_forked() ? cuda_forked() : cuda.why);
	int done = 0;
	while (done < n && !nvrtc_one(kernels[done], err))
		done++;
	if (done == n)
		return 0;
	for (int i = 0; i < done; i++) {
		nvrtc_release(kernels[i]->module);
		kernels[i]->module = NULL;
		kernels[i]->run = NULL;
	}
	return RICCI_ECOMPILE;
}

const Backend backend_nvrtc = {
	.name = "nvrtc",
	.available = nvrtc_available,
	.compile = nvrtc_compile,
	.release = nvrtc_release,
	.version = nvrtc_version,
};

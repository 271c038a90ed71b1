/* gpu_kernels.c - what kernels for a grid reach on an NVIDIA GPU, by themselves: no copies, no session.
 *
 * usage: gpu_kernels [--seconds S] [--offers N] [--schedule TEXT]... [--text] [EQUATIONS OPERAND...]
 *
 * Without equations: a product of matrices, a convolution, a capsule convolution, a softmax, sums of rows and of
 * columns, elementwise ones. Of each kernel every offered schedule (N at most) is made by NVRTC and launched
 * again and again on the device's memory, S seconds (0.2). A line of each: microseconds, GFLOP/s and GB/s (each
 * tensor once), the largest difference from the first schedule's results (of what is largest in them), the
 * schedule. --schedule adds this one to those that are offered. --text prints the sources. Without a driver or a
 * device it says so and ends with 0.
 */
#include "core/core.h"
#include "jit/device/device.h"
#include "jit/jit.h"

#include <dlfcn.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OFFERS = 12, OPERANDS = 8, RESULTS = 8, BUFFERS = 64 };
enum {
	UNITS = 16,
	MAJOR = 75,
	MINOR = 76,
	BLOCK_MEMORY = 8
}; /* attributes of a device, a function */

/* What is called of both libraries; all return 0 for success. */
#define COMPILER(X)                                                                                \
	X(nvrtcCreateProgram,                                                                      \
	  (void **, const char *, const char *, int, const char *const *, const char *const *))    \
	X(nvrtcCompileProgram, (void *, int, const char *const *))                                 \
	X(nvrtcDestroyProgram, (void **))                                                          \
	X(nvrtcGetCUBINSize, (void *, size_t *))                                                   \
	X(nvrtcGetCUBIN, (void *, char *))
#define DRIVER(X)                                                                                  \
	X(cuInit, (unsigned))                                                                      \
	X(cuDeviceGet, (int *, int))                                                               \
	X(cuDeviceGetAttribute, (int *, int, int))                                                 \
	X(cuDevicePrimaryCtxRetain, (void **, int))                                                \
	X(cuCtxSetCurrent, (void *))                                                               \
	X(cuModuleLoadData, (void **, const void *))                                               \
	X(cuModuleUnload, (void *))                                                                \
	X(cuModuleGetFunction, (void **, void *, const char *))                                    \
	X(cuFuncSetAttribute, (void *, int, int))                                                  \
	X(cuMemAlloc_v2, (uint64_t *, size_t))                                                     \
	X(cuMemFree_v2, (uint64_t))                                                                \
	X(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t))                                       \
	X(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                             \
	X(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,     \
			   unsigned, void *, void **, void **))                                    \
	X(cuCtxSynchronize, (void))
static struct {
	void *context;
	int arch;
#define CALL(name, parameters) int(*name) parameters;
	COMPILER(CALL) DRIVER(CALL)
#undef CALL
} cuda;

typedef struct Options {
	double seconds;
	int offers, nschedule;
	const char *schedule[OFFERS];
	bool text;
} Options;

/* A kernel on the device. */
typedef struct Loaded {
	Kernel *kernel;
	void *module, *function[KERNEL_PHASES];
	uint64_t shared;
} Loaded;

static void *open_first(const char *const *name)
{
	void *library = NULL;
	for (; *name && !library; name++)
		library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
	return library;
}

/* Why there is none; NULL: there is. */
static const char *cuda_open(Target *target)
{
	static const char *const compiler[] = {"libnvrtc.so.13",
					       "libnvrtc.so.12",
					       "libnvrtc.so",
					       "/usr/local/cuda/lib64/libnvrtc.so.13",
					       "/usr/local/cuda/lib64/libnvrtc.so.12",
					       "/usr/local/cuda/lib64/libnvrtc.so",
					       NULL};
	static const char *const driver[] = {"libcuda.so.1", NULL};
	void *nvrtc = open_first(compiler), *lib = open_first(driver);
	int device, major = 0, minor = 0, units = 0;
	if (!nvrtc)
		return "no NVRTC";
	if (!lib)
		return "no NVIDIA driver";
	bool all = true;
#define CALL(name, parameters) all = (cuda.name = dlsym(lib, #name)) && all;
	DRIVER(CALL)
#undef CALL
#define CALL(name, parameters) all = (cuda.name = dlsym(nvrtc, #name)) && all;
	COMPILER(CALL)
#undef CALL
	if (!all)
		return "the NVIDIA driver or NVRTC is too old";
	if (cuda.cuInit(0) || cuda.cuDeviceGet(&device, 0) ||
	    cuda.cuDevicePrimaryCtxRetain(&cuda.context, device) ||
	    cuda.cuCtxSetCurrent(cuda.context))
		return "the NVIDIA driver finds no device";
	cuda.cuDeviceGetAttribute(&major, MAJOR, device);
	cuda.cuDeviceGetAttribute(&minor, MINOR, device);
	cuda.cuDeviceGetAttribute(&units, UNITS, device);
	cuda.arch = 10 * major + minor;
	target->units = units > 0 ? units : target->units;
	printf("sm_%d, %d multiprocessors\n", cuda.arch, target->units);
	return NULL;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- a kernel ---- */

static bool load(Loaded *l)
{
	char room[CUDA_OPTION_ROOM], name[40];
	const char *option[CUDA_OPTIONS];
	cuda_options(cuda.arch, room, option);
	void *program = NULL;
	size_t n = 0;
	if (cuda.nvrtcCreateProgram(&program, l->kernel->source, "kernel.cu", 0, NULL, NULL))
		return false;
	bool good = !cuda.nvrtcCompileProgram(program, CUDA_OPTIONS, option) &&
		    !cuda.nvrtcGetCUBINSize(program, &n);
	char *cubin = good ? malloc(n) : NULL;
	good = cubin && !cuda.nvrtcGetCUBIN(program, cubin) &&
	       !cuda.cuModuleLoadData(&l->module, cubin);
	for (int k = 0; good && k < kernel_phases(l->kernel); k++) {
		snprintf(name, sizeof name, k ? "kernel_0_phase%d" : "kernel_0", k);
		good = !cuda.cuModuleGetFunction(&l->function[k], l->module, name) &&
		       (!l->kernel->shape.block ||
			!cuda.cuFuncSetAttribute(l->function[k], BLOCK_MEMORY,
						 (int)l->kernel->shape.block));
	}
	free(cubin);
	cuda.nvrtcDestroyProgram(&program);
	size_t shared = l->kernel->shape.shared;
	return good && (!shared || !cuda.cuMemAlloc_v2(&l->shared, shared));
}

static void unload(Loaded *l)
{
	if (l->shared)
		cuda.cuMemFree_v2(l->shared);
	if (l->module)
		cuda.cuModuleUnload(l->module);
	kernel_unref(l->kernel);
}

/* Starts all phases. */
static bool launch(Loaded *l, uint64_t *buffer)
{
	void *argument[BUFFERS + 3];
	uint64_t seed = 7, step = 3;
	int n = 0;
	for (; n < l->kernel->nbuf; n++)
		argument[n] = &buffer[n];
	if (l->shared)
		argument[n++] = &l->shared;
	argument[n++] = &seed;
	argument[n] = &step;
	for (int k = 0; k < kernel_phases(l->kernel); k++) {
		KernelGrid g = kernel_grid(l->kernel, k);
		if (cuda.cuLaunchKernel(l->function[k], g.blocks[0], g.blocks[1], g.blocks[2],
					g.threads[0], g.threads[1], g.threads[2],
					(unsigned)g.block_memory, NULL, argument, NULL))
			return false;
	}
	return true;
}

/* The least mean of a few runs of many launches; INFINITY: it failed. */
static double seconds_of(Loaded *l, uint64_t *buffer, double seconds)
{
	enum { RUNS = 5 };
	double best = INFINITY;
	if (!launch(l, buffer) || cuda.cuCtxSynchronize())
		return best;
	double start = now();
	if (!launch(l, buffer) || cuda.cuCtxSynchronize())
		return best;
	int each = (int)(seconds / RUNS / (now() - start)) + 1;
	each = each < 2000 ? each : 2000;
	for (int r = 0; r < RUNS; r++) {
		start = now();
		for (int k = 0; k < each; k++)
			if (!launch(l, buffer))
				return INFINITY;
		if (cuda.cuCtxSynchronize())
			return INFINITY;
		best = fmin(best, (now() - start) / each);
	}
	return best;
}

/* ---- a task ---- */

static void *random_data(const Node *t)
{
	static uint64_t state = 1;
	int64_t n = tensor_size(t);
	char *data = malloc(tensor_bytes(t));
	for (int64_t i = 0; data && i < n; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		double r = (double)(state >> 11) * 0x1p-53;
		if (type_is_float(t->type))
			type_store(t->type, data, (size_t)i, 2 * r - 1);
		else
			type_store_int(t->type, data, (size_t)i, (int64_t)(r * 2));
	}
	return data;
}

static uint64_t buffer_new(const Node *t, bool filled)
{
	uint64_t at = 0;
	void *data = filled ? random_data(t) : calloc(tensor_bytes(t), 1);
	if (!data || cuda.cuMemAlloc_v2(&at, tensor_bytes(t)) ||
	    cuda.cuMemcpyHtoD_v2(at, data, tensor_bytes(t))) {
		fprintf(stderr, "gpu_kernels: no memory for %zu bytes\n", tensor_bytes(t));
		exit(1);
	}
	free(data);
	return at;
}

/* The first result, as numbers. */
static double *result_of(const Node *t, uint64_t at)
{
	size_t n = (size_t)tensor_size(t);
	char *data = malloc(tensor_bytes(t));
	double *out = malloc(n * sizeof *out);
	if (data && out && !cuda.cuMemcpyDtoH_v2(data, at, tensor_bytes(t)))
		for (size_t i = 0; i < n; i++)
			out[i] = type_is_float(t->type) ? type_load(t->type, data, i)
							: (double)type_load_int(t->type, data, i);
	free(data);
	return out;
}

static double difference(const double *a, const double *b, int64_t n)
{
	double most = 0, large = 1e-30;
	for (int64_t i = 0; a && b && i < n; i++) {
		most = a[i] == b[i] ? most : fmax(most, fabs(a[i] - b[i]));
		most = isnan(a[i]) || isnan(b[i]) ? INFINITY : most;
		large = fmax(large, fabs(b[i]));
	}
	return most / large;
}

static void print_line(const Task *t, const Kernel *k, double seconds, double off)
{
	Text s = {0};
	schedule_print(&s, &k->schedule);
	printf("%10.1f us %9.1f GFLOP/s %8.1f GB/s  off %.1e  %s\n", 1e6 * seconds,
	       1e-9 * t->flops / seconds, 1e-9 * t->bytes / seconds, off, s.s ? s.s : "");
	fflush(stdout);
	text_free(&s);
}

static void bench_offer(const Task *t, const Schedule *s, const Target *target, uint64_t *buffer,
			const Node *result, double **want, const Options *o)
{
	Error err = {0};
	Loaded l = {.kernel = kernel_lower(t, s, backend_find("nvrtc"), target, &err)};
	if (l.kernel && o->text)
		printf("%s\n", l.kernel->source);
	if (l.kernel && kernel_codeless(l.kernel)) {
		printf("   left to a library, which sessions call\n");
	} else if (!l.kernel || !load(&l)) {
		printf("   can't be made: %s\n", err.text);
	} else {
		double seconds = seconds_of(&l, buffer, o->seconds);
		double *got = result_of(result, buffer[t->sub.ninput]);
		if (!*want)
			*want = got;
		print_line(t, l.kernel, seconds, difference(got, *want, tensor_size(result)));
		if (got != *want)
			free(got);
	}
	if (l.kernel)
		unload(&l);
}

static void bench_task(const Subgraph *sub, const Target *target, const Options *o)
{
	Error err = {0};
	Schedule offer[OFFERS];
	uint64_t buffer[BUFFERS];
	const Node *result = NULL;
	double *want = NULL;
	int n = 0;
	Task *t = task_new(sub, &err);
	if (!t || t->sub.ninput + t->sub.nmember > BUFFERS) {
		printf("no task: %s\n", err.text);
		task_free(t);
		return;
	}
	printf("%s", strstr(t->text, "input "));
	for (; n < t->sub.ninput; n++)
		buffer[n] = buffer_new(t->sub.input[n], true);
	for (int k = 0; k < t->sub.nmember; k++)
		if (t->sub.stored[k]) {
			result = result ? result : t->sub.member[k];
			buffer[n++] = buffer_new(t->sub.member[k], false);
		}
	int noffer = schedule_offers(t, target, o->offers, offer);
	for (int k = 0; k < noffer; k++)
		bench_offer(t, &offer[k], target, buffer, result, &want, o);
	for (int k = 0; k < o->nschedule; k++)
		if (!schedule_parse(o->schedule[k], &offer[0], &err))
			bench_offer(t, &offer[0], target, buffer, result, &want, o);
		else
			printf("%s\n", err.text);
	while (n > 0)
		cuda.cuMemFree_v2(buffer[--n]);
	free(want);
	task_free(t);
}

/* Operands are NAME=SHAPE:TYPE. */
static Node *operand(Ir *ir, const char *s)
{
	char name[32], type[8] = "f32";
	int64_t shape[RICCI_MAX_RANK];
	int rank = 0;
	Type t;
	snprintf(name, sizeof name, "%.*s", (int)strcspn(s, "="), s);
	s += strcspn(s, "=");
	while ((*s == '=' || *s == 'x') && rank < RICCI_MAX_RANK) {
		char *end;
		shape[rank++] = strtoll(s + 1, &end, 10);
		s = end;
	}
	if (*s == ':')
		snprintf(type, sizeof type, "%s", s + 1);
	if (*s && (*s != ':' || !type_parse(type, &t)))
		return NULL;
	return node_input(ir, name, *s ? t : RICCI_F32, rank, shape);
}

static int bench_in(Ir *ir, const char *text, int n, char *const *operands, const Target *target,
		    const Options *o)
{
	Node *in[OPERANDS], *result[RESULTS];
	Subgraph *sub;
	int nresult = 0, nsub = 0;
	IR_ENTER(ir, 1);
	for (int k = 0; k < n; k++)
		in[k] = operand(ir, operands[k]);
	int code = notation_elaborate(ir, text, n, in, &nresult, result, RESULTS);
	if (!code)
		code = rewrite_graph(ir, nresult, result);
	if (!code)
		code = fuse_partition(ir, nresult, result, &device_cuda.model, &nsub, &sub);
	IR_LEAVE(ir);
	if (code)
		fprintf(stderr, "gpu_kernels: %s\n", ir->err.text);
	for (int k = 0; !code && k < nsub; k++)
		bench_task(&sub[k], target, o);
	return code != 0;
}

static int bench(const char *text, int n, char *const *operands, const Target *target,
		 const Options *o)
{
	Ir ir;
	ir_init(&ir);
	printf("\n%s\n", text);
	int code = bench_in(&ir, text, n, operands, target, o);
	ir_free(&ir);
	return code;
}

static const struct {
	const char *text, *operand[3];
} cases[] = {
	{"Y[i,j] += A[i,k]*B[k,j]", {"A=4096x4096", "B=4096x4096"}},
	{"Y[i,j] += A[i,k]*B[j,k]", {"A=1024x1024", "B=1024x1024"}},
	{"Y[i,j] += A[i,k]*B[k,j]", {"A=64x16384", "B=16384x64"}},
	{"Y[i,j] += A[i,k]*B[k,j]", {"A=4096x4096:bf16", "B=4096x4096:bf16"}},
	{"Y[i,j] += tf32(A[i,k])*tf32(B[k,j])", {"A=4096x4096", "B=4096x4096"}},
	{"Y[b,k,p,q] += (X[b,c,p+r-1,q+s-1] else 0)*W[k,c,r,s] where p<28, q<28",
	 {"X=64x256x28x28", "W=256x256x3x3"}},
	{"V[b,k,p,q,i,j] += P[b,c,2*p+r,2*q+s,i,t]*W[k,c,r,s,t,j]",
	 {"P=8x32x29x29x4x4", "W=32x32x3x3x4x4"}},
	{"m[i] max= X[i,j]; e[i,j] = exp(X[i,j]-m[i]); s[i] += e[i,j]; Y[i,j] = e[i,j]/s[i]",
	 {"X=8192x1024"}},
	{"c[j] += X[i,j]", {"X=8192x1024"}},
	{"s[i] += X[i,j]", {"X=8192x1024"}},
	{"s[] += X[i,j]*X[i,j]", {"X=8192x8192"}},
	{"Y[i] = A[i]*2 + B[i]", {"A=67108864", "B=67108864"}},
	{"Y[i,j] = X[j,i]", {"X=8192x8192"}},
	{"Y[n,c,p,q] = X[n,p,q,c]", {"X=64x56x56x256:bf16"}},
	{"Y[n,c,p,q] max= (X[n,c,2*p+r-1,2*q+s-1] else -inf) where p<56, q<56, r<3, s<3",
	 {"X=64x64x112x112"}},
};

int main(int argc, char **argv)
{
	static const struct option option[] = {{"seconds", required_argument, 0, 's'},
					       {"offers", required_argument, 0, 'o'},
					       {"schedule", required_argument, 0, 'x'},
					       {"text", no_argument, 0, 't'},
					       {0}};
	Options o = {.seconds = 0.2, .offers = 4};
	Target target = *backend_target(backend_find("nvrtc"));
	int code = 0;
	for (int c; (c = getopt_long(argc, argv, "", option, NULL)) != -1;)
		if (c == 's')
			o.seconds = atof(optarg);
		else if (c == 'o')
			o.offers = atoi(optarg) < OFFERS ? atoi(optarg) : OFFERS;
		else if (c == 'x' && o.nschedule < OFFERS)
			o.schedule[o.nschedule++] = optarg;
		else if (c == 't')
			o.text = true;
		else
			return 2;
	const char *why = cuda_open(&target);
	if (why) {
		printf("gpu_kernels: skipped: %s\n", why);
		return 0;
	}
	if (argc - optind > OPERANDS + 1)
		return 2;
	if (optind < argc)
		return bench(argv[optind], argc - optind - 1, argv + optind + 1, &target, &o);
	for (int k = 0; k < COUNT(cases); k++) {
		char *const *operands = (char *const *)cases[k].operand;
		int n = 0;
		while (n < COUNT(cases[k].operand) && operands[n])
			n++;
		code |= bench(cases[k].text, n, operands, &target, &o);
	}
	return code;
}

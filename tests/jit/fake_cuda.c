/* fake_cuda.c - stands for NVRTC and NVIDIA's driver on machines without them, for tests.
 *
 * Compiles CUDA C with the system's C compiler (threadIdx and the rest are variables) and runs the
 * threads of a grid one after another. Memory of the device is separate from the host's, poisoned
 * and fenced. Input: the calls of nvrtc_api.def and cuda_api.def. Output: what they say they do, or error
 * 1; the call named by $FAKE_CUDA_FAIL fails ("launch:3": the third of it and all later ones). Invariant: fake_cuda_live() counts what is still
 * taken. Error 2 means that there is no memory, as the driver has it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FENCE = 64, FENCED = 0x5a };

typedef struct Cubin {
	size_t size; /* of the shared library */
	char code[];
} Cubin;

typedef struct Program {
	char folder[32], *source, log[2000];
	Cubin *cubin;
} Program;

typedef struct Memory {
	struct Memory *next;
	size_t size;
	unsigned char before[FENCE], data[];
} Memory;

static int live;
static Memory *memories;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, running = PTHREAD_MUTEX_INITIALIZER;

int fake_cuda_live(void)
{
	return live;
}

static int fails(const char *call)
{
	static char now[64]; /* what is counted */
	static int count;
	const char *which = getenv("FAKE_CUDA_FAIL");
	size_t n = strlen(call);
	int failing = 0;
	pthread_mutex_lock(&lock);
	if (!which || strcmp(which, now)) {
		snprintf(now, sizeof now, "%s", which ? which : "");
		count = 0;
	}
	if (which && !strncmp(which, call, n) && (!which[n] || which[n] == ':'))
		failing = ++count >= (which[n] ? atoi(which + n + 1) : 1);
	pthread_mutex_unlock(&lock);
	return failing;
}

/* ---- the compiler: a cubin holds a shared library */

static const char shim[] =
	"#include <math.h>\n#include <string.h>\n"
	"static struct { unsigned x; } threadIdx, blockIdx, blockDim;\n"
	"#define __global__\n#define __device__\n"
	"static float __int_as_float(int i) { float f; memcpy(&f, &i, 4); return f; }\n";

int nvrtcVersion(int *major, int *minor)
{
	*major = *minor = 0;
	return 0;
}

int nvrtcCreateProgram(void **out, const char *source, const char *name, int nheader,
		       const char *const *headers, const char *const *names)
{
	(void)name, (void)nheader, (void)headers, (void)names;
	Program *p = calloc(1, sizeof *p);
	if (!p || fails("create")) {
		free(p);
		return 1;
	}
	strcpy(p->folder, "/tmp/fake-cuda-XXXXXX");
	p->source = strdup(source);
	*out = p;
	__atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
	return !p->source || !mkdtemp(p->folder);
}

int nvrtcDestroyProgram(void **program)
{
	Program *p = *program;
	rmdir(p->folder);
	free(p->source);
	free(p->cubin);
	free(p);
	__atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
	return 0;
}

/* What runs the grid of the function `name`: the last two parameters are integers, the others pointers. */
static void launcher_write(FILE *f, const char *name, int length)
{
	const char *s = name;
	int n = 1;
	for (; *s && *s != ')'; s++)
		n += *s == ',';
	fprintf(f,
		"void fake_%.*s(void **a, unsigned blocks, unsigned threads) {\n"
		"blockDim.x = threads;\n"
		"for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)\n"
		"for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++)\n%.*s(",
		length, name, length, name);
	for (int k = 0; k < n - 2; k++)
		fprintf(f, "*(void **)a[%d], ", k);
	fprintf(f, "*(uint64_t *)a[%d], *(uint64_t *)a[%d]);\n}\n", n - 2, n - 1);
}

static void launchers_write(FILE *f, const char *source)
{
	const char *function = "__global__ void ";
	for (const char *s = source; (s = strstr(s, function));) {
		s += strlen(function);
		launcher_write(f, s, (int)strcspn(s, "("));
	}
}

static int source_write(const Program *p, const char *path)
{
	FILE *f = fopen(path, "w");
	if (!f)
		return 1;
	fputs(shim, f);
	const char *linkage = "extern \"C\"", *s = p->source, *next;
	for (; (next = strstr(s, linkage)); s = next + strlen(linkage))
		fwrite(s, 1, (size_t)(next - s), f);
	fputs(s, f);
	launchers_write(f, p->source);
	return fclose(f);
}

static Cubin *library_read(const char *path)
{
	Cubin *c = NULL;
	FILE *f = fopen(path, "rb");
	if (f && !fseek(f, 0, SEEK_END)) {
		long n = ftell(f);
		rewind(f);
		c = malloc(sizeof *c + (size_t)n);
		if (c)
			c->size = fread(c->code, 1, (size_t)n, f);
	}
	if (f)
		fclose(f);
	return c;
}

static int command_run(const char *command, Program *p)
{
	FILE *f = popen(command, "r");
	if (!f)
		return 1;
	p->log[fread(p->log, 1, sizeof p->log - 1, f)] = 0;
	return pclose(f);
}

int nvrtcCompileProgram(void *program, int noption, const char *const *options)
{
	Program *p = program;
	char command[300], source[64], library[64];
	const char *cc = getenv("CC");
	if (noption < 1 || strcmp(options[0], "--gpu-architecture=sm_90"))
		return 1;
	if (fails("compile"))
		return strcpy(p->log, "the fake does not like it") == NULL || 1;
	snprintf(source, sizeof source, "%s/k.c", p->folder);
	snprintf(library, sizeof library, "%s/k.so", p->folder);
	snprintf(command, sizeof command, "%s -w -shared -fPIC -o %s %s -lm 2>&1",
		 cc && *cc ? cc : "cc", library, source);
	int bad = source_write(p, source) || command_run(command, p);
	if (!bad)
		p->cubin = library_read(library);
	unlink(source);
	unlink(library);
	return bad || !p->cubin;
}

int nvrtcGetProgramLogSize(void *program, size_t *n)
{
	*n = strlen(((Program *)program)->log) + 1;
	return 0;
}

int nvrtcGetProgramLog(void *program, char *out)
{
	strcpy(out, ((Program *)program)->log);
	return 0;
}

int nvrtcGetCUBINSize(void *program, size_t *n)
{
	*n = sizeof(Cubin) + ((Program *)program)->cubin->size;
	return fails("cubin");
}

int nvrtcGetCUBIN(void *program, char *out)
{
	const Program *p = program;
	memcpy(out, p->cubin, sizeof(Cubin) + p->cubin->size);
	return 0;
}

/* ---- the driver */

int cuInit(unsigned flags)
{
	return flags != 0 || fails("init");
}

int cuDriverGetVersion(int *version)
{
	*version = 12040;
	return 0;
}

int cuGetErrorString(int status, const char **text)
{
	*text = status == 2 ? "no memory" : "the fake was told to";
	return 0;
}

int cuDeviceGetCount(int *n)
{
	*n = 1;
	return fails("count");
}

int cuDeviceGetName(char *name, int n, int device)
{
	snprintf(name, (size_t)n, "fake");
	return device != 7;
}

int cuMemGetInfo_v2(size_t *left, size_t *all)
{
	*left = 1000;
	*all = 2000;
	return 0;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	static int one;
	*stream = &one;
	return flags != 1 || fails("stream");
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = 7;
	return ordinal != 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	*value = attribute == 75 ? 9 : 0;
	return device != 7;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	static int one;
	*context = &one;
	return device != 7 || fails("retain");
}

int cuCtxSetCurrent(void *context)
{
	return !context || fails("current");
}

int cuStreamSynchronize(void *stream)
{
	return !stream || fails("finish");
}

int cuModuleLoadData(void **module, const void *image)
{
	Cubin c;
	char path[] =
		"/tmp/fake-cuda-XXXXXX"; /* a name of its own: dlopen knows libraries by theirs */
	int f = mkstemp(path);
	memcpy(&c, image, sizeof c);
	*module = NULL;
	if (f >= 0 && !fails("load") &&
	    write(f, (const char *)image + sizeof c, c.size) == (ssize_t)c.size)
		*module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	close(f);
	unlink(path);
	__atomic_add_fetch(&live, *module != NULL, __ATOMIC_RELAXED);
	return !*module;
}

int cuModuleUnload(void *module)
{
	__atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
	return dlclose(module);
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
	char launcher[80];
	snprintf(launcher, sizeof launcher, "fake_%s", name);
	*function = dlsym(module, launcher);
	return !*function || fails("function");
}

int cuFuncSetAttribute(void *function, int attribute, int value)
{
	return !function || attribute != 8 || value <= 48 << 10;
}

int cuMemAlloc_v2(uint64_t *address, size_t size)
{
	Memory *m = size && !fails("alloc") ? malloc(sizeof *m + size + FENCE) : NULL;
	if (!m)
		return 2;
	m->size = size;
	memset(m->before, FENCED, FENCE);
	memset(m->data, 0xff, size);
	memset(m->data + size, FENCED, FENCE);
	*address = (uint64_t)(uintptr_t)m->data;
	pthread_mutex_lock(&lock);
	m->next = memories;
	memories = m;
	pthread_mutex_unlock(&lock);
	__atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
	return 0;
}

static Memory *memory_at(uint64_t address)
{
	return (Memory *)((char *)(uintptr_t)address - offsetof(Memory, data));
}

/* Is it a part of one of the device's? */
static int inside(uint64_t address, size_t n)
{
	const unsigned char *at = (const unsigned char *)(uintptr_t)address;
	int found = 0;
	pthread_mutex_lock(&lock);
	for (const Memory *m = memories; m && !found; m = m->next)
		found = at >= m->data && at + n <= m->data + m->size;
	pthread_mutex_unlock(&lock);
	return found;
}

/* A kernel that wrote outside ends the test here. */
int cuMemFree_v2(uint64_t address)
{
	Memory *m = memory_at(address);
	for (size_t i = 0; i < FENCE; i++)
		if (m->before[i] != FENCED || m->data[m->size + i] != FENCED) {
			fprintf(stderr, "fake_cuda: a kernel wrote outside its buffer\n");
			exit(1);
		}
	pthread_mutex_lock(&lock);
	Memory **link = &memories;
	while (*link != m)
		link = &(*link)->next;
	*link = m->next;
	pthread_mutex_unlock(&lock);
	__atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
	free(m);
	return 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *stream)
{
	if (!inside(to, n) || !stream || fails("to_device"))
		return 1;
	memcpy((void *)(uintptr_t)to, from, n);
	return 0;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *stream)
{
	if (!inside(from, n) || !stream || fails("to_host"))
		return 1;
	memcpy(to, (const void *)(uintptr_t)from, n);
	return 0;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *stream)
{
	if (!inside(to, n) || !inside(from, n) || !stream || fails("within"))
		return 1;
	memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, n);
	return 0;
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void *stream)
{
	if (!inside(to, n) || !stream || fails("fill"))
		return 1;
	memset((void *)(uintptr_t)to, value, n);
	return 0;
}

int cuLaunchKernel(void *function, unsigned blocks, unsigned by, unsigned bz, unsigned threads,
		   unsigned ty, unsigned tz, unsigned shared, void *stream, void **argument,
		   void **extra)
{
	void (*launch)(void **, unsigned, unsigned) =
		(void (*)(void **, unsigned, unsigned))(uintptr_t)function;
	if (by != 1 || bz != 1 || ty != 1 || tz != 1 || shared || !stream || extra || !blocks ||
	    threads < 1 || threads > 1024 || fails("launch"))
		return 1;
	if (fails("run")) /* and says nothing */
		return 0;
	pthread_mutex_lock(&running);
	launch(argument, blocks, threads); /* threadIdx is the program's */
	pthread_mutex_unlock(&running);
	return 0;
}

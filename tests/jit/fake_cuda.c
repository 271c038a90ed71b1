/* fake_cuda.c - stands for NVRTC and NVIDIA's driver on machines without them, for tests.
 *
 * Compiles CUDA C with the system's C compiler (threadIdx and the rest are variables). Blocks of a grid
 * run one after another, their threads as fibers that take turns at barriers, in an order that changes
 * from barrier to barrier, so that races show as wrong values; memory of a block is poisoned before it, and a
 * place that is copied to until the copy is waited for.
 * A barrier that not all threads of a block come to ends the program. Memory of the device is separate from the host's, poisoned
 * and fenced. Input: the calls of nvrtc_api.def and cuda_api.def. Output: what they say they do, or error
 * 1; the call named by $FAKE_CUDA_FAIL, or else by fake_cuda_fail(), fails ("launch:3": the third of it and all later
 * ones). "wrong" and "slow": what is compiled then does nothing, takes 2 ms; "stray": launches write before their
 * first buffer. Error 2 means that there is no memory, as the driver has it. There are two devices, each with a
 * context: memory, modules and streams belong to the one that was current when they were made, and are refused under
 * the other. Between the beginning of a capture and its end launches, copies within the device and fills are noted,
 * others are refused. Invariant: fake_cuda_live() counts what is still taken. cuBLASLt's and cuDNN's stand-ins
 * (fake_cublaslt.c, fake_cudnn.c) are in the same library.
 */
#define _GNU_SOURCE
#include "tests/jit/fake_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { FENCE = 64, FENCED = 0x5a, ALIGNED = 256 };

typedef struct Cubin {
	size_t size; /* of the shared library */
	char code[];
} Cubin;

typedef struct Function { /* a kernel of a module */
	void (*run)(void **, unsigned, unsigned);
	int n; /* its arguments, of 8 bytes each */
	const void **context;
} Function;

static _Thread_local const char *current; /* the context: a place of contexts[] */

typedef struct Program {
	char *source, log[2000];
	Cubin *cubin;
} Program;

typedef struct Memory {
	struct Memory *next;
	size_t size;
	const void *context;
	unsigned char unused[ALIGNED - FENCE - 3 * sizeof(void *)], before[FENCE], data[];
} Memory;

/* What the children that compile share with their parent: counts, and what was compiled. */
enum { KNOWN = 512, SHARED_BYTES = 256 << 20 };
static struct Shared {
	pthread_mutex_t lock;
	char now[64]; /* the failure that is counted */
	int count, nknown, compiled;
	struct Known {
		const char *source;
		const Cubin *cubin;
	} known[KNOWN];
	size_t used;
	char room[];
} * shared;

__attribute__((constructor)) static void shared_open(void)
{
	pthread_mutexattr_t how;
	shared = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shared == MAP_FAILED)
		abort();
	pthread_mutexattr_init(&how);
	pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->lock, &how);
	pthread_mutexattr_destroy(&how);
}

/* NULL: it is full. */
static void *shared_copy(const void *from, size_t n)
{
	size_t at = (shared->used + 15) & ~(size_t)15;
	if (n > SHARED_BYTES - sizeof *shared - at)
		return NULL;
	shared->used = at + n;
	return memcpy(shared->room + at, from, n);
}

static int live;

void fake_live_add(int n)
{
	__atomic_add_fetch(&live, n, __ATOMIC_RELAXED);
}
static Memory *memories;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, running = PTHREAD_MUTEX_INITIALIZER;

int fake_cuda_live(void)
{
	return live;
}

/* As $FAKE_CUDA_FAIL, which threads that run can't be told by. */
static char told[64];

void fake_cuda_fail(const char *which)
{
	pthread_mutex_lock(&shared->lock);
	snprintf(told, sizeof told, "%s", which ? which : "");
	pthread_mutex_unlock(&shared->lock);
}

int fake_fails(const char *call)
{
	const char *which = getenv("FAKE_CUDA_FAIL");
	size_t n = strlen(call);
	int failing = 0;
	pthread_mutex_lock(&shared->lock);
	if (!which)
		which = told;
	if (strcmp(which, shared->now)) {
		snprintf(shared->now, sizeof shared->now, "%s", which);
		shared->count = 0;
	}
	if (!strncmp(which, call, n) && (!which[n] || which[n] == ':'))
		failing = ++shared->count >= (which[n] ? atoi(which + n + 1) : 1);
	pthread_mutex_unlock(&shared->lock);
	return failing;
}

/* ---- the compiler: a cubin holds a shared library */

static const char shim[] =
	"#include <math.h>\n#include <string.h>\n"
	"static struct { unsigned x; } threadIdx, blockIdx;\n"
	"#define __global__\n#define __device__\n#define __launch_bounds__(n)\n"
	"#define __align__(n) __attribute__((aligned(n)))\n"
	"#define __shared__ static __attribute__((section(\"fake_block\")))\n"
	"static char block_memory[227 << 10] __attribute__((aligned(1024), "
	"section(\"fake_block\"), "
	"unused));\n"
	"#define RICCI_BLOCK_MEMORY\n"
	"#define atomicAdd(at, v) (void)(*(at) += (v))\n"
	"#define atomicCAS(at, old, next) __sync_val_compare_and_swap(at, old, next)\n"
	"extern char __start_fake_block[] __attribute__((weak, visibility(\"hidden\")));\n"
	"extern char __stop_fake_block[] __attribute__((weak, visibility(\"hidden\")));\n"
	"#define RICCI_MMA\n"
	"static float fake_bf16(unsigned short h)\n"
	"{ unsigned u = (unsigned)h << 16; float f; memcpy(&f, &u, 4); return f; }\n"
	"static float fake_f16(unsigned short h)\n"
	"{ int e = h >> 10 & 31, m = h & 1023; float f = e == 31 ? (m ? NAN : INFINITY) : "
	"e ? ldexpf(1024 + m, e - 25) : ldexpf(m, -24); return h >> 15 ? -f : f; }\n"
	/* Copies are made when they are waited for; until then their place is poisoned. */
	"#define RICCI_COPIES\nint printf(const char *, ...);\nvoid exit(int);\n"
	"void *realloc(void *, unsigned long);\n"
	"static struct { void *to; const void *from; int bytes, inside, group; } "
	"*fake_copy[1024];\n"
	"static int fake_copies[1024], fake_groups[1024];\n"
	"static void fake_must(int good, const char *what)\n"
	"{ if (!good) { printf(\"fake_cuda: %s\\n\", what); exit(1); } }\n"
	"static void ricci_copy(void *to, const void *from, int bytes, int inside)\n"
	"{ unsigned t = threadIdx.x; int n = fake_copies[t]++;\n"
	"fake_must(bytes == 4 || bytes == 8 || bytes == 16, \"a copy of an odd size\");\n"
	"fake_must((unsigned long)to % bytes == 0 && (!inside || (unsigned long)from % bytes == "
	"0), "
	"\"a copy is not aligned\");\n"
	"if (n % 64 == 0) fake_copy[t] = realloc(fake_copy[t], (n + 64) * sizeof *fake_copy[t]); "
	"fake_must(fake_copy[t] != 0, \"no memory for copies\"); memset(to, 0xff, bytes);\n"
	"fake_copy[t][n].to = to; fake_copy[t][n].from = from; fake_copy[t][n].bytes = bytes;\n"
	"fake_copy[t][n].inside = inside; fake_copy[t][n].group = fake_groups[t]; }\n"
	"static void ricci_copies_end(void) { fake_groups[threadIdx.x]++; }\n"
	"static void ricci_copies_wait(int later)\n"
	"{ unsigned t = threadIdx.x; int left = 0;\n"
	"for (int k = 0; k < fake_copies[t]; k++)\n"
	"if (fake_copy[t][k].group >= fake_groups[t] - later) "
	"fake_copy[t][left++] = fake_copy[t][k];\n"
	"else if (fake_copy[t][k].inside) "
	"memcpy(fake_copy[t][k].to, fake_copy[t][k].from, fake_copy[t][k].bytes);\n"
	"else memset(fake_copy[t][k].to, 0, fake_copy[t][k].bytes);\n"
	"fake_copies[t] = left; }\n"
	/* Of a fragment each lane notes what all lanes of its warp have in its registers. */
	"__attribute__((weak)) int ricci_lane_below(int, int), ricci_lane_beside(int, int), "
	"ricci_word_below(int, int, int), ricci_word_beside(int, int, int);\n"
	"typedef struct { int *r; unsigned lane[32][4]; } FakeFragment;\n"
	"static FakeFragment fake_fragment[1024][40];\n"
	"static int fake_fragments[1024];\n"
	"static FakeFragment *fake_find(const int *r)\n"
	"{ for (int k = 0; k < fake_fragments[threadIdx.x]; k++)\n"
	"{ FakeFragment *f = &fake_fragment[threadIdx.x][k]; "
	"if (r >= f->r && r < f->r + 4) return f; }\nreturn 0; }\n"
	"static FakeFragment *fake_slot(int *r)\n"
	"{ FakeFragment *f = fake_find(r);\n"
	"if (!f) { fake_must(fake_fragments[threadIdx.x] < 40, \"too many fragments\");\n"
	"f = &fake_fragment[threadIdx.x][fake_fragments[threadIdx.x]++]; f->r = r; }\nreturn f; }\n"
	"static void fake_load(int *r, const unsigned short *tile, int pitch, "
	"int (*place)(int, int), int trans)\n"
	"{ FakeFragment *f = fake_slot(r);\n"
	"for (int lane = 0; lane < 32; lane++) for (int m = 0; m < 4; m++) "
	"{ f->lane[lane][m] = 0; for (int e = 0; e < 2; e++) {\n"
	"int row = trans ? lane % 4 * 2 + e : lane / 4, col = trans ? lane / 4 : lane % 4 * 2 + "
	"e;\n"
	"const unsigned short *from = tile + place(8 * m + row, pitch);\n"
	"fake_must((unsigned long)from % 16 == 0, \"a row of a matrix is not aligned\");\n"
	"f->lane[lane][m] |= (unsigned)from[col] << 16 * e; } }\n"
	"for (int m = 0; m < 4; m++) r[m] = (int)f->lane[threadIdx.x % 32][m]; }\n"
	"#define FRAGMENT(name, lane, trans) static void ricci_fragment_##name"
	"(int *r, const unsigned short *tile, int pitch) "
	"{ fake_load(r, tile, pitch, ricci_lane_##lane, trans); }\n"
	"FRAGMENT(a, below, 0)\nFRAGMENT(a_across, beside, 1)\n"
	"FRAGMENT(b, beside, 0)\nFRAGMENT(b_across, below, 1)\n"
	"#define MMA(name) static void ricci_mma_##name(float *c, int row, const int *a, "
	"const int *b) { FakeFragment *x = fake_find(a), *y = fake_find(b); "
	"int lane = threadIdx.x % 32, half = (int)(b - y->r); "
	"for (int r = 0; r < 2; r++) for (int j = 0; j < 2; j++) for (int k = 0; k < 16; k++) "
	"c[r * row + j] += "
	"fake_##name(x->lane[lane / 4 * 4 + k % 8 / 2][r + k / 8 * 2] >> k % 2 * 16) * "
	"fake_##name(y->lane[(lane % 4 * 2 + j) * 4 + k % 8 / 2][half + k / 8] >> k % 2 * 16); }\n"
	"MMA(bf16)\nMMA(f16)\n"
	/* Of tf32 a register is one word, rounded when it is loaded. */
	"static float fake_tf32(unsigned u) { float f; memcpy(&f, &u, 4); return f; }\n"
	"static void fake_round(FakeFragment *f)\n"
	"{ for (int lane = 0; lane < 32; lane++) for (int m = 0; m < 4; m++) { "
	"unsigned *u = &f->lane[lane][m]; if (isfinite(fake_tf32(*u))) "
	"*u = *u + (1u << 12) >> 13 << 13; } }\n"
	"static void fake_keep(FakeFragment *f) { (void)f; }\n"
	"#define WORDS(type, round, name, at) static void ricci_fragment_##type##_##name"
	"(int *r, const float *tile, int pitch) "
	"{ ricci_fragment_##name(r, (const unsigned short *)tile, 2 * pitch); "
	"round(fake_slot(r)); } "
	"static void ricci_fragment_##type##_##name##_across(int *r, const float *tile, int pitch) "
	"{ FakeFragment *f = fake_slot(r); "
	"for (int lane = 0; lane < 32; lane++) for (int m = 0; m < 4; m++) "
	"memcpy(&f->lane[lane][m], tile + ricci_word_##at(lane, m, pitch), 4); round(f); }\n"
	"WORDS(tf32, fake_round, a, below)\nWORDS(tf32, fake_round, b, beside)\n"
	"WORDS(f32, fake_keep, a, below)\nWORDS(f32, fake_keep, b, beside)\n"
	/* What tensor cores take of a word is cut off; of one in parts 0: all, 1: the upper, 2: the lower. */
	"static float fake_part(unsigned u, int part) "
	"{ unsigned up = (u + 0x1000) & ~0x1fffu; float low = fake_tf32(u) - fake_tf32(up); "
	"if (part == 1) u = up; if (part == 2) memcpy(&u, &low, 4); return fake_tf32(u & "
	"~0x1fffu); }\n"
	"static void fake_words(float *c, int row, const int *a, const int *b, int pa, int pb) "
	"{ FakeFragment *x = fake_find(a), *y = fake_find(b); "
	"int lane = threadIdx.x % 32, half = (int)(b - y->r); "
	"for (int r = 0; r < 2; r++) for (int j = 0; j < 2; j++) for (int k = 0; k < 8; k++) "
	"c[r * row + j] += fake_part(x->lane[lane / 4 * 4 + k % 4][r + k / 4 * 2], pa) * "
	"fake_part(y->lane[(lane % 4 * 2 + j) * 4 + k % 4][half + k / 4], pb); }\n"
	"static void ricci_mma_tf32(float *c, int row, const int *a, const int *b) "
	"{ fake_words(c, row, a, b, 0, 0); }\n"
	"static void ricci_mma_f32(float *c, int row, const int *a, const int *b) "
	"{ fake_words(c, row, a, b, 2, 1); fake_words(c, row, a, b, 1, 2); "
	"fake_words(c, row, a, b, 1, 1); }\n"
	/* Products of groups of warps are made when they are waited for: of what lies in memory then. */
	"typedef struct { float *c; const unsigned short *a, *b; int n, pitch[2], inner[2], group; "
	"float (*to)(unsigned short); } FakeProduct;\n"
	"static FakeProduct fake_product[1024][64];\n"
	"static int fake_products[1024], fake_ends[1024], fake_begun[1024];\n"
	"static float fake_element(const FakeProduct *p, int d, int row, int k)\n"
	"{ unsigned long at = (unsigned long)(d ? p->b : p->a);\n"
	"at += p->inner[d] ? row * 128 + k * 2 : "
	"row / 64 * p->pitch[d] * 2 + k * 128 + row % 64 * 2;\n"
	"return p->to(*(const unsigned short *)(at ^ (at >> 7 & 7) << 4)); }\n"
	"static void fake_multiply(const FakeProduct *p)\n"
	"{ int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;\n"
	"for (int r = 0; r < 2; r++) for (int j = 0; j < p->n / 4; j++) for (int k = 0; k < 16; "
	"k++)\n"
	"p->c[r * p->n / 4 + j] += fake_element(p, 0, warp * 16 + r * 8 + lane / 4, k) * "
	"fake_element(p, 1, j / 2 * 8 + lane % 4 * 2 + j % 2, k); }\n"
	"static void ricci_group_see(void) {}\n"
	"static void ricci_group_begin(void) { fake_begun[threadIdx.x] = 1; }\n"
	"static void ricci_group_end(void) { fake_ends[threadIdx.x]++; fake_begun[threadIdx.x] = "
	"0; }\n"
	"static void ricci_group_wait(int later)\n"
	"{ unsigned t = threadIdx.x; int left = 0; fake_must(!fake_begun[t], \"products have no "
	"end\");\n"
	"for (int k = 0; k < fake_products[t]; k++)\n"
	"if (fake_product[t][k].group >= fake_ends[t] - later) fake_product[t][left++] = "
	"fake_product[t][k];\n"
	"else fake_multiply(&fake_product[t][k]);\n"
	"fake_products[t] = left; }\n"
	"static void ricci_group_sums(const float *c, int n) { (void)c, (void)n; "
	"fake_must(!fake_products[threadIdx.x], \"sums of products under way\"); }\n"
	"static void fake_add(FakeProduct p)\n"
	"{ unsigned t = threadIdx.x; fake_must(fake_begun[t] && fake_products[t] < 64 && "
	"(unsigned long)p.a % 16 == 0 && (unsigned long)p.b % 16 == 0 && p.pitch[0] % 512 == 0 && "
	"p.pitch[1] % 512 == 0, "
	"\"a product of a group that has none\");\n"
	"p.group = fake_ends[t]; fake_product[t][fake_products[t]++] = p; }\n"
	"#define GROUP(type, n) static void ricci_group_mma_##type##_##n(float *c, const void *a, "
	"int pa, int ia, const void *b, int pb, int ib) "
	"{ fake_add((FakeProduct){c, a, b, n, {pa, pb}, {ia, ib}, 0, fake_##type}); }\n"
	"GROUP(bf16, 64)\nGROUP(bf16, 128)\nGROUP(bf16, 256)\n"
	"GROUP(f16, 64)\nGROUP(f16, 128)\nGROUP(f16, 256)\n"
	"static void fake_begin(void) { unsigned t = threadIdx.x; "
	"fake_copies[t] = fake_groups[t] = fake_fragments[t] = 0; "
	"fake_products[t] = fake_ends[t] = fake_begun[t] = 0; }\n"
	"const void *fake_context;\n"
	"void (*fake_run)(void (*)(void **, unsigned, unsigned), void (*)(unsigned), void "
	"(*)(void), "
	"void **, unsigned, unsigned);\n"
	"void (*fake_barrier)(void);\n#define __syncthreads() fake_barrier()\n"
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
	if (!p || fake_fails("create")) {
		free(p);
		return 1;
	}
	p->source = strdup(source);
	*out = p;
	__atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
	return !p->source;
}

int nvrtcDestroyProgram(void **program)
{
	Program *p = *program;
	free(p->source);
	free(p->cubin);
	free(p);
	__atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
	return 0;
}

/* What runs the grid of the function `name`: the last parameter is an integer, the others are pointers. */
static void launcher_write(FILE *f, const char *name, int length)
{
	const char *s = name;
	int n = 1, wrong = fake_fails("wrong"), slow = fake_fails("slow");
	for (; *s && *s != ')'; s++)
		n += *s == ',';
	fprintf(f,
		"static void one_%.*s(void **a, unsigned block, unsigned thread) {\n"
		"blockIdx.x = block; threadIdx.x = thread; fake_begin();\n%s%s%.*s(",
		length, name, wrong ? "return;\n" : "",
		slow ? "if (!block && !thread) usleep(2000);\n" : "", length, name);
	for (int k = 0; k < n - 1; k++)
		fprintf(f, "*(void **)a[%d], ", k);
	fprintf(f, "*(uint64_t *)a[%d]);\n}\n", n - 1);
	fprintf(f,
		"void fake_%.*s(void **a, unsigned blocks, unsigned threads) {\n"
		"fake_run(one_%.*s, fake_thread, fake_poison, a, blocks, threads);\n}\n"
		"struct { void (*run)(void **, unsigned, unsigned); int n; "
		"const void **context; } function_%.*s = {fake_%.*s, %d, &fake_context};\n",
		length, name, length, name, length, name, length, name, n);
}

static void launchers_write(FILE *f, const char *source)
{
	const char *function = "__global__ void ", *bounds = "__launch_bounds__";
	fputs("int usleep(unsigned);\nvoid fake_thread(unsigned t) { threadIdx.x = t; }\n"
	      "void fake_poison(void) { if (__start_fake_block)"
	      " memset(__start_fake_block, 0xff, __stop_fake_block - __start_fake_block); }\n",
	      f);
	for (const char *s = source; (s = strstr(s, function));) {
		s += strlen(function);
		if (!strncmp(s, bounds, strlen(bounds)))
			s += strcspn(s, " ") + 1;
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

/* Programs that were given to the compiler. */
int fake_cuda_compiled(void)
{
	return __atomic_load_n(&shared->compiled, __ATOMIC_RELAXED);
}

/* What was compiled before is there; but not what was to be wrong or slow. */
static Cubin *known_find(const char *source)
{
	Cubin *found = NULL;
	pthread_mutex_lock(&shared->lock);
	for (int k = 0; k < shared->nknown && !found; k++) {
		const Cubin *c = shared->known[k].cubin;
		if (!strcmp(shared->known[k].source, source) &&
		    (found = malloc(sizeof *c + c->size)))
			memcpy(found, c, sizeof *c + c->size);
	}
	pthread_mutex_unlock(&shared->lock);
	return found;
}

static void known_add(const Program *p)
{
	pthread_mutex_lock(&shared->lock);
	struct Known *k = &shared->known[shared->nknown];
	if (shared->nknown < KNOWN && p->cubin &&
	    (k->source = shared_copy(p->source, strlen(p->source) + 1)) &&
	    (k->cubin = shared_copy(p->cubin, sizeof *p->cubin + p->cubin->size)))
		shared->nknown++;
	pthread_mutex_unlock(&shared->lock);
}

/* The folder is gone afterwards: a child that compiles ends without destroying its programs. */
static int program_make(Program *p)
{
	char command[300], folder[] = "/tmp/fake-cuda-XXXXXX", source[64], library[64];
	const char *cc = getenv("CC");
	if (!mkdtemp(folder))
		return 1;
	snprintf(source, sizeof source, "%s/k.c", folder);
	snprintf(library, sizeof library, "%s/k.so", folder);
	snprintf(command, sizeof command, "%s -w -shared -fPIC -nostdlib -o %s %s 2>&1",
		 cc && *cc ? cc : "cc", library, source);
	int bad = source_write(p, source) || command_run(command, p);
	if (!bad)
		p->cubin = library_read(library);
	unlink(source);
	unlink(library);
	rmdir(folder);
	return bad || !p->cubin;
}

int nvrtcCompileProgram(void *program, int noption, const char *const *options)
{
	Program *p = program;
	int odd = fake_fails("wrong") || fake_fails("slow");
	if (noption < 1 || strcmp(options[0], "--gpu-architecture=sm_90a"))
		return 1;
	__atomic_add_fetch(&shared->compiled, 1, __ATOMIC_RELAXED);
	if (fake_fails("crash"))
		raise(SIGKILL);
	if (fake_fails("compile"))
		return strcpy(p->log, "the fake does not like it") == NULL || 1;
	if (!odd && (p->cubin = known_find(p->source)))
		return 0;
	if (program_make(p))
		return 1;
	if (!odd)
		known_add(p);
	return 0;
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
	return fake_fails("cubin");
}

int nvrtcGetCUBIN(void *program, char *out)
{
	const Program *p = program;
	memcpy(out, p->cubin, sizeof(Cubin) + p->cubin->size);
	return 0;
}

/* ---- the threads of a block */

enum { STACK = 1 << 16, THREADS = 1024 };
enum State { READY, WAITS, DONE };

/* A fiber: where its stack is left. On the processor of most a switch is a few instructions, as ucontext's
 * asks the kernel each time. */
#ifdef __x86_64__
typedef void *Fiber;
void fake_switch(Fiber *from, Fiber *to);
__asm__(".text\n.type fake_switch, @function\nfake_switch:\n"
	"push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
	"mov %rsp, (%rdi)\nmov (%rsi), %rsp\n"
	"pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");

static void fiber_make(Fiber *f, char *stack, void (*run)(void))
{
	void **top = (void **)(void *)(stack + STACK);
	memset(top - 8, 0, 8 * sizeof *top);
	*(void (**)(void))(top - 2) = run; /* where the first switch returns to */
	*f = top - 8;
}
#else
typedef ucontext_t Fiber;

static void fake_switch(Fiber *from, Fiber *to)
{
	swapcontext(from, to);
}

static void fiber_make(Fiber *f, char *stack, void (*run)(void))
{
	getcontext(f);
	f->uc_stack.ss_sp = stack;
	f->uc_stack.ss_size = STACK;
	makecontext(f, run, 0);
}
#endif

static struct {
	Fiber scheduler, fiber[THREADS];
	char *stack;
	enum State state[THREADS];
	unsigned current, block;
	void (*run)(void **, unsigned, unsigned);
	void **argument;
} team;

/* Entered on one stack and left on another, or never, which ThreadSanitizer would count. */
#define UNCOUNTED __attribute__((no_sanitize("thread")))

UNCOUNTED static void barrier_met(void)
{
	team.state[team.current] = WAITS;
	fake_switch(&team.fiber[team.current], &team.scheduler);
}

UNCOUNTED static void fiber_run(void)
{
	team.run(team.argument, team.block, team.current);
	team.state[team.current] = DONE;
	fake_switch(&team.fiber[team.current], &team.scheduler);
}

/* Runs each thread to its next barrier, or its end. Returns how many wait there. */
static unsigned segment_run(unsigned threads, uint64_t order, void (*thread)(unsigned))
{
	unsigned waiting = 0, start = (unsigned)(order >> 1) % threads;
	for (unsigned k = 0; k < threads; k++) {
		unsigned t = (start + k) % threads;
		team.current = order & 1 ? threads - 1 - t : t;
		thread(team.current);
		fake_switch(&team.scheduler, &team.fiber[team.current]);
		waiting += team.state[team.current] == WAITS;
	}
	return waiting;
}

static void block_run(unsigned threads, void (*thread)(unsigned))
{
	static uint64_t order;
	unsigned waiting = threads;
	for (unsigned t = 0; t < threads; t++) {
		fiber_make(&team.fiber[t], team.stack + (size_t)t * STACK, fiber_run);
		team.state[t] = READY;
	}
	while (waiting == threads) {
		order = order * 6364136223846793005u + 1442695040888963407u;
		waiting = segment_run(threads, order >> 33, thread);
	}
	if (waiting) {
		fprintf(stderr, "fake_cuda: %u of %u threads of a block come to a barrier\n",
			waiting, threads);
		exit(1);
	}
}

static void grid_run(void (*run)(void **, unsigned, unsigned), void (*thread)(unsigned),
		     void (*poison)(void), void **argument, unsigned blocks, unsigned threads)
{
	if (!team.stack)
		team.stack = mmap(NULL, (size_t)THREADS * STACK, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (team.stack == MAP_FAILED) {
		fprintf(stderr, "fake_cuda: no memory for stacks\n");
		exit(1);
	}
	team.run = run;
	team.argument = argument;
	for (team.block = 0; team.block < blocks; team.block++) {
		poison();
		block_run(threads, thread);
	}
}

/* Tells a module's kernels who runs their threads, and where these meet. */
static void module_bind(void *module)
{
	void **run = dlsym(module, "fake_run"), **barrier = dlsym(module, "fake_barrier");
	const void **context = dlsym(module, "fake_context");
	if (context)
		*context = current;
	if (run)
		*(void (**)(void (*)(void **, unsigned, unsigned), void (*)(unsigned),
			    void (*)(void), void **, unsigned, unsigned))run = grid_run;
	if (barrier)
		*(void (**)(void))barrier = barrier_met;
}

/* ---- the driver: devices 7 and 8 */

enum { DEVICES = 2, DEVICE = 7 };
static char contexts[DEVICES], streams[DEVICES];

static int known(int device)
{
	return device >= DEVICE && device < DEVICE + DEVICES;
}

/* Is the stream of the context that is current? */
static int streams_here(const void *stream)
{
	return current && stream == &streams[current - contexts];
}

int cuInit(unsigned flags)
{
	return flags != 0 || fake_fails("init");
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
	*n = DEVICES;
	return fake_fails("count");
}

int cuDeviceGetName(char *name, int n, int device)
{
	snprintf(name, (size_t)n, "fake");
	return !known(device);
}

int cuMemGetInfo_v2(size_t *left, size_t *all)
{
	*left = 1000000000;
	*all = 2000000000;
	return 0;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	if (flags != 1 || !current || fake_fails("stream"))
		return 1;
	*stream = &streams[current - contexts];
	return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = DEVICE + ordinal;
	return !known(*device);
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	*value = attribute == 75 ? 9 : 0;
	return !known(device);
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	if (!known(device) || fake_fails("retain"))
		return 1;
	*context = &contexts[device - DEVICE];
	return 0;
}

int cuCtxSetCurrent(void *context)
{
	if (!context || fake_fails("current"))
		return 1;
	current = context;
	return 0;
}

/* ---- captures */

enum { ARGUMENTS = 200 };
typedef struct Noted { /* a launch, a copy or a fill */
	struct Noted *next;
	const Function *function; /* NULL: no launch */
	unsigned blocks, threads;
	uint64_t to, from, argument[ARGUMENTS];
	size_t n;
	unsigned char value;
	int (*call)(const void *data); /* NULL: no library's call */
	void *data;
} Noted;
typedef struct Graph {
	int keepers; /* as a graph, and as one that can be launched */
	Noted *first, **last;
} Graph;

static Graph *capturing;
static int replays;

int fake_cuda_replays(void)
{
	return replays;
}

static int note(const Noted *of)
{
	Noted *n = malloc(sizeof *n);
	if (!n)
		return 2;
	*n = *of;
	n->next = NULL;
	*capturing->last = n;
	capturing->last = &n->next;
	return 0;
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
	if (!streams_here(stream) || mode != 2 || capturing || fake_fails("capture"))
		return 1;
	if (!(capturing = calloc(1, sizeof *capturing)))
		return 2;
	capturing->keepers = 1;
	capturing->last = &capturing->first;
	__atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
	return 0;
}

int cuGraphDestroy(void *graph)
{
	Graph *g = graph;
	if (--g->keepers)
		return 0;
	for (Noted *n; (n = g->first); free(n)) {
		g->first = n->next;
		free(n->data);
	}
	free(g);
	__atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
	return 0;
}

/* A capture that fails ends, too. */
int cuStreamEndCapture(void *stream, void **graph)
{
	*graph = NULL;
	if (!streams_here(stream) || !capturing)
		return 1;
	*graph = capturing;
	capturing = NULL;
	if (!fake_fails("captured"))
		return 0;
	cuGraphDestroy(*graph);
	*graph = NULL;
	return 1;
}

int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags)
{
	*executable = NULL;
	if (!graph || flags || fake_fails("instantiate"))
		return 1;
	((Graph *)graph)->keepers++;
	*executable = graph;
	return 0;
}

int cuGraphExecDestroy(void *executable)
{
	return cuGraphDestroy(executable);
}

int cuStreamSynchronize(void *stream)
{
	return !streams_here(stream) || capturing || fake_fails("finish");
}

/* ---- events: when all before them was done, which is at once */

int cuEventCreate(void **event, unsigned flags)
{
	*event = flags || fake_fails("event") ? NULL : calloc(1, sizeof(double));
	__atomic_add_fetch(&live, *event != NULL, __ATOMIC_RELAXED);
	return !*event;
}

int cuEventRecord(void *event, void *stream)
{
	struct timespec now;
	if (!event || !streams_here(stream) || capturing || fake_fails("event_record"))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &now);
	*(double *)event = 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
	return 0;
}

int cuEventSynchronize(void *event)
{
	return !event || !*(double *)event || fake_fails("event_wait");
}

int cuEventElapsedTime(float *milliseconds, void *from, void *to)
{
	*milliseconds = (float)(*(double *)to - *(double *)from);
	return fake_fails("event_time");
}

int cuEventDestroy_v2(void *event)
{
	free(event);
	__atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
	return 0;
}

int cuModuleLoadData(void **module, const void *image)
{
	Cubin c;
	char path[] =
		"/tmp/fake-cuda-XXXXXX"; /* a name of its own: dlopen knows libraries by theirs */
	int f = mkstemp(path);
	memcpy(&c, image, sizeof c);
	*module = NULL;
	if (f >= 0 && !fake_fails("load") &&
	    write(f, (const char *)image + sizeof c, c.size) == (ssize_t)c.size)
		*module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	close(f);
	unlink(path);
	if (*module)
		module_bind(*module);
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
	snprintf(launcher, sizeof launcher, "function_%s", name);
	const Function *f = dlsym(module, launcher);
	*function = (void *)(uintptr_t)f;
	return !f || *f->context != current || fake_fails("function");
}

int cuFuncSetAttribute(void *function, int attribute, int value)
{
	return !function || attribute != 8 || value <= 48 << 10 || value > 227 << 10;
}

int cuMemAlloc_v2(uint64_t *address, size_t size)
{
	Memory *m = size && current && !fake_fails("alloc")
			    ? aligned_alloc(ALIGNED, (sizeof *m + size + FENCE + ALIGNED - 1) &
							     ~(size_t)(ALIGNED - 1))
			    : NULL;
	if (!m)
		return 2;
	m->size = size;
	m->context = current;
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

int fake_inside(uint64_t address, size_t n)
{
	const unsigned char *at = (const unsigned char *)(uintptr_t)address;
	int found = 0;
	pthread_mutex_lock(&lock);
	for (const Memory *m = memories; m && !found; m = m->next)
		found = at >= m->data && at + n <= m->data + m->size && m->context == current;
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
	if (!fake_inside(to, n) || !streams_here(stream) || capturing || fake_fails("to_device"))
		return 1;
	memcpy((void *)(uintptr_t)to, from, n);
	return 0;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *stream)
{
	if (!fake_inside(from, n) || !streams_here(stream) || capturing || fake_fails("to_host"))
		return 1;
	memcpy(to, (const void *)(uintptr_t)from, n);
	return 0;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *stream)
{
	if (!fake_inside(to, n) || !fake_inside(from, n) || !streams_here(stream) ||
	    fake_fails("within"))
		return 1;
	if (capturing)
		return note(&(Noted){.to = to, .from = from, .n = n});
	memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, n);
	return 0;
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void *stream)
{
	if (!fake_inside(to, n) || !streams_here(stream) || fake_fails("fill"))
		return 1;
	if (capturing)
		return note(&(Noted){.to = to, .n = n, .value = value});
	memset((void *)(uintptr_t)to, value, n);
	return 0;
}

int cuLaunchKernel(void *function, unsigned blocks, unsigned by, unsigned bz, unsigned threads,
		   unsigned ty, unsigned tz, unsigned shared, void *stream, void **argument,
		   void **extra)
{
	const Function *f = function;
	if (by != 1 || bz != 1 || ty != 1 || tz != 1 || shared > 227 << 10 ||
	    !streams_here(stream) || extra || !blocks || threads < 1 || threads > 1024 ||
	    *f->context != current || fake_fails("launch"))
		return 1;
	if (fake_fails("run")) /* and says nothing */
		return 0;
	if (capturing) {
		Noted n = {.function = f, .blocks = blocks, .threads = threads};
		for (int k = 0; k < f->n && k < ARGUMENTS; k++)
			memcpy(&n.argument[k], argument[k], sizeof n.argument[k]);
		return f->n > ARGUMENTS || note(&n);
	}
	pthread_mutex_lock(&running);
	f->run(argument, blocks, threads); /* of one grid at a time */
	if (fake_fails("stray"))	   /* writes before its first buffer */
		(*(unsigned char **)argument[0])[-1] ^= 1;
	pthread_mutex_unlock(&running);
	return 0;
}

int fake_call(int (*call)(const void *), const void *data, size_t n)
{
	void *copy = capturing ? malloc(n) : NULL;
	if (capturing)
		return copy && !note(&(Noted){.call = call, .data = memcpy(copy, data, n)}) ? 0 : 3;
	pthread_mutex_lock(&running);
	int status = call(data);
	pthread_mutex_unlock(&running);
	return status;
}

/* What was noted is checked again: memory may have gone since. */
static int noted_run(Noted *n, void *stream)
{
	void *argument[ARGUMENTS];
	if (n->call)
		return fake_call(n->call, n->data, 0);
	if (!n->function && n->from)
		return cuMemcpyDtoDAsync_v2(n->to, n->from, n->n, stream);
	if (!n->function)
		return cuMemsetD8Async(n->to, n->value, n->n, stream);
	for (int k = 0; k < n->function->n; k++) {
		argument[k] = &n->argument[k];
		if (k + 1 < n->function->n && !fake_inside(n->argument[k], 1))
			return 1;
	}
	return cuLaunchKernel((void *)(uintptr_t)n->function, n->blocks, 1, 1, n->threads, 1, 1, 0,
			      stream, argument, NULL);
}

int cuGraphLaunch(void *executable, void *stream)
{
	int status =
		!executable || !streams_here(stream) || capturing || fake_fails("graph_launch");
	for (Noted *n = status ? NULL : ((Graph *)executable)->first; n && !status; n = n->next)
		status = noted_run(n, stream);
	__atomic_add_fetch(&replays, !status, __ATOMIC_RELAXED);
	return status;
}

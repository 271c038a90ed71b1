/* target.c - what the processor can do.
 *
 * Input: CPUID and XGETBV bits, or the architecture's baseline; RICCI_ISA=sse2|avx2|avx512 lowers
 * the result. Output: the Target of this process, made once. Virtual machines lie about the model's
 * name, so nothing here reads it: a bit counts only when the operating system also saves the
 * registers that it needs.
 */
#include "jit/jit.h"
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

static Target host, unmasked;
static pthread_once_t host_once = PTHREAD_ONCE_INIT;

/* The instruction sets, weakest first: the bit, its name in the key, what the compiler is given for
 * it. */
static const struct {
	unsigned bit;
	const char *name, *flags;
} isa_row[] = {
	{ISA_SSE2, "sse2", ""},
	{ISA_AVX2, "avx2", " -mavx2 -mbmi -mbmi2 -mlzcnt -mpopcnt"},
	{ISA_FMA, "fma", " -mfma"},
	{ISA_F16C, "f16c", " -mf16c"},
	{ISA_AVX512, "avx512",
	 " -mavx512f -mavx512dq -mavx512vl -mavx512bw -mprefer-vector-width=512"},
	{ISA_AVX512BF16, "bf16", ""},
	{ISA_AVX512VNNI, "vnni", ""},
	{ISA_AMX, "amx", ""},
	{ISA_NEON, "neon", ""},
};

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

/* Tile registers are large, so a Linux process has them for the asking only (since 5.16); the
 * answer holds for all its threads. */
static bool tiles_granted(void)
{
	enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
	return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
#else
static bool tiles_granted(void)
{
	return false;
}
#endif

static uint64_t enabled_state(void)
{
	uint32_t lo, hi;
	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return (uint64_t)hi << 32 | lo;
}

static unsigned isa_detect(void)
{
	enum { YMM = 0x6, ZMM = 0xe6, TILE = 0x60000 };
	unsigned a, b, c, d, b7, c7, d7, isa = ISA_SSE2;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX))
		return isa;
	uint64_t os = enabled_state();
	if ((os & YMM) != YMM)
		return isa;
	if (c & bit_FMA)
		isa |= ISA_FMA;
	if (c & bit_F16C)
		isa |= ISA_F16C;
	if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d7))
		return isa;
	/* The flags of the AVX2 row include the bit instructions that came with it. */
	unsigned l = 0, avx2 = bit_AVX2 | bit_BMI | bit_BMI2;
	__get_cpuid(0x80000001, &a, &b, &l, &d);
	if ((b7 & avx2) != avx2 || !(l & bit_LZCNT))
		return isa;
	isa |= ISA_AVX2;
	unsigned avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
	if ((b7 & avx512) != avx512 || (os & ZMM) != ZMM || !(isa & ISA_FMA))
		return isa;
	isa |= ISA_AVX512;
	if (c7 & bit_AVX512VNNI)
		isa |= ISA_AVX512VNNI;
	if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && a & 1 << 5)
		isa |= ISA_AVX512BF16;
	unsigned amx = 1u << 22 | 1u << 24 | 1u << 25; /* bf16, tile, int8 */
	if ((d7 & amx) == amx && (os & TILE) == TILE && tiles_granted())
		isa |= ISA_AMX;
	return isa;
}

/* n rounds of independent multiply-adds, as many as hide their latency. */
#define FMA_ROUNDS(name, isa, V, set, fma)                                                         \
	__attribute__((target(isa), noinline)) static void name(int n)                             \
	{                                                                                          \
		V a = set(0.5f), c[8] = {a, a, a, a, a, a, a, a};                                  \
		for (; n > 0; n--) {                                                               \
			_Pragma("GCC unroll 8") for (int i = 0; i < 8; i++)                        \
			{                                                                          \
				c[i] = fma(c[i], a, a);                                            \
				__asm__ volatile("" : "+v"(c[i]));                                 \
			}                                                                          \
		}                                                                                  \
	}
FMA_ROUNDS(rounds_256, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps)
FMA_ROUNDS(rounds_512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps)
#undef FMA_ROUNDS

/* No bit tells whether the units for vectors of 64 bytes are whole or halves: timed, in some 50 microseconds. They take
 * once or twice as long as those of 32 bytes; but Intel's processors are slower for up to 300 microseconds behind the
 * first of them, so that twice has to hold in more tries. (Schedules would differ from process to process.) */
static bool fma_is_wide(void)
{
	enum { TRIES = 16, TRIES_TWICE = 192, ROUNDS = 1000 };
	double narrow = INFINITY, wide = INFINITY;
	for (int k = 0; k < TRIES || (k < TRIES_TWICE && wide > 1.25 * narrow); k++) {
		double start = clock_seconds();
		rounds_256(ROUNDS);
		double middle = clock_seconds();
		rounds_512(ROUNDS);
		double end = clock_seconds();
		narrow = middle - start < narrow ? middle - start : narrow;
		wide = end - middle < wide ? end - middle : wide;
	}
	return wide < 1.5 * narrow;
}

/* Intel's leaf 4 and AMD's 0x8000001D have one form. */
static void caches_detect(Target *t)
{
	for (int w = 0; w < 2 && !t->l1; w++)
		for (unsigned i = 0; i < 16; i++) {
			unsigned a, b, c, d;
			if (!__get_cpuid_count(w ? 0x8000001d : 4, i, &a, &b, &c, &d) || !(a & 31))
				break;
			size_t n = (size_t)((b >> 22) + 1) * ((b >> 12 & 1023) + 1) *
				   ((b & 4095) + 1) * ((size_t)c + 1);
			int level = a >> 5 & 7;
			if ((a & 31) == 2) /* instructions */
				continue;
			if (level == 1)
				t->l1 = n;
			else if (level == 2)
				t->l2 = n;
			else if (level == 3)
				t->l3 = n;
		}
}
#else
static unsigned isa_detect(void)
{
#if defined(__aarch64__)
	return ISA_NEON;
#else
	return 0;
#endif
}

static bool fma_is_wide(void)
{
	return false;
}

static void caches_detect(Target *t)
{
	(void)t;
}
#endif

static void caches_from_system(Target *t)
{
	for (int i = 0; i < 8; i++) {
		char path[96], type[32] = "";
		int level = 0;
		unsigned long kib = 0;
		static const char *const leaf[] = {"level", "size", "type"};
		for (int k = 0; k < 3; k++) {
			snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s",
				 i, leaf[k]);
			FILE *f = fopen(path, "re");
			if (!f)
				return;
			int got = k == 0   ? fscanf(f, "%d", &level)
				  : k == 1 ? fscanf(f, "%lu", &kib)
					   : fscanf(f, "%31s", type);
			fclose(f);
			if (got != 1)
				return;
		}
		if (!strcmp(type, "Instruction"))
			continue;
		size_t *slot = level == 1   ? &t->l1
			       : level == 2 ? &t->l2
			       : level == 3 ? &t->l3
					    : NULL;
		if (slot && !*slot)
			*slot = kib << 10;
	}
}

/* There is room for all rows of the table: what identifies a kernel is never cut. */
static void append(char *s, size_t room, const char *more)
{
	size_t n = strlen(s), m = strlen(more);
	assert(n + m < room);
	memcpy(s + n, more, m + 1);
}

static void host_make(void)
{
	Target *t = &host;
	t->isa = isa_detect();
	const char *limit = env_text("RICCI_ISA", "");
	unsigned sse2 = ISA_SSE2 | ISA_NEON, avx2 = sse2 | ISA_AVX2 | ISA_FMA | ISA_F16C;
	if (!strcmp(limit, "sse2"))
		t->isa &= sse2;
	else if (!strcmp(limit, "avx2"))
		t->isa &= avx2;
	else if (!strcmp(limit, "avx512"))
		t->isa &= avx2 | ISA_AVX512;
	t->masks = true;
	t->vector_bytes = t->isa & ISA_AVX512 ? 64 : t->isa & ISA_AVX2 ? 32 : 16;
	t->wide_fma = t->isa & ISA_AVX512 && fma_is_wide();
	caches_detect(t);
	if (!t->l1 || !t->l2)
		caches_from_system(t);
	if (!t->l1)
		t->l1 = 32 << 10;
	if (!t->l2)
		t->l2 = 256 << 10;
#if defined(__x86_64__)
	append(t->key, sizeof t->key, "x86_64");
#elif defined(__aarch64__)
	append(t->key, sizeof t->key, "aarch64");
#else
	append(t->key, sizeof t->key, "generic");
#endif
	for (int i = 0; i < COUNT(isa_row); i++)
		if (t->isa & isa_row[i].bit) {
			append(t->key, sizeof t->key, "+");
			append(t->key, sizeof t->key, isa_row[i].name);
			append(t->flags, sizeof t->flags,
			       isa_row[i].flags + (t->flags[0] == 0 && isa_row[i].flags[0]));
		}
	unmasked = *t;
	unmasked.masks = false;
	unmasked.spills = true;
}

/* Without fragments, with them, with groups; ordered. Devices that have fragments have atomics of 8 bytes; in
 * OpenCL those of 4 are sure. */
#define GRID .units = 108, .l1 = 48 << 10, .l2 = 40 << 20, .key = "grid"
static const Target grid[3][2] = {
	{{GRID, .atomics = 4}, {GRID, .atomics = 4, .ordered = true}},
	{{GRID, .atomics = 8, .fragments = true, .calls = true},
	 {GRID, .atomics = 8, .fragments = true, .calls = true, .ordered = true}},
	{{GRID, .atomics = 8, .fragments = true, .groups = true, .calls = true},
	 {GRID, .atomics = 8, .fragments = true, .groups = true, .calls = true, .ordered = true}},
};
#undef GRID

const Target *target_grid(bool fragments)
{
	return &grid[fragments][false];
}

const Target *target_groups(void)
{
	return &grid[2][false];
}

const Target *target_ordered(const Target *t)
{
	return t->units ? &grid[t->fragments + t->groups][true] : t;
}

const Target *target_host(void)
{
	pthread_once(&host_once, host_make);
	return &host;
}

const Target *target_unmasked(void)
{
	pthread_once(&host_once, host_make);
	return &unmasked;
}

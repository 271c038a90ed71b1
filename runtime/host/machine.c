/* machine.c - what the machine can do, measured: arithmetic, bandwidth, a launch.
 *
 * Input: a pool, so that the figures are those of its threads together. Output: the best of many
 * tries. The device model (device.c), `ricci run --roofline` (roofline.c) and bench/machine.c all
 * take their figures from here. Functions for several instruction sets are in this file by target
 * attributes; which of them run is decided by the target's bits, RICCI_ISA included.
 */
#define _GNU_SOURCE
#include "runtime/host/host.h"
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EACH12(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)
#define EACH24(F) EACH12(F) F(12) F(13) F(14) F(15) F(16) F(17) F(18) F(19) F(20) F(21) F(22) F(23)

typedef struct Probes {
	int vector_bytes, chains;
	double (*fma_f32)(int64_t rounds, double x, double y);
	double (*fma_f64)(int64_t rounds, double x, double y);
	void (*stream[3])(const float *from, const float *more, float *to, size_t n);
} Probes;

#if defined(__x86_64__)
#define NAME   avx512
#define VB     64
#define TARGET __attribute__((target("avx512f")))
#define EACH   EACH24
#define CHAINS 24
#include "runtime/host/machine.inc"

#define NAME   avx2
#define VB     32
#define TARGET __attribute__((target("avx2,fma")))
#define EACH   EACH12
#define CHAINS 12
#include "runtime/host/machine.inc"
#endif

#define NAME plain
#define VB   16
#define TARGET
#if defined(__aarch64__)
#define EACH   EACH24
#define CHAINS 24
#else
#define EACH   EACH12
#define CHAINS 12
#endif
#include "runtime/host/machine.inc"

static const Probes *probes_pick(void)
{
#if defined(__x86_64__)
	unsigned isa = target_host()->isa, fma2 = ISA_AVX2 | ISA_FMA;

	if (isa & ISA_AVX512)
		return &probes_avx512;
	if ((isa & fma2) == fma2)
		return &probes_avx2;
#endif
	return &probes_plain;
}

/* ---- bf16: products of 16-bit numbers added up in f32 ---- */
#if defined(__x86_64__)
#include <immintrin.h>

enum { DOT_FLOPS = 12 * 16 * 2 * 2, TILE_FLOPS = 4 * 16 * 16 * 32 * 2 }; /* of a round */

__attribute__((target("avx512f,avx512bf16"))) static double bf16_dots(int64_t rounds, double x,
								      double y)
{
#define FROM(i) __m512 c##i = _mm512_set1_ps((float)(i * x));
#define STEP(i) c##i = _mm512_dpbf16_ps(c##i, a, b);
#define SUM(i)	+c##i
	__m512bh a = (__m512bh)_mm512_set1_epi16((short)x),
		 b = (__m512bh)_mm512_set1_epi16((short)y);
	EACH12(FROM)
	for (; rounds > 0; rounds--) {
		EACH12(STEP)
	}
	__m512 sum = EACH12(SUM);
	return (double)sum[0];
#undef FROM
#undef STEP
#undef SUM
}

/* Four tiles of results, as a matrix product keeps them. */
__attribute__((target("amx-tile,amx-bf16"))) static double bf16_tiles(int64_t rounds, double x,
								      double y)
{
	struct {
		uint8_t palette, start, zero[14];
		uint16_t columns[16];
		uint8_t rows[16];
	} config = {.palette = 1};

	(void)x, (void)y;
	for (int i = 0; i < 8; i++) {
		config.columns[i] = 64;
		config.rows[i] = 16;
	}
	__asm__ volatile("" : : "g"(&config) : "memory"); /* gcc's _tile_loadconfig reads nothing */
	_tile_loadconfig(&config);
	_tile_zero(0);
	_tile_zero(1);
	_tile_zero(2);
	_tile_zero(3);
	_tile_zero(4);
	_tile_zero(5);
	_tile_zero(6);
	_tile_zero(7);
	for (; rounds > 0; rounds--) {
		_tile_dpbf16ps(0, 4, 6);
		_tile_dpbf16ps(1, 4, 7);
		_tile_dpbf16ps(2, 5, 6);
		_tile_dpbf16ps(3, 5, 7);
	}
	_tile_release();
	return 0;
}

/* The kernel gives the tiles' registers to who asks for them. */
static bool tiles_permitted(void)
{
	enum { ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };

	return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA) == 0;
}
#endif

/* ---- timing ---- */
typedef struct Probe {
	double (*chain)(int64_t rounds, double x, double y); /* NULL: stream */
	void (*stream)(const float *from, const float *more, float *to, size_t n);
	int64_t rounds;
	double work;	 /* flops or bytes of a part's round */
	float *array[3]; /* from, more, to: all parts' slices, of `n` floats each */
	size_t n;
} Probe;

static void probe_parts(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	const Probe *p = buf[0];
	volatile double sink = 0.999;

	(void)env;
	for (int64_t k = begin; k < end; k++)
		if (p->chain)
			sink = p->chain(p->rounds, sink, 0.5);
		else if (p->stream)
			for (int64_t r = 0; r < p->rounds; r++)
				p->stream(p->array[0] + (size_t)k * p->n,
					  p->array[1] + (size_t)k * p->n,
					  p->array[2] + (size_t)k * p->n, p->n);
}

static double probe_once(Pool *pool, Probe *p, int64_t parts)
{
	Kernel k = {.run = probe_parts, .shape.parts = parts};
	void *buf[1] = {p};
	double t = clock_seconds();

	pool_run(pool, &k, buf, 0, 0, NULL);
	t = clock_seconds() - t;
	return fmax(t, 1e-9);
}

static double least_seconds(Pool *pool, Probe *p, int64_t parts, double seconds)
{
	double until = clock_seconds() + seconds, least = INFINITY;

	for (int tries = 0; tries < 3 || clock_seconds() < until; tries++)
		least = fmin(least, probe_once(pool, p, parts));
	return least;
}

/* Work a second of all threads. */
static double probe_rate(Pool *pool, Probe *p, double seconds)
{
	double long_enough = fmin(3e-4, seconds / 4); /* beside a launch */
	int64_t threads = pool_threads(pool);

	for (p->rounds = 1; probe_once(pool, p, threads) < long_enough && p->rounds < 1 << 30;)
		p->rounds *= 2;
	return p->work * (double)(p->rounds * threads) / least_seconds(pool, p, threads, seconds);
}

double machine_flops(Pool *pool, Type type, double seconds)
{
	const Probes *s = probes_pick();
	Probe p = {0};

	if (type == RICCI_F32 || type == RICCI_F64) {
		p.chain = type == RICCI_F32 ? s->fma_f32 : s->fma_f64;
		p.work = 2.0 * s->chains * s->vector_bytes / (double)type_size(type);
	}
#if defined(__x86_64__)
	unsigned isa = target_host()->isa;

	if (type == RICCI_BF16 && isa & ISA_AMX && tiles_permitted()) {
		p.chain = bf16_tiles;
		p.work = TILE_FLOPS;
	} else if (type == RICCI_BF16 && isa & ISA_AVX512BF16) {
		p.chain = bf16_dots;
		p.work = DOT_FLOPS;
	}
#endif
	return p.chain ? probe_rate(pool, &p, seconds) : 0;
}

enum { ARRAYS = 3, PAIR = 128 }; /* at most; bytes of the widest vectors, two of them */

double machine_stream(Pool *pool, Stream how, void *memory, size_t bytes, double seconds)
{
	static const struct {
		int arrays, which[ARRAYS]; /* from, more, to */
	} row[] = {[STREAM_READ] = {1, {0, 0, 0}},
		   [STREAM_COPY] = {2, {0, 0, 1}},
		   [STREAM_TRIAD] = {3, {0, 1, 2}}};
	int arrays = row[how].arrays;
	size_t threads = (size_t)pool_threads(pool), part = bytes / (size_t)arrays / threads;
	Probe p = {.stream = probes_pick()->stream[how], .n = part / PAIR * PAIR / sizeof(float)};

	p.work = (double)p.n * arrays * sizeof(float);
	for (int i = 0; i < ARRAYS; i++)
		p.array[i] = (float *)memory + (size_t)row[how].which[i] * threads * p.n;
	return p.n ? probe_rate(pool, &p, seconds) : 0;
}

double machine_bandwidth(Pool *pool, Stream how, size_t bytes, double seconds)
{
	size_t least = ARRAYS * PAIR * (size_t)pool_threads(pool),
	       n = bytes < least ? least : bytes;
	void *memory = buffer_new(n);
	double rate = 0;

	if (memory) {
		memset(memory, 0x11, n); /* pages that were never written are all one */
		rate = machine_stream(pool, how, memory, n, seconds);
	}
	buffer_free(memory);
	return rate;
}

/* How much longer a part for each thread takes, launched, than one part just called. */
double machine_launch(Pool *pool, double seconds)
{
	static const double least = 1e-8;
	Probe p = {.chain = probes_pick()->fma_f32, .rounds = 2000};
	void *buf[1] = {&p};
	double all = least_seconds(pool, &p, pool_threads(pool), seconds), one = all;

	for (int tries = 0; tries < 10; tries++) {
		double t = clock_seconds();

		probe_parts(buf, NULL, 0, 1);
		one = fmin(one, clock_seconds() - t);
	}
	return fmax(all - one, least);
}

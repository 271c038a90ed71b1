/* pack_vector.h - packing panels with vectors (pack_vector.inc): its limits, and squares of
 * elements whose rows are stored as columns. */
#ifndef JIT_MICRO_PACK_VECTOR_H
#define JIT_MICRO_PACK_VECTOR_H

#include "jit/micro/pack.h"
#include <immintrin.h>
#include <string.h>

enum {
	MOST_VECTORS = 4,
	MOST_RUNS = 16,
	MOST_TURN = 64,
	MOST_CONDITIONS = 24,
	AHEAD = 40,
	LINE = 64
};

typedef int32_t Int4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t Int8 __attribute__((vector_size(32), aligned(4), may_alias));

#define SIDE(a, b, n)                                                                              \
	__builtin_shufflevector(a, b, 0 + n, 1 + n, 8 + n, 9 + n, 4 + n, 5 + n, 12 + n, 13 + n)
#define PAIR(a, b, n)                                                                              \
	__builtin_shufflevector(a, b, 0 + n, 8 + n, 1 + n, 9 + n, 4 + n, 12 + n, 5 + n, 13 + n)
#define HALF(a, b, n)                                                                              \
	__builtin_shufflevector(a, b, 0 + n, 1 + n, 2 + n, 3 + n, 8 + n, 9 + n, 10 + n, 11 + n)

typedef float Row8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef double Row4 __attribute__((vector_size(32), aligned(8), may_alias));

/* dst[k*step + l] = row[l][k] for k < n and l < 8. */
static inline __attribute__((always_inline)) void turn_f32(const Row8 *row, float *dst,
							   int64_t step, int64_t n)
{
	Row8 pair[8], side[8];
	for (int l = 0; l < 8; l += 2) {
		pair[l] = PAIR(row[l], row[l + 1], 0);
		pair[l + 1] = PAIR(row[l], row[l + 1], 2);
	}
	for (int l = 0; l < 8; l += 4)
		for (int i = 0; i < 2; i++) {
			side[l + 2 * i] = SIDE(pair[l + i], pair[l + i + 2], 0);
			side[l + 2 * i + 1] = SIDE(pair[l + i], pair[l + i + 2], 2);
		}
	for (int k = 0; k < 4 && k < n; k++)
		*(Row8 *)(dst + k * step) = HALF(side[k], side[k + 4], 0);
	for (int k = 0; k < 4 && k + 4 < n; k++)
		*(Row8 *)(dst + (k + 4) * step) = HALF(side[k], side[k + 4], 4);
}

/* The same for l < 4. */
static inline __attribute__((always_inline)) void turn_f64(const Row4 *row, double *dst,
							   int64_t step, int64_t n)
{
	Row4 ab = __builtin_shufflevector(row[0], row[1], 0, 4, 2, 6),
	     AB = __builtin_shufflevector(row[0], row[1], 1, 5, 3, 7);
	Row4 cd = __builtin_shufflevector(row[2], row[3], 0, 4, 2, 6),
	     CD = __builtin_shufflevector(row[2], row[3], 1, 5, 3, 7);
	Row4 turned[4] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5),
			  __builtin_shufflevector(AB, CD, 0, 1, 4, 5),
			  __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
			  __builtin_shufflevector(AB, CD, 2, 3, 6, 7)};
	for (int k = 0; k < 4 && k < n; k++)
		*(Row4 *)(dst + k * step) = turned[k];
}

/* dst[k*step + l] = row[l][k] for k, l < 8. Halves of rows are put beside each other while they are
 * loaded, which costs no shuffle. */
#define BESIDE_F32(a, b)                                                                           \
	_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a)), _mm_loadu_ps(b), 1)
static inline __attribute__((always_inline)) void turn_all_f32(const float *const *row, int64_t at,
							       float *dst, int64_t step)
{
	for (int k = 0; k < 8; k += 4) {
		Row8 ae = BESIDE_F32(row[0] + at + k, row[4] + at + k);
		Row8 bf = BESIDE_F32(row[1] + at + k, row[5] + at + k);
		Row8 cg = BESIDE_F32(row[2] + at + k, row[6] + at + k);
		Row8 dh = BESIDE_F32(row[3] + at + k, row[7] + at + k);
		Row8 ab = PAIR(ae, bf, 0), cd = PAIR(cg, dh, 0);
		Row8 AB = PAIR(ae, bf, 2), CD = PAIR(cg, dh, 2);
		*(Row8 *)(dst + k * step) = SIDE(ab, cd, 0);
		*(Row8 *)(dst + (k + 1) * step) = SIDE(ab, cd, 2);
		*(Row8 *)(dst + (k + 2) * step) = SIDE(AB, CD, 0);
		*(Row8 *)(dst + (k + 3) * step) = SIDE(AB, CD, 2);
	}
}

/* The same for k, l < 4. */
#define BESIDE_F64(a, b)                                                                           \
	_mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(a)), _mm_loadu_pd(b), 1)
static inline __attribute__((always_inline)) void turn_all_f64(const double *const *row, int64_t at,
							       double *dst, int64_t step)
{
	for (int k = 0; k < 4; k += 2) {
		Row4 ac = BESIDE_F64(row[0] + at + k, row[2] + at + k);
		Row4 bd = BESIDE_F64(row[1] + at + k, row[3] + at + k);
		*(Row4 *)(dst + k * step) = __builtin_shufflevector(ac, bd, 0, 4, 2, 6);
		*(Row4 *)(dst + (k + 1) * step) = __builtin_shufflevector(ac, bd, 1, 5, 3, 7);
	}
}

#define PANEL_SYMBOLS(isa)                                                                         \
	const JitSymbol panel_symbols_##isa[] = {                                                  \
		{"ricci_pack_f32", (const void *)pack_f32},                                        \
		{"ricci_pack_f64", (const void *)pack_f64},                                        \
		{"ricci_panel_f32", (const void *)panel_f32},                                      \
		{"ricci_panel_f64", (const void *)panel_f64},                                      \
		{"ricci_unpack_f32", (const void *)unpack_f32},                                    \
		{"ricci_unpack_f64", (const void *)unpack_f64},                                    \
		{NULL, NULL},                                                                      \
	};

#endif

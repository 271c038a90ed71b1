/* kernel.h - the list macros that jit/micro/kernel.inc is made of, and the table rows of each
 * instruction set. */
#ifndef MICROKERNEL_H
#define MICROKERNEL_H

#include "jit/micro/micro.h"

#include <string.h>

/* The element type and the shape are in the name; the sets in micro.c's table. */
#define MICRO_DECLARE(isa)                                                                         \
	MicroFn ricci_micro_f32_##isa, ricci_micro_f64_##isa, ricci_micro_i32_##isa;               \
	MicroPlacedFn ricci_micro_f32_##isa##_placed, ricci_micro_f64_##isa##_placed,              \
		ricci_micro_i32_##isa##_placed;                                                    \
	MicroBothFn ricci_micro_f32_##isa##_both, ricci_micro_f64_##isa##_both,                    \
		ricci_micro_i32_##isa##_both;                                                      \
	MicroListedFn ricci_micro_f32_##isa##_listed, ricci_micro_f64_##isa##_listed,              \
		ricci_micro_i32_##isa##_listed;
MICRO_DECLARE(sse2)
MICRO_DECLARE(avx2)
MICRO_DECLARE(avx512)
MICRO_DECLARE(neon)
MicroPlacedFn ricci_micro_bf16_avx512bf16_placed;
MicroListedFn ricci_micro_bf16_avx512bf16_listed;
MicroFn ricci_micro_i8_sse2, ricci_micro_i8_avx2, ricci_micro_bf16_avx512bf16, ricci_micro_bf16_amx,
	ricci_micro_i8i8_amx, ricci_micro_i8u8_amx, ricci_micro_u8i8_amx, ricci_micro_u8u8_amx;
MicroStateFn ricci_tiles_enter, ricci_tiles_leave;
/* Those of kernel_bytes.inc. */
#define MICRO_DECLARE_BYTES(isa)                                                                   \
	MicroFn ricci_micro_i8i8_##isa, ricci_micro_i8u8_##isa, ricci_micro_u8i8_##isa,            \
		ricci_micro_u8u8_##isa;                                                            \
	MicroFinishFn ricci_flip_##isa, ricci_sums_i8_##isa, ricci_sums_u8_##isa;
MICRO_DECLARE_BYTES(avx512vnni)

/* ROWS: F(row, x) for each row. Two families, because a row's macros walk the columns. */
#define MICRO_R2(F, x)	F(0, x) F(1, x)
#define MICRO_R4(F, x)	MICRO_R2(F, x) F(2, x) F(3, x)
#define MICRO_R6(F, x)	MICRO_R4(F, x) F(4, x) F(5, x)
#define MICRO_R8(F, x)	MICRO_R6(F, x) F(6, x) F(7, x)
#define MICRO_R10(F, x) MICRO_R8(F, x) F(8, x) F(9, x)
#define MICRO_R12(F, x) MICRO_R10(F, x) F(10, x) F(11, x)
#define MICRO_R14(F, x) MICRO_R12(F, x) F(12, x) F(13, x)
#define MICRO_C1(F, x)	F(0, x)
#define MICRO_C2(F, x)	F(0, x) F(1, x)
#define MICRO_C3(F, x)	F(0, x) F(1, x) F(2, x)
/* The last column half as wide as a vector. */
#define MICRO_C0H(F, x) F##_HALF(0, x)
#define MICRO_C1H(F, x) F(0, x) F##_HALF(1, x)

/* The places to be prefetched in even and in odd steps along K, and how far they move in two, in bytes. */
typedef struct MicroNext {
	const char *even, *odd;
	int64_t even_step, odd_step;
} MicroNext;

#define MICRO_TOUCH1(j, i)	__builtin_prefetch(c + i * ldc + j * JOIN(NAME, lanes));
#define MICRO_TOUCH1_HALF(j, i) MICRO_TOUCH1(j, i)
#define MICRO_TOUCH(i, x)	COLS(MICRO_TOUCH1, i)
#define MICRO_PLACE(i, x)	const E *a##i = (const E *)a + ts[i];

/* What tiles begin with: zeros, or what stands behind b's panel. */
#define MICRO_BEHIND(j, x) *(const U *)(b + k * JOIN(NAME, nr) + j * JOIN(NAME, lanes))
#define MICRO_NOTHING(j, x)                                                                        \
	(V)                                                                                        \
	{                                                                                          \
		0                                                                                  \
	}
#define MICRO_ZERO1(j, i)      V c##i##_##j = BEGIN(j, );
#define MICRO_ZERO1_HALF(j, i) HALF c##i##_##j = {0};
#define MICRO_ZERO(i, x)       COLS(MICRO_ZERO1, i)

#define MICRO_LOAD(j, x)      VW b##j = *(const UW *)(b + j * JOIN(NAME, lanes));
#define MICRO_LOAD_HALF(j, x) HALF b##j = *(const HALF_U *)(b + j * JOIN(NAME, lanes));

#define MICRO_MULTIPLY1(j, i)	   c##i##_##j = MULTIPLY_ADD(c##i##_##j, (ai - (VW){0}), b##j);
#define MICRO_MULTIPLY1_HALF(j, i) c##i##_##j += (ai - (HALF){0}) * b##j;
#define MICRO_MULTIPLY(i, value)                                                                   \
	{                                                                                          \
		ELEMENT ai = SPREAD(value);                                                        \
		COLS(MICRO_MULTIPLY1, i)                                                           \
	}
#define MICRO_PACKED(i, x) MICRO_MULTIPLY(i, a[i])
/* Fewer rows take all the loads that the multiply-adds leave. */
#define MICRO_PREFETCH(place, step)                                                                \
	if (MR >= 8) {                                                                             \
		__builtin_prefetch(place, 0, 2);                                                   \
		place += step;                                                                     \
	}
#define MICRO_STEP                                                                                 \
	{                                                                                          \
		COLS(MICRO_LOAD, )                                                                 \
		ROWS(MICRO_PACKED, )                                                               \
		a += MR;                                                                           \
		b += JOIN(NAME, nr);                                                               \
	}
/* Of many rows the last ones' places are read anew, as there are not enough registers: gcc 12
 * spills them to vectors', which takes a tenth of the speed. */
#define MICRO_PLACED(i, x)                                                                         \
	MICRO_MULTIPLY(i, *(const WORD *)(i < MICRO_KEPT                                           \
						  ? a##i + at                                      \
						  : (const E *)a + at +                            \
							    *(const volatile int64_t *)&ts[i]))
enum { MICRO_KEPT = 8 };

/* Rows that lie evenly apart need the place of each third row only: the next two are one and two steps
 * from there, which addresses hold. Few rows have registers for all their places: then these steps pay
 * where places along K follow each other, too, and are told by displacements. */
static inline bool micro_evenly(const int64_t *ts, int rows)
{
	bool same = true;
	for (int i = 2; i < rows; i++)
		same &= ts[i] - ts[i - 1] == ts[1] - ts[0];
	return same;
}
#define MICRO_THIRDS                                                                               \
	const E *third[(R + 2) / 3];                                                               \
	const int64_t apart = ts[1] - ts[0];                                                       \
	third[0] = (const E *)a + ts[0];                                                           \
	for (int q = 1; q < (R + 2) / 3; q++)                                                      \
		third[q] = third[q - 1] + 3 * apart;
#define MICRO_NEXT_THIRDS                                                                          \
	for (int q = 0; q < (R + 2) / 3; q++)                                                      \
		third[q] += GROUP;
/* Asks for what the next panel of A has of these n elements of K (groups of them), `row` being its places
 * (MICRO_AHEAD). Returns n. */
static inline __attribute__((always_inline)) int64_t micro_ask(const char *a, size_t size,
							       const int64_t *row, int64_t rows,
							       const int64_t *tk, int group,
							       int64_t n, int64_t add)
{
	int64_t each = add >> MICRO_AHEAD & MICRO_EACH, deep = add >> MICRO_DEEP & MICRO_EACH;
	for (int64_t i = 0; each && i < n; i += deep)
		for (int64_t r = rows - 1; r >= 0; r -= each)
			__builtin_prefetch(a + (row[r] + tk[i * group]) * (int64_t)size, 0, 2);
	return n;
}
enum { MICRO_ASKED = 16 }; /* elements of K at a time: a line of them */
#define MICRO_ASK                                                                                  \
	micro_ask((const char *)a, sizeof(E), ts + R, R, tk, GROUP,                                \
		  k < MICRO_ASKED ? k : MICRO_ASKED, add)
#define MICRO_EVEN(i, x) MICRO_MULTIPLY(i, *(const WORD *)(third[i / 3] + at + i % 3 * apart))
/* All of K by elements of A whose places are read, a row's by ROW. */
#define MICRO_PLACED_STEPS(ROW)                                                                    \
	for (int64_t n; k > 0; k -= n) {                                                           \
		n = MICRO_ASK;                                                                     \
		_Pragma("GCC unroll 2") for (int64_t left = n; left > 0;                           \
					     left--, tk += GROUP, b += JOIN(NAME, nr))             \
		{                                                                                  \
			int64_t at = *tk;                                                          \
			COLS(MICRO_LOAD, )                                                         \
			ROWS(ROW, )                                                                \
		}                                                                                  \
	}
#define MICRO_BOTH_STEPS(ROW)                                                                      \
	_Pragma("GCC unroll 2") for (; k > 0; k--, tk += GROUP, tb += GROUP)                       \
	{                                                                                          \
		int64_t at = *tk;                                                                  \
		const W *b = (const W *)((const E *)from + *tb);                                   \
		__builtin_prefetch((const char *)b + ahead, 0, 2);                                 \
		COLS(MICRO_LOAD, )                                                                 \
		ROWS(ROW, )                                                                        \
	}

#define MICRO_ADD1(j, i)	*(U *)(c + i * ldc + j * JOIN(NAME, lanes)) += c##i##_##j;
#define MICRO_ADD1_HALF(j, i)	*(HALF_U *)(c + i * ldc + j * JOIN(NAME, lanes)) += c##i##_##j;
#define MICRO_ADD(i, x)		COLS(MICRO_ADD1, i)
#define MICRO_STORE1(j, i)	*(U *)(c + i * ldc + j * JOIN(NAME, lanes)) = c##i##_##j;
#define MICRO_STORE1_HALF(j, i) *(HALF_U *)(c + i * ldc + j * JOIN(NAME, lanes)) = c##i##_##j;
#define MICRO_STORE(i, x)	COLS(MICRO_STORE1, i)

#endif

/* kernel_sse2.c - micro-kernels for any x86-64 processor: 16-byte vectors, multiply and add
 * apart. */
#include "jit/micro/kernel.h"
#include <immintrin.h>

#if defined(__SSE2__)

#define VB 16
#define MR 4
#define NV 2

#define NAME ricci_micro_f32_sse2
#define T    float
#include "jit/micro/kernel.inc"
#undef NAME
#undef T

#define NAME ricci_micro_f64_sse2
#define T    double
#include "jit/micro/kernel.inc"
#undef NAME
#undef T

#define NAME ricci_micro_i32_sse2
#define T    unsigned /* sums wrap */
#include "jit/micro/kernel.inc"
#undef NAME
#undef T

#define NAME  ricci_micro_i8_sse2
#define T     int
#define W     int /* two 16-bit elements */
#define GROUP 2
#define MULTIPLY_ADD(c, a, b)                                                                      \
	(V) _mm_add_epi32((__m128i)(c), _mm_madd_epi16((__m128i)(a), (__m128i)(b)))
#include "jit/micro/kernel.inc"
#endif

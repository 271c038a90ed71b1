/* kernel_avx2.c - micro-kernels for AVX2 with FMA; compiled with -mavx2 -mfma. */
#include "jit/micro/kernel.h"
#include <immintrin.h>

#if defined(__AVX2__) && defined(__FMA__)

#define VB 32
#define MR 6
#define NV 2

#define NAME ricci_micro_f32_avx2
#define T    float
#include "jit/micro/kernel.inc"
#undef NAME
#undef T

#define NAME ricci_micro_f64_avx2
#define T    double
#include "jit/micro/kernel.inc"
#undef NAME
#undef T

#define NAME ricci_micro_i32_avx2
#define T    unsigned /* sums wrap */
#include "jit/micro/kernel.inc"
#undef NAME
#undef T

#define NAME  ricci_micro_i8_avx2
#define T     int
#define W     int /* two 16-bit elements */
#define GROUP 2
#define MULTIPLY_ADD(c, a, b)                                                                      \
	(V) _mm256_add_epi32((__m256i)(c), _mm256_madd_epi16((__m256i)(a), (__m256i)(b)))
#include "jit/micro/kernel.inc"
#endif

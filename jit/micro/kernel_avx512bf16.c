/* kernel_avx512bf16.c - micro-kernels for bf16 factors and f32 sums on AVX-512. The processor
 * takes subnormal numbers for zero here, in factors and sums. */
#include "jit/micro/kernel.h"

#if defined(__AVX512BF16__)
#include <immintrin.h>

#define VB 64
#define MR 14
#define NV 2

#define NAME		      ricci_micro_bf16_avx512bf16
#define T		      float
#define W		      int /* two elements */
#define E		      short
#define GROUP		      2
#define MULTIPLY_ADD(c, a, b) (V) _mm512_dpbf16_ps((__m512)(c), (__m512bh)(a), (__m512bh)(b))
#include "jit/micro/kernel.inc"
#endif

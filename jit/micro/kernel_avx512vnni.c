/* kernel_avx512vnni.c - micro-kernels for bytes on AVX-512 with VNNI: panels hold them as
 * pairs of 16-bit numbers, so that signed and unsigned ones may meet. */
#include "jit/micro/kernel.h"

#if defined(__AVX512VNNI__)
#include <immintrin.h>

#define VB 64
#define MR 14
#define NV 2

#define NAME		      ricci_micro_i8_avx512vnni
#define T		      int
#define W		      int /* two 16-bit elements */
#define GROUP		      2
#define MULTIPLY_ADD(c, a, b) (V) _mm512_dpwssd_epi32((__m512i)(c), (__m512i)(a), (__m512i)(b))
#include "jit/micro/kernel.inc"
#endif

/* kernel_avx512vnni.c - micro-kernels for bytes on AVX-512 with VNNI. */
#include "jit/micro/kernel.h"

#if defined(__AVX512VNNI__)
#include <immintrin.h>

#define VB	     64
#define MR	     14
#define NV	     2
#define BYTES(what)  ricci_##what##_avx512vnni
#define DOT(c, u, s) (V512) _mm512_dpbusd_epi32((__m512i)(c), (__m512i)(u), (__m512i)(s))
typedef unsigned V512 __attribute__((vector_size(VB)));
#include "jit/micro/kernel_bytes.inc"
#endif

/* kernel_avx512.c - micro-kernels for AVX-512; compiled with -mavx512f -mavx512dq -mavx512vl
 * -mavx512bw -mprefer-vector-width=512. */
#include "jit/micro/kernel.h"

#if defined(__AVX512F__)

#define VB	64
#define HALF_VB 32
#define MR	14
#define NV	2

#define NAME ricci_micro_f32_avx512
#define T    float
#include "jit/micro/kernel.inc"
#undef NAME
#undef T

#define NAME ricci_micro_f64_avx512
#define T    double
#include "jit/micro/kernel.inc"
#undef NAME
#undef T

#define NAME ricci_micro_i32_avx512
#define T    unsigned /* sums wrap */
#include "jit/micro/kernel.inc"
#endif

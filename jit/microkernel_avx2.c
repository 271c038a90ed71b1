/* microkernel_avx2.c - micro-kernels for AVX2 with FMA; compiled with -mavx2 -mfma. */
#include "jit/microkernel.h"

#if defined(__AVX2__) && defined(__FMA__)

#define VB 32
#define MR 6
#define NV 2

#define NAME ricci_micro_f32_avx2
#define T    float
#include "jit/microkernel.inc"
#undef NAME
#undef T

#define NAME ricci_micro_f64_avx2
#define T    double
#include "jit/microkernel.inc"
#undef NAME
#undef T

#define NAME ricci_micro_i32_avx2
#define T    unsigned /* sums wrap */
#include "jit/microkernel.inc"
#endif

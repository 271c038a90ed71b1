/* kernel_neon.c - micro-kernels for 64-bit ARM: 16-byte vectors, 32 registers. */
#include "jit/micro/kernel.h"

#if defined(__ARM_NEON) && defined(__aarch64__)

#define VB 16
#define MR 8
#define NV 3

#define NAME ricci_micro_f32_neon
#define T    float
#include "jit/micro/kernel.inc"
#undef NAME
#undef T

#define NAME ricci_micro_f64_neon
#define T    double
#include "jit/micro/kernel.inc"
#undef NAME
#undef T

#define NAME ricci_micro_i32_neon
#define T    unsigned /* sums wrap */
#include "jit/micro/kernel.inc"
#endif

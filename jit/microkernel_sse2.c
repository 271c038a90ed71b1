/* microkernel_sse2.c - micro-kernels for any x86-64 processor: 16-byte vectors, multiply and add
 * apart. */
#include "jit/microkernel.h"

#if defined(__SSE2__)

#define VB 16
#define MR 4
#define NV 2

#define NAME ricci_micro_f32_sse2
#define T    float
#include "jit/microkernel.inc"
#undef NAME
#undef T

#define NAME ricci_micro_f64_sse2
#define T    double
#include "jit/microkernel.inc"
#undef NAME
#undef T

#define NAME ricci_micro_i32_sse2
#define T    unsigned /* sums wrap */
#include "jit/microkernel.inc"
#endif

/* library.h - vendor libraries as steps of schedules: what lower_library.c calls, and whether it is
 * there. */
#ifndef JIT_LIBRARY_H
#define JIT_LIBRARY_H

#include "jit/internal.h"

/* c[i*ldc + j] = sum_k a(i,k) b(k,j), added to what is there when `add` is not 0; a(i,k) is
 * a[i*lda + k], or a[k*lda + i] when `turned` has bit 0; b(k,j) likewise with bit 1. Leading
 * dimensions are at least as long as the rows they step over. */
#define LIBRARY_PRODUCT_F32 "ricci_product_f32"
#define LIBRARY_PRODUCT_F64 "ricci_product_f64"
extern const JitSymbol library_symbols[]; /* ends with NULL */

#endif

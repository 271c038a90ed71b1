/* draws.h - the instruction sets for which draws.inc is built. */
#ifndef DRAWS_H
#define DRAWS_H

#include "jit/jit.h"

/* DRAW_CHUNK values from element 4*first on. */
typedef void DrawFn(const Distribution *d, uint64_t first, float *dst);
DrawFn draw_chunk_avx2, draw_chunk_avx512; /* draw_chunk_plain: jit/jit.h */

#endif

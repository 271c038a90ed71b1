/* draws_avx2.c - draws.inc for avx2. */
#define DRAW draw_chunk_avx2
#include "jit/builtin/draws.inc"

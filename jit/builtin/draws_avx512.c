/* draws_avx512.c - draws.inc for avx512. */
#define DRAW draw_chunk_avx512
#include "jit/builtin/draws.inc"

/* pack_narrow_avx2.c - packing factors of 8 and 16 bits, for AVX2. */
#define TABLE pack_narrow_avx2
#include "jit/micro/pack_narrow.inc"

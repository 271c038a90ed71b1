/* vectorlib_avx2.c - operations over chunks for AVX2 with FMA; compiled with -mavx2 -mfma. */
#define TABLE vector_symbols_avx2
#include "jit/builtin/vectorlib.inc"

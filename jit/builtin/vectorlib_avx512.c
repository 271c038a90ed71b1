/* vectorlib_avx512.c - operations over chunks for AVX-512. */
#define TABLE vector_symbols_avx512
#include "jit/builtin/vectorlib.inc"

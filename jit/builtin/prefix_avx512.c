/* prefix_avx512.c - running sums of lines with AVX-512. */
#if defined(__AVX512F__)
#define TABLE prefix_symbols_avx512
#define BYTES 64
#include "jit/builtin/prefix.inc"
#endif

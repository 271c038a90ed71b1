/* prefix_avx2.c - running sums of lines with AVX2. */
#if defined(__AVX2__)
#define TABLE prefix_symbols_avx2
#define BYTES 32
#include "jit/builtin/prefix.inc"
#endif

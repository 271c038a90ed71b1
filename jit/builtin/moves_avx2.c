/* moves_avx2.c - turning and streaming blocks of memory with AVX2; compiled with -mavx2. */
#if defined(__AVX2__)
#define TABLE move_symbols_avx2
#include "jit/builtin/moves.inc"
#endif

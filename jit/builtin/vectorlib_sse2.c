/* vectorlib_sse2.c - operations over chunks for any x86-64 processor. */
#define TABLE vector_symbols_sse2
#include "jit/builtin/vectorlib.inc"

/* vectorlib_neon.c - operations over chunks for 64-bit ARM. */
#define TABLE vector_symbols_neon
#include "jit/builtin/vectorlib.inc"

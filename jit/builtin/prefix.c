/* prefix.c - running sums of lines on any processor. */
#define TABLE prefix_symbols_plain
#define BYTES 16
#include "jit/builtin/prefix.inc"

/* moves.c - turning and streaming blocks of memory on any processor. */
#define TABLE move_symbols_plain
#include "jit/builtin/moves.inc"

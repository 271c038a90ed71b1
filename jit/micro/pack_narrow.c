/* pack_narrow.c - packing factors of 8 and 16 bits, for any processor. */
#define TABLE pack_narrow_plain
#include "jit/micro/pack_narrow.inc"

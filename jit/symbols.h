/* symbols.h - what generated code may call by name. */
#ifndef JIT_SYMBOLS_H
#define JIT_SYMBOLS_H

const void *jit_symbol(const char *name); /* NULL: nothing that it may call */

#endif

/* symbols.h - what generated code may call by name. */
#ifndef JIT_SYMBOLS_H
#define JIT_SYMBOLS_H

const void *jit_symbol(const char *name); /* NULL: nothing that it may call */
/* Function number i of those that compilers call without being asked to; NULL: no more. */
const char *jit_helper(int i);

#endif

/* builtin.h - functions compiled ahead that generated code calls by name. */
#ifndef JIT_BUILTIN_H
#define JIT_BUILTIN_H

#include "jit/jit.h"

/* A function that generated code may call. Lists of them end with NULL; jit/symbols.c has all. */
typedef struct JitSymbol {
	const char *name;
	const void *address;
} JitSymbol;

/* Text of static inline functions with the names of the math symbols (mathlib.c). */
extern const char jit_math_prelude[];

extern const JitSymbol math_symbols[];				  /* mathlib.c */
extern const JitSymbol move_symbols_plain[], move_symbols_avx2[]; /* moves.inc */
extern const JitSymbol prefix_symbols_plain[], prefix_symbols_avx2[],
	prefix_symbols_avx512[]; /* prefix.inc */

#endif

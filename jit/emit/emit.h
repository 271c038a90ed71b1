/* emit.h - loop trees as the text of a kernel in one of the dialects. */
#ifndef JIT_EMIT_H
#define JIT_EMIT_H

#include "jit/tree/tree.h"

typedef struct Dialect {
	const char *backend; /* its row in backends[] */
	Capabilities caps;
	const char *prelude; /* types and helpers, once a file */
	const char *math;    /* functions of the operators: declarations or definitions */
	const char *before_math, *after_math; /* lines around them; NULL: none */
	const char *restrict_;		      /* how a pointer says that it is not aliased */
	const char *few_lanes;		      /* before vector loops of up to 4 steps; or NULL */
	const char *vector, *unroll; /* lines before such loops; unroll takes the count as %d */
	const char *align;	     /* of local arrays */
	const char *sync;	     /* a barrier for the threads of a block */
	const char
		*block_arrays; /* declares `block_memory`, the bytes that a launch gives a block */
	const char *block_memory; /* before an array that a block's threads share */
	const char *
		prefetch; /* (address, 0, 2) prefetches what is to be read, to L2; NULL: nothing does */
	const char *lanes;  /* types and functions of vectors under masks; NULL: there are none */
	const char *kernel; /* begins a grid's kernel, of the name %s; its parameters are buffers */
	const char *memory; /* before the type of what is in a device's memory; NULL: nothing */
	const char *calls;  /* functions that trees call, of a grid with caps.fragments */
	const char *atomics; /* ricci_atomic_add_f32 and so on, of a grid with caps.atomics */
	const char *
		wide; /* a type, aligned to %d bytes, of elements %s v[%d], called %s; NULL: none */
	const char *bounds;	    /* before its name: it runs in blocks of %d threads */
	const char *block, *thread; /* lines that set i%d to their numbers; all NULL: no grid */
	bool strict;		    /* no compiler may warn: of unused variables neither */
} Dialect;
extern const Dialect dialect_tcc, dialect_cc, dialect_c99, dialect_cuda,
	dialect_opencl; /* jit/dialect/ */
const Dialect *dialect_find(const char *backend);
extern const char *const dialect_ctype[RICCI_NTYPES];	/* how an element is stored */
extern const char *const dialect_compute[RICCI_NTYPES]; /* the type of a value in an expression */
#define EMIT_MAX_SCOPES 96
typedef struct EmitTexts { /* owned by the caller, so that running out of memory leaks nothing */
	Text scope[EMIT_MAX_SCOPES + 1]; /* the last: finished functions */
} EmitTexts;
int emit_tree(Text *out, EmitTexts *texts, const Tree *t, const Dialect *d, const char *name,
	      Error *err);

#endif

/* lower_nest.h - direct nests: the loops of a schedule (lower_replay.c) and the tree made of them
 * (lower_nest.c). */
#ifndef JIT_LOWER_NEST_H
#define JIT_LOWER_NEST_H

#include "jit/internal.h"

#define MAX_LOOPS  48
#define MAX_GUARDS 32

typedef struct Loop {
	int axis; /* of the problem */
	int64_t stride, extent;
	bool reduced;
	How how;
	Node *var, *val; /* the loop variable, and what stands for it now (NULL: not open) */
	bool tile;	 /* a dimension of the accumulator */
} Loop;

typedef struct Build {
	Problem *p;
	Ir *ir;
	Tree *t;
	const Dialect *d;
	int nloop, order[MAX_LOOPS], nparallel, nouter;
	Loop loop[MAX_LOOPS];
	bool full[COMP_MAX_AXES]; /* the bounds of this axis hold by themselves here */
	Node *acc, *body;
	int nguard;
	Node *guard[MAX_GUARDS];
	bool placed[MAX_GUARDS];
	bool reducing; /* building the loops around the main statement */
} Build;

/* Applies the steps of s to the problem's axes; refuses orders that would change the result. */
int nest_replay(Build *b, const Schedule *s, Error *err);

#endif

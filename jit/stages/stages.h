/* stages.h - equations that together compute what one does. */
#ifndef JIT_STAGES_H
#define JIT_STAGES_H

#include "jit/fuse/subgraph.h"
#include "jit/lower.h"

enum { STAGES_MOST = 4 };

/* A subgraph's equations, in place of which others run, one after the other: each a subgraph of its own, that
 * reads what those before it computed. */
typedef struct Stages {
	int n;
	Subgraph sub[STAGES_MOST]; /* the last one ends with the members of the whole */
	Node **input, **member;	   /* of the whole, in its order */
	Node *products;		   /* the contraction among the equations */
	double side;		   /* of its results, or terms, the fewest */
	double moved;		   /* elements that others compute, and the contraction stores */
	int64_t tile;		   /* of which so many are computed from each other */
} Stages;

/* Main's sum over windows by fewer products (winograd.c); false: it has none. */
bool winograd_stages(Ir *ir, const Subgraph *sub, const Target *target, Stages *out);

#endif

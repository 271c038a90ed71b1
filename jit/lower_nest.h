/* lower_nest.h - direct nests: the loops of a schedule (lower_replay.c) and the tree made of them
 * (lower_nest.c). */
#ifndef JIT_LOWER_NEST_H
#define JIT_LOWER_NEST_H

#include "jit/internal.h"

#define MAX_LOOPS  48
#define MAX_GUARDS 32
#define MAX_STAGED 4

typedef struct Loop {
	int axis; /* of the problem */
	int64_t stride, extent;
	bool reduced;
	How how;
	Node *var, *val; /* the loop variable, and what stands for it now (NULL: not open) */
	bool tile;	 /* a dimension of the accumulator */
} Loop;

/* A padded read, SELECT(conditions, read, fill), that is copied to a local tile; see lower_stage.c.
 */
typedef struct Staged {
	const ProblemRead *read;
	Node *fill, *buffer, *place; /* place: an axis that stands for the index in the tile */
	int ncond;
	Node *cond[MAX_GUARDS];
	int lanes; /* the dimension along the vector loop */
	bool inner[RICCI_MAX_RANK];
	int64_t low[RICCI_MAX_RANK], span[RICCI_MAX_RANK], pitch[RICCI_MAX_RANK];
	int64_t phases, len; /* of the lanes: element t is at t % phases * len + t / phases */
} Staged;

typedef struct Build {
	Problem *p;
	Ir *ir;
	Tree *t;
	const Dialect *d;
	int nloop, order[MAX_LOOPS], nparallel, nouter;
	int lanes; /* the vector loop's place in the order, -1: none; loops inside are written out
		    */
	int stage_at; /* the place before which reads are staged, -1: none are */
	int nstaged;
	bool filled; /* the tiles are, here */
	Staged staged[MAX_STAGED];
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
/* e where the open loops are now (lower_nest.c). */
Node *nest_point(Build *b, Node *e);
/* Do the axis's loops cover it without going past its end? */
bool nest_exact(const Build *b, int axis);

/* ---- staged reads (lower_stage.c) */
/* Finds what can be staged before place b->stage_at and puts reads of tiles into b->body. */
void stage_find(Build *b);
/* The statements that fill the tiles. */
Stmt *stage_fill(Build *b);
/* The place in its tile of a staged read, for the open loops. */
Node *stage_place(Build *b, const Staged *s);

#endif

/* accesses.h - what a loop tree reads and writes in memory, and what that takes (accesses.c). */
#ifndef JIT_ACCESSES_H
#define JIT_ACCESSES_H

#include "jit/tree/tree.h"

enum { LOOPS_DEEP = 64 };

typedef struct Around { /* a loop that is open */
	const Stmt *loop;
	Node *axis;
	double trips; /* of one run of it, vectors in a vector loop */
	double count; /* iterations of one run of it */
} Around;

static inline bool is_vector(const Stmt *loop)
{
	return loop->how == HOW_VECTOR || loop->how == HOW_LANES;
}

typedef struct Access Access;
typedef struct Accesses {
	Ir *ir;
	int n, room;
	Access *access;
} Accesses;

/* Adds what is read or written in each iteration of the loops around it. True: at other places than those that are
 * known in these loops, or in neighbouring vector loops. `stored`: it is written. */
bool access_add(Accesses *m, int nloop, const Around *loop, Node *buffer, Node *index, bool stored);
/* Those from number `from` on happen in this share of the iterations. */
void accesses_share(Accesses *m, int from, double share);
/* Cycles of the lines that come from farther than the first level of the cache. */
double accesses_cycles(Accesses *m, const Target *target);

#endif

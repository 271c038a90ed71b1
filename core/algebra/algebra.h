/* algebra.h - what is known of integer nodes: polyhedra of constraints. */
#ifndef CORE_ALGEBRA_H
#define CORE_ALGEBRA_H

#include "core/node/node.h"

/* A conjunction of integer constraints sum k_i x_i + c >= 0 over variables that are nodes (atoms).
 * Quotients, remainders and the nodes' own bounds enter by themselves. Decided by Fourier-Motzkin
 * elimination with integer tightening, so an answer "empty" or "implied" is proved; a limit on work
 * turns into "not proved". */
typedef struct Polyhedron Polyhedron;
Polyhedron *poly_new(Ir *ir); /* in the arena */
/* Takes the parts of a conjunction that it understands (affine compares); ignores others. */
void poly_assume(Polyhedron *p, Node *cond);
Polyhedron *poly_copy(Polyhedron *p);
bool poly_is_empty(Polyhedron *p);	      /* proved empty */
bool poly_implies(Polyhedron *p, Node *cond); /* proved true for all points */
/* Bounds of e over p, from elimination; false when unbounded or not found (then the node's own
 * bounds are returned). */
bool poly_bounds(Polyhedron *p, Node *e, int64_t *lo, int64_t *hi);
/* cond simplified under p: parts that are implied become true, ones that are excluded false; also
 * SELECTs inside. */
Node *poly_simplify(Polyhedron *p, Node *e);

#endif

/* algebra.h - what is known of integer nodes: index expressions, polyhedra of constraints. */
#ifndef CORE_ALGEBRA_H
#define CORE_ALGEBRA_H

#include "core/node/node.h"

/* ---- index expressions (index.c) ---- */
Node *affine_node(Ir *ir, const Affine *a);
/* The coefficient of axis in e; INT64_MIN when e is not affine in it. */
int64_t affine_stride(Ir *ir, Node *e, Node *axis);
/* Its size without its sign: how far e moves for each step of the axis. INT64_MAX when e is not affine in it. */
int64_t affine_distance(Ir *ir, Node *e, Node *axis);
/* Where the axis is if a == b, both indices; NULL: that doesn't say so. */
Node *index_placed(Ir *ir, Node *a, Node *b, Node *axis);
/* Is e an integer cast that cannot change the value? */
bool cast_keeps(const Node *e);
/* Do the bounds of its indices, and what integer inputs hold by their contracts, keep the READ inside its tensor, whatever
 * the conditions around it? All READs in e? (needs.c) */
bool read_lies_inside(Ir *ir, const Node *read);
bool reads_lie_inside(Ir *ir, Node *e);
/* The least m with e(axis + m) = e(axis) + *step, all else fixed; 0 where there is none up to
 * INT32_MAX, or e is not quasi-affine. */
typedef struct Periods {
	Ir *ir;
	Node *axis;
	NodeMap known;
} Periods;
int64_t index_period(Periods *p, Node *e, int64_t *step);
/* The period along the axis of all quotients and remainders of it in the n expressions; 1: there are
 * none; 0: it is longer than `most`. */
int64_t index_phases(Ir *ir, Node *axis, int n, Node *const *e, int64_t most);
/* Do conditions on several axes, of few points in all, choose e, which lies in 0..extent-1 at all of them? A table of
 * products, say. */
bool index_is_table(Ir *ir, Node *e, int64_t extent);
/* Is there a comparison in them that the axis' remainder by the period decides? 0: that its value decides. */
bool index_phases_decide(Ir *ir, Node *axis, int64_t period, int n, Node *const *e);

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

/* ---- decisions.c: what decides by which condition, or by its opposite ---- */
typedef struct Decisions {
	NodeMap by, indices, again;
} Decisions;
void decided_by(Ir *ir, Decisions *d, Node *cond, const Node *by);
/* When all decisions are known: do several nodes decide by c or a part of it? */
bool decides_again(Ir *ir, Decisions *d, Node *c);
/* Does it, or says it something about indices? */
bool decision_matters(Ir *ir, Decisions *d, Node *cond);

#endif

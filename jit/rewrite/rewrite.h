/* rewrite.h - the parts of rewriting a graph (graph.c). */
#ifndef JIT_REWRITE_H
#define JIT_REWRITE_H

#include "jit/jit.h"

/* ---- loops over time (scan.c): the first part of rewrite_graph, and their bodies' */
void rewrite_scans(Ir *ir, int nroot, Node **roots);
/* One loop becomes two, where a sum that doesn't depend on itself can then be computed for all steps
 * between them; true when one did (distribute.c). */
bool scans_distribute(Ir *ir, int nroot, Node **roots);
/* Asked of tensors of a loop's body (scan_body.c): have so many steps of it terms enough to be worth
 * it; has it alone, as a sum; can it be computed outside, for all steps? */
bool body_is_heavy(const Node *c, double steps);
bool body_is_sum(const Node *c);
bool body_may_leave(Ir *ir, const Node *t);
/* Does it round to bf16? By chance perhaps (rounding.c), and then another loop, a gradient's, that computes
 * the same step again rounds alike only where both do so step by step. */
bool body_rounds(Ir *ir, const Node *c);
/* By id: does it depend on no state, and draw no random numbers, so that it could be? */
void body_find_fixed(Ir *ir, const Scan *s, int n, Node *const *order, bool *fixed);
/* Bytes that a new stack of the loop may take. */
double body_stack_limit(const Scan *s, Node *const *operand, int nresult, Node *const *result);
/* Stacks of the same values are one (stacks.c). */
void rewrite_stacks(Ir *ir, int nroot, Node **roots);
/* The place of x in a list (of axes, of indices); -1: it has none. */
static inline int rewrite_place(Node *const *list, int n, const Node *x)
{
	for (int k = 0; k < n; k++)
		if (list[k] == x)
			return k;
	return -1;
}
/* Sums of choices of which one is made are choices (choices.c). */
Node *choices_joined(Ir *ir, Node *e);
/* The body of a sum whose factors are under the conditions outside of which they are 0 (guards.c). */
Node *guards_outside(Ir *ir, Node *e);
/* Conditions of a choice that say whether what it reads lies inside as those reads' bounds (bounds.c). */
Node *bounds_read(Ir *ir, Node *e);
/* A reduction's body where its conditions say where axes are, of number nkeep on, which go (points.c). */
Node *points_found(Ir *ir, Reduce red, Node *body, int *naxis, Node **axes, int nkeep);
/* The sum or product c without the axes that neither its body nor its places depend on: times their extent, or to its power
 * (broadcasts.c). */
Node *repeats_counted(Ir *ir, Node *c);
/* The reduction c over one axis in place of two that it has in one sum only (axes.c). */
Node *axes_joined(Ir *ir, Node *c);
/* The dimensions along which c repeats, as bits; the equation c without these; and a read of what c was at these indices
 * (broadcasts.c). */
uint32_t broadcast_dims(Ir *ir, const Node *c);
Node *broadcast_source(Ir *ir, Node *c, uint32_t without);
Node *broadcast_read(Ir *ir, Node *once, uint32_t without, Node *const *index, int rank);
/* Conditions that the domain decides go (ranges.c). */
Node *conditions_decided(Ir *ir, Node *e);
/* The reduction c over the part of its domain where its conditions can hold: c, or one of fewer elements, those from
 * first[] on; and c, which is that part (ranges.c). */
Node *range_narrowed(Ir *ir, Node *c, int64_t *first);
Node *range_cut(Ir *ir, Node *c, int64_t *first); /* the same, however little that leaves out */
Node *range_placed(Ir *ir, const Node *c, const int64_t *first, Node *part);
/* A reduction that runs along two axes, or beside another sum, as two equations (running.c). */
Node *running_apart(Ir *ir, Node *c);
/* The reduction `sum` of what tensor t is: c, which reads t as a factor, with it inside, or NULL. The same where nothing else
 * reads t, and both cost no more than apart; else c. Do n equations, all that read t, cost less with it in each? (sums.c) */
enum { READERS_MOST = 16 };
Node *reduction_inside(Ir *ir, Node *c, const Node *t, const Node *sum);
Node *reduction_joined(Ir *ir, Node *c, const Node *t, Node *sum);
bool reduction_shared(Ir *ir, const Node *t, Node *sum, int n, Node *const *reader);
/* The equation c; partial sums first, where c sums a product of several factors and they cost less (summation.c). */
Node *sum_ordered(Ir *ir, Node *c);
/* Do the n sums cost less, by partial sums, than the sum t and the n equations that read it? (summation.c) */
bool sums_cost_less(Ir *ir, int n, Node *const *joined, Node *t, Node *const *reader);
/* The equation c over what it needs of few axes, computed apart (invariants.c). */
Node *invariants_apart(Ir *ir, Node *c);
/* Functions of a loop's constants in its body's equations become equations (invariants.c). */
void loop_constants_apart(Ir *ir, const Scan *s, int nroot, Node **roots);
/* The read of a copy whose lines are along dimension `at` (look_ups.c). */
Node *read_of_copy(Ir *ir, const Node *read, int at);
/* The equation c over copies of which it looks up whole lines (look_ups.c). */
Node *look_ups_in_lines(Ir *ir, Node *c);
/* The equation c; without its reduction, where sums that it reads tell its value, 0 often; a pointwise one without
 * those (known_sums.c). */
Node *known_sum(Ir *ir, Node *c);
/* Is c, which `was` has become, a rectifier, `0 < e ? e : 0`, whose result is less to read than what e is made of, or of
 * a sum that needn't be kept then? readers: of old tensors, by id. The body with 0 < e, for such e of n rectifiers, as
 * conditions of their results (signs.c). */
bool rectifier_saves(Ir *ir, const Node *c, const Node *was, const int *readers);
Node *signs_read(Ir *ir, Node *body, int n, Node *const *rectifier);

/* A run of a loop: its results in the order of the graph, what its operands are now, and the roots of its body:
 * the states' next[], then the values of which stacks are among the results (scan_body.c). */
typedef struct ScanRun {
	const Scan *scan;
	int nresult, nroot;
	Node **result, **operand, **root;
} ScanRun;
/* That of order[at]. map: as a ScanPass has it. */
ScanRun scan_run(Ir *ir, int n, Node *const *order, int at, NodeMap *map);
/* Puts what becomes of the results of the run of order[at] into map, which has its operands; true: they
 * are others now. */
typedef bool ScanPass(Ir *ir, int n, Node *const *order, int at, NodeMap *map);
/* Runs a pass on each loop of the graph, sources first; roots[] are replaced, and true is returned, where
 * it changed one (scan_body.c). */
bool scans_each(Ir *ir, int nroot, Node **roots, ScanPass *pass);
/* Loops of which roots[] don't need all states, slices or constants become smaller ones, but not
 * those inside of bodies; a state that never changes becomes a constant. roots[] are replaced
 * (scan_shrink.c). */
void scans_shrink(Ir *ir, int nroot, Node **roots);

/* ---- running reductions (running_find.c) ---- */
enum { RUNNING_CONDITIONS = 32, RUNNING_LEAST = 16 };
typedef struct Running {
	int axis, over;	      /* of the axes: i, which is spatial; j, which is reduced */
	Node *e;	      /* what is in: e >= 0 */
	int64_t along, slope; /* its coefficients of both */
	int64_t step;	      /* how many j are new in an element, of each other reduced point */
	int ncond;
	Node *cond[RUNNING_CONDITIONS], *body; /* without that condition and the factors */
	Node *factor, *divisor;		       /* of the whole sum; NULL: none */
	Node *some;			       /* with these: is anything in? */
} Running;
/* Can a reduction's value at one place of axis number `at` be kept for the next? */
bool running_find(Ir *ir, Reduce red, Node *body, int nspatial, int naxis, Node *const *axis,
		  int at, Running *r);
/* Does e >= 0 hold for any point of the reduced axes? False where e is not affine in them. */
Node *running_some(Ir *ir, Node *e, int n, Node *const *reduced);
/* How many times fewer points that takes; 1: too few to count. */
int64_t running_saves(const Running *r, Node *const *axis);
/* The points that c takes: its domain, or what is new in each place where a sum can be kept along
 * dimension `from` or a later one. */
double comp_work(Ir *ir, const Node *c, int from);
/* running_find along dimension `at` of c, where that saves anything. */
bool comp_running(Ir *ir, const Node *c, int at, Running *r);

/* ---- rounding by chance (rounding_key.c) */
typedef struct RoundingKeys RoundingKeys;
/* Of the graph whose tensors are order[]; casts in its equations have a key. */
RoundingKeys *rounding_keys(Ir *ir, const Within *in, int n, Node *const *order);
uint32_t rounding_key(const RoundingKeys *d, const Node *cast);

#endif

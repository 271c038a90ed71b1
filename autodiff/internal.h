/* internal.h - what the files of autodiff/ share with each other and with nobody else. */
#ifndef AUTODIFF_INTERNAL_H
#define AUTODIFF_INTERNAL_H

#include "autodiff/autodiff.h"

/* ---- integer linear algebra (solve.c): pure numbers, exact; overflow is an answer ---- */

/* Column Hermite form of the m x n matrix in the first rows of a, row-major; unimodular column
 * operations on these and on the rows below bring it to lower echelon form: column j < rank has its
 * first entry, positive, in row pivot[j], and the entries left of that one are reduced to
 * 0..pivot-1. Returns the rank, or -1 on overflow. */
int hermite_columns(int m, int below, int n, int64_t *a, int *pivot);

/* All integer solutions of M x = b:  x = u y + basis t  with  h y = b  by forward substitution. */
typedef struct Solution {
	int m, n, rank, nfree;
	int64_t *h;	/* m x rank, echelon: row pivot[j] has its last entry in column j */
	int *pivot;	/* rank rows of M; the other rows are conditions on b */
	int64_t *u;	/* n x rank */
	int64_t *basis; /* n x nfree, echelon over the rows pick[] */
	int *pick; /* nfree unknowns: t_j moves x[pick[j]] by basis[pick[j]][j] > 0, later t do not
		    */
} Solution;
/* extent: how many values each unknown has; pick[] is chosen for few points. Memory from the arena.
 * False on overflow. */
bool solve_system(Arena *arena, int m, int n, const int64_t *matrix, const int64_t *extent,
		  Solution *s);

/* ---- quasi-affine index systems (system.c) ---- */

/* The solution of index[d](axes) = z_d: axis k is value[k], an expression over z and the new axes
 * free[0..nfree-1], wherever all of cond[] hold; every solution is met exactly once. */
typedef struct Inverse {
	Node **value;
	int nfree;
	Node **free;
	int ncond;
	Node **cond;
} Inverse;
/* False where an index is not quasi-affine (gathers, products, max..) or numbers get too large. New
 * axes are numbered from `number` on. */
bool index_invert(Ir *ir, int naxis, Node *const *axes, int rank, Node *const *index,
		  Node *const *z, int number, Inverse *inv);

/* ---- scalar derivatives (derive.c) ---- */

/* One read in the body of the equation comp: the equation's sum changes by `value` for each change
 * of the read's value by one, where `guard` holds (NULL: everywhere); value may be evaluated there
 * only. Instead of a READ it can be another part of the body, whose axes are fewer than comp's. */
typedef struct Term {
	Node *comp, *read, *guard, *value;
} Term;

/* Side tables by node id. */
typedef struct Tape {
	Ir *ir;
	bool *wanted; /* tensors on a path to a wrt, for all ids up to y's */
	int *slot;    /* scratch of derive_body, all 0 between calls */
	size_t nslot;
	NodeMap places; /* that were found (place.c) */
	NodeMap forms;	/* of nodes (form.c) */
} Tape;
/* Terms of the reads of wanted tensors in the body of c, and of parts that are better equations of
 * their own, the latest node first; root: what to use as the body's value (the body, or a read of
 * the tensor that holds it). seed: the adjoint of the body. Returns the count. */
int derive_body(Tape *tape, Node *c, Node *root, Node *seed, Term **terms);

/* Forward mode, by node id up to y's. */
typedef struct Forward {
	Ir *ir;
	Node **tangent; /* of tensors; NULL: zero */
	Node **memo;	/* of scalar nodes that were visited */
	bool *seen;
} Forward;
/* The tangent of `body`, NULL for zero. */
Node *derive_forward(Forward *f, Node *body, Node *root);

/* ---- tensor.c ---- */

/* The tensor t at `index`, with constants seen through. */
Node *tensor_read(Ir *ir, Node *t, Node *const *index);
/* What t is where it only repeats another tensor. */
Node *tensor_source(Node *t);
/* The tensor of one value. */
Node *tensor_fill(Ir *ir, const Node *like, double value);
/* a + b, tensors alike; NULL stands for zeros. */
Node *tensor_sum(Ir *ir, Node *a, Node *b);
/* An input of that name and type and of the shape of `like`. */
Node *tensor_variable(Ir *ir, const char *name, Type type, const Node *like);
/* Have they one type and shape? */
bool tensor_alike(const Node *a, const Node *b);
/* Sums of 16-bit types are left as written: one rounding more is too much for them. */
static inline bool bears_rounding(const Node *value)
{
	return type_size((Type)value->type) >= 4;
}
/* value where cond holds (NULL: everywhere), else 0. */
Node *value_where(Ir *ir, Node *cond, Node *value);
/* w * d; where w is a choice, d is evaluated only where it counts. */
Node *weighted(Ir *ir, Node *w, Node *d);

/* ---- rows of positions (rows.c) ---- */

/* Rows of positions x: axis number `rank`, after those that tell the rows apart. */
typedef struct Rows {
	Ir *ir;
	int rank;
	Node *axes[RICCI_MAX_RANK + 1];
} Rows;
Node *rows_position(const Rows *r, int64_t n);
/* A tensor of n positions: value is an expression over rows_position(r, n). */
Node *rows_tensor(const Rows *r, int64_t n, Node *value);
/* Element x of a tensor, or `beyond` where x is none of its positions. */
Node *rows_read(const Rows *r, Node *tensor, Node *x, double beyond);

/* ---- gradient of an equation (equation.c, seed.c) ---- */

/* The adjoint of c's body at each point of its domain, linear in c's gradient dy (a tensor or a
 * CONST that fills one). */
Node *equation_seed(Ir *ir, Node *c, Node *dy);
/* The product of the other factors at each point of c, a "*=" (product.c). */
Node *product_others(Ir *ir, Node *c);
/* Is the element e the extremum y of all? Nothing lies beyond it, so what is not short of it is it;
 * and where it is a NaN all are. */
Node *extremum_hit(Ir *ir, Reduce red, Node *e, Node *y);
/* The tensor that counts the ties of c, a "max=" or "min="; *hit: is a point of c's one of them? */
Node *extremum_ties(Ir *ir, Node *c, Node **hit);
/* Where *c is a running product or extremum, the equation of its factors and their gradient (NULL:
 * zero) take its and *dy's place (running.c). */
bool running_gradient(Tape *tape, Node **c, Node **dy);
/* Its tangent (NULL: zero); false where it is none. */
bool running_tangent(Forward *f, Node *c, Node **tangent);
/* What has the value of c's body without computing it again where there is such a thing. */
Node *equation_root(Ir *ir, Node *c);
/* All terms of the COMP c whose own gradient is dy, each with a READ. Returns the count. */
int equation_terms(Tape *tape, Node *c, Node *dy, Term **terms);

/* ---- what a value depends on (form.c) ---- */

typedef struct Form {
	Node *sum;     /* without a constant, its first coefficient positive */
	Node *axis;    /* whose coefficient is 1 or -1 */
	int64_t sign;  /* this */
	uint64_t axes; /* all of them, by number */
} Form;

typedef struct Forms {
	int n;
	Form at[COMP_MAX_AXES];
} Forms;
const Forms *forms_of(Tape *tape, Node *e);
/* Of two values, those of f first. */
const Forms *forms_join(Ir *ir, const Forms *f, const Forms *g);
/* Are all of f's among those of g? */
bool forms_within(const Forms *f, const Forms *g);
double forms_points(const Forms *f);
bool forms_have_windows(const Forms *f);
/* Is it better to sum the adjoint of a part of comp's body for each value of the forms f, its own and its conditions',
 * before what is below is differentiated? largest: elements of the largest wanted tensor that it reads. */
bool part_pays(const Node *comp, const Forms *f, double largest);

/* ---- factors in groups (group.c) ---- */

/* comp's body with factors beside others that depend on all that they depend on. */
Node *factors_grouped(Tape *tape, const Node *comp);
/* Is the sum c of products, one of whose factors depends on c's left axes only and on a wanted tensor? Then c is
 * *scale * *sum. */
bool sum_unscaled(Tape *tape, Node *c, Node **sum, Node **scale);

/* ---- parts of a body that are equations of their own (part.c) ---- */

/* Such a part, which t has in place of a read, as an equation: *own; its adjoint at own's axes, NULL for zero. */
Node *part_adjoint(Tape *tape, const Term *t, Node **own);

/* ---- sums (factor.c) ---- */

/* A product, of factors in the order in which they stand. */
enum { MAX_FACTORS = 16 };
typedef struct Factor {
	Node *node;
	bool divides;
} Factor;
typedef struct Product {
	bool minus;
	int n;
	Factor at[MAX_FACTORS];
} Product;
/* Puts the factors of e to p, whose inverses where e divides; false for too many. */
bool product_read(Product *p, Node *e, bool divides);
Node *product_node(Ir *ir, const Product *p, Type type);
/* Sets of axes by number: those in e (NULL: none; all where it draws random numbers), those listed,
 * and how many points the ones of them in `mask` have. */
uint64_t axes_in(Ir *ir, Node *e);
uint64_t axes_mask(int n, Node *const *axes);
double axes_points(int n, Node *const *axes, uint64_t mask);
/* For each point of the axes keep[], the element lhs[] of a tensor is summed over the axes sum[]
 * where cond holds (NULL: everywhere). place[k]: keep[k] as an expression over the tensor's own
 * axes, numbered by dimension. */
typedef struct Frame {
	int rank, nkeep, nsum;
	int64_t shape[RICCI_MAX_RANK];
	Node *lhs[RICCI_MAX_RANK], *keep[COMP_MAX_AXES], *place[COMP_MAX_AXES];
	Node *sum[COMP_MAX_AXES], *cond;
} Frame;
/* The tensor of these sums of value. */
Node *sum_make(Ir *ir, const Frame *frame, Node *value);
/* Two sums of products with common factors as one, NULL where they are not. */
Node *sum_join(Ir *ir, Node *a, Node *b);

/* The terms with indices that are chosen taken apart (split.c). Returns the count. */
int terms_split(Ir *ir, int n, Term **terms);

/* ---- one term (place.c, term.c, window.c, phase.c) ---- */

/* The elements z = by*z' + offset, z' = period*(start + u) + step*(first + h), of a dimension that
 * are in it, u < extent, h < count. step is prime to the period, so each z' has one residue
 * first + h. */
typedef struct Residues {
	int64_t by, offset, period, step, first, count, start, extent;
} Residues;

/* Conditions in an order in which earlier ones protect later ones; `never` when one is false. When
 * the room is full, the last one is a conjunction. */
#define MAX_CONDITIONS 512
typedef struct Conditions {
	Ir *ir;
	int n;
	bool never;
	Node **at; /* while they are gathered, room for MAX_CONDITIONS */
} Conditions;

/* The range of an axis under the conditions; false where they don't narrow it. */
bool conditions_bounds(const Conditions *c, Node *axis, int64_t *lo, int64_t *hi);
typedef enum { PIECE_ZERO, PIECE_SUM, PIECE_SCATTER } PieceKind; /* SCATTER: no inverse */

/* Where a term's sum is met at some elements of the tensor that it reads: those with residues `at`
 * in each dimension, as a tensor of them alone (shape), in their order (place.c). */
typedef struct Place {
	struct Place *next; /* with the same indices */
	int rank, ndomain;
	Node *const *domain, *const *index, *guard;
	Residues at[RICCI_MAX_RANK];
	int64_t size[RICCI_MAX_RANK]; /* of the tensor */
	PieceKind kind;
	int naxis, nfree, nfrom;
	int64_t shape[RICCI_MAX_RANK];
	Node *u[RICCI_MAX_RANK], *h[RICCI_MAX_RANK]; /* h: NULL where it has one value */
	Node *lhs[RICCI_MAX_RANK], *axes[2 * RICCI_MAX_RANK], **free;
	Node **from, **to; /* to[k]: what the equation's from[k] is there */
	Conditions cond;
} Place;
const Place *place_find(Ir *ir, NodeMap *all, const Term *term, const Residues *at);

/* A term's sum there. */
typedef struct Piece {
	const Place *place;
	Node *value;
} Piece;
PieceKind piece_make(Tape *tape, const Term *term, const Residues *at, Piece *piece);
Node *piece_tensor(Ir *ir, const Piece *piece);
/* dA[f(v)] += value over the equation's own domain; ir->note tells why. */
Node *term_scatter(Ir *ir, const Term *term);
/* Does the index node choose between others (?:, max, min, abs, sign, a condition as a number)? */
bool index_is_choice(const Node *e);
/* What keeps the term's indices from being inverted; NULL: nothing that shows in one alone. */
const char *index_obstacle(Ir *ir, const Term *term);
/* t over the axes keep[] only, which are all that it reads and is guarded by: its value is summed
 * over the others, where cond holds (NULL: everywhere). */
Term term_over(Ir *ir, const Term *t, Node *cond, int nkeep, Node *const *keep);
/* The same gradient as that of *own, over fewer axes, where that is less work (window.c). */
bool term_window(Ir *ir, const Term *term, Term *own);
/* The sum over its equation's domain of term's value, at each element of the tensor it reads; NULL
 * when it is zero. */
Node *term_gradient(Tape *tape, const Term *term);

/* ---- gradients that the user gives (custom.c) ---- */

/* The gradients of the operands, NULL for those that the program gives none, from those of the
 * results; a result's NULL stands for zeros, as CONST for a tensor filled with it. */
void custom_gradients(Ir *ir, const Custom *c, Node *const *dresult, Node **doperand);
/* The tangents of the results from those of the operands (NULL: zero). 0 or ir->err's code. */
int custom_tangents(Ir *ir, const Custom *c, Node *const *toperand, Node **tresult);

/* ---- graphs (reverse.c, forward.c) ---- */

/* Tensors that are differentiated together: the results of a gradient of the user's own, or of one
 * run of a loop. */
typedef struct Run {
	const Custom *custom; /* NULL: a loop */
	int nresult, noperand;
	Node **result; /* by ascending id */
	Node *const *operand;
} Run;
bool is_of_run(const Ir *ir, const Node *t);
/* Of t, in a graph in that order. */
Run run_of(Ir *ir, Node *t, int norder, Node *const *order);

/* Reverse mode from several roots, each with a gradient of its own: of what type and shape it is,
 * or a CONST that fills it. So are grads[]; NULL: zero. */
void reverse_graph(Ir *ir, int nroot, Node *const *root, Node *const *seed, int n, Node *const *wrt,
		   Node **grads);
/* What a gradient stands for as a tensor. */
Node *gradient_tensor(Ir *ir, const Node *like, Node *gradient);
/* The tangents of roots (NULL: zero) from those of x[] (tensors; NULL: zero). 0 or ir->err's code.
 */
int forward_graph(Ir *ir, int nroot, Node *const *root, int n, Node *const *x, Node *const *tangent,
		  Node **out);

/* ---- loops (scan.c, keep.c) ---- */

/* Which of the tensors step[] of a loop's step, in the order of their ids, are to be kept for a
 * graph of roots that reads some of them; stacked[k]: step[k] is kept anyway. Returns the count,
 * kept has room for n. */
int keep_tensors(Ir *ir, int n, Node *const *step, const bool *stacked, int nroot,
		 Node *const *root, Node **kept);

/* The gradients of the operands of a run of a loop of which wanted[] holds (NULL: zero) from those
 * of its results (NULL: zero). */
void scan_gradients(Ir *ir, int nresult, Node *const *result, Node *const *dresult,
		    const bool *wanted, Node **doperand);
/* The tangents of the results (NULL: zero) from those of the operands (NULL: zero). 0 or ir->err's
 * code. */
int scan_tangents(Ir *ir, int nresult, Node *const *result, Node *const *toperand, Node **tresult);

#endif

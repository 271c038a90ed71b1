/* node.h - expressions, equations and loops: the one intermediate representation. */
#ifndef CORE_NODE_H
#define CORE_NODE_H

#include "core/base/base.h"

/* ---- nodes (node.c, fold.c) ----
 * Immutable and interned in an Ir: equal iff the same pointer. Tensors are nodes too. node_make
 * folds (fold.c): constants, identities, the normal form of integer arithmetic, comparisons decided
 * by bounds. An Ir belongs to one thread. Running out of memory jumps to ir->arena.oom (always set
 * while nodes are made: IR_ENTER). */
typedef enum Op {
#define OP(name, text, nsrc, form) OP_##name,
#include "core/node/ops.def"
#undef OP
	OP_COUNT
} Op;
typedef enum { FORM_LEAF, FORM_INFIX, FORM_PREFIX, FORM_CALL, FORM_SPECIAL } OpForm;
typedef struct OpInfo {
	const char *name, *text;
	int nsrc;
	OpForm form;
} OpInfo;
extern const OpInfo op_info[OP_COUNT];
/* Does it compare? */
static inline bool op_compares(Op op)
{
	return op >= OP_LT && op <= OP_NE; /* neighbours in ops.def */
}
/* Does it compare or join truth values? Then it gives one. */
static inline bool op_is_logic(Op op)
{
	return op >= OP_LT && op <= OP_NOT; /* neighbours in ops.def */
}

/* Does it draw a random number? */
static inline bool op_draws(Op op)
{
	return op == OP_RANDOM || op == OP_NORMAL;
}

typedef struct Node Node;
struct Node {
	uint8_t op, type;
	/* depth: 1 + the deepest source, tensors counting 0; at most NODE_MAX_DEPTH */
	uint16_t nsrc, depth;
	uint32_t hash, id; /* id: the order of creation within its Ir; sources have smaller ones */
	int64_t lo, hi;	   /* bounds of an integer or BOOL node's values; lo > hi never */
	int64_t mul;	   /* a known divisor of an integer node's value, >= 1; 0: the value is 0 */
	union {
		int64_t i;
		double f;
		const char *s;
		const struct ScanResult *result; /* of a SCAN */
	} u;
	Node *src[];
};
#define NODE_MAX_DEPTH 2000

/* A data contract: elements of an integer input that gathers index with must lie in lo..hi. */
typedef struct Need {
	Node *input;
	int64_t lo, hi;
	struct Need *next;
} Need;

/* Something a user would want to know about the equations made for a tensor. */
typedef struct Note {
	Node *tensor;
	const char *text;
	struct Note *next;
} Note;

/* A map from nodes to anything; zeroed it is empty. Its memory is an Ir's arena. */
typedef struct NodeMap {
	Node **key;
	void **value;
	size_t count, room;
} NodeMap;

typedef struct Ir {
	Arena arena;
	Error err;
	Note *note;		/* the latest first; autodiff's */
	struct Custom **custom; /* gradients that the user gave, of STOPs with u.i = 1.. */
	int ncustom, custom_room;
	Need *need;	   /* one for each such input, made by notation_elaborate */
	struct Scan *scan; /* interned, the latest first */
	Node **table;	   /* open addressing, in the arena */
	uint32_t *tag;	   /* its nodes' hashes */
	size_t room, count;
	uint32_t *stamp; /* by id: marks of the walk in progress */
	Node **memo;	 /* by id: what node_replace made of a node */
	size_t memo_room;
	uint32_t now;
	Node **walked; /* the list of the last walk, for the next one */
	int walked_room;
	NodeMap reads;	/* comp_reads' lists */
	Node *training; /* TRAINING, when a text has it */
} Ir;
void ir_init(Ir *ir);
void ir_free(Ir *ir);
/* In the public entries: `IR_ENTER(ir, value_on_failure);` returns that value, with the sticky
 * error ENOMEM, when memory runs out below. Nested entries are fine (the outer target is restored
 * by IR_LEAVE(ir)). */
#define IR_ENTER(ir, fail)                                                                         \
	jmp_buf ir_jump_, *ir_outer_ = (ir)->arena.oom;                                            \
	(ir)->arena.oom = &ir_jump_;                                                               \
	if (setjmp(ir_jump_)) {                                                                    \
		(ir)->arena.oom = ir_outer_;                                                       \
		error_set(&(ir)->err, RICCI_ENOMEM, "out of memory");                              \
		return fail;                                                                       \
	}
#define IR_LEAVE(ir) ((ir)->arena.oom = ir_outer_)

/* i: u.i of AXIS, CONST; else 0 */
Node *node_make(Ir *ir, Op op, Type type, int nsrc, Node *const *src, int64_t i);
/* An operator on constants, as the interpreter computes it too; NaN where it has no float value. */
double scalar_unary(Op op, double a);
double scalar_binary(Op op, double a, double b);
Node *node_int(Ir *ir, int64_t v);		 /* CONST I64 */
Node *node_const(Ir *ir, Type t, double v);	 /* CONST of any type; integers from integral v */
Node *node_const_int(Ir *ir, Type t, int64_t v); /* CONST of an integer type or BOOL */
Node *node_axis(Ir *ir, int number, int64_t extent); /* extent >= 1 */
Node *node_input(Ir *ir, const char *name, Type t, int rank, const int64_t *shape);
Node *node_read(Ir *ir, Node *tensor, Node *const *index); /* rank(tensor) indices */
/* The read with another index along dimension d. */
Node *read_along(Ir *ir, const Node *read, int d, Node *index);
Node *node1(Ir *ir, Op op, Node *a);	      /* type follows: compare BOOL, else a's */
Node *node2(Ir *ir, Op op, Node *a, Node *b); /* a and b of one type */
Node *node_select(Ir *ir, Node *c, Node *a, Node *b);
Node *node_cast(Ir *ir, Type t, Node *a);
Node *node_not(Ir *ir, Node *a);
Node *node_and(Ir *ir, Node *a, Node *b); /* NULL: a condition that always holds */
/* Is one condition true exactly where the other is false, by their form? */
bool node_opposite(const Node *a, const Node *b);
/* Integer helpers over I64 nodes. */
Node *node_add(Ir *ir, Node *a, Node *b);
Node *node_sub(Ir *ir, Node *a, Node *b);
Node *node_mul(Ir *ir, Node *a, Node *b);
Node *node_scale(Ir *ir, Node *a, int64_t k);
Node *node_add_scaled(Ir *ir, Node *a, Node *b, int64_t k); /* a + k * b */
Node *node_floordiv(Ir *ir, Node *a, int64_t c);	    /* c >= 1 */
Node *node_floormod(Ir *ir, Node *a, int64_t c);
Node *node_training(Ir *ir);
bool node_is_const(const Node *n);	     /* CONST */
bool node_is_value(const Node *n, double v); /* CONST, of any type, of that value */
/* Integer arithmetic wraps. May the ADD or MUL e leave its type? Its bounds are the type's then
 * (bounds.c). */
static inline bool node_may_wrap(const Node *e)
{
	int64_t lo, hi;
	type_range((Type)e->type, &lo, &hi);
	return (e->op == OP_ADD || e->op == OP_MUL) && e->lo == lo && e->hi == hi;
}

/* The same node with axes (or any nodes) replaced: from[k] becomes to[k], simultaneously,
 * everywhere outside tensors. Results are memoised, so shared parts stay shared and the time is
 * linear. */
Node *node_replace(Ir *ir, Node *n, int count, Node *const *from, Node *const *to);
/* Maps from nodes, of any Ir. */
void *node_map_get(const NodeMap *m, const Node *key); /* NULL when absent */
void node_map_put(Ir *ir, NodeMap *m, Node *key, void *value);
/* Copies n, a node of another Ir, into ir, with the loops of SCANs. tensor(user, t) gives the copy
 * of a tensor, or NULL to copy it as it is. */
Node *node_import(Ir *ir, Node *n, Node *(*tensor)(void *user, Node *t), void *user);
/* Does n contain x (outside tensors)? Both are nodes of one Ir. */
bool node_has(Node *n, Node *x);
static inline bool node_draws(const Node *n)
{
	return op_draws((Op)n->op);
}
/* Does n read a tensor? */
bool node_reads(Ir *ir, Node *n);
/* The distinct parts that the operator joins to n, in the order of their first places: those of a
 * conjunction, of a product. The list is in ir's arena. */
int node_parts(Ir *ir, Node *n, Op op, Node ***part);
/* Is any node below n (n included, tensors not entered) of that kind? */
bool node_any(Ir *ir, Node *n, bool (*is)(const Node *n));
/* A node at or below n for which `is`, by way of nodes for which `within`; a NULL `within` enters all but tensors. NULL:
 * there is none. */
Node *node_find(Ir *ir, Node *n, bool (*is)(const Node *n), bool (*within)(const Node *n));
/* The axes in roots, each once, by first appearance: their number, at most COMP_MAX_AXES. */
int node_axes(Ir *ir, int nroot, Node *const *root, Node **axes);
/* Conditions that compare no integers anywhere say nothing about indices. */
static inline bool node_compares_int(const Node *n)
{
	return op_compares((Op)n->op) && !type_is_float((Type)n->src[0]->type);
}
/* Does it compare I64, the type of indices? Their differences are affine forms (condition_slack). */
static inline bool node_compares_index(const Node *n)
{
	return op_compares((Op)n->op) && n->src[0]->type == RICCI_I64;
}
/* Calls f on every distinct node below n (n included, sources first, tensors reported and not
 * entered). */
void node_walk(Ir *ir, Node *n, void (*f)(void *user, Node *n), void *user);
/* The distinct nodes of that operator in the order of node_walk: their number. The list is in ir's arena. */
int node_collect(Ir *ir, Node *n, Op op, Node ***list);

/* ---- linear forms (affine.c) ---- */
/* An integer node as c + sum k_i * atom_i, atoms distinct. None is a CONST, nor an ADD or
 * MUL-by-constant that can't wrap: the equation holds for unbounded integers. */
typedef struct Affine {
	int n, room;
	int64_t c;
	int64_t *k;
	Node **atom;
} Affine;
Affine affine_of(Ir *ir, Node *e); /* in the arena */
/* The I64 e, though its sums may wrap: equal modulo 2^64, and equal where the right side lies in
 * int64. */
Affine affine_modular(Ir *ir, Node *e);
int64_t affine_coefficient(const Affine *a, const Node *atom); /* 0 when absent */
/* Have no two points of the axes' box the same indices, but for axes that no index has? So it is where each axis is in
 * one of them only, and the coefficients of each form a mixed radix. has[k]: an index has axis k. */
bool indices_one_to_one(Ir *ir, int naxis, Node *const *axis, int rank, Node *const *index,
			bool *has);

/* ---- tensors and equations (comp.c) ----
 * A COMP is one equation: Y[lhs(v)] op= body(v) for all v of the box 0 <= v_k < extent_k.
 *
 *	src = axes v_0 ..; left indices (rank of them); extents (rank CONSTs); body
 *
 * comp_make numbers axes canonically: first those that stand bare on the left, in order; then the
 * others by first appearance in the body; axes that appear nowhere but matter (they repeat the
 * reduction) come last. Unused axes of "=", max and min are dropped, and axes of extent 1 are
 * replaced by 0 (except bare left ones). So equal computations are one pointer.
 *
 * A dense COMP has the left indices v_0..v_{rank-1} bare, in order, with extents equal to the
 * tensor's. The result starts from reduce_identity and every v contributes; RED_NONE ("=") stores,
 * and then lhs is dense. The order of a float sum is not fixed. body has the result's type; the
 * accumulator has type_accumulator(type). */
typedef enum { RED_NONE, RED_ADD, RED_MUL, RED_MAX, RED_MIN, RED_COUNT } Reduce;
extern const char *const reduce_text[RED_COUNT]; /* "=" "+=" "*=" "max=" "min=" */
#define COMP_MAX_AXES 32

Node *comp_make(Ir *ir, Reduce red, int rank, const int64_t *shape, Node *const *lhs, int naxis,
		Node *const *axes, Node *body);
/* The usual case: a dense tensor over axes[0..rank-1], reduced over axes[rank..naxis-1]. */
Node *comp_dense(Ir *ir, Reduce red, int rank, int naxis, Node *const *axes, Node *body);
/* The equation c with another reduction and body over these axes, those of its left side among them; over its own. */
Node *comp_over(Ir *ir, const Node *c, Reduce red, int naxis, Node *const *axes, Node *body);
Node *comp_with(Ir *ir, const Node *c, Reduce red, Node *body);

/* ---- equations with gradients of the user's own (custom.c) ---- */
/* The tensors of result[] hide the equations that compute them; `gradient` is a program for the
 * gradients of operand[]. */
typedef struct Custom {
	const char *gradient;
	int noperand, nresult;
	Node **operand, **result; /* results by ascending id */
	const char **operand_name, **result_name;
	const struct Custom *origin; /* what this is a copy of, over other tensors; or NULL */
} Custom;
/* Whose result t is; NULL for other tensors. */
const Custom *custom_of(const Ir *ir, const Node *t);
/* Its number is ir->ncustom then. */
void custom_add(Ir *ir, Custom *c);
/* Z[..] = stop_gradient(Y[..]) with the record's number. */
Node *custom_hide(Ir *ir, Node *y, int number);
/* graph_order of the roots and the operands of all custom gradients, which folding may have taken
 * out of the equations. */
int graph_order_hidden(Ir *ir, int nroot, Node *const *root, Node ***order);

/* ---- loops (scan.c) ----
 * A Scan is a body applied `bound` times, or `length` times as an operand says at run time, with
 * carried states. Its results are tensors, SCAN nodes: src = extents (rank CONSTs), then the
 * operands: [length] slices, initial states, constants. Results of one loop over the same operands
 * come of one run of it: who evaluates a graph groups SCAN nodes by scan_same_run, and computes
 * what the group's results need, after scans_shrink no less than the whole loop.
 *
 * The body is a graph of its own within the Ir: its roots (next[], and the `value` of each
 * ScanResult) read var[], constants of the notation, and nothing else; walks over the graph around
 * it don't enter it. var[k] is an INPUT named "%k", so equal loops have equal bodies, and loops are
 * interned: one pointer each. A body may hold SCAN nodes: inner loops, closed themselves, whose
 * variables may be the same nodes as the outer ones' ("%0") and mean others: an inner loop reads
 * outer tensors through its operands only.
 *
 * A step, for t = 0 .. length-1, or backwards length-1 .. 0:
 *	slices	   var = operand[t, ..]     (the operand has the leading extent `bound`)
 *	states	   var = the value so far, first the initial one
 *	constants  var = the operand
 * then all next[] and values at once, over these. A result is
 *	final >= 0  state number `final` after the last step (the initial one when length is 0)
 *	final < 0   [bound, ..]: row t is the `value` of step t, zeros where t >= length
 *	ends	    [bound + 1, ..]: the same of a state's variable, and its last value: row t is
 *		    what the state was between step t - 1 and step t, zeros where t > length.
 *		    Rewrites make these; autodiff knows none.
 * where `value` is any tensor of the body, also a variable: that of a state is its value before the
 * step. A length outside 0..bound is RICCI_EVALUE. */
typedef struct Scan {
	int64_t bound;
	int64_t given; /* of a loop over segments: the bound of the whole loop; else 0 */
	bool backwards;
	bool has_length; /* operand 0 is the number of steps: a scalar I32 or I64 */
	bool recompute;	 /* autodiff: the body's tensors are computed again in the backward pass */
	int nslice, nstate, nconst;
	Node **var;  /* nslice + nstate + nconst */
	Node **next; /* nstate; each of its state's type and shape */
	uint32_t hash;
	struct ScanResult *result; /* all that were ever made: not what a graph needs */
	struct Scan *below;
} Scan;
typedef struct ScanResult {
	Scan *scan;
	int rank;  /* of the SCAN node */
	int final; /* -1: the stack of value */
	bool ends; /* the stack has one row more */
	uint32_t hash;
	Node *value; /* final: next[final] */
	struct ScanResult *next;
} ScanResult;

/* A loop and its operands. */
typedef struct ScanCall {
	Scan *scan;
	Node **operand; /* scan_noperand(scan) */
	Node **result;	/* what the given stacked tensors became, in the body */
} ScanCall;
/* Closes and interns a loop. spec: bound .. recompute, nslice, nstate, nconst, next, and in var the
 * tensors that stand for a step's values: the body is what lies between them and the roots.
 * operand: the length if there is one, and one each variable, of its type and shape. Other tensors
 * that next[] and stacked[] read and that depend on no slice or state become constants, the largest
 * such parts, so they are computed outside, once; so do parts over the given constants, unless
 * `recompute`. Slices and constants that nothing reads are left out, states are not. draws_stay:
 * the roots are made of tensors of another loop's body, so what draws random numbers belongs to the
 * step and is not moved out. */
ScanCall scan_close(Ir *ir, const Scan *spec, Node *const *operand, int nstacked,
		    Node *const *stacked, bool draws_stay);
Node *scan_final(Ir *ir, const ScanCall *call, int state);
/* The stack of a tensor of call->scan's body. */
Node *scan_stack(Ir *ir, const ScanCall *call, Node *value);
/* That of a state's variable with the last value. */
Node *scan_ends(Ir *ir, const ScanCall *call, int state);
/* The state of which a result is that; -1: of none. */
int scan_ends_of(const ScanResult *r);
/* Is it a stack of one value a step, without the last one of a state? */
static inline bool scan_is_stack(const ScanResult *r)
{
	return r->final < 0 && !r->ends;
}
/* Row 0 of that, for loops of one step. */
Node *scan_only(Ir *ir, const ScanCall *call, Node *value);
/* The results of the loop that scan_close would make of the same, without constants, computed in
 * segments of so many steps: final[k] of each state, out[k] of each stacked tensor. */
void scan_segments(Ir *ir, const Scan *spec, int64_t steps, Node *const *operand, int nstacked,
		   Node *const *stacked, Node **final, Node **out);
/* The error of a length n that the loop can't have, in the numbers that the user gave (name: of the
 * input that it comes from, or NULL). 0 where it is right. */
int scan_length_check(const Scan *l, int64_t n, const char *name, Error *err);
static inline int scan_nvar(const Scan *l)
{
	return l->nslice + l->nstate + l->nconst;
}
static inline int scan_noperand(const Scan *l)
{
	return l->has_length + scan_nvar(l);
}
/* The row of a stack that what step t computes belongs to; with ends, what it starts from. */
static inline int64_t scan_row(const ScanResult *r, int64_t t)
{
	return t + (r->ends && r->scan->backwards);
}
/* Of SCAN nodes. */
static inline Scan *scan_of(const Node *n)
{
	return n->u.result->scan;
}
static inline Node *const *scan_operands(const Node *n)
{
	return n->src + n->u.result->rank;
}
/* Are a and b results of one run of one loop? */
bool scan_same_run(const Node *a, const Node *b);
/* The same result of the same loop over other operands, of the same types and shapes. For another
 * Ir's SCANs node_import copies the loop. */
Node *scan_over(Ir *ir, const Node *n, Node *const *operand);

static inline bool node_is_tensor(const Node *n)
{
	return n->op == OP_INPUT || n->op == OP_COMP || n->op == OP_SCAN;
}
static inline int comp_naxis(const Node *c)
{
	return (int)(c->u.i & 255);
}
static inline int tensor_rank(const Node *t)
{
	return t->op == OP_COMP	  ? (int)(t->u.i >> 8 & 255)
	       : t->op == OP_SCAN ? t->u.result->rank
				  : t->nsrc;
}
static inline Reduce comp_reduce(const Node *c)
{
	return (Reduce)(c->u.i >> 16 & 255);
}
static inline Node *comp_axis(const Node *c, int k)
{
	return c->src[k];
}
static inline Node *comp_lhs(const Node *c, int d)
{
	return c->src[comp_naxis(c) + d];
}
static inline Node *comp_body(const Node *c)
{
	return c->src[c->nsrc - 1];
}
static inline int64_t axis_extent(const Node *axis)
{
	return axis->hi + 1;
}
static inline int64_t tensor_extent(const Node *t, int d)
{
	return t->op == OP_COMP ? t->src[comp_naxis(t) + tensor_rank(t) + d]->u.i : t->src[d]->u.i;
}
/* Do its bounds keep the READ inside its tensor, whatever the conditions around it? */
static inline bool read_stays(const Node *read)
{
	bool inside = true;
	for (int d = 0; d < tensor_rank(read->src[0]); d++)
		inside &= read->src[1 + d]->lo >= 0 &&
			  read->src[1 + d]->hi < tensor_extent(read->src[0], d);
	return inside;
}
/* Is n a READ that leaves its tensor where conditions around it don't hold? */
static inline bool node_reads_outside(const Node *n)
{
	return n->op == OP_READ && !read_stays(n);
}
/* The axes of t's dimensions, numbered by them. */
void tensor_axes(Ir *ir, const Node *t, Node **axes);
int64_t tensor_size(const Node *t); /* elements */
size_t tensor_bytes(const Node *t);
bool tensor_same_shape(const Node *a, const Node *b);
/* Is t a scalar whose equation is one integer? */
bool tensor_integer(const Node *t, int64_t *v);
/* The tensor of which t is an element by element copy; NULL: of none. */
Node *tensor_copied(const Node *t);
/* The tensor whose elements all of t's are, wherever they were moved to: of a transposed copy, or part, what that reads; t
 * itself where it is computed. */
Node *tensor_moved(Node *t);
bool comp_is_dense(const Node *c);
double comp_points(const Node *c); /* size of the domain */
/* Splits SELECT(cond, x, identity) factors off body: the conjuncts go to guard[], the rest is
 * returned. */
Node *reduce_guards(Ir *ir, Reduce red, Node *body, int room, int *nguard, Node **guard);
/* e where the condition is e >= 0 of integers; NULL for others. */
Node *condition_slack(Ir *ir, const Node *cond);
/* As double; integers' max= starts from the type's least value. */
double reduce_identity(Reduce r, Type t);
int64_t reduce_identity_int(Reduce r, Type t);
/* The start of a reduction of elements `of` as a node of type t: max= of u8 starts from 0, whatever
 * it accumulates in. */
Node *node_identity(Ir *ir, Reduce r, Type of, Type t);
/* x and y reduced to one; not of RED_NONE. */
Node *node_combine(Ir *ir, Reduce r, Node *x, Node *y);
/* The tensors that the COMP c's body and left side read, or a SCAN's operands, each once, by id;
 * returns the count. The list is found once and kept in the arena. */
int comp_reads(Ir *ir, const Node *c, Node ***tensors);
/* Everything that `roots` need, sources first (by id), inputs included. Iterative: depth does not
 * matter. */
int graph_order(Ir *ir, int nroot, Node *const *roots, Node ***order);
/* Puts for each of roots[], and for what it needs, that has no value in map, one made of its
 * sources' values there: itself when none changed. Below what has a value nothing is looked at. */
void graph_replace(Ir *ir, int nroot, Node *const *roots, NodeMap *map);
/* Each tensor that roots need, sources first, becomes change(user, it, it over what its sources became); roots[]
 * are replaced. */
typedef Node *TensorChange(void *user, Node *was, Node *t);
void graph_change(Ir *ir, int nroot, Node **roots, TensorChange *change, void *user);
/* roots[k] becomes the same tensor with 1 (train) or 0 where TRAINING stands, also in loops' bodies.
 * What hides the equations of user-given gradients is kept, their records are not copied: for
 * graphs that are differentiated no more. */
void graph_set_training(Ir *ir, int nroot, Node **roots, bool train);
/* The tensor t made of what map has for its sources; itself when none changed. */
Node *tensor_over(Ir *ir, Node *t, NodeMap *map);

#endif

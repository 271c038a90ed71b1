/* equation.c - the gradient of one equation with respect to each of its reads, as equations.
 *
 * Y[lhs(v)] op= body(v). First the adjoint of the body at each v, which depends on op=; then the
 * terms of the reads (derive.c), each of which becomes an equation of its own (phase.c):
 *	=, +=        dY[lhs(v)]
 *	max=, min=   dY/N at lhs(v) where body(v) == Y[lhs(v)], with N ties: equal shares
 *	*=           dY * the product of the other factors, right where factors are zero
 * Invariant: a result is a tensor of A's type and shape, and reads stay inside their tensors
 * wherever the conditions of the SELECTs around them hold.
 */
#include "autodiff/internal.h"

/* Up to so many factors, the product of the others is made for each factor by leaving it out. */
#define EXCLUDE_MAX 32

Node *tensor_read(Ir *ir, Node *t, Node *const *index)
{
	if (t->op == OP_CONST)
		return t;
	if (t->op == OP_COMP && comp_reduce(t) == RED_NONE && node_is_const(comp_body(t)))
		return comp_body(t);
	return node_read(ir, t, index);
}

void tensor_axes(Ir *ir, const Node *t, Node **axes)
{
	for (int d = 0; d < tensor_rank(t); d++)
		axes[d] = node_axis(ir, d, tensor_extent(t, d));
}

Node *tensor_fill(Ir *ir, Node *like, double value)
{
	Node *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(like);
	tensor_axes(ir, like, axes);
	return comp_dense(ir, RED_NONE, rank, rank, axes, node_const(ir, like->type, value));
}

/* ---- the adjoint of the body */

typedef struct Side {
	int rank, naxis;
	int64_t shape[RICCI_MAX_RANK];
	Node *const *lhs, *const *axes;
	Node *body, *dy;
} Side;

static Side side_of(Node *c, Node *dy)
{
	Side s = {.rank = tensor_rank(c), .naxis = comp_naxis(c)};
	for (int d = 0; d < s.rank; d++)
		s.shape[d] = tensor_extent(c, d);
	s.axes = c->src;
	s.lhs = c->src + s.naxis;
	s.body = comp_body(c);
	s.dy = dy;
	return s;
}

/* The left side's equation with another reduction and body. */
static Node *side_comp(Ir *ir, const Side *s, Reduce red, Node *body)
{
	return comp_make(ir, red, s->rank, s->shape, s->lhs, s->naxis, s->axes, body);
}

static void count_roundings(void *user, Node *n)
{
	static const Op exact[] = {OP_CONST, OP_READ, OP_SELECT, OP_NEG,  OP_ABS,   OP_MIN,
				   OP_MAX,   OP_SIGN, OP_FLOOR,	 OP_CEIL, OP_ROUND, OP_STOP};
	static const Op rounded[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_SQRT, OP_CAST};
	if (!type_is_float(n->type) || node_is_tensor(n))
		return;
	for (int k = 0; k < COUNT(exact); k++)
		if (n->op == exact[k])
			return;
	int cost = 2;
	for (int k = 0; k < COUNT(rounded); k++)
		if (n->op == rounded[k])
			cost = 1;
	*(int *)user += cost;
}

/* Does the body have the same bits wherever it is computed again? Contracted products and functions
 * of different libraries do not; a single operation does, unless it is rounded to 16 bits on the
 * way. */
static bool reproducible(Ir *ir, Node *body)
{
	int roundings = 0;
	node_walk(ir, body, count_roundings, &roundings);
	return roundings <= (type_size(body->type) >= 4);
}

/* dY / N at lhs(v) where body(v) is the extremum. */
static Node *seed_extremum(Ir *ir, Node *c, const Side *s)
{
	Type type = (Type)c->type, acc = type_accumulator(type);
	Node *body = s->body;
	if (s->naxis <= RICCI_MAX_RANK && !reproducible(ir, body)) {
		/* compare stored values, and their extremum */
		Node *stored = comp_dense(ir, RED_NONE, s->naxis, s->naxis, s->axes, body);
		body = node_read(ir, stored, s->axes);
		c = side_comp(ir, s, comp_reduce(c), body);
	}
	Node *hit = node2(ir, OP_EQ, body, node_read(ir, c, s->lhs));
	Node *one = node_select(ir, hit, node_const(ir, acc, 1), node_const(ir, acc, 0));
	Node *ties = side_comp(ir, s, RED_ADD, one), *axes[RICCI_MAX_RANK];
	tensor_axes(ir, c, axes);
	Node *share = node2(ir, OP_DIV, node_cast(ir, acc, tensor_read(ir, s->dy, axes)),
			    node_read(ir, ties, axes));
	share = comp_dense(ir, RED_NONE, s->rank, s->rank, axes, node_cast(ir, type, share));
	return node_select(ir, hit, node_read(ir, share, s->lhs), node_const(ir, type, 0));
}

/* The product of the other factors: over a second copy w of the reduced axes, w != v. */
static Node *others_by_exclusion(Ir *ir, const Side *s)
{
	Node *axes[COMP_MAX_AXES], *twin[COMP_MAX_AXES],
		*differ = node_const_int(ir, RICCI_BOOL, 0);
	int nreduced = s->naxis - s->rank;
	for (int k = 0; k < s->naxis; k++)
		axes[k] = s->axes[k];
	for (int k = 0; k < nreduced; k++) {
		Node *v = s->axes[s->rank + k];
		twin[k] = axes[s->naxis + k] = node_axis(ir, s->naxis + k, axis_extent(v));
		differ = node2(ir, OP_OR, differ, node2(ir, OP_NE, v, twin[k]));
	}
	Node *body = node_replace(ir, s->body, nreduced, s->axes + s->rank, twin);
	body = node_select(ir, differ, body, node_const(ir, body->type, 1));
	Node *others = comp_dense(ir, RED_MUL, s->naxis, s->naxis + nreduced, axes, body);
	return node_read(ir, others, s->axes);
}

/* The same from the number of zeros and the product of the rest, for long products. */
static Node *others_by_counting(Ir *ir, Node *c, const Side *s)
{
	Type type = (Type)c->type, acc = type_accumulator(type);
	Node *zero = node_const(ir, type, 0), *one = node_const(ir, type, 1);
	Node *is_zero = node2(ir, OP_EQ, s->body, zero);
	Node *count = node_select(ir, is_zero, node_const(ir, acc, 1), node_const(ir, acc, 0));
	Node *zeros = node_read(ir, side_comp(ir, s, RED_ADD, count), s->lhs);
	Node *rest = side_comp(ir, s, RED_MUL, node_select(ir, is_zero, one, s->body));
	Node *only = node2(ir, OP_EQ, zeros, node_const(ir, acc, 1));
	Node *none = node2(ir, OP_EQ, zeros, node_const(ir, acc, 0));
	Node *product = node_read(ir, rest, s->lhs);
	return node_select(ir, is_zero, node_select(ir, only, product, zero),
			   node_select(ir, none, node2(ir, OP_DIV, product, s->body), zero));
}

static Node *seed_product(Ir *ir, Node *c, const Side *s)
{
	double factors = comp_points(c) / (double)tensor_size(c);
	bool few = comp_is_dense(c) && factors <= EXCLUDE_MAX && s->naxis <= RICCI_MAX_RANK;
	Node *others = few ? others_by_exclusion(ir, s) : others_by_counting(ir, c, s);
	return node_mul(ir, tensor_read(ir, s->dy, s->lhs), others);
}

Node *equation_seed(Ir *ir, Node *c, Node *dy)
{
	Side s = side_of(c, dy);
	switch (comp_reduce(c)) {
	case RED_MAX:
	case RED_MIN:
		return seed_extremum(ir, c, &s);
	case RED_MUL:
		return seed_product(ir, c, &s);
	default:
		return tensor_read(ir, dy, s.lhs);
	}
}

Node *equation_root(Ir *ir, Node *c)
{
	return comp_reduce(c) == RED_NONE ? node_read(ir, c, c->src + comp_naxis(c)) : comp_body(c);
}

int equation_terms(Tape *tape, Node *c, Node *dy, Term **terms)
{
	Node *root = equation_root(tape->ir, c), *seed = equation_seed(tape->ir, c, dy);
	return terms_split(tape->ir, derive_body(tape, comp_body(c), root, seed, terms), terms);
}

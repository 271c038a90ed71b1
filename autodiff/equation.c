/* equation.c - the gradient of one equation with respect to each of its reads, as equations.
 *
 * Y[lhs(v)] op= body(v). First the adjoint of the body at each v, which depends on op=; then the
 *terms of the reads (derive.c); then for a read A[f(v)], dA[z] += term(v) over all v with f(v) = z
 *(system.c):
 *	=, +=        dY[lhs(v)]
 *	max=, min=   dY/N at lhs(v) where body(v) == Y[lhs(v)], with N the number of ties: equal
 *shares
 *	*=           dY * the product of the other factors, right where factors are zero
 * What f is not invertible for (gathers, products of indices) becomes a scatter over v, dA[f(v)] +=
 *term(v). Invariant: a result is a tensor of A's type and shape, and reads stay inside their
 *tensors wherever the conditions of the SELECTs around them hold.
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

static void tensor_axes(Ir *ir, const Node *t, Node **axes)
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
	static const Op exact[] = {OP_CONST, OP_READ, OP_SELECT, OP_NEG,  OP_ABS,  OP_MIN,
				   OP_MAX,   OP_SIGN, OP_FLOOR,	 OP_CEIL, OP_ROUND};
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

int equation_terms(Tape *tape, Node *c, Node *dy, Term **terms)
{
	Ir *ir = tape->ir;
	Side s = side_of(c, dy);
	Reduce red = comp_reduce(c);
	Node *seed, *root = red == RED_NONE ? node_read(ir, c, s.lhs) : s.body;

	if (red == RED_MAX || red == RED_MIN)
		seed = seed_extremum(ir, c, &s);
	else if (red == RED_MUL)
		seed = seed_product(ir, c, &s);
	else
		seed = tensor_read(ir, dy, s.lhs);
	return derive_body(tape, s.body, root, seed, terms);
}

/* ---- one term */

#define MAX_CONDITIONS 512
#define MAX_PRUNED     64

/* Conditions in an order in which earlier ones protect later ones; `never` when one is false. When
 * the room is full, the last one is a conjunction. */
typedef struct Conditions {
	Ir *ir;
	int n;
	bool never;
	Node *at[MAX_CONDITIONS];
} Conditions;

static void conditions_put(Conditions *c, Node *cond)
{
	if (node_is_value(cond, 1))
		return;
	c->never |= node_is_value(cond, 0);
	for (int k = 0; k < c->n; k++)
		if (c->at[k] == cond)
			return;
	if (c->n == MAX_CONDITIONS)
		cond = node2(c->ir, OP_AND, c->at[--c->n], cond);
	c->at[c->n++] = cond;
}

static void conditions_split(Conditions *c, Node *cond)
{
	for (; cond->op == OP_AND; cond = cond->src[1])
		conditions_split(c, cond->src[0]);
	conditions_put(c, cond);
}

static Node *conditions_all(const Conditions *c)
{
	Node *all = c->n ? c->at[0] : node_const_int(c->ir, RICCI_BOOL, 1);
	for (int k = 1; k < c->n; k++)
		all = node2(c->ir, OP_AND, all, c->at[k]);
	return all;
}

static bool is_index_compare(const Node *n)
{
	return (n->op == OP_LT || n->op == OP_LE || n->op == OP_EQ || n->op == OP_NE) &&
	       n->src[0]->type == RICCI_I64;
}

static bool same_atoms(const Affine *x, const Affine *y, int64_t sign)
{
	if (x->n != y->n || !x->n)
		return false;
	for (int k = 0; k < x->n; k++)
		if (x->atom[k] != y->atom[k] || x->k[k] != sign * y->k[k])
			return false;
	return true;
}

/* A comparison that tests an index of the read alone, restated for z, which is within the tensor;
 * NULL for others. */
static Node *restate(Ir *ir, Node *cond, const Affine *index, int rank, Node *const *z)
{
	if (!is_index_compare(cond))
		return NULL;
	Affine x = affine_of(ir, node_sub(ir, cond->src[1], cond->src[0]));
	for (int d = 0; d < rank; d++)
		for (int sign = 1; sign >= -1; sign -= 2)
			if (same_atoms(&x, &index[d], sign)) {
				int64_t c = x.c - sign * index[d].c;
				Node *e = node_add(ir, node_scale(ir, z[d], sign), node_int(ir, c));
				return node2(ir, cond->op, node_int(ir, 0), e);
			}
	return NULL;
}

static void see_read(void *user, Node *n)
{
	*(bool *)user |= n->op == OP_READ || n->op == OP_RANDOM || n->op == OP_NORMAL;
}

/* Puts what depends on axes only first, where it can be evaluated whatever the others say; returns
 * how many those are. Both kinds keep their order. */
static int order_conditions(Ir *ir, Conditions *c)
{
	Node *data[MAX_CONDITIONS];
	int n = 0, ndata = 0;
	for (int k = 0; k < c->n; k++) {
		bool reads = false;
		node_walk(ir, c->at[k], see_read, &reads);
		if (reads)
			data[ndata++] = c->at[k];
		else
			c->at[n++] = c->at[k];
	}
	for (int k = 0; k < ndata; k++)
		c->at[n + k] = data[k];
	return n;
}

/* Drops conditions on axes that the others imply; false when they contradict one another. */
static bool prune(Ir *ir, Conditions *c)
{
	int n = order_conditions(ir, c);
	for (int k = n - 1; k >= 0 && n <= MAX_PRUNED; k--) {
		if (!is_index_compare(c->at[k]))
			continue;
		Polyhedron *p = poly_new(ir);
		for (int j = 0; j < n; j++)
			if (j != k)
				poly_assume(p, c->at[j]);
		if (poly_is_empty(p))
			return false;
		if (!poly_implies(p, c->at[k]))
			continue;
		n--;
		c->n--;
		for (int j = k; j < c->n; j++)
			c->at[j] = c->at[j + 1];
	}
	return true;
}

/* Narrows the free axes to what the conditions leave of them. */
static void narrow(Ir *ir, Conditions *c, int *nfree, Node **free, Node **value)
{
	Node *to[COMP_MAX_AXES], *from[COMP_MAX_AXES];
	int n = 0, kept = 0;
	Polyhedron *p = poly_new(ir);
	for (int k = 0; k < c->n; k++)
		poly_assume(p, c->at[k]);
	for (int k = 0; k < *nfree; k++) {
		int64_t lo, hi;
		Node *t = free[k];
		bool less = poly_bounds(p, t, &lo, &hi) && lo <= hi && (lo > 0 || hi < t->hi);
		if (!less) {
			free[kept++] = t;
			continue;
		}
		Node *axis = node_axis(ir, (int)t->u.i, hi - lo + 1);
		from[n] = t;
		to[n++] = hi > lo ? node_add(ir, axis, node_int(ir, lo)) : node_int(ir, lo);
		if (hi > lo)
			free[kept++] = axis;
	}
	*nfree = kept;
	if (!n)
		return;
	Conditions old = *c;
	*c = (Conditions){.ir = ir, .never = old.never};
	for (int k = 0; k < old.n; k++)
		conditions_put(c, node_replace(ir, old.at[k], n, from, to));
	*value = node_replace(ir, *value, n, from, to);
}

/* value at the points of the inverse; the read's own indices are z there. */
static Node *value_at(Ir *ir, Node *c, const Term *term, const Inverse *inv, Node *const *z)
{
	Node *from[COMP_MAX_AXES + RICCI_MAX_RANK], *to[COMP_MAX_AXES + RICCI_MAX_RANK];
	int n = comp_naxis(c);
	for (int k = 0; k < n; k++) {
		from[k] = comp_axis(c, k);
		to[k] = inv->value[k];
	}
	for (int d = 0; d < tensor_rank(term->read->src[0]); d++) {
		Node *index = term->read->src[1 + d];
		if (index->op == OP_AXIS || index->op == OP_CONST)
			continue;
		from[n] = index;
		to[n++] = z[d];
	}
	return node_replace(ir, term->value, n, from, to);
}

/* dA[z] += value over the points of the inverse; NULL for zero. */
static Node *gather_term(Ir *ir, Node *c, const Term *term, Inverse *inv, Node *const *z)
{
	Node *tensor = term->read->src[0], *axes[COMP_MAX_AXES];
	int rank = tensor_rank(tensor), naxis = comp_naxis(c);
	Affine index[RICCI_MAX_RANK];
	Conditions guard = {.ir = ir}, all = {.ir = ir};

	for (int d = 0; d < rank; d++)
		index[d] = affine_of(ir, term->read->src[1 + d]);
	for (int k = 0; k < inv->ncond; k++)
		conditions_put(&all, inv->cond[k]);
	if (term->guard)
		conditions_split(&guard, term->guard);
	for (int k = 0; k < guard.n; k++) {
		Node *on_z = restate(ir, guard.at[k], index, rank, z);
		conditions_split(&all,
				 on_z ? on_z
				      : node_replace(ir, guard.at[k], naxis, c->src, inv->value));
	}
	if (all.never || !prune(ir, &all))
		return NULL;
	Node *value = value_at(ir, c, term, inv, z);
	narrow(ir, &all, &inv->nfree, inv->free, &value);
	value = node_select(ir, conditions_all(&all), value, node_const(ir, value->type, 0));
	if (all.never || node_is_value(value, 0))
		return NULL;
	for (int d = 0; d < rank; d++)
		axes[d] = z[d];
	for (int k = 0; k < inv->nfree; k++)
		axes[rank + k] = inv->free[k];
	return comp_dense(ir, inv->nfree ? RED_ADD : RED_NONE, rank, rank + inv->nfree, axes,
			  value);
}

/* dA[f(v)] += value over the equation's own domain; where the guard fails, zero is added to what is
 * certainly an element. */
static Node *scatter_term(Ir *ir, Node *c, const Term *term)
{
	Node *tensor = term->read->src[0], *lhs[RICCI_MAX_RANK], *value = term->value;
	int rank = tensor_rank(tensor);
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < rank; d++) {
		shape[d] = tensor_extent(tensor, d);
		lhs[d] = term->read->src[1 + d];
		if (term->guard && (lhs[d]->lo < 0 || lhs[d]->hi >= shape[d]))
			lhs[d] = node_select(ir, term->guard, lhs[d], node_int(ir, 0));
	}
	if (term->guard)
		value = node_select(ir, term->guard, value, node_const(ir, value->type, 0));
	return comp_make(ir, RED_ADD, rank, shape, lhs, comp_naxis(c), c->src, value);
}

Node *term_gradient(Ir *ir, Node *c, const Term *term)
{
	Node *tensor = term->read->src[0], *z[RICCI_MAX_RANK];
	int rank = tensor_rank(tensor);
	Inverse inv;

	if (node_is_value(term->value, 0))
		return NULL;
	tensor_axes(ir, tensor, z);
	if (!index_invert(ir, comp_naxis(c), c->src, rank, term->read->src + 1, z, rank, &inv) ||
	    rank + inv.nfree > COMP_MAX_AXES)
		return scatter_term(ir, c, term);
	return gather_term(ir, c, term, &inv, z);
}

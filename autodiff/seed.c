/* seed.c - the adjoint of an equation's body at each point of its domain.
 *
 * Y[lhs(v)] op= body(v):
 *	=, +=        dY[lhs(v)]
 *	max=, min=   dY/N at lhs(v) where body(v) is Y[lhs(v)], with N ties: equal shares
 *	*=           dY * the product of the other factors (product.c)
 * Input: the equation and dY. Output: an expression over its axes. Invariant: what is compared with
 * an extremum has the bits that the extremum was found among. */
#include "autodiff/internal.h"

static void count_roundings(void *user, Node *n)
{
	static const Op exact[] = {OP_CONST, OP_READ,  OP_SELECT, OP_NEG,   OP_ABS,  OP_MIN, OP_MAX,
				   OP_SIGN,  OP_FLOOR, OP_CEIL,	  OP_ROUND, OP_TF32, OP_STOP};
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

Node *extremum_hit(Ir *ir, Reduce red, Node *e, Node *y)
{
	bool max = red == RED_MAX;
	return node_not(ir, node2(ir, OP_LT, max ? e : y, max ? y : e));
}

Node *extremum_ties(Ir *ir, Node *c, Node **hit)
{
	Type acc = type_accumulator((Type)c->type);
	Node *body = comp_body(c), *y = c;
	int naxis = comp_naxis(c);
	if (naxis <= RICCI_MAX_RANK && !reproducible(ir, body)) {
		/* compare stored values, and their extremum: fusion keeps what is compared so */
		Node *stored = comp_dense(ir, RED_NONE, naxis, naxis, c->src, body);
		body = node_read(ir, stored, c->src);
		y = comp_with(ir, c, comp_reduce(c), body);
	}
	*hit = extremum_hit(ir, comp_reduce(c), body, node_read(ir, y, c->src + naxis));
	Node *one = node_select(ir, *hit, node_const(ir, acc, 1), node_const(ir, acc, 0));
	return comp_with(ir, c, RED_ADD, one);
}

/* dY / N at lhs(v) where body(v) is the extremum. */
static Node *seed_extremum(Ir *ir, Node *c, Node *dy)
{
	Type type = (Type)c->type, acc = type_accumulator(type);
	Node *axes[RICCI_MAX_RANK], *hit, *ties = extremum_ties(ir, c, &hit);
	int rank = tensor_rank(c);
	tensor_axes(ir, c, axes);
	Node *share = node2(ir, OP_DIV, node_cast(ir, acc, tensor_read(ir, dy, axes)),
			    node_read(ir, ties, axes));
	share = comp_dense(ir, RED_NONE, rank, rank, axes, node_cast(ir, type, share));
	share = node_read(ir, share, c->src + comp_naxis(c));
	return node_select(ir, hit, share, node_const(ir, type, 0));
}

Node *equation_seed(Ir *ir, Node *c, Node *dy)
{
	Node *value = tensor_read(ir, dy, c->src + comp_naxis(c));
	switch (comp_reduce(c)) {
	case RED_MAX:
	case RED_MIN:
		return seed_extremum(ir, c, dy);
	case RED_MUL:
		return node_mul(ir, value, product_others(ir, c));
	default:
		return value;
	}
}

Node *equation_root(Ir *ir, Node *c)
{
	return comp_reduce(c) == RED_NONE ? node_read(ir, c, c->src + comp_naxis(c)) : comp_body(c);
}

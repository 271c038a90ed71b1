/* means.c - what deviates from its mean adds up to 0.
 *
 * In: an equation `Y[i] += X[..] - M[i]/n` over n points for each i, where `M[i] += X[..]` over the same points;
 * the mean may be an equation of its own, and X be divided before it is added up. Out: `Y[i] = 0`. The gradients of
 * normalisations have such sums: a pass over all of X each, of which only rounding would be left. */
#include "jit/rewrite/rewrite.h"

#include <math.h>

/* Of constants as close to each other as 1/n in f32 is to 1/n. */
#define SAME_CONSTANT 1e-6

/* The equation that n reads at the element that c computes; NULL: there is none. */
static Node *read_at_element(const Node *c, const Node *n)
{
	Node *t = n->op == OP_READ ? n->src[0] : NULL;
	bool same = t && t->op == OP_COMP && tensor_same_shape(c, t) && comp_is_dense(t);
	for (int d = 0; d < tensor_rank(c) && same; d++)
		same = n->src[1 + d] == comp_axis(c, d);
	return same ? t : NULL;
}

/* The node without a constant factor, by which *factor is multiplied. */
static Node *without_factor(Node *n, double *factor)
{
	if (n->op == OP_DIV && n->src[1]->op == OP_CONST) {
		*factor /= n->src[1]->u.f;
		return n->src[0];
	}
	if (n->op == OP_MUL && n->src[0]->op == OP_CONST) {
		*factor *= n->src[0]->u.f;
		return n->src[1];
	}
	return n;
}

/* The equation of c's left side and its first axes, with another right side. */
static Node *equation(Ir *ir, const Node *c, Reduce red, int naxis, Node *body)
{
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < tensor_rank(c); d++)
		shape[d] = tensor_extent(c, d);
	return comp_make(ir, red, tensor_rank(c), shape, c->src + comp_naxis(c), naxis, c->src,
			 body);
}

/* The sum c, of x in place of what it sums. */
static Node *sum_of(Ir *ir, const Node *c, Node *x)
{
	return equation(ir, c, RED_ADD, comp_naxis(c), x);
}

/* Is `mean` that of x over the axes that c reduces? */
static bool is_mean(Ir *ir, const Node *c, Node *x, Node *mean)
{
	double points = comp_points(c) / (double)tensor_size(c), of = 1, divided = 1, summed = 1;
	Node *m = read_at_element(c, mean);
	if (m && comp_reduce(m) == RED_NONE) /* its axes are c's: equal axes are equal nodes */
		mean = comp_body(m);
	m = read_at_element(c, without_factor(mean, &divided));
	if (!m || comp_reduce(m) != RED_ADD || m->type != c->type)
		return false;
	Node *sum = sum_of(ir, c, without_factor(x, &of));
	return sum == sum_of(ir, m, without_factor(comp_body(m), &summed)) &&
	       fabs(points * divided * summed / of - 1) < SAME_CONSTANT;
}

Node *deviations_away(Ir *ir, Node *c)
{
	Node *body = comp_body(c);
	Type type = (Type)c->type;
	if (comp_reduce(c) != RED_ADD || body->op != OP_SUB || !type_is_float(type) ||
	    type_accumulator(type) != type || !comp_is_dense(c))
		return c;
	Node *a = body->src[0], *b = body->src[1];
	if (!is_mean(ir, c, a, b) && !is_mean(ir, c, b, a))
		return c;
	return equation(ir, c, RED_NONE, tensor_rank(c), node_const(ir, type, 0));
}

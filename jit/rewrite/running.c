/* running.c - a reduction that runs along two axes at once becomes two that run along one each
 * (an integral image: Y[i,k] += X[j,l] where j <= i, l <= k; first T[i,l] += X[j,l] where j <= i).
 *
 * Input: an equation. Output: the same, or the second of two. Invariant: each point is summed once;
 * what the first leaves is of the type that sums have. */
#include "jit/rewrite/rewrite.h"

/* Does another dimension run, over another axis? */
static bool runs_beside(Ir *ir, const Node *c, int at, const Running *r)
{
	for (int d = 0; d < tensor_rank(c); d++) {
		Running other;
		if (d != at && comp_running(ir, c, d, &other) && other.over != r->over)
			return true;
	}
	return false;
}

/* Is the axis that dimension `at` runs over the only reduced one that the condition asks for? */
static bool asks_alone(const Node *c, const Running *r)
{
	for (int k = tensor_rank(c); k < comp_naxis(c); k++)
		if (k != r->over && node_has(r->e, comp_axis(c, k)))
			return false;
	return true;
}

/* Dimension `at` is summed last. */
static Node *sum_apart(Ir *ir, const Node *c, int at, const Running *r)
{
	Node *axes[COMP_MAX_AXES], *over = comp_axis(c, r->over);
	int rank = tensor_rank(c), n = rank;
	Type t = (Type)c->type;
	Reduce red = comp_reduce(c);
	Node *start = node_identity(ir, red, t, t);
	Node *cond = node_const_int(ir, RICCI_BOOL, 1);
	for (int k = 0; k < comp_naxis(c); k++)
		if (k < rank)
			axes[k] = k == at ? over : comp_axis(c, k);
		else if (k != r->over)
			axes[n++] = comp_axis(c, k);
	for (int k = 0; k < r->ncond; k++)
		cond = node2(ir, OP_AND, cond, r->cond[k]);
	Node *first = comp_dense(ir, red, rank, n, axes, node_select(ir, cond, r->body, start));
	Node *sum = node_read(ir, running_apart(ir, first), axes);
	axes[at] = comp_axis(c, at);
	axes[rank] = over;
	cond = node2(ir, OP_LE, node_int(ir, 0), r->e);
	return comp_dense(ir, red, rank, rank + 1, axes, node_select(ir, cond, sum, start));
}

Node *running_apart(Ir *ir, Node *c)
{
	for (int d = tensor_rank(c) - 1; d >= 0; d--) {
		Running r;
		if (type_accumulator((Type)c->type) == (Type)c->type &&
		    comp_running(ir, c, d, &r) && !r.factor && !r.divisor && asks_alone(c, &r) &&
		    runs_beside(ir, c, d, &r))
			return sum_apart(ir, c, d, &r);
	}
	return c;
}

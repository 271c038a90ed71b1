/* comp.c - tensors and equations: making a computation canonical, and asking about it.
 * Invariant: equal computations over equal tensors are one pointer (comp_make renumbers axes by
 * their place). */
#include "core/node/internal.h"

static int find(Node *const *list, int count, const Node *x)
{
	for (int k = 0; k < count; k++)
		if (list[k] == x)
			return k;
	return -1;
}

/* The axes in canonical order: bare left ones, then as they appear, then those that only repeat.
 * Returns the count; axes of extent 1 that are not bare on the left go to `ones`. */
static int order_axes(Ir *ir, Reduce red, int rank, Node *const *lhs, int naxis, Node *const *axes,
		      Node *body, Node **out, Node **ones, int *none)
{
	Node *seen[COMP_MAX_AXES], *root[RICCI_MAX_RANK + 1];
	int n = 0;
	for (int d = 0; d < rank; d++)
		if (find(axes, naxis, lhs[d]) >= 0 && find(out, n, lhs[d]) < 0)
			out[n++] = lhs[d];
	for (int d = 0; d < rank; d++)
		root[d] = lhs[d];
	root[rank] = body;
	int count = node_axes(ir, rank + 1, root, seen);
	*none = 0;
	for (int k = 0; k < count; k++)
		if (find(axes, naxis, seen[k]) >= 0 && find(out, n, seen[k]) < 0) {
			if (axis_extent(seen[k]) == 1)
				ones[(*none)++] = seen[k];
			else
				out[n++] = seen[k];
		}
	for (int k = 0; k < naxis; k++) {
		bool repeats = (red == RED_ADD || red == RED_MUL) && axis_extent(axes[k]) > 1;
		if (repeats && find(out, n, axes[k]) < 0)
			out[n++] = axes[k];
	}
	return n;
}

static Node *comp_once(Ir *ir, Reduce red, int rank, const int64_t *shape, Node *const *lhs,
		       int naxis, Node *const *axes, Node *body)
{
	Node *order[COMP_MAX_AXES], *from[2 * COMP_MAX_AXES], *to[2 * COMP_MAX_AXES],
		*ones[COMP_MAX_AXES];
	int none, n = order_axes(ir, red, rank, lhs, naxis, axes, body, order, ones, &none);
	Node *src[COMP_MAX_AXES + 2 * RICCI_MAX_RANK + 1];
	for (int k = 0; k < n; k++) {
		from[k] = order[k];
		to[k] = src[k] = node_axis(ir, k, axis_extent(order[k]));
	}
	for (int k = 0; k < none; k++) {
		from[n + k] = ones[k];
		to[n + k] = node_int(ir, 0);
	}
	bool dense = true;
	for (int d = 0; d < rank; d++) {
		src[n + d] = node_replace(ir, lhs[d], n + none, from, to);
		src[n + rank + d] = node_int(ir, shape[d]);
		dense &= src[n + d] == src[d] && d < n && axis_extent(src[d]) == shape[d];
	}
	if (dense && n == rank)
		red = RED_NONE;
	src[n + 2 * rank] = node_replace(ir, body, n + none, from, to);
	return node_raw(ir, OP_COMP, (Type)body->type, n + 2 * rank + 1, src,
			n | rank << 8 | (int)red << 16, NULL);
}

/* New numbers can change the order of sums, and an axis that became 0 can take others along; so
 * until nothing changes. Of two forms that become each other the one of the smaller hash is taken.
 */
Node *comp_make(Ir *ir, Reduce red, int rank, const int64_t *shape, Node *const *lhs, int naxis,
		Node *const *axes, Node *body)
{
	Node *c = comp_once(ir, red, rank, shape, lhs, naxis, axes, body), *before = NULL;
	for (int round = 0; round < 8; round++) {
		int n = comp_naxis(c);
		Node *next = comp_once(ir, comp_reduce(c), rank, shape, c->src + n, n, c->src,
				       comp_body(c));
		if (next == c)
			break;
		if (next == before)
			return next->hash < c->hash ? next : c;
		before = c;
		c = next;
	}
	return c;
}

Node *comp_dense(Ir *ir, Reduce red, int rank, int naxis, Node *const *axes, Node *body)
{
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < rank; d++)
		shape[d] = axis_extent(axes[d]);
	return comp_make(ir, red, rank, shape, axes, naxis, axes, body);
}

Node *comp_over(Ir *ir, const Node *c, Reduce red, int naxis, Node *const *axes, Node *body)
{
	int64_t shape[RICCI_MAX_RANK];
	int rank = tensor_rank(c);
	for (int d = 0; d < rank; d++)
		shape[d] = tensor_extent(c, d);
	return comp_make(ir, red, rank, shape, c->src + comp_naxis(c), naxis, axes, body);
}

Node *comp_with(Ir *ir, const Node *c, Reduce red, Node *body)
{
	return comp_over(ir, c, red, comp_naxis(c), c->src, body);
}

void tensor_axes(Ir *ir, const Node *t, Node **axes)
{
	for (int d = 0; d < tensor_rank(t); d++)
		axes[d] = node_axis(ir, d, tensor_extent(t, d));
}

Node *node_identity(Ir *ir, Reduce r, Type of, Type t)
{
	return type_is_float(t) ? node_const(ir, t, reduce_identity(r, t))
				: node_const_int(ir, t, reduce_identity_int(r, of));
}

Node *node_combine(Ir *ir, Reduce r, Node *x, Node *y)
{
	static const Op op[RED_COUNT] = {
		[RED_ADD] = OP_ADD, [RED_MUL] = OP_MUL, [RED_MAX] = OP_MAX, [RED_MIN] = OP_MIN};
	return node2(ir, op[r], x, y);
}

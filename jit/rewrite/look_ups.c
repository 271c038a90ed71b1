/* look_ups.c - what is looked up at computed places is looked up in whole lines.
 *
 * In: an equation `V[b,c,p] = X[b,c,T[b,p]] * W[b,p]`, where an axis c, that has no part in the places, lies outside of
 * them. Out: one whose lines are along c, V'[b,p,c] = X'[b,T[b,p],c] * W[b,p], over a transposed copy X', and V[b,c,p] =
 * V'[b,p,c]. Places and weights are then computed once a line, and lines are loaded as a whole; scattered sums the same.
 * Invariant: for each element of what is looked up, or scattered to, the equation has some points. */
#include "jit/rewrite/rewrite.h"

/* Elements of a line, at least; for each element of what is looked up so many points of the equation. */
enum { LINE = 8, USES = 4 };

/* Is the index read, or computed from numbers? */
static bool is_computed(const Node *n)
{
	return n->op == OP_READ || (n->op == OP_CAST && type_is_float((Type)n->src[0]->type));
}

/* Does the axis stand in one of the indices only, alone, and in none that comes last? */
static bool is_outside(Node *const *index, int rank, Node *axis)
{
	int at = rewrite_place(index, rank, axis);
	if (at < 0 || at == rank - 1)
		return false;
	for (int d = 0; d < rank; d++)
		if (d != at && node_has(index[d], axis))
			return false;
	return true;
}

/* The longest axis of t's indices outside of computed ones, where the last is one; *longest so far. */
static void find_axis(Ir *ir, const Node *c, const Node *t, Node *const *index, Node **longest)
{
	int rank = tensor_rank(t);
	if (rank < 2 || !node_any(ir, index[rank - 1], is_computed) ||
	    USES * (double)tensor_size(t) > comp_points(c))
		return;
	for (int d = 0; d < rank; d++)
		if (index[d]->op == OP_AXIS && axis_extent(index[d]) >= LINE &&
		    is_outside(index, rank, index[d]) &&
		    (!*longest || axis_extent(index[d]) > axis_extent(*longest)))
			*longest = index[d];
}

/* all[] without number `at`, which comes last. */
static void move_last(int n, int at, Node *const *all, Node **out)
{
	for (int d = 0; d < n; d++)
		out[d] = all[d < at ? d : d + 1 < n ? d + 1 : at];
}

Node *read_of_copy(Ir *ir, const Node *read, int at)
{
	Node *t = read->src[0], *axis[RICCI_MAX_RANK], *moved[RICCI_MAX_RANK];
	int rank = tensor_rank(t);
	tensor_axes(ir, t, axis);
	move_last(rank, at, axis, moved);
	Node *copy = comp_dense(ir, RED_NONE, rank, rank, moved, node_read(ir, t, axis));
	move_last(rank, at, read->src + 1, moved);
	return node_read(ir, copy, moved);
}

static Node *copies_read(Ir *ir, const Node *c, Node *axis)
{
	Node **read;
	int all = node_collect(ir, comp_body(c), OP_READ, &read), n = 0;
	Node **to = arena_alloc(&ir->arena, ((size_t)all + 1) * sizeof *to);
	for (int k = 0; k < all; k++) {
		int rank = tensor_rank(read[k]->src[0]);
		if (!is_outside(read[k]->src + 1, rank, axis) ||
		    (double)tensor_size(read[k]->src[0]) > comp_points(c))
			continue;
		read[n] = read[k];
		to[n++] = read_of_copy(ir, read[k], rewrite_place(read[k]->src + 1, rank, axis));
	}
	return node_replace(ir, comp_body(c), n, read, to);
}

Node *look_ups_in_lines(Ir *ir, Node *c)
{
	Node **read, *axis = NULL, *axes[COMP_MAX_AXES], *lhs[RICCI_MAX_RANK], *dim[RICCI_MAX_RANK];
	Node *const *left = c->src + comp_naxis(c);
	int rank = tensor_rank(c), n = node_collect(ir, comp_body(c), OP_READ, &read);
	int64_t shape[RICCI_MAX_RANK];
	for (int k = 0; k < n; k++)
		find_axis(ir, c, read[k]->src[0], read[k]->src + 1, &axis);
	find_axis(ir, c, c, left, &axis);
	if (!axis)
		return c;
	for (int k = 0; k < comp_naxis(c); k++)
		axes[k] = comp_axis(c, k);
	Node *body = copies_read(ir, c, axis);
	if (!is_outside(left, rank, axis))
		return comp_with(ir, c, comp_reduce(c), body);
	int at = rewrite_place(left, rank, axis);
	move_last(rank, at, left, lhs);
	for (int d = 0; d < rank; d++)
		shape[d] = tensor_extent(c, d < at ? d : d + 1 < rank ? d + 1 : at);
	Node *lines = comp_make(ir, comp_reduce(c), rank, shape, lhs, comp_naxis(c), axes, body);
	tensor_axes(ir, c, dim);
	move_last(rank, at, dim, lhs);
	return comp_dense(ir, RED_NONE, rank, rank, dim, node_read(ir, lines, lhs));
}

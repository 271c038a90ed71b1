/* short_lines.c - tensors whose lines are short are read across them from a transposed copy.
 *
 * D[i,j] += (X[i,k] - Y[j,k]) * (X[i,k] - Y[j,k]) where k < 3, distances of points, reads Y three elements apart along
 * the lanes j, for each i again. So it reads Y'[k,j] = Y[j,k]. Coordinates, colours and complex numbers are such lines.
 * In: the graph after inlining. Out: roots of the same values. Only where all else that is read, and the result, is
 * contiguous along the lanes or does not move, and each element of the copy is read many times. */
#include "jit/fuse/internal.h"
#include "jit/rewrite/rewrite.h"

/* Elements of a short line; places along the lanes; points of the equation for each element of a copy. */
enum { SHORT_MOST = 7, LANES_LEAST = 16, USES = 32 };

/* Elements between what neighbours along the axis read; INT64_MIN: it is not always the same. */
static int64_t read_step(Ir *ir, const Node *read, Node *axis)
{
	int64_t step = 0, pitch = 1;
	for (int d = tensor_rank(read->src[0]) - 1; d >= 0; d--) {
		int64_t own = affine_stride(ir, read->src[1 + d], axis);
		if (own == INT64_MIN)
			return own;
		step += own * pitch;
		pitch *= tensor_extent(read->src[0], d);
	}
	return step;
}

/* Are the lines of what it reads short, and is each element read many times? */
static bool reads_short(const Node *c, const Node *read)
{
	const Node *t = read->src[0];
	int last = tensor_rank(t) - 1;
	return last > 0 && tensor_extent(t, last) > 1 && tensor_extent(t, last) <= SHORT_MOST &&
	       comp_points(c) >= USES * (double)tensor_size(t);
}

/* Does it go from a short line to the next one along the axis? */
static bool crosses_lines(Ir *ir, const Node *c, const Node *read, Node *axis)
{
	const Node *t = read->src[0];
	int last = tensor_rank(t) - 1;
	return reads_short(c, read) && affine_stride(ir, read->src[1 + last], axis) == 0 &&
	       affine_stride(ir, read->src[last], axis) == 1 &&
	       read_step(ir, read, axis) == tensor_extent(t, last);
}

/* The axis that lanes will run along: the result's last one, or of a result of short lines one that is summed. NULL:
 * there is none, or something else is read or stored with a stride along it. */
static Node *lanes_axis(Ir *ir, const Node *c, const Reads *r)
{
	int rank = tensor_rank(c), n = comp_naxis(c);
	bool spatial = rank > 0 && axis_extent(comp_axis(c, rank - 1)) > SHORT_MOST;
	Node *axis = spatial ? comp_axis(c, rank - 1) : n > rank ? comp_axis(c, n - 1) : NULL;
	if (!axis || axis_extent(axis) < LANES_LEAST)
		return NULL;
	for (int k = 0; k < r->n; k++) {
		int64_t step = read_step(ir, r->read[k], axis);
		if (step != 0 && step != 1 && step != -1 && !crosses_lines(ir, c, r->read[k], axis))
			return NULL;
	}
	return axis;
}

static Node *read_along_lines(void *user, Node *was, Node *c)
{
	(void)was;
	Ir *ir = user;
	if (c->op != OP_COMP || !comp_is_dense(c))
		return c;
	Reads r = fuse_reads_in(ir, comp_body(c));
	Node **to = arena_alloc(&ir->arena, ((size_t)r.n + 1) * sizeof *to);
	bool any = false;
	for (int k = 0; k < r.n; k++)
		any |= reads_short(c, r.read[k]);
	Node *axis = any ? lanes_axis(ir, c, &r) : NULL;
	int n = 0;
	for (int k = 0; k < r.n && axis; k++)
		if (crosses_lines(ir, c, r.read[k], axis)) {
			r.read[n] = r.read[k];
			to[n++] = read_of_copy(ir, r.read[k], tensor_rank(r.read[k]->src[0]) - 2);
		}
	return n ? comp_with(ir, c, comp_reduce(c), node_replace(ir, comp_body(c), n, r.read, to))
		 : c;
}

void fuse_short_lines(Fuse *f, int nroot, Node **roots)
{
	graph_change(f->ir, nroot, roots, read_along_lines, f->ir);
}

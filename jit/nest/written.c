/* written.c - short axes that are written out: each of their values is a statement of its own.
 *
 * Input: a pointwise problem. Output: which axes are worth it, whether the statements share what they read, so that they
 * belong into one loop over the lanes, and which of the other axes has the lanes. Invariant: only index functions and
 * extents are asked. */
#include "jit/nest/internal.h"

enum { SHORT_MOST = 8, ALL_MOST = 16, LANES_LEAST = 16 };

/* A short axis with conditions on it: parts of a tensor that are computed differently. */
static bool is_decided(const Problem *p, int axis)
{
	return axis_extent(p->axis[axis]) <= SHORT_MOST &&
	       index_phases_decide(p->ir, p->axis[axis], 0, p->nout, p->out_value);
}

/* Those before axis `end` that conditions are on, as many as may be written out together. */
static void find_decided(const Problem *p, int end, Written *w)
{
	int64_t all = 1;
	w->n = 0;
	for (int k = 0; k < end; k++) {
		int64_t extent = axis_extent(p->axis[k]);
		if (all * extent > ALL_MOST || !is_decided(p, k))
			continue;
		all *= extent;
		w->part[w->n++] = (WrittenPart){k, extent};
	}
}

/* e in copy number `copy` of the statements. */
static Node *copy_of(const Problem *p, int n, const WrittenPart *w, int64_t copy, Node *e)
{
	for (int i = 0; i < n; i++) {
		Node *axis = p->axis[w[i].axis], *at = node_int(p->ir, copy % w[i].period);
		if (w[i].period < axis_extent(axis))
			at = node_add(p->ir, node_scale(p->ir, axis, w[i].period), at);
		e = node_replace(p->ir, e, 1, &axis, &at);
		copy /= w[i].period;
	}
	return e;
}

bool written_share(const Problem *p, int n, const WrittenPart *w)
{
	Node **read, *sum = NULL;
	int64_t copies = 1;
	int reads = 0;
	for (int i = 0; i < n; i++)
		copies *= w[i].period;
	if (copies == 1)
		return false;
	for (int64_t c = 0; c < copies; c++)
		for (int k = 0; k < p->nout; k++) {
			Node *e = copy_of(p, n, w, c, p->out_value[k]);
			reads += node_collect(p->ir, e, OP_READ, &read);
			e = node_cast(p->ir, RICCI_F64, e);
			sum = sum ? node2(p->ir, OP_ADD, sum, e) : e;
		}
	return reads >= 2 * node_collect(p->ir, sum, OP_READ, &read);
}

static bool is_written(const Written *w, int axis)
{
	for (int d = 0; d < w->n; d++)
		if (w->part[d].axis == axis)
			return true;
	return false;
}

/* The last axis that isn't written out; -1: none. */
static int lanes_axis(const Problem *p, const Written *w)
{
	int axis = p->naxis - 1;
	while (axis >= 0 && is_written(w, axis))
		axis--;
	return axis;
}

void written_find(const Problem *p, Written *w)
{
	int last = p->naxis - 1;
	find_decided(p, p->naxis, w);
	w->lanes = lanes_axis(p, w);
	w->inside = w->lanes >= 0 &&
		    (w->lanes == last || axis_extent(p->axis[w->lanes]) >= LANES_LEAST) &&
		    written_share(p, w->n, w->part);
	if (w->inside)
		return;
	find_decided(p, last, w);
	w->lanes = last;
}

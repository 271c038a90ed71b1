/* layouts.c - constants of loops in the layout in which products read them fastest.
 *
 * In: roots of a rewritten graph. Out: roots of the same types, shapes and values. A step that multiplies
 * a constant of its loop with few rows (a batch with a recurrent net's weights, backwards) waits for its lines: of
 * W[k,j], j an index of the result, those of k and k + 1 lie pages apart. So it is copied once, before the
 * loop: P[j/32,k,j%32] are the panels of N that micro-kernels read, each in one piece. The copy and what
 * reads it are equations like others. */
#include "jit/rewrite/rewrite.h"

enum {
	LANES = 32, /* whole panels of all micro-kernels */
	STEPS_LEAST = 8,
	PAGE = 4096,	/* bytes */
	ROWS_LEAST = 4, /* what a step reads an element for: fewer, and there is no product */
	ROWS_MOST = 64	/* more, and packing is a small part */
};

static bool is_constant(const Scan *s, const Node *t)
{
	for (int k = s->nslice + s->nstate; k < scan_nvar(s); k++)
		if (s->var[k] == t)
			return true;
	return false;
}

/* Does the read meet all elements of its tensor, by axes of c? */
static bool reads_whole(const Node *c, const Node *read)
{
	for (int d = 0; d < tensor_rank(read->src[0]); d++) {
		Node *axis = read->src[1 + d];
		if (axis->op != OP_AXIS || axis_extent(axis) != tensor_extent(read->src[0], d))
			return false;
		for (int i = 0; i < d; i++)
			if (read->src[1 + i] == axis)
				return false;
	}
	double rows = comp_points(c) / (double)tensor_size(read->src[0]);
	return rows >= ROWS_LEAST && rows <= ROWS_MOST;
}

/* Of a dense equation, whose first axes are the result's. */
static bool is_reduced(const Node *c, const Node *axis)
{
	return axis->u.i >= tensor_rank(c);
}

/* Do the lines of the tensor that a sum needs for neighbouring results lie pages apart: is its last dimension such a
 * result's, of no other factor, and long? */
static bool lies_apart(const Node *c, const Node *read, int n, Node *const *factor, int mine)
{
	const Node *t = read->src[0];
	int rank = tensor_rank(t);
	Node *lanes = read->src[rank];
	bool reduces = false;
	for (int k = 0; k < n; k++)
		if (k != mine && node_has(factor[k], lanes))
			return false;
	for (int d = 0; d + 1 < rank; d++)
		reduces |= is_reduced(c, read->src[1 + d]);
	return reduces && !is_reduced(c, lanes) && axis_extent(lanes) % LANES == 0 &&
	       axis_extent(lanes) * (int64_t)type_size((Type)t->type) >= PAGE;
}

/* t with its last dimension in panels. */
static Node *panels_of(Ir *ir, Node *t)
{
	Node *axis[RICCI_MAX_RANK], *index[RICCI_MAX_RANK];
	int rank = tensor_rank(t), last = rank - 1;
	axis[0] = node_axis(ir, 0, tensor_extent(t, last) / LANES);
	for (int d = 0; d < last; d++)
		index[d] = axis[1 + d] = node_axis(ir, 1 + d, tensor_extent(t, d));
	axis[rank] = node_axis(ir, rank, LANES);
	index[last] = node_add(ir, node_scale(ir, axis[0], LANES), axis[rank]);
	return comp_dense(ir, RED_NONE, rank + 1, rank + 1, axis, node_read(ir, t, index));
}

/* The read's element there. */
static Node *panels_read(Ir *ir, const Node *read)
{
	Node *index[RICCI_MAX_RANK];
	int rank = tensor_rank(read->src[0]);
	index[0] = node_floordiv(ir, read->src[rank], LANES);
	for (int d = 1; d < rank; d++)
		index[d] = read->src[d];
	index[rank] = node_floormod(ir, read->src[rank], LANES);
	return node_read(ir, panels_of(ir, read->src[0]), index);
}

typedef struct Body {
	Ir *ir;
	const Scan *scan;
	bool any; /* tensors are over panels now */
} Body;

/* A tensor of the body, over panels where that is faster. */
static Node *over_panels(void *user, Node *was, Node *c)
{
	(void)was;
	Body *b = user;
	Ir *ir = b->ir;
	Node **factor;
	if (c->op != OP_COMP || comp_reduce(c) != RED_ADD || !comp_is_dense(c))
		return c;
	int n = node_parts(ir, comp_body(c), OP_MUL, &factor);
	for (int k = 0; k < n && n > 1; k++) {
		Node *read = factor[k]->op == OP_CAST ? factor[k]->src[0] : factor[k];
		if (read->op != OP_READ || !is_constant(b->scan, read->src[0]) ||
		    tensor_rank(read->src[0]) == RICCI_MAX_RANK || !reads_whole(c, read) ||
		    !lies_apart(c, read, n, factor, k))
			continue;
		Node *to = panels_read(ir, read);
		b->any = true;
		return comp_with(ir, c, RED_ADD, node_replace(ir, comp_body(c), 1, &read, &to));
	}
	return c;
}

/* False: no root changed. Not in a loop that saves memory: it would make its copies in each step. */
static bool body_over_panels(Ir *ir, ScanRun *r)
{
	Body b = {ir, r->scan, false};
	if (r->scan->recompute || r->scan->bound < STEPS_LEAST)
		return false;
	graph_change(ir, r->nroot, r->root, over_panels, &b);
	return b.any;
}

/* Puts the results of the run of order[at] into map, which has its operands. */
static bool panels_run(Ir *ir, int n, Node *const *order, int at, NodeMap *map)
{
	ScanRun r = scan_run(ir, n, order, at, map);
	bool any = body_over_panels(ir, &r);
	int nstate = r.scan->nstate, stacked = 0;
	Scan spec = *r.scan;
	spec.next = r.root;
	ScanCall call = {0};
	if (any)
		call = scan_close(ir, &spec, r.operand, r.nroot - nstate, r.root + nstate, true);
	for (int k = 0; k < r.nresult; k++) {
		const ScanResult *of = r.result[k]->u.result;
		Node *now = !any	    ? tensor_over(ir, r.result[k], map)
			    : of->ends	    ? scan_ends(ir, &call, scan_ends_of(of))
			    : of->final < 0 ? scan_stack(ir, &call, call.result[stacked++])
					    : scan_final(ir, &call, of->final);
		node_map_put(ir, map, r.result[k], now);
	}
	return any;
}

int rewrite_layouts(Ir *ir, int nroot, Node **roots)
{
	scans_each(ir, nroot, roots, panels_run);
	return ir->err.code;
}

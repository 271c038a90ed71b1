/* loops.c - what the loops of a nest stand for while it is built.
 *
 * Input: the loops of a schedule, some of them open. Output: expressions at the open point, bounds of
 * loops, their statements. Invariant: an axis is the sum of its open loops' values times their strides; loops that are
 * not open are at 0. */
#include "jit/nest/internal.h"

/* The place in its tile of a read across the lanes. */
static Node *across_place(Build *b, const CacheRead *s)
{
	const Loop *lanes = &b->loop[b->order[b->lanes]], *along = &b->loop[s->along];
	Node *at = along->val ? node_scale(b->ir, along->val, s->len) : node_int(b->ir, 0);
	return lanes->val ? node_add(b->ir, at, lanes->val) : at;
}

/* On a grid: that of the open part in its block. */
Node *nest_part_place(Build *b)
{
	Node *at = node_int(b->ir, 0);
	for (int k = b->cache_read_at; k < b->nloop; k++) {
		const Loop *l = &b->loop[b->order[k]];
		at = node_add(b->ir, node_scale(b->ir, at, l->extent), l->val);
	}
	return node_add(b->ir, at, node_floordiv(b->ir, at, BANKS));
}

/* The place in its tile of a cached read. */
static Node *cached_place(Build *b, const CacheRead *s)
{
	Node *place = node_int(b->ir, 0);
	if (s->transposed)
		return b->caps->grid ? nest_part_place(b) : across_place(b, s);
	for (int d = 0; d < s->read->rank; d++) {
		Affine a = affine_of(b->ir, s->read->dim[d]);
		Node *t = node_int(b->ir, -s->low[d]);
		for (int k = b->cache_read_at; k < b->nloop; k++) {
			const Loop *l = &b->loop[b->order[k]];
			int64_t c = affine_coefficient(&a, b->p->axis[l->axis]) * l->stride;
			if (c && l->val)
				t = node_add(b->ir, t, node_scale(b->ir, l->val, c));
		}
		if (d == s->lanes) {
			Node *phase = node_floormod(b->ir, t, s->phases);
			t = node_add(b->ir, node_floordiv(b->ir, t, s->phases),
				     node_scale(b->ir, phase, s->len));
			place = node_add(b->ir, place, t);
		} else {
			place = node_add(b->ir, place, node_scale(b->ir, t, s->pitch[d]));
		}
	}
	return place;
}

/* Replaces the problem's axes by what the open loops stand for. */
Node *nest_point(Build *b, Node *e)
{
	Problem *p = b->p;
	int n = p->naxis;
	Node *from[COMP_MAX_AXES + MAX_CACHE_READS], *to[COMP_MAX_AXES + MAX_CACHE_READS];
	for (int k = 0; k < n; k++) {
		from[k] = p->axis[k];
		to[k] = node_int(b->ir, 0);
	}
	for (int j = 0; j < b->nloop; j++) {
		Loop *l = &b->loop[j];
		if (l->val)
			to[l->axis] =
				node_add(b->ir, to[l->axis], node_scale(b->ir, l->val, l->stride));
	}
	for (int k = 0; k < b->ncache_read && b->filled; k++) {
		from[n] = b->cache_read[k].place;
		to[n++] = cached_place(b, &b->cache_read[k]);
	}
	return node_replace(b->ir, e, n, from, to);
}

/* What is left of the axis below the open loops: extent - sum of stride * value. */
Node *nest_rest(Build *b, int axis)
{
	Node *rest = node_int(b->ir, axis_extent(b->p->axis[axis]));
	for (int j = 0; j < b->nloop; j++)
		if (b->loop[j].val && b->loop[j].axis == axis)
			rest = node_sub(b->ir, rest,
					node_scale(b->ir, b->loop[j].val, b->loop[j].stride));
	return rest;
}

bool nest_exact(const Build *b, int axis)
{
	int64_t product = 1;
	for (int j = 0; j < b->nloop; j++)
		if (b->loop[j].axis == axis)
			product *= b->loop[j].extent;
	return product == axis_extent(b->p->axis[axis]);
}

Node *nest_hi(Build *b, const Loop *l)
{
	Node *extent = node_int(b->ir, l->extent);
	if (b->full[l->axis] || nest_exact(b, l->axis))
		return extent;
	Node *rest = nest_rest(b, l->axis);
	Node *need = node_floordiv(b->ir, node_add(b->ir, rest, node_int(b->ir, l->stride - 1)),
				   l->stride);
	if (need->lo >= l->extent)
		return extent;
	if (need->hi <= l->extent)
		return need;
	return node2(b->ir, OP_MIN, need, extent);
}

Stmt *nest_open(Build *b, Loop *l)
{
	l->val = NULL;
	Node *hi = nest_hi(b, l), *var = l->var;
	l->val = var;
	if (b->carry.r.axis == l->axis && b->carry.r.along < 0 && l->how != HOW_VECTOR)
		l->val = node_sub(b->ir, node_sub(b->ir, hi, node_int(b->ir, 1)), var);
	How how = l->how;
	if (how == HOW_UNROLL && !node_is_const(hi))
		how = HOW_SERIAL;
	Stmt *s = stmt_loop(b->t, how, var, NULL, hi, NULL);
	s->maybe = hi->lo < 1;
	return s;
}

void nest_open_at(Build *b, int first, int n, Node *at)
{
	for (int k = first + n - 1; k >= first; k--) {
		Loop *l = &b->loop[b->order[k]];
		l->val = k > first ? node_floormod(b->ir, at, l->extent) : at;
		at = node_floordiv(b->ir, at, l->extent);
	}
}

int64_t nest_parts(const Build *b)
{
	int64_t parts = 1;
	for (int k = 0; k < b->nparallel; k++)
		parts *= b->loop[b->order[k]].extent;
	return parts;
}

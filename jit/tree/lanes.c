/* lanes.c - what a loop's iterations are to its lanes: the same, apart, looked up.
 *
 * Input: a loop whose iterations are lanes, and values, conditions, indices in it. Output: how they differ between
 * lanes; the parts of an index that is looked up or computed, and whether lanes of 32 bits do for it.
 * Invariant: what is read lies inside its tensor, so that the low 32 bits of an index say where; what is compared need
 * not, and is exact, or cut off at +-2^30 where no comparison sees it. */
#include "jit/tree/tree.h"

#include <math.h>

bool lanes_own(const Stmt *loop, const Node *buffer)
{
	for (const Stmt *s = loop->body; s; s = s->next)
		if (s->kind == STMT_ALLOC && s->buffer == buffer)
			return true;
	return false;
}

bool lanes_access(Node *n, const Stmt *loop, StmtKind kind)
{
	for (const Stmt *s = loop->body; s; s = s->next)
		if (s->kind == kind && node_has(n, s->buffer))
			return true;
	return false;
}

bool lanes_vary(Node *n, const Stmt *loop)
{
	return node_has(n, loop->axis) || lanes_access(n, loop, STMT_ALLOC);
}

static bool is_no_place(const Node *n)
{
	return n->op == OP_READ || (n->type != RICCI_I64 && n->type != RICCI_BOOL);
}

LanesDecide lanes_decide(Ir *ir, Node *cond, const Stmt *loop)
{
	Node *lo = loop->lo, *hi = loop->hi, **axis;
	if (!lanes_vary(cond, loop))
		return LANES_AGREE;
	if (cond_interval(ir, cond, loop->axis, &lo, &hi))
		return LANES_INTERVAL;
	bool listed = !node_any(ir, cond, is_no_place) &&
		      node_collect(ir, cond, OP_AXIS, &axis) == 1 && *axis == loop->axis;
	return listed ? LANES_LISTED : LANES_COMPARE;
}

bool lanes_look_up(Ir *ir, const Node *n, const Stmt *loop)
{
	return n->op == OP_READ && affine_stride(ir, n->src[1], loop->axis) == INT64_MIN;
}

bool lanes_look_up_any(Ir *ir, Node *n, const Stmt *loop)
{
	Node **read;
	int count = node_collect(ir, n, OP_READ, &read);
	for (int k = 0; k < count; k++)
		if (lanes_look_up(ir, read[k], loop))
			return true;
	return false;
}

/* ---- indices */

LaneIndex lane_index(Ir *ir, Node *n, const Stmt *loop, bool place)
{
	Affine a = place ? affine_modular(ir, n) : affine_of(ir, n);
	LaneIndex x = {.common = node_int(ir, a.c),
		       .k = arena_alloc(&ir->arena, ((size_t)a.n + 1) * sizeof *x.k),
		       .atom = arena_alloc(&ir->arena, ((size_t)a.n + 1) * sizeof(Node *))};
	for (int j = 0; j < a.n; j++)
		if (lanes_vary(a.atom[j], loop)) {
			x.k[x.n] = a.k[j];
			x.atom[x.n++] = a.atom[j];
		} else {
			x.common = node_add(ir, x.common, node_scale(ir, a.atom[j], a.k[j]));
		}
	return x;
}

bool lane_index_cut(const Node *atom)
{
	return atom->lo < -LANE_INDEX_MOST || atom->hi > LANE_INDEX_MOST;
}

bool lane_index_exact(const LaneIndex *x)
{
	double lo = (double)x->common->lo, hi = (double)x->common->hi;
	for (int j = 0; j < x->n; j++) {
		double k = (double)x->k[j], first = k * (double)x->atom[j]->lo,
		       last = k * (double)x->atom[j]->hi;
		lo += first < last ? first : last;
		hi += first < last ? last : first;
	}
	return lo >= INT32_MIN && hi <= INT32_MAX;
}

bool lane_quotient(const Node *atom, LaneQuotient *q)
{
	if ((atom->op != OP_FLOORDIV && atom->op != OP_FLOORMOD) || atom->src[1]->u.i > INT32_MAX)
		return false;
	int64_t by = atom->src[1]->u.i, least = atom->src[0]->lo, most = atom->src[0]->hi;
	for (int shift = 0; shift < 31; shift++) {
		int64_t power = INT64_C(1) << shift, times = (power + by - 1) / by;
		/* How far the quotient is off, in parts of power: not at all by powers of two, of negative ones, too. */
		int64_t over = times * by - power;
		bool fits = over ? least >= 0 && most <= INT32_MAX / times && most < power / over
				 : times == 1;
		*q = (LaneQuotient){atom->src[0], (int32_t)by, (int32_t)times, shift};
		if (fits)
			return true;
	}
	return false;
}

/* The largest magnitude of what isn't cut off; how many parts are, which must come once: *cut. */
static double magnitude(const LaneIndex *x, int *cut)
{
	double most = fmax(-(double)x->common->lo, (double)x->common->hi);
	for (int j = 0; j < x->n; j++) {
		double k = fabs((double)x->k[j]);
		if (lane_index_cut(x->atom[j]))
			*cut += k == 1 ? 1 : 2;
		else
			most += k * fmax(-(double)x->atom[j]->lo, (double)x->atom[j]->hi);
	}
	return most;
}

bool lane_index_compares(const LaneIndex *a, const LaneIndex *b)
{
	int cut = 0;
	return (lane_index_exact(a) && lane_index_exact(b)) ||
	       (magnitude(a, &cut) + magnitude(b, &cut) < LANE_INDEX_MOST && cut == 1);
}

/* lane_index.c - indices of lanes that are looked up, or computed from numbers.
 *
 * Input: an index in a loop whose iterations are lanes. Output: its parts, and whether lanes of 32 bits do for it.
 * Invariant: what is read lies inside its tensor, so that the low 32 bits of an index say where; what is compared need
 * not, and is exact, or cut off at +-2^30 where no comparison sees it. */
#include "jit/tree/tree.h"

#include <math.h>

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

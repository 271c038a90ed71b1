/* terms_places.c - which elements of a result and which of their terms are computed, and what these
 * read.
 *
 * Input: a Terms with room for both. Output: their places on the equation's axes, and the places in
 * an input that a read touches there. Invariant: the elements are distinct where all are chosen; terms
 * always are. */
#include "runtime/verify/terms.h"
#include <math.h>
#include <stdlib.h>

/* A place on an axis: the first, the last, around a multiple of a power of two, any. */
static int64_t pick_place(int64_t extent, int i, uint64_t *state)
{
	uint64_t r = sample_next(state), how = r % 4;
	int64_t any = (int64_t)(sample_next(state) % (uint64_t)extent);
	int64_t block = (int64_t)1 << (4 + (r >> 2) % 12), at;

	if (i < 2)
		return i ? extent - 1 : 0;
	if (how < 2) {
		at = how ? extent - 1 - any % 64 : any % 64;
		return at < 0 ? 0 : at < extent ? at : extent - 1;
	}
	at = how == 2 ? any / block * block - (int64_t)(r >> 8 & 1) : any;
	return at < 0 ? 0 : at;
}

static int point_order(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Terms: their places are drawn, and none twice. */
static void points_choose(Terms *x, uint64_t *state)
{
	const Node *c = x->copy.member[0];
	int rank = tensor_rank(c), n = comp_naxis(c) - rank, kept = 0;
	double *flat = arena_alloc(&x->copy.ir.arena, sizeof *flat * (size_t)x->n);

	for (int t = 0; t < x->n; t++)
		for (int a = 0; a < n; a++) {
			int64_t extent = axis_extent(comp_axis(c, rank + a));

			flat[t] = flat[t] * (double)extent +
				  (double)pick_place(extent, t < 2 ? t : 2 + t, state);
		}
	qsort(flat, (size_t)x->n, sizeof *flat, point_order);
	for (int t = 0; t < x->n; t++)
		if (!t || flat[t] != flat[t - 1])
			flat[kept++] = flat[t];
	x->n = kept;
	for (int t = 0; t < kept; t++)
		for (int a = n - 1; a >= 0; a--) {
			double extent = (double)axis_extent(comp_axis(c, rank + a));
			double above = floor(flat[t] / extent);

			x->point[t * n + a] = (int64_t)(flat[t] - above * extent);
			flat[t] = above;
		}
}

static void elements_choose(Terms *x, uint64_t *state)
{
	const Node *c = x->copy.member[0];
	int rank = tensor_rank(c);
	bool all = tensor_size(c) <= x->nelement;

	if (all)
		x->nelement = (int)tensor_size(c);
	for (int e = 0; e < x->nelement; e++) {
		int64_t at = 0, rest = e;

		for (int d = rank - 1; d >= 0; d--) {
			int64_t extent = tensor_extent(c, d);

			x->element[e * rank + d] =
				all ? rest % extent : pick_place(extent, e, state);
			rest /= extent;
		}
		for (int d = 0; d < rank; d++)
			at = at * tensor_extent(c, d) + x->element[e * rank + d];
		x->s.at[0][e] = at;
	}
}

static Node *table_new(Ir *ir, const char *name, int64_t n, int width)
{
	return node_input(ir, name, RICCI_I64, 2, (int64_t[]){n, width ? width : 1});
}

static void places_room(Terms *x)
{
	for (int i = 0; i < x->task->sub.ninput; i++) {
		size_t reads = 0;

		for (int r = 0; r < x->nread; r++)
			reads += x->read[r]->src[0] == x->copy.input[i];
		x->place[i] = arena_alloc(&x->copy.ir.arena, (reads * (size_t)(x->nelement * x->n) +
							      1) * sizeof **x->place);
	}
}

void terms_choose(Terms *x, uint64_t seed)
{
	const Node *c = x->copy.member[0];
	uint64_t state = seed * 0x9e3779b97f4a7c15u + 88172645463325252u;
	int rank = tensor_rank(c);

	elements_choose(x, &state);
	x->s.count[0] = x->s.n = x->nelement;
	points_choose(x, &state);
	places_room(x);
	x->points = table_new(&x->copy.ir, "points", x->n, comp_naxis(c) - rank);
	x->elements = table_new(&x->copy.ir, "elements", x->nelement, rank);
}

/* Index e of all listed elements and terms. */
static int index_values(Terms *x, Node *e, double *v, Error *err)
{
	const Node *c = x->copy.member[0];
	int rank = tensor_rank(c), n = comp_naxis(c), a = 0;

	while (a < n && comp_axis(c, a) != e)
		a++;
	if (a == n)
		return terms_values(x, e, TERMS_EACH, NULL, v, NULL, err);
	for (int i = 0; i < x->nelement; i++)
		for (int t = 0; t < x->n; t++)
			*v++ = (double)(a < rank ? x->element[i * rank + a]
						 : x->point[t * (n - rank) + a - rank]);
	return 0;
}

int terms_places(Terms *x, const Node *read, Error *err)
{
	int i = terms_input(x, read->src[0]), m = x->nelement * x->n, code = 0;
	int64_t *at = x->place[i] + x->nplace[i];
	double *v = arena_alloc(&x->copy.ir.arena, sizeof *v * (size_t)m);

	for (int d = 0; d < tensor_rank(read->src[0]) && !code; d++) {
		int64_t extent = tensor_extent(read->src[0], d);

		code = index_values(x, read->src[1 + d], v, err);
		for (int k = 0; k < m && !code; k++)
			at[k] = at[k] < 0 || v[k] < 0 || v[k] >= (double)extent
					? -1
					: at[k] * extent + (int64_t)v[k];
	}
	x->nplace[i] += m;
	return code;
}

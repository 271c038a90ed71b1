/* library_product.c - a contraction as a vendor library's matrix product, for all of a batch, for each point of other
 * axes.
 *
 * Input: a contraction, which of its operands are copied. Output: the call, in what order copies and sums are.
 * Which axes are M, N, K, the batch, and calls of their own follows from the index functions alone: axes of one role
 * that are one in all three tensors become one; one each of M, N, K and the batch is a dimension of the product, and all
 * others, of which there are few points, are calls one after the other. */
#include "jit/contract/library_grid.h"

#include <string.h>

/* Lies a matrix of these rows and columns line by line, or column by column, lines apart? */
static bool is_matrix(const Dimension *r, const Dimension *c, int x)
{
	int64_t down = r->stride[x], step = c->stride[x];
	return down < INT32_MAX && step < INT32_MAX &&
	       ((down == 1 && step >= r->extent) || (step == 1 && down >= c->extent));
}

static bool is_picked(const int *pick, int k)
{
	bool picked = false;
	for (int role = 0; role < AXIS_ROLES; role++)
		picked |= pick[role] == k;
	return picked;
}

static double calls_of(const GridCall *g, const int *pick)
{
	double calls = 1;
	int loops = 0;
	bool sums = false;
	for (int k = 0; k < g->ndim; k++) {
		if (is_picked(pick, k))
			continue;
		calls *= (double)g->dim[k].extent;
		sums |= g->dim[k].role == AXIS_K;
		loops++;
	}
	/* What is added to must not have been rounded. */
	return loops > CALL_LOOPS || (sums && g->type[OF_D] != g->c->p->acc) ? 0 : calls;
}

/* The product of these dimensions, -1: there is no batch; all others are loops. */
static void product_make(GridCall *g, const int *pick)
{
	static const int roles[CALL_TENSORS][3] = {{AXIS_BATCH, AXIS_M, AXIS_K},
						   {AXIS_BATCH, AXIS_K, AXIS_N},
						   {AXIS_BATCH, AXIS_M, AXIS_N}};
	KernelCall *c = &g->call;
	call_begin(g, CALL_PRODUCT);
	for (int x = 0; x < CALL_TENSORS; x++)
		for (int k = 0; k < COUNT(roles[x]); k++)
			if (pick[roles[x][k]] >= 0) {
				const Dimension *d = &g->dim[pick[roles[x][k]]];
				c->tensor[x].extent[k] = d->extent;
				c->tensor[x].stride[k] = d->stride[x];
			}
	for (int k = 0, loop = 0; k < g->ndim; k++) {
		if (is_picked(pick, k))
			continue;
		c->loop[loop] = g->dim[k].extent;
		for (int x = 0; x < CALL_TENSORS; x++)
			c->tensor[x].loop[loop] = g->dim[k].stride[x];
		loop++;
	}
}

static void pick_try(GridCall *g, const int *pick)
{
	const Dimension *m = &g->dim[pick[AXIS_M]], *n = &g->dim[pick[AXIS_N]];
	const Dimension *k = &g->dim[pick[AXIS_K]];
	double calls = 0;
	for (int role = 0; role < AXIS_ROLES; role++)
		if (pick[role] >= 0 && g->dim[pick[role]].extent >= INT32_MAX)
			return;
	if (is_matrix(m, k, OF_A) && is_matrix(k, n, OF_B) && is_matrix(m, n, OF_D))
		calls = calls_of(g, pick);
	if (calls && (!g->calls || calls < g->calls)) {
		g->calls = calls;
		product_make(g, pick);
	}
}

/* Can the dimension be the batch's? An operand that has no part in it is the same for all of the batch. */
static bool is_batch(const GridCall *g, int k, const int *pick)
{
	return g->dim[k].role != AXIS_K && k != pick[AXIS_M] && k != pick[AXIS_N];
}

/* All choices of one dimension for each role from `role` on; there may be no batch. */
static void picks_try(GridCall *g, int role, int *pick)
{
	if (role == AXIS_ROLES) {
		pick_try(g, pick);
		return;
	}
	for (int k = 0; k < g->ndim; k++)
		if (role == AXIS_BATCH ? is_batch(g, k, pick) : g->dim[k].role == role) {
			pick[role] = k;
			picks_try(g, role + 1, pick);
		}
	pick[role] = -1;
	if (role == AXIS_BATCH)
		picks_try(g, role + 1, pick);
}

/* Takes *g's results where that needs fewer calls than *best. */
static void results_try(GridCall *g, GridCall *best)
{
	const Contract *c = g->c;
	const IndexGroup *group[AXIS_ROLES] = {&c->m, &c->n, &c->k, &c->batch};
	int pick[AXIS_ROLES];
	bool good = places_count(&g->place[OF_D]) <= GRID_SUMS &&
		    g->library->multiplies(g->type[OF_A], g->type[OF_D]);
	g->calls = g->ndim = 0;
	for (int role = 0; role < AXIS_ROLES && good; role++)
		good = dimensions_add(g, role, group[role]);
	if (!good)
		return;
	dimensions_merge(g);
	picks_try(g, 0, pick);
	if (g->calls && (!best->calls || g->calls < best->calls))
		*best = *g;
}

/* The order of a copy: the batch, the operand's own axes, K; of these the ones that it depends on. The batch and K
 * are as they lie in the other operand, so that they stay one where they are one there. */
static void copy_order(GridCall *g, int x)
{
	const Contract *c = g->c;
	const IndexGroup *own = x == OF_A ? &c->m : &c->n;
	Places all = {0}, *s = &g->place[x];
	places_add(g, &all, &c->batch, 1 - x);
	memcpy(all.axis + all.naxis, own->axis, (size_t)own->naxis * sizeof *own->axis);
	all.naxis += own->naxis;
	places_add(g, &all, &c->k, 1 - x);
	s->naxis = 0;
	for (int k = 0; k < all.naxis; k++)
		for (int j = 0; j < c->p->naxis; j++)
			if (c->p->axis[j] == all.axis[k] && g->operand[x].mask >> j & 1)
				s->axis[s->naxis++] = all.axis[k];
}

/* Into the result where that can be; else in the order of its elements, as they are stored then; else in the
 * order of the operands. What is multiplied has 16 bits where both operands have been rounded to the same, else it is
 * what is added up. */
bool product_find(GridCall *g)
{
	const Contract *c = g->c;
	const Problem *p = c->p;
	GridCall *best = arena_alloc(&p->ir->arena, sizeof *best);
	best->calls = 0;
	for (int x = 0; x < TENSORS; x++)
		g->of[x] = x;
	if (!call_operands(g, call_type(c)) || !g->library->multiplies(g->type[OF_A], p->acc))
		return false;
	for (int x = 0; x < COUNT(g->copied); x++) {
		if (g->copied[x])
			copy_order(g, x);
		if (places_count(&g->place[x]) > GRID_SUMS)
			return false;
	}
	if (call_direct(g))
		results_try(g, best);
	call_sums(g);
	g->place[OF_D].naxis = p->nspatial;
	memcpy(g->place[OF_D].axis, p->axis, (size_t)p->nspatial * sizeof *p->axis);
	if (!best->calls) /* what was not rounded needs no second phase */
		results_try(g, best);
	call_sums(g);
	places_add(g, &g->place[OF_D], &c->batch, OF_A);
	places_add(g, &g->place[OF_D], &c->m, OF_A);
	places_add(g, &g->place[OF_D], &c->n, OF_B);
	results_try(g, best);
	if (best->calls)
		*g = *best;
	return best->calls > 0;
}

/* place.c - where a term's sum is met: all of a piece that its value has no part in.
 *
 * Input: the domain, the indices and the guard of a term, the shape of the tensor that it reads,
 * and residues for each dimension. Output: the axes, the conditions that are left of the box, the
 * guard and the borders, and what the equation's axes are there. The same indices come again, for
 * other residues, other terms and, where layers or steps are alike, other equations: what was found
 * is remembered. Invariant: a place depends on nothing but its key.
 */
#include "autodiff/internal.h"

#include <string.h>

#define MAX_PRUNED 64

static void conditions_put(Conditions *c, Node *cond)
{
	if (node_is_value(cond, 1))
		return;
	c->never |= node_is_value(cond, 0);
	for (int k = 0; k < c->n; k++) {
		c->never |= node_opposite(c->at[k], cond);
		if (c->at[k] == cond)
			return;
	}
	if (c->n == MAX_CONDITIONS)
		cond = node2(c->ir, OP_AND, c->at[--c->n], cond);
	c->at[c->n++] = cond;
}

static void conditions_split(Conditions *c, Node *cond)
{
	Node **part;
	int n = node_parts(c->ir, cond, OP_AND, &part);
	for (int k = 0; k < n; k++)
		conditions_put(c, part[k]);
}

/* A comparison that tests an index of the read alone, restated for z, which is within the tensor;
 * NULL for others. */
static Node *restate(Ir *ir, const Place *p, Node *cond, Node *const *z)
{
	if (!node_compares_index(cond))
		return NULL;
	Node *e = node_sub(ir, cond->src[1], cond->src[0]);
	for (int d = 0; d < p->rank; d++)
		for (int sign = 1; sign >= -1; sign -= 2) {
			Node *rest = node_sub(ir, e, node_scale(ir, p->index[d], sign));
			if (node_is_const(rest) && !node_is_const(e)) {
				rest = node_add_scaled(ir, rest, z[d], sign);
				return node2(ir, cond->op, node_int(ir, 0), rest);
			}
		}
	return NULL;
}

static void see_read(void *user, Node *n)
{
	*(bool *)user |= n->op == OP_READ || node_draws(n);
}

/* Puts what depends on axes only first, where it can be evaluated whatever the others say; returns
 * how many those are. Both kinds keep their order. */
static int order_conditions(Ir *ir, Conditions *c)
{
	Node *data[MAX_CONDITIONS];
	int n = 0, ndata = 0;
	for (int k = 0; k < c->n; k++) {
		bool reads = false;
		node_walk(ir, c->at[k], see_read, &reads);
		if (reads)
			data[ndata++] = c->at[k];
		else
			c->at[n++] = c->at[k];
	}
	for (int k = 0; k < ndata; k++)
		c->at[n + k] = data[k];
	return n;
}

/* All conditions but one; -1: all. */
static Polyhedron *poly_without(Ir *ir, int n, Node *const *cond, int but)
{
	Polyhedron *p = poly_new(ir);
	for (int k = 0; k < n; k++)
		if (k != but)
			poly_assume(p, cond[k]);
	return p;
}

bool conditions_bounds(const Conditions *c, Node *axis, int64_t *lo, int64_t *hi)
{
	bool asked = false;
	for (int k = 0; k < c->n && !asked; k++)
		asked = node_has(c->at[k], axis);
	return asked && poly_bounds(poly_without(c->ir, c->n, c->at, -1), axis, lo, hi) &&
	       *lo <= *hi && (*lo > 0 || *hi < axis->hi);
}

/* Drops conditions on axes that the others imply; false when they contradict one another. */
static bool prune(Ir *ir, Conditions *c)
{
	int n = order_conditions(ir, c);
	if (n && poly_is_empty(poly_without(ir, n, c->at, -1)))
		return false;
	for (int k = n - 1; k >= 0 && n <= MAX_PRUNED; k--) {
		if (!node_compares_index(c->at[k]) ||
		    !poly_implies(poly_without(ir, n, c->at, k), c->at[k]))
			continue;
		n--;
		c->n--;
		for (int j = k; j < c->n; j++)
			c->at[j] = c->at[j + 1];
	}
	return true;
}

/* Narrows the free axes to what the conditions leave of them, in to[] too. */
static void narrow(Ir *ir, Conditions *c, int *nfree, Node **free, int nto, Node **to)
{
	Node *less[COMP_MAX_AXES], *more[COMP_MAX_AXES];
	int n = 0, kept = 0;
	for (int k = 0; k < *nfree; k++) {
		int64_t lo, hi;
		Node *t = free[k];
		if (!conditions_bounds(c, t, &lo, &hi)) {
			free[kept++] = t;
			continue;
		}
		Node *axis = node_axis(ir, (int)t->u.i, hi - lo + 1);
		more[n] = t;
		less[n++] = hi > lo ? node_add(ir, axis, node_int(ir, lo)) : node_int(ir, lo);
		if (hi > lo)
			free[kept++] = axis;
	}
	*nfree = kept;
	int ncond = c->n;
	c->n = 0;
	for (int k = 0; k < ncond; k++)
		conditions_put(c, n ? node_replace(ir, c->at[k], n, more, less) : c->at[k]);
	for (int k = 0; k < nto && n; k++)
		to[k] = node_replace(ir, to[k], n, more, less);
}

/* ---- one place */

/* The axes and the left side; false when there are no elements. z: the elements. */
static bool place_frame(Ir *ir, Place *p, Conditions *cond, Node **z)
{
	for (int d = 0; d < p->rank; d++) {
		Residues r = p->at[d];
		int64_t size = p->size[d];
		if (r.extent <= 0)
			return false;
		Node *u = node_axis(ir, d, r.extent), *h = NULL;
		p->axes[p->naxis++] = u;
		if (r.count > 1)
			h = p->axes[p->naxis++] = node_axis(ir, p->rank + d, r.count);
		p->u[d] = u;
		p->h[d] = h;
		p->shape[d] = r.extent * r.count;
		p->lhs[d] = h ? node_add(ir, node_scale(ir, u, r.count), h) : u;
		z[d] = node_add(ir, u, node_int(ir, r.start));
		z[d] = node_add(ir, node_scale(ir, z[d], r.period), node_int(ir, r.step * r.first));
		z[d] = h ? node_add_scaled(ir, z[d], h, r.step) : z[d];
		z[d] = node_add(ir, node_scale(ir, z[d], r.by), node_int(ir, r.offset));
		if (z[d]->lo < 0)
			conditions_put(cond, node2(ir, OP_LE, node_int(ir, 0), z[d]));
		if (z[d]->hi >= size)
			conditions_put(cond, node2(ir, OP_LT, z[d], node_int(ir, size)));
	}
	return true;
}

static void place_conditions(Ir *ir, const Place *p, const Inverse *inv, Node *const *z,
			     Conditions *cond)
{
	Node *room[MAX_CONDITIONS];
	Conditions guard = {.ir = ir, .at = room};
	for (int k = 0; k < inv->ncond; k++)
		conditions_put(cond, inv->cond[k]);
	if (p->guard)
		conditions_split(&guard, p->guard);
	for (int k = 0; k < guard.n; k++) {
		Node *there = restate(ir, p, guard.at[k], z);
		if (!there)
			there = node_replace(ir, guard.at[k], p->ndomain, p->domain, inv->value);
		conditions_split(cond, there);
	}
}

/* What the axes of the domain are there; the indices themselves are z. */
static void place_substitutes(Ir *ir, Place *p, const Inverse *inv, Node *const *z)
{
	size_t room = (size_t)(p->ndomain + p->rank + 1);
	p->from = arena_alloc(&ir->arena, sizeof *p->from * room);
	p->to = arena_alloc(&ir->arena, sizeof *p->to * room);
	p->nfrom = p->ndomain;
	for (int k = 0; k < p->ndomain; k++) {
		p->from[k] = p->domain[k];
		p->to[k] = inv->value[k];
	}
	for (int d = 0; d < p->rank; d++) {
		if (p->index[d]->op == OP_AXIS || p->index[d]->op == OP_CONST)
			continue;
		p->from[p->nfrom] = p->index[d];
		p->to[p->nfrom++] = z[d];
	}
}

static void place_make(Ir *ir, Place *p)
{
	Node *z[RICCI_MAX_RANK], *room[MAX_CONDITIONS];
	Conditions cond = {.ir = ir, .at = room};
	Inverse inv;

	p->kind = PIECE_ZERO;
	if (!place_frame(ir, p, &cond, z))
		return;
	if (!index_invert(ir, p->ndomain, p->domain, p->rank, p->index, z, 2 * p->rank, &inv) ||
	    p->naxis + inv.nfree > COMP_MAX_AXES) {
		p->kind = PIECE_SCATTER;
		return;
	}
	place_conditions(ir, p, &inv, z, &cond);
	if (cond.never || !prune(ir, &cond))
		return;
	place_substitutes(ir, p, &inv, z);
	p->nfree = inv.nfree;
	p->free = inv.free;
	narrow(ir, &cond, &p->nfree, p->free, p->nfrom, p->to);
	if (cond.never)
		return;
	p->kind = PIECE_SUM;
	p->cond = cond;
	p->cond.at = arena_alloc(&ir->arena, sizeof *room * (size_t)(cond.n + 1));
	memcpy(p->cond.at, room, sizeof *room * (size_t)cond.n);
}

/* ---- all places */

/* What tells the indices of terms apart whatever tensor they are of: the read and its guard, of a
 * tensor of that shape. */
static Node *index_node(Ir *ir, const Term *term)
{
	const Node *tensor = term->read->src[0];
	Node *axes[RICCI_MAX_RANK], *zero = node_const(ir, RICCI_F32, 0);
	int rank = tensor_rank(tensor);
	tensor_axes(ir, tensor, axes);
	Node *read = node_read(ir, comp_dense(ir, RED_NONE, rank, rank, axes, zero),
			       term->read->src + 1);
	return term->guard ? node_select(ir, term->guard, read, zero) : read;
}

const Place *place_find(Ir *ir, NodeMap *all, const Term *term, const Residues *at)
{
	const Node *c = term->comp, *tensor = term->read->src[0];
	size_t rank = (size_t)tensor_rank(tensor), ndomain = (size_t)comp_naxis(c);
	Node *key = index_node(ir, term);
	Place *first = node_map_get(all, key);
	for (Place *p = first; p; p = p->next)
		if (p->guard == term->guard && (size_t)p->ndomain == ndomain &&
		    !memcmp(p->domain, c->src, sizeof *p->domain * ndomain) &&
		    !memcmp(p->at, at, sizeof *p->at * rank))
			return p;
	Place *p = arena_alloc(&ir->arena, sizeof *p);
	*p = (Place){.next = first,
		     .rank = (int)rank,
		     .ndomain = (int)ndomain,
		     .domain = c->src,
		     .index = term->read->src + 1,
		     .guard = term->guard};
	for (int d = 0; d < p->rank; d++) {
		p->at[d] = at[d];
		p->size[d] = tensor_extent(tensor, d);
	}
	place_make(ir, p);
	node_map_put(ir, all, key, p);
	return p;
}

/* term.c - one term of an equation as an equation over the tensor that it reads.
 *
 * Input: a term of dA[f(v)] and residues for each dimension of A. Output: the sum over all v with
 * f(v) = z, for the elements z of those residues, under the conditions that are left of the box of
 * v, of the term's guard and of the borders; or, where f is not invertible (gathers, products of
 * indices), a scatter over v, dA[f(v)] += term(v).
 */
#include "autodiff/internal.h"

#include <string.h>

#define MAX_PRUNED 64

static void conditions_put(Conditions *c, Node *cond)
{
	if (node_is_value(cond, 1))
		return;
	c->never |= node_is_value(cond, 0);
	for (int k = 0; k < c->n; k++)
		if (c->at[k] == cond)
			return;
	if (c->n == MAX_CONDITIONS)
		cond = node2(c->ir, OP_AND, c->at[--c->n], cond);
	c->at[c->n++] = cond;
}

static void conditions_split(Conditions *c, Node *cond)
{
	for (; cond->op == OP_AND; cond = cond->src[1])
		conditions_split(c, cond->src[0]);
	conditions_put(c, cond);
}

static Node *conditions_all(const Conditions *c)
{
	Node *all = c->n ? c->at[0] : node_const_int(c->ir, RICCI_BOOL, 1);
	for (int k = 1; k < c->n; k++)
		all = node2(c->ir, OP_AND, all, c->at[k]);
	return all;
}

bool is_index_compare(const Node *n)
{
	return (n->op == OP_LT || n->op == OP_LE || n->op == OP_EQ || n->op == OP_NE) &&
	       n->src[0]->type == RICCI_I64;
}

static bool same_atoms(const Affine *x, const Affine *y, int64_t sign)
{
	if (x->n != y->n || !x->n)
		return false;
	for (int k = 0; k < x->n; k++)
		if (x->atom[k] != y->atom[k] || x->k[k] != sign * y->k[k])
			return false;
	return true;
}

/* A comparison that tests an index of the read alone, restated for z, which is within the tensor;
 * NULL for others. */
static Node *restate(Ir *ir, Node *cond, const Affine *index, int rank, Node *const *z)
{
	if (!is_index_compare(cond))
		return NULL;
	Affine x = affine_of(ir, node_sub(ir, cond->src[1], cond->src[0]));
	for (int d = 0; d < rank; d++)
		for (int sign = 1; sign >= -1; sign -= 2)
			if (same_atoms(&x, &index[d], sign)) {
				int64_t c = x.c - sign * index[d].c;
				Node *e = node_add(ir, node_scale(ir, z[d], sign), node_int(ir, c));
				return node2(ir, cond->op, node_int(ir, 0), e);
			}
	return NULL;
}

static void see_read(void *user, Node *n)
{
	*(bool *)user |= n->op == OP_READ || n->op == OP_RANDOM || n->op == OP_NORMAL;
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

/* All conditions but one. */
static Polyhedron *poly_without(Ir *ir, int n, Node *const *cond, int but)
{
	Polyhedron *p = poly_new(ir);
	for (int k = 0; k < n; k++)
		if (k != but)
			poly_assume(p, cond[k]);
	return p;
}

/* The range of an axis under the conditions; false where nothing is known. */
bool conditions_bounds(const Conditions *c, Node *axis, int64_t *lo, int64_t *hi)
{
	Witness w;
	*lo = 0;
	*hi = axis->hi;
	if (witness_start(&w, c) && witness_find(&w, -1, axis, *lo) &&
	    witness_find(&w, -1, axis, *hi))
		return true;
	return poly_bounds(poly_without(c->ir, c->n, c->at, -1), axis, lo, hi) && *lo <= *hi;
}

/* Drops conditions on axes that the others imply; false when they contradict one another. */
static bool prune(Ir *ir, Conditions *c)
{
	int n = order_conditions(ir, c);
	Witness w;
	if (n && !witness_start(&w, c) && poly_is_empty(poly_without(ir, n, c->at, -1)))
		return false;
	for (int k = n - 1; k >= 0 && n <= MAX_PRUNED; k--) {
		if (!is_index_compare(c->at[k]) || witness_find(&w, k, NULL, 0) ||
		    !poly_implies(poly_without(ir, n, c->at, k), c->at[k]))
			continue;
		n--;
		c->n--;
		for (int j = k; j < c->n; j++)
			c->at[j] = c->at[j + 1];
		witness_start(&w, c);
	}
	return true;
}

/* Narrows the free axes to what the conditions leave of them. */
static void narrow(Ir *ir, Conditions *c, int *nfree, Node **free, Node **value)
{
	Node *to[COMP_MAX_AXES], *from[COMP_MAX_AXES];
	int n = 0, kept = 0;
	for (int k = 0; k < *nfree; k++) {
		int64_t lo, hi;
		Node *t = free[k];
		bool less = conditions_bounds(c, t, &lo, &hi) && (lo > 0 || hi < t->hi);
		if (!less) {
			free[kept++] = t;
			continue;
		}
		Node *axis = node_axis(ir, (int)t->u.i, hi - lo + 1);
		from[n] = t;
		to[n++] = hi > lo ? node_add(ir, axis, node_int(ir, lo)) : node_int(ir, lo);
		if (hi > lo)
			free[kept++] = axis;
	}
	*nfree = kept;
	if (!n)
		return;
	Conditions old = *c;
	*c = (Conditions){.ir = ir, .never = old.never};
	for (int k = 0; k < old.n; k++)
		conditions_put(c, node_replace(ir, old.at[k], n, from, to));
	*value = node_replace(ir, *value, n, from, to);
}

/* value at the points of the inverse; the read's own indices are z there. */
static Node *value_at(Ir *ir, const Term *term, const Inverse *inv, Node *const *z)
{
	Node *c = term->comp;
	Node *from[COMP_MAX_AXES + RICCI_MAX_RANK], *to[COMP_MAX_AXES + RICCI_MAX_RANK];
	int n = comp_naxis(c);
	for (int k = 0; k < n; k++) {
		from[k] = comp_axis(c, k);
		to[k] = inv->value[k];
	}
	for (int d = 0; d < tensor_rank(term->read->src[0]); d++) {
		Node *index = term->read->src[1 + d];
		if (index->op == OP_AXIS || index->op == OP_CONST)
			continue;
		from[n] = index;
		to[n++] = z[d];
	}
	return node_replace(ir, term->value, n, from, to);
}

/* ---- pieces */

/* All u of a dimension. */
static int64_t residues_extent(Residues r, int64_t size)
{
	return (size - r.first + r.period - 1) / r.period;
}

/* The axes and the left side of a piece; false when it has no elements. z: the elements. */
static bool piece_frame(Ir *ir, Node *tensor, Piece *p, Node **z)
{
	p->rank = tensor_rank(tensor);
	for (int d = 0; d < p->rank; d++) {
		Residues r = p->at[d];
		int64_t size = tensor_extent(tensor, d);
		int64_t extent = r.extent ? r.extent : residues_extent(r, size);
		if (extent <= 0)
			return false;
		Node *u = node_axis(ir, d, extent), *h = NULL;
		p->axes[p->naxis++] = u;
		if (r.count > 1)
			h = p->axes[p->naxis++] = node_axis(ir, p->rank + d, r.count);
		p->u[d] = u;
		p->h[d] = h;
		p->shape[d] = extent * r.count;
		p->lhs[d] = h ? node_add(ir, node_scale(ir, u, r.count), h) : u;
		z[d] = node_add(ir, u, node_int(ir, r.start));
		z[d] = node_add(ir, node_scale(ir, z[d], r.period), node_int(ir, r.first));
		z[d] = h ? node_add(ir, z[d], h) : z[d];
		if (z[d]->hi >= size)
			conditions_put(&p->cond, node2(ir, OP_LT, z[d], node_int(ir, size)));
	}
	return true;
}

PieceKind piece_make(Ir *ir, const Term *term, const Residues *at, Piece *p)
{
	Node *c = term->comp, *tensor = term->read->src[0], *z[RICCI_MAX_RANK];
	int rank = tensor_rank(tensor), naxis = comp_naxis(c);
	Affine index[RICCI_MAX_RANK];
	Conditions guard = {.ir = ir};
	Inverse inv;

	p->naxis = p->nfree = 0;
	p->cond = (Conditions){.ir = ir};
	for (int d = 0; d < rank; d++) {
		p->at[d] = at[d];
		index[d] = affine_of(ir, term->read->src[1 + d]);
	}
	if (!piece_frame(ir, tensor, p, z))
		return PIECE_ZERO;
	if (!index_invert(ir, naxis, c->src, rank, term->read->src + 1, z, 2 * rank, &inv) ||
	    p->naxis + inv.nfree > COMP_MAX_AXES)
		return PIECE_SCATTER;
	for (int k = 0; k < inv.ncond; k++)
		conditions_put(&p->cond, inv.cond[k]);
	if (term->guard)
		conditions_split(&guard, term->guard);
	for (int k = 0; k < guard.n; k++) {
		Node *on_z = restate(ir, guard.at[k], index, rank, z);
		conditions_split(&p->cond,
				 on_z ? on_z
				      : node_replace(ir, guard.at[k], naxis, c->src, inv.value));
	}
	if (p->cond.never || !prune(ir, &p->cond))
		return PIECE_ZERO;
	p->value = value_at(ir, term, &inv, z);
	p->nfree = inv.nfree;
	p->free = inv.free;
	narrow(ir, &p->cond, &p->nfree, p->free, &p->value);
	return p->cond.never || node_is_value(p->value, 0) ? PIECE_ZERO : PIECE_SUM;
}

Node *piece_tensor(Ir *ir, const Piece *p)
{
	Node *place[2 * RICCI_MAX_RANK];
	Frame f = {.rank = p->rank, .lhs = p->lhs, .nkeep = p->naxis, .keep = p->axes};
	f.nsum = p->nfree;
	f.sum = p->free;
	f.place = place;
	f.cond = p->cond.n ? conditions_all(&p->cond) : NULL;
	for (int d = 0, k = 0; d < p->rank; d++) {
		Node *z = node_axis(ir, d, p->shape[d]);
		int64_t count = p->h[d] ? axis_extent(p->h[d]) : 1;
		f.shape[d] = p->shape[d];
		place[k++] = node_floordiv(ir, z, count);
		if (p->h[d])
			place[k++] = node_floormod(ir, z, count);
	}
	return sum_make(ir, &f, p->value);
}

/* Where the guard fails, zero is added to what is certainly an element. */
Node *term_scatter(Ir *ir, const Term *term)
{
	Node *tensor = term->read->src[0], *lhs[RICCI_MAX_RANK], *value = term->value;
	int rank = tensor_rank(tensor);
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < rank; d++) {
		shape[d] = tensor_extent(tensor, d);
		lhs[d] = term->read->src[1 + d];
		if (term->guard && (lhs[d]->lo < 0 || lhs[d]->hi >= shape[d]))
			lhs[d] = node_select(ir, term->guard, lhs[d], node_int(ir, 0));
	}
	if (term->guard)
		value = node_select(ir, term->guard, value, node_const(ir, value->type, 0));
	return comp_make(ir, RED_ADD, rank, shape, lhs, comp_naxis(term->comp), term->comp->src,
			 value);
}

/* What keeps an index from being inverted, NULL for nothing. */
static const char *obstacle(const Node *e)
{
	const char *why = NULL;
	bool choice = e->op == OP_SELECT || e->op == OP_MAX || e->op == OP_MIN;
	if (e->op == OP_AXIS || e->op == OP_CONST)
		return NULL;
	if (e->op == OP_READ)
		return "is read from a tensor";
	if (e->op == OP_CAST)
		return e->src[0]->op == OP_READ ? obstacle(e->src[0]) : "is computed from data";
	for (int k = e->op == OP_SELECT ? 1 : 0; k < e->nsrc && !why; k++)
		why = obstacle(e->src[k]);
	if (why || e->op == OP_ADD || e->op == OP_FLOORDIV || e->op == OP_FLOORMOD)
		return why;
	if (choice)
		return "is chosen in too many ways";
	if (e->op == OP_MUL)
		return node_is_const(e->src[0]) || node_is_const(e->src[1])
			       ? NULL
			       : "is a product of indices";
	return "is no sum of axes, quotients and remainders";
}

void note_scatter(Ir *ir, const Term *term)
{
	Node *tensor = term->read->src[0];
	const char *text = "its indices make too large a system";
	for (int d = tensor_rank(tensor) - 1; d >= 0; d--) {
		const char *why = obstacle(term->read->src[1 + d]);
		text = why ? arena_printf(&ir->arena, "index %d %s", d, why) : text;
	}
	text = arena_printf(&ir->arena, "scatter, because %s", text);
	for (Note *n = ir->note; n; n = n->next)
		if (n->tensor == tensor && !strcmp(n->text, text))
			return;
	Note *n = arena_alloc(&ir->arena, sizeof *n);
	*n = (Note){tensor, text, ir->note};
	ir->note = n;
}

/* term.c - one term of an equation as an equation over the tensor that it reads.
 *
 * Input: a term of dA[f(v)] and residues for each dimension of A. Output: the sum over all v with
 * f(v) = z, for the elements z of those residues, under the conditions of their place (place.c);
 * or, where f is not invertible (gathers, products of indices), a scatter over v, dA[f(v)] +=
 * term(v).
 */
#include "autodiff/internal.h"

#include <string.h>

static Node *conditions_all(const Conditions *c)
{
	Node *all = c->n ? c->at[0] : node_const_int(c->ir, RICCI_BOOL, 1);
	for (int k = 1; k < c->n; k++)
		all = node2(c->ir, OP_AND, all, c->at[k]);
	return all;
}

PieceKind piece_make(Tape *tape, const Term *term, const Residues *at, Piece *p)
{
	const Place *where = p->place = place_find(tape->ir, &tape->places, term, at);
	if (where->kind != PIECE_SUM)
		return where->kind;
	p->value = node_replace(tape->ir, term->value, where->nfrom, where->from, where->to);
	return node_is_value(p->value, 0) ? PIECE_ZERO : PIECE_SUM;
}

Node *piece_tensor(Ir *ir, const Piece *piece)
{
	const Place *p = piece->place;
	Frame f = {.rank = p->rank, .nkeep = p->naxis, .nsum = p->nfree};
	f.cond = p->cond.n ? conditions_all(&p->cond) : NULL;
	for (int d = 0, k = 0; d < p->rank; d++) {
		Node *z = node_axis(ir, d, p->shape[d]);
		int64_t count = p->h[d] ? axis_extent(p->h[d]) : 1;
		f.shape[d] = p->shape[d];
		f.lhs[d] = p->lhs[d];
		f.place[k++] = node_floordiv(ir, z, count);
		if (p->h[d])
			f.place[k++] = node_floormod(ir, z, count);
	}
	memcpy(f.keep, p->axes, sizeof *p->axes * (size_t)p->naxis);
	memcpy(f.sum, p->free, sizeof *p->free * (size_t)p->nfree);
	return sum_make(ir, &f, piece->value);
}

bool index_is_choice(const Node *e)
{
	return e->op == OP_SELECT || e->op == OP_MAX || e->op == OP_MIN || e->op == OP_ABS ||
	       e->op == OP_SIGN || (e->op == OP_CAST && e->src[0]->type == RICCI_BOOL);
}

/* What keeps an index from being inverted, NULL for nothing; without: nodes that nothing keeps. */
static const char *obstacle(Ir *ir, NodeMap *without, Node *e)
{
	const char *why = NULL;
	if (e->op == OP_AXIS || e->op == OP_CONST || node_map_get(without, e))
		return NULL;
	if (e->op == OP_READ)
		return "is read from a tensor";
	if (e->op == OP_CAST && !index_is_choice(e))
		return e->src[0]->op == OP_READ ? obstacle(ir, without, e->src[0])
						: "is computed from data";
	bool asks = e->op == OP_SELECT || e->op == OP_CAST;
	for (int k = asks ? 1 : 0; k < e->nsrc && !why; k++)
		why = obstacle(ir, without, e->src[k]);
	if (why)
		return why;
	if (index_is_choice(e))
		return "is chosen in too many ways";
	if (e->op == OP_MUL && !node_is_const(e->src[0]) && !node_is_const(e->src[1]))
		return "is a product of indices";
	if (e->op != OP_MUL && e->op != OP_ADD && e->op != OP_FLOORDIV && e->op != OP_FLOORMOD)
		return "is no sum of axes, quotients and remainders";
	node_map_put(ir, without, e, e);
	return NULL;
}

const char *index_obstacle(Ir *ir, const Term *term)
{
	NodeMap without = {0};
	for (int d = 0; d < tensor_rank(term->read->src[0]); d++) {
		const char *why = obstacle(ir, &without, term->read->src[1 + d]);
		if (why)
			return arena_printf(&ir->arena, "index %d %s", d, why);
	}
	return NULL;
}

/* Tells the user why that was done. */
static void note_scatter(Ir *ir, const Term *term)
{
	Node *tensor = term->read->src[0];
	const char *why = index_obstacle(ir, term);
	const char *text = arena_printf(&ir->arena, "scatter, because %s",
					why ? why : "its indices make too large a system");
	for (Note *n = ir->note; n; n = n->next)
		if (n->tensor == tensor && !strcmp(n->text, text))
			return;
	Note *n = arena_alloc(&ir->arena, sizeof *n);
	*n = (Note){tensor, text, ir->note};
	ir->note = n;
}

static void see_read(void *user, Node *n)
{
	*(bool *)user |= n->op == OP_READ;
}

/* Where the guard fails, zero is added to what is certainly an element, and nothing is read. */
Node *term_scatter(Ir *ir, const Term *term)
{
	Node *tensor = term->read->src[0], *lhs[RICCI_MAX_RANK];
	int rank = tensor_rank(tensor);
	note_scatter(ir, term);
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < rank; d++) {
		shape[d] = tensor_extent(tensor, d);
		lhs[d] = term->read->src[1 + d];
		bool unsafe = lhs[d]->lo < 0 || lhs[d]->hi >= shape[d];
		node_walk(ir, lhs[d], see_read, &unsafe);
		if (term->guard && unsafe)
			lhs[d] = node_select(ir, term->guard, lhs[d], node_int(ir, 0));
	}
	return comp_make(ir, RED_ADD, rank, shape, lhs, comp_naxis(term->comp), term->comp->src,
			 value_where(ir, term->guard, term->value));
}

Term term_over(Ir *ir, const Term *t, Node *cond, int nkeep, Node *const *keep)
{
	Node *part = value_where(ir, t->guard, t->read);
	Frame f = {.rank = nkeep, .nkeep = nkeep, .cond = cond};
	Term own = {NULL};
	for (int k = 0; k < comp_naxis(t->comp); k++)
		if (!node_has(part, comp_axis(t->comp, k)))
			f.sum[f.nsum++] = comp_axis(t->comp, k);
	for (int k = 0; k < nkeep; k++) {
		f.keep[k] = f.lhs[k] = keep[k];
		f.shape[k] = axis_extent(keep[k]);
		f.place[k] = node_axis(ir, k, f.shape[k]);
	}
	own.comp = comp_dense(ir, RED_NONE, nkeep, nkeep, keep, part);
	own.read = node_replace(ir, t->read, nkeep, keep, own.comp->src);
	own.guard = t->guard ? node_replace(ir, t->guard, nkeep, keep, own.comp->src) : NULL;
	own.value = tensor_read(ir, sum_make(ir, &f, t->value), own.comp->src);
	return own;
}

/* segment_sums.c - partial sums over all terms with the same gathered or scattered index (segment sums).
 *
 * In: `D[o,c] += G[p,o] * H[K[p],c]`, where p has more values than H has rows. Out: the segment sum S[K[p],o] += G[p,o], and
 * the dense sum D[o,c] += S[v,o] * H[v,c]. In: a scatter `D[K[p],c] += G[p,o] * W[o,c]`. Out: the same S, and D[v,c] +=
 * S[v,o] * W[o,c]. These are the gradients of a product of gathered rows, so both share S; window_sums.c has the forward
 * pass. Invariant: each term is added once, to the segment of its index. */
#include "jit/rewrite/products.h"

typedef struct Segments {
	Ir *ir;
	const Node *c;
	Factors *l; /* of its product; the first `inside` are summed by segment */
	int inside, rank;
	Node *const *index; /* of the gather, or of the scatter */
	const Node *of;	    /* the tensor that these index */
	uint32_t bare, gone;
	Node *at[RICCI_MAX_RANK]; /* the indices, with a new axis in place of each that data give */
} Segments;

/* Finds the axes that only the index and the factors `inside` depend on. False: there are none, an index is not read from
 * data, or there would be too many axes. */
static bool find(Segments *p, uint32_t stay)
{
	bool fits = comp_naxis(p->c) + p->rank <= COMP_MAX_AXES;
	for (int d = 0; d < p->rank; d++) {
		int k = rewrite_place(p->c->src, comp_naxis(p->c), p->index[d]);
		bool bare = k >= 0 && !(p->bare >> k & 1);
		p->bare |= bare ? 1U << k : 0;
		p->gone |= bare ? 0 : product_axes(p->c, p->index[d]);
		fits &= bare || node_reads(p->ir, p->index[d]);
		p->at[d] = bare ? p->index[d]
				: node_axis(p->ir, COMP_MAX_AXES + d, tensor_extent(p->of, d));
	}
	p->gone &= ~(p->bare | stay);
	p->inside = product_part(p->l, p->gone);
	return fits && p->gone && p->inside > 0 && p->inside < p->l->n;
}

/* The segment sum S; *at: the indices at which the dense sum reads it. NULL: it would have too many dimensions. */
static Node *segment_sum(Segments *p, Node **at)
{
	Node *lhs[2 * COMP_MAX_AXES], *axis[COMP_MAX_AXES];
	int64_t shape[RICCI_MAX_RANK];
	uint32_t has = 0, left;
	int rank = 0, n = 0;
	for (int d = 0; d < p->rank; d++)
		has |= p->at[d] == p->index[d] ? 0 : product_axes(p->c, p->index[d]);
	for (int k = 0; k < p->inside; k++)
		has |= p->l->f[k].axes;
	left = has & ~p->gone;
	for (int d = 0; d < p->rank; d++) {
		uint32_t own = product_axes(p->c, p->index[d]);
		if (p->at[d] == p->index[d] && !(left & own))
			continue;
		left &= p->at[d] == p->index[d] ? ~own : left;
		lhs[rank] = p->index[d];
		at[rank++] = p->at[d];
	}
	for (int k = 0; k < comp_naxis(p->c); k++) {
		if (left >> k & 1) {
			lhs[rank] = comp_axis(p->c, k);
			at[rank++] = comp_axis(p->c, k);
		}
		if (has >> k & 1)
			axis[n++] = comp_axis(p->c, k);
	}
	if (rank > RICCI_MAX_RANK)
		return NULL;
	for (int d = 0; d < rank; d++)
		shape[d] = axis_extent(at[d]);
	return comp_make(p->ir, RED_ADD, rank, shape, lhs, n, axis,
			 product_of(p->l, p->inside, p->l->f));
}

/* The dense sum, with the indices `lhs` on its left side, of S times the other factors. */
static Node *sum_over_segments(Segments *p, Node *s, Node **at, Node *const *lhs)
{
	Node *root[RICCI_MAX_RANK + 1], *axis[COMP_MAX_AXES];
	int64_t shape[RICCI_MAX_RANK];
	int rank = tensor_rank(p->c);
	p->l->f[p->inside - 1] = (Factor){.value = node_read(p->ir, s, at)};
	Node *body = product_of(p->l, p->l->n - p->inside + 1, p->l->f + p->inside - 1);
	for (int d = 0; d < rank; d++) {
		shape[d] = tensor_extent(p->c, d);
		root[d] = lhs[d];
	}
	root[rank] = body;
	int n = node_axes(p->ir, rank + 1, root, axis);
	return comp_make(p->ir, RED_ADD, rank, shape, lhs, n, axis, body);
}

enum { LOOKED_AT = 3 }; /* equations behind each other */

/* May elements of t be infinite or none, though all data are numbers? Asked of so many equations on the way there. */
static bool may_be_unsafe(Ir *ir, const Node *t, int deep)
{
	Node **read, *body = t->op == OP_COMP ? comp_body(t) : NULL;
	if (t->op == OP_INPUT || deep == 0)
		return false;
	if (!body || node_any(ir, body, product_unsafe))
		return true;
	int n = node_collect(ir, body, OP_READ, &read);
	bool any = false;
	for (int k = 0; k < n && !any; k++)
		any = may_be_unsafe(ir, read[k]->src[0], deep - 1);
	return any;
}

/* The gathered tensor with zeros where all of a segment's sums are zero: of an empty one, nothing reads its row. */
static Node *rows_of_segments(Segments *p, Node *s, Node **at)
{
	Ir *ir = p->ir;
	Node *axis[2 * COMP_MAX_AXES], *zero = node_const(ir, (Type)p->of->type, 0);
	int rank = 0, n = 0;
	for (int row = 1; row >= 0; row--)
		for (int k = 0; k < tensor_rank(s); k++)
			if ((rewrite_place(p->at, p->rank, at[k]) >= 0) == row) {
				axis[n++] = at[k];
				rank += row;
			}
	Node *most = node1(ir, OP_ABS, node_read(ir, s, at));
	most = comp_dense(ir, n > rank ? RED_MAX : RED_NONE, rank, n, axis, most);
	Node *empty = node2(ir, OP_EQ, node_read(ir, most, axis), zero);
	Node *row = node_read(ir, (Node *)p->of, p->at);
	return comp_dense(ir, RED_NONE, p->rank, p->rank, p->at, node_select(ir, empty, zero, row));
}

Node *segment_sum_of_gather(Ir *ir, const Node *c, const Factors *all, int k, Node **first)
{
	Factors copy = factors_copy(all), *l = &copy;
	Node *at[2 * COMP_MAX_AXES], *read = l->f[k].value;
	if (!read || read->op != OP_READ || l->f[k].divisor || l->f[k].cond || !comp_is_dense(c))
		return NULL;
	Segments p = {.ir = ir, .c = c, .l = l, .rank = read->nsrc - 1, .index = read->src + 1};
	p.of = read->src[0];
	Factor gathered = l->f[k];
	l->f[k].axes = 0; /* it is a factor of the dense sum */
	*first = find(&p, product_left(c)) ? segment_sum(&p, at) : NULL;
	if (!*first)
		return NULL;
	Node *table = read->src[0];
	table = may_be_unsafe(ir, table, LOOKED_AT) ? rows_of_segments(&p, *first, at) : table;
	for (int i = p.inside; i < l->n; i++)
		if (l->f[i].value == gathered.value)
			l->f[i].value = node_read(ir, table, p.at);
	return sum_over_segments(&p, *first, at, c->src + comp_naxis(c));
}

Node *segment_sum_of_scatter(Ir *ir, const Node *c, const Factors *all, Node **first)
{
	Factors copy = factors_copy(all);
	Node *at[2 * COMP_MAX_AXES];
	Segments p = {.ir = ir, .c = c, .l = &copy, .rank = tensor_rank(c)};
	p.index = c->src + comp_naxis(c);
	p.of = c;
	*first = find(&p, 0) ? segment_sum(&p, at) : NULL;
	return *first ? sum_over_segments(&p, *first, at, p.at) : NULL;
}

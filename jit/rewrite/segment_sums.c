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
	bool good = find(&p, product_left(c));
	for (int i = p.inside; i < l->n && good; i++)
		if (l->f[i].value == gathered.value)
			l->f[i].value = node_read(ir, read->src[0], p.at);
	*first = good ? segment_sum(&p, at) : NULL;
	return *first ? sum_over_segments(&p, *first, at, c->src + comp_naxis(c)) : NULL;
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

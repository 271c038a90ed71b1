/* product.c - the product of the other factors, the gradient of Y[i] *= X[i,j].
 *
 * The factors are numbered in one row, t, and multiplied pair by pair: level l + 1 holds the
 * products of 2q and 2q + 1 of level l. What multiplies factor t is its neighbour at each level,
 * t/2^l's. Nothing is divided, so zeros are as good as other values, to any order.
 *
 * Input: an equation "*=". Output: an expression over its axes. Invariant: the equations made take
 * as many products as there are factors, and one for each level at each factor. */
#include "autodiff/internal.h"

typedef struct Row {
	Ir *ir;
	int rank;
	int64_t extent[RICCI_MAX_RANK]; /* of the left side's axes; all in one where they are 16 */
	Node *factor;			/* over axes 0..rank-1 and t, axis `rank` */
	Node *t;
	Node *level[64]; /* tensors; NULL for the factors themselves */
	int64_t n[64];	 /* factors in each */
} Row;

/* Digit k of e in the mixed radix of the axes' extents. */
static Node *digit(Ir *ir, Node *e, int n, Node *const *axes, int k)
{
	for (int j = n - 1; j > k; j--)
		e = node_floordiv(ir, e, axis_extent(axes[j]));
	return k ? node_floormod(ir, e, axis_extent(axes[k])) : e;
}

static Node *flat(Ir *ir, int n, Node *const *axes)
{
	Node *e = node_int(ir, 0);
	for (int k = 0; k < n; k++)
		e = node_add(ir, node_scale(ir, e, axis_extent(axes[k])), axes[k]);
	return e;
}

static int64_t extent_of(int n, Node *const *axes)
{
	int64_t all = 1;
	for (int k = 0; k < n; k++)
		all *= axis_extent(axes[k]);
	return all;
}

static Row row_of(Ir *ir, const Node *c)
{
	int rank = tensor_rank(c), nreduced = comp_naxis(c) - rank;
	Row r = {.ir = ir, .rank = rank};
	Node *at[COMP_MAX_AXES], *const *axes = c->src, *body = comp_body(c);
	bool wide = rank == RICCI_MAX_RANK;
	if (wide) {
		r.rank = 1;
		r.extent[0] = extent_of(rank, axes);
	}
	for (int d = 0; d < rank; d++) {
		if (!wide)
			r.extent[d] = axis_extent(axes[d]);
		at[d] = wide ? digit(ir, node_axis(ir, 0, r.extent[0]), rank, axes, d)
			     : node_axis(ir, d, r.extent[d]);
	}
	r.n[0] = extent_of(nreduced, axes + rank);
	r.t = node_axis(ir, r.rank, r.n[0]);
	for (int k = 0; k < nreduced; k++)
		at[rank + k] = digit(ir, r.t, nreduced, axes + rank, k);
	r.factor = node_replace(ir, body, comp_naxis(c), axes, at);
	r.factor = node_cast(ir, type_accumulator((Type)body->type), r.factor);
	return r;
}

/* Number q of a level. */
static Node *row_read(const Row *r, int level, Node *q)
{
	Node *at[RICCI_MAX_RANK];
	if (!level)
		return node_replace(r->ir, r->factor, 1, &r->t, &q);
	for (int d = 0; d < r->rank; d++)
		at[d] = node_axis(r->ir, d, r->extent[d]);
	at[r->rank] = q;
	return node_read(r->ir, r->level[level], at);
}

static Node *row_tensor(const Row *r, int64_t n, Node *body)
{
	Node *axes[RICCI_MAX_RANK];
	for (int d = 0; d < r->rank; d++)
		axes[d] = node_axis(r->ir, d, r->extent[d]);
	axes[r->rank] = node_axis(r->ir, r->rank, n);
	return comp_dense(r->ir, RED_NONE, r->rank + 1, r->rank + 1, axes, body);
}

/* Number q, or 1 behind the end of a level of odd length. */
static Node *row_read_or_one(const Row *r, int level, Node *q)
{
	Node *one = node_const(r->ir, r->factor->type, 1);
	if (r->n[level] % 2 == 0)
		return row_read(r, level, q);
	Node *inside = node2(r->ir, OP_LT, q, node_int(r->ir, r->n[level]));
	return node_select(r->ir, inside, row_read(r, level, q), one);
}

Node *product_others(Ir *ir, Node *c)
{
	Row r = row_of(ir, c);
	int rank = tensor_rank(c);
	Node *product = node_const(ir, r.factor->type, 1), *at[RICCI_MAX_RANK];
	for (int l = 0; r.n[l] > 1; l++) {
		Node *q = node_floordiv(ir, r.t, (int64_t)1 << l);
		Node *even = node2(ir, OP_EQ, node_floormod(ir, q, 2), node_int(ir, 0));
		Node *right = row_read_or_one(&r, l, node_add(ir, q, node_int(ir, 1)));
		Node *left = row_read(&r, l, node_add(ir, q, node_int(ir, -1)));
		product = node_mul(ir, product, node_select(ir, even, right, left));
		r.n[l + 1] = (r.n[l] + 1) / 2;
		if (r.n[l + 1] == 1)
			break;
		Node *pair = node_scale(ir, node_axis(ir, r.rank, r.n[l + 1]), 2);
		right = row_read_or_one(&r, l, node_add(ir, pair, node_int(ir, 1)));
		r.level[l + 1] =
			row_tensor(&r, r.n[l + 1], node_mul(ir, row_read(&r, l, pair), right));
	}
	Node *all = row_tensor(&r, r.n[0], product);
	for (int d = 0; d < r.rank; d++)
		at[d] = rank == r.rank ? c->src[d] : flat(ir, rank, c->src);
	at[r.rank] = flat(ir, comp_naxis(c) - rank, c->src + rank);
	return node_cast(ir, (Type)c->type, node_read(ir, all, at));
}

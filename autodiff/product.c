/* product.c - the product of the other factors, the gradient of Y[i] *= X[i,j].
 *
 * The factors are numbered in one row, t, and multiplied pair by pair: level l + 1 holds the
 * products of 2q and 2q + 1 of level l. What multiplies factor t is its neighbour at each level,
 * t/2^l's. Nothing is divided, so zeros are as good as other values, to any order.
 *
 * Input: an equation "*=". Output: an expression over its axes. Invariant: the equations made take
 * as many products as there are factors, and one for each level at each factor. */
#include "autodiff/internal.h"

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

/* The axes of the left side, all in one where they are 16, and the factors over these and position
 * t. */
static Node *factors_in_rows(Rows *r, const Node *c)
{
	Ir *ir = r->ir;
	int rank = tensor_rank(c), nreduced = comp_naxis(c) - rank;
	Node *at[COMP_MAX_AXES], *const *axes = c->src, *one = NULL;
	bool wide = rank == RICCI_MAX_RANK;
	if (wide)
		one = node_axis(ir, 0, extent_of(rank, axes));
	for (int d = 0; d < rank; d++)
		at[d] = wide ? digit(ir, one, rank, axes, d)
			     : node_axis(ir, d, axis_extent(axes[d]));
	r->rank = wide ? 1 : rank;
	for (int d = 0; d < r->rank; d++)
		r->axes[d] = wide ? one : at[d];
	Node *t = rows_position(r, extent_of(nreduced, axes + rank));
	for (int k = 0; k < nreduced; k++)
		at[rank + k] = digit(ir, t, nreduced, axes + rank, k);
	Node *factor = node_replace(ir, comp_body(c), comp_naxis(c), axes, at);
	return node_cast(ir, type_accumulator((Type)factor->type), factor);
}

/* Number q of n values over position t; 1 behind the end of a row of odd length. */
static Node *value_at(const Rows *r, Node *value, int64_t n, Node *q)
{
	Ir *ir = r->ir;
	Node *t = rows_position(r, n), *v = node_replace(ir, value, 1, &t, &q);
	Node *inside = node2(ir, OP_LT, q, node_int(ir, n));
	return n % 2 ? node_select(ir, inside, v, node_const(ir, v->type, 1)) : v;
}

Node *product_others(Ir *ir, Node *c)
{
	Rows r = {.ir = ir};
	int rank = tensor_rank(c), nreduced = comp_naxis(c) - rank;
	Node *at[RICCI_MAX_RANK], *one = node_int(ir, 1);
	Node *value = factors_in_rows(&r, c), *product = node_const(ir, value->type, 1);
	int64_t all = extent_of(nreduced, c->src + rank);
	Node *q = rows_position(&r, all);
	for (int64_t n = all, half; n > 1; n = half) {
		half = (n + 1) / 2;
		Node *even = node2(ir, OP_EQ, node_floormod(ir, q, 2), node_int(ir, 0));
		Node *right = value_at(&r, value, n, node_add(ir, q, one));
		Node *left = value_at(&r, value, n, node_sub(ir, q, one));
		product = node_mul(ir, product, node_select(ir, even, right, left));
		if (half == 1)
			break;
		Node *pair = node_scale(ir, rows_position(&r, half), 2);
		right = value_at(&r, value, n, node_add(ir, pair, one));
		left = value_at(&r, value, n, pair);
		value = rows_tensor(&r, half, node_mul(ir, left, right));
		value = rows_read(&r, value, rows_position(&r, half), 1);
		q = node_floordiv(ir, q, 2);
	}
	Node *others = rows_tensor(&r, all, product);
	for (int d = 0; d < r.rank; d++)
		at[d] = r.rank < rank ? flat(ir, rank, c->src) : c->src[d];
	at[r.rank] = flat(ir, nreduced, c->src + rank);
	return node_cast(ir, (Type)c->type, node_read(ir, others, at));
}

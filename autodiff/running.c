/* running.c - the derivatives of a running product or extremum, Y[i] *= X[j] where j <= i, in work in
 * proportion to its factors and results.
 *
 * Y[i] is P[bound(i)], where P[x] = P[x-1] op F[x]. With link[x] = dP[x]/dP[x-1] and weight[x] =
 * dP[x]/dF[x], reverse mode solves H[x] = dP[x] + link[x+1]*H[x+1], and dF[x] = weight[x]*H[x];
 * forward mode solves T[x] = link[x]*T[x-1] + weight[x]*tF[x]. Of a product, link[x] is F[x], and
 * weight[x] the product of the factors before x. Of an extremum, link[x] tells whether P[x] is
 * P[x-1], weight[x] whether it is F[x], and both gradients and tangents are divided by the number
 * of ties, T[x] with tF = 1. Recurrences are solved by blocks of 2, 4, 8 .. positions: what a block
 * does to the H behind it is b + a*H (Blelloch, Prefix sums and their applications).
 *
 * Input: an equation "*=", "max=" or "min=" and its gradient, or the tangents of what it reads.
 * Output: its factors as an equation, and their gradient; or its tangent. Invariant: no factor is
 * divided by, so zeros are as good as other values, to any order. */
#include "autodiff/internal.h"

/* The tensor H[x] = b[x] + a[x]*H[x+1] of n positions; H[n] is 0. */
static Node *recurrence(const Rows *r, int64_t n, Node *a, Node *b)
{
	Ir *ir = r->ir;
	Node *x = rows_position(r, n);
	if (n == 1)
		return b;
	int64_t half = (n + 1) / 2;
	Node *left = node_scale(ir, rows_position(r, half), 2);
	Node *right = node_add(ir, left, node_int(ir, 1));
	Node *a0 = rows_read(r, a, left, 1), *b1 = rows_read(r, b, right, 0);
	Node *both = node_add(ir, rows_read(r, b, left, 0), node_mul(ir, a0, b1));
	Node *blocks = recurrence(r, half,
				  rows_tensor(r, half, node_mul(ir, a0, rows_read(r, a, right, 1))),
				  rows_tensor(r, half, both));
	Node *block = node_floordiv(ir, x, 2), *one = node_int(ir, 1);
	Node *behind = rows_read(r, blocks, node_add(ir, block, one), 0);
	Node *odd = rows_read(r, b, x, 0);
	if (!node_is_value(behind, 0))
		odd = node_add(ir, odd, node_mul(ir, rows_read(r, a, x, 1), behind));
	Node *is_even = node2(ir, OP_EQ, node_floormod(ir, x, 2), node_int(ir, 0));
	return rows_tensor(r, n, node_select(ir, is_even, rows_read(r, blocks, block, 0), odd));
}

/* ---- what runs */

enum { CONDITIONS = 32, MOST_GROWTH = 2 };

typedef struct Running {
	Node *along;	    /* the reduced axis */
	bool backward;	    /* position x is at the end - x of it */
	Node *bound;	    /* positions up to here are in */
	Node *factor;	    /* without that condition */
	Node *value, *rest; /* the factor where its other conditions hold */
	int nrow;
	Node *row[RICCI_MAX_RANK]; /* the left axes that are in the factor */
	int last;		   /* of the dimensions that are not, and that the bound has */
} Running;

static bool has_reduced(const Node *c, Node *e, const Node *but)
{
	for (int k = tensor_rank(c); k < comp_naxis(c); k++)
		if (comp_axis(c, k) != but && node_has(e, comp_axis(c, k)))
			return true;
	return false;
}

/* cond as positions x <= bound of the axis. */
static bool bound_of(Ir *ir, const Node *c, const Node *cond, Node *axis, Running *r)
{
	Node *e = condition_slack(ir, cond);
	int64_t slope = e ? affine_stride(ir, e, axis) : 0;
	if (slope == INT64_MIN || slope == 0 || has_reduced(c, e, axis))
		return false;
	r->along = axis;
	r->backward = slope > 0;
	r->bound =
		node_floordiv(ir, node_add_scaled(ir, e, axis, -slope), slope < 0 ? -slope : slope);
	if (r->backward)
		r->bound = node_add(ir, r->bound, node_int(ir, axis_extent(axis) - 1));
	return true;
}

/* Is it worth it: does the factor lack an axis of the results that the bound has? */
static bool rows_of(const Node *c, Running *r)
{
	double without = 1;
	r->last = -1;
	r->nrow = 0;
	for (int d = 0; d < tensor_rank(c); d++) {
		Node *axis = comp_axis(c, d);
		if (node_has(r->factor, axis) && r->nrow < RICCI_MAX_RANK)
			r->row[r->nrow++] = axis;
		else if (node_has(r->bound, axis)) {
			without *= (double)axis_extent(axis);
			r->last = d;
		}
	}
	double positions = (double)r->bound->hi - (double)r->bound->lo;
	return without > 1 && r->nrow < RICCI_MAX_RANK &&
	       positions <= MOST_GROWTH * (without + (double)axis_extent(r->along));
}

/* Along the last dimension that there is one for, whose elements lie together. */
static bool running_of(Ir *ir, const Node *c, Running *best)
{
	Node *guard[CONDITIONS];
	int n;
	Reduce red = comp_reduce(c);
	Type type = (Type)comp_body(c)->type;
	if ((red != RED_MUL && red != RED_MAX && red != RED_MIN) || !comp_is_dense(c))
		return false;
	Node *body = reduce_guards(ir, red, comp_body(c), CONDITIONS, &n, guard);
	best->last = -1;
	for (int g = 0; g < n; g++)
		for (int k = tensor_rank(c); k < comp_naxis(c); k++) {
			Running r;
			if (!bound_of(ir, c, guard[g], comp_axis(c, k), &r))
				continue;
			r.value = body;
			r.rest = node_const_int(ir, RICCI_BOOL, 1);
			for (int other = 0; other < n; other++)
				if (other != g)
					r.rest = node2(ir, OP_AND, r.rest, guard[other]);
			r.factor =
				node_select(ir, r.rest, body, node_identity(ir, red, type, type));
			if (rows_of(c, &r) && r.last > best->last)
				*best = r;
		}
	return best->last >= 0;
}

/* ---- the chain of partial results */

typedef struct Chain {
	Rows rows;
	Running run;
	Reduce red;
	int64_t n, end; /* positions of F; and of P, as many as results read */
	Node *factors;	/* the equation F, along the axis */
	int naxis;	/* of F, as axes of the running equation */
	Node *axes[COMP_MAX_AXES];
	Node *partial;	   /* P; of a product, that of the factors before x */
	Node *ties_within; /* of a position; NULL: 1 */
	Node *ties;	   /* NULL: a product */
} Chain;

/* F, reduced where there are other reduced axes. */
static void factors_make(Ir *ir, const Node *c, Chain *chain)
{
	const Running *r = &chain->run;
	Node **axes = chain->axes;
	int n = r->nrow, rank = n + 1;
	for (int k = 0; k < n; k++)
		axes[k] = r->row[k];
	axes[n++] = r->along;
	for (int k = tensor_rank(c); k < comp_naxis(c); k++)
		if (comp_axis(c, k) != r->along)
			axes[n++] = comp_axis(c, k);
	Node *f = node_cast(ir, type_accumulator((Type)r->factor->type), r->factor);
	chain->naxis = n;
	chain->factors = comp_dense(ir, n > rank ? chain->red : RED_NONE, rank, n, axes, f);
}

/* Where position x is along the axis, and the other way. */
static Node *position_axis(const Chain *c, Node *x)
{
	Ir *ir = c->rows.ir;
	return c->run.backward ? node_sub(ir, node_int(ir, c->n - 1), x) : x;
}

/* F[x], neutral where there is none. */
static Node *factor_at(const Chain *c, Node *x)
{
	return rows_read(&c->rows, tensor_source(c->factors), position_axis(c, x),
			 reduce_identity(c->red, (Type)c->factors->type));
}

/* All factors y with y < x, or y <= x, reduced. */
static Node *factors_reduced(const Chain *c, int64_t n, Op order)
{
	const Rows *rows = &c->rows;
	Ir *ir = rows->ir;
	Node *axes[RICCI_MAX_RANK + 1], *x = rows_position(rows, n),
					*y = node_axis(ir, rows->rank + 1, c->n);
	Type type = (Type)c->factors->type;
	for (int k = 0; k < rows->rank; k++)
		axes[k] = rows->axes[k];
	axes[rows->rank] = x;
	axes[rows->rank + 1] = y;
	Node *body = node_select(ir, node2(ir, order, y, x), factor_at(c, y),
				 node_identity(ir, c->red, type, type));
	return comp_dense(ir, c->red, rows->rank + 1, rows->rank + 2, axes, body);
}

static Node *partial_at(const Chain *c, Node *x)
{
	return rows_read(&c->rows, c->partial, x, reduce_identity(c->red, (Type)c->partial->type));
}

/* value where e is the extremum p, else 0. */
static Node *where_extremum(const Chain *c, Node *e, Node *p, Node *value)
{
	Ir *ir = c->rows.ir;
	return value_where(ir, extremum_hit(ir, c->red, e, p), value);
}

static Node *link_at(const Chain *c, Node *x)
{
	Ir *ir = c->rows.ir;
	if (c->red == RED_MUL)
		return factor_at(c, x);
	Node *before = partial_at(c, node_add(ir, x, node_int(ir, -1)));
	return where_extremum(c, before, partial_at(c, x), node_const(ir, before->type, 1));
}

static Node *weight_at(const Chain *c, Node *x)
{
	Ir *ir = c->rows.ir;
	if (c->red == RED_MUL)
		return partial_at(c, x);
	Node *value = node_const(ir, c->factors->type, 1);
	if (c->ties_within)
		value = rows_read(&c->rows, c->ties_within, position_axis(c, x), 0);
	value = where_extremum(c, factor_at(c, x), partial_at(c, x), value);
	return value_where(ir, node2(ir, OP_LT, x, node_int(ir, c->n)), value);
}

/* H[x] = b[x] + link[x+1]*H[x+1]; b is an expression over rows_position(.., end). */
static Node *solve_backward(const Chain *c, Node *b)
{
	Ir *ir = c->rows.ir;
	Node *next = node_add(ir, rows_position(&c->rows, c->end), node_int(ir, 1));
	Node *a = rows_tensor(&c->rows, c->end, link_at(c, next));
	return recurrence(&c->rows, c->end, a, rows_tensor(&c->rows, c->end, b));
}

/* T[x] = b[x] + link[x]*T[x-1]. */
static Node *solve_forward(const Chain *c, Node *b)
{
	Ir *ir = c->rows.ir;
	Node *x = rows_position(&c->rows, c->end),
	     *mirror = node_sub(ir, node_int(ir, c->end - 1), x);
	Node *a = rows_tensor(&c->rows, c->end, link_at(c, mirror));
	b = rows_tensor(&c->rows, c->end, node_replace(ir, b, 1, &x, &mirror));
	Node *t = recurrence(&c->rows, c->end, a, b);
	return rows_tensor(&c->rows, c->end, rows_read(&c->rows, t, mirror, 0));
}

static bool chain_make(Ir *ir, const Node *c, Chain *chain)
{
	Running *r = &chain->run;
	Node *hit;
	*chain = (Chain){.red = comp_reduce(c), .rows.ir = ir};
	if (!running_of(ir, c, r))
		return false;
	factors_make(ir, c, chain);
	chain->n = axis_extent(r->along);
	chain->end = r->bound->hi >= chain->n ? r->bound->hi + 1 : chain->n;
	chain->rows.rank = r->nrow;
	for (int k = 0; k < r->nrow; k++)
		chain->rows.axes[k] = node_axis(ir, k, axis_extent(r->row[k]));
	bool product = chain->red == RED_MUL;
	chain->partial = product ? factors_reduced(chain, chain->n, OP_LT)
				 : factors_reduced(chain, chain->end, OP_LE);
	if (!product && comp_reduce(chain->factors) != RED_NONE)
		chain->ties_within = extremum_ties(ir, chain->factors, &hit);
	if (!product)
		chain->ties = solve_forward(
			chain, weight_at(chain, rows_position(&chain->rows, chain->end)));
	return true;
}

static Node *shared(const Chain *c, Node *e, Node *x)
{
	Ir *ir = c->rows.ir;
	return c->ties ? node2(ir, OP_DIV, e, rows_read(&c->rows, c->ties, x, 1)) : e;
}

/* ---- reverse and forward mode */

/* The gradient of partial[.., m], which are the results with bound = m + its least; NULL: zero. */
static Node *partial_gradient(Tape *tape, const Node *c, const Running *r, Node *partial, Node *dy)
{
	Ir *ir = tape->ir;
	Node *at[RICCI_MAX_RANK], *sum = NULL;
	Term *terms = arena_alloc(&ir->arena, sizeof *terms);
	int rank = tensor_rank(c), n = r->nrow;
	for (int k = 0; k < n; k++)
		at[k] = r->row[k];
	at[n] = node_add(ir, r->bound, node_int(ir, -r->bound->lo));
	terms->read = node_read(ir, partial, at);
	terms->comp = comp_dense(ir, RED_NONE, rank, rank, c->src, terms->read);
	terms->value = node_cast(ir, partial->type, tensor_read(ir, dy, c->src));
	n = terms_split(ir, 1, &terms);
	for (int k = 0; k < n; k++)
		sum = tensor_sum(ir, sum, term_gradient(tape, &terms[k]));
	return sum;
}

bool running_gradient(Tape *tape, Node **c, Node **dy)
{
	Ir *ir = tape->ir;
	Chain chain;
	if (!chain_make(ir, *c, &chain))
		return false;
	const Rows *rows = &chain.rows;
	const Running *r = &chain.run;
	/* Only what it is read by matters here. */
	Node *one = node_const(ir, chain.factors->type, 1);
	Node *partial = rows_tensor(rows, r->bound->hi - r->bound->lo + 1, one);
	Node *dpartial = partial_gradient(tape, *c, r, partial, *dy);
	*c = chain.factors;
	*dy = NULL;
	if (!dpartial)
		return true;
	Node *x = rows_position(rows, chain.end);
	Node *b = rows_read(rows, dpartial, node_add(ir, x, node_int(ir, -r->bound->lo)), 0);
	Node *behind = solve_backward(&chain, shared(&chain, b, x));
	x = position_axis(&chain, rows_position(rows, chain.n));
	*dy = rows_tensor(rows, chain.n,
			  weighted(ir, weight_at(&chain, x), rows_read(rows, behind, x, 0)));
	return true;
}

/* The tangent of F; NULL: zero. */
static Node *factors_tangent(Forward *f, const Chain *chain)
{
	Ir *ir = f->ir;
	Node *c = chain->factors, *d = derive_forward(f, chain->run.value, chain->run.value);
	if (!d)
		return NULL;
	Node *seed = equation_seed(ir, c, node_const(ir, c->type, 1));
	seed = node_replace(ir, seed, chain->naxis, c->src, chain->axes);
	d = weighted(ir, seed, node_cast(ir, c->type, d));
	d = value_where(ir, chain->run.rest, d);
	int rank = tensor_rank(c);
	return comp_dense(ir, chain->naxis > rank ? RED_ADD : RED_NONE, rank, chain->naxis,
			  chain->axes, d);
}

bool running_tangent(Forward *f, Node *c, Node **tangent)
{
	Ir *ir = f->ir;
	Chain chain;
	if (!chain_make(ir, c, &chain))
		return false;
	const Rows *rows = &chain.rows;
	Node *tfactors = factors_tangent(f, &chain), *x = rows_position(rows, chain.end);
	*tangent = NULL;
	if (!tfactors)
		return true;
	Node *b = weighted(ir, weight_at(&chain, x),
			   rows_read(rows, tensor_source(tfactors), position_axis(&chain, x), 0));
	Node *t = solve_forward(&chain, b);
	t = rows_tensor(rows, chain.end, shared(&chain, rows_read(rows, t, x, 0), x));
	Rows own = *rows;
	for (int k = 0; k < own.rank; k++)
		own.axes[k] = chain.run.row[k];
	t = node_cast(ir, c->type, rows_read(&own, t, chain.run.bound, 0));
	*tangent = comp_dense(ir, RED_NONE, tensor_rank(c), tensor_rank(c), c->src, t);
	return true;
}

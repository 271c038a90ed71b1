/* window_sums.c - what a window's place has no part in is summed before the window.
 *
 * In: an equation `Y[p,j] += X[p+r,o] * W[o,j] * D[r,j]`. Out: one that reads T[u,j] += X[u,o] * W[o,j] at p+r, so that o
 * is summed once for each element of X, and not for each point of the window. The gradient of a depthwise convolution in
 * front of a product has such sums; autodiff/window.c does the same where a gradient has strides. Where several places of the
 * result read the same element at a point of the window, `X[(p+r)/2,o] * W[o,j,r]`, T has these points, too: T[r,u,j].
 * Invariant: T is of the extents of X where indices are no bare axes, so it is read where X was. */
#include "jit/rewrite/products.h"

typedef struct Window {
	Ir *ir;
	const Node *c;
	const Factors *l;
	const Factor *f;    /* the factor that reads one tensor: */
	Node *value, *cond; /* cond ? value : 0, of one read; NULL: true */
	Node *read;
	uint32_t bare,
		axes; /* axes that are an index of it; those of other indices and of its condition */
	uint32_t summed; /* of the bare ones, before the window */
} Window;

/* Is the factor multiplied before the window? */
static bool is_inside(const Window *w, const Factor *f)
{
	return f == w->f || f->axes & w->summed;
}

/* May several of the result's places, all else fixed, read the same element? Not by indices of one axis of the result each,
 * and its multiples. */
static bool is_shared(const Window *w)
{
	uint32_t left = product_left(w->c);
	for (int d = 1; d < w->read->nsrc; d++) {
		uint32_t of = product_axes(w->c, w->read->src[d]) & left;
		Node *axis = of ? comp_axis(w->c, __builtin_ctz(of)) : NULL;
		if (of & (of - 1) ||
		    (axis && affine_stride(w->ir, w->read->src[d], axis) == INT64_MIN))
			return true;
	}
	return false;
}

/* The read that the value is, or is a function of, of no axis beside; NULL: it is none such. */
static Node *only_read(const Window *w)
{
	Node **read, *one = node_const(w->ir, (Type)w->value->type, 1);
	if (w->value->op == OP_READ)
		return w->value;
	if (node_collect(w->ir, w->value, OP_READ, &read) != 1 || read[0]->type != w->value->type)
		return NULL;
	Node *rest = node_replace(w->ir, w->value, 1, &read[0], &one);
	return product_axes(w->c, rest) ? NULL : read[0];
}

static bool find(Window *w)
{
	const Factor *f = w->f;
	w->value = f->value;
	w->cond = f->cond;
	if (w->value && w->value->op == OP_SELECT && node_is_value(w->value->src[2], 0)) {
		w->cond = node_and(w->ir, w->cond, w->value->src[0]);
		w->value = w->value->src[1];
	}
	if (!w->value || f->divisor || !(w->read = only_read(w)))
		return false;
	w->axes = product_axes(w->c, w->cond);
	w->bare = 0;
	for (int d = 1; d < w->read->nsrc; d++) {
		int k = rewrite_place(w->c->src, comp_naxis(w->c), w->read->src[d]);
		bool again = k >= 0 && w->bare >> k & 1; /* a diagonal */
		w->bare |= k >= 0 ? 1U << k : 0;
		w->axes |= k < 0 || again ? product_axes(w->c, w->read->src[d]) : 0;
	}
	w->summed = w->bare & ~w->axes & ~product_left(w->c);
	bool shared = is_shared(w);
	for (int k = 0; k < w->l->n; k++)
		if (&w->l->f[k] != f && (w->l->f[k].cond || (!shared && w->l->f[k].axes & w->axes)))
			w->summed &= ~w->l->f[k].axes;
	return w->axes & ~w->bare && w->summed;
}

/* T's dimensions: as the read has them, and in place of the first one that is summed what the other factors have, the axis
 * along which the result's elements lie side by side last. at[]: where T is read. */
static int dimensions(const Window *w, Node **axis, Node **at, Node **inner)
{
	uint32_t others = 0, there = 0, last = product_last(w->ir, w->c);
	int n = 0;
	for (int k = 0; k < w->l->n; k++)
		others |= is_inside(w, &w->l->f[k]) && &w->l->f[k] != w->f ? w->l->f[k].axes : 0;
	for (int d = 1; d < w->read->nsrc; d++) {
		Node *e = w->read->src[d];
		int k = rewrite_place(w->c->src, comp_naxis(w->c), e);
		bool own = k < 0 || (w->axes >> k & 1) || (there >> k & 1);
		inner[d - 1] = own ? node_axis(w->ir, COMP_MAX_AXES + d,
					       tensor_extent(w->read->src[0], d - 1))
				   : e;
		there |= own ? 0 : 1U << k;
		if (own || !(w->summed >> k & 1)) {
			axis[n] = inner[d - 1];
			at[n++] = e;
			continue;
		}
		uint32_t new = others & ~(w->bare & ~w->axes) & ~there;
		there |= new;
		for (uint32_t end = 0; end < 2; end++)
			for (int i = 0; i < comp_naxis(w->c); i++)
				if (new >> i & 1 && (last >> i & 1) == end)
					axis[n] = at[n] = comp_axis(w->c, i), n++;
	}
	return n;
}

/* Has T the window's points, of factors beside X? */
static bool has_window(const Window *w)
{
	for (int k = 0; k < w->l->n; k++)
		if (is_inside(w, &w->l->f[k]) && &w->l->f[k] != w->f && w->l->f[k].axes & w->axes)
			return true;
	return false;
}

static Node *hoisted(const Window *w, Node **first)
{
	Node *axis[2 * COMP_MAX_AXES], *at[2 * COMP_MAX_AXES], *inner[RICCI_MAX_RANK];
	Factor in[COMP_MAX_AXES], out[COMP_MAX_AXES];
	int nin = 0, nout = 0, rank = dimensions(w, axis, at, inner), n = rank;
	if (rank > RICCI_MAX_RANK || w->l->n > COMP_MAX_AXES)
		return NULL;
	for (int k = 0; k < w->l->n; k++)
		if (&w->l->f[k] != w->f)
			*(is_inside(w, &w->l->f[k]) ? &in[nin++] : &out[nout++]) = w->l->f[k];
	Node *there = node_read(w->ir, w->read->src[0], inner);
	in[nin++] = (Factor){.value = node_replace(w->ir, w->value, 1, (Node **)&w->read, &there)};
	for (int k = 0; k < comp_naxis(w->c); k++)
		if (w->summed >> k & 1)
			axis[n++] = comp_axis(w->c, k);
	*first = comp_dense(w->ir, RED_ADD, rank, n, axis, product_of(w->l, nin, in));
	if (has_window(w) && comp_points(*first) > comp_points(w->c))
		return NULL;
	out[nout++] = (Factor){.value = node_read(w->ir, *first, at), .cond = w->cond};
	return product_sum(w->ir, w->c, product_of(w->l, nout, out));
}

Node *window_sum(Ir *ir, const Node *c, const Factors *l, int k, Node **first)
{
	Window w = {.ir = ir, .c = c, .l = l, .f = &l->f[k]};
	return find(&w) ? hoisted(&w, first) : NULL;
}

/* running_find.c - running reductions: what is summed for one element of the results may be kept for
 * the next (Y[i] += X[j] where j <= i).
 *
 * Input: a reduction. Output: the spatial axis i and the reduced axis j that meet in one condition
 * alone, e(i, j) >= 0, affine in both: along i, or against it, it only ever lets in more; and the
 * factors that depend on i and on nothing reduced. Invariant: what is left of the body does not
 * depend on i. */
#include "jit/rewrite/rewrite.h"

typedef struct Finder {
	Ir *ir;
	Reduce red;
	int nspatial, naxis;
	Node *const *axis;
	int left; /* factors that may still be taken off */
} Finder;
enum { MOST_FACTORS = 64 };

static bool has_reduced(const Finder *f, Node *e)
{
	for (int k = f->nspatial; k < f->naxis; k++)
		if (node_has(e, f->axis[k]))
			return true;
	return false;
}

/* A sum's factors and divisors that the axis is in go to r; NULL: it is left in others. */
static Node *factors_off(Finder *f, Running *r, Node *e, Node *axis)
{
	bool divides = e->op == OP_DIV;
	Node *rest[2] = {NULL, NULL};
	if (!node_has(e, axis))
		return e;
	if (!f->left || (!divides && e->op != OP_MUL && e->op != OP_NEG) || f->red != RED_ADD ||
	    !type_is_float((Type)e->type))
		return NULL;
	for (int k = 0; k < e->nsrc; k++) {
		Node *x = e->src[k], **to = k && divides ? &r->divisor : &r->factor;
		if (node_has(x, axis) && !has_reduced(f, x) && e->op != OP_NEG) {
			f->left -= f->left > 0;
			*to = *to ? node2(f->ir, OP_MUL, *to, x) : x;
			rest[k] = node_const(f->ir, (Type)x->type, 1);
		} else if (!(k && divides && node_has(x, axis))) {
			rest[k] = factors_off(f, r, x, axis);
		}
		if (!rest[k])
			return NULL;
	}
	return node_make(f->ir, e->op, e->type, e->nsrc, rest, 0);
}

/* The condition as e >= 0, and the longest reduced axis that it lets in along i. */
static bool condition_of(const Finder *f, Running *r, const Node *cond)
{
	Ir *ir = f->ir;
	r->e = condition_slack(ir, cond);
	if (!r->e)
		return false;
	r->along = affine_stride(ir, r->e, f->axis[r->axis]);
	if (r->along == INT64_MIN || r->along == 0)
		return false;
	r->step = r->along < 0 ? -r->along : r->along;
	r->over = -1;
	for (int k = f->nspatial; k < f->naxis; k++) {
		int64_t s = affine_stride(ir, r->e, f->axis[k]), extent = axis_extent(f->axis[k]);
		if (s == INT64_MIN || s == 0 || (s != 1 && s != -1 && r->step != 1) ||
		    extent <= r->step || (r->over >= 0 && extent <= axis_extent(f->axis[r->over])))
			continue;
		r->over = k;
		r->slope = s;
	}
	return r->over >= 0;
}

Node *running_some(Ir *ir, Node *e, int n, Node *const *reduced)
{
	for (int k = 0; k < n; k++) {
		int64_t s = affine_stride(ir, e, reduced[k]);
		Node *best = node_int(ir, s > 0 ? axis_extent(reduced[k]) - 1 : 0);
		if (s == INT64_MIN)
			return node_const_int(ir, RICCI_BOOL, 0);
		e = node_replace(ir, e, 1, &reduced[k], &best);
	}
	return node2(ir, OP_LE, node_int(ir, 0), e);
}

bool running_find(Ir *ir, Reduce red, Node *body, int nspatial, int naxis, Node *const *axis,
		  int at, Running *r)
{
	Finder f = {ir, red, nspatial, naxis, axis, MOST_FACTORS};
	int n, condition = -1;
	*r = (Running){.axis = at};
	if (red == RED_NONE || at >= nspatial)
		return false;
	r->body = reduce_guards(ir, red, body, RUNNING_CONDITIONS, &n, r->cond);
	for (int k = 0; k < n; k++) {
		if (!node_has(r->cond[k], axis[at]))
			continue;
		if (condition >= 0 || !condition_of(&f, r, r->cond[k]))
			return false;
		condition = k;
	}
	if (condition < 0)
		return false;
	for (r->ncond = n - 1; condition < r->ncond; condition++)
		r->cond[condition] = r->cond[condition + 1];
	r->body = factors_off(&f, r, r->body, axis[at]);
	if (r->factor || r->divisor)
		r->some = running_some(ir, r->e, naxis - nspatial, axis + nspatial);
	/* Where nothing is in, factors are not to be asked for. */
	return r->body && (!r->some || (r->ncond == 0 && !node_is_value(r->some, 0)));
}

int64_t running_saves(const Running *r, Node *const *axis)
{
	int64_t times = axis_extent(axis[r->over]) / r->step;
	return times < RUNNING_LEAST ? 1 : times;
}

bool comp_running(Ir *ir, const Node *c, int at, Running *r)
{
	Node *axis[COMP_MAX_AXES];
	for (int k = 0; k < comp_naxis(c); k++)
		axis[k] = comp_axis(c, k);
	return comp_is_dense(c) &&
	       running_find(ir, comp_reduce(c), comp_body(c), tensor_rank(c), comp_naxis(c), axis,
			    at, r) &&
	       running_saves(r, axis) > 1;
}

double comp_work(Ir *ir, const Node *c, int from)
{
	double best = 1;
	for (int k = from; comp_reduce(c) != RED_NONE && k < tensor_rank(c); k++) {
		Running r;
		double saves = comp_running(ir, c, k, &r)
				       ? (double)axis_extent(comp_axis(c, r.over)) / (double)r.step
				       : 1;
		best = saves > best ? saves : best;
	}
	return comp_points(c) / best;
}

/* window.c - sums that where an element is met does not depend on, taken first.
 *
 * dX[z] of Y[k,p] += X[2*p+r] * W[k,r] sums over k and, for each residue of z, over the taps r that
 * meet it. The sum over k is the same work at every tap: T[r,p] += dY[k,p] * W[k,r], one
 * contraction without conditions; then dX[z] adds up the few T[r,p] that meet z, residue by residue
 * (phase.c), instead of contracting anew for each with every second element of W.
 *
 * Input: a term whose gradient would be several equations. Output: the same gradient's term over
 * the axes that stand in the read, whose value is an element of T. Invariant: T is evaluated at all
 * points of its box, so the term's value must be safe there.
 */
#include "autodiff/internal.h"

/* Shorter sums are not worth the way through T; nor is a T of many times what is there anyway. */
enum { LEAST_POINTS = 32, MOST_GROWTH = 4, LEAST_BYTES = 4 };

static void see_unsafe(void *user, Node *n)
{
	*(bool *)user |= n->op == OP_READ && !read_stays(n);
}

static int dimensions_with(const Term *t, Node *axis)
{
	int n = 0;
	for (int d = 0; d < tensor_rank(t->read->src[0]); d++)
		n += node_has(t->read->src[1 + d], axis);
	return n;
}

static bool is_reduced(const Node *c, Node *axis)
{
	for (int d = 0; d < tensor_rank(c); d++)
		if (node_has(c->src[comp_naxis(c) + d], axis))
			return false;
	return true;
}

/* The equation's axes that stand in dimension d of the read. Returns how many. */
static int axes_of(const Term *t, int d, Node **axes)
{
	int n = 0;
	for (int k = 0; k < comp_naxis(t->comp); k++)
		if (node_has(t->read->src[1 + d], comp_axis(t->comp, k)))
			axes[n++] = comp_axis(t->comp, k);
	return n;
}

/* The axes that stand in the read, in the order of its dimensions, but taps (reduced axes that
 * share a dimension) before the first dimension of several axes: what the others run over lies
 * together. Returns how many; 0 when an axis is in several dimensions. */
static int window_axes(const Term *t, Node **keep)
{
	int rank = tensor_rank(t->read->src[0]), n = 0, windows = 0;
	int next_tap = 0; /* where the next one goes */
	Node *axes[COMP_MAX_AXES];
	for (int k = 0; k < comp_naxis(t->comp); k++)
		if (dimensions_with(t, comp_axis(t->comp, k)) > 1)
			return 0;
	for (int d = 0; d < rank; d++) {
		int count = axes_of(t, d, axes);
		windows += count > 1;
		for (int k = 0; k < count; k++) {
			bool tap = count > 1 && is_reduced(t->comp, axes[k]);
			int at = tap ? next_tap : n;
			for (int j = n++; j > at; j--)
				keep[j] = keep[j - 1];
			keep[at] = axes[k];
			next_tap = tap || !windows ? at + 1 : next_tap;
		}
	}
	return n;
}

bool term_window(Ir *ir, const Term *t, Term *own)
{
	Node *keep[COMP_MAX_AXES], *tensor = t->read->src[0];
	int nkeep = window_axes(t, keep);
	double points = 1, size = 1;
	bool unsafe = false;
	if (nkeep == 0 || nkeep > RICCI_MAX_RANK || type_size((Type)t->value->type) < LEAST_BYTES)
		return false;
	for (int k = 0; k < comp_naxis(t->comp); k++) {
		Node *axis = comp_axis(t->comp, k);
		bool kept = dimensions_with(t, axis) > 0;
		if (!kept && t->guard && node_has(t->guard, axis))
			return false;
		*(kept ? &size : &points) *= (double)axis_extent(axis);
	}
	node_walk(ir, t->value, see_unsafe, &unsafe);
	if (unsafe || points < LEAST_POINTS ||
	    size > MOST_GROWTH * ((double)tensor_size(tensor) + (double)tensor_size(t->comp)))
		return false;
	*own = term_over(ir, t, NULL, nkeep, keep);
	return true;
}

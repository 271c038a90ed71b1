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
enum { LEAST_POINTS = 32, MOST_GROWTH = 4 };

/* The axes that stand in the read, in the order of its dimensions, but taps (reduced axes that
 * share a dimension) before the first dimension of several axes: what the others run over lies
 * together. Returns how many; 0 when an axis is in several dimensions. */
static int window_axes(Ir *ir, const Term *t, Node **keep)
{
	int rank = tensor_rank(t->read->src[0]), n = 0, windows = 0;
	int next_tap = 0; /* where the next one goes */
	uint64_t seen = 0, left = 0;
	for (int d = 0; d < tensor_rank(t->comp); d++)
		left |= axes_in(ir, comp_lhs(t->comp, d));
	for (int d = 0; d < rank; d++) {
		uint64_t mine = axes_in(ir, t->read->src[1 + d]);
		bool several = mine & (mine - 1);
		if (mine & seen)
			return 0;
		seen |= mine;
		windows += several;
		for (int k = 0; k < comp_naxis(t->comp); k++) {
			bool tap = several && !(left >> k & 1);
			int at = tap ? next_tap : n;
			if (!(mine >> k & 1))
				continue;
			for (int j = n++; j > at; j--)
				keep[j] = keep[j - 1];
			keep[at] = comp_axis(t->comp, k);
			next_tap = tap || !windows ? at + 1 : next_tap;
		}
	}
	return n;
}

bool term_window(Ir *ir, const Term *t, Term *own)
{
	Node *keep[COMP_MAX_AXES];
	int nkeep = window_axes(ir, t, keep);
	uint64_t kept = axes_mask(nkeep, keep);
	double size = axes_points(nkeep, keep, kept), points = comp_points(t->comp) / size;
	if (nkeep == 0 || nkeep > RICCI_MAX_RANK || !bears_rounding(t->value) ||
	    (axes_in(ir, t->guard) & ~kept))
		return false;
	double room = (double)tensor_size(t->read->src[0]) + (double)tensor_size(t->comp);
	if (node_any(ir, t->value, node_reads_outside) || points < LEAST_POINTS ||
	    size > MOST_GROWTH * room)
		return false;
	*own = term_over(ir, t, NULL, nkeep, keep);
	return true;
}

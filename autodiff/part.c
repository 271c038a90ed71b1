/* part.c - parts of an equation's body that are better equations of their own.
 *
 * Where the forms that a part depends on (form.c) have fewer points than the equation, the part's adjoint is better summed
 * over the others first, and what is below differentiated over the forms: in O[i,d] += e[i,j]/s[i] * V[j,d] the quotient's
 * adjoint is a sum over d, and those of e and s don't meet d again; in Y[k,p] += max(g[c]*X[c,p+r], 0) * W[k,c,r] that of
 * the maximum is one tensor over c and p+r, for g and for X.
 *
 * Input: a part of a body and its adjoint. Output: the part as an equation over its forms, with its gradient. Invariant:
 * the part is evaluated only at values that the body has, combined anew. */
#include "autodiff/internal.h"

/* The largest tensor that e reads. */
static void see_largest(void *user, Node *n)
{
	Node **largest = user;
	if (n->op == OP_READ &&
	    (!*largest || tensor_size(n->src[0]) > tensor_size((*largest)->src[0])))
		*largest = n;
}

/* The part's forms in the order of the dimensions of the largest tensor. */
static const Forms *part_forms(Tape *tape, Node *part)
{
	Node *largest = NULL;
	node_walk(tape->ir, part, see_largest, &largest);
	const Forms *own = forms_of(tape, part);
	return largest ? forms_join(tape->ir, forms_of(tape, largest), own) : own;
}

/* The equation of the part where each form is low[] + its axis, for size[] values of this. Of a form's axes one moves, and
 * the others are 0. */
static Node *part_equation(Ir *ir, const Forms *f, Node *part, const int64_t *low,
			   const int64_t *size)
{
	Node *z[RICCI_MAX_RANK], *from[COMP_MAX_AXES], *to[COMP_MAX_AXES];
	int n = node_axes(ir, 1, &part, from);
	for (int k = 0; k < n; k++)
		to[k] = node_int(ir, 0);
	for (int d = 0; d < f->n; d++) {
		z[d] = node_axis(ir, d, size[d]);
		for (int k = 0; k < n; k++)
			if (from[k] == f->at[d].axis)
				to[k] = node_scale(ir, node_add(ir, z[d], node_int(ir, low[d])),
						   f->at[d].sign);
	}
	return comp_dense(ir, RED_NONE, f->n, f->n, z, node_replace(ir, part, n, from, to));
}

/* Leaves out the ends of the forms' ranges where no wanted tensor's gradient has a part of them. */
static bool part_narrow(Tape *tape, Node *own, int64_t *low, int64_t *size)
{
	Ir *ir = tape->ir;
	Term *terms;
	bool less = false;
	int rank = tensor_rank(own),
	    n = derive_body(tape, own, comp_body(own), node_const(ir, own->type, 1), &terms);
	for (int d = 0; d < rank; d++) {
		int64_t first = size[d], last = -1;
		for (int k = 0; k < n; k++) {
			int64_t lo = 0, hi = size[d] - 1;
			Polyhedron *p = poly_new(ir);
			if (terms[k].guard)
				poly_assume(p, terms[k].guard);
			poly_bounds(p, node_axis(ir, d, size[d]), &lo, &hi);
			first = lo < first ? lo : first;
			last = hi > last ? hi : last;
		}
		if (last < first || (first == 0 && last == size[d] - 1))
			continue;
		less = true;
		low[d] += first;
		size[d] = last - first + 1;
	}
	return less;
}

/* t as a term of the equation *own of its part: it reads that. */
static Term part_term(Tape *tape, const Term *t, const Forms *f, Node **own)
{
	Ir *ir = tape->ir;
	Node *part = value_where(ir, t->guard, t->read), *index[RICCI_MAX_RANK];
	int64_t low[RICCI_MAX_RANK], size[RICCI_MAX_RANK];
	for (int d = 0; d < f->n; d++) {
		low[d] = f->at[d].sum->lo;
		size[d] = f->at[d].sum->hi - low[d] + 1;
	}
	Term term = *t;
	*own = part_equation(ir, f, part, low, size);
	if (part_narrow(tape, *own, low, size)) {
		*own = part_equation(ir, f, part, low, size);
		for (int d = 0; d < f->n; d++) {
			Node *at = f->at[d].sum, *end = node_int(ir, low[d] + size[d]);
			term.guard = node_and(ir, term.guard,
					      node2(ir, OP_LE, node_int(ir, low[d]), at));
			term.guard = node_and(ir, term.guard, node2(ir, OP_LT, at, end));
		}
		term.guard = node_is_value(term.guard, 1) ? NULL : term.guard;
	}
	for (int d = 0; d < f->n; d++)
		index[d] = node_sub(ir, f->at[d].sum, node_int(ir, low[d]));
	term.read = node_read(ir, *own, index);
	return term;
}

/* Where the forms are the part's axes, the adjoint is a plain sum over the others. */
Node *part_adjoint(Tape *tape, const Term *t, Node **own)
{
	Ir *ir = tape->ir;
	Node *part = value_where(ir, t->guard, t->read), *axes[COMP_MAX_AXES];
	const Forms *f = part_forms(tape, part);
	int n = node_axes(ir, 1, &part, axes); /* those of one value are no forms */
	if (forms_have_windows(f) || n > f->n) {
		Term term = part_term(tape, t, f, own);
		Node *dy = term_gradient(tape, &term);
		return dy ? tensor_read(ir, dy, (*own)->src) : NULL;
	}
	for (int k = 0; k < n; k++)
		axes[k] = f->at[k].axis;
	Term over = term_over(ir, t, t->guard, n, axes);
	*own = over.comp;
	return over.value;
}

/* equation.c - the gradient of one equation with respect to each of its reads, as equations.
 *
 * Y[lhs(v)] op= body(v). First the adjoint of the body at each v (seed.c; running.c); then the terms
 * of the reads (derive.c), each of which becomes an equation of its own (phase.c).
 * Invariant: a result is a tensor of A's type and shape, and reads stay inside their tensors
 * wherever the conditions of the SELECTs around them hold.
 */
#include "autodiff/internal.h"

/* ---- its terms */

typedef struct Terms {
	Tape *tape;
	int n, room;
	Term *at;
} Terms;

static void terms_put(Terms *all, Term t)
{
	all->at = arena_grow(&all->tape->ir->arena, all->at, all->n, &all->room, sizeof t);
	all->at[all->n++] = t;
}

static void terms_of(Terms *all, Node *c, Node *root, Node *seed);

/* A part of the body as an equation of its own. */
static void terms_of_part(Terms *all, const Term *t)
{
	Node *own, *adjoint = part_adjoint(all->tape, t, &own);
	if (adjoint)
		terms_of(all, own, comp_body(own), adjoint);
}

/* Does the term take c's domain as it is, so that its gradient is its value? */
static bool is_plain(const Term *t)
{
	const Node *tensor = t->read->src[0];
	bool plain = t->read->op == OP_READ && !t->guard && t->value->nsrc &&
		     t->value->op != OP_READ && tensor_rank(tensor) == comp_naxis(t->comp);
	for (int d = 0; plain && d < tensor_rank(tensor); d++)
		plain = t->read->src[1 + d] == comp_axis(t->comp, d) &&
			axis_extent(comp_axis(t->comp, d)) == tensor_extent(tensor, d);
	return plain;
}

/* Where one read's gradient is the value that other reads' gradients sum, they sum that tensor. */
static void terms_share(Ir *ir, int n, Term *terms)
{
	for (int k = 0; k < n; k++) {
		Node *c = terms[k].comp, *value = terms[k].value;
		if (!is_plain(&terms[k]))
			continue;
		Node *t = comp_dense(ir, RED_NONE, comp_naxis(c), comp_naxis(c), c->src, value);
		for (int j = 0; j < n; j++)
			if (terms[j].value == value && !terms[j].guard && !is_plain(&terms[j]))
				terms[j].value = node_read(ir, t, c->src);
	}
}

static void terms_of(Terms *all, Node *c, Node *root, Node *seed)
{
	Term *terms;
	int n = derive_body(all->tape, c, root, seed, &terms);
	terms_share(all->tape->ir, n, terms);
	for (int k = 0; k < n; k++)
		if (terms[k].read->op == OP_READ)
			terms_put(all, terms[k]);
		else
			terms_of_part(all, &terms[k]);
}

/* Of c where it is scale * sum, with the adjoint dy. */
static void terms_of_scaled(Terms *all, Node *c, Node *dy, Node *sum, Node *scale)
{
	Ir *ir = all->tape->ir;
	int rank = tensor_rank(c);
	Node *at[RICCI_MAX_RANK];
	tensor_axes(ir, c, at);
	dy = tensor_read(ir, dy, at);
	Node *dsum = comp_dense(ir, RED_NONE, rank, rank, at, node_mul(ir, dy, scale));
	Node *own = comp_dense(ir, RED_NONE, rank, rank, at, scale);
	terms_of(all, own, comp_body(own), node_mul(ir, dy, node_read(ir, sum, at)));
	terms_of(all, sum, comp_body(sum), equation_seed(ir, sum, dsum));
}

int equation_terms(Tape *tape, Node *c, Node *dy, Term **terms)
{
	Terms all = {.tape = tape};
	Node *sum, *scale;
	bool runs = running_gradient(tape, &c, &dy);
	Node *root = runs ? comp_body(c) : equation_root(tape->ir, c);
	if (dy && sum_unscaled(tape, c, &sum, &scale))
		terms_of_scaled(&all, c, dy, sum, scale);
	else if (dy)
		terms_of(&all, c, root, equation_seed(tape->ir, c, dy));
	*terms = all.at;
	return terms_split(tape->ir, all.n, terms);
}

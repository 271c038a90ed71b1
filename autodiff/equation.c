/* equation.c - the gradient of one equation with respect to each of its reads, as equations.
 *
 * Y[lhs(v)] op= body(v). First the adjoint of the body at each v, which depends on op=; then the
 * terms of the reads (derive.c), each of which becomes an equation of its own (phase.c):
 *	=, +=        dY[lhs(v)]
 *	max=, min=   dY/N at lhs(v) where body(v) is Y[lhs(v)], with N ties: equal shares
 *	*=           dY * the product of the other factors (product.c; running.c)
 * Invariant: a result is a tensor of A's type and shape, and reads stay inside their tensors
 * wherever the conditions of the SELECTs around them hold.
 */
#include "autodiff/internal.h"

/* ---- the adjoint of the body */

static void count_roundings(void *user, Node *n)
{
	static const Op exact[] = {OP_CONST, OP_READ, OP_SELECT, OP_NEG,  OP_ABS,   OP_MIN,
				   OP_MAX,   OP_SIGN, OP_FLOOR,	 OP_CEIL, OP_ROUND, OP_STOP};
	static const Op rounded[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_SQRT, OP_CAST};
	if (!type_is_float(n->type) || node_is_tensor(n))
		return;
	for (int k = 0; k < COUNT(exact); k++)
		if (n->op == exact[k])
			return;
	int cost = 2;
	for (int k = 0; k < COUNT(rounded); k++)
		if (n->op == rounded[k])
			cost = 1;
	*(int *)user += cost;
}

/* Does the body have the same bits wherever it is computed again? Contracted products and functions
 * of different libraries do not; a single operation does, unless it is rounded to 16 bits on the
 * way. */
static bool reproducible(Ir *ir, Node *body)
{
	int roundings = 0;
	node_walk(ir, body, count_roundings, &roundings);
	return roundings <= (type_size(body->type) >= 4);
}

Node *extremum_hit(Ir *ir, Reduce red, Node *e, Node *y)
{
	bool max = red == RED_MAX;
	return node_not(ir, node2(ir, OP_LT, max ? e : y, max ? y : e));
}

Node *extremum_ties(Ir *ir, Node *c, Node **hit)
{
	Type acc = type_accumulator((Type)c->type);
	Node *body = comp_body(c), *y = c;
	int naxis = comp_naxis(c);
	if (naxis <= RICCI_MAX_RANK && !reproducible(ir, body)) {
		/* compare stored values, and their extremum: fusion keeps what is compared so */
		Node *stored = comp_dense(ir, RED_NONE, naxis, naxis, c->src, body);
		body = node_read(ir, stored, c->src);
		y = comp_with(ir, c, comp_reduce(c), body);
	}
	*hit = extremum_hit(ir, comp_reduce(c), body, node_read(ir, y, c->src + naxis));
	Node *one = node_select(ir, *hit, node_const(ir, acc, 1), node_const(ir, acc, 0));
	return comp_with(ir, c, RED_ADD, one);
}

/* dY / N at lhs(v) where body(v) is the extremum. */
static Node *seed_extremum(Ir *ir, Node *c, Node *dy)
{
	Type type = (Type)c->type, acc = type_accumulator(type);
	Node *axes[RICCI_MAX_RANK], *hit, *ties = extremum_ties(ir, c, &hit);
	int rank = tensor_rank(c);
	tensor_axes(ir, c, axes);
	Node *share = node2(ir, OP_DIV, node_cast(ir, acc, tensor_read(ir, dy, axes)),
			    node_read(ir, ties, axes));
	share = comp_dense(ir, RED_NONE, rank, rank, axes, node_cast(ir, type, share));
	share = node_read(ir, share, c->src + comp_naxis(c));
	return node_select(ir, hit, share, node_const(ir, type, 0));
}

Node *equation_seed(Ir *ir, Node *c, Node *dy)
{
	Node *value = tensor_read(ir, dy, c->src + comp_naxis(c));
	switch (comp_reduce(c)) {
	case RED_MAX:
	case RED_MIN:
		return seed_extremum(ir, c, dy);
	case RED_MUL:
		return node_mul(ir, value, product_others(ir, c));
	default:
		return value;
	}
}

Node *equation_root(Ir *ir, Node *c)
{
	return comp_reduce(c) == RED_NONE ? node_read(ir, c, c->src + comp_naxis(c)) : comp_body(c);
}

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

typedef struct Seen {
	int n;
	Node *axes[COMP_MAX_AXES];
} Seen;

static void see_axis(void *user, Node *n)
{
	Seen *s = user;
	if (n->op == OP_AXIS)
		s->axes[s->n++] = n;
}

Term term_over(Ir *ir, const Term *t, Node *cond, int nkeep, Node *const *keep)
{
	Node *part = value_where(ir, t->guard, t->read);
	Frame f = {.rank = nkeep, .nkeep = nkeep, .cond = cond};
	Term own = {NULL};
	for (int k = 0; k < comp_naxis(t->comp); k++)
		if (!node_has(part, comp_axis(t->comp, k)))
			f.sum[f.nsum++] = comp_axis(t->comp, k);
	for (int k = 0; k < nkeep; k++) {
		f.keep[k] = f.lhs[k] = keep[k];
		f.shape[k] = axis_extent(keep[k]);
		f.place[k] = node_axis(ir, k, f.shape[k]);
	}
	own.comp = comp_dense(ir, RED_NONE, nkeep, nkeep, keep, part);
	own.read = node_replace(ir, t->read, nkeep, keep, own.comp->src);
	own.guard = t->guard ? node_replace(ir, t->guard, nkeep, keep, own.comp->src) : NULL;
	own.value = tensor_read(ir, sum_make(ir, &f, t->value), own.comp->src);
	return own;
}

/* A part of c's body as an equation over the part's own axes, in the order of its tensors. */
static void terms_of_part(Terms *all, const Term *t)
{
	Ir *ir = all->tape->ir;
	Seen keep = {0};
	node_walk(ir, value_where(ir, t->guard, t->read), see_axis, &keep);
	Term own = term_over(ir, t, t->guard, keep.n, keep.axes);
	terms_of(all, own.comp, comp_body(own.comp), own.value);
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

int equation_terms(Tape *tape, Node *c, Node *dy, Term **terms)
{
	Terms all = {.tape = tape};
	bool runs = running_gradient(tape, &c, &dy);
	Node *root = runs ? comp_body(c) : equation_root(tape->ir, c);
	if (dy)
		terms_of(&all, c, root, equation_seed(tape->ir, c, dy));
	*terms = all.at;
	return terms_split(tape->ir, all.n, terms);
}

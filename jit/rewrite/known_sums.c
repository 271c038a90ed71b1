/* known_sums.c - sums whose values follow from sums that they read.
 *
 * In: an equation `Y[i] += A[i,j]*E[i,j]/Z[i] - U[i]/Z[i]/Z[i]*E[i,j]` where `Z[i] += E[i,j]` and `U[i] += A[i,j]*E[i,j]`
 * over the same points. Out: `Y[i] = U[i]/Z[i] - U[i]/Z[i]`, which is 0: what a softmax's maximum, and what is
 * subtracted from all that a softmax or a normalisation reads, has for a gradient. A pass over all elements each, of
 * which only rounding would be left.
 * The body is multiplied out; so are the pointwise equations that it reads. Of each term the factors that differ
 * between the points of the sum have to be those of a sum that another factor reads, or there are none.
 * Invariants: rounding aside, both are equal where no divisor is 0; what is left is one product at most, so that nothing
 * cancels that didn't before. */
#include "jit/rewrite/products.h"

#include <math.h>
#include <string.h>

/* Limits of what is looked at: factors of a term, terms, nodes, and how deep these are. */
enum { FACTORS = 12, TERMS = 8, NODES = 64, DEPTH = 16 };
/* Coefficients are equal that are as close to each other as 1/n in f32 is to 1/n. */
#define SAME_CONSTANT 1e-6

typedef struct Term { /* k * factor[0]^power[0] * .. */
	double k;
	int n, power[FACTORS];
	Node *factor[FACTORS];
} Term;

typedef struct Sum {
	int n;
	Term term[TERMS];
} Sum;

typedef struct Expansion {
	Ir *ir;
	const Node *c;
	int left, depth; /* nodes that may still be looked at; those around the one that is */
	bool known; /* has a sum that is read stood for its terms, or met itself as a divisor? */
} Expansion;

static bool reads_sum(const Node *e)
{
	return e->op == OP_READ && e->src[0]->op == OP_COMP && comp_reduce(e->src[0]) == RED_ADD;
}

static int term_find(const Term *t, const Node *factor)
{
	int k = 0;
	while (k < t->n && t->factor[k] != factor)
		k++;
	return k;
}

static bool is_choice(const Node *e)
{
	return e->op == OP_SELECT && node_is_value(e->src[2], 0);
}

/* Choices of 1 and 0 are factors; their squares are themselves, and nothing is divided by them. */
static bool term_multiply(Expansion *x, Term *t, Node *factor, int power)
{
	int k = term_find(t, factor);
	if (k == FACTORS || (is_choice(factor) && power < 0))
		return false;
	if (is_choice(factor) && k < t->n)
		return true;
	t->power[k] = (k < t->n ? t->power[k] : 0) + power;
	t->factor[k] = factor;
	t->n += k == t->n;
	if (!t->power[k]) {
		x->known |= reads_sum(factor);
		t->n--;
		t->factor[k] = t->factor[t->n];
		t->power[k] = t->power[t->n];
	}
	return true;
}

/* The factor alone; the other terms are nobody's, and stay as they are. */
static void sum_of(Sum *s, Node *factor)
{
	s->n = 1;
	s->term[0] = (Term){1, 1, {1}, {factor}};
}

static bool term_times(Expansion *x, Term *t, const Term *by, int power)
{
	t->k *= power < 0 ? 1 / by->k : by->k;
	for (int k = 0; k < by->n; k++)
		if (!term_multiply(x, t, by->factor[k], by->power[k] * power))
			return false;
	return true;
}

/* Adds k times the terms of b to a. */
static bool sum_add(Sum *a, const Sum *b, double k)
{
	if (a->n + b->n > TERMS)
		return false;
	for (int i = 0; i < b->n; i++) {
		a->term[a->n] = b->term[i];
		a->term[a->n++].k *= k;
	}
	return true;
}

static bool sum_times(Expansion *x, Sum *a, const Sum *b, int power)
{
	Sum was = *a;
	a->n = 0;
	if (was.n * b->n > TERMS)
		return false;
	for (int i = 0; i < was.n; i++)
		for (int k = 0; k < b->n; k++) {
			a->term[a->n] = was.term[i];
			if (!term_times(x, &a->term[a->n++], &b->term[k], power))
				return false;
		}
	return true;
}

/* The body of the equation that e reads, at whole axes only: in place of e's axes[]; NULL: e reads none. */
static Node *read_body(Ir *ir, const Node *e, Reduce red, int naxis, Node *const *axis)
{
	const Node *t = e->op == OP_READ ? e->src[0] : NULL;
	Node *from[COMP_MAX_AXES];
	if (!t || t->op != OP_COMP || comp_reduce(t) != red || !comp_is_dense(t) ||
	    comp_naxis(t) != naxis || node_any(ir, comp_body(t), node_draws))
		return NULL;
	for (int k = 0; k < naxis; k++) {
		from[k] = comp_axis(t, k);
		if (axis[k]->op != OP_AXIS || axis_extent(axis[k]) != axis_extent(from[k]))
			return NULL;
	}
	return node_replace(ir, comp_body(t), naxis, from, axis);
}

static bool is_arithmetic(const Node *e)
{
	return e->op == OP_ADD || e->op == OP_SUB || e->op == OP_MUL || e->op == OP_DIV ||
	       e->op == OP_NEG;
}

static bool is_multiplied_out(const Node *e)
{
	return is_arithmetic(e) || is_choice(e) || e->op == OP_READ || e->op == OP_CONST;
}

static bool expand(Expansion *x, Node *e, Sum *s);

static bool expand_both(Expansion *x, Node *e, Sum *s)
{
	Sum b;
	if (!expand(x, e->src[0], s) || !expand(x, e->src[1], &b))
		return false;
	if (e->op == OP_ADD || e->op == OP_SUB)
		return sum_add(s, &b, e->op == OP_ADD ? 1 : -1);
	if (e->op == OP_MUL)
		return sum_times(x, s, &b, 1);
	if (b.n != 1) /* is a divisor as a whole */
		sum_of(&b, e->src[1]);
	return b.term[0].k != 0 && sum_times(x, s, &b, -1);
}

/* `cond ? v : 0` is v times `cond ? 1 : 0`. */
static bool expand_choice(Expansion *x, Node *e, Sum *s)
{
	Type type = (Type)e->type;
	Node *one = node_const(x->ir, type, 1), *zero = node_const(x->ir, type, 0);
	Sum by;
	sum_of(&by, node_select(x->ir, e->src[0], one, zero));
	return expand(x, e->src[1], s) && sum_times(x, s, &by, 1);
}

static bool expand_minus(Expansion *x, Node *e, Sum *s)
{
	bool done = expand(x, e->src[0], s);
	for (int k = 0; k < s->n; k++)
		s->term[k].k *= -1;
	return done;
}

static bool expand_read(Expansion *x, Node *e, Sum *s)
{
	Node *body = read_body(x->ir, e, RED_NONE, e->nsrc - 1, e->src + 1);
	return !body || !is_multiplied_out(body) || expand(x, body, s);
}

static bool expand_node(Expansion *x, Node *e, Sum *s)
{
	if (e->op == OP_NEG)
		return expand_minus(x, e, s);
	if (is_arithmetic(e))
		return expand_both(x, e, s);
	if (e->op == OP_READ)
		return expand_read(x, e, s);
	if (e->op == OP_CONST && isfinite(e->u.f))
		s->term[0] = (Term){.k = e->u.f};
	return !is_choice(e) || node_is_value(e->src[1], 1) || expand_choice(x, e, s);
}

/* e as a sum of products; false: it is too long, or too deep. */
static bool expand(Expansion *x, Node *e, Sum *s)
{
	sum_of(s, e);
	if (x->left-- <= 0 || x->depth == DEPTH)
		return false;
	x->depth++;
	bool done = expand_node(x, e, s);
	x->depth--;
	return done;
}

/* Takes those factors from t that have any of the axes: they are *inside then. */
static void term_part(const Node *c, Term *t, uint32_t axes, Term *inside)
{
	Term outside = {.k = t->k};
	*inside = (Term){.k = 1};
	for (int k = 0; k < t->n; k++) {
		Term *to = product_axes(c, t->factor[k]) & axes ? inside : &outside;
		to->factor[to->n] = t->factor[k];
		to->power[to->n++] = t->power[k];
	}
	*t = outside;
}

static bool same_factors(const Term *a, const Term *b)
{
	int n = 0;
	while (n < a->n) {
		int k = term_find(b, a->factor[n]);
		if (k == b->n || b->power[k] != a->power[n])
			break;
		n++;
	}
	return n == a->n && n == b->n;
}

/* Is what `read` reads the sum of such products, over what c reduces? *by: divided by that. */
static bool sums_inside(Expansion *x, Node *read, const Term *inside, Term *by)
{
	Node *axis[COMP_MAX_AXES];
	Sum all;
	Term own;
	int rank = tensor_rank(x->c), given = read->nsrc - 1, n = given;
	if (read->op != OP_READ || read->type != x->c->type ||
	    given + comp_naxis(x->c) - rank > COMP_MAX_AXES)
		return false;
	memcpy(axis, read->src + 1, (size_t)given * sizeof *axis);
	for (int k = rank; k < comp_naxis(x->c); k++)
		axis[n++] = comp_axis(x->c, k);
	Node *body = read_body(x->ir, read, RED_ADD, n, axis);
	if (!body || !expand(x, body, &all) || all.n != 1 || !all.term[0].k)
		return false;
	*by = all.term[0];
	term_part(x->c, by, ~product_left(x->c), &own);
	return same_factors(&own, inside);
}

/* The sum of such products, by which *outside is multiplied. */
static bool inside_known(Expansion *x, const Sum *all, const Term *inside, Term *outside)
{
	if (!inside->n) {
		outside->k *= comp_points(x->c) / (double)tensor_size(x->c);
		return true;
	}
	for (int i = 0; i < all->n; i++)
		for (int k = 0; k < all->term[i].n; k++) {
			Node *read = all->term[i].factor[k];
			Term by;
			if (product_axes(x->c, read) & ~product_left(x->c) ||
			    !sums_inside(x, read, inside, &by))
				continue;
			x->known = true;
			return term_times(x, outside, &by, -1) &&
			       term_multiply(x, outside, read, 1);
		}
	return false;
}

static double added(double a, double b)
{
	double sum = a + b;
	return fabs(sum) <= SAME_CONSTANT * fabs(a) ? 0 : sum;
}

/* Terms of the same factors become one; those that cancel go. */
static void sum_collect(Sum *s)
{
	for (int i = 0; i < s->n; i++)
		for (int k = s->n - 1; k > i; k--)
			if (same_factors(&s->term[i], &s->term[k])) {
				s->term[i].k = added(s->term[i].k, s->term[k].k);
				s->term[k] = s->term[--s->n];
			}
	for (int i = s->n - 1; i >= 0; i--)
		if (s->term[i].k == 0)
			s->term[i] = s->term[--s->n];
}

static Node *term_node(Ir *ir, Type type, const Term *t)
{
	Node *e = node_const(ir, type, t->k);
	for (int sign = 1; sign >= -1; sign -= 2)
		for (int k = 0; k < t->n; k++)
			for (int n = t->power[k] * sign; n > 0; n--)
				e = node2(ir, sign > 0 ? OP_MUL : OP_DIV, e, t->factor[k]);
	return e;
}

/* The body of c where its sum is known; NULL: it isn't. */
static Node *known_body(Ir *ir, const Node *c)
{
	Expansion x = {ir, c, NODES, 0, false};
	Sum all, known;
	if (!expand(&x, comp_body(c), &all))
		return NULL;
	known.n = 0;
	for (int i = 0; i < all.n; i++) {
		Term *t = &known.term[known.n++], inside;
		*t = all.term[i];
		term_part(c, t, ~product_left(c), &inside);
		if (!inside_known(&x, &all, &inside, t))
			return NULL;
	}
	sum_collect(&known);
	if (!x.known || known.n > 1)
		return NULL;
	if (!known.n)
		return node_const(ir, (Type)c->type, 0);
	Node *body = term_node(ir, (Type)c->type, &known.term[0]);
	return reads_lie_inside(ir, body) ? body : NULL; /* without its condition */
}

Node *known_sum(Ir *ir, Node *c)
{
	Type type = (Type)c->type;
	int rank = tensor_rank(c);
	bool sum = comp_reduce(c) == RED_ADD ||
		   (comp_reduce(c) == RED_NONE && is_arithmetic(comp_body(c)));
	if (!sum || !type_is_float(type) || type_accumulator(type) != type || !comp_is_dense(c))
		return c;
	Node *body = known_body(ir, c);
	return body ? comp_dense(ir, RED_NONE, rank, rank, c->src, body) : c;
}

/* part.c - parts of an equation's body that are better equations of their own.
 *
 * What a part depends on are index forms: axes, or sums of axes of which the part knows no more than the sum, as the p+r
 * of a window. Where these have fewer points than the equation, the part's adjoint is better summed over the others
 * first, and what is below differentiated over the forms: in O[i,d] += e[i,j]/s[i] * V[j,d] the quotient's adjoint is a
 * sum over d, and those of e and s don't meet d again; in Y[k,p] += max(g[c]*X[c,p+r], 0) * W[k,c,r] that of the maximum
 * is one tensor over c and p+r, for g and for X.
 *
 * Input: a body, or a part of it and its adjoint. Output: the body with factors of the same forms side by side; the part
 * as an equation over its forms, with its gradient. Invariant: no two forms have an axis in common, and each takes all
 * values of its range, so the part is evaluated only at values that the body has, combined anew.
 */
#include "autodiff/internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- index forms */

typedef struct Form {
	Node *sum;     /* without a constant, its first coefficient positive */
	Node *axis;    /* whose coefficient is 1 or -1 */
	int64_t sign;  /* this */
	uint64_t axes; /* all of them, by number */
} Form;

struct Forms {
	int n;
	Form at[COMP_MAX_AXES];
};

static const Forms no_forms;

static int by_size(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Does the form, whose coefficients are k[], take each value between its least and its greatest? */
static bool has_no_holes(const Affine *a)
{
	int64_t order[COMP_MAX_AXES][2], reach = 0; /* coefficient's size, last value of its axis */
	for (int k = 0; k < a->n; k++) {
		order[k][0] = a->k[k] < 0 ? -a->k[k] : a->k[k];
		order[k][1] = a->atom[k]->hi;
	}
	qsort(order, (size_t)a->n, sizeof *order, by_size);
	for (int k = 0; k < a->n; k++) {
		int64_t more;
		if (order[k][0] > reach + 1 ||
		    __builtin_mul_overflow(order[k][0], order[k][1], &more) ||
		    __builtin_add_overflow(reach, more, &reach))
			return false;
	}
	return true;
}

/* Puts the form; axes that it shares with another one are forms alone. */
static void forms_put(Ir *ir, Forms *f, Form x)
{
	Node *alone[2 * COMP_MAX_AXES];
	uint64_t apart = 0;
	int n = 0, nalone = 0;
	for (int k = 0; k < f->n; k++)
		if (f->at[k].sum == x.sum)
			return;
	for (int k = 0; k < f->n; k++)
		if (f->at[k].axes & x.axes) {
			apart |= f->at[k].axes;
			nalone += node_axes(ir, 1, &f->at[k].sum, alone + nalone);
		} else {
			f->at[n++] = f->at[k];
		}
	f->n = n;
	if (!apart && x.axis) {
		f->at[f->n++] = x;
		return;
	}
	nalone += node_axes(ir, 1, &x.sum, alone + nalone);
	for (int k = 0; k < nalone; k++)
		forms_put(ir, f, (Form){alone[k], alone[k], 1, axes_mask(1, &alone[k])});
}

/* The sum of axes in a, over the greatest divisor of their coefficients. */
static void forms_put_sum(Ir *ir, Forms *f, Affine a)
{
	int n = 0, first = 0;
	int64_t divisor = 0;
	bool fits = true; /* may coefficients change their signs? */
	for (int k = 0; k < a.n; k++)
		if (a.atom[k]->op == OP_AXIS) {
			first = n && a.atom[k]->u.i < a.atom[first]->u.i ? n : first;
			fits &= a.k[k] != INT64_MIN;
			divisor = fits ? int_gcd(divisor, a.k[k]) : 1;
			a.atom[n] = a.atom[k];
			a.k[n++] = a.k[k];
		}
	if (!n)
		return;
	a.n = n;
	a.c = 0;
	Form x = {.axes = axes_mask(n, a.atom)};
	divisor = a.k[first] < 0 ? -divisor : divisor;
	for (int k = 0; k < n && fits; k++) {
		a.k[k] /= divisor;
		if (a.k[k] == 1 || a.k[k] == -1) {
			x.axis = a.atom[k];
			x.sign = a.k[k];
		}
	}
	x.sum = affine_node(ir, &a);
	x.axis = fits && has_no_holes(&a) ? x.axis : NULL;
	forms_put(ir, f, x);
}

/* Are all of f's among those of g? */
static bool forms_within(const Forms *f, const Forms *g)
{
	for (int k = 0; k < f->n; k++) {
		int j = 0;
		while (j < g->n && g->at[j].sum != f->at[k].sum)
			j++;
		if (j == g->n)
			return false;
	}
	return true;
}

static const Forms *forms_keep(Ir *ir, const Forms *f)
{
	size_t size = offsetof(Forms, at) + sizeof *f->at * (size_t)f->n;
	return memcpy(arena_alloc(&ir->arena, size), f, size);
}

const Forms *forms_join(Ir *ir, const Forms *f, const Forms *g)
{
	Forms both = {0};
	if (forms_within(g, f))
		return f;
	if (f->n == 0)
		return g;
	for (int k = 0; k < f->n; k++)
		both.at[both.n++] = f->at[k];
	for (int k = 0; k < g->n; k++)
		forms_put(ir, &both, g->at[k]);
	return forms_keep(ir, &both);
}

/* Those of an affine index or of a comparison of such, whose slack is a. */
static const Forms *forms_affine(Tape *tape, const Affine *a)
{
	Ir *ir = tape->ir;
	Forms sum = {0};
	const Forms *f = &no_forms;
	for (int k = 0; k < a->n; k++)
		if (a->atom[k]->op != OP_AXIS)
			f = forms_join(ir, f, forms_of(tape, a->atom[k]));
	forms_put_sum(ir, &sum, *a);
	return sum.n ? forms_join(ir, f, forms_keep(ir, &sum)) : f;
}

const Forms *forms_of(Tape *tape, Node *e)
{
	Ir *ir = tape->ir;
	const Forms *f = node_is_tensor(e) ? &no_forms : node_map_get(&tape->forms, e);
	if (f)
		return f;
	Affine a = {0};
	if (node_compares_index(e))
		a = affine_of(ir, node_sub(ir, e->src[1], e->src[0]));
	else if (e->type == RICCI_I64)
		a = affine_of(ir, e);
	bool atom = a.n == 1 && a.atom[0] == e && e->op != OP_AXIS;
	f = atom ? &no_forms : forms_affine(tape, &a);
	for (int k = 0; k < e->nsrc && (!a.n || atom); k++)
		f = forms_join(ir, f, forms_of(tape, e->src[k]));
	node_map_put(ir, &tape->forms, e, (void *)(uintptr_t)f);
	return f;
}

static double forms_points(const Forms *f)
{
	double points = 1;
	for (int k = 0; k < f->n; k++)
		points *= (double)(f->at[k].sum->hi - f->at[k].sum->lo + 1);
	return points;
}

/* ---- what is a part */

/* Windows reach beyond the tensor that they move over; so may the part. */
enum { MOST_GROWTH = 4 };

static bool has_windows(const Forms *f)
{
	for (int k = 0; k < f->n; k++)
		if (f->at[k].sum != f->at[k].axis)
			return true;
	return false;
}

bool part_pays(const Node *comp, const Forms *f, double largest)
{
	double points = forms_points(f);
	return f->n <= RICCI_MAX_RANK && points < comp_points(comp) &&
	       points <= largest * (has_windows(f) ? MOST_GROWTH : 1);
}

/* ---- a part as an equation */

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
	const Forms *f = largest ? forms_of(tape, largest) : &no_forms;
	return forms_join(tape->ir, f, forms_of(tape, part));
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
	if (has_windows(f) || n > f->n) {
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

/* ---- factors of the same forms */

/* A factor of a product. */
typedef struct Member {
	Factor factor;
	double points; /* of its forms; 0: no wanted tensor is in it */
	const Forms *forms;
	int beside; /* the member that it stands beside; -1: none */
} Member;

static bool reads_wanted(Tape *tape, Node *e)
{
	Node **reads;
	int n = node_collect(tape->ir, e, OP_READ, &reads);
	for (int k = 0; k < n; k++)
		if (type_is_float((Type)reads[k]->type) && tape->wanted[reads[k]->src[0]->id])
			return true;
	return false;
}

static Member member_of(Tape *tape, Factor from)
{
	Member m = {.factor = from, .beside = -1};
	if (!reads_wanted(tape, from.node) || axes_in(tape->ir, from.node) == UINT64_MAX)
		return m;
	m.forms = forms_of(tape, from.node);
	m.points = forms_points(m.forms);
	return m;
}

/* May k stand beside j? Their order lets none stand beside one that stands beside it. */
static bool goes_beside(const Member *at, int k, int j)
{
	const Member *x = &at[k], *y = &at[j];
	bool later = x->points != y->points		      ? x->points < y->points
		     : x->factor.divides != y->factor.divides ? x->factor.divides
							      : j < k;
	return later && x->points > 0 && (x->factor.divides || !y->factor.divides) &&
	       forms_within(x->forms, y->forms);
}

/* The smallest member with fewer points than the equation that k may stand beside. */
static int find_beside(const Member *at, int n, int k, double most)
{
	int best = -1;
	for (int j = 0; j < n; j++)
		if (j != k && at[j].points < most && goes_beside(at, k, j) &&
		    (best < 0 || at[j].points < at[best].points))
			best = j;
	return best;
}

/* a*b or a/b, under the conditions of choices. */
static Node *joined(Ir *ir, Node *a, Node *b, bool divide)
{
	if (!divide && b->op == OP_SELECT && a->op != OP_SELECT)
		return weighted(ir, b, a);
	if (!divide)
		return weighted(ir, a, b);
	if (a->op == OP_SELECT && node_is_value(a->src[2], 0))
		return node_select(ir, a->src[0], node2(ir, OP_DIV, a->src[1], b), a->src[2]);
	return node2(ir, OP_DIV, a, b);
}

static void members_find(Tape *tape, const Node *comp, const Product *p, Member *at)
{
	for (int k = 0; k < p->n; k++)
		at[k] = member_of(tape, p->at[k]);
	for (int k = 0; k < p->n; k++)
		at[k].beside = find_beside(at, p->n, k, comp_points(comp));
}

/* Member k with all that stands beside it. */
static Node *member_value(Ir *ir, const Member *at, int n, int k)
{
	Node *value = at[k].factor.node;
	for (int j = 0; j < n; j++)
		if (at[j].beside == k)
			value = joined(ir, value, member_value(ir, at, n, j),
				       at[j].factor.divides != at[k].factor.divides);
	return value;
}

/* The product with each factor beside the smallest other one that depends on all that it depends on. */
static Node *product_grouped(Tape *tape, const Node *comp, Node *e)
{
	Ir *ir = tape->ir;
	Member at[MAX_FACTORS];
	Product p = {0}, grouped;
	if (!product_read(&p, e, false) || p.n < 3)
		return e;
	members_find(tape, comp, &p, at);
	grouped = (Product){.minus = p.minus};
	for (int k = 0; k < p.n; k++)
		if (at[k].beside < 0)
			grouped.at[grouped.n++] =
				(Factor){member_value(ir, at, p.n, k), p.at[k].divides};
	return grouped.n < p.n ? product_node(ir, &grouped, (Type)e->type) : e;
}

/* known: what parts of the body became. */
static Node *body_grouped(Tape *tape, const Node *comp, NodeMap *known, Node *e)
{
	Ir *ir = tape->ir;
	Node *out = node_map_get(known, e), *a, *b;
	if (out)
		return out;
	switch (e->op) {
	case OP_MUL:
	case OP_DIV:
		out = product_grouped(tape, comp, e);
		break;
	case OP_ADD:
	case OP_SUB:
		a = body_grouped(tape, comp, known, e->src[0]);
		b = body_grouped(tape, comp, known, e->src[1]);
		out = node2(ir, (Op)e->op, a, b);
		break;
	case OP_SELECT:
		a = body_grouped(tape, comp, known, e->src[1]);
		b = body_grouped(tape, comp, known, e->src[2]);
		out = node_select(ir, e->src[0], a, b);
		break;
	default:
		out = e;
	}
	node_map_put(ir, known, e, out);
	return out;
}

Node *factors_grouped(Tape *tape, const Node *comp)
{
	NodeMap known = {0};
	Node *body = comp_body(comp);
	return type_is_float((Type)body->type) ? body_grouped(tape, comp, &known, body) : body;
}

/* ---- factors of the result */

/* Does nothing stand beside k? */
static bool stands_alone(const Member *at, int n, int k)
{
	bool alone = at[k].beside < 0;
	for (int j = 0; j < n; j++)
		alone &= at[j].beside != k;
	return alone;
}

bool sum_unscaled(Tape *tape, Node *c, Node **sum, Node **scale)
{
	Ir *ir = tape->ir;
	Member at[MAX_FACTORS];
	Product p = {0}, inner = {0}, outer = {0};
	uint64_t kept = axes_mask(tensor_rank(c), c->src);
	bool wanted = false;
	if (comp_reduce(c) != RED_ADD || !comp_is_dense(c) || !bears_rounding(c) ||
	    !product_read(&p, comp_body(c), false) || p.n < 3)
		return false;
	members_find(tape, c, &p, at);
	for (int k = 0; k < p.n; k++) {
		bool scales = !(axes_in(ir, p.at[k].node) & ~kept) && stands_alone(at, p.n, k);
		Product *to = scales ? &outer : &inner;
		to->at[to->n++] = p.at[k];
		wanted |= scales && at[k].points > 0;
	}
	if (!wanted || inner.n < 2)
		return false;
	/* a choice is the whole product's, as rewrites of c have it, so that both are one tensor */
	Node *value = node_const(ir, (Type)c->type, p.minus ? -1 : 1);
	for (int k = 0; k < inner.n; k++)
		value = joined(ir, value, inner.at[k].node, inner.at[k].divides);
	*sum = comp_with(ir, c, RED_ADD, value);
	*scale = product_node(ir, &outer, (Type)c->type);
	return true;
}

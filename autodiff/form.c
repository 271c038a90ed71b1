/* form.c - what a value depends on, by index forms.
 *
 * An index form is an axis, or a sum of axes of which the value knows no more than the sum, as the p+r of a window.
 * Input: an expression. Output: its forms. Invariant: no two forms of a value have an axis in common, and each takes all
 * values of its range, so that a value has as many as there are points of its forms. */
#include "autodiff/internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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

bool forms_within(const Forms *f, const Forms *g)
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

double forms_points(const Forms *f)
{
	double points = 1;
	for (int k = 0; k < f->n; k++)
		points *= (double)(f->at[k].sum->hi - f->at[k].sum->lo + 1);
	return points;
}

/* Windows reach beyond the tensor that they move over; so may the part. */
enum { MOST_GROWTH = 4 };

bool forms_have_windows(const Forms *f)
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
	       points <= largest * (forms_have_windows(f) ? MOST_GROWTH : 1);
}

/* affine.c - integer nodes as constant + sum of coefficient * atom.
 *
 * Input: integer nodes in any shape of ADD, MUL by a constant and CONST (fold.c keeps a normal
 * form, nothing here depends on it). Output: atoms distinct, ascending by id, coefficients nonzero.
 * What may wrap is an opaque atom, which is always right, and so is a node whose coefficients leave
 * int64. */
#include "core/algebra/algebra.h"

#include <stdlib.h>

/* Is e a sum, or a product by a constant, that can't wrap? modular: or that is an I64. */
static bool is_linear(const Node *e, bool modular)
{
	if (node_may_wrap(e) && !(modular && e->type == RICCI_I64))
		return false;
	return e->op == OP_ADD ||
	       (e->op == OP_MUL && (node_is_const(e->src[0]) || node_is_const(e->src[1])));
}

static int count_atoms(const Node *e, bool modular)
{
	if (!is_linear(e, modular))
		return !node_is_const(e);
	return count_atoms(e->src[0], modular) + count_atoms(e->src[1], modular);
}

/* Adds k * e, keeping atoms sorted; false when a number leaves int64. */
static bool add_scaled(Affine *a, Node *e, int64_t k, bool modular)
{
	int64_t v;
	if (node_is_const(e))
		return !__builtin_mul_overflow(e->u.i, k, &v) &&
		       !__builtin_add_overflow(a->c, v, &a->c);
	if (is_linear(e, modular) && e->op == OP_ADD)
		return add_scaled(a, e->src[0], k, modular) && add_scaled(a, e->src[1], k, modular);
	if (is_linear(e, modular)) {
		int c = node_is_const(e->src[0]) ? 0 : 1;
		return !__builtin_mul_overflow(e->src[c]->u.i, k, &v) &&
		       add_scaled(a, e->src[1 - c], v, modular);
	}
	int at = a->n;
	while (at > 0 && a->atom[at - 1]->id > e->id)
		at--;
	if (at > 0 && a->atom[at - 1] == e)
		return !__builtin_add_overflow(a->k[at - 1], k, &a->k[at - 1]);
	for (int i = a->n++; i > at; i--) {
		a->k[i] = a->k[i - 1];
		a->atom[i] = a->atom[i - 1];
	}
	a->k[at] = k;
	a->atom[at] = e;
	return true;
}

static Affine affine_form(Ir *ir, Node *e, bool modular)
{
	Affine a = {.c = 0};
	size_t room = (size_t)count_atoms(e, modular) + 1;
	a.k = arena_alloc(&ir->arena, room * (sizeof *a.k + sizeof *a.atom));
	a.atom = (Node **)(a.k + room);
	if (!add_scaled(&a, e, 1, modular)) { /* as one atom */
		a.c = 0;
		a.n = 1;
		a.k[0] = 1;
		a.atom[0] = e;
	}
	int n = 0;
	for (int i = 0; i < a.n; i++)
		if (a.k[i]) {
			a.k[n] = a.k[i];
			a.atom[n++] = a.atom[i];
		}
	a.n = n;
	return a;
}

Affine affine_of(Ir *ir, Node *e)
{
	return affine_form(ir, e, false);
}

Affine affine_modular(Ir *ir, Node *e)
{
	return affine_form(ir, e, true);
}

Node *affine_node(Ir *ir, const Affine *a)
{
	Type type = a->n ? (Type)a->atom[0]->type : RICCI_I64;
	Node *sum = node_const_int(ir, type, a->c);
	for (int i = 0; i < a->n; i++) {
		Node *k = node_const_int(ir, type, a->k[i]);
		sum = node2(ir, OP_ADD, sum, node2(ir, OP_MUL, k, a->atom[i]));
	}
	return sum;
}

int64_t affine_coefficient(const Affine *a, const Node *atom)
{
	for (int i = 0; i < a->n; i++)
		if (a->atom[i] == atom)
			return a->k[i];
	return 0;
}

int64_t affine_stride(Ir *ir, Node *e, Node *axis)
{
	Affine a = affine_of(ir, e);
	for (int j = 0; j < a.n; j++)
		if (a.atom[j] != axis && node_has(a.atom[j], axis))
			return INT64_MIN;
	return affine_coefficient(&a, axis);
}

/* ---- periods */

enum { PERIOD_MAX = INT32_MAX };

typedef struct Period {
	int64_t length, step;
} Period;

static int64_t period_of(Periods *p, Node *e, int64_t *step)
{
	int64_t m[2], k[2];
	*step = e == p->axis;
	bool div = e->op == OP_FLOORDIV || e->op == OP_FLOORMOD;
	if (!div && e->op != OP_ADD && !(e->op == OP_MUL && node_is_const(e->src[1])) &&
	    !(e->op == OP_MUL && node_is_const(e->src[0])))
		return e == p->axis || !node_has(e, p->axis);
	for (int j = 0; j < 2; j++) {
		m[j] = index_period(p, e->src[j], &k[j]);
		if (!m[j] || llabs(k[j]) > INT32_MAX)
			return 0;
	}
	int64_t all = m[0] / int_gcd(m[0], m[1]) * m[1];
	if (all > PERIOD_MAX)
		return 0;
	if (e->op == OP_ADD)
		*step = k[0] * (all / m[0]) + k[1] * (all / m[1]);
	if (e->op == OP_MUL) {
		int j = node_is_const(e->src[0]) ? 1 : 0;
		if (__builtin_mul_overflow(k[j], e->src[1 - j]->u.i, step))
			return 0;
	}
	if (div) {
		int64_t c = e->src[1]->u.i, times = c / int_gcd(c, k[0]);
		if (times > PERIOD_MAX)
			return 0;
		*step = e->op == OP_FLOORDIV ? k[0] * times / c : 0;
		all *= times;
	}
	return all <= PERIOD_MAX ? all : 0;
}

int64_t index_period(Periods *p, Node *e, int64_t *step)
{
	Period *known = node_map_get(&p->known, e);
	if (!known) {
		known = arena_alloc(&p->ir->arena, sizeof *known);
		known->length = period_of(p, e, &known->step);
		node_map_put(p->ir, &p->known, e, known);
	}
	*step = known->step;
	return known->length;
}

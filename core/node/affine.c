/* affine.c - integer nodes as constant + sum of coefficient * atom.
 *
 * Input: integer nodes in any shape of ADD, MUL by a constant and CONST (fold.c keeps a normal
 * form, nothing here depends on it). Output: atoms distinct, axes by number first, then by hash, and
 * coefficients nonzero. What may wrap is an opaque atom, which is always right, and so is a node
 * whose coefficients leave int64. */
#include "core/node/internal.h"

#include <stdlib.h>
#include <string.h>

static bool atom_before(const Node *a, const Node *b)
{
	bool x = a->op == OP_AXIS, y = b->op == OP_AXIS;
	if (x != y)
		return x;
	if (x && a->u.i != b->u.i)
		return a->u.i < b->u.i;
	return a->hash != b->hash ? a->hash < b->hash : a->id < b->id;
}

Affine *affine_start(AffineRoom *r)
{
	r->a = (Affine){.room = COUNT(r->k), .k = r->k, .atom = r->atom};
	return &r->a;
}

/* Puts k * atom; false when the coefficient leaves int64, wrapped then, or there is no room. */
static bool put(Ir *ir, Affine *a, Node *atom, int64_t k)
{
	int at = 0, room = a->room;
	while (at < a->n && a->atom[at] != atom && atom_before(a->atom[at], atom))
		at++;
	if (at < a->n && a->atom[at] == atom)
		return !__builtin_add_overflow(a->k[at], k, &a->k[at]);
	if (a->n == room && !ir)
		return false;
	if (a->n == room) {
		a->k = arena_grow(&ir->arena, a->k, a->n, &room, sizeof *a->k);
		a->atom = arena_grow(&ir->arena, a->atom, a->n, &a->room, sizeof *a->atom);
	}
	for (int j = a->n++; j > at; j--)
		a->k[j] = a->k[j - 1], a->atom[j] = a->atom[j - 1];
	a->k[at] = k;
	a->atom[at] = atom;
	return true;
}

bool affine_add(Ir *ir, Affine *a, Node *e, int64_t k, bool wraps)
{
	int64_t v;
	bool opaque = !wraps && node_may_wrap(e);
	if (wraps ? e->lo == e->hi : node_is_const(e)) {
		bool lost = __builtin_mul_overflow(e->lo, k, &v);
		return (!__builtin_add_overflow(a->c, v, &a->c) && !lost) || wraps;
	}
	if (e->op == OP_ADD && !opaque)
		return affine_add(ir, a, e->src[0], k, wraps) &&
		       affine_add(ir, a, e->src[1], k, wraps);
	if (e->op == OP_MUL && !opaque && (node_is_const(e->src[0]) || node_is_const(e->src[1]))) {
		int c = node_is_const(e->src[0]) ? 0 : 1;
		bool lost = __builtin_mul_overflow(e->src[c]->u.i, k, &v);
		return (!lost || wraps) && affine_add(ir, a, e->src[1 - c], v, wraps);
	}
	return put(ir, a, e, k) || wraps;
}

/* In the arena, without coefficients of 0. */
static Affine affine_form(Ir *ir, Node *e, bool wraps)
{
	AffineRoom room;
	Affine *sum = affine_start(&room);
	if (!affine_add(ir, sum, e, 1, wraps)) {
		sum = affine_start(&room);
		put(ir, sum, e, 1);
	}
	Affine a = {.c = sum->c, .room = sum->n};
	a.k = arena_alloc(&ir->arena, (size_t)sum->n * (sizeof *a.k + sizeof *a.atom));
	a.atom = (Node **)(a.k + sum->n);
	for (int j = 0; j < sum->n; j++)
		if (sum->k[j]) {
			a.k[a.n] = sum->k[j];
			a.atom[a.n++] = sum->atom[j];
		}
	return a;
}

Affine affine_of(Ir *ir, Node *e)
{
	return affine_form(ir, e, false);
}

Affine affine_modular(Ir *ir, Node *e)
{
	return affine_form(ir, e, e->type == RICCI_I64);
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

int64_t index_period(Node *e, Node *z, int64_t *step)
{
	int64_t m[2], k[2];
	*step = e == z;
	if (e == z || !node_has(e, z))
		return 1;
	bool div = e->op == OP_FLOORDIV || e->op == OP_FLOORMOD;
	if (!div && e->op != OP_ADD && !(e->op == OP_MUL && node_is_const(e->src[1])) &&
	    !(e->op == OP_MUL && node_is_const(e->src[0])))
		return 0;
	for (int j = 0; j < 2; j++) {
		m[j] = index_period(e->src[j], z, &k[j]);
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

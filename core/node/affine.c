/* affine.c - integer nodes as constant + sum of coefficient * atom.
 *
 * Input: integer nodes in any shape of ADD, MUL by a constant and CONST (fold.c keeps a normal
 * form, nothing here depends on it). Output: atoms distinct, axes by number first, then by hash, and
 * coefficients nonzero. What may wrap is an opaque atom, which is always right, and so is a node
 * whose coefficients leave int64. */
#include "core/node/internal.h"

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
	if (wraps ? e->lo == e->hi : e->op == OP_CONST) {
		bool lost = __builtin_mul_overflow(e->lo, k, &v);
		return (!__builtin_add_overflow(a->c, v, &a->c) && !lost) || wraps;
	}
	if (e->op == OP_ADD && !opaque)
		return affine_add(ir, a, e->src[0], k, wraps) &&
		       affine_add(ir, a, e->src[1], k, wraps);
	if (e->op == OP_MUL && !opaque &&
	    (e->src[0]->op == OP_CONST || e->src[1]->op == OP_CONST)) {
		int c = e->src[0]->op == OP_CONST ? 0 : 1;
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

int64_t affine_coefficient(const Affine *a, const Node *atom)
{
	for (int i = 0; i < a->n; i++)
		if (a->atom[i] == atom)
			return a->k[i];
	return 0;
}

bool indices_one_to_one(Ir *ir, int naxis, Node *const *axis, int rank, Node *const *index,
			bool *has)
{
	for (int k = 0; k < naxis; k++)
		has[k] = false;
	for (int d = 0; d < rank; d++) {
		Affine a = affine_of(ir, index[d]);
		int64_t reach = 1; /* the terms so far cover less than this */
		bool done[COMP_MAX_AXES] = {false};
		for (int round = 0; round < a.n; round++) {
			int best = -1;
			for (int j = 0; j < a.n; j++)
				if (!done[j] && (best < 0 || a.k[j] < a.k[best]))
					best = j;
			Node *x = a.atom[best];
			done[best] = true;
			if (x->op != OP_AXIS || a.k[best] < reach)
				return false;
			reach += a.k[best] * (axis_extent(x) - 1);
			for (int k = 0; k < naxis; k++)
				if (axis[k] == x) {
					if (has[k])
						return false;
					has[k] = true;
				}
		}
	}
	return true;
}

/* affine.c - integer nodes as constant + sum of coefficient * atom.
 *
 * Input: integer nodes in any shape of ADD, MUL by a constant and CONST (fold.c keeps a normal
 * form, nothing here depends on it). Output: atoms distinct, ascending by id, coefficients nonzero.
 * Arithmetic that would leave int64 makes the whole node one opaque atom, which is always right. */
#include "core/core.h"

enum { FEW_TERMS = 16 };

/* Terms under construction; most are few. */
typedef struct Terms {
	Ir *ir;
	Affine a;
	int room;
	int64_t few_k[FEW_TERMS];
	Node *few_atom[FEW_TERMS];
} Terms;

static void terms_start(Terms *t, Ir *ir)
{
	t->ir = ir;
	t->a = (Affine){.k = t->few_k, .atom = t->few_atom};
	t->room = FEW_TERMS;
}

static void terms_push(Terms *t, Node *atom, int64_t k)
{
	if (t->a.n == t->room) {
		int room = 2 * t->room;
		int64_t *ks = arena_alloc(&t->ir->arena, (size_t)room * sizeof *ks);
		Node **atoms = arena_alloc(&t->ir->arena, (size_t)room * sizeof *atoms);
		for (int i = 0; i < t->a.n; i++) {
			ks[i] = t->a.k[i];
			atoms[i] = t->a.atom[i];
		}
		t->a.k = ks, t->a.atom = atoms, t->room = room;
	}
	t->a.k[t->a.n] = k;
	t->a.atom[t->a.n++] = atom;
}

static bool may_wrap(const Node *e)
{
	int64_t lo, hi;
	type_range((Type)e->type, &lo, &hi);
	return e->type != RICCI_I64 && e->lo == lo && e->hi == hi;
}

/* Adds k * e, keeping atoms sorted; false when a number leaves int64. */
static bool terms_add(Terms *t, Node *e, int64_t k)
{
	int64_t v;
	if (e->op == OP_CONST)
		return !__builtin_mul_overflow(e->u.i, k, &v) &&
		       !__builtin_add_overflow(t->a.c, v, &t->a.c);
	bool opaque = (e->op == OP_ADD || e->op == OP_MUL) && may_wrap(e);
	if (e->op == OP_ADD && !opaque)
		return terms_add(t, e->src[0], k) && terms_add(t, e->src[1], k);
	if (e->op == OP_MUL && !opaque && (node_is_const(e->src[0]) || node_is_const(e->src[1]))) {
		int c = node_is_const(e->src[0]) ? 0 : 1;
		return !__builtin_mul_overflow(e->src[c]->u.i, k, &v) &&
		       terms_add(t, e->src[1 - c], v);
	}
	int at = t->a.n;
	while (at > 0 && t->a.atom[at - 1]->id > e->id)
		at--;
	if (at > 0 && t->a.atom[at - 1] == e)
		return !__builtin_add_overflow(t->a.k[at - 1], k, &t->a.k[at - 1]);
	terms_push(t, e, k);
	for (int i = t->a.n - 1; i > at; i--) {
		t->a.k[i] = t->a.k[i - 1];
		t->a.atom[i] = t->a.atom[i - 1];
	}
	t->a.k[at] = k;
	t->a.atom[at] = e;
	return true;
}

Affine affine_of(Ir *ir, Node *e)
{
	Terms t;
	terms_start(&t, ir);
	if (!terms_add(&t, e, 1)) {
		terms_start(&t, ir);
		terms_push(&t, e, 1);
	}
	Affine a = {.c = t.a.c};
	size_t n = 0;
	for (int i = 0; i < t.a.n; i++)
		n += t.a.k[i] != 0;
	if (!n)
		return a;
	a.k = arena_alloc(&ir->arena, n * (sizeof *a.k + sizeof *a.atom));
	a.atom = (Node **)(a.k + n);
	for (int i = 0; i < t.a.n; i++) {
		if (t.a.k[i] == 0)
			continue;
		a.k[a.n] = t.a.k[i];
		a.atom[a.n++] = t.a.atom[i];
	}
	return a;
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

/* witness.c - points of a box that meet conditions, found by trying.
 *
 * Most conditions at borders are needed and most axes keep their range; a point that shows it is
 * found in no time, where a proof by elimination takes ten. Input: conditions on axes. Output: yes,
 * or not found, which says nothing. Conditions on data are passed over.
 */
#include "autodiff/internal.h"

enum { MAX_SWEEPS = 3 };

static void see_axes(Witness *w, Node *e, uint64_t *mask)
{
	if (type_is_float((Type)e->type) || e->op == OP_READ || node_is_tensor(e))
		return;
	if (e->op == OP_AXIS) {
		*mask |= (uint64_t)1 << e->u.i;
		for (int k = 0; k < w->naxis; k++)
			if (w->axis[k] == e)
				return;
		w->axis[w->naxis++] = e;
	}
	for (int k = 0; k < e->nsrc; k++)
		see_axes(w, e->src[k], mask);
}

/* False where e is not of axes alone, or overflows. */
static bool value_at(const int64_t *at, const Node *e, int64_t *v)
{
	int64_t a = 0, b = 0;
	if ((e->type != RICCI_I64 && e->type != RICCI_BOOL) || e->op == OP_READ || e->op == OP_CAST)
		return false;
	if (e->op == OP_AXIS || e->op == OP_CONST) {
		*v = e->op == OP_AXIS ? at[e->u.i] : e->u.i;
		return true;
	}
	if (e->nsrc < 1 || e->nsrc > 2 || !value_at(at, e->src[0], &a) ||
	    (e->nsrc == 2 && !value_at(at, e->src[1], &b)))
		return false;
	switch (e->op) {
	case OP_ADD:
		return !__builtin_add_overflow(a, b, v);
	case OP_MUL:
		return !__builtin_mul_overflow(a, b, v);
	case OP_FLOORDIV:
		*v = int_floor_div(a, b);
		return true;
	case OP_FLOORMOD:
		*v = int_floor_mod(a, b);
		return true;
	case OP_MIN:
		*v = a < b ? a : b;
		return true;
	case OP_MAX:
		*v = a > b ? a : b;
		return true;
	case OP_LT:
		*v = a < b;
		return true;
	case OP_LE:
		*v = a <= b;
		return true;
	case OP_EQ:
		*v = a == b;
		return true;
	case OP_NE:
		*v = a != b;
		return true;
	case OP_AND:
		*v = a && b;
		return true;
	case OP_OR:
		*v = a || b;
		return true;
	case OP_NOT:
		*v = !a;
		return true;
	default:
		return false;
	}
}

/* Does condition k hold at the point, or not where it is the one to fail? Those that can't be
 * evaluated do. */
static bool suits(const Witness *w, int k, int fails, const int64_t *at)
{
	int64_t v;
	return value_at(at, w->c->at[k], &v) ? (v != 0) != (k == fails) : k != fails;
}

/* How many of the conditions in which one of the axes `mask` is don't suit. */
static int unsuited(const Witness *w, int fails, const int64_t *at, uint64_t mask)
{
	int n = 0;
	for (int k = 0; k < w->c->n; k++)
		n += (w->mask[k] & mask) && !suits(w, k, fails, at);
	return n;
}

/* Moves axes one by one to an end or the middle of their ranges, wherever fewer conditions fail
 * then, or as many, to leave a plateau; `fixed` stays. */
static bool search(const Witness *w, int fails, int64_t *at, const Node *fixed)
{
	int worst = unsuited(w, fails, at, UINT64_MAX);
	for (int sweep = 0; worst && sweep < MAX_SWEEPS; sweep++)
		for (int k = 0; k < w->naxis && worst; k++) {
			Node *axis = w->axis[k];
			uint64_t mask = (uint64_t)1 << axis->u.i;
			int64_t tries[] = {0, axis->hi, axis->hi / 2}, best = at[axis->u.i];
			int here = unsuited(w, fails, at, mask), least = here;
			for (int j = 0; here && axis != fixed && j < COUNT(tries); j++) {
				at[axis->u.i] = tries[j];
				int n = unsuited(w, fails, at, mask);
				if (n < least || (n == least && sweep == 1 && j == 1)) {
					least = n;
					best = tries[j];
				}
			}
			at[axis->u.i] = best;
			worst -= here - least;
		}
	return !worst;
}

bool witness_start(Witness *w, const Conditions *c)
{
	w->c = c;
	w->naxis = 0;
	for (int k = 0; k < WITNESS_AXES; k++)
		w->base[k] = 0;
	for (int k = 0; k < c->n; k++) {
		w->mask[k] = 0;
		see_axes(w, c->at[k], &w->mask[k]);
	}
	return search(w, -1, w->base, NULL);
}

bool witness_find(const Witness *w, int fails, Node *axis, int64_t value)
{
	int64_t at[WITNESS_AXES];
	for (int k = 0; k < WITNESS_AXES; k++)
		at[k] = w->base[k];
	if (axis)
		at[axis->u.i] = value;
	return search(w, fails, at, axis);
}

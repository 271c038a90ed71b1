/* index.c - questions to index expressions: their strides and periods along an axis; and linear forms
 * back to nodes. */
#include "core/algebra/algebra.h"

#include <stdlib.h>

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

int64_t affine_stride(Ir *ir, Node *e, Node *axis)
{
	Affine a = affine_of(ir, e);
	for (int j = 0; j < a.n; j++)
		if (a.atom[j] != axis && node_has(a.atom[j], axis))
			return INT64_MIN;
	return affine_coefficient(&a, axis);
}

int64_t affine_distance(Ir *ir, Node *e, Node *axis)
{
	int64_t stride = affine_stride(ir, e, axis);
	return stride == INT64_MIN ? INT64_MAX : stride < 0 ? -stride : stride;
}

Node *index_placed(Ir *ir, Node *a, Node *b, Node *axis)
{
	Node *d = node_sub(ir, a, b);
	int64_t by = affine_stride(ir, d, axis);
	return by == 1 || by == -1 ? node_sub(ir, axis, node_scale(ir, d, by)) : NULL;
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

/* ---- phases */

typedef struct Phases {
	Periods of;
	int64_t period, most; /* of all that was seen; 0: none up to most */
} Phases;

static void see_period(void *user, Node *n)
{
	Phases *p = user;
	if ((n->op != OP_FLOORDIV && n->op != OP_FLOORMOD) || n->type != RICCI_I64 ||
	    !node_has(n, p->of.axis) || !p->period)
		return;
	int64_t step, m = index_period(&p->of, n, &step);
	p->period = m ? p->period / int_gcd(p->period, m) * m : 0;
	if (p->period > p->most)
		p->period = 0;
}

int64_t index_phases(Ir *ir, Node *axis, int n, Node *const *e, int64_t most)
{
	Phases p = {{.ir = ir, .axis = axis}, 1, most};
	for (int k = 0; k < n; k++)
		node_walk(ir, e[k], see_period, &p);
	return p.period;
}

typedef struct Decided {
	Ir *ir;
	Node *axis, *first; /* first: where the axis is a multiple of the period */
	bool found;
} Decided;

static void see_decided(void *user, Node *n)
{
	Decided *d = user;
	if (op_compares((Op)n->op) && node_has(n, d->axis))
		d->found |= node_is_const(node_replace(d->ir, n, 1, &d->axis, &d->first));
}

bool index_phases_decide(Ir *ir, Node *axis, int64_t period, int n, Node *const *e)
{
	Decided d = {ir, axis, node_scale(ir, axis, period), false};
	for (int k = 0; k < n; k++)
		node_walk(ir, e[k], see_decided, &d);
	return d.found;
}

static bool is_select(const Node *n)
{
	return n->op == OP_SELECT;
}

/* Does e lie in 0..extent-1 at each of so many points of its axes? */
static bool lies_inside(Ir *ir, Node *e, int n, Node *const *axis, int64_t points, int64_t extent)
{
	Node *at[COMP_MAX_AXES];
	for (int64_t p = 0; p < points; p++) {
		int64_t rest = p;
		for (int k = 0; k < n; k++) {
			at[k] = node_int(ir, rest % axis_extent(axis[k]));
			rest /= axis_extent(axis[k]);
		}
		Node *place = node_replace(ir, e, n, axis, at);
		if (!node_is_const(place) || place->u.i < 0 || place->u.i >= extent)
			return false;
	}
	return true;
}

bool index_is_table(Ir *ir, Node *e, int64_t extent)
{
	enum { POINTS_MOST = 512 };
	Node *axis[COMP_MAX_AXES];
	double points = 1;
	if (!node_any(ir, e, is_select) || node_reads(ir, e))
		return false;
	int n = node_axes(ir, 1, &e, axis);
	for (int k = 0; k < n; k++)
		points *= (double)axis_extent(axis[k]);
	return n > 1 && points * (double)extent <= POINTS_MOST &&
	       lies_inside(ir, e, n, axis, (int64_t)points, extent);
}

/* exact.c - which results no rounding meets, so that kernels must have them to the last bit.
 *
 * Input: a task whose inputs hold integers of bounded magnitude. Each node's value then is a
 * multiple of a power of two and bounded, as long as the operators keep it so; where the multiple
 * fits the significand of the node's type, it is exact whatever the order of the arithmetic. Sums
 * are exact up to a sum of their terms' magnitudes, which the interpreter tells. Invariant: what
 * this file calls exact is exact; the reverse need not hold.
 */
#include "runtime/verify/verify.h"
#include <math.h>
#include <string.h>

typedef struct Grid { /* a value is a multiple of 2^unit and at most `most` */
	double most;  /* INFINITY: it rounds, or may */
	int unit;
} Grid;

typedef struct Exact {
	const Task *task;
	const TaskCopy *copy;
	double whole;
	int unit;     /* of the inputs */
	Grid *node;   /* by id, of the body that is looked at */
	Grid *member; /* of each member so far */
	int nmember;
} Exact;

static const Grid rounds = {INFINITY, 0};

/* The largest multiple of 2^unit below which all are numbers of type t. */
static double type_exact(Type t, int unit)
{
	return ldexp(2 / type_epsilon(t), unit);
}

static Grid grid_number(double v)
{
	int e;
	double m = frexp(v, &e);

	for (e -= 53, m = ldexp(m, 53); m != 0 && fmod(m, 2) == 0; e++)
		m /= 2;
	return isfinite(v) ? (Grid){fabs(v), v == 0 ? 0 : e} : rounds;
}

static Grid grid_tensor(const Exact *x, const Node *t)
{
	for (int i = 0; i < x->task->sub.ninput; i++)
		if (x->copy->input[i] == t)
			return (Grid){x->whole, type_is_float(t->type) ? x->unit : 0};
	for (int i = 0; i < x->nmember; i++)
		if (x->copy->member[i] == t)
			return x->member[i];
	return rounds;
}

static double grid_larger(Grid a, Grid b)
{
	return a.most > b.most ? a.most : b.most;
}

static Grid grid_pair(Op op, Grid a, Grid b)
{
	int unit = a.unit < b.unit ? a.unit : b.unit;

	switch (op) {
	case OP_ADD:
	case OP_SUB:
		return (Grid){a.most + b.most, unit};
	case OP_MUL:
		return (Grid){a.most * b.most, a.unit + b.unit};
	default: /* MIN, MAX, SELECT */
		return (Grid){grid_larger(a, b), unit};
	}
}

static Grid grid_quotient(const Node *by, Grid a)
{
	int e;

	if (by->op != OP_CONST || fabs(frexp(by->u.f, &e)) != 0.5)
		return rounds;
	return (Grid){ldexp(a.most, 1 - e), a.unit + 1 - e};
}

static Grid grid_float(const Exact *x, const Node *n)
{
	Grid a = n->nsrc > 0 ? x->node[n->src[0]->id] : rounds;
	Grid b = n->nsrc > 1 ? x->node[n->src[1]->id] : rounds;

	switch (n->op) {
	case OP_CONST:
		return grid_number(n->u.f);
	case OP_READ:
		return grid_tensor(x, n->src[0]);
	case OP_ADD:
	case OP_SUB:
	case OP_MUL:
	case OP_MIN:
	case OP_MAX:
		return grid_pair(n->op, a, b);
	case OP_SELECT:
		return isinf(a.most) ? rounds : grid_pair(n->op, b, x->node[n->src[2]->id]);
	case OP_DIV:
		return grid_quotient(n->src[1], a);
	case OP_NEG:
	case OP_ABS:
	case OP_STOP:
	case OP_CAST:
		return a;
	case OP_TF32:
		return a.most <= ldexp(2 / TF32_EPSILON, a.unit) ? a : rounds;
	case OP_SIGN:
		return isinf(a.most) ? rounds : (Grid){1, 0};
	case OP_FLOOR:
	case OP_CEIL:
	case OP_ROUND:
		return (Grid){a.most + 1, a.unit > 0 ? a.unit : 0};
	default:
		return rounds;
	}
}

/* Integers are what their bounds say, where no float that rounds is among what they are made of. */
static Grid grid_int(const Exact *x, const Node *n)
{
	for (int i = 0; n->op != OP_READ && i < n->nsrc; i++)
		if (isinf(x->node[n->src[i]->id].most))
			return rounds;
	if (n->op == OP_READ && isinf(grid_tensor(x, n->src[0]).most))
		return rounds;
	if (n->op == OP_READ)
		return (Grid){
			fmin(2 * DRAW_MOST_INT, fmax(fabs((double)n->lo), fabs((double)n->hi))), 0};
	return (Grid){fmax(fabs((double)n->lo), fabs((double)n->hi)), 0};
}

static void see_node(void *user, Node *n)
{
	Exact *x = user;
	Grid g;

	if (node_is_tensor(n))
		return;
	g = type_is_float(n->type) ? grid_float(x, n) : grid_int(x, n);
	if (type_is_float(n->type) && !(g.most <= type_exact((Type)n->type, g.unit)))
		g = rounds;
	x->node[n->id] = g;
}

static double member_exact(Exact *x, const Node *c, Grid body)
{
	Reduce how = comp_reduce(c);
	double length = how == RED_ADD ? sample_length(c) : 1, room;

	x->member[x->nmember] = rounds;
	if (isinf(body.most) || (how == RED_MUL && body.most > 1))
		return 0;
	if (!type_is_float(c->type)) {
		x->member[x->nmember] = (Grid){0, 0};
		return INFINITY;
	}
	room = type_exact((Type)c->type, body.unit);
	if (body.most * length <= room)
		x->member[x->nmember] = (Grid){body.most * length, body.unit};
	return room;
}

int exact_members(TaskCopy *c, const Task *t, double whole, double *exact)
{
	Exact x = {.task = t, .copy = c, .whole = whole};
	int n = t->sub.nmember;
	Error *const err = NULL;

	for (int k = 0; k < n; k++)
		exact[k] = 0;
	IR_ENTER(&c->ir, error_set(err, RICCI_ENOMEM, "out of memory"));
	x.member = arena_alloc(&c->ir.arena, (size_t)n * sizeof *x.member);
	x.node = arena_alloc(&c->ir.arena, (c->ir.count + 1) * sizeof *x.node);
	x.unit = draw_whole_unit(c, t);
	for (; x.nmember < n && whole > 0; x.nmember++) {
		Node *m = c->member[x.nmember];

		if (!comp_is_dense(m))
			break;
		node_walk(&c->ir, comp_body(m), see_node, &x);
		exact[x.nmember] = member_exact(&x, m, x.node[comp_body(m)->id]);
	}
	IR_LEAVE(&c->ir);
	return 0;
}

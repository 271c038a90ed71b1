/* inside.c - serial loops are cut where conditions in them come to hold, at places that are known when the loop
 * begins: sums up to here (l <= j) ask once, not in each iteration for each element of a tile, and windows mask their
 * lanes at the borders of an image only. Conditions are those of IFs, and of choices in lanes.
 *
 * Input: a loop tree. Output: the same, where such a loop is up to three: the iterations before the inside; the
 * inside, where these conditions are gone; and those behind it. Iterations that do nothing are left out: no IF's
 * condition holds, and sums get zeros.
 * Invariant: every other iteration runs once, in the same order. */
#include "jit/tree/problem.h"

enum {
	CONDITIONS_MOST = 32,
	AXES_MOST = 16,
	TRIPS_LEAST = 16,	/* of shorter loops compilers make one piece of code */
	VECTOR_TRIPS_LEAST = 2, /* of vectors with choices they don't */
	INSIDE_LEAST = 4	/* iterations, on an average */
};

/* first <= axis < end. NULL: from the loop's first on; to its last. */
typedef struct Interval {
	Node *first, *end;
} Interval;

typedef struct Inside {
	Tree *t;
	const Stmt *loop;
	int naxis;
	Node *axis[AXES_MOST]; /* of the loops inside, that are open */
	int n;
	Node *cond[CONDITIONS_MOST], *value[CONDITIONS_MOST];
	Interval any; /* outside of it the loop does nothing */
	Interval all; /* where all of them hold */
	bool choices; /* some are of choices in lanes */
} Inside;

static Node *earlier(Ir *ir, Node *a, Node *b)
{
	Node *d = node_sub(ir, a, b);
	return d->hi <= 0 ? a : d->lo >= 0 ? b : node2(ir, OP_MIN, a, b);
}

static Node *later(Ir *ir, Node *a, Node *b)
{
	Node *d = node_sub(ir, a, b);
	return d->lo >= 0 ? a : d->hi <= 0 ? b : node2(ir, OP_MAX, a, b);
}

/* Does it differ between iterations of the loops inside? */
static bool varies_inside(const Inside *in, Node *n)
{
	bool varies = false;
	for (int a = 0; a < in->naxis && !varies; a++)
		varies = node_has(n, in->axis[a]);
	return varies;
}

/* Where does it hold, going by what is known when the loop begins? */
static bool condition_interval(const Inside *in, Node *cond, Interval *i)
{
	Ir *ir = in->t->ir;
	if (!slack_bound(ir, condition_slack(ir, cond), in->loop->axis, &i->first, &i->end))
		return false;
	Node *bound = i->first ? i->first : i->end;
	return !node_reads(ir, bound) && !varies_inside(in, bound);
}

static void meet(Ir *ir, Interval *all, Interval i)
{
	if (i.first)
		all->first = all->first ? later(ir, all->first, i.first) : i.first;
	if (i.end)
		all->end = all->end ? earlier(ir, all->end, i.end) : i.end;
}

/* The intervals' hull; only: of i alone. */
static void join(Ir *ir, Interval *any, Interval i, bool only)
{
	any->first = only		     ? i.first
		     : any->first && i.first ? earlier(ir, any->first, i.first)
					     : NULL;
	any->end = only ? i.end : any->end && i.end ? later(ir, any->end, i.end) : NULL;
}

/* Into the loop's bounds. */
static Interval in_loop(const Inside *in, Interval i)
{
	Ir *ir = in->t->ir;
	const Stmt *l = in->loop;
	Node *first = i.first ? earlier(ir, later(ir, i.first, l->lo), l->hi) : l->lo;
	Node *end = i.end ? later(ir, earlier(ir, i.end, l->hi), first) : l->hi;
	return (Interval){first, end};
}

/* Iterations, on an average. */
static double count(Node *first, Node *end)
{
	return ((double)end->lo + (double)end->hi - (double)first->lo - (double)first->hi) / 2;
}

/* A bound for all values of the loops inside: its least, or its greatest. NULL: there is none. */
static Node *bound_over(const Inside *in, Node *bound, bool greatest)
{
	const int64_t far = (int64_t)1 << 40;
	Ir *ir = in->t->ir;
	for (int a = 0; a < in->naxis; a++) {
		Node *axis = in->axis[a];
		int64_t step = node_has(bound, axis) ? affine_stride(ir, bound, axis) : 0;
		Node *end = node_int(ir, (step > 0) == greatest ? axis->hi : axis->lo);
		if (step != 0 && step != INT64_MIN)
			bound = node_replace(ir, bound, 1, &axis, &end);
	}
	if (!varies_inside(in, bound))
		return bound;
	int64_t at = greatest ? bound->hi : bound->lo;
	return at < -far || at > far ? NULL : node_int(ir, at);
}

/* e where the choice's condition is e >= 0, if the loop decides it; NULL: it does not. */
static Node *choice_slack(const Inside *in, Node *cond)
{
	return node_has(cond, in->loop->axis) ? condition_slack(in->t->ir, cond) : NULL;
}

/* Where is slack >= 0 in all lanes, and in all iterations of the loops inside; or (some) in one of them? */
static bool choice_interval(const Inside *in, Node *slack, bool some, Interval *i)
{
	Ir *ir = in->t->ir;
	if (!slack_bound(ir, slack, in->loop->axis, &i->first, &i->end) ||
	    node_reads(ir, i->first ? i->first : i->end))
		return false;
	i->first = i->first ? bound_over(in, i->first, !some) : NULL;
	i->end = i->end ? bound_over(in, i->end, some) : NULL;
	return i->first || i->end;
}

/* Outside of *i a condition of e fails, for which that is 0 otherwise. */
static void zero_outside(const Inside *in, const Node *e, Interval *i)
{
	Ir *ir = in->t->ir;
	Node **part;
	for (int k = 0; k < 2 && e->op == OP_MUL; k++)
		zero_outside(in, e->src[k], i);
	if (e->op != OP_SELECT || !node_is_value(e->src[2], 0))
		return;
	int n = node_parts(ir, e->src[0], OP_AND, &part);
	for (int k = 0; k < n; k++) {
		Interval own;
		Node *slack = choice_slack(in, part[k]);
		if (slack && choice_interval(in, slack, true, &own))
			meet(ir, i, own);
	}
}

/* Finds where the statements from s on do something; false: that isn't known. */
static bool acts_within(Inside *in, const Stmt *s, Interval *any)
{
	Ir *ir = in->t->ir;
	for (const Stmt *first = s; s; s = s->next) {
		Interval own = {0}, i;
		Node **part;
		int n = s->kind == STMT_IF && !s->otherwise ? node_parts(ir, s->cond, OP_AND, &part)
							    : 0;
		for (int k = 0; k < n; k++)
			if (condition_interval(in, part[k], &i))
				meet(ir, &own, i);
		if (s->kind == STMT_STORE && s->red == RED_ADD)
			zero_outside(in, s->value, &own);
		if (s->kind == STMT_LOOP && in->naxis < AXES_MOST) {
			in->axis[in->naxis++] = s->axis;
			if (!acts_within(in, s->body, &own))
				own = (Interval){0};
			in->naxis--;
		}
		if (!own.first && !own.end)
			return false;
		join(ir, any, own, s == first);
	}
	return true;
}

/* Is it so, with all before, over most of the iterations that do something? */
static bool is_most(const Inside *in, Interval i)
{
	Interval both = in->all;
	meet(in->t->ir, &both, i);
	both = in_loop(in, both);
	return 2 * count(both.first, both.end) >= count(in->any.first, in->any.end);
}

/* Inside of i the condition has that value. */
static void add_condition(Inside *in, Node *cond, bool value, Interval i)
{
	in->cond[in->n] = cond;
	in->value[in->n++] = node_const_int(in->t->ir, RICCI_BOOL, value);
	meet(in->t->ir, &in->all, i);
}

static bool is_new(const Inside *in, const Node *cond)
{
	for (int k = 0; k < in->n; k++)
		if (in->cond[k] == cond)
			return false;
	return in->n < CONDITIONS_MOST;
}

/* A choice's condition, where it holds over most of the loop, or fails. */
static void find_choice(Inside *in, Node *cond)
{
	Ir *ir = in->t->ir;
	Interval i;
	Node *slack = choice_slack(in, cond);
	if (!slack || !is_new(in, cond))
		return;
	bool holds = choice_interval(in, slack, false, &i) && is_most(in, i);
	Node *fails = node_sub(ir, node_int(ir, -1), slack);
	if (!holds && !(choice_interval(in, fails, false, &i) && is_most(in, i)))
		return;
	add_condition(in, cond, holds, i);
	in->choices = true;
}

/* Of the choices of a value that lanes compute. */
static void find_choices(Inside *in, Node *value)
{
	Node **select, **part;
	int n = node_collect(in->t->ir, value, OP_SELECT, &select);
	for (int k = 0; k < n; k++) {
		int parts = node_parts(in->t->ir, select[k]->src[0], OP_AND, &part);
		for (int p = 0; p < parts; p++)
			find_choice(in, part[p]);
	}
}

static void find_conditions(Inside *in, const Stmt *s, bool lanes)
{
	for (; s; s = s->next) {
		Node **part;
		int n = s->kind == STMT_IF ? node_parts(in->t->ir, s->cond, OP_AND, &part) : 0;
		for (int k = 0; k < n; k++) {
			Interval i;
			if (in->n < CONDITIONS_MOST && condition_interval(in, part[k], &i))
				add_condition(in, part[k], true, i);
		}
		if (lanes && s->kind == STMT_STORE)
			find_choices(in, s->value);
		bool loop = s->kind == STMT_LOOP && in->naxis < AXES_MOST;
		if (loop)
			in->axis[in->naxis++] = s->axis;
		if (loop || s->kind == STMT_IF) {
			bool vector = s->kind == STMT_LOOP && s->how == HOW_LANES;
			find_conditions(in, s->body, lanes || vector);
			find_conditions(in, s->otherwise, lanes || vector);
		}
		in->naxis -= loop;
	}
}

/* Iterations first..end-1, which may be none; NULL: they are none. What one iteration decides is known. */
static Stmt *piece(const Inside *in, Node *first, Node *end, bool inside)
{
	Tree *t = in->t;
	const Stmt *l = in->loop;
	Node *axis = l->axis;
	if (first == end)
		return NULL;
	bool one = node_is_const(first) && node_is_const(end) && end->u.i - first->u.i == 1;
	Stmt *body = one      ? stmt_replace(t, l->body, 1, &axis, &first)
		     : inside ? stmt_replace(t, l->body, in->n, in->cond, in->value)
			      : stmt_replace(t, l->body, 0, NULL, NULL);
	Stmt *s = stmt_loop(t, l->how, axis, first, end, body);
	s->maybe = true;
	return s;
}

/* Cuts the loop in place; returns its last piece. */
static Stmt *cut(Tree *t, Stmt *loop)
{
	Inside in = {.t = t, .loop = loop};
	Interval any = {0};
	double trips = count(loop->lo, loop->hi);
	if (loop->how != HOW_SERIAL || trips < VECTOR_TRIPS_LEAST)
		return loop;
	bool acts = acts_within(&in, loop->body, &any);
	in.any = in_loop(&in, acts ? any : (Interval){0});
	find_conditions(&in, loop->body, false);
	if (!in.n && !acts)
		return loop;
	Interval all = in_loop(&in, in.all);
	all.first = later(t->ir, all.first, in.any.first);
	all.end = later(t->ir, earlier(t->ir, all.end, in.any.end), all.first);
	double left = count(all.first, all.end);
	bool plain = trips >= TRIPS_LEAST && left >= INSIDE_LEAST;
	if (!plain && !(in.choices && 2 * left >= trips))
		return loop;
	Stmt *pieces = piece(&in, in.any.first, all.first, false);
	pieces = stmt_seq(pieces, piece(&in, all.first, all.end, true));
	pieces = stmt_seq(pieces, piece(&in, all.end, in.any.end, false));
	return stmt_instead(loop, pieces);
}

/* Loops in a border of a few iterations stay as they are. */
void split_inside(Tree *t, Stmt *s)
{
	for (; s; s = s->next) {
		Stmt *last = s->kind == STMT_LOOP ? cut(t, s) : s;
		for (Stmt *each = s;; each = each->next) {
			if (s == last || count(each->lo, each->hi) >= INSIDE_LEAST)
				split_inside(t, each->body);
			split_inside(t, each->otherwise);
			if (each == last)
				break;
		}
		s = last;
	}
}

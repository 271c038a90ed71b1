/* inside.c - serial loops are cut where the conditions of IFs in them come to hold, at places that are known when the
 * loop begins: sums up to here (l <= j) ask once, not in each iteration for each element of a tile.
 *
 * Input: a loop tree. Output: the same, where such a loop is up to three: the iterations before the inside; the
 * inside, where these conditions are gone; and those behind it. Iterations in which no IF's condition holds are left
 * out where there is nothing else in the loop.
 * Invariant: every other iteration runs once, in the same order. */
#include "jit/tree/problem.h"

enum {
	CONDITIONS_MOST = 32,
	AXES_MOST = 16,
	TRIPS_LEAST = 16, /* of shorter loops compilers make one piece of code */
	INSIDE_LEAST = 4  /* iterations, on an average */
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
	Node *cond[CONDITIONS_MOST], *holds[CONDITIONS_MOST];
	Interval all; /* where all of them hold */
	Interval any; /* where one IF's do */
	bool whole;   /* or all: something has no condition */
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

/* Where does it hold, going by what is known when the loop begins? */
static bool condition_interval(const Inside *in, Node *cond, Interval *i)
{
	Ir *ir = in->t->ir;
	if (!slack_bound(ir, condition_slack(ir, cond), in->loop->axis, &i->first, &i->end))
		return false;
	Node *bound = i->first ? i->first : i->end;
	bool known = !node_reads(ir, bound);
	for (int a = 0; a < in->naxis && known; a++)
		known = !node_has(bound, in->axis[a]);
	return known;
}

static void meet(Ir *ir, Interval *all, Interval i)
{
	if (i.first)
		all->first = all->first ? later(ir, all->first, i.first) : i.first;
	if (i.end)
		all->end = all->end ? earlier(ir, all->end, i.end) : i.end;
}

static void join(Ir *ir, Interval *any, Interval i, bool only)
{
	any->first = only		     ? i.first
		     : any->first && i.first ? earlier(ir, any->first, i.first)
					     : NULL;
	any->end = only ? i.end : any->end && i.end ? later(ir, any->end, i.end) : NULL;
}

static void find_conditions(Inside *in, const Stmt *s, bool outermost)
{
	Ir *ir = in->t->ir;
	for (; s; s = s->next) {
		Interval own = {0};
		Node **part;
		int n = s->kind == STMT_IF ? node_parts(ir, s->cond, OP_AND, &part) : 0;
		for (int k = 0; k < n; k++) {
			Interval i;
			if (in->n == CONDITIONS_MOST || !condition_interval(in, part[k], &i))
				continue;
			in->cond[in->n] = part[k];
			in->holds[in->n++] = node_const_int(ir, RICCI_BOOL, 1);
			meet(ir, &own, i);
			meet(ir, &in->all, i);
		}
		if (outermost && (s->kind != STMT_IF || s->otherwise || !(own.first || own.end)))
			in->whole = true;
		else if (outermost)
			join(ir, &in->any, own, s == in->loop->body);
		bool loop = s->kind == STMT_LOOP && in->naxis < AXES_MOST;
		if (loop)
			in->axis[in->naxis++] = s->axis;
		if (loop || s->kind == STMT_IF) {
			find_conditions(in, s->body, false);
			find_conditions(in, s->otherwise, false);
		}
		in->naxis -= loop;
	}
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

/* Iterations first..end-1, which may be none; NULL: they are none. */
static Stmt *piece(const Inside *in, Node *first, Node *end, bool inside)
{
	const Stmt *l = in->loop;
	if (first == end)
		return NULL;
	Stmt *body = inside ? stmt_replace(in->t, l->body, in->n, in->cond, in->holds)
			    : stmt_replace(in->t, l->body, 0, NULL, NULL);
	Stmt *s = stmt_loop(in->t, l->how, l->axis, first, end, body);
	s->maybe = true;
	return s;
}

/* Cuts the loop in place; returns its last piece. */
static Stmt *cut(Tree *t, Stmt *loop)
{
	Inside in = {.t = t, .loop = loop};
	if (loop->how != HOW_SERIAL || count(loop->lo, loop->hi) < TRIPS_LEAST)
		return loop;
	find_conditions(&in, loop->body, true);
	if (!in.n)
		return loop;
	Interval any = in_loop(&in, in.whole ? (Interval){0} : in.any);
	Interval all = in_loop(&in, in.all);
	all.first = later(t->ir, all.first, any.first);
	all.end = later(t->ir, all.end, all.first);
	if (count(all.first, all.end) < INSIDE_LEAST)
		return loop;
	Stmt *pieces = piece(&in, any.first, all.first, false);
	pieces = stmt_seq(pieces, piece(&in, all.first, all.end, true));
	pieces = stmt_seq(pieces, piece(&in, all.end, any.end, false));
	return stmt_instead(loop, pieces);
}

void split_inside(Tree *t, Stmt *s)
{
	for (; s; s = s->next) {
		Stmt *last = s->kind == STMT_LOOP ? cut(t, s) : s;
		for (Stmt *each = s;; each = each->next) {
			split_inside(t, each->body);
			split_inside(t, each->otherwise);
			if (each == last)
				break;
		}
		s = last;
	}
}

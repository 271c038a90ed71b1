/* inside.c - lanes without conditions: where conditions hold over most of a vector loop, or fail, the
 * inside runs without them, and only the ends have them.
 *
 * Input: a loop tree. Output: the same with vector loops cut in two or three. Invariant: every
 * iteration runs once, in the same order, and what is decided is decided for all values that the
 * loops around may have. */
#include "jit/tree/problem.h"

enum { CONDITIONS_MOST = 32 };

/* Borders of fewer vectors are narrow: what is left inside counts, and where a line of memory ends
 * does not. */
enum { SHORT = 16, SHORT_WIDTH = 8 };

typedef struct Inside {
	Ir *ir;
	Node *axis;
	int64_t first, end; /* of the loop */
	int64_t lo, hi;	    /* of its inside */
	int64_t width;	    /* lanes: the ends are whole vectors */
	int n;
	Node *cond[CONDITIONS_MOST], *inside[CONDITIONS_MOST]; /* what they are there */
} Inside;

/* first <= axis < end where rest + k*axis >= 0 whatever the rest is, in whole vectors. */
static void interval_of(const Inside *in, int64_t rest, int64_t k, int64_t *lo, int64_t *hi)
{
	*lo = in->first;
	*hi = in->end;
	if (k > 0) {
		int64_t from = -int_floor_div(rest, k) - in->first;
		if (from > 0)
			*lo += (from + in->width - 1) / in->width * in->width;
	} else {
		int64_t to = int_floor_div(rest, -k) + 1;
		if (to < in->end)
			*hi -= (in->end - to + in->width - 1) / in->width * in->width;
	}
}

bool cond_interval(Ir *ir, Node *cond, Node *axis, Node **lo, Node **hi)
{
	if (node_is_const(cond))
		return cond->u.i != 0;
	Node *e = condition_slack(ir, cond);
	int64_t k = e ? affine_stride(ir, e, axis) : 0;
	if (k == INT64_MIN || k == 0)
		return false;
	Node *rest = node_sub(ir, e, node_scale(ir, axis, k));
	if (k > 0) {
		Node *from = node_floordiv(ir, node_sub(ir, node_int(ir, k - 1), rest), k);
		*lo = node2(ir, OP_MAX, *lo, from);
	} else {
		Node *to = node_add(ir, node_floordiv(ir, rest, -k), node_int(ir, 1));
		*hi = node2(ir, OP_MIN, *hi, to);
	}
	return true;
}

/* Is e >= 0 over most of the loop? Then the inside is where it is, and there the condition has that
 * value. */
static bool decide(Inside *in, Node *cond, Node *e, bool value)
{
	int64_t k = affine_stride(in->ir, e, in->axis), lo, hi;
	if (k == INT64_MIN || k == 0)
		return false;
	Node *rest = node_sub(in->ir, e, node_scale(in->ir, in->axis, k));
	if (rest->lo < -((int64_t)1 << 40) || rest->lo > (int64_t)1 << 40)
		return false;
	interval_of(in, rest->lo, k, &lo, &hi);
	lo = lo > in->lo ? lo : in->lo;
	hi = hi < in->hi ? hi : in->hi;
	if (2 * (hi - lo) < in->end - in->first)
		return false;
	in->lo = lo;
	in->hi = hi;
	in->cond[in->n] = cond;
	in->inside[in->n++] = node_const_int(in->ir, RICCI_BOOL, value);
	return true;
}

/* A comparison that holds over most of the loop, or does not. */
static void see_condition(void *user, Node *n)
{
	Inside *in = user;
	Node *e = condition_slack(in->ir, n);
	if (!e || in->n == CONDITIONS_MOST || !node_has(n, in->axis))
		return;
	if (!decide(in, n, e, true))
		decide(in, n, node_sub(in->ir, node_int(in->ir, -1), e), false);
}

/* Iterations lo..hi-1 of the loop, with or without the conditions. */
static Stmt *piece(Tree *t, const Stmt *loop, const Inside *in, int64_t lo, int64_t hi)
{
	Stmt *body = NULL;
	int n = lo == in->lo && hi == in->hi ? in->n : 0;
	if (lo >= hi)
		return NULL;
	for (const Stmt *s = loop->body; s; s = s->next) {
		Stmt *same = s->kind == STMT_ALLOC ? stmt_alloc(t, s->buffer) : NULL;
		if (!same)
			same = stmt_store(t, s->buffer,
					  node_replace(t->ir, s->index, n, in->cond, in->inside),
					  node_replace(t->ir, s->value, n, in->cond, in->inside),
					  s->red);
		body = stmt_seq(body, same);
	}
	return stmt_loop(t, loop->how, loop->axis, node_int(t->ir, lo), node_int(t->ir, hi), body);
}

/* Cuts the loop in place; returns the last piece. */
static Stmt *cut(Tree *t, Stmt *loop, int64_t width)
{
	if (!node_is_const(loop->lo) || !node_is_const(loop->hi))
		return loop;
	Inside in = {.ir = t->ir, .axis = loop->axis};
	in.first = in.lo = loop->lo->u.i;
	in.end = in.hi = loop->hi->u.i;
	in.width = in.end - in.first < SHORT * width && width > SHORT_WIDTH ? SHORT_WIDTH : width;
	for (const Stmt *s = loop->body; s; s = s->next) {
		if (s->kind != STMT_STORE && s->kind != STMT_ALLOC)
			return loop;
		if (s->kind == STMT_STORE)
			node_walk(t->ir, s->value, see_condition, &in);
	}
	if (in.n == 0)
		return loop;
	Stmt *all = piece(t, loop, &in, in.first, in.lo);
	all = stmt_seq(all, piece(t, loop, &in, in.lo, in.hi));
	all = stmt_seq(all, piece(t, loop, &in, in.hi, in.end));
	Stmt *last = all->next ? all->next : loop;
	while (last->next)
		last = last->next;
	stmt_seq(all, loop->next);
	*loop = *all;
	return last;
}

void lower_inside(Tree *t, Stmt *s, int64_t width)
{
	for (; s; s = s->next) {
		if (s->kind == STMT_IF)
			lower_inside(t, s->otherwise, width);
		if (s->kind == STMT_IF || s->kind == STMT_LOOP)
			lower_inside(t, s->body, width);
		if (s->kind == STMT_LOOP && s->how == HOW_VECTOR)
			s = cut(t, s, width);
	}
}

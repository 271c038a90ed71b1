/* wrap.c - lanes whose index wraps around: X[(j+7) % n] is two lines, where each lane would be
 * fetched by itself.
 *
 * Input: a loop tree. Output: the same with vector loops cut where a quotient in them steps to its
 * next value, and is known in both pieces. Invariant: every iteration runs once, in the same order.
 */
#include "jit/tree/problem.h"

/* Cuts of a loop, which make code grow; shorter loops are not worth one. */
enum { CUTS_MOST = 4, LANES_LEAST = 32 };

typedef struct Wrap {
	Ir *ir;
	Node *axis;
	int64_t first, end; /* of the loop */
	Node *of, *by;	    /* what is divided, and by what; NULL: nothing that steps once */
	int64_t at, before; /* where it does, and the quotient before that */
} Wrap;

static void see_wrap(void *user, Node *n)
{
	Wrap *w = user;
	if (w->of || (n->op != OP_FLOORMOD && n->op != OP_FLOORDIV) || n->type != RICCI_I64 ||
	    !node_has(n->src[0], w->axis))
		return;
	int64_t step = affine_stride(w->ir, n->src[0], w->axis), by = n->src[1]->u.i;
	if (step == INT64_MIN || step <= 0)
		return;
	Node *rest = node_sub(w->ir, n->src[0], node_scale(w->ir, w->axis, step));
	if (!node_is_const(rest))
		return;
	int64_t from = int_floor_div(rest->u.i + step * w->first, by);
	if (int_floor_div(rest->u.i + step * (w->end - 1), by) != from + 1)
		return;
	w->of = n->src[0];
	w->by = n->src[1];
	w->before = from;
	w->at = -int_floor_div(rest->u.i - by * (from + 1), step);
}

static Wrap wrap_of(Tree *t, const Stmt *loop)
{
	Wrap w = {.ir = t->ir, .axis = loop->axis};
	if (loop->how != HOW_VECTOR || !node_is_const(loop->lo) || !node_is_const(loop->hi))
		return w;
	w.first = loop->lo->u.i;
	w.end = loop->hi->u.i;
	for (const Stmt *s = loop->body; s; s = s->next)
		if (s->kind != STMT_STORE && s->kind != STMT_ALLOC)
			return w;
	for (const Stmt *s = loop->body; s && !w.of; s = s->next)
		if (s->kind == STMT_STORE) {
			node_walk(t->ir, s->value, see_wrap, &w);
			node_walk(t->ir, s->index, see_wrap, &w);
		}
	return w;
}

/* Iterations lo..hi-1 of the loop, where the quotient is so much. */
static Stmt *piece(Tree *t, const Stmt *loop, const Wrap *w, int64_t lo, int64_t hi,
		   int64_t quotient)
{
	Node *rest = node_sub(t->ir, w->of, node_scale(t->ir, w->by, quotient));
	Node *from[] = {node_floormod(t->ir, w->of, w->by->u.i),
			node_floordiv(t->ir, w->of, w->by->u.i)};
	Node *to[] = {rest, node_int(t->ir, quotient)};
	Stmt *body = NULL;
	for (const Stmt *s = loop->body; s; s = s->next) {
		Stmt *same = s->kind == STMT_ALLOC ? stmt_alloc(t, s->buffer) : NULL;
		if (!same)
			same = stmt_store(
				t, s->buffer, node_replace(t->ir, s->index, COUNT(from), from, to),
				node_replace(t->ir, s->value, COUNT(from), from, to), s->red);
		body = stmt_seq(body, same);
	}
	return stmt_loop(t, loop->how, loop->axis, node_int(t->ir, lo), node_int(t->ir, hi), body);
}

/* Cuts the loop in place, and its pieces again; returns the last. */
static Stmt *cut(Tree *t, Stmt *loop, int cuts)
{
	Wrap w = wrap_of(t, loop);
	if (!w.of || cuts == 0 || w.end - w.first < LANES_LEAST)
		return loop;
	Stmt *next = loop->next;
	Stmt *head = piece(t, loop, &w, w.first, w.at, w.before);
	Stmt *tail = piece(t, loop, &w, w.at, w.end, w.before + 1);
	*loop = *head;
	loop->next = tail;
	tail->next = next;
	Stmt *last = cut(t, tail, cuts - 1);
	cut(t, loop, cuts - 1);
	return last;
}

void lower_wraps(Tree *t, Stmt *s)
{
	for (; s; s = s->next) {
		if (s->kind == STMT_IF)
			lower_wraps(t, s->otherwise);
		if (s->kind == STMT_IF || s->kind == STMT_LOOP)
			lower_wraps(t, s->body);
		if (s->kind == STMT_LOOP)
			s = cut(t, s, CUTS_MOST);
	}
}

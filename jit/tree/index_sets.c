/* index_sets.c - index-set splitting: loops are cut where what is in them changes once, and each
 * piece knows its own.
 *
 * Input: a loop tree. Output: the same with vector loops of plain stores cut by a rule: at the steps
 * of a quotient (X[(j+7) % n] is two lines, where each lane would be fetched by itself), where a
 * condition changes far from both ends (what was put side by side, the gradient of slices; loops
 * around vector loops are cut there, too), or where conditions hold over most of the loop, or fail,
 * so that its inside runs without them and only the ends have them. Invariant: every iteration runs once,
 * in the same order, and what is decided is decided for all values that the loops around may have. */
#include "jit/tree/problem.h"

enum { DECIDED_MOST = 32, SETS_MOST = 3 };

/* Iterations lo..hi-1, where these nodes are those. */
typedef struct IndexSet {
	int64_t lo, hi;
	int n;
	Node *from[DECIDED_MOST], *to[DECIDED_MOST];
} IndexSet;

/* A loop of plain stores between constant bounds: a vector loop, or a serial one, perhaps around some. */
typedef struct Lines {
	Ir *ir;
	Stmt *loop;
	Node *axis;
	int64_t first, end, width; /* lanes of a vector; 1 of a serial loop */
} Lines;

/* The sets of a loop, in order; 0: it stays as it is. */
typedef int RuleFn(const Lines *l, IndexSet set[SETS_MOST]);

static void walk_body(Ir *ir, const Stmt *s, bool indices, void (*see)(void *, Node *), void *user)
{
	for (; s; s = s->next)
		if (s->kind == STMT_LOOP) {
			walk_body(ir, s->body, indices, see, user);
		} else if (s->kind == STMT_STORE) {
			node_walk(ir, s->value, see, user);
			if (indices)
				node_walk(ir, s->index, see, user);
		}
}

static void walk_stores(const Lines *l, bool indices, void (*see)(void *, Node *), void *user)
{
	walk_body(l->ir, l->loop->body, indices, see, user);
}

/* ---- quotients that step once ---- */

/* Shorter loops are not worth a cut. */
enum { LANES_LEAST = 32 };

typedef struct Quotient {
	const Lines *lines;
	Node *of, *by;	    /* what is divided, and by what; NULL: nothing that steps once */
	int64_t at, before; /* where it does, and the quotient before that */
} Quotient;

static void see_quotient(void *user, Node *n)
{
	Quotient *q = user;
	const Lines *l = q->lines;
	if (q->of || (n->op != OP_FLOORMOD && n->op != OP_FLOORDIV) || n->type != RICCI_I64 ||
	    !node_has(n->src[0], l->axis))
		return;
	int64_t step = affine_stride(l->ir, n->src[0], l->axis), by = n->src[1]->u.i;
	if (step == INT64_MIN || step <= 0)
		return;
	Node *rest = node_sub(l->ir, n->src[0], node_scale(l->ir, l->axis, step));
	if (!node_is_const(rest))
		return;
	int64_t from = int_floor_div(rest->u.i + step * l->first, by);
	if (int_floor_div(rest->u.i + step * (l->end - 1), by) != from + 1)
		return;
	q->of = n->src[0];
	q->by = n->src[1];
	q->before = from;
	q->at = -int_floor_div(rest->u.i - by * (from + 1), step);
}

static IndexSet quotient_set(Ir *ir, const Quotient *q, int64_t lo, int64_t hi, int64_t quotient)
{
	Node *rest = node_sub(ir, q->of, node_scale(ir, q->by, quotient));
	return (IndexSet){.lo = lo,
			  .hi = hi,
			  .n = 2,
			  .from = {node_floormod(ir, q->of, q->by->u.i),
				   node_floordiv(ir, q->of, q->by->u.i)},
			  .to = {rest, node_int(ir, quotient)}};
}

static int quotient_sets(const Lines *l, IndexSet set[SETS_MOST])
{
	Quotient q = {.lines = l};
	if (l->end - l->first < LANES_LEAST)
		return 0;
	walk_stores(l, true, see_quotient, &q);
	if (!q.of)
		return 0;
	set[0] = quotient_set(l->ir, &q, l->first, q.at, q.before);
	set[1] = quotient_set(l->ir, &q, q.at, l->end, q.before + 1);
	return 2;
}

/* ---- conditions that change once, far from the ends ---- */

enum { PART_LEAST = 4 }; /* vectors; of a serial loop a part is an eighth at least */

/* rest + k*axis >= 0, where the rest is lo..hi. */
typedef struct Threshold {
	int64_t lo, hi, k;
} Threshold;

static bool threshold_of(const Lines *l, Node *cond, Threshold *t)
{
	const int64_t far = (int64_t)1 << 40;
	Node *e = node_has(cond, l->axis) ? condition_slack(l->ir, cond) : NULL;
	int64_t k = e ? affine_stride(l->ir, e, l->axis) : 0;
	if (k == INT64_MIN || k == 0)
		return false;
	Node *rest = node_sub(l->ir, e, node_scale(l->ir, l->axis, k));
	*t = (Threshold){rest->lo, rest->hi, k};
	return rest->lo >= -far && rest->hi <= far;
}

typedef enum { FAILS, HOLDS, DEPENDS } Value; /* on the rest */

static Value value_at(const Threshold *t, int64_t at)
{
	return t->lo + t->k * at >= 0 ? HOLDS : t->hi + t->k * at < 0 ? FAILS : DEPENDS;
}

/* The first axis at which rest + k*axis >= 0 is no longer what it was before. */
static int64_t change_at(int64_t rest, int64_t k)
{
	return k > 0 ? -int_floor_div(rest, k) : int_floor_div(rest, -k) + 1;
}

/* Vectors lo..hi-1 (counted from the loop's first) of which the change lies in; they are one, or none where it
 * lies between two. */
typedef struct Change {
	const Lines *lines;
	bool found;
	int64_t lo, hi;
} Change;

static void see_change(void *user, Node *n)
{
	Change *c = user;
	const Lines *l = c->lines;
	Threshold t;
	if (c->found || !threshold_of(l, n, &t))
		return;
	Value first = value_at(&t, l->first), last = value_at(&t, l->end - 1);
	if (first == DEPENDS || last == DEPENDS || first == last)
		return;
	/* From the first iteration with another value than the first has, to where all have it. */
	int64_t from = change_at(t.k > 0 ? t.hi : t.lo, t.k),
		to = change_at(t.k > 0 ? t.lo : t.hi, t.k),
		least = l->width > 1 ? PART_LEAST : (l->end - l->first + 7) / 8;
	c->lo = (from - l->first) / l->width;
	c->hi = (to - l->first + l->width - 1) / l->width;
	c->found = c->hi <= c->lo + 1 && c->lo >= least &&
		   c->hi + least <= (l->end - l->first) / l->width;
}

/* What a set knows. */
typedef struct Decided {
	const Lines *lines;
	IndexSet *set;
} Decided;

static void see_decided(void *user, Node *n)
{
	Decided *d = user;
	IndexSet *set = d->set;
	Threshold t;
	if (set->n == DECIDED_MOST || !threshold_of(d->lines, n, &t))
		return;
	Value first = value_at(&t, set->lo);
	if (first == DEPENDS || first != value_at(&t, set->hi - 1))
		return;
	set->from[set->n] = n;
	set->to[set->n++] = node_const_int(d->lines->ir, RICCI_BOOL, first == HOLDS);
}

static int change_sets(const Lines *l, IndexSet set[SETS_MOST])
{
	Change c = {.lines = l};
	walk_stores(l, false, see_change, &c);
	if (!c.found)
		return 0;
	int64_t lo = l->first + c.lo * l->width, hi = l->first + c.hi * l->width;
	set[0] = (IndexSet){.lo = l->first, .hi = lo};
	set[1] = (IndexSet){.lo = lo, .hi = hi};
	set[2] = (IndexSet){.lo = hi, .hi = l->end};
	for (int k = 0; k < 3; k++) {
		Decided d = {l, &set[k]};
		if (l->width == 1 && set[k].hi - set[k].lo == 1) { /* loops inside may be cut */
			set[k].from[set[k].n] = l->axis;
			set[k].to[set[k].n++] = node_int(l->ir, set[k].lo);
		} else if (k != 1) {
			walk_stores(l, false, see_decided, &d);
		}
	}
	return 3;
}

/* ---- conditions that hold over most of the loop, or fail ---- */

/* Borders of fewer vectors are narrow: what is left inside counts, and where a line of memory ends
 * does not. */
enum { SHORT = 16, SHORT_WIDTH = 8 };

typedef struct Inside {
	const Lines *lines;
	int64_t width; /* the ends are whole vectors */
	IndexSet set;
} Inside;

/* first <= axis < end where rest + k*axis >= 0 whatever the rest is, in whole vectors. */
static void interval_of(const Inside *in, int64_t rest, int64_t k, int64_t *lo, int64_t *hi)
{
	*lo = in->lines->first;
	*hi = in->lines->end;
	if (k > 0) {
		int64_t from = -int_floor_div(rest, k) - in->lines->first;
		if (from > 0)
			*lo += (from + in->width - 1) / in->width * in->width;
	} else {
		int64_t to = int_floor_div(rest, -k) + 1;
		if (to < in->lines->end)
			*hi -= (in->lines->end - to + in->width - 1) / in->width * in->width;
	}
}

/* Of e >= 0 the same condition without the quotient of the axis: x/d + r >= 0 where x + d*r >= 0, and
 * r - x/d >= 0 where d*r + d-1 - x >= 0. e itself where there is none, or another term has the axis. */
static Node *without_quotient(Ir *ir, Node *e, Node *axis)
{
	Affine a = affine_of(ir, e);
	int at = -1, has = 0;
	for (int k = 0; k < a.n; k++)
		if (node_has(a.atom[k], axis)) {
			has++;
			at = k;
		}
	Node *q = has == 1 ? a.atom[at] : NULL;
	if (!q || q->op != OP_FLOORDIV || !node_is_const(q->src[1]) ||
	    (a.k[at] != 1 && a.k[at] != -1))
		return e;
	int64_t d = q->src[1]->u.i;
	Node *rest = node_scale(ir, node_sub(ir, e, node_scale(ir, q, a.k[at])), d);
	return a.k[at] > 0 ? node_add(ir, rest, q->src[0])
			   : node_sub(ir, node_add(ir, rest, node_int(ir, d - 1)), q->src[0]);
}

bool slack_bound(Ir *ir, Node *e, Node *axis, Node **lo, Node **hi)
{
	int64_t k = e ? affine_stride(ir, e, axis) : 0;
	*lo = *hi = NULL;
	if (k == INT64_MIN || k == 0)
		return false;
	Node *rest = node_sub(ir, e, node_scale(ir, axis, k));
	if (k > 0)
		*lo = node_floordiv(ir, node_sub(ir, node_int(ir, k - 1), rest), k);
	else
		*hi = node_add(ir, node_floordiv(ir, rest, -k), node_int(ir, 1));
	return true;
}

bool cond_interval(Ir *ir, Node *cond, Node *axis, Node **lo, Node **hi)
{
	Node *from, *to;
	if (node_is_const(cond))
		return cond->u.i != 0;
	Node *e = condition_slack(ir, cond);
	e = e && node_has(e, axis) ? without_quotient(ir, e, axis) : e;
	if (!slack_bound(ir, e, axis, &from, &to))
		return false;
	*lo = from ? node2(ir, OP_MAX, *lo, from) : *lo;
	*hi = to ? node2(ir, OP_MIN, *hi, to) : *hi;
	return true;
}

/* Is e >= 0 over most of the loop? Then the inside is where it is, and there the condition has that
 * value. */
static bool decide(Inside *in, Node *cond, Node *e, bool value)
{
	const Lines *l = in->lines;
	IndexSet *set = &in->set;
	int64_t k = affine_stride(l->ir, e, l->axis), lo, hi;
	if (k == INT64_MIN || k == 0)
		return false;
	Node *rest = node_sub(l->ir, e, node_scale(l->ir, l->axis, k));
	if (rest->lo < -((int64_t)1 << 40) || rest->lo > (int64_t)1 << 40)
		return false;
	interval_of(in, rest->lo, k, &lo, &hi);
	lo = lo > set->lo ? lo : set->lo;
	hi = hi < set->hi ? hi : set->hi;
	if (2 * (hi - lo) < l->end - l->first)
		return false;
	set->lo = lo;
	set->hi = hi;
	set->from[set->n] = cond;
	set->to[set->n++] = node_const_int(l->ir, RICCI_BOOL, value);
	return true;
}

static void see_condition(void *user, Node *n)
{
	Inside *in = user;
	Ir *ir = in->lines->ir;
	Node *e = condition_slack(ir, n);
	if (!e || in->set.n == DECIDED_MOST || !node_has(n, in->lines->axis))
		return;
	if (!decide(in, n, e, true))
		decide(in, n, node_sub(ir, node_int(ir, -1), e), false);
}

static int condition_sets(const Lines *l, IndexSet set[SETS_MOST])
{
	bool narrow = l->end - l->first < SHORT * l->width && l->width > SHORT_WIDTH;
	Inside in = {.lines = l, .width = narrow ? SHORT_WIDTH : l->width};
	in.set.lo = l->first;
	in.set.hi = l->end;
	walk_stores(l, false, see_condition, &in);
	if (in.set.n == 0)
		return 0;
	set[0] = (IndexSet){.lo = l->first, .hi = in.set.lo};
	set[1] = in.set;
	set[2] = (IndexSet){.lo = in.set.hi, .hi = l->end};
	return 3;
}

/* ---- the pass ---- */

/* A rule, how often pieces are cut again, for code grows, and whether serial loops are cut, too. */
static const struct {
	RuleFn *sets;
	int cuts;
	bool serial;
} rules[] = {[SPLIT_QUOTIENTS] = {quotient_sets, 4, false},
	     [SPLIT_CHANGES] = {change_sets, 3, true},
	     [SPLIT_CONDITIONS] = {condition_sets, 1, false}};

/* Nothing but stores, in vector loops where they are in some, and what prefetches for these. */
static bool plain_stores(const Stmt *s, bool serial)
{
	bool plain = true;
	for (; s && plain; s = s->next)
		plain = s->kind == STMT_STORE || s->kind == STMT_ALLOC ||
			(serial && s->kind == STMT_PREFETCH) ||
			(serial && s->kind == STMT_LOOP && s->how == HOW_VECTOR &&
			 plain_stores(s->body, false));
	return plain;
}

static bool lines_of(Tree *t, Stmt *loop, SplitRule rule, int64_t width, Lines *l)
{
	bool serial = rules[rule].serial && loop->how == HOW_SERIAL;
	if ((!serial && loop->how != HOW_VECTOR) || !node_is_const(loop->lo) ||
	    !node_is_const(loop->hi) || !plain_stores(loop->body, serial))
		return false;
	*l = (Lines){.ir = t->ir,
		     .loop = loop,
		     .axis = loop->axis,
		     .first = loop->lo->u.i,
		     .end = loop->hi->u.i,
		     .width = serial ? 1 : width};
	return true;
}

/* Cuts the loop in place; returns its last piece. */
static Stmt *cut(Tree *t, Stmt *loop, SplitRule rule, int64_t width, int cuts)
{
	Lines l;
	IndexSet set[SETS_MOST];
	int n = cuts > 0 && lines_of(t, loop, rule, width, &l) ? rules[rule].sets(&l, set) : 0;
	Stmt *all = NULL, *next = loop->next, *last = loop;
	for (int k = 0; k < n; k++)
		if (set[k].lo < set[k].hi)
			all = stmt_seq(all, stmt_loop(t, loop->how, loop->axis,
						      node_int(t->ir, set[k].lo),
						      node_int(t->ir, set[k].hi),
						      stmt_replace(t, loop->body, set[k].n,
								   set[k].from, set[k].to)));
	if (!all)
		return loop;
	*loop = *all;
	for (Stmt *s = loop, *after; s; s = after) {
		after = s->next;
		last = cut(t, s, rule, width, cuts - 1);
	}
	last->next = next;
	return last;
}

void split_loops(Tree *t, Stmt *s, SplitRule rule, int64_t width)
{
	for (; s; s = s->next) {
		Stmt *last = s->kind == STMT_LOOP ? cut(t, s, rule, width, rules[rule].cuts) : s;
		for (Stmt *piece = s;; piece = piece->next) {
			if (piece->kind == STMT_IF)
				split_loops(t, piece->otherwise, rule, width);
			if (piece->kind == STMT_IF || piece->kind == STMT_LOOP)
				split_loops(t, piece->body, rule, width);
			if (piece == last)
				break;
		}
		s = last;
	}
}

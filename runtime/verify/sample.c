/* sample.c - at which elements a kernel's results are checked.
 *
 * Input: a task and how many points of its domain they may cost. Output: a Sample with the places
 * of each member's elements. Invariant: an element that is evaluated finds what it reads of earlier
 * members among theirs.
 */
#include "runtime/verify/verify.h"
#include <math.h>
#include <string.h>

static bool sample_dense(const Task *t)
{
	return t->sub.nmember > 1 || comp_is_dense(t->sub.member[0]);
}

/* Sums of more points are checked element by element. */
static const double scatter_points = 500e3;

bool sample_gathers(const Node *c)
{
	return !comp_is_dense(c) && comp_reduce(c) == RED_ADD && comp_points(c) > scatter_points;
}

/* Points that one element costs. */
static double element_cost(const Node *c)
{
	return sample_gathers(c) ? scatter_terms(c) : sample_length(c);
}

double sample_length(const Node *c)
{
	double n = comp_points(c) / (double)tensor_size(c);

	return n < 1 ? 1 : n;
}

uint64_t sample_next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* The first elements chosen lie in corners. */
enum { CORNERS = 8 };
static const double corner_points = 1e6; /* all corners cost no more, or not all are taken */

static int64_t pick_element(const Node *c, int i, uint64_t *state)
{
	int64_t at = 0;

	for (int d = 0; d < tensor_rank(c); d++) {
		int64_t n = tensor_extent(c, d), x;
		uint64_t how = sample_next(state) % 4;

		if (i < CORNERS)
			x = i >> d % 3 & 1 ? n - 1 : 0;
		else if (how == 0)
			x = (int64_t)(sample_next(state) % (uint64_t)(n < 4 ? n : 4));
		else if (how == 1)
			x = n - 1 - (int64_t)(sample_next(state) % (uint64_t)(n < 20 ? n : 20));
		else
			x = (int64_t)(sample_next(state) % (uint64_t)n);
		at = at * n + x;
	}
	return at;
}

static int sample_size(const Task *t, double points, double limit, int most)
{
	const Node *c = t->sub.member[0];
	double size = (double)tensor_size(c), cost = element_cost(c), n;

	if (!sample_dense(t) && !sample_gathers(c))
		return comp_points(c) <= limit ? (int)(size < most ? size : most) : 0;
	if (cost > limit)
		return 0;
	n = points / cost;
	if (n < CORNERS && CORNERS * cost <= fmin(limit, corner_points))
		n = CORNERS;
	n = n > most ? most : n < 1 ? 1 : n;
	return (int)(n > size ? size : n);
}

/* How many whole rows of a subgraph with rows are checked; 0: not even two. */
static int64_t sample_rows(const Subgraph *s, double points, double limit, int most)
{
	int64_t rows = subgraph_row_count(s), widest = 1, n;
	double each = 0;

	for (int k = 0; k < s->nmember; k++) {
		int64_t wide = tensor_size(s->member[k]) / rows;

		if (s->fold[k])
			continue;
		widest = wide > widest ? wide : widest;
		each += comp_points(s->member[k]) / (double)rows;
	}
	if (each > limit)
		return 0;
	n = points / each > 1e6 ? 1000000 : (int64_t)(points / each);
	n = n > most / widest ? most / widest : n;
	return n > rows ? rows : n > 1 ? n : 0;
}

const void *checking_given(const Checking *how, const Task *t, int k)
{
	Type type = (Type)t->sub.member[k]->type;
	int out = 0;

	for (int i = 0; i < k; i++)
		out += t->sub.stored[i];
	/* Kernels may hold more digits of 16-bit floats than they store. */
	return how->stored && t->sub.stored[k] && type != RICCI_F16 && type != RICCI_BF16
		       ? how->stored[out]
		       : NULL;
}

/* ---- what a few elements need: those of a fold of all rows, places of a row of that row ---- */
enum { FOLD_ELEMENTS = 6 };

typedef struct Needs {
	const Task *task;
	const Subgraph *sub;
	const Checking *how;
	Arena *arena;
	int places;	/* 0: elements of folds; or so many places of what else is stored */
	uint8_t **need; /* of member k: each element of a fold, each place in a row of others */
} Needs;

/* Elements of member k that are marked one by one. */
static int64_t need_size(const Subgraph *s, int k)
{
	return tensor_size(s->member[k]) / (s->fold[k] ? 1 : subgraph_row_count(s));
}

/* Where an index lies, ends included, when the places' axes of member k are at x and others anywhere. */
typedef struct Range {
	int64_t low, high;
} Range;

/* The range of a op k, where neither leaves the integers; any: where it lies whatever a is. */
static Range range_by(Op op, Range a, int64_t k, Range any)
{
	Range q = {int_floor_div(a.low, k ? k : 1), int_floor_div(a.high, k ? k : 1)};

	if (op == OP_MUL)
		return k < 0 ? (Range){a.high * k, a.low * k} : (Range){a.low * k, a.high * k};
	if (op == OP_FLOORDIV)
		return q;
	return q.low == q.high ? (Range){a.low - q.low * k, a.high - q.low * k} : any;
}

static Range index_range(const Subgraph *s, int k, const Node *i, const int64_t *x)
{
	const Range any = {i->lo, i->hi};
	Range a, b;
	int64_t least, most;

	for (int e = 0; i->op == OP_AXIS && e < rows_places(s, k); e++)
		if (comp_axis(s->member[k], rows_place(s, k, e)) == i)
			return (Range){x[e], x[e]};
	type_range((Type)i->type, &least, &most);
	if ((any.low == least && any.high == most) || /* it may wrap */
	    (i->op != OP_ADD && i->op != OP_SUB && i->op != OP_MUL && i->op != OP_FLOORDIV &&
	     i->op != OP_FLOORMOD))
		return any;
	a = index_range(s, k, i->src[0], x);
	b = index_range(s, k, i->src[1], x);
	if (i->op == OP_ADD)
		return (Range){a.low + b.low, a.high + b.high};
	if (i->op == OP_SUB)
		return (Range){a.low - b.high, a.high - b.low};
	return b.low == b.high ? range_by((Op)i->op, a, b.low, any) : any;
}

/* Marks the places of member m in the ranges of its dimensions from d on. */
static void need_mark(Needs *n, int m, int d, int64_t at, const Range *in)
{
	if (d == rows_places(n->sub, m)) {
		n->need[m][at] = 1;
		return;
	}
	int64_t extent = tensor_extent(n->sub->member[m], rows_place(n->sub, m, d));

	for (int64_t x = in[d].low; x <= in[d].high; x++)
		need_mark(n, m, d + 1, at * extent + x, in);
}

/* The places of member k, one after the other, and a number that tells apart those which some axes tell
 * apart. */
typedef struct Walk {
	int rank;
	int64_t x[RICCI_MAX_RANK], extent[RICCI_MAX_RANK], scale[RICCI_MAX_RANK], key, keys;
} Walk;

static void walk_next(Walk *w)
{
	for (int e = w->rank - 1; e >= 0; e--) {
		w->key += w->scale[e];
		if (++w->x[e] < w->extent[e])
			return;
		w->key -= w->scale[e] * w->extent[e];
		w->x[e] = 0;
	}
}

/* By the axes that the read's indices of places in member m depend on. */
static Walk walk_of(const Subgraph *s, int k, int m, const Node *read)
{
	Walk w = {.rank = rows_places(s, k), .keys = 1};

	for (int e = 0; e < w.rank; e++) {
		Node *axis = comp_axis(s->member[k], rows_place(s, k, e));
		bool used = false;

		for (int d = 0; d < rows_places(s, m) && !used; d++)
			used = node_has(read->src[1 + rows_place(s, m, d)], axis);
		w.extent[e] = tensor_extent(s->member[k], rows_place(s, k, e));
		w.scale[e] = used ? w.keys : 0;
		w.keys *= used ? w.extent[e] : 1;
	}
	return w;
}

/* What member m gives to a read in member k at k's marked elements or places: nothing where it is outside
 * of m, which a condition in k excludes. What is found by the same coordinates is marked once. */
static bool need_read(Needs *n, int k, int m, const Node *read)
{
	const Subgraph *s = n->sub;
	Walk w = walk_of(s, k, m, read);
	int64_t size = need_size(s, k);
	uint8_t *done = arena_alloc(n->arena, (size_t)w.keys);

	for (int64_t at = 0; done && at < size; at++, walk_next(&w)) {
		Range in[RICCI_MAX_RANK];

		if (!n->need[k][at] || done[w.key])
			continue;
		done[w.key] = 1;
		for (int d = 0; d < rows_places(s, m); d++) {
			int dim = rows_place(s, m, d);
			int64_t extent = tensor_extent(s->member[m], dim);

			in[d] = index_range(s, k, read->src[1 + dim], w.x);
			in[d].low = in[d].low < 0 ? 0 : in[d].low;
			in[d].high = in[d].high < extent ? in[d].high : extent - 1;
		}
		need_mark(n, m, 0, 0, in);
	}
	return done;
}

/* All reads of earlier members below e. False: no memory. */
static bool need_reads(Needs *n, int k, const Node *e, uint8_t *seen)
{
	bool good = true;
	int m = 0;

	if (seen[e->id])
		return true;
	seen[e->id] = 1;
	while (e->op == OP_READ && m < k && n->sub->member[m] != e->src[0])
		m++;
	if (e->op == OP_READ && m < k && !checking_given(n->how, n->task, m))
		good = need_read(n, k, m, e);
	for (int i = 0; i < e->nsrc && good; i++)
		if (!node_is_tensor(e->src[i]))
			good = need_reads(n, k, e->src[i], seen);
	return good;
}

static int64_t count_marks(const uint8_t *mark, int64_t size)
{
	int64_t n = 0;

	for (int64_t i = 0; mark && i < size; i++)
		n += mark[i];
	return n;
}

/* Marks what is asked for of member k. */
static void needs_ask(Needs *n, int k, uint64_t *state)
{
	const Subgraph *s = n->sub;
	const Chosen *chosen = n->how->chosen;
	bool fold = !n->places, asked = chosen && chosen->member == k;
	int most = chosen ? (asked ? chosen->n : 0) : fold ? FOLD_ELEMENTS : n->places;
	int64_t row, place;

	if (fold != s->fold[k] || (!fold && !s->stored[k]))
		return;
	if (!fold && most >= need_size(s, k) && !chosen)
		memset(n->need[k], 1, (size_t)need_size(s, k));
	for (int i = 0; i < most; i++) {
		place = asked ? chosen->at[i] : pick_element(s->member[k], fold ? i + 6 : i, state);
		if (!fold)
			rows_split(s, k, place, &row, &place);
		n->need[k][place] = 1;
	}
}

/* Marks what is asked for and all that it needs; the points that these cost, of all rows for folds and of
 * one row for places, < 0 where memory runs out. */
static double needs_find(Needs *n)
{
	const Subgraph *s = n->sub;
	uint64_t state = 88172645463325252u;
	double points = 0, rows = n->places ? 1 : (double)subgraph_row_count(s);

	n->need = arena_alloc(n->arena, (size_t)s->nmember * sizeof *n->need);
	for (int k = 0; n->need && k < s->nmember; k++)
		if (!(n->need[k] = arena_alloc(n->arena, (size_t)need_size(s, k))))
			return -1;
	for (int k = s->nmember - 1; n->need && k >= 0; k--) {
		const Node *c = s->member[k], *body = comp_body(c);

		needs_ask(n, k, &state);
		int64_t marks = count_marks(n->need[k], need_size(s, k));
		uint8_t *seen = marks ? arena_alloc(n->arena, (size_t)body->id + 1) : NULL;

		if (marks && (!seen || !need_reads(n, k, body, seen)))
			return -1;
		points += (double)marks * sample_length(c) * (s->fold[k] ? 1 : rows);
	}
	return n->need ? points : -1;
}

/* ---- the whole ---- */
static bool sample_room(Sample *s, int k, int64_t n)
{
	s->count[k] = (int)n;
	s->n = n > s->n ? (int)n : s->n;
	s->at[k] = arena_alloc(&s->arena, ((size_t)n + 1) * sizeof **s->at);
	s->value[k] = arena_alloc(&s->arena, ((size_t)n + 1) * sizeof(double));
	s->bound[k] = arena_alloc(&s->arena, ((size_t)n + 1) * sizeof(double));
	return s->at[k] && s->value[k] && s->bound[k];
}

/* Member k's elements where there are rows: of `n` rows all, or the places that are marked (some, NULL:
 * all), and what folds need of all rows (mark, NULL: none are checked). */
static bool sample_row_places(const Task *t, int k, int64_t n, const int64_t *row,
			      const uint8_t *some, const uint8_t *mark, Sample *s)
{
	const Subgraph *sub = &t->sub;
	int64_t all = sub->fold[k] ? 1 : subgraph_row_count(sub), wide = need_size(sub, k), at = 0;
	int64_t each = some ? count_marks(some, wide) : wide;

	if (sub->fold[k])
		n = 0;
	if (!sample_room(s, k, n * each + count_marks(mark, wide) * all))
		return false;
	for (int64_t r = 0; r < n; r++)
		for (int64_t i = 0; i < wide; i++)
			if (!some || some[i])
				s->at[k][at++] = rows_element(sub, k, row[r], i);
	for (int64_t i = 0; mark && i < wide; i++)
		for (int64_t r = 0; mark[i] && r < all; r++)
			s->at[k][at++] = sub->fold[k] ? i : rows_element(sub, k, r, i);
	return true;
}

/* The first row, the last, others; the last one alone, since strides count there. */
static void pick_rows(const Subgraph *sub, int64_t n, int64_t *row)
{
	uint64_t state = 88172645463325252u;
	int64_t all = subgraph_row_count(sub);

	for (int64_t r = 0; r < n; r++) {
		int64_t any = (int64_t)(sample_next(&state) % (uint64_t)all);

		row[r] = n > 1 && r == 0 ? 0 : r < 2 ? all - 1 : any;
	}
}

static bool any_fold(const Subgraph *s)
{
	bool any = false;

	for (int k = 0; k < s->nmember; k++)
		any = any || s->fold[k];
	return any;
}

static bool sample_places(const Task *t, int k, int n, const int64_t *chosen, Sample *s)
{
	const Node *c = t->sub.member[k];
	uint64_t state = 88172645463325252u;

	if (!sample_room(s, k, n))
		return false;
	for (int i = 0; i < n; i++)
		s->at[k][i] = chosen		    ? chosen[i]
			      : n == tensor_size(c) ? i
						    : pick_element(c, i, &state);
	return true;
}

static bool sample_init(int nmember, Sample *s)
{
	size_t n = (size_t)nmember;

	memset(s, 0, sizeof *s);
	s->nmember = nmember;
	s->count = arena_alloc(&s->arena, n * sizeof *s->count);
	s->at = arena_alloc(&s->arena, n * sizeof *s->at);
	s->value = arena_alloc(&s->arena, n * sizeof *s->value);
	s->bound = arena_alloc(&s->arena, n * sizeof *s->bound);
	return s->count && s->at && s->value && s->bound;
}

/* The rows of the chosen elements, each once. */
static int64_t chosen_rows(const Subgraph *sub, const Chosen *chosen, int64_t *row)
{
	int64_t n = 0, place, at;

	for (int i = 0; i < chosen->n; i++) {
		rows_split(sub, chosen->member, chosen->at[i], &row[n], &place);
		for (at = 0; row[at] != row[n]; at++)
			;
		n += at == n;
	}
	return n;
}

/* Rows, where there are any: those of the chosen elements, or as many as the points allow; of few rows
 * some places only. */
static bool rows_choose(const Task *t, const Checking *how, Arena *arena, Sample *s)
{
	const Subgraph *sub = &t->sub;
	const Chosen *chosen = how->chosen;
	Needs folds = {t, sub, how, arena, 0, NULL}, some = folds;
	bool fold = chosen && sub->fold[chosen->member];
	int64_t n = chosen ? 0 : sample_rows(sub, how->points, how->limit, how->most), most;
	double cost = any_fold(sub) ? needs_find(&folds) : 0, each = 0;
	bool good = cost >= 0, all = n > 0;

	if (good && !fold && !all) {
		some.places = how->most;
		each = needs_find(&some);
		good = each >= 0;
	}
	if (!chosen && !all)
		n = each > how->limit ? 0 : how->most < 2 || 2 * each > how->limit ? 1 : 2;
	most = chosen ? chosen->n : n;
	int64_t *row = arena_alloc(arena, ((size_t)most + 1) * sizeof *row);

	if (!good || !row)
		return false;
	if (!chosen)
		pick_rows(sub, n, row);
	else if (!fold)
		n = chosen_rows(sub, chosen, row);
	for (int k = 0; k < s->nmember && good; k++)
		good = sample_row_places(t, k, n, row, some.need ? some.need[k] : NULL,
					 cost > how->limit || !folds.need ? NULL : folds.need[k],
					 s);
	return good;
}

static bool sample_choose_rows(const Task *t, const Checking *how, Sample *s)
{
	Arena arena = {0};
	bool good = rows_choose(t, how, &arena, s);

	arena_free(&arena);
	return good;
}

bool sample_choose(const Task *t, const Checking *how, Sample *s)
{
	bool good = sample_init(t->sub.nmember, s);
	int n;

	if (t->sub.rows)
		return good && sample_choose_rows(t, how, s);
	n = how->chosen ? how->chosen->n : sample_size(t, how->points, how->limit, how->most);
	for (int k = 0; k < s->nmember && good; k++)
		good = sample_places(t, k, n, how->chosen ? how->chosen->at : NULL, s);
	return good;
}

bool sample_one(Sample *s, int64_t n)
{
	return sample_init(1, s) && sample_room(s, 0, n);
}

bool sample_complete(const Task *t, const Sample *s)
{
	bool all = s->n > 0;

	for (int k = 0; k < s->nmember; k++)
		all = all && (!t->sub.stored[k] || s->count[k] > 0);
	return all;
}

bool sample_like(const Sample *s, Sample *out)
{
	bool good = sample_init(s->nmember, out);

	for (int k = 0; k < s->nmember && good; k++) {
		good = sample_room(out, k, s->count[k]);
		if (good)
			memcpy(out->at[k], s->at[k], (size_t)s->count[k] * sizeof **s->at);
	}
	return good;
}

void sample_free(Sample *s)
{
	arena_free(&s->arena);
}

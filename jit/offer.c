/* offer.c - the schedules offered for a task.
 *
 * Input: a task. Output: a few schedules, the one that its structure suggests first. Invariant:
 * every offered schedule fits the task. */
#include "jit/lower.h"

#include <math.h>
#include <string.h>

/* Prices that differ by less are the same; offers of so many times the least are no offers. */
static const double CLOSE = 1.25, HOPELESS = 4;
/* Stages are offered where they cost no more than this part of panels; and if that is rough, where their loop tree without
 * the products costs no more than so many times panels: conditions in it are often priced twice as high as they are. */
static const double STAGED = 0.9, AROUND = 3;

/* Ways to run p as panels: the best few of ours, the libraries', our others. *price: of the first. */
static int offer_panels(Problem *p, const Target *target, int room, Schedule *out, double *price)
{
	enum { BEST = 3 };
	Schedule called[4];
	/* No library is the first: opening it would delay every start. */
	int ncalled = room > 1 ? library_offers(p, target, COUNT(called), called) : 0;
	int n = contract_offers(p, target, room - ncalled, out, price);
	int best = n < BEST ? n : BEST;
	memmove(out + best + ncalled, out + best, (size_t)(n - best) * sizeof *out);
	memcpy(out + best, called, (size_t)ncalled * sizeof *out);
	return n + ncalled;
}

static void to_front(Schedule *s, double *price, int at)
{
	Schedule first = s[at];
	double least = price[at];
	memmove(s + 1, s, (size_t)at * sizeof *s);
	memmove(price + 1, price, (size_t)at * sizeof *price);
	s[0] = first;
	price[0] = least;
}

/* Puts the cheapest first, of those that cost the same the one that came first; then the others as they
 * came, but for hopeless ones. What has no price stays where it is. Returns how many are left, and the
 * least price. */
static int order_nests(const Task *t, const Target *target, int n, Schedule *s, double *least)
{
	double price[NEST_OFFERS];
	int at = 0, left = 0;
	*least = INFINITY;
	for (int k = 0; k < n; k++) {
		price[k] = lower_price(t, &s[k], target);
		*least = price[k] < *least ? price[k] : *least;
	}
	while (at < n && isfinite(price[at]) && price[at] > CLOSE * *least)
		at++;
	if (at < n)
		to_front(s, price, at);
	for (int k = 0; k < n; k++)
		if (!isfinite(price[k]) || price[k] <= HOPELESS * *least)
			s[left++] = s[k];
	return left;
}

static int offer_nests(const Task *t, const Problem *p, const Target *target, Schedule *out,
		       double *price)
{
	int n = 0;
	for (int v = 0; v < NEST_OFFERS; v++) { /* register tiles, the last two, come first */
		nest_offer(p, target, (v + NEST_OFFERS - 2) % NEST_OFFERS, &out[n]);
		n += schedule_is_new(out, n);
	}
	return order_nests(t, target, n, out, price);
}

/* Results that are a good part of what the last cache holds may be written past it. Of rows the step
 * stands before those of their members. */
static bool offer_stream(const Task *t, const Target *target, Schedule *s)
{
	int64_t least = (int64_t)target->l3 / 4;
	bool large = false;
	for (int k = 0; k < t->sub.nmember; k++)
		large |= t->sub.stored[k] && (int64_t)tensor_bytes(t->sub.member[k]) >= least;
	if (!large || !least)
		return false;
	return schedule_insert(s, t->sub.rows ? 1 : s->n, STEP_STREAM, 0, least);
}

/* What schedules are looked for in a scratch Ir: so many at most; how many were found. */
typedef struct Search {
	const Task *task;
	const Target *target;
	int room, n;
	Schedule *out;
	bool stages; /* they may be in stages */
	bool tile;   /* direct nests: with a register tile */
} Search;
typedef void SearchFn(Ir *ir, Search *s);

static bool search_entered(Ir *ir, SearchFn *find, Search *s)
{
	IR_ENTER(ir, false);
	find(ir, s);
	IR_LEAVE(ir);
	return true;
}

/* Nothing is found where there is no memory. */
static int search_run(SearchFn *find, Search s)
{
	Ir ir;
	ir_init(&ir);
	int n = search_entered(&ir, find, &s) ? s.n : 0;
	ir_free(&ir);
	return n;
}

/* Adds n schedules to those that were found, as far as there is room. */
static void take(Search *s, int n, const Schedule *from)
{
	for (int k = 0; k < n && s->n < s->room; k++)
		s->out[s->n++] = from[k];
}

/* Stages that are worth it beside panels of *price, which becomes theirs. */
static bool offer_stages(Ir *ir, const Search *s, double *price, Schedule *out)
{
	double panels = *price, staged;
	bool rough;
	if (!s->stages || env_unfused("winograd") ||
	    !stages_offer(ir, &s->task->sub, s->target, STAGED * panels, out, &staged, &rough) ||
	    (rough && lower_price_around(s->task, out, s->target) > AROUND * panels))
		return false;
	*price = staged;
	return true;
}

static void offer_single(Ir *ir, Search *s)
{
	enum { BESIDE = 2 }; /* nests beside panels: each takes compiling, and time for trials */
	const Target *target = s->target;
	Problem *p = problem_new(tree_new(ir), &s->task->sub, NULL);
	Schedule panels[16], staged, nests[NEST_OFFERS + 1];
	double panel = INFINITY, nest = INFINITY;
	if (!p)
		return;
	int npanel = offer_panels(p, target, s->room > 1 ? COUNT(panels) - 1 : 1, panels, &panel);
	if (npanel && offer_stages(ir, s, &panel, &staged)) {
		memmove(panels + 1, panels, (size_t)npanel++ * sizeof *panels);
		panels[0] = staged;
	}
	int nnest = offer_nests(s->task, p, target, nests, &nest);
	if (p->red == RED_NONE && !p->scatter) {
		nests[nnest] = nests[0];
		nnest += offer_stream(s->task, target, &nests[nnest]);
	}
	bool first = panel < nest && !nest_carries(p);
	if (first)
		take(s, npanel, panels);
	if (!first || nest <= HOPELESS * panel)
		take(s, first && nnest > BESIDE ? BESIDE : nnest, nests);
	if (!first && panel <= HOPELESS * nest)
		take(s, npanel, panels);
}

/* (n is that of the loops.) */
static void count_axes(Ir *ir, Search *s)
{
	const Problem *p = problem_new(tree_new(ir), &s->task->sub, NULL);
	s->n = p ? p->naxis : 0;
}

int schedule_axes(const Task *t)
{
	int n = 0;
	if (!t->sub.rows)
		return search_run(count_axes, (Search){.task = t});
	for (int k = 0; k < t->sub.nmember; k++) {
		int mine = comp_naxis(t->sub.member[k]) - t->sub.rows;
		n = mine > n ? mine : n;
	}
	return n;
}

/* The prices of all schedules of loop k; returns the first of those that cost about the least. */
static int price_loop(const Task *t, const Target *target, const RowOffer *r, int k, double *price)
{
	const RowLoop *l = &r->loop[k];
	double least = INFINITY;
	int best = 0;
	for (int i = 0; i < l->n; i++) {
		bool panels = l->panels && i == 0;
		price[i] = panels ? l->price : l->n > 1 ? lower_loop_price(t, r, k, i, target) : 0;
		least = price[i] < least ? price[i] : least;
	}
	while (price[best] > CLOSE * least)
		best++;
	return best;
}

/* Each loop of rows has the schedule that is best for it by itself; then the same variant for all loops,
 * but for hopeless ones. */
static void offer_rows(Ir *ir, Search *s)
{
	const Task *t = s->task;
	RowOffer r;
	double price[NEST_OFFERS + 1], best = 0, same[NEST_OFFERS] = {0};
	if (!rows_offer(ir, &t->sub, s->target, false, &r))
		return;
	int *pick = arena_alloc(&ir->arena, ((size_t)r.n + 1) * sizeof *pick);
	for (int k = 0; k < r.n; k++) {
		pick[k] = price_loop(t, s->target, &r, k, price);
		best += price[pick[k]];
		for (int v = 0; v < NEST_OFFERS; v++)
			same[v] += price[r.loop[k].variant[v]];
	}
	rows_schedule(&r, pick, &s->out[s->n++]);
	for (int v = 0; v < NEST_OFFERS && s->n < s->room; v++)
		if (same[v] <= HOPELESS * best) {
			rows_variant(ir, &r, v, &s->out[s->n]);
			s->n += schedule_is_new(s->out, s->n);
		}
	if (s->n < s->room) {
		s->out[s->n] = s->out[0];
		s->n += offer_stream(t, s->target, &s->out[s->n]);
	}
}

static void offer_grid(Ir *ir, Search *s)
{
	Schedule tiles[8], nests[GRID_OFFERS], called[4];
	double price;
	int nnest = 0;
	if (s->task->sub.rows) {
		s->n = rows_grid_offers(ir, &s->task->sub, s->target, s->room, s->out);
		return;
	}
	Problem *p = problem_new(tree_new(ir), &s->task->sub, NULL);
	if (!p)
		return;
	int ntile = contract_grid_offers(p, s->target, COUNT(tiles), tiles, &price);
	/* No library is the first: opening it would delay every start. */
	int ncalled = s->room > 1 ? library_grid_offers(p, s->target, COUNT(called), called) : 0;
	for (int v = 0; v < GRID_OFFERS; v++) {
		nest_grid_offer(p, s->target, v, &nests[nnest]);
		nnest += schedule_is_new(nests, nnest);
	}
	bool first = isfinite(price) && ntile > 0;
	take(s, 1, first ? tiles : nests);
	take(s, ncalled, called);
	if (first)
		take(s, ntile - 1, tiles + 1);
	take(s, first ? nnest : nnest - 1, first ? nests : nests + 1);
	if (!first)
		take(s, ntile, tiles);
}

static int offers(const Task *t, const Target *target, bool stages, int room, Schedule *out)
{
	SearchFn *find = target->units ? offer_grid : t->sub.rows ? offer_rows : offer_single;
	int n = search_run(
		find,
		(Search){.task = t, .target = target, .room = room, .out = out, .stages = stages});
	if (n == 0 && room > 0) { /* plain nests; where there is no memory, lowering will say so */
		memset(out, 0, sizeof *out);
		if (target->units)
			schedule_add(out, STEP_THREADS, 0, 1);
		else if (t->sub.rows)
			schedule_add(out, STEP_ROWS, 0, t->sub.rows);
		n = 1;
	}
	return n;
}

int schedule_offers(const Task *t, const Target *target, int room, Schedule *out)
{
	return offers(t, target, room > 1, room, out);
}

void schedule_default(const Task *t, const Target *target, bool optimised, Schedule *s)
{
	if (offers(t, target, optimised, 1, s) < 1)
		s->n = 0;
}

/* Does s vectorise a loop of a reduced axis? */
static bool lanes_reduced(const Problem *p, const Schedule *s)
{
	int loops = p->naxis, of[COMP_MAX_AXES + COUNT(s->step)];
	bool reduced = false;
	for (int k = 0; k < p->naxis; k++)
		of[k] = k;
	for (int k = 0; k < s->n; k++)
		if (s->step[k].kind == STEP_SPLIT)
			of[loops++] = of[s->step[k].axis];
		else if (s->step[k].kind == STEP_VECTORISE)
			reduced |= of[s->step[k].axis] >= p->nspatial;
	return reduced;
}

/* A second spatial axis inside the sums, by fours, so that more of them are under way at once: a
 * register tile with the lanes. Without parts, of which a single thread has no use. */
static void register_tile(const Problem *p, Schedule *s)
{
	enum { TILE = 4 };
	int loops = p->naxis, lanes = -1, axis = -1;
	int of[COMP_MAX_AXES + COUNT(s->step)];
	Schedule out = {0};
	for (int k = 0; k < p->naxis; k++)
		of[k] = k;
	for (int k = 0; k < s->n; k++) {
		const ScheduleStep *t = &s->step[k];
		if (t->kind == STEP_RFACTOR || t->kind == STEP_CARRY || t->kind == STEP_JOIN)
			return;
		if (t->kind == STEP_SPLIT)
			of[loops++] = of[t->axis];
		if (t->kind == STEP_VECTORISE)
			lanes = of[t->axis];
		if (t->kind != STEP_PARALLEL)
			schedule_add(&out, (StepKind)t->kind, t->axis, t->arg);
	}
	for (int k = 0; k < p->nspatial; k++)
		if (k != lanes && axis_extent(p->axis[k]) % TILE == 0)
			axis = k;
	if (p->red != RED_ADD || p->scatter || lanes < 0 || lanes >= p->nspatial || axis < 0 ||
	    p->naxis == p->nspatial || out.n + 2 > COUNT(out.step))
		return;
	schedule_add(&out, STEP_SPLIT, axis, TILE);
	schedule_add(&out, STEP_MOVE, loops, loops - 1);
	*s = out;
}

static void find_direct(Ir *ir, Search *s)
{
	const Subgraph *sub = &s->task->sub;
	Problem *p = sub->rows ? NULL : problem_new(tree_new(ir), sub, NULL);
	RowOffer r;
	if (sub->rows && rows_offer(ir, sub, s->target, true, &r))
		rows_variant(ir, &r, 0, s->out);
	if (!p)
		return;
	nest_offer(p, s->target, 0, s->out);
	for (int v = 1; v < NEST_OFFERS && lanes_reduced(p, s->out); v++)
		nest_offer(p, s->target, v, s->out);
	if (lanes_reduced(p, s->out))
		nest_offer(p, s->target, 0, s->out);
	if (s->tile)
		register_tile(p, s->out);
}

void schedule_direct(const Task *t, const Target *target, bool tile, Schedule *out)
{
	memset(out, 0, sizeof *out);
	if (t->sub.rows)
		schedule_add(out, STEP_ROWS, 0, t->sub.rows);
	search_run(find_direct, (Search){.task = t, .target = target, .out = out, .tile = tile});
}

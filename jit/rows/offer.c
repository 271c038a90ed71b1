/* offer.c - schedules for equations that run row by row.
 *
 * Input: a subgraph with rows. Output: for each loop of a row the schedules that it may have, of direct
 * nests or of a contraction by panels; and the schedule of all loops for a choice among these, each
 * behind its `member`. Invariant: every schedule says all that lowering needs; a loop whose steps have no
 * room is a plain nest. */
#include "jit/rows/internal.h"

#include <string.h>

/* The loops of a row, as problems. */
typedef struct RowProblems {
	int dims, n, *member, npanels;
	bool products; /* one adds up products: with fewer rows it may be worth panels */
	Problem **p;
	Schedule **panels; /* NULL: direct nests are better */
	double *price;	   /* of these, for all rows */
} RowProblems;

/* False: no memory, or nothing that one kernel can do. */
static bool row_problems(Ir *ir, const Subgraph *sub, int dims, const Target *target, bool direct,
			 RowProblems *r)
{
	size_t room = (size_t)sub->nmember + 1;
	RowKernel *b = arena_alloc(&ir->arena, sizeof *b);
	Schedule *s = arena_alloc(&ir->arena, sizeof *s);
	row_kernel_init(b, tree_new(ir), sub, (RowsHead){.dims = dims, .stream = INT64_MAX});
	*r = (RowProblems){.dims = dims,
			   .member = arena_alloc(&ir->arena, room * sizeof *r->member),
			   .p = arena_alloc(&ir->arena, room * sizeof *r->p),
			   .panels = arena_alloc(&ir->arena, room * sizeof *r->panels),
			   .price = arena_alloc(&ir->arena, room * sizeof *r->price)};
	for (int k = 0; k < sub->nmember; k = b->loops->end[k]) {
		Problem *p = row_problem(b, k);
		if (!p)
			return false;
		r->member[r->n] = k;
		r->products |= p->red == RED_ADD && p->body->op == OP_MUL;
		if (!direct && contract_piece_offer(p, target, s, &r->price[r->n])) {
			r->panels[r->n] = s;
			r->price[r->n] *= (double)rows_count(sub, dims);
			r->npanels++;
			s = arena_alloc(&ir->arena, sizeof *s);
		}
		r->p[r->n++] = p;
	}
	return true;
}

/* Those with as many dimensions as rows as leave most contractions whole. */
static bool best_problems(Ir *ir, const Subgraph *sub, const Target *target, bool direct,
			  RowProblems *best)
{
	RowProblems r;
	if (!row_problems(ir, sub, sub->best, target, direct, best))
		return false;
	for (int dims = sub->best - 1; dims > 0 && best->products && !direct; dims--)
		if (row_problems(ir, sub, dims, target, direct, &r) && r.npanels > best->npanels)
			*best = r;
	return true;
}

/* Of one loop, without what only a kernel of its own has: rows are the parts. */
static Schedule without_parts(const Schedule *own)
{
	Schedule s = {0};
	for (int k = 0; k < own->n; k++) {
		const ScheduleStep *p = &own->step[k];
		if (p->kind != STEP_PARALLEL && p->kind != STEP_RFACTOR)
			schedule_add(&s, (StepKind)p->kind, p->axis, p->arg);
	}
	return s;
}

/* The schedules of a loop: one by panels, where there are any, and the different ones among the variants of a nest. */
static void loop_schedules(Ir *ir, const RowProblems *r, int k, const Target *target, RowLoop *l)
{
	Schedule own;
	l->member = r->member[k];
	l->schedule = arena_alloc(&ir->arena, ((size_t)NEST_OFFERS + 1) * sizeof own);
	l->panels = r->panels[k];
	l->price = r->price[k];
	if (l->panels)
		l->schedule[l->n++] = without_parts(r->panels[k]);
	for (int v = 0; v < NEST_OFFERS; v++) {
		nest_offer(r->p[k], target, v, &own);
		l->schedule[l->n] = without_parts(&own);
		while (memcmp(&l->schedule[l->variant[v]], &l->schedule[l->n], sizeof own))
			l->variant[v]++;
		l->n += l->variant[v] == l->n;
	}
	if (l->panels)
		l->variant[0] = 0;
}

void rows_schedule(const RowOffer *r, const int *pick, Schedule *s)
{
	memset(s, 0, sizeof *s);
	schedule_add(s, STEP_ROWS, 0, r->dims);
	for (int k = 0; k < r->n; k++)
		schedule_append(s, STEP_MEMBER, r->loop[k].member, &r->loop[k].schedule[pick[k]]);
}

bool rows_offer(Ir *ir, const Subgraph *sub, const Target *target, bool direct, RowOffer *r)
{
	RowProblems p;
	if (!best_problems(ir, sub, target, direct, &p))
		return false;
	*r = (RowOffer){p.dims, p.n, arena_alloc(&ir->arena, ((size_t)p.n + 1) * sizeof *r->loop)};
	for (int k = 0; k < p.n; k++)
		loop_schedules(ir, &p, k, target, &r->loop[k]);
	return true;
}

void rows_variant(Ir *ir, const RowOffer *r, int variant, Schedule *s)
{
	int *pick = arena_alloc(&ir->arena, ((size_t)r->n + 1) * sizeof *pick);
	for (int k = 0; k < r->n; k++)
		pick[k] = r->loop[k].variant[variant];
	rows_schedule(r, pick, s);
}

/* ---- on a grid ---- */

enum { SHORT_ROW = 32, THREADS_LEAST = 32, THREADS_MOST = 256, RESIDENT = 1024 };

/* The most points of a loop over a row, as far as that matters. */
static int64_t longest_loop(const RowProblems *r)
{
	int64_t most = 1;
	for (int k = 0; k < r->n; k++) {
		int64_t n = 1;
		for (int a = 0; a < r->p[k]->naxis && n < GRID_THREADS_MOST; a++)
			n *= axis_extent(r->p[k]->axis[a]);
		most = n > most ? n : most;
	}
	return most;
}

/* Short rows have a thread each, others a block with about a thread for each place. */
static void rows_grid_schedule(const RowProblems *r, bool single, int threads, Schedule *s)
{
	memset(s, 0, sizeof *s);
	schedule_add(s, STEP_ROWS, 0, r->dims);
	schedule_add(s, STEP_THREADS, 0, threads);
	if (single)
		schedule_add(s, STEP_PARALLEL, 0, 1);
	for (int k = 0; k < r->n && !single; k++) {
		Schedule own;
		nest_block_offer(r->p[k], threads, &own);
		if (!schedule_append(s, STEP_MEMBER, r->member[k], &own))
			return;
	}
}

int rows_grid_offers(Ir *ir, const Subgraph *sub, const Target *target, int room, Schedule *out)
{
	RowProblems r;
	bool folds = false;
	int n = 0, threads = THREADS_LEAST;
	if (!row_problems(ir, sub, sub->best, target, true, &r))
		return 0;
	for (int k = 0; k < sub->nmember; k++)
		folds |= sub->fold[k];
	int64_t points = longest_loop(&r);
	bool single = !folds && points <= SHORT_ROW;
	/* More, where there are few rows. */
	int64_t rows = subgraph_row_count(sub), wanted = (int64_t)target->units * RESIDENT;
	while (threads < points && threads < RESIDENT &&
	       (threads < THREADS_MOST || rows * threads < wanted))
		threads *= 2;
	const int way[] = {threads, threads < RESIDENT ? 2 * threads : threads, threads / 2};
	for (int v = 0; v < COUNT(way) && n < room; v++) {
		rows_grid_schedule(&r, single, single ? THREADS_MOST >> v : way[v], &out[n]);
		n += schedule_is_new(out, n);
	}
	return n;
}

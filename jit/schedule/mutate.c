/* mutate.c - random changes of schedules, what searches walk through the space by.
 *
 * Input: schedules and a random state. Output: a schedule close by. It need not fit its task:
 * lowering refuses what does not, and that costs less than knowing before. */
#include "jit/schedule/schedule.h"

#include <string.h>

uint64_t random_below(uint64_t *state, uint64_t n)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % n;
}

/* A power of two, or three of them. */
static int64_t random_size(uint64_t *state)
{
	int64_t power = INT64_C(1) << (1 + random_below(state, 11));
	return random_below(state, 4) ? power : 3 * power / 2;
}

static int loop_count(const Schedule *s, int naxis)
{
	for (int k = 0; k < s->n; k++)
		naxis += s->step[k].kind == STEP_SPLIT;
	return naxis;
}

static void swap_steps(Schedule *s, int a, int b)
{
	ScheduleStep t = s->step[a];
	s->step[a] = s->step[b];
	s->step[b] = t;
}

/* Another number, or another loop, for one step. */
static void change_step(Schedule *s, int loops, uint64_t *state)
{
	static const int way[] = {TENSORISE_SWAP, TENSORISE_SWAP, TENSORISE_NARROW,
				  TENSORISE_PADDED, TENSORISE_TRANSPOSED};
	ScheduleStep *p = &s->step[random_below(state, (uint64_t)s->n)];
	switch (p->kind) {
	case STEP_SPLIT:
		p->arg = random_size(state);
		break;
	case STEP_BLOCK: /* near what it was: blocks follow from cache sizes */
		p->arg = p->arg * (int64_t)(1 + random_below(state, 7)) / 4;
		p->arg = p->arg < 1 ? 1 : p->arg;
		break;
	case STEP_TENSORISE:
		p->arg ^= way[random_below(state, COUNT(way))];
		break;
	case STEP_UNPACKED:
		p->arg = (int64_t)random_below(state, 3);
		break;
	case STEP_RFACTOR: /* of panels, or of loops */
		p->arg = s->step[0].kind == STEP_TENSORISE ? INT64_C(1) << random_below(state, 6)
							   : (int64_t)random_below(state, 3);
		break;
	case STEP_STREAM:
		p->arg = INT64_C(1) << random_below(state, 26);
		break;
	case STEP_SHARE:
		p->arg = (int64_t)random_below(state, 4);
		break;
	case STEP_LIBRARY:
		p->arg = !p->arg;
		break;
	case STEP_THREADS:
		p->arg = INT64_C(32) << random_below(state, 6);
		break;
	case STEP_TILE:
		p->arg = INT64_C(1) << random_below(state, 5);
		break;
	case STEP_THREAD:
		if (random_below(state, 2))
			p->arg = !p->arg;
		else
			p->axis = (int)random_below(state, (uint64_t)loops);
		break;
	case STEP_PARALLEL:
		p->arg = (int64_t)random_below(state, 4);
		break;
	case STEP_CACHE_READ:
		p->arg = (int64_t)random_below(state, (uint64_t)loops);
		break;
	case STEP_MOVE:
		if (random_below(state, 2))
			p->arg = (int64_t)random_below(state, (uint64_t)loops);
		else
			p->axis = (int)random_below(state, (uint64_t)loops);
		break;
	case STEP_VECTORISE: /* and to the innermost place */
		if (s->n == COUNT(s->step))
			break;
		p->axis = (int)random_below(state, (uint64_t)loops);
		schedule_add(s, STEP_MOVE, p->axis, loops - 1);
		swap_steps(s, (int)(p - s->step), s->n - 1);
		break;
	default: /* unroll */
		p->axis = (int)random_below(state, (uint64_t)loops);
	}
}

/* Without its threads a schedule is none of a grid. */
static void remove_step(Schedule *s, uint64_t *state)
{
	int at = (int)random_below(state, (uint64_t)s->n);
	if (s->step[at].kind == STEP_THREADS)
		return;
	memmove(s->step + at, s->step + at + 1, (size_t)(s->n - at - 1) * sizeof *s->step);
	s->n--;
}

static int64_t random_argument(StepKind k, int loops, uint64_t *state)
{
	switch (k) {
	case STEP_SPLIT:
		return random_size(state);
	case STEP_MOVE:
	case STEP_CACHE_READ:
		return (int64_t)random_below(state, (uint64_t)loops);
	case STEP_RFACTOR:
		return 1;
	case STEP_STREAM:
		return INT64_C(1) << random_below(state, 26);
	case STEP_THREAD:
		return (int64_t)random_below(state, 2);
	case STEP_TILE:
		return INT64_C(2) << random_below(state, 4);
	default:
		return 0;
	}
}

/* Before the last step, which is usually the number of parallel loops. */
static void insert_step(Schedule *s, int loops, uint64_t *state)
{
	static const StepKind kind[] = {STEP_SPLIT,  STEP_MOVE,	      STEP_UNROLL,
					STEP_MOVE,   STEP_CACHE_READ, STEP_RFACTOR,
					STEP_STREAM, STEP_CARRY,      STEP_JOIN};
	StepKind k = kind[random_below(state, COUNT(kind))];
	int axis = (int)random_below(state, (uint64_t)loops), last = s->n - 1;
	if (s->n == COUNT(s->step))
		return;
	schedule_add(s, k, axis, random_argument(k, loops, state));
	if (k == STEP_CARRY || k == STEP_JOIN) /* the first of all */
		last = 0;
	if (last >= 0)
		swap_steps(s, last, s->n - 1);
}

/* On a grid loops run along threads as well; a part of one does, mostly. */
static void insert_grid_step(Schedule *s, int loops, uint64_t *state)
{
	static const StepKind kind[] = {STEP_SPLIT,  STEP_MOVE,	   STEP_UNROLL, STEP_MOVE,
					STEP_THREAD, STEP_RFACTOR, STEP_TILE};
	StepKind k = kind[random_below(state, COUNT(kind))];
	int axis = (int)random_below(state, (uint64_t)loops);
	bool splits = k == STEP_THREAD && random_below(state, 4);
	if (s->n + splits >= COUNT(s->step) || (k == STEP_TILE && schedule_find(s, k)))
		return;
	if (splits) {
		schedule_add(s, STEP_SPLIT, axis, INT64_C(2) << random_below(state, 8));
		axis = loops;
	}
	schedule_add(s, k, k == STEP_TILE ? 0 : axis, random_argument(k, loops, state));
}

/* ---- of contractions on a grid: sizes are powers of two, and the threads follow from them ---- */

static ScheduleStep *find_step(Schedule *s, StepKind kind, int axis)
{
	for (int k = 0; k < s->n; k++)
		if ((StepKind)s->step[k].kind == kind &&
		    (!step_has_axis(kind) || s->step[k].axis == axis))
			return &s->step[k];
	return NULL;
}

static void threads_follow(Schedule *s)
{
	int64_t n = 1;
	for (int d = 0; d < 2; d++) {
		const ScheduleStep *size = find_step(s, STEP_BLOCK, d);
		const ScheduleStep *own = find_step(s, STEP_TILE, d);
		n *= size && own && own->arg > 0 ? size->arg / own->arg : 1;
	}
	find_step(s, STEP_THREADS, 0)->arg = n;
}

static void mutate_tiles(Schedule *s, uint64_t *state)
{
	ScheduleStep *p = &s->step[random_below(state, (uint64_t)s->n)];
	if (p->kind == STEP_TENSORISE && !find_step(s, STEP_RFACTOR, 0))
		schedule_insert(s, s->n - 1, STEP_RFACTOR, 0, 2);
	else if (p->kind == STEP_TENSORISE)
		p->arg ^= TENSORISE_SWAP;
	else if (p->kind != STEP_THREADS)
		p->arg = random_below(state, 2) ? 2 * p->arg : (p->arg + 1) / 2;
	threads_follow(s);
}

/* A step that both have. */
static void step_take(Schedule *s, Schedule *other, StepKind kind, int axis)
{
	ScheduleStep *mine = find_step(s, kind, axis), *theirs = find_step(other, kind, axis);
	if (mine && theirs)
		mine->arg = theirs->arg;
}

/* Sizes of a dimension belong together: of the block's tile and of its threads'. */
static void cross_tiles(Schedule *s, const Schedule *with, uint64_t *state)
{
	Schedule other = *with;
	for (int d = 0; d < 3; d++)
		if (random_below(state, 2)) {
			step_take(s, &other, STEP_BLOCK, d);
			step_take(s, &other, STEP_TILE, d);
		}
	if (random_below(state, 2))
		step_take(s, &other, STEP_RFACTOR, 0);
	threads_follow(s);
}

/* Panels of a processor, or tiles of a grid. */
static bool has_panels(const Schedule *s)
{
	return s->n && (s->step[0].kind == STEP_TENSORISE || s->step[0].kind == STEP_LIBRARY);
}

static bool has_tiles(const Schedule *s)
{
	return s->n && s->step[0].kind == STEP_TENSORISE && schedule_find(s, STEP_THREADS);
}

/* A library's product on a grid: only the threads of what follows it can be others. */
static bool has_product(const Schedule *s)
{
	return s->n && s->step[0].kind == STEP_LIBRARY && schedule_find(s, STEP_THREADS);
}

/* Schedules are compared as bytes. */
static void clear_rest(Schedule *s)
{
	memset(s->step + s->n, 0, (size_t)(COUNT(s->step) - s->n) * sizeof *s->step);
}

static void mutate_loops(Schedule *s, int naxis, bool grid, uint64_t *state)
{
	bool panels = has_panels(s);
	int loops = loop_count(s, naxis);
	if (has_tiles(s)) {
		mutate_tiles(s, state);
		return;
	}
	if (has_product(s)) {
		find_step(s, STEP_THREADS, 0)->arg = INT64_C(32) << random_below(state, 6);
		return;
	}
	uint64_t what = panels ? 0 : random_below(state, 10);
	if (!loops) /* a single element: there is nothing to change */
		return;
	if (s->n && what < 5)
		change_step(s, loops, state);
	else if (s->n && what < 7)
		remove_step(s, state);
	else if (!panels && grid)
		insert_grid_step(s, loops, state);
	else if (!panels)
		insert_step(s, loops, state);
}

/* ---- of rows and stages: each member's steps are a schedule, each stage's ---- */

static bool begins_member(const ScheduleStep *step)
{
	return step->kind == STEP_MEMBER || step->kind == STEP_STAGE;
}

/* The steps from `from` on that come before the next member. */
static Schedule steps_from(const Schedule *s, int from)
{
	Schedule own = {0};
	while (from < s->n && !begins_member(&s->step[from]))
		own.step[own.n++] = s->step[from++];
	return own;
}

/* Behind `member axis`; 0: there is none. */
static int member_steps(const Schedule *s, int axis)
{
	for (int k = 0; k < s->n; k++)
		if (begins_member(&s->step[k]) && s->step[k].axis == axis)
			return k + 1;
	return 0;
}

static int member_count(const Schedule *s)
{
	int n = 0;
	for (int k = 0; k < s->n; k++)
		n += begins_member(&s->step[k]);
	return n;
}

/* So many steps from `from` on become those of own; nothing changes where there is no room. */
static void steps_replace(Schedule *s, int from, int n, const Schedule *own)
{
	int rest = s->n - from - n;
	if (from + own->n + rest > COUNT(s->step))
		return;
	memmove(s->step + from + own->n, s->step + from + n, (size_t)rest * sizeof *s->step);
	memcpy(s->step + from, own->step, (size_t)own->n * sizeof *s->step);
	s->n = from + own->n + rest;
}

static void mutate_stream(Schedule *s, uint64_t *state)
{
	if (s->n > 1 && s->step[1].kind == STEP_STREAM)
		steps_replace(s, 1, 1, &(Schedule){0});
	else
		schedule_insert(s, 1, STEP_STREAM, 0, INT64_C(1) << random_below(state, 26));
}

/* Of all members. */
static void mutate_common(Schedule *s, uint64_t *state)
{
	ScheduleStep *threads = find_step(s, STEP_THREADS, 0);
	if (threads)
		threads->arg = INT64_C(32) << random_below(state, 6);
	else
		mutate_stream(s, state);
}

static void mutate_members(Schedule *s, int naxis, uint64_t *state)
{
	bool grid = schedule_find(s, STEP_THREADS);
	int members = member_count(s), at = 1;
	if (!members || (s->step[0].kind == STEP_ROWS && random_below(state, 8) == 0)) {
		mutate_common(s, state);
		return;
	}
	for (int which = (int)random_below(state, (uint64_t)members) + 1; which; at++)
		which -= begins_member(&s->step[at]);
	Schedule own = steps_from(s, at);
	int n = own.n;
	mutate_loops(&own, naxis, grid, state);
	steps_replace(s, at, n, &own);
}

static void cross_members(Schedule *s, const Schedule *other, uint64_t *state)
{
	for (int k = 0; k < s->n; k++) {
		int at = begins_member(&s->step[k]) ? member_steps(other, s->step[k].axis) : 0;
		if (!at || random_below(state, 2))
			continue;
		Schedule own = steps_from(other, at);
		steps_replace(s, k + 1, steps_from(s, k + 1).n, &own);
	}
}

/* Rows, or stages. */
static bool has_members(const Schedule *s)
{
	return s->n && (s->step[0].kind == STEP_ROWS || schedule_staged(s));
}

void schedule_mutate(Schedule *s, int naxis, uint64_t *state)
{
	if (has_members(s))
		mutate_members(s, naxis, state);
	else
		mutate_loops(s, naxis, schedule_find(s, STEP_THREADS), state);
	clear_rest(s);
}

static void cross_steps(Schedule *s, const Schedule *other, uint64_t *state)
{
	for (int k = 0; k < s->n && k < other->n; k++)
		if (s->step[k].kind == other->step[k].kind && random_below(state, 2))
			s->step[k] = other->step[k];
}

/* Tiles of tensor cores have no sizes of others. */
void schedule_cross(Schedule *s, const Schedule *other, uint64_t *state)
{
	enum { UNITS = TENSORISE_NARROW | TENSORISE_GROUPS }; /* what multiplies */
	if (has_members(s))
		cross_members(s, other, state);
	else if (has_product(s) || has_product(other))
		return;
	else if (!has_tiles(s))
		cross_steps(s, other, state);
	else if (has_tiles(other) && !((s->step[0].arg ^ other->step[0].arg) & UNITS))
		cross_tiles(s, other, state);
	clear_rest(s);
}

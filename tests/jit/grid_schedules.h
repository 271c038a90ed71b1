/* grid_schedules.h - random schedules for a grid: blocks, threads, tiles and pieces of any size. A schedule
 * is a function of the task, of what is offered for it and of the state that random numbers are drawn
 * from. */
#ifndef GRID_SCHEDULES_H
#define GRID_SCHEDULES_H

#include "jit/lower.h"

/* 0 where there is nothing to choose from. */
static int below(uint64_t *state, int n)
{
	return n > 0 ? (int)random_below(state, (uint64_t)n) : 0;
}

/* Loops of a nest of n: split, moved, along threads. */
static void add_loops(Schedule *s, int n, uint64_t *state)
{
	int loops = n;
	for (int steps = below(state, 6); steps > 0; steps--) {
		int axis = below(state, loops), what = below(state, 5);
		if (what < 2) {
			schedule_add(s, STEP_SPLIT, axis, 1 + below(state, what ? 9 : 32));
			loops++;
		} else if (what == 2) {
			schedule_add(s, STEP_MOVE, axis, below(state, loops));
		} else if (what == 3) {
			schedule_add(s, STEP_UNROLL, axis, 0);
		} else {
			schedule_add(s, STEP_MOVE, axis, loops - 1);
			schedule_add(s, STEP_THREAD, axis, below(state, 2));
		}
	}
	if (below(state, 4) == 0) {
		schedule_add(s, STEP_MOVE, below(state, loops), 0);
		schedule_add(s, STEP_RFACTOR, 0, 1);
	}
	schedule_add(s, STEP_PARALLEL, 0, below(state, loops + 1));
}

/* Reads go through the memory of blocks, which have a piece of two axes each. */
static Schedule random_cached(int n, uint64_t *state)
{
	Schedule s = {0};
	int piece[2], each = 1 << below(state, 3), axis = below(state, n);
	for (int k = 0; k < 2; k++) {
		piece[k] = 2 << below(state, 5);
		schedule_add(&s, STEP_SPLIT, axis, piece[k]);
		axis = (axis + 1 + below(state, n - 1)) % n;
		schedule_add(&s, STEP_MOVE, n + k, n + k);
	}
	if (below(state, 2))
		schedule_add(&s, STEP_MOVE, n, n + 1);
	schedule_add(&s, STEP_CACHE_READ, 0, n);
	schedule_add(&s, STEP_THREADS, 0, piece[0] * piece[1] / each);
	schedule_add(&s, STEP_PARALLEL, 0, n + 2);
	if (each > 1)
		schedule_add(&s, STEP_TILE, 0, each);
	return s;
}

static Schedule random_nest(int n, uint64_t *state)
{
	Schedule s = {0};
	if (n > 1 && below(state, 3) == 0)
		return random_cached(n, state);
	schedule_add(&s, STEP_THREADS, 0,
		     below(state, 2) ? 1 << below(state, 9) : 1 + below(state, 100));
	if (below(state, 4) == 0)
		schedule_add(&s, STEP_TILE, 0, 1 + below(state, 5));
	if (below(state, 4) == 0)
		schedule_add(&s, STEP_ATOMIC, -1, 0);
	add_loops(&s, n, state);
	return s;
}

static Schedule random_tiles(uint64_t *state)
{
	Schedule s = {0};
	int size[2], own[2];
	bool fragments = below(state, 2), groups = fragments && below(state, 2);
	for (int d = 0; d < 2; d++) {
		own[d] = groups ? (d ? 16 : 2) << below(state, 3 - d) : 1 << below(state, 5);
		size[d] = groups      ? own[d] * (d ? 4 : 32) << below(state, 2)
			  : fragments ? own[d] * (d ? 4 : 8) << below(state, 3)
				      : 4 << below(state, 5);
	}
	schedule_add(&s, STEP_TENSORISE, 0,
		     below(state, 2) + (fragments ? TENSORISE_NARROW : 0) +
			     (groups ? TENSORISE_GROUPS : 0));
	for (int d = 0; d < 2; d++) {
		schedule_add(&s, STEP_BLOCK, d, size[d]);
		schedule_add(&s, STEP_TILE, d, own[d]);
	}
	schedule_add(&s, STEP_BLOCK, 2,
		     (groups	  ? 64
		      : fragments ? 16
				  : 4)
			     << below(state, fragments ? 2 : 4));
	if (below(state, 2))
		schedule_add(&s, STEP_RFACTOR, 0, 1 + below(state, 4));
	schedule_add(&s, STEP_THREADS, 0, size[0] / own[0] * (size[1] / own[1]));
	return s;
}

/* Of a kernel that runs row by row: a block for each, mostly. */
static Schedule random_rows(const Task *t, uint64_t *state)
{
	Schedule s = {0};
	schedule_add(&s, STEP_ROWS, 0, 1 + below(state, t->sub.rows));
	schedule_add(&s, STEP_THREADS, 0,
		     below(state, 2) ? 1 << below(state, 8) : 1 + below(state, 70));
	if (below(state, 4) == 0)
		schedule_add(&s, STEP_PARALLEL, 0, 1);
	const RowLoops *loops = &t->sub.loops[s.step[0].arg - 1];
	for (int k = 0; k < t->sub.nmember; k = loops->end[k])
		if (below(state, 3)) {
			schedule_add(&s, STEP_MEMBER, k, 0);
			add_loops(&s, comp_naxis(t->sub.member[k]) - (int)s.step[0].arg, state);
		}
	return s;
}

/* Random ones instead of those offered, or changes of these. It may not fit the task. */
static Schedule grid_schedule_random(const Task *t, const Schedule *offer, uint64_t *state)
{
	Schedule s = *offer;
	if (below(state, 3) == 0) {
		for (int k = 1 + below(state, 3); k > 0; k--)
			schedule_mutate(&s, schedule_axes(t), state);
		return s;
	}
	if (t->sub.rows)
		return random_rows(t, state);
	return below(state, 2) ? random_nest(schedule_axes(t), state) : random_tiles(state);
}

#endif

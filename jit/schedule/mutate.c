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

static void remove_step(Schedule *s, uint64_t *state)
{
	int at = (int)random_below(state, (uint64_t)s->n);
	memmove(s->step + at, s->step + at + 1, (size_t)(s->n - at - 1) * sizeof *s->step);
	s->n--;
}

/* Before the last step, which is usually the number of parallel loops. */
static void insert_step(Schedule *s, int loops, uint64_t *state)
{
	static const StepKind kind[] = {STEP_SPLIT,	 STEP_MOVE,    STEP_UNROLL, STEP_MOVE,
					STEP_CACHE_READ, STEP_RFACTOR, STEP_STREAM, STEP_CARRY};
	StepKind k = kind[random_below(state, COUNT(kind))];
	int axis = (int)random_below(state, (uint64_t)loops);
	int64_t arg = k == STEP_SPLIT ? random_size(state)
		      : k == STEP_MOVE || k == STEP_CACHE_READ
			      ? (int64_t)random_below(state, (uint64_t)loops)
		      : k == STEP_RFACTOR ? 1
		      : k == STEP_STREAM  ? INT64_C(1) << random_below(state, 26)
					  : 0;
	int last = s->n - 1;
	if (s->n == COUNT(s->step))
		return;
	schedule_add(s, k, axis, arg);
	if (k == STEP_CARRY) /* the first of all */
		last = 0;
	if (last >= 0)
		swap_steps(s, last, s->n - 1);
}

/* Schedules are compared as bytes. */
static void clear_rest(Schedule *s)
{
	memset(s->step + s->n, 0, (size_t)(COUNT(s->step) - s->n) * sizeof *s->step);
}

void schedule_mutate(Schedule *s, int naxis, uint64_t *state)
{
	bool panels =
		s->n && (s->step[0].kind == STEP_TENSORISE || s->step[0].kind == STEP_LIBRARY);
	int loops = loop_count(s, naxis);
	if (s->n && s->step[0].kind == STEP_ROWS) {
		s->step[0].arg = (int64_t)random_below(state, NEST_OFFERS);
		s->n = 1;
		if (random_below(state, 2))
			schedule_add(s, STEP_STREAM, 0, INT64_C(1) << random_below(state, 26));
		clear_rest(s);
		return;
	}
	uint64_t what = panels ? 0 : random_below(state, 10);
	if (!loops) /* a single element: there is nothing to change */
		return;
	if (s->n && what < 5)
		change_step(s, loops, state);
	else if (s->n && what < 7)
		remove_step(s, state);
	else if (!panels)
		insert_step(s, loops, state);
	clear_rest(s);
}

void schedule_cross(Schedule *s, const Schedule *other, uint64_t *state)
{
	for (int k = 0; k < s->n && k < other->n; k++)
		if (s->step[k].kind == other->step[k].kind && random_below(state, 2))
			s->step[k] = other->step[k];
	clear_rest(s);
}

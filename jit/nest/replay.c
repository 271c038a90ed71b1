/* replay.c - replays a schedule's steps into the loops of a direct nest.
 *
 * Input: a problem's axes and steps (split, move, vectorise, unroll, parallel). Output: loops,
 * their order, how many of the outermost are parts. Invariant: a loop never runs inside a piece of
 * itself, and parallel or vector loops never meet in an element; what would is refused with its
 * reason. */
#include "jit/nest/internal.h"

static int loop_place(const Build *b, int id)
{
	for (int k = 0; k < b->nloop; k++)
		if (b->order[k] == id)
			return k;
	return -1;
}

static void order_move(Build *b, int from, int to)
{
	int id = b->order[from];
	for (; from < to; from++)
		b->order[from] = b->order[from + 1];
	for (; from > to; from--)
		b->order[from] = b->order[from - 1];
	b->order[to] = id;
}

/* Only the outermost loop of an axis is cut off where the axis ends. */
static bool is_piece(const Build *b, const Loop *a)
{
	for (int k = 0; k < b->nloop; k++)
		if (b->loop[k].axis == a->axis && b->loop[k].stride > a->stride)
			return true;
	return false;
}

static int step_split(Build *b, int id, int64_t factor, Error *err)
{
	Loop *a = &b->loop[id];
	if (factor < 1 || b->nloop == MAX_LOOPS ||
	    (factor < a->extent && a->extent % factor && is_piece(b, a)))
		return schedule_misfit(err, "loop %d can't be split by %lld", id,
				       (long long)factor);
	Loop *in = &b->loop[b->nloop];
	*in = *a;
	in->how = HOW_SERIAL;
	in->extent = factor < a->extent ? factor : a->extent;
	a->extent = (a->extent + in->extent - 1) / in->extent;
	a->stride *= in->extent;
	b->order[b->nloop] = b->nloop;
	b->nloop++;
	order_move(b, b->nloop - 1, loop_place(b, id) + 1);
	return 0;
}

/* Functions over chunks want long chunks: a split for lanes makes them at least that long, but where a piece of them is
 * split off again: there lanes of one length have steps that others don't (polyphase_lanes), and boxes are long, too. */
static int64_t lanes_of(const Build *b, const Schedule *s, int at)
{
	int64_t arg = s->step[at].arg;
	bool lanes = false, pieces = false;
	for (int k = at + 1; k < s->n; k++) {
		lanes |= s->step[k].kind == STEP_VECTORISE && s->step[k].axis == b->nloop;
		pieces |= s->step[k].kind == STEP_SPLIT && s->step[k].axis == b->nloop;
	}
	return lanes && !pieces && arg < b->caps->chunk ? b->caps->chunk : arg;
}

/* Before all splits, so that loops are axes. */
static int step_carry(Build *b, int id, Error *err)
{
	Carry c;
	if (b->caps->grid)
		return 0;
	if (b->carry.r.axis >= 0 || b->nloop > b->p->naxis || !carry_find(b->p, id, &c))
		return schedule_misfit(err, "nothing can be carried along loop %d", id);
	carry_apply(b->p, &c);
	b->carry = c;
	b->loop[c.r.over].extent = c.r.step;
	b->full[c.r.over] = true;
	return 0;
}

static int step_apply(Build *b, const ScheduleStep *s, Error *err)
{
	if (step_has_axis(s->kind) && s->kind != STEP_TILE && (s->axis < 0 || s->axis >= b->nloop))
		return schedule_misfit(err, "there is no loop %d (the nest has %d at this step)",
				       s->axis, b->nloop);
	switch (s->kind) {
	case STEP_SPLIT:
		return step_split(b, s->axis, s->arg, err);
	case STEP_MOVE:
		if (s->arg < 0 || s->arg >= b->nloop)
			return schedule_misfit(err, "position %lld of %d loops does not exist",
					       (long long)s->arg, b->nloop);
		order_move(b, loop_place(b, s->axis), (int)s->arg);
		return 0;
	case STEP_VECTORISE:
		b->loop[s->axis].how = HOW_VECTOR;
		return 0;
	case STEP_UNROLL:
		b->loop[s->axis].how = HOW_UNROLL;
		return 0;
	case STEP_CACHE_READ:
		if (s->arg < 0 || s->arg >= b->nloop)
			return schedule_misfit(err, "reads can't be cached before loop %lld of %d",
					       (long long)s->arg, b->nloop);
		b->cache_read_at = (int)s->arg;
		return 0;
	case STEP_PARALLEL:
		if (s->arg < 0 || s->arg > b->nloop)
			return schedule_misfit(err, "%lld parallel loops of %d are impossible",
					       (long long)s->arg, b->nloop);
		b->nparallel = (int)s->arg;
		return 0;
	case STEP_STREAM:
		b->stream = s->arg;
		return 0;
	case STEP_CARRY:
		return step_carry(b, s->axis, err);
	case STEP_THREADS:
		if (!b->caps->grid || b->threads || s->arg < 1 || s->arg > GRID_THREADS_MOST)
			return schedule_misfit(err, "blocks of %lld threads are none of this nest",
					       (long long)s->arg);
		b->threads = (int)s->arg;
		return 0;
	case STEP_TILE:
		if (!b->caps->grid || s->axis != 0 || s->arg < 1 || s->arg > GRID_EACH_MOST)
			return schedule_misfit(err, "a thread has 1 to %d parts on a grid",
					       GRID_EACH_MOST);
		b->parts_each = s->arg;
		return 0;
	case STEP_THREAD:
		if (!b->caps->grid)
			return schedule_misfit(err, "there are threads of a block on a grid only");
		b->loop[s->axis].how = HOW_THREAD;
		b->apart = s->arg;
		return 0;
	case STEP_ATOMIC:
		if (!b->caps->grid)
			return schedule_misfit(err, "atomic instructions are for a grid only");
		b->atomic = true;
		return 0;
	case STEP_RFACTOR:
		b->nrfactor = (int)(s->arg < MAX_LOOPS ? s->arg : MAX_LOOPS);
		return 0;
	default:
		return schedule_misfit(err, "a step of this kind does not fit a direct nest");
	}
}

static bool is_free(const Problem *p, int axis)
{
	for (int k = 0; k < p->nfree; k++)
		if (p->free_axis[k] == p->axis[axis])
			return true;
	return false;
}

enum { WRITTEN_MOST = 200 };

/* Inside lanes there are only loops that are written out. */
static bool lanes_fit(const Build *b, int at)
{
	int64_t n = 1;
	for (int k = at + 1; k < b->nloop; k++) {
		const Loop *l = &b->loop[b->order[k]];
		if (l->how != HOW_UNROLL || !nest_exact(b, l->axis) || b->p->scatter)
			return false;
		n = l->extent < WRITTEN_MOST ? n * l->extent : WRITTEN_MOST + 1;
		if (n > WRITTEN_MOST)
			return false;
	}
	return true;
}

static int schedule_check(const Build *b, Error *err)
{
	const Problem *p = b->p;
	for (int i = 0; i < b->nloop; i++) {
		const Loop *a = &b->loop[b->order[i]];
		for (int j = i + 1; j < b->nloop; j++)
			if (b->loop[b->order[j]].axis == a->axis &&
			    b->loop[b->order[j]].stride > a->stride &&
			    !(b->caps->grid && (i < b->nparallel || a->how == HOW_THREAD)))
				return schedule_misfit(err, "loop %d runs inside a piece of itself",
						       b->order[j]);
		if (i >= b->nrfactor && i < b->nparallel && !b->atomic &&
		    (a->reduced || (p->scatter && !is_free(p, a->axis))))
			return schedule_misfit(err,
					       "loop %d can't run in parallel, its iterations "
					       "write the same elements",
					       b->order[i]);
		if (a->how == HOW_VECTOR && !lanes_fit(b, i))
			return schedule_misfit(
				err,
				"inside vector loop %d there may only be short loops "
				"that are unrolled",
				b->order[i]);
		if (a->how == HOW_VECTOR && p->scatter && !is_free(p, a->axis))
			return schedule_misfit(err,
					       "loop %d can't run in vector lanes, its "
					       "iterations write the same elements",
					       b->order[i]);
	}
	return rfactor_check(b, err);
}

/* May the loop at place k run around the lanes: of sums one of the sum, of no axis that a later loop or the lanes have a
 * piece of; of others one of the results that a chunk has room for, which no sum stands around? */
static bool may_surround(const Build *b, int k, int first)
{
	const Loop *l = &b->loop[b->order[k]], *lanes = &b->loop[b->order[b->lanes]];
	if (!lanes->reduced) {
		bool sum = l->reduced;
		for (int i = first; i < k; i++)
			sum |= b->loop[b->order[i]].reduced;
		return !sum && l->how != HOW_VECTOR && l->extent * lanes->extent <= b->caps->chunk;
	}
	bool last = l->reduced && 2 * lanes->extent <= b->caps->chunk;
	for (int i = k + 1; i <= b->lanes; i++)
		last &= b->loop[b->order[i]].axis != l->axis;
	return last;
}

/* The longest loop that may runs around short lanes: both are one call. It pays for plain elements, too (shufflenet by
 * tcc, in turns: 0.83 of the step that it takes where sums alone do). */
static void replay_box(Build *b)
{
	int best = -1, first = b->nparallel > b->nrfactor ? b->nparallel : b->nrfactor;
	if (b->p->scatter || b->carry.r.axis >= 0)
		return;
	for (int k = first; k < b->lanes; k++)
		if (may_surround(b, k, first) &&
		    (best < 0 || b->loop[b->order[k]].extent >= b->loop[b->order[best]].extent))
			best = k;
	if (best >= 0)
		order_move(b, best, b->lanes - 1);
}

/* Axes are joined before they have loops. Returns how many steps do so; -1: one can't. */
static int replay_joins(Build *b, const Schedule *s, Error *err)
{
	int n = 0;
	for (; n < s->n && s->step[n].kind == STEP_JOIN; n++) {
		Problem *joined = problem_joined(b->p, s->step[n].axis);
		if (!joined) {
			schedule_misfit(err, "axis %d and the next one can't be joined",
					s->step[n].axis);
			return -1;
		}
		b->p = joined;
	}
	return n;
}

int nest_replay(Build *b, const Schedule *s, Error *err)
{
	int first = replay_joins(b, s, err);
	Problem *p = b->p;
	if (first < 0)
		return err->code;
	for (int k = 0; k < p->naxis; k++) {
		b->loop[k] = (Loop){.axis = k,
				    .stride = 1,
				    .extent = axis_extent(p->axis[k]),
				    .reduced = k >= p->nspatial};
		b->order[k] = k;
	}
	b->nloop = p->naxis;
	b->lanes = b->cache_read_at = b->carry.r.axis = -1;
	b->stream = INT64_MAX;
	b->parts_each = 1;
	for (int k = first; k < s->n; k++) {
		ScheduleStep step = s->step[k];
		if (step.kind == STEP_SPLIT)
			step.arg = lanes_of(b, s, k);
		if (step_apply(b, &step, err))
			return err->code;
	}
	if (b->caps->grid && grid_replay(b, err))
		return err->code;
	if (schedule_check(b, err))
		return err->code;
	for (int k = 0; k < b->nloop; k++)
		if (b->loop[b->order[k]].how == HOW_VECTOR)
			b->lanes = k;
	if (b->caps->chunk && b->lanes >= 0) { /* functions over chunks want them innermost */
		order_move(b, b->lanes, b->nloop - 1);
		b->lanes = b->nloop - 1;
		replay_box(b);
	}
	if (b->caps->chunk || p->scatter)
		b->cache_read_at = -1;
	return 0;
}

/* limit.c - a program whose step needs no more memory than a limit.
 *
 * Input: a program whose runs and cells are known, but not yet where temporaries are. Output: the
 * same, with runs that compute tensors again (recompute.c decides which). Such a run is its
 * original's kernel or loop once more, so it gives the same bits, and nothing is compiled for it. What a
 * step takes: the arena (temporaries, and what loops need), outputs, and next values of states that
 * are not computed in place; not inputs, parameters and states themselves. A loop runs again as a whole. What
 * reads a state can't after the next value was written over it: where that leaves too little, such
 * values are written beside their states.
 * Invariant: when this fails, the program is as it was.
 */
#include "runtime/program/program.h"
#include "runtime/program/recompute.h"
#include <string.h>

typedef struct Limit {
	Program *p;
	const ProgramSpec *spec;
	const int *cell_of; /* by node; -1: none */
	Arena arena;
	Step step;
	StepRun *run;
	size_t *bytes;
	int *number; /* by cell: of the tensor, -1: no temporary */
	int *until;  /* by cell: the run that writes over a state; INT_MAX: none does */
	bool *moved; /* by cell: a state that isn't written over, since it is read again later */
	int *cell;   /* by tensor */
	LaunchPlan plan;
	size_t need; /* of the arena and of moved states' next values */
	Text message;
} Limit;

static size_t cell_bytes(const Cell *c)
{
	return align_up(tensor_bytes(c->node));
}

size_t program_beside(const Program *p, const ProgramSpec *s)
{
	size_t bytes = 0;

	for (int i = 0; i < p->ncell; i++)
		if (p->cell[i].kind == CELL_OUTPUT)
			bytes += cell_bytes(&p->cell[i]);
	for (int a = 0; a < s->nassign; a++)
		if (assign_beside(p, s, a))
			bytes += align_up(s->assigned[a]->bytes);
	return bytes;
}

/* ---- the program as recompute.c sees it ---- */
static int whole_of(const Program *p, int cell)
{
	return (int)(cell_whole(&p->cell[cell]) - p->cell);
}

/* The cell of the state that c is written over; -1: of none. */
static int overwritten(const Limit *l, const Cell *c)
{
	return c->kind == CELL_NEXT && c->could ? l->cell_of[c->storage->node->id] : -1;
}

static void find_overwritten(Limit *l)
{
	const Program *p = l->p;

	for (int i = 0; i < p->ncell; i++)
		l->until[i] = INT_MAX;
	for (int i = 0; i < p->ncell; i++) {
		int state = overwritten(l, &p->cell[i]);

		if (state >= 0)
			l->until[state] = p->cell[i].first;
	}
}

static void limit_read(Limit *l, StepRun *to, int *read, int cell)
{
	int t = l->number[whole_of(l->p, cell)];

	for (int k = 0; k < to->nread; k++)
		if (read[k] == t)
			return;
	if (t >= 0)
		read[to->nread++] = t;
}

/* Of a launch on the nominal device, or of all in a loop. */
static double run_seconds(const Run *r)
{
	const DeviceModel *d = device_nominal();
	const Program *body = r->loop ? loop_program(r->loop) : NULL;
	double seconds = 0;

	if (!body)
		return r->entry->task->cost / d->pc + r->entry->task->bytes / d->pd + d->launch;
	for (int i = 0; i < body->nrun; i++)
		seconds += run_seconds(&body->run[i]);
	return (double)run_steps(r) * seconds;
}

static void limit_run(Limit *l, const Run *r, StepRun *to)
{
	int *read = arena_alloc(&l->arena, ((size_t)r->nbuf + 1) * sizeof *read);
	int *write = arena_alloc(&l->arena, ((size_t)r->nbuf + 1) * sizeof *write);

	*to = (StepRun){.read = read, .write = write, .seconds = run_seconds(r)};
	to->bytes = r->loop ? align_up(loop_bytes(r->loop)) : 0;
	for (int k = 0; k < r->ninput; k++)
		limit_read(l, to, read, r->cell[k]);
	for (int k = r->ninput; k < r->nbuf; k++) {
		int t = l->number[r->cell[k]];

		if (t >= 0)
			write[to->nwrite++] = t;
		else
			to->stays = true;
	}
}

/* A run whose results nobody reads stays. */
static void find_unread(Limit *l)
{
	bool *read = arena_alloc(&l->arena, (size_t)l->step.ntensor + 1);

	for (int i = 0; i < l->step.nrun; i++)
		for (int k = 0; k < l->run[i].nread; k++)
			read[l->run[i].read[k]] = true;
	for (int i = 0; i < l->step.nrun; i++) {
		bool any = false;

		for (int k = 0; k < l->run[i].nwrite; k++)
			any |= read[l->run[i].write[k]];
		l->run[i].stays |= !any;
	}
}

static void limit_step(Limit *l)
{
	const Program *p = l->p;
	size_t n = (size_t)p->ncell + 1;

	l->run = arena_alloc(&l->arena, ((size_t)p->nrun + 1) * sizeof *l->run);
	l->number = arena_alloc(&l->arena, n * sizeof *l->number);
	l->until = arena_alloc(&l->arena, n * sizeof *l->until);
	l->moved = arena_alloc(&l->arena, n);
	l->cell = arena_alloc(&l->arena, n * sizeof *l->cell);
	l->bytes = arena_alloc(&l->arena, n * sizeof *l->bytes);
	for (int i = 0; i < p->ncell; i++) {
		l->number[i] = -1;
		if (p->cell[i].kind != CELL_TEMP)
			continue;
		l->number[i] = l->step.ntensor;
		l->cell[l->step.ntensor] = i;
		l->bytes[l->step.ntensor++] = cell_bytes(&p->cell[i]);
	}
	find_overwritten(l);
	for (int i = 0; i < p->nrun; i++)
		limit_run(l, &p->run[i], &l->run[i]);
	l->step.nrun = p->nrun;
	l->step.run = l->run;
	l->step.bytes = l->bytes;
	find_unread(l);
}

/* ---- launches that fit ---- */
/* in_place: what is written over its state stays so, and then nobody can read that again. */
static void find_until(Limit *l, bool in_place)
{
	for (int i = 0; i < l->step.nrun; i++) {
		const Run *r = &l->p->run[i];

		l->run[i].until = INT_MAX;
		for (int k = 0; k < r->ninput && in_place; k++) {
			int until = l->until[whole_of(l->p, r->cell[k])];
			l->run[i].until = until < l->run[i].until ? until : l->run[i].until;
		}
	}
}

/* The states that launches read after their next values are written; bytes of these. */
static size_t find_moved(Limit *l)
{
	const LaunchPlan *plan = &l->plan;
	size_t bytes = 0;
	int due = -1;

	memset(l->moved, 0, (size_t)l->p->ncell);
	for (int i = 0; i < plan->nlaunch; i++) {
		const Run *r = &l->p->run[plan->launch[i].run];

		for (int k = 0; k < r->ninput; k++) {
			int state = whole_of(l->p, r->cell[k]);

			if (l->until[state] > due || l->moved[state])
				continue;
			l->moved[state] = true;
			bytes += cell_bytes(&l->p->cell[state]);
		}
		due = plan->launch[i].due ? plan->launch[i].run : due;
	}
	return bytes;
}

/* First with all that is in place; then where a state may be read again later, and its next value
 * takes room beside it then, as much as it turned out to need before. At last as little as can be, so
 * that what an error names as the least is a limit that can be met. */
static int limit_fit(Limit *l, size_t room, Error *err)
{
	static const struct {
		bool in_place, least;
	} way[] = {{true, false}, {false, false}, {false, false}, {true, true}, {false, true}};
	size_t beside = 0;
	LaunchPlan best = {0};
	int code = 0;

	l->need = SIZE_MAX;
	for (int k = 0; k < COUNT(way) && !code && l->need > room; k++) {
		size_t limit = way[k].least || room <= beside ? 1 : room - beside;

		find_until(l, way[k].in_place);
		code = step_fit(&l->step, limit, &l->arena, &l->plan, err);
		beside = code ? 0 : find_moved(l);
		if (!code && l->plan.bytes + beside < l->need) {
			best = l->plan;
			l->need = l->plan.bytes + beside;
		}
	}
	l->plan = best;
	if (!code)
		find_moved(l);
	return code;
}

/* ---- the program with runs done again ---- */
typedef struct Again { /* what becomes of the program's arrays */
	int ncell;
	Cell *cell;
	Run *run;
	int *cell_of;	/* by copy */
	int *launch_of; /* by run before: its first launch, -1: none yet */
} Again;

/* The cell of each copy: a tensor's own for its first one. */
static void place_copies(Limit *l, Again *to)
{
	const LaunchPlan *plan = &l->plan;
	int *first = arena_alloc(&l->arena, ((size_t)l->step.ntensor + 1) * sizeof *first);

	memset(first, -1, ((size_t)l->step.ntensor + 1) * sizeof *first);
	for (int c = 0; c < plan->ncopy; c++) {
		int *at = &first[plan->copy[c].tensor];
		if (plan->copy[c].first >= 0 &&
		    (*at < 0 || plan->copy[c].first < plan->copy[*at].first))
			*at = c;
	}
	for (int c = 0; c < plan->ncopy; c++) {
		int own = l->cell[plan->copy[c].tensor];

		if (plan->copy[c].first < 0)
			continue;
		to->cell_of[c] = first[plan->copy[c].tensor] == c ? own : to->ncell;
		if (to->cell_of[c] != own)
			to->cell[to->ncell++] = to->cell[own];
	}
}

/* What cell number `cell` of the program is in a launch that has these copies of its tensors. */
static int launch_cell(const Limit *l, Again *to, int n, const int *tensor, const int *copy,
		       int cell)
{
	int whole = whole_of(l->p, cell), k = 0;
	size_t offset = 0;

	if (l->number[whole] < 0)
		return cell;
	while (k < n && tensor[k] != l->number[whole])
		k++;
	if (to->cell_of[copy[k]] == whole)
		return cell;
	if (cell == whole)
		return to->cell_of[copy[k]];
	for (const Cell *c = &l->p->cell[cell]; c->of; c = c->of)
		offset += c->offset;
	to->cell[to->ncell] = l->p->cell[cell];
	to->cell[to->ncell].of = &to->cell[to->cell_of[copy[k]]];
	to->cell[to->ncell].offset = offset;
	return to->ncell++;
}

static void launch_run(const Limit *l, Again *to, int at)
{
	const Launch *launch = &l->plan.launch[at];
	const StepRun *s = &l->run[launch->run];
	const Run *from = &l->p->run[launch->run];
	int *first = &to->launch_of[launch->run];
	Run *r = &to->run[at];
	Arena *a = &l->p->memory;

	*r = *from;
	if (*first >= 0) {
		r->again = &to->run[*first];
		to->run[*first].repeated = true;
	} else {
		*first = at;
	}
	r->cell = arena_alloc(a, ((size_t)r->nbuf + 1) * sizeof *r->cell);
	r->buf = arena_alloc(a, ((size_t)r->nbuf + 1) * sizeof *r->buf);
	for (int k = 0; k < r->nbuf; k++)
		r->cell[k] = k < r->ninput ? launch_cell(l, to, s->nread, s->read, launch->read,
							 from->cell[k])
					   : launch_cell(l, to, s->nwrite, s->write, launch->write,
							 from->cell[k]);
}

/* Room for the kernels of r's launches, which run so often in a step. */
static void used_make(Arena *a, Run *r, int64_t times)
{
	Program *body = r->loop ? loop_program(r->loop) : NULL;

	if (!body) {
		r->used = arena_alloc(a, (size_t)times * sizeof *r->used);
		r->nused = times;
	}
	for (int i = 0; body && i < body->nrun; i++)
		used_make(a, &body->run[i], times * run_steps(r));
}

/* By the new runs: the first and the last that meets each cell. */
static void lives_find(const Limit *l, Again *to)
{
	for (int i = 0; i < to->ncell; i++)
		to->cell[i].last = -1;
	for (int i = 0; i < l->plan.nlaunch; i++)
		for (int k = 0; k < to->run[i].nbuf; k++) {
			Cell *c = &to->cell[to->run[i].cell[k]];

			for (; c; c = c->of) {
				c->first = c->last < 0 ? i : c->first;
				c->last = i;
			}
		}
}

static void limit_again(Limit *l, Again *to)
{
	Program *p = l->p;
	const LaunchPlan *plan = &l->plan;
	size_t cells = (size_t)p->ncell + (size_t)plan->ncopy + 1;

	for (int i = 0; i < plan->nlaunch; i++)
		cells += (size_t)p->run[plan->launch[i].run].ninput;
	to->cell = arena_alloc(&p->memory, cells * sizeof *to->cell);
	to->run = arena_alloc(&p->memory, ((size_t)plan->nlaunch + 1) * sizeof *to->run);
	to->cell_of = arena_alloc(&l->arena, ((size_t)plan->ncopy + 1) * sizeof *to->cell_of);
	to->launch_of = arena_alloc(&l->arena, ((size_t)p->nrun + 1) * sizeof *to->launch_of);
	memset(to->launch_of, -1, ((size_t)p->nrun + 1) * sizeof *to->launch_of);
	to->ncell = p->ncell;
	for (int i = 0; i < p->ncell; i++) {
		to->cell[i] = p->cell[i];
		if (p->cell[i].of)
			to->cell[i].of = &to->cell[p->cell[i].of - p->cell];
	}
	place_copies(l, to);
	for (int i = 0; i < plan->nlaunch; i++)
		launch_run(l, to, i);
	lives_find(l, to);
	for (int i = 0; i < plan->nlaunch; i++)
		if (to->run[i].repeated)
			used_make(&p->memory, &to->run[i], 1);
}

/* From here on nothing can fail. */
static void limit_take(const Limit *l, const Again *to)
{
	Program *p = l->p;

	for (int i = 0; i < p->ncell; i++) {
		int state = overwritten(l, &to->cell[i]);

		if (state >= 0 && l->moved[state])
			to->cell[i].in_place = to->cell[i].could = false;
	}
	p->run = to->run;
	p->nrun = l->plan.nlaunch;
	p->cell = to->cell;
	p->ncell = to->ncell;
	p->last_failing = -1;
	for (int i = 0; i < p->nrun; i++) {
		Run *r = &p->run[i];

		if (r->again && !r->loop)
			entry_ref(r->entry);
		if (!r->loop || r->again)
			continue;
		loop_program(r->loop)->at = r;
		if (loop_may_fail(p, r))
			p->last_failing = i;
	}
}

/* ---- when it can't be done ---- */
enum { SHOWN = 3 };

/* The launch that takes most. */
static int largest_launch(const Limit *l)
{
	const LaunchPlan *plan = &l->plan;
	size_t most = 0;
	int at = 0;

	for (int i = 0; i < plan->nlaunch; i++) {
		size_t bytes = l->run[plan->launch[i].run].bytes;

		for (int c = 0; c < plan->ncopy; c++)
			if (plan->copy[c].first <= i && i <= plan->copy[c].last)
				bytes += l->bytes[plan->copy[c].tensor];
		at = bytes > most ? i : at;
		most = bytes > most ? bytes : most;
	}
	return at;
}

/* The largest tensor there that takes less than number `last` of the copies, or as much and comes behind
 * it; -1: there is none. */
static int next_largest(const Limit *l, int at, int last)
{
	const LaunchPlan *plan = &l->plan;
	size_t most = last < 0 ? SIZE_MAX : l->bytes[plan->copy[last].tensor];
	int best = -1;

	for (int c = 0; c < plan->ncopy; c++) {
		size_t bytes = l->bytes[plan->copy[c].tensor];

		if (plan->copy[c].first < 0 || plan->copy[c].first > at || plan->copy[c].last < at)
			continue;
		if (bytes > most || (bytes == most && c <= last))
			continue;
		if (best < 0 || bytes > l->bytes[plan->copy[best].tensor])
			best = c;
	}
	return best;
}

static void limit_print(Limit *l)
{
	Text *out = &l->message;
	Naming m = {.arena = &l->arena};
	const LaunchPlan *plan = &l->plan;
	const Program *p = l->p;
	size_t beside = program_beside(p, l->spec);
	int at = largest_launch(l), c = -1;
	const Run *r = &p->run[plan->launch[at].run];

	text_add(out,
		 "a step takes %zu bytes beside inputs, parameters and states, no less than %zu "
		 "where what can be is computed again, but the limit is %zu. At its peak it holds",
		 p->unlimited_bytes, l->need + beside, l->spec->memory_limit);
	if (beside)
		text_add(out, "\n%zu bytes of outputs and next values of states", beside);
	if (r->loop)
		text_add(out, "\n%zu bytes inside %s", l->run[plan->launch[at].run].bytes,
			 tensor_equation(&m, p, r, NULL));
	for (int k = 0; k < SHOWN && (c = next_largest(l, at, c)) >= 0; k++) {
		int cell = l->cell[plan->copy[c].tensor];

		text_add(out, "\n%zu bytes of %s", tensor_bytes(p->cell[cell].node),
			 tensor_equation(&m, p, &p->run[p->cell[cell].first], p->cell[cell].node));
	}
}

static int limit_error(Limit *l, Error *err)
{
	limit_print(l);
	return error_set(err, RICCI_ENOMEM, "%s",
			 l->message.failed ? "out of memory for a message" : l->message.s);
}

int program_limit(Program *p, const ProgramSpec *spec, const int *cell_of, Error *err)
{
	size_t beside = program_beside(p, spec), room = spec->memory_limit;
	Limit l = {.p = p, .spec = spec, .cell_of = cell_of};
	Again to = {0};
	jmp_buf oom;
	int code = RICCI_ENOMEM;

	room = room > beside ? room - beside : 1;
	if (setjmp(oom)) {
		code = error_set(err, RICCI_ENOMEM, "out of memory for the memory plan");
	} else {
		l.arena.oom = p->memory.oom = &oom;
		limit_step(&l);
		code = limit_fit(&l, room, err);
		if (!code && !spec->memory_least && (l.need > room || beside >= spec->memory_limit))
			code = limit_error(&l, err);
		else if (!code)
			limit_again(&l, &to);
		if (!code)
			limit_take(&l, &to);
	}
	p->memory.oom = NULL;
	text_free(&l.message);
	arena_free(&l.arena);
	return code;
}

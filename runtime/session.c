/* session.c - the public sessions: data in and out, steps.
 *
 * Each session may be in a thread of its own: whoever reads or writes data holds the
 * family's lock, a step as a whole; the graph is changed under its lock while a session is made
 * (program.c). A forked child leaves its parent's families alone. Invariant: a failed call leaves
 * states and data as they were.
 */
#include "runtime/family.h"
#include "runtime/session.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ricci_session {
	Family *f;
	ProgramSpec spec;
	Program *p;
	int ninput;
	Storage *input;
	const ricci_tensor **output;
	bool train, ran;
	bool drawn; /* all that the program reads or assigns has its values */
	uint64_t step;
	Error err;
};

static Storage *session_storage(ricci_session *s, const Node *x)
{
	Storage *st = storage_find(s->f->nstate, s->f->state, x);

	return st ? st : storage_find(s->ninput, s->input, x);
}

static Storage *session_find(void *user, Node *input)
{
	return session_storage(user, input);
}

/* ---- sessions ---- */
static int count_assigned(const ricci_graph *g)
{
	int n = 0;

	for (const ricci_tensor *t = g->first; t; t = t->next)
		n += tensor_kept(t) && t->assign;
	return n;
}

static int session_spec(ricci_session *s, int train, int noutput, ricci_tensor *const *outputs,
			Error *err)
{
	ricci_graph *g = s->f->g;
	size_t n = (size_t)noutput + (size_t)count_assigned(g) + 1;
	ProgramSpec *p = &s->spec;

	p->ir = &g->ir;
	p->root = mem_zalloc(n * sizeof *p->root);
	p->assigned = mem_zalloc(n * sizeof *p->assigned);
	s->output = mem_zalloc(n * sizeof *s->output);
	if (!p->root || !p->assigned || !s->output)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	for (int i = 0; i < noutput; i++) {
		if (!outputs[i] || outputs[i]->g != g || outputs[i] == &g->nil)
			return error_set(err, RICCI_EINVAL,
					 "output %d is not a tensor of this graph", i);
		s->output[i] = outputs[i];
		p->root[i] = outputs[i]->node;
	}
	p->noutput = noutput;
	for (const ricci_tensor *t = g->first; t && train; t = t->next)
		if (tensor_kept(t) && t->assign) {
			p->root[noutput + p->nassign] = t->assign->node;
			p->assigned[p->nassign++] = session_storage(s, t->node);
		}
	if (train && !p->nassign)
		return error_set(err, RICCI_EINVAL,
				 "a training session needs assignments, of an optimiser "
				 "(ricci_adam) or by ricci_assign; the graph has none");
	p->train = train != 0;
	p->find = session_find;
	p->user = s;
	p->request = s->f->request;
	p->precision = g->precision;
	p->by_chance = g->rounding == RICCI_STOCHASTIC;
	p->may_overflow = p->train && g->may_overflow;
	p->memory_limit = g->memory_limit;
	p->threads = pool_threads(s->f->pool);
	p->device = s->f->device;
	return 0;
}

static int session_fill(ricci_session *s, int train, int noutput, ricci_tensor *const *outputs,
			Error *err)
{
	Family *f = s->f;
	int code = storage_list(f->g, false, &s->ninput, &s->input, err);

	if (!code)
		code = session_spec(s, train, noutput, outputs, err);
	if (!code && !(s->p = program_new(&s->spec, err)))
		code = RICCI_EINTERNAL;
	if (!code && f->check_finite)
		code = program_check_finite(s->p, true, err);
	if (!code) {
		pthread_mutex_lock(&f->lock);
		code = program_reserve(s->p, &s->spec, err);
		pthread_mutex_unlock(&f->lock);
	}
	if (!code && f->tuner)
		code = tuner_add(f->tuner, s->p->nentry, s->p->entry, err);
	return code;
}

/* Takes the family's reference. */
static ricci_session *session_make(Family *f, int train, int noutput, ricci_tensor *const *outputs,
				   Error *err)
{
	ricci_session *s = mem_zalloc(sizeof *s);

	if (!s) {
		family_unref(f);
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	s->err.tell = true;
	s->f = f;
	s->train = train != 0;
	if (session_fill(s, train, noutput, outputs, err)) {
		ricci_session_free(s);
		return NULL;
	}
	return s;
}

ricci_session *ricci_session_new(ricci_graph *g, const ricci_options *options, int train,
				 int noutput, ricci_tensor *const *outputs)
{
	ricci_session *s = NULL;
	Error e = {.tell = true};
	Family *f;

	if (!g || noutput < 0 || (noutput > 0 && !outputs))
		error_set(&e, RICCI_EINVAL, "a session needs a graph and its outputs");
	else if (g->ir.err.code)
		error_tell(&g->ir.err);
	else if ((f = family_new(g, options, NULL, &e)))
		s = session_make(f, train, noutput, outputs, &e);
	return s;
}

ricci_session *session_packed(ricci_graph *g, const KernelPack *p, int threads, const char *data,
			      int noutput, ricci_tensor *const *outputs, Error *err)
{
	ricci_options o = RICCI_OPTIONS(.threads = threads, .static_mode = 1);
	Family *f = family_new(g, &o, &(Given){p, data}, err);

	return f ? session_make(f, 0, noutput, outputs, err) : NULL;
}

ricci_session *ricci_session_share(ricci_session *old, int train, int noutput,
				   ricci_tensor *const *outputs)
{
	ricci_session *s = NULL;
	Error e = {.tell = true};

	if (!old || noutput < 0 || (noutput > 0 && !outputs)) {
		error_set(&e, RICCI_EINVAL, "a shared session needs a session and its outputs");
	} else if (!family_check(old->f, &e)) {
		__atomic_add_fetch(&old->f->refs, 1, __ATOMIC_RELAXED);
		s = session_make(old->f, train, noutput, outputs, &e);
	}
	return s;
}

void ricci_session_free(ricci_session *s)
{
	if (!s || family_check(s->f, NULL))
		return; /* its memory is shared with the parent as long as the child lives */
	program_free(s->p);
	storage_free(s->f->device, s->ninput, s->input);
	mem_free(s->spec.root);
	mem_free(s->spec.assigned);
	mem_free(s->output);
	family_unref(s->f);
	mem_free(s);
}

int pack_write(const ricci_session *s, Text *out, Error *err)
{
	return program_pack(s->p, out, err);
}

int session_entries(const ricci_session *s, CacheEntry **entries, int room)
{
	int n = 0;

	for (int i = 0; i < s->p->nentry && n < room; i++)
		entries[n++] = s->p->entry[i];
	return n;
}

bool session_drawn(const ricci_session *s, const ricci_tensor *t)
{
	const Storage *st = storage_find(s->f->nstate, s->f->state, t->node);

	return st && st->drawn;
}

size_t session_bytes(const ricci_session *s)
{
	return s->p->arena_bytes;
}

/* ---- data ---- */
/* Begins a call. */
static int session_begin(ricci_session *s, const char *call)
{
	if (!s)
		return error_set(ERROR_TELL, RICCI_EINVAL, "%s: the session is NULL", call);
	error_clear(&s->err);
	return family_check(s->f, &s->err);
}

/* Begins one that reads or writes data; 0: then session_leave ends it. */
static int session_enter(ricci_session *s, const char *call)
{
	int code = session_begin(s, call);

	if (!code)
		pthread_mutex_lock(&s->f->lock);
	return code;
}

static int session_leave(ricci_session *s, int code)
{
	pthread_mutex_unlock(&s->f->lock);
	return code;
}

static int check_bytes(ricci_session *s, const ricci_tensor *t, const char *call, size_t bytes)
{
	char shape[16 * RICCI_MAX_RANK + 1] = "";

	if (bytes == tensor_bytes(t->node))
		return 0;
	for (int d = 0, n = 0; d < tensor_rank(t->node); d++)
		n += snprintf(shape + n, sizeof shape - (size_t)n, d ? ",%lld" : "%lld",
			      (long long)tensor_extent(t->node, d));
	return error_set(&s->err, RICCI_EINVAL, "%s: '%s' is %s [%s], %zu bytes, not %zu", call,
			 t->name, type_name((Type)t->node->type), shape, tensor_bytes(t->node),
			 bytes);
}

static int session_feed(ricci_session *s, const ricci_tensor *t, const void *data, size_t bytes)
{
	Storage *st = t && t->g == s->f->g ? session_storage(s, t->node) : NULL;
	int code;

	if (!st)
		return error_set(&s->err, RICCI_EINVAL,
				 "only inputs, parameters and states of the session's graph take "
				 "data");
	if (!data)
		return error_set(&s->err, RICCI_EINVAL, "'%s' is fed from NULL", t->name);
	code = check_bytes(s, t, "ricci_feed", bytes);
	if (!code)
		code = data_check(t, data, &s->err);
	if (!code)
		code = storage_reserve(s->f->device, st, &s->err);
	if (!code)
		code = device_copy(s->f->device, COPY_IN, st->data, data, st->bytes, &s->err);
	st->drawn = st->drawn || !code;
	return code;
}

int ricci_feed(ricci_session *s, const ricci_tensor *t, const void *data, size_t bytes)
{
	int code = session_enter(s, "ricci_feed");

	return code ? code : session_leave(s, session_feed(s, t, data, bytes));
}

static int session_fetch(ricci_session *s, const ricci_tensor *t, void *data, size_t bytes)
{
	Storage *st;

	if (!t || t->g != s->f->g)
		return error_set(&s->err, RICCI_EINVAL, "not a tensor of the session's graph");
	if (!data)
		return error_set(&s->err, RICCI_EINVAL, "'%s' is fetched to NULL", t->name);
	if (check_bytes(s, t, "ricci_fetch", bytes))
		return s->err.code;
	st = session_storage(s, t->node);
	if (st && st->data) {
		int code = family_draw(s->f, st, &s->err);

		return code ? code
			    : device_copy(s->f->device, COPY_OUT, data, st->data, st->bytes,
					  &s->err);
	}
	if (st)
		return error_set(&s->err, RICCI_EINVAL, "'%s' has not been fed", t->name);
	for (int i = 0; i < s->spec.noutput; i++)
		if (s->output[i]->node == t->node) {
			const Cell *c = &s->p->cell[s->p->root[i]];

			if (!s->ran)
				return error_set(&s->err, RICCI_EINVAL,
						 "an output has no value before the first step");
			return device_copy(s->f->device, COPY_OUT, data, cell_data(c),
					   tensor_bytes(c->node), &s->err);
		}
	return error_set(&s->err, RICCI_EINVAL,
			 "the tensor is neither an output of this session nor an input, parameter "
			 "or state");
}

int ricci_fetch(ricci_session *s, const ricci_tensor *t, void *data, size_t bytes)
{
	int code = session_enter(s, "ricci_fetch");

	return code ? code : session_leave(s, session_fetch(s, t, data, bytes));
}

/* ---- steps ---- */
/* Initial values of what the program reads and nobody has fed, and of what it assigns. */
static int session_draw(ricci_session *s)
{
	int code = 0;

	for (int i = 0; i < s->p->ncell && !code && !s->drawn; i++) {
		const Cell *c = &s->p->cell[i];

		if (c->kind == CELL_STATE && tensor_kept(c->storage->tensor))
			code = family_draw(s->f, c->storage, &s->err);
	}
	for (int i = 0; i < s->spec.nassign && !code && !s->drawn; i++)
		code = family_draw(s->f, s->spec.assigned[i], &s->err);
	s->drawn = !code;
	return code;
}

static int session_step(ricci_session *s)
{
	RandomState rs = {s->f->seed, s->step};
	double clock = clock_seconds();
	int code;

	for (int i = 0; i < s->ninput; i++)
		if (s->input[i].used && !s->input[i].data)
			return error_set(&s->err, RICCI_EINVAL, "input '%s' has not been fed",
					 s->input[i].tensor->name);
	code = session_draw(s);
	if (!code)
		code = program_run(s->p, s->f->pool, rs, s->f->tuner, &s->err);
	if (!code)
		code = program_commit(s->p, &s->spec, &s->err);
	if (!code)
		code = device_finish(s->f->device, &s->err);
	if (code)
		return code;
	trace_span("step", s->train ? "a training step" : "a step", clock, "");
	if (!s->ran)
		time_stage("first step", &clock);
	s->ran = true;
	s->step++;
	if (s->f->tuner && tuner_busy(s->f->tuner))
		tuner_start(s->f->tuner);
	return 0;
}

int ricci_step(ricci_session *s)
{
	int code = session_enter(s, "ricci_step");

	return code ? code : session_leave(s, session_step(s));
}

uint64_t ricci_step_count(const ricci_session *s)
{
	return s ? s->step : 0;
}

void ricci_set_step(ricci_session *s, uint64_t step)
{
	if (s)
		s->step = step;
}

uint64_t ricci_seed(const ricci_session *s)
{
	return s ? s->f->seed : 0;
}

int ricci_settle(ricci_session *s)
{
	if (session_begin(s, "ricci_settle"))
		return RICCI_EINVAL;
	return s->f->tuner ? tuner_settle(s->f->tuner, s->f->pool, INFINITY, &s->err) : 0;
}

/* ---- looking for NaN ---- */
int ricci_check_finite(ricci_session *s, int on)
{
	int code = session_enter(s, "ricci_check_finite");

	if (code)
		return code;
	code = program_check_finite(s->p, on != 0, &s->err);
	if (!code)
		code = program_reserve(s->p, &s->spec, &s->err);
	if (code)
		program_check_finite(s->p, false, NULL);
	return session_leave(s, code);
}

/* ---- profiles ---- */
int ricci_time_kernels(ricci_session *s, int on)
{
	if (session_begin(s, "ricci_time_kernels"))
		return RICCI_EINVAL;
	program_time(s->p, on != 0);
	return 0;
}

ricci_profile *ricci_profile_new(ricci_session *s)
{
	if (session_begin(s, "ricci_profile_new"))
		return NULL;
	if (!s->p->steps) {
		error_set(&s->err, RICCI_EINVAL,
			  "no step was timed: ricci_time_kernels(s, 1) comes first, then steps");
		return NULL;
	}
	return profile_make(s->p, &s->err);
}

ricci_memory *ricci_memory_new(ricci_session *s)
{
	return session_begin(s, "ricci_memory_new") ? NULL : memory_make(s->p, &s->spec, &s->err);
}

/* ---- tuning ---- */
typedef struct Won {
	ricci_tune_report *report;
	void *user;
	double before; /* spent until the search began */
	double done;   /* of a step: won by the kernels that were searched */
} Won;

static bool tune_show(void *user, int k, int n, double spent, bool done, const TuneReport *r)
{
	Won *w = user;
	double now = r->share * fmax(0, 1 - r->seconds / r->first); /* timed anew at the end */

	(void)k;
	(void)n;
	if (done)
		w->done += now;
	return w->report && w->report(w->user, w->before + spent, 1 - w->done - !done * now);
}

int ricci_tune(ricci_session *s, double seconds, ricci_tune_report *report, void *user)
{
	Won won = {report, user, 0, 0};
	Tuning t = {.strategy = strategies, .seed = 1, .report = tune_show, .user = &won};
	double start = clock_seconds();
	int code;

	if (session_begin(s, "ricci_tune"))
		return RICCI_EINVAL;
	if (!(seconds >= 0))
		return error_set(&s->err, RICCI_EINVAL, "a search takes 0 seconds or more, not %g",
				 seconds);
	if (!s->f->tuner)
		return error_set(&s->err, RICCI_EINVAL,
				 "a static session's schedules are fixed: tune a dynamic one");
	code = tuner_settle(s->f->tuner, s->f->pool, start + seconds, &s->err);
	won.before = clock_seconds() - start;
	t.seconds = seconds - won.before;
	if (!code && t.seconds > 0)
		code = entries_tune(s->p->nentry, s->p->entry, s->f->pool, &t, &s->err);
	return code;
}

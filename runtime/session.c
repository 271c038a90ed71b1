/* session.c - the public sessions: parameters and states, data in and out, steps.
 *
 * Sessions that share parameters are a family: the storage of the states, the threads and the tuner
 * belong to it. Invariant: a failed call leaves states and data as they were.
 */
#include "runtime/internal.h"
#include <math.h>
#include <string.h>

typedef struct Family {
	int refs;
	ricci_graph *g;
	Request request;
	uint64_t seed;
	Pool *pool;
	Tuner *tuner; /* NULL: nothing is tuned */
	int nstate;
	Storage *state;
} Family;

struct ricci_session {
	Family *f;
	ProgramSpec spec;
	Program *p;
	int ninput;
	Storage *input;
	const ricci_tensor **output;
	bool train, ran;
	uint64_t step;
	Error err;
};

/* ---- storage ---- */
static bool keeps(const ricci_tensor *t)
{
	return t->role == ROLE_PARAM || t->role == ROLE_STATE;
}

static Storage *storage_find(int n, Storage *list, const Node *x)
{
	for (int i = 0; i < n; i++)
		if (list[i].node == x)
			return &list[i];
	return NULL;
}

static Storage *session_storage(ricci_session *s, const Node *x)
{
	Storage *st = storage_find(s->f->nstate, s->f->state, x);

	return st ? st : storage_find(s->ninput, s->input, x);
}

static Storage *session_find(void *user, Node *input)
{
	return session_storage(user, input);
}

static void storage_free(int n, Storage *list)
{
	for (int i = 0; list && i < n; i++) {
		buffer_free(list[i].data);
		buffer_free(list[i].spare);
	}
	mem_free(list);
}

/* Storages of the graph's tensors of these roles, in order of creation. */
static int storage_list(const ricci_graph *g, bool kept, int *n, Storage **list, Error *err)
{
	*n = 0;
	*list = mem_zalloc(((size_t)g->ntensor + 1) * sizeof **list);
	if (!*list)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	for (const ricci_tensor *t = g->first; t; t = t->next)
		if (kept ? keeps(t) : t->role == ROLE_INPUT)
			(*list)[(*n)++] = (Storage){
				.tensor = t, .node = t->node, .bytes = tensor_bytes(t->node)};
	return 0;
}

static int storage_reserve(Storage *st, Error *err)
{
	if (!st->data && !(st->data = buffer_new(st->bytes)))
		return error_set(err, RICCI_ENOMEM, "out of memory for '%s'", st->tensor->name);
	return 0;
}

int data_check(const ricci_tensor *t, const void *data, Error *err)
{
	Type type = (Type)t->node->type;
	size_t n = (size_t)tensor_size(t->node);
	int64_t lo = t->need_lo, hi = t->need_hi, all_lo, all_hi;

	if (type_is_float(type))
		return 0;
	type_range(type, &all_lo, &all_hi);
	if (type != RICCI_BOOL && lo <= all_lo && hi >= all_hi)
		return 0;
	for (size_t i = 0; i < n; i++) {
		int64_t v = type == RICCI_BOOL ? ((const uint8_t *)data)[i]
					       : type_load_int(type, data, i);

		if (type == RICCI_BOOL && v > 1)
			return error_set(err, RICCI_EVALUE,
					 "'%s': element %zu is %lld, but a bool is 0 or 1", t->name,
					 i, (long long)v);
		if (type != RICCI_BOOL && (v < lo || v > hi))
			return error_set(err, RICCI_EVALUE,
					 "'%s': element %zu is %lld, but the graph indexes with it "
					 "and needs %lld..%lld",
					 t->name, i, (long long)v, (long long)lo, (long long)hi);
	}
	return 0;
}

/* ---- families ---- */
static void family_unref(Family *f)
{
	if (!f || --f->refs > 0)
		return;
	tuner_free(f->tuner);
	pool_free(f->pool);
	storage_free(f->nstate, f->state);
	f->g->frozen--;
	mem_free(f);
}

static int request_make(const ricci_options *o, Request *r, Error *err)
{
	static const char *const name[] = {NULL, "interp", "tcc", "cc"};
	char why[256] = "it is not part of this build";

	*r = (Request){.frozen = o->static_mode != 0};
	if ((int)o->backend < 0 || (int)o->backend >= COUNT(name))
		return error_set(err, RICCI_EINVAL, "there is no backend number %d",
				 (int)o->backend);
	if (!name[o->backend])
		return 0;
	r->backend = backend_find(name[o->backend]);
	if (!r->backend || !r->backend->available(why, sizeof why))
		return error_set(err, RICCI_ECOMPILE, "backend %s can't be used: %s",
				 name[o->backend], why);
	return 0;
}

static int family_fill(Family *f, const ricci_options *o, Error *err)
{
	int code = request_make(o, &f->request, err);

	f->seed = o->seed;
	if (!code && !(f->pool = pool_new(o->threads, err)))
		return RICCI_ENOMEM;
	if (!code && !f->request.frozen && !(f->tuner = tuner_new(pool_spare(f->pool), err)))
		return RICCI_ENOMEM;
	if (!code)
		code = storage_list(f->g, true, &f->nstate, &f->state, err);
	for (int i = 0; i < f->nstate && !code; i++) {
		code = storage_reserve(&f->state[i], err);
		if (!code)
			code = storage_draw(&f->state[i], f->seed, f->pool, err);
		if (!code)
			code = data_check(f->state[i].tensor, f->state[i].data, err);
	}
	return code;
}

static Family *family_new(ricci_graph *g, const ricci_options *o, Error *err)
{
	static const ricci_options usual;
	Family *f = mem_zalloc(sizeof *f);

	if (!f) {
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	f->refs = 1;
	f->g = g;
	g->frozen++;
	if (family_fill(f, o ? o : &usual, err)) {
		family_unref(f);
		return NULL;
	}
	return f;
}

/* ---- sessions ---- */
static int count_assigned(const ricci_graph *g)
{
	int n = 0;

	for (const ricci_tensor *t = g->first; t; t = t->next)
		n += keeps(t) && t->assign;
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
		if (keeps(t) && t->assign) {
			p->root[noutput + p->nassign] = t->assign->node;
			p->assigned[p->nassign++] = session_storage(s, t->node);
		}
	p->find = session_find;
	p->user = s;
	p->request = s->f->request;
	p->precision = g->precision;
	p->by_chance = g->rounding == RICCI_STOCHASTIC;
	p->threads = pool_threads(s->f->pool);
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
	if (!code && f->tuner)
		code = tuner_add(f->tuner, s->p->nline, s->p->line, err);
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
	s->f = f;
	s->train = train != 0;
	if (session_fill(s, train, noutput, outputs, err)) {
		ricci_session_free(s);
		return NULL;
	}
	return s;
}

static ricci_session *session_give(ricci_session *s, const Error *err, char *text, size_t n)
{
	if (text && n)
		snprintf(text, n, "%s", s ? "" : err->text);
	return s;
}

ricci_session *ricci_session_new(ricci_graph *g, const ricci_options *options, int train,
				 int noutput, ricci_tensor *const *outputs, char *err, size_t nerr)
{
	ricci_session *s = NULL;
	Error e = {0};
	Family *f;

	if (!g || noutput < 0 || (noutput > 0 && !outputs))
		error_set(&e, RICCI_EINVAL, "a session needs a graph and its outputs");
	else if (g->ir.err.code)
		error_set(&e, g->ir.err.code, "%s", g->ir.err.text);
	else if ((f = family_new(g, options, &e)))
		s = session_make(f, train, noutput, outputs, &e);
	return session_give(s, &e, err, nerr);
}

ricci_session *ricci_session_share(ricci_session *old, int train, int noutput,
				   ricci_tensor *const *outputs, char *err, size_t nerr)
{
	ricci_session *s = NULL;
	Error e = {0};

	if (!old || noutput < 0 || (noutput > 0 && !outputs)) {
		error_set(&e, RICCI_EINVAL, "a shared session needs a session and its outputs");
	} else {
		old->f->refs++;
		s = session_make(old->f, train, noutput, outputs, &e);
	}
	return session_give(s, &e, err, nerr);
}

void ricci_session_free(ricci_session *s)
{
	if (!s)
		return;
	program_free(s->p);
	storage_free(s->ninput, s->input);
	mem_free(s->spec.root);
	mem_free(s->spec.assigned);
	mem_free(s->output);
	family_unref(s->f);
	mem_free(s);
}

const char *ricci_session_error(const ricci_session *s)
{
	return s ? s->err.text : "there is no session";
}

int session_lines(const ricci_session *s, Line **lines, int room)
{
	int n = 0;

	for (int i = 0; i < s->p->nline && n < room; i++)
		lines[n++] = s->p->line[i];
	return n;
}

size_t session_bytes(const ricci_session *s)
{
	return s->p->arena_bytes;
}

/* ---- data ---- */
int ricci_feed(ricci_session *s, const ricci_tensor *t, const void *data)
{
	Storage *st;
	int code;

	if (!s)
		return RICCI_EINVAL;
	error_clear(&s->err);
	st = t && t->g == s->f->g && data ? session_storage(s, t->node) : NULL;
	if (!st)
		return error_set(&s->err, RICCI_EINVAL,
				 "only inputs, parameters and states of the session's graph take "
				 "data");
	code = data_check(t, data, &s->err);
	if (!code)
		code = storage_reserve(st, &s->err);
	if (!code)
		memcpy(st->data, data, st->bytes);
	return code;
}

int ricci_fetch(ricci_session *s, const ricci_tensor *t, void *data)
{
	Storage *st;

	if (!s)
		return RICCI_EINVAL;
	error_clear(&s->err);
	if (!t || t->g != s->f->g || !data)
		return error_set(&s->err, RICCI_EINVAL, "not a tensor of the session's graph");
	st = session_storage(s, t->node);
	if (st && st->data) {
		memcpy(data, st->data, st->bytes);
		return 0;
	}
	if (st)
		return error_set(&s->err, RICCI_EINVAL, "'%s' has not been fed", t->name);
	for (int i = 0; i < s->spec.noutput; i++)
		if (s->output[i]->node == t->node) {
			const Cell *c = &s->p->cell[s->p->root[i]];

			if (!s->ran)
				return error_set(&s->err, RICCI_EINVAL,
						 "an output has no value before the first step");
			memcpy(data, cell_data(c), tensor_bytes(c->node));
			return 0;
		}
	return error_set(&s->err, RICCI_EINVAL,
			 "the tensor is neither an output of this session nor an input, parameter "
			 "or state");
}

/* ---- steps ---- */
int ricci_step(ricci_session *s)
{
	RandomState rs;
	double clock;
	int code;

	if (!s)
		return RICCI_EINVAL;
	error_clear(&s->err);
	for (int i = 0; i < s->ninput; i++)
		if (s->input[i].used && !s->input[i].data)
			return error_set(&s->err, RICCI_EINVAL, "input '%s' has not been fed",
					 s->input[i].tensor->name);
	clock = clock_seconds();
	rs = (RandomState){s->f->seed, s->step};
	code = program_run(s->p, s->f->pool, rs, s->f->tuner, &s->err);
	if (!code)
		code = program_commit(s->p, &s->spec, &s->err);
	if (code)
		return code;
	if (!s->ran)
		time_stage("first step", &clock);
	s->ran = true;
	s->step++;
	if (s->f->tuner && tuner_busy(s->f->tuner))
		tuner_start(s->f->tuner);
	return 0;
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
	if (!s)
		return RICCI_EINVAL;
	error_clear(&s->err);
	return s->f->tuner ? tuner_settle(s->f->tuner, s->f->pool, &s->err) : 0;
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

	if (!s)
		return RICCI_EINVAL;
	error_clear(&s->err);
	if (!(seconds >= 0))
		return error_set(&s->err, RICCI_EINVAL, "a search takes 0 seconds or more, not %g",
				 seconds);
	if (!s->f->tuner)
		return error_set(&s->err, RICCI_EINVAL,
				 "a static session's schedules are fixed: tune a dynamic one");
	code = tuner_settle(s->f->tuner, s->f->pool, &s->err);
	won.before = clock_seconds() - start;
	t.seconds = seconds - won.before;
	if (!code && t.seconds > 0)
		code = lines_tune(s->p->nline, s->p->line, s->f->pool, &t, &s->err);
	return code;
}

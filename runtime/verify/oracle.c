/* oracle.c - is what a kernel stored right? Sampled elements against the interpreter.
 *
 * The interpreter computes in f64 from the same inputs, so the distance allowed is the rounding of
 * the kernel's own types: proportional to the sum of the magnitudes of the terms (which the
 * interpreter tells) and to the square root of their number. A member that reads earlier members
 * inherits their errors; how much is found by evaluating it again with those moved by their bounds.
 * Where an element still fails, bounds are widened by rounding errors of its inputs (widen.c). An element
 * on whose way there is more than the kernel's types hold, or an integer that rounding decides (an
 * infinite magnitude), has an infinite bound: it is not compared. What no rounding meets (exact.c)
 * has a bound of 0.
 */
#define _GNU_SOURCE
#include "runtime/verify/verify.h"
#include <math.h>
#include <string.h>
#include <sys/mman.h>

enum { WAYS = 4 };

typedef struct Oracle {
	const Task *task;
	TaskCopy copy;
	Sample *s;
	const Checking *how;
	Binding *bind[WAYS];  /* inputs, then members moved in this way */
	void **full;	      /* [WAYS * member + way]: the member's tensor, right at the sampled
				elements only, NULL: no later member reads it; way 0 as it is, 1 and 2
				moved by its bound up and down, 3 away from 0: in a product of opposite
				signs, 1 and 2 cancel */
	const uint8_t **lost; /* as interp_elements takes it: what has no bound may be anything */
	bool *moves;	      /* does the member read one that is moved? */
	int64_t *ints;	      /* what a member of integers is: a double lacks digits */
	double *exact;	      /* of each member: the magnitude up to which no rounding meets it */
} Oracle;

static double type_tiny(Type t)
{
	return t == RICCI_F64 ? 1e-300 : t == RICCI_F16 ? 1e-7 : 1e-36;
}

/* ---- what they should be ---- */
static void oracle_free(Oracle *j)
{
	for (int i = 0; j->full && i < WAYS * j->s->nmember; i++)
		if (j->full[i])
			pages_unmap(j->full[i], tensor_bytes(j->task->sub.member[i / WAYS]));
	mem_free(j->full);
	for (int i = 0; j->lost && i < j->s->nmember; i++) {
		void *marks = (void *)j->lost[j->task->sub.ninput + i];

		if (marks)
			pages_unmap(marks, (size_t)tensor_size(j->task->sub.member[i]));
	}
	mem_free(j->lost);
	for (int way = 0; way < WAYS; way++)
		mem_free(j->bind[way]);
	mem_free(j->moves);
	mem_free(j->ints);
	mem_free(j->exact);
	task_copy_free(&j->copy);
}

/* Long scatters of the copy become sums. */
static int oracle_gather(Oracle *j, Error *err)
{
	Ir *ir = &j->copy.ir;

	if (j->s->nmember > 1 || !sample_gathers(j->task->sub.member[0]))
		return 0;
	IR_ENTER(ir, error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification"));
	j->copy.member[0] = scatter_gathered(ir, j->copy.member[0]);
	IR_LEAVE(ir);
	return 0;
}

/* Whole tensors, of which the sampled elements alone are touched: pages that are not cost nothing. */
static void *whole_new(size_t bytes)
{
	void *p = pages_map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE);

	if (p)
		madvise(p, bytes, MADV_NOHUGEPAGE);
	return p;
}

/* Memory for what later members read of member k, unless it is given. */
static bool oracle_room(Oracle *j, int k)
{
	const Subgraph *sub = &j->task->sub;
	const void *given = checking_given(j->how, j->task, k);
	bool read = false, good = true;

	for (int i = k + 1; i < sub->nmember && !given; i++)
		if (node_has(comp_body(sub->member[i]), sub->member[k]))
			read = j->moves[i] = true;
	for (int way = 0; way < WAYS && good; way++) {
		void *full = read ? whole_new(tensor_bytes(sub->member[k])) : NULL;

		j->full[WAYS * k + way] = full;
		j->bind[way][sub->ninput + k] = (Binding){j->copy.member[k], given ? given : full};
		good = full || !read;
	}
	return good;
}

static int oracle_init(Oracle *j, const Task *t, void *const *input, const Checking *how, Sample *s,
		       Error *err)
{
	size_t m = (size_t)s->nmember, in = (size_t)t->sub.ninput, nint = 1;
	bool good = true;

	*j = (Oracle){.task = t, .s = s, .how = how};
	if (task_copy(t, &j->copy, err) || oracle_gather(j, err))
		return err ? err->code : RICCI_ENOMEM;
	for (int k = 0; k < s->nmember; k++)
		if (!type_is_float(t->sub.member[k]->type) && (size_t)s->count[k] > nint)
			nint = (size_t)s->count[k];
	j->full = mem_zalloc(WAYS * m * sizeof *j->full);
	j->lost = mem_zalloc((in + m) * sizeof *j->lost);
	j->moves = mem_zalloc(m * sizeof *j->moves);
	j->ints = mem_alloc(nint * sizeof *j->ints);
	j->exact = mem_alloc(m * sizeof *j->exact);
	for (int way = 0; way < WAYS && good; way++) {
		j->bind[way] = mem_zalloc((in + m) * sizeof **j->bind);
		good = j->bind[way] != NULL;
		for (size_t i = 0; i < in && good; i++)
			j->bind[way][i] = (Binding){j->copy.input[i], input[i]};
	}
	good = good && j->full && j->lost && j->moves && j->ints && j->exact &&
	       !exact_members(&j->copy, t, how->whole, j->exact);
	for (int k = 0; k < s->nmember && good; k++)
		good = oracle_room(j, k);
	return good ? 0 : error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
}

/* Does a kernel have it with the same bits? */
static bool is_given(const Node *n)
{
	return n->op == OP_READ && n->src[0]->op == OP_INPUT;
}

/* The rounding of one node: reads and numbers are exact, casts round to their type itself. */
static void see_rounding(void *user, Node *n)
{
	double *eps = user;
	Type t = (Type)n->type;

	if (n->op == OP_TF32) /* what is computed may be rounded to the next number */
		*eps = fmax(*eps, is_given(n->src[0]) ? 0 : TF32_EPSILON);
	else if (type_is_float(t) && n->op != OP_READ && n->op != OP_CONST && !node_is_tensor(n))
		*eps = fmax(*eps, type_epsilon(n->op == OP_CAST ? t : type_accumulator(t)));
}

/* The coarsest rounding in c's arithmetic: a body may compute in a narrower type than its own. */
double arithmetic_epsilon(Ir *ir, const Node *c)
{
	Node *const body = comp_body(c);
	double eps = type_epsilon(type_accumulator((Type)c->type));

	IR_ENTER(ir, NAN); /* nothing is right then */
	/* the cast of a single term is the result's rounding, which is counted by itself */
	node_walk(ir, body->op == OP_CAST && !comp_reduce(c) ? body->src[0] : body, see_rounding,
		  &eps);
	IR_LEAVE(ir);
	return eps;
}

double result_bound(const Node *c, double length, double eps, double exact, double value,
		    double mag)
{
	if (isinf(mag) || !type_is_float(c->type))
		return isinf(mag) ? INFINITY : 0;
	/* a quotient of the sum for a sum of quotients may be infinite instead */
	if (isnan(value) && comp_reduce(c) == RED_ADD)
		return INFINITY;
	if (exact > 0 && mag <= exact) /* where nothing is exact, a magnitude of 0 has underflown */
		return 0;
	return eps * (24 + 4 * sqrt(length)) * mag + type_epsilon((Type)c->type) * fabs(value) +
	       type_tiny((Type)c->type);
}

/* The whole of a scatter, of which the sampled elements are taken. */
static int oracle_scatter(Oracle *j, double eps, Error *err)
{
	Node *c = j->copy.member[0];
	Sample *s = j->s;
	size_t n = (size_t)tensor_size(c);
	double *all = mem_alloc(n * sizeof *all), *mag = mem_zalloc(n * sizeof *mag);
	int code = RICCI_ENOMEM;

	if (all && mag)
		code = interp_tensor(c, j->task->sub.ninput, j->bind[0], j->how->rs, all, mag, err);
	else
		error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	for (int i = 0; i < s->n && !code; i++) {
		int64_t v, at = s->at[0][i];

		memcpy(&v, &all[at], sizeof v);
		s->value[0][i] = type_is_float(c->type) ? all[at] : (double)v;
		s->bound[0][i] = result_bound(c, sample_length(c), eps, j->exact[0], s->value[0][i],
					      mag[at]);
	}
	mem_free(all);
	mem_free(mag);
	return code;
}

/* How many threads member k's elements are worth, of n that have work. */
static int threads_for(const Oracle *j, int k, int n)
{
	static const double cheap = 4000; /* points */
	double points = j->s->count[k] * sample_length(j->copy.member[k]);
	double worth = points * (j->moves[k] ? WAYS : 1) / cheap;
	int most = j->how->threads < n ? j->how->threads : n; /* may be 0 */

	worth = fmin(worth, most);
	return worth < 1 ? 1 : (int)worth;
}

/* Values and bounds of member k at the sampled elements, in n parts for as many threads. */
typedef struct Parts {
	const Oracle *j;
	int k, n;
	double eps;
	atomic_int next, code; /* code: of the first part that failed, which has err */
	Error err;
} Parts;

enum { CHUNK = 4096 };
typedef struct Chunk { /* elements `from` .. from + n - 1 of the sample */
	int from, n;
	double mag[CHUNK], moved[WAYS - 1][CHUNK];
	int64_t moved_int[WAYS - 1][CHUNK];
} Chunk;

/* The chunk from earlier members moved in this way. */
static int chunk_run(const Parts *p, Chunk *c, int way, Error *err)
{
	const Oracle *j = p->j;
	Node *member = j->copy.member[p->k];
	bool real = type_is_float(member->type);
	double *out = way ? c->moved[way - 1] : j->s->value[p->k] + c->from;
	int64_t *ints = way ? c->moved_int[way - 1] : j->ints + c->from;

	if (backend_stopped()) /* a reference can take many seconds, and nobody waits for it any more */
		return error_set(err, RICCI_EINTERNAL, "a verification was stopped");
	int code = interp_elements(member, j->task->sub.ninput + p->k, j->bind[way], j->lost,
				   j->how->rs, c->n, j->s->at[p->k] + c->from,
				   real ? (void *)out : (void *)ints, way ? NULL : c->mag, err);

	for (int i = 0; i < c->n && !code && !real; i++)
		out[i] = (double)ints[i];
	return code;
}

/* A chunk in all ways, by one thread or several. */
typedef struct Ways {
	const Parts *p;
	Chunk *c;
	int n;
	atomic_int next, code;
	Error err;
} Ways;

static void *ways_work(void *arg)
{
	Ways *w = arg;
	Error err = {0};
	int code = 0, none = 0;

	for (int way; !code && (way = atomic_fetch_add(&w->next, 1)) < w->n;)
		code = chunk_run(w->p, w->c, way, &err);
	if (code && atomic_compare_exchange_strong(&w->code, &none, code))
		w->err = err;
	return NULL;
}

void bound_widen(double *bound, double value, double other, double times)
{
	double d = fabs(other - value);

	if (isnan(value) != isnan(other))
		*bound = INFINITY;
	else if (!isnan(d)) /* both overflow */
		*bound += times * d;
}

static int chunk_expect(const Parts *p, Chunk *c, Error *err)
{
	const Oracle *j = p->j;
	const Node *member = j->copy.member[p->k];
	double length = sample_length(member), *bound = j->s->bound[p->k] + c->from;
	const double *value = j->s->value[p->k] + c->from;
	Ways w = {.p = p, .c = c, .n = j->moves[p->k] ? WAYS : 1};

	threads_work(p->n > 1 ? 1 : threads_for(j, p->k, w.n), ways_work, &w);
	if (w.code)
		return error_set(err, w.code, "%s", w.err.text);
	for (int i = 0; i < c->n; i++)
		bound[i] =
			result_bound(member, length, p->eps, j->exact[p->k], value[i], c->mag[i]);
	for (int way = 1; way < w.n; way++)
		for (int i = 0; i < c->n; i++)
			bound_widen(&bound[i], value[i], c->moved[way - 1][i], 1);
	return 0;
}

static void *parts_work(void *arg)
{
	Parts *p = arg;
	int64_t count = p->j->s->count[p->k];
	Chunk *c = mem_alloc(sizeof *c);
	Error err = {0};
	int code = c ? 0 : error_set(&err, RICCI_ENOMEM, "out of memory"), none = 0;

	for (int i; !code && (i = atomic_fetch_add(&p->next, 1)) < p->n;) {
		int from = (int)(count * i / p->n), to = (int)(count * (i + 1) / p->n);

		for (; from < to && !code && !atomic_load(&p->code); from += CHUNK) {
			c->from = from;
			c->n = to - from < CHUNK ? to - from : CHUNK;
			code = chunk_expect(p, c, &err);
		}
	}
	if (code && atomic_compare_exchange_strong(&p->code, &none, code))
		p->err = err;
	mem_free(c);
	return NULL;
}

static int oracle_member(Oracle *j, int k, Error *err)
{
	Parts p = {.j = j,
		   .k = k,
		   .n = threads_for(j, k, j->s->count[k]),
		   .eps = arithmetic_epsilon(&j->copy.ir, j->copy.member[k])};

	if (j->s->nmember == 1 && !comp_is_dense(j->copy.member[0]))
		return oracle_scatter(j, p.eps, err);
	threads_work(p.n, parts_work, &p);
	return p.code ? error_set(err, p.code, "%s", p.err.text) : 0;
}

/* Marks element `at` of member k: it may be anything. */
static bool oracle_lose(Oracle *j, int k, size_t at)
{
	const uint8_t **lost = &j->lost[j->task->sub.ninput + k];

	if (!*lost)
		*lost = whole_new((size_t)tensor_size(j->task->sub.member[k]));
	if (*lost)
		((uint8_t *)*lost)[at] = 1;
	return *lost != NULL;
}

/* What later members read of member k. False: no memory. */
static bool oracle_keep(Oracle *j, int k)
{
	Type t = (Type)j->copy.member[k]->type;
	const double *v = j->s->value[k], *b = j->s->bound[k];
	void **full = &j->full[WAYS * k];

	for (int i = 0; i < j->s->count[k] && full[0]; i++) {
		size_t at = (size_t)j->s->at[k][i];

		if (b[i] == 0 && !type_is_float(t)) {
			for (int way = 0; way < WAYS; way++)
				type_store_int(t, full[way], at, j->ints[i]);
			continue;
		}
		double to[WAYS] = {v[i], v[i] + b[i], v[i] - b[i], v[i] + copysign(b[i], v[i])};

		/* an integer is not moved: it may be an index, which has to stay in its range */
		if (isinf(b[i]) || !type_is_float(t)) {
			to[1] = to[2] = to[3] = fabs(v[i]) <= type_largest(t) ? v[i] : 0;
			if (!oracle_lose(j, k, at))
				return false;
		}
		for (int way = 0; way < WAYS; way++)
			type_store(t, full[way], at, to[way]);
	}
	return true;
}

/* Values and bounds of all members. */
static int oracle_all(Oracle *j, Error *err)
{
	int code = 0;

	for (int k = 0; k < j->s->nmember && !code; k++) {
		code = oracle_member(j, k, err);
		if (!code && !oracle_keep(j, k))
			code = error_set(err, RICCI_ENOMEM,
					 "out of memory for a kernel's verification");
	}
	return code;
}

int sample_values(const Task *t, void *const *input, const Checking *how, CopyChangeFn *change,
		  const void *arg, Sample *s, Error *err)
{
	Oracle j;
	int code = oracle_init(&j, t, input, how, s, err);

	if (!code && change)
		code = change(&j.copy, t, arg, err);
	if (!code)
		code = oracle_all(&j, err);
	oracle_free(&j);
	return code;
}

int sample_expect(const Task *t, void *const *input, const Checking *how, Sample *s, Error *err)
{
	int code;

	if (!sample_choose(t, how, s)) {
		sample_free(s);
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	}
	if (s->n == 0)
		return 0;
	code = sample_values(t, input, how, NULL, NULL, s, err);
	s->staged = how->staged;
	if (code)
		sample_free(s);
	return code;
}

/* ---- the verdict ---- */
static bool value_right(Type t, double got, double want, double bound)
{
	if (isinf(bound))
		return true;
	if (isnan(want))
		return isnan(got);
	if (fabs(got - want) <= bound) /* false for a NaN */
		return true;
	/* out of the type's range on the way, or nearly? */
	return fabs(want) + bound >= type_largest(t) &&
	       (!isfinite(got) || fabs(got) >= type_largest(t) / 4);
}

void element_name(const Node *c, int64_t at, char *out, size_t n)
{
	int64_t index[RICCI_MAX_RANK + COMP_MAX_AXES];
	int rank = tensor_rank(c);
	size_t m = 0;

	for (int d = rank - 1; d >= 0; d--) {
		index[d] = at % tensor_extent(c, d);
		at /= tensor_extent(c, d);
	}
	*out = 0;
	for (int d = 0; d < rank && m < n; d++)
		m += (size_t)snprintf(out + m, n - m, d ? ",%lld" : "%lld", (long long)index[d]);
}

int sample_check(const Task *t, const Sample *s, void *const *stored, Error *err)
{
	for (int k = 0, out = 0; k < s->nmember; k++) {
		const Node *c = t->sub.member[k];
		Type type = (Type)c->type;
		char name[200];

		if (!t->sub.stored[k])
			continue;
		for (int i = 0; i < s->count[k]; i++) {
			size_t at = (size_t)s->at[k][i];
			double got = type_is_float(type)
					     ? type_load(type, stored[out], at)
					     : (double)type_load_int(type, stored[out], at);

			if (value_right(type, got, s->value[k][i], s->bound[k][i]))
				continue;
			element_name(c, s->at[k][i], name, sizeof name);
			return error_set(err, RICCI_ECOMPILE,
					 "a kernel computes a wrong value: element [%s] of result "
					 "%d is %.9g, but should be %.9g within %.2g",
					 name, out, got, s->value[k][i], s->bound[k][i]);
		}
		out++;
	}
	return 0;
}

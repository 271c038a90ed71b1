/* oracle.c - is what a kernel stored right? Sampled elements against the interpreter.
 *
 * The interpreter computes in f64 from the same inputs, so the distance allowed is the rounding of
 * the kernel's own types: proportional to the sum of the magnitudes of the terms (which the
 * interpreter tells) and to the square root of their number. A member that reads earlier members
 * inherits their errors; how much is found by evaluating it again with those moved by their bounds.
 * Where an element still fails, its inputs and what is computed of them are moved by a rounding too
 * (sample_judge), so that an ill-conditioned expression is not held against the kernel. An element
 * on whose way there is more than the kernel's types hold, or an integer that rounding decides (an
 * infinite magnitude), has an infinite bound: it is not compared. What no rounding meets (exact.c)
 * has a bound of 0.
 */
#define _GNU_SOURCE
#include "runtime/verify/verify.h"
#include <float.h>
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

/* Y[lhs] += e as Y[o] += lhs == o ? e : 0, of which single elements can be evaluated. */
static Node *scatter_gathered(Ir *ir, Node *c)
{
	int rank = tensor_rank(c), n = comp_naxis(c), naxis = rank;
	Node *axes[RICCI_MAX_RANK + COMP_MAX_AXES], *to[COMP_MAX_AXES];
	Node *meets = node_const_int(ir, RICCI_BOOL, 1), *body;

	for (int d = 0; d < rank; d++)
		axes[d] = node_axis(ir, d, tensor_extent(c, d));
	for (int a = 0; a < n; a++) {
		Node *axis = comp_axis(c, a);

		to[a] = NULL;
		for (int d = 0; d < rank && !to[a]; d++)
			if (comp_lhs(c, d) == axis)
				to[a] = axes[d];
		if (!to[a])
			to[a] = axes[naxis] = node_axis(ir, naxis, axis_extent(axis)), naxis++;
		else if (axis_extent(axis) < axis_extent(to[a]))
			meets = node2(ir, OP_AND, meets,
				      node2(ir, OP_LT, to[a], node_int(ir, axis_extent(axis))));
	}
	for (int d = 0; d < rank; d++)
		meets = node2(
			ir, OP_AND, meets,
			node2(ir, OP_EQ, node_replace(ir, comp_lhs(c, d), n, c->src, to), axes[d]));
	body = node_replace(ir, comp_body(c), n, c->src, to);
	body = node_select(ir, meets, body,
			   type_is_float((Type)c->type) ? node_const(ir, (Type)c->type, 0)
							: node_const_int(ir, (Type)c->type, 0));
	return comp_dense(ir, RED_ADD, rank, naxis, axes, body);
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

/* By so many times the distance of what another way of computing gives: none where only one is NaN. */
static void bound_widen(double *bound, double value, double other, double times)
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

int sample_expect(const Task *t, void *const *input, const Checking *how, Sample *s, Error *err)
{
	Oracle j;
	int code;

	if (!sample_choose(t, how, s)) {
		sample_free(s);
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	}
	if (s->n == 0)
		return 0;
	code = oracle_init(&j, t, input, how, s, err);
	if (!code)
		code = oracle_all(&j, err);
	oracle_free(&j);
	s->staged = how->staged;
	if (code)
		sample_free(s);
	return code;
}

/* ---- ill-conditioned elements ---- */
/* Inputs are moved where they are read: a copy would take as much memory as they. */
typedef struct Moving {
	Ir *ir;
	const Oracle *oracle;
	double by;
	bool onto; /* values move onto numbers of fewer bits, and inputs the other way; else away */
	Node **to; /* by id, what each node of a body becomes */
} Moving;

/* A number from 0 to PRIME - 1 that looks random, of the place that is read: its cube, which is
 * one-to-one, as 3 does not divide PRIME - 1. */
enum { PRIME = 65519 };

static Node *read_mixed(Ir *ir, const Node *read)
{
	const Node *x = read->src[0];
	Node *at = node_int(ir, 1), *square;

	for (int d = 0; d < tensor_rank(x); d++)
		at = node_add(ir, node_scale(ir, at, tensor_extent(x, d)), read->src[1 + d]);
	at = node_floormod(ir, at, PRIME);
	square = node_floormod(ir, node_mul(ir, at, at), PRIME);
	return node_floormod(ir, node_mul(ir, square, at), PRIME);
}

static bool reads_input(const Moving *m, const Node *n)
{
	bool input = false;

	for (int i = 0; n->op == OP_READ && i < m->oracle->task->sub.ninput; i++)
		input = input || n->src[0] == m->oracle->copy.input[i];
	return input && (n->type == RICCI_F32 || n->type == RICCI_F64);
}

static Node *read_moved(const Moving *m, Node *read)
{
	Ir *ir = m->ir;
	Type type = (Type)read->type;
	Node *up = node2(ir, OP_LT, read_mixed(ir, read), node_int(ir, PRIME / 2));

	double by = m->onto ? -m->by : m->by;
	return node2(
		ir, OP_MUL, read,
		node_select(ir, up, node_const(ir, type, 1 + by), node_const(ir, type, 1 - by)));
}

/* Is it what kernels compute and round to 24 bits, by arithmetic or a function? */
static bool is_rounded(const Node *n)
{
	bool arithmetic = n->op >= OP_ADD && n->op <= OP_DIV;

	return n->type == RICCI_F32 && (arithmetic || (n->op >= OP_POW && n->op <= OP_ERF));
}

/* x moved as far as it is from the next number of fewer bits, a share of `by` at most, away from it or onto it, as
 * decides what a number just below an integer is: what has few bits stays, no later rounding undoes it, and what is
 * computed alike stays alike. */
static Node *value_moved(const Moving *m, Node *x)
{
	Ir *ir = m->ir;
	Node *large = node2(ir, OP_MUL, x, node_const(ir, (Type)x->type, 0x1p52 * m->by));
	Node *near = node2(ir, OP_SUB, large, node2(ir, OP_SUB, large, x));
	Node *finite = node2(ir, OP_EQ, near, near); /* it is NaN where x is infinite */
	Node *away = node2(ir, OP_ADD, x, node2(ir, OP_SUB, x, near));

	return node_select(ir, finite, m->onto ? near : away, x);
}

/* x, or 0 where kernels may take it for that (kernel_run): what has the exponents of f32 only. */
static Node *value_flushed(const Moving *m, Node *x)
{
	Ir *ir = m->ir;
	Type type = (Type)x->type;

	if (type != RICCI_F32)
		return x;
	Node *small = node2(ir, OP_LT, node1(ir, OP_ABS, x), node_const(ir, type, FLT_MIN));
	return node_select(ir, small, node_const(ir, type, 0), x);
}

static void see_moving(void *user, Node *n)
{
	Moving *m = user;
	Node **src = arena_alloc(&m->ir->arena, ((size_t)n->nsrc + 1) * sizeof *src), *to = n;
	bool changed = false;

	for (int k = 0; k < n->nsrc && !node_is_tensor(n); k++) {
		src[k] = m->to[n->src[k]->id];
		changed |= src[k] != n->src[k];
	}
	if (changed)
		to = node_make(m->ir, n->op, (Type)n->type, n->nsrc, src, n->u.i);
	if (reads_input(m, n))
		to = value_flushed(m, read_moved(m, to));
	else if (is_rounded(n))
		to = value_flushed(m, value_moved(m, to));
	m->to[n->id] = to;
}

/* c with its places and its body moved. */
static Node *comp_moved(Moving *m, Node *c)
{
	Ir *ir = m->ir;
	Node *place[RICCI_MAX_RANK], *body = comp_body(c);
	int64_t shape[RICCI_MAX_RANK];
	int rank = tensor_rank(c);

	m->to = arena_alloc(&ir->arena, ((size_t)c->id + 1) * sizeof *m->to);
	for (int d = 0; d < rank; d++) {
		shape[d] = tensor_extent(c, d);
		node_walk(ir, comp_lhs(c, d), see_moving, m);
		place[d] = m->to[comp_lhs(c, d)->id];
	}
	node_walk(ir, body, see_moving, m);
	return comp_make(ir, comp_reduce(c), rank, shape, place, comp_naxis(c), c->src,
			 m->to[body->id]);
}

/* The members read each input's elements moved by a share of `by`, up or down, and what they compute
 * is moved, too, since no move of a changes a - (a + 1). What is subnormal becomes 0. (What reads a
 * member is bound to the one before.) */
static int oracle_move(Oracle *j, double by, bool onto, Error *err)
{
	Ir *ir = &j->copy.ir;

	IR_ENTER(ir, error_set(err, RICCI_ENOMEM, "out of memory"));
	for (int k = 0; k < j->s->nmember; k++) {
		Moving m = {ir, j, by, onto, NULL};

		j->copy.member[k] = comp_moved(&m, j->copy.member[k]);
	}
	IR_LEAVE(ir);
	return 0;
}

/* base: the bounds before any were widened. Those of s are what the worst of all moves asks for. */
static int widen_once(const Task *t, void *const *input, RandomState rs, double by, bool onto,
		      double *const *base, Sample *s, Error *err)
{
	Sample moved;
	Oracle j;
	int code;

	if (!sample_like(s, &moved)) {
		sample_free(&moved);
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	}
	const Checking how = {.rs = rs};
	code = oracle_init(&j, t, input, &how, &moved, err);
	if (!code)
		code = oracle_move(&j, by, onto, err);
	if (!code)
		code = oracle_all(&j, err);
	oracle_free(&j);
	for (int k = 0; k < s->nmember && !code; k++)
		for (int i = 0; i < s->count[k]; i++) {
			double bound = base[k][i];

			if (bound == 0) /* what is exact stays so */
				continue;
			bound_widen(&bound, s->value[k][i], moved.value[k][i], 4);
			s->bound[k][i] = fmax(s->bound[k][i], bound);
		}
	sample_free(&moved);
	return code;
}

static double **bounds_copy(Sample *s)
{
	double **base = arena_alloc(&s->arena, ((size_t)s->nmember + 1) * sizeof *base);

	for (int k = 0; base && k < s->nmember; k++) {
		size_t bytes = (size_t)s->count[k] * sizeof **base;

		base[k] = arena_alloc(&s->arena, bytes + 1);
		if (!base[k])
			return NULL;
		memcpy(base[k], s->bound[k], bytes);
	}
	return base;
}

static void bounds_share(Sample *s)
{
	for (int k = 0; k < s->nmember; k++) {
		double widest = 0;

		for (int i = 0; i < s->count[k]; i++)
			if (isfinite(s->bound[k][i]))
				widest = fmax(widest, s->bound[k][i]);
		for (int i = 0; i < s->count[k]; i++)
			if (s->bound[k][i] != 0) /* what is exact stays so */
				s->bound[k][i] = fmax(s->bound[k][i], widest);
	}
}

/* Roundings of a sum over like terms all go one way: then they grow with the terms' number itself.
 */
void sample_one_way(const Task *t, Sample *s)
{
	for (int k = 0; k < s->nmember; k++)
		for (int i = 0; i < s->count[k]; i++)
			s->bound[k][i] *= sqrt(sample_length(t->sub.member[k]));
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

int sample_judge(const Task *t, void *const *input, RandomState rs, Sample *s, void *const *stored,
		 Error *wrong, Error *err)
{
	bool differs = sample_check(t, s, stored, NULL);
	double **base = differs ? bounds_copy(s) : NULL;

	if (differs && !base)
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	/* What lies a rounding below a number of fewer bits is found by the least move, a bad condition by larger ones. */
	for (double by = 0x1p-22; by < 0x1p-15 && differs; by *= 8) {
		bool onto = by == 0x1p-22;
		int code = widen_once(t, input, rs, by, onto, base, s, err);

		if (code)
			return code;
		if (s->staged)
			bounds_share(s);
		differs = sample_check(t, s, stored, NULL);
	}
	if (differs)
		sample_check(t, s, stored, wrong);
	return 0;
}

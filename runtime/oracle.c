/* oracle.c - is what a kernel stored right? Sampled elements against the interpreter.
 *
 * The interpreter computes in f64 from the same inputs, so the distance allowed is the rounding of
 * the kernel's own types: proportional to the sum of the magnitudes of the terms (which the
 * interpreter tells) and to the square root of their number. A member that reads earlier members
 * inherits their errors; how much is found by evaluating it again with those moved by their bounds.
 * Where an element still fails, its inputs are moved by a rounding too (sample_widen), so that an
 * ill-conditioned expression is not held against the kernel. An element on whose way there is more
 * than the kernel's types hold, or an integer that rounding decides (an infinite magnitude), has an
 * infinite bound: it is not compared. What no rounding meets (exact.c) has a bound of 0.
 */
#define _GNU_SOURCE
#include "runtime/internal.h"
#include <float.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

enum { WAYS = 4 };

typedef struct Oracle {
	const Task *task;
	TaskCopy copy;
	Sample *s;
	RandomState rs;
	int threads;
	Binding *bind; /* inputs, then members */
	void **full;   /* [WAYS * member + way]: the member's tensor, right at the sampled elements
			  only; way 0 as it is, 1 and 2 moved by its bound up and down, 3 away from 0:
			  in a product of opposite signs, 1 and 2 cancel */
	double *mag, *moved;
	int64_t *ints;
	double *exact; /* of each member: the magnitude up to which no rounding meets it */
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
			munmap(j->full[i], tensor_bytes(j->task->sub.member[i / WAYS]));
	mem_free(j->full);
	mem_free(j->bind);
	mem_free(j->mag);
	mem_free(j->moved);
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
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_NOHUGEPAGE);
	return p;
}

static int oracle_init(Oracle *j, const Task *t, void *const *input, const Checking *how, Sample *s,
		       Error *err)
{
	size_t n = (size_t)s->n + 1, m = (size_t)s->nmember, in = (size_t)t->sub.ninput;
	bool good;

	*j = (Oracle){.task = t, .s = s, .rs = how->rs, .threads = how->threads};
	if (task_copy(t, &j->copy, err) || oracle_gather(j, err))
		return err ? err->code : RICCI_ENOMEM;
	j->full = mem_zalloc(WAYS * m * sizeof *j->full);
	j->bind = mem_zalloc((in + m) * sizeof *j->bind);
	j->mag = mem_alloc(n * sizeof *j->mag);
	j->moved = mem_alloc(n * sizeof *j->moved);
	j->ints = mem_alloc(n * sizeof *j->ints);
	j->exact = mem_alloc(m * sizeof *j->exact);
	good = j->full && j->bind && j->mag && j->moved && j->ints && j->exact &&
	       !exact_members(&j->copy, t, how->whole, j->exact);
	for (size_t i = 0; m > 1 && i < WAYS * m && good; i++)
		good = (j->full[i] = whole_new(tensor_bytes(t->sub.member[i / WAYS]))) != NULL;
	for (size_t i = 0; i < in && good; i++)
		j->bind[i] = (Binding){j->copy.input[i], input[i]};
	for (size_t i = 0; i < m && good; i++)
		j->bind[in + i].tensor = j->copy.member[i];
	return good ? 0 : error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
}

/* The whole of a scatter, of which the sampled elements are taken. */
static int oracle_scatter(Oracle *j, double *out, Error *err)
{
	Node *c = j->copy.member[0];
	size_t n = (size_t)tensor_size(c);
	double *all = mem_alloc(n * sizeof *all), *mag = mem_zalloc(n * sizeof *mag);
	int code = RICCI_ENOMEM;

	if (all && mag)
		code = interp_tensor(c, j->task->sub.ninput, j->bind, j->rs, all, mag, err);
	else
		error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	for (int i = 0; i < j->s->n && !code; i++) {
		int64_t v, at = j->s->at[0][i];

		memcpy(&v, &all[at], sizeof v);
		out[i] = type_is_float(c->type) ? all[at] : (double)v;
		j->mag[i] = mag[at];
	}
	mem_free(all);
	mem_free(mag);
	return code;
}

/* Member k at the sampled elements, in n parts for as many threads. */
typedef struct Parts {
	const Oracle *j;
	int k, n;
	atomic_int next, code; /* code: of the first part that failed, which has err */
	char *out;	       /* doubles or int64 */
	double *mag;
	Error err;
} Parts;

static void *parts_work(void *arg)
{
	Parts *p = arg;
	const Oracle *j = p->j;
	int64_t count = j->s->count[p->k];

	for (int i; (i = atomic_fetch_add(&p->next, 1)) < p->n;) {
		int64_t from = count * i / p->n, to = count * (i + 1) / p->n;
		Error err = {0};
		int none = 0;
		int code = interp_elements(j->copy.member[p->k], j->task->sub.ninput + p->k,
					   j->bind, j->rs, (int)(to - from), j->s->at[p->k] + from,
					   p->out + (size_t)from * sizeof(double),
					   p->mag ? p->mag + from : NULL, &err);

		if (code && atomic_compare_exchange_strong(&p->code, &none, code))
			p->err = err;
	}
	return NULL;
}

/* How many threads member k's elements are worth. */
static int parts_of(const Oracle *j, int k)
{
	static const double cheap = 4000; /* points */
	int count = j->s->count[k], most = j->threads < count ? j->threads : count;
	double n = fmin(count * sample_length(j->copy.member[k]) / cheap, most);

	return n < 1 ? 1 : (int)n;
}

/* Member k at the sampled elements, as doubles or int64. */
static int oracle_elements(Oracle *j, int k, void *out, double *mag, Error *err)
{
	Parts p = {.j = j, .k = k, .n = parts_of(j, k), .out = out, .mag = mag};

	threads_work(p.n, parts_work, &p);
	return p.code ? error_set(err, p.code, "%s", p.err.text) : 0;
}

/* Member k at the sampled elements, from earlier members moved in this way; its magnitudes, of way 0, to
 * j->mag. */
static int oracle_member(Oracle *j, int k, int way, double *out, Error *err)
{
	Node *c = j->copy.member[k];
	int in = j->task->sub.ninput, code;
	bool real = type_is_float(c->type);

	if (j->s->nmember == 1 && !comp_is_dense(c))
		return oracle_scatter(j, out, err);
	for (int i = 0; i < k; i++)
		j->bind[in + i].data = j->full[WAYS * i + way];
	code = oracle_elements(j, k, real ? (void *)out : (void *)j->ints, way ? NULL : j->mag,
			       err);
	for (int i = 0; i < j->s->count[k] && !code && !real; i++)
		out[i] = (double)j->ints[i];
	return code;
}

/* The rounding of one node: reads and numbers are exact, casts round to their type itself. */
static void see_rounding(void *user, Node *n)
{
	double *eps = user;
	Type t = (Type)n->type;

	if (type_is_float(t) && n->op != OP_READ && n->op != OP_CONST && !node_is_tensor(n))
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

/* What has no bound may be anything: a NaN, and a number even where it is none as it is stored. */
static void oracle_keep(Oracle *j, int k)
{
	Node *c = j->copy.member[k];
	Type t = (Type)c->type;
	const double *v = j->s->value[k], *b = j->s->bound[k];

	for (int i = 0; i < j->s->count[k] && j->s->nmember > 1; i++) {
		size_t at = (size_t)j->s->at[k][i];

		if (b[i] == 0 && !type_is_float(t))
			continue; /* oracle_whole did */
		double number = fabs(v[i]) <= type_largest(t) ? v[i] : 0;

		double to[WAYS] = {v[i], v[i] + b[i], v[i] - b[i], v[i] + copysign(b[i], v[i])};

		if (isinf(b[i]))
			to[1] = NAN, to[2] = to[3] = number;
		for (int way = 0; way < WAYS; way++)
			type_store(t, j->full[WAYS * k + way], at, to[way]);
	}
}

/* Integers are kept with all their digits, which a double lacks. */
static void oracle_whole(Oracle *j, int k)
{
	Type t = (Type)j->copy.member[k]->type;

	for (int i = 0; i < j->s->count[k] && j->s->nmember > 1 && !type_is_float(t); i++)
		for (int way = 0; way < WAYS; way++)
			type_store_int(t, j->full[WAYS * k + way], (size_t)j->s->at[k][i],
				       j->ints[i]);
}

/* Values and bounds of all members. */
static int oracle_all(Oracle *j, Error *err)
{
	Sample *s = j->s;

	for (int k = 0; k < s->nmember; k++) {
		int code = oracle_member(j, k, 0, s->value[k], err);
		double eps = arithmetic_epsilon(&j->copy.ir, j->copy.member[k]);

		if (!code)
			oracle_whole(j, k);
		for (int i = 0; i < s->count[k] && !code; i++)
			s->bound[k][i] =
				result_bound(j->copy.member[k], sample_length(j->copy.member[k]),
					     eps, j->exact[k], s->value[k][i], j->mag[i]);
		for (int way = 1; way < WAYS && k > 0 && !code; way++) {
			code = oracle_member(j, k, way, j->moved, err);
			for (int i = 0; i < s->count[k] && !code; i++) {
				double v = s->value[k][i], d = fabs(j->moved[i] - v);

				if (isnan(v) != isnan(j->moved[i]))
					s->bound[k][i] = INFINITY;
				else if (!isnan(d)) /* no bound where a move overflows */
					s->bound[k][i] += d;
			}
		}
		if (code)
			return code;
		oracle_keep(j, k);
	}
	return 0;
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
	if (code)
		sample_free(s);
	return code;
}

/* ---- ill-conditioned elements ---- */
/* Inputs are moved where they are read: a copy would take as much memory as they. */
typedef struct Moving {
	const Oracle *oracle;
	Node **from, **to;
	int n;
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

static void see_read(void *user, Node *n)
{
	Moving *m = user;
	Type type = (Type)n->type;
	bool input = false;

	for (int i = 0; n->op == OP_READ && i < m->oracle->task->sub.ninput; i++)
		input = input || n->src[0] == m->oracle->copy.input[i];
	if (input && (type == RICCI_F32 || type == RICCI_F64))
		m->from[m->n++] = n;
}

static Node *read_moved(Ir *ir, Node *read, double by)
{
	Type type = (Type)read->type;
	Node *up = node2(ir, OP_LT, read_mixed(ir, read), node_int(ir, PRIME / 2));

	return node2(
		ir, OP_MUL, read,
		node_select(ir, up, node_const(ir, type, 1 + by), node_const(ir, type, 1 - by)));
}

/* The members read each input's elements moved by a share of `by`, up or down. (What reads a member
 * is bound to the one before.) */
static int oracle_move(Oracle *j, double by, Error *err)
{
	Ir *ir = &j->copy.ir;

	IR_ENTER(ir, error_set(err, RICCI_ENOMEM, "out of memory"));
	for (int k = 0; k < j->s->nmember; k++) {
		Node *body = comp_body(j->copy.member[k]);
		Moving m = {.oracle = j};

		m.from = arena_alloc(&ir->arena, ((size_t)body->id + 1) * sizeof *m.from);
		m.to = arena_alloc(&ir->arena, ((size_t)body->id + 1) * sizeof *m.to);
		node_walk(ir, body, see_read, &m);
		for (int i = 0; i < m.n; i++)
			m.to[i] = read_moved(ir, m.from[i], by);
		j->copy.member[k] = comp_with(ir, j->copy.member[k], comp_reduce(j->copy.member[k]),
					      node_replace(ir, body, m.n, m.from, m.to));
	}
	IR_LEAVE(ir);
	return 0;
}

static int widen_once(const Task *t, void *const *input, RandomState rs, double by, Sample *s,
		      Error *err)
{
	Sample moved;
	Oracle j;
	int code;

	if (!sample_like(s, &moved)) {
		sample_free(&moved);
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	}
	code = oracle_init(&j, t, input, &(Checking){.rs = rs}, &moved, err);
	if (!code)
		code = oracle_move(&j, by, err);
	if (!code)
		code = oracle_all(&j, err);
	oracle_free(&j);
	for (int k = 0; k < s->nmember && !code; k++)
		for (int i = 0; i < s->count[k]; i++) {
			double d = fabs(moved.value[k][i] - s->value[k][i]);

			if (s->bound[k][i] != 0) /* what is exact stays so */
				s->bound[k][i] += isnan(d) ? 0 : 4 * d;
		}
	sample_free(&moved);
	return code;
}

int sample_widen(const Task *t, void *const *input, RandomState rs, Sample *s, Error *err)
{
	int code = 0;

	for (double by = 0x1p-22; by < 0x1p-15 && !code; by *= 8)
		code = widen_once(t, input, rs, by, s, err);
	return code;
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

/* terms.c - judges long sums (products, maxima) by few of their terms.
 *
 * Input: a task of one dense equation that reduces. Some of its terms are chosen: the first and last
 * of every axis, those around multiples of powers of two, and random ones. Inputs that each term
 * reads an element of its own of ("marked") hold one number, the base, except in chosen terms. So
 * all other terms of a result are alike, or zero, and the interpreter computes the chosen ones and
 * one of the others, however long the sum is. Three kinds of data: TERMS_ZEROS, the base is 0 and so
 * are all other terms, while unmarked inputs are random, so that whatever the chosen terms read
 * shows; TERMS_ONES, all inputs are 1 elsewhere and sums still exact, so that each lost term shows;
 * TERMS_BASE, where the others are neither: the base that makes them count least. What is done under
 * IR_ENTER owns arena memory only.
 */
#include "runtime/terms.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double bases[] = {0, 1, 0.5, -16, 16};

/* ---- which inputs are marked ---- */
static int input_of(const Terms *x, const Node *tensor)
{
	for (int i = 0; i < x->task->sub.ninput; i++)
		if (x->copy.input[i] == tensor)
			return i;
	return -1;
}

/* Is each reduced axis an index of this read by itself? */
static bool read_plain(const Node *c, const Node *read)
{
	bool plain = true;

	for (int a = tensor_rank(c); a < comp_naxis(c); a++) {
		bool found = false;

		for (int d = 1; d < read->nsrc; d++)
			found = found || read->src[d] == comp_axis(c, a);
		plain = plain && found;
	}
	return plain;
}

typedef struct IndexReads { /* what an index reads */
	Terms *x;
	bool any;
} IndexReads;

/* What an index reads keeps its data. */
static void see_index_read(void *user, Node *n)
{
	IndexReads *r = user;

	if (n->op != OP_READ)
		return;
	r->x->marked[input_of(r->x, n->src[0])] = false;
	r->any = true;
}

static void see_unmarked(void *user, Node *n)
{
	Terms *x = user;
	int i = n->op == OP_READ ? input_of(x, n->src[0]) : -1;
	IndexReads r = {x, false};

	if (i < 0)
		return;
	for (int d = 1; d < n->nsrc; d++)
		node_walk(&x->copy.ir, n->src[d], see_index_read, &r);
	/* the element that is read may depend on what an index reads */
	if (!read_plain(x->copy.member[0], n) || n->type == RICCI_BOOL || r.any)
		x->marked[i] = false;
}

static void see_read(void *user, Node *n)
{
	Terms *x = user;
	int i = n->op == OP_READ ? input_of(x, n->src[0]) : -1;

	if (i >= 0 && x->nread < TERM_READS)
		x->read[x->nread++] = n;
	x->many = x->many || (i >= 0 && x->nread == TERM_READS);
}

/* ---- are the other terms alike? ---- */
typedef struct Zeros { /* the nodes that are zero wherever the marked inputs are */
	Terms *x;
	NodeMap nodes;
} Zeros;

/* Is n such a node, by what its sources are? The other inputs are finite. */
static bool zero_by_sources(const Zeros *z, const Node *n)
{
	bool s[3] = {false};
	int i;

	for (int k = 0; k < n->nsrc && k < COUNT(s); k++)
		s[k] = node_map_get(&z->nodes, n->src[k]) != NULL;
	switch (n->op) {
	case OP_READ:
		i = input_of(z->x, n->src[0]);
		return i >= 0 && z->x->marked[i];
	case OP_CONST:
		return node_is_value(n, 0);
	case OP_MUL:
		return s[0] || s[1];
	case OP_ADD:
	case OP_SUB:
	case OP_MIN:
	case OP_MAX:
		return s[0] && s[1];
	case OP_SELECT:
		return s[1] && s[2];
	case OP_DIV:
	case OP_NEG:
	case OP_ABS:
	case OP_STOP:
	case OP_CAST:
	case OP_SIGN:
		return s[0];
	default:
		return false;
	}
}

static void see_zero(void *user, Node *n)
{
	Zeros *z = user;

	if (zero_by_sources(z, n))
		node_map_put(&z->x->copy.ir, &z->nodes, n, n);
}

static bool zero_elsewhere(Terms *x, Node *e)
{
	Zeros z = {.x = x};

	node_walk(&x->copy.ir, e, see_zero, &z);
	return node_map_get(&z.nodes, e) != NULL;
}

/* Axes, and data that are not there yet. */
static void see_varying(void *user, Node *n)
{
	Terms *x = user;
	const Node *c = x->copy.member[0];

	for (int a = tensor_rank(c); a < comp_naxis(c); a++)
		x->varies = x->varies || n == comp_axis(c, a);
	x->varies = x->varies || n->op == OP_RANDOM || n->op == OP_NORMAL || n->op == OP_READ;
}

/* The body with every number that is read being v; NULL: terms differ still. */
static Node *body_of_base(Terms *x, double v)
{
	Ir *ir = &x->copy.ir;
	Node *to[TERM_READS], *e;

	for (int i = 0; i < x->nread; i++) {
		Type t = (Type)x->read[i]->type;

		to[i] = !x->filled[input_of(x, x->read[i]->src[0])] ? x->read[i]
			: type_is_float(t)			    ? node_const(ir, t, v)
					   : node_const_int(ir, t, (int64_t)v);
	}
	e = node_replace(ir, comp_body(x->copy.member[0]), x->nread, x->read, to);
	x->varies = false;
	node_walk(ir, e, see_varying, x);
	return x->varies ? NULL : e;
}

/* ---- elements and terms ---- */
static Node *table_new(Ir *ir, const char *name, int64_t n, int width)
{
	return node_input(ir, name, RICCI_I64, 2, (int64_t[]){n, width ? width : 1});
}

typedef enum Listed { EACH_TERM, ALL_TERMS, ONE_TERM } Listed;

/* e at the listed elements: of each listed term, of all of them together as the equation does it, or
 * of any one, where they are alike. */
static Node *listed(Terms *x, Node *e, Listed how)
{
	Ir *ir = &x->copy.ir;
	const Node *c = x->copy.member[0];
	int rank = tensor_rank(c), n = comp_naxis(c);
	Node *axis[2] = {node_axis(ir, 0, x->nelement), node_axis(ir, 1, x->n)};
	Node *to[COMP_MAX_AXES], *from[COMP_MAX_AXES];

	for (int a = 0; a < n; a++) {
		bool spatial = a < rank;

		from[a] = comp_axis(c, a);
		to[a] = spatial || how != ONE_TERM
				? node_read(ir, spatial ? x->elements : x->points,
					    (Node *[]){axis[!spatial],
						       node_int(ir, spatial ? a : a - rank)})
				: node_int(ir, 0);
	}
	return comp_dense(ir, how == ALL_TERMS ? comp_reduce(c) : RED_NONE,
			  how == EACH_TERM ? 2 : 1, how == ONE_TERM ? 1 : 2, axis,
			  node_replace(ir, e, n, from, to));
}

static int listed_values(Terms *x, Node *e, void *const *input, double *v, double *mag, Error *err)
{
	int in = x->task->sub.ninput, code;
	size_t n = (size_t)tensor_size(e);
	Binding *bind = arena_alloc(&x->copy.ir.arena, ((size_t)in + 2) * sizeof *bind);

	for (int i = 0; i < in; i++)
		bind[i] = (Binding){x->copy.input[i], input ? input[i] : NULL};
	bind[in] = (Binding){x->elements, x->element};
	bind[in + 1] = (Binding){x->points, x->point};
	code = interp_tensor(e, in + 2, bind, (RandomState){7, 3}, v, mag, err);
	for (size_t i = 0; i < n && !code && !type_is_float(e->type); i++) {
		int64_t whole;

		memcpy(&whole, &v[i], sizeof whole);
		v[i] = (double)whole;
	}
	return code;
}

/* A place on an axis: the first, the last, around a multiple of a power of two, any. */
static int64_t pick_place(int64_t extent, int i, uint64_t *state)
{
	uint64_t r = sample_next(state), how = r % 4;
	int64_t any = (int64_t)(sample_next(state) % (uint64_t)extent);
	int64_t block = (int64_t)1 << (4 + (r >> 2) % 12), at;

	if (i < 2)
		return i ? extent - 1 : 0;
	if (how < 2) {
		at = how ? extent - 1 - any % 64 : any % 64;
		return at < 0 ? 0 : at < extent ? at : extent - 1;
	}
	at = how == 2 ? any / block * block - (int64_t)(r >> 8 & 1) : any;
	return at < 0 ? 0 : at;
}

static int point_order(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Terms: their places are drawn, and none twice. */
static void points_choose(Terms *x, uint64_t *state)
{
	const Node *c = x->copy.member[0];
	int rank = tensor_rank(c), n = comp_naxis(c) - rank, kept = 0;
	double *flat = arena_alloc(&x->copy.ir.arena, sizeof *flat * (size_t)x->n);

	for (int t = 0; t < x->n; t++)
		for (int a = 0; a < n; a++) {
			int64_t extent = axis_extent(comp_axis(c, rank + a));

			flat[t] = flat[t] * (double)extent +
				  (double)pick_place(extent, t < 2 ? t : 2 + t, state);
		}
	qsort(flat, (size_t)x->n, sizeof *flat, point_order);
	for (int t = 0; t < x->n; t++)
		if (!t || flat[t] != flat[t - 1])
			flat[kept++] = flat[t];
	x->n = kept;
	for (int t = 0; t < kept; t++)
		for (int a = n - 1; a >= 0; a--) {
			double extent = (double)axis_extent(comp_axis(c, rank + a));
			double above = floor(flat[t] / extent);

			x->point[t * n + a] = (int64_t)(flat[t] - above * extent);
			flat[t] = above;
		}
}

static void elements_choose(Terms *x, uint64_t *state)
{
	const Node *c = x->copy.member[0];
	int rank = tensor_rank(c);
	bool all = tensor_size(c) <= x->nelement;

	if (all)
		x->nelement = (int)tensor_size(c);
	for (int e = 0; e < x->nelement; e++) {
		int64_t at = 0, rest = e;

		for (int d = rank - 1; d >= 0; d--) {
			int64_t extent = tensor_extent(c, d);

			x->element[e * rank + d] =
				all ? rest % extent : pick_place(extent, e, state);
			rest /= extent;
		}
		for (int d = 0; d < rank; d++)
			at = at * tensor_extent(c, d) + x->element[e * rank + d];
		x->s.at[0][e] = at;
	}
}

/* ---- what chosen terms read ---- */
/* Index e of all listed elements and terms. */
static int index_values(Terms *x, Node *e, double *v, Error *err)
{
	const Node *c = x->copy.member[0];
	int rank = tensor_rank(c), n = comp_naxis(c), a = 0;

	while (a < n && comp_axis(c, a) != e)
		a++;
	if (a == n)
		return listed_values(x, listed(x, e, EACH_TERM), NULL, v, NULL, err);
	for (int i = 0; i < x->nelement; i++)
		for (int t = 0; t < x->n; t++)
			*v++ = (double)(a < rank ? x->element[i * rank + a]
						 : x->point[t * (n - rank) + a - rank]);
	return 0;
}

static int places_find(Terms *x, const Node *read, Error *err)
{
	int i = input_of(x, read->src[0]), m = x->nelement * x->n, code = 0;
	int64_t *at = x->place[i] + x->nplace[i];
	double *v = arena_alloc(&x->copy.ir.arena, sizeof *v * (size_t)m);

	for (int d = 0; d < tensor_rank(read->src[0]) && !code; d++) {
		int64_t extent = tensor_extent(read->src[0], d);

		code = index_values(x, read->src[1 + d], v, err);
		for (int k = 0; k < m && !code; k++)
			at[k] = at[k] < 0 || v[k] < 0 || v[k] >= (double)extent
					? -1
					: at[k] * extent + (int64_t)v[k];
	}
	x->nplace[i] += m;
	return code;
}

static void places_room(Terms *x)
{
	for (int i = 0; i < x->task->sub.ninput; i++) {
		size_t reads = 0;

		for (int r = 0; r < x->nread; r++)
			reads += x->read[r]->src[0] == x->copy.input[i];
		x->place[i] = arena_alloc(&x->copy.ir.arena, (reads * (size_t)(x->nelement * x->n) +
							      1) * sizeof **x->place);
	}
}

/* ---- which kinds of data tell something ---- */
static double terms_count(const Terms *x)
{
	return sample_length(x->task->sub.member[0]);
}

/* What one of the other terms is, at each element; false: they differ, or are no numbers. */
static bool base_values(Terms *x, double base, double *v, double *mag, Error *err)
{
	Node *e = body_of_base(x, base);
	bool good = e && !listed_values(x, listed(x, e, ONE_TERM), NULL, v, mag, err);

	for (int i = 0; i < x->nelement && good; i++)
		good = isfinite(v[i]) && isfinite(mag[i]);
	return good;
}

/* How much the others count in a result: less is better. */
static double base_weight(const Terms *x, const double *v)
{
	Reduce how = comp_reduce(x->copy.member[0]);
	double most = -INFINITY;

	for (int i = 0; i < x->nelement; i++)
		most = fmax(most, how == RED_ADD   ? fabs(v[i])
				  : how == RED_MAX ? v[i]
				  : how == RED_MIN ? -v[i]
				  : v[i] == 1	   ? 0
						   : INFINITY);
	return most;
}

static void fill_floats(Terms *x, bool all)
{
	for (int i = 0; i < x->task->sub.ninput; i++)
		x->filled[i] = x->marked[i] || (all && type_is_float(x->task->sub.input[i]->type));
}

static void kinds_find(Terms *x, double *v, double *mag, Error *err)
{
	Node *c = x->copy.member[0];
	double least = INFINITY;
	bool sums = comp_reduce(c) == RED_ADD;

	x->usable[TERMS_ZEROS] = sums && x->exact > 0 && zero_elsewhere(x, comp_body(c));
	fill_floats(x, true);
	if (sums && x->exact > 0 && base_values(x, 1, v, mag, err)) {
		double most = 0;

		for (int i = 0; i < x->nelement; i++)
			most = fmax(most, mag[i] * terms_count(x));
		x->usable[TERMS_ONES] = most > 0 && most <= x->exact / 2;
	}
	for (int b = 0; b < COUNT(bases); b++)
		if (base_values(x, bases[b], v, mag, err) && base_weight(x, v) < least) {
			least = base_weight(x, v);
			x->base = bases[b];
			x->usable[TERMS_BASE] = true;
		}
}

bool terms_usable(const Terms *x)
{
	return x->usable[TERMS_ZEROS] || x->usable[TERMS_ONES] || x->usable[TERMS_BASE];
}

static bool terms_memory(Terms *x, int nelement, int n)
{
	Arena *a = &x->copy.ir.arena;
	size_t in = (size_t)x->task->sub.ninput + 1;

	x->nelement = nelement;
	x->n = n;
	x->marked = arena_alloc(a, in * sizeof *x->marked);
	x->filled = arena_alloc(a, in * sizeof *x->filled);
	x->place = arena_alloc(a, in * sizeof *x->place);
	x->nplace = arena_alloc(a, in * sizeof *x->nplace);
	x->point = arena_alloc(a, (size_t)(n * COMP_MAX_AXES) * sizeof *x->point);
	x->element = arena_alloc(a, (size_t)(nelement * COMP_MAX_AXES) * sizeof *x->element);
	return sample_one(&x->s, nelement);
}

/* In IR_ENTER of the copy. */
static int terms_find(Terms *x, int nelement, int n, uint64_t seed, Error *err)
{
	Ir *ir = &x->copy.ir;
	const Node *c = x->copy.member[0];
	uint64_t state = seed * 0x9e3779b97f4a7c15u + 88172645463325252u;
	int rank = tensor_rank(c), code = 0;
	bool any = false;

	if (!terms_memory(x, nelement, n))
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	for (int i = 0; i < x->task->sub.ninput; i++)
		x->marked[i] = true;
	node_walk(ir, comp_body(c), see_unmarked, x);
	node_walk(ir, comp_body(c), see_read, x);
	for (int r = 0; r < x->nread; r++)
		any = any || x->marked[input_of(x, x->read[r]->src[0])];
	if (x->many || !any)
		return 0;
	elements_choose(x, &state);
	x->s.count[0] = x->s.n = x->nelement;
	points_choose(x, &state);
	places_room(x);
	x->points = table_new(ir, "points", x->n, comp_naxis(c) - rank);
	x->elements = table_new(ir, "elements", x->nelement, rank);
	for (int r = 0; r < x->nread && !code; r++)
		if (x->marked[input_of(x, x->read[r]->src[0])])
			code = places_find(x, x->read[r], err);
	if (!code)
		kinds_find(x, x->s.value[0], x->s.bound[0], err);
	return code;
}

int terms_new(Terms *x, const Task *t, int nelement, int n, uint64_t seed, Error *err)
{
	Node *c = t->sub.member[0];
	int code;

	*x = (Terms){.task = t};
	if (t->sub.nmember > 1 || !comp_is_dense(c) || !comp_reduce(c) || sample_length(c) < 2)
		return 0;
	if (task_copy(t, &x->copy, err))
		return err ? err->code : RICCI_ENOMEM;
	code = exact_members(&x->copy, t, DRAW_WHOLE_MOST, &x->exact);
	if (code)
		return code;
	IR_ENTER(&x->copy.ir, error_set(err, RICCI_ENOMEM, "out of memory"));
	code = terms_find(x, nelement, n, seed, err);
	IR_LEAVE(&x->copy.ir);
	return code;
}

void terms_free(Terms *x)
{
	sample_free(&x->s);
	task_copy_free(&x->copy);
}

/* ---- data and results ---- */
enum { POOL = 1021, FEW = 16 };

/* Of extremes and products those that must show in one term alone come before the last run, which is
 * of numbers of many magnitudes: few of them, the last, the first. */
int terms_runs(const Terms *x, TermsKind kind)
{
	if (!x->usable[kind])
		return 0;
	if (comp_reduce(x->copy.member[0]) != RED_ADD)
		return 5;
	return kind == TERMS_BASE && !x->usable[TERMS_ZEROS] ? 2 : 1;
}

static bool term_marked(const Terms *x, int run, int t)
{
	bool few = t % (1 + x->n / FEW) == 0;

	switch (comp_reduce(x->copy.member[0])) {
	case RED_ADD:
		return true;
	case RED_MUL: /* of more the product leaves what numbers hold */
		return run < 2 || run > 3 ? few : t == (run == 2 ? x->n - 1 : 0);
	default:
		return run == 0 || run > 3 || (run == 1 ? few : t == (run == 2 ? x->n - 1 : 0));
	}
}

/* Numbers of all inputs for the chosen terms; each is an array of POOL. */
static int numbers_draw(const Terms *x, DrawKind kind, uint64_t seed, void **number, Error *err)
{
	int in = x->task->sub.ninput;
	Drawn *drawn = mem_zalloc(((size_t)in + 1) * sizeof *drawn);
	bool good = drawn != NULL;
	int code;

	for (int i = 0; i < in && good; i++) {
		drawn[i] = (Drawn){x->marked[i] ? POOL : 0, 0, true};
		if (x->marked[i])
			good = (number[i] = mem_zalloc(POOL * sizeof(double))) != NULL;
	}
	code = good ? task_draw_part(x->task, seed, kind, number, drawn, err)
		    : error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	mem_free(drawn);
	return code;
}

static void numbers_free(int n, void **number)
{
	for (int i = 0; number && i < n; i++)
		mem_free(number[i]);
	mem_free(number);
}

/* The number for place `at` of input i; 0 would not show. */
static void mark(const Terms *x, int i, int64_t at, uint64_t seed, const void *number, void *buf)
{
	Type t = (Type)x->task->sub.input[i]->type;
	uint64_t state = ((uint64_t)at * 16 + (uint64_t)i) * 0x9e3779b97f4a7c15u + seed;
	size_t from = (sample_next(&state), sample_next(&state)) % POOL;

	if (type_is_float(t)) {
		double v = type_load(t, number, from);

		type_store(t, buf, (size_t)at, v == 0 ? 1 : v);
	} else {
		int64_t v = type_load_int(t, number, from);

		type_store_int(t, buf, (size_t)at, v == 0 ? 1 : v);
	}
}

/* From all chosen terms together and one of the others. */
static void terms_total(Terms *x, double value, double mag, double other, double omag, double eps,
			double exact, int e)
{
	const Node *c = x->copy.member[0];
	double rest = terms_count(x) - x->n;

	switch (rest > 0 ? comp_reduce(c) : RED_NONE) {
	case RED_ADD:
		value += rest * other;
		mag += rest * omag;
		break;
	case RED_MAX:
	case RED_MIN:
		value = comp_reduce(c) == RED_MAX ? fmax(value, other) : fmin(value, other);
		mag = fmax(mag, omag);
		break;
	default: /* of a product the others are 1 */
		break;
	}
	x->s.value[0][e] = value;
	/* zeros are added without rounding */
	x->s.bound[0][e] =
		result_bound(c, rest * omag == 0 ? x->n : terms_count(x), eps, exact, value, mag);
	if (x->s.bound[0][e] != 0 && comp_reduce(c) == RED_ADD) /* like terms round one way */
		x->s.bound[0][e] += 4 * eps * terms_count(x) * rest * omag;
}

static int terms_expect(Terms *x, TermsKind kind, double base, void *const *input, Error *err)
{
	Node *c = x->copy.member[0], *e = kind == TERMS_ZEROS ? NULL : body_of_base(x, base);
	size_t m = (size_t)x->nelement;
	double *v = arena_alloc(&x->copy.ir.arena, 4 * m * sizeof *v), *other = v + 2 * m;
	double eps = arithmetic_epsilon(&x->copy.ir, c);
	int code = listed_values(x, listed(x, comp_body(c), ALL_TERMS), input, v, v + m, err);

	if (!code && e)
		code = listed_values(x, listed(x, e, ONE_TERM), input, other, other + m, err);
	for (size_t i = 0; i < m && !code; i++)
		terms_total(x, v[i], v[m + i], other[i], other[m + i], eps,
			    kind == TERMS_BASE ? 0 : x->exact, (int)i);
	return code;
}

/* Can the elements be compared? */
static bool terms_finite(const Terms *x)
{
	bool finite = true;

	for (int e = 0; e < x->nelement; e++)
		finite = finite && isfinite(x->s.value[0][e]) && isfinite(x->s.bound[0][e]);
	return finite;
}

static int terms_draw_marks(Terms *x, Trial *v, TermsKind kind, DrawKind numbers, int run,
			    uint64_t seed, Error *err)
{
	int in = x->task->sub.ninput, code;
	double base = kind == TERMS_BASE ? x->base : kind == TERMS_ONES;
	void **number = mem_zalloc(((size_t)in + 1) * sizeof *number);

	if (!number)
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	code = numbers_draw(x, numbers, seed, number, err);
	for (int i = 0; i < in && !code; i++) {
		if (x->filled[i])
			trial_fill(v, i, base);
		for (int k = 0; x->marked[i] && k < x->nplace[i]; k++)
			if (x->place[i][k] >= 0 && term_marked(x, run, k % x->n))
				mark(x, i, x->place[i][k], seed, number[i], v->buf[i]);
	}
	numbers_free(in, number);
	if (code)
		return code;
	IR_ENTER(&x->copy.ir, error_set(err, RICCI_ENOMEM, "out of memory"));
	code = terms_expect(x, kind, base, v->buf, err);
	IR_LEAVE(&x->copy.ir);
	return code;
}

int terms_draw(Terms *x, Trial *v, TermsKind kind, int run, uint64_t seed, Error *err)
{
	DrawKind numbers = kind != TERMS_BASE		    ? DRAW_WHOLE
			   : run == terms_runs(x, kind) - 1 ? DRAW_WIDE
							    : DRAW_UNIT;
	int code;

	fill_floats(x, kind != TERMS_ZEROS);
	code = trial_draw(v, seed, DRAW_WHOLE, x->filled, err);
	if (!code)
		code = terms_draw_marks(x, v, kind, numbers, run, seed, err);
	if (!code && numbers == DRAW_UNIT && !terms_finite(x))
		code = terms_draw_marks(x, v, kind, DRAW_POSITIVE, run, seed, err);
	return code;
}

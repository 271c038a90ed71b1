/* data.c - random data for a task: what kernels are verified and measured with.
 *
 * An integer input that takes part in an index is drawn from a range for which every index stays in
 * its tensor, found by interval arithmetic: the extents it meets first, halved until all fit.
 * All else is drawn so that mistakes show: DrawKind.
 */
#include "runtime/verify/verify.h"
#include <math.h>
#include <string.h>

typedef struct Range {
	int64_t lo, hi;
} Range;

enum { CONSTANTS = 32, ENDS = 64, ENDS_LEAST = 16, EXTREMES = 1 << 22 };
/* Of long inputs so many elements are drawn, and repeated: a prime, so that no two lines of a tensor
 * are alike. */
enum { BLOCK = 16381 };
/* The least unit of whole numbers: eighths. */
enum { LEAST_UNIT = -3 };

typedef struct Draw {
	const Task *task;
	TaskCopy copy;
	int64_t *limit; /* of each input: the smallest extent it indexes; 0: it indexes nothing */
	int shift;
	bool fits;
	DrawKind kind;
	double density;	  /* of whole numbers: the share that is not 0 */
	int unit;	  /* and all are multiples of 2^unit */
	bool extremes;	  /* there is a maximum or a minimum over a dimension */
	int nfloat, nint; /* the constants of the equations */
	double real[CONSTANTS];
	int64_t whole[CONSTANTS];
} Draw;

int task_copy(const Task *t, TaskCopy *c, Error *err)
{
	const Subgraph *s = &t->sub;

	ir_init(&c->ir);
	IR_ENTER(&c->ir, (task_copy_free(c), error_set(err, RICCI_ENOMEM, "out of memory")));
	c->member = arena_alloc(&c->ir.arena, ((size_t)s->nmember + 1) * sizeof *c->member);
	c->input = arena_alloc(&c->ir.arena, ((size_t)s->ninput + 1) * sizeof *c->input);
	for (int i = 0; i < s->ninput; i++)
		c->input[i] = node_import(&c->ir, s->input[i], NULL, NULL);
	for (int i = 0; i < s->nmember; i++)
		c->member[i] = node_import(&c->ir, s->member[i], NULL, NULL);
	IR_LEAVE(&c->ir);
	return 0;
}

void task_copy_free(TaskCopy *c)
{
	ir_free(&c->ir);
}

int task_nbuf(const Task *t)
{
	int n = t->sub.ninput;

	for (int i = 0; i < t->sub.nmember; i++)
		n += t->sub.stored[i];
	return n;
}

int task_member(const Task *t, int i)
{
	int m = 0;

	if (i < t->sub.ninput)
		return -1;
	for (i -= t->sub.ninput; !t->sub.stored[m] || i-- > 0; m++)
		;
	return m;
}

Node *task_tensor(const Task *t, int i)
{
	int m = task_member(t, i);

	return m < 0 ? t->sub.input[i] : t->sub.member[m];
}

static int input_number(const Draw *d, const Node *tensor)
{
	for (int i = 0; i < d->task->sub.ninput; i++)
		if (d->copy.input[i] == tensor)
			return i;
	return -1;
}

/* What an integer input is drawn from. */
static Range input_range(const Draw *d, int i)
{
	Type type = d->task->sub.input[i]->type;
	Range all, r;

	if (type == RICCI_BOOL)
		return (Range){0, 1};
	type_range(type, &all.lo, &all.hi);
	r = d->limit[i] ? (Range){0, (d->limit[i] - 1) >> d->shift} : (Range){-4, 8};
	r.lo = r.lo < all.lo ? all.lo : r.lo;
	r.hi = r.hi > all.hi ? all.hi : r.hi;
	return r;
}

static int64_t clamp(__int128 v)
{
	return v > INT64_MAX / 4 ? INT64_MAX / 4 : v < INT64_MIN / 4 ? INT64_MIN / 4 : (int64_t)v;
}

/* Ranges of parts of an index that are known already. */
typedef struct Ranges {
	Draw *d;
	NodeMap known;
} Ranges;

static Range index_range(Ranges *of, Node *e);

static Range product_range(Range a, Range b)
{
	__int128 p[4] = {(__int128)a.lo * b.lo, (__int128)a.lo * b.hi, (__int128)a.hi * b.lo,
			 (__int128)a.hi * b.hi};
	__int128 lo = p[0], hi = p[0];

	for (int i = 1; i < 4; i++) {
		lo = p[i] < lo ? p[i] : lo;
		hi = p[i] > hi ? p[i] : hi;
	}
	return (Range){clamp(lo), clamp(hi)};
}

static Range pair_range(Ranges *of, Node *e)
{
	Range a = index_range(of, e->src[0]), b = index_range(of, e->src[1]);

	switch (e->op) {
	case OP_ADD:
		return (Range){clamp((__int128)a.lo + b.lo), clamp((__int128)a.hi + b.hi)};
	case OP_MUL:
		return product_range(a, b);
	case OP_FLOORDIV:
		return (Range){int_floor_div(a.lo, b.lo), int_floor_div(a.hi, b.lo)};
	case OP_FLOORMOD:
		return a.lo >= 0 && a.hi < b.lo ? a : (Range){0, b.lo - 1};
	case OP_MIN:
		return (Range){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
	default: /* OP_MAX */
		return (Range){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
	}
}

static Range part_range(Ranges *of, Node *e)
{
	const Draw *d = of->d;
	Range own = {e->lo, e->hi}, a, b;
	int i;

	switch (e->op) {
	case OP_READ:
		i = input_number(d, e->src[0]);
		return i >= 0 && !type_is_float(e->src[0]->type) ? input_range(d, i) : own;
	case OP_CAST:
		return type_is_float(e->src[0]->type) ? own : index_range(of, e->src[0]);
	case OP_ADD:
	case OP_MUL:
	case OP_MIN:
	case OP_MAX:
	case OP_FLOORMOD:
	case OP_FLOORDIV:
		return pair_range(of, e);
	case OP_SELECT:
		a = index_range(of, e->src[1]);
		b = index_range(of, e->src[2]);
		return (Range){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
	default:
		return own;
	}
}

static Range index_range(Ranges *of, Node *e)
{
	Ir *ir = &of->d->copy.ir;
	Range *known = node_map_get(&of->known, e);

	if (!known) {
		known = arena_alloc(&ir->arena, sizeof *known);
		*known = part_range(of, e);
		node_map_put(ir, &of->known, e, known);
	}
	return *known;
}

typedef struct Limit {
	Draw *d;
	int64_t extent;
	NodeMap seen;
} Limit;

static void limit_part(Limit *l, Node *e)
{
	Draw *d = l->d;

	if (node_map_get(&l->seen, e) || node_is_tensor(e))
		return;
	node_map_put(&d->copy.ir, &l->seen, e, e);
	if (e->op == OP_READ) {
		int i = input_number(d, e->src[0]);

		if (i >= 0 && type_is_int(e->src[0]->type) &&
		    (!d->limit[i] || d->limit[i] > l->extent))
			d->limit[i] = l->extent;
		return; /* its own indices are met by the walk */
	}
	for (int s = 0; s < e->nsrc; s++)
		limit_part(l, e->src[s]);
}

/* Lowers the limits of the inputs in index expression e of a dimension of this extent. */
static void limit_index(Draw *d, Node *e, int64_t extent)
{
	limit_part(&(Limit){.d = d, .extent = extent}, e);
}

static void limit_read(void *user, Node *n)
{
	if (n->op == OP_READ)
		for (int k = 1; k < n->nsrc; k++)
			limit_index(user, n->src[k], tensor_extent(n->src[0], k - 1));
}

static void check_index(Draw *d, Node *e, int64_t extent)
{
	if (e->lo >= 0 && e->hi < extent)
		return;
	/* Bounds that do not come from an input were proved when the equation was made. */
	Range r = index_range(&(Ranges){.d = d}, e);
	d->fits = d->fits && r.lo >= 0 && r.hi < extent;
}

static void check_read(void *user, Node *n)
{
	if (n->op == OP_READ)
		for (int k = 1; k < n->nsrc; k++)
			check_index(user, n->src[k], tensor_extent(n->src[0], k - 1));
}

static void draw_each(Draw *d, void (*read)(void *, Node *), void (*index)(Draw *, Node *, int64_t))
{
	for (int m = 0; m < d->task->sub.nmember; m++) {
		Node *c = d->copy.member[m];

		node_walk(&d->copy.ir, comp_body(c), read, d);
		for (int k = 0; k < tensor_rank(c); k++) {
			node_walk(&d->copy.ir, comp_lhs(c, k), read, d);
			index(d, comp_lhs(c, k), tensor_extent(c, k));
		}
	}
}

/* ---- numbers around which something may change: the constants of the equations ---- */
static void see_constant(void *user, Node *n)
{
	Draw *d = user;

	if (n->op != OP_CONST)
		return;
	if (!type_is_float(n->type)) {
		if (d->nint < CONSTANTS && n->u.i > -DRAW_MOST_INT && n->u.i < DRAW_MOST_INT)
			d->whole[d->nint++] = n->u.i;
	} else if (d->nfloat < CONSTANTS && n->u.f != 0 && fabs(n->u.f) < 1e18) {
		d->real[d->nfloat++] = n->u.f;
	}
}

static void see_fraction(void *user, Node *n)
{
	int *unit = user, u = 0;

	if (n->op != OP_CONST || !type_is_float(n->type) || !(fabs(n->u.f) < DRAW_WHOLE_MOST))
		return;
	while (u >= LEAST_UNIT && ldexp(n->u.f, -u) != rint(ldexp(n->u.f, -u)))
		u--;
	if (u >= LEAST_UNIT && u < *unit)
		*unit = u;
}

int draw_whole_unit(TaskCopy *c, const Task *t)
{
	int unit = 0;

	for (int m = 0; m < t->sub.nmember; m++)
		node_walk(&c->ir, comp_body(c->member[m]), see_fraction, &unit);
	return unit;
}

/* Sets limits and shift. A padded access may stay outside for every choice; then the smallest. */
static int draw_ranges(Draw *d, Error *err)
{
	if (task_copy(d->task, &d->copy, err))
		return err ? err->code : RICCI_ENOMEM;
	{
		IR_ENTER(&d->copy.ir, error_set(err, RICCI_ENOMEM, "out of memory"));
		for (int m = 0; m < d->task->sub.nmember; m++)
			node_walk(&d->copy.ir, comp_body(d->copy.member[m]), see_constant, d);
		d->unit = draw_whole_unit(&d->copy, d->task);
		draw_each(d, limit_read, limit_index);
		for (; d->shift < 62; d->shift++) {
			d->fits = true;
			draw_each(d, check_read, check_index);
			if (d->fits)
				break;
		}
		IR_LEAVE(&d->copy.ir);
	}
	return 0;
}

static uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x * 0x2545f4914f6cdd1du;
}

static double random_unit(uint64_t *state)
{
	return (double)(random_next(state) >> 11) * 0x1p-53;
}

/* An eighth of them near a constant, where there is one; where sums are long, fewer, and more zeros.
 */
static double draw_whole(const Draw *d, uint64_t *state)
{
	uint64_t r = random_next(state) >> 8;
	double one = r >> 30 & 1 ? 1 : ldexp(1, d->unit);

	if (d->nfloat && r % (d->density < 1 ? 1024 : 8) == 0) {
		double c = d->real[(r >> 10) % (uint64_t)d->nfloat];

		c = ldexp(rint(ldexp(c, -d->unit)), d->unit);
		if (fabs(c) < DRAW_WHOLE_MOST)
			return c + one * ((double)((r >> 20) % 3) - 1);
	}
	if (d->density < 1)
		return random_unit(state) < d->density ? (r >> 20 & 1 ? 1 : -1) : 0;
	return one * ((double)((r >> 20) % 7) - 3);
}

/* Of all magnitudes that the type has room for squares of: a third around a constant. */
static double draw_wide(const Draw *d, Type type, uint64_t *state)
{
	uint64_t r = random_next(state) >> 8, how = r % 3;
	double u = 2 * random_unit(state) - 1;
	int range = type == RICCI_F16 ? 5 : 12;

	if (how == 0 && d->nfloat) {
		double c = d->real[(r >> 2) % (uint64_t)d->nfloat];

		switch (r >> 20 & 3) {
		case 0:
			return c;
		case 1:
			return c * (1 + u / 8);
		case 2:
			return -c * (1 + u / 8);
		default:
			return c + u;
		}
	}
	return how == 1 ? ldexp(u, (int)((r >> 10) % (uint64_t)(2 * range)) - range) : u;
}

static double draw_extreme(const Draw *d, double v, uint64_t r)
{
	if (d->kind == DRAW_WHOLE)
		return (r & 64 ? 1 : -1) * (20. + (double)(r >> 8 & 63));
	return r & 64 ? v * 8 : v / 64;
}

/* Half of the first and last of a long dimension have the largest or the least magnitudes, so that
 * a maximum that leaves them out shows. */
static void draw_ends(const Draw *d, const Node *x, void *buf, uint64_t *state)
{
	int64_t outer = 1, below = tensor_size(x);

	for (int k = 0; k < tensor_rank(x); k++) {
		int64_t extent = tensor_extent(x, k);

		below /= extent;
		int64_t step = 1 + 2 * outer * below / EXTREMES;

		for (int64_t i = 0; extent >= ENDS_LEAST && i < 2 * outer * below; i += step) {
			int64_t line = i / below / 2, last = i / below % 2 * (extent - 1);
			size_t at = (size_t)((line * extent + last) * below + i % below);
			uint64_t r = random_next(state) >> 8;

			if (r % 2)
				type_store((Type)x->type, buf, at,
					   draw_extreme(d, type_load((Type)x->type, buf, at), r));
		}
		outer *= extent;
	}
}

/* Repeats the first BLOCK elements. */
static void block_repeat(void *buf, size_t size, int64_t n)
{
	for (int64_t at = BLOCK; at < n; at += at)
		memcpy((char *)buf + (size_t)at * size, buf,
		       (size_t)(n - at < at ? n - at : at) * size);
}

static void draw_numbers(const Draw *d, Type type, void *buf, int64_t n, uint64_t *state)
{
	for (int64_t i = 0; i < n && i < BLOCK; i++)
		type_store(type, buf, (size_t)i,
			   d->kind == DRAW_WIDE ? draw_wide(d, type, state) : draw_whole(d, state));
	block_repeat(buf, type_size(type), n);
}

/* The ends of long sums count. */
static void draw_sums_ends(Type type, void *buf, int64_t n)
{
	for (int64_t i = 0; i < n; i = i == ENDS - 1 && n > 2 * ENDS ? n - ENDS : i + 1)
		type_store(type, buf, (size_t)i, i % 3 ? 1 : -1);
}

/* All of them differ, so that a maximum is one element's. */
static void draw_uniform(const Draw *d, Type type, void *buf, int64_t n, uint64_t *state)
{
	double low = d->kind == DRAW_POSITIVE ? 0.25 : -1;

	if (type == RICCI_F32) {
		float *f = buf;

		for (int64_t i = 0; i < n; i++)
			f[i] = (float)low + (float)(random_next(state) >> 40) * 0x1p-23f;
	} else {
		for (int64_t i = 0; i < n; i++)
			type_store(type, buf, (size_t)i,
				   low + (double)(random_next(state) >> 11) * 0x1p-52);
	}
}

static void draw_floats(const Draw *d, const Node *x, void *buf, Drawn some, uint64_t *state)
{
	size_t size = type_size((Type)x->type);
	int64_t n = tensor_size(x);

	if (d->kind == DRAW_WHOLE || d->kind == DRAW_WIDE)
		draw_numbers(d, (Type)x->type, buf, some.head, state);
	else
		draw_uniform(d, (Type)x->type, buf, some.head, state);
	if (some.alone)
		return;
	memcpy((char *)buf + (size_t)(n - some.tail) * size, buf, (size_t)some.tail * size);
	if (d->density < 1 && (d->kind == DRAW_WHOLE || d->kind == DRAW_WIDE))
		draw_sums_ends((Type)x->type, buf, n);
	if (d->extremes && d->density == 1 && d->kind != DRAW_POSITIVE)
		draw_ends(d, x, buf, state);
}

/* Indices from all of their range and often its ends; others near constants too. */
static void draw_ints(const Draw *d, int i, void *buf, Drawn some, uint64_t *state)
{
	Node *x = d->task->sub.input[i];
	Range r = input_range(d, i);
	size_t size = type_size((Type)x->type);
	int64_t n = tensor_size(x), lo, hi;

	type_range(x->type, &lo, &hi);
	for (int64_t k = 0; k < some.head && k < BLOCK; k++) {
		uint64_t u = random_next(state) >> 1;
		int64_t v = r.lo + (int64_t)(u % (uint64_t)(r.hi - r.lo + 1));

		u = random_next(state) >> 8;
		if (d->limit[i] || d->kind == DRAW_UNIT || d->kind == DRAW_POSITIVE)
			v = u % 8 == 0 ? r.lo : u % 8 == 1 ? r.hi : v;
		else if (d->nint && u % 4 == 0)
			v = d->whole[(u >> 8) % (uint64_t)d->nint] + (int64_t)((u >> 4) % 3) - 1;
		else if (d->kind == DRAW_WIDE && u % 4 == 1)
			v = (int64_t)(u >> 44) * (u >> 4 & 1 ? 1 : -1) >> (u >> 8) % 20;
		type_store_int(x->type, buf, (size_t)k, v < lo ? lo : v > hi ? hi : v);
	}
	block_repeat(buf, size, some.head);
	memcpy((char *)buf + (size_t)(n - some.tail) * size, buf, (size_t)some.tail * size);
}

/* So that the sums of a product of two are exact in f32. */
static double draw_density(const Task *t)
{
	double longest = 1;

	for (int m = 0; m < t->sub.nmember; m++)
		longest = fmax(longest, sample_length(t->sub.member[m]));
	return longest <= 0x1p20 ? 1 : fmin(0.7, sqrt(0x1p22 / longest));
}

static bool task_extremes(const Task *t)
{
	bool extremes = false;

	for (int m = 0; m < t->sub.nmember; m++) {
		Reduce how = comp_reduce(t->sub.member[m]);

		extremes = extremes || how == RED_MAX || how == RED_MIN;
	}
	return extremes;
}

int task_draw_part(const Task *t, uint64_t seed, DrawKind kind, void *const *buf,
		   const Drawn *drawn, Error *err)
{
	Draw d = {.task = t, .kind = kind, .extremes = task_extremes(t)};
	double density = draw_density(t);
	int code;

	if (t->sub.ninput == 0)
		return 0;
	d.limit = mem_zalloc((size_t)t->sub.ninput * sizeof *d.limit);
	if (!d.limit)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	code = draw_ranges(&d, err);
	for (int i = 0; i < t->sub.ninput && !code; i++) {
		Node *x = t->sub.input[i];
		uint64_t state = (seed + 1 + (uint64_t)i) * 0x9e3779b97f4a7c15u | 1;
		Drawn some = drawn ? drawn[i] : (Drawn){tensor_size(x), 0, false};

		if (some.head == 0)
			continue;
		d.density = some.alone ? 1 : density;
		if (type_is_float(x->type))
			draw_floats(&d, x, buf[i], some, &state);
		else
			draw_ints(&d, i, buf[i], some, &state);
	}
	task_copy_free(&d.copy);
	mem_free(d.limit);
	return code;
}

int task_draw(const Task *t, uint64_t seed, DrawKind kind, void *const *buf, Error *err)
{
	return task_draw_part(t, seed, kind, buf, NULL, err);
}

int task_data_new(const Task *t, uint64_t seed, TaskData *d, Error *err)
{
	d->nbuf = task_nbuf(t);
	d->buf = mem_zalloc((size_t)d->nbuf * sizeof *d->buf);
	for (int i = 0; d->buf && i < d->nbuf; i++)
		if (!(d->buf[i] = buffer_new(tensor_bytes(task_tensor(t, i))))) {
			task_data_free(d);
			break;
		}
	if (!d->buf)
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's test data");
	return task_draw(t, seed, DRAW_UNIT, d->buf, err);
}

void task_data_free(TaskData *d)
{
	for (int i = 0; d->buf && i < d->nbuf; i++)
		buffer_free(d->buf[i]);
	mem_free(d->buf);
	d->buf = NULL;
}

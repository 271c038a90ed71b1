/* data.c - random data for a task: what kernels are verified and measured with.
 *
 * An integer input that takes part in an index is drawn from a range for which every index stays in
 * its tensor, found by interval arithmetic: the extents it meets first, halved until all fit.
 */
#include "runtime/internal.h"

typedef struct Range {
	int64_t lo, hi;
} Range;

typedef struct Draw {
	const Task *task;
	TaskCopy copy;
	int64_t *limit; /* of each input: the smallest extent it indexes; 0: it indexes nothing */
	int shift;
	bool fits;
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

Node *task_tensor(const Task *t, int i)
{
	int m = 0;

	if (i < t->sub.ninput)
		return t->sub.input[i];
	for (i -= t->sub.ninput; !t->sub.stored[m] || i-- > 0; m++)
		;
	return t->sub.member[m];
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

static Range index_range(const Draw *d, const Node *e);

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

static Range pair_range(const Draw *d, const Node *e)
{
	Range a = index_range(d, e->src[0]), b = index_range(d, e->src[1]);

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

static Range index_range(const Draw *d, const Node *e)
{
	Range own = {e->lo, e->hi}, a, b;
	int i;

	switch (e->op) {
	case OP_READ:
		i = input_number(d, e->src[0]);
		return i >= 0 && !type_is_float(e->src[0]->type) ? input_range(d, i) : own;
	case OP_CAST:
		return type_is_float(e->src[0]->type) ? own : index_range(d, e->src[0]);
	case OP_ADD:
	case OP_MUL:
	case OP_MIN:
	case OP_MAX:
	case OP_FLOORMOD:
	case OP_FLOORDIV:
		return pair_range(d, e);
	case OP_SELECT:
		a = index_range(d, e->src[1]);
		b = index_range(d, e->src[2]);
		return (Range){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
	default:
		return own;
	}
}

/* Lowers the limits of the inputs in index expression e of a dimension of this extent. */
static void limit_index(Draw *d, const Node *e, int64_t extent)
{
	if (e->op == OP_READ) {
		int i = input_number(d, e->src[0]);

		if (i >= 0 && type_is_int(e->src[0]->type) &&
		    (!d->limit[i] || d->limit[i] > extent))
			d->limit[i] = extent;
		return; /* its own indices are met by the walk */
	}
	if (node_is_tensor(e))
		return;
	for (int s = 0; s < e->nsrc; s++)
		limit_index(d, e->src[s], extent);
}

static void limit_read(void *user, Node *n)
{
	if (n->op == OP_READ)
		for (int k = 1; k < n->nsrc; k++)
			limit_index(user, n->src[k], tensor_extent(n->src[0], k - 1));
}

static void check_index(Draw *d, const Node *e, int64_t extent)
{
	Range r = index_range(d, e);

	/* Bounds that do not come from an input were proved when the equation was made. */
	if (e->lo < 0 || e->hi >= extent)
		d->fits = d->fits && r.lo >= 0 && r.hi < extent;
}

static void check_read(void *user, Node *n)
{
	if (n->op == OP_READ)
		for (int k = 1; k < n->nsrc; k++)
			check_index(user, n->src[k], tensor_extent(n->src[0], k - 1));
}

static void draw_each(Draw *d, void (*read)(void *, Node *),
		      void (*index)(Draw *, const Node *, int64_t))
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

/* Sets limits and shift. A padded access may stay outside for every choice; then the smallest. */
static int draw_ranges(Draw *d, Error *err)
{
	if (task_copy(d->task, &d->copy, err))
		return err ? err->code : RICCI_ENOMEM;
	{
		IR_ENTER(&d->copy.ir, error_set(err, RICCI_ENOMEM, "out of memory"));
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

static void draw_floats(Type type, void *buf, int64_t n, double low, uint64_t *state)
{
	if (type == RICCI_F32) {
		float *f = buf;

		for (int64_t i = 0; i < n; i++)
			f[i] = (float)low + (float)(random_next(state) >> 40) * 0x1p-23f;
		return;
	}
	for (int64_t i = 0; i < n; i++)
		type_store(type, buf, (size_t)i,
			   low + (double)(random_next(state) >> 11) * 0x1p-52);
}

int task_draw(const Task *t, uint64_t seed, double low, void *const *buf, Error *err)
{
	Draw d = {.task = t};
	int code;

	if (t->sub.ninput == 0)
		return 0;
	d.limit = mem_zalloc((size_t)t->sub.ninput * sizeof *d.limit);
	if (!d.limit)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	code = draw_ranges(&d, err);
	for (int i = 0; i < t->sub.ninput && !code; i++) {
		Node *x = t->sub.input[i];
		int64_t n = tensor_size(x);
		uint64_t state = (seed + 1 + (uint64_t)i) * 0x9e3779b97f4a7c15u | 1;
		Range r;

		if (type_is_float(x->type)) {
			draw_floats(x->type, buf[i], n, low, &state);
			continue;
		}
		r = input_range(&d, i);
		for (int64_t k = 0; k < n; k++)
			type_store_int(x->type, buf[i], (size_t)k,
				       r.lo + (int64_t)(random_next(&state) >> 1) %
						       (r.hi - r.lo + 1));
	}
	task_copy_free(&d.copy);
	mem_free(d.limit);
	return code;
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
	return task_draw(t, seed, -1, d->buf, err);
}

void task_data_free(TaskData *d)
{
	for (int i = 0; d->buf && i < d->nbuf; i++)
		buffer_free(d->buf[i]);
	mem_free(d->buf);
	d->buf = NULL;
}

/* draw.c - the first values of parameters and states.
 *
 * Input: a storage of zeros. Output: its initialiser's values, drawn from seed and name by all of a
 * pool's threads. Invariant: a value depends on seed, name and its place alone, not on threads or
 * on other tensors; how the processor rounds, by its instructions (jit/builtin/draws.c).
 */
#include "runtime/program/program.h"
#include <math.h>
#include <string.h>

enum { PART = 4 * DRAW_CHUNK }; /* elements */

static uint64_t name_key(const char *s)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h;
}

/* Elements at .. at+n-1 from numbers x, which are yet to be scaled unless the type is f32. */
static void store_chunk(const Storage *st, const Distribution *d, int64_t at, int64_t n,
			const float *x)
{
	Type type = (Type)st->node->type;

	if (type == RICCI_F32) {
		memcpy((float *)st->data + at, x, (size_t)n * sizeof *x);
		return;
	}
	for (int64_t i = 0; i < n; i++) {
		double v = d->shift + d->scale * (double)x[i];

		if (type_is_float(type))
			type_store(type, st->data, (size_t)(at + i), v);
		else
			type_store_int(type, st->data, (size_t)(at + i), (int64_t)floor(v));
	}
}

/* A chunk within -bound..bound: numbers outside come from the next draw of their place. At the least
 * bound, a tenth of the deviation, one in twelve is inside. */
static void draw_within(const Distribution *d, float bound, uint64_t block, float *x)
{
	Distribution next = *d;
	float y[DRAW_CHUNK];

	draw_chunk(d, block, x);
	for (int outside = bound < INFINITY; outside;) {
		next.step--;
		outside = 0;
		for (int i = 0; i < DRAW_CHUNK; i++) {
			if (fabsf(x[i]) <= bound)
				continue;
			if (!outside++)
				draw_chunk(&next, block, y);
			x[i] = y[i];
		}
	}
}

static void draw_parts(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	const Storage *st = buf[0];
	const Distribution *d = buf[1];
	const double *bound = buf[2];
	Distribution unit = *d;
	bool f32 = st->node->type == RICCI_F32;
	int64_t last = end * PART < tensor_size(st->node) ? end * PART : tensor_size(st->node);
	float x[DRAW_CHUNK] = {0};

	(void)env;
	unit.shift = 0;
	unit.scale = 1;
	for (int64_t at = begin * PART; at < last; at += DRAW_CHUNK) {
		int64_t n = last - at < DRAW_CHUNK ? last - at : DRAW_CHUNK;

		if (f32 && n == DRAW_CHUNK) {
			draw_within(d, (float)*bound, (uint64_t)at / 4, (float *)st->data + at);
			continue;
		}
		draw_within(f32 ? d : &unit, (float)(f32 ? *bound : *bound / d->scale),
			    (uint64_t)at / 4, x);
		store_chunk(st, d, at, n, x);
	}
}

static void fill_parts(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	const Storage *st = buf[0];
	const Distribution *d = buf[1];
	int64_t last = end * PART < tensor_size(st->node) ? end * PART : tensor_size(st->node);
	float x = (float)d->shift;

	(void)env;
	for (int64_t at = begin * PART; at < last; at++)
		if (st->node->type == RICCI_F32)
			((float *)st->data)[at] = x;
		else
			store_chunk(st, d, at, 1, &(float){0});
}

static int numbers_draw(Storage *st, uint64_t seed, Pool *pool, Error *err)
{
	const ricci_init *in = &st->tensor->init;
	bool constant = in->kind == INIT_CONSTANT, within = in->kind == INIT_TRUNCATED;
	bool normal = in->kind == INIT_NORMAL || within;
	double bound = within ? in->b : INFINITY;
	/* The step is one that no training reaches. */
	Distribution d = {.normal = normal,
			  .shift = normal ? 0 : in->a,
			  .scale = constant ? 0
				   : normal ? in->a
					    : in->b - in->a,
			  .key = name_key(st->tensor->name),
			  .seed = seed,
			  .step = UINT64_MAX};
	Kernel k = {.run = constant ? fill_parts : draw_parts,
		    .shape.parts = (tensor_size(st->node) + PART - 1) / PART};
	void *buf[] = {st, &d, &bound};

	if (constant && in->a == 0 && !signbit(in->a))
		return 0;
	return pool_run(pool, &k, buf, seed, 0, err);
}

int storage_draw(Storage *st, uint64_t seed, Pool *pool, Error *err)
{
	const ricci_init *in = &st->tensor->init;
	int code = 0;

	if (in->kind == INIT_VALUES)
		memcpy(st->data, in->values, st->bytes);
	else if (in->kind == INIT_ORTHOGONAL)
		code = storage_orthogonal(st, seed, name_key(st->tensor->name), pool, err);
	else
		code = numbers_draw(st, seed, pool, err);
	if (in->zero && !code) {
		size_t row = st->bytes / (size_t)ricci_extent(st->tensor, 0);

		memset((char *)st->data + row * (size_t)(in->zero - 1), 0, row);
	}
	return code;
}

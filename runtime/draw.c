/* draw.c - the first values of parameters and states.
 *
 * Input: a storage of zeros. Output: its initialiser's values, drawn from seed and name by all of a
 * pool's threads. Invariant: a value depends on seed, name and its place alone, not on threads or
 * on other tensors.
 */
#include "runtime/internal.h"
#include <math.h>

enum {
	PART = 4096,	  /* elements; a multiple of the four of a block */
	MOST_DRAWS = 1000 /* of a truncated normal; more are as good as impossible */
};

static uint64_t name_key(const char *s)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h;
}

/* Both numbers of Box and Muller. */
static void normal_pair(const uint32_t w[2], float v[2])
{
	float radius = sqrtf(-2.0f * logf((float)((w[0] >> 8) + 1) * 0x1p-24f));
	float angle = 6.28318530717958648f * philox_uniform(w[1]);

	v[0] = radius * cosf(angle);
	v[1] = radius * sinf(angle);
}

/* Four normal numbers of which those stay that are within the bound: those outside come from the
 * next draw of the block. One in twelve is inside at the least bound that is allowed. */
static void normal_within(const ricci_init *in, uint64_t key, uint64_t seed, uint64_t block,
			  double v[4])
{
	uint32_t w[4];
	float x[4];
	bool inside[4] = {false};

	for (uint64_t draw = 0, missing = 4; missing && draw < MOST_DRAWS; draw++) {
		philox(block, key, seed, UINT64_MAX - draw, w);
		normal_pair(w, x);
		normal_pair(w + 2, x + 2);
		for (int i = 0; i < 4; i++)
			if (!inside[i]) {
				v[i] = in->a * (double)x[i];
				inside[i] = fabs(v[i]) <= in->b;
				missing -= inside[i];
			}
	}
	for (int i = 0; i < 4; i++)
		v[i] = inside[i] ? v[i] : 0;
}

/* Values 4*block .. 4*block+3. The step is one that no training reaches. */
static void draw_block(const ricci_init *in, uint64_t key, uint64_t seed, uint64_t block,
		       double v[4])
{
	uint32_t w[4];
	float x[4] = {0};

	if (in->kind == 3) {
		normal_within(in, key, seed, block, v);
		return;
	}
	philox(block, key, seed, UINT64_MAX, w);
	for (int i = 0; i < 4; i += 2)
		if (in->kind == 1)
			normal_pair(w + i, x + i);
	for (int i = 0; i < 4; i++)
		v[i] = in->kind == 1   ? in->a * (double)x[i]
		       : in->kind == 2 ? in->a + (in->b - in->a) * (double)philox_uniform(w[i])
				       : in->a;
}

static void draw_parts(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	const Storage *st = buf[0];
	Type type = (Type)st->node->type;
	int64_t last = end * PART < tensor_size(st->node) ? end * PART : tensor_size(st->node);
	uint64_t key = name_key(st->tensor->name);
	double v[4];

	for (int64_t at = begin * PART; at < last; at++) {
		if (at % 4 == 0)
			draw_block(&st->tensor->init, key, env->seed, (uint64_t)at / 4, v);
		if (type == RICCI_F32)
			((float *)st->data)[at] = (float)v[at % 4];
		else if (type_is_float(type))
			type_store(type, st->data, (size_t)at, v[at % 4]);
		else
			type_store_int(type, st->data, (size_t)at, (int64_t)floor(v[at % 4]));
	}
}

int storage_draw(Storage *st, uint64_t seed, Pool *pool, Error *err)
{
	const ricci_init *in = &st->tensor->init;
	Kernel k = {.run = draw_parts, .parts = (tensor_size(st->node) + PART - 1) / PART};
	void *buf[] = {st};

	if (in->kind == 0 && in->a == 0 && !signbit(in->a))
		return 0;
	return pool_run(pool, &k, buf, seed, 0, err);
}

/* orthogonal.c - orthogonal matrices as initial values.
 *
 * Input: the storage of a float tensor, taken as a matrix of its first dimension by the others.
 * Output: gain times a matrix whose rows, or columns where these are fewer, are orthonormal.
 * The vectors are drawn from a normal distribution and made orthonormal by the modified
 * Gram-Schmidt process, in f64 and twice, so that rounding leaves no more than some units in the
 * last place (Giraud, Langou, Rozloznik 2005, "The loss of orthogonality in the Gram-Schmidt
 * orthogonalization process"). Invariant: each number is the result of one order of operations,
 * whatever the threads. */
#include "runtime/internal.h"
#include <math.h>

/* WORK: multiply-adds of a part. */
enum { LANES = 8, PASSES = 2, WORK = 1 << 16 };

typedef struct Vectors {
	double *v; /* count vectors of `length`, one behind the other */
	int64_t count, length;
	int64_t done; /* vector that the ones behind it are made orthogonal to */
	int64_t part; /* vectors of a part */
} Vectors;

static double product(const double *a, const double *b, int64_t n)
{
	double lane[LANES] = {0}, sum = 0;
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (int k = 0; k < LANES; k++)
			lane[k] += a[i + k] * b[i + k];
	for (; i < n; i++)
		lane[i % LANES] += a[i] * b[i];
	for (int k = 0; k < LANES; k++)
		sum += lane[k];
	return sum;
}

/* Takes the part along vector `done` out of some behind it. */
static void subtract(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	const Vectors *m = buf[0];
	const double *q = m->v + m->done * m->length;
	int64_t first = m->done + 1, last = first + end * m->part;

	(void)env;
	if (last > m->count)
		last = m->count;
	for (int64_t k = first + begin * m->part; k < last; k++) {
		double *x = m->v + k * m->length, along = product(q, x, m->length);

		for (int64_t i = 0; i < m->length; i++)
			x[i] -= along * q[i];
	}
}

static int orthonormal(Vectors *m, Pool *pool, Error *err)
{
	int code = 0;

	m->part = WORK / m->length + 1;
	for (m->done = 0; m->done < m->count && !code; m->done++) {
		double *q = m->v + m->done * m->length;
		double norm = sqrt(product(q, q, m->length));
		Kernel k = {.run = subtract,
			    .parts = (m->count - m->done - 1 + m->part - 1) / m->part};

		for (int64_t i = 0; i < m->length; i++)
			q[i] /= norm;
		if (k.parts)
			code = pool_run(pool, &k, (void *[]){m}, 0, 0, err);
	}
	return code;
}

/* Standard normal numbers. The step is one that no training reaches. */
static void draw(const Vectors *m, uint64_t seed, uint64_t key)
{
	Distribution d = {.normal = true, .scale = 1, .key = key, .seed = seed, .step = UINT64_MAX};
	int64_t size = m->count * m->length;
	float x[DRAW_CHUNK];

	for (int64_t at = 0; at < size; at += DRAW_CHUNK) {
		draw_chunk_plain(&d, (uint64_t)at / 4, x);
		for (int64_t i = 0; i < DRAW_CHUNK && at + i < size; i++)
			m->v[at + i] = (double)x[i];
	}
}

int storage_orthogonal(Storage *st, uint64_t seed, uint64_t key, Pool *pool, Error *err)
{
	double gain = st->tensor->init.a;
	int64_t rows = ricci_extent(st->tensor, 0), columns = tensor_size(st->node) / rows;
	bool wide = rows <= columns; /* the rows are the vectors */
	Vectors m = {.count = wide ? rows : columns, .length = wide ? columns : rows};
	int code = 0;

	if (!(m.v = mem_alloc((size_t)(rows * columns) * sizeof *m.v)))
		return error_set(err, RICCI_ENOMEM, "out of memory");
	draw(&m, seed, key);
	for (int pass = 0; pass < PASSES && !code; pass++)
		code = orthonormal(&m, pool, err);
	for (int64_t i = 0; i < rows && !code; i++)
		for (int64_t j = 0; j < columns; j++)
			type_store((Type)st->node->type, st->data, (size_t)(i * columns + j),
				   gain * m.v[wide ? i * columns + j : j * rows + i]);
	mem_free(m.v);
	return code;
}

/* orthogonal.c - orthogonal matrices as initial values.
 *
 * Input: the storage of a float tensor, taken as a matrix of its first dimension by the others.
 * Output: gain times a matrix whose rows, or columns where these are fewer, are orthonormal.
 * The vectors are drawn from a normal distribution and made orthonormal by the modified
 * Gram-Schmidt process, in f64 and twice, so that rounding leaves no more than some units in the
 * last place (Giraud, Langou, Rozloznik 2005, "The loss of orthogonality in the Gram-Schmidt
 * orthogonalization process"). Invariant: each number is the result of one order of operations,
 * whatever the threads. */
#include "runtime/program/program.h"
#include <math.h>

/* BLOCK: vectors that are taken out of those behind them at once, while these are in the cache. */
enum { LANES = 8, PASSES = 2, BLOCK = 32, WORK = 1 << 16 /* multiply-adds of a part */ };

typedef struct Vectors {
	double *v; /* count vectors of `length`, one behind the other */
	int64_t count, length;
	int64_t from, to; /* orthonormal ones, which those behind `to` are made orthogonal to */
	int64_t part;	  /* vectors of a part */
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

static double *vector(const Vectors *m, int64_t k)
{
	return m->v + k * m->length;
}

/* Takes the part along q out of x. */
static void subtract(const double *restrict q, double *restrict x, int64_t n)
{
	double along = product(q, x, n);

	for (int64_t i = 0; i < n; i++)
		x[i] -= along * q[i];
}

/* The parts along a block out of some vectors behind it. */
static void subtract_block(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	const Vectors *m = buf[0];
	int64_t last = m->to + end * m->part;

	(void)env;
	for (int64_t k = m->to + begin * m->part; k < last && k < m->count; k++)
		for (int64_t j = m->from; j < m->to; j++)
			subtract(vector(m, j), vector(m, k), m->length);
}

static void normalise(double *q, int64_t n)
{
	double norm = sqrt(product(q, q, n));

	for (int64_t i = 0; i < n; i++)
		q[i] /= norm;
}

static int orthonormal(Vectors *m, Pool *pool, Error *err)
{
	int code = 0;

	m->part = WORK / BLOCK / m->length + 1;
	for (m->from = 0; m->from < m->count && !code; m->from = m->to) {
		m->to = m->from + BLOCK < m->count ? m->from + BLOCK : m->count;
		for (int64_t j = m->from; j < m->to; j++) {
			normalise(vector(m, j), m->length);
			for (int64_t k = j + 1; k < m->to; k++)
				subtract(vector(m, j), vector(m, k), m->length);
		}
		Kernel k = {.run = subtract_block,
			    .shape.parts = (m->count - m->to + m->part - 1) / m->part};
		if (k.shape.parts)
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

/* test_pack.c - packing panels through index tables and storing blocks, against their definitions,
 * on tables of every kind: contiguous, in fours along lanes or along K, scattered, under
 * conditions. */
#include "jit/backend.h"
#include "tests/check.h"

typedef void Pack(const void *src, void *dst, const int64_t *ts, int64_t ss, const int64_t *tk,
		  int64_t sk, int64_t nc, const int64_t *rest, int64_t lanes, int64_t nk);
typedef void Unpack(const void *c, int64_t ldc, void *dst, const int64_t *tm, const int64_t *tn,
		    int64_t rows, int64_t cols);

enum { LANES = 32, DEPTH = 24, CONDITIONS = 3, SOURCE = 4096 };

static uint64_t state = 1;

static int64_t below(int64_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)((state >> 33) % (uint64_t)n);
}

/* Places 0..most: all in order, in runs of some length, or scattered. */
static void places(int64_t n, int64_t most, int64_t *at)
{
	int64_t run = (int64_t[]){1, 2, 4, 4, 8, n}[below(6)];

	for (int64_t i = 0; i < n; i++)
		at[i] = i % run ? at[i - 1] + 1 : below(most - n);
}

/* Few changes along K, as borders have them. */
static void steps(int64_t n, int64_t *v)
{
	for (int64_t i = 0, at = below(7) - 3; i < n; i++)
		v[i] = at = below(5) ? at : below(7) - 3;
}

static double load(Type t, const void *p, int64_t i)
{
	return type_load(t, p, (size_t)i);
}

static void check_pack(Type t, int64_t lanes, int64_t nc)
{
	static double src[SOURCE], dst[LANES * DEPTH + 8];
	int64_t ts[(CONDITIONS + 1) * LANES], tk[(CONDITIONS + 1) * DEPTH], rest[CONDITIONS];
	int64_t nk = 1 + below(DEPTH), wrong = 0;
	Pack *pack = (Pack *)jit_symbol(t == RICCI_F64 ? "ricci_pack_f64" : "ricci_pack_f32");

	for (int64_t i = 0; i < SOURCE; i++)
		type_store(t, src, (size_t)i, (double)(i + 1));
	for (int64_t i = 0; i < LANES * DEPTH + 8; i++)
		type_store(t, dst, (size_t)i, -1);
	places(lanes, SOURCE / 2, ts);
	places(nk, SOURCE / 2, tk);
	for (int64_t r = 0; r < nc; r++) {
		steps(lanes, ts + (r + 1) * LANES);
		steps(nk, tk + (r + 1) * DEPTH);
		rest[r] = below(6) - 1;
	}
	pack(src, dst, ts, LANES, tk, DEPTH, nc, rest, lanes, nk);
	for (int64_t k = 0; k < nk; k++)
		for (int64_t l = 0; l < lanes; l++) {
			bool ok = true;

			for (int64_t r = 1; r <= nc; r++)
				ok &= ts[r * LANES + l] + tk[r * DEPTH + k] + rest[r - 1] >= 0;
			wrong += load(t, dst, k * lanes + l) !=
				 (ok ? load(t, src, ts[l] + tk[k]) : 0);
		}
	CHECK_INT(wrong, 0);
	CHECK_NEAR(load(t, dst, nk * lanes), -1, 0); /* nothing behind */
}

static void check_unpack(Type t)
{
	static double c[LANES * DEPTH], dst[SOURCE];
	int64_t tm[DEPTH], tn[LANES], rows = 1 + below(DEPTH), cols = 1 + below(LANES), wrong = 0;
	int64_t run = (int64_t[]){1, 4, cols}[below(3)], elements = 0;
	Unpack *unpack =
		(Unpack *)jit_symbol(t == RICCI_F64 ? "ricci_unpack_f64" : "ricci_unpack_f32");

	for (int64_t i = 0; i < LANES * DEPTH; i++)
		type_store(t, c, (size_t)i, (double)(i + 1));
	for (int64_t i = 0; i < SOURCE; i++)
		type_store(t, dst, (size_t)i, -1);
	for (int64_t j = 0; j < cols; j++) /* distinct places, in runs */
		tn[j] = j / run * (run + 1) + j % run;
	for (int64_t i = 0; i < rows; i++)
		tm[i] = i * 2 * LANES + 1;
	unpack(c, LANES, dst, tm, tn, rows, cols);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++)
			wrong += load(t, dst, tm[i] + tn[j]) != load(t, c, i * LANES + j);
	for (int64_t i = 0; i < SOURCE; i++)
		elements += load(t, dst, i) != -1;
	CHECK_INT(wrong, 0);
	CHECK_INT(elements, rows * cols);
}

int main(void)
{
	static const int64_t lanes[] = {4, 6, 8, 14, 16, 32, 5, 12};
	static const Type type[] = {RICCI_F32, RICCI_F64};

	for (int t = 0; t < COUNT(type); t++)
		for (int n = 0; n < 100; n++) {
			for (int l = 0; l < COUNT(lanes); l++)
				for (int nc = 0; nc <= CONDITIONS; nc++)
					check_pack(type[t], lanes[l], nc);
			check_unpack(type[t]);
		}
	return check_done();
}

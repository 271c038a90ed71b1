/* test_pack.c - packing panels through index tables and storing blocks, against their definitions,
 * on tables of every kind: contiguous, in fours along lanes or along K, scattered, under
 * conditions. And transposing. */
#include "jit/micro/micro.h"
#include "jit/symbols.h"
#include "tests/check.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void Pack(const void *src, void *dst, const int64_t *ts, int64_t ss, const int64_t *tk,
		  int64_t sk, int64_t nc, const int64_t *rest, int64_t lanes, int64_t count,
		  int64_t nk, int64_t period);
typedef void Unpack(const void *c, int64_t ldc, void *dst, const int64_t *tm, const int64_t *tn,
		    int64_t rows, int64_t cols);

enum { LANES = 32, DEPTH = 60, CONDITIONS = 3, SOURCE = 4096 };

typedef void Panel(const void *src, void *dst, const int64_t *ts, int64_t ss, const int64_t *tk,
		   int64_t sk, int64_t nc, const int64_t *rest, int64_t lanes, int64_t count,
		   int64_t nk, int64_t period, MicroPanel *panel, const int64_t *seq);

static uint64_t state = 1;

static int64_t below(int64_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)((state >> 33) % (uint64_t)n);
}

/* Places 0..most: all in order, in runs of some length and step, or scattered. */
static void places(int64_t n, int64_t most, int64_t *at)
{
	int64_t run = (int64_t[]){1, 2, 3, 4, 7, 8, n}[below(7)], step = 1 + below(2);

	for (int64_t i = 0; i < n; i++)
		at[i] = i % run ? at[i - 1] + step : below(most - 2 * n);
}

/* Few changes along K, as borders have them. */
static void steps(int64_t n, int64_t *v)
{
	for (int64_t i = 0, at = below(7) - 3; i < n; i++)
		v[i] = at = below(5) ? at : below(7) - 3;
}

/* Elements of K repeat their conditions after the period that is returned; where they don't (0),
 * the last condition keeps elements inside the source. */
static int64_t tables_draw(int64_t lanes, int64_t nk, int64_t nc, int64_t *ts, int64_t *tk,
			   int64_t *rest)
{
	int64_t period = below(2) ? 0 : 1 + below(5);
	int64_t most = nc && !period ? 9 * SOURCE / 16 : SOURCE / 2;
	places(lanes, most, ts);
	places(nk, most, tk);
	for (int64_t r = 0; r < nc; r++) {
		steps(lanes, ts + (r + 1) * LANES);
		steps(nk, tk + (r + 1) * DEPTH);
		for (int64_t k = period; period && k < nk; k++)
			tk[(r + 1) * DEPTH + k] = tk[(r + 1) * DEPTH + k - period];
		rest[r] = below(6) - 1;
	}
	for (int64_t l = 0; l < lanes && most > SOURCE / 2; l++)
		ts[nc * LANES + l] = -ts[l];
	for (int64_t k = 0; k < nk && most > SOURCE / 2; k++)
		tk[nc * DEPTH + k] = SOURCE - 1 - tk[k];
	if (most > SOURCE / 2)
		rest[nc - 1] = 0;
	return period;
}

static double load(Type t, const void *p, int64_t i)
{
	return type_load(t, p, (size_t)i);
}

static long in_place; /* panels that were left where they lie */

/* Memory that ends where the source ends: what a border leaves out may lie outside, and is not
 * read. */
static char *source_new(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + page - 1) / page * page;
	char *map = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED || mprotect(map + page, room, PROT_READ | PROT_WRITE))
		abort();
	return map + page + room - bytes;
}

static void check_pack(const JitSymbol *symbol, Type t, int64_t lanes, int64_t nc)
{
	static double dst[LANES * DEPTH + LANES];
	static char *source[2];
	char **made = &source[t == RICCI_F64];
	int64_t ts[(CONDITIONS + 1) * LANES], tk[(CONDITIONS + 1) * DEPTH], rest[CONDITIONS];
	int64_t nk = 1 + below(DEPTH), wrong = 0, count = 1 + below(lanes);
	Pack *pack = (Pack *)symbol[t == RICCI_F64].address;

	int64_t seq[DEPTH];
	MicroPanel panel = {dst, seq};
	bool lie = below(2);

	if (!*made)
		*made = source_new(SOURCE * type_size(t));
	char *src = *made;
	if (below(2))
		count = lanes;
	for (int64_t i = 0; i < SOURCE; i++)
		type_store(t, src, (size_t)i, (double)(i + 1));
	for (int64_t i = 0; i < LANES * DEPTH + LANES; i++)
		type_store(t, dst, (size_t)i, -1);
	int64_t period = tables_draw(lanes, nk, nc, ts, tk, rest);
	for (int64_t k = 0; k < nk; k++)
		seq[k] = k * lanes;
	if (lie)
		((Panel *)symbol[2 + (t == RICCI_F64)].address)(src, dst, ts, LANES, tk, DEPTH, nc,
								rest, lanes, count, nk, period,
								&panel, seq);
	else
		pack(src, dst, ts, LANES, tk, DEPTH, nc, rest, lanes, count, nk, period);
	in_place += panel.at != dst;
	for (int64_t k = 0; k < nk; k++)
		for (int64_t l = 0; l < count; l++) {
			bool ok = true;

			for (int64_t r = 1; r <= nc; r++)
				ok &= ts[r * LANES + l] + tk[r * DEPTH + k] + rest[r - 1] >= 0;
			wrong += load(t, panel.at, panel.tk[k] + l) !=
				 (ok ? load(t, src, ts[l] + tk[k]) : 0);
		}
	CHECK_INT(wrong, 0);
	CHECK_NEAR(load(t, dst, nk * lanes + PACK_SLACK), -1, 0);
}

typedef void PackNarrow(const void *src, void *dst, const int64_t *ts, int64_t ss,
			const int64_t *tk, int64_t sk, int64_t nc, const int64_t *rest,
			int64_t lanes, int64_t count, int64_t nk, int64_t period, int64_t group,
			int64_t whole);

/* An element of a panel, as wide as `bits`, of what was of type t. */
static double held(Type t, int bits, const void *panel, int64_t at)
{
	if (bits == 16 && !type_is_float(t))
		return ((const int16_t *)panel)[at];
	return load(bits == 32 ? (type_is_float(t) ? RICCI_F32 : RICCI_I32) : t, panel, at);
}

/* ricci_pack_FROM_THROUGH_BITS by its definition: panels of any lanes, in groups. */
static void check_narrow(const JitSymbol *row, int64_t lanes, int64_t nc)
{
	enum { MOST = 32 * 128 };
	static double dst[MOST];
	static char *source[3]; /* of elements of 1, 2 and 4 bytes */
	char from_name[8], through_name[8];
	int bits = 0;
	int64_t ts[(CONDITIONS + 1) * LANES], tk[(CONDITIONS + 1) * DEPTH], rest[CONDITIONS];
	int64_t group = 1 << below(7), whole = group << below(2), wrong = 0;
	int64_t nk = 1 + below(DEPTH), count = 1 + below(lanes);
	int64_t deep = (nk + whole - 1) / whole * whole;
	Type from, through;

	CHECK(sscanf(row->name, "ricci_pack_%7[^_]_%7[^_]_%d", from_name, through_name, &bits) ==
	      3);
	CHECK(type_parse(from_name, &from) && type_parse(through_name, &through));
	if (deep * lanes > MOST)
		return;
	char **made = &source[type_size(from) / 2];
	if (!*made)
		*made = source_new(SOURCE * type_size(from));
	char *src = *made;
	for (int64_t i = 0; i < SOURCE; i++)
		type_store(from, src, (size_t)i,
			   type_is_float(from) ? (double)i / 7 - 99 : i % 256);
	int64_t period = tables_draw(lanes, nk, nc, ts, tk, rest);
	((PackNarrow *)row->address)(src, dst, ts, LANES, tk, DEPTH, nc, rest, lanes, count, nk,
				     period, group, whole);
	for (int64_t k = 0; k < deep; k++)
		for (int64_t l = 0; l < count; l++) {
			bool ok = k < nk;
			double want[1] = {0}; /* through its type and back */

			for (int64_t r = 1; r <= nc && ok; r++)
				ok = ts[r * LANES + l] + tk[r * DEPTH + k] + rest[r - 1] >= 0;
			if (ok)
				type_store(through, want, 0, load(from, src, ts[l] + tk[k]));
			wrong += held(through, bits, dst,
				      k / group * group * lanes + l * group + k % group) !=
				 (ok ? load(through, want, 0) : 0);
		}
	CHECK_REPORT(wrong == 0, "%s: %ld elements differ, group %ld, lanes %ld, %ld of K",
		     row->name, (long)wrong, (long)group, (long)lanes, (long)nk);
}

/* Distinct places of n elements, in runs. */
static void runs_draw(int64_t *at, int64_t n)
{
	int64_t run = (int64_t[]){1, 4, n}[below(3)];
	for (int64_t k = 0; k < n; k++)
		at[k] = k / run * (run + 1) + k % run;
}

static void check_unpack(const JitSymbol *symbol, Type t)
{
	static double c[LANES * DEPTH], dst[SOURCE];
	int64_t tm[DEPTH], tn[LANES], rows = 1 + below(DEPTH), cols = 1 + below(LANES), wrong = 0;
	int64_t elements = 0;
	const char *name = t == RICCI_F64 ? "ricci_unpack_f64" : "ricci_unpack_f32";
	while (strcmp(symbol->name, name))
		symbol++;
	Unpack *unpack = (Unpack *)symbol->address;

	for (int64_t i = 0; i < LANES * DEPTH; i++)
		type_store(t, c, (size_t)i, (double)(i + 1));
	for (int64_t i = 0; i < SOURCE; i++)
		type_store(t, dst, (size_t)i, -1);
	bool across = below(2);
	runs_draw(across ? tm : tn, across ? rows : cols);
	for (int64_t k = 0; k < (across ? cols : rows); k++)
		(across ? tn : tm)[k] = k * 2 * (across ? DEPTH : LANES) + 1;
	unpack(c, LANES, dst, tm, tn, rows, cols);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++)
			wrong += load(t, dst, tm[i] + tn[j]) != load(t, c, i * LANES + j);
	for (int64_t i = 0; i < SOURCE; i++)
		elements += load(t, dst, i) != -1;
	CHECK_INT(wrong, 0);
	CHECK_INT(elements, rows * cols);
}

/* Lines of src become columns of dst: of every size below a few squares. */
static void check_transpose(const char *name, Type t)
{
	enum { SIDE = 20, PITCH = 23 };
	typedef void Transpose(void *dst, int64_t to, const void *src, int64_t from, int64_t rows,
			       int64_t cols);
	double src[SIDE * PITCH], dst[SIDE * PITCH];
	Transpose *transpose = (Transpose *)jit_symbol(name);
	int64_t wrong = 0;

	for (int64_t i = 0; i < SIDE * PITCH; i++)
		type_store(t, src, (size_t)i, (double)i);
	for (int64_t rows = 1; rows <= SIDE; rows++)
		for (int64_t cols = 1; cols <= SIDE; cols++) {
			for (int64_t i = 0; i < SIDE * PITCH; i++)
				type_store(t, dst, (size_t)i, -1);
			transpose(dst, PITCH, src, PITCH, rows, cols);
			for (int64_t r = 0; r < SIDE; r++)
				for (int64_t c = 0; c < PITCH; c++)
					wrong += load(t, dst, r * PITCH + c) !=
						 (r < rows && c < cols ? (double)(c * PITCH + r)
								       : -1);
		}
	CHECK_INT(wrong, 0);
}

int main(void)
{
	static const int64_t lanes[] = {4, 6, 8, 14, 16, 32, 5, 12};
	static const Type type[] = {RICCI_F32, RICCI_F64};
	const JitSymbol *panel[3] = {panel_symbols_plain}, *narrow[3] = {pack_narrow_plain};
	int npanel = 1, nnarrow = 1;
#if defined(__x86_64__)
	if (target_host()->isa & ISA_AVX2)
		panel[npanel++] = panel_symbols_avx2, narrow[nnarrow++] = pack_narrow_avx2;
	if (target_host()->isa & ISA_AVX512)
		panel[npanel++] = panel_symbols_avx512, narrow[nnarrow++] = pack_narrow_avx512;
#endif

	for (int t = 0; t < COUNT(type); t++)
		for (int n = 0; n < 100; n++) {
			for (int l = 0; l < COUNT(lanes); l++)
				for (int nc = 0; nc <= CONDITIONS; nc++)
					for (int k = 0; k < npanel; k++)
						check_pack(panel[k], type[t], lanes[l], nc);
			for (int k = 0; k < npanel; k++)
				check_unpack(panel[k], type[t]);
		}
	for (int n = 0; n < 800; n++)
		for (int i = 0; i < nnarrow; i++)
			for (int k = 0; narrow[i][k].name; k++)
				check_narrow(&narrow[i][k], lanes[n % 8], n / 8 % (CONDITIONS + 1));
	CHECK(in_place > 100);
	check_transpose("ricci_transpose_4", RICCI_F32);
	check_transpose("ricci_transpose_8", RICCI_F64);
	return check_done();
}

/* test_micro.c - every micro-kernel that this processor runs, against plain loops; and that the
 * target is lowered, never raised, by RICCI_ISA. */
#include "tests/jit/micro_check.h"
#include <sys/wait.h>
#include <unistd.h>

enum { GUARD = 7, MAX_K = 70, EDGE = 3, MAX_ROWS = 16 };

/* Factors in place. Small integers, so that every order of summation is exact. c begins at an odd
 * place in its memory. Tiles with fewer rows or columns may write a row and part of a vector more.
 */
static void check_micro(const Micro *m, int64_t rows, int64_t cols, int64_t k, int64_t ldc,
			bool both, bool add)
{
	size_t size = type_size(m->type);
	int64_t nc = m->mr * ldc + 2 * GUARD;
	char *a = aligned_alloc(64, (m->mr * k * size + 64) & -64),
	     *b = aligned_alloc(64, (m->nr * k * size + 64) & -64);
	char *c = aligned_alloc(64, (nc * size + 64) & -64);
	double *want = calloc(nc, sizeof *want);
	for (int64_t i = 0; i < m->mr * k; i++)
		type_store(m->type, a, (size_t)i, (double)(i * 7 % 15 - 7));
	for (int64_t i = 0; i < m->nr * k; i++)
		type_store(m->type, b, (size_t)i, (double)(i * 5 % 13 - 6));
	for (int64_t i = 0; i < nc; i++)
		type_store(m->type, c, (size_t)i, want[i] = (double)(i % 11));
	int64_t ts[MAX_ROWS], tk[MAX_K + 1], wrong = 0;
	for (int64_t i = 0; i < m->mr; i++) /* rows in another order: still inside a */
		ts[i] = m->mr - 1 - i;
	for (int64_t p = 0; p < k; p++)
		tk[p] = m->mr * (k - 1 - p);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++) {
			double sum = add ? want[EDGE + i * ldc + j] : 0;
			for (int64_t p = 0; p < k; p++)
				sum += type_load(m->type, a, (size_t)(ts[i] + tk[p])) *
				       type_load(m->type, b, (size_t)(p * m->nr + j));
			want[EDGE + i * ldc + j] = sum;
		}
	int64_t tb[MAX_K + 1];
	for (int64_t p = 0; p < k; p++)
		tb[p] = p * m->nr;
	MicroPanel panel = {b, tb};
	if (both)
		m->both(rows, cols, k, a, ts, tk, &panel, c + EDGE * size, ldc, add);
	else
		m->placed(rows, cols, k, a, ts, tk, b, c + EDGE * size, ldc, add);
	for (int64_t i = 0; i < nc; i++) {
		int64_t row = (i - EDGE) / ldc, col = (i - EDGE) % ldc;
		bool edge = i >= EDGE && row < m->mr && col < m->nr && (row >= rows || col >= cols);
		wrong += !edge && type_load(m->type, c, (size_t)(i)) != want[i];
	}
	CHECK_REPORT(!wrong, "%s%s: %ld elements differ, %ldx%ld, k %ld, ldc %ld, add %d",
		     m->symbol, both ? "_both" : "_placed", (long)wrong, (long)rows, (long)cols,
		     (long)k, (long)ldc, add);
	free(a);
	free(b);
	free(c);
	free(want);
}

static void check_micros(void)
{
	const Target *t = target_host();
	const Micro *m;
	for (int i = 0; (m = micro_at(i)); i++) {
		if ((m->isa & t->isa) != m->isa)
			continue;
		CHECK(jit_symbol(m->symbol) == (const void *)m->fn);
		micro_check(m);
		if (!m->placed)
			continue;
		CHECK(jit_symbol(m->placed_symbol) == (const void *)m->placed);
		CHECK(jit_symbol(m->both_symbol) == (const void *)m->both);
		for (int64_t k = 0; k <= MAX_K; k += k < 6 ? 1 : 13)
			for (int way = 0; way < 4; way++) {
				check_micro(m, m->mr, m->nr, k, m->nr, way % 2, way / 2);
				check_micro(m, m->mr, m->nr, k, m->nr + 5, way % 2, way / 2);
			}
		for (int64_t rows = 1; rows <= m->mr; rows++)
			for (int64_t cols = 1; cols <= m->nr; cols++)
				for (int way = 0; way < 4; way++)
					check_micro(m, rows, cols, 9, m->nr + 1, way % 2, way / 2);
	}
	static const Type types[] = {RICCI_F32, RICCI_F64, RICCI_I32};
	for (int f = 0; f < COUNT(types); f++) {
		const Micro *best = micro_pick(t, types[f]);
		CHECK(best && (best->isa & t->isa) == best->isa && !best->a.from);
	}
}

/* The target of a process that starts with RICCI_ISA=isa. */
static Target target_under(const char *isa)
{
	int pipes[2];
	Target t = {0};
	fflush(NULL);
	if (pipe(pipes))
		return t;
	pid_t child = fork();
	if (child == 0) {
		setenv("RICCI_ISA", isa, 1);
		ssize_t n = write(pipes[1], target_host(), sizeof t);
		_exit(n != sizeof t);
	}
	close(pipes[1]);
	CHECK_INT(read(pipes[0], &t, sizeof t), sizeof t);
	close(pipes[0]);
	waitpid(child, NULL, 0);
	return t;
}

static void check_isa(void)
{
	Target all = target_under("");
	static const char *const isa[] = {"sse2", "avx2", "avx512", "nonsense"};
	for (int i = 0; i < COUNT(isa); i++) {
		Target t = target_under(isa[i]);
		CHECK_INT(t.isa & ~all.isa, 0);
		CHECK(t.vector_bytes <= all.vector_bytes && t.vector_bytes >= 16);
		CHECK(i < 3 || t.isa == all.isa);
		CHECK(i != 0 || (t.isa & ~(ISA_SSE2 | ISA_NEON)) == 0);
		CHECK(i != 0 || (t.vector_bytes == 16 && !t.flags[0]));
		CHECK(i != 1 || !(t.isa & ISA_AVX512));
		CHECK((t.isa == all.isa) == !strcmp(t.key, all.key));
		const Micro *m = micro_pick(&t, RICCI_F32);
		CHECK(m && (m->isa & ~t.isa) == 0);
	}
	CHECK(all.l1 >= 4096 && all.l2 >= all.l1 && (!all.l3 || all.l3 >= all.l2));
#if defined(__x86_64__)
	CHECK(all.isa & ISA_SSE2);
	CHECK(!(all.isa & ISA_AVX2) ==
		      !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) ||
	      getenv("RICCI_ISA"));
	CHECK(!(all.isa & ISA_AVX512) == !__builtin_cpu_supports("avx512dq") ||
	      getenv("RICCI_ISA"));
#endif
}

int main(void)
{
	check_isa(); /* before this process makes its own target */
	check_micros();
	return check_done();
}

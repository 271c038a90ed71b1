/* test_micro.c - every micro-kernel that this processor runs, against plain loops; and that the
 * target is lowered, never raised, by RICCI_ISA. */
#include "tests/jit/micro_check.h"
#include <sys/wait.h>
#include <unistd.h>

static void check_micros(void)
{
	const Target *t = target_host();
	const Micro *m;
	for (int i = 0; (m = micro_at(i)); i++) {
		if ((m->isa & t->isa) != m->isa)
			continue;
		CHECK(jit_symbol(m->symbol) == (const void *)m->fn);
		if (m->placed) {
			CHECK(jit_symbol(m->placed_symbol) == (const void *)m->placed);
			CHECK(!m->both || jit_symbol(m->both_symbol) == (const void *)m->both);
			CHECK(jit_symbol(m->listed_symbol) == (const void *)m->listed);
		}
		micro_check(m);
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

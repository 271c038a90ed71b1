/* test_stand_in.c - micro-kernels for instructions that few processors have, on stand-ins for them:
 * each against plain loops; those for narrow factors in whole contractions too, packing and all,
 * for targets that have them, against the interpreter. AVX-512's own are vectors of the compiler,
 * which makes them from narrower ones here. */
#if defined(__x86_64__)
#include "jit/backend/backend.h"
#include "jit/lower.h"
#include "tests/jit/stand_in_tiles.h"

#include "jit/micro/kernel_amx.c"

#define __AVX512F__ 1
#include "jit/micro/kernel_avx512.c"
#undef VB
#undef HALF_VB
#undef MR
#undef NV
#undef NAME
#undef T
#include "jit/micro/kernel_avx512bf16.c"
#undef VB
#undef MR
#undef NV
#undef NAME
#undef T
#include "jit/micro/kernel_avx512vnni.c"

#define target_host target_real
#include "jit/target.c"
#undef target_host

#include "tests/jit/lower_cases.h"
#include "tests/jit/micro_check.h"

enum { NARROW = ISA_AMX | ISA_AVX512BF16 | ISA_AVX512VNNI };
static Target target;

/* In the place of jit/target.c's, which the library's other files call. */
const Target *target_host(void)
{
	if (!target.isa) {
		target = *target_real();
		target.isa |= NARROW;
	}
	return &target;
}

static void check_micros(void)
{
	const Micro *m;
	int n = 0;
	for (int i = 0; (m = micro_at(i)); i++)
		if (m->isa & (NARROW | ISA_AVX512)) {
			if (m->isa &
			    NARROW) /* the table of symbols is made here, with all of them */
				CHECK(jit_symbol(m->symbol) == (const void *)m->fn);
			micro_check(m);
			n++;
		}
	CHECK_INT(n, 13);
}

static bool is_narrow(const Case *c)
{
	return strstr(c->operands, "8") || strstr(c->operands, "bf16") || strstr(c->text, "bf16");
}

/* With these instructions of the narrow ones only. Returns how many offers have narrow panels. */
static int check_cases(unsigned isa)
{
	static const Case more[] = {
		{"Y[i,j] += f32(A[i,k])*f32(B[k,j])", "A=70x130:bf16 B=130x90:bf16"},
		{"Y[i,j] += f32(A[k,i])*f32(B[j,k])", "A=301x45:bf16 B=77x301:bf16"},
		{"Y[b,i,j] += i32(A[b,i,k])*i32(B[b,k,j])", "A=3x40x67:u8 B=3x67x50:u8"},
		{"Y[b,k,p,q] += i32(X[b,c,2*p+r-1,q+s-1] else 0)*i32(W[k,c,r,s]) where p<8, q<16",
		 "X=2x9x16x16:u8 W=40x9x3x3:i8"},
	};
	Trial *list = NULL;
	int narrow = 0;
	target_host();
	target.isa = (target.isa & ~(unsigned)NARROW) | isa;
	for (int k = 0; k < COUNT(lower_equations); k++)
		if (is_narrow(&lower_equations[k]))
			list = harness_trials(&lower_equations[k], false, list);
	for (int k = 0; k < COUNT(more); k++)
		list = harness_trials(&more[k], false, list);
	for (Trial *t = list; t; t = t->next)
		for (int k = 0; k < t->noffer; k++)
			narrow += t->offer[k].step[0].kind == STEP_TENSORISE &&
				  t->offer[k].step[0].arg & 2;
	harness_check(list, &backend_tcc, 8);
	return narrow;
}

int main(void)
{
	check_micros();
	CHECK(check_cases(0) > 0); /* bytes, by SSE2 and AVX2 */
	CHECK(check_cases(ISA_AVX512BF16) > 0);
	CHECK(check_cases(ISA_AVX512VNNI) > 0);
	CHECK(check_cases(ISA_AMX) > 0);
	return harness_done();
}
#else
#include "tests/check.h"
int main(void)
{
	CHECK_SKIP("micro-kernels of another architecture");
	return check_done();
}
#endif

/* test_lower_cuda.c - the CUDA C row of the dialects: every construct of the emitter compiles; where a
 * driver answers, these and all cases of lowering run. Needs NVRTC, no GPU. */
#include "jit/backend/backend.h"
#include "tests/jit/lower_cases.h"

static const Case cases[] = {
	{"Y[i,j] += A[i,k]*B[k,j]; Z[i,j] = exp(Y[i,j])", "A=13x29 B=29x41"},
	{"Y[n,c,p,q] max= (X[n,c,2*p+r-1,2*q+s] else 0) where p<4, q<5, r<2, s<2", "X=2x7x10x12"},
	{"Y[T[i]:5,d] += X[i,d] where i<20, d<9", "T=20:i32 X=20x9"},
	{"Y[T[i]:5,d] += X[i,d] where i<20, d<9", "T=20:i32 X=20x9:f64"},
	{"Y[T[i]:5,d] += X[i,d] where i<20, d<9", "T=20:i32 X=20x9:i32"},
	{"Y[T[i]:5,d] += X[i,d] where i<20, d<9", "T=20:i32 X=20x9:i64"},
	{"Y[T[i]:5,d] max= X[i,d] where i<20, d<9", "T=20:i32 X=20x9"},
	{"Y[T[i]:5,d] min= X[i,d] where i<20, d<9", "T=20:i32 X=20x9:f64"},
	{"Y[T[i]:5,d] max= X[i,d] where i<20, d<9", "T=20:i32 X=20x9:i32"},
	{"Y[T[i]:5,d] min= X[i,d] where i<20, d<9", "T=20:i32 X=20x9:i64"},
	{"Y[i] = f32(A[i])*0.5 + f32(i)", "A=130:i8"},
	{"Y[i,j] = A[i,j]*B[i,j]", "A=13x29:f16 B=13x29:f16"},
	{"Y[i] = random(3) + normal(4)*A[i]", "A=100"},
	{"Y[i] = sigmoid(A[i]) + tan(A[i]) + round(A[i]) + tf32(A[i]) + sign(A[i]) + "
	 "max(abs(A[i]), 0)",
	 "A=100"},
	{"Y[i] = sigmoid(A[i]) + erf(A[i]) + pow(A[i], 2.5)", "A=100:f64"},
};

int main(void)
{
	const Backend *b = backend_find("nvrtc");
	Trial *list = NULL;
	char why[256];
	if (!*b->version()) {
		CHECK_SKIP("no NVRTC");
		return harness_done();
	}
	for (int k = 0; k < COUNT(cases); k++)
		list = harness_trials(&cases[k], false, list);
	for (Trial *t = list; t; t = t->next) {
		Error err = {0};
		Kernel *k = kernel_lower(&t->task, &t->offer[0], b, target_host(), &err);
		CHECK_REPORT(k && b->compile(b, 1, &k, NULL, &err) == 0, "%s: %s", t->text,
			     err.text);
		kernel_unref(k);
	}
	harness_check(list, b, 1);
	harness_grid = true;
	if (b->available(why, sizeof why))
		harness_check(lower_cases(), b, 1);
	return harness_done();
}

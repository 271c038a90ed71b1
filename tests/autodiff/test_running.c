/* test_running.c - gradients of running reductions: right in first and second order, where factors
 * are zero too, and in work in proportion to that of the forward pass. */
#include "jit/rewrite/rewrite.h"
#include "tests/autodiff/program.h"

typedef struct Case {
	const char *text; /* %1$d: T */
	int n;
	int rank[3];
	int64_t shape[3][4]; /* 0: T */
	int growth;	     /* of the work where T doubles */
} Case;

static const Case cases[] = {
	{"Y[b,t] *= A[b,r] where r < t+1, t<%1$d", 1, {2}, {{3, 0}}, 2},
	{"Y[b,t] *= A[b,r] where r < t, t<%1$d", 1, {2}, {{2, 0}}, 2},
	{"Y[b,t] *= A[b,r] where r in t..A.size(1), t<%1$d", 1, {2}, {{2, 0}}, 2},
	{"Y[t,b] *= A[r,b]*B[b] where r < %1$d-t, t<%1$d", 2, {2, 1}, {{0, 2}, {2}}, 2},
	{"Y[t] *= r < t-2 ? A[r] : 1 where t<%1$d+5", 1, {1}, {{0}}, 2},
	{"Y[t] *= r < 2*t+3 ? A[r] : 1 where t<%1$d", 1, {1}, {{0}}, 2},
	{"Y[t] *= A[r] where r in t/2..A.size(0), t<%1$d", 1, {1}, {{0}}, 2},
	{"Y[p,q] *= r < p+q ? A[r] : 1 where p<%1$d, q<3", 1, {1}, {{0}}, 2},
	{"Y[t] *= sin(A[r,c])+B[c] where r < t+1, t<%1$d", 2, {2, 1}, {{0, 3}, {3}}, 2},
	{"Y[t] *= r%%2 == 0 ? A[r] : 1 where r < t+1, t<%1$d", 1, {1}, {{0}}, 2},
	{"Y[s,t] *= A[r] where r in s+1..t+1, s<%1$d, t<%1$d", 1, {1}, {{0}}, 4},
	{"Y[s,t] *= A[s,r] where r in s..t+1, s<%1$d, t<%1$d", 1, {2}, {{0, 0}}, 4},
	{"P[t] *= A[r] where r < t+1, t<%1$d; Y[t] += P[j]*B[j] where j < t+1, t<%1$d",
	 2,
	 {1, 1},
	 {{0}, {0}},
	 2},
	{"Y[b,t] max= A[b,r] where r < t+1, t<%1$d", 1, {2}, {{3, 0}}, 2},
	{"Y[t] max= A[r] where r < min(t-2, %1$d)+3, t<%1$d-3", 1, {1}, {{0}}, 2},
	{"Y[t] min= A[r] where r in t/2..A.size(0), t<%1$d", 1, {1}, {{0}}, 2},
	{"Y[t] max= sin(A[r,c])*B[c] where r < t+1, t<%1$d", 2, {2, 1}, {{0, 3}, {3}}, 2},
	{"Y[s,t] max= A[r] where r in min(s,t)..t+1, s<%1$d, t<%1$d", 1, {1}, {{0}}, 4},
	/* linear attention's state, whose gradients run beside a sum */
	{"S[t,d,e] += K[j,d]*V[j,e] where j < t+1, t<%1$d", 2, {2, 2}, {{0, 2}, {0, 3}}, 2},
	{"S[t,e,d] += j < t-3 ? K[j,d]*V[j,e]*W[d] : 0 where t<%1$d",
	 3,
	 {2, 2, 1},
	 {{0, 2}, {0, 3}, {2}},
	 2},
	{"S[t,d,e] += K[j,d]*V[j,e] where j < t+1, t<%1$d; Y[t,e] += Q[t,d]*S[t,d,e]",
	 3,
	 {2, 2, 2},
	 {{0, 2}, {0, 3}, {0, 2}},
	 2},
	{"S[t,d,e] += K[j,d]*V[j,e] where j in t..K.size(0), t<%1$d",
	 2,
	 {2, 2},
	 {{0, 2}, {0, 3}},
	 2},
};

static Node *case_result(Bench *b, const Case *c, int t)
{
	Node *x[3], *y = NULL;
	int64_t shape[RICCI_MAX_RANK];
	int n = 1;
	for (int k = 0; k < c->n; k++) {
		for (int d = 0; d < c->rank[k]; d++)
			shape[d] = c->shape[k][d] ? c->shape[k][d] : t;
		x[k] = filled(b, c->rank[k], shape, 0.6, 1.3);
	}
	const char *text = arena_printf(&b->ir.arena, c->text, t);
	notation_elaborate(&b->ir, text, c->n, x, &n, &y, 1);
	CHECK_REPORT(!b->ir.err.code, "%s: %s", text, b->ir.err.text);
	if (b->ir.err.code)
		return NULL;
	for (int d = 0; d < tensor_rank(y); d++)
		shape[d] = tensor_extent(y, d);
	return inner(&b->ir, y, filled(b, tensor_rank(y), shape, 0.5, 1.5));
}

/* With so many zeros among the factors. */
static void is_right(Bench *b, const Case *c, int zeros)
{
	Node *y = case_result(b, c, 7), *grads[MAX_OPERANDS], *part[MAX_OPERANDS];
	int n = b->n;
	if (!y)
		return;
	for (int k = 0; k < zeros; k++)
		bench_data(b, 0)[(3 * k + 1) % tensor_size(b->bind[0].tensor)] = 0;
	bool right =
		differences_agree(b, y, 1e-5, 1e-6, 20, grads) && kernels_agree(b, "tcc", n, grads);
	for (int k = 0; k < n; k++) {
		int64_t shape[RICCI_MAX_RANK];
		for (int d = 0; d < tensor_rank(grads[k]); d++)
			shape[d] = tensor_extent(grads[k], d);
		part[k] =
			inner(&b->ir, grads[k], filled(b, tensor_rank(grads[k]), shape, 0.5, 1.5));
	}
	right = right && differences_agree(b, scalar_sum(&b->ir, n, part), 1e-5, 1e-5, 8, NULL);
	if (!right)
		fprintf(stderr, "in %s, %d zeros\n", c->text, zeros);
}

static void rightness(Bench *b, int which)
{
	is_right(b, &cases[which / 3], which % 3);
}

/* As kernels that run. */
static void kernels(Bench *b, int which)
{
	Node *y = case_result(b, &cases[which], 40), *x[MAX_OPERANDS], *grads[MAX_OPERANDS];
	for (int k = 0; k < b->n; k++)
		x[k] = b->bind[k].tensor;
	if (!y || autodiff_reverse(&b->ir, y, NULL, b->n, x, grads) ||
	    !kernels_agree(b, "tcc", b->n, grads))
		CHECK_REPORT(false, "in kernels of %s", cases[which].text);
}

/* The work of the equations that the first operand's gradient, or its tangent, needs, as kernels do
 * it. */
static double work_of(Bench *b, const Case *c, int t, bool forward)
{
	Node *y = case_result(b, c, t), *g, **order, *x = b->bind[0].tensor;
	double work = 0;
	if (!y || (forward ? autodiff_forward(&b->ir, y, 1, &x, &x, &g)
			   : autodiff_reverse(&b->ir, y, NULL, 1, &x, &g)))
		return NAN;
	rewrite_graph(&b->ir, 1, &g);
	int n = graph_order(&b->ir, 1, &g, &order);
	for (int k = 0; k < n; k++)
		work += order[k]->op == OP_COMP ? comp_work(&b->ir, order[k], 0) : 0;
	return work;
}

static double one_work, two_work;

/* which: a case, and a mode. */
static void work_one(Bench *b, int which)
{
	one_work = work_of(b, &cases[which / 2], 256, which % 2);
}

static void work_two(Bench *b, int which)
{
	two_work = work_of(b, &cases[which / 2], 512, which % 2);
}

/* ---- tangents, and equal shares */

/* <dy, J dx> is <J' dy, dx>. */
static void tangents(Bench *b, int which)
{
	Node *y = case_result(b, &cases[which], 9), *x = b->bind[0].tensor, *grad, *tangent;
	int64_t shape[RICCI_MAX_RANK];
	if (!y)
		return;
	for (int k = 0; k < 9 && which % 2; k++) /* ties, zeros */
		bench_data(b, 0)[k] = (double)draw(3);
	for (int d = 0; d < tensor_rank(x); d++)
		shape[d] = tensor_extent(x, d);
	Node *t = filled(b, tensor_rank(x), shape, -1, 1);
	CHECK_INT(autodiff_forward(&b->ir, y, 1, &x, &t, &tangent), 0);
	CHECK_INT(autodiff_reverse(&b->ir, y, NULL, 1, &x, &grad), 0);
	double *forward = bench_value(b, tangent),
	       *reverse = bench_value(b, inner(&b->ir, grad, t));
	CHECK_REPORT(forward && reverse &&
			     check_near(*forward, *reverse, 1e-9 * fmax(1, fabs(*reverse))),
		     "tangent of %s: %g, by the gradient %g", cases[which].text,
		     forward ? *forward : NAN, reverse ? *reverse : NAN);
}

/* Ties of a running maximum over rows of two: the gradient is what each share adds up to. */
static void shares(Bench *b, int which)
{
	enum { T = 11, C = 2 };
	static const char *const texts[] = {
		"Y[t] max= A[r,c] where r < t+1, t<11",
		"Y[t] min= A[r,c] where r in t..11, t<11",
	};
	double want[T * C] = {0};
	Node *x = filled(b, 2, (int64_t[]){T, C}, 0, 1), *y, *g;
	Node *dy = filled(b, 1, (int64_t[]){T}, 0.5, 1.5);
	const double *a = bench_data(b, 0), *d = bench_data(b, 1);
	int n = 1;
	for (int k = 0; k < T * C; k++)
		bench_data(b, 0)[k] = (double)draw(4);
	for (int t = 0; t < T; t++) {
		int first = which % 2 ? C * t : 0, end = which % 2 ? T * C : C * (t + 1), ties = 0;
		double best = a[first];
		for (int k = first; k < end; k++)
			best = which % 2 ? fmin(best, a[k]) : fmax(best, a[k]);
		for (int k = first; k < end; k++)
			ties += a[k] == best;
		for (int k = first; k < end; k++)
			want[k] += a[k] == best ? d[t] / ties : 0;
	}
	notation_elaborate(&b->ir, texts[which % 2], 1, &x, &n, &y, 1);
	CHECK_REPORT(!b->ir.err.code, "%s", b->ir.err.text);
	CHECK_INT(autodiff_reverse(&b->ir, y, dy, 1, &x, &g), 0);
	const double *got = bench_value(b, g);
	for (int k = 0; k < T * C && got; k++)
		CHECK_NEAR(got[k], want[k], 1e-9);
}

int main(void)
{
	for (int k = 0; k < 3 * COUNT(cases); k++)
		in_bench(rightness, k);
	for (int k = 0; k < COUNT(cases); k++) {
		in_bench(kernels, k);
		in_bench(tangents, k);
	}
	for (int k = 0; k < 20; k++)
		in_bench(shares, k);
	for (int k = 0; k < 2 * COUNT(cases); k++) {
		const Case *c = &cases[k / 2];
		in_bench(work_one, k);
		in_bench(work_two, k);
		CHECK_REPORT(two_work < 1.1 * c->growth * one_work, "%s of %s: %.0f, then %.0f",
			     k % 2 ? "tangent" : "gradient", c->text, one_work, two_work);
	}
	return check_done();
}

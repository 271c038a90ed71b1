/* test_numbers.c - derivatives at extreme arguments, at kinks, and of what is no number: the cases
 * of numbers.txt (make_numbers.py), evaluated by the interpreter and by kernels. */
#include "tests/autodiff/vectors.h"

/* Of one class, and near where finite. */
static bool same_number(double got, double want)
{
	if (isnan(want))
		return isnan(got);
	return isinf(want) ? got == want : fabs(got - want) <= 1e-12 * fabs(want) + 1e-15;
}

static void compare(const char *name, const char *what, const Record *at, const double *got,
		    const Record *want)
{
	for (int64_t e = 0; got && e < want->size; e++)
		CHECK_REPORT(same_number(got[e], want->value[e]),
			     "%s: %s at %d (%g) is %.17g, should be %.17g", name, what, (int)e,
			     at->size == want->size ? at->value[e] : 0, got[e], want->value[e]);
}

static char *run_case(void *user, Bench *b, Reader *r, const char *name, const char *text)
{
	Node *grads[MAX_OPERANDS], *y, *products[MAX_OPERANDS], *seconds[MAX_OPERANDS];
	Evaluation tcc = {
		.backend = backend_find("tcc"), .threads = 1, .seed = 1, .step = 1, .repeat = 1};
	Error err = {0};
	Case c;
	int nresult = 1, nroot = 0;
	char *head = case_next(r, b, &c);
	(void)user;
	notation_elaborate(&b->ir, text, c.noperand, c.operand, &nresult, &y, 1);
	CHECK_REPORT(!b->ir.err.code && nresult == 1, "%s: %s", name, b->ir.err.text);
	if (b->ir.err.code)
		return head;
	Node *dy = operand(b, &c.seed), *roots[3 * MAX_OPERANDS];
	const Record *want[3 * MAX_OPERANDS];
	const char *what[3 * MAX_OPERANDS];
	CHECK_INT(autodiff_reverse(&b->ir, y, dy, c.n, c.wrt, grads), 0);
	for (int k = 0; k < c.n; k++)
		products[k] = inner(&b->ir, grads[k], operand(b, &c.want[3 * k + 1]));
	Node *all = scalar_sum(&b->ir, c.n, products);
	CHECK_INT(autodiff_reverse(&b->ir, all, NULL, c.n, c.wrt, seconds), 0);
	roots[nroot] = y;
	what[nroot] = "value";
	want[nroot++] = &c.value;
	for (int k = 0; k < c.n; k++) {
		roots[nroot] = grads[k];
		what[nroot] = k ? "gradient by the second" : "gradient";
		want[nroot++] = &c.want[3 * k];
		if (!c.want[3 * k + 2].size)
			continue;
		roots[nroot] = seconds[k];
		what[nroot] = "second order";
		want[nroot++] = &c.want[3 * k + 2];
	}
	void *out[3 * MAX_OPERANDS];
	for (int k = 0; k < nroot; k++)
		out[k] = arena_alloc(&b->ir.arena, 8 * (size_t)tensor_size(roots[k]));
	int code = evaluate(&b->ir, nroot, roots, b->n, b->bind, out, &tcc, &err);
	CHECK_REPORT(code == 0, "%s: %s", name, err.text);
	for (int k = 0; k < nroot; k++) {
		compare(name, what[k], &c.want[1], bench_value(b, roots[k]), want[k]);
		if (!code)
			compare(name, what[k], &c.want[1], out[k], want[k]);
	}
	return head;
}

/* In single precision, where intermediate values overflow first: dy * f'(x). */
static const struct Single {
	const char *text;
	float x, dy;
	double want;
} singles[] = {
	{"Y[i] = rsqrt(X[i])", 1e-30f, 1e-20f, -0.5e25},
	{"Y[i] = rsqrt(X[i])", 1e30f, 1e20f, -0.5e-25},
	{"Y[i] = 1.0/X[i]", 1e-25f, 1e-30f, -1e20},
	{"Y[i] = 1.0/X[i]", 1e25f, 1e20f, -1e-30},
	{"Y[i] = X[i]/(1.0+abs(X[i]))", 1e30f, 1, 0},
	{"Y[i] = pow(X[i], 3.0)", 1e15f, 1e-20f, 3e10},
	{"Y[i] = sqrt(X[i])", 1e-38f, 1e10f, 0.5e29},
	{"Y[i] = log(X[i])", 1e-30f, 1e-20f, 1e10},
	{"Y[i] = sigmoid(X[i])", 100, 1, 0},
	{"Y[i] = sigmoid(X[i])", -100, 1, 0},
	{"Y[i] = tanh(X[i])", -100, 1, 0},
	{"Y[i] = max(X[i],0.0) + log1p(exp(0.0-abs(X[i])))", 200, 1, 1},
	{"Y[i] = max(X[i],0.0) + log1p(exp(0.0-abs(X[i])))", -200, 1, 0},
	{"Y[i] = erf(X[i])", 1e20f, 1, 0},
	{"Y[i] = X[i]*X[i]", 1e19f, 1e19f, 2e38},
};

static void single_run(Bench *b, const struct Single *s)
{
	Evaluation tcc = {
		.backend = backend_find("tcc"), .threads = 1, .seed = 1, .step = 1, .repeat = 1};
	Error err = {0};
	float got[1] = {0};
	void *out = got;
	int64_t shape[1] = {1};
	Node *x = bench_input(b, "x", RICCI_F32, 1, shape), *y, *g = NULL;
	Node *dy = bench_input(b, "dy", RICCI_F32, 1, shape);
	int n = 1;
	*(float *)(uintptr_t)b->bind[0].data = s->x;
	*(float *)(uintptr_t)b->bind[1].data = s->dy;
	notation_elaborate(&b->ir, s->text, 1, &x, &n, &y, 1);
	CHECK_STR(b->ir.err.text, "");
	CHECK_INT(autodiff_reverse(&b->ir, y, dy, 1, &x, &g), 0);
	CHECK_INT(evaluate(&b->ir, 1, &g, b->n, b->bind, &out, &tcc, &err), 0);
	CHECK_REPORT(check_near(got[0], s->want, 1e-5 * fabs(s->want) + 1e-30),
		     "%s at %g times %g is %g, should be %g", s->text, (double)s->x, (double)s->dy,
		     (double)got[0], s->want);
}

static void single_precision(const struct Single *s)
{
	Bench b = {0};
	jmp_buf oom;
	ir_init(&b.ir);
	b.ir.arena.oom = &oom;
	if (setjmp(oom))
		CHECK_REPORT(false, "%s: %s", s->text, b.ir.err.text);
	else
		single_run(&b, s);
	ir_free(&b.ir);
}

int main(void)
{
	for (int k = 0; k < COUNT(singles); k++)
		single_precision(&singles[k]);
	CHECK(cases_run("tests/autodiff/numbers.txt", run_case, NULL) > 30);
	return check_done();
}

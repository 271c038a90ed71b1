/* test_vectors.c - values, gradients and second-order products of real operators against numbers
 * that PyTorch recorded (make_vectors.py, vectors.txt), and the text of their gradient equations
 * against gradients.golden (RICCI_BLESS=1 writes it anew); all of them by compiled kernels too. */
#include "tests/autodiff/costs.h"
#include "tests/autodiff/shape.h"
#include "tests/autodiff/vectors.h"

static bool agrees(Bench *b, const char *name, const char *what, int k, Node *t, const Record *want)
{
	int before = check_failed;
	double *got = bench_value(b, t);
	CHECK_INT(tensor_size(t), want->size);
	CHECK_INT(tensor_rank(t), want->rank);
	for (int64_t e = 0; got && e < want->size && check_failed == before; e++)
		CHECK_REPORT(check_near(got[e], want->value[e], 1e-9 * (1 + fabs(want->value[e]))),
			     "%s: %s %d at %d is %.12g, should be %.12g", name, what, k, (int)e,
			     got[e], want->value[e]);
	return check_failed == before;
}

/* Multiply-adds: of the equations and how many a gradient may take, of each gradient, of all
 * together and how many those may take. */
static void golden_costs(Text *out, Bench *b, const char *name, Node *y, int n, Node *const *wrt,
			 Node *const *grads, int nforward, Node *const *forward)
{
	double points = 0, there = costs_of(b, 1, &y, 0, NULL, &points);
	double all = costs_of(b, n, grads, nforward, forward, &points), most = 0;
	for (int k = 0; k < n; k++) {
		double bound = costs_way(b, y, 1, &wrt[k]).bound;
		double back = costs_of(b, 1, &grads[k], nforward, forward, &points);
		text_add(out, "%s%.0f for %s", k ? ", " : "multiply-adds ", back, wrt[k]->u.s);
		CHECK_REPORT(back <= bound,
			     "%s: the gradient by %s takes %.0f multiply-adds, of %.0f that it may",
			     name, wrt[k]->u.s, back, bound);
		most += bound;
	}
	CHECK_REPORT(all <= most,
		     "%s: the gradients take %.0f multiply-adds, of %.0f that they may", name, all,
		     most);
	text_add(out, "; %.0f in all, %.0f forward\n", all, there);
}

/* The case's gradients as text, with the number of points that each side runs over. */
static void golden_put(Text *out, Bench *b, const char *name, Node *y, int n, Node *const *wrt,
		       Node *const *grads)
{
	const char *names[MAX_OPERANDS];
	Node **forward;
	int nforward = graph_order(&b->ir, 1, &y, &forward);
	for (int k = 0; k < n; k++)
		names[k] = arena_printf(&b->ir.arena, "d_%s", wrt[k]->u.s);
	double there = 0, back = 0;
	costs_of(b, 1, &y, 0, NULL, &there);
	costs_of(b, n, grads, nforward, forward, &back);
	text_add(out, "%s: points %.0f, gradients %.0f\n", name, there, back);
	golden_costs(out, b, name, y, n, wrt, grads, nforward, forward);
	check_shape(b, name, n, grads, nforward, forward);
	print_program(out, &b->ir, 1, &y, (const char *[]){"y"});
	text_add(out, "\n");
	print_program(out, &b->ir, n, grads, names);
	text_add(out, "\n");
}

static char *run_case(void *golden, Bench *b, Reader *r, const char *name, const char *text)
{
	Node *grads[MAX_OPERANDS], *y[1], *products[MAX_OPERANDS], *seconds[MAX_OPERANDS];
	Case c;
	int nresult = 1;
	char *head = case_next(r, b, &c);
	notation_elaborate(&b->ir, text, c.noperand, c.operand, &nresult, y, 1);
	CHECK_REPORT(!b->ir.err.code && nresult == 1, "%s: %s", name, b->ir.err.text);
	if (b->ir.err.code)
		return head;
	int before = check_failed, n = c.n;
	agrees(b, name, "value", 0, y[0], &c.value);
	Node *dy = operand(b, &c.seed);
	CHECK_INT(autodiff_reverse(&b->ir, y[0], dy, n, c.wrt, grads), 0);
	CHECK_INT(autodiff_reverse(&b->ir, y[0], dy, n, c.wrt, seconds), 0);
	for (int k = 0; k < n; k++)
		CHECK_REPORT(grads[k] == seconds[k], "%s: another gradient at the second time",
			     name);
	for (int k = 0; k < n; k++) {
		agrees(b, name, "gradient", k, grads[k], &c.want[3 * k]);
		products[k] = inner(&b->ir, grads[k], operand(b, &c.want[3 * k + 1]));
	}
	Node *all = scalar_sum(&b->ir, n, products);
	CHECK_INT(autodiff_reverse(&b->ir, all, NULL, n, c.wrt, seconds), 0);
	for (int k = 0; k < n; k++)
		agrees(b, name, "second", k, seconds[k], &c.want[3 * k + 2]);
	Node *roots[3 * MAX_OPERANDS];
	for (int k = 0; k < n; k++) {
		roots[k] = grads[k];
		roots[n + k] = seconds[k];
	}
	roots[2 * n] = y[0];
	kernels_agree(b, "tcc", 2 * n + 1, roots);
	golden_put(golden, b, name, y[0], n, c.wrt, grads);
	if (check_failed != before) {
		fprintf(stderr, "---- %s\n", name);
		print_on_failure(b, 1, y);
		print_on_failure(b, n, grads);
	}
	return head;
}

/* Line by line, so that a difference is named by its lines. */
static void check_golden(const char *path, const char *text)
{
	if (getenv("RICCI_BLESS")) {
		FILE *out = fopen(path, "w");
		CHECK(out && fputs(text, out) >= 0 && fclose(out) == 0);
		return;
	}
	Reader r = {.f = fopen(path, "r")};
	CHECK(r.f != NULL);
	if (!r.f)
		return;
	int before = check_failed;
	while (*text && check_failed == before) {
		size_t n = strcspn(text, "\n");
		char *got = strndup(text, n);
		CHECK_STR(got, line_next(&r));
		free(got);
		text += n + (text[n] != 0);
	}
	CHECK_STR(line_next(&r), "");
	fclose(r.f);
	free(r.line);
}

int main(void)
{
	Text golden = {0};
	CHECK(cases_run("tests/autodiff/vectors.txt", run_case, &golden) > 100);
	check_golden("tests/autodiff/gradients.golden", golden.s ? golden.s : "");
	text_free(&golden);
	return check_done();
}

/* harness.h - what the tests of autodiff/ share: values by the interpreter, central differences,
 * random numbers. Everything lives in the arena of the test's Ir. */
#ifndef HARNESS_H
#define HARNESS_H

#include "autodiff/autodiff.h"
#include "runtime/runtime.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#define MAX_OPERANDS 48

static uint64_t random_state = 88172645463325252u;

__attribute__((unused)) static int64_t draw(int64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (int64_t)(random_state >> 11) % n;
}

__attribute__((unused)) static double draw_float(double low, double high)
{
	return low + (high - low) * (double)draw(1 << 30) / (1 << 30);
}

/* Operands with their data: double for F64, int64 for I64. */
typedef struct Bench {
	Ir ir;
	int n;
	Binding bind[MAX_OPERANDS];
} Bench;

__attribute__((unused)) static Node *bench_input(Bench *b, const char *name, Type type, int rank,
						 const int64_t *shape)
{
	Node *t = node_input(&b->ir, name, type, rank, shape);
	b->bind[b->n++] = (Binding){t, arena_alloc(&b->ir.arena, 8 * (size_t)tensor_size(t))};
	return t;
}

__attribute__((unused)) static double *bench_data(Bench *b, int k)
{
	return (double *)(uintptr_t)b->bind[k].data;
}

/* The values of t, or NULL after a failed check. */
__attribute__((unused)) static double *bench_value(Bench *b, Node *t)
{
	Error err = {0};
	double *out = arena_alloc(&b->ir.arena, 8 * (size_t)tensor_size(t));
	int code = interp_tensor(t, b->n, b->bind, (RandomState){1, 1}, out, NULL, &err);
	CHECK_REPORT(code == 0, "interpreter: %s", err.text);
	return code ? NULL : out;
}

/* The scalar sum over all elements of t * u. */
__attribute__((unused)) static Node *inner(Ir *ir, Node *t, Node *u)
{
	Node *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(t);
	for (int d = 0; d < rank; d++)
		axes[d] = node_axis(ir, d, tensor_extent(t, d));
	Node *body = node_mul(ir, node_read(ir, t, axes), node_read(ir, u, axes));
	return comp_make(ir, RED_ADD, 0, NULL, NULL, rank, axes, body);
}

__attribute__((unused)) static Node *scalar_sum(Ir *ir, int n, Node *const *scalar)
{
	Node *body = node_const(ir, RICCI_F64, 0);
	for (int k = 0; k < n; k++)
		body = node_add(ir, body, node_read(ir, scalar[k], NULL));
	return comp_dense(ir, RED_NONE, 0, 0, NULL, body);
}

/* Do the kernels of a backend give what the interpreter gives, for each root, all F64? */
__attribute__((unused)) static bool kernels_agree(Bench *b, const char *backend, int n,
						  Node *const *roots)
{
	Error err = {0};
	void *out[3 * MAX_OPERANDS];
	Evaluation e = {
		.backend = backend_find(backend), .threads = 1, .seed = 1, .step = 1, .repeat = 1};
	int before = check_failed;
	for (int k = 0; k < n; k++)
		out[k] = arena_alloc(&b->ir.arena, 8 * (size_t)tensor_size(roots[k]));
	int code = evaluate(&b->ir, n, roots, b->n, b->bind, out, &e, &err);
	CHECK_REPORT(code == 0, "%s: %s", backend, err.text);
	for (int k = 0; k < n && !code; k++) {
		double *want = bench_value(b, roots[k]), *got = out[k];
		for (int64_t i = 0; want && i < tensor_size(roots[k]) && check_failed == before;
		     i++)
			CHECK_REPORT(check_near(got[i], want[i], 1e-9 * (1 + fabs(want[i]))),
				     "%s: root %d at %d is %.12g, the interpreter says %.12g",
				     backend, k, (int)i, got[i], want[i]);
	}
	return check_failed == before;
}

__attribute__((unused)) static void print_on_failure(Bench *b, int n, Node *const *roots)
{
	Text text = {0};
	const char *names[MAX_OPERANDS];
	for (int k = 0; k < n; k++)
		names[k] = arena_printf(&b->ir.arena, "R%d", k);
	print_program(&text, &b->ir, n, roots, names);
	fprintf(stderr, "%s\n", text.s ? text.s : "");
	text_free(&text);
}

/* Compares the gradients of the scalar y by the float operands with central differences; the
 * operands move by `step` at each of at most `most` elements. Returns the gradients' number, NULL
 * grads allowed. */
__attribute__((unused)) static bool differences_agree(Bench *b, Node *y, double step,
						      double tolerance, int64_t most, Node **grads)
{
	Node *wrt[MAX_OPERANDS], *got[MAX_OPERANDS];
	int n = 0, at[MAX_OPERANDS];
	int before = check_failed;
	for (int k = 0; k < b->n; k++)
		if (b->bind[k].tensor->type == RICCI_F64) {
			at[n] = k;
			wrt[n++] = b->bind[k].tensor;
		}
	CHECK_INT(autodiff_reverse(&b->ir, y, NULL, n, wrt, got), 0);
	if (b->ir.err.code) {
		fprintf(stderr, "%s\n", b->ir.err.text);
		return false;
	}
	for (int k = 0; k < n; k++) {
		double *g = bench_value(b, got[k]), *x = bench_data(b, at[k]);
		int64_t size = tensor_size(wrt[k]);
		for (int64_t e = 0; g && e < size && e < most && check_failed == before; e++) {
			double old = x[e];
			x[e] = old + step;
			double *up = bench_value(b, y);
			x[e] = old - step;
			double *down = bench_value(b, y);
			x[e] = old;
			if (!up || !down)
				break;
			double want = (*up - *down) / (2 * step);
			x[e] = old + 2 * step;
			double *up2 = bench_value(b, y);
			x[e] = old - 2 * step;
			double *down2 = bench_value(b, y);
			x[e] = old;
			if (!up2 || !down2)
				break;
			double scale = fmax(1, fmax(fabs(want), fabs(*up)));
			double bend = *up + *down - (*up2 + *down2) / 2;
			if (!check_near((*up2 - *down2) / (4 * step), want,
					tolerance * scale / 8) ||
			    fabs(bend) > tolerance * scale * step)
				continue; /* a kink, a jump or a cliff within the step */
			CHECK_REPORT(check_near(g[e], want, tolerance * scale),
				     "d/d%s[%d] is %.12g, differences give %.12g", wrt[k]->u.s,
				     (int)e, g[e], want);
		}
	}
	if (check_failed != before) {
		print_on_failure(b, 1, &y);
		print_on_failure(b, n, got);
	}
	if (grads)
		memcpy(grads, got, sizeof *got * (size_t)n);
	return check_failed == before;
}

#endif

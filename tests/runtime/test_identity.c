/* test_identity.c - a kernel belongs to one computation: equations that differ far inside, or
 * behind a long common part, never share one, whatever their texts look like. */
#include "runtime/session.h"
#include "tests/check.h"
#include <math.h>
#include <stdlib.h>

enum { STEPS = 18, N = 4 };

/* STEPS steps of a*(1-a) from each input, then another function of each result. */
static char *program(void)
{
	Text t = {0};
	for (int k = 0; k < 2; k++) {
		const char *a = k ? "b" : "a", *x = k ? "Z" : "X";
		text_add(&t, "%s1[i]=%s[i]*(1-%s[i]);", a, x, x);
		for (int s = 2; s <= STEPS; s++)
			text_add(&t, "%s%d[i]=%s%d[i]*(1-%s%d[i]);", a, s, a, s - 1, a, s - 1);
	}
	text_add(&t, "Y[i]=a%d[i]+sin(B[i]);W[i]=b%d[i]+cos(C[i])", STEPS, STEPS);
	return t.s;
}

static void test_backend(ricci_backend backend)
{
	static const char *const names[4] = {"X", "B", "Z", "C"};
	static const float data[2][N] = {{.1f, .2f, .3f, .4f}, {0, 1, 2, 3}};
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *in[4], *out[2];
	int nout = 2;
	char *text = program();
	const char **order;

	CHECK_INT(notation_operands(&g->ir, text, &order), 4);
	for (int k = 0; k < 4; k++)
		in[k] = ricci_input(g, order[k], RICCI_F32, 1, (int64_t[]){N});
	CHECK_INT(ricci_ops(g, text, 4, in, &nout, out), 0);
	ricci_session *s =
		ricci_session_new(g, &RICCI_OPTIONS(.backend = backend, .threads = 1), 0, 2, out);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	for (int k = 0; s && k < 4; k++)
		for (int j = 0; j < 4; j++)
			if (!strcmp(order[k], names[j]))
				CHECK_INT(ricci_feed(s, in[k], data[j % 2], ricci_bytes(in[k])), 0);
	CHECK_INT(s ? ricci_step(s) : -1, 0);
	for (int k = 0; s && k < 2; k++) {
		float got[N] = {0};
		CHECK_INT(ricci_fetch(s, out[k], got, ricci_bytes(out[k])), 0);
		for (int i = 0; i < N; i++) {
			double a = data[0][i], want;
			for (int n = 0; n < STEPS; n++)
				a *= 1 - a;
			want = a + (k ? cos(data[1][i]) : sin(data[1][i]));
			CHECK_REPORT(fabs(got[i] - want) < 1e-4, "result %d at %d: %g, not %g", k,
				     i, got[i], want);
		}
	}
	ricci_session_free(s);
	ricci_graph_free(g);
	mem_free(text);
}

/* The last of NEST steps of a chain from v0[i] = X[i], then a sum over i. Differentiated, too. Trees
 * of it have 2^NEST nodes. */
static void test_nested(ricci_backend backend, const char *step, float want)
{
	enum { NEST = 30 };
	static const float x[N] = {1, 1, 1, 1}, choice[N] = {0, 40, 0, 40},
			   z[2 * N] = {1, 2, 1, 2, 1, 2, 1, 2};
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *in[3] = {ricci_input(g, "X", RICCI_F32, 1, (int64_t[]){N}),
			       ricci_input(g, "C", RICCI_F32, 1, (int64_t[]){N}),
			       ricci_input(g, "Z", RICCI_F32, 2, (int64_t[]){N, 2})};
	const float *data[3] = {x, choice, z};
	ricci_tensor *out[2] = {NULL};
	float got[2] = {0}, slope[N] = {0};
	int nout = 1;
	Text t = {0};

	text_add(&t, "v0[i] = X[i]*(1 + 0*C[i]);");
	for (int k = 0; k < NEST; k++)
		for (const char *s = step; *s; s++) /* V: the value before, K: the step */
			if (*s == 'V')
				text_add(&t, "v%d[i]", k);
			else if (*s == 'W')
				text_add(&t, "v%d[i]", k + 1);
			else if (*s == 'K')
				text_add(&t, "%d", k + 2);
			else
				text_put(&t, s, 1);
	text_add(&t, "Y[j] += v%d[i] * Z[i,j]", NEST);
	CHECK_INT(ricci_ops(g, t.s, 3, in, &nout, out), 0);
	out[1] = ricci_op(g, "L[] += Y[j]", out[0]);
	CHECK_INT(ricci_grad(g, out[1], NULL, 1, in, out + 1), 0);
	ricci_session *s =
		ricci_session_new(g, &RICCI_OPTIONS(.backend = backend, .threads = 1), 0, 2, out);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	for (int k = 0; s && k < 3; k++)
		CHECK_INT(ricci_feed(s, in[k], data[k], ricci_bytes(in[k])), 0);
	CHECK_INT(s ? ricci_step(s) : -1, 0);
	CHECK_INT(s ? ricci_fetch(s, out[0], got, sizeof got) : -1, 0);
	CHECK_INT(s ? ricci_fetch(s, out[1], slope, sizeof slope) : -1, 0);
	CHECK_REPORT(got[0] == want && got[1] == 2 * want, "%s: %g %g", step, got[0], got[1]);
	ricci_session_free(s);
	ricci_graph_free(g);
	text_free(&t);
}

int main(void)
{
	test_backend(RICCI_BACKEND_INTERP);
	test_backend(RICCI_BACKEND_TCC);
	test_backend(RICCI_BACKEND_AUTO);
	test_nested(RICCI_BACKEND_INTERP, "W = V * V;", 4);
	test_nested(RICCI_BACKEND_TCC, "W = V * V;", 4);
	test_nested(RICCI_BACKEND_CC, "W = V * V;", 4);
	return check_done();
}

/* test_shared.c - one equation of 10,000 shared nodes, whose tree would have 2^900 terms, is
 * printed, compiled and computed: no walk meets a node twice. */
#include "runtime/session.h"
#include "tests/check.h"
#include <math.h>

enum { CHAINS = 6, STEPS = 900, N = 4 };

static const float data[N] = {.01f, .05f, .1f, .15f};

static void write_program(Text *t)
{
	for (int c = 0; c < CHAINS; c++) {
		text_add(t, "v%d_0 = X[i]*%d.5;\n", c, c);
		for (int k = 1; k < STEPS; k++)
			text_add(t, "v%d_%d = v%d_%d*(1 - v%d_%d);\n", c, k, c, k - 1, c, k - 1);
	}
	text_add(t, "Y[i] = v0_%d", STEPS - 1);
	for (int c = 1; c < CHAINS; c++)
		text_add(t, " + v%d_%d", c, STEPS - 1);
}

static double value(double x)
{
	double sum = 0;
	for (int c = 0; c < CHAINS; c++) {
		double v = x * (c + .5);
		for (int k = 1; k < STEPS; k++)
			v *= 1 - v;
		sum += v;
	}
	return sum;
}

static void test_backend(const char *text, ricci_backend backend)
{
	float y[N] = {0};
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "X", RICCI_F32, 1, (int64_t[]){N}), *out = NULL;
	int nout = 1;
	CHECK_INT(ricci_ops(g, text, 1, &x, &nout, &out), 0);
	CHECK_GRAPH(g);
	char *shown = ricci_show(out);
	CHECK(shown && strlen(shown) < 4 * strlen(text));
	ricci_free_text(shown);
	ricci_session *s =
		ricci_session_new(g, &RICCI_OPTIONS(.backend = backend, .threads = 1), 0, 1, &out);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	CHECK_INT(s ? ricci_feed(s, x, data, ricci_bytes(x)) : -1, 0);
	CHECK_INT(s ? ricci_step(s) : -1, 0);
	CHECK_INT(s ? ricci_fetch(s, out, y, ricci_bytes(out)) : -1, 0);
	for (int i = 0; i < N; i++)
		CHECK_REPORT(fabs(y[i] - value(data[i])) < 1e-4, "%g, not %g", y[i],
			     value(data[i]));
	ricci_session_free(s);
	ricci_graph_free(g);
}

int main(void)
{
	Text text = {0};
	write_program(&text);
	test_backend(text.s, RICCI_BACKEND_INTERP);
	test_backend(text.s, RICCI_BACKEND_TCC);
	text_free(&text);
	return check_done();
}

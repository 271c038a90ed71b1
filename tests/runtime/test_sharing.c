/* test_sharing.c - expressions whose parts are shared at every one of DEPTH levels, so that their
 * trees have 2^DEPTH parts: each is printed, differentiated and computed, and every backend agrees
 * with the interpreter. A walk that met a shared part once for each of its users would never end. */
#include "runtime/session.h"
#include "tests/check.h"
#include <math.h>
#include <pthread.h>

enum { DEPTH = 40, N = 8, OPERANDS = 2 };

typedef struct Family {
	const char *name, *head, *each, *tail;
	bool grad;
} Family;

/* each: %1$d is the level, %2$d the next one. */
static const Family families[] = {
	{"choices of indices", "v0 = X[i]; ", "v%2$d = i < %1$d %% 8 ? v%1$d*.5 : v%1$d + .25; ",
	 "Y[i] = v%d + 0*Z[i]", true},
	{"choices of data", "v0 = X[i]; ", "v%2$d = Z[i] > %1$d*.02 ? v%1$d : 1 - v%1$d; ",
	 "Y[i] = v%d", true},
	{"choices of themselves", "v0 = X[i]; ", "v%2$d = v%1$d > .%1$d1 ? v%1$d*.9 : 1 - v%1$d; ",
	 "Y[i] = v%d*Z[i]", true},
	{"choices of two", "v0 = X[i]; ",
	 "v%2$d = (Z[i] > %1$d*.02 ? v%1$d : .1) + (X[i] > %1$d*.02 ? .5*v%1$d : .2); ",
	 "Y[i] = v%d*.1", true},
	{"maxima", "v0 = X[i]; ", "v%2$d = max(v%1$d, v%1$d*v%1$d); ", "Y[i] = v%d*Z[i]", true},
	{"padded", "v0 = X[i]; ", "v%2$d = (Z[i-%1$d] else v%1$d)*.5 + v%1$d*.25; ", "Y[i] = v%d",
	 true},
	{"truth", "b0 = X[i] > .5; ",
	 "b%2$d = (b%1$d && Z[i] > .0%1$d) || (!b%1$d && i < %1$d %% 8); ",
	 "Y[i] = b%d ? X[i] : Z[i]", true},
	{"sums", "v0 = X[j]; ", "v%2$d = v%1$d*(1.5 - v%1$d); ",
	 "Y[i] += v%d*Z[(i+j)%%8] where i<8", true},
	{"sums of choices", "v0 = X[j]; ", "v%2$d = i + j < %1$d %% 8 ? v%1$d*.75 : 1 - v%1$d; ",
	 "Y[i] += v%d*Z[j] where i<8", true},
	{"contracted", "v0 = X[i]*Z[k]; ", "v%2$d = max(v%1$d, .9*v%1$d*v%1$d); ",
	 "P[i,j] += v%d*X[j]; Y[i] = P[i,(i+1)%%8]", true},
	{"products", "v0 = X[j]; ", "v%2$d = v%1$d*(1.5 - v%1$d); ",
	 "Y[i] *= v%d + Z[(i+j)%%8] where i<8", true},
	{"greatest", "v0 = X[j]; ", "v%2$d = v%1$d*(1.5 - v%1$d); ",
	 "Y[i] max= v%d*Z[(i+j)%%8] where i<8", true},
	{"indices", "p0 = i; ", "p%2$d = X[i] > %1$d*.02 ? p%1$d : 7 - p%1$d; ",
	 "Y[i] = Z[p%d]*X[i]", true},
	{"quotients", "p0 = i; ", "p%2$d = (p%1$d + p%1$d/2) %% 8; ", "Y[i] = Z[p%d]*X[i]", true},
	{"short numbers", "v0 = bf16(X[i]); ", "v%2$d = v%1$d*(bf16(1.5) - v%1$d); ",
	 "Y[i] = f32(v%d)*Z[i]", false},
	{"integers", "v0 = i32(X[i]*9); ", "v%2$d = (v%1$d*v%1$d + v%1$d) %% 13; ",
	 "Y[i] = f32(v%d)*Z[i]", false},
	{"both types", "v0 = X[i]; ", "v%2$d = f32(f64(v%1$d)*.5) + .5*v%1$d; ", "Y[i] = v%d*Z[i]",
	 true},
	{"equations", "T0[i] = X[i]; ", "T%2$d[i] = max(T%1$d[i], T%1$d[i]*T%1$d[i]); ",
	 "Y[i] = T%d[i]*Z[i]", true},
	{"running", "v0 = X[j]; ", "v%2$d = v%1$d*(1.5 - v%1$d); ",
	 "Y[i] += j <= i ? v%d*Z[j] : 0 where i<8", true},
};

static const float data[OPERANDS][N] = {{.11f, .25f, .33f, .52f, .61f, .7f, .81f, .93f},
					{.9f, .15f, .77f, .4f, .58f, .21f, .36f, .64f}};

static void write_program(const Family *f, Text *t)
{
	text_add(t, "%s", f->head);
	for (int k = 0; k < DEPTH; k++)
		text_add(t, f->each, k, k + 1);
	text_add(t, f->tail, DEPTH);
}

static void run(const Family *f, ricci_graph *g, ricci_tensor *const *x, ricci_tensor *y,
		ricci_backend backend, float *out)
{
	ricci_session *s =
		ricci_session_new(g, &RICCI_OPTIONS(.backend = backend, .threads = 1), 0, 1, &y);

	CHECK_REPORT(s != NULL, "%s: %s", f->name, ricci_error_message());
	for (int k = 0; k < OPERANDS && s; k++)
		ricci_feed(s, x[k], data[k], sizeof data[k]); /* some gradients read one only */
	CHECK_REPORT(s && ricci_step(s) == 0, "%s: %s", f->name, ricci_error_message());
	CHECK_INT(s ? ricci_fetch(s, y, out, N * sizeof *out) : -1, 0);
	ricci_session_free(s);
}

static void agree(const Family *f, ricci_graph *g, ricci_tensor *const *x, ricci_tensor *y)
{
	static const ricci_backend others[] = {RICCI_BACKEND_TCC, RICCI_BACKEND_CC};
	float right[N] = {0};
	char *shown = ricci_show(y);

	CHECK_REPORT(shown && strlen(shown) < 40000, "%s: %zu bytes", f->name,
		     shown ? strlen(shown) : 0);
	ricci_free_text(shown);
	run(f, g, x, y, RICCI_BACKEND_INTERP, right);
	for (int k = 0; k < COUNT(others); k++) {
		float out[N] = {0};
		run(f, g, x, y, others[k], out);
		for (int i = 0; i < N; i++)
			CHECK_REPORT(fabsf(out[i] - right[i]) <= 1e-3f * (1 + fabsf(right[i])),
				     "%s: %g, not %g", f->name, out[i], right[i]);
	}
}

static void test_family(const Family *f)
{
	Text program = {0};
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x[OPERANDS], *y = NULL, *dx = NULL;
	int nout = 1;

	write_program(f, &program);
	x[0] = ricci_input(g, "X", RICCI_F32, 1, (int64_t[]){N});
	x[1] = ricci_input(g, "Z", RICCI_F32, 1, (int64_t[]){N});
	CHECK_INT(ricci_ops(g, program.s, OPERANDS, x, &nout, &y), 0);
	CHECK_GRAPH(g);
	agree(f, g, x, y);
	if (f->grad) {
		CHECK_INT(ricci_grad(g, ricci_op(g, "L[] += Y[i]", y), NULL, 1, x, &dx), 0);
		CHECK_GRAPH(g);
		agree(f, g, x, dx);
	}
	ricci_graph_free(g);
	text_free(&program);
}

/* ---- little stack ---- */

/* A chain of n calls, and its gradient; NULL, or why it is refused. */
static const char *chain(int n)
{
	static char why[300];
	Text t = {0};
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "X", RICCI_F32, 1, (int64_t[]){N}), *dx = NULL;

	text_add(&t, "v0 = X[i]; ");
	for (int k = 0; k < n; k++)
		text_add(&t, "v%d = sin(v%d); ", k + 1, k);
	text_add(&t, "Y[] += v%d", n);
	ricci_grad(g, ricci_op(g, t.s, x), NULL, 1, &x, &dx);
	ricci_session *s =
		ricci_session_new(g, &RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC), 0, 1, &dx);
	bool ran = s && ricci_feed(s, x, data[0], sizeof data[0]) == 0 && ricci_step(s) == 0;
	snprintf(why, sizeof why, "%s", ricci_error_message());
	ricci_session_free(s);
	ricci_graph_free(g);
	text_free(&t);
	return ran ? NULL : why;
}

static void *on_little_stack(void *unused)
{
	const char *why = chain(20);

	CHECK_REPORT(!why, "%s", why);
	for (int n = 200; n < 4000; n *= 2) {
		why = chain(n);
		CHECK_REPORT(why && strstr(why, "this thread's stack has room"), "%s", why);
	}
	return unused;
}

static void test_little_stack(void)
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	CHECK_INT(pthread_attr_setstacksize(&a, 256 << 10), 0);
	CHECK_INT(pthread_create(&t, &a, on_little_stack, NULL), 0);
	pthread_join(t, NULL);
	pthread_attr_destroy(&a);
}

int main(int argc, char **argv)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	if (argc < 2) /* sanitizers' frames are larger */
		test_little_stack();
#endif
	for (int k = 0; k < COUNT(families); k++)
		if (argc < 2 || !strcmp(argv[1], families[k].name))
			test_family(&families[k]);
	return check_done();
}

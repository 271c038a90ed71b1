/* test_training.c - `training` in texts: 1 in training sessions, 0 in others, folded when a session
 * is made, in loops, in gradients and in what is assigned, too. */
#include "core/core.h"
#include "runtime/session.h"
#include "tests/check.h"

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})
enum { N = 6 };

typedef struct Net {
	ricci_graph *g;
	ricci_tensor *x, *w, *only; /* only: an input that training alone reads */
	ricci_session *train, *eval;
} Net;

static Net net_new(void)
{
	Net n = {.g = ricci_graph_new()};
	n.x = ricci_input(n.g, "x", RICCI_F32, 1, SHAPE(N));
	n.only = ricci_input(n.g, "only", RICCI_F32, 1, SHAPE(N));
	n.w = ricci_param(n.g, "w", RICCI_F32, 1, SHAPE(N), ricci_constant(2));
	return n;
}

/* Opens both sessions over y, feeds them and makes a step of each, evaluation first. */
static void net_open(Net *n, int noutput, ricci_tensor *const *y)
{
	ricci_options o = RICCI_OPTIONS(.backend = RICCI_BACKEND_INTERP, .threads = 1);
	float x[N] = {1, 2, 3, 4, 5, 6}, only[N] = {10, 20, 30, 40, 50, 60};
	CHECK_GRAPH(n->g);
	n->train = ricci_session_new(n->g, &o, 1, noutput, y);
	CHECK(n->train != NULL);
	n->eval = ricci_session_share(n->train, 0, noutput, y);
	CHECK(n->eval != NULL);
	CHECK_INT(ricci_feed(n->train, n->x, x, sizeof x), 0);
	CHECK_INT(ricci_feed(n->train, n->only, only, sizeof only), 0);
	CHECK_INT(ricci_feed(n->eval, n->x, x, sizeof x), 0);
	if (ricci_step(n->eval) || ricci_step(n->train))
		CHECK_REPORT(false, "%s", ricci_error_message());
}

static void check_values(ricci_session *s, const ricci_tensor *t, const float *want, int n)
{
	float got[N * N];
	CHECK_INT(ricci_fetch(s, t, got, (size_t)n * sizeof *got), 0);
	for (int i = 0; i < n; i++)
		CHECK_NEAR(got[i], want[i], 1e-5);
}

static void net_free(Net *n)
{
	ricci_session_free(n->train);
	ricci_session_free(n->eval);
	ricci_graph_free(n->g);
}

/* As condition, number, in both kinds of logic, in a reduction and an assigned value. */
static void test_values(void)
{
	Net n = net_new();
	ricci_tensor *y[5];

	y[0] = ricci_op(n.g, "Y[i] = training ? X[i]*O[i] : X[i]", n.x, n.only);
	y[1] = ricci_op(n.g, "Y[i] = X[i]*training + 0.5*(1 - training)", n.x);
	y[2] = ricci_op(n.g, "Y[i] += training && j < 2 ? X[j] : 1.0 where i < 6, j < 6", n.x);
	y[3] = ricci_op(n.g, "Y[i] = !training || X[i] > 3 ? 1.0 : 0.0", n.x);
	y[4] = ricci_op(n.g, "t = 3*training - 1; Y[i] = X[i]/(t + 0.5)", n.x);
	ricci_assign(n.g, n.w, ricci_op(n.g, "V[i] = W[i] + (training ? X[i] : 100)", n.w, n.x));
	net_open(&n, 5, y);
	check_values(n.eval, y[0], (float[]){1, 2, 3, 4, 5, 6}, N);
	check_values(n.train, y[0], (float[]){10, 40, 90, 160, 250, 360}, N);
	check_values(n.eval, y[1], (float[]){.5, .5, .5, .5, .5, .5}, N);
	check_values(n.train, y[1], (float[]){1, 2, 3, 4, 5, 6}, N);
	check_values(n.eval, y[2], (float[]){6, 6, 6, 6, 6, 6}, N);
	check_values(n.train, y[2], (float[]){7, 7, 7, 7, 7, 7}, N);
	check_values(n.eval, y[3], (float[]){1, 1, 1, 1, 1, 1}, N);
	check_values(n.train, y[3], (float[]){0, 0, 0, 1, 1, 1}, N);
	check_values(n.eval, y[4], (float[]){-2, -4, -6, -8, -10, -12}, N);
	check_values(n.train, y[4], (float[]){.4f, .8f, 1.2f, 1.6f, 2, 2.4f}, N);
	check_values(n.train, n.w, (float[]){3, 4, 5, 6, 7, 8}, N);
	check_values(n.eval, n.w, (float[]){3, 4, 5, 6, 7, 8}, N);
	net_free(&n);
}

/* In indices both numbers have to stay inside; in gradients, too. */
static void test_indices(void)
{
	Net n = net_new();
	ricci_tensor *y[4] = {ricci_op(n.g, "Y[i] = X[2*i+training] where i < 3", n.x),
			      ricci_op(n.g, "Y[i] = X[training ? 5-i : 0] where i < 6", n.x),
			      ricci_op(n.g, "Y[2*training+1:4] += X[i]", n.x)};
	ricci_tensor *loss = ricci_op(n.g, "L[] += W[2*i+training]*X[i] where i < 3", n.w, n.x);
	ricci_grad(n.g, loss, NULL, 1, &n.w, &y[3]);
	ricci_assign(n.g, n.w, n.w);
	net_open(&n, 4, y);
	check_values(n.eval, y[0], (float[]){1, 3, 5}, 3);
	check_values(n.train, y[0], (float[]){2, 4, 6}, 3);
	check_values(n.eval, y[1], (float[]){1, 1, 1, 1, 1, 1}, 6);
	check_values(n.train, y[1], (float[]){6, 5, 4, 3, 2, 1}, 6);
	check_values(n.eval, y[2], (float[]){0, 21, 0, 0}, 4);
	check_values(n.train, y[2], (float[]){0, 0, 0, 21}, 4);
	check_values(n.eval, y[3], (float[]){1, 0, 2, 0, 3, 0}, 6);
	check_values(n.train, y[3], (float[]){0, 1, 0, 2, 0, 3}, 6);
	net_free(&n);
}

/* dX of sum(Y^2), Y = training ? 3 X : X, by an equation and within a loop. */
static void test_gradients(void)
{
	Net n = net_new();
	ricci_tensor *loss =
		ricci_op(n.g, "Y[i] = training ? 3*W[i] : W[i]*X[i]; L[] += Y[i]*Y[i]", n.w, n.x);
	ricci_tensor *dw, *y[2];
	ricci_grad(n.g, loss, NULL, 1, &n.w, &dw);
	ricci_assign(n.g, n.w, n.w);
	y[0] = loss;
	y[1] = dw;
	net_open(&n, 2, y);
	check_values(n.eval, loss, (float[]){4 * 91}, 1);
	check_values(n.train, loss, (float[]){6 * 36}, 1);
	check_values(n.eval, dw, (float[]){4, 16, 36, 64, 100, 144}, N);
	check_values(n.train, dw, (float[]){36, 36, 36, 36, 36, 36}, N);
	net_free(&n);
}

/* A state that grows by X (evaluation) or is doubled (training) in 3 steps; stacked, and its
 * gradient. */
static void test_loop(void)
{
	Net n = net_new();
	ricci_tensor *v = ricci_input(n.g, "v", RICCI_F32, 1, SHAPE(N)), *last, *rows, *y[3];
	ricci_tensor *next = ricci_op(n.g, "Z[i] = training ? 2*V[i] : V[i] + X[i]", v, n.x);
	ricci_carry carry = {v, n.w, next};
	CHECK_INT(ricci_scan(n.g,
			     &RICCI_LOOP(.steps = 3, .ncarry = 1, .carry = &carry, .nout = 1,
					 .out = &next),
			     &last, &rows),
		  0);
	ricci_tensor *loss = ricci_op(n.g, "L[] += A[i]*A[i]", last);
	y[0] = last;
	y[1] = rows;
	ricci_grad(n.g, loss, NULL, 1, &n.w, &y[2]);
	ricci_assign(n.g, n.w, n.w);
	net_open(&n, 3, y);
	check_values(n.eval, last, (float[]){5, 8, 11, 14, 17, 20}, N);
	check_values(n.train, last, (float[]){16, 16, 16, 16, 16, 16}, N);
	check_values(n.eval, rows,
		     (float[]){3, 4, 5, 6, 7, 8, 4, 6, 8, 10, 12, 14, 5, 8, 11, 14, 17, 20}, 18);
	check_values(n.train, rows,
		     (float[]){4, 4, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 16, 16, 16, 16, 16, 16}, 18);
	check_values(n.eval, y[2], (float[]){10, 16, 22, 28, 34, 40}, N);
	check_values(n.train, y[2], (float[]){256, 256, 256, 256, 256, 256}, N);
	net_free(&n);
}

/* A gradient of the user's own may depend on it, and be over what does. */
static void test_custom(void)
{
	Net n = net_new();
	ricci_tensor *a = ricci_op(n.g, "A[i] = training ? W[i] : W[i]*X[i]", n.w, n.x);
	ricci_tensor *y = ricci_op_custom(n.g, "Y[i] = A[i] + training",
					  "dA[i] = training ? 7*dY[i] : A[i]*dY[i]", a);
	ricci_tensor *loss = ricci_op(n.g, "L[] += Y[i]", y), *out[2] = {y};
	ricci_grad(n.g, loss, NULL, 1, &n.w, &out[1]);
	ricci_assign(n.g, n.w, n.w);
	net_open(&n, 2, out);
	check_values(n.eval, y, (float[]){2, 4, 6, 8, 10, 12}, N);
	check_values(n.train, y, (float[]){3, 3, 3, 3, 3, 3}, N);
	check_values(n.eval, out[1], (float[]){2, 8, 18, 32, 50, 72}, N);
	check_values(n.train, out[1], (float[]){7, 7, 7, 7, 7, 7}, N);
	net_free(&n);
}

static int lines_of(ricci_session *s)
{
	CacheEntry *entry[64];
	return session_entries(s, entry, 64);
}

/* Evaluation has no kernel of what training alone computes: dropout and batch statistics. */
static void test_cost(void)
{
	static const char *const texts[2] = {
		"D[i] = training ? (random(3) < 0.5 ? 0 : 2*X[i]) : X[i]; M[] += D[i];"
		"V[] += (D[i] - M[]/6)*(D[i] - M[]/6); Y[i] = training ? (D[i] - M[]/6)"
		"*rsqrt(V[]/6) : (D[i] - W[0])*W[1]",
		"Y[i] = (X[i] - W[0])*W[1]"};
	int entries[2], taught = 0;
	for (int k = 0; k < 2; k++) {
		Net n = net_new();
		ricci_tensor *y = ricci_op(n.g, texts[k], n.x, n.w);
		ricci_assign(n.g, n.w, ricci_op(n.g, "V[i] = Y[i] + O[i]", y, n.only));
		net_open(&n, 1, &y);
		entries[k] = lines_of(n.eval);
		if (!k)
			taught = lines_of(n.train);
		check_values(n.eval, y, (float[]){-2, 0, 2, 4, 6, 8}, N);
		net_free(&n);
	}
	CHECK_INT(entries[0], entries[1]);
	CHECK(taught > entries[0]);
}

/* What is shown is the graph, whatever sessions it has. */
static void test_shown(void)
{
	Net n = net_new();
	ricci_tensor *y = ricci_op(n.g, "Y[i] = training ? 2*X[i] : training*X[i]", n.x);
	char *text = ricci_show(y);
	CHECK_STR(text, "Y[i] = training != 0 ? 2*x[i] : f32(training)*x[i];\n");
	CHECK(ricci_op(n.g, text, n.x) == y);
	ricci_assign(n.g, n.w, y);
	net_open(&n, 1, &y);
	char *after = ricci_show(y);
	CHECK_STR(after, text);
	ricci_free_text(text);
	ricci_free_text(after);
	double out[N];
	float x[N] = {0};
	Error e = {0};
	CHECK_INT(interp_tensor(y->node, 1, &(Binding){n.x->node, x}, (RandomState){0}, out, NULL,
				&e),
		  RICCI_EINVAL);
	CHECK_STR(e.text, "an equation depends on training, which sessions alone know");
	net_free(&n);
}

static void refused(const char *text, const char *message)
{
	Net n = net_new();
	ricci_op(n.g, text, n.x);
	CHECK_INT(ricci_graph_error(n.g) < 0, 1);
	CHECK_STR(ricci_error_message(), message);
	ricci_graph_free(n.g);
}

static void test_refused(void)
{
	refused("Y[i] = X[i+training]",
		"equation: the range of i can't be inferred: how far index i+training stays inside "
		"dimension 0 isn't proved; write where i < ..\n"
		"  Y[i] = X[i+training]\n"
		"           ^");
	refused("Y[i] = X[i+training] where i < 6", "equation: index i+training of X leaves "
						    "dimension 0: it runs from 0 to 6, the extent "
						    "is 6\n"
						    "  Y[i] = X[i+training] where i < 6\n"
						    "           ^");
	refused("Y[i] = X[i] where i < 3+training",
		"equation: a range can't depend on training: write a condition, training && i < n "
		"? .. : ..\n"
		"  Y[i] = X[i] where i < 3+training\n"
		"                          ^");
	refused("training[i] = X[i]", "equation: expected the name of a tensor, found 'training'\n"
				      "  training[i] = X[i]\n"
				      "  ^");
}

int main(void)
{
	test_values();
	test_indices();
	test_gradients();
	test_loop();
	test_custom();
	test_cost();
	test_shown();
	test_refused();
	return check_done();
}

/* test_finite.c - check_finite: which kernel makes the first NaN or infinity, with what message; what
 * it leaves alone: rightful infinities, states of a step that failed, results. */
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/memory_check.h"
#include <stdlib.h>

enum { N = 6 };

static ricci_options options(int check)
{
	return RICCI_OPTIONS(.threads = 1, .static_mode = 1, .backend = RICCI_BACKEND_TCC,
			     .check_finite = check);
}

static ricci_session *session(ricci_graph *g, int check, int train, ricci_tensor *out)
{
	ricci_options o = options(check);
	ricci_session *s;

	CHECK_GRAPH(g);
	s = ricci_session_new(g, &o, train, 1, &out);
	CHECK_REPORT(s, "%s", ricci_error_message());
	return s;
}

/* One equation of x. */
static void check_says(const char *text, const float x[N], const char *message)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *t = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){2, N / 2});
	ricci_session *s = session(g, 1, 0, ricci_op(g, text, t));

	if (s) {
		ricci_feed(s, t, x, ricci_bytes(t));
		ricci_set_step(s, 12);
		CHECK_INT(ricci_step(s), message ? RICCI_EVALUE : 0);
		if (message)
			CHECK_STR(ricci_error_message(), message);
		CHECK_INT((int64_t)ricci_step_count(s), message ? 12 : 13);
		CHECK_INT(ricci_check_finite(s, 0), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_check_finite(s, 1), 0);
		CHECK_INT(ricci_check_finite(s, 1), 0);
		CHECK_INT(ricci_step(s), message ? RICCI_EVALUE : 0);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

static void test_messages(void)
{
	static const float good[N] = {1, 2, 0.5, 4, 3, 9}, zero[N] = {1, 2, 8, 4, 0, 9};
	static const float large[N] = {1, 2, 8, 4, 3e38f, 9}, negative[N] = {1, 2, 3, -1, 5, 6};
	static const float nan[N] = {1, 2, 3, 4, NAN, 6}, infinite[N] = {1, 2, 3, INFINITY, 1, 2};

	check_says("Y[i,j] = log(X[i,j])", good, NULL);
	check_says("Y[i,j] = log(X[i,j])", zero,
		   "step 12: 'T1' becomes infinite at [1,1], though all that it is computed from "
		   "is finite\nT1[i,j] = log(x[i,j])\nx is 0..9");
	check_says("Y[i,j] = sqrt(X[i,j])", negative,
		   "step 12: 'T1' becomes NaN at [1,0], though all that it is computed from is "
		   "finite\nT1[i,j] = sqrt(x[i,j])\nx is -1..6");
	check_says("S[i] += X[i,j]; Y[i,j] = X[i,j]*X[i,j]/S[i]", large,
		   "step 12: 'T2' becomes infinite at [1,1], though all that it is computed from "
		   "is finite\nT2[i,j] = x[i,j]*x[i,j]/T1[i]\nx is 1..3e+38\nT1 is 11..3e+38");
	/* The equations of the whole kernel. */
	check_says("S[i] += X[i,j]; Y[i] = log(S[i] - 3.5)", good,
		   "step 12: 'T2' becomes infinite at [0], though all that it is computed from is "
		   "finite\nT1[i] += x[i,j]\nT2[i] = log(T1[i] + -3.5)\nx is 0.5..9");
	check_says("Y[i] += X[i,j]", nan, "step 12: 'x' is NaN at [1,1] before the step");
	check_says("Y[i] max= X[i,j] > 0.0 && X[i,j] < 10.0 ? X[i,j] : 0.0", nan, NULL);
	/* Infinities are infinite rightly where they are read, or written in the equation. */
	check_says("Y[i] += X[i,j]", infinite, NULL);
	check_says("Y[i,j] = X[i,j] < 3.0 ? X[i,j] : -inf", good, NULL);
	check_says(
		"Y[i,j] = (X[i,j] < 3.0 ? X[i,j] : -inf) * 0.0", good,
		"step 12: 'T1' becomes NaN at [1,0], though all that it is computed from holds "
		"no NaN, only infinities\nT1[i,j] = 0*(x[i,j] < 3 ? x[i,j] : -inf)\nx is 0.5..9");
	check_says("Y[i,j] = X[i,j] - X[i,j]", infinite,
		   "step 12: 'T1' becomes NaN at [1,0], though all that it is computed from holds "
		   "no NaN, only infinities\nT1[i,j] = x[i,j] - x[i,j]\nx is 1..3 and infinities");
}

/* Types: bf16, f16, f64. */
static void test_types(void)
{
	static const ricci_type type[] = {RICCI_F64, RICCI_BF16, RICCI_F16};

	for (int i = 0; i < COUNT(type); i++) {
		ricci_graph *g = ricci_graph_new();
		ricci_tensor *x =
			ricci_state(g, "x", type[i], 1, (int64_t[]){40}, ricci_constant(-1));
		ricci_tensor *y = ricci_op(g, "Y[i] = sqrt(X[i] + (i < 37 ? 1.0 : 0.5))", x);
		ricci_session *s = session(g, 1, 0, y);

		CHECK_INT(ricci_step(s), RICCI_EVALUE);
		CHECK(strstr(ricci_error_message(), "step 0: 'T1' becomes NaN at [37]"));
		CHECK(strstr(ricci_error_message(), "x is -1..-1"));
		ricci_session_free(s);
		ricci_graph_free(g);
	}
}

typedef struct Net {
	ricci_graph *g;
	ricci_tensor *w, *x, *loss;
} Net;

/* w is updated in place where nobody looks. */
static Net net_new(void)
{
	Net n = {.g = ricci_graph_new()};
	ricci_tensor *d;

	n.x = ricci_input(n.g, "x", RICCI_F32, 1, (int64_t[]){N});
	n.w = ricci_param(n.g, "w", RICCI_F32, 1, (int64_t[]){N}, ricci_normal(1));
	n.loss = ricci_op(n.g, "p[i] = W[i]*X[i]; L[] += p[i]*p[i]", n.w, n.x);
	ricci_grad(n.g, n.loss, NULL, 1, &n.w, &d);
	ricci_assign(n.g, n.w, ricci_op(n.g, "N[i] = W[i] - 0.01*D[i]", n.w, d));
	return n;
}

static void test_states(void)
{
	static const float good[N] = {1, 2, 3, 4, 5, 6}, bad[N] = {1, 1e30f, 3, 4, 5, 6};
	Net n = net_new();
	ricci_session *s = session(n.g, 0, 1, n.loss), *plain = session(n.g, 0, 1, n.loss);
	float w[N], before[N], want[N];

	CHECK_INT(ricci_check_finite(NULL, 1), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "ricci_check_finite: the session is NULL");
	ricci_feed(s, n.x, good, sizeof good);
	ricci_feed(plain, n.x, good, sizeof good);
	for (int i = 0; i < 12; i++) { /* on and off and on: the same bits */
		CHECK_INT(ricci_check_finite(s, i / 3 % 2), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_step(plain), 0);
		ricci_fetch(s, n.w, w, sizeof w);
		ricci_fetch(plain, n.w, want, sizeof want);
		CHECK(!memcmp(w, want, sizeof w));
	}
	CHECK_INT(ricci_check_finite(s, 1), 0);
	ricci_fetch(s, n.w, before, sizeof before);
	ricci_feed(s, n.x, bad, sizeof bad);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(ricci_step(s), RICCI_EVALUE);
		CHECK(strstr(ricci_error_message(), "step 12: '"));
		CHECK(strstr(ricci_error_message(), "\nx is 1..1e+30"));
		CHECK_INT((int64_t)ricci_step_count(s), 12);
		ricci_fetch(s, n.w, w, sizeof w);
		CHECK(!memcmp(w, before, sizeof w));
	}
	ricci_feed(s, n.x, good, sizeof good);
	CHECK_INT(ricci_step(s), 0);
	CHECK_INT(ricci_step(plain), 0);
	ricci_fetch(s, n.w, w, sizeof w);
	ricci_fetch(plain, n.w, want, sizeof want);
	CHECK(!memcmp(w, want, sizeof w));
	ricci_session_free(plain);
	ricci_session_free(s);
	ricci_graph_free(n.g);
}

/* h(t+1) = h(t)/(x(t) - 3): the iteration of a loop, whose state is written in place. */
static void test_loop(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){N, 2});
	ricci_tensor *xt = ricci_input(g, "xt", RICCI_F32, 1, (int64_t[]){2});
	ricci_tensor *h = ricci_input(g, "h", RICCI_F32, 1, (int64_t[]){2}), *last;
	ricci_tensor *h0 = ricci_state(g, "h0", RICCI_F32, 1, (int64_t[]){2}, ricci_constant(2));
	ricci_tensor *next = ricci_op(g, "Y[i] = H[i]/(X[i] - 3.0)", h, xt);
	ricci_loop loop = RICCI_LOOP(.steps = N, .nslice = 1, .slice = &(ricci_slice){xt, x},
				     .ncarry = 1, .carry = &(ricci_carry){h, h0, next});
	float data[2 * N];

	ricci_scan(g, &loop, &last, NULL);
	ricci_session *s = session(g, 1, 0, last);
	for (int i = 0; i < 2 * N; i++)
		data[i] = i == 2 * 4 + 1 ? 3 : 5;
	ricci_feed(s, x, data, sizeof data);
	CHECK_INT(ricci_step(s), RICCI_EVALUE);
	CHECK_STR(ricci_error_message(),
		  "step 0, iteration 4: 'T1' becomes infinite at [1], though all that it is "
		  "computed from is finite\nT1[i] = h0(t)[i]/(x(t)[i] + -3)\nx(t) is 3..5\n"
		  "h0(t) is 0.125..0.125");
	data[9] = 5;
	ricci_feed(s, x, data, sizeof data);
	CHECK_INT(ricci_step(s), 0);
	ricci_session_free(s);
	ricci_graph_free(g);
}

static Net memory_net;
static ricci_session *memory_session;

static int look(void)
{
	int code = ricci_check_finite(memory_session, 1);

	if (!code)
		code = ricci_step(memory_session);
	ricci_check_finite(memory_session, 0);
	return code == RICCI_EVALUE ? 0 : code ? code : RICCI_EINTERNAL;
}

static void test_memory(void)
{
	static const float bad[N] = {1, 1e30f, 3, 4, 5, 6};

	memory_net = net_new();
	memory_session = session(memory_net.g, 0, 1, memory_net.loss);
	ricci_feed(memory_session, memory_net.x, bad, sizeof bad);
	look(); /* the next value's memory stays */
	check_memory(look);
	ricci_session_free(memory_session);
	ricci_graph_free(memory_net.g);
}

/* By the environment, for every session. */
static void test_variable(void)
{
	static const float bad[N] = {1, 1e30f, 3, 4, 5, 6};
	Net n = net_new();

	setenv("RICCI_CHECK", "nan", 1);
	ricci_session *s = session(n.g, 0, 0, n.loss);
	unsetenv("RICCI_CHECK");
	ricci_session *t = ricci_session_share(s, 0, 1, &n.loss);
	ricci_feed(s, n.x, bad, sizeof bad);
	ricci_feed(t, n.x, bad, sizeof bad);
	CHECK_INT(ricci_step(s), RICCI_EVALUE);
	CHECK_INT(ricci_step(t), RICCI_EVALUE);
	ricci_session_free(s);
	ricci_session_free(t);
	ricci_graph_free(n.g);
}

int main(void)
{
	test_messages();
	test_types();
	test_states();
	test_loop();
	test_memory();
	test_variable();
	return check_done();
}

/* test_scan_rules.c - what holds of gradients of loops beside their values: gradients of the user's
 * own in bodies, random numbers, regions that are computed again, what is kept of the steps, wrong
 * lengths, leaks of variables, sums of 16 bits, and PyTorch's gradients of an LSTM. */
#include "tests/autodiff/loops.h"

/* A gradient of the user's own in a loop's body, false so that it shows, and one in whose place
 * folding left nothing of an operand: by steps and in regions, and by forward mode. */
static void test_custom(Way w, bool region)
{
	Case c = {.g = ricci_graph_new()};
	ricci_graph *g = c.g;
	ricci_tensor *x = input(&c, "x", 2, SHAPE(4, 3), 0), *k = input(&c, "k", 1, SHAPE(3), 0);
	ricci_tensor *xt = variable(&c, "xt", 1, SHAPE(3)), *y, *s, *grad[2], *tangent;
	double got[12], want[12] = {0};
	y = ricci_op_custom(g, "Y[i] = X[i]*W[i] + 0*V[i]",
			    "dX[i] = 2*dY[i]*W[i]; dW[i] = 5*dY[i]*X[i]", xt, k,
			    ricci_op(g, "E[i] = exp(X[i])", xt));
	if (region)
		CHECK_INT(ricci_recompute(g, 2, (ricci_tensor *[]){xt, k}, 1, &y, &y), 0);
	ricci_loop l =
		RICCI_LOOP(.steps = 4, .nslice = 1, .slice = &(ricci_slice){xt, x}, .nout = 1,
			   .out = &y, .recompute = w.recompute, .segment = w.segment);
	CHECK_INT(ricci_scan(g, &l, NULL, &s), 0);
	ricci_tensor *loss = ricci_op(g, "L[] += S[t,i]*f64(t + 1)", s);
	CHECK_INT(ricci_grad(g, loss, NULL, 2, c.wrt, grad), 0);
	CHECK_INT(ricci_jvp(g, loss, 1, &k, &k, &tangent), 0);
	if (values(&c, grad[0], got))
		for (int i = 0; i < 12; i++)
			CHECK_NEAR(got[i], 2 * (i / 3 + 1) * c.value[1][i % 3], 1e-12);
	for (int i = 0; i < 12; i++) {
		want[i % 3] += 5 * (i / 3 + 1) * c.value[0][i];
		want[3] += 5 * (i / 3 + 1) * c.value[0][i] * c.value[1][i % 3];
	}
	if (values(&c, grad[1], got))
		for (int i = 0; i < 3; i++)
			CHECK_NEAR(got[i], want[i], 1e-12);
	if (values(&c, tangent, got))
		CHECK_NEAR(got[0], want[3], 1e-12);
	ricci_graph_free(g);
}

/* Dropout in a body: steps draw numbers of their own, and the backward pass the same again. A
 * region draws what its equations draw without it. */
static void test_draws(Way w)
{
	Case c = {.g = ricci_graph_new()};
	ricci_graph *g = c.g;
	ricci_tensor *x = input(&c, "x", 2, SHAPE(4, 8), 2), *xt = variable(&c, "xt", 1, SHAPE(8));
	const char *text = "Y[i] = X[i]*(random(7) < 0.5 ? 2.0 : 0.0)";
	ricci_tensor *y = ricci_op(g, text, xt), *s, *grad, *z, *again;
	double value[32], slope[32];
	int zeros = 0, same = 0;
	if (w.segment)
		ricci_recompute(g, 1, &xt, 1, &y, &y);
	ricci_loop l =
		RICCI_LOOP(.steps = 4, .nslice = 1, .slice = &(ricci_slice){xt, x}, .nout = 1,
			   .out = &y, .recompute = w.recompute, .segment = w.segment);
	CHECK_INT(ricci_scan(g, &l, NULL, &s), 0);
	CHECK_INT(ricci_grad(g, ricci_op(g, "L[] += S[t,i]", s), NULL, 1, &x, &grad), 0);
	if (values(&c, s, value) && values(&c, grad, slope))
		for (int i = 0; i < 32; i++) {
			CHECK_NEAR(slope[i], value[i] / c.value[0][i], 1e-14);
			zeros += value[i] == 0;
			same += (value[i] == 0) == (value[i % 8] == 0);
		}
	CHECK(zeros > 4 && zeros < 28 && same < 28);
	z = ricci_op(g, "Z[t,i] = X[t,i]*f64(random(3))", x);
	CHECK_INT(ricci_recompute(g, 1, &x, 1, &z, &again), 0);
	agree(&c, z, again, 0);
	ricci_graph_free(g);
}

/* A region has the gradients, and their gradients, that its equations have without it; its tensors
 * are computed in a loop of their own in the backward pass. */
static void test_region(void)
{
	Case c = {.g = ricci_graph_new()};
	ricci_graph *g = c.g;
	ricci_tensor *x = input(&c, "x", 2, SHAPE(3, 4), 0), *w = input(&c, "w", 2, SHAPE(4, 5), 0);
	ricci_tensor *in[] = {x, w}, *y[2], *r[2], *loss[2], *grad[2][2], *more[2][2], *mix, *t[2];
	int n = 2;
	ricci_ops(g,
		  "A[i,j] += X[i,k]*W[k,j]; B[i,j] = tanh(A[i,j]); Y[i] += B[i,j]*B[i,j];"
		  "Z[j] max= B[i,j]",
		  2, in, &n, y);
	CHECK_INT(ricci_recompute(g, 2, in, 2, y, r), 0);
	for (int k = 0; k < 2; k++) {
		ricci_tensor **from = k ? r : y;
		loss[k] = ricci_op(g, "L[] += Y[i]*Y[i]*Z[j]", from[0], from[1]);
		CHECK_INT(ricci_grad(g, loss[k], NULL, 2, c.wrt, grad[k]), 0);
		mix = mixture(&c, 2, grad[k]);
		CHECK_INT(ricci_grad(g, mix, NULL, 2, c.wrt, more[k]), 0);
		CHECK_INT(ricci_jvp(g, mix, 2, c.wrt, c.wrt, &t[k]), 0);
	}
	agree(&c, loss[0], loss[1], 1e-14);
	agree(&c, t[0], t[1], 1e-10);
	for (int k = 0; k < 2; k++) {
		agree(&c, grad[0][k], grad[1][k], 1e-12);
		agree(&c, more[0][k], more[1][k], 1e-10);
	}
	/* two loops: the region and its gradient, which has the sum A in its body */
	char *text = ricci_show(grad[1][1]), *at = strstr(text, "recompute");
	CHECK(at && (at = strstr(at + 1, "recompute")) && !strstr(at + 1, "recompute"));
	CHECK(at && strstr(at, "tanh"));
	ricci_free_text(text);
	ricci_graph_free(g);
}

static int count(const char *text, const char *what)
{
	int n = 0;
	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

/* What is kept of a step is the least that spares its sums: of two sums the one tensor that is made
 * of both; what is stacked anyway for nothing; and without sums nothing. */
static void test_kept(void)
{
	static const struct {
		const char *text;
		int stacks; /* of the forward loop: states and what is kept */
	} cases[] = {
		{"A[i] += W[i,j]*H[j]; B[i] += W[j,i]*H[j]; Z[i] = A[i] + B[i]; N[i] = sin(Z[i])",
		 2},
		{"A[i] += W[i,j]*H[j]; N[i] = A[i]", 1},
		{"A[i] += W[i,j]*H[j]; N[i] = tanh(A[i])", 2},
		{"A[i] = W[i,i]*H[i]; N[i] = sin(A[i])", 1},
	};
	for (int k = 0; k < COUNT(cases); k++)
		for (int stacked = 0; stacked < 2; stacked++) {
			Case c = {.g = ricci_graph_new()};
			ricci_graph *g = c.g;
			ricci_tensor *h0 = input(&c, "h0", 1, SHAPE(4), 0), *last, *all;
			ricci_tensor *w = input(&c, "w", 2, SHAPE(4, 4), 0);
			ricci_tensor *h = variable(&c, "h", 1, SHAPE(4)), *grad[2];
			ricci_tensor *next = ricci_op(g, cases[k].text, w, h);
			ricci_loop l = RICCI_LOOP(.steps = 5, .ncarry = 1,
						  .carry = &(ricci_carry){h, h0, next},
						  .nout = stacked, .out = &next);
			CHECK_INT(ricci_scan(g, &l, &last, &all), 0);
			ricci_tensor *loss = ricci_op(g, stacked ? "L[] += S[t,i]" : "L[] += S[i]",
						      stacked ? all : last);
			CHECK_INT(ricci_grad(g, loss, NULL, 2, c.wrt, grad), 0);
			char *text = ricci_show(grad[1]);
			CHECK_INT(count(text, "stack"), cases[k].stacks);
			CHECK_INT(count(text, "tanh"), k == 2);
			CHECK_INT(count(text, "sin("), k == 0 || k == 3);
			ricci_free_text(text);
			ricci_graph_free(g);
		}
}

/* A length that can't be is said as it was given, not in segments. */
static void test_segment_length(void)
{
	const int64_t wrong[] = {-1, INT64_MIN, 6, 1000, INT64_MAX};
	for (int k = 0; k < COUNT(wrong); k++) {
		int64_t length = wrong[k];
		char text[200];
		Case c;
		ricci_tensor *loss[2];
		Error err = {0};
		double out[ROOM];
		make(&c, 0, (Way){3, 0, 0, 2});
		memcpy(c.value[c.n - 1], &length, sizeof length);
		build(&c, loss);
		CHECK_INT(interp_tensor(loss[0]->node, c.n, c.bind, (RandomState){1, 1}, out, NULL,
					&err),
			  RICCI_EVALUE);
		snprintf(text, sizeof text,
			 "a loop of at most 5 steps was given the length %lld; it must be in 0..5",
			 (long long)length);
		CHECK_STR(err.text, text);
		ricci_graph_free(c.g);
	}
}

/* A variable outside of its loop has no data. */
static void test_leak(void)
{
	Case c;
	ricci_tensor *loss[2];
	make(&c, 1, (Way){-1, 0, 0, 0});
	build(&c, loss);
	ricci_tensor *y = ricci_op(c.g, "Y[] += P[i]*L[]", c.carry[0].variable, loss[0]);
	ricci_options options = RICCI_OPTIONS(.backend = RICCI_BACKEND_INTERP);
	CHECK(!ricci_session_new(c.g, &options, 0, 1, &y));
	CHECK_STR(ricci_error_message(),
		  "the graph reads 'p', which has no data (a loop's variable has none outside "
		  "of its loop)");
	ricci_graph_free(c.g);
}

/* A weight's gradient of 16 bits is added up in f32 over the steps, and rounded once: 1000 times 1
 * is not 256, where bf16 would stop. Of single numbers, and of sums that leave the loop. */
static void test_short(const char *text, int64_t columns, double want)
{
	enum { STEPS = 1000 };
	Case c = {.g = ricci_graph_new()};
	ricci_graph *g = c.g;
	static float x[STEPS * 64], s0[1];
	uint16_t w[64], got[64];
	Error err = {0};
	Evaluation e = {
		.backend = backend_find("tcc"), .threads = 1, .seed = 1, .step = 1, .repeat = 1};
	ricci_tensor *xs = ricci_input(g, "x", RICCI_F32, 2, SHAPE(STEPS, columns)), *final, *grad;
	ricci_tensor *wt = ricci_input(g, "w", RICCI_BF16, 1, &columns);
	ricci_tensor *start = ricci_input(g, "s0", RICCI_F32, 0, NULL);
	ricci_tensor *xt = ricci_input(g, "xt", RICCI_F32, 1, &columns);
	ricci_tensor *s = ricci_input(g, "s", RICCI_F32, 0, NULL);
	ricci_loop l = RICCI_LOOP(.steps = STEPS, .nslice = 1, .slice = &(ricci_slice){xt, xs},
				  .ncarry = 1,
				  .carry = &(ricci_carry){s, start, ricci_op(g, text, wt, xt, s)});
	for (int i = 0; i < STEPS * 64; i++)
		x[i] = 1;
	for (int i = 0; i < 64; i++)
		type_store(RICCI_BF16, w, (size_t)i, .5);
	CHECK_INT(ricci_scan(g, &l, &final, NULL), 0);
	CHECK_INT(ricci_grad(g, final, NULL, 1, &wt, &grad), 0);
	CHECK_GRAPH(g);
	Binding bind[] = {{xs->node, x}, {wt->node, w}, {start->node, s0}};
	void *out = got;
	int code = evaluate(&g->ir, 1, &grad->node, 3, bind, &out, &e, &err);
	CHECK_REPORT(code == 0, "kernels: %s", err.text);
	CHECK_INT(grad->node->type, RICCI_BF16);
	CHECK_NEAR(type_load(RICCI_BF16, got, 0), want, 0);
	ricci_graph_free(g);
}

/* ---- PyTorch's numbers (make_lstm.py) ---- */

static ricci_tensor *squares(ricci_graph *g, int n, ricci_tensor **t)
{
	static const char *const text[] = {"Q[] = A[]*A[]", "Q[] += A[i]*A[i]",
					   "Q[] += A[i,j]*A[i,j]", "Q[] += A[i,j,k]*A[i,j,k]"};
	ricci_tensor *sum = NULL;
	for (int k = 0; k < n; k++) {
		ricci_tensor *q = ricci_op(g, text[ricci_rank(t[k])], t[k]);
		sum = sum ? ricci_op(g, "S[] = A[] + B[]", sum, q) : q;
	}
	return sum;
}

static ricci_tensor *lstm_loss(ricci_graph *g, ricci_tensor *const *in, ricci_tensor *length)
{
	ricci_tensor *xt = ricci_input(g, "xt", RICCI_F64, 2, SHAPE(3, 4)), *final[2], *all, *r[2];
	ricci_tensor *h = ricci_input(g, "ht", RICCI_F64, 2, SHAPE(3, 5));
	ricci_tensor *c = ricci_input(g, "ct", RICCI_F64, 2, SHAPE(3, 5));
	ricci_tensor *operands[] = {xt, in[1], h, in[3], in[4], c};
	int n = 2;
	ricci_ops(
		g,
		"A[n,i] += X[n,k]*W[i,k]; B[n,i] += H[n,k]*U[i,k]; Z[n,i] = A[n,i] + B[n,i] + V[i];"
		"C[n,j] = sigmoid(Z[n,j+5])*S[n,j] + sigmoid(Z[n,j])*tanh(Z[n,j+10]) where j<5;"
		"N[n,j] = sigmoid(Z[n,j+15])*tanh(C[n,j]); O[n,j] = C[n,j]*1.0",
		6, operands, &n, r);
	ricci_carry carry[] = {{h, in[2], r[0]}, {c, in[5], r[1]}};
	ricci_loop l = RICCI_LOOP(.steps = 7, .length = length, .nslice = 1,
				  .slice = &(ricci_slice){xt, in[0]}, .ncarry = 2, .carry = carry,
				  .nout = 1, .out = r);
	ricci_scan(g, &l, final, &all);
	return ricci_op(g, "L[] += S[t,b,i]*S[t,b,i]*S[t,b,i] + (t == 0 ? C[b,i]*H[b,i] : 0)", all,
			final[1], final[0]);
}

static void test_lstm(void)
{
	Case c = {.g = ricci_graph_new()};
	ricci_graph *g = c.g;
	const int64_t shape[][3] = {{7, 3, 4}, {20, 4}, {3, 5}, {20, 5}, {20}, {3, 5}};
	const int rank[] = {3, 2, 2, 2, 1, 2};
	const char *const names[] = {"x", "w", "h", "u", "b", "c"};
	int64_t five = 5;
	double data[6][128], got[128], want;
	ricci_tensor *in[6], *out[13];
	FILE *f = fopen("tests/autodiff/lstm.txt", "r");
	CHECK(f != NULL);
	for (int k = 0; k < 6; k++) {
		in[k] = ricci_input(g, names[k], RICCI_F64, rank[k], shape[k]);
		for (int i = 0; i < tensor_size(in[k]->node); i++)
			data[k][i] = (double)((i * 7919 + k * 31) % 101) / 101 - .5;
		c.bind[c.n++] = (Binding){in[k]->node, data[k]};
	}
	ricci_tensor *length = ricci_input(g, "length", RICCI_I64, 0, NULL);
	c.bind[c.n++] = (Binding){length->node, &five};
	out[0] = lstm_loss(g, in, length);
	CHECK_INT(ricci_grad(g, out[0], NULL, 6, in, out + 1), 0);
	CHECK_INT(ricci_grad(g, squares(g, 6, out + 1), NULL, 6, in, out + 7), 0);
	for (int k = 0; k < 13 && f && values(&c, out[k], got); k++)
		for (int64_t i = 0; i < tensor_size(out[k]->node); i++) {
			CHECK_INT(fscanf(f, "%lf", &want), 1);
			CHECK_NEAR(got[i], want, 1e-12 * (1 + fabs(want)));
		}
	if (f)
		fclose(f);
	ricci_graph_free(g);
}

int main(void)
{
	test_lstm();
	for (int region = 0; region < 2; region++) {
		test_custom((Way){0}, region);
		test_custom((Way){.recompute = 1}, region);
		test_custom((Way){.segment = 3}, region);
	}
	test_draws((Way){0});
	test_draws((Way){.recompute = 1});
	test_draws((Way){.segment = 3});
	test_region();
	test_kept();
	test_segment_length();
	test_leak();
	test_short("P[i] = f32(W[i])*X[i]; T[] += P[i]; N[] = S[] + T[]", 3, 1000);
	test_short("T[] += f32(W[i])*cos(X[i] - X[j]); N[] = S[] + T[]", 64, 64000);
	return check_done();
}

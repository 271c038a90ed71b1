/* test_scan_memory.c - what loops keep of their steps: memory for time in gradients, sums that
 * leave the steps, one stack of what a state is, views; and training through a long loop. */
#include "tests/runtime/scan_case.h"

#include <ricci_nn.h>

/* ---- gradients: memory for time, training ---- */
enum { DEEP_STEPS = 144, BATCH = 32, WIDTH = 16 };

/* A network of three layers a step; its loss is how far the last state is from ones. */
static ricci_tensor *deep_loss(ricci_graph *g, int recompute, int segment, ricci_tensor **x,
			       ricci_tensor **w)
{
	ricci_tensor *xt, *h, *y, *last;

	*x = ricci_input(g, "x", RICCI_F32, 3, (int64_t[]){DEEP_STEPS, BATCH, WIDTH});
	*w = ricci_param(g, "w", RICCI_F32, 3, (int64_t[]){3, WIDTH, WIDTH}, ricci_normal(0.2));
	xt = ricci_input(g, "xt", RICCI_F32, 2, (int64_t[]){BATCH, WIDTH});
	h = ricci_input(g, "h", RICCI_F32, 2, (int64_t[]){BATCH, WIDTH});
	y = ricci_op(g,
		     "A[b,j] += H[b,k] * W[0,k,j]; B[b,j] = tanh(A[b,j] + X[b,j]);"
		     "C[b,j] += B[b,k] * W[1,k,j]; D[b,j] = tanh(C[b,j]);"
		     "E[b,j] += D[b,k] * W[2,k,j]; Y[b,j] = 0.5*H[b,j] + tanh(E[b,j])",
		     h, *w, xt);
	ricci_scan(
		g,
		&RICCI_LOOP(.steps = DEEP_STEPS, .nslice = 1, .slice = &(ricci_slice){xt, *x},
			    .ncarry = 1,
			    .carry = &(ricci_carry){h, ricci_op(g, "Z[b,j] = 0.0 where b<32, j<16"),
						    y},
			    .recompute = recompute, .segment = segment),
		&last, NULL);
	return ricci_op(g, "L[] += (H[b,j] - 1)*(H[b,j] - 1)/512.0", last);
}

/* The gradient by w and the loss; what the session's tensors take. */
static size_t deep_gradient(int recompute, int segment, float *dw)
{
	static float data[DEEP_STEPS * BATCH * WIDTH];
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x, *w, *out[2];
	size_t bytes = 0;

	out[0] = deep_loss(g, recompute, segment, &x, &w);
	ricci_grad(g, out[0], NULL, 1, &w, &out[1]);
	CHECK_GRAPH(g);
	ricci_session *s = ricci_session_new(
		g, &RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .static_mode = 1), 0, 2, out);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	for (int i = 0; i < COUNT(data); i++)
		data[i] = 0.5f + 0.5f * sinf((float)i);
	if (s) {
		CHECK_INT(ricci_feed(s, x, data, ricci_bytes(x)), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, out[1], dw, ricci_bytes(out[1])), 0);
		bytes = session_bytes(s);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
	return bytes;
}

/* A loop that keeps less takes less, for the same gradient. */
static void test_memory(void)
{
	enum { N = 3 * WIDTH * WIDTH, STATE = 4 * BATCH * WIDTH };
	static float kept[N], again[N], parts[N];
	size_t all = deep_gradient(0, 0, kept), states = deep_gradient(1, 0, again);
	size_t segments = deep_gradient(0, 12, parts);

	for (int i = 0; i < N; i++) {
		CHECK_NEAR(again[i], kept[i], 1e-5);
		CHECK_NEAR(parts[i], kept[i], 1e-5);
	}
	CHECK_REPORT(states < all, "kept %zu, computed again %zu", all, states);
	CHECK_REPORT(states > DEEP_STEPS * STATE, "states %zu", states);
	CHECK_REPORT(segments < states, "states %zu, in segments %zu", states, segments);
}

static void test_training(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x, *w, *loss = deep_loss(g, 0, 0, &x, &w);
	float first = 0, last = 0;

	ricci_adam(loss, ricci_learning_rate(g, 0.01), .9, .999, 1e-8);
	CHECK_GRAPH(g);
	ricci_session *s = ricci_session_new(g, &RICCI_OPTIONS(.threads = 2), 1, 1, &loss);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	static float data[DEEP_STEPS * BATCH * WIDTH];
	if (s) {
		for (int i = 0; i < COUNT(data); i++)
			data[i] = 0.5f + 0.5f * sinf((float)i);
		CHECK_INT(ricci_feed(s, x, data, ricci_bytes(x)), 0);
		for (int i = 0; i < 150; i++) {
			CHECK_INT(ricci_step(s), 0);
			ricci_fetch(s, loss, i ? &last : &first, ricci_bytes(loss));
		}
		CHECK_REPORT(last < 0.1f * first, "the loss goes from %g to %g", first, last);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* Products of all rows are outside of the loops, forward and backward: one kernel each, for all
 * steps. */
static void test_split(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 3, (int64_t[]){29, 3, 17});
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){17, 19}, ricci_normal(.1));
	ricci_tensor *u = ricci_param(g, "u", RICCI_F32, 2, (int64_t[]){19, 19}, ricci_normal(.1));
	ricci_tensor *xt = ricci_input(g, "xt", RICCI_F32, 2, (int64_t[]){3, 17}), *last;
	ricci_tensor *h = ricci_input(g, "h", RICCI_F32, 2, (int64_t[]){3, 19}), *out[3];
	ricci_tensor *next = ricci_op(g,
				      "A[b,j] += X[b,i] * W[i,j]; B[b,j] += H[b,k] * U[k,j];"
				      "Y[b,j] = tanh(A[b,j] + B[b,j])",
				      xt, w, h, u);
	CacheEntry *entry[32];
	int all = 0, inside = 0;

	ricci_scan(
		g,
		&RICCI_LOOP(.steps = 29, .nslice = 1, .slice = &(ricci_slice){xt, x}, .ncarry = 1,
			    .carry = &(ricci_carry){h, ricci_op(g, "Z[b,j] = 0.0 where b<3, j<19"),
						    next}),
		&last, NULL);
	out[0] = ricci_op(g, "L[] += H[b,j] * H[b,j]", last);
	ricci_grad(g, out[0], NULL, 2, (ricci_tensor *[]){w, u}, out + 1);
	CHECK_GRAPH(g);
	ricci_session *s = ricci_session_new(g, NULL, 0, 3, out);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	for (int n = s ? session_entries(s, entry, COUNT(entry)) : 0; n > 0; n--) {
		const char *text = entry[n - 1]->task->text;

		all += strstr(text, "input f32 29x3x") && strstr(text, "+=");
		inside += strstr(text, "input f32 3x17") || strstr(text, "17x19");
		inside -= strstr(text, "29x3x17") && strstr(text, "17x19");
	}
	CHECK_INT(all, 3); /* A, and the gradients of W and U */
	CHECK_INT(inside, 0);
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* ---- one stack of what a state is ---- */
enum { LONG = 64, WIDE = 24 };

/* An LSTM cell whose output is stacked; a layer over all steps makes the loss. */
static Case cell_case(int backwards, int length, int asked)
{
	Case c = {.g = ricci_graph_new(), .steps = LONG};
	int64_t all[] = {LONG, BATCH, WIDE}, gates[] = {4, WIDE, WIDE};
	ricci_tensor *x = case_input(&c, "x", 3, all), *w = case_input(&c, "w", 3, gates);
	ricci_tensor *zero = ricci_op(c.g, "Z[b,i] = 0.0 where b<32, i<24");
	ricci_tensor *h0 = case_input(&c, "h0", 2, all + 1), *final[2], *stack, *next[2];
	ricci_tensor *xt = ricci_input(c.g, "xt", RICCI_F32, 2, all + 1);
	ricci_tensor *h = ricci_input(c.g, "h", RICCI_F32, 2, all + 1);
	ricci_tensor *at = ricci_input(c.g, "at", RICCI_F32, 2, all + 1);
	ricci_tensor *sums = ricci_op(c.g, "A[k,b,i] += (X[b,j]/2 + H[b,j]) * W[k,i,j]", xt, h, w);

	next[1] = ricci_op(c.g,
			   "N[b,i] = sigmoid(A[0,b,i])*C[b,i] + sigmoid(A[1,b,i])*tanh(A[2,b,i])",
			   sums, at);
	next[0] = ricci_op(c.g, "Y[b,i] = sigmoid(A[3,b,i]) * tanh(N[b,i])", sums, next[1]);
	if (length)
		c.length = ricci_input(c.g, "length", RICCI_I32, 0, NULL);
	ricci_scan(c.g,
		   &RICCI_LOOP(.steps = LONG, .length = c.length, .backwards = backwards,
			       .nslice = 1, .slice = &(ricci_slice){xt, x}, .ncarry = 2,
			       .carry = (ricci_carry[]){{h, h0, next[0]}, {at, zero, next[1]}},
			       .nout = 1, .out = next),
		   final, &stack);
	c.out[0] =
		ricci_op(c.g, "Z[t,b,i] += H[t,b,j]*W[0,i,j]; L[] += Z[t,b,i]*Z[t,b,i]", stack, w);
	CHECK_INT(ricci_grad(c.g, c.out[0], NULL, 3, c.in, c.out + 1), 0);
	c.out[4] = asked ? stack : c.out[0];
	c.nout = 4 + asked;
	return c;
}

/* What the loops of the graph stack of their states, counted as the rewritten graph has it, whose
 * values are those of the graph. */
static int cell_stacks(Case *c)
{
	Binding bind[] = {{c->in[0]->node, c->data[0]},
			  {c->in[1]->node, c->data[1]},
			  {c->in[2]->node, c->data[2]},
			  {c->length ? c->length->node : NULL, &c->steps}};
	Node *root[MOST_OUT], **order;
	Error err = {0};
	int stacks = 0;

	for (int k = 0; k < c->nout; k++)
		root[k] = c->out[k]->node;
	CHECK_INT(rewrite_graph(&c->g->ir, c->nout, root), 0);
	for (int k = 0; k < c->nout; k++) {
		size_t n = ricci_bytes(c->out[k]) / 4;
		double *got = malloc(n * sizeof *got), off = 0;

		CHECK_INT(interp_tensor(root[k], 3 + (c->length != NULL), bind, (RandomState){0, 0},
					got, NULL, &err),
			  0);
		for (size_t i = 0; i < n; i++)
			off = fmax(off, fabs(got[i] - c->want[k][i]));
		CHECK_REPORT(off < 1e-9, "result %d: off %g", k, off);
		free(got);
	}
	for (int k = graph_order(&c->g->ir, c->nout, root, &order) - 1; k >= 0; k--) {
		const Scan *s = order[k]->op == OP_SCAN ? scan_of(order[k]) : NULL;
		const Node *value = s ? order[k]->u.result->value : NULL;

		for (int i = 0; s && i < s->nstate && order[k]->u.result->final < 0; i++)
			stacks += value == s->var[s->nslice + i] || value == s->next[i];
	}
	return stacks;
}

/* The output is what the gradient needs of the steps before: h and c are stacked once each, but
 * what the user asks for is memory of its own. */
static void test_doubled(void)
{
	for (int k = 0; k < 6; k++) {
		Case c = cell_case(k & 1, k >> 1 & 1, k >= 4);
		ricci_session *s;

		CHECK_GRAPH(c.g);
		c.steps = c.length ? LONG - 7 : LONG;
		case_interp(&c, (RandomState){0, 0});
		s = case_session(&c, RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC));
		if (s && c.length)
			CHECK_INT(ricci_feed(s, c.length, &c.steps, ricci_bytes(c.length)), 0);
		if (s) {
			CHECK_INT(ricci_step(s), 0);
			for (int i = 0; i < c.nout; i++) {
				size_t n = ricci_bytes(c.out[i]) / 4;
				float *got = malloc(n * 4);
				double off = 0;

				CHECK_INT(ricci_fetch(s, c.out[i], got, ricci_bytes(c.out[i])), 0);
				for (size_t j = 0; j < n; j++)
					off = fmax(off, fabs(got[j] - c.want[i][j]) /
								(1 + fabs(c.want[i][j])));
				CHECK_REPORT(off < 1e-4, "case %d, result %d: off %g", k, i, off);
				free(got);
			}
		}
		CHECK_INT(cell_stacks(&c), k < 4 ? 2 : 3);
		ricci_session_free(s);
		case_free(&c);
	}
}

/* Another shape of a tensor is no copy, and counts as the tensor where it changes in place. */
static void test_views(void)
{
	enum { N = 12 };
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *v = ricci_state(g, "v", RICCI_F32, 2, (int64_t[]){4, 3}, ricci_normal(1));
	ricci_tensor *flat = ricci_op(g, "F[k] = V[k/3,k%3]", v), *sum;
	ricci_tensor *xt = ricci_input(g, "xt", RICCI_F32, 0, NULL);
	ricci_tensor *at = ricci_input(g, "at", RICCI_F32, 0, NULL);
	float before[N], after[N], got;
	CacheEntry *entry[8];

	ricci_scan(g,
		   &RICCI_LOOP(.steps = N, .nslice = 1, .slice = &(ricci_slice){xt, flat},
			       .ncarry = 1,
			       .carry = &(ricci_carry){at, ricci_op(g, "Z[] = 0.0"),
						       ricci_op(g, "S[] = A[] + X[]", at, xt)}),
		   &sum, NULL);
	ricci_assign(g, v, ricci_op(g, "Y[i,j] = V[i,j] + 10*F[11-3*i-j]", v, flat));
	CHECK_GRAPH(g);
	ricci_session *s = ricci_session_new(g, NULL, 1, 1, &sum);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	if (s) {
		float want = 0;
		CHECK_INT(session_entries(s, entry, COUNT(entry)), 3); /* 0, S, Y: none for F */
		CHECK_INT(ricci_fetch(s, v, before, ricci_bytes(v)), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, v, after, ricci_bytes(v)), 0);
		CHECK_INT(ricci_fetch(s, sum, &got, ricci_bytes(sum)), 0);
		for (int i = 0; i < N; i++) {
			want += before[i];
			CHECK_NEAR(after[i], before[i] + 10 * before[N - 1 - i], 1e-5);
		}
		CHECK_NEAR(got, want, 1e-5);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

int main(void)
{
	test_memory();
	test_split();
	test_doubled();
	test_views();
	test_training();
	return check_done();
}

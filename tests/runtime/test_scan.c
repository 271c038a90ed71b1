/* test_scan.c - loops run by kernels: random bodies on every backend against the interpreter, at
 * every length in one session with the same kernels; the same bits in every run; what leaves a loop
 * keeps out of rows beyond the length; random numbers; wrong lengths; every n-th allocation
 * failing; steps that cost next to nothing. RICCI_FUZZ: how many random loops. */
#include "runtime/internal.h"
#include "tests/check.h"
#include <math.h>
#include <stdlib.h>

enum { STEPS = 5, ROWS = 3, COLS = 17, MOST_IN = 24, MOST_OUT = 12 };

static bool backend_here(ricci_backend b)
{
	char why[256];

	return b != RICCI_BACKEND_CC || backend_find("cc")->available(why, sizeof why);
}

static unsigned draw(unsigned *seed, unsigned n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 10) % n;
}

/* ---- graphs with data ---- */
typedef struct Case {
	ricci_graph *g;
	ricci_tensor *length;
	int nin, nout;
	ricci_tensor *in[MOST_IN], *out[MOST_OUT];
	void *data[MOST_IN];
	int32_t steps;
	double *want[MOST_OUT];
	float fed[STEPS * ROWS * COLS];
} Case;

static ricci_tensor *case_input(Case *c, const char *name, int rank, const int64_t *shape)
{
	ricci_tensor *t = ricci_input(c->g, name, RICCI_F32, rank, shape);
	size_t n = ricci_bytes(t) / sizeof(float);
	float *x = malloc(n * sizeof *x);

	for (size_t i = 0; i < n; i++)
		x[i] = sinf((float)i * 1.3f + (float)c->nin) * 0.3f;
	c->in[c->nin] = t;
	c->data[c->nin++] = x;
	return t;
}

/* The interpreter's results at the present length. */
static void case_interp(Case *c, RandomState rs)
{
	Binding bind[MOST_IN + 1];
	Error err = {0};
	int n = 0;

	for (; n < c->nin; n++)
		bind[n] = (Binding){c->in[n]->node, c->data[n]};
	if (c->length)
		bind[n++] = (Binding){c->length->node, &c->steps};
	for (int k = 0; k < c->nout; k++) {
		if (!c->want[k])
			c->want[k] = malloc(ricci_bytes(c->out[k]) / 4 * sizeof(double));
		CHECK_INT(interp_tensor(&c->g->ir, c->out[k]->node, n, bind, rs, c->want[k], NULL,
					&err),
			  0);
		CHECK_STR(err.text, "");
	}
}

static void case_free(Case *c)
{
	for (int k = 0; k < c->nin; k++)
		free(c->data[k]);
	for (int k = 0; k < c->nout; k++)
		free(c->want[k]);
	ricci_graph_free(c->g);
}

static ricci_session *case_session(Case *c, ricci_options o)
{
	char err[4096] = "";
	ricci_session *s = ricci_session_new(c->g, &o, 0, c->nout, c->out, err, sizeof err);

	CHECK_STR(err, "");
	for (int k = 0; k < c->nin && s; k++)
		CHECK_INT(ricci_feed(s, c->in[k], c->data[k]), 0);
	return s;
}

/* Rows of slices beyond the length hold NaN. */
static void case_feed(Case *c, ricci_session *s)
{
	for (int k = 0; k < c->nin; k++) {
		size_t row = ricci_bytes(c->in[k]) / STEPS, used = row * (size_t)c->steps;

		if (ricci_rank(c->in[k]) < 3)
			continue;
		memcpy(c->fed, c->data[k], used);
		memset((char *)c->fed + used, 0xff, row * STEPS - used);
		CHECK_INT(ricci_feed(s, c->in[k], c->fed), 0);
	}
	if (c->length)
		CHECK_INT(ricci_feed(s, c->length, &c->steps), 0);
}

static double case_step(Case *c, ricci_session *s)
{
	double worst = 0;

	case_feed(c, s);
	CHECK_INT(ricci_step(s), 0);
	CHECK_STR(ricci_session_error(s), "");
	for (int k = 0; k < c->nout; k++) {
		size_t n = ricci_bytes(c->out[k]) / 4;
		float *got = malloc(n * 4);

		CHECK_INT(ricci_fetch(s, c->out[k], got), 0);
		for (size_t i = 0; i < n; i++) {
			double off = fabs(got[i] - c->want[k][i]);

			off /= 1 + fabs(c->want[k][i]);
			worst = off <= worst ? worst : off; /* NaN counts */
		}
		free(got);
	}
	return worst;
}

/* ---- random loops ---- */
static ricci_tensor *any(ricci_tensor **t, int n, unsigned *seed)
{
	return t[draw(seed, (unsigned)n)];
}

/* A body of a few equations over [ROWS, COLS] tensors in pool[0..*n-1]. */
static void random_body(Case *c, ricci_tensor **pool, int *n, ricci_tensor *w, unsigned *seed)
{
	static const struct {
		const char *text;
		bool w, b; /* operands besides A */
	} rule[] = {
		{"Y[i,j] = 0.7*A[i,j] + 0.3*B[i,j]", false, true},
		{"Y[i,j] = 0.5*A[i,j] - tanh(B[i,j])", false, true},
		{"Y[i,j] = tanh(A[i,j] * B[i,j])", false, true},
		{"Y[i,j] = A[i,j>0 ? j-1 : 0] + 0.1*B[i,j] where j<17", false, true},
		{"S[i] += A[i,k]; Y[i,j] = 0.1*S[i] + B[i,j]", false, true},
		{"Y[i,j] += A[i,k] * W[k,j] * 0.5", true, false},
		{"M[i,j] += A[i,k] * W[k,j]; Y[i,j] = tanh(M[i,j] + B[i,j])", true, true},
		{"U[k,j] += A[i,k] * B[i,j]; Z[i,j] += U[j,k] * A[i,k]; Y[i,j] = tanh(Z[i,j])",
		 false, true},
		{"Y[i,j] = A[i,j]", false, false},
		{"Y[i,j] = A[i,j] * random(3)", false, false},
	};
	int count = 1 + (int)draw(seed, 4);

	for (int k = 0; k < count; k++) {
		int r = (int)draw(seed, COUNT(rule)), m = 0, one = 1;
		ricci_tensor *operand[3];

		operand[m++] = any(pool, *n, seed);
		if (rule[r].w)
			operand[m++] = w;
		if (rule[r].b)
			operand[m++] = any(pool, *n, seed);
		CHECK_INT(ricci_ops(c->g, rule[r].text, m, operand, &one, &pool[(*n)++]), 0);
	}
}

/* One loop, and what of its results a session shall compute. */
static void random_loop(Case *c, unsigned *seed)
{
	static const char *const name[] = {"v0", "v1", "v2", "v3", "v4", "v5"};
	int64_t all[] = {STEPS, ROWS, COLS}, square[] = {COLS, COLS};
	int nslice = (int)draw(seed, 3), ncarry = (int)draw(seed, 4), n = 0, nout;
	ricci_slice slice[2];
	ricci_carry carry[3];
	ricci_tensor *pool[16], *out[4], *final[3], *stack[4];
	ricci_loop l = {.steps = STEPS, .slice = slice, .carry = carry, .out = out};

	c->g = ricci_graph_new();
	ricci_tensor *w = case_input(c, "w", 2, square), *u = case_input(c, "u", 2, all + 1);
	if (draw(seed, 2))
		l.length = c->length = ricci_input(c->g, "length", RICCI_I32, 0, NULL);
	for (int k = 0; k < nslice; k++) {
		pool[n++] = slice[k].variable = ricci_input(c->g, name[k], RICCI_F32, 2, all + 1);
		slice[k].tensor = case_input(c, k ? "x1" : "x0", 3, all);
	}
	for (int k = 0; k < ncarry; k++) {
		pool[n++] = carry[k].variable =
			ricci_input(c->g, name[3 + k], RICCI_F32, 2, all + 1);
		carry[k].initial =
			draw(seed, 3) ? case_input(c, k ? k > 1 ? "h2" : "h1" : "h0", 2, all + 1)
				      : u;
	}
	pool[n++] = u;
	random_body(c, pool, &n, w, seed);
	for (int k = 0; k < ncarry; k++) /* now and then it adds up */
		carry[k].next = draw(seed, 3) ? any(pool, n, seed)
					      : ricci_op(c->g, "Y[i,j] = A[i,j] + B[i,j]",
							 carry[k].variable, any(pool, n, seed));
	nout = 1 + (int)draw(seed, 4);
	for (int k = 0; k < nout; k++)
		out[k] = any(pool, n, seed);
	l.backwards = draw(seed, 2) != 0;
	l.recompute = draw(seed, 4) == 0;
	l.segment = draw(seed, 6) ? 0 : 2;
	l.nslice = nslice;
	l.ncarry = ncarry;
	l.nout = nout;
	CHECK_INT(ricci_scan(c->g, &l, final, stack), 0);
	CHECK_STR(ricci_error_message(c->g), "");
	for (int k = 0; k < ncarry; k++)
		if (draw(seed, 2))
			c->out[c->nout++] = final[k];
	for (int k = 0; k < nout; k++)
		if (draw(seed, 2) || c->nout == 0)
			c->out[c->nout++] = stack[k];
	/* now and then behind it another loop over what it stacked, by way of an equation */
	if (draw(seed, 3) == 0)
		c->out[c->nout++] = ricci_op(c->g, "Y[i,j] += S[t,i,j]", stack[0]);
	if (draw(seed, 2)) { /* and gradients: loops backwards */
		ricci_tensor *loss = ricci_op(c->g, "L[] += S[t,i,j] * S[t,i,j]", stack[0]);
		int n = c->nin < 4 ? c->nin : 4;

		CHECK_INT(ricci_grad(c->g, loss, NULL, n, c->in, c->out + c->nout), 0);
		c->nout += n;
	}
}

static void compare_loop(unsigned seed, ricci_options o, int runs)
{
	Case c = {0};
	ricci_session *s;

	random_loop(&c, &seed);
	if (!ricci_graph_error(c.g) && (s = case_session(&c, o))) {
		for (int r = 0; r < runs; r++)
			for (c.steps = c.length ? 0 : STEPS; c.steps <= STEPS; c.steps++) {
				case_interp(&c, (RandomState){o.seed, ricci_step_count(s)});
				double off = case_step(&c, s);

				CHECK_REPORT(off < 1e-4, "loop %u, length %d, backend %d: off %g",
					     seed, (int)c.steps, o.backend, off);
			}
		ricci_session_free(s);
	}
	case_free(&c);
}

static void test_random_loops(void)
{
	const char *count = getenv("RICCI_FUZZ"), *first = getenv("RICCI_SEED");
	unsigned n = count ? (unsigned)atol(count) : 60, from = first ? (unsigned)atol(first) : 1;

	for (unsigned k = from; k < from + n && check_failed < 5; k++) {
		compare_loop(k * 7919, (ricci_options){.backend = RICCI_BACKEND_TCC}, 1);
		compare_loop(k * 7919, (ricci_options){.backend = RICCI_BACKEND_INTERP}, 1);
	}
	for (unsigned k = 1; k <= 3 && backend_here(RICCI_BACKEND_CC); k++) {
		compare_loop(k * 104729, (ricci_options){.static_mode = 1, .threads = 2}, 1);
		compare_loop(k * 104729, (ricci_options){.threads = 2}, 20);
	}
}

/* ---- a running sum: the smallest loop ---- */
typedef struct Sum {
	ricci_graph *g;
	ricci_tensor *x, *length, *total, *sums;
} Sum;

static Sum sum_make(int64_t steps)
{
	Sum m = {.g = ricci_graph_new()};
	ricci_tensor *xt, *at, *next;

	m.x = ricci_input(m.g, "x", RICCI_F32, 2, (int64_t[]){steps, 4});
	m.length = ricci_input(m.g, "length", RICCI_I64, 0, NULL);
	xt = ricci_input(m.g, "xt", RICCI_F32, 1, (int64_t[]){4});
	at = ricci_input(m.g, "at", RICCI_F32, 1, (int64_t[]){4});
	next = ricci_op(m.g, "Y[i] = A[i] + X[i]", at, xt);
	ricci_scan(m.g,
		   &(ricci_loop){
			   .steps = steps,
			   .length = m.length,
			   .nslice = 1,
			   .slice = &(ricci_slice){xt, m.x},
			   .ncarry = 1,
			   .carry = &(ricci_carry){at, ricci_op(m.g, "Z[i] = 1.0 where i<4"), next},
			   .nout = 1,
			   .out = &next},
		   &m.total, &m.sums);
	CHECK_STR(ricci_error_message(m.g), "");
	return m;
}

/* One set of kernels serves all lengths, and a wrong length changes nothing. */
static void test_lengths(void)
{
	enum { N = 1000 };
	static float x[N][4], sums[N][4];
	static const int64_t wrong[] = {-1, N + 1, INT64_MIN, INT64_MAX};
	Sum m = sum_make(N);
	ricci_tensor *count = ricci_state(m.g, "count", RICCI_F32, 0, NULL, ricci_constant(0));
	ricci_tensor *out[] = {m.total, m.sums};
	char err[4096] = "";

	ricci_assign(m.g, count, ricci_op(m.g, "Y[] = C[] + 1", count));
	ricci_session *s = ricci_session_new(m.g, &(ricci_options){.static_mode = 1}, 1, 2, out,
					     err, sizeof err);
	CHECK_STR(err, "");
	Line *line[8];
	const Kernel *kernel[8];
	float total[4], steps = 0;
	int n = s ? session_lines(s, line, COUNT(line)) : 0, good = 0;

	CHECK_INT(n, 3); /* the first state; a step; the count */
	for (int k = 0; k < n; k++)
		kernel[k] = line[k]->best;
	for (int i = 0; i < 4 * N; i++)
		x[i / 4][i % 4] = (float)(i % 13);
	if (s)
		CHECK_INT(ricci_feed(s, m.x, x), 0);
	for (int64_t length = 0; length <= N && s; length += 1 + length / 3, good++) {
		CHECK_INT(ricci_feed(s, m.length, &length), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, m.total, total), 0);
		CHECK_INT(ricci_fetch(s, m.sums, sums), 0);
		float sum = 1;
		for (int64_t t = 0; t < N; t++) {
			sum += t < length ? x[t][2] : 0;
			CHECK(sums[t][2] == (t < length ? sum : 0));
		}
		CHECK(total[2] == sum);
	}
	for (int k = 0; k < COUNT(wrong) && s; k++) {
		CHECK_INT(ricci_feed(s, m.length, &wrong[k]), 0);
		CHECK_INT(ricci_step(s), RICCI_EVALUE);
	}
	if (s) {
		CHECK_STR(ricci_session_error(s),
			  "a loop of at most 1000 steps was given the length 9223372036854775807 "
			  "by 'length'; it must be in 0..1000");
		CHECK_INT(ricci_fetch(s, count, &steps), 0);
		CHECK(steps == (float)good);
	}
	for (int k = 0; k < n; k++)
		CHECK(line[k]->best == kernel[k]);
	ricci_session_free(s);
	ricci_graph_free(m.g);
}

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
		&(ricci_loop){
			.steps = DEEP_STEPS,
			.nslice = 1,
			.slice = &(ricci_slice){xt, *x},
			.ncarry = 1,
			.carry = &(ricci_carry){h, ricci_op(g, "Z[b,j] = 0.0 where b<32, j<16"), y},
			.recompute = recompute,
			.segment = segment},
		&last, NULL);
	return ricci_op(g, "L[] += (H[b,j] - 1)*(H[b,j] - 1)/512.0", last);
}

/* The gradient by w and the loss; what the session's tensors take. */
static size_t deep_gradient(int recompute, int segment, float *dw)
{
	static float data[DEEP_STEPS * BATCH * WIDTH];
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x, *w, *out[2];
	char err[4096] = "";
	size_t bytes = 0;

	out[0] = deep_loss(g, recompute, segment, &x, &w);
	ricci_grad(g, out[0], NULL, 1, &w, &out[1]);
	CHECK_STR(ricci_error_message(g), "");
	ricci_session *s = ricci_session_new(
		g, &(ricci_options){.backend = RICCI_BACKEND_TCC, .static_mode = 1}, 0, 2, out, err,
		sizeof err);
	CHECK_STR(err, "");
	for (int i = 0; i < COUNT(data); i++)
		data[i] = 0.5f + 0.5f * sinf((float)i);
	if (s) {
		CHECK_INT(ricci_feed(s, x, data), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, out[1], dw), 0);
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
	char err[4096] = "";
	float first = 0, last = 0;

	ricci_adam(loss, ricci_learning_rate(g, 0.01), .9, .999, 1e-8);
	CHECK_STR(ricci_error_message(g), "");
	ricci_session *s =
		ricci_session_new(g, &(ricci_options){.threads = 2}, 1, 1, &loss, err, sizeof err);
	CHECK_STR(err, "");
	static float data[DEEP_STEPS * BATCH * WIDTH];
	if (s) {
		for (int i = 0; i < COUNT(data); i++)
			data[i] = 0.5f + 0.5f * sinf((float)i);
		CHECK_INT(ricci_feed(s, x, data), 0);
		for (int i = 0; i < 150; i++) {
			CHECK_INT(ricci_step(s), 0);
			ricci_fetch(s, loss, i ? &last : &first);
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
	char err[4096] = "";
	Line *line[32];
	int all = 0, inside = 0;

	ricci_scan(g,
		   &(ricci_loop){
			   .steps = 29,
			   .nslice = 1,
			   .slice = &(ricci_slice){xt, x},
			   .ncarry = 1,
			   .carry = &(ricci_carry){h, ricci_op(g, "Z[b,j] = 0.0 where b<3, j<19"),
						   next}},
		   &last, NULL);
	out[0] = ricci_op(g, "L[] += H[b,j] * H[b,j]", last);
	ricci_grad(g, out[0], NULL, 2, (ricci_tensor *[]){w, u}, out + 1);
	CHECK_STR(ricci_error_message(g), "");
	ricci_session *s = ricci_session_new(g, NULL, 0, 3, out, err, sizeof err);
	CHECK_STR(err, "");
	for (int n = s ? session_lines(s, line, COUNT(line)) : 0; n > 0; n--) {
		const char *text = line[n - 1]->task->text;

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
		   &(ricci_loop){.steps = LONG,
				 .length = c.length,
				 .backwards = backwards,
				 .nslice = 1,
				 .slice = &(ricci_slice){xt, x},
				 .ncarry = 2,
				 .carry = (ricci_carry[]){{h, h0, next[0]}, {at, zero, next[1]}},
				 .nout = 1,
				 .out = next},
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

		CHECK_INT(interp_tensor(&c->g->ir, root[k], 3 + (c->length != NULL), bind,
					(RandomState){0, 0}, got, NULL, &err),
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

		CHECK_STR(ricci_error_message(c.g), "");
		c.steps = c.length ? LONG - 7 : LONG;
		case_interp(&c, (RandomState){0, 0});
		s = case_session(&c, (ricci_options){.backend = RICCI_BACKEND_TCC});
		if (s && c.length)
			CHECK_INT(ricci_feed(s, c.length, &c.steps), 0);
		if (s) {
			CHECK_INT(ricci_step(s), 0);
			CHECK_STR(ricci_session_error(s), "");
			for (int i = 0; i < c.nout; i++) {
				size_t n = ricci_bytes(c.out[i]) / 4;
				float *got = malloc(n * 4);
				double off = 0;

				CHECK_INT(ricci_fetch(s, c.out[i], got), 0);
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
	char err[4096] = "";
	float before[N], after[N], got;
	Line *line[8];

	ricci_scan(g,
		   &(ricci_loop){.steps = N,
				 .nslice = 1,
				 .slice = &(ricci_slice){xt, flat},
				 .ncarry = 1,
				 .carry = &(ricci_carry){at, ricci_op(g, "Z[] = 0.0"),
							 ricci_op(g, "S[] = A[] + X[]", at, xt)}},
		   &sum, NULL);
	ricci_assign(g, v, ricci_op(g, "Y[i,j] = V[i,j] + 10*F[11-3*i-j]", v, flat));
	CHECK_STR(ricci_error_message(g), "");
	ricci_session *s = ricci_session_new(g, NULL, 1, 1, &sum, err, sizeof err);
	CHECK_STR(err, "");
	if (s) {
		float want = 0;
		CHECK_INT(session_lines(s, line, COUNT(line)), 3); /* 0, S, Y: none for F */
		CHECK_INT(ricci_fetch(s, v, before), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, v, after), 0);
		CHECK_INT(ricci_fetch(s, sum, &got), 0);
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
	test_random_loops();
	test_lengths();
	test_memory();
	test_split();
	test_doubled();
	test_views();
	test_training();
	return check_done();
}

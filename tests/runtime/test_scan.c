/* test_scan.c - loops run by kernels: random bodies on every backend against the interpreter, at
 * every length in one session with the same kernels; what leaves a loop keeps out of rows beyond
 * the length; random numbers; wrong lengths. RICCI_FUZZ: how many random loops. */
#include "tests/runtime/scan_case.h"

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

/* Rows of slices beyond the length hold NaN. */
static void case_feed(Case *c, ricci_session *s)
{
	for (int k = 0; k < c->nin; k++) {
		size_t row = ricci_bytes(c->in[k]) / STEPS, used = row * (size_t)c->steps;

		if (ricci_rank(c->in[k]) < 3)
			continue;
		memcpy(c->fed, c->data[k], used);
		memset((char *)c->fed + used, 0xff, row * STEPS - used);
		CHECK_INT(ricci_feed(s, c->in[k], c->fed, ricci_bytes(c->in[k])), 0);
	}
	if (c->length)
		CHECK_INT(ricci_feed(s, c->length, &c->steps, ricci_bytes(c->length)), 0);
}

static double case_step(Case *c, ricci_session *s)
{
	double worst = 0;

	case_feed(c, s);
	CHECK_INT(ricci_step(s), 0);
	for (int k = 0; k < c->nout; k++) {
		size_t n = ricci_bytes(c->out[k]) / 4;
		float *got = malloc(n * 4);

		CHECK_INT(ricci_fetch(s, c->out[k], got, ricci_bytes(c->out[k])), 0);
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
	ricci_loop l = RICCI_LOOP(.steps = STEPS, .slice = slice, .carry = carry, .out = out);

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
	CHECK_GRAPH(c->g);
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
		compare_loop(k * 7919, RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC), 1);
		compare_loop(k * 7919, RICCI_OPTIONS(.backend = RICCI_BACKEND_INTERP), 1);
	}
	for (unsigned k = 1; k <= 3 && backend_here(RICCI_BACKEND_CC); k++) {
		compare_loop(k * 104729, RICCI_OPTIONS(.static_mode = 1, .threads = 2), 1);
		compare_loop(k * 104729, RICCI_OPTIONS(.threads = 2), 20);
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
		   &RICCI_LOOP(.steps = steps, .length = m.length, .nslice = 1,
			       .slice = &(ricci_slice){xt, m.x}, .ncarry = 1,
			       .carry = &(ricci_carry){at, ricci_op(m.g, "Z[i] = 1.0 where i<4"),
						       next},
			       .nout = 1, .out = &next),
		   &m.total, &m.sums);
	CHECK_GRAPH(m.g);
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

	ricci_assign(m.g, count, ricci_op(m.g, "Y[] = C[] + 1", count));
	ricci_session *s = ricci_session_new(m.g, &RICCI_OPTIONS(.static_mode = 1), 1, 2, out);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	CacheEntry *entry[8];
	const Kernel *kernel[8];
	float total[4], steps = 0;
	int n = s ? session_entries(s, entry, COUNT(entry)) : 0, good = 0;

	CHECK_INT(n, 3); /* the first state; a step; the count */
	for (int k = 0; k < n; k++)
		kernel[k] = entry[k]->best;
	for (int i = 0; i < 4 * N; i++)
		x[i / 4][i % 4] = (float)(i % 13);
	if (s)
		CHECK_INT(ricci_feed(s, m.x, x, ricci_bytes(m.x)), 0);
	for (int64_t length = 0; length <= N && s; length += 1 + length / 3, good++) {
		CHECK_INT(ricci_feed(s, m.length, &length, ricci_bytes(m.length)), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, m.total, total, ricci_bytes(m.total)), 0);
		CHECK_INT(ricci_fetch(s, m.sums, sums, ricci_bytes(m.sums)), 0);
		float sum = 1;
		for (int64_t t = 0; t < N; t++) {
			sum += t < length ? x[t][2] : 0;
			CHECK(sums[t][2] == (t < length ? sum : 0));
		}
		CHECK(total[2] == sum);
	}
	for (int k = 0; k < COUNT(wrong) && s; k++) {
		CHECK_INT(ricci_feed(s, m.length, &wrong[k], ricci_bytes(m.length)), 0);
		CHECK_INT(ricci_step(s), RICCI_EVALUE);
	}
	if (s) {
		CHECK_STR(ricci_error_message(),
			  "a loop of at most 1000 steps was given the length 9223372036854775807 "
			  "by 'length'; it must be in 0..1000");
		CHECK_INT(ricci_fetch(s, count, &steps, ricci_bytes(count)), 0);
		CHECK(steps == (float)good);
	}
	for (int k = 0; k < n; k++)
		CHECK(entry[k]->best == kernel[k]);
	ricci_session_free(s);
	ricci_graph_free(m.g);
}

/* ---- constants in panels (jit/rewrite/layouts.c) ---- */
enum { LAYOUT_ROWS = 4, DEEP = 32, WIDE = 1024 };

/* The stack of H[b,k]*W, summed over k, of as many steps. */
static ricci_tensor *layout_loop(ricci_graph *g, const char *body, int64_t steps, int recompute,
				 ricci_tensor **x, ricci_tensor **w)
{
	ricci_tensor *xt, *ht, *wt, *out[2], *stack = NULL, *last = NULL;
	int64_t all[] = {steps, LAYOUT_ROWS, DEEP}, shape[] = {DEEP, WIDE};
	bool turned = strstr(body, "W[j,k]") != NULL;
	int n = 2;

	*x = ricci_input(g, "x", RICCI_F32, 3, all);
	*w = ricci_input(g, "w", RICCI_F32, 2, turned ? (int64_t[]){WIDE, DEEP} : shape);
	xt = ricci_input(g, "xt", RICCI_F32, 2, all + 1);
	ht = ricci_input(g, "ht", RICCI_F32, 2, all + 1);
	wt = ricci_op(g, "Y[i,j] = W[i,j]", *w);
	CHECK_INT(ricci_ops(g, body, 3, (ricci_tensor *[]){ht, wt, xt}, &n, out), 0);
	CHECK_INT(
		ricci_scan(g,
			   &RICCI_LOOP(.steps = steps, .nslice = 1, .slice = &(ricci_slice){xt, *x},
				       .ncarry = 1, .carry = &(ricci_carry){ht, NULL, out[0]},
				       .nout = 1, .out = &out[1], .recompute = recompute),
			   &last, &stack),
		0);
	CHECK_GRAPH(g);
	return stack;
}

/* Says whether a graph that is rewritten has what a test looks for. */
typedef bool Finder(Ir *ir, Node **root);

static bool finds_panels(Ir *ir, Node **root)
{
	Node **order;
	bool found = false;
	CHECK_INT(rewrite_layouts(ir, 1, root), 0);
	int count = graph_order(ir, 1, root, &order);
	for (int k = 0; k < count; k++)
		found |= order[k]->op == OP_COMP && tensor_rank(order[k]) == 3 &&
			 tensor_extent(order[k], 0) == WIDE / 32 &&
			 tensor_extent(order[k], 2) == 32;
	return found;
}

static bool is_exp(const Node *n)
{
	return n->op == OP_EXP;
}

/* In a step of a loop. */
static bool finds_exp(Ir *ir, Node **root)
{
	Node **outside, **order;
	bool found = false;
	int n = graph_order(ir, 1, root, &outside);
	for (int k = 0; k < n; k++) {
		if (outside[k]->op != OP_SCAN)
			continue;
		const Scan *s = scan_of(outside[k]);
		int count = graph_order(ir, s->nstate, s->next, &order);
		for (int i = 0; i < count; i++)
			found |= order[i]->op == OP_COMP &&
				 node_any(ir, comp_body(order[i]), is_exp);
	}
	return found;
}

/* The loop of layout_loop, rewritten: are its values what they were, and does it have what is looked for? */
static void check_rewritten(const char *body, int64_t steps, int recompute, Finder *finds,
			    bool wanted)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x, *w, *stack = layout_loop(g, body, steps, recompute, &x, &w);
	size_t n = ricci_bytes(stack) / sizeof(float), bytes[2] = {ricci_bytes(x), ricci_bytes(w)};
	double *want = malloc(n * sizeof *want), *got = malloc(n * sizeof *got), worst = 0;
	float *data[2] = {malloc(bytes[0]), malloc(bytes[1])};
	Node *root = stack->node;
	Binding bind[2] = {{x->node, data[0]}, {w->node, data[1]}};
	Error err = {0};

	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < bytes[k] / sizeof(float); i++)
			data[k][i] = sinf((float)i * 1.3f + (float)k) * 0.3f;
	CHECK_INT(interp_tensor(root, 2, bind, (RandomState){0}, want, NULL, &err), 0);
	IR_ENTER(&g->ir, );
	CHECK_INT(rewrite_graph(&g->ir, 1, &root), 0);
	bool found = finds(&g->ir, &root);
	IR_LEAVE(&g->ir);
	CHECK_REPORT(found == wanted, "%s, %d steps: %s", body, (int)steps,
		     found ? "it is there" : "it isn't there");
	CHECK_INT(interp_tensor(root, 2, bind, (RandomState){0}, got, NULL, &err), 0);
	for (size_t i = 0; i < n; i++)
		worst = fmax(worst, fabs(got[i] - want[i]));
	CHECK_REPORT(worst < 1e-12, "%s: off %g", body, worst);
	free(want);
	free(got);
	free(data[0]);
	free(data[1]);
	ricci_graph_free(g);
}

static void check_layout(const char *body, int64_t steps, int recompute, bool wanted)
{
	check_rewritten(body, steps, recompute, finds_panels, wanted);
}

/* Functions of what is the same in all steps are computed once (jit/rewrite/invariants.c): has the body exp? */
static void check_constants(const char *body, int recompute, bool stays)
{
	check_rewritten(body, 5, recompute, finds_exp, stays);
}

static void test_constants(void)
{
	static const char decay[] = "H, W, X -> N, A: "
				    "N[b,k] = H[b,k]*exp(W[0,k]) + X[b,k] where k<32; "
				    "A[b,j] += N[b,k]*W[k,j]";
	check_constants(decay, 0, false);
	check_constants(decay, 1, true);
	/* in a sum, too; what needs its condition, or a state, stays */
	check_constants("H, W, X -> N, A: A[b,j] += H[b,k]*exp(W[k,j]); "
			"N[b,k] = tanh(A[b,k] + X[b,k]) where k<32",
			0, false);
	check_constants("H, W, X -> N, A: A[b,j] += H[b,k]*exp(W[k+1,j] else 0); "
			"N[b,k] = tanh(A[b,k] + X[b,k]) where k<32",
			0, true);
	check_constants("H, W, X -> N, A: A[b,j] += H[b,k]*W[k,j]; "
			"N[b,k] = exp(0 - A[b,k]*W[0,k]) + X[b,k] where k<32",
			0, true);
}

static void test_layouts(void)
{
	static const char apart[] = "H, W, X -> N, A: A[b,j] += H[b,k]*W[k,j]; "
				    "N[b,k] = tanh(A[b,k] + X[b,k]) where k<32";
	check_layout(apart, 8, 0, true);
	check_layout("H, W, X -> N, A: A[b,j] += H[b,k]*W[k,j]*X[b,k]; N[b,k] = tanh(A[b,k] + "
		     "X[b,k]) where k<32",
		     9, 0, true);
	check_layout(apart, 7, 0, false); /* too few steps */
	check_layout(apart, 8, 1, false); /* would be copied in each step */
	check_layout("H, W, X -> N, A: A[b,j] += H[b,k]*W[j,k]; N[b,k] = tanh(A[b,k] + X[b,k]) "
		     "where k<32",
		     8, 0, false); /* along K already */
	check_layout("H, W, X -> N, A: A[b,j] += W[k,j]*f32(j)*H[b,k]; N[b,k] = tanh(A[b,k] + "
		     "X[b,k]) where k<32",
		     8, 0, false); /* another factor has its lanes */
}

int main(void)
{
	test_random_loops();
	test_constants();
	test_layouts();
	test_lengths();
	return check_done();
}

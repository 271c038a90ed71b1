/* test_memory_limit.c - sessions with a memory limit: it is kept, results are those without one to
 * the bit, what can't be met is said; nets with dropout, ties and loops, sessions that share
 * parameters, and each allocation failing. */
#include "runtime/session.h"
#include <ricci_nn.h>
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__ /* ten times slower */
enum { SKIPPED = 8 };
#else
enum { SKIPPED = 50 };
#endif
enum { LAYERS = 6, BATCH = 48, WIDTH = 40, STEPS = 6, LOOPS = 4, FED = BATCH * WIDTH };
typedef enum { NO_LOOP, ONE_LOOP, MANY_LOOPS } Loops; /* behind the layers */

typedef struct Net {
	ricci_graph *g;
	ricci_tensor *x, *loss, *eval;
	int code; /* of the limit */
} Net;

/* Layers with dropout, after each second one the row's greatest number less than the others, whose
 * gradient asks for equality. */
static ricci_tensor *layers(ricci_graph *g, ricci_tensor *x)
{
	for (int k = 0; k < LAYERS; k++) {
		char name[16];
		ricci_tensor *w;

		snprintf(name, sizeof name, "w%d", k);
		w = ricci_param(g, name, RICCI_F32, 2, (int64_t[]){WIDTH, WIDTH},
				ricci_normal(0.2));
		x = ricci_op(g, "Y[b,n] = tanh(X[b,n])", ricci_linear(x, w, NULL));
		if (k % 2)
			x = ricci_op(g, "M[b] max= X[b,n]; Y[b,n] = X[b,n] - 0.5*M[b]", x);
		else
			x = ricci_dropout(x, 0.3);
	}
	return x;
}

/* The same in a loop, over its state. */
static ricci_tensor *looped(ricci_graph *g, ricci_tensor *x)
{
	ricci_tensor *h = ricci_input(g, "h", RICCI_F32, 2, (int64_t[]){BATCH, WIDTH}), *last = x;
	ricci_tensor *w =
		ricci_param(g, "u", RICCI_F32, 2, (int64_t[]){WIDTH, WIDTH}, ricci_normal(0.2));
	ricci_tensor *y = ricci_op(g, "A[b,n] += H[b,k]*W[k,n]; Y[b,n] = tanh(A[b,n])", h, w);

	ricci_scan(g, &RICCI_LOOP(.steps = STEPS, .ncarry = 1, .carry = &(ricci_carry){h, x, y}),
		   &last, NULL);
	return last;
}

/* Loops over what the one before has stacked, with the same layers' dropout and ties in each step. */
static ricci_tensor *sequences(ricci_graph *g, ricci_tensor *x)
{
	ricci_tensor *all = ricci_op(g, "S[t,b,n] = X[b,n]*sin(f32(t)+1.0) where t<6", x),
		     *last = x;

	for (int k = 0; k < LOOPS; k++) {
		const int64_t shape[] = {BATCH, WIDTH};
		const char name[][4] = {
			{'x', (char)('0' + k)}, {'h', (char)('0' + k)}, {'u', (char)('0' + k)}};
		ricci_tensor *xt = ricci_input(g, name[0], RICCI_F32, 2, shape);
		ricci_tensor *h = ricci_input(g, name[1], RICCI_F32, 2, shape), *w, *y;

		w = ricci_param(g, name[2], RICCI_F32, 2, (int64_t[]){WIDTH, WIDTH},
				ricci_normal(0.2));
		/* G needs memory of the loop's own, where it is not stacked */
		y = ricci_op(
			g,
			"A[b,n] += H[b,k]*W[k,n]; G[r,m,n] += A[b,m]*X[b,n]*f32(r+1) where r<4; "
			"B[b,n] += A[b,k]*G[r,k,n]; C[b,n] = tanh(B[b,n]/1000.0 + X[b,n])",
			h, w, xt);
		y = ricci_op(g, "M[b] max= X[b,n]; Y[b,n] = X[b,n] - 0.5*M[b]",
			     ricci_dropout(y, 0.3));
		ricci_loop l =
			RICCI_LOOP(.steps = STEPS, .recompute = k == 2, .nslice = 1,
				   .slice = &(ricci_slice){xt, all}, .ncarry = 1,
				   .carry = &(ricci_carry){h, NULL, y}, .nout = 1, .out = &y);
		ricci_scan(g, &l, &last, &all);
	}
	return last;
}

static Net net_new(size_t limit, Loops loops)
{
	Net n = {.g = ricci_graph_new()};
	ricci_tensor *h;

	n.x = ricci_input(n.g, "x", RICCI_F32, 2, (int64_t[]){BATCH, WIDTH});
	n.code = ricci_memory_limit(n.g, limit);
	h = layers(n.g, n.x);
	if (loops)
		h = loops == ONE_LOOP ? looped(n.g, h) : sequences(n.g, h);
	n.eval = ricci_op(n.g, "E[n] += H[b,n]", h);
	n.loss = ricci_op(n.g, "L[] += H[b,n]*H[b,n]/100.0", h);
	ricci_adam(n.loss, ricci_learning_rate(n.g, 0.01), .9, .999, 1e-8);
	return n;
}

typedef struct Trained {
	bool made;
	char why[ERROR_TEXT];
	ricci_memory_use use;
	int looped; /* tensors of loops that are computed again */
	float loss, w[LAYERS + LOOPS][WIDTH * WIDTH], eval[WIDTH];
} Trained;

static int fed(ricci_session *s, const Net *n)
{
	static float data[FED];

	for (int i = 0; i < FED; i++)
		data[i] = sinf(0.7f * (float)i);
	return ricci_feed(s, n->x, data, sizeof data);
}

static void use_of(ricci_session *s, Trained *t)
{
	ricci_memory *m = ricci_memory_new(s);

	CHECK(m != NULL);
	if (m)
		t->use = *ricci_memory_sum(m);
	for (int i = 0; i < ricci_memory_count(m); i++) {
		const ricci_memory_tensor *r = ricci_memory_at(m, i);

		t->looped += r->times > 1 &&
			     !strncmp(r->equation, "a loop of 6 steps at most: ", 27) &&
			     r->flops > 0;
	}
	ricci_memory_free(m);
}

/* Three steps of training, then another session over its parameters. */
static void train(size_t limit, Loops loops, const ricci_options *o, Trained *t)
{
	Net n = net_new(limit, loops);
	ricci_session *s = ricci_session_new(n.g, o, 1, 1, &n.loss), *e = NULL;

	memset(t, 0, sizeof *t);
	CHECK_INT(n.code, 0);
	if (!s)
		snprintf(t->why, sizeof t->why, "%s", ricci_error_message());
	else if ((e = ricci_session_share(s, 0, 1, &n.eval))) {
		t->made = true;
		use_of(s, t);
		CHECK_INT(fed(s, &n), 0);
		CHECK_INT(fed(e, &n), 0);
		for (int i = 0; i < 3; i++)
			CHECK_REPORT(!ricci_step(s), "%s", ricci_error_message());
		CHECK_INT(ricci_step(e), 0);
		CHECK_INT(ricci_fetch(s, n.loss, &t->loss, sizeof t->loss), 0);
		CHECK_INT(ricci_fetch(e, n.eval, t->eval, sizeof t->eval), 0);
		for (int k = 0, at = 0; k < ricci_param_count(n.g); k++) {
			ricci_tensor *w = ricci_param_at(n.g, k, NULL);

			if (ricci_bytes(w) == sizeof t->w[0] && at < LAYERS + LOOPS &&
			    (*ricci_name(w) == 'w' || *ricci_name(w) == 'u') &&
			    !strchr(ricci_name(w), '.'))
				CHECK_INT(ricci_fetch(s, w, t->w[at++], sizeof t->w[0]), 0);
		}
	}
	ricci_session_free(e);
	ricci_session_free(s);
	ricci_graph_free(n.g);
}

static const ricci_options *fixed(void)
{
	static ricci_options o;

	o = RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .static_mode = 1, .threads = 2);
	return &o;
}

/* What the error of a session that was not made names as the least. */
static size_t least_of(const Trained *t)
{
	const char *at = strstr(t->why, "no less than ");
	unsigned long long least = 0;

	CHECK_REPORT(!t->made && at && sscanf(at, "no less than %llu", &least) == 1, "%s", t->why);
	return (size_t)least;
}

/* Smaller and smaller limits, down to one that can't be met; the least that is named then can. */
static void test_limits(Loops loops)
{
	static Trained all, some;
	size_t least = 0;
	int again = 0, looped = 0;

	train(0, loops, fixed(), &all);
	CHECK(all.made);
	CHECK_INT(all.use.again, 0);
	CHECK_INT(all.use.bytes, all.use.unlimited);
	for (int part = 10; part >= 0; part--) {
		size_t limit = part ? all.use.bytes / 10 * (size_t)part : 1;

		train(limit, loops, fixed(), &some);
		if (!some.made) {
			least = least_of(&some);
			CHECK_REPORT(least > limit && least <= all.use.bytes, "%s", some.why);
			continue;
		}
		again = some.use.again > again ? some.use.again : again;
		looped = some.looped > looped ? some.looped : looped;
		CHECK_REPORT(some.use.bytes <= limit, "%zu of %zu", some.use.bytes, limit);
		CHECK_INT(some.use.unlimited, all.use.bytes);
		CHECK_INT(some.use.limit, limit);
		CHECK(!memcmp(&all.loss, &some.loss, sizeof all.loss));
		CHECK(!memcmp(all.w, some.w, sizeof all.w));
		CHECK(!memcmp(all.eval, some.eval, sizeof all.eval));
	}
	CHECK_REPORT(again >= 3, "%d launches again", again);
	CHECK_REPORT(loops != MANY_LOOPS || looped > 0, "no loop ran again");
	CHECK_REPORT(least > 0 && least < all.use.bytes * (loops ? 9 : 7) / 10,
		     "the least is %zu of %zu", least, all.use.bytes);
	train(least, loops, fixed(), &some);
	CHECK(some.made && some.use.bytes <= least);
	CHECK(!memcmp(all.w, some.w, sizeof all.w));
}

/* While kernels are replaced and tried: what is computed again has the kernel of the first time. */
static void test_dynamic(Loops loops)
{
	static Trained all, some;
	const ricci_options *o = &RICCI_OPTIONS(.threads = 2);

	train(0, loops, o, &all);
	train(1, loops, o, &some); /* kernels depend on what the device was measured to be */
	train((least_of(&some) + all.use.bytes) / 2, loops, o, &some);
	CHECK_REPORT(all.made && some.made, "%s", some.why);
	CHECK(some.use.again > 0);
	CHECK_NEAR(some.loss, all.loss, 1e-4 * all.loss);
	for (int k = 0; k < LAYERS + LOOPS; k++)
		for (int i = 0; i < WIDTH * WIDTH; i++)
			CHECK_NEAR(some.w[k][i], all.w[k][i], 2e-3);
}

/* ---- what is said ---- */
/* T = X W is 1024 bytes between two kernels, and Y as many beside. */
static void test_errors(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){16, 16});
	ricci_tensor *w = ricci_input(g, "w", RICCI_F32, 2, (int64_t[]){16, 16});
	ricci_tensor *t = ricci_op(g, "T[i,j] += X[i,k]*W[k,j]", x, w);
	ricci_tensor *y = ricci_op(g, "Y[i,j] += T[i,k]*T[j,k]", t);

	CHECK_INT(ricci_memory_limit(NULL, 1), RICCI_EINVAL);
	CHECK_INT(ricci_memory_limit(g, 2047), 0);
	CHECK(!ricci_session_new(g, fixed(), 0, 1, &y));
	CHECK_STR(
		ricci_error_message(),
		"a step takes 2048 bytes beside inputs, parameters and states, no less than 2048 "
		"where what can be is computed again, but the limit is 2047. At its peak it holds\n"
		"1024 bytes of outputs and next values of states\n"
		"1024 bytes of T1[i,j] += x[i,k]*w[k,j]");
	CHECK_INT(ricci_memory_limit(g, 2048), 0); /* no session was made */
	ricci_session *s = ricci_session_new(g, fixed(), 0, 1, &y);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	CHECK(ricci_memory_limit(g, 0) != 0);
	CHECK_STR(ricci_error_message(),
		  "ricci_memory_limit: the graph has sessions and can't change any more");
	ricci_session_free(s);
	ricci_graph_free(g);
}

static void test_report(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){16, 16});
	ricci_tensor *w = ricci_input(g, "w", RICCI_F32, 2, (int64_t[]){16, 16});
	ricci_tensor *t = ricci_op(g, "T[i,j] += X[i,k]*W[k,j]", x, w);
	ricci_tensor *y = ricci_op(g, "Y[i,j] += T[i,k]*T[j,k]", t);
	ricci_memory *m;
	char *text;

	CHECK_INT(ricci_memory_limit(g, SIZE_MAX), 0);
	ricci_session *s = ricci_session_new(g, fixed(), 0, 1, &y);
	m = ricci_memory_new(s);
	ricci_session_free(s);
	ricci_graph_free(g);
	CHECK_INT(ricci_memory_sum(m)->bytes, 2048);
	CHECK_INT(ricci_memory_sum(m)->beside, 1024);
	CHECK_INT(ricci_memory_sum(m)->launches, 2);
	CHECK_INT(ricci_memory_count(m), 1);
	CHECK_STR(ricci_memory_at(m, 0)->equation, "T1[i,j] += x[i,k]*w[k,j]");
	CHECK_INT(ricci_memory_at(m, 0)->bytes, 1024);
	CHECK_INT(ricci_memory_at(m, 0)->times, 1);
	CHECK_INT(ricci_memory_at(m, 0)->at_peak, 1);
	CHECK_NEAR(ricci_memory_at(m, 0)->flops, 2 * 16 * 16 * 16, 0);
	CHECK(!ricci_memory_at(m, 1) && !ricci_memory_at(m, -1) && !ricci_memory_at(NULL, 0));
	text = ricci_memory_text(m);
	CHECK(text && strstr(text, "0 of 2 launches compute again, 0.00% of the operations\n"));
	ricci_free_text(text);
	ricci_memory_free(m);
	ricci_memory_free(NULL);
	CHECK(!ricci_memory_sum(NULL) && !ricci_memory_text(NULL) && !ricci_memory_count(NULL));
	CHECK(!ricci_memory_new(NULL));
}

/* The gradient by a layer's input reads its weight, so the weight's next value comes after it, in
 * the weight's place: what is beside the arena is the loss alone. */
static void test_in_place(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){BATCH, WIDTH});
	ricci_tensor *h = x, *loss;

	for (int k = 0; k < 3; k++) {
		char name[16];

		snprintf(name, sizeof name, "w%d", k);
		h = ricci_op(g, "A[b,n] += X[b,k]*W[k,n]; Y[b,n] = tanh(A[b,n])", h,
			     ricci_param(g, name, RICCI_F32, 2, (int64_t[]){WIDTH, WIDTH},
					 ricci_normal(0.2)));
	}
	loss = ricci_op(g, "L[] += H[b,n]*H[b,n]", h);
	ricci_sgd(loss, ricci_learning_rate(g, 0.01));
	ricci_session *s = ricci_session_new(g, fixed(), 1, 1, &loss);
	ricci_memory *m = ricci_memory_new(s);
	CHECK_REPORT(m != NULL, "%s", ricci_error_message());
	CHECK_INT(m ? ricci_memory_sum(m)->beside : 0, 64);
	ricci_memory_free(m);
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* ---- each allocation of a session's making fails ---- */
static void test_no_memory(void)
{
	static Trained all;
	ricci_memory *m = NULL;
	ricci_session *s = NULL;
	int failed = 0, reports = 0;
	long live;

	train(0, MANY_LOOPS, fixed(), &all);
	live = mem_live();
	for (long k = 1; !s; k += 1 + k / SKIPPED) {
		Net n = net_new(all.use.bytes * 7 / 10, MANY_LOOPS);

		mem_fail_at(k);
		s = ricci_session_new(n.g, fixed(), 1, 1, &n.loss);
		mem_fail_at(0);
		failed += s == NULL;
		for (long i = 1; s && !m; i++) {
			mem_fail_at(i);
			m = ricci_memory_new(s);
			mem_fail_at(0);
			reports += m == NULL;
		}
		ricci_memory_free(m);
		ricci_session_free(s);
		ricci_graph_free(n.g);
		CHECK_INT(mem_live(), live);
	}
	CHECK_REPORT(failed > 20 && reports > 2, "%d, %d", failed, reports);
}

int main(void)
{
	test_limits(NO_LOOP);
	test_limits(ONE_LOOP);
	test_limits(MANY_LOOPS);
	test_dynamic(NO_LOOP);
	test_dynamic(MANY_LOOPS);
	test_errors();
	test_report();
	test_in_place();
	test_no_memory();
	return check_done();
}

/* test_record.c - steps that are recorded and replayed compute, bit by bit, what launches one by one do.
 *
 * On the stand-in for NVIDIA's driver (tests/jit/fake_cuda.c), which counts replays and refuses what a
 * capture can't hold.
 */
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/jit/cuda_stand_in.h"

enum { STEPS = 5, B = 3, D = 4, ROUNDS = 22 };

static int (*live)(void), (*replays)(void);

/* ---- a net: random numbers in a loop and outside, states in place and beside */
typedef enum { FIXED, GIVEN, COMPUTED } Length; /* of the loop */
typedef struct Net {
	ricci_graph *g;
	ricci_tensor *x, *length, *loss, *w, *m;
} Net;

static Net net_new(Length how)
{
	Net n = {.g = ricci_graph_new()};
	ricci_graph *g = n.g;
	const int64_t square[] = {D, D};
	ricci_tensor *xt, *h, *next, *last = NULL, *stacked = NULL, *grad[1], *y, *length = NULL;

	n.x = ricci_input(g, "x", RICCI_F32, 3, (int64_t[]){STEPS, B, D});
	n.w = ricci_param(g, "w", RICCI_F32, 2, square, ricci_normal(0.5));
	n.m = ricci_state(g, "m", RICCI_F32, 2, square, ricci_constant(0));
	if (how != FIXED)
		length = n.length = ricci_input(g, "length", RICCI_I32, 0, NULL);
	if (how == COMPUTED)
		length = ricci_op(g, "N[] = min(max(L[]+0, 0), 5)", n.length);
	xt = ricci_input(g, "xt", RICCI_F32, 2, (int64_t[]){B, D});
	h = ricci_input(g, "h", RICCI_F32, 2, (int64_t[]){B, D});
	next = ricci_op(g,
			"C[b,d] += H[b,k]*W[k,d]; N[b,d] = tanh(X[b,d]+C[b,d]) * "
			"(training ? (random(7, 4*b+d) < 0.7 ? 1.25 : 0) : 1)",
			h, n.w, xt);
	ricci_slice slice = {xt, n.x};
	ricci_carry carry = {h, NULL, next};
	ricci_loop l = RICCI_LOOP(.steps = STEPS, .length = length, .nslice = 1, .slice = &slice,
				  .ncarry = 1, .carry = &carry, .nout = 1, .out = &next);
	ricci_scan(g, &l, &last, &stacked);
	y = ricci_op(g, "Y[b,d] = training ? (random(5, 4*b+d) < 0.8 ? H[b,d]*1.25 : 0) : H[b,d]",
		     last);
	n.loss = ricci_op(
		g,
		"A[] += (Z[b,d]-0.3)*(Z[b,d]-0.3); S[] += N[t,b,d]*N[t,b,d]; L[] = A[] + 0.01*S[]",
		y, stacked);
	ricci_grad(g, n.loss, NULL, 1, (ricci_tensor *[]){n.w}, grad);
	/* its transpose is read: beside */
	ricci_assign(g, n.m, ricci_op(g, "N[i,j] = 0.5*M[j,i] + G[i,j]", n.m, grad[0]));
	ricci_assign(g, n.w,
		     ricci_op(g, "N[i,j] = W[i,j] - 0.1*(M[i,j] + G[i,j])", n.w, n.m, grad[0]));
	CHECK_GRAPH(g);
	return n;
}

static ricci_session *session(const Net *n)
{
	ricci_options o = RICCI_OPTIONS(.seed = 11, .device = "cuda:0");

	return ricci_session_new(n->g, &o, 1, 1, (ricci_tensor *[]){n->loss});
}

static int net_feed(const Net *n, ricci_session *s, int round)
{
	static const int32_t length[] = {5, 5, 5, 5, 5, 5, 2, 2, 2, 2, 2,
					 0, 0, 0, 0, 0, 5, 2, 3, 5, 4, 2};
	float x[STEPS * B * D];
	int code;

	for (int i = 0; i < COUNT(x); i++)
		x[i] = sinf((float)(i + 31 * round) * 1.7f);
	code = ricci_feed(s, n->x, x, sizeof x);
	return code || !n->length ? code : ricci_feed(s, n->length, &length[round], 4);
}

typedef struct Record { /* of a training */
	float loss[ROUNDS], seen[ROUNDS], w[D * D], m[D * D];
} Record;

static int train(const Net *n, ricci_session *s, ricci_session *other, int from, int to, Record *r)
{
	int code = 0;

	for (int i = from; i < to && !code; i++) {
		code = net_feed(n, s, i);
		if (!code)
			code = ricci_step(s);
		if (!code)
			code = ricci_fetch(s, n->loss, &r->loss[i], 4);
		if (code || !other || i % 3 == 2)
			continue;
		code = net_feed(n, other, i);
		if (!code)
			code = ricci_step(other);
		if (!code)
			code = ricci_fetch(other, n->loss, &r->seen[i], 4);
	}
	if (!code)
		code = ricci_fetch(s, n->w, r->w, sizeof r->w);
	return code ? code : ricci_fetch(s, n->m, r->m, sizeof r->m);
}

/* What a training and a measuring session compute, launch by launch or not; how many replays. */
static int record(Length how, bool records, Record *r)
{
	int before = replays();
	Net n = net_new(how);

	memset(r, 0, sizeof *r);
	setenv("RICCI_RECORD", records ? "1" : "0", 1);
	ricci_session *s = session(&n);
	ricci_session *t = s ? ricci_session_share(s, 0, 1, &n.loss) : NULL;
	CHECK_REPORT(t && !train(&n, s, t, 0, ROUNDS, r), "%s", ricci_error_message());
	ricci_session_free(t);
	ricci_session_free(s);
	ricci_graph_free(n.g);
	unsetenv("RICCI_RECORD");
	return replays() - before;
}

static void check_same(const char *what, const Record *got, const Record *want)
{
	CHECK_REPORT(!memcmp(got, want, sizeof *got), "%s: other bits", what);
}

static void test_same(void)
{
	static const char *const name[] = {"a fixed length", "a given length", "a computed length"};
	/* The first three steps of a session are launched, for the tuner. Training has two keys of each length, as m
	 * and its next value change places: the first step with each is launched. Measuring reads w, which
	 * stays: one. Eight keys are kept. A length that a step computes can't be recorded. */
	static const int want[] = {
		[FIXED] = ROUNDS - 3 + ROUNDS - ROUNDS / 3 - 3, [GIVEN] = 13 + 9, [COMPUTED] = 0};
	Record one, all;

	for (Length how = FIXED; how <= COMPUTED; how++) {
		CHECK_INT(record(how, false, &one), 0);
		int n = record(how, true, &all);
		CHECK_REPORT(n == want[how], "%s: %d replays", name[how], n);
		CHECK(isfinite(one.loss[ROUNDS - 1]) && one.loss[0] != one.loss[1]);
		check_same(name[how], &all, &one);
	}
}

/* What looks at each kernel has them launched one by one. */
static void test_watched(const Record *want)
{
	Net n = net_new(GIVEN);
	ricci_session *s = session(&n);
	Record r = {0};
	int before;

	memcpy(r.seen, want->seen, sizeof r.seen);
	CHECK(s && !train(&n, s, NULL, 0, 5, &r));
	before = replays();
	CHECK_INT(ricci_time_kernels(s, 1), 0);
	CHECK_INT(train(&n, s, NULL, 5, 7, &r), 0);
	CHECK_INT(ricci_time_kernels(s, 0), 0);
	CHECK_INT(ricci_check_finite(s, 1), 0);
	CHECK_INT(train(&n, s, NULL, 7, 11, &r), 0);
	CHECK_INT(ricci_check_finite(s, 0), 0);
	CHECK_INT(replays() - before, 0);
	CHECK_INT(train(&n, s, NULL, 11, ROUNDS, &r), 0);
	CHECK(replays() > before);
	check_same("watched", &r, want);
	ricci_session_free(s);
	ricci_graph_free(n.g);
}

/* The last session of another family gives memory of the device's own back. */
static void test_moved(const Record *want)
{
	Net n = net_new(FIXED), other = net_new(GIVEN);
	ricci_session *s = session(&n), *t;
	Record r = {0}, unused;
	int before;

	memcpy(r.seen, want->seen, sizeof r.seen);
	CHECK(s && !train(&n, s, NULL, 0, 7, &r));
	before = replays();
	CHECK(before > 0);
	t = session(&other);
	CHECK(t && !train(&other, t, NULL, 0, 1, &unused));
	ricci_session_free(t);
	CHECK_INT(train(&n, s, NULL, 7, ROUNDS, &r), 0);
	CHECK_INT(replays() - before, ROUNDS - 7);
	check_same("moved", &r, want);
	ricci_session_free(s);
	ricci_graph_free(n.g);
	ricci_graph_free(other.g);
}

/* Others wait while one records. */
typedef struct Worker {
	pthread_t thread;
	Net n;
	ricci_session *s;
	Record r;
	int code;
} Worker;

static void *work(void *of)
{
	Worker *w = of;

	w->code = train(&w->n, w->s, NULL, 0, ROUNDS, &w->r);
	return NULL;
}

static void test_threads(const Record *want)
{
	Worker w[3] = {0};
	int before = replays();

	for (int i = 0; i < COUNT(w); i++) {
		w[i].n = net_new(GIVEN);
		w[i].s = session(&w[i].n);
		memcpy(w[i].r.seen, want->seen, sizeof want->seen);
		CHECK(w[i].s);
	}
	for (int i = 0; i < COUNT(w); i++)
		CHECK_INT(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	for (int i = 0; i < COUNT(w); i++) {
		pthread_join(w[i].thread, NULL);
		CHECK_INT(w[i].code, 0);
		check_same("a thread", &w[i].r, want);
		ricci_session_free(w[i].s);
		ricci_graph_free(w[i].n.g);
	}
	/* Where the device's own memory grows for one it moves under the others, who record once more. */
	int replayed = replays() - before;
	CHECK_REPORT(replayed <= COUNT(w) * 14 && replayed >= COUNT(w) * 12, "%d replays",
		     replayed);
}

/* ---- a driver that fails */
static int live_now(void)
{
	Device *d = device_open(&device_cuda, 0, NULL);

	if (d)
		device_trim(d);
	return live();
}

/* A driver that can't record starts the kernels. */
static void test_fallback(const Record *want)
{
	static const char *const call[] = {"capture", "captured", "instantiate:2"};
	Record r;

	for (int i = 0; i < COUNT(call); i++) {
		int before = live_now();

		setenv("FAKE_CUDA_FAIL", call[i], 1);
		int n = record(FIXED, true, &r);
		unsetenv("FAKE_CUDA_FAIL");
		check_same(call[i], &r, want);
		CHECK_REPORT(i == 2 ? n > 0 && n < 20 : !n, "%s: %d replays", call[i], n);
		CHECK_INT(live_now(), before);
	}
}

/* A replay that fails is an error, and so is a launch, recorded or not. The step can be done again. */
static void test_errors(const Record *want)
{
	Net n = net_new(FIXED);
	int before = live_now(), code;
	ricci_session *s = session(&n);
	Record r = {0};

	memcpy(r.seen, want->seen, sizeof r.seen);
	CHECK(s && !train(&n, s, NULL, 0, 5, &r));
	setenv("FAKE_CUDA_FAIL", "graph_launch", 1);
	code = train(&n, s, NULL, 5, 6, &r);
	unsetenv("FAKE_CUDA_FAIL");
	CHECK_INT(code, RICCI_EDEVICE);
	CHECK_STR(ricci_error_message(),
		  "CUDA: starting a recording failed: the fake was told to (error 1)");
	CHECK_INT(train(&n, s, NULL, 5, ROUNDS, &r), 0);
	check_same("after an error", &r, want);
	ricci_session_free(s);
	for (int at = 1; at < 4000; at = at * 3 / 2 + 1) {
		char fail[30];

		snprintf(fail, sizeof fail, "launch:%d", at);
		s = session(&n);
		CHECK(s);
		setenv("FAKE_CUDA_FAIL", fail, 1);
		code = train(&n, s, NULL, 0, ROUNDS, &r);
		unsetenv("FAKE_CUDA_FAIL");
		CHECK_REPORT(!code || strstr(ricci_error_message(), "starting a "), "%s: %s", fail,
			     ricci_error_message());
		ricci_session_free(s);
		if (!code)
			break;
		CHECK(at < 2000);
	}
	ricci_graph_free(n.g);
	CHECK_INT(live_now(), before);
}

int main(void)
{
	void *fake = cuda_stand_in();
	Record want;

	live = fake ? (int (*)(void))dlsym(fake, "fake_cuda_live") : NULL;
	replays = fake ? (int (*)(void))dlsym(fake, "fake_cuda_replays") : NULL;
	CHECK_REPORT(live && replays, "the stand-in for CUDA isn't there: %s", dlerror());
	if (!live || !replays)
		return check_done();
	test_same();
	record(GIVEN, false, &want);
	test_watched(&want);
	test_threads(&want);
	record(FIXED, false, &want);
	test_moved(&want);
	test_fallback(&want);
	test_errors(&want);
	return check_done();
}

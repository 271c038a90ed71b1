/* test_device_tuning.c - sessions on devices find faster kernels while they train, and stay right.
 *
 * On the stand-in for NVIDIA's libraries (tests/jit/fake_cuda.c), which makes slow kernels and wrong ones and fails in
 * the middle of trials; and on the first OpenCL device, where there is one.
 */
#include "jit/schedule/schedule.h"
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/child.h"
#include "tests/jit/cuda_stand_in.h"
#include "tests/runtime/told.h"

enum { B = 8, K = 12, N = 10, MOST = 16, STEPS = 400 };

static void *fake;
static int (*live)(void), (*replays)(void), (*compiled)(void);

/* ---- a net: two products and a state, so that steps have two keys */
typedef struct Net {
	ricci_graph *g;
	ricci_tensor *x, *w, *m, *l;
	ricci_session *s;
} Net;

static bool net_make(Net *n, ricci_options o)
{
	ricci_graph *g = n->g = ricci_graph_new();
	ricci_tensor *h, *grad;

	n->x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){B, K});
	n->w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){K, N}, ricci_uniform(-1, 1));
	n->m = ricci_state(g, "m", RICCI_F32, 2, (int64_t[]){K, K}, ricci_constant(0));
	h = ricci_op(g, "H[b,n] += X[b,k] * W[k,n]", n->x, n->w);
	n->l = ricci_op(g, "L[] += (H[b,n] - 0.5) * (H[b,n] - 0.5)", h);
	ricci_grad(g, n->l, NULL, 1, &n->w, &grad);
	/* its transpose is read: beside */
	ricci_assign(g, n->m, ricci_op(g, "N[i,j] = 0.5*M[j,i] + X[0,i]", n->m, n->x));
	ricci_assign(g, n->w, ricci_op(g, "V[k,n] = W[k,n] - 0.01*G[k,n]", n->w, grad));
	o.seed = 5;
	n->s = ricci_session_new(g, &o, 1, 1, &n->l);
	CHECK_REPORT(n->s, "%s", ricci_error_message());
	if (!n->s)
		ricci_graph_free(g);
	return n->s;
}

static void net_free(Net *n)
{
	ricci_session_free(n->s);
	ricci_graph_free(n->g);
}

/* So many steps; the last loss. */
static float net_train(const Net *n, int steps)
{
	float x[B * K], loss = NAN;
	int code = 0;

	for (int i = 0; i < steps && !code; i++) {
		for (int e = 0; e < B * K; e++)
			x[e] = sinf((float)e + 0.1f * (float)ricci_step_count(n->s));
		code = ricci_feed(n->s, n->x, x, sizeof x);
		if (!code)
			code = ricci_step(n->s);
	}
	if (!code)
		code = ricci_fetch(n->s, n->l, &loss, sizeof loss);
	CHECK_REPORT(!code, "%s", ricci_error_message());
	return loss;
}

static float want[STEPS + 1]; /* the processor's loss after so many steps */

static void make_want(void)
{
	Net n;

	if (net_make(&n, RICCI_OPTIONS(.threads = 1, .static_mode = 1)))
		for (int i = 1; i <= STEPS; i++)
			want[i] = net_train(&n, 1);
	net_free(&n);
	CHECK(want[1] > want[STEPS] && want[STEPS] > 0);
}

static void check_train(const Net *n, int steps)
{
	float loss = net_train(n, steps);
	uint64_t done = ricci_step_count(n->s);

	CHECK(done <= STEPS);
	CHECK_NEAR(loss, want[done], 1e-4 * want[done] + 1e-5);
}

/* ---- what its entries have */
typedef struct Seen {
	int n, offered[MOST];
	const Kernel *best[MOST];
	unsigned version[MOST];
} Seen;

static Seen look(const Net *n)
{
	CacheEntry *e[MOST];
	Seen s = {.n = session_entries(n->s, e, MOST)};

	CHECK(s.n > 3 && s.n < MOST);
	for (int i = 0; i < s.n; i++) {
		pthread_mutex_lock(&e[i]->lock);
		s.offered[i] = e[i]->offered;
		s.best[i] = e[i]->best;
		s.version[i] = atomic_load(&e[i]->version);
		CHECK(!e[i]->trial);
		pthread_mutex_unlock(&e[i]->lock);
	}
	return s;
}

/* How many kernels are others; recordings are dropped for no other reason. */
static int swapped(const Seen *before, const Seen *after)
{
	int n = 0;

	for (int i = 0; i < after->n; i++) {
		n += before->best[i] != after->best[i];
		CHECK_INT(before->version[i] != after->version[i],
			  before->best[i] != after->best[i]);
	}
	return n;
}

/* Schedules tried beyond the first of each. */
static int tried(const Seen *s)
{
	int n = 0;

	for (int i = 0; i < s->n; i++)
		n += s->offered[i] - 1;
	return n;
}

/* ---- all devices */
/* All that is offered is tried, and the training goes on as if nothing had been. */
static void test_settle(const char *device)
{
	Seen before, after;
	Net n;

	if (!net_make(&n, RICCI_OPTIONS(.device = device)))
		return;
	check_train(&n, 2);
	before = look(&n);
	CHECK_INT(tried(&before), 0);
	CHECK_INT(ricci_settle(n.s), 0);
	after = look(&n);
	CHECK(tried(&after) > after.n);
	swapped(&before, &after);
	check_train(&n, 5);
	CHECK_INT(ricci_settle(n.s), 0);
	net_free(&n);
}

static void test_tune(const char *device)
{
	Told all = {0};
	Net n;

	if (!net_make(&n, RICCI_OPTIONS(.device = device)))
		return;
	check_train(&n, 2);
	CHECK_INT(ricci_settle(n.s), 0);
	CHECK_INT(ricci_tune(n.s, 2, told, &all), 0);
	CHECK(all.calls > 1 && !all.wrong && all.part <= 1);
	CHECK_INT((int64_t)ricci_step_count(n.s), 2);
	check_train(&n, 3);
	CHECK_INT(ricci_tune(n.s, -1, NULL, NULL), RICCI_EINVAL);
	net_free(&n);
	if (!net_make(&n, RICCI_OPTIONS(.device = device, .static_mode = 1)))
		return;
	CHECK_INT(ricci_settle(n.s), 0);
	CHECK_INT(ricci_tune(n.s, 1, NULL, NULL), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(),
		  "a static session's schedules are fixed: tune a dynamic one");
	check_train(&n, 3);
	net_free(&n);
}

static bool searched(void *user, int k, int n, double spent, bool done, const TuneReport *r)
{
	int *tried = user;

	CHECK(k == 0 && n == 1 && spent >= 0);
	CHECK(r->seconds > 0 && r->seconds <= r->first && !r->kept);
	*tried = r->tried;
	return done;
}

/* Of a graph without a session, as `ricci tune` does it. */
static void test_graph(const char *backend)
{
	int tried = 0;
	Error err = {0};
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){B, K});
	ricci_tensor *y = ricci_op(g, "Y[i] max= X[i,k]", x);
	Tuning t = {.backend = backend_find(backend),
		    .threads = 1,
		    .seconds = 0.5,
		    .strategy = strategies,
		    .seed = 1,
		    .report = searched,
		    .user = &tried};

	CHECK_REPORT(!tune(&g->ir, 1, &y->node, &t, &err), "%s", err.text);
	CHECK(tried > 2);
	ricci_graph_free(g);
}

/* All is tried while steps go on, which wait for no trial. */
static void *settle_main(void *session)
{
	return ricci_settle(session) ? NULL : session;
}

static void test_background(const char *device)
{
	CacheEntry *e[MOST];
	pthread_t waits;
	Seen after;
	void *settled = NULL;
	Net n;

	if (!net_make(&n, RICCI_OPTIONS(.device = device)))
		return;
	ricci_session *other = ricci_session_share(n.s, 0, 1, &n.l);
	check_train(&n, 4); /* the first is not timed */
	for (int i = session_entries(n.s, e, MOST) - 1; i >= 0; i--) {
		long long launches = atomic_load(&e[i]->launches);

		CHECK(launches >= 4 && entry_seconds(e[i]) > 0);
		check_train(&n, 2);
		CHECK(atomic_load(&e[i]->launches) >= launches + 2); /* replayed or not */
	}
	CHECK(other && !pthread_create(&waits, NULL, settle_main, other));
	for (int i = 0; i < STEPS - 40; i++) {
		check_train(&n, 1);
		usleep(5000);
	}
	pthread_join(waits, &settled);
	CHECK(settled == other);
	check_train(&n, 3);
	after = look(&n);
	CHECK(tried(&after) > after.n);
	ricci_session_free(other);
	net_free(&n);
}

/* A kernel of one thread that takes ten milliseconds more. */
static Kernel *slow_kernel(const CacheEntry *e)
{
	const Backend *b = e->request.backend;
	Error err = {0};
	Schedule one;
	Text t = {0};

	schedule_parse("threads 1; parallel 0", &one, &err);
	Kernel *k = kernel_lower(e->task, &one, b, backend_target(b), &err);
	const char *body = k ? strchr(strstr(k->source, "kernel_0("), '{') : NULL;
	if (!body)
		return NULL;
	text_add(&t, "%.*s volatile int wait = 4000000; while (wait > 0) wait -= 1;\n%s",
		 (int)(body + 1 - k->source), k->source, body + 1);
	mem_free(k->source);
	k->source = t.s;
	CHECK_REPORT(!b->compile(b, 1, &k, NULL, &err), "%s", err.text);
	return k;
}

/* It is replaced; what the step computes stays. */
static void test_slow(const char *device)
{
	enum { S = 64 };
	static float a[S * S], y[2][S];
	CacheEntry *e;
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){S, S});
	ricci_tensor *p = ricci_op(g, "Y[i] max= 2 * X[k,i]", x);
	ricci_session *s = ricci_session_new(g, &RICCI_OPTIONS(.device = device), 0, 1, &p);

	CHECK_REPORT(s, "%s", ricci_error_message());
	CHECK_INT(session_entries(s, &e, 1), 1);
	Kernel *k = slow_kernel(e);
	CHECK(k && k->module);
	entry_put(e, k, NULL, 0, true);
	for (int i = 0; i < COUNT(a); i++)
		a[i] = sinf((float)i);
	for (int run = 0; run < 2; run++) {
		CHECK_INT(ricci_feed(s, x, a, sizeof a), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, p, y[run], sizeof y[run]), 0);
		CHECK_INT(ricci_settle(s), 0);
	}
	CHECK(schedule_find(&e->best->schedule, STEP_THREADS)->arg > 1);
	for (int i = 0; i < S; i++)
		CHECK_NEAR(y[1][i], y[0][i], 0);
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* ---- on the stand-in */
/* Two devices train in turns, and what each tries is tried on it. */
static void test_both(void)
{
	Net n[2];
	bool made = net_make(&n[0], RICCI_OPTIONS(.device = "cuda:0"));

	made = net_make(&n[1], RICCI_OPTIONS(.device = "cuda:1")) && made;
	for (int round = 0; made && round < 2; round++)
		for (int i = 0; i < 2; i++) {
			check_train(&n[i], 3);
			CHECK_INT(ricci_settle(n[i].s), 0);
		}
	for (int i = 0; i < 2; i++) {
		Seen seen = {0};

		if (made)
			seen = look(&n[i]);
		CHECK(tried(&seen) > 0);
		net_free(&n[i]);
	}
}

/* Kernels that were slow are replaced at a step's beginning, and what was recorded of them is dropped. */
static void test_swap(void)
{
	Seen before, after;
	int replayed;
	Net n;

	stand_in_fails(fake, "slow");
	bool made = net_make(&n, RICCI_OPTIONS(.device = "cuda:0"));
	stand_in_fails(fake, "");
	if (!made)
		return;
	check_train(&n, 8);
	before = look(&n);
	CHECK(replays() > 0);
	CHECK_INT(ricci_settle(n.s), 0);
	after = look(&n);
	/* those that have another schedule */
	CHECK_REPORT(swapped(&before, &after) >= 2, "%d kernels were replaced",
		     swapped(&before, &after));
	replayed = replays();
	check_train(&n, 2);
	CHECK_INT(replays() - replayed, 0); /* launched once more, with either key */
	check_train(&n, 6);
	CHECK_INT(replays() - replayed, 6);
	net_free(&n);
}

/* Candidates that compute nothing are refused. */
static void test_wrong(void)
{
	Seen before, after;
	int made;
	Net n;

	if (!net_make(&n, RICCI_OPTIONS(.device = "cuda:0")))
		return;
	check_train(&n, 3);
	before = look(&n);
	made = compiled();
	stand_in_fails(fake, "wrong");
	CHECK_INT(ricci_settle(n.s), 0);
	stand_in_fails(fake, "");
	after = look(&n);
	CHECK(compiled() - made > after.n);
	CHECK_INT(swapped(&before, &after), 0);
	check_train(&n, 5);
	net_free(&n);
}

static int live_now(void)
{
	Device *d = device_open(&device_cuda, 0, NULL);

	if (d)
		device_trim(d);
	return live();
}

/* From its at-th time on `call` fails, while all is tried: the training goes on. */
static void fail_trials(const char *call, int at)
{
	char fails[40];
	int before = live_now();
	Net n;

	snprintf(fails, sizeof fails, "%s:%d", call, at);
	if (!net_make(&n, RICCI_OPTIONS(.device = "cuda:0")))
		return;
	check_train(&n, 3);
	stand_in_fails(fake, fails);
	CHECK_REPORT(!ricci_settle(n.s), "%s: %s", fails, ricci_error_message());
	stand_in_fails(fake, "");
	look(&n);
	check_train(&n, 5);
	net_free(&n);
	/* a driver that takes no call takes nothing back */
	CHECK_REPORT(live_now() == before || !strcmp(call, "current"), "%s: something stays",
		     fails);
}

static void test_failures(void)
{
	static const char *const call[] = {"launch", "event_wait", "event_time", "event_record",
					   "event",  "alloc",	   "to_device",	 "to_host",
					   "load",   "current",	   "compile"};

	for (int i = 0; i < COUNT(call); i++) {
		fail_trials(call[i], 1);
		fail_trials(call[i], 9 + 13 * i % 30); /* in the middle of some trial */
	}
}

/* What was found is there at the next start, which compiles nothing. In a process of its own, whose cache is another. */
static int kept(void)
{
	Text tuned[MOST] = {0}, again[MOST] = {0};
	CacheEntry *e[MOST];
	Seen first, after = {0};
	Net n;

	make_want();
	stand_in_fails(fake, "slow");
	bool made = net_make(&n, RICCI_OPTIONS(.device = "cuda:0"));
	stand_in_fails(fake, "");
	if (made) {
		first = look(&n);
		check_train(&n, 1);
		CHECK_INT(ricci_settle(n.s), 0);
		after = look(&n);
		CHECK(swapped(&first, &after) >= 2);
		for (int i = session_entries(n.s, e, MOST) - 1; i >= 0; i--)
			schedule_print(&tuned[i], &e[i]->best->schedule);
	}
	net_free(&n);
	stand_in_fails(fake, "create");
	if (made && net_make(&n, RICCI_OPTIONS(.device = "cuda:0"))) {
		for (int i = session_entries(n.s, e, MOST) - 1; i >= 0; i--) {
			schedule_print(&again[i], &e[i]->best->schedule);
			CHECK_STR(again[i].s, tuned[i].s);
		}
		check_train(&n, 4);
		first = look(&n);
		CHECK_INT(tried(&first), tried(&after)); /* and nothing is left to try */
		CHECK_INT(ricci_settle(n.s), 0);
		net_free(&n);
	}
	for (int i = 0; i < MOST; i++) {
		text_free(&tuned[i]);
		text_free(&again[i]);
	}
	return check_failed;
}

/* Does the session of a gather's gradient have atomic sums, once all that is offered was tried? */
static bool scatters_atomically(const char *device, bool fixed, size_t limit)
{
	enum { ROWS = 40, READS = 300, D = 3 };
	int32_t t[READS];
	float v[READS * D], y[ROWS * D], sum[ROWS * D] = {0};
	CacheEntry *e;
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *at = ricci_input(g, "t", RICCI_I32, 1, (int64_t[]){READS});
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){READS, D});
	ricci_tensor *p = ricci_op(g, "Y[T[i]:40,d] += X[i,d]", at, x);
	if (limit)
		ricci_memory_limit(g, limit);
	ricci_session *s = ricci_session_new(
		g, &RICCI_OPTIONS(.device = device, .static_mode = fixed), 0, 1, &p);
	for (int i = 0; i < READS; i++)
		t[i] = i * i % ROWS;
	for (int i = 0; i < READS * D; i++) {
		v[i] = sinf((float)i);
		sum[t[i / D] * D + i % D] += v[i];
	}
	CHECK_REPORT(s && !ricci_settle(s) && !ricci_feed(s, at, t, sizeof t) &&
			     !ricci_feed(s, x, v, sizeof v) && !ricci_step(s) &&
			     !ricci_fetch(s, p, y, sizeof y),
		     "%s", ricci_error_message());
	for (int i = 0; i < ROWS * D; i++)
		CHECK_NEAR(y[i], sum[i], 1e-4);
	CHECK_INT(session_entries(s, &e, 1), 1);
	bool atomic = strstr(e->best->source, "ricci_atomic_add_f32(&") != NULL;
	ricci_session_free(s);
	ricci_graph_free(g);
	return atomic;
}

static void test_scatter(const char *device)
{
	static const size_t room = 1 << 20;

	scatters_atomically(device, false, 0); /* whichever was faster */
	CHECK(!scatters_atomically(device, true, 0));
	CHECK(!scatters_atomically(device, false, room));
}

static void test_kept(void)
{
	char folder[] = "/tmp/ricci-tuning-XXXXXX", command[60];

	CHECK(mkdtemp(folder));
	setenv("RICCI_CACHE", folder, 1);
	CHECK_INT(child(kept), 0);
	setenv("RICCI_CACHE", "off", 1);
	snprintf(command, sizeof command, "rm -r %s", folder);
	CHECK_INT(system(command), 0);
}

static void test_device(const char *device, const char *backend)
{
	test_settle(device);
	test_tune(device);
	test_graph(backend);
	test_background(device);
}

int main(void)
{
	char why[256];

	setenv("RICCI_CACHE", "off", 1);
	fake = cuda_stand_in();
	live = fake ? (int (*)(void))dlsym(fake, "fake_cuda_live") : NULL;
	replays = fake ? (int (*)(void))dlsym(fake, "fake_cuda_replays") : NULL;
	CHECK_REPORT(live && replays, "the stand-in for CUDA isn't there: %s", dlerror());
	compiled = fake ? (int (*)(void))dlsym(fake, "fake_cuda_compiled") : NULL;
	if (compiled)
		test_kept(); /* before the driver is opened */
	make_want();
	if (live && replays) {
		test_device("cuda:0", "nvrtc");
		test_device("cuda:1", "nvrtc");
		test_both();
		test_swap();
		test_wrong();
		test_failures();
		test_scatter("cuda:0");
	}
	if (device_opencl.count(why, sizeof why) > 0) {
		test_device("opencl:0", "opencl");
		test_slow("opencl:0");
		test_scatter("opencl:0");
	} else {
		CHECK_SKIP(why);
	}
	return check_done();
}

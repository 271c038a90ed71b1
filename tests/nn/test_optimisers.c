/* test_optimisers.c - optimisers and schedules, trained in sessions, against PyTorch (vectors.py);
 * averages, accumulation and groups; what they say to wrong options. */
#include "tests/nn/vectors.h"
#include "tests/memory_check.h"
#include "tests/nn/folder.h"

static int has_rank(const ricci_tensor *p, void *user)
{
	return ricci_rank(p) == *(int *)user;
}

static const ricci_group b_apart[] = {{"b", .rate = 0.5, .decay = RICCI_NONE}};
static const ricci_group by_rank[] = {
	{"w", .rate = 1}, {.match = has_rank, .user = &(int){1}, .rate = 0.5, .decay = RICCI_NONE}};
static const ricci_group b_frozen[] = {{"b", .frozen = 1}};

static const struct Case {
	const char *name;
	ricci_optimiser o;
	int updates; /* of the 7 steps, those that update */
} cases[] = {
	{"sgd", RICCI_OPTIMISER(.rule = RICCI_SGD), 7},
	{"sgd", RICCI_OPTIMISER(.momentum = RICCI_NONE), 7},
	{"sgd_decay", RICCI_OPTIMISER(.decay = 0.25), 7},
	{"momentum", RICCI_OPTIMISER(.rule = RICCI_MOMENTUM, .decay = 0.25), 7},
	{"momentum", RICCI_OPTIMISER(.rule = RICCI_SGD, .momentum = 0.9, .decay = 0.25), 7},
	{"sgd", RICCI_OPTIMISER(.rule = RICCI_MOMENTUM, .momentum = RICCI_NONE), 7},
	{"nesterov", RICCI_OPTIMISER(.rule = RICCI_NESTEROV, .momentum = 0.75), 7},
	{"adam", RICCI_OPTIMISER(.rule = RICCI_ADAM), 7},
	{"adam_options",
	 RICCI_OPTIMISER(.rule = RICCI_ADAM, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0.125,
			 .decay = 0.25),
	 7},
	{"adam_beta1", RICCI_OPTIMISER(.rule = RICCI_ADAM, .beta1 = RICCI_NONE), 7},
	{"adamw", RICCI_OPTIMISER(.rule = RICCI_ADAMW), 7},
	{"adam", RICCI_OPTIMISER(.rule = RICCI_ADAMW, .decay = RICCI_NONE), 7},
	{"lamb", RICCI_OPTIMISER(.rule = RICCI_LAMB), 7},
	{"lamb_decay", RICCI_OPTIMISER(.rule = RICCI_LAMB, .decay = 0.25), 7},
	{"rmsprop", RICCI_OPTIMISER(.rule = RICCI_RMSPROP), 7},
	{"rmsprop_momentum", RICCI_OPTIMISER(.rule = RICCI_RMSPROP, .momentum = 0.5), 7},
	{"adagrad", RICCI_OPTIMISER(.rule = RICCI_ADAGRAD), 7},
	{"clip_norm", RICCI_OPTIMISER(.clip_norm = 0.25), 7},
	{"clip_value", RICCI_OPTIMISER(.clip_value = 0.5), 7},
	{"clip_both", RICCI_OPTIMISER(.clip_value = 0.5, .clip_norm = 0.25), 7},
	{"accumulate", RICCI_OPTIMISER(.rule = RICCI_ADAMW, .accumulate = 3), 2},
	{"average", RICCI_OPTIMISER(.rule = RICCI_ADAM, .average = 0.75), 7},
	{"everything",
	 RICCI_OPTIMISER(.rule = RICCI_ADAMW, .decay = 0.25, .accumulate = 2, .clip_norm = 2,
			 .average = 0.5),
	 3},
	{"groups",
	 RICCI_OPTIMISER(.rule = RICCI_ADAMW, .decay = 0.25, .ngroup = 1, .group = b_apart), 7},
	{"groups",
	 RICCI_OPTIMISER(.rule = RICCI_ADAMW, .decay = 0.25, .ngroup = 2, .group = by_rank), 7},
	{"frozen", RICCI_OPTIMISER(.ngroup = 1, .group = b_frozen), 7},
	{"amsgrad", RICCI_OPTIMISER(.rule = RICCI_AMSGRAD, .beta2 = 0.5), 7},
	{"amsgrad_decay", RICCI_OPTIMISER(.rule = RICCI_AMSGRAD, .decay = 0.25), 7},
	{"amsgradw", RICCI_OPTIMISER(.rule = RICCI_AMSGRADW, .beta1 = 0.5, .beta2 = 0.5), 7},
	{"maximise",
	 RICCI_OPTIMISER(.rule = RICCI_ADAMW, .decay = 0.25, .clip_norm = 2, .maximise = 1), 7},
};

typedef struct Net {
	ricci_graph *g;
	ricci_tensor *x, *t, *w, *b, *unused, *loss, *rate;
} Net;

static Net net_new(ricci_type type)
{
	Net n = {.g = ricci_graph_new()};
	n.x = ricci_input(n.g, "x", type, SHAPE(5, 3));
	n.t = ricci_input(n.g, "t", type, SHAPE(5, 4));
	n.w = ricci_param(n.g, "w", type, SHAPE(3, 4), ricci_constant(0));
	n.b = ricci_param(n.g, "b", type, SHAPE(4), ricci_constant(0));
	n.unused = ricci_param(n.g, "unused", type, SHAPE(2), ricci_constant(0));
	n.loss = ricci_op(n.g,
			  "A[i,j] += X[i,k] * W[k,j]; D[i,j] = tanh(A[i,j] + B[j]) - T[i,j];"
			  "L[] += D[i,j] * D[i,j]",
			  n.x, n.w, n.b, n.t);
	n.rate = ricci_learning_rate(n.g, 0.03125);
	return n;
}

/* Feeds values as t's type. */
static void feed(ricci_session *s, const ricci_tensor *t, double seed)
{
	double x[32];
	float f[32];
	int f64 = ricci_dtype(t) == RICCI_F64;
	int n = (int)(ricci_bytes(t) / (f64 ? sizeof *x : sizeof *f));
	values(seed, n, x);
	for (int i = 0; i < n; i++)
		f[i] = (float)x[i];
	CHECK_INT(ricci_feed(s, t, f64 ? (void *)x : f, ricci_bytes(t)), 0);
}

static void judge(ricci_session *s, const ricci_tensor *t, const char *name, const char *part,
		  double tol)
{
	double x[32];
	float f[32];
	char full[64];
	int f64 = ricci_dtype(t) == RICCI_F64;
	int n = (int)(ricci_bytes(t) / (f64 ? sizeof *x : sizeof *f));
	CHECK_INT(ricci_fetch(s, t, f64 ? (void *)x : f, ricci_bytes(t)), 0);
	for (int i = 0; i < n && !f64; i++)
		x[i] = f[i];
	snprintf(full, sizeof full, "optimisers/%s/%s", name, part);
	vector_check(full, n, x, tol);
}

/* Seven steps as vectors.py has them. */
static void train(const struct Case *c, ricci_type type, ricci_backend backend, double tol)
{
	Net n = net_new(type);
	ricci_options o = RICCI_OPTIONS(.backend = backend, .threads = 1);
	CHECK_INT(ricci_optimise(n.loss, n.rate, &c->o), 0);
	ricci_tensor *averaged = c->o.average ? ricci_averaged(n.loss) : NULL;
	CHECK_GRAPH(n.g);
	ricci_session *s = ricci_session_new(n.g, &o, 1, 1, &n.loss), *e = NULL;
	CHECK_REPORT(s != NULL, "%s: %s", c->name, ricci_error_message());
	if (averaged)
		CHECK((e = ricci_session_share(s, 0, 2, (ricci_tensor *[]){averaged, n.loss})));
	feed(s, n.w, 1);
	feed(s, n.b, 2);
	feed(s, n.unused, 3);
	for (int k = 0; k < 7; k++) {
		feed(s, n.x, 10 + k);
		feed(s, n.t, 20 + k);
		if (e && k == 0) { /* before the first update */
			double y[2] = {0, 1};
			feed(e, n.x, 10);
			feed(e, n.t, 20);
			CHECK_INT(ricci_step(e), 0);
			if (type == RICCI_F64) {
				ricci_fetch(e, averaged, &y[0], sizeof *y);
				ricci_fetch(e, n.loss, &y[1], sizeof *y);
				CHECK_NEAR(y[0], y[1], 0);
			}
		}
		CHECK_INT(ricci_step(s), 0);
	}
	judge(s, n.w, c->name, "w", tol);
	judge(s, n.b, c->name, "b", tol);
	judge(s, n.unused, c->name, "unused", tol);
	CHECK(!ricci_param_find(n.g, "ema.unused") && !ricci_param_find(n.g, "unused.moment1"));
	if (e) {
		feed(e, n.x, 16);
		feed(e, n.t, 26);
		CHECK_INT(ricci_step(e), 0);
		judge(e, averaged, c->name, "ema.loss", tol);
		judge(s, ricci_param_find(n.g, "ema.w"), c->name, "ema.w", tol);
		int32_t updates = 0;
		ricci_fetch(s, ricci_param_find(n.g, "ema.step"), &updates, sizeof updates);
		CHECK_INT(updates, c->updates);
	}
	ricci_session_free(e);
	ricci_session_free(s);
	ricci_graph_free(n.g);
}

static void rules(void)
{
	for (int k = 0; k < (int)(sizeof cases / sizeof *cases); k++) {
		train(&cases[k], RICCI_F64, RICCI_BACKEND_INTERP, 1e-12);
		train(&cases[k], RICCI_F64, RICCI_BACKEND_TCC, 1e-12);
		train(&cases[k], RICCI_F32, RICCI_BACKEND_TCC, 2e-6);
		struct Case scaled = cases[k]; /* the loss, which changes nothing */
		scaled.o.scaling = &RICCI_SCALING(.period = 2);
		train(&scaled, RICCI_F64, RICCI_BACKEND_TCC, 1e-12);
		train(&scaled, RICCI_F32, RICCI_BACKEND_TCC, 2e-6);
	}
}

/* The names under which checkpoints keep them. */
static void names(void)
{
	Net n = net_new(RICCI_F32);
	CHECK_INT(ricci_adam(n.loss, n.rate, 0.9, 0.999, 1e-8), 0);
	static const char *const want[] = {"w",		"b",	     "unused",	  "learning_rate",
					   "adam.step", "w.moment1", "w.moment2", "b.moment1",
					   "b.moment2"};
	for (int i = 0; i < 9; i++)
		CHECK_STR(ricci_name(ricci_param_at(n.g, i, NULL)), want[i]);
	CHECK_INT(ricci_param_count(n.g), 9);
	ricci_graph_free(n.g);

	n = net_new(RICCI_F32);
	CHECK_INT(ricci_momentum(n.loss, n.rate, 0.9), 0);
	CHECK_STR(ricci_name(ricci_param_at(n.g, 4, NULL)), "w.moment");
	CHECK_INT(ricci_param_count(n.g), 6);
	ricci_graph_free(n.g);
}

/* In a scope, states are still named after the parameter, and averages are found. */
static void scoped(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_scope_begin(g, "net");
	ricci_tensor *p = ricci_param(g, "p", RICCI_F32, SHAPE(2), ricci_constant(1));
	ricci_tensor *loss = ricci_op(g, "L[] += P[i] * P[i]", p);
	CHECK_INT(ricci_optimise(loss, ricci_learning_rate(g, 0.5),
				 &RICCI_OPTIMISER(.rule = RICCI_ADAM, .average = 0.5, .ngroup = 1,
						  .group = &(ricci_group){.names = "net.*"})),
		  0);
	CHECK(ricci_averaged(loss) != loss);
	CHECK_GRAPH(g);
	static const char *const want[] = {"net.p.moment1", "ema.net.p", "adam.step", "ema.step",
					   "net.learning_rate"};
	for (int i = 0; i < 5; i++)
		CHECK_REPORT(ricci_param_find(g, want[i]), "%s is missing", want[i]);
	CHECK_INT(ricci_scope_end(g), 0);
	ricci_graph_free(g);
}

/* bf16 parameters: their states are f32, and the update is f32's, rounded. */
static void narrow(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *p = ricci_param(g, "p", RICCI_BF16, SHAPE(2), ricci_constant(1));
	ricci_tensor *loss = ricci_op(g, "L[] += f32(P[i]) * f32(P[i])", p);
	CHECK_INT(ricci_optimise(loss, ricci_learning_rate(g, 0.25),
				 &RICCI_OPTIMISER(.rule = RICCI_MOMENTUM, .average = 0.5)),
		  0);
	CHECK_INT(ricci_dtype(ricci_param_find(g, "p.moment")), RICCI_F32);
	CHECK_INT(ricci_dtype(ricci_param_find(g, "ema.p")), RICCI_F32);
	ricci_options o = RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1);
	ricci_session *s = ricci_session_new(g, &o, 1, 1, &loss);
	uint16_t bits[2];
	float ema[2], m = 0, x = 1;
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	for (int k = 0; k < 2; k++) {
		CHECK_INT(ricci_step(s), 0);
		m = 0.9f * m + 2 * x;
		x -= 0.25f * m;
	}
	ricci_fetch(s, p, bits, sizeof bits);
	float got;
	uint32_t wide = (uint32_t)bits[0] << 16;
	memcpy(&got, &wide, sizeof got);
	CHECK_NEAR(got, x, fabs(x) / 256);
	ricci_fetch(s, ricci_param_find(g, "ema.p"), ema, sizeof ema);
	CHECK_NEAR(ema[0], 0.5 * 0.5 + 0.5 * got, 1e-6);
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* ---- resuming: what a checkpoint holds of sums, counts, averages and the schedule ---- */

typedef struct Run {
	Net n;
	ricci_session *s;
} Run;

static Run run_new(void)
{
	Run r = {.n = net_new(RICCI_F32)};
	ricci_tensor *rate =
		ricci_schedule(r.n.g, &RICCI_SCHEDULE(.kind = RICCI_COSINE, .rate = 0.125,
						      .steps = 5, .warmup = 2, .accumulate = 2));
	ricci_optimise(r.n.loss, rate,
		       &RICCI_OPTIMISER(.rule = RICCI_LAMB, .accumulate = 2, .average = 0.75));
	CHECK_GRAPH(r.n.g);
	ricci_options o =
		RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1, .static_mode = 1);
	r.s = ricci_session_new(r.n.g, &o, 1, 1, &r.n.loss);
	CHECK_REPORT(r.s != NULL, "%s", ricci_error_message());
	return r;
}

static void run_steps(Run *r, int from, int to)
{
	for (int k = from; k < to; k++) {
		feed(r->s, r->n.x, 10 + k);
		feed(r->s, r->n.t, 20 + k);
		CHECK_INT(ricci_step(r->s), 0);
	}
}

static void run_free(Run *r)
{
	ricci_session_free(r->s);
	ricci_graph_free(r->n.g);
}

/* A run that is saved within an accumulation and loaded gives the bits of one that went on. */
static void resumed(void)
{
	Run a = run_new(), b = run_new();
	feed(a.s, a.n.w, 1);
	feed(a.s, a.n.b, 2);
	run_steps(&a, 0, 5);
	CHECK(folder_make("optimisers"));
	int status = ricci_save(a.s, a.n.loss, in_folder("a.h5"), NULL, 0);
	if (status == RICCI_EUNSUPPORTED) {
		CHECK_SKIP("no HDF5");
	} else {
		CHECK_REPORT(!status, "%s", ricci_error_message());
		CHECK_INT(ricci_load(b.s, b.n.loss, in_folder("a.h5"), 0, NULL), 0);
		run_steps(&a, 5, 9);
		run_steps(&b, 5, 9);
		ricci_tensor *p;
		int compared = 0;
		for (int i = 0; (p = ricci_param_at(a.n.g, i, NULL)); i++, compared++) {
			char x[256], y[256];
			CHECK_INT(ricci_fetch(a.s, p, x, ricci_bytes(p)), 0);
			CHECK_INT(ricci_fetch(b.s, ricci_param_find(b.n.g, ricci_name(p)), y,
					      ricci_bytes(p)),
				  0);
			CHECK_REPORT(!memcmp(x, y, ricci_bytes(p)), "%s differs", ricci_name(p));
		}
		CHECK_INT(compared, 16);
	}
	folder_remove();
	run_free(&a);
	run_free(&b);
}

/* Two optimisers of one graph, each with its own part. */
static void two(void)
{
	Net n = net_new(RICCI_F64);
	const ricci_group not_w[] = {{"w", .frozen = 1}}, not_b[] = {{"b", .frozen = 1}};
	CHECK_INT(ricci_optimise(n.loss, n.rate,
				 &RICCI_OPTIMISER(.rule = RICCI_ADAM, .ngroup = 1, .group = not_w,
						  .name = "one")),
		  0);
	CHECK_INT(ricci_optimise(n.loss, n.rate,
				 &RICCI_OPTIMISER(.rule = RICCI_ADAM, .ngroup = 1, .group = not_b,
						  .name = "two")),
		  0);
	CHECK(ricci_param_find(n.g, "one.step") && ricci_param_find(n.g, "two.step"));
	CHECK(ricci_param_find(n.g, "w.moment1") && ricci_param_find(n.g, "b.moment1"));
	ricci_graph_free(n.g);
}

/* Many parameters, of two types: their norm is one number. */
static void many(void)
{
	enum { N = 150 };
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *p[N], *loss = NULL;
	for (int i = 0; i < N; i++) {
		char name[16];
		snprintf(name, sizeof name, "p%d", i);
		p[i] = ricci_param(g, name, i % 2 ? RICCI_F64 : RICCI_F32, 0, NULL,
				   ricci_constant(0));
		loss = loss ? ricci_op(g, "Y[] = L[] + 2 * f64(P[])", loss, p[i])
			    : ricci_op(g, "Y[] = 2 * f64(P[])", p[i]);
	}
	CHECK_INT(ricci_optimise(loss, ricci_learning_rate(g, 1), &RICCI_OPTIMISER(.clip_norm = 1)),
		  0);
	ricci_options o = RICCI_OPTIONS(.backend = RICCI_BACKEND_INTERP, .threads = 1);
	ricci_session *s = ricci_session_new(g, &o, 1, 1, &loss);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	CHECK_INT(ricci_step(s), 0);
	for (int i = 0; i < N; i++) {
		float f;
		double d;
		ricci_fetch(s, p[i], i % 2 ? (void *)&d : &f, ricci_bytes(p[i]));
		CHECK_NEAR(i % 2 ? d : f, -1 / sqrt(N), 1e-7);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* ---- schedules ---- */

static void rates(const char *name, ricci_schedule_options o)
{
	double got[40] = {0};
	char full[64];
	for (int pass = 0; pass < 2; pass++) {
		int every = pass ? 3 : 1;
		ricci_graph *g = ricci_graph_new();
		o.rate = 0.3;
		o.accumulate = pass ? every : 0;
		ricci_tensor *r = ricci_schedule(g, &o);
		CHECK_GRAPH(g);
		CHECK_INT(ricci_dtype(r), RICCI_F32);
		ricci_options so =
			RICCI_OPTIONS(.backend = pass ? RICCI_BACKEND_TCC : RICCI_BACKEND_INTERP,
				      .threads = 1);
		ricci_session *s = ricci_session_new(g, &so, 1, 1, &r);
		CHECK_REPORT(s != NULL, "%s", ricci_error_message());
		for (int k = 0; k < 40 * every && s; k++) {
			float f = 0;
			CHECK_INT(ricci_step(s), 0);
			CHECK_INT(ricci_fetch(s, r, &f, sizeof f), 0);
			CHECK(k % every == 0 || (float)got[k / every] == f);
			got[k / every] = f;
		}
		double want[40];
		snprintf(full, sizeof full, "schedules/%s/rate", name);
		vector_read(full, 40, want);
		for (int k = 0; k < 40; k++)
			CHECK_REPORT(check_near(got[k], want[k], 1e-7 * want[k]),
				     "%s[%d] is %.9g, should be %.9g", name, k, got[k], want[k]);
		ricci_session_free(s);
		ricci_graph_free(g);
	}
}

static void schedules(void)
{
	rates("constant", RICCI_SCHEDULE(.kind = RICCI_CONSTANT));
	rates("steps", RICCI_SCHEDULE(.kind = RICCI_STEPS, .period = 7, .gamma = 0.5));
	rates("milestones", RICCI_SCHEDULE(.kind = RICCI_STEPS, .nmilestone = 3,
					   .milestones = (int64_t[]){3, 10, 30}));
	rates("cosine", RICCI_SCHEDULE(.kind = RICCI_COSINE, .steps = 39, .least = 0.01));
	rates("cosine_held", RICCI_SCHEDULE(.kind = RICCI_COSINE, .steps = 25, .least = 0.01));
	rates("linear", RICCI_SCHEDULE(.kind = RICCI_LINEAR, .steps = 30, .least = 0.1));
	rates("one_cycle", RICCI_SCHEDULE(.kind = RICCI_ONE_CYCLE, .steps = 40));
	rates("one_cycle_warmup",
	      RICCI_SCHEDULE(.kind = RICCI_ONE_CYCLE, .steps = 40, .warmup = 10));
	rates("warmup_constant", RICCI_SCHEDULE(.kind = RICCI_CONSTANT, .warmup = 5));
	rates("warmup_cosine",
	      RICCI_SCHEDULE(.kind = RICCI_COSINE, .warmup = 5, .steps = 40, .least = 0.01));
	rates("warmup_milestones", RICCI_SCHEDULE(.kind = RICCI_STEPS, .warmup = 5, .nmilestone = 2,
						  .milestones = (int64_t[]){3, 20}));
}

/* A schedule trains: SGD's parameter moves by the rate of the step. */
static void scheduled(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *p = ricci_param(g, "p", RICCI_F64, 0, NULL, ricci_constant(0));
	ricci_tensor *loss = ricci_op(g, "L[] = P[] * 1.0", p);
	ricci_tensor *r = ricci_schedule(
		g, &RICCI_SCHEDULE(.kind = RICCI_LINEAR, .rate = 1, .warmup = 2, .steps = 4));
	CHECK_INT(ricci_sgd(loss, r), 0);
	ricci_options o = RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1);
	ricci_session *s = ricci_session_new(g, &o, 1, 1, &loss);
	const double want[] = {-0.5, -1.5, -2.5, -3, -3};
	for (int k = 0; k < 5; k++) {
		double x = 0;
		CHECK_INT(ricci_step(s), 0);
		ricci_fetch(s, p, &x, sizeof x);
		CHECK_NEAR(x, want[k], 1e-7);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* ---- errors ---- */

static void wrong_option(ricci_optimiser o, const char *message)
{
	Net n = net_new(RICCI_F32);
	CHECK_INT(ricci_optimise(n.loss, n.rate, &o), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), message);
	CHECK_INT(ricci_graph_error(n.g), RICCI_EINVAL);
	ricci_graph_free(n.g);
}

static void wrong_schedule(ricci_schedule_options o, const char *message)
{
	ricci_graph *g = ricci_graph_new();
	ricci_schedule(g, &o);
	CHECK_INT(ricci_graph_error(g), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), message);
	ricci_graph_free(g);
}

static void wrong_options(void)
{
	wrong_option(RICCI_OPTIMISER(.rule = (ricci_rule)99),
		     "ricci_optimise: there is no rule 99");
	wrong_option(RICCI_OPTIMISER(.beta1 = 0.5), "ricci_optimise: the rule sgd has no beta1");
	wrong_option(RICCI_OPTIMISER(.rule = RICCI_ADAM, .momentum = 0.5),
		     "ricci_optimise: the rule adam has no momentum");
	wrong_option(RICCI_OPTIMISER(.rule = RICCI_ADAM, .beta2 = 1),
		     "ricci_optimise: beta2 is 1, it must be at least 0 and less than 1");
	wrong_option(RICCI_OPTIMISER(.decay = -0.5),
		     "ricci_optimise: decay is -0.5, it must be finite, and 0 or more");
	wrong_option(RICCI_OPTIMISER(.average = 1),
		     "ricci_optimise: average is 1, it must be at least 0 and less than 1");
	wrong_option(RICCI_OPTIMISER(.clip_norm = -1),
		     "ricci_optimise: gradients are clipped at -1, it must be 0 (no clipping) or "
		     "more");
	wrong_option(RICCI_OPTIMISER(.accumulate = -2),
		     "ricci_optimise: accumulate is -2 batches, it must be 0 or more");
	wrong_option(RICCI_OPTIMISER(.ngroup = 1), "ricci_optimise: ngroup is 1, and group NULL");
	wrong_option(RICCI_OPTIMISER(.ngroup = 1, .group = &(ricci_group){.names = "conv.*"}),
		     "ricci_optimise: group 0 (conv.*) has no parameter");
	wrong_option(RICCI_OPTIMISER(.ngroup = 1, .group = &(ricci_group){"w", .rate = -1}),
		     "ricci_optimise: group 0: the rate's factor is -1, it must be 0 (usual: 1) or "
		     "more");
	wrong_option(RICCI_OPTIMISER(.ngroup = 1, .group = &(ricci_group){"*", .frozen = 1}),
		     "ricci_optimise: the loss depends on no parameter that is to be trained");
	wrong_schedule(RICCI_SCHEDULE(), "ricci_schedule: the rate is 0, it must be finite, and "
					 "more than 0");
	wrong_schedule(RICCI_SCHEDULE(.kind = RICCI_COSINE, .rate = 1, .warmup = 5),
		       "ricci_schedule: 0 steps in all, there must be more than those of the "
		       "warm-up, 5");
	wrong_schedule(RICCI_SCHEDULE(.kind = RICCI_STEPS, .rate = 1),
		       "ricci_schedule: RICCI_STEPS needs a period of 1 or more, or milestones");
	wrong_schedule(RICCI_SCHEDULE(.kind = RICCI_STEPS, .rate = 1, .nmilestone = 2,
				      .milestones = (int64_t[]){3, 3}),
		       "ricci_schedule: milestone 1 is 3, it must be above the one before, 3");
	wrong_schedule(RICCI_SCHEDULE(.kind = RICCI_ONE_CYCLE, .rate = 1, .steps = 3),
		       "ricci_schedule: RICCI_ONE_CYCLE needs a warm-up of 2 steps or more, or 4 "
		       "steps in all");
	wrong_schedule(RICCI_SCHEDULE(.rate = 1, .least = 2),
		       "ricci_schedule: the least rate is 2, it must be 0 to 1");
	wrong_schedule(RICCI_SCHEDULE(.kind = (ricci_schedule_kind)9, .rate = 1),
		       "ricci_schedule: there is no kind 9");
}

static void wrong(void)
{
	wrong_options();
	Net n = net_new(RICCI_F32);
	CHECK_INT(ricci_sgd(n.x, n.rate), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(),
		  "ricci_optimise: the loss has 2 dimensions, it must be a scalar, such as L[] += "
		  "X[i]");
	ricci_graph_free(n.g);
	n = net_new(RICCI_F32);
	CHECK_INT(ricci_sgd(n.loss, n.x), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(),
		  "ricci_optimise: the rate is a scalar tensor (ricci_learning_rate)");
	ricci_graph_free(n.g);
	n = net_new(RICCI_F32);
	CHECK_INT(ricci_sgd(n.loss, n.rate), 0);
	CHECK(ricci_averaged(n.loss) != n.loss);
	CHECK_STR(ricci_error_message(),
		  "ricci_averaged: the graph has no averages; ricci_optimise with average keeps "
		  "them");
	ricci_graph_free(n.g);
	n = net_new(RICCI_F32);
	CHECK_INT(ricci_sgd(n.loss, n.rate), 0);
	CHECK_INT(ricci_sgd(n.loss, n.rate), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "ricci_assign: w has a new value already");
	ricci_graph_free(n.g);
	CHECK_INT(ricci_optimise(NULL, NULL, NULL), RICCI_EINVAL);
	CHECK(!ricci_averaged(NULL));
	CHECK(!ricci_schedule(NULL, NULL));
}

static int build(void)
{
	Net n = net_new(RICCI_F64);
	ricci_tensor *rate = ricci_schedule(
		n.g, &RICCI_SCHEDULE(.kind = RICCI_STEPS, .rate = 1, .period = 5, .warmup = 2));
	ricci_optimise(n.loss, rate,
		       &RICCI_OPTIMISER(.rule = RICCI_LAMB, .accumulate = 2, .clip_norm = 1,
					.clip_value = 1, .average = 0.5));
	ricci_averaged(n.loss);
	int code = n.g ? ricci_graph_error(n.g) : RICCI_ENOMEM;
	ricci_graph_free(n.g);
	return code;
}

int main(void)
{
	rules();
	names();
	scoped();
	narrow();
	resumed();
	two();
	many();
	schedules();
	scheduled();
	wrong();
	check_memory(build);
	return check_done();
}

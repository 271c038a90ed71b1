/* The training loop on a small model: it learns, its lines have their exact form, a resumed run
 * equals one that never stopped, a stopped one is saved, evaluation agrees, mistakes are told. */
#include "nn/nn.h"
#include "tests/check.h"
#include "tests/nn/folder.h"

enum { BATCH = 20, TRAIN = 410, TEST = 110 };

typedef struct Case {
	ricci_graph *g;
	ricci_training t;
	ricci_report report;
	char *lines;
	size_t nlines;
} Case;

/* One linear layer and Adam. */
static Case case_new(double lr)
{
	Case c = {.g = ricci_graph_new(), .report = RICCI_REPORT()};
	ricci_graph *g = c.g;
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){BATCH, 784});
	ricci_tensor *y = ricci_input(g, "y", RICCI_I32, 1, (int64_t[]){BATCH});
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){10, 784}, ricci_lecun(784));
	ricci_tensor *b = ricci_param(g, "b", RICCI_F32, 1, (int64_t[]){10}, ricci_constant(0));
	ricci_tensor *z = ricci_linear(x, w, b);
	c.t = RICCI_TRAINING(.samples = x, .labels = y, .misclassified = ricci_misclassified(z, y));
	c.t.loss = ricci_cross_entropy(z, y);
	ricci_adam(c.t.loss, ricci_learning_rate(g, lr), 0.9, 0.999, 1e-8);
	CHECK_GRAPH(g);
	c.t.train = ricci_digits(TRAIN, 1);
	c.t.test = ricci_digits(TEST, 2);
	static const ricci_options options = {.size = sizeof options,
					      .backend = RICCI_BACKEND_TCC,
					      .threads = 1,
					      .static_mode = 1,
					      .seed = 42};
	c.t.options = &options;
	return c;
}

static int case_run(Case *c)
{
	free(c->lines);
	FILE *f = open_memstream(&c->lines, &c->nlines);
	c->t.lines = f;
	int status = ricci_train(&c->t, &c->report);
	fclose(f);
	return status;
}

static void case_free(Case *c)
{
	ricci_data_free(c->t.train);
	ricci_data_free(c->t.test);
	ricci_graph_free(c->g);
	free(c->lines);
}

/* The k-th line without what differs from run to run. */
static void line(const Case *c, int k, char *out, size_t n)
{
	const char *s = c->lines;
	for (; k-- && s;)
		s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL;
	snprintf(out, n, "%s", s ? s : "");
	char *cut = strstr(out, " images/s");
	if (cut)
		*cut = 0;
}

static void learns(void)
{
	Case c = case_new(1e-3);
	c.t.epochs = 4;
	c.t.checkpoint = in_folder("a.h5");
	c.t.picture = in_folder("loss.svg");
	CHECK_REPORT(case_run(&c) == 0, "%s", ricci_error_message());
	const char *s = c.lines;
	double last = 1e9;
	for (int k = 1; k <= 4; k++) {
		unsigned epoch;
		double loss, train, test, speed;
		int used = 0;
		CHECK_INT(sscanf(s,
				 "epoch %u loss %lf train_error %lf%% test_error %lf%% images/s "
				 "%lf\n%n",
				 &epoch, &loss, &train, &test, &speed, &used),
			  5);
		char again[160];
		snprintf(again, sizeof again,
			 "epoch %u loss %.4f train_error %.2f%% test_error %.2f%% images/s %.0f\n",
			 epoch, loss, train, test, speed);
		CHECK(!strncmp(s, again, strlen(again)));
		CHECK_INT(epoch, k);
		CHECK(loss < last);
		last = loss;
		s += used;
	}
	CHECK_STR(s, "");
	CHECK_INT(c.report.step, 4 * (TRAIN / BATCH));
	CHECK(c.report.train_error < 0.3);
	CHECK(c.report.test_error < 0.5);
	double trained = c.report.test_error;
	char picture[200] = "";
	FILE *f = fopen(c.t.picture, "r");
	CHECK(f && fread(picture, 1, 199, f) > 100);
	CHECK(!strncmp(picture, "<svg xmlns=", 11));
	if (f)
		fclose(f);
	case_free(&c);

	Case e = case_new(1e-3);
	e.t.evaluate = 1;
	e.t.resume = in_folder("a.h5");
	CHECK_INT(case_run(&e), 0);
	CHECK_NEAR(e.report.test_error, trained, 0);
	double shown;
	CHECK_INT(sscanf(e.lines, "test_error %lf%%\n", &shown), 1);
	CHECK_NEAR(shown, 100 * trained, 0.006);
	case_free(&e);
}

static uint64_t weights_sum(const char *path)
{
	Case c = case_new(1e-3);
	ricci_session *s = ricci_session_new(c.g, c.t.options, 0, 1, &c.t.misclassified);
	CHECK_INT(ricci_load(s, c.t.loss, path, 0, NULL), 0);
	uint64_t h = ricci_step_count(s);
	for (int i = 0; i < ricci_param_count(c.g); i++) {
		ricci_tensor *t = ricci_param_at(c.g, i, NULL);
		uint8_t *v = malloc(ricci_bytes(t));
		CHECK_INT(ricci_fetch(s, t, v, ricci_bytes(t)), 0);
		for (size_t k = 0; k < ricci_bytes(t); k++)
			h = (h ^ v[k]) * 0x100000001b3u;
		free(v);
	}
	ricci_session_free(s);
	case_free(&c);
	return h;
}

/* Stopped after `first` steps and continued equals never stopped, to the bit. */
static void resumes(int first)
{
	char a[160], b[160];
	Case whole = case_new(1e-3), part = case_new(1e-3), rest = case_new(1e-3);
	whole.t.epochs = part.t.epochs = rest.t.epochs = 3;
	whole.t.checkpoint = in_folder("whole.h5");
	whole.t.overwrite = part.t.overwrite = 1;
	CHECK_INT(case_run(&whole), 0);
	uint64_t want = weights_sum(in_folder("whole.h5"));
	part.t.steps = (uint64_t)first;
	part.t.checkpoint = in_folder("part.h5");
	CHECK_INT(case_run(&part), 0);
	CHECK_INT(part.report.step, first);
	CHECK(weights_sum(in_folder("part.h5")) != want);
	ricci_options other = *rest.t.options;
	other.seed = 7; /* the file's counts */
	rest.t.options = &other;
	rest.t.resume = rest.t.checkpoint = in_folder("part.h5");
	CHECK_REPORT(case_run(&rest) == 0, "%s", ricci_error_message());
	CHECK(weights_sum(in_folder("part.h5")) == want);
	int done = first / (TRAIN / BATCH);
	for (int k = done; k < 3; k++) {
		line(&whole, k, a, sizeof a);
		line(&rest, k - done, b, sizeof b);
		CHECK_STR(b, a);
	}
	case_free(&whole);
	case_free(&part);
	case_free(&rest);
}

static void stops(void)
{
	Case c = case_new(1e-3);
	c.t.epochs = 1000000;
	c.t.checkpoint = in_folder("stop.h5");
	c.t.stop = ricci_interrupted();
	alarm(60); /* a loop that does not stop ends the test */
	raise(SIGINT);
	CHECK_INT(case_run(&c), 0);
	alarm(0);
	CHECK_INT(c.report.stopped, SIGINT);
	ricci_position p = RICCI_POSITION();
	CHECK_INT(ricci_peek(c.t.checkpoint, &p), 0);
	CHECK_INT(p.step, c.report.step);
	CHECK_INT(p.epoch * (TRAIN / BATCH) * BATCH + p.index, p.step * BATCH);
	case_free(&c);
}

/* Targets of another type and shape, fed by the fields that `input` names: the net finds the matrix
 * that made them, and a resumed run continues bit for bit. */
static void targets(void)
{
	enum { N = 200, IN = 6, OUT = 4 };
	static double in[N][IN], out[N][2][2];
	float matrix[IN][OUT], found[IN][OUT], again[IN][OUT];
	for (int k = 0; k < IN * OUT; k++)
		(&matrix[0][0])[k] = (float)(k * 7 % 11) / 11;
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < IN; k++)
			in[i][k] = (double)((i * 31 + k * k * 17) % 101) / 50 - 1;
		for (int k = 0; k < OUT; k++)
			for (int j = 0; j < IN; j++)
				out[i][k / 2][k % 2] += in[i][j] * matrix[j][k];
	}
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){20, IN});
	ricci_tensor *y = ricci_input(g, "y", RICCI_F32, 2, (int64_t[]){20, OUT});
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){IN, OUT}, ricci_lecun(IN));
	ricci_tensor *z = ricci_op(g, "Z[b,n] += X[b,k] * W[k,n]", x, w);
	ricci_data *d = ricci_data_new();
	ricci_data_array(d, "from", RICCI_F64, 2, (int64_t[]){N, IN}, in);
	ricci_data_array(d, "to", RICCI_F64, 3, (int64_t[]){N, 2, 2}, out);
	ricci_fed input[] = {{y, "to"}, {x, "from"}};
	ricci_options options = RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1,
					      .static_mode = 1, .seed = 1);
	ricci_training t =
		RICCI_TRAINING(.loss = ricci_mean_squared_error(z, y), .train = d, .epochs = 30,
			       .ninput = 2, .input = input, .options = &options,
			       .checkpoint = in_folder("targets.h5"));
	t.misclassified = ricci_op(g, "E[b] += i32(Z[b,n] > 100)", z);
	ricci_adam(t.loss, ricci_learning_rate(g, 0.05), 0.9, 0.999, 1e-8);
	CHECK_GRAPH(g);
	ricci_report report = RICCI_REPORT();
	CHECK_REPORT(ricci_train(&t, &report) == 0, "%s", ricci_error_message());
	CHECK(report.loss < 1e-4);
	ricci_session *s = ricci_session_new(g, &options, 0, 1, &z);
	CHECK_INT(ricci_load(s, t.loss, t.checkpoint, 1, NULL), 0);
	CHECK_INT(ricci_fetch(s, w, found, sizeof found), 0);
	for (int k = 0; k < IN * OUT; k++)
		CHECK_NEAR((&found[0][0])[k], (&matrix[0][0])[k], 0.02);
	t.overwrite = 1;
	t.epochs = 0;
	t.steps = 137; /* within an epoch of ten */
	CHECK_INT(ricci_train(&t, &report), 0);
	t.resume = t.checkpoint;
	t.epochs = 30;
	t.steps = 0;
	CHECK_INT(ricci_train(&t, &report), 0);
	CHECK_INT(ricci_load(s, t.loss, t.checkpoint, 1, NULL), 0);
	CHECK_INT(ricci_fetch(s, w, again, sizeof again), 0);
	CHECK(!memcmp(found, again, sizeof found));
	input[0].field = "from";
	CHECK_INT(ricci_train(&t, &report), RICCI_ESHAPE);
	CHECK_STR(ricci_error_message(),
		  "a sample of the field 'from' has 6 elements, the input 'y' takes 4");
	ricci_session_free(s);
	ricci_graph_free(g);
	ricci_data_free(d);
}

/* A text in streams: the order is the text's, so a net that looks one character back learns it. */
static void text(void)
{
	const char *path = in_folder("text");
	FILE *f = fopen(path, "w");
	for (int i = 0; i < 400; i++)
		fputc("abcdefgh"[i % 8], f);
	fclose(f);
	ricci_data *d = ricci_text(path, &RICCI_READING(.length = 6, .streams = 4));
	CHECK_REPORT(d != NULL, "%s", ricci_error_message());
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_I32, 2, (int64_t[]){4, 6});
	ricci_tensor *y = ricci_input(g, "y", RICCI_I32, 2, (int64_t[]){4, 6});
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){8, 8}, ricci_normal(0.1));
	ricci_tensor *z = ricci_op(g, "Z[b,t,v] = W[X[b,t],v]", w, x);
	ricci_fed input[] = {{x, "samples"}, {y, "targets"}};
	ricci_training t =
		RICCI_TRAINING(.train = d, .test = d, .epochs = 30, .ninput = 2, .input = input,
			       .options = &RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC));
	t.loss = ricci_op(
		g, "S[b,t] += exp(Z[b,t,v]); L[] += (log(S[b,t]) - Z[b,t,Y[b,t]]) * (1.0/24)", z,
		y);
	t.misclassified = ricci_op(g, "E[b] += i32(Z[b,t,Y[b,t]] <= 0)", z, y);
	ricci_adam(t.loss, ricci_learning_rate(g, 0.1), 0.9, 0.999, 1e-8);
	CHECK_GRAPH(g);
	ricci_report report = RICCI_REPORT();
	CHECK_REPORT(ricci_train(&t, &report) == 0, "%s", ricci_error_message());
	CHECK_INT(report.step, 30 * (400 / 6 / 4));
	CHECK(report.loss < 0.05);
	CHECK_NEAR(report.test_error, 0, 0);
	ricci_graph_free(g);
	ricci_data_free(d);
	CHECK_INT(unlink(path), 0);
}

/* Inputs that don't go together, or not with the data. */
static void inputs(void)
{
	const char *why[] = {
		"the input 's' needs the batch as its first dimension",
		"the input 'u' has a batch of 7, the input 'x' has 20",
		"the field 'scores' has elements of type f32, the input 'y' takes i32",
	};
	for (int k = 0; k < 3; k++) {
		Case c = case_new(1e-3);
		static float scores[TRAIN];
		ricci_graph *g = c.g;
		ricci_tensor *s = ricci_input(g, "s", RICCI_F32, 0, NULL);
		ricci_tensor *u = ricci_input(g, "u", RICCI_F32, 1, (int64_t[]){7});
		ricci_fed input[] = {{k == 0 ? s : k == 1 ? u : c.t.labels, "scores"}};
		ricci_data_array(c.t.train, "scores", RICCI_F32, 1, (int64_t[]){TRAIN}, scores);
		c.t.epochs = 1;
		c.t.ninput = 1;
		c.t.input = input;
		c.t.labels = NULL;
		CHECK_INT(case_run(&c), k < 2 ? RICCI_ESHAPE : RICCI_ETYPE);
		CHECK_STR(ricci_error_message(), why[k]);
		case_free(&c);
	}
}

static void mistakes(void)
{
	Case c = case_new(1e-3);
	CHECK_INT(case_run(&c), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "ricci_train needs a limit: epochs or steps");
	c.t.epochs = 1;
	c.t.checkpoint = "/nowhere/a.h5";
	CHECK_INT(case_run(&c), RICCI_EIO);
	CHECK_STR(ricci_error_message(),
		  "cannot write /nowhere/a.h5: No such file or directory: /nowhere");
	c.t.checkpoint = NULL;
	c.t.resume = "/nowhere/a.h5";
	CHECK_INT(case_run(&c), RICCI_EIO);
	CHECK_STR(ricci_error_message(), "cannot read /nowhere/a.h5: No such file or directory");
	c.t.resume = NULL;
	c.t.samples = c.t.labels;
	CHECK_INT(case_run(&c), RICCI_ESHAPE);
	CHECK_STR(ricci_error_message(),
		  "a sample of the field 'samples' has 784 elements, the input 'y' takes 1");
	ricci_tensor *labels = c.t.labels;
	c.t.samples = NULL;
	CHECK_INT(case_run(&c), RICCI_EVALUE); /* not fed */
	c.t.labels = NULL;
	CHECK_INT(case_run(&c), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "a training needs inputs: samples and labels, or others");
	c.t.input = (ricci_fed[]){{labels, "pictures"}};
	c.t.ninput = 1;
	CHECK_INT(case_run(&c), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(),
		  "the data set has no field 'pictures', which feeds the input 'y'");
	case_free(&c);
	Case d = case_new(1e38);
	d.t.epochs = 3;
	d.t.checkpoint = in_folder("never.h5");
	CHECK_INT(case_run(&d), RICCI_EVALUE);
	CHECK(strstr(ricci_error_message(), "the training diverged"));
	CHECK(access(d.t.checkpoint, F_OK));
	case_free(&d);
	CHECK_INT(ricci_train(NULL, NULL), RICCI_EINVAL);
}

/* Memory runs out anywhere: an error, nothing kept, no file. */
static void no_memory(void)
{
	int status = -1, tries = 0;
	for (long n = 1; status && n < 1000000; n += 1 + n / 12, tries++) {
		long before = mem_live();
		Case c = case_new(1e-3);
		c.t.steps = 2;
		c.t.checkpoint = in_folder("memory.h5");
		mem_fail_at(n);
		status = case_run(&c);
		mem_fail_at(0);
		CHECK(status == 0 || *ricci_error_message());
		CHECK((status == 0) == !access(c.t.checkpoint, F_OK));
		case_free(&c);
		CHECK_INT(mem_live(), before);
	}
	CHECK_INT(status, 0);
	CHECK(tries > 30);
	CHECK_INT(unlink(in_folder("memory.h5")), 0);
}

static void histories(void)
{
	Curve *c = calloc(1, sizeof *c);
	for (uint64_t step = 1; step <= 100000; step++)
		curve_add(c, step, (double)step);
	CHECK(c->npoint > HISTORY_POINTS / 4 && c->npoint <= HISTORY_POINTS);
	for (int i = 0; i < c->npoint; i++)
		CHECK_NEAR(c->point[i][1], c->point[i][0] - (c->every - 1) / 2, 1e-6);
	CHECK(c->point[c->npoint - 1][0] > 100000 - c->every);
	free(c);
}

int main(void)
{
	if (!folder_make("train"))
		return 1;
	learns();
	resumes(7);
	resumes(40);
	resumes(47);
	targets();
	text();
	inputs();
	mistakes();
	histories();
	no_memory();
	stops();
	const char *names[] = {"a.h5",	     "loss.svg",       "whole.h5",	"part.h5",
			       "stop.h5",    "a.h5.prev",      "whole.h5.prev", "part.h5.prev",
			       "targets.h5", "targets.h5.prev"};
	folder_close(COUNT(names), names);
	return check_done();
}

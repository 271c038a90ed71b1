/* test_records.c - what a training measures, records and keeps: metrics against sums of its own,
 * validation, the value that decides, files of numbers, kept checkpoints; and that a training which
 * was stopped anywhere, within passes too, ends with the same files as one that never was. */
#include "nn/training/internal.h"
#include "tests/check.h"
#include "tests/nn/folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>

enum { BATCH = 20, TRAIN = 410, TEST = 110, PER_EPOCH = TRAIN / BATCH };

typedef struct Case {
	ricci_graph *g;
	ricci_training t;
	ricci_metric metric[4];
	ricci_report report;
	ricci_tensor *scores;
	char *lines;
	size_t nlines;
} Case;

static const ricci_options fixed = {.size = sizeof fixed,
				    .backend = RICCI_BACKEND_TCC,
				    .threads = 1,
				    .static_mode = 1,
				    .seed = 42};

/* One linear layer; average: of the parameters, 0: none. */
static Case case_new(double average)
{
	Case c = {.g = ricci_graph_new(), .report = RICCI_REPORT()};
	ricci_graph *g = c.g;
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){BATCH, 784});
	ricci_tensor *y = ricci_input(g, "y", RICCI_I32, 1, (int64_t[]){BATCH});
	ricci_scope_begin(g, "head");
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){10, 784}, ricci_lecun(784));
	ricci_scope_end(g);
	c.scores = ricci_linear(x, w, NULL);
	c.t = RICCI_TRAINING(.samples = x, .labels = y, .options = &fixed);
	c.t.misclassified = ricci_misclassified(c.scores, y);
	c.t.loss = ricci_cross_entropy(c.scores, y);
	c.t.learning_rate = ricci_learning_rate(g, 2e-3);
	ricci_optimise(c.t.loss, c.t.learning_rate,
		       &RICCI_OPTIMISER(.rule = RICCI_ADAM, .average = average));
	ricci_tensor *right = ricci_op(g, "R[b] = 1 - M[b]", c.t.misclassified);
	c.metric[0] = (ricci_metric){"right", right, RICCI_PERCENT};
	c.metric[1] = (ricci_metric){"mistakes", c.t.misclassified, RICCI_SUM};
	c.metric[2] = (ricci_metric){"perplexity", c.t.loss, RICCI_PERPLEXITY};
	c.metric[3] = (ricci_metric){"bits", c.t.loss, RICCI_BITS_PER_CHARACTER};
	c.t.nmetric = 4;
	CHECK_GRAPH(g);
	c.t.train = ricci_digits(TRAIN, 1);
	c.t.test = ricci_digits(TEST, 2);
	return c;
}

static int case_run(Case *c)
{
	free(c->lines);
	FILE *f = open_memstream(&c->lines, &c->nlines);
	c->t.lines = f;
	c->t.metric = c->metric;
	int status = ricci_train(&c->t, &c->report);
	fclose(f);
	return status;
}

static void case_free(Case *c)
{
	ricci_data_free(c->t.train);
	ricci_data_free(c->t.test);
	ricci_data_free(c->t.validation);
	ricci_graph_free(c->g);
	free(c->lines);
}

static char *file_text(const char *name, size_t *n)
{
	char *data;
	Error err = {0};
	CHECK_INT(file_read(in_folder(name), &data, n, &err), 0);
	CHECK_REPORT(data != NULL, "there is no %s", name);
	if (data)
		data[*n] = 0;
	return data ? data : mem_zalloc(1);
}

/* The value behind `name` in the k-th line that begins with `kind`. */
static double shown(const char *lines, const char *kind, int k, const char *name)
{
	char key[64], line[600] = "";
	for (const char *s = lines; s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL)
		if (!strncmp(s, kind, strlen(kind)) && k-- == 0)
			snprintf(line, sizeof line, "%.*s", (int)strcspn(s, "\n"), s);
	snprintf(key, sizeof key, " %s ", name);
	char *at = strstr(line, key);
	CHECK_REPORT(at != NULL, "no '%s' in '%s'", name, line);
	return at ? atof(at + strlen(key)) : NAN;
}

static void metrics(void)
{
	Case c = case_new(0);
	c.t.epochs = 2;
	c.t.validation = ricci_digits(TEST, 2); /* the test set: equal values */
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	const char *s = c.lines;
	for (int k = 0; k < 2; k++) {
		double error = shown(s, "epoch", k, "test_error");
		CHECK_NEAR(shown(s, "epoch", k, "test_right"), 100 - error, 0.011);
		CHECK_NEAR(shown(s, "epoch", k, "test_mistakes"), error / 100 * TEST, 0.01);
		CHECK_NEAR(shown(s, "epoch", k, "validation_error"), error, 0);
		double loss = shown(s, "epoch", k, "validation_loss");
		CHECK_NEAR(shown(s, "epoch", k, "validation_perplexity"), exp(loss), 2e-3);
		CHECK_NEAR(shown(s, "epoch", k, "validation_bits"), loss / log(2), 2e-4);
		CHECK_NEAR(shown(s, "epoch", k, "train_bits"),
			   shown(s, "epoch", k, "loss") / log(2), 2e-4);
		CHECK_NEAR(shown(s, "epoch", k, "train_mistakes"),
			   shown(s, "epoch", k, "train_error") / 100 * PER_EPOCH * BATCH, 0.03);
	}
	static const char *const order[] = {
		"epoch",      "loss",	   "train_error",     "train_right",	  "train_bits",
		"test_error", "test_bits", "validation_loss", "validation_error", "validation_bits",
		"images/s"};
	for (int i = 0, at = -1; i < COUNT(order); i++) {
		const char *is = strstr(s, order[i]);
		CHECK(is && is - s > at);
		at = is ? (int)(is - s) : at;
	}
	CHECK_NEAR(c.report.best,
		   fmin(shown(s, "epoch", 0, "validation_loss"),
			shown(s, "epoch", 1, "validation_loss")),
		   1e-4);
	case_free(&c);
}

/* Without errors of a classifier: the loss alone, of the test set too. */
static void regression(void)
{
	Case c = case_new(0);
	c.t.misclassified = NULL;
	c.t.nmetric = 0;
	c.t.epochs = 1;
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	double loss, test, speed;
	int used = 0;
	CHECK_INT(sscanf(c.lines, "epoch 1 loss %lf test_loss %lf images/s %lf\n%n", &loss, &test,
			 &speed, &used),
		  3);
	CHECK_STR(c.lines + used, "");
	CHECK_NEAR(c.report.train_error, -1, 0);
	CHECK(isnan(c.report.best));
	case_free(&c);
}

/* Labels that say nothing about the samples: validation gets worse, the training ends. */
static void patience(void)
{
	Case c = case_new(0);
	static int32_t labels[60];
	static float samples[60 * 784];
	for (int i = 0; i < 60; i++)
		labels[i] = i * 7 % 10;
	for (int i = 0; i < 60 * 784; i++)
		samples[i] = (float)(i * 37 % 101) / 101;
	c.t.validation = ricci_data_new();
	ricci_data_array(c.t.validation, "samples", RICCI_F32, 2, (int64_t[]){60, 784}, samples);
	ricci_data_array(c.t.validation, "labels", RICCI_I32, 1, (int64_t[]){60}, labels);
	c.t.validate_every = 7;
	c.t.patience = 4;
	c.t.keep_best = 1;
	c.t.epochs = 1000;
	c.t.checkpoint = in_folder("patient.h5");
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	CHECK_INT(c.report.exhausted, 1);
	CHECK_INT(c.report.step, c.report.best_step + 4 * 7);
	double best = INFINITY;
	int at = 0, n = 0;
	for (const char *s = c.lines; (s = strstr(s, "step ")); s++, n++) {
		double v = shown(s, "step", 0, "validation_loss");
		at = v < best ? n : at;
		best = fmin(best, v);
	}
	CHECK_INT((at + 1) * 7, c.report.best_step);
	CHECK_NEAR(c.report.best, best, 1e-4);
	ricci_position p = RICCI_POSITION();
	CHECK_INT(ricci_peek(in_folder("patient.h5.best"), &p), 0);
	CHECK_INT(p.step, c.report.best_step);
	c.t.resume = c.t.checkpoint; /* it has ended already */
	uint64_t end = c.report.step;
	CHECK_INT(case_run(&c), 0);
	CHECK_INT(c.report.step, end);
	CHECK_INT(c.report.exhausted, 1);
	Case e = case_new(0); /* the best weights give the best value */
	ricci_data_free(e.t.test);
	e.t.test = c.t.validation;
	c.t.validation = NULL;
	e.t.misclassified = NULL;
	e.t.nmetric = 0;
	e.t.evaluate = 1;
	e.t.resume = in_folder("patient.h5.best");
	CHECK_REPORT(!case_run(&e), "%s", ricci_error_message());
	CHECK_NEAR(atof(e.lines + strlen("test_loss ")), best, 1e-4);
	case_free(&c);
	case_free(&e);
}

/* Passes use the averages: as an evaluation of ricci_averaged says, apart from the loop. */
static void averages(void)
{
	Case c = case_new(0.9);
	c.t.epochs = 1;
	c.t.checkpoint = in_folder("mean.h5");
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	double want = c.report.test_error;
	Case e = case_new(0.9);
	e.t.evaluate = 1;
	e.t.resume = c.t.checkpoint;
	CHECK_REPORT(!case_run(&e), "%s", ricci_error_message());
	CHECK_NEAR(e.report.test_error, want, 0);
	Case own = case_new(0.9);
	ricci_tensor *out[] = {ricci_averaged(own.t.misclassified), own.t.misclassified};
	ricci_session *s = ricci_session_new(own.g, &fixed, 0, 2, out);
	CHECK_REPORT(!ricci_load(s, own.t.loss, c.t.checkpoint, 0, NULL), "%s",
		     ricci_error_message());
	int32_t wrong[2][BATCH], sum[2] = {0};
	for (int i = 0; i < 100; i += BATCH) {
		float x[BATCH * 784];
		int32_t y[BATCH];
		for (int b = 0; b < BATCH; b++) {
			uint8_t pixel[784], label;
			ricci_data_get(c.t.test, "samples", i + b, pixel, 784);
			ricci_data_get(c.t.test, "labels", i + b, &label, 1);
			for (int k = 0; k < 784; k++)
				x[b * 784 + k] = (float)pixel[k] * (1.0f / 255);
			y[b] = label;
		}
		ricci_feed(s, own.t.samples, x, sizeof x);
		ricci_feed(s, own.t.labels, y, sizeof y);
		CHECK_INT(ricci_step(s), 0);
		for (int k = 0; k < 2; k++) {
			ricci_fetch(s, out[k], wrong[k], sizeof wrong[k]);
			for (int b = 0; b < BATCH; b++)
				sum[k] += wrong[k][b];
		}
	}
	CHECK(sum[0] <= want * TEST && sum[0] >= want * TEST - 10); /* ten samples are left out */
	CHECK(sum[0] != sum[1]);
	ricci_session_free(s);
	case_free(&c);
	case_free(&e);
	case_free(&own);
}

/* ---- stopping and resuming */
static volatile sig_atomic_t stop_flag;
static void stop_now(int number)
{
	stop_flag = number;
}

static void run_features(Case *c, const char *stem)
{
	char name[5][64];
	static const char *const end[] = {".h5", ".csv", ".tfevents", ".svg"};
	static char path[4][500];
	for (int i = 0; i < 4; i++) {
		snprintf(name[i], sizeof name[i], "%s%s", stem, end[i]);
		snprintf(path[i], sizeof path[i], "%s", in_folder(name[i]));
	}
	c->t.epochs = 4;
	c->t.validation = ricci_digits(TEST, 3);
	c->t.validate_every = 9;
	c->t.patience = 100;
	c->t.keep_best = 1;
	c->t.keep = 2;
	c->t.watch = "validation_right";
	c->t.watch_greatest = 1;
	c->t.checkpoint = path[0];
	c->t.csv = path[1];
	c->t.events = path[2];
	c->t.picture = path[3];
}

/* The CSV without the last column, which has times. */
static char *csv_text(const char *name)
{
	size_t n;
	char *data = file_text(name, &n), *to = data;
	for (char *s = data; *s;) {
		char *end = strchr(s, '\n'), *last = end;
		CHECK(end != NULL);
		if (!end)
			break;
		while (last > s && *last != ',')
			last--;
		memmove(to, s, (size_t)(last - s));
		to += last - s;
		*to++ = '\n';
		s = end + 1;
	}
	*to = 0;
	return data;
}

/* The event file as text, wall times left out, by another decoder than the library's. */
static char *events_text(const char *name)
{
	size_t n, at = 0;
	char *data = file_text(name, &n);
	Text t = {0};
	while (at + 16 <= n) {
		uint64_t size, step = 0;
		memcpy(&size, data + at, 8);
		const unsigned char *e = (unsigned char *)data + at + 12, *end = e + size;
		CHECK(at + 16 + size <= n && e[0] == 9 && e[9] == 16);
		for (e += 10; e < end; e++) {
			step = step * 128 + (*e & 127);
			if (*e < 128)
				break;
			CHECK(e[1] < 128); /* two bytes: below 16384 */
			step = (e[0] & 127) + 128 * (uint64_t)e[1];
			e++;
			break;
		}
		text_add(&t, "%d:", (int)step);
		for (e++; e < end; e++)
			text_add(&t, "%02x", *e);
		text_add(&t, "\n");
		at += 16 + size;
	}
	CHECK_INT(at, n);
	mem_free(data);
	return t.s;
}

/* Without what tells of seconds, which differ. */
static void same_events(const char *a, const char *b)
{
	char *x = events_text(a), *y = events_text(b), *p = x, *q = y;
	int n = 0;
	for (; *p && *q; n++) {
		size_t i = strcspn(p, "\n"), k = strcspn(q, "\n");
		char *time = strstr(p, "7365636f6e6473"); /* "seconds" */
		size_t same = time && time < p + i ? (size_t)(time - p) : i;
		if (i != k || memcmp(p, q, same)) {
			CHECK_REPORT(false, "event %d: %.*s, should be %.*s", n, (int)i, p, (int)k,
				     q);
			break;
		}
		p += i + 1;
		q += k + 1;
	}
	CHECK(!*p && !*q);
	CHECK(n > 4 * PER_EPOCH);
	mem_free(x);
	mem_free(y);
}

static void same_bytes(const char *a, const char *b)
{
	size_t n, m;
	char *x = file_text(a, &n), *y = file_text(b, &m);
	CHECK_REPORT(n == m && !memcmp(x, y, n), "%s and %s differ", a, b);
	mem_free(x);
	mem_free(y);
}

static void same_files(const char *stem)
{
	static const char *const end[] = {".h5", ".h5.best", ".h5.step60", ".h5.step80"};
	char a[64], b[64];
	for (int i = 0; i < COUNT(end); i++) {
		snprintf(a, sizeof a, "whole%s", end[i]);
		snprintf(b, sizeof b, "%s%s", stem, end[i]);
		same_bytes(b, a);
	}
	snprintf(b, sizeof b, "%s.h5.step40", stem);
	CHECK(access(in_folder(b), F_OK) != 0);
	snprintf(b, sizeof b, "%s.csv", stem);
	char *want = csv_text("whole.csv"), *is = csv_text(b);
	CHECK_STR(is, want);
	mem_free(want);
	mem_free(is);
	snprintf(b, sizeof b, "%s.tfevents", stem);
	same_events(b, "whole.tfevents");
}

static void whole(void)
{
	Case c = case_new(0.9);
	run_features(&c, "whole");
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	CHECK_INT(c.report.step, 4 * PER_EPOCH);
	size_t n;
	char *svg = file_text("whole.svg", &n), *csv = csv_text("whole.csv");
	static const char *const title[] = {">loss<",	       ">errors after each epoch<",
					    ">right<",	       ">mistakes<",
					    ">perplexity<",    ">bits<",
					    ">learning rate<", ">time of a step<",
					    ">step<"};
	for (int i = 0; i < COUNT(title); i++)
		CHECK_REPORT(strstr(svg, title[i]) != NULL, "no %s", title[i]);
	CHECK(!strstr(svg, "nan") && !strstr(svg, "inf"));
	int rows = 0;
	for (const char *s = csv; (s = strchr(s, '\n')); s++)
		rows++;
	CHECK_INT(rows, 1 + 4 * PER_EPOCH + 4 + 4 * PER_EPOCH / 9);
	mem_free(svg);
	mem_free(csv);
	case_free(&c);
}

/* Stopped at steps, and by a timer wherever that comes. */
static void resumed(void)
{
	signal(SIGALRM, stop_now);
	int stops = 0;
	for (int i = 0; i < 40; i++) {
		Case c = case_new(0.9);
		run_features(&c, "part");
		if (i)
			c.t.resume = c.t.checkpoint;
		stop_flag = 0;
		c.t.stop = &stop_flag;
		if (i % 2 == 0 && i < 8)
			c.t.steps = (uint64_t[]){5, 9, 20, 47}[i / 2];
		else if (i < 30)
			setitimer(ITIMER_REAL,
				  &(struct itimerval){.it_value.tv_usec = 20000 + 15000 * i}, NULL);
		int status = case_run(&c);
		setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
		CHECK_REPORT(!status, "%s", ricci_error_message());
		stops += c.report.stopped != 0;
		bool end = !c.report.stopped && !c.t.steps;
		case_free(&c);
		if (end || status)
			break;
	}
	CHECK(stops > 0);
	same_files("part");
}

static void copy(const char *from, const char *to, size_t cut)
{
	size_t n;
	char *data = file_text(from, &n);
	Error err = {0};
	CHECK_INT(file_replace(in_folder(to), false, &(Bytes){data, n - cut}, 1, &err), 0);
	mem_free(data);
}

/* As after kill -9: files of numbers that are ahead of the checkpoint, with a torn end; kept
 * checkpoints of a future that comes again. */
static void killed(void)
{
	Case c = case_new(0.9);
	run_features(&c, "torn");
	c.t.steps = 20;
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	case_free(&c);
	copy("whole.csv", "torn.csv", 17);
	copy("whole.tfevents", "torn.tfevents", 9);
	copy("whole.h5.step80", "torn.h5.step80", 0);
	copy("whole.h5", "torn.h5.step77", 0);
	c = case_new(0.9);
	run_features(&c, "torn");
	c.t.resume = c.t.checkpoint;
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	case_free(&c);
	same_files("torn");
	CHECK(access(in_folder("torn.h5.step77"), F_OK) != 0);
}

/* ---- a file that can't grow for a while */
static void full_disk(void)
{
	Log log = {.fd = -1};
	Error err = {0};
	History *h = mem_zalloc(sizeof *h);
	history_start(h);
	h->ncolumn = 1;
	snprintf(h->column[0], COLUMN_NAME, "loss");
	const char *path = in_folder("full.csv");
	CHECK_INT(csv_open(&log, path, false, 0, h, &err), 0);
	struct rlimit old, low;
	getrlimit(RLIMIT_FSIZE, &old);
	low = old;
	low.rlim_cur = 120;
	for (int step = 1; step <= 9; step++) {
		double value = step;
		if (step == 4)
			setrlimit(RLIMIT_FSIZE, &low);
		if (step == 8)
			setrlimit(RLIMIT_FSIZE, &old);
		csv_add(&log, h, &(Entry){"step", 1, (uint64_t)step, &value, 0.5});
		int status = log_flush(&log, true, &err);
		size_t n;
		char *text = file_text("full.csv", &n);
		CHECK(n && text[n - 1] == '\n');
		mem_free(text);
		if (step == 6) { /* the first that does not fit: told once */
			CHECK_INT(status, RICCI_EIO);
			CHECK(strstr(err.text, "full.csv: File too large") != NULL);
			error_clear(&err);
		} else {
			CHECK_INT(status, 0);
		}
	}
	log_close(&log);
	size_t n;
	char *text = file_text("full.csv", &n);
	CHECK_STR(text, "of,epoch,step,loss,seconds_per_step\n"
			"step,1,1,1,0.5\nstep,1,2,2,0.5\nstep,1,3,3,0.5\nstep,1,4,4,0.5\n"
			"step,1,5,5,0.5\nstep,1,6,6,0.5\nstep,1,7,7,0.5\nstep,1,8,8,0.5\n"
			"step,1,9,9,0.5\n");
	mem_free(text);
	history_free(h);
	mem_free(h);
}

static void profiles(void)
{
	Case c = case_new(0);
	char *text;
	size_t n;
	c.t.steps = 5;
	c.t.profile = open_memstream(&text, &n);
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	fclose(c.t.profile);
	const char *layers = strstr(text, "layer\n");
	CHECK_REPORT(layers && strstr(layers, "  head\n"), "%s", text);
	free(text);
	case_free(&c);
}

/* ---- mistakes */
static void refuse(Case *c, int code, const char *message)
{
	CHECK_INT(case_run(c), code);
	CHECK_STR(ricci_error_message(), message);
}

static void mistakes(void)
{
	char want[700];
	Case c = case_new(0);
	c.t.epochs = 1;
	c.metric[1].name = "right";
	refuse(&c, RICCI_EINVAL, "there is a value 'right' already: the metric needs another name");
	c.metric[1].name = "a b";
	refuse(&c, RICCI_EINVAL,
	       "a metric's name is made of letters, digits and _, at most 40, not 'a b'");
	c.metric[1].name = "mistakes";
	c.metric[1].how = (ricci_metric_kind)9;
	refuse(&c, RICCI_EINVAL, "the metric mistakes is of no known kind: 9");
	c.metric[1] = (ricci_metric){"mistakes", ricci_param_at(c.g, 0, NULL), RICCI_MEAN};
	refuse(&c, RICCI_ESHAPE,
	       "the metric mistakes is a tensor of a batch of 10; it must be a scalar [] or have "
	       "the batch of 20 as its first dimension");
	c.t.nmetric = 15;
	refuse(&c, RICCI_EINVAL, "a training has 0 to 14 metrics, not 15, or `metric` is missing");
	c.t.nmetric = 0;
	c.t.patience = 2;
	refuse(&c, RICCI_EINVAL,
	       "there is no value 'validation_loss' to watch: there are loss, train_error, "
	       "test_error");
	c.t.watch = "rate";
	refuse(&c, RICCI_EINVAL,
	       "there is no value 'rate' to watch: there are loss, train_error, test_error");
	c.t.watch = "test_error";
	c.t.keep_best = 1;
	refuse(&c, RICCI_EINVAL, "keep_best needs a checkpoint's path");
	c.t.keep_best = 0;
	c.t.csv = in_folder("whole.csv");
	snprintf(want, sizeof want,
		 "%s exists: resume from it, or overwrite it (the option of that name), or save "
		 "elsewhere",
		 c.t.csv);
	refuse(&c, RICCI_EINVAL, want);
	case_free(&c);
	Case d = case_new(0.9);
	run_features(&d, "whole");
	d.t.resume = d.t.checkpoint;
	d.t.nmetric = 3;
	d.t.epochs = 5;
	snprintf(want, sizeof want,
		 "%s has other columns than this training: it cannot be continued; choose another "
		 "path",
		 d.t.csv);
	refuse(&d, RICCI_EFORMAT, want);
	case_free(&d);
}

/* Memory runs out anywhere: an error, nothing kept. */
static void no_memory(void)
{
	int status = -1, tries = 0;
	for (long n = 1; status && n < 1000000; n += 1 + n / 8, tries++) {
		long before = mem_live();
		Case c = case_new(0);
		run_features(&c, "memory");
		c.t.overwrite = 1;
		c.t.steps = 10;
		mem_fail_at(n);
		status = case_run(&c);
		mem_fail_at(0);
		CHECK(status == 0 || *ricci_error_message());
		case_free(&c);
		CHECK_INT(mem_live(), before);
	}
	CHECK_INT(status, 0);
	CHECK(tries > 30);
}

int main(void)
{
	if (!folder_make("records"))
		return 1;
	metrics();
	regression();
	patience();
	averages();
	whole();
	resumed();
	killed();
	full_disk();
	profiles();
	mistakes();
	no_memory();
	folder_remove();
	return check_done();
}

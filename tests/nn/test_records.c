/* test_records.c - what a training measures and tells: metrics against sums of the test's own,
 * validation, the value that decides, averages, profiles, the bar, where it diverged, mistakes. */
#define _GNU_SOURCE /* pseudo-terminals */
#include "tests/nn/training_case.h"

#include <fcntl.h>
#include <sys/ioctl.h>

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

/* A loss that becomes infinite in step 25: the message names the tensor and the step, what was saved
 * before stays. */
static void diverging(bool saved)
{
	Case c = case_new(0);
	ricci_tensor *n = ricci_state(c.g, "n", RICCI_F32, 0, NULL, ricci_constant(1));
	ricci_assign(c.g, n, ricci_op(c.g, "Y[] = N[] + 1", n));
	ricci_tensor *far = ricci_op(c.g, "Y[] = 1 / max(25 - N[], 0)", n);
	c.t.loss = ricci_op(c.g, "Y[] = L[] + 0.001 * F[]", c.t.loss, far);
	c.t.nmetric = 0;
	c.t.epochs = 3;
	c.t.checkpoint = saved ? in_folder("far.h5") : NULL;
	CHECK_INT(case_run(&c), RICCI_EVALUE);
	const char *said = ricci_error_message();
	CHECK_REPORT(strstr(said,
			    "the loss of step 25 is inf: the training diverged; a smaller "
			    "learning rate may help\nfound with checks, steps counted from 0: "
			    "step 24: 'T5' becomes infinite at []") != NULL,
		     "%s", said);
	CHECK(strstr(said, "T5[] = T4[] + 0.001*(1/max(25 - n[], 0))") != NULL);
	ricci_position p = RICCI_POSITION();
	CHECK_INT(saved ? ricci_peek(c.t.checkpoint, &p) : 0, 0);
	CHECK_INT(p.step, saved ? PER_EPOCH : 0);
	CHECK(access(in_folder("far.h5"), F_OK) == (saved ? 0 : -1));
	case_free(&c);
}

/* What a terminal shows: epochs and steps, throughput, the time left of the epoch and in all. */
static void bar(void)
{
	Case c = case_new(0);
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	if (master < 0 || grantpt(master) || unlockpt(master)) {
		CHECK_SKIP("no pseudo-terminals");
		case_free(&c);
		return;
	}
	c.t.progress = fopen(ptsname(master), "w");
	ioctl(master, TIOCSWINSZ, &(struct winsize){.ws_row = 24, .ws_col = 150});
	fcntl(master, F_SETFL, O_NONBLOCK);
	c.t.epochs = 3;
	c.t.steps = 50;
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	static char text[1 << 16];
	ssize_t n = 0, more;
	while ((more = read(master, text + n, sizeof text - 1 - (size_t)n)) > 0)
		n += more;
	fclose(c.t.progress);
	close(master);
	text[n] = 0;
	CHECK_REPORT(strstr(text, "epoch 1/3 step 1/50 [##") != NULL, "%s", text);
	const char *left = strstr(text, " images/s ETA 0:00/0:0");
	CHECK_REPORT(left != NULL, "%s", text);
	CHECK(strstr(text, "test [") != NULL);
	CHECK(n > 4 && !strcmp(text + n - 4, "\r\033[K"));
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
	c.t.initial = 1;
	refuse(&c, RICCI_EINVAL, "initial needs a checkpoint's path");
	c.t.initial = 0;
	case_free(&c);
}

int main(void)
{
	if (!folder_make("records"))
		return 1;
	metrics();
	regression();
	patience();
	averages();
	profiles();
	diverging(false);
	diverging(true);
	bar();
	mistakes();
	folder_remove();
	return check_done();
}

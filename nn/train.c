/* train.c - the training loop.
 * Input: a graph with a loss and assignments, data sets, limits. Output: one line an epoch,
 * checkpoints, a picture. Invariant: what a step computes depends on the checkpointed position and
 * the seed only, so that a resumed run continues as if it had never stopped, sums of the epoch
 * included. */
#include "nn/nn.h"

#include <math.h>
#include <string.h>

typedef struct Run {
	const ricci_training *t;
	ricci_report *report;
	ricci_session *session, *judge;
	Feed feed, tests;
	ricci_options options;
	ricci_position at;
	History history;
	Progress bar;
	int batch;
	int64_t per_epoch; /* samples */
	uint64_t first;	   /* the step this run began with */
	int32_t *wrong;
	double seconds;	  /* training, of this epoch in this run */
	int64_t measured; /* samples in that time */
	Error err;	  /* of this call, or of a file that is tried again later */
} Run;

#define FAIL(r, code, ...) error_set(&(r)->err, code, __VA_ARGS__)

/* What `stop` holds. */
static int run_stopped(const Run *r)
{
	return r->t->stop ? *r->t->stop : 0;
}

static int64_t elements(const ricci_tensor *t)
{
	int64_t n = 1;
	for (int d = 0; d < ricci_rank(t); d++)
		n *= ricci_extent(t, d);
	return n;
}

static int run_check(Run *r)
{
	const ricci_training *t = r->t;
	if (!t->misclassified || (!t->evaluate && (!t->loss || !t->train)) ||
	    (t->evaluate && !t->test))
		return FAIL(r, RICCI_EINVAL, "ricci_train needs errors, and %s",
			    t->evaluate ? "test data" : "a loss and training data");
	ricci_graph *g = ricci_graph_of(t->misclassified);
	if (ricci_graph_error(g))
		return ricci_graph_error(g);
	if (feed_inputs(&r->feed, t, &r->err))
		return r->err.code;
	r->batch = (int)r->feed.batch;
	r->tests = r->feed;
	if (elements(t->misclassified) != r->batch || ricci_dtype(t->misclassified) != RICCI_I32)
		return FAIL(r, RICCI_ESHAPE, "ricci_train takes errors i32 [batch]");
	if (t->loss && (ricci_rank(t->loss) || ricci_dtype(t->loss) != RICCI_F32))
		return FAIL(r, RICCI_ESHAPE, "the loss is one f32 number, [], not of rank %d",
			    ricci_rank(t->loss));
	if (t->epochs < 0 || !(t->tune >= 0))
		return FAIL(r, RICCI_EINVAL, "ricci_train: %s is less than 0",
			    t->epochs < 0 ? "epochs" : "tune");
	if (!t->evaluate && t->epochs <= 0 && !t->steps)
		return FAIL(r, RICCI_EINVAL, "ricci_train needs a limit: epochs or steps");
	int status = t->train ? feed_check(&r->feed, t->train, &r->err) : 0;
	if (!status && t->test)
		status = feed_check(&r->feed, t->test, &r->err);
	if (!t->evaluate && (t->compress < 0 || t->compress > 9))
		return FAIL(r, RICCI_EINVAL, "compress is a level of gzip, 0..9, not %d",
			    t->compress);
	if (!status && t->checkpoint && !t->evaluate)
		status = checkpoint_check(t->checkpoint, &r->err);
	if (!status && t->checkpoint && !t->evaluate && !t->overwrite &&
	    file_there(t->checkpoint, t->resume))
		status = FAIL(r, RICCI_EINVAL,
			      "%s exists: resume from it, or overwrite it (the option of that "
			      "name), or save elsewhere",
			      t->checkpoint);
	if (!status && t->picture && !t->evaluate)
		status = file_check(t->picture, &r->err);
	return status;
}

/* The first batches are made while the session is. */
static int run_loader(Run *r)
{
	const ricci_training *t = r->t;
	if (feed_open(&r->feed, t->train, true, r->options.seed))
		return RICCI_EINVAL;
	r->per_epoch = ricci_data_count(t->train) / r->batch * r->batch;
	if (r->at.index > (uint64_t)r->per_epoch ||
	    ricci_loader_seek(r->feed.loader, r->at.epoch, (int64_t)r->at.index))
		return FAIL(r, RICCI_EFORMAT, "%s continues at sample %llu, there are %lld",
			    t->resume ? t->resume : "the run", (unsigned long long)r->at.index,
			    (long long)ricci_data_count(t->train));
	return 0;
}

static int tune_show(void *run, double spent, double part)
{
	Run *r = run;
	char values[32];
	int64_t total = (int64_t)(10 * r->t->tune), done = (int64_t)(10 * spent);

	snprintf(values, sizeof values, "to %.0f%%", 100 * part);
	progress_show(&r->bar, "tuning", values, NULL, 0, done < total ? done : total, total,
		      spent);
	return run_stopped(r);
}

static int run_tune(Run *r)
{
	if (r->t->tune > 0 && ricci_tune(r->session, r->t->tune, tune_show, r))
		return RICCI_EINVAL;
	progress_clear(&r->bar);
	return 0;
}

/* The session, continued from the checkpoint to resume. Its seed comes from there too. */
static int run_session(Run *r)
{
	const ricci_training *t = r->t;
	ricci_tensor *outputs[2] = {t->misclassified, t->loss};
	int status = 0;
	float rate = 0;
	if (t->resume && (status = ricci_peek(t->resume, &r->at)))
		return status;
	r->options = RICCI_OPTIONS();
	if (t->options &&
	    struct_take(&r->options, sizeof r->options, t->options, "ricci_options", &r->err))
		return r->err.code;
	if (t->resume && !t->evaluate)
		r->options.seed = r->at.seed;
	if (!t->evaluate && (status = run_loader(r)))
		return status;
	r->session = ricci_session_new(ricci_graph_of(t->misclassified), &r->options, !t->evaluate,
				       t->evaluate ? 1 : 2, outputs);
	if (!r->session)
		return RICCI_EINVAL;
	if (!t->resume)
		return 0;
	if (t->rate && !t->evaluate && ricci_fetch(r->session, t->rate, &rate, sizeof rate))
		return RICCI_EINVAL;
	status = checkpoint_load(r->session, t->evaluate ? t->misclassified : t->loss, t->resume,
				 t->evaluate, &r->at, &r->history, &r->err);
	if (!status && t->rate && !t->evaluate)
		ricci_feed(r->session, t->rate, &rate, sizeof rate);
	return status;
}

/* One pass over the test set: the fraction of errors; -1 where it was stopped. */
static int run_evaluate(Run *r, double *error)
{
	const ricci_training *t = r->t;
	int64_t wrong = 0, done = 0, total = ricci_data_count(t->test);
	double start = clock_seconds();
	if (!r->judge && !t->evaluate)
		r->judge = ricci_session_share(r->session, 0, 1, &t->misclassified);
	ricci_session *s = t->evaluate ? r->session : r->judge;
	if (!s || (!r->tests.loader && feed_open(&r->tests, t->test, false, 0)))
		return RICCI_ENOMEM;
	ricci_loader_seek(r->tests.loader, 0, 0);
	for (;;) {
		if (run_stopped(r)) {
			*error = -1;
			return 0;
		}
		int n = feed_next(&r->tests, s);
		if (n <= 0) {
			*error = done ? (double)wrong / (double)done : 0;
			return n;
		}
		if (ricci_step(s) ||
		    ricci_fetch(s, t->misclassified, r->wrong, ricci_bytes(t->misclassified)))
			return RICCI_EVALUE;
		for (int i = 0; i < n; i++)
			wrong += r->wrong[i];
		done += n;
		progress_show(&r->bar, "test", "", "images", 0, done, total,
			      clock_seconds() - start);
	}
}

static int run_save(Run *r)
{
	const ricci_training *t = r->t;
	if (!t->checkpoint)
		return 0;
	return checkpoint_save(r->session, t->loss, t->output ? t->output : t->misclassified,
			       t->checkpoint, &r->at, &r->history, t->compress, true, &r->err);
}

static int run_draw(Run *r)
{
	return r->t->picture ? history_draw(&r->history, r->t->picture, &r->err) : 0;
}

/* A file that could not be written in the midst of a training is told and tried again later: hours
 * of work are worth more. */
static void run_warn(Run *r, int status)
{
	if (status && r->t->progress) {
		progress_clear(&r->bar);
		fprintf(r->t->progress, "warning: %s\n", r->err.text);
	}
	error_clear(&r->err);
}

static void run_line(Run *r, bool tested)
{
	const ricci_report *p = r->report;
	FILE *out = r->t->lines;
	progress_clear(&r->bar);
	if (!out)
		return;
	fprintf(out, "epoch %llu loss %.4f train_error %.2f%%", (unsigned long long)p->epoch,
		p->loss, 100 * p->train_error);
	if (tested)
		fprintf(out, " test_error %.2f%%", 100 * p->test_error);
	fprintf(out, " images/s %.0f\n", p->images_per_second);
	fflush(out);
}

/* The end of an epoch, or of the run within one. */
static int run_epoch_end(Run *r, bool whole)
{
	ricci_report *p = r->report;
	double samples = (double)r->at.batches * r->batch;
	p->epoch = r->at.epoch + 1;
	p->step = ricci_step_count(r->session);
	p->loss = r->at.loss_sum / (double)r->at.batches;
	p->train_error = (double)r->at.wrong / samples;
	p->images_per_second = r->seconds > 0 ? (double)r->measured / r->seconds : 0;
	p->test_error = -1;
	/* a short run within an epoch is not made long by judging it: a step counts as three passes
	 */
	int64_t judging = (ricci_data_count(r->t->test) + r->batch - 1) / r->batch;
	bool tested = r->t->test && (whole || 3 * (int64_t)(p->step - r->first) >= judging);
	int status = tested ? run_evaluate(r, &p->test_error) : 0;
	if (status)
		return status;
	tested = tested && p->test_error >= 0;
	if (whole) {
		HistoryEpoch e = {(double)p->step, p->loss, p->train_error, p->test_error};
		if (history_epoch(&r->history, e))
			return FAIL(r, RICCI_ENOMEM, "out of memory");
		r->at = RICCI_POSITION(.epoch = r->at.epoch + 1);
		r->seconds = 0;
		r->measured = 0;
	}
	run_line(r, tested);
	return 0;
}

/* With the batch that was fed. */
static int run_step(Run *r)
{
	const ricci_training *t = r->t;
	ricci_session *s = r->session;
	float loss;
	if (ricci_step(s) || ricci_fetch(s, t->loss, &loss, sizeof loss) ||
	    ricci_fetch(s, t->misclassified, r->wrong, ricci_bytes(t->misclassified)))
		return RICCI_EVALUE;
	if (!isfinite(loss))
		return FAIL(r, RICCI_EVALUE,
			    "the loss of step %llu is %f: the training diverged; a smaller "
			    "learning rate "
			    "may help",
			    (unsigned long long)ricci_step_count(s), loss);
	for (int i = 0; i < r->batch; i++)
		r->at.wrong += (uint64_t)r->wrong[i];
	r->at.loss_sum += loss;
	r->at.batches++;
	r->at.index += (uint64_t)r->batch;
	r->measured += r->batch;
	history_add(&r->history, ricci_step_count(s), loss);
	return 0;
}

static void run_show(Run *r, int64_t limit)
{
	char label[48], values[96];
	if (!r->bar.out)
		return;
	if (r->t->epochs > 0)
		snprintf(label, sizeof label, "epoch %llu/%d", (unsigned long long)r->at.epoch + 1,
			 r->t->epochs);
	else
		snprintf(label, sizeof label, "epoch %llu", (unsigned long long)r->at.epoch + 1);
	snprintf(values, sizeof values, "loss %.4f error %.2f%%",
		 r->at.loss_sum / (double)r->at.batches,
		 100 * (double)r->at.wrong / ((double)r->at.batches * r->batch));
	int64_t index = (int64_t)r->at.index;
	progress_show(&r->bar, label, values, "images", index - r->measured, index, limit,
		      r->seconds);
}

/* Steps until the epoch or the run ends. *whole: the epoch did. */
static int run_epoch(Run *r, bool *whole)
{
	const ricci_training *t = r->t;
	uint64_t step = ricci_step_count(r->session);
	int64_t left = r->per_epoch - (int64_t)r->at.index, steps = (int64_t)(t->steps - step);
	if (t->steps && steps < left / r->batch)
		left = steps * r->batch;
	int64_t limit = (int64_t)r->at.index + left;
	*whole = false;
	while ((int64_t)r->at.index < limit && !run_stopped(r)) {
		double start = clock_seconds();
		int n = feed_next(&r->feed, r->session);
		if (n < 0)
			return n;
		int status = n ? run_step(r) : FAIL(r, RICCI_EINTERNAL, "an epoch ended early");
		if (status)
			return status;
		r->seconds += clock_seconds() - start;
		run_show(r, limit);
	}
	*whole = (int64_t)r->at.index >= r->per_epoch;
	if (*whole && feed_next(&r->feed, r->session) < 0)
		return RICCI_EIO; /* the end mark of the epoch; the next one begins behind it */
	return 0;
}

static bool run_ended(const Run *r)
{
	const ricci_training *t = r->t;
	return (t->epochs > 0 && r->at.epoch >= (uint64_t)t->epochs) ||
	       (t->steps && ricci_step_count(r->session) >= t->steps) || run_stopped(r);
}

static int run_train(Run *r)
{
	r->first = ricci_step_count(r->session);
	int status = 0;
	while (!status && !run_ended(r)) {
		bool whole;
		status = run_epoch(r, &whole);
		if (!status && (whole || !run_stopped(r)))
			status = run_epoch_end(r, whole);
		if (!status && whole && !run_ended(r)) {
			int saved = run_save(r);
			if (saved == RICCI_EVALUE)
				return saved; /* diverged */
			run_warn(r, saved);
			run_warn(r, run_draw(r));
		}
	}
	progress_clear(&r->bar);
	r->report->step = ricci_step_count(r->session);
	r->report->stopped = run_stopped(r);
	if (!status)
		status = run_save(r);
	if (!status)
		status = run_draw(r);
	return status;
}

static int run_judge(Run *r)
{
	int status = run_evaluate(r, &r->report->test_error);
	progress_clear(&r->bar);
	r->report->stopped = run_stopped(r);
	if (!status && r->t->lines && r->report->test_error >= 0) {
		fprintf(r->t->lines, "test_error %.2f%%\n", 100 * r->report->test_error);
		fflush(r->t->lines);
	}
	return status;
}

static int run(Run *r)
{
	int status = run_check(r);
	if (!status && !(r->wrong = mem_alloc((size_t)r->batch * sizeof *r->wrong)))
		status = FAIL(r, RICCI_ENOMEM, "out of memory");
	if (!status)
		status = run_session(r);
	if (!status)
		status = run_tune(r);
	if (!status)
		status = r->t->evaluate ? run_judge(r) : run_train(r);
	progress_clear(&r->bar);
	return status;
}

static void run_free(Run *r)
{
	feed_close(&r->feed);
	feed_close(&r->tests);
	ricci_session_free(r->judge);
	ricci_session_free(r->session);
	history_free(&r->history);
	mem_free(r->wrong);
	mem_free(r);
}

int ricci_train(const ricci_training *t, ricci_report *report)
{
	Error *err = ERROR_TELL;
	ricci_training own;
	ricci_report told = RICCI_REPORT(), unused;
	if (!t)
		return error_set(err, RICCI_EINVAL,
				 "ricci_train needs a description of the training");
	if (struct_take(&own, sizeof own, t, "ricci_training", err) ||
	    (report && struct_take(&unused, sizeof unused, report, "ricci_report", err)))
		return err->code;
	Run *r = mem_zalloc(sizeof *r);
	if (!r)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	r->t = &own;
	r->report = &told;
	r->err.tell = true;
	r->at = RICCI_POSITION();
	r->bar = progress_start(own.progress);
	int status = run(r);
	run_free(r);
	if (report)
		struct_give(report, &told, sizeof told);
	return status;
}

/* ---- signals */
static const int ends[] = {SIGINT, SIGTERM, SIGHUP}; /* the process, unless they are handled */
/* What a signal handler can reach: the flag, and what the signals did before. */
static volatile sig_atomic_t interrupted;
static struct sigaction before[COUNT(ends)];

static void interrupt(int number)
{
	for (int i = 0; i < COUNT(ends); i++)
		sigaction(ends[i], &before[i], NULL);
	interrupted = number;
}

const volatile sig_atomic_t *ricci_interrupted(void)
{
	struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART}, old;
	interrupted = 0;
	for (int i = 0; i < COUNT(ends); i++)
		sigaddset(&action.sa_mask, ends[i]);
	for (int i = 0; i < COUNT(ends); i++) {
		sigaction(ends[i], NULL, &old);
		if (old.sa_handler == interrupt ||
		    (ends[i] == SIGHUP && old.sa_handler == SIG_IGN)) /* nohup */
			continue;
		before[i] = old;
		/* A shell starts what runs in the background with ctrl-C ignored: then the first
		 * signal is meant for it, and so is the second. */
		if (old.sa_handler == SIG_IGN)
			before[i] = (struct sigaction){.sa_handler = SIG_DFL};
		sigaction(ends[i], &action, NULL);
	}
	return &interrupted;
}

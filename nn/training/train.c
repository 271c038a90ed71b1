/* train.c - the training loop.
 * Input: a graph with a loss and assignments, data sets, limits. Output: one line an epoch,
 * checkpoints, files of numbers, a picture. Invariant: what a step computes depends on the
 * checkpointed position and the seed only, so that a resumed run continues as if it had never
 * stopped, sums of the epoch included. An epoch ends when its passes over test and validation data
 * are done: where they were stopped, the position is at the end of its samples, and the resumed run
 * does them. */
#include "nn/training/internal.h"

#include <math.h>
#include <string.h>

int run_stopped(const Run *r)
{
	return r->t->stop ? *r->t->stop : 0;
}

/* ---- beginning */

/* The first batches are made while the session is. */
static int run_loader(Run *r)
{
	const ricci_training *t = r->t;
	if (feed_open(&r->feed, t->train, true, r->options.seed))
		return RICCI_EINVAL;
	r->per_epoch = ricci_data_count(t->train) / r->batch * r->batch;
	if (r->at.index % (uint64_t)r->batch)
		return FAIL(r, RICCI_EFORMAT,
			    "%s continues at sample %llu of an epoch, which no batch of %lld "
			    "begins: it "
			    "was saved by another model, or with another batch",
			    t->resume, (unsigned long long)r->at.index, (long long)r->batch);
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
	progress_show(&r->bar, &(Bar){.label = "tuning",
				      .values = values,
				      .done = done < total ? done : total,
				      .total = total,
				      .seconds = spent});
	return run_stopped(r);
}

static int run_tune(Run *r)
{
	if (r->t->tune > 0 && ricci_tune(r->session, r->t->tune, tune_show, r))
		return RICCI_EINVAL;
	progress_clear(&r->bar);
	return 0;
}

/* What the session computes: measures and the rate, each once. */
int run_outputs(const Run *r, ricci_tensor **outputs)
{
	const Measures *m = r->t->evaluate ? &r->evaluated : &r->measures;
	int n = 0;
	for (int i = 0; i <= m->n; i++) {
		ricci_tensor *t = i < m->n	   ? m->m[i].tensor
				  : r->t->evaluate ? NULL
						   : r->t->learning_rate;
		int k = 0;
		while (k < n && outputs[k] != t)
			k++;
		if (t && k == n)
			outputs[n++] = t;
	}
	return n;
}

int run_restore(Run *r, ricci_session *s, ricci_position *at, History *old, Error *err)
{
	const ricci_training *t = r->t;
	bool own_rate = t->rate && !t->evaluate && !r->saved_here;
	float rate = 0;
	if (own_rate && ricci_fetch(s, t->rate, &rate, sizeof rate))
		return RICCI_EINVAL;
	int status = checkpoint_load(s, run_model(r), r->saved,
				     t->evaluate ? LOAD_VALUES : LOAD_ALL, at, old, err);
	if (!status && own_rate)
		status = ricci_feed(s, t->rate, &rate, sizeof rate);
	return status;
}

/* Do the tokens of the data mean what they meant in the checkpoint to resume? */
static int check_alphabet(Run *r)
{
	const ricci_training *t = r->t;
	uint32_t *saved;
	int n, own;
	const uint32_t *alphabet = ricci_text_alphabet(t->train ? t->train : t->test, &own);
	if (!alphabet || checkpoint_alphabet(t->resume, &saved, &n, &r->err))
		return r->err.code;
	bool same = !saved || (n == own && !memcmp(saved, alphabet, sizeof *saved * (size_t)n));
	mem_free(saved);
	return same ? 0
		    : FAIL(r, RICCI_EVALUE,
			   "%s was trained on a text of another alphabet (%d characters; this one "
			   "has %d); read this text with its alphabet: .alphabet_of in "
			   "ricci_reading",
			   t->resume, n, own);
}

/* The state of the checkpoint to resume. */
static int run_load(Run *r)
{
	if (check_alphabet(r))
		return r->err.code;
	History *old = mem_zalloc(sizeof *old);
	if (!old)
		return FAIL(r, RICCI_ENOMEM, "out of memory");
	r->saved = r->t->resume;
	int status = run_restore(r, r->session, &r->at, old, &r->err);
	r->saved_step = ricci_step_count(r->session);
	if (!status && !r->t->evaluate && history_adopt(&r->history, old))
		status = FAIL(r, RICCI_ENOMEM, "out of memory");
	history_free(old);
	mem_free(old);
	if (status || r->t->evaluate)
		return status;
	Sums *s = &r->history.sums;
	s->sum[r->loss] = r->at.loss_sum;
	s->count[r->loss] = (double)r->at.batches;
	if (r->error >= 0) {
		s->sum[r->error] = (double)r->at.wrong;
		s->count[r->error] = (double)r->at.batches * r->batch;
	}
	return 0;
}

/* The session, continued from the checkpoint to resume. Its seed comes from there too. */
static int run_session(Run *r)
{
	const ricci_training *t = r->t;
	ricci_tensor *outputs[METRICS + 1];
	int status = 0;
	if (t->resume && (status = ricci_peek(t->resume, &r->at)))
		return status;
	r->options = RICCI_OPTIONS();
	if (t->options &&
	    struct_take(&r->options, sizeof r->options, t->options, "ricci_options", &r->err))
		return r->err.code;
	if (t->resume && !t->evaluate)
		r->options.seed = r->at.seed;
	if ((!t->evaluate && (status = run_loader(r))) || (status = run_evaluated(r)))
		return status;
	int n = run_outputs(r, outputs);
	r->session = ricci_session_new(ricci_graph_of(run_model(r)), &r->options, !t->evaluate, n,
				       outputs);
	if (!r->session)
		return RICCI_EINVAL;
	return t->resume ? run_load(r) : 0;
}

/* ---- steps */

/* With the batch that was fed. */
static int run_step(Run *r, double start)
{
	ricci_session *s = r->session;
	const ricci_tensor *rated = r->t->learning_rate;
	Sums *sums = &r->history.sums;
	float loss, rate = NAN;
	if (ricci_step(s) || ricci_fetch(s, r->t->loss, &loss, sizeof loss) ||
	    (rated && ricci_fetch(s, rated, &rate, sizeof rate)))
		return RICCI_EVALUE;
	if (!isfinite(loss))
		return FAIL(r, RICCI_EVALUE,
			    "the loss of step %llu is %f: the training diverged; a smaller "
			    "learning rate may help",
			    (unsigned long long)ricci_step_count(s), loss),
		       run_diverged(r);
	if (measures_add(&r->measures, s, r->batch, 1, sums))
		return RICCI_EVALUE;
	r->at.loss_sum = sums->sum[r->loss];
	r->at.wrong = r->error < 0 ? 0 : (uint64_t)sums->sum[r->error];
	r->at.batches++;
	r->at.index += (uint64_t)r->batch;
	r->measured += r->batch;
	double seconds = clock_seconds() - start;
	r->seconds += seconds;
	run_log_step(r, loss, rate, seconds);
	return 0;
}

static void values_clear(double *value)
{
	for (int c = 0; c < COLUMNS; c++)
		value[c] = NAN;
}

/* A validation within an epoch, where one is due and not done. */
static int run_validate(Run *r)
{
	const ricci_training *t = r->t;
	double value[COLUMNS];
	bool done;
	uint64_t step = ricci_step_count(r->session);
	if (!t->validation || !t->validate_every || !step || step % t->validate_every ||
	    r->history.watch.validated >= (double)step)
		return 0;
	values_clear(value);
	int status = run_evaluate(r, DURING_VALIDATION, value, &done);
	if (status || !done)
		return status;
	r->history.watch.validated = (double)step;
	r->report->step = step;
	run_watch(r, value);
	status = run_record(r, "validation", r->at.epoch + 1, value);
	run_line(r, value, false);
	run_warn(r, run_save_best(r));
	return status;
}

/* Saves in the midst of a training: a file that can't be written is told, a diverged net ends it. */
static int run_save_midst(Run *r)
{
	int saved = run_save(r);
	if (saved == RICCI_EVALUE)
		return run_diverged(r);
	run_warn(r, saved);
	return 0;
}

/* Behind the validation of a step, whose rows are not written again by a run that resumes there. */
static bool run_save_due(const Run *r)
{
	uint64_t every = r->t->checkpoint_every, step = ricci_step_count(r->session);
	return every && step % every == 0 && step != r->saved_step &&
	       (int64_t)r->at.index < r->per_epoch;
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
	for (;;) {
		int status = run_validate(r);
		if (!status && run_save_due(r))
			status = run_save_midst(r);
		if (status)
			return status;
		if ((int64_t)r->at.index >= limit || run_stopped(r) || run_exhausted(r))
			break;
		double start = clock_seconds();
		int n = feed_next(&r->feed, r->session);
		if (n < 0)
			return n;
		status = n ? run_step(r, start) : FAIL(r, RICCI_EINTERNAL, "an epoch ended early");
		if (status)
			return status;
		run_show(r, limit);
	}
	*whole = (int64_t)r->at.index >= r->per_epoch;
	if (*whole && feed_next(&r->feed, r->session) < 0)
		return RICCI_EIO; /* the end mark of the epoch; the next one begins behind it */
	return 0;
}

/* ---- epochs */

/* Passes at the end of an epoch, or of the run within one. *done: none was stopped. */
static int run_passes(Run *r, bool whole, double *value, bool *done)
{
	const ricci_training *t = r->t;
	ricci_report *p = r->report;
	/* a short run within an epoch is not made long by judging it: a step counts as three passes
	 */
	int64_t judging = (ricci_data_count(t->test) + r->batch - 1) / r->batch;
	int status = 0;
	*done = true;
	if (t->test && (whole || 3 * (int64_t)(p->step - r->first) >= judging))
		status = run_evaluate(r, DURING_TEST, value, done);
	int error = column_of(&r->columns, DURING_TEST, r->error);
	p->test_error = error < 0 || isnan(value[error]) ? -1 : value[error];
	if (!status && *done && whole && t->validation && !t->validate_every)
		status = run_evaluate(r, DURING_VALIDATION, value, done);
	return status;
}

/* The end of an epoch, or of the run within one. *ended: it is one of an epoch, and whole. */
static int run_epoch_end(Run *r, bool *whole)
{
	ricci_report *p = r->report;
	const Sums *sums = &r->history.sums;
	double value[COLUMNS];
	bool done;
	values_clear(value);
	for (int c = 0; c < r->measures.n; c++)
		value[c] = measure_value(&r->measures.m[c], sums, c);
	p->epoch = r->at.epoch + 1;
	p->step = ricci_step_count(r->session);
	p->loss = value[r->loss];
	p->train_error = r->error < 0 ? -1 : value[r->error];
	p->images_per_second = r->seconds > 0 ? (double)r->measured / r->seconds : 0;
	int status = run_passes(r, *whole, value, &done);
	*whole = *whole && done;
	if (status || (!done && run_stopped(r)))
		return status;
	if (*whole) {
		run_watch(r, value);
		status = run_record(r, "epoch", p->epoch, value);
		r->at = RICCI_POSITION(.epoch = r->at.epoch + 1);
		r->history.sums = (Sums){0};
		r->seconds = 0;
		r->measured = 0;
	}
	run_line(r, value, true);
	if (*whole && !status)
		run_warn(r, run_save_best(r));
	return status;
}

static bool run_ended(const Run *r)
{
	const ricci_training *t = r->t;
	return t->initial || (t->epochs > 0 && r->at.epoch >= (uint64_t)t->epochs) ||
	       (t->steps && ricci_step_count(r->session) >= t->steps &&
		(int64_t)r->at.index < r->per_epoch) ||
	       run_exhausted(r) || run_stopped(r);
}

static int run_draw(Run *r)
{
	return r->t->picture ? picture_draw(&r->history, &r->columns, &r->measures, r->t->picture,
					    &r->err)
			     : 0;
}

static int run_epochs(Run *r)
{
	int status = 0;
	while (!status && !run_ended(r)) {
		bool whole;
		status = run_epoch(r, &whole);
		if (!status && (whole || !run_stopped(r)))
			status = run_epoch_end(r, &whole);
		if (!status && whole && !run_ended(r)) {
			status = run_save_midst(r);
			run_warn(r, run_draw(r));
		}
	}
	return status;
}

static int run_train(Run *r)
{
	r->first = ricci_step_count(r->session);
	int status = run_files_open(r);
	/* a process that was killed between saving and keeping */
	if (!status && r->t->resume && r->t->checkpoint && file_there(r->t->checkpoint, NULL) &&
	    !file_there(r->t->checkpoint, r->t->resume))
		status = run_keep(r);
	if (!status && r->t->profile)
		status = ricci_time_kernels(r->session, 1);
	if (!status)
		status = run_epochs(r);
	progress_clear(&r->bar);
	r->report->step = ricci_step_count(r->session);
	r->report->stopped = run_stopped(r);
	r->report->exhausted = run_exhausted(r);
	r->report->best = r->history.watch.best;
	r->report->best_step = (uint64_t)r->history.watch.step;
	if (status)
		run_flush(r, true);
	else if ((status = run_save(r)) == RICCI_EVALUE)
		run_diverged(r);
	if (!status)
		status = run_draw(r);
	if (!status && r->t->profile && r->report->step > r->first)
		status = layers_profile(r->session, r->t->profile, &r->err);
	return status;
}

static int run_test(Run *r)
{
	double value[COLUMNS];
	bool done;
	values_clear(value);
	int status = run_evaluate(r, DURING_TEST, value, &done);
	int error = column_of(&r->columns, DURING_TEST, r->error);
	progress_clear(&r->bar);
	r->report->stopped = run_stopped(r);
	r->report->test_error = done && error >= 0 ? value[error] : -1;
	if (!status && done)
		run_line(r, value, false);
	return status;
}

static int run(Run *r)
{
	int status = run_check(r);
	if (!status)
		status = run_session(r);
	if (!status)
		status = run_tune(r);
	if (!status)
		status = r->t->evaluate ? run_test(r) : run_train(r);
	progress_clear(&r->bar);
	return status;
}

static Run *run_new(const ricci_training *t, ricci_report *told)
{
	Run *r = mem_zalloc(sizeof *r);
	if (!r)
		return NULL;
	r->t = t;
	r->report = told;
	r->err.tell = true;
	r->at = RICCI_POSITION();
	history_start(&r->history);
	r->csv.fd = r->events.fd = -1;
	r->bar = progress_start(t->progress);
	told->best = NAN;
	return r;
}

static void run_free(Run *r)
{
	feed_close(&r->feed);
	feed_close(&r->tests);
	feed_close(&r->validation);
	ricci_session_free(r->evaluation);
	ricci_session_free(r->session);
	measures_free(&r->measures);
	measures_free(&r->evaluated);
	log_close(&r->csv);
	log_close(&r->events);
	history_free(&r->history);
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
	Run *r = run_new(&own, &told);
	if (!r)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	int status = run(r);
	run_free(r);
	if (report)
		struct_give(report, &told, sizeof told);
	return status;
}

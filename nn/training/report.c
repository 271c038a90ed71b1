/* report.c - what a run tells: its lines, its bar, the rows of its files, its history.
 * Input: values of columns. Output: text on streams, rows of files, records. Invariant: a file that
 * can't be written in the midst of a training is told and tried again later: hours of work are worth
 * more. */
#include "nn/training/internal.h"

#include <math.h>

void run_warn(Run *r, int status)
{
	if (status && r->t->progress) {
		progress_clear(&r->bar);
		fprintf(r->t->progress, "warning: %s\n", r->err.text);
	}
	error_clear(&r->err);
}

int run_files_open(Run *r)
{
	const ricci_training *t = r->t;
	uint64_t step = ricci_step_count(r->session);
	int status = 0;
	if (t->csv)
		status = csv_open(&r->csv, t->csv, t->resume, step, &r->history, &r->err);
	if (!status && t->events)
		status = events_open(&r->events, t->events, t->resume, step, &r->err);
	return status;
}

void run_flush(Run *r, bool now)
{
	run_warn(r, log_flush(&r->csv, now, &r->err));
	run_warn(r, log_flush(&r->events, now, &r->err));
}

static void run_log(Run *r, const Entry *e)
{
	if (r->csv.fd >= 0)
		csv_add(&r->csv, &r->history, e);
	if (r->events.fd >= 0)
		events_add(&r->events, &r->history, e);
	run_flush(r, false);
}

void run_log_step(Run *r, double loss, double rate, double seconds)
{
	uint64_t step = ricci_step_count(r->session);
	double value[COLUMNS];
	for (int c = 0; c < r->columns.n; c++)
		value[c] = r->columns.column[c].when == RATE ? rate : NAN;
	value[column_of(&r->columns, DURING_TRAINING, r->loss)] = loss;
	curve_add(&r->history.loss, step, loss);
	curve_add(&r->history.seconds, step, seconds);
	if (!isnan(rate))
		curve_add(&r->history.rate, step, rate);
	run_log(r, &(Entry){"step", r->at.epoch + 1, step, value, seconds});
}

int run_record(Run *r, const char *of, uint64_t epoch, const double *value)
{
	uint64_t step = ricci_step_count(r->session);
	if (history_record(&r->history, epoch, step, value))
		return FAIL(r, RICCI_ENOMEM, "out of memory");
	run_log(r, &(Entry){of, epoch, step, value, NAN});
	return 0;
}

/* What is counted in a second, and how many of them a sample has: the characters of a text. */
static const char *unit_of(const Run *r, int64_t *each)
{
	const ricci_training *t = r->t;
	*each = 1;
	if (!t->train || !r->feed.n || !ricci_text_alphabet(t->train, NULL))
		return "images";
	*each = tensor_size(r->feed.input[0].tensor->node) / r->batch;
	return "characters";
}

void run_line(Run *r, const double *value, bool whole)
{
	FILE *out = r->t->lines;
	const char *space = "";
	progress_clear(&r->bar);
	if (!out)
		return;
	if (!r->t->evaluate) {
		fprintf(out, whole ? "epoch %llu" : "step %llu",
			(unsigned long long)(whole ? r->report->epoch : r->report->step));
		space = " ";
	}
	for (int c = 0; c < r->columns.n; c++) {
		const Column *k = &r->columns.column[c];
		if (k->when == RATE || isnan(value[c]))
			continue;
		fprintf(out, "%s%s", space, r->history.column[c]);
		fprintf(out, k->percent ? " %.2f%%" : " %.4f", (k->percent ? 100 : 1) * value[c]);
		space = " ";
	}
	if (whole) {
		int64_t each;
		const char *unit = unit_of(r, &each);
		fprintf(out, " %s/s %.0f", unit, (double)each * r->report->images_per_second);
	}
	fputc('\n', out);
	fflush(out);
}

/* Samples left in the epochs and steps behind this one; 0: not known. */
static int64_t left_behind(const Run *r, int64_t limit)
{
	const ricci_training *t = r->t;
	int64_t epochs = INT64_MAX, steps = INT64_MAX;
	if (t->epochs > 0)
		epochs = ((int64_t)t->epochs - (int64_t)r->at.epoch - 1) * r->per_epoch;
	if (t->steps)
		steps = (int64_t)(t->steps - ricci_step_count(r->session)) * r->batch -
			(limit - (int64_t)r->at.index);
	int64_t left = epochs < steps ? epochs : steps;
	return left == INT64_MAX || left < 0 ? 0 : left;
}

void run_show(Run *r, int64_t limit)
{
	char label[80], values[96];
	const Sums *s = &r->history.sums;
	const ricci_training *t = r->t;
	if (!r->bar.out)
		return;
	int n = snprintf(label, sizeof label, "epoch %llu", (unsigned long long)r->at.epoch + 1);
	if (t->epochs > 0)
		n += snprintf(label + n, sizeof label - (size_t)n, "/%d", t->epochs);
	if (t->steps)
		snprintf(label + n, sizeof label - (size_t)n, " step %llu/%llu",
			 (unsigned long long)ricci_step_count(r->session),
			 (unsigned long long)t->steps);
	n = snprintf(values, sizeof values, "loss %.4f", s->sum[r->loss] / s->count[r->loss]);
	if (r->error >= 0)
		snprintf(values + n, sizeof values - (size_t)n, " error %.2f%%",
			 100 * s->sum[r->error] / s->count[r->error]);
	int64_t index = (int64_t)r->at.index, each;
	const char *unit = unit_of(r, &each);
	progress_show(&r->bar, &(Bar){.label = label,
				      .values = values,
				      .unit = unit,
				      .first = each * (index - r->measured),
				      .done = each * index,
				      .total = each * limit,
				      .all = each * left_behind(r, limit),
				      .seconds = r->seconds});
}

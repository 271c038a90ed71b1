/* diverged.c - where a training that diverged made its first NaN or infinity.
 * Input: a run whose loss or parameters are not finite. Output: its error, and behind it the first
 * tensor, its equations and the step. The steps since the last state that was saved (or the first
 * one) are done again, with checks, in a session beside the run's. Invariant: in static mode the
 * same bits come again; nothing is saved. */
#include "nn/training/internal.h"

#include <string.h>

/* More steps than this and than an epoch has are not done again. */
enum { STEPS_AGAIN = 1000 };

/* A session with checks, in the last state that there is; NULL on error. */
static ricci_session *checked_open(Run *r, ricci_position *at, Error *err)
{
	ricci_options options = r->options;
	ricci_tensor *outputs[METRICS + 1];
	options.check_finite = 1;
	int n = run_outputs(r, outputs);
	ricci_session *s = ricci_session_new(ricci_graph_of(run_model(r)), &options, 1, n, outputs);
	*at = RICCI_POSITION();
	if (s && r->saved && run_restore(r, s, at, NULL, err)) {
		ricci_session_free(s);
		return NULL;
	}
	return s;
}

/* Does the steps again; 0, or the error of the one that made no number. */
static int steps_again(Run *r, ricci_session *s, const ricci_position *at, uint64_t until)
{
	if (ricci_loader_seek(r->feed.loader, at->epoch, (int64_t)at->index))
		return 0;
	while (ricci_step_count(s) < until && !run_stopped(r)) {
		int n = feed_next(&r->feed, s); /* 0 at the end of an epoch */
		if (n < 0)
			return 0;
		if (n && ricci_step(s))
			return RICCI_EVALUE;
	}
	return 0;
}

int run_diverged(Run *r)
{
	Error err = {0};
	ricci_position at;
	char what[ERROR_TEXT], why[ERROR_TEXT];
	uint64_t until = ricci_step_count(r->session), again = until - r->saved_step;
	snprintf(what, sizeof what, "%s", r->err.text);
	snprintf(why, sizeof why,
		 "the last state is %llu steps old; with a checkpoint, or RICCI_CHECK=nan, the "
		 "tensor would be named",
		 (unsigned long long)again);
	if (again <= STEPS_AGAIN || again <= (uint64_t)(r->per_epoch / r->batch)) {
		ricci_session *s = checked_open(r, &at, &err);
		snprintf(why, sizeof why, "step %llu to %llu with checks: all numbers were finite",
			 (unsigned long long)r->saved_step + 1, (unsigned long long)until);
		if (!s || steps_again(r, s, &at, until))
			snprintf(why, sizeof why, "found with checks, steps counted from 0: %s",
				 ricci_error_message());
		ricci_session_free(s);
	}
	error_clear(&r->err);
	return FAIL(r, RICCI_EVALUE, "%s\n%s", what, why);
}

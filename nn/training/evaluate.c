/* evaluate.c - passes over test and validation data.
 * Input: a run whose session holds the parameters. Output: what is measured, over all samples.
 * Invariant: a pass changes neither parameters nor states. */
#include "nn/training/internal.h"

#include <math.h>

int run_evaluated(Run *r)
{
	const Measures *m = &r->measures;
	ricci_graph *g = ricci_graph_of(run_model(r));
	bool averages = ricci_param_find(g, AVERAGE_COUNT) && (r->t->test || r->t->validation);
	for (int i = 0; i < m->n; i++) {
		Measure *j = &r->evaluated.m[i];
		*j = m->m[i];
		j->values = mem_alloc(ricci_bytes(j->tensor));
		if (!j->values)
			return FAIL(r, RICCI_ENOMEM, "out of memory");
		r->evaluated.n++;
		if (averages)
			j->tensor = ricci_averaged(j->tensor);
	}
	return ricci_graph_error(g);
}

/* One session for all passes. */
static ricci_session *evaluation_open(Run *r)
{
	ricci_tensor *outputs[METRICS];
	for (int i = 0; i < r->evaluated.n; i++)
		outputs[i] = r->evaluated.m[i].tensor;
	if (!r->evaluation)
		r->evaluation = ricci_session_share(r->session, 0, r->evaluated.n, outputs);
	return r->evaluation;
}

int run_evaluate(Run *r, Occasion when, double *value, bool *done)
{
	bool test = when == DURING_TEST;
	ricci_data *data = test ? r->t->test : r->t->validation;
	Feed *feed = test ? &r->tests : &r->validation;
	Sums sums = {0};
	int64_t count = 0, total = ricci_data_count(data);
	double start = clock_seconds();
	ricci_session *s = r->t->evaluate ? r->session : evaluation_open(r);
	*done = false;
	if (!s || (!feed->loader && feed_open(feed, data, false, 0)))
		return RICCI_ENOMEM;
	ricci_loader_seek(feed->loader, 0, 0);
	while (!run_stopped(r)) {
		int n = feed_next(feed, s);
		for (int c = 0; c < r->columns.n && n == 0; c++) {
			int i = r->columns.column[c].measure;
			if (r->columns.column[c].when == when)
				value[c] = measure_value(&r->evaluated.m[i], &sums, i);
		}
		*done = n == 0;
		if (n <= 0)
			return n;
		if (ricci_step(s) || measures_add(&r->evaluated, s, n, n, &sums))
			return RICCI_EVALUE;
		count += n;
		progress_show(&r->bar, &(Bar){.label = test ? "test" : "validation",
					      .values = "",
					      .unit = "images",
					      .done = count,
					      .total = total,
					      .seconds = clock_seconds() - start});
	}
	return 0;
}

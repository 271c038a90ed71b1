/* measure.c - what is measured of a net: its loss, its errors, metrics of the user's.
 * Input: tensors of a session after its steps. Output: sums over samples, and the values that they
 * give. Invariant: a sum depends on the batches and their order only. */
#include "nn/training/internal.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static int measure_add(Measures *s, const char *name, ricci_tensor *t, ricci_metric_kind how,
		       int64_t batch, Error *err)
{
	if (!t)
		return 0;
	Measure *m = &s->m[s->n];
	int64_t n = (int64_t)(ricci_bytes(t) / type_size(ricci_dtype(t)));
	if (ricci_rank(t) && ricci_extent(t, 0) != batch)
		return error_set(
			err, RICCI_ESHAPE,
			"the metric %s is a tensor of a batch of %lld; it must be a scalar "
			"[] or have the batch of %lld as its first dimension",
			name, (long long)ricci_extent(t, 0), (long long)batch);
	*m = (Measure){.tensor = t, .how = how, .each = ricci_rank(t) ? n / batch : 0};
	snprintf(m->name, sizeof m->name, "%s", name);
	m->values = mem_alloc(ricci_bytes(t));
	if (!m->values)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	s->n++;
	return 0;
}

static bool name_good(const char *s)
{
	size_t n = strlen(s);
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	return n > 0 && n <= 40;
}

static int metric_check(const Measures *s, const ricci_metric *m, const ricci_graph *g, Error *err)
{
	if (!m->name || !name_good(m->name))
		return error_set(
			err, RICCI_EINVAL,
			"a metric's name is made of letters, digits and _, at most 40, not "
			"'%s'",
			m->name ? m->name : "");
	if (!strcmp(m->name, "loss") || !strcmp(m->name, "error") || measure_find(s, m->name) >= 0)
		return error_set(err, RICCI_EINVAL,
				 "there is a value '%s' already: the metric "
				 "needs another name",
				 m->name);
	if (!m->tensor || ricci_graph_of(m->tensor) != g)
		return error_set(err, RICCI_EINVAL, "the metric %s needs a tensor of the graph",
				 m->name);
	if ((int)m->how < RICCI_MEAN || m->how > RICCI_BITS_PER_CHARACTER)
		return error_set(err, RICCI_EINVAL, "the metric %s is of no known kind: %d",
				 m->name, (int)m->how);
	return 0;
}

int measures_make(Measures *s, const ricci_training *t, int64_t batch, Error *err)
{
	ricci_tensor *any = t->loss ? t->loss : t->misclassified;
	if (t->nmetric < 0 || t->nmetric > METRICS - 2 || (t->nmetric && !t->metric))
		return error_set(err, RICCI_EINVAL,
				 "a training has 0 to %d metrics, not %d, or `metric` is missing",
				 METRICS - 2, t->nmetric);
	int status = measure_add(s, "loss", t->loss, RICCI_MEAN, batch, err);
	if (!status)
		status = measure_add(s, "error", t->misclassified, RICCI_PERCENT, batch, err);
	if (!any && t->nmetric)
		any = t->metric[0].tensor;
	for (int k = 0; k < t->nmetric && !status; k++) {
		const ricci_metric *m = &t->metric[k];
		status = metric_check(s, m, any ? ricci_graph_of(any) : NULL, err);
		if (!status)
			status = measure_add(s, m->name, m->tensor, m->how, batch, err);
	}
	return status;
}

void measures_free(Measures *s)
{
	for (int i = 0; i < s->n; i++)
		mem_free(s->m[i].values);
	s->n = 0;
}

int measure_find(const Measures *s, const char *name)
{
	for (int i = 0; i < s->n; i++)
		if (!strcmp(s->m[i].name, name))
			return i;
	return -1;
}

int measures_add(Measures *s, ricci_session *session, int64_t n, double weight, Sums *sums)
{
	for (int i = 0; i < s->n; i++) {
		const Measure *m = &s->m[i];
		Type type = ricci_dtype(m->tensor);
		double sum = 0;
		if (ricci_fetch(session, m->tensor, m->values, ricci_bytes(m->tensor)))
			return RICCI_EVALUE;
		if (!m->each) {
			double v = type_load(type, m->values, 0);
			sums->sum[i] += m->how == RICCI_SUM ? v : v * weight;
			sums->count[i] += weight;
			continue;
		}
		for (int64_t k = 0; k < n * m->each; k++)
			sum += type_load(type, m->values, (size_t)k);
		sums->sum[i] += sum;
		sums->count[i] += (double)(n * m->each);
	}
	return 0;
}

double measure_value(const Measure *m, const Sums *sums, int i)
{
	double mean = sums->sum[i] / sums->count[i];
	switch (m->how) {
	case RICCI_SUM:
		return sums->count[i] > 0 ? sums->sum[i] : NAN;
	case RICCI_PERPLEXITY:
		return exp(mean);
	case RICCI_BITS_PER_CHARACTER:
		return mean / log(2);
	case RICCI_MEAN:
	case RICCI_PERCENT:
		break;
	}
	return mean;
}

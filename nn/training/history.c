/* history.c - what happened in a training.
 * Input: values of each step, records of epochs and validations. Output: curves and records, for
 * pictures and checkpoints. Invariant: a curve has at most HISTORY_POINTS points however long the
 * training: when they are full, neighbours are merged and each point stands for twice as many
 * steps. */
#include "nn/nn.h"

#include <math.h>
#include <string.h>

void curve_add(Curve *c, uint64_t step, double value)
{
	if (c->every < 1)
		c->every = 1;
	c->sum += value;
	c->count++;
	if (c->count < c->every)
		return;
	if (c->npoint == HISTORY_POINTS) {
		for (int i = 0; i < HISTORY_POINTS / 2; i++) {
			c->point[i][0] = c->point[2 * i + 1][0];
			c->point[i][1] = (c->point[2 * i][1] + c->point[2 * i + 1][1]) / 2;
		}
		c->npoint = HISTORY_POINTS / 2;
		c->every *= 2;
		if (c->count < c->every)
			return;
	}
	c->point[c->npoint][0] = (double)step;
	c->point[c->npoint++][1] = c->sum / c->count;
	c->sum = c->count = 0;
}

void history_start(History *h)
{
	memset(h, 0, sizeof *h);
	h->watch.best = NAN;
}

int history_record(History *h, uint64_t epoch, uint64_t step, const double *value)
{
	size_t width = (size_t)(HISTORY_KEYS + h->ncolumn);
	double *record = mem_grow(h->record, h->nrecord, &h->room, width * sizeof *record);
	if (!record)
		return RICCI_ENOMEM;
	h->record = record;
	record += (size_t)h->nrecord++ * width;
	record[0] = (double)epoch;
	record[1] = (double)step;
	memcpy(record + HISTORY_KEYS, value, (size_t)h->ncolumn * sizeof *value);
	return 0;
}

int column_named(const History *h, const char *name)
{
	for (int i = 0; i < h->ncolumn; i++)
		if (!strcmp(h->column[i], name))
			return i;
	return -1;
}

int history_adopt(History *h, const History *old)
{
	double value[COLUMNS];
	h->loss = old->loss;
	h->rate = old->rate;
	h->watch = old->watch;
	for (int c = 0; c < h->ncolumn && c < METRICS; c++) { /* training's come first */
		int from = column_named(old, h->column[c]);
		h->sums.sum[c] = from >= 0 && from < METRICS ? old->sums.sum[from] : 0;
		h->sums.count[c] = from >= 0 && from < METRICS ? old->sums.count[from] : 0;
	}
	for (int i = 0; i < old->nrecord; i++) {
		const double *r = old->record + (size_t)i * (size_t)(HISTORY_KEYS + old->ncolumn);
		for (int c = 0; c < h->ncolumn; c++) {
			int from = column_named(old, h->column[c]);
			value[c] = from < 0 ? NAN : r[HISTORY_KEYS + from];
		}
		if (history_record(h, (uint64_t)r[0], (uint64_t)r[1], value))
			return RICCI_ENOMEM;
	}
	return 0;
}

void history_free(History *h)
{
	mem_free(h->record);
	memset(h, 0, sizeof *h);
}

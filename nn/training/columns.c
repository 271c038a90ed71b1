/* columns.c - which numbers the records of a training have, and their names.
 * Input: what is measured, and on which data. Output: columns in the order in which lines, files
 * and checkpoints have them. */
#include "nn/training/internal.h"

static void column_add(Columns *c, History *h, Occasion when, const char *prefix, const Measure *m,
		       int measure)
{
	c->column[c->n++] = (Column){when, measure, m && m->how == RICCI_PERCENT};
	snprintf(h->column[h->ncolumn++], COLUMN_NAME, "%s%s", prefix, m ? m->name : "rate");
}

void columns_make(Columns *c, const ricci_training *t, const Measures *s, History *h)
{
	for (int i = 0; i < s->n; i++) /* "loss" is the training's */
		column_add(c, h, DURING_TRAINING, t->loss && !i ? "" : "train_", &s->m[i], i);
	for (int i = t->loss && t->misclassified; t->test && i < s->n; i++)
		column_add(c, h, DURING_TEST, "test_", &s->m[i], i);
	for (int i = 0; t->validation && i < s->n; i++)
		column_add(c, h, DURING_VALIDATION, "validation_", &s->m[i], i);
	if (t->learning_rate)
		column_add(c, h, RATE, "", NULL, -1);
}

int column_of(const Columns *c, Occasion when, int measure)
{
	for (int i = 0; i < c->n; i++)
		if (c->column[i].when == when && c->column[i].measure == measure)
			return i;
	return -1;
}

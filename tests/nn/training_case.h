/* training_case.h - a small training on drawn digits, with metrics, for the tests of the loop. */
#ifndef TRAINING_CASE_H
#define TRAINING_CASE_H

#include "nn/training/internal.h"
#include "tests/check.h"
#include "tests/nn/folder.h"

#include <stdlib.h>

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
static inline Case case_new(double average)
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

static inline int case_run(Case *c)
{
	free(c->lines);
	FILE *f = open_memstream(&c->lines, &c->nlines);
	c->t.lines = f;
	c->t.metric = c->metric;
	int status = ricci_train(&c->t, &c->report);
	fclose(f);
	return status;
}

static inline void case_free(Case *c)
{
	ricci_data_free(c->t.train);
	ricci_data_free(c->t.test);
	ricci_data_free(c->t.validation);
	ricci_graph_free(c->g);
	free(c->lines);
}

static inline char *file_text(const char *name, size_t *n)
{
	char *data;
	Error err = {0};
	CHECK_INT(file_read(in_folder(name), &data, n, &err), 0);
	CHECK_REPORT(data != NULL, "there is no %s", name);
	if (data)
		data[*n] = 0;
	return data ? data : mem_zalloc(1);
}

#endif

/* scan_case.h - graphs with loops and their data, for tests: run by sessions, against the
 * interpreter. */
#ifndef SCAN_CASE_H
#define SCAN_CASE_H

#include "runtime/session.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

enum { STEPS = 5, ROWS = 3, COLS = 17, MOST_IN = 24, MOST_OUT = 12 };

typedef struct Case {
	ricci_graph *g;
	ricci_tensor *length;
	int nin, nout;
	ricci_tensor *in[MOST_IN], *out[MOST_OUT];
	void *data[MOST_IN];
	int32_t steps;
	double *want[MOST_OUT];
	float fed[STEPS * ROWS * COLS];
} Case;

static ricci_tensor *case_input(Case *c, const char *name, int rank, const int64_t *shape)
{
	ricci_tensor *t = ricci_input(c->g, name, RICCI_F32, rank, shape);
	size_t n = ricci_bytes(t) / sizeof(float);
	float *x = malloc(n * sizeof *x);

	for (size_t i = 0; i < n; i++)
		x[i] = sinf((float)i * 1.3f + (float)c->nin) * 0.3f;
	c->in[c->nin] = t;
	c->data[c->nin++] = x;
	return t;
}

/* The interpreter's results at the present length. */
static void case_interp(Case *c, RandomState rs)
{
	Binding bind[MOST_IN + 1];
	Error err = {0};
	int n = 0;

	for (; n < c->nin; n++)
		bind[n] = (Binding){c->in[n]->node, c->data[n]};
	if (c->length)
		bind[n++] = (Binding){c->length->node, &c->steps};
	for (int k = 0; k < c->nout; k++) {
		if (!c->want[k])
			c->want[k] = malloc(ricci_bytes(c->out[k]) / 4 * sizeof(double));
		CHECK_INT(interp_tensor(c->out[k]->node, n, bind, rs, c->want[k], NULL, &err), 0);
		CHECK_STR(err.text, "");
	}
}

static void case_free(Case *c)
{
	for (int k = 0; k < c->nin; k++)
		free(c->data[k]);
	for (int k = 0; k < c->nout; k++)
		free(c->want[k]);
	ricci_graph_free(c->g);
}

static ricci_session *case_session(Case *c, ricci_options o)
{
	ricci_session *s = ricci_session_new(c->g, &o, 0, c->nout, c->out);

	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	for (int k = 0; k < c->nin && s; k++)
		CHECK_INT(ricci_feed(s, c->in[k], c->data[k], ricci_bytes(c->in[k])), 0);
	return s;
}

#endif

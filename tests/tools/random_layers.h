/* random_layers.h - a random program that is a loop over time of several layers: each has a state
 * and a sum over what it reads, which may be a slice, any state, or what a layer computed in this
 * step. So some sums depend on themselves from step to step, others don't. */
#ifndef RANDOM_LAYERS_H
#define RANDOM_LAYERS_H

#include "tests/tools/program_file.h"

enum { LAYERS_MOST = 4 };

/* The name of something of a step that layer k may read. */
static void layer_source(RandomProgram *r, Text *t, int k, int layers)
{
	switch (draw(r, 4)) {
	case 0:
		text_add(t, "X");
		return;
	case 1:
		text_add(t, "S%d", draw(r, layers));
		return;
	default:
		text_add(t, k ? "n%d" : "S0", k ? draw(r, k) : 0);
	}
}

static void layer_text(RandomProgram *r, Text *t, int k, int layers)
{
	static const char *const form[] = {"tanh(a%d[i,j] + ", "0.5*a%d[i,j] + 0.25*(",
					   "sigmoid(a%d[i,j])*("};
	text_add(t, "a%d[i,j] += ", k);
	layer_source(r, t, k, layers);
	text_add(t, "[i,k]*W%d[k,j]; n%d[i,j] = ", k, k);
	text_add(t, form[draw(r, COUNT(form))], k);
	layer_source(r, t, k, layers);
	text_add(t, draw(r, 6) ? "[i,j] + S%d[i,j]); " : "[i,j]*f64(random(%d))); ", k);
}

/* Behind the layers: a sum that is only stacked, by way of an equation; a sum that a state adds up. */
static void layers_out(RandomProgram *r, Text *t, int layers)
{
	text_add(t, "o[i,j] += n%d[i,k]*V[k,j]; y[i,j] = sin(o[i,j])", draw(r, layers));
	if (draw(r, 2))
		text_add(t, "; z[i,j] = n%d[i,j] + %s[i,j]", draw(r, layers),
			 draw(r, 2) ? "X" : "o");
}

__attribute__((unused)) static void random_layers(RandomProgram *r, uint64_t number)
{
	RandomProgram p = {.state = mix(number)};
	Text t = {0};
	int layers = 1 + draw(&p, LAYERS_MOST), steps = 2 + draw(&p, 4);
	text_add(&t, "number %llu\ntype f64\nloop %d length %d segment 0 repeat %d%s\ntext ",
		 (unsigned long long)number, steps, draw(&p, 3) ? -1 : draw(&p, steps + 1),
		 draw(&p, 6) ? 0 : 2, draw(&p, 3) ? "" : " backwards");
	for (int k = 0; k < layers; k++)
		layer_text(&p, &t, k, layers);
	layers_out(&p, &t, layers);
	text_add(&t, "\noperand X f64 0 0 2x16 slice\noperand V f64 0 0 16x16\n");
	for (int k = 0; k < layers; k++)
		text_add(&t, "operand W%d f64 0 0 16x16\noperand S%d f64 0 0 2x16 state n%d\n", k,
			 k, k);
	text_add(&t, "end by nobody\n");
	FILE *in = fmemopen(t.s, t.n, "r");
	CHECK_REPORT(in && program_read(in, r), "program %llu: %s", (unsigned long long)number,
		     t.s);
	if (in)
		fclose(in);
	text_free(&t);
}

#endif

/* example_text.c - what models of characters share: text, characters as vectors, the prediction.
 * Input: e->folder, a file, or NULL: a text is written. Output: e->training's data, inputs, loss and
 * bits per character. Invariant: with --bench there is no text, and a recurrent net reads vectors in
 * place of characters; its loss is the mean squared error. */
#include "examples/example.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 6000, DRAWN_VOCABULARY = 65 };
static const double TRAIN = 0.9; /* of the text; the rest is the test set */

/* ---- a text: "thirty-one and seven are thirty-eight." */

static void number_write(FILE *f, int n)
{
	static const char *const small[] = {
		"zero",	    "one",     "two",	  "three",     "four",	   "five",    "six",
		"seven",    "eight",   "nine",	  "ten",       "eleven",   "twelve",  "thirteen",
		"fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
	static const char *const tens[] = {"",	    "",	     "twenty",	"thirty", "forty",
					   "fifty", "sixty", "seventy", "eighty", "ninety"};
	if (n >= 100)
		fprintf(f, "one hundred");
	if (n >= 100 && n % 100)
		fprintf(f, " ");
	if (n >= 100)
		n %= 100;
	else if (!n)
		fprintf(f, "zero");
	if (n >= 20)
		fprintf(f, "%s%s%s", tens[n / 10], n % 10 ? "-" : "", n % 10 ? small[n % 10] : "");
	else if (n)
		fprintf(f, "%s", small[n]);
}

static void sums_write(FILE *f)
{
	uint32_t seed = 1;
	for (int i = 0; i < LINES; i++) {
		seed = seed * 1664525u + 1013904223u;
		int a = (int)(seed >> 8) % 100, b = (int)(seed >> 16) % 100;
		number_write(f, a);
		fprintf(f, " and ");
		number_write(f, b);
		fprintf(f, " are ");
		number_write(f, a + b);
		fprintf(f, ".\n");
	}
}

/* A file of its own with such sums: path has room for it. 0, or 1: told on stderr. */
static int sums_file(const example *e, char *path, size_t room)
{
	const char *folder = getenv("TMPDIR");
	snprintf(path, room, "%s/sums-XXXXXX", folder && *folder ? folder : "/tmp");
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	if (f) {
		sums_write(f);
		int full = ferror(f);
		if (!fclose(f) && !full)
			return 0;
	} else if (fd >= 0)
		close(fd);
	fprintf(stderr, "%s: cannot write a text to %s: %s\n", e->name, path, strerror(errno));
	if (fd >= 0)
		remove(path);
	return 1;
}

int example_text(example *e)
{
	ricci_training *t = &e->training;
	char own[4096];
	const char *path = e->folder ? e->folder : own;
	ricci_reading how = RICCI_READING(.length = example_size(e, "length", 0), .to = TRAIN);
	/* Tokens mean what they meant. */
	if (t->resume && ricci_saved_alphabet(t->resume, NULL, 0) > 0)
		how.alphabet_of = t->resume;
	if (!e->folder && sums_file(e, own, sizeof own))
		return 1;
	t->train = ricci_text(path, &how);
	how.from = TRAIN;
	how.to = 1;
	if (t->train)
		t->test = ricci_text(path, &how);
	if (!e->folder)
		remove(own);
	return t->test ? 0 : RICCI_EIO;
}

/* ---- the net's ends */

int example_size(const example *e, const char *option, int bench)
{
	const example_option *o = example_option_of(e, option);
	return e->bench && bench && !o->text ? bench : (int)o->value;
}

int example_vocabulary(const example *e)
{
	int n = 0;
	ricci_text_alphabet(e->training.train, &n);
	return n ? n : DRAWN_VOCABULARY;
}

ricci_tensor *example_characters(example *e, int steps, int width)
{
	ricci_init init = ricci_normal(width > 0 ? 1 / sqrt(width) : 1);
	ricci_tensor *c = ricci_input(e->graph, "characters", RICCI_I32, DIMS(e->batch, steps));
	e->training.samples = c;
	return ricci_embedding_layer(c, "embedding",
				     &RICCI_EMBEDDING(.count = example_vocabulary(e), .out = width,
						      .type = e->type, .init = &init));
}

void example_predict(example *e, ricci_tensor *y)
{
	static ricci_fed targets[1];
	static ricci_metric bits[1];
	ricci_training *t = &e->training;
	*targets = (ricci_fed){
		ricci_input(e->graph, "targets", RICCI_I32, DIMS(e->batch, ricci_extent(y, 1))),
		"targets"};
	e->output = y;
	t->ninput = 1;
	t->input = targets;
	t->loss = ricci_cross_entropy(y, targets->tensor);
	*bits = (ricci_metric){"bits", t->loss, RICCI_BITS_PER_CHARACTER};
	t->nmetric = 1;
	t->metric = bits;
}

ricci_tensor *example_sequence(example *e, int steps, int width)
{
	if (!e->bench)
		return ricci_op(e->graph, "Y[t,b,k] = X[b,t,k]",
				example_characters(e, steps, width));
	return e->training.samples =
		       ricci_input(e->graph, "x", e->type, DIMS(steps, e->batch, width));
}

void example_predict_sequence(example *e, ricci_tensor *y)
{
	static ricci_fed targets[1];
	if (!e->bench) {
		example_predict(e, ricci_op(e->graph, "Z[b,t,k] = Y[t,b,k]", y));
		return;
	}
	targets->tensor =
		ricci_input(e->graph, "targets", e->type,
			    DIMS(ricci_extent(y, 0), ricci_extent(y, 1), ricci_extent(y, 2)));
	e->output = y;
	e->training.ninput = 1;
	e->training.input = targets;
	e->training.loss = ricci_mean_squared_error(y, targets->tensor);
}

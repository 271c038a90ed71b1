/* example_bench.c - how long a step takes, and how much memory.
 * Input: an example's graph. Output: one line of JSON:
 *	{"name": "resnet18", "batch": 16, "step_ms": .., "infer_ms": .., "first_s": .., "peak_mb": ..}
 * step_ms: the median of training steps, parameters' update included, the batch already there;
 * infer_ms: of steps that compute e->output alone; first_s: from the start of the program to
 * the end of the first training step; peak_mb: the process's, when the training steps are done.
 * With --profile, behind it, a table of the training step's kernels, and one of its memory. */
#include "examples/example.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { LEAST = 5, MOST = 400 };

double example_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Integers 0..9 are labels and tokens of every example. */
static int input_fill(ricci_session *s, const ricci_tensor *t, uint32_t seed)
{
	ricci_type type = ricci_dtype(t);
	size_t size = type == RICCI_F64 || type == RICCI_I64 ? 8 : 4, n = ricci_bytes(t) / size;
	void *values = malloc(n * size);
	if (!values)
		return RICCI_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		double x = (double)(seed >> 8) / (1 << 23) - 1;
		if (type == RICCI_F64)
			((double *)values)[i] = x;
		else if (type == RICCI_F32)
			((float *)values)[i] = (float)x;
		else if (type == RICCI_I64)
			((int64_t *)values)[i] = (seed >> 8) % 10;
		else
			((int32_t *)values)[i] = (int32_t)(seed >> 8) % 10;
	}
	int status = ricci_feed(s, t, values, n * size);
	free(values);
	return status;
}

int example_fill(const example *e, ricci_session *s)
{
	const ricci_training *t = &e->training;
	int status = t->samples ? input_fill(s, t->samples, 1) : 0;
	if (!status && t->labels)
		status = input_fill(s, t->labels, 2);
	for (int k = 0; k < t->ninput && !status; k++)
		status = input_fill(s, t->input[k].tensor, 3 + (uint32_t)k);
	return status;
}

/* The median of steps for so many seconds; negative on an error. */
static double steps_time(ricci_session *s, double seconds)
{
	double spent[MOST], begin = example_now();
	int n = 0;
	while (n < MOST && (n < LEAST || example_now() - begin < seconds)) {
		double start = example_now();
		if (ricci_step(s))
			return -1;
		spent[n++] = example_now() - start;
	}
	qsort(spent, (size_t)n, sizeof *spent, order);
	return spent[n / 2];
}

/* Background compilation done, kernels tuned. */
static int settled(example *e, ricci_session *s, double tune)
{
	int status = e->options.static_mode ? 0 : ricci_settle(s);
	return !status && tune > 0 ? ricci_tune(s, tune, NULL, NULL) : status;
}

static void line_print(const example *e, double step, double infer, double first, double peak)
{
	printf("{\"name\": \"%s\", \"batch\": %d, \"step_ms\": %.4g, \"infer_ms\": %.4g, "
	       "\"first_s\": %.3g, \"peak_mb\": %.0f}\n",
	       e->net ? e->net : e->name, e->batch, 1e3 * step, 1e3 * infer, first, peak);
}

static int memory_print(ricci_session *s, FILE *out)
{
	ricci_memory *m = ricci_memory_new(s);
	char *text = ricci_memory_text(m);
	if (text)
		fprintf(out, "\n%s", text);
	ricci_free_text(text);
	ricci_memory_free(m);
	return !text;
}

/* Where the time of further steps goes, and what their memory is used for. */
static int profile_print(ricci_session *s, double seconds, FILE *out)
{
	ricci_profile *f = NULL;
	if (!ricci_time_kernels(s, 1) && steps_time(s, seconds) >= 0)
		f = ricci_profile_new(s);
	char *text = f ? ricci_profile_text(f) : NULL;
	if (text)
		fputs(text, out);
	ricci_free_text(text);
	ricci_profile_free(f);
	return !text || memory_print(s, out);
}

int example_bench(example *e, double start, double seconds, double tune)
{
	const ricci_training *t = &e->training;
	double first = 0, step = -1, infer = -1;
	struct rusage usage = {0};
	ricci_session *s = ricci_session_new(e->graph, &e->options, 1, 1, &t->loss), *i = NULL;
	if (s && !example_fill(e, s) && !ricci_step(s)) {
		first = example_now() - start;
		if (!settled(e, s, tune))
			step = steps_time(s, seconds);
		getrusage(RUSAGE_SELF, &usage);
	}
	if (step >= 0)
		i = ricci_session_share(s, 0, 1, &e->output);
	if (i && !example_fill(e, i) && !ricci_step(i) && !settled(e, i, tune))
		infer = steps_time(i, seconds);
	ricci_session_free(i);
	if (infer >= 0)
		line_print(e, step, infer, first, (double)usage.ru_maxrss / 1024);
	int failed = infer < 0 || (t->profile && profile_print(s, seconds, t->profile));
	ricci_session_free(s);
	if (failed)
		fprintf(stderr, "%s: %s\n", e->name, ricci_error_message());
	return failed || fflush(stdout) ? 1 : 0;
}

static int curve_write(ricci_session *s, double start, double seconds, FILE *out)
{
	fputs("end_s,step_ms\n", out);
	for (double begin = example_now(), end; begin - start < seconds; begin = end) {
		if (ricci_step(s))
			return 1;
		end = example_now();
		fprintf(out, "%.4f,%.4f\n", end - start, 1e3 * (end - begin));
	}
	return 0;
}

int example_curve(example *e, double start, double seconds, const char *file)
{
	ricci_session *s = ricci_session_new(e->graph, &e->options, 1, 1, &e->training.loss);
	FILE *out = fopen(file, "w");
	int failed = !out || !s || example_fill(e, s) || curve_write(s, start, seconds, out);
	if (!out)
		fprintf(stderr, "%s: can't write %s\n", e->name, file);
	else if (failed)
		fprintf(stderr, "%s: %s\n", e->name, ricci_error_message());
	ricci_session_free(s);
	return (out && fclose(out)) || failed;
}

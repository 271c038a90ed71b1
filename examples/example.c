/* example.c - the program around an example's network.
 * Input: the command line. Output: a training, an evaluation, or what another option asks for; the
 * exit status. Invariant: wrong usage changes nothing and ends with status 2. */
#include "examples/example.h"

#include <stdlib.h>
#include <string.h>

enum {
	DATA,
	BATCH,
	EPOCHS,
	STEPS,
	LR,
	SCHEDULE,
	AVERAGE,
	AUGMENT,
	SEED,
	PRECISION,
	THREADS,
	BACKEND,
	DEVICE,
	STATIC,
	MEMORY_LIMIT,
	TUNE,
	CHECKPOINT,
	CHECKPOINT_EVERY,
	OVERWRITE,
	RESUME,
	EVAL,
	CSV,
	PICTURE,
	PROFILE,
	TRACE,
	BENCH,
	BENCH_SECONDS,
	BENCH_CURVE,
	CHECK,
	DUMP,
	HELP,
	NCOMMON
};
/* clang-format off */
static example_option common[NCOMMON + 1] = {
	[DATA] = {"data", "PATH", NULL, NULL, 0, 0, 0, NULL},
	[BATCH] = {"batch", "N", "samples a step", NULL, 'n', 1, 0, NULL},
	[EPOCHS] = {"epochs", "N", "passes over the data, in all", NULL, 'n', 1, 0, NULL},
	[STEPS] = {"steps", "N", "end after this step; 0 only saves the initial checkpoint", NULL, 'n', 0, 0, NULL},
	[LR] = {"lr", "X", "learning rate", NULL, 'x', 0, 0, NULL},
	[SCHEDULE] = {"schedule", "NAME", "of the rate", "constant cosine one-cycle", 0, 0, 0, NULL},
	[AVERAGE] = {"average", "X", "test with averages of the weights that keep X of the old ones a step", NULL, 'x', 0, 0, NULL},
	[AUGMENT] = {"augment", NULL, "change the samples of the training at random", NULL, 0, 0, 0, NULL},
	[SEED] = {"seed", "N", "of initial values and of the order of samples", NULL, 'n', 0, 0, NULL},
	[PRECISION] = {"precision", "TYPE", "bf16, f16, tf32: long sums multiply numbers rounded to that; f16 scales the loss", "f32 bf16 f64 f16 tf32", 0, 0, 0, NULL},
	[THREADS] = {"threads", "N", "0: as many as there are", NULL, 'n', 0, 0, NULL},
	[BACKEND] = {"backend", "NAME", "of kernels", "auto interp tcc cc", 0, 0, 0, NULL},
	[DEVICE] = {"device", "NAME", "cpu, cuda:0, opencl:0 ..: where it computes (cpu); `ricci info` lists what there is", NULL, 0, 0, 0, NULL},
	[STATIC] = {"static", NULL, "compile everything before the first step: same bits in every run", NULL, 0, 0, 0, NULL},
	[MEMORY_LIMIT] = {"memory-limit", "BYTES", "that a step may take beside inputs, parameters and states; tensors are computed again to fit; 64M, say, or with K, G", NULL, 'b', 1, 0, NULL},
	[TUNE] = {"tune", "S", "search S seconds for faster kernels before the first step", NULL, 'x', 0, 0, NULL},
	[CHECKPOINT] = {"checkpoint", "F", "save there after each epoch, at the end and on ctrl-C; the one before is kept as F.prev", NULL, 0, 0, 0, NULL},
	[CHECKPOINT_EVERY] = {"checkpoint-every", "N", "and after every N steps", NULL, 'n', 1, 0, NULL},
	[OVERWRITE] = {"overwrite", NULL, "replace files that are there and not resumed from", NULL, 0, 0, 0, NULL},
	[RESUME] = {"resume", "F", "continue from that checkpoint", NULL, 0, 0, 0, NULL},
	[EVAL] = {"eval", NULL, "only measure on the test set, with --resume those weights", NULL, 0, 0, 0, NULL},
	[CSV] = {"csv", "F", "all numbers of the training, a line a step", NULL, 0, 0, 0, NULL},
	[PICTURE] = {"picture", "F", "curves as an SVG", NULL, 0, 0, 0, NULL},
	[PROFILE] = {"profile", NULL, "say where the time went, by kernel and by layer; with --bench by kernel", NULL, 0, 0, 0, NULL},
	[TRACE] = {"trace", "F", "what each thread does, over time, for ui.perfetto.dev", NULL, 0, 0, 0, NULL},
	[BENCH] = {"bench", NULL, "time steps on random data, print a line of JSON", NULL, 0, 0, 0, NULL},
	[BENCH_SECONDS] = {"seconds", "S", "of --bench, for training steps and again for inference", NULL, 'x', 0, 2, NULL},
	[BENCH_CURVE] = {"curve", "F", "with --bench: only the steps of the first --seconds, beside the background's work; a line of CSV for each", NULL, 0, 0, 0, NULL},
	[CHECK] = {"check-gradients", NULL, "compare gradients with finite differences, in f64", NULL, 0, 0, 0, NULL},
	[DUMP] = {"dump", "DIR", "write the batches of the first --steps steps there, as .npy", NULL, 0, 0, 0, NULL},
	[HELP] = {"help", NULL, "print this", NULL, 0, 0, 0, NULL},
};
/* clang-format on */

/* ---- options */

/* Whether the example has this option. */
static int option_offered(const example *e, const example_option *o)
{
	char word[40];
	if (o < common || o >= common + NCOMMON)
		return 1;
	snprintf(word, sizeof word, " %s ", o->name);
	return (o != &common[AUGMENT] || e->augments) && (!e->common || strstr(e->common, word));
}

/* Own options come first, so that --help begins with what is special. */
static example_option *option_find(const example *e, const char *name, size_t length)
{
	for (int own = 1; own >= 0; own--)
		for (example_option *o = own ? e->option : common; o && o->name; o++)
			if (strlen(o->name) == length && !strncmp(o->name, name, length))
				return option_offered(e, o) ? o : NULL;
	return NULL;
}

const example_option *example_option_of(const example *e, const char *name)
{
	return option_find(e, name, strlen(name));
}

static void option_help(const example_option *o)
{
	char left[64];
	int choice = 0;
	snprintf(left, sizeof left, "--%s %s", o->name, o->argument ? o->argument : "");
	printf("  %-18s %s", left, o->help);
	for (const char *c = o->choices; c && *c; c++)
		if (c == o->choices || c[-1] == ' ')
			printf("%s%.*s%s",
			       choice	  ? ", "
			       : *o->help ? ": "
					  : "",
			       (int)strcspn(c, " "), c, choice == (int)o->value ? " (usual)" : ""),
				choice++;
	if (o->kind && o->kind != 'b')
		printf(" (%g)", o->value);
	puts("");
}

static int help(const example *e)
{
	printf("usage: %s [options]\n%s\n", e->name, e->about);
	for (int own = 1; own >= 0; own--)
		for (const example_option *o = own ? e->option : common; o && o->name; o++)
			if (option_offered(e, o))
				option_help(o);
	return fflush(stdout) ? 1 : 0;
}

static int usage(const example *e, const char *option, const char *value, const char *want)
{
	fprintf(stderr, "%s: --%s%s%s: %s (%s --help lists the options)\n", e->name, option,
		value ? " " : "", value ? value : "", want, e->name);
	return 2;
}

/* A number as the option wants it. 0, or 2. */
static int number_read(const example *e, example_option *o)
{
	char *end, want[80];
	double v = strtod(o->text, &end);
	int whole = o->kind == 'n';
	/* a rate of 0 trains nothing */
	int fits = v <= 1e9 && v >= o->least && (o != &common[LR] || v > 0) &&
		   (!whole || v == (double)(int64_t)v);
	if (end != o->text && !*end && fits) {
		o->value = v;
		return 0;
	}
	snprintf(want, sizeof want, "this takes a %snumber, %s %g%s", whole ? "whole " : "",
		 o == &common[LR] ? "more than" : "at least", o->least,
		 v > 1e9 ? " and at most 1e9" : "");
	return usage(e, o->name, o->text, want);
}

/* Bytes, with K, M or G for 2^10, 2^20, 2^30. 0, or 2. */
static int bytes_read(const example *e, example_option *o)
{
	static const char unit[] = "KMG";
	char *end;
	double v = strtod(o->text, &end);
	const char *u = *end ? strchr(unit, *end) : NULL;
	for (const char *k = unit; u && k <= u; k++)
		v *= 1024;
	end += u != NULL;
	if (end == o->text || *end || !(v >= o->least && v < 9e15))
		return usage(e, o->name, o->text,
			     "this takes a number of bytes, K, M or G behind it for 2^10, 2^20 or "
			     "2^30");
	o->value = (double)(int64_t)v;
	return 0;
}

static int choice_read(const example *e, example_option *o)
{
	char want[80];
	int k = 0;
	size_t length = strlen(o->text);
	for (const char *c = o->choices; *c; c += strspn(c, " "), k++) {
		size_t n = strcspn(c, " ");
		if (n == length && !strncmp(c, o->text, n)) {
			o->value = k;
			return 0;
		}
		c += n;
	}
	snprintf(want, sizeof want, "this takes one of: %s", o->choices);
	return usage(e, o->name, o->text, want);
}

/* Reads the options; 0, or 2 for wrong usage. */
static int options_read(const example *e, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--", 2)) {
			fprintf(stderr, "%s: what is %s? (%s --help lists the options)\n", e->name,
				argv[i], e->name);
			return 2;
		}
		const char *name = argv[i] + 2, *equals = strchr(name, '=');
		example_option *o =
			option_find(e, name, equals ? (size_t)(equals - name) : strlen(name));
		if (!o)
			return usage(e, name, NULL, "there is no such option");
		if (!o->argument) {
			if (equals)
				return usage(e, name, NULL, "this option takes no value");
			o->text = "";
			o->value = 1;
			continue;
		}
		if (!equals && i + 1 == argc)
			return usage(e, name, NULL, "the value is missing");
		o->text = equals ? equals + 1 : argv[++i];
		int wrong = o->choices	     ? choice_read(e, o)
			    : o->kind == 'b' ? bytes_read(e, o)
			    : o->kind	     ? number_read(e, o)
					     : 0;
		if (wrong)
			return wrong;
	}
	if (common[AVERAGE].value >= 1)
		return usage(e, "average", common[AVERAGE].text, "this takes a number below 1");
	if (common[STEPS].text && !common[STEPS].value && !common[CHECKPOINT].text)
		return usage(e, "steps", "0", "this needs --checkpoint");
	if (common[DUMP].text && !common[STEPS].value)
		return usage(e, "dump", NULL, "this needs --steps");
	return 0;
}

/* ---- the graph */

static ricci_tensor *rate_make(example *e)
{
	const double rate = e->lr;
	int64_t steps = e->training.steps ? (int64_t)e->training.steps : 1;
	if (!e->training.steps && e->training.train)
		steps = e->epochs * (ricci_data_count(e->training.train) / e->batch);
	if (common[SCHEDULE].value == 0) {
		ricci_tensor *r = ricci_learning_rate(e->graph, rate);
		if (common[LR].text)
			e->training.rate = r; /* else, on resume, the rate of the file */
		return r;
	}
	ricci_schedule_options o =
		RICCI_SCHEDULE(.kind = common[SCHEDULE].value == 1 ? RICCI_COSINE : RICCI_ONE_CYCLE,
			       .rate = rate, .steps = steps);
	return ricci_schedule(e->graph, &o);
}

void example_optimise(example *e, ricci_optimiser how)
{
	if (e->check)
		return;
	const ricci_scaling scaling = RICCI_SCALING();
	ricci_tensor *rate = e->training.learning_rate = rate_make(e);
	if (e->bench)
		how = RICCI_OPTIMISER(.rule = RICCI_SGD);
	how.average = common[AVERAGE].value;
	how.scaling = common[PRECISION].value == 3 ? &scaling : NULL;
	ricci_optimise(e->training.loss, rate, &how);
}

/* The graph, or the error that it kept. The loop of trainings wants the loss in f32. */
static int graph_make(example *e)
{
	ricci_training *t = &e->training;
	static const ricci_type precision[] = {RICCI_F32, RICCI_BF16, RICCI_F32, RICCI_F16,
					       RICCI_TF32};
	ricci_precision(e->graph, precision[(int)common[PRECISION].value]);
	ricci_memory_limit(e->graph, (size_t)common[MEMORY_LIMIT].value);
	e->network(e);
	e->training.output = e->output;
	if (!ricci_graph_error(e->graph) && !e->check && ricci_dtype(t->loss) != RICCI_F32)
		t->loss = ricci_op(e->graph, "Y[] = f32(X[])", t->loss);
	return ricci_graph_error(e->graph);
}

/* ---- runs */

static int train(example *e)
{
	ricci_report report = RICCI_REPORT();
	int status = ricci_train(&e->training, &report);
	if (status)
		return fprintf(stderr, "%s: %s\n", e->name, ricci_error_message()), 1;
	if (!report.stopped)
		return 0;
	fprintf(stderr, "%s: stopped after step %llu\n", e->name, (unsigned long long)report.step);
	return 128 + report.stopped;
}

/* What the options say about the training. */
static void describe(example *e)
{
	ricci_training *t = &e->training;
	*t = RICCI_TRAINING(.lines = stdout, .progress = stderr);
	e->batch = (int)common[BATCH].value;
	e->epochs = (int)common[EPOCHS].value;
	e->lr = common[LR].value;
	e->folder = common[DATA].text;
	e->augment = common[AUGMENT].text != NULL;
	e->bench = common[BENCH].text != NULL;
	e->check = common[CHECK].text != NULL;
	e->type = common[PRECISION].value == 2 || e->check ? RICCI_F64 : RICCI_F32;
	if (e->bench && !common[BATCH].text && e->bench_batch)
		e->batch = e->bench_batch;
	e->options =
		RICCI_OPTIONS(.backend = (ricci_backend)common[BACKEND].value,
			      .threads = (int)common[THREADS].value,
			      .static_mode = common[STATIC].text != NULL,
			      .seed = (uint64_t)common[SEED].value, .device = common[DEVICE].text);
	t->options = &e->options;
	t->epochs = common[STEPS].text && !common[EPOCHS].text ? 0 : e->epochs;
	t->steps = (uint64_t)common[STEPS].value;
	t->initial = common[STEPS].text && !t->steps;
	t->tune = common[TUNE].value;
	t->evaluate = common[EVAL].text != NULL;
	t->resume = common[RESUME].text;
	t->checkpoint = common[CHECKPOINT].text;
	t->checkpoint_every = (uint64_t)common[CHECKPOINT_EVERY].value;
	t->overwrite = common[OVERWRITE].text != NULL;
	t->csv = common[CSV].text;
	t->picture = common[PICTURE].text;
	t->profile = common[PROFILE].text ? stdout : NULL;
	t->stop = ricci_interrupted(); /* ctrl-C ends it, saved; a second one at once */
}

static int run(example *e, double start)
{
	ricci_training *t = &e->training;
	int done = 0, status = 0;
	if (e->program)
		return e->program(e);
	e->graph = ricci_graph_new();
	if (!e->graph)
		status = RICCI_ENOMEM;
	if (!status && !e->bench && !e->check)
		status = e->load(e);
	if (!status)
		status = graph_make(e);
	if (!status && e->act)
		status = e->act(e, &done);
	if (status < 0)
		return fprintf(stderr, "%s: %s\n", e->name, ricci_error_message()), 1;
	if (done || status)
		return status;
	if (e->check)
		return example_check(e);
	if (e->bench)
		return common[BENCH_CURVE].text
			       ? example_curve(e, start, common[BENCH_SECONDS].value,
					       common[BENCH_CURVE].text)
			       : example_bench(e, start, common[BENCH_SECONDS].value, t->tune);
	if (common[DUMP].text)
		return example_dump(e, common[DUMP].text, (int64_t)t->steps);
	status = train(e);
	return status || !e->finish ? status : e->finish(e);
}

void *example_own(example *e, size_t bytes)
{
	void *p = malloc(bytes);
	for (size_t i = 0; p && i < sizeof e->owned / sizeof *e->owned; i++)
		if (!e->owned[i])
			return e->owned[i] = p;
	free(p);
	return NULL;
}

int example_main(int argc, char **argv, example *e)
{
	double start = example_now();
	common[DATA].help = e->data;
	common[BATCH].value = e->batch;
	common[EPOCHS].value = e->epochs;
	common[LR].value = e->lr;
	int status = options_read(e, argc, argv);
	if (status || common[HELP].text)
		return status ? status : help(e);
	describe(e);
	const char *trace = common[TRACE].text;
	if (trace && ricci_trace_begin(trace))
		return fprintf(stderr, "%s: %s\n", e->name, ricci_error_message()), 1;
	status = run(e, start);
	if (trace && ricci_trace_end()) {
		fprintf(stderr, "%s: %s\n", e->name, ricci_error_message());
		status = status ? status : 1;
	}
	ricci_graph_free(e->graph);
	ricci_data_free(e->training.train);
	ricci_data_free(e->training.test);
	for (size_t i = 0; i < sizeof e->owned / sizeof *e->owned; i++)
		free(e->owned[i]);
	return status;
}

/* offers.c - how good are the schedules that are offered for a kernel, and the order they come in?
 *
 * usage: offers [--threads N] [--seconds S] [--backend NAME] [--cold] [--schedules] [--schedule TEXT].. < FILE
 *
 * FILE holds kernels' tasks among any other lines, as RICCI_DUMP=sched prints them of a net's session:
 *	RICCI_DUMP=sched examples/mobilenet_v2 --bench --seconds 0.1 2>&1 | bench/offers
 * Every task that stands there is made with each schedule offered for it (jit/offer.c), by cc or that backend, and the
 * kernels are timed in turns, S seconds each (0.02); with --cold after other memory has been read, so that their
 * operands come from memory, as many of a net's do. A line of each: milliseconds in the order of the
 * offers, and its equations; with --schedules a line of each offer behind it,
 * with its price in thousands of cycles of one core (jit/tree/cost.c);
 * with --schedule those schedules are timed behind the first offer, in place of the others. Then what the first offers take by the best ones: of all kernels
 * together, and the geometric mean. That is what a session in static mode loses, which takes the first.
 */
#include "jit/lower.h"
#include "runtime/runtime.h"
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 3, TASKS_MOST = 2048, OFFERS = 8 };

typedef struct Offers {
	Task *task;
	int n;
	Schedule schedule[OFFERS];
	Kernel *kernel[OFFERS]; /* NULL: it could not be made */
	double seconds[OFFERS];
} Offers;

static bool belongs(const char *line)
{
	static const char *const word[] = {"input ", "keep ", "local "};

	for (int i = 0; i < COUNT(word); i++)
		if (!strncmp(line, word[i], strlen(word[i])))
			return true;
	return false;
}

static void take(Offers *all, int *n, const Text *text)
{
	Error err = {0};
	Task *t = text->n && *n < TASKS_MOST ? task_parse(text->s, &err) : NULL;

	for (int i = 0; t && i < *n; i++)
		if (!strcmp(all[i].task->text, t->text)) {
			task_free(t);
			t = NULL;
		}
	if (t)
		all[(*n)++].task = t;
	error_clear(&err);
}

static int read_tasks(FILE *in, Offers *all)
{
	Text text = {0};
	char *line = NULL;
	size_t room = 0;
	int n = 0;

	while (getline(&line, &room, in) >= 0) {
		bool first = !strcmp(line, "ricci-task 1\n");

		if (first || !text.n || !belongs(line)) {
			take(all, &n, &text);
			text.n = 0;
		}
		if (first || text.n)
			text_add(&text, "%s", line);
	}
	take(all, &n, &text);
	text_free(&text);
	free(line);
	return n;
}

/* All that can be made of it, compiled together; own: schedules in place of all offers but the first. */
static void make(Offers *o, const Backend *by, int nown, const Schedule *own)
{
	Kernel *made[OFFERS];
	int n = 0;

	o->n = schedule_offers(o->task, backend_target(by), nown ? 1 : OFFERS, o->schedule);
	for (int i = 0; i < nown; i++)
		o->schedule[o->n++] = own[i];
	for (int i = 0; i < o->n; i++) {
		Error err = {0};

		o->kernel[i] = kernel_lower(o->task, &o->schedule[i], by, backend_target(by), &err);
		if (o->kernel[i])
			made[n++] = o->kernel[i];
		else
			fprintf(stderr, "offers: %s\n", err.text);
		error_clear(&err);
	}
	if (n && by->compile(by, n, made, NULL, NULL))
		for (int i = 0; i < o->n; i++)
			o->kernel[i] = NULL;
}

/* Reads so much other memory that the caches hold nothing else. */
static void caches_clear(void)
{
	static size_t size;
	static volatile char *other;

	if (!other) {
		size = 4 * target_host()->l3;
		other = calloc(size, 1);
	}
	for (size_t k = 0; other && k < size; k += 64)
		other[k]++;
}

static void time_offers(Offers *o, Pool *pool, double seconds, bool cold)
{
	TaskData d, other;

	for (int i = 0; i < o->n; i++)
		o->seconds[i] = INFINITY;
	if (task_data_new(o->task, 1, &d, NULL))
		return;
	if (task_data_new(o->task, 2, &other, NULL)) {
		task_data_free(&d);
		return;
	}
	for (int r = 0; r < ROUNDS; r++)
		for (int i = 0; i < o->n; i++) {
			double until = clock_seconds() + seconds / ROUNDS;

			for (int run = 0;
			     o->kernel[i] && (run < (cold ? 6 : 3) || clock_seconds() < until);
			     run++) {
				if (cold) { /* threads wait for the next launch, as in a net */
					caches_clear();
					pool_run(pool, o->kernel[i], other.buf, 1, 1, NULL);
				}
				double start = clock_seconds();

				pool_run(pool, o->kernel[i], d.buf, 1, 1, NULL);
				if (run)
					o->seconds[i] =
						fmin(o->seconds[i], clock_seconds() - start);
			}
		}
	task_data_free(&d);
	task_data_free(&other);
}

static int best_of(const Offers *o)
{
	int best = 0;

	for (int i = 1; i < o->n; i++)
		best = o->seconds[i] < o->seconds[best] ? i : best;
	return best;
}

static void print_schedules(const Offers *o)
{
	for (int i = 0; i < o->n; i++) {
		Text schedule = {0};

		schedule_print(&schedule, &o->schedule[i]);
		printf("       %9.4f %9.1f  %s\n", 1e3 * o->seconds[i],
		       1e-3 * lower_price(o->task, &o->schedule[i], target_host()), schedule.s);
		text_free(&schedule);
	}
}

static void print_offers(const Offers *o)
{
	const char *equation = strstr(o->task->text, "keep ");
	int best = best_of(o);

	printf("%6.2f", o->seconds[0] / o->seconds[best]);
	for (int i = 0; i < OFFERS; i++)
		if (i < o->n)
			printf(" %9.4f%s", 1e3 * o->seconds[i], i == best ? "*" : " ");
		else
			printf(" %10s", "");
	printf(" %.*s\n", equation ? (int)strcspn(equation, "\n") : 0, equation ? equation : "");
}

int main(int argc, char **argv)
{
	static const struct option option[] = {{"threads", required_argument, 0, 't'},
					       {"seconds", required_argument, 0, 's'},
					       {"cold", no_argument, 0, 'c'},
					       {"schedules", no_argument, 0, 'S'},
					       {"schedule", required_argument, 0, 'o'},
					       {"backend", required_argument, 0, 'b'},
					       {0}};
	int threads = 0, counted = 0, nown = 0;
	Schedule own[OFFERS - 1];
	bool cold = false, schedules = false;
	double seconds = 0.02, logs = 0, first = 0, best = 0;
	const Backend *by = backend_find("cc");
	Error err = {0};

	for (int o; (o = getopt_long(argc, argv, "", option, NULL)) != -1;)
		if (o == 't')
			threads = atoi(optarg);
		else if (o == 's')
			seconds = atof(optarg);
		else if (o == 'b' && backend_find(optarg))
			by = backend_find(optarg);
		else if (o == 'c')
			cold = true;
		else if (o == 'S')
			schedules = true;
		else if (o == 'o' && nown < COUNT(own) && !schedule_parse(optarg, &own[nown], &err))
			nown++;
		else {
			fprintf(stderr, "offers: %s\n", err.code ? err.text : "see bench/offers.c");
			return 2;
		}
	Pool *pool = pool_new(threads, &err);
	Offers *all = calloc(TASKS_MOST, sizeof *all);

	if (!pool || !all) {
		fprintf(stderr, "offers: %s\n", pool ? "out of memory" : err.text);
		return 1;
	}
	int n = read_tasks(stdin, all);
	for (int i = 0; i < n; i++)
		make(&all[i], by, nown, own);
	printf("first/best, ms of each offer, its first equation\n");
	for (int i = 0; i < n; i++) {
		Offers *o = &all[i];

		time_offers(o, pool, seconds, cold);
		if (!o->n || !isfinite(o->seconds[0]))
			continue;
		print_offers(o);
		if (schedules)
			print_schedules(o);
		logs += log(o->seconds[0] / o->seconds[best_of(o)]);
		first += o->seconds[0];
		best += o->seconds[best_of(o)];
		counted++;
	}
	printf("%d kernels: the first offers take %.3f ms, the best %.3f; first/best %.3f, "
	       "geometric "
	       "mean %.3f\n",
	       counted, 1e3 * first, 1e3 * best, first / best, exp(logs / (counted ? counted : 1)));
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < all[i].n; k++)
			if (all[i].kernel[k])
				kernel_unref(all[i].kernel[k]);
		task_free(all[i].task);
	}
	free(all);
	pool_free(pool);
	return 0;
}

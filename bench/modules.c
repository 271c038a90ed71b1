/* modules.c - how long a program takes that serves with a module: from the start of its process to its end, with
 * one result on the way.
 *
 * usage: modules FILE.module [--runs 20] [--threads N]
 *
 * Each run is a process of its own (this program again, with --once), the first included. It loads the module, feeds
 * zeros, computes, and fetches all outputs. A line of JSON goes to standard output: milliseconds, shortest, median and
 * longest of the processes, and the median of loading alone.
 */
#include <ricci_nn.h>

#include <getopt.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RUNS = 1000 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "modules: %s\n", what);
	exit(1);
}

/* Of one input or output, in memory of its size: all zeros. */
static void *room_for(const ricci_port *port)
{
	void *data = calloc(1, port->bytes);
	if (!data)
		fail("out of memory");
	return data;
}

/* What a process that serves does. Prints the milliseconds of loading. */
static void serve_once(const char *path, int threads)
{
	double start = now();
	ricci_module *m = ricci_module_load(path, threads);
	const ricci_port *port;
	if (!m)
		fail(ricci_error_message());
	printf("%f\n", now() - start);
	for (int k = 0; (port = ricci_module_input(m, k)); k++) {
		void *data = room_for(port);
		if (ricci_module_feed(m, port->name, data, port->bytes))
			fail(ricci_error_message());
		free(data);
	}
	if (ricci_module_run(m))
		fail(ricci_error_message());
	for (int k = 0; (port = ricci_module_output(m, k)); k++) {
		void *data = room_for(port);
		if (ricci_module_fetch(m, port->name, data, port->bytes))
			fail(ricci_error_message());
		free(data);
	}
	ricci_module_free(m);
}

/* A process of it: how long it took, and how long it was loading. */
static void time_process(char *self, char *path, char *threads, double *whole, double *loading)
{
	char *argv[] = {self, path, "--once", "--threads", threads, NULL}, line[64] = "";
	posix_spawn_file_actions_t actions;
	extern char **environ;
	int out[2], status;
	pid_t child;
	if (pipe(out))
		fail("no pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, out[0]);
	double start = now();
	if (posix_spawn(&child, "/proc/self/exe", &actions, NULL, argv, environ))
		fail("no process");
	if (waitpid(child, &status, 0) != child || status)
		fail("a run failed");
	*whole = now() - start;
	close(out[1]);
	if (read(out[0], line, sizeof line - 1) <= 0)
		fail("a run printed nothing");
	close(out[0]);
	posix_spawn_file_actions_destroy(&actions);
	*loading = strtod(line, NULL);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"runs", required_argument, NULL, 'r'},
						{"threads", required_argument, NULL, 't'},
						{"once", no_argument, NULL, 'o'},
						{0}};
	char *threads = "0";
	int runs = 20, once = 0, c;
	double whole[MOST_RUNS], loading[MOST_RUNS];
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'r')
			runs = atoi(optarg);
		else if (c == 't')
			threads = optarg;
		else if (c == 'o')
			once = 1;
		else
			return 2;
	}
	if (optind != argc - 1 || runs < 1 || runs > MOST_RUNS) {
		fprintf(stderr, "usage: modules FILE.module [--runs 1..%d] [--threads N]\n",
			MOST_RUNS);
		return 2;
	}
	if (once) {
		serve_once(argv[optind], atoi(threads));
		return 0;
	}
	for (int k = 0; k < runs; k++)
		time_process(argv[0], argv[optind], threads, &whole[k], &loading[k]);
	qsort(whole, (size_t)runs, sizeof *whole, by_size);
	qsort(loading, (size_t)runs, sizeof *loading, by_size);
	printf("{\"module\": \"%s\", \"runs\": %d, \"loading_ms\": %.1f, \"shortest_ms\": %.1f, "
	       "\"median_ms\": %.1f, \"longest_ms\": %.1f}\n",
	       argv[optind], runs, loading[runs / 2], whole[0], whole[runs / 2], whole[runs - 1]);
	return 0;
}

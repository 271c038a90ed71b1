/* machine.c - what this machine can do, as JSON: the figures that kernels are held against.
 *
 * usage: machine [--threads N] [--seconds S]
 *
 * For one thread and for N (as many as the process may run on): operations a second of
 * multiply-adds in f32, f64 and bf16 (left out where the processor has none), bandwidth of copy and
 * triad by working set (all arrays of all threads), and what a launch of all threads costs.
 * Each is the best of the tries in S seconds (0.1). runtime/host/machine.c does the measuring.
 */
#include "runtime/runtime.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static void print_threads(Pool *pool, double seconds)
{
	static const struct {
		const char *name;
		Type type;
	} unit[] = {{"f32", RICCI_F32}, {"f64", RICCI_F64}, {"bf16", RICCI_BF16}};
	static const struct {
		const char *name;
		Stream how;
	} stream[] = {{"read", STREAM_READ}, {"copy", STREAM_COPY}, {"triad", STREAM_TRIAD}};
	size_t last = 4 * target_host()->l3;
	const char *comma = "";

	printf(" \"threads_%d\": {\n", pool_threads(pool));
	for (int i = 0; i < COUNT(unit); i++) {
		double rate = machine_flops(pool, unit[i].type, seconds);

		if (rate > 0)
			printf("  \"%s_gflops\": %.1f,\n", unit[i].name, 1e-9 * rate);
	}
	printf("  \"launch_us\": %.2f,\n  \"gbytes_per_s\": [",
	       1e6 * machine_launch(pool, seconds));
	last = last < 256 << 20 ? 256 << 20 : last;
	for (size_t bytes = 16 << 10; bytes <= last; bytes *= 2, comma = ",") {
		printf("%s\n   {\"kib\": %zu", comma, bytes >> 10);
		for (int i = 0; i < COUNT(stream); i++)
			printf(", \"%s\": %.1f", stream[i].name,
			       1e-9 * machine_bandwidth(pool, stream[i].how, bytes, seconds));
		printf("}");
	}
	printf("\n  ]\n }");
}

int main(int argc, char **argv)
{
	static const struct option option[] = {{"threads", required_argument, 0, 't'},
					       {"seconds", required_argument, 0, 's'},
					       {0}};
	int most = 0;
	double seconds = 0.1;
	const Target *t = target_host();
	Error err = {0};

	for (int o; (o = getopt_long(argc, argv, "", option, NULL)) != -1;)
		if (o == 't')
			most = atoi(optarg);
		else if (o == 's')
			seconds = atof(optarg);
		else
			return 2;
	printf("{\n \"isa\": \"%s\", \"l1_kib\": %zu, \"l2_kib\": %zu, \"l3_kib\": %zu", t->key,
	       t->l1 >> 10, t->l2 >> 10, t->l3 >> 10);
	for (int threads = 1, last = 0; !last; threads = most) {
		Pool *pool = pool_new(threads, &err);

		if (!pool) {
			fprintf(stderr, "machine: %s\n", err.text);
			return 1;
		}
		last = threads != 1 || most == 1;
		printf(",\n");
		print_threads(pool, seconds);
		if (!last && !most) {
			Pool *all = pool_new(0, NULL);

			most = all ? pool_threads(all) : 1;
			last = most == 1;
			pool_free(all);
		}
		pool_free(pool);
	}
	printf("\n}\n");
	return 0;
}

/* scale.c - times what happens before the first step, of nets of more and more layers.
 *
 * usage: scale [--layers N] [--rounds N] [--out FILE.json]
 *
 * The nets are chains of Y = tanh(XW + b) + X/2 with a squared loss and Adam, of 16 units and 4
 * examples, from 125 layers on, doubled up to N [4000]. Timed are: making the equations; gradients
 * and updates; making a session of them on tcc, kernels included. Processor time of the fastest of the
 * rounds counts. A table in Markdown goes to standard output.
 */
#include <ricci_nn.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STAGES = 3, UNITS = 16, EXAMPLES = 4, LEAST = 125, MOST_SIZES = 16 };

static const char *const stage_name[STAGES] = {"equations", "gradients", "session"};

typedef struct Row {
	int layers;
	double seconds[STAGES];
} Row;

static double processor_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "scale: %s\n", what);
	exit(1);
}

static ricci_tensor *net(ricci_graph *g, int layers)
{
	const int64_t in[2] = {EXAMPLES, UNITS}, weights[2] = {UNITS, UNITS};
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, in);
	char name[32];

	for (int k = 0; k < layers; k++) {
		snprintf(name, sizeof name, "w%d", k);
		ricci_tensor *w = ricci_param(g, name, RICCI_F32, 2, weights, ricci_normal(.1));
		snprintf(name, sizeof name, "b%d", k);
		ricci_tensor *b = ricci_param(g, name, RICCI_F32, 1, weights, ricci_constant(0));
		x = ricci_op(g,
			     "S[n,j] += X[n,i] * W[i,j]; Y[n,j] = tanh(S[n,j] + B[j]) + X[n,j]/2",
			     x, w, b);
	}
	return ricci_op(g, "L[] += X[n,i] * X[n,i]", x);
}

static void measure(Row *row)
{
	double t[STAGES + 1];
	ricci_graph *g = ricci_graph_new();
	ricci_options o = RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1);

	t[0] = processor_seconds();
	ricci_tensor *loss = net(g, row->layers);
	t[1] = processor_seconds();
	ricci_adam(loss, ricci_input(g, "rate", RICCI_F32, 0, NULL), .9, .999, 1e-8);
	if (ricci_graph_error(g))
		fail(ricci_error_message());
	t[2] = processor_seconds();
	ricci_session *s = ricci_session_new(g, &o, 1, 1, &loss);
	if (!s)
		fail(ricci_error_message());
	t[3] = processor_seconds();
	for (int k = 0; k < STAGES; k++)
		if (row->seconds[k] == 0 || t[k + 1] - t[k] < row->seconds[k])
			row->seconds[k] = t[k + 1] - t[k];
	ricci_session_free(s);
	ricci_graph_free(g);
}

static void print_table(int n, const Row *row)
{
	printf("| layers |");
	for (int k = 0; k < STAGES; k++)
		printf(" %s, ms |", stage_name[k]);
	printf(" together, ms | a layer, us |\n|--:|--:|--:|--:|--:|--:|\n");
	for (int i = 0; i < n; i++) {
		double all = 0;
		printf("| %d |", row[i].layers);
		for (int k = 0; k < STAGES; k++) {
			printf(" %.1f |", 1e3 * row[i].seconds[k]);
			all += row[i].seconds[k];
		}
		printf(" %.1f | %.1f |\n", 1e3 * all, 1e6 * all / row[i].layers);
	}
}

static void write_json(const char *path, int n, const Row *row)
{
	FILE *f = fopen(path, "w");

	if (!f)
		fail("the file can't be written");
	fprintf(f, "{\"stages\": [\"%s\", \"%s\", \"%s\"], \"rows\": [", stage_name[0],
		stage_name[1], stage_name[2]);
	for (int i = 0; i < n; i++)
		fprintf(f, "%s\n {\"layers\": %d, \"seconds\": [%.6f, %.6f, %.6f]}", i ? "," : "",
			row[i].layers, row[i].seconds[0], row[i].seconds[1], row[i].seconds[2]);
	fprintf(f, "\n]}\n");
	if (fclose(f))
		fail("the file can't be written");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"layers", 1, NULL, 'l'},
						{"rounds", 1, NULL, 'r'},
						{"out", 1, NULL, 'o'},
						{NULL, 0, NULL, 0}};
	int most = 4000, rounds = 3, n = 0;
	const char *out = NULL;
	Row row[MOST_SIZES] = {{0}};

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
		if (c == 'l')
			most = atoi(optarg);
		else if (c == 'r')
			rounds = atoi(optarg);
		else if (c == 'o')
			out = optarg;
		else
			fail("usage: scale [--layers N] [--rounds N] [--out FILE.json]");
	}
	for (int layers = LEAST; layers <= most && n < MOST_SIZES; layers *= 2) {
		row[n].layers = layers;
		for (int k = 0; k < rounds; k++)
			measure(&row[n]);
		n++;
	}
	print_table(n, row);
	if (out)
		write_json(out, n, row);
	return 0;
}

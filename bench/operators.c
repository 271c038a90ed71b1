/* operators.c - times single operators, forward and their gradients.
 *
 * usage: operators [--threads N] [--seconds S] [--list | NAME MODE]
 *
 * An operator is its equations and its operands' shapes. Its session tunes kernels for S seconds
 * (10) or until nothing is left to try, then steps are timed; one JSON line tells the median.
 * Operands are fed once and read where they lie. bench/peer_operators.py does the same in PyTorch.
 */
#include <getopt.h>
#include <ricci.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 4, BATCHES = 15 };

typedef struct Work {
	const char *name, *modes, *text;
	double flops;		/* of the forward equations that multiply and add; 0: count bytes */
	int conv[4];		/* of a convolution: kernel, stride, and its places each way */
	int64_t shape[MOST][6]; /* of the operands, each ended by 0 */
} Work;

#define EACH		  "forward dx dw"
#define BOTH		  "forward forward+grad"
#define OUT(side, stride) (((side)-1) / (stride) + 1)
/* Convolutions of table 2 of the TVM paper (Chen et al., OSDI 2018): batch 1, padding kernel / 2.
 */
#define CONV(name, side, in, out, kernel, stride)                                                  \
	{                                                                                          \
		name, EACH, "Y[b,k,p,q] += (X[b,c,%d*p+r-%d,%d*q+s-%d] else 0) * W[k,c,r,s]",      \
			2. * in *out *kernel *kernel *OUT(side, stride) * OUT(side, stride),       \
			{kernel, stride, OUT(side, stride), OUT(side, stride)},                    \
		{                                                                                  \
			{1, in, side, side},                                                       \
			{                                                                          \
				out, in, kernel, kernel                                            \
			}                                                                          \
		}                                                                                  \
	}
#define DEPTHWISE(name, side, channels, stride)                                                    \
	{                                                                                          \
		name, "forward", "Y[b,c,p,q] += (X[b,c,%d*p+r-%d,%d*q+s-%d] else 0) * W[c,r,s]",   \
			18. * channels *OUT(side, stride) * OUT(side, stride),                     \
			{3, stride, OUT(side, stride), OUT(side, stride)},                         \
		{                                                                                  \
			{1, channels, side, side},                                                 \
			{                                                                          \
				channels, 3, 3                                                     \
			}                                                                          \
		}                                                                                  \
	}
#define GEMM(name, m, n, k)                                                                        \
	{                                                                                          \
		name, "forward", "Y[i,j] += A[i,k] * B[k,j]", 2. * m *n *k, {0},                   \
		{                                                                                  \
			{m, k},                                                                    \
			{                                                                          \
				k, n                                                               \
			}                                                                          \
		}                                                                                  \
	}
#define CAPSULES(name, batch)                                                                      \
	{                                                                                          \
		name, BOTH, "V[b,k,p,q,i,j] += P[b,c,2*p+r,2*q+s,i,t] * W[k,c,r,s,t,j]",           \
			2. * batch * 32 * 36 * 16 * 32 * 9 * 4, {0},                               \
		{                                                                                  \
			{batch, 32, 14, 14, 4, 4},                                                 \
			{                                                                          \
				32, 32, 3, 3, 4, 4                                                 \
			}                                                                          \
		}                                                                                  \
	}

static const Work work[] = {
	GEMM("gemm_1024", 1024, 1024, 1024),
	GEMM("gemm_512x512x64", 512, 512, 64),
	GEMM("gemm_16x4096x1024", 16, 4096, 1024),
	CAPSULES("capsconv_b1", 1),
	CAPSULES("capsconv_b16", 16),
	CONV("C1", 224, 3, 64, 7, 2),
	CONV("C2", 56, 64, 64, 3, 1),
	CONV("C3", 56, 64, 64, 1, 1),
	CONV("C4", 56, 64, 128, 3, 2),
	CONV("C5", 56, 64, 128, 1, 2),
	CONV("C6", 28, 128, 128, 3, 1),
	CONV("C7", 28, 128, 256, 3, 2),
	CONV("C8", 28, 128, 256, 1, 2),
	CONV("C9", 14, 256, 256, 3, 1),
	CONV("C10", 14, 256, 512, 3, 2),
	CONV("C11", 14, 256, 512, 1, 2),
	CONV("C12", 7, 512, 512, 3, 1),
	DEPTHWISE("D1", 112, 32, 1),
	DEPTHWISE("D2", 112, 64, 2),
	DEPTHWISE("D3", 56, 128, 1),
	DEPTHWISE("D4", 56, 128, 2),
	DEPTHWISE("D5", 28, 256, 1),
	DEPTHWISE("D6", 28, 256, 2),
	DEPTHWISE("D7", 14, 512, 1),
	DEPTHWISE("D8", 14, 512, 2),
	DEPTHWISE("D9", 7, 1024, 1),
	{"softmax",
	 BOTH,
	 "M[i] max= X[i,j]; E[i,j] = exp(X[i,j] - floor(M[i])); S[i] += E[i,j];"
	 "Y[i,j] = E[i,j] / S[i]",
	 0,
	 {0},
	 {{4096, 1024}}},
	{"layernorm",
	 BOTH,
	 "M[i] += X[i,j] / 1024; V[i] += (X[i,j] - M[i]) * (X[i,j] - M[i]) / 1024;"
	 "Y[i,j] = (X[i,j] - M[i]) * rsqrt(V[i] + 1e-5) * G[j] + B[j]",
	 0,
	 {0},
	 {{4096, 1024}, {1024}, {1024}}},
	{"chain",
	 BOTH,
	 "Z[i,j] = X[i,j] * W[j] + B[j];"
	 "Y[i,j] = 0.5 * Z[i,j] * (1 + erf(Z[i,j] * 0.7071067811865476)) + R[i,j]",
	 0,
	 {0},
	 {{4096, 1024}, {1024}, {1024}, {4096, 1024}}},
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Numbers of a normal-like spread, the same in every run. */
static int feed(ricci_session *s, const ricci_tensor *t, unsigned seed)
{
	size_t n = ricci_bytes(t) / sizeof(float);
	float *data = malloc(ricci_bytes(t));
	int status = -1;

	for (size_t i = 0; data && i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		data[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
	}
	if (data)
		status = ricci_feed(s, t, data);
	free(data);
	return status;
}

typedef struct Bench {
	ricci_graph *g;
	int noperand, noutput;
	ricci_tensor *operand[MOST], *seed, *output[MOST + 1];
} Bench;

static void bench_build(Bench *b, const Work *w, const char *mode)
{
	char text[512];
	int k = w->conv[0], s = w->conv[1], n = 1, all = strcmp(mode, "forward+grad") == 0;
	ricci_tensor *y, *slot[MOST];

	b->g = ricci_graph_new();
	for (; b->noperand < MOST && w->shape[b->noperand][0]; b->noperand++) {
		int rank = 0;
		while (rank < 6 && w->shape[b->noperand][rank])
			rank++;
		snprintf(text, sizeof text, "operand%d", b->noperand);
		b->operand[b->noperand] =
			ricci_input(b->g, text, RICCI_F32, rank, w->shape[b->noperand]);
	}
	/* the numbers of a convolution stand in its text, where other texts have no % */
	int at = snprintf(text, sizeof text, w->text, s, k / 2, s, k / 2);
	if (k)
		snprintf(text + at, sizeof text - (size_t)at, " where p<%d, q<%d", w->conv[2],
			 w->conv[3]);
	ricci_ops(b->g, text, b->noperand, b->operand, &n, &y);
	if (all || !strcmp(mode, "forward"))
		b->output[b->noutput++] = y;
	if (!strcmp(mode, "forward"))
		return;
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < ricci_rank(y); d++)
		shape[d] = ricci_extent(y, d);
	b->seed = ricci_input(b->g, "dy", RICCI_F32, ricci_rank(y), shape);
	ricci_tensor *const *wrt = b->operand + !strcmp(mode, "dw");
	n = all ? b->noperand : 1;
	ricci_grad(b->g, y, b->seed, n, wrt, slot);
	for (int i = 0; i < n; i++)
		b->output[b->noutput++] = slot[i];
}

/* Steps for that long, or (tuned) until the tuner is done: steps are what tries schedules. */
static int run_for(ricci_session *s, double limit, long *steps)
{
	double start = seconds();
	int status = 0;

	for (*steps = 0; !status && (*steps == 0 || seconds() - start < limit); ++*steps)
		status = ricci_step(s);
	return status;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of batches of steps. */
static int bench_time(ricci_session *s, double limit, double *median)
{
	double batch[BATCHES];
	long steps, each;
	int status = run_for(s, limit, &steps);

	if (!status)
		status = ricci_settle(s);
	if (!status)
		status = run_for(s, 0.1, &steps);
	each = steps / 4 + 1;
	for (int i = 0; i < BATCHES && !status; i++) {
		double start = seconds();
		for (long k = 0; k < each && !status; k++)
			status = ricci_step(s);
		batch[i] = (seconds() - start) / (double)each;
	}
	qsort(batch, BATCHES, sizeof *batch, by_size);
	*median = batch[BATCHES / 2];
	return status;
}

static int bench_run(const Work *w, const char *mode, int threads, double limit)
{
	Bench b = {0};
	ricci_options options = {.threads = threads};
	char err[4096] = "";
	double median = 0;

	bench_build(&b, w, mode);
	ricci_session *s =
		ricci_session_new(b.g, &options, 0, b.noutput, b.output, err, sizeof err);
	int status = s ? 0 : -1;
	for (int i = 0; i < b.noperand && !status; i++)
		status = feed(s, b.operand[i], (unsigned)i);
	if (!status && b.seed)
		status = feed(s, b.seed, 77);
	if (!status)
		status = bench_time(s, limit, &median);
	if (status)
		fprintf(stderr, "operators: %s %s: %s\n", w->name, mode,
			s ? ricci_session_error(s) : err);
	else
		printf("{\"name\": \"%s\", \"mode\": \"%s\", \"ms\": %.5f, \"gflops\": %.2f}\n",
		       w->name, mode, 1e3 * median,
		       (strcmp(mode, "forward+grad") ? 1 : 3) * w->flops / median / 1e9);
	ricci_session_free(s);
	ricci_graph_free(b.g);
	return status != 0;
}

int main(int argc, char **argv)
{
	static const struct option option[] = {{"threads", required_argument, 0, 't'},
					       {"seconds", required_argument, 0, 's'},
					       {"list", no_argument, 0, 'l'},
					       {0}};
	int threads = 0, list = 0, n = (int)(sizeof work / sizeof *work);
	double limit = 10;

	for (int o; (o = getopt_long(argc, argv, "", option, NULL)) != -1;)
		switch (o) {
		case 't':
			threads = atoi(optarg);
			break;
		case 's':
			limit = atof(optarg);
			break;
		case 'l':
			list = 1;
			break;
		default:
			return 2;
		}
	for (int i = 0; i < n && list; i++)
		printf("%s %s\n", work[i].name, work[i].modes);
	for (int i = 0; i < n && argc - optind == 2; i++)
		if (!strcmp(work[i].name, argv[optind]) && strstr(work[i].modes, argv[optind + 1]))
			return bench_run(&work[i], argv[optind + 1], threads, limit);
	if (!list)
		fprintf(stderr,
			"usage: operators [--threads N] [--seconds S] [--list | NAME MODE]\n");
	return list ? 0 : 2;
}

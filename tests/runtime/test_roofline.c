/* test_roofline.c - arithmetic, bytes and launches of known programs are exactly what they are by
 * hand; what bounds a kernel follows from made-up figures of a machine. */
#include "runtime/session.h"
#include "tests/check.h"
#include <stdlib.h>
#include <string.h>

typedef struct Seen {
	int n;
	double flops, read, written, launches;
	bool timed;
} Seen;

static void see(void *user, const KernelTime *k)
{
	Seen *s = user;

	s->n++;
	s->flops += k->launches * k->flops;
	s->read += k->launches * k->read;
	s->written += k->launches * k->written;
	s->launches += k->launches;
	s->timed = s->timed && k->seconds > 0 && k->threads >= 1;
	CHECK(!strncmp(k->text, "keep ", 5) || !strncmp(k->text, "local ", 6));
}

/* What the kernels of n results do in a run, on zeros. */
static Seen kernels_of(Ir *ir, int n, Node *const *result, int nin, Node *const *in)
{
	Seen s = {.timed = true};
	Binding bind[4];
	void *out[4];
	Error err = {0};
	Evaluation e = {.backend = backend_find("tcc"),
			.threads = 2,
			.repeat = 5,
			.kernel = see,
			.user = &s};

	for (int i = 0; i < nin; i++)
		bind[i] = (Binding){in[i], mem_zalloc(tensor_bytes(in[i]))};
	for (int i = 0; i < n; i++)
		out[i] = mem_zalloc(tensor_bytes(result[i]));
	CHECK_INT(evaluate(ir, n, result, nin, bind, out, &e, &err), 0);
	CHECK_STR(err.text, "");
	for (int i = 0; i < nin; i++)
		mem_free((void *)(uintptr_t)bind[i].data);
	for (int i = 0; i < n; i++)
		mem_free(out[i]);
	CHECK(s.timed);
	return s;
}

static void test_counts(const char *text, int nin, const int64_t shape[][4], int kernels,
			double flops, double read, double written)
{
	Ir ir;
	Node *in[3], *result[2];
	const char **name;
	int nresult = 2, n;

	ir_init(&ir);
	{
		IR_ENTER(&ir, );
		for (int i = 0; i < nin; i++) {
			int rank = 0;
			char letter[2] = {(char)('A' + i), 0};

			while (rank < 4 && shape[i][rank])
				rank++;
			in[i] = node_input(&ir, letter, RICCI_F32, rank, shape[i]);
		}
		IR_LEAVE(&ir);
	}
	n = notation_operands(&ir, text, &name);
	CHECK_INT(notation_elaborate(&ir, text, n, in, &nresult, result, 2), 0);
	CHECK_STR(ir.err.text, "");
	Seen s = kernels_of(&ir, nresult, result, nin, in);
	CHECK_REPORT(s.n == kernels && s.launches == kernels, "%s: %d kernels, %g launches", text,
		     s.n, s.launches);
	CHECK_REPORT(s.flops == flops, "%s: %.15g flops, not %.15g", text, s.flops, flops);
	CHECK_REPORT(s.read == read && s.written == written, "%s: %.15g bytes read, %.15g written",
		     text, s.read, s.written);
	ir_free(&ir);
}

static void test_programs(void)
{
	test_counts("Y[i,j] += A[i,k] * B[k,j]", 2, (const int64_t[][4]){{12, 24}, {24, 7}}, 1,
		    2 * 12 * 24 * 7, 4 * (12 * 24 + 24 * 7), 4 * 12 * 7);
	/* The padding's conditions are no arithmetic. */
	test_counts("Y[b,k,p,q] += (A[b,c,2*p+r-1,2*q+s-1] else 0) * B[k,c,r,s] where p<4, q<4", 2,
		    (const int64_t[][4]){{2, 3, 8, 8}, {5, 3, 3, 3}}, 1, 2 * 2 * 5 * 4 * 4 * 3 * 9,
		    4 * (2 * 3 * 8 * 8 + 5 * 3 * 9), 4 * 2 * 5 * 4 * 4);
	test_counts("Y[i] = A[i] > 0 ? A[i] : 0", 1, (const int64_t[][4]){{100}}, 1, 0, 400, 400);
	test_counts("Y[i] = A[i] * B[i] + 1", 2, (const int64_t[][4]){{100}, {100}}, 1, 200, 800,
		    400);
	/* A transcendental function counts as many as its polynomial needs, about. */
	test_counts("Y[i] = exp(A[i])", 1, (const int64_t[][4]){{100}}, 1, 1200, 400, 400);
	test_counts("Y[] max= A[i]", 1, (const int64_t[][4]){{100}}, 1, 100, 400, 4);
	test_counts("Y[j,i] = A[i,j]", 1, (const int64_t[][4]){{8, 8}}, 1, 0, 256, 256);
}

/* Seven steps of a body of one product. */
static void test_loop(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *w = ricci_input(g, "w", RICCI_F32, 2, (int64_t[]){16, 16});
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){4, 16}), *final;
	ricci_tensor *h = ricci_input(g, "h", RICCI_F32, 2, (int64_t[]){4, 16});
	ricci_tensor *next = ricci_op(g, "Y[b,n] += H[b,k] * W[k,n]", h, w);
	ricci_loop loop = RICCI_LOOP(.steps = 7, .ncarry = 1, .carry = &(ricci_carry){h, x, next});

	CHECK_INT(ricci_scan(g, &loop, &final, NULL), 0);
	CHECK_GRAPH(g);
	Seen s = kernels_of(&g->ir, 1, &final->node, 2, (Node *[]){w->node, x->node});
	CHECK_INT(s.launches, 7);
	CHECK_INT(s.flops, 7 * 2 * 4 * 16 * 16);
	ricci_graph_free(g);
}

static const Machine made_up = {
	.threads = 2,
	.nlevel = 3,
	.f32 = 100e9,
	.f64 = 50e9,
	.launch = 1e-6,
	.level = {{"L1", 1e4, 1e-11, 1e-11},
		  {"L2", 1e6, 2e-11, 4e-11},
		  {"memory", INFINITY, 1e-10, 3e-10}},
};

static void test_bound(const char *bound, double share, KernelTime k)
{
	Roofline r = roofline_of(&made_up, &k);

	CHECK_STR(r.bound, bound);
	CHECK_NEAR(r.share, share, 1e-9);
	CHECK_NEAR(r.gflops, 1e-9 * k.flops / k.seconds, 1e-9);
	CHECK_NEAR(r.gbytes, 1e-9 * (k.read + k.written) / k.seconds, 1e-9);
	CHECK_NEAR(r.intensity, k.flops / (k.read + k.written), 1e-9);
}

static void test_bounds(void)
{
	/* 1e9 operations are 10 ms of f32, 20 ms of f64 */
	test_bound("compute", 0.5, (KernelTime){.flops = 1e9, .read = 1e6, .seconds = 0.02});
	test_bound("compute", 0.5,
		   (KernelTime){.flops = 1e9, .read = 1e6, .seconds = 0.04, .type = RICCI_F64});
	/* 1e6 bytes fit L2: 0.5e6 read and as many written are 10 + 20 us */
	test_bound("L2", 0.3,
		   (KernelTime){.flops = 1e5, .read = 5e5, .written = 5e5, .seconds = 1e-4});
	/* one more does not */
	test_bound("memory", 0.25,
		   (KernelTime){.flops = 1e6, .read = 1e6, .written = 1e6, .seconds = 16e-4});
	test_bound("launch", 0.1,
		   (KernelTime){.flops = 10, .read = 40, .written = 40, .seconds = 1e-5});
	Roofline r = roofline_of(
		&made_up, &(KernelTime){.flops = 1, .read = 1e6, .written = 1e6, .seconds = 1e-3});
	CHECK_NEAR(r.bandwidth, 5, 1e-9);
	CHECK_NEAR(r.peak, 100, 1e-9);
	CHECK_NEAR(r.memory, 4e-4, 1e-12);
}

static void test_machine(void)
{
	Machine m;
	Error err = {0};

	CHECK_INT(machine_measure(&m, 2, 0.001, &err), 0);
	CHECK_STR(err.text, "");
	CHECK_INT(m.threads, 2);
	CHECK(m.f32 > 0 && m.f64 > 0 && m.launch > 0);
	CHECK(m.nlevel >= 1 && isinf(m.level[m.nlevel - 1].room));
	for (int i = 0; i < m.nlevel; i++) {
		CHECK(m.level[i].read > 0 && m.level[i].write >= 0);
		CHECK(!i || m.level[i].room > m.level[i - 1].room);
	}
}

int main(void)
{
	test_programs();
	test_loop();
	test_bounds();
	test_machine();
	return check_done();
}

/* test_backend_task.c - whole tasks through backends: interp as a backend runs and reports bad
 * data, CUDA takes every kernel offered to it, and running out of memory anywhere is an error that
 * leaks nothing. */
#include "jit/backend/backend.h"
#include "tests/check.h"
#include "tests/usual_device.h"

#include <stdlib.h>

typedef struct Operand {
	const char *name;
	Type type;
	int rank;
	int64_t shape[4];
} Operand;

static int partition(Ir *ir, const char *text, int n, const Operand *operand, int *nsub,
		     Subgraph **sub)
{
	Node *in[4], *root[4];
	int nroot = 0;
	IR_ENTER(ir, RICCI_ENOMEM);
	for (int i = 0; i < n; i++)
		in[i] = node_input(ir, operand[i].name, operand[i].type, operand[i].rank,
				   operand[i].shape);
	int bad = notation_elaborate(ir, text, n, in, &nroot, root, 4);
	if (!bad)
		bad = rewrite_graph(ir, nroot, root);
	if (!bad)
		bad = fuse_partition(ir, nroot, root, &usual_device, nsub, sub);
	IR_LEAVE(ir);
	return bad;
}

/* The first task of a program. */
static Task *task_of(const char *text, int n, const Operand *operand)
{
	Ir ir;
	Subgraph *sub;
	Error err = {0};
	int nsub = 0;
	ir_init(&ir);
	CHECK_INT(partition(&ir, text, n, operand, &nsub, &sub), 0);
	CHECK_STR(ir.err.text, "");
	Task *t = nsub ? task_new(&sub[0], &err) : NULL;
	CHECK(t != NULL);
	ir_free(&ir);
	return t;
}

static const Operand product[] = {{"A", RICCI_F32, 2, {20, 30}}, {"B", RICCI_F32, 2, {30, 24}}};
static const Operand gather[] = {{"X", RICCI_F32, 1, {10}}, {"I", RICCI_I32, 1, {6}}};
static const Operand image[] = {{"P", RICCI_F32, 4, {2, 3, 9, 9}},
				{"W", RICCI_F32, 4, {4, 3, 3, 3}}};
static const char gathered[] = "Y[i] = X[I[i]] * 2";

static void check_interp(void)
{
	Error err = {0};
	Task *t = task_of(gathered, 2, gather);
	Schedule none = {0};
	Kernel *k = t ? kernel_make(t, &none, &backend_interp, target_host(), &err) : NULL;
	CHECK(k && k->run && k->shape.parts == 1);
	float x[10], y[6] = {0};
	int32_t at[] = {3, 9, 0, 1, 2, 9};
	for (int i = 0; i < 10; i++)
		x[i] = (float)i;
	if (k) {
		/* inputs stand in the order of the subgraph */
		bool first = t->sub.input[0]->type == RICCI_F32;
		void *buf[] = {first ? (void *)x : at, first ? (void *)at : x, y};
		KernelEnv env = {1, 2, NULL, NULL, k, &err};
		k->run(buf, &env, 0, 1);
		CHECK_STR(err.text, "");
		for (int i = 0; i < 6; i++)
			CHECK_NEAR(y[i], 2 * at[i], 0);
		at[4] = 10;
		k->run(buf, &env, 0, 1);
		CHECK_INT(err.code, RICCI_EVALUE);
	}
	kernel_unref(k);
	task_free(t);
}

static void check_cuda(void)
{
	if (!*backend_nvrtc.version()) {
		CHECK_SKIP("no CUDA toolkit");
		return;
	}
	static const struct {
		const char *text;
		const Operand *operand;
		int n;
	} program[] = {
		{"C[i,j] += A[i,k] * B[k,j]", product, 2},
		{gathered, gather, 2},
		{"C[b,o,y,x] += P[b,c,y+r,x+s] * W[o,c,r,s]", image, 2},
		{"M[i] max= A[i,k] where i<20", product, 1},
		{"S[i,k] = tanh(A[i,k]) * exp(-A[i,k]) + pow(abs(A[i,k]), 1.5)", product, 1},
	};
	for (int p = 0; p < COUNT(program); p++) {
		Task *t = task_of(program[p].text, program[p].n, program[p].operand);
		Schedule none = {
			0}; /* a grid takes all spatial loops; other steps are the processors' */
		Error err = {0};
		Kernel *k = t ? kernel_make(t, &none, &backend_nvrtc, target_host(), &err) : NULL;
		CHECK_STR(err.text, "");
		CHECK(k && k->run && k->bytes && k->nbuf == program[p].n + 1);
		kernel_unref(k);
		task_free(t);
	}
}

/* Lets the n-th allocation fail, for every n that happens. */
static void check_memory(const Backend *b, bool all)
{
	Task *t = task_of("C[i,j] += A[i,k] * B[k,j]", 2, product);
	Schedule offer[2];
	int n = t ? schedule_offers(t, target_host(), 2, offer) : 0;
	long live = mem_live();
	for (int i = 0; i < n; i++)
		for (long at = 1, done = 0; !done; at += all ? 1 : 1 + at / 4) {
			Error err = {0};
			mem_fail_at(at);
			Kernel *k = kernel_make(t, &offer[i], b, target_host(), &err);
			mem_fail_at(0);
			CHECK(k || err.code == RICCI_ENOMEM);
			CHECK(!k || !err.code);
			done = k != NULL;
			kernel_unref(k);
			CHECK_INT(mem_live(), live);
		}
	task_free(t);
}

/* Runs a task of one F64 input and one result in a single range, and compares with the interpreter.
 */
static void check_values(const Backend *b, const char *text)
{
	Error err = {0};
	Schedule offer[8];
	Task *t = task_parse(text, &err);
	CHECK(t != NULL);
	if (!t)
		return;
	Node *in = t->sub.input[0], *out = t->sub.member[0];
	size_t n = (size_t)tensor_size(in), m = (size_t)tensor_size(out);
	double *x = malloc(n * 8), *got = malloc(m * 8), *want = malloc(m * 8);
	for (size_t i = 0; i < n; i++)
		x[i] = (double)i + 1;
	CHECK_INT(interp_tensor(out, 1, &(Binding){in, x}, (RandomState){0, 0}, want, NULL, &err),
		  0);
	int offers = schedule_offers(t, target_host(), 8, offer);
	for (int k = 0; k < offers; k++) {
		Kernel *kernel = kernel_make(t, &offer[k], b, target_host(), &err);
		CHECK_REPORT(kernel, "%s", err.text);
		if (!kernel)
			break;
		void *scratch = aligned_alloc(64, (kernel->shape.scratch + 64) & ~(size_t)63);
		void *shared = aligned_alloc(64, (kernel->shape.shared + 64) & ~(size_t)63);
		KernelEnv env = {.scratch = scratch, .shared = shared, .kernel = kernel};
		kernel->run((void *[]){x, got}, &env, 0, kernel->shape.parts);
		CHECK_REPORT(!memcmp(got, want, m * 8), "%s: %s differs, schedule %d", b->name,
			     text, k);
		free(scratch);
		free(shared);
		kernel_unref(kernel);
	}
	free(x);
	free(got);
	free(want);
	task_free(t);
}

/* Loads under `low <= i && i <= high`, which gcc 12.2 -O3 got wrong on 64-bit lanes. */
static void check_conditional_loads(const Backend *b)
{
	check_values(b, "ricci-task 1\ninput f64 2x2x2x3x2\n"
			"keep m0[i,j,k,l,m] = i <= 1 && 1 <= k && k <= 2 && 1 <= l && l <= 3 ? "
			"a0[i,j,k-1,l-1,m] : 0 where i<9, k<8, l<16\n");
	check_values(b, "ricci-task 1\ninput f64 1x1x7x5\n"
			"keep m0[i,j,k,l] += 0 <= k - m && k - m <= 6 ? a0[0,0,k-m,l] : 0 "
			"where i<1, j<1, k<9, m<3\n");
}

int main(void)
{
	char why[256];
	check_interp();
	check_cuda();
	check_memory(&backend_interp, true);
	check_memory(&backend_tcc, true);
	check_conditional_loads(&backend_tcc);
	if (backend_cc.available(why, sizeof why)) {
		check_memory(&backend_cc, false);
		check_conditional_loads(&backend_cc);
	}
	CHECK_INT(mem_live(), 0);
	return check_done();
}

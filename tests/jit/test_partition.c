/* test_partition.c - clean-up, fusion decisions and tasks. */
#include "jit/jit.h"
#include "tests/check.h"
#include "tests/usual_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static DeviceModel device;

typedef struct Case {
	Ir ir;
	Node *root[8];
	int nroot, nsub;
	Subgraph *sub;
} Case;

/* Elaborates text over f32 operands named and shaped as given ("A=2x3 B=3"), cleans and partitions
 * it. */
static int case_run(Case *c, const char *text, int noperand, Node *const *operands)
{
	IR_ENTER(&c->ir, RICCI_ENOMEM);
	int rc = notation_elaborate(&c->ir, text, noperand, operands, &c->nroot, c->root, 8);
	if (!rc)
		rc = rewrite_graph(&c->ir, c->nroot, c->root);
	if (!rc)
		rc = fuse_partition(&c->ir, c->nroot, c->root, &device, &c->nsub, &c->sub);
	IR_LEAVE(&c->ir);
	if (rc)
		fprintf(stderr, "# %s\n", c->ir.err.text);
	return rc;
}

static Node *operand(Case *c, const char *name, int rank, int64_t a, int64_t b)
{
	IR_ENTER(&c->ir, NULL);
	int64_t shape[2] = {a, b};
	Node *n = node_input(&c->ir, name, RICCI_F32, rank, shape);
	IR_LEAVE(&c->ir);
	return n;
}

static void begin(Case *c)
{
	memset(c, 0, sizeof *c);
	ir_init(&c->ir);
}

/* A root is a stored member of exactly one subgraph, inputs are made before they are read, nothing
 * twice. */
static void check_order(const Case *c)
{
	for (int s = 0; s < c->nsub; s++)
		for (int k = 0; k < c->sub[s].ninput; k++) {
			bool there = c->sub[s].input[k]->op == OP_INPUT;
			for (int e = 0; e < s; e++)
				for (int m = 0; m < c->sub[e].nmember; m++)
					there |= c->sub[e].member[m] == c->sub[s].input[k] &&
						 c->sub[e].stored[m];
			CHECK(there);
		}
	for (int r = 0; r < c->nroot; r++) {
		int found = 0;
		for (int s = 0; s < c->nsub; s++)
			for (int m = 0; m < c->sub[s].nmember; m++)
				found += c->sub[s].member[m] == c->root[r] && c->sub[s].stored[m];
		CHECK_INT(found, c->root[r]->op == OP_COMP);
	}
}

static void check_task(const Case *c)
{
	for (int s = 0; s < c->nsub; s++) {
		Error err = {0};
		Task *t = task_new(&c->sub[s], &err);
		CHECK(t != NULL);
		Task *back = t ? task_parse(t->text, &err) : NULL;
		CHECK(back != NULL);
		if (back)
			CHECK_STR(back->text, t->text);
		if (err.code)
			printf("# %s\n%s\n", err.text, t ? t->text : "");
		task_free(back);
		task_free(t);
	}
}

static int partition(const char *text, int n, Node *const *ops, Case *c)
{
	if (case_run(c, text, n, ops))
		return -1;
	check_order(c);
	check_task(c);
	return c->nsub;
}

/* An elementwise producer and consumer meet in one kernel around the reduction. */
static void test_matrix_chain(void)
{
	Case c;
	begin(&c);
	Node *ops[3] = {operand(&c, "X", 2, 64, 128), operand(&c, "W", 2, 128, 32),
			operand(&c, "b", 1, 32, 0)};
	CHECK_INT(partition("h[i,k] = max(X[i,k], 0); s[i,j] += h[i,k] * W[k,j]; y[i,j] = "
			    "tanh(s[i,j] + b[j])",
			    3, ops, &c),
		  1);
	CHECK_INT(c.sub[0].nmember, 2);
	CHECK(!c.sub[0].stored[0] && c.sub[0].stored[1]);
	ir_free(&c.ir);
}

/* A softmax runs row by row: the exponentials are computed once and stored nowhere. */
static void test_rows(void)
{
	Case c;
	begin(&c);
	Node *ops[1] = {operand(&c, "X", 2, 256, 512)};
	const char *softmax = "m[i] max= X[i,j]; e[i,j] = exp(X[i,j] - m[i]); s[i] += e[i,j]; "
			      "y[i,j] = e[i,j] / s[i]";
	CHECK_INT(partition(softmax, 1, ops, &c), 1);
	CHECK_INT(c.sub[0].nmember, 4);
	CHECK_INT(c.sub[0].rows, 1);
	for (int k = 0; k < 4; k++)
		CHECK_INT(c.sub[0].stored[k], k == 3);
	ir_free(&c.ir);
	begin(&c); /* along columns lines would be met again and again */
	ops[0] = operand(&c, "X", 2, 256, 512);
	partition("m[j] max= X[i,j]; s[j] += exp(X[i,j] - m[j])", 1, ops, &c);
	for (int k = 0; k < c.nsub; k++)
		CHECK_INT(c.sub[k].rows, 0);
	ir_free(&c.ir);
	begin(&c); /* too few rows for the threads */
	ops[0] = operand(&c, "X", 2, 4, 512);
	CHECK(partition(softmax, 1, ops, &c) >= 3);
	ir_free(&c.ir);
}

/* After sums over images the channels are rows, the second dimension of what reads them; so are those of
 * windows over each channel. */
static void test_channel_rows(void)
{
	const char *text = "S[c] += X[b,c,y,x]; D[b,c,y,x] = X[b,c,y,x] - S[c]/256; V[c] += "
			   "D[b,c,y,x]*D[b,c,y,x]; N[b,c,y,x] = D[b,c,y,x]*rsqrt(V[c] + 1); "
			   "Y[b,c,y,x] += (N[b,c,y+r-1,x] else 0)*W[c,r] where y<16, r<3";
	int64_t shape[] = {4, 96, 16, 16};
	Case c;
	begin(&c);
	Node *ops[2] = {node_input(&c.ir, "X", RICCI_F32, 4, shape), operand(&c, "W", 2, 96, 3)};
	CHECK_INT(partition(text, 2, ops, &c), 1);
	CHECK_INT(c.sub[0].rows, 1);
	CHECK_INT(subgraph_row_count(&c.sub[0]), 96);
	int last = c.sub[0].nmember - 1;
	CHECK(last > 1);
	CHECK_INT(c.sub[0].lead[0], 0);
	CHECK_INT(c.sub[0].lead[last], 1);
	CHECK_INT(rows_places(&c.sub[0], last), 3);
	CHECK_INT(rows_place(&c.sub[0], last, 0), 0);
	CHECK_INT(rows_place(&c.sub[0], last, 1), 2);
	int64_t row, place, element = ((3 * 96 + 50) * 16 + 7) * 16 + 5;
	rows_split(&c.sub[0], last, element, &row, &place);
	CHECK_INT(row, 50);
	CHECK_INT(place, (3 * 16 + 7) * 16 + 5);
	CHECK_INT(rows_element(&c.sub[0], last, row, place), element);
	ir_free(&c.ir);
}

/* Sums over the rows are added to row by row; nobody reads them before. */
static void test_folds(void)
{
	const char *text =
		"M[i] += X[i,j]; Y[i,j] = X[i,j] - M[i]; c[j] += D[i,j]*(X[i,j] - M[i]); "
		"d[j] += D[i,j]; U[j] = W[j] - 0.1*d[j]";
	Case c;
	begin(&c);
	Node *ops[3] = {operand(&c, "X", 2, 512, 512), operand(&c, "D", 2, 512, 512),
			operand(&c, "W", 1, 512, 0)};
	CHECK_INT(partition(text, 3, ops, &c), 2);
	CHECK_INT(c.sub[0].nmember, 4);
	CHECK_INT(c.sub[0].rows, 1);
	for (int k = 0; k < 4; k++)
		CHECK_INT(c.sub[0].fold[k],
			  tensor_rank(c.sub[0].member[k]) == 1 && c.sub[0].stored[k]);
	CHECK_INT(c.sub[1].nmember, 1);
	ir_free(&c.ir);
}

static Node *operand_of(Case *c, const char *name, int rank, const int64_t *shape)
{
	IR_ENTER(&c->ir, NULL);
	Node *n = node_input(&c->ir, name, RICCI_F32, rank, shape);
	IR_LEAVE(&c->ir);
	return n;
}

/* How many kernels attention takes: 6 heads of 8 samples, scores of 256 x 256. */
static int attention_kernels(bool stored)
{
	static const char text[] =
		"S[b,h,i,j] += Q[b,i,64*h+d]*K[b,j,64*h+d] where h<6, d<64; "
		"A[b,h,i,j] = j <= i ? 0.125*S[b,h,i,j] : -inf; M[b,h,i] max= A[b,h,i,j]; "
		"E[b,h,i,j] = exp(A[b,h,i,j]-floor(M[b,h,i])); Z[b,h,i] += E[b,h,i,j]; "
		"P[b,h,i,j] = E[b,h,i,j]/Z[b,h,i]; Y[b,h,i,d] += P[b,h,i,j]*V[b,j,64*h+d] where "
		"d<64";
	const int64_t shape[] = {8, 256, 384};
	Case c;
	begin(&c);
	Node *ops[3] = {operand_of(&c, "Q", 3, shape), operand_of(&c, "K", 3, shape),
			operand_of(&c, "V", 3, shape)};
	int n = partition(text, 3, ops, &c);
	for (int k = 0; k + 1 < c.sub[0].nmember && n == 1 && !stored; k++)
		CHECK(!c.sub[0].stored[k]); /* no score is */
	ir_free(&c.ir);
	return n;
}

/* Outer axes: products that are a batch over the rows join, where a row's tensors fit a thread's own
 * cache and all threads have rows. */
static void test_axes(void)
{
	CHECK_INT(attention_kernels(false), 1);
	device.core = 1 << 18; /* a head's scores fill it */
	CHECK_INT(attention_kernels(true), 3);
	device = usual_device;
	device.threads = 32;
	CHECK_INT(attention_kernels(true), 3);
	device = usual_device;
	setenv("RICCI_UNFUSED", "axis", 1);
	CHECK(attention_kernels(true) > 3);
	setenv("RICCI_UNFUSED", "all", 1);
	CHECK_INT(attention_kernels(true), 7);
	unsetenv("RICCI_UNFUSED");
}

/* Is there still an equation with this operator outermost? */
static bool has_equation(const Case *c, Op op)
{
	bool found = false;
	for (int k = 0; k < c->nsub; k++)
		for (int m = 0; m < c->sub[k].nmember; m++)
			found |= comp_body(c->sub[k].member[m])->op == op;
	return found;
}

/* NeoFlow, Figure 6: B is computed from one tensor or from many, C from B alone or with another; the gradients
 * are those of C summed with W. Where the gradient needs no B it goes into C; else it is computed once where
 * arithmetic is dear, and again by each reader where traffic is. */
static void test_one_and_many(void)
{
	static const struct {
		const char *text, *operands;
		Op op; /* of B */
		bool needed;
	} row[] = {
		{"B[i,j] = A[i,j]+3; C[i,j] = 2*B[i,j]; Y[i,n] += C[i,j]*W[j,n]; "
		 "GA[i,j] = 2*G[i,j]",
		 "AWG", OP_ADD, false},
		{"B[i,j] = exp(A[i,j]); C[i,j] = B[i,j]*Z[i,j]; Y[i,n] += C[i,j]*W[j,n]; "
		 "GZ[i,j] = G[i,j]*B[i,j]; GA[i,j] = G[i,j]*Z[i,j]*B[i,j]",
		 "AZWG", OP_EXP, true},
		{"B[i,j] = exp(A[i,j]*X[i,j]); C[i,j] = B[i,j]+1; Y[i,n] += C[i,j]*W[j,n]; "
		 "GA[i,j] = G[i,j]*B[i,j]*X[i,j]; GX[i,j] = G[i,j]*B[i,j]*A[i,j]",
		 "AXWG", OP_EXP, true},
		{"B[i,j] = exp(A[i,j]*X[i,j]); C[i,j] = B[i,j]*Z[i,j]; Y[i,n] += C[i,j]*W[j,n]; "
		 "GZ[i,j] = G[i,j]*B[i,j]; GA[i,j] = G[i,j]*Z[i,j]*B[i,j]*X[i,j]; "
		 "GX[i,j] = G[i,j]*Z[i,j]*B[i,j]*A[i,j]",
		 "AXZWG", OP_EXP, true},
	};
	for (int k = 0; k < COUNT(row); k++)
		for (int dear = 0; dear < 2; dear++) {
			Case c;
			begin(&c);
			device.pc = dear ? 1e9 : 1e13;
			Node *ops[6];
			int n = 0;
			for (const char *name = row[k].operands; *name; name++)
				ops[n++] = operand(&c, (char[]){*name, 0}, 2, 512,
						   *name == 'W' ? 64 : 512);
			CHECK(partition(row[k].text, n, ops, &c) > 0);
			CHECK_INT(has_equation(&c, row[k].op), row[k].needed && dear);
			ir_free(&c.ir);
		}
	device = usual_device;
}

/* A product by weights that all rows share is better done for all rows at once. */
static void test_axes_shared(void)
{
	const int64_t shape[] = {64, 64, 96};
	Case c;
	begin(&c);
	Node *ops[2] = {operand_of(&c, "X", 3, shape), operand(&c, "W", 2, 96, 96)};
	CHECK_INT(partition("Y[b,i,n] += X[b,i,k]*W[k,n]; M[b,i] max= Y[b,i,n]; "
			    "Z[b,i,n] = Y[b,i,n]-M[b,i]",
			    2, ops, &c),
		  2);
	CHECK_INT(c.sub[0].nmember, 1);
	ir_free(&c.ir);
}

/* Windows: a row of few points gives its place to a longer one. */
static void test_short_rows(void)
{
	Case c;
	begin(&c);
	Node *ops[2] = {operand(&c, "X", 2, 128, 1025), operand(&c, "D", 2, 128, 512)};
	CHECK_INT(partition("M[i,p] max= X[i,2*p+r] where p<512, r<3; "
			    "N[i,p] += X[i,2*p+r] == M[i,p] ? 1.0 : 0.0 where r<3; "
			    "Y[i,p] = D[i,p] / N[i,p]",
			    2, ops, &c),
		  1);
	CHECK_INT(c.sub[0].nmember, 3);
	CHECK_INT(c.sub[0].rows, 1);
	ir_free(&c.ir);
}

/* A sum of two points is written out where a reader takes it for every other place only. */
static void test_parts(void)
{
	Case c;
	const char *text[] = {"E[i,u] += X[i,u+t]*2 where u<128, t<2; "
			      "Y[i,j] = j%2 == 1 ? E[i,j/2] : X[i,j/2] where j<256",
			      "E[i,u] += X[i,u+t]*2 where u<128, t<2; "
			      "Y[i,j] = E[i,j/2] - X[i,j/2] where j<256"};
	for (int k = 0; k < 2; k++) {
		begin(&c);
		Node *ops[1] = {operand(&c, "X", 2, 15, 129)};
		CHECK_INT(partition(text[k], 1, ops, &c), 1 + k);
		CHECK_INT(comp_reduce(c.sub[0].member[0]), k ? RED_ADD : RED_NONE);
		ir_free(&c.ir);
	}
}

/* What interleaves phases is no epilogue of a sum that it adds: it goes to its phases, row by row. */
static void test_phases(void)
{
	Case c;
	begin(&c);
	Node *ops[3] = {operand(&c, "X", 2, 128, 130), operand(&c, "A", 2, 128, 64),
			operand(&c, "B", 2, 64, 256)};
	CHECK_INT(partition("P[i,u] += X[i,u+t] where u<128, t<3; S[i,j] += A[i,k]*B[k,j]; "
			    "Y[i,j] = 0 < S[i,j] ? (j%2 == 1 ? P[i,j/2] : X[i,j/2]) + S[i,j] : 0",
			    3, ops, &c),
		  2);
	for (int k = 0; k < 2; k++) {
		bool ends = c.sub[k].member[c.sub[k].nmember - 1] == c.root[0];
		CHECK_INT(c.sub[k].nmember, ends ? 2 : 1);
		CHECK_INT(c.sub[k].rows, ends);
	}
	ir_free(&c.ir);
}

/* A reduction's result that two later equations of other spaces read is not computed twice. */
static void test_reduction_stays(void)
{
	Case c;
	begin(&c);
	Node *ops[1] = {operand(&c, "X", 2, 512, 32)};
	int n = partition("m[i] max= X[i,j]; e[i,j] = exp(X[i,j] - m[i]); s[i] += e[i,j]; y[i,j] = "
			  "e[i,j] / s[i]",
			  1, ops, &c);
	CHECK(n == 3 || n == 4);
	ir_free(&c.ir);
}

/* What reads another equation by a gather takes it in, unless its conditions keep its own reads inside by the
 * range of the axis that the gather would stand for: A of 2 is read where i == j. */
static void test_gathered_equations(void)
{
	static const struct {
		const char *text;
		int kernels;
	} row[] = {{"t[i,j] = A[j]*i where i<5; Y[i,k] = t[i,D[k]]*2", 1},
		   {"t[i,j] = i == j ? A[i] : 0 where i<5, j<2; Y[i,k] = t[i,D[k]]*2", 2}};
	for (int k = 0; k < COUNT(row); k++) {
		Case c;
		begin(&c);
		Node *ops[2] = {operand(&c, "A", 1, 2, 0)};
		IR_ENTER(&c.ir, );
		ops[1] = node_input(&c.ir, "D", RICCI_I8, 1, &(int64_t){3});
		IR_LEAVE(&c.ir);
		CHECK_INT(partition(row[k].text, 2, ops, &c), row[k].kernels);
		ir_free(&c.ir);
	}
}

/* No cycle: y joins not the product's kernel when a reduction of it stands between; what follows
 * the product runs row by row. */
static void test_no_cycle(void)
{
	Case c;
	begin(&c);
	Node *ops[1] = {operand(&c, "X", 2, 64, 64)};
	int n = partition("a[i,j] += X[i,k] * X[k,j]; m[i] max= a[i,j]; r[i] = m[i] + 1; y[i,j] = "
			  "a[i,j] - r[i]",
			  1, ops, &c);
	CHECK_INT(n, 2);
	CHECK_INT(c.sub[0].rows, 0);
	CHECK_INT(c.sub[1].rows, 1);
	ir_free(&c.ir);
}

/* A sum runs row by row as well as by itself where a row's elements are its own, not where a group of rows
 * shares them. */
static void test_shared_by_rows(void)
{
	static const struct {
		int64_t groups;
		const char *text;
		int kernels;
	} row[] = {
		{64, "y[c,p] += K[c,r,p] * X[c,p+r]; m[c] += y[c,p]; z[c,p] = y[c,p] - m[c]", 1},
		{4, "y[c,p] += K[c/16,r,p] * X[c,p+r]; m[c] += y[c,p]; z[c,p] = y[c,p] - m[c]", 2},
	};
	for (size_t k = 0; k < COUNT(row); k++) {
		Case c;
		begin(&c);
		Node *ops[2] = {operand_of(&c, "K", 3, (int64_t[]){row[k].groups, 40, 512}),
				operand(&c, "X", 2, 64, 551)};
		CHECK_INT(partition(row[k].text, 2, ops, &c), row[k].kernels);
		ir_free(&c.ir);
	}
}

static bool is_cosine(const Node *n)
{
	return n->op == OP_COS;
}

/* A function of few axes leaves a sum where what it reads is inside its tensor: because the data of the input that
 * indexes are checked, not where a condition says so. */
static void test_gathered_apart(void)
{
	static const struct {
		const char *text;
		bool apart;
	} row[] = {
		{"y[i,j] += abs(cos(P[T[i],k]) - B[j,k])", true},
		{"y[i,j] += abs(cos(P[min(max(T[i], 0), 63),k]) - B[j,k])", true},
		{"y[i,j] += abs(cos(P[T[i]*T[i],k] else 0) - B[j,k])", false},
	};
	for (size_t k = 0; k < COUNT(row); k++) {
		Case c;
		begin(&c);
		Node *ops[3] = {operand(&c, "P", 2, 64, 64), NULL, operand(&c, "B", 2, 64, 64)};
		IR_ENTER(&c.ir, );
		ops[1] = node_input(&c.ir, "T", RICCI_I32, 1, &(int64_t){64});
		IR_LEAVE(&c.ir);
		partition(row[k].text, 3, ops, &c);
		CHECK_REPORT(row[k].apart != node_any(&c.ir, comp_body(c.root[0]), is_cosine), "%s",
			     row[k].text);
		ir_free(&c.ir);
	}
}

/* An integral image is summed along one axis, then along the other. A sum that runs within rows is
 * one of their equations; one that runs from row to row would be computed anew in each. */
static void test_running(void)
{
	Case c;
	begin(&c);
	Node *ops[1] = {operand(&c, "X", 2, 64, 512)};
	int n = partition("y[i,k] += X[j,l] where j < i+1, l < k+1, i < 64, k < 512", 1, ops, &c);
	CHECK_INT(n, 2);
	for (int s = 0; s < n; s++)
		CHECK_INT(comp_naxis(c.sub[s].member[0]), 3);
	ir_free(&c.ir);
	begin(&c);
	ops[0] = operand(&c, "X", 2, 64, 512);
	n = partition("r[i,k] += exp(X[i,j]) where j < k+1, k < 512; m[i] max= X[i,j]; y[i,k] = "
		      "r[i,k] / m[i]",
		      1, ops, &c);
	CHECK_INT(n, 1);
	CHECK_INT(c.sub[0].rows, 1);
	ir_free(&c.ir);
	begin(&c);
	ops[0] = operand(&c, "X", 2, 64, 512);
	n = partition("r[i,k] += X[j,k] where j < i+1, i < 64; m[i] max= r[i,j]; y[i,k] = r[i,k] - "
		      "m[i]",
		      1, ops, &c);
	CHECK_INT(c.sub[0].rows, 0);
	CHECK_INT(comp_naxis(c.sub[0].member[0]), 3);
	ir_free(&c.ir);
}

/* Expensive to compute again, read often: kept. */
static void test_recomputation_is_weighed(void)
{
	Case c;
	begin(&c);
	Node *ops[2] = {operand(&c, "V", 1, 512, 0), operand(&c, "X", 2, 512, 512)};
	CHECK_INT(
		partition("e[k] = exp(tanh(V[k])); y[i,j] = X[i,j] * e[j]; z[i] max= X[i,j] * e[j]",
			  2, ops, &c),
		2);
	ir_free(&c.ir);
}

static void test_clean_up(void)
{
	Case c;
	begin(&c);
	Node *ops[1] = {operand(&c, "X", 2, 8, 8)};
	CHECK_INT(partition("z[i,j] = 0.0 where i < 8, j < 8; c[i,j] = X[i,j]; y[i,j] = c[i,j] + "
			    "z[i,j] + 1; "
			    "w[i,j] = y[i,j] + (i < 8 ? 2.0 : 0.0)",
			    1, ops, &c),
		  1);
	Node *body = comp_body(c.root[0]);
	CHECK(body->op == OP_ADD && node_is_value(body->src[1], 2));
	body = body->src[0];
	CHECK(body->op == OP_ADD && body->src[0]->op == OP_READ && body->src[0]->src[0] == ops[0]);
	ir_free(&c.ir);
}

static void test_repeat(void)
{
	Case c;
	begin(&c);
	Node *ops[1] = {operand(&c, "X", 1, 8, 0)};
	CHECK_INT(partition("y[i] += X[i] + 0*r where r < 5", 1, ops, &c), 1);
	CHECK_INT(comp_naxis(c.root[0]), 1);
	ir_free(&c.ir);
}

/* Sums that follow from sums that they read are constants, however that is written; other sums stay. */
static void test_known_sums(void)
{
#define SOFTMAX "e[i,j] = exp(X[i,j]); z[i] += e[i,j]; "
	static const struct {
		const char *text;
		double value; /* NAN: none is known */
	} sum[] = {
		/* what deviates from its mean adds up to 0 */
		{"m[i] += X[i,j]; y[i] += X[i,j] - m[i]/32", 0},
		{"m[j] += X[i,j]; y[j] += m[j]/32 - X[i,j]", 0},
		{"m[i] += X[i,j]; a[i] = m[i]/32; y[i] += X[i,j] - a[i]", 0},
		{"m[i] += X[i,j]/32; y[i] += X[i,j] - m[i]", 0},
		{"m[i] += 2*X[i,j]; y[i] += X[i,j] - m[i]/64", 0},
		{"m[] += X[j,i]; y[] += X[i,j] - m[]/1024", 0},
		{"m[i] += X[i,j]; y[i] += X[i,j] - m[i]/31", NAN},
		{"m[i] += X[j,i]; y[i] += X[i,j] - m[i]/32", NAN},
		{"m[i] += X[i,j]; y[i] += X[i,j] - m[31-i]/32", NAN},
		{"m[i] += X[i,j] where j < 16; y[i] += X[i,j] - m[i]/32", NAN},
		{"m[i] max= X[i,j]; y[i] += X[i,j] - m[i]/32", NAN},
		{"m[i] += X[i,j]; y[i] max= X[i,j] - m[i]/32", NAN},
		/* gradients by what a softmax's maximum is subtracted from */
		{SOFTMAX "u[i] += e[i,j]*X[j,i]; y[i] += (X[j,i]/z[i] - u[i]/z[i]/z[i])*e[i,j]", 0},
		{SOFTMAX
		 "p[i,j] = e[i,j]/z[i]; u[i] += p[i,j]*X[j,i]; g[i,j] = X[j,i]/z[i] - u[i]/z[i]; "
		 "y[i] += -(g[i,j]*e[i,j])",
		 0},
		{"e[i,j] = j < i+1 ? exp(X[i,j]) : 0; z[i] += e[i,j]; u[i] += X[j,i]*e[i,j]; "
		 "y[i] += j < i+1 ? (X[j,i]/z[i] - u[i]/z[i]/z[i])*exp(X[i,j]) : 0",
		 0},
		{SOFTMAX "t[i] = X[i,0]/z[i]; y[i] = X[i,0] - t[i]*z[i]", 0},
		{SOFTMAX "y[i] += e[i,j]/z[i]", 1},
		{SOFTMAX "u[i] += e[i,j]*X[j,i]; y[i] += (X[j,i]/z[i] - u[i]/z[i])*e[i,j]", NAN},
		{SOFTMAX "y[i] += X[i,j]*e[i,j]/z[i]", NAN},
		/* a rounding error, computed */
		{"t[i,j] = X[i,j] + X[j,i]; y[i,j] = t[i,j] - X[i,j] - X[j,i]", NAN},
		/* that is outside of X where the sum has no terms */
		{"e[i,j] = j < i ? exp(X[i,j]) : 0; z[i] += e[i,j]; y[i] += j < i ? "
		 "X[i-1,0]*exp(X[i,j])/z[i] : 0",
		 NAN},
	};
#undef SOFTMAX
	for (int k = 0; k < COUNT(sum); k++) {
		Case c;
		begin(&c);
		Node *ops[1] = {operand(&c, "X", 2, 32, 32)};
		partition(sum[k].text, 1, ops, &c);
		const Node *y = comp_body(c.root[c.nroot - 1]);
		CHECK_INT(node_is_const(y), !isnan(sum[k].value));
		CHECK(!node_is_const(y) || node_is_value(y, sum[k].value));
		ir_free(&c.ir);
	}
	Case c;
	begin(&c);
	Node *ops[1] = {operand(&c, "X", 2, 32, 32)};
	partition("z[i] += X[i,j]; y[i,k] += X[k,i]*X[i,j]/z[i]", 1, ops, &c);
	CHECK_INT(comp_reduce(c.root[c.nroot - 1]), RED_NONE);
	CHECK_INT(comp_body(c.root[c.nroot - 1])->op, OP_READ);
	ir_free(&c.ir);
}

/* The sign of what a rectifier cuts off is asked of its result, where that is less to read. */
static void test_signs(void)
{
#define SUM "y[i] = X[i] + Z[i] > 0 ? X[i] + Z[i] : 0; "
	static const struct {
		const char *text;
		bool of_result;
	} sign[] = {
		{SUM "d[i] = X[i] + Z[i] > 0 ? G[i] : 0", true},
		{SUM "d[i] = X[i] + Z[i] > 0 && G[i] < 3 ? G[i] : 0", true},
		{SUM "d[i] = X[(i+5)%4096] + Z[(i+5)%4096] > 0 ? G[i] : 0", true},
		{SUM "d[i] += X[i/2+j] + Z[i/2+j] > 0 ? G[j] : 0 where i < 64, j < 4000", true},
		{"s[i] = X[i] + Z[i]; y[i] = s[i] > 0 ? s[i] : 0; d[i] = s[i] > 0 ? G[i] : 0",
		 true},
		{"s[i] = 2*X[i] - 1; y[i] = s[i] > 0 ? s[i] : 0; d[i] = s[i] > 0 ? Z[i] + G[i] : 0",
		 false},
		{SUM "d[i] = X[i] + Z[4095-i] > 0 ? G[i] : 0", false},
		{SUM "d[i] = X[i] - Z[i] > 0 ? G[i] : 0", false},
		{SUM "d[i] = X[i] + Z[i] >= 0 ? G[i] : 0", false},
		{SUM "d[i] = X[i] + Z[i] > 1 ? G[i] : 0", false},
		{"y[i] = X[i] + Z[i] > 0 ? X[i] + Z[i] : 1; d[i] = X[i] + Z[i] > 0 ? G[i] : 0",
		 false},
		{"y[i] = max(X[i] + Z[i], 0); d[i] = X[i] + Z[i] < 0 ? 0 : G[i]", false},
	};
	for (int k = 0; k < COUNT(sign); k++) {
		Case c;
		Node **read;
		bool found = false;
		begin(&c);
		Node *ops[3] = {operand(&c, "X", 1, 4096, 0), operand(&c, "Z", 1, 4096, 0),
				operand(&c, "G", 1, 4096, 0)};
		partition(sign[k].text, 3, ops, &c);
		int n = node_collect(&c.ir, comp_body(c.root[c.nroot - 1]), OP_READ, &read);
		for (int i = 0; i < n; i++)
			found |= read[i]->src[0]->op == OP_COMP &&
				 comp_body(read[i]->src[0])->op == OP_SELECT;
		CHECK_REPORT(found == sign[k].of_result, "%s", sign[k].text);
		ir_free(&c.ir);
	}
#undef SUM
}

/* What is cheap is computed again by a kernel that reads all it is made of, and isn't stored; else it is. */
static void test_repeated(void)
{
#define FIRST                                                                                      \
	"m[c] += X[b,c,p]; y[b,c,p] = X[b,c,p] - m[c]; d[b,c,p] += (y[b,c,p+r-1] else 0)*w[c,r] "  \
	"where p < 256; "                                                                          \
	"e[b,k,p] += d[b,c,p]*V[k,c]; g[b,c,p] += e[b,k,p]*V[k,c]; "
	static const struct {
		const char *text;
		int times; /* so many kernels compute y */
	} repeated[] = {
		{FIRST "s[c] += g[b,c,p]*y[b,c,p]; q[b,c,p] = g[b,c,p]*X[b,c,p] - s[c]*m[c]", 2},
		{FIRST "s[c] += g[b,c,p]*y[b,c,p]; q[b,c,p] = g[b,c,p]*m[c] - s[c]",
		 1}, /* without X */
		{FIRST
		 "t[b,c] max= y[b,c,p]; q[b,c,p] = y[b,c,p] == t[b,c] ? g[b,c,p]*X[b,c,p]*m[c] : 0",
		 1},
		{FIRST "q[b,k,p] += y[b,c,p]*V[k,c]*X[b,c,p]", 1}, /* no rows */
	};
	for (int k = 0; k < COUNT(repeated); k++) {
		Case c;
		int times = 0, stored = 0;
		begin(&c);
		Node *ops[3] = {operand_of(&c, "X", 3, (const int64_t[]){8, 64, 256}),
				operand(&c, "w", 2, 64, 3), operand(&c, "V", 2, 64, 64)};
		partition(repeated[k].text, 3, ops, &c);
		for (int s = 0; s < c.nsub; s++)
			for (int m = 0; m < c.sub[s].nmember; m++) {
				Node *body = comp_body(c.sub[s].member[m]);
				bool y = body->op == OP_SUB && body->src[0]->op == OP_READ &&
					 body->src[0]->src[0]->op == OP_INPUT;
				times += y;
				stored += y && c.sub[s].stored[m];
			}
		CHECK_REPORT(times == repeated[k].times && stored == (times == 1),
			     "%s: %d times, stored %d", repeated[k].text, times, stored);
		ir_free(&c.ir);
	}
#undef FIRST
}

/* A sum of sums is one where it reads each once, and nobody else does; the number of its axes. (Larger ones are parted
 * again, by factors.) */
static void test_joined(void)
{
	static const struct {
		const char *text;
		int naxis;
	} joined[] = {
		{"t[b,i] += X[b,k]*X[k,i]; y[i] += t[b,i]", 3},
		{"t[b,i] += X[b,k]*X[i,k]; y[] += t[i,b]", 3},
		{"t[b,i] max= X[b,k]-X[i,k]; y[i] max= t[b,i]", 3},
		{"t[b] += X[b,i]; y[] max= t[b]", 1},		       /* not the same reduction */
		{"t[b,i] += X[b,k]*X[k,i]; y[i] += t[b,i]*t[b,i]", 2}, /* not just a sum */
		{"t[b] += X[b,k]; y[i] += t[b+i] where i < 4", 2},     /* several i need it */
		{"t[b] += X[b,k]; y[i] += t[b] where i < 4", 1},       /* a copy of one sum */
		{"t[b,i] += X[b,k]*X[k,i]; y[i,c] += t[b,i+c] where c < 4",
		 3}, /* read four times */
		{"t[b,i] += X[b,k]*X[k,i]; y[i] += t[i,i]", 1},
		{"t[b,k] += X[b,j] where j < k+1, k < 16; y[k] += t[b,k]", 3}, /* runs, too */
	};
	for (int k = 0; k < COUNT(joined); k++) {
		Case c;
		begin(&c);
		Node *ops[1] = {operand(&c, "X", 2, 16, 16)};
		partition(joined[k].text, 1, ops, &c);
		CHECK_INT(comp_naxis(c.root[c.nroot - 1]), joined[k].naxis);
		ir_free(&c.ir);
	}
	Case c;
	begin(&c);
	Node *ops[1] = {operand(&c, "X", 2, 32, 32)};
	partition("t[b,i] += X[b,k]*X[k,i]; y[i] += t[b,i]; z[b] += t[b,i]", 1, ops, &c);
	CHECK_INT(comp_naxis(c.root[0]), 2); /* both read t, which is made once */
	CHECK(comp_body(c.root[0])->op == OP_READ);
	ir_free(&c.ir);
}

/* Short lines that are read across, each for many others, are read from a transposed copy. */
static void test_short_lines(void)
{
	static const struct {
		const char *text;
		int columns;
		bool copied;
	} lines[] = {
		{"y[i,j] += (X[i,k]-Z[j,k])*(X[i,k]-Z[j,k])", 3, true},
		{"y[j] max= X[i,0]*Z[j,0] + X[i,1]*Z[j,1]", 2, true},
		{"s[i,j] += (X[i,k]-Z[j,k]) where k < 1; y[i,k] += s[i,j]*(X[i,k]-Z[j,k])", 3,
		 true},
		{"y[i,j] += (X[i,k]-Z[j,k])*(X[i,k]-Z[j,k])", 8, false}, /* no short line */
		{"y[j,k] = X[j,k]*Z[j,k]", 3, false},			 /* along the lines */
		{"y[j] = X[j,0]*Z[j,1]", 3, false},			 /* each element once */
	};
	for (int k = 0; k < COUNT(lines); k++) {
		Case c;
		begin(&c);
		Node *ops[2] = {operand(&c, "X", 2, 128, lines[k].columns),
				operand(&c, "Z", 2, 128, lines[k].columns)};
		partition(lines[k].text, 2, ops, &c);
		bool copied = false;
		for (int s = 0; s < c.nsub; s++)
			for (int m = 0; m < c.sub[s].nmember; m++) {
				const Node *t = c.sub[s].member[m];
				copied |= comp_reduce(t) == RED_NONE && tensor_rank(t) == 2 &&
					  tensor_extent(t, 0) == lines[k].columns;
			}
		CHECK_INT(copied, lines[k].copied);
		ir_free(&c.ir);
	}
}

/* Rows of one element whose windows are shorter than a vector: a dimension less is rows, so that lanes run along it. */
static void test_rows_of_windows(void)
{
	static const char *const boxes =
		"a[i,j] += X[i+r,j+s] where r<9, s<%d; "
		"b[i,j] += X[i+r,j+s]*X[i+r,j+s] where r<9, s<%d; y[i,j] = a[i,j]*b[i,j]";
	for (int wide = 0; wide < 2; wide++) {
		char text[200];
		Case c;
		begin(&c);
		Node *ops[1] = {operand(&c, "X", 2, 136, 136)};
		snprintf(text, sizeof text, boxes, wide ? 20 : 9, wide ? 20 : 9);
		CHECK_INT(partition(text, 1, ops, &c), 1);
		CHECK_INT(c.sub[0].rows, 2);
		CHECK_INT(c.sub[0].best, wide ? 2 : 1);
		ir_free(&c.ir);
	}
}

/* A reader of more places than are looked at to substitute reads one equation all the same: what
 * became of it, in all places. */
static void test_many_reads(void)
{
	Case c;
	Text t = {0};
	begin(&c);
	Node *ops[1] = {operand(&c, "A", 1, 1000, 0)};
	text_add(&t, "U[i] = A[i] + 1; T[i] = exp(U[i]) * U[i]; Y[i] = 0");
	for (int k = 0; k < 100; k++)
		text_add(&t, " + T[i+%d] * %d", k, k % 7 + 1);
	text_add(&t, " where i < 900");
	CHECK_INT(partition(t.s, 1, ops, &c), 2);
	text_free(&t);
	ir_free(&c.ir);
}

/* A value that choices by remainders share, branch for branch. Its text has many values, each read
 * in several places: names hold. */
static void test_shared_choices(void)
{
	Case c;
	Text t = {0};
	begin(&c);
	Node *ops[1] = {operand(&c, "A", 1, 420, 0)};
	text_add(&t, "T[i] = exp(A[i]); v0[i] = T[i]");
	for (int k = 1; k <= 6; k++)
		text_add(&t, "; v%d[i] = i%%%d == 0 ? v%d[i] : i%%%d == 1 ? v%d[i] : %d", k,
			 k % 5 + 2, k - 1, k % 7 + 3, k - 1, k);
	text_add(&t, "; Y[i] = v6[i]");
	CHECK_INT(partition(t.s, 1, ops, &c), 1);
	text_free(&t);
	ir_free(&c.ir);
}

static void test_bad_tasks(void)
{
	static const char *const bad[] = {
		"",
		"ricci-task 9\n",
		"ricci-task 1\n",
		"ricci-task 1\ninput f32\n",
		"ricci-task 1\ninput f99 3\n",
		"ricci-task 1\ninput f32 3x\n",
		"ricci-task 1\ninput f32 3\nkeep m0[i] = a7[i]\n",
		"ricci-task 1\ninput f32 3\nkeep m0[i] = a0[i\n",
		"ricci-task 1\ninput f32 3\nwhat\n",
	};
	for (int k = 0; k < COUNT(bad); k++) {
		Error err = {0};
		CHECK(task_parse(bad[k], &err) == NULL);
		CHECK(err.code != 0);
	}
}

int main(void)
{
	device = usual_device;
	test_matrix_chain();
	test_rows();
	test_channel_rows();
	test_folds();
	test_axes();
	test_axes_shared();
	test_one_and_many();
	test_short_rows();
	test_parts();
	test_phases();
	test_reduction_stays();
	test_gathered_equations();
	test_no_cycle();
	test_shared_by_rows();
	test_gathered_apart();
	test_running();
	test_recomputation_is_weighed();
	test_clean_up();
	test_repeat();
	test_known_sums();
	test_signs();
	test_repeated();
	test_joined();
	test_short_lines();
	test_rows_of_windows();
	test_many_reads();
	test_shared_choices();
	test_bad_tasks();
	CHECK_INT(mem_live(), 0);
	return check_done();
}

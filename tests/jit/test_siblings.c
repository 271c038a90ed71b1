/* test_siblings.c - contractions of the same form become one, sums of them too, what leaves them and in which order
 * they are stored; and values stay.
 *
 * A table of programs says how many kernels and contractions there are then. Random nets of such contractions, what
 * reads them, and their gradients are judged by the interpreter. RICCI_FUZZ: the number of nets; RICCI_SEED: the
 * first one's number. */
#include "core/graph/graph.h"
#include "jit/jit.h"
#include "tests/check.h"
#include "tests/usual_device.h"
#include <math.h>
#include <ricci.h>
#include <stdlib.h>
#include <string.h>

enum { ROOTS_MOST = 48, INPUTS = 64, NETS = 60 };

typedef struct Net {
	ricci_graph *g;
	ricci_tensor *input[INPUTS];
	float *data[INPUTS];
	int ninput, nroot;
	Node *root[ROOTS_MOST];
} Net;

static uint64_t seed;

static int draw(int n)
{
	return (int)random_below(&seed, (uint64_t)n);
}

static ricci_tensor *input(Net *n, int rank, const int64_t *shape)
{
	char name[16];
	snprintf(name, sizeof name, "I%d", n->ninput);
	ricci_tensor *t = ricci_input(n->g, name, RICCI_F32, rank, shape);
	CHECK_GRAPH(n->g);
	int64_t size = tensor_size(t->node);
	n->data[n->ninput] = malloc((size_t)size * sizeof(float));
	for (int64_t k = 0; k < size; k++)
		n->data[n->ninput][k] = (float)(draw(2001) / 1e3 - 1);
	n->input[n->ninput++] = t;
	return t;
}

static void net_free(Net *n)
{
	for (int k = 0; k < n->ninput; k++)
		free(n->data[k]);
	ricci_graph_free(n->g);
}

static double *values(const Net *n, Node *t)
{
	Binding bind[INPUTS];
	Error err = {0};
	double *out = calloc((size_t)tensor_size(t), sizeof *out);
	for (int k = 0; k < n->ninput; k++)
		bind[k] = (Binding){n->input[k]->node, n->data[k]};
	CHECK_INT(interp_tensor(t, n->ninput, bind, (RandomState){1, 2}, out, NULL, &err), 0);
	CHECK_STR(err.text, "");
	return out;
}

static bool same_values(const Net *n, Node *t, const double *want)
{
	double *got = values(n, t);
	bool same = true;
	for (int64_t k = 0; k < tensor_size(t); k++)
		same &= fabs(got[k] - want[k]) <= 1e-9 * (1 + fabs(want[k]));
	free(got);
	return same;
}

typedef struct Counts {
	int kernels, contractions; /* contractions: equations of more than 64 terms each */
} Counts;

/* Partitions the net; its roots must have the values that they had. */
static Counts net_partition(Net *n, const char *what)
{
	Ir *ir = &n->g->ir;
	double *want[ROOTS_MOST];
	Counts counts = {0};
	Subgraph *sub;
	IR_ENTER(ir, counts);
	CHECK_INT(rewrite_graph(ir, n->nroot, n->root), 0);
	for (int k = 0; k < n->nroot; k++)
		want[k] = values(n, n->root[k]);
	CHECK_INT(fuse_partition(ir, n->nroot, n->root, &usual_device, &counts.kernels, &sub), 0);
	for (int k = 0; k < counts.kernels; k++)
		for (int m = 0; m < sub[k].nmember; m++)
			counts.contractions += comp_reduce(sub[k].member[m]) == RED_ADD &&
					       comp_points(sub[k].member[m]) >
						       64 * (double)tensor_size(sub[k].member[m]);
	for (int k = 0; k < n->nroot; k++) {
		CHECK_REPORT(same_values(n, n->root[k], want[k]), "%s: root %d has other values\n",
			     what, k);
		free(want[k]);
	}
	IR_LEAVE(ir);
	return counts;
}

/* ---- what becomes one ---- */

static const struct {
	const char *text;
	int contractions;
} row[] = {
	/* gates; what reads them has other forms */
	{"P[b,j] += X[b,k]*U[k,j]; Q[b,j] += X[b,k]*V[k,j]; Y[b,j] = tanh(P[b,j])*Q[b,j]", 1},
	/* epilogues of one form stay epilogues */
	{"P[b,j] += X[b,k]*U[k,j]; Q[b,j] += X[b,k]*V[k,j]; Y[b,j] = max(P[b,j], 0); Z[b,j] = "
	 "max(Q[b,j], 0)",
	 1},
	/* other forms: a factor more, the operand transposed */
	{"P[b,j] += X[b,k]*U[k,j]; Q[b,j] += 2*X[b,k]*V[k,j]; Y[b,j] = P[b,j]*Q[b,j]", 2},
	{"P[b,j] += X[b,k]*U[k,j]; Q[b,j] += X[b,k]*W[j,k]; Y[b,j] = P[b,j]*Q[b,j]", 2},
	/* one depends on the other */
	{"P[b,j] += X[b,k]*U[k,j]; E[k,j] = U[k,j] + P[k,j] where k < 96; Q[b,j] += X[b,k]*E[k,j]; "
	 "Y[b,j] = "
	 "P[b,j]*Q[b,j]",
	 2},
	/* a sum of products is one */
	{"P[b,j] += X[b,k]*U[k,j] where b < 200; Q[b,j] += X[b+200,k]*V[k,j] where b < 200; Y[b,j] "
	 "= P[b,j] + Q[b,j]",
	 1},
	{"P[b,j] += X[b,k]*U[k,j] where b < 200; Q[b,j] += X[b+200,k]*V[k,j] where b < 200; Y[b,j] "
	 "= P[b,j] + (T[b,j] + Q[b,j])",
	 1},
	/* .. but not where something else reads a product, or the sum is none */
	{"P[b,j] += X[b,k]*U[k,j] where b < 200; Q[b,j] += X[b+200,k]*V[k,j] where b < 200; Y[b,j] "
	 "= P[b,j] + Q[b,j]; Z[b,j] = "
	 "tanh(P[b,j])",
	 2},
	{"P[b,j] += X[b,k]*U[k,j] where b < 200; Q[b,j] += X[b+200,k]*V[k,j] where b < 200; Y[b,j] "
	 "= P[b,j] - Q[b,j]",
	 2},
	/* what is linear between them runs on the sum */
	{"P[b,j] += X[b,k]*U[k,j] where b < 200; Q[b,j] += X[b+200,k]*V[k,j] where b < 200; F[b,j] "
	 "= b%2 == 1 ? 2*P[b,j] : 0; "
	 "G[b,j] = b%2 == 1 ? 2*Q[b,j] : 0; Y[b,j] = F[b,j] + G[b,j]",
	 1},
	{"P[b,j] += X[b,k]*U[k,j] where b < 200; Q[b,j] += X[b+200,k]*V[k,j] where b < 200; F[b,j] "
	 "= tanh(P[b,j]); G[b,j] = "
	 "tanh(Q[b,j]); Y[b,j] = F[b,j] + G[b,j]",
	 2},
	/* slices of one tensor need no copy: the input's products of all time steps */
	{"A[b,k] = X[b,k] where b < 200; B[b,k] = X[b+200,k] where b < 200; P[b,j] += "
	 "A[b,k]*U[k,j]; Q[b,j] += B[b,k]*U[k,j]; Y[b,j] = tanh(P[b,j]) * Q[b,j]",
	 1},
};

/* The operands of text, all capitals of SHAPED that it reads, in the order of their first places. */
static int operands(Net *n, const char *text, Node **operand)
{
	static const struct {
		char name;
		int64_t shape[2];
	} shaped[] = {{'X', {400, 96}}, {'S', {400, 96}}, {'U', {96, 8}},
		      {'V', {96, 8}},	{'W', {8, 96}},	  {'T', {200, 8}}};
	bool seen[COUNT(shaped)] = {false};
	int count = 0;
	for (const char *s = text; *s; s++)
		for (int k = 0; k < COUNT(shaped); k++)
			if (s[0] == shaped[k].name && s[1] == '[' && !seen[k]) {
				seen[k] = true;
				operand[count++] = input(n, 2, shaped[k].shape)->node;
			}
	return count;
}

static int elaborate(Net *n, const char *text, int noperand, Node **operand)
{
	Ir *ir = &n->g->ir;
	IR_ENTER(ir, RICCI_ENOMEM);
	int code = notation_elaborate(ir, text, noperand, operand, &n->nroot, n->root, ROOTS_MOST);
	IR_LEAVE(ir);
	return code;
}

/* Of the program over the operands that it names. */
static Net net_of(const char *text)
{
	Net n = {.g = ricci_graph_new()};
	Node *operand[8];
	int noperand = operands(&n, text, operand);
	CHECK_INT(elaborate(&n, text, noperand, operand), 0);
	CHECK_STR(n.g->ir.err.text, "");
	return n;
}

static void test_table(void)
{
	for (int k = 0; k < COUNT(row); k++) {
		Net n = net_of(row[k].text);
		Counts counts = net_partition(&n, row[k].text);
		CHECK_REPORT(counts.contractions == row[k].contractions,
			     "%d contractions, not %d: %s\n", counts.contractions,
			     row[k].contractions, row[k].text);
		net_free(&n);
	}
}

/* A factor that a sum doesn't run over becomes its epilogue. */
static void test_factors(void)
{
	static const struct {
		const char *text;
		int factors; /* of what is summed */
	} factored[] = {
		{"Y[b,j] += 2*X[b,k]*U[k,j]", 2},
		{"Y[b,j] += X[b,k]*(U[k,j]*T[b,j]) where b < 200", 2},
		{"Y[b,j] += -X[b,k]*U[k,j]/(2 + T[b,j]) where b < 200", 2},
		{"Y[b,j] += b > j ? 2*X[b,k]*U[k,j] : 0", 2},
		{"Y[b,j] += 2*X[b,k]*U[k,j]*V[k,j]", 3},
		{"Y[b,j] += (2 + X[b,k])*U[k,j]", 2},
		/* of sums that multiply nothing else, too, but for constants */
		{"Y[b,j] += X[b,k]*T[b,j] where b < 200", 1},
		{"Y[b,j] += b > k ? X[b,k]*T[b,j] : 0 where b < 200", 2},
		{"Y[b] += 2*X[b,k]", 2},
		/* what is safe under its condition only keeps it, or stays */
		{"Y[b,j] += b > j ? X[b,k]*U[k,j]*log(2 + T[b,j]) : 0 where b < 200", 2},
		{"Y[b,j] += b > k ? X[b,k]*U[k,j]*log(2 + T[b,j]) : 0 where b < 200", 4},
		{"Y[b,j] += b + k < 199 ? X[b,k]*U[k,j]*T[b+1,j] : 0 where b < 200", 4},
		{"Y[b,j] += b + k < 199 ? X[b,k]*U[k,j]*T[b,j] : 0 where b < 200", 3},
	};
	for (int k = 0; k < COUNT(factored); k++) {
		Net n = net_of(factored[k].text);
		Node **order, **factor;
		net_partition(&n, factored[k].text);
		Ir *ir = &n.g->ir;
		IR_ENTER(ir, );
		for (int i = graph_order(ir, n.nroot, n.root, &order) - 1; i >= 0; i--) {
			Node *c = order[i];
			if (c->op != OP_COMP || comp_reduce(c) != RED_ADD)
				continue;
			Node *body =
				comp_body(c)->op == OP_SELECT ? comp_body(c)->src[1] : comp_body(c);
			bool guarded = body != comp_body(c);
			CHECK_INT(node_parts(ir, body, OP_MUL, &factor) + guarded,
				  factored[k].factors);
		}
		IR_LEAVE(ir);
		net_free(&n);
	}
}

/* Extent of dimension 0 of the last sum of products; 0: there is none. */
static int64_t last_sum(Net *n)
{
	Ir *ir = &n->g->ir;
	Node **order;
	IR_ENTER(ir, 0);
	int k = graph_order(ir, n->nroot, n->root, &order) - 1;
	while (k >= 0 && (order[k]->op != OP_COMP || comp_reduce(order[k]) != RED_ADD ||
			  comp_body(order[k])->op != OP_MUL))
		k--;
	int64_t extent = k >= 0 ? tensor_extent(order[k], 0) : 0;
	IR_LEAVE(ir);
	return extent;
}

/* Sums that are read across their lines get the order of dimensions in which they are read. */
static void test_order(void)
{
	static const struct {
		const char *text;
		int64_t first; /* extent of dimension 0 of the last sum of products */
	} read[] = {
		{"C[b,j] += X[b,k]*U[k,j]; Y[j,b] = exp(C[b,j])", 8},
		{"C[b,j] += X[b,k]*U[k,j]; Y[j,b] = exp(C[399-b,j]) + (C[b-1,j] else 2)", 8},
		{"C[b,j] += X[b,k]*U[k,j]; Y[j,b] = b%2 == 1 ? C[b/2,j] : C[b/2+200,j]", 8},
		/* the sum of what another gave, with other axes */
		{"C[b,j] += X[b,k]*U[k,j]; Y[j,b] = exp(C[b,j]); D[j,i] += Y[j,b]*S[b,i]; "
		 "Z[i,j] = tanh(D[j,i])",
		 96},
		/* at one place only */
		{"C[b,j] += X[b,k]*U[k,j]; Y[] = exp(C[3,2])", 400},
		/* read along its lines; both ways; by a sum; itself a result */
		{"C[b,j] += X[b,k]*U[k,j]; Y[b,j] = exp(C[b,j])", 400},
		{"C[b,j] += X[b,k]*U[k,j]; Y[j,b] = exp(C[b,j]); Z[b,j] = tanh(C[b,j])", 400},
		{"C[b,j] += X[b,k]*U[k,j]; Y[j] max= C[b,j]", 400},
		{"X, U -> Y, C: C[b,j] += X[b,k]*U[k,j]; Y[j,b] = exp(C[b,j])", 400},
	};
	for (int k = 0; k < COUNT(read); k++) {
		Net n = net_of(read[k].text);
		net_partition(&n, read[k].text);
		int64_t first = last_sum(&n);
		CHECK_REPORT(first == read[k].first, "%lld: %s\n", (long long)first, read[k].text);
		net_free(&n);
	}
}

/* Without this depth of fusion nothing is joined. */
static void test_unfused(void)
{
	Net n = net_of(row[0].text);
	setenv("RICCI_UNFUSED", "sibling", 1);
	CHECK_INT(net_partition(&n, row[0].text).contractions, 2);
	unsetenv("RICCI_UNFUSED");
	net_free(&n);
}

/* ---- random nets ---- */

/* Tensors of [8, 6], or [8, 72], that the next equation may read. */
typedef struct Pool {
	ricci_tensor *t[64];
	int n;
} Pool;

static void pool_add(Pool *p, ricci_tensor *t)
{
	if (t && p->n < COUNT(p->t))
		p->t[p->n++] = t;
}

static ricci_tensor *pool_any(const Pool *p)
{
	return p->t[draw(p->n)];
}

static const char *const product[] = {
	"Y[b,j] += X[b,k]*W[k,j]",
	"Y[b,j] += W[k,j]*X[b,k]",
	"Y[b,j] += X[b,k]*W[(k+5)%72,j]",
	"Y[b,j] += (b < 7 ? X[b+1,k] : 0)*W[k,j] where b < 8",
	"Y[b,j] += k <= 8*b + 6 ? X[b,k]*W[k,j] : 0",
};
static const char *const reader[] = {
	"Y[b,j] = max(A[b,j], 0)", "Y[b,j] = 2*A[b,j]",
	"Y[b,j] = tanh(A[b,j])",   "Y[b,j] = j%2 == 1 ? A[b,j] : 0 where j < 6",
	"Y[b,j] = A[7-b,j]",
};
static const char *const pair[] = {
	"Y[b,j] = A[b,j] + B[b,j]",
	"Y[b,j] = A[b,j] * B[b,j]",
	"Y[b,j] = A[b,j] - 0.5*B[b,j]",
	"Y[b,j] = A[b,j] + tanh(B[b,j])",
};

/* Some contractions that likely are of one form, their readers, and sums of all. */
static void layer_add(Net *n, Pool *wide, Pool *narrow)
{
	static const int64_t w[] = {72, 6}, b[] = {6};
	ricci_tensor *x = pool_any(wide), *sum = NULL;
	const char *form = product[draw(COUNT(product))], *read = reader[draw(COUNT(reader))];
	int parts = 2 + draw(3), kind = draw(4);
	for (int k = 0; k < parts && n->ninput + 2 < INPUTS; k++) {
		ricci_tensor *from = kind == 1 ? pool_any(wide) : x;
		ricci_tensor *y = ricci_op_named(n->g, draw(8) ? form : product[0], "X", from, "W",
						 input(n, 2, w));
		if (kind == 2)
			y = ricci_op_named(n->g, "Y[b,j] = A[b,j] + B[j]", "A", y, "B",
					   input(n, 1, b));
		if (kind)
			y = ricci_op_named(n->g, draw(8) ? read : reader[0], "A", y);
		pool_add(narrow, y);
		sum = sum ? ricci_op_named(n->g, pair[draw(2) ? 0 : draw(COUNT(pair))], "A", sum,
					   "B", y)
			  : y;
	}
	pool_add(narrow, sum);
	pool_add(wide, ricci_op_named(n->g, "Y[b,k] = X[b,k] * A[b,k%6]", "X", x, "A", sum));
}

/* The sum of all that nothing else reads, and its gradients by some inputs. */
static void roots_add(Net *n, const Pool *narrow)
{
	ricci_tensor *loss = NULL, *by[8], *grad[8];
	int nby = 0;
	for (int k = 0; k < narrow->n; k++) {
		ricci_tensor *l = ricci_op_named(n->g, "L[] += A[b,j]*A[b,j]", "A", narrow->t[k]);
		loss = loss ? ricci_op_named(n->g, "L[] = A[] + B[]", "A", loss, "B", l) : l;
	}
	for (int k = 0; k < n->ninput && nby < COUNT(by); k++)
		if (k == 0 || draw(2))
			by[nby++] = n->input[k];
	CHECK_INT(ricci_grad(n->g, loss, NULL, nby, by, grad), 0);
	n->root[n->nroot++] = loss->node;
	for (int k = 0; k < nby; k++)
		if (grad[k])
			n->root[n->nroot++] = grad[k]->node;
	for (int k = 0; k < 3; k++)
		n->root[n->nroot++] = pool_any(narrow)->node;
}

static bool net_random(uint64_t number)
{
	static const int64_t x[] = {8, 72};
	char what[64];
	Net n = {.g = ricci_graph_new()};
	Pool wide = {0}, narrow = {0};
	seed = number;
	snprintf(what, sizeof what, "net %llu", (unsigned long long)number);
	pool_add(&wide, input(&n, 2, x));
	pool_add(&wide, input(&n, 2, x));
	for (int k = 1 + draw(3); k > 0; k--)
		layer_add(&n, &wide, &narrow);
	roots_add(&n, &narrow);
	CHECK_GRAPH(n.g);
	Net apart = n;
	Counts joined = net_partition(&n, what);
	setenv("RICCI_UNFUSED", "sibling", 1);
	Counts before = net_partition(&apart, what);
	unsetenv("RICCI_UNFUSED");
	net_free(&n);
	return joined.contractions < before.contractions;
}

/* The number in the variable, or n. */
static uint64_t number_of(const char *variable, uint64_t n)
{
	const char *s = getenv(variable);
	return s ? strtoull(s, NULL, 10) : n;
}

static void test_random(void)
{
	uint64_t count = number_of("RICCI_FUZZ", NETS), first = number_of("RICCI_SEED", 1);
	uint64_t joined = 0;
	for (uint64_t k = 0; k < count; k++)
		joined += net_random(first + k);
	CHECK_REPORT(2 * joined >= count || count < 10, "%llu of %llu nets had siblings\n",
		     (unsigned long long)joined, (unsigned long long)count);
}

int main(void)
{
	test_table();
	test_factors();
	test_order();
	test_unfused();
	test_random();
	return check_done();
}

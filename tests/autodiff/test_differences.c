/* test_differences.c - gradients and gradients of gradients against central differences in f64:
 * every scalar operator, every reduction, fixed index maps, and random programs made of all of
 * them. */
#include "tests/autodiff/program.h"

/* First order of <y, u>, then of <gradients, v>. */
static bool check_both_orders(Bench *b, Node *y, double tolerance)
{
	Node *wrt[MAX_OPERANDS], *grads[MAX_OPERANDS], *part[MAX_OPERANDS];
	int64_t shape[RICCI_MAX_RANK];
	int n = 0;
	for (int k = 0; k < b->n; k++)
		if (b->bind[k].tensor->type == RICCI_F64)
			wrt[n++] = b->bind[k].tensor;
	for (int d = 0; d < tensor_rank(y); d++)
		shape[d] = tensor_extent(y, d);
	Node *loss = inner(&b->ir, y, filled(b, tensor_rank(y), shape, 0.5, 1.5));
	if (!differences_agree(b, loss, 1e-5, tolerance, 20, NULL))
		return false;
	CHECK_INT(autodiff_reverse(&b->ir, loss, NULL, n, wrt, grads), 0);
	for (int k = 0; k < n; k++) {
		for (int d = 0; d < tensor_rank(wrt[k]); d++)
			shape[d] = tensor_extent(wrt[k], d);
		part[k] = inner(&b->ir, grads[k], filled(b, tensor_rank(wrt[k]), shape, 0.5, 1.5));
	}
	return differences_agree(b, scalar_sum(&b->ir, n, part), 1e-5, tolerance, 8, NULL);
}

/* ---- scalar operators: Y[i] = op(A[i], B[i]) * A[i] */

static void scalar_operator(Bench *b, int op)
{
	Ir *ir = &b->ir;
	int64_t shape[1] = {6};
	bool positive =
		op == OP_LOG || op == OP_SQRT || op == OP_RSQRT || op == OP_POW || op == OP_DIV;
	Node *i = node_axis(ir, 0, 6);
	Node *x = node_read(ir, filled(b, 1, shape, positive ? 0.3 : -0.9, 1.2), &i);
	Node *z = node_read(ir, filled(b, 1, shape, positive ? 0.3 : -0.9, 1.2), &i);
	Node *y = op_info[op].nsrc == 2 ? node2(ir, op, x, z) : node1(ir, op, x);
	check_both_orders(b, comp_dense(ir, RED_NONE, 1, 1, &i, node_mul(ir, y, x)), 2e-5);
}

/* ---- equations as text over f64 operands */

typedef struct Case {
	const char *text;
	int n;
	struct {
		int rank;
		int64_t shape[6];
	} operand[3];
} Case;

static const Case cases[] = {
	{"Y[i,j] += A[i,k]*B[k,j]", 2, {{2, {3, 4}}, {2, {4, 2}}}},
	{"Y[i] max= A[i,j]*B[j]", 2, {{2, {3, 4}}, {1, {4}}}},
	{"Y[i] max= A[i,j]*B[j] + exp(B[j])", 2, {{2, {3, 4}}, {1, {4}}}},
	{"Y[i] min= A[i,j]*B[j]", 2, {{2, {3, 4}}, {1, {4}}}},
	{"Y[i] *= A[i,j]*B[j]", 2, {{2, {3, 4}}, {1, {4}}}},
	{"Y[] *= A[i]", 1, {{1, {40}}}},
	{"Y[i] *= A[i,j,k]+B[k,j]", 2, {{3, {2, 2, 3}}, {2, {3, 2}}}},
	{"Y[i] += A[i,i]*A[i,2]", 1, {{2, {4, 4}}}},
	{"Y[] += A[i]*A[5-i]*A[i/2]", 1, {{1, {6}}}},
	{"Y[p] += X[3*p+2*r]*W[r] where p<4, r<3", 2, {{1, {16}}, {1, {3}}}},
	{"Y[p] += X[9-2*p-r]*W[r]", 2, {{1, {10}}, {1, {3}}}},
	{"Y[p] += (X[2*p+r-3] else 1.5)*W[r] where p<6", 2, {{1, {7}}, {1, {4}}}},
	{"Y[p] += (X[2*p+r-3] else 1.5)*(X[2*p+r-2] else 2)*W[r] where p<6",
	 2,
	 {{1, {7}}, {1, {4}}}},
	{"Y[n] = P[n/6, n%2, n/2%3]*P[n/7, n/3%2, n%3] where n<12", 1, {{3, {2, 2, 3}}}},
	{"Y[n] = A[(n+3)/4]*A[(n+3)%4] where n<9", 1, {{1, {4}}}},
	{"Y[n,m] = A[(2*n+3*m)/5]*A[(n+m)%4] where n<4, m<3", 1, {{1, {4}}}},
	{"Y[i] += j<i ? A[j]/A[i] : i==j ? A[i]*A[j] : 0 where i<5, j<5", 1, {{1, {5}}}},
	{"Y[i] += A[max(i-2,0)]*A[min(i+j,4)] where i<5, j<3", 1, {{1, {5}}}},
	{"I[i] = i64(floor(B[i]*6)); Y[i] = (A[I[i]] else 0.5)*B[i]", 2, {{1, {9}}, {1, {5}}}},
	{"Y[i] = max(max(min(A[i], B[i]), A[i]*B[i]), 0.5)", 2, {{1, {9}}, {1, {9}}}},
	{"Y[i*j:9] += A[i]*B[j]", 2, {{1, {3}}, {1, {5}}}},
	{"Y[i+j:7] max= A[i]*B[j]", 2, {{1, {3}}, {1, {5}}}},
	{"Y[2*i+j:12] += A[i,j]*A[i,j]", 1, {{2, {4, 3}}}},
	{"a[i] += A[i,j]; b[i] = a[i]*a[i]; Y[i] = exp(b[i]*0.1)/(1+b[i]) + a[i]",
	 1,
	 {{2, {3, 3}}}},
	{"Y[] = tanh(A[])*B[]", 2, {{0, {0}}, {0, {0}}}},
	{"Y[i] = pow(A[i]*A[i], 1.5) + pow(A[i], 3)", 1, {{1, {4}}}},
	{"Y[i] += A[j]*2 where i<3", 1, {{1, {4}}}},
	{"Y[p] += X[4*p+r]*W[r]", 2, {{1, {13}}, {1, {6}}}},
	{"Y[p] += X[4*p+r]*W[r]", 2, {{1, {18}}, {1, {2}}}},
	{"Y[o,p] += X[c,3*p]*W[o,c]", 2, {{2, {2, 9}}, {2, {2, 2}}}},
	{"Y[o,p] += X[c,2*p+3*r]*W[o,c,r]", 2, {{2, {2, 13}}, {3, {2, 2, 3}}}},
	{"Y[o,p] += X[c,2*p+2*r]*W[o,c,r]", 2, {{2, {2, 11}}, {3, {2, 2, 3}}}},
	{"Y[o,p] += X[c,4*p+3*r]*W[o,c,r]", 2, {{2, {2, 16}}, {3, {2, 2, 3}}}},
	{"Y[o,p] += (X[c,4*p+2*r-3] else 1.5)*W[o,c,r] where p<3",
	 2,
	 {{2, {2, 11}}, {3, {2, 2, 3}}}},
	{"Y[g,o,p] += (X[g,c,2*p+r-2] else 0)*W[g,o,c,r] where p<5",
	 2,
	 {{3, {2, 2, 7}}, {4, {2, 2, 2, 3}}}},
	{"Y[o,p,q,s] += X[c,2*p+i,3*q+j,s+k]*W[o,c,i,j,k]",
	 2,
	 {{4, {2, 5, 6, 3}}, {5, {2, 2, 3, 2, 2}}}},
	{"Y[o,p,q] += X[c,2*p+i,2*q+j]*W[o,c,i,j]", 2, {{3, {2, 6, 7}}, {4, {2, 2, 4, 3}}}},
	{"Y[o,2*p+r:9] += X[c,p]*W[c,o,r]", 2, {{2, {2, 4}}, {3, {2, 2, 3}}}},
	{"Y[o,p] += X[c,11-2*p-r]*W[o,c,r]", 2, {{2, {2, 12}}, {3, {2, 2, 3}}}},
	/* long sums beside a window, taken before its residues */
	{"Y[k,p] += X[2*p+r]*W[k,r]", 2, {{1, {9}}, {2, {36, 3}}}},
	{"Y[k,p,q] += (X[c,2*p+r-1,3*q+s-1] else 0)*W[k,c,r,s] where p<4, q<2",
	 2,
	 {{3, {2, 7, 6}}, {4, {33, 2, 3, 4}}}},
	{"Y[b,k,p,i] += X[b,c,2*p+r,i,t]*W[k,c,r,t]*V[k,p]",
	 3,
	 {{5, {2, 2, 7, 2, 2}}, {4, {32, 2, 3, 2}}, {2, {32, 3}}}},
	{"Y[p] max= X[3*p+r]*W[r]", 2, {{1, {14}}, {1, {4}}}},
	{"Y[i,j] = X[max(i-2,0), min(j,3)]*W[i,j] where j<6", 2, {{2, {4, 4}}, {2, {6, 6}}}},
	{"Y[i] += X[i<2 ? 2-i : i<7 ? i-2 : 10-i]*X[max(2*i-5,i/2)%5]*W[j,i] where i<9",
	 2,
	 {{1, {5}}, {2, {2, 9}}}},
	{"Y[i] = X[max(min(i-3,3),0)]*X[min(W[1]<0.8 ? i : i/2, 3)] where i<10",
	 2,
	 {{1, {4}}, {1, {2}}}},
	{"Y[b,o,p,q] += X[b,o/2*2+c,2*p+r,q+s]*W[o,c,r,s] where c<2",
	 2,
	 {{4, {1, 4, 5, 3}}, {4, {4, 2, 2, 2}}}},
};

static void text_case(Bench *b, int which)
{
	const Case *c = &cases[which];
	Node *operand[3], *y;
	int n = 1;
	for (int k = 0; k < c->n; k++)
		operand[k] = filled(b, c->operand[k].rank, c->operand[k].shape, 0.3, 1.3);
	notation_elaborate(&b->ir, c->text, c->n, operand, &n, &y, 1);
	CHECK_REPORT(!b->ir.err.code, "%s: %s", c->text, b->ir.err.text);
	if (!b->ir.err.code && !check_both_orders(b, y, 2e-5))
		fprintf(stderr, "in %s\n", c->text);
}

static void random_program(Bench *b, int which)
{
	(void)which;
	check_both_orders(b, random_chain(b), 1e-4);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 120, bad = 0;
	for (int op = 0; op < OP_COUNT; op++)
		if (program_differentiable(op) && !in_bench(scalar_operator, op))
			fprintf(stderr, "in operator %s\n", op_info[op].name);
	for (int k = 0; k < COUNT(cases); k++)
		in_bench(text_case, k);
	for (int k = 0; k < rounds && bad < 5; k++)
		if (!in_bench(random_program, k)) {
			fprintf(stderr, "in random program %d\n", k);
			bad++;
		}
	return check_done();
}

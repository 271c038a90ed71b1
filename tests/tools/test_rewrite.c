/* test_rewrite.c - rewriting keeps values, those of a rewritten graph too.
 *
 * Random loops over time (random_program.h), their gradients and tangents are rewritten as sessions
 * do it, and what comes of that again and again; the interpreter judges. So are random loops of
 * several layers (random_layers.h), which become several loops. RICCI_FUZZ: the number of
 * programs; RICCI_SEED: the first one's number, whatever its kind.
 */
#include "tests/tools/program_compare.h"
#include "tests/tools/program_file.h"
#include "tests/tools/random_layers.h"

#ifdef __SANITIZE_ADDRESS__
enum { PROGRAMS = 40 };
#else
enum { PROGRAMS = 250 };
#endif
enum { TIMES = 3 };

/* Is now, rewritten so many times, root k? */
static bool values_kept(const Case *c, int k, Node *now, Text *why)
{
	/* constants of f32 are folded in it */
	return twin_agrees(c, k, now, fmax(1e-9, case_precision(c, k)), why);
}

static void case_rewrite(const Case *c)
{
	Ir *ir = &c->root[0]->g->ir;
	Node *root[ROOTS];
	IR_ENTER(ir, );
	for (int k = 0; k < c->nroot; k++)
		root[k] = c->root[k]->node;
	bool good = true;
	for (int times = 1; times <= TIMES && good; times++) {
		CHECK_INT(rewrite_graph(ir, c->nroot, root), 0);
		for (int k = 0; k < c->nroot && good; k++) {
			Text why = {0}, text = {0};
			good = values_kept(c, k, root[k], &why);
			program_print(&text, c->p);
			CHECK_REPORT(good, "program %llu, %s (root %d), rewritten %d times: %s\n%s",
				     (unsigned long long)c->p->number, root_kind(c, k), k, times,
				     why.s, text.s);
			text_free(&why);
			text_free(&text);
		}
	}
	IR_LEAVE(ir);
}

static void program_check(RandomProgram *p)
{
	Case c;
	Error err = {0};
	ricci_graph *g = ricci_graph_new();
	CHECK_INT(case_open(&c, g, p), 0);
	CHECK_GRAPH(g);
	CHECK_INT(case_judge(&c, (RandomState){0, 0}, &err), 0);
	CHECK_STR(err.text, "");
	case_rewrite(&c);
	case_close(&c);
	ricci_graph_free(g);
	program_free(p);
}

/* ---- sums that stay in loops ---- */

/* Sums of many terms in the body of the run of order[k]. */
static int sums_of_run(Ir *ir, int n, Node *const *order, int k)
{
	enum { MOST = 16 };
	const Scan *s = scan_of(order[k]);
	Node *root[MOST], **inner;
	int nroot = s->nstate, sums = 0;
	memcpy(root, s->next, sizeof *root * (size_t)s->nstate);
	for (int i = k; i < n && nroot < MOST; i++)
		if (order[i]->op == OP_SCAN && scan_same_run(order[i], order[k]))
			root[nroot++] = order[i]->u.result->value;
	for (int i = graph_order(ir, nroot, root, &inner) - 1; i >= 0; i--)
		sums += inner[i]->op == OP_COMP &&
			comp_points(inner[i]) >= 16 * (double)tensor_size(inner[i]);
	return sums;
}

/* The graph's loops; *sums: how many sums their bodies compute. */
static int loops_count(Ir *ir, int nroot, Node *const *root, int *sums)
{
	Node **order;
	int loops = 0, n = graph_order(ir, nroot, root, &order);
	*sums = 0;
	for (int k = 0; k < n; k++) {
		bool first = order[k]->op == OP_SCAN;
		for (int i = 0; i < k && first; i++)
			first = order[i]->op != OP_SCAN || !scan_same_run(order[i], order[k]);
		loops += first;
		*sums += first ? sums_of_run(ir, n, order, k) : 0;
	}
	return loops;
}

/* A body, what is asked of its loop, and what stays in the loops that come of it. */
typedef struct Apart {
	const char *text; /* states H, G, which become N, M; Y is stacked */
	int loops, sums;
	int grad_loops, grad_sums; /* with the gradients by X and the weights */
	int recompute;
} Apart;

static void apart_check(const Apart *a)
{
	ricci_graph *g = ricci_graph_new();
	int64_t all[] = {5, 2, 32}, square[] = {32, 32};
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 3, all);
	ricci_tensor *zero = ricci_op(g, "Z[b,j] = 0.0 where b<2, j<32"), *v[7], *out[3], *all_out;
	static const char *const name[] = {"xt", "h", "g", "w", "u", "p", "q"};
	for (int k = 0; k < 7; k++)
		v[k] = ricci_input(g, name[k], RICCI_F32, 2, k < 3 ? all + 1 : square);
	int n = 3, loops, sums;
	CHECK_INT(ricci_ops(g, a->text, 7, v, &n, out), 0);
	CHECK_INT(ricci_scan(g,
			     &RICCI_LOOP(.steps = 5, .nslice = 1, .slice = &(ricci_slice){v[0], x},
					 .ncarry = 2,
					 .carry = (ricci_carry[]){{v[1], zero, out[0]},
								  {v[2], zero, out[1]}},
					 .nout = 1, .out = &out[2], .recompute = a->recompute),
			     (ricci_tensor *[2]){0}, &all_out),
		  0);
	ricci_tensor *root[6] = {ricci_op(g, "L[] += Y[t,b,j]*Y[t,b,j]", all_out)};
	CHECK_INT(ricci_grad(g, root[0], NULL, 5, (ricci_tensor *[]){x, v[3], v[4], v[5], v[6]},
			     root + 1),
		  0);
	CHECK_GRAPH(g);
	for (int grad = 0; grad < 2; grad++) {
		Node *node[6];
		for (int k = 0; k < 6; k++)
			node[k] = root[k]->node;
		CHECK_INT(rewrite_graph(&g->ir, grad ? 6 : 1, node), 0);
		loops = loops_count(&g->ir, grad ? 6 : 1, node, &sums);
		CHECK_REPORT(loops == (grad ? a->grad_loops : a->loops) &&
				     sums == (grad ? a->grad_sums : a->sums),
			     "%s, gradient %d: %d loops with %d sums", a->text, grad, loops, sums);
	}
	ricci_graph_free(g);
}

/* Only sums that depend on themselves from step to step wait for the steps. */
static void test_apart(void)
{
#define LAYER                                                                                      \
	"X, H, G, W, U, P, Q -> N, M, Y: A[b,j] += X[b,k]*W[k,j]; B[b,j] += H[b,k]*U[k,j]; "       \
	"N[b,j] = tanh(A[b,j] + B[b,j]); "
#define SECOND "C[b,j] += N[b,k]*P[k,j]; D[b,j] += G[b,k]*Q[k,j]; M[b,j] = tanh(C[b,j] + D[b,j]); "
	static const Apart list[] = {
		/* a layer reads the one below */
		{LAYER SECOND "Y[b,j] = 2*M[b,j]", 2, 2, 4, 4, 0},
		/* the same in a loop that is to save memory */
		{LAYER SECOND "Y[b,j] = 2*M[b,j]", 1, 4, 2, 12, 1},
		/* the one below reads what the other was before */
		{LAYER "C[b,j] += H[b,k]*P[k,j]; D[b,j] += G[b,k]*Q[k,j];"
		       "M[b,j] = tanh(C[b,j] + D[b,j]); Y[b,j] = 2*M[b,j]",
		 2, 2, 4, 4, 0},
		/* they read each other */
		{"X, H, G, W, U, P, Q -> N, M, Y: A[b,j] += X[b,k]*W[k,j]; B[b,j] += G[b,k]*U[k,j];"
		 "N[b,j] = tanh(A[b,j] + B[b,j] + H[b,j]); " SECOND "Y[b,j] = 2*M[b,j]",
		 1, 3, 2, 6, 0},
		/* a mean that fades; dropout; a sum behind the states, by way of an equation */
		{LAYER "C[b,j] += N[b,k]*P[k,j]; M[b,j] = 0.05*C[b,j] + 0.95*G[b,j];"
		       "D[b,j] += M[b,k]*Q[k,j]; Y[b,j] = sin(D[b,j])",
		 2, 1, 4, 2, 0},
		{"X, H, G, W, U, P, Q -> N, M, Y: R[b,j] = 0.5 < random(1) ? X[b,j] : 0;"
		 "A[b,j] += R[b,k]*W[k,j]; B[b,j] += H[b,k]*U[k,j]; N[b,j] = tanh(A[b,j] + B[b,j]);"
		 "M[b,j] = P[0,j] + G[b,j]; D[b,j] += N[b,k]*Q[k,j]; Y[b,j] = sin(D[b,j])",
		 2, 1, 4, 2, 0},
	};
	for (int k = 0; k < COUNT(list); k++)
		apart_check(&list[k]);
}

int main(void)
{
	const char *count = getenv("RICCI_FUZZ"), *seed = getenv("RICCI_SEED");
	uint64_t n = count ? strtoull(count, NULL, 10) : PROGRAMS;
	uint64_t first = seed ? strtoull(seed, NULL, 10) : KIND;
	test_apart();
	for (uint64_t k = 0; k < n && check_failed < 10; k++) {
		RandomProgram p;
		random_program(&p, first + k);
		program_check(&p);
		random_layers(&p, first + k);
		program_check(&p);
	}
	return check_done();
}

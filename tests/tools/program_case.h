/* program_case.h - a random program in a graph: its results, their gradients, tangents and second
 * order, with data for all that is bound; a loop (loop_case.h) once more unrolled. Some f32
 * programs are rewritten for mixed precision. Many programs may share one graph, so that kernels
 * are made together. What is judged of them: program_judge.h.
 *
 * Input: a program of random_program.h. Output: a Case. */
#ifndef PROGRAM_CASE_H
#define PROGRAM_CASE_H

#include "runtime/runtime.h"
#include "tests/oracle/oracle.h"
#include "tests/tools/loop_case.h"

#include <stdlib.h>

/* Roots: results, gradients g of the last one; at times its tangent J t and the second derivatives
 * along t twice: as the tangents of g and as the gradients of <g, t>. */
enum { MOST_EQUATIONS = 50 };
enum { RESULTS = 16, WRT = PROGRAM_OPERANDS, ROOTS = RESULTS + 1 + 3 * WRT, BINDS = 3 + 2 * WRT };

typedef struct Case {
	const RandomProgram *p;
	int nbind, noperand, nroot, nresult, nwrt;
	int tangent, hessian;	  /* their first root, or 0 */
	int wrt[WRT], along[WRT]; /* places in bind */
	int seed;		  /* its place in bind, or -1 */
	Type rounded;		  /* factors of long sums: that type, or F32 */
	Node *shown[ROOTS];	  /* the roots, whatever training is */
	int ntwin;		  /* of the first roots, by a loop that is unrolled */
	ricci_tensor *handle[BINDS], *root[ROOTS], *twin[RESULTS + WRT];
	Binding bind[BINDS];
	double *want[ROOTS], *magnitude[ROOTS];
	void *got[ROOTS];
	Oracle *written, *printed; /* by the oracle, where it says something (oracle_judge.h) */
} Case;

/* ---- a program becomes a case */

static int bind_add(Case *c, ricci_graph *g, const Operand *x)
{
	char name[40];
	snprintf(name, sizeof name, "%s_%llu", x->name, (unsigned long long)c->p->number);
	ricci_tensor *t = ricci_input(g, name, x->type, x->rank, x->shape);
	void *data = calloc(1, ricci_bytes(t) + 64);
	operand_fill(x, c->p, tensor_size(t->node), data);
	c->handle[c->nbind] = t;
	c->bind[c->nbind] = (Binding){t->node, data};
	return c->nbind++;
}

/* An input like the tensor t. */
static int bind_like(Case *c, ricci_graph *g, const char *prefix, ricci_tensor *t)
{
	Operand x = {.type = t->node->type, .rank = ricci_rank(t)};
	snprintf(x.name, sizeof x.name, "%s", prefix);
	for (int d = 0; d < x.rank; d++)
		x.shape[d] = ricci_extent(t, d);
	return bind_add(c, g, &x);
}

static void case_gradients(Case *c, ricci_graph *g)
{
	ricci_tensor *y = c->root[c->nresult - 1], *wrt[WRT];
	if (c->p->special || !type_is_float(y->node->type))
		return;
	for (int k = 0; k < c->noperand; k++)
		if (type_is_float(c->handle[k]->node->type)) {
			wrt[c->nwrt] = c->handle[k];
			c->wrt[c->nwrt++] = k;
		}
	if (!c->nwrt)
		return;
	if (c->p->number & 1)
		c->seed = bind_like(c, g, "seed", y);
	ricci_grad(g, y, c->seed < 0 ? NULL : c->handle[c->seed], c->nwrt, wrt, c->root + c->nroot);
	c->nroot += c->nwrt;
}

/* The indices of so many dimensions. */
static const char *const index_text[] = {"",	    "i",	 "i,j",	       "i,j,k",
					 "i,j,k,l", "i,j,k,l,m", "i,j,k,l,m,n"};

/* The scalar sum over k of <a[k], b[k]>, of y's type. */
static ricci_tensor *case_inner(ricci_graph *g, Type type, int n, ricci_tensor *const *a,
				ricci_tensor *const *b)
{
	ricci_tensor *sum = NULL, *both[3];
	char text[100];
	for (int k = 0; k < n; k++) {
		const char *at = index_text[ricci_rank(a[k])], *name = type_name(type);
		const char *op = ricci_rank(a[k]) ? "+=" : "=";
		snprintf(text, sizeof text, "S[] %s %s(A[%s])*%s(B[%s])", op, name, at, name, at);
		both[0] = ricci_op(g, text, a[k], b[k]);
		sum = sum ? ricci_op(g, "S[] = A[] + B[]", sum, both[0]) : both[0];
	}
	return sum;
}

/* How many equations a graph has, loops' bodies included, some of which may count several times. */
static int graph_length(Ir *ir, int nroot, Node *const *root)
{
	Node **order;
	int n = graph_order(ir, nroot, root, &order), length = n;
	for (int k = 0; k < n; k++) {
		const Scan *s = order[k]->op == OP_SCAN ? scan_of(order[k]) : NULL;
		if (s)
			length += graph_length(ir, s->nstate, s->next) +
				  graph_length(ir, 1, &order[k]->u.result->value);
	}
	return length;
}

/* Of the gradients. */
static int gradient_length(Case *c, ricci_graph *g)
{
	Node *root[WRT];
	for (int k = 0; k < c->nwrt; k++)
		root[k] = c->root[c->nresult + k]->node;
	IR_ENTER(&g->ir, 0);
	int n = graph_length(&g->ir, c->nwrt, root);
	IR_LEAVE(&g->ir);
	return n;
}

/* The tangent along new inputs, and for every other program the second order; where the first takes
 * very many equations, each cut by residues, that would take minutes. */
static void case_tangents(Case *c, ricci_graph *g)
{
	ricci_tensor *y = c->root[c->nresult - 1], **grad = c->root + c->nresult;
	ricci_tensor *wrt[WRT], *along[WRT];
	if (!c->nwrt || c->p->number % 3)
		return;
	for (int k = 0; k < c->nwrt; k++) {
		char name[] = {'t', (char)('a' + k), 0};
		c->along[k] = bind_like(c, g, name, c->handle[c->wrt[k]]);
		along[k] = c->handle[c->along[k]];
		wrt[k] = c->handle[c->wrt[k]];
	}
	c->tangent = c->nroot;
	ricci_jvp(g, y, c->nwrt, wrt, along, &c->root[c->nroot++]);
	if (c->p->number % 2 || ricci_graph_error(g) || gradient_length(c, g) > MOST_EQUATIONS)
		return;
	c->hessian = c->nroot;
	for (int k = 0; k < c->nwrt; k++)
		ricci_jvp(g, grad[k], c->nwrt, wrt, along, &c->root[c->nroot++]);
	ricci_tensor *product = case_inner(g, c->p->type, c->nwrt, grad, along);
	ricci_grad(g, product, NULL, c->nwrt, wrt, c->root + c->nroot);
	c->nroot += c->nwrt;
}

/* The roots as a session with mixed precision (F32: without) computes them, that rounds by chance or
 * to the nearest. */
static int case_round(Case *c, ricci_graph *g, Type type, bool by_chance)
{
	Node *root[ROOTS];
	IR_ENTER(&g->ir, RICCI_ENOMEM);
	for (int k = 0; k < c->nroot; k++)
		root[k] = c->root[k]->node;
	int code = rewrite_graph(&g->ir, c->nroot, root);
	if (!code && type != RICCI_F32)
		code = rewrite_precision(&g->ir, type, c->nroot, root);
	if (!code && by_chance)
		code = rewrite_rounding(&g->ir, NULL, c->nroot, root);
	for (int k = 0; k < c->nroot && !code; k++)
		c->root[k]->node = root[k];
	IR_LEAVE(&g->ir);
	c->rounded = type;
	return code;
}

/* Does the program's text hold this? */
static bool case_says(const Case *c, const char *what)
{
	return strstr(c->p->text.s, what) || (c->p->after.n && strstr(c->p->after.s, what));
}

/* What training is in this program's sessions. */
static bool case_trains(const RandomProgram *p)
{
	return p->number & 1;
}

/* The tensors become those of a session, with handles of their own where that makes a difference. */
static void set_training(const Case *c, ricci_graph *g, int n, ricci_tensor **t)
{
	Node *root[ROOTS];
	for (int k = 0; k < n; k++)
		root[k] = t[k]->node;
	graph_set_training(&g->ir, n, root, case_trains(c->p));
	for (int k = 0; k < n; k++) {
		if (t[k]->node == root[k])
			continue;
		ricci_tensor *own = arena_alloc(&g->ir.arena, sizeof *own);
		*own = *t[k];
		own->node = root[k];
		t[k] = own;
	}
}

static int case_train(Case *c, ricci_graph *g)
{
	for (int k = 0; k < c->nroot; k++)
		c->shown[k] = c->root[k]->node;
	if (g->ir.err.code)
		return g->ir.err.code;
	IR_ENTER(&g->ir, RICCI_ENOMEM);
	set_training(c, g, c->nroot, c->root);
	set_training(c, g, c->ntwin, c->twin);
	IR_LEAVE(&g->ir);
	return 0;
}

/* Operands by their names, in another order than the text's, where it has a signature. */
static int open_named(Case *c, ricci_graph *g, int n, const char *const *names,
		      ricci_tensor *const *operand)
{
	const char *name[PROGRAM_TENSORS];
	ricci_tensor *t[PROGRAM_TENSORS];
	for (int k = 0; k < n; k++) {
		name[k] = names[n - 1 - k];
		t[k] = operand[n - 1 - k];
	}
	return ricci_ops_named(g, c->p->text.s, n, name, t, &c->nresult, c->root);
}

static int open_plain(Case *c, ricci_graph *g)
{
	const char **names, *text = c->p->text.s;
	ricci_tensor *operand[PROGRAM_TENSORS];
	IR_ENTER(&g->ir, RICCI_ENOMEM);
	int n = notation_operands(&g->ir, text, &names);
	for (int k = 0; k < n; k++) {
		const Operand *x = operand_named(c->p, names[k]);
		if (!x)
			n = -1;
		else if (x->integer)
			operand[k] = ricci_integer(g, x->low);
		else
			operand[k] = c->handle[bind_add(c, g, x)];
	}
	IR_LEAVE(&g->ir);
	if (n < 0)
		return error_set(&g->ir.err, RICCI_ESYNTAX, "an operand is missing");
	c->noperand = c->nbind;
	if (c->p->number & 2 && strstr(text, "->"))
		return open_named(c, g, n, names, operand);
	return ricci_ops(g, text, n, operand, &c->nresult, c->root);
}

static int open_loop(Case *c, ricci_graph *g, LoopCase *l)
{
	const RandomProgram *p = c->p;
	*l = (LoopCase){.g = g, .p = p};
	for (int k = 0; k < p->n; k++)
		if (!p->tensor[k].local && operand_used(p, &p->tensor[k])) {
			Operand x = operand_bound(p, &p->tensor[k]);
			l->bound[k] = c->handle[bind_add(c, g, &x)];
		}
	c->noperand = c->nbind;
	if (p->loop.length >= 0) {
		Type type = p->number & 1 ? RICCI_I32 : RICCI_I64;
		Operand x = {.name = "length", .type = type};
		x.low = x.high = p->loop.length;
		l->length = c->handle[bind_add(c, g, &x)];
	}
	int code = loop_open(l);
	return code ? code : loop_results(l, false, &c->nresult, c->root);
}

/* The results and gradients of the loop unrolled, except where its steps draw numbers of their own.
 */
static int case_twin(Case *c, ricci_graph *g, LoopCase *l)
{
	ricci_tensor *wrt[WRT];
	int n = RESULTS;
	if (case_says(c, "random(") || case_says(c, "normal(") || ricci_graph_error(g) ||
	    loop_results(l, true, &n, c->twin))
		return ricci_graph_error(g);
	for (int k = 0; k < c->nwrt; k++)
		wrt[k] = c->handle[c->wrt[k]];
	c->ntwin = n + c->nwrt;
	return c->nwrt ? ricci_grad(g, c->twin[n - 1], c->seed < 0 ? NULL : c->handle[c->seed],
				    c->nwrt, wrt, c->twin + n)
		       : 0;
}

static int case_open(Case *c, ricci_graph *g, const RandomProgram *p)
{
	LoopCase loop;
	bool loops = p->loop.steps > 0;
	*c = (Case){.p = p, .seed = -1, .nresult = RESULTS, .rounded = RICCI_F32};
	if (loops ? open_loop(c, g, &loop) : open_plain(c, g))
		return ricci_graph_error(g);
	c->nroot = c->nresult;
	case_gradients(c, g);
	if (loops && case_twin(c, g, &loop))
		return ricci_graph_error(g);
	case_tangents(c, g);
	if (case_train(c, g))
		return ricci_graph_error(g);
	bool plain = !loops && !p->by_chance; /* others: sessions do that (rounding_judge.h) */
	if (plain && p->type == RICCI_F32 && p->number % 8 == 5 && !ricci_graph_error(g))
		return case_round(c, g,
				  p->number % 16 == 5	 ? RICCI_BF16
				  : p->number % 32 == 13 ? RICCI_F16
							 : RICCI_TF32,
				  false);
	return ricci_graph_error(g);
}

static void case_close(Case *c)
{
	if (c->written)
		oracle_free(c->written);
	if (c->printed)
		oracle_free(c->printed);
	for (int k = 0; k < c->nbind; k++)
		free((void *)(uintptr_t)c->bind[k].data);
	for (int k = 0; k < c->nroot; k++) {
		free(c->want[k]);
		free(c->magnitude[k]);
		free(c->got[k]);
	}
}

#endif

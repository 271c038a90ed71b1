/* program_case.h - a random program judged: its text prints and parses back, its results and
 * gradients by a backend are the interpreter's, the gradients are those of finite differences (f64)
 * and agree with the tangents of forward mode, in first and second order. Some f32 programs are
 * rewritten for mixed precision before. Many programs share one graph, so that kernels are made
 * together.
 *
 * Input: programs of random_program.h. Output: a Verdict with a message. */
#ifndef PROGRAM_CASE_H
#define PROGRAM_CASE_H

#include "runtime/runtime.h"
#include "tests/check.h"
#include "tests/tools/random_program.h"

#include <float.h>
#include <stdlib.h>

typedef enum {
	GOOD,
	INVALID,     /* not accepted */
	REPRINTED,   /* prints as something else */
	NO_GRADIENT, /* an error of differentiation */
	NO_RESULT,   /* an error of the interpreter or of a kernel */
	WRONG_RESULT,
	WRONG_GRADIENT, /* not that of finite differences */
	WRONG_PRODUCT,	/* forward and reverse mode disagree */
	CRASHED,
	HANGS
} Verdict;

#define PARTLY "compared in part\n"

enum { TEXT_ONLY = -1 }; /* the number of backends where nothing is computed */

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
	bool rounded;		  /* factors of long sums to bf16 */
	ricci_tensor *handle[BINDS], *root[ROOTS];
	Binding bind[BINDS];
	double *want[ROOTS], *magnitude[ROOTS];
	void *got[ROOTS];
} Case;

/* ---- a program becomes a case */

static int bind_add(Case *c, ricci_graph *g, const Operand *x)
{
	char name[40];
	snprintf(name, sizeof name, "%s_%llu", x->name, (unsigned long long)c->p->number);
	ricci_tensor *t = ricci_input(g, name, x->type, x->rank, x->shape);
	void *data = calloc(1, ricci_bytes(t) + 64);
	operand_fill(x, c->p->number, tensor_size(t->node), data);
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

static const Operand *operand_named(const RandomProgram *p, const char *name)
{
	for (int k = 0; k < p->n; k++)
		if (!p->tensor[k].local && !strcmp(p->tensor[k].name, name))
			return &p->tensor[k];
	return NULL;
}

static void case_gradients(Case *c, ricci_graph *g)
{
	ricci_tensor *y = c->root[c->nresult - 1], *wrt[WRT];
	if (!type_is_float(y->node->type))
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

/* The scalar sum over k of <a[k], b[k]>, of y's type. */
static ricci_tensor *case_inner(ricci_graph *g, Type type, int n, ricci_tensor *const *a,
				ricci_tensor *const *b)
{
	static const char *const index[] = {"",	       "i",	    "i,j",	  "i,j,k",
					    "i,j,k,l", "i,j,k,l,m", "i,j,k,l,m,n"};
	ricci_tensor *sum = NULL, *both[3];
	char text[100];
	for (int k = 0; k < n; k++) {
		const char *at = index[ricci_rank(a[k])], *name = type_name(type);
		const char *op = ricci_rank(a[k]) ? "+=" : "=";
		snprintf(text, sizeof text, "S[] %s %s(A[%s])*%s(B[%s])", op, name, at, name, at);
		both[0] = ricci_op(g, text, a[k], b[k]);
		sum = sum ? ricci_op(g, "S[] = A[] + B[]", sum, both[0]) : both[0];
	}
	return sum;
}

/* How many equations the gradients take. */
static int gradient_length(Case *c, ricci_graph *g)
{
	Node *root[WRT], **order;
	for (int k = 0; k < c->nwrt; k++)
		root[k] = c->root[c->nresult + k]->node;
	IR_ENTER(&g->ir, 0);
	int n = graph_order(&g->ir, c->nwrt, root, &order);
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

/* The roots as a session with mixed precision computes them. */
static int case_round(Case *c, ricci_graph *g)
{
	Node *root[ROOTS];
	IR_ENTER(&g->ir, RICCI_ENOMEM);
	for (int k = 0; k < c->nroot; k++)
		root[k] = c->root[k]->node;
	int code = rewrite_graph(&g->ir, c->nroot, root);
	if (!code)
		code = rewrite_precision(&g->ir, RICCI_BF16, c->nroot, root);
	for (int k = 0; k < c->nroot && !code; k++)
		c->root[k]->node = root[k];
	IR_LEAVE(&g->ir);
	c->rounded = true;
	return code;
}

static int case_open(Case *c, ricci_graph *g, const RandomProgram *p)
{
	const char **names;
	*c = (Case){.p = p, .seed = -1, .nresult = RESULTS};
	IR_ENTER(&g->ir, RICCI_ENOMEM);
	int n = notation_operands(&g->ir, p->text.s, &names);
	for (int k = 0; k < n; k++) {
		const Operand *x = operand_named(p, names[k]);
		if (!x)
			n = -1;
		else
			bind_add(c, g, x);
	}
	IR_LEAVE(&g->ir);
	if (n < 0)
		return error_set(&g->ir.err, RICCI_ESYNTAX, "an operand is missing");
	c->noperand = n;
	if (ricci_ops(g, p->text.s, n, c->handle, &c->nresult, c->root))
		return ricci_graph_error(g);
	c->nroot = c->nresult;
	case_gradients(c, g);
	case_tangents(c, g);
	if (p->type == RICCI_F32 && p->number % 8 == 5 && !ricci_graph_error(g))
		return case_round(c, g);
	return ricci_graph_error(g);
}

static void case_close(Case *c)
{
	for (int k = 0; k < c->nbind; k++)
		free((void *)(uintptr_t)c->bind[k].data);
	for (int k = 0; k < c->nroot; k++) {
		free(c->want[k]);
		free(c->magnitude[k]);
		free(c->got[k]);
	}
}

static const char *root_kind(const Case *c, int k)
{
	return k < c->nresult		  ? "result"
	       : k < c->nresult + c->nwrt ? "gradient"
	       : k == c->tangent	  ? "tangent"
	       : k < c->hessian + c->nwrt ? "tangent of a gradient"
					  : "gradient of gradients";
}

static bool same_values(Case *c, Node *a, Node *b)
{
	Ir *ir = &c->root[0]->g->ir;
	size_t n = (size_t)tensor_size(a);
	double *x = calloc(n, 8), *y = calloc(n, 8), *size = calloc(n, 8);
	RandomState rs = {0, 0};
	bool same = a->type == b->type && tensor_size(b) == tensor_size(a) &&
		    !interp_tensor(ir, a, c->nbind, c->bind, rs, x, size, NULL) &&
		    !interp_tensor(ir, b, c->nbind, c->bind, rs, y, NULL, NULL);
	for (size_t i = 0; i < n && same; i++)
		same = type_is_float(a->type) ? check_near(x[i], y[i], 1e-12 * size[i])
					      : !memcmp(&x[i], &y[i], sizeof x[i]);
	free(x);
	free(y);
	free(size);
	return same;
}

/* The root's equations, printed, parse back: to the same node, or, as sums have symmetries, to one
 * of the same values. */
static bool root_reprints(Case *c, int k, Text *why)
{
	static const char *const name = "Root";
	Ir *ir = &c->root[0]->g->ir;
	Node *root = c->root[k]->node, *again = NULL, *operand[BINDS];
	const char **operands;
	int nresult = 0;
	Text text = {0};
	if (root->op == OP_INPUT)
		return true;
	print_program(&text, ir, 1, &root, &name);
	int n = notation_operands(ir, text.s, &operands);
	bool good = n >= 0;
	for (int i = 0; i < n; i++) {
		operand[i] = NULL;
		for (int j = 0; j < c->nbind; j++)
			if (!strcmp(c->bind[j].tensor->u.s, operands[i]))
				operand[i] = c->bind[j].tensor;
		good = good && operand[i];
	}
	good = good && !notation_elaborate(ir, text.s, n, operand, &nresult, &again, 1);
	if (good && again != root)
		good = same_values(c, root, again);
	if (!good)
		text_add(why, "%s (root %d) prints as\n%s\n%s\n", root_kind(c, k), k, text.s,
			 ir->err.code ? ir->err.text : "which is another tensor");
	text_free(&text);
	return good;
}

static bool case_reprints(Case *c, Text *why)
{
	Ir *ir = &c->root[0]->g->ir;
	bool good = true;
	IR_ENTER(ir, false);
	for (int k = 0; k < c->nroot && good; k++)
		good = root_reprints(c, k, why);
	IR_LEAVE(ir);
	return good;
}

static int case_judge(Case *c, Error *err)
{
	int code = 0;
	for (int k = 0; k < c->nroot && !code; k++) {
		Node *t = c->root[k]->node;
		size_t n = (size_t)tensor_size(t);
		c->want[k] = calloc(n, 8);
		c->magnitude[k] = calloc(n, 8);
		c->got[k] = malloc(tensor_bytes(t) + 64);
		code = interp_tensor(&c->root[0]->g->ir, t, c->nbind, c->bind, (RandomState){0, 0},
				     c->want[k], c->magnitude[k], err);
	}
	return code;
}

/* Are there elements that overflow on the way, or that rounding decides, and are not compared? */
static bool case_partly(const Case *c)
{
	for (int k = 0; k < c->nroot; k++)
		for (int64_t i = 0; i < tensor_size(c->root[k]->node); i++)
			if (isinf(c->magnitude[k][i]))
				return true;
	return false;
}

/* ---- comparing */

static double precision(Type t)
{
	return t == RICCI_F64 ? 1e-12 : t == RICCI_F32 ? 1e-5 : t == RICCI_F16 ? 4e-3 : 3e-2;
}

/* Terms of the longest sum that t needs. */
static double longest_sum(Ir *ir, Node *t)
{
	double most = 1;
	Node **order;
	int n = graph_order(ir, 1, &t, &order);
	for (int j = 0; j < n; j++)
		if (order[j]->op == OP_COMP)
			most = fmax(most, comp_points(order[j]) / (double)tensor_size(order[j]));
	return most;
}

/* The coarsest float type that takes part: gradients pass through the operands' types. */
static double coarsest(const Case *c, int k)
{
	static const struct {
		const char *text;
		Type type;
	} narrow[] = {{"bf16(", RICCI_BF16},
		      {"f16(", RICCI_F16},
		      {"f32(", RICCI_F32},
		      {"normal(", RICCI_F32}};
	double eps = precision(c->rounded ? RICCI_BF16 : (Type)c->root[k]->node->type);
	for (int j = 0; j < COUNT(narrow); j++)
		if (strstr(c->p->text.s, narrow[j].text))
			eps = fmax(eps, precision(narrow[j].type));
	for (int j = 0; j < c->noperand && k >= c->nresult; j++) {
		Type t = (Type)c->handle[j]->node->type;
		if (type_is_float(t))
			eps = fmax(eps, precision(t));
	}
	return eps;
}

__attribute__((noinline)) static double case_terms(const Case *c, int k)
{
	Ir *ir = &c->root[k]->g->ir;
	IR_ENTER(ir, 1);
	double terms = longest_sum(ir, c->root[k]->node);
	IR_LEAVE(ir);
	return terms;
}

/* Equal terms round the same way, so that a sum's error may grow as their number does. */
static double case_precision(const Case *c, int k)
{
	double eps = coarsest(c, k);
	return eps + case_terms(c, k) * (eps < precision(RICCI_F32) ? 0x1p-53 : 0x1p-24);
}

static bool root_agrees(const Case *c, int k, Text *why)
{
	Node *t = c->root[k]->node;
	int64_t n = tensor_size(t);
	double scale = 0, eps = case_precision(c, k);
	double largest = type_is_float(t->type) ? type_largest(t->type) : 0;
	for (int64_t i = 0; i < n && type_is_float(t->type); i++) {
		double a = fabs(c->want[k][i]);
		scale = isfinite(a) && isfinite(c->magnitude[k][i]) && a > scale ? a : scale;
	}
	for (int64_t i = 0; i < n; i++) {
		double got, want = c->want[k][i], size = c->magnitude[k][i];
		double tol = eps * (size + scale + 1);
		bool ok;
		if (type_is_float(t->type)) {
			got = type_load(t->type, c->got[k], (size_t)i);
			/* out of the type's range on the way, or nearly: anything large */
			ok = isinf(tol) || check_near(got, want, tol) ||
			     (fabs(want) + tol > largest &&
			      (!isfinite(got) || fabs(got) > largest / 4));
		} else {
			int64_t x = type_load_int(t->type, c->got[k], (size_t)i);
			int64_t y = ((int64_t *)c->want[k])[i];
			ok = x == y || isinf(size), got = (double)x, want = (double)y, tol = 0;
		}
		if (!ok) {
			text_add(why,
				 "%s (root %d), element %lld: %.9g, should be %.9g within %.2g\n",
				 root_kind(c, k), k, (long long)i, got, want, tol);
			return false;
		}
	}
	return true;
}

static int evaluate_cases(ricci_graph *g, int n, Case *c, const char *backend, Error *err)
{
	int nroot = 0, nbind = 0;
	Node **root = calloc((size_t)n * ROOTS, sizeof *root);
	void **out = calloc((size_t)n * ROOTS, sizeof *out);
	Binding *bind = calloc((size_t)n * BINDS, sizeof *bind);
	Evaluation e = {.backend = backend_find(backend), .threads = 1, .repeat = 1};
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < c[i].nroot; k++) {
			root[nroot] = c[i].root[k]->node;
			out[nroot++] = c[i].got[k];
		}
		for (int k = 0; k < c[i].nbind; k++)
			bind[nbind++] = c[i].bind[k];
	}
	int code = evaluate(&g->ir, nroot, root, nbind, bind, out, &e, err);
	free(root);
	free(out);
	free(bind);
	return code;
}

/* ---- <dy, J t> = <J' dy, t>, and both ways to the second order */

/* magnitude: of a, whose terms may have cancelled each other. */
static double inner_product(int64_t n, const double *a, const double *magnitude, const double *b,
			    double *size)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++) {
		double by = b ? b[i] : 1;
		sum += a[i] * by;
		*size += (fabs(a[i]) + 1e-4 * magnitude[i]) * fabs(by);
	}
	return sum;
}

static bool products_agree(Case *c, Text *why)
{
	if (c->p->type != RICCI_F64 || !c->tangent)
		return true;
	for (int k = 0; k < c->nwrt; k++)
		if (c->bind[c->wrt[k]].tensor->type != RICCI_F64)
			return true;
	double size = 1, left, right = 0;
	left = inner_product(tensor_size(c->root[c->tangent]->node), c->want[c->tangent],
			     c->magnitude[c->tangent], c->seed < 0 ? NULL : c->bind[c->seed].data,
			     &size);
	for (int k = 0; k < c->nwrt; k++) {
		Node *t = c->bind[c->wrt[k]].tensor;
		double *along = malloc(8 * (size_t)tensor_size(t));
		for (int64_t i = 0; i < tensor_size(t); i++)
			along[i] = type_load(t->type, c->bind[c->along[k]].data, (size_t)i);
		right += inner_product(tensor_size(t), c->want[c->nresult + k],
				       c->magnitude[c->nresult + k], along, &size);
		free(along);
	}
	if (isfinite(left) && isfinite(right) && fabs(left - right) > 1e-9 * size) {
		text_add(why, "<dy, J t> is %.12g, <J' dy, t> is %.12g\n", left, right);
		return false;
	}
	for (int k = 0; k < c->nwrt && c->hessian; k++) {
		Node *t = c->bind[c->wrt[k]].tensor;
		const double *a = c->want[c->hessian + k], *b = c->want[c->hessian + c->nwrt + k];
		const double *m = c->magnitude[c->hessian + k];
		const double *n = c->magnitude[c->hessian + c->nwrt + k];
		for (int64_t i = 0; i < tensor_size(t); i++)
			if (isfinite(a[i]) && isfinite(b[i]) &&
			    fabs(a[i] - b[i]) > 1e-9 * (1 + fabs(a[i]) + m[i] + n[i])) {
				text_add(why,
					 "second order, operand %d, element %lld: %.12g forward, "
					 "%.12g reverse\n",
					 k, (long long)i, a[i], b[i]);
				return false;
			}
	}
	return true;
}

/* ---- finite differences: along one random direction, from the interpreter */

static double direction(int k, int64_t i)
{
	return (double)(mix((uint64_t)(k * 9999 + i)) % 1000) / 1000;
}

static void move(Case *c, double **base, double by)
{
	for (int k = 0; k < c->noperand; k++) {
		double *x = (double *)(uintptr_t)c->bind[k].data;
		for (int64_t i = 0; base[k] && i < tensor_size(c->bind[k].tensor); i++)
			x[i] = base[k][i] + by * direction(k, i);
	}
}

static double loss(Case *c, double **base, double by, Error *err)
{
	Node *y = c->root[c->nresult - 1]->node;
	size_t n = (size_t)tensor_size(y);
	double *v = malloc(n * sizeof *v), sum = 0;
	move(c, base, by);
	if (interp_tensor(&c->root[0]->g->ir, y, c->nbind, c->bind, (RandomState){0, 0}, v, NULL,
			  err))
		sum = NAN;
	for (size_t i = 0; i < n; i++)
		sum += v[i] * (c->seed < 0 ? 1 : ((const double *)c->bind[c->seed].data)[i]);
	free(v);
	return sum;
}

/* What the gradients say of that direction. */
static double slope_at(Case *c, double **base, double by, Error *err)
{
	double sum = 0;
	move(c, base, by);
	for (int j = 0; j < c->nwrt; j++) {
		int k = c->wrt[j];
		size_t n = (size_t)tensor_size(c->bind[k].tensor);
		double *v = malloc(n * sizeof *v);
		if (base[k] && interp_tensor(&c->root[0]->g->ir, c->root[c->nresult + j]->node,
					     c->nbind, c->bind, (RandomState){0, 0}, v, NULL, err))
			sum = NAN;
		for (size_t i = 0; base[k] && i < n; i++)
			sum += direction(k, (int64_t)i) * v[i];
		free(v);
	}
	return sum;
}

/* Where the slopes on both sides differ there is a kink, and nothing is to be said; nor where a
 * derivative is stopped, or zero times an infinity; nor where the gradient itself is another as
 * near as that (the sine of large numbers). */
static bool differences_agree(Case *c, Text *why)
{
	double *base[BINDS] = {0}, slope = 0, size = 0, h = 1e-6;
	Error err = {0};
	if (c->p->type != RICCI_F64 || !c->nwrt || strstr(c->p->text.s, "stop("))
		return true;
	for (int j = 0; j < c->nwrt; j++) {
		int k = c->wrt[j];
		int64_t n = tensor_size(c->bind[k].tensor);
		if (c->bind[k].tensor->type != RICCI_F64)
			continue;
		base[k] = malloc((size_t)n * 8);
		memcpy(base[k], c->bind[k].data, (size_t)n * 8);
		for (int64_t i = 0; i < n; i++) {
			double d = direction(k, i) * c->want[c->nresult + j][i];
			slope += d;
			size += fabs(d);
		}
	}
	double up = loss(c, base, h, &err), down = loss(c, base, -h, &err);
	double here = loss(c, base, 0, &err), found = (up - down) / (2 * h);
	double bend = fabs(up - 2 * here + down) / h, noise = 1e-7 * (fabs(up) + fabs(down));
	bool steep = h * size > 0.01 * (1 + fabs(here)); /* no line even as near as that */
	bool ok = !isfinite(found) || !isfinite(slope) || steep || bend > 1e-4 * (1 + size) ||
		  fabs(found - slope) <= 1e-4 * (1 + size) + noise;
	if (!ok) /* false for a NaN */
		ok = !(fabs(slope_at(c, base, h, &err) - slope_at(c, base, -h, &err)) <=
		       1e-4 * (1 + size));
	move(c, base, 0);
	for (int k = 0; k < c->nbind; k++)
		free(base[k]);
	if (!ok)
		text_add(why, "slope %.10g, differences say %.10g\n", slope, found);
	return ok;
}

/* ---- programs in one graph; the verdict is the first one that is bad */

static Verdict case_verdict(Case *c, Text *why)
{
	Error err = {0};
	if (!case_reprints(c, why))
		return REPRINTED;
	if (case_judge(c, &err)) {
		text_add(why, "%s\n", err.text);
		return NO_RESULT;
	}
	if (case_partly(c))
		text_add(why, PARTLY);
	if (!differences_agree(c, why))
		return WRONG_GRADIENT;
	return products_agree(c, why) ? GOOD : WRONG_PRODUCT;
}

__attribute__((unused)) static Verdict programs_verdict(int n, const RandomProgram *p, int nbackend,
							const char *const *backend, Text *why)
{
	ricci_graph *g = ricci_graph_new();
	Case *c = calloc((size_t)n, sizeof *c);
	Verdict v = GOOD;
	int opened = 0;
	Error err = {0};
	for (; opened < n && v == GOOD; opened++)
		if (case_open(&c[opened], g, &p[opened])) {
			v = c[opened].nwrt ? NO_GRADIENT : INVALID;
			text_add(why, "%s\n", ricci_error_message(g));
		}
	for (int i = 0; i < n && v == GOOD; i++)
		v = nbackend == TEXT_ONLY ? case_reprints(&c[i], why) ? GOOD : REPRINTED
					  : case_verdict(&c[i], why);
	for (int b = 0; b < nbackend && v == GOOD; b++) {
		if (evaluate_cases(g, n, c, backend[b], &err)) {
			v = NO_RESULT;
			text_add(why, "%s: %s\n", backend[b], err.text);
		}
		for (int i = 0; i < n && v == GOOD; i++)
			for (int k = 0; k < c[i].nroot && v == GOOD; k++)
				if (!root_agrees(&c[i], k, why)) {
					v = WRONG_RESULT;
					text_add(why, "by %s\n", backend[b]);
				}
	}
	for (int i = 0; i < opened; i++)
		case_close(&c[i]);
	free(c);
	ricci_graph_free(g);
	return v;
}

#endif

/* program_judge.h - a random program judged: its text prints and parses back, its results and
 * gradients by a backend are the interpreter's, the gradients are those of finite differences (f64)
 * and agree with the tangents of forward mode, in first and second order; a loop is its steps.
 *
 * Input: programs of random_program.h. Output: a Verdict with a message. */
#ifndef PROGRAM_JUDGE_H
#define PROGRAM_JUDGE_H

#include "tests/tools/oracle_judge.h"
#include "tests/tools/rounding_judge.h"

/* ---- texts */

static bool same_values(Case *c, Node *a, Node *b)
{
	Node *both[2] = {a, b};
	graph_set_training(&c->root[0]->g->ir, 2, both, case_trains(c->p));
	a = both[0];
	b = both[1];
	size_t n = (size_t)tensor_size(a);
	double *x = calloc(n, 8), *y = calloc(n, 8), *size = calloc(n, 8);
	RandomState rs = {0, 0};
	bool same = a->type == b->type && tensor_size(b) == tensor_size(a) &&
		    !interp_tensor(a, c->nbind, c->bind, rs, x, size, NULL) &&
		    !interp_tensor(b, c->nbind, c->bind, rs, y, NULL, NULL);
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
__attribute__((noinline)) static bool root_reprints(Case *c, int k, Text *why)
{
	static const char *const name = "Root";
	Ir *ir = &c->root[0]->g->ir;
	Node *root = c->shown[k], *again = NULL, *operand[BINDS];
	const char **operands;
	int nresult = 0;
	Text text = {0};
	if (root->op == OP_INPUT)
		return true;
	print_program(&text, ir, 1, &root, &name);
	if (strstr(text.s, "loop ")) { /* which the notation doesn't have */
		text_free(&text);
		return true;
	}
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

static int evaluate_cases(ricci_graph *g, int n, Case *c, const char *backend, Error *err)
{
	int nroot = 0, nbind = 0;
	Node **root = calloc((size_t)n * ROOTS, sizeof *root);
	void **out = calloc((size_t)n * ROOTS, sizeof *out);
	Binding *bind = calloc((size_t)n * BINDS, sizeof *bind);
	Evaluation e = {.backend = backend_find(backend), .threads = 1, .repeat = 1};
	e.least_memory = c->p && c->p->number / 8 % 2; /* every other batch of test_programs.c */
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

/* ---- loops: what they give is what their steps give, one after the other */

static bool twins_agree(Case *c, Text *why)
{
	bool ok = true;
	for (int k = 0; k < c->ntwin && ok; k++) {
		double coarse = coarsest(c, k);
		/* f32 numbers are multiplied in f32 when their product is made, which steps do in
		 * other groups. */
		double eps = coarse > 1e-4 ? coarse : coarse > 1e-9 ? 1e-6 : 1e-9;
		ok = twin_agrees(c, k, c->twin[k]->node, eps, why);
		if (!ok)
			text_add(why, ": %s (root %d) of the loop is not that of its steps\n",
				 root_kind(c, k), k);
	}
	return ok;
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
	if (interp_tensor(y, c->nbind, c->bind, (RandomState){0, 0}, v, NULL, err))
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
		if (base[k] && interp_tensor(c->root[c->nresult + j]->node, c->nbind, c->bind,
					     (RandomState){0, 0}, v, NULL, err))
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
	if (c->p->type != RICCI_F64 || !c->nwrt || case_says(c, "stop_gradient("))
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
	if (!ok) { /* large parts that cancel: what rounding takes of them counts less over longer steps */
		double longer = 100 * h;
		double far =
			(loss(c, base, longer, &err) - loss(c, base, -longer, &err)) / (2 * longer);
		ok = fabs(far - slope) <= 1e-4 * (1 + size);
	}
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
	if (case_judge(c, (RandomState){0, 0}, &err)) {
		text_add(why, "%s\n", err.text);
		return NO_RESULT;
	}
	if (!oracle_open(c, why) || !oracle_agrees(c, true, why))
		return WRONG_MEANING;
	if (c->p->special) /* the rest is for numbers */
		return GOOD;
	if (case_partly(c))
		text_add(why, PARTLY);
	if (!differences_agree(c, why))
		return WRONG_GRADIENT;
	if (!twins_agree(c, why))
		return WRONG_LOOP;
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
	for (int i = 0; i < n && v == GOOD; i++)
		if (p[i].by_chance && nbackend != TEXT_ONLY)
			v = rounding_verdict(&p[i], why);
	for (; opened < n && v == GOOD; opened++)
		if (!p[opened].by_chance && case_open(&c[opened], g, &p[opened])) {
			v = c[opened].nwrt ? NO_GRADIENT : INVALID;
			text_add(why, "%s\n", ricci_error_message());
		}
	for (int i = 0; i < n && v == GOOD; i++)
		if (!p[i].by_chance)
			v = nbackend != TEXT_ONLY	? case_verdict(&c[i], why)
			    : case_reprints(&c[i], why) ? GOOD
							: REPRINTED;
	for (int b = 0; b < nbackend && v == GOOD; b++) {
		if (evaluate_cases(g, n, c, backend[b], &err)) {
			v = NO_RESULT;
			text_add(why, "%s: %s\n", backend[b], err.text);
		}
		for (int i = 0; i < n && v == GOOD; i++)
			if (!p[i].by_chance && !oracle_agrees(&c[i], false, why)) {
				v = WRONG_MEANING;
				text_add(why, "by %s\n", backend[b]);
			}
		for (int i = 0; i < n && v == GOOD; i++)
			for (int k = 0; k < c[i].nroot && v == GOOD && !p[i].special; k++)
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

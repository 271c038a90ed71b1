/* program_compare.h - what is computed of a random program beside what the interpreter says, within
 * a bound from its types and the length of its sums. Input: a Case. Output: true, or a message. */
#ifndef PROGRAM_COMPARE_H
#define PROGRAM_COMPARE_H

#include "tests/check.h"
#include "tests/tools/program_case.h"

#include <float.h>

typedef enum {
	GOOD,
	INVALID,     /* not accepted */
	REPRINTED,   /* prints as something else */
	NO_GRADIENT, /* an error of differentiation */
	NO_RESULT,   /* an error of the interpreter or of a kernel */
	WRONG_RESULT,
	WRONG_MEANING,	/* not what its text says by the oracle */
	WRONG_GRADIENT, /* not that of finite differences */
	WRONG_PRODUCT,	/* forward and reverse mode disagree */
	WRONG_LOOP,	/* not its steps */
	WRONG_ROUNDING,
	CRASHED,
	HANGS
} Verdict;

#define PARTLY	     "compared in part\n"
#define OTHER_RANGES "the oracle finds other ranges\n"

enum { TEXT_ONLY = -1 }; /* the number of backends where nothing is computed */

static const char *root_kind(const Case *c, int k)
{
	return k < c->nresult		  ? "result"
	       : k < c->nresult + c->nwrt ? "gradient"
	       : k == c->tangent	  ? "tangent"
	       : k < c->hessian + c->nwrt ? "tangent of a gradient"
					  : "gradient of gradients";
}

static int case_judge(Case *c, RandomState rs, Error *err)
{
	int code = 0;
	for (int k = 0; k < c->nroot && !code; k++) {
		Node *t = c->root[k]->node;
		size_t n = (size_t)tensor_size(t);
		c->want[k] = calloc(n, 8);
		c->magnitude[k] = calloc(n, 8);
		c->got[k] = malloc(tensor_bytes(t) + 64);
		code = interp_tensor(t, c->nbind, c->bind, rs, c->want[k], c->magnitude[k], err);
	}
	return code;
}

/* Are there elements that overflow on the way, or that rounding decides, and are not compared? */
__attribute__((unused)) static bool case_partly(const Case *c)
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
	return t == RICCI_F64			   ? 1e-12
	       : t == RICCI_F32			   ? 1e-5
	       : t == RICCI_F16 || t == RICCI_TF32 ? 4e-3
						   : 3e-2;
}

/* Terms of the longest sum that t needs; those of a loop's steps may meet. */
static double longest_sum(Ir *ir, Node *t)
{
	double most = 1;
	Node **order;
	int n = graph_order(ir, 1, &t, &order);
	for (int j = 0; j < n; j++) {
		const Node *c = order[j];
		const Scan *s = c->op == OP_SCAN ? scan_of(c) : NULL;
		if (c->op == OP_COMP)
			most = fmax(most, comp_points(c) / (double)tensor_size(c));
		for (int k = 0; s && k <= s->nstate; k++) {
			Node *root = k < s->nstate ? s->next[k] : c->u.result->value;
			most = fmax(most, (double)s->bound * longest_sum(ir, root));
		}
	}
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
	double eps = fmax(precision(c->rounded), precision((Type)c->root[k]->node->type));
	for (int j = 0; j < COUNT(narrow); j++)
		if (case_says(c, narrow[j].text))
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

/* A number out of the type's range, or nearly, and anything large: either may be the one that stored a
 * partial sum in the type. */
static bool values_overflow(double largest, double a, double b, double tol)
{
	bool beyond = (isfinite(a) && fabs(a) + tol > largest) ||
		      (isfinite(b) && fabs(b) + tol > largest) || (isinf(a) && isinf(b)) ||
		      (isinf(b) && isnan(a));
	return beyond && (!isfinite(a) || fabs(a) > largest / 4) &&
	       (!isfinite(b) || fabs(b) > largest / 4);
}

/* Is t, by the interpreter, what it says of root k? */
__attribute__((unused)) static bool twin_agrees(const Case *c, int k, Node *t, double eps,
						Text *why)
{
	size_t n = (size_t)tensor_size(t);
	double *v = calloc(n, sizeof *v);
	double largest = type_is_float(t->type) ? type_largest(t->type) : 0;
	Error err = {0};
	bool good = !interp_tensor(t, c->nbind, c->bind, (RandomState){0, 0}, v, NULL, &err);
	if (!good)
		text_add(why, "%s", err.text);
	for (size_t i = 0; i < n && good; i++) {
		double want = c->want[k][i], size = c->magnitude[k][i];
		double tol = eps * (1 + size);
		good = isinf(size) || (type_is_float((Type)t->type)
					       ? check_near(v[i], want, tol) ||
							 values_overflow(largest, v[i], want, tol)
					       : !memcmp(&v[i], &want, sizeof want));
		if (!good)
			text_add(why, "element %zu is %.12g, should be %.12g", i, v[i], want);
	}
	free(v);
	return good;
}

__attribute__((unused)) static bool root_agrees(const Case *c, int k, Text *why)
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
			ok = isinf(tol) || check_near(got, want, tol) ||
			     values_overflow(largest, got, want, tol);
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

#endif

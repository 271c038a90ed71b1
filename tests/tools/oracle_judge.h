/* oracle_judge.h - what a random program's text says by the second reading of the notation
 * (tests/oracle), against what the interpreter and kernels give: the program as it was written, and
 * the text that its results and gradients print as, with all ranges (whether the others are inferred
 * from it is judged by root_reprints). Input: a Case. Output: true, or a message. */
#ifndef ORACLE_JUDGE_H
#define ORACLE_JUDGE_H

#include "tests/oracle/oracle.h"
#include "tests/tools/program_compare.h"

enum { ORACLE_STEPS = 20000000 }; /* of a program; longer ones are left out */

/* An operand as the oracle takes it. */
static OracleTensor oracle_operand(const Binding *b, const char *name)
{
	Type type = (Type)b->tensor->type;
	OracleTensor t = {.name = name,
			  .type = oracle_type(type_name(type)),
			  .rank = tensor_rank(b->tensor),
			  .size = tensor_size(b->tensor)};
	for (int d = 0; d < t.rank; d++)
		t.shape[d] = tensor_extent(b->tensor, d);
	t.at = calloc((size_t)t.size, sizeof *t.at);
	for (int64_t i = 0; i < t.size; i++) {
		t.at[i].exact = true;
		if (type_is_float(type)) {
			double v = t.at[i].f = type_load(type, b->data, (size_t)i);
			t.at[i].magnitude = isfinite(v) ? fabs(v) : 0;
		} else {
			t.at[i].i = type_load_int(type, b->data, (size_t)i);
		}
	}
	return t;
}

static bool oracle_element_agrees(const OracleTensor *want, int64_t i, double got, int64_t got_i,
				  double tol)
{
	const OracleValue *v = &want->at[i];
	double largest = type_largest((Type)want->type);
	if (isinf(v->magnitude))
		return true;
	if (!oracle_is_float(want->type))
		return got_i == v->i;
	return isinf(tol) || check_near(got, v->f, tol) ||
	       (fabs(v->f) + tol > largest && (!isfinite(got) || fabs(got) > largest / 4));
}

/* Root k, by the interpreter (got: NULL) or a backend. */
static bool oracle_root_agrees(const Case *c, int k, const OracleTensor *want, const void *got,
			       Text *why)
{
	Node *t = c->root[k]->node;
	Type type = (Type)t->type;
	bool real = type_is_float(type), shaped = want->rank == tensor_rank(t);
	double scale = 1, eps = case_precision(c, k);
	for (int d = 0; d < tensor_rank(t); d++)
		shaped = shaped && want->shape[d] == tensor_extent(t, d);
	if (!shaped || want->type != oracle_type(type_name(type))) {
		text_add(why, "%s (root %d) has another type or shape by the oracle\n",
			 root_kind(c, k), k);
		return false;
	}
	for (int64_t i = 0; i < want->size && real; i++)
		if (!isinf(want->at[i].magnitude) && isfinite(want->at[i].f))
			scale = fmax(scale, fabs(want->at[i].f));
	for (int64_t i = 0; i < want->size; i++) {
		const OracleValue *v = &want->at[i];
		double x = 0, tol = eps * (v->magnitude + scale + 1);
		int64_t n = 0;
		if (real)
			x = got ? type_load(type, got, (size_t)i) : c->want[k][i];
		else
			n = got ? type_load_int(type, got, (size_t)i) : ((int64_t *)c->want[k])[i];
		bool lost = !got && isinf(c->magnitude[k][i]);
		if (lost || oracle_element_agrees(want, i, x, n, tol))
			continue;
		text_add(why,
			 "%s (root %d), element %lld: %.12g, by the oracle %.12g within %.2g\n",
			 root_kind(c, k), k, (long long)i, real ? x : (double)n,
			 real ? v->f : (double)v->i, tol);
		return false;
	}
	return true;
}

/* The text over the case's operands by their names; NULL where it says nothing: it takes too long.
 * False: it is refused. */
static bool oracle_of(const Case *c, const char *text, bool suffix, Oracle **o, Text *why)
{
	OracleTensor x[BINDS + PROGRAM_TENSORS];
	OracleValue integer[PROGRAM_TENSORS];
	int n = c->nbind;
	char name[BINDS][40];
	for (int k = 0; k < c->nbind; k++) {
		snprintf(name[k], sizeof name[k], "%s", c->bind[k].tensor->u.s);
		if (!suffix)
			*strrchr(name[k], '_') = 0;
		x[k] = oracle_operand(&c->bind[k], name[k]);
	}
	for (int k = 0; k < c->p->n; k++) {
		const Operand *i = &c->p->tensor[k];
		if (!i->integer || suffix)
			continue;
		integer[k] = (OracleValue){.i = i->low, .exact = true};
		x[n++] = (OracleTensor){
			.name = i->name, .type = oracle_type("i64"), .size = 1, .at = &integer[k]};
	}
	*o = oracle_run(text, case_trains(c->p), n, x, ORACLE_STEPS);
	for (int k = 0; k < c->nbind; k++)
		free(x[k].at);
	const char *error = oracle_error(*o);
	if (error)
		text_add(why, "the oracle: %s\n\t%s\n", error, text);
	if (error || oracle_gave_up(*o)) {
		oracle_free(*o);
		*o = NULL;
	}
	return !error;
}

/* Root k by the text that was written (0) or that is printed (1); NULL: that doesn't say. */
static const OracleTensor *oracle_root(const Case *c, int k, int by)
{
	char name[16];
	if (!by)
		return c->written && k < c->nresult ? oracle_result(c->written, k) : NULL;
	for (int i = 0; i < k; i++) /* the first of equal ones has the name */
		if (c->root[i]->node == c->root[k]->node)
			k = i;
	snprintf(name, sizeof name, "Root%d", k);
	return c->printed ? oracle_tensor(c->printed, name) : NULL;
}

/* Does the library infer the ranges that the notation says? (What greatest and least values don't
 * depend on, and what is folded to a constant, is no part of a domain.) */
static bool oracle_ranges_agree(const Case *c)
{
	for (int k = 0; k < c->nresult; k++) {
		const OracleTensor *t = oracle_result(c->written, k);
		Node *n = c->root[k]->node;
		bool same = t && t->rank == tensor_rank(n);
		for (int d = 0; same && d < t->rank; d++)
			same = t->shape[d] == tensor_extent(n, d);
		bool written = c->p->text.s && strstr(c->p->text.s, "where");
		if (!same || (!written && n->op == OP_COMP && (double)t->points != comp_points(n)))
			return false;
	}
	return true;
}

/* Runs the oracle over the case. */
static bool oracle_open(Case *c, Text *why)
{
	Ir *ir = &c->root[0]->g->ir;
	Node *root[ROOTS];
	const char *name[ROOTS];
	char text[ROOTS][16];
	Text printed = {0};
	bool plain = c->rounded == RICCI_F32 && !c->p->loop.steps;
	if (plain && !oracle_of(c, c->p->text.s, false, &c->written, why))
		return false;
	if (c->written && !oracle_ranges_agree(c)) {
		text_add(why, OTHER_RANGES);
		oracle_free(c->written);
		c->written = NULL;
	}
	for (int k = 0; k < c->nroot; k++) {
		snprintf(text[k], sizeof text[k], "Root%d", k);
		name[k] = text[k];
		root[k] = c->root[k]->node;
	}
	IR_ENTER(ir, false);
	print_program_ranged(&printed, ir, c->nroot, root, name);
	IR_LEAVE(ir);
	bool good = oracle_of(c, printed.s, true, &c->printed, why);
	text_free(&printed);
	return good;
}

/* All roots by the interpreter, or by a backend. */
static bool oracle_agrees(const Case *c, bool interpreter, Text *why)
{
	for (int by = 0; by < 2; by++)
		for (int k = 0; k < c->nroot; k++) {
			const OracleTensor *t = oracle_root(c, k, by);
			if (t &&
			    !oracle_root_agrees(c, k, t, interpreter ? NULL : c->got[k], why)) {
				text_add(why, "of the text as it is %s\n",
					 by ? "printed" : "written");
				return false;
			}
		}
	return true;
}

#endif

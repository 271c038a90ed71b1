/* terms.c - a sum of sums of products, or of choices, as several sums of products.
 *
 * In: `Y[i,j] += A[i,k] * B[k,j] - C[i,k] * D[k,j]`, a part of a complex product, say. Out: two products of matrices, and
 * an equation that adds them up. Factors that all terms have go into each. A term that has not all axes of the result,
 * as each of `Y[i,j,o] += X[i,c] * A[o,c] + Z[j,c] * B[o,c]`, is summed once for all that it repeats along.
 * A choice by place, `Y[i,j,o] += (c < 8 ? X[i,c] : Z[j,c-8]) * A[o,c]`, as of tensors put side by side, is such a sum, too:
 * each term over its own range of c. Where the result has the axis (gradients of A), terms are its parts.
 * Invariants: every term is summed over the same axes; all but one of a sum are products, so that only the order of
 * summation differs: a difference of what was read, which may be exact, stays in front of its product, (A[i,k] - B[k]) *
 * W[k,j]. Of a choice, each point is in one term's range. */
#include "jit/rewrite/products.h"

static bool terms_add(Terms *t, Node *e, bool minus)
{
	if (e->op == OP_ADD || e->op == OP_SUB)
		return terms_add(t, e->src[0], minus) &&
		       terms_add(t, e->src[1], minus != (e->op == OP_SUB));
	if (e->op == OP_NEG)
		return terms_add(t, e->src[0], !minus);
	if (t->n == TERMS_MOST)
		return false;
	t->term[t->n] = e;
	t->minus[t->n++] = minus;
	return true;
}

/* Factors of e that differ between points. */
static int factors_varying(Ir *ir, const Node *c, Node *e)
{
	Factors l = product_split(ir, c, e);
	int n = 0;
	for (int k = 0; k < l.n; k++)
		n += l.f[k].axes != 0;
	return n;
}

/* The outermost choice by place in e; NULL: there is none. */
static Node *choice_by_place(Ir *ir, Node *e)
{
	Node **choice;
	int n = node_collect(ir, e, OP_SELECT, &choice);
	for (int k = n - 1; k >= 0; k--)
		if (!node_reads(ir, choice[k]->src[0]))
			return choice[k];
	return NULL;
}

/* So many more of them at most: *left, which is below 0 where there are more. */
static Node *choices_lifted(Ir *ir, Node *e, int *left)
{
	Node *choice = choice_by_place(ir, e), *branch[2];
	if (!choice || --*left < 0)
		return e;
	for (int k = 0; k < 2; k++)
		branch[k] = choices_lifted(ir, node_replace(ir, e, 1, &choice, &choice->src[1 + k]),
					   left);
	return node_select(ir, choice->src[0], branch[0], branch[1]);
}

Node *choice_outside(Ir *ir, Node *e)
{
	int left = TERMS_MOST;
	Node *choice = choices_lifted(ir, e, &left);
	return left < 0 ? e : choice;
}

/* Adds what the choice by place e is where `cond` holds, but zeros. */
static bool choice_add(Ir *ir, Terms *t, Node *e, Node *cond)
{
	if (e->op == OP_SELECT && !node_reads(ir, e->src[0]))
		return choice_add(ir, t, e->src[1], node_and(ir, cond, e->src[0])) &&
		       choice_add(ir, t, e->src[2],
				  node_and(ir, cond, node1(ir, OP_NOT, e->src[0])));
	if (node_is_value(e, 0))
		return true;
	if (t->n == TERMS_MOST)
		return false;
	t->cond[t->n] = cond;
	t->term[t->n++] = e;
	return true;
}

/* Have the terms the axes that the factor has, beside the others'? */
static bool same_axes(const Node *c, const Factors *l, const Terms *t)
{
	uint32_t around = product_left(c);
	for (int k = 0; k < l->n; k++)
		around |= k == t->at ? 0 : l->f[k].axes;
	for (int k = 0; k < t->n; k++) {
		uint32_t axes = product_axes(c, t->term[k]) | product_axes(c, t->cond[k]);
		if ((around | axes) != (around | l->f[t->at].axes))
			return false;
	}
	return true;
}

/* Is factor f of the product such a sum? */
static bool is_sum_of_terms(const Node *c, const Factors *l, const Factor *f, Terms *t)
{
	int others = 0;
	*t = (Terms){.at = (int)(f - l->f)};
	if (!f->value || f->divisor || f->cond || !terms_add(t, f->value, false) || t->n < 2)
		return false;
	for (int k = 0; k < t->n; k++)
		others += factors_varying(l->ir, c, t->term[k]) < 2;
	return others < 2 && same_axes(c, l, t);
}

/* Is factor f one of several, each of which is chosen for a range of an axis? */
static bool is_choice_of_terms(const Node *c, const Factors *l, const Factor *f, Terms *t)
{
	double points = 0;
	*t = (Terms){.at = (int)(f - l->f)};
	if (!f->value || f->divisor || !node_reads(l->ir, f->value))
		return false;
	Node *choice = choice_outside(l->ir, f->value);
	if (!choice_add(l->ir, t, choice, NULL) || t->n < 2 || !same_axes(c, l, t))
		return false;
	for (int k = 0; k < t->n; k++) {
		Part part = terms_one(c, l, t, k);
		points += comp_points(part.sum) * (comp_points(c) / comp_points(part.whole));
	}
	return points <= comp_points(c);
}

bool terms_find(const Node *c, const Factors *l, Terms *t)
{
	for (int k = 0; k < l->n; k++)
		if (is_sum_of_terms(c, l, &l->f[k], t) || is_choice_of_terms(c, l, &l->f[k], t))
			return true;
	return false;
}

Part terms_one(const Node *c, const Factors *l, const Terms *t, int k)
{
	Ir *ir = l->ir;
	Part part = {0};
	Factors one = factors_copy(l);
	Node *cond = t->cond[k] ? node_and(ir, l->f[t->at].cond, t->cond[k]) : NULL;
	one.f[t->at] = (Factor){.value = t->term[k], .cond = cond};
	part.whole = part.sum = product_sum(ir, c, product_of(&one, one.n, one.f));
	part.without = broadcast_dims(ir, part.sum);
	if (part.without)
		part.whole = part.sum = broadcast_source(ir, part.sum, part.without);
	if (t->cond[k])
		part.sum = repeats_counted(ir, range_cut(ir, part.whole, part.first));
	return part;
}

/* The part's element at the indices of c. */
static Node *part_read(Ir *ir, const Node *c, const Part *part)
{
	Node *placed = range_placed(ir, part->whole, part->first, part->sum);
	Node *read = broadcast_read(ir, placed, part->without, c->src, tensor_rank(c));
	return placed == part->sum ? read
				   : node_replace(ir, comp_body(placed), tensor_rank(placed),
						  placed->src, read->src + 1);
}

Node *terms_joined(Ir *ir, const Node *c, const Terms *t, const Part *part)
{
	Node *sum = NULL;
	for (int k = 0; k < t->n; k++) {
		Node *read = part_read(ir, c, &part[k]);
		sum = sum	    ? node2(ir, t->minus[k] ? OP_SUB : OP_ADD, sum, read)
		      : t->minus[k] ? node1(ir, OP_NEG, read)
				    : read;
	}
	return comp_with(ir, c, RED_NONE, choices_joined(ir, sum));
}

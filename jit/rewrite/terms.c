/* terms.c - a sum of sums of products as several sums of products.
 *
 * In: `Y[i,j] += A[i,k] * B[k,j] - C[i,k] * D[k,j]`, a part of a complex product, say. Out: two products of matrices, and
 * an equation that adds them up. Factors that all terms have go into each. A term that has not all axes of the result,
 * as each of `Y[i,j,o] += X[i,c] * A[o,c] + Z[j,c] * B[o,c]`, is summed once for all that it repeats along.
 * Invariants: every term is summed over the same axes; all but one are products, so that only the order of summation
 * differs: a difference of what was read, which may be exact, stays in front of its product, (A[i,k] - B[k]) * W[k,j].
 */
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

/* Is factor f of the product such a sum? */
static bool is_sum_of_terms(const Node *c, const Factors *l, const Factor *f, Terms *t)
{
	uint32_t around = 0, left = product_left(c);
	int others = 0;
	*t = (Terms){.at = (int)(f - l->f)};
	if (!f->value || f->divisor || f->cond || !terms_add(t, f->value, false) || t->n < 2)
		return false;
	for (int k = 0; k < l->n; k++)
		around |= k == t->at ? 0 : l->f[k].axes;
	for (int k = 0; k < t->n; k++) {
		if ((around | product_axes(c, t->term[k]) | left) != (around | f->axes | left))
			return false;
		others += factors_varying(l->ir, c, t->term[k]) < 2;
	}
	return others < 2;
}

bool terms_find(const Node *c, const Factors *l, Terms *t)
{
	for (int k = 0; k < l->n; k++)
		if (is_sum_of_terms(c, l, &l->f[k], t))
			return true;
	return false;
}

Part terms_one(const Node *c, const Factors *l, const Terms *t, int k)
{
	Ir *ir = l->ir;
	Factors one = factors_copy(l);
	one.f[t->at] = (Factor){.value = t->term[k]};
	Node *sum = product_sum(ir, c, product_of(&one, one.n, one.f));
	uint32_t without = broadcast_dims(ir, sum);
	return (Part){without ? broadcast_source(ir, sum, without) : sum, without};
}

Node *terms_joined(Ir *ir, const Node *c, const Terms *t, const Part *part)
{
	Node *sum = NULL;
	for (int k = 0; k < t->n; k++) {
		Node *read =
			broadcast_read(ir, part[k].sum, part[k].without, c->src, tensor_rank(c));
		sum = sum	    ? node2(ir, t->minus[k] ? OP_SUB : OP_ADD, sum, read)
		      : t->minus[k] ? node1(ir, OP_NEG, read)
				    : read;
	}
	return comp_with(ir, c, RED_NONE, sum);
}

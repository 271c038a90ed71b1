/* tensor.c - what tensors are: sizes, dense equations, the starts of reductions. Makes no nodes. */
#include "core/node/node.h"

#include <math.h>

const char *const reduce_text[RED_COUNT] = {"=", "+=", "*=", "max=", "min="};

int64_t tensor_size(const Node *t)
{
	int64_t n = 1;
	for (int d = 0; d < tensor_rank(t); d++)
		n *= tensor_extent(t, d);
	return n;
}

size_t tensor_bytes(const Node *t)
{
	return (size_t)tensor_size(t) * type_size((Type)t->type);
}

bool tensor_same_shape(const Node *a, const Node *b)
{
	bool same = tensor_rank(a) == tensor_rank(b);
	for (int d = 0; same && d < tensor_rank(a); d++)
		same = tensor_extent(a, d) == tensor_extent(b, d);
	return same;
}

Node *tensor_copied(const Node *t)
{
	const Node *body = t->op == OP_COMP ? comp_body(t) : t;
	if (body->op != OP_READ || comp_reduce(t) != RED_NONE ||
	    !tensor_same_shape(body->src[0], t))
		return NULL;
	for (int d = 0; d < tensor_rank(t); d++)
		if (tensor_extent(t, d) > 1 && body->src[1 + d] != comp_axis(t, d))
			return NULL;
	return body->src[0];
}

Node *tensor_moved(Node *t)
{
	while (t->op == OP_COMP && comp_reduce(t) == RED_NONE && comp_is_dense(t) &&
	       comp_body(t)->op == OP_READ)
		t = comp_body(t)->src[0];
	return t;
}

bool comp_is_dense(const Node *c)
{
	int rank = tensor_rank(c);
	if (comp_naxis(c) < rank)
		return false;
	for (int d = 0; d < rank; d++)
		if (comp_lhs(c, d) != comp_axis(c, d) ||
		    axis_extent(comp_axis(c, d)) != tensor_extent(c, d))
			return false;
	return true;
}

double comp_points(const Node *c)
{
	double n = 1;
	for (int k = 0; k < comp_naxis(c); k++)
		n *= (double)axis_extent(comp_axis(c, k));
	return n;
}

int64_t reduce_identity_int(Reduce r, Type t)
{
	int64_t lo, hi;
	type_range(t, &lo, &hi);
	return r == RED_MUL ? 1 : r == RED_MAX ? lo : r == RED_MIN ? hi : 0;
}

double reduce_identity(Reduce r, Type t)
{
	if (!type_is_float(t))
		return (double)reduce_identity_int(r, t);
	return r == RED_MUL ? 1 : r == RED_MAX ? -INFINITY : r == RED_MIN ? INFINITY : 0;
}

bool tensor_integer(const Node *t, int64_t *v)
{
	if (t->op != OP_COMP || tensor_rank(t) || comp_naxis(t) || comp_reduce(t) != RED_NONE ||
	    comp_body(t)->op != OP_CONST || !type_is_int((Type)t->type))
		return false;
	*v = comp_body(t)->u.i;
	return true;
}

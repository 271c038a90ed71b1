/* signs.c - what a rectifier let through is positive.
 *
 * In: conditions `0 < e` of an equation, and equations `Y = 0 < e ? e : 0` that come before it, where e is of more
 * bytes than Y: the sum of two tensors, say; or of a sum that nothing else reads. Out: `0 < Y`. The gradient of such an
 * equation then reads Y, which the next layer's needs anyway, instead of all that e is made of, and that isn't kept for
 * it. */
#include "jit/rewrite/rewrite.h"

/* How many times the bytes of Y are more; how many elementwise equations behind each other are looked into. */
static const double MORE = 1.5;
enum { DEPTH = 4 };

static bool is_zero(const Node *n)
{
	return n->op == OP_CONST && type_is_float((Type)n->type) && n->u.f == 0;
}

/* The e of 0 < e; NULL: n is none such. */
static Node *above_zero(const Node *n)
{
	return n->op == OP_LT && is_zero(n->src[0]) ? n->src[1] : NULL;
}

/* The e of an equation c, `0 < e ? e : 0`; NULL: it is none such. */
static Node *rectified(const Node *c)
{
	const Node *body = comp_body(c);
	if (comp_reduce(c) != RED_NONE || !comp_is_dense(c) || body->op != OP_SELECT ||
	    !is_zero(body->src[2]))
		return NULL;
	Node *e = above_zero(body->src[0]);
	return e && e == body->src[1] && e->type == c->type ? e : NULL;
}

/* Bytes of the tensors of y's size, at most, that e is made of by elementwise equations; no more than `most`. */
static double source_bytes(Ir *ir, const Node *y, Node *e, double most, int depth)
{
	Node **read;
	int n = node_collect(ir, e, OP_READ, &read);
	double all = 0, own = (double)tensor_bytes(y);
	for (int k = 0; k < n && all < most; k++) {
		Node *t = read[k]->src[0];
		bool seen = false;
		for (int i = 0; i < k; i++)
			seen |= read[i]->src[0] == t;
		bool inside =
			depth && t->op == OP_COMP && comp_reduce(t) == RED_NONE && !rectified(t);
		double bytes = (double)tensor_bytes(t);
		if (!seen)
			all += inside	     ? source_bytes(ir, y, comp_body(t), most, depth - 1)
			       : bytes < own ? bytes
					     : own;
	}
	return all;
}

/* Does e read a result of y's size, by elementwise equations perhaps, that one other equation reads and no more? That
 * one, with the condition 0 < e, needs it to be kept. others: that read what is between. */
static bool keeps_source(Ir *ir, const Node *y, Node *e, const int *readers, int others, int depth)
{
	Node **read;
	int n = node_collect(ir, e, OP_READ, &read);
	bool keeps = false;
	for (int k = 0; k < n && !keeps; k++) {
		Node *t = read[k]->src[0];
		int all = others + readers[t->id] - 1;
		if (t->op != OP_COMP || tensor_bytes(t) < tensor_bytes(y) || all > 1)
			continue;
		keeps = comp_reduce(t) ? all == 1
				       : depth && keeps_source(ir, y, comp_body(t), readers, all,
							       depth - 1);
	}
	return keeps;
}

bool rectifier_saves(Ir *ir, const Node *c, const Node *was, const int *readers)
{
	Node *e = rectified(c);
	double enough = MORE * (double)tensor_bytes(c);
	return e && (source_bytes(ir, c, e, enough, DEPTH) >= enough ||
		     keeps_source(ir, was, comp_body(was), readers, 0, DEPTH));
}

/* The element of y whose e is f; NULL: none. */
static Node *element_of(Ir *ir, Node *y, Node *f)
{
	Node *e = rectified(y), **own, **read;
	int nown = node_collect(ir, e, OP_READ, &own), n = node_collect(ir, f, OP_READ, &read);
	int rank = tensor_rank(y);
	for (int k = 0; k < nown; k++) {
		bool plain = tensor_same_shape(own[k]->src[0], y);
		for (int d = 0; d < rank && plain; d++)
			plain = own[k]->src[1 + d] == comp_axis(y, d);
		for (int i = 0; i < n && plain; i++)
			if (read[i]->src[0] == own[k]->src[0] &&
			    node_replace(ir, e, rank, y->src, read[i]->src + 1) == f)
				return node_read(ir, y, read[i]->src + 1);
	}
	return NULL;
}

Node *signs_read(Ir *ir, Node *body, int n, Node *const *rectifier)
{
	Node **less;
	int all = n ? node_collect(ir, body, OP_LT, &less) : 0, kept = 0;
	Node **to = arena_alloc(&ir->arena, ((size_t)all + 1) * sizeof *to);
	for (int k = 0; k < all; k++) {
		Node *f = above_zero(less[k]), *element = NULL;
		for (int i = 0; f && i < n && !element; i++)
			element = element_of(ir, rectifier[i], f);
		if (!element)
			continue;
		less[kept] = less[k];
		to[kept++] = node2(ir, OP_LT, less[k]->src[0], element);
	}
	return kept ? node_replace(ir, body, kept, less, to) : body;
}

/* shape.h - what the equations of a gradient must not be: buffers of a constant, masks and one-hot
 * tensors that are stored, copies, and functions that the forward pass has stored already. */
#ifndef SHAPE_H
#define SHAPE_H

#include "tests/autodiff/harness.h"

static bool is_copy(const Node *c)
{
	const Node *body = comp_body(c);
	bool copy = comp_reduce(c) == RED_NONE && body->op == OP_READ &&
		    tensor_rank(body->src[0]) == tensor_rank(c);
	for (int d = 0; copy && d < tensor_rank(c); d++)
		copy = body->src[1 + d] == comp_axis(c, d) &&
		       tensor_extent(body->src[0], d) == tensor_extent(c, d);
	return copy;
}

/* Does e have one of a few values, whatever the data? */
static bool is_mask(const Node *e)
{
	if (e->op == OP_SELECT)
		return is_mask(e->src[1]) && is_mask(e->src[2]);
	if (e->op == OP_CAST)
		return e->src[0]->type == RICCI_BOOL || is_mask(e->src[0]);
	return e->op == OP_CONST || e->type == RICCI_BOOL;
}

typedef struct Functions {
	Node *at[64];
	int n;
} Functions;

static void see_function(void *user, Node *n)
{
	Functions *f = user;
	if (op_info[n->op].form == FORM_CALL && type_is_float(n->type) && f->n < COUNT(f->at))
		f->at[f->n++] = n;
}

/* forward: the equations that y needs, in order. */
static void check_shape(Bench *b, const char *name, int n, Node *const *grads, int nforward,
			Node *const *forward)
{
	Node **order;
	Functions stored = {0};
	int norder = graph_order(&b->ir, n, grads, &order);
	for (int k = 0; k < nforward; k++)
		if (forward[k]->op == OP_COMP && comp_reduce(forward[k]) == RED_NONE)
			see_function(&stored, comp_body(forward[k]));
	for (int k = 0; k < norder; k++) {
		Node *c = order[k];
		bool known = c->op != OP_COMP, root = false;
		for (int j = 0; j < nforward && !known; j++)
			known = forward[j] == c;
		for (int j = 0; j < n; j++)
			root |= grads[j] == c;
		if (known)
			continue;
		bool stores = comp_reduce(c) == RED_NONE;
		CHECK_REPORT(root || !stores || !is_mask(comp_body(c)),
			     "%s: a tensor of constants or a mask is stored", name);
		CHECK_REPORT(root || !is_copy(c), "%s: a copy is stored", name);
		Functions again = {0};
		node_walk(&b->ir, comp_body(c), see_function, &again);
		for (int i = 0; i < again.n; i++)
			for (int j = 0; j < stored.n; j++)
				CHECK_REPORT(again.at[i] != stored.at[j],
					     "%s: %s is computed again, though the forward pass "
					     "stores it",
					     name, op_info[again.at[i]->op].text);
	}
}

#endif

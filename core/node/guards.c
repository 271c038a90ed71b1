/* guards.c - the conditions of a reduction: which factors of its body are neutral outside them, and
 * integer comparisons as what must not be negative.
 */
#include "core/node/internal.h"

typedef struct Guards {
	Ir *ir;
	Reduce red;
	int room, *n;
	Node **guard;
	NodeMap split; /* what guard_split made of a factor: one that stands twice is split once */
} Guards;

static Node *guard_split(Guards *g, Node *body);

static Node *guard_split_new(Guards *g, Node *body)
{
	Reduce red = g->red;
	int *n = g->n;
	if (body->op == OP_SELECT && body->src[2]->op == OP_CONST) {
		Node *e = body->src[2];
		bool neutral = red == RED_ADD ? node_is_value(e, 0)
			       : type_is_float(e->type)
				       ? node_is_value(e, reduce_identity(red, e->type))
				       : e->u.i == reduce_identity_int(red, e->type);
		Node *stack[64];
		int depth = 0, first = *n;
		if (!neutral)
			return body;
		stack[depth++] = body->src[0];
		while (depth) {
			Node *c = stack[--depth];
			if (c->op == OP_AND && depth + 2 <= COUNT(stack)) {
				stack[depth++] = c->src[1];
				stack[depth++] = c->src[0];
			} else if (*n < g->room) {
				g->guard[(*n)++] = c;
			} else {
				*n = first;
				return body;
			}
		}
		return guard_split(g, body->src[1]);
	}
	if (body->op == OP_MUL && red == RED_ADD && type_is_float(body->type)) {
		Node *a = guard_split(g, body->src[0]), *b = guard_split(g, body->src[1]);
		return a == body->src[0] && b == body->src[1] ? body : node2(g->ir, OP_MUL, a, b);
	}
	return body;
}

static Node *guard_split(Guards *g, Node *body)
{
	Node *known = node_map_get(&g->split, body);
	if (!known) {
		known = guard_split_new(g, body);
		node_map_put(g->ir, &g->split, body, known);
	}
	return known;
}

Node *reduce_guards(Ir *ir, Reduce red, Node *body, int room, int *nguard, Node **guard)
{
	*nguard = 0;
	Guards g = {.ir = ir, .red = red, .room = room, .n = nguard, .guard = guard};
	return red == RED_NONE ? body : guard_split(&g, body);
}

Node *condition_slack(Ir *ir, const Node *cond)
{
	if ((cond->op != OP_LT && cond->op != OP_LE) || cond->src[0]->type != RICCI_I64)
		return NULL;
	Node *e = node_sub(ir, cond->src[1], cond->src[0]);
	return cond->op == OP_LT ? node_sub(ir, e, node_int(ir, 1)) : e;
}

/* scan_body.c - what scan.c and distribute.c ask of tensors of a loop's body: is it worth it to compute
 * one outside, for all steps, and can that be. Input: a body that is cleaned up. Nothing is changed.
 * And the walk over a graph's loops that each of these passes makes (scan_shrink.c, too). */
#include "jit/rewrite/rewrite.h"

static const double heavy = 16; /* terms of a sum that is worth it */
static const double stack_most =
	64 << 20; /* bytes of a new stack, where the loop has no larger ones */

/* Has it room for an axis of steps? */
static bool has_room(const Node *c)
{
	return c->op == OP_COMP && comp_naxis(c) < COMP_MAX_AXES && tensor_rank(c) < RICCI_MAX_RANK;
}

bool body_is_heavy(const Node *c, double steps)
{
	return comp_points(c) * steps >= heavy * (double)tensor_size(c);
}

bool body_is_sum(const Node *c)
{
	return c->op == OP_COMP && comp_reduce(c) != RED_NONE && body_is_heavy(c, 1);
}

bool body_may_leave(Ir *ir, const Node *t)
{
	return has_room(t) && !node_any(ir, comp_body(t), node_draws);
}

static bool is_rounding(const Node *n)
{
	return n->op == OP_CAST && n->type == RICCI_BF16;
}

bool body_rounds(Ir *ir, const Node *c)
{
	return node_any(ir, comp_body(c), is_rounding);
}

double body_stack_limit(const Scan *s, Node *const *operand, int nresult, Node *const *result)
{
	double most = stack_most;
	for (int k = 0; k < nresult + s->nslice; k++) {
		const Node *t = k < nresult ? result[k] : operand[k - nresult];
		most = (double)tensor_bytes(t) > most ? (double)tensor_bytes(t) : most;
	}
	return most;
}

void body_find_fixed(Ir *ir, const Scan *s, int n, Node *const *order, bool *fixed)
{
	for (int k = 0; k < n; k++) {
		Node *t = order[k], **reads;
		int m = comp_reads(ir, t, &reads);
		bool yes = t->op == OP_INPUT || body_may_leave(ir, t);
		for (int i = s->nslice; i < s->nslice + s->nstate; i++)
			yes = yes && t != s->var[i];
		for (int i = 0; i < m; i++)
			yes = yes && fixed[reads[i]->id];
		fixed[t->id] = yes;
	}
}

ScanRun scan_run(Ir *ir, int n, Node *const *order, int at, NodeMap *map)
{
	Arena *a = &ir->arena;
	Node *const *given = scan_operands(order[at]);
	ScanRun r = {.scan = scan_of(order[at])};
	int noperand = scan_noperand(r.scan);
	r.result = arena_alloc(a, sizeof *r.result * ((size_t)n + 1));
	r.root = arena_alloc(a, sizeof *r.root * (size_t)(r.scan->nstate + n + 1));
	r.operand = arena_alloc(a, sizeof *r.operand * ((size_t)noperand + 1));
	for (int k = 0; k < noperand; k++)
		r.operand[k] = node_map_get(map, given[k]);
	for (int k = 0; k < r.scan->nstate; k++)
		r.root[r.nroot++] = r.scan->next[k];
	for (int k = at; k < n; k++) {
		if (order[k]->op != OP_SCAN || !scan_same_run(order[k], order[at]))
			continue;
		r.result[r.nresult++] = order[k];
		if (scan_is_stack(order[k]->u.result))
			r.root[r.nroot++] = order[k]->u.result->value;
	}
	return r;
}

bool scans_each(Ir *ir, int nroot, Node **roots, ScanPass *pass)
{
	Node **order;
	NodeMap map = {0};
	bool any = false;
	int n = graph_order(ir, nroot, roots, &order), loops = 0;
	for (int k = 0; k < n; k++)
		loops += order[k]->op == OP_SCAN;
	for (int k = 0; k < n && loops; k++) {
		if (node_map_get(&map, order[k]))
			continue;
		if (order[k]->op == OP_SCAN)
			any |= pass(ir, n, order, k, &map);
		else
			node_map_put(ir, &map, order[k], tensor_over(ir, order[k], &map));
	}
	for (int k = 0; k < nroot && any; k++)
		roots[k] = node_map_get(&map, roots[k]);
	return any;
}

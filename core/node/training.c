/* training.c - a graph as training sessions or others run it. Input: roots whose equations may hold
 * TRAINING. Output: the same with a number in its place, folded, so that what only the other kind of
 * session computes is gone. Invariant: what does not depend on TRAINING stays the same node. */
#include "core/node/internal.h"
#include <string.h>

typedef struct Setting {
	Ir *ir;
	Node *number; /* stands for TRAINING */
	NodeMap now;  /* tensors to what they become */
	Node **order; /* of the graph at hand */
	int n;
} Setting;

static void set_roots(Ir *ir, int nroot, Node **roots, Node *number);

static Node *comp_now(Setting *s, Node *c)
{
	Ir *ir = s->ir;
	Node **reads;
	int n = comp_reads(ir, c, &reads);
	Node **from = arena_alloc(&ir->arena, sizeof *from * ((size_t)n + 1));
	Node **to = arena_alloc(&ir->arena, sizeof *to * ((size_t)n + 1));
	bool changed = node_has(comp_body(c), ir->training);

	for (int d = 0; d < tensor_rank(c); d++)
		changed |= node_has(comp_lhs(c, d), ir->training);
	for (int k = 0; k < n; k++) {
		from[k] = reads[k];
		to[k] = node_map_get(&s->now, reads[k]);
		changed |= to[k] != from[k];
	}
	from[n] = ir->training;
	to[n] = s->number;
	return changed ? comp_replaced(ir, c, n + 1, from, to) : c;
}

/* Puts what all results of c's run become: one loop again. */
static void scan_now(Setting *s, Node *c)
{
	Ir *ir = s->ir;
	const Scan *loop = scan_of(c);
	int noperand = scan_noperand(loop), nroot = loop->nstate, nresult = 0;
	Node **operand = arena_alloc(&ir->arena, sizeof *operand * ((size_t)noperand + 1));
	size_t room = sizeof *operand * (size_t)(nroot + s->n + 1);
	Node **root = arena_alloc(&ir->arena, room), **old = arena_alloc(&ir->arena, room);
	Node **result = arena_alloc(&ir->arena, room);
	bool changed = false;

	for (int k = 0; k < noperand; k++) {
		operand[k] = node_map_get(&s->now, scan_operands(c)[k]);
		changed |= operand[k] != scan_operands(c)[k];
	}
	for (int k = 0; k < loop->nstate; k++)
		root[k] = loop->next[k];
	for (int k = 0; k < s->n; k++)
		if (s->order[k]->op == OP_SCAN && scan_same_run(s->order[k], c)) {
			result[nresult++] = s->order[k];
			if (scan_is_stack(s->order[k]->u.result))
				root[nroot++] = s->order[k]->u.result->value;
		}
	memcpy(old, root, room);
	set_roots(ir, nroot, root, s->number);
	for (int k = 0; k < nroot; k++)
		changed |= root[k] != old[k];
	Scan spec = *loop;
	spec.next = root;
	ScanCall call = {0};
	if (changed)
		call = scan_close(ir, &spec, operand, nroot - loop->nstate, root + loop->nstate,
				  true);
	for (int k = 0, stacked = 0; k < nresult; k++) {
		const ScanResult *r = result[k]->u.result;
		Node *now = result[k];
		if (changed && r->final >= 0)
			now = scan_final(ir, &call, r->final);
		else if (changed && r->ends)
			now = scan_ends(ir, &call, scan_ends_of(r));
		else if (changed)
			now = scan_stack(ir, &call, call.result[stacked++]);
		node_map_put(ir, &s->now, result[k], now);
	}
}

static void set_roots(Ir *ir, int nroot, Node **roots, Node *number)
{
	Setting s = {.ir = ir, .number = number};

	s.n = graph_order(ir, nroot, roots, &s.order);
	for (int k = 0; k < s.n; k++) {
		Node *t = s.order[k];
		if (node_map_get(&s.now, t))
			continue;
		if (t->op == OP_SCAN)
			scan_now(&s, t);
		else
			node_map_put(ir, &s.now, t, t->op == OP_COMP ? comp_now(&s, t) : t);
	}
	for (int k = 0; k < nroot; k++)
		roots[k] = node_map_get(&s.now, roots[k]);
}

void graph_set_training(Ir *ir, int nroot, Node **roots, bool train)
{
	if (ir->training)
		set_roots(ir, nroot, roots, node_int(ir, train));
}

/* stacks.c - one stack where a loop has two of the same values.
 *
 * In: roots of a graph, whose loops are what they are to be (scan.c). Out: roots of the
 * same values. What a state is before a step it was behind the step before, so a loop that stacks
 * both, one as its output and one for its gradient, stacks what lies between the steps, from the
 * initial value to the last; both are equations that read one row or the next. They cost nothing
 * where they are read: fused into an equation that reads them, else views of that memory. But a
 * root is to be memory of its own, so a state of which one is a root keeps two.
 */
#include "jit/rewrite/rewrite.h"

#include <string.h>

typedef struct Stacks {
	Ir *ir;
	int n;
	Node **order;
	bool *asked; /* of order[k]: a root */
} Stacks;

/* Is step t of these one of the loop's length? */
static Node *is_within(Ir *ir, Node *t, Node *length)
{
	return node2(ir, OP_LT, t, node_cast(ir, RICCI_I64, node_read(ir, length, NULL)));
}

/* The place in the graph of this run's stack of value, or that with the last value; -1: none. */
static int stack_at(const Stacks *s, const Node *run, const Node *value, bool ends)
{
	for (int k = 0; k < s->n; k++) {
		const Node *t = s->order[k];
		if (t->op == OP_SCAN && t->u.result->final < 0 && t->u.result->value == value &&
		    t->u.result->ends == ends && scan_same_run(t, run))
			return k;
	}
	return -1;
}

static bool has_stack(const Stacks *s, const Node *run, const Node *value)
{
	int k = stack_at(s, run, value, false);
	return k >= 0 && !s->asked[k];
}

/* The state whose values before the steps and behind them are stacked, one of them as c, or already
 * in one stack beside c; -1: none. */
static int state_doubled(const Stacks *s, const Node *c)
{
	const Scan *scan = scan_of(c);
	const Node *value = c->u.result->value;
	bool stack = scan_is_stack(c->u.result);
	for (int k = 0; k < scan->nstate && stack; k++) {
		const Node *var = scan->var[scan->nslice + k], *next = scan->next[k];
		if (value != var && value != next)
			continue;
		if (stack_at(s, c, var, true) >= 0 ||
		    (var != next && has_stack(s, c, var) && has_stack(s, c, next)))
			return k;
	}
	return -1;
}

/* The stack c, of what state k is before the steps or behind them, among the rows of one that has
 * both: from the first one on or from the second. */
static Node *rows_of(Ir *ir, const Node *c, int k)
{
	const Scan *scan = scan_of(c);
	ScanCall call = {(Scan *)scan, (Node **)scan_operands(c), NULL};
	bool before = c->u.result->value == scan->var[scan->nslice + k];
	bool second = before == scan->backwards;
	Node *axes[RICCI_MAX_RANK], *index[RICCI_MAX_RANK];
	int rank = tensor_rank(c);
	tensor_axes(ir, c, axes);
	memcpy(index, axes, sizeof index);
	index[0] = node_add(ir, axes[0], node_int(ir, second));
	Node *body = node_read(ir, scan_ends(ir, &call, k), index);
	if (!second && scan->has_length) /* row `length` is none of c's */
		body = node_select(ir, is_within(ir, axes[0], scan_operands(c)[0]), body,
				   node_const(ir, (Type)body->type, 0));
	return comp_dense(ir, RED_NONE, rank, rank, axes, body);
}

/* t as a slice of a loop of this length, which doesn't read the rows beyond: it need not ask. */
static Node *slice_plain(Ir *ir, Node *t, Node *length)
{
	int rank = tensor_rank(t);
	if (t->op != OP_COMP || comp_reduce(t) != RED_NONE)
		return t;
	Node *body = comp_body(t);
	if (body->op != OP_SELECT || body->src[0] != is_within(ir, comp_axis(t, 0), length) ||
	    body->src[1]->op != OP_READ || !read_stays(body->src[1]))
		return t;
	return comp_dense(ir, RED_NONE, rank, rank, t->src, body->src[1]);
}

static Node *scan_plain(Ir *ir, Node *c)
{
	const Scan *scan = scan_of(c);
	int n = scan_noperand(scan);
	Node **operand = arena_alloc(&ir->arena, ((size_t)n + 1) * sizeof *operand);
	for (int k = 0; k < n; k++) {
		bool slice = scan->has_length && k > 0 && k <= scan->nslice;
		Node *t = scan_operands(c)[k];
		operand[k] = slice ? slice_plain(ir, t, scan_operands(c)[0]) : t;
	}
	return scan_over(ir, c, operand);
}

static Node *tensor_now(const Stacks *s, Node *t, NodeMap *now)
{
	Node *c = tensor_over(s->ir, t, now);
	if (t->op != OP_SCAN)
		return c;
	int state = state_doubled(s, t);
	c = scan_plain(s->ir, c);
	return state < 0 ? c : rows_of(s->ir, c, state);
}

void rewrite_stacks(Ir *ir, int nroot, Node **roots)
{
	Stacks s = {.ir = ir};
	NodeMap now = {0};
	s.n = graph_order(ir, nroot, roots, &s.order);
	s.asked = arena_alloc(&ir->arena, (size_t)s.n + 1);
	int loops = 0;
	for (int k = 0; k < s.n; k++) {
		loops += s.order[k]->op == OP_SCAN;
		for (int i = 0; i < nroot && s.order[k]->op == OP_SCAN; i++)
			s.asked[k] |= s.order[k] == roots[i];
	}
	for (int k = 0; k < s.n && loops; k++)
		node_map_put(ir, &now, s.order[k], tensor_now(&s, s.order[k], &now));
	for (int k = 0; k < nroot && loops; k++)
		roots[k] = node_map_get(&now, roots[k]);
}

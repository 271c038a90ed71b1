/* distribute.c - a loop becomes two loops, where a sum over all steps comes of it (loop fission).
 *
 * In: roots of a graph whose loops' bodies are cleaned up, and from which the sums that can leave
 * have left (scan.c). Out: roots of the same types, shapes and values.
 * A sum depends on itself where what it reads depends on a state whose next value depends on it.
 * One that doesn't need not wait for the steps: the first loop computes all that doesn't depend on
 * it, and stacks what the second one reads, which computes the rest. In that one the sum is over
 * slices and constants, so scan.c takes it out, and all steps together read its constants once.
 * So it goes where those are more than the new stacks, and never in a loop that is to save memory
 * (recompute). Results of one run may become results of two. */
#include "jit/rewrite/rewrite.h"

#include <string.h>

typedef struct Fission {
	Ir *ir;
	const Scan *scan;
	Node **operand; /* the length too */
	int nresult;
	Node **result; /* SCAN nodes: those of the run that the graph needs */
	int n;
	Node **order; /* of the body, variables too */
	/* by id of the body's tensors: */
	bool *fixed;  /* depends on no state, and draws no random numbers */
	bool *behind; /* depends on the sum */
	bool *first;  /* the first loop needs it */
	bool *needed; /* by the second loop */
	bool *stack;  /* the second loop reads what the first one stacks of it */
	double bytes; /* a step, of the new stacks */
} Fission;

static Node *state_var(const Fission *f, int k)
{
	return f->scan->var[f->scan->nslice + k];
}

/* ---- which sum ---- */

/* What depends on c, from step to step too; does c itself? */
static bool find_behind(Fission *f, const Node *c)
{
	bool again = false;
	memset(f->behind, 0, f->ir->count);
	for (bool more = true; more;) {
		more = false;
		for (int k = 0; k < f->n; k++) {
			Node *t = f->order[k], **reads;
			int m = comp_reads(f->ir, t, &reads);
			bool *b = &f->behind[t->id], before = *b;
			for (int i = 0; i < m; i++) {
				*b |= f->behind[reads[i]->id];
				again |= t == c && f->behind[reads[i]->id];
			}
			*b |= t == c;
			more |= *b != before;
		}
		for (int k = 0; k < f->scan->nstate; k++) {
			bool *b = &f->behind[state_var(f, k)->id], before = *b;
			*b |= f->behind[f->scan->next[k]->id];
			more |= *b != before;
		}
	}
	return again;
}

/* The tensor of the body that result k is: a stack's, or a state's next value. */
static Node *result_value(const Fission *f, int k)
{
	return f->result[k]->u.result->value;
}

/* Is it one of the second loop's? */
static bool result_behind(const Fission *f, int k)
{
	const ScanResult *r = f->result[k]->u.result;
	int state = scan_ends_of(r) >= 0 ? scan_ends_of(r) : r->final;
	return f->behind[state >= 0 ? state_var(f, state)->id : r->value->id];
}

/* ---- what is whose ---- */

/* The roots of the first loop's body, or of the second's: next values of states, stacks. */
static int loop_roots(const Fission *f, bool second, int *nstate, Node **root)
{
	int n = 0;
	for (int k = 0; k < f->scan->nstate; k++)
		if (f->behind[state_var(f, k)->id] == second)
			root[n++] = f->scan->next[k];
	*nstate = n;
	for (int k = 0; k < f->nresult; k++)
		if (scan_is_stack(f->result[k]->u.result) && result_behind(f, k) == second)
			root[n++] = result_value(f, k);
	return n;
}

static Node **new_roots(const Fission *f)
{
	return arena_alloc(&f->ir->arena,
			   sizeof(Node *) * ((size_t)(f->scan->nstate + f->nresult + f->n) + 1));
}

/* Does the second loop compute t, which doesn't depend on the sum, itself? */
static bool moves(const Fission *f, const Node *t)
{
	bool cheap = f->fixed[t->id] && t->op == OP_COMP && comp_reduce(t) == RED_NONE;
	return body_may_leave(f->ir, t) && (cheap || !f->first[t->id]);
}

static bool is_stacked(const Fission *f, const Node *t)
{
	for (int k = 0; k < f->nresult; k++)
		if (scan_is_stack(f->result[k]->u.result) && result_value(f, k) == t)
			return true;
	return false;
}

/* What the second loop needs, from its roots down, and of that what is to be stacked. */
static void find_stacks(Fission *f)
{
	for (int k = f->n - 1; k >= 0; k--) {
		Node *t = f->order[k], **reads;
		bool variable = t->op == OP_INPUT && f->fixed[t->id];
		if (!f->needed[t->id] || variable)
			continue;
		if (!f->behind[t->id] && !moves(f, t)) {
			f->stack[t->id] = true;
			f->bytes += is_stacked(f, t) ? 0 : (double)tensor_bytes(t);
			continue;
		}
		for (int i = comp_reads(f->ir, t, &reads) - 1; i >= 0; i--)
			f->needed[reads[i]->id] = true;
	}
}

static void find_parts(Fission *f)
{
	Node **root = new_roots(f), **order;
	int nstate, n = loop_roots(f, false, &nstate, root);
	memset(f->first, 0, f->ir->count);
	memset(f->needed, 0, f->ir->count);
	memset(f->stack, 0, f->ir->count);
	f->bytes = 0;
	n = graph_order(f->ir, n, root, &order);
	for (int k = 0; k < n; k++)
		f->first[order[k]->id] = true;
	n = loop_roots(f, true, &nstate, root);
	for (int k = 0; k < n; k++)
		f->needed[root[k]->id] = true;
	find_stacks(f);
}

/* ---- is it worth it ---- */

/* What c reads of the loop's constants: bytes. */
static double constant_bytes(const Fission *f, const Node *c)
{
	const Scan *s = f->scan;
	Node **reads;
	double bytes = 0;
	int m = comp_reads(f->ir, c, &reads);
	for (int i = 0; i < m; i++)
		for (int k = s->nslice + s->nstate; k < scan_nvar(s); k++)
			bytes += s->var[k] == reads[i] ? (double)tensor_bytes(reads[i]) : 0;
	return bytes;
}

static bool is_worth_it(const Fission *f, const Node *c)
{
	double bytes = f->bytes + (double)tensor_bytes(c);
	double most =
		body_stack_limit(f->scan, f->operand + f->scan->has_length, f->nresult, f->result);
	return bytes <= constant_bytes(f, c) && bytes * (double)f->scan->bound <= most;
}

/* Finds a sum to go by. */
static bool find_sum(Fission *f)
{
	for (int k = 0; k < f->n; k++) {
		Node *c = f->order[k];
		if (f->fixed[c->id] || !body_is_sum(c) || !body_may_leave(f->ir, c) ||
		    constant_bytes(f, c) == 0 || find_behind(f, c))
			continue;
		find_parts(f);
		if (is_worth_it(f, c))
			return true;
	}
	return false;
}

/* ---- two loops ---- */

/* One of them: variables, roots, and what it became. */
typedef struct Half {
	Scan spec;
	Node **operand, **given; /* given: behind the length */
	Node **root, **old;	 /* states' next values, stacks; of the old body */
	int nroot;
	ScanCall call;
} Half;

static void half_variable(Half *h, int *count, Node *var, Node *operand)
{
	int k = scan_nvar(&h->spec);
	h->spec.var[k] = var;
	h->given[k] = operand;
	++*count;
}

static void half_open(const Fission *f, Half *h, bool second)
{
	Arena *a = &f->ir->arena;
	size_t room = sizeof(Node *) * ((size_t)(scan_nvar(f->scan) + f->n) + 2);
	*h = (Half){.spec = *f->scan, .operand = arena_alloc(a, room), .old = new_roots(f)};
	h->spec.nslice = h->spec.nconst = 0;
	h->spec.var = arena_alloc(a, room);
	h->given = h->operand + f->scan->has_length;
	h->operand[0] = f->operand[0];
	h->nroot = loop_roots(f, second, &h->spec.nstate, h->old);
	h->spec.nstate = 0;
}

/* The states of one loop and the constants, behind its slices. */
static void half_close(const Fission *f, Half *h, bool second)
{
	const Scan *s = f->scan;
	Node *const *given = f->operand + s->has_length;
	for (int k = s->nslice; k < s->nslice + s->nstate; k++)
		if (f->behind[s->var[k]->id] == second)
			half_variable(h, &h->spec.nstate, s->var[k], given[k]);
	for (int k = s->nslice + s->nstate; k < scan_nvar(s); k++)
		half_variable(h, &h->spec.nconst, s->var[k], given[k]);
	h->spec.next = h->root;
	int nstate = h->spec.nstate;
	h->call =
		scan_close(f->ir, &h->spec, h->operand, h->nroot - nstate, h->root + nstate, true);
}

static void first_make(const Fission *f, Half *h)
{
	const Scan *s = f->scan;
	half_open(f, h, false);
	for (int k = 0; k < s->nslice; k++)
		half_variable(h, &h->spec.nslice, s->var[k], f->operand[s->has_length + k]);
	for (int k = 0; k < f->n; k++)
		if (f->stack[f->order[k]->id] && !is_stacked(f, f->order[k]))
			h->old[h->nroot++] = f->order[k];
	h->root = h->old;
	half_close(f, h, false);
}

/* The stack of a tensor of the old body. */
static Node *half_stack(const Fission *f, const Half *h, const Node *value)
{
	for (int k = h->spec.nstate;; k++)
		if (h->old[k] == value)
			return scan_stack(f->ir, &h->call, h->call.result[k - h->spec.nstate]);
}

static void second_make(const Fission *f, const Half *first, Half *h)
{
	const Scan *s = f->scan;
	NodeMap now = {0};
	half_open(f, h, true);
	for (int k = 0; k < s->nslice; k++)
		half_variable(h, &h->spec.nslice, s->var[k], f->operand[s->has_length + k]);
	for (int k = 0; k < f->n; k++) {
		Node *t = f->order[k], *var;
		int64_t shape[RICCI_MAX_RANK];
		if (!f->stack[t->id])
			continue;
		for (int d = 0; d < tensor_rank(t); d++)
			shape[d] = tensor_extent(t, d);
		var = node_input(f->ir, arena_printf(&f->ir->arena, "%%first%d", k), (Type)t->type,
				 tensor_rank(t), shape);
		node_map_put(f->ir, &now, t, var);
		half_variable(h, &h->spec.nslice, var, half_stack(f, first, t));
	}
	graph_replace(f->ir, h->nroot, h->old, &now);
	h->root = new_roots(f);
	for (int k = 0; k < h->nroot; k++)
		h->root[k] = node_map_get(&now, h->old[k]);
	half_close(f, h, true);
}

/* The number of a state in its loop. */
static int half_state(const Fission *f, int state)
{
	int number = 0;
	for (int k = 0; k < state; k++)
		number += f->behind[state_var(f, k)->id] == f->behind[state_var(f, state)->id];
	return number;
}

static Node *result_now(const Fission *f, const Half *h, int k)
{
	const ScanResult *r = f->result[k]->u.result;
	int ends = scan_ends_of(r);
	if (ends >= 0)
		return scan_ends(f->ir, &h->call, half_state(f, ends));
	if (r->final >= 0)
		return scan_final(f->ir, &h->call, half_state(f, r->final));
	return half_stack(f, h, r->value);
}

/* ---- the graph ---- */

static void fission_init(Fission *f, int n, Node *const *order, int at, NodeMap *map)
{
	Arena *a = &f->ir->arena;
	ScanRun r = scan_run(f->ir, n, order, at, map);
	f->scan = r.scan;
	f->operand = r.operand;
	f->result = r.result;
	f->nresult = r.nresult;
	f->n = graph_order(f->ir, r.nroot, r.root, &f->order);
	for (int k = 0; k < 5; k++)
		*(bool **[]){&f->fixed, &f->behind, &f->first, &f->needed, &f->stack}[k] =
			arena_alloc(a, f->ir->count);
}

static bool fission_find(Fission *f)
{
	if (f->scan->recompute || f->scan->bound < 2)
		return false;
	body_find_fixed(f->ir, f->scan, f->n, f->order, f->fixed);
	return find_sum(f);
}

/* Puts the results of the run of order[at] into map, which has its operands; are they of two loops
 * now? */
static bool fission_run(Ir *ir, int n, Node *const *order, int at, NodeMap *map)
{
	Fission f = {.ir = ir};
	Half first, second;
	fission_init(&f, n, order, at, map);
	bool two = fission_find(&f);
	if (two) {
		first_make(&f, &first);
		second_make(&f, &first, &second);
	}
	for (int k = 0; k < f.nresult; k++) {
		Node *now = two ? result_now(&f, result_behind(&f, k) ? &second : &first, k)
				: tensor_over(ir, f.result[k], map);
		node_map_put(ir, map, f.result[k], now);
	}
	return two;
}

bool scans_distribute(Ir *ir, int nroot, Node **roots)
{
	return scans_each(ir, nroot, roots, fission_run);
}

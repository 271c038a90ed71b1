/* reverse.c - reverse mode over a graph of equations.
 *
 * Input: y, a seed, the tensors to differentiate by. Output: their gradients, as equations. Tensors
 * are visited against the order of their ids; what flows into one is summed by a single "="
 * equation, with pointwise contributions written out in it. Deterministic, linear in the graph's
 * size: side tables by id. Invariant: the adjoint of a tensor is a tensor of its type and shape, or
 * a CONST that stands for one filled with it.
 */
#include "autodiff/internal.h"

/* Terms of one sum equation; more are summed in stages. */
#define SUM_MAX 32

typedef struct Sum {
	int n, room;
	Node **part;
} Sum;

typedef struct Reverse {
	Ir *ir;
	size_t room; /* of the tables by id */
	Tape tape;
	bool *reaches; /* by id: COMPs that read wanted tensors */
	int norder;
	Node **order;
	Sum *sum;    /* by id: contributions */
	Node **grad; /* by id: the adjoint, once it is known */
} Reverse;

/* Parts that a new one may be joined with: the latest. */
#define JOIN_MAX 4

static void sum_put(Ir *ir, Sum *s, Node *part)
{
	for (int k = s->n - 1; k >= 0 && k >= s->n - JOIN_MAX; k--) {
		Node *joined = sum_join(ir, s->part[k], part);
		if (joined) {
			s->part[k] = joined;
			return;
		}
	}
	s->part = arena_grow(&ir->arena, s->part, s->n, &s->room, sizeof part);
	s->part[s->n++] = part;
}

/* Part k at the axes: what it computes where that is pointwise, else a read. */
static Node *sum_value(Ir *ir, Node *part, Node *const *axes)
{
	if (part->op == OP_COMP && comp_reduce(part) == RED_NONE && !custom_of(ir, part))
		return comp_body(part);
	return tensor_read(ir, part, axes);
}

/* written_out: what the parts compute stands in the sum. */
static Node *sum_range(Ir *ir, Node *const *part, int n, Node *const *axes, bool written_out)
{
	if (n == 1)
		return written_out ? sum_value(ir, part[0], axes) : tensor_read(ir, part[0], axes);
	int half = n / 2;
	return node_add(ir, sum_range(ir, part, half, axes, written_out),
			sum_range(ir, part + half, n - half, axes, written_out));
}

/* The sum of all parts as one tensor; NULL for none. The axes of a dense COMP are numbered by
 * dimension, so bodies can be added as they are. */
static Node *sum_tensor(Ir *ir, Sum *s, const Node *like)
{
	Node *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(like);
	tensor_axes(ir, like, axes);
	for (bool first = true; s->n > 1; first = false) {
		int n = 0;
		for (int k = 0; k < s->n; k += SUM_MAX) {
			int m = s->n - k < SUM_MAX ? s->n - k : SUM_MAX;
			Node *body = m > 1 ? sum_range(ir, s->part + k, m, axes, first) : NULL;
			s->part[n++] = body ? comp_dense(ir, RED_NONE, rank, rank, axes, body)
					    : s->part[k];
		}
		s->n = n;
	}
	return s->n ? tensor_source(s->part[0]) : NULL;
}

/* Marks what lies on a way from y to a wrt. */
static void mark(Reverse *r)
{
	for (int k = 0; k < r->norder; k++) {
		Node **reads, *t = r->order[k];
		if (!type_is_float(t->type))
			continue;
		const Custom *c = custom_of(r->ir, t);
		int n = c ? c->noperand : comp_reads(r->ir, t, &reads);
		for (int i = 0; i < n; i++)
			r->reaches[t->id] |= r->tape.wanted[(c ? c->operand : reads)[i]->id];
		r->tape.wanted[t->id] |= r->reaches[t->id];
	}
}

/* All results of t's run at once, at the one that is visited last. */
static void visit_run(Reverse *r, Node *t)
{
	Ir *ir = r->ir;
	Run run = run_of(ir, t, r->norder, r->order);
	Node **dresult = arena_alloc(&ir->arena, sizeof *dresult * (size_t)run.nresult);
	Node **doperand = arena_alloc(&ir->arena, sizeof *doperand * ((size_t)run.noperand + 1));
	bool *wanted = arena_alloc(&ir->arena, (size_t)run.noperand + 1), any = false;
	for (int k = 0; k < run.nresult && run.result[k]->id < r->room; k++) {
		if (run.result[k]->id < t->id && r->reaches[run.result[k]->id])
			return;
		dresult[k] = r->grad[run.result[k]->id];
		any |= dresult[k] != NULL;
	}
	if (!any)
		return;
	for (int k = 0; k < run.noperand; k++)
		wanted[k] = r->tape.wanted[run.operand[k]->id];
	if (run.custom)
		custom_gradients(ir, run.custom, dresult, doperand);
	else
		scan_gradients(ir, run.nresult, run.result, dresult, wanted, doperand);
	for (int k = 0; k < run.noperand; k++)
		if (doperand[k] && wanted[k])
			sum_put(ir, &r->sum[run.operand[k]->id], doperand[k]);
}

static void visit(Reverse *r, Node *t)
{
	Term *terms;
	if (!r->grad[t->id])
		r->grad[t->id] = sum_tensor(r->ir, &r->sum[t->id], t);
	if (r->reaches[t->id] && is_of_run(r->ir, t)) {
		visit_run(r, t);
		return;
	}
	if (!r->grad[t->id] || !r->reaches[t->id])
		return;
	int n = equation_terms(&r->tape, t, r->grad[t->id], &terms);
	for (int k = 0; k < n; k++) {
		Node *part = term_gradient(&r->tape, &terms[k]);
		if (part)
			sum_put(r->ir, &r->sum[terms[k].read->src[0]->id], part);
	}
}

static void dump(Ir *ir, int n, Node *const *wrt, Node *const *grads)
{
	if (!env_dump("grad"))
		return;
	const char **names = arena_alloc(&ir->arena, sizeof *names * (size_t)n);
	Text text = {0};
	for (int k = 0; k < n; k++)
		names[k] = wrt[k]->op == OP_INPUT ? arena_printf(&ir->arena, "d_%s", wrt[k]->u.s)
						  : arena_printf(&ir->arena, "d_%d", k);
	print_program(&text, ir, n, grads, names);
	env_dump_text("grad", "gradients", text.s ? text.s : "");
	text_free(&text);
}

/* The tables for tensors up to the roots. */
static Reverse reverse_new(Ir *ir, int nroot, Node *const *root)
{
	Arena *a = &ir->arena;
	Reverse r = {.ir = ir, .tape = {.ir = ir}};
	for (int k = 0; k < nroot; k++)
		r.room = root[k]->id >= r.room ? root[k]->id + 1u : r.room;
	r.norder = graph_order_hidden(ir, nroot, root, &r.order);
	r.tape.wanted = arena_alloc(a, sizeof *r.tape.wanted * (r.room + 1));
	r.reaches = arena_alloc(a, sizeof *r.reaches * (r.room + 1));
	r.sum = arena_alloc(a, sizeof *r.sum * (r.room + 1));
	r.grad = arena_alloc(a, sizeof *r.grad * (r.room + 1));
	return r;
}

void reverse_graph(Ir *ir, int nroot, Node *const *root, Node *const *seed, int n, Node *const *wrt,
		   Node **grads)
{
	Reverse r = reverse_new(ir, nroot, root);
	for (int k = 0; k < n; k++)
		if (wrt[k]->id < r.room)
			r.tape.wanted[wrt[k]->id] = true;
	mark(&r);
	for (int k = 0; k < nroot; k++)
		sum_put(ir, &r.sum[root[k]->id], seed[k]);
	for (int k = r.norder - 1; k >= 0; k--)
		if (r.tape.wanted[r.order[k]->id])
			visit(&r, r.order[k]);
	for (int k = 0; k < n; k++)
		grads[k] = wrt[k]->id < r.room ? r.grad[wrt[k]->id] : NULL;
}

bool is_of_run(const Ir *ir, const Node *t)
{
	return t->op == OP_SCAN || custom_of(ir, t);
}

Run run_of(Ir *ir, Node *t, int norder, Node *const *order)
{
	Run run = {.custom = custom_of(ir, t)};
	if (run.custom) {
		run.nresult = run.custom->nresult;
		run.result = run.custom->result;
		run.noperand = run.custom->noperand;
		run.operand = run.custom->operand;
		return run;
	}
	run.noperand = scan_noperand(scan_of(t));
	run.operand = scan_operands(t);
	run.result = arena_alloc(&ir->arena, sizeof *run.result * (size_t)norder);
	for (int k = 0; k < norder; k++)
		if (order[k]->op == OP_SCAN && scan_same_run(order[k], t))
			run.result[run.nresult++] = order[k];
	return run;
}

Node *gradient_tensor(Ir *ir, const Node *like, Node *gradient)
{
	bool fills = !gradient || node_is_const(gradient);
	return fills ? tensor_fill(ir, like, gradient ? gradient->u.f : 0) : gradient;
}

int autodiff_reverse(Ir *ir, Node *y, Node *seed, int n, Node *const *wrt, Node **grads)
{
	if (!type_is_float(y->type))
		return error_set(&ir->err, RICCI_ETYPE,
				 "gradient of a tensor of type %s: only floats have one",
				 type_name(y->type));
	for (int k = 0; k < n; k++)
		if (!type_is_float(wrt[k]->type))
			return error_set(&ir->err, RICCI_ETYPE,
					 "gradient by a tensor of type %s: only floats have one",
					 type_name(wrt[k]->type));
	seed = seed ? seed : node_const(ir, y->type, 1);
	reverse_graph(ir, 1, &y, &seed, n, wrt, grads);
	for (int k = 0; k < n; k++)
		grads[k] = gradient_tensor(ir, wrt[k], grads[k]);
	dump(ir, n, wrt, grads);
	return ir->err.code;
}

/* scan.c - what need not be computed step by step leaves its loop.
 *
 * In: roots of a graph. Out: roots of the same types, shapes and values; bodies are cleaned up.
 * A step's sums are small and read their constants anew each time; over all steps they are one
 * large sum. So of a body's sums
 *	ahead	those over slices and constants alone are computed for all steps before the loop,
 *		and are slices of it then (so is anything of that kind that is only stacked);
 *	after	those that are only stacked, and terms that a state, which nothing else reads, only
 *		adds up, are computed behind it, over stacks of what they read.
 * Both where the new stacks are smaller than what is saved, and never in a loop that is to save
 * memory (recompute). Rows that the length leaves out hold anything in slices, so sums behind the
 * loop ask for t < length; a contraction then takes the time of the length. */
#include "jit/rewrite/rewrite.h"

#include <string.h>

/* One run of a loop: the results of it that the graph needs. */
typedef struct Split {
	Ir *ir;
	Scan scan;	      /* the body, cleaned up */
	Node *const *operand; /* those of the variables */
	Node *length;	      /* NULL: all steps */
	double most;	      /* bytes that a new stack may take */
	int nresult;
	Node **result; /* SCAN nodes */
	Node **value;  /* what the stacks among them are of, cleaned up; NULL: a state's values */
	Node **order;  /* of the body, variables too */
	int n;
	/* by id of the body's tensors: */
	bool *fixed;  /* depends on no state, and draws no random numbers */
	bool *needed; /* by what stays in the loop */
	bool *ahead;  /* computed before the loop */
	bool *stack;  /* the new loop is to stack it */
	int *readers; /* in the loop; roots count */
	bool *sums;   /* by state: it only adds up sums, and these leave */
	bool *after;  /* by result: computed behind the loop */
	NodeMap over; /* a body's tensor to what holds it for all steps, outside */
} Split;

/* ---- asking ---- */

static bool small_enough(const Split *p, double bytes)
{
	return bytes * (double)p->scan.bound <= p->most;
}

/* ---- what leaves ---- */

/* Can over_comp make its rows beyond the length zeros? Not where max= leaves elements out. */
static bool can_end(const Split *p, const Node *t)
{
	return !p->length || comp_is_dense(t) || comp_reduce(t) == RED_ADD;
}

/* Is it stacked, and read by nothing that stays in the loop? */
static bool only_stacked(const Split *p, const Node *t)
{
	bool stacked = false;
	for (int k = 0; k < p->nresult; k++)
		stacked |= p->value[k] == t && scan_is_stack(p->result[k]->u.result);
	return stacked && p->readers[t->id] == 1 && can_end(p, t);
}

static bool is_ahead(const Split *p, const Node *t)
{
	if (!p->fixed[t->id] || t->op != OP_COMP)
		return false;
	bool sum = body_is_sum(t) && small_enough(p, (double)tensor_bytes(t));
	return sum || (only_stacked(p, t) && !body_rounds(p->ir, t));
}

/* From the roots down: what leaves is not entered. */
static void find_ahead(Split *p)
{
	for (int k = p->n - 1; k >= 0; k--) {
		Node *t = p->order[k], **reads;
		if (!p->needed[t->id])
			continue;
		if (is_ahead(p, t)) {
			p->ahead[t->id] = true;
			continue;
		}
		int m = comp_reads(p->ir, t, &reads);
		for (int i = 0; i < m; i++) {
			p->needed[reads[i]->id] = true;
			p->readers[reads[i]->id]++;
		}
	}
}

/* What the tensors in an equation need to be there for all steps: bytes a step. decide: on these stacks. */
static double missing(Split *p, const Node *c, bool decide)
{
	double bytes = 0;
	for (int d = -1; d < tensor_rank(c); d++) {
		Node **read, *e = d < 0 ? comp_body(c) : comp_lhs(c, d);
		int n = node_collect(p->ir, e, OP_READ, &read);
		for (int k = 0; k < n; k++) {
			const Node *t = read[k]->src[0];
			if (p->fixed[t->id] || p->stack[t->id])
				continue;
			bytes += (double)tensor_bytes(t);
			p->stack[t->id] = decide;
		}
	}
	return bytes;
}

/* Is it worth it to compute the sum c behind the loop? */
static bool sum_may_leave(Split *p, const Node *c)
{
	if (!body_is_sum(c) || !body_may_leave(p->ir, c) || comp_reduce(c) != RED_ADD ||
	    p->ahead[c->id] || p->readers[c->id] != 1)
		return false;
	double bytes = missing(p, c, false);
	return bytes <= 2 * (double)tensor_bytes(c) && small_enough(p, bytes);
}

static bool own_read(const Node *e, const Node *c)
{
	if (e->op != OP_READ || tensor_rank(e->src[0]) != tensor_rank(c))
		return false;
	for (int d = 0; d < tensor_rank(c); d++)
		if (e->src[1 + d] != comp_axis(c, d))
			return false;
	return true;
}

/* What the state's next value adds to it by e: an equation of the body, or one made of e. */
static Node *term_of(Split *p, const Node *next, Node *e)
{
	Node *c = own_read(e, next) ? e->src[0] : NULL;
	int rank = tensor_rank(next);
	if (c && c->op == OP_COMP && comp_is_dense(c) && p->readers[c->id] == 1 &&
	    !p->ahead[c->id] && (comp_reduce(c) == RED_ADD || comp_reduce(c) == RED_NONE))
		return c;
	return comp_dense(p->ir, RED_NONE, rank, rank, next->src, e);
}

/* Is it worth it to add the term up behind the loop? A sum's stacks may take what the loop would
 * move to add it up; what is no sum has to be of smaller parts, as a product of two vectors is. */
static bool term_may_leave(Split *p, const Node *c, Node *state)
{
	double bytes;
	bool sums = comp_reduce(c) == RED_ADD;
	if (node_has(comp_body(c), state) || !body_may_leave(p->ir, c) ||
	    !body_is_heavy(c, (double)p->scan.bound))
		return false;
	bytes = missing(p, c, false);
	return bytes <= (double)tensor_bytes(c) * (sums ? 2 : .25) && small_enough(p, bytes);
}

/* Is e, in the equation next, the state plus such terms, element by element? f sees each. */
static bool adds_up(Split *p, const Node *next, Node *e, Node *state, int *nstate,
		    void (*f)(void *user, Split *p, Node *term), void *user)
{
	if (e->op == OP_ADD)
		return adds_up(p, next, e->src[0], state, nstate, f, user) &&
		       adds_up(p, next, e->src[1], state, nstate, f, user);
	if (own_read(e, next) && e->src[0] == state) {
		++*nstate;
		return true;
	}
	if (e->op == OP_CAST) /* of a sum of 16 bits, to what it is added up in */
		e = e->src[0];
	Node *term = term_of(p, next, e);
	if (!term_may_leave(p, term, state))
		return false;
	f(user, p, term);
	return true;
}

static void see_nothing(void *user, Split *p, Node *term)
{
	(void)user, (void)p, (void)term;
}

static void see_leaving(void *user, Split *p, Node *term)
{
	(void)user;
	missing(p, term, true);
}

static bool state_sums(Split *p, int k)
{
	Node *state = p->scan.var[p->scan.nslice + k], *next = p->scan.next[k];
	int once = 0, again = 0;
	if (p->readers[state->id] != 1 || p->readers[next->id] != 1 || next->op != OP_COMP ||
	    comp_reduce(next) != RED_NONE ||
	    !adds_up(p, next, comp_body(next), state, &once, see_nothing, NULL) || once != 1)
		return false;
	return adds_up(p, next, comp_body(next), state, &again, see_leaving, NULL);
}

/* Stacks that were decided on are there for others too, so until nothing more leaves. */
static void find_after(Split *p)
{
	for (bool more = true; more;) {
		more = false;
		for (int k = 0; k < p->nresult; k++) {
			Node *v = p->value[k];
			if (p->after[k] || !v || !sum_may_leave(p, v))
				continue;
			missing(p, v, true);
			more = p->after[k] = true;
		}
		for (int k = 0; k < p->scan.nstate; k++)
			if (!p->sums[k] && state_sums(p, k))
				more = p->sums[k] = true;
	}
}

/* ---- outside ---- */

static Node *over_tensor(Split *p, Node *t);

/* e in step t, over tensors outside. */
static Node *over_expr(Split *p, Node *e, Node *t)
{
	Node **read;
	int n = node_collect(p->ir, e, OP_READ, &read);
	Node **to = arena_alloc(&p->ir->arena, ((size_t)n + 1) * sizeof *to);
	for (int k = 0; k < n; k++) {
		Node *x = read[k]->src[0], *all = over_tensor(p, x), *index[RICCI_MAX_RANK + 1];
		int each = tensor_rank(all) > tensor_rank(x);
		index[0] = t;
		for (int d = 0; d < tensor_rank(x); d++)
			index[each + d] = node_replace(p->ir, read[k]->src[1 + d], k, read, to);
		to[k] = node_read(p->ir, all, index);
	}
	return node_replace(p->ir, e, n, read, to);
}

static Node *within_length(Split *p, Node *t, Node *body)
{
	Ir *ir = p->ir;
	Node *n = node_cast(ir, RICCI_I64, node_read(ir, p->length, NULL));
	return node_select(ir, node2(ir, OP_LT, t, n), body, node_const(ir, (Type)body->type, 0));
}

/* c for all steps; or, summed, over all of them. What a step computes behind the loop is nothing in
 * rows beyond the length. */
static Node *over_comp(Split *p, Node *c, bool summed, bool behind)
{
	int naxis = comp_naxis(c), rank = tensor_rank(c), each = !summed;
	Node *axes[COMP_MAX_AXES], *lhs[RICCI_MAX_RANK];
	Node *t = node_axis(p->ir, naxis, p->scan.bound);
	int64_t shape[RICCI_MAX_RANK];
	lhs[0] = t;
	shape[0] = p->scan.bound;
	for (int d = 0; d < rank; d++) {
		lhs[each + d] = over_expr(p, comp_lhs(c, d), t);
		shape[each + d] = tensor_extent(c, d);
	}
	for (int k = 0; k < naxis; k++)
		axes[k] = comp_axis(c, k);
	axes[naxis] = t;
	Node *body = over_expr(p, comp_body(c), t);
	if (behind && p->length)
		body = within_length(p, t, body);
	return comp_make(p->ir, summed ? RED_ADD : comp_reduce(c), each + rank, shape, lhs,
			 naxis + 1, axes, body);
}

static Node *over_tensor(Split *p, Node *t)
{
	Node *known = node_map_get(&p->over, t);
	if (!known) { /* fixed: stacks are known */
		known = over_comp(p, t, false, false);
		node_map_put(p->ir, &p->over, t, known);
	}
	return known;
}

/* ---- the new loop ---- */

static void split_init(Split *p)
{
	Arena *a = &p->ir->arena;
	int nroot = p->scan.nstate;
	Node **root = arena_alloc(a, (size_t)(nroot + p->nresult + 1) * sizeof *root);
	memcpy(root, p->scan.next, (size_t)nroot * sizeof *root);
	for (int k = 0; k < p->nresult; k++)
		if (p->value[k])
			root[nroot++] = p->value[k];
	p->n = graph_order(p->ir, nroot, root, &p->order);
	p->fixed = arena_alloc(a, p->ir->count);
	p->needed = arena_alloc(a, p->ir->count);
	p->ahead = arena_alloc(a, p->ir->count);
	p->stack = arena_alloc(a, p->ir->count);
	p->readers = arena_alloc(a, p->ir->count * sizeof *p->readers);
	p->sums = arena_alloc(a, (size_t)p->scan.nstate + 1);
	p->after = arena_alloc(a, (size_t)p->nresult + 1);
	for (int k = 0; k < nroot; k++) {
		p->needed[root[k]->id] = true;
		p->readers[root[k]->id]++;
	}
	for (int k = 0; k < p->nresult; k++) {
		int ends = scan_ends_of(p->result[k]->u.result);
		if (ends >= 0)
			p->readers[p->scan.var[p->scan.nslice + ends]->id]++;
	}
	p->most = body_stack_limit(&p->scan, p->operand, p->nresult, p->result);
	for (int k = 0; k < p->scan.nslice + p->scan.nstate + p->scan.nconst; k++)
		if (k < p->scan.nslice || k >= p->scan.nslice + p->scan.nstate)
			node_map_put(p->ir, &p->over, p->scan.var[k], p->operand[k]);
}

/* The loop that is left, over new variables for what is computed ahead. */
typedef struct Rest {
	Scan spec;
	Node **operand, **given; /* given: those of the variables */
	Node **root;		 /* states that stay, then stacks */
	Node **old;		 /* what the stacks were of in the old body */
	int nroot, *state;	 /* state: by old number; -1: gone */
	NodeMap now;		 /* of the old body's tensors */
} Rest;

static void rest_variable(Rest *r, int *count, Node *var, Node *operand)
{
	int k = r->spec.nslice + r->spec.nstate + r->spec.nconst;
	r->spec.var[k] = var;
	r->given[k] = operand;
	++*count;
}

static void rest_variables(Split *p, Rest *r)
{
	const Scan *s = &p->scan;
	for (int k = 0; k < s->nslice; k++)
		rest_variable(r, &r->spec.nslice, s->var[k], p->operand[k]);
	for (int k = 0; k < p->n; k++) {
		Node *t = p->order[k];
		int64_t shape[RICCI_MAX_RANK];
		if (!p->ahead[t->id])
			continue;
		for (int d = 0; d < tensor_rank(t); d++)
			shape[d] = tensor_extent(t, d);
		Node *var = node_input(p->ir, arena_printf(&p->ir->arena, "%%ahead%d", k),
				       (Type)t->type, tensor_rank(t), shape);
		node_map_put(p->ir, &r->now, t, var);
		rest_variable(r, &r->spec.nslice, var, over_tensor(p, t));
	}
	for (int k = 0; k < s->nstate; k++) {
		r->state[k] = p->sums[k] ? -1 : r->spec.nstate;
		if (p->sums[k])
			continue;
		r->root[r->nroot++] = s->next[k];
		rest_variable(r, &r->spec.nstate, s->var[s->nslice + k], p->operand[s->nslice + k]);
	}
	for (int k = s->nslice + s->nstate; k < s->nslice + s->nstate + s->nconst; k++)
		rest_variable(r, &r->spec.nconst, s->var[k], p->operand[k]);
}

/* Is result k a stack of values that the new loop makes? What is ahead is there already, but for
 * rows beyond the length where the loop reads it, too. */
static bool stack_stays(const Split *p, int k)
{
	const Node *v = p->value[k];
	if (!v || p->after[k])
		return false;
	return !p->ahead[v->id] || (p->length && !only_stacked(p, v));
}

static ScanCall split_close(Split *p, Rest *r)
{
	Ir *ir = p->ir;
	size_t room =
		(size_t)(p->n + p->nresult + p->scan.nstate + p->scan.nslice + p->scan.nconst + 2) *
		sizeof(Node *);
	*r = (Rest){.spec = p->scan,
		    .operand = arena_alloc(&ir->arena, room),
		    .root = arena_alloc(&ir->arena, room),
		    .state = arena_alloc(&ir->arena, room)};
	r->spec.nslice = r->spec.nstate = r->spec.nconst = 0;
	r->spec.var = arena_alloc(&ir->arena, room);
	r->given = r->operand + (p->length != NULL);
	r->operand[0] = p->length;
	rest_variables(p, r);
	r->old = r->root + r->nroot;
	for (int k = 0; k < p->nresult; k++)
		if (stack_stays(p, k))
			p->stack[p->value[k]->id] = true;
	for (int k = 0; k < p->n; k++)
		if (p->stack[p->order[k]->id])
			r->root[r->nroot++] = p->order[k];
	graph_replace(ir, r->nroot, r->root, &r->now);
	Node **now = arena_alloc(&ir->arena, room);
	for (int k = 0; k < r->nroot; k++)
		now[k] = node_map_get(&r->now, r->root[k]);
	r->spec.next = now;
	return scan_close(ir, &r->spec, r->operand, r->nroot - r->spec.nstate, now + r->spec.nstate,
			  true);
}

typedef struct Sum {
	Node *read; /* of the equation's own element so far */
	Node *const *axes;
} Sum;

static void see_sum(void *user, Split *p, Node *term)
{
	Sum *s = user;
	Node *all = node_read(p->ir, over_comp(p, term, true, true), s->axes);
	s->read = node2(p->ir, OP_ADD, s->read, node_cast(p->ir, (Type)s->read->type, all));
}

/* The last value of a state that only adds sums up. */
static Node *state_behind(Split *p, int k)
{
	Node *next = p->scan.next[k], *var = p->scan.var[p->scan.nslice + k];
	Sum s = {node_read(p->ir, p->operand[p->scan.nslice + k], next->src), next->src};
	int once = 0;
	adds_up(p, next, comp_body(next), var, &once, see_sum, &s);
	return comp_dense(p->ir, RED_NONE, tensor_rank(next), tensor_rank(next), next->src, s.read);
}

static Node *result_now(Split *p, const Rest *r, const ScanCall *call, int k)
{
	Node *v = p->value[k];
	const ScanResult *of = p->result[k]->u.result;
	int state = of->final, ends = scan_ends_of(of);
	if (ends >= 0) /* read, so no sum that leaves */
		return scan_ends(p->ir, call, r->state[ends]);
	if (!v)
		return p->sums[state] ? state_behind(p, state)
				      : scan_final(p->ir, call, r->state[state]);
	if (!stack_stays(p, k))
		return p->after[k] || p->length ? over_comp(p, v, false, true) : over_tensor(p, v);
	for (int i = 0;; i++)
		if (r->old[i] == v)
			return scan_stack(p->ir, call, call->result[i]);
}

static void split_run(Split *p, NodeMap *map)
{
	Rest r;
	split_init(p);
	if (!p->scan.recompute && p->scan.bound > 1) {
		body_find_fixed(p->ir, &p->scan, p->n, p->order, p->fixed);
		find_ahead(p);
		find_after(p);
	}
	ScanCall call = split_close(p, &r);
	for (int i = 0; i < r.nroot - r.spec.nstate; i++)
		if (!node_map_get(&p->over, r.old[i]))
			node_map_put(p->ir, &p->over, r.old[i],
				     scan_stack(p->ir, &call, call.result[i]));
	for (int k = 0; k < p->nresult; k++)
		node_map_put(p->ir, map, p->result[k], result_now(p, &r, &call, k));
}

/* The run of order[at] with its body cleaned up, split. */
static bool scan_split(Ir *ir, int n, Node *const *order, int at, NodeMap *map)
{
	ScanRun run = scan_run(ir, n, order, at, map);
	bool length = run.scan->has_length;
	int nroot = run.scan->nstate;
	Split p = {.ir = ir,
		   .scan = *run.scan,
		   .operand = run.operand + length,
		   .length = length ? run.operand[0] : NULL,
		   .nresult = run.nresult,
		   .result = run.result};
	rewrite_graph(ir, run.nroot, run.root);
	loop_constants_apart(ir, run.scan, run.nroot, run.root);
	p.scan.next = run.root;
	p.value = arena_alloc(&ir->arena, ((size_t)run.nresult + 1) * sizeof *p.value);
	for (int k = 0; k < p.nresult; k++)
		if (scan_is_stack(p.result[k]->u.result))
			p.value[k] = run.root[nroot++];
	split_run(&p, map);
	return true;
}

void rewrite_scans(Ir *ir, int nroot, Node **roots)
{
	scans_shrink(ir, nroot, roots);
	do
		scans_each(ir, nroot, roots, scan_split);
	while (scans_distribute(ir, nroot, roots));
}

/* scan_close.c - closes a loop over its variables. Input: roots over INPUT nodes that stand for a
 * step's slices, states and constants. Output: an interned Scan, whose body reads canonical
 * variables only, and its operands. What depends on no variable is moved out. */
#include "core/node/internal.h"

static Node *scan_variable(Ir *ir, int k, const Node *like, int drop)
{
	int64_t shape[RICCI_MAX_RANK];
	char name[16];
	for (int d = drop; d < tensor_rank(like); d++)
		shape[d - drop] = tensor_extent(like, d);
	snprintf(name, sizeof name, "%%%d", k);
	return node_input(ir, name, (Type)like->type, tensor_rank(like) - drop, shape);
}

/* Does t draw random numbers itself? */
static bool tensor_draws(Ir *ir, const Node *t)
{
	bool draws = false;
	if (t->op != OP_SCAN)
		return t->op == OP_COMP && node_any(ir, comp_body(t), node_draws);
	const Scan *s = scan_of(t);
	Node **root = arena_alloc(&ir->arena, sizeof *root * ((size_t)s->nstate + 1)), **order;
	for (int k = 0; k < s->nstate; k++)
		root[k] = s->next[k];
	root[s->nstate] = t->u.result->value;
	int n = graph_order(ir, s->nstate + 1, root, &order);
	for (int k = 0; k < n && !draws; k++)
		draws = tensor_draws(ir, order[k]);
	return draws;
}

typedef struct Close {
	Ir *ir;
	const Scan *spec;
	Node *const *operand; /* behind the length */
	Scan out;
	Node **given;	/* out's operands behind the length */
	NodeMap vars;	/* spec's */
	uint32_t floor; /* of ids: what is older depends on no variable */
	bool *varies;	/* by id: depends on a variable of the step */
	bool *read;	/* by id: a body tensor reads it, or it is a root */
	bool draws_stay;
	NodeMap outside; /* explicit constants to their operands, for what is moved out */
	NodeMap inside;	 /* to the body's tensors */
} Close;

/* A tensor of equal numbers needs no operand. */
static bool is_fill(const Node *t)
{
	return t->op == OP_COMP && comp_reduce(t) == RED_NONE && node_is_const(comp_body(t));
}

static void add_variable(Close *c, Node *old, Node *operand, int drop)
{
	int k = scan_nvar(&c->out);
	c->out.var[k] = scan_variable(c->ir, k, operand, drop);
	c->given[k] = operand;
	node_map_put(c->ir, &c->inside, old, c->out.var[k]);
}

/* The constant of this operand, shared by all tensors that it stands for. */
static void add_constant(Close *c, Node *old, Node *operand)
{
	for (int k = c->out.nslice + c->out.nstate; k < scan_nvar(&c->out); k++)
		if (c->given[k] == operand) {
			node_map_put(c->ir, &c->inside, old, c->out.var[k]);
			return;
		}
	add_variable(c, old, operand, 0);
	c->out.nconst++;
}

/* Which tensors vary from step to step, and which are read by those. */
static void mark(Close *c, int n, Node *const *order)
{
	const Scan *s = c->spec;
	int nvarying = s->nslice + s->nstate + (s->recompute ? s->nconst : 0);
	for (int k = 0; k < nvarying; k++)
		c->varies[s->var[k]->id] = true;
	for (int k = 0; k < n; k++) {
		Node **source;
		bool *varies = &c->varies[order[k]->id];
		bool entered = order[k]->id >= c->floor && !node_map_get(&c->vars, order[k]);
		int m = entered ? tensor_sources(c->ir, order[k], &source) : 0;
		for (int i = 0; i < m; i++)
			*varies |= c->varies[source[i]->id];
		if (entered && c->draws_stay && !*varies)
			*varies = tensor_draws(c->ir, order[k]);
		for (int i = 0; i < m && *varies; i++)
			c->read[source[i]->id] = true;
	}
}

/* Variables in the order of spec, then what is moved out, by id. */
static void add_variables(Close *c, int n, Node *const *order)
{
	const Scan *s = c->spec;
	int moving = s->nslice + s->nstate;
	for (int k = 0; k < moving; k++) {
		bool slice = k < s->nslice;
		if (slice && !c->read[s->var[k]->id])
			continue;
		add_variable(c, s->var[k], c->operand[k], slice);
		*(slice ? &c->out.nslice : &c->out.nstate) += 1;
	}
	for (int k = moving; k < scan_nvar(s); k++) {
		Node *v = s->var[k];
		node_map_put(c->ir, &c->outside, v, c->operand[k]);
		if (c->read[v->id])
			add_constant(c, v, c->operand[k]);
	}
	for (int k = 0; k < n; k++) {
		Node *t = order[k];
		if (!c->read[t->id] || c->varies[t->id] || is_fill(t) ||
		    node_map_get(&c->inside, t))
			continue;
		graph_replace(c->ir, 1, &t, &c->outside);
		add_constant(c, t, node_map_get(&c->outside, t));
	}
}

ScanCall scan_close(Ir *ir, const Scan *spec, Node *const *operand, int nstacked,
		    Node *const *stacked, bool draws_stay)
{
	Arena *a = &ir->arena;
	Close c = {.ir = ir,
		   .spec = spec,
		   .operand = operand + spec->has_length,
		   .out = *spec,
		   .draws_stay = draws_stay};
	int nroot = spec->nstate + nstacked;
	Node **root = arena_alloc(a, sizeof *root * ((size_t)nroot + 1)), **order;
	for (int k = 0; k < nroot; k++)
		root[k] = k < spec->nstate ? spec->next[k] : stacked[k - spec->nstate];
	for (int k = 0; k < scan_nvar(spec); k++)
		node_map_put(ir, &c.vars, spec->var[k], spec->var[k]);
	c.floor = draws_stay ? 0 : map_oldest(&c.vars);
	int n = graph_order_to(ir, nroot, root, &c.vars, c.floor, &order);
	c.varies = arena_alloc(a, ir->count);
	c.read = arena_alloc(a, ir->count);
	for (int k = 0; k < nroot; k++)
		c.read[root[k]->id] = true;
	mark(&c, n, order);
	size_t room = (size_t)n + (size_t)scan_nvar(spec) + 2;
	ScanCall call = {.operand = arena_alloc(a, sizeof(Node *) * room),
			 .result = arena_alloc(a, sizeof(Node *) * ((size_t)nstacked + 1))};
	c.given = call.operand + spec->has_length;
	if (spec->has_length)
		call.operand[0] = operand[0];
	c.out.nslice = c.out.nstate = c.out.nconst = 0;
	c.out.var = arena_alloc(a, sizeof(Node *) * room);
	add_variables(&c, n, order);
	graph_replace(ir, nroot, root, &c.inside);
	c.out.next = arena_alloc(a, sizeof(Node *) * ((size_t)spec->nstate + 1));
	for (int k = 0; k < nroot; k++)
		*(k < spec->nstate ? &c.out.next[k] : &call.result[k - spec->nstate]) =
			node_map_get(&c.inside, root[k]);
	call.scan = scan_intern(ir, &c.out);
	return call;
}

/* scan.c - loops: closing a body over its variables, interning, results.
 *
 * Input: roots over INPUT nodes that stand for a step's slices, states and constants. Output: a
 * Scan, whose body reads canonical variables only, and SCAN nodes, its results over operands.
 * Invariant: equal loops are one pointer, and so are equal results of one.
 */
#include "core/fold.h"

#include <string.h>

/* ---- interning ---- */

static uint32_t mix(uint32_t h, uint64_t v)
{
	uint64_t x = (h ^ v) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(x ^ x >> 29);
}

static int nvar(const Scan *s)
{
	return s->nslice + s->nstate + s->nconst;
}

static uint32_t scan_hash(const Scan *s)
{
	uint32_t h = mix(mix((uint32_t)s->bound, (uint64_t)s->given),
			 (uint64_t)(s->backwards | s->has_length << 1 | s->recompute << 2));
	h = mix(mix(h, (uint64_t)s->nslice), (uint64_t)s->nstate << 32 | (uint64_t)s->nconst);
	for (int k = 0; k < nvar(s); k++)
		h = mix(h, s->var[k]->hash);
	for (int k = 0; k < s->nstate; k++)
		h = mix(h, s->next[k]->hash);
	return h;
}

static bool scan_same(const Scan *a, const Scan *b)
{
	if (a->hash != b->hash || a->bound != b->bound || a->given != b->given ||
	    a->backwards != b->backwards || a->has_length != b->has_length ||
	    a->recompute != b->recompute || a->nslice != b->nslice || a->nstate != b->nstate ||
	    a->nconst != b->nconst)
		return false;
	for (int k = 0; k < nvar(a); k++)
		if (a->var[k] != b->var[k])
			return false;
	for (int k = 0; k < a->nstate; k++)
		if (a->next[k] != b->next[k])
			return false;
	return true;
}

static Scan *scan_intern(Ir *ir, const Scan *scan)
{
	Scan *s = ir->scan;
	Scan key = *scan;
	key.hash = scan_hash(scan);
	while (s && !scan_same(s, &key))
		s = s->below;
	if (s)
		return s;
	s = arena_alloc(&ir->arena, sizeof *s);
	*s = key;
	s->result = NULL;
	s->below = ir->scan;
	ir->scan = s;
	return s;
}

static ScanResult *result_intern(Ir *ir, Scan *s, int final, bool ends, Node *value)
{
	int rank = tensor_rank(value) + (final < 0);
	for (ScanResult *r = s->result; r; r = r->next)
		if (r->final == final && r->ends == ends && r->value == value)
			return r;
	ScanResult *r = arena_alloc(&ir->arena, sizeof *r);
	*r = (ScanResult){s, rank, final, ends, value, s->result};
	s->result = r;
	return r;
}

uint32_t scan_result_hash(const ScanResult *r)
{
	return mix(mix(r->scan->hash, (uint64_t)r->final + r->ends), r->value->hash);
}

static Node *result_node(Ir *ir, ScanResult *r, Node *const *operand)
{
	int stack = r->final < 0, n = scan_noperand(r->scan);
	Node **src = arena_alloc(&ir->arena, sizeof *src * (size_t)(r->rank + n + 1));
	if (stack)
		src[0] = node_int(ir, r->scan->bound + r->ends);
	for (int d = stack; d < r->rank; d++)
		src[d] = node_int(ir, tensor_extent(r->value, d - stack));
	if (n)
		memcpy(src + r->rank, operand, sizeof *src * (size_t)n);
	return node_raw(ir, OP_SCAN, (Type)r->value->type, r->rank + n, src, (int64_t)(uintptr_t)r,
			NULL);
}

Node *scan_final(Ir *ir, const ScanCall *call, int state)
{
	return result_node(ir, result_intern(ir, call->scan, state, false, call->scan->next[state]),
			   call->operand);
}

Node *scan_stack(Ir *ir, const ScanCall *call, Node *value)
{
	return result_node(ir, result_intern(ir, call->scan, -1, false, value), call->operand);
}

Node *scan_ends(Ir *ir, const ScanCall *call, int state)
{
	Scan *s = call->scan;
	return result_node(ir, result_intern(ir, s, -1, true, s->var[s->nslice + state]),
			   call->operand);
}

int scan_ends_of(const ScanResult *r)
{
	int k = 0;
	while (r->ends && r->value != r->scan->var[r->scan->nslice + k])
		k++;
	return r->ends ? k : -1;
}

Node *scan_only(Ir *ir, const ScanCall *call, Node *value)
{
	Node *index[RICCI_MAX_RANK] = {node_int(ir, 0)};
	int rank = tensor_rank(value);
	for (int d = 0; d < rank; d++)
		index[d + 1] = node_axis(ir, d, tensor_extent(value, d));
	return comp_dense(ir, RED_NONE, rank, rank, index + 1,
			  node_read(ir, scan_stack(ir, call, value), index));
}

Node *scan_over(Ir *ir, const Node *n, Node *const *operand)
{
	return result_node(ir, (ScanResult *)n->u.result, operand);
}

const ScanResult *scan_import(Ir *ir, const ScanResult *r, Node *(*copy)(void *user, Node *n),
			      void *user)
{
	const Scan *from = r->scan;
	Scan s = *from;
	s.var = arena_alloc(&ir->arena, sizeof *s.var * ((size_t)nvar(from) + 1));
	s.next = arena_alloc(&ir->arena, sizeof *s.next * ((size_t)from->nstate + 1));
	for (int k = 0; k < nvar(from); k++)
		s.var[k] = copy(user, from->var[k]);
	for (int k = 0; k < from->nstate; k++)
		s.next[k] = copy(user, from->next[k]);
	return result_intern(ir, scan_intern(ir, &s), r->final, r->ends, copy(user, r->value));
}

bool scan_same_run(const Node *a, const Node *b)
{
	const Scan *s = scan_of(a);
	return s == scan_of(b) && !memcmp(scan_operands(a), scan_operands(b),
					  sizeof(Node *) * (size_t)scan_noperand(s));
}

/* ---- closing ---- */

static Node *scan_variable(Ir *ir, int k, const Node *like, int drop)
{
	int64_t shape[RICCI_MAX_RANK];
	char name[16];
	for (int d = drop; d < tensor_rank(like); d++)
		shape[d - drop] = tensor_extent(like, d);
	snprintf(name, sizeof name, "%%%d", k);
	return node_input(ir, name, (Type)like->type, tensor_rank(like) - drop, shape);
}

static void see_draw(void *user, Node *n)
{
	*(bool *)user |= n->op == OP_RANDOM || n->op == OP_NORMAL;
}

/* Does t draw random numbers itself? */
static bool tensor_draws(Ir *ir, const Node *t)
{
	bool draws = false;
	if (t->op == OP_COMP)
		node_walk(ir, comp_body(t), see_draw, &draws);
	if (t->op != OP_SCAN)
		return draws;
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
	int k = nvar(&c->out);
	c->out.var[k] = scan_variable(c->ir, k, operand, drop);
	c->given[k] = operand;
	node_map_put(c->ir, &c->inside, old, c->out.var[k]);
}

/* The constant of this operand, shared by all tensors that it stands for. */
static void add_constant(Close *c, Node *old, Node *operand)
{
	for (int k = c->out.nslice + c->out.nstate; k < nvar(&c->out); k++)
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
	for (int k = moving; k < nvar(s); k++) {
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
	for (int k = 0; k < nvar(spec); k++)
		node_map_put(ir, &c.vars, spec->var[k], spec->var[k]);
	c.floor = draws_stay ? 0 : map_oldest(&c.vars);
	int n = graph_order_to(ir, nroot, root, &c.vars, c.floor, &order);
	c.varies = arena_alloc(a, ir->count);
	c.read = arena_alloc(a, ir->count);
	for (int k = 0; k < nroot; k++)
		c.read[root[k]->id] = true;
	mark(&c, n, order);
	size_t room = (size_t)n + (size_t)nvar(spec) + 2;
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

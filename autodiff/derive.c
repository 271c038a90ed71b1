/* derive.c - through one scalar expression: in reverse from the adjoint of an equation's body to a
 * term for each read in it, forwards from the tangents of what it reads to its own, both by the
 * table derive.def.
 *
 * Reverse. Input: the body, a graph of shared nodes. Output: Terms. Time and size are linear in the
 * body: each node has one adjoint, the sum of what its users give it. A SELECT is lazy, so a branch
 * may hold what is invalid outside it (reads out of bounds, logarithms). So an adjoint is a pair
 * (guard, value), and value is evaluated under the guard only; what several users give under
 * different guards is joined along the choices that they share.
 */
#include "autodiff/internal.h"

/* ---- the table */

#define NONE	      NULL
#define K(v)	      node_const(ir, y->type, v)
#define ADD(p, q)     node2(ir, OP_ADD, p, q)
#define SUB(p, q)     node2(ir, OP_SUB, p, q)
#define MUL(p, q)     node2(ir, OP_MUL, p, q)
#define DIV(p, q)     node2(ir, OP_DIV, p, q)
#define POW(p, q)     node2(ir, OP_POW, p, q)
#define EQ(p, q)      node2(ir, OP_EQ, p, q)
#define LE(p, q)      node2(ir, OP_LE, p, q)
#define LT(p, q)      node2(ir, OP_LT, p, q)
#define AND(p, q)     node2(ir, OP_AND, p, q)
#define NEG(p)	      node1(ir, OP_NEG, p)
#define EXP(p)	      node1(ir, OP_EXP, p)
#define LOG(p)	      node1(ir, OP_LOG, p)
#define SIN(p)	      node1(ir, OP_SIN, p)
#define COS(p)	      node1(ir, OP_COS, p)
#define SIGN(p)	      node1(ir, OP_SIGN, p)
#define CAST(p)	      node_cast(ir, a->type, p)
#define PICK(c, p, q) node_select(ir, c, p, q)
/* g where less < more, half of it where they are equal; g stands in it once, so that chains of
 * maxima stay linear when they are written out. Where one is a NaN both get g. */
#define SHARE(less, more) PICK(LT(more, less), K(0), MUL(PICK(EQ(less, more), K(0.5), K(1)), g))

#define DERIVE(name, left, right)                                                                  \
	static Node *left_##name(Ir *ir, Node *a, Node *b, Node *y, Node *g)                       \
	{                                                                                          \
		(void)ir, (void)a, (void)b, (void)y, (void)g;                                      \
		return left;                                                                       \
	}                                                                                          \
	static Node *right_##name(Ir *ir, Node *a, Node *b, Node *y, Node *g)                      \
	{                                                                                          \
		(void)ir, (void)a, (void)b, (void)y, (void)g;                                      \
		return right;                                                                      \
	}
#include "autodiff/derive.def"
#undef DERIVE

/* An operator without a line in derive.def is an undeclared left_NAME here. */
static const struct Rule {
	Node *(*side[2])(Ir *ir, Node *a, Node *b, Node *y, Node *g);
} rules[OP_COUNT] = {
#define OP(name, text, nsrc, form) [OP_##name] = {{left_##name, right_##name}},
#include "core/node/ops.def"
#undef OP
};

/* ---- the walk */

/* The conditions on the way to a branch, the innermost first; NULL: none. */
typedef struct Guard {
	Node *cond;
	const struct Guard *outer;
	int depth; /* 1 + that of outer */
} Guard;

typedef struct Part {
	const Guard *guard;
	Node *value;
	struct Part *next;
} Part;

typedef struct Adjoint {
	Node *node;
	Part *parts;	 /* what its users gave, the last first */
	uint32_t axes;	 /* those it depends on, by number */
	bool active;	 /* does a wanted tensor flow into it? */
	bool works;	 /* is its derivative more than a sign or a constant? */
	int64_t largest; /* of the wanted tensors it reads, in elements */
} Adjoint;

typedef struct Walk {
	Tape *tape;
	Ir *ir;
	Node *comp; /* over whose domain */
	int n, room;
	Adjoint *adj; /* all nodes, sources first; node n's is adj[slot[n->id] - 1] */
} Walk;

static void push(Walk *w, Adjoint a)
{
	w->adj = arena_grow(&w->ir->arena, w->adj, w->n, &w->room, sizeof a);
	w->adj[w->n++] = a;
	w->tape->slot[a.node->id] = w->n;
}

static bool is_free(const Node *n, int nactive)
{
	bool scales = n->op == OP_MUL || n->op == OP_DIV;
	if (scales)
		return node_is_const(n->src[0]) || node_is_const(n->src[1]);
	return nactive < 2 && (n->op == OP_NEG || n->op == OP_CAST || n->op == OP_TF32 ||
			       n->op == OP_SELECT || n->op == OP_ADD || n->op == OP_SUB);
}

/* Lists n and what is below it, sources first. */
static Adjoint survey(Walk *w, Node *n)
{
	int slot = w->tape->slot[n->id], nactive = 0;
	if (slot)
		return w->adj[slot - 1];
	Adjoint a = {.node = n};
	if (n->op == OP_AXIS)
		a.axes = (uint32_t)1 << n->u.i;
	if (node_draws(n)) /* another draw at each point */
		a.axes = UINT32_MAX;
	for (int k = 0; k < n->nsrc; k++) {
		if (node_is_tensor(n->src[k]))
			continue;
		Adjoint from = survey(w, n->src[k]);
		a.axes |= from.axes;
		a.works |= from.works;
		nactive += from.active;
		a.largest = from.largest > a.largest ? from.largest : a.largest;
	}
	a.active = nactive > 0 && type_is_float(n->type);
	a.works |= a.active && !is_free(n, nactive);
	if (n->op == OP_READ) {
		a.active = type_is_float(n->type) && w->tape->wanted[n->src[0]->id];
		a.works = false;
		a.largest = a.active ? tensor_size(n->src[0]) : 0;
	}
	push(w, a);
	return a;
}

/* ---- joining what several users give
 *
 * The guards of one node form a tree, since a choice sends its branches along c and !c. They are
 * joined from the outside, condition by condition, and choices become choices again, so the result
 * is as large as that tree. */

static const Guard *guard_push(Ir *ir, const Guard *outer, Node *cond)
{
	Guard *g = arena_alloc(&ir->arena, sizeof *g);
	*g = (Guard){cond, outer, outer ? outer->depth + 1 : 1};
	return g;
}

/* The conjunction, outer conditions first; NULL for none. */
static Node *guard_node(Ir *ir, const Guard *g)
{
	Node *outer = g ? guard_node(ir, g->outer) : NULL;
	return g ? node_and(ir, outer, g->cond) : NULL;
}

typedef struct Path {
	int n;
	Node **cond, *value; /* conditions from the outside */
	const Guard *guard;
} Path;

static Path path_of(Ir *ir, const Part *part)
{
	Path p = {.n = part->guard ? part->guard->depth : 0, .value = part->value};
	p.guard = part->guard;
	p.cond = arena_alloc(&ir->arena, sizeof *p.cond * (size_t)(p.n + 1));
	for (const Guard *g = part->guard; g; g = g->outer)
		p.cond[g->depth - 1] = g->cond;
	return p;
}

/* Brings the paths whose condition at `level` is x to the front; returns how many. */
static int gather(int n, Path *path, int level, const Node *x)
{
	int found = 0;
	for (int k = 0; k < n; k++)
		if (path[k].n > level && path[k].cond[level] == x) {
			Path p = path[k];
			path[k] = path[found];
			path[found++] = p;
		}
	return found;
}

/* A value under one condition; NULL: everywhere. */
typedef struct Guarded {
	Node *guard, *value;
} Guarded;

/* x ? p : q, where it has a value at all. */
static Guarded choose(Ir *ir, Node *x, Guarded p, Guarded q)
{
	Node *no = node_not(ir, x), *yes = node_and(ir, x, p.guard);
	Guarded r = {NULL, node_select(ir, x, p.value, q.value)};
	if (q.guard)
		r.guard = node2(ir, OP_OR, yes, node2(ir, OP_AND, no, q.guard));
	else if (p.guard)
		r.guard = node2(ir, OP_OR, no, p.guard);
	return r;
}

static Guarded join(Ir *ir, int n, Path *path, int level);

/* All paths that begin with the first one's condition or its opposite; *used: how many. */
static Guarded join_choice(Ir *ir, int n, Path *path, int level, int *used)
{
	Node *x = path->cond[level];
	int with = gather(n, path, level, x);
	int without = gather(n - with, path + with, level, node_not(ir, x));
	Guarded p = join(ir, with, path, level + 1);
	*used = with + without;
	if (without)
		return choose(ir, x, p, join(ir, without, path + with, level + 1));
	p.guard = node_and(ir, x, p.guard);
	return p;
}

static Guarded join(Ir *ir, int n, Path *path, int level)
{
	Guarded sum = {0};
	for (int at = 0, used = 1; at < n; at += used) {
		Guarded r = {NULL, path[at].value};
		used = 1;
		if (path[at].n > level)
			r = join_choice(ir, n - at, path + at, level, &used);
		if (!sum.value) {
			sum = r;
		} else {
			sum.value = node_add(ir, value_where(ir, sum.guard, sum.value),
					     value_where(ir, r.guard, r.value));
			sum.guard =
				sum.guard && r.guard ? node2(ir, OP_OR, sum.guard, r.guard) : NULL;
		}
	}
	return sum;
}

/* All that came, in the order in which it came. */
static Part adjoint_total(Ir *ir, const Adjoint *at)
{
	int n = 0, left, level = 0;
	for (const Part *p = at->parts; p; p = p->next)
		n++;
	if (n == 1)
		return *at->parts;
	Path *path = arena_alloc(&ir->arena, sizeof *path * (size_t)n);
	left = n;
	for (const Part *p = at->parts; p; p = p->next)
		path[--left] = path_of(ir, p);
	while (level < path->n && gather(n, path, level, path->cond[level]) == n)
		level++;
	const Guard *common = path->guard;
	while (common && common->depth > level)
		common = common->outer;
	Guarded sum = join(ir, n, path, level);
	return (Part){sum.guard ? guard_push(ir, common, sum.guard) : common, sum.value, NULL};
}

/* ---- the way back */

/* Adds value, valid under guard, to n's adjoint. */
static void give(Walk *w, Node *n, const Guard *guard, Node *value)
{
	int slot = w->tape->slot[n->id];
	if (!value || !w->adj[slot - 1].active)
		return;
	Part *part = arena_alloc(&w->ir->arena, sizeof *part);
	*part = (Part){guard, value, w->adj[slot - 1].parts};
	w->adj[slot - 1].parts = part;
}

/* value under cond too, which what leads to the choice may decide. */
static void give_branch(Walk *w, Node *n, const Part *from, Node *cond)
{
	for (const Guard *g = from->guard; g; g = g->outer) {
		if (node_opposite(g->cond, cond))
			return;
		if (g->cond == cond) {
			give(w, n, from->guard, from->value);
			return;
		}
	}
	give(w, n, guard_push(w->ir, from->guard, cond), from->value);
}

static void derive_select(Walk *w, Node *n, const Part *from)
{
	give_branch(w, n->src[1], from, n->src[0]);
	give_branch(w, n->src[2], from, node_not(w->ir, n->src[0]));
}

/* y: what holds the value of n */
static void derive_node(Walk *w, Node *n, Node *y, const Part *from)
{
	Node *a = n->src[0], *b = n->nsrc > 1 ? n->src[1] : NULL;
	for (int k = 0; k < n->nsrc && k < 2; k++)
		if (w->adj[w->tape->slot[n->src[k]->id] - 1].active)
			give(w, n->src[k], from->guard,
			     rules[n->op].side[k](w->ir, a, b, y, from->value));
}

/* ---- forwards */

/* The rules are linear in g: with the tangent of a source in its place they give what this source
 * adds to the tangent of y. */
static Node *forward_node(Forward *f, Node *n, Node *y)
{
	Node *sum = NULL, *d, *part;
	for (int k = 0; k < n->nsrc && k < 2; k++) {
		if (!(d = derive_forward(f, n->src[k], n->src[k])))
			continue;
		part = rules[n->op].side[k](f->ir, n->src[0], n->nsrc > 1 ? n->src[1] : NULL, y, d);
		if (part)
			sum = sum ? node_add(f->ir, sum, part) : part;
	}
	return sum;
}

static Node *forward_select(Forward *f, Node *n)
{
	Node *p = derive_forward(f, n->src[1], n->src[1]);
	Node *q = derive_forward(f, n->src[2], n->src[2]), *zero = node_const(f->ir, n->type, 0);
	return p || q ? node_select(f->ir, n->src[0], p ? p : zero, q ? q : zero) : NULL;
}

static Node *forward_value(Forward *f, Node *n, Node *root)
{
	Node *d;
	switch (n->op) {
	case OP_READ:
		d = f->tangent[n->src[0]->id];
		return d ? tensor_read(f->ir, d, n->src + 1) : NULL;
	case OP_SELECT:
		return forward_select(f, n);
	case OP_CAST: /* to y's type; its rule goes the other way */
		d = derive_forward(f, n->src[0], n->src[0]);
		return d ? node_cast(f->ir, n->type, d) : NULL;
	default:
		return forward_node(f, n, root);
	}
}

Node *derive_forward(Forward *f, Node *body, Node *root)
{
	if (!type_is_float(body->type) || body->nsrc == 0)
		return NULL;
	if (root != body) /* the root is right for one equation's domain only */
		return forward_value(f, body, root);
	if (!f->seen[body->id])
		f->memo[body->id] = forward_value(f, body, body);
	f->seen[body->id] = true;
	return f->memo[body->id];
}

/* ---- parts of the body that are equations of their own */

/* All axes where the condition is none of the body's. */
static uint32_t guard_axes(const Walk *w, const Guard *g)
{
	uint32_t axes = 0;
	for (; g; g = g->outer) {
		const Node *cond = g->cond;
		if (cond->op == OP_NOT)
			cond = cond->src[0];
		int slot = cond->id < w->tape->nslot ? w->tape->slot[cond->id] : 0;
		axes |= slot ? w->adj[slot - 1].axes : UINT32_MAX;
	}
	return axes;
}

static bool is_part(const Walk *w, const Adjoint *at, const Guard *guard)
{
	if (!at->works || !bears_rounding(at->node) || at->axes == UINT32_MAX ||
	    (guard_axes(w, guard) & ~at->axes))
		return false;
	const Forms *f = forms_of(w->tape, at->node);
	for (; guard; guard = guard->outer)
		f = forms_join(w->ir, f, forms_of(w->tape, guard->cond));
	return part_pays(w->comp, f, (double)at->largest);
}

static void tape_reserve(Tape *tape)
{
	size_t n = tape->ir->count;
	if (n <= tape->nslot)
		return;
	tape->nslot = 2 * n;
	tape->slot = arena_alloc(&tape->ir->arena, sizeof *tape->slot * tape->nslot);
}

enum { GUARD_PARTS = 32 };
typedef struct Known {
	int n;
	Node *from[2 * GUARD_PARTS], *to[2 * GUARD_PARTS]; /* conditions, and what they are */
} Known;

static void know(Ir *ir, Known *k, Node *guard)
{
	Node **part;
	for (int j = node_parts(ir, guard, OP_AND, &part) - 1; j >= 0; j--)
		for (int i = 0; i < 2 && k->n < COUNT(k->from); i++) {
			k->from[k->n] = i ? node_not(ir, part[j]) : part[j];
			k->to[k->n++] = node_const_int(ir, RICCI_BOOL, !i);
		}
}

/* The term of the leaf `at`; false when it is zero. Its value need not ask again what the guard
 * says. */
static bool put_term(Walk *w, Node *at, const Part *total, Term *term)
{
	Known known = {0};
	*term = (Term){w->comp, at, guard_node(w->ir, total->guard), total->value};
	if (!term->guard)
		return true;
	if (node_is_value(term->guard, 0))
		return false;
	know(w->ir, &known, term->guard);
	term->value = node_replace(w->ir, term->value, known.n, known.from, known.to);
	return !node_is_value(term->value, 0);
}

int derive_body(Tape *tape, Node *c, Node *root, Node *seed, Term **terms)
{
	Walk w = {.tape = tape, .ir = tape->ir, .comp = c};
	Node *body = factors_grouped(tape, c);
	int n = 0;

	root = root == comp_body(c) ? body : root;
	*terms = NULL;
	tape_reserve(tape);
	if (survey(&w, body).active) {
		*terms = arena_alloc(&w.ir->arena, sizeof **terms * (size_t)w.n);
		give(&w, body, NULL, seed);
	}
	for (int k = w.n - 1; k >= 0; k--) {
		Node *at = w.adj[k].node;
		if (!w.adj[k].parts)
			continue;
		Part total = adjoint_total(w.ir, &w.adj[k]);
		bool leaf = at->op == OP_READ || is_part(&w, &w.adj[k], total.guard);
		if (leaf)
			n += put_term(&w, at, &total, &(*terms)[n]);
		else if (at->op == OP_SELECT)
			derive_select(&w, at, &total);
		else
			derive_node(&w, at, at == body ? root : at, &total);
	}
	for (int k = 0; k < w.n; k++)
		tape->slot[w.adj[k].node->id] = 0;
	return n;
}

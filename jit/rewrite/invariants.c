/* invariants.c - functions of a few of an equation's axes are computed once; so are functions of a loop's constants.
 *
 * In: `Y[b,t,d] = X[b,t,d] * cos(t * pow(1e4, -d/64))`. Out: the same over C[t,d] = cos(..), an equation of its own, where
 * that is computed for few elements in place of many. What doesn't differ along the lines of the result stays: loops
 * around them compute it once a line. Reductions stay, too: their operands are packed, or are rows.
 * Of the equations of a loop's body, reductions too, those functions become equations that read nothing but what is the
 * same in all steps: scan_close takes these out. They are no larger than what they are computed from.
 * Invariant: what is computed apart reads inside its tensors whatever conditions stood around it. */
#include "jit/rewrite/products.h"

/* Elements of such a tensor, which is to stay in a cache; for so many of the result each; operations that are saved. */
static const double ELEMENTS = 1 << 16, USES = 16, SAVED = 4e5;

typedef struct Invariants {
	Ir *ir;
	const Node *c;
	const NodeMap *constant; /* a loop's; NULL: of one equation */
	NodeMap seen;		 /* expressions share parts */
	int n;
	Node *from[COMP_MAX_AXES], *to[COMP_MAX_AXES];
} Invariants;

/* May n not be computed apart: does it read what a condition around it keeps inside? */
static bool stays(const Node *n)
{
	return n->op == OP_READ && !read_stays(n);
}

/* Nor may what draws be computed before a loop: a draw is the step's. */
static bool stays_in_loop(const Node *n)
{
	return n->op == OP_RANDOM || n->op == OP_NORMAL || stays(n);
}

static bool is_function(const Node *n)
{
	return type_is_float((Type)n->type) && op_info[n->op].form == FORM_CALL &&
	       node_flops(n) > 1;
}

/* Does e read nothing but constants of the loop, no fewer bytes than it is? */
static bool is_constant(const Invariants *v, Node *e, double bytes)
{
	Node **read;
	int n = node_collect(v->ir, e, OP_READ, &read);
	bool all = true;
	for (int k = 0; k < n && all; k++) {
		bytes -= (double)tensor_bytes(read[k]->src[0]);
		all = node_map_get(v->constant, read[k]->src[0]) != NULL;
	}
	return all && bytes <= 0;
}

/* Is it worth an equation? */
static bool is_worth(const Invariants *v, Node *e, uint32_t axes)
{
	double few = product_points(v->c, axes), all = comp_points(v->c);
	if (v->constant)
		return is_constant(v, e, few * (double)type_size((Type)e->type)) &&
		       __builtin_popcount(axes) <= RICCI_MAX_RANK &&
		       node_any(v->ir, e, is_function) && !node_any(v->ir, e, stays_in_loop);
	return few <= ELEMENTS && few * USES <= all &&
	       expr_flops(v->ir, e) * (all - few) >= SAVED && node_any(v->ir, e, is_function) &&
	       !node_any(v->ir, e, stays);
}

static Node *tensor_of(const Invariants *v, Node *e, uint32_t axes)
{
	Node *axis[COMP_MAX_AXES];
	int rank = 0;
	for (int k = 0; k < comp_naxis(v->c); k++)
		if (axes >> k & 1)
			axis[rank++] = comp_axis(v->c, k);
	return node_read(v->ir, comp_dense(v->ir, RED_NONE, rank, rank, axis, e), axis);
}

/* The largest such parts of e. */
static void find(Invariants *v, Node *e)
{
	uint32_t last = tensor_rank(v->c) ? 1U << (tensor_rank(v->c) - 1) : 0, axes;
	bool number = e->type == RICCI_F32 || e->type == RICCI_F64;
	if (v->n == COMP_MAX_AXES || node_map_get(&v->seen, e))
		return;
	node_map_put(v->ir, &v->seen, e, e);
	axes = product_axes(v->c, e);
	if (!(axes & last) && !v->constant)
		return;
	if (number && is_worth(v, e, axes)) {
		v->from[v->n] = e;
		v->to[v->n++] = tensor_of(v, e, axes);
		return;
	}
	for (int k = 0; k < e->nsrc && e->op != OP_READ; k++)
		find(v, e->src[k]);
}

Node *invariants_apart(Ir *ir, Node *c)
{
	Invariants v = {.ir = ir, .c = c};
	if (comp_reduce(c) != RED_NONE || tensor_rank(c) < 2)
		return c;
	find(&v, comp_body(c));
	return v.n ? comp_with(ir, c, RED_NONE, node_replace(ir, comp_body(c), v.n, v.from, v.to))
		   : c;
}

/* ---- loops ---- */

typedef struct Constants {
	Ir *ir;
	NodeMap of; /* tensors, themselves */
} Constants;

/* c, with functions of constants apart; or c itself is one. */
static Node *constants_apart(void *user, Node *was, Node *c)
{
	Constants *k = user;
	Invariants v = {.ir = k->ir, .c = c, .constant = &k->of};
	Node **read;
	if (c->op != OP_COMP || was->op != OP_COMP)
		return c;
	int n = comp_reads(k->ir, c, &read), constants = 0;
	for (int i = 0; i < n; i++)
		constants += node_map_get(&k->of, read[i]) != NULL;
	if (constants == n && body_may_leave(k->ir, c))
		node_map_put(k->ir, &k->of, c, c);
	else if (constants)
		find(&v, comp_body(c));
	return v.n ? comp_with(k->ir, c, comp_reduce(c),
			       node_replace(k->ir, comp_body(c), v.n, v.from, v.to))
		   : c;
}

void loop_constants_apart(Ir *ir, const Scan *s, int nroot, Node **roots)
{
	Constants k = {.ir = ir};
	int first = s->nslice + s->nstate;
	for (int i = first; i < first + s->nconst; i++)
		node_map_put(ir, &k.of, s->var[i], s->var[i]);
	if (s->nconst && !s->recompute && s->bound > 1)
		graph_change(ir, nroot, roots, constants_apart, &k);
}

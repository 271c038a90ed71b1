/* invariants.c - functions of a few of an equation's axes are computed once.
 *
 * In: `Y[b,t,d] = X[b,t,d] * cos(t * pow(1e4, -d/64))`. Out: the same over C[t,d] = cos(..), an equation of its own, where
 * that is computed for few elements in place of many. What doesn't differ along the lines of the result stays: loops
 * around them compute it once a line. Reductions stay, too: their operands are packed, or are rows.
 * Invariant: what is computed apart reads inside its tensors whatever conditions stood around it. */
#include "jit/rewrite/products.h"

/* Elements of such a tensor, which is to stay in a cache; for so many of the result each; operations that are saved. */
static const double ELEMENTS = 1 << 16, USES = 16, SAVED = 4e5;

typedef struct Invariants {
	Ir *ir;
	const Node *c;
	NodeMap seen; /* expressions share parts */
	int n;
	Node *from[COMP_MAX_AXES], *to[COMP_MAX_AXES];
} Invariants;

/* May n not be computed apart: does it draw, or read what a condition around it keeps inside? */
static bool stays(const Node *n)
{
	return n->op == OP_RANDOM || n->op == OP_NORMAL || (n->op == OP_READ && !read_stays(n));
}

static bool is_function(const Node *n)
{
	return type_is_float((Type)n->type) && op_info[n->op].form == FORM_CALL &&
	       node_flops(n) > 1;
}

/* Is it worth an equation? */
static bool is_worth(const Invariants *v, Node *e, uint32_t axes)
{
	double few = product_points(v->c, axes), all = comp_points(v->c);
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
	uint32_t last = 1U << (tensor_rank(v->c) - 1), axes;
	bool number = e->type == RICCI_F32 || e->type == RICCI_F64;
	if (v->n == COMP_MAX_AXES || node_map_get(&v->seen, e))
		return;
	node_map_put(v->ir, &v->seen, e, e);
	axes = product_axes(v->c, e);
	if (!(axes & last))
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

/* precision.c - mixed precision: sums of products read their factors rounded.
 *
 * In: roots of a cleaned-up graph, a 16-bit type or TF32. Out: roots of the same types and shapes, in which
 * the f32 tensors that long sums multiply are read from copies of that type; products are exact in
 * f32 and sums stay f32, as do all other equations. A tensor is a factor where the sum reads each
 * of its elements many times, which pays for the copy; what the sum is called doesn't matter, so
 * gradients' sums round their factors too. The copies are equations like others: fusion puts them
 * into the kernels that make the tensors. TF32 is no type to copy to: a factor is rounded where it is read,
 * so that tensor cores find what they can multiply.
 */
#include "jit/rewrite/rewrite.h"

static const double reuse = 8; /* reads of an element that pay for its copy */

/* The reads that are rounded within one body. */
typedef struct Rounded {
	Ir *ir;
	Type type;
	const Node *comp;
	NodeMap seen, reading; /* terms; of products, 1 + factors_reading */
	int n;
	Node *from[32], *to[32];
} Rounded;

static Node *copy_of(Ir *ir, Type type, Node *t)
{
	Node *axis[RICCI_MAX_RANK];
	int rank = tensor_rank(t);
	tensor_axes(ir, t, axis);
	return comp_dense(ir, RED_NONE, rank, rank, axis,
			  node_cast(ir, type, node_read(ir, t, axis)));
}

/* A read, or one with a constant outside its tensor. */
static Node *read_of(Node *e)
{
	if (e->op == OP_SELECT && node_is_const(e->src[2]))
		e = e->src[1];
	return e->op == OP_READ && e->type == RICCI_F32 ? e : NULL;
}

static bool is_reused(const Rounded *r, const Node *read)
{
	return comp_points(r->comp) >= reuse * (double)tensor_size(read->src[0]);
}

static void factor_round(Rounded *r, Node *e)
{
	Node *read = read_of(e);
	if (!read || r->n == COUNT(r->from) || !is_reused(r, read))
		return;
	r->from[r->n] = read;
	if (r->type == RICCI_TF32) {
		r->to[r->n++] = node1(r->ir, OP_TF32, read);
		return;
	}
	Node *copy = copy_of(r->ir, r->type, read->src[0]);
	r->to[r->n++] = node_cast(r->ir, RICCI_F32, node_read(r->ir, copy, read->src + 1));
}

/* How many factors of e read: none, one, or more. */
static uintptr_t factors_reading(Rounded *r, Node *e)
{
	if (e->op != OP_MUL)
		return read_of(e) != NULL;
	uintptr_t n = (uintptr_t)node_map_get(&r->reading, e);
	if (!n) {
		n = factors_reading(r, e->src[0]) + factors_reading(r, e->src[1]);
		n = 1 + (n < 2 ? n : 2);
		node_map_put(r->ir, &r->reading, e, (void *)n);
	}
	return n - 1;
}

static void factors_round(Rounded *r, Node *e)
{
	Node **factor;
	int n = node_parts(r->ir, e, OP_MUL, &factor);
	for (int k = 0; k < n; k++)
		factor_round(r, factor[k]);
}

/* The products that a body adds up. */
static void terms_round(Rounded *r, Node *e)
{
	if (node_map_get(&r->seen, e))
		return;
	node_map_put(r->ir, &r->seen, e, e);
	switch (e->op) {
	case OP_ADD:
	case OP_SUB:
		terms_round(r, e->src[0]);
		terms_round(r, e->src[1]);
		break;
	case OP_NEG:
		terms_round(r, e->src[0]);
		break;
	case OP_SELECT:
		terms_round(r, e->src[1]);
		terms_round(r, e->src[2]);
		break;
	case OP_MUL:
		if (factors_reading(r, e) > 1)
			factors_round(r, e);
		break;
	default:
		break;
	}
}

/* user: a Rounded with its ir and type. */
static Node *comp_rounded(void *user, Node *was, Node *c)
{
	(void)was;
	Ir *ir = ((Rounded *)user)->ir;
	Rounded r = {.ir = ir, .type = ((Rounded *)user)->type, .comp = c};
	if (c->op != OP_COMP || c->type != RICCI_F32 || comp_reduce(c) != RED_ADD)
		return c;
	terms_round(&r, comp_body(c));
	if (!r.n)
		return c;
	Node *body = node_replace(ir, comp_body(c), r.n, r.from, r.to);
	return comp_with(ir, c, comp_reduce(c), body);
}

int rewrite_precision(Ir *ir, Type type, int nroot, Node **roots)
{
	graph_change(ir, nroot, roots, comp_rounded, &(Rounded){.ir = ir, .type = type});
	return ir->err.code;
}

/* dimensions.c - sums of products in the order of dimensions in which they are read.
 *
 * Z[j,i] = exp(C[i,j]) reads across the lines of C[i,j] += A[i,k] * B[k,j]; so C becomes C[j,i], whose tiles may be
 * stored one way as well as the other, and Z reads along its lines. In: the graph after inlining, so that who reads a
 * tensor is known. Out: roots of the same values. Only where all readers are pointwise and want the same order. */
#include "jit/fuse/internal.h"

#include <string.h>

enum {
	LINE_LEAST = 8,	 /* elements */
	TERMS_LEAST = 16 /* fewer, and how the sum is stored matters as much as how it is read */
};

typedef struct Order {
	bool known, fixed; /* fixed: the dimensions stay as they are */
	bool across;	   /* lines of a reader's result meet elements apart */
	int dim[RICCI_MAX_RANK];
} Order;

/* The last of c's axes that the index depends on; -1: none. */
static int last_axis(const Node *c, Node *index)
{
	int k = tensor_rank(c) - 1;
	while (k >= 0 && !node_has(index, comp_axis(c, k)))
		k--;
	return k;
}

/* The dimensions by the axes of the reader's result; what is constant goes before the dimension that it stands
 * before. */
static void dims_sorted(const Node *c, const Node *read, int *dim)
{
	int rank = tensor_rank(read->src[0]), key[RICCI_MAX_RANK], behind = RICCI_MAX_RANK;
	for (int d = rank - 1; d >= 0; d--) {
		int at = last_axis(c, read->src[1 + d]);
		behind = at < 0 ? behind : at;
		key[d] = behind;
	}
	for (int d = 0, n = 0; d < rank; d++, n++) {
		int at = n;
		for (; at > 0 && key[dim[at - 1]] > key[d]; at--)
			dim[at] = dim[at - 1];
		dim[at] = d;
	}
}

/* Does the reader's last axis move by more than an element, or a few, at a time? */
static bool reads_across(const Node *c, const Node *read)
{
	int inner = tensor_rank(c) - 1, d = tensor_rank(read->src[0]) - 1;
	int64_t behind = 1;
	while (inner > 0 && tensor_extent(c, inner) == 1)
		inner--;
	for (; d >= 0 && !node_has(read->src[1 + d], comp_axis(c, inner)); d--)
		behind *= tensor_extent(read->src[0], d);
	return d >= 0 && behind >= LINE_LEAST;
}

static bool reads_in_index(Ir *ir, const Node *read)
{
	for (int d = 0; d < tensor_rank(read->src[0]); d++)
		if (node_reads(ir, read->src[1 + d]))
			return true;
	return false;
}

static void see_reader(Ir *ir, Node *t, const Node *c, Order *o)
{
	int dim[RICCI_MAX_RANK];
	if (c->op != OP_COMP || !comp_is_dense(c) || comp_reduce(c) != RED_NONE ||
	    tensor_rank(c) == 0) {
		o->fixed = true;
		return;
	}
	Reads r = fuse_reads(ir, c, t);
	for (int k = 0; k < r.n && !o->fixed; k++) {
		dims_sorted(c, r.read[k], dim);
		o->across |= reads_across(c, r.read[k]);
		for (int d = 0; d < tensor_rank(t); d++)
			o->fixed |= o->known && o->dim[d] != dim[d];
		o->fixed |= reads_in_index(ir, r.read[k]);
		memcpy(o->dim, dim, sizeof dim);
		o->known = true;
	}
}

/* In which order is t read? False: it stays as it is. */
static bool order_of(Ir *ir, Node *t, const Use *uses, Order *o)
{
	*o = (Order){0};
	if (t->op != OP_COMP || !comp_is_dense(t) || comp_reduce(t) != RED_ADD ||
	    comp_body(t)->op != OP_MUL || comp_points(t) < TERMS_LEAST * (double)tensor_size(t))
		return false;
	for (const Use *u = uses; u && !o->fixed; u = u->next)
		see_reader(ir, t, u->reader, o);
	bool moves = false;
	for (int d = 0; d < tensor_rank(t); d++)
		moves |= o->dim[d] != d;
	return o->known && !o->fixed && o->across && moves;
}

static Node *in_order(Ir *ir, const Node *t, const Order *o)
{
	Node *axes[COMP_MAX_AXES];
	int rank = tensor_rank(t);
	for (int k = 0; k < comp_naxis(t); k++)
		axes[k] = comp_axis(t, k < rank ? o->dim[k] : k);
	return comp_dense(ir, comp_reduce(t), rank, comp_naxis(t), axes, comp_body(t));
}

/* A sum in its new order; readers of the old one are over it. */
typedef struct Moved {
	Node *is;
	Order order;
} Moved;

typedef struct Moves {
	Ir *ir;
	Use **uses; /* by id of the original */
	bool *root;
	NodeMap moved; /* Moved by the sum as it was */
} Moves;

/* c, whose reads of sums that were moved are of what they are now. */
static Node *reads_moved(Moves *v, Node *c)
{
	Ir *ir = v->ir;
	Reads r = fuse_reads_in(ir, comp_body(c));
	Node **to = arena_alloc(&ir->arena, ((size_t)r.n + 1) * sizeof *to);
	int n = 0;
	for (int k = 0; k < r.n; k++) {
		const Moved *m = node_map_get(&v->moved, r.read[k]->src[0]);
		Node *index[RICCI_MAX_RANK];
		for (int d = 0; m && d < tensor_rank(m->is); d++)
			index[d] = r.read[k]->src[1 + m->order.dim[d]];
		if (m) {
			r.read[n] = r.read[k];
			to[n++] = node_read(ir, m->is, index);
		}
	}
	return n ? comp_with(ir, c, comp_reduce(c), node_replace(ir, comp_body(c), n, r.read, to))
		 : c;
}

static Node *sum_moved(void *user, Node *was, Node *c)
{
	Moves *v = user;
	Order order;
	if (c->op != OP_COMP)
		return c;
	c = reads_moved(v, c);
	if (v->root[was->id] || !order_of(v->ir, was, v->uses[was->id], &order))
		return c;
	Moved *m = arena_alloc(&v->ir->arena, sizeof *m);
	*m = (Moved){in_order(v->ir, c, &order), order};
	node_map_put(v->ir, &v->moved, c, m);
	return c;
}

void fuse_dimensions(Fuse *f, int nroot, Node **roots)
{
	Ir *ir = f->ir;
	Node **order;
	int n = graph_order(ir, nroot, roots, &order);
	Moves v = {ir, fuse_uses(ir, n, order), arena_alloc(&ir->arena, ir->count), {0}};
	for (int k = 0; k < nroot; k++)
		v.root[roots[k]->id] = true;
	graph_change(ir, nroot, roots, sum_moved, &v);
}

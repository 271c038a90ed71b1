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

/* Reads of t become reads of `now`. */
static Node *reads_moved(Ir *ir, Node *c, Node *t, Node *now, const Order *o)
{
	Reads r = fuse_reads(ir, c, t);
	Node **to = arena_alloc(&ir->arena, ((size_t)r.n + 1) * sizeof *to);
	for (int k = 0; k < r.n; k++) {
		Node *index[RICCI_MAX_RANK];
		for (int d = 0; d < tensor_rank(t); d++)
			index[d] = r.read[k]->src[1 + o->dim[d]];
		to[k] = node_read(ir, now, index);
	}
	return r.n ? comp_with(ir, c, comp_reduce(c),
			       node_replace(ir, comp_body(c), r.n, r.read, to))
		   : c;
}

void fuse_dimensions(Fuse *f, int nroot, Node **roots)
{
	Ir *ir = f->ir;
	Node **order;
	NodeMap now = {0};
	int n = graph_order(ir, nroot, roots, &order), nmoved = 0;
	Use **uses = fuse_uses(ir, n, order);
	bool *root = arena_alloc(&ir->arena, ir->count);
	struct {
		Node *was, *is;
		Order order;
	} *moved = arena_alloc(&ir->arena, ((size_t)n + 1) * sizeof *moved);
	for (int k = 0; k < nroot; k++)
		root[roots[k]->id] = true;
	for (int k = 0; k < n; k++) {
		Node *c = tensor_over(ir, order[k], &now);
		for (int i = 0; i < nmoved && c->op == OP_COMP; i++)
			c = reads_moved(ir, c, moved[i].was, moved[i].is, &moved[i].order);
		node_map_put(ir, &now, order[k], c);
		if (root[order[k]->id] ||
		    !order_of(ir, order[k], uses[order[k]->id], &moved[nmoved].order))
			continue;
		moved[nmoved].was = c;
		moved[nmoved].is = in_order(ir, c, &moved[nmoved].order);
		nmoved++;
	}
	for (int k = 0; k < nroot; k++)
		roots[k] = node_map_get(&now, roots[k]);
}

/* needs.c - reads that lie inside their tensors because data are checked when they are fed.
 * In: an expression, and the contracts of integer inputs (Ir.need). Out: whether these and the bounds of indices keep all
 * it reads inside, whatever the conditions around it. */
#include "core/algebra/algebra.h"

/* The contract of the input that e is an element of, or of a moved copy of it; NULL: it is none, or has none. */
static const Need *need_of(const Ir *ir, const Node *e)
{
	while (cast_keeps(e))
		e = e->src[0];
	const Need *n = e->op == OP_READ ? ir->need : NULL;
	const Node *input = n ? tensor_moved(e->src[0]) : NULL;
	while (n && n->input != input)
		n = n->next;
	return n;
}

static bool index_stays(Ir *ir, Node *index, int64_t extent)
{
	Affine a = affine_of(ir, index);
	__int128 lo = a.c, hi = a.c;
	for (int k = 0; k < a.n; k++) {
		const Node *x = a.atom[k];
		const Need *n = need_of(ir, x);
		__int128 low = n ? n->lo : x->lo, high = n ? n->hi : x->hi;
		lo += a.k[k] * (a.k[k] > 0 ? low : high);
		hi += a.k[k] * (a.k[k] > 0 ? high : low);
	}
	return lo >= 0 && hi < extent;
}

bool read_lies_inside(Ir *ir, const Node *read)
{
	bool inside = true;
	for (int d = 0; d < tensor_rank(read->src[0]) && inside; d++) {
		Node *index = read->src[1 + d];
		int64_t extent = tensor_extent(read->src[0], d);
		inside = (index->lo >= 0 && index->hi < extent) || index_stays(ir, index, extent);
	}
	return inside;
}

bool reads_lie_inside(Ir *ir, Node *e)
{
	Node **read;
	int n = node_collect(ir, e, OP_READ, &read);
	bool all = true;
	for (int k = 0; k < n && all; k++)
		all = read_lies_inside(ir, read[k]);
	return all;
}

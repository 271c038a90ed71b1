/* sums.c - a reduction of what another one makes, as one reduction.
 *
 * In: an equation `Y red= T[..]` that reads no element of T twice, where the same reduction makes T and
 * nothing else reads it. Out: `Y red= ` what T reduces, over the axes of both. It takes no more
 * points, and T, which can be the largest tensor of all (each step's part of a weight's gradient),
 * needs no memory.
 * Of sums, Y may multiply T by other factors, and read it anyhow, if what is then one sum of products has partial sums that
 * cost less than both did: `S[i,j] += Q[i,c] * K[j,c]; Y[i,d] += S[i,j] * V[j,d]` sums over j first. The gradient of a
 * convolution behind an upsampling is such. Where several equations, and nothing else, read T like this, each has it as a
 * sum of its own if all of them together cost less: so are gradients of tensors put side by side.
 * Invariant: only the order of summation differs. */
#include "jit/rewrite/products.h"

/* Do all of c's points read other elements of the tensor, at indices of which each is an axis, or of one element? */
static bool reads_once(Ir *ir, const Node *c, const Node *read)
{
	Node *axis[COMP_MAX_AXES], *const *index = read->src + 1;
	bool has[COMP_MAX_AXES];
	int rank = tensor_rank(read->src[0]), naxis = comp_naxis(c);
	for (int k = 0; k < naxis; k++)
		axis[k] = comp_axis(c, k);
	if (!read_stays(read) || !indices_one_to_one(ir, naxis, axis, rank, index, has))
		return false;
	for (int k = 0; k < naxis; k++)
		if (!has[k] && axis_extent(axis[k]) > 1)
			return false;
	for (int d = 0; d < rank; d++)
		if (!node_is_const(index[d]) && index[d]->op != OP_AXIS)
			return false;
	return true;
}

/* Does c read t once, in its body and under no function but a product? The read; NULL: it doesn't. */
static Node *read_as_factor(Ir *ir, const Node *c, const Node *t)
{
	Node **read, *found = NULL;
	int n = node_collect(ir, comp_body(c), OP_READ, &read);
	for (int k = 0; k < n; k++) {
		if (read[k]->src[0] != t)
			continue;
		if (found)
			return NULL;
		found = read[k];
	}
	for (int d = 0; d < tensor_rank(c) && found; d++) {
		n = node_collect(ir, comp_lhs(c, d), OP_READ, &read);
		for (int k = 0; k < n; k++)
			if (read[k]->src[0] == t)
				return NULL;
	}
	return found;
}

/* The body of c, the product of factors of which this read is one, with e in its place; NULL: it is no factor. */
static Node *factor_replaced(Ir *ir, const Node *c, const Node *read, Node *e)
{
	if (comp_body(c) == read)
		return e;
	Factors l = product_split(ir, c, comp_body(c));
	for (int k = 0; k < l.n; k++)
		if (l.f[k].value == read && (l.f[k].cond || read_stays(read))) {
			l.f[k].value = e;
			return product_of(&l, l.n, l.f);
		}
	return NULL;
}

static bool can_join(const Node *c, const Node *sum)
{
	Reduce red = comp_reduce(sum);
	return comp_is_dense(sum) && type_accumulator((Type)sum->type) == (Type)sum->type &&
	       (comp_reduce(c) == red || (comp_reduce(c) == RED_NONE && red == RED_ADD)) &&
	       comp_naxis(c) + comp_naxis(sum) - tensor_rank(sum) <= COMP_MAX_AXES;
}

Node *reduction_inside(Ir *ir, Node *c, const Node *t, const Node *sum)
{
	Node *axes[COMP_MAX_AXES], *from[COMP_MAX_AXES], *to[COMP_MAX_AXES];
	Node *read = can_join(c, sum) ? read_as_factor(ir, c, t) : NULL;
	bool product = type_is_float((Type)c->type) && comp_reduce(sum) == RED_ADD;
	if (!read || (comp_body(c) != read && !product))
		return NULL;
	int n = comp_naxis(c), rank = tensor_rank(sum), d = 0;
	for (int k = 0; k < n; k++)
		axes[k] = comp_axis(c, k);
	for (; d < comp_naxis(sum); d++) {
		from[d] = comp_axis(sum, d);
		to[d] = d < rank ? read->src[1 + d]
				 : node_axis(ir, COMP_MAX_AXES + d, axis_extent(from[d]));
		if (d >= rank)
			axes[n++] = to[d];
	}
	Node *e = node_replace(ir, comp_body(sum), d, from, to);
	e = factor_replaced(ir, c, read, e);
	return e ? repeats_counted(ir, comp_over(ir, c, comp_reduce(sum), n, axes, e)) : NULL;
}

Node *reduction_joined(Ir *ir, Node *c, const Node *t, Node *sum)
{
	Node *both = comp_reduce(c) ? reduction_inside(ir, c, t, sum) : NULL;
	if (!both)
		return c;
	if (comp_body(c)->op == OP_READ && t->op == OP_COMP && comp_reduce(t) == comp_reduce(c) &&
	    reads_once(ir, c, comp_body(c)))
		/* (Running sums take fewer points apart.) */
		return comp_work(ir, both, 0) <= comp_work(ir, c, 0) + comp_work(ir, sum, 0) ? both
											     : c;
	return sums_cost_less(ir, 1, &both, sum, &c) ? both : c;
}

bool reduction_shared(Ir *ir, const Node *t, Node *sum, int n, Node *const *reader)
{
	Node *both[READERS_MOST];
	bool sums = false;
	for (int k = 0; k < n; k++) {
		sums |= comp_reduce(reader[k]) == RED_ADD;
		if (!(both[k] = reduction_inside(ir, reader[k], t, sum)))
			return false;
	}
	return sums && sums_cost_less(ir, n, both, sum, reader);
}

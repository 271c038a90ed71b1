/* ranges.c - a reduction runs over the part of its domain where its conditions can hold.
 *
 * In: an equation `Y[i,n] += n < 4 ? A[i,k]*B[k,n] : 0 where n < 12`. Out: T[i,n] += A[i,k]*B[k,n] where n < 4, and
 * Y[i,n] = n < 4 ? T[i,n] : 0, which goes to those that read it. Gradients of slices and of pieces that are put together
 * are such, and conditions in their places are decided then, too.
 * Invariants: elements that nothing reaches are what a reduction starts from. */
#include "jit/rewrite/products.h"

enum { CONDITIONS = 32, LOOKED_AT = 64 };
/* A shorter range of the left side's axes has to leave out a quarter of them, and an element to have a few terms, unless
 * they are scattered: it is an equation more. */
static const double WORTH = 0.75, TERMS = 8;

static bool is_condition(const Node *n)
{
	return n->type == RICCI_BOOL;
}

Node *conditions_decided(Ir *ir, Node *e)
{
	return node_any(ir, e, is_condition) ? poly_simplify(poly_new(ir), e) : e;
}

/* Narrows lo..hi to where cond can hold, as far as that is known of the axis alone: lo > hi where it can't. left: of so
 * many more conditions; parts that are shared count each time. */
static void range_where(Ir *ir, Node *cond, Node *axis, int64_t *lo, int64_t *hi, int *left)
{
	Node *seen[COMP_MAX_AXES];
	int64_t from[2] = {*lo, *lo}, to[2] = {*hi, *hi};
	if (--*left < 0)
		return;
	if (cond->op == OP_AND || cond->op == OP_OR) {
		for (int k = 0; k < 2; k++)
			range_where(ir, cond->src[k], axis, &from[k], &to[k], left);
		bool both = cond->op == OP_AND, none[] = {from[0] > to[0], from[1] > to[1]};
		int only = none[0] ? 1 : 0;
		if (!both && (none[0] || none[1])) {
			*lo = from[only];
			*hi = to[only];
		} else {
			*lo = (from[0] > from[1]) == both ? from[0] : from[1];
			*hi = (to[0] < to[1]) == both ? to[0] : to[1];
		}
	} else if (node_axes(ir, 1, &cond, seen) == 1 && seen[0] == axis) {
		Polyhedron *p = poly_new(ir);
		poly_assume(p, cond);
		if (poly_is_empty(p))
			*hi = *lo - 1;
		else if (poly_bounds(p, axis, &from[0], &to[0])) {
			*lo = from[0] > *lo ? from[0] : *lo;
			*hi = to[0] < *hi ? to[0] : *hi;
		}
	}
}

/* Do the conditions leave the axis a part of its extent, and something? */
static bool axis_range(Ir *ir, int n, Node *const *cond, Node *axis, int64_t *lo, int64_t *hi)
{
	int left = LOOKED_AT;
	*lo = 0;
	*hi = axis_extent(axis) - 1;
	for (int k = 0; k < n; k++)
		range_where(ir, cond[k], axis, lo, hi, &left);
	return *lo <= *hi && *hi - *lo + 1 < axis_extent(axis);
}

/* Axes of c, those that have a shorter range, and are worth it, replaced: which, and by what. */
static int axes_narrowed(Ir *ir, const Node *c, double worth, Node **axis, Node **from, Node **to)
{
	bool few = worth < 1 && comp_is_dense(c) && comp_points(c) < TERMS * (double)tensor_size(c);
	uint32_t left = product_left(c);
	Node *cond[CONDITIONS];
	int n = 0, nfrom = 0;
	int64_t lo, hi;
	reduce_guards(ir, comp_reduce(c), comp_body(c), CONDITIONS, &n, cond);
	for (int k = 0; k < comp_naxis(c); k++) {
		Node *a = axis[k] = comp_axis(c, k);
		if (!axis_range(ir, n, cond, a, &lo, &hi) ||
		    (left >> k & 1 &&
		     (few || (double)(hi - lo + 1) > worth * (double)axis_extent(a))))
			continue;
		axis[k] = node_axis(ir, k, hi - lo + 1);
		from[nfrom] = a;
		to[nfrom++] = node2(ir, OP_ADD, axis[k], node_int(ir, lo));
	}
	return nfrom;
}

static Node *narrowed(Ir *ir, Node *c, double worth, int64_t *first)
{
	Node *axis[COMP_MAX_AXES], *from[COMP_MAX_AXES], *to[COMP_MAX_AXES], *lhs[RICCI_MAX_RANK];
	int64_t shape[RICCI_MAX_RANK];
	int rank = tensor_rank(c), n = 0;
	if (comp_reduce(c) && comp_body(c)->op == OP_SELECT)
		n = axes_narrowed(ir, c, worth, axis, from, to);
	if (!n)
		return c;
	for (int d = 0; d < rank; d++) {
		lhs[d] = conditions_decided(ir, node_replace(ir, comp_lhs(c, d), n, from, to));
		int64_t last = tensor_extent(c, d) - 1; /* data that are indices may be anything */
		first[d] = lhs[d]->lo > 0 ? lhs[d]->lo : 0;
		shape[d] = (lhs[d]->hi < last ? lhs[d]->hi : last) - first[d] + 1;
		lhs[d] = first[d] ? node2(ir, OP_SUB, lhs[d], node_int(ir, first[d])) : lhs[d];
	}
	Node *body = conditions_decided(ir, node_replace(ir, comp_body(c), n, from, to));
	return comp_make(ir, comp_reduce(c), rank, shape, lhs, comp_naxis(c), axis, body);
}

Node *range_narrowed(Ir *ir, Node *c, int64_t *first)
{
	return narrowed(ir, c, WORTH, first);
}

Node *range_cut(Ir *ir, Node *c, int64_t *first)
{
	return narrowed(ir, c, 1, first);
}

Node *range_placed(Ir *ir, const Node *c, const int64_t *first, Node *part)
{
	Node *axis[RICCI_MAX_RANK], *at[RICCI_MAX_RANK],
		*inside = node_const_int(ir, RICCI_BOOL, 1);
	Type type = (Type)c->type;
	int rank = tensor_rank(c);
	if (tensor_same_shape(c, part))
		return part;
	tensor_axes(ir, c, axis);
	for (int d = 0; d < rank; d++) {
		at[d] = node2(ir, OP_SUB, axis[d], node_int(ir, first[d]));
		inside = node2(ir, OP_AND, inside, node2(ir, OP_LE, node_int(ir, 0), at[d]));
		inside = node2(ir, OP_AND, inside,
			       node2(ir, OP_LT, at[d], node_int(ir, tensor_extent(part, d))));
	}
	Node *none = node_identity(ir, comp_reduce(c), type, type);
	Node *body = node_select(ir, inside, node_read(ir, part, at), none);
	return comp_dense(ir, RED_NONE, rank, rank, axis, body);
}

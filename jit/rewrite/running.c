/* running.c - reductions that run, as two equations.
 *
 * One that runs along two axes at once becomes two that run along one each (an integral image:
 * Y[i,k] += X[j,l] where j <= i, l <= k; first T[i,l] += X[j,l] where j <= i). A sum that runs but
 * for a factor that another of its axes is in is taken first without (the gradient of linear
 * attention's state: Y[i,d] += X[j,d,e] * V[i,e] where j >= i; first T[i,d,e] += X[j,d,e]).
 *
 * Input: an equation. Output: the same, or the second of two. Invariant: each point is summed once;
 * what the first leaves is of the type that sums have. */
#include "jit/rewrite/products.h"

/* Does another dimension run, over another axis? */
static bool runs_beside(Ir *ir, const Node *c, int at, const Running *r)
{
	for (int d = 0; d < tensor_rank(c); d++) {
		Running other;
		if (d != at && comp_running(ir, c, d, &other) && other.over != r->over)
			return true;
	}
	return false;
}

/* Is the axis that dimension `at` runs over the only reduced one that the condition asks for? */
static bool asks_alone(const Node *c, const Running *r)
{
	for (int k = tensor_rank(c); k < comp_naxis(c); k++)
		if (k != r->over && node_has(r->e, comp_axis(c, k)))
			return false;
	return true;
}

/* Dimension `at` is summed last. */
static Node *sum_apart(Ir *ir, const Node *c, int at, const Running *r)
{
	Node *axes[COMP_MAX_AXES], *over = comp_axis(c, r->over);
	int rank = tensor_rank(c), n = rank;
	Type t = (Type)c->type;
	Reduce red = comp_reduce(c);
	Node *start = node_identity(ir, red, t, t);
	Node *cond = node_const_int(ir, RICCI_BOOL, 1);
	for (int k = 0; k < comp_naxis(c); k++)
		if (k < rank)
			axes[k] = k == at ? over : comp_axis(c, k);
		else if (k != r->over)
			axes[n++] = comp_axis(c, k);
	for (int k = 0; k < r->ncond; k++)
		cond = node2(ir, OP_AND, cond, r->cond[k]);
	Node *first = comp_dense(ir, red, rank, n, axes, node_select(ir, cond, r->body, start));
	Node *sum = node_read(ir, running_apart(ir, first), axes);
	axes[at] = comp_axis(c, at);
	axes[rank] = over;
	cond = node2(ir, OP_LE, node_int(ir, 0), r->e);
	return comp_dense(ir, red, rank, rank + 1, axes, node_select(ir, cond, sum, start));
}

/* ---- beside another sum */

/* The first equation may have so many times the elements of what is there anyway. */
enum { MOST_GROWTH = 4 };

/* outer has the running axis, dimension `at` of c, inner has not; both are products. */
static bool factors_split(Ir *ir, const Node *c, Node *body, int at, Node **outer, Node **inner)
{
	Factors l = product_split(ir, c, body);
	int n = product_part(&l, 1U << at);
	*outer = product_of(&l, n, l.f);
	*inner = product_of(&l, l.n - n, l.f + n);
	return n && n < l.n;
}

typedef struct Axes {
	int n;
	Node *at[COMP_MAX_AXES];
} Axes;

static bool axes_have(const Axes *a, const Node *axis)
{
	for (int k = 0; k < a->n; k++)
		if (a->at[k] == axis)
			return true;
	return false;
}

/* The dimensions of the first sum in the order of what it reads: `axis` stands where that has the
 * axis that is summed along it. */
static Axes first_axes(Ir *ir, Node *axis, const Axes *sum, Node *cond, Node *inner)
{
	Axes seen, keep = {0};
	seen.n = node_axes(ir, 1, &inner, seen.at);
	for (int k = 0; k < seen.n; k++)
		if (!axes_have(sum, seen.at[k]))
			keep.at[keep.n++] = seen.at[k];
		else if (node_has(cond, seen.at[k]) && !axes_have(&keep, axis))
			keep.at[keep.n++] = axis;
	return keep;
}

/* Elements of the largest tensor that e reads. */
static double most_read(Ir *ir, Node *e)
{
	Node **read;
	double most = 0;
	for (int k = node_collect(ir, e, OP_READ, &read) - 1; k >= 0; k--) {
		double size = (double)tensor_size(read[k]->src[0]);
		most = size > most ? size : most;
	}
	return most;
}

/* Is the first sum worth its memory, and does it take fewer points? */
static bool is_worth(Ir *ir, const Node *c, Node *first, double points, Node *outer, Node *inner)
{
	double room = most_read(ir, outer), more = most_read(ir, inner);
	room = more > room ? more : room;
	return reads_lie_inside(ir, outer) &&
	       (double)tensor_size(first) <= MOST_GROWTH * (room + (double)tensor_size(c)) &&
	       comp_work(ir, first, 0) + points <= comp_points(c) / RUNNING_LEAST;
}

/* The sum of `inner` along dimension `at` of c before its product with `outer`; NULL where that is
 * not worth it. */
static Node *sum_first(Ir *ir, const Node *c, int at, Node *cond, Node *outer, Node *inner)
{
	Axes sum = {0}, second = {0};
	Node *axis = comp_axis(c, at), *zero = node_const(ir, c->type, 0);
	int rank = tensor_rank(c), where = 0;
	double points = 1;
	for (int k = 0; k < comp_naxis(c); k++)
		if (k < rank || node_has(outer, comp_axis(c, k))) {
			second.at[second.n++] = comp_axis(c, k);
			points *= (double)axis_extent(comp_axis(c, k));
		} else {
			sum.at[sum.n++] = comp_axis(c, k);
		}
	Axes keep = first_axes(ir, axis, &sum, cond, inner);
	while (where < keep.n && keep.at[where] != axis)
		where++;
	if (where == keep.n || keep.n > RICCI_MAX_RANK || second.n == rank)
		return NULL;
	Axes all = keep;
	for (int k = 0; k < sum.n; k++)
		all.at[all.n++] = sum.at[k];
	Node *first =
		comp_dense(ir, RED_ADD, keep.n, all.n, all.at, node_select(ir, cond, inner, zero));
	Running r;
	if (!comp_running(ir, first, where, &r) || !is_worth(ir, c, first, points, outer, inner))
		return NULL;
	Node *some = running_some(ir, r.e, comp_naxis(first) - keep.n, first->src + keep.n);
	some = node_replace(ir, some, keep.n, first->src, keep.at);
	Node *body = node2(ir, OP_MUL, outer, node_read(ir, first, keep.at));
	return comp_dense(ir, RED_ADD, rank, second.n, second.at,
			  node_select(ir, some, body, zero));
}

/* c where one dimension runs but for a factor. */
static Node *running_beside(Ir *ir, Node *c)
{
	Node *cond[RUNNING_CONDITIONS], *outer, *inner, *body;
	int n;
	if (comp_reduce(c) != RED_ADD || !comp_is_dense(c) || !type_is_float((Type)c->type))
		return NULL;
	body = reduce_guards(ir, RED_ADD, comp_body(c), RUNNING_CONDITIONS, &n, cond);
	for (int d = tensor_rank(c) - 1; d >= 0 && n == 1; d--) {
		Node *apart = NULL;
		if (node_has(cond[0], comp_axis(c, d)) &&
		    factors_split(ir, c, body, d, &outer, &inner))
			apart = sum_first(ir, c, d, cond[0], outer, inner);
		if (apart)
			return apart;
	}
	return NULL;
}

Node *running_apart(Ir *ir, Node *c)
{
	bool exact = type_accumulator((Type)c->type) == (Type)c->type;
	Node *beside = exact ? running_beside(ir, c) : NULL;
	if (beside)
		return beside;
	for (int d = tensor_rank(c) - 1; d >= 0; d--) {
		Running r;
		if (exact && comp_running(ir, c, d, &r) && !r.factor && !r.divisor &&
		    asks_alone(c, &r) && runs_beside(ir, c, d, &r))
			return sum_apart(ir, c, d, &r);
	}
	return c;
}

/* factor.c - sums of products with as few products as they need.
 *
 * Input: a value that is summed over some axes. It is read as a sum of products; factors that don't
 * depend on the axes leave the sum, products that then are alike become one, and each sum runs over
 * the axes that it depends on only:  s[i] += a[i,j]*b[i] + c[j]  is  b[i] * T[i] + U[]. Output: the
 * tensor of the sums, an equation over others where that takes fewer multiply-adds, else one
 * equation. Invariant: equal to the plain sum but for rounding; what is evaluated outside a sum was
 * evaluated at each of its points.
 */
#include "autodiff/internal.h"

enum { MAX_PRODUCTS = 16, MAX_GROUPS = 4 };

typedef struct Products {
	bool too_many;
	int n;
	Product at[MAX_PRODUCTS];
} Products;

bool product_read(Product *p, Node *e, bool divides)
{
	if (e->op == OP_MUL || e->op == OP_DIV)
		return product_read(p, e->src[0], divides) &&
		       product_read(p, e->src[1], divides != (e->op == OP_DIV));
	if (e->op == OP_NEG) {
		p->minus = !p->minus;
		return product_read(p, e->src[0], divides);
	}
	if (p->n == MAX_FACTORS)
		return false;
	p->at[p->n++] = (Factor){e, divides};
	return true;
}

static void products_read(Products *all, Node *e, bool minus)
{
	if (all->n == MAX_PRODUCTS || all->too_many) {
		all->too_many = true;
	} else if (e->op == OP_ADD || e->op == OP_SUB) {
		products_read(all, e->src[0], minus);
		products_read(all, e->src[1], minus != (e->op == OP_SUB));
	} else if (e->op == OP_NEG) {
		products_read(all, e->src[0], !minus);
	} else {
		Product *p = &all->at[all->n++];
		*p = (Product){.minus = minus};
		all->too_many |= !product_read(p, e, false);
	}
}

/* NULL for an empty product. */
static Node *factors_node(Ir *ir, int n, const Factor *at, Type type)
{
	Node *out = NULL;
	for (int k = 0; k < n; k++)
		if (!at[k].divides)
			out = out ? node_mul(ir, out, at[k].node) : at[k].node;
	for (int k = 0; k < n; k++)
		if (at[k].divides)
			out = node2(ir, OP_DIV, out ? out : node_const(ir, type, 1), at[k].node);
	return out;
}

Node *product_node(Ir *ir, const Product *p, Type type)
{
	Node *e = factors_node(ir, p->n, p->at, type);
	return p->minus ? node1(ir, OP_NEG, e) : e;
}

/* ---- what depends on what */

static void see_axis(void *user, Node *n)
{
	uint64_t *axes = user;
	if (n->op == OP_AXIS)
		*axes |= (uint64_t)1 << n->u.i;
	if (node_draws(n))
		*axes = UINT64_MAX;
}

uint64_t axes_in(Ir *ir, Node *e)
{
	uint64_t axes = 0;
	if (e)
		node_walk(ir, e, see_axis, &axes);
	return axes;
}

uint64_t axes_mask(int n, Node *const *axes)
{
	uint64_t mask = 0;
	for (int k = 0; k < n; k++)
		mask |= (uint64_t)1 << axes[k]->u.i;
	return mask;
}

double axes_points(int n, Node *const *axes, uint64_t mask)
{
	double points = 1;
	for (int k = 0; k < n; k++)
		if (mask >> axes[k]->u.i & 1)
			points *= (double)axis_extent(axes[k]);
	return points;
}

static void see_product(void *user, Node *n)
{
	*(int *)user += (n->op == OP_MUL || n->op == OP_DIV) && type_is_float(n->type) &&
			!node_is_const(n->src[0]) && !node_is_const(n->src[1]);
}

/* Multiply-adds of one point of the sum of e. */
static double point_cost(Ir *ir, Node *e)
{
	int products = 0;
	node_walk(ir, e, see_product, &products);
	return products > 1 ? products : 1;
}

/* ---- groups */

/* outer * the sum of inner; NULL stands for 1. */
typedef struct Group {
	Node *outer, *inner;
} Group;

typedef struct Groups {
	Ir *ir;
	const Frame *frame;
	Type type;
	int n;
	Group at[MAX_PRODUCTS];
} Groups;

static Node *one_or(const Groups *g, Node *e)
{
	return e ? e : node_const(g->ir, g->type, 1);
}

/* Constants go with the outer factors where there are such. */
static Group group_of(const Groups *g, const Product *p)
{
	Factor outer[MAX_FACTORS], inner[MAX_FACTORS];
	uint64_t summed = axes_mask(g->frame->nsum, g->frame->sum);
	int nouter = 0, ninner = 0, constants = 0;
	for (int k = 0; k < p->n; k++)
		constants += node_is_const(p->at[k].node);
	for (int k = 0; k < p->n; k++)
		if (!(axes_in(g->ir, p->at[k].node) & summed))
			outer[nouter++] = p->at[k];
	bool leaves = nouter > constants || nouter == p->n;
	nouter = 0;
	for (int k = 0; k < p->n; k++)
		if (leaves && !(axes_in(g->ir, p->at[k].node) & summed))
			outer[nouter++] = p->at[k];
		else
			inner[ninner++] = p->at[k];
	Group out = {factors_node(g->ir, nouter, outer, g->type),
		     factors_node(g->ir, ninner, inner, g->type)};
	if (p->minus)
		out.outer = node1(g->ir, OP_NEG, one_or(g, out.outer));
	return out;
}

/* Equal sums become one, then sums with equal factors. */
static void groups_put(Groups *g, Group more)
{
	for (int k = 0; k < g->n; k++)
		if (g->at[k].inner == more.inner) {
			g->at[k].outer =
				node_add(g->ir, one_or(g, g->at[k].outer), one_or(g, more.outer));
			return;
		}
	g->at[g->n++] = more;
}

static void groups_merge(Groups *g)
{
	int n = 0;
	for (int k = 0; k < g->n; k++) {
		int same = 0;
		while (same < n && g->at[same].outer != g->at[k].outer)
			same++;
		if (same < n)
			g->at[same].inner = node_add(g->ir, one_or(g, g->at[same].inner),
						     one_or(g, g->at[k].inner));
		else
			g->at[n++] = g->at[k];
	}
	g->n = n;
}

/* ---- equations */

static bool is_dense(const Frame *f)
{
	bool dense = f->nkeep == f->rank;
	for (int d = 0; d < f->rank && dense; d++)
		dense = f->lhs[d] == f->keep[d] && axis_extent(f->keep[d]) == f->shape[d];
	return dense;
}

/* The axes that a sum of e needs: all kept ones where they make the left side. */
static uint64_t group_axes(Ir *ir, const Frame *f, Node *e)
{
	uint64_t kept = axes_mask(f->nkeep, f->keep);
	if (!e)
		return 0;
	return axes_in(ir, e) | axes_in(ir, f->cond) | (is_dense(f) ? 0 : kept);
}

static Node *plain_sum(Ir *ir, const Frame *f, Node *value)
{
	Node *axes[COMP_MAX_AXES];
	for (int k = 0; k < f->nkeep + f->nsum; k++)
		axes[k] = k < f->nkeep ? f->keep[k] : f->sum[k - f->nkeep];
	return comp_make(ir, RED_ADD, f->rank, f->shape, f->lhs, f->nkeep + f->nsum, axes,
			 value_where(ir, f->cond, value));
}

/* The frame over some of its axes. A dense one loses the dimensions of the kept axes that it loses;
 * dim[]: which are left. */
static Frame frame_part(Ir *ir, const Frame *f, uint64_t axes, int *dim)
{
	bool dense = is_dense(f);
	Frame p = {.cond = f->cond};
	for (int k = 0; k < f->nsum; k++)
		if (axes >> f->sum[k]->u.i & 1)
			p.sum[p.nsum++] = f->sum[k];
	for (int k = 0; k < f->nkeep; k++)
		if (axes >> f->keep[k]->u.i & 1)
			p.keep[p.nkeep++] = f->keep[k];
	for (int d = 0; d < f->rank; d++)
		if (!dense || axes >> f->keep[d]->u.i & 1) {
			dim[p.rank] = d;
			p.shape[p.rank] = f->shape[d];
			p.place[p.rank] = node_axis(ir, p.rank, f->shape[d]);
			p.lhs[p.rank++] = f->lhs[d];
		}
	return p;
}

/* The tensor of a part at element z of the whole. */
static Node *part_read(Ir *ir, Node *part, const int *dim, Node *const *z)
{
	Node *at[RICCI_MAX_RANK];
	for (int d = 0; d < tensor_rank(part); d++)
		at[d] = z[dim[d]];
	return tensor_read(ir, part, at);
}

/* The sum of e at the elements z, over the axes in it only. */
static Node *group_sum(Ir *ir, const Frame *f, Node *e, Node *const *z)
{
	int dim[RICCI_MAX_RANK];
	uint64_t axes = group_axes(ir, f, e);
	Frame part = frame_part(ir, f, axes, dim);
	Node *times = node_const(ir, e->type, axes_points(f->nsum, f->sum, ~axes));
	return node_mul(ir, times, part_read(ir, plain_sum(ir, &part, e), dim, z));
}

static bool worth(Ir *ir, const Groups *g, Node *value)
{
	const Frame *f = g->frame;
	double plain = point_cost(ir, value), factored = 0;
	int before = 0, after = 0;
	plain *= axes_points(f->nkeep, f->keep, UINT64_MAX);
	plain *= axes_points(f->nsum, f->sum, UINT64_MAX);
	node_walk(ir, value, see_product, &before);
	for (int k = 0; k < g->n; k++) {
		Node *e = g->at[k].inner;
		uint64_t axes = group_axes(ir, f, e);
		if (!e)
			continue;
		node_walk(ir, e, see_product, &after);
		factored += point_cost(ir, e) * axes_points(f->nkeep, f->keep, axes) *
			    axes_points(f->nsum, f->sum, axes);
	}
	return g->n <= MAX_GROUPS &&
	       (factored < plain || (g->n == 1 && factored == plain && after < before));
}

/* outer * inner, the quotients in outer last. */
static Node *scaled(Ir *ir, Node *outer, Node *inner)
{
	if (outer->op == OP_NEG)
		return node1(ir, OP_NEG, scaled(ir, outer->src[0], inner));
	if (outer->op == OP_DIV)
		return node2(ir, OP_DIV, scaled(ir, outer->src[0], inner), outer->src[1]);
	return node_mul(ir, outer, inner);
}

/* ---- diagonals */

/* cond, where it says that kept axis number *axis is *value, of the other ones; else NULL. */
static Node *is_equal(Node *cond, const Frame *f, int *axis, Node **value, Ir *ir)
{
	if (cond->op != OP_EQ || cond->src[0]->type != RICCI_I64 ||
	    (axes_in(ir, cond) & ~axes_mask(f->nkeep, f->keep)))
		return NULL;
	for (int k = f->nkeep - 1; k >= 0; k--)
		if ((*value = index_placed(ir, cond->src[0], cond->src[1], f->keep[k]))) {
			*axis = k;
			return cond;
		}
	return NULL;
}

static Node *find_equal(Node *cond, const Frame *f, int *axis, Node **value, Ir *ir)
{
	Node **part, *found = NULL;
	int n = node_parts(ir, cond, OP_AND, &part);
	for (int k = 0; k < n && !found; k++)
		found = is_equal(part[k], f, axis, value, ir);
	return found;
}

/* Where a condition says that one kept axis is a function of others, the sums without that axis,
 * each put in its place; NULL where none does. */
static Node *diagonal_sum(Ir *ir, const Frame *f, Node *value)
{
	Node *at, *z[RICCI_MAX_RANK];
	int axis, dim[RICCI_MAX_RANK];
	Node *equal = f->cond && is_dense(f) ? find_equal(f->cond, f, &axis, &at, ir) : NULL;
	if (!equal)
		return NULL;
	Node *inside = node2(ir, OP_LE, node_int(ir, 0), at);
	inside = node2(ir, OP_AND, inside, node2(ir, OP_LT, at, node_int(ir, f->shape[axis])));
	Frame part = frame_part(ir, f, ~axes_mask(1, &f->keep[axis]), dim);
	part.cond = node2(ir, OP_AND, inside, node_replace(ir, f->cond, 1, &f->keep[axis], &at));
	part.cond = node_is_value(part.cond, 1) ? NULL : part.cond;
	Node *t = sum_make(ir, &part, node_replace(ir, value, 1, &f->keep[axis], &at));
	for (int d = 0; d < f->rank; d++)
		z[d] = node_axis(ir, d, f->shape[d]);
	equal = node_replace(ir, equal, f->nkeep, f->keep, f->place);
	return comp_dense(ir, RED_NONE, f->rank, f->rank, z,
			  value_where(ir, equal, part_read(ir, t, dim, z)));
}

Node *sum_make(Ir *ir, const Frame *f, Node *value)
{
	Groups g = {.ir = ir, .frame = f, .type = (Type)value->type};
	Node *z[RICCI_MAX_RANK], *sum = node_const(ir, value->type, 0), *cond = f->cond;
	uint64_t summed = axes_mask(f->nsum, f->sum);
	Products products = {0};
	Node *diagonal = f->nsum ? diagonal_sum(ir, f, value) : NULL;
	if (diagonal)
		return diagonal;
	if (!f->nsum || !bears_rounding(value) || (axes_in(ir, cond) & summed))
		return plain_sum(ir, f, value);
	products_read(&products, value, false);
	for (int k = 0; k < products.n && !products.too_many; k++)
		groups_put(&g, group_of(&g, &products.at[k]));
	groups_merge(&g);
	if (products.too_many || !worth(ir, &g, value))
		return plain_sum(ir, f, value);
	for (int d = 0; d < f->rank; d++)
		z[d] = node_axis(ir, d, f->shape[d]);
	for (int k = 0; k < g.n; k++) {
		Node *outer = one_or(&g, g.at[k].outer);
		outer = node_replace(ir, outer, f->nkeep, f->keep, f->place);
		Node *inner = g.at[k].inner ? group_sum(ir, f, g.at[k].inner, z)
					    : node_const(ir, value->type,
							 axes_points(f->nsum, f->sum, UINT64_MAX));
		sum = node_add(ir, sum, scaled(ir, outer, inner));
	}
	if (cond)
		sum = value_where(ir, node_replace(ir, cond, f->nkeep, f->keep, f->place), sum);
	return comp_dense(ir, RED_NONE, f->rank, f->rank, z, sum);
}

/* ---- two sums as one */

/* The body of a dense sum as one product under a condition (NULL: none). */
static bool sum_read(const Node *c, Node **cond, Product *p)
{
	if (c->op != OP_COMP || comp_reduce(c) != RED_ADD || !comp_is_dense(c))
		return false;
	Node *body = comp_body(c);
	bool choice = body->op == OP_SELECT && node_is_value(body->src[2], 0);
	*cond = choice ? body->src[0] : NULL;
	*p = (Product){0};
	return bears_rounding(c) && product_read(p, choice ? body->src[1] : body, false);
}

/* Takes what both have out of both. */
static Product product_common(Product *a, Product *b)
{
	Product common = {0};
	for (int k = 0; k < a->n; k++)
		for (int j = 0; j < b->n; j++) {
			if (a->at[k].node != b->at[j].node || a->at[k].divides != b->at[j].divides)
				continue;
			common.at[common.n++] = a->at[k];
			a->at[k--] = a->at[--a->n];
			b->at[j] = b->at[--b->n];
			break;
		}
	return common;
}

Node *sum_join(Ir *ir, Node *a, Node *b)
{
	Product p, q;
	Node *cond[2];
	int n = comp_naxis(a), rank = tensor_rank(a);
	if (!sum_read(a, &cond[0], &p) || !sum_read(b, &cond[1], &q) || cond[0] != cond[1] ||
	    comp_naxis(b) != n)
		return NULL;
	for (int k = 0; k < n; k++)
		if (comp_axis(a, k) != comp_axis(b, k))
			return NULL;
	Product common = product_common(&p, &q);
	Type type = (Type)a->type;
	if (!common.n || !p.n || !q.n)
		return NULL;
	Node *x = product_node(ir, &p, type), *y = product_node(ir, &q, type);
	if (node_is_const(x) || node_is_const(y) || axes_in(ir, x) != axes_in(ir, y))
		return NULL;
	Node *body = node_mul(ir, node_add(ir, x, y), product_node(ir, &common, type));
	return comp_dense(ir, RED_ADD, rank, n, a->src, value_where(ir, cond[0], body));
}

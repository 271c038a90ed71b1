/* comp.c - tensors and equations: making a computation canonical, and asking about it.
 * Invariant: equal computations over equal tensors are one pointer (comp_make renumbers axes by
 * their place). */
#include "core/fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const reduce_text[RED_COUNT] = {"=", "+=", "*=", "max=", "min="};

/* Appends the axes of n in the order of their first appearance. */
static void axes_in_order(Node *n, Node **list, int *count)
{
	if (n->op == OP_AXIS) {
		for (int k = 0; k < *count; k++)
			if (list[k] == n)
				return;
		if (*count < COMP_MAX_AXES)
			list[(*count)++] = n;
		return;
	}
	if (node_is_tensor(n))
		return;
	for (int k = 0; k < n->nsrc; k++)
		axes_in_order(n->src[k], list, count);
}

static int find(Node *const *list, int count, const Node *x)
{
	for (int k = 0; k < count; k++)
		if (list[k] == x)
			return k;
	return -1;
}

typedef struct Seen {
	Node **axes;
	int count;
} Seen;

static void see_axis(void *user, Node *n)
{
	Seen *s = user;
	if (n->op == OP_AXIS && s->count < COMP_MAX_AXES && find(s->axes, s->count, n) < 0)
		s->axes[s->count++] = n;
}

/* The axes in canonical order: bare left ones, then as they appear, then those that only repeat.
 * Returns the count; axes of extent 1 that are not bare on the left go to `ones`. */
static int order_axes(Ir *ir, Reduce red, int rank, Node *const *lhs, int naxis, Node *const *axes,
		      Node *body, Node **out, Node **ones, int *none)
{
	Node *seen[COMP_MAX_AXES];
	Seen s = {seen, 0};
	int n = 0;
	for (int d = 0; d < rank; d++)
		if (find(axes, naxis, lhs[d]) >= 0 && find(out, n, lhs[d]) < 0)
			out[n++] = lhs[d];
	for (int d = 0; d < rank; d++)
		axes_in_order(lhs[d], seen, &s.count);
	node_walk(ir, body, see_axis, &s);
	*none = 0;
	for (int k = 0; k < s.count; k++)
		if (find(axes, naxis, seen[k]) >= 0 && find(out, n, seen[k]) < 0) {
			if (axis_extent(seen[k]) == 1)
				ones[(*none)++] = seen[k];
			else
				out[n++] = seen[k];
		}
	for (int k = 0; k < naxis; k++) {
		bool repeats = (red == RED_ADD || red == RED_MUL) && axis_extent(axes[k]) > 1;
		if (repeats && find(out, n, axes[k]) < 0)
			out[n++] = axes[k];
	}
	return n;
}

static Node *comp_once(Ir *ir, Reduce red, int rank, const int64_t *shape, Node *const *lhs,
		       int naxis, Node *const *axes, Node *body)
{
	Node *order[COMP_MAX_AXES], *from[2 * COMP_MAX_AXES], *to[2 * COMP_MAX_AXES],
		*ones[COMP_MAX_AXES];
	int none, n = order_axes(ir, red, rank, lhs, naxis, axes, body, order, ones, &none);
	Node *src[COMP_MAX_AXES + 2 * RICCI_MAX_RANK + 1];
	for (int k = 0; k < n; k++) {
		from[k] = order[k];
		to[k] = src[k] = node_axis(ir, k, axis_extent(order[k]));
	}
	for (int k = 0; k < none; k++) {
		from[n + k] = ones[k];
		to[n + k] = node_int(ir, 0);
	}
	bool dense = true;
	for (int d = 0; d < rank; d++) {
		src[n + d] = node_replace(ir, lhs[d], n + none, from, to);
		src[n + rank + d] = node_int(ir, shape[d]);
		dense &= src[n + d] == src[d] && d < n && axis_extent(src[d]) == shape[d];
	}
	if (dense && n == rank)
		red = RED_NONE;
	src[n + 2 * rank] = node_replace(ir, body, n + none, from, to);
	return node_raw(ir, OP_COMP, (Type)body->type, n + 2 * rank + 1, src,
			n | rank << 8 | (int)red << 16, NULL);
}

/* New numbers can change the order of sums, and an axis that became 0 can take others along; so
 * until nothing changes. Of two forms that become each other the one of the smaller hash is taken.
 */
Node *comp_make(Ir *ir, Reduce red, int rank, const int64_t *shape, Node *const *lhs, int naxis,
		Node *const *axes, Node *body)
{
	Node *c = comp_once(ir, red, rank, shape, lhs, naxis, axes, body), *before = NULL;
	for (int round = 0; round < 8; round++) {
		int n = comp_naxis(c);
		Node *next = comp_once(ir, comp_reduce(c), rank, shape, c->src + n, n, c->src,
				       comp_body(c));
		if (next == c)
			break;
		if (next == before)
			return next->hash < c->hash ? next : c;
		before = c;
		c = next;
	}
	return c;
}

Node *comp_dense(Ir *ir, Reduce red, int rank, int naxis, Node *const *axes, Node *body)
{
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < rank; d++)
		shape[d] = axis_extent(axes[d]);
	return comp_make(ir, red, rank, shape, axes, naxis, axes, body);
}

Node *comp_with_body(Ir *ir, const Node *c, Node *body)
{
	int64_t shape[RICCI_MAX_RANK];
	int rank = tensor_rank(c), naxis = comp_naxis(c);
	for (int d = 0; d < rank; d++)
		shape[d] = tensor_extent(c, d);
	return comp_make(ir, comp_reduce(c), rank, shape, c->src + naxis, naxis, c->src, body);
}

void tensor_axes(Ir *ir, const Node *t, Node **axes)
{
	for (int d = 0; d < tensor_rank(t); d++)
		axes[d] = node_axis(ir, d, tensor_extent(t, d));
}

int64_t tensor_size(const Node *t)
{
	int64_t n = 1;
	for (int d = 0; d < tensor_rank(t); d++)
		n *= tensor_extent(t, d);
	return n;
}

size_t tensor_bytes(const Node *t)
{
	return (size_t)tensor_size(t) * type_size((Type)t->type);
}

bool comp_is_dense(const Node *c)
{
	int rank = tensor_rank(c);
	if (comp_naxis(c) < rank)
		return false;
	for (int d = 0; d < rank; d++)
		if (comp_lhs(c, d) != comp_axis(c, d) ||
		    axis_extent(comp_axis(c, d)) != tensor_extent(c, d))
			return false;
	return true;
}

double comp_points(const Node *c)
{
	double n = 1;
	for (int k = 0; k < comp_naxis(c); k++)
		n *= (double)axis_extent(comp_axis(c, k));
	return n;
}

int64_t reduce_identity_int(Reduce r, Type t)
{
	int64_t lo, hi;
	type_range(t, &lo, &hi);
	return r == RED_MUL ? 1 : r == RED_MAX ? lo : r == RED_MIN ? hi : 0;
}

double reduce_identity(Reduce r, Type t)
{
	if (!type_is_float(t))
		return (double)reduce_identity_int(r, t);
	return r == RED_MUL ? 1 : r == RED_MAX ? -INFINITY : r == RED_MIN ? INFINITY : 0;
}

Node *node_identity(Ir *ir, Reduce r, Type of, Type t)
{
	return type_is_float(t) ? node_const(ir, t, reduce_identity(r, t))
				: node_const_int(ir, t, reduce_identity_int(r, of));
}

/* ---- what a computation needs ---- */

typedef struct List {
	Ir *ir;
	Node **item;
	int n, room;
} List;

static void list_put(List *l, Node *n)
{
	if (l->n == l->room) {
		Node **more = arena_alloc(&l->ir->arena, (size_t)(l->room * 2 + 8) * sizeof *more);
		if (l->n)
			memcpy(more, l->item, (size_t)l->n * sizeof *more);
		l->item = more;
		l->room = l->room * 2 + 8;
	}
	l->item[l->n++] = n;
}

static void see_tensor(void *user, Node *n)
{
	List *l = user;
	if (!node_is_tensor(n))
		return;
	int at = l->n;
	for (int k = 0; k < l->n; k++)
		if (l->item[k] == n)
			return;
	list_put(l, n);
	for (; at > 0 && l->item[at - 1]->id > n->id; at--)
		l->item[at] = l->item[at - 1];
	l->item[at] = n;
}

int comp_reads(Ir *ir, const Node *c, Node ***tensors)
{
	List l = {.ir = ir};
	if (c->op == OP_COMP) {
		for (int d = 0; d < tensor_rank(c); d++)
			node_walk(ir, comp_lhs(c, d), see_tensor, &l);
		node_walk(ir, comp_body(c), see_tensor, &l);
	}
	for (int k = 0; c->op == OP_SCAN && k < scan_noperand(scan_of(c)); k++)
		see_tensor(&l, scan_operands(c)[k]);
	*tensors = l.item;
	return l.n;
}

static int by_id(const void *a, const void *b)
{
	uint32_t x = (*(Node *const *)a)->id, y = (*(Node *const *)b)->id;
	return x < y ? -1 : x > y;
}

int tensor_sources(Ir *ir, const Node *t, Node ***list)
{
	const Custom *custom = custom_of(ir, t);
	int n = comp_reads(ir, t, list), m = custom ? custom->noperand : 0;
	Node **all = *list;
	if (!m)
		return n;
	*list = arena_alloc(&ir->arena, sizeof **list * (size_t)(m + n));
	for (int k = 0; k < m + n; k++)
		(*list)[k] = k < m ? custom->operand[k] : all[k - m];
	return m + n;
}

/* graph_order or graph_order_to, by what says what a tensor is made of. */
static int order_by(Ir *ir, int (*sources)(Ir *ir, const Node *t, Node ***list), int nroot,
		    Node *const *roots, const NodeMap *stop, uint32_t floor, Node ***order)
{
	bool *seen = arena_alloc(&ir->arena, ir->count);
	List all = {.ir = ir};
	for (int k = 0; k < nroot; k++)
		if (!seen[roots[k]->id]) {
			seen[roots[k]->id] = true;
			list_put(&all, roots[k]);
		}
	for (int done = 0; done < all.n; done++) {
		Node **reads, *t = all.item[done];
		bool enters = t->id >= floor && !(stop && node_map_get(stop, t));
		int n = enters ? sources(ir, t, &reads) : 0;
		for (int k = 0; k < n; k++)
			if (!seen[reads[k]->id]) {
				seen[reads[k]->id] = true;
				list_put(&all, reads[k]);
			}
	}
	for (int k = 1; k < all.n; k++) /* qsort wants a non-null array */
		if (all.item[k]->id < all.item[k - 1]->id) {

			qsort(all.item, (size_t)all.n, sizeof *all.item, by_id);
			break;
		}
	*order = all.item;
	return all.n;
}

int graph_order(Ir *ir, int nroot, Node *const *roots, Node ***order)
{
	return order_by(ir, comp_reads, nroot, roots, NULL, 0, order);
}

int graph_order_to(Ir *ir, int nroot, Node *const *roots, const NodeMap *stop, uint32_t floor,
		   Node ***order)
{
	return order_by(ir, tensor_sources, nroot, roots, stop, floor, order);
}

static Node *comp_replaced(Ir *ir, Node *c, int n, Node *const *from, Node *const *to)
{
	Node *lhs[RICCI_MAX_RANK];
	int64_t shape[RICCI_MAX_RANK];
	int rank = tensor_rank(c);
	for (int d = 0; d < rank; d++) {
		lhs[d] = node_replace(ir, comp_lhs(c, d), n, from, to);
		shape[d] = tensor_extent(c, d);
	}
	return comp_make(ir, comp_reduce(c), rank, shape, lhs, comp_naxis(c), c->src,
			 node_replace(ir, comp_body(c), n, from, to));
}

Node *tensor_over(Ir *ir, Node *t, NodeMap *map)
{
	Node **from;
	int n = comp_reads(ir, t, &from);
	bool changed = false;
	Node **to = arena_alloc(&ir->arena, sizeof *to * ((size_t)n + 1));
	for (int k = 0; k < n; k++) {
		to[k] = node_map_get(map, from[k]);
		to[k] = to[k] ? to[k] : from[k];
		changed |= to[k] != from[k];
	}
	if (!changed)
		return t;
	const Custom *c = custom_of(ir, t);
	if (c)
		return custom_hide(ir, to[0], custom_copy(ir, c, map));
	if (t->op == OP_COMP)
		return comp_replaced(ir, t, n, from, to);
	int noperand = scan_noperand(scan_of(t));
	Node **operand = arena_alloc(&ir->arena, sizeof *operand * ((size_t)noperand + 1));
	for (int k = 0; k < noperand; k++) {
		Node *now = node_map_get(map, scan_operands(t)[k]);
		operand[k] = now ? now : scan_operands(t)[k];
	}
	return scan_over(ir, t, operand);
}

uint32_t map_oldest(const NodeMap *m)
{
	uint32_t oldest = UINT32_MAX;
	for (size_t k = 0; k < m->room; k++)
		if (m->key[k] && m->key[k]->id < oldest)
			oldest = m->key[k]->id;
	return oldest;
}

void graph_replace(Ir *ir, int nroot, Node *const *roots, NodeMap *map)
{
	Node **order;
	uint32_t floor = map_oldest(map); /* what is older is made of nothing in map */
	int n = order_by(ir, comp_reads, nroot, roots, map, floor, &order);
	for (int k = 0; k < n; k++)
		if (order[k]->id >= floor && !node_map_get(map, order[k]))
			node_map_put(ir, map, order[k], tensor_over(ir, order[k], map));
	for (int k = 0; k < nroot; k++)
		if (!node_map_get(map, roots[k]))
			node_map_put(ir, map, roots[k], roots[k]);
}

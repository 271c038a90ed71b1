/* walk.c - walks over graphs of tensors: what a tensor reads, what roots need, graphs over other
 * tensors, graphs in another Ir. Above equations, loops and records of custom gradients, since a
 * walk copies all three. Invariant: a walk visits a tensor once, sources first. */
#include "core/node/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct List {
	Ir *ir;
	Node **item;
	int n, room;
} List;

static void list_put(List *l, Node *n)
{
	l->item = arena_grow(&l->ir->arena, l->item, l->n, &l->room, sizeof *l->item);
	l->item[l->n++] = n;
}

static void see_tensor(void *user, Node *n)
{
	List *l = user;
	if (!node_is_tensor(n))
		return;
	int at = l->n;
	while (at > 0 && l->item[at - 1]->id > n->id)
		at--;
	if (at > 0 && l->item[at - 1] == n)
		return;
	list_put(l, n);
	for (int k = l->n - 1; k > at; k--)
		l->item[k] = l->item[k - 1];
	l->item[at] = n;
}

int comp_reads(Ir *ir, const Node *c, Node ***tensors)
{
	List l = {.ir = ir}, *known = node_map_get(&ir->reads, c);
	if (known) {
		*tensors = known->item;
		return known->n;
	}
	if (c->op == OP_COMP) {
		for (int d = 0; d < tensor_rank(c); d++)
			node_walk(ir, comp_lhs(c, d), see_tensor, &l);
		node_walk(ir, comp_body(c), see_tensor, &l);
	}
	for (int k = 0; c->op == OP_SCAN && k < scan_noperand(scan_of(c)); k++)
		see_tensor(&l, scan_operands(c)[k]);
	if (l.n) {
		known = arena_alloc(&ir->arena, sizeof *known);
		*known = l;
		node_map_put(ir, &ir->reads, (Node *)c, known);
	}
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

int graph_order_hidden(Ir *ir, int nroot, Node *const *root, Node ***order)
{
	int n = nroot, room = nroot + 1;
	uint32_t last = 0;
	for (int k = 0; k < ir->ncustom; k++)
		room += ir->custom[k]->noperand;
	Node **roots = arena_alloc(&ir->arena, sizeof *roots * (size_t)room);
	for (int k = 0; k < nroot; k++) {
		roots[k] = root[k];
		last = root[k]->id > last ? root[k]->id : last;
	}
	for (int k = 0; k < ir->ncustom; k++)
		for (int i = 0; i < ir->custom[k]->noperand; i++)
			if (ir->custom[k]->operand[i]->id < last)
				roots[n++] = ir->custom[k]->operand[i];
	return graph_order(ir, n, roots, order);
}

/* ---- graphs over other tensors ---- */

/* The record of the same equations over these operands, or 0. */
static int find_copy(const Ir *ir, const Custom *origin, Node *const *operand)
{
	for (int k = 0; k < ir->ncustom; k++) {
		const Custom *c = ir->custom[k];
		bool same = c == origin || c->origin == origin;
		for (int i = 0; same && i < c->noperand; i++)
			same = c->operand[i] == operand[i];
		if (same)
			return k + 1;
	}
	return 0;
}

/* The number of c's record over what map has for what it is over. */
static int custom_copy(Ir *ir, const Custom *c, NodeMap *map)
{
	const Custom *origin = c->origin ? c->origin : c;
	Arena *a = &ir->arena;
	Node **operand = arena_alloc(a, sizeof *operand * ((size_t)c->noperand + 1));
	graph_replace(ir, c->noperand, c->operand, map);
	for (int k = 0; k < c->noperand; k++)
		operand[k] = node_map_get(map, c->operand[k]);
	int number = find_copy(ir, origin, operand);
	if (number)
		return number;
	Custom *copy = arena_alloc(a, sizeof *copy);
	*copy = *c;
	copy->origin = origin;
	copy->operand = operand;
	copy->result = arena_alloc(a, sizeof *copy->result * ((size_t)c->nresult + 1));
	custom_add(ir, copy);
	number = ir->ncustom;
	for (int k = 0; k < c->nresult; k++) {
		Node *y = comp_body(c->result[k])->src[0]->src[0];
		graph_replace(ir, 1, &y, map);
		copy->result[k] = custom_hide(ir, node_map_get(map, y), number);
	}
	return number;
}

Node *comp_replaced(Ir *ir, Node *c, int n, Node *const *from, Node *const *to)
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

void graph_change(Ir *ir, int nroot, Node **roots, TensorChange *change, void *user)
{
	Node **order;
	NodeMap now = {0};
	int n = graph_order(ir, nroot, roots, &order);
	for (int k = 0; k < n; k++)
		node_map_put(ir, &now, order[k],
			     change(user, order[k], tensor_over(ir, order[k], &now)));
	for (int k = 0; k < nroot; k++)
		roots[k] = node_map_get(&now, roots[k]);
}

/* ---- import ---- */

typedef struct Import {
	Ir *ir;
	Node *(*tensor)(void *user, Node *t);
	void *user;
	NodeMap copies;
} Import;

static Node *import(Import *m, Node *n);

static Node *import_body(void *user, Node *n)
{
	return import(user, n);
}

static int64_t import_payload(Import *m, const Node *n)
{
	Import body = {.ir = m->ir};
	return n->op != OP_SCAN
		       ? n->u.i
		       : (int64_t)(uintptr_t)scan_import(m->ir, n->u.result, import_body, &body);
}

static Node *import(Import *m, Node *n)
{
	Node *known = node_map_get(&m->copies, n);
	if (known)
		return known;
	Node *out = node_is_tensor(n) && m->tensor ? m->tensor(m->user, n) : NULL;
	if (n->op == OP_AXIS)
		out = node_axis(m->ir, (int)n->u.i, axis_extent(n));
	if (n->op == OP_TRAINING)
		out = node_training(m->ir);
	if (!out) {
		Node **src = arena_alloc(&m->ir->arena, (n->nsrc + 1u) * sizeof *src);
		for (int k = 0; k < n->nsrc; k++)
			src[k] = import(m, n->src[k]);
		/* Folded already: what was in normal form there is in normal form here, hashes
		 * being content. */
		out = node_raw(m->ir, n->op, n->type, n->nsrc, src, import_payload(m, n),
			       n->op == OP_INPUT ? n->u.s : NULL);
	}
	node_map_put(m->ir, &m->copies, n, out);
	return out;
}

Node *node_import(Ir *ir, Node *n, Node *(*tensor)(void *user, Node *t), void *user)
{
	Import m = {.ir = ir, .tensor = tensor, .user = user};
	return import(&m, n);
}

/* winograd.c - sums over windows by fewer products.
 *
 * In: a subgraph whose main equation sums products. Out: stages of the same values, rounded otherwise:
 *	V = A transformed; U = B transformed; M[u,..] += V[u,..] * U[u,..]; Y = M transformed back
 * of which M is a contraction for each u, of a tile's products (tiles.c). */
#include "jit/stages/stages.h"
#include "jit/stages/tiles.h"
#include "jit/tree/cost.h"

#include <math.h>

enum {
	WINDOWS_MOST = 4,
	MORE = 2,      /* axes that a window adds: u, and a block of tiles */
	ROW_LEAST = 64 /* results of a row, beside B's */
};

/* How many times longer threads take for rows than for as much work in small parts, at most. */
static const double UNEVEN = 1.5;

typedef struct Winograd {
	Ir *ir;
	Node *c, *a, *b; /* the equation, its factors */
	int nwindow;
	Window window[WINDOWS_MOST];
	Node *row;	  /* an axis that stands first in V, M and Y; NULL: none does */
	bool tiles_alone; /* a row's results, beside B's, are tiles */
	bool trails;	  /* other axes than the windows' are the last that A is read by */
	double side;	  /* the least of a product's: results, terms */
} Winograd;

/* ---- finding windows ---- */

static bool is_window(const Winograd *g, const Node *axis)
{
	for (int i = 0; i < g->nwindow; i++)
		if (g->window[i].p == axis || g->window[i].r == axis)
			return true;
	return false;
}

/* The numbers of the axes of window i, behind all of the equation's. */
static int window_number(int i)
{
	return COMP_MAX_AXES + WINDOW_AXES * i;
}

/* The first axis that is summed along which A slides, as p does. */
static void window_add(Winograd *g, Node *p)
{
	for (int k = tensor_rank(g->c); k < comp_naxis(g->c); k++) {
		Node *r = comp_axis(g->c, k);
		int n = g->nwindow;
		if (!is_window(g, r) && node_has(g->a, r) && node_has(g->b, r) &&
		    tiles_find(g->ir, g->a, p, r, window_number(n), &g->window[n])) {
			g->nwindow++;
			return;
		}
	}
}

/* The factors of a sum of products, with its conditions in the one that has windows. */
static bool factors_find(Winograd *g, bool swapped)
{
	Ir *ir = g->ir;
	Node *guard[GUARDS_MOST];
	int n = 0;
	Node *product = reduce_guards(ir, RED_ADD, comp_body(g->c), GUARDS_MOST, &n, guard);
	if (product->op != OP_MUL)
		return false;
	g->a = product->src[swapped];
	g->b = product->src[!swapped];
	for (int k = n - 1; k >= 0; k--)
		g->a = node_select(ir, guard[k], g->a, node_const(ir, RICCI_F32, 0));
	return true;
}

static bool windows_find(Winograd *g, bool swapped)
{
	g->nwindow = 0;
	if (!factors_find(g, swapped))
		return false;
	for (int k = 0; k < tensor_rank(g->c) && g->nwindow < WINDOWS_MOST; k++) {
		Node *p = comp_axis(g->c, k);
		if (comp_naxis(g->c) + MORE * (g->nwindow + 1) <= RICCI_MAX_RANK &&
		    node_has(g->a, p) && !node_has(g->b, p))
			window_add(g, p);
	}
	return g->nwindow > 0;
}

static bool is_other(const Node *n)
{
	return n->op == OP_TF32 || (type_is_float((Type)n->type) && n->type != RICCI_F32);
}

/* A dense sum of f32, in which nothing is rounded to less. */
static bool suits(Ir *ir, const Node *c)
{
	return comp_is_dense(c) && comp_reduce(c) == RED_ADD && c->type == RICCI_F32 &&
	       !node_any(ir, comp_body(c), is_other);
}

/* What e reads first; NULL: nothing. */
static Node *first_read(const Winograd *g, Node *e)
{
	Node **list;
	return node_collect(g->ir, e, OP_READ, &list) ? list[0] : NULL;
}

/* Are the lines of what A reads along other axes than the windows'? */
static bool trails(const Winograd *g)
{
	Node *read = first_read(g, g->a);
	Node *last = read ? read->src[tensor_rank(read->src[0])] : NULL;
	for (int i = 0; last && i < g->nwindow; i++)
		if (node_has(last, g->window[i].p) || node_has(last, g->window[i].r))
			return false;
	return last && tensor_rank(read->src[0]) > 0;
}

/* Are the products that are left a contraction, of each of a tile's? Finds the row, whose V and M stay near: the
 * first dimension, if its elements are enough for panels, and for the threads. */
static bool find_sides(Winograd *g)
{
	double others = 1, results_b = 1, terms = 1, tiles = 1;
	for (int k = 0; k < comp_naxis(g->c); k++) {
		Node *axis = comp_axis(g->c, k);
		bool in_a = node_has(g->a, axis), in_b = node_has(g->b, axis);
		double extent = is_window(g, axis) ? 1 : (double)axis_extent(axis);
		bool summed = k >= tensor_rank(g->c);
		terms *= summed ? extent : 1;
		others *= !summed && !in_b ? extent : 1;
		results_b *= !summed && !in_a ? extent : 1;
	}
	for (int i = 0; i < g->nwindow; i++) {
		tiles *= (double)g->window[i].np;
		terms *= (double)g->window[i].nr;
	}
	Node *first = tensor_rank(g->c) ? comp_axis(g->c, 0) : NULL;
	double extent = first ? (double)axis_extent(first) : 1;
	bool alone = first && !is_window(g, first) && !node_has(g->b, first);
	bool parts = cost_imbalance(extent) < UNEVEN;
	g->row = alone && parts && others * tiles >= ROW_LEAST * extent ? first : NULL;
	g->trails = trails(g);
	g->tiles_alone = g->row && others == extent && !g->trails;
	g->side = fmin(fmin(others * tiles, results_b), terms);
	return g->side > 1;
}

/* ---- the equations ---- */

/* Tiles of a row that are as many results as a panel has lanes are one block: with the terms between blocks and lanes,
 * V's rows are panels. */
static void find_panels(Winograd *g, int64_t lanes)
{
	Window *w = &g->window[g->nwindow - 1];
	for (int i = 0; i < g->nwindow; i++)
		g->window[i].lanes = g->window[i].np;
	for (; w > g->window && lanes % w->np == 0; w--)
		lanes /= w->np;
	if (!g->tiles_alone || w->np % lanes)
		return;
	w->lanes = lanes;
	while (w-- > g->window)
		w->lanes = 1;
}

/* Axes of a tensor, in the order of its dimensions. */
typedef struct Axes {
	int n;
	Node *axis[COMP_MAX_AXES];
} Axes;

static void axes_add(Axes *l, Node *axis)
{
	if (axis->op == OP_AXIS)
		l->axis[l->n++] = axis;
}

/* The axes of c, but no window's and not the row, that are summed or not, and in e but (b: not NULL) not in that. */
static void axes_of(const Winograd *g, Axes *l, bool summed, Node *e, Node *b)
{
	for (int k = 0; k < comp_naxis(g->c); k++) {
		Node *axis = comp_axis(g->c, k);
		if (summed == (k >= tensor_rank(g->c)) && !is_window(g, axis) && axis != g->row &&
		    node_has(e, axis) && !(b && node_has(b, axis)))
			axes_add(l, axis);
	}
}

/* Is the last of the axes that e reads a tensor by summed? No window's. */
static bool reads_summed_last(const Winograd *g, Node *e)
{
	Node *read = first_read(g, e);
	for (int d = read ? tensor_rank(read->src[0]) : 0; d > 0; d--)
		for (int k = comp_naxis(g->c) - 1; k >= 0; k--)
			if (!is_window(g, comp_axis(g->c, k)) &&
			    node_has(read->src[d], comp_axis(g->c, k)))
				return k >= tensor_rank(g->c);
	return true;
}

/* An axis of the equation, or what stands for that of a window. */
static void axes_place(const Winograd *g, Axes *l, Node *axis)
{
	for (int i = 0; i < g->nwindow; i++)
		if (g->window[i].p == axis)
			axes_add(l, g->window[i].in);
		else if (g->window[i].r == axis)
			axes_add(l, g->window[i].tile_r);
	if (!is_window(g, axis) && axis != g->row)
		axes_add(l, axis);
}

/* The axes that e has, in the order of the dimensions of what it reads first, or (stored) of the results. */
static void axes_in_order(const Winograd *g, Axes *l, Node *e, bool stored)
{
	bool done[COMP_MAX_AXES] = {false};
	Node *read = stored ? NULL : first_read(g, e);
	int dims = read ? tensor_rank(read->src[0]) : 0;
	for (int d = 0; d <= dims; d++)
		for (int k = 0; k < comp_naxis(g->c); k++) {
			Node *axis = comp_axis(g->c, k);
			bool has = stored ? k < tensor_rank(g->c) : node_has(e, axis);
			if (done[k] || !has || (d < dims && !node_has(read->src[1 + d], axis)))
				continue;
			done[k] = true;
			axes_place(g, l, axis);
		}
}

/* A factor transformed. Beside the tiles stand the axes that are summed, or not, as these are: so results, or
 * terms, of the products lie in one line. Without tiles they stand as they are read. */
static Axes factor_axes(const Winograd *g, Node *e)
{
	Axes l = {0};
	const Window *last = &g->window[g->nwindow - 1];
	bool sums = last->nr > last->np;
	bool summed = e == g->b && !sums ? reads_summed_last(g, e) : sums;
	if (g->row && e == g->a)
		axes_add(&l, g->row);
	for (int i = 0; i < g->nwindow; i++)
		axes_add(&l, g->window[i].u);
	if (g->trails) {
		axes_in_order(g, &l, e, false);
		return l;
	}
	for (int i = 0; i < g->nwindow && e == g->a; i++)
		if (g->window[i].lanes < g->window[i].np)
			axes_add(&l, g->window[i].block);
	axes_of(g, &l, !summed, e, NULL);
	axes_of(g, &l, summed, e, NULL);
	for (int i = 0; i < g->nwindow; i++) {
		if (e == g->a)
			axes_add(&l, g->window[i].in);
		axes_add(&l, g->window[i].tile_r);
	}
	return l;
}

static Node *factor_a(Winograd *g)
{
	Node *e = g->a;
	for (int i = 0; i < g->nwindow; i++)
		e = tiles_place(g->ir, e, &g->window[i]);
	for (int i = 0; i < g->nwindow; i++)
		e = tiles_of_a(g->ir, e, &g->window[i]);
	Axes l = factor_axes(g, g->a);
	return comp_dense(g->ir, RED_NONE, l.n, l.n, l.axis, e);
}

static Node *factor_b(Winograd *g)
{
	Node *e = g->b;
	for (int i = 0; i < g->nwindow; i++)
		e = tiles_of_b(g->ir, e, &g->window[i]);
	Axes l = factor_axes(g, g->b);
	return comp_dense(g->ir, RED_NONE, l.n, l.n, l.axis, e);
}

static Axes product_axes(const Winograd *g)
{
	Axes l = {0};
	if (g->row)
		axes_add(&l, g->row);
	for (int i = 0; i < g->nwindow; i++)
		axes_add(&l, g->window[i].u);
	if (g->trails) {
		axes_in_order(g, &l, NULL, true);
		return l;
	}
	axes_of(g, &l, false, g->b, NULL);
	axes_of(g, &l, false, g->a, g->b);
	for (int i = 0; i < g->nwindow; i++) {
		axes_add(&l, g->window[i].block);
		axes_add(&l, g->window[i].in);
	}
	return l;
}

static Node *products_summed(Winograd *g, Node *a, Node *b)
{
	Axes l = product_axes(g), all = l, of_a = factor_axes(g, g->a), of_b = factor_axes(g, g->b);
	axes_of(g, &all, true, comp_body(g->c), NULL);
	for (int i = 0; i < g->nwindow; i++)
		axes_add(&all, g->window[i].tile_r);
	Node *product = node2(g->ir, OP_MUL, node_read(g->ir, a, of_a.axis),
			      node_read(g->ir, b, of_b.axis));
	return comp_dense(g->ir, RED_ADD, l.n, all.n, all.axis, product);
}

static Node *results(Winograd *g, Node *m)
{
	Axes l = product_axes(g);
	Node *e = node_read(g->ir, m, l.axis), *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(g->c);
	for (int i = 0; i < g->nwindow; i++)
		e = tiles_back(g->ir, e, &g->window[i]);
	for (int k = 0; k < rank; k++)
		axes[k] = comp_axis(g->c, k);
	return comp_dense(g->ir, RED_NONE, rank, rank, axes, e);
}

/* ---- the stages ---- */

/* The whole's tensors and what stands for them. */
typedef struct Copies {
	const Subgraph *sub;
	Node **input, **member;
} Copies;

static Node *copy_of(void *user, Node *t)
{
	const Copies *k = user;
	for (int j = 0; j < k->sub->ninput; j++)
		if (k->sub->input[j] == t)
			return k->input[j];
	for (int j = 0; j < k->sub->nmember; j++)
		if (k->sub->member[j] == t)
			return k->member[j];
	return NULL;
}

/* A stage of its own equations, and, the last one, of the whole's members. */
static Subgraph *stage_add(Ir *ir, Stages *s, const Subgraph *whole, int n, Node *const *own,
			   Node *const *member)
{
	Subgraph *sub = &s->sub[s->n++];
	*sub = (Subgraph){.nmember = n + (member ? whole->nmember : 0)};
	sub->member = arena_alloc(&ir->arena, (size_t)sub->nmember * sizeof *sub->member);
	sub->stored = arena_alloc(&ir->arena, (size_t)sub->nmember * sizeof *sub->stored);
	for (int k = 0; k < sub->nmember; k++) {
		sub->member[k] = k < n ? own[k] : member[k - n];
		sub->stored[k] = k < n ? !member : whole->stored[k - n];
	}
	subgraph_inputs(ir, sub);
	return sub;
}

/* V, M and Y row by row, what they share in each thread's memory; false: they can't. */
static bool stage_rows(Ir *ir, Stages *s, const Subgraph *whole, Node *const *own,
		       Node *const *member)
{
	Subgraph *sub = stage_add(ir, s, whole, 2, own, member);
	if (subgraph_rows(ir, sub) && sub->rows) {
		subgraph_loops(ir, sub);
		return true;
	}
	s->n--;
	return false;
}

/* Copies of the whole's inputs and of main, in which windows are found. */
static bool winograd_find(Ir *ir, Copies *k, Winograd *g)
{
	const Subgraph *sub = k->sub;
	if (sub->rows || sub->member[0]->op != OP_COMP)
		return false;
	for (int j = 0; j < sub->ninput; j++)
		k->input[j] = node_import(ir, sub->input[j], NULL, NULL);
	*g = (Winograd){.ir = ir, .c = node_import(ir, sub->member[0], copy_of, k)};
	if (!suits(ir, g->c))
		return false;
	return (windows_find(g, false) && find_sides(g)) ||
	       (windows_find(g, true) && find_sides(g));
}

bool winograd_stages(Ir *ir, const Subgraph *sub, const Target *target, Stages *out)
{
	enum { PANEL = 2 }; /* vectors */
	Winograd g;
	Copies k = {sub, arena_alloc(&ir->arena, ((size_t)sub->ninput + 1) * sizeof(Node *)),
		    arena_alloc(&ir->arena, (size_t)sub->nmember * sizeof(Node *))};
	if (!winograd_find(ir, &k, &g))
		return false;
	find_panels(&g, PANEL * target->vector_bytes / (int64_t)type_size(RICCI_F32));
	for (int i = 0; i < g.nwindow; i++)
		tiles_open(ir, &g.window[i], window_number(i));
	Node *u = factor_b(&g), *v = factor_a(&g), *m = products_summed(&g, v, u);
	for (int j = 0; j < sub->nmember; j++)
		k.member[j] = j ? node_import(ir, sub->member[j], copy_of, &k) : results(&g, m);
	*out = (Stages){.input = k.input, .member = k.member, .products = m, .side = g.side};
	out->tile = INT64_C(1) << 2 * g.nwindow;
	out->moved = (double)tensor_size(u) + (double)tensor_size(v) + (double)tensor_size(m);
	stage_add(ir, out, sub, 1, &u, NULL);
	if (g.row && stage_rows(ir, out, sub, (Node *[]){v, m}, k.member))
		return true;
	stage_add(ir, out, sub, 1, &v, NULL);
	stage_add(ir, out, sub, 1, &m, NULL);
	stage_add(ir, out, sub, 0, NULL, k.member);
	return true;
}

/* costs.h - the multiply-adds of equations, and how many their gradients may take.
 *
 * An equation that reduces takes, at each point where its condition holds, as many as there are
 * products and quotients in its body, at least one; constant factors don't count. One that stores
 * ("=") takes none, but its reads that repeat elements (broadcasts, windows, gathers) become sums
 * of as many points on the way back. So the gradient of one tensor may take what the reductions on
 * the way take, and the points of such reads. */
#ifndef COSTS_H
#define COSTS_H

#include "tests/autodiff/harness.h"

static void see_product(void *user, Node *n)
{
	bool two = (n->op == OP_MUL || n->op == OP_DIV) && !node_is_const(n->src[0]) &&
		   !node_is_const(n->src[1]);
	*(double *)user += two && type_is_float(n->type);
}

/* Points of c's domain where its condition holds; *body: what is computed there. */
static double costs_points(Bench *b, Node *c, Node **body)
{
	Ir *ir = &b->ir;
	Node *axes[COMP_MAX_AXES], *e = *body = comp_body(c);
	int n = comp_naxis(c);
	if (e->op != OP_SELECT || !node_is_value(e->src[2], 0))
		return comp_points(c);
	Node *one = node_const(ir, RICCI_F64, 1), *zero = node_const(ir, RICCI_F64, 0);
	for (int k = 0; k < n; k++)
		axes[k] = comp_axis(c, k);
	*body = e->src[1];
	Node *count = node_select(ir, e->src[0], one, zero);
	return bench_value(b, comp_dense(ir, RED_ADD, 0, n, axes, count))[0];
}

/* As if c reduced. */
static double multiply_adds(Bench *b, Node *c)
{
	Node *body;
	double products = comp_reduce(c) == RED_MUL, points = costs_points(b, c, &body);
	node_walk(&b->ir, body, see_product, &products);
	return points * (products > 1 ? products : 1);
}

/* Of the equations that roots need and that are not in `known`: multiply-adds, and points. */
static double costs_of(Bench *b, int nroot, Node *const *roots, int nknown, Node *const *known,
		       double *points)
{
	Node **order;
	double sum = 0;
	int n = graph_order(&b->ir, nroot, roots, &order);
	for (int k = 0; k < n; k++) {
		bool skip = order[k]->op != OP_COMP;
		for (int j = 0; j < nknown && !skip; j++)
			skip = known[j] == order[k];
		sum += skip || comp_reduce(order[k]) == RED_NONE ? 0 : multiply_adds(b, order[k]);
		*points += skip ? 0 : comp_points(order[k]);
	}
	return sum;
}

/* ---- bounds */

typedef struct Reads {
	const bool *reached; /* by id */
	const Node *comp;
	int n, repeating;
} Reads;

static void see_read(void *user, Node *n)
{
	Reads *r = user;
	uint64_t met = 0;
	if (n->op != OP_READ || !r->reached[n->src[0]->id])
		return;
	for (int k = 1; k < n->nsrc; k++)
		if (n->src[k]->op == OP_AXIS)
			met |= (uint64_t)1 << n->src[k]->u.i;
	r->n++;
	r->repeating += met != ((uint64_t)1 << comp_naxis(r->comp)) - 1;
}

/* bound: how many multiply-adds the gradient by one tensor may take. ideal: how few those of all n
 * can, one for each point of a reduction and each tensor on the way that it reads (for each element
 * of an extremum), one for each point of a read that repeats elements. */
typedef struct Way {
	double bound, ideal;
} Way;

static Way costs_way(Bench *b, Node *y, int n, Node *const *wrt)
{
	Node **order, **reads, *body;
	Way way = {0, 0};
	int norder = graph_order(&b->ir, 1, &y, &order);
	bool *reached = arena_alloc(&b->ir.arena, b->ir.count + 1);
	for (int k = 0; k < n; k++)
		reached[wrt[k]->id] = true;
	for (int k = 0; k < norder; k++) {
		Node *c = order[k];
		int nreads = comp_reads(&b->ir, c, &reads);
		for (int j = 0; j < nreads; j++)
			reached[c->id] |= reached[reads[j]->id] && type_is_float(c->type);
		if (c->op != OP_COMP || !reached[c->id])
			continue;
		Reads r = {.reached = reached, .comp = c};
		Reduce red = comp_reduce(c);
		node_walk(&b->ir, comp_body(c), see_read, &r);
		bool extremum = red == RED_MAX || red == RED_MIN;
		double points = extremum ? (double)tensor_size(c) : costs_points(b, c, &body);
		way.bound += multiply_adds(b, c) * (red == RED_NONE ? r.repeating : 1);
		way.ideal += points * (red == RED_NONE ? r.repeating : r.n);
	}
	return way;
}

#endif

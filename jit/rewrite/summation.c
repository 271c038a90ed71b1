/* summation.c - sums of products of several factors, in the order of summation that costs least.
 *
 * In: an equation `Y[i,l] += A[i,j] * B[j,k] * C[k,l]`. Out: one that reads partial sums, which are equations of their
 * own: first T[i,k] += A[i,j] * B[j,k], then Y[i,l] += T[i,k] * C[k,l], I*J*K + I*K*L points in place of I*J*K*L. An
 * axis is summed where all factors that have it meet (variable elimination; of tensors, the order of contractions in
 * an einsum). Factors are any expressions and conditions; functions of the result's axes alone multiply the sum.
 * Invariants: each point is summed once; partial sums have the type that sums of c have. */
#include "jit/rewrite/products.h"

#include <string.h>

/* All partitions of so many factors are compared, some 4,000; of more, those of the fewest points become one first. */
enum { FACTORS = 7, DEEP = 3 };
/* What a partial sum costs beside its arithmetic, in operations: for a byte, written and read again (what a processor
 * or a GPU computes while memory moves two), and for a launch. Above that it has to win a quarter. What is scattered is
 * read, added to and stored. What is no product of matrices takes VECTORS times as long. */
static const double BYTE = 8, LAUNCH = 1e5, WORTH = 0.75, SCATTER = 8, VECTORS = 3;
static const double FUNCTION = 8;    /* operations of a factor that isn't computed for each term */
static const double LOOKED_UP = 1.1; /* how much more it takes to look up what is packed */
/* Uses of each element of a factor that has a copy of its own; of one under a condition on data. */
static const double USES = 64, DATA_USES = 256;

typedef struct Block { /* of factors: one, or those of a partial sum */
	uint8_t set;
	bool partial;
} Block;

typedef struct Plan { /* of the sum of the product of a set of factors */
	double cost;  /* 0: not known yet */
	int n;
	Block block[FACTORS];
} Plan;

typedef struct Order {
	Ir *ir;
	const Node *c;
	uint32_t left; /* axes of the left side */
	Factors l;
	Plan *plan; /* by set */
} Order;

/* ---- which factors ---- */

/* What a factor's axes are among another's can be summed only with that one. */
static bool combine_subset(Factors *l)
{
	for (int i = 0; i < l->n; i++)
		for (int k = 0; k < l->n; k++)
			if (i != k && !(l->f[k].axes & ~l->f[i].axes)) {
				product_combine(l, i, k);
				return true;
			}
	return false;
}

static void combine_fewest(Factors *l, const Node *c)
{
	int a = 0, b = 1;
	for (int i = 0; i < l->n; i++)
		for (int k = i + 1; k < l->n; k++)
			if (product_points(c, l->f[i].axes | l->f[k].axes) <
			    product_points(c, l->f[a].axes | l->f[b].axes))
				a = i, b = k;
	product_combine(l, a, b);
}

/* ---- the cheapest plan ---- */

static uint32_t axes_of(const Order *o, unsigned set)
{
	uint32_t axes = 0;
	for (int k = 0; k < o->l.n; k++)
		axes |= set >> k & 1 ? o->l.f[k].axes : 0;
	return axes;
}

static unsigned all_factors(const Order *o)
{
	return (1U << o->l.n) - 1;
}

/* The axes that are left of a set's when all that no other factor has are summed. */
static uint32_t axes_left(const Order *o, unsigned set)
{
	return axes_of(o, set) & (o->left | axes_of(o, all_factors(o) & ~set));
}

static uint32_t block_axes(const Order *o, Block b)
{
	return b.partial ? axes_left(o, b.set) : axes_of(o, b.set);
}

static uint32_t side_axes(const Order *o, const Block *block, int n, unsigned side)
{
	uint32_t axes = 0;
	for (int k = 0; k < n; k++)
		axes |= side >> k & 1 ? block_axes(o, block[k]) : 0;
	return axes;
}

/* What is multiplied before: for each point of one side of a product, all the blocks whose bits are in `side`. */
static double side_cost(const Order *o, const Block *block, int n, unsigned side)
{
	double flops = -1;
	for (int k = 0; k < n; k++) {
		if (!(side >> k & 1))
			continue;
		flops++;
		for (int i = 0; i < o->l.n && !block[k].partial; i++)
			flops += block[k].set >> i & 1 ? o->l.f[i].flops : 0;
	}
	return flops > 0 ? flops * product_points(o->c, side_axes(o, block, n, side)) : 0;
}

/* Of the equation with these blocks, without that of its partial sums: the best two sides, each multiplied before. Where
 * each has an axis of the result that the other one lacks they are matrices, whose elements are loaded for several sums. */
static double equation_cost(const Order *o, const Block *block, int n, uint32_t left)
{
	unsigned all = (1U << n) - 1;
	double sums = 2 * product_points(o->c, left | side_axes(o, block, n, all));
	double least = side_cost(o, block, n, all) + VECTORS * sums;
	for (unsigned side = 1; side < all; side += 2) {
		uint32_t a = side_axes(o, block, n, side), b = side_axes(o, block, n, all & ~side);
		bool matrices = left & a & ~b && left & b & ~a;
		double cost = side_cost(o, block, n, side) + side_cost(o, block, n, all & ~side) +
			      (matrices ? sums : VECTORS * sums);
		least = cost < least ? cost : least;
	}
	return least;
}

static double plan_cost(Order *o, unsigned set);

static double partial_cost(Order *o, unsigned set)
{
	uint32_t axes = axes_left(o, set);
	double bytes = product_points(o->c, axes) * (double)type_size((Type)o->c->type);
	return plan_cost(o, set) + LAUNCH + BYTE * bytes;
}

/* Compares all partitions of `set` that begin with the n blocks, which cost `sum`. */
static void plan_search(Order *o, unsigned set, unsigned rest, Block *block, int n, double sum)
{
	Plan *p = &o->plan[set];
	if (!rest) {
		uint32_t left = set == all_factors(o) ? o->left : axes_left(o, set);
		double cost = sum + equation_cost(o, block, n, left);
		if (p->cost && p->cost <= cost)
			return;
		p->cost = cost;
		p->n = n;
		for (int k = 0; k < n; k++)
			p->block[k] = block[k];
		return;
	}
	unsigned first = rest & -rest;
	block[n] = (Block){(uint8_t)first, false};
	plan_search(o, set, rest & ~first, block, n + 1, sum);
	for (unsigned b = rest; b; b = (b - 1) & rest) {
		block[n] = (Block){(uint8_t)b, true};
		if (b & first && b != set && axes_left(o, b) != axes_of(o, b))
			plan_search(o, set, rest & ~b, block, n + 1, sum + partial_cost(o, b));
	}
}

static double plan_cost(Order *o, unsigned set)
{
	Block block[FACTORS];
	if (!o->plan[set].cost)
		plan_search(o, set, set, block, 0, 0);
	return o->plan[set].cost;
}

/* ---- the equations of a plan ---- */

static Node *partial_sum(Order *o, unsigned set, Node **axis, int *rank);

static int factor_read_first(const Order *o, const Factor *f)
{
	Node **read;
	return node_collect(o->ir, product_of(&o->l, 1, f), OP_READ, &read)
		       ? (int)read[0]->src[0]->id
		       : 0;
}

/* The factors that the set's plan multiplies, those of the most points first, so that all equations that need a
 * partial sum get the same one. */
static int plan_factors(Order *o, unsigned set, Factor f[FACTORS])
{
	const Plan *p = &o->plan[set];
	for (int k = 0; k < p->n; k++) {
		Block b = p->block[k];
		Node *axis[COMP_MAX_AXES], *t = NULL;
		int rank, at = k;
		if (b.partial)
			t = partial_sum(o, b.set, axis, &rank);
		Factor new = t ? (Factor){.value = node_read(o->ir, t, axis)}
			       : o->l.f[__builtin_ctz(b.set)];
		new.axes = block_axes(o, b);
		for (double n = product_points(o->c, new.axes); at > 0; at--) {
			double before = product_points(o->c, f[at - 1].axes);
			if (before > n || (before == n && factor_read_first(o, &f[at - 1]) <=
								  factor_read_first(o, &new)))
				break;
			f[at] = f[at - 1];
		}
		f[at] = new;
	}
	return p->n;
}

/* Adds those axes of e that are in *set, which they leave. */
static int axes_take(const Order *o, Node *e, uint32_t *set, Node **axis, int n)
{
	Node *seen[COMP_MAX_AXES];
	int nseen = node_axes(o->ir, 1, &e, seen);
	for (int i = 0; i < nseen; i++)
		for (int k = 0; k < comp_naxis(o->c); k++)
			if (comp_axis(o->c, k) == seen[i] && *set >> k & 1) {
				axis[n++] = seen[i];
				*set &= ~(1U << k);
			}
	return n;
}

/* Adds the axes of e that the first n aren't, the shortest of them first. Returns how many there are then. */
static int axes_of_index(Ir *ir, Node *e, Node **axis, int n)
{
	Node *seen[COMP_MAX_AXES];
	int nseen = node_axes(ir, 1, &e, seen), before = n;
	for (int k = 0; k < nseen; k++) {
		if (rewrite_place(axis, n, seen[k]) >= 0)
			continue;
		int at = n++;
		for (; at > before && axis_extent(axis[at - 1]) > axis_extent(seen[k]); at--)
			axis[at] = axis[at - 1];
		axis[at] = seen[k];
	}
	return n;
}

/* The axes of a factor in the order in which its largest read has them; of an index, a window's before its place. */
static int axes_ordered(const Order *o, const Factor *f, Node **axis)
{
	Node *e = product_of(&o->l, 1, f), **read;
	int n = node_collect(o->ir, e, OP_READ, &read), best = 0, naxis = 0;
	for (int k = 1; k < n; k++)
		if (tensor_size(read[k]->src[0]) > tensor_size(read[best]->src[0]))
			best = k;
	for (int d = 0; n && d < tensor_rank(read[best]->src[0]); d++)
		naxis = axes_of_index(o->ir, read[best]->src[1 + d], axis, naxis);
	return axes_of_index(o->ir, e, axis, naxis);
}

/* Its dimensions: those of the first factor, and where that has the first axis that is summed, the others. */
static Node *partial_sum(Order *o, unsigned set, Node **axis, int *rank)
{
	Factor f[FACTORS];
	int n = plan_factors(o, set, f);
	uint32_t left = axes_left(o, set), first = left & f[0].axes, others = left & ~first;
	Node *seen[COMP_MAX_AXES], *body = product_of(&o->l, n, f);
	int nseen = axes_ordered(o, &f[0], seen);
	*rank = 0;
	for (int i = 0; i <= nseen; i++) {
		int before = *rank;
		if (i < nseen)
			*rank = axes_take(o, seen[i], &first, axis, *rank);
		if (*rank == before)
			*rank = axes_take(o, body, &others, axis, *rank);
	}
	uint32_t summed = axes_of(o, set) & ~left;
	int all = axes_take(o, body, &summed, axis, *rank);
	if (all == *rank)
		return comp_dense(o->ir, RED_NONE, *rank, all, axis, body);
	return products_apart(o->ir, comp_dense(o->ir, RED_ADD, *rank, all, axis, body));
}

static bool ranks_fit(const Order *o, unsigned set)
{
	const Plan *p = &o->plan[set];
	bool fit = true;
	for (int k = 0; k < p->n && fit; k++)
		fit = !p->block[k].partial ||
		      (__builtin_popcount(axes_left(o, p->block[k].set)) <= RICCI_MAX_RANK &&
		       ranks_fit(o, p->block[k].set));
	return fit;
}

/* c's own plan is one block each factor: what that costs. */
static double cost_as_it_is(const Order *o)
{
	Block block[FACTORS];
	for (int k = 0; k < o->l.n; k++)
		block[k] = (Block){(uint8_t)(1U << k), false};
	return equation_cost(o, block, o->l.n, o->left);
}

static bool is_sum(const Node *c)
{
	Type type = (Type)c->type;
	return comp_reduce(c) == RED_ADD && type_is_float(type) && type_accumulator(type) == type;
}

/* c by the partial sums that cost least, of products whose factors are l; what it costs: *cost. */
static Node *by_parts(Ir *ir, Node *c, Factors l, double *cost)
{
	Factor f[FACTORS];
	while (combine_subset(&l)) {
	}
	while (l.n > FACTORS)
		combine_fewest(&l, c);
	Order o = {.ir = ir, .c = c, .left = product_left(c), .l = l};
	unsigned all = all_factors(&o);
	double as_it_is = *cost = cost_as_it_is(&o);
	if (l.n < 2)
		return products_apart(ir, c);
	o.plan = arena_alloc(&ir->arena, (all + 1) * sizeof *o.plan);
	if (plan_cost(&o, all) >= WORTH * as_it_is || !ranks_fit(&o, all))
		return products_apart(ir, c);
	*cost = o.plan[all].cost;
	int n = plan_factors(&o, all, f);
	return products_apart(ir, product_sum(ir, c, product_of(&l, n, f)));
}

static Node *cheapest(Ir *ir, Node *c, int deep, double *cost);

/* c, the product of l, as sums of the terms of a factor; NULL: none is such a sum. */
static Node *by_terms(Ir *ir, Node *c, const Factors *l, int deep, double *cost)
{
	Terms t;
	Part part[TERMS_MOST];
	*cost = 0;
	if (!comp_is_dense(c) || !terms_find(c, l, &t))
		return NULL;
	for (int k = 0; k < t.n; k++) {
		double one;
		part[k] = terms_one(c, l, &t, k);
		part[k].sum = cheapest(ir, part[k].sum, deep, &one);
		bool apart = k || !tensor_same_shape(part[k].sum, part[k].whole);
		*cost += one + (apart ? LAUNCH + BYTE * (double)tensor_bytes(part[k].sum) : 0);
	}
	return terms_joined(ir, c, &t, part);
}

/* What the first of two equations costs. */
static double first_cost(const Node *first, double flops)
{
	return LAUNCH + flops * comp_points(first) + BYTE * (double)tensor_bytes(first);
}

/* c, the product of l, in two equations: the way with one of its factors that costs least, flops a point of the first one;
 * NULL: none wins anything. */
static Node *in_two(Ir *ir, Node *c, const Factors *l, FirstFn *way, double flops, int deep,
		    double *cost)
{
	Node *best = NULL, *first;
	for (int k = 0; k < l->n; k++) {
		double sum;
		Node *then = way(ir, c, l, k, &first);
		if (!then)
			continue;
		if (is_sum(then))
			then = cheapest(ir, then, deep, &sum);
		else /* it only gathers the sums */
			sum = VECTORS * comp_points(then);
		sum += first_cost(first, flops);
		if (sum >= WORTH * *cost)
			continue;
		*cost = sum;
		best = then;
	}
	return best;
}

/* c as it costs least. deep: so many times its terms, or tables, may be sums of their own. */
static Node *cheapest(Ir *ir, Node *c, int deep, double *cost)
{
	Factors l = product_split(ir, c, comp_body(c));
	Node *best = by_parts(ir, c, factors_copy(&l), cost), *two;
	two = in_two(ir, c, &l, window_sum, 2, deep, cost);
	best = two ? two : best;
	if (--deep < 0)
		return best;
	two = in_two(ir, c, &l, segment_sum_of_gather, SCATTER, deep, cost);
	best = two ? two : best;
	double other;
	Node *terms = by_terms(ir, c, &l, deep, &other);
	if (terms && other < WORTH * *cost) {
		best = terms;
		*cost = other;
	}
	const struct {
		OtherFn *way;
		double worth; /* its share of the cost, at most */
	} ways[] = {{repeats_read, WORTH}, {quotient_apart, WORTH}, {table_along, LOOKED_UP}};
	for (int k = 0; k < COUNT(ways); k++) {
		two = ways[k].way(ir, c);
		two = two ? cheapest(ir, repeats_counted(ir, two), deep, &other) : NULL;
		if (!two || other >= ways[k].worth * *cost)
			continue;
		best = two;
		*cost = other;
	}
	return best;
}

/* ---- scatters ---- */

static bool is_scatter(Ir *ir, const Node *c)
{
	Node *axis[COMP_MAX_AXES];
	bool has[COMP_MAX_AXES];
	int n = comp_naxis(c);
	for (int k = 0; k < n; k++)
		axis[k] = comp_axis(c, k);
	return !indices_one_to_one(ir, n, axis, tensor_rank(c), c->src + n, has);
}

/* Those of c's axes that are in the set, in the order in which its place has them; then the others. */
static int axes_in(Ir *ir, const Node *c, uint32_t set, Node **axis)
{
	Node *root[RICCI_MAX_RANK + 1], *seen[COMP_MAX_AXES];
	int n = 0, rank = tensor_rank(c);
	for (int d = 0; d < rank; d++)
		root[d] = comp_lhs(c, d);
	root[rank] = comp_body(c);
	int nseen = node_axes(ir, rank + 1, root, seen);
	for (int i = 0; i < nseen; i++)
		if (product_axes(c, seen[i]) & set)
			axis[n++] = seen[i];
	return n;
}

/* A scatter: axes that its place has no part in are summed before it, where that costs less. *cost: of what is returned. */
static Node *scatter_over_sum(Ir *ir, Node *c, Factors l, double *cost)
{
	Node *axis[COMP_MAX_AXES];
	uint32_t left = product_left(c), all = 0, inside = 0;
	double sums, flops = 2;
	for (int k = 0; k < l.n; k++) {
		all |= l.f[k].axes;
		flops += l.f[k].flops + 1;
	}
	*cost = (SCATTER + flops) * product_points(c, left | all);
	int n = product_part(&l, all & ~left);
	for (int k = 0; k < n; k++)
		inside |= l.f[k].axes;
	int rank = axes_in(ir, c, inside & left, axis);
	int naxis = rank + axes_in(ir, c, inside & ~left, axis + rank);
	if (rank == naxis || rank > RICCI_MAX_RANK)
		return c;
	Node *sum = comp_dense(ir, RED_ADD, rank, naxis, axis, product_of(&l, n, l.f));
	Node *first = cheapest(ir, sum, DEEP, &sums);
	sums += LAUNCH + BYTE * (double)tensor_bytes(sum) + SCATTER * product_points(c, left);
	if (sums >= WORTH * *cost)
		return c;
	*cost = sums;
	l.f[n - 1] = (Factor){.value = node_read(ir, first, axis)};
	return product_sum(ir, c, product_of(&l, l.n - n + 1, l.f + n - 1));
}

/* A scatter as it costs least: a dense sum and a scatter of its results, or a segment sum and a dense sum over that. */
static Node *scatter_ordered(Ir *ir, Node *c, double *cost)
{
	Factors l = product_split(ir, c, comp_body(c));
	double sum;
	Node *first, *then = segment_sum_of_scatter(ir, c, &l, &first);
	Node *best = scatter_over_sum(ir, c, l, cost);
	if (!then)
		return best;
	then = cheapest(ir, then, DEEP, &sum);
	sum += first_cost(first, SCATTER);
	if (sum >= WORTH * *cost)
		return best;
	*cost = sum;
	return then;
}

/* ---- what the result's axes alone tell ---- */

/* Is it a choice, and nothing else? */
static bool is_choice(Ir *ir, const Factor *f)
{
	return f->cond && !f->value && !f->divisor && condition_chooses(ir, f->cond);
}

/* Is the factor, of the result's axes, for the result and not for each term? */
static bool leaves_sum(Ir *ir, const Factor *f)
{
	return f->cond ? is_choice(ir, f) : f->flops >= FUNCTION;
}

/* c, the sum of a product, without those of its factors; *outside: these, behind room for the sum; none: n is 0. */
static Node *factors_outside(Ir *ir, Node *c, Factors *outside)
{
	Factors l = product_split(ir, c, comp_body(c));
	uint32_t left = product_left(c);
	double saved = 0;
	int n = 0;
	for (int k = 0; k < l.n; k++) {
		Factor f = l.f[k];
		if (f.axes & ~left || !leaves_sum(ir, &f))
			continue;
		saved += f.flops;
		l.f[k] = l.f[n];
		l.f[n++] = f;
	}
	*outside = (Factors){.ir = ir, .type = l.type};
	if (n == l.n || saved * (comp_points(c) - (double)tensor_size(c)) < LAUNCH)
		return c;
	outside->n = n;
	outside->f = arena_alloc(&ir->arena, ((size_t)n + 1) * sizeof *l.f);
	memcpy(outside->f + 1, l.f, (size_t)n * sizeof *l.f);
	return product_sum(ir, c, product_of(&l, l.n - n, l.f + n));
}

/* ---- choices of what is summed ---- */

/* The smallest factor whose axes include those of factor k, which is a condition; -1: none is small enough. Loops evaluate a
 * condition on data outside of their innermost loop, too, so a tensor of it has to be used more often. */
static int smallest_around(const Node *c, const Factors *l, int k)
{
	int best = -1;
	bool data = node_reads(l->ir, l->f[k].cond);
	double least = comp_points(c) / (data ? DATA_USES : USES);
	for (int i = 0; i < l->n; i++) {
		double points = product_points(c, l->f[i].axes);
		if (i == k || l->f[i].cond || l->f[k].axes & ~l->f[i].axes || points > least)
			continue;
		best = i;
		least = points;
	}
	return best;
}

/* c, where a few of the elements that a factor of few has are left out, over that factor without them. */
static Node *choices_apart(Ir *ir, Node *c)
{
	Factors l = product_split(ir, c, comp_body(c));
	Node *axis[COMP_MAX_AXES];
	int n = l.n;
	for (int k = 0; k < l.n; k++) {
		int i = is_choice(ir, &l.f[k]) ? smallest_around(c, &l, k) : -1;
		Node *e = i < 0 ? NULL : product_of(&l, 1, &l.f[i]);
		int rank = e ? node_axes(ir, 1, &e, axis) : COMP_MAX_AXES;
		if (rank > RICCI_MAX_RANK)
			continue;
		e = node_select(ir, l.f[k].cond, e, node_const(ir, l.type, 0));
		l.f[i].value = node_read(ir, comp_dense(ir, RED_NONE, rank, rank, axis, e), axis);
		l.f[i].divisor = NULL;
		l.f[k--] = l.f[--l.n];
	}
	return l.n == n ? c : product_sum(ir, c, product_of(&l, l.n, l.f));
}

/* The equation c as it costs least, what that is: *cost; choices and factors of the result apart. */
static Node *equation_cheapest(Ir *ir, Node *c, double *cost)
{
	Factors outside = {0};
	Node *whole = c;
	*cost = VECTORS * comp_points(c);
	if (!is_sum(c))
		return c;
	if (is_scatter(ir, c))
		return scatter_ordered(ir, c, cost);
	if (comp_is_dense(c) && comp_naxis(c) > tensor_rank(c))
		c = choices_apart(ir, factors_outside(ir, c, &outside));
	c = cheapest(ir, c, DEEP, cost);
	if (!outside.n)
		return c;
	*cost += VECTORS * (double)tensor_size(c);
	outside.f[0] = (Factor){.value = node_read(ir, c, whole->src)};
	return comp_with(ir, whole, RED_NONE, product_of(&outside, outside.n + 1, outside.f));
}

Node *sum_ordered(Ir *ir, Node *c)
{
	double cost;
	return equation_cheapest(ir, c, &cost);
}

bool sums_cost_less(Ir *ir, int n, Node *const *joined, Node *t, Node *const *reader)
{
	bool changed = false;
	double before, after = 0, one;
	equation_cheapest(ir, t, &before);
	for (int k = 0; k < n; k++) {
		if (!is_sum(joined[k]))
			return false;
		equation_cheapest(ir, reader[k], &one);
		before += one;
		changed |= equation_cheapest(ir, joined[k], &one) != joined[k];
		after += one;
	}
	return changed && is_sum(t) && after < WORTH * before;
}

/* tiles.c - tiles of a window by fewer products.
 *
 * In: a factor A, and two axes of a sum of A * B. Out: what A, B and the products of a tile become. In
 *	Y[p] += A(p + r) * B(r)
 * m results over k elements of r read m + k - 1 elements of A. Where that is 4, four products of sums of these and
 * of B's are enough, m*k = 6 otherwise (Winograd 1980, "Arithmetic complexity of computations", F(2,3) and F(3,2);
 * of several windows, one within the other: Lavin and Gray 2016, "Fast algorithms for convolutional neural
 * networks", section 4.1). Transposed, a way takes tiles of A's elements, and what each adds to 4 results: there are
 * far fewer of these where A is short and 0 beyond its edges. Coefficients are 0, 1, -1 and 1/2, exact in binary; a
 * result is rounded as its window's and its neighbour's sums are. */
#include "jit/stages/tiles.h"

#include "jit/tree/tree.h"

/* a, of all ways. Each row and each column of a matrix has a coefficient that is positive. */
static const int8_t sums[PRODUCTS][INPUTS] = {
	{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, -1, 0, 1}};

static const TileWay ways[] = {
	{.results = 2,
	 .taps = 3,
	 .b = {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}},
	 .back = {{1, 1, 1, 0}, {0, 1, -1, 1}}},
	{.results = 3,
	 .taps = 2,
	 .b = {{2, 0}, {1, 1}, {1, -1}, {0, 2}},
	 .back = {{1, 1, 1, 0}, {0, 1, -1, 0}, {0, 1, 1, 1}}},
};

/* ---- finding them ---- */

/* The part of the tiles that tiles of A's places are at most. */
static const double FEWER = 0.7;

/* Is A the same where p and r are further by as much as leaves the place? */
static bool slides(Ir *ir, Node *a, const Window *w)
{
	Node *one = node_int(ir, 1), *from[2] = {w->p, w->r};
	Node *to[2] = {node_add(ir, w->p, one), node_add_scaled(ir, w->r, one, -w->sign)};
	return node_replace(ir, a, 2, from, to) == a;
}

static int64_t tiles(int64_t extent, int size)
{
	return (extent + size - 1) / size;
}

static int64_t places(const Window *w)
{
	return axis_extent(w->p) + axis_extent(w->r) - 1;
}

/* Products of a window, by those of the equation. */
static double products(const Window *w)
{
	return (double)(PRODUCTS * w->np * w->nr) / (double)(axis_extent(w->p) * axis_extent(w->r));
}

/* Narrows the places from..to to those where the condition holds, if that is of the place alone. */
static void narrow(Ir *ir, Node *cond, Node *place, int64_t *from, int64_t *to)
{
	Node *lo = node_int(ir, *from), *hi = node_int(ir, *to);
	if (node_has(cond, place) && cond_interval(ir, cond, place, &lo, &hi) &&
	    node_is_const(lo) && node_is_const(hi)) {
		*from = lo->u.i;
		*to = hi->u.i;
	}
}

/* Tiles of A's places, where these are so few that sums of what overlaps pay: A is 0 where a condition says so. */
static void find_support(Ir *ir, Node *a, Window *w)
{
	Node *guard[GUARDS_MOST];
	int nguard = 0;
	int64_t from = 0, to = places(w);
	reduce_guards(ir, RED_ADD, tiles_place(ir, a, w), GUARDS_MOST, &nguard, guard);
	for (int g = 0; g < nguard; g++)
		narrow(ir, guard[g], w->place, &from, &to);
	int64_t n = tiles(to - from, w->way->results);
	if (axis_extent(w->r) != w->way->taps || from >= to || (double)n > FEWER * (double)w->np)
		return;
	w->spreads = true;
	w->first = from;
	w->np = n;
}

bool tiles_find(Ir *ir, Node *a, Node *p, Node *r, int number, Window *w)
{
	double least = 1;
	for (int k = 0; k < COUNT(ways); k++)
		for (int sign = 1; sign >= -1; sign -= 2) {
			Window t = {.p = p, .r = r, .sign = sign, .way = &ways[k]};
			t.np = tiles(axis_extent(p), ways[k].results);
			t.nr = tiles(axis_extent(r), ways[k].taps);
			if (!slides(ir, a, &t))
				continue;
			t.place = node_axis(ir, number, places(&t));
			find_support(ir, a, &t);
			if (products(&t) < least) {
				least = products(&t);
				*w = t;
			}
		}
	return least < 1;
}

static Node *axis_or_zero(Ir *ir, int number, int64_t extent)
{
	return extent > 1 ? node_axis(ir, number, extent) : node_int(ir, 0);
}

void tiles_open(Ir *ir, Window *w, int number)
{
	w->u = node_axis(ir, number + 1, PRODUCTS);
	w->block = axis_or_zero(ir, number + 2, w->np / w->lanes);
	w->in = axis_or_zero(ir, number + 3, w->lanes);
	w->tile_p = node_add(ir, node_scale(ir, w->block, w->lanes), w->in);
	w->tile_r = axis_or_zero(ir, number + 4, w->nr);
}

/* ---- transforms ---- */

/* e[at], where that is one of 0..n-1. */
static Node *choose(Ir *ir, Node *at, int n, Node *const *e)
{
	Node *value = e[n - 1];
	for (int k = n - 2; k >= 0; k--)
		value = node_select(ir, node2(ir, OP_EQ, at, node_int(ir, k)), e[k], value);
	return value;
}

/* 0 where the index is outside 0..last. */
static Node *inside(Ir *ir, Node *index, int64_t last, Node *e)
{
	Node *in = node2(ir, OP_AND, node2(ir, OP_LE, node_int(ir, 0), index),
			 node2(ir, OP_LE, index, node_int(ir, last)));
	return node_select(ir, in, e, node_const(ir, RICCI_F32, 0));
}

/* A row of a matrix, or a column, whose coefficients are `step` apart, by x, without the factor of halves. */
static Node *combine(Ir *ir, const int8_t *row, int step, int n, Node *const *x)
{
	Node *sum = NULL;
	for (int minus = 0; minus < 2; minus++)
		for (int k = 0; k < n; k++) {
			int c = row[k * step];
			if (c == 0 || (c < 0) != minus)
				continue;
			sum = sum ? node2(ir, minus ? OP_SUB : OP_ADD, sum, x[k]) : x[k];
		}
	return sum;
}

Node *tiles_place(Ir *ir, Node *e, const Window *w)
{
	Node *from[2] = {w->p, w->r};
	Node *to[2] = {w->place, node_int(ir, w->sign > 0 ? 0 : axis_extent(w->r) - 1)};
	return node_replace(ir, e, 2, from, to);
}

/* The place at which a tile begins. */
static Node *tile_place(Ir *ir, const Window *w)
{
	int64_t taps = w->way->taps, last = axis_extent(w->r) - taps;
	Node *at = node_scale(ir, w->tile_p, w->way->results);
	if (w->spreads)
		return node_add(ir, at, node_int(ir, w->first));
	at = node_add(ir, at, node_scale(ir, w->tile_r, w->sign * taps));
	return node_add(ir, at, node_int(ir, w->sign > 0 ? 0 : last));
}

Node *tiles_of_a(Ir *ir, Node *e, const Window *w)
{
	const TileWay *way = w->way;
	Node *x[INPUTS], *value[PRODUCTS], *at = tile_place(ir, w);
	int n = w->spreads ? way->results : INPUTS;
	bool whole =
		w->np * way->results == axis_extent(w->p) && w->nr * way->taps == axis_extent(w->r);
	for (int k = 0; k < n; k++) {
		Node *place = node_add(ir, at, node_int(ir, k));
		x[k] = node_replace(ir, e, 1, &w->place, &place);
		if (w->spreads || !whole)
			x[k] = inside(ir, place, axis_extent(w->place) - 1, x[k]);
	}
	for (int u = 0; u < PRODUCTS; u++)
		value[u] = w->spreads ? combine(ir, &way->back[0][u], PRODUCTS, n, x)
				      : combine(ir, sums[u], 1, n, x);
	return choose(ir, w->u, PRODUCTS, value);
}

Node *tiles_of_b(Ir *ir, Node *e, const Window *w)
{
	const TileWay *way = w->way;
	Node *x[TILE_MOST], *value[PRODUCTS];
	bool forward = (w->sign > 0) != w->spreads;
	for (int k = 0; k < way->taps; k++) {
		Node *tap = node_add(ir, node_scale(ir, w->tile_r, way->taps),
				     node_int(ir, forward ? k : way->taps - 1 - k));
		x[k] = node_replace(ir, e, 1, &w->r, &tap);
		if (w->nr * way->taps != axis_extent(w->r))
			x[k] = inside(ir, tap, axis_extent(w->r) - 1, x[k]);
	}
	for (int u = 0; u < PRODUCTS; u++) {
		value[u] = combine(ir, way->b[u], 1, way->taps, x);
		if (u == 1 || u == 2) /* the rows of halves */
			value[u] = node2(ir, OP_MUL, node_const(ir, RICCI_F32, 0.5), value[u]);
	}
	return choose(ir, w->u, PRODUCTS, value);
}

/* e at this value of an axis; of a place that is 0 anyway, as it is. */
static Node *place_at(Ir *ir, Node *e, Node *axis, Node *value)
{
	return axis->op == OP_AXIS ? node_replace(ir, e, 1, &axis, &value) : e;
}

/* The products e of a tile. */
static void tile_products(Ir *ir, Node *e, const Window *w, Node *tile, Node **x)
{
	e = place_at(ir, e, w->block, node_floordiv(ir, tile, w->lanes));
	e = place_at(ir, e, w->in, node_floormod(ir, tile, w->lanes));
	for (int u = 0; u < PRODUCTS; u++)
		x[u] = place_at(ir, e, w->u, node_int(ir, u));
}

/* What a tile and those before it add to the n results of a tile. */
static void tiles_overlap(Ir *ir, Node *e, const Window *w, Node *tile, int n, Node **result)
{
	Node *x[PRODUCTS], *from = tile;
	for (int at = 0; at < INPUTS; at++) {
		int k = at % n;
		if (k == 0) {
			from = node_add(ir, tile, node_int(ir, -(at / n)));
			tile_products(ir, e, w, from, x);
		}
		Node *part = combine(ir, &sums[0][at], INPUTS, PRODUCTS, x);
		part = inside(ir, from, w->np - 1, part);
		result[k] = at < n ? part : node2(ir, OP_ADD, result[k], part);
	}
}

Node *tiles_back(Ir *ir, Node *e, const Window *w)
{
	int n = w->way->results;
	Node *x[PRODUCTS], *result[TILE_MOST], *p = w->p;
	if (w->spreads) { /* from the first place that counts on, to the last that p reads */
		p = node_add(ir, p, node_int(ir, axis_extent(w->r) - 1 - w->first));
		tiles_overlap(ir, e, w, node_floordiv(ir, p, n), n, result);
	} else {
		tile_products(ir, e, w, node_floordiv(ir, p, n), x);
		for (int k = 0; k < n; k++)
			result[k] = combine(ir, w->way->back[k], 1, PRODUCTS, x);
	}
	return choose(ir, node_floormod(ir, p, n), n, result);
}

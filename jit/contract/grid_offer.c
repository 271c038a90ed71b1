/* grid_offer.c - the schedules offered for a contraction on a grid.
 *
 * Input: a contraction, a device. Output: tiles of blocks and threads, pieces of K, the cheapest first, and
 * whether they are worth it. Invariant: sizes and the target decide, never a measurement. */
#include "jit/contract/internal.h"

#include <math.h>
#include <string.h>

typedef struct TileShape {
	int m, n, k, own_m, own_n;
	double rate; /* of the products of a device's threads, as far as the tile is full */
	enum { THREADS, FRAGMENTS, PARTS, GROUPS } unit; /* what multiplies */
} TileShape;

static const int way_of[] = {
	[THREADS] = 0,
	[FRAGMENTS] = TENSORISE_NARROW,
	[PARTS] = TENSORISE_NARROW,
	[GROUPS] = TENSORISE_NARROW | TENSORISE_GROUPS,
};
/* Those by tensor cores as on an H200: FRAGMENTS and GROUPS of 16 bits, PARTS of f32 (small ones wait longer for
 * each block of K than threads do). */
/* clang-format off */
static const TileShape shapes[] = {
	{128, 128, 16, 8, 8, 1, THREADS},
	{128, 128, 8, 8, 8, 0.95, THREADS},
	{128, 64, 16, 8, 4, 0.8, THREADS},
	{64, 128, 16, 4, 8, 0.8, THREADS},
	{64, 64, 16, 4, 4, 0.65, THREADS},
	{64, 64, 16, 8, 4, 0.65, THREADS},
	{32, 64, 16, 4, 4, 0.6, THREADS},
	{64, 32, 16, 4, 4, 0.6, THREADS},
	{32, 32, 16, 4, 4, 0.35, THREADS},
	{32, 32, 32, 2, 2, 0.3, THREADS},
	{128, 256, 64, 2, 64, 19, GROUPS},
	{128, 128, 64, 2, 32, 15, GROUPS},
	{64, 256, 64, 2, 64, 13, GROUPS},
	{64, 128, 64, 2, 32, 10, GROUPS},
	{128, 64, 64, 2, 16, 10, GROUPS},
	{64, 64, 64, 2, 16, 6, GROUPS},
	{128, 128, 64, 8, 8, 10, FRAGMENTS},
	{128, 128, 32, 8, 16, 10, FRAGMENTS},
	{128, 256, 32, 8, 16, 9.3, FRAGMENTS},
	{128, 128, 32, 8, 8, 9.3, FRAGMENTS},
	{128, 128, 16, 8, 8, 9.3, FRAGMENTS},
	{64, 128, 32, 8, 8, 5, FRAGMENTS},
	{128, 64, 32, 8, 8, 5, FRAGMENTS},
	{64, 128, 32, 4, 8, 3, FRAGMENTS},
	{64, 64, 32, 4, 4, 2, FRAGMENTS},
	{32, 32, 32, 4, 4, 1, FRAGMENTS},
	{32, 32, 64, 2, 4, 1, FRAGMENTS},
	{128, 128, 32, 8, 8, 1.35, PARTS},
	{64, 128, 32, 4, 8, 1.35, PARTS},
	{64, 128, 16, 8, 8, 1.32, PARTS},
	{64, 64, 32, 4, 8, 1.28, PARTS},
	{64, 64, 32, 4, 4, 0.9, PARTS},
	{32, 64, 32, 4, 4, 0.44, PARTS},
	{64, 32, 32, 4, 4, 0.44, PARTS},
	{32, 32, 32, 4, 4, 0.34, PARTS},
	{16, 64, 32, 2, 4, 0.26, THREADS},
	{64, 16, 32, 4, 2, 0.26, THREADS},
	{16, 16, 32, 1, 1, 0.12, THREADS},
};
/* clang-format on */

/* Products that a multiprocessor does in the time of a tile's first loads and last stores; of a barrier and the loads
 * before it, and where words are cut into parts behind it; that a thread does for a sum which it stores, another
 * loads and adds; of nests of one thread for each result. */
static const double TILE_BEGIN = 100e3, BLOCK_BEGIN = 4096, PARTS_BEGIN = 14e3, PIECE = 100,
		    NEST_RATE = 0.06;
/* How fast tiles are that compare each element of K with its end. */
static const double UNEVEN = 0.9;

typedef struct TileOffer {
	const TileShape *shape;
	int64_t pieces;
	double price;
} TileOffer;

static double count_of(int64_t extent, int64_t size)
{
	return (double)((extent + size - 1) / size);
}

/* In products of a multiprocessor. */
static double tile_price(const Contract *c, const TileShape *s, const Fragments *f, int64_t pieces,
			 int units)
{
	double tiles = count_of(c->m.extent, s->m) * count_of(c->n.extent, s->n) *
		       (double)c->batch.extent * (double)pieces;
	double deep = count_of((int64_t)count_of(c->k.extent, s->k), pieces);
	double rate = c->k.extent % s->k ? s->rate * UNEVEN : s->rate;
	if (s->unit != THREADS)
		rate *= f->rate;
	double begin = s->unit == PARTS ? PARTS_BEGIN : BLOCK_BEGIN;
	double tile = TILE_BEGIN + deep * ((double)s->m * s->n * s->k / rate + begin);
	/* Two tiles have a multiprocessor at a time, so half of the last turn is not lost. */
	double turns = (tiles / units + ceil(tiles / units)) / 2, sums = 0;
	if (pieces > 1)
		sums = (double)pieces * (double)(c->batch.extent * c->m.extent * c->n.extent) *
			       PIECE / units +
		       64 * BLOCK_BEGIN;
	return (turns > 1 ? turns : 1) * tile + sums;
}

static void offer_insert(TileOffer *best, int room, int *n, TileOffer o)
{
	int at = *n < room ? (*n)++ : room - 1;
	if (at == room - 1 && *n == room && best[at].shape && best[at].price <= o.price)
		return;
	for (; at > 0 && best[at - 1].price > o.price; at--)
		best[at] = best[at - 1];
	best[at] = o;
}

/* f: what the target's tensor cores multiply of the contraction; NULL: nothing. */
static bool shape_fits(const Contract *c, const TileShape *s, const Fragments *f,
		       const Target *target)
{
	enum { LINE_MOST = 128 };
	int64_t element = (int64_t)type_size(s->unit && f ? f->type : c->p->acc);
	int64_t line = GRID_ALIGN / element,
		sums = s->own_m * s->own_n * (int64_t)type_size(c->p->acc);
	if (s->unit == THREADS)
		return sums <= GRID_TILE_BYTES &&
		       2 * (s->m + s->n + 2 * line) * s->k * element <= GRID_BLOCK_BYTES;
	if (!f || (s->unit == PARTS) != f->parts)
		return false;
	if (s->unit == GROUPS)
		return target->groups && element == 2;
	/* lines of K, so long that tiles fit which are crossed from two */
	return sums <= GRID_TILE_BYTES && s->k * element <= LINE_MOST &&
	       2 * (s->m + s->n) * (s->k + line) * element <= GRID_FRAGMENT_BYTES;
}

int contract_grid_offers(Problem *p, const Target *target, int room, Schedule *out, double *price)
{
	enum { BEST = 8, PIECES_MOST = 64 };
	TileOffer best[BEST] = {0};
	Contract *c = arena_alloc(&p->ir->arena, sizeof *c);
	int n = 0;
	*price = INFINITY;
	if (!contract_find(c, p, target, 0))
		return 0;
	const Fragments *f = target->fragments ? contract_fragments(c) : NULL;
	for (int k = 0; k < COUNT(shapes); k++)
		for (int64_t pieces = 1;
		     pieces <= PIECES_MOST && shape_fits(c, &shapes[k], f, target); pieces *= 2) {
			TileOffer o = {&shapes[k], pieces,
				       tile_price(c, &shapes[k], f, pieces, target->units)};
			if (pieces <= count_of(c->k.extent, 2 * shapes[k].k) &&
			    (pieces == 1 || (double)pieces * (double)p->main_size <= GRID_SUMS))
				offer_insert(best, BEST, &n, o);
		}
	n = n < room ? n : room;
	for (int k = 0; k < n; k++) {
		const TileShape *s = best[k].shape;
		memset(&out[k], 0, sizeof out[k]);
		schedule_add(&out[k], STEP_TENSORISE, 0, way_of[s->unit]);
		schedule_add(&out[k], STEP_BLOCK, 0, s->m);
		schedule_add(&out[k], STEP_BLOCK, 1, s->n);
		schedule_add(&out[k], STEP_BLOCK, 2, s->k);
		schedule_add(&out[k], STEP_TILE, 0, s->own_m);
		schedule_add(&out[k], STEP_TILE, 1, s->own_n);
		if (best[k].pieces > 1)
			schedule_add(&out[k], STEP_RFACTOR, 0, best[k].pieces);
		schedule_add(&out[k], STEP_THREADS, 0, s->m / s->own_m * (s->n / s->own_n));
	}
	double points = (double)c->m.extent * (double)c->n.extent * (double)c->k.extent *
			(double)c->batch.extent;
	if (n && best[0].price <= points / NEST_RATE / target->units)
		*price = best[0].price;
	return n;
}

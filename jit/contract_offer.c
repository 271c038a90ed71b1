/* contract_offer.c - schedules for a contraction, the one expected to be fastest first.
 *
 * Input: a contraction and the sizes of caches. Output: block sizes, in how many pieces K runs, and
 * whether the factor of M is packed. Many combinations are priced by a model of what packing,
 * multiplying and adding up cost in cycles of one core; how many threads there are plays no part,
 * so that sums are split alike everywhere. */
#include "jit/contract.h"

#include <string.h>

enum { MOST_PLANS = 4 };

typedef struct Plan {
	bool swap, in_place;
	int64_t mb, nb, kb, strip, pieces;
	double cycles;
} Plan;

/* What the model knows of a contraction in one of its two readings. */
typedef struct Price {
	const Contract *c;
	const Target *target;
	bool in_place;		     /* is possible */
	double pack_a, pack_b, keep; /* cycles an element: packing, storing a result */
	double place;		     /* of A in place: beyond what packed elements cost */
} Price;

static double count(int64_t extent, int64_t block)
{
	return (double)((extent + block - 1) / block);
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* How many neighbours along the side are neighbours in memory, where e is a flat index. */
static double run_length(const Contract *c, const Side *s, Node *e, int64_t stride)
{
	double run = 1;
	for (int k = s->naxis - 1; k >= 0; k--) {
		if (axis_extent(s->axis[k]) == 1)
			continue;
		if (problem_stride(c->ir, e, s->axis[k]) != stride)
			break;
		run *= (double)axis_extent(s->axis[k]);
		stride *= axis_extent(s->axis[k]);
	}
	return run;
}

/* Cycles to pack an element of f, lanes along s. */
static double pack_price(const Contract *c, const Factor *f, const Side *s)
{
	if (f->value->op != OP_READ || f->value->type != c->p->acc)
		return 2;
	Node *at = f->value->src[1];
	double lanes = 0.25 + 1.2 / run_length(c, s, at, 1);
	double second = 0.5 + 1.2 / run_length(c, s, at, 2),
	       deep = 0.5 + 1 / run_length(c, &c->k, at, 1);
	return least(least(lanes, second), least(deep, 1.1)) + (f->nguard ? 0.15 : 0);
}

static Price price_of(Contract *c, const Target *target)
{
	Price p = {.c = c, .target = target, .in_place = contract_in_place(c)};
	p.pack_a = pack_price(c, &c->a, &c->m);
	p.pack_b = pack_price(c, &c->b, &c->n);
	p.keep = 0.4 + 1.2 / run_length(c, &c->n, c->p->index, 1);
	if (p.in_place)
		p.place = run_length(c, &c->k, c->a.value->src[1], 1) >= 8 ? 0.02 : 0.12;
	return p;
}

/* Cycles of a plan; parts that differ in number from threads leave some idle at the end. */
static double plan_price(const Price *p, const Plan *s)
{
	const Contract *c = p->c;
	double lanes = 32. / (double)type_size(c->p->acc);
	double m = (double)c->m.extent, n = (double)c->n.extent, k = (double)c->k.extent;
	double nmb = count(c->m.extent, s->mb), nnb = count(c->n.extent, s->nb);
	double nkb = count(c->k.extent, s->kb);
	double rows = nmb * (double)round_up(c->m.extent / (int64_t)nmb, 2);
	double cols = (double)round_up(c->n.extent, (int64_t)lanes);
	double tiles = count(c->m.extent, c->micro->mr) * count(c->n.extent, c->micro->nr);
	double sum = rows * cols * k / (2 * lanes) * 1.05 + tiles * nkb * 40;
	sum += nmb * n * k * p->pack_b;
	if (s->in_place) {
		bool near = m * k * (double)type_size(c->p->acc) < (double)p->target->l2 / 2;
		sum += count(c->n.extent, s->strip) * m * k * p->place * (near ? 1 : 4);
	} else {
		sum += nnb * m * k * p->pack_a;
	}
	sum += m * n * (p->keep + 0.2 * nkb);
	if (s->pieces > 1)
		sum += m * n * (double)s->pieces * 0.8 + 10000;
	double parts = nmb * nnb * (double)s->pieces;
	sum = (sum + parts * 2500) * (double)c->batch.extent;
	return sum * (1 + 1.5 / (parts * (double)c->batch.extent));
}

/* Equal blocks of at most `most`. */
static int64_t balanced(int64_t extent, int64_t most, int64_t multiple)
{
	most = most < multiple ? multiple : most;
	int64_t blocks = (extent + most - 1) / most;
	return round_up((extent + blocks - 1) / blocks, multiple);
}

/* The cheapest plan whose A is packed or in place, and of the given depth. */
static Plan plan_best(const Price *p, bool swap, bool in_place, int64_t kb)
{
	const Contract *c = p->c;
	int64_t size = (int64_t)type_size(c->p->acc), mr = c->micro->mr, nr = c->micro->nr;
	int64_t room = (int64_t)p->target->l2 / 2 / size; /* elements: of a strip, of A's block */
	Plan best = {0};
	for (int64_t mb = 512 * mr; mb >= 2 * mr; mb /= 2)
		for (int64_t nb = 32 * nr; nb >= nr; nb /= 2)
			for (int64_t pieces = 1; pieces <= 32; pieces *= 2)
				for (int wide = 0; wide < 2; wide++) {
					Plan s = {swap,
						  in_place,
						  balanced(c->m.extent, mb, mr),
						  balanced(c->n.extent, nb, nr),
						  kb,
						  nr,
						  pieces,
						  0};
					if (wide)
						s.strip = s.nb;
					if (s.strip * kb > room ||
					    (!in_place && s.mb * kb > room) ||
					    (pieces > 1 &&
					     (c->k.compact || c->k.extent < 2 * kb * pieces / 3)))
						continue;
					s.cycles = plan_price(p, &s);
					if (!best.cycles || s.cycles < best.cycles)
						best = s;
				}
	return best;
}

/* A panel of B fills half of L1; conditions repeat at the same places of all blocks. */
static int64_t depth(const Contract *c, const Target *target)
{
	int64_t most = (int64_t)(target->l1 / 2 / type_size(c->p->acc)) / c->micro->nr;
	int64_t period = c->period > 0 && c->period <= most ? c->period : 1;
	return balanced(c->k.extent, most + period / 2, period);
}

static void plan_write(const Plan *p, Schedule *s)
{
	memset(s, 0, sizeof *s);
	schedule_add(s, STEP_TENSORISE, 0, p->swap);
	schedule_add(s, STEP_BLOCK, 0, p->mb);
	schedule_add(s, STEP_BLOCK, 1, p->nb);
	schedule_add(s, STEP_BLOCK, 2, p->kb);
	schedule_add(s, STEP_BLOCK, 3, p->strip);
	schedule_add(s, STEP_SPREAD, 0, p->pieces);
	schedule_add(s, STEP_IN_PLACE, 0, p->in_place);
}

/* Is the work long enough in every direction to pay for packing? */
static bool worth_packing(const Contract *c)
{
	double m = (double)c->m.extent, n = (double)c->n.extent, k = (double)c->k.extent;
	return k >= 4 && m * n / (m + n) >= 3 && contract_padding(c) <= 2.5 &&
	       m * n * k * (double)c->batch.extent >= 16384;
}

int contract_offers(Problem *p, const Target *target, int room, Schedule *out, bool *first)
{
	Contract *c = arena_alloc(&p->ir->arena, sizeof *c);
	Plan plan[MOST_PLANS];
	int nplan = 0, n = 0;
	*first = false;
	if (!contract_find(c, p, target, false))
		return 0;
	*first = worth_packing(c);
	for (int swap = 0; swap < 2; swap++) {
		if (!contract_find(c, p, target, swap))
			continue;
		Price price = price_of(c, target);
		int64_t kb = depth(c, target);
		for (int way = 0; way <= price.in_place; way++)
			plan[nplan++] = plan_best(&price, swap, way, kb);
	}
	for (; n < nplan && n < room; n++) {
		int best = n;
		for (int k = n + 1; k < nplan; k++)
			if (plan[k].cycles < plan[best].cycles)
				best = k;
		Plan t = plan[n];
		plan[n] = plan[best];
		plan[best] = t;
		plan_write(&plan[n], &out[n]);
		if (!*first)
			return 1;
	}
	return n;
}

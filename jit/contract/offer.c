/* offer.c - schedules for a contraction, the one expected to be fastest first.
 *
 * Input: a contraction and the sizes of caches. Output: block sizes, in how many pieces K runs, and
 * whether the operand of M is packed. Many combinations are priced by a model of what packing,
 * multiplying and adding up cost in cycles of one core; how many threads there are plays no part,
 * so that sums are split alike everywhere. */
#include "jit/contract/internal.h"
#include "jit/tree/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Each way with as much unpacked as it may be (0, 1, 2), and variants of the best. */
enum { VARIANTS = 3, MOST_PLANS = 3 * TENSORISE_WAYS + VARIANTS };
/* Cycles of waiting for all threads between two phases, of beginning to pack a panel, of a part for the pool, and of a
 * block that is none. */
static const double PHASE = 30000, CALL = 400, PART = 2500, BLOCK = 500;
/* Cycles that an element of a shared panel is waited for, those more where all panels are a good part of the
 * last cache, so that they go to memory and come back, and by how much slower products are whose operand of
 * M is unpacked. */
static const double FAR = 0.15, SPILLED = 2, PLACED = 1.05;
/* Cycles that a line of an unpacked operand takes from L2, along K and across; how many times that
 * from farther. */
static const double ALONG = 0.3, ACROSS = 0.6, FARTHER = 4;
/* Cycles of such a line where the lines of a panel drive each other from L1. */
static const double DRIVEN = 2.5;
/* What is left of waiting for an unpacked panel that was prefetched. */
static const double ASKED = 0.15;
/* So many rows of an unpacked B, read side by side along a block's columns, are prefetched by the processor where
 * they are of at least so many panels. */
enum { STREAMS = 32, STREAMED = 8 };
/* How many times the cheapest plan's price is offered no more. */
static const double HOPELESS = 1.75;
/* How many times packing a result costs that is stored across the sums' lines, in L2 and where it leaves it. */
static const double ACROSS_NEAR = 2, ACROSS_FAR = 6;
/* Cycles that an element of a copy costs; how many times that where it leaves L2. */
static const double COPIED = 0.8, COPIED_FAR = 1.8;
/* Cycles to pack an element whose line was prefetched to L2 and driven out again. */
static const double EVICTED = 0.5;
/* Cycles to pack an element that is gathered, and of an operation of an expression in vectors. */
static const double GATHERED = 2, COMPUTED = 0.1;
/* Cycles that an element is waited for which has a line from L2 for itself alone. */
static const double LONE = 1.5;

typedef struct Plan {
	int way;	/* argument of STEP_TENSORISE */
	int unpacked_a; /* argument of the step: 1 A, 2 B too */
	int share;	/* 1 A, 2 B */
	int64_t mc, nc, kc, strip, pieces;
	double cycles;
} Plan;

/* What the model knows of a contraction in one of its two readings. */
typedef struct Price {
	Contract *c;
	const Target *target;
	int unpacked_a, share; /* the most of it that is possible */
	bool piece;	       /* of another tree: one part, no phases */
	int64_t deep;	       /* elements of K that a block has at most */
	int64_t near; /* of them, those whose lines of B stay in L2 until the next panel is packed */
	double pack_a, pack_b, keep; /* cycles an element: packing, storing a result */
	double lines;		     /* of an unpacked panel of A, for an element of K */
	int64_t step;		     /* set_step of an unpacked A in L2 */
	double line, far, far_b; /* cycles of one; of an element of A, of B that come from far */
	double copy;		 /* cycles of all copies */
	double apart;		 /* share of B's panels that must be packed */
	bool lies;		 /* none: B lies as its panels would */
	double skipped;		 /* of the products that unpacked panels of A skip */
	double k;		 /* elements of K that a part lists, on average */
} Price;

static double count(int64_t extent, int64_t block)
{
	return (double)((extent + block - 1) / block);
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* Cycles that an element of f is waited for: lines far apart come late, those from memory more so.
 */
static double far_price(const Contract *c, const Target *target, Node *read)
{
	Node *axis = c->k.naxis ? c->k.axis[c->k.naxis - 1] : NULL;
	int64_t stride = axis ? affine_stride(c->ir, read->src[1], axis) : 0;
	double cycles = 0;
	if (stride >= PAGE / (int64_t)type_size(read->type))
		cycles += 0.6;
	if ((double)tensor_bytes(read->src[0]) > (double)target->l3 / 4)
		cycles += contract_run(c, &c->k, read->src[1], 1) >= 16 ? 0.15 : 0.5;
	return cycles;
}

/* Of the bytes from an element of K to the next the largest divisor that is a power of two, at most
 * `most`: such elements' lines meet in one set of a cache's whose ways are of that size. 0: they
 * are not evenly apart. */
static int64_t set_step(const Contract *c, Node *read, int64_t most)
{
	Node *axis = c->k.naxis ? c->k.axis[c->k.naxis - 1] : NULL;
	int64_t stride = axis ? affine_stride(c->ir, read->src[1], axis) : 0;
	if (stride <= 0) /* or it varies */
		return 0;
	while (most > 1 && stride * (int64_t)type_size(read->type) % most)
		most /= 2;
	return most;
}

/* Do lines of so many elements of K, whose set_step it is, meet in fewer sets of L1 than they need? */
static bool crowded(const Target *target, int64_t apart, int64_t rows)
{
	return apart && rows > (int64_t)target->l1 / apart;
}

/* How many lines of the cache hold a panel of A, for an element of K. */
static double panel_lines(const Contract *c, Node *read)
{
	enum { DEEP = 64, ROWS = 16, ROOM = 2 * DEEP * ROWS };
	int shift = 6 - __builtin_ctzll(type_size(read->type)); /* elements of a line */
	int64_t rows = c->mr < ROWS ? c->mr : ROWS;
	int64_t deep = c->k.extent < DEEP ? c->k.extent : DEEP;
	int64_t row[ROWS], col[DEEP], seen[ROOM];
	int found = 0;
	if (!contract_places(c, &c->m, read->src[1], rows, row) ||
	    !contract_places(c, &c->k, read->src[1], deep, col))
		return (double)rows;
	for (int x = 0; x < ROOM; x++)
		seen[x] = INT64_MIN;
	for (int64_t k = 0; k < deep; k++)
		for (int64_t i = 0; i < rows; i++) {
			int64_t line = (row[i] + col[k]) >> shift, at = line & (ROOM - 1);
			while (seen[at] != line && seen[at] != INT64_MIN)
				at = (at + 1) & (ROOM - 1);
			found += seen[at] == INT64_MIN;
			seen[at] = line;
		}
	return (double)found / (double)deep;
}

/* The same of an operand that is an expression. */
static double expression_price(Contract *c, const Operand *f, const IndexGroup *s)
{
	double lanes = (double)contract_lies_along(c, f, s);
	double deep = c->k.compact ? 1 : (double)contract_lies_along(c, f, &c->k);
	double moved = lanes >= LANES_RUN  ? 0.4 + 3 / lanes
		       : deep >= LANES_RUN ? 0.7 + 1 / deep
					   : GATHERED;
	return moved + COMPUTED * expr_flops(c->ir, f->value);
}

/* The same of an element with no neighbours along two groups of indices. */
static double lone_price(const Contract *c, const Target *target, const Node *tensor, Node *index,
			 const IndexGroup *s, const IndexGroup *t)
{
	bool alone = contract_run(c, s, index, 1) == 1 && contract_run(c, t, index, 1) == 1;
	return alone && (double)tensor_bytes(tensor) > (double)target->l1 ? LONE : 0;
}

/* Cycles to pack an element of f, lanes along s. */
static double pack_price(Contract *c, const Target *target, const Operand *f, const IndexGroup *s)
{
	Source source;
	if (!contract_source(f, &source))
		return expression_price(c, f, s);
	Node *at = source.read->src[1];
	double lanes = 0.4 + 3 / (double)contract_run(c, s, at, 1);
	double second = 0.8 + 3 / (double)contract_run(c, s, at, 2),
	       deep = 0.7 + 1 / (double)contract_run(c, &c->k, at, 1);
	if (f->nguard) /* the ends of each line */
		deep += 9 / (double)axis_extent(c->k.axis[c->k.naxis - 1]);
	return least(least(lanes, second), least(deep, 1.8)) + (f->nguard ? 0.15 : 0) +
	       far_price(c, target, source.read) +
	       lone_price(c, target, source.read->src[0], at, s, &c->k);
}

/* Do the next lines of B's panels come from L2 while one is multiplied? */
static bool comes_from_l2(const Micro *micro)
{
	enum { CYCLES = 8 };
	return micro->mr >= CYCLES;
}

/* Then A's panel stays in L1, else B's does. */
static bool keeps_a(const Micro *micro)
{
	return comes_from_l2(micro) && !micro->streams_a;
}

/* Elements of K that a panel of B may have. It fills half of L1, or more where it comes from L2: then
 * A's panel has to fit into L1. */
static int64_t deepest(const Contract *c, const Target *target)
{
	enum { MORE = 4 };
	const Micro *micro = c->micro;
	size_t room = target->l1 / 2 * (comes_from_l2(micro) ? MORE : 1);
	int64_t most = (int64_t)(room / type_size(micro->b.held)) / micro->nr;
	int64_t beside = (int64_t)(target->l1 * 2 / 3 / type_size(micro->a.held)) / micro->mr;
	return keeps_a(micro) && beside < most ? beside : most;
}

/* Of `most` elements of K those whose lines of B, prefetched for the next panel, are in L2 until that is packed. */
static int64_t nearest(const Contract *c, const Target *target, int64_t most)
{
	enum { WAYS = 8 };
	int64_t l2 = (int64_t)target->l2;
	Source source;
	int64_t apart = contract_source(&c->b, &source) ? set_step(c, source.read, l2 / WAYS) : 0;
	return apart && l2 / apart < most ? l2 / apart : most;
}

/* Do panels of B consist of whole lines, which no other panel reads again? */
static bool has_lines(const Contract *c)
{
	int64_t nr = c->micro->nr;
	Source source;
	return contract_source(&c->b, &source) && set_step(c, source.read, LINE) == LINE &&
	       nr * (int64_t)type_size(source.read->type) % LINE == 0 &&
	       contract_run(c, &c->n, source.read->src[1], 1) >= nr;
}

/* The part of the elements of K that a choice keeps, on average over the batch: known of a comparison of two axes. */
static double kept_by(const Contract *c, Node *choice)
{
	enum { POINTS_MOST = 1 << 14 };
	Node *slack = condition_slack(c->ir, choice);
	if (!slack)
		return 1;
	Affine a = affine_of(c->ir, slack);
	if (a.n != 2 || a.atom[0]->op != OP_AXIS || a.atom[1]->op != OP_AXIS)
		return 1;
	int64_t rows = axis_extent(a.atom[0]), cols = axis_extent(a.atom[1]), kept = 0;
	if (rows > POINTS_MOST / cols)
		return 1;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++)
			kept += a.c + a.k[0] * i + a.k[1] * j >= 0;
	return (double)kept / (double)(rows * cols);
}

/* What A costs where it is not packed. */
static void price_in_place(Price *p)
{
	Contract *c = p->c;
	Node *read = contract_read(&c->a);
	bool along = contract_run(c, &c->k, read->src[1], 1) >= 8;
	contract_rows(c, p->target, true);
	p->lines = panel_lines(c, read);
	p->line = along ? ALONG : ACROSS;
	p->far = (along ? 1 : 2) * far_price(c, p->target, read);
	/* Of what comes from farther than L2, packing waits for more than lines that drive each other. */
	if (tensor_bytes(read->src[0]) <= p->target->l2)
		p->step = set_step(c, read, PAGE);
}

static Price price_of(Contract *c, const Target *target)
{
	Price p = {.c = c, .target = target, .unpacked_a = contract_unpacked(c, false)};
	int64_t deep = deepest(c, target);
	p.near = nearest(c, target, deep);
	p.deep = has_lines(c) ? deep : p.near;
	for (int k = 0; k < c->npadded; k++)
		p.copy += (COPIED + COMPUTED * expr_flops(c->ir, c->padded[k].value)) *
			  (double)tensor_size(c->padded[k].buffer);
	for (int k = 0; k < c->ntransposed; k++) {
		const Node *from = c->transposed[k].from;
		bool far = (double)tensor_bytes(from) > (double)target->l2;
		p.copy += COPIED * (far ? COPIED_FAR : 1) * (double)tensor_size(from);
	}
	p.lies = contract_lies(c);
	p.share =
		(contract_shares(c, false) ? 1 : 0) | (contract_shares(c, true) && !p.lies ? 2 : 0);
	if (p.unpacked_a && contract_unpacked(c, true) && !p.lies) {
		int64_t run = contract_run(c, &c->n, contract_read(&c->b)->src[1], 1),
			nr = c->micro->nr;
		p.unpacked_a = run >= nr ? 2 : 1;
		/* Panels without padding, in one line, do; their loads cross lines of the cache. */
		p.apart = c->b.nguard ? 0.8
			  : run % nr == 0 || run == c->n.extent
				  ? 0.05
				  : 0.05 + (double)(nr - 1) / (double)run;
	}
	p.pack_a = 2 * pack_price(c, target, &c->a, &c->m); /* short vectors */
	p.pack_b = pack_price(c, target, &c->b, &c->n);
	bool far = (double)tensor_bytes(c->p->out[0]) > (double)target->l2;
	p.keep = least(0.4 + 3 / (double)contract_run(c, &c->n, c->p->index, 1),
		       (0.8 + 3 / (double)contract_run(c, &c->m, c->p->index, 1)) *
			       (far ? ACROSS_FAR : ACROSS_NEAR)) +
		 lone_price(c, target, c->p->out[0], c->p->index, &c->m, &c->n);
	if (p.unpacked_a)
		price_in_place(&p);
	p.k = (double)c->k.extent;
	for (int g = 0; g < c->nchoice; g++)
		p.k *= kept_by(c, c->choice[g]);
	p.skipped = p.unpacked_a ? zero_blocks_share(c) : 0;
	int64_t rows = (int64_t)(target->l1 / 2 / type_size(c->b.value->type)) / c->micro->nr;
	rows = rows < c->k.extent ? rows : c->k.extent;
	if (p.unpacked_a > 1 && crowded(target, set_step(c, contract_read(&c->b), PAGE), rows)) {
		/* Each panel of A fetches anew: what was prefetched to L2 is close. */
		bool close = tensor_bytes(c->b.value->src[0]) <= target->l2;
		p.far_b = (close ? ASKED : 1) * far_price(c, target, c->b.value);
	}
	return p;
}

/* Cycles that an unpacked A costs: its lines come for each block of N, for each strip of the block,
 * and for each panel where they don't stay in L1. */
static double place_price(const Price *p, const Plan *s, double nnc)
{
	const Contract *c = p->c;
	const Node *read = contract_read(&c->a);
	double size = (double)type_size(read->type), k = p->k;
	double panels = count(c->m.extent, c->mr), strips = count(c->n.extent, s->strip);
	double all = least(size * (double)c->m.extent * k,
			   (double)tensor_bytes(read->src[0]) / (double)contract_points(c, &c->a));
	double block = all * least(1, (double)s->mc / (double)c->m.extent);
	bool driven = crowded(p->target, p->step, s->kc);
	double room = (double)p->target->l2 / 2, line = p->lines * p->line;
	double near = line + (driven ? p->lines * DRIVEN : 0);
	double from = FARTHER * line + (double)c->mr * p->far;
	double sum =
		nnc * (all < room ? near : from) + (strips - nnc) * (block < room ? near : from);
	if (driven || p->lines * (double)s->kc * LINE > (double)p->target->l1 / 2)
		sum += (count(c->n.extent, c->micro->nr) - strips) * p->lines * DRIVEN;
	return panels * k * sum;
}

/* Cycles that n elements of shared panels cost beside packing them, which are read so many times. */
static double shared_price(const Price *p, const PanelForm *form, double n, double times)
{
	bool spilled = n * (double)type_size(form->held) > (double)p->target->l3 / 4;
	return n * (times * FAR + (spilled ? SPILLED : 0));
}

/* Is K cut into blocks so that B is read in rows that the processor prefetches? */
static bool streams_b(const Contract *c, const Plan *s)
{
	return s->unpacked_a > 1 && s->kc <= STREAMS && s->kc < c->k.extent &&
	       s->nc >= STREAMED * c->micro->nr;
}

/* Cycles that panels cost: packing, for each part or once for all; reading them. */
static double panel_price(const Price *p, const Plan *s, double nmc, double nnc)
{
	const Contract *c = p->c;
	double lanes = 32. / (double)type_size(c->p->acc), sum = 0;
	double m = (double)c->m.extent, n = (double)c->n.extent, k = p->k;
	double times_a = s->share & 1 ? 1 : nnc, times_b = s->share & 2 ? 1 : nmc;
	double packed = p->lies ? 0 : s->unpacked_a < 2 ? 1 : p->apart;
	double pack_a = p->pack_a + CALL / (double)(c->mr * s->kc);
	double pack_b =
		p->pack_b + CALL / (double)(c->micro->nr * s->kc) + (s->kc > p->near ? EVICTED : 0);
	sum += times_b * n * k * pack_b * packed * (1 + 4 * lanes / (double)s->nc);
	/* What was prefetched is in L1 for the first panel of A, in L2 for the others. */
	double panels = count(c->m.extent, c->mr);
	double from_far = !streams_b(c, s) ? panels : comes_from_l2(c->micro) ? 0 : panels - nmc;
	if (s->unpacked_a > 1)
		sum += n * k * (0.1 * panels + p->far_b * from_far + nmc * FAR);
	sum += s->unpacked_a ? place_price(p, s, nnc) : times_a * m * k * pack_a;
	/* Shared panels come from far for each block; those in place are prefetched beside a packed A. */
	sum += s->share & 1 ? shared_price(p, &c->micro->a, m * k, nnc) : 0;
	if (s->share & 2)
		sum += shared_price(p, &c->micro->b, n * k, nmc);
	else if (p->lies && s->unpacked_a)
		sum += nmc * n * k * FAR;
	return sum;
}

/* Cycles of a plan. */
static double plan_price(const Price *p, const Plan *s)
{
	const Contract *c = p->c;
	double lanes = 32. / (double)type_size(c->p->acc);
	double m = (double)c->m.extent, n = (double)c->n.extent, k = p->k;
	double nmc = count(c->m.extent, s->mc), nnc = count(c->n.extent, s->nc);
	double nkc = ceil(k / (double)s->kc);
	/* Tile registers are multiplied whole. */
	bool whole = c->micro->whole;
	double rows = nmc * (double)round_up(c->m.extent / (int64_t)nmc, whole ? c->micro->mr : 2);
	double wide = p->target->wide_fma ? 2 : 1; /* half a vector takes as long as a whole one */
	double cols = (double)round_up(c->n.extent, whole ? c->micro->nr : (int64_t)(wide * lanes));
	double tiles = count(c->m.extent, c->mr) * count(c->n.extent, c->micro->nr);
	double speed = c->micro->speed * wide;
	double sum = rows * cols * k / (2 * lanes * speed) * 1.05;
	sum = sum * (s->unpacked_a ? PLACED : 1) * (s->unpacked_a == 1 ? 1 - p->skipped : 1);
	sum += tiles * nkc * 40;
	sum += panel_price(p, s, nmc, nnc);
	sum += m * n * (p->keep + 0.2 * nkc);
	if (s->pieces > 1)
		sum += m * n * (double)s->pieces * 1.5 + PHASE;
	double parts = nmc * nnc * (double)s->pieces;
	sum = (sum + parts * (p->piece ? BLOCK : PART)) * (double)c->batch.extent;
	/* What shares lines is one thread's. */
	double apart = parts * (double)(c->batch.extent / contract_close(c));
	sum *= p->piece ? 1 : cost_imbalance(apart);
	return sum + p->copy + (s->share || contract_copies(c) ? PHASE : 0);
}

/* Equal blocks of at most `most`, in so many pieces with equal numbers of them. */
static int64_t balanced(int64_t extent, int64_t most, int64_t multiple, int64_t pieces)
{
	most = most < multiple ? multiple : most;
	int64_t blocks = round_up((extent + most - 1) / most, pieces);
	return round_up((extent + blocks - 1) / blocks, multiple);
}

/* Conditions repeat at the same places of all blocks. */
static int64_t depth(const Price *p, int64_t most, int64_t pieces)
{
	const Contract *c = p->c;
	int64_t period = c->period > 0 && c->period <= most ? c->period : 1;
	return balanced(c->k.extent, most + period / 2, period, pieces);
}

/* Keeps s where it fits the caches and is cheaper. */
static void plan_try(const Price *p, Plan s, Plan *best)
{
	const Contract *c = p->c;
	int64_t room = (int64_t)(p->target->l2 / 2 / type_size(c->micro->b.held)); /* a strip, A */
	if (s.strip * s.kc > room || (!s.unpacked_a && s.mc * s.kc > room))
		return;
	s.cycles = plan_price(p, &s);
	if (!best->cycles || s.cycles < best->cycles)
		*best = s;
}

/* The same with all that may be shared, and one panel of B or all of the block at once. */
static void plan_share(const Price *p, Plan s, Plan *best)
{
	for (s.share = 0; s.share <= 3; s.share++) {
		if (s.share & ~p->share || (s.share & 1 && s.unpacked_a) ||
		    (s.share & 2 && s.unpacked_a > 1))
			continue;
		/* The first of equal plans is kept. In place, B's panels come from far. */
		bool strips = p->lies || !keeps_a(p->c->micro);
		s.strip = strips ? p->c->micro->nr : s.nc;
		plan_try(p, s, best);
		s.strip = strips ? s.nc : p->c->micro->nr;
		plan_try(p, s, best);
	}
}

/* Half as large a block as this one, or the largest that is not the whole of the extent. */
static int64_t smaller(int64_t block, int64_t extent)
{
	while (block >= 2 * extent)
		block /= 2;
	return block / 2;
}

/* The plan with blocks of M and N of all sizes. */
static void plan_blocks(const Price *p, Plan s, Plan *best)
{
	const Contract *c = p->c;
	int64_t mr = c->mr, nr = c->micro->nr;
	for (int64_t mc = 512 * mr; mc >= 2 * mr; mc = smaller(mc, c->m.extent)) {
		s.mc = balanced(c->m.extent, mc, mr, 1);
		for (int64_t nc = 32 * nr; nc >= nr; nc = smaller(nc, c->n.extent)) {
			s.nc = balanced(c->n.extent, nc, nr, 1);
			plan_share(p, s, best);
		}
	}
}

/* The cheapest plan whose A is packed or unpacked. */
static Plan plan_best(const Price *p, int way, int unpacked_a)
{
	Contract *c = p->c;
	contract_rows(c, p->target, unpacked_a);
	int64_t deep = c->k.extent / depth(p, p->deep, 1);
	int64_t most =
		c->k.compact || p->piece ? 1 : (int64_t)least((double)(deep + deep / 2 + 1), 32);
	Plan best = {0}, s = {.way = way, .unpacked_a = unpacked_a};
	for (s.pieces = 1; s.pieces <= most; s.pieces *= 2) {
		s.kc = depth(p, p->deep, s.pieces);
		plan_blocks(p, s, &best);
		if (p->near < p->deep) {
			s.kc = depth(p, p->near, s.pieces);
			plan_blocks(p, s, &best);
		}
		if (unpacked_a > 1 && p->far_b > 0) {
			s.kc = depth(p, STREAMS, s.pieces);
			plan_blocks(p, s, &best);
		}
	}
	return best;
}

static void plan_write(const Plan *p, Schedule *s)
{
	memset(s, 0, sizeof *s);
	schedule_add(s, STEP_TENSORISE, 0, p->way);
	schedule_add(s, STEP_BLOCK, 0, p->mc);
	schedule_add(s, STEP_BLOCK, 1, p->nc);
	schedule_add(s, STEP_BLOCK, 2, p->kc);
	schedule_add(s, STEP_BLOCK, 3, p->strip);
	schedule_add(s, STEP_RFACTOR, 0, p->pieces);
	schedule_add(s, STEP_UNPACKED, 0, p->unpacked_a);
	schedule_add(s, STEP_SHARE, 0, p->share);
}

/* Is the work long enough in every direction to pay for packing? */
static bool worth_packing(const Contract *c)
{
	double m = (double)c->m.extent, n = (double)c->n.extent, k = (double)c->k.extent;
	return k >= 4 && m * n / (m + n) >= 2.5 && contract_padding(c) <= 2.5 &&
	       m * n * k * (double)c->batch.extent >= 16384;
}

static int by_price(const void *a, const void *b)
{
	double x = ((const Plan *)a)->cycles, y = ((const Plan *)b)->cycles;
	return (x > y) - (x < y);
}

/* What the model may have judged wrong of the best: how deep, how wide, how often it packs. */
static int plan_variants(const Plan *best, int64_t extent, Plan *out)
{
	int n = 0;
	if (best->kc < extent) {
		out[n] = *best;
		out[n++].kc = 2 * best->kc;
	}
	out[n] = *best;
	out[n].mc *= 2;
	out[n].strip *= best->strip == best->nc ? 2 : 1;
	out[n++].nc *= 2;
	if (best->pieces > 1) {
		out[n] = *best;
		out[n++].pieces /= 2;
	}
	return n;
}

/* The cheapest plans of these ways to read p. */
static int plan_ways(Contract *c, Problem *p, const Target *target, int ways, bool piece, Plan *out)
{
	int n = 0;
	for (int way = 0; way < ways; way++) {
		if (!contract_find(c, p, target, way) ||
		    (way & TENSORISE_NARROW && !contract_packs(c)))
			continue;
		Price price = price_of(c, target);
		price.piece = piece;
		price.share = piece ? 0 : price.share;
		for (int unpacked_a = way & TENSORISE_PADDED ? 1 : 0;
		     unpacked_a <= price.unpacked_a; unpacked_a++)
			out[n++] = plan_best(&price, way, unpacked_a);
	}
	qsort(out, (size_t)n, sizeof *out, by_price);
	return n;
}

int contract_offers(Problem *p, const Target *target, int room, Schedule *out, double *price)
{
	Contract *c = arena_alloc(&p->ir->arena, sizeof *c);
	Plan plan[MOST_PLANS];
	int n = 0;
	*price = INFINITY;
	if (!contract_find(c, p, target, 0))
		return 0;
	int64_t extent = c->k.extent;
	/* An operand to transpose may have padding, too, and be either. */
	int ways = contract_find(c, p, target, TENSORISE_TRANSPOSED) ? TENSORISE_WAYS
								     : TENSORISE_TRANSPOSED;
	int nplan = plan_ways(c, p, target, ways, false, plan);
	while (nplan > 2 && plan[nplan - 1].cycles > HOPELESS * plan[0].cycles)
		nplan--;
	*price = plan[0].cycles;
	int variants = plan_variants(&plan[0], extent, plan + nplan);
	for (; n < nplan + variants && n < room; n++)
		plan_write(&plan[n], &out[n]);
	return n;
}

bool contract_piece_offer(Problem *p, const Target *target, Schedule *s, double *price)
{
	Contract *c = arena_alloc(&p->ir->arena, sizeof *c);
	Plan plan[MOST_PLANS];
	if (!contract_find(c, p, target, 0) || !worth_packing(c))
		return false;
	if (!plan_ways(c, p, target, TENSORISE_PADDED, true, plan))
		return false;
	plan_write(&plan[0], s);
	*price = plan[0].cycles;
	return true;
}

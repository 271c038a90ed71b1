/* offer.c - schedules offered for direct nests: what runs in lanes, in parts, in squares, what
 * is written out.
 *
 * Input: a problem. Output: for each variant a schedule that fits it, the first one suggested by
 * its structure. Invariant: only index functions and extents are asked. */
#include "jit/nest/internal.h"

#include <assert.h>
#include <string.h>

/* ---- direct nests: which axis runs in lanes ---- */

/* The share of the domain's points at which a read has another place: elsewhere it is kept. */
static double share_read(const Problem *p, const Node *read)
{
	double share = 1;
	for (int k = 0; k < p->naxis; k++)
		if (!node_has(read->src[1], p->axis[k]))
			share /= (double)axis_extent(p->axis[k]);
	return share;
}

/* How well the axis suits lanes: contiguous reads, contiguous stores, enough iterations. */
static double vector_score(const Problem *p, int axis)
{
	Node **read;
	double sum = 0;
	int64_t extent = axis_extent(p->axis[axis]);
	int n = node_collect(p->ir, p->body, OP_READ, &read);
	for (int i = 0; i < n; i++) {
		int64_t k = affine_stride(p->ir, read[i]->src[1], p->axis[axis]);
		double suits = k == 1 ? 2 : k == 0 ? 1 : k == INT64_MIN ? -4 : -3;
		sum += suits * share_read(p, read[i]);
	}
	if (axis < p->nspatial)
		sum += affine_stride(p->ir, p->index, p->axis[axis]) == 1 ? 1.5 : -0.5;
	return sum - (extent < 4 ? 6 : extent < 8 ? 3 : extent < 16 ? 1 : 0);
}

static bool vector_allowed(const Problem *p, int axis)
{
	if (!p->scatter)
		return true;
	for (int k = 0; k < p->nfree; k++)
		if (p->free_axis[k] == p->axis[axis])
			return true;
	return false;
}

static int vector_axis(const Problem *p, int rank)
{
	bool used[COMP_MAX_AXES] = {false};
	int best = -1;
	for (int round = 0; round <= rank; round++) {
		double top = 0;
		best = -1;
		for (int k = 0; k < p->naxis; k++) {
			double score = vector_score(p, k);
			if (!used[k] && vector_allowed(p, k) && (best < 0 || score > top)) {
				best = k;
				top = score;
			}
		}
		if (best >= 0)
			used[best] = true;
	}
	return best;
}

enum { LANES = 32, CHUNK = 2048, FEW_LANES = 8 };

/* The axis that is contiguous in a read that jumps along the last one; -1: none. */
static int across_axis(const Problem *p)
{
	Node **read;
	int axis = -1, n = node_collect(p->ir, p->body, OP_READ, &read);
	for (int i = 0; i < n; i++) {
		int64_t step = affine_stride(p->ir, read[i]->src[1], p->axis[p->naxis - 1]);
		bool jumps = step >= 16 || step <= -16;
		for (int k = 0; k + 1 < p->naxis && jumps; k++)
			if (affine_stride(p->ir, read[i]->src[1], p->axis[k]) == 1)
				axis = k;
	}
	return axis;
}

enum { SQUARE_LEAST = 8 };

/* A transpose reads lines across the lanes: a small square uses each line while it is near, and is
 * transposed in registers where the read allows. */
static bool offer_square(const Problem *p, int64_t side, int64_t lanes, Schedule *s)
{
	int last = p->naxis - 1, n = 0, loops = p->naxis, across = across_axis(p), inner;
	if (across < 0 || axis_extent(p->axis[across]) < SQUARE_LEAST)
		return false;
	int64_t extent[COMP_MAX_AXES], e = axis_extent(p->axis[last]);
	int64_t tall = axis_extent(p->axis[across]);
	bool cut = tall > side, split = e > lanes;
	for (int k = 0; k < last + split; k++)
		if (k != across || cut)
			extent[n++] = k == across ? (tall + side - 1) / side
				      : k == last ? (e + lanes - 1) / lanes
						  : axis_extent(p->axis[k]);
	inner = cut ? loops++ : across;
	if (cut)
		schedule_add(s, STEP_SPLIT, across, side);
	if (split)
		schedule_add(s, STEP_SPLIT, last, lanes);
	last = split ? loops++ : last;
	schedule_add(s, STEP_MOVE, inner, loops - 2);
	schedule_add(s, STEP_CACHE_READ, 0, loops - 2);
	schedule_add(s, STEP_VECTORISE, last, 0);
	schedule_add(s, STEP_PARALLEL, 0, offer_parallel(n, extent));
	return true;
}

enum { WRITTEN_MOST = 8, SHORT_LANES = 32 };

/* Do all reads in e stay, along the axis before the last one, or go on by one element or by a line of the last? */
static bool reads_dense(const Problem *p, Node *e)
{
	Node **read;
	int64_t line = axis_extent(p->axis[p->naxis - 1]);
	int n = node_collect(p->ir, e, OP_READ, &read);
	bool all = true;
	for (int k = 0; k < n; k++) {
		int64_t step = affine_stride(p->ir, read[k]->src[1], p->axis[p->naxis - 2]);
		all &= step == 0 || step == 1 || step == line;
	}
	return all;
}

/* The last axis is too short for lanes: they run along the one before, and it is written out inside
 * them. Only where no reads lie apart: of those gcc loads past the tensor's end (12.2; program 523
 * of test_programs). */
static bool offer_short(const Problem *p, int64_t chunk, Schedule *s)
{
	int64_t extent[COMP_MAX_AXES];
	int last = p->naxis - 1;
	if (last < 1 || axis_extent(p->axis[last]) > WRITTEN_MOST ||
	    axis_extent(p->axis[last - 1]) < SHORT_LANES)
		return false;
	for (int k = 0; k < p->nout; k++)
		if (!reads_dense(p, p->out_value[k]))
			return false;
	int64_t tall = axis_extent(p->axis[last - 1]), lanes = chunk / axis_extent(p->axis[last]);
	bool split = tall > lanes;
	for (int k = 0; k < last - 1; k++)
		extent[k] = axis_extent(p->axis[k]);
	extent[last - 1] = (tall + lanes - 1) / lanes;
	if (split)
		schedule_add(s, STEP_SPLIT, last - 1, lanes);
	schedule_add(s, STEP_VECTORISE, split ? p->naxis : last - 1, 0);
	schedule_add(s, STEP_UNROLL, last, 0);
	schedule_add(s, STEP_PARALLEL, 0, offer_parallel(last - 1 + split, extent));
	return true;
}

/* Lanes along one axis, parts along the others, but for those that are written out inside the lanes or around them. */
static void offer_pointwise(const Problem *p, int64_t chunk, Schedule *s)
{
	int64_t extent[COMP_MAX_AXES];
	int n = 0, line, last = p->naxis - 1, loops = p->naxis;
	bool large = chunk >= CHUNK;
	Written w;
	if (!p->naxis || offer_square(p, large ? 64 : 16, large ? 64 : 32, s))
		return;
	written_find(p, &w);
	bool few = w.lanes != last && axis_extent(p->axis[last]) < FEW_LANES;
	if (!few && (n = polyphase_offer(p, extent, s)) > 0) {
		schedule_add(s, STEP_PARALLEL, 0, offer_parallel(n, extent));
		return;
	}
	if (offer_short(p, chunk, s))
		return;
	int64_t e = axis_extent(p->axis[w.lanes]);
	chunk = polyphase_lanes(p, w.lanes, chunk);
	line = e > chunk ? loops++ : w.lanes;
	for (int k = 0, d = 0; k < p->naxis; k++)
		if (d < w.n && k == w.part[d].axis)
			d++;
		else if (k != line)
			extent[n++] =
				k == w.lanes ? (e + chunk - 1) / chunk : axis_extent(p->axis[k]);
	if (e > chunk)
		schedule_add(s, STEP_SPLIT, w.lanes, chunk);
	schedule_add(s, STEP_VECTORISE, line, 0);
	for (int d = 0; d < w.n; d++)
		schedule_add(s, STEP_MOVE, w.part[d].axis, w.inside ? loops - 1 : loops - 2);
	for (int d = 0; d < w.n; d++)
		schedule_add(s, STEP_UNROLL, w.part[d].axis, 0);
	schedule_add(s, STEP_PARALLEL, 0, offer_parallel(n, extent));
}

/* Free axes are parts, and of the one in lanes pieces of so many. */
static void offer_scatter(const Problem *p, int rank, int64_t lanes, Schedule *s)
{
	int v = vector_axis(p, rank), n = 0, loops = p->naxis;
	if (v < 0)
		return;
	bool pieces = axis_extent(p->axis[v]) >= 2 * lanes;
	for (int k = 0; k < p->naxis; k++)
		if (k != v && vector_allowed(p, k))
			schedule_add(s, STEP_MOVE, k, n++);
	if (pieces) {
		schedule_add(s, STEP_SPLIT, v, lanes);
		schedule_add(s, STEP_MOVE, v, n++);
		v = loops++;
	}
	schedule_add(s, STEP_MOVE, v, loops - 1);
	schedule_add(s, STEP_VECTORISE, v, 0);
	schedule_add(s, STEP_PARALLEL, 0, n);
}

/* Fewer parts than these leave threads idle; a block of a reduction (rfactor) has so many points. */
enum { FEW_PARTS = 16, BLOCK_POINTS = 1 << 13, SPREAD_UNIT = 256 };

/* How many points of the longest reduced axis (*axis) make a block, where there are few parts but
 * long sums; 0: none. lanes: the axis that runs in lanes. */
static int64_t rfactor_block(const Problem *p, int64_t parts, int lanes, int *axis)
{
	int64_t each = 1;
	*axis = p->nspatial;
	for (int k = 0; k < p->naxis; k++) {
		int64_t e = axis_extent(p->axis[k]);
		each *= e;
		if (k >= p->nspatial && e > axis_extent(p->axis[*axis]))
			*axis = k;
	}
	int64_t e = axis_extent(p->axis[*axis]), blocks = MIN_PARTS / parts;
	each /= e;
	if (parts >= FEW_PARTS || p->partial || p->rows)
		return 0;
	int64_t least = (BLOCK_POINTS + each - 1) / each, size = (e + blocks - 1) / blocks;
	size = size > least ? size : least;
	if (*axis == lanes) /* whole vectors */
		size = (size + SPREAD_UNIT - 1) / SPREAD_UNIT * SPREAD_UNIT;
	return 2 * size <= e ? size : 0;
}

/* `parallel`: so many spatial loops are parts; and the blocks of a reduction. */
static void offer_parts(int axis, bool blocks, int parallel, Schedule *s)
{
	if (blocks) {
		schedule_add(s, STEP_MOVE, axis, 0);
		schedule_add(s, STEP_RFACTOR, 0, 1);
	}
	schedule_add(s, STEP_PARALLEL, 0, parallel + blocks);
}

/* `lanes` where vectors have 32 bytes. As many vectors of 64 hide what a sum waits for, where they
 * come out even or there are many. */
static int64_t lanes_of(int64_t lanes, int64_t extent, int vector_bytes)
{
	bool wide = vector_bytes > 32;
	bool even = extent % (2 * lanes) == 0 && extent >= 4 * lanes;
	return wide && (even || extent >= 16 * lanes) ? 2 * lanes : lanes;
}

static void offer_reduction(const Problem *p, int rank, int64_t lanes, int vector_bytes,
			    bool unroll, Schedule *s)
{
	int v = vector_axis(p, rank), n = 0, loops = p->naxis, r;
	if (v < 0)
		return;
	int64_t e = axis_extent(p->axis[v]), extent[COMP_MAX_AXES + 1], parts = 1;
	lanes = lanes_of(lanes, e, vector_bytes);
	for (int k = 0; k < p->nspatial; k++)
		if (k != v)
			extent[n++] = axis_extent(p->axis[k]);
	bool split = e > 2 * lanes || (e > lanes && v >= p->nspatial);
	if (split && v < p->nspatial)
		extent[n++] = (e + lanes - 1) / lanes;
	for (int k = 0; k < n; k++)
		parts *= extent[k];
	int64_t block = rfactor_block(p, parts, v, &r);
	int line = v; /* the loop that is split for lanes */
	if (block) {
		schedule_add(s, STEP_SPLIT, r, block);
		line = r == v ? loops : v;
		loops++;
	}
	if (split) {
		schedule_add(s, STEP_SPLIT, line, lanes);
		schedule_add(s, STEP_MOVE, loops, loops);
		if (v < p->nspatial)
			schedule_add(s, STEP_MOVE, v, n - 1);
		schedule_add(s, STEP_VECTORISE, loops, 0);
	} else {
		schedule_add(s, STEP_MOVE, line, loops - 1);
		schedule_add(s, STEP_VECTORISE, line, 0);
	}
	if (unroll) {
		int inner = p->naxis - 1;
		if (inner == v)
			inner--;
		if (inner >= p->nspatial && axis_extent(p->axis[inner]) <= 16)
			schedule_add(s, STEP_UNROLL, inner, 0);
	}
	offer_parts(r, block != 0, offer_parallel(n, extent), s);
}

/* ---- running reductions ---- */

enum { PREFIX_LANES = 512, SHORT = 8, WIDE = 1024, ROWS_MOST = 8 };

/* The axis along which a reduction is carried that would take longest otherwise; -1: none. */
static int carry_axis(const Problem *p)
{
	int best = -1;
	int64_t most = 1;
	for (int k = 0; k < p->nspatial; k++) {
		Carry c;
		int64_t saves = carry_find(p, k, &c) ? running_saves(&c.r, p->axis) : 1;
		best = saves > most ? k : best;
		most = saves > most ? saves : most;
	}
	return best;
}

bool nest_carries(const Problem *p)
{
	return carry_axis(p) >= 0;
}

/* Which axis has the lanes where a reduction is carried along i: the last spatial one, i among
 * them, or a reduced one whose elements lie better than those of the axis that is carried over. */
static int carry_lanes_axis(const Problem *p, int i)
{
	int last = p->nspatial - 1, best;
	Carry c;
	carry_find(p, i, &c);
	best = c.r.over;
	if (last != i && axis_extent(p->axis[last]) >= SHORT)
		return last;
	for (int k = p->nspatial; last == i && k < p->naxis; k++)
		if (axis_extent(p->axis[k]) >= LANES && vector_score(p, k) > vector_score(p, best))
			best = k;
	if (best != c.r.over)
		return best;
	return last != i && axis_extent(p->axis[i]) <= PREFIX_LANES ? last : i;
}

/* How many lanes: long lines for prefixes, longer where lines come from the last to the first, and
 * for the sums of all lanes at once where there are parts enough without cutting them. */
static int64_t carry_length(const Problem *p, int i, int v, int64_t lanes, int vector_bytes)
{
	int64_t parts = 1, e = axis_extent(p->axis[v]);
	Carry c;
	if (v == i && carry_find(p, i, &c))
		return lanes * (c.r.along < 0 ? 2 * PREFIX_LANES : PREFIX_LANES) / LANES;
	for (int k = 0; k < p->nspatial; k++)
		parts *= k == i || k == v ? 1 : axis_extent(p->axis[k]);
	if (v < p->nspatial && parts >= FEW_PARTS && e <= WIDE && lanes >= LANES)
		return e;
	return lanes_of(lanes, e, vector_bytes);
}

/* Parts along the other axes of the results, then the carried one, and lanes inside. */
static bool offer_carry(const Problem *p, int64_t lanes, int vector_bytes, Schedule *s)
{
	int i = carry_axis(p), loops = p->naxis, n = 0, parts;
	int want[COMP_MAX_AXES + 1], now[COMP_MAX_AXES + 1];
	int64_t extent[COMP_MAX_AXES];
	if (i < 0)
		return false;
	int v = carry_lanes_axis(p, i);
	int64_t e = axis_extent(p->axis[v]);
	lanes = carry_length(p, i, v, lanes, vector_bytes);
	bool split = e > lanes;
	schedule_add(s, STEP_CARRY, i, 0);
	for (int k = 0; k < p->naxis; k++)
		now[k] = k;
	int inner = split ? offer_split(s, v, lanes, &loops, now) : v;
	for (int k = 0; k < p->nspatial; k++) {
		if (k == i || (k == v && !split))
			continue;
		extent[n] = k == v ? (e + lanes - 1) / lanes : axis_extent(p->axis[k]);
		want[n++] = k;
	}
	parts = offer_parallel(n, extent);
	if (v != i || split)
		want[n++] = i;
	for (int k = p->nspatial; k < p->naxis; k++)
		if (k != v || split)
			want[n++] = k;
	want[n++] = inner;
	offer_order(s, n, want, now);
	schedule_add(s, STEP_VECTORISE, want[n - 1], 0);
	schedule_add(s, STEP_PARALLEL, 0, parts);
	return true;
}

void nest_offer(const Problem *p, const Target *target, int variant, Schedule *s)
{
	static const struct {
		int rank, lanes, chunk;
		bool unroll;
		int64_t rows; /* of windows */
		bool cache;
		int64_t vectors;			 /* of sums at a window's points */
		enum { NO_TILE, TILE, TRANSPOSED } tile; /* of registers */
	} row[] = {{0, LANES, CHUNK, false, ROWS_MOST, false, 1, NO_TILE},
		   {0, LANES, CHUNK, true, ROWS_MOST / 2, true, 4, NO_TILE},
		   {0, LANES / 2, CHUNK / 4, false, 0, false, 0, NO_TILE},
		   {0, 2 * LANES, 4 * CHUNK, false, 0, false, 0, NO_TILE},
		   {1, LANES, CHUNK, false, 0, false, 0, NO_TILE},
		   {0, LANES / 4, CHUNK, false, 0, false, 0, NO_TILE},
		   {2, LANES, CHUNK, false, 0, false, 0, NO_TILE},
		   {0, LANES, CHUNK, false, ROWS_MOST, false, 1, TRANSPOSED},
		   {0, LANES, CHUNK, false, ROWS_MOST, false, 1, TILE}};
	memset(s, 0, sizeof *s);
	static_assert(COUNT(row) == NEST_OFFERS, "a row each");
	if (p->scatter)
		offer_scatter(p, row[variant].rank,
			      row[variant].tile ? INT64_MAX / 2 : row[variant].lanes, s);
	else if (offer_carry(p, row[variant].lanes, target->vector_bytes, s))
		return;
	else if (row[variant].tile == TRANSPOSED && register_tile_offer(p, target, true, s))
		return;
	else if (row[variant].tile && register_tile_offer(p, target, false, s))
		return;
	else if (row[variant].rows &&
		 window_offer(p, target, row[variant].rows, row[variant].cache, s))
		return;
	else if (row[variant].vectors && taps_offer(p, target, row[variant].vectors, s))
		return;
	else if (p->red == RED_NONE)
		offer_pointwise(p, row[variant].chunk, s);
	else
		offer_reduction(p, row[variant].rank, row[variant].lanes, target->vector_bytes,
				row[variant].unroll, s);
}

/* grid_offer.c - schedules of direct nests for a grid.
 *
 * Input: a problem, and how many threads a device wants. Output: which loops are parts, how many threads
 * share a sum, in how many blocks it is summed apart. Invariant: what is offered fits the problem; sizes
 * and strides decide, so a schedule is the same in every run. */
#include "jit/nest/internal.h"

#include <string.h>

/* Threads of a multiprocessor that hide its latencies; of a warp, whose loads are contiguous; points of a sum
 * that are worth a thread of their own. */
enum { RESIDENT = 1024, WARP = 32, SHARE_LEAST = 8, BLOCK_LEAST = 32, BLOCKS_MOST = 1024 };
enum { EACH = 4 }; /* results of a thread */
/* Cycles until a sum in memory may be added to again: by its thread, by any; where they meet. */
enum { ADD_CYCLES = 300, ATOMIC_CYCLES = 600, SAME_CYCLES = 8 };
enum { FAR = 1 << 20, SUMS_BYTES = 1 << 24 };

/* How far apart in memory neighbours along the axis are, of all that is read. */
static int64_t distance(const Problem *p, Node *axis)
{
	int64_t sum = 0;
	for (int k = 0; k < p->nread; k++) {
		int64_t d = affine_distance(p->ir, p->read[k].read->src[1], axis);
		sum += d > FAR ? FAR : d;
	}
	return sum;
}

typedef struct Plan {
	int64_t points, reduced; /* elements of the results, points of each */
	int near, longest; /* reduced axes: its neighbours are nearest in memory; it is longest */
	bool apart;	   /* neighbours of the results are nearer than that */
	int64_t together, blocks;
} Plan;

static Plan plan_of(const Problem *p)
{
	Plan a = {1, 1, p->nspatial, p->nspatial, false, 1, 1};
	int64_t near = INT64_MAX, longest = 0;
	for (int k = 0; k < p->naxis; k++)
		*(k < p->nspatial ? &a.points : &a.reduced) *= axis_extent(p->axis[k]);
	for (int k = p->nspatial; k < p->naxis; k++) {
		int64_t extent = axis_extent(p->axis[k]), d = distance(p, p->axis[k]);
		if (extent >= SHARE_LEAST && d < near) {
			near = d;
			a.near = k;
		}
		if (extent > longest) {
			longest = extent;
			a.longest = k;
		}
	}
	for (int k = 0; k < p->nspatial; k++)
		a.apart |= axis_extent(p->axis[k]) >= SHARE_LEAST && distance(p, p->axis[k]) < near;
	return a;
}

static bool can_share(const Problem *p, const Plan *a)
{
	return p->red != RED_NONE && !p->scatter && p->naxis > p->nspatial &&
	       axis_extent(p->axis[a->near]) >= SHARE_LEAST;
}

/* So many threads share a sum that `wanted` have work; those of a warp load what is contiguous. */
static void plan_together(const Problem *p, Plan *a, int threads, int64_t wanted)
{
	int64_t extent = axis_extent(p->axis[a->near]);
	int64_t most = a->apart ? threads / WARP : threads, least = a->apart ? 1 : WARP;
	if (a->points < WARP) /* there are no neighbours for a warp */
		most = threads;
	while (2 * a->together <= most && 2 * a->together <= extent &&
	       (a->together < least || a->points * a->together < wanted))
		a->together *= 2;
}

/* Sums in blocks, as far as there are still too few threads. */
static void plan_blocks(const Problem *p, Plan *a, int64_t wanted)
{
	int64_t most = a->reduced / (a->together * BLOCK_LEAST);
	int64_t room = SUMS_BYTES / (int64_t)type_size(p->acc) / a->points;
	int64_t extent = axis_extent(p->axis[a->longest]);
	most = most < room ? most : room;
	most = most < BLOCKS_MOST ? most : BLOCKS_MOST;
	a->blocks = wanted / (a->points * a->together);
	a->blocks = a->blocks < most ? a->blocks : most;
	a->blocks = a->blocks < extent ? a->blocks : extent;
	if (p->partial || a->blocks < 2)
		a->blocks = 1;
}

static void plan_steps(const Problem *p, const Plan *a, Schedule *s)
{
	int loops = p->naxis, near = a->near;
	bool blocks = a->blocks > 1;
	if (blocks) {
		int64_t extent = axis_extent(p->axis[a->longest]);
		int64_t each = (extent + a->blocks - 1) / a->blocks;
		if (a->longest == near) /* a piece is split evenly only */
			each = (each + a->together - 1) / a->together * a->together;
		blocks = each < extent;
		if (blocks) {
			schedule_add(s, STEP_SPLIT, a->longest, each);
			near = a->longest == near ? loops : near;
			loops++;
			schedule_add(s, STEP_MOVE, a->longest, 0);
			schedule_add(s, STEP_RFACTOR, 0, 1);
		}
	}
	schedule_add(s, STEP_PARALLEL, 0, p->nspatial + blocks);
	if (a->together < 2)
		return;
	schedule_add(s, STEP_SPLIT, near, a->together);
	schedule_add(s, STEP_THREAD, loops, a->apart);
}

/* Is this the same whatever the order in which it is combined? */
static bool any_order(const Problem *p)
{
	return !type_is_float(p->acc) || p->red == RED_MAX || p->red == RED_MIN;
}

/* All points at once: those that meet in an element wait for each other. Else one part after the other adds
 * its points, each load behind the store before it. */
static bool atomics_pay(const Problem *p, const Target *target)
{
	double points = 1, parts = 1, most = (double)target->units * RESIDENT;
	for (int k = 0; k < p->naxis; k++)
		points *= (double)axis_extent(p->axis[k]);
	for (int k = 0; k < p->nfree; k++)
		parts *= (double)axis_extent(p->free_axis[k]);
	double alone = points / (parts < most ? parts : most) * ADD_CYCLES;
	double together = points / (points < most ? points : most) * ATOMIC_CYCLES +
			  points / (double)p->main_size * SAME_CYCLES;
	return together < alone;
}

static bool can_atomics(const Problem *p, const Target *target)
{
	int bytes = (int)type_size(p->acc);
	return bytes >= 4 && bytes <= target->atomics && (!target->ordered || any_order(p));
}

/* All points are parts, neighbours in memory last. */
static void atomic_steps(const Problem *p, Schedule *s)
{
	schedule_add(s, STEP_ATOMIC, -1, 0);
	for (int k = 0; k < p->naxis; k++)
		for (int j = 0; j < p->nfree; j++)
			if (p->free_axis[j] == p->axis[k])
				schedule_add(s, STEP_MOVE, k, p->naxis - 1);
	schedule_add(s, STEP_PARALLEL, 0, p->naxis);
}

/* Only what stands bare on the left can be parts. */
static void scatter_steps(const Problem *p, Schedule *s)
{
	int at = 0;
	for (int k = 0; k < p->naxis; k++)
		for (int j = 0; j < p->nfree; j++)
			if (p->free_axis[j] == p->axis[k])
				schedule_add(s, STEP_MOVE, k, at++);
	schedule_add(s, STEP_PARALLEL, 0, at);
}

/* ---- reads across lines ---- */

enum { SECTOR = 32, EDGE = 32, EDGE_BYTES = 128, BLOCK_PARTS_LEAST = 256 };

/* Where neighbours are 1 apart in what is read, if those of the results are far apart there. */
static int across_axis(const Problem *p, const Node *read)
{
	int last = p->nspatial - 1;
	if (affine_stride(p->ir, read->src[1], p->axis[last]) < ACROSS_LEAST)
		return -1;
	for (int k = 0; k < last; k++)
		if (affine_stride(p->ir, read->src[1], p->axis[k]) == 1)
			return k;
	return -1;
}

/* A piece of each axis: a tile with lines of the read, along `read`'s nearest axes, and of the results, along the
 * last ones. */
typedef struct Across {
	int64_t piece[COMP_MAX_AXES], parts;
	double whole; /* the part of the tiles that is inside */
} Across;

/* Makes a line of about `edge` elements. */
static void take_line(const Problem *p, const Node *read, int64_t edge, Across *a)
{
	for (int64_t have = 1; 2 * have <= edge;) {
		int near = -1;
		int64_t least = INT64_MAX;
		for (int k = p->nspatial - 1; k >= 0; k--) {
			int64_t step = read ? affine_stride(p->ir, read->src[1], p->axis[k])
					    : p->nspatial - k;
			if (a->piece[k] == 1 && axis_extent(p->axis[k]) > 1 && step > 0 &&
			    step < least) {
				near = k;
				least = step;
			}
		}
		if (near < 0)
			return;
		int64_t extent = axis_extent(p->axis[near]), most = edge / have;
		int64_t piece = extent < most ? extent : most;
		double blocks = (double)((extent + piece - 1) / piece);
		a->piece[near] = piece;
		a->parts *= piece;
		a->whole *= (double)extent / (blocks * (double)piece);
		have *= piece;
	}
}

/* Bytes of memory that an element moves: a sector for each read across lines that goes by threads, whole lines
 * through tiles. False: there is no such read, or tiles don't pay. */
static bool across_plan(const Problem *p, const Target *target, Across *a)
{
	const Node *line = NULL;
	double plain = 0, tiled = 0, points = 1;
	if (p->red != RED_NONE || p->scatter || p->rows || p->nspatial < 2)
		return false;
	for (int k = 0; k < p->nread; k++) {
		const Node *read = p->read[k].read;
		double size = (double)type_size((Type)read->type);
		bool across = across_axis(p, read) >= 0 && read_inside(read);
		plain += across ? SECTOR : size;
		tiled += size;
		if (across && (!line || size > (double)type_size((Type)line->type)))
			line = read;
	}
	if (!line)
		return false;
	for (int k = 0; k < p->nout; k++) {
		plain += (double)type_size((Type)p->out[k]->type);
		tiled += (double)type_size((Type)p->out[k]->type);
	}
	int64_t edge = EDGE_BYTES / (int64_t)type_size((Type)line->type);
	edge = edge < EDGE ? EDGE : edge > 2 * EDGE ? 2 * EDGE : edge;
	*a = (Across){.parts = 1, .whole = 1};
	for (int k = 0; k < p->naxis; k++) {
		a->piece[k] = 1;
		points *= (double)axis_extent(p->axis[k]);
	}
	take_line(p, NULL, edge, a);
	take_line(p, line, edge, a);
	return a->parts >= BLOCK_PARTS_LEAST && tiled / a->whole < plain &&
	       points >= (double)target->units * (double)a->parts;
}

/* Loops over tiles, and within: the axes in their order, the last fastest. */
static bool across_offer(const Problem *p, const Target *target, Schedule *s)
{
	Across a;
	int now[MAX_LOOPS], want[MAX_LOOPS], inner[COMP_MAX_AXES];
	int loops = p->naxis, ninner = 0, nouter = 0;
	int64_t each = GRID_EACH_MOST;
	if (!across_plan(p, target, &a))
		return false;
	while (a.parts % each || a.parts / each < BLOCK_PARTS_LEAST / 2)
		each /= 2;
	if (a.parts / each > GRID_THREADS_MOST)
		return false;
	for (int k = 0; k < p->naxis; k++)
		now[k] = k;
	schedule_add(s, STEP_THREADS, 0, a.parts / each);
	for (int k = 0; k < p->naxis; k++) {
		bool split = a.piece[k] > 1 && a.piece[k] < axis_extent(p->axis[k]);
		if (a.piece[k] == 1 || split)
			want[nouter++] = k;
		if (a.piece[k] > 1)
			inner[ninner++] = split ? offer_split(s, k, a.piece[k], &loops, now) : k;
	}
	memcpy(want + nouter, inner, (size_t)ninner * sizeof *inner);
	offer_order(s, loops, want, now);
	schedule_add(s, STEP_CACHE_READ, 0, nouter);
	schedule_add(s, STEP_PARALLEL, 0, loops);
	if (each > 1)
		schedule_add(s, STEP_TILE, 0, each);
	return true;
}

void nest_grid_offer(const Problem *p, const Target *target, int variant, Schedule *s)
{
	static const struct {
		int threads, more;
	} way[GRID_OFFERS] = {{256, 1}, {128, 1}, {256, 4}, {512, 0}};
	int64_t wanted = (int64_t)target->units * RESIDENT * way[variant].more;
	Plan a = plan_of(p);
	memset(s, 0, sizeof *s);
	if (variant == 0 && across_offer(p, target, s))
		return;
	schedule_add(s, STEP_THREADS, 0, way[variant].threads);
	if (p->scatter) {
		bool atomics = can_atomics(p, target) && atomics_pay(p, target) == (variant != 2);
		(atomics ? atomic_steps : scatter_steps)(p, s);
		return;
	}
	if (can_share(p, &a) && wanted) {
		plan_together(p, &a, way[variant].threads, wanted);
		plan_blocks(p, &a, wanted);
	}
	plan_steps(p, &a, s);
	/* Several loads under way at once, where there are threads enough. */
	if (p->red == RED_NONE && a.points >= 2 * EACH * wanted)
		schedule_add(s, STEP_TILE, 0, variant == 1 ? 2 * EACH : EACH);
}

void nest_block_offer(const Problem *p, int threads, Schedule *s)
{
	Plan a = plan_of(p);
	memset(s, 0, sizeof *s);
	if (p->scatter) {
		scatter_steps(p, s);
		return;
	}
	if (can_share(p, &a))
		plan_together(p, &a, threads, threads);
	plan_steps(p, &a, s);
}

/* register_tile.c - a schedule offered for reductions whose terms share what they read: a register tile.
 *
 * Input: a problem. Output: steps for vectors of sums along a spatial axis times some places of another one, or along a
 * reduced axis times some places of two, all of them in registers, so that a vector that one of these axes has no
 * part in is loaded once for the whole tile: matrix products over other operators than + and *, distances, maxima of
 * sums, long convolutions. Or the vectors lie across the lines of a tensor, which is transposed for some lines of tiles.
 * Invariant: only index functions and extents are asked. */
#include "jit/nest/internal.h"

#include <string.h>

/* Vectors of a line, and places of the other axes: sums enough to hide what each waits for, and registers left for what
 * is loaded. SQUARE: of two axes each. WHOLE: an axis of no more, which no such number divides, is there as a whole. */
enum { VECTORS = 2, LEAST = 3, ROWS = 8, SQUARE = 4, WHOLE = 7 };
/* Lines of tiles for which something is transposed once, if not for all. */
enum { LINES = 16, LEAST_LINES = 4 };

typedef struct RegisterTile {
	const Problem *p;	 /* with axes for quotients */
	int loop[COMP_MAX_AXES]; /* the loop over each axis */
	int npiece;   /* those from this number on are pieces of others, which splits must divide */
	uint64_t cut; /* loops that have pieces, around which they stay */
	bool transposed; /* what vectors read may lie across their lines */
	int64_t width;	 /* lanes of a vector */
	int nread;
	Node **read;
	int lanes, nrow, row[2]; /* axes */
	int64_t rows[2];
} RegisterTile;

/* May the tile have the axis? */
static bool is_free(const RegisterTile *t, int axis)
{
	return !(t->cut >> t->loop[axis] & 1);
}

static int64_t stride(const RegisterTile *t, const Node *read, int axis)
{
	return affine_stride(t->p->ir, read->src[1], t->p->axis[axis]);
}

/* Does the read lie across the lanes along this axis, with lines along one reduced axis? (jit/nest/transposed.c) */
static bool lies_across(const RegisterTile *t, const Node *read, int lanes)
{
	int64_t step = stride(t, read, lanes);
	int along = 0, others = 0;
	for (int k = t->p->nspatial; k < t->p->naxis; k++) {
		along += stride(t, read, k) == 1;
		others += stride(t, read, k) != 0 && stride(t, read, k) != 1;
	}
	return step >= ACROSS_LEAST && along == 1 && !others && read_inside(read) &&
	       type_size((Type)read->type) >= 4;
}

/* Does the sum go over what it reads? What it doesn't is loaded once for all terms. */
static bool is_summed(const RegisterTile *t, const Node *read)
{
	for (int k = t->p->nspatial; k < t->p->naxis; k++)
		if (stride(t, read, k) != 0)
			return true;
	return false;
}

/* The axis of number from .. to-1 along which the most reads are contiguous, forwards or backwards, and none jumps; of
 * such ones that of the results; -1: there is none. */
static int lanes_axis(const RegisterTile *t, int from, int to)
{
	int axis = -1, most = 0;
	for (int k = from; k < to; k++) {
		if (axis_extent(t->p->axis[k]) < t->width || !is_free(t, k))
			continue;
		int score = affine_stride(t->p->ir, t->p->index, t->p->axis[k]) == 1 ? 3 : 0;
		for (int r = 0; r < t->nread; r++) {
			int64_t step = stride(t, t->read[r], k);
			bool across = t->transposed && lies_across(t, t->read[r], k);
			score += step == 1		    ? 4
				 : step == 0		    ? 0
				 : step == -1 || across	    ? 2
				 : is_summed(t, t->read[r]) ? -100
							    : 0;
		}
		axis = score > most ? k : axis;
		most = score > most ? score : most;
	}
	return axis;
}

/* Do reads slide along the axis as a reduced one goes on, so that iterations meet what those before them read? */
static bool slides(const RegisterTile *t, int axis)
{
	bool any = false, all = true;
	for (int r = 0; r < t->nread; r++) {
		int64_t step = stride(t, t->read[r], axis);
		bool along = step == 0;
		for (int k = t->p->nspatial; k < t->p->naxis && step != INT64_MIN; k++) {
			int64_t reduced = stride(t, t->read[r], k);
			along |= reduced == step || reduced == -step;
		}
		any |= step != 0;
		all &= along;
	}
	return any && all;
}

/* Adds the spatial axis that most of the vectors do without, and of such axes one along which the others slide, or one
 * of many places. */
static void add_rows(RegisterTile *t, int64_t most)
{
	int axis = -1, best = 2;
	int64_t rows = LEAST;
	for (int k = 0; k < t->p->nspatial; k++) {
		int64_t all = axis_extent(t->p->axis[k]), places = offer_divisor(all, most);
		int shared = 0;
		if (places < LEAST && all <= WHOLE && t->lanes < t->p->nspatial)
			places = all;
		for (int r = 0; r < t->nread; r++)
			shared += 2 * (stride(t, t->read[r], t->lanes) != 0 &&
				       stride(t, t->read[r], k) == 0);
		shared += shared > 0 && slides(t, k);
		bool free = is_free(t, k) && k != t->lanes && (t->nrow == 0 || k != t->row[0]);
		if (free && (shared > best ? places >= LEAST : shared == best && places >= rows)) {
			axis = k;
			best = shared;
			rows = places;
		}
	}
	if (axis < 0)
		return;
	t->rows[t->nrow] = rows;
	t->row[t->nrow++] = axis;
}

/* Is anything transposed, and is that the same for all lines of a tile? */
static bool transposes(const RegisterTile *t)
{
	bool any = false, same = true;
	for (int r = 0; r < t->nread; r++)
		if (lies_across(t, t->read[r], t->lanes)) {
			any = true;
			same &= stride(t, t->read[r], t->row[0]) == 0;
		}
	return any && same;
}

static bool is_piece(const RegisterTile *t, int axis)
{
	return t->loop[axis] >= t->npiece;
}

/* Lanes of a line of the tile; 0: none fit. */
static int64_t lanes_of(const RegisterTile *t)
{
	int64_t all = axis_extent(t->p->axis[t->lanes]), lanes = VECTORS * t->width;
	if (t->lanes < t->p->nspatial && all <= lanes)
		return all;
	if (all % t->width && (t->lanes >= t->p->nspatial || is_piece(t, t->lanes)))
		return 0;
	return t->lanes >= t->p->nspatial || all % lanes ? t->width : lanes;
}

/* Vectors of a line of the tile. */
static int64_t vectors_of(const RegisterTile *t)
{
	int64_t lanes = lanes_of(t);
	return lanes > t->width ? VECTORS : 1;
}

/* The tile of p, whose axes are these loops. */
static bool find(RegisterTile *t, const Problem *p, const Target *target, bool transposed,
		 int npiece, uint64_t cut, const int *loop)
{
	int64_t room = target->vector_bytes > 32 ? 1 : 2; /* half the registers */
	bool spatial;
	*t = (RegisterTile){.p = p,
			    .npiece = npiece,
			    .cut = cut,
			    .transposed = transposed,
			    .width = target->vector_bytes / (int64_t)type_size(p->acc)};
	memcpy(t->loop, loop, (size_t)p->naxis * sizeof *loop);
	if (p->red == RED_NONE || p->scatter || p->naxis == p->nspatial)
		return false;
	t->nread = node_collect(p->ir, p->body, OP_READ, &t->read);
	t->lanes = lanes_axis(t, 0, p->nspatial);
	spatial = t->lanes >= 0;
	if (!spatial && !transposed)
		t->lanes = lanes_axis(t, p->nspatial, p->naxis);
	if (t->lanes < 0)
		return false;
	add_rows(t, !spatial ? SQUARE : ROWS * VECTORS / (room * vectors_of(t)));
	if (!spatial && t->nrow)
		add_rows(t, SQUARE / room);
	return t->nrow == (spatial ? 1 : 2) && (!transposed || transposes(t)) && lanes_of(t) > 0;
}

/* Splits the loop over axis `axis` where it has more places than `size`: the inner loop. *outer: iterations of the other
 * one. */
static int split(const RegisterTile *t, Schedule *s, int axis, int64_t size, int *loops, int *now,
		 int64_t *outer)
{
	int64_t all = axis_extent(t->p->axis[axis]);
	*outer = (all + size - 1) / size;
	return size < all ? offer_split(s, t->loop[axis], size, loops, now) : t->loop[axis];
}

/* Splits the tile's axes: its loops are inner[]. Returns the loop that runs over its lines where something is transposed
 * around it; -1: it is none, or that of its axis. */
static int split_tile(const RegisterTile *t, int64_t lanes, Schedule *s, int *loops, int *now,
		      int64_t *outer, int *inner)
{
	int lines = -1, row = t->row[0];
	int64_t all = axis_extent(t->p->axis[row]), each = t->rows[0];
	int64_t some =
		each * offer_divisor(all / each, LINES); /* then reads are known to be inside */
	if (t->transposed && some < all && some >= each * LEAST_LINES) {
		lines = split(t, s, row, some, loops, now, &outer[row]);
		inner[0] = offer_split(s, lines, t->rows[0], loops, now);
	}
	for (int i = lines < 0 ? 0 : 1; i < t->nrow; i++)
		inner[i] = split(t, s, t->row[i], t->rows[i], loops, now, &outer[t->row[i]]);
	inner[t->nrow] = split(t, s, t->lanes, lanes, loops, now, &outer[t->lanes]);
	return lines;
}

/* Adds loop k unless it is one of the tile's. */
static int add_outer(const int *inner, int ninner, int k, int *want, int n)
{
	for (int i = 0; i < ninner; i++)
		if (inner[i] == k)
			return n;
	want[n] = k;
	return n + 1;
}

/* Is less read from afar where the loop over the tile's rows stands before that over the axis, than behind it? That is
 * asked of two that don't move the same reads; a piece stays behind what it is of. */
static bool rows_go_before(const RegisterTile *t, int axis, int64_t rows, int64_t places)
{
	double again = 0, others = 0;
	if (is_piece(t, t->row[0]))
		return false;
	for (int r = 0; r < t->nread; r++) {
		double bytes = (double)tensor_bytes(t->read[r]->src[0]);
		bool moves = stride(t, t->read[r], axis) != 0;
		if (stride(t, t->read[r], t->row[0]) == 0)
			others += moves ? bytes : 0;
		else if (moves)
			return false;
		else
			again += bytes;
	}
	return again * (double)places > others * (double)rows;
}

/* Puts the loop over the tile's rows, the last of n over axes of[], before others where that pays. */
static void rows_outwards(const RegisterTile *t, int n, int *want, int64_t *extent, int *of)
{
	for (int k = n - 1; k > 0 && rows_go_before(t, of[k - 1], extent[k], extent[k - 1]); k--) {
		int loop = want[k], axis = of[k];
		int64_t places = extent[k];
		want[k] = want[k - 1];
		extent[k] = extent[k - 1];
		of[k] = of[k - 1];
		want[k - 1] = loop;
		extent[k - 1] = places;
		of[k - 1] = axis;
	}
}

/* The tile of p with axes for its quotients, whose loops are split off, or of p as it is. */
static bool find_tile(RegisterTile *t, const Problem *p, const Target *target, bool transposed,
		      Schedule *s, int *loops, int *now)
{
	ProblemCut cut[COMP_MAX_AXES];
	int ncut, steps = s->n;
	const Problem *way[] = {problem_cut(p, &ncut, cut), p};
	for (int i = way[0] ? 0 : 1; i < 2; i++) {
		uint64_t cuts = 0;
		s->n = steps;
		*loops = p->naxis;
		for (int k = 0; k < p->naxis; k++)
			now[k] = k;
		for (int k = 0; i == 0 && k < ncut; k++) {
			cuts |= (uint64_t)1 << now[cut[k].axis];
			offer_split(s, now[cut[k].axis], cut[k].places, loops, now);
		}
		if (find(t, way[i], target, transposed, p->naxis, cuts, now))
			return true;
	}
	return false;
}

bool register_tile_offer(const Problem *whole, const Target *target, bool transposed, Schedule *s)
{
	RegisterTile t;
	int want[COMP_MAX_AXES + 3], now[COMP_MAX_AXES + 3], inner[3], loops, n = 0;
	int of[COMP_MAX_AXES]; /* the axes of `want` */
	int64_t outer[COMP_MAX_AXES], extent[COMP_MAX_AXES];
	if (!find_tile(&t, whole, target, transposed, s, &loops, now))
		return false;
	const Problem *p = t.p;
	int64_t lanes = lanes_of(&t);
	for (int k = 0; k < loops; k++)
		outer[k] = axis_extent(p->axis[k]);
	int lines = split_tile(&t, lanes, s, &loops, now, outer, inner), ntile = t.nrow + 1;
	for (int k = 0; k < p->nspatial; k++) {
		int before = n;
		extent[n] = outer[k];
		of[n] = k;
		if (!transposed || lines >= 0 || k != t.row[0])
			n = add_outer(inner, ntile, t.loop[k], want, n);
		if (!transposed && k == t.row[0] && n > before)
			rows_outwards(&t, n, want, extent, of);
	}
	int parts = offer_parallel(n, extent), around = n;
	if (transposed)
		n = add_outer(inner, ntile, lines < 0 ? t.loop[t.row[0]] : lines, want, n);
	for (int k = p->nspatial; k < p->naxis; k++)
		n = add_outer(inner, ntile, t.loop[k], want, n);
	for (int i = 0; i < ntile; i++)
		want[n++] = inner[i];
	offer_order(s, n, want, now);
	schedule_add(s, STEP_VECTORISE, inner[t.nrow], 0);
	for (int i = 0; i < t.nrow; i++)
		schedule_add(s, STEP_UNROLL, inner[i], 0);
	if (transposed)
		schedule_add(s, STEP_CACHE_READ, 0, around);
	schedule_add(s, STEP_PARALLEL, 0, parts);
	return true;
}

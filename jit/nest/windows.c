/* windows.c - schedules offered for windows, whose points are written out inside the lanes.
 *
 * Input: a problem. Output: of few reduced points, steps for lanes along the last spatial axis and
 * some rows of results inside them, so that rows that these share are loaded once, and phases of the axis, where its
 * quotients are read; of few results,
 * each the sum at one point (a filter's gradient), steps for lanes along a reduced axis and all of
 * these sums inside them. Invariant: only index functions and extents are asked. */
#include "jit/nest/internal.h"

/* WIDE: of padded windows, whose lanes are vectors over tiles; what is left of others takes compilers
 * seconds. */
enum { WINDOW_MOST = 32, WIDE_MOST = 64, MASKED_MOST = 16, LINE_MOST = 512 };
enum { WINDOW_WRITTEN = 96, WIDE_WRITTEN = 200, SHORT_BODY = 4 /* operations */ };
enum { LANES_LEAST = 4 }; /* of a phase */

/* Do neighbours along axis k share what they read? One dimension of a read runs along it and, of a
 * spatial axis, a reduced one; of a reduced axis, a spatial one. */
static bool is_window(const Problem *p, int k)
{
	int from = k < p->nspatial ? p->nspatial : 0, to = from ? p->naxis : p->nspatial;
	for (int r = 0; r < p->nread; r++)
		for (int d = 0; d < p->read[r].rank; d++) {
			Node *e = p->read[r].dim[d];
			for (int j = from; j < to; j++)
				if (node_has(e, p->axis[k]) && node_has(e, p->axis[j]))
					return true;
		}
	return false;
}

/* Do lanes along the axis run over a window's tile? */
static bool is_wide(const Problem *p, int lanes)
{
	return !reads_inside(p->ir, p->body) && is_window(p, lanes);
}

static int64_t window_points(const Problem *p)
{
	int64_t points = 1;
	for (int k = p->nspatial; k < p->naxis; k++)
		points *= axis_extent(p->axis[k]);
	return points;
}

/* What is written out for each result, in short bodies: of functions rows share little, and compilers
 * take long. */
static int64_t window_written(const Problem *p)
{
	return window_points(p) * (1 + (int64_t)expr_arithmetic(p->ir, p->body) / SHORT_BODY);
}

/* The axis of which some rows are computed at once: one with windows, or the one beside the lanes
 * where windows lie along these. */
static int window_axis(const Problem *p, int lanes)
{
	for (int k = p->nspatial - 1; k >= 0; k--)
		if (k != lanes && is_window(p, k))
			return k;
	int beside = lanes == p->nspatial - 1 ? lanes - 1 : p->nspatial - 1;
	return is_window(p, lanes) ? beside : -1;
}

static int window_lanes(const Problem *p)
{
	int64_t points = window_points(p);
	if (p->red == RED_NONE || p->scatter || p->nspatial == 0 || points > WIDE_MOST)
		return -1;
	for (int k = 0; k < p->nspatial; k++)
		if (affine_stride(p->ir, p->index, p->axis[k]) == 1 && axis_extent(p->axis[k]) >= 4)
			return points <= WINDOW_MOST || is_wide(p, k) ? k : -1;
	return -1;
}

static bool has_no_vectors(const Node *n)
{
	return n->type != RICCI_I64 && n->type != RICCI_BOOL && !predicates_take(n);
}

/* Phases of lanes along axis v of a window whose places are quotients of it, in lines of so many: of each, lanes read
 * elements side by side; 1: there are none. */
static int64_t window_phases(const Problem *p, int v, int64_t line)
{
	int64_t phases = index_phases(p->ir, p->axis[v], 1, &p->body, PHASES_MOST);
	return phases > 1 && line % phases == 0 && line >= LANES_LEAST * phases ? phases : 1;
}

/* Have the body's operators vectors, and do its reads run along the axis, or of one with phases along each of these, by two at
 * most? *one: some by one. */
static bool is_plain(const Problem *p, Node *axis, int64_t phases, bool *one)
{
	Node *along = node_scale(p->ir, axis, phases);
	Node **read;
	int n = node_collect(p->ir, p->body, OP_READ, &read);
	bool all = !node_any(p->ir, p->body, has_no_vectors);
	*one = false;
	for (int k = 0; k < n; k++) {
		Node *index = node_replace(p->ir, read[k]->src[1], 1, &axis, &along);
		int64_t step = affine_stride(p->ir, index, axis);
		all &= step >= 0 && step <= 2;
		*one |= step == 1;
	}
	return all;
}

/* May lanes along the axis read a padded tensor itself, as vectors under masks
 * (jit/tree/predicates.c)? */
static bool has_masks(const Problem *p, const Target *target, int axis)
{
	bool one, all = is_plain(p, p->axis[axis], 1, &one);
	for (int k = 0; k < p->nout; k++) /* rows of a row kernel are read again at once */
		all &= tree_find(p->tree, p->out[k])->space == SPACE_PARAM;
	return all && p->red == RED_ADD && window_points(p) <= MASKED_MOST && is_wide(p, axis) &&
	       axis_extent(p->axis[axis]) <= predicates_most(target, p->type);
}

/* ---- lanes along lines shorter than a vector ---- */

enum {
	JOINED_MOST = 8
}; /* vectors of results that are written out, with masks that are constants */

/* The problem with one axis in place of number v, which has fewer elements than a vector, and the one before it, where lines
 * of both follow each other in all tensors that lanes run along; NULL: they don't, or fill vectors no better. written: so many
 * vectors are written out, and lines may begin anywhere in them. */
static Problem *joined_lanes(const Problem *p, const Target *target, int v, int64_t written)
{
	bool one, side = v < p->nspatial;
	int64_t width = target->vector_bytes / (int64_t)type_size(p->acc);
	if (!target->masks || v < 1 || side != (v - 1 < p->nspatial) ||
	    axis_extent(p->axis[v]) >= width)
		return NULL;
	int64_t line = axis_extent(p->axis[v]), lines = axis_extent(p->axis[v - 1]);
	int64_t vectors = (lines * line + width - 1) / width;
	if (vectors * 4 > lines * 3 || (width % line && vectors > written))
		return NULL;
	Problem *joined = problem_joined(p, v - 1);
	Node *axis = joined->axis[v - 1];
	bool follow = is_plain(joined, axis, 1, &one) && one;
	for (int k = 0; k < joined->nout && side; k++)
		follow &= affine_stride(p->ir, joined->out_index[k], axis) == 1;
	return follow ? joined : NULL;
}

/* Lanes along axis v, inside of them `rows` of axis w (-1: none), the phases of v and the window's points. */
static void window_steps(const Problem *p, int v, int w, int64_t rows, int64_t phases, bool cache,
			 Schedule *s)
{
	int loops = p->naxis, n = 0;
	int want[COMP_MAX_AXES + 3], now[COMP_MAX_AXES + 3];
	int64_t extent[COMP_MAX_AXES], wide = axis_extent(p->axis[v]);
	int64_t line = offer_divisor(wide, LINE_MOST), tall = w < 0 ? 1 : axis_extent(p->axis[w]);
	rows = offer_divisor(tall, rows);
	for (int k = 0; k < loops; k++)
		now[k] = k;
	int inner_w = rows < tall ? offer_split(s, w, rows, &loops, now) : w;
	int inner_v = line < wide ? offer_split(s, v, line, &loops, now) : v;
	int phase = phases > 1 ? offer_split(s, inner_v, phases, &loops, now) : -1;
	for (int k = 0; k < p->nspatial; k++) {
		if ((k == v && inner_v == v) || (k == w && inner_w == w))
			continue;
		int64_t e = axis_extent(p->axis[k]);
		extent[n] = k == v ? wide / line : k == w ? tall / rows : e;
		want[n++] = k;
	}
	int parts = offer_parallel(n, extent), lanes = n;
	want[n++] = inner_v;
	if (w >= 0)
		want[n++] = inner_w;
	if (phase >= 0)
		want[n++] = phase;
	for (int k = p->nspatial; k < p->naxis; k++)
		want[n++] = k;
	offer_order(s, n, want, now);
	schedule_add(s, STEP_VECTORISE, inner_v, 0);
	for (int k = lanes + 1; k < n; k++)
		schedule_add(s, STEP_UNROLL, want[k], 0);
	if (cache)
		schedule_add(s, STEP_CACHE_READ, 0, lanes);
	schedule_add(s, STEP_PARALLEL, 0, parts);
}

/* The problem whose joined lines are read under masks; NULL: there is none. */
static Problem *joined_window(const Problem *p, const Target *target, int v)
{
	return p->red == RED_ADD && window_points(p) <= MASKED_MOST
		       ? joined_lanes(p, target, v, JOINED_MOST)
		       : NULL;
}

/* Where lines can be joined they are, and all of them are computed at once; instead of a tile (cache) such lines
 * are then read where they are, too. */
bool window_offer(const Problem *p, const Target *target, int64_t rows, bool cache, Schedule *s)
{
	int v = window_lanes(p), w = v < 0 ? -1 : window_axis(p, v);
	if (w < 0)
		return false;
	int64_t line = offer_divisor(axis_extent(p->axis[v]), LINE_MOST);
	int64_t phases = window_phases(p, v, line), each = window_written(p) * phases;
	int64_t most = is_wide(p, v) ? WIDE_WRITTEN : WINDOW_WRITTEN;
	if (each > most)
		return false;
	Problem *joined = joined_window(p, target, v);
	if (joined && !cache) {
		schedule_add(s, STEP_JOIN, v - 1, 0);
		window_steps(joined, v - 1, -1, 1, 1, false, s);
		return true;
	}
	rows = rows * each > most ? most / each : rows;
	bool tile = phases == 1 && ((cache && !joined) || !has_masks(p, target, v));
	window_steps(p, v, w, rows, phases, tile, s);
	return true;
}

/* ---- sums at each of a window's points ---- */

enum { TAPS_MOST = 16 }; /* sums in registers */

/* The reduced axis that reads move along with, for lanes, in so many phases; -1: none. */
static int taps_lanes(const Problem *p, int64_t *phases)
{
	for (int k = p->naxis - 1; k >= p->nspatial; k--) {
		bool one;
		*phases = window_phases(p, k, axis_extent(p->axis[k]));
		if (is_plain(p, p->axis[k], *phases, &one) && one && is_window(p, k))
			return k;
	}
	return -1;
}

/* Spatial axes that are a window's, from the last: few points in all, none with more than there are
 * lanes. Returns how many axes. */
static int taps_axes(const Problem *p, int64_t lanes, bool *tap)
{
	int n = 0;
	int64_t points = 1;
	for (int k = p->nspatial - 1; k >= 0; k--) {
		int64_t e = axis_extent(p->axis[k]);
		tap[k] = e < lanes && is_window(p, k) && points * e <= TAPS_MOST;
		n += tap[k];
		points *= tap[k] ? e : 1;
	}
	return points > 1 ? n : 0;
}

bool taps_offer(const Problem *p, const Target *target, int64_t vectors, Schedule *s)
{
	int64_t phases, extent[COMP_MAX_AXES], lanes = vectors * target->vector_bytes;
	int v = taps_lanes(p, &phases), n = 0;
	int want[COMP_MAX_AXES + 2], now[COMP_MAX_AXES + 2];
	bool tap[COMP_MAX_AXES] = {false};
	if (p->red == RED_NONE || p->scatter || v < 0 ||
	    !taps_axes(p, axis_extent(p->axis[v]), tap))
		return false;
	lanes = lanes / (int64_t)type_size(p->acc) * phases;
	Problem *joined = vectors == 1 && phases == 1 ? joined_lanes(p, target, v, 1) : NULL;
	if (joined) {
		p = joined;
		schedule_add(s, STEP_JOIN, --v, 0);
	}
	int loops = p->naxis;
	for (int k = 0; k < loops; k++)
		now[k] = k;
	int64_t line = axis_extent(p->axis[v]);
	bool split = line > lanes && (phases == 1 || line % lanes == 0); /* phases of whole lines */
	int inner = split ? offer_split(s, v, lanes, &loops, now) : v;
	int phase = phases > 1 ? offer_split(s, inner, phases, &loops, now) : -1;
	for (int k = 0; k < p->nspatial; k++)
		if (!tap[k]) {
			extent[n] = axis_extent(p->axis[k]);
			want[n++] = k;
		}
	int parts = offer_parallel(n, extent);
	for (int k = p->nspatial; k < p->naxis; k++)
		if (k != inner)
			want[n++] = k;
	want[n++] = inner;
	if (phase >= 0)
		want[n++] = phase;
	for (int k = 0; k < p->nspatial; k++)
		if (tap[k])
			want[n++] = k;
	offer_order(s, n, want, now);
	schedule_add(s, STEP_VECTORISE, inner, 0);
	if (phase >= 0)
		schedule_add(s, STEP_UNROLL, phase, 0);
	for (int k = 0; k < p->nspatial; k++)
		if (tap[k])
			schedule_add(s, STEP_UNROLL, k, 0);
	schedule_add(s, STEP_PARALLEL, 0, parts);
	return true;
}

/* accesses.c - which lines of memory a loop tree's reads and writes touch, and from how far they come.
 *
 * Input: reads and writes with the loops around them. Output: cycles. An operand stays in a level of the cache
 * where all that is touched between two uses of it fits there. Places of a buffer that differ by constants are
 * one access. */
#include "jit/tree/accesses.h"

#include <math.h>
#include <string.h>

/* SHORT: bytes of runs that prefetchers do not find. */
enum { LINE = 64, SHORT = 4 * LINE, PAGE = 4096, PLACES_MOST = 64 };

/* How many times a line costs where each lies in another page than the one before it, and the pages are many. */
static const double astray = 8;

typedef struct Level {
	double room; /* bytes that stay in it */
	double line; /* cycles of a line that does not */
	/* How many times that where lines stand alone, so that few prefetchers of the processor find them. */
	double alone;
	/* Bytes at which its places repeat, 0: at none; runs of fewer than that many bytes crowd. */
	double way, crowds;
	/* How many times a line costs where it is stored to and crowds, by how much it crowds: each is written back to
	 * make room for the next. */
	double stored;
} Level;

typedef struct Extent {
	int64_t stride;
	double count;
} Extent;

typedef struct Walk {	/* of an index along a loop */
	int64_t stride; /* 0: it has no part in the index */
	double repeats; /* how often each place comes: its quotients and remainders are fewer */
	double again;	/* how often with all others between */
} Walk;

struct Access {
	Node *buffer, *index;
	int nloop; /* loops around it: */
	Around *loop;
	Walk *walk;
	double times; /* that the innermost body runs */
	bool stored;  /* read, too, or not */
	int nplace, place_room, nextent;
	int64_t *place;	  /* of places that differ by constants, how much: in order */
	Extent extent[2]; /* what these are, once all are known */
};

static void extent_add(Extent *e, int *n, int64_t stride, double count)
{
	int at = (*n)++;
	for (; at > 0 && e[at - 1].stride > stride; at--)
		e[at] = e[at - 1];
	e[at] = (Extent){stride, count};
}

/* The access's places are rows of so many at regular steps, or seen as one of all of them on an average. */
static void places_measure(Access *a)
{
	const int64_t *p = a->place;
	int row = 1, same = 0;
	if (a->nplace == 1)
		return;
	while (row < a->nplace && p[row] - p[row - 1] == p[1] - p[0])
		row++;
	for (int k = row; k < a->nplace; k++)
		same += p[k] - p[k - row] == p[row] - p[0];
	if (same < a->nplace - row || a->nplace % row) {
		int64_t gaps = a->nplace - 1;
		extent_add(a->extent, &a->nextent, (p[gaps] - p[0] + gaps - 1) / gaps, a->nplace);
		return;
	}
	extent_add(a->extent, &a->nextent, p[1] - p[0], row);
	if (row < a->nplace)
		extent_add(a->extent, &a->nextent, p[row] - p[0], (double)a->nplace / row);
}

/* Iterations that are looked at: of the loops from number `from` on, of that one a share. */
typedef struct Span {
	int from;
	double share;
} Span;

/* The strides of the access, ascending, and how many steps of each there are in the span, and between its places. Returns
 * how many. */
static int extents_of(const Access *a, Span s, Extent e[LOOPS_DEEP + 2])
{
	int n = 0;
	for (; n < a->nextent; n++)
		e[n] = a->extent[n];
	for (int k = s.from; k < a->nloop; k++) {
		const Walk *w = &a->walk[k];
		double share = k == s.from ? fmin(1, s.share * w->again) : 1;
		double steps = fmax(1, share * a->loop[k].count / w->repeats);
		if (w->stride)
			extent_add(e, &n, w->stride, steps);
	}
	return n;
}

/* Lines of the cache that the access touches. *run: elements that lie behind each other. */
static double lines_of(const Access *a, Span s, double *run)
{
	Extent e[LOOPS_DEEP + 2];
	Extent row = {0, 1}; /* runs so far apart, so many */
	int n = extents_of(a, s, e);
	double size = (double)type_size((Type)a->buffer->type), lines = 1, points = 1;
	*run = 1;
	for (int k = 0; k < n; k++)
		points *= e[k].count;
	for (int k = 0; k < n; k++)
		if ((double)e[k].stride <= *run)
			*run += (double)e[k].stride * (e[k].count - 1);
		else if ((double)e[k].stride * size <
			 LINE) { /* gaps within lines are fetched, too */
			*run = (double)e[k].stride * (e[k].count - 1) + *run;
		} else if (row.stride && e[k].stride % row.stride == 0 &&
			   (double)(e[k].stride / row.stride) <= row.count) { /* windows overlap */
			row.count += (double)(e[k].stride / row.stride) * (e[k].count - 1);
		} else {
			lines *= row.count;
			row = e[k];
		}
	lines *= row.count;
	double all = (double)tensor_size(a->buffer) * size / LINE + 1;
	double whole = *run * size / LINE;
	lines *= whole < 1 ? 1 : whole == (double)(int64_t)whole ? whole : whole + 0.5;
	lines = lines < points ? lines : points;
	return lines < all ? lines : all;
}

/* In how many places of a way so many that are so far apart lie. */
static double places_of(double way, int64_t stride, double count)
{
	double apart = fmax(LINE, (double)(stride & -stride));
	return fmin(count, fmax(way / apart, 1));
}

/* Short runs that are powers of two apart share few places of a level, and are gone before the rest of their lines
 * is read, or they are read again: how many times their room they take. */
static double crowding(const Access *a, Span s, double lines, double run, const Level *l)
{
	int64_t size = (int64_t)type_size((Type)a->buffer->type);
	Extent e[LOOPS_DEEP + 2];
	double bytes = run * (double)size, places = ceil(bytes / LINE);
	if (bytes >= l->crowds)
		return 1;
	for (int k = extents_of(a, s, e) - 1; k >= 0; k--)
		if ((double)e[k].stride >= run)
			places *= places_of(l->way, e[k].stride * size, e[k].count);
	places = fmin(places, l->way / LINE);
	return lines > places ? l->way / LINE / places : 1;
}

/* Is b within this run of the loops `a` stands in, from number `from` on? */
static bool is_within(const Access *b, const Access *a, int from)
{
	for (int j = 0; j < from; j++)
		if (j >= b->nloop || b->loop[j].loop != a->loop[j].loop)
			return false;
	return b->nloop >= from;
}

/* Bytes that all accesses there touch; no more of a buffer than it has. */
static double touched(const Accesses *m, const Access *a, Span s, const Level *l)
{
	double bytes = 0, run;
	int from = s.from;
	for (int k = 0; k < m->n; k++) {
		const Access *b = &m->access[k];
		double own = 0, crowd = 1, all = (double)tensor_bytes(b->buffer) + LINE;
		bool first = is_within(b, a, from);
		for (int i = 0; i < k && first; i++)
			first = m->access[i].buffer != b->buffer ||
				!is_within(&m->access[i], a, from);
		for (int i = k; i < m->n && first; i++) {
			const Access *x = &m->access[i];
			if (x->buffer != b->buffer || !is_within(x, a, from))
				continue;
			double lines = lines_of(x, s, &run);
			own += LINE * lines;
			crowd = fmax(crowd, crowding(x, s, lines, run, l));
		}
		bytes += (own < all ? own : all) * crowd;
	}
	return bytes;
}

/* How many times a line costs where runs of them are short: by the loop that varies the fastest of all that go beyond a
 * line. Each second line is found by prefetchers; lines each of which is in another page than the one before are more than
 * they watch where the pages are many. */
static double farness(const Access *a, double alone)
{
	enum { NEAR = 2 * LINE, PAGES_MOST = 64 };
	double size = (double)type_size((Type)a->buffer->type);
	for (int k = 0; k < a->nextent; k++)
		if ((double)a->extent[k].stride * size * a->extent[k].count > LINE)
			return alone;
	int k = a->nloop - 1;
	while (k >= 0 && (double)a->walk[k].stride * size * a->loop[k].count <= LINE)
		k--;
	double step = k >= 0 ? (double)a->walk[k].stride * size : 0;
	return step > 0 && step <= NEAR			       ? 1
	       : step >= PAGE && a->loop[k].count > PAGES_MOST ? astray
							       : alone;
}

/* How often the access meets a place anew in that loop, and what was touched since doesn't fit. */
static double misses_again(const Accesses *m, const Access *a, int from, const Level *l)
{
	double again = a->walk[from].again;
	return again > 1 && touched(m, a, (Span){from, 1 / again}, l) <= l->room ? 1 : again;
}

/* Cycles of the lines that the access has from beyond a level. */
static double misses(const Accesses *m, const Access *a, const Level *l)
{
	int from = a->nloop;
	double times = a->times, run;
	while (from > 0 && touched(m, a, (Span){from - 1, 1}, l) <= l->room)
		times /= a->loop[--from].count;
	double lines = lines_of(a, (Span){from, 1}, &run);
	if (from == 0) /* they come once; from memory, if there are as many */
		return (double)tensor_bytes(a->buffer) > l->room ? lines * l->line : 0;
	/* Iterations meet what the one before them left, all of it or where windows overlap. */
	while (from > 0 && a->walk[from - 1].stride == 0)
		times /= a->loop[--from].count;
	if (from > 0) {
		times /= a->loop[--from].count;
		times *= misses_again(m, a, from, l);
	}
	lines = lines_of(a, (Span){from, 1}, &run);
	bool together = run * (double)type_size((Type)a->buffer->type) >= SHORT;
	double far = together ? 1 : farness(a, l->alone);
	if (a->stored)
		far = fmax(far, l->stored * crowding(a, (Span){from, 1}, lines, run, l));
	return times * lines * l->line * far;
}

/* Is a the same place, but for a constant, as that one in the loops around it? Of neighbouring vector
 * loops, too, which take turns. */
static bool is_beside(Ir *ir, const Access *a, int nloop, const Around *loop, const Node *buffer,
		      Node *index, int64_t *apart)
{
	int inner = nloop - 1;
	if (a->nloop != nloop || a->buffer != buffer)
		return false;
	for (int k = 0; k < inner; k++)
		if (a->loop[k].loop != loop[k].loop)
			return false;
	if (inner >= 0 && a->loop[inner].loop != loop[inner].loop) {
		if (!is_vector(loop[inner].loop) || !is_vector(a->loop[inner].loop))
			return false;
		index = node_replace(ir, index, 1, &loop[inner].axis, &a->loop[inner].axis);
	}
	Node *difference = node_sub(ir, index, a->index);
	*apart = node_is_const(difference) ? difference->u.i : 0;
	return node_is_const(difference);
}

/* Is it another place than those before? */
static bool place_add(Ir *ir, Access *a, int64_t apart)
{
	int at = a->nplace;
	while (at > 0 && a->place[at - 1] > apart)
		at--;
	if (at > 0 && a->place[at - 1] == apart)
		return false;
	if (a->nplace == PLACES_MOST)
		return true;
	a->place = arena_grow(&ir->arena, a->place, a->nplace, &a->place_room, sizeof *a->place);
	memmove(a->place + at + 1, a->place + at, (size_t)(a->nplace++ - at) * sizeof *a->place);
	a->place[at] = apart;
	return true;
}

/* After how many steps along the axis the atom has the same values again; 0: not in that loop, or it is no quotient or
 * remainder of the axis. */
static int64_t period_of(const Node *atom, const Node *axis)
{
	if (atom->op != OP_FLOORMOD)
		return 0;
	const Node *of = atom->src[0];
	int64_t divisor = of->op == OP_FLOORDIV ? of->src[1]->u.i : 1;
	of = of->op == OP_FLOORDIV ? of->src[0] : of;
	return of == axis ? divisor * atom->src[1]->u.i : 0;
}

/* Of a loop over parts the index has quotients and remainders: how far it goes, and how often. */
static Walk walk_along(Ir *ir, Node *index, const Around *loop)
{
	int64_t distance = affine_distance(ir, index, loop->axis);
	Walk w = {1, 1, 1};
	if (distance != INT64_MAX) {
		w.stride = distance;
		return w;
	}
	Affine f = affine_of(ir, index);
	double span = 0, places = 1, period = 0;
	for (int j = 0; j < f.n; j++) {
		Node *atom = f.atom[j];
		if (!node_has(atom, loop->axis))
			continue;
		double n = (double)atom->hi - (double)atom->lo + 1;
		span += fabs((double)f.k[j]) * (n - 1);
		places *= n;
		int64_t own = period_of(atom, loop->axis);
		period = own ? fmax(period, (double)own) : loop->count;
	}
	if (places > loop->count || period <= 0 || span >= 1e15)
		return w;
	w.stride = places > 1 ? (int64_t)fmax(span / (places - 1), 1) : 0;
	w.repeats = loop->count / places;
	w.again = period < loop->count ? loop->count / period : 1;
	return w;
}

/* Neighbouring vector loops are seen as of the longest one. */
static void count_longest(Access *a, int nloop, const Around *loop)
{
	int inner = nloop - 1;
	double count = inner < 0 ? 0 : loop[inner].count;
	if (inner < 0 || a->loop[inner].count >= count)
		return;
	a->times *= count / a->loop[inner].count;
	a->loop[inner].count = count;
}

bool access_add(Accesses *m, int nloop, const Around *loop, Node *buffer, Node *index, bool stored)
{
	if (m->ir->err.code)
		return true;
	for (int k = m->n - 1; k >= 0; k--) {
		Access *a = &m->access[k];
		int64_t apart;
		if (!is_beside(m->ir, a, nloop, loop, buffer, index, &apart))
			continue;
		count_longest(a, nloop, loop);
		a->stored |= stored;
		return place_add(m->ir, a, apart);
	}
	size_t n = (size_t)nloop + 1;
	m->access = arena_grow(&m->ir->arena, m->access, m->n, &m->room, sizeof *m->access);
	Access *a = &m->access[m->n++];
	*a = (Access){.buffer = buffer,
		      .index = index,
		      .nloop = nloop,
		      .loop = arena_alloc(&m->ir->arena, n * sizeof *a->loop),
		      .walk = arena_alloc(&m->ir->arena, n * sizeof *a->walk),
		      .times = 1,
		      .stored = stored};
	place_add(m->ir, a, 0);
	for (int k = 0; k < nloop; k++) {
		a->loop[k] = loop[k];
		a->times *= loop[k].count;
		a->walk[k] = walk_along(m->ir, index, &loop[k]);
	}
	return true;
}

void accesses_share(Accesses *m, int from, double share)
{
	for (int k = from; k < m->n; k++)
		m->access[k].times *= share;
}

double accesses_cycles(Accesses *m, const Target *target)
{
	enum { WAY = 4096, WAYS = 8 }; /* of the first level, bytes; of the second, how many */
	const double part = 0.7, l2 = (double)target->l2;
	const Level level[] = {{part * (double)target->l1, 1, 1.25, WAY, LINE, 0.75},
			       {part * l2, 6, 1.5, l2 / WAYS, SHORT, 0},
			       {part * (double)target->l3, 16, 2, 0, 0, 0}};
	double sum = 0;
	for (int k = 0; k < m->n; k++)
		places_measure(&m->access[k]);
	for (int k = 0; k < m->n; k++)
		for (int l = 0; l < COUNT(level); l++)
			sum += misses(m, &m->access[k], &level[l]);
	return sum;
}

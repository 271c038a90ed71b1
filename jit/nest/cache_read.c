/* cache_read.c - cached reads: what a window of inner loops reads of a padded tensor is copied to
 * a local tile first, with its padding, so that the loops have no conditions and contiguous lanes.
 *
 * Input: the loops of a schedule and the place of its cache-read step. Output: the body over reads of
 * tiles, and the statements that fill them. What is cached is SELECT(conditions, read, constant)
 * where the conditions and the read's dimensions see the inner loops by the same sums only: then
 * the tile's coordinates decide both. A dimension that steps by more than one along the lanes is
 * laid out by phases. Invariant: nothing is read where its conditions do not hold. */
#include "jit/nest/internal.h"

#include <string.h>

enum { TILE_BYTES = 1 << 16 };

/* Does e vary in the loops behind the cache-read step? A place in a tile does: it stands for their axes. */
static bool has_inner(const Build *b, Node *e)
{
	for (int k = 0; k < b->ncache_read; k++)
		if (node_has(e, b->cache_read[k].place))
			return true;
	for (int k = b->cache_read_at; k < b->nloop; k++)
		if (node_has(e, b->p->axis[b->loop[b->order[k]].axis]))
			return true;
	return false;
}

/* ---- which reads */

/* The range over the inner loops of a sum of axes, relative to its value where they are 0. */
static bool dimension_range(Build *b, CacheRead *s, int d)
{
	Affine a = affine_of(b->ir, s->read->dim[d]);
	int64_t lo = 0, hi = 0;
	for (int j = 0; j < a.n; j++)
		if (a.atom[j]->op != OP_AXIS && has_inner(b, a.atom[j]))
			return false;
	for (int k = b->cache_read_at; k < b->nloop; k++) {
		const Loop *l = &b->loop[b->order[k]];
		int64_t c = affine_coefficient(&a, b->p->axis[l->axis]) * l->stride;
		if (c && !nest_exact(b, l->axis))
			return false;
		s->inner[d] |= c != 0;
		*(c < 0 ? &lo : &hi) += c * (l->extent - 1);
		if (c && k == b->lanes) {
			if (c < 0 || s->lanes >= 0)
				return false;
			s->lanes = d;
			s->phases = c;
		}
	}
	s->low[d] = lo;
	s->span[d] = hi - lo + 1;
	return true;
}

/* Do the tile's coordinates decide the conditions, and these keep all of it inside the tensor? Another
 * condition around the whole body may have made one of them go, and the tile's corners may lie where
 * that does not hold. */
static bool conditions_fit(Build *b, const CacheRead *s)
{
	Ir *ir = b->ir;
	Node *at[RICCI_MAX_RANK], *all = node_const_int(ir, RICCI_BOOL, 1);
	for (int d = 0; d < s->read->rank; d++) {
		Node *dim = s->read->dim[d];
		at[d] = s->inner[d] ? node_add(ir, tree_axis(b->t, dim->hi - dim->lo + 1),
					       node_int(ir, dim->lo))
				    : dim;
	}
	for (int k = 0; k < s->ncond; k++) {
		Node *cond = node_replace(ir, s->cond[k], s->read->rank, s->read->dim, at);
		if (has_inner(b, cond))
			return false;
		all = node2(ir, OP_AND, all, cond);
	}
	return problem_read_inside(b->p, s->read, at, all);
}

/* Fills s for a read under these conditions; false: it can't be cached. */
static bool cache_read_init(Build *b, CacheRead *s, Node *read, Node *fill)
{
	s->read = problem_read(b->p, read);
	s->fill = fill;
	s->lanes = -1;
	if (!s->read || (read->type != RICCI_F32 && read->type != RICCI_F64))
		return false;
	for (int d = 0; d < s->read->rank; d++)
		if (!dimension_range(b, s, d))
			return false;
	if (s->lanes < 0 || !conditions_fit(b, s))
		return false;
	s->len = (s->span[s->lanes] + s->phases - 1) / s->phases;
	int64_t size = s->len * s->phases;
	for (int d = s->read->rank - 1; d >= 0; d--)
		if (d != s->lanes) {
			s->pitch[d] = size;
			size *= s->span[d];
			if (size > TILE_BYTES / (int64_t)type_size(read->type))
				return false;
		}
	s->buffer = tree_buffer(b->t, SPACE_LOCAL, "tile", read->type, size);
	s->place = tree_axis(b->t, size);
	return true;
}

static bool is_factor(Ir *ir, Node *e, const Node *read)
{
	Node **factor;
	int n = node_parts(ir, e, OP_MUL, &factor);
	bool found = false;
	for (int k = 0; k < n && !found; k++) {
		Node *f = factor[k];
		bool divides =
			f->op == OP_DIV && node_is_const(f->src[1]) && !node_is_value(f->src[1], 0);
		found = f == read ||
			((divides || f->op == OP_NEG) && is_factor(ir, f->src[0], read));
	}
	return found;
}

Node *cache_read_conditions(Build *b, Node *body)
{
	Node **read;
	int n = 0, all; /* reads that lie outside at some points */
	if (body->op != OP_SELECT || b->p->red != RED_ADD || !node_is_value(body->src[2], 0))
		return body;
	all = node_collect(b->ir, body->src[1], OP_READ, &read);
	for (int k = 0; k < all; k++)
		if (!read_inside(read[k]))
			read[n++] = read[k];
	Node *zero = n == 1 ? node_const(b->ir, read[0]->type, 0) : NULL;
	if (!zero || !is_factor(b->ir, body->src[1], read[0]) ||
	    !stays_finite(b->t, node_replace(b->ir, body->src[1], 1, read, &zero)))
		return body;
	Node *padded = node_select(b->ir, body->src[0], read[0], zero);
	return node_replace(b->ir, body->src[1], 1, read, &padded);
}

/* Those in e that are not among from[], which they are put behind: cache_read[k] is of from[k]. */
static void find_reads(Build *b, Node *e, Node **from)
{
	Node **read;
	int n = node_collect(b->ir, e, OP_READ, &read);
	for (int k = 0; k < n && b->ncache_read < MAX_CACHE_READS; k++) {
		CacheRead *s = &b->cache_read[b->ncache_read];
		bool fresh = true;
		for (int i = 0; i < b->ncache_read; i++)
			fresh &= from[i] != read[k];
		if (fresh && (b->caps->grid ? grid_read_init : transposed_init)(b, s, read[k]))
			from[b->ncache_read++] = read[k];
	}
}

/* Reads across the lanes, of all that is evaluated inside them. */
static void find_transposed(Build *b)
{
	Node *from[MAX_CACHE_READS], *to[MAX_CACHE_READS];
	bool members = b->p->red == RED_NONE;
	find_reads(b, b->body, from);
	for (int k = 0; members && k < b->p->nout; k++)
		find_reads(b, b->value[k], from);
	for (int k = 0; k < b->ncache_read; k++)
		to[k] = buffer_read(b->t, b->cache_read[k].buffer, b->cache_read[k].place);
	b->body = node_replace(b->ir, b->body, b->ncache_read, from, to);
	for (int k = 0; members && k < b->p->nout; k++)
		b->value[k] = node_replace(b->ir, b->value[k], b->ncache_read, from, to);
}

void cache_read_find(Build *b)
{
	b->body = b->p->body;
	for (int k = 0; k < b->p->nout; k++)
		b->value[k] = b->p->out_value[k];
	bool grid = b->caps->grid;
	if (b->cache_read_at < 0 || (!grid && b->lanes < b->cache_read_at))
		return;
	if (grid || b->lanes == b->nloop - 1)
		find_transposed(b);
	if (grid || b->p->red == RED_NONE) /* there values are stored, not the body */
		return;
	Node *body = cache_read_conditions(b, b->body), **select;
	int n = node_collect(b->ir, body, OP_SELECT, &select);
	for (int k = 0; k < n && b->ncache_read < MAX_CACHE_READS; k++) {
		Node *from = select[k], **part;
		CacheRead *s = &b->cache_read[b->ncache_read];
		if (from->src[1]->op != OP_READ || from->src[2]->op != OP_CONST)
			continue;
		*s = (CacheRead){.ncond = node_parts(b->ir, from->src[0], OP_AND, &part)};
		if (s->ncond > COUNT(s->cond))
			continue;
		memcpy(s->cond, part, (size_t)s->ncond * sizeof *part);
		if (!cache_read_init(b, s, from->src[1], from->src[2]))
			continue;
		b->ncache_read++;
		Node *to = buffer_read(b->t, s->buffer, s->place);
		body = b->body = node_replace(b->ir, body, 1, &from, &to);
	}
}

/* ---- the tile */

typedef struct Line { /* one line of a tile along the lanes */
	const CacheRead *s;
	Node *at[RICCI_MAX_RANK]; /* the tensor's coordinates; of the lanes at their first element
				   */
	Node *first;		  /* the line's place in the tile */
	Node *axis;		  /* along the lanes, one step for all phases */
} Line;

/* Condition k of the line's element axis * phases + phase. */
static Node *line_condition(Build *b, const Line *l, int k, int phase)
{
	const CacheRead *s = l->s;
	Node *to[RICCI_MAX_RANK];
	for (int d = 0; d < s->read->rank; d++)
		to[d] = l->at[d];
	Node *t = node_add(b->ir, node_scale(b->ir, l->axis, s->phases), node_int(b->ir, phase));
	to[s->lanes] = node_add(b->ir, to[s->lanes], t);
	return nest_point(b, node_replace(b->ir, s->cond[k], s->read->rank, s->read->dim, to));
}

/* Do a line's conditions hold? */
typedef enum Holds { HOLDS_NOT, HOLDS, HOLDS_MAYBE } Holds;

/* The elements lo..hi-1 of the line, of all phases: those for which the conditions hold, else the
 * fill. */
static Stmt *line_copy(Build *b, const Line *l, Node *lo, Node *hi, Holds holds)
{
	const CacheRead *s = l->s;
	Ir *ir = b->ir;
	Stmt *body = NULL;
	if (node_is_const(lo) && node_is_const(hi) && lo->u.i >= hi->u.i)
		return NULL;
	for (int phase = 0; phase < s->phases; phase++) {
		Node *t = node_add(ir, node_scale(ir, l->axis, s->phases), node_int(ir, phase));
		Node *flat = node_int(ir, 0),
		     *cond = node2(ir, OP_LE, t, node_int(ir, s->span[s->lanes] - 1));
		for (int d = 0; d < s->read->rank; d++) {
			Node *at = d == s->lanes ? node_add(ir, l->at[d], t) : l->at[d];
			flat = node_add(ir, flat, node_scale(ir, at, s->read->stride[d]));
		}
		for (int k = 0; k < s->ncond; k++)
			cond = node2(ir, OP_AND, cond, line_condition(b, l, k, phase));
		Node *v = buffer_read(b->t, s->read->read->src[0], flat);
		if (holds != HOLDS)
			v = holds == HOLDS_NOT ? s->fill : node_select(ir, cond, v, s->fill);
		Node *place = node_add(ir, l->first, node_int(ir, phase * s->len));
		body = stmt_seq(body, stmt_store(b->t, s->buffer, node_add(ir, place, l->axis), v,
						 RED_NONE));
	}
	Stmt *loop = stmt_loop(b->t, holds == HOLDS_MAYBE ? HOW_SERIAL : HOW_VECTOR, l->axis, lo,
			       hi, body);
	loop->maybe = true;
	return loop;
}

/* Padding, inside, padding: only padding of several phases has conditions. */
static Stmt *line_fill(Build *b, const Line *l)
{
	const CacheRead *s = l->s;
	Ir *ir = b->ir;
	Node *zero = node_int(ir, 0), *len = node_int(ir, s->len),
	     *row = node_const_int(ir, RICCI_BOOL, 1);
	Node *lo = zero, *hi = node_int(ir, s->span[s->lanes] / s->phases);
	bool whole = true;
	for (int k = 0; k < s->ncond; k++) {
		if (!node_has(s->cond[k], s->read->dim[s->lanes])) {
			row = node2(ir, OP_AND, row, line_condition(b, l, k, 0));
			continue;
		}
		for (int phase = 0; phase < s->phases; phase++)
			whole &= cond_interval(b->ir, line_condition(b, l, k, phase), l->axis, &lo,
					       &hi);
	}
	if (!whole)
		return line_copy(b, l, zero, len, HOLDS_MAYBE);
	Holds outside = s->phases == 1 ? HOLDS_NOT : HOLDS_MAYBE;
	lo = node2(ir, OP_MIN, lo, len);
	hi = node2(ir, OP_MAX, hi, lo);
	Stmt *inside = line_copy(b, l, zero, lo, outside);
	inside = stmt_seq(inside, line_copy(b, l, lo, hi, HOLDS));
	inside = stmt_seq(inside, line_copy(b, l, hi, len, outside));
	return stmt_if(b->t, row, inside, line_copy(b, l, zero, len, HOLDS_NOT));
}

static Stmt *tile_fill(Build *b, Line *l, int d)
{
	const CacheRead *s = l->s;
	if (d == s->read->rank)
		return line_fill(b, l);
	l->at[d] = nest_point(b, s->read->dim[d]);
	if (!s->inner[d])
		return tile_fill(b, l, d + 1);
	l->at[d] = node_add(b->ir, l->at[d], node_int(b->ir, s->low[d]));
	if (d == s->lanes)
		return tile_fill(b, l, d + 1);
	Node *t = tree_axis(b->t, s->span[d]);
	l->at[d] = node_add(b->ir, l->at[d], t);
	l->first = node_add(b->ir, l->first, node_scale(b->ir, t, s->pitch[d]));
	return stmt_loop(b->t, HOW_SERIAL, t, NULL, NULL, tile_fill(b, l, d + 1));
}

Stmt *cache_read_fill(Build *b)
{
	Stmt *all = NULL;
	for (int k = 0; k < b->ncache_read; k++) {
		CacheRead *s = &b->cache_read[k];
		Line l = {.s = s, .first = node_int(b->ir, 0), .axis = tree_axis(b->t, s->len)};
		all = stmt_seq(all, s->transposed ? transposed_fill(b, s) : tile_fill(b, &l, 0));
	}
	return all;
}

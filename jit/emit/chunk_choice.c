/* chunk_choice.c - choices over a chunk: SELECT, and what only its condition makes valid.
 *
 * Output: each side for its own piece of the chunk, where the condition holds in an interval; a copy with padding; both
 * sides and a choice of elements, where both are valid everywhere; else plain loops. Invariant: a read is done only
 * where its condition holds. */
#include "jit/emit/chunk.h"

#include <string.h>

static void in_scope(Vector *v, Node *n, const char *dst, int kind)
{
	Vector *in = arena_alloc(v->m, sizeof *in);
	*in = *v;
	in->nknown = 0;
	Operand x = in->value(in, n, dst);
	if (strcmp(x.at, dst) != 0)
		chunk_call(in, arena_printf(v->m, "copy_%s", chunk_name[kind]), kind, dst, 1, &x);
	chunk_free(in, &x);
	chunk_known_free(in);
}

static Operand select_uniform(Vector *v, Node *n, const char *want)
{
	int kind = chunk_kind((Type)n->type);
	const char *c = emit_value(v->e, n->src[0], false);
	Operand out = chunk_target(v, kind, want);
	for (int k = 0; k < 2; k++) {
		emit_open(v->e, NULL, true);
		emit_line(v->e, "if (%s(%s)) {", k ? "!" : "", c);
		in_scope(v, n->src[1 + k], out.at, kind);
		emit_line(v->e, "}");
		emit_close(v->e);
	}
	return out;
}

enum { CONDITIONS = 16 };

/* Conditions e[j] + k[j] * element >= 0: on a line's elements or a box's columns, or (row) on a box's rows. */
typedef struct Bounds {
	int n;
	Node *e[CONDITIONS];
	int64_t k[CONDITIONS];
	bool row[CONDITIONS];
} Bounds;

/* cond as such conditions; false: it is none, or has too many. */
static bool bounds_of(Vector *v, Node *cond, Bounds *b)
{
	Ir *ir = v->e->ir;
	if (cond->op == OP_AND)
		return bounds_of(v, cond->src[0], b) && bounds_of(v, cond->src[1], b);
	Node *d = condition_slack(ir, cond);
	if (!d || b->n == CONDITIONS || emit_reads(v->e, cond) > READS_KNOWN)
		return false;
	bool row = v->row && node_has(d, v->row);
	int64_t k = affine_stride(ir, d, row ? v->row : v->axis);
	if (k == INT64_MIN || (row && node_has(d, v->axis)))
		return false;
	b->k[b->n] = k;
	b->row[b->n] = row;
	b->e[b->n++] = chunk_start(v, d);
	return true;
}

static bool bounds_has(const Bounds *b, bool row)
{
	bool has = false;
	for (int j = 0; j < b->n; j++)
		has = has || b->row[j] == row;
	return has;
}

/* Where all conditions on the one of the axes hold. */
static Span bounds_span(Vector *v, const Bounds *b, bool row)
{
	Emit *em = v->e;
	int id = em->nname++;
	Span all = {"0L", row ? v->rows : v->columns};
	if (v->part)
		all = row ? v->part->rows : v->part->columns;
	if (!bounds_has(b, row))
		return all;
	emit_line(em, "int64_t lo%d = %s, hi%d = %s;", id, all.from, id, all.to);
	for (int j = 0; j < b->n; j++) {
		if (b->row[j] != row)
			continue;
		const char *x = emit_value(em, b->e[j], false);
		int64_t k = b->k[j], s = k < 0 ? -k : k;
		const char *by = s == 1 ? "" : arena_printf(v->m, " / %lldL", (long long)s);
		if (k == 0)
			emit_line(em, "if (%s < 0) hi%d = 0;", x, id);
		else if (k > 0) /* ceil(-x / s) */
			emit_line(em, "if (%s < 0 && lo%d < (%lldL - %s)%s) lo%d = (%lldL - %s)%s;",
				  x, id, (long long)s - 1, x, by, id, (long long)s - 1, x, by);
		else /* floor(x / s) + 1 */
			emit_line(
				em,
				"if (%s < 0) hi%d = 0; else if (hi%d > %s%s + 1) hi%d = %s%s + 1;",
				x, id, id, x, by, id, x, by);
	}
	emit_line(em, "if (hi%d < lo%d) lo%d = hi%d;", id, id, id, id);
	return (Span){arena_printf(v->m, "lo%d", id), arena_printf(v->m, "hi%d", id)};
}

/* All rows of a piece: bounds_span has left out those that aren't in the part. */
static const Part *part_of_rows(Vector *v, const char *count)
{
	Part *part = arena_alloc(v->m, sizeof *part);
	*part = (Part){{"0L", count}, v->part->columns};
	return part;
}

/* Opens a scope over some elements of a line, rows of a box, or columns of it; does nothing where there are none: reads
 * may be valid there only. */
static void piece_open(Vector *v, bool row, Span s, Vector *in)
{
	Emit *em = v->e;
	Node *axis = row ? v->row : v->axis, *from = row ? v->row_start : v->start;
	Node *start = node_axis(em->ir, FIRST_START + em->nstart++, axis_extent(axis));
	const char *count = arena_printf(v->m, "n%d", em->nname++);
	*in = *v;
	in->nknown = 0;
	if (row) {
		in->row_start = start;
		in->rows = count;
		in->count = arena_printf(v->m, "%s * %lldL", count, (long long)v->width);
		in->part = v->part ? part_of_rows(v, count) : NULL;
	} else {
		in->start = start;
		in->count = in->columns = count;
		in->width = 0;
	}
	emit_open(em, start, true);
	emit_line(em, "if (%s < %s) {", s.from, s.to);
	emit_line(em, "const int64_t i%d = %s + %s, %s = %s - %s;", (int)start->u.i,
		  emit_value(em, from, false), s.from, count, s.to, s.from);
}

static void piece_close(Vector *in, int scopes)
{
	chunk_known_free(in);
	for (int k = 0; k < scopes; k++) {
		emit_line(in->e, "}");
		emit_close(in->e);
	}
}

/* The conditions of SELECT(an interval, x, what doesn't change over the chunk); false: n is none. */
static bool interval_of(Vector *v, Node *n, Bounds *b)
{
	*b = (Bounds){0};
	return n->op == OP_SELECT && !chunk_varies(v, n->src[2]) &&
	       !(emit_reads(v->e, n->src[2]) & READS_GUARDED) && bounds_of(v, n->src[0], b);
}

bool chunk_is_interval(Vector *v, Node *n)
{
	Bounds b;
	return interval_of(v, n, &b);
}

bool chunk_interval_open(Vector *v, Node *n, Interval *i)
{
	Bounds b;
	if (!interval_of(v, n, &b))
		return false;
	*i = (Interval){.other = chunk_uniform(v, n->src[2]), .in = *v};
	i->part.columns = bounds_span(v, &b, false);
	if (v->row)
		i->part.rows = bounds_span(v, &b, true);
	for (int row = v->row ? 1 : 0; row >= 0; row--)
		if (!row || bounds_has(&b, true)) {
			piece_open(&i->in, row, row ? i->part.rows : i->part.columns, &i->in);
			i->scopes++;
		}
	return true;
}

void chunk_interval_close(Interval *i)
{
	piece_close(&i->in, i->scopes);
}

/* Some elements of out, or rows of it, = those of n. */
static void piece_value(Vector *v, Node *n, bool row, Span s, const Operand *out)
{
	Vector *in = arena_alloc(v->m, sizeof *in);
	const char *dst =
		row ? arena_printf(v->m, "%s + %s * %lldL", out->at, s.from, (long long)v->width)
		    : arena_printf(v->m, "%s + %s", out->at, s.from);
	piece_open(v, row, s, in);
	in_scope(in, n, dst, out->kind);
	piece_close(in, 1);
}

/* SELECT(interval, x, y): x over the interval, y before and behind it. */
static void select_pieces(Vector *v, Node *n, bool row, const Bounds *b, const Operand *out)
{
	Emit *em = v->e;
	int id = em->nname++;
	Span s = bounds_span(v, b, row);
	Span around = {arena_printf(v->m, "from%d", id), arena_printf(v->m, "to%d", id)};
	piece_value(v, n->src[1], row, s, out);
	emit_open(em, NULL, true);
	emit_line(em, "for (int p%d = 0; p%d < 2; p%d++) {", id, id, id);
	emit_line(em, "const int64_t %s = p%d ? %s : 0, %s = p%d ? %s : %s;", around.from, id, s.to,
		  around.to, id, row ? v->rows : v->columns, s.from);
	piece_value(v, n->src[2], row, around, out);
	emit_line(em, "}");
	emit_close(em);
}

/* Can n be computed in a whole box with padding where its reads aren't valid? What doesn't change is read in any case. */
static bool takes_padding(Vector *v, Node *n)
{
	bool takes = chunk_is_full(n) && chunk_varies(v, n);
	Operand in;
	if (!(emit_reads(v->e, n) & READS_GUARDED))
		return true;
	if (n->op == OP_READ)
		return takes && chunk_address(v, n, &in);
	if (n->op == OP_SELECT)
		return takes && chunk_is_interval(v, n) && takes_padding(v, n->src[1]);
	takes = takes && chunk_function(n);
	for (int k = 0; k < n->nsrc && takes; k++)
		takes = type_is_float(n->src[k]->type) && takes_padding(v, n->src[k]);
	return takes;
}

/* SELECT(a part of a box, x, what doesn't change): x with padding around the part. */
static bool select_padded(Vector *v, Node *n, const char *want, Operand *out)
{
	Bounds b;
	Node *x = n->src[1];
	Operand in = {NULL, 1, chunk_kind((Type)n->type), -1, 0};
	if (!v->width || !interval_of(v, n, &b) || !takes_padding(v, x))
		return false;
	Operand other = chunk_uniform(v, n->src[2]);
	Part part = {bounds_span(v, &b, true), bounds_span(v, &b, false)};
	if (x->op == OP_READ && chunk_is_full(x) && chunk_address(v, x, &in)) {
		*out = chunk_padded(v, in, &other, &part, want);
		return true;
	}
	Vector *inside = arena_alloc(v->m, sizeof *inside);
	*inside = *v;
	inside->nknown = 0;
	inside->part = &part;
	in = inside->value(inside, x, NULL);
	in.line = v->width * in.stride;
	*out = chunk_padded(v, in, &other, &part, want);
	chunk_known_free(inside);
	return true;
}

static bool select_interval(Vector *v, Node *n, const char *want, Operand *out)
{
	Bounds b = {0};
	if (!bounds_of(v, n->src[0], &b))
		return false;
	bool row = v->row && !bounds_has(&b, false);
	if (v->row && !row)
		return select_padded(v, n, want, out);
	*out = chunk_target(v, chunk_kind((Type)n->type), want);
	select_pieces(v, n, row, &b, out);
	return true;
}

/* Of a box: line by line. */
static Operand by_lines(Vector *v, Node *n, const char *want)
{
	Vector *in = arena_alloc(v->m, sizeof *in);
	Operand out = chunk_target(v, chunk_kind((Type)n->type), want);
	*in = *v;
	in->nknown = 0;
	in->row = NULL;
	in->count = v->columns;
	in->width = 0;
	chunk_plain_open(v, v->row, v->row_start, v->rows);
	const char *dst = arena_printf(v->m, "%s + (i%d - %s) * %lldL", out.at, (int)v->row->u.i,
				       emit_value(v->e, v->row_start, false), (long long)v->width);
	in_scope(in, n, dst, out.kind);
	emit_line(v->e, "}");
	emit_close(v->e);
	return out;
}

static bool is_choice(const Node *n)
{
	return n->op == OP_SELECT || n->op == OP_AND || n->op == OP_OR;
}

bool chunk_is_guarded(Vector *v, Node *cond, Node *n)
{
	Ir *ir = v->e->ir;
	Node **read;
	if (!(emit_reads(v->e, n) & READS_GUARDED))
		return false;
	Polyhedron *path = poly_new(ir);
	if (v->loop) {
		poly_assume(path, node2(ir, OP_LE, v->loop->lo, v->axis));
		poly_assume(path, node2(ir, OP_LT, v->axis, v->loop->hi));
	}
	if (reads_guarded(ir, n, path))
		return false;
	int reads = node_collect(ir, n, OP_READ, &read);
	bool guarded = false;
	while (is_choice(cond))
		cond = cond->src[0];
	bool always = !node_any(ir, cond, is_choice);
	for (int k = 0; k < reads; k++)
		guarded |= !read_inside(read[k]) && !(always && node_has(cond, read[k]));
	return guarded;
}

Operand chunk_select(Vector *v, Node *n, const char *want)
{
	Operand out, in[3];
	int kind = chunk_kind((Type)n->type);
	if (!chunk_varies(v, n->src[0]))
		return select_uniform(v, n, want);
	if (select_interval(v, n, want, &out))
		return out;
	for (int k = 1; k < 3; k++)
		if (chunk_is_guarded(v, n->src[0], n->src[k]) || kind == CHUNK_U8)
			return v->row ? by_lines(v, n, want) : chunk_plain(v, n, want);
	for (int k = 0; k < 3; k++)
		in[k] = v->value(v, n->src[k], NULL);
	for (int k = 0; k < 3; k++)
		chunk_free(v, &in[k]);
	out = chunk_target(v, kind, want);
	chunk_call(v, arena_printf(v->m, "select_%s", chunk_name[kind]), kind, out.at, 3, in);
	return out;
}

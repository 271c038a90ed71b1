/* chunk.c - the values of an expression over a chunk of elements.
 *
 * Input: an expression and the axis that runs over the chunk. Output: calls of the functions of
 * jit/builtin/vectorlib.h, one for each operation, with temporaries that stay in L1; reads are
 * operands with a base and a stride. A chunk is a line, or a box of short rows (chunk.h). What has no function over
 * chunks is computed by plain loops into a temporary. Invariant: a read is done only where its condition holds. */
#include "jit/emit/chunk.h"

#include <string.h>

const char *const chunk_name[CHUNK_KINDS] = {"f32", "f64", "u8", "u16"};
const char *const chunk_type[CHUNK_KINDS] = {"float", "double", "unsigned char", "unsigned short"};
static const char *const chunk_prefix[CHUNK_KINDS] = {"vf", "vd", "vb", "vh"};

int chunk_kind(Type t)
{
	return t == RICCI_F64 ? CHUNK_F64 : t == RICCI_BOOL ? CHUNK_U8 : CHUNK_F32;
}

bool chunk_is_full(const Node *n)
{
	return n->type == RICCI_F32 || n->type == RICCI_F64;
}

/* ---- calls ---- */

/* The arguments of operands and their declaration, both starting with a comma. */
void chunk_operands(Vector *v, int n, const Operand *o, const char **args, const char **types)
{
	*args = *types = "";
	for (int k = 0; k < n; k++) {
		*args = arena_printf(v->m, "%s, %s, %lldL", *args, o[k].at, (long long)o[k].stride);
		*types = arena_printf(v->m, "%s, const %s *, int64_t", *types,
				      chunk_type[o[k].kind]);
	}
}

void chunk_call_some(Vector *v, const char *name, int kind, const char *count, const char *dst,
		     int n, const Operand *o)
{
	const char *args, *types;
	chunk_operands(v, n, o, &args, &types);
	emit_declare(v->e, arena_printf(v->m, "void ricci_v_%s(int64_t, %s *%s);", name,
					chunk_type[kind], types));
	emit_line(v->e, "ricci_v_%s(%s, %s%s);", name, count, dst, args);
}

void chunk_call(Vector *v, const char *name, int kind, const char *dst, int n, const Operand *o)
{
	chunk_call_some(v, name, kind, v->count, dst, n, o);
}

/* ---- temporaries ---- */

Operand chunk_temp(Vector *v, int kind)
{
	for (int k = 0; k < MAX_TEMPS; k++)
		if (!v->busy[kind][k]) {
			v->busy[kind][k] = true;
			if (k >= v->e->ntemp[kind])
				v->e->ntemp[kind] = k + 1;
			return (Operand){arena_printf(v->m, "%s%d", chunk_prefix[kind], k), 1, kind,
					 k, v->width};
		}
	v->e->too_large = true;
	return (Operand){"0", 1, kind, -1, v->width};
}

void chunk_free(Vector *v, const Operand *o)
{
	if (o->temp >= 0)
		v->busy[o->kind][o->temp] = false;
}

/* At the end of what v covers. */
static void known_free(Vector *v)
{
	for (int k = 0; k < v->nknown; k++)
		chunk_free(v, &v->known[k].v);
}

/* Where the result goes: the wanted place, or a temporary. */
static Operand target(Vector *v, int kind, const char *want)
{
	return want ? (Operand){want, 1, kind, -1, v->width} : chunk_temp(v, kind);
}

/* ---- expressions ---- */

static Node *chunk_start(Vector *v, Node *n)
{
	Node *from[2] = {v->axis, v->row}, *to[2] = {v->start, v->row_start};
	return node_replace(v->e->ir, n, v->row ? 2 : 1, from, to);
}

/* Does it change over the chunk? */
static bool chunk_varies(const Vector *v, Node *n)
{
	return node_has(n, v->axis) || (v->row && node_has(n, v->row));
}

bool chunk_flat(const Vector *v, const Operand *o)
{
	return !v->row || o->line == v->width * o->stride;
}

/* Row behind row. */
static Operand flat(Vector *v, Operand in, const char *want)
{
	if (chunk_flat(v, &in))
		return in;
	const char *c = chunk_type[in.kind], *t = chunk_name[in.kind];
	Operand out = target(v, in.kind, want);
	emit_declare(v->e, arena_printf(v->m,
					"void ricci_v_box_%s(int64_t, int64_t, %s *, const %s *, "
					"int64_t, int64_t);",
					t, c, c));
	emit_line(v->e, "ricci_v_box_%s(%s, %lldL, %s, %s, %lldL, %lldL);", t, v->rows,
		  (long long)v->width, out.at, in.at, (long long)in.line, (long long)in.stride);
	chunk_free(v, &in);
	return out;
}

/* Row behind row, with `other` around a part. */
static Operand padded(Vector *v, Operand in, const Operand *other, const Part *part,
		      const char *want)
{
	const char *c = chunk_type[in.kind], *t = chunk_name[in.kind];
	Operand out = target(v, in.kind, want);
	emit_declare(
		v->e,
		arena_printf(v->m,
			     "void ricci_v_pad_%s(int64_t, int64_t, %s *, const %s *, int64_t, "
			     "int64_t, const %s *, int64_t, int64_t, int64_t, int64_t);",
			     t, c, c, c));
	emit_line(v->e, "ricci_v_pad_%s(%s, %lldL, %s, %s, %lldL, %lldL, %s, %s, %s, %s, %s);", t,
		  v->rows, (long long)v->width, out.at, in.at, (long long)in.line,
		  (long long)in.stride, other->at, part->rows.from, part->rows.to,
		  part->columns.from, part->columns.to);
	chunk_free(v, &in);
	return out;
}

Operand chunk_uniform(Vector *v, Node *n)
{
	int kind = chunk_kind((Type)n->type);
	const char *text = emit_value(v->e, n, false);
	const char *name = arena_printf(v->m, "u%d", v->e->nname++);
	emit_line(v->e, "const %s %s = %s;", chunk_type[kind], name, text);
	return (Operand){arena_printf(v->m, "&%s", name), 0, kind, -1, 0};
}

/* In a plain loop's scope: the element of a line that belongs to its point. */
static const char *element(Vector *v)
{
	const char *i = arena_printf(v->m, "i%d - %s", (int)v->axis->u.i,
				     emit_value(v->e, v->start, false));
	return !v->row ? i
		       : arena_printf(v->m, "(i%d - %s) * %lldL + %s", (int)v->row->u.i,
				      emit_value(v->e, v->row_start, false), (long long)v->width,
				      i);
}

/* There, what is known over the chunk is read, so that it is the same. */
static void name_known(Vector *v)
{
	for (int k = 0; k < v->nknown; k++) {
		const Known *i = &v->known[k];
		if (i->v.stride == 1)
			emit_name(v->e, i->n, arena_printf(v->m, "(%s)[%s]", i->v.at, element(v)));
	}
}

static void plain_open(Vector *v, Node *axis, Node *from, const char *count)
{
	int i = (int)axis->u.i;
	const char *start = emit_value(v->e, from, false);
	emit_open(v->e, axis, false);
	emit_line(v->e, "for (int64_t i%d = %s; i%d < %s + %s; i%d++) {", i, start, i, start, count,
		  i);
}

/* Anything: plain loops. */
static Operand plain(Vector *v, Node *n, const char *want)
{
	Emit *e = v->e;
	Operand out = target(v, chunk_kind((Type)n->type), want);
	if (v->row)
		plain_open(v, v->row, v->row_start, v->rows);
	plain_open(v, v->axis, v->start, v->columns);
	name_known(v);
	const char *text = emit_value(e, n, false);
	emit_line(e, "(%s)[%s] = %s;", out.at, element(v), text);
	for (int k = 0; k < 1 + (v->row != NULL); k++) {
		emit_line(e, "}");
		emit_close(e);
	}
	return out;
}

/* Where a read lies that steps evenly with the axes; false when it does not. */
static bool address(Vector *v, Node *read, Operand *out)
{
	Ir *ir = v->e->ir;
	out->stride = affine_stride(ir, read->src[1], v->axis);
	out->line = v->row ? affine_stride(ir, read->src[1], v->row) : 0;
	if (out->stride == INT64_MIN || out->line == INT64_MIN)
		return false;
	out->at = chunk_place(v, read->src[0], read->src[1]);
	return true;
}

/* An index that is a table's entry for each element, plus what does not depend on the axis. */
Node *chunk_entry(Ir *ir, Node *index, Node *axis, Node **rest)
{
	Affine a = affine_of(ir, index);
	Node *entry = NULL;
	*rest = node_int(ir, a.c);
	for (int j = 0; j < a.n; j++) {
		if (!node_has(a.atom[j], axis)) {
			*rest = node_add(ir, *rest, node_scale(ir, a.atom[j], a.k[j]));
			continue;
		}
		if (entry || a.k[j] != 1 || a.atom[j]->op != OP_READ)
			return NULL;
		entry = a.atom[j];
		if (affine_stride(ir, entry->src[1], axis) != 1)
			return NULL;
	}
	return entry;
}

const char *chunk_place(Vector *v, Node *buffer, Node *index)
{
	return emit_address(v->e, buffer, chunk_start(v, index));
}

static Operand gather(Vector *v, Node *n, const char *want)
{
	Node *rest, *entry = chunk_entry(v->e->ir, n->src[1], v->axis, &rest);
	int kind = chunk_kind((Type)n->type);
	if (!entry || v->row)
		return plain(v, n, want);
	Operand out = target(v, kind, want);
	const char *t = chunk_name[kind], *c = chunk_type[kind];
	emit_declare(
		v->e,
		arena_printf(v->m,
			     "void ricci_gather_%s(int64_t, %s *, const %s *, const int64_t *);", t,
			     c, c));
	emit_line(v->e, "ricci_gather_%s(%s, %s, %s, %s);", t, v->count, out.at,
		  chunk_place(v, n->src[0], rest), chunk_place(v, entry->src[0], entry->src[1]));
	return out;
}

static Operand convert(Vector *v, const char *name, int kind, Operand in, const char *want)
{
	chunk_free(v, &in);
	Operand out = target(v, kind, want);
	chunk_call(v, name, kind, out.at, 1, &in);
	return out;
}

static Operand read_of(Vector *v, Node *n, const char *want)
{
	Operand in = {NULL, 1, chunk_kind((Type)n->type), -1, 0};
	if (n->type != RICCI_F32 && n->type != RICCI_F64 && n->type != RICCI_BOOL &&
	    n->type != RICCI_BF16 && n->type != RICCI_F16)
		return plain(v, n, want);
	if (!address(v, n, &in))
		return chunk_is_full(n) ? gather(v, n, want) : plain(v, n, want);
	if (n->type == RICCI_BF16 || n->type == RICCI_F16) {
		in.kind = CHUNK_U16;
		return convert(v, n->type == RICCI_BF16 ? "f32_of_bf16" : "f32_of_f16", CHUNK_F32,
			       flat(v, in, NULL), want);
	}
	if (v->part && !read_inside(n)) {
		Operand zero = chunk_uniform(v, node_const(v->e->ir, (Type)n->type, 0));
		return padded(v, in, &zero, v->part, want);
	}
	return flat(v, in, want);
}

Operand chunk_read(Vector *v, Node *n)
{
	Operand in = {NULL, 1, chunk_kind((Type)n->type), -1, 0};
	return n->op == OP_READ && chunk_is_full(n) && address(v, n, &in) ? in
									  : chunk_value(v, n, NULL);
}

static Operand cast_of(Vector *v, Node *n, const char *want)
{
	Node *x = n->src[0];
	Type to = (Type)n->type, from = (Type)x->type;
	Operand in = {NULL, 1, CHUNK_U8, -1, 0};
	if ((to == RICCI_BF16 || to == RICCI_F16) && type_is_float(from) && from != RICCI_F64) {
		Operand half = convert(v, to == RICCI_BF16 ? "bf16_of_f32" : "f16_of_f32",
				       CHUNK_U16, chunk_value(v, x, NULL), NULL);
		return convert(v, to == RICCI_BF16 ? "f32_of_bf16" : "f32_of_f16", CHUNK_F32, half,
			       want);
	}
	if (type_is_float(from) && type_is_float(to)) {
		if ((from == RICCI_F64) == (to == RICCI_F64))
			return chunk_value(v, x, want);
		return to == RICCI_F64
			       ? convert(v, "f64_of_f32", CHUNK_F64, chunk_value(v, x, NULL), want)
			       : convert(v, "f32_of_f64", CHUNK_F32, chunk_value(v, x, NULL), want);
	}
	if (to != RICCI_F32)
		return plain(v, n, want);
	if (from == RICCI_BOOL)
		return convert(v, "f32_of_u8", CHUNK_F32, chunk_value(v, x, NULL), want);
	if (x->op != OP_READ || !address(v, x, &in) || !chunk_flat(v, &in))
		return plain(v, n, want);
	Operand out = target(v, CHUNK_F32, want);
	const char *name = arena_printf(v->m, "f32_of_%s", type_name(from));
	emit_declare(v->e,
		     arena_printf(v->m, "void ricci_v_%s(int64_t, float *, const %s *, int64_t);",
				  name, dialect_ctype[from]));
	emit_line(v->e, "ricci_v_%s(%s, %s, %s, %lldL);", name, v->count, out.at, in.at,
		  (long long)in.stride);
	return out;
}

static Operand operation(Vector *v, Node *n, int kind, const char *name, const char *want)
{
	Operand in[2];
	for (int k = 0; k < n->nsrc; k++)
		in[k] = chunk_value(v, n->src[k], NULL);
	for (int k = 0; k < n->nsrc; k++)
		chunk_free(v, &in[k]);
	Operand out = target(v, kind, want);
	chunk_call(v, name, kind, out.at, n->nsrc, in);
	return out;
}

/* The function over chunks for an operator, without its type; NULL when there is none. */
static const char *function_of(const Node *n)
{
	bool f64 = n->nsrc && n->src[0]->type == RICCI_F64;
	switch ((Op)n->op) {
	case OP_ADD:
		return "add";
	case OP_SUB:
		return "sub";
	case OP_MUL:
		return "mul";
	case OP_DIV:
		return "div";
	case OP_LT:
		return "lt";
	case OP_LE:
		return "le";
	case OP_EQ:
		return "eq";
	case OP_NE:
		return "ne";
	case OP_NEG:
		return "neg";
	case OP_ABS:
	case OP_SQRT:
	case OP_MIN:
	case OP_MAX:
		return op_info[n->op].text;
	default:
		return !f64 && op_info[n->op].form == FORM_CALL && !node_draws(n)
			       ? op_info[n->op].text
			       : NULL;
	}
}

/* ---- selection ---- */

static void in_scope(Vector *v, Node *n, const char *dst, int kind)
{
	Vector *in = arena_alloc(v->m, sizeof *in);
	*in = *v;
	in->nknown = 0;
	Operand x = chunk_value(in, n, dst);
	if (strcmp(x.at, dst) != 0)
		chunk_call(in, arena_printf(v->m, "copy_%s", chunk_name[kind]), kind, dst, 1, &x);
	chunk_free(in, &x);
	known_free(in);
}

static Operand select_uniform(Vector *v, Node *n, const char *want)
{
	int kind = chunk_kind((Type)n->type);
	const char *c = emit_value(v->e, n->src[0], false);
	Operand out = target(v, kind, want);
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
	known_free(in);
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
		return takes && address(v, n, &in);
	if (n->op == OP_SELECT)
		return takes && chunk_is_interval(v, n) && takes_padding(v, n->src[1]);
	takes = takes && function_of(n);
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
	if (x->op == OP_READ && chunk_is_full(x) && address(v, x, &in)) {
		*out = padded(v, in, &other, &part, want);
		return true;
	}
	Vector *inside = arena_alloc(v->m, sizeof *inside);
	*inside = *v;
	inside->nknown = 0;
	inside->part = &part;
	in = chunk_value(inside, x, NULL);
	in.line = v->width * in.stride;
	*out = padded(v, in, &other, &part, want);
	known_free(inside);
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
	*out = target(v, chunk_kind((Type)n->type), want);
	select_pieces(v, n, row, &b, out);
	return true;
}

/* Of a box: line by line. */
static Operand by_lines(Vector *v, Node *n, const char *want)
{
	Vector *in = arena_alloc(v->m, sizeof *in);
	Operand out = target(v, chunk_kind((Type)n->type), want);
	*in = *v;
	in->nknown = 0;
	in->row = NULL;
	in->count = v->columns;
	in->width = 0;
	plain_open(v, v->row, v->row_start, v->rows);
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

/* Does n read what only the condition makes valid? Not what the condition reads itself, in any case. */
static bool is_guarded(Vector *v, Node *cond, Node *n)
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

static Operand select_of(Vector *v, Node *n, const char *want)
{
	Operand out, in[3];
	int kind = chunk_kind((Type)n->type);
	if (!chunk_varies(v, n->src[0]))
		return select_uniform(v, n, want);
	if (select_interval(v, n, want, &out))
		return out;
	for (int k = 1; k < 3; k++)
		if (is_guarded(v, n->src[0], n->src[k]) || kind == CHUNK_U8)
			return v->row ? by_lines(v, n, want) : plain(v, n, want);
	for (int k = 0; k < 3; k++)
		in[k] = chunk_value(v, n->src[k], NULL);
	for (int k = 0; k < 3; k++)
		chunk_free(v, &in[k]);
	out = target(v, kind, want);
	chunk_call(v, arena_printf(v->m, "select_%s", chunk_name[kind]), kind, out.at, 3, in);
	return out;
}

static Operand compute(Vector *v, Node *n, const char *want)
{
	int kind = chunk_kind((Type)n->type);
	const char *name = function_of(n);
	if (n->op == OP_READ)
		return read_of(v, n, want);
	if (n->op == OP_CAST)
		return cast_of(v, n, want);
	if (n->op == OP_SELECT && (type_is_float(n->type) || n->type == RICCI_BOOL))
		return select_of(v, n, want);
	if (n->op == OP_AND || n->op == OP_OR)
		return is_guarded(v, n->src[0], n->src[1])
			       ? plain(v, n, want)
			       : operation(v, n, kind, n->op == OP_AND ? "and_u8" : "or_u8", want);
	if (n->op == OP_NOT)
		return operation(v, n, kind, "not_u8", want);
	if (!name || !n->nsrc || !type_is_float(n->src[0]->type))
		return plain(v, n, want);
	return operation(
		v, n, kind,
		arena_printf(v->m, "%s_%s", name, chunk_name[chunk_kind((Type)n->src[0]->type)]),
		want);
}

/* Of a box, what changes with one of its axes alone: one element for each place of that, and the same along the other. */
static Operand by_axis(Vector *v, Node *n, bool row, const char *want)
{
	Vector *in = arena_alloc(v->m, sizeof *in);
	const char *count = row ? v->rows : v->columns;
	*in = (Vector){.e = v->e,
		       .m = v->m,
		       .axis = row ? v->row : v->axis,
		       .start = row ? v->row_start : v->start,
		       .count = count,
		       .columns = count,
		       .busy = v->busy};
	Operand x = chunk_value(in, n, NULL);
	x.line = row ? x.stride : 0;
	x.stride = row ? 0 : x.stride;
	x = flat(v, x, want);
	known_free(in);
	return x;
}

/* Does n, which the chunk's axes change, change with one axis of a box alone? */
static bool has_one_axis(const Vector *v, Node *n)
{
	return v->row && n->op != OP_READ && !(v->part && (emit_reads(v->e, n) & READS_GUARDED)) &&
	       (type_is_float((Type)n->type) || n->type == RICCI_BOOL) &&
	       !(node_has(n, v->axis) && node_has(n, v->row));
}

/* What is known stays until the end of the chunk. */
static Operand kept(Operand o)
{
	o.temp = -1;
	return o;
}

/* The elements of n over the chunk. A node met twice is computed once. */
Operand chunk_value(Vector *v, Node *n, const char *want)
{
	if (v->e->too_large) /* this text is thrown away */
		return (Operand){"0", 1, chunk_kind((Type)n->type), -1, v->width};
	for (int k = 0; k < v->nknown; k++)
		if (v->known[k].n == n)
			return kept(v->known[k].v);
	if (!chunk_varies(v, n)) {
		Operand u = chunk_uniform(v, n);
		if (v->nknown < MAX_MEMO / 2)
			v->known[v->nknown++] = (Known){n, u};
		return u;
	}
	bool again = emit_uses(v->e, n) > 1;
	const char *at = again ? NULL : want;
	Operand out =
		has_one_axis(v, n) ? by_axis(v, n, !node_has(n, v->axis), at) : compute(v, n, at);
	v->e->too_large |= again && v->nknown == MAX_MEMO;
	if (again && !v->e->too_large) {
		v->known[v->nknown++] = (Known){n, out};
		return kept(out);
	}
	return out;
}

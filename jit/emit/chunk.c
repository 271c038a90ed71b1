/* chunk.c - the values of an expression over a chunk of elements.
 *
 * Input: an expression and the axis that runs over the chunk. Output: calls of the functions of
 * jit/builtin/vectorlib.h, one for each operation, with temporaries that stay in L1; reads are
 * operands with a base and a stride. A chunk is a line, or a box of short rows (chunk.h). What has no function over
 * chunks is computed by plain loops into a temporary. */
#include "jit/emit/chunk.h"

static Operand gather(Vector *v, Node *n, const char *want)
{
	Node *rest, *entry = chunk_entry(v->e->ir, n->src[1], v->axis, &rest);
	int kind = chunk_kind((Type)n->type);
	if (!entry || v->row)
		return chunk_plain(v, n, want);
	Operand out = chunk_target(v, kind, want);
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
	Operand out = chunk_target(v, kind, want);
	chunk_call(v, name, kind, out.at, 1, &in);
	return out;
}

static Operand read_of(Vector *v, Node *n, const char *want)
{
	Operand in = {NULL, 1, chunk_kind((Type)n->type), -1, 0};
	if (n->type != RICCI_F32 && n->type != RICCI_F64 && n->type != RICCI_BOOL &&
	    n->type != RICCI_BF16 && n->type != RICCI_F16)
		return chunk_plain(v, n, want);
	if (!chunk_address(v, n, &in))
		return chunk_is_full(n) ? gather(v, n, want) : chunk_plain(v, n, want);
	if (n->type == RICCI_BF16 || n->type == RICCI_F16) {
		in.kind = CHUNK_U16;
		return convert(v, n->type == RICCI_BF16 ? "f32_of_bf16" : "f32_of_f16", CHUNK_F32,
			       chunk_flatten(v, in, NULL), want);
	}
	if (v->part && !read_inside(n)) {
		Operand zero = chunk_uniform(v, node_const(v->e->ir, (Type)n->type, 0));
		return chunk_padded(v, in, &zero, v->part, want);
	}
	return chunk_flatten(v, in, want);
}

Operand chunk_read(Vector *v, Node *n)
{
	Operand in = {NULL, 1, chunk_kind((Type)n->type), -1, 0};
	return n->op == OP_READ && chunk_is_full(n) && chunk_address(v, n, &in)
		       ? in
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
		return chunk_plain(v, n, want);
	if (from == RICCI_BOOL)
		return convert(v, "f32_of_u8", CHUNK_F32, chunk_value(v, x, NULL), want);
	if (x->op != OP_READ || !chunk_address(v, x, &in) || !chunk_flat(v, &in))
		return chunk_plain(v, n, want);
	Operand out = chunk_target(v, CHUNK_F32, want);
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
	Operand out = chunk_target(v, kind, want);
	chunk_call(v, name, kind, out.at, n->nsrc, in);
	return out;
}

static Operand compute(Vector *v, Node *n, const char *want)
{
	int kind = chunk_kind((Type)n->type);
	const char *name = chunk_function(n);
	if (n->op == OP_READ)
		return read_of(v, n, want);
	if (n->op == OP_CAST)
		return cast_of(v, n, want);
	if (n->op == OP_SELECT && (type_is_float(n->type) || n->type == RICCI_BOOL))
		return chunk_select(v, n, want);
	if (n->op == OP_AND || n->op == OP_OR)
		return chunk_is_guarded(v, n->src[0], n->src[1])
			       ? chunk_plain(v, n, want)
			       : operation(v, n, kind, n->op == OP_AND ? "and_u8" : "or_u8", want);
	if (n->op == OP_NOT)
		return operation(v, n, kind, "not_u8", want);
	if (!name || !n->nsrc || !type_is_float(n->src[0]->type))
		return chunk_plain(v, n, want);
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
		       .value = v->value,
		       .axis = row ? v->row : v->axis,
		       .start = row ? v->row_start : v->start,
		       .count = count,
		       .columns = count,
		       .busy = v->busy};
	Operand x = chunk_value(in, n, NULL);
	x.line = row ? x.stride : 0;
	x.stride = row ? 0 : x.stride;
	x = chunk_flatten(v, x, want);
	chunk_known_free(in);
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

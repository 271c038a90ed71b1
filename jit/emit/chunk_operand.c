/* chunk_operand.c - what functions over chunks take: their names, temporaries, and where elements lie.
 *
 * Input: reads, or what has no function. Output: operands with a base and a stride, or temporaries that stay in L1.
 * What does not step evenly is computed by plain loops. */
#include "jit/emit/chunk.h"

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

void chunk_known_free(Vector *v)
{
	for (int k = 0; k < v->nknown; k++)
		chunk_free(v, &v->known[k].v);
}

Operand chunk_target(Vector *v, int kind, const char *want)
{
	return want ? (Operand){want, 1, kind, -1, v->width} : chunk_temp(v, kind);
}

/* ---- places ---- */

Node *chunk_start(Vector *v, Node *n)
{
	Node *from[2] = {v->axis, v->row}, *to[2] = {v->start, v->row_start};
	return node_replace(v->e->ir, n, v->row ? 2 : 1, from, to);
}

bool chunk_varies(const Vector *v, Node *n)
{
	return node_has(n, v->axis) || (v->row && node_has(n, v->row));
}

bool chunk_flat(const Vector *v, const Operand *o)
{
	return !v->row || o->line == v->width * o->stride;
}

Operand chunk_flatten(Vector *v, Operand in, const char *want)
{
	if (chunk_flat(v, &in))
		return in;
	const char *c = chunk_type[in.kind], *t = chunk_name[in.kind];
	Operand out = chunk_target(v, in.kind, want);
	emit_declare(v->e, arena_printf(v->m,
					"void ricci_v_box_%s(int64_t, int64_t, %s *, const %s *, "
					"int64_t, int64_t);",
					t, c, c));
	emit_line(v->e, "ricci_v_box_%s(%s, %lldL, %s, %s, %lldL, %lldL);", t, v->rows,
		  (long long)v->width, out.at, in.at, (long long)in.line, (long long)in.stride);
	chunk_free(v, &in);
	return out;
}

Operand chunk_padded(Vector *v, Operand in, const Operand *other, const Part *part,
		     const char *want)
{
	const char *c = chunk_type[in.kind], *t = chunk_name[in.kind];
	Operand out = chunk_target(v, in.kind, want);
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

/* In plain loops' scopes: the element that belongs to their point, by place on a line and on a box's rows. */
static const char *element(Vector *v, bool line, bool row)
{
	const char *at = "0";
	if (line)
		at = arena_printf(v->m, "i%d - %s", (int)v->axis->u.i,
				  emit_value(v->e, v->start, false));
	return !v->row || !row ? at
			       : arena_printf(v->m, "(i%d - %s) * %lldL + %s", (int)v->row->u.i,
					      emit_value(v->e, v->row_start, false),
					      (long long)v->width, at);
}

/* There, what is known over the chunk is read, so that it is the same; what one of a box's axes alone changes, by that
 * axis: the loop over the other may be further in. */
static void name_known(Vector *v)
{
	for (int k = 0; k < v->nknown; k++) {
		const Known *i = &v->known[k];
		bool line = node_has(i->n, v->axis), row = v->row && node_has(i->n, v->row);
		if (i->v.stride == 1)
			emit_name(v->e, i->n,
				  arena_printf(v->m, "(%s)[%s]", i->v.at, element(v, line, row)));
	}
}

void chunk_plain_open(Vector *v, Node *axis, Node *from, const char *count)
{
	int i = (int)axis->u.i;
	const char *start = emit_value(v->e, from, false);
	emit_open(v->e, axis, false);
	emit_line(v->e, "for (int64_t i%d = %s; i%d < %s + %s; i%d++) {", i, start, i, start, count,
		  i);
}

Operand chunk_plain(Vector *v, Node *n, const char *want)
{
	Emit *e = v->e;
	Operand out = chunk_target(v, chunk_kind((Type)n->type), want);
	if (v->row)
		chunk_plain_open(v, v->row, v->row_start, v->rows);
	chunk_plain_open(v, v->axis, v->start, v->columns);
	name_known(v);
	const char *text = emit_value(e, n, false);
	emit_line(e, "(%s)[%s] = %s;", out.at, element(v, true, true), text);
	for (int k = 0; k < 1 + (v->row != NULL); k++) {
		emit_line(e, "}");
		emit_close(e);
	}
	return out;
}

bool chunk_address(Vector *v, Node *read, Operand *out)
{
	Ir *ir = v->e->ir;
	out->stride = affine_stride(ir, read->src[1], v->axis);
	out->line = v->row ? affine_stride(ir, read->src[1], v->row) : 0;
	if (out->stride == INT64_MIN || out->line == INT64_MIN)
		return false;
	out->at = chunk_place(v, read->src[0], read->src[1]);
	return true;
}

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

const char *chunk_function(const Node *n)
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

/* chunk_loop.c - innermost vector loops for compilers that make no vector code.
 *
 * Input: a vector LOOP whose body is stores of floats. Output: a loop over chunks of at most
 * Dialect.chunk elements; in it the values (chunk.c), then the stores. */
#include "jit/emit/chunk.h"

#include <string.h>

static const int64_t INDEXED = INT64_MIN; /* affine_stride: not even steps */

static bool suits(Emit *e, const Stmt *loop)
{
	for (const Stmt *s = loop->body; s; s = s->next) {
		if (s->kind != STMT_STORE || !type_is_float(s->value->type) ||
		    !type_is_float(s->buffer->type))
			return false;
		Node *rest;
		int64_t k = affine_stride(e->ir, s->index, loop->axis);
		bool full = s->buffer->type == RICCI_F32 || s->buffer->type == RICCI_F64;
		if (k == INDEXED && (!full || s->red != RED_NONE ||
				     !chunk_entry(e->ir, s->index, loop->axis, &rest)))
			return false;
		if (full && chunk_kind((Type)s->value->type) != chunk_kind((Type)s->buffer->type))
			return false;
		if (!full && (k != 1 || s->red != RED_NONE || s->value->type == RICCI_F64))
			return false;
		if (s->red != RED_NONE && k != 1 && k != 0)
			return false;
		if (s->red == RED_NONE && k == 0)
			return false;
	}
	return loop->body != NULL;
}

/* buffer[index] red= all elements of the value. */
static void store_total(Vector *v, const Stmt *s)
{
	static const char *const total[RED_COUNT] = {"", "hsum", "hprod", "hmax", "hmin"};
	int kind = chunk_kind((Type)s->buffer->type), n = 1;
	Operand in[2];
	const char *name = total[s->red], *args, *types, *t = chunk_name[kind];
	if (s->red == RED_ADD && s->value->op == OP_MUL && emit_uses(v->e, s->value) == 1) {
		name = "dot";
		n = 2;
		for (int k = 0; k < 2; k++)
			in[k] = chunk_value(v, s->value->src[k], NULL);
	} else {
		in[0] = chunk_value(v, s->value, NULL);
	}
	chunk_operands(v, n, in, &args, &types);
	emit_declare(v->e, arena_printf(v->m, "%s ricci_v_%s_%s(int64_t%s);", chunk_type[kind],
					name, t, types));
	const char *x = arena_printf(v->m, "ricci_v_%s_%s(%s%s)", name, t, v->count, args);
	const char *place = emit_place(v->e, s->buffer, s->index, false);
	if (s->red == RED_MAX || s->red == RED_MIN)
		emit_line(v->e, "%s = rk_%s_%s(%s, %s);", place, s->red == RED_MAX ? "max" : "min",
			  t, place, x);
	else
		emit_line(v->e, "%s %s %s;", place, s->red == RED_MUL ? "*=" : "+=", x);
	for (int k = 0; k < n; k++)
		chunk_free(v, &in[k]);
}

/* dst[l] red= value[l]. */
static void store_accumulate(Vector *v, const Stmt *s, const char *dst)
{
	static const char *const combine[RED_COUNT] = {"", "add", "mul", "max", "min"};
	int kind = chunk_kind((Type)s->buffer->type);
	Operand in[2] = {{dst, 1, kind, -1}};
	if (s->red == RED_ADD && s->value->op == OP_MUL && emit_uses(v->e, s->value) == 1) {
		for (int k = 0; k < 2; k++)
			in[k] = chunk_value(v, s->value->src[k], NULL);
		chunk_call(v, arena_printf(v->m, "fma_%s", chunk_name[kind]), kind, dst, 2, in);
		chunk_free(v, &in[0]);
	} else {
		in[1] = chunk_value(v, s->value, NULL);
		chunk_call(v, arena_printf(v->m, "%s_%s", combine[s->red], chunk_name[kind]), kind,
			   dst, 2, in);
	}
	chunk_free(v, &in[1]);
}

static void store_from(Vector *v, const Stmt *s, const char *dst, int64_t stride, Operand x)
{
	int kind = chunk_kind((Type)s->buffer->type);
	Type t = (Type)s->buffer->type;
	if (t == RICCI_BF16 || t == RICCI_F16) {
		chunk_call(v, t == RICCI_BF16 ? "bf16_of_f32" : "f16_of_f32", CHUNK_U16, dst, 1,
			   &x);
		return;
	}
	if (stride == 1) {
		if (strcmp(x.at, dst) != 0)
			chunk_call(v, arena_printf(v->m, "copy_%s", chunk_name[kind]), kind, dst, 1,
				   &x);
		return;
	}
	if (x.stride != 1) {
		Operand out = chunk_temp(v, kind);
		chunk_call(v, arena_printf(v->m, "copy_%s", chunk_name[kind]), kind, out.at, 1, &x);
		chunk_free(v, &out);
		x = out;
	}
	const char *name = chunk_name[kind], *c = chunk_type[kind];
	if (stride == INDEXED) {
		Node *rest, *entry = chunk_entry(v->e->ir, s->index, v->axis, &rest);
		emit_declare(v->e,
			     arena_printf(v->m,
					  "void ricci_scatter_%s(int64_t, %s *, const int64_t *, "
					  "const %s *);",
					  name, c, c));
		emit_line(v->e, "ricci_scatter_%s(%s, %s, %s, %s);", name, v->count, dst,
			  chunk_place(v, entry->src[0], entry->src[1]), x.at);
		return;
	}
	emit_declare(v->e,
		     arena_printf(v->m,
				  "void ricci_v_store_%s(int64_t, %s *, int64_t, const %s *);",
				  chunk_name[kind], chunk_type[kind], chunk_type[kind]));
	emit_line(v->e, "ricci_v_store_%s(%s, %s, %lldL, %s);", chunk_name[kind], v->count, dst,
		  (long long)stride, x.at);
}

static void store_all(Vector *v, const Stmt *first)
{
	Emit *e = v->e;
	int n = 0;
	for (const Stmt *s = first; s; s = s->next)
		n++;
	Operand *value = arena_alloc(v->m, (size_t)n * sizeof *value);
	const char **dst = arena_alloc(v->m, (size_t)n * sizeof *dst);
	int64_t *stride = arena_alloc(v->m, (size_t)n * sizeof *stride);
	int k = 0;
	emit_statement(e);
	for (const Stmt *s = first; s; s = s->next)
		emit_count(e, s->value);
	for (const Stmt *s = first; s; s = s->next, k++) {
		stride[k] = affine_stride(e->ir, s->index, v->axis);
		if (stride[k] == 0)
			continue;
		Node *place = s->index;
		if (stride[k] == INDEXED)
			chunk_entry(e->ir, s->index, v->axis, &place);
		dst[k] = chunk_place(v, s->buffer, place);
		bool direct = n == 1 && stride[k] == 1 && s->red == RED_NONE &&
			      (s->buffer->type == RICCI_F32 || s->buffer->type == RICCI_F64);
		if (s->red == RED_NONE)
			value[k] = chunk_value(v, s->value, direct ? dst[k] : NULL);
	}
	k = 0;
	for (const Stmt *s = first; s; s = s->next, k++) {
		if (stride[k] == 0)
			store_total(v, s);
		else if (s->red != RED_NONE)
			store_accumulate(v, s, dst[k]);
		else
			store_from(v, s, dst[k], stride[k], value[k]);
	}
}

bool emit_vector(Emit *e, const Stmt *s, const char *lo, const char *hi)
{
	if (!suits(e, s))
		return false;
	bool busy[CHUNK_KINDS][MAX_TEMPS] = {{false}};
	int id = e->nname++;
	Node *start = node_axis(e->ir, FIRST_START + e->nstart++, axis_extent(s->axis));
	Vector *v = arena_alloc(&e->ir->arena, sizeof *v);
	*v = (Vector){e, &e->ir->arena, s->axis, start, arena_printf(&e->ir->arena, "n%d", id),
		      0, {{0}},		NULL,	 busy};
	int number = (int)start->u.i;
	emit_open(e, start, s->maybe);
	emit_line(e, "for (int64_t i%d = %s; i%d < %s; i%d += %d) {", number, lo, number, hi,
		  number, e->d->caps.chunk);
	emit_line(e, "const int64_t n%d = %s - i%d < %d ? %s - i%d : %d;", id, hi, number,
		  e->d->caps.chunk, hi, number, e->d->caps.chunk);
	store_all(v, s->body);
	emit_line(e, "}");
	emit_close(e);
	return true;
}

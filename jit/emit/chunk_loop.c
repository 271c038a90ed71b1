/* chunk_loop.c - innermost vector loops for compilers that make no vector code.
 *
 * Input: a vector LOOP whose body is stores of floats. Output: a loop over chunks of at most
 * Dialect.chunk elements; in it the values (chunk.c), then the stores. Where a short one is all that a loop around it
 * does, and everything steps evenly with both, a chunk is a box of both. */
#include "jit/emit/chunk.h"

#include <string.h>

static const int64_t INDEXED = INT64_MIN; /* affine_stride: not even steps */
static const char *const combine[RED_COUNT] = {"", "add", "mul", "max", "min"};

static bool suits(Emit *e, const Stmt *loop)
{
	for (const Stmt *s = loop->body; s; s = s->next) {
		if (s->kind != STMT_STORE || !type_is_float(s->value->type) ||
		    !type_is_float(s->buffer->type))
			return false;
		Node *rest;
		int64_t k = affine_stride(e->ir, s->index, loop->axis);
		bool full = chunk_is_full(s->buffer);
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

static bool steps_evenly(Emit *e, Node *index, Node *row, Node *axis)
{
	return affine_stride(e->ir, index, row) != INDEXED &&
	       affine_stride(e->ir, index, axis) != INDEXED;
}

/* Do all reads of the value, floats, step evenly with both axes? */
static bool reads_even(Emit *e, Node *value, Node *row, Node *axis)
{
	Node **read;
	int n = node_collect(e->ir, value, OP_READ, &read);
	bool even = true;
	for (int k = 0; k < n; k++)
		even = even && type_is_float(read[k]->type) &&
		       steps_evenly(e, read[k]->src[1], row, axis);
	return even;
}

/* Of counted statements: does s add products that nothing else needs? */
static bool adds_products(Emit *e, const Stmt *s)
{
	return s->red == RED_ADD && s->value->op == OP_MUL && emit_uses(e, s->value) == 1;
}

/* Or elements as they lie, which are products with 1? A box of these has no function of its own. */
static bool adds_elements(Emit *e, const Stmt *s)
{
	return adds_products(e, s) ||
	       (s->red == RED_ADD && s->value->op == OP_READ && chunk_is_full(s->value));
}

static void stores_count(Emit *e, const Stmt *first)
{
	emit_statement(e);
	for (const Stmt *s = first; s; s = s->next)
		emit_count(e, s->value);
}

/* Does what stands around an interval change nothing? */
static bool is_neutral(Emit *e, const Stmt *s)
{
	Type t = (Type)s->buffer->type;
	return s->value->op == OP_SELECT && s->value->src[2] == node_identity(e->ir, s->red, t, t);
}

/* Of counted statements: does s add up products of reads, or reads, as they lie, where an interval of each axis has them? */
static bool adds_padded(Emit *e, const Stmt *s, Node *row, Node *axis)
{
	Vector v = {.e = e,
		    .m = &e->ir->arena,
		    .axis = axis,
		    .start = axis,
		    .row = row,
		    .row_start = row};
	Node *n = s->value, *x = n->op == OP_SELECT ? n->src[1] : n;
	bool fits = s->red == RED_ADD && (x->op == OP_MUL || x->op == OP_READ) &&
		    emit_uses(e, n) == 1 && emit_uses(e, x) == 1 && chunk_is_interval(&v, n);
	for (int k = 0; k < (x->op == OP_MUL ? 2 : 1) && fits; k++) {
		Node *f = x->op == OP_MUL ? x->src[k] : x;
		bool varies = node_has(f, row) || node_has(f, axis);
		fits = !varies || (f->op == OP_READ && chunk_is_full(f) &&
				   steps_evenly(e, f->src[1], row, axis));
	}
	return fits;
}

/* Are the places that s stores to all different, or those of one row, or one for each row, to which products are
 * added? */
static bool stores_even(Emit *e, const Stmt *s, Node *row, const Stmt *loop)
{
	int64_t rows = axis_extent(row), width = axis_extent(loop->axis);
	int64_t line = affine_stride(e->ir, s->index, row);
	int64_t stride = affine_stride(e->ir, s->index, loop->axis);
	bool full = chunk_is_full(s->buffer);
	if (line == INDEXED || stride == INDEXED || stride < 0 || line < 0 || !full)
		return false;
	if (stride == 0)
		return line > 0 || adds_elements(e, s) ||
		       (is_neutral(e, s) && adds_padded(e, s, row, loop->axis));
	if (line == 0 && stride == 1)
		return adds_elements(e, s);
	bool apart = line >= width * stride || (line > 0 && stride >= rows * line);
	return apart && (s->red == RED_NONE || line == width || adds_elements(e, s) ||
			 adds_padded(e, s, row, loop->axis));
}

static bool is_whole(const Stmt *loop)
{
	return !loop->maybe && node_is_value(loop->lo, 0) && node_is_const(loop->hi) &&
	       loop->hi->u.i == axis_extent(loop->axis);
}

/* The loop without a condition that holds in an interval of it, or as it is. */
static Stmt rows_inside(Emit *e, const Stmt *s)
{
	Stmt inside = *s;
	const Stmt *cond = s->body;
	Node **part;
	if (!cond || cond->next || cond->kind != STMT_IF || cond->otherwise)
		return inside;
	int n = node_parts(e->ir, cond->cond, OP_AND, &part);
	for (int k = 0; k < n; k++)
		if (!cond_interval(e->ir, part[k], s->axis, &inside.lo, &inside.hi))
			return *s;
	inside.maybe = true;
	inside.body = cond->body;
	return inside;
}

/* Is the loop one over a short vector loop, that can be done in boxes? */
static bool suits_box(Emit *e, const Stmt *row)
{
	const Stmt *loop = row->body;
	if ((row->how != HOW_SERIAL && row->how != HOW_UNROLL) || !loop || loop->next ||
	    loop->kind != STMT_LOOP || loop->how != HOW_VECTOR || axis_extent(row->axis) < 2 ||
	    !is_whole(loop) || 2 * loop->hi->u.i > e->d->caps.chunk || !suits(e, loop))
		return false;
	stores_count(e, loop->body);
	for (const Stmt *s = loop->body; s; s = s->next)
		if ((!reads_even(e, s->value, row->axis, loop->axis) &&
		     !adds_padded(e, s, row->axis, loop->axis)) ||
		    !stores_even(e, s, row->axis, loop) || stmt_uses(loop->body, s, s->buffer))
			return false;
	return true;
}

/* From row to row of what s stores; 0 without rows. */
static int64_t store_line(const Vector *v, const Stmt *s)
{
	return v->row ? affine_stride(v->e->ir, s->index, v->row) : 0;
}

/* The two factors of what s adds; false: it adds no products. */
static bool addends(Vector *v, const Stmt *s, Operand *in)
{
	Node *x = s->value;
	if (adds_products(v->e, s)) {
		for (int k = 0; k < 2; k++)
			in[k] = chunk_read(v, x->src[k]);
		return true;
	}
	if (!v->row || !adds_elements(v->e, s))
		return false;
	in[0] = chunk_read(v, x);
	in[1] = chunk_uniform(v, node_const(v->e->ir, (Type)x->type, 1));
	return true;
}

/* Calls ricci_v_<name>_box on n boxes as they lie. */
static void box_combine(Vector *v, const Stmt *s, const char *name, const char *dst, int n,
			const Operand *in)
{
	int kind = chunk_kind((Type)s->buffer->type);
	const char *t = chunk_name[kind], *c = chunk_type[kind], *args = "", *types = "";
	for (int k = 0; k < n; k++) {
		args = arena_printf(v->m, "%s, %s, %lldL, %lldL", args, in[k].at,
				    (long long)in[k].line, (long long)in[k].stride);
		types = arena_printf(v->m, "%s, const %s *, int64_t, int64_t", types, c);
	}
	emit_declare(v->e,
		     arena_printf(v->m,
				  "void ricci_v_%s_box_%s(int64_t, int64_t, %s *, int64_t%s);",
				  name, t, c, types));
	emit_line(v->e, "ricci_v_%s_box_%s(%s, %s, %s, %lldL%s);", name, t, v->rows, v->columns,
		  dst, (long long)store_line(v, s), args);
}

static void line_total(Vector *v, const Stmt *s, const char *name, int n, const Operand *in)
{
	int kind = chunk_kind((Type)s->buffer->type);
	const char *args, *types, *t = chunk_name[kind];
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
}

/* May s be done where an interval of its value is alone? */
static bool takes_interval(Vector *v, const Stmt *s)
{
	return v->row ? adds_padded(v->e, s, v->row, v->axis) : emit_uses(v->e, s->value) == 1;
}

static void store_total(Vector *v, const Stmt *s);

/* Of a value that changes nothing around an interval the total is that inside. */
static bool total_inside(Vector *v, const Stmt *s)
{
	Interval *i = arena_alloc(v->m, sizeof *i);
	Stmt inside = *s;
	if (!is_neutral(v->e, s) || !takes_interval(v, s) || !chunk_interval_open(v, s->value, i))
		return false;
	inside.value = s->value->src[1];
	store_total(&i->in, &inside);
	chunk_interval_close(i);
	return true;
}

/* buffer[index] red= all elements of the value. */
static void store_total(Vector *v, const Stmt *s)
{
	static const char *const total[RED_COUNT] = {"", "hsum", "hprod", "hmax", "hmin"};
	int n = 1;
	Operand in[2];
	const char *name = total[s->red];
	if (total_inside(v, s))
		return;
	if (addends(v, s, in)) {
		name = "dot";
		n = 2;
	} else {
		in[0] = chunk_value(v, s->value, NULL);
	}
	if (v->row)
		box_combine(v, s, name, chunk_place(v, s->buffer, s->index), n, in);
	else
		line_total(v, s, name, n, in);
	for (int k = 0; k < n; k++)
		chunk_free(v, &in[k]);
}

/* dst[l] += in[0][l] * in[1][l], of boxes as they lie where one of the three is no line. */
static void store_products(Vector *v, const Stmt *s, const char *dst, const Operand *in)
{
	int kind = chunk_kind((Type)s->buffer->type);
	if (chunk_flat(v, &in[0]) && chunk_flat(v, &in[1]) && store_line(v, s) == v->width)
		chunk_call(v, arena_printf(v->m, "fma_%s", chunk_name[kind]), kind, dst, 2, in);
	else
		box_combine(v, s, "fma", dst, 2, in);
}

static bool store_interval(Vector *v, const Stmt *s, const char *dst);

/* dst[l] red= value[l]. */
static void store_accumulate(Vector *v, const Stmt *s, const char *dst)
{
	int kind = chunk_kind((Type)s->buffer->type);
	Operand in[2] = {{dst, 1, kind, -1, v->width}};
	if (takes_interval(v, s) && store_interval(v, s, dst))
		return;
	if (addends(v, s, in)) {
		store_products(v, s, dst, in);
		chunk_free(v, &in[0]);
	} else {
		in[1] = chunk_value(v, s->value, NULL);
		chunk_call(v, arena_printf(v->m, "%s_%s", combine[s->red], chunk_name[kind]), kind,
			   dst, 2, in);
	}
	chunk_free(v, &in[1]);
}

/* The constant around an interval, unless it changes nothing. */
static void store_around(Vector *v, const Stmt *s, const char *dst, const Interval *i)
{
	Emit *e = v->e;
	Type t = (Type)s->buffer->type;
	int kind = chunk_kind(t);
	const char *none = emit_value(e, node_identity(e->ir, s->red, t, t), false);
	const char *name = arena_printf(v->m, "%s_%s", combine[s->red], chunk_name[kind]);
	Span at = i->part.columns;
	emit_open(e, NULL, true);
	if (v->row) {
		emit_line(e, "for (int64_t r = 0; r < %s && !(*(%s) == %s); r++) {", v->rows,
			  i->other.at, none);
		emit_line(e, "const int in = %s <= r && r < %s;", i->part.rows.from,
			  i->part.rows.to);
		emit_line(e, "const int64_t from = in ? %s : %s, to = in ? %s : %s;", at.from,
			  v->columns, at.to, v->columns);
		at = (Span){"from", "to"};
		dst = arena_printf(v->m, "%s + r * %lldL", dst, (long long)store_line(v, s));
	} else {
		emit_line(e, "if (!(*(%s) == %s)) {", i->other.at, none);
	}
	const char *behind = arena_printf(v->m, "%s + %s", dst, at.to);
	chunk_call_some(v, name, kind, at.from, dst, 2,
			(Operand[]){{dst, 1, kind, -1, 0}, i->other});
	chunk_call_some(v, name, kind, arena_printf(v->m, "%s - %s", v->columns, at.to), behind, 2,
			(Operand[]){{behind, 1, kind, -1, 0}, i->other});
	emit_line(e, "}");
	emit_close(e);
}

/* Where the value is a constant around an interval, as padding is, that is left out if it changes nothing. */
static bool store_interval(Vector *v, const Stmt *s, const char *dst)
{
	Interval *i = arena_alloc(v->m, sizeof *i);
	Stmt inside = *s;
	const char *dst_in = dst;
	if (!chunk_interval_open(v, s->value, i))
		return false;
	inside.value = s->value->src[1];
	if (v->row)
		dst_in = arena_printf(v->m, "%s + %s * %lldL", dst, i->part.rows.from,
				      (long long)store_line(v, s));
	store_accumulate(&i->in, &inside,
			 arena_printf(v->m, "%s + %s", dst_in, i->part.columns.from));
	chunk_interval_close(i);
	if (!is_neutral(v->e, s))
		store_around(v, s, dst, i);
	return true;
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
	int64_t line = store_line(v, s);
	if (stride == 1 && line == v->width) {
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
	if (v->row) {
		emit_declare(v->e, arena_printf(v->m,
						"void ricci_v_store_box_%s(int64_t, int64_t, %s *, "
						"int64_t, int64_t, const %s *);",
						name, c, c));
		emit_line(v->e, "ricci_v_store_box_%s(%s, %lldL, %s, %lldL, %lldL, %s);", name,
			  v->rows, (long long)v->width, dst, (long long)line, (long long)stride,
			  x.at);
		return;
	}
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
	stores_count(e, first);
	for (const Stmt *s = first; s; s = s->next, k++) {
		stride[k] = affine_stride(e->ir, s->index, v->axis);
		if (stride[k] == 0)
			continue;
		Node *place = s->index;
		if (stride[k] == INDEXED)
			chunk_entry(e->ir, s->index, v->axis, &place);
		dst[k] = chunk_place(v, s->buffer, place);
		bool lines = store_line(v, s) == v->width;
		bool direct = n == 1 && stride[k] == 1 && lines && s->red == RED_NONE &&
			      chunk_is_full(s->buffer);
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

/* A loop over the chunks of an axis, of at most `most` elements: opens it, and returns where a chunk begins; *count:
 * how many elements it has. Of one chunk there is no loop. */
static Node *chunks_open(Emit *e, const Stmt *s, int64_t most, const char **count)
{
	if (is_whole(s) && s->hi->u.i <= most) {
		emit_open(e, NULL, false);
		emit_line(e, "{");
		*count = arena_printf(&e->ir->arena, "%lldL", (long long)s->hi->u.i);
		return s->lo;
	}
	const char *lo = emit_value(e, s->lo, false), *hi = emit_value(e, s->hi, false);
	Node *start = node_axis(e->ir, FIRST_START + e->nstart++, axis_extent(s->axis));
	int i = (int)start->u.i, id = e->nname++;
	emit_open(e, start, s->maybe);
	emit_line(e, "for (int64_t i%d = %s; i%d < %s; i%d += %lld) {", i, lo, i, hi, i,
		  (long long)most);
	emit_line(e, "const int64_t n%d = %s - i%d < %lld ? %s - i%d : %lld;", id, hi, i,
		  (long long)most, hi, i, (long long)most);
	*count = arena_printf(&e->ir->arena, "n%d", id);
	return start;
}

static void chunks_close(Emit *e)
{
	emit_line(e, "}");
	emit_close(e);
}

static Vector *vector_new(Emit *e, bool (*busy)[MAX_TEMPS])
{
	Vector *v = arena_alloc(&e->ir->arena, sizeof *v);
	memset(busy, 0, CHUNK_KINDS * sizeof *busy);
	*v = (Vector){.e = e, .m = &e->ir->arena, .value = chunk_value, .busy = busy};
	return v;
}

bool emit_vector(Emit *e, const Stmt *s)
{
	bool busy[CHUNK_KINDS][MAX_TEMPS];
	if (!suits(e, s))
		return false;
	Vector *v = vector_new(e, busy);
	v->axis = s->axis;
	v->loop = s;
	v->start = chunks_open(e, s, e->d->caps.chunk, &v->count);
	v->columns = v->count;
	store_all(v, s->body);
	chunks_close(e);
	return true;
}

bool emit_box(Emit *e, const Stmt *loop)
{
	bool busy[CHUNK_KINDS][MAX_TEMPS];
	Stmt inside = rows_inside(e, loop), *s = &inside;
	if (!suits_box(e, s))
		return false;
	Vector *v = vector_new(e, busy);
	v->row = s->axis;
	v->axis = s->body->axis;
	v->start = s->body->lo;
	v->width = s->body->hi->u.i;
	v->columns = arena_printf(v->m, "%lldL", (long long)v->width);
	v->row_start = chunks_open(e, s, e->d->caps.chunk / v->width, &v->rows);
	v->count = arena_printf(v->m, "%s * %lldL", v->rows, (long long)v->width);
	store_all(v, s->body->body);
	chunks_close(e);
	return true;
}

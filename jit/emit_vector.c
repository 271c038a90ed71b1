/* emit_vector.c - innermost vector loops for compilers that make no vector code.
 *
 * Input: a vector LOOP whose body is stores of floats. Output: calls of the functions of
 * jit/vectorlib.h over chunks of at most Dialect.chunk elements, with temporaries that stay in L1.
 * An expression becomes one call for each operation; reads are operands with a base and a stride;
 * what has no function over chunks is computed by a plain loop into a temporary. Invariant: a read
 * is done only where its condition holds. */
#include "jit/emit.h"

#include <string.h>

enum { MAX_MEMO = 256, MAX_TEMPS = 48, FIRST_START = 1 << 20 };

typedef struct Operand {
	const char *at; /* address of the first element */
	int64_t stride;
	int kind, temp; /* temp: its number, -1 when it is none */
} Operand;

typedef struct Known {
	Node *n;
	Operand v;
} Known;

typedef struct Vector {
	Emit *e;
	Arena *m;
	Node *axis, *start; /* start stands for the axis's value at the chunk's first element */
	const char *count;  /* elements of the chunk: a name */
	int nknown;
	Known known[MAX_MEMO];
	struct Vector *outer;
	bool (*busy)[MAX_TEMPS];
} Vector;

static const char *const kind_name[CHUNK_KINDS] = {"f32", "f64", "u8", "u16"};
static const char *const kind_type[CHUNK_KINDS] = {"float", "double", "unsigned char",
						   "unsigned short"};
static const char *const kind_temp[CHUNK_KINDS] = {"vf", "vd", "vb", "vh"};

static int kind_of(Type t)
{
	return t == RICCI_F64 ? CHUNK_F64 : t == RICCI_BOOL ? CHUNK_U8 : CHUNK_F32;
}

/* ---- calls ---- */

static void declare(Emit *e, const char *text)
{
	for (int k = 0; k < e->ncall; k++)
		if (strcmp(e->call[k], text) == 0)
			return;
	if (e->ncall < EMIT_MAX_CALLS)
		e->call[e->ncall++] = text;
}

/* The arguments of operands and their declaration, both starting with a comma. */
static void operands(Vector *v, int n, const Operand *o, const char **args, const char **types)
{
	*args = *types = "";
	for (int k = 0; k < n; k++) {
		*args = arena_printf(v->m, "%s, %s, %lldL", *args, o[k].at, (long long)o[k].stride);
		*types =
			arena_printf(v->m, "%s, const %s *, int64_t", *types, kind_type[o[k].kind]);
	}
}

static void call(Vector *v, const char *name, int kind, const char *dst, int n, const Operand *o)
{
	const char *args, *types;
	operands(v, n, o, &args, &types);
	declare(v->e, arena_printf(v->m, "void ricci_v_%s(int64_t, %s *%s);", name, kind_type[kind],
				   types));
	emit_line(v->e, "ricci_v_%s(%s, %s%s);", name, v->count, dst, args);
}

/* ---- temporaries ---- */

static Operand temp_new(Vector *v, int kind)
{
	for (int k = 0; k < MAX_TEMPS; k++)
		if (!v->busy[kind][k]) {
			v->busy[kind][k] = true;
			if (k >= v->e->ntemp[kind])
				v->e->ntemp[kind] = k + 1;
			return (Operand){arena_printf(v->m, "%s%d", kind_temp[kind], k), 1, kind,
					 k};
		}
	v->e->too_large = true;
	return (Operand){"0", 1, kind, -1};
}

static void temp_free(Vector *v, const Operand *o)
{
	if (o->temp >= 0)
		v->busy[o->kind][o->temp] = false;
}

/* Where the result goes: the wanted place, or a temporary. */
static Operand target(Vector *v, int kind, const char *want)
{
	return want ? (Operand){want, 1, kind, -1} : temp_new(v, kind);
}

/* ---- expressions ---- */

static Operand vector(Vector *v, Node *n, const char *want);

static Node *at_start(Vector *v, Node *n)
{
	return node_replace(v->e->ir, n, 1, &v->axis, &v->start);
}

static Operand uniform(Vector *v, Node *n)
{
	int kind = kind_of((Type)n->type);
	const char *text = emit_value(v->e, n, false);
	const char *name = arena_printf(v->m, "u%d", v->e->nname++);
	emit_line(v->e, "const %s %s = %s;", kind_type[kind], name, text);
	return (Operand){arena_printf(v->m, "&%s", name), 0, kind, -1};
}

/* Anything: a plain loop. */
static Operand plain(Vector *v, Node *n, const char *want)
{
	Emit *e = v->e;
	Operand out = target(v, kind_of((Type)n->type), want);
	int axis = (int)v->axis->u.i, start = (int)v->start->u.i;
	emit_open(e, v->axis, false);
	emit_line(e, "for (int64_t i%d = i%d; i%d < i%d + %s; i%d++) {", axis, start, axis, start,
		  v->count, axis);
	const char *text = emit_value(e, n, false);
	emit_line(e, "(%s)[i%d - i%d] = %s;", out.at, axis, start, text);
	emit_line(e, "}");
	emit_close(e);
	return out;
}

/* The address of a read that steps evenly with the axis; false when it does not. */
static bool address(Vector *v, Node *read, const char **at, int64_t *stride)
{
	Affine a = affine_of(v->e->ir, read->src[1]);
	for (int j = 0; j < a.n; j++)
		if (a.atom[j] != v->axis && node_has(a.atom[j], v->axis))
			return false;
	*stride = affine_coefficient(&a, v->axis);
	*at = arena_printf(v->m, "%s + %s", read->src[0]->u.s,
			   emit_value(v->e, at_start(v, read->src[1]), false));
	return true;
}

/* An index that is a table's entry for each element, plus what does not depend on the axis. */
static Node *table_entry(Ir *ir, Node *index, Node *axis, Node **rest)
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
		Affine at = affine_of(ir, entry->src[1]);
		for (int i = 0; i < at.n; i++)
			if (at.atom[i] == axis ? at.k[i] != 1 : node_has(at.atom[i], axis))
				return NULL;
	}
	return entry;
}

static const char *place_of(Vector *v, Node *buffer, Node *index)
{
	return arena_printf(v->m, "%s + %s", buffer->u.s,
			    emit_value(v->e, at_start(v, index), false));
}

static Operand gather(Vector *v, Node *n, const char *want)
{
	Node *rest, *entry = table_entry(v->e->ir, n->src[1], v->axis, &rest);
	int kind = kind_of((Type)n->type);
	if (!entry)
		return plain(v, n, want);
	Operand out = target(v, kind, want);
	const char *t = kind_name[kind], *c = kind_type[kind];
	declare(v->e,
		arena_printf(v->m,
			     "void ricci_gather_%s(int64_t, %s *, const %s *, const int64_t *);", t,
			     c, c));
	emit_line(v->e, "ricci_gather_%s(%s, %s, %s, %s);", t, v->count, out.at,
		  place_of(v, n->src[0], rest), place_of(v, entry->src[0], entry->src[1]));
	return out;
}

static Operand read_of(Vector *v, Node *n, const char *want)
{
	Operand in = {NULL, 1, kind_of((Type)n->type), -1};
	if (n->type != RICCI_F32 && n->type != RICCI_F64 && n->type != RICCI_BOOL &&
	    n->type != RICCI_BF16 && n->type != RICCI_F16)
		return plain(v, n, want);
	if (!address(v, n, &in.at, &in.stride))
		return n->type == RICCI_F32 || n->type == RICCI_F64 ? gather(v, n, want)
								    : plain(v, n, want);
	if (n->type == RICCI_BF16 || n->type == RICCI_F16) {
		in.kind = CHUNK_U16;
		Operand out = target(v, CHUNK_F32, want);
		call(v, n->type == RICCI_BF16 ? "f32_of_bf16" : "f32_of_f16", out.kind, out.at, 1,
		     &in);
		return out;
	}
	return in;
}

static Operand convert(Vector *v, const char *name, int kind, Operand in, const char *want)
{
	temp_free(v, &in);
	Operand out = target(v, kind, want);
	call(v, name, kind, out.at, 1, &in);
	return out;
}

static Operand cast_of(Vector *v, Node *n, const char *want)
{
	Node *x = n->src[0];
	Type to = (Type)n->type, from = (Type)x->type;
	Operand in = {NULL, 1, CHUNK_U8, -1};
	if ((to == RICCI_BF16 || to == RICCI_F16) && type_is_float(from) && from != RICCI_F64) {
		Operand half = convert(v, to == RICCI_BF16 ? "bf16_of_f32" : "f16_of_f32",
				       CHUNK_U16, vector(v, x, NULL), NULL);
		return convert(v, to == RICCI_BF16 ? "f32_of_bf16" : "f32_of_f16", CHUNK_F32, half,
			       want);
	}
	if (type_is_float(from) && type_is_float(to)) {
		if ((from == RICCI_F64) == (to == RICCI_F64))
			return vector(v, x, want);
		return to == RICCI_F64
			       ? convert(v, "f64_of_f32", CHUNK_F64, vector(v, x, NULL), want)
			       : convert(v, "f32_of_f64", CHUNK_F32, vector(v, x, NULL), want);
	}
	if (to != RICCI_F32)
		return plain(v, n, want);
	if (from == RICCI_BOOL)
		return convert(v, "f32_of_u8", CHUNK_F32, vector(v, x, NULL), want);
	if (x->op != OP_READ || !address(v, x, &in.at, &in.stride))
		return plain(v, n, want);
	Operand out = target(v, CHUNK_F32, want);
	const char *name = arena_printf(v->m, "f32_of_%s", type_name(from));
	declare(v->e,
		arena_printf(v->m, "void ricci_v_%s(int64_t, float *, const void *, int64_t);",
			     name));
	emit_line(v->e, "ricci_v_%s(%s, %s, %s, %lldL);", name, v->count, out.at, in.at,
		  (long long)in.stride);
	return out;
}

static Operand operation(Vector *v, Node *n, int kind, const char *name, const char *want)
{
	Operand in[2];
	for (int k = 0; k < n->nsrc; k++)
		in[k] = vector(v, n->src[k], NULL);
	for (int k = 0; k < n->nsrc; k++)
		temp_free(v, &in[k]);
	Operand out = target(v, kind, want);
	call(v, name, kind, out.at, n->nsrc, in);
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
		return !f64 && op_info[n->op].form == FORM_CALL && n->op != OP_RANDOM &&
				       n->op != OP_NORMAL
			       ? op_info[n->op].text
			       : NULL;
	}
}

/* ---- selection ---- */

static void in_scope(Vector *v, Node *n, const char *dst, int kind)
{
	Vector *in = arena_alloc(v->m, sizeof *in);
	*in = (Vector){v->e, v->m, v->axis, v->start, v->count, 0, {{0}}, v, v->busy};
	Operand x = vector(in, n, dst);
	if (strcmp(x.at, dst) != 0)
		call(in, arena_printf(v->m, "copy_%s", kind_name[kind]), kind, dst, 1, &x);
	for (int k = 0; k < in->nknown; k++)
		temp_free(v, &in->known[k].v);
}

static Operand select_uniform(Vector *v, Node *n, const char *want)
{
	int kind = kind_of((Type)n->type);
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

/* cond as conditions e >= 0 that step evenly with the axis, or do not depend on it. */
static bool intervals(Vector *v, Node *cond, int room, int *n, Node **e, int64_t *k)
{
	Ir *ir = v->e->ir;
	if (cond->op == OP_AND)
		return intervals(v, cond->src[0], room, n, e, k) &&
		       intervals(v, cond->src[1], room, n, e, k);
	if ((cond->op != OP_LT && cond->op != OP_LE) || cond->src[0]->type != RICCI_I64 ||
	    *n == room || emit_reads(v->e, cond) >= READS_GUARDED)
		return false;
	Node *d = node_sub(ir, cond->src[1], cond->src[0]);
	if (cond->op == OP_LT)
		d = node_sub(ir, d, node_int(ir, 1));
	Affine a = affine_of(ir, d);
	for (int j = 0; j < a.n; j++)
		if (a.atom[j] != v->axis && node_has(a.atom[j], v->axis))
			return false;
	k[*n] = affine_coefficient(&a, v->axis);
	e[(*n)++] = at_start(v, d);
	return true;
}

/* SELECT(interval of the axis, x, constant): x over the interval, the constant around it. */
static bool select_interval(Vector *v, Node *n, const char *want, Operand *out)
{
	Emit *em = v->e;
	Node *e[16];
	int64_t k[16];
	int count = 0, kind = kind_of((Type)n->type), id = em->nname++;
	if (node_has(n->src[2], v->axis) || !intervals(v, n->src[0], COUNT(e), &count, e, k))
		return false;
	*out = target(v, kind, want);
	Operand other = uniform(v, n->src[2]);
	emit_line(em, "int64_t lo%d = 0, hi%d = %s;", id, id, v->count);
	for (int j = 0; j < count; j++) {
		const char *x = emit_value(em, e[j], false);
		int64_t s = k[j] < 0 ? -k[j] : k[j];
		if (k[j] == 0)
			emit_line(em, "if (%s < 0) hi%d = 0;", x, id);
		else if (k[j] > 0) /* l >= ceil(-x / s) */
			emit_line(em,
				  "if (%s < 0 && lo%d < (%lldL - %s) / %lldL) lo%d = (%lldL - %s) "
				  "/ %lldL;",
				  x, id, (long long)s - 1, x, (long long)s, id, (long long)s - 1, x,
				  (long long)s);
		else /* l < floor(x / s) + 1 */
			emit_line(em,
				  "if (%s < 0) hi%d = 0; else if (hi%d > %s / %lldL + 1) hi%d = %s "
				  "/ %lldL + 1;",
				  x, id, id, x, (long long)s, id, x, (long long)s);
	}
	emit_line(em, "if (hi%d < lo%d) lo%d = hi%d = 0;", id, id, id, id);
	Node *start = node_axis(em->ir, FIRST_START + em->nstart++, axis_extent(v->axis));
	Vector in = {em, v->m, v->axis, start, arena_printf(v->m, "n%d", id), 0, {{0}}, v, v->busy};
	const char *name = arena_printf(v->m, "copy_%s", kind_name[kind]);
	emit_open(em, start, true);
	emit_line(em, "{");
	emit_line(em, "const int64_t i%d = i%d + lo%d, n%d = hi%d - lo%d;", (int)start->u.i,
		  (int)v->start->u.i, id, id, id, id);
	Operand x = vector(&in, n->src[1], NULL);
	call(&in, name, kind, arena_printf(v->m, "%s + lo%d", out->at, id), 1, &x);
	temp_free(v, &x);
	for (int j = 0; j < in.nknown; j++)
		temp_free(v, &in.known[j].v);
	emit_line(em, "}");
	emit_close(em);
	emit_line(em, "ricci_v_%s(lo%d, %s, %s, 0L);", name, id, out->at, other.at);
	emit_line(em, "ricci_v_%s(%s - hi%d, %s + hi%d, %s, 0L);", name, v->count, id, out->at, id,
		  other.at);
	return true;
}

static Operand select_of(Vector *v, Node *n, const char *want)
{
	Operand out, in[3];
	int kind = kind_of((Type)n->type);
	if (!node_has(n->src[0], v->axis))
		return select_uniform(v, n, want);
	if (select_interval(v, n, want, &out))
		return out;
	for (int k = 1; k < 3; k++)
		if (emit_reads(v->e, n->src[k]) == READS_GUARDED || kind == CHUNK_U8)
			return plain(v, n, want);
	for (int k = 0; k < 3; k++)
		in[k] = vector(v, n->src[k], NULL);
	for (int k = 0; k < 3; k++)
		temp_free(v, &in[k]);
	out = target(v, kind, want);
	call(v, arena_printf(v->m, "select_%s", kind_name[kind]), kind, out.at, 3, in);
	return out;
}

static Operand compute(Vector *v, Node *n, const char *want)
{
	int kind = kind_of((Type)n->type);
	const char *name = function_of(n);
	if (n->op == OP_READ)
		return read_of(v, n, want);
	if (n->op == OP_CAST)
		return cast_of(v, n, want);
	if (n->op == OP_SELECT && (type_is_float(n->type) || n->type == RICCI_BOOL))
		return select_of(v, n, want);
	if (n->op == OP_AND || n->op == OP_OR)
		return emit_reads(v->e, n->src[1]) == READS_GUARDED
			       ? plain(v, n, want)
			       : operation(v, n, kind, n->op == OP_AND ? "and_u8" : "or_u8", want);
	if (n->op == OP_NOT)
		return operation(v, n, kind, "not_u8", want);
	if (!name || !n->nsrc || !type_is_float(n->src[0]->type))
		return plain(v, n, want);
	return operation(
		v, n, kind,
		arena_printf(v->m, "%s_%s", name, kind_name[kind_of((Type)n->src[0]->type)]), want);
}

/* The elements of n over the chunk. A node met twice is computed once. */
static Operand vector(Vector *v, Node *n, const char *want)
{
	for (int k = 0; k < v->nknown; k++)
		if (v->known[k].n == n)
			return v->known[k].v;
	if (!node_has(n, v->axis)) {
		Operand u = uniform(v, n);
		if (v->nknown < MAX_MEMO)
			v->known[v->nknown++] = (Known){n, u};
		return u;
	}
	bool again = emit_uses(v->e, n) > 1;
	Operand out = compute(v, n, again ? NULL : want);
	if (again && v->nknown < MAX_MEMO) {
		/* kept: nobody but the end of the chunk frees it */
		Operand kept = out;
		kept.temp = -1;
		v->known[v->nknown++] = (Known){n, kept};
		return kept;
	}
	return out;
}

/* ---- stores ---- */

enum { INDEXED = -(1 << 30) }; /* not even steps */

static int64_t step_of(Ir *ir, Node *index, Node *axis)
{
	Affine a = affine_of(ir, index);
	for (int j = 0; j < a.n; j++)
		if (a.atom[j] != axis && node_has(a.atom[j], axis))
			return INDEXED;
	return affine_coefficient(&a, axis);
}

static bool suits(Emit *e, const Stmt *loop)
{
	for (const Stmt *s = loop->body; s; s = s->next) {
		if (s->kind != STMT_STORE || !type_is_float(s->value->type) ||
		    !type_is_float(s->buffer->type))
			return false;
		Node *rest;
		int64_t k = step_of(e->ir, s->index, loop->axis);
		bool full = s->buffer->type == RICCI_F32 || s->buffer->type == RICCI_F64;
		if (k == INDEXED && (!full || s->red != RED_NONE ||
				     !table_entry(e->ir, s->index, loop->axis, &rest)))
			return false;
		if (full && kind_of((Type)s->value->type) != kind_of((Type)s->buffer->type))
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
	int kind = kind_of((Type)s->buffer->type), n = 1;
	Operand in[2];
	const char *name = total[s->red], *args, *types, *t = kind_name[kind];
	if (s->red == RED_ADD && s->value->op == OP_MUL && emit_uses(v->e, s->value) == 1) {
		name = "dot";
		n = 2;
		for (int k = 0; k < 2; k++)
			in[k] = vector(v, s->value->src[k], NULL);
	} else {
		in[0] = vector(v, s->value, NULL);
	}
	operands(v, n, in, &args, &types);
	declare(v->e, arena_printf(v->m, "%s ricci_v_%s_%s(int64_t%s);", kind_type[kind], name, t,
				   types));
	const char *x = arena_printf(v->m, "ricci_v_%s_%s(%s%s)", name, t, v->count, args);
	const char *place = emit_place(v->e, s->buffer, s->index, false);
	if (s->red == RED_MAX || s->red == RED_MIN)
		emit_line(v->e, "%s = rk_%s_%s(%s, %s);", place, s->red == RED_MAX ? "max" : "min",
			  t, place, x);
	else
		emit_line(v->e, "%s %s %s;", place, s->red == RED_MUL ? "*=" : "+=", x);
	for (int k = 0; k < n; k++)
		temp_free(v, &in[k]);
}

/* dst[l] red= value[l]. */
static void store_accumulate(Vector *v, const Stmt *s, const char *dst)
{
	static const char *const combine[RED_COUNT] = {"", "add", "mul", "max", "min"};
	int kind = kind_of((Type)s->buffer->type);
	Operand in[2] = {{dst, 1, kind, -1}};
	if (s->red == RED_ADD && s->value->op == OP_MUL && emit_uses(v->e, s->value) == 1) {
		for (int k = 0; k < 2; k++)
			in[k] = vector(v, s->value->src[k], NULL);
		call(v, arena_printf(v->m, "fma_%s", kind_name[kind]), kind, dst, 2, in);
		temp_free(v, &in[0]);
	} else {
		in[1] = vector(v, s->value, NULL);
		call(v, arena_printf(v->m, "%s_%s", combine[s->red], kind_name[kind]), kind, dst, 2,
		     in);
	}
	temp_free(v, &in[1]);
}

static void store_from(Vector *v, const Stmt *s, const char *dst, int64_t stride, Operand x)
{
	int kind = kind_of((Type)s->buffer->type);
	Type t = (Type)s->buffer->type;
	if (t == RICCI_BF16 || t == RICCI_F16) {
		call(v, t == RICCI_BF16 ? "bf16_of_f32" : "f16_of_f32", CHUNK_U16, dst, 1, &x);
		return;
	}
	if (stride == 1) {
		if (strcmp(x.at, dst) != 0)
			call(v, arena_printf(v->m, "copy_%s", kind_name[kind]), kind, dst, 1, &x);
		return;
	}
	if (x.stride != 1) {
		Operand out = temp_new(v, kind);
		call(v, arena_printf(v->m, "copy_%s", kind_name[kind]), kind, out.at, 1, &x);
		temp_free(v, &out);
		x = out;
	}
	const char *name = kind_name[kind], *c = kind_type[kind];
	if (stride == INDEXED) {
		Node *rest, *entry = table_entry(v->e->ir, s->index, v->axis, &rest);
		declare(v->e, arena_printf(v->m,
					   "void ricci_scatter_%s(int64_t, %s *, const int64_t *, "
					   "const %s *);",
					   name, c, c));
		emit_line(v->e, "ricci_scatter_%s(%s, %s, %s, %s);", name, v->count, dst,
			  place_of(v, entry->src[0], entry->src[1]), x.at);
		return;
	}
	declare(v->e,
		arena_printf(v->m, "void ricci_v_store_%s(int64_t, %s *, int64_t, const %s *);",
			     kind_name[kind], kind_type[kind], kind_type[kind]));
	emit_line(v->e, "ricci_v_store_%s(%s, %s, %lldL, %s);", kind_name[kind], v->count, dst,
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
		stride[k] = step_of(e->ir, s->index, v->axis);
		if (stride[k] == 0)
			continue;
		Node *place = s->index;
		if (stride[k] == INDEXED)
			table_entry(e->ir, s->index, v->axis, &place);
		dst[k] = place_of(v, s->buffer, place);
		bool direct = n == 1 && stride[k] == 1 && s->red == RED_NONE &&
			      (s->buffer->type == RICCI_F32 || s->buffer->type == RICCI_F64);
		if (s->red == RED_NONE)
			value[k] = vector(v, s->value, direct ? dst[k] : NULL);
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
		  number, e->d->chunk);
	emit_line(e, "const int64_t n%d = %s - i%d < %d ? %s - i%d : %d;", id, hi, number,
		  e->d->chunk, hi, number, e->d->chunk);
	store_all(v, s->body);
	emit_line(e, "}");
	emit_close(e);
	return true;
}

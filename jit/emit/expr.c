/* expr.c - index expressions as C expressions.
 *
 * Input: a node and the open scopes. Output: text; parts that are loop invariant or used several
 * times are put into local variables of the outermost scope where their axes are known, because
 * tcc moves nothing out of loops by itself. Invariant: a read of memory is never moved out of a
 * condition, unless it is put inside its buffer, and a read of a buffer that changes is never kept.
 */
#include "jit/emit/internal.h"

#include <math.h>
#include <string.h>

static NodeNote *note_of(Emit *e, const Node *n)
{
	if (n->id >= e->room) {
		uint32_t room = n->id + n->id / 2 + 256;
		NodeNote *fresh = arena_alloc(&e->ir->arena, room * sizeof *fresh);
		if (e->note)
			memcpy(fresh, e->note, e->room * sizeof *fresh);
		e->note = fresh;
		e->room = room;
	}
	return &e->note[n->id];
}

/* ---- what is known of a node ---- */

int emit_reads(Emit *e, Node *n)
{
	if (node_is_tensor(n))
		return READS_KNOWN;
	NodeNote *k = note_of(e, n);
	if (k->reads)
		return k->reads;
	int r = READS_KNOWN;
	if (n->op == OP_READ) {
		const Buffer *b = tree_find(e->tree, n->src[0]);
		bool inside = read_inside(n);
		bool fixed =
			b && (b->space == SPACE_TABLE || (b->space == SPACE_PARAM && !b->output));
		r |= (fixed ? 0 : READS_CHANGING) | (inside ? 0 : READS_GUARDED);
	}
	for (int j = 0; j < n->nsrc; j++)
		r |= emit_reads(e, n->src[j]);
	note_of(e, n)->reads = (uint8_t)r;
	return r;
}

static int guard_floor(const Emit *e)
{
	int d = e->depth;
	while (d > 0 && !e->scope[d].guarded)
		d--;
	return d;
}

void emit_statement(Emit *e)
{
	e->stamp++;
	e->scopes++;
}

static bool is_written(const Stmt *s, const Node *buffer)
{
	for (; s; s = s->next)
		if (s->kind == STMT_CALL || s->kind == STMT_SYNC ||
		    (s->kind == STMT_STORE && s->buffer == buffer) || is_written(s->body, buffer) ||
		    is_written(s->otherwise, buffer))
			return true;
	return false;
}

/* What changes is still the same in loops that do not write it. */
static int changing_level(const Emit *e, const Node *read)
{
	int d = e->depth;
	if (!read_inside(read))
		return d;
	while (d > 0 && e->scope[d].body && !is_written(e->scope[d].body, read->src[0]))
		d--;
	return d;
}

/* The outermost scope where n can be computed. */
static int level_of(Emit *e, Node *n)
{
	if (node_is_tensor(n) || n->op == OP_CONST)
		return 0;
	NodeNote *k = note_of(e, n);
	if (k->scopes == e->scopes)
		return k->level;
	int level = 0;
	if (n->op == OP_AXIS) {
		for (int d = e->depth; d > 0 && !level; d--)
			if (e->scope[d].axis == n)
				level = d;
	} else if (n->op == OP_READ) {
		int r = emit_reads(e, n);
		level = r & READS_CHANGING  ? changing_level(e, n)
			: r & READS_GUARDED ? guard_floor(e)
					    : 0;
	} else if (node_draws(n)) {
		level = 1;
	}
	for (int j = 0; j < n->nsrc; j++) {
		int s = level_of(e, n->src[j]);
		level = s > level ? s : level;
	}
	k = note_of(e, n);
	k->scopes = e->scopes;
	k->level = (int16_t)level;
	return level;
}

void emit_count(Emit *e, Node *n)
{
	if (node_is_tensor(n) || n->op == OP_CONST || n->op == OP_AXIS)
		return;
	NodeNote *k = note_of(e, n);
	if (k->stamp != e->stamp) {
		k->stamp = e->stamp;
		k->uses = 0;
	}
	if (k->uses++ == 0)
		for (int j = 0; j < n->nsrc; j++)
			emit_count(e, n->src[j]);
}

int emit_uses(Emit *e, const Node *n)
{
	NodeNote *k = note_of(e, n);
	return k->stamp == e->stamp ? k->uses : 0;
}

/* ---- integers of 32 bits ---- */

/* Is the integer n a C int? On a grid what fits is one: devices are slow with 64 bits. The text of one that
 * isn't has 64 bits, whatever its operands have. */
static bool is_int(Emit *e, Node *n);

static bool fits_int(int64_t lo, int64_t hi)
{
	return lo > INT32_MIN && hi <= INT32_MAX;
}

/* Is no part of the sum more than that, in whichever order it is added up? */
static bool never_exceeds(const Affine *a, int64_t far)
{
	__int128 most = a->c < 0 ? -(__int128)a->c : a->c;
	for (int i = 0; i < a->n && most < far; i++) {
		const Node *x = a->atom[i];
		__int128 k = a->k[i] < 0 ? -(__int128)a->k[i] : a->k[i];
		most += k * (-(__int128)x->lo > x->hi ? -(__int128)x->lo : x->hi);
	}
	return most < far;
}

static bool narrow_sum(Emit *e, Node *n)
{
	Affine a = affine_of(e->ir, n);
	if ((a.n == 1 && a.atom[0] == n) || !never_exceeds(&a, INT32_MAX))
		return false;
	for (int k = 0; k < a.n; k++)
		if (!fits_int(a.k[k], a.k[k]) || !is_int(e, a.atom[k]))
			return false;
	return true;
}

/* (What is added to a dividend so that it isn't negative has to fit, too.) */
static bool narrow_quotient(Emit *e, const Node *n)
{
	int64_t c = n->src[1]->u.i, far = INT32_MAX / 4, lo = n->src[0]->lo;
	return is_int(e, n->src[0]) && c < far && (lo >= 0 || (lo > -far && n->src[0]->hi < far));
}

static bool is_narrow(Emit *e, Node *n)
{
	if (n->type != RICCI_I64 || !e->d->caps.grid || !fits_int(n->lo, n->hi))
		return false;
	switch ((Op)n->op) {
	case OP_CONST:
	case OP_AXIS:
		return true;
	case OP_FLOORDIV:
	case OP_FLOORMOD:
		return narrow_quotient(e, n);
	case OP_ADD:
		return narrow_sum(e, n);
	case OP_MUL:
		return node_is_const(n->src[0]) && narrow_sum(e, n);
	case OP_MIN:
	case OP_MAX:
		return is_int(e, n->src[0]) && is_int(e, n->src[1]);
	case OP_SELECT:
		return is_int(e, n->src[1]) && is_int(e, n->src[2]);
	default:
		return false;
	}
}

static bool is_int(Emit *e, Node *n)
{
	if (!note_of(e, n)->narrow) {
		bool narrow = is_narrow(e, n);
		note_of(e, n)->narrow = narrow ? 1 : 2;
	}
	return note_of(e, n)->narrow == 1;
}

const char *emit_ctype(Emit *e, Node *n)
{
	return is_int(e, n) ? "int" : dialect_compute[n->type];
}

/* ---- text of one operation ---- */

const char *emit_suffix(Type t)
{
	return t == RICCI_F64 ? "f64" : type_is_float(t) ? "f32" : t == RICCI_I64 ? "i64" : "i32";
}

static const char *float_text(Emit *e, double v, bool f32)
{
	char s[48];
	snprintf(s, sizeof s, f32 ? "%.9g" : "%.17g", f32 ? (double)(float)v : v);
	if (!strpbrk(s, ".e"))
		strcat(s, ".0");
	bool negative = s[0] == '-';
	return arena_printf(&e->ir->arena, "%s%s%s%s", negative ? "(" : "", s, f32 ? "f" : "",
			    negative ? ")" : "");
}

/* Of 64 bits, or narrow. */
static const char *long_text(Emit *e, int64_t v, bool narrow)
{
	return arena_printf(&e->ir->arena, v < 0 ? "(%lld%s)" : "%lld%s", (long long)v,
			    narrow ? "" : "L");
}

static const char *const_text(Emit *e, const Node *n)
{
	Arena *a = &e->ir->arena;
	if (type_is_float(n->type)) {
		bool f32 = n->type != RICCI_F64;
		if (isfinite(n->u.f) && (!f32 || isfinite((float)n->u.f)))
			return float_text(e, n->u.f, f32);
		const char *which = isnan(n->u.f) ? "nan" : n->u.f > 0 ? "inf" : "minus_inf";
		return arena_printf(a, "rk_%s_%s()", which, emit_suffix(n->type));
	}
	if (n->type != RICCI_I64)
		return n->u.i == INT32_MIN
			       ? "(-2147483647 - 1)"
			       : arena_printf(a, n->u.i < 0 ? "(%lld)" : "%lld", (long long)n->u.i);
	if (n->u.i == INT64_MIN)
		return "(-9223372036854775807L - 1)";
	return long_text(e, n->u.i, e->d->caps.grid && fits_int(n->u.i, n->u.i));
}

/* x, which is `text`, as an operand of n: of 64 bits where n is and the operator wouldn't make it so. */
static const char *wide_text(Emit *e, Node *n, Node *x, const char *text)
{
	return e->d->caps.grid && !is_int(e, n) && is_int(e, x)
		       ? arena_printf(&e->ir->arena, "(int64_t)%s", text)
		       : text;
}

/* a / c or a % c, rounding down; plain operators where a is known not to be negative. */
static const char *divide_text(Emit *e, Node *n, const char *a)
{
	Arena *m = &e->ir->arena;
	int64_t c = n->src[1]->u.i, lo = n->src[0]->lo;
	const char *l = is_int(e, n) ? "" : "L";
	bool quotient = n->op == OP_FLOORDIV, power = (c & (c - 1)) == 0;
	if (power && quotient)
		return arena_printf(m, "(%s >> %d)", wide_text(e, n, n->src[0], a),
				    __builtin_ctzll((uint64_t)c));
	if (power)
		return arena_printf(m, "(%s & %lld%s)", a, (long long)c - 1, l);
	const char *sign = quotient ? "/" : "%";
	if (lo >= 0)
		return arena_printf(m, "(%s %s %lld%s)", a, sign, (long long)c, l);
	int64_t up, shift; /* up * c + lo >= 0 */
	if (__builtin_sub_overflow(c, int_floor_div(lo, c), &up) ||
	    __builtin_mul_overflow(up, c, &shift) ||
	    __builtin_add_overflow(n->src[0]->hi, shift, &shift))
		return arena_printf(m, "rk_%s(%s, %lldL)", quotient ? "div" : "mod", a,
				    (long long)c);
	return quotient ? arena_printf(m, "((%s + %lld%s) / %lld%s - %lld%s)", a,
				       (long long)(up * c), l, (long long)c, l, (long long)up, l)
			: arena_printf(m, "((%s + %lld%s) %% %lld%s)", a, (long long)(up * c), l,
				       (long long)c, l);
}

const char *emit_cast_function(Emit *e, const Node *n)
{
	Type from = n->src[0]->type, to = n->type;
	int64_t lo, hi;
	if (to == RICCI_BOOL || type_is_float(to))
		return NULL;
	if (type_is_float(from)) /* in f32 where that will do: it has twice the lanes */
		return arena_printf(&e->ir->arena, "rk_%s_of_%s", type_name(to),
				    from == RICCI_F64 || to == RICCI_I64 ? "float" : "f32");
	type_range(to, &lo, &hi);
	bool fits = n->src[0]->lo >= lo && n->src[0]->hi <= hi;
	return fits ? NULL : arena_printf(&e->ir->arena, "rk_%s_of_int", type_name(to));
}

static const char *cast_text(Emit *e, const Node *n, const char *a)
{
	Arena *m = &e->ir->arena;
	const char *function = emit_cast_function(e, n);
	Type from = n->src[0]->type, to = n->type;
	const char *compute = dialect_compute[to];
	if (to == RICCI_BOOL)
		return arena_printf(m, "(%s != 0)", a);
	if ((to == RICCI_BF16 || to == RICCI_F16) && from != to) {
		e->uses_math = true;
		return arena_printf(m, "ricci_round_%s(%s)", type_name(to), a);
	}
	if (function)
		return arena_printf(m, "%s(%s)", function, a);
	return strcmp(compute, dialect_compute[from]) == 0 ? a
							   : arena_printf(m, "(%s)%s", compute, a);
}

/* A local buffer of one element is a variable. */
static bool is_variable(Emit *e, Node *buffer)
{
	const Buffer *b = tree_find(e->tree, buffer);
	return b && b->space == SPACE_LOCAL && tensor_size(buffer) == 1;
}

/* An index as text. In the text for compilers that make vectors, and of a grid, its constant stands apart: they
 * see that two places are neighbours where the rest is the same variable, and have one register for both. */
static const char *index_text(Emit *e, Node *index, bool lazy)
{
	if (index->op == OP_ADD && (e->d->caps.vectors || e->d->caps.grid)) {
		Affine a = affine_of(e->ir, index);
		long long c = a.c;
		a.c = 0;
		if (c)
			return arena_printf(&e->ir->arena, "%s + (%lldL)",
					    emit_value(e, affine_node(e->ir, &a), lazy), c);
	}
	return emit_value(e, index, lazy);
}

const char *emit_place(Emit *e, Node *buffer, Node *index, bool lazy)
{
	return is_variable(e, buffer) ? buffer->u.s
				      : arena_printf(&e->ir->arena, "%s[%s]", buffer->u.s,
						     index_text(e, index, lazy));
}

const char *emit_address(Emit *e, Node *buffer, Node *index)
{
	const char *sign = is_variable(e, buffer) ? "&" : "";
	return arena_printf(&e->ir->arena, "%s%s + %s", sign, buffer->u.s,
			    index_text(e, index, false));
}

/* Where what is read may not be wanted, a place outside of the buffer is any inside. */
static Node *read_index(Emit *e, Node *n)
{
	Node *index = n->src[1];
	int64_t last = tensor_size(n->src[0]) - 1;
	if (!e->unwanted || read_inside(n))
		return index;
	index = node2(e->ir, OP_MAX, index, node_int(e->ir, 0));
	return node2(e->ir, OP_MIN, index, node_int(e->ir, last));
}

static const char *read_text(Emit *e, Node *n, bool lazy)
{
	const Buffer *b = tree_find(e->tree, n->src[0]);
	if (!b) {
		error_set(&e->ir->err, RICCI_EINTERNAL, "the emitter met an unknown tensor");
		return "0";
	}
	const char *place = emit_place(e, n->src[0], read_index(e, n), lazy);
	if (n->type == RICCI_BF16 || n->type == RICCI_F16) {
		e->uses_math = true;
		return arena_printf(&e->ir->arena, "ricci_f32_of_%s(%s)", type_name(n->type),
				    place);
	}
	return place;
}

/* A sum: the part that outer scopes know, then the terms of this one. */
static const char *sum_text(Emit *e, Node *n, const Affine *sum, int level, bool lazy)
{
	Affine a = *sum, outer = a;
	bool narrow = is_int(e, n);
	Arena *arena = &e->ir->arena; /* a growing Text would leak when memory runs out below */
	outer.n = 0;
	outer.k = arena_alloc(&e->ir->arena, (size_t)(a.n + 1) * sizeof *outer.k);
	outer.atom = arena_alloc(&e->ir->arena, (size_t)(a.n + 1) * sizeof *outer.atom);
	for (int j = 0; j < a.n; j++)
		if (level_of(e, a.atom[j]) < level) {
			outer.k[outer.n] = a.k[j];
			outer.atom[outer.n++] = a.atom[j];
		}
	if (outer.n == a.n || outer.n == 0)
		outer.n = 0;
	const char *plus = "";
	int64_t left = a.c;
	const char *out = "(";
	if (outer.n) {
		Node *known = affine_node(e->ir, &outer);
		out = arena_printf(arena, "%s%s", out,
				   wide_text(e, n, known, emit_value(e, known, lazy)));
		plus = " + ";
		left = 0;
	}
	for (int j = 0; j < a.n; j++) {
		bool taken = false;
		for (int i = 0; i < outer.n; i++)
			taken |= outer.atom[i] == a.atom[j];
		if (taken)
			continue;
		const char *atom = emit_value(e, a.atom[j], lazy);
		if (a.k[j] == 1)
			out = arena_printf(arena, "%s%s%s", out, plus,
					   wide_text(e, n, a.atom[j], atom));
		else
			out = arena_printf(arena, "%s%s%s * %s", out, plus, atom,
					   long_text(e, a.k[j], narrow));
		plus = " + ";
	}
	if (left || !*plus)
		out = arena_printf(arena, "%s%s%s", out, plus, long_text(e, left, narrow));
	return arena_printf(arena, "%s)", out);
}

/* min or max where source number `constant` is one: it is no NaN, so one comparison does. */
static const char *limit_text(Emit *e, Node *n, int constant, bool lazy)
{
	const char *x = emit_value(e, n->src[1 - constant], lazy);
	return arena_printf(&e->ir->arena, "rk_%s_%s(%s, %s)", n->op == OP_MIN ? "most" : "least",
			    emit_suffix(n->type), x, emit_value(e, n->src[constant], lazy));
}

static const char *call_text(Emit *e, Node *n, bool lazy)
{
	Arena *m = &e->ir->arena;
	const char *a = emit_value(e, n->src[0], lazy);
	const char *name = op_info[n->op].text, *suffix = emit_suffix(n->type);
	if (node_draws(n)) {
		e->uses_math = true;
		return arena_printf(m, "ricci_%s((uint64_t)%s, (uint64_t)%s, seed, step)", name,
				    emit_value(e, n->src[1], lazy), a);
	}
	if ((n->op == OP_MIN || n->op == OP_MAX) && e->d->caps.vectors && type_is_float(n->type))
		for (int k = 0; k < 2; k++)
			if (n->src[k]->op == OP_CONST && !isnan(n->src[k]->u.f))
				return limit_text(e, n, k, lazy);
	if (n->op == OP_MIN || n->op == OP_MAX)
		return arena_printf(m, "rk_%s_%s(%s, %s)", name, is_int(e, n) ? "i32" : suffix, a,
				    emit_value(e, n->src[1], lazy));
	if (!type_is_float(n->type) && n->nsrc == 2)
		return arena_printf(m, "rk_%s_%s(%s, %s)", name, suffix, a,
				    emit_value(e, n->src[1], lazy));
	if (n->op == OP_ABS && n->type == RICCI_I8) /* abs(-128) wraps */
		return arena_printf(m, "(int)(%s)rk_%s_%s(%s)", dialect_ctype[n->type], name,
				    suffix, a);
	if (!type_is_float(n->type))
		return arena_printf(m, "rk_%s_%s(%s)", name, suffix, a);
	e->uses_math = true;
	if (n->nsrc == 2)
		return arena_printf(m, "ricci_%s_%s(%s, %s)", name, suffix, a,
				    emit_value(e, n->src[1], lazy));
	return arena_printf(m, "ricci_%s_%s(%s)", name, suffix, a);
}

/* Integer arithmetic wraps; C's does so without signs only. */
static const char *infix_text(Emit *e, const Node *n, const char *a, const char *b)
{
	Arena *m = &e->ir->arena;
	const char *op = op_info[n->op].text;
	bool arithmetic = n->op == OP_ADD || n->op == OP_MUL;
	if (arithmetic && (n->type == RICCI_I32 || n->type == RICCI_I64))
		return arena_printf(m,
				    n->type == RICCI_I32
					    ? "(int)((unsigned)%s %s (unsigned)%s)"
					    : "(int64_t)((uint64_t)%s %s (uint64_t)%s)",
				    a, op, b);
	if (arithmetic && (n->type == RICCI_I8 || n->type == RICCI_U8))
		return arena_printf(m, "(int)(%s)(%s %s %s)", dialect_ctype[n->type], a, op, b);
	return arena_printf(m, "(%s %s %s)", a, op, b);
}

bool emit_inverts(const Node *c)
{
	int exponent;
	return c->op == OP_CONST && c->u.f >= 1 && c->u.f < 0x1p60 &&
	       frexp(c->u.f, &exponent) != 0.5;
}

const char *emit_term(Emit *e, Node *n)
{
	if (n->op != OP_DIV || !emit_inverts(n->src[1]))
		return emit_value(e, n, false);
	const char *a = emit_value(e, n->src[0], false);
	return arena_printf(&e->ir->arena, "(%s * (1 / %s))", a, emit_value(e, n->src[1], false));
}

/* && and ||; where the right side may be computed anyway, & and |: branches keep compilers from
 * making vectors of loops. */
static const char *logic_text(Emit *e, Node *n, bool lazy)
{
	bool both = e->d->caps.vectors && !(emit_reads(e, n->src[1]) & READS_GUARDED);
	const char *text = op_info[n->op].text, *a = emit_value(e, n->src[0], lazy);
	const char *b = emit_value(e, n->src[1], !both || lazy);
	return arena_printf(&e->ir->arena, "(%s %s %s)", a, both ? text + 1 : text, b);
}

static const char *node_text(Emit *e, Node *n, int level, bool lazy)
{
	Arena *m = &e->ir->arena;
	switch ((Op)n->op) {
	case OP_CONST:
		return const_text(e, n);
	case OP_AXIS:
		return arena_printf(&e->ir->arena, "i%d", (int)n->u.i);
	case OP_READ:
		return read_text(e, n, lazy);
	case OP_CAST:
		return cast_text(e, n, emit_value(e, n->src[0], lazy));
	case OP_FLOORDIV:
	case OP_FLOORMOD:
		return divide_text(e, n, emit_value(e, n->src[0], lazy));
	case OP_AND:
	case OP_OR:
		return logic_text(e, n, lazy);
	case OP_SELECT: {
		const char *c = emit_value(e, n->src[0], lazy);
		const char *a = emit_value(e, n->src[1], true);
		return arena_printf(m, "(%s ? %s : %s)", c, a, emit_value(e, n->src[2], true));
	}
	case OP_ADD:
	case OP_MUL:
		if (n->type == RICCI_I64 && (n->op == OP_ADD || node_is_const(n->src[0]))) {
			Affine a = affine_of(e->ir, n);
			bool opaque = a.n == 1 && a.atom[0] == n;
			if (!opaque && never_exceeds(&a, INT64_MAX))
				return sum_text(e, n, &a, level, lazy);
		}
		break;
	case OP_DIV:
		if (!e->d->caps.vectors || !emit_inverts(n->src[1]))
			break;
		return arena_printf(m, "rk_over_%s(%s, %s)", emit_suffix(n->type),
				    emit_value(e, n->src[0], lazy), emit_value(e, n->src[1], lazy));
	default:
		break;
	}
	if (op_info[n->op].form == FORM_PREFIX)
		return arena_printf(m, "(%s%s)", op_info[n->op].text,
				    emit_value(e, n->src[0], lazy));
	if (op_info[n->op].form == FORM_INFIX) {
		const char *a = emit_value(e, n->src[0], lazy);
		return infix_text(e, n, a, emit_value(e, n->src[1], lazy));
	}
	if (op_info[n->op].form == FORM_CALL)
		return call_text(e, n, lazy);
	error_set(&e->ir->err, RICCI_EINTERNAL, "the emitter has no text for operator %s",
		  op_info[n->op].name);
	return "0";
}

/* ---- local variables ---- */

static void name_keep(Emit *e, Node *n, int level, const char *name)
{
	Scope *s = &e->scope[level];
	s->named = arena_grow(&e->ir->arena, s->named, s->nnamed, &s->room, sizeof *s->named);
	s->named[s->nnamed++] = n->id;
	note_of(e, n)->name = name;
}

void emit_name(Emit *e, Node *n, const char *name)
{
	if (!note_of(e, n)->name)
		name_keep(e, n, e->depth, name);
}

static const char *name_put(Emit *e, Node *n, int level, const char *text)
{
	const char *name = arena_printf(&e->ir->arena, "t%d", e->nname++);
	text_add(e->scope[level].text, "%*sconst %s %s = %s;\n", level + 1, "", emit_ctype(e, n),
		 name, text);
	name_keep(e, n, level, name);
	return name;
}

void emit_forget(Emit *e, int depth, bool only_changing)
{
	Scope *s = &e->scope[depth];
	int n = 0;
	for (int k = 0; k < s->nnamed; k++) {
		NodeNote *note = &e->note[s->named[k]];
		if (only_changing && !(note->reads & READS_CHANGING))
			s->named[n++] = s->named[k];
		else
			note->name = NULL;
	}
	s->nnamed = n;
}

static bool worth_naming(Emit *e, Node *n, int level)
{
	if (n->op == OP_AXIS)
		return false;
	if (n->op == OP_CONST)
		return type_is_float(n->type) && !isfinite(n->u.f);
	if (level < e->depth)
		return true;
	return emit_uses(e, n) > 1 && n->op != OP_CAST;
}

/* A read that may always be done, where lanes decide whether its value is wanted: loads under masks
 * cost more. */
static bool may_hurry(Emit *e, Node *n)
{
	return n->op == OP_READ && e->scope[e->depth].lanes && !(emit_reads(e, n) & READS_GUARDED);
}

const char *emit_value(Emit *e, Node *n, bool lazy)
{
	NodeNote *k = note_of(e, n);
	if (k->name)
		return k->name;
	int level = level_of(e, n);
	bool hurry = lazy && may_hurry(e, n), unwanted = e->unwanted;
	bool late = !hurry && lazy && emit_reads(e, n) > READS_KNOWN;
	if (late || (!hurry && !worth_naming(e, n, level))) {
		const char *text = node_text(e, n, level, lazy);
		if (!late || strlen(text) <= TEXT_LONG || emit_uses(e, n) < 2)
			return text;
	}
	/* Computed at the scope `level`: deeper names must not slip into its text. Everything below
	 * n has a level of at most `level`, so it is named there or further out. */
	int depth = e->depth;
	e->depth = level;
	e->unwanted |= late;
	const char *text = node_text(e, n, level, false);
	e->unwanted = unwanted;
	e->depth = depth;
	return name_put(e, n, level, text);
}

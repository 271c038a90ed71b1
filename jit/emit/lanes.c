/* lanes.c - LANES loops as vectors under masks (jit/tree/predicates.c makes them).
 *
 * Input: a LANES loop. Output: its statements, each over all lanes at once, in the types and functions
 * of Dialect.lanes, a type for each type of values. Invariant: nothing is read or written where a
 * lane is no iteration, or where its conditions do not hold. What is loaded is kept to the loop's
 * end: the loop writes none of what it reads. */
#include "jit/emit/internal.h"

#include <math.h>
#include <string.h>

typedef struct Kept {
	const Node *read, *cond; /* read: or another value; NULL: the mask */
	int64_t step, from;
	const char *type, *name; /* type: of a mask */
} Kept;

typedef struct Lanes {
	Emit *e;
	const Stmt *loop;
	Kept *kept;
	int nkept, room;
} Lanes;

static const char *kept_find(const Lanes *v, Kept key)
{
	for (int k = 0; k < v->nkept; k++) {
		const Kept *i = &v->kept[k];
		if (i->read == key.read && i->cond == key.cond && i->step == key.step &&
		    i->from == key.from && (!key.type || strcmp(i->type, key.type) == 0))
			return i->name;
	}
	return NULL;
}

/* ---- types ---- */

static int64_t width(const Lanes *v)
{
	return axis_extent(v->loop->axis);
}

/* Once in a file, in which other kernels may ask for the same. */
static void declare(Emit *e, const char *name, const char *text)
{
	emit_declare(e, arena_printf(&e->ir->arena, "#ifndef %s\n#define %s %s\n%s\n#endif", name,
				     name, name, text));
}

/* The integer type of the elements' size, and of what they are added up as. */
static const char *const integer_of[RICCI_NTYPES] = {[RICCI_F32] = "int",
						     [RICCI_F64] = "long long",
						     [RICCI_I32] = "int",
						     [RICCI_I64] = "long long"};
static const char *const added_as[RICCI_NTYPES] = {[RICCI_F32] = "float",
						   [RICCI_F64] = "double",
						   [RICCI_I32] = "unsigned",
						   [RICCI_I64] = "uint64_t"};

const char *emit_vector_type(Emit *e, Type t, int64_t lanes)
{
	Arena *m = &e->ir->arena;
	t = lanes_type(t);
	const char *suffix = emit_suffix(t), *c = dialect_compute[t];
	long long n = lanes;
	const char *name = arena_printf(m, "%sx%lld", suffix, n);
	const char *text =
		arena_printf(m, "RK_VECTOR(%s, %s, %s, %s, %lld) RK_%s(%s, %s, %s, %lld)", name, c,
			     integer_of[t], added_as[t], n, type_is_float(t) ? "REAL" : "WHOLE",
			     name, suffix, c, n);
	e->uses_lanes = true;
	declare(e, name, text);
	return name;
}

static const char *type(Lanes *v, Type t)
{
	return emit_vector_type(v->e, t, width(v));
}

/* The functions of masks for vectors of that type. */
static void declare_masks(Lanes *v, Type t)
{
	Arena *m = &v->e->ir->arena;
	const char *name = type(v, t);
	t = lanes_type(t);
	bool wide = type_size(t) == 8;
	declare(v->e, arena_printf(m, "%s_m", name),
		arena_printf(m, "RK_MASKED(%s, %s, %s, %s, %lld, %lld)", name, dialect_compute[t],
			     wide ? "double" : "float", wide ? "pd" : "ps", (long long)width(v),
			     (long long)(width(v) * (int64_t)type_size(t))));
}

/* The function that accesses elements of type t in memory; some: under a mask. */
static const char *access(Lanes *v, Type t, const char *what, bool some)
{
	Emit *e = v->e;
	Arena *m = &e->ir->arena;
	const char *name = type(v, t), *from = type_name(t);
	if (some)
		declare_masks(v, t);
	const char *suffix = some ? "_some" : "";
	if (lanes_type(t) == t)
		return arena_printf(m, "%s_%s%s", name, what, suffix);
	const char *narrow = arena_printf(m, "%s_%s", name, from);
	e->uses_math |= type_is_float(t);
	declare(e, narrow,
		arena_printf(m, "RK_NARROW(%s, %s, %s, %lld)", name, dialect_ctype[t], from,
			     (long long)width(v)));
	if (some)
		declare(e, arena_printf(m, "%s_some", narrow),
			arena_printf(m, "RK_NARROW_SOME(%s, %s, %s, %lld, %s, %d)", name,
				     dialect_ctype[t], from, (long long)width(v),
				     type_size(t) == 2 ? "hi" : "qi",
				     width(v) * (int64_t)type_size(t) > 16 ? 256 : 128));
	return arena_printf(m, "%s_%s%s", narrow, what, suffix);
}

/* a op b, where integers wrap. */
static const char *arithmetic(Lanes *v, Type t, const char *a, char op, const char *b)
{
	Arena *m = &v->e->ir->arena;
	const char *name = type(v, t);
	return type_is_float(t) ? arena_printf(m, "(%s %c %s)", a, op, b)
				: arena_printf(m, "((%s)((%s_u)%s %c (%s_u)%s))", name, name, a, op,
					       name, b);
}

/* ---- masks ---- */

static const char *keep(Lanes *v, const char *type, Kept key, const char *text)
{
	Emit *e = v->e;
	key.name = arena_printf(&e->ir->arena, "t%d", e->nname++);
	emit_line(e, "const %s %s = %s;", type, key.name, text);
	v->kept = arena_grow(&e->ir->arena, v->kept, v->nkept, &v->room, sizeof *v->kept);
	v->kept[v->nkept++] = key;
	return key.name;
}

/* The lanes for which a condition on their number alone holds, by bits. */
static uint64_t listed_lanes(Lanes *v, Node *cond)
{
	Ir *ir = v->e->ir;
	uint64_t bits = 0;
	for (int64_t k = 0; k < width(v); k++) {
		Node *lane = node_int(ir, k);
		Node *holds = node_replace(ir, cond, 1, &v->loop->axis, &lane);
		bits |= (uint64_t)(holds->u.i != 0) << k;
	}
	return bits;
}

/* The lanes lo..hi-1, of these bits, for which the parts of cond that differ between lanes hold, and the rest of
 * it. */
static void mask_parts(Lanes *v, Node *cond, Node **lo, Node **hi, uint64_t *bits, Node **common)
{
	Ir *ir = v->e->ir;
	Node **part;
	int n = node_parts(ir, cond, OP_AND, &part);
	for (int k = 0; k < n; k++)
		if (lanes_listed(ir, part[k], v->loop))
			*bits &= listed_lanes(v, part[k]);
		else if (lanes_vary(part[k], v->loop))
			cond_interval(ir, part[k], v->loop->axis, lo, hi);
		else
			*common = *common ? node2(ir, OP_AND, *common, part[k]) : part[k];
}

/* Of every step-th element, from number `from` on: those of these lanes. */
static uint64_t bits_of_elements(const Lanes *v, uint64_t lanes, int64_t step, int64_t from)
{
	uint64_t bits = 0;
	for (int64_t k = 0; k < width(v); k++)
		bits |= (from + k) % step ? 0 : (lanes >> (from + k) / step & 1) << k;
	return bits;
}

/* Where lanes take every step-th element: the mask of those from `from` on that the lanes take for
 * which cond (NULL: nothing) holds, and of what lies between them; NULL: all. */
static const char *mask_of(Lanes *v, Type t, Node *cond, int64_t step, int64_t from)
{
	Emit *e = v->e;
	Ir *ir = e->ir;
	const char *name = type(v, t);
	Kept key = {.cond = cond, .step = step, .from = from, .type = name};
	Node *lo = v->loop->lo, *hi = v->loop->hi, *common = NULL;
	const char *known = kept_find(v, key);
	uint64_t all = ~UINT64_C(0) >> (64 - width(v)), bits = all;
	if (known)
		return known;
	if (cond)
		mask_parts(v, cond, &lo, &hi, &bits, &common);
	lo = node_add(ir, node_scale(ir, lo, step), node_int(ir, -from));
	hi = node_add(ir, node_scale(ir, hi, step), node_int(ir, 1 - step - from));
	if (!common && bits == all && lo->hi <= 0 && hi->lo >= width(v))
		return NULL;
	declare_masks(v, t);
	const char *text = arena_printf(&ir->arena, "%s_lanes(%s, %s)", name,
					emit_value(e, lo, false), emit_value(e, hi, false));
	if (bits != all)
		text = arena_printf(&ir->arena, "%s_among(0x%llxu, %s)", name,
				    (unsigned long long)bits_of_elements(v, bits, step, from),
				    text);
	if (common)
		text = arena_printf(&ir->arena, "%s_where(%s, %s)", name,
				    emit_value(e, common, false), text);
	return keep(v, arena_printf(&ir->arena, "%s_m", name), key, text);
}

/* The address of the first lane's element. */
static const char *place_of(Lanes *v, Node *buffer, Node *index)
{
	Node *axis = v->loop->axis, *zero = node_int(v->e->ir, 0);
	return emit_place(v->e, buffer, node_replace(v->e->ir, index, 1, &axis, &zero), false);
}

static bool is_variable(const Lanes *v, const Node *buffer)
{
	return tree_find(v->e->tree, buffer)->space == SPACE_LANES || lanes_own(v->loop, buffer);
}

/* May whole vectors be read and written there, whatever the lanes are? */
static bool has_room(const Lanes *v, Node *buffer, const Node *index)
{
	return is_variable(v, buffer) || (tree_find(v->e->tree, buffer)->space == SPACE_LOCAL &&
					  index->hi < tensor_size(buffer));
}

static const char *load_part(Lanes *v, Node *n, Node *cond, int64_t step, int64_t from)
{
	Ir *ir = v->e->ir;
	Node *index = node_add(ir, n->src[1], node_int(ir, from));
	bool whole = !cond && step == 1 && has_room(v, n->src[0], n->src[1]);
	const char *mask = mask_of(v, n->type, cond, step, from), *t = type(v, n->type);
	const char *at = place_of(v, n->src[0], index);
	const char *name = access(v, n->type, "load", mask && !whole);
	if (mask && whole) /* what was never written may be subnormal, which is slow */
		return arena_printf(&ir->arena, "%s_pick(%s, %s(&%s), %s_all(0))", t, mask, name,
				    at, t);
	return mask ? arena_printf(&ir->arena, "%s(&%s, %s)", name, at, mask)
		    : arena_printf(&ir->arena, "%s(&%s)", name, at);
}

/* The function that reads elements apart under a mask. */
static const char *gather_some(Lanes *v, Type t)
{
	Arena *m = &v->e->ir->arena;
	bool narrow = lanes_type(t) != t;
	const char *name = access(v, t, "gather", true), *vector = type(v, t);
	long long n = width(v);
	declare(v->e, name,
		narrow ? arena_printf(m, "RK_NARROW_GATHER_SOME(%s, %s, %s, %lld)", vector,
				      dialect_ctype[t], type_name(t), n)
		       : arena_printf(m, "RK_GATHER_SOME(%s, %s, %lld)", vector, dialect_compute[t],
				      n));
	return name;
}

/* Element by element: what lanes that are no iteration read is what the last one does. */
static const char *gather(Lanes *v, Node *n, Node *cond, int64_t step)
{
	Arena *m = &v->e->ir->arena;
	const char *mask = cond && !read_inside(n) ? mask_of(v, n->type, cond, 1, 0) : NULL;
	const char *at = place_of(v, n->src[0], n->src[1]);
	return mask ? arena_printf(m, "%s(&%s, %lldL, %s)", gather_some(v, n->type), at,
				   (long long)step, mask)
		    : arena_printf(m, "%s(&%s, %lldL, %s)", access(v, n->type, "gather", false), at,
				   (long long)step, emit_value(v->e, v->loop->hi, false));
}

/* Every count-th element of as many vectors from `from` on. */
static const char *load_parts(Lanes *v, Node *n, Node *cond, int64_t step, int64_t from,
			      int64_t count)
{
	int64_t half = count / 2;
	if (count == 1)
		return load_part(v, n, cond, step, from);
	const char *low = load_parts(v, n, cond, step, from, half);
	const char *high = load_parts(v, n, cond, step, from + half * width(v), half);
	return arena_printf(&v->e->ir->arena, "%s_even(%s, %s)", type(v, n->type), low, high);
}

static const char *load(Lanes *v, Node *n, Node *cond)
{
	Ir *ir = v->e->ir;
	Kept key = {.read = n, .cond = cond};
	const char *known = kept_find(v, key);
	if (known)
		return known;
	if (is_variable(v, n->src[0]))
		return n->src[0]->u.s;
	int64_t step = affine_stride(ir, n->src[1], v->loop->axis);
	bool apart = lanes_apart(n->type, width(v), step);
	const char *text = apart ? gather(v, n, cond, step) : load_parts(v, n, cond, step, 0, step);
	return keep(v, type(v, n->type), key, text);
}

static const char *value(Lanes *v, Node *n, Node *cond);

/* Is it zero where a mask leaves it out? */
static bool is_loaded(const Lanes *v, Node *n)
{
	return n->op == OP_READ && !is_variable(v, n->src[0]) && lanes_vary(n, v->loop) &&
	       !lanes_apart(n->type, width(v), affine_stride(v->e->ir, n->src[1], v->loop->axis));
}

/* An index, as a vector of type t: in 32 bits. */
static const char *index_text(Lanes *v, Node *n, Type t)
{
	Ir *ir = v->e->ir;
	Arena *m = &ir->arena;
	Node *axis = v->loop->axis, *zero = node_int(ir, 0);
	const char *name = type(v, RICCI_I32), *first;
	int64_t step = affine_stride(ir, n, axis);
	first = emit_value(v->e, node_replace(ir, n, 1, &axis, &zero), false);
	const char *text = arena_printf(m, "%s_all((int)(%s))", name, first);
	const char *lanes = arena_printf(m, "(%s_number * %lld)", name, (long long)step);
	text = step ? arithmetic(v, RICCI_I32, text, '+', lanes) : text;
	return t == RICCI_I32
		       ? text
		       : arena_printf(m, "__builtin_convertvector(%s, %s)", text, type(v, t));
}

static const char *comparison(Lanes *v, Node *c, Node *cond, Type t);

/* What a comparison of type `of` gives, for values of type t. */
static const char *as_long(Lanes *v, Type of, Type t, const char *text)
{
	return type_size(of) == type_size(t)
		       ? text
		       : arena_printf(&v->e->ir->arena, "__builtin_convertvector(%s, %s_i)", text,
				      type(v, t));
}

static const char *comparison_text(Lanes *v, Node *c, Node *cond, Type t)
{
	Arena *m = &v->e->ir->arena;
	if (c->op == OP_NOT)
		return arena_printf(m, "(~%s)", comparison(v, c->src[0], cond, t));
	if (c->op == OP_READ)
		return as_long(
			v, RICCI_I32, t,
			arena_printf(m, "(%s_i)(%s != 0)", type(v, RICCI_I32), value(v, c, cond)));
	if (c->op == OP_AND || c->op == OP_OR)
		return arena_printf(m, "(%s %s %s)", comparison(v, c->src[0], cond, t),
				    c->op == OP_AND ? "&" : "|", comparison(v, c->src[1], cond, t));
	Type of = c->src[0]->type == RICCI_I64 ? RICCI_I32 : lanes_type(c->src[0]->type);
	const char *side[2];
	for (int k = 0; k < 2; k++)
		side[k] = c->src[k]->type == RICCI_I64 ? index_text(v, c->src[k], of)
						       : value(v, c->src[k], cond);
	const char *text = arena_printf(m, "((%s_i)(%s %s %s))", type(v, of), side[0],
					op_info[c->op].text, side[1]);
	return as_long(v, of, t, text);
}

/* Lanes that compare values: a vector of integers of the size of t's, all bits set where c holds. */
static const char *comparison(Lanes *v, Node *c, Node *cond, Type t)
{
	Arena *m = &v->e->ir->arena;
	t = lanes_type(t);
	const char *name = type(v, t);
	Kept key = {.read = c, .cond = cond, .type = name};
	if (!lanes_vary(c, v->loop))
		return arena_printf(m, "%s_agree(%s)", name, emit_value(v->e, c, false));
	const char *text = kept_find(v, key);
	if (text)
		return text;
	text = comparison_text(v, c, cond, t);
	return strlen(text) > TEXT_LONG ? keep(v, arena_printf(m, "%s_i", name), key, text) : text;
}

/* The lanes' places decide by a mask, their values by a comparison. */
static const char *select_text(Lanes *v, Node *n, Node *cond)
{
	Ir *ir = v->e->ir;
	Node **part, *both = cond, *compared = NULL, *other = n->src[2];
	int parts = node_parts(ir, n->src[0], OP_AND, &part);
	for (int k = 0; k < parts; k++) {
		Node **to = lanes_compare(ir, part[k], v->loop) ? &compared : &both;
		*to = *to ? node2(ir, OP_AND, *to, part[k]) : part[k];
	}
	const char *x = value(v, n->src[1], both);
	bool zero = other->op == OP_CONST && other->u.f == 0 && !signbit(other->u.f);
	if (!compared && is_loaded(v, n->src[1]) && zero)
		return x;
	const char *mask = both == cond ? NULL : mask_of(v, n->type, both, 1, 0);
	if (!mask && !compared)
		return x;
	const char *y = value(v, other, cond);
	if (compared)
		x = arena_printf(&ir->arena, "%s_either(%s, %s, %s)", type(v, n->type),
				 comparison(v, compared, both, n->type), x, y);
	return mask ? arena_printf(&ir->arena, "%s_pick(%s, %s, %s)", type(v, n->type), mask, x, y)
		    : x;
}

/* A function of scalars for all lanes; of the mathematical ones it is declared. */
static const char *function(Lanes *v, Node *n, const char *a, const char *b)
{
	Emit *e = v->e;
	Arena *m = &e->ir->arena;
	const char *t = type(v, n->type), *text = arena_printf(m, "%s_%s", t, op_info[n->op].text);
	if (n->op != OP_MIN && n->op != OP_MAX) {
		e->uses_math |= type_is_float(n->type);
		declare(e, text,
			arena_printf(m, "RK_MAP%d(%s, %s, %lld, %s, %s_%s_%s)", b ? 2 : 1, t,
				     dialect_compute[n->type], (long long)width(v), text,
				     type_is_float(n->type) ? "ricci" : "rk", op_info[n->op].text,
				     emit_suffix(n->type)));
	}
	return b ? arena_printf(m, "%s(%s, %s)", text, a, b) : arena_printf(m, "%s(%s)", text, a);
}

/* Lanes of a, of type `from`, as `to`, by a function of scalars. */
static const char *cast_call(Lanes *v, Type from, Type to, const char *function, const char *a)
{
	Arena *m = &v->e->ir->arena;
	const char *t = type(v, to), *name = arena_printf(m, "%s_%s", t, function);
	long long n = width(v);
	from = lanes_type(from);
	declare(v->e, name,
		arena_printf(
			m, "RK_EACH(%s, %s, %lld, %s, (%s v), RK_ARRAY(%s, %lld, a, v), %s(a[i]))",
			t, dialect_compute[lanes_type(to)], n, name, type(v, from),
			dialect_compute[from], n, function));
	return arena_printf(m, "%s(%s)", name, a);
}

/* The cast n of a, whose lanes are of type `from`. */
static const char *cast_text(Lanes *v, const Node *n, Type from, const char *a)
{
	Arena *m = &v->e->ir->arena;
	Type to = n->type;
	const char *t = type(v, to), *function = emit_cast_function(v->e, n);
	if (function)
		return cast_call(v, from, to, function, a);
	if (lanes_type(from) != lanes_type(to))
		a = arena_printf(m, "__builtin_convertvector(%s, %s)", a, t);
	if (!type_is_float(to) || lanes_type(to) == to || from == to)
		return a;
	access(v, to, "store", false);
	return arena_printf(m, "%s_round_%s(%s)", t, type_name(to), a);
}

/* Is source number k of a minimum or maximum a constant, so that one comparison does? */
static bool is_limit(const Node *n, int k)
{
	return (n->op == OP_MIN || n->op == OP_MAX) && n->src[k]->op == OP_CONST &&
	       type_is_float(n->type) && !isnan(n->src[k]->u.f);
}

/* Are all lanes divided by c, and by what isn't exact as a factor? */
static bool inverts(Lanes *v, Node *c)
{
	return c->op == OP_CONST ? emit_inverts(c) : !lanes_vary(c, v->loop);
}

static const char *operation(Lanes *v, Node *n, Node *cond)
{
	Emit *e = v->e;
	Arena *m = &e->ir->arena;
	const char *text = op_info[n->op].text;
	for (int k = 0; k < n->nsrc; k++)
		if (is_limit(n, k))
			return arena_printf(m, "%s_%s(%s, %s)", type(v, n->type),
					    n->op == OP_MIN ? "most" : "least",
					    value(v, n->src[1 - k], cond),
					    value(v, n->src[k], cond));
	if (n->op == OP_CAST && n->src[0]->type == RICCI_I64) {
		Type t = lanes_type(n->type);
		return cast_text(v, n, t, index_text(v, n->src[0], t));
	}
	const char *a = value(v, n->src[0], cond);
	if (n->op == OP_CAST)
		return cast_text(v, n, n->src[0]->type, a);
	if (n->op == OP_NEG)
		return arena_printf(m, "(-%s)", a);
	if (n->op == OP_DIV && inverts(v, n->src[1]))
		return arena_printf(m, "%s_over(%s, %s)", type(v, n->type), a,
				    emit_value(e, n->src[1], false));
	const char *b = n->nsrc > 1 ? value(v, n->src[1], cond) : NULL;
	return op_info[n->op].form == FORM_INFIX ? arithmetic(v, n->type, a, *text, b)
						 : function(v, n, a, b);
}

/* n in the lanes where cond (NULL: nothing) holds. */
static const char *value(Lanes *v, Node *n, Node *cond)
{
	Kept key = {.read = n, .cond = cond};
	if (!lanes_vary(n, v->loop))
		return arena_printf(&v->e->ir->arena, "%s_all(%s)", type(v, n->type),
				    emit_value(v->e, n, false));
	if (n->op == OP_READ)
		return load(v, n, cond);
	if (n->type == RICCI_BOOL)
		return arena_printf(&v->e->ir->arena, "(%s)(%s & 1)", type(v, RICCI_I32),
				    comparison(v, n, cond, RICCI_I32));
	const char *text = kept_find(v, key);
	if (text)
		return text;
	text = n->op == OP_SELECT ? select_text(v, n, cond) : operation(v, n, cond);
	bool rounds = n->op == OP_CAST && node_flops(n) > 0;
	bool call = rounds || (n->op != OP_SELECT && op_info[n->op].form == FORM_CALL);
	return call || strlen(text) > TEXT_LONG ? keep(v, type(v, n->type), key, text) : text;
}

/* After a statement: it may have changed a variable that kept values were made of. */
static void values_forget(Lanes *v)
{
	int n = 0;
	for (int k = 0; k < v->nkept; k++)
		if (!v->kept[k].read || v->kept[k].read->op == OP_READ)
			v->kept[n++] = v->kept[k];
	v->nkept = n;
}

/* As emit_term. */
static const char *term(Lanes *v, Node *n)
{
	if (n->op != OP_DIV || !emit_inverts(n->src[1]))
		return value(v, n, NULL);
	return arena_printf(&v->e->ir->arena, "(%s * (1 / %s))", value(v, n->src[0], NULL),
			    emit_value(v->e, n->src[1], false));
}

/* at red= x, as a value. Maxima ask the first of two whether it is a number: x, for which nothing
 * waits. */
static const char *combined(Lanes *v, const Stmt *s, const char *at, const char *x)
{
	Type t = s->buffer->type;
	if (s->red == RED_NONE)
		return x;
	return s->red == RED_ADD || s->red == RED_MUL
		       ? arithmetic(v, t, at, s->red == RED_ADD ? '+' : '*', x)
		       : arena_printf(&v->e->ir->arena, "%s_%s(%s, %s)", type(v, t),
				      s->red == RED_MAX ? "max" : "min", x, at);
}

/* A variable red= its value. */
static void store_own(Lanes *v, const Stmt *s)
{
	const char *x = s->red == RED_ADD ? term(v, s->value) : value(v, s->value, NULL);
	emit_line(v->e, "%s = %s;", s->buffer->u.s, combined(v, s, s->buffer->u.s, x));
}

/* Is n zero in lanes that are no iteration? Loads under masks are, and what is made of them. */
static bool is_zero_outside(const Lanes *v, Node *n)
{
	if (n->op == OP_READ)
		return is_loaded(v, n);
	if (n->op == OP_CONST)
		return n->u.f == 0;
	if (n->op == OP_SELECT)
		return is_zero_outside(v, n->src[1]) && is_zero_outside(v, n->src[2]);
	return (n->op == OP_MUL || n->op == OP_ADD || n->op == OP_SUB) &&
	       is_zero_outside(v, n->src[0]) && is_zero_outside(v, n->src[1]);
}

/* Do the loops around it leave the place where it is, so that it stays in registers? */
static bool in_registers(const Lanes *v, const Stmt *s)
{
	return has_room(v, s->buffer, s->index) &&
	       node_is_const(node_sub(v->e->ir, s->index, v->loop->axis));
}

/* place red= x where the mask (NULL: everywhere) holds. Tiles have room for whole vectors: some processors take
 * long to store parts, and to load what was stored so. */
static void store_result(Lanes *v, const Stmt *s, const char *x, const char *mask)
{
	Arena *m = &v->e->ir->arena;
	bool variable = is_variable(v, s->buffer);
	const char *place = variable ? s->buffer->u.s : place_of(v, s->buffer, s->index);
	Type to = (Type)s->buffer->type;
	const char *t = type(v, to);
	int64_t step = variable ? 1 : affine_stride(v->e->ir, s->index, v->loop->axis);
	if (step != 1) {
		emit_line(v->e, "%s(&%s, %lldL, %s, %s);", access(v, to, "scatter", false), place,
			  (long long)step, emit_value(v->e, v->loop->hi, false), x);
		return;
	}
	bool adds = s->red != RED_NONE, some = mask && !has_room(v, s->buffer, s->index);
	bool whole = adds ? variable || !some : in_registers(v, s);
	const char *old = place;
	if (!variable && (adds || whole)) {
		const char *load = access(v, to, "load", !whole);
		old = whole ? arena_printf(m, "%s(&%s)", load, place)
			    : arena_printf(m, "%s(&%s, %s)", load, place, mask);
	}
	x = combined(v, s, old, x);
	if (mask && whole && !(s->red == RED_ADD && is_zero_outside(v, s->value)))
		x = arena_printf(m, "%s_pick(%s, %s, %s)", t, mask, x, old);
	if (variable)
		emit_line(v->e, "%s = %s;", place, x);
	else if (mask && !whole)
		emit_line(v->e, "%s(&%s, %s, %s);", access(v, to, "store", true), place, x, mask);
	else
		emit_line(v->e, "%s(&%s, %s);", access(v, to, "store", false), place, x);
}

/* place red= what all lanes give. */
static void store_fold(Lanes *v, const Stmt *s)
{
	static const char *const fold[RED_COUNT] = {"", "sum", "product", "highest", "lowest"};
	Emit *e = v->e;
	Arena *m = &e->ir->arena;
	Type t = s->buffer->type;
	const char *name = type(v, t), *c = added_as[t];
	const char *x = s->red == RED_ADD ? term(v, s->value) : value(v, s->value, NULL);
	const char *mask = mask_of(v, t, NULL, 1, 0),
		   *at = emit_place(e, s->buffer, s->index, false);
	Node *none = node_identity(e->ir, s->red, t, t);
	declare(e, arena_printf(m, "%s_sum", name),
		arena_printf(m, "RK_FOLDS(%s, %s, %lld)", name, dialect_compute[t],
			     (long long)width(v)));
	if (mask)
		x = arena_printf(m, "%s_pick(%s, %s, %s_all(%s))", name, mask, x, name,
				 emit_value(e, none, false));
	x = arena_printf(m, "%s_%s(%s)", name, fold[s->red], x);
	if (s->red == RED_MAX || s->red == RED_MIN)
		emit_line(e, "%s = rk_%s_%s(%s, %s);", at, s->red == RED_MAX ? "max" : "min",
			  emit_suffix(t), at, x);
	else
		emit_line(e, "%s = (%s)%s %c (%s)%s;", at, c, at, s->red == RED_ADD ? '+' : '*', c,
			  x);
}

/* Do the lanes store elements that follow each other? */
static bool is_result(const Lanes *v, const Stmt *s)
{
	return s->kind == STMT_STORE && node_has(s->index, v->loop->axis);
}

/* What is stored: into memory it is rounded anyway. */
static Node *unrounded(const Lanes *v, const Stmt *s)
{
	Node *n = s->value;
	bool rounds = lanes_type(n->type) == RICCI_F32 && n->type != RICCI_F32;
	return rounds && n->op == OP_CAST && lanes_type(n->src[0]->type) == RICCI_F32 &&
			       lanes_vary(n, v->loop) && !is_variable(v, s->buffer)
		       ? n->src[0]
		       : n;
}

/* Results that follow each other: all values come first (emit.c, stores). Returns what is next. */
static const Stmt *store_results(Lanes *v, const Stmt *s)
{
	Emit *e = v->e;
	const char *name[EMIT_MAX_SCOPES], *mask = NULL;
	int n = 0;
	const Stmt *i = s;
	for (; i && is_result(v, i) && n < COUNT(name); i = i->next) {
		const char *x =
			i->red == RED_ADD ? term(v, i->value) : value(v, unrounded(v, i), NULL);
		name[n] = arena_printf(&e->ir->arena, "t%d", e->nname++);
		emit_line(e, "const %s %s = %s;", type(v, i->buffer->type), name[n++], x);
	}
	for (n = 0; s != i; s = s->next, n++) {
		mask = mask_of(v, s->buffer->type, NULL, 1, 0);
		if (!mask && s->next != i && lanes_interleave(v->e->ir, v->loop, s)) {
			emit_line(e, "%s(&%s, %s, %s);",
				  access(v, s->buffer->type, "interleave", false),
				  place_of(v, s->buffer, s->index), name[n], name[n + 1]);
			s = s->next;
			n++;
		} else {
			store_result(v, s, name[n], mask);
		}
	}
	return i;
}

void emit_lanes(Emit *e, const Stmt *loop)
{
	Lanes *v = arena_alloc(&e->ir->arena, sizeof *v);
	*v = (Lanes){.e = e, .loop = loop};
	emit_statement(e);
	for (const Stmt *s = loop->body; s; s = s->next)
		if (s->kind == STMT_STORE) {
			emit_count(e, s->index);
			emit_count(e, s->value);
		}
	emit_open(e, loop->axis, false);
	emit_line(e, "{");
	for (const Stmt *s = loop->body; s;) {
		if (is_result(v, s)) {
			s = store_results(v, s);
			values_forget(v);
			continue;
		}
		if (s->kind == STMT_ALLOC)
			emit_line(e, "%s %s = {0};", type(v, s->buffer->type), s->buffer->u.s);
		else
			(lanes_own(loop, s->buffer) ? store_own : store_fold)(v, s);
		values_forget(v);
		s = s->next;
	}
	emit_line(e, "}");
	emit_close(e);
}

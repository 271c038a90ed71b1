/* lanes.c - LANES loops as vectors under masks (jit/tree/predicates.c makes them).
 *
 * Input: a LANES loop. Output: its statements, each over all lanes at once, in the types and functions
 * of Dialect.lanes, a type for each type of values. Invariant: nothing is written where a lane is no
 * iteration (what is read: lanes_load.c). */
#include "jit/emit/lanes.h"

#include <math.h>
#include <string.h>

/* a op b, where integers wrap. */
static const char *arithmetic(Lanes *v, Type t, const char *a, char op, const char *b)
{
	Arena *m = &v->e->ir->arena;
	const char *name = lane_type(v, t);
	return type_is_float(t) ? arena_printf(m, "(%s %c %s)", a, op, b)
				: arena_printf(m, "((%s)((%s_u)%s %c (%s_u)%s))", name, name, a, op,
					       name, b);
}

static const char *value(Lanes *v, Node *n, Node *cond);

/* An index, as integers of 32 bits; cut: as far as comparisons see it. */
static const char *index_text(Lanes *v, const LaneIndex *x, Node *cond, bool cut);

/* Integers as far as comparisons see them. */
static const char *cut_text(Lanes *v, Type t, const char *text)
{
	const char *name = lane_type(v, t);
	long long most = LANE_INDEX_MOST;
	return arena_printf(&v->e->ir->arena, "%s_max(%s_min(%s, %s_all(%lld)), %s_all(-%lld))",
			    name, name, text, name, most, name, most);
}

/* The less or the larger of two indices. */
static const char *index_limit(Lanes *v, Node *n, Node *cond)
{
	const char *side[2];
	for (int k = 0; k < 2; k++) {
		LaneIndex x = lane_index(v->e->ir, n->src[k], v->loop, false);
		side[k] = index_text(v, &x, cond, false);
	}
	return arena_printf(&v->e->ir->arena, "%s_%s(%s, %s)", lane_type(v, RICCI_I32),
			    op_info[n->op].text, side[0], side[1]);
}

/* A quotient of an index, or what is left of it. */
static const char *index_quotient(Lanes *v, const Node *n, const LaneQuotient *q, Node *cond)
{
	Arena *m = &v->e->ir->arena;
	const char *name = lane_type(v, RICCI_I32);
	LaneIndex x = lane_index(v->e->ir, q->of, v->loop, false);
	const char *of = index_text(v, &x, cond, false), *text = of;
	if (q->times != 1)
		text = arena_printf(m, "(%s * %s_all(%d))", of, name, q->times);
	text = arena_printf(m, "(%s >> %d)", text, q->shift);
	return n->op == OP_FLOORDIV
		       ? text
		       : arena_printf(m, "(%s - %s * %s_all(%d))", of, text, name, q->by);
}

/* A minimum, maximum, quotient or remainder in an index, computed once where it is used several times; NULL: n is none. */
static const char *index_operation(Lanes *v, Node *n, Node *cond)
{
	LaneQuotient q;
	Kept key = {.read = n, .cond = cond};
	bool limit = n->op == OP_MIN || n->op == OP_MAX;
	if (!limit && !lane_quotient(n, &q))
		return NULL;
	const char *known = lane_kept(v, key);
	if (known)
		return known;
	return lane_keep(v, lane_type(v, RICCI_I32), key,
			 limit ? index_limit(v, n, cond) : index_quotient(v, n, &q, cond));
}

/* A part of an index. */
static const char *index_part(Lanes *v, Node *n, Node *cond, bool cut)
{
	Arena *m = &v->e->ir->arena;
	const char *name = lane_type(v, RICCI_I32);
	if (n == v->loop->axis)
		return arena_printf(m, "%s_number", name);
	Node *from = n->op == OP_CAST ? n->src[0] : n;
	const char *result = index_operation(v, n, cond),
		   *text = result ? result : value(v, from, cond);
	Type t = result ? RICCI_I32 : lanes_type(from->type);
	if (cut && lane_index_cut(n))
		text = cut_text(v, t, text);
	return t == RICCI_I64 ? arena_printf(m, "__builtin_convertvector(%s, %s)", text, name)
			      : text;
}

static const char *index_text(Lanes *v, const LaneIndex *x, Node *cond, bool cut)
{
	Arena *m = &v->e->ir->arena;
	const char *name = lane_type(v, RICCI_I32);
	const char *text =
		arena_printf(m, "%s_all((int)(%s))", name, emit_value(v->e, x->common, false));
	for (int j = 0; j < x->n; j++) {
		const char *part = index_part(v, x->atom[j], cond, cut);
		const char *k = arena_printf(m, "%s_all(%d)", name, (int32_t)x->k[j]);
		part = x->k[j] == 1 ? part : arithmetic(v, RICCI_I32, part, '*', k);
		text = arithmetic(v, RICCI_I32, text, '+', part);
	}
	return text;
}

/* Integers of 32 bits as type t. */
static const char *of_index(Lanes *v, const char *text, Type t)
{
	return t == RICCI_I32 ? text
			      : arena_printf(&v->e->ir->arena, "__builtin_convertvector(%s, %s)",
					     text, lane_type(v, t));
}

static const char *comparison(Lanes *v, Node *c, Node *cond, Type t);

/* What a comparison of type `of` gives, for values of type t. */
static const char *as_long(Lanes *v, Type of, Type t, const char *text)
{
	return type_size(of) == type_size(t)
		       ? text
		       : arena_printf(&v->e->ir->arena, "__builtin_convertvector(%s, %s_i)", text,
				      lane_type(v, t));
}

/* Both sides of a comparison, as type t. */
static void compare_sides(Lanes *v, const Node *c, Node *cond, Type t, const char **side)
{
	LaneIndex x[2];
	bool exact = true;
	for (int k = 0; k < 2; k++) {
		if (c->src[k]->type != RICCI_I64) {
			side[k] = value(v, c->src[k], cond);
			continue;
		}
		x[k] = lane_index(v->e->ir, c->src[k], v->loop, false);
		exact &= lane_index_exact(&x[k]);
	}
	for (int k = 0; k < 2 && c->src[0]->type == RICCI_I64; k++)
		side[k] = of_index(v, index_text(v, &x[k], cond, !exact), t);
}

static const char *comparison_text(Lanes *v, Node *c, Node *cond, Type t)
{
	Ir *ir = v->e->ir;
	Arena *m = &ir->arena;
	if (c->op == OP_NOT)
		return arena_printf(m, "(~%s)", comparison(v, c->src[0], cond, t));
	if (c->op == OP_READ)
		return as_long(v, RICCI_I32, t,
			       arena_printf(m, "(%s_i)(%s != 0)", lane_type(v, RICCI_I32),
					    value(v, c, cond)));
	if (c->op == OP_AND) { /* (places may be valid only where what stands before holds) */
		const char *first = comparison(v, c->src[0], cond, t);
		cond = lanes_look_up_any(ir, c->src[1], v->loop) ? node_and(ir, cond, c->src[0])
								 : cond;
		return arena_printf(m, "(%s & %s)", first, comparison(v, c->src[1], cond, t));
	}
	if (c->op == OP_OR)
		return arena_printf(m, "(%s | %s)", comparison(v, c->src[0], cond, t),
				    comparison(v, c->src[1], cond, t));
	Type of = c->src[0]->type == RICCI_I64 ? RICCI_I32 : lanes_type(c->src[0]->type);
	const char *side[2];
	compare_sides(v, c, cond, of, side);
	const char *text = arena_printf(m, "((%s_i)(%s %s %s))", lane_type(v, of), side[0],
					op_info[c->op].text, side[1]);
	return as_long(v, of, t, text);
}

/* Lanes that compare values: a vector of integers of the size of t's, all bits set where c holds. */
static const char *comparison(Lanes *v, Node *c, Node *cond, Type t)
{
	Arena *m = &v->e->ir->arena;
	t = lanes_type(t);
	const char *name = lane_type(v, t);
	Kept key = {.read = c, .cond = cond, .type = name};
	if (!lanes_vary(c, v->loop))
		return arena_printf(m, "%s_agree(%s)", name, lane_uniform(v, c));
	const char *text = lane_kept(v, key);
	if (text)
		return text;
	text = comparison_text(v, c, cond, t);
	return strlen(text) > TEXT_LONG ? lane_keep(v, arena_printf(m, "%s_i", name), key, text)
					: text;
}

/* Parts the conditions: the lanes' places decide *masks, their values *compared. */
static void part_conditions(Lanes *v, Node *cond, Node **masks, Node **compared)
{
	Ir *ir = v->e->ir;
	Node **part;
	int n = cond ? node_parts(ir, cond, OP_AND, &part) : 0;
	for (int k = 0; k < n; k++) {
		bool compares = lanes_decide(ir, part[k], v->loop) == LANES_COMPARE;
		Node **to = compares ? compared : masks;
		*to = node_and(ir, *to, part[k]);
	}
}

/* Is n zero in lanes that are no iteration, or outside the mask that it is computed under? Loads under masks are, and
 * sums and products of them. */
static bool is_zero_outside(const Lanes *v, Node *n)
{
	if (n->op == OP_READ)
		return lane_loaded(v, n);
	if (n->op == OP_CONST)
		return n->u.f == 0;
	if (n->op == OP_SELECT)
		return is_zero_outside(v, n->src[1]) && is_zero_outside(v, n->src[2]);
	return (n->op == OP_MUL || n->op == OP_ADD || n->op == OP_SUB) &&
	       is_zero_outside(v, n->src[0]) && is_zero_outside(v, n->src[1]);
}

static const char *select_text(Lanes *v, Node *n, Node *cond)
{
	Ir *ir = v->e->ir;
	Node *masks = cond, *compared = NULL, *other = n->src[2];
	part_conditions(v, n->src[0], &masks, &compared);
	bool look = lanes_look_up_any(ir, n->src[1], v->loop);
	const char *x = value(v, n->src[1], look ? node_and(ir, masks, compared) : masks);
	bool zero = other->op == OP_CONST && other->u.f == 0 && !signbit(other->u.f);
	if (!compared && zero && is_zero_outside(v, n->src[1]))
		return x;
	const char *mask = masks == cond ? NULL : lane_mask(v, n->type, masks, 1, 0);
	if (!mask && !compared)
		return x;
	/* What was looked up in the whole loop can be a line in these lanes, and still reach outside. */
	look = lanes_look_up_any(ir, other, v->loop) || (mask && !reads_inside(ir, other));
	const char *y =
		value(v, other, look ? node_and(ir, cond, node1(ir, OP_NOT, n->src[0])) : cond);
	if (compared)
		x = arena_printf(&ir->arena, "%s_either(%s, %s, %s)", lane_type(v, n->type),
				 comparison(v, compared, masks, n->type), x, y);
	return mask ? arena_printf(&ir->arena, "%s_pick(%s, %s, %s)", lane_type(v, n->type), mask,
				   x, y)
		    : x;
}

/* A function of scalars for all lanes; of the mathematical ones it is declared. */
static const char *function(Lanes *v, Node *n, const char *a, const char *b)
{
	Emit *e = v->e;
	Arena *m = &e->ir->arena;
	const char *t = lane_type(v, n->type),
		   *text = arena_printf(m, "%s_%s", t, op_info[n->op].text);
	if (n->op != OP_MIN && n->op != OP_MAX) {
		e->uses_math |= type_is_float(n->type);
		lane_declare(e, text,
			     arena_printf(m, "RK_MAP%d(%s, %s, %lld, %s, %s_%s_%s)", b ? 2 : 1, t,
					  dialect_compute[n->type], (long long)lane_width(v), text,
					  type_is_float(n->type) ? "ricci" : "rk",
					  op_info[n->op].text, emit_suffix(n->type)));
	}
	return b ? arena_printf(m, "%s(%s, %s)", text, a, b) : arena_printf(m, "%s(%s)", text, a);
}

/* What each lane draws. */
static const char *draw(Lanes *v, const Node *n)
{
	Emit *e = v->e;
	Arena *m = &e->ir->arena;
	Node *axis = v->loop->axis, *zero = node_int(e->ir, 0), *element = n->src[1];
	const char *t = lane_type(v, RICCI_F32), *function = op_info[n->op].text;
	const char *name = arena_printf(m, "%s_%s", t, function);
	e->uses_math = true;
	lane_declare(e, name,
		     arena_printf(m, "RK_DRAW(%s, %lld, %s, ricci_%s)", t, (long long)lane_width(v),
				  name, function));
	return arena_printf(m, "%s((uint64_t)%s, %lldL, (uint64_t)%s, seed, step)", name,
			    emit_value(e, node_replace(e->ir, element, 1, &axis, &zero), false),
			    (long long)affine_stride(e->ir, element, axis),
			    emit_value(e, n->src[0], false));
}

/* Lanes of a, of type `from`, as `to`, by a function of scalars. */
static const char *cast_call(Lanes *v, Type from, Type to, const char *function, const char *a)
{
	Arena *m = &v->e->ir->arena;
	const char *t = lane_type(v, to), *name = arena_printf(m, "%s_%s", t, function);
	long long n = lane_width(v);
	from = lanes_type(from);
	lane_declare(
		v->e, name,
		arena_printf(
			m, "RK_EACH(%s, %s, %lld, %s, (%s v), RK_ARRAY(%s, %lld, a, v), %s(a[i]))",
			t, dialect_compute[lanes_type(to)], n, name, lane_type(v, from),
			dialect_compute[from], n, function));
	return arena_printf(m, "%s(%s)", name, a);
}

/* The cast n of a, whose lanes are of type `from`. */
static const char *cast_text(Lanes *v, const Node *n, Type from, const char *a)
{
	Arena *m = &v->e->ir->arena;
	Type to = n->type;
	const char *t = lane_type(v, to), *function = emit_cast_function(v->e, n);
	if (function)
		return cast_call(v, from, to, function, a);
	if (lanes_type(from) != lanes_type(to))
		a = arena_printf(m, "__builtin_convertvector(%s, %s)", a, t);
	if (!type_is_float(to) || lanes_type(to) == to || from == to)
		return a;
	lane_access(v, to, "store", false);
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
	if (node_draws(n))
		return draw(v, n);
	for (int k = 0; k < n->nsrc; k++)
		if (is_limit(n, k))
			return arena_printf(m, "%s_%s(%s, %s)", lane_type(v, n->type),
					    n->op == OP_MIN ? "most" : "least",
					    value(v, n->src[1 - k], cond),
					    value(v, n->src[k], cond));
	if (n->op == OP_CAST && n->src[0]->type == RICCI_I64) {
		Type t = lanes_type(n->type);
		LaneIndex x = lane_index(e->ir, n->src[0], v->loop, false);
		return cast_text(v, n, t, of_index(v, index_text(v, &x, cond, false), t));
	}
	const char *a = value(v, n->src[0], cond);
	if (n->op == OP_CAST)
		return cast_text(v, n, n->src[0]->type, a);
	if (n->op == OP_NEG)
		return arena_printf(m, "(-%s)", a);
	if (n->op == OP_DIV && inverts(v, n->src[1]))
		return arena_printf(m, "%s_over(%s, %s)", lane_type(v, n->type), a,
				    emit_value(e, n->src[1], false));
	const char *b = n->nsrc > 1 ? value(v, n->src[1], cond) : NULL;
	return op_info[n->op].form == FORM_INFIX ? arithmetic(v, n->type, a, *text, b)
						 : function(v, n, a, b);
}

/* The lanes where cond holds, of their number and of what they compare, as integers of which all bits are set; NULL:
 * all of them. */
static const char *lanes_where(Lanes *v, Node *cond)
{
	Arena *m = &v->e->ir->arena;
	Node *masks = NULL, *compared = NULL;
	part_conditions(v, cond, &masks, &compared);
	const char *name = lane_type(v, RICCI_I32), *mask = lane_mask(v, RICCI_I32, masks, 1, 0);
	const char *holds = compared ? comparison(v, compared, masks, RICCI_I32) : NULL;
	if (!mask)
		return holds;
	mask = arena_printf(m, "%s_pick(%s, %s_all(-1), %s_all(0))", name, mask, name, name);
	return holds ? arena_printf(m, "(%s & %s)", mask, holds) : mask;
}

/* A read at places that each lane computes: where cond doesn't hold, of the tensor's first element. */
static const char *look_up(Lanes *v, Node *n, Node *cond)
{
	Emit *e = v->e;
	Arena *m = &e->ir->arena;
	Kept key = {.read = n, .cond = cond};
	const char *known = lane_kept(v, key);
	if (known)
		return known;
	const char *t = lane_type(v, n->type), *index = lane_type(v, RICCI_I32);
	LaneIndex x = lane_index(e->ir, n->src[1], v->loop, true);
	const char *at = index_text(v, &x, cond, false);
	const char *where = lanes_where(v, cond);
	const char *name = lane_access(v, n->type, "look_up", false);
	bool narrow = lanes_type(n->type) != n->type;
	lane_declare(e, name,
		     narrow ? arena_printf(m, "RK_NARROW_LOOK_UP(%s, %s, %s, %s, %lld)", t,
					   dialect_ctype[n->type], type_name(n->type), index,
					   (long long)lane_width(v))
			    : arena_printf(m, "RK_LOOK_UP(%s, %s, %s, %lld)", t,
					   dialect_compute[n->type], index,
					   (long long)lane_width(v)));
	if (where)
		at = arena_printf(m, "(%s & %s)", at, where);
	return lane_keep(v, t, key,
			 arena_printf(m, "%s(%s, %s)", name,
				      emit_address(e, n->src[0], node_int(e->ir, 0)), at));
}

/* n in the lanes where cond (NULL: nothing) holds. */
static const char *value(Lanes *v, Node *n, Node *cond)
{
	Kept key = {.read = n, .cond = cond};
	if (!lanes_vary(n, v->loop))
		return arena_printf(&v->e->ir->arena, "%s_all(%s)", lane_type(v, n->type),
				    lane_uniform(v, n));
	if (n->op == OP_READ)
		return lanes_look_up(v->e->ir, n, v->loop) ? look_up(v, n, cond)
							   : lane_load(v, n, cond);
	if (n->type == RICCI_BOOL)
		return arena_printf(&v->e->ir->arena, "(%s)(%s & 1)", lane_type(v, RICCI_I32),
				    comparison(v, n, cond, RICCI_I32));
	const char *text = lane_kept(v, key);
	if (text)
		return text;
	text = n->op == OP_SELECT ? select_text(v, n, cond) : operation(v, n, cond);
	bool rounds = n->op == OP_CAST && node_flops(n) > 0;
	bool call = rounds || (n->op != OP_SELECT && op_info[n->op].form == FORM_CALL);
	return call || strlen(text) > TEXT_LONG ? lane_keep(v, lane_type(v, n->type), key, text)
						: text;
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
		       : arena_printf(&v->e->ir->arena, "%s_%s(%s, %s)", lane_type(v, t),
				      s->red == RED_MAX ? "max" : "min", x, at);
}

/* A variable red= its value. */
static void store_own(Lanes *v, const Stmt *s)
{
	const char *x = s->red == RED_ADD ? term(v, s->value) : value(v, s->value, NULL);
	emit_line(v->e, "%s = %s;", s->buffer->u.s, combined(v, s, s->buffer->u.s, x));
}

/* Do the loops around it leave the place where it is, so that it stays in registers? */
static bool in_registers(const Lanes *v, const Stmt *s)
{
	return lane_room(v, s->buffer, s->index) &&
	       node_is_const(node_sub(v->e->ir, s->index, v->loop->axis));
}

/* Do lanes that are no iteration of this loop hold what others may need? */
static bool keeps_others(const Lanes *v, const Stmt *s)
{
	int64_t used = tree_find(v->e->tree, s->buffer)->used;
	bool last = used > 0 && node_is_const(v->loop->hi) && v->loop->hi->u.i >= used;
	return !last && !(s->red == RED_ADD && is_zero_outside(v, s->value));
}

/* place red= x where the mask (NULL: everywhere) holds. Tiles have room for whole vectors: some processors take
 * long to store parts, and to load what was stored so. */
static void store_result(Lanes *v, const Stmt *s, const char *x, const char *mask)
{
	Arena *m = &v->e->ir->arena;
	bool variable = lane_variable(v, s->buffer);
	const char *place = variable ? s->buffer->u.s : lane_place(v, s->buffer, s->index);
	Type to = (Type)s->buffer->type;
	const char *t = lane_type(v, to);
	int64_t step = variable ? 1 : affine_stride(v->e->ir, s->index, v->loop->axis);
	if (step != 1) {
		emit_line(v->e, "%s(&%s, %lldL, %s, %s);", lane_access(v, to, "scatter", false),
			  place, (long long)step, emit_value(v->e, v->loop->hi, false), x);
		return;
	}
	bool adds = s->red != RED_NONE, some = mask && !lane_room(v, s->buffer, s->index);
	bool whole = adds ? variable || !some : in_registers(v, s);
	const char *old = place;
	if (!variable && (adds || whole)) {
		const char *load = lane_access(v, to, "load", !whole);
		old = whole ? arena_printf(m, "%s(&%s)", load, place)
			    : arena_printf(m, "%s(&%s, %s)", load, place, mask);
	}
	x = combined(v, s, old, x);
	if (mask && whole && keeps_others(v, s))
		x = arena_printf(m, "%s_pick(%s, %s, %s)", t, mask, x, old);
	if (variable)
		emit_line(v->e, "%s = %s;", place, x);
	else if (mask && !whole)
		emit_line(v->e, "%s(&%s, %s, %s);", lane_access(v, to, "store", true), place, x,
			  mask);
	else
		emit_line(v->e, "%s(&%s, %s);", lane_access(v, to, "store", false), place, x);
}

/* place red= what all lanes give. */
static void store_fold(Lanes *v, const Stmt *s)
{
	static const char *const fold[RED_COUNT] = {"", "sum", "product", "highest", "lowest"};
	Emit *e = v->e;
	Arena *m = &e->ir->arena;
	Type t = s->buffer->type;
	const char *name = lane_type(v, t), *c = lane_added_as[t];
	const char *x = s->red == RED_ADD ? term(v, s->value) : value(v, s->value, NULL);
	const char *mask = lane_mask(v, t, NULL, 1, 0),
		   *at = emit_place(e, s->buffer, s->index, false);
	Node *none = node_identity(e->ir, s->red, t, t);
	lane_declare(e, arena_printf(m, "%s_sum", name),
		     arena_printf(m, "RK_FOLDS(%s, %s, %lld)", name, dialect_compute[t],
				  (long long)lane_width(v)));
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
			       lanes_vary(n, v->loop) && !lane_variable(v, s->buffer)
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
		emit_line(e, "const %s %s = %s;", lane_type(v, i->buffer->type), name[n++], x);
	}
	for (n = 0; s != i; s = s->next, n++) {
		mask = lane_mask(v, s->buffer->type, NULL, 1, 0);
		if (!mask && s->next != i && lanes_interleave(v->e->ir, v->loop, s)) {
			emit_line(e, "%s(&%s, %s, %s);",
				  lane_access(v, s->buffer->type, "interleave", false),
				  lane_place(v, s->buffer, s->index), name[n], name[n + 1]);
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
			emit_line(e, "%s %s = {0};", lane_type(v, s->buffer->type), s->buffer->u.s);
		else
			(lanes_own(loop, s->buffer) ? store_own : store_fold)(v, s);
		values_forget(v);
		s = s->next;
	}
	emit_line(e, "}");
	emit_close(e);
}

/* predicates.c - LANES loops as vectors under masks (jit/tree/predicates.c makes them).
 *
 * Input: a LANES loop. Output: its statements, each over all lanes at once, in the types and
 * functions of Dialect.lanes. Invariant: nothing is read or written where a lane is no iteration,
 * or where its conditions do not hold. What is loaded is kept to the loop's end: the loop writes
 * none of what it reads. */
#include "jit/emit/internal.h"

#include <math.h>
#include <string.h>

typedef struct Kept {
	const Node *read, *cond; /* read: or another value; NULL: the mask */
	int64_t step, from;
	const char *name;
} Kept;

typedef struct Lanes {
	Emit *e;
	const Stmt *loop;
	Kept *kept;
	int nkept, room;
} Lanes;

static const char *kept_find(const Lanes *v, Kept key)
{
	for (int k = 0; k < v->nkept; k++)
		if (v->kept[k].read == key.read && v->kept[k].cond == key.cond &&
		    v->kept[k].step == key.step && v->kept[k].from == key.from)
			return v->kept[k].name;
	return NULL;
}

static const char *keep(Lanes *v, const char *type, Kept key, const char *text)
{
	Emit *e = v->e;
	key.name = arena_printf(&e->ir->arena, "t%d", e->nname++);
	emit_line(e, "const %s %s = %s;", type, key.name, text);
	v->kept = arena_grow(&e->ir->arena, v->kept, v->nkept, &v->room, sizeof *v->kept);
	v->kept[v->nkept++] = key;
	return key.name;
}

/* The lanes lo..hi-1 for which the parts of cond that differ between lanes hold, and the rest of
 * it. */
static void mask_parts(Lanes *v, Node *cond, Node **lo, Node **hi, Node **common)
{
	Ir *ir = v->e->ir;
	Node **part;
	int n = node_parts(ir, cond, OP_AND, &part);
	for (int k = 0; k < n; k++)
		if (lanes_vary(ir, part[k], v->loop))
			cond_interval(ir, part[k], v->loop->axis, lo, hi);
		else
			*common = *common ? node2(ir, OP_AND, *common, part[k]) : part[k];
}

/* Where lanes take every step-th element: the mask of those from `from` on that the lanes take for
 * which cond (NULL: nothing) holds, and of what lies between them; NULL: all. */
static const char *mask_of(Lanes *v, Node *cond, int64_t step, int64_t from)
{
	Emit *e = v->e;
	Ir *ir = e->ir;
	Kept key = {NULL, cond, step, from, NULL};
	Node *lo = v->loop->lo, *hi = v->loop->hi, *common = NULL;
	const char *known = kept_find(v, key);
	if (known)
		return known;
	if (cond)
		mask_parts(v, cond, &lo, &hi, &common);
	lo = node_add(ir, node_scale(ir, lo, step), node_int(ir, -from));
	hi = node_add(ir, node_scale(ir, hi, step), node_int(ir, 1 - step - from));
	if (!common && lo->hi <= 0 && hi->lo >= axis_extent(v->loop->axis))
		return NULL;
	const char *text = arena_printf(&ir->arena, "rk_lanes(%s, %s)", emit_value(e, lo, false),
					emit_value(e, hi, false));
	if (common)
		text = arena_printf(&ir->arena, "rk_where(%s, %s)", emit_value(e, common, false),
				    text);
	return keep(v, "rk_m", key, text);
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
	const char *mask = whole ? NULL : mask_of(v, cond, step, from);
	const char *at = place_of(v, n->src[0], index);
	return mask ? arena_printf(&ir->arena, "rk_load(&%s, %s)", at, mask)
		    : arena_printf(&ir->arena, "rk_load_all(&%s)", at);
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
	const char *text = load_part(v, n, cond, step, 0);
	if (step == 2)
		text = arena_printf(&ir->arena, "rk_even(%s, %s)", text,
				    load_part(v, n, cond, step, axis_extent(v->loop->axis)));
	return keep(v, "rk_v", key, text);
}

static const char *value(Lanes *v, Node *n, Node *cond);

/* Is it zero where a mask leaves it out? */
static bool is_loaded(const Lanes *v, Node *n)
{
	return n->op == OP_READ && !is_variable(v, n->src[0]) && lanes_vary(v->e->ir, n, v->loop);
}

/* Lanes that compare values: a vector of integers, all bits set where c holds. */
static const char *comparison(Lanes *v, Node *c, Node *cond)
{
	Arena *m = &v->e->ir->arena;
	if (!lanes_vary(v->e->ir, c, v->loop))
		return arena_printf(m, "rk_agree(%s)", emit_value(v->e, c, false));
	if (c->op == OP_NOT)
		return arena_printf(m, "(~%s)", comparison(v, c->src[0], cond));
	if (c->op == OP_AND || c->op == OP_OR)
		return arena_printf(m, "(%s %s %s)", comparison(v, c->src[0], cond),
				    c->op == OP_AND ? "&" : "|", comparison(v, c->src[1], cond));
	return arena_printf(m, "(%s %s %s)", value(v, c->src[0], cond), op_info[c->op].text,
			    value(v, c->src[1], cond));
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
	const char *mask = both == cond ? NULL : mask_of(v, both, 1, 0);
	if (!mask && !compared)
		return x;
	const char *y = value(v, other, cond);
	if (compared)
		x = arena_printf(&ir->arena, "rk_either(%s, %s, %s)", comparison(v, compared, both),
				 x, y);
	return mask ? arena_printf(&ir->arena, "rk_pick(%s, %s, %s)", mask, x, y) : x;
}

/* A function of scalars for all lanes; of the mathematical ones it is declared. */
static const char *function(Lanes *v, Node *n, const char *a, const char *b)
{
	Emit *e = v->e;
	Arena *m = &e->ir->arena;
	const char *text = op_info[n->op].text;
	if (n->op != OP_MIN && n->op != OP_MAX) {
		e->uses_math = true;
		emit_declare(e, arena_printf(m, "RK_MAP%d(rk_v%s, ricci_%s_f32)", b ? 2 : 1, text,
					     text));
	}
	return b ? arena_printf(m, "rk_v%s(%s, %s)", text, a, b)
		 : arena_printf(m, "rk_v%s(%s)", text, a);
}

/* Is source number k of a minimum or maximum a constant, so that one comparison does? */
static bool is_limit(const Node *n, int k)
{
	return (n->op == OP_MIN || n->op == OP_MAX) && n->src[k]->op == OP_CONST &&
	       !isnan(n->src[k]->u.f);
}

static const char *operation(Lanes *v, Node *n, Node *cond)
{
	Emit *e = v->e;
	Arena *m = &e->ir->arena;
	const char *text = op_info[n->op].text;
	for (int k = 0; k < n->nsrc; k++)
		if (is_limit(n, k))
			return arena_printf(m, "rk_v%s(%s, %s)", n->op == OP_MIN ? "most" : "least",
					    value(v, n->src[1 - k], cond),
					    value(v, n->src[k], cond));
	const char *a = value(v, n->src[0], cond);
	if (n->op == OP_NEG)
		return arena_printf(m, "(-%s)", a);
	const char *b = n->nsrc > 1 ? value(v, n->src[1], cond) : NULL;
	if (n->op == OP_DIV && emit_inverts(n->src[1]))
		return arena_printf(m, "rk_vover(%s, %s)", a, b);
	return op_info[n->op].form == FORM_INFIX ? arena_printf(m, "(%s %s %s)", a, text, b)
						 : function(v, n, a, b);
}

/* n in the lanes where cond (NULL: nothing) holds. */
static const char *value(Lanes *v, Node *n, Node *cond)
{
	Kept key = {.read = n, .cond = cond};
	if (!lanes_vary(v->e->ir, n, v->loop))
		return arena_printf(&v->e->ir->arena, "rk_all(%s)", emit_value(v->e, n, false));
	if (n->op == OP_READ)
		return load(v, n, cond);
	const char *text = kept_find(v, key);
	if (text)
		return text;
	text = n->op == OP_SELECT ? select_text(v, n, cond) : operation(v, n, cond);
	bool call = n->op != OP_SELECT && op_info[n->op].form == FORM_CALL;
	return call || strlen(text) > TEXT_LONG ? keep(v, "rk_v", key, text) : text;
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

/* at red= x, as a value. */
static const char *combined(Lanes *v, Reduce red, const char *at, const char *x)
{
	Arena *m = &v->e->ir->arena;
	if (red == RED_NONE)
		return x;
	return red == RED_ADD || red == RED_MUL
		       ? arena_printf(m, "%s %c %s", at, red == RED_ADD ? '+' : '*', x)
		       : arena_printf(m, "rk_v%s(%s, %s)", red == RED_MAX ? "max" : "min", at, x);
}

/* A variable red= its value. */
static void store_own(Lanes *v, const Stmt *s)
{
	const char *x = s->red == RED_ADD ? term(v, s->value) : value(v, s->value, NULL);
	emit_line(v->e, "%s = %s;", s->buffer->u.s, combined(v, s->red, s->buffer->u.s, x));
}

/* Is n zero in lanes that are no iteration? Loads under masks are, and what is made of them. */
static bool is_zero_outside(const Lanes *v, Node *n)
{
	if (n->op == OP_READ)
		return is_loaded(v, n) && !has_room(v, n->src[0], n->src[1]);
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

/* place red= x where the mask (NULL: everywhere) holds. Sums in tiles have room for whole vectors:
 * some processors take long to store parts, and to load what was stored so. */
static void store_result(Lanes *v, const Stmt *s, const char *x, const char *mask)
{
	Arena *m = &v->e->ir->arena;
	bool variable = is_variable(v, s->buffer);
	const char *place = variable ? s->buffer->u.s : place_of(v, s->buffer, s->index);
	bool whole = s->red != RED_NONE || in_registers(v, s);
	const char *old = variable ? place
			  : whole  ? arena_printf(m, "rk_load_all(&%s)", place)
				   : NULL;
	x = combined(v, s->red, old, x);
	if (mask && whole && !(s->red == RED_ADD && is_zero_outside(v, s->value)))
		x = arena_printf(m, "rk_pick(%s, %s, %s)", mask, x, old);
	if (variable)
		emit_line(v->e, "%s = %s;", place, x);
	else if (mask && !whole)
		emit_line(v->e, "rk_store(&%s, %s, %s);", place, x, mask);
	else
		emit_line(v->e, "rk_store_all(&%s, %s);", place, x);
}

/* place red= what all lanes give. */
static void store_fold(Lanes *v, const Stmt *s)
{
	static const char *const fold[RED_COUNT] = {"", "sum", "product", "highest", "lowest"};
	Emit *e = v->e;
	Ir *ir = e->ir;
	const char *x = s->red == RED_ADD ? term(v, s->value) : value(v, s->value, NULL);
	const char *mask = mask_of(v, NULL, 1, 0), *at = emit_place(e, s->buffer, s->index, false);
	Node *none = node_identity(ir, s->red, RICCI_F32, RICCI_F32);
	if (mask)
		x = arena_printf(&ir->arena, "rk_pick(%s, %s, rk_all(%s))", mask, x,
				 emit_value(e, none, false));
	x = arena_printf(&ir->arena, "rk_%s(%s)", fold[s->red], x);
	if (s->red == RED_MAX || s->red == RED_MIN)
		emit_line(e, "%s = rk_%s_f32(%s, %s);", at, s->red == RED_MAX ? "max" : "min", at,
			  x);
	else
		emit_line(e, "%s %s %s;", at, s->red == RED_ADD ? "+=" : "*=", x);
}

/* Do the lanes store elements that follow each other? */
static bool is_result(const Lanes *v, const Stmt *s)
{
	return s->kind == STMT_STORE && node_has(s->index, v->loop->axis);
}

/* Results that follow each other: all values come first (emit.c, stores). Returns what is next. */
static const Stmt *store_results(Lanes *v, const Stmt *s)
{
	Emit *e = v->e;
	const char *name[EMIT_MAX_SCOPES];
	int n = 0;
	const Stmt *i = s;
	for (; i && is_result(v, i) && n < COUNT(name); i = i->next) {
		const char *x = i->red == RED_ADD ? term(v, i->value) : value(v, i->value, NULL);
		name[n] = arena_printf(&e->ir->arena, "t%d", e->nname++);
		emit_line(e, "const rk_v %s = %s;", name[n++], x);
	}
	const char *mask = mask_of(v, NULL, 1, 0);
	for (n = 0; s != i; s = s->next)
		store_result(v, s, name[n++], mask);
	return i;
}

void emit_lanes(Emit *e, const Stmt *loop)
{
	Lanes *v = arena_alloc(&e->ir->arena, sizeof *v);
	*v = (Lanes){.e = e, .loop = loop};
	e->uses_lanes = true;
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
			emit_line(e, "rk_v %s;", s->buffer->u.s);
		else
			(lanes_own(loop, s->buffer) ? store_own : store_fold)(v, s);
		values_forget(v);
		s = s->next;
	}
	emit_line(e, "}");
	emit_close(e);
}

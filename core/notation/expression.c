/* expression.c - typed syntax trees to nodes. Input: an Elab whose indices have values (provisional
 * ones while collecting) and a tree with Ast.value set. Output: the node, of the type that is
 * wanted. Invariant: conditions under which a part is evaluated are on e->guard while it is built,
 * so each access is constrained, or proved, where it counts. */
#include "core/notation/internal.h"
#include <math.h>

static Type natural(const Ast *a, Type want)
{
	switch (a->value) {
	case KIND_NUMBER:
	case KIND_INT:
		return RICCI_I64;
	case KIND_FLOAT:
		return type_is_float(want) ? want : RICCI_F32;
	case KIND_LOGIC:
		return RICCI_BOOL;
	default:
		return (Type)a->value;
	}
}

static void see_index_as_float(void *found, Node *n)
{
	*(bool *)found |=
		n->op == OP_CAST && type_is_float((Type)n->type) && n->src[0]->type == RICCI_I64;
}

/* What is evaluated under the present conditions and cond. One on data alone says nothing about
 * ranges but that there is one. */
static Guard *guard_under(Elab *e, Node *cond)
{
	bool indices = !e->collecting || node_is_const(cond) || node_compares_int(e->ir, cond);

	if (node_is_value(cond, 1))
		return e->guard;
	if (!indices)
		node_walk(e->ir, cond, see_index_as_float, &indices);
	if (!indices && e->guard != e->own)
		return e->guard;
	return guard_push(e->ir, e->guard, indices ? cond : node_const_int(e->ir, RICCI_BOOL, 1));
}

/* The tree a as it is under cond. */
static Node *under(Elab *e, Node *cond, Ast *a, Type t)
{
	Guard *saved = e->guard;

	e->guard = guard_under(e, cond);
	Node *n = elab_expr(e, a, t);
	e->guard = saved;
	return n;
}

static Node *elab_condition(Elab *e, Ast *a)
{
	if (a->value == KIND_LOGIC || a->value == RICCI_BOOL)
		return elab_expr(e, a, RICCI_BOOL);
	Type t = natural(a, RICCI_F32);
	Node *x = elab_expr(e, a, t);

	return node2(e->ir, OP_NE, x, node_const_int(e->ir, t, 0));
}

Constraint *elab_constrain(Elab *e, Node *index, int64_t extent, const Ast *access, int dimension)
{
	e->con = arena_grow(&e->ir->arena, e->con, e->ncon, &e->room, sizeof *e->con);
	e->con[e->ncon++] = (Constraint){.index = index,
					 .extent = extent,
					 .guard = e->guard,
					 .conditional = e->guard != e->own,
					 .access = access,
					 .dimension = dimension};
	return &e->con[e->ncon - 1];
}

/* ---- accesses ---- */

static void build_indices(Elab *e, Ast *a, Node **index)
{
	for (int d = 0; d < a->n; d++)
		index[d] = elab_expr(e, a->arg[d], RICCI_I64);
}

static Node *build_access(Elab *e, Ast *a)
{
	Node *tensor = a->name->tensor, *index[RICCI_MAX_RANK];

	build_indices(e, a, index);
	for (int d = 0; d < a->n; d++) {
		if (e->collecting)
			elab_constrain(e, index[d], tensor_extent(tensor, d), a, d);
		else
			access_prove(e, a, a->arg[d], d, index[d], tensor_extent(tensor, d));
	}
	return node_read(e->ir, tensor, index);
}

/* access else value: bare names in it take the dimension's extent, everything else may leave. */
static Node *build_else(Elab *e, Ast *a, Type t)
{
	Ast *x = a->arg[0];
	Node *tensor = x->name->tensor, *index[RICCI_MAX_RANK];

	build_indices(e, x, index);
	for (int d = 0; d < x->n && !e->collecting; d++)
		access_check_wrap(e, x, x->arg[d], index[d]);
	if (e->collecting) {
		Guard *saved = e->guard;
		e->guard = NULL;
		for (int d = 0; d < x->n; d++)
			if (x->arg[d]->kind == AST_NAME)
				elab_constrain(e, index[d], tensor_extent(tensor, d), x, d)
					->conditional = false;
		e->guard = saved;
	}
	Node *inside = inside_condition(e->ir, tensor, index);
	Node *read = node_read(e->ir, tensor, index);
	if (read->type != t)
		read = node_cast(e->ir, t, read);
	Node *other = under(e, node_not(e->ir, inside), a->arg[1], t);
	return node_select(e->ir, inside, read, other);
}

/* ---- operators ---- */

static Node *build_quotient(Elab *e, Ast *a, Node *x, Node *y)
{
	Op op = a->op == TOK_PERCENT ? OP_FLOORMOD : OP_FLOORDIV;
	Ast *divisor = a->arg[1];

	if (!node_is_const(y))
		notation_fail(e->src, RICCI_ESHAPE, divisor->pos,
			      "division by a variable: integers divide by constants only, %s is "
			      "none",
			      ast_text(e->src, divisor));
	if (y->u.i < 1)
		notation_fail(e->src, RICCI_ESHAPE, divisor->pos,
			      "integers divide by positive constants only, not by %lld",
			      (long long)y->u.i);
	return node2(e->ir, op, x, y);
}

/* The integer that compares with all integers as the number v does: v rounded up or down. */
static Node *rounded_number(Ir *ir, double v, bool up)
{
	v = up ? ceil(v) : floor(v);
	return node_int(ir, v < -0x1p62 ? INT64_MIN : v > 0x1p62 ? INT64_MAX : (int64_t)v);
}

static bool is_number(Source *s, Ast *a)
{
	bool yes = a->kind != AST_NAME && a->kind != AST_ACCESS && a->kind != AST_ELSE;

	if (!ast_enter(s, a))
		return true;
	for (int i = 0; i < a->n && yes; i++)
		yes = is_number(s, a->arg[i]);
	return yes;
}

/* An index expression beside a float number: exact, and a condition that proofs understand. NULL
 * where it is none. */
static Node *compare_index(Elab *e, Op op, Ast *x, Ast *y)
{
	bool left = y->value == KIND_FLOAT;
	Ast *index = left ? x : y, *number = left ? y : x;

	e->src->walk++;
	if (number->value != KIND_FLOAT || index->value != KIND_INT || !is_number(e->src, number))
		return NULL;
	Node *n = elab_expr(e, number, RICCI_F64), *i = elab_expr(e, index, RICCI_I64);
	if (!node_is_const(n))
		return NULL;
	double v = n->u.f;
	if (v != v || ((op == OP_EQ || op == OP_NE) && v != floor(v)))
		return node_const_int(e->ir, RICCI_BOOL, op == OP_NE);
	n = rounded_number(e->ir, v, left == (op == OP_LT));
	return left ? node2(e->ir, op, i, n) : node2(e->ir, op, n, i);
}

static Node *build_compare(Elab *e, Ast *a)
{
	int k = typing_join(e->src, a, a->arg[0], a->arg[1], true);
	Type t = k == KIND_INT || k == KIND_NUMBER ? RICCI_I64
		 : k == KIND_FLOAT		   ? RICCI_F32
		 : k == KIND_LOGIC		   ? RICCI_BOOL
						   : (Type)k;
	bool turn = a->op == TOK_GT || a->op == TOK_GE;
	Ast *x = a->arg[turn], *y = a->arg[!turn];
	Op op = a->op == TOK_LT || a->op == TOK_GT   ? OP_LT
		: a->op == TOK_LE || a->op == TOK_GE ? OP_LE
		: a->op == TOK_EQEQ		     ? OP_EQ
						     : OP_NE;
	Node *exact = k == KIND_FLOAT ? compare_index(e, op, x, y) : NULL;

	if (exact)
		return exact;
	Node *left = elab_expr(e, x, t), *right = elab_expr(e, y, t);
	return node2(e->ir, op, left, right);
}

static Node *build_logic(Elab *e, Ast *a)
{
	bool both = a->op == TOK_ANDAND;
	Node *x = elab_condition(e, a->arg[0]);

	Guard *saved = e->guard;
	e->guard = guard_under(e, both ? x : node_not(e->ir, x));
	Node *y = elab_condition(e, a->arg[1]);
	e->guard = saved;
	return node2(e->ir, both ? OP_AND : OP_OR, x, y);
}

/* Numbers don't wrap. */
static void check_number(Elab *e, const Ast *a, const Node *x, const Node *y)
{
	int64_t v;
	bool wraps = a->op == TOK_PLUS	  ? __builtin_add_overflow(x->u.i, y->u.i, &v)
		     : a->op == TOK_MINUS ? __builtin_sub_overflow(x->u.i, y->u.i, &v)
		     : a->op == TOK_STAR  ? __builtin_mul_overflow(x->u.i, y->u.i, &v)
					  : false;

	if (wraps)
		notation_fail(e->src, RICCI_ETYPE, a->pos,
			      "%s does not fit 64 bits; as a float it needs a point",
			      ast_text(e->src, a));
}

static Node *build_binary(Elab *e, Ast *a, Type t)
{
	if (a->op == TOK_ANDAND || a->op == TOK_OROR)
		return build_logic(e, a);
	if (a->value == KIND_LOGIC)
		return build_compare(e, a);
	Node *x = elab_expr(e, a->arg[0], t), *y = elab_expr(e, a->arg[1], t);
	if (a->value == KIND_NUMBER && node_is_const(x) && node_is_const(y))
		check_number(e, a, x, y);
	switch (a->op) {
	case TOK_PLUS:
		return node_add(e->ir, x, y);
	case TOK_MINUS:
		return node_sub(e->ir, x, y);
	case TOK_STAR:
		return node_mul(e->ir, x, y);
	default:
		if (a->op == TOK_SLASH && type_is_float(t))
			return node2(e->ir, OP_DIV, x, y);
		return build_quotient(e, a, x, y);
	}
}

static Node *build_select(Elab *e, Ast *a, Type t)
{
	Node *c = elab_condition(e, a->arg[0]);

	Node *x = under(e, c, a->arg[1], t);
	Node *y = under(e, node_not(e->ir, c), a->arg[2], t);
	return node_select(e->ir, c, x, y);
}

static Node *build_call(Elab *e, Ast *a, Type t)
{
	Op op = call_find(a->name->s);
	Type to;

	if (!op && type_parse(a->name->s, &to)) {
		if (to == RICCI_BOOL)
			return elab_condition(e, a->arg[0]);
		return node_cast(e->ir, to, elab_expr(e, a->arg[0], natural(a->arg[0], to)));
	}
	if (op == OP_RANDOM || op == OP_NORMAL) {
		Node *src[2] = {elab_expr(e, a->arg[0], RICCI_I64), e->element};
		if (a->n == 2)
			src[1] = elab_expr(e, a->arg[1], RICCI_I64);
		return node_make(e->ir, op, RICCI_F32, 2, src, 0);
	}
	Node *x = elab_expr(e, a->arg[0], t);
	return a->n == 1 ? node1(e->ir, op, x) : node2(e->ir, op, x, elab_expr(e, a->arg[1], t));
}

static Node *build(Elab *e, Ast *a, Type t)
{
	switch ((AstKind)a->kind) {
	case AST_INT:
		return node_const_int(e->ir, t, a->u.i);
	case AST_FLOAT:
		return node_const(e->ir, t, a->u.f);
	case AST_NAME:
		return e->index[a->name->slot].value;
	case AST_SIZE:
		return node_int(e->ir, tensor_extent(a->name->tensor, (int)a->u.i));
	case AST_ACCESS:
		return build_access(e, a);
	case AST_ELSE:
		return build_else(e, a, t);
	case AST_CALL:
		return build_call(e, a, t);
	case AST_UNARY:
		if (a->op == TOK_BANG)
			return node_not(e->ir, elab_condition(e, a->arg[0]));
		return node1(e->ir, OP_NEG, elab_expr(e, a->arg[0], t));
	case AST_BINARY:
		return build_binary(e, a, t);
	case AST_SELECT:
		return build_select(e, a, t);
	}
	return NULL;
}

static Node *elab_part(Elab *e, Ast *a, Type want)
{
	int64_t lo, hi;
	Node *n = build(e, a, natural(a, want));

	if (n->type == want)
		return n;
	if (a->value == KIND_NUMBER && type_is_int(want) && node_is_const(n)) {
		type_range(want, &lo, &hi);
		if (n->u.i < lo || n->u.i > hi)
			notation_fail(e->src, RICCI_ETYPE, a->pos, "%s does not fit %s",
				      ast_text(e->src, a), type_name(want));
	}
	return node_cast(e->ir, want, n);
}

static bool guards_same(const Guard *a, const Guard *b)
{
	while (a != b && a && b && a->cond == b->cond) {
		a = a->next;
		b = b->next;
	}
	return a == b;
}

/* Was x made in this pass of that type, under the present conditions or some of them? Then its
 * accesses are constrained, or proved, already. */
static bool is_made(const Elab *e, const Shared *x, Type want)
{
	const Guard *g = e->guard;

	if (x->pass != e->src->pass || x->want != want)
		return false;
	while (g && !guards_same(g, x->guard))
		g = g->next;
	return guards_same(g, x->guard);
}

Node *elab_expr(Elab *e, Ast *a, Type want)
{
	Shared *x = a->shared;

	if (!x)
		return elab_part(e, a, want);
	if (!is_made(e, x, want)) {
		Node *n = elab_part(e, a, want);
		x->pass = e->src->pass;
		x->want = want;
		x->guard = e->guard;
		x->node = n;
	}
	return x->node;
}

/* expression.c - typed syntax trees to nodes. Input: an Elab whose indices have values (provisional
 * ones while collecting) and a tree with Ast.value set. Output: the node, of the type that is
 * wanted. Invariant: in a pass a part is built once for each type that is wanted. */
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

Node *elab_condition(Elab *e, Ast *a)
{
	if (a->value == KIND_LOGIC || a->value == RICCI_BOOL)
		return elab_expr(e, a, RICCI_BOOL);
	Type t = natural(a, RICCI_F32);
	Node *x = elab_expr(e, a, t);

	return node2(e->ir, OP_NE, x, node_const_int(e->ir, t, 0));
}

/* ---- accesses ---- */

static Node *build_read(Elab *e, Ast *a)
{
	Node *index[RICCI_MAX_RANK];

	for (int d = 0; d < a->n; d++)
		index[d] = elab_expr(e, a->arg[d], RICCI_I64);
	return node_read(e->ir, a->name->tensor, index);
}

/* access else value: bare names in it take the dimension's extent, everything else may leave. */
static Node *build_else(Elab *e, Ast *a, Type t)
{
	Node *read = build_read(e, a->arg[0]);
	Node *inside = inside_condition(e->ir, read->src[0], read->src + 1);
	Node *other = elab_expr(e, a->arg[1], t);

	if (read->type != t)
		read = node_cast(e->ir, t, read);
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
	Node *x = elab_condition(e, a->arg[0]), *y = elab_condition(e, a->arg[1]);

	Node *n = node2(e->ir, both ? OP_AND : OP_OR, x, y);

	decided_by(e->ir, &e->decisions, x, n);
	decided_by(e->ir, &e->decisions, y, n);
	return n;
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
	Node *x = elab_expr(e, a->arg[1], t), *y = elab_expr(e, a->arg[2], t);

	Node *n = node_select(e->ir, c, x, y);

	decided_by(e->ir, &e->decisions, c, n);
	return n;
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
	if (op_draws(op)) {
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
	case AST_TRAINING:
		return node_training(e->ir);
	case AST_SIZE:
		return node_int(e->ir, tensor_extent(a->name->tensor, (int)a->u.i));
	case AST_ACCESS:
		return build_read(e, a);
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
	case AST_DOTS: /* expanded before */
		break;
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

/* What this pass has made of a, of that type; its node is NULL at first. */
static Made *find_made(Elab *e, Ast *a, Type want)
{
	Made *m = a->made;

	while (m && m->want != want)
		m = m->next;
	if (!m) {
		m = arena_alloc(&e->ir->arena, sizeof *m);
		*m = (Made){.want = want, .next = a->made};
		a->made = m;
	}
	if (m->pass != e->src->pass)
		m->node = NULL;
	m->pass = e->src->pass;
	return m;
}

Node *elab_expr(Elab *e, Ast *a, Type want)
{
	Made *m = find_made(e, a, want);

	if (m->node)
		return m->node;
	m->node = elab_part(e, a, want);
	if (a->shared && a->shared->pass != e->src->pass) {
		a->shared->pass = e->src->pass;
		a->shared->cases = arena_alloc(&e->ir->arena, sizeof *a->shared->cases);
		e->value = arena_grow(&e->ir->arena, e->value, e->nvalue, &e->value_room,
				      sizeof *e->value);
		e->value[e->nvalue++] = a;
	}
	return m->node;
}

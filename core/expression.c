/* expression.c - typed syntax trees to nodes. Input: an Elab whose indices have values (provisional
 * ones while collecting) and a tree with Ast.value set. Output: the node, of the type that is
 * wanted. Invariant: conditions under which a part is evaluated are on e->guard while it is built,
 * so each access is constrained, or proved, where it counts. */
#include "core/internal.h"

static Type natural(const Ast *a, Type want)
{
	switch (a->value) {
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

/* The tree a as it is under cond being truth. */
static Node *under(Elab *e, Node *cond, bool truth, Ast *a, Type t)
{
	Guard *saved = e->guard;

	if (!node_is_value(cond, truth))
		e->guard = guard_push(e->ir, saved, cond, truth);
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

void elab_constrain(Elab *e, Node *index, int64_t extent, const Ast *access, int dimension)
{
	if (e->ncon == e->room) {
		e->room = e->room ? 2 * e->room : 16;
		Constraint *more = arena_alloc(&e->ir->arena, (size_t)e->room * sizeof *more);
		for (int i = 0; i < e->ncon; i++)
			more[i] = e->con[i];
		e->con = more;
	}
	e->con[e->ncon++] = (Constraint){.index = index,
					 .extent = extent,
					 .guard = e->guard,
					 .access = access,
					 .dimension = dimension};
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
	if (e->collecting) {
		Guard *saved = e->guard;
		e->guard = NULL;
		for (int d = 0; d < x->n; d++)
			if (x->arg[d]->kind == AST_NAME)
				elab_constrain(e, index[d], tensor_extent(tensor, d), x, d);
		e->guard = saved;
	}
	Node *inside = inside_condition(e->ir, tensor, index);
	Node *read = node_read(e->ir, tensor, index);
	if (read->type != t)
		read = node_cast(e->ir, t, read);
	Node *other = under(e, inside, false, a->arg[1], t);
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

static Node *build_compare(Elab *e, Ast *a)
{
	int k = typing_join(e->src, a, a->arg[0], a->arg[1], true);
	Type t = k == KIND_INT	   ? RICCI_I64
		 : k == KIND_FLOAT ? RICCI_F32
		 : k == KIND_LOGIC ? RICCI_BOOL
				   : (Type)k;
	Node *x = elab_expr(e, a->arg[0], t), *y = elab_expr(e, a->arg[1], t);

	switch (a->op) {
	case TOK_LT:
		return node2(e->ir, OP_LT, x, y);
	case TOK_GT:
		return node2(e->ir, OP_LT, y, x);
	case TOK_LE:
		return node2(e->ir, OP_LE, x, y);
	case TOK_GE:
		return node2(e->ir, OP_LE, y, x);
	default:
		return node2(e->ir, a->op == TOK_EQEQ ? OP_EQ : OP_NE, x, y);
	}
}

static Node *build_logic(Elab *e, Ast *a)
{
	bool both = a->op == TOK_ANDAND;
	Node *x = elab_condition(e, a->arg[0]);

	Guard *saved = e->guard;
	e->guard = guard_push(e->ir, saved, x, both);
	Node *y = elab_condition(e, a->arg[1]);
	e->guard = saved;
	return node2(e->ir, both ? OP_AND : OP_OR, x, y);
}

static Node *build_binary(Elab *e, Ast *a, Type t)
{
	if (a->op == TOK_ANDAND || a->op == TOK_OROR)
		return build_logic(e, a);
	if (a->value == KIND_LOGIC)
		return build_compare(e, a);
	Node *x = elab_expr(e, a->arg[0], t), *y = elab_expr(e, a->arg[1], t);
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

	Node *x = under(e, c, true, a->arg[1], t);
	Node *y = under(e, c, false, a->arg[2], t);
	return node_select(e->ir, c, x, y);
}

static Node *build_call(Elab *e, Ast *a, Type t)
{
	const CallInfo *c = call_find(a->name->s);
	Type to;

	if (!c && type_parse(a->name->s, &to)) {
		if (to == RICCI_BOOL)
			return elab_condition(e, a->arg[0]);
		return node_cast(e->ir, to, elab_expr(e, a->arg[0], natural(a->arg[0], to)));
	}
	if (c->takes == CALL_DRAW) {
		Node *src[2] = {elab_expr(e, a->arg[0], RICCI_I64), e->element};
		if (a->n == 2)
			src[1] = elab_expr(e, a->arg[1], RICCI_I64);
		return node_make(e->ir, c->op, RICCI_F32, 2, src, 0);
	}
	Node *x = elab_expr(e, a->arg[0], t);
	return c->narg == 1 ? node1(e->ir, c->op, x)
			    : node2(e->ir, c->op, x, elab_expr(e, a->arg[1], t));
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

Node *elab_expr(Elab *e, Ast *a, Type want)
{
	int64_t lo, hi;

	if (a->kind == AST_INT && type_is_int(want)) {
		type_range(want, &lo, &hi);
		if (a->u.i < lo || a->u.i > hi)
			notation_fail(e->src, RICCI_ETYPE, a->pos, "%lld does not fit %s",
				      (long long)a->u.i, type_name(want));
	}
	Node *n = build(e, a, natural(a, want));
	return n->type == want ? n : node_cast(e->ir, want, n);
}

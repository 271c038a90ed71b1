/* accesses.c - under which conditions each access of an equation is evaluated. Input: syntax trees
 * whose nodes a pass has made (expression.c). Output: a constraint for each access while ranges are
 * collected, and a proof that it stays inside afterwards. Invariant: a value's own tree is walked
 * once for each of its cases, when all that is made of it has been. */
#include "core/notation/internal.h"

void accesses_begin(Elab *e, bool collecting)
{
	e->collecting = collecting;
	e->nvalue = e->nroot = 0;
	e->decisions = (Decisions){0};
	e->src->pass++;
	e->element = node_int(e->ir, 0);
}

Constraint *elab_constrain(Elab *e, Case c, Node *index, int64_t extent, const Ast *access,
			   int dimension)
{
	int at = 0;

	for (; at < e->ncon; at++) {
		Constraint *x = &e->con[at];
		if (x->index != index || x->extent != extent || !x->access != !access)
			continue;
		if (case_covers(&x->when, &c))
			return x;
		if (case_covers(&c, &x->when))
			break;
	}
	e->con = arena_grow(&e->ir->arena, e->con, e->ncon, &e->room, sizeof *e->con);
	e->ncon += at == e->ncon;
	e->con[at] = (Constraint){.index = index,
				  .extent = extent,
				  .when = c,
				  .access = access,
				  .dimension = dimension};
	return &e->con[at];
}

static void see(Elab *e, Ast *a, Case c);

static void see_all(Elab *e, Ast *a, Case c)
{
	for (int i = 0; i < a->n; i++)
		see(e, a->arg[i], c);
}

static void see_access(Elab *e, Ast *a, Case c)
{
	Node *tensor = a->name->tensor;

	see_all(e, a, c);
	for (int d = 0; d < a->n; d++) {
		Node *index = elab_expr(e, a->arg[d], RICCI_I64);
		if (e->collecting)
			elab_constrain(e, c, index, tensor_extent(tensor, d), a, d);
		else
			access_prove(e, c.guard, a, a->arg[d], d, index, tensor_extent(tensor, d));
	}
}

/* access else value: bare names in it take the dimension's extent, everything else may leave. */
static void see_else(Elab *e, Ast *a, Case c)
{
	Ast *x = a->arg[0];
	Node *tensor = x->name->tensor, *index[RICCI_MAX_RANK];

	see_all(e, x, c);
	for (int d = 0; d < x->n; d++) {
		index[d] = elab_expr(e, x->arg[d], RICCI_I64);
		if (!e->collecting)
			access_check_wrap(e, x, x->arg[d], index[d]);
		else if (x->arg[d]->kind == AST_NAME)
			elab_constrain(e, (Case){0}, index[d], tensor_extent(tensor, d), x, d);
	}
	Node *inside = inside_condition(e->ir, tensor, index);
	see(e, a->arg[1], case_and(e->ir, c, node_not(e->ir, inside)));
}

static Case under(Elab *e, Case c, Node *cond, bool truth)
{
	if (node_is_const(cond) || decision_matters(e->ir, &e->decisions, cond))
		return case_and(e->ir, c, truth ? cond : node_not(e->ir, cond));
	return (Case){c.guard, true};
}

static void see_part(Elab *e, Ast *a, Case c)
{
	if (a->kind == AST_ACCESS) {
		see_access(e, a, c);
	} else if (a->kind == AST_ELSE) {
		see_else(e, a, c);
	} else if (a->kind == AST_SELECT) {
		Node *cond = elab_condition(e, a->arg[0]);
		see(e, a->arg[0], c);
		see(e, a->arg[1], under(e, c, cond, true));
		see(e, a->arg[2], under(e, c, cond, false));
	} else if (a->kind == AST_BINARY && (a->op == TOK_ANDAND || a->op == TOK_OROR)) {
		Node *cond = elab_condition(e, a->arg[0]);
		see(e, a->arg[0], c);
		see(e, a->arg[1], under(e, c, cond, a->op == TOK_ANDAND));
	} else {
		see_all(e, a, c);
	}
}

static void see(Elab *e, Ast *a, Case c)
{
	if (!a->shared)
		see_part(e, a, c);
	else if (!cases_add(e->ir, a->shared->cases, c))
		notation_fail(e->src, RICCI_ESHAPE, a->pos,
			      "the value %s is used under more than %d conditions; make it a "
			      "tensor",
			      ast_text(e->src, a), CASES_MOST);
}

Node *accesses_of(Elab *e, Ast *a, Type want, Case c)
{
	Node *n = elab_expr(e, a, want);

	e->root = arena_grow(&e->ir->arena, e->root, e->nroot, &e->root_room, sizeof *e->root);
	e->root[e->nroot++] = (Root){a, c};
	return n;
}

void accesses_end(Elab *e)
{
	for (int i = 0; i < e->nroot; i++)
		see(e, e->root[i].part, e->root[i].c);
	for (int i = e->nvalue - 1; i >= 0; i--) {
		const Cases *x = e->value[i]->shared->cases;
		for (int k = 0; k < x->n; k++)
			see_part(e, e->value[i], x->list[k]);
	}
}

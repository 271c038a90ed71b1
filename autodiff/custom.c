/* custom.c - gradients that the user gives instead of those of the equations.
 *
 * ricci_op_custom adds the equations of a text as ricci_op does. Each result Y becomes a tensor
 * Z[..] = stop_gradient(Y[..]) of its own, whose STOP carries the number of a Custom record; so the
 * equations behind it are hidden from differentiation, and equal equations without a custom
 * gradient stay other tensors. Reverse mode elaborates the gradient's text over the operands, the
 * results Z and their gradients; the equations that come of it differentiate like all others.
 * Invariant: a record in ir->custom has a text that elaborates, to gradients of the operands' types
 * and shapes.
 */
#include "autodiff/internal.h"

#include <stdarg.h>
#include <string.h>

/* ---- the gradient's text */

static int find_name(int n, const char *const *names, const char *s)
{
	for (int k = 0; k < n; k++)
		if (!strcmp(names[k], s))
			return k;
	return -1;
}

/* What `s` stands for in the gradient's text. */
static Node *name_tensor(Ir *ir, const Custom *c, Node *const *dresult, const char *s)
{
	int k = find_name(c->noperand, c->operand_name, s);
	if (k >= 0)
		return c->operand[k];
	if ((k = find_name(c->nresult, c->result_name, s)) >= 0)
		return c->result[k];
	if (s[0] == 'd' && (k = find_name(c->nresult, c->result_name, s + 1)) >= 0)
		return dresult[k];
	Text known = {0};
	for (k = 0; k < c->noperand; k++)
		text_add(&known, "%s, ", c->operand_name[k]);
	for (k = 0; k < c->nresult; k++)
		text_add(&known, "%s%s, d%s", k ? ", " : "", c->result_name[k], c->result_name[k]);
	error_set(&ir->err, RICCI_EINVAL,
		  "ricci_op_custom: the gradient reads %s; what it may read is %s", s,
		  known.s ? known.s : "");
	text_free(&known);
	return NULL;
}

/* The assigned names that are operands' gradients; others must be read again. */
static int take_gradients(Ir *ir, const Custom *c, const Notation *p, Node **doperand)
{
	for (int k = 0; k < p->nequation; k++) {
		const char *s = p->assigned[k];
		int i = s[0] == 'd' ? find_name(c->noperand, c->operand_name, s + 1) : -1;
		if (i >= 0)
			doperand[i] = p->tensor[k];
		else if (p->is_result[k])
			return error_set(&ir->err, RICCI_EINVAL,
					 "ricci_op_custom: the gradient computes %s, which is no "
					 "operand's gradient: that of %s is d%s",
					 s, c->noperand ? c->operand_name[0] : "an operand A",
					 c->noperand ? c->operand_name[0] : "A");
	}
	return 0;
}

static int expand(Ir *ir, const Custom *c, Node *const *dresult, Node **doperand)
{
	Notation p;
	notation_parse(ir, c->gradient, &p);
	Node **nodes = arena_alloc(&ir->arena, sizeof *nodes * ((size_t)p.noperand + 1));
	for (int k = 0; k < p.noperand; k++)
		if (!(nodes[k] = name_tensor(ir, c, dresult, p.operand[k])))
			return ir->err.code;
	for (int k = 0; k < c->noperand; k++)
		notation_integer(&p, c->operand_name[k], c->operand[k]);
	notation_bind(&p, nodes);
	return take_gradients(ir, c, &p, doperand);
}

void custom_gradients(Ir *ir, const Custom *c, Node *const *dresult, Node **doperand)
{
	Node **filled = arena_alloc(&ir->arena, sizeof *filled * (size_t)c->nresult);
	for (int k = 0; k < c->nresult; k++)
		filled[k] = gradient_tensor(ir, c->result[k], dresult[k]);
	expand(ir, c, filled, doperand);
}

/* ---- forward mode: J t is the gradient by u of <J' u, t>, since that is linear in u */

/* The scalar sum over all elements of a * b. */
static Node *inner(Ir *ir, Node *a, Node *b)
{
	Node *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(a);
	tensor_axes(ir, a, axes);
	Node *body = node_mul(ir, tensor_read(ir, a, axes), tensor_read(ir, b, axes));
	return comp_make(ir, RED_ADD, 0, NULL, NULL, rank, axes, body);
}

static int check_linear(Ir *ir, const Custom *c, Node *const *u, Node *const *tresult)
{
	Node **order;
	for (int k = 0; k < c->nresult; k++) {
		int n = tresult[k] ? graph_order(ir, 1, &tresult[k], &order) : 0;
		for (int i = 0; i < n; i++)
			for (int j = 0; j < c->nresult; j++)
				if (order[i] == u[j])
					return error_set(
						&ir->err, RICCI_EUNSUPPORTED,
						"ricci_jvp: the custom gradient '%.100s' "
						"isn't linear in d%s, so it has no forward "
						"mode",
						c->gradient, c->result_name[j]);
	}
	return 0;
}

int custom_tangents(Ir *ir, const Custom *c, Node *const *toperand, Node **tresult)
{
	size_t room = sizeof(Node *) * ((size_t)c->nresult + (size_t)c->noperand + 1);
	Node **u = arena_alloc(&ir->arena, room), **doperand = arena_alloc(&ir->arena, room);
	Node **part = arena_alloc(&ir->arena, room);
	for (int k = 0; k < c->nresult; k++) {
		Node *z = c->result[k];
		/* a name that no input has: it is in no result */
		const char *name = arena_printf(&ir->arena, "gradient of #%u", z->id);
		u[k] = tensor_variable(ir, name, (Type)z->type, z);
	}
	if (expand(ir, c, u, doperand))
		return ir->err.code;
	for (int i = 0; i < c->noperand; i++) {
		if (!doperand[i] || !toperand[i])
			continue;
		Node *product = inner(ir, doperand[i], toperand[i]);
		if (autodiff_reverse(ir, product, NULL, c->nresult, u, part))
			return ir->err.code;
		for (int k = 0; k < c->nresult; k++)
			tresult[k] = tensor_sum(ir, tresult[k], part[k]);
	}
	return check_linear(ir, c, u, tresult);
}

/* ---- the public calls */

static int check_names(Ir *ir, const Custom *c)
{
	for (int k = 0; k < c->noperand; k++) {
		const char *s = c->operand_name[k];
		if (s[0] == 'd' && find_name(c->nresult, c->result_name, s + 1) >= 0)
			return error_set(&ir->err, RICCI_EINVAL,
					 "ricci_op_custom: %s is the gradient of %s, so no operand "
					 "can have that name",
					 s, s + 1);
	}
	return 0;
}

static void shape_text(Text *out, const Node *t)
{
	text_add(out, "%s [", type_name((Type)t->type));
	for (int d = 0; d < tensor_rank(t); d++)
		text_add(out, d ? ",%lld" : "%lld", (long long)tensor_extent(t, d));
	text_add(out, "]");
}

static int check_gradient(Ir *ir, const char *name, const Node *operand, const Node *gradient)
{
	if (!type_is_float((Type)operand->type))
		return error_set(&ir->err, RICCI_ETYPE,
				 "ricci_op_custom: %s is %s; only floats have gradients", name,
				 type_name((Type)operand->type));
	if (tensor_alike(operand, gradient))
		return 0;
	Text a = {0}, b = {0};
	shape_text(&a, gradient);
	shape_text(&b, operand);
	error_set(&ir->err, operand->type == gradient->type ? RICCI_ESHAPE : RICCI_ETYPE,
		  "ricci_op_custom: d%s is %s, but %s is %s", name, a.s ? a.s : "", name,
		  b.s ? b.s : "");
	text_free(&a);
	text_free(&b);
	return ir->err.code;
}

/* Elaborates the gradient once, with the results in the place of their gradients. */
static int check_expansion(ricci_graph *g, const Custom *c)
{
	Ir *ir = &g->ir;
	Node **doperand = arena_alloc(&ir->arena, sizeof *doperand * ((size_t)c->noperand + 1));
	if (expand(ir, c, c->result, doperand))
		return ir->err.code;
	for (int k = 0; k < c->noperand; k++)
		if (doperand[k] &&
		    check_gradient(ir, c->operand_name[k], c->operand[k], doperand[k]))
			return ir->err.code;
	return graph_needs(g);
}

/* The record without its results. */
static Custom *custom_new(Ir *ir, const Notation *p, const char *gradient,
			  ricci_tensor *const *operands)
{
	Arena *a = &ir->arena;
	Custom *c = arena_alloc(a, sizeof *c);
	c->gradient = arena_strdup(a, gradient);
	c->noperand = p->noperand;
	c->operand = arena_alloc(a, sizeof *c->operand * ((size_t)p->noperand + 1));
	c->operand_name = p->operand;
	c->result = arena_alloc(a, sizeof *c->result * (size_t)p->nequation);
	c->result_name = arena_alloc(a, sizeof *c->result_name * (size_t)p->nequation);
	for (int k = 0; k < p->noperand; k++)
		c->operand[k] = operands[k]->node;
	for (int k = 0; k < p->nresult; k++)
		c->result_name[c->nresult++] = p->result[k];
	return c;
}

static int custom_build(ricci_graph *g, const char *text, const Notation *p, const char *gradient,
			ricci_tensor *const *operands, int *nresult, ricci_tensor **results)
{
	Ir *ir = &g->ir;
	int n = p->nequation;
	ricci_tensor **inside = arena_alloc(&ir->arena, sizeof *inside * (size_t)n);
	if (ricci_ops(g, text, p->noperand, operands, &n, inside))
		return ir->err.code;
	Custom *c = custom_new(ir, p, gradient, operands);
	if (n > *nresult)
		return error_set(&ir->err, RICCI_EINVAL,
				 "ricci_op_custom: the text has %d results, there is room for %d",
				 n, *nresult);
	for (int k = 0; k < n; k++) {
		if (!type_is_float((Type)inside[k]->node->type))
			return error_set(&ir->err, RICCI_ETYPE,
					 "ricci_op_custom: %s is %s; only floats have gradients",
					 c->result_name[k], type_name((Type)inside[k]->node->type));
		c->result[k] = custom_hide(ir, inside[k]->node, ir->ncustom + 1);
	}
	if (check_names(ir, c) || check_expansion(g, c))
		return ir->err.code;
	custom_add(ir, c);
	for (int k = 0; k < n; k++) {
		results[k] = graph_handle(g, c->result[k]);
		results[k]->name = c->result_name[k];
	}
	*nresult = n;
	return 0;
}

static bool custom_ready(ricci_graph *g, const char *text, const char *gradient)
{
	if (!g->ir.err.code && graph_frozen(g))
		error_set(&g->ir.err, RICCI_EINVAL,
			  "ricci_op_custom: the graph has sessions and can't change any more");
	if (!g->ir.err.code && (!text || !gradient))
		error_set(&g->ir.err, RICCI_EINVAL,
			  "ricci_op_custom: the text or that of the gradient is NULL");
	return !g->ir.err.code;
}

int ricci_ops_custom(ricci_graph *g, const char *text, const char *gradient, int noperand,
		     ricci_tensor *const *operands, int *nresult, ricci_tensor **results)
{
	if (!g)
		return graph_missing("ricci_ops_custom");
	for (int i = 0; nresult && results && i < *nresult; i++)
		results[i] = &g->nil;
	if (!custom_ready(g, text, gradient))
		return g->ir.err.code;
	if (noperand < 0 || (noperand && !operands) || !nresult || *nresult < 0 || !results)
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "ricci_ops_custom: operands, nresult and results must be given");
	IR_ENTER(&g->ir, g->ir.err.code);
	Notation p;
	notation_parse(&g->ir, text, &p);
	if (noperand != p.noperand)
		error_set(&g->ir.err, RICCI_EINVAL,
			  "ricci_ops_custom: the text has %d operands, %d are given", p.noperand,
			  noperand);
	else
		custom_build(g, text, &p, gradient, operands, nresult, results);
	IR_LEAVE(&g->ir);
	return g->ir.err.code;
}

ricci_tensor *ricci_op_custom_counted(ricci_graph *g, const char *text, int noperand,
				      const char *gradient, ...)
{
	int one = 1;
	if (!g)
		return graph_missing("ricci_op_custom"), NULL;
	ricci_tensor *result = &g->nil;
	IR_ENTER(&g->ir, &g->nil);
	va_list ap;
	va_start(ap, gradient);
	ricci_tensor **operand = operands_given(g, noperand, ap);
	va_end(ap);
	IR_LEAVE(&g->ir);
	ricci_ops_custom(g, text, gradient, noperand, operand, &one, &result);
	return result;
}

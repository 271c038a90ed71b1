/* elaborate.c - programs to tensors. Input: a parsed program and its operands. Output: one COMP for
 * each equation, results those that no other equation reads. Each equation's expressions are built
 * twice: over provisional axes, to collect what limits the ranges, and over the true ones, where
 * every access is proved. Errors jump (notation_fail). */
#include "core/notation/internal.h"
#include <string.h>

/* ---- index names ---- */

static Index *find_index(Elab *e, const Name *name)
{
	return name->slot_of == e->eq->number ? &e->index[name->slot] : NULL;
}

static Index *add_index(Elab *e, Name *name, int pos)
{
	Index *x = find_index(e, name);

	if (x)
		return x;
	if (e->n == NOTATION_MAX_INDEX)
		notation_fail(e->src, RICCI_ESHAPE, pos, "an equation has at most %d indices",
			      NOTATION_MAX_INDEX);
	name->slot = e->n;
	name->slot_of = e->eq->number;
	x = &e->index[e->n++];
	*x = (Index){.name = name, .pos = pos};
	return x;
}

/* Names in their order of appearance, by which draws are numbered. */
static void gather_names(Elab *e, Ast *a)
{
	if (!ast_enter(e->src, a))
		return;
	if (a->kind == AST_NAME && !a->name->is_tensor)
		add_index(e, a->name, a->pos)->right = true;
	for (int i = 0; i < a->n; i++)
		gather_names(e, a->arg[i]);
}

static bool left_is_bare(const Equation *q, int d)
{
	return q->left[d]->kind == AST_NAME && (!q->extent[d] || q->red == RED_NONE);
}

static void gather_left(Elab *e)
{
	Equation *q = e->eq;

	for (int d = 0; d < q->nleft; d++) {
		Ast *a = q->left[d];
		if (a->kind == AST_NAME && !a->name->is_tensor && !left_is_bare(q, d))
			add_index(e, a->name, a->pos); /* comp_make's order: bare ones first */
		if (!left_is_bare(q, d))
			continue;
		if (a->name->is_tensor)
			notation_fail(e->src, RICCI_ESYNTAX, a->pos,
				      "%s is a tensor and can't be an index", a->name->s);
		if (find_index(e, a->name))
			notation_fail(e->src, RICCI_ESHAPE, a->pos,
				      "index %s stands twice on the left", a->name->s);
		add_index(e, a->name, a->pos);
		e->span[e->n - 1].left = true;
	}
	for (int d = 0; d < q->nleft; d++) {
		Ast *a = q->left[d];
		if (left_is_bare(q, d))
			continue;
		if (q->red == RED_NONE)
			notation_fail(e->src, RICCI_ESHAPE, a->pos,
				      "the left side of '=' holds index names only, not %s",
				      ast_text(e->src, a));
		if (q->red == RED_MUL)
			notation_fail(e->src, RICCI_ESHAPE, a->pos,
				      "the left side of '*=' holds index names only, not %s",
				      ast_text(e->src, a));
		if (!q->extent[d])
			notation_fail(e->src, RICCI_ESHAPE, a->pos,
				      "%s on the left needs the extent of its dimension: %s:E",
				      ast_text(e->src, a), ast_text(e->src, a));
		gather_names(e, a);
	}
}

static void gather_where(Elab *e)
{
	Equation *q = e->eq;

	for (int i = 0; i < q->nrange; i++) {
		const RangeAst *r = &q->range[i];
		Index *x = find_index(e, r->name);
		if (!x && r->name->is_tensor)
			notation_fail(e->src, RICCI_ESYNTAX, r->pos,
				      "%s is a tensor and can't be an index", r->name->s);
		if (!x)
			notation_fail(e->src, RICCI_ESHAPE, r->pos, "index %s stands in where only",
				      r->name->s);
		if (x->where)
			notation_fail(e->src, RICCI_ESHAPE, r->pos, "index %s has two ranges",
				      r->name->s);
		x->where = r;
	}
}

static void gather(Elab *e)
{
	Equation *q = e->eq;

	e->src->walk++;
	gather_left(e);
	gather_names(e, q->body);
	gather_where(e);
	for (int i = 0; i < e->n && q->red == RED_NONE; i++)
		if (!e->span[i].left)
			notation_fail(e->src, RICCI_ESHAPE, e->index[i].pos,
				      "index %s is not on the left, and '=' reduces nothing: use "
				      "+=, max= ..",
				      e->index[i].name->s);
}

/* ---- types ---- */

static void check_bound(Elab *e, Ast *a)
{
	if (!ast_enter(e->src, a))
		return;
	if (a->kind == AST_ACCESS)
		notation_fail(e->src, RICCI_ESHAPE, a->pos,
			      "a range can't depend on data: write a condition, %s ? .. : ..",
			      "i < n[b]");
	if (a->kind == AST_TRAINING)
		notation_fail(e->src, RICCI_ESHAPE, a->pos,
			      "a range can't depend on training: write a condition, %s ? .. : ..",
			      "training && i < n");
	if (a->kind == AST_NAME && !a->name->is_tensor && !find_index(e, a->name))
		notation_fail(e->src, RICCI_ESHAPE, a->pos, "unknown index %s in a range",
			      a->name->s);
	for (int i = 0; i < a->n; i++)
		check_bound(e, a->arg[i]);
}

static void check_types(Elab *e)
{
	Equation *q = e->eq;

	e->src->walk++;
	e->src->typing++;
	for (int d = 0; d < q->nleft; d++) {
		typing_check(e->src, q->left[d], true);
		if (q->extent[d]) {
			check_bound(e, q->extent[d]);
			typing_check(e->src, q->extent[d], true);
		}
	}
	typing_check(e->src, q->body, false);
	for (int i = 0; i < q->nrange; i++) {
		const RangeAst *r = &q->range[i];
		for (int k = 0; k < 2; k++) {
			Ast *bound = k ? r->high : r->low;
			if (!bound)
				continue;
			check_bound(e, bound);
			typing_check(e->src, bound, true);
		}
	}
}

static Type result_type(Elab *e)
{
	int k = e->eq->body->value;
	Type t = k < RICCI_NTYPES ? (Type)k : k == KIND_LOGIC ? RICCI_BOOL : RICCI_F32;

	if (t == RICCI_BOOL && (e->eq->red == RED_ADD || e->eq->red == RED_MUL))
		notation_fail(e->src, RICCI_ETYPE, e->eq->body->pos,
			      "truth values can't be summed or multiplied: write f32(..) or "
			      "i32(..) around %s",
			      ast_text(e->src, e->eq->body));
	return t;
}

/* ---- ranges ---- */

static const Case always;

static bool is_constant(const Node *n)
{
	return !n || node_is_const(n);
}

/* The part of where's ranges that the box does not say: low <= x < high with other indices in it.
 */
static Node *where_condition(Elab *e)
{
	Node *all = node_const_int(e->ir, RICCI_BOOL, 1);

	for (int i = 0; i < e->n; i++) {
		const RangeAst *r = e->index[i].where;
		if (!r)
			continue;
		Node *low = r->low ? accesses_of(e, r->low, RICCI_I64, always) : NULL;
		Node *high = accesses_of(e, r->high, RICCI_I64, always);
		Node *x = e->index[i].value;
		if (!is_constant(low))
			all = node2(e->ir, OP_AND, all, node2(e->ir, OP_LE, low, x));
		if (!is_constant(high))
			all = node2(e->ir, OP_AND, all, node2(e->ir, OP_LT, x, high));
	}
	return all;
}

/* What where says is part of the equation: what is read under no more is not conditional. */
static Case where_case(Elab *e, Node *cond)
{
	Case c = case_and(e->ir, always, cond);

	c.conditional = false;
	return c;
}

static int64_t left_extent(Elab *e, int d)
{
	Ast *a = e->eq->extent[d];
	Node *n = elab_expr(e, a, RICCI_I64);

	if (!node_is_const(n) || n->u.i < 1)
		notation_fail(e->src, RICCI_ESHAPE, a->pos,
			      "the extent of a dimension is a positive constant, %s is none",
			      ast_text(e->src, a));
	if (n->u.i > RANGE_MAX)
		notation_fail(e->src, RICCI_ESHAPE, a->pos, "the extent %s is too long",
			      ast_text(e->src, a));
	return n->u.i;
}

/* First pass: provisional axes, all limits. */
static void collect(Elab *e, Type type)
{
	Equation *q = e->eq;

	accesses_begin(e, true);
	for (int i = 0; i < e->n; i++) {
		Span *s = &e->span[i];
		const RangeAst *r = e->index[i].where;
		s->axis = node_axis(e->ir, i, RANGE_MAX);
		s->off = r && r->low ? -RANGE_MAX / 2 : 0;
		e->index[i].value = node_add(e->ir, s->axis, node_int(e->ir, s->off));
	}
	for (int i = 0; i < e->n; i++) {
		const RangeAst *r = e->index[i].where;
		if (!r)
			continue;
		e->span[i].low = r->low ? accesses_of(e, r->low, RICCI_I64, always) : NULL;
		e->span[i].high = accesses_of(e, r->high, RICCI_I64, always);
	}
	for (int d = 0; d < q->nleft; d++) {
		if (!q->extent[d])
			continue;
		Node *index = accesses_of(e, q->left[d], RICCI_I64, always);
		elab_constrain(e, always, index, left_extent(e, d), NULL, d)->side =
			q->red == RED_NONE ? SIDE_RANGE : SIDE_SCATTER;
	}
	Node *cond = where_condition(e);
	accesses_of(e, q->body, type, node_is_const(cond) ? always : where_case(e, cond));
	accesses_end(e);
}

static const Ast *constraint_index(const Elab *e, const Constraint *c)
{
	return c->access ? c->access->arg[c->dimension] : e->eq->left[c->dimension];
}

static int constraint_pos(const Elab *e, const Constraint *c)
{
	return constraint_index(e, c)->pos;
}

_Noreturn static void ambiguous_fail(Elab *e, int which, const Constraint *a, const Constraint *b)
{
	const char *name = e->index[which].name->s;
	int first = constraint_pos(e, a), second = constraint_pos(e, b);
	const Constraint *x = first < second ? a : b, *y = x == a ? b : a;
	const Constraint *one = x->extent == 1 ? x : y->extent == 1 ? y : NULL;
	const char *x_name = x->access ? x->access->name->s : e->eq->name->s;
	const char *y_name = y->access ? y->access->name->s : e->eq->name->s;
	const char *repeat = "";

	if (e->index[which].name->is_dots)
		notation_fail_both(
			e->src, RICCI_ESHAPE, first, second,
			"what ... stands for differs: dimension %d of %s has extent %lld, "
			"dimension %d of %s has extent %lld",
			x->dimension, x_name, (long long)x->extent, y->dimension, y_name,
			(long long)y->extent);
	if (one && one->access)
		repeat = arena_printf(&e->ir->arena, "0 for %s in %s to repeat it, or ", name,
				      one->access->name->s);
	notation_fail_both(e->src, RICCI_ESHAPE, first, second,
			   "the range of %s is ambiguous: dimension %d of %s has extent %lld, "
			   "dimension %d of %s has extent %lld; write %swhere %s < ..",
			   name, x->dimension, x_name, (long long)x->extent, y->dimension, y_name,
			   (long long)y->extent, repeat, name);
}

_Noreturn static void range_fail(Elab *e, InferCode code, const InferFault *fault)
{
	int which = fault->which;
	const Constraint *why = fault->why;
	const char *name = e->index[which].name->s;
	const RangeAst *r = e->index[which].where;
	int pos = r ? r->pos : e->index[which].pos;

	if (code == INFER_AMBIGUOUS)
		ambiguous_fail(e, which, why, fault->other);
	if (code == INFER_RETURNS)
		notation_fail(e->src, RICCI_ESHAPE, constraint_pos(e, why),
			      "the range of %s can't be inferred: index %s stays inside dimension "
			      "%d up to %s = %lld, and may come back beyond; write where %s < ..",
			      name, ast_text(e->src, constraint_index(e, why)), why->dimension,
			      name, (long long)fault->top, name);
	if (code == INFER_UNPROVED)
		notation_fail(e->src, RICCI_ESHAPE, constraint_pos(e, why),
			      "the range of %s can't be inferred: how far index %s stays inside "
			      "dimension %d isn't proved; write where %s < ..",
			      name, ast_text(e->src, constraint_index(e, why)), why->dimension,
			      name);
	if (code == INFER_LONG)
		notation_fail(e->src, RICCI_ESHAPE, pos, "the range of %s is too long", name);
	if (code == INFER_EMPTY && why && why->access)
		notation_fail(e->src, RICCI_ESHAPE, why->access->arg[why->dimension]->pos,
			      "the range of %s is empty: index %s does not fit dimension %d of %s, "
			      "of extent %lld",
			      name, ast_text(e->src, why->access->arg[why->dimension]),
			      why->dimension, why->access->name->s, (long long)why->extent);
	if (code == INFER_EMPTY)
		notation_fail(e->src, RICCI_ESHAPE, pos, "the range of %s is empty", name);
	for (int i = 0; i < e->n; i++) /* rather one without a where, that others wait for */
		if (!e->span[i].known && !e->index[i].where) {
			which = i;
			break;
		}
	name = e->index[which].name->s;
	if (e->span[which].left && !e->index[which].right)
		notation_fail(e->src, RICCI_ESHAPE, e->index[which].pos,
			      "unknown index %s: it stands on the left only, so nothing gives its "
			      "range; write where %s < ..",
			      name, name);
	notation_fail(e->src, RICCI_ESHAPE, e->index[which].pos,
		      "the range of %s can't be inferred from the accesses; write where %s < ..",
		      name, name);
}

/* Second pass: the true axes. */
static void settle(Elab *e)
{
	InferFault fault;
	InferCode code = infer_ranges(e->ir, e->n, e->span, e->ncon, e->con, &fault);

	if (code != INFER_OK)
		range_fail(e, code, &fault);
	int64_t stride = 1;
	accesses_begin(e, false);
	for (int i = e->n - 1; i >= 0; i--) {
		Span *s = &e->span[i];
		if (s->left && s->lo != 0)
			notation_fail(e->src, RICCI_ESHAPE, e->index[i].where->pos,
				      "the range of %s starts at %lld, but an index on the left "
				      "starts at 0",
				      e->index[i].name->s, (long long)s->lo);
		e->index[i].value = span_value(e->ir, s);
		Node *axis = node_axis(e->ir, i, s->extent);
		e->element = node_add(e->ir, node_scale(e->ir, axis, stride), e->element);
		if (__builtin_mul_overflow(stride, s->extent, &stride))
			stride = 0; /* such a domain is never run; draws just repeat */
	}
}

/* ---- equations ---- */

static void check_size(Elab *e, int rank, const int64_t *shape, Type t)
{
	int64_t bytes = (int64_t)type_size(t);

	for (int d = 0; d < rank; d++)
		if (__builtin_mul_overflow(bytes, shape[d], &bytes))
			notation_fail(e->src, RICCI_ESHAPE, e->eq->pos,
				      "the size of %s overflows 64 bits", e->eq->name->s);
}

/* Left indices and shape; a left index is evaluated whatever where's conditions say. */
static void build_left(Elab *e, Node **lhs, int64_t *shape)
{
	Equation *q = e->eq;

	for (int d = 0; d < q->nleft; d++) {
		lhs[d] = accesses_of(e, q->left[d], RICCI_I64, always);
		if (!q->extent[d]) {
			shape[d] = lhs[d]->hi + 1;
			continue;
		}
		shape[d] = left_extent(e, d);
		if (q->red != RED_NONE)
			access_prove(e, NULL, NULL, q->left[d], d, lhs[d], shape[d]);
		else if (lhs[d]->hi + 1 != shape[d])
			notation_fail(e->src, RICCI_ESHAPE, q->left[d]->pos,
				      "'=' sets every element of %s, but %s runs from 0 to %lld, "
				      "the extent is %lld",
				      q->name->s, ast_text(e->src, q->left[d]),
				      (long long)lhs[d]->hi, (long long)shape[d]);
	}
}

static Node *build_body(Elab *e, Type type)
{
	Equation *q = e->eq;
	Node *cond = where_condition(e);

	if (node_is_value(cond, 1))
		return accesses_of(e, q->body, type, always);
	if (q->red == RED_NONE) {
		for (int i = 0; i < e->n; i++) {
			const RangeAst *r = e->index[i].where;
			if (r && !node_is_const(elab_expr(e, r->high, RICCI_I64)))
				notation_fail(e->src, RICCI_ESHAPE, r->pos,
					      "the range of %s depends on another index, and '=' "
					      "sets every element: write a condition with ?:",
					      r->name->s);
		}
	}
	Node *body = accesses_of(e, q->body, type, where_case(e, cond));
	return node_select(e->ir, cond, body, node_identity(e->ir, q->red, type, type));
}

static Node *elaborate_equation(Program *p, Equation *q)
{
	Elab e = {.src = &p->src, .ir = p->src.ir, .eq = q};
	Node *lhs[RICCI_MAX_RANK], *axes[NOTATION_MAX_INDEX];
	int64_t shape[RICCI_MAX_RANK];

	equation_expand(p, q);
	gather(&e);
	check_types(&e);
	Type type = result_type(&e);
	collect(&e, type);
	settle(&e);
	build_left(&e, lhs, shape);
	check_size(&e, q->nleft, shape, type);
	Node *body = build_body(&e, type);
	accesses_end(&e);
	for (int i = 0; i < e.n; i++)
		axes[i] = node_axis(e.ir, i, e.span[i].extent);
	return comp_make(e.ir, q->red, q->nleft, shape, lhs, e.n, axes, body);
}

/* Of the indices that have ranges, whose extents differ from what is inferred? The first one, or -1
 * where none does; one that nothing is inferred for where nothing is found. */
static int first_unlike(Elab *e, const int64_t *extent)
{
	InferFault fault;
	InferCode code = infer_ranges(e->ir, e->n, e->span, e->ncon, e->con, &fault);

	for (int i = 0; i < e->n && code == INFER_OK; i++)
		if (e->span[i].extent != extent[i])
			return i;
	return code == INFER_OK ? -1 : fault.which;
}

void program_needed(Program *p, bool *needed)
{
	Equation *q = p->equation[0];
	Elab e = {.src = &p->src, .ir = p->src.ir, .eq = q};
	int64_t extent[NOTATION_MAX_INDEX];
	int n = q->nrange, range[NOTATION_MAX_INDEX], which;

	q->nrange = 0;
	gather(&e);
	check_types(&e);
	collect(&e, result_type(&e));
	for (int k = 0; k < n; k++) {
		range[q->range[k].name->slot] = k;
		extent[q->range[k].name->slot] = q->range[k].high->u.i;
	}
	while ((which = first_unlike(&e, extent)) >= 0) {
		for (int k = 0; k < n && needed[range[which]]; k++)
			which = (which + 1) % n;
		if (needed[range[which]])
			return;
		needed[range[which]] = true;
		e.span[which].high = node_int(e.ir, extent[which]);
		for (int k = 0; k < n; k++)
			e.span[k].known = false;
	}
}

/* ---- programs ---- */

void program_elaborate(Program *p, int *nresult, Node **results, int room)
{
	for (int i = 0; i < p->nequation; i++)
		p->equation[i]->name->tensor = elaborate_equation(p, p->equation[i]);
	if (p->nresult > room)
		notation_fail(&p->src, RICCI_EINVAL, p->equation[p->result[room]->assigned]->pos,
			      "the program has more than %d result%s: %s is %s", room,
			      room == 1 ? "" : "s", p->result[room]->s,
			      p->signature ? "one of its signature" : "not read");
	for (int i = 0; i < p->nresult; i++)
		results[i] = p->result[i]->tensor;
	*nresult = p->nresult;
}

int notation_elaborate(Ir *ir, const char *text, int noperand, Node *const *operands, int *nresult,
		       Node **results, int room)
{
	if (ir->err.code)
		return ir->err.code;
	IR_ENTER(ir, ir->err.code);
	Program *p = program_parse(ir, text);
	names_bind(p, noperand, operands);
	program_elaborate(p, nresult, results, room);
	IR_LEAVE(ir);
	return 0;
}

int notation_operands(Ir *ir, const char *text, const char ***names)
{
	if (ir->err.code)
		return -1;
	IR_ENTER(ir, -1);
	Program *p = program_parse(ir, text);
	const char **list = arena_alloc(&ir->arena, (size_t)(p->noperand + 1) * sizeof *list);
	for (int i = 0; i < p->noperand; i++)
		list[i] = p->operand[i]->s;
	*names = list;
	IR_LEAVE(ir);
	return p->noperand;
}

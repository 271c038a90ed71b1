/* graph_scan.c - ricci_scan and ricci_recompute: loops and regions in the public builder. Input:
 * the parts of a loop as users name them, all checked. Output: handles of its results.
 */
#include "core/graph/graph.h"
#include "core/notation/internal.h"

#include <string.h>

/* "f32 3x4", "i64 scalar" */
static const char *kind_text(ricci_graph *g, const Node *t, int drop)
{
	const char *s = arena_printf(&g->ir.arena, "%s ", type_name((Type)t->type));
	for (int d = drop; d < tensor_rank(t); d++)
		s = arena_printf(&g->ir.arena, "%s%s%lld", s, d > drop ? "x" : "",
				 (long long)tensor_extent(t, d));
	return tensor_rank(t) > drop ? s : arena_printf(&g->ir.arena, "%sscalar", s);
}

/* Is t, without its first `drop` dimensions, of v's type and shape? */
static bool same_kind(const Node *v, const Node *t, int drop)
{
	bool same = v->type == t->type && tensor_rank(v) == tensor_rank(t) - drop;
	for (int d = 0; same && d < tensor_rank(v); d++)
		same = tensor_extent(v, d) == tensor_extent(t, d + drop);
	return same;
}

static int check_tensor(ricci_graph *g, const char *call, const ricci_tensor *t, const char *what,
			int k)
{
	if (t && t->g == g && t->node)
		return 0;
	return error_set(&g->ir.err, RICCI_EINVAL, "%s: %s %d is not a tensor of this graph", call,
			 what, k);
}

static int check_variable(ricci_graph *g, const ricci_tensor *v, const char *what, int k)
{
	if (check_tensor(g, "ricci_scan", v, what, k))
		return g->ir.err.code;
	if (v->role != ROLE_INPUT && v->role != ROLE_VARIABLE)
		return error_set(
			&g->ir.err, RICCI_EINVAL,
			"ricci_scan: %s is no input, so it can't stand for a step's value; "
			"make the variable by ricci_input",
			v->name);
	return 0;
}

static int check_slice(ricci_graph *g, const ricci_loop *l, int k)
{
	const ricci_slice *s = &l->slice[k];
	if (check_variable(g, s->variable, "the variable of slice", k) ||
	    check_tensor(g, "ricci_scan", s->tensor, "the tensor of slice", k))
		return g->ir.err.code;
	const Node *v = s->variable->node, *t = s->tensor->node;
	if (!tensor_rank(t) || tensor_extent(t, 0) != l->steps)
		return error_set(
			&g->ir.err, RICCI_ESHAPE,
			"ricci_scan: %s is %s, but a tensor that is sliced has as many rows "
			"as the loop has steps, %lld",
			s->tensor->name, kind_text(g, t, 0), (long long)l->steps);
	if (!same_kind(v, t, 1))
		return error_set(&g->ir.err, v->type == t->type ? RICCI_ESHAPE : RICCI_ETYPE,
				 "ricci_scan: the variable %s is %s, but a slice of %s is %s",
				 s->variable->name, kind_text(g, v, 0), s->tensor->name,
				 kind_text(g, t, 1));
	return 0;
}

static int check_carry(ricci_graph *g, const ricci_loop *l, int k)
{
	const ricci_carry *c = &l->carry[k];
	if (check_variable(g, c->variable, "the variable of carry", k) ||
	    (c->initial &&
	     check_tensor(g, "ricci_scan", c->initial, "the initial value of carry", k)) ||
	    check_tensor(g, "ricci_scan", c->next, "the next value of carry", k))
		return g->ir.err.code;
	const Node *v = c->variable->node;
	for (int i = 0; i < 2; i++) {
		const ricci_tensor *t = i ? c->next : c->initial;
		if (t && !same_kind(v, t->node, 0))
			return error_set(
				&g->ir.err, v->type == t->node->type ? RICCI_ESHAPE : RICCI_ETYPE,
				"ricci_scan: the variable %s is %s, but its %s value %s is %s",
				c->variable->name, kind_text(g, v, 0), i ? "next" : "initial",
				t->name, kind_text(g, t->node, 0));
	}
	return 0;
}

/* A stack of t: rank and size. */
static int check_stack(ricci_graph *g, const ricci_loop *l, const ricci_tensor *t)
{
	int64_t bytes = (int64_t)type_size((Type)t->node->type);
	int most = RICCI_MAX_RANK - 1 - (l->segment > 0);
	if (tensor_rank(t->node) > most)
		return error_set(&g->ir.err, RICCI_ESHAPE,
				 "ricci_scan: %s has rank %d, so its steps can't be stacked%s: %d "
				 "is the most",
				 t->name, tensor_rank(t->node), l->segment ? " in segments" : "",
				 most);
	if (__builtin_mul_overflow(bytes, tensor_size(t->node), &bytes) ||
	    __builtin_mul_overflow(bytes, l->steps, &bytes))
		return error_set(&g->ir.err, RICCI_ESHAPE,
				 "ricci_scan: the size of %lld steps of %s overflows 64 bits",
				 (long long)l->steps, t->name);
	return 0;
}

static int check_twice(ricci_graph *g, const ricci_loop *l)
{
	int n = l->nslice + l->ncarry;
	for (int k = 0; k < n; k++)
		for (int i = 0; i < k; i++) {
			const ricci_tensor *a = k < l->nslice ? l->slice[k].variable
							      : l->carry[k - l->nslice].variable;
			const ricci_tensor *b = i < l->nslice ? l->slice[i].variable
							      : l->carry[i - l->nslice].variable;
			if (a == b)
				return error_set(&g->ir.err, RICCI_EINVAL,
						 "ricci_scan: %s is the variable of two parts of "
						 "the loop",
						 a->name);
		}
	return 0;
}

static int check_numbers(ricci_graph *g, const ricci_loop *l)
{
	Error *e = &g->ir.err;
	enum { MOST = 10000 };
	if (l->steps < 1 || l->steps > RANGE_MAX)
		return error_set(e, RICCI_EINVAL,
				 "ricci_scan: the number of steps is %lld, it must be 1 or more%s",
				 (long long)l->steps, l->steps < 1 ? "" : ", and at most 2^40");
	if (l->segment < 0)
		return error_set(e, RICCI_EINVAL,
				 "ricci_scan: segment is %lld; 0 keeps the states of all steps",
				 (long long)l->segment);
	if (l->nslice < 0 || l->ncarry < 0 || l->nout < 0 || l->nslice > MOST || l->ncarry > MOST ||
	    l->nout > MOST || (l->nslice && !l->slice) || (l->ncarry && !l->carry) ||
	    (l->nout && !l->out))
		return error_set(e, RICCI_EINVAL,
				 "ricci_scan: slice, carry and out must be given, %d of each at "
				 "most",
				 MOST);
	if (!l->length)
		return 0;
	if (l->length->g != g || !l->length->node)
		return error_set(e, RICCI_EINVAL,
				 "ricci_scan: the length is not a tensor of this graph");
	Type t = (Type)l->length->node->type;
	if (tensor_rank(l->length->node) || (t != RICCI_I32 && t != RICCI_I64))
		return error_set(e, RICCI_ETYPE,
				 "ricci_scan: the length %s is %s; a scalar i32 or i64 would be "
				 "right",
				 l->length->name, kind_text(g, l->length->node, 0));
	return 0;
}

/* Under IR_ENTER. */
static int check_loop(ricci_graph *g, const ricci_loop *l)
{
	int code = check_numbers(g, l);
	for (int k = 0; k < l->nslice && !code; k++)
		code = check_slice(g, l, k) || check_stack(g, l, l->slice[k].variable);
	for (int k = 0; k < l->ncarry && !code; k++)
		code = check_carry(g, l, k) || check_stack(g, l, l->carry[k].variable);
	for (int k = 0; k < l->nout && !code; k++)
		code = check_tensor(g, "ricci_scan", l->out[k], "out", k) ||
		       check_stack(g, l, l->out[k]);
	return code || check_twice(g, l) ? g->ir.err.code : 0;
}

/* What the body needs of a variable's data it needs of the tensor that is sliced. */
static int carry_needs(ricci_graph *g, const ricci_loop *l)
{
	for (Need *n = g->ir.need; n; n = n->next)
		for (int k = 0; k < l->nslice + l->ncarry; k++) {
			bool slice = k < l->nslice;
			const ricci_tensor *v =
				slice ? l->slice[k].variable : l->carry[k - l->nslice].variable;
			if (v->node != n->input)
				continue;
			Node *t = slice ? tensor_moved(l->slice[k].tensor->node) : NULL;
			if (!t || t->op != OP_INPUT || !need_add(&g->ir, t, n->lo, n->hi))
				return error_set(
					&g->ir.err, RICCI_ESHAPE,
					"ricci_scan: %s is %s, so nothing checks that its "
					"values stay in %lld..%lld where it indexes; write "
					"else there, or clamp with min and max",
					v->name, slice ? "computed" : "carried", (long long)n->lo,
					(long long)n->hi);
		}
	return graph_needs(g);
}

static Node *carry_initial(Ir *ir, const ricci_carry *c)
{
	const Node *v = c->variable->node;
	Node *axes[RICCI_MAX_RANK];

	if (c->initial)
		return c->initial->node;
	tensor_axes(ir, v, axes);
	return comp_dense(ir, RED_NONE, tensor_rank(v), tensor_rank(v), axes,
			  node_const(ir, (Type)v->type, 0));
}

static void make_plain(Ir *ir, const Scan *spec, Node *const *operand, int nout, Node **final,
		       Node **out)
{
	ScanCall call = scan_close(ir, spec, operand, nout, out, false);
	for (int k = 0; k < spec->nstate; k++)
		final[k] = scan_final(ir, &call, k);
	for (int k = 0; k < nout; k++)
		out[k] = scan_stack(ir, &call, call.result[k]);
}

static void make_loop(ricci_graph *g, const ricci_loop *l, ricci_tensor **final,
		      ricci_tensor **stacked)
{
	Ir *ir = &g->ir;
	size_t n = (size_t)(l->nslice + l->ncarry) + 1;
	Scan spec = {.bound = l->steps,
		     .backwards = l->backwards != 0,
		     .has_length = l->length != NULL,
		     .recompute = l->recompute != 0,
		     .nslice = l->nslice,
		     .nstate = l->ncarry};
	spec.var = arena_alloc(&ir->arena, n * sizeof *spec.var);
	spec.next = arena_alloc(&ir->arena, n * sizeof *spec.next);
	Node **operand = arena_alloc(&ir->arena, (n + 1) * sizeof *operand), **given = operand;
	Node **out = arena_alloc(&ir->arena, ((size_t)l->nout + 1) * sizeof *out);
	if (l->length)
		*given++ = l->length->node;
	for (int k = 0; k < l->nslice; k++) {
		spec.var[k] = l->slice[k].variable->node;
		given[k] = l->slice[k].tensor->node;
		l->slice[k].variable->role = ROLE_VARIABLE;
	}
	for (int k = 0; k < l->ncarry; k++) {
		spec.var[l->nslice + k] = l->carry[k].variable->node;
		given[l->nslice + k] = carry_initial(ir, &l->carry[k]);
		spec.next[k] = l->carry[k].next->node;
		l->carry[k].variable->role = ROLE_VARIABLE;
	}
	for (int k = 0; k < l->nout; k++)
		out[k] = l->out[k]->node;
	Node **last = arena_alloc(&ir->arena, n * sizeof *last);
	if (l->segment)
		scan_segments(ir, &spec, l->segment, operand, l->nout, out, last, out);
	else
		make_plain(ir, &spec, operand, l->nout, last, out);
	for (int k = 0; k < l->ncarry && final; k++)
		final[k] = graph_handle(g, last[k]);
	for (int k = 0; k < l->nout; k++)
		stacked[k] = graph_handle(g, out[k]);
}

static int scan_checked(ricci_graph *g, const ricci_loop *loop, ricci_tensor **final,
			ricci_tensor **stacked)
{
	if (!graph_open(g, "ricci_scan"))
		return g->ir.err.code;
	if (!loop || (loop->nout > 0 && !stacked))
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "ricci_scan: the loop and room for what it stacks must be given");
	IR_ENTER(&g->ir, g->ir.err.code);
	if (!check_loop(g, loop) && !carry_needs(g, loop))
		make_loop(g, loop, final, stacked);
	IR_LEAVE(&g->ir);
	return g->ir.err.code;
}

int ricci_scan(ricci_graph *g, const ricci_loop *loop, ricci_tensor **final, ricci_tensor **stacked)
{
	if (!g)
		return graph_missing("ricci_scan");
	ricci_loop own = RICCI_LOOP();
	int code = loop ? struct_take(&own, sizeof own, loop, "ricci_loop", &g->ir.err) : 0;
	if (!code)
		code = scan_checked(g, loop ? &own : NULL, final, stacked);
	for (int k = 0; code && final && k < own.ncarry; k++)
		final[k] = &g->nil;
	for (int k = 0; code && stacked && k < own.nout; k++)
		stacked[k] = &g->nil;
	return code;
}

/* ---- regions ---- */

static int check_rank(ricci_graph *g, const ricci_tensor *y)
{
	if (tensor_rank(y->node) < RICCI_MAX_RANK)
		return 0;
	return error_set(&g->ir.err, RICCI_ESHAPE,
			 "ricci_recompute: %s has rank %d; %d is the most", y->name, RICCI_MAX_RANK,
			 RICCI_MAX_RANK - 1);
}

static void make_region(ricci_graph *g, int nfrom, ricci_tensor *const *from, int n,
			ricci_tensor *const *y, ricci_tensor **results)
{
	Ir *ir = &g->ir;
	Scan spec = {.bound = 1, .recompute = true, .nconst = nfrom};
	spec.var = arena_alloc(&ir->arena, ((size_t)nfrom + 1) * sizeof *spec.var);
	Node **out = arena_alloc(&ir->arena, ((size_t)n + 1) * sizeof *out);
	for (int k = 0; k < nfrom; k++)
		spec.var[k] = from[k]->node;
	for (int k = 0; k < n; k++)
		out[k] = y[k]->node;
	ScanCall call = scan_close(ir, &spec, spec.var, n, out, false);
	for (int k = 0; k < n; k++)
		results[k] = graph_handle(g, scan_only(ir, &call, call.result[k]));
}

static int recompute_checked(ricci_graph *g, int nfrom, ricci_tensor *const *from, int n,
			     ricci_tensor *const *y, ricci_tensor **results)
{
	if (!graph_open(g, "ricci_recompute"))
		return g->ir.err.code;
	if (nfrom < 0 || n < 0 || (nfrom && !from) || (n && (!y || !results)))
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "ricci_recompute: from, y and results must be given");
	for (int k = 0; k < nfrom; k++)
		if (check_tensor(g, "ricci_recompute", from[k], "from", k))
			return g->ir.err.code;
	for (int k = 0; k < n; k++)
		if (check_tensor(g, "ricci_recompute", y[k], "y", k) || check_rank(g, y[k]))
			return g->ir.err.code;
	IR_ENTER(&g->ir, g->ir.err.code);
	make_region(g, nfrom, from, n, y, results);
	IR_LEAVE(&g->ir);
	return g->ir.err.code;
}

int ricci_recompute(ricci_graph *g, int nfrom, ricci_tensor *const *from, int n,
		    ricci_tensor *const *y, ricci_tensor **results)
{
	if (!g)
		return graph_missing("ricci_recompute");
	int code = recompute_checked(g, nfrom, from, n, y, results);
	for (int k = 0; code && results && k < n; k++)
		results[k] = &g->nil;
	return code;
}

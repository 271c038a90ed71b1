/* invariants.c - functions of a few of an equation's axes are computed once; so are functions of differences and sums of
 * two axes, and of a loop's constants.
 *
 * In: `Y[b,t,d] = X[b,t,d] * cos(t * pow(1e4, -d/64))`. Out: the same over C[t,d] = cos(..), an equation of its own, where
 * that is computed for few elements in place of many. What doesn't differ along the lines of the result stays: loops
 * around them compute it once a line. So does what a sum's result alone tells apart: it multiplies the sum (summation.c).
 * A function that has two axes in one difference only, exp(-a*(t-s)), is one of a single axis.
 * Of the equations of a loop's body, reductions too, those functions become equations that read nothing but what is the
 * same in all steps: scan_close takes these out. They are no larger than what they are computed from.
 * Invariant: what is computed apart reads inside its tensors whatever conditions stood around it. */
#include "jit/rewrite/products.h"

#include <string.h>

/* Elements of such a tensor, which is to stay in a cache; for so many of the result each; operations that are saved. */
static const double ELEMENTS = 1 << 16, USES = 16, SAVED = 4e5;
/* Products of what a sum reads are used more often, for they take little, and fill more memory: operations for all of
 * them, and for an element. */
static const double PRODUCT_USES = 64, PRODUCT_SAVED = 1e6, PRODUCT_ELEMENT = 32;

enum { GUARDS_MOST = 16 };

typedef struct Invariants {
	Ir *ir;
	const Node *c;
	const NodeMap *constant; /* a loop's; NULL: of one equation */
	Polyhedron *
		inside; /* the conditions around all that is looked at; NULL: in these themselves */
	bool shifted;	/* only functions of differences and sums are looked for */
	NodeMap seen;	/* expressions share parts */
	uint32_t last, summed;	  /* axes: of the result's lines; those that are reduced */
	Factors factors;	  /* of what is summed */
	Node *guard[GUARDS_MOST]; /* conditions outside of which nothing is summed */
	int nguard;
	bool chooses;		  /* other conditions choose what is summed, or parts of it */
	int lines[COMP_MAX_AXES]; /* reads along whose lines the axis runs */
	int n;
	Node *from[COMP_MAX_AXES], *to[COMP_MAX_AXES];
} Invariants;

/* What reads outside may not be computed apart from the condition around it, nor what draws before a loop: a draw is the
 * step's. */
static bool stays_in_loop(const Node *n)
{
	return node_draws(n) || node_reads_outside(n);
}

/* Does e read nothing but constants of the loop, no fewer bytes than it is? */
static bool is_constant(const Invariants *v, Node *e, double bytes)
{
	Node **read;
	int n = node_collect(v->ir, e, OP_READ, &read);
	bool all = true;
	for (int k = 0; k < n && all; k++) {
		bytes -= (double)tensor_bytes(read[k]->src[0]);
		all = node_map_get(v->constant, read[k]->src[0]) != NULL;
	}
	return all && bytes <= 0;
}

/* e over its own axes, and what these are in c. */
typedef struct Function {
	Node *e;
	int rank;
	Node *axis[COMP_MAX_AXES], *at[COMP_MAX_AXES];
} Function;

static bool is_choice(const Node *n)
{
	return n->op == OP_SELECT;
}

/* Of c's body; constant: of a loop, or NULL. */
static Invariants invariants_of(Ir *ir, const Node *c, const NodeMap *constant)
{
	Invariants v = {.ir = ir, .c = c, .constant = constant};
	Node **read;
	v.last = product_last(ir, c);
	for (int k = 0; k < comp_naxis(c); k++)
		v.summed |= (1U << k) & ~product_left(c);
	Node *inner = comp_body(c);
	for (; inner->op == OP_SELECT && node_is_value(inner->src[2], 0) && v.nguard < GUARDS_MOST;
	     inner = inner->src[1])
		v.guard[v.nguard++] = inner->src[0];
	v.chooses = node_any(ir, inner, is_choice);
	if (comp_reduce(c) == RED_ADD && type_is_float((Type)c->type))
		v.factors = product_split(ir, c, comp_body(c));
	int n = node_collect(ir, comp_body(c), OP_READ, &read);
	for (int k = 0; k < n; k++)
		for (int a = 0; a < comp_naxis(c) && read[k]->nsrc > 1; a++)
			v.lines[a] += node_has(read[k]->src[read[k]->nsrc - 1], comp_axis(c, a));
	return v;
}

/* Its last axis is the one along which most others are read. */
static Function function_of(const Invariants *v, Node *e)
{
	Function f = {.e = e};
	int along[COMP_MAX_AXES];
	for (int k = 0; k < comp_naxis(v->c); k++) {
		Node *axis = comp_axis(v->c, k);
		if (!node_has(e, axis))
			continue;
		int n = v->lines[k], at = f.rank++;
		for (; at > 0 && along[at - 1] > n; at--) {
			along[at] = along[at - 1];
			f.axis[at] = f.axis[at - 1];
		}
		along[at] = n;
		f.axis[at] = axis;
	}
	memcpy(f.at, f.axis, sizeof f.at);
	return f;
}

static double function_points(const Function *f)
{
	double n = 1;
	for (int k = 0; k < f->rank; k++)
		n *= (double)axis_extent(f->axis[k]);
	return n;
}

/* Is it worth an equation? */
static bool is_worth(const Invariants *v, const Function *f)
{
	double few = function_points(f), all = comp_points(v->c);
	bool good = f->rank <= RICCI_MAX_RANK && node_any(v->ir, f->e, node_is_function);
	if (v->constant)
		return good && is_constant(v, f->e, few * (double)type_size((Type)f->e->type)) &&
		       !node_any(v->ir, f->e, stays_in_loop);
	return good && few <= ELEMENTS && few * USES <= all &&
	       expr_flops(v->ir, f->e) * (all - few) >= SAVED && reads_lie_inside(v->ir, f->e);
}

/* Of the function's axes a and b, is there nothing in it but a + sign * b? It has one axis less then. */
static bool function_joins(const Invariants *v, Function *f, int a, int b, int sign)
{
	Ir *ir = v->ir;
	Node *other = node_scale(ir, f->axis[b], sign), *sum = node_add(ir, f->axis[a], other);
	Node *rest = node_sub(ir, f->axis[a], other);
	int64_t lo, hi;
	if (f->axis[a] != f->at[a] || f->axis[b] != f->at[b] ||
	    node_has(node_replace(ir, f->e, 1, &f->axis[a], &rest), f->axis[b]) ||
	    !poly_bounds(poly_copy(v->inside), sum, &lo, &hi))
		return false;
	Node *axis = node_axis(ir, (int)f->axis[a]->u.i, hi - lo + 1);
	Node *first = node_int(ir, lo), *to = node_sub(ir, node_add(ir, axis, first), other);
	Node *e = node_replace(ir, f->e, 1, &f->axis[a], &to);
	if (node_has(e, f->axis[b]))
		return false;
	f->e = e;
	f->axis[a] = axis;
	f->at[a] = node_sub(ir, sum, first);
	f->rank--;
	for (int k = b; k < f->rank; k++) {
		f->axis[k] = f->axis[k + 1];
		f->at[k] = f->at[k + 1];
	}
	return true;
}

/* All pairs of which that is so. Lanes, the last axes, run forwards. */
static bool function_shrinks(const Invariants *v, Function *f)
{
	bool any = false, more = true;
	while (more) {
		more = false;
		for (int a = f->rank - 1; a >= 0 && !more; a--)
			for (int b = 0; b < f->rank && !more; b++)
				more = a != b && (function_joins(v, f, a, b, -1) ||
						  (a < b && function_joins(v, f, a, b, 1)));
		any |= more;
	}
	return any;
}

static void take_apart(Invariants *v, Node *e, const Function *f)
{
	Node *t = comp_dense(v->ir, RED_NONE, f->rank, f->rank, f->axis, f->e);
	v->from[v->n] = e;
	v->to[v->n++] = node_read(v->ir, t, f->at);
}

/* A call that has two axes in their difference or sum only. */
static bool find_shifted(Invariants *v, Node *e)
{
	if (!v->inside || !node_is_function(e) || expr_flops(v->ir, e) * comp_points(v->c) < SAVED)
		return false;
	Function f = function_of(v, e);
	bool good = f.rank > 1 && function_shrinks(v, &f) && is_worth(v, &f);
	if (good)
		take_apart(v, e, &f);
	return good;
}

/* Is e of a factor that has no other axes? That is packed, or multiplies the sum. */
static bool is_in_factor(const Invariants *v, Node *e, uint32_t axes)
{
	bool in = false;
	for (int k = 0; k < v->factors.n && !in; k++)
		in = !(v->factors.f[k].axes & ~axes) &&
		     node_has(product_of(&v->factors, 1, &v->factors.f[k]), e);
	return in;
}

static bool always_holds(Ir *ir, const Node *cond)
{
	const Node *slack = condition_slack(ir, cond);
	return node_is_const(cond) ? cond->u.i != 0 : slack && slack->lo >= 0;
}

/* Do all conditions hold somewhere for each place of these axes, the others in their middle? Then what has these axes is
 * computed for all of their places, and shows in the result. */
static bool asked_anyway(const Invariants *v, uint32_t axes)
{
	Ir *ir = v->ir;
	Node *from[COMP_MAX_AXES], *to[COMP_MAX_AXES], **part;
	int n = 0;
	for (int k = 0; k < comp_naxis(v->c); k++) {
		if (axes >> k & 1)
			continue;
		from[n] = comp_axis(v->c, k);
		to[n++] = node_int(ir, axis_extent(comp_axis(v->c, k)) / 2);
	}
	for (int g = 0; g < v->nguard; g++) {
		int parts =
			node_parts(ir, node_replace(ir, v->guard[g], n, from, to), OP_AND, &part);
		for (int p = 0; p < parts; p++)
			if (!always_holds(ir, part[p]))
				return false;
	}
	return true;
}

/* Is e computed anew along the lines of the result and for each term of a sum, whatever loops there are; or along one of
 * these, unless its factor is? (As a tensor it would be a factor that leaves conditions, zero times infinite then, where
 * these protect it.) */
static bool differs_along(const Invariants *v, Node *e)
{
	uint32_t axes = product_axes(v->c, e);
	bool line = axes & v->last, term = axes & v->summed;
	if (line && (term || !v->summed))
		return true;
	return (line || term) && !is_in_factor(v, e, axes) &&
	       (!node_any(v->ir, e, product_unsafe) || (!v->chooses && asked_anyway(v, axes)));
}

/* The largest such parts of e. */
static void find(Invariants *v, Node *e)
{
	bool number = e->type == RICCI_F32 || e->type == RICCI_F64;
	if (v->n == COMP_MAX_AXES || node_map_get(&v->seen, e))
		return;
	node_map_put(v->ir, &v->seen, e, e);
	bool along = v->constant || differs_along(v, e);
	if (number && along && !v->shifted && node_any(v->ir, e, node_is_function)) {
		Function f = function_of(v, e);
		if (is_worth(v, &f)) {
			take_apart(v, e, &f);
			return;
		}
	}
	if (number && find_shifted(v, e))
		return;
	for (int k = 0; k < e->nsrc && e->op != OP_READ; k++)
		find(v, e->src[k]);
}

/* c over what was taken apart. */
static Node *parts_read(const Invariants *v, Node *c)
{
	Node *body = comp_body(c);
	return v->n ? comp_with(v->ir, c, comp_reduce(c),
				node_replace(v->ir, body, v->n, v->from, v->to))
		    : c;
}

Node *invariants_apart(Ir *ir, Node *c)
{
	Node *inner = comp_body(c);
	if (!node_any(ir, inner, node_is_function))
		return c;
	Polyhedron *inside = poly_new(ir);
	Invariants v = invariants_of(ir, c, NULL);
	v.shifted = comp_reduce(c) == RED_NONE && tensor_rank(c) < 2;
	for (; inner->op == OP_SELECT && inner->src[2]->op == OP_CONST; inner = inner->src[1]) {
		find(&v, inner->src[0]); /* what is seen here, the conditions don't bound */
		poly_assume(inside, inner->src[0]);
	}
	v.inside = inside;
	find(&v, inner);
	return parts_read(&v, c);
}

/* ---- products ---- */

/* Factor f of c's product, but for its condition, over its own axes. */
static Function factor_function(const Invariants *v, const Factors *l, const Factor *f)
{
	Factor value = {.value = f->value, .divisor = f->divisor};
	Function apart = function_of(v, product_of(l, 1, &value));
	function_shrinks(v, &apart);
	return apart;
}

static bool same_place(Ir *ir, Node *a, Node *b)
{
	return node_is_const(node_sub(ir, a, b)) || node_is_const(node_add(ir, a, b));
}

/* Has f no axes but g's? */
static bool has_axes_of(Ir *ir, const Function *f, const Function *g)
{
	bool all = true;
	for (int k = 0; k < f->rank && all; k++) {
		all = false;
		for (int i = 0; i < g->rank && !all; i++)
			all = same_place(ir, f->at[k], g->at[i]);
	}
	return all;
}

/* A factor over axes that another one has, too, goes into that; false: there is none. f: their functions. */
static bool factors_join(const Invariants *v, Factors *l, Function *f)
{
	for (int i = 0; i < l->n; i++)
		for (int k = 0; k < l->n; k++) {
			if (i == k || !has_axes_of(v->ir, &f[k], &f[i]))
				continue;
			product_combine(l, i, k);
			f[k] = f[l->n]; /* the last one is number k then */
			int both = i < l->n ? i : k;
			f[both] = factor_function(v, l, &l->f[both]);
			return true;
		}
	return false;
}

/* Is it worth a tensor? */
static bool product_is_worth(const Invariants *v, const Function *f)
{
	double all = comp_points(v->c), few = function_points(f), flops = expr_flops(v->ir, f->e);
	return f->rank && f->rank <= RICCI_MAX_RANK && few * PRODUCT_USES <= all &&
	       flops * all >= PRODUCT_SAVED + PRODUCT_ELEMENT * few &&
	       reads_lie_inside(v->ir, f->e);
}

Node *products_apart(Ir *ir, Node *c)
{
	if (comp_reduce(c) != RED_ADD || comp_naxis(c) == tensor_rank(c) || !product_beside(ir, c))
		return c;
	Factors l = product_split(ir, c, comp_body(c));
	Invariants v = invariants_of(ir, c, NULL);
	Polyhedron *inside = poly_new(ir); /* all conditions stand around the product */
	int n = 0;
	v.inside = inside;
	for (int k = 0; k < l.n; k++)
		if (l.f[k].cond)
			poly_assume(inside, l.f[k].cond);
	Function *f = arena_alloc(&ir->arena, (size_t)l.n * sizeof *f);
	for (int k = 0; k < l.n; k++)
		f[k] = factor_function(&v, &l, &l.f[k]);
	while (factors_join(&v, &l, f)) {
	}
	for (int k = 0; k < l.n; k++) {
		if (!product_is_worth(&v, &f[k]))
			continue;
		Node *t = comp_dense(ir, RED_NONE, f[k].rank, f[k].rank, f[k].axis, f[k].e);
		l.f[k].value = node_read(ir, t, f[k].at);
		l.f[k].divisor = NULL;
		n++;
	}
	return n ? product_sum(ir, c, product_of(&l, l.n, l.f)) : c;
}

/* ---- loops ---- */

typedef struct Constants {
	Ir *ir;
	NodeMap of; /* tensors, themselves */
} Constants;

/* c, with functions of constants apart; or c itself is one. */
static Node *constants_apart(void *user, Node *was, Node *c)
{
	Constants *k = user;
	Node **read;
	if (c->op != OP_COMP || was->op != OP_COMP)
		return c;
	int n = comp_reads(k->ir, c, &read), constants = 0;
	for (int i = 0; i < n; i++)
		constants += node_map_get(&k->of, read[i]) != NULL;
	bool leaves = constants == n && body_may_leave(k->ir, c);
	if (leaves)
		node_map_put(k->ir, &k->of, c, c);
	if (leaves || !constants || !node_any(k->ir, comp_body(c), node_is_function))
		return c;
	Invariants v = invariants_of(k->ir, c, &k->of);
	find(&v, comp_body(c));
	return parts_read(&v, c);
}

void loop_constants_apart(Ir *ir, const Scan *s, int nroot, Node **roots)
{
	Constants k = {.ir = ir};
	int first = s->nslice + s->nstate;
	for (int i = first; i < first + s->nconst; i++)
		node_map_put(ir, &k.of, s->var[i], s->var[i]);
	if (s->nconst && !s->recompute && s->bound > 1)
		graph_change(ir, nroot, roots, constants_apart, &k);
}

/* products.c - products as lists of factors.
 * In: a float expression. Out: factors whose product it is but for rounding; terms of a sum, or branches of a choice, that
 * have factors in common are these and one factor beside them, of what is left. */
#include "jit/rewrite/products.h"

#include <string.h>

/* Operators of an expression; factors of the last ones stay together. */
enum { LOOKED_AT = 256 };
/* What an element that data look up costs a vector's lane, in operations that a product of matrices does meanwhile:
 * measured, 0.2 ns with what adds it up, on two cores of 450 GFLOP/s. */
static const double LOOK_UP = 64;

static void factor_add(Factors *l, Node *value, Node *divisor, Node *cond)
{
	l->f = arena_grow(&l->ir->arena, l->f, l->n, &l->room, sizeof *l->f);
	l->f[l->n++] = (Factor){value, divisor, cond, 0, 0};
}

static Node *times(Ir *ir, Node *a, Node *b)
{
	return !a ? b : !b ? a : node2(ir, OP_MUL, a, b);
}

static Factor factor_of_both(Ir *ir, const Factor *a, const Factor *b)
{
	return (Factor){times(ir, a->value, b->value), times(ir, a->divisor, b->divisor),
			node_and(ir, a->cond, b->cond), a->axes | b->axes, a->flops + b->flops + 1};
}

Factors factors_copy(const Factors *l)
{
	Factors copy = *l;
	copy.f = arena_alloc(&l->ir->arena, (size_t)l->n * sizeof *l->f);
	copy.room = l->n;
	memcpy(copy.f, l->f, (size_t)l->n * sizeof *l->f);
	return copy;
}

Node *product_of(const Factors *l, int n, const Factor *f)
{
	Factor all = {0};
	for (int k = 0; k < n; k++)
		all = factor_of_both(l->ir, &all, &f[k]);
	Node *value = all.value ? all.value : node_const(l->ir, l->type, 1);
	if (all.divisor && node_is_const(all.divisor)) /* a constant, too */
		value = node2(l->ir, OP_MUL, value,
			      node2(l->ir, OP_DIV, node_const(l->ir, l->type, 1), all.divisor));
	else if (all.divisor)
		value = node2(l->ir, OP_DIV, value, all.divisor);
	return all.cond ? node_select(l->ir, all.cond, value, node_const(l->ir, l->type, 0))
			: value;
}

/* Moves the factors that both lists have to the front of each; returns their number. */
static int common_first(Factors *a, Factors *b)
{
	int n = 0;
	for (int i = 0; i < a->n; i++)
		for (int k = n; k < b->n; k++) {
			Factor x = a->f[i], y = b->f[k];
			if (x.value != y.value || x.divisor != y.divisor || x.cond != y.cond)
				continue;
			a->f[i] = a->f[n];
			a->f[n] = x;
			b->f[k] = b->f[n];
			b->f[n++] = y;
			break;
		}
	return n;
}

static void product_add(Factors *l, Node *e, bool divides, int *left);

/* a + b, a - b, or c ? a : b: what both have in common, and the rest. */
static void both_add(Factors *l, Node *e, int *left)
{
	Factors a = {.ir = l->ir, .type = l->type, .given = l->given}, b = a;
	bool choice = e->op == OP_SELECT;
	product_add(&a, e->src[choice], false, left);
	product_add(&b, e->src[choice + 1], false, left);
	int n = common_first(&a, &b);
	for (int k = 0; k < n; k++)
		factor_add(l, a.f[k].value, a.f[k].divisor, a.f[k].cond);
	if (n) {
		Node *x = product_of(l, a.n - n, a.f + n), *y = product_of(l, b.n - n, b.f + n);
		e = choice ? node_select(l->ir, e->src[0], x, y) : node2(l->ir, (Op)e->op, x, y);
	}
	factor_add(l, e, NULL, NULL);
}

bool product_unsafe(const Node *n)
{
	return n->op != OP_READ && type_is_float((Type)n->type) && !node_stays_finite(n);
}

/* Does the read stay inside where inside holds? */
static bool stays_where(Node *read, Polyhedron *inside)
{
	int64_t lo, hi;
	bool stays = true;
	for (int d = 1; d < read->nsrc && stays; d++)
		stays = poly_bounds(inside, read->src[d], &lo, &hi) && lo >= 0 &&
			hi < tensor_extent(read->src[0], d - 1);
	return stays;
}

/* Do all reads in e, which may be NULL, stay inside where the condition holds? NULL: anywhere. */
static bool reads_stay(Ir *ir, Node *e, Node *cond)
{
	Node **read;
	Polyhedron *inside = NULL;
	int n = e ? node_collect(ir, e, OP_READ, &read) : 0;
	for (int k = 0; k < n; k++) {
		if (read_lies_inside(ir, read[k]))
			continue;
		if (!cond)
			return false;
		if (!inside) {
			inside = poly_new(ir);
			poly_assume(inside, cond);
		}
		if (!stays_where(read[k], inside))
			return false;
	}
	return true;
}

/* Do all reads of the factor stay inside where its own condition holds, and those around it? */
static bool factor_stays(const Factors *l, const Factor *f)
{
	Node *cond = node_and(l->ir, l->given, f->cond);
	return reads_stay(l->ir, f->value, cond) && reads_stay(l->ir, f->divisor, cond) &&
	       reads_stay(l->ir, f->cond, l->given);
}

/* May the factor be evaluated where conditions around it don't hold, and is it a number there (zero times it is
 * zero)? Data that are none may show (docs/notation.md). */
static bool is_safe(const Factors *l, const Factor *f)
{
	return factor_stays(l, f) && !node_any(l->ir, product_of(l, 1, f), product_unsafe);
}

static bool is_choice(const Node *n)
{
	return n->op == OP_OR || n->op == OP_SELECT || n->op == OP_READ;
}

bool condition_chooses(Ir *ir, Node *cond)
{
	return node_any(ir, cond, is_choice);
}

/* Those parts of a condition that are choices of several, or the others. */
static Node *condition_parts(Ir *ir, Node *cond, bool choices)
{
	Node **part, *all = NULL;
	int n = node_parts(ir, cond, OP_AND, &part);
	for (int k = 0; k < n; k++)
		if (condition_chooses(ir, part[k]) == choices)
			all = node_and(ir, all, part[k]);
	return all;
}

/* The factors from number `first` on are cond ? product : 0; what is not safe without it becomes one factor with it.
 * Choices of several conditions stand apart where both are safe without the other. */
static void condition_add(Factors *l, int first, Node *cond)
{
	Factor all = {NULL, NULL, cond, 0, 0};
	int n = first;
	for (int k = first; k < l->n; k++)
		if (!is_safe(l, &l->f[k]))
			all = factor_of_both(l->ir, &all, &l->f[k]);
		else
			l->f[n++] = l->f[k];
	l->n = n;
	Node *choices = condition_parts(l->ir, all.cond, true);
	Factor less = all, apart = {NULL, NULL, choices, 0, 0};
	less.cond = condition_parts(l->ir, all.cond, false);
	if (choices && is_safe(l, &less) && is_safe(l, &apart)) {
		factor_add(l, NULL, NULL, choices);
		all = less;
	}
	if (all.value || all.divisor || all.cond)
		factor_add(l, all.value, all.divisor, all.cond);
}

/* Is e `c ? x : 0` or `c ? 0 : x`? */
static bool is_masked(const Node *e)
{
	return e->op == OP_SELECT && (node_is_value(e->src[1], 0) || node_is_value(e->src[2], 0));
}

/* e is masked, once or several times. */
static void masked_add(Factors *l, Node *e, int *left)
{
	Node *cond = NULL;
	int first = l->n;
	while (is_masked(e)) {
		bool otherwise = node_is_value(e->src[1], 0);
		Node *holds = otherwise ? node1(l->ir, OP_NOT, e->src[0]) : e->src[0];
		cond = node_and(l->ir, cond, holds);
		e = e->src[otherwise ? 2 : 1];
	}
	Node *around = l->given;
	l->given = node_and(l->ir, around, cond);
	product_add(l, e, false, left);
	l->given = around;
	condition_add(l, first, cond);
}

/* The factors of e, or of 1 / e. left: of so many more operators; parts that are shared count each time. */
static void product_add(Factors *l, Node *e, bool divides, int *left)
{
	Op op = --*left > 0 ? (Op)e->op : OP_CONST;
	if (op == OP_MUL || op == OP_DIV) {
		product_add(l, e->src[0], divides, left);
		product_add(l, e->src[1], divides != (op == OP_DIV), left);
	} else if (op == OP_NEG) {
		factor_add(l, node_const(l->ir, l->type, -1), NULL, NULL);
		product_add(l, e->src[0], divides, left);
	} else if (op == OP_SELECT && !divides && is_masked(e)) {
		masked_add(l, e, left);
	} else if ((op == OP_ADD || op == OP_SUB || op == OP_SELECT) && !divides) {
		both_add(l, e, left);
	} else {
		factor_add(l, divides ? NULL : e, divides ? e : NULL, NULL);
	}
}

int product_part(Factors *l, uint32_t axes)
{
	int n = 0;
	for (int k = 0; k < l->n; k++)
		if (l->f[k].axes & axes) {
			Factor f = l->f[k];
			l->f[k] = l->f[n];
			l->f[n++] = f;
		}
	return n;
}

void product_combine(Factors *l, int i, int k)
{
	l->f[i] = factor_of_both(l->ir, &l->f[i], &l->f[k]);
	l->f[k] = l->f[--l->n];
}

uint32_t product_last(Ir *ir, const Node *c)
{
	int rank = tensor_rank(c);
	uint32_t last = 0;
	for (int k = 0; k < comp_naxis(c) && rank; k++)
		if (affine_stride(ir, comp_lhs(c, rank - 1), comp_axis(c, k)) == 1)
			last = 1U << k;
	return last;
}

bool product_beside(Ir *ir, const Node *c)
{
	Node **read;
	int n = node_collect(ir, comp_body(c), OP_READ, &read);
	uint32_t last = product_last(ir, c), every = product_axes(c, comp_body(c));
	bool all = last && n, several = false;
	for (int k = 0; k < n && all; k++) {
		uint32_t axes = product_axes(c, read[k]);
		several |= axes != every;
		all = false;
		for (int i = 0; i < n && !all; i++) {
			uint32_t others = product_axes(c, read[i]);
			all = others & last && !(axes & ~others);
		}
	}
	return all && several;
}

uint32_t product_axes(const Node *c, Node *e)
{
	uint32_t set = 0;
	for (int k = 0; k < comp_naxis(c) && e; k++)
		set |= node_has(e, comp_axis(c, k)) ? 1U << k : 0;
	return set;
}

uint32_t product_left(const Node *c)
{
	uint32_t set = 0;
	for (int d = 0; d < tensor_rank(c); d++)
		set |= product_axes(c, comp_lhs(c, d));
	return set;
}

double product_points(const Node *c, uint32_t axes)
{
	double n = 1;
	for (int k = 0; k < comp_naxis(c); k++)
		n *= axes >> k & 1 ? (double)axis_extent(comp_axis(c, k)) : 1;
	return n;
}

/* Of e's reads: for those that each lane looks up at a place of its own. */
static double look_up_flops(Ir *ir, const Node *c, Node *e)
{
	Node **read;
	uint32_t last = product_last(ir, c);
	int n = node_collect(ir, e, OP_READ, &read), lanes = 0;
	for (int k = 0; k < n; k++)
		for (int d = 1; d < read[k]->nsrc; d++)
			lanes += node_reads(ir, read[k]->src[d]) &&
				 product_axes(c, read[k]->src[d]) & last;
	return LOOK_UP * lanes;
}

static void factor_measure(Ir *ir, const Node *c, Factor *f)
{
	Node *part[] = {f->value, f->divisor, f->cond};
	for (int i = 0; i < (int)COUNT(part); i++) {
		f->axes |= product_axes(c, part[i]);
		if (part[i])
			f->flops += expr_flops(ir, part[i]) + look_up_flops(ir, c, part[i]);
	}
}

Factors product_split(Ir *ir, const Node *c, Node *e)
{
	Factors l = {.ir = ir, .type = (Type)e->type};
	int left = LOOKED_AT;
	product_add(&l, e, false, &left);
	for (int k = 0; k < l.n; k++)
		factor_measure(ir, c, &l.f[k]);
	return l;
}

Node *product_sum(Ir *ir, const Node *c, Node *body)
{
	Node *axis[COMP_MAX_AXES];
	uint32_t has = product_left(c) | product_axes(c, body);
	int n = 0;
	for (int k = 0; k < comp_naxis(c); k++)
		if (has >> k & 1)
			axis[n++] = comp_axis(c, k);
	Reduce red = n == tensor_rank(c) && comp_is_dense(c) ? RED_NONE : RED_ADD;
	return comp_over(ir, c, red, n, axis, body);
}

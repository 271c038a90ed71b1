/* polyhedron.c - what is known of integer nodes: a conjunction of constraints, and questions to it.
 *
 * Variables are atoms (axes, reads, products, quotients ..): everything that affine_of does not
 * look into. A remainder e % c is written as e - c*(e/c), so that quotients are the only new
 * variables; they, minima, maxima and widened integers bring their defining inequalities when they
 * first occur, and every atom its own lo..hi. BOOL nodes that are no compares count as variables in
 * 0..1. The deciding is in eliminate.c. Invariant: a constraint is only ever left out, never
 * invented, so "empty" and "implied" are proofs. */
#include "core/algebra/internal.h"

#include <string.h>

/* Proofs by cases are nested that deep; those of a disjunction are the outermost. A proof gives up
 * after so many steps (those found by 3,000 random programs take up to 24): disjunctions within
 * disjunctions would take exponential time. */
enum { SPLIT_DEPTH = 3, NO_CHOICE = SPLIT_DEPTH - 1, MAX_CHOICES = 2, MAX_STEPS = 200 };

struct Polyhedron {
	Ir *ir;
	System s;
	Node **var;
	int room_var;
	bool empty; /* a constraint was false by itself */
	int nchoice;
	Node *choice[MAX_CHOICES]; /* disjunctions assumed, of which neither part is excluded */
	uint64_t linked;	   /* variables that are sums, and equal to their forms by a row */
	int *nstep;		   /* of the proof that this one's copies serve; NULL: none */
};

Polyhedron *poly_new(Ir *ir)
{
	Polyhedron *p = arena_alloc(&ir->arena, sizeof *p);
	p->ir = ir;
	return p;
}

Ir *poly_ir(const Polyhedron *p)
{
	return p->ir;
}

/* Room for one more row, of variables up to `nvar`. */
static void poly_room(Polyhedron *p, int nvar)
{
	System *s = &p->s, old = *s;
	while (s->width < nvar + 1)
		s->width = s->width ? 2 * s->width : 8;
	while (s->room < s->nrow + 1)
		s->room = s->room ? 2 * s->room : 16;
	if (s->width == old.width && s->room == old.room)
		return;
	size_t width = (size_t)s->width, room = (size_t)s->room;
	s->cell = arena_alloc(&p->ir->arena, width * room * sizeof *s->cell);
	s->equal = arena_alloc(&p->ir->arena, room * sizeof *s->equal);
	for (int r = 0; r < s->nrow; r++) {
		memcpy(system_row(s, r), system_row(&old, r), (size_t)old.width * sizeof *s->cell);
		s->equal[r] = old.equal[r];
	}
}

/* Both go on with the arrays they have, which are full for the copy: its next row or variable moves
 * it to arrays of its own. What they share is never written again. */
Polyhedron *poly_copy(Polyhedron *p)
{
	Polyhedron *q = poly_new(p->ir);
	*q = *p;
	q->s.room = p->s.nrow;
	q->room_var = p->s.nvar;
	return q;
}

/* ---- linear forms of nodes over the variables ---- */

/* A row under construction: constant and coefficients; `fit` falls when it leaves int64 or
 * SYSTEM_MAX_VARS. */
typedef struct Form {
	int64_t c, k[SYSTEM_MAX_VARS];
	int n; /* k beyond n is unset and means 0 */
	bool fit;
} Form;

static void form_add(Polyhedron *p, Form *f, Node *e, int64_t k);

static void form_count(Form *f, int64_t v, int64_t k)
{
	int64_t prod;
	if (__builtin_mul_overflow(v, k, &prod) || __builtin_add_overflow(f->c, prod, &f->c))
		f->fit = false;
}

static void form_variable(Form *f, int v, int64_t k)
{
	while (f->n <= v)
		f->k[f->n++] = 0;
	if (__builtin_add_overflow(f->k[v], k, &f->k[v]))
		f->fit = false;
}

static void poly_row(Polyhedron *p, const Form *f, bool equal)
{
	if (!f->fit)
		return;
	poly_room(p, p->s.nvar);
	int64_t *row = system_row(&p->s, p->s.nrow);
	memset(row, 0, (size_t)p->s.width * sizeof *row);
	row[0] = f->c;
	memcpy(row + 1, f->k, (size_t)f->n * sizeof *row);
	RowKind kind = row_tighten(row, p->s.nvar, equal);
	if (kind == ROW_FALSE)
		p->empty = true;
	if (kind != ROW_LIVE)
		return;
	p->s.equal[p->s.nrow++] = equal;
}

static void assume_linear(Polyhedron *p, Node *a, int64_t ka, Node *b, int64_t kb, int64_t c,
			  bool equal)
{
	Form f = {.c = c, .fit = true};
	form_add(p, &f, a, ka);
	if (b)
		form_add(p, &f, b, kb);
	poly_row(p, &f, equal);
}

/* lo <= e <= hi from the node itself, where it says something. */
static void assume_bounds(Polyhedron *p, Node *e)
{
	const int64_t far = INT64_MAX / 4;
	if (e->lo > -far)
		assume_linear(p, e, 1, NULL, 0, -e->lo, false);
	if (e->hi < far)
		assume_linear(p, e, -1, NULL, 0, e->hi, false);
}

static bool is_quotient(const Node *e)
{
	return (e->op == OP_FLOORDIV || e->op == OP_FLOORMOD) && node_is_const(e->src[1]) &&
	       e->src[1]->u.i > 0;
}

/* What is true of a variable by its definition. */
static void assume_definition(Polyhedron *p, Node *e)
{
	if (is_quotient(e)) {
		int64_t c = e->src[1]->u.i;
		assume_linear(p, e->src[0], 1, e, -c, 0, false);
		assume_linear(p, e->src[0], -1, e, c, c - 1, false);
	} else if (e->op == OP_MIN || e->op == OP_MAX) {
		int64_t sign = e->op == OP_MIN ? 1 : -1;
		assume_linear(p, e->src[0], sign, e, -sign, 0, false);
		assume_linear(p, e->src[1], sign, e, -sign, 0, false);
	} else if (e->op == OP_ABS && e->lo >= 0) { /* does not wrap */
		assume_linear(p, e, 1, e->src[0], -1, 0, false);
		assume_linear(p, e, 1, e->src[0], 1, 0, false);
	}
}

/* The number of the variable e, made when new; -1 when there are too many. */
static int poly_variable(Polyhedron *p, Node *e)
{
	for (int v = 0; v < p->s.nvar; v++)
		if (p->var[v] == e)
			return v;
	if (p->s.nvar == SYSTEM_MAX_VARS)
		return -1;
	int v = p->s.nvar++;
	p->var = arena_grow(&p->ir->arena, p->var, v, &p->room_var, sizeof *p->var);
	p->var[v] = e;
	assume_bounds(p, e);
	assume_definition(p, e);
	return v;
}

/* Is the form's value in int64 wherever p holds? */
static bool form_fits(Polyhedron *p, const Affine *a)
{
	__int128 least = a->c, most = a->c;
	for (int i = 0; i < a->n; i++) {
		int64_t lo = a->atom[i]->lo, hi = a->atom[i]->hi, k = a->k[i];
		if (lo == INT64_MIN || hi == INT64_MAX)
			poly_bounds(p, a->atom[i], &lo, &hi);
		__int128 l = (__int128)k * (k > 0 ? lo : hi), h = (__int128)k * (k > 0 ? hi : lo);
		if (l < INT64_MIN * (__int128)4 || h > INT64_MAX * (__int128)4)
			return false;
		least += l;
		most += h;
	}
	return least >= INT64_MIN && most <= INT64_MAX;
}

bool cast_keeps(const Node *e)
{
	if (e->op != OP_CAST || type_is_float((Type)e->src[0]->type) || e->type == RICCI_BOOL)
		return false;
	int64_t lo, hi;
	type_range((Type)e->type, &lo, &hi);
	return e->src[0]->lo >= lo && e->src[0]->hi <= hi;
}

static void form_atom(Polyhedron *p, Form *f, Node *e, int64_t k)
{
	if (cast_keeps(e)) {
		form_add(p, f, e->src[0], k);
		return;
	}
	if (e->op == OP_FLOORMOD && is_quotient(e)) {
		int64_t c = e->src[1]->u.i, kc;
		if (!__builtin_mul_overflow(k, -c, &kc)) {
			form_add(p, f, e->src[0], k);
			form_add(p, f, node_floordiv(p->ir, e->src[0], c), kc);
			return;
		}
	}
	int v = poly_variable(p, e);
	if (v < 0)
		f->fit = false;
	else
		form_variable(f, v, k);
}

static void form_terms(Polyhedron *p, Form *f, const Affine *a, int64_t k)
{
	form_count(f, a->c, k);
	for (int i = 0; i < a->n; i++) {
		int64_t ki;
		if (__builtin_mul_overflow(a->k[i], k, &ki))
			f->fit = false;
		else
			form_atom(p, f, a->atom[i], ki);
	}
}

/* A sum that may wrap, but not under what p knows, is its affine form. What p knew of the sum as a
 * variable is said of the form. */
static bool find_sum(Polyhedron *p, Node *e, Affine *a)
{
	if (!node_may_wrap(e) || e->type != RICCI_I64)
		return false;
	Affine sum = affine_modular(p->ir, e);
	if ((sum.n == 1 && sum.atom[0] == e) || !form_fits(p, &sum))
		return false;
	*a = sum;
	for (int v = 0; v < p->s.nvar; v++) {
		if (p->var[v] != e || p->linked >> v & 1)
			continue;
		p->linked |= (uint64_t)1 << v;
		Form f = {.c = 0, .fit = true};
		form_variable(&f, v, -1);
		form_terms(p, &f, a, 1);
		poly_row(p, &f, true);
	}
	return true;
}

static void form_add(Polyhedron *p, Form *f, Node *e, int64_t k)
{
	if (!f->fit)
		return;
	Affine a = affine_of(p->ir, e);
	find_sum(p, e, &a);
	form_terms(p, f, &a, k);
}

/* ---- branches ---- */

static bool is_branch(const Node *e)
{
	return (e->op == OP_SELECT || e->op == OP_MIN || e->op == OP_MAX) &&
	       !type_is_float((Type)e->type);
}

static bool is_sum(const Node *e)
{
	return e->op == OP_ADD || e->op == OP_MUL || e->op == OP_FLOORDIV || e->op == OP_FLOORMOD ||
	       cast_keeps(e) || node_compares_int(e);
}

/* An integer SELECT, MIN or MAX in c that affine forms cannot look into. */
static Node *find_branch(Ir *ir, Node *c)
{
	return node_find(ir, c, is_branch, is_sum);
}

/* When the branch b takes its first part, and c for that part and for the second. */
static Node *branch_cases(Ir *ir, Node *c, Node *b, Node **yes, Node **no)
{
	bool select = b->op == OP_SELECT;
	Node *first = b->src[select], *second = b->src[1 + select];
	*yes = node_replace(ir, c, 1, &b, &first);
	*no = node_replace(ir, c, 1, &b, &second);
	return select		 ? b->src[0]
	       : b->op == OP_MIN ? node2(ir, OP_LE, first, second)
				 : node2(ir, OP_LE, second, first);
}

/* ---- assumptions ---- */

static bool implies(Polyhedron *p, Node *c, int split);
static bool proves(Polyhedron *p, Node *c, int split);

/* !(a && b) as a disjunction, !(a || b) as a conjunction; other conditions as they are. */
static Node *opened(Ir *ir, Node *c)
{
	Node *a = c->op == OP_NOT ? c->src[0] : c;
	if (a == c || (a->op != OP_AND && a->op != OP_OR))
		return c;
	return node2(ir, a->op == OP_AND ? OP_OR : OP_AND, node_not(ir, a->src[0]),
		     node_not(ir, a->src[1]));
}

/* a != b says something linear only at an end of b - a, or of truth values. */
static void assume_unequal(Polyhedron *p, Node *a, Node *b)
{
	int64_t lo, hi;
	if (a->type == RICCI_BOOL) {
		assume_linear(p, a, 1, b, 1, -1, true);
		return;
	}
	Node *d = node_sub(p->ir, b, a);
	poly_bounds(p, d, &lo, &hi);
	if (lo == 0)
		assume_linear(p, d, 1, NULL, 0, -1, false);
	else if (hi == 0)
		assume_linear(p, d, -1, NULL, 0, -1, false);
}

/* The disjunction that c is: a compare of a choice holds in one of its cases. NULL: none. (Minima and
 * maxima have their inequalities.) */
static Node *disjunction(Ir *ir, Node *c)
{
	Node *b = node_compares_int(c) ? find_branch(ir, c) : NULL, *yes, *no;
	if (!b || b->op != OP_SELECT)
		return c->op == OP_OR ? c : NULL;
	Node *when = branch_cases(ir, c, b, &yes, &no);
	return node2(ir, OP_OR, node2(ir, OP_AND, when, yes),
		     node2(ir, OP_AND, node_not(ir, when), no));
}

static bool is_choice(const Polyhedron *p, const Node *c)
{
	int k = 0;
	while (k < p->nchoice && p->choice[k] != c)
		k++;
	return k < p->nchoice;
}

static void assume_either(Polyhedron *p, Node *c)
{
	if (c->op != OP_OR)
		poly_assume(p, c);
	else if (proves(p, node_not(p->ir, c->src[0]), NO_CHOICE))
		poly_assume(p, c->src[1]);
	else if (proves(p, node_not(p->ir, c->src[1]), NO_CHOICE))
		poly_assume(p, c->src[0]);
	else if (p->nchoice < MAX_CHOICES && !is_choice(p, c))
		p->choice[p->nchoice++] = c;
}

/* either: the disjunction that c is, or NULL. */
static void assume_part(Polyhedron *p, Node *c, Node *either)
{
	if (c->op == OP_AND)
		poly_assume(p, c);
	else if (node_compares_int(c) && c->op == OP_NE)
		assume_unequal(p, c->src[0], c->src[1]);
	else if (node_compares_int(c))
		assume_linear(p, c->src[1], 1, c->src[0], -1, c->op == OP_LT ? -1 : 0,
			      c->op == OP_EQ);
	else if (c->op == OP_CONST)
		p->empty |= c->u.i == 0;
	else if (c->op == OP_NOT)
		assume_linear(p, c->src[0], 1, NULL, 0, 0, true);
	else if (c->op != OP_OR)
		assume_linear(p, c, 1, NULL, 0, -1, true);
	if (either)
		assume_either(p, either);
}

/* What says most when others are known comes behind them: inequalities when these have said where
 * their ends are, disjunctions when a part may be excluded, choices when their conditions are
 * known. */
enum Order { LINEAR, UNEQUAL, EITHER, CHOICE };

static int assume_order(const Node *c, const Node *either)
{
	return c->op == OP_OR ? EITHER : either ? CHOICE : c->op == OP_NE ? UNEQUAL : LINEAR;
}

void poly_assume(Polyhedron *p, Node *cond)
{
	Ir *ir = p->ir;
	Node *c = opened(ir, cond), **part = &c, *small[8], **either = small;
	int n = c->op == OP_AND ? node_parts(ir, c, OP_AND, &part) : 1;
	if (n > COUNT(small))
		either = arena_alloc(&ir->arena, (size_t)n * sizeof *either);
	for (int k = 0; k < n; k++) {
		part[k] = opened(ir, part[k]);
		either[k] = disjunction(ir, part[k]);
	}
	for (int order = LINEAR; order <= CHOICE; order++)
		for (int k = 0; k < n; k++)
			if (order == assume_order(part[k], either[k]))
				assume_part(p, part[k], either[k]);
}

bool poly_is_empty(Polyhedron *p)
{
	if (!p->empty)
		p->empty = system_is_empty(&p->s, -1);
	return p->empty;
}

/* ---- implication ---- */

/* Is p with a row added (f >= 0) empty? p is as before afterwards; only definitions may stay. */
static bool excludes(Polyhedron *p, const Form *f)
{
	if (!f->fit)
		return false;
	bool was = p->empty;
	int nrow = p->s.nrow;
	poly_row(p, f, false);
	bool empty = p->empty || (p->s.nrow > nrow && system_is_empty(&p->s, nrow));
	p->s.nrow = nrow;
	p->empty = was;
	return empty;
}

/* f >= 0 for all points? First by the bounds of its variables alone. */
static bool form_nonnegative(Polyhedron *p, const Form *f)
{
	if (!f->fit)
		return false;
	Form not = *f;
	not .c = -1;
	if (__builtin_sub_overflow(-1, f->c, &not .c))
		return false;
	int64_t least = f->c;
	bool bounded = true;
	for (int v = 0; v < f->n; v++) {
		const Node *x = p->var[v];
		int64_t end = f->k[v] > 0 ? x->lo : x->hi, part;
		if (f->k[v] && (__builtin_mul_overflow(f->k[v], end, &part) ||
				__builtin_add_overflow(least, part, &least)))
			bounded = false;
		if (__builtin_sub_overflow(0, f->k[v], &not .k[v]))
			return false;
	}
	return (bounded && least >= 0) || excludes(p, &not );
}

static bool difference_nonnegative(Polyhedron *p, Node *big, Node *small, int64_t c)
{
	Form f = {.c = c, .fit = true};
	form_add(p, &f, big, 1);
	form_add(p, &f, small, -1);
	return form_nonnegative(p, &f);
}

/* Proves compare c by cases of a branch inside it. */
static bool implies_by_cases(Polyhedron *p, Node *c, int split)
{
	Node *b = split > 0 ? find_branch(p->ir, c) : NULL, *first, *second;
	if (!b)
		return false;
	Node *when = branch_cases(p->ir, c, b, &first, &second);
	Polyhedron *yes = poly_copy(p), *no = poly_copy(p);
	poly_assume(yes, when);
	if (!implies(yes, first, split - 1))
		return false;
	poly_assume(no, node_not(p->ir, when));
	return implies(no, second, split - 1);
}

/* Proves compare c by cases of a disjunction that was assumed, and of those within it. */
static bool implies_by_choice(Polyhedron *p, Node *c, int split)
{
	for (int k = 0; k < p->nchoice && split > NO_CHOICE; k++) {
		Polyhedron *part[2] = {poly_copy(p), poly_copy(p)};
		bool both = true;
		for (int j = 0; j < 2 && both; j++) {
			part[j]->choice[k] = p->choice[p->nchoice - 1];
			part[j]->nchoice--;
			poly_assume(part[j], p->choice[k]->src[j]);
			both = implies(part[j], c, split);
		}
		if (both)
			return true;
	}
	return false;
}

static bool implies_compare(Polyhedron *p, Node *c)
{
	Node *a = c->src[0], *b = c->src[1];
	switch (c->op) {
	case OP_LE:
		return difference_nonnegative(p, b, a, 0);
	case OP_LT:
		return difference_nonnegative(p, b, a, -1);
	case OP_EQ:
		return difference_nonnegative(p, b, a, 0) && difference_nonnegative(p, a, b, 0);
	default: {
		Polyhedron *q = poly_copy(p);
		assume_linear(q, a, 1, b, -1, 0, true);
		return poly_is_empty(q);
	}
	}
}

static bool implies(Polyhedron *p, Node *cond, int split)
{
	Node *c = opened(p->ir, cond);
	if (p->empty)
		return true;
	if (++*p->nstep > MAX_STEPS)
		return false;
	if (c->op == OP_CONST)
		return c->u.i != 0 || poly_is_empty(p);
	if (is_choice(p, c))
		return true;
	if (c->op == OP_AND)
		return implies(p, c->src[0], split) && implies(p, c->src[1], split);
	if (node_compares_int(c))
		return implies_compare(p, c) || implies_by_cases(p, c, split) ||
		       implies_by_choice(p, c, split);
	Polyhedron *yes = poly_copy(p), *no = poly_copy(p);
	if (c->op == OP_SELECT) {
		poly_assume(yes, c->src[0]);
		poly_assume(no, node_not(p->ir, c->src[0]));
		return implies(yes, c->src[1], split) && implies(no, c->src[2], split);
	}
	poly_assume(no, node_not(p->ir, c->op == OP_OR ? c->src[0] : c));
	return c->op == OP_OR ? implies(no, c->src[1], split) : poly_is_empty(no);
}

/* A proof, or a part of the one that p was copied for. */
static bool proves(Polyhedron *p, Node *c, int split)
{
	int nstep = 0;
	if (p->nstep)
		return implies(p, c, split);
	p->nstep = &nstep;
	bool found = implies(p, c, split);
	p->nstep = NULL;
	return found;
}

bool poly_implies(Polyhedron *p, Node *cond)
{
	return proves(p, cond, SPLIT_DEPTH);
}

/* ---- bounds ---- */

bool poly_bounds(Polyhedron *p, Node *e, int64_t *lo, int64_t *hi)
{
	*lo = e->lo, *hi = e->hi;
	Form f = {.fit = true};
	form_add(p, &f, e, 1);
	if (!f.fit || p->s.nvar == SYSTEM_MAX_VARS)
		return false;
	/* One more variable z with z = e, all others eliminated. It has no node and goes again. */
	int nvar = p->s.nvar++, nrow = p->s.nrow;
	form_variable(&f, nvar, -1);
	poly_row(p, &f, true);
	int64_t l, h;
	bool has_lo, has_hi;
	system_bounds(&p->s, nvar, nrow, &has_lo, &l, &has_hi, &h);
	p->s.nrow = nrow;
	p->s.nvar = nvar;
	if (has_lo && l > *lo)
		*lo = l;
	if (has_hi && h < *hi)
		*hi = h;
	if (*lo > *hi) /* p is empty: any bounds are right, and callers want ordered ones */
		*lo = e->lo, *hi = e->hi;
	return has_lo && has_hi;
}

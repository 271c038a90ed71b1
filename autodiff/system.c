/* system.c - inverts quasi-affine index maps: all axes v with index(v) = z, as expressions over z
 * and new axes.
 *
 * Quotients and remainders by constants become digits: with a chain of divisors 1 | c1 | c2 .. of
 * one expression e, e = d0 + c1*d1 + c2*d2 .. in mixed radix, and every e/c, e%c and (e/c)%c' of
 * the chain is a sum of digits. An axis that is such an e is replaced by its digits; any other e
 * adds the equation that ties it to them; divisors that do not divide one another begin another
 * chain. Digits that no index fixes stay free: that is the pairing of NeoFlow (section 4.2), for
 * any nesting. What is left is a linear system (solve.c).
 *
 * The free variables are shifted so that each starts where the unknown it moves enters its range:
 * 2*p + r = z gives r = z%2 + 2*t, p = z/2 - t, with no test of divisibility.
 * Invariant: every solution within the box of the axes is met by exactly one point (z, free) for
 * which all conditions hold.
 */
#include "autodiff/internal.h"

#define MAX_CHAIN    16
#define MAX_UNKNOWNS 96
#define MAX_DIGITS   64
#define LARGEST	     (INT64_MAX / 16) /* of an unknown */

/* The digits of an expression; chain k < naxis is that of axis k, which may have one digit only. */
typedef struct Chain {
	Node *base;
	int ndivisor, first; /* digit j is the unknown first + j */
	int64_t divisor[MAX_CHAIN];
} Chain;

/* atom = floor((base mod high) / low); high 0: no mod */
typedef struct Digit {
	Node *atom, *base;
	int64_t low, high;
	int chain;
} Digit;

typedef struct System {
	Ir *ir;
	int naxis;
	Node *const *axes;
	int nchain, ndigit, nunknown, nrow;
	Chain chain[COMP_MAX_AXES + MAX_DIGITS];
	Digit digit[MAX_DIGITS];
	int64_t lo[MAX_UNKNOWNS], hi[MAX_UNKNOWNS];
	int64_t *matrix; /* nrow x nunknown */
	Node **rhs;
} System;

static int axis_index(const System *s, const Node *axis)
{
	for (int k = 0; k < s->naxis; k++)
		if (s->axes[k] == axis)
			return k;
	return -1;
}

/* ---- quotients and remainders to digits */

static Digit digit_of(Node *e)
{
	Digit d = {.atom = e, .base = e, .low = 1};
	if (e->op != OP_FLOORDIV && e->op != OP_FLOORMOD)
		return d;
	int64_t c = e->src[1]->u.i, low;
	Digit in = digit_of(e->src[0]);
	bool whole = !__builtin_mul_overflow(in.low, c, &low) && (!in.high || in.high % low == 0);
	if (!whole)
		in = (Digit){.base = e->src[0], .low = 1};
	d.base = in.base;
	d.low = e->op == OP_FLOORDIV ? in.low * c : in.low;
	d.high = e->op == OP_FLOORDIV ? in.high : in.low * c;
	return d;
}

/* Puts a divisor into an ascending chain in which each divides the next; false when it does not
 * fit. */
static bool chain_insert(Chain *c, int64_t v)
{
	int at = 0;
	while (at < c->ndivisor && c->divisor[at] < v)
		at++;
	if (at < c->ndivisor && c->divisor[at] == v)
		return true;
	if (c->ndivisor == MAX_CHAIN || (at > 0 && v % c->divisor[at - 1]) ||
	    (at < c->ndivisor && c->divisor[at] % v))
		return false;
	for (int j = c->ndivisor++; j > at; j--)
		c->divisor[j] = c->divisor[j - 1];
	c->divisor[at] = v;
	return true;
}

static void chain_assign(System *s, Digit *d)
{
	for (int k = 0; k < s->nchain; k++) {
		Chain try = s->chain[k];
		if (try.base == d->base && chain_insert(&try, d->low) &&
		    (!d->high || chain_insert(&try, d->high))) {
			s->chain[k] = try;
			d->chain = k;
			return;
		}
	}
	Chain *c = &s->chain[s->nchain];
	*c = (Chain){.base = d->base, .ndivisor = 1, .divisor = {1}};
	chain_insert(c, d->low);
	if (d->high)
		chain_insert(c, d->high);
	d->chain = s->nchain++;
}

static Digit *digit_find(System *s, const Node *atom)
{
	for (int k = 0; k < s->ndigit; k++)
		if (s->digit[k].atom == atom)
			return &s->digit[k];
	return NULL;
}

/* Registers the digits of e, inner ones too; false when e is not quasi-affine over the axes. */
static bool scan(System *s, Node *e)
{
	Affine a = affine_of(s->ir, e);
	for (int k = 0; k < a.n; k++) {
		Node *atom = a.atom[k];
		if (atom->op == OP_AXIS) {
			if (axis_index(s, atom) < 0)
				return false;
			continue;
		}
		if (atom->op != OP_FLOORDIV && atom->op != OP_FLOORMOD)
			return false;
		if (digit_find(s, atom))
			continue;
		if (s->ndigit == MAX_DIGITS)
			return false;
		Digit d = digit_of(atom);
		chain_assign(s, &d);
		s->digit[s->ndigit++] = d;
		if (!scan(s, d.base))
			return false;
	}
	return true;
}

/* ---- the linear system */

static bool add_unknown(System *s, int64_t lo, int64_t hi)
{
	if (s->nunknown == MAX_UNKNOWNS || lo < -LARGEST || hi > LARGEST)
		return false;
	s->lo[s->nunknown] = lo;
	s->hi[s->nunknown++] = hi;
	return true;
}

static bool number_digits(System *s, Chain *c)
{
	c->first = s->nunknown;
	for (int j = 0; j < c->ndivisor; j++) {
		bool top = j + 1 == c->ndivisor;
		int64_t lo = int_floor_div(c->base->lo, c->divisor[j]);
		int64_t hi = int_floor_div(c->base->hi, c->divisor[j]);
		if (!top) {
			int64_t most = c->divisor[j + 1] / c->divisor[j] - 1;
			hi = lo < 0 || hi > most ? most : hi;
			lo = 0;
		}
		if (!add_unknown(s, lo, hi))
			return false;
	}
	return true;
}

/* Axes without digits come first. */
static bool number_unknowns(System *s)
{
	for (int digits = 0; digits < 2; digits++)
		for (int k = 0; k < s->nchain; k++) {
			bool whole = k < s->naxis && s->chain[k].ndivisor == 1;
			if (whole != digits && !number_digits(s, &s->chain[k]))
				return false;
		}
	return true;
}

static bool row_add(int64_t *row, int unknown, int64_t k, int64_t c)
{
	int64_t v;
	return !__builtin_mul_overflow(k, c, &v) &&
	       !__builtin_add_overflow(row[unknown], v, &row[unknown]);
}

/* row += k * (digits of the chain from low up to high, in units of low) */
static bool row_add_digits(const System *s, int64_t *row, int chain, int64_t low, int64_t high,
			   int64_t k)
{
	const Chain *c = &s->chain[chain];
	for (int j = 0; j < c->ndivisor; j++)
		if (c->divisor[j] >= low && (!high || c->divisor[j] < high) &&
		    !row_add(row, c->first + j, k, c->divisor[j] / low))
			return false;
	return true;
}

static bool row_add_node(System *s, int64_t *row, Node *e, int64_t *constant)
{
	Affine a = affine_of(s->ir, e);
	*constant = a.c;
	for (int i = 0; i < a.n; i++) {
		int axis = axis_index(s, a.atom[i]);
		Digit *d = axis < 0 ? digit_find(s, a.atom[i]) : NULL;
		bool ok = d ? row_add_digits(s, row, d->chain, d->low, d->high, a.k[i])
			    : row_add_digits(s, row, axis, 1, 0, a.k[i]);
		if (!ok)
			return false;
	}
	return true;
}

static bool build_rows(System *s, int rank, Node *const *index, Node *const *z)
{
	int64_t c;
	s->matrix = arena_alloc(&s->ir->arena,
				sizeof *s->matrix * (size_t)((rank + s->nchain) * s->nunknown + 1));
	s->rhs = arena_alloc(&s->ir->arena, sizeof *s->rhs * (size_t)(rank + s->nchain + 1));
	for (int d = 0; d < rank; d++) {
		if (!row_add_node(s, s->matrix + s->nrow * s->nunknown, index[d], &c))
			return false;
		s->rhs[s->nrow++] = node_sub(s->ir, z[d], node_int(s->ir, c));
	}
	for (int k = s->naxis; k < s->nchain; k++) {
		int64_t *row = s->matrix + s->nrow * s->nunknown;
		if (!row_add_node(s, row, s->chain[k].base, &c) ||
		    !row_add_digits(s, row, k, 1, 0, -1))
			return false;
		s->rhs[s->nrow++] = node_int(s->ir, -c);
	}
	return true;
}

/* ---- from the solution back to expressions */

static void put_condition(Inverse *inv, Node *cond)
{
	if (!node_is_value(cond, 1))
		inv->cond[inv->ncond++] = cond;
}

static void put_range(Ir *ir, Inverse *inv, Node *x, int64_t lo, int64_t hi)
{
	put_condition(inv, node2(ir, OP_LE, node_int(ir, lo), x));
	put_condition(inv, node2(ir, OP_LE, x, node_int(ir, hi)));
}

/* base + sum over l < n of k[l] * x[l] */
static Node *combine(Ir *ir, Node *base, int n, const int64_t *k, Node *const *x)
{
	for (int l = 0; l < n; l++)
		if (k[l])
			base = node_add_scaled(ir, base, x[l], k[l]);
	return base;
}

/* The y of h y = rhs, and the conditions under which there is one. */
static Node **particular(System *s, const Solution *sol, Inverse *inv)
{
	Ir *ir = s->ir;
	Node **y = arena_alloc(&ir->arena, sizeof *y * (size_t)(sol->rank + 1));
	int done = 0;
	for (int i = 0; i < sol->m; i++) {
		const int64_t *h = sol->h + i * sol->rank;
		Node *left = node_int(ir, 0);
		left = node_sub(ir, s->rhs[i], combine(ir, left, done, h, y));
		if (done < sol->rank && sol->pivot[done] == i) {
			Node *rest = node_floormod(ir, left, h[done]);
			put_condition(inv, node2(ir, OP_EQ, rest, node_int(ir, 0)));
			y[done] = node_floordiv(ir, left, h[done]);
			done++;
		} else {
			put_condition(inv, node2(ir, OP_EQ, left, node_int(ir, 0)));
		}
	}
	return y;
}

/* The unknowns over z and new axes; the free variable j moves x[pick[j]] by `step`, and is counted
 * from where that enters its range. */
static Node **unknowns(System *s, const Solution *sol, int number, Inverse *inv)
{
	Ir *ir = s->ir;
	Node **y = particular(s, sol, inv);
	Node **x = arena_alloc(&ir->arena, sizeof *x * (size_t)(sol->n + 1));
	Node **t = arena_alloc(&ir->arena, sizeof *t * (size_t)(sol->nfree + 1));
	bool *picked = arena_alloc(&ir->arena, (size_t)sol->n + 1);

	inv->free = arena_alloc(&ir->arena, sizeof *inv->free * (size_t)(sol->nfree + 1));
	for (int i = 0; i < sol->n; i++)
		x[i] = combine(ir, node_int(ir, 0), sol->rank, sol->u + i * sol->rank, y);
	for (int j = 0; j < sol->nfree; j++) {
		int r = sol->pick[j];
		const int64_t *b = sol->basis + r * sol->nfree;
		int64_t step = b[j], span = s->hi[r] - s->lo[r];
		Node *at = node_sub(ir, combine(ir, x[r], j, b, t), node_int(ir, s->lo[r]));
		Node *first = node_floormod(ir, at, step);
		int64_t extent = span < first->lo ? 1 : (span - first->lo) / step + 1;
		Node *axis =
			extent > 1 ? node_axis(ir, number + inv->nfree, extent) : node_int(ir, 0);
		if (extent > 1)
			inv->free[inv->nfree++] = axis;
		t[j] = node_sub(ir, axis, node_floordiv(ir, at, step));
		x[r] = node_add(ir, node_add(ir, first, node_scale(ir, axis, step)),
				node_int(ir, s->lo[r]));
		picked[r] = true;
	}
	for (int i = 0; i < sol->n; i++) {
		if (!picked[i])
			x[i] = combine(ir, x[i], sol->nfree, sol->basis + i * sol->nfree, t);
		put_range(ir, inv, x[i], s->lo[i], s->hi[i]);
	}
	return x;
}

bool index_invert(Ir *ir, int naxis, Node *const *axes, int rank, Node *const *index,
		  Node *const *z, int number, Inverse *inv)
{
	System system, *s = &system;
	Solution sol;
	int64_t extent[MAX_UNKNOWNS];

	s->ir = ir;
	s->naxis = naxis;
	s->axes = axes;
	s->ndigit = s->nunknown = s->nrow = 0;
	*inv = (Inverse){0};
	s->nchain = naxis;
	for (int k = 0; k < naxis; k++)
		s->chain[k] = (Chain){.base = axes[k], .ndivisor = 1, .divisor = {1}};
	for (int d = 0; d < rank; d++)
		if (!scan(s, index[d]))
			return false;
	if (!number_unknowns(s) || !build_rows(s, rank, index, z))
		return false;
	for (int i = 0; i < s->nunknown; i++)
		extent[i] = s->hi[i] - s->lo[i] + 1;
	if (!solve_system(&ir->arena, s->nrow, s->nunknown, s->matrix, extent, &sol))
		return false;
	inv->cond = arena_alloc(
		&ir->arena, sizeof *inv->cond * (size_t)(2 * (s->nunknown + naxis) + s->nrow + 1));
	Node **x = unknowns(s, &sol, number, inv);
	inv->value = arena_alloc(&ir->arena, sizeof *inv->value * (size_t)(naxis + 1));
	for (int k = 0; k < naxis; k++) {
		const Chain *c = &s->chain[k];
		inv->value[k] = combine(ir, node_int(ir, 0), c->ndivisor, c->divisor, x + c->first);
		if (c->ndivisor > 1)
			put_range(ir, inv, inv->value[k], 0, axes[k]->hi);
	}
	return true;
}

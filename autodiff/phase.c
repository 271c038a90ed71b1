/* phase.c - the gradient of a term, dense: where the sum at z depends on residues of z, z is split.
 *
 * X[2*p+r] with three taps r meets an even z in two points and an odd one in one. So z = 2*u + h:
 * for each h an equation of its own over u, which sums exactly the taps that there are, and a last
 * one that takes each element from its equation. Residues that are met alike (four taps) stay one
 * equation with h as an axis, dX[2*u+h] += .., since then one factor has u, the other h, where
 * before both had z.
 *
 * Input: an equation and one term of its body. Output: the gradient, a tensor like the one that is
 * read, or NULL for zero. Invariant: elements that no point meets are zero.
 */
#include "autodiff/internal.h"

#include <stdlib.h>

/* Equations that one term is split into, at most; also the largest period of a dimension. */
#define PHASE_MAX 64

/* The least m with e(z + m) = e(z) + *step, all else fixed; 0 where there is none up to PHASE_MAX.
 */
static int64_t period_of(Node *e, Node *z, int64_t *step)
{
	int64_t m[2], k[2];
	*step = e == z;
	if (e == z || !node_has(e, z))
		return 1;
	bool div = e->op == OP_FLOORDIV || e->op == OP_FLOORMOD;
	if (!div && e->op != OP_ADD && !(e->op == OP_MUL && node_is_const(e->src[1])) &&
	    !(e->op == OP_MUL && node_is_const(e->src[0])))
		return 0;
	for (int j = 0; j < 2; j++) {
		m[j] = period_of(e->src[j], z, &k[j]);
		if (!m[j] || llabs(k[j]) > INT32_MAX)
			return 0;
	}
	int64_t all = m[0] / int_gcd(m[0], m[1]) * m[1];
	if (e->op == OP_ADD)
		*step = k[0] * (all / m[0]) + k[1] * (all / m[1]);
	if (e->op == OP_MUL) {
		int j = node_is_const(e->src[0]) ? 1 : 0;
		if (__builtin_mul_overflow(k[j], e->src[1 - j]->u.i, step))
			return 0;
	}
	if (div) {
		int64_t c = e->src[1]->u.i, times = c / int_gcd(c, k[0]);
		if (times > PHASE_MAX)
			return 0;
		*step = e->op == OP_FLOORDIV ? k[0] * times / c : 0;
		all *= times;
	}
	return all <= PHASE_MAX ? all : 0;
}

typedef struct Period {
	Node *z;
	int64_t period; /* of all quotients and remainders seen; 0: none small enough */
} Period;

static void see_period(void *user, Node *n)
{
	Period *p = user;
	int64_t step;
	if ((n->op != OP_FLOORDIV && n->op != OP_FLOORMOD) || !p->period)
		return;
	int64_t m = period_of(n, p->z, &step);
	p->period = m ? p->period / int_gcd(p->period, m) * m : 0;
	if (p->period > PHASE_MAX)
		p->period = 0;
}

static int64_t piece_period(Ir *ir, const Piece *p, int d)
{
	const Conditions *c = &p->place->cond;
	Period period = {p->place->lhs[d], 1};
	for (int k = 0; k < c->n; k++)
		node_walk(ir, c->at[k], see_period, &period);
	node_walk(ir, p->value, see_period, &period);
	return period.period > 1 ? period.period : 1;
}

/* ---- which residues go together */

/* Does a condition on axes only look at the residue of dimension d? */
static bool place_tests(const Place *p, int d)
{
	for (int k = 0; k < p->cond.n && p->h[d]; k++)
		if (is_index_compare(p->cond.at[k]) && node_has(p->cond.at[k], p->h[d]))
			return true;
	return false;
}

typedef struct Split {
	const Node *u, *h;
	bool has_u, has_h, found;
	int factors;
} Split;

static void see_axis(void *user, Node *n)
{
	Split *s = user;
	s->has_u |= n == s->u;
	s->has_h |= n == s->h;
}

/* Is there a factor with the quotient or the residue of z and without the other? */
static void find_separated(Ir *ir, Node *e, Split *s)
{
	if (s->found || s->factors == 16)
		return;
	if (e->op == OP_MUL) {
		find_separated(ir, e->src[0], s);
		find_separated(ir, e->src[1], s);
		return;
	}
	s->has_u = s->has_h = false;
	s->factors++;
	node_walk(ir, e, see_axis, s);
	s->found = s->has_u != s->has_h;
}

static bool piece_separates(Ir *ir, const Piece *p, int d)
{
	Split s = {.u = p->place->u[d], .h = p->place->h[d]};
	if (p->value->op == OP_MUL && s.h)
		find_separated(ir, p->value, &s);
	return s.found;
}

/* How the elements of each dimension are divided into residues; those in no group are zero. */
typedef struct Phases {
	int rank, ngroup[RICCI_MAX_RANK];
	Residues group[RICCI_MAX_RANK][PHASE_MAX];
} Phases;

static const Residues whole = {.period = 1, .count = 1};

/* Leaves out the residues that no point meets; did it? */
static bool residues_narrow(const Place *p, Residues *at)
{
	bool less = false;
	for (int d = 0; d < p->rank; d++) {
		int64_t lo, hi;
		if (!p->h[d] || !conditions_bounds(&p->cond, p->h[d], &lo, &hi))
			continue;
		less |= lo > 0 || hi < p->h[d]->hi;
		at[d].first += lo;
		at[d].count = hi - lo + 1;
	}
	return less;
}

static void groups_put(Ir *ir, Phases *f, const Piece *p, int d, int64_t size)
{
	Residues at = p->place->at[d];
	Residues *group = f->group[d];
	/* residues that no point meets are left out */
	bool fewer = at.count < (at.period < size ? at.period : size);
	f->ngroup[d] = 1;
	group[0] = fewer || piece_separates(ir, p, d) ? at : whole;
	if (place_tests(p->place, d)) {
		f->ngroup[d] = (int)at.count;
		for (int k = 0; k < at.count; k++)
			group[k] =
				(Residues){.period = at.period, .first = at.first + k, .count = 1};
	}
}

/* Does the sum meet few of the elements only (X[max(i-9, 0)] in X[0])? Then it is better summed for
 * those alone. */
static bool phases_few(const Place *all, Phases *f)
{
	double part = 1;
	f->rank = all->rank;
	for (int d = 0; d < f->rank; d++) {
		int64_t lo, hi;
		f->ngroup[d] = 1;
		f->group[d][0] = whole;
		if (conditions_bounds(&all->cond, all->u[d], &lo, &hi))
			part *= (double)(hi - lo + 1) / (double)all->shape[d];
	}
	return part <= 0.5;
}

/* False where the piece, which has all elements, is better left as it is. */
static bool phases_find(Tape *tape, const Term *term, const Piece *all, Phases *f)
{
	Ir *ir = tape->ir;
	const int64_t *shape = all->place->shape;
	Residues at[RICCI_MAX_RANK];
	Piece merged;
	bool divided = false;
	int64_t combinations = 1;
	f->rank = all->place->rank;
	for (int d = 0; d < f->rank; d++) {
		int64_t m = piece_period(ir, all, d);
		at[d] = (Residues){.period = m, .count = m < shape[d] ? m : shape[d]};
		divided |= m > 1;
	}
	if (!divided || piece_make(tape, term, at, &merged) != PIECE_SUM)
		return false;
	if (residues_narrow(merged.place, at) && piece_make(tape, term, at, &merged) != PIECE_SUM)
		return false;
	divided = false;
	for (int d = 0; d < f->rank; d++) {
		groups_put(ir, f, &merged, d, shape[d]);
		divided |= f->group[d][0].period > 1;
		combinations *= f->ngroup[d];
		if (combinations > PHASE_MAX)
			return false;
	}
	return divided;
}

static int phases_count(const Phases *f)
{
	int n = 1;
	for (int d = 0; d < f->rank; d++)
		n *= f->ngroup[d];
	return n;
}

/* ---- one tensor of all phases */

typedef struct Join {
	Ir *ir;
	Tape *tape;
	Node *z[RICCI_MAX_RANK];
	const Term *term;
	const Phases *phases;
	Residues at[RICCI_MAX_RANK];
	bool direct; /* one phase that has all elements, in their order */
	Node *last;  /* the tensor of the last phase */
} Join;

/* Where element z is within its residues' tensor. */
static Node *residues_at(Ir *ir, Node *z, Residues r)
{
	if (r.count == r.period)
		return node_sub(ir, z, node_int(ir, r.start * r.period));
	Node *u = node_sub(ir, node_floordiv(ir, z, r.period), node_int(ir, r.start));
	if (r.count == 1)
		return u;
	Node *h = node_sub(ir, node_floormod(ir, z, r.period), node_int(ir, r.first));
	return node_add(ir, node_scale(ir, u, r.count), h);
}

/* Leaves out the ends of the piece that no point meets; the condition that z is not there. */
static Node *ends_narrow(Join *j, const Place *p, Residues *at)
{
	Ir *ir = j->ir;
	Node *inside = node_const_int(ir, RICCI_BOOL, 1);
	for (int d = 0; d < p->rank; d++) {
		int64_t lo, hi;
		at[d] = p->at[d];
		if (!conditions_bounds(&p->cond, p->u[d], &lo, &hi) ||
		    (lo <= 0 && hi >= p->u[d]->hi))
			continue;
		Node *u = node_floordiv(ir, j->z[d], at[d].period);
		inside = node2(ir, OP_AND, inside, node2(ir, OP_LE, node_int(ir, lo), u));
		inside = node2(ir, OP_AND, inside, node2(ir, OP_LE, u, node_int(ir, hi)));
		at[d].start = lo;
		at[d].extent = hi - lo + 1;
	}
	return inside;
}

static Node *phase_value(Join *j)
{
	Ir *ir = j->ir;
	Piece p;
	Node *index[RICCI_MAX_RANK], *value, *inside = node_const_int(ir, RICCI_BOOL, 1);
	Node *zero = node_const(ir, j->term->value->type, 0);
	int rank = j->phases->rank;
	if (piece_make(j->tape, j->term, j->at, &p) != PIECE_SUM)
		return zero;
	if (!j->direct) {
		Residues at[RICCI_MAX_RANK];
		inside = ends_narrow(j, p.place, at);
		if (!node_is_const(inside) && piece_make(j->tape, j->term, at, &p) != PIECE_SUM)
			return zero;
	}
	Node *t = j->last = piece_tensor(ir, &p);
	for (int d = 0; d < rank; d++)
		index[d] = residues_at(ir, j->z[d], p.place->at[d]);
	if (comp_reduce(t) == RED_NONE)
		value = node_replace(ir, comp_body(t), rank, t->src, index);
	else
		value = node_read(ir, t, index);
	return node_select(ir, inside, value, zero);
}

/* The value at z, the residues of the dimensions before d being j->at. */
static Node *join_value(Join *j, int d)
{
	Ir *ir = j->ir;
	const Phases *f = j->phases;
	if (d == f->rank)
		return phase_value(j);
	Node *value = NULL, *z = j->z[d];
	int64_t covered = 0, period = f->group[d][0].period, size = z->hi + 1;
	for (int g = 0; g < f->ngroup[d]; g++)
		covered += f->group[d][g].count;
	if (covered < (period < size ? period : size))
		value = node_const(ir, j->term->value->type, 0);
	/* The first has the most elements: it may stand without a condition. */
	for (int g = 0; g < f->ngroup[d]; g++) {
		Residues r = j->at[d] = f->group[d][g];
		Node *part = join_value(j, d + 1), *h = node_floormod(ir, z, period);
		Node *above = node2(ir, OP_LE, node_int(ir, r.first), h);
		Node *below = node2(ir, OP_LT, h, node_int(ir, r.first + r.count));
		Node *here = r.count > 1 ? node2(ir, OP_AND, above, below)
					 : node2(ir, OP_EQ, h, node_int(ir, r.first));
		value = value ? node_select(ir, here, part, value) : part;
	}
	return value;
}

Node *term_gradient(Tape *tape, const Term *term)
{
	Ir *ir = tape->ir;
	Node *tensor = term->read->src[0];
	Residues at[RICCI_MAX_RANK];
	Phases phases;
	Piece all;
	Term own;
	int rank = tensor_rank(tensor);

	if (node_is_value(term->value, 0))
		return NULL;
	for (int d = 0; d < rank; d++)
		at[d] = whole;
	PieceKind kind = piece_make(tape, term, at, &all);
	if (kind == PIECE_SCATTER) {
		note_scatter(ir, term);
		return term_scatter(ir, term);
	}
	if (kind == PIECE_ZERO)
		return NULL;
	bool few = false;
	if (!all.place->nfree ||
	    (!phases_find(tape, term, &all, &phases) && !(few = phases_few(all.place, &phases))))
		return piece_tensor(ir, &all);
	if (!few && phases_count(&phases) > 1 && term_window(ir, term, &own))
		return term_gradient(tape, &own);
	Join j = {.ir = ir, .tape = tape, .term = term, .phases = &phases, .direct = !few};
	tensor_axes(ir, tensor, j.z);
	for (int d = 0; d < rank; d++) {
		Residues r = phases.group[d][0];
		j.direct &= r.count == r.period && tensor_extent(tensor, d) % r.period == 0;
	}
	Node *value = join_value(&j, 0);
	if (j.direct)
		return j.last;
	return node_is_value(value, 0) ? NULL : comp_dense(ir, RED_NONE, rank, rank, j.z, value);
}

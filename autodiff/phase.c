/* phase.c - the gradient of a term, dense: where the sum at z depends on residues of z, z is split.
 *
 * X[2*p+r] with three taps r meets an even z in two points and an odd one in one. So z = 2*u + h:
 * for each h an equation of its own over u, which sums exactly the taps that there are, and a last
 * one that takes each element from its equation. Residues that are met alike (four taps) stay one
 * equation with h as an axis, dX[2*u+h] += .., since then one factor has u, the other h, where
 * before both had z. What the index steps over is left out first: of X[6*p+4*r] every second
 * element is divided as X'[3*p+2*r] is.
 *
 * Input: an equation and one term of its body. Output: the gradient, a tensor like the one that is
 * read, or NULL for zero. Invariant: elements that no point meets are zero.
 */
#include "autodiff/internal.h"

#include <stdlib.h>

/* Equations that one term is split into, at most. */
#define PHASE_MAX 64
#define STEP_MAX  64

/* With all u of a dimension of that size. A single residue needs no step. */
static Residues residues_fit(Residues r, int64_t size)
{
	if (r.count == 1 && r.step != 1) {
		r.first = r.first * r.step - int_floor_div(r.first * r.step, r.period) * r.period;
		r.step = 1;
	}
	int64_t first = r.step * r.first, last = r.step * (r.first + r.count - 1);
	int64_t least = first < last ? first : last, most = first < last ? last : first;
	int64_t end = (size - 1 - r.offset) / r.by;
	r.start = -int_floor_div(most, r.period);
	r.extent = int_floor_div(end - least, r.period) - r.start + 1;
	return r;
}

static Residues residues_whole(int64_t size)
{
	return (Residues){.by = 1, .period = 1, .step = 1, .count = 1, .extent = size};
}

/* All elements that the index, a sum of several axes, doesn't step over. */
static Residues residues_met(Ir *ir, Node *index, int64_t size)
{
	Residues r = residues_whole(size);
	Affine a = affine_of(ir, index);
	int64_t by = 0;
	for (int k = 0; k < a.n; k++)
		by = int_gcd(by, a.k[k]);
	int64_t offset = a.n > 1 ? int_floor_mod(a.c, by) : 0;
	if (a.n < 2 || offset >= size)
		return r;
	r.by = by;
	r.offset = offset;
	return residues_fit(r, size);
}

typedef struct Period {
	Node *z;
	Periods of;		/* z */
	int64_t slope, modulus; /* (slope*z + ..) % modulus is asked for */
	int64_t period; /* of all quotients and remainders seen; 0: none less than the extent */
} Period;

static void see_period(void *user, Node *n)
{
	Period *p = user;
	int64_t step, slope;
	if ((n->op != OP_FLOORDIV && n->op != OP_FLOORMOD) || !p->period)
		return;
	int64_t m = index_period(&p->of, n, &step);
	p->period = m ? p->period / int_gcd(p->period, m) * m : 0;
	if (p->period > p->z->hi)
		p->period = 0;
	if (node_has(n, p->z) && index_period(&p->of, n->src[0], &slope) == 1) {
		p->slope = slope;
		p->modulus = n->src[1]->u.i;
	}
}

/* The x, 0 <= x < m, with k*x = 1 modulo m; 0 where there is none. By Euclid's algorithm. */
static int64_t inverse_modulo(int64_t k, int64_t m)
{
	int64_t a = m, b = (k % m + m) % m, x = 0, y = 1;
	while (b) {
		int64_t q = a / b, r = a % b, next = x - q * y;
		a = b;
		b = r;
		x = y;
		y = next;
	}
	return a == 1 ? (x % m + m) % m : 0;
}

/* Calls what the residues of dimension d are by what tells them apart: where (2*z + 1)%5 is asked
 * for, z = 5*u + 3*h, and that is (h + 1)%5. */
static Residues piece_residues(Ir *ir, const Piece *p, int d)
{
	const Conditions *c = &p->place->cond;
	int64_t size = p->place->size[d];
	Node *z = p->place->lhs[d];
	Period period = {.z = z, .of = {.ir = ir, .axis = z}, .period = 1};
	for (int k = 0; k < c->n; k++)
		node_walk(ir, c->at[k], see_period, &period);
	node_walk(ir, p->value, see_period, &period);
	int64_t m = period.period > 1 ? period.period : 1;
	int64_t step = m > 1 && m == period.modulus ? inverse_modulo(period.slope, m) : 1;
	step = step > m / 2 ? step - m : step;
	step = step && step >= -STEP_MAX && step <= STEP_MAX ? step : 1;
	Residues r = p->place->at[d];
	r.period = r.count = m;
	r.step = step;
	r.first = 0;
	return residues_fit(r, size);
}

/* ---- which residues go together */

/* Does a condition on axes only look at the residue of dimension d? */
static bool place_tests(const Place *p, int d)
{
	for (int k = 0; k < p->cond.n && p->h[d]; k++)
		if (node_compares_index(p->cond.at[k]) && node_has(p->cond.at[k], p->h[d]))
			return true;
	return false;
}

/* How the elements of each dimension are divided into residues; those in no group are zero. */
typedef struct Phases {
	int rank, n, ngroup[RICCI_MAX_RANK]; /* n: groups in all */
	Residues group[RICCI_MAX_RANK][PHASE_MAX];
} Phases;

/* Leaves out the residues that no point meets; did it? */
static bool residues_narrow(const Place *p, Residues *at)
{
	bool less = false;
	for (int d = 0; d < p->rank; d++) {
		int64_t lo, hi;
		if (!p->h[d] || !conditions_bounds(&p->cond, p->h[d], &lo, &hi))
			continue;
		less = true;
		at[d].first += lo;
		at[d].count = hi - lo + 1;
		at[d] = residues_fit(at[d], p->size[d]);
	}
	return less;
}

/* Are these residues of dimension d met alike, among those of the other dimensions? */
static bool residues_alike(Tape *tape, const Term *term, const Place *p, int d, Residues these)
{
	Residues at[RICCI_MAX_RANK];
	for (int k = 0; k < p->rank; k++)
		at[k] = k == d ? these : p->at[k];
	return !place_tests(place_find(tape->ir, &tape->places, term, at), d);
}

/* The most residues from `first` on, of dimension d, that are met alike. */
static int64_t residues_run(Tape *tape, const Term *term, const Place *p, int d, int64_t first)
{
	Residues at = p->at[d];
	int64_t alike = 1, most = at.first + at.count - first; /* in between lies what is sought */
	at.first = first;
	for (bool found = false; alike < most;) {
		int64_t middle = found ? alike + (most - alike + 1) / 2 : 2 * alike;
		at.count = middle < most ? middle : most;
		if (residues_alike(tape, term, p, d, residues_fit(at, p->size[d]))) {
			alike = at.count;
		} else {
			most = at.count - 1;
			found = true;
		}
	}
	return alike;
}

/* Residues that are met alike are one group. Where there were more than `room`, all are, and the
 * sum tests them. */
static void groups_find(Tape *tape, const Term *term, Phases *f, const Place *p, int d, int room)
{
	Residues at = p->at[d];
	int64_t end = at.first + at.count;
	int n = 0;
	for (int64_t h = at.first; place_tests(p, d) && h < end; h += at.count) {
		if (n == room) {
			n = 0;
			break;
		}
		at.count = residues_run(tape, term, p, d, h);
		at.first = h;
		f->group[d][n++] = residues_fit(at, p->size[d]);
	}
	if (!n)
		f->group[d][n++] = p->at[d];
	f->ngroup[d] = n;
	f->n *= n;
}

/* Does the sum meet few of the elements only (X[max(i-9, 0)] in X[0])? Then it is better summed for
 * those alone. */
static bool phases_few(const Place *all, Phases *f)
{
	double part = 1;
	f->rank = all->rank;
	f->n = 1;
	for (int d = 0; d < f->rank; d++) {
		int64_t lo, hi;
		f->ngroup[d] = 1;
		f->group[d][0] = all->at[d];
		if (conditions_bounds(&all->cond, all->u[d], &lo, &hi))
			part *= (double)(hi - lo + 1) / (double)all->shape[d];
	}
	return part <= 0.5;
}

/* False where the piece, which has all elements, is better left as it is. */
static bool phases_find(Tape *tape, const Term *term, const Piece *all, Phases *f)
{
	Ir *ir = tape->ir;
	Residues at[RICCI_MAX_RANK];
	Piece merged;
	bool divided = false;
	f->rank = all->place->rank;
	f->n = 1;
	for (int d = 0; d < f->rank; d++) {
		at[d] = piece_residues(ir, all, d);
		divided |= at[d].period > 1;
	}
	if (!divided || piece_make(tape, term, at, &merged) != PIECE_SUM)
		return false;
	if (residues_narrow(merged.place, at) && piece_make(tape, term, at, &merged) != PIECE_SUM)
		return false;
	for (int d = 0; d < f->rank; d++)
		groups_find(tape, term, f, merged.place, d, PHASE_MAX / f->n);
	return true;
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

static Node *residue_node(Ir *ir, Node *z, Residues r)
{
	int64_t inverse = r.period > 1 ? inverse_modulo(r.step, r.period) : 1;
	z = node_floordiv(ir, z, r.by);
	return node_floormod(ir, node_scale(ir, z, inverse), r.period);
}

/* start + u of element z. */
static Node *quotient_node(Ir *ir, Node *z, Residues r)
{
	Node *h = residue_node(ir, z, r);
	z = node_floordiv(ir, z, r.by);
	return node_floordiv(ir, r.step == 1 ? z : node_add_scaled(ir, z, h, -r.step), r.period);
}

/* Where element z is within its residues' tensor. */
static Node *residues_at(Ir *ir, Node *z, Residues r)
{
	if (r.count == r.period && r.step == 1)
		return node_sub(ir, node_floordiv(ir, z, r.by), node_int(ir, r.start * r.period));
	Node *u = node_sub(ir, quotient_node(ir, z, r), node_int(ir, r.start));
	if (r.count == 1)
		return u;
	Node *h = node_sub(ir, residue_node(ir, z, r), node_int(ir, r.first));
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
		if (!conditions_bounds(&p->cond, p->u[d], &lo, &hi))
			continue;
		Node *u = quotient_node(ir, j->z[d], at[d]);
		lo += at[d].start;
		hi += at[d].start;
		inside = node2(ir, OP_AND, inside, node2(ir, OP_LE, node_int(ir, lo), u));
		inside = node2(ir, OP_AND, inside, node2(ir, OP_LE, u, node_int(ir, hi)));
		at[d].start = lo;
		at[d].extent = hi - lo + 1;
	}
	return inside;
}

/* Element `index` of the equation t. */
static Node *element_of(Ir *ir, Node *t, Node *const *index)
{
	if (comp_reduce(t) != RED_NONE)
		return node_read(ir, t, index);
	return node_replace(ir, comp_body(t), tensor_rank(t), t->src, index);
}

static Node *phase_value(Join *j)
{
	Ir *ir = j->ir;
	Piece p;
	Node *index[RICCI_MAX_RANK], *inside = node_const_int(ir, RICCI_BOOL, 1);
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
	return node_select(ir, inside, element_of(ir, t, index), zero);
}

/* The value at z, the residues of the dimensions before d being j->at. */
static Node *join_value(Join *j, int d)
{
	Ir *ir = j->ir;
	const Phases *f = j->phases;
	if (d == f->rank)
		return phase_value(j);
	Node *value = NULL, *z = j->z[d];
	int64_t covered = 0;
	for (int g = 0; g < f->ngroup[d]; g++)
		covered += f->group[d][g].count;
	if (covered < f->group[d][0].period)
		value = node_const(ir, j->term->value->type, 0);
	/* The first has the most elements: it may stand without a condition. */
	for (int g = 0; g < f->ngroup[d]; g++) {
		Residues r = j->at[d] = f->group[d][g];
		Node *part = join_value(j, d + 1), *h = residue_node(ir, z, r);
		Node *above = node2(ir, OP_LE, node_int(ir, r.first), h);
		Node *below = node2(ir, OP_LT, h, node_int(ir, r.first + r.count));
		Node *here = r.count > 1 ? node2(ir, OP_AND, above, below)
					 : node2(ir, OP_EQ, h, node_int(ir, r.first));
		value = value ? node_select(ir, here, part, value) : part;
	}
	return value;
}

/* What the index steps over is zero. dense: the phases may have all elements, in their order. */
static Node *join_all(Tape *tape, const Term *term, const Phases *f, bool dense)
{
	Ir *ir = tape->ir;
	Node *tensor = term->read->src[0], *met = node_const_int(ir, RICCI_BOOL, 1);
	Join j = {.ir = ir, .tape = tape, .term = term, .phases = f, .direct = dense};
	tensor_axes(ir, tensor, j.z);
	for (int d = 0; d < f->rank; d++) {
		Residues r = f->group[d][0];
		Node *rest = node_floormod(ir, j.z[d], r.by);
		met = node2(ir, OP_AND, met, node2(ir, OP_EQ, rest, node_int(ir, r.offset)));
		j.direct &= r.by == 1 && r.count == r.period && r.step == 1 &&
			    tensor_extent(tensor, d) % r.period == 0;
	}
	Node *value = value_where(ir, met, join_value(&j, 0));
	if (j.direct)
		return j.last;
	return node_is_value(value, 0) ? NULL
				       : comp_dense(ir, RED_NONE, f->rank, f->rank, j.z, value);
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
	bool steps = false;

	if (node_is_value(term->value, 0))
		return NULL;
	for (int d = 0; d < rank; d++)
		at[d] = residues_whole(tensor_extent(tensor, d));
	PieceKind kind = piece_make(tape, term, at, &all);
	if (kind == PIECE_SCATTER)
		return term_scatter(ir, term);
	if (kind == PIECE_ZERO)
		return NULL;
	if (!all.place->nfree)
		return piece_tensor(ir, &all);
	for (int d = 0; d < rank; d++) {
		at[d] = residues_met(ir, term->read->src[1 + d], tensor_extent(tensor, d));
		steps |= at[d].by > 1;
	}
	if (steps && piece_make(tape, term, at, &all) == PIECE_ZERO)
		return NULL;
	bool divided = phases_find(tape, term, &all, &phases);
	if (!divided && !phases_few(all.place, &phases) && !steps)
		return piece_tensor(ir, &all);
	if (divided && phases.n > 1 && term_window(ir, term, &own))
		return term_gradient(tape, &own);
	return join_all(tape, term, &phases, divided);
}

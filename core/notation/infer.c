/* infer.c - the ranges of index names. Input: constraints 0 <= index < extent over provisional axes
 * (as long as any range may be), with the conditions under which they count, and the ranges that
 * `where` gives. Output: the largest range of each name for which every constraint holds; those of
 * conditional accesses count only where no other gives the range. That it is the largest is proved,
 * too, by a point beyond it at which an access leaves; what can't be proved is refused.
 *
 * Names are decided in rounds: first those of which every constraint holds no other undecided name,
 * then reduced ones that have at least one such constraint, then left ones, then names that only
 * accesses under conditions hold bare. What is decided in a round counts from the next one on, so
 * that the order of the names does not matter, and is not revisited: if a constraint then fails,
 * the proof of the access says so. In the end a name that stands bare in dimensions of different
 * extents is an error. The printer uses the same function to find which ranges it may leave out. */
#include "core/notation/internal.h"

typedef struct Infer {
	Ir *ir;
	int n, ncon;
	Span *span;
	Constraint *con;
	InferFault *fault;
	uint32_t decided; /* in this round: known from the next one on */
} Infer;

Node *span_value(Ir *ir, const Span *s)
{
	return node_add(ir, node_axis(ir, (int)s->axis->u.i, s->extent), node_int(ir, s->lo));
}

/* The axes of the names that are known, and what stands for them. */
static int known_axes(Infer *f, Node **from, Node **to)
{
	int k = 0;

	for (int i = 0; i < f->n; i++) {
		const Span *s = &f->span[i];
		if (!s->known)
			continue;
		from[k] = s->axis;
		to[k++] = node_sub(f->ir, span_value(f->ir, s), node_int(f->ir, s->off));
	}
	return k;
}

static Node *infer_replace(Infer *f, Node *n)
{
	Node *from[NOTATION_MAX_INDEX], *to[NOTATION_MAX_INDEX];
	int k = known_axes(f, from, to);

	return k ? node_replace(f->ir, n, k, from, to) : n;
}

static Guard *infer_guard(Infer *f, const Constraint *c)
{
	Node *from[NOTATION_MAX_INDEX], *to[NOTATION_MAX_INDEX];
	int k = c->when.guard ? known_axes(f, from, to) : 0;

	return guard_replace(f->ir, c->when.guard, k, from, to);
}

Node *inside_condition(Ir *ir, Node *tensor, Node *const *index)
{
	Node *all = node_const_int(ir, RICCI_BOOL, 1);

	for (int d = 0; d < tensor_rank(tensor); d++) {
		int64_t extent = tensor_extent(tensor, d);
		if (index[d]->lo < 0)
			all = node2(ir, OP_AND, all, node2(ir, OP_LE, node_int(ir, 0), index[d]));
		if (index[d]->hi >= extent)
			all = node2(ir, OP_AND, all,
				    node2(ir, OP_LT, index[d], node_int(ir, extent)));
	}
	return all;
}

/* ---- one constraint ---- */

/* The spans that n holds. */
static uint32_t holds(Infer *f, Node *n)
{
	Node *axis[COMP_MAX_AXES];
	int count = n ? node_axes(f->ir, 1, &n, axis) : 0;
	uint32_t mask = 0;

	for (int k = 0; k < count; k++)
		for (int i = 0; i < f->n; i++)
			mask |= (uint32_t)(f->span[i].axis == axis[k]) << i;
	return mask;
}

/* Is c proved to hold when x runs over 0..top? */
static bool fits(Infer *f, const Constraint *c, Span *x, int64_t top)
{
	Span saved = *x;

	x->known = true;
	x->lo = 0;
	x->extent = top + 1;
	Node *e = infer_replace(f, c->index);
	bool inside = (e->lo >= 0 && e->hi < c->extent) ||
		      access_is_inside(f->ir, e, c->extent, infer_guard(f, c));
	*x = saved;
	return inside;
}

/* The largest such top, when all up to `in` are (-1: none is known), by doubling and halving. */
static int64_t search(Infer *f, const Constraint *c, Span *x, int64_t in)
{
	int64_t step = 1, out;

	for (; in + step < RANGE_MAX && fits(f, c, x, in + step); step *= 2)
		in += step;
	out = in + step;
	if (out >= RANGE_MAX)
		return RANGE_MAX;
	while (out - in > 1) {
		int64_t mid = in + (out - in) / 2;
		if (fits(f, c, x, mid))
			in = mid;
		else
			out = mid;
	}
	return in;
}

/* Can the access leave its tensor at all beyond x = top, under the guards? */
static bool guards_exclude(Infer *f, const Constraint *c, Node *e, const Span *x, int64_t top)
{
	Node *beyond = node2(f->ir, OP_LT, node_int(f->ir, top), x->axis);
	Node *leaves[2] = {node2(f->ir, OP_LT, e, node_int(f->ir, 0)),
			   node2(f->ir, OP_LE, node_int(f->ir, c->extent), e)};

	for (int i = 0; i < 2; i++) {
		Polyhedron *p = guard_polyhedron(f->ir, infer_guard(f, c));
		poly_assume(p, beyond);
		poly_assume(p, leaves[i]);
		bool never = node_is_value(leaves[i], 0) || node_is_value(beyond, 0);
		if (!never && !poly_is_empty(p))
			return false;
	}
	return true;
}

/* Bounds of such a sum are exact. */
static bool is_sum_of_axes(const Affine *a)
{
	int i = 0;

	while (i < a->n && a->atom[i]->op == OP_AXIS)
		i++;
	return i == a->n;
}

/* The largest value of x that c allows, the others being decided; RANGE_MAX: any. What is linear
 * and unconditional is solved, the rest searched. */
static int64_t constraint_top(Infer *f, const Constraint *c, Span *x)
{
	Node *e = infer_replace(f, c->index);
	Affine a = affine_modular(f->ir, e); /* provisional axes are long */
	int64_t k = affine_coefficient(&a, x->axis), top = -1;
	Node *rest = node_sub(f->ir, e, node_scale(f->ir, x->axis, k));
	bool nested = holds(f, rest) != 0;
	bool plain = !c->when.guard && is_sum_of_axes(&a);

	if (!nested && k == 0)
		return RANGE_MAX;
	if (!nested) {
		int64_t lo = rest->lo, hi = rest->hi;
		if (!plain)
			poly_bounds(guard_polyhedron(f->ir, infer_guard(f, c)), rest, &lo, &hi);
		top = k > 0 ? int_floor_div(c->extent - 1 - hi, k) : int_floor_div(lo, -k);
	}
	if (top >= RANGE_MAX)
		return RANGE_MAX;
	if (plain)
		return top;
	if (guards_exclude(f, c, e, x, top))
		return RANGE_MAX;
	return search(f, c, x, top < -1 ? -1 : top);
}

/* ---- the proof that a range is the largest ---- */

static uint32_t undecided(const Infer *f)
{
	uint32_t mask = 0;

	for (int i = 0; i < f->n; i++)
		mask |= f->span[i].known ? 0 : (uint32_t)1 << i;
	return mask;
}

/* An access is tried at 2^POINT_BITS points, about. */
enum { POINT_BITS = 12 };

typedef struct Trial {
	Infer *f;
	int64_t extent;
	uint32_t names; /* which index or conditions hold */
	int64_t most;	/* values of each */
	int left;	/* points */
} Trial;

/* Does index e leave where the conditions may hold, for some values of the names from the i-th on?
 * They are tried from either end of their ranges inwards. Conditions on data, and on names that
 * aren't decided yet, may hold. */
static bool leaves_somewhere(Trial *t, Node *e, Guard *g, int i)
{
	Infer *f = t->f;

	if ((e->lo >= 0 && e->hi < t->extent) || guard_is_dead(g) || t->left-- <= 0)
		return false;
	while (i < f->n && !(t->names >> i & 1))
		i++;
	if (i == f->n)
		return e->hi < 0 || e->lo >= t->extent;
	Span *s = &f->span[i];
	for (int64_t k = 0; k < s->extent && k < t->most; k++) {
		int64_t at = s->lo + (k % 2 ? s->extent - 1 - k / 2 : k / 2);
		Node *to = node_int(f->ir, at - s->off);
		if (leaves_somewhere(t, node_replace(f->ir, e, 1, &s->axis, &to),
				     guard_replace(f->ir, g, 1, &s->axis, &to), i + 1))
			return true;
	}
	return false;
}

/* Is it proved that c does not hold at x = at, for some values of the other names? */
static bool is_violated(Infer *f, const Constraint *c, const Span *x, int64_t at)
{
	Node *to = node_int(f->ir, at - x->off);
	Node *e = node_replace(f->ir, c->index, 1, &x->axis, &to);
	Guard *g = guard_replace(f->ir, c->when.guard, 1, &x->axis, &to);
	Node *whole = infer_replace(f, e);
	uint32_t names = holds(f, e);

	Affine sum = affine_modular(f->ir, whole);
	if (!g && is_sum_of_axes(&sum))
		return whole->lo < 0 || whole->hi >= c->extent;
	for (const Guard *k = g; k; k = k->next)
		names |= holds(f, k->cond);
	names &= ~undecided(f);
	int n = names ? __builtin_popcount(names) : 1, bits = n < POINT_BITS ? POINT_BITS / n : 1;
	Trial t = {f, c->extent, names, (int64_t)1 << bits, 4 << POINT_BITS};
	return leaves_somewhere(&t, e, g, 0);
}

/* ---- rounds ---- */

static InferCode decide(Infer *f, int i, int64_t lo, int64_t extent)
{
	if (extent < 1)
		return INFER_EMPTY;
	if (extent > RANGE_MAX || lo > RANGE_MAX / 2 || lo < -RANGE_MAX / 2)
		return INFER_LONG;
	f->decided |= (uint32_t)1 << i;
	f->span[i].lo = lo;
	f->span[i].extent = extent;
	return INFER_OK;
}

/* Ranges of `where` whose bounds hold decided names only: the widest box. */
static InferCode decide_where(Infer *f, int i, bool *progress)
{
	Span *s = &f->span[i];
	uint32_t open = undecided(f), wants = holds(f, s->low) | holds(f, s->high);

	if (wants & open)
		return INFER_OK;
	Node *low = s->low ? infer_replace(f, s->low) : node_int(f->ir, 0);
	Node *high = infer_replace(f, s->high);
	int64_t extent;
	*progress = true;
	f->fault->why = NULL;
	if (__builtin_sub_overflow(high->hi, low->lo, &extent))
		return INFER_LONG;
	return decide(f, i, low->lo, extent);
}

/* The strictest of the constraints of name i, conditional ones or the others, that hold no other
 * open name; *waits: some do. */
static const Constraint *strictest(Infer *f, int i, bool conditional, int tier, uint32_t open,
				   int64_t *top, bool *waits)
{
	uint32_t bit = (uint32_t)1 << i;
	const Constraint *why = NULL;

	for (int k = 0; k < f->ncon && !(tier == 0 && *waits); k++) {
		const Constraint *c = &f->con[k];
		if (!(c->mask & bit) || c->gather || c->when.conditional != conditional)
			continue;
		if (c->mask & open & ~bit) {
			*waits = true;
			continue;
		}
		int64_t t = tier == 3 && c->index == f->span[i].axis
				    ? c->extent - 1
				    : constraint_top(f, c, &f->span[i]);
		if (t < *top) {
			*top = t;
			why = c;
		}
	}
	return why;
}

/* Does no larger value of x than top lie inside again? A permutation such as X[3*(j%2)+j/2] may run
 * farther than it is meant to. Proved with the other names at either end. */
static bool stays_outside(Infer *f, const Constraint *c, const Span *x, int64_t top)
{
	Node *from[NOTATION_MAX_INDEX], *to[NOTATION_MAX_INDEX];
	Node *e = infer_replace(f, c->index);

	for (int end = 0; end < 2; end++) {
		int n = 0;
		for (int i = 0; i < f->n; i++)
			if (&f->span[i] != x && f->span[i].known) {
				from[n] = node_axis(f->ir, i, f->span[i].extent);
				to[n++] = node_int(f->ir, end ? f->span[i].extent - 1 : 0);
			}
		Node *at = n ? node_replace(f->ir, e, n, from, to) : e;
		Polyhedron *p = poly_new(f->ir);
		poly_assume(p, node2(f->ir, OP_LT, node_int(f->ir, top), x->axis));
		poly_assume(p, node2(f->ir, OP_LE, node_int(f->ir, 0), at));
		if (poly_implies(p, node2(f->ir, OP_LE, node_int(f->ir, c->extent), at)))
			return true;
	}
	return false;
}

/* Does an access of those that were asked leave its tensor beyond x = top? Up to it, all are proved
 * to stay inside. */
static bool is_largest(Infer *f, int i, bool conditional, int tier, uint32_t open, int64_t top)
{
	uint32_t bit = (uint32_t)1 << i;
	const Span *x = &f->span[i];

	for (int k = 0; k < f->ncon; k++) {
		const Constraint *c = &f->con[k];
		if ((c->mask & (open | bit)) != bit || c->gather ||
		    c->when.conditional != conditional)
			continue;
		if (tier == 3 && c->index == x->axis && c->extent == top + 1)
			return true;
		if (is_violated(f, c, x, top < 0 ? 0 : top + 1))
			return true;
	}
	return false;
}

/* Conditional accesses count where no other says anything. Tier 0: every constraint of x that counts
 * is free of other open names. 1: one is, x is reduced. 2: one is. 3: conditions keep every access
 * inside whatever x is; then an access by its bare name says how far it runs. */
static InferCode decide_accesses(Infer *f, int i, int tier, uint32_t open, bool *progress)
{
	int64_t top = RANGE_MAX;
	bool waits = false;
	const Constraint *why = strictest(f, i, false, tier, open, &top, &waits);
	bool conditional = !why && !(tier == 0 && waits);

	if (conditional)
		why = strictest(f, i, true, tier, open, &top, &waits);
	if (!why || (tier == 0 && waits) || (tier == 1 && f->span[i].left))
		return INFER_OK;
	f->fault->why = why;
	f->fault->top = top;
	if (!is_largest(f, i, conditional, tier, open, top))
		return INFER_UNPROVED;
	if (!why->when.guard && top >= 0 && !stays_outside(f, why, &f->span[i], top))
		return INFER_RETURNS;
	*progress = true;
	return decide(f, i, 0, top + 1);
}

/* ---- bare names */

/* Do conditions keep an access by the bare name i inside: in a longer range, or whatever i is? */
static bool is_kept_inside(Infer *f, const Constraint *c, int i)
{
	Span *x = &f->span[i];

	if (!c->when.guard)
		return false;
	if (c->extent < x->extent)
		return fits(f, c, x, x->extent - 1);
	x->known = false;
	bool out = guards_exclude(f, c, x->axis, x, c->extent - 1);
	x->known = true;
	return out;
}

/* Is c an access by the bare name i that conditions keep inside, or one that says how far i runs? */
static bool is_bare(Infer *f, const Constraint *c, int i, bool kept)
{
	return c->index == f->span[i].axis && c->side == SIDE_READ &&
	       is_kept_inside(f, c, i) == kept;
}

/* A name without a range of its own that stands bare in dimensions of different extents is a slip;
 * on the left of a scatter there may be more room. All is decided. */
static InferCode check_bare(Infer *f, int i)
{
	const Constraint *first = NULL;

	for (int k = 0; k < f->ncon; k++)
		if (f->con[k].side == SIDE_RANGE && f->con[k].index == f->span[i].axis)
			return INFER_OK;
	for (int kept = 0; kept < 2 && !first; kept++)
		for (int k = 0; k < f->ncon; k++) {
			const Constraint *c = &f->con[k];
			if (!is_bare(f, c, i, kept))
				continue;
			if (first && first->extent != c->extent) {
				*f->fault = (InferFault){.which = i, .why = first, .other = c};
				return INFER_AMBIGUOUS;
			}
			first = first ? first : c;
		}
	for (int k = 0; k < f->ncon && first; k++) {
		const Constraint *c = &f->con[k];
		if (c->side == SIDE_SCATTER && c->index == f->span[i].axis &&
		    c->extent < first->extent) {
			*f->fault = (InferFault){.which = i, .why = first, .other = c};
			return INFER_AMBIGUOUS;
		}
	}
	return INFER_OK;
}

InferCode infer_ranges(Ir *ir, int nspan, Span *span, int ncon, Constraint *con, InferFault *fault)
{
	Infer f = {.ir = ir, .n = nspan, .ncon = ncon, .span = span, .con = con, .fault = fault};
	InferCode code = INFER_OK;

	*fault = (InferFault){0};

	for (int k = 0; k < ncon; k++) {
		con[k].mask = holds(&f, con[k].index);
		con[k].gather = node_reads(ir, con[k].index);
	}
	for (int tier = 0; undecided(&f);) {
		bool progress = false;
		uint32_t open = undecided(&f);
		for (int i = 0; i < nspan && code == INFER_OK; i++) {
			if (span[i].known)
				continue;
			fault->which = i;
			if (span[i].high)
				code = decide_where(&f, i, &progress);
			else
				code = decide_accesses(&f, i, tier, open, &progress);
		}
		if (code != INFER_OK)
			return code;
		for (int i = 0; i < nspan; i++)
			span[i].known |= f.decided >> i & 1;
		tier = progress ? 0 : tier + 1;
		if (tier > 3)
			break;
	}
	for (int i = 0; i < nspan && code == INFER_OK; i++) {
		fault->which = i;
		code = !span[i].known ? INFER_UNKNOWN : INFER_OK;
	}
	for (int i = 0; i < nspan && code == INFER_OK; i++)
		code = span[i].high ? INFER_OK : check_bare(&f, i);
	return code;
}

/* infer.c - the ranges of index names. Input: constraints 0 <= index < extent over provisional axes
 * (as long as any range may be), with the conditions under which they count, and the ranges that
 * `where` gives. Output: the largest range of each name for which every constraint holds.
 *
 * Names are decided in rounds: first those of which every constraint holds no other undecided name,
 * then reduced ones that have at least one such constraint, then left ones, then names that only
 * accesses under conditions hold bare. What is decided in a round counts from the next one on, so
 * that the order of the names does not matter, and is not revisited: if a constraint then fails,
 * the proof of the access says so. The printer uses the same function to find which ranges it may
 * leave out. */
#include "core/internal.h"

typedef struct Infer {
	Ir *ir;
	int n, ncon;
	Span *span;
	Constraint *con;
	const Constraint *why; /* the constraint that left nothing */
	uint32_t decided;      /* in this round: known from the next one on */
} Infer;

Node *span_value(Ir *ir, const Span *s)
{
	return node_add(ir, node_axis(ir, (int)s->axis->u.i, s->extent), node_int(ir, s->lo));
}

static Node *infer_replace(Ir *ir, int nspan, const Span *span, Node *n)
{
	Node *from[NOTATION_MAX_INDEX], *to[NOTATION_MAX_INDEX];
	int k = 0;

	for (int i = 0; i < nspan; i++) {
		if (!span[i].known)
			continue;
		from[k] = span[i].axis;
		to[k++] = node_sub(ir, span_value(ir, &span[i]), node_int(ir, span[i].off));
	}
	return k ? node_replace(ir, n, k, from, to) : n;
}

/* ---- guards ---- */

Guard *guard_push(Ir *ir, Guard *next, Node *cond, bool truth)
{
	Guard *g = arena_alloc(&ir->arena, sizeof *g);

	*g = (Guard){cond, truth, next};
	return g;
}

bool guard_is_dead(const Guard *g)
{
	for (; g; g = g->next)
		if (node_is_const(g->cond) && (g->cond->u.i != 0) != g->truth)
			return true;
	return false;
}

/* That says most when the others have said where its ends are. */
static bool says_unequal(const Guard *g)
{
	return g->cond->op == (g->truth ? OP_NE : OP_EQ);
}

Polyhedron *guard_polyhedron(Ir *ir, const Guard *g)
{
	Polyhedron *p = poly_new(ir);

	for (int last = 0; last < 2; last++)
		for (const Guard *k = g; k; k = k->next)
			if (says_unequal(k) != last)
				continue;
			else if (k->truth)
				poly_assume(p, k->cond);
			else
				poly_assume_not(p, k->cond);
	return p;
}

static Polyhedron *constraint_polyhedron(Infer *f, const Constraint *c)
{
	Guard *known = NULL;

	for (const Guard *g = c->guard; g; g = g->next)
		known = guard_push(f->ir, known, infer_replace(f->ir, f->n, f->span, g->cond),
				   g->truth);
	return guard_polyhedron(f->ir, known);
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

typedef struct Holds {
	const Infer *f;
	uint32_t mask;
	bool read;
} Holds;

static void hold(void *user, Node *n)
{
	Holds *h = user;

	h->read |= n->op == OP_READ;
	if (n->op != OP_AXIS)
		return;
	for (int i = 0; i < h->f->n; i++)
		if (h->f->span[i].axis == n)
			h->mask |= (uint32_t)1 << i;
}

static Holds holds(Infer *f, Node *n)
{
	Holds h = {.f = f};

	if (n)
		node_walk(f->ir, n, hold, &h);
	return h;
}

/* Is 0 <= e < extent by its bounds when x runs over 0..top? */
static bool fits(Infer *f, Node *e, const Span *x, int64_t top, int64_t extent)
{
	Node *to = node_axis(f->ir, (int)x->axis->u.i, top + 1);

	e = node_replace(f->ir, e, 1, &x->axis, &to);
	return e->lo >= 0 && e->hi < extent;
}

/* The largest such top, by doubling and halving: for quotients, remainders and the like. */
static int64_t search(Infer *f, Node *e, const Span *x, int64_t extent)
{
	int64_t in = 0, out = 1;

	if (!fits(f, e, x, 0, extent))
		return -1;
	while (out < RANGE_MAX && fits(f, e, x, out, extent)) {
		in = out;
		out *= 2;
	}
	if (out >= RANGE_MAX)
		return RANGE_MAX;
	while (out - in > 1) {
		int64_t mid = in + (out - in) / 2;
		if (fits(f, e, x, mid, extent))
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
		Polyhedron *p = constraint_polyhedron(f, c);
		poly_assume(p, beyond);
		poly_assume(p, leaves[i]);
		bool never = node_is_value(leaves[i], 0) || node_is_value(beyond, 0);
		if (!never && !poly_is_empty(p))
			return false;
	}
	return true;
}

/* The largest value of x that c allows, the others being decided; RANGE_MAX: any. */
static int64_t constraint_top(Infer *f, const Constraint *c, const Span *x)
{
	Node *e = infer_replace(f->ir, f->n, f->span, c->index);
	Affine a = affine_of(f->ir, e);
	int64_t k = affine_coefficient(&a, x->axis), top;
	Node *rest = node_sub(f->ir, e, node_scale(f->ir, x->axis, k));
	Holds in_rest = holds(f, rest);
	/* Bounds of a sum of axes are exact. Of others they are proved, with conditions or without:
	 * those on data say nothing of indices, and must not change what is found. */
	bool plain = !c->guard;
	for (int j = 0; j < a.n; j++)
		plain &= a.atom[j]->op == OP_AXIS;

	if (in_rest.mask) {
		top = search(f, e, x, c->extent);
	} else if (k == 0) {
		return RANGE_MAX;
	} else {
		int64_t lo = rest->lo, hi = rest->hi;
		if (!plain)
			poly_bounds(constraint_polyhedron(f, c), rest, &lo, &hi);
		top = k > 0 ? int_floor_div(c->extent - 1 - hi, k) : int_floor_div(lo, -k);
	}
	if (top >= RANGE_MAX)
		return RANGE_MAX;
	if (!plain && guards_exclude(f, c, e, x, top))
		return RANGE_MAX;
	return top;
}

/* ---- rounds ---- */

static uint32_t undecided(const Infer *f)
{
	uint32_t mask = 0;

	for (int i = 0; i < f->n; i++)
		mask |= f->span[i].known ? 0 : (uint32_t)1 << i;
	return mask;
}

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
	uint32_t open = undecided(f), wants = holds(f, s->low).mask | holds(f, s->high).mask;

	if (wants & open)
		return INFER_OK;
	Node *low = s->low ? infer_replace(f->ir, f->n, f->span, s->low) : node_int(f->ir, 0);
	Node *high = infer_replace(f->ir, f->n, f->span, s->high);
	int64_t extent;
	*progress = true;
	f->why = NULL;
	if (__builtin_sub_overflow(high->hi, low->lo, &extent))
		return INFER_LONG;
	return decide(f, i, low->lo, extent);
}

/* Tier 0: every constraint of x is free of other open names. 1: one is, x is reduced. 2: one is.
 * 3: conditions keep every access inside whatever x is; then an access by its bare name says how
 * far it runs. */
static InferCode decide_accesses(Infer *f, int i, int tier, uint32_t open, bool *progress)
{
	uint32_t bit = (uint32_t)1 << i;
	int64_t top = RANGE_MAX;
	bool other = false;
	const Constraint *why = NULL;

	for (int k = 0; k < f->ncon; k++) {
		const Constraint *c = &f->con[k];
		if (!(c->mask & bit) || c->gather)
			continue;
		if (c->mask & open & ~bit) {
			other = true;
			continue;
		}
		if (tier == 0 && other)
			return INFER_OK;
		int64_t t = tier == 3 && c->index == f->span[i].axis
				    ? c->extent - 1
				    : constraint_top(f, c, &f->span[i]);
		if (t < top) {
			top = t;
			why = c;
		}
	}
	if (!why || (tier == 0 && other) || (tier == 1 && f->span[i].left))
		return INFER_OK;
	*progress = true;
	f->why = why;
	return decide(f, i, 0, top + 1);
}

InferCode infer_ranges(Ir *ir, int nspan, Span *span, int ncon, Constraint *con, int *which,
		       const Constraint **why)
{
	Infer f = {.ir = ir, .n = nspan, .ncon = ncon, .span = span, .con = con};
	InferCode code = INFER_OK;

	for (int k = 0; k < ncon; k++) {
		Holds h = holds(&f, con[k].index);
		con[k].mask = h.mask;
		con[k].gather = h.read;
	}
	for (int tier = 0; undecided(&f);) {
		bool progress = false;
		uint32_t open = undecided(&f);
		for (int i = 0; i < nspan && code == INFER_OK; i++) {
			*which = i;
			if (span[i].known)
				continue;
			if (span[i].high)
				code = decide_where(&f, i, &progress);
			else
				code = decide_accesses(&f, i, tier, open, &progress);
		}
		*why = f.why;
		if (code != INFER_OK)
			return code;
		for (int i = 0; i < nspan; i++)
			span[i].known |= f.decided >> i & 1;
		tier = progress ? 0 : tier + 1;
		if (tier > 3)
			break;
	}
	for (*which = 0; *which < nspan; ++*which)
		if (!span[*which].known)
			return INFER_UNKNOWN;
	return INFER_OK;
}

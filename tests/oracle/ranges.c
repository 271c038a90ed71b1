/* ranges.c - how far each index runs ("Ranges" in docs/notation.md), found by trying: an index is
 * counted up until, for some values of the others, an access leaves its tensor where its conditions
 * hold. Conditions on data, and on indices that aren't known yet, may hold. */
#include "tests/oracle/internal.h"

#include <string.h>

typedef struct Guard {
	const Expr *condition; /* X_PADDED: whether it is inside */
	bool truth;
	struct Guard *next;
} Guard;

typedef struct Limit { /* 0 <= index < extent where the guard holds */
	const Expr *index;
	int64_t extent;
	Guard *guard;
	bool conditional; /* it is more than the equation's own where */
	bool scatter;	  /* on the left */
	uint32_t names;	  /* in the index */
	bool gathers;	  /* a gather's range is its table's */
	struct Limit *next;
} Limit;

typedef struct Ranges {
	Oracle *o;
	Equation *q;
	Limit *limit, **end;
	const Guard *own;      /* what where says */
	int64_t most, longest; /* no index that has a range runs further; the greatest extent */
} Ranges;

static Guard *guard_new(Oracle *o, Guard *next, const Expr *condition, bool truth)
{
	Guard *g = take(o, sizeof *g);
	*g = (Guard){condition, truth, next};
	return g;
}

static void look_into(Oracle *o, const Expr *e, uint32_t *names, bool *reads)
{
	step(o, 1);
	if (e->form == X_VALUE)
		look_into(o, e->instance->root, names, reads);
	*names |= e->form == X_INDEX ? (uint32_t)1 << e->i : 0;
	*reads |= e->form == X_READ;
	for (int k = 0; k < e->n; k++)
		look_into(o, e->arg[k], names, reads);
}

static Limit *limit_add(Ranges *r, const Expr *index, int64_t extent, Guard *g)
{
	Limit *l = take(r->o, sizeof *l);
	*l = (Limit){.index = index, .extent = extent, .guard = g};
	l->conditional = g && g != r->own;
	look_into(r->o, index, &l->names, &l->gathers);
	*r->end = l;
	r->end = &l->next;
	return l;
}

/* The limits that accesses in e give; those of the indices of a padded one: bare names. */
static void limits_of(Ranges *r, const Expr *e, Guard *g)
{
	const Expr *read = e->arg[0];
	step(r->o, 1);
	switch (e->form) {
	case X_VALUE:
		limits_of(r, e->instance->root, g);
		return;
	case X_PADDED:
		while (read->form == X_CONVERT)
			read = read->arg[0];
		for (int d = 0; d < read->n; d++) {
			limits_of(r, read->arg[d], g);
			if (read->arg[d]->form == X_INDEX)
				limit_add(r, read->arg[d], read->tensor->shape[d], NULL);
		}
		limits_of(r, e->arg[1], guard_new(r->o, g, e, false));
		return;
	case X_CHOICE:
		limits_of(r, e->arg[0], g);
		limits_of(r, e->arg[1], guard_new(r->o, g, e->arg[0], true));
		limits_of(r, e->arg[2], guard_new(r->o, g, e->arg[0], false));
		return;
	case X_OR:
	case X_AND:
		limits_of(r, e->arg[0], g);
		limits_of(r, e->arg[1], guard_new(r->o, g, e->arg[0], e->form == X_AND));
		return;
	default:
		for (int k = 0; k < e->n; k++)
			limits_of(r, e->arg[k], g);
		for (int d = 0; e->form == X_READ && d < e->n; d++)
			limit_add(r, e->arg[d], e->tensor->shape[d], g);
	}
}

/* 1: it holds, 0: it doesn't, -1: not known. */
static int holds(Ranges *r, const Expr *e)
{
	if (e->form != X_PADDED) {
		OracleValue v = value_of(r->o, e);
		return is_lost(v) ? -1 : (int)v.i;
	}
	const Expr *read = e->arg[0];
	int inside = 1;
	while (read->form == X_CONVERT)
		read = read->arg[0];
	for (int d = 0; d < read->n; d++) {
		OracleValue v = value_of(r->o, read->arg[d]);
		if (is_lost(v))
			inside = inside ? -1 : 0;
		else if (v.i < 0 || v.i >= read->tensor->shape[d])
			inside = 0;
	}
	return inside;
}

/* Does the access leave at the values that the indices have? */
static bool leaves_here(Ranges *r, const Limit *l)
{
	OracleValue v = value_of(r->o, l->index);
	bool leaves = !is_lost(v) && (v.i < 0 || v.i >= l->extent);
	for (const Guard *g = l->guard; g && leaves; g = g->next)
		leaves = holds(r, g->condition) != !g->truth;
	return leaves;
}

/* For any values of the indices among `names` from the k-th on, except `fixed`? Those that aren't
 * known yet may have any. */
static bool leaves(Ranges *r, const Limit *l, uint32_t names, const Index *fixed, int k)
{
	Index *i = &r->q->index[k];
	if (k == r->q->nindex)
		return leaves_here(r, l);
	if (i == fixed || !(names >> k & 1))
		return leaves(r, l, names, fixed, k + 1);
	Index was = *i;
	bool found = false;
	if (!was.known)
		*i = (Index){.name = was.name, .known = true, .extent = r->longest + 2};
	for (i->value = i->first; i->value < i->first + i->extent && !found; i->value++)
		found = leaves(r, l, names, fixed, k + 1);
	*i = was;
	return found;
}

/* Up to where index i, counted from 0, keeps it inside; r->most: however far. Where it is outside
 * from 0 on, no shorter range would help: the conditions have to. */
static int64_t reach(Ranges *r, const Limit *l, Index *i)
{
	uint32_t names = l->names;
	bool reads = false, stayed = false;
	for (const Guard *g = l->guard; g; g = g->next)
		look_into(r->o, g->condition, &names, &reads);
	if (l->index->form == X_INDEX && !l->guard)
		return l->extent;
	i->known = true;
	for (i->value = 0; i->value < r->most; i->value++) {
		bool out = leaves(r, l, names, i, 0);
		if (stayed && out)
			break;
		stayed = stayed || !out;
	}
	i->known = false;
	return stayed ? i->value : 0;
}

/* ---- rounds */

/* The least, or the greatest value of a bound over the indices in it. */
static int64_t extreme(Ranges *r, const Expr *e, bool greatest, uint32_t names, int k)
{
	Index *i = &r->q->index[k];
	if (k == r->q->nindex)
		return value_of(r->o, e).i;
	if (!(names >> k & 1))
		return extreme(r, e, greatest, names, k + 1);
	int64_t best = greatest ? INT64_MIN : INT64_MAX;
	for (i->value = i->first; i->value < i->first + i->extent; i->value++) {
		int64_t v = extreme(r, e, greatest, names, k + 1);
		best = greatest == (v > best) ? v : best;
	}
	return best;
}

static uint32_t open_names(const Equation *q)
{
	uint32_t open = 0;
	for (int k = 0; k < q->nindex; k++)
		open |= q->index[k].known ? 0 : (uint32_t)1 << k;
	return open;
}

/* By `where`, whose bounds hold known names only. */
static bool decide_where(Ranges *r, Index *i, uint32_t open)
{
	uint32_t low = 0, high = 0;
	bool reads = false;
	if (i->low)
		look_into(r->o, i->low, &low, &reads);
	look_into(r->o, i->high, &high, &reads);
	if ((low | high) & open)
		return false;
	i->first = i->low ? extreme(r, i->low, false, low, 0) : 0;
	i->extent = extreme(r, i->high, true, high, 0) - i->first;
	return true;
}

/* Round 0: of a name all of whose limits hold no other open name; 1: of a reduced one that has such
 * a limit; 2: of any that has; 3: where conditions alone keep every access inside, a bare name
 * takes the extent of its dimension. */
static int64_t least_reach(Ranges *r, int x, int round, uint32_t open, bool conditional,
			   bool *waits)
{
	int64_t least = r->most;
	Index *i = &r->q->index[x];
	for (const Limit *l = r->limit; l; l = l->next) {
		if (!(l->names >> x & 1) || l->gathers || l->conditional != conditional)
			continue;
		if (l->names & open & ~((uint32_t)1 << x)) {
			*waits = true;
			continue;
		}
		bool bare = round == 3 && l->index->form == X_INDEX;
		int64_t n = bare ? l->extent : reach(r, l, i);
		least = n < least ? n : least;
	}
	return least;
}

/* Conditional accesses count where no other says anything. */
static bool decide_accesses(Ranges *r, int x, int round, uint32_t open)
{
	Index *i = &r->q->index[x];
	bool waits = false;
	int64_t least = least_reach(r, x, round, open, false, &waits);
	if (least == r->most && !(round == 0 && waits))
		least = least_reach(r, x, round, open, true, &waits);
	if (least == r->most || (round == 0 && waits) || (round == 1 && i->left))
		return false;
	i->first = 0;
	i->extent = least;
	return true;
}

/* An index without a range of its own that stands bare in dimensions of different extents. */
static void ranges_check(Ranges *r)
{
	const Equation *q = r->q;
	for (const Limit *a = r->limit; a; a = a->next)
		for (const Limit *b = a->next; b; b = b->next) {
			bool bare = a->index->form == X_INDEX && b->index->form == X_INDEX &&
				    a->index->i == b->index->i && !q->index[a->index->i].high;
			bool left = a->scatter || b->scatter;
			if (bare && !left && !a->conditional && !b->conditional &&
			    a->extent != b->extent)
				fail(r->o, q->body->at, "the range of %s is ambiguous",
				     q->index[a->index->i].name);
		}
}

static void ranges_decide(Ranges *r)
{
	Equation *q = r->q;
	for (int round = 0; round < 4 && open_names(q);) {
		uint32_t open = open_names(q), found = 0;
		for (int x = 0; x < q->nindex; x++) {
			Index *i = &q->index[x];
			if (i->known || !(i->high ? decide_where(r, i, open)
						  : decide_accesses(r, x, round, open)))
				continue;
			if (i->extent < 1)
				fail(r->o, q->body->at, "the range of %s is empty", i->name);
			found |= (uint32_t)1 << x;
		}
		for (int x = 0; x < q->nindex; x++)
			q->index[x].known |= found >> x & 1;
		round = found ? 0 : round + 1;
	}
	for (int x = 0; x < q->nindex; x++)
		if (!q->index[x].known)
			fail(r->o, q->body->at, "the range of %s is not known", q->index[x].name);
}

/* A multiple of what the numbers and extents in e could make an index run to. */
static void see_numbers(Oracle *o, const Expr *e, int64_t *number, int64_t *extent)
{
	step(o, 1);
	if (e->form == X_VALUE)
		see_numbers(o, e->instance->root, number, extent);
	if (e->form == X_WHOLE && e->i < 1 << 20 && e->i > *number)
		*number = e->i;
	for (int d = 0; e->form == X_READ && d < e->n; d++)
		*extent = e->tensor->shape[d] > *extent ? e->tensor->shape[d] : *extent;
	for (int k = 0; k < e->n; k++)
		see_numbers(o, e->arg[k], number, extent);
}

/* The strict form of `where x < high` with another index in it, as a condition. */
static Guard *where_guard(Ranges *r, Guard *g, const Index *i, int x)
{
	for (int k = 0; k < 2; k++) {
		Expr *bound = k ? i->high : i->low, *e = take(r->o, 3 * sizeof *e);
		uint32_t names = 0;
		bool reads = false;
		if (bound)
			look_into(r->o, bound, &names, &reads);
		if (!names)
			continue;
		e[0] = (Expr){.form = k ? X_LT : X_GE, .type = BOOL, .at = bound->at, .n = 2};
		e[1] = (Expr){.form = X_INDEX, .type = I64, .at = bound->at, .i = x};
		e[0].arg = take(r->o, 2 * sizeof e);
		e[0].arg[0] = &e[1];
		e[0].arg[1] = bound;
		e[1].arg = e[0].arg;
		g = guard_new(r->o, g, e, true);
	}
	return g;
}

void equation_ranges(Oracle *o, Equation *q)
{
	Ranges r = {.o = o, .q = q};
	Guard *g = NULL;
	int64_t number = 1, extent = 1;
	r.end = &r.limit;
	o->eq = q;
	o->inferring = true;
	for (int x = 0; x < q->nindex; x++)
		if (q->index[x].high)
			g = where_guard(&r, g, &q->index[x], x);
	for (int d = 0; d < q->rank; d++)
		if (q->extent[d]) {
			int64_t n = value_of(o, q->extent[d]).i;
			limits_of(&r, q->left[d], NULL);
			limit_add(&r, q->left[d], n, NULL)->scatter = true;
			extent = n > extent ? n : extent;
			see_numbers(o, q->left[d], &number, &extent);
		}
	r.own = g;
	limits_of(&r, q->body, g);
	see_numbers(o, q->body, &number, &extent);
	r.longest = extent;
	r.most = 4 * (number + 1) * (extent + 1) + 1;
	ranges_decide(&r);
	ranges_check(&r);
	o->inferring = false;
}

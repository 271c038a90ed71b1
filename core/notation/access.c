/* access.c - proves that an index stays inside its tensor. Input: the index as a node over the true
 * axes, and the guards under which it is evaluated. Output: nothing when it is proved; for a gather
 * through an integer input, a contract on the input's data (Ir.need); otherwise an error that names
 * operand, dimension and range. */
#include "core/notation/internal.h"

static __int128 ceil_div(__int128 a, int64_t c)
{
	return a / c + (a % c > 0);
}

bool need_add(Ir *ir, Node *input, int64_t lo, int64_t hi)
{
	Need *n = ir->need;

	while (n && n->input != input)
		n = n->next;
	if (!n) {
		n = arena_alloc(&ir->arena, sizeof *n);
		*n = (Need){.input = input, .next = ir->need};
		type_range((Type)input->type, &n->lo, &n->hi);
		ir->need = n;
	}
	n->lo = lo > n->lo ? lo : n->lo;
	n->hi = hi < n->hi ? hi : n->hi;
	return n->lo <= n->hi;
}

/* index = k * T[..] + rest with T an integer input, or a moved copy of one: its data must lie in a range. A contract made
 * before a later part fails stays, which is harmless: the program is refused. */
static bool accept_gather(Elab *e, const Ast *access, const Ast *text, Node *index, int64_t extent,
			  bool low_proved, bool high_proved)
{
	Affine a = affine_modular(e->ir, index);
	int at = -1;

	for (int i = 0; i < a.n; i++) {
		if (!node_reads(e->ir, a.atom[i]))
			continue;
		if (at >= 0)
			return false;
		at = i;
	}
	if (at < 0)
		return false;
	Node *atom = a.atom[at], *read = atom->op == OP_CAST ? atom->src[0] : atom;
	int64_t k = a.k[at], lo, hi, factor = k < 0 ? -k : k;
	if (read->op != OP_READ || !type_is_int((Type)read->src[0]->type))
		return false;
	Node *input = tensor_moved(read->src[0]);
	if (input->op != OP_INPUT)
		return false;
	Node *rest = node_sub(e->ir, index, node_scale(e->ir, atom, k));
	if (rest->lo < INT64_MIN / 4 || rest->hi > INT64_MAX / 4 || k == INT64_MIN)
		return false;
	type_range((Type)input->type, &lo, &hi);
	/* Bounds of k * element; where one is proved, the index must not wrap beyond it. */
	__int128 least = (__int128)(low_proved ? INT64_MIN : 0) - rest->lo;
	__int128 most = (__int128)(high_proved ? INT64_MAX : extent - 1) - rest->hi;
	__int128 down = ceil_div(k > 0 ? least : -most, factor);
	__int128 up = -ceil_div(k > 0 ? -most : least, factor);
	lo = down > lo ? (int64_t)(down > INT64_MAX ? INT64_MAX : down) : lo;
	hi = up < hi ? (int64_t)(up < INT64_MIN ? INT64_MIN : up) : hi;
	if (lo > hi || !need_add(e->ir, input, lo, hi))
		notation_fail(e->src, RICCI_ESHAPE, text->pos,
			      "index %s of %s fits extent %lld for no data of %s",
			      ast_text(e->src, text), access ? access->name->s : e->eq->name->s,
			      (long long)extent, input->u.s);
	return true;
}

/* A choice in the index, by the affine form's terms: e with it replaced by either branch. */
static Node *find_choice(Ir *ir, Node *e, Node **yes, Node **no)
{
	Affine a = affine_modular(ir, e);

	for (int i = 0; i < a.n; i++) {
		Node *s = a.atom[i], *rest;
		if (s->op != OP_SELECT)
			continue;
		rest = node_sub(ir, e, node_scale(ir, s, a.k[i]));
		*yes = node_add(ir, rest, node_scale(ir, s->src[1], a.k[i]));
		*no = node_add(ir, rest, node_scale(ir, s->src[2], a.k[i]));
		return s->src[0];
	}
	return NULL;
}

typedef struct Place { /* of the index */
	Ir *ir;
	int64_t extent;
	Elab *e; /* for contracts and messages; NULL: there are none */
	const Ast *access, *text;
} Place;

/* Is index inside under g, now or by a contract? Choices are followed into both branches, at most
 * `depth` deep. */
static bool prove(const Place *at, Node *index, Guard *g, int depth)
{
	Ir *ir = at->ir;
	bool low = index->lo >= 0, high = index->hi < at->extent;
	Node *yes, *no, *cond;

	if ((low && high) || guard_is_dead(g))
		return true;
	Polyhedron *p = guard_polyhedron(ir, g);
	low = low || poly_implies(p, node2(ir, OP_LE, node_int(ir, 0), index));
	high = high || poly_implies(p, node2(ir, OP_LT, index, node_int(ir, at->extent)));
	if (low && high)
		return true;
	cond = depth ? find_choice(ir, index, &yes, &no) : NULL;
	if (cond)
		return prove(at, yes, guard_push(ir, g, cond), depth - 1) &&
		       prove(at, no, guard_push(ir, g, node_not(ir, cond)), depth - 1);
	return at->e && accept_gather(at->e, at->access, at->text, index, at->extent, low, high);
}

/* ---- the last resort: case by case */

/* A proof's cases may be that many; an axis that runs no further than SHORT_RANGE is tried value by
 * value. */
enum { MOST_CASES = 300, SHORT_RANGE = 8 };

typedef struct Split {
	Ir *ir;
	int left;
	Node *axis; /* the axis to split, and by what */
	int64_t by;
} Split;

static void find_split(void *user, Node *n)
{
	Split *c = user;

	if ((n->op != OP_FLOORDIV && n->op != OP_FLOORMOD) || !node_is_const(n->src[1]))
		return;
	Affine a = affine_of(c->ir, n->src[0]);
	for (int i = 0; i < a.n; i++) {
		int64_t by = n->src[1]->u.i / int_gcd(n->src[1]->u.i, a.k[i]);
		if (a.atom[i]->op == OP_AXIS && a.atom[i]->hi > 0 && by > 1 &&
		    (!c->axis || by < c->by)) {
			c->axis = a.atom[i];
			c->by = by;
		}
	}
}

static void find_short(void *user, Node *n)
{
	Split *c = user;

	if (n->op == OP_AXIS && n->hi > 0 && n->hi < SHORT_RANGE && (!c->axis || n->hi < c->by)) {
		c->axis = n;
		c->by = n->hi + 1;
	}
}

/* Is index inside under g, residue by residue of the axes in quotients, then value by value of
 * short ones? With i = by * u + r every quotient of i by a divisor of `by` is linear in u. */
static bool prove_cases(Split *c, Node *index, int64_t extent, Guard *g)
{
	Ir *ir = c->ir;

	if (c->left-- <= 0)
		return false;
	if (guard_is_dead(g))
		return true;
	Polyhedron *p = guard_polyhedron(ir, g);
	Node *e = poly_simplify(p, index);
	if (poly_implies(p, node2(ir, OP_LE, node_int(ir, 0), e)) &&
	    poly_implies(p, node2(ir, OP_LT, e, node_int(ir, extent))))
		return true;
	c->axis = NULL;
	node_walk(ir, index, find_split, c);
	for (const Guard *k = g; k && !c->axis; k = k->next)
		node_walk(ir, k->cond, find_split, c);
	if (!c->axis)
		node_walk(ir, index, find_short, c);
	for (const Guard *k = g; k && !c->axis; k = k->next)
		node_walk(ir, k->cond, find_short, c);
	Node *axis = c->axis;
	int64_t by = c->by;
	for (int64_t r = 0; axis && r < by && r <= axis->hi; r++) {
		Node *u = node_axis(ir, (int)axis->u.i, (axis->hi - r) / by + 1);
		Node *to = node_add(ir, node_scale(ir, u, by), node_int(ir, r));
		if (!prove_cases(c, node_replace(ir, index, 1, &axis, &to), extent,
				 guard_replace(ir, g, 1, &axis, &to)))
			return false;
	}
	return axis != NULL;
}

static bool proved(const Place *at, Node *index, Guard *g)
{
	Split cases = {.ir = at->ir, .left = MOST_CASES};

	return prove(at, index, g, 6) || prove_cases(&cases, index, at->extent, g);
}

bool access_is_inside(Ir *ir, Node *index, int64_t extent, Guard *g)
{
	return proved(&(Place){.ir = ir, .extent = extent}, index, g);
}

typedef struct Wrap {
	Ir *ir;
	bool found;
} Wrap;

static void find_wrap(void *user, Node *n)
{
	Wrap *w = user;

	w->found = w->found || (n->type == RICCI_I64 && node_may_wrap(n) && !node_reads(w->ir, n));
}

void access_check_wrap(Elab *e, const Ast *access, const Ast *text, Node *index)
{
	Wrap w = {.ir = e->ir};

	node_walk(e->ir, index, find_wrap, &w);
	if (w.found)
		notation_fail(e->src, RICCI_ESHAPE, text->pos, "index %s of %s can leave 64 bits",
			      ast_text(e->src, text), access ? access->name->s : e->eq->name->s);
}

void access_prove(Elab *e, Guard *g, const Ast *access, const Ast *text, int d, Node *index,
		  int64_t extent)
{
	int64_t lo = index->lo, hi = index->hi;
	const char *name = access ? access->name->s : e->eq->name->s;

	access_check_wrap(e, access, text, index);
	if (proved(&(Place){e->ir, extent, e, access, text}, index, g))
		return;
	poly_bounds(guard_polyhedron(e->ir, g), index, &lo, &hi);
	if (node_reads(e->ir, index))
		notation_fail(
			e->src, RICCI_ESHAPE, text->pos,
			"index %s of %s is computed from data: nothing keeps it inside "
			"dimension %d of extent %lld; %s",
			ast_text(e->src, text), name, d, (long long)extent,
			access ? "say what stands outside with else, or clamp it with min and "
				 "max"
			       : "clamp it with min and max");
	notation_fail(
		e->src, RICCI_ESHAPE, text->pos,
		"index %s of %s leaves dimension %d: it runs from %lld to %lld, the extent is "
		"%lld",
		ast_text(e->src, text), name, d, (long long)lo, (long long)hi, (long long)extent);
}

/* predicates.c - short vector loops that read under conditions become vectors under masks: what a
 * compiler makes of them evaluates them for each lane.
 *
 * Input: a loop tree. Output: the same with such loops cut into LANES loops of at most one vector,
 * those between the ends in a loop, where conditions that always hold are gone. They hold
 * stores of f32 whose values have operators that all lanes take at once (jit/emit/predicates.c).
 * Invariant: a lane does what its iteration did; those of an iteration that is none, nothing. */
#include "jit/tree/problem.h"

enum { VECTORS_MOST = 16, MASKED_BYTES = 32 };

/* Lanes of a vector. */
static int64_t predicates_width(const Target *target)
{
	return target->vector_bytes < MASKED_BYTES ? 0 : target->vector_bytes / 4;
}

int64_t predicates_most(const Target *target)
{
	return VECTORS_MOST * predicates_width(target);
}

typedef struct Masks {
	const Tree *t;
	const Stmt *loop;
	int64_t width;	  /* lanes of a vector */
	bool decides;	  /* there is a condition that lanes decide */
	NodeMap suits[2]; /* suits_value of nodes, outside and under conditions */
} Masks;

static bool is_own(const Masks *m, const Node *buffer)
{
	for (const Stmt *s = m->loop->body; s; s = s->next)
		if (s->kind == STMT_ALLOC && s->buffer == buffer)
			return true;
	return false;
}

static bool is_stored(const Masks *m, const Node *buffer)
{
	for (const Stmt *s = m->loop->body; s; s = s->next)
		if (s->kind == STMT_STORE && s->buffer == buffer)
			return true;
	return false;
}

typedef struct Varying {
	const Node *axis;
	bool found;
} Varying;

static void see_varying(void *user, Node *n)
{
	Varying *v = user;
	v->found |= n == v->axis || (n->op == OP_READ && tensor_size(n->src[0]) == 1);
}

bool lanes_vary(Ir *ir, Node *n, const Node *axis)
{
	Varying v = {axis, false};
	node_walk(ir, n, see_varying, &v);
	return v.found;
}

static void see_loose(void *user, Node *n)
{
	if (n->op == OP_READ)
		*(bool *)user |= !read_inside(n);
}

/* The same for all lanes, and always valid. */
static bool is_common(const Masks *m, Node *n)
{
	bool loose = lanes_vary(m->t->ir, n, m->loop->axis);
	node_walk(m->t->ir, n, see_loose, &loose);
	return !loose;
}

static void see_comparison(void *user, Node *n)
{
	*(bool *)user |= op_compares((Op)n->op) && type_is_float(n->src[0]->type);
}

bool lanes_compare(Ir *ir, Node *cond, const Node *axis)
{
	bool compares = false;
	node_walk(ir, cond, see_comparison, &compares);
	return compares && lanes_vary(ir, cond, axis);
}

static bool suits_value(Masks *m, Node *n, bool under);

/* Comparisons of values, and what joins them. */
static bool suits_comparison(Masks *m, Node *c, bool under)
{
	if (!lanes_vary(m->t->ir, c, m->loop->axis))
		return is_common(m, c);
	bool compares = op_compares((Op)c->op), all = op_is_logic((Op)c->op);
	for (int k = 0; k < c->nsrc && all; k++)
		all = compares ? type_is_float(c->src[k]->type) && suits_value(m, c->src[k], under)
			       : suits_comparison(m, c->src[k], under);
	return all;
}

/* Lanes lo..hi-1 where all lanes agree on the rest, or the lanes compare values. *bounds: there are
 * such of the first kind. */
static bool suits_condition(Masks *m, Node *c, bool under, bool *bounds)
{
	Node **part;
	int n = node_parts(m->t->ir, c, OP_AND, &part);
	bool suits = true;
	*bounds = false;
	for (int k = 0; k < n; k++)
		*bounds |= !lanes_compare(m->t->ir, part[k], m->loop->axis);
	for (int k = 0; k < n && suits; k++) {
		Node *lo = m->loop->lo, *hi = m->loop->hi;
		if (lanes_compare(m->t->ir, part[k], m->loop->axis)) {
			suits = suits_comparison(m, part[k], under || *bounds);
			continue;
		}
		bool varies = lanes_vary(m->t->ir, part[k], m->loop->axis);
		suits = varies ? cond_interval(m->t->ir, part[k], m->loop->axis, &lo, &hi)
			       : is_common(m, part[k]);
		m->decides |= varies;
	}
	return suits;
}

static bool suits_read(const Masks *m, Node *n)
{
	if (is_own(m, n->src[0]))
		return true;
	int64_t step = affine_stride(m->t->ir, n->src[1], m->loop->axis);
	return tensor_size(n->src[0]) > 1 && !is_stored(m, n->src[0]) && (step == 1 || step == 2);
}

bool predicates_take(const Node *n)
{
	bool plain = true; /* no value of another type is looked at */
	for (int k = 0; k < n->nsrc; k++)
		plain &= !type_is_float(n->src[k]->type) ||
			 (op_compares((Op)n->op) && n->src[k]->type == RICCI_F32);
	if (!type_is_float(n->type))
		return plain;
	switch ((Op)n->op) {
	case OP_INPUT:
	case OP_READ:
	case OP_CONST:
	case OP_SELECT:
	case OP_ADD:
	case OP_SUB:
	case OP_MUL:
	case OP_DIV:
	case OP_NEG:
	case OP_MIN:
	case OP_MAX:
		return n->type == RICCI_F32;
	default:
		return false;
	}
}

/* under: conditions stand around it. */
static bool find_suits(Masks *m, Node *n, bool under)
{
	bool all = true, bounds;
	if (!lanes_vary(m->t->ir, n, m->loop->axis))
		return n->type == RICCI_F32 && is_common(m, n);
	if (n->type != RICCI_F32 || !predicates_take(n))
		return false;
	if (n->op == OP_READ)
		return suits_read(m, n) && (under || read_inside(n));
	if (n->op == OP_SELECT)
		return suits_condition(m, n->src[0], under, &bounds) &&
		       suits_value(m, n->src[1], under || bounds) &&
		       suits_value(m, n->src[2], under);
	for (int k = 0; k < n->nsrc; k++)
		all &= suits_value(m, n->src[k], under);
	return all;
}

/* The same, once for each node. */
static bool suits_value(Masks *m, Node *n, bool under)
{
	static char yes, no;
	const char *known = node_map_get(&m->suits[under], n);
	if (!known) {
		known = find_suits(m, n, under) ? &yes : &no;
		node_map_put(m->t->ir, &m->suits[under], n, (void *)known);
	}
	return known == &yes;
}

static bool suits_store(Masks *m, const Stmt *s)
{
	if (s->buffer->type != RICCI_F32 || !suits_value(m, s->value, false))
		return false;
	if (is_own(m, s->buffer))
		return true;
	const Buffer *b = tree_find(m->t, s->buffer);
	int64_t lo = m->loop->lo->u.i, n = m->loop->hi->u.i - lo;
	int64_t last = lo + (n - 1) / m->width * m->width; /* the last vector, stored whole, too */
	bool tile = b->space == SPACE_LOCAL &&
		    s->index->hi - m->loop->axis->hi + last + m->width <= tensor_size(s->buffer);
	return (tile || (b->space == SPACE_PARAM && s->red == RED_NONE)) &&
	       affine_stride(m->t->ir, s->index, m->loop->axis) == 1;
}

static bool suits(Masks *m, int64_t most)
{
	const Stmt *l = m->loop;
	if (l->how != HOW_VECTOR || !node_is_const(l->lo) || !node_is_const(l->hi) ||
	    l->hi->u.i - l->lo->u.i > most)
		return false;
	for (const Stmt *s = l->body; s; s = s->next)
		if (s->kind == STMT_ALLOC ? tensor_size(s->buffer) > 1
					  : s->kind != STMT_STORE || !suits_store(m, s))
			return false;
	return m->decides;
}

/* One vector from `first` on, of which `n` are iterations. */
static Stmt *vector(Tree *t, const Stmt *loop, Node *first, int64_t width, int64_t n)
{
	Stmt *body = NULL;
	Node *axis = loop->axis, *lane = tree_axis(t, width), *to = node_add(t->ir, first, lane);
	for (const Stmt *s = loop->body; s; s = s->next)
		body = stmt_seq(body,
				s->kind == STMT_ALLOC
					? stmt_alloc(t, s->buffer)
					: stmt_store(t, s->buffer,
						     node_replace(t->ir, s->index, 1, &axis, &to),
						     node_replace(t->ir, s->value, 1, &axis, &to),
						     s->red));
	return stmt_loop(t, HOW_LANES, lane, NULL, node_int(t->ir, n), body);
}

/* First vector, those between in a loop, last one. */
static Stmt *vectors(Tree *t, const Stmt *loop, int64_t width)
{
	int64_t lo = loop->lo->u.i, left = loop->hi->u.i - lo, between = (left - 1) / width - 1;
	Stmt *all = vector(t, loop, loop->lo, width, left < width ? left : width);
	if (between > 0) {
		Node *k = tree_axis(t, between);
		Node *first =
			node_add(t->ir, node_scale(t->ir, k, width), node_int(t->ir, lo + width));
		all = stmt_seq(all, stmt_loop(t, HOW_SERIAL, k, NULL, NULL,
					      vector(t, loop, first, width, width)));
	}
	int64_t last = (left - 1) / width * width;
	if (last > 0)
		all = stmt_seq(all,
			       vector(t, loop, node_int(t->ir, lo + last), width, left - last));
	return all;
}

void lower_predicates(Tree *t, Stmt *s, const Target *target)
{
	int64_t width = predicates_width(target);
	for (; s; s = s->next) {
		Masks m = {.t = t, .loop = s, .width = width};
		if (s->kind == STMT_IF)
			lower_predicates(t, s->otherwise, target);
		if (s->kind == STMT_IF || s->kind == STMT_LOOP)
			lower_predicates(t, s->body, target);
		if (s->kind != STMT_LOOP || !suits(&m, predicates_most(target)))
			continue;
		Stmt *all = vectors(t, s, width), *last = all;
		while (last->next)
			last = last->next;
		last->next = s->next;
		*s = *all;
		s = last == all ? s : last;
	}
}

/* predicates.c - vector loops of f32 become vectors, under masks where lanes or iterations end.
 *
 * Input: a loop tree. Output: the same with such loops cut into LANES loops of at most one vector;
 * where lanes decide conditions the first and the last stand alone, and between them those
 * conditions are gone. They hold stores of f32 whose values have operators that all lanes take at
 * once (jit/emit/predicates.c), or reductions of all lanes to one element.
 * Invariant: a lane does what its iteration did; those of an iteration that is none, nothing. */
#include "jit/tree/problem.h"

enum { VECTORS_MOST = 16, MASKED_BYTES = 32, WRITTEN_MOST = 8, FOLDED_MOST = 2 };

int64_t predicates_width(const Target *target)
{
	return target->vector_bytes < MASKED_BYTES ? 0 : target->vector_bytes / 4;
}

int64_t predicates_most(const Target *target)
{
	return VECTORS_MOST * predicates_width(target);
}

/* What holds where a value is needed: all lanes' places are valid; those in a mask; nobody knows,
 * behind the other side of a condition. */
typedef enum { VALID, MASKED, UNKNOWN } Where;

typedef struct Masks {
	const Tree *t;
	const Stmt *loop;
	int64_t width;	  /* lanes of a vector */
	bool decides;	  /* there is a condition that lanes decide */
	NodeMap suits[3]; /* suits_value of nodes, by where they stand */
} Masks;

static bool has_statement(const Stmt *loop, StmtKind kind, const Node *buffer)
{
	for (const Stmt *s = loop->body; s; s = s->next)
		if (s->kind == kind && s->buffer == buffer)
			return true;
	return false;
}

bool lanes_own(const Stmt *loop, const Node *buffer)
{
	return has_statement(loop, STMT_ALLOC, buffer);
}

static bool is_stored(const Masks *m, const Node *buffer)
{
	return has_statement(m->loop, STMT_STORE, buffer);
}

typedef struct Varying {
	const Stmt *loop;
	bool found;
} Varying;

static void see_varying(void *user, Node *n)
{
	Varying *v = user;
	v->found |= n == v->loop->axis || (n->op == OP_READ && lanes_own(v->loop, n->src[0]));
}

bool lanes_vary(Ir *ir, Node *n, const Stmt *loop)
{
	Varying v = {loop, false};
	node_walk(ir, n, see_varying, &v);
	return v.found;
}

typedef struct Loose {
	const Masks *m;
	bool under, found;
} Loose;

static void see_loose(void *user, Node *n)
{
	Loose *l = user;
	if (n->op == OP_READ)
		l->found |= (l->under && !read_inside(n)) || is_stored(l->m, n->src[0]);
}

/* The same for all lanes, and valid although the conditions that it stands under may not hold. */
static bool is_common(const Masks *m, Node *n, bool under)
{
	Loose l = {m, under, lanes_vary(m->t->ir, n, m->loop)};
	node_walk(m->t->ir, n, see_loose, &l);
	return !l.found;
}

static void see_comparison(void *user, Node *n)
{
	*(bool *)user |= op_compares((Op)n->op) && type_is_float(n->src[0]->type);
}

bool lanes_compare(Ir *ir, Node *cond, const Stmt *loop)
{
	bool compares = false;
	node_walk(ir, cond, see_comparison, &compares);
	return compares && lanes_vary(ir, cond, loop);
}

static bool suits_value(Masks *m, Node *n, Where where);

/* Comparisons of values, and what joins them. */
static bool suits_comparison(Masks *m, Node *c, Where where)
{
	if (!lanes_vary(m->t->ir, c, m->loop))
		return is_common(m, c, true);
	bool compares = op_compares((Op)c->op), all = op_is_logic((Op)c->op);
	for (int k = 0; k < c->nsrc && all; k++)
		all = compares ? type_is_float(c->src[k]->type) && suits_value(m, c->src[k], where)
			       : suits_comparison(m, c->src[k], where);
	return all;
}

/* Under a condition of which lanes' places decide (bounds) or their values alone. */
static Where where_within(Where where, bool bounds)
{
	return bounds && where == VALID ? MASKED : where;
}

/* Lanes lo..hi-1 where all lanes agree on the rest, or the lanes compare values. *bounds: there are
 * such of the first kind. */
static bool suits_condition(Masks *m, Node *c, Where where, bool *bounds)
{
	Node **part;
	int n = node_parts(m->t->ir, c, OP_AND, &part);
	bool suits = true;
	*bounds = false;
	for (int k = 0; k < n; k++)
		*bounds |= !lanes_compare(m->t->ir, part[k], m->loop);
	for (int k = 0; k < n && suits; k++) {
		Node *lo = m->loop->lo, *hi = m->loop->hi;
		if (lanes_compare(m->t->ir, part[k], m->loop)) {
			suits = suits_comparison(m, part[k], where_within(where, *bounds));
			continue;
		}
		bool varies = lanes_vary(m->t->ir, part[k], m->loop);
		suits = varies ? cond_interval(m->t->ir, part[k], m->loop->axis, &lo, &hi)
			       : is_common(m, part[k], true);
		m->decides |= varies;
	}
	return suits;
}

/* Does the read meet none of the elements that the loop stores? */
static bool is_apart(const Masks *m, const Node *read)
{
	int64_t lanes = m->loop->hi->u.i - m->loop->lo->u.i;
	for (const Stmt *s = m->loop->body; s; s = s->next) {
		if (s->kind != STMT_STORE || s->buffer != read->src[0])
			continue;
		Node *d = node_sub(m->t->ir, read->src[1], s->index);
		if (!node_is_const(d) || (d->u.i < lanes && -d->u.i < lanes))
			return false;
	}
	return true;
}

static bool suits_read(const Masks *m, const Node *n)
{
	int64_t step = affine_stride(m->t->ir, n->src[1], m->loop->axis);
	if (tensor_size(n->src[0]) == 1) /* a variable: it has no place beside it */
		return lanes_own(m->loop, n->src[0]);
	return (step == 1 || step == 2) && is_apart(m, n);
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
		return n->type == RICCI_F32;
	default:
		return n->type == RICCI_F32 && op_info[n->op].form == FORM_CALL &&
		       n->op != OP_RANDOM && n->op != OP_NORMAL;
	}
}

static bool find_suits(Masks *m, Node *n, Where where)
{
	bool all = true, bounds;
	if (!lanes_vary(m->t->ir, n, m->loop))
		return n->type == RICCI_F32 && is_common(m, n, where != VALID);
	if (n->type != RICCI_F32 || !predicates_take(n))
		return false;
	if (n->op == OP_READ)
		return suits_read(m, n) && (where != UNKNOWN || read_inside(n));
	if (n->op == OP_SELECT)
		return suits_condition(m, n->src[0], where, &bounds) &&
		       suits_value(m, n->src[1], where_within(where, bounds)) &&
		       suits_value(m, n->src[2], bounds ? UNKNOWN : where);
	for (int k = 0; k < n->nsrc; k++)
		all &= suits_value(m, n->src[k], where);
	return all;
}

/* The same, once for each node. */
static bool suits_value(Masks *m, Node *n, Where where)
{
	static char yes, no;
	const char *known = node_map_get(&m->suits[where], n);
	if (!known) {
		known = find_suits(m, n, where) ? &yes : &no;
		node_map_put(m->t->ir, &m->suits[where], n, (void *)known);
	}
	return known == &yes;
}

static bool suits_store(Masks *m, const Stmt *s)
{
	if (s->buffer->type != RICCI_F32 || !suits_value(m, s->value, VALID))
		return false;
	if (lanes_own(m->loop, s->buffer))
		return true;
	const Buffer *b = tree_find(m->t, s->buffer);
	int64_t n = m->loop->hi->u.i - m->loop->lo->u.i;
	if (!node_has(s->index, m->loop->axis))
		return s->red != RED_NONE && n <= FOLDED_MOST * m->width;
	int64_t whole = (n + m->width - 1) / m->width * m->width; /* the last vector, too */
	bool tile = b->space == SPACE_LOCAL &&
		    s->index->hi - m->loop->axis->hi + m->loop->lo->u.i + whole <=
			    tensor_size(s->buffer);
	return (tile || s->red == RED_NONE) &&
	       affine_stride(m->t->ir, s->index, m->loop->axis) == 1;
}

/* Do the lanes meet in one element? */
static bool folds(const Stmt *loop)
{
	for (const Stmt *s = loop->body; s; s = s->next)
		if (s->kind == STMT_STORE && s->red != RED_NONE &&
		    !node_has(s->index, loop->axis) && !lanes_own(loop, s->buffer))
			return true;
	return false;
}

bool lanes_narrow(int64_t n, int64_t width)
{
	return n < width && (n & (n - 1)) == 0;
}

static bool suits(Masks *m)
{
	const Stmt *l = m->loop;
	if (l->how != HOW_VECTOR || !node_is_const(l->lo) || !node_is_const(l->hi) ||
	    l->hi->u.i <= l->lo->u.i)
		return false;
	for (const Stmt *s = l->body; s; s = s->next)
		if (s->kind == STMT_ALLOC ? tensor_size(s->buffer) > 1
					  : s->kind != STMT_STORE || !suits_store(m, s))
			return false;
	/* (Part of a vector that is a vector of its own needs no mask.) */
	return l->body != NULL && (m->decides || !lanes_narrow(l->hi->u.i - l->lo->u.i, m->width));
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

/* So many vectors in a loop, from `from` on; a few are written out, so that what they keep stays in
 * registers. */
static Stmt *whole_vectors(Tree *t, const Stmt *loop, int64_t from, int64_t count, int64_t width)
{
	Stmt *all = NULL;
	if (count <= WRITTEN_MOST) {
		for (int64_t k = 0; k < count; k++)
			all = stmt_seq(all, vector(t, loop, node_int(t->ir, from + k * width),
						   width, width));
		return all;
	}
	Node *k = tree_axis(t, count);
	Node *first = node_add(t->ir, node_scale(t->ir, k, width), node_int(t->ir, from));
	return stmt_loop(t, HOW_SERIAL, k, NULL, NULL, vector(t, loop, first, width, width));
}

/* Where lanes decide conditions, most hold for all of the vectors between the first and the last.
 */
static Stmt *vectors(Tree *t, const Stmt *loop, int64_t width, bool decides)
{
	int64_t lo = loop->lo->u.i, left = loop->hi->u.i - lo, rest = left % width;
	if (!decides || left <= width) {
		Stmt *all = whole_vectors(t, loop, lo, left / width, width);
		Node *last = node_int(t->ir, lo + left - rest);
		return rest ? stmt_seq(all, vector(t, loop, last, width, rest)) : all;
	}
	int64_t last = (left - 1) / width * width;
	Stmt *all = vector(t, loop, loop->lo, width, width);
	all = stmt_seq(all, whole_vectors(t, loop, lo + width, last / width - 1, width));
	return stmt_seq(all, vector(t, loop, node_int(t->ir, lo + last), width, left - last));
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
		if (s->kind != STMT_LOOP)
			continue;
		if (!suits(&m)) {
			if (s->how == HOW_VECTOR && folds(s)) /* compilers must be told of it */
				s->how = HOW_SERIAL;
			continue;
		}
		s = stmt_instead(s, vectors(t, s, width, m.decides));
	}
}

/* predicates.c - vector loops become vectors, under masks where lanes or iterations end.
 *
 * Input: a loop tree. Output: the same with such loops cut into LANES loops of at most one vector;
 * where lanes decide conditions the first and the last stand alone, and between them those
 * conditions are gone. They hold stores whose values have operators that all lanes take at once
 * (jit/emit/lanes.c), or reductions of all lanes to one element. Lanes have 32 or 64 bits; narrower
 * elements are widened when they are read, and floats rounded when they are stored. A condition
 * that all lanes share stands around them where it is in the way.
 * Invariant: a lane does what its iteration did; those of an iteration that is none, nothing. */
#include "jit/tree/problem.h"

#include <string.h>

enum {
	VECTORS_MOST = 16,
	MASK_BYTES = 16, /* shorter vectors have no masks */
	WRITTEN_MOST = 8,
	FOLDED_MOST = 4,
	SPLIT_MOST = 3
};

Type lanes_type(Type t)
{
	return type_size(t) >= 4 ? t : type_is_float(t) ? RICCI_F32 : RICCI_I32;
}

static int64_t lane_bytes(Type t)
{
	return (int64_t)type_size(lanes_type(t));
}

/* Lanes of a vector. */
static int64_t predicates_width(const Target *target, Type t)
{
	return target->vector_bytes / lane_bytes(t);
}

int64_t predicates_most(const Target *target, Type t)
{
	return VECTORS_MOST * predicates_width(target, t);
}

bool predicates_type(Type t)
{
	return t == RICCI_F32 || t == RICCI_F64 || t == RICCI_I32 || t == RICCI_I64;
}

/* Is an element of that type widened to its lane? */
static bool is_widened(Type t)
{
	return type_size(t) < 4;
}

bool lanes_apart(Type t, int64_t width, int64_t step)
{
	bool shuffled = step == 2 || step == 4 || step == -1 || step == -2 || step == -4;
	return step != 1 && (!shuffled || width * lane_bytes(t) < MASK_BYTES);
}

/* What holds where a value is needed: all lanes' places are valid; those in a mask; nobody knows,
 * behind the other side of a condition. */
typedef enum { VALID, MASKED, UNKNOWN } Where;

typedef struct Masks {
	Tree *t;
	const Stmt *loop;
	int64_t width;	  /* lanes of a vector */
	Node *count;	  /* iterations */
	Polyhedron *path; /* what holds around the loop */
	bool decides;	  /* there is a condition that lanes decide */
	bool masked;	  /* or one beside it that decides what they read */
	bool apart;	  /* they read elements apart under one */
	/* By where nodes stand: suits_value, suits_index of them. */
	NodeMap values[3], indices[3];
} Masks;

/* The same for all lanes, and valid although the conditions that it stands under may not hold. */
static bool is_common(const Masks *m, Node *n, bool under)
{
	return !lanes_vary(n, m->loop) && !lanes_access(n, m->loop, STMT_STORE) &&
	       (!under || reads_inside(m->t->ir, n));
}

typedef bool SuitsFn(Masks *m, Node *n, Where where);
/* The result of find, which is called once for each node. */
static bool suits_once(Masks *m, NodeMap *map, Node *n, Where where, SuitsFn *find)
{
	static char yes, no;
	const char *known = node_map_get(map, n);
	if (!known) {
		known = find(m, n, where) ? &yes : &no;
		node_map_put(m->t->ir, map, n, (void *)known);
	}
	return known == &yes;
}

static bool suits_value(Masks *m, Node *n, Where where);
static bool suits_read(Masks *m, const Node *n, Where where);

static bool suits_index(Masks *m, Node *n, Where where);

/* A part of an index that differs between lanes otherwise than by their number: an integer that is read or computed,
 * the less or the larger of two such indices, or a quotient or remainder of one. */
static bool suits_part(Masks *m, Node *n, Where where)
{
	Op op = (Op)n->op;
	if (op == OP_MIN || op == OP_MAX)
		return suits_index(m, n->src[0], where) && suits_index(m, n->src[1], where);
	if (op == OP_READ)
		return suits_value(m, n, where);
	LaneQuotient q;
	if (lane_quotient(n, &q))
		return suits_index(m, q.of, where);
	return op == OP_CAST && type_is_int((Type)n->src[0]->type) &&
	       suits_value(m, n->src[0], where);
}

static bool suits_parts(Masks *m, const LaneIndex *x, Where where)
{
	bool all = is_common(m, x->common, true);
	for (int j = 0; j < x->n && all; j++)
		all = x->atom[j] == m->loop->axis || suits_part(m, x->atom[j], where);
	return all;
}

static bool find_index(Masks *m, Node *n, Where where)
{
	LaneIndex x = lane_index(m->t->ir, n, m->loop, false);
	return lane_index_exact(&x) && suits_parts(m, &x, where);
}

static bool suits_index(Masks *m, Node *n, Where where)
{
	return suits_once(m, &m->indices[where], n, where, find_index);
}

static bool suits_indices(Masks *m, const Node *c, Where where)
{
	LaneIndex a = lane_index(m->t->ir, c->src[0], m->loop, false);
	LaneIndex b = lane_index(m->t->ir, c->src[1], m->loop, false);
	return lane_index_compares(&a, &b) && suits_parts(m, &a, where) &&
	       suits_parts(m, &b, where);
}

/* Comparisons of values, and what joins them. */
static bool suits_comparison(Masks *m, Node *c, Where where)
{
	if (!lanes_vary(c, m->loop))
		return is_common(m, c, where != VALID);
	if (c->op == OP_READ)
		return suits_read(m, c, where);
	bool compares = op_compares((Op)c->op), all = compares || op_is_logic((Op)c->op);
	if (compares && c->src[0]->type == RICCI_I64)
		return suits_indices(m, c, where);
	if (c->op == OP_OR && lanes_look_up_any(m->t->ir, c->src[1], m->loop))
		return false;
	for (int k = 0; k < c->nsrc && all; k++)
		all = suits_value(m, c->src[k], where);
	return all;
}

/* Do parts of the condition compare places? (Not those of the values that it compares.) */
static bool compares_places(Ir *ir, Node *c, NodeMap *seen)
{
	if (op_compares((Op)c->op))
		return c->src[0]->type == RICCI_I64;
	if (!op_is_logic((Op)c->op) || node_map_get(seen, c))
		return false;
	bool found = false;
	node_map_put(ir, seen, c, c);
	for (int k = 0; k < c->nsrc; k++)
		found |= compares_places(ir, c->src[k], seen);
	return found;
}

/* Is it the same in the next vector? */
static bool repeats(const Masks *m, Node *cond)
{
	Node *axis = m->loop->axis, *next = node_add(m->t->ir, axis, node_int(m->t->ir, m->width));
	return node_is_const(m->loop->lo) && node_replace(m->t->ir, cond, 1, &axis, &next) == cond;
}

/* Do the lanes compare, rather than have a mask? One that differs from vector to vector is known where each is written
 * out. */
static bool are_compared(const Masks *m, Node *cond)
{
	bool written = node_is_const(m->count) && m->count->u.i <= WRITTEN_MOST * m->width;
	LanesDecide how = lanes_decide(m->t->ir, cond, m->loop);
	return how == LANES_COMPARE || (how == LANES_LISTED && !written && !repeats(m, cond));
}

/* Under a condition, and where it doesn't hold. Of the places that a mask makes valid the lanes are
 * known; of those that a comparison of places does, they are not. */
static void find_where(Masks *m, int n, Node *const *part, Where *yes, Where *no)
{
	bool bounds = false, places = false;
	NodeMap seen = {0};
	for (int k = 0; k < n; k++)
		if (are_compared(m, part[k]))
			places |= compares_places(m->t->ir, part[k], &seen);
		else
			bounds = true;
	m->masked |= bounds;
	*no = bounds || places ? UNKNOWN : *yes;
	*yes = places ? UNKNOWN : bounds && *yes == VALID ? MASKED : *yes;
}

/* Lanes lo..hi-1 where all lanes agree on the rest, or the lanes compare. *yes: where the condition is
 * needed; it and *no become where the values are. */
static bool suits_condition(Masks *m, Node *c, Where *yes, Where *no)
{
	Node **part;
	int n = node_parts(m->t->ir, c, OP_AND, &part);
	bool suits = true, always = *yes == VALID; /* is the condition evaluated unconditionally? */
	find_where(m, n, part, yes, no);
	for (int k = 0; k < n && suits; k++) {
		bool varies = lanes_vary(part[k], m->loop);
		bool compares = are_compared(m, part[k]);
		suits = compares ? suits_value(m, part[k], *yes)
				 : varies || is_common(m, part[k], k > 0 || !always);
		m->decides |= varies && !compares;
	}
	return suits;
}

bool lanes_interleave(Ir *ir, const Stmt *loop, const Stmt *s)
{
	const Stmt *next = s->next;
	Node *d = next && next->kind == STMT_STORE && next->buffer == s->buffer
			  ? node_sub(ir, next->index, s->index)
			  : NULL;
	return d && node_is_const(d) && d->u.i == 1 &&
	       affine_stride(ir, s->index, loop->axis) == 2 && s->red == RED_NONE &&
	       next->red == RED_NONE;
}

/* Does the read meet none of the elements that the loop stores? */
static bool is_apart(const Masks *m, const Node *read)
{
	for (const Stmt *s = m->loop->body; s; s = s->next) {
		if (s->kind != STMT_STORE || s->buffer != read->src[0])
			continue;
		Node *d = node_sub(m->t->ir, read->src[1], s->index);
		int64_t step = affine_stride(m->t->ir, s->index, m->loop->axis);
		if (node_has(d, m->loop->axis) || step != 1 ||
		    (d->lo < m->count->hi && -d->hi < m->count->hi))
			return false;
	}
	return true;
}

/* Does it lie inside in all iterations? */
static bool stays_inside(const Masks *m, const Node *read)
{
	Ir *ir = m->t->ir;
	Polyhedron *p = poly_copy(m->path);
	int64_t lo, hi;
	poly_assume(p, node2(ir, OP_LE, m->loop->lo, m->loop->axis));
	poly_assume(p, node2(ir, OP_LT, m->loop->axis, m->loop->hi));
	return poly_bounds(p, read->src[1], &lo, &hi) && lo >= 0 && hi < tensor_size(read->src[0]);
}

/* At most. */
static int64_t vectors_of(const Masks *m)
{
	return (m->count->hi + m->width - 1) / m->width;
}

/* Is what the loop looks up a line in the lanes of one vector, of whole ones or of the last, so that it has no mask for
 * each lane? (In a single lane nothing differs, and a choice is made before its branches.) */
static bool becomes_line(const Masks *m, const Node *n)
{
	Ir *ir = m->t->ir;
	int64_t rest = node_is_const(m->count) ? m->count->u.i % m->width : 0;
	Node *vector = tree_axis(m->t, vectors_of(m));
	Node *first = node_add_scaled(ir, m->loop->lo, vector, m->width);
	for (int last = 0; last <= (rest > 1); last++) {
		Node *lane = tree_axis(m->t, last ? rest : m->width);
		Node *at = node_add(ir, first, lane);
		Node *index = node_replace(ir, n->src[1], 1, &m->loop->axis, &at);
		if (affine_stride(ir, index, lane) != INT64_MIN)
			return true;
	}
	return false;
}

/* Elements that are not in a row are read one by one, in all lanes. */
static bool suits_read(Masks *m, const Node *n, Where where)
{
	int64_t step = affine_stride(m->t->ir, n->src[1], m->loop->axis);
	if (tensor_size(n->src[0]) == 1) /* a variable: it has no place beside it */
		return lanes_own(m->loop, n->src[0]);
	if (lanes_look_up(m->t->ir, n, m->loop)) {
		LaneIndex x = lane_index(m->t->ir, n->src[1], m->loop, true);
		return tensor_size(n->src[0]) <= INT32_MAX &&
		       !lanes_access(n->src[0], m->loop, STMT_STORE) && suits_parts(m, &x, where) &&
		       (where != UNKNOWN || read_inside(n) || stays_inside(m, n) ||
			!becomes_line(m, n));
	}
	m->apart |= where == MASKED && !read_inside(n) && lanes_apart(n->type, m->width, step);
	return step != INT64_MIN && is_apart(m, n) &&
	       (where != UNKNOWN || read_inside(n) || stays_inside(m, n));
}

/* May a value of type `from` become one of type `to` in all lanes at once? */
static bool takes_cast(Type from, Type to)
{
	bool index = from == RICCI_I64 || to == RICCI_I64;
	return from == to || (to != RICCI_BOOL && !index);
}

bool predicates_take(const Node *n)
{
	switch ((Op)n->op) {
	case OP_INPUT:
	case OP_READ:
	case OP_CONST:
	case OP_SELECT:
		return predicates_type(n->type) || is_widened(n->type);
	case OP_ADD:
	case OP_SUB:
	case OP_MUL:
		return predicates_type(n->type);
	case OP_DIV:
	case OP_NEG:
		return type_is_float(n->type) && predicates_type(n->type);
	case OP_CAST:
		return takes_cast(n->src[0]->type, n->type);
	default:
		return predicates_type(n->type) && op_info[n->op].form == FORM_CALL &&
		       !node_draws(n);
	}
}

/* What a choice looks up where its condition doesn't hold. */
static bool suits_otherwise(Masks *m, const Node *n, Where where)
{
	Node *otherwise = node1(m->t->ir, OP_NOT, n->src[0]);
	Where no;
	return suits_condition(m, otherwise, &where, &no) && suits_value(m, n->src[2], where);
}

/* A draw: each lane has the number of its element. */
static bool suits_draw(Masks *m, const Node *n)
{
	Node *key = n->src[0], *element = n->src[1];
	return affine_stride(m->t->ir, element, m->loop->axis) != INT64_MIN &&
	       !node_reads(m->t->ir, element) && is_common(m, key, true);
}

static bool find_suits(Masks *m, Node *n, Where where)
{
	Where yes = where, no;
	bool all = true;
	if (n->type == RICCI_BOOL)
		return suits_comparison(m, n, where);
	if (!predicates_type(n->type) && !is_widened(n->type))
		return false;
	if (!lanes_vary(n, m->loop))
		return is_common(m, n, where != VALID);
	if (n->op == OP_CAST && n->src[0]->type == RICCI_I64)
		return (type_is_float(n->type) || n->type == RICCI_I32) &&
		       suits_index(m, n->src[0], where);
	if (node_draws(n))
		return suits_draw(m, n);
	if (!predicates_take(n))
		return false;
	if (n->op == OP_READ)
		return suits_read(m, n, where);
	if (n->op == OP_SELECT)
		return suits_condition(m, n->src[0], &yes, &no) && suits_value(m, n->src[1], yes) &&
		       (lanes_look_up_any(m->t->ir, n->src[2], m->loop)
				? suits_otherwise(m, n, where)
				: suits_value(m, n->src[2], no));
	for (int k = 0; k < n->nsrc; k++)
		all &= suits_value(m, n->src[k], where);
	return all;
}

static bool suits_value(Masks *m, Node *n, Where where)
{
	return suits_once(m, &m->values[where], n, where, find_suits);
}

static bool is_stored_twice(const Masks *m, const Stmt *s)
{
	for (const Stmt *i = m->loop->body; i; i = i->next)
		if (i != s && i->kind == STMT_STORE && i->buffer == s->buffer)
			return true;
	return false;
}

static bool calls_functions(const Masks *m)
{
	bool any = false;
	for (const Stmt *s = m->loop->body; s; s = s->next)
		any |= s->kind == STMT_STORE && node_any(m->t->ir, s->value, node_is_function);
	return any;
}

static bool suits_store(Masks *m, const Stmt *s)
{
	Type type = (Type)s->buffer->type;
	bool stores = predicates_type(type) || (is_widened(type) && s->red == RED_NONE);
	if (!stores || s->value->type != type || !suits_value(m, s->value, VALID))
		return false;
	if (lanes_own(m->loop, s->buffer))
		return true;
	if (!node_has(s->index, m->loop->axis))
		return s->red != RED_NONE && m->count->hi <= FOLDED_MOST * m->width;
	int64_t step = affine_stride(m->t->ir, s->index, m->loop->axis);
	if (step == 1)
		return true;
	/* Compilers are better at more than two stores that take turns, if no function is called; but of reads that do
	 * so under a condition gcc 12 reads what lies beyond, too. */
	return step != INT64_MIN && s->red == RED_NONE &&
	       (step == 2 || m->apart || !is_stored_twice(m, s) || calls_functions(m));
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

/* Are n lanes, of vectors of `width`, a vector of half the size, a quarter ..? */
static bool is_narrow(int64_t n, int64_t width)
{
	return n < width && (n & (n - 1)) == 0;
}

static bool suits(Masks *m)
{
	const Stmt *l = m->loop;
	if (l->how != HOW_VECTOR || m->count->hi < 1 || !l->body)
		return false;
	m->decides = m->masked = m->apart = false;
	memset(m->values, 0, sizeof m->values);
	memset(m->indices, 0, sizeof m->indices);
	for (const Stmt *s = l->body; s; s = s->next)
		if (s->kind == STMT_ALLOC ? tensor_size(s->buffer) > 1
					  : s->kind != STMT_STORE || !suits_store(m, s))
			return false;
	return true;
}

/* Do lanes differ in values of 64 bits? */
typedef struct Wide {
	const Masks *m;
	bool found;
} Wide;

static void see_wide(void *user, Node *n)
{
	Wide *w = user;
	bool wide = n->type == RICCI_F64 || (n->op == OP_READ && n->type == RICCI_I64);
	w->found = w->found || (wide && lanes_vary(n, w->m->loop));
}

/* Lanes of the widest type's vectors. */
static int64_t lanes_most(const Masks *m, const Target *target)
{
	Wide wide = {.m = m};
	for (const Stmt *s = m->loop->body; s; s = s->next)
		if (s->kind == STMT_STORE) {
			wide.found |= type_size(s->buffer->type) == 8;
			node_walk(m->t->ir, s->value, see_wide, &wide);
		}
	return predicates_width(target, wide.found ? RICCI_F64 : RICCI_F32);
}

/* Finds the vectors' width: part of a vector that is a vector of its own needs no mask. */
static bool finds_width(Masks *m, const Target *target)
{
	bool narrow;
	m->width = lanes_most(m, target);
	narrow = node_is_const(m->count) && m->count->u.i > 1 && is_narrow(m->count->u.i, m->width);
	if (narrow) {
		int64_t whole = m->width;
		m->width = m->count->u.i;
		int64_t bytes = m->width * (int64_t)type_size(RICCI_F32);
		if (suits(m) && (bytes >= MASK_BYTES || (!m->decides && !m->masked)))
			return true;
		m->width = whole;
	}
	return suits(m) && !(node_is_const(m->count) && m->count->u.i == 1);
}

/* One vector from `first` on, of which `n` are iterations. */
static Stmt *vector(const Masks *m, Node *first, Node *n)
{
	Tree *t = m->t;
	Node *axis = m->loop->axis, *lane = tree_axis(t, m->width);
	Node *to = node_add(t->ir, first, lane);
	return stmt_loop(t, HOW_LANES, lane, NULL, n,
			 stmt_replace(t, m->loop->body, 1, &axis, &to));
}

/* The place `at` behind the first iteration. */
static Node *place(const Masks *m, Node *at)
{
	return node_add(m->t->ir, m->loop->lo, at);
}

/* The value in lane number `lane` of vectors from..from+n-1, reduced to one. */
static Node *value_over(const Masks *m, const Stmt *s, Node *lane, int64_t from, int64_t n)
{
	Ir *ir = m->t->ir;
	if (n == 1) {
		Node *to = place(m, node_add(ir, node_int(ir, from * m->width), lane));
		return node_replace(ir, s->value, 1, &m->loop->axis, &to);
	}
	Node *x = value_over(m, s, lane, from, (n + 1) / 2);
	return node_combine(ir, s->red, x, value_over(m, s, lane, from + (n + 1) / 2, n / 2));
}

/* n whole vectors whose lanes meet in one element: they meet in one vector before. */
static Stmt *folded_vectors(const Masks *m, int64_t n)
{
	Tree *t = m->t;
	const Stmt *s = m->loop->body;
	Node *lane = tree_axis(t, m->width);
	Stmt *store = stmt_store(t, s->buffer, s->index, value_over(m, s, lane, 0, n), s->red);
	return stmt_loop(t, HOW_LANES, lane, NULL, node_int(t->ir, m->width), store);
}

/* Vectors first..end-1 of the loop, all of them whole: written out, or in a loop. A few are written
 * out, so that what they keep stays in registers. */
static Stmt *whole_vectors(const Masks *m, Node *first, Node *end)
{
	Ir *ir = m->t->ir;
	Stmt *all = NULL;
	Node *count = node_sub(ir, end, first), *full = node_int(ir, m->width);
	if (node_is_const(count) && count->u.i <= WRITTEN_MOST) {
		for (int64_t k = 0; k < count->u.i; k++) {
			Node *at = node_add(ir, first, node_int(ir, k));
			all = stmt_seq(all,
				       vector(m, place(m, node_scale(ir, at, m->width)), full));
		}
		return all;
	}
	Node *k = tree_axis(m->t, count->hi);
	Node *at = node_scale(ir, node_add(ir, first, k), m->width);
	all = stmt_loop(m->t, HOW_SERIAL, k, NULL, count, vector(m, place(m, at), full));
	all->maybe = count->lo < 1;
	return all;
}

/* Lanes from vector number `at` on. */
static Node *left_from(const Masks *m, Node *at)
{
	return node_sub(m->t->ir, m->count, node_scale(m->t->ir, at, m->width));
}

/* Vector number `at`, from which on so many lanes are left: it may be short, or none. */
static Stmt *last_vector(const Masks *m, Node *at, Node *left)
{
	Ir *ir = m->t->ir;
	Node *full = node_int(ir, m->width);
	at = node_scale(ir, at, m->width);
	Node *n = left->hi <= m->width	 ? left
		  : left->lo >= m->width ? full
					 : node2(ir, OP_MIN, left, full);
	Stmt *s = left->hi > 0 ? vector(m, place(m, at), n) : NULL;
	return s && left->lo < 1 ? stmt_if(m->t, node2(ir, OP_LT, node_int(ir, 0), left), s, NULL)
				 : s;
}

/* Where lanes decide conditions, most hold for all of the vectors between the first and the last.
 * Of few vectors each is written out, whether it is there or not is known when it runs. */
static Stmt *vectors(const Masks *m)
{
	Ir *ir = m->t->ir;
	Node *none = node_int(ir, 0), *one = node_int(ir, 1), *count = m->count;
	Stmt *all = NULL;
	if (!node_is_const(count) && vectors_of(m) <= WRITTEN_MOST) {
		for (int64_t k = 0; k < vectors_of(m); k++) {
			Node *at = node_int(ir, k);
			all = stmt_seq(all, last_vector(m, at, left_from(m, at)));
		}
		return all;
	}
	if (node_is_const(count) && count->u.i > m->width && count->u.i % m->width == 0 &&
	    folds(m->loop) && !m->loop->body->next)
		return folded_vectors(m, count->u.i / m->width);
	if (!m->decides || !node_is_const(count) || count->u.i <= m->width) {
		Node *whole = node_floordiv(ir, count, m->width);
		all = whole_vectors(m, none, whole);
		return stmt_seq(all, last_vector(m, whole, node_floormod(ir, count, m->width)));
	}
	Node *last = node_floordiv(ir, node_sub(ir, count, one), m->width);
	all = last_vector(m, none, count);
	all = stmt_seq(all, whole_vectors(m, one, last));
	return stmt_seq(all, last_vector(m, last, left_from(m, last)));
}

/* A condition that all lanes share; NULL: there is none. */
static Node *shared_condition(const Masks *m)
{
	Ir *ir = m->t->ir;
	for (const Stmt *s = m->loop->body; s; s = s->next) {
		Node **select, **part;
		int n = s->kind == STMT_STORE ? node_collect(ir, s->value, OP_SELECT, &select) : 0;
		for (int k = 0; k < n; k++) {
			int count = node_parts(ir, select[k]->src[0], OP_AND, &part);
			for (int i = 0; i < count; i++)
				if (!node_is_const(part[i]) && is_common(m, part[i], true))
					return part[i];
		}
	}
	return NULL;
}

static Stmt *pieces(Tree *t, const Stmt *loop, Polyhedron *path, const Target *target, int splits);

/* Where the condition holds, or doesn't, everywhere in the loop. */
static Stmt *piece_where(const Masks *m, Node *cond, bool holds, const Target *target, int splits)
{
	Node *to = node_const_int(m->t->ir, RICCI_BOOL, holds);
	Stmt *loop = stmt_loop(m->t, HOW_VECTOR, m->loop->axis, m->loop->lo, m->loop->hi,
			       stmt_replace(m->t, m->loop->body, 1, &cond, &to));
	return pieces(m->t, loop, m->path, target, splits);
}

/* The loop's vectors; NULL: it stays as it is. A condition that all lanes share, where it is in the
 * way, stands around them. */
static Stmt *pieces(Tree *t, const Stmt *loop, Polyhedron *path, const Target *target, int splits)
{
	Masks m = {.t = t, .loop = loop, .path = path};
	m.count = node_sub(t->ir, loop->hi, loop->lo);
	if (finds_width(&m, target))
		return vectors(&m);
	Node *cond = splits && loop->how == HOW_VECTOR ? shared_condition(&m) : NULL;
	Stmt *yes = cond ? piece_where(&m, cond, true, target, splits - 1) : NULL;
	Stmt *no = yes ? piece_where(&m, cond, false, target, splits - 1) : NULL;
	return no ? stmt_if(t, cond, yes, no) : NULL;
}

static Polyhedron *path_with(Ir *ir, Polyhedron *path, Node *cond, bool holds)
{
	Polyhedron *p = poly_copy(path);
	poly_assume(p, holds ? cond : node1(ir, OP_NOT, cond));
	return p;
}

/* s and what follows, where path holds. */
static void lower_statements(Tree *t, Stmt *s, Polyhedron *path, const Target *target)
{
	for (; s; s = s->next) {
		if (s->kind == STMT_IF) {
			lower_statements(t, s->body, path_with(t->ir, path, s->cond, true), target);
			lower_statements(t, s->otherwise, path_with(t->ir, path, s->cond, false),
					 target);
		}
		if (s->kind == STMT_LOOP)
			lower_statements(t, s->body, path, target);
		if (s->kind != STMT_LOOP || s->how != HOW_VECTOR)
			continue;
		Stmt *all = pieces(t, s, path, target, SPLIT_MOST);
		if (all)
			s = stmt_instead(s, all);
		else if (folds(s)) /* compilers must be told of it */
			s->how = HOW_SERIAL;
	}
}

void lower_predicates(Tree *t, Stmt *s, const Target *target)
{
	lower_statements(t, s, poly_new(t->ir), target);
}

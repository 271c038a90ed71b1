/* lanes.c - lanes over tiles: they run in whole vectors, and load what they share once.
 *
 * Input: the loops of a schedule and its cached reads. Output: how many lanes the accumulator's
 * tile has, and the order of the statements written out inside them. Invariant: what lanes behind
 * the last one add goes to a place that nobody reads, and they read tiles, or what is inside of its
 * tensor whatever they make of the conditions. */
#include "jit/nest/internal.h"

enum { VECTOR_BYTES = 32, REGISTERS = 16 };

static const Loop *lanes_loop(const Build *b)
{
	return &b->loop[b->order[b->lanes]];
}

int64_t lanes_extent(const Build *b, const Loop *l)
{
	return b->whole && l == lanes_loop(b) ? b->whole : l->extent;
}

int64_t lanes_pitch(const Build *b, const Loop *l)
{
	int64_t n = lanes_extent(b, l);
	return b->caps->vectors && l->how == HOW_VECTOR ? (n + PITCH - 1) / PITCH * PITCH : n;
}

/* Of few points the other factor stays in registers. */
static bool has_many_points(const Build *b)
{
	int64_t n = 1;
	for (int k = b->lanes + 1; k < b->nloop; k++)
		if (b->loop[b->order[k]].reduced)
			n *= b->loop[b->order[k]].extent;
	return n > REGISTERS;
}

/* Compilers leave the rest of a loop of 28 to vectors of half and a quarter the size and to single
 * elements, which take as long as all before them. */
void lanes_init(Build *b)
{
	if (b->lanes < b->nparallel || b->lanes < b->cache_read_at || b->cache_read_at < 0 ||
	    b->p->red == RED_NONE || b->p->scatter || !b->caps->vectors || b->carry.r.axis >= 0)
		return;
	const Loop *l = lanes_loop(b);
	int64_t unit = VECTOR_BYTES / (int64_t)type_size(b->p->acc);
	if (!l->reduced && (l->extent % unit || has_many_points(b)) && nest_exact(b, l->axis))
		b->whole = (l->extent + unit - 1) / unit * unit;
}

typedef struct Outside {
	const Build *b;
	bool found; /* a read that may lie outside of its tensor in a lane behind the last one */
} Outside;

static void see_outside(void *user, Node *n)
{
	Outside *o = user;
	Node *axis = o->b->p->axis[lanes_loop(o->b)->axis];
	if (n->op == OP_READ)
		o->found |= node_has(n, axis);
	else if ((n->op == OP_SELECT || n->op == OP_AND || n->op == OP_OR) &&
		 node_has(n->src[0], axis))
		for (int k = 1; k < n->nsrc; k++)
			o->found |= !reads_inside(o->b->ir, n->src[k]);
}

bool lanes_fit_tiles(const Build *b)
{
	Outside o = {b, false};
	for (int k = 0; k < b->ncache_read; k++)
		o.found |= b->cache_read[k].transposed != NULL;
	node_walk(b->ir, b->body, see_outside, &o);
	return !o.found;
}

/* ---- order */

typedef struct Tiled {
	const Build *b;
	Node *place; /* of the first read of the first tile; NULL: none */
} Tiled;

static void see_tiled(void *user, Node *n)
{
	Tiled *t = user;
	if (!t->place && n->op == OP_READ && n->src[0] == t->b->cache_read[0].buffer)
		t->place = n->src[1];
}

static Node *tiled_place(const Build *b, const Stmt *s)
{
	Tiled t = {b, NULL};
	if (s->kind == STMT_STORE && s->buffer == b->acc)
		node_walk(b->ir, s->value, see_tiled, &t);
	return t.place;
}

/* How far behind `first` the statement reads; false: nobody knows. */
static bool tiled_distance(const Build *b, const Stmt *s, Node *first, int64_t *distance)
{
	Node *place = tiled_place(b, s);
	Node *d = place ? node_sub(b->ir, place, first) : NULL;
	if (!d || !node_is_const(d))
		return false;
	*distance = d->u.i;
	return true;
}

Stmt *lanes_order(Build *b, Stmt *body)
{
	Stmt *sorted = NULL;
	Node *first = b->ncache_read && b->p->red == RED_ADD ? tiled_place(b, body) : NULL;
	int64_t distance, other;
	if (!first || !has_many_points(b))
		return body;
	for (const Stmt *s = body; s; s = s->next)
		if (!tiled_distance(b, s, first, &distance))
			return body;
	for (Stmt *s = body, *next; s; s = next) {
		Stmt **at = &sorted;
		next = s->next;
		tiled_distance(b, s, first, &distance);
		while (*at && tiled_distance(b, *at, first, &other) && other <= distance)
			at = &(*at)->next;
		s->next = *at;
		*at = s;
	}
	return sorted;
}

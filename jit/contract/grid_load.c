/* grid_load.c - how a block's threads load the operands of a contraction on a grid into its memory.
 *
 * Input: tiles, a block of K. Any expression with any index functions is loaded, zero where padding is or a tile
 * passes an end. Elements of a tensor as they are can be copied asynchronously, in vectors as long as
 * neighbours are together in memory under the same conditions; what is computed goes through registers. Output:
 * statements. Invariant: a vector is at a multiple of its size, in both memories. */
#include "jit/contract/grid.h"

#include <string.h>

/* Lines that K (of k_last the other axis) numbers. */
static int64_t tile_lines(const GridTiles *h, const TileOperand *o)
{
	return o->k_last ? o->extent : h->size[2];
}

int64_t tile_room(const GridTiles *h, const TileOperand *o)
{
	int64_t line = o->k_last ? h->size[2] : o->extent;
	return (h->groups ? line / GROUP_LINE : tile_lines(h, o)) * o->pitch;
}

int group_at(Contract *c, const IndexGroup *g, Node *at, int n, Node **from, Node **to)
{
	memcpy(from + n, g->axis, (size_t)g->naxis * sizeof *from);
	axes_at(c->ir, at, g->naxis, g->axis, to + n);
	return n + g->naxis;
}

/* The operand's elements in the block's memory, over the problem's axes. */
static Node *operand_value(const GridTiles *h, const Operand *f)
{
	Node *v = f->value;
	bool as = h->fragments && !h->fragments->parts; /* see contract_fragments */
	if (as && (v->op == OP_CAST || v->op == OP_TF32))
		v = v->src[0];
	return v->type == h->type ? v : node_cast(h->c->ir, h->type, v);
}

/* e at these elements of the operand's group and K. */
typedef struct Place {
	Node *from[COMP_MAX_AXES], *to[COMP_MAX_AXES];
	int n;
	Node *inside; /* within both groups, and not in padding */
} Place;

static Place place_at(const GridTiles *h, const TileOperand *o, Node *at, Node *k, Node *inside)
{
	Contract *c = h->c;
	Place p = {.n = 0};
	p.n = group_at(c, o->group, at, 0, p.from, p.to);
	p.n = group_at(c, &c->k, k, p.n, p.from, p.to);
	p.n = group_at(c, &c->batch, h->batch, p.n, p.from, p.to);
	p.inside = node2(c->ir, OP_AND, inside, below(c, at, o->group->extent));
	for (int g = 0; g < o->f->nguard; g++)
		p.inside = node2(c->ir, OP_AND, p.inside,
				 node_replace(c->ir, o->f->guard[g], p.n, p.from, p.to));
	return p;
}

static void see_read(void *user, Node *n)
{
	Node **read = user;
	if (n->op == OP_READ && !*read)
		*read = n;
}

/* How far apart the group's neighbours are in what the operand reads first. */
static int64_t step_of(Contract *c, const Operand *f, const IndexGroup *g)
{
	Node *read = contract_read(f);
	if (!read)
		node_walk(c->ir, f->value, see_read, &read);
	return read ? affine_distance(c->ir, read->src[1], g->axis[g->naxis - 1]) : 0;
}

/* How many neighbours along the group are together in memory, from each multiple of them on. */
static int64_t together(const GridTiles *h, const TileOperand *o, const IndexGroup *g, int64_t most)
{
	Contract *c = h->c;
	Node *index = operand_value(h, o->f)->src[1], *zero = contract_int(c, 0);
	int64_t run = contract_run(c, g, index, 1), seen = 1, n = 1;
	for (int k = g->naxis - 1; k >= 0 && seen < run; k--) {
		for (int i = 0; i < o->f->nguard; i++)
			if (node_has(o->f->guard[i], g->axis[k]))
				return 1;
		index = node_replace(c->ir, index, 1, &g->axis[k], &zero);
		seen *= axis_extent(g->axis[k]);
	}
	while (2 * n <= most && run % (2 * n) == 0 && index->mul % (2 * n) == 0)
		n *= 2;
	return n;
}

void operand_plan(GridTiles *h, int d)
{
	enum { COPY_LEAST = 4, COPY_MOST = 16 }; /* bytes */
	Contract *c = h->c;
	TileOperand *o = &h->of[d];
	int64_t element = (int64_t)type_size(h->type);
	o->f = d ? &c->b : &c->a;
	o->group = d ? &c->n : &c->m;
	o->extent = h->size[d];
	o->along_k = step_of(c, o->f, &c->k) < step_of(c, o->f, o->group);
	o->k_last = h->fragments && o->along_k;
	o->pitch = h->groups ? GROUP_LINE * tile_lines(h, o) : o->k_last ? h->size[2] : o->extent;
	/* Neighbours of the slower one are in other banks: of fragments 8 rows of 16 bytes, or 4 of 8 words. */
	int64_t apart = h->fragments && element == 4 && !o->k_last ? 2 : 1;
	if (!h->groups && (o->along_k || h->fragments))
		o->pitch += apart * GRID_ALIGN / element;
	o->vector = 1;
	const Node *v = operand_value(h, o->f);
	if (!h->copies || v->op != OP_READ)
		return;
	int64_t length = o->along_k ? h->size[2] : o->extent;
	if (o->along_k == o->k_last)
		o->vector = together(h, o, o->along_k ? &c->k : o->group, COPY_MOST / element);
	while (o->vector > 1 && (length % o->vector || o->pitch * element % COPY_MOST ||
				 o->extent * h->size[2] % (h->threads * o->vector)))
		o->vector /= 2;
	o->copied = o->vector * element >= COPY_LEAST;
	o->vector = o->copied ? o->vector : 1;
}

/* Element e of line number `line`: its part is at the XOR of both numbers, bit by bit. */
static Node *line_place(Ir *ir, Node *e, Node *line)
{
	Node *at = node_floormod(ir, e, GROUP_PART);
	for (int bit = 1; bit < GROUP_TURN; bit *= 2) {
		Node *one = node_add(ir, node_floordiv(ir, e, GROUP_PART * bit),
				     node_floordiv(ir, line, bit));
		at = node_add(ir, at, node_scale(ir, node_floormod(ir, one, 2), GROUP_PART * bit));
	}
	return at;
}

Node *memory_place(const GridTiles *h, const TileOperand *o, Node *stage, Node *at, Node *k)
{
	Ir *ir = h->c->ir;
	Node *slow = o->k_last ? at : k, *fast = o->k_last ? k : at;
	Node *first = node_scale(ir, stage, tile_room(h, o));
	if (h->groups) {
		first = node_add(ir, first,
				 node_scale(ir, node_floordiv(ir, fast, GROUP_LINE), o->pitch));
		first = node_add(ir, first, node_scale(ir, slow, GROUP_LINE));
		return node_add(ir, first,
				line_place(ir, node_floormod(ir, fast, GROUP_LINE), slow));
	}
	return node_add(ir, node_add(ir, first, node_scale(ir, slow, o->pitch)), fast);
}

/* How many vectors a thread loads; the first element of its number l. */
static int64_t tile_each(const GridTiles *h, const TileOperand *o)
{
	return o->extent * h->size[2] / (h->threads * o->vector);
}

static void tile_vector(const GridTiles *h, const TileOperand *o, int64_t l, Node **at, Node **k)
{
	Ir *ir = h->c->ir;
	Node *e = node_add(ir, h->thread, contract_int(h->c, l * h->threads));
	int64_t row = (o->along_k ? h->size[2] : o->extent) / o->vector;
	Node *slow = node_floordiv(ir, e, row);
	Node *fast = node_scale(ir, node_floormod(ir, e, row), o->vector);
	*at = o->along_k ? slow : fast;
	*k = o->along_k ? fast : slow;
}

static Stmt *tile_load(const GridTiles *h, const TileOperand *o, Node *block, Node *stage)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	Stmt *all = NULL;
	int64_t deep = h->size[2];
	bool even = c->k.extent % deep == 0;
	Node *v = operand_value(h, o->f), *zero = node_identity(ir, RED_ADD, h->type, h->type);
	for (int64_t l = 0; l < tile_each(h, o); l++) {
		Node *at, *k;
		tile_vector(h, o, l, &at, &k);
		Node *to = memory_place(h, o, stage, at, k);
		k = node_add(ir, node_scale(ir, block, deep), k);
		Node *inside = even ? below(c, block, h->count[2]) : below(c, k, c->k.extent);
		Place p = place_at(h, o, node_add(ir, o->origin, at), k, inside);
		if (o->copied) {
			int64_t bytes = o->vector * (int64_t)type_size(h->type);
			CallArg arg[] = {
				{o->memory, to},
				{v->src[0], node_replace(ir, v->src[1], p.n, p.from, p.to)},
				{NULL, contract_int(c, bytes)},
				{NULL, p.inside}};
			all = stmt_seq(all, stmt_call(c->t, "ricci_copy", COUNT(arg), arg));
			continue;
		}
		Node *e = node_select(ir, p.inside, node_replace(ir, v, p.n, p.from, p.to), zero);
		all = stmt_seq(all, stmt_store(c->t, o->held, contract_int(c, l), e, RED_NONE));
	}
	return all;
}

static Stmt *tile_keep(const GridTiles *h, const TileOperand *o, Node *stage)
{
	Contract *c = h->c;
	Stmt *all = NULL;
	for (int64_t l = 0; !o->copied && l < tile_each(h, o); l++) {
		Node *at, *k;
		tile_vector(h, o, l, &at, &k);
		all = stmt_seq(all, stmt_store(c->t, o->memory, memory_place(h, o, stage, at, k),
					       buffer_read(c->t, o->held, contract_int(c, l)),
					       RED_NONE));
	}
	return all;
}

Stmt *tiles_load(const GridTiles *h, Node *block, Node *stage)
{
	Stmt *s = stmt_seq(tile_load(h, &h->of[0], block, stage),
			   tile_load(h, &h->of[1], block, stage));
	if (h->of[0].copied || h->of[1].copied)
		s = stmt_seq(s, stmt_call(h->c->t, "ricci_copies_end", 0, NULL));
	return s;
}

Stmt *tiles_keep(const GridTiles *h, Node *stage)
{
	return stmt_seq(tile_keep(h, &h->of[0], stage), tile_keep(h, &h->of[1], stage));
}

Stmt *tiles_wait(const GridTiles *h, int64_t later)
{
	CallArg arg[] = {{NULL, contract_int(h->c, later)}};
	bool any = h->of[0].copied || h->of[1].copied;
	return any ? stmt_call(h->c->t, "ricci_copies_wait", 1, arg) : NULL;
}

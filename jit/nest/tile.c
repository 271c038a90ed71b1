/* tile.c - the accumulator tile of a direct nest: one dimension for each spatial loop inside its
 * region, and for lanes of a reduced one.
 *
 * Input: the loops of a schedule. Output: places in the tile, loops over it, and the lanes of a
 * reduced loop combined. Invariant: the lanes are the tile's innermost dimension. */
#include "jit/nest/internal.h"

enum { PITCH = 16 }; /* the lanes of a tile's line are a multiple of so many: whole vectors */

/* Places in the order from nouter on, the lanes last: of tiles too they are the innermost. */
static int tile_place(const Build *b, int k)
{
	if (b->lanes < b->nouter || k < b->lanes)
		return k;
	return k == b->nloop - 1 ? b->lanes : k + 1;
}

/* Where the loops begin that may be dimensions of the tile. */
int tile_first(const Build *b)
{
	return b->carry.r.axis >= 0 && !b->carry.single ? b->carry.at : b->nouter;
}

/* The room of the loop's dimension: of several sums in lanes each has whole vectors, for a part of one is
 * slow to store and to load again. */
static int64_t tile_pitch(const Build *b, const Loop *l)
{
	int64_t n = l->extent;
	return b->caps->vectors && l->how == HOW_VECTOR ? (n + PITCH - 1) / PITCH * PITCH : n;
}

/* The place in the accumulator tile of the open tile loops. */
Node *tile_index(Build *b)
{
	Node *index = node_int(b->ir, 0);
	for (int k = tile_first(b); k < b->nloop; k++) {
		Loop *l = &b->loop[b->order[tile_place(b, k)]];
		if (!l->tile)
			continue;
		index = node_scale(b->ir, index, tile_pitch(b, l));
		if (l->val)
			index = node_add(b->ir, index, l->val);
	}
	return index;
}

int64_t tile_size(const Build *b)
{
	int64_t n = 1;
	for (int k = tile_first(b); k < b->nloop; k++)
		if (b->loop[b->order[k]].tile)
			n *= tile_pitch(b, &b->loop[b->order[k]]);
	return n;
}

enum { LANES_LEFT = 2, LANES_LEAST = 4 };

/* ((v_a red v_b) red ...) over the lanes of a vectorised reduced loop, as a tree of halves. */
static Node *tile_sum(Build *b, Node *base, int64_t from, int64_t count)
{
	if (count == 1)
		return buffer_read(b->t, b->acc, node_add(b->ir, base, node_int(b->ir, from)));
	int64_t half = (count + 1) / 2;
	Node *x = tile_sum(b, base, from, half);
	Node *y = tile_sum(b, base, from + half, count - half);
	return node_combine(b->ir, b->p->red, x, y);
}

/* The lanes from base on become the power of two below, again and again, while that takes whole
 * vectors. Returns what does so; *count: how many are left. */
static Stmt *tile_halve(Build *b, Node *base, bool fold, int64_t *count)
{
	Stmt *all = NULL;
	int64_t vector = PITCH * (int64_t)type_size(RICCI_F32) / (int64_t)type_size(b->p->acc);
	int64_t least = fold ? vector : LANES_LEFT, half = least;
	while (2 * half < *count)
		half *= 2;
	for (; *count > least; half /= 2) {
		if (!fold && *count - half < LANES_LEAST && *count != 2 * half)
			break;
		int64_t rest = *count - half;
		bool part = fold && rest < vector; /* of a vector: it is added as a whole one */
		Node *lane = tree_axis(b->t, part ? vector : rest);
		Node *to = node_add(b->ir, base, lane);
		Node *x = buffer_read(b->t, b->acc, node_add(b->ir, to, node_int(b->ir, half)));
		if (part)
			x = node_select(b->ir, node2(b->ir, OP_LT, lane, node_int(b->ir, rest)), x,
					node_identity(b->ir, b->p->red, b->p->type, b->p->acc));
		Stmt *add = stmt_store(b->t, b->acc, to, x, b->p->red);
		all = stmt_seq(all, stmt_loop(b->t, HOW_VECTOR, lane, NULL, NULL, add));
		*count = half;
	}
	return all;
}

const Loop *tile_lanes_loop(const Build *b)
{
	return &b->loop[b->order[tile_place(b, b->nloop - 1)]];
}

/* Are the tile's lanes those of a vectorised reduced loop, to be combined? How many they are. */
static int64_t tile_lanes(const Build *b)
{
	const Loop *last = tile_lanes_loop(b);
	return last->tile && last->reduced ? last->extent : 1;
}

/* One vector's lanes from base on, combined by the processor. */
static Stmt *tile_fold(Build *b, Node *base, int64_t count, Node **sum)
{
	Node *zero = node_int(b->ir, 0), *lane = tree_axis(b->t, count);
	Node *to = tree_buffer(b->t, SPACE_LOCAL, "sum", b->p->acc, 1);
	Node *x = buffer_read(b->t, b->acc, node_add(b->ir, base, lane));
	Node *none = node_identity(b->ir, b->p->red, b->p->type, b->p->acc);
	Stmt *all = stmt_seq(stmt_alloc(b->t, to), stmt_store(b->t, to, zero, none, RED_NONE));
	*sum = buffer_read(b->t, to, zero);
	return stmt_seq(all, stmt_loop(b->t, HOW_VECTOR, lane, NULL, NULL,
				       stmt_store(b->t, to, zero, x, b->p->red)));
}

Stmt *tile_combined(Build *b, Node *base, Node **sum)
{
	int64_t lanes = tile_lanes(b);
	bool fold = b->caps->vectors && predicates_type(b->p->acc);
	Stmt *halve = NULL;
	/* (Behind an iteration of fewer lanes compilers' vectors would wait for single elements.) */
	if (lanes > 1 && b->caps->vectors && (fold || nest_exact(b, tile_lanes_loop(b)->axis)))
		halve = tile_halve(b, base, fold, &lanes);
	if (lanes > 1 && fold)
		return stmt_seq(halve, tile_fold(b, base, lanes, sum));
	*sum = tile_sum(b, base, 0, lanes);
	return halve;
}

/* The loops over the tile's dimensions around leaf: k counts places in the order. */
Stmt *tile_loops(Build *b, int k, bool lanes, LeafFn *leaf)
{
	while (k < b->nloop && (!b->loop[b->order[tile_place(b, k)]].tile ||
				b->loop[b->order[tile_place(b, k)]].val ||
				(!lanes && b->loop[b->order[tile_place(b, k)]].reduced)))
		k++;
	if (k == b->nloop)
		return leaf(b);
	Loop *l = &b->loop[b->order[tile_place(b, k)]];
	Stmt *s;
	if (l->reduced) { /* lanes: all of them, always */
		l->val = l->var;
		s = stmt_loop(b->t, l->how, l->var, NULL, node_int(b->ir, l->extent), NULL);
	} else {
		s = nest_open(b, l);
	}
	s->body = tile_loops(b, k + 1, lanes, leaf);
	l->val = NULL;
	return s;
}

void tile_find(Build *b)
{
	bool along = b->carry.r.axis >= 0 && !b->carry.single;
	for (int k = tile_first(b); k < b->nloop; k++) {
		Loop *l = &b->loop[b->order[k]];
		if (along && l->axis == b->carry.r.axis)
			continue;
		/* Functions over chunks add up by themselves. */
		l->tile = !l->reduced || (l->how == HOW_VECTOR && !b->caps->chunk);
	}
}

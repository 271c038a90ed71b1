/* transposed.c - transposed reads: what lanes read across the lines of a tensor is copied to a
 * local tile first, transposed in registers, so that lanes are contiguous.
 *
 * Input: the loops of a schedule and the place of its cache-read step. Output: the tile, its place for
 * the open loops, and the call that fills it. What is transposed is an unconditional read of 4 or 8
 * bytes whose index moves by one along one loop behind that place, by more along the lanes, and
 * along no other loop there. Invariant: the call reads the elements that the loops would read. */
#include "jit/nest/internal.h"

enum { TILE_BYTES = 1 << 16 };

bool transposed_init(Build *b, CacheRead *s, Node *read)
{
	int64_t size = (int64_t)type_size(read->type);
	Node *index = read->src[1];
	*s = (CacheRead){.transposed = read, .along = -1};
	if ((size != 4 && size != 8) || !read_inside(read))
		return false;
	for (int k = b->cache_read_at; k < b->nloop; k++) {
		const Loop *l = &b->loop[b->order[k]];
		int64_t step = affine_stride(b->ir, index, b->p->axis[l->axis]);
		if (step == INT64_MIN)
			return false;
		step *= l->stride;
		if (k == b->lanes)
			s->step = step;
		else if (step == 1 && s->along < 0)
			s->along = b->order[k];
		else if (step)
			return false;
	}
	if (s->along < 0 || s->step < ACROSS_LEAST)
		return false;
	s->len = b->loop[b->order[b->lanes]].extent;
	size *= s->len * b->loop[s->along].extent;
	if (size > TILE_BYTES)
		return false;
	size /= (int64_t)type_size(read->type);
	s->buffer = tree_buffer(b->t, SPACE_LOCAL, "tile", (Type)read->type, size);
	s->place = tree_axis(b->t, size);
	return true;
}

/* tile[r*len + c] = a[c*step + r] from here on */
Stmt *transposed_fill(Build *b, const CacheRead *s)
{
	const Loop *lanes = &b->loop[b->order[b->lanes]], *along = &b->loop[s->along];
	CallArg to = {s->buffer, node_int(b->ir, 0)};
	CallArg from = {s->transposed->src[0], nest_point(b, s->transposed->src[1])};
	return stmt_transpose(b->t, to, s->len, from, s->step, nest_hi(b, along),
			      nest_hi(b, lanes));
}

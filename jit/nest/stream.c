/* stream.c - results written past the caches: lanes are computed into a line of a local
 * buffer, which goes to where it belongs as a whole.
 *
 * Input: a direct nest whose schedule streams. Output: the lines, and the calls that move them.
 * Invariant: a line is computed before any of it is written, so a result may still take the place
 * of an input. */
#include "jit/nest/internal.h"

enum { LINE_BYTES = 1 << 14 };

/* Which results are streamed: the lanes of each of their lines are contiguous, and nothing is added to what is there. */
void stream_find(Build *b)
{
	Problem *p = b->p;
	if (p->red != RED_NONE || p->scatter || b->lanes < 0 || b->lanes != b->nloop - 1 ||
	    b->lanes < b->nparallel || b->caps->grid)
		return;
	const Loop *l = &b->loop[b->order[b->lanes]];
	for (int k = 0; k < p->nout; k++) {
		Type t = (Type)p->out[k]->type;
		int64_t size = (int64_t)type_size(t);
		if (p->out_red[k] == RED_NONE && (int64_t)tensor_bytes(p->out[k]) >= b->stream &&
		    l->stride == 1 && size >= 4 && size * l->extent <= LINE_BYTES &&
		    affine_stride(b->ir, p->out_index[k], p->axis[l->axis]) == 1)
			b->line[k] = tree_buffer(b->t, SPACE_LOCAL, "line", t, l->extent);
	}
}

/* The lines that `lanes` computes go where they belong. */
Stmt *stream_lines(Build *b, Stmt *lanes)
{
	Problem *p = b->p;
	Node *n = nest_hi(b, &b->loop[b->order[b->lanes]]);
	Stmt *move = NULL;
	for (int k = 0; k < p->nout; k++)
		if (b->line[k])
			move = stmt_seq(move,
					stmt_stream(b->t, p->out[k], nest_point(b, p->out_index[k]),
						    b->line[k], n));
	return stmt_seq(lanes, move);
}

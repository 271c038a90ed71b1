/* grid.c - a direct nest on a grid of blocks and threads.
 *
 * Input: the loops of a schedule. The parallel ones are numbered through, the last fastest, and each of
 * these parts has a thread of its own, or as many as the THREAD loops have iterations together: these are
 * reduced, and the threads of a part add up in the memory of their block what each has. Output: the body
 * of a thread, which knows its block and its number in it. Invariant: all threads of a block come to each
 * barrier, and the order of a sum depends on the schedule only. */
#include "jit/nest/internal.h"

/* ---- replaying ---- */

/* The THREAD loops follow the parts. */
static int threads_order(Build *b, Error *err)
{
	b->together = 1;
	for (int k = 0; k < b->nloop; k++) {
		Loop *l = &b->loop[b->order[k]];
		if (l->how != HOW_THREAD)
			continue;
		if (!l->reduced || k < b->nparallel)
			return schedule_misfit(
				err, "only reduced loops run along the threads of a block, "
				     "and behind the parallel ones");
		b->together *= l->extent <= GRID_THREADS_MOST ? l->extent : GRID_THREADS_MOST + 1;
		if (b->together > b->threads)
			return schedule_misfit(err,
					       "a block has too few threads for its thread loops");
		int id = b->order[k];
		for (int j = k; j > b->nparallel + b->nthread; j--)
			b->order[j] = b->order[j - 1];
		b->order[b->nparallel + b->nthread++] = id;
	}
	return 0;
}

int grid_replay(Build *b, Error *err)
{
	const Problem *p = b->p;
	if (b->threads < 1)
		return schedule_misfit(err, "a nest on a grid needs the step threads");
	for (int k = 0; k < b->nloop; k++)
		if (b->loop[k].how == HOW_VECTOR)
			b->loop[k].how = HOW_SERIAL;
	int bytes = (int)type_size(p->acc);
	if (b->atomic && (!p->scatter || p->rows || bytes < 4 || bytes > b->caps->atomics))
		return schedule_misfit(err, "nothing is combined by atomic instructions here");
	if (threads_order(b, err))
		return err->code;
	if (!b->nthread)
		return 0;
	if (b->parts_each > 1)
		return schedule_misfit(err, "a thread that shares a sum has one part");
	if (p->scatter || p->red == RED_NONE)
		return schedule_misfit(err, "there is no reduction for the threads of a block");
	for (int k = b->nparallel; k < b->nloop; k++)
		if (!b->loop[b->order[k]].reduced)
			return schedule_misfit(
				err, "where threads add up, all other loops of the results "
				     "are parallel");
	return 0;
}

/* ---- blocks and threads ---- */

static Node *both(Ir *ir, Node *a, Node *b)
{
	return a ? node2(ir, OP_AND, a, b) : b;
}

/* Is there anything left of the axis behind the open loops? */
static Node *guard_axis(Build *b, const Loop *l, Node *cond)
{
	if (l->stride != 1 || nest_exact(b, l->axis))
		return cond;
	return both(b->ir, cond, node2(b->ir, OP_LT, node_int(b->ir, 0), nest_rest(b, l->axis)));
}

void grid_open(Build *b, Node *thread)
{
	Ir *ir = b->ir;
	int64_t parts = nest_parts(b);
	b->grid = grid_threads(ir, thread, b->together, b->apart);
	int64_t own = b->grid.own, all = own * b->parts_each;
	b->outer = tree_axis(b->t, (parts + all - 1) / all * b->parts_each);
	Node *part = node_add(ir, node_scale(ir, b->outer, own), b->grid.part);
	b->inside = both(ir, b->grid.busy, node2(ir, OP_LT, part, node_int(ir, parts)));
	nest_open_at(b, 0, b->nparallel, part);
	for (int k = 0; k < b->nparallel; k++)
		b->inside = guard_axis(b, &b->loop[b->order[k]], b->inside);
	nest_open_at(b, b->nparallel, b->nthread, b->grid.of);
}

Stmt *grid_repeat(Build *b, Stmt *body, Node **block)
{
	int64_t each = b->parts_each;
	Node *j = tree_axis(b->t, each);
	*block = tree_axis(b->t, axis_extent(b->outer) / each);
	Node *at = node_add(b->ir, node_scale(b->ir, *block, each), j);
	body = stmt_replace(b->t, body, 1, &b->outer, &at);
	return stmt_loop(b->t, HOW_UNROLL, j, NULL, NULL, body);
}

Stmt *grid_combine(Build *b, Stmt *reduce)
{
	Node *zero = node_int(b->ir, 0), *mine = b->inside,
	     *value = buffer_read(b->t, b->acc, zero);
	for (int k = b->nparallel; k < b->nparallel + b->nthread; k++)
		mine = guard_axis(b, &b->loop[b->order[k]], mine);
	Stmt *s = stmt_if(b->t, mine, reduce, NULL);
	s = stmt_seq(s, block_combine(b->t, &b->grid, b->p->red, &value));
	return stmt_seq(s, stmt_store(b->t, b->acc, zero, value, RED_NONE));
}

Node *grid_first(Build *b)
{
	return both(b->ir, b->inside, node2(b->ir, OP_EQ, b->grid.of, node_int(b->ir, 0)));
}

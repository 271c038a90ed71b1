/* grid.c - a direct nest on a grid of blocks and threads.
 *
 * Input: the loops of a schedule. The parallel ones are numbered through, the last fastest, and each of
 * these parts has a thread of its own, or as many as the THREAD loops have iterations together: these are
 * reduced, and the threads of a part add up in the memory of their block what each has. Output: the body
 * of a thread, which knows its block and its number in it. Where the loops behind the place of a cache-read
 * step are a block's parts, what these read across the lines of a tensor goes through the block's memory: loads
 * and stores are contiguous, in two orders of the parts. Invariant: all threads of a block come to each barrier,
 * and the order of a sum depends on the schedule only. */
#include "jit/nest/internal.h"

#include <string.h>

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

/* Cached reads are those of a block's parts. */
static int cache_check(const Build *b, Error *err)
{
	const Problem *p = b->p;
	int64_t parts = 1, all = b->threads * b->parts_each;
	for (int k = b->cache_read_at; k < b->nloop && parts <= all; k++)
		parts *= b->loop[b->order[k]].extent;
	if (parts == all && b->nparallel == b->nloop && p->red == RED_NONE && !p->rows)
		return 0;
	return schedule_misfit(err,
			       "on a grid reads are cached of the parallel loops that are the "
			       "%lld parts of a block together, where nothing is reduced",
			       (long long)all);
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
	if (threads_order(b, err) || (b->cache_read_at >= 0 && cache_check(b, err)))
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

/* Is there anything left of the axis behind the open loops? */
static Node *guard_axis(Build *b, const Loop *l, Node *cond)
{
	if (l->stride != 1 || nest_exact(b, l->axis))
		return cond;
	return node_and(b->ir, cond,
			node2(b->ir, OP_LT, node_int(b->ir, 0), nest_rest(b, l->axis)));
}

void grid_open(Build *b, Node *thread)
{
	Ir *ir = b->ir;
	int64_t parts = nest_parts(b);
	b->grid = grid_threads(ir, thread, b->together, b->apart);
	int64_t own = b->grid.own, all = own * b->parts_each;
	b->block = tree_axis(b->t, (parts + all - 1) / all);
	b->repeat = b->parts_each > 1 ? tree_axis(b->t, b->parts_each) : node_int(ir, 0);
	Node *outer = node_add(ir, node_scale(ir, b->block, b->parts_each), b->repeat);
	Node *part = node_add(ir, node_scale(ir, outer, own), b->grid.part);
	b->inside = node_and(ir, b->grid.busy, node2(ir, OP_LT, part, node_int(ir, parts)));
	if (b->cache_read_at >= 0) { /* loops of blocks, and of what is within one */
		nest_open_at(b, 0, b->cache_read_at, b->block);
		nest_open_at(b, b->cache_read_at, b->nparallel - b->cache_read_at,
			     node_floormod(ir, part, all));
	} else {
		nest_open_at(b, 0, b->nparallel, part);
	}
	for (int k = 0; k < b->nparallel; k++)
		b->inside = guard_axis(b, &b->loop[b->order[k]], b->inside);
	nest_open_at(b, b->nparallel, b->nthread, b->grid.of);
}

Stmt *grid_repeat(Build *b, Stmt *body)
{
	return b->parts_each > 1 ? stmt_loop(b->t, HOW_UNROLL, b->repeat, NULL, NULL, body) : body;
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
	return node_and(b->ir, b->inside, node2(b->ir, OP_EQ, b->grid.of, node_int(b->ir, 0)));
}

/* ---- cached reads ---- */

/* How far apart in memory neighbours of loop number k of the order read. */
static int64_t read_step(Build *b, const Node *read, int k)
{
	const Loop *l = &b->loop[b->order[k]];
	int64_t step = affine_stride(b->ir, read->src[1], b->p->axis[l->axis]);
	return step == INT64_MIN ? step : step * l->stride;
}

bool grid_read_init(Build *b, CacheRead *s, Node *read)
{
	int64_t size = b->threads * b->parts_each, room = GRID_BLOCK_BYTES;
	bool line = false;
	*s = (CacheRead){.transposed = read};
	for (int k = b->cache_read_at; k < b->nloop; k++) {
		int64_t step = read_step(b, read, k);
		bool lanes = k == b->nloop - 1;
		if (step < 0 || (lanes && step < ACROSS_LEAST))
			return false;
		line |= step == 1;
	}
	size += (size - 1) / BANKS;
	for (int k = 0; k < b->ncache_read; k++)
		room -= tensor_bytes(b->cache_read[k].buffer);
	if (!line || !read_inside(read) || size * (int64_t)type_size((Type)read->type) > room)
		return false;
	s->buffer = tree_buffer(b->t, SPACE_BLOCK, "tile", (Type)read->type, size);
	s->place = tree_axis(b->t, size);
	return true;
}

/* Does loop j of the order read nearer neighbours than loop k? */
static bool is_nearer(Build *b, const Node *read, int j, int k)
{
	int64_t near = read_step(b, read, j), far = read_step(b, read, k);
	return near && (near < far || !far);
}

/* Opens the block's parts so that neighbouring threads load neighbours. */
static void open_in_lines(Build *b, const Node *read, Node *at)
{
	int order[MAX_LOOPS], first = b->cache_read_at;
	memcpy(order, b->order, sizeof order);
	for (int k = first + 1; k < b->nloop; k++)
		for (int j = k; j > first && is_nearer(b, read, j - 1, j); j--) {
			int id = b->order[j];
			b->order[j] = b->order[j - 1];
			b->order[j - 1] = id;
		}
	nest_open_at(b, first, b->nloop - first, at);
	memcpy(b->order, order, sizeof order);
}

Stmt *grid_read_fill(Build *b)
{
	Stmt *all = NULL;
	for (int k = 0; k < b->ncache_read; k++) {
		const CacheRead *s = &b->cache_read[k];
		Node *j = tree_axis(b->t, b->parts_each), *inside = NULL;
		open_in_lines(b, s->transposed,
			      node_add(b->ir, node_scale(b->ir, j, b->threads), b->grid.thread));
		for (int i = 0; i < b->nloop; i++)
			inside = guard_axis(b, &b->loop[b->order[i]], inside);
		Stmt *load = stmt_store(b->t, s->buffer, nest_part_place(b),
					nest_point(b, s->transposed), RED_NONE);
		if (inside)
			load = stmt_if(b->t, inside, load, NULL);
		all = stmt_seq(all, stmt_loop(b->t, HOW_UNROLL, j, NULL, NULL, load));
	}
	return all ? stmt_seq(all, stmt_sync(b->t)) : NULL;
}

/* grid.c - a direct nest on a grid of blocks and threads.
 *
 * Input: the loops of a schedule. The parallel ones are numbered through, the last fastest, and each of
 * these parts has a thread of its own, or as many as the THREAD loops have iterations together: these are
 * reduced, and the threads of a part add up in the memory of their block what each has. Output: the body
 * of a thread, which knows its block and its number in it. Invariant: all threads of a block come to each
 * barrier, and the order of a sum depends on the schedule only. */
#include "jit/nest/internal.h"

/* ---- replaying ---- */

static int refuse(Error *err, const char *why)
{
	return error_set(err, RICCI_EINVAL, "schedule: %s", why);
}

/* The THREAD loops follow the parts. */
static int threads_order(Build *b, Error *err)
{
	b->together = 1;
	for (int k = 0; k < b->nloop; k++) {
		Loop *l = &b->loop[b->order[k]];
		if (l->how != HOW_THREAD)
			continue;
		if (!l->reduced || k < b->nparallel)
			return refuse(err, "only reduced loops run along the threads of a block, "
					   "and behind the parallel ones");
		b->together *= l->extent <= GRID_THREADS_MOST ? l->extent : GRID_THREADS_MOST + 1;
		if (b->together > b->threads)
			return refuse(err, "a block has too few threads for its thread loops");
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
		return refuse(err, "a nest on a grid needs the step threads");
	for (int k = 0; k < b->nloop; k++)
		if (b->loop[k].how == HOW_VECTOR)
			b->loop[k].how = HOW_SERIAL;
	if (threads_order(b, err))
		return err->code;
	if (!b->nthread)
		return 0;
	if (b->parts_each > 1)
		return refuse(err, "a thread that shares a sum has one part");
	if (p->scatter || p->red == RED_NONE)
		return refuse(err, "there is no reduction for the threads of a block");
	for (int k = b->nparallel; k < b->nloop; k++)
		if (!b->loop[b->order[k]].reduced)
			return refuse(err, "where threads add up, all other loops of the results "
					   "are parallel");
	return 0;
}

/* ---- blocks and threads ---- */

/* How the threads of a block are numbered: `own` parts of `together` threads each. */
GridThreads grid_threads(Ir *ir, Node *thread, int64_t together, bool apart)
{
	int64_t all = axis_extent(thread);
	GridThreads g = {.thread = thread, .own = all / together, .together = together};
	g.step = apart ? g.own : 1;
	Node *part = apart ? thread : node_floordiv(ir, thread, together);
	Node *of = apart ? node_floordiv(ir, thread, g.own) : thread;
	g.part = node_floormod(ir, part, g.own);
	g.of = node_floormod(ir, of, together);
	g.busy = node2(ir, OP_LT, thread, node_int(ir, g.own * together));
	return g;
}

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

/* The threads of a part put what they have into the block's memory, and the first of them combines it, by
 * halves: behind the statements *value is the whole for it. */
Stmt *block_combine(Tree *t, const GridThreads *g, Reduce red, Node **value)
{
	Ir *ir = t->ir;
	Node *all =
		tree_buffer(t, SPACE_BLOCK, "red", (Type)(*value)->type, axis_extent(g->thread));
	Stmt *s = stmt_seq(stmt_alloc(t, all), stmt_sync(t));
	int64_t half = 1;
	stmt_seq(s, stmt_store(t, all, g->thread, *value, RED_NONE));
	while (2 * half < g->together)
		half *= 2;
	for (; half && g->together > 1; half /= 2) {
		int64_t has = g->together - half < half ? g->together - half : half;
		Node *cond = node2(ir, OP_LT, g->of, node_int(ir, has));
		Node *other = node_add(ir, g->thread, node_int(ir, half * g->step));
		Stmt *add = stmt_store(t, all, g->thread, buffer_read(t, all, other), red);
		stmt_seq(s, stmt_sync(t));
		stmt_seq(s, stmt_if(t, both(ir, g->busy, cond), add, NULL));
	}
	*value = buffer_read(t, all, g->thread);
	return s;
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

/* ---- sums of blocks ---- */

/* As many threads add up one element as there are blocks for, and threads the device wants. */
static int64_t adders(int64_t nblock, int64_t size, int64_t threads)
{
	enum { WANTED = 1 << 15, EACH = 4 };
	int64_t n = 1;
	while (2 * n <= threads && 2 * n * EACH <= nblock && n * size < WANTED)
		n *= 2;
	return n;
}

void grid_sums(Tree *t, Node *sums, Reduce red, int64_t nblock, int64_t size, GridStore *store,
	       void *user)
{
	Ir *ir = t->ir;
	Node *thread = tree_axis(t, t->shape.threads), *zero = node_int(ir, 0);
	GridThreads g = grid_threads(ir, thread, adders(nblock, size, t->shape.threads), true);
	Node *block = tree_axis(t, (size + g.own - 1) / g.own);
	Node *at = node_add(ir, node_scale(ir, block, g.own), g.part);
	Node *inside = both(ir, g.busy, node2(ir, OP_LT, at, node_int(ir, size)));
	Node *place = node2(ir, OP_MIN, at, node_int(ir, size - 1));
	Node *sum = tree_buffer(t, SPACE_LOCAL, "sum", (Type)sums->type, 1);
	Node *k = tree_axis(t, (nblock + g.together - 1) / g.together);
	Node *which = node_add(ir, node_scale(ir, k, g.together), g.of);
	Node *from = node_add(ir, node_scale(ir, which, size), place);
	Node *left = node_sub(ir, node_int(ir, nblock + g.together - 1), g.of);
	Stmt *add = stmt_loop(t, HOW_SERIAL, k, NULL, node_floordiv(ir, left, g.together),
			      stmt_store(t, sum, zero, buffer_read(t, sums, from), red));
	Node *value = buffer_read(t, sum, zero);
	add->maybe = true;
	Stmt *s = stmt_seq(stmt_alloc(t, sum),
			   stmt_store(t, sum, zero,
				      node_identity(ir, red, (Type)sums->type, (Type)sums->type),
				      RED_NONE));
	s = stmt_seq(s, add);
	if (g.together > 1)
		s = stmt_seq(s, block_combine(t, &g, red, &value));
	Node *first = both(ir, inside, node2(ir, OP_EQ, g.of, zero));
	s = stmt_seq(s, stmt_if(t, first, store(user, place, value), NULL));
	phase_grid(t, block, thread, s);
}

/* grid.c - the threads of a block of a grid that share parts.
 *
 * Input: a thread's number, how many threads have a part together. Output: its part and its number among them;
 * statements that combine what each of them has. Invariant: the order of a combination depends on the numbers
 * only. */
#include "jit/tree/grid.h"

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
		stmt_seq(s, stmt_if(t, node2(ir, OP_AND, g->busy, cond), add, NULL));
	}
	*value = buffer_read(t, all, g->thread);
	return s;
}

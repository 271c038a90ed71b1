/* sums.c - sums in blocks: each block was summed apart, and a section adds the blocks up.
 *
 * Input: nblock blocks of so many sums in shared memory. Output: a section that combines them in their
 * order, and stores what is made of each sum: on a processor piece by piece, in lanes; on a grid a thread for each,
 * or some that share it. Invariant: the order depends on sizes only, never on how many threads there are. */
#include "jit/tree/grid.h"

enum { PIECE = 512 };

/* sums[from..from+n-1] red= those of the blocks behind the first; NULL: there is one block. */
static Stmt *blocks_add(Tree *t, Node *sums, Reduce red, int64_t nblock, int64_t size, Node *from,
			Node *n)
{
	Ir *ir = t->ir;
	Node *block = tree_axis(t, nblock), *j = tree_axis(t, n->hi);
	Node *to = node_add(ir, from, j);
	Node *at = node_add(ir, node_scale(ir, block, size), to);
	Stmt *add = stmt_loop(t, HOW_VECTOR, j, NULL, n,
			      stmt_store(t, sums, to, buffer_read(t, sums, at), red));
	return nblock > 1 ? stmt_loop(t, HOW_SERIAL, block, node_int(ir, 1), NULL, add) : NULL;
}

static void sums_pieces(Tree *t, Node *sums, Reduce red, int64_t nblock, int64_t size,
			SumStore *store, void *user)
{
	Ir *ir = t->ir;
	int64_t most = size < PIECE ? size : PIECE;
	Node *piece = tree_axis(t, (size + PIECE - 1) / PIECE), *j = tree_axis(t, most);
	Node *from = node_scale(ir, piece, PIECE), *n = node_int(ir, most);
	if (size % most)
		n = node2(ir, OP_MIN, n, node_sub(ir, node_int(ir, size), from));
	Node *at = node_add(ir, from, j);
	Stmt *add = blocks_add(t, sums, red, nblock, size, from, n);
	Stmt *s = store(user, at, buffer_read(t, sums, at));
	phase_section(t, piece, stmt_seq(add, stmt_loop(t, HOW_VECTOR, j, NULL, n, s)));
}

/* As many threads add up one element as there are blocks for, and threads the device wants. */
static int64_t adders(int64_t nblock, int64_t size, int64_t threads)
{
	enum { WANTED = 1 << 15, EACH = 4 };
	int64_t n = 1;
	while (2 * n <= threads && 2 * n * EACH <= nblock && n * size < WANTED)
		n *= 2;
	return n;
}

static void sums_grid(Tree *t, Node *sums, Reduce red, int64_t nblock, int64_t size,
		      SumStore *store, void *user)
{
	Ir *ir = t->ir;
	Node *thread = tree_axis(t, t->shape.threads), *zero = node_int(ir, 0);
	GridThreads g = grid_threads(ir, thread, adders(nblock, size, t->shape.threads), true);
	Node *block = tree_axis(t, (size + g.own - 1) / g.own);
	Node *at = node_add(ir, node_scale(ir, block, g.own), g.part);
	Node *inside = node2(ir, OP_AND, g.busy, node2(ir, OP_LT, at, node_int(ir, size)));
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
	Node *first = node2(ir, OP_AND, inside, node2(ir, OP_EQ, g.of, zero));
	s = stmt_seq(s, stmt_if(t, first, store(user, place, value), NULL));
	phase_grid(t, block, thread, s);
}

void sums_section(Tree *t, Node *sums, Reduce red, int64_t nblock, int64_t size, SumStore *store,
		  void *user)
{
	(t->shape.threads ? sums_grid : sums_pieces)(t, sums, red, nblock, size, store, user);
}

/* prefetch.c - while a row is computed, the memory of the next one is prefetched: by itself the
 * processor does so within a page only, and the first loop over a row would wait for all of it
 * while the costly ones leave memory idle.
 *
 * Input: the statements of one row. Output: the same, its costly loops in blocks that prefetch a part each: memory is
 * as slow as all of them together, and would wait for the last one. Invariant: no value changes. */
#include "jit/rows/internal.h"

/* Lines of a tensor that a block prefetches: at most so many, and one for so many blocks at most. */
enum {
	BLOCK_LANES = 32,
	BLOCKS_LEAST = 4,
	LINE = 64,
	LINES_MOST = 8,
	NEST_MOST = 3,
	PASSES_MOST = 8
};
/* Of the costliest loop's cost another one that prefetches has so much. */
static const double COSTLY = 0.02;

/* The number of the reader's row. */
static Node *row_number(Ir *ir, const Subgraph *sub, int reader)
{
	Node *row = node_int(ir, 0);
	for (int i = 0; i < sub->rows; i++) {
		Node *axis = rows_axis(sub, reader, i);
		row = node_add(ir, node_scale(ir, row, axis_extent(axis)), axis);
	}
	return row;
}

/* The dimension behind those of what is read that, from d on, together count the reader's rows; -1: none. */
static int rows_end(Ir *ir, const Node *read, int d, Node *row, int64_t rows)
{
	const Node *tensor = read->src[0];
	Node *number = node_int(ir, 0);
	int64_t extent = 1;
	while (d < tensor_rank(tensor) && extent < rows) {
		number = node_add(ir, node_scale(ir, number, tensor_extent(tensor, d)),
				  read->src[1 + d]);
		extent *= tensor_extent(tensor, d++);
	}
	return extent == rows && number == row ? d : -1;
}

/* The dimension behind those of tensor k that are the rows, where every row has a part in memory of its own; else
 * -1. */
static int rows_of_tensor(Ir *ir, const RowKernel *b, int k)
{
	const Subgraph *sub = b->sub;
	int m = k - sub->ninput;
	if (m >= 0)
		return b->r.local[k] || sub->fold[m] ? -1 : sub->lead[m] + sub->rows;
	for (int reader = 0; reader < sub->nmember; reader++) {
		Node **read, *row = row_number(ir, sub, reader);
		int n = node_collect(ir, comp_body(sub->member[reader]), OP_READ, &read);
		for (int i = 0; i < n; i++)
			for (int d = 0; read[i]->src[0] == b->r.tensor[k] && d + 1 < read[i]->nsrc;
			     d++) {
				int end = rows_end(ir, read[i], d, row, b->rows);
				if (end >= 0)
					return end;
			}
	}
	return -1;
}

static double cost_of(Ir *ir, const Stmt *s)
{
	double cost = 0;
	for (; s; s = s->next) {
		if (s->kind == STMT_STORE)
			cost += 1 + expr_flops(ir, s->value);
		else if (s->kind == STMT_LOOP)
			cost += (double)axis_extent(s->axis) * cost_of(ir, s->body);
		else if (s->kind == STMT_IF)
			cost += cost_of(ir, s->body) + cost_of(ir, s->otherwise);
	}
	return cost;
}

/* What a loop that could prefetch costs; 0: it is none such. */
static double loop_cost(Ir *ir, const Stmt *s)
{
	bool fits = s->kind == STMT_LOOP && node_is_const(s->lo) && s->lo->u.i == 0 &&
		    node_is_const(s->hi);
	return fits ? (double)s->hi->u.i * cost_of(ir, s->body) : 0;
}

static Stmt *costliest(Ir *ir, Stmt *s)
{
	Stmt *best = NULL;
	double most = 0;
	for (; s; s = s->next)
		if (loop_cost(ir, s) > most) {
			most = loop_cost(ir, s);
			best = s;
		}
	return best;
}

/* A vector loop becomes a loop over blocks of lanes, and one over the lanes that are left. */
static void block_lanes(Tree *t, Stmt *loop)
{
	Ir *ir = t->ir;
	int64_t n = loop->hi->u.i / BLOCK_LANES, whole = n * BLOCK_LANES;
	Node *block = tree_axis(t, n), *lane = tree_axis(t, BLOCK_LANES), *axis = loop->axis;
	Node *at = node_add(ir, node_scale(ir, block, BLOCK_LANES), lane);
	Stmt *lanes = stmt_loop(t, HOW_VECTOR, lane, NULL, NULL,
				stmt_replace(t, loop->body, 1, &axis, &at));
	Stmt *next = loop->next;
	if (whole < loop->hi->u.i)
		next = stmt_seq(stmt_loop(t, HOW_VECTOR, loop->axis, node_int(ir, whole), loop->hi,
					  loop->body),
				next);
	*loop = *stmt_loop(t, HOW_SERIAL, block, NULL, NULL, lanes);
	loop->next = next;
}

/* The loops that prefetch, one in the other; how many iterations they have together, those of a
 * vector's loop in blocks. */
typedef struct Nest {
	int n;
	Stmt *loop[NEST_MOST];
	int64_t blocks;
} Nest;

static int64_t loop_blocks(const Stmt *loop)
{
	return loop->hi->u.i / (loop->how == HOW_VECTOR ? BLOCK_LANES : 1);
}

/* A loop and the costliest ones inside, as many as it takes for `bytes` to be few lines in each iteration. */
static Nest nest_find(Ir *ir, Stmt *loop, int64_t bytes)
{
	Nest nest = {.blocks = 1};
	while (nest.n < NEST_MOST && nest.blocks * LINES_MOST * LINE < bytes) {
		if (!loop || (loop->how != HOW_VECTOR && loop->how != HOW_SERIAL) ||
		    loop_blocks(loop) < BLOCKS_LEAST)
			break;
		nest.loop[nest.n++] = loop;
		nest.blocks *= loop_blocks(loop);
		if (loop->how == HOW_VECTOR)
			break;
		loop = costliest(ir, loop->body);
	}
	return nest;
}

/* The costly loops of a row, which share `bytes`. */
static int passes_find(Ir *ir, Stmt *body, int64_t bytes, Nest *pass)
{
	Stmt *best = costliest(ir, body), *loop[PASSES_MOST];
	double least = best ? COSTLY * loop_cost(ir, best) : 0;
	int n = 0, kept = 0;
	for (Stmt *s = best ? body : NULL; s; s = s->next)
		if (n < PASSES_MOST && loop_cost(ir, s) >= least)
			loop[n++] = s;
	for (int k = 0; k < n; k++) {
		pass[kept] = nest_find(ir, loop[k], bytes / n);
		kept += pass[kept].n > 0;
	}
	return kept;
}

/* The number of the iteration; a vector's loop becomes blocks. */
static Node *nest_block(Tree *t, const Nest *nest)
{
	Node *block = node_int(t->ir, 0);
	for (int k = 0; k < nest->n; k++) {
		int64_t blocks = loop_blocks(nest->loop[k]);
		if (nest->loop[k]->how == HOW_VECTOR)
			block_lanes(t, nest->loop[k]);
		block = node_add(t->ir, node_scale(t->ir, block, blocks), nest->loop[k]->axis);
	}
	return block;
}

/* A tensor of which each row has a part of its own, in pieces of `inner` elements; those from number `from` on are left
 * for this pass, an iteration of which prefetches `part` of them. */
typedef struct Fetch {
	Node *buffer;
	int64_t size, inner, from, part, line;
} Fetch;

/* False: tensor k is not worth it, or has no such parts. */
static bool fetch_find(const RowKernel *b, size_t least, int k, Fetch *f)
{
	const Node *c = b->r.tensor[k];
	int end = rows_of_tensor(b->tree->ir, b, k);
	if (end < 0 || tensor_bytes(c) < least)
		return false;
	*f = (Fetch){.buffer = b->r.buffer[k],
		     .size = tensor_size(c) / b->rows,
		     .inner = 1,
		     .line = LINE / (int64_t)type_size((Type)c->type)};
	for (int d = end; d < tensor_rank(c); d++)
		f->inner *= tensor_extent(c, d);
	return true;
}

/* How much of a pass's share is prefetched at a time, in so many blocks: false where that is too many lines, none in
 * most iterations, or of two pieces. */
static bool fetch_divide(Fetch *f, int64_t share, int64_t blocks)
{
	f->part = (share + blocks - 1) / blocks;
	while (f->inner < f->size && f->part > 0 && f->part < f->inner && f->inner % f->part)
		f->part++;
	return f->part <= LINES_MOST * f->line && f->part * LINES_MOST >= f->line &&
	       (f->inner == f->size || f->inner % f->part == 0);
}

/* An iteration's part of the next row. */
static Stmt *fetch_part(const RowKernel *b, const Fetch *f, Node *block)
{
	Ir *ir = b->tree->ir;
	Stmt *fetch = NULL;
	Node *next = node_add(ir, b->row, node_int(ir, 1));
	Node *place = node_add(ir, node_scale(ir, block, f->part), node_int(ir, f->from));
	if (f->inner < f->size) {
		Node *piece = node_floordiv(ir, place, f->inner);
		next = node_add(ir, next, node_scale(ir, piece, b->rows));
		place = node_floormod(ir, place, f->inner);
	}
	Node *at = node_add(ir, node_scale(ir, next, f->inner), place);
	for (int64_t e = 0; e < f->part; e += f->line)
		fetch = stmt_seq(fetch, stmt_prefetch(b->tree, f->buffer,
						      node_add(ir, at, node_int(ir, e))));
	return fetch;
}

/* A pass, behind which `left` more follow, prefetches its share of what is left of the row. */
static void pass_prefetch(const RowKernel *b, int n, Fetch *f, const Nest *pass, int left)
{
	Stmt *fetch = NULL, *inner = pass->loop[pass->n - 1];
	Node *block = NULL;
	for (int k = 0; k < n; k++) {
		int64_t share = (f[k].size - f[k].from + left) / (left + 1);
		if (!fetch_divide(&f[k], share, pass->blocks))
			continue;
		block = block ? block : nest_block(b->tree, pass);
		fetch = stmt_seq(fetch, fetch_part(b, &f[k], block));
		f[k].from += f[k].part * pass->blocks;
		f[k].from = f[k].from < f[k].size ? f[k].from : f[k].size;
	}
	inner->body = stmt_seq(fetch, inner->body);
}

void rows_prefetch(const RowKernel *b, size_t least, Stmt *body)
{
	int n = 0;
	int64_t most = 0;
	Ir *ir = b->tree->ir;
	Nest pass[PASSES_MOST];
	Fetch *f = arena_alloc(&ir->arena, ((size_t)b->r.ntensor + 1) * sizeof *f);
	for (int k = 0; k < b->r.ntensor; k++)
		if (fetch_find(b, least, k, &f[n])) {
			int64_t bytes = f[n].size / f[n].line * LINE;
			most = bytes > most ? bytes : most;
			n++;
		}
	int passes = n ? passes_find(ir, body, most, pass) : 0;
	for (int k = 0; k < passes; k++)
		pass_prefetch(b, n, f, &pass[k], passes - 1 - k);
}

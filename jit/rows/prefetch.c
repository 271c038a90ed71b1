/* prefetch.c - while a row is computed, the memory of the next one is prefetched: by itself the
 * processor does so within a page only, and the first loop over a row would wait for all of it
 * while the costly ones leave memory idle.
 *
 * Input: the statements of one row. Output: the same, its costliest loop in blocks that prefetch a
 * part each. Invariant: no value changes. */
#include "jit/rows/internal.h"

/* Lines of a tensor that a block prefetches: at most so many, and one for so many blocks at most. */
enum { BLOCK_LANES = 32, BLOCKS_LEAST = 4, LINE = 64, LINES_MOST = 8 };

typedef struct Owned {
	const Subgraph *sub;
	const Node *tensor;
	int reader;
	bool by_row;
} Owned;

static void see_read(void *user, Node *n)
{
	Owned *o = user;
	if (n->op != OP_READ || n->src[0] != o->tensor || tensor_rank(o->tensor) < o->sub->rows)
		return;
	bool same = true;
	for (int d = 0; d < o->sub->rows; d++) {
		const Node *axis = rows_axis(o->sub, o->reader, d);
		same &= n->src[1 + d] == axis && tensor_extent(o->tensor, d) == axis_extent(axis);
	}
	o->by_row |= same;
}

/* Does every row have a part of tensor k in memory, its own? */
static bool is_by_row(Ir *ir, const Subgraph *sub, const Rows *r, int k)
{
	Owned o = {.sub = sub, .tensor = r->tensor[k]};
	if (k >= sub->ninput)
		return !r->local[k] && !sub->fold[k - sub->ninput];
	for (; o.reader < sub->nmember; o.reader++)
		node_walk(ir, comp_body(sub->member[o.reader]), see_read, &o);
	return o.by_row;
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

static Stmt *costliest(Ir *ir, Stmt *s)
{
	Stmt *best = NULL;
	double most = 0;
	for (; s; s = s->next) {
		if (s->kind != STMT_LOOP || !node_is_const(s->lo) || s->lo->u.i != 0 ||
		    !node_is_const(s->hi))
			continue;
		double cost = (double)s->hi->u.i * cost_of(ir, s->body);
		if (cost > most) {
			most = cost;
			best = s;
		}
	}
	return best;
}

/* A vector loop becomes a loop over blocks of lanes, and one over the lanes that are left. */
static void block_lanes(Tree *t, Stmt *loop)
{
	Ir *ir = t->ir;
	int64_t n = loop->hi->u.i / BLOCK_LANES, whole = n * BLOCK_LANES;
	Node *block = tree_axis(t, n), *from = node_scale(ir, block, BLOCK_LANES);
	Node *to = node_add(ir, from, node_int(ir, BLOCK_LANES));
	Stmt *lanes = stmt_loop(t, HOW_VECTOR, loop->axis, from, to, loop->body);
	Stmt *next = loop->next;
	if (whole < loop->hi->u.i)
		next = stmt_seq(stmt_loop(t, HOW_VECTOR, loop->axis, node_int(ir, whole), loop->hi,
					  loop->body),
				next);
	*loop = *stmt_loop(t, HOW_SERIAL, block, NULL, NULL, lanes);
	loop->next = next;
}

void rows_prefetch(const RowKernel *b, size_t least, Stmt *body)
{
	Tree *t = b->tree;
	Ir *ir = t->ir;
	const Subgraph *sub = b->sub;
	const Rows *r = &b->r;
	Stmt *loop = costliest(ir, body), *fetch = NULL;
	if (!loop || (loop->how != HOW_VECTOR && loop->how != HOW_SERIAL))
		return;
	int64_t blocks = loop->hi->u.i / (loop->how == HOW_VECTOR ? BLOCK_LANES : 1);
	if (blocks < BLOCKS_LEAST)
		return;
	Node *next = node_add(ir, b->row, node_int(ir, 1));
	for (int k = 0; k < r->ntensor; k++) {
		const Node *c = r->tensor[k];
		int64_t size = tensor_size(c) / b->rows, part = (size + blocks - 1) / blocks;
		int64_t line = LINE / (int64_t)type_size((Type)c->type);
		if (tensor_bytes(c) < least || (part + line - 1) / line > LINES_MOST ||
		    part * LINES_MOST < line || !is_by_row(ir, sub, r, k))
			continue;
		if (loop->how == HOW_VECTOR)
			block_lanes(t, loop);
		Node *at =
			node_add(ir, node_scale(ir, next, size), node_scale(ir, loop->axis, part));
		for (int64_t e = 0; e < part; e += line)
			fetch = stmt_seq(fetch, stmt_prefetch(t, r->buffer[k],
							      node_add(ir, at, node_int(ir, e))));
	}
	loop->body = stmt_seq(fetch, loop->body);
}

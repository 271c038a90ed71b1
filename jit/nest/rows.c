/* rows.c - subgraphs that run row by row (fuse/rows.c).
 *
 * Input: a subgraph with `rows`. Output: a parallel loop over the rows; in it the nest of each
 * equation, in order. What is not stored lives in a tile of one row, which stays in the first
 * cache. Where there are folds the parts are blocks of rows, each with sums of its own, which
 * another phase adds up in the order of the rows. Invariant: every equation is lowered by nest_piece
 * as if its row were a number; how many blocks there are depends on sizes only. */
#include "jit/fuse/subgraph.h"
#include "jit/nest/internal.h"

enum { TILE_LOCAL = 1 << 14, SLACK_MOST = 256 };

/* Each block of rows sums for itself; their number must not depend on the threads. */
enum { BLOCKS_MOST = 64, BLOCK_ROWS = 16, SUM_PIECE = 512 };

typedef struct Blocks {
	const Subgraph *sub;
	Tree *tree;
	int64_t rows, n, height; /* n blocks of height rows; without folds a row each */
	bool folds;
	int64_t stream; /* results of so many bytes are written past the caches */
} Blocks;

static int64_t pieces_of(const Node *c)
{
	return (tensor_size(c) + SUM_PIECE - 1) / SUM_PIECE;
}

static Blocks blocks_of(Tree *tree, const Subgraph *sub)
{
	Blocks b = {.sub = sub, .tree = tree, .rows = subgraph_row_count(sub)};
	for (int k = 0; k < sub->nmember; k++)
		b.folds |= sub->fold[k];
	b.n = b.folds ? (b.rows + BLOCK_ROWS - 1) / BLOCK_ROWS : b.rows;
	if (b.folds && b.n > BLOCKS_MOST)
		b.n = BLOCKS_MOST;
	b.height = (b.rows + b.n - 1) / b.n;
	b.n = (b.rows + b.height - 1) / b.height;
	return b;
}

static Node *num(const Blocks *b, int64_t v)
{
	return node_int(b->tree->ir, v);
}

/* A row may be read behind its end where the value is thrown away, so that lanes need no condition
 * before they read the next line or place. */
static int64_t row_slack(const Node *t, int64_t size)
{
	if (size == 1)
		return 0;
	int64_t line = tensor_extent(t, tensor_rank(t) - 1);
	return (line < SLACK_MOST ? line : SLACK_MOST) + 1;
}

/* A row of tensor t, for each thread. */
static Node *row_buffer(const Blocks *b, const Node *t, bool grid, Stmt **alloc)
{
	int64_t size = tensor_size(t) / b->rows;
	bool small = grid || size * (int64_t)type_size(t->type) <= TILE_LOCAL;
	Node *row = tree_buffer(b->tree, small ? SPACE_LOCAL : SPACE_SCRATCH, "row", (Type)t->type,
				size + (grid ? 0 : row_slack(t, size)));
	if (small)
		*alloc = stmt_seq(*alloc, stmt_alloc(b->tree, row));
	return row;
}

/* A buffer that the caller has. */
static Node *param_buffer(const Blocks *b, const Node *t, int param, bool output)
{
	Node *buffer = tree_buffer(b->tree, SPACE_PARAM, output ? "y" : "a", (Type)t->type,
				   tensor_size(t));
	Buffer *info = &b->tree->buffer[b->tree->nbuffer - 1];
	info->output = output;
	info->param = param;
	return buffer;
}

/* Buffers of the inputs, of what is stored, of a row of what is not or is streamed, and of the
 * blocks' sums. */
static Stmt *rows_buffers(Rows *r, Blocks *b, bool grid)
{
	const Subgraph *sub = b->sub;
	Stmt *alloc = NULL;
	int param = 0;
	for (int k = 0; k < sub->ninput + sub->nmember; k++) {
		int m = k - sub->ninput;
		Node *t = m < 0 ? sub->input[k] : sub->member[m];
		bool stored = m < 0 || sub->stored[m];
		bool streamed = m >= 0 && stored && !sub->fold[m] && type_size(t->type) >= 4 &&
				(int64_t)tensor_bytes(t) >= b->stream;
		if (stored)
			r->buffer[k] = param_buffer(b, t, param++, m >= 0);
		if (streamed)
			r->streamed[k] = r->buffer[k];
		if (streamed || !stored)
			r->buffer[k] = row_buffer(b, t, grid, &alloc);
		if (m >= 0 && sub->fold[m])
			r->sums[k] = tree_buffer(b->tree, SPACE_SHARED, "sums",
						 type_accumulator(t->type), b->n * tensor_size(t));
		r->tensor[k] = t;
		r->local[k] = streamed || !stored;
	}
	r->ntensor = sub->ninput + sub->nmember;
	return alloc;
}

/* Equations from k to `end`, with what they read as inputs. */
static Subgraph members_alone(Ir *ir, const Rows *r, const Subgraph *sub, int k, int end)
{
	Subgraph some = {
		.nmember = end - k, .member = sub->member + k, .stored = sub->outlives + k};
	some.input = arena_alloc(&ir->arena, ((size_t)r->ntensor + 1) * sizeof *some.input);
	for (int j = 0; j < r->ntensor; j++)
		if (subgraph_member(sub, r->tensor[j]) < k)
			some.input[some.ninput++] = r->tensor[j];
	return some;
}

/* ---- the loops ---- */

/* The schedule of each equation's nest, and which results are streamed. */
static int rows_schedule(const Schedule *s, int *variant, int64_t *stream, Error *err)
{
	bool good = s->n <= 2;
	*variant = 0;
	*stream = INT64_MAX;
	for (int k = 0; k < s->n && good; k++) {
		const ScheduleStep *p = &s->step[k];
		if (k == 0 && p->kind == STEP_ROWS && p->arg >= 0 && p->arg < NEST_OFFERS)
			*variant = (int)p->arg;
		else if (k == 1 && p->kind == STEP_STREAM)
			*stream = p->arg;
		else
			good = false;
	}
	if (good)
		return 0;
	return error_set(err, RICCI_EINVAL,
			 "schedule: several equations that run row by row take the step rows 0 to "
			 "rows %d, and then at most a step stream",
			 NEST_OFFERS - 1);
}

/* The row's number, dimension by dimension. */
static void rows_place(Rows *r, const Blocks *b, Node *row)
{
	Ir *ir = b->tree->ir;
	int64_t below = b->rows;
	for (int d = 0; d < r->rows; d++) {
		int64_t extent = axis_extent(rows_axis(b->sub, 0, d));
		below /= extent;
		r->index[d] = node_floormod(ir, node_floordiv(ir, row, below), extent);
	}
}

/* The nests of all equations for one row, in order; their tiles are allocated in *alloc. */
static Stmt *rows_body(const Blocks *b, const Rows *r, Node *row, int variant, const Target *target,
		       const Capabilities *caps, Stmt **alloc, Error *err)
{
	Tree *tree = b->tree;
	Ir *ir = tree->ir;
	Stmt *body = NULL;
	for (int k = 0, end; k < b->sub->nmember && !ir->err.code && !err->code; k = end) {
		end = b->sub->loop_end[k];
		Subgraph some = members_alone(ir, r, b->sub, k, end);
		Problem *p = arena_alloc(&ir->arena, sizeof *p);
		Schedule own;
		Piece piece;
		if (problem_init_row(p, tree, &some, r))
			break;
		nest_offer(p, target, variant, &own);
		for (int j = 0; j < own.n; j++)
			if (own.step[j].kind == STEP_PARALLEL || own.step[j].kind == STEP_RFACTOR)
				own.step[j].arg = 0;
		if (nest_piece(p, &own, caps, &piece, err))
			break;
		*alloc = stmt_seq(*alloc, piece.alloc);
		body = stmt_seq(body, piece.body);
	}
	for (int k = 0; k < r->ntensor; k++) {
		int64_t size = tensor_size(r->tensor[k]) / b->rows;
		if (r->streamed[k])
			body = stmt_seq(body,
					stmt_stream(tree, r->streamed[k], node_scale(ir, row, size),
						    r->buffer[k], num(b, size)));
	}
	if (!caps->chunk)
		lower_share(tree, body);
	if (caps->prefetches)
		rows_prefetch(tree, b->sub, r, row, target->l2, body);
	return body;
}

/* The block's own sums of fold k before the first row. */
static Stmt *sums_fill(const Blocks *b, Node *sums, int k, int64_t size, Node *from)
{
	Ir *ir = b->tree->ir;
	Node *j = tree_axis(b->tree, size);
	Reduce red = comp_reduce(b->sub->member[k]);
	Type t = (Type)sums->type;
	Node *value = node_identity(ir, red, t, t);
	return stmt_loop(b->tree, HOW_VECTOR, j, NULL, num(b, size),
			 stmt_store(b->tree, sums, node_add(ir, from, j), value, RED_NONE));
}

/* A part of the phase that adds up fold k: pieces of the blocks' sums are added to those of the first,
 * and then stored. */
static Stmt *sums_piece(const Blocks *b, const Rows *r, int k, Node *piece)
{
	Ir *ir = b->tree->ir;
	const Node *c = b->sub->member[k];
	Node *sums = r->sums[b->sub->ninput + k], *y = r->buffer[b->sub->ninput + k];
	int64_t size = tensor_size(c), least = size < SUM_PIECE ? size : SUM_PIECE;
	Node *from = node_scale(ir, piece, SUM_PIECE), *n = num(b, least);
	if (size % least)
		n = node2(ir, OP_MIN, n, node_sub(ir, num(b, size), from));
	Node *j = tree_axis(b->tree, least);
	Stmt *s = rfactor_add(b->tree, sums, comp_reduce(c), b->n, size, from, n);
	Node *at = node_add(ir, from, j), *value = buffer_read(b->tree, sums, at);
	if (value->type != c->type)
		value = node_cast(ir, (Type)c->type, value);
	return stmt_seq(s, stmt_loop(b->tree, HOW_VECTOR, j, NULL, n,
				     stmt_store(b->tree, y, at, value, RED_NONE)));
}

/* All the rows of a block, one after the other, on sums of its own. */
static Stmt *block_rows(const Blocks *b, const Rows *r, Node *line, Node *from, Stmt *body)
{
	Ir *ir = b->tree->ir;
	Node *left = node_sub(ir, num(b, b->rows), from), *hi = num(b, b->height);
	Stmt *fill = NULL;
	if (b->rows % b->height)
		hi = node2(ir, OP_MIN, hi, left);
	for (int k = 0; k < b->sub->nmember; k++) {
		int64_t size = tensor_size(b->sub->member[k]);
		if (b->sub->fold[k])
			fill = stmt_seq(fill, sums_fill(b, r->sums[b->sub->ninput + k], k, size,
							node_scale(ir, r->block, size)));
	}
	return stmt_seq(fill, stmt_loop(b->tree, HOW_SERIAL, line, NULL, hi, body));
}

/* The phase that adds the blocks' sums up. */
static void sums_phase(const Blocks *b, const Rows *r)
{
	phase_end(b->tree);
	for (int k = 0; k < b->sub->nmember; k++)
		if (b->sub->fold[k]) {
			Node *piece = tree_axis(b->tree, pieces_of(b->sub->member[k]));
			phase_section(b->tree, piece, sums_piece(b, r, k, piece));
		}
}

int lower_rows(Tree *tree, const Subgraph *sub, const Schedule *s, const Target *target,
	       const Capabilities *caps, Error *err)
{
	Ir *ir = tree->ir;
	Capabilities inner = *caps;
	Blocks b = blocks_of(tree, sub);
	int variant;
	size_t n = (size_t)(sub->ninput + sub->nmember) + 1;
	if (rows_schedule(s, &variant, &b.stream, err))
		return err->code;
	if (caps->grid)
		b.stream = INT64_MAX;
	if (b.folds && caps->grid)
		return error_set(err, RICCI_EUNSUPPORTED,
				 "a sum over rows takes two phases, which kernels of a grid don't "
				 "have");
	Rows r = {.rows = sub->rows};
	r.tensor = arena_alloc(&ir->arena, n * sizeof *r.tensor);
	r.buffer = arena_alloc(&ir->arena, n * sizeof *r.buffer);
	r.sums = arena_alloc(&ir->arena, n * sizeof *r.sums);
	r.streamed = arena_alloc(&ir->arena, n * sizeof *r.streamed);
	r.local = arena_alloc(&ir->arena, n);
	inner.grid = false; /* the rows are the grid */
	Stmt *alloc = rows_buffers(&r, &b, caps->grid);
	Node *line = tree_axis(tree, b.height), *from, *row;
	r.block = tree_axis(tree, b.n);
	from = node_scale(ir, r.block, b.height);
	row = b.folds ? node_add(ir, from, line) : r.block;
	rows_place(&r, &b, row);
	Stmt *body = rows_body(&b, &r, row, variant, target, &inner, &alloc, err);
	if (b.folds)
		body = block_rows(&b, &r, line, from, body);
	phase_section(tree, r.block, stmt_seq(alloc, body));
	if (b.folds)
		sums_phase(&b, &r);
	phases_finish(tree, NULL, b.stream < INT64_MAX ? stmt_seen(tree) : NULL);
	return err->code ? err->code : error_set(err, ir->err.code, "%s", ir->err.text);
}

/* rows.c - subgraphs that run row by row (fuse/rows.c).
 *
 * Input: a subgraph with `rows`, and a schedule for each of its loops. Output: a parallel loop over the
 * rows; in it a piece for each loop, a nest or a contraction, in order. What is not stored lives in a
 * tile of one row, which stays in the first cache. Where there are folds the parts are blocks of rows,
 * each with sums of its own, which another phase adds up in the order of the rows. Invariant: every
 * equation is lowered as if its row were a number; how many blocks there are depends on sizes only. */
#include "jit/rows/internal.h"

#include <string.h>

enum { TILE_LOCAL = 1 << 14, SLACK_MOST = 256 };

/* Each block of rows sums for itself; their number must not depend on the threads. A block has so many
 * points, and so many for each element that it sums. */
enum { BLOCKS_MOST = 64, BLOCK_POINTS = 1024, SUM_POINTS = 4 };
/* On a grid: rows in the memory of a block, and the sums of all blocks, have so many bytes at most. */
enum { GRID_ROWS = 4, GRID_BLOCKS = 512, BLOCK_BYTES = 32 << 10, SUMS_BYTES = 1 << 24 };

static int64_t blocks_count(const Subgraph *sub, int64_t rows)
{
	double points = 0, sums = 0, least = BLOCK_POINTS;
	for (int k = 0; k < sub->nmember; k++) {
		double own = comp_points(sub->member[k]);
		points = own > points ? own : points;
		sums += sub->fold[k] ? SUM_POINTS * (double)tensor_size(sub->member[k]) : 0;
	}
	least = sums > least ? sums : least;
	double n = points / least < BLOCKS_MOST ? points / least : BLOCKS_MOST;
	return n < 1 ? 1 : n > (double)rows ? rows : (int64_t)n;
}

static int64_t grid_blocks(const Subgraph *sub, int64_t rows)
{
	int64_t size = 1, n = (rows + GRID_ROWS - 1) / GRID_ROWS;
	for (int k = 0; k < sub->nmember; k++)
		if (sub->fold[k] && tensor_size(sub->member[k]) > size)
			size = tensor_size(sub->member[k]);
	int64_t most = SUMS_BYTES / size < GRID_BLOCKS ? SUMS_BYTES / size + 1 : GRID_BLOCKS;
	return n < most ? n : most;
}

static void blocks_find(RowKernel *b)
{
	const Subgraph *sub = b->sub;
	b->rows = subgraph_row_count(sub);
	for (int k = 0; k < sub->nmember; k++)
		b->folds |= sub->fold[k];
	b->n = !b->folds    ? b->rows
	       : b->threads ? grid_blocks(sub, b->rows)
			    : blocks_count(sub, b->rows);
	b->height = (b->rows + b->n - 1) / b->n;
	b->n = (b->rows + b->height - 1) / b->height;
}

static Node *num(const RowKernel *b, int64_t v)
{
	return node_int(b->tree->ir, v);
}

/* A row may be read behind its end where the value is thrown away, so that lanes need no condition
 * before they read the next line or place. */
static int64_t row_slack(const RowKernel *b, int k, int64_t size)
{
	if (size == 1)
		return 0;
	int last = rows_place(b->sub, k, rows_places(b->sub, k) - 1);
	int64_t line = tensor_extent(b->sub->member[k], last);
	return (line < SLACK_MOST ? line : SLACK_MOST) + 1;
}

/* A row of member k, for each thread. */
static Node *row_buffer(RowKernel *b, int k)
{
	const Node *t = b->sub->member[k];
	int64_t size = tensor_size(t) / b->rows;
	bool small = b->single || size * (int64_t)type_size(t->type) <= TILE_LOCAL;
	Node *row = tree_buffer(b->tree, small ? SPACE_LOCAL : SPACE_SCRATCH, "row", (Type)t->type,
				size + (b->single ? 0 : row_slack(b, k, size)));
	if (small)
		b->alloc = stmt_seq(b->alloc, stmt_alloc(b->tree, row));
	return row;
}

/* A row of member k, for the threads of a block; NULL: there is no room in its memory. */
static Node *block_row(RowKernel *b, int k)
{
	const Node *t = b->sub->member[k];
	int64_t size = tensor_size(t) / b->rows;
	size_t bytes = ((size_t)size * type_size(t->type) + 15) & ~(size_t)15;
	if (b->block_bytes + bytes > BLOCK_BYTES)
		return NULL;
	b->block_bytes += bytes;
	Node *row = tree_buffer(b->tree, SPACE_BLOCK, "row", (Type)t->type, size);
	b->alloc = stmt_seq(b->alloc, stmt_alloc(b->tree, row));
	return row;
}

/* A buffer for what is not stored: of a row, or (*local is false then) of all rows. */
static Node *kept_buffer(RowKernel *b, int k, bool *local)
{
	const Node *t = b->sub->member[k];
	bool block = b->threads && !b->single;
	Node *row = block ? block_row(b, k) : row_buffer(b, k);
	*local = row;
	return row ? row
		   : tree_buffer(b->tree, SPACE_SHARED, "rows", (Type)t->type, tensor_size(t));
}

/* Buffers of the inputs, of what is stored, of a row of what is not or is streamed, and of the
 * blocks' sums. */
static void rows_buffers(RowKernel *b)
{
	const Subgraph *sub = b->sub;
	Rows *r = &b->r;
	int param = 0;
	for (int k = 0; k < sub->ninput + sub->nmember; k++) {
		int m = k - sub->ninput;
		Node *t = m < 0 ? sub->input[k] : sub->member[m];
		bool stored = m < 0 || sub->stored[m];
		bool streamed = m >= 0 && stored && !sub->fold[m] && !sub->lead[m] &&
				type_size(t->type) >= 4 && (int64_t)tensor_bytes(t) >= b->stream;
		if (stored)
			r->buffer[k] = tree_param(b->tree, t, param++, m >= 0);
		if (streamed)
			r->streamed[k] = r->buffer[k];
		if (streamed || !stored)
			r->buffer[k] = kept_buffer(b, m, &r->local[k]);
		if (m >= 0 && sub->fold[m])
			r->sums[k] = tree_buffer(b->tree, SPACE_SHARED, "sums",
						 type_accumulator(t->type), b->n * tensor_size(t));
		r->lead[k] = m >= 0 ? sub->lead[m] : 0;
		r->tensor[k] = t;
	}
	r->ntensor = sub->ninput + sub->nmember;
}

/* The row's number, dimension by dimension. */
static void row_indices(RowKernel *b)
{
	Ir *ir = b->tree->ir;
	int64_t below = b->rows;
	for (int d = 0; d < b->r.rows; d++) {
		int64_t extent = axis_extent(rows_axis(b->sub, 0, d));
		below /= extent;
		b->r.index[d] = node_floormod(ir, node_floordiv(ir, b->row, below), extent);
	}
}

/* The subgraph with fewer dimensions as rows. */
static const Subgraph *fewer_rows(Ir *ir, const Subgraph *sub, int dims)
{
	if (dims == sub->rows)
		return sub;
	Subgraph *s = arena_alloc(&ir->arena, sizeof *s);
	*s = *sub;
	s->rows = dims;
	return s;
}

void row_kernel_init(RowKernel *b, Tree *tree, const Subgraph *sub, RowsHead head)
{
	Ir *ir = tree->ir;
	size_t n = (size_t)(sub->ninput + sub->nmember) + 1;
	*b = (RowKernel){.sub = fewer_rows(ir, sub, head.dims),
			 .loops = &sub->loops[head.dims - 1],
			 .tree = tree,
			 .threads = head.threads,
			 .single = head.single,
			 .stream = head.threads ? INT64_MAX : head.stream,
			 .r = {.rows = head.dims}};
	blocks_find(b);
	b->r.tensor = arena_alloc(&ir->arena, n * sizeof *b->r.tensor);
	b->r.buffer = arena_alloc(&ir->arena, n * sizeof *b->r.buffer);
	b->r.sums = arena_alloc(&ir->arena, n * sizeof *b->r.sums);
	b->r.streamed = arena_alloc(&ir->arena, n * sizeof *b->r.streamed);
	b->r.local = arena_alloc(&ir->arena, n);
	b->r.lead = arena_alloc(&ir->arena, n * sizeof *b->r.lead);
	rows_buffers(b);
	b->line = tree_axis(tree, b->height);
	b->r.block = tree_axis(tree, b->n);
	if (b->threads) {
		b->thread = tree_axis(tree, b->threads);
		tree->shape.threads = b->threads;
	}
	b->r.outer[0] = b->r.block;
	b->r.outer[1] = b->line;
	b->from = node_scale(ir, b->r.block, b->height);
	b->row = b->folds ? node_add(ir, b->from, b->line) : b->r.block;
	row_indices(b);
}

/* Equations from k on that share its loop, with what they read as inputs. */
static Subgraph *members_alone(const RowKernel *b, int k)
{
	const Subgraph *sub = b->sub;
	const Rows *r = &b->r;
	Arena *arena = &b->tree->ir->arena;
	Subgraph *some = arena_alloc(arena, sizeof *some);
	*some = (Subgraph){.nmember = b->loops->end[k] - k,
			   .member = sub->member + k,
			   .stored = b->loops->outlives + k};
	some->input = arena_alloc(arena, ((size_t)r->ntensor + 1) * sizeof *some->input);
	for (int j = 0; j < r->ntensor; j++)
		if (subgraph_member(sub, r->tensor[j]) < k)
			some->input[some->ninput++] = r->tensor[j];
	return some;
}

Problem *row_problem(const RowKernel *b, int k)
{
	return problem_new(b->tree, members_alone(b, k), &b->r);
}

/* ---- the loops ---- */

static int misfit(Error *err)
{
	return schedule_misfit(
		err, "several equations that run row by row take the step rows, at "
		     "most a step stream, and then the steps of each loop behind its member");
}

/* The steps before the members. Returns the number of these, 0 on error. */
static int rows_head(const Subgraph *sub, const Schedule *s, bool grid, RowsHead *head, Error *err)
{
	int n = 1;
	if (!s->n || s->step[0].kind != STEP_ROWS) {
		misfit(err);
		return 0;
	}
	*head = (RowsHead){.dims = (int)s->step[0].arg, .stream = INT64_MAX};
	if (s->n > n && s->step[n].kind == STEP_THREADS && s->step[n].arg > 0 &&
	    s->step[n].arg <= GRID_THREADS_MOST)
		head->threads = (int)s->step[n++].arg;
	if (head->threads && s->n > n && s->step[n].kind == STEP_PARALLEL)
		head->single = s->step[n++].arg;
	if (s->n > n && s->step[n].kind == STEP_STREAM)
		head->stream = s->step[n++].arg;
	if (grid != (head->threads > 0)) {
		schedule_misfit(err,
				"rows have 1 to %d threads of a block on a grid, and only there",
				GRID_THREADS_MOST);
		return 0;
	}
	if (head->dims < 1 || head->dims > sub->rows) {
		schedule_misfit(err, "1 to %d dimensions can be rows, not %d", sub->rows,
				head->dims);
		return 0;
	}
	return n;
}

/* The schedules of the loops, which begin with these members: the steps from `at` on. */
static int rows_members(const RowKernel *b, const Schedule *s, int at, Schedule **own, Error *err)
{
	int member = 0, count = b->sub->nmember;
	if (at < s->n && s->step[at].kind != STEP_MEMBER)
		return misfit(err);
	for (Schedule *to = NULL; at < s->n; at++) {
		const ScheduleStep *step = &s->step[at];
		if (step->kind != STEP_MEMBER) {
			schedule_add(to, (StepKind)step->kind, step->axis, step->arg);
			continue;
		}
		while (member < count && member < step->axis)
			member = b->loops->end[member];
		if (member != step->axis || member == count || own[member]->n)
			return schedule_misfit(err,
					       "no loop begins with member %d, or those before "
					       "it are not in order",
					       (int)step->axis);
		to = own[member];
	}
	return 0;
}

static int member_piece(const RowKernel *b, Problem *p, const Schedule *s, const Target *target,
			const Capabilities *caps, Piece *out, Error *err)
{
	bool panels = s->n && s->step[0].kind == STEP_TENSORISE;
	if (b->threads && panels)
		return misfit(err);
	if (b->threads && !b->single)
		return nest_block_piece(p, s, caps, b->thread, out, err);
	return panels ? contract_piece(p, s, target, out, err) : nest_piece(p, s, caps, out, err);
}

/* A block's rows, one after the other. */
static Stmt *line_loop(const RowKernel *b, Stmt *body)
{
	Ir *ir = b->tree->ir;
	Node *hi = num(b, b->height);
	if (b->rows % b->height)
		hi = node2(ir, OP_MIN, hi, node_sub(ir, num(b, b->rows), b->from));
	return stmt_loop(b->tree, HOW_SERIAL, b->line, NULL, hi, body);
}

int row_loop_tree(Tree *tree, const Subgraph *sub, int dims, int k, const Schedule *s,
		  const Target *target, const Capabilities *caps, Error *err)
{
	RowKernel b;
	Piece piece;
	row_kernel_init(&b, tree, sub, (RowsHead){.dims = dims, .stream = INT64_MAX});
	Problem *p = row_problem(&b, k);
	if (!p)
		return error_set(err, tree->ir->err.code, "%s", tree->ir->err.text);
	if (member_piece(&b, p, s, target, caps, &piece, err))
		return err->code;
	if (b.folds)
		piece.body = line_loop(&b, piece.body);
	phase_section(tree, b.r.block, stmt_seq(stmt_seq(b.alloc, piece.alloc), piece.body));
	phases_finish(tree, piece.before, NULL);
	return 0;
}

/* The pieces of all loops for one row, in order. */
static int rows_body(RowKernel *b, Schedule *const *own, const Target *target,
		     const Capabilities *caps, Piece *out, Error *err)
{
	Tree *tree = b->tree;
	Ir *ir = tree->ir;
	const Rows *r = &b->r;
	for (int k = 0; k < b->sub->nmember; k = b->loops->end[k]) {
		Problem *p = row_problem(b, k);
		Piece piece;
		if (!p)
			return error_set(err, ir->err.code, "%s", ir->err.text);
		if (member_piece(b, p, own[k], target, caps, &piece, err))
			return err->code;
		out->before = stmt_seq(out->before, piece.before);
		out->alloc = stmt_seq(out->alloc, piece.alloc);
		out->body = stmt_seq(out->body, piece.body);
		if (b->threads && !b->single)
			out->body = stmt_seq(out->body, stmt_sync(tree));
	}
	for (int k = 0; k < r->ntensor; k++) {
		int64_t size = tensor_size(r->tensor[k]) / b->rows;
		if (r->streamed[k])
			out->body = stmt_seq(out->body, stmt_stream(tree, r->streamed[k],
								    node_scale(ir, b->row, size),
								    r->buffer[k], num(b, size)));
	}
	if (!caps->chunk && !b->threads)
		lower_share(tree, out->body);
	if (caps->prefetches)
		rows_prefetch(b, target->l2, out->body);
	return 0;
}

/* The threads of the block share that. */
static Stmt *sums_fill_grid(const RowKernel *b, Node *sums, int64_t size, Node *from, Node *value)
{
	Ir *ir = b->tree->ir;
	Node *j = tree_axis(b->tree, (size + b->threads - 1) / b->threads);
	Node *at = node_add(ir, node_scale(ir, j, b->threads), b->thread);
	Stmt *store = stmt_store(b->tree, sums, node_add(ir, from, at), value, RED_NONE);
	Node *inside = node2(ir, OP_LT, at, num(b, size));
	return stmt_loop(b->tree, HOW_SERIAL, j, NULL, NULL, stmt_if(b->tree, inside, store, NULL));
}

/* The block's own sums of fold k before the first row. */
static Stmt *sums_fill(const RowKernel *b, Node *sums, int k, int64_t size, Node *from)
{
	Ir *ir = b->tree->ir;
	Node *j = tree_axis(b->tree, size);
	Reduce red = comp_reduce(b->sub->member[k]);
	Type t = (Type)sums->type;
	Node *value = node_identity(ir, red, t, t);
	if (b->threads)
		return sums_fill_grid(b, sums, size, from, value);
	return stmt_loop(b->tree, HOW_VECTOR, j, NULL, num(b, size),
			 stmt_store(b->tree, sums, node_add(ir, from, j), value, RED_NONE));
}

/* A fold, and where it is stored. */
typedef struct FoldSum {
	const RowKernel *b;
	Node *y;
} FoldSum;

static Stmt *fold_store(void *user, Node *at, Node *sum)
{
	const FoldSum *f = user;
	if (sum->type != f->y->type)
		sum = node_cast(f->b->tree->ir, (Type)f->y->type, sum);
	return stmt_store(f->b->tree, f->y, at, sum, RED_NONE);
}

/* All the rows of a block on sums of its own. */
static Stmt *block_rows(const RowKernel *b, Stmt *body)
{
	Ir *ir = b->tree->ir;
	const Rows *r = &b->r;
	Stmt *fill = NULL;
	for (int k = 0; k < b->sub->nmember; k++) {
		int64_t size = tensor_size(b->sub->member[k]);
		if (b->sub->fold[k])
			fill = stmt_seq(fill, sums_fill(b, r->sums[b->sub->ninput + k], k, size,
							node_scale(ir, r->block, size)));
	}
	if (b->threads)
		fill = stmt_seq(fill, stmt_sync(b->tree));
	return stmt_seq(fill, line_loop(b, body));
}

/* The phase that adds the blocks' sums up; on a grid one for each fold where they can't be together. */
static void sums_phase(const RowKernel *b, bool together)
{
	phase_end(b->tree);
	for (int k = 0, n = 0; k < b->sub->nmember; k++) {
		const Node *c = b->sub->member[k];
		FoldSum f = {b, b->r.buffer[b->sub->ninput + k]};
		if (!b->sub->fold[k])
			continue;
		if (n++ && b->threads && !together && n < KERNEL_PHASES)
			phase_end(b->tree);
		sums_section(b->tree, b->r.sums[b->sub->ninput + k], comp_reduce(c), b->n,
			     tensor_size(c), fold_store, &f);
	}
}

/* A block for each part, or a thread. */
static void rows_grid(const RowKernel *b, Stmt *body)
{
	Tree *t = b->tree;
	Ir *ir = t->ir;
	if (!b->single) {
		phase_grid(t, b->r.block, b->thread, body);
		return;
	}
	Node *block = tree_axis(t, (b->n + b->threads - 1) / b->threads), *part = b->r.block;
	Node *at = node_add(ir, node_scale(ir, block, b->threads), b->thread);
	Node *mine = node2(ir, OP_MIN, at, num(b, b->n - 1));
	body = stmt_replace(t, body, 1, &part, &mine);
	body = stmt_if(t, node2(ir, OP_LT, at, num(b, b->n)), body, NULL);
	phase_grid(t, block, b->thread, body);
}

int lower_rows(Tree *tree, const Subgraph *sub, const Schedule *s, const Target *target,
	       const Capabilities *caps, Error *err)
{
	Ir *ir = tree->ir;
	Capabilities inner = *caps;
	RowKernel b;
	Piece piece = {0};
	Schedule **own = arena_alloc(&ir->arena, ((size_t)sub->nmember + 1) * sizeof *own);
	RowsHead head;
	int steps = rows_head(sub, s, caps->grid, &head, err);
	if (!steps)
		return err->code;
	row_kernel_init(&b, tree, sub, head);
	if (b.folds && b.single)
		return schedule_misfit(err, "where there are sums over rows, a row has a block");
	for (int k = 0; k < sub->nmember; k++)
		own[k] = arena_alloc(&ir->arena, sizeof **own);
	inner.grid &= !b.single; /* the rows are the grid */
	if (rows_members(&b, s, steps, own, err) || rows_body(&b, own, target, &inner, &piece, err))
		return err->code;
	if (b.folds)
		piece.body = block_rows(&b, piece.body);
	Stmt *body = stmt_seq(stmt_seq(b.alloc, piece.alloc), piece.body);
	if (head.threads)
		rows_grid(&b, body);
	else
		phase_section(tree, b.r.block, body);
	bool first = !b.folds;
	for (int k = 0; k < sub->nmember; k++)
		first &= sub->lead[k] == 0;
	tree->shape.blocks = first ? tensor_extent(sub->member[0], 0) : 0;
	if (b.folds)
		sums_phase(&b, caps->branch_barriers);
	phases_finish(tree, piece.before, b.stream < INT64_MAX ? stmt_seen(tree) : NULL);
	return error_set(err, ir->err.code, "%s", ir->err.text);
}

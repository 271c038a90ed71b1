/* rows.c - subgraphs that run row by row: several equations whose first dimensions are the same
 * rows, and which read each other at their own row only.
 *
 * Input: a subgraph with `rows`. Output: one parallel loop over the rows; in it the nest of each
 * equation, in order. What is not stored lives in a tile of one row, which stays in the first
 * cache. Invariant: every equation is lowered by lower_nest as if its row were a number. */
#include "jit/internal.h"

enum { TILE_LOCAL = 1 << 14 };
/* So many rows at least, of so many points at least and so many bytes of results at most. */
enum { ROWS_LEAST = 64, ROW_POINTS = 64, ROW_BYTES = 1 << 17 };

/* ---- which subgraphs ---- */

typedef struct Shared {
	Node *const *member;
	int nmember, rows;
	const Node *reader;
} Shared;

/* Rows end where a member is read elsewhere than at the reader's own index. */
static void see_member(void *user, Node *n)
{
	Shared *s = user;
	bool member = false;
	if (n->op != OP_READ)
		return;
	for (int k = 0; k < s->nmember; k++)
		member |= s->member[k] == n->src[0];
	for (int d = 0; member && d < s->rows; d++)
		if (n->src[1 + d] != comp_lhs(s->reader, d))
			s->rows = d;
}

static bool same_shape(const Node *a, const Node *b)
{
	bool same = tensor_rank(a) == tensor_rank(b);
	for (int d = 0; same && d < tensor_rank(a); d++)
		same = tensor_extent(a, d) == tensor_extent(b, d);
	return same;
}

int subgraph_rows(Ir *ir, int n, Node *const *member)
{
	Shared s = {member, n, RICCI_MAX_RANK, NULL};
	bool pointwise = true;
	for (int k = 0; k < n; k++) {
		const Node *c = member[k];
		if (c->op != OP_COMP || !comp_is_dense(c))
			return 0;
		if (k)
			pointwise &= comp_reduce(c) == RED_NONE && same_shape(c, member[0]);
		if (s.rows > tensor_rank(c))
			s.rows = tensor_rank(c);
		for (int d = 0; d < s.rows; d++)
			if (tensor_extent(c, d) != tensor_extent(member[0], d))
				s.rows = d;
	}
	for (int k = 1; k < n && !pointwise; k++) {
		s.reader = member[k];
		node_walk(ir, comp_body(member[k]), see_member, &s);
	}
	return pointwise ? 0 : s.rows;
}

int64_t subgraph_row_count(const Subgraph *s)
{
	int64_t n = 1;
	for (int d = 0; d < s->rows; d++)
		n *= tensor_extent(s->member[0], d);
	return n;
}

/* Its points are about as many as the elements that it moves: it waits for memory, and nothing is
 * gained by blocks. */
static bool is_streaming(const Node *c, int nread, Node *const *reads)
{
	double elements = (double)tensor_size(c);
	for (int k = 0; k < nread; k++)
		elements += (double)tensor_size(reads[k]);
	return c->op == OP_COMP && comp_points(c) <= 4 * elements;
}

typedef struct Across {
	const Node *reader;
	int rows;
	bool found;
} Across;

/* A read within a row that jumps from line to line: rows are along its last dimension. */
static void see_across(void *user, Node *n)
{
	Across *a = user;
	bool within = false, last = false;
	if (n->op != OP_READ || n->nsrc < 2)
		return;
	for (int k = 0; k < comp_naxis(a->reader); k++) {
		Node *axis = comp_axis(a->reader, k);
		for (int d = 1; d < n->nsrc && k >= a->rows; d++)
			within |= node_has(n->src[d], axis);
		last |= k < a->rows && node_has(n->src[n->nsrc - 1], axis);
	}
	a->found |= within && last;
}

bool subgraph_rows_suit(Ir *ir, int n, Node *const *member)
{
	Subgraph s = {.member = (Node **)member, .nmember = n};
	double bytes = 0, points = 0;
	for (int k = 0; k < n; k++)
		if (member[k]->op != OP_COMP)
			return false;
	s.rows = subgraph_rows(ir, n, member);
	double rows = (double)subgraph_row_count(&s);
	for (int k = 0; k < n && s.rows; k++) {
		Node **reads;
		int nread = comp_reads(ir, member[k], &reads);
		bytes += (double)tensor_bytes(member[k]);
		points = comp_points(member[k]) > points ? comp_points(member[k]) : points;
		Across a = {member[k], s.rows, false};
		node_walk(ir, comp_body(member[k]), see_across, &a);
		if (a.found || !is_streaming(member[k], nread, reads))
			return false;
	}
	return s.rows && rows >= ROWS_LEAST && points >= ROW_POINTS * rows &&
	       bytes <= ROW_BYTES * rows;
}

/* ---- lowering ---- */

static int member_of(const Subgraph *s, const Node *t)
{
	for (int k = 0; k < s->nmember; k++)
		if (s->member[k] == t)
			return k;
	return -1;
}

/* Buffers of the inputs, of what is stored, and of a row of what is not. */
static Stmt *rows_buffers(Rows *r, Tree *tree, const Subgraph *sub, bool grid)
{
	Stmt *alloc = NULL;
	int64_t rows = subgraph_row_count(sub);
	int param = 0;
	for (int k = 0; k < sub->ninput + sub->nmember; k++) {
		int m = k - sub->ninput;
		Node *t = m < 0 ? sub->input[k] : sub->member[m];
		bool local = m >= 0 && !sub->stored[m];
		int64_t size = tensor_size(t) / (local ? rows : 1);
		bool small = grid || size * (int64_t)type_size(t->type) <= TILE_LOCAL;
		Space space = !local ? SPACE_PARAM : small ? SPACE_LOCAL : SPACE_SCRATCH;
		Node *b = tree_buffer(tree, space,
				      local   ? "row"
				      : m < 0 ? "a"
					      : "y",
				      t->type, size);
		if (!b)
			return NULL;
		Buffer *info = &tree->buffer[tree->nbuffer - 1];
		info->output = m >= 0 && !local;
		info->param = local ? 0 : param++;
		if (space == SPACE_LOCAL)
			alloc = stmt_seq(alloc, stmt_alloc(tree, b));
		r->tensor[k] = t;
		r->buffer[k] = b;
		r->local[k] = local;
	}
	r->ntensor = sub->ninput + sub->nmember;
	return alloc;
}

/* The equation alone, with what it reads as inputs. */
static Subgraph member_alone(Ir *ir, const Rows *r, const Subgraph *sub, int k, bool *stored)
{
	Subgraph one = {.nmember = 1, .member = sub->member + k, .stored = stored};
	one.input = arena_alloc(&ir->arena, ((size_t)r->ntensor + 1) * sizeof *one.input);
	for (int j = 0; j < r->ntensor; j++)
		if (member_of(sub, r->tensor[j]) < k)
			one.input[one.ninput++] = r->tensor[j];
	return one;
}

static int variant_of(const Schedule *s, Error *err)
{
	if (s->n == 0)
		return 0;
	if (s->n > 1 || s->step[0].kind != STEP_ROWS || s->step[0].arg < 0 ||
	    s->step[0].arg >= NEST_OFFERS) {
		error_set(
			err, RICCI_EINVAL,
			"schedule: several equations that run row by row take one step, rows 0 to "
			"rows %d",
			NEST_OFFERS - 1);
		return -1;
	}
	return (int)s->step[0].arg;
}

int lower_rows(Tree *tree, const Subgraph *sub, const Schedule *s, const Target *target,
	       const Dialect *d, Error *err)
{
	Ir *ir = tree->ir;
	Dialect inner = *d;
	Rows r = {.rows = sub->rows};
	bool stored = true;
	int variant = variant_of(s, err);
	int64_t below = subgraph_row_count(sub);
	if (variant < 0)
		return err->code;
	size_t n = (size_t)(sub->ninput + sub->nmember);
	r.tensor = arena_alloc(&ir->arena, n * sizeof *r.tensor);
	r.buffer = arena_alloc(&ir->arena, n * sizeof *r.buffer);
	r.local = arena_alloc(&ir->arena, n);
	inner.grid = false; /* the rows are the grid */
	tree->parts = below;
	Node *part = tree_axis(tree, below);
	for (int k = 0; k < sub->rows; k++) {
		int64_t extent = tensor_extent(sub->member[0], k);
		below /= extent;
		r.index[k] = node_floormod(ir, node_floordiv(ir, part, below), extent);
	}
	Stmt *body = rows_buffers(&r, tree, sub, d->grid);
	for (int k = 0; k < sub->nmember && !ir->err.code; k++) {
		Subgraph one = member_alone(ir, &r, sub, k, &stored);
		Problem *p = arena_alloc(&ir->arena, sizeof *p);
		Schedule own;
		if (problem_init_row(p, tree, &one, &r))
			break;
		nest_offer(p, variant, &own);
		for (int j = 0; j < own.n; j++)
			if (own.step[j].kind == STEP_PARALLEL)
				own.step[j].arg = 0;
		int64_t parts = tree->parts;
		if (lower_nest(p, &own, target, &inner, err))
			return err->code;
		tree->parts = parts;
		body = stmt_seq(body, tree->root->body);
	}
	tree->root = stmt_loop(tree, HOW_PARALLEL, part, NULL, NULL, body);
	return error_set(err, ir->err.code, "%s", ir->err.text);
}

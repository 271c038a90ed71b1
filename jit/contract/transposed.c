/* transposed.c - a copy of an operand, made before all parts, whose lanes are contiguous.
 *
 * Input: an operand that is an element of a tensor under no conditions, lines of which run neither
 * along the panels' lanes nor far along K, as weights of a transposed convolution. Output: the same
 * operand as an element of a copy; statements that fill the copy. The tensor is seen as matrices
 * whose rows are the dimension along the lanes and whose columns are all dimensions behind it; the
 * copy holds column by column of every matrix, so that what packing would gather, often an element
 * of a line at a time, is moved once and in squares. Invariant: every index stays in its dimension,
 * so that a place in the copy follows from the dimensions' indices. */
#include "jit/contract/internal.h"

enum { LONG_RUN = 32, PART_BYTES = 1 << 14, COLUMNS = 64 };
enum { LEAST_LINE = 256, LEAST_PLANE = 1 << 10 };
static const int64_t MOST_TRANSPOSED = 1 << 24; /* elements */

/* The one dimension that moves along with the axis, step by step; -1: another way. */
static int lane_dimension(const Contract *c, const ProblemRead *r, Node *axis)
{
	int found = -1;
	for (int d = 0; d < r->rank; d++) {
		int64_t step = affine_stride(c->ir, r->dim[d], axis);
		if (step && (step != 1 || found >= 0))
			return -1;
		found = step ? d : found;
	}
	return found;
}

/* Does the index of each dimension stay in it? Merged axes may run past its end. */
static bool dimensions_hold(const ProblemRead *r, int64_t size)
{
	for (int d = 0; d < r->rank; size = r->stride[d++])
		if (r->dim[d]->lo < 0 || r->dim[d]->hi * r->stride[d] >= size)
			return false;
	return true;
}

bool contract_transposed(Contract *c, Operand *f, const IndexGroup *s)
{
	Ir *ir = c->ir;
	TransposedCopy *t = &c->transposed[c->ntransposed];
	const ProblemRead *r =
		contract_plain(c, f) && !f->nguard ? problem_read(c->p, f->value) : NULL;
	Node *lanes = s->naxis ? s->axis[s->naxis - 1] : NULL, *place = node_int(ir, 0);
	int along = r && lanes ? lane_dimension(c, r, lanes) : -1;
	if (along < 0 || r->stride[along] == 1 ||
	    contract_run(c, &c->k, f->value->src[1], 1) >= LONG_RUN)
		return false;
	Type type = (Type)f->value->type;
	int64_t size = tensor_size(f->value->src[0]);
	if (size > MOST_TRANSPOSED || !dimensions_hold(r, size))
		return false;
	t->from = f->value->src[0];
	t->cols = r->stride[along];
	t->rows = (along ? r->stride[along - 1] : size) / t->cols;
	t->count = size / (t->rows * t->cols);
	t->line = contract_pitch(t->rows, type, LEAST_LINE);
	t->plane = contract_pitch(t->line * t->cols, type, LEAST_PLANE);
	for (int d = 0; d < r->rank; d++) {
		int64_t pitch = d > along   ? r->stride[d] * t->line
				: d < along ? r->stride[d] / (t->rows * t->cols) * t->plane
					    : 1;
		place = node_add(ir, place, node_scale(ir, r->dim[d], pitch));
	}
	t->buffer = tree_buffer(c->t, SPACE_SHARED, "transposed", type, t->count * t->plane);
	f->value = buffer_read(c->t, t->buffer, place);
	c->ntransposed++;
	return true;
}

/* Pieces of matrices, at most COLUMNS wide, and how many of them a part turns. */
static int64_t piece_count(const TransposedCopy *t)
{
	return t->count * ((t->cols + COLUMNS - 1) / COLUMNS);
}

static int64_t pieces_each(const TransposedCopy *t)
{
	int64_t cols = t->cols < COLUMNS ? t->cols : COLUMNS;
	int64_t bytes = t->rows * cols * (int64_t)type_size((Type)t->buffer->type);
	return bytes < PART_BYTES ? PART_BYTES / bytes : 1;
}

int64_t transposed_copy_parts(const TransposedCopy *t)
{
	return (piece_count(t) + pieces_each(t) - 1) / pieces_each(t);
}

Stmt *transposed_copy_fill(Contract *c, const TransposedCopy *t, Node *part)
{
	Ir *ir = c->ir;
	int64_t each = pieces_each(t), count = piece_count(t), wide = count / t->count;
	Node *first = node_scale(ir, part, each), *x = tree_axis(c->t, each);
	Node *piece = node_add(ir, first, x), *matrix = node_floordiv(ir, piece, wide);
	Node *col = node_scale(ir, node_floormod(ir, piece, wide), COLUMNS);
	Node *end = node2(c->ir, OP_MIN, contract_int(c, each),
			  node_sub(ir, contract_int(c, count), first));
	Node *to = node_add(ir, node_scale(ir, matrix, t->plane), node_scale(ir, col, t->line));
	Node *from = node_add(ir, node_scale(ir, matrix, t->rows * t->cols), col);
	Node *cols = node2(c->ir, OP_MIN, contract_int(c, COLUMNS),
			   node_sub(ir, contract_int(c, t->cols), col));
	Stmt *turn =
		stmt_transpose(c->t, (CallArg){t->buffer, to}, t->line, (CallArg){t->from, from},
			       t->cols, cols, contract_int(c, t->rows));
	return stmt_loop(c->t, HOW_SERIAL, x, NULL, end, turn);
}

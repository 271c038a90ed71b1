/* padded.c - a padded copy of an operand, made before all parts, so that micro-kernels read it
 * unpacked.
 *
 * Input: an operand that is an element of a tensor under conditions, or a function of one, as that of a window which
 * reaches over an edge. Output: the same operand as an element of a copy, under none; statements that fill the copy, in
 * which functions are computed once. The copy's dimensions are the read's, each as long as its index ranges over
 * all axes. Invariant: place and conditions see the axes by the read's dimensions only, so that an
 * element of the copy is one value; nothing is read where its conditions do not hold. */
#include "jit/contract/internal.h"

enum { ROWS_BYTES = 1 << 14, PLANE = 1 << 10 };
/* How many times as large as the tensor the copy may be. */
static const int64_t MOST_GROWTH = 4;

int64_t contract_pitch(int64_t size, Type type, int64_t least)
{
	int64_t line = LINE / (int64_t)type_size(type);
	return size < least / (int64_t)type_size(type) ? size
						       : ((size + line - 1) / line | 1) * line;
}

/* e >= 0 or e > 0 where a multiple of e is one of a dimension, but for a constant: the same of the
 * dimension's coordinate. */
static Node *along(Ir *ir, Node *cond, Node *dim, Node *at)
{
	Node *e = node_sub(ir, cond->src[1], cond->src[0]);
	Affine a = affine_of(ir, e), b = affine_of(ir, dim);
	int64_t of_e = a.n ? a.k[0] : 0, of_dim = a.n ? affine_coefficient(&b, a.atom[0]) : 0;
	if (!of_dim || a.n != b.n)
		return NULL;
	int64_t times = of_dim < 0 ? -of_dim : of_dim, k = of_dim < 0 ? -of_e : of_e;
	Node *rest = node_sub(ir, node_scale(ir, e, times), node_scale(ir, dim, k));
	if (!node_is_const(rest))
		return NULL;
	return node2(ir, (Op)cond->op, node_int(ir, 0), node_add(ir, node_scale(ir, at, k), rest));
}

/* The condition at the copy's coordinates; NULL: it sees more than that. */
static Node *at_coordinates(const Contract *c, Node *cond, const ProblemRead *r, Node *const *at)
{
	Ir *ir = c->ir;
	Node *same = node_replace(ir, cond, r->rank, r->dim, at);
	bool more = false;
	for (int k = 0; k < c->p->naxis; k++)
		more |= node_has(same, c->p->axis[k]);
	if (!more)
		return same;
	same = NULL;
	if ((cond->op == OP_LT || cond->op == OP_LE) && cond->src[0]->type == RICCI_I64)
		for (int d = 0; d < r->rank && !same; d++)
			same = along(ir, cond, r->dim[d], at[d]);
	return same;
}

/* The operand's conditions on the copy's rows, and where they hold along one; *all is both. Those
 * that see more stay with it. False: there are none, or others. */
static bool padded_conditions(const Contract *c, PaddedCopy *b, Operand *f, const ProblemRead *r,
			      Node *const *at, Node **all)
{
	Ir *ir = c->ir;
	Node *last = b->coord[r->rank - 1], *len = node_int(ir, axis_extent(last));
	int kept = 0, nguard = f->nguard;
	b->lo = node_int(ir, 0);
	b->hi = len;
	*all = b->row = node_const_int(ir, RICCI_BOOL, 1);
	for (int g = 0; g < nguard; g++) {
		Node *cond = at_coordinates(c, f->guard[g], r, at);
		if (!cond) {
			f->guard[kept++] = f->guard[g];
			continue;
		}
		if (!node_has(cond, last))
			b->row = node2(ir, OP_AND, b->row, cond);
		else if (!cond_interval(ir, cond, last, &b->lo, &b->hi))
			return false;
		*all = node2(ir, OP_AND, *all, cond);
		f->padded[f->npadded++] = f->guard[g];
	}
	b->lo = node2(ir, OP_MIN, b->lo, len);
	b->hi = node2(ir, OP_MAX, b->hi, b->lo);
	f->nguard = kept;
	return kept < nguard;
}

/* The read that alone tells the operand's value, or of a narrow one what becomes that; NULL: there is more to it. */
static Node *only_read(const Contract *c, const Operand *f, bool narrow)
{
	Node **read;
	if (narrow)
		return contract_read(f);
	if (f->value->type != c->p->acc || node_collect(c->ir, f->value, OP_READ, &read) != 1)
		return NULL;
	Node *first = buffer_read(c->t, read[0]->src[0], node_int(c->ir, 0));
	Node *rest = node_replace(c->ir, f->value, 1, read, &first);
	for (int k = 0; k < c->p->naxis; k++)
		if (node_has(rest, c->p->axis[k]))
			return NULL;
	return read[0];
}

bool contract_padded(Contract *c, Operand *f, bool narrow)
{
	Ir *ir = c->ir;
	Node *read = only_read(c, f, narrow), *held = narrow ? read : f->value;
	PaddedCopy *b = &c->padded[c->npadded];
	const ProblemRead *r = read && f->nguard ? problem_read(c->p, read) : NULL;
	Node *at[RICCI_MAX_RANK], *from = node_int(ir, 0), *place = from, *cond;
	Operand kept = *f;
	int64_t size = 1;
	if (!r || r->rank == 0)
		return false;
	b->rank = r->rank;
	for (int d = r->rank - 1; d >= 0; d--) {
		Node *dim = r->dim[d];
		int64_t most = MOST_GROWTH * tensor_size(read->src[0]), low = dim->lo;
		if (dim->hi - low >= most)
			return false;
		b->coord[d] = tree_axis(c->t, dim->hi - low + 1);
		at[d] = node_is_const(dim) ? dim : node_add(ir, b->coord[d], node_int(ir, low));
		from = node_add(ir, from, node_scale(ir, at[d], r->stride[d]));
		place = node_add(ir, place,
				 node_scale(ir, node_sub(ir, dim, node_int(ir, low)), size));
		b->pitch[d] = size;
		size = contract_pitch(size * (dim->hi - low + 1), (Type)held->type, PLANE);
		if (size > most + LINE)
			return false;
	}
	if (!padded_conditions(c, b, &kept, r, at, &cond) ||
	    !problem_read_inside(c->p, r, at, cond))
		return false;
	Node *element = buffer_read(c->t, read->src[0], from);
	b->value = node_replace(ir, held, 1, &read, &element);
	b->buffer = tree_buffer(c->t, SPACE_SHARED, "padded", (Type)held->type, size);
	Node *copied = buffer_read(c->t, b->buffer, place);
	kept.value = node_replace(ir, f->value, 1, &held, &copied);
	*f = kept;
	c->npadded++;
	return true;
}

/* Rows of the copy, lines along its last dimension, and how many of them a part fills. */
static int64_t row_count(const PaddedCopy *b)
{
	int64_t rows = 1;
	for (int d = 0; d < b->rank - 1; d++)
		rows *= axis_extent(b->coord[d]);
	return rows;
}

static int64_t rows_each(const PaddedCopy *b)
{
	int64_t row = axis_extent(b->coord[b->rank - 1]) * (int64_t)type_size(b->buffer->type);
	return row < ROWS_BYTES ? ROWS_BYTES / row : 1;
}

int64_t padded_copy_parts(const PaddedCopy *b)
{
	return (row_count(b) + rows_each(b) - 1) / rows_each(b);
}

/* Elements lo..hi-1 of a row that begins at `place`. */
static Stmt *fill_piece(Contract *c, const PaddedCopy *b, Node *place, Node *lo, Node *hi,
			Node *value)
{
	Node *x = b->coord[b->rank - 1];
	if (node_is_const(lo) && node_is_const(hi) && lo->u.i >= hi->u.i)
		return NULL;
	Stmt *s =
		stmt_loop(c->t, HOW_VECTOR, x, lo, hi,
			  stmt_store(c->t, b->buffer, node_add(c->ir, place, x), value, RED_NONE));
	s->maybe = true;
	return s;
}

Stmt *padded_copy_fill(Contract *c, const PaddedCopy *b, Node *part)
{
	Ir *ir = c->ir;
	int64_t each = rows_each(b), count = row_count(b);
	Node *first = node_scale(ir, part, each), *x = tree_axis(c->t, each);
	Node *row = node_add(ir, first, x), *place = node_int(ir, 0), *begin = place;
	Node *at[RICCI_MAX_RANK];
	Node *zero = node_const(ir, b->value->type, 0), *end,
	     *of[] = {b->row, b->lo, b->hi, b->value};
	Node *rows = node2(c->ir, OP_MIN, contract_int(c, each),
			   node_sub(ir, contract_int(c, count), first));
	axes_at(ir, row, b->rank - 1, b->coord, at);
	for (int k = 0; k < COUNT(of); k++)
		of[k] = node_replace(ir, of[k], b->rank - 1, b->coord, at);
	for (int d = 0; d < b->rank - 1; d++)
		place = node_add(ir, place, node_scale(ir, at[d], b->pitch[d]));
	end = contract_int(c, axis_extent(b->coord[b->rank - 1]));
	Stmt *inside = fill_piece(c, b, place, begin, of[1], zero);
	inside = stmt_seq(inside, fill_piece(c, b, place, of[1], of[2], of[3]));
	inside = stmt_seq(inside, fill_piece(c, b, place, of[2], end, zero));
	Stmt *line = stmt_if(c->t, of[0], inside, fill_piece(c, b, place, begin, end, zero));
	return stmt_loop(c->t, HOW_SERIAL, x, NULL, rows, line);
}

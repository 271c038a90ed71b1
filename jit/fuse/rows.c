/* rows.c - which subgraphs run row by row: several equations some dimensions of which are the same
 * rows, and which read each other at their own row only; and folds, reductions over the rows.
 *
 * Rows are the first dimensions of all equations, or, where these are too few and there is no fold, a
 * dimension of the first equation and what the others read it by: after sums over an image, M[c] +=
 * X[b,c,y,x], those of Y[b,c,y,x] = X[b,c,y,x]-M[c] are its channels.
 *
 * Input: equations. Output: which dimensions are rows, which equations are folds, whether it is
 * worth it. Invariant: only index functions matter; jit/rows/ makes the loops. */
#include "jit/fuse/internal.h"

#include <math.h>
#include <string.h>

/* With so many rows no others are looked for; fewer are worth it down to some for each thread. A row has
 * so many points at least. */
enum { ROWS_ENOUGH = 64, ROWS_LEAST = 16, ROWS_THREAD = 2, ROW_POINTS = 64 };
/* What a fold adds up stays in the nearest cache, beside a row. */
enum { FOLD_BYTES = 1 << 15 };
enum { LINE_LEAST = 16 }; /* elements of what lanes run along */

/* ---- which subgraphs ---- */

/* Does it reduce what its reads run over first? Then it may be added to row by row. */
static bool is_fold(const Node *c, const Reads *reads)
{
	int rank = tensor_rank(c);
	Type t = (Type)c->type;
	if (comp_reduce(c) == RED_NONE || comp_naxis(c) == rank ||
	    (!type_is_float(t) && type_accumulator(t) != t))
		return false;
	bool by_result = false, by_reduced = false;
	for (int k = 0; k < reads->n; k++) {
		const Node *read = reads->read[k], *first = read->nsrc > 1 ? read->src[1] : NULL;
		by_result |= first && rank && first == comp_axis(c, 0);
		by_reduced |= first == comp_axis(c, rank);
	}
	return by_reduced && !by_result;
}

int subgraph_member(const Subgraph *s, const Node *t)
{
	for (int k = 0; k < s->nmember; k++)
		if (s->member[k] == t)
			return k;
	return -1;
}

Node *rows_axis(const Subgraph *s, int k, int d)
{
	const Node *c = s->member[k];
	return comp_axis(c, (s->fold[k] ? tensor_rank(c) : s->lead[k]) + d);
}

int rows_places(const Subgraph *s, int k)
{
	return tensor_rank(s->member[k]) - (s->fold[k] ? 0 : s->rows);
}

int rows_place(const Subgraph *s, int k, int d)
{
	return s->fold[k] || d < s->lead[k] ? d : d + s->rows;
}

/* Elements over the dimensions of member k behind its rows. */
static int64_t rows_inner(const Subgraph *s, int k)
{
	int64_t n = 1;
	for (int d = s->lead[k] + s->rows; d < tensor_rank(s->member[k]); d++)
		n *= tensor_extent(s->member[k], d);
	return n;
}

int64_t rows_element(const Subgraph *s, int k, int64_t row, int64_t place)
{
	int64_t inner = rows_inner(s, k);
	return (place / inner * subgraph_row_count(s) + row) * inner + place % inner;
}

void rows_split(const Subgraph *s, int k, int64_t element, int64_t *row, int64_t *place)
{
	int64_t inner = rows_inner(s, k), rows = subgraph_row_count(s);
	*row = element / inner % rows;
	*place = element / (inner * rows) * inner + element % inner;
}

/* So many dimensions of c may be rows. A fold to a single number keeps a loop inside the rows. */
static int rows_most(const Subgraph *s, int k)
{
	const Node *c = s->member[k];
	int rank = tensor_rank(c), reduced = comp_naxis(c) - rank;
	if (!s->fold[k])
		return rank - s->lead[k];
	return rank == 0 && reduced > 1 ? reduced - 1 : reduced;
}

/* Rows end where a member is read elsewhere than at the reader's own index; a fold is ready after
 * the last row. */
static void limit_rows(Subgraph *s, int reader, const Node *read)
{
	int at = subgraph_member(s, read->src[0]);
	if (at >= 0 && s->fold[at])
		s->rows = 0;
	for (int d = 0; at >= 0 && d < s->rows; d++)
		if (read->src[1 + s->lead[at] + d] != rows_axis(s, reader, d))
			s->rows = d;
}

/* Are all but the first pointwise over its space? Then it is the main equation. */
static bool all_pointwise(const Subgraph *s)
{
	for (int k = 1; k < s->nmember; k++)
		if (comp_reduce(s->member[k]) != RED_NONE ||
		    !tensor_same_shape(s->member[k], s->member[0]))
			return false;
	return true;
}

int64_t rows_count(const Subgraph *s, int dims)
{
	int64_t n = 1;
	for (int d = 0; d < dims; d++)
		n *= axis_extent(rows_axis(s, 0, d));
	return n;
}

int64_t subgraph_row_count(const Subgraph *s)
{
	return rows_count(s, s->rows);
}

static bool few_rows(const Subgraph *s)
{
	return !s->rows || subgraph_row_count(s) < ROWS_ENOUGH;
}

/* Of the member that has most. */
static double most_points(const Subgraph *s)
{
	double most = 0;
	for (int k = 0; k < s->nmember; k++) {
		double points = comp_points(s->member[k]);
		most = points > most ? points : most;
	}
	return most;
}

/* Rows of few points, a window each, are taken together where enough of them are left. */
static void lengthen_rows(Subgraph *s)
{
	int64_t rows = subgraph_row_count(s);
	double points = most_points(s);
	while (s->rows > 1 && points < ROW_POINTS * (double)rows) {
		rows /= axis_extent(rows_axis(s, 0, s->rows - 1));
		if (rows < ROWS_ENOUGH)
			break;
		s->rows--;
	}
}

/* How many dimensions are rows, given which equations are folds and where the rows begin in others. */
static void count_rows(Subgraph *s, const Reads *reads)
{
	s->rows = RICCI_MAX_RANK;
	for (int k = 0; k < s->nmember; k++) {
		int most = rows_most(s, k);
		s->rows = s->rows < most ? s->rows : most;
		for (int d = 0; d < s->rows; d++)
			if (axis_extent(rows_axis(s, k, d)) != axis_extent(rows_axis(s, 0, d)))
				s->rows = d;
	}
	for (int k = 0; k < s->nmember; k++)
		for (int i = 0; i < reads[k].n; i++)
			limit_rows(s, k, reads[k].read[i]);
	lengthen_rows(s);
}

/* In which dimension member k reads a tensor by the axis that its rows begin at; -1: in none. */
static int common_dimension(const Subgraph *s, const Reads *r, int k, const Node *tensor)
{
	int dim = -1;
	for (int i = 0; i < r->n; i++)
		for (int d = 1; r->read[i]->src[0] == tensor && d < r->read[i]->nsrc; d++)
			if (r->read[i]->src[d] == comp_axis(s->member[k], s->lead[k]))
				dim = d - 1;
	return dim;
}

/* The dimension of a tensor along which the equations that are aligned have their rows; -1: none. */
static int row_dimension(const Subgraph *s, const Reads *reads, const Node *tensor)
{
	int at = subgraph_member(s, tensor), dim = at >= 0 ? s->lead[at] : -1;
	for (int k = 0; k < s->nmember && dim < 0; k++)
		if (s->lead[k] >= 0)
			dim = common_dimension(s, &reads[k], k, tensor);
	return dim;
}

/* Where member k's rows begin, by those of the equations that are aligned: who read it, or read what it does; -1:
 * not known. */
static int aligned_lead(const Subgraph *s, const Reads *reads, int k)
{
	const Node *c = s->member[k];
	int lead = -1;
	for (int i = 0; i < reads[k].n && lead < 0; i++) {
		const Node *read = reads[k].read[i];
		int dim = row_dimension(s, reads, read->src[0]);
		for (int d = 0; dim >= 0 && d < tensor_rank(c); d++)
			if (read->src[1 + dim] == comp_axis(c, d))
				lead = d;
	}
	return lead < 0 ? row_dimension(s, reads, c) : lead;
}

/* Rows that begin with this dimension of the first equation, no folds. */
static void aligned_rows(Subgraph *s, const Reads *reads, int first)
{
	int left = s->nmember - 1;
	memset(s->fold, 0, (size_t)s->nmember);
	s->rows = 0;
	s->lead[0] = first;
	for (int k = 1; k < s->nmember; k++)
		s->lead[k] = -1;
	for (bool more = true; more && left;) {
		more = false;
		for (int k = 1; k < s->nmember; k++) {
			bool found =
				s->lead[k] < 0 && (s->lead[k] = aligned_lead(s, reads, k)) >= 0;
			more |= found;
			left -= found;
		}
	}
	if (left)
		memset(s->lead, 0, (size_t)s->nmember * sizeof *s->lead);
	else
		count_rows(s, reads);
}

static void leading_rows(Subgraph *s, const Reads *reads)
{
	memset(s->lead, 0, (size_t)s->nmember * sizeof *s->lead);
	for (int k = 0; k < s->nmember; k++)
		s->fold[k] = is_fold(s->member[k], &reads[k]);
	count_rows(s, reads);
}

/* ---- which rows are worth it ---- */

/* Its points are about as many as the elements that it moves: it waits for memory, and nothing is
 * gained by blocks. */
static bool is_streaming(Ir *ir, const Subgraph *s, int k, int nread, Node *const *reads)
{
	const Node *c = s->member[k];
	double elements = (double)tensor_size(c);
	for (int i = 0; i < nread; i++)
		elements += (double)tensor_size(reads[i]);
	return comp_work(ir, c, s->lead[k] + s->rows) <= 4 * elements;
}

static Reads member_reads(Ir *ir, const Subgraph *s, int k)
{
	return fuse_reads_in(ir, comp_body(s->member[k]));
}

/* A read within a row that jumps from line to line: of a line's elements each row has one. */
static bool read_goes_across(const Subgraph *s, int reader, const Node *n)
{
	const Node *c = s->member[reader];
	bool within = false, rows = false, along = false;
	for (int k = 0; k < comp_naxis(c) && n->nsrc > 1; k++) {
		Node *axis = comp_axis(c, k), *last = n->src[n->nsrc - 1];
		bool row = false;
		for (int d = 0; d < s->rows; d++)
			row |= axis == rows_axis(s, reader, d);
		for (int d = 1; d < n->nsrc && !row; d++)
			within |= node_has(n->src[d], axis);
		rows |= row && node_has(last, axis);
		along |= !row && node_has(last, axis);
	}
	return within && rows && !along;
}

/* Is one element a row, and lanes across rows longer than any within one? */
static bool has_short_lines(const Subgraph *s, int k)
{
	const Node *c = s->member[k];
	int rank = tensor_rank(c);
	int64_t longest = 1;
	for (int a = rank; a < comp_naxis(c); a++) {
		int64_t n = axis_extent(comp_axis(c, a));
		longest = n > longest ? n : longest;
	}
	return s->lead[k] + s->rows == rank && longest < LINE_LEAST &&
	       axis_extent(comp_axis(c, rank - 1)) > longest;
}

/* Has an index another value for each value of the axis? A quotient serves several. */
static bool tells_apart(const Node *index, const Node *axis)
{
	bool tells = index == axis;
	for (int k = index->op == OP_READ; k < index->nsrc && !tells; k++)
		tells = index->op != OP_FLOORDIV && tells_apart(index->src[k], axis);
	return tells;
}

/* Does nothing that member k reads serve several rows? Each read runs over all rows, then, elements of its
 * own for each, and a product of one row is as good as one of all, which would only be a batch of these. */
static bool is_batch(Ir *ir, const Subgraph *s, int k)
{
	bool all = !s->fold[k] && !has_short_lines(s, k);
	Reads r = all ? member_reads(ir, s, k) : (Reads){0};
	for (int i = 0; i < r.n; i++)
		for (int d = 0; d < s->rows; d++) {
			bool found = false;
			for (int j = 1; j < r.read[i]->nsrc; j++)
				found |= tells_apart(r.read[i]->src[j], rows_axis(s, k, d));
			all &= found;
		}
	return all;
}

bool rows_go_across(Ir *ir, const Subgraph *s)
{
	for (int k = 0; k < s->nmember && s->rows; k++) {
		Reads r = member_reads(ir, s, k);
		for (int i = 0; i < r.n; i++)
			if (read_goes_across(s, k, r.read[i]))
				return true;
	}
	return false;
}

/* Does each equation run row by row as well as by itself? */
static bool rows_gain(Ir *ir, const Subgraph *s)
{
	for (int k = 0; k < s->nmember; k++) {
		Node **reads;
		int nread = comp_reads(ir, s->member[k], &reads);
		if (!is_streaming(ir, s, k, nread, reads) && !is_batch(ir, s, k))
			return false;
	}
	return !rows_go_across(ir, s);
}

/* With how many of its dimensions as rows each equation runs as well as by itself; all, if with none. */
static int rows_best(Ir *ir, const Subgraph *sub)
{
	Subgraph s = *sub;
	while (s.rows > 1 && !rows_gain(ir, &s))
		s.rows--;
	return s.rows > 0 && rows_gain(ir, &s) ? s.rows : sub->rows;
}

bool subgraph_rows(Ir *ir, Subgraph *s)
{
	s->rows = 0;
	s->fold = arena_alloc(&ir->arena, (size_t)s->nmember + 1);
	s->lead = arena_alloc(&ir->arena, ((size_t)s->nmember + 1) * sizeof *s->lead);
	for (int k = 0; k < s->nmember; k++)
		if (s->member[k]->op != OP_COMP || !comp_is_dense(s->member[k]))
			return s->nmember == 1;
	if (all_pointwise(s))
		return true;
	Reads *reads = arena_alloc(&ir->arena, (size_t)s->nmember * sizeof *reads);
	for (int k = 0; k < s->nmember; k++)
		reads[k] = member_reads(ir, s, k);
	leading_rows(s, reads);
	for (int d = 0; d < tensor_rank(s->member[0]) && few_rows(s); d++) {
		aligned_rows(s, reads, d);
		if (rows_go_across(ir, s))
			s->rows = 0;
	}
	if (few_rows(s))
		leading_rows(s, reads);
	for (int d = 0; d < tensor_rank(s->member[0]) && !s->rows; d++)
		aligned_rows(s, reads, d);
	s->best = rows_best(ir, s);
	return s->rows > 0;
}

/* Enough rows for the threads? */
static bool enough_rows(const Subgraph *s, int threads)
{
	int64_t rows = subgraph_row_count(s);
	return rows >= ROWS_ENOUGH || (rows >= ROWS_LEAST && rows >= ROWS_THREAD * threads);
}

/* How much longer than its share a thread works that has most rows. */
static double rows_imbalance(double rows, int threads)
{
	return ceil(rows / threads) * threads / rows;
}

static bool reads_member(Ir *ir, const Node *c, const Node *t)
{
	Node **reads;
	int n = comp_reads(ir, c, &reads);
	bool found = false;
	for (int k = 0; k < n; k++)
		found |= reads[k] == t;
	return found;
}

/* Bytes of all rows of the members that are still to be read while another is computed: the most at any
 * time. */
static double bytes_live(Ir *ir, const Subgraph *s)
{
	double *live = arena_alloc(&ir->arena, ((size_t)s->nmember + 1) * sizeof *live), most = 0;
	for (int k = 0; k < s->nmember; k++) {
		int last = s->nmember - 1;
		while (last > k && !reads_member(ir, s->member[last], s->member[k]))
			last--;
		for (int j = k; j <= last && !s->fold[k]; j++)
			live[j] += (double)tensor_bytes(s->member[k]);
	}
	for (int k = 0; k < s->nmember; k++)
		most = live[k] > most ? live[k] : most;
	return most;
}

double subgraph_rows_suit(Ir *ir, int n, Node *const *member, const DeviceModel *dev)
{
	Subgraph s = {.member = (Node **)member, .nmember = n};
	for (int k = 0; k < n; k++)
		if (member[k]->op != OP_COMP)
			return 0;
	if (most_points(&s) < ROWS_LEAST * ROW_POINTS) /* whatever its rows are */
		return 0;
	if (!subgraph_rows(ir, &s) || !s.rows)
		return 0;
	s.rows = s.best;
	if (!rows_gain(ir, &s))
		return 0;
	for (int k = 0; k < n; k++)
		if (s.fold[k] && tensor_bytes(member[k]) > FOLD_BYTES)
			return 0;
	double rows = (double)subgraph_row_count(&s);
	bool suits = enough_rows(&s, dev->threads) && most_points(&s) >= ROW_POINTS * rows &&
		     bytes_live(ir, &s) <= dev->core * rows;
	return suits ? rows_imbalance(rows, dev->threads) : 0;
}

/* ---- which equations share a loop ---- */

/* Are members from number `from` on, those of the same loop, read at the reader's own place only? */
static bool reads_own_place(Ir *ir, const Subgraph *s, int from, int reader)
{
	Reads r = member_reads(ir, s, reader);
	for (int i = 0; i < r.n; i++) {
		int at = subgraph_member(s, r.read[i]->src[0]);
		for (int d = 0; at >= from && d < rows_places(s, at); d++)
			if (r.read[i]->src[1 + rows_place(s, at, d)] !=
			    comp_axis(s->member[reader], rows_place(s, reader, d)))
				return false;
	}
	return true;
}

/* Is equation k pointwise over the places of a row? */
static bool is_pointwise(const Subgraph *s, int k)
{
	const Node *c = s->member[k];
	return s->fold[k] ? comp_naxis(c) == tensor_rank(c) + s->rows : comp_reduce(c) == RED_NONE;
}

/* May others share its loop? Those of a reduction take its result. */
static bool may_lead(const Subgraph *s, int k)
{
	return !s->fold[k] || is_pointwise(s, k);
}

/* The end of the equations from k on that one loop over the places of a row computes. */
static int loop_from(Ir *ir, const Subgraph *s, int k)
{
	int end = k + 1;
	const Node *first = s->member[k];
	int rank = rows_places(s, k);
	for (; may_lead(s, k) && end < s->nmember && is_pointwise(s, end); end++) {
		const Node *c = s->member[end];
		bool same = rows_places(s, end) == rank;
		for (int d = 0; d < rank && same; d++)
			same = tensor_extent(c, rows_place(s, end, d)) ==
			       tensor_extent(first, rows_place(s, k, d));
		if (!same || !reads_own_place(ir, s, k, end))
			break;
	}
	return end;
}

/* Is member k needed by others than those before `end`? */
static bool needed_after(Ir *ir, const Subgraph *s, int k, int end)
{
	bool needed = s->stored[k];
	for (int j = end; j < s->nmember && !needed; j++)
		needed = reads_member(ir, s->member[j], s->member[k]);
	return needed;
}

static RowLoops loops_of(Ir *ir, const Subgraph *s)
{
	RowLoops l = {arena_alloc(&ir->arena, ((size_t)s->nmember + 1) * sizeof *l.end),
		      arena_alloc(&ir->arena, (size_t)s->nmember + 1)};
	for (int first = 0, end; first < s->nmember; first = end) {
		end = loop_from(ir, s, first);
		for (int k = first; k < end; k++) {
			l.end[k] = end;
			l.outlives[k] = needed_after(ir, s, k, end);
		}
	}
	return l;
}

void subgraph_loops(Ir *ir, Subgraph *s)
{
	RowLoops *loops = arena_alloc(&ir->arena, (size_t)s->rows * sizeof *loops);
	Subgraph fewer = *s;
	for (fewer.rows = 1; fewer.rows <= s->rows; fewer.rows++)
		loops[fewer.rows - 1] = loops_of(ir, &fewer);
	s->loops = loops;
}

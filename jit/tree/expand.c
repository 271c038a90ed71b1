/* expand.c - sums of short rows, one in each iteration of a serial loop, become an array of sums (scalar expansion:
 * Padua, Wolfe 1986), and the loop as many as it has statements, one behind the other. What was a call for each row is
 * one for a box of rows then, and what is made of a row's sums runs in lanes along the rows.
 *
 * Input: a loop tree for a dialect whose vectors are calls. Output: the same, where such loops are cut up.
 * Invariant: what the statements of such a loop store beside the sums, none of them reads. */
#include "jit/tree/tree.h"

enum { ROWS_MOST = 1024, SUMS_MOST = 8 };

/* A loop that can be cut up, with the sums that it has for each row. */
typedef struct Rows {
	Tree *t;
	Stmt *loop;
	int n;
	Node *one[SUMS_MOST], *all[SUMS_MOST]; /* buffers of one element, and of one for each row */
} Rows;

static int sum_place(const Rows *r, const Node *buffer)
{
	for (int k = 0; k < r->n; k++)
		if (r->one[k] == buffer)
			return k;
	return -1;
}

/* A store of one element for each row, beside the sums. */
static bool is_result(const Rows *r, const Stmt *s)
{
	int64_t step = affine_stride(r->t->ir, s->index, r->loop->axis);
	return step != 0 && step != INT64_MIN && !stmt_uses(r->loop->body, s, s->buffer);
}

/* What a loop of one iteration is around, in it, too; else s. */
static const Stmt *without_single(Tree *t, const Stmt *s)
{
	while (s->kind == STMT_LOOP && s->how == HOW_SERIAL && axis_extent(s->axis) == 1 &&
	       !s->maybe && s->body && !s->body->next)
		s = stmt_replace(t, s->body, 1, &s->axis, &s->lo);
	return s;
}

/* A short vector loop that adds to sums alone. */
static bool is_line(const Rows *r, const Stmt *s, int64_t chunk)
{
	s = without_single(r->t, s);
	bool line = s->kind == STMT_LOOP && s->how == HOW_VECTOR &&
		    2 * axis_extent(s->axis) <= chunk && s->body;
	for (const Stmt *i = line ? s->body : NULL; i; i = i->next)
		line = line && i->kind == STMT_STORE && i->red != RED_NONE &&
		       sum_place(r, i->buffer) >= 0;
	return line;
}

/* Finds the sums; false: the loop can't be cut up, or has none. */
static bool rows_find(Rows *r, int64_t chunk)
{
	const Stmt *loop = r->loop;
	bool lines = false;
	if ((loop->how != HOW_SERIAL && loop->how != HOW_UNROLL) || axis_extent(loop->axis) < 2 ||
	    axis_extent(loop->axis) > ROWS_MOST)
		return false;
	for (const Stmt *s = loop->body; s; s = s->next) {
		if (s->kind == STMT_ALLOC) {
			if (tree_find(r->t, s->buffer)->space != SPACE_LOCAL ||
			    tensor_size(s->buffer) != 1 || r->n == SUMS_MOST)
				return false;
			r->one[r->n++] = s->buffer;
		} else if (s->kind == STMT_STORE) {
			if (sum_place(r, s->buffer) < 0 && !is_result(r, s))
				return false;
		} else if (is_line(r, s, chunk)) {
			lines = true;
		} else {
			return false;
		}
	}
	return lines;
}

/* One statement, for the rows' own sums. */
static Stmt *rows_statement(const Rows *r, const Stmt *s, Node *const *from, Node *const *to)
{
	Stmt alone = *without_single(r->t, s);
	alone.next = NULL;
	Stmt *copy = stmt_replace(r->t, &alone, r->n, from, to);
	for (Stmt *i = copy->kind == STMT_LOOP ? copy->body : copy; i; i = i->next) {
		int k = sum_place(r, i->buffer);
		if (k >= 0) {
			i->buffer = r->all[k];
			i->index = r->loop->axis;
		}
	}
	return copy;
}

static Stmt *loop_like(const Rows *r, How how, Stmt *body)
{
	Stmt *loop = stmt_loop(r->t, how, r->loop->axis, r->loop->lo, r->loop->hi, body);
	loop->maybe = r->loop->maybe;
	return loop;
}

/* The loop, cut up: neighbouring statements of one element for each row stay together. */
static Stmt *rows_cut(Rows *r)
{
	Tree *t = r->t;
	Node *from[SUMS_MOST], *to[SUMS_MOST];
	Stmt *all = NULL, *elements = NULL;
	for (int k = 0; k < r->n; k++) {
		r->all[k] = tree_buffer(t, SPACE_LOCAL, "sums", (Type)r->one[k]->type,
					axis_extent(r->loop->axis));
		from[k] = buffer_read(t, r->one[k], node_int(t->ir, 0));
		to[k] = buffer_read(t, r->all[k], r->loop->axis);
		all = stmt_seq(all, stmt_alloc(t, r->all[k]));
	}
	for (const Stmt *s = r->loop->body; s; s = s->next) {
		if (s->kind == STMT_STORE)
			elements = stmt_seq(elements, rows_statement(r, s, from, to));
		if (elements && (s->kind == STMT_LOOP || !s->next)) {
			all = stmt_seq(all, loop_like(r, HOW_VECTOR, elements));
			elements = NULL;
		}
		if (s->kind == STMT_LOOP)
			all = stmt_seq(all,
				       loop_like(r, HOW_SERIAL, rows_statement(r, s, from, to)));
	}
	return all;
}

void expand_sums(Tree *t, Stmt *s, int64_t chunk)
{
	for (; s; s = s->next) {
		Rows r = {.t = t, .loop = s};
		if (s->kind == STMT_LOOP && rows_find(&r, chunk)) {
			s = stmt_instead(s, rows_cut(&r));
			continue;
		}
		expand_sums(t, s->body, chunk);
		expand_sums(t, s->otherwise, chunk);
	}
}

/* batch.c - extents that tensors of a task have in common, and that may be smaller.
 *
 * Input: a subgraph. Output: its batches. Such is a dimension of which each element of every tensor that has it
 * depends on elements at its own index there only, or is a sum over all of it to which rows of zeros add nothing;
 * and the task's text with ? in place of its extent, which tasks that differ in it alone share. Only index
 * functions are asked. Invariant: results of such a task are those of a larger batch with more rows: of zeros
 * where it sums over them, else of any that may be there. */
#include "jit/fuse/subgraph.h"

#include <math.h>
#include <string.h>

#define UNKNOWN ((double)NAN)
#define ANY	((double)INFINITY)

typedef struct Search {
	Ir *ir;
	const Subgraph *sub;
	TaskBatch *b;
	Node *axis; /* the member's, over the batch; NULL: it has none */
	double *row; /* of each member: its value in a row where all inputs that have the batch are zeros, as far
			* as it is known: UNKNOWN, a number; ANY, or none */
	double *value; /* the same by id */
	bool *stands; /* by id: the axis is in it, not only in an element of a tensor that it reads */
	bool draws;   /* the member draws random numbers */
	bool good;
} Search;

static int input_of(const Subgraph *s, const Node *t)
{
	for (int k = 0; k < s->ninput; k++)
		if (s->input[k] == t)
			return k;
	return -1;
}

/* A read at the axis has it bare as one dimension, in all reads of a tensor the same, and nowhere else; all others
 * are of tensors without a batch. */
static void see_read(Search *q, const Node *read)
{
	const Node *t = read->src[0];
	int k = input_of(q->sub, t), m = k < 0 ? subgraph_member(q->sub, t) : -1, d = -1;
	for (int j = 1; j < read->nsrc && q->axis; j++)
		if (q->stands[read->src[j]->id]) {
			q->good &= d < 0 && read->src[j] == q->axis &&
				   tensor_extent(t, j - 1) == q->b->extent;
			d = j - 1;
		}
	if (k >= 0 && q->b->input[k] < 0)
		q->b->input[k] = d;
	q->good &= d == (k >= 0 ? q->b->input[k] : m >= 0 ? q->b->member[m] : -1);
	q->value[read->id] = m >= 0 ? q->row[m] : d >= 0 ? 0 : UNKNOWN;
}

/* The value of n in a row of zeros. Sources were seen before. */
static double value_of(const Search *q, const Node *n)
{
	double v[3] = {0}, r;
	bool known = n->nsrc > 0 && n->nsrc <= 2, finite = true;
	for (int j = 0; j < n->nsrc; j++) {
		v[j % 3] = q->value[n->src[j]->id];
		known &= isfinite(v[j % 3]);
		finite &= !isinf(v[j % 3]);
	}
	if (n->op == OP_CONST && type_is_float((Type)n->type))
		return isfinite(n->u.f) ? n->u.f : ANY;
	if (n->op == OP_MUL && finite && (v[0] == 0 || v[1] == 0))
		return 0;
	if (n->op == OP_SELECT && v[1] == v[2])
		return v[1];
	if (!known || !type_is_float((Type)n->type))
		return finite && node_stays_finite(n) ? UNKNOWN : ANY;
	r = n->op == OP_CAST ? v[0]
	    : n->nsrc == 1   ? scalar_unary((Op)n->op, v[0])
			     : scalar_binary((Op)n->op, v[0], v[1]);
	return fabs(r) <= type_largest((Type)n->type) ? r : ANY;
}

static void see_node(void *user, Node *n)
{
	Search *q = user;
	bool draws = node_draws(n);
	bool stands = n == q->axis;
	q->draws |= draws;
	if (n->op == OP_READ)
		see_read(q, n);
	else if (!node_is_tensor(n))
		q->value[n->id] = value_of(q, n);
	for (int j = 0; j < n->nsrc && n->op != OP_READ && !node_is_tensor(n); j++)
		stands |= q->stands[n->src[j]->id];
	q->stands[n->id] = stands;
}

/* A member's value in a row of zeros, given its body's there. */
static double row_of(const Node *c, double body)
{
	bool sum = comp_reduce(c) != RED_NONE && body != 0;
	return !sum && comp_reduce(c) <= RED_ADD ? body : isinf(body) ? ANY : UNKNOWN;
}

/* Is member k right with this axis, given what is known of tensors? */
static bool member_with(Search *q, int k, Node *axis)
{
	const Node *c = q->sub->member[k];
	int along = tensor_rank(c) - 1;
	while (along >= 0 && comp_lhs(c, along) != axis)
		along--;
	q->axis = axis;
	q->draws = false;
	q->good = !axis || axis_extent(axis) == q->b->extent;
	for (int d = 0; d < tensor_rank(c); d++) {
		q->good &= !axis || d == along || !node_has(comp_lhs(c, d), axis);
		node_walk(q->ir, comp_lhs(c, d), see_node, q);
	}
	node_walk(q->ir, comp_body(c), see_node, q);
	double body = q->value[comp_body(c)->id];
	q->row[k] = row_of(c, body);
	q->b->member[k] = along;
	q->good &= !axis || !q->draws || !along; /* elements draw by their number */
	if (axis && along < 0) {
		q->good &= comp_reduce(c) == RED_ADD && body == 0 && type_is_float((Type)c->type);
		q->b->zeros = true;
		q->row[k] = UNKNOWN;
	}
	return q->good;
}

/* Finds the axis of member k. */
static bool member_find(Search *q, int k)
{
	const Node *c = q->sub->member[k];
	TaskBatch before = *q->b;
	size_t n = (size_t)q->sub->ninput * sizeof *before.input;
	int *input = arena_alloc(&q->ir->arena, n + 1);
	memcpy(input, before.input, n);
	for (int a = 0; a <= comp_naxis(c); a++) {
		q->b->axis[k] = a < comp_naxis(c) ? a : -1;
		if (member_with(q, k, a < comp_naxis(c) ? comp_axis(c, a) : NULL))
			return true;
		memcpy(before.input, input, n);
		*q->b = before;
	}
	return false;
}

/* The same for what has turned out to vary since; and rows of zeros are no indices. */
static bool batch_holds(Search *q)
{
	const Subgraph *s = q->sub;
	bool good = true;
	for (int k = 0; k < s->nmember && good; k++) {
		int a = q->b->axis[k];
		good = member_with(q, k, a < 0 ? NULL : comp_axis(s->member[k], a));
		good &= !q->b->zeros || q->b->member[k] < 0 ||
			type_is_float((Type)s->member[k]->type);
	}
	for (int k = 0; k < s->ninput && good; k++)
		good = !q->b->zeros || q->b->input[k] < 0 || type_is_float((Type)s->input[k]->type);
	return good;
}

/* Is axis `a` of the first member one? */
static bool batch_try(Search *q, int a)
{
	const Subgraph *s = q->sub;
	TaskBatch *b = q->b;
	Arena *arena = &q->ir->arena;
	b->extent = axis_extent(comp_axis(s->member[0], a));
	b->axis = arena_alloc(arena, (size_t)(2 * s->nmember + s->ninput) * sizeof *b->axis);
	b->member = b->axis + s->nmember;
	b->input = b->member + s->nmember;
	b->axis[0] = a;
	for (int k = 0; k < s->nmember + s->ninput; k++)
		b->member[k] = -1;
	bool good = b->extent > 1 && member_with(q, 0, comp_axis(s->member[0], a));
	for (int k = 1; k < s->nmember && good; k++)
		good = member_find(q, k);
	return good && batch_holds(q);
}

int subgraph_batches(Ir *ir, const Subgraph *s, TaskBatch found[TASK_BATCHES])
{
	size_t n = ir->count + 1;
	Search q = {.ir = ir, .sub = s};
	q.value = arena_alloc(&ir->arena, (n + (size_t)s->nmember) * sizeof *q.value);
	q.row = q.value + n;
	q.stands = arena_alloc(&ir->arena, n);
	int naxis = s->member[0]->op == OP_COMP ? comp_naxis(s->member[0]) : 0, count = 0;
	for (int a = 0; a < naxis && count < TASK_BATCHES; a++) {
		found[count] = (TaskBatch){0};
		q.b = &found[count];
		count += batch_try(&q, a);
	}
	return count;
}

/* ---- the text ---- */

/* Behind the a-th range of an equation: " where i<6, j<9". */
static const char *range_of(const char *line, size_t n, int a)
{
	static const char where[] = " where ";
	const char *found = NULL;
	for (const char *s = line; (size_t)(s - line) + strlen(where) < n; s++)
		if (!strncmp(s, where, strlen(where)))
			found = s + strlen(where);
	for (; found && a > 0; a--)
		found = found + strcspn(found, ",") + 1;
	return found ? found + strcspn(found, "<") + 1 : NULL;
}

/* The d-th extent of a line of an input. */
static const char *extent_of(const char *line, int d)
{
	const char *at = strchr(line + strlen("input "), ' ') + 1;
	for (; d > 0; d--)
		at = strchr(at, 'x') + 1;
	return at;
}

void task_family(Text *out, const Task *t, int b)
{
	const Subgraph *s = &t->sub;
	const TaskBatch *batch = &t->batch[b];
	const char *next, *line = t->text;
	for (int k = -1; *line;
	     k++, line = next) { /* behind the first line the inputs, then members */
		size_t n = strcspn(line, "\n") + 1;
		int m = k - s->ninput;
		const char *at = NULL;
		next = line + n;
		if (m >= 0 && batch->axis[m] >= 0)
			at = range_of(line, n, batch->axis[m]);
		else if (m < 0 && k >= 0 && batch->input[k] >= 0)
			at = extent_of(line, batch->input[k]);
		text_put(out, line, at ? (size_t)(at - line) : n);
		if (!at)
			continue;
		at += strspn(at, "0123456789");
		text_add(out, "?");
		text_put(out, at, (size_t)(next - at));
	}
}

/* batch.c - the dimension 0 that tensors of a task have in common, and that may be shorter.
 *
 * Input: a subgraph. Output: its batch, where each element of every tensor that has it depends on elements at
 * its own index there only, or is a sum over all of it to which rows of zeros add nothing; and the task's text
 * with ? in place of its extent, which tasks that differ in it alone share. Only index functions are asked.
 * Invariant: results of such a task are those of a larger batch with more rows: of zeros where it sums over
 * them, else of any that may be there. */
#include "jit/fuse/subgraph.h"

#include <math.h>
#include <string.h>

typedef struct Search {
	Ir *ir;
	const Subgraph *sub;
	TaskBatch *b;
	Node *axis;	  /* the member's, over the batch; NULL: it has none */
	bool *vanishes;	  /* of each member: it is zero where the inputs are */
	bool *zero, *may; /* by id: the node is zero where inputs are; it may be infinite */
	bool *stands; /* by id: the axis is in it, not only in an element of a tensor that it reads */
	bool good;
} Search;

static int input_of(const Subgraph *s, const Node *t)
{
	for (int k = 0; k < s->ninput; k++)
		if (s->input[k] == t)
			return k;
	return -1;
}

/* A read at the axis has it bare as dimension 0, and nowhere else; all others are of tensors without a batch. */
static void see_read(Search *q, const Node *read)
{
	const Node *t = read->src[0];
	int k = input_of(q->sub, t), m = k < 0 ? subgraph_member(q->sub, t) : -1;
	bool has = false, bare = true;
	for (int j = 1; j < read->nsrc && q->axis; j++) {
		bool here = q->stands[read->src[j]->id];
		has |= here;
		bare &= !here || (j == 1 && read->src[j] == q->axis);
	}
	if (has && k >= 0)
		q->b->input[k] = true;
	bool varies = k >= 0 ? q->b->input[k] : m >= 0 && q->b->member[m];
	q->good &= has == varies && bare && (!has || tensor_extent(t, 0) == q->b->extent);
	q->zero[read->id] = has && (k >= 0 || q->vanishes[m]);
}

bool node_stays_finite(const Node *n)
{
	switch ((Op)n->op) {
	case OP_CONST:
		return !type_is_float((Type)n->type) || isfinite(n->u.f);
	case OP_DIV:
		return node_is_const(n->src[1]) && n->src[1]->u.f != 0;
	case OP_POW:
	case OP_EXP:
	case OP_EXPM1:
	case OP_LOG:
	case OP_LOG1P:
	case OP_SQRT:
	case OP_RSQRT:
	case OP_TAN:
		return false;
	default:
		return true;
	}
}

static bool all_of(const Node *n, const bool *of)
{
	bool all = n->nsrc > 0;
	for (int j = 0; j < n->nsrc; j++)
		all &= of[n->src[j]->id];
	return all;
}

/* Is n zero where its reads at the batch are, infinite numbers left out? Sources were seen before. */
static bool is_zero(const Search *q, const Node *n)
{
	const bool *zero = q->zero, *may = q->may;
	switch ((Op)n->op) {
	case OP_CONST:
		return node_is_value(n, 0);
	case OP_MUL:
		return (zero[n->src[0]->id] && !may[n->src[1]->id]) ||
		       (zero[n->src[1]->id] && !may[n->src[0]->id]);
	case OP_DIV:
		return zero[n->src[0]->id] && node_is_const(n->src[1]) && n->src[1]->u.f != 0;
	case OP_SELECT:
		return zero[n->src[1]->id] && zero[n->src[2]->id];
	case OP_ADD:
	case OP_SUB:
	case OP_NEG:
	case OP_CAST:
	case OP_MIN:
	case OP_MAX:
	case OP_ABS:
	case OP_SQRT:
	case OP_TANH:
	case OP_TF32:
		return all_of(n, zero);
	default:
		return false;
	}
}

static void see_node(void *user, Node *n)
{
	Search *q = user;
	bool stands = n == q->axis,
	     may = !node_stays_finite(n) || n->op == OP_RANDOM || n->op == OP_NORMAL;
	if (n->op == OP_READ) {
		see_read(q, n);
	} else {
		q->zero[n->id] = is_zero(q, n);
		for (int j = 0; j < n->nsrc && !node_is_tensor(n); j++) {
			may |= q->may[n->src[j]->id];
			stands |= q->stands[n->src[j]->id];
		}
	}
	q->may[n->id] = may;
	q->stands[n->id] = stands;
}

/* Is member k right with this axis, given what is known of tensors? */
static bool member_with(Search *q, int k, Node *axis)
{
	const Node *c = q->sub->member[k];
	bool along = axis && tensor_rank(c) > 0 && comp_lhs(c, 0) == axis;
	q->axis = axis;
	q->good = !axis || axis_extent(axis) == q->b->extent;
	for (int d = along; d < tensor_rank(c); d++) {
		q->good &= !axis || !node_has(comp_lhs(c, d), axis);
		node_walk(q->ir, comp_lhs(c, d), see_node, q);
	}
	node_walk(q->ir, comp_body(c), see_node, q);
	q->vanishes[k] = along && comp_reduce(c) <= RED_ADD && q->zero[comp_body(c)->id];
	q->b->member[k] = along;
	if (axis && !along) {
		q->good &= comp_reduce(c) == RED_ADD && q->zero[comp_body(c)->id] &&
			   type_is_float((Type)c->type);
		q->b->zeros = true;
	}
	return q->good;
}

/* Finds the axis of member k. */
static bool member_find(Search *q, int k)
{
	const Node *c = q->sub->member[k];
	TaskBatch before = *q->b;
	size_t n = (size_t)q->sub->ninput;
	bool *input = arena_alloc(&q->ir->arena, n + 1);
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
		good &= !q->b->zeros || !q->b->member[k] || type_is_float((Type)s->member[k]->type);
	}
	for (int k = 0; k < s->ninput && good; k++)
		good = !q->b->zeros || !q->b->input[k] || type_is_float((Type)s->input[k]->type);
	return good;
}

/* With axis `a` of the first member; its extent. */
static int64_t batch_try(Search *q, int a)
{
	const Subgraph *s = q->sub;
	TaskBatch *b = q->b;
	memset(b->input, 0, (size_t)s->ninput);
	memset(b->member, 0, (size_t)s->nmember);
	b->zeros = false;
	b->axis[0] = a;
	b->extent = axis_extent(comp_axis(s->member[0], a));
	bool good = member_with(q, 0, comp_axis(s->member[0], a));
	for (int k = 1; k < s->nmember && good; k++)
		good = member_find(q, k);
	return good && batch_holds(q) ? b->extent : 0;
}

TaskBatch subgraph_batch(Ir *ir, const Subgraph *s)
{
	TaskBatch b = {0};
	size_t n = ir->count + 1;
	bool *flags = arena_alloc(&ir->arena, 3 * n + 2 * (size_t)s->nmember + (size_t)s->ninput);
	b.axis = arena_alloc(&ir->arena, (size_t)s->nmember * sizeof *b.axis);
	b.member = flags + 3 * n;
	b.input = b.member + 2 * s->nmember;
	Search q = {.ir = ir, .sub = s, .b = &b, .zero = flags, .may = flags + n};
	q.stands = flags + 2 * n;
	q.vanishes = b.member + s->nmember;
	int naxis = s->member[0]->op == OP_COMP ? comp_naxis(s->member[0]) : 0;
	int64_t extent = 0;
	for (int a = 0; a < naxis && extent < 2; a++)
		extent = batch_try(&q, a);
	b.extent = extent > 1 ? extent : 0;
	return b;
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

void task_family(Text *out, const Task *t)
{
	const Subgraph *s = &t->sub;
	const char *next, *line = t->text;
	for (int k = -1; *line;
	     k++, line = next) { /* behind the first line the inputs, then members */
		size_t n = strcspn(line, "\n") + 1;
		int m = k - s->ninput;
		const char *at = NULL;
		next = line + n;
		if (m >= 0 && t->batch.axis[m] >= 0)
			at = range_of(line, n, t->batch.axis[m]);
		else if (m < 0 && k >= 0 && t->batch.input[k])
			at = strchr(line + strlen("input "), ' ') + 1;
		text_put(out, line, at ? (size_t)(at - line) : n);
		if (!at)
			continue;
		at += strspn(at, "0123456789");
		text_add(out, "?");
		text_put(out, at, (size_t)(next - at));
	}
}

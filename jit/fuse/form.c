/* form.c - equations of the same form as one equation with an axis more.
 *
 * In: equations that differ in the tensors they read, and in indices that run on from one to the next
 * (X[0,b,i], X[1,b,i] ..). Out: T[g,..], which is equation number g. */
#include "jit/fuse/internal.h"

#include <string.h>

enum {
	VISITS_MOST = 4096
}; /* nodes of two bodies that are looked at: bodies are graphs, not trees */

typedef struct Match {
	Ir *ir;
	Form *form;
	int k, left;
} Match;

/* Of the body of `form` number k: other stands where its first one has read. */
static bool match_read(Match *m, Node *read, Node *other)
{
	Form *f = m->form;
	const Node *t = read->src[0];
	if (!tensor_same_shape(t, other->src[0]) || t->type != other->src[0]->type)
		return false;
	for (int d = 1; d < read->nsrc; d++)
		if (read->src[d] != other->src[d] &&
		    (node_reads(m->ir, read->src[d]) ||
		     !node_is_const(node_sub(m->ir, other->src[d], read->src[d]))))
			return false;
	for (int i = 0; i < f->nrow; i++)
		if (f->read[i * f->n] == read) {
			Node **there = &f->read[i * f->n + m->k];
			bool same = !*there || *there == other;
			*there = other;
			return same;
		}
	if (m->k > 0)
		return false;
	if (f->nrow == f->room) {
		Node **old = f->read;
		f->room = f->room ? 2 * f->room : 8;
		f->read = arena_alloc(&m->ir->arena, (size_t)(f->room * f->n) * sizeof *old);
		if (old)
			memcpy(f->read, old, (size_t)(f->nrow * f->n) * sizeof *old);
	}
	f->read[f->nrow++ * f->n] = read;
	return true;
}

/* Might a and b be of one form, as far as one look tells? */
static bool is_alike(const Node *a, const Node *b)
{
	return a->op == b->op && a->type == b->type && a->nsrc == b->nsrc &&
	       (a->op != OP_READ || tensor_same_shape(a->src[0], b->src[0]));
}

static bool match(Match *m, Node *a, Node *b)
{
	if (m->left-- <= 0 || !is_alike(a, b))
		return false;
	if (a->op == OP_READ)
		return match_read(m, a, b);
	if (a->nsrc == 0 || node_is_tensor(a))
		return a == b && a->op != OP_TRAINING;
	if (node_draws(a) || a->u.i != b->u.i)
		return false;
	bool turned = (a->op == OP_ADD || a->op == OP_MUL) &&
		      !(is_alike(a->src[0], b->src[0]) && is_alike(a->src[1], b->src[1]));
	for (int d = 0; d < a->nsrc; d++)
		if (!match(m, a->src[d], b->src[turned ? 1 - d : d]))
			return false;
	return true;
}

/* Do the indices of a row run on evenly from one read to the next? */
static bool row_is_even(Ir *ir, const Form *f, int i)
{
	Node *const *read = f->read + i * f->n;
	for (int d = 1; d < read[0]->nsrc; d++) {
		Node *step = node_sub(ir, read[1]->src[d], read[0]->src[d]);
		for (int k = 1; k < f->n; k++)
			if (node_is_const(step) &&
			    read[k]->src[d] != node_add_scaled(ir, read[0]->src[d], node_int(ir, k),
							       step->u.i))
				return false;
	}
	return true;
}

bool form_find(Ir *ir, int n, Node *const *comp, Form *form)
{
	const Node *first = comp[0];
	*form = (Form){.n = n};
	for (int k = 0; k < n; k++) {
		const Node *c = comp[k];
		Match m = {ir, form, k, VISITS_MOST};
		bool same = c->op == OP_COMP && comp_is_dense(c) && c->type == first->type &&
			    c->nsrc == first->nsrc && c->u.i == first->u.i && n > 1;
		for (int d = 0; same && d + 1 < c->nsrc; d++)
			same = c->src[d] == first->src[d];
		if (!same || !match(&m, comp_body(first), comp_body(c)))
			return false;
	}
	for (int i = 0; i < form->nrow; i++)
		if (!row_is_even(ir, form, i))
			return false;
	return true;
}

void form_row(const Form *form, int i, Node **t)
{
	for (int k = 0; k < form->n; k++)
		t[k] = form->read[i * form->n + k]->src[0];
}

bool form_row_differs(const Form *form, int i)
{
	for (int k = 1; k < form->n; k++)
		if (form->read[i * form->n + k]->src[0] != form->read[i * form->n]->src[0])
			return true;
	return false;
}

/* Row i for all g: of the stack, or (NULL) of the tensor that all of its reads name. */
static Node *row_read(Ir *ir, const Form *form, int i, Node *stack, Node *g)
{
	Node *const *read = form->read + i * form->n;
	Node *index[RICCI_MAX_RANK];
	int rank = tensor_rank(read[0]->src[0]), at = stack != NULL;
	index[0] = g;
	for (int d = 0; d < rank; d++) {
		Node *step = node_sub(ir, read[1]->src[1 + d], read[0]->src[1 + d]);
		index[at + d] = node_is_const(step)
					? node_add_scaled(ir, read[0]->src[1 + d], g, step->u.i)
					: read[0]->src[1 + d];
	}
	return node_read(ir, stack ? stack : read[0]->src[0], index);
}

Node *form_stack(Ir *ir, const Form *form, const Node *first, Node *const *tensor, bool summed)
{
	Node *axes[COMP_MAX_AXES + 1], *body = comp_body(first);
	Node **from = arena_alloc(&ir->arena, (size_t)(form->nrow + 1) * sizeof *from);
	Node **to = arena_alloc(&ir->arena, (size_t)(form->nrow + 1) * sizeof *to);
	int naxis = comp_naxis(first), rank = tensor_rank(first) + !summed;
	Node *g = node_axis(ir, naxis, form->n);
	for (int i = 0; i < form->nrow; i++) {
		from[i] = form->read[i * form->n];
		to[i] = row_read(ir, form, i, tensor[i], g);
	}
	axes[summed ? naxis : 0] = g;
	for (int k = 0; k < naxis; k++)
		axes[k + !summed] = comp_axis(first, k);
	body = node_replace(ir, body, form->nrow, from, to);
	return comp_dense(ir, comp_reduce(first), rank, naxis + 1, axes, body);
}

Node *stack_copy(Ir *ir, int n, Node *const *t)
{
	Node *axes[RICCI_MAX_RANK], *body = NULL;
	int rank = tensor_rank(t[0]);
	for (int d = 0; d < rank; d++)
		axes[1 + d] = node_axis(ir, 1 + d, tensor_extent(t[0], d));
	axes[0] = node_axis(ir, 0, n);
	for (int k = n - 1; k >= 0; k--) {
		Node *read = node_read(ir, t[k], axes + 1);
		body = body ? node_select(ir, node2(ir, OP_EQ, axes[0], node_int(ir, k)), read,
					  body)
			    : read;
	}
	return comp_dense(ir, RED_NONE, rank + 1, rank + 1, axes, body);
}

Node *stack_slice(Ir *ir, Node *stack, int k)
{
	Node *index[RICCI_MAX_RANK];
	int rank = tensor_rank(stack) - 1;
	for (int d = 0; d < rank; d++)
		index[1 + d] = node_axis(ir, d, tensor_extent(stack, 1 + d));
	index[0] = node_int(ir, k);
	return comp_dense(ir, RED_NONE, rank, rank, index + 1, node_read(ir, stack, index));
}

/* ---- linear forms ---- */

enum { ZERO = -1, FREE, LINEAR, OTHER }; /* what an expression is in what differs; ZERO: 0 */

static int row_of(const Form *form, const Node *read)
{
	for (int i = 0; i < form->nrow; i++)
		if (form->read[i * form->n] == read)
			return i;
	return -1;
}

static int read_degree(const Form *form, const Node *read)
{
	int i = row_of(form, read);
	if (!form_row_differs(form, i)) {
		for (int k = 1; k < form->n; k++)
			if (form->read[i * form->n + k] != read)
				return OTHER;
		return FREE;
	}
	for (int k = 1; k < form->n; k++)
		if (memcmp(form->read[i * form->n + k]->src + 1, read->src + 1,
			   (size_t)tensor_rank(read->src[0]) * sizeof *read->src))
			return OTHER;
	return LINEAR;
}

/* Of a sum, or of a choice. */
static int degree_both(int a, int b)
{
	return a == ZERO ? b : b == ZERO || a == b ? a : OTHER;
}

static int degree(const Form *form, const Node *e)
{
	int d[3] = {FREE, FREE, FREE};
	if (e->op == OP_READ)
		return read_degree(form, e);
	if (e->nsrc == 0)
		return node_is_value(e, 0) ? ZERO : FREE;
	for (int k = 0; k < e->nsrc && k < 3; k++)
		d[k] = degree(form, e->src[k]);
	if (e->op == OP_ADD || e->op == OP_SUB)
		return degree_both(d[0], d[1]);
	if (e->op == OP_SELECT)
		return d[0] <= FREE ? degree_both(d[1], d[2]) : OTHER;
	if (e->op == OP_MUL && (d[0] <= FREE || d[1] <= FREE))
		return d[0] <= FREE ? d[1] : d[0];
	if (e->op == OP_NEG || (e->op == OP_DIV && d[1] <= FREE))
		return d[0];
	return d[0] <= FREE && d[1] <= FREE && d[2] <= FREE ? FREE : OTHER;
}

bool form_is_linear(const Form *form, const Node *first)
{
	bool adds = comp_reduce(first) == RED_NONE || comp_reduce(first) == RED_ADD;
	return adds && type_is_float((Type)first->type) && degree(form, comp_body(first)) == LINEAR;
}

Node *form_over(Ir *ir, const Form *form, const Node *first, Node *const *tensor)
{
	Node **from = arena_alloc(&ir->arena, (size_t)(form->nrow + 1) * sizeof *from);
	Node **to = arena_alloc(&ir->arena, (size_t)(form->nrow + 1) * sizeof *to);
	for (int i = 0; i < form->nrow; i++) {
		from[i] = form->read[i * form->n];
		to[i] = tensor[i] ? node_read(ir, tensor[i], from[i]->src + 1) : from[i];
	}
	return comp_with(ir, first, comp_reduce(first),
			 node_replace(ir, comp_body(first), form->nrow, from, to));
}

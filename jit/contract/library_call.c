/* library_call.c - where the tensors of a vendor library's call lie, and their dimensions.
 *
 * Input: a contraction's operands, which of them are copied, the order of copies and sums. Output: how far apart
 * elements are along an axis, and dimensions: axes of one role that are one in all tensors. Invariant: an operand that
 * is not copied is an element of a tensor of the call's type. */
#include "jit/contract/library_grid.h"

#include <string.h>

/* ---- where elements lie */

static int64_t places_stride(const Places *s, const Node *axis)
{
	int64_t stride = 1;
	for (int k = s->naxis - 1; k >= 0; stride *= axis_extent(s->axis[k--]))
		if (s->axis[k] == axis)
			return stride;
	return 0;
}

int64_t places_count(const Places *s)
{
	int64_t n = 1;
	for (int k = 0; k < s->naxis; k++)
		n *= axis_extent(s->axis[k]);
	return n;
}

/* The place where all axes are 0; -1: it isn't known. */
static int64_t first_place(Ir *ir, Node *index)
{
	const Affine a = affine_of(ir, index);
	for (int k = 0; k < a.n; k++)
		if (a.atom[k]->op != OP_AXIS)
			return -1;
	return a.c < 0 ? -1 : a.c;
}

bool call_lies(const GridCall *g, int x)
{
	return x == OF_D ? g->direct : !g->copied[x];
}

int64_t call_stride(const GridCall *g, int x, Node *axis)
{
	const Problem *p = g->c->p;
	return !call_lies(g, x) ? places_stride(&g->place[x], axis)
	       : x == OF_D	? affine_stride(p->ir, p->out_index[0], axis)
				: affine_stride(p->ir, g->read[x]->src[1], axis);
}

void places_add(const GridCall *g, Places *s, const IndexGroup *group, int tensor)
{
	int first = s->naxis;
	for (int k = 0; k < group->naxis; k++) {
		int at = s->naxis++;
		int64_t stride = call_stride(g, tensor, group->axis[k]);
		for (; at > first && call_stride(g, tensor, s->axis[at - 1]) < stride; at--)
			s->axis[at] = s->axis[at - 1];
		s->axis[at] = group->axis[k];
	}
}

Type call_type(const Contract *c)
{
	const Fragments *f = contract_fragments(c);
	return f ? f->type : c->p->acc;
}

bool call_operands(GridCall *g, Type type)
{
	for (int x = 0; x < COUNT(g->operand); x++) {
		const Operand *f = &g->operand[x];
		Source s;
		g->type[x] = type;
		g->first[x] = 0;
		g->place[x].naxis = 0;
		if (g->copied[x])
			continue;
		if (f->nguard || !contract_source(f, &s) || s.from != s.through || s.from != type)
			return false;
		g->read[x] = s.read;
		g->first[x] = first_place(g->c->ir, s.read->src[1]);
		if (g->first[x] < 0)
			return false;
	}
	return true;
}

bool call_direct(GridCall *g)
{
	const Problem *p = g->c->p;
	g->direct = true;
	g->type[OF_D] = p->type;
	g->first[OF_D] = first_place(p->ir, p->out_index[0]);
	return p->nout == 1 && p->out_value[0] == p->result && g->first[OF_D] >= 0;
}

void call_sums(GridCall *g)
{
	g->direct = false;
	g->type[OF_D] = g->c->p->acc;
	g->first[OF_D] = 0;
	g->place[OF_D].naxis = 0;
}

void call_begin(GridCall *g, CallKind kind)
{
	KernelCall *c = &g->call;
	memset(c, 0, sizeof *c);
	c->kind = kind;
	for (int k = 0; k < CALL_LOOPS; k++)
		c->loop[k] = 1;
	for (int x = 0; x < CALL_TENSORS; x++)
		for (int k = 0; k < CALL_RANK; k++)
			c->tensor[x].extent[k] = 1;
}

/* ---- dimensions */

bool dimensions_add(GridCall *g, int role, const IndexGroup *group)
{
	for (int k = 0; k < group->naxis; k++) {
		Dimension *d = &g->dim[g->ndim++];
		*d = (Dimension){role, axis_extent(group->axis[k]), {0}};
		for (int x = 0; x < TENSORS; x++) {
			d->stride[x] = call_stride(g, x, group->axis[k]);
			if (d->stride[x] < 0)
				return false;
		}
	}
	return true;
}

/* Is `inner` all that lies between two elements of `outer`, in all tensors? */
static bool is_one(const Dimension *outer, const Dimension *inner)
{
	bool one = outer != inner && outer->role == inner->role;
	for (int x = 0; x < TENSORS; x++)
		one = one && outer->stride[x] == inner->stride[x] * inner->extent;
	return one;
}

static bool merge_once(GridCall *g)
{
	for (int i = 0; i < g->ndim; i++)
		for (int j = 0; j < g->ndim; j++)
			if (is_one(&g->dim[i], &g->dim[j])) {
				g->dim[j].extent *= g->dim[i].extent;
				g->dim[i] = g->dim[--g->ndim];
				return true;
			}
	return false;
}

void dimensions_merge(GridCall *g)
{
	while (merge_once(g)) {
	}
}

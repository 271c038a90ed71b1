/* quotients.c - axes cut where quotients of them step, or dimensions end; and two joined.
 *
 * Input: a problem. Output: the same with axes k = d*a + b, b < d, in place of those of which it
 * reads k/d or k%d, d a divisor of their extent: then the quotient is the axis a, the remainder b.
 * Groups, heads and patches are axes so, however they were written. Or in place of merged ones that run past the
 * end of a dimension of d elements (problem_unmerged): then a is the next outer dimension's. Or the other way round (problem_joined):
 * axis k in place of a and b, of which it has k/d and k%d. Invariant: same values at the
 * same points; spatial axes stay in the order of the output. */
#include "jit/tree/problem.h"

#include <string.h>

typedef struct Found {
	const Problem *p;
	int axis; /* -1: none */
	int64_t divisor;
} Found;

static void see_quotient(void *user, Node *n)
{
	Found *f = user;
	if (f->axis >= 0 || (n->op != OP_FLOORDIV && n->op != OP_FLOORMOD) ||
	    n->type != RICCI_I64 || !node_is_const(n->src[1]))
		return;
	int64_t d = n->src[1]->u.i;
	for (int k = 0; k < f->p->naxis; k++)
		if (f->p->axis[k] == n->src[0] && d > 1 && axis_extent(n->src[0]) % d == 0) {
			f->axis = k;
			f->divisor = d;
		}
}

static bool find(Found *f)
{
	const Problem *p = f->p;
	node_walk(p->ir, p->body, see_quotient, f);
	for (int k = 0; k < p->nout; k++)
		node_walk(p->ir, p->out_value[k], see_quotient, f);
	return f->axis >= 0;
}

static void cut(Problem *p, int at, int64_t divisor)
{
	Node *from = p->axis[at];
	Node *a = tree_axis(p->tree, axis_extent(from) / divisor);
	Node *b = tree_axis(p->tree, divisor),
	     *to = node_add(p->ir, node_scale(p->ir, a, divisor), b);
	problem_replace(p, 1, &from, &to);
	for (int k = p->naxis++; k > at + 1; k--)
		p->axis[k] = p->axis[k - 1];
	p->axis[at] = a;
	p->axis[at + 1] = b;
	p->nspatial += at < p->nspatial;
}

/* How many elements dimension d of a read has; 0: it is the outermost. */
static int64_t dimension_size(const ProblemRead *r, int d)
{
	return d && r->stride[d] ? r->stride[d - 1] / r->stride[d] : 0;
}

static bool find_past(Found *f)
{
	const Problem *p = f->p;
	f->axis = -1;
	for (int k = 0; k < p->nread; k++)
		for (int d = 1; d < p->read[k].rank; d++)
			for (int j = 0; j < p->naxis; j++) {
				int64_t size = dimension_size(&p->read[k], d);
				if (p->read[k].dim[d] == p->axis[j] && size > 1 &&
				    axis_extent(p->axis[j]) > size &&
				    axis_extent(p->axis[j]) % size == 0) {
					f->axis = j;
					f->divisor = size;
					return true;
				}
			}
	return false;
}

/* What steps over whole dimensions is the next outer one's. */
static void carry(const Problem *p, ProblemRead *r)
{
	Ir *ir = p->ir;
	for (int d = r->rank - 1; d > 0; d--) {
		int64_t size = dimension_size(r, d);
		for (int k = 0; k < p->naxis && size > 1; k++) {
			int64_t step = affine_stride(ir, r->dim[d], p->axis[k]);
			if (step == INT64_MIN || step % size)
				continue;
			Node *over = node_scale(ir, p->axis[k], step);
			r->dim[d] = node_sub(ir, r->dim[d], over);
			r->dim[d - 1] = node_add(ir, r->dim[d - 1],
						 node_scale(ir, p->axis[k], step / size));
		}
	}
}

static Problem *problem_copy(const Problem *p)
{
	Problem *own = arena_alloc(&p->ir->arena, sizeof *own);
	*own = *p;
	own->read = arena_alloc(&p->ir->arena, (size_t)(p->nread + 1) * sizeof *own->read);
	if (p->nread)
		memcpy(own->read, p->read, (size_t)p->nread * sizeof *own->read);
	own->read_room = p->nread + 1;
	return own;
}

Problem *problem_cut(const Problem *p, int *ncut, ProblemCut *cuts)
{
	Found f = {p, -1, 0};
	int n = 0;
	if (p->scatter || !find(&f))
		return NULL;
	Problem *own = problem_copy(p);
	f.p = own;
	for (; f.axis >= 0 && own->naxis < COMP_MAX_AXES; find(&f)) {
		cut(own, f.axis, f.divisor);
		if (cuts)
			cuts[n++] = (ProblemCut){f.axis, f.divisor};
		f.axis = -1;
	}
	if (cuts)
		*ncut = n;
	return own;
}

Problem *problem_joined(const Problem *p, int at)
{
	if (p->scatter || at < 0 || at + 1 >= p->naxis || at + 1 == p->nspatial)
		return NULL;
	Problem *own = problem_copy(p);
	int64_t inner = axis_extent(p->axis[at + 1]);
	Node *both = tree_axis(p->tree, axis_extent(p->axis[at]) * inner);
	Node *to[] = {node_floordiv(p->ir, both, inner), node_floormod(p->ir, both, inner)};
	problem_replace(own, 2, &p->axis[at], to);
	own->axis[at] = both;
	own->naxis--;
	for (int k = at + 1; k < own->naxis; k++)
		own->axis[k] = p->axis[k + 1];
	own->nspatial -= at < own->nspatial;
	return own;
}

Problem *problem_unmerged(const Problem *p)
{
	Problem *own = problem_copy(p);
	Found f = {.p = own};
	while (!p->scatter && own->naxis < COMP_MAX_AXES && find_past(&f)) {
		cut(own, f.axis, f.divisor);
		for (int k = 0; k < own->nread; k++)
			carry(own, &own->read[k]);
	}
	return own;
}

/* quotients.c - axes cut where quotients of them step.
 *
 * Input: a problem. Output: the same with axes k = d*a + b, b < d, in place of those of which it
 * reads k/d or k%d, d a divisor of their extent: then the quotient is the axis a, the remainder b.
 * Groups, heads and patches are axes so, however they were written. Invariant: same values at the
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

Problem *problem_cut(const Problem *p)
{
	Found f = {p, -1, 0};
	if (p->scatter || !find(&f))
		return NULL;
	Problem *own = arena_alloc(&p->ir->arena, sizeof *own);
	*own = *p;
	own->read = arena_alloc(&p->ir->arena, (size_t)(p->nread + 1) * sizeof *own->read);
	if (p->nread)
		memcpy(own->read, p->read, (size_t)p->nread * sizeof *own->read);
	own->read_room = p->nread + 1;
	f.p = own;
	for (; f.axis >= 0 && own->naxis < COMP_MAX_AXES; find(&f)) {
		cut(own, f.axis, f.divisor);
		f.axis = -1;
	}
	return own;
}

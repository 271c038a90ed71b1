/* terms_values.c - what expressions over an equation's axes are at the chosen elements and terms, and
 * where all inputs that are filled hold one number.
 *
 * Input: a Terms whose elements and terms are chosen, and an expression of its copy's equation.
 * Output: the interpreter's values. */
#include "runtime/verify/terms.h"
#include <math.h>
#include <string.h>

int terms_input(const Terms *x, const Node *tensor)
{
	for (int i = 0; i < x->task->sub.ninput; i++)
		if (x->copy.input[i] == tensor)
			return i;
	return -1;
}

double terms_count(const Terms *x)
{
	return sample_length(x->task->sub.member[0]);
}

void terms_fill(Terms *x, bool all)
{
	for (int i = 0; i < x->task->sub.ninput; i++)
		x->filled[i] = x->marked[i] || (all && type_is_float(x->task->sub.input[i]->type));
}

/* Axes, and data that are not there yet. */
static void see_varying(void *user, Node *n)
{
	Terms *x = user;
	const Node *c = x->copy.member[0];

	for (int a = tensor_rank(c); a < comp_naxis(c); a++)
		x->varies = x->varies || n == comp_axis(c, a);
	x->varies = x->varies || node_draws(n) || n->op == OP_READ;
}

static bool type_holds(Type t, double v)
{
	int64_t lo, hi;

	if (type_is_float(t))
		return true;
	type_range(t, &lo, &hi);
	return v == floor(v) && v >= (double)lo && v <= (double)hi;
}

/* NULL: no number, or one that an input can't hold. */
Node *terms_base_body(Terms *x, double v)
{
	Ir *ir = &x->copy.ir;
	Node *to[TERM_READS], *e;

	for (int i = 0; i < x->nread; i++) {
		Type t = (Type)x->read[i]->type;

		bool fills = x->filled[terms_input(x, x->read[i]->src[0])];

		if (fills && !type_holds(t, v))
			return NULL;
		to[i] = !fills		   ? x->read[i]
			: type_is_float(t) ? node_const(ir, t, v)
					   : node_const_int(ir, t, (int64_t)v);
	}
	e = node_replace(ir, comp_body(x->copy.member[0]), x->nread, x->read, to);
	x->varies = false;
	node_walk(ir, e, see_varying, x);
	return x->varies ? NULL : e;
}

/* The tensor of e at the chosen elements. */
static Node *listed(Terms *x, Node *e, TermsOf how)
{
	Ir *ir = &x->copy.ir;
	const Node *c = x->copy.member[0];
	int rank = tensor_rank(c), n = comp_naxis(c);
	Node *axis[2] = {node_axis(ir, 0, x->nelement), node_axis(ir, 1, x->n)};
	Node *to[COMP_MAX_AXES], *from[COMP_MAX_AXES];

	for (int a = 0; a < n; a++) {
		bool spatial = a < rank;

		from[a] = comp_axis(c, a);
		to[a] = spatial || how != TERMS_ANY
				? node_read(ir, spatial ? x->elements : x->points,
					    (Node *[]){axis[!spatial],
						       node_int(ir, spatial ? a : a - rank)})
				: node_int(ir, 0);
	}
	return comp_dense(ir, how == TERMS_TOGETHER ? comp_reduce(c) : RED_NONE,
			  how == TERMS_EACH ? 2 : 1, how == TERMS_ANY ? 1 : 2, axis,
			  node_replace(ir, e, n, from, to));
}

int terms_values(Terms *x, Node *body, TermsOf how, void *const *input, double *v, double *mag,
		 Error *err)
{
	Node *e = listed(x, body, how);
	int in = x->task->sub.ninput, code;
	size_t n = (size_t)tensor_size(e);
	Binding *bind = arena_alloc(&x->copy.ir.arena, ((size_t)in + 2) * sizeof *bind);

	for (int i = 0; i < in; i++)
		bind[i] = (Binding){x->copy.input[i], input ? input[i] : NULL};
	bind[in] = (Binding){x->elements, x->element};
	bind[in + 1] = (Binding){x->points, x->point};
	code = interp_tensor(e, in + 2, bind, (RandomState){7, 3}, v, mag, err);
	for (size_t i = 0; i < n && !code && !type_is_float(e->type); i++) {
		int64_t whole;

		memcpy(&whole, &v[i], sizeof whole);
		v[i] = (double)whole;
	}
	return code;
}

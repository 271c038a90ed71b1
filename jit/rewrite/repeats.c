/* repeats.c - sums over a tensor that repeats another one's elements read that one.
 *
 * In: `U[p] = X[p/2]` and a sum `Y[p] += U[p+r] * W[r]`. Out: `Y[p] += X[(p+r)/2] * W[r]`, whose partial sums have as many
 * elements as X (window_sums.c, quotients.c). A convolution behind an upsampling is such. So are sums over rows that data
 * look up, U[e,c] = H[S[e],c] (segment_sums.c), and over tensors side by side, or functions of these, U[i,j,c] = c < 8 ?
 * A[i,c] : B[j,c-8], whose parts are summed apart (terms.c).
 * Invariant: what is read has fewer bytes than U. */
#include "jit/rewrite/products.h"

enum { DEEP = 2 }; /* functions of functions in what is read; more stay as they are */

static double bytes_read(Ir *ir, Node *e)
{
	Node **read;
	int n = node_collect(ir, e, OP_READ, &read);
	double bytes = 0;
	for (int k = 0; k < n; k++)
		bytes += (double)tensor_bytes(read[k]->src[0]);
	return bytes;
}

/* Do data say which element it is? */
static bool looks_up(Ir *ir, const Node *read)
{
	for (int d = 1; d < read->nsrc; d++)
		if (node_reads(ir, read->src[d]))
			return true;
	return false;
}

static Node *repeats_inside(Ir *ir, Node *e, bool data, int deep);

/* What t repeats, an element or one of several by place, or a function of these; NULL: it repeats nothing. data: data may
 * say which. deep: so many functions of functions. */
static Node *repeated(Ir *ir, const Node *t, bool data, int deep)
{
	if (t->op != OP_COMP || comp_reduce(t) != RED_NONE || !comp_is_dense(t) ||
	    node_any(ir, comp_body(t), node_draws))
		return NULL;
	Node *body = deep ? repeats_inside(ir, comp_body(t), data, deep - 1) : comp_body(t);
	if (bytes_read(ir, body) >= (double)tensor_bytes(t))
		return NULL;
	if (body->op == OP_READ)
		return data || !looks_up(ir, body) ? body : NULL;
	Node *choice = choice_outside(ir, body);
	return body != comp_body(t) || choice != body || body->op == OP_SELECT ? choice : NULL;
}

/* e over what the tensors that it reads repeat. */
static Node *repeats_inside(Ir *ir, Node *e, bool data, int deep)
{
	Node **read;
	int n = node_collect(ir, e, OP_READ, &read);
	for (int k = n - 1; k >= 0; k--) { /* those in others' indices later */
		Node *t = read[k]->src[0], *from = repeated(ir, t, data, deep);
		if (!from)
			continue;
		from = node_replace(ir, from, tensor_rank(t), t->src, read[k]->src + 1);
		e = node_replace(ir, e, 1, &read[k], &from);
	}
	return e;
}

/* Is c's sum one of products? */
static bool sums_products(Ir *ir, const Node *c)
{
	Factors l = product_split(ir, c, comp_body(c));
	int varying = 0;
	for (int k = 0; k < l.n; k++)
		varying += l.f[k].axes != 0;
	return varying > 1;
}

Node *repeats_read(Ir *ir, const Node *c)
{
	Node *body = repeats_inside(ir, comp_body(c), sums_products(ir, c), DEEP);
	return body == comp_body(c) ? NULL
				    : comp_with(ir, c, RED_ADD, conditions_decided(ir, body));
}

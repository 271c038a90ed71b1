/* test_scan.c - gradients and tangents of loops: against the same loops unrolled (values,
 * gradients, gradients of gradients, tangents), against central differences and the identity <u, J
 * t> = <J' u, t>; all lengths, both directions, the ways to keep states; regions that are computed
 * again; running out of memory. */
#include "runtime/runtime.h"
#include "tests/check.h"

#include <stdlib.h>

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})
enum { MOST = 12, ROOM = 96 };

typedef struct Case {
	ricci_graph *g;
	int n, nwrt;
	Binding bind[MOST];
	double value[MOST][ROOM];
	ricci_tensor *wrt[MOST]; /* float inputs */
	ricci_slice slice[3];
	ricci_carry carry[3];
	ricci_tensor *out[3];
	ricci_loop loop;
	int64_t length; /* of the steps that are done */
} Case;

/* How a case is run. */
typedef struct Way {
	int64_t length; /* -1: all steps, without a tensor of the length */
	int backwards, recompute;
	int64_t segment;
} Way;

static ricci_tensor *input(Case *c, const char *name, int rank, const int64_t *shape, double offset)
{
	ricci_tensor *t = ricci_input(c->g, name, RICCI_F64, rank, shape);
	if (ricci_graph_error(c->g))
		return t;
	CHECK(c->n < MOST && tensor_size(t->node) <= ROOM);
	for (int64_t i = 0; i < tensor_size(t->node); i++)
		c->value[c->n][i] = offset + .7 * sin(1.7 * (double)i + 2.3 * c->n);
	c->bind[c->n] = (Binding){t->node, c->value[c->n]};
	c->n++;
	return c->wrt[c->nwrt++] = t;
}

static ricci_tensor *variable(Case *c, const char *name, int rank, const int64_t *shape)
{
	return ricci_input(c->g, name, RICCI_F64, rank, shape);
}

/* ---- the loops ---- */

static void make_lstm(Case *c)
{
	ricci_graph *g = c->g;
	ricci_tensor *x = input(c, "x", 3, SHAPE(5, 2, 3), 0),
		     *h0 = input(c, "h0", 2, SHAPE(2, 2), 0);
	ricci_tensor *c0 = input(c, "c0", 2, SHAPE(2, 2), 0), *w = input(c, "w", 2, SHAPE(8, 3), 0);
	ricci_tensor *u = input(c, "u", 2, SHAPE(8, 2), 0), *b = input(c, "b", 1, SHAPE(8), .1);
	ricci_tensor *xt = variable(c, "xt", 2, SHAPE(2, 3)), *h = variable(c, "h", 2, SHAPE(2, 2));
	ricci_tensor *s = variable(c, "s", 2, SHAPE(2, 2)), *in[] = {xt, w, h, u, b, s}, *r[2];
	int n = 2;
	ricci_ops(
		g,
		"A[n,i] += X[n,k]*W[i,k]; B[n,i] += H[n,k]*U[i,k]; Z[n,i] = A[n,i] + B[n,i] + V[i];"
		"C[n,j] = sigmoid(Z[n,j])*S[n,j] + sigmoid(Z[n,j+2])*tanh(Z[n,j+4]) where j<2;"
		"T[n,j] = tanh(C[n,j]);"
		"N[n,j] = sigmoid(Z[n,j+6])*T[n,j]; O[n,j] = C[n,j]*1.0",
		6, in, &n, r);
	c->slice[0] = (ricci_slice){xt, x};
	c->carry[0] = (ricci_carry){h, h0, r[0]};
	c->carry[1] = (ricci_carry){s, c0, r[1]};
	c->out[0] = r[0];
	c->loop = (ricci_loop){.steps = 5, .nslice = 1, .ncarry = 2, .nout = 1};
}

/* Cumulative products, one of them over zeros. */
static void make_products(Case *c)
{
	ricci_tensor *x = input(c, "x", 2, SHAPE(6, 3), .2), *p0 = input(c, "p0", 1, SHAPE(3), 1);
	ricci_tensor *xt = variable(c, "xt", 1, SHAPE(3)), *p = variable(c, "p", 1, SHAPE(3));
	c->value[0][7] = c->value[0][13] = 0;
	ricci_tensor *next = ricci_op(c->g, "N[i] = P[i]*X[i]", p, xt);
	c->slice[0] = (ricci_slice){xt, x};
	c->carry[0] = (ricci_carry){p, p0, next};
	c->out[0] = next;
	c->out[1] = p;
	c->loop = (ricci_loop){.steps = 6, .nslice = 1, .ncarry = 1, .nout = 2};
}

/* Newton's iteration for z^2 = a, with a hidden step counter; no slices. */
static void make_newton(Case *c)
{
	ricci_graph *g = c->g;
	ricci_tensor *a = input(c, "a", 1, SHAPE(3), 3), *z0 = input(c, "z0", 1, SHAPE(3), 2);
	ricci_tensor *z = variable(c, "z", 1, SHAPE(3)), *zero = ricci_op(g, "Z[] = i64(0)");
	ricci_tensor *k = ricci_input(g, "k", RICCI_I64, 0, NULL);
	ricci_tensor *next = ricci_op(g, "N[i] = Z[i] - (Z[i]*Z[i] - A[i])/(2.0*Z[i])", z, a);
	c->carry[0] = (ricci_carry){z, z0, next};
	c->carry[1] = (ricci_carry){k, zero, ricci_op(g, "N[] = K[] + 1", k)};
	c->out[0] = ricci_op(g, "Y[i] = f64(K[] + 1)*Z[i]", k, z);
	c->loop = (ricci_loop){.steps = 4, .ncarry = 2, .nout = 1};
}

/* A loop over the columns in a loop over the rows: a matrix that acts on the state of both. */
static void make_nested(Case *c)
{
	ricci_graph *g = c->g;
	ricci_tensor *x = input(c, "x", 2, SHAPE(3, 4), 0), *w = input(c, "w", 2, SHAPE(2, 2), 0);
	ricci_tensor *h0 = input(c, "h0", 1, SHAPE(2), .3), *row = variable(c, "row", 1, SHAPE(4));
	ricci_tensor *h = variable(c, "h", 1, SHAPE(2)), *e = variable(c, "e", 0, NULL), *last,
		     *all;
	ricci_tensor *q = variable(c, "q", 1, SHAPE(2));
	ricci_tensor *a = ricci_op(g, "A[i] += W[i,j]*Q[j]", w, q);
	ricci_tensor *next = ricci_op(g, "N[i] = sin(A[i] + E[]*H[i])", a, e, h);
	ricci_loop inner = {.steps = 4,
			    .nslice = 1,
			    .slice = &(ricci_slice){e, row},
			    .ncarry = 1,
			    .carry = &(ricci_carry){q, h, next},
			    .nout = 1,
			    .out = &a};
	ricci_scan(g, &inner, &last, &all);
	c->slice[0] = (ricci_slice){row, x};
	c->carry[0] = (ricci_carry){h, h0, last};
	c->out[0] = ricci_op(g, "Y[i] += S[t,i]*H[i]*R[t]", all, h, row);
	c->loop = (ricci_loop){.steps = 3, .nslice = 1, .ncarry = 1, .nout = 1};
}

/* A running maximum, a filter with a state of which only the end is used, a map without states. */
static void make_mixed(Case *c)
{
	ricci_graph *g = c->g;
	ricci_tensor *x = input(c, "x", 2, SHAPE(5, 3), 0), *m0 = input(c, "m0", 0, NULL, -2);
	ricci_tensor *f0 = input(c, "f0", 1, SHAPE(3), 0), *k = input(c, "k", 1, SHAPE(3), .4);
	ricci_tensor *y = input(c, "y", 1, SHAPE(5), .1);
	ricci_tensor *xt = variable(c, "xt", 1, SHAPE(3)), *m = variable(c, "m", 0, NULL);
	ricci_tensor *f = variable(c, "f", 1, SHAPE(3)), *yt = variable(c, "yt", 0, NULL);
	ricci_tensor *top = ricci_op(g, "T[] max= X[i]", xt);
	c->slice[0] = (ricci_slice){xt, x};
	c->slice[1] = (ricci_slice){yt, y};
	c->carry[0] = (ricci_carry){m, m0, ricci_op(g, "N[] = max(M[], T[])", m, top)};
	c->carry[1] = (ricci_carry){
		f, f0, ricci_op(g, "N[i] = F[i]*K[i] + exp(K[i])*X[i]*Y[]", f, k, xt, yt)};
	c->out[0] = ricci_op(g, "Y[i,j] = X[i]*X[j]*K[i]*K[i]", xt, k);
	c->loop = (ricci_loop){.steps = 5, .nslice = 2, .ncarry = 2, .nout = 1};
}

/* ---- random loops ---- */

static uint64_t random_state = 88172645463325252u;

static int draw(int n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (int)((random_state >> 11) % (uint64_t)n);
}

/* An equation over vectors a, b of 3 and a matrix w, as a loop's body may hold it. */
static ricci_tensor *random_equation(Case *c, ricci_tensor *a, ricci_tensor *b, ricci_tensor *w)
{
	static const char *const text[] = {
		"Y[i] = sin(A[i] + B[i])",
		"Y[i] += W[i,j]*A[j] + 0.1*B[i]",
		"Y[i] += W[j,i]*A[j]*B[i]",
		"Y[i] = A[i]*B[2-i]",
		"Y[i] = A[i] > 0 ? B[i] : 0.5*A[i]",
		"Y[i] = 0.5*A[i] + (B[i-1] else 0.3)",
		"Y[i] = tanh(A[i]) - W[i,i]*B[i]",
		"S[] += A[i]*B[i]; Y[i] = A[i]/(2.0 + S[]*S[])",
		"S[] max= A[i]; Y[i] = sigmoid(B[i] - S[])",
		"Y[i] = 0.9*A[i] + 0*B[i]",
	};
	ricci_tensor *operand[3], *y = NULL;
	const char *t = text[draw(COUNT(text))], *w_at = strchr(t, 'W');
	const char *a_at = strchr(t, 'A'), *b_at = strchr(t, 'B');
	int n = 0, one = 1;
	/* bound in the order of the text */
	for (const char *at = t; *at; at++) {
		if (at == a_at)
			operand[n++] = a;
		if (at == b_at)
			operand[n++] = b;
		if (at == w_at)
			operand[n++] = w;
	}
	ricci_ops(c->g, t, n, operand, &one, &y);
	return y;
}

/* One to three states, up to two slices, outer tensors, perhaps a region or an inner loop. */
static void make_random(Case *c)
{
	ricci_graph *g = c->g;
	ricci_tensor *pool[16], *w = input(c, "w", 2, SHAPE(3, 3), 0);
	int n = 0, nslice = draw(3), nstate = 1 + draw(3), steps = 2 + draw(4), more = 2 + draw(5);
	char name[8];
	pool[n++] = input(c, "k", 1, SHAPE(3), .2);
	for (int k = 0; k < nslice; k++) {
		snprintf(name, sizeof name, "x%d", k);
		ricci_tensor *x = input(c, name, 2, SHAPE(steps, 3), 0);
		snprintf(name, sizeof name, "xt%d", k);
		pool[n++] = variable(c, name, 1, SHAPE(3));
		c->slice[k] = (ricci_slice){pool[n - 1], x};
	}
	for (int k = 0; k < nstate; k++) {
		snprintf(name, sizeof name, "h%d", k);
		ricci_tensor *start = input(c, name, 1, SHAPE(3), .1);
		snprintf(name, sizeof name, "s%d", k);
		pool[n++] = variable(c, name, 1, SHAPE(3));
		c->carry[k] = (ricci_carry){pool[n - 1], start, NULL};
	}
	for (int k = 0; k < more; k++, n++) {
		pool[n] = random_equation(c, pool[draw(n)], pool[draw(n)], w);
		if (draw(4) == 0)
			ricci_recompute(g, 1, &pool[draw(n)], 1, &pool[n], &pool[n]);
		if (draw(6))
			continue;
		snprintf(name, sizeof name, "p%d", k);
		ricci_tensor *p = variable(c, name, 1, SHAPE(3));
		ricci_tensor *next = random_equation(c, p, pool[n], w);
		ricci_loop inner = {
			.steps = 2, .ncarry = 1, .carry = &(ricci_carry){p, pool[draw(n)], next}};
		ricci_scan(g, &inner, &pool[n], NULL);
		k++;
	}
	for (int k = 0; k < nstate; k++)
		c->carry[k].next = pool[draw(4) ? n - 1 - draw(more < 3 ? more : 3) : draw(n)];
	c->loop = (ricci_loop){
		.steps = steps, .nslice = nslice, .ncarry = nstate, .nout = 1 + draw(2)};
	for (int k = 0; k < c->loop.nout; k++)
		c->out[k] = pool[draw(n)];
}

static void (*const makers[])(Case *) = {make_lstm,   make_products, make_newton,
					 make_nested, make_mixed,    make_random};
enum { FIXED = 5 };

static void make(Case *c, int which, Way way)
{
	*c = (Case){.g = ricci_graph_new()};
	if (!c->g)
		return;
	makers[which](c);
	c->loop.slice = c->slice;
	c->loop.carry = c->carry;
	c->loop.out = c->out;
	c->loop.backwards = way.backwards;
	c->loop.recompute = way.recompute;
	c->loop.segment = way.segment;
	c->length = way.length < 0 ? c->loop.steps : way.length;
	if (way.length >= 0) {
		c->loop.length = ricci_input(c->g, "length", RICCI_I64, 0, NULL);
		memcpy(c->value[c->n], &way.length, sizeof way.length);
		c->bind[c->n] = (Binding){c->loop.length->node, c->value[c->n]};
		c->n++;
	}
}

/* ---- the same unrolled ---- */

static Node *row_of(Ir *ir, Node *x, int64_t t)
{
	Node *index[RICCI_MAX_RANK] = {node_int(ir, t)};
	int rank = tensor_rank(x) - 1;
	for (int d = 0; d < rank; d++)
		index[d + 1] = node_axis(ir, d, tensor_extent(x, d + 1));
	return comp_dense(ir, RED_NONE, rank, rank, index + 1, node_read(ir, x, index));
}

/* stack with row t, or zeros for stack NULL. */
static Node *with_row(Ir *ir, Node *stack, int64_t rows, int64_t t, Node *row)
{
	Node *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(row) + 1;
	axes[0] = node_axis(ir, 0, rows);
	for (int d = 1; d < rank; d++)
		axes[d] = node_axis(ir, d, tensor_extent(row, d - 1));
	Node *zero = node_const(ir, (Type)row->type, 0);
	Node *body = !stack ? zero
			    : node_select(ir, node2(ir, OP_EQ, axes[0], node_int(ir, t)),
					  node_read(ir, row, axes + 1), node_read(ir, stack, axes));
	return comp_dense(ir, RED_NONE, rank, rank, axes, body);
}

static void unroll(Case *c, Node **final, Node **stacked)
{
	Ir *ir = &c->g->ir;
	const ricci_loop *l = &c->loop;
	for (int k = 0; k < l->ncarry; k++)
		final[k] = l->carry[k].initial->node;
	for (int k = 0; k < l->nout; k++)
		stacked[k] = with_row(ir, NULL, l->steps, 0, l->out[k]->node);
	for (int64_t i = 0; i < c->length; i++) {
		int64_t t = l->backwards ? c->length - 1 - i : i;
		NodeMap map = {0};
		Node *root[6];
		int n = 0;
		for (int k = 0; k < l->nslice; k++)
			node_map_put(ir, &map, l->slice[k].variable->node,
				     row_of(ir, l->slice[k].tensor->node, t));
		for (int k = 0; k < l->ncarry; k++) {
			node_map_put(ir, &map, l->carry[k].variable->node, final[k]);
			root[n++] = l->carry[k].next->node;
		}
		for (int k = 0; k < l->nout; k++)
			root[n++] = l->out[k]->node;
		graph_replace(ir, n, root, &map);
		for (int k = 0; k < l->ncarry; k++)
			final[k] = node_map_get(&map, root[k]);
		for (int k = 0; k < l->nout; k++)
			stacked[k] = with_row(ir, stacked[k], l->steps, t,
					      node_map_get(&map, root[l->ncarry + k]));
	}
}

/* sum of t * sin(1 + axes) + t^2 / 2 over all float results */
static ricci_tensor *loss_of(Case *c, Node *const *final, Node *const *stacked)
{
	Ir *ir = &c->g->ir;
	Node *body = node_const(ir, RICCI_F64, 0), *axes[RICCI_MAX_RANK];
	for (int k = 0; k < c->loop.ncarry + c->loop.nout; k++) {
		Node *t = k < c->loop.ncarry ? final[k] : stacked[k - c->loop.ncarry];
		Node *at = node_int(ir, k + 1);
		int rank = tensor_rank(t);
		if (t->type != RICCI_F64)
			continue;
		for (int d = 0; d < rank; d++) {
			axes[d] = node_axis(ir, d, tensor_extent(t, d));
			at = node_add(ir, at, node_scale(ir, axes[d], 2 * d + 1));
		}
		Node *v = node_read(ir, t, axes);
		Node *w = node1(ir, OP_SIN, node_cast(ir, RICCI_F64, at));
		w = node_add(ir, w, node_mul(ir, node_const(ir, RICCI_F64, .5), v));
		Node *sum = comp_make(ir, RED_ADD, 0, NULL, NULL, rank, axes, node_mul(ir, v, w));
		body = node_add(ir, body, node_read(ir, sum, NULL));
	}
	return graph_handle(c->g, comp_dense(ir, RED_NONE, 0, 0, NULL, body));
}

/* loss[0]: of the loop, loss[1]: unrolled. */
static int build(Case *c, ricci_tensor **loss)
{
	ricci_tensor *final[3], *stacked[3];
	Node *f[3], *s[3];
	if (!c->g || ricci_scan(c->g, &c->loop, final, stacked))
		return c->g ? ricci_graph_error(c->g) : RICCI_ENOMEM;
	for (int k = 0; k < c->loop.ncarry; k++)
		f[k] = final[k]->node;
	for (int k = 0; k < c->loop.nout; k++)
		s[k] = stacked[k]->node;
	IR_ENTER(&c->g->ir, RICCI_ENOMEM);
	loss[0] = loss_of(c, f, s);
	unroll(c, f, s);
	loss[1] = loss_of(c, f, s);
	IR_LEAVE(&c->g->ir);
	return 0;
}

/* ---- comparing ---- */

static bool values(Case *c, const ricci_tensor *t, double *out)
{
	Error err = {0};
	CHECK_STR(ricci_error_message(c->g), "");
	if (ricci_graph_error(c->g))
		return false;
	int code = interp_tensor(&c->g->ir, t->node, c->n, c->bind, (RandomState){1, 1}, out, NULL,
				 &err);
	CHECK_REPORT(code == 0, "interpreter: %s", err.text);
	return code == 0;
}

static bool agree(Case *c, const ricci_tensor *a, const ricci_tensor *b, double tolerance)
{
	double x[ROOM], y[ROOM];
	int before = check_failed;
	if (!values(c, a, x) || !values(c, b, y))
		return false;
	for (int64_t i = 0; i < tensor_size(a->node) && check_failed == before; i++)
		CHECK_NEAR(x[i], y[i], tolerance * (1 + fabs(y[i])));
	return check_failed == before;
}

/* sum over k of <a[k], sin of constants>: a scalar to differentiate again */
static ricci_tensor *mixture(Case *c, int n, ricci_tensor **a)
{
	Case only = {.g = c->g, .loop = {.nout = 1}};
	ricci_tensor *sum = NULL;
	for (int k = 0; k < n; k++) {
		ricci_tensor *term = loss_of(&only, NULL, &a[k]->node);
		sum = sum ? ricci_op(c->g, "S[] = A[] + B[]", sum, term) : term;
	}
	return sum;
}

static void report(bool ok, int which, Way w, const char *what)
{
	if (!ok)
		fprintf(stderr,
			"  in %s of loop %d, length %d, backwards %d, recompute %d, segment %d\n",
			what, which, (int)w.length, w.backwards, w.recompute, (int)w.segment);
}

static void test_way(int which, Way w, bool second)
{
	Case c;
	ricci_tensor *loss[2], *grad[2][MOST], *mix[2], *tangent[2], *again[2][MOST];
	make(&c, which, w);
	CHECK_INT(build(&c, loss), 0);
	CHECK_STR(ricci_error_message(c.g), "");
	report(agree(&c, loss[0], loss[1], 1e-12), which, w, "the value");
	for (int k = 0; k < 2; k++) {
		CHECK_INT(ricci_grad(c.g, loss[k], NULL, c.nwrt, c.wrt, grad[k]), 0);
		ricci_jvp(c.g, loss[k], c.nwrt, c.wrt, c.wrt, &tangent[k]);
	}
	bool ok = agree(&c, tangent[0], tangent[1], 1e-11);
	report(ok, which, w, "the tangent");
	for (int k = 0; k < c.nwrt && ok; k++) {
		ok = agree(&c, grad[0][k], grad[1][k], 1e-11);
		report(ok, which, w, ricci_name(c.wrt[k]));
	}
	for (int k = 0; k < 2 && second; k++) {
		mix[k] = mixture(&c, c.nwrt, grad[k]);
		CHECK_INT(ricci_grad(c.g, mix[k], NULL, c.nwrt, c.wrt, again[k]), 0);
		ricci_jvp(c.g, mix[k], c.nwrt, c.wrt, c.wrt, &tangent[k]);
	}
	if (second) {
		ok = agree(&c, tangent[0], tangent[1], 1e-9);
		report(ok, which, w, "the tangent of the gradient");
	}
	for (int k = 0; k < c.nwrt && ok && second; k++) {
		ok = agree(&c, again[0][k], again[1][k], 1e-9);
		report(ok, which, w, "the gradient's gradient");
	}
	ricci_graph_free(c.g);
}

static void test_all(void)
{
	static const Way ways[] = {{-1, 0, 0, 0}, {-1, 1, 0, 0}, {-1, 0, 1, 0}, {-1, 0, 0, 2},
				   {-1, 1, 1, 3}, {0, 0, 0, 0},	 {1, 0, 0, 0},	{2, 1, 0, 0},
				   {3, 0, 1, 0},  {3, 1, 0, 2},	 {3, 0, 0, 9},	{0, 0, 0, 2}};
	for (int which = 0; which < FIXED; which++)
		for (int k = 0; k < COUNT(ways); k++)
			test_way(which, ways[k], k < 4 || k == 7 || k == 9);
}

/* A gradient of the user's own in a loop's body, false so that it shows, and one in whose place
 * folding left nothing of an operand: by steps and in regions, and by forward mode. */
static void test_custom(Way w, bool region)
{
	Case c = {.g = ricci_graph_new()};
	ricci_graph *g = c.g;
	ricci_tensor *x = input(&c, "x", 2, SHAPE(4, 3), 0), *k = input(&c, "k", 1, SHAPE(3), 0);
	ricci_tensor *xt = variable(&c, "xt", 1, SHAPE(3)), *y, *s, *grad[2], *tangent;
	double got[12], want[12] = {0};
	y = ricci_op_custom(g, "Y[i] = X[i]*W[i] + 0*V[i]",
			    "dX[i] = 2*dY[i]*W[i]; dW[i] = 5*dY[i]*X[i]", xt, k,
			    ricci_op(g, "E[i] = exp(X[i])", xt));
	if (region)
		CHECK_INT(ricci_recompute(g, 2, (ricci_tensor *[]){xt, k}, 1, &y, &y), 0);
	ricci_loop l = {.steps = 4,
			.nslice = 1,
			.slice = &(ricci_slice){xt, x},
			.nout = 1,
			.out = &y,
			.recompute = w.recompute,
			.segment = w.segment};
	CHECK_INT(ricci_scan(g, &l, NULL, &s), 0);
	ricci_tensor *loss = ricci_op(g, "L[] += S[t,i]*f64(t + 1)", s);
	CHECK_INT(ricci_grad(g, loss, NULL, 2, c.wrt, grad), 0);
	CHECK_INT(ricci_jvp(g, loss, 1, &k, &k, &tangent), 0);
	if (values(&c, grad[0], got))
		for (int i = 0; i < 12; i++)
			CHECK_NEAR(got[i], 2 * (i / 3 + 1) * c.value[1][i % 3], 1e-12);
	for (int i = 0; i < 12; i++) {
		want[i % 3] += 5 * (i / 3 + 1) * c.value[0][i];
		want[3] += 5 * (i / 3 + 1) * c.value[0][i] * c.value[1][i % 3];
	}
	if (values(&c, grad[1], got))
		for (int i = 0; i < 3; i++)
			CHECK_NEAR(got[i], want[i], 1e-12);
	if (values(&c, tangent, got))
		CHECK_NEAR(got[0], want[3], 1e-12);
	ricci_graph_free(g);
}

/* Dropout in a body: steps draw numbers of their own, and the backward pass the same again. A
 * region draws what its equations draw without it. */
static void test_draws(Way w)
{
	Case c = {.g = ricci_graph_new()};
	ricci_graph *g = c.g;
	ricci_tensor *x = input(&c, "x", 2, SHAPE(4, 8), 2), *xt = variable(&c, "xt", 1, SHAPE(8));
	const char *text = "Y[i] = X[i]*(random(7) < 0.5 ? 2.0 : 0.0)";
	ricci_tensor *y = ricci_op(g, text, xt), *s, *grad, *z, *again;
	double value[32], slope[32];
	int zeros = 0, same = 0;
	if (w.segment)
		ricci_recompute(g, 1, &xt, 1, &y, &y);
	ricci_loop l = {.steps = 4,
			.nslice = 1,
			.slice = &(ricci_slice){xt, x},
			.nout = 1,
			.out = &y,
			.recompute = w.recompute,
			.segment = w.segment};
	CHECK_INT(ricci_scan(g, &l, NULL, &s), 0);
	CHECK_INT(ricci_grad(g, ricci_op(g, "L[] += S[t,i]", s), NULL, 1, &x, &grad), 0);
	if (values(&c, s, value) && values(&c, grad, slope))
		for (int i = 0; i < 32; i++) {
			CHECK_NEAR(slope[i], value[i] / c.value[0][i], 1e-14);
			zeros += value[i] == 0;
			same += (value[i] == 0) == (value[i % 8] == 0);
		}
	CHECK(zeros > 4 && zeros < 28 && same < 28);
	z = ricci_op(g, "Z[t,i] = X[t,i]*f64(random(3))", x);
	CHECK_INT(ricci_recompute(g, 1, &x, 1, &z, &again), 0);
	agree(&c, z, again, 0);
	ricci_graph_free(g);
}

/* Central differences at some elements of each input. */
static void test_differences(int which, Way w)
{
	Case c;
	ricci_tensor *loss[2], *grad[MOST];
	make(&c, which, w);
	build(&c, loss);
	CHECK_INT(ricci_grad(c.g, loss[0], NULL, c.nwrt, c.wrt, grad), 0);
	for (int k = 0; k < c.nwrt; k++) {
		double g[ROOM], up, down, *x = c.value[k];
		if (!values(&c, grad[k], g))
			break;
		for (int64_t i = 0; i < tensor_size(c.wrt[k]->node); i += 3) {
			double old = x[i], step = 1e-5;
			x[i] = old + step;
			values(&c, loss[0], &up);
			x[i] = old - step;
			values(&c, loss[0], &down);
			x[i] = old;
			CHECK_NEAR(g[i], (up - down) / (2 * step), 1e-7 * (1 + fabs(g[i])));
		}
	}
	ricci_graph_free(c.g);
}

/* <u, J t> = <J' u, t> for a u that is a tensor, through the stack alone. */
static void test_identity(int which, Way w)
{
	Case c;
	ricci_tensor *final[3], *stacked[3], *grad[MOST], *jt;
	double u[ROOM], t[ROOM], left = 0, right = 0;
	make(&c, which, w);
	CHECK_INT(ricci_scan(c.g, &c.loop, final, stacked), 0);
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < ricci_rank(stacked[0]); d++)
		shape[d] = ricci_extent(stacked[0], d);
	ricci_tensor *seed = input(&c, "seed", ricci_rank(stacked[0]), shape, .2);
	ricci_grad(c.g, stacked[0], seed, c.nwrt - 1, c.wrt, grad);
	ricci_jvp(c.g, stacked[0], c.nwrt - 1, c.wrt, c.wrt, &jt);
	if (values(&c, jt, t) && values(&c, seed, u))
		for (int64_t i = 0; i < tensor_size(seed->node); i++)
			left += u[i] * t[i];
	for (int k = 0; k < c.nwrt - 1 && values(&c, grad[k], t) && values(&c, c.wrt[k], u); k++)
		for (int64_t i = 0; i < tensor_size(c.wrt[k]->node); i++)
			right += u[i] * t[i];
	CHECK_NEAR(left, right, 1e-10 * (1 + fabs(left)));
	report(fabs(left) > 1e-3, which, w, "an identity of zeros");
	ricci_graph_free(c.g);
}

/* A region has the gradients, and their gradients, that its equations have without it; its tensors
 * are computed in a loop of their own in the backward pass. */
static void test_region(void)
{
	Case c = {.g = ricci_graph_new()};
	ricci_graph *g = c.g;
	ricci_tensor *x = input(&c, "x", 2, SHAPE(3, 4), 0), *w = input(&c, "w", 2, SHAPE(4, 5), 0);
	ricci_tensor *in[] = {x, w}, *y[2], *r[2], *loss[2], *grad[2][2], *more[2][2], *mix, *t[2];
	int n = 2;
	ricci_ops(g,
		  "A[i,j] += X[i,k]*W[k,j]; B[i,j] = tanh(A[i,j]); Y[i] += B[i,j]*B[i,j];"
		  "Z[j] max= B[i,j]",
		  2, in, &n, y);
	CHECK_INT(ricci_recompute(g, 2, in, 2, y, r), 0);
	for (int k = 0; k < 2; k++) {
		ricci_tensor **from = k ? r : y;
		loss[k] = ricci_op(g, "L[] += Y[i]*Y[i]*Z[j]", from[0], from[1]);
		CHECK_INT(ricci_grad(g, loss[k], NULL, 2, c.wrt, grad[k]), 0);
		mix = mixture(&c, 2, grad[k]);
		CHECK_INT(ricci_grad(g, mix, NULL, 2, c.wrt, more[k]), 0);
		CHECK_INT(ricci_jvp(g, mix, 2, c.wrt, c.wrt, &t[k]), 0);
	}
	agree(&c, loss[0], loss[1], 1e-14);
	agree(&c, t[0], t[1], 1e-10);
	for (int k = 0; k < 2; k++) {
		agree(&c, grad[0][k], grad[1][k], 1e-12);
		agree(&c, more[0][k], more[1][k], 1e-10);
	}
	/* two loops: the region and its gradient, which has the sum A in its body */
	char *text = ricci_show(grad[1][1]), *at = strstr(text, "recompute");
	CHECK(at && (at = strstr(at + 1, "recompute")) && !strstr(at + 1, "recompute"));
	CHECK(at && strstr(at, "tanh"));
	ricci_free_text(text);
	ricci_graph_free(g);
}

static int count(const char *text, const char *what)
{
	int n = 0;
	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

/* What is kept of a step is the least that spares its sums: of two sums the one tensor that is made
 * of both; what is stacked anyway for nothing; and without sums nothing. */
static void test_kept(void)
{
	static const struct {
		const char *text;
		int stacks; /* of the forward loop: states and what is kept */
	} cases[] = {
		{"A[i] += W[i,j]*H[j]; B[i] += W[j,i]*H[j]; Z[i] = A[i] + B[i]; N[i] = sin(Z[i])",
		 2},
		{"A[i] += W[i,j]*H[j]; N[i] = A[i]", 1},
		{"A[i] += W[i,j]*H[j]; N[i] = tanh(A[i])", 2},
		{"A[i] = W[i,i]*H[i]; N[i] = sin(A[i])", 1},
	};
	for (int k = 0; k < COUNT(cases); k++)
		for (int stacked = 0; stacked < 2; stacked++) {
			Case c = {.g = ricci_graph_new()};
			ricci_graph *g = c.g;
			ricci_tensor *h0 = input(&c, "h0", 1, SHAPE(4), 0), *last, *all;
			ricci_tensor *w = input(&c, "w", 2, SHAPE(4, 4), 0);
			ricci_tensor *h = variable(&c, "h", 1, SHAPE(4)), *grad[2];
			ricci_tensor *next = ricci_op(g, cases[k].text, w, h);
			ricci_loop l = {.steps = 5,
					.ncarry = 1,
					.carry = &(ricci_carry){h, h0, next},
					.nout = stacked,
					.out = &next};
			CHECK_INT(ricci_scan(g, &l, &last, &all), 0);
			ricci_tensor *loss = ricci_op(g, stacked ? "L[] += S[t,i]" : "L[] += S[i]",
						      stacked ? all : last);
			CHECK_INT(ricci_grad(g, loss, NULL, 2, c.wrt, grad), 0);
			char *text = ricci_show(grad[1]);
			CHECK_INT(count(text, "stack"), cases[k].stacks);
			CHECK_INT(count(text, "tanh"), k == 2);
			CHECK_INT(count(text, "sin("), k == 0 || k == 3);
			ricci_free_text(text);
			ricci_graph_free(g);
		}
}

static void test_segment_length(void)
{
	for (int64_t length = -1; length <= 6; length += 7) {
		Case c;
		ricci_tensor *loss[2];
		Error err = {0};
		double out[ROOM];
		make(&c, 0, (Way){3, 0, 0, 2});
		memcpy(c.value[c.n - 1], &length, sizeof length);
		build(&c, loss);
		CHECK_INT(interp_tensor(&c.g->ir, loss[0]->node, c.n, c.bind, (RandomState){1, 1},
					out, NULL, &err),
			  RICCI_EVALUE);
		ricci_graph_free(c.g);
	}
}

/* A variable outside of its loop has no data. */
static void test_leak(void)
{
	Case c;
	ricci_tensor *loss[2];
	char err[200];
	make(&c, 1, (Way){-1, 0, 0, 0});
	build(&c, loss);
	ricci_tensor *y = ricci_op(c.g, "Y[] += P[i]*L[]", c.carry[0].variable, loss[0]);
	ricci_options options = {.backend = RICCI_BACKEND_INTERP};
	CHECK(!ricci_session_new(c.g, &options, 0, 1, &y, err, sizeof err));
	CHECK_STR(err, "the graph reads 'p', which has no data (a loop's variable has none outside "
		       "of its loop)");
	ricci_graph_free(c.g);
}

static int try(int which, Way w)
{
	Case c;
	ricci_tensor *loss[2], *grad[MOST], *tangent;
	make(&c, which, w);
	if (!c.g)
		return RICCI_ENOMEM;
	int code = build(&c, loss);
	if (!code)
		code = ricci_grad(c.g, loss[0], NULL, c.nwrt, c.wrt, grad);
	if (!code)
		code = ricci_jvp(c.g, loss[0], c.nwrt, c.wrt, c.wrt, &tangent);
	ricci_graph_free(c.g);
	return code;
}

static void test_memory(void)
{
	for (int segment = 0; segment < 3; segment += 2) {
		long live = mem_live(), n = 1;
		int code;
		do {
			mem_fail_at(n);
			code = try(3, (Way){2, 0, 0, segment});
			mem_fail_at(0);
			n += 1 + n / 40;
			CHECK(code == 0 || code == RICCI_ENOMEM);
			CHECK_INT(mem_live(), live);
		} while (code && n < 100000);
		CHECK(n > 5 && n < 100000);
	}
}

/* ---- kernels ---- */

/* Kernels of the loop's value and gradients against the interpreter. */
static void test_kernels(int which, Way w)
{
	Case c;
	ricci_tensor *loss[2], *grad[MOST];
	double got[MOST + 1][ROOM], want[ROOM];
	void *out[MOST + 1];
	Node *root[MOST + 1];
	Error err = {0};
	Evaluation e = {backend_find("tcc"), 1, 1, 1, 1, 0};
	make(&c, which, w);
	build(&c, loss);
	ricci_grad(c.g, loss[0], NULL, c.nwrt, c.wrt, grad);
	CHECK_STR(ricci_error_message(c.g), "");
	for (int k = 0; k <= c.nwrt; k++) {
		root[k] = k < c.nwrt ? grad[k]->node : loss[0]->node;
		out[k] = got[k];
	}
	int code = evaluate(&c.g->ir, c.nwrt + 1, root, c.n, c.bind, out, &e, &err);
	CHECK_REPORT(code == 0, "kernels: %s", err.text);
	bool ok = !code;
	for (int k = 0; k <= c.nwrt && ok; k++) {
		values(&c, k < c.nwrt ? grad[k] : loss[0], want);
		for (int64_t i = 0; i < tensor_size(root[k]) && ok; i++) {
			ok = check_near(got[k][i], want[i], 1e-9 * (1 + fabs(want[i])));
			CHECK_REPORT(ok, "kernels: root %d at %d is %g, should be %g", k, (int)i,
				     got[k][i], want[i]);
		}
	}
	report(ok, which, w, "the kernels");
	ricci_graph_free(c.g);
}

/* A weight's gradient of 16 bits is added up in f32 over the steps, and rounded once: 1000 times 1
 * is not 256, where bf16 would stop. Of single numbers, and of sums that leave the loop. */
static void test_short(const char *text, int64_t columns, double want)
{
	enum { STEPS = 1000 };
	Case c = {.g = ricci_graph_new()};
	ricci_graph *g = c.g;
	static float x[STEPS * 64], s0[1];
	uint16_t w[64], got[64];
	Error err = {0};
	Evaluation e = {backend_find("tcc"), 1, 1, 1, 1, 0};
	ricci_tensor *xs = ricci_input(g, "x", RICCI_F32, 2, SHAPE(STEPS, columns)), *final, *grad;
	ricci_tensor *wt = ricci_input(g, "w", RICCI_BF16, 1, &columns);
	ricci_tensor *start = ricci_input(g, "s0", RICCI_F32, 0, NULL);
	ricci_tensor *xt = ricci_input(g, "xt", RICCI_F32, 1, &columns);
	ricci_tensor *s = ricci_input(g, "s", RICCI_F32, 0, NULL);
	ricci_loop l = {.steps = STEPS,
			.nslice = 1,
			.slice = &(ricci_slice){xt, xs},
			.ncarry = 1,
			.carry = &(ricci_carry){s, start, ricci_op(g, text, wt, xt, s)}};
	for (int i = 0; i < STEPS * 64; i++)
		x[i] = 1;
	for (int i = 0; i < 64; i++)
		type_store(RICCI_BF16, w, (size_t)i, .5);
	CHECK_INT(ricci_scan(g, &l, &final, NULL), 0);
	CHECK_INT(ricci_grad(g, final, NULL, 1, &wt, &grad), 0);
	CHECK_STR(ricci_error_message(g), "");
	Binding bind[] = {{xs->node, x}, {wt->node, w}, {start->node, s0}};
	void *out = got;
	int code = evaluate(&g->ir, 1, &grad->node, 3, bind, &out, &e, &err);
	CHECK_REPORT(code == 0, "kernels: %s", err.text);
	CHECK_INT(grad->node->type, RICCI_BF16);
	CHECK_NEAR(type_load(RICCI_BF16, got, 0), want, 0);
	ricci_graph_free(g);
}

static void test_random(void)
{
	const char *count = getenv("RICCI_FUZZ");
	for (int k = 0; k < (count ? atoi(count) : 60) && !check_failed; k++) {
		Way way = {draw(4) - 1, draw(2), draw(3) == 0, draw(3) ? 0 : 1 + draw(3)};
		test_way(FIXED, way, k % 4 == 0);
		if (k % 8 == 0)
			test_kernels(FIXED, way);
	}
}

int main(void)
{
	test_all();
	test_random();
	test_short("P[i] = f32(W[i])*X[i]; T[] += P[i]; N[] = S[] + T[]", 3, 1000);
	test_short("T[] += f32(W[i])*cos(X[i] - X[j]); N[] = S[] + T[]", 64, 64000);
	for (int which = 0; which < FIXED; which++) {
		test_differences(which, (Way){-1, 0, 0, 0});
		test_differences(which, (Way){2, 1, 0, 2});
		test_identity(which, (Way){-1, 1, 0, 0});
		test_identity(which, (Way){3, 0, 0, 2});
	}
	test_draws((Way){0});
	test_draws((Way){.recompute = 1});
	test_draws((Way){.segment = 3});
	test_region();
	test_kept();
	test_segment_length();
	test_leak();
	test_memory();
	for (int region = 0; region < 2; region++) {
		test_custom((Way){0}, region);
		test_custom((Way){.recompute = 1}, region);
		test_custom((Way){.segment = 3}, region);
	}
	for (int which = 0; which < FIXED; which++) {
		test_kernels(which, (Way){-1, 0, 0, 0});
		test_kernels(which, (Way){2, 1, 0, 0});
		test_kernels(which, (Way){3, 0, 1, 2});
	}
	return check_done();
}

/* loops.h - loops for the tests of their gradients: some that people write and random ones, run in
 * several ways; the same unrolled; comparing. */
#ifndef LOOPS_H
#define LOOPS_H

#include "runtime/runtime.h"
#include "tests/check.h"
#include "tests/unroll.h"

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

__attribute__((unused)) static ricci_tensor *input(Case *c, const char *name, int rank,
						   const int64_t *shape, double offset)
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

__attribute__((unused)) static ricci_tensor *variable(Case *c, const char *name, int rank,
						      const int64_t *shape)
{
	return ricci_input(c->g, name, RICCI_F64, rank, shape);
}

/* ---- the loops ---- */

__attribute__((unused)) static void make_lstm(Case *c)
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
	c->loop = RICCI_LOOP(.steps = 5, .nslice = 1, .ncarry = 2, .nout = 1);
}

/* Cumulative products, one of them over zeros. */
__attribute__((unused)) static void make_products(Case *c)
{
	ricci_tensor *x = input(c, "x", 2, SHAPE(6, 3), .2), *p0 = input(c, "p0", 1, SHAPE(3), 1);
	ricci_tensor *xt = variable(c, "xt", 1, SHAPE(3)), *p = variable(c, "p", 1, SHAPE(3));
	c->value[0][7] = c->value[0][13] = 0;
	ricci_tensor *next = ricci_op(c->g, "N[i] = P[i]*X[i]", p, xt);
	c->slice[0] = (ricci_slice){xt, x};
	c->carry[0] = (ricci_carry){p, p0, next};
	c->out[0] = next;
	c->out[1] = p;
	c->loop = RICCI_LOOP(.steps = 6, .nslice = 1, .ncarry = 1, .nout = 2);
}

/* Newton's iteration for z^2 = a, with a hidden step counter; no slices. */
__attribute__((unused)) static void make_newton(Case *c)
{
	ricci_graph *g = c->g;
	ricci_tensor *a = input(c, "a", 1, SHAPE(3), 3), *z0 = input(c, "z0", 1, SHAPE(3), 2);
	ricci_tensor *z = variable(c, "z", 1, SHAPE(3)), *zero = ricci_op(g, "Z[] = i64(0)");
	ricci_tensor *k = ricci_input(g, "k", RICCI_I64, 0, NULL);
	ricci_tensor *next = ricci_op(g, "N[i] = Z[i] - (Z[i]*Z[i] - A[i])/(2.0*Z[i])", z, a);
	c->carry[0] = (ricci_carry){z, z0, next};
	c->carry[1] = (ricci_carry){k, zero, ricci_op(g, "N[] = K[] + 1", k)};
	c->out[0] = ricci_op(g, "Y[i] = f64(K[] + 1)*Z[i]", k, z);
	c->loop = RICCI_LOOP(.steps = 4, .ncarry = 2, .nout = 1);
}

/* A loop over the columns in a loop over the rows: a matrix that acts on the state of both. */
__attribute__((unused)) static void make_nested(Case *c)
{
	ricci_graph *g = c->g;
	ricci_tensor *x = input(c, "x", 2, SHAPE(3, 4), 0), *w = input(c, "w", 2, SHAPE(2, 2), 0);
	ricci_tensor *h0 = input(c, "h0", 1, SHAPE(2), .3), *row = variable(c, "row", 1, SHAPE(4));
	ricci_tensor *h = variable(c, "h", 1, SHAPE(2)), *e = variable(c, "e", 0, NULL), *last,
		     *all;
	ricci_tensor *q = variable(c, "q", 1, SHAPE(2));
	ricci_tensor *a = ricci_op(g, "A[i] += W[i,j]*Q[j]", w, q);
	ricci_tensor *next = ricci_op(g, "N[i] = sin(A[i] + E[]*H[i])", a, e, h);
	ricci_loop inner =
		RICCI_LOOP(.steps = 4, .nslice = 1, .slice = &(ricci_slice){e, row}, .ncarry = 1,
			   .carry = &(ricci_carry){q, h, next}, .nout = 1, .out = &a);
	ricci_scan(g, &inner, &last, &all);
	c->slice[0] = (ricci_slice){row, x};
	c->carry[0] = (ricci_carry){h, h0, last};
	c->out[0] = ricci_op(g, "Y[i] += S[t,i]*H[i]*R[t]", all, h, row);
	c->loop = RICCI_LOOP(.steps = 3, .nslice = 1, .ncarry = 1, .nout = 1);
}

/* A running maximum, a filter with a state of which only the end is used, a map without states. */
__attribute__((unused)) static void make_mixed(Case *c)
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
	c->loop = RICCI_LOOP(.steps = 5, .nslice = 2, .ncarry = 2, .nout = 1);
}

/* Weights and an equation of the highest rank, in the loop and in a region of its step. */
__attribute__((unused)) static void make_deep(Case *c)
{
	ricci_graph *g = c->g;
	int64_t deep[16] = {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3};
	ricci_tensor *w = input(c, "w", 16, deep, .3), *v = input(c, "v", 16, deep, .1);
	ricci_tensor *x = input(c, "x", 2, SHAPE(3, 3), 0), *h0 = input(c, "h0", 1, SHAPE(3), .2);
	ricci_tensor *xt = variable(c, "xt", 1, SHAPE(3)), *h = variable(c, "h", 1, SHAPE(3));
	ricci_tensor *y = ricci_op(g,
				   "E[a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p] = "
				   "tanh(W[a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p]*H[p]);"
				   "S[p] += E[a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p];"
				   "Y[p] = S[p] + V[1,0,0,0,0,0,0,0,0,0,0,0,0,0,1,p]*X[p]",
				   w, h, v, xt);
	ricci_recompute(g, 2, (ricci_tensor *[]){v, h}, 1,
			(ricci_tensor *[]){ricci_op(
				g, "Z[p] += sin(V[a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p]*H[p])", v, h)},
			&c->out[1]);
	c->slice[0] = (ricci_slice){xt, x};
	c->carry[0] = (ricci_carry){h, h0, y};
	c->out[0] = y;
	c->loop = RICCI_LOOP(.steps = 3, .nslice = 1, .ncarry = 1, .nout = 2);
}

/* ---- random loops ---- */

__attribute__((unused)) static uint64_t random_state = 88172645463325252u;

__attribute__((unused)) static int draw(int n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (int)((random_state >> 11) % (uint64_t)n);
}

/* An equation over vectors a, b of 3 and a matrix w, as a loop's body may hold it. */
__attribute__((unused)) static ricci_tensor *random_equation(Case *c, ricci_tensor *a,
							     ricci_tensor *b, ricci_tensor *w)
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
__attribute__((unused)) static void make_random(Case *c)
{
	ricci_graph *g = c->g;
	ricci_tensor *pool[16], *w = input(c, "w", 2, SHAPE(3, 3), 0);
	int n = 0, nslice = draw(3), nstate = 1 + draw(3), steps = 2 + draw(4), more = 2 + draw(5);
	char name[16];
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
		ricci_loop inner = RICCI_LOOP(.steps = 2, .ncarry = 1,
					      .carry = &(ricci_carry){p, pool[draw(n)], next});
		ricci_scan(g, &inner, &pool[n], NULL);
		k++;
	}
	for (int k = 0; k < nstate; k++)
		c->carry[k].next = pool[draw(4) ? n - 1 - draw(more < 3 ? more : 3) : draw(n)];
	c->loop =
		RICCI_LOOP(.steps = steps, .nslice = nslice, .ncarry = nstate, .nout = 1 + draw(2));
	for (int k = 0; k < c->loop.nout; k++)
		c->out[k] = pool[draw(n)];
}

__attribute__((unused)) static void (*const makers[])(Case *) = {
	make_lstm, make_products, make_newton, make_nested, make_mixed, make_deep, make_random};
enum { FIXED = 6 };

__attribute__((unused)) static void make(Case *c, int which, Way way)
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

/* sum of t * sin(1 + axes) + t^2 / 2 over all float results */
__attribute__((unused)) static ricci_tensor *loss_of(Case *c, Node *const *final,
						     Node *const *stacked)
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
__attribute__((unused)) static int build(Case *c, ricci_tensor **loss)
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
	unroll(&c->g->ir, &c->loop, c->length, f, s);
	loss[1] = loss_of(c, f, s);
	IR_LEAVE(&c->g->ir);
	return 0;
}

/* ---- comparing ---- */

__attribute__((unused)) static bool values(Case *c, const ricci_tensor *t, double *out)
{
	Error err = {0};
	CHECK_GRAPH(c->g);
	if (ricci_graph_error(c->g))
		return false;
	int code = interp_tensor(t->node, c->n, c->bind, (RandomState){1, 1}, out, NULL, &err);
	CHECK_REPORT(code == 0, "interpreter: %s", err.text);
	return code == 0;
}

__attribute__((unused)) static bool agree(Case *c, const ricci_tensor *a, const ricci_tensor *b,
					  double tolerance)
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
__attribute__((unused)) static ricci_tensor *mixture(Case *c, int n, ricci_tensor **a)
{
	Case only = {.g = c->g, .loop = {.nout = 1}};
	ricci_tensor *sum = NULL;
	for (int k = 0; k < n; k++) {
		ricci_tensor *term = loss_of(&only, NULL, &a[k]->node);
		sum = sum ? ricci_op(c->g, "S[] = A[] + B[]", sum, term) : term;
	}
	return sum;
}

__attribute__((unused)) static void report(bool ok, int which, Way w, const char *what)
{
	if (!ok)
		fprintf(stderr,
			"  in %s of loop %d, length %d, backwards %d, recompute %d, segment %d\n",
			what, which, (int)w.length, w.backwards, w.recompute, (int)w.segment);
}

#endif

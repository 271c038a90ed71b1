/* layers.c - layers as index expressions.
 * Input: tensors of one graph and a few numbers. Output: one tensor. Each function writes the text
 * of its equations and gives it to ricci_ops; what it checks itself is only the ranks, for a
 * message in the layer's own words. Invariant: nothing below knows these layers; they are plain
 * equations. */
#include "nn/nn.h"

#include <stdarg.h>

ricci_tensor *layer_nil(ricci_tensor *x)
{
	ricci_graph *g = x ? ricci_graph_of(x) : NULL;
	return g ? &g->nil : NULL;
}

ricci_tensor *layer_fail(ricci_tensor *x, const char *fmt, ...)
{
	ricci_graph *g = x ? ricci_graph_of(x) : NULL;
	char message[1024];
	va_list ap;
	va_start(ap, fmt);
	message_vprint(message, sizeof message, fmt, ap);
	va_end(ap);
	if (g && !ricci_graph_error(g))
		error_set(&g->ir.err, RICCI_ESHAPE, "%s", message);
	return layer_nil(x);
}

bool layer_check(const char *who, int n, const Operand *operands)
{
	ricci_tensor *x = operands[0].t;
	if (!x || ricci_graph_error(ricci_graph_of(x)))
		return false;
	for (int k = 0; k < n; k++) {
		const Operand *o = &operands[k];
		if (!o->t) {
			layer_fail(x, "%s: no tensor given for %s", who, o->layout);
			return false;
		}
		if (ricci_rank(o->t) < o->low || ricci_rank(o->t) > o->high) {
			layer_fail(x, "%s: %s expected, '%s' has %d dimensions", who, o->layout,
				   ricci_name(o->t) ? ricci_name(o->t) : "", ricci_rank(o->t));
			return false;
		}
	}
	return true;
}

ricci_tensor *layer_build(Text *text, int n, ricci_tensor *const *operands)
{
	ricci_tensor *x = operands[0], *y = layer_nil(x);
	if (text->failed || !text->s)
		error_set(&ricci_graph_of(x)->ir.err, RICCI_ENOMEM, "out of memory");
	else if (ricci_ops(ricci_graph_of(x), text->s, n, operands, &(int){1}, &y))
		y = layer_nil(x);
	text_free(text);
	return y;
}

void layer_indices(Text *t, int from, int to)
{
	for (int d = from; d < to; d++)
		text_add(t, "%si%d", d > from ? "," : "", d);
}

ricci_tensor *ricci_linear(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias)
{
	const Operand o[] = {
		{x, 2, 2, "x [batch, in]"}, {w, 2, 2, "w [out, in]"}, {bias, 1, 1, "bias [out]"}};
	if (!layer_check("ricci_linear", bias ? 3 : 2, o))
		return layer_nil(x);
	Text t = {0};
	text_add(&t, "L[b,n] += X[b,k] * W[n,k]");
	if (bias)
		text_add(&t, "; Y[b,n] = L[b,n] + B[n]");
	return layer_build(&t, bias ? 3 : 2, (ricci_tensor *[]){x, w, bias});
}

/* Places that a window of `size` has along dimension d of x, or 0 with an error. */
static int64_t places(const char *who, ricci_tensor *x, int d, int64_t size, int stride, int pad)
{
	int64_t extent = ricci_extent(x, d);
	if (stride < 1 || pad < 0 || size < 1) {
		if (stride < 1)
			layer_fail(x, "%s: the stride is %d, it must be 1 or more", who, stride);
		else if (pad < 0)
			layer_fail(x, "%s: the padding is %d, it must be 0 or more", who, pad);
		else
			layer_fail(x, "%s: a window's size is %lld, it must be 1 or more", who,
				   (long long)size);
		return 0;
	}
	if (extent + 2 * (int64_t)pad < size) {
		layer_fail(x,
			   "%s: a window of %lld with stride %d and padding %d does not fit an "
			   "image of %lld",
			   who, (long long)size, stride, pad, (long long)extent);
		return 0;
	}
	return (extent + 2 * (int64_t)pad - size) / stride + 1;
}

ricci_tensor *ricci_conv2d(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias, int stride,
			   int pad)
{
	const Operand o[] = {{x, 4, 4, "x [batch, channel, row, column]"},
			     {w, 4, 4, "w [out, in, row, column]"},
			     {bias, 1, 1, "bias [out]"}};
	const char *who = "ricci_conv2d";
	if (!layer_check(who, bias ? 3 : 2, o))
		return layer_nil(x);
	int64_t rows = places(who, x, 2, ricci_extent(w, 2), stride, pad);
	int64_t columns = rows ? places(who, x, 3, ricci_extent(w, 3), stride, pad) : 0;
	if (!columns)
		return layer_nil(x);
	Text t = {0};
	if (pad)
		text_add(&t,
			 "C[b,k,p,q] += (X[b,c,%d*p+r-%d,%d*q+s-%d] else 0.0) * W[k,c,r,s] where p "
			 "< "
			 "%lld, q < %lld",
			 stride, pad, stride, pad, (long long)rows, (long long)columns);
	else
		text_add(&t, "C[b,k,p,q] += X[b,c,%d*p+r,%d*q+s] * W[k,c,r,s]", stride, stride);
	if (bias)
		text_add(&t, "; Y[b,k,p,q] = C[b,k,p,q] + B[k]");
	return layer_build(&t, bias ? 3 : 2, (ricci_tensor *[]){x, w, bias});
}

ricci_tensor *ricci_capsule_conv(ricci_tensor *x, ricci_tensor *w, int stride)
{
	const Operand o[] = {{x, 6, 6, "x [batch, type, row, column, i, t]"},
			     {w, 6, 6, "w [out type, type, row, column, t, j]"}};
	const char *who = "ricci_capsule_conv";
	if (!layer_check(who, 2, o) || !places(who, x, 2, ricci_extent(w, 2), stride, 0) ||
	    !places(who, x, 3, ricci_extent(w, 3), stride, 0))
		return layer_nil(x);
	Text t = {0};
	text_add(&t, "Y[b,k,p,q,i,j] += X[b,c,%d*p+r,%d*q+s,i,t] * W[k,c,r,s,t,j]", stride, stride);
	return layer_build(&t, 2, (ricci_tensor *[]){x, w});
}

ricci_tensor *ricci_capsules(ricci_tensor *x, int rows, int columns)
{
	const Operand o[] = {{x, 4, 4, "x [batch, channel, row, column]"}};
	if (!layer_check("ricci_capsules", 1, o))
		return layer_nil(x);
	int64_t channels = ricci_extent(x, 1);
	if (rows < 1 || columns < 1 || channels % ((int64_t)rows * columns))
		return layer_fail(x, "ricci_capsules: %lld channels are not capsules of %d x %d",
				  (long long)channels, rows, columns);
	Text t = {0};
	text_add(&t, "Y[b,c,y,x,i,t] = X[b,%d*c+%d*i+t,y,x] where c < %lld, i < %d, t < %d",
		 rows * columns, columns, (long long)(channels / (rows * columns)), rows, columns);
	return layer_build(&t, 1, &x);
}

ricci_tensor *ricci_squash(ricci_tensor *x, int dims)
{
	const Operand o[] = {{x, 1, RICCI_MAX_RANK, "x of at least one dimension"}};
	if (!layer_check("ricci_squash", 1, o))
		return layer_nil(x);
	int rank = ricci_rank(x), keep = rank - dims;
	if (dims < 1 || keep < 0)
		return layer_fail(x, "ricci_squash: x has %d dimensions, not %d", rank, dims);
	Text t = {0}, all = {0}, outer = {0};
	layer_indices(&all, 0, rank);
	layer_indices(&outer, 0, keep);
	const char *a = all.s ? all.s : "", *k = outer.s ? outer.s : "";
	text_add(&t, "N[%s] += X[%s]*X[%s]; ", k, a, a);
	text_add(&t, "F[%s] = N[%s] / (1.0 + N[%s]) * rsqrt(N[%s] + 1e-7); ", k, k, k, k);
	text_add(&t, "Y[%s] = X[%s] * F[%s]", a, a, k);
	t.failed |= all.failed || outer.failed;
	text_free(&all);
	text_free(&outer);
	return layer_build(&t, 1, &x);
}

ricci_tensor *ricci_votes(ricci_tensor *x, ricci_tensor *w)
{
	const Operand o[] = {{x, 6, 6, "x [batch, type, row, column, i, t]"},
			     {w, 4, 4, "w [capsule, class, t, j]"}};
	if (!layer_check("ricci_votes", 2, o))
		return layer_nil(x);
	int64_t rows = ricci_extent(x, 2), columns = ricci_extent(x, 3);
	int64_t capsules = ricci_extent(x, 1) * rows * columns;
	if (ricci_extent(w, 0) != capsules)
		return layer_fail(x, "ricci_votes: w is for %lld capsules, x has %lld",
				  (long long)ricci_extent(w, 0), (long long)capsules);
	Text t = {0};
	text_add(&t, "Y[b,n,m,i,j] += X[b,n/%lld,n/%lld%%%lld,n%%%lld,i,t] * W[n,m,t,j]",
		 (long long)(rows * columns), (long long)columns, (long long)rows,
		 (long long)columns);
	return layer_build(&t, 2, (ricci_tensor *[]){x, w});
}

/* Procedure 1 with what is known put in: the logits start at zero, so the first coupling is 1/m for
 * all, and after the last iteration no logits are needed. The softmax subtracts floor(max) for
 * safety: it is as good as the max, since any shift cancels, and has no gradient to compute. */
ricci_tensor *ricci_routing(ricci_tensor *votes, int iterations)
{
	const Operand o[] = {{votes, 5, 5, "votes [batch, capsule, class, i, j]"}};
	if (!layer_check("ricci_routing", 1, o))
		return layer_nil(votes);
	if (iterations < 1)
		return layer_fail(votes, "ricci_routing: %d iterations", iterations);
	Text t = {0};
	text_add(&t, "S0[b,m,i,j] += U[b,n,m,i,j]; A0[b,m,i,j] = S0[b,m,i,j] / %lld.0",
		 (long long)ricci_extent(votes, 2));
	for (int k = 0; k < iterations; k++) {
		if (k) {
			text_add(&t, "; D%d[b,n,m] += U[b,n,m,i,j] * V%d[b,m,i,j]", k, k - 1);
			if (k > 1)
				text_add(&t, "; L%d[b,n,m] = L%d[b,n,m] + D%d[b,n,m]", k, k - 1, k);
			else
				text_add(&t, "; L1[b,n,m] = D1[b,n,m]");
			text_add(&t, "; M%d[b,n] max= L%d[b,n,m]", k, k);
			text_add(&t, "; E%d[b,n,m] = exp(L%d[b,n,m] - floor(M%d[b,n]))", k, k, k);
			text_add(&t, "; Z%d[b,n] += E%d[b,n,m]", k, k);
			text_add(&t, "; C%d[b,n,m] = E%d[b,n,m] / Z%d[b,n]", k, k, k);
			text_add(&t, "; A%d[b,m,i,j] += C%d[b,n,m] * U[b,n,m,i,j]", k, k);
		}
		text_add(&t, "; N%d[b,m] += A%d[b,m,i,j] * A%d[b,m,i,j]", k, k, k);
		text_add(&t, "; F%d[b,m] = N%d[b,m] / (1.0 + N%d[b,m]) * rsqrt(N%d[b,m] + 1e-7)", k,
			 k, k, k);
		text_add(&t, "; V%d[b,m,i,j] = A%d[b,m,i,j] * F%d[b,m]", k, k, k);
	}
	return layer_build(&t, 1, &votes);
}

ricci_tensor *ricci_relu(ricci_tensor *x)
{
	const Operand o[] = {{x, 0, RICCI_MAX_RANK, "x"}};
	if (!layer_check("ricci_relu", 1, o))
		return layer_nil(x);
	Text t = {0}, i = {0};
	layer_indices(&i, 0, ricci_rank(x));
	const char *s = i.s ? i.s : "";
	text_add(&t, "Y[%s] = X[%s] > 0.0 ? X[%s] : 0.0", s, s, s);
	t.failed |= i.failed;
	text_free(&i);
	return layer_build(&t, 1, &x);
}

ricci_tensor *ricci_softmax(ricci_tensor *x)
{
	const Operand o[] = {{x, 1, RICCI_MAX_RANK, "x of at least one dimension"}};
	if (!layer_check("ricci_softmax", 1, o))
		return layer_nil(x);
	Text t = {0}, all = {0}, outer = {0};
	layer_indices(&all, 0, ricci_rank(x));
	layer_indices(&outer, 0, ricci_rank(x) - 1);
	const char *a = all.s ? all.s : "", *k = outer.s ? outer.s : "";
	text_add(&t, "M[%s] max= X[%s]; E[%s] = exp(X[%s] - floor(M[%s])); ", k, a, a, a, k);
	text_add(&t, "Z[%s] += E[%s]; Y[%s] = E[%s] / Z[%s]", k, a, a, a, k);
	t.failed |= all.failed || outer.failed;
	text_free(&all);
	text_free(&outer);
	return layer_build(&t, 1, &x);
}

ricci_tensor *ricci_max_pool2d(ricci_tensor *x, int size, int stride)
{
	const Operand o[] = {{x, 4, 4, "x [batch, channel, row, column]"}};
	const char *who = "ricci_max_pool2d";
	if (!layer_check(who, 1, o) || !places(who, x, 2, size, stride, 0) ||
	    !places(who, x, 3, size, stride, 0))
		return layer_nil(x);
	Text t = {0};
	text_add(&t, "Y[b,c,p,q] max= X[b,c,%d*p+r,%d*q+s] where r < %d, s < %d", stride, stride,
		 size, size);
	return layer_build(&t, 1, &x);
}

ricci_tensor *ricci_global_avg_pool2d(ricci_tensor *x)
{
	const Operand o[] = {{x, 4, 4, "x [batch, channel, row, column]"}};
	if (!layer_check("ricci_global_avg_pool2d", 1, o))
		return layer_nil(x);
	Text t = {0};
	text_add(&t, "S[b,c] += X[b,c,p,q]; Y[b,c] = S[b,c] / %lld.0",
		 (long long)(ricci_extent(x, 2) * ricci_extent(x, 3)));
	return layer_build(&t, 1, &x);
}

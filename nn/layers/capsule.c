/* capsule.c - capsules: convolution of matrices, squash, votes, routing by agreement.
 * Source: Sabour, Frosst, Hinton 2017, "Dynamic routing between capsules". Input: tensors of one
 * graph and a few numbers. Output: one tensor. Invariant: nothing below knows these layers; they
 * are plain equations. */
#include "nn/layers/internal.h"

ricci_tensor *ricci_capsule_conv(ricci_tensor *x, ricci_tensor *w, int stride)
{
	const Operand o[] = {{x, 6, 6, "x [batch, type, row, column, i, t]"},
			     {w, 6, 6, "w [out type, type, row, column, t, j]"}};
	const char *who = "ricci_capsule_conv";
	if (!layer_check(who, 2, o))
		return layer_nil(x);
	Window win = {.dims = 2, .stride = {stride, stride}, .dilation = {1, 1}};
	for (int d = 0; d < 2; d++) {
		win.extent[d] = ricci_extent(x, d + 2);
		win.size[d] = ricci_extent(w, d + 2);
	}
	if (!window_check(&win, who, x) || !window_outputs(&win, who, x))
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
	int rank = ricci_rank(x);
	if (dims < 1 || dims > rank)
		return layer_fail(x, "ricci_squash: x has %d dimensions, not %d", rank, dims);
	Text t = {0};
	layer_text(&t, dims,
		   "N[...] += X[...{,j#}]*X[...{,j#}]; "
		   "F[...] = N[...] / (1.0 + N[...]) * rsqrt(N[...] + 1e-7); "
		   "Y[...{,j#}] = X[...{,j#}] * F[...]");
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

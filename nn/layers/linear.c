/* linear.c - products with a matrix of weights, and rows of one.
 * Input: tensors of one graph. Output: one tensor. Invariant: plain equations. */
#include "nn/layers/internal.h"

/* y = x w' + bias, over the last dimension of x. */
ricci_tensor *ricci_linear(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias)
{
	const Operand o[] = {{x, 1, RICCI_MAX_RANK, "x [..., in]"},
			     {w, 2, 2, "w [out, in]"},
			     {bias, 1, 1, "bias [out]"}};
	if (!layer_check("ricci_linear", bias ? 3 : 2, o))
		return layer_nil(x);
	return layer_of(0,
			bias ? "L[...,n] += X[...,k] * W[n,k]; Y[...,n] = L[...,n] + B[n]"
			     : "L[...,n] += X[...,k] * W[n,k]",
			bias ? 3 : 2, (ricci_tensor *[]){x, w, bias});
}

/* y[n] = x w[n] z' + bias[n]. */
ricci_tensor *ricci_bilinear(ricci_tensor *x, ricci_tensor *z, ricci_tensor *w, ricci_tensor *bias)
{
	const Operand o[] = {{x, 1, RICCI_MAX_RANK, "x [..., in]"},
			     {z, 1, RICCI_MAX_RANK, "z [..., in]"},
			     {w, 3, 3, "w [out, in of x, in of z]"},
			     {bias, 1, 1, "bias [out]"}};
	if (!layer_check("ricci_bilinear", bias ? 4 : 3, o))
		return layer_nil(x);
	return layer_of(0,
			bias ? "X, Z, W, B -> Y: T[...,n,j] += X[...,i]*W[n,i,j]; "
			       "L[...,n] += T[...,n,j]*Z[...,j]; Y[...,n] = L[...,n] + B[n]"
			     : "X, Z, W -> L: T[...,n,j] += X[...,i]*W[n,i,j]; "
			       "L[...,n] += T[...,n,j]*Z[...,j]",
			bias ? 4 : 3, (ricci_tensor *[]){x, z, w, bias});
}

/* Row t of the weights for each element t. */
ricci_tensor *ricci_embedding(ricci_tensor *t, ricci_tensor *w)
{
	const Operand o[] = {{t, 0, RICCI_MAX_RANK - 1, "indices [...]"},
			     {w, 2, 2, "w [count, size]"}};
	if (!layer_check("ricci_embedding", 2, o))
		return layer_nil(t);
	return layer_of(0, "Y[...,j] = W[T[...],j]", 2, (ricci_tensor *[]){w, t});
}

/* The same; the row `padding` is a number to the gradient. */
ricci_tensor *ricci_embedding_padded(ricci_tensor *t, ricci_tensor *w, int64_t padding)
{
	const char *who = "ricci_embedding_padded";
	const Operand o[] = {{t, 0, RICCI_MAX_RANK - 1, "indices [...]"},
			     {w, 2, 2, "w [count, size]"}};
	if (!layer_check(who, 2, o))
		return layer_nil(t);
	int64_t count = ricci_extent(w, 0);
	if (padding < -count || padding >= count)
		return layer_fail(t, "%s: the padding is row %lld of %lld", who, (long long)padding,
				  (long long)count);
	Text text = {0};
	text_add(&text, "W, T -> Y: ");
	layer_integer(&text, "P", padding < 0 ? padding + count : padding);
	layer_text(&text, 0, "Y[...,j] = T[...] == P ? stop_gradient(W[T[...],j]) : W[T[...],j]");
	return layer_build(&text, 2, (ricci_tensor *[]){w, t});
}

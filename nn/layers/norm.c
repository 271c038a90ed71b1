/* norm.c - normalisation by the mean and deviation of parts of a tensor, and dropout.
 * Input: x, scale and shift. Output: one tensor; batch normalisation also assigns its running
 * statistics. Invariant: plain equations; variances are means of squared deviations, so no digits
 * cancel. */
#include "nn/layers/internal.h"

#include <math.h>

/* Appends " * W[at] + B[at]", as far as there are any. */
static void affine(Text *t, int dims, const char *at, const ricci_tensor *w, const ricci_tensor *b)
{
	text_add(t, w ? " * W" : "");
	layer_text(t, dims, w ? at : "");
	text_add(t, b ? " + B" : "");
	layer_text(t, dims, b ? at : "");
}

/* The operands that are there. */
static int gather(ricci_tensor **to, int n, ricci_tensor *const *from)
{
	int k = 0;
	for (int i = 0; i < n; i++)
		if (from[i])
			to[k++] = from[i];
	return k;
}

/* Have x's graph and the shapes of w and bias no error? */
static bool shapes(const char *who, ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias, int rank,
		   const int64_t *shape)
{
	return (!w || layer_shape(x, who, "the weight", w, rank, shape)) &&
	       (!bias || layer_shape(x, who, "the bias", bias, rank, shape));
}

/* Over the last `dims` dimensions; centred: with the mean taken off. */
static ricci_tensor *last(const char *who, ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias,
			  int dims, double epsilon, bool centred)
{
	const Operand o[] = {{x, 1, RICCI_MAX_RANK, "x of at least one dimension"}};
	if (!layer_check(who, 1, o))
		return layer_nil(x);
	int rank = ricci_rank(x), lead = rank - dims;
	int64_t shape[RICCI_MAX_RANK], n = 1;
	if (dims < 1 || lead < 0)
		return layer_fail(x, "%s: x has %d dimensions, not %d", who, rank, dims);
	for (int d = 0; d < dims; d++)
		n *= shape[d] = ricci_extent(x, lead + d);
	if (!shapes(who, x, w, bias, dims, shape))
		return layer_nil(x);
	Text t = {0};
	layer_integer(&t, "n", n);
	layer_real(&t, "e", epsilon);
	if (centred)
		layer_text(&t, dims, "M[...] += X[...{,j#}]; d = X[...{,j#}] - M[...]/n; ");
	else
		layer_text(&t, dims, "d = X[...{,j#}]; ");
	layer_text(&t, dims, "V[...] += d*d; Y[...{,j#}] = d * rsqrt(V[...]/n + e)");
	affine(&t, dims, "[{,j#}]", w, bias);
	ricci_tensor *operands[3];
	return layer_build(&t, gather(operands, 3, (ricci_tensor *[]){x, w, bias}), operands);
}

/* (x - mean) / sqrt(variance + epsilon) * w + bias (Ba, Kiros, Hinton 2016). */
ricci_tensor *ricci_layer_norm(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias, int dims,
			       double epsilon)
{
	return last("ricci_layer_norm", x, w, bias, dims, epsilon, true);
}

/* x / sqrt(mean of x^2 + epsilon) * w (Zhang & Sennrich 2019, equation 4). */
ricci_tensor *ricci_rms_norm(ricci_tensor *x, ricci_tensor *w, int dims, double epsilon)
{
	return last("ricci_rms_norm", x, w, NULL, dims, epsilon, false);
}

/* Over the positions and channels of each group of a sample (Wu & He 2018, equation 7). */
ricci_tensor *ricci_group_norm(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias, int groups,
			       double epsilon)
{
	const char *who = "ricci_group_norm";
	const Operand o[] = {{x, 2, RICCI_MAX_RANK, "x [batch, channel, ...]"}};
	if (!layer_check(who, 1, o))
		return layer_nil(x);
	int64_t channels = ricci_extent(x, 1);
	if (groups < 1 || channels % groups)
		return layer_fail(x, "%s: %lld channels can't be divided into %d groups", who,
				  (long long)channels, groups);
	if (!shapes(who, x, w, bias, 1, &channels))
		return layer_nil(x);
	int dims = ricci_rank(x) - 2;
	int64_t n = channels / groups;
	for (int d = 0; d < dims; d++)
		n *= ricci_extent(x, d + 2);
	Text t = {0};
	layer_integer(&t, "n", n);
	layer_integer(&t, "C", channels / groups);
	layer_integer(&t, "G", groups);
	layer_real(&t, "e", epsilon);
	layer_text(&t, dims,
		   "M[b,g] += X[b,C*g+c{,j#}] where g < G, c < C; "
		   "D[b,k{,j#}] = X[b,k{,j#}] - M[b,k/C]/n; "
		   "V[b,g] += D[b,C*g+c{,j#}]*D[b,C*g+c{,j#}] where g < G, c < C; "
		   "Y[b,k{,j#}] = D[b,k{,j#}] * rsqrt(V[b,k/C]/n + e)");
	affine(&t, 0, "[k]", w, bias);
	ricci_tensor *operands[3];
	return layer_build(&t, gather(operands, 3, (ricci_tensor *[]){x, w, bias}), operands);
}

/* A group for each channel (Ulyanov, Vedaldi, Lempitsky 2016). */
ricci_tensor *ricci_instance_norm(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias,
				  double epsilon)
{
	return ricci_group_norm(x, w, bias, (int)ricci_extent(x, 1), epsilon);
}

/* Mean and variance of a channel over batch and positions while training, running ones otherwise; these
 * move by `momentum` towards the batch's, the variance's without bias (Ioffe & Szegedy 2015,
 * algorithms 1 and 2; momentum as PyTorch has it). */
ricci_tensor *ricci_batch_norm(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias,
			       ricci_tensor *mean, ricci_tensor *variance, double momentum,
			       double epsilon)
{
	const char *who = "ricci_batch_norm";
	const Operand o[] = {{x, 2, RICCI_MAX_RANK, "x [batch, channel, ...]"},
			     {mean, 1, 1, "the running mean [channel]"},
			     {variance, 1, 1, "the running variance [channel]"}};
	bool running = mean || variance;
	if (!layer_check(who, running ? 3 : 1, o))
		return layer_nil(x);
	int64_t channels = ricci_extent(x, 1), n = ricci_extent(x, 0);
	if (!shapes(who, x, w, bias, 1, &channels) ||
	    (running && (!layer_shape(x, who, "the running mean", mean, 1, &channels) ||
			 !layer_shape(x, who, "the running variance", variance, 1, &channels))))
		return layer_nil(x);
	int dims = ricci_rank(x) - 2;
	for (int d = 0; d < dims; d++)
		n *= ricci_extent(x, d + 2);
	Text t = {0};
	layer_integer(&t, "n", n);
	layer_integer(&t, "u", n > 1 ? n - 1 : 1);
	layer_real(&t, "e", epsilon);
	layer_real(&t, "m", momentum);
	layer_text(&t, dims,
		   "M[c] += X[b,c{,j#}]; d = X[b,c{,j#}] - M[c]/n; V[c] += d*d; "
		   "Y[b,c{,j#}] = ");
	layer_text(&t, dims,
		   running ? "(X[b,c{,j#}] - (training ? M[c]/n : R[c])) * "
			     "rsqrt((training ? V[c]/n : S[c]) + e)"
			   : "d * rsqrt(V[c]/n + e)");
	affine(&t, 0, "[c]", w, bias);
	if (running)
		text_add(&t, "; P[c] = (1-m)*R[c] + m*M[c]/n; Q[c] = (1-m)*S[c] + m*V[c]/u");
	ricci_tensor *operands[5], *result[3];
	int count = gather(operands, 5, (ricci_tensor *[]){x, mean, variance, w, bias});
	layer_results(&t, count, operands, running ? 3 : 1, result);
	if (running) {
		ricci_assign(ricci_graph_of(x), mean, result[1]);
		ricci_assign(ricci_graph_of(x), variance, result[2]);
	}
	return result[0];
}

/* While training zero with probability p, else x / (1 - p) (Srivastava et al. 2014, section 10). The
 * key is the number of tensors in the graph so far: another for each call. */
ricci_tensor *ricci_dropout(ricci_tensor *x, double p)
{
	const Operand o[] = {{x, 0, RICCI_MAX_RANK, "x"}};
	if (!layer_check("ricci_dropout", 1, o))
		return layer_nil(x);
	if (!(p >= 0 && p < 1))
		return layer_fail(x, "ricci_dropout: the probability is %g, it must be in [0, 1)",
				  p);
	Text t = {0};
	layer_real(&t, "p", p);
	layer_integer(&t, "key", 0x64726f70 + (int64_t)ricci_graph_of(x)->ntensor);
	layer_text(&t, 0,
		   "Y[...] = training && random(key) < p ? 0.0 : training ? X[...]/(1-p) : X[...]");
	return layer_build(&t, 1, &x);
}

/* y[c] = x[c] / (k + alpha / size * sum of x^2 over `size` channels around c)^beta. */
ricci_tensor *ricci_local_response_norm(ricci_tensor *x, int size, double alpha, double beta,
					double k)
{
	const char *who = "ricci_local_response_norm";
	const Operand o[] = {{x, 2, RICCI_MAX_RANK, "x [batch, channel, ...]"}};
	if (!layer_check(who, 1, o))
		return layer_nil(x);
	if (size < 1 || !isfinite(alpha) || !isfinite(beta) || !isfinite(k))
		return layer_fail(x, "%s: %d channels, alpha %g, beta %g, k %g", who, size, alpha,
				  beta, k);
	Text t = {0};
	layer_integer(&t, "h", size / 2);
	text_add(&t, "S[b,c,...] += (X[b,c+r-h,...] else 0.0)*(X[b,c+r-h,...] else 0.0) ");
	text_add(&t, "where c < X.size(1), r < %d; ", size);
	text_add(&t, "Y[b,c,...] = X[b,c,...] / pow(%#.17g + %#.17g*S[b,c,...], %#.17g)", k,
		 alpha / size, beta);
	return layer_build(&t, 1, &x);
}

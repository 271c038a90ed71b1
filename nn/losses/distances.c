/* distances.c - how far vectors are from each other, and losses of that. Vectors lie along the last
 * dimension; means are over all others. */
#include "nn/losses/internal.h"

#include <math.h>

/* Tensors of one shape, of at least one dimension? */
static bool vectors(const char *who, int n, ricci_tensor *const *x)
{
	for (int k = 1; k < n; k++)
		if (!loss_same_shape(who, x[0], x[k], 1, "vectors [..., size]"))
			return false;
	return true;
}

static bool number(ricci_tensor *x, const char *who, const char *what, double v, double least)
{
	if (!(v >= least && isfinite(v)))
		layer_fail(x, "%s: %s is %g, it must be finite, and %g or more", who, what, v,
			   least);
	return v >= least && isfinite(v);
}

ricci_tensor *ricci_cosine_similarity(ricci_tensor *a, ricci_tensor *b, double epsilon)
{
	const char *who = "ricci_cosine_similarity";
	if (!vectors(who, 2, (ricci_tensor *[]){a, b}) || !number(a, who, "epsilon", epsilon, 0))
		return layer_nil(a);
	Text t = {0};
	text_add(&t,
		 "A, B -> Y: e = %#.17g; C[...] += A[...,i]*B[...,i]; P[...] += A[...,i]*A[...,i]; "
		 "Q[...] += B[...,i]*B[...,i]; "
		 "Y[...] = C[...] / (sqrt(max(P[...], e*e)) * sqrt(max(Q[...], e*e)))",
		 epsilon);
	return layer_build(&t, 2, (ricci_tensor *[]){a, b});
}

ricci_tensor *ricci_pairwise_distance(ricci_tensor *a, ricci_tensor *b, double power,
				      double epsilon)
{
	const char *who = "ricci_pairwise_distance";
	if (!vectors(who, 2, (ricci_tensor *[]){a, b}) || !number(a, who, "the power", power, 1) ||
	    !number(a, who, "epsilon", epsilon, 0))
		return layer_nil(a);
	Text t = {0};
	text_add(&t, "A, B -> Y: d = A[...,i] - B[...,i] + %#.17g; ", epsilon);
	if (power == 2)
		text_add(&t, "S[...] += d*d; Y[...] = S[...] > 0 ? sqrt(S[...]) : 0.0");
	else
		text_add(&t,
			 "S[...] += pow(abs(d), %#.17g); "
			 "Y[...] = S[...] > 0 ? pow(S[...], %#.17g) : 0.0",
			 power, 1 / power);
	return layer_build(&t, 2, (ricci_tensor *[]){a, b});
}

ricci_tensor *ricci_triplet_loss(ricci_tensor *anchor, ricci_tensor *positive,
				 ricci_tensor *negative, double margin)
{
	const char *who = "ricci_triplet_loss";
	ricci_tensor *x[] = {anchor, positive, negative};
	if (!vectors(who, 3, x) || !number(anchor, who, "the margin", margin, 0))
		return layer_nil(anchor);
	ricci_tensor *d[] = {ricci_pairwise_distance(anchor, positive, 2, 1e-6),
			     ricci_pairwise_distance(anchor, negative, 2, 1e-6)};
	Text t = {0};
	text_add(&t, "P, N -> Y: Y[] += max(P[...] - N[...] + %#.17g, 0.0) / %.1f", margin,
		 loss_count(anchor, ricci_rank(anchor) - 1));
	return layer_build(&t, 2, d);
}

ricci_tensor *ricci_cosine_embedding_loss(ricci_tensor *a, ricci_tensor *b, ricci_tensor *targets,
					  double margin)
{
	const char *who = "ricci_cosine_embedding_loss";
	if (!vectors(who, 2, (ricci_tensor *[]){a, b}) || !number(a, who, "the margin", margin, -1))
		return layer_nil(a);
	int rank = ricci_rank(a) - 1;
	const Operand o[] = {{a, 1, RICCI_MAX_RANK, "vectors [..., size]"},
			     {targets, rank, rank, "targets [...]"}};
	if (!layer_check(who, 2, o))
		return layer_nil(a);
	ricci_tensor *cosine = ricci_cosine_similarity(a, b, 1e-6);
	Text t = {0};
	text_add(&t,
		 "T, C -> Y: Y[] += (T[...] > 0 ? 1.0 - C[...] : max(C[...] - %#.17g, 0.0)) / %.1f",
		 margin, loss_count(a, rank));
	return layer_build(&t, 2, (ricci_tensor *[]){targets, cosine});
}

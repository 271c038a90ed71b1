/* metrics.c - what a training reports beside its loss: counts of errors, and the loss in other
 * units. Labels are I32 tensors that index, so their range is checked when they are fed. */
#include "nn/losses/internal.h"

/* "Not greater" rather than "less or equal", so that NaN counts as an error. */
ricci_tensor *ricci_misclassified(ricci_tensor *scores, ricci_tensor *labels)
{
	const Operand o[] = {{scores, 2, RICCI_MAX_RANK, "scores [batch, class, ...]"},
			     {labels, 1, 1, "labels [batch]"}};
	if (!layer_check("ricci_misclassified", 2, o))
		return layer_nil(scores);
	Text t = {0};
	const char *score = ricci_rank(scores) > 2 ? "S" : "V";
	if (ricci_rank(scores) > 2)
		text_add(&t, "S[b,m] += V[b,m,...] * V[b,m,...]; ");
	text_add(&t, "Y[b] max= !(%s[b,T[b]] > %s[b,m]) && m != T[b] ? i32(1) : i32(0)", score,
		 score);
	return layer_build(&t, 2, (ricci_tensor *[]){scores, labels});
}

ricci_tensor *ricci_misclassified_top(ricci_tensor *scores, ricci_tensor *labels, int k)
{
	if (!loss_labelled("ricci_misclassified_top", scores, labels))
		return layer_nil(scores);
	if (k < 1)
		return layer_fail(scores, "ricci_misclassified_top: k is %d, it must be 1 or more",
				  k);
	Text t = {0};
	text_add(&t,
		 "R[...] += !(V[...,T[...]] > V[...,m]) && m != T[...] ? i32(1) : i32(0); "
		 "Y[...] = R[...] >= %d ? i32(1) : i32(0)",
		 k);
	return layer_build(&t, 2, (ricci_tensor *[]){scores, labels});
}

/* With a NaN no score equals the greatest, and A keeps the start of its min=. */
ricci_tensor *ricci_confusion(ricci_tensor *scores, ricci_tensor *labels)
{
	if (!loss_labelled("ricci_confusion", scores, labels))
		return layer_nil(scores);
	Text t = {0};
	long long classes = (long long)ricci_extent(scores, ricci_rank(labels));
	text_add(&t,
		 "M[...] max= V[...,m]; N[...] += V[...,m] == V[...,m] ? i32(0) : i32(1); "
		 "A[...] min= V[...,m] == M[...] ? i32(m) : i32(%lld); "
		 "Y[T[...]:%lld, min(max(A[...],0),%lld):%lld] += N[...] == 0 ? i32(1) : i32(0)",
		 classes, classes, classes - 1, classes);
	return layer_build(&t, 2, (ricci_tensor *[]){scores, labels});
}

static ricci_tensor *each(const char *who, ricci_tensor *loss, const char *text)
{
	const Operand o[] = {{loss, 0, RICCI_MAX_RANK, "a loss"}};
	if (!layer_check(who, 1, o))
		return layer_nil(loss);
	Text t = {0};
	text_add(&t, "%s", text);
	return layer_build(&t, 1, &loss);
}

ricci_tensor *ricci_perplexity(ricci_tensor *loss)
{
	return each("ricci_perplexity", loss, "Y[...] = exp(L[...])");
}

ricci_tensor *ricci_bits(ricci_tensor *loss)
{
	return each("ricci_bits", loss, "Y[...] = L[...] / log(2.0)");
}

/* losses.c - losses and the count of errors as index expressions. Labels are I32 tensors that
 * index, so their range is checked when they are fed. */
#include "nn/nn.h"

static Operand label_operand(ricci_tensor *labels)
{
	return (Operand){labels, 1, 1, "labels [batch]"};
}

/* log(sum exp(x - x[label])) from logits shifted by floor(max), which has no gradient to compute.
 */
ricci_tensor *ricci_cross_entropy(ricci_tensor *logits, ricci_tensor *labels)
{
	const Operand o[] = {{logits, 2, 2, "logits [batch, class]"}, label_operand(labels)};
	if (!layer_check("ricci_cross_entropy", 2, o))
		return layer_nil(logits);
	Text t = {0};
	text_add(&t, "M[b] max= X[b,m]; H[b,m] = X[b,m] - floor(M[b]); Z[b] += exp(H[b,m]); "
		     "P[b] = log(Z[b]) - H[b,T[b]]; ");
	text_add(&t, "Y[] += P[b] / %lld.0", (long long)ricci_extent(logits, 0));
	return layer_build(&t, 2, (ricci_tensor *[]){logits, labels});
}

ricci_tensor *ricci_margin_loss(ricci_tensor *poses, ricci_tensor *labels)
{
	const Operand o[] = {{poses, 2, RICCI_MAX_RANK, "poses [batch, class, ...]"},
			     label_operand(labels)};
	if (!layer_check("ricci_margin_loss", 2, o))
		return layer_nil(poses);
	Text t = {0}, i = {0};
	layer_indices(&i, 2, ricci_rank(poses));
	const char *c = i.s ? "," : "", *s = i.s ? i.s : "";
	text_add(&t, "N[b,m] += V[b,m%s%s] * V[b,m%s%s]; ", c, s, c, s);
	text_add(&t, "L[b,m] = sqrt(N[b,m] + 1e-7); "
		     "D[b,m] = max(m == T[b] ? 0.9 - L[b,m] : L[b,m] - 0.1, 0.0); "
		     "P[b,m] = D[b,m] * D[b,m] * (m == T[b] ? 1.0 : 0.5); ");
	text_add(&t, "Y[] += P[b,m] / %lld.0", (long long)ricci_extent(poses, 0));
	t.failed |= i.failed;
	text_free(&i);
	return layer_build(&t, 2, (ricci_tensor *[]){poses, labels});
}

ricci_tensor *ricci_mean_squared_error(ricci_tensor *a, ricci_tensor *b)
{
	const Operand o[] = {{a, 0, RICCI_MAX_RANK, "a"}, {b, 0, RICCI_MAX_RANK, "b"}};
	if (!layer_check("ricci_mean_squared_error", 2, o))
		return layer_nil(a);
	double n = 1;
	bool same = ricci_rank(a) == ricci_rank(b);
	for (int d = 0; d < ricci_rank(a); d++) {
		same = same && ricci_extent(a, d) == ricci_extent(b, d);
		n *= (double)ricci_extent(a, d);
	}
	if (!same)
		return layer_fail(a, "ricci_mean_squared_error: the two tensors differ in shape");
	Text t = {0}, i = {0};
	layer_indices(&i, 0, ricci_rank(a));
	const char *s = i.s ? i.s : "";
	text_add(&t, "D[%s] = A[%s] - B[%s]; Y[] += D[%s] * D[%s] / %.1f", s, s, s, s, s, n);
	t.failed |= i.failed;
	text_free(&i);
	return layer_build(&t, 2, (ricci_tensor *[]){a, b});
}

/* "Not greater" rather than "less or equal", so that NaN counts as an error. */
ricci_tensor *ricci_misclassified(ricci_tensor *scores, ricci_tensor *labels)
{
	const Operand o[] = {{scores, 2, RICCI_MAX_RANK, "scores [batch, class, ...]"},
			     label_operand(labels)};
	if (!layer_check("ricci_misclassified", 2, o))
		return layer_nil(scores);
	Text t = {0}, i = {0};
	const char *score = "V";
	if (ricci_rank(scores) > 2) {
		layer_indices(&i, 2, ricci_rank(scores));
		text_add(&t, "S[b,m] += V[b,m,%s] * V[b,m,%s]; ", i.s ? i.s : "", i.s ? i.s : "");
		score = "S";
	}
	text_add(&t, "Y[b] max= !(%s[b,T[b]] > %s[b,m]) && m != T[b] ? i32(1) : i32(0)", score,
		 score);
	t.failed |= i.failed;
	text_free(&i);
	return layer_build(&t, 2, (ricci_tensor *[]){scores, labels});
}

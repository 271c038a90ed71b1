/* classes.c - losses over classes. Labels are I32 tensors that index, so their range is checked
 * when they are fed. Logits are shifted by floor(max), which has no gradient to compute. */
#include "nn/losses/internal.h"

#include <math.h>

bool loss_labelled(const char *who, ricci_tensor *scores, ricci_tensor *labels)
{
	int rank = ricci_rank(scores);
	const Operand o[] = {{scores, 1, RICCI_MAX_RANK, "scores [batch, ..., class]"},
			     {labels, rank - 1, rank - 1, "labels [batch, ...]"}};
	return layer_check(who, 2, o);
}

double loss_count(const ricci_tensor *t, int n)
{
	double count = 1;
	for (int d = 0; d < n; d++)
		count *= (double)ricci_extent(t, d);
	return count;
}

/* L[...] = log sum exp(H[...,m]), H being the shifted logits. */
static const char normaliser[] = "M[...] max= X[...,m]; H[...,m] = X[...,m] - floor(M[...]); "
				 "Z[...] += exp(H[...,m]); ";

ricci_tensor *ricci_cross_entropy(ricci_tensor *logits, ricci_tensor *labels)
{
	if (!loss_labelled("ricci_cross_entropy", logits, labels))
		return layer_nil(logits);
	Text t = {0};
	int rank = ricci_rank(labels);
	text_add(&t, "%sP[...] = log(Z[...]) - H[...,T[...]]; Y[] += P[...] / %.1f", normaliser,
		 loss_count(labels, rank));
	return layer_build(&t, 2, (ricci_tensor *[]){logits, labels});
}

ricci_tensor *ricci_nll_loss(ricci_tensor *log_p, ricci_tensor *labels)
{
	if (!loss_labelled("ricci_nll_loss", log_p, labels))
		return layer_nil(log_p);
	Text t = {0};
	text_add(&t, "Y[] += -X[...,T[...]] / %.1f", loss_count(labels, ricci_rank(labels)));
	return layer_build(&t, 2, (ricci_tensor *[]){log_p, labels});
}

/* V[k]: the weight of label k + least, 0 where it does not count; C[...]: that of each label. */
static void weights_add(Text *t, const ricci_cross_entropy_options *o, int64_t classes,
			const char *type)
{
	long long below = o->ignored && *o->ignored < 0 ? -(long long)*o->ignored : 0;
	char counts[48] = "k >= 0", weight[48] = "1.0";
	if (below)
		snprintf(counts, sizeof counts, "k >= %lld", below);
	else if (o->ignored)
		snprintf(counts, sizeof counts, "k != %lld", (long long)*o->ignored);
	if (o->weights)
		snprintf(weight, sizeof weight, "W[k - %lld]", below);
	text_add(t, "V[k:%lld] = %s(%s ? %s : 0.0); C[...] = V[T[...] + %lld]; ",
		 (long long)classes + below, type, counts, weight, below);
}

/* Q[...]: the mean over the classes, weighted, of log Z - H; 0 where the label does not count. */
static void smooth_add(Text *t, const ricci_cross_entropy_options *o, int64_t classes)
{
	const char *weight = o->weights ? " * W[m]" : "";
	char counts[48] = "";
	if (o->ignored && *o->ignored < 0)
		snprintf(counts, sizeof counts, "T[...] < 0 ? 0.0 : ");
	else if (o->ignored)
		snprintf(counts, sizeof counts, "T[...] == %lld ? 0.0 : ", (long long)*o->ignored);
	text_add(t, "Q[...] += %s(L[...] - H[...,m])%s / %lld.0; ", counts, weight,
		 (long long)classes);
}

static int options_check(ricci_tensor *logits, ricci_cross_entropy_options *o,
			 const ricci_cross_entropy_options *given)
{
	const char *who = "ricci_cross_entropy_with";
	Error *err = &ricci_graph_of(logits)->ir.err;
	int64_t classes = ricci_extent(logits, ricci_rank(logits) - 1);
	if (!layer_options(logits, o, sizeof *o, given, "ricci_cross_entropy_options"))
		return err->code;
	if (!(o->smoothing >= 0 && o->smoothing <= 1))
		return error_set(err, RICCI_EINVAL, "%s: smoothing is %g, it must be 0 to 1", who,
				 o->smoothing);
	if (o->ignored && *o->ignored >= classes)
		return error_set(err, RICCI_EINVAL,
				 "%s: label %d is ignored, there are %lld classes", who,
				 (int)*o->ignored, (long long)classes);
	if (o->weights && (ricci_rank(o->weights) != 1 || ricci_extent(o->weights, 0) != classes))
		return error_set(err, RICCI_ESHAPE, "%s: weights [class] of %lld classes expected",
				 who, (long long)classes);
	return 0;
}

ricci_tensor *ricci_cross_entropy_with(ricci_tensor *logits, ricci_tensor *labels,
				       const ricci_cross_entropy_options *options)
{
	ricci_cross_entropy_options o = RICCI_CROSS_ENTROPY();
	if (!loss_labelled("ricci_cross_entropy_with", logits, labels) ||
	    options_check(logits, &o, options))
		return layer_nil(logits);
	if (!o.smoothing && !o.weights && !o.ignored)
		return ricci_cross_entropy(logits, labels);
	int rank = ricci_rank(labels);
	int64_t classes = ricci_extent(logits, rank);
	Text t = {0};
	text_add(&t, "%sL[...] = log(Z[...]); N[...] = L[...] - (H[...,T[...]] else 0.0); ",
		 normaliser);
	weights_add(&t, &o, classes, type_name(ricci_dtype(logits)));
	if (o.smoothing)
		smooth_add(&t, &o, classes);
	text_add(&t, "S[] += C[...] * N[...] * %#.17g; D[] += C[...]; ", 1 - o.smoothing);
	if (o.smoothing)
		text_add(&t, "R[] += Q[...]; ");
	text_add(&t, "Y[] = D[] > 0 ? (S[]");
	if (o.smoothing)
		text_add(&t, " + %#.17g * R[]", o.smoothing);
	text_add(&t, ") / D[] : 0.0");
	return layer_build(&t, o.weights ? 3 : 2, (ricci_tensor *[]){logits, labels, o.weights});
}

ricci_tensor *ricci_margin_loss(ricci_tensor *poses, ricci_tensor *labels)
{
	const Operand o[] = {{poses, 2, RICCI_MAX_RANK, "poses [batch, class, ...]"},
			     {labels, 1, 1, "labels [batch]"}};
	if (!layer_check("ricci_margin_loss", 2, o))
		return layer_nil(poses);
	Text t = {0};
	text_add(&t, "N[b,m] += V[b,m,...] * V[b,m,...]; ");
	text_add(&t, "L[b,m] = sqrt(N[b,m] + 1e-7); "
		     "D[b,m] = max(m == T[b] ? 0.9 - L[b,m] : L[b,m] - 0.1, 0.0); "
		     "P[b,m] = D[b,m] * D[b,m] * (m == T[b] ? 1.0 : 0.5); ");
	text_add(&t, "Y[] += P[b,m] / %lld.0", (long long)ricci_extent(poses, 0));
	return layer_build(&t, 2, (ricci_tensor *[]){poses, labels});
}

ricci_tensor *ricci_hinge_loss(ricci_tensor *scores, ricci_tensor *labels, double margin)
{
	if (!loss_labelled("ricci_hinge_loss", scores, labels))
		return layer_nil(scores);
	if (!isfinite(margin))
		return layer_fail(scores, "ricci_hinge_loss: the margin is %g", margin);
	Text t = {0};
	int rank = ricci_rank(labels);
	text_add(&t,
		 "L[...] = X[...,T[...]]; "
		 "D[...,m] = m == T[...] ? 0.0 : max(%#.17g - L[...] + X[...,m], 0.0); "
		 "Y[] += D[...,m] / %.1f",
		 margin, loss_count(scores, rank + 1));
	return layer_build(&t, 2, (ricci_tensor *[]){scores, labels});
}

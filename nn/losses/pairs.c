/* pairs.c - losses of two tensors of one shape: a mean of an expression of their elements. */
#include "nn/losses/internal.h"

#include <math.h>

bool loss_same_shape(const char *who, ricci_tensor *a, ricci_tensor *b, int least,
		     const char *names)
{
	const Operand o[] = {{a, least, RICCI_MAX_RANK, names}, {b, least, RICCI_MAX_RANK, names}};
	if (!layer_check(who, 2, o))
		return false;
	bool same = ricci_rank(a) == ricci_rank(b);
	for (int d = 0; d < ricci_rank(a); d++)
		same = same && ricci_extent(a, d) == ricci_extent(b, d);
	if (!same)
		layer_fail(a, "%s: the two tensors differ in shape", who);
	return same;
}

/* The mean of `of`, an expression of D[...], the difference. */
static ricci_tensor *mean(const char *who, ricci_tensor *a, ricci_tensor *b, const char *of)
{
	if (!loss_same_shape(who, a, b, 0, "two tensors of one shape"))
		return layer_nil(a);
	Text t = {0};
	int rank = ricci_rank(a);
	text_add(&t, "D[...] = A[...] - B[...]; Y[] += %s / %.1f", of, loss_count(a, rank));
	return layer_build(&t, 2, (ricci_tensor *[]){a, b});
}

ricci_tensor *ricci_mean_squared_error(ricci_tensor *a, ricci_tensor *b)
{
	return mean("ricci_mean_squared_error", a, b, "D[...] * D[...]");
}

ricci_tensor *ricci_mean_absolute_error(ricci_tensor *a, ricci_tensor *b)
{
	return mean("ricci_mean_absolute_error", a, b, "abs(D[...])");
}

static ricci_tensor *huber(const char *who, ricci_tensor *a, ricci_tensor *b, const char *name,
			   double delta, double divisor)
{
	char of[192];
	if (a && !(delta > 0 && isfinite(delta)))
		return layer_fail(a, "%s: %s is %g, it must be finite, and more than 0", who, name,
				  delta);
	snprintf(of, sizeof of,
		 "(abs(D[...]) < %#.17g ? 0.5 * D[...] * D[...] : %#.17g * (abs(D[...]) - %#.17g)) "
		 "/ %#.17g",
		 delta, delta, delta / 2, divisor);
	return mean(who, a, b, of);
}

ricci_tensor *ricci_huber_loss(ricci_tensor *a, ricci_tensor *b, double delta)
{
	return huber("ricci_huber_loss", a, b, "delta", delta, 1);
}

ricci_tensor *ricci_smooth_l1_loss(ricci_tensor *a, ricci_tensor *b, double beta)
{
	return huber("ricci_smooth_l1_loss", a, b, "beta", beta, beta);
}

/* With a gradient given: that of max and abs at 0 are not the two halves of sigmoid(0). */
ricci_tensor *ricci_binary_cross_entropy(ricci_tensor *logits, ricci_tensor *targets)
{
	if (!loss_same_shape("ricci_binary_cross_entropy", logits, targets, 0,
			     "logits and targets"))
		return layer_nil(logits);
	Text f = {0}, d = {0}, t = {0};
	int rank = ricci_rank(logits);
	ricci_tensor *operand[] = {logits, targets}, *loss = layer_nil(logits);
	ricci_graph *g = ricci_graph_of(logits);
	text_add(&f, "L[...] = max(X[...], 0.0) - X[...] * Z[...] + log1p(exp(-abs(X[...])))");
	text_add(&d, "dX[...] = dL[...] * (sigmoid(X[...]) - Z[...]); dZ[...] = -dL[...] * X[...]");
	text_add(&t, "Y[] += L[...] / %.1f", loss_count(logits, rank));
	if (f.failed || d.failed)
		error_set(&g->ir.err, RICCI_ENOMEM, "out of memory");
	else
		ricci_ops_custom(g, f.s, d.s, 2, operand, &(int){1}, &loss);
	text_free(&f);
	text_free(&d);
	if (ricci_graph_error(g))
		return text_free(&t), layer_nil(logits);
	return layer_build(&t, 1, &loss);
}

ricci_tensor *ricci_kl_divergence(ricci_tensor *log_q, ricci_tensor *p)
{
	if (!loss_same_shape("ricci_kl_divergence", log_q, p, 1, "log_q and p [batch, ..., class]"))
		return layer_nil(log_q);
	Text t = {0};
	int rank = ricci_rank(p);
	text_add(&t, "Y[] += (P[...] > 0.0 ? P[...] * (log(P[...]) - Q[...]) : 0.0) / %.1f",
		 loss_count(p, rank - 1));
	return layer_build(&t, 2, (ricci_tensor *[]){p, log_q});
}

ricci_tensor *ricci_ranking_loss(ricci_tensor *a, ricci_tensor *b, ricci_tensor *targets,
				 double margin)
{
	const char *who = "ricci_ranking_loss";
	if (!loss_same_shape(who, a, b, 0, "scores") ||
	    !loss_same_shape(who, a, targets, 0, "scores and targets"))
		return layer_nil(a);
	if (!isfinite(margin))
		return layer_fail(a, "%s: the margin is %g, it must be finite", who, margin);
	Text t = {0};
	text_add(&t, "Y[] += max(-T[...] * (A[...] - B[...]) + %#.17g, 0.0) / %.1f", margin,
		 loss_count(a, ricci_rank(a)));
	return layer_build(&t, 3, (ricci_tensor *[]){targets, a, b});
}

ricci_tensor *ricci_poisson_nll_loss(ricci_tensor *log_rate, ricci_tensor *targets)
{
	const char *who = "ricci_poisson_nll_loss";
	if (!loss_same_shape(who, log_rate, targets, 0, "logarithms of rates and targets"))
		return layer_nil(log_rate);
	Text t = {0};
	text_add(&t, "Y[] += (exp(X[...]) - T[...] * X[...]) / %.1f",
		 loss_count(log_rate, ricci_rank(log_rate)));
	return layer_build(&t, 2, (ricci_tensor *[]){log_rate, targets});
}

ricci_tensor *ricci_gaussian_nll_loss(ricci_tensor *x, ricci_tensor *targets,
				      ricci_tensor *variance)
{
	const char *who = "ricci_gaussian_nll_loss";
	if (!loss_same_shape(who, x, targets, 0, "means and targets") ||
	    !loss_same_shape(who, x, variance, 0, "means and variances"))
		return layer_nil(x);
	Text t = {0};
	text_add(&t,
		 "D[...] = X[...] - T[...]; V[...] = max(S[...], 1e-6); "
		 "Y[] += 0.5 * (log(V[...]) + D[...] * D[...] / V[...]) / %.1f",
		 loss_count(x, ricci_rank(x)));
	return layer_build(&t, 3, (ricci_tensor *[]){x, targets, variance});
}

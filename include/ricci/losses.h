/* losses.h - losses and metrics. <ricci_nn.h> includes it. */
#ifndef RICCI_LOSSES_H
#define RICCI_LOSSES_H

#include <ricci.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- losses and metrics (nn/losses/)
 * Losses are one number, the mean over what counts. */
/* logits [b,...,m], labels [b,...] with 0 <= label < m: the mean of log sum exp(x) - x[label]. */
RICCI_API ricci_tensor *ricci_cross_entropy(ricci_tensor *logits, ricci_tensor *labels);
/* log_p [b,...,m], logarithms of probabilities, labels [b,...]: the mean of -log_p[label]. */
RICCI_API ricci_tensor *ricci_nll_loss(ricci_tensor *log_p, ricci_tensor *labels);
/* PyTorch's cross_entropy: with a target of 1 - smoothing for the label plus smoothing / m for each
 * class (Szegedy et al. 2016, section 7), class weights, and labels that don't count. The sum is
 * divided by the weights of the labels that count; 0 where none does. */
typedef struct {
	size_t size;		/* by RICCI_CROSS_ENTROPY */
	double smoothing;	/* 0..1 */
	ricci_tensor *weights;	/* [m], of logits' type; NULL: 1 */
	const int32_t *ignored; /* a label that doesn't count; when negative, such as -100, those
				   above it and below 0 don't count either. NULL: all count */
} ricci_cross_entropy_options;
#define RICCI_CROSS_ENTROPY(...)                                                                   \
	((ricci_cross_entropy_options){.size = sizeof(ricci_cross_entropy_options), __VA_ARGS__})
RICCI_API ricci_tensor *ricci_cross_entropy_with(ricci_tensor *logits, ricci_tensor *labels,
						 const ricci_cross_entropy_options *options);
/* poses [b,m,...], labels [b]: sum over m of T max(0, .9-|v|)^2 + .5 (1-T) max(0, |v|-.1)^2, T = 1
 * for the label; |v| is sqrt(sum v^2 + 1e-7) over the rest (Sabour et al., equation 4). */
RICCI_API ricci_tensor *ricci_margin_loss(ricci_tensor *poses, ricci_tensor *labels);
/* scores [b,...,m], labels [b,...]: the mean over the batch of sum over m != label of max(0, margin
 * - x[label] + x[m]) / m (PyTorch's multi_margin_loss with p = 1; Crammer & Singer 2001). */
RICCI_API ricci_tensor *ricci_hinge_loss(ricci_tensor *scores, ricci_tensor *labels, double margin);
/* Of two tensors of one shape: the mean over all elements, d = a - b. */
RICCI_API ricci_tensor *ricci_mean_squared_error(ricci_tensor *a, ricci_tensor *b);
RICCI_API ricci_tensor *ricci_mean_absolute_error(ricci_tensor *a, ricci_tensor *b);
/* d^2/2 where |d| < delta, else delta (|d| - delta/2) (Huber 1964). delta > 0. */
RICCI_API ricci_tensor *ricci_huber_loss(ricci_tensor *a, ricci_tensor *b, double delta);
/* Huber's, divided by beta (Girshick 2015). beta > 0. */
RICCI_API ricci_tensor *ricci_smooth_l1_loss(ricci_tensor *a, ricci_tensor *b, double beta);
/* -(z log s + (1-z) log(1-s)), s = sigmoid(logits), as max(x,0) - x z + log(1 + exp(-|x|)), finite
 * for all finite x. targets: z in 0..1, of logits' shape. The mean over all elements. */
RICCI_API ricci_tensor *ricci_binary_cross_entropy(ricci_tensor *logits, ricci_tensor *targets);
/* a, b, targets of one shape and type, targets 1 where a should be the greater one, -1 where b: the
 * mean of max(-target (a - b) + margin, 0) (PyTorch's margin_ranking_loss). */
RICCI_API ricci_tensor *ricci_ranking_loss(ricci_tensor *a, ricci_tensor *b, ricci_tensor *targets,
					   double margin);
/* exp(x) - target x, x the logarithm of a Poisson rate: the mean. */
RICCI_API ricci_tensor *ricci_poisson_nll_loss(ricci_tensor *log_rate, ricci_tensor *targets);
/* (log v + (x - target)^2 / v) / 2, v the variance, at least 1e-6, below which it has no gradient:
 * the mean (Nix & Weigend 1994). All of one shape. */
RICCI_API ricci_tensor *ricci_gaussian_nll_loss(ricci_tensor *x, ricci_tensor *targets,
						ricci_tensor *variance);

/* Of vectors, along the last dimension of tensors [...,m] of one shape. */
/* a b / (max(|a|, epsilon) max(|b|, epsilon)) -> [...]; epsilon is usually 1e-8. */
RICCI_API ricci_tensor *ricci_cosine_similarity(ricci_tensor *a, ricci_tensor *b, double epsilon);
/* (sum of |a - b + epsilon|^power)^(1/power) -> [...], power >= 1; usually 2 and 1e-6. The gradient
 * is 0 where the distance is. */
RICCI_API ricci_tensor *ricci_pairwise_distance(ricci_tensor *a, ricci_tensor *b, double power,
						double epsilon);
/* The mean of max(|anchor - positive| - |anchor - negative| + margin, 0), the distances as above
 * (Balntas et al. 2016; PyTorch's triplet_margin_loss). margin >= 0, usually 1. */
RICCI_API ricci_tensor *ricci_triplet_loss(ricci_tensor *anchor, ricci_tensor *positive,
					   ricci_tensor *negative, double margin);
/* targets [...] of any type: the mean of 1 - cos where they are more than 0, else max(cos - margin,
 * 0) (PyTorch's cosine_embedding_loss). margin >= -1. */
RICCI_API ricci_tensor *ricci_cosine_embedding_loss(ricci_tensor *a, ricci_tensor *b,
						    ricci_tensor *targets, double margin);

/* log_q, p [b,...,m]: sum over m of p (log p - log_q), 0 where p is; the mean over the rest
 * (PyTorch's kl_div with "batchmean"). */
RICCI_API ricci_tensor *ricci_kl_divergence(ricci_tensor *log_q, ricci_tensor *p);
/* Connectionist temporal classification (Graves et al. 2006, equations 5 to 8, with logarithms):
 * logits [t,b,m] of each step, before the softmax, labels [b,s] without blanks, 0 <= label < m.
 * steps, lengths: I32 [b], how many of t and of s count for each sample, or NULL: all. Elements of
 * `labels` behind the length are any labels. The mean over the batch of loss / max(length, 1), as
 * PyTorch's ctc_loss has it; a sample whose labels can't come of its steps has an infinite loss
 * and no gradient. The loop over t is ricci_scan's. */
RICCI_API ricci_tensor *ricci_ctc_loss(ricci_tensor *logits, ricci_tensor *labels,
				       ricci_tensor *steps, ricci_tensor *lengths, int blank);

/* I32 [b]: 1 where the label's score is not strictly the greatest (ties and NaN are errors), else
 * 0. The score of scores [b,m,...] is the length over the rest; of [b,m] the number itself. */
RICCI_API ricci_tensor *ricci_misclassified(ricci_tensor *scores, ricci_tensor *labels);
/* scores [b,...,m], labels [b,...] -> I32 [b,...]: 1 where the label is not among the k best scores
 * (k others are as great or greater, or NaN), else 0. */
RICCI_API ricci_tensor *ricci_misclassified_top(ricci_tensor *scores, ricci_tensor *labels, int k);
/* scores [b,...,m], labels [b,...] -> I32 [m,m]: how many samples of class i have their greatest
 * score at j (the first of equal ones). Samples with a NaN are not counted. */
RICCI_API ricci_tensor *ricci_confusion(ricci_tensor *scores, ricci_tensor *labels);
/* Of a mean loss in nats, such as ricci_cross_entropy: exp(loss); loss / log 2, which of a model of
 * characters is bits per character. */
RICCI_API ricci_tensor *ricci_perplexity(ricci_tensor *loss);
RICCI_API ricci_tensor *ricci_bits(ricci_tensor *loss);

#ifdef __cplusplus
}
#endif
#endif

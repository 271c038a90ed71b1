/* activation.c - functions of each element, and the softmax.
 * Input: x of any shape. Output: one tensor of that shape. Invariant: plain equations; finite x
 * gives finite values. */
#include "nn/layers/internal.h"

#include <math.h>

/* "Y[...] = formula", in which x is the element, a and b are numbers. */
static ricci_tensor *elementwise(const char *who, ricci_tensor *x, double a, const char *formula)
{
	const Operand o[] = {{x, 0, RICCI_MAX_RANK, "x"}};
	if (!layer_check(who, 1, o))
		return layer_nil(x);
	if (!isfinite(a))
		return layer_fail(x, "%s: the number %g is not finite", who, a);
	Text t = {0};
	layer_real(&t, "a", a);
	layer_text(&t, 0, "x = X[...]; Y[...] = ");
	text_add(&t, "%s", formula);
	return layer_build(&t, 1, &x);
}

/* Sources: GELU and SiLU Hendrycks & Gimpel 2016; ELU Clevert et al. 2015; SELU Klambauer et al.
 * 2017; ReLU6 and hard swish Howard et al. 2017, 2019; leaky ReLU Maas et al. 2013; softplus Dugas
 * et al. 2000; Mish Misra 2019; softsign Bergstra et al. 2009; CELU Barron 2017; PReLU He et al.
 * 2015; GLU Dauphin et al. 2017. The numbers in SELU are its fixed point's. */
#define SOFTPLUS "max(x, 0.0) + log1p(exp(-abs(x)))"
#define ACTIVATIONS(F)                                                                             \
	F(ricci_relu, "x > 0.0 ? x : 0.0")                                                         \
	F(ricci_relu6, "x > 0.0 ? (x < 6.0 ? x : 6.0) : 0.0")                                      \
	F(ricci_sigmoid, "sigmoid(x)")                                                             \
	F(ricci_tanh, "tanh(x)")                                                                   \
	F(ricci_gelu, "0.5 * x * (1.0 + erf(x * 0.70710678118654752))")                            \
	F(ricci_gelu_tanh,                                                                         \
	  "0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)))")              \
	F(ricci_silu, "x * sigmoid(x)")                                                            \
	F(ricci_selu, "1.0507009873554805 * (x > 0.0 ? x : 1.6732632423543772 * expm1(x))")        \
	F(ricci_softplus, SOFTPLUS)                                                                \
	F(ricci_mish, "x * tanh(" SOFTPLUS ")")                                                    \
	F(ricci_softsign, "x / (1.0 + abs(x))")                                                    \
	F(ricci_log_sigmoid, "min(x, 0.0) - log1p(exp(-abs(x)))")                                  \
	F(ricci_tanh_shrink, "x - tanh(x)")                                                        \
	F(ricci_hard_sigmoid, "x > -3.0 ? (x < 3.0 ? x / 6.0 + 0.5 : 1.0) : 0.0")                  \
	F(ricci_hard_swish, "x > -3.0 ? (x < 3.0 ? x * (x / 6.0 + 0.5) : x) : 0.0")

#define ACTIVATION(name, formula)                                                                  \
	ricci_tensor *name(ricci_tensor *x)                                                        \
	{                                                                                          \
		return elementwise(#name, x, 0, formula);                                          \
	}
ACTIVATIONS(ACTIVATION)

ricci_tensor *ricci_elu(ricci_tensor *x, double alpha)
{
	return elementwise("ricci_elu", x, alpha, "x > 0.0 ? x : a * expm1(x)");
}

ricci_tensor *ricci_leaky_relu(ricci_tensor *x, double slope)
{
	return elementwise("ricci_leaky_relu", x, slope, "x > 0.0 ? x : a * x");
}

ricci_tensor *ricci_celu(ricci_tensor *x, double alpha)
{
	if (x && !(alpha > 0))
		return layer_fail(x, "ricci_celu: alpha is %g, it must be more than 0", alpha);
	return elementwise("ricci_celu", x, alpha, "x > 0.0 ? x : a * expm1(x / a)");
}

ricci_tensor *ricci_soft_shrink(ricci_tensor *x, double bound)
{
	return elementwise("ricci_soft_shrink", x, bound, "x > a ? x - a : (x < -a ? x + a : 0.0)");
}

ricci_tensor *ricci_hard_shrink(ricci_tensor *x, double bound)
{
	return elementwise("ricci_hard_shrink", x, bound, "x > a || x < -a ? x : 0.0");
}

ricci_tensor *ricci_clip(ricci_tensor *x, double low, double high)
{
	const Operand o[] = {{x, 0, RICCI_MAX_RANK, "x"}};
	if (!layer_check("ricci_clip", 1, o))
		return layer_nil(x);
	if (!(low <= high))
		return layer_fail(x, "ricci_clip: from %g to %g", low, high);
	Text t = {0};
	text_add(&t, "x = X[...]; Y[...] = ");
	text_add(&t, isfinite(low) ? "x <= %#.17g ? %#.17g : " : "", low, low);
	text_add(&t, isfinite(high) ? "x >= %#.17g ? %#.17g : " : "", high, high);
	text_add(&t, "x");
	return layer_build(&t, 1, &x);
}

ricci_tensor *ricci_prelu(ricci_tensor *x, ricci_tensor *w)
{
	const Operand o[] = {{x, 0, RICCI_MAX_RANK, "x"}, {w, 1, 1, "w [channel] or [1]"}};
	if (!layer_check("ricci_prelu", 2, o))
		return layer_nil(x);
	bool one = ricci_extent(w, 0) == 1;
	if (!one && (ricci_rank(x) < 2 || ricci_extent(x, 1) != ricci_extent(w, 0)))
		return layer_fail(x, "ricci_prelu: x has %lld channels, w %lld",
				  ricci_rank(x) < 2 ? 1LL : (long long)ricci_extent(x, 1),
				  (long long)ricci_extent(w, 0));
	return layer_of(0,
			one ? "Y[...] = X[...] > 0.0 ? X[...] : W[0] * X[...]"
			    : "Y[b,c,...] = X[b,c,...] > 0.0 ? X[b,c,...] : W[c] * X[b,c,...]",
			2, (ricci_tensor *[]){x, w});
}

ricci_tensor *ricci_glu(ricci_tensor *x, int axis)
{
	const Operand o[] = {{x, 1, RICCI_MAX_RANK, "x of at least one dimension"}};
	if (!layer_check("ricci_glu", 1, o))
		return layer_nil(x);
	int at = axis < 0 ? axis + ricci_rank(x) : axis;
	int64_t n = at >= 0 && at < ricci_rank(x) ? ricci_extent(x, at) : 1;
	if (n % 2)
		return layer_fail(x, "ricci_glu: dimension %d of x has no two halves", axis);
	ricci_tensor *half[] = {ricci_slice_axis(x, at, 0, n / 2, 1),
				ricci_slice_axis(x, at, n / 2, n / 2, 1)};
	return layer_of(0, "Y[...] = A[...] * sigmoid(B[...])", 2, half);
}

/* x less floor(max) for safety: any shift cancels, and this one has no gradient to compute. */
static ricci_tensor *over_last(const char *who, ricci_tensor *x, const char *template)
{
	const Operand o[] = {{x, 1, RICCI_MAX_RANK, "x of at least one dimension"}};
	return layer_check(who, 1, o) ? layer_of(0, template, 1, &x) : layer_nil(x);
}

ricci_tensor *ricci_softmax(ricci_tensor *x)
{
	return over_last("ricci_softmax", x,
			 "M[...] max= X[...,j]; E[...,j] = exp(X[...,j] - floor(M[...])); "
			 "Z[...] += E[...,j]; Y[...,j] = E[...,j] / Z[...]");
}

ricci_tensor *ricci_log_softmax(ricci_tensor *x)
{
	return over_last("ricci_log_softmax", x,
			 "M[...] max= X[...,j]; D[...,j] = X[...,j] - floor(M[...]); "
			 "Z[...] += exp(D[...,j]); Y[...,j] = D[...,j] - log(Z[...])");
}

/* hint.c - what to write in place of names and signs that other notations have. Invariant: what a
 * hint shows is accepted (tests/core/test_hints.c). */
#include "core/notation/internal.h"
#include <string.h>

static const Hint hints[] = {
	{"relu", "max(x, 0)"},
	{"leaky_relu", "x > 0 ? x : 0.01 * x"},
	{"elu", "x > 0 ? x : expm1(x)"},
	{"gelu", "0.5 * x * (1 + erf(x / sqrt(2.0)))"},
	{"silu", "x * sigmoid(x)"},
	{"swish", "x * sigmoid(x)"},
	{"softplus", "log1p(exp(x))"},
	{"logistic", "sigmoid(x)"},
	{"heaviside", "x > 0 ? 1.0 : 0.0"},
	{"ln", "log(x)"},
	{"log2", "log(x) / log(2.0)"},
	{"log10", "log(x) / log(10.0)"},
	{"exp2", "pow(2.0, x)"},
	{"square", "x * x"},
	{"cbrt", "pow(x, 1.0 / 3)"},
	{"reciprocal", "1.0 / x"},
	{"fabs", "abs(x)"},
	{"sgn", "sign(x)"},
	{"isnan", "x != x"},
	{"maximum", "max(x, y)"},
	{"fmax", "max(x, y)"},
	{"minimum", "min(x, y)"},
	{"fmin", "min(x, y)"},
	{"power", "pow(x, y)"},
	{"clamp", "min(max(x, low), high)"},
	{"clip", "min(max(x, low), high)"},
	{"where", "condition ? x : y"},
	{"select", "condition ? x : y"},
	{"float", "f32(x)"},
	{"double", "f64(x)"},
	{"int", "i32(x)"},
	{"randn", "normal(key)"},
	{"rand", "random(key)"},
	{"detach", "stop_gradient(x)"},
	{"stop", "stop_gradient(x)"},
	{"sum", "Y[i] += X[i,j]: an index that stands on the right only is summed"},
	{"mean", "S[i] += X[i,j]; Y[i] = S[i] / X.size(1)"},
	{"prod", "Y[i] *= X[i,j]"},
	{"argmax", "M[i] max= X[i,j]; Y[i] min= X[i,j] == M[i] ? j : X.size(1)"},
	{"argmin", "M[i] min= X[i,j]; Y[i] min= X[i,j] == M[i] ? j : X.size(1)"},
	{"softmax", "M[i] max= X[i,j]; E[i,j] = exp(X[i,j] - M[i]); S[i] += E[i,j]; "
		    "Y[i,j] = E[i,j] / S[i]"},
	{"dot", "Y[] += A[k] * B[k]"},
	{"matmul", "Y[i,j] += A[i,k] * B[k,j]"},
	{"transpose", "Y[j,i] = X[i,j]"},
	{"onehot", "Y[i,j] = T[i] == j ? 1.0 : 0.0 where j < n"},
	{"one_hot", "Y[i,j] = T[i] == j ? 1.0 : 0.0 where j < n"},
	{"cumsum", "Y[i] += X[j] where j < i + 1"},
	{"^", "pow(x, y), or x * x"},
	{"**", "pow(x, y), or x * x"},
	{"&", "a && b"},
	{"|", "a || b"},
	{"@", "Y[i,j] += A[i,k] * B[k,j]"},
	{"~", "!a"},
	{"'", "Y[j,i] = X[i,j]"},
};

const Hint *hint_row(int i)
{
	return i >= 0 && i < COUNT(hints) ? &hints[i] : NULL;
}

const char *hint_text(Source *s, const char *name)
{
	for (int i = 0; i < COUNT(hints); i++)
		if (!strcmp(hints[i].name, name))
			return arena_printf(&s->ir->arena, "; write %s", hints[i].text);
	return "";
}

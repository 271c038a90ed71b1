/* operators.c - many operators, each an expression, each trained for a few steps.
 * For each row of the table: its operands are drawn, and the result of others, drawn in the same way, is
 * what it is to give. Adam changes all operands that are not integers, so that the mean squared error
 * falls: value and gradient of the expression are all that it takes. The gradients of these operators
 * are held against PyTorch's by tests/autodiff. */
#include "examples/example.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OPERANDS = 9, NAME = 32 };

/* Operands as name:shape, integers as name:shape<n: 0..n-1. */
typedef struct {
	const char *name, *operands, *equations;
} Row;
/* clang-format off */
static const Row row[] = {
	/* products */
	{"matrix product", "A:64,96 B:96,48", "Y[i,j] += A[i,k] * B[k,j]"},
	{"batched product", "A:8,32,24 B:8,24,40", "Y[b,i,j] += A[b,i,k] * B[b,k,j]"},
	{"bilinear form", "A:32,24 M:24,40 B:48,40", "Y[i,j] += A[i,k] * M[k,l] * B[j,l]"},
	{"quadratic form", "X:64,16 A:16,16", "Y[b] += X[b,i] * A[i,j] * X[b,j]"},
	{"triangular product", "A:32,32 B:32,24", "Y[i,j] += k <= i ? A[i,k] * B[k,j] : 0 where k < 32"},
	{"product of triangular matrices", "A:8,24,24 B:8,24,24", "Y[b,i,j] += k <= i && j <= k ? A[b,i,k] * B[b,k,j] : 0"},
	{"product with diagonals", "A:32,32 C:32,24 B:24,24", "Y[i,j] = A[i,i] * C[i,j] * B[j,j]"},
	{"traces of products", "A:32,12,16 B:32,16,12", "Y[b] += A[b,i,k] * B[b,k,i]"},
	{"outer product", "A:64 B:48", "Y[i,j] = A[i] * B[j]"},
	{"gram matrix", "F:4,16,8,8", "Y[b,c,d] += F[b,c,h,w] * F[b,d,h,w] / 64"},
	{"squared distances", "A:32,8 B:24,8", "Y[i,j] += (A[i,d] - B[j,d]) * (A[i,d] - B[j,d])"},
	{"einsum of four", "A:16,12 B:12,14 C:14,10 D:10,16", "Y[i,m] += A[i,j] * B[j,k] * C[k,l] * D[l,m]"},
	{"gated product", "A:32,24 S:24 B:24,40 T:32", "Y[i,j] += sigmoid(A[i,k] * S[k]) * B[k,j] * T[i]"},
	{"product of a row", "X:64,12", "Y[i] *= 1 + 0.2 * X[i,j]"},
	{"cosine similarity", "A:32,8 B:24,8", "n[i] += A[i,d] * A[i,d]; m[j] += B[j,d] * B[j,d]; p[i,j] += A[i,d] * B[j,d]; Y[i,j] = p[i,j] * rsqrt(n[i]) * rsqrt(m[j])"},
	{"weight normalisation", "W:24,32 X:16,32 G:24", "n[k] += W[k,i] * W[k,i]; Y[b,k] += X[b,i] * W[k,i] * G[k] * rsqrt(n[k])"},
	/* convolutions */
	{"convolution", "X:4,8,14,14 W:16,8,3,3", "Y[b,k,p,q] += X[b,c,p+r,q+s] * W[k,c,r,s]"},
	{"convolution, padded, stride 2", "X:4,8,14,14 W:16,8,3,3", "Y[b,k,p,q] += (X[b,c,2*p+r-1,2*q+s-1] else 0) * W[k,c,r,s] where p < 7, q < 7"},
	{"convolution, dilated", "X:4,8,40 W:8,8,3", "Y[b,k,p] += X[b,c,p+4*r] * W[k,c,r]"},
	{"convolution, depthwise", "X:4,16,14,14 W:16,3,3", "Y[b,c,p,q] += X[b,c,p+r,q+s] * W[c,r,s]"},
	{"convolution, groups", "X:4,4,6,40 W:4,8,6,5", "Y[b,g,k,p] += X[b,g,c,p+r] * W[g,k,c,r]"},
	{"convolution, transposed", "X:4,8,7,7 W:8,4,3,3", "Y[b,k,2*p+r:15,2*q+s:15] += X[b,c,p,q] * W[c,k,r,s]"},
	{"convolution in 3 dimensions", "X:2,4,8,8,8 W:6,4,3,3,3", "Y[b,k,o,p,q] += X[b,c,o+n,p+r,q+s] * W[k,c,n,r,s]"},
	{"convolution of capsules", "X:2,4,8,8,4,4 W:6,4,3,3,4,4", "Y[b,k,p,q,i,j] += X[b,c,2*p+r,2*q+s,i,t] * W[k,c,r,s,t,j]"},
	{"correlation volume", "P:2,8,10,10 Q:2,8,10,10", "Y[b,h,w,u,v] += P[b,c,h,w] * (Q[b,c,h+u-1,w+v-1] else 0) where u < 3, v < 3"},
	/* pooling, places */
	{"max pooling", "X:4,8,12,12", "Y[b,c,p,q] max= X[b,c,2*p+r,2*q+s] where r < 2, s < 2"},
	{"average pooling", "X:4,8,13,13", "Y[b,c,p,q] += X[b,c,2*p+r,2*q+s] / 9 where r < 3, s < 3"},
	{"min pooling", "X:4,8,12,12", "Y[b,c,p,q] min= X[b,c,2*p+r,2*q+s] where r < 2, s < 2"},
	{"upsampling, nearest", "X:4,8,8", "Y[b,h,w] = X[b,h/2,w/3] where h < 16, w < 24"},
	{"upsampling, bilinear", "X:4,32", "Y[b,i] = X[b,i/2] * 0.75 + (i%2 == 0 ? X[b,max(i/2-1, 0)] : X[b,min(i/2+1, 31)]) * 0.25 where i < 64"},
	{"sampling", "G:40 X:4,8", "g[p] = 3.5 + G[p]; I[p] = min(max(i32(floor(g[p])), 0), 6); f[p] = g[p] - f32(I[p]); Y[c,p] = X[c,I[p]] * (1 - f[p]) + X[c,I[p]+1] * f[p]"},
	{"im2col", "X:4,12,12", "Y[b,r,s,p,q] = X[b,p+r,q+s] where r < 3, s < 3, p < 10, q < 10"},
	{"depth to space", "X:4,16,6,6", "Y[b,c,h,w] = X[b,c*4+h%2*2+w%2,h/2,w/2] where c < 4, h < 12, w < 12"},
	{"space to depth", "X:4,4,12,12", "Y[b,c,h,w] = X[b,c/4,2*h+c/2%2,2*w+c%2] where c < 16, h < 6, w < 6"},
	{"channel shuffle", "X:4,12,20", "Y[b,c,p] = X[b,c%3*4+c/3,p] where c < 12"},
	{"reflection padding", "X:4,20", "Y[b,i] = X[b,i < 2 ? 2-i : i < 22 ? i-2 : 40-i] where i < 24"},
	{"constant padding", "X:12,20", "Y[i,j] = X[i-1,j-2] else 0.5 where i < 14, j < 24"},
	{"slice", "X:20,40", "Y[i,j] = X[i+3,2*j+1] where i < 12, j < 20"},
	{"roll", "X:4,48", "Y[b,i] = X[b,(i+5)%48] where i < 48"},
	{"flip", "X:24,16", "Y[i,j] = X[23-i,j] where i < 24"},
	{"concatenation", "A:30,8 B:20,8", "Y[i,d] = i < 30 ? A[i,d] : B[i-30,d] where i < 50"},
	{"cumulative sum", "X:4,48", "Y[b,i] += X[b,j] where j < i+1, i < X.size(1)"},
	{"cumulative sum, backwards", "X:4,48", "Y[b,i] += i <= j ? X[b,j] : 0 where i < 48"},
	{"embedding", "E:50,16 T:64<50", "Y[n,d] = E[T[n],d]"},
	{"scatter", "T:64<20 X:64,8", "Y[T[n]:20,d] += X[n,d]"},
	/* rows */
	{"softmax", "X:32,20", "m[i] max= X[i,j]; e[i,j] = exp(X[i,j] - m[i]); s[i] += e[i,j]; Y[i,j] = e[i,j] / s[i]"},
	{"log-softmax", "X:32,20", "m[i] max= X[i,j]; s[i] += exp(X[i,j] - stop_gradient(m[i])); Y[i,j] = X[i,j] - stop_gradient(m[i]) - log(s[i])"},
	{"log-sum-exp", "X:32,20", "m[i] max= X[i,j]; s[i] += exp(X[i,j] - m[i]); Y[i] = log(s[i]) + m[i]"},
	{"cross entropy", "X:32,20 T:32<20", "m[i] max= X[i,j]; s[i] += exp(X[i,j] - m[i]); Y[i] = log(s[i]) + m[i] - X[i,T[i]]"},
	{"layer norm", "X:32,24 G:24 B:24", "m[i] += X[i,j]/24; v[i] += (X[i,j] - m[i]) * (X[i,j] - m[i]) / 24; Y[i,j] = (X[i,j] - m[i]) * rsqrt(v[i] + 1e-5) * G[j] + B[j]"},
	{"batch norm", "X:16,8,12 G:8 B:8", "m[c] += X[b,c,p]/192; v[c] += (X[b,c,p] - m[c]) * (X[b,c,p] - m[c]) / 192; Y[b,c,p] = (X[b,c,p] - m[c]) * rsqrt(v[c] + 1e-5) * G[c] + B[c]"},
	{"group norm", "X:8,4,6,12 G:4,6 B:4,6", "m[b,g] += X[b,g,c,p]/72; v[b,g] += (X[b,g,c,p] - m[b,g]) * (X[b,g,c,p] - m[b,g]) / 72; Y[b,g,c,p] = (X[b,g,c,p] - m[b,g]) * rsqrt(v[b,g] + 1e-5) * G[g,c] + B[g,c]"},
	{"instance norm", "X:8,6,40", "s[b,c] += X[b,c,p]/40; q[b,c] += X[b,c,p] * X[b,c,p] / 40; v[b,c] = q[b,c] - s[b,c] * s[b,c]; Y[b,c,p] = (X[b,c,p] - s[b,c]) * rsqrt(v[b,c] + 1e-5)"},
	{"local response norm", "X:8,12,20", "s[b,c,p] += (X[b,c+k-2,p] else 0) * (X[b,c+k-2,p] else 0) where c < 12, k < 5; Y[b,c,p] = X[b,c,p] * pow(1 + 0.02 * s[b,c,p], 0 - 0.75)"},
	{"RMS norm", "X:32,24 G:24", "s[i] += X[i,j] * X[i,j] / 24; Y[i,j] = X[i,j] * rsqrt(s[i] + 1e-6) * G[j]"},
	{"squash", "V:8,12,16", "n[b,k] += V[b,k,d] * V[b,k,d]; Y[b,k,d] = V[b,k,d] * n[b,k] / (1 + n[b,k]) * rsqrt(n[b,k] + 1e-7)"},
	{"attention", "Q:4,12,8 K:4,16,8 V:4,16,8", "a[h,i,j] += Q[h,i,d] * K[h,j,d] * 0.35; m[h,i] max= a[h,i,j]; e[h,i,j] = exp(a[h,i,j] - m[h,i]); s[h,i] += e[h,i,j]; Y[h,i,d] += e[h,i,j] / s[h,i] * V[h,j,d]"},
	{"causal attention", "Q:4,16,8 K:4,16,8 V:4,16,8", "a[h,i,j] += Q[h,i,d] * K[h,j,d] * 0.35; m[h,i] max= j <= i ? a[h,i,j] : 0 - 1e30; e[h,i,j] = j <= i ? exp(a[h,i,j] - m[h,i]) : 0; s[h,i] += e[h,i,j]; Y[h,i,d] += e[h,i,j] / s[h,i] * V[h,j,d]"},
	{"linear attention", "Q:24,8 K:32,8 V:32,12", "f[i,c] = exp(Q[i,c]); g[j,c] = exp(K[j,c]); s[c,d] += g[j,c] * V[j,d]; z[c] += g[j,c]; o[i,d] += f[i,c] * s[c,d]; n[i] += f[i,c] * z[c]; Y[i,d] = o[i,d] / n[i]"},
	/* cells */
	{"LSTM gates", "G:16,64 C:16,16", "E[b,j] = sigmoid(G[b,j+16]) * C[b,j] + sigmoid(G[b,j]) * tanh(G[b,j+32]) where j < 16; Y[b,j] = sigmoid(G[b,j+48]) * tanh(E[b,j]) where j < 16"},
	{"multiplicative integration", "X:16,24 W:32,24 H:16,24 U:32,24 B:32", "a[b,g] += X[b,k] * W[g,k]; r[b,g] += H[b,k] * U[g,k]; Y[b,g] = tanh(a[b,g] * r[b,g] + B[g])"},
	{"LSTM cell", "X:16,12 W:4,16,12 H:16,16 V:4,16,16 B:4,16 C:16,16", "a[b,g,j] += X[b,i] * W[g,j,i]; r[b,g,j] += H[b,i] * V[g,j,i]; z[b,g,j] = a[b,g,j] + r[b,g,j] + B[g,j]; n[b,j] = sigmoid(z[b,1,j]) * C[b,j] + sigmoid(z[b,0,j]) * tanh(z[b,2,j]); Y[b,j] = sigmoid(z[b,3,j]) * tanh(n[b,j])"},
	{"MI-LSTM cell", "X:16,12 W:4,16,12 H:16,16 V:4,16,16 P:4,16 B:4,16 D:4,16 E:4,16 C:16,16", "a[b,g,j] += X[b,i] * W[g,j,i]; r[b,g,j] += H[b,i] * V[g,j,i]; z[b,g,j] = P[g,j] * a[b,g,j] * r[b,g,j] + B[g,j] * a[b,g,j] + D[g,j] * r[b,g,j] + E[g,j]; n[b,j] = sigmoid(z[b,1,j]) * C[b,j] + sigmoid(z[b,0,j]) * tanh(z[b,2,j]); Y[b,j] = sigmoid(z[b,3,j]) * tanh(n[b,j])"},
	{"GRU cell", "X:16,12 W:3,16,12 H:16,16 V:3,16,16", "a[b,g,j] += X[b,i] * W[g,j,i]; r[b,g,j] += H[b,i] * V[g,j,i]; z[b,g,j] = sigmoid(a[b,g,j] + r[b,g,j]) where g < 2; n[b,j] = tanh(a[b,2,j] + z[b,1,j] * r[b,2,j]); Y[b,j] = (1 - z[b,0,j]) * n[b,j] + z[b,0,j] * H[b,j]"},
	{"SCRN cell", "X:16,12 B:8,12 S:16,8 P:16,8 A:16,12 H:16,16 R:16,16 U:20,16 V:20,8", "a[b,j] += X[b,i] * B[j,i]; s[b,j] = 0.05 * a[b,j] + 0.95 * S[b,j]; p[b,j] += s[b,i] * P[j,i]; q[b,j] += X[b,i] * A[j,i]; r[b,j] += H[b,i] * R[j,i]; h[b,j] = sigmoid(p[b,j] + q[b,j] + r[b,j]); u[b,k] += h[b,j] * U[k,j]; v[b,k] += s[b,j] * V[k,j]; Y[b,k] = u[b,k] + v[b,k]"},
	{"subLSTM cell", "X:16,12 W:4,16,12 H:16,16 V:4,16,16 B:4,16 C:16,16", "a[b,g,j] += X[b,i] * W[g,j,i]; r[b,g,j] += H[b,i] * V[g,j,i]; z[b,g,j] = sigmoid(a[b,g,j] + r[b,g,j] + B[g,j]); Y[b,j] = sigmoid(z[b,1,j] * C[b,j] + z[b,2,j] - z[b,0,j]) - z[b,3,j]"},
	{"LLTM cell", "H:16,16 X:16,12 W:3,16,28 B:3,16 C:16,16", "x[b,i] = i < 16 ? H[b,i] : X[b,i-16] where i < 28; a[b,g,j] += x[b,i] * W[g,j,i]; z[b,g,j] = a[b,g,j] + B[g,j]; e[b,j] = z[b,2,j] > 0 ? z[b,2,j] : expm1(z[b,2,j]); Y[b,j] = tanh(C[b,j] + e[b,j] * sigmoid(z[b,0,j])) * sigmoid(z[b,1,j])"},
	/* elements */
	{"gelu", "X:500", "Y[i] = 0.5 * X[i] * (1 + erf(X[i] * 0.7071067811865476))"},
	{"elu", "X:500", "Y[i] = X[i] > 0 ? X[i] : expm1(X[i])"},
	{"mish", "X:500", "Y[i] = X[i] * tanh(log1p(exp(X[i])))"},
	{"softplus", "X:500", "Y[i] = max(X[i], 0) + log1p(exp(0 - abs(X[i])))"},
	{"power", "A:500 B:500", "Y[i] = pow(1 + A[i] * A[i], B[i])"},
	{"Huber's loss", "A:500 B:500", "d = A[i] - B[i]; Y[i] = abs(d) < 1 ? 0.5 * d * d : abs(d) - 0.5"},
};
/* clang-format on */
enum { ROWS = sizeof row / sizeof *row };

typedef struct {
	double before, after, seconds; /* of a step, the median */
} Trained;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- an operator */

/* An operand as the table has it; *s moves behind it. most: of an integer, else 0. */
static ricci_tensor *operand_read(ricci_graph *g, const char **s, long *most)
{
	char name[NAME], *end;
	int64_t shape[RICCI_MAX_RANK];
	int length = (int)strcspn(*s, ":"), rank = 0;
	snprintf(name, sizeof name, "%.*s", length, *s);
	end = (char *)*s + length;
	do
		shape[rank++] = strtol(end + 1, &end, 10);
	while (*end == ',');
	*most = *end == '<' ? strtol(end + 1, &end, 10) : 0;
	*s = end + (*end == ' ');
	return *most ? ricci_input(g, name, RICCI_I32, rank, shape)
		     : ricci_param(g, name, RICCI_F32, rank, shape, ricci_normal(0.7));
}

/* Y, and the integer operand, if any: some operator's, not more than one. */
static ricci_tensor *operator_make(ricci_graph *g, const Row *r, ricci_tensor **integers,
				   long *most)
{
	ricci_tensor *operand[OPERANDS], *result = NULL;
	const char *s = r->operands;
	int n = 0, results = 1;
	long m;
	for (*integers = NULL, *most = 0; *s && n < OPERANDS; n++) {
		operand[n] = operand_read(g, &s, &m);
		if (m) {
			*integers = operand[n];
			*most = m;
		}
	}
	ricci_ops(g, r->equations, n, operand, &results, &result);
	return result;
}

static int integers_feed(ricci_session *s, const ricci_tensor *t, long most)
{
	size_t n = t ? ricci_bytes(t) / sizeof(int32_t) : 0;
	int32_t *value = calloc(n + 1, sizeof *value);
	for (size_t i = 0; i < n && value; i++)
		value[i] = (int32_t)((7 * i + i / 3) % (size_t)most);
	int status = !value ? RICCI_ENOMEM : t ? ricci_feed(s, t, value, n * sizeof *value) : 0;
	free(value);
	return status;
}

/* ---- what it is to give, and how it comes to give it */

/* A session of the operator with operands of another seed: y has room for its result. */
static int target_compute(const example *e, const Row *r, float *y, size_t bytes)
{
	long most;
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *integers, *result = g ? operator_make(g, r, &integers, &most) : NULL;
	ricci_options o = e->options;
	o.seed += 1;
	ricci_session *s = g ? ricci_session_new(g, &o, 0, 1, &result) : NULL;
	int status = s ? integers_feed(s, integers, most) : RICCI_EINVAL;
	if (!status)
		status = ricci_step(s);
	if (!status)
		status = ricci_fetch(s, result, y, bytes);
	ricci_session_free(s);
	ricci_graph_free(g);
	return status;
}

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* One step more than `steps`, to see the loss behind the last update. */
static int steps_do(const example *e, ricci_session *s, ricci_tensor *loss, int steps, Trained *out)
{
	double *spent = calloc((size_t)steps + 1, sizeof *spent);
	float value = 0;
	int status = spent ? 0 : RICCI_ENOMEM;
	for (int i = 0; i <= steps && !status && !*e->training.stop; i++) {
		double start = now();
		status = ricci_step(s);
		spent[i] = now() - start;
		if (!status && (!i || i == steps))
			status = ricci_fetch(s, loss, &value, sizeof value);
		if (!i)
			out->before = value;
	}
	out->after = value;
	if (spent)
		qsort(spent, (size_t)steps + 1, sizeof *spent, order);
	out->seconds = spent ? spent[steps / 2] : 0;
	free(spent);
	return status;
}

static int operator_train(const example *e, const Row *r, Trained *out)
{
	int64_t shape[RICCI_MAX_RANK] = {0};
	long most;
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *integers, *y = g ? operator_make(g, r, &integers, &most) : NULL;
	size_t bytes = y && !ricci_graph_error(g) ? ricci_bytes(y) : 0;
	float *target = bytes ? malloc(bytes) : NULL;
	int status = target ? 0 : g ? ricci_graph_error(g) : RICCI_ENOMEM;
	if (!status)
		status = target ? target_compute(e, r, target, bytes) : RICCI_ENOMEM;
	for (int d = 0; d < RICCI_MAX_RANK && !status; d++)
		shape[d] = ricci_extent(y, d);
	ricci_tensor *want =
		status ? NULL : ricci_input(g, "target", RICCI_F32, ricci_rank(y), shape);
	ricci_tensor *loss = status ? NULL : ricci_mean_squared_error(y, want);
	if (!status)
		status = ricci_adam(loss, ricci_learning_rate(g, e->lr), 0.9, 0.999, 1e-8);
	ricci_session *s = status ? NULL : ricci_session_new(g, &e->options, 1, 1, &loss);
	if (!status)
		status = s ? integers_feed(s, integers, most) : RICCI_EINVAL;
	if (!status)
		status = ricci_feed(s, want, target, bytes);
	if (!status)
		status = steps_do(e, s, loss, (int)example_option_of(e, "steps")->value, out);
	ricci_session_free(s);
	ricci_graph_free(g);
	free(target);
	return status;
}

static int program(example *e)
{
	const char *only = example_option_of(e, "only")->text;
	int done = 0, failed = 0;
	printf("%-30s %10s %10s %9s  equations\n", "operator", "loss", "after", "ms/step");
	for (int i = 0; i < ROWS && !*e->training.stop; i++) {
		Trained t = {0};
		if (only && !strstr(row[i].name, only))
			continue;
		done++;
		if (operator_train(e, &row[i], &t))
			return fprintf(stderr, "operators: %s: %s\n", row[i].name,
				       ricci_error_message()),
			       1;
		if (*e->training.stop)
			break;
		int learnt = t.after < t.before;
		failed += !learnt;
		printf("%-30s %10.4g %10.4g %9.3f  %s%s\n", row[i].name, t.before, t.after,
		       1e3 * t.seconds, row[i].equations, learnt ? "" : "  DID NOT LEARN");
		fflush(stdout);
	}
	if (*e->training.stop)
		return 128 + (int)*e->training.stop;
	if (!done)
		return fprintf(stderr, "operators: --only %s: no operator has this in its name\n",
			       only),
		       2;
	return failed || fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
	example_option own[] = {
		{"steps", "N", "of training, for each", NULL, 'n', 1, 50, NULL},
		{"only", "TEXT", "operators with this in their names", NULL, 0, 0, 0, NULL},
		{0}};
	return example_main(
		argc, argv,
		&(example){
			.name = "operators",
			.about = "Trains many operators for a few steps each, and prints a table.",
			.lr = 0.02,
			.option = own,
			.common = " lr seed threads backend device static help ",
			.program = program});
}

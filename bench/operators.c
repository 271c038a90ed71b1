/* operators.c - times single operators, forward and their gradients.
 *
 * usage: operators [--threads N] [--seconds S] NAME MODE
 *        operators --list
 *
 * An operator is its equations and its operands' shapes; they stand in this table only. --list
 * prints it as JSON, a line for each, with what a peer needs to compute the same
 * (bench/peer_operators.py). The session tries its schedules for at most S seconds (10), those in
 * the cache first (bench/operators.py searches before); then steps are timed, and one JSON line
 * tells the median. Operands are fed once and read where they lie.
 */
#include <getopt.h>
#include <ricci.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 4, BATCHES = 15, TABLE = 8192 };

typedef struct Work {
	const char *name, *group, *modes;
	const char *peer; /* what it is called there */
	/* of a convolution, for a peer; the first two also fill the text */
	int stride, pad, dilation, groups;
	const char *text;
	int places;		/* p, q of a square convolution; 0: none stand in the text */
	double flops;		/* of the forward equations that multiply and add; 0: count bytes */
	int64_t shape[MOST][6]; /* of the operands, each ended by 0 */
	ricci_type type;	/* of the operands */
	const char *needs;	/* what `bench/machine` must say of the processor; NULL: nothing */
	int index; /* the operand that holds rows of a table, counted from 1; 0: none */
} Work;

#define PLAIN		  RICCI_F32, NULL, 0
#define EACH		  "forward dx dw"
#define BOTH		  "forward forward+grad"
#define OUT(side, stride) (((side)-1) / (stride) + 1)
#define SHAPE(...)                                                                                 \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define SQUARE "Y[b,k,p,q] += (X[b,c,%d*p+r-%d,%d*q+s-%d] else 0) * W[k,c,r,s]"
#define LAYERS "Y[b,c,p,q] += (X[b,c,%d*p+r-%d,%d*q+s-%d] else 0) * W[c,r,s]"
/* Convolutions of table 2 of the TVM paper (Chen et al., OSDI 2018): batch 1, padding kernel / 2.
 */
#define CONV(name, side, in, out, kernel, stride)                                                  \
	{                                                                                          \
		name, "C*", EACH, "convolution", stride, kernel / 2, 1, 1, SQUARE,                 \
			OUT(side, stride),                                                         \
			2. * in *out *kernel *kernel *OUT(side, stride) * OUT(side, stride),       \
			SHAPE(SHAPE(1, in, side, side), SHAPE(out, in, kernel, kernel)), PLAIN     \
	}
#define DEPTHWISE(name, group, side, channels, stride)                                             \
	{                                                                                          \
		name, group, "forward", "convolution", stride, 1, 1, channels, LAYERS,             \
			OUT(side, stride), 18. * channels *OUT(side, stride) * OUT(side, stride),  \
			SHAPE(SHAPE(1, channels, side, side), SHAPE(channels, 3, 3)), PLAIN        \
	}
#define GEMM(name, group, m, n, k)                                                                 \
	{                                                                                          \
		name, group, "forward", "product", 0, 0, 0, 0, "Y[i,j] += A[i,k] * B[k,j]", 0,     \
			2. * m *n *k, SHAPE(SHAPE(m, k), SHAPE(k, n)), PLAIN                       \
	}
/* Factors of 8 or 16 bits; the sums are wider, the result is what the peers give. */
#define NARROW(name, type, text, n, needs)                                                         \
	{                                                                                          \
		name, "narrow", "forward", "product", 0, 0, 0, 0, text, 0, 2. * n *n *n,           \
			SHAPE(SHAPE(n, n), SHAPE(n, n)), type, needs, 0                            \
	}
#define CAPSULES(name, batch)                                                                      \
	{                                                                                          \
		name, "capsconv", BOTH, "capsules", 2, 0, 0, 0,                                    \
			"V[b,k,p,q,i,j] += P[b,c,2*p+r,2*q+s,i,t] * W[k,c,r,s,t,j]", 0,            \
			2. * batch * 32 * 36 * 16 * 32 * 9 * 4,                                    \
			SHAPE(SHAPE(batch, 32, 14, 14, 4, 4), SHAPE(32, 32, 3, 3, 4, 4)), PLAIN    \
	}
#define ROWS(name, text, ...)                                                                      \
	{                                                                                          \
		name, "rows", BOTH, name, 0, 0, 0, 0, text, 0, 0, SHAPE(__VA_ARGS__), PLAIN        \
	}
/* A function of each element of what the caches hold; the peers' function is called the same. */
#define FUNCTION(name)                                                                             \
	{                                                                                          \
#name, "functions", "forward", "function", 0, 0, 0, 0, "Y[i] = " #name "(X[i])",   \
			0, 0, SHAPE(SHAPE(1 << 18)), PLAIN                                         \
	}
#define MOVES(name, modes, index, text, ...)                                                       \
	{                                                                                          \
		name, "moves", modes, name, 0, 0, 0, 0, text, 0, 0, SHAPE(__VA_ARGS__), RICCI_F32, \
			NULL, index                                                                \
	}
/* The nine operators of ALT (Xu et al., EuroSys 2023), which draws ten shapes of each at random and
 * doesn't tell them: one of each here, of the size that networks have. */
#define NINE(name, stride, pad, dilation, groups, flops, text, ...)                                \
	{                                                                                          \
		name, "nine", "forward", "convolution", stride, pad, dilation, groups, text, 0,    \
			flops, SHAPE(__VA_ARGS__), PLAIN                                           \
	}

/* Operators that no library has, as their inventors write them; peers assemble them from others. */
#define NOVEL(name, text, ...)                                                                     \
	{                                                                                          \
		name, "novel", BOTH, name, 0, 0, 0, 0, text, 0, 0, SHAPE(__VA_ARGS__), PLAIN       \
	}
/* .. of which one operand holds rows of a table. */
#define GRAPH(name, index, text, ...)                                                              \
	{                                                                                          \
		name, "novel", BOTH, name, 0, 0, 0, 0, text, 0, 0, SHAPE(__VA_ARGS__), RICCI_F32,  \
			NULL, index                                                                \
	}

static const Work work[] = {
	GEMM("gemm_1024", "gemm", 1024, 1024, 1024),
	GEMM("gemm_512x512x64", "gemm", 512, 512, 64),
	GEMM("gemm_16x4096x1024", "gemm", 16, 4096, 1024),
	NARROW("gemm_i8_1024", RICCI_I8, "Y[i,j] += i32(A[i,k]) * i32(B[k,j])", 1024, NULL),
	NARROW("gemm_bf16_2048", RICCI_BF16,
	       "S[i,j] += f32(A[i,k]) * f32(B[k,j]); Y[i,j] = bf16(S[i,j])", 2048, "bf16"),
	CAPSULES("capsconv_b1", 1),
	CAPSULES("capsconv_b16", 16),
	CONV("C1", 224, 3, 64, 7, 2),
	CONV("C2", 56, 64, 64, 3, 1),
	CONV("C3", 56, 64, 64, 1, 1),
	CONV("C4", 56, 64, 128, 3, 2),
	CONV("C5", 56, 64, 128, 1, 2),
	CONV("C6", 28, 128, 128, 3, 1),
	CONV("C7", 28, 128, 256, 3, 2),
	CONV("C8", 28, 128, 256, 1, 2),
	CONV("C9", 14, 256, 256, 3, 1),
	CONV("C10", 14, 256, 512, 3, 2),
	CONV("C11", 14, 256, 512, 1, 2),
	CONV("C12", 7, 512, 512, 3, 1),
	DEPTHWISE("D1", "D*", 112, 32, 1),
	DEPTHWISE("D2", "D*", 112, 64, 2),
	DEPTHWISE("D3", "D*", 56, 128, 1),
	DEPTHWISE("D4", "D*", 56, 128, 2),
	DEPTHWISE("D5", "D*", 28, 256, 1),
	DEPTHWISE("D6", "D*", 28, 256, 2),
	DEPTHWISE("D7", "D*", 14, 512, 1),
	DEPTHWISE("D8", "D*", 14, 512, 2),
	DEPTHWISE("D9", "D*", 7, 1024, 1),
	ROWS("softmax",
	     "M[i] max= X[i,j]; E[i,j] = exp(X[i,j] - floor(M[i])); S[i] += E[i,j];"
	     "Y[i,j] = E[i,j] / S[i]",
	     {4096, 1024}),
	ROWS("layernorm",
	     "M[i] += X[i,j] / 1024; V[i] += (X[i,j] - M[i]) * (X[i,j] - M[i]) / 1024;"
	     "Y[i,j] = (X[i,j] - M[i]) * rsqrt(V[i] + 1e-5) * G[j] + B[j]",
	     {4096, 1024}, {1024}, {1024}),
	ROWS("chain",
	     "Z[i,j] = X[i,j] * W[j] + B[j];"
	     "Y[i,j] = 0.5 * Z[i,j] * (1 + erf(Z[i,j] * 0.7071067811865476)) + R[i,j]",
	     {4096, 1024}, {1024}, {1024}, {4096, 1024}),
	FUNCTION(exp),
	FUNCTION(expm1),
	FUNCTION(log),
	FUNCTION(log1p),
	FUNCTION(sqrt),
	FUNCTION(rsqrt),
	FUNCTION(sin),
	FUNCTION(cos),
	FUNCTION(tan),
	FUNCTION(tanh),
	FUNCTION(sigmoid),
	FUNCTION(erf),
	MOVES("maxpool", "forward dx", 0,
	      "Y[c,p,q] max= (X[c,2*p+r-1,2*q+s-1] else -inf) where p<56, q<56, r<3, s<3",
	      {64, 112, 112}),
	MOVES("avgpool", "forward dx", 0, "Y[c,p,q] += X[c,2*p+r,2*q+s] / 4 where r<2, s<2",
	      {64, 112, 112}),
	MOVES("transpose", "forward", 0, "Y[i,j] = X[j,i]", {2048, 2048}),
	MOVES("heads", "forward", 0, "Y[b,h,t,d] = X[b,t,h,d]", {8, 512, 8, 64}),
	MOVES("sum_rows", "forward", 0, "Y[i] += X[i,j]", {4096, 1024}),
	MOVES("sum_columns", "forward", 0, "Y[j] += X[i,j]", {4096, 1024}),
	MOVES("sum_middle", "forward", 0, "Y[i,k] += X[i,j,k]", {64, 256, 256}),
	MOVES("sum_all", "forward", 0, "Y[] += X[i,j]", {4096, 1024}),
	MOVES("cumsum", "forward dx", 0, "Y[i,j] += X[i,k] where k < j+1, j < X.size(1)",
	      {512, 4096}),
	MOVES("cumsum_middle", "forward dx", 0, "Y[i,j,l] += X[i,k,l] where k < j+1, j < X.size(1)",
	      {64, 1024, 256}),
	MOVES("cumsum_line", "forward", 0, "Y[j] += X[k] where k < j+1, j < X.size(0)", {1 << 20}),
	MOVES("cummax", "forward", 0, "Y[i,j] max= X[i,k] where k < j+1, j < X.size(1)",
	      {512, 4096}),
	MOVES("gather", "forward dx", 2, "Y[i,d] = E[T[i],d]", {TABLE, 256}, {4096}),
	MOVES("scatter", "forward", 1, "Y[T[i]:8192,d] += X[i,d]", {4096}, {4096, 256}),
	NINE("nine_2d", 1, 1, 1, 1, 2. * 4 * 96 * 96 * 9 * 784,
	     "Y[b,k,p,q] += (X[b,c,p+r-1,q+s-1] else 0) * W[k,c,r,s] where p<28, q<28",
	     {4, 96, 28, 28}, {96, 96, 3, 3}),
	NINE("nine_group", 1, 1, 1, 4, 2. * 128 * 32 * 9 * 784,
	     "Y[b,g,k,p,q] += (X[b,g,c,p+r-1,q+s-1] else 0) * W[g,k,c,r,s] where p<28, q<28",
	     {1, 4, 32, 28, 28}, {4, 32, 32, 3, 3}),
	DEPTHWISE("nine_depthwise", "nine", 28, 192, 1),
	NINE("nine_dilated", 1, 2, 2, 1, 2. * 128 * 128 * 9 * 784,
	     "Y[b,k,p,q] += (X[b,c,p+2*r-2,q+2*s-2] else 0) * W[k,c,r,s] where p<28, q<28",
	     {1, 128, 28, 28}, {128, 128, 3, 3}),
	NINE("nine_3d", 1, 1, 1, 1, 2. * 32 * 32 * 27 * 8 * 784,
	     "Y[b,k,o,p,q] += (X[b,c,o+t-1,p+r-1,q+s-1] else 0) * W[k,c,t,r,s]"
	     " where o<8, p<28, q<28",
	     {1, 32, 8, 28, 28}, {32, 32, 3, 3, 3}),
	NINE("nine_1d", 1, 2, 1, 1, 2. * 8 * 64 * 128 * 5 * 256,
	     "Y[b,k,p] += (X[b,c,p+r-2] else 0) * W[k,c,r] where p<256", {8, 64, 256},
	     {128, 64, 5}),
	GEMM("nine_product", "nine", 512, 512, 512),
	/* Transposed, kernel 4, stride 2, padding 1: place 2u + h of the output takes every second
	 * of the kernel's. */
	{"nine_transposed_2d",
	 "nine",
	 "forward",
	 "transposed",
	 2,
	 1,
	 1,
	 1,
	 "Y[b,k,2*u+h:16,2*v+g:16] += (X[b,c,u+(h+1)/2-m,v+(g+1)/2-n] else 0)"
	 " * W[c,k,(h+1)%%2+2*m,(g+1)%%2+2*n] where u<8, v<8, h<2, g<2, m<2, n<2",
	 0,
	 2. * 256 * 128 * 16 * 64,
	 {{1, 256, 8, 8}, {256, 128, 4, 4}},
	 PLAIN},
	{"nine_transposed_3d",
	 "nine",
	 "forward",
	 "transposed",
	 2,
	 1,
	 1,
	 1,
	 "Y[b,k,2*w+f:8,2*u+h:16,2*v+g:16] += (X[b,c,w+(f+1)/2-l,u+(h+1)/2-m,v+(g+1)/2-n] else 0)"
	 " * W[c,k,(f+1)%%2+2*l,(h+1)%%2+2*m,(g+1)%%2+2*n]"
	 " where w<4, u<8, v<8, f<2, h<2, g<2, l<2, m<2, n<2",
	 0,
	 2. * 64 * 32 * 64 * 256,
	 {{1, 64, 4, 8, 8}, {64, 32, 4, 4, 4}},
	 PLAIN},
	NOVEL("point_convolution", "Y[b,n,o] += X[b,n,j,c] * W[b,n,j,m] * H[c,m,o]",
	      {4, 256, 16, 32}, {4, 256, 16, 8}, {32, 8, 64}),
	NOVEL("talking_heads", "S[b,g,i,j] += Q[b,h,i,d] * K[b,h,j,d] * P[h,g]", {4, 8, 128, 64},
	      {4, 8, 128, 64}, {8, 8}),
	NOVEL("tensor_product", "Z[b,u,m] += C[m,i,j] * X[b,u,i] * Y[b,j] * W[u]", {9, 9, 9},
	      {2048, 64, 9}, {2048, 9}, {64}),
	NOVEL("quaternion", "Y[b,k,o] += X[b,i,l] * W[i,j,o] * Q[l,j,k]", {256, 64, 4}, {64, 4, 64},
	      {4, 4, 4}),
	NOVEL("tucker", "Y[b,o] += T[o,i,j] * X[b,i] * Z[b,j]", {128, 64, 64}, {256, 64},
	      {256, 64}),
	NOVEL("spline_layer", "d = X[b,i] - 0.25*g; Y[b,o] += C[o,i,g] * exp(-d*d) where g<8",
	      {256, 128}, {256, 128, 8}),
	NOVEL("triangle", "Z[i,j,c] += A[i,k,c] * B[j,k,c]", {128, 128, 64}, {128, 128, 64}),
	NOVEL("max_plus", "Y[i,j] max= A[i,k] + B[k,j]", {512, 512}, {512, 512}),
	NOVEL("l1_distances", "Y[i,j] += abs(X[i,k] - C[j,k])", {1024, 128}, {512, 128}),
	NOVEL("long_convolution", "Y[b,t,d] += X[b,s,d] * H[t-s,d] where s<t+1, t<X.size(1)",
	      {4, 512, 64}, {512, 64}),
	NOVEL("correlation",
	      "C[b,u,v,p,q] += F[b,c,p,q] * (G[b,c,p+u-4,q+v-4] else 0) where u<9, v<9, p<32, q<32",
	      {4, 64, 32, 32}, {4, 64, 32, 32}),
	NOVEL("involution",
	      "Y[b,g,c,p,q] += (X[b,g,c,p+r-3,q+s-3] else 0) * K[b,g,r,s,p,q] where p<28, q<28",
	      {8, 8, 16, 28, 28}, {8, 8, 7, 7, 28, 28}),
	NOVEL("radial_basis",
	      "d = X[b,k] - C[j,k]; D[b,j] += d*d; Y[b,o] += exp(-G[j]*D[b,j]) * W[j,o]",
	      {1024, 32}, {256, 32}, {256}, {256, 16}),
	NOVEL("positional",
	      "H[n,o] += sin(X[n,l%%3] * pow(2.0, f32(l/3))) * W[l,o]"
	      " where l<30",
	      {16384, 3}, {30, 64}),
	NOVEL("deformable",
	      "A[b,k,p,q] = P[b,k,p,q] + f32(p + k/3 - 1); B[b,k,p,q] = Q[b,k,p,q] + f32(q + k%%3 "
	      "- 1);"
	      "s = floor(A[b,k,p,q]); t = floor(B[b,k,p,q]);"
	      "V[b,c,k,p,q] += (X[b,c,i32(s)+u,i32(t)+v] else 0)"
	      " * (1 - abs(A[b,k,p,q] - s - u)) * (1 - abs(B[b,k,p,q] - t - v)) where u<2, v<2;"
	      "Y[b,o,p,q] += V[b,c,k,p,q] * W[o,c,k]",
	      {2, 9, 32, 32}, {2, 9, 32, 32}, {2, 32, 32, 32}, {32, 32, 9}),
	GRAPH("sparse_convolution", 2, "Y[n,o] += X[I[n,k],c] * W[k,c,o]", {TABLE, 32}, {4096, 27},
	      {27, 32, 32}),
	GRAPH("edge_convolution", 4,
	      "G[n,o] += X[n,c] * B[o,c]; H[n,o] += X[n,c] * A[o,c]; Y[n,o] max= H[I[n,k],o] + "
	      "G[n,o]",
	      {TABLE, 64}, {64, 64}, {64, 64}, {TABLE, 16}),
	GRAPH("neighbour_attention", 3,
	      "S[n,k] += Q[n,d] * K[I[n,k],d]; M[n] max= S[n,k]; E[n,k] = exp(S[n,k] - M[n]);"
	      "Z[n] += E[n,k]; Y[n,d] += E[n,k] * V[I[n,k],d] / Z[n]",
	      {TABLE, 32}, {TABLE, 32}, {TABLE, 16}, {TABLE, 32}),
	GRAPH("hash_grid", 2, "Y[n,l,f] += T[I[n,l,k],l,f] * U[n,l,k]", {TABLE, 8, 2},
	      {TABLE, 8, 8}, {TABLE, 8, 8}),
};

/* The numbers of a square convolution stand in its text. */
static void work_text(const Work *w, char *text, size_t n)
{
	int at = snprintf(text, n, w->text, w->stride, w->pad, w->stride, w->pad);

	if (w->places)
		snprintf(text + at, n - (size_t)at, " where p<%d, q<%d", w->places, w->places);
}

static void work_list(const Work *w)
{
	static const char *const type[] = {
		[RICCI_F32] = "f32", [RICCI_BF16] = "bf16", [RICCI_I8] = "i8"};
	char text[512];

	work_text(w, text, sizeof text);
	printf("{\"name\": \"%s\", \"group\": \"%s\", \"modes\": \"%s\", \"peer\": \"%s\", "
	       "\"stride\": %d, \"pad\": %d, \"dilation\": %d, \"groups\": %d, \"flops\": %.15g, "
	       "\"type\": \"%s\", \"needs\": \"%s\", \"index\": %d, \"text\": \"%s\", \"shapes\": "
	       "[",
	       w->name, w->group, w->modes, w->peer, w->stride, w->pad, w->dilation, w->groups,
	       w->flops, type[w->type], w->needs ? w->needs : "", w->index, text);
	for (int i = 0; i < MOST && w->shape[i][0]; i++)
		for (int d = 0; d < 6 && w->shape[i][d]; d++)
			printf("%s%lld", d ? ", " : i ? "], [" : "[", (long long)w->shape[i][d]);
	printf("]]}\n");
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void put(ricci_type type, void *data, size_t i, float x)
{
	unsigned bits;

	memcpy(&bits, &x, sizeof bits);
	if (type == RICCI_I8)
		((signed char *)data)[i] = (signed char)(x * 127);
	else if (type == RICCI_I32)
		((int32_t *)data)[i] = (int32_t)((x + 1) * (TABLE / 2));
	else if (type == RICCI_BF16)
		((unsigned short *)data)[i] = (unsigned short)(bits >> 16);
	else
		((float *)data)[i] = x;
}

/* Numbers from -1 to 1 (bytes: of their whole range), the same in every run. */
static int feed(ricci_session *s, const ricci_tensor *t, unsigned seed)
{
	ricci_type type = ricci_dtype(t);
	size_t n = ricci_bytes(t) / (type == RICCI_I8 ? 1 : type == RICCI_BF16 ? 2 : 4);
	void *data = malloc(ricci_bytes(t));
	int status = -1;

	for (size_t i = 0; data && i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		put(type, data, i, (float)(seed >> 8) / (float)(1 << 23) - 1);
	}
	if (data)
		status = ricci_feed(s, t, data, ricci_bytes(t));
	free(data);
	return status;
}

typedef struct Bench {
	ricci_graph *g;
	int noperand, noutput;
	ricci_tensor *operand[MOST], *seed, *output[MOST + 1];
} Bench;

static void bench_build(Bench *b, const Work *w, const char *mode)
{
	char text[512];
	int n = 1, all = strcmp(mode, "forward+grad") == 0;
	ricci_tensor *y, *slot[MOST];

	b->g = ricci_graph_new();
	for (; b->noperand < MOST && w->shape[b->noperand][0]; b->noperand++) {
		int rank = 0;
		while (rank < 6 && w->shape[b->noperand][rank])
			rank++;
		snprintf(text, sizeof text, "operand%d", b->noperand);
		b->operand[b->noperand] =
			ricci_input(b->g, text, w->index == b->noperand + 1 ? RICCI_I32 : w->type,
				    rank, w->shape[b->noperand]);
	}
	work_text(w, text, sizeof text);
	ricci_ops(b->g, text, b->noperand, b->operand, &n, &y);
	if (all || !strcmp(mode, "forward"))
		b->output[b->noutput++] = y;
	if (!strcmp(mode, "forward"))
		return;
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < ricci_rank(y); d++)
		shape[d] = ricci_extent(y, d);
	b->seed = ricci_input(b->g, "dy", RICCI_F32, ricci_rank(y), shape);
	ricci_tensor *wrt[MOST];
	n = 0;
	for (int i = !strcmp(mode, "dw"); i < b->noperand && (all || n < 1); i++)
		if (i + 1 != w->index)
			wrt[n++] = b->operand[i];
	ricci_grad(b->g, y, b->seed, n, wrt, slot);
	for (int i = 0; i < n; i++)
		b->output[b->noutput++] = slot[i];
}

/* Steps for that long, or (tuned) until the tuner is done: steps are what tries schedules. */
static int run_for(ricci_session *s, double limit, long *steps)
{
	double start = seconds();
	int status = 0;

	for (*steps = 0; !status && (*steps == 0 || seconds() - start < limit); ++*steps)
		status = ricci_step(s);
	return status;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of batches of steps. */
static int bench_time(ricci_session *s, double limit, double *median)
{
	double batch[BATCHES];
	long steps, each;
	int status = run_for(s, limit, &steps);

	if (!status)
		status = ricci_settle(s);
	if (!status)
		status = run_for(s, 0.1, &steps);
	each = steps / 4 + 1;
	for (int i = 0; i < BATCHES && !status; i++) {
		double start = seconds();
		for (long k = 0; k < each && !status; k++)
			status = ricci_step(s);
		batch[i] = (seconds() - start) / (double)each;
	}
	qsort(batch, BATCHES, sizeof *batch, by_size);
	*median = batch[BATCHES / 2];
	return status;
}

static int bench_run(const Work *w, const char *mode, int threads, double limit)
{
	Bench b = {0};
	ricci_options options = RICCI_OPTIONS(.threads = threads);
	double median = 0;

	bench_build(&b, w, mode);
	ricci_session *s = ricci_session_new(b.g, &options, 0, b.noutput, b.output);
	int status = s ? 0 : -1;
	for (int i = 0; i < b.noperand && !status; i++)
		status = feed(s, b.operand[i], (unsigned)i);
	if (!status && b.seed)
		status = feed(s, b.seed, 77);
	if (!status)
		status = bench_time(s, limit, &median);
	if (status)
		fprintf(stderr, "operators: %s %s: %s\n", w->name, mode, ricci_error_message());
	else
		printf("{\"name\": \"%s\", \"mode\": \"%s\", \"ms\": %.5f, \"gflops\": %.2f}\n",
		       w->name, mode, 1e3 * median,
		       (strcmp(mode, "forward+grad") ? 1 : 3) * w->flops / median / 1e9);
	ricci_session_free(s);
	ricci_graph_free(b.g);
	return status != 0;
}

int main(int argc, char **argv)
{
	static const struct option option[] = {{"threads", required_argument, 0, 't'},
					       {"seconds", required_argument, 0, 's'},
					       {"list", no_argument, 0, 'l'},
					       {0}};
	int threads = 0, list = 0, n = (int)(sizeof work / sizeof *work);
	double limit = 10;

	for (int o; (o = getopt_long(argc, argv, "", option, NULL)) != -1;)
		switch (o) {
		case 't':
			threads = atoi(optarg);
			break;
		case 's':
			limit = atof(optarg);
			break;
		case 'l':
			list = 1;
			break;
		default:
			return 2;
		}
	for (int i = 0; i < n && list; i++)
		work_list(&work[i]);
	for (int i = 0; i < n && argc - optind == 2; i++)
		if (!strcmp(work[i].name, argv[optind]) && strstr(work[i].modes, argv[optind + 1]))
			return bench_run(&work[i], argv[optind + 1], threads, limit);
	if (!list)
		fprintf(stderr,
			"usage: operators [--threads N] [--seconds S] [--list | NAME MODE]\n");
	return list ? 0 : 2;
}

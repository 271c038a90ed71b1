/* written.c - times nets as somebody would write them who has an idea and the header: their own operators as
 * equations, no attention to how they run.
 *
 * usage: written NET [--static] [--tune S] [--seconds S] [--threads N] [--device D] [--tcc] [--profile]
 *        written --list
 * --tcc: all kernels by the first tier.
 *
 * A net is a function that makes its inputs and returns its loss; a step is one of Adam on random data that are fed
 * once. One JSON line tells what a step takes, as the examples' --bench does, and the losses of the first step and the
 * last one. bench/nets.py times them beside the same nets in PyTorch (bench/peer_written.py).
 */
#include <getopt.h>
#include <ricci.h>
#include <ricci_nn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define DIMS(...)                                                                                  \
	(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                     \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

typedef ricci_tensor Tensor;

enum { INPUTS = 4, STEPS = 1000, LEAST = 5 };

typedef struct Net {
	ricci_graph *g;
	int ninput;
	Tensor *input[INPUTS];
	int below[INPUTS]; /* of integers: they are less than this */
} Net;

/* ---- what nets are made of */

static Tensor *input_add(Net *n, const char *name, ricci_type type, int below, int rank,
			 const int64_t *shape)
{
	Tensor *x = ricci_input(n->g, name, type, rank, shape);
	n->input[n->ninput] = x;
	n->below[n->ninput++] = below;
	return x;
}

static Tensor *numbers(Net *n, const char *name, int rank, const int64_t *shape)
{
	return input_add(n, name, RICCI_F32, 0, rank, shape);
}

static Tensor *integers(Net *n, const char *name, int below, int rank, const int64_t *shape)
{
	return input_add(n, name, RICCI_I32, below, rank, shape);
}

static Tensor *weights(Net *n, const char *name, double deviation, int rank, const int64_t *shape)
{
	return ricci_param(n->g, name, RICCI_F32, rank, shape, ricci_normal(deviation));
}

static Tensor *linear(Tensor *x, const char *name, int64_t out)
{
	return ricci_linear_layer(x, name, &RICCI_LINEAR(.out = out));
}

static Tensor *project(Tensor *x, const char *name, int64_t out)
{
	return ricci_linear_layer(x, name, &RICCI_LINEAR(.out = out, .no_bias = 1));
}

static Tensor *conv(Tensor *x, const char *name, int out, int kernel, int stride, int pad)
{
	return ricci_conv_layer(
		x, name, &RICCI_CONV(.out = out, .kernel = kernel, .stride = stride, .pad = pad));
}

static Tensor *norm(Tensor *x, const char *name, ricci_norm_kind kind)
{
	return ricci_norm_layer(x, name, &RICCI_NORM(.kind = kind, .groups = 8));
}

static Tensor *sum(Tensor *x, Tensor *y)
{
	return ricci_op(ricci_graph_of(x), "Z[...] = X[...] + Y[...]", x, y);
}

static Tensor *product(Tensor *x, Tensor *y)
{
	return ricci_op(ricci_graph_of(x), "Z[...] = X[...] * Y[...]", x, y);
}

static Tensor *characters(Net *n, Tensor **next, int batch, int length, int count, int width)
{
	Tensor *x = integers(n, "x", count, DIMS(batch, length));
	*next = integers(n, "y", count, DIMS(batch, length));
	return ricci_embedding_layer(x, "embedding",
				     &RICCI_EMBEDDING(.count = count, .out = width));
}

static void layer_begin(Net *n, int i)
{
	char name[16];
	snprintf(name, sizeof name, "layer%d", i);
	ricci_scope_begin(n->g, name);
}

/* ---- nets */

/* Veličković et al. 2018: attention over a list of edges. */
static Tensor *gat(Net *n)
{
	Tensor *h = numbers(n, "x", DIMS(4096, 64));
	Tensor *from = integers(n, "from", 4096, DIMS(32768));
	Tensor *to = integers(n, "to", 4096, DIMS(32768));
	Tensor *label = integers(n, "y", 16, DIMS(4096));
	for (int i = 0; i < 3; i++) {
		layer_begin(n, i);
		Tensor *w = project(h, "w", 64), *a = weights(n, "a", .1, DIMS(4, 16));
		h = ricci_op(n->g,
			     "W, A, B, S, D -> Y:"
			     "p[n,h] += W[n,16*h+c]*A[h,c]; q[n,h] += W[n,16*h+c]*B[h,c];"
			     "v = p[S[e],h] + q[D[e],h]; L[e,h] = v > 0 ? v : 0.2*v;"
			     "M[D[e]:4096,h] max= L[e,h]; X[e,h] = exp(L[e,h] - M[D[e],h]);"
			     "Z[D[e]:4096,h] += X[e,h];"
			     "Y[D[e]:4096,16*h+c:64] += X[e,h]/Z[D[e],h]*W[S[e],16*h+c] "
			     "where h < 4, c < 16",
			     w, a, weights(n, "b", .1, DIMS(4, 16)), from, to);
		h = i < 2 ? ricci_elu(h, 1) : h;
		ricci_scope_end(n->g);
	}
	return ricci_cross_entropy(linear(h, "head", 16), label);
}

/* Qi et al. 2017, Wang et al. 2019: points and their neighbours. */
static Tensor *points(Net *n)
{
	static const int width[] = {32, 64, 128};
	Tensor *h = numbers(n, "x", DIMS(4, 1024, 3));
	Tensor *near = integers(n, "near", 1024, DIMS(4, 1024, 16));
	Tensor *label = integers(n, "y", 10, DIMS(4));
	for (int i = 0; i < 3; i++) {
		layer_begin(n, i);
		Tensor *e = ricci_op(n->g,
				     "H, N -> E: E[b,n,k,c] = c < H.size(2)"
				     "? H[b,N[b,n,k],c] - H[b,n,c] : H[b,n,c-H.size(2)] "
				     "where c < 2*H.size(2)",
				     h, near);
		e = ricci_relu(linear(ricci_relu(linear(e, "a", width[i])), "b", width[i]));
		h = ricci_op(n->g, "Y[b,n,c] max= E[b,n,k,c]", e);
		ricci_scope_end(n->g);
	}
	return ricci_cross_entropy(linear(ricci_op(n->g, "Y[b,c] max= X[b,n,c]", h), "head", 10),
				   label);
}

/* A layer of Gu, Dao 2023: the recurrence of each channel's states, u, dt [b,t,e], b, c [b,t,n] -> [t,b,e]. */
static Tensor *selective_scan(Net *n, int i, Tensor *u, Tensor *dt, Tensor *b, Tensor *c)
{
	static const char *const turn = "Y[t,b,k] = X[b,t,k]";
	int64_t batch = ricci_extent(u, 0), steps = ricci_extent(u, 1), e = ricci_extent(u, 2);
	int64_t states = ricci_extent(b, 2);
	Tensor *of[] = {u, dt, b, c}, *at[4], *stack;
	ricci_slice slice[4];
	char name[16];
	for (int k = 0; k < 4; k++) {
		snprintf(name, sizeof name, "step%d.%d", i, k);
		at[k] = ricci_input(n->g, name, RICCI_F32, DIMS(batch, ricci_extent(of[k], 2)));
		slice[k] = (ricci_slice){at[k], ricci_op(n->g, turn, of[k])};
	}
	snprintf(name, sizeof name, "state%d", i);
	Tensor *s = ricci_input(n->g, name, RICCI_F32, DIMS(batch, e, states));
	Tensor *a = ricci_param(n->g, "a", RICCI_F32, DIMS(e, states), ricci_uniform(0, 1));
	Tensor *next = ricci_op(n->g,
				"S, D, A, B, U -> N: N[b,e,n] = exp(-D[b,e]*exp(A[e,n]))*S[b,e,n] "
				"+ D[b,e]*B[b,n]*U[b,e]",
				s, at[1], a, at[2], at[0]);
	Tensor *out = ricci_op(n->g, "Y[b,e] += N[b,e,n]*C[b,n]", next, at[3]);
	ricci_scan(n->g,
		   &RICCI_LOOP(.steps = steps, .nslice = 4, .slice = slice, .ncarry = 1,
			       .carry = &(ricci_carry){s, NULL, next}, .nout = 1, .out = &out),
		   NULL, &stack);
	return stack;
}

static Tensor *mamba(Net *n)
{
	Tensor *y, *h = characters(n, &y, 4, 256, 256, 128);
	for (int i = 0; i < 2; i++) {
		layer_begin(n, i);
		Tensor *x = norm(h, "norm", RICCI_RMS_NORM), *z = project(x, "z", 256);
		Tensor *u = ricci_op(n->g,
				     "Y[b,t,e] += (X[b,t+r-3,e] else 0)*W[e,r] where t < X.size(1)",
				     project(x, "in", 256), weights(n, "conv", .3, DIMS(256, 4)));
		u = ricci_silu(u);
		Tensor *dt = ricci_softplus(linear(project(u, "rank", 8), "dt", 256));
		Tensor *s = selective_scan(n, i, u, dt, project(u, "b", 16), project(u, "c", 16));
		Tensor *d = ricci_param(n->g, "d", RICCI_F32, DIMS(256), ricci_constant(1));
		s = ricci_op(n->g,
			     "Y[b,t,e] = (S[t,b,e] + D[e]*U[b,t,e])*Z[b,t,e]*sigmoid(Z[b,t,e])", s,
			     d, u, z);
		h = sum(h, project(s, "out", 128));
		ricci_scope_end(n->g);
	}
	return ricci_cross_entropy(project(norm(h, "norm", RICCI_RMS_NORM), "head", 256), y);
}

/* Poli et al. 2023: gated convolutions as long as the text, whose filters decay. */
static Tensor *hyena(Net *n)
{
	Tensor *y, *h = characters(n, &y, 4, 512, 256, 128);
	for (int i = 0; i < 2; i++) {
		layer_begin(n, i);
		Tensor *x = norm(h, "norm", RICCI_LAYER_NORM);
		Tensor *a = ricci_param(n->g, "a", RICCI_F32, DIMS(128), ricci_uniform(0, .02));
		Tensor *c =
			ricci_op(n->g,
				 "V, K, F, A -> Y: Y[b,t,d] += s <= t ? V[b,s,d]*K[b,s,d]*F[t-s,d]"
				 "*exp(-abs(A[d])*(t-s)) : 0 where t < V.size(1), s < V.size(1)",
				 project(x, "v", 128), project(x, "k", 128),
				 weights(n, "f", .02, DIMS(512, 128)), a);
		h = sum(h, project(product(c, project(x, "q", 128)), "out", 128));
		ricci_scope_end(n->g);
	}
	return ricci_cross_entropy(project(h, "head", 256), y);
}

/* Sun et al. 2023: attention by decay instead of softmax. */
static Tensor *retnet(Net *n)
{
	Tensor *y, *h = characters(n, &y, 8, 256, 512, 256);
	for (int i = 0; i < 4; i++) {
		layer_begin(n, i);
		Tensor *x = norm(h, "norm1", RICCI_LAYER_NORM);
		Tensor *a =
			ricci_op(n->g,
				 "S[b,h,i,j] += Q[b,i,32*h+d]*K[b,j,32*h+d] where d < 32, h < 8;"
				 "A[b,h,i,j] = j <= i ? S[b,h,i,j]*0.17677669*"
				 "exp((i-j)*log1p(-exp(-3.4657-0.4*h))) : 0;"
				 "Y[b,i,h,d] += A[b,h,i,j]*V[b,j,32*h+d] where d < 32, h < 8;"
				 "m[b,i,h] += Y[b,i,h,d]*Y[b,i,h,d]/32;"
				 "O[b,i,c] = Y[b,i,c/32,c%32]*rsqrt(m[b,i,c/32]+1e-6)",
				 project(x, "q", 256), project(x, "k", 256), project(x, "v", 256));
		h = sum(h, project(product(ricci_silu(project(x, "g", 256)), a), "out", 256));
		x = norm(h, "norm2", RICCI_LAYER_NORM);
		h = sum(h, linear(ricci_gelu(linear(x, "up", 512)), "down", 256));
		ricci_scope_end(n->g);
	}
	return ricci_cross_entropy(project(h, "head", 512), y);
}

/* Liu et al. 2021: attention in windows of 8 x 8, every second time shifted, with relative positions. */
static Tensor *window_attention(Net *n, Tensor *x, int shift)
{
	return ricci_op(
		n->g,
		"X, R, s -> Y: S[b,u,v,h,i,j] += X[b,(8*u+i/8+s)%32,(8*v+i%8+s)%32,24*h+d]"
		"*X[b,(8*u+j/8+s)%32,(8*v+j%8+s)%32,96+24*h+d] where u<4, v<4, h<4, i<64, j<64, "
		"d<24;"
		"L[b,u,v,h,i,j] = (8*u+i/8 < 32-s) == (8*u+j/8 < 32-s) && "
		"(8*v+i%8 < 32-s) == (8*v+j%8 < 32-s)"
		"? S[b,u,v,h,i,j]*0.204124 + R[i/8-j/8+7,i%8-j%8+7,h] : -inf;"
		"M[b,u,v,h,i] max= L[b,u,v,h,i,j]; E[b,u,v,h,i,j] = "
		"exp(L[b,u,v,h,i,j]-M[b,u,v,h,i]);"
		"Z[b,u,v,h,i] += E[b,u,v,h,i,j]; O[b,u,v,h,i,d] += E[b,u,v,h,i,j]/Z[b,u,v,h,i]"
		"*X[b,(8*u+j/8+s)%32,(8*v+j%8+s)%32,192+24*h+d] where u<4, v<4, h<4, j<64, d<24;"
		"Y[b,p,q,c] = O[b,(p+32-s)%32/8,(q+32-s)%32/8,c/24,(p+32-s)%8*8+(q+32-s)%8,c%24] "
		"where p<32, q<32, c<96",
		x, weights(n, "relative", .02, DIMS(15, 15, 4)), ricci_integer(n->g, shift));
}

static Tensor *swin(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(8, 3, 64, 64)), *label = integers(n, "y", 10, DIMS(8));
	Tensor *h = ricci_op(n->g, "Y[b,p,q,c] = X[b,c,p,q]", conv(x, "patch", 96, 2, 2, 0));
	for (int i = 0; i < 4; i++) {
		layer_begin(n, i);
		Tensor *y = linear(norm(h, "norm1", RICCI_LAYER_NORM), "qkv", 288);
		h = sum(h, linear(window_attention(n, y, i % 2 ? 4 : 0), "out", 96));
		y = norm(h, "norm2", RICCI_LAYER_NORM);
		h = sum(h, linear(ricci_gelu(linear(y, "up", 384)), "down", 96));
		ricci_scope_end(n->g);
	}
	return ricci_cross_entropy(
		linear(ricci_op(n->g, "Y[b,c] += X[b,p,q,c]/1024", h), "head", 10), label);
}

/* Mordvintsev et al. 2020: a cellular automaton that learns its rule. */
static Tensor *automaton(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(4, 16, 32, 32)), *y = numbers(n, "y", DIMS(4, 4, 32, 32));
	Tensor *s = ricci_input(n->g, "state", RICCI_F32, DIMS(4, 16, 32, 32)), *last;
	Tensor *next = ricci_op(
		n->g,
		"S, W, B, V -> Y: P[b,c,k,p,q] += k == 0 ? (r == 1 && s == 1 ? S[b,c,p,q] : 0) :"
		"(k == 1 ? (s-1)*(2-abs(r-1)) : (r-1)*(2-abs(s-1)))*0.125*(S[b,c,p+r-1,q+s-1] else "
		"0) "
		"where k<3, r<3, s<3, p<32, q<32;"
		"H[b,m,p,q] += P[b,c,k,p,q]*W[m,c,k]; R[b,m,p,q] = max(H[b,m,p,q]+B[m], 0);"
		"U[b,c,p,q] += R[b,m,p,q]*V[c,m];"
		"Y[b,c,p,q] = S[b,c,p,q] + (random(5, (b*32+p)*32+q) < 0.5 ? U[b,c,p,q] : 0)",
		s, weights(n, "w", .1, DIMS(128, 16, 3)), weights(n, "b", .1, DIMS(128)),
		weights(n, "v", .01, DIMS(16, 128)));
	ricci_scan(n->g, &RICCI_LOOP(.steps = 16, .ncarry = 1, .carry = &(ricci_carry){s, x, next}),
		   &last, NULL);
	return ricci_op(n->g,
			"L[] += (X[b,c,p,q]-Y[b,c,p,q])*(X[b,c,p,q]-Y[b,c,p,q])/16384 where c < 4",
			last, y);
}

/* Liu et al. 2024: Kolmogorov-Arnold layers, functions of each input by hats on a grid. */
static Tensor *kan(Net *n)
{
	static const int width[] = {128, 128, 10};
	Tensor *h = numbers(n, "x", DIMS(128, 64)), *label = integers(n, "y", 10, DIMS(128));
	for (int i = 0; i < 3; i++) {
		layer_begin(n, i);
		Tensor *c = weights(n, "c", .1, DIMS(width[i], ricci_extent(h, 1), 8));
		h = ricci_op(n->g, "Y[b,o] += max(1-abs(tanh(X[b,i])*3.5+3.5-k), 0)*C[o,i,k]", h,
			     c);
		ricci_scope_end(n->g);
	}
	return ricci_cross_entropy(h, label);
}

/* Shazeer et al. 2017: the best two of eight experts. */
static Tensor *experts(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(512, 128)), *y = numbers(n, "y", DIMS(512, 128));
	Tensor *o = ricci_op(
		n->g,
		"X, R, W, V -> Y: M[t] max= R[t,e]; N[t] max= R[t,e] < M[t] ? R[t,e] : -inf;"
		"G[t,e] = R[t,e] >= N[t] ? exp(R[t,e]-M[t]) : 0; Z[t] += G[t,e];"
		"H[t,e,m] += X[t,c]*W[e,m,c]; A[t,e,m] = max(H[t,e,m], 0)*G[t,e]/Z[t];"
		"Y[t,o] += A[t,e,m]*V[e,o,m]",
		x, project(x, "route", 8), weights(n, "w", .05, DIMS(8, 256, 128)),
		weights(n, "v", .05, DIMS(8, 128, 256)));
	return ricci_mean_squared_error(o, y);
}

/* van den Oord et al. 2017: each place of an image is the nearest vector of a book. */
static Tensor *vqvae(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(16, 3, 32, 32)), *result[2];
	Tensor *h = ricci_relu(conv(x, "down1", 64, 4, 2, 1));
	h = conv(ricci_relu(conv(h, "down2", 128, 4, 2, 1)), "code", 64, 3, 1, 1);
	ricci_ops(
		n->g,
		"H, C -> Q, L: d = H[b,c,p,q]-C[k,c]; D[b,p,q,k] += d*d; M[b,p,q] min= D[b,p,q,k];"
		"I[b,p,q] min= D[b,p,q,k] == M[b,p,q] ? i32(k) : i32(255);"
		"Z[b,c,p,q] = C[min(max(I[b,p,q],0),255),c];"
		"Q[b,c,p,q] = H[b,c,p,q] + stop_gradient(Z[b,c,p,q]-H[b,c,p,q]);"
		"u = stop_gradient(H[b,c,p,q])-Z[b,c,p,q]; v = "
		"H[b,c,p,q]-stop_gradient(Z[b,c,p,q]);"
		"L[] += (u*u+0.25*v*v)/65536",
		2, (Tensor *[]){h, weights(n, "book", .1, DIMS(256, 64))}, &(int){2}, result);
	h = ricci_relu(conv(result[0], "up0", 128, 3, 1, 1));
	ricci_conv_options up =
		RICCI_CONV(.out = 64, .kernel = 4, .stride = 2, .pad = 1, .transposed = 1);
	h = ricci_relu(ricci_conv_layer(h, "up1", &up));
	up.out = 3;
	h = ricci_conv_layer(h, "up2", &up);
	return sum(ricci_mean_squared_error(h, x), result[1]);
}

/* Ronneberger et al. 2015, with residual blocks: normalised, rectified smoothly, convolved, twice. */
static Tensor *residual(Net *n, Tensor *x, const char *name, int out)
{
	Tensor *y = x;
	ricci_scope_begin(n->g, name);
	for (int i = 0; i < 2; i++) {
		layer_begin(n, i);
		y = conv(ricci_silu(norm(y, "norm", RICCI_GROUP_NORM)), "conv", out, 3, 1, 1);
		ricci_scope_end(n->g);
	}
	y = sum(y, ricci_extent(x, 1) == out ? x : conv(x, "short", out, 1, 1, 0));
	ricci_scope_end(n->g);
	return y;
}

static Tensor *unet(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(4, 3, 64, 64)), *y = numbers(n, "y", DIMS(4, 3, 64, 64));
	Tensor *a = residual(n, conv(x, "in", 32, 3, 1, 1), "down0", 32);
	Tensor *b = residual(n, conv(a, "half1", 64, 3, 2, 1), "down1", 64);
	Tensor *c = residual(n, conv(b, "half2", 128, 3, 2, 1), "down2", 128);
	c = ricci_upsample_linear(residual(n, c, "middle", 128), (int64_t[]){32, 32}, 0);
	b = residual(n, ricci_concat(2, (Tensor *[]){c, b}, 1), "up1", 64);
	b = ricci_upsample_linear(b, (int64_t[]){64, 64}, 0);
	a = residual(n, ricci_concat(2, (Tensor *[]){b, a}, 1), "up0", 32);
	return ricci_mean_squared_error(conv(a, "out", 3, 3, 1, 1), y);
}

/* Ho et al. 2020: what is enlarged is convolved before it meets what was kept. */
static Tensor *diffusion(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(4, 3, 64, 64)), *y = numbers(n, "y", DIMS(4, 3, 64, 64));
	Tensor *a = residual(n, conv(x, "in", 32, 3, 1, 1), "down0", 32);
	Tensor *b = residual(n, conv(a, "half1", 64, 3, 2, 1), "down1", 64);
	Tensor *c = residual(n, conv(b, "half2", 128, 3, 2, 1), "middle", 128);
	c = conv(ricci_upsample_nearest(c, (int64_t[]){32, 32}), "twice1", 128, 3, 1, 1);
	b = residual(n, ricci_concat(2, (Tensor *[]){c, b}, 1), "up1", 64);
	b = conv(ricci_upsample_nearest(b, (int64_t[]){64, 64}), "twice0", 64, 3, 1, 1);
	a = residual(n, ricci_concat(2, (Tensor *[]){b, a}, 1), "up0", 32);
	return ricci_mean_squared_error(conv(a, "out", 3, 3, 1, 1), y);
}

/* van den Oord et al. 2016: causal convolutions whose neighbours are further and further away. */
static Tensor *wavenet(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(8, 1, 2048)), *y = integers(n, "y", 256, DIMS(8, 2048));
	Tensor *h = conv(x, "in", 32, 1, 1, 0), *skip = NULL;
	for (int i = 0; i < 8; i++) {
		layer_begin(n, i);
		Tensor *z = ricci_op(
			n->g,
			"Z[b,k,t] += (X[b,c,t-D+D*r] else 0)*W[k,c,r] where t < X.size(2);"
			"Y[b,c,t] = tanh(Z[b,c,t])*sigmoid(Z[b,c+32,t])",
			h, ricci_integer(n->g, 1 << i), weights(n, "w", .1, DIMS(64, 32, 2)));
		Tensor *s = conv(z, "skip", 64, 1, 1, 0);
		skip = skip ? sum(skip, s) : s;
		h = sum(h, conv(z, "next", 32, 1, 1, 0));
		ricci_scope_end(n->g);
	}
	h = conv(ricci_relu(conv(ricci_relu(skip), "out1", 64, 1, 1, 0)), "out2", 256, 1, 1, 0);
	return ricci_cross_entropy(ricci_op(n->g, "Y[b,t,c] = X[b,c,t]", h), y);
}

/* Li et al. 2021: a Fourier neural operator, whose transforms are sums. */
static Tensor *fno(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(16, 2, 256)), *y = numbers(n, "y", DIMS(16, 1, 256));
	Tensor *h = conv(x, "lift", 32, 1, 1, 0);
	for (int i = 0; i < 4; i++) {
		layer_begin(n, i);
		Tensor *s = ricci_op(
			n->g,
			"X, W -> Y: a = k*n*6.283185307/256; R[b,c,k] += X[b,c,n]*cos(a) where k < "
			"16;"
			"I[b,c,k] += -X[b,c,n]*sin(a) where k < 16;"
			"P[b,o,k] += R[b,c,k]*W[c,o,k,0] - I[b,c,k]*W[c,o,k,1];"
			"Q[b,o,k] += R[b,c,k]*W[c,o,k,1] + I[b,c,k]*W[c,o,k,0];"
			"Y[b,o,n] += (k == 0 ? 1 : 2)*(P[b,o,k]*cos(a) - Q[b,o,k]*sin(a))/256 "
			"where n < 256",
			h, weights(n, "w", .05, DIMS(32, 32, 16, 2)));
		h = sum(s, conv(h, "skip", 32, 1, 1, 0));
		h = i < 3 ? ricci_gelu(h) : h;
		ricci_scope_end(n->g);
	}
	h = conv(ricci_gelu(conv(h, "project", 128, 1, 1, 0)), "out", 1, 1, 1, 0);
	return ricci_mean_squared_error(h, y);
}

static Tensor *pooled(Tensor *x, const char *name, int out)
{
	return ricci_relu(ricci_max_pool(conv(x, name, out, 5, 1, 0), &RICCI_POOL(.kernel = 2)));
}

/* Jaderberg et al. 2015: images are sampled where a small net says. */
static Tensor *transformer(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(64, 1, 28, 28)), *y = integers(n, "y", 10, DIMS(64));
	Tensor *t = ricci_flatten(pooled(pooled(x, "where1", 8), "where2", 10), 1, -1);
	t = linear(ricci_relu(linear(t, "where3", 32)), "where4", 6);
	Tensor *h = ricci_op(
		n->g,
		"X, T -> Y: u[b,p,q] = (1 + 0.1*T[b,0])*(p-13.5) + 0.1*T[b,1]*(q-13.5)"
		" + T[b,2] + 13.5 where p < 28, q < 28;"
		"v[b,p,q] = 0.1*T[b,3]*(p-13.5) + (1 + 0.1*T[b,4])*(q-13.5)"
		" + T[b,5] + 13.5 where p < 28, q < 28;"
		"i = floor(u[b,p,q]); j = floor(v[b,p,q]);"
		"Y[b,c,p,q] += (X[b,c,i32(i)+r,i32(j)+s] else 0)*max(1-abs(u[b,p,q]-i-r), 0)"
		"*max(1-abs(v[b,p,q]-j-s), 0) where r < 2, s < 2",
		x, t);
	h = ricci_flatten(pooled(pooled(h, "conv1", 10), "conv2", 20), 1, -1);
	return ricci_cross_entropy(linear(ricci_relu(linear(h, "full", 50)), "head", 10), y);
}

/* Gaudet, Maida 2018: convolutions of quaternions; C holds the products of their units. */
static Tensor *quaternion(Net *n)
{
	Tensor *h = numbers(n, "x", DIMS(16, 4, 4, 16, 16)), *y = integers(n, "y", 10, DIMS(16));
	Tensor *c = ricci_op(n->g, "C[u,v,w] = w != (u == v ? 0 : u == 0 ? v : v == 0 ? u : 6-u-v)"
				   "? 0.0 : u == 0 && v > 0 ? -1.0 : v == 0 || u == v ? 1.0"
				   ": (u-v+3)%3 == 1 ? 1.0 : -1.0 where u < 4, v < 4, w < 4");
	for (int i = 0; i < 3; i++) {
		layer_begin(n, i);
		Tensor *w = weights(n, "w", .06, DIMS(16, ricci_extent(h, 1), 4, 3, 3));
		h = ricci_relu(ricci_op(n->g,
					"X, W, C -> Y: Y[b,k,u,p,q] += C[u,v,w]*W[k,c,v,r,s]"
					"*(X[b,c,w,p+r-1,q+s-1] else 0) where p < 16, q < 16",
					h, w, c));
		ricci_scope_end(n->g);
	}
	h = ricci_op(n->g, "Y[b,k,u] += X[b,k,u,p,q]/256", h);
	return ricci_cross_entropy(linear(ricci_flatten(h, 1, -1), "head", 10), y);
}

/* van den Oord et al. 2016: filters that see only what comes before. */
static Tensor *pixelcnn(Net *n)
{
	Tensor *x = integers(n, "x", 16, DIMS(8, 16, 16));
	Tensor *h = ricci_op(n->g, "X, E -> Y: Y[b,c,p,q] = E[X[b,p,q],c]", x,
			     weights(n, "embedding", .3, DIMS(16, 32)));
	for (int i = 0; i < 4; i++) {
		layer_begin(n, i);
		Tensor *z = ricci_op(n->g,
				     "X, W, M -> Y: Y[b,k,p,q] += r < 2 || (r == 2 && s < M)"
				     "? (X[b,c,p+r-2,q+s-2] else 0)*W[k,c,r,s] : 0 "
				     "where p < 16, q < 16",
				     h, weights(n, "w", .05, DIMS(64, 32, 5, 5)),
				     ricci_integer(n->g, i ? 3 : 2));
		z = ricci_op(n->g,
			     "Y[b,c,p,q] = tanh(Z[b,c,p,q])*sigmoid(Z[b,c+32,p,q]) where c < 32",
			     z);
		h = i ? sum(h, conv(z, "residual", 32, 1, 1, 0)) : z;
		ricci_scope_end(n->g);
	}
	h = conv(ricci_relu(h), "out", 16, 1, 1, 0);
	return ricci_cross_entropy(ricci_op(n->g, "Y[b,p,q,k] = X[b,k,p,q]", h), x);
}

/* Blundell et al. 2015: weights are drawn in each step. */
static Tensor *bayes(Net *n)
{
	static const int width[] = {784, 256, 256, 10};
	Tensor *h = numbers(n, "x", DIMS(128, 784)), *y = integers(n, "y", 10, DIMS(128));
	Tensor *k = NULL;
	for (int i = 0; i < 3; i++) {
		layer_begin(n, i);
		Tensor *m = weights(n, "mean", .05, DIMS(width[i + 1], width[i]));
		Tensor *s = ricci_param(n->g, "deviation", RICCI_F32, DIMS(width[i + 1], width[i]),
					ricci_constant(-4));
		h = ricci_op(n->g,
			     "X, M, S, K -> Y: W[o,i] = M[o,i] + log1p(exp(S[o,i]))*normal(K);"
			     "Y[b,o] += X[b,i]*W[o,i]",
			     h, m, s, ricci_integer(n->g, i + 1));
		h = i < 2 ? ricci_relu(h) : h;
		Tensor *d = ricci_op(n->g,
				     "M, S -> K: d = log1p(exp(S[o,i]));"
				     "K[] += 0.5*(d*d + M[o,i]*M[o,i] - 1) - log(d)",
				     m, s);
		k = k ? sum(k, d) : d;
		ricci_scope_end(n->g);
	}
	return ricci_op(n->g, "Z[] = X[] + 1e-6*Y[]", ricci_cross_entropy(h, y), k);
}

/* Tran et al. 2015: windows in space and time. */
static Tensor *volume(Net *n)
{
	static const int out[] = {32, 64, 128};
	Tensor *h = numbers(n, "x", DIMS(4, 3, 8, 32, 32)), *y = integers(n, "y", 10, DIMS(4));
	for (int i = 0; i < 3; i++) {
		layer_begin(n, i);
		h = ricci_relu(conv(h, "conv", out[i], 3, 1, 1));
		h = i < 2 ? ricci_max_pool(h, &RICCI_POOL(.kernel = 2)) : h;
		ricci_scope_end(n->g);
	}
	return ricci_cross_entropy(linear(ricci_global_avg_pool(h), "head", 10), y);
}

/* Graves et al. 2006: all ways through the labels and blanks, in logarithms. */
static Tensor *ctc(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(16, 64, 64)), *y = integers(n, "y", 31, DIMS(16, 16));
	Tensor *h = linear(ricci_relu(linear(x, "full", 128)), "head", 32), *last;
	Tensor *e = ricci_op(n->g,
			     "X, L -> E: M[b,t] max= X[b,t,k]; Z[b,t] += exp(X[b,t,k]-M[b,t]);"
			     "P[t,b,k] = X[b,t,k]-M[b,t]-log(Z[b,t]);"
			     "E[t,b,s] = P[t,b,s%2 == 0 ? 31 : L[b,s/2]] where s < 33",
			     h, y);
	Tensor *step = ricci_input(n->g, "step", RICCI_F32, DIMS(16, 33));
	Tensor *a = ricci_input(n->g, "alpha", RICCI_F32, DIMS(16, 33));
	Tensor *begin = ricci_op(n->g, "A[b,s] = s == 0 ? 0.0 : -1e30 where b < 16, s < 33");
	Tensor *next =
		ricci_op(n->g,
			 "A, E, L -> N: p[b,s] = s >= 1 ? A[b,s-1] : -1e30 where s < 33;"
			 "q[b,s] = s >= 3 && s%2 == 1 && L[b,s/2] != L[b,s/2-1] ? A[b,s-2] : -1e30 "
			 "where s < 33;"
			 "m[b,s] = max(A[b,s], max(p[b,s], q[b,s]));"
			 "N[b,s] = m[b,s] + log(exp(A[b,s]-m[b,s]) + exp(p[b,s]-m[b,s])"
			 " + exp(q[b,s]-m[b,s])) + E[b,s]",
			 a, step, y);
	ricci_scan(n->g,
		   &RICCI_LOOP(.steps = 64, .nslice = 1, .slice = &(ricci_slice){step, e},
			       .ncarry = 1, .carry = &(ricci_carry){a, begin, next}),
		   &last, NULL);
	return ricci_op(n->g,
			"m[b] = max(A[b,31], A[b,32]);"
			"L[] += -(m[b] + log(exp(A[b,31]-m[b]) + exp(A[b,32]-m[b])))/16",
			last);
}

/* Kong et al. 2020: from spectra to sound, by transposed convolutions and residual blocks of dilated ones. */
static Tensor *leaky(Tensor *x)
{
	return ricci_op(ricci_graph_of(x), "Y[...] = X[...] > 0 ? X[...] : 0.1*X[...]", x);
}

static Tensor *dilated(Net *n, Tensor *x, int kernel)
{
	int64_t channels = ricci_extent(x, 1);
	for (int dilation = 1; dilation <= 5; dilation += 2) {
		char name[16];
		snprintf(name, sizeof name, "k%d.%d", kernel, dilation);
		Tensor *y = ricci_op(n->g,
				     "Y[b,k,t] += (X[b,c,t+D*r-D*(W.size(2)/2)] else 0)*W[k,c,r] "
				     "where t < X.size(2)",
				     leaky(x), ricci_integer(n->g, dilation),
				     weights(n, name, .05, DIMS(channels, channels, kernel)));
		x = sum(x, y);
	}
	return x;
}

static Tensor *vocoder(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(4, 40, 32)), *y = numbers(n, "y", DIMS(4, 1, 2048));
	Tensor *h = conv(x, "in", 128, 7, 1, 3);
	for (int i = 0; i < 2; i++) {
		layer_begin(n, i);
		h = ricci_conv_layer(leaky(h), "up",
				     &RICCI_CONV(.out = 64 >> i, .kernel = 16, .stride = 8,
						 .pad = 4, .transposed = 1));
		h = sum(dilated(n, h, 3), dilated(n, h, 7));
		ricci_scope_end(n->g);
	}
	h = ricci_tanh(conv(h, "out", 1, 7, 1, 3));
	return ricci_op(n->g, "L[] += abs(X[b,c,t]-Y[b,c,t])/8192", h, y);
}

/* Dao et al. 2019: a product of sparse matrices, each of pairs that are twice as far apart. */
static Tensor *butterfly(Net *n)
{
	Tensor *h = numbers(n, "x", DIMS(128, 1024)), *y = integers(n, "y", 10, DIMS(128));
	for (int i = 0; i < 20; i++) {
		layer_begin(n, i);
		h = ricci_op(n->g,
			     "X, W, S -> Y: Y[b,i] = W[i,0]*X[b,i] "
			     "+ W[i,1]*X[b,i/S%2 == 0 ? i+S : i-S]",
			     h, weights(n, "w", .7, DIMS(1024, 2)),
			     ricci_integer(n->g, 1 << i % 10));
		h = i % 10 == 9 ? ricci_relu(h) : h;
		ricci_scope_end(n->g);
	}
	return ricci_cross_entropy(linear(h, "head", 10), y);
}

/* Satorras et al. 2021: messages between all points, which turn with them. */
static Tensor *molecules(Net *n)
{
	Tensor *h = numbers(n, "h", DIMS(16, 32, 64)), *x = numbers(n, "x", DIMS(16, 32, 3));
	Tensor *y = numbers(n, "y", DIMS(16));
	for (int i = 0; i < 2; i++) {
		layer_begin(n, i);
		Tensor *m = ricci_op(n->g,
				     "A, B, X, U -> M: d = X[b,i,k]-X[b,j,k]; r[b,i,j] += d*d;"
				     "M[b,i,j,o] = A[b,i,o] + B[b,j,o] + r[b,i,j]*U[o]",
				     linear(h, "to", 64), project(h, "from", 64), x,
				     weights(n, "far", .1, DIMS(64)));
		m = ricci_silu(linear(ricci_silu(m), "message", 64));
		Tensor *c = project(ricci_silu(linear(m, "pull1", 64)), "pull2", 1);
		x = ricci_op(n->g,
			     "S[b,i,k] += (X[b,i,k]-X[b,j,k])*C[b,i,j,0]/31;"
			     "Y[b,i,k] = X[b,i,k] + S[b,i,k]",
			     x, c);
		Tensor *a = ricci_op(n->g, "A[b,i,o] += i != j ? M[b,i,j,o] : 0", m);
		a = ricci_concat(2, (Tensor *[]){h, a}, 2);
		h = sum(h, linear(ricci_silu(linear(a, "node1", 64)), "node2", 64));
		ricci_scope_end(n->g);
	}
	Tensor *o = linear(ricci_op(n->g, "Y[b,c] += X[b,n,c]/32", h), "head", 1);
	return ricci_op(n->g, "d = O[b,0]-Y[b]; L[] += d*d/16", o, y);
}

/* Li et al. 2021: kernels that each place makes for itself. */
static Tensor *involution(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(8, 3, 32, 32)), *y = integers(n, "y", 10, DIMS(8));
	Tensor *h = ricci_relu(conv(x, "in", 64, 3, 1, 1));
	for (int i = 0; i < 3; i++) {
		layer_begin(n, i);
		Tensor *k = conv(
			ricci_relu(norm(conv(h, "reduce", 16, 1, 1, 0), "norm", RICCI_BATCH_NORM)),
			"span", 4 * 49, 1, 1, 0);
		Tensor *z = ricci_op(
			n->g,
			"K, X -> Y: Y[b,c,p,q] += K[b,c/16*49+7*r+s,p,q]"
			"*(X[b,c,p+r-3,q+s-3] else 0) where r < 7, s < 7, c < 64, p < 32, q < 32",
			k, h);
		h = sum(h,
			conv(ricci_relu(norm(z, "norm2", RICCI_BATCH_NORM)), "mix", 64, 1, 1, 0));
		ricci_scope_end(n->g);
	}
	return ricci_cross_entropy(linear(ricci_global_avg_pool(h), "head", 10), y);
}

/* Lian et al. 2018: products of fields' embeddings, compressed. */
static Tensor *interactions(Net *n)
{
	Tensor *x = integers(n, "x", 1000, DIMS(512, 26)), *y = numbers(n, "y", DIMS(512));
	Tensor *e = ricci_op(n->g, "X, E -> Y: Y[b,f,d] = E[f,X[b,f],d]", x,
			     weights(n, "embedding", .1, DIMS(26, 1000, 16)));
	Tensor *h = e,
	       *o = linear(ricci_relu(linear(ricci_flatten(e, 1, -1), "deep", 256)), "deep2", 1);
	for (int i = 0; i < 3; i++) {
		layer_begin(n, i);
		h = ricci_op(n->g, "A, B, W -> Y: Y[b,h,d] += A[b,i,d]*B[b,j,d]*W[h,i,j]", e, h,
			     weights(n, "w", .05, DIMS(64, 26, i ? 64 : 26)));
		o = sum(o, linear(ricci_op(n->g, "P[b,h] += H[b,h,d]", h), "pool", 1));
		ricci_scope_end(n->g);
	}
	return ricci_op(
		n->g, "O, Y -> L: L[] += (max(O[b,0],0)-O[b,0]*Y[b]+log1p(exp(-abs(O[b,0]))))/512",
		o, y);
}

/* Dai et al. 2017: windows whose points move. */
static Tensor *deformable(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(4, 3, 32, 32)), *y = integers(n, "y", 10, DIMS(4));
	Tensor *h = ricci_relu(conv(x, "in", 32, 3, 1, 1));
	for (int i = 0; i < 2; i++) {
		layer_begin(n, i);
		Tensor *o = conv(h, "offset", 18, 3, 1, 1);
		h = ricci_relu(ricci_op(n->g,
					"X, O, W -> Y:"
					"u[b,r,p,q] = O[b,2*r,p,q]+p+r/3-1 where r < 9;"
					"v[b,r,p,q] = O[b,2*r+1,p,q]+q+r%3-1 where r < 9;"
					"i = floor(u[b,r,p,q]); j = floor(v[b,r,p,q]);"
					"x = max(1-abs(u[b,r,p,q]-i-s), 0);"
					"y = max(1-abs(v[b,r,p,q]-j-t), 0);"
					"S[b,c,r,p,q] += (X[b,c,i32(i)+s,i32(j)+t] else 0)*x*y "
					"where s < 2, t < 2;"
					"Y[b,k,p,q] += S[b,c,r,p,q]*W[k,c,r]",
					h, o, weights(n, "w", .05, DIMS(32, 32, 9))));
		ricci_scope_end(n->g);
	}
	return ricci_cross_entropy(linear(ricci_global_avg_pool(h), "head", 10), y);
}

/* Sun et al. 2019: relations turn entities in the complex plane. */
static Tensor *rotate(Net *n)
{
	Tensor *s = integers(n, "s", 5000, DIMS(256)), *r = integers(n, "r", 50, DIMS(256)),
	       *o = integers(n, "o", 5000, DIMS(256, 33));
	return ricci_op(n->g,
			"H, R, O, E, F, P -> L: p = P[R[b],d];"
			"c = E[H[b],d]*cos(p) - F[H[b],d]*sin(p) - E[O[b,k],d];"
			"t = E[H[b],d]*sin(p) + F[H[b],d]*cos(p) - F[O[b,k],d];"
			"n[b,k] += sqrt(c*c+t*t+1e-9); z[b,k] = k == 0 ? 6-n[b,k] : n[b,k]-6;"
			"L[] += (log1p(exp(-abs(z[b,k])))-min(z[b,k],0))/8448",
			s, r, o, weights(n, "e", .3, DIMS(5000, 64)),
			weights(n, "f", .3, DIMS(5000, 64)), weights(n, "p", 1, DIMS(50, 64)));
}

/* Tran et al. 2018: a video is convolved in space, then in time; what goes into a sum is rectified there. */
static Tensor *video(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(2, 3, 8, 32, 32)), *y = integers(n, "y", 10, DIMS(2));
	Tensor *h = ricci_op(n->g,
			     "Y[b,k,t,p,q] += (X[b,c,t,p+r-1,q+s-1] else 0)*W[k,c,r,s] "
			     "where p < 32, q < 32",
			     x, weights(n, "in", .2, DIMS(32, 3, 3, 3)));
	for (int i = 0; i < 2; i++) {
		layer_begin(n, i);
		Tensor *a = ricci_op(n->g,
				     "Y[b,k,t,p,q] += max(X[b,c,t,p+r-1,q+s-1] else 0, 0)*"
				     "W[k,c,r,s] where p < 32, q < 32",
				     h, weights(n, "space", .08, DIMS(48, 32, 3, 3)));
		a = norm(a, "norm", RICCI_BATCH_NORM);
		h = sum(h, ricci_op(n->g,
				    "Y[b,k,t,p,q] += max(X[b,c,t+r-1,p,q] else 0, 0)*W[k,c,r] "
				    "where t < 8",
				    a, weights(n, "time", .1, DIMS(32, 48, 3))));
		ricci_scope_end(n->g);
	}
	h = ricci_op(n->g, "Y[b,c] += X[b,c,t,p,q]/8192", h);
	return ricci_cross_entropy(linear(h, "head", 10), y);
}

/* Wang et al. 2019: edges between points and the nearest ones, which are given. */
static Tensor *edges(Net *n)
{
	Tensor *x = numbers(n, "x", DIMS(4, 256, 3)), *h = x;
	Tensor *k = integers(n, "k", 256, DIMS(4, 256, 16)), *y = integers(n, "y", 10, DIMS(4));
	for (int i = 0, in = 3; i < 3; i++, in = 64) {
		layer_begin(n, i);
		h = ricci_op(n->g,
			     "H, K, A, B, C -> Y: e[b,p,j,o] += H[b,p,c]*A[o,c] + "
			     "H[b,K[b,p,j],c]*B[o,c];"
			     "Y[b,p,o] max= max(e[b,p,j,o]+C[o], 0.2*(e[b,p,j,o]+C[o]))",
			     h, k, weights(n, "a", .1, DIMS(64, in)),
			     weights(n, "b", .1, DIMS(64, in)), weights(n, "c", .1, DIMS(64)));
		ricci_scope_end(n->g);
	}
	h = ricci_op(n->g, "Y[b,c] max= X[b,p,c]", h);
	return ricci_cross_entropy(linear(h, "head", 10), y);
}

static const struct {
	const char *name;
	Tensor *(*make)(Net *n);
} nets[] = {{"gat", gat},
	    {"points", points},
	    {"mamba", mamba},
	    {"hyena", hyena},
	    {"retnet", retnet},
	    {"swin", swin},
	    {"unet", unet},
	    {"wavenet", wavenet},
	    {"vqvae", vqvae},
	    {"automaton", automaton},
	    {"kan", kan},
	    {"experts", experts},
	    {"fno", fno},
	    {"transformer", transformer},
	    {"quaternion", quaternion},
	    {"pixelcnn", pixelcnn},
	    {"bayes", bayes},
	    {"volume", volume},
	    {"ctc", ctc},
	    {"vocoder", vocoder},
	    {"butterfly", butterfly},
	    {"molecules", molecules},
	    {"involution", involution},
	    {"interactions", interactions},
	    {"deformable", deformable},
	    {"rotate", rotate},
	    {"video", video},
	    {"edges", edges},
	    {"diffusion", diffusion}};

enum { NETS = sizeof nets / sizeof *nets };

/* ---- timing */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static int feed(const Net *n, ricci_session *s, int k)
{
	size_t bytes = ricci_bytes(n->input[k]), count = bytes / 4;
	float *number = malloc(bytes);
	int32_t *integer = (int32_t *)number;
	uint32_t seed = (uint32_t)k + 1;
	for (size_t i = 0; number && i < count; i++) {
		seed = seed * 1664525u + 1013904223u;
		if (n->below[k])
			integer[i] = (int32_t)((seed >> 8) % (uint32_t)n->below[k]);
		else
			number[i] = (float)(seed >> 8) / (1 << 23) - 1;
	}
	int status = number ? ricci_feed(s, n->input[k], number, bytes) : RICCI_ENOMEM;
	free(number);
	return status;
}

/* Milliseconds of a step, the median; negative: one failed. */
static double steps_time(ricci_session *s, double seconds)
{
	static double spent[STEPS];
	double begin = now();
	int n = 0;
	while (n < STEPS && (n < LEAST || now() - begin < seconds)) {
		double start = now();
		if (ricci_step(s))
			return -1;
		spent[n++] = 1e3 * (now() - start);
	}
	qsort(spent, (size_t)n, sizeof *spent, ascending);
	return spent[n / 2];
}

static int profile_print(ricci_session *s, double seconds)
{
	ricci_profile *p = NULL;
	if (!ricci_time_kernels(s, 1) && steps_time(s, seconds) >= 0)
		p = ricci_profile_new(s);
	char *text = p ? ricci_profile_text(p) : NULL;
	fputs(text ? text : "", stdout);
	ricci_free_text(text);
	ricci_profile_free(p);
	return text ? 0 : 1;
}

typedef struct Request {
	ricci_options options;
	double tune, seconds;
	int profile;
} Request;

static int net_time(int which, const Request *r)
{
	double start = now(), step = -1;
	float first = 0, last = 0;
	struct rusage usage;
	Net n = {.g = ricci_graph_new()};
	Tensor *loss = nets[which].make(&n);
	ricci_optimise(loss, ricci_learning_rate(n.g, 1e-3), &RICCI_OPTIMISER(.rule = RICCI_ADAM));
	ricci_session *s = ricci_session_new(n.g, &r->options, 1, 1, &loss);
	int status = s ? 0 : 1;
	for (int k = 0; k < n.ninput && !status; k++)
		status = feed(&n, s, k);
	if (!status && !(status = ricci_step(s)))
		status = ricci_fetch(s, loss, &first, sizeof first);
	double ready = now() - start;
	if (!status && !r->options.static_mode)
		status = ricci_settle(s);
	if (!status && r->tune > 0)
		status = ricci_tune(s, r->tune, NULL, NULL);
	if (!status && (step = steps_time(s, r->seconds)) >= 0)
		status = ricci_fetch(s, loss, &last, sizeof last);
	getrusage(RUSAGE_SELF, &usage);
	if (!status && r->profile)
		status = profile_print(s, r->seconds);
	if (status || step < 0)
		fprintf(stderr, "written: %s: %s\n", nets[which].name, ricci_error_message());
	else
		printf("{\"name\": \"%s\", \"step_ms\": %.4g, \"first_s\": %.3g, \"peak_mb\": "
		       "%.0f, "
		       "\"losses\": [%.5g, %.5g]}\n",
		       nets[which].name, step, ready, (double)usage.ru_maxrss / 1024, (double)first,
		       (double)last);
	ricci_session_free(s);
	ricci_graph_free(n.g);
	return status || step < 0;
}

static int usage(void)
{
	fputs("usage: written NET [--static] [--tune S] [--seconds S] [--threads N] [--device D] "
	      "[--tcc] [--profile]\n"
	      "       written --list\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {{"static", no_argument, NULL, 's'},
					      {"tune", required_argument, NULL, 'u'},
					      {"seconds", required_argument, NULL, 'n'},
					      {"threads", required_argument, NULL, 't'},
					      {"device", required_argument, NULL, 'd'},
					      {"tcc", no_argument, NULL, 'f'},
					      {"profile", no_argument, NULL, 'p'},
					      {"list", no_argument, NULL, 'l'},
					      {0}};
	Request r = {.options = RICCI_OPTIONS(.threads = 2), .seconds = 2};
	for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (c == 's')
			r.options.static_mode = 1;
		else if (c == 'u')
			r.tune = atof(optarg);
		else if (c == 'n')
			r.seconds = atof(optarg);
		else if (c == 't')
			r.options.threads = atoi(optarg);
		else if (c == 'd')
			r.options.device = optarg;
		else if (c == 'f')
			r.options.backend = RICCI_BACKEND_TCC;
		else if (c == 'p')
			r.profile = 1;
		else if (c != 'l')
			return usage();
		for (int k = 0; c == 'l' && k < NETS; k++)
			puts(nets[k].name);
		if (c == 'l')
			return 0;
	}
	for (int k = 0; k < NETS && optind == argc - 1; k++)
		if (!strcmp(argv[optind], nets[k].name))
			return net_time(k, &r);
	return usage();
}

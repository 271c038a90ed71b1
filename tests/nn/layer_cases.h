/* layer_cases.h - the layers of vectors.py's cases, and those cases as they are in vectors.txt. */
#ifndef LAYER_CASES_H
#define LAYER_CASES_H

#include "tests/nn/vectors.h"

enum { ROOM = 8, VALUES = 1024 };

typedef struct Case {
	const char *name;
	int train, n, nfloat, ngrad, nafter;
	const Vector *in[ROOM], *value, *seed, *grad[ROOM], *after[ROOM];
} Case;

/* ---- the layers of the cases */

#define LAYER(id, expression)                                                                      \
	static ricci_tensor *id(ricci_tensor **x)                                                  \
	{                                                                                          \
		return expression;                                                                 \
	}
#define I64(...)  ((int64_t[]){__VA_ARGS__})
#define EACH(...) ((int[]){__VA_ARGS__})
#define CONV(...) &RICCI_CONV(__VA_ARGS__)
#define POOL(...) &RICCI_POOL(__VA_ARGS__)

#define COLUMNS                                                                                    \
	CONV(.kernels = EACH(3, 2), .dilations = EACH(1, 2), .pads = EACH(1, 0),                   \
	     .strides = EACH(2, 1))

/* Maxima, put back where they were. */
static ricci_tensor *unpooled(ricci_tensor *x, ricci_pool_options o, const int64_t *shape)
{
	ricci_tensor *indices;
	o.indices = &indices;
	ricci_tensor *y = ricci_max_pool(x, &o);
	return ricci_max_unpool(y, indices, shape);
}

#define LAYERS(F)                                                                                  \
	F("linear", linear, ricci_linear(x[0], x[1], x[2]))                                        \
	F("linear without bias, rank 1", linear1, ricci_linear(x[0], x[1], NULL))                  \
	F("linear rank 4", linear4, ricci_linear(x[0], x[1], x[2]))                                \
	F("embedding", embedding, ricci_embedding(x[0], x[1]))                                     \
	F("conv 1-d", conv1, ricci_conv(x[0], x[1], x[2], NULL))                                   \
	F("conv 2-d stride, pad and dilation a dimension", conv2,                                  \
	  ricci_conv(x[0], x[1], x[2],                                                             \
		     CONV(.strides = EACH(2, 1), .pads = EACH(1, 2), .dilations = EACH(1, 2))))    \
	F("conv 3-d", conv3, ricci_conv(x[0], x[1], NULL, CONV(.stride = 2, .pad = 1)))            \
	F("conv groups", groups, ricci_conv(x[0], x[1], x[2], CONV(.pad = 1, .groups = 2)))        \
	F("conv groups without bias, 1-d", groups1,                                                \
	  ricci_conv(x[0], x[1], NULL, CONV(.stride = 3, .groups = 3)))                            \
	F("conv depthwise", depthwise,                                                             \
	  ricci_conv(x[0], x[1], x[2], CONV(.stride = 2, .pad = 1, .groups = 3)))                  \
	F("conv depthwise, two a channel", depthwise2,                                             \
	  ricci_conv(x[0], x[1], NULL, CONV(.groups = 3)))                                         \
	F("transposed 1-d", back1, ricci_conv(x[0], x[1], x[2], CONV(.transposed = 1)))            \
	F("transposed stride and pad", back2,                                                      \
	  ricci_conv(x[0], x[1], x[2],                                                             \
		     CONV(.transposed = 1, .strides = EACH(2, 3), .pads = EACH(1, 0),              \
			  .output_pads = EACH(1, 2))))                                             \
	F("transposed groups and dilation", backg,                                                 \
	  ricci_conv(x[0], x[1], NULL,                                                             \
		     CONV(.transposed = 1, .stride = 2, .pad = 1, .groups = 2,                     \
			  .dilations = EACH(1, 2))))                                               \
	F("transposed 3-d", back3,                                                                 \
	  ricci_conv(x[0], x[1], NULL,                                                             \
		     CONV(.transposed = 1, .strides = EACH(1, 2, 1), .dilations = EACH(2, 3, 1)))) \
	F("max pool", max2, ricci_max_pool(x[0], POOL(.kernel = 3, .stride = 2, .pad = 1)))        \
	F("max pool 1-d dilation", max1,                                                           \
	  ricci_max_pool(x[0], POOL(.kernel = 2, .stride = 3, .pad = 1, .dilation = 2)))           \
	F("max pool 3-d", max3, ricci_max_pool(x[0], POOL(.kernels = EACH(1, 2, 2))))              \
	F("avg pool", avg2, ricci_avg_pool(x[0], POOL(.kernel = 3, .stride = 2, .pad = 1)))        \
	F("avg pool without pad", avg2x,                                                           \
	  ricci_avg_pool(x[0],                                                                     \
			 POOL(.kernels = EACH(3, 2), .stride = 2, .pad = 1, .exclude_pad = 1)))    \
	F("avg pool 1-d", avg1,                                                                    \
	  ricci_avg_pool(x[0], POOL(.kernel = 4, .stride = 2, .pad = 2, .exclude_pad = 1)))        \
	F("adaptive avg", aavg2, ricci_adaptive_avg_pool(x[0], I64(3, 2)))                         \
	F("adaptive avg 1-d", aavg1, ricci_adaptive_avg_pool(x[0], I64(4)))                        \
	F("adaptive max", amax2, ricci_adaptive_max_pool(x[0], I64(3, 4)))                         \
	F("adaptive max 3-d", amax3, ricci_adaptive_max_pool(x[0], I64(2, 1, 3)))                  \
	F("global avg", gavg, ricci_global_avg_pool(x[0]))                                         \
	F("global max", gmax, ricci_global_max_pool(x[0]))                                         \
	F("batch norm 0", bn0, ricci_batch_norm(x[0], x[3], x[4], x[1], x[2], .2, 1e-3))           \
	F("batch norm 1", bn1, ricci_batch_norm(x[0], x[3], x[4], x[1], x[2], .2, 1e-3))           \
	F("batch norm plain 0", bnp0, ricci_batch_norm(x[0], NULL, NULL, x[1], x[2], .1, 1e-5))    \
	F("batch norm plain 1", bnp1, ricci_batch_norm(x[0], NULL, NULL, x[1], x[2], .1, 1e-5))    \
	F("batch norm without statistics", bns,                                                    \
	  ricci_batch_norm(x[0], x[1], NULL, NULL, NULL, .1, 1e-5))                                \
	F("layer norm", ln, ricci_layer_norm(x[0], x[1], x[2], 1, 1e-3))                           \
	F("layer norm of two", ln2, ricci_layer_norm(x[0], x[1], NULL, 2, 1e-5))                   \
	F("layer norm of all", ln0, ricci_layer_norm(x[0], NULL, NULL, 2, 1e-5))                   \
	F("group norm", gn, ricci_group_norm(x[0], x[1], x[2], 2, 1e-3))                           \
	F("group norm plain", gnp, ricci_group_norm(x[0], NULL, NULL, 3, 1e-5))                    \
	F("instance norm", in, ricci_instance_norm(x[0], x[1], NULL, 1e-5))                        \
	F("rms norm", rms, ricci_rms_norm(x[0], x[1], 1, 1e-3))                                    \
	F("dropout 0", drop, ricci_dropout(x[0], .5))                                              \
	F("relu", relu, ricci_relu(x[0]))                                                          \
	F("relu of a scalar", relu0, ricci_relu(x[0]))                                             \
	F("relu6", relu6, ricci_relu6(x[0]))                                                       \
	F("sigmoid", sigmoid, ricci_sigmoid(x[0]))                                                 \
	F("tanh", tanhyp, ricci_tanh(x[0]))                                                        \
	F("gelu", gelu, ricci_gelu(x[0]))                                                          \
	F("gelu tanh", gelut, ricci_gelu_tanh(x[0]))                                               \
	F("silu", silu, ricci_silu(x[0]))                                                          \
	F("selu", selu, ricci_selu(x[0]))                                                          \
	F("softplus", softplus, ricci_softplus(x[0]))                                              \
	F("mish", mish, ricci_mish(x[0]))                                                          \
	F("hardsigmoid", hardsigmoid, ricci_hard_sigmoid(x[0]))                                    \
	F("hardswish", hardswish, ricci_hard_swish(x[0]))                                          \
	F("elu", elu, ricci_elu(x[0], .7))                                                         \
	F("leaky relu", leaky, ricci_leaky_relu(x[0], .2))                                         \
	F("softmax", softmax, ricci_softmax(x[0]))                                                 \
	F("log softmax", logsoftmax, ricci_log_softmax(x[0]))                                      \
	F("log softmax, rank 1", logsoftmax1, ricci_log_softmax(x[0]))                             \
	F("concat", concat, ricci_concat(3, x, 1))                                                 \
	F("concat last", concat1, ricci_concat(2, x, -1))                                          \
	F("slice", slice, ricci_slice_axis(x[0], 1, 1, 3, 2))                                      \
	F("pad", pad, ricci_pad(x[0], I64(0, 0, 1), I64(0, 2, 0), .5))                             \
	F("reshape", reshape, ricci_reshape(x[0], 3, I64(4, -1, 6)))                               \
	F("reshape merge and split", reshape2, ricci_reshape(x[0], 3, I64(3, 2, 10)))              \
	F("reshape across", reshape3, ricci_reshape(x[0], 2, I64(9, 4)))                           \
	F("reshape to ones", reshape4, ricci_reshape(x[0], 5, I64(1, 2, 1, -1, 1)))                \
	F("reshape to a scalar", reshape5, ricci_reshape(x[0], 0, NULL))                           \
	F("flatten", flatten, ricci_flatten(x[0], 1, -1))                                          \
	F("flatten inside", flatten2, ricci_flatten(x[0], 1, 2))                                   \
	F("transpose", transpose, ricci_transpose(x[0], EACH(2, 0, 3, 1)))                         \
	F("depth to space", dts, ricci_depth_to_space(x[0], 2))                                    \
	F("space to depth", std, ricci_space_to_depth(x[0], 3))                                    \
	F("channel shuffle", shuffle, ricci_channel_shuffle(x[0], 3))                              \
	F("embedding, padded", padded, ricci_embedding_padded(x[0], x[1], 1))                      \
	F("embedding, padded from the end", padded2, ricci_embedding_padded(x[0], x[1], -2))       \
	F("max pool, rounded up", maxc,                                                            \
	  ricci_max_pool(x[0], POOL(.kernel = 3, .stride = 2, .ceil_mode = 1)))                    \
	F("max pool, rounded up, pad and dilation", maxc2,                                         \
	  ricci_max_pool(x[0], POOL(.kernels = EACH(2, 3), .strides = EACH(3, 2), .pad = 1,        \
				    .dilations = EACH(2, 1), .ceil_mode = 1)))                     \
	F("max pool, stride beyond the window", maxc1,                                             \
	  ricci_max_pool(x[0], POOL(.kernel = 2, .stride = 4, .ceil_mode = 1)))                    \
	F("avg pool, rounded up", avgc,                                                            \
	  ricci_avg_pool(x[0], POOL(.kernel = 3, .stride = 2, .pad = 1, .ceil_mode = 1)))          \
	F("avg pool, rounded up, without pad", avgcx,                                              \
	  ricci_avg_pool(x[0], POOL(.kernels = EACH(3, 2), .strides = EACH(3, 2), .pad = 1,        \
				    .exclude_pad = 1, .ceil_mode = 1)))                            \
	F("lp pool", lp2, ricci_lp_pool(x[0], 2, POOL(.kernel = 3, .stride = 2)))                  \
	F("lp pool of 3, 1-d", lp1, ricci_lp_pool(x[0], 3, POOL(.kernel = 2)))                     \
	F("max unpool", unpool2, unpooled(x[0], RICCI_POOL(.kernel = 2), I64(4, 6)))               \
	F("max unpool, pad and dilation, 1-d", unpool1,                                            \
	  unpooled(x[0], RICCI_POOL(.kernel = 2, .stride = 3, .pad = 1, .dilation = 2), I64(9)))   \
	F("max unpool, 3-d", unpool3,                                                              \
	  unpooled(x[0], RICCI_POOL(.kernels = EACH(1, 2, 2), .ceil_mode = 1), I64(2, 3, 5)))      \
	F("softsign", softsign, ricci_softsign(x[0]))                                              \
	F("logsigmoid", logsigmoid, ricci_log_sigmoid(x[0]))                                       \
	F("tanhshrink", tanhshrink, ricci_tanh_shrink(x[0]))                                       \
	F("celu", celu, ricci_celu(x[0], .7))                                                      \
	F("softshrink", softshrink, ricci_soft_shrink(x[0], .5))                                   \
	F("hardshrink", hardshrink, ricci_hard_shrink(x[0], .5))                                   \
	F("hardtanh", hardtanh, ricci_clip(x[0], -.5, .25))                                        \
	F("clamp from below", clamp, ricci_clip(x[0], .25, INFINITY))                              \
	F("prelu", prelu, ricci_prelu(x[0], x[1]))                                                 \
	F("prelu of one", prelu1, ricci_prelu(x[0], x[1]))                                         \
	F("glu", glu, ricci_glu(x[0], 1))                                                          \
	F("glu of the last", glu1, ricci_glu(x[0], -1))                                            \
	F("upsample nearest", nearest, ricci_upsample_nearest(x[0], I64(7, 3)))                    \
	F("upsample linear", up1, ricci_upsample_linear(x[0], I64(7), 0))                          \
	F("upsample bilinear", up2, ricci_upsample_linear(x[0], I64(3, 8), 0))                     \
	F("upsample bilinear, corners", up2c, ricci_upsample_linear(x[0], I64(7, 1), 1))           \
	F("upsample trilinear", up3, ricci_upsample_linear(x[0], I64(4, 3, 5), 0))                 \
	F("unfold", unfold, ricci_unfold(x[0], COLUMNS))                                           \
	F("fold", fold, ricci_fold(x[0], 2, I64(5, 4), COLUMNS))                                   \
	F("fold without overlap", fold2,                                                           \
	  ricci_fold(x[0], 2, I64(4, 6), CONV(.kernel = 2, .stride = 2)))                          \
	F("pad reflect", reflect,                                                                  \
	  ricci_pad_copied(x[0], I64(0, 0, 0, 2), I64(0, 0, 3, 1), RICCI_REFLECT))                 \
	F("pad replicate", replicate,                                                              \
	  ricci_pad_copied(x[0], I64(0, 0, 1, 2), I64(0, 0, 0, 4), RICCI_REPLICATE))               \
	F("pad circular", circular,                                                                \
	  ricci_pad_copied(x[0], I64(0, 0, 0, 2), I64(0, 0, 1, 3), RICCI_CIRCULAR))                \
	F("local response norm", lrn, ricci_local_response_norm(x[0], 3, .5, .75, 2))              \
	F("local response norm of four", lrn4, ricci_local_response_norm(x[0], 4, .3, .75, 1))     \
	F("bilinear", bilinear, ricci_bilinear(x[0], x[1], x[2], x[3]))                            \
	F("bilinear without bias", bilinear1, ricci_bilinear(x[0], x[1], x[2], NULL))              \
	F("cosine similarity", cosine, ricci_cosine_similarity(x[0], x[1], 1e-8))                  \
	F("cosine similarity of small ones", cosine2, ricci_cosine_similarity(x[0], x[1], .75))    \
	F("pairwise distance", distance, ricci_pairwise_distance(x[0], x[1], 2, 1e-6))             \
	F("pairwise distance, cubes", distance3, ricci_pairwise_distance(x[0], x[1], 3, 0))        \
	F("triplet", triplet, ricci_triplet_loss(x[0], x[1], x[2], .5))                            \
	F("cosine embedding", cosinel, ricci_cosine_embedding_loss(x[1], x[2], x[0], .25))         \
	F("ranking", ranking, ricci_ranking_loss(x[0], x[1], x[2], .25))                           \
	F("nll", nll, ricci_nll_loss(x[1], x[0]))                                                  \
	F("poisson nll", poisson, ricci_poisson_nll_loss(x[0], x[1]))                              \
	F("gaussian nll", gaussian, ricci_gaussian_nll_loss(x[0], x[1], x[2]))

#define DEFINE(name, id, expression) LAYER(id##_layer, expression)
LAYERS(DEFINE)
#define ROW(name, id, expression) {name, id##_layer},
static const struct {
	const char *name;
	ricci_tensor *(*make)(ricci_tensor **x);
} layers[] = {LAYERS(ROW)};
enum { NLAYER = sizeof layers / sizeof *layers };

/* ---- reading */

static void case_read(const char *name, Case *c)
{
	char path[96];
	int n;
	snprintf(path, sizeof path, "layers/%s", name);
	const Vector *v = vectors_of(path, &n);
	*c = (Case){.name = name};
	for (int k = 0; k < n; k++, v++) {
		CHECK(v->size <= VALUES);
		c->nfloat += !strcmp(v->array, "in");
		if (!strcmp(v->array, "train"))
			c->train = (int)v->value[0];
		else if (!strcmp(v->array, "value"))
			c->value = v;
		else if (!strcmp(v->array, "seed"))
			c->seed = v;
		else if (!strcmp(v->array, "grad"))
			c->grad[c->ngrad++] = v;
		else if (!strcmp(v->array, "after"))
			c->after[c->nafter++] = v;
		else
			c->in[c->n++] = v;
	}
	CHECK_INT(c->ngrad, c->nfloat);
}

/* An operand of the case as an input or a state; integers stay what they are. */
static ricci_tensor *operand(ricci_graph *g, const Vector *r, int k, ricci_type type)
{
	char name[16];
	snprintf(name, sizeof name, "x%d", k);
	if (!strcmp(r->array, "state"))
		return ricci_state(g, name, type, r->rank, r->shape, ricci_constant(0));
	return ricci_input(g, name, strcmp(r->array, "i64") ? type : RICCI_I64, r->rank, r->shape);
}

#endif

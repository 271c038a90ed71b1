/* layers.h - layers, with and without parameters, and initial values. <ricci_nn.h> includes it. */
#ifndef RICCI_LAYERS_H
#define RICCI_LAYERS_H

#include <ricci.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layers (nn/layers/)
 * Each is a few equations added to the graph of its first operand, so gradients, fusion and kernels
 * come from those alone; ricci_show prints them. The operands of a layer have one type: f32, f64,
 * or bf16 or f16, whose sums are f32 and whose tensors are rounded (tests/nn/test_layers_narrow.c:
 * to within eight roundings of the largest element). Labels and indices are I32 or I64. They return
 * one tensor of that graph, or the inert tensor after an error (kept by the graph, like
 * ricci_op's); NULL only when the first operand is NULL. Same rule on threads as the graph. "[...]"
 * are any dimensions, also none; weights and biases have PyTorch's layouts. Where a layer differs
 * in training, `training` of the notation decides, so one graph serves both. */

/* x [...,k], w [n,k], bias [n] or NULL -> [...,n]: x w' + bias. */
RICCI_API ricci_tensor *ricci_linear(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias);
/* x [...,k], z [...,m], w [n,k,m], bias [n] or NULL -> [...,n]: x w[n] z' + bias[n]. */
RICCI_API ricci_tensor *ricci_bilinear(ricci_tensor *x, ricci_tensor *z, ricci_tensor *w,
				       ricci_tensor *bias);
/* indices [...] of integers in 0..n-1, w [n,k] -> [...,k]: row t of w for each t. */
RICCI_API ricci_tensor *ricci_embedding(ricci_tensor *indices, ricci_tensor *w);
/* The same; row `padding`, from the end where it is negative, has no gradient from here, so that it
 * stays as it is but for weight decay (PyTorch's padding_idx). */
RICCI_API ricci_tensor *ricci_embedding_padded(ricci_tensor *indices, ricci_tensor *w,
					       int64_t padding);

/* A number for all dimensions of the image, or an array of one for each in its place. */
typedef struct {
	size_t size;  /* by RICCI_CONV */
	int stride;   /* 0: 1 */
	int pad;      /* zeros on either side */
	int dilation; /* 0: 1 */
	int groups; /* of channels, each with its own weights; 0: 1. As many as channels: depthwise */
	int transposed; /* 1: the gradient of the convolution by x, "deconvolution" */
	int output_pad; /* transposed: extra elements at the end, less than the stride */
	const int *strides, *pads, *dilations, *output_pads;
	int out, kernel;	/* ricci_conv_layer: channels, and size of the windows */
	const int *kernels;	/* the same, an array */
	int no_bias;		/* ricci_conv_layer */
	const ricci_init *init; /* ricci_conv_layer: of the weights; NULL: as PyTorch */
} ricci_conv_options;
#define RICCI_CONV(...) ((ricci_conv_options){.size = sizeof(ricci_conv_options), __VA_ARGS__})
/* x [b,c,h..], w [k,c/groups,r..], bias [k] or NULL -> [b,k,p..], as many dimensions of images as x
 * has behind the second, p = (h + 2 pad - dilation (r - 1) - 1) / stride + 1. Transposed: w
 * [c,k/groups,r..], p = (h - 1) stride - 2 pad + dilation (r - 1) + output_pad + 1. options may be
 * NULL. E.g. ricci_conv(x, w, NULL, &RICCI_CONV(.stride = 2, .pads = (int[]){1, 0})) */
RICCI_API ricci_tensor *ricci_conv(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias,
				   const ricci_conv_options *options);
/* ricci_conv for x [b,c,h,w]. */
RICCI_API ricci_tensor *ricci_conv2d(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias,
				     int stride, int pad);

typedef struct {
	size_t size;	 /* by RICCI_POOL */
	int kernel;	 /* the size of the windows */
	int stride;	 /* 0: the kernel's */
	int pad;	 /* on either side, at most half of the kernel */
	int dilation;	 /* 0: 1. Not of ricci_avg_pool */
	int exclude_pad; /* 1: means are over elements of the image only; 0: padding counts as zeros */
	const int *kernels, *strides, *pads, *dilations;
	/* 1: p is rounded up, so that a last window may reach beyond the padding; it must begin in
	 * the image or in the padding before it. What lies beyond counts nowhere. */
	int ceil_mode;
	/* ricci_max_pool: room for a tensor I64 [b,c,p..], or NULL: where in the image, counted in
	 * C order, the maximum is; the first of equal ones. Without a maximum (NaN), the elements
	 * of the image. */
	ricci_tensor **indices;
} ricci_pool_options;
#define RICCI_POOL(...) ((ricci_pool_options){.size = sizeof(ricci_pool_options), __VA_ARGS__})
/* x [b,c,h..] -> [b,c,p..], p as of a convolution. The gradient of a maximum is shared equally among
 * ties (PyTorch gives it to the first). */
RICCI_API ricci_tensor *ricci_max_pool(ricci_tensor *x, const ricci_pool_options *options);
RICCI_API ricci_tensor *ricci_avg_pool(ricci_tensor *x, const ricci_pool_options *options);
/* (sum of |x|^power)^(1/power) over a window, power >= 1; zeros around the image (PyTorch's LPPool,
 * which takes x^power; there the last window of ceil_mode is scaled up). Its gradient is 0 where
 * all of a window is. */
RICCI_API ricci_tensor *ricci_lp_pool(ricci_tensor *x, double power,
				      const ricci_pool_options *options);
/* The inverse of max pooling: x and indices [b,c,p..] -> [b,c,shape..], x[..] at its index (Zeiler
 * & Fergus 2014, section 2.1), 0 elsewhere. What has one index is added up; an index outside of the
 * image counts as its first or last element. `shape` has one number for each dimension of the
 * image. */
RICCI_API ricci_tensor *ricci_max_unpool(ricci_tensor *x, ricci_tensor *indices,
					 const int64_t *shape);
/* x [b,c,h..] -> [b,c,out..], out[d] <= h: window p is from floor(p h / out) to before
 * ceil((p + 1) h / out). `out` has one number for each dimension of the image. */
RICCI_API ricci_tensor *ricci_adaptive_max_pool(ricci_tensor *x, const int64_t *out);
RICCI_API ricci_tensor *ricci_adaptive_avg_pool(ricci_tensor *x, const int64_t *out);
/* [b,c,h..] -> [b,c]. */
RICCI_API ricci_tensor *ricci_global_max_pool(ricci_tensor *x);
RICCI_API ricci_tensor *ricci_global_avg_pool(ricci_tensor *x);
/* x [b,c,h,w] -> [b,c,p,q], windows of size x size inside the image. */
RICCI_API ricci_tensor *ricci_max_pool2d(ricci_tensor *x, int size, int stride);
/* [b,c,h,w] -> [b,c]: the mean over the positions. */
RICCI_API ricci_tensor *ricci_global_avg_pool2d(ricci_tensor *x);

/* Normalisation: (x - mean) / sqrt(variance + epsilon) * w + bias; w and bias may be NULL. The
 * variance is the mean of squares of x - mean. */
/* x [b,c,...], the rest [c]. Mean and variance of a channel: of the batch in training, `mean` and
 * `variance`, which are states, otherwise. A training step moves these by `momentum` (usually .1)
 * towards the batch's, its variance with n - 1 in place of n. Both NULL: of the batch always. Called
 * once for each pair of states (Ioffe & Szegedy 2015, algorithms 1 and 2). */
RICCI_API ricci_tensor *ricci_batch_norm(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias,
					 ricci_tensor *mean, ricci_tensor *variance,
					 double momentum, double epsilon);
/* Over the last `dims` dimensions, whose shape w and bias have (Ba, Kiros, Hinton 2016). */
RICCI_API ricci_tensor *ricci_layer_norm(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias,
					 int dims, double epsilon);
/* x [b,c,...], w and bias [c]: over groups of channels (Wu & He 2018); each channel by itself
 * (Ulyanov et al. 2016). */
RICCI_API ricci_tensor *ricci_group_norm(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias,
					 int groups, double epsilon);
RICCI_API ricci_tensor *ricci_instance_norm(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias,
					    double epsilon);
/* x / sqrt(mean of x^2 + epsilon) * w over the last `dims` dimensions (Zhang & Sennrich 2019). */
RICCI_API ricci_tensor *ricci_rms_norm(ricci_tensor *x, ricci_tensor *w, int dims, double epsilon);
/* x [b,c,...] / (k + alpha times the mean of x^2 over `size` channels around c, zeros beyond the
 * ends)^beta (Krizhevsky, Sutskever, Hinton 2012, section 3.3, with alpha / size, as PyTorch). */
RICCI_API ricci_tensor *ricci_local_response_norm(ricci_tensor *x, int size, double alpha,
						  double beta, double k);
/* In training 0 with probability p, 0 <= p < 1, else x / (1 - p); otherwise x (Srivastava et al.
 * 2014). Each call draws numbers of its own. */
RICCI_API ricci_tensor *ricci_dropout(ricci_tensor *x, double p);

/* Of each element, x of any shape. */
RICCI_API ricci_tensor *ricci_relu(ricci_tensor *x);
RICCI_API ricci_tensor *ricci_relu6(ricci_tensor *x);
RICCI_API ricci_tensor *ricci_leaky_relu(ricci_tensor *x, double slope); /* usually .01 */
RICCI_API ricci_tensor *ricci_elu(ricci_tensor *x, double alpha);	 /* usually 1 */
RICCI_API ricci_tensor *ricci_selu(ricci_tensor *x);
RICCI_API ricci_tensor *ricci_gelu(ricci_tensor *x);	  /* x P(X <= x), by erf */
RICCI_API ricci_tensor *ricci_gelu_tanh(ricci_tensor *x); /* its approximation by tanh */
RICCI_API ricci_tensor *ricci_silu(ricci_tensor *x);	  /* x sigmoid(x) */
RICCI_API ricci_tensor *ricci_mish(ricci_tensor *x);	  /* x tanh(softplus(x)) */
RICCI_API ricci_tensor *ricci_softplus(ricci_tensor *x);  /* log(1 + exp(x)) */
RICCI_API ricci_tensor *ricci_sigmoid(ricci_tensor *x);
RICCI_API ricci_tensor *ricci_hard_sigmoid(ricci_tensor *x); /* x / 6 + 1/2, clipped to 0..1 */
RICCI_API ricci_tensor *ricci_hard_swish(ricci_tensor *x);   /* x hard_sigmoid(x) */
RICCI_API ricci_tensor *ricci_tanh(ricci_tensor *x);
RICCI_API ricci_tensor *ricci_softsign(ricci_tensor *x);	   /* x / (1 + |x|) */
RICCI_API ricci_tensor *ricci_log_sigmoid(ricci_tensor *x);	   /* -log(1 + exp(-x)) */
RICCI_API ricci_tensor *ricci_tanh_shrink(ricci_tensor *x);	   /* x - tanh(x) */
RICCI_API ricci_tensor *ricci_celu(ricci_tensor *x, double alpha); /* x or alpha expm1(x/alpha) */
RICCI_API ricci_tensor *ricci_soft_shrink(ricci_tensor *x,
					  double bound); /* x nearer to 0 by bound */
RICCI_API ricci_tensor *ricci_hard_shrink(ricci_tensor *x, double bound); /* 0 in -bound..bound */
/* x within low..high (PyTorch's hardtanh), either of which may be infinite; no gradient outside. */
RICCI_API ricci_tensor *ricci_clip(ricci_tensor *x, double low, double high);
/* x where it is positive, else w x; w [1], or [c] of x [b,c,...]. PyTorch's starts from 0.25. */
RICCI_API ricci_tensor *ricci_prelu(ricci_tensor *x, ricci_tensor *w);
/* Of the halves a and b of x along an axis: a sigmoid(b). */
RICCI_API ricci_tensor *ricci_glu(ricci_tensor *x, int axis);
/* Over the last dimension. */
RICCI_API ricci_tensor *ricci_softmax(ricci_tensor *x);
RICCI_API ricci_tensor *ricci_log_softmax(ricci_tensor *x);

/* Changes of shape: the same elements at other positions; any type. An axis counts from 0, or from the end: -1. */
/* n tensors of one shape but for dimension `axis`, one after the other along it. */
RICCI_API ricci_tensor *ricci_concat(int n, ricci_tensor *const *x, int axis);
/* Elements start, start + step, .. along an axis, `count` of them. */
RICCI_API ricci_tensor *ricci_slice_axis(ricci_tensor *x, int axis, int64_t start, int64_t count,
					 int64_t step);
/* So many elements of `value` before and behind each dimension; NULL: none. */
RICCI_API ricci_tensor *ricci_pad(ricci_tensor *x, const int64_t *before, const int64_t *after,
				  double value);
typedef enum {
	RICCI_REFLECT,	 /* those beyond an end are the ones before it, which isn't repeated */
	RICCI_REPLICATE, /* they are the last one */
	RICCI_CIRCULAR	 /* they are those at the other end */
} ricci_padding;
/* Copies of x's own elements: at most its extent, of RICCI_REFLECT one less. */
RICCI_API ricci_tensor *ricci_pad_copied(ricci_tensor *x, const int64_t *before,
					 const int64_t *after, ricci_padding kind);
/* The elements in C order in another shape; one extent may be -1: what is left. */
RICCI_API ricci_tensor *ricci_reshape(ricci_tensor *x, int rank, const int64_t *shape);
/* Dimensions first to last become one. */
RICCI_API ricci_tensor *ricci_flatten(ricci_tensor *x, int first, int last);
/* Dimension d of the result is order[d] of x. */
RICCI_API ricci_tensor *ricci_transpose(ricci_tensor *x, const int *order);
/* [b,c,h..] -> [b,c/block^d,h block..], for d dimensions of images: PyTorch's pixel_shuffle (Shi et
 * al. 2016); and back. */
RICCI_API ricci_tensor *ricci_depth_to_space(ricci_tensor *x, int block);
RICCI_API ricci_tensor *ricci_space_to_depth(ricci_tensor *x, int block);
/* [b,c,...]: channel i of group g becomes channel i*groups + g (Zhang et al. 2018, ShuffleNet). */
RICCI_API ricci_tensor *ricci_channel_shuffle(ricci_tensor *x, int groups);

/* x [b,c,h..] -> [b,c,out..]; `out` has one number for each dimension of the image. Element i is
 * that at floor(i h / out), as PyTorch's "nearest", whose quotient is rounded to f32. */
RICCI_API ricci_tensor *ricci_upsample_nearest(ricci_tensor *x, const int64_t *out);
/* Linear interpolation along each dimension (PyTorch's linear, bilinear, trilinear) at (i + 1/2)
 * h/out - 1/2, the ends repeated; align_corners: at i (h-1)/(out-1). */
RICCI_API ricci_tensor *ricci_upsample_linear(ricci_tensor *x, const int64_t *out,
					      int align_corners);
/* Windows as columns: x [b,c,h..] -> [b, c times the window's elements, windows], both in C order.
 * Of options count kernel, stride, pad and dilation. */
RICCI_API ricci_tensor *ricci_unfold(ricci_tensor *x, const ricci_conv_options *options);
/* The sum of columns where windows overlap: such a tensor -> [b,c,shape..], an image of `dims`
 * dimensions. */
RICCI_API ricci_tensor *ricci_fold(ricci_tensor *x, int dims, const int64_t *shape,
				   const ricci_conv_options *options);

/* ---- layers with parameters (nn/layers/layer.c, parameter.c)
 * They make "<name>.weight", "<name>.bias" in the open scope, of x's type, with the names, layouts
 * and initial values of PyTorch's modules, and call the layer above; so do ricci_multihead_attention
 * and ricci_recurrent below. name "": "weight", "bias". To share parameters, give them to a layer
 * above once more, ricci_param_find(g, "fc.weight"), or call those two again with .share = 1. To
 * freeze one, give it a group of the optimiser that does not train, or read it through
 * ricci_stop_gradient. */
typedef struct {
	size_t size; /* by RICCI_LINEAR */
	int64_t out;
	int no_bias;
	const ricci_init *init; /* of the weights; NULL: ricci_uniform_fan_in, as PyTorch */
} ricci_linear_options;
#define RICCI_LINEAR(...)                                                                          \
	((ricci_linear_options){.size = sizeof(ricci_linear_options), __VA_ARGS__})
/* x [...,k] -> [...,out]. E.g. ricci_linear_layer(x, "fc", &RICCI_LINEAR(.out = 10)) */
RICCI_API ricci_tensor *ricci_linear_layer(ricci_tensor *x, const char *name,
					   const ricci_linear_options *options);
typedef struct {
	size_t size;		/* by RICCI_EMBEDDING */
	int64_t count, out;	/* rows of the weights, and their length */
	ricci_type type;	/* of the weights; 0: F32 */
	const ricci_init *init; /* NULL: ricci_normal(1) */
	const int64_t *padding; /* as of ricci_embedding_padded; this row starts at 0. NULL: none */
} ricci_embedding_options;
#define RICCI_EMBEDDING(...)                                                                       \
	((ricci_embedding_options){.size = sizeof(ricci_embedding_options), __VA_ARGS__})
/* indices [...] -> [...,out]. */
RICCI_API ricci_tensor *ricci_embedding_layer(ricci_tensor *indices, const char *name,
					      const ricci_embedding_options *options);
/* x [b,c,h..] -> [b,out,p..], with windows of `kernel`. E.g.
 *	ricci_conv_layer(x, "conv1", &RICCI_CONV(.out = 64, .kernel = 3, .stride = 2, .pad = 1)) */
RICCI_API ricci_tensor *ricci_conv_layer(ricci_tensor *x, const char *name,
					 const ricci_conv_options *options);
typedef enum {
	RICCI_BATCH_NORM, /* with states "running_mean", "running_var" */
	RICCI_LAYER_NORM,
	RICCI_GROUP_NORM,
	RICCI_INSTANCE_NORM,
	RICCI_RMS_NORM /* no bias */
} ricci_norm_kind;
typedef struct {
	size_t size; /* by RICCI_NORM */
	ricci_norm_kind kind;
	int groups;	 /* of RICCI_GROUP_NORM */
	int dims;	 /* of layer and RMS norm; 0: 1 */
	double momentum; /* of RICCI_BATCH_NORM; 0: .1 */
	double epsilon;	 /* 0: 1e-5; RMS: the type's machine epsilon */
	int plain;	 /* 1: neither weight nor bias */
	int no_bias;
	const ricci_init *init; /* of the weight; NULL: 1 */
} ricci_norm_options;
#define RICCI_NORM(...) ((ricci_norm_options){.size = sizeof(ricci_norm_options), __VA_ARGS__})
/* Of x's shape. */
RICCI_API ricci_tensor *ricci_norm_layer(ricci_tensor *x, const char *name,
					 const ricci_norm_options *options);

/* The elements of all parameters of a graph; states don't count. */
RICCI_API int64_t ricci_param_elements(const ricci_graph *g);
/* Prints what computes y as a table, a line a layer: its name, that of its parameters up to the last
 * point; the shape of its output, the elements of its parameters, and the billions of
 * arithmetic operations of its equations (a multiply-add is two, a function such as exp several).
 * What has no parameters (activations, pooling) counts to the layer whose result it reads, and before
 * the first one stands as "-". Loops over time count all of their steps. The last line has the sums;
 * parameters that several layers share count once. 0, or RICCI_EIO, RICCI_ENOMEM, RICCI_EINVAL. */
RICCI_API int ricci_summary(const ricci_tensor *y, FILE *out);

/* Capsules. */
/* A convolution of matrices: x [b,c,h,w,i,t], w [k,c,r,s,t,j] -> [b,k,p,q,i,j], the sum over c, r,
 * s of x's pose times w's. Without padding. */
RICCI_API ricci_tensor *ricci_capsule_conv(ricci_tensor *x, ricci_tensor *w, int stride);
/* The channels of x [b,c*i*t,h,w] as capsules of i x t matrices: [b,c,h,w,i,t]. */
RICCI_API ricci_tensor *ricci_capsules(ricci_tensor *x, int rows, int columns);
/* v |v|^2 / (1 + |v|^2) / sqrt(|v|^2 + 1e-7), |v| over the last `dims` dimensions (Sabour, Frosst,
 * Hinton 2017, equation 1). */
RICCI_API ricci_tensor *ricci_squash(ricci_tensor *x, int dims);
/* x [b,c,h,w,i,t], w [c*h*w,m,t,j] -> [b,n,m,i,j]: what each of the n = c*h*w capsules expects each
 * of the m to be. */
RICCI_API ricci_tensor *ricci_votes(ricci_tensor *x, ricci_tensor *w);
/* votes [b,n,m,i,j] -> [b,m,i,j], squashed: dynamic routing by agreement (the same, procedure 1),
 * differentiated through. iterations >= 1. */
RICCI_API ricci_tensor *ricci_routing(ricci_tensor *votes, int iterations);

/* ---- attention and positions (nn/layers/attention.c, nn/layers/positions.c) */
/* Which keys a query attends to, and how they are weighted. */
typedef struct {
	size_t size; /* by RICCI_ATTENTION */
	/* Of operands [b,t,heads*d], whose head h has the columns from h*d on. Of k and v there may be
	 * fewer, key_heads (0: as many), each shared by heads / key_heads queries (Ainslie et al.
	 * 2023, "GQA"). Operands [b,heads,t,d] say both by their shapes. */
	int heads, key_heads;
	int causal; /* 1: query i attends to keys 0..i */
	ricci_tensor
		*position;     /* I32 [] or [b], with causal: query i attends to keys 0..i+position,
				   as the next ones behind a cache do; NULL: 0 */
	ricci_tensor *lengths; /* I32 [b]: sample b has so many keys, the others are padding */
	ricci_tensor *mask;    /* [tq,tk], [b,tq,tk] or [b,heads,tq,tk]: added to the scores; BOOL:
				   1 where the query attends to the key */
	double scale;	       /* of the scores; 0: 1 / sqrt(d) */
	double dropout;	       /* probability that a weight is 0 in training sessions */
	int no_bias;	       /* of ricci_multihead_attention's projections */
	int share; /* of ricci_multihead_attention: 1: the parameters are there, by an earlier call,
		      and are used again */
} ricci_attention_options;
#define RICCI_ATTENTION(...)                                                                       \
	((ricci_attention_options){.size = sizeof(ricci_attention_options), __VA_ARGS__})
/* softmax(q k' scale + mask) v for each head (Vaswani et al. 2017, equation 1). q [b,heads,tq,d], k
 * [b,key_heads,tk,d], v [b,key_heads,tk,e] -> [b,heads,tq,e]; or q [b,tq,heads*d], .. -> [b,tq,heads*e].
 * A query that attends to no key gets zeros. options may be NULL for operands of 4 dimensions. */
RICCI_API ricci_tensor *ricci_attention(ricci_tensor *q, ricci_tensor *k, ricci_tensor *v,
					const ricci_attention_options *options);
/* PyTorch's MultiheadAttention (the same, section 3.2.2) with batch_first: query [b,tq,e], key and
 * value [b,tk,..], NULL: the query, and the key -> [b,tq,e]. options: heads must be given. A layer
 * with parameters, named and initialised as there: <name>.in_proj_weight [3e,e], or q_proj_weight,
 * k_proj_weight and v_proj_weight when widths differ, in_proj_bias, out_proj.weight [e,e],
 * out_proj.bias. */
RICCI_API ricci_tensor *ricci_multihead_attention(ricci_tensor *query, ricci_tensor *key,
						  ricci_tensor *value, const char *name,
						  const ricci_attention_options *options);
typedef struct {
	size_t size; /* by RICCI_ROTARY */
	int heads;   /* of x [b,t,heads*d] */
	int dims;    /* so many numbers of a head are rotated; 0: all */
	int halves;  /* pairs are (i, i + dims/2), as in GPT-NeoX and LLaMA's checkpoints of
				   Hugging Face; 0: (2i, 2i+1), as in the paper */
	double base; /* 0: 10000 */
	ricci_tensor *position; /* I32 [], or [b]: of the first row; NULL: 0 */
} ricci_rotary_options;
#define RICCI_ROTARY(...)                                                                          \
	((ricci_rotary_options){.size = sizeof(ricci_rotary_options), __VA_ARGS__})
/* Rotary positions of queries or keys, x [b,heads,t,d] or [b,t,heads*d]: pair i at position p is rotated by
 * the angle p base^(-2i/dims) (Su et al. 2021, "RoFormer", equation 34). options may be NULL. */
RICCI_API ricci_tensor *ricci_rotary(ricci_tensor *x, const ricci_rotary_options *options);
/* x [b,t,d] plus sin(p / 10000^(2i/d)) in column 2i and its cosine in column 2i+1, p the position of a
 * row (Vaswani et al. 2017, section 3.5). position: of the first row, I32 [] or [b], or NULL: 0. */
RICCI_API ricci_tensor *ricci_sinusoidal_positions(ricci_tensor *x, ricci_tensor *position);
/* x [b,t,d] plus the rows of table [n,d], n >= t, from `position`, I32 [] or [b], on; rows outside of
 * the table are its first or last. */
RICCI_API ricci_tensor *ricci_learned_positions(ricci_tensor *x, ricci_tensor *table,
						ricci_tensor *position);

/* ---- recurrent layers (nn/layers/recurrent.c, nn/layers/cells.c) */
/* A step of a recurrent layer. With texts of its own it is a user's cell:
 *	RICCI_CELL(.name = "mine", .states = "h", .parameters = "w[h,n] u[h,h]",
 *		   .text = "X, H, W, U -> N: A[b,j] += X[b,k]*W[j,k]; R[b,j] += H[b,k]*U[j,k];"
 *			   "N[b,j] = tanh(A[b,j])*R[b,j]")
 * Sizes are numbers, h (hidden), c (context), n (columns of the layer's input), p (columns of the
 * output: projection where it is given, else hidden), or products: 4h. */
typedef struct {
	size_t size;	    /* by RICCI_CELL */
	const char *name;   /* in messages */
	const char *states; /* their sizes; they are [b,size], the first one is the output */
	/* "name[sizes]" or "name[sizes]=value", what it starts from; else uniform in
	 * +-1/sqrt(hidden). Made for layer 0 as name_l0, backwards as name_l0_reverse. */
	const char *parameters;
	/* The equations of a step. Operands: the input [b,n], states, parameters; results: the next
	 * states, each in this order, which the signature names. Or a function that adds them to the
	 * graph: 0, or an error that it has left in the graph. */
	const char *text;
	int (*step)(ricci_graph *g, ricci_tensor *x, ricci_tensor *const *state,
		    ricci_tensor *const *parameter, ricci_tensor **next, void *user);
	void *user;
} ricci_cell;
#define RICCI_CELL(...) ((ricci_cell){.size = sizeof(ricci_cell), __VA_ARGS__})
/* Names and gates as in PyTorch where it has the cell; sources in nn/layers/cells.c. The second state
 * of LSTMs and of lltm is the cell's memory, of scrn the context. */
RICCI_API const ricci_cell *ricci_rnn(void); /* tanh */
RICCI_API const ricci_cell *ricci_rnn_relu(void);
RICCI_API const ricci_cell *ricci_lstm(void);
RICCI_API const ricci_cell *ricci_gru(void);
RICCI_API const ricci_cell *ricci_mi_lstm(void);	 /* Wx * Uh + b for Wx + Uh + b */
RICCI_API const ricci_cell *ricci_mi_lstm_general(void); /* with alpha, beta_ih, beta_hh */
RICCI_API const ricci_cell *ricci_scrn(void);		 /* its decay is 0.95 */
RICCI_API const ricci_cell *ricci_sublstm(void);
RICCI_API const ricci_cell *ricci_lltm(void);
typedef struct {
	size_t size; /* by RICCI_RECURRENT */
	const ricci_cell *cell;
	int64_t hidden, context; /* context: of cells that have a 'c' */
	int layers;		 /* 0: 1 */
	int bidirectional;	 /* 1: a loop backwards beside each, outputs side by side */
	int batch_first;	 /* 1: x and the results are [b,t,..], else [t,b,..] */
	double dropout;		 /* between layers, in training sessions, 0..1 */
	ricci_tensor *lengths;	 /* I32 [b]: sample b has so many steps. Behind them its states stay
				    and its outputs are 0; backwards it begins with its last one */
	ricci_tensor *length; /* I32 or I64 []: steps to do, known at run time, as ricci_loop's */
	/* For each state of the cell [layers*directions,b,size], or NULL: zeros. */
	ricci_tensor *const *initial;
	/* Room for a tensor of each state, or NULL. final: as initial, after the last step; states:
	 * those of the last layer in all steps, [t,b,size], of both directions side by side. */
	ricci_tensor **final, **states;
	int recompute; /* memory for time, as ricci_loop's */
	int64_t segment;
	int share; /* 1: the parameters are there, by an earlier call, and are used again */
	/* Of cells whose first state is of size p (all of the above but ricci_gru): after each step
	 * that state is W h, W [projection,hidden] the parameter "weight_hr_l0" (Sak, Senior,
	 * Beaufays 2014; PyTorch's proj_size). 0: none. */
	int64_t projection;
} ricci_recurrent_options;
#define RICCI_RECURRENT(...)                                                                       \
	((ricci_recurrent_options){.size = sizeof(ricci_recurrent_options), __VA_ARGS__})
/* x [t,b,n] -> the outputs of the last layer, [t,b,hidden] or [t,b,2*hidden]; with a projection
 * [t,b,projection] or twice that. A layer with parameters:
 * "<name>.weight_ih_l0", .. The products of x with weights are taken out of the loop, one for all steps. */
RICCI_API ricci_tensor *ricci_recurrent(ricci_tensor *x, const char *name,
					const ricci_recurrent_options *options);

/* ---- initialisers (nn/layers/initialisers.c)
 * By the products added up for an element of the result (fan_in) or of the gradient (fan_out): of a
 * convolution, channels times window. Truncated normals, orthogonal matrices and arrays of values
 * are in <ricci.h>. Normal with deviation 1/sqrt(fan_in) (LeCun et al. 1998), sqrt(2/fan_in) (He et
 * al. 2015, for what a relu follows), sqrt(2/(fan_in+fan_out)) (Glorot & Bengio 2010); _uniform:
 * uniform with that deviation, so in +-sqrt(3) times it. ricci_glorot is the uniform one. */
RICCI_API ricci_init ricci_lecun(int64_t fan_in);
RICCI_API ricci_init ricci_lecun_uniform(int64_t fan_in);
RICCI_API ricci_init ricci_he(int64_t fan_in);
RICCI_API ricci_init ricci_he_uniform(int64_t fan_in);
RICCI_API ricci_init ricci_glorot(int64_t fan_in, int64_t fan_out);
RICCI_API ricci_init ricci_glorot_normal(int64_t fan_in, int64_t fan_out);
/* Uniform in +-1/sqrt(fan_in): what PyTorch's linear and convolution layers start from, weights
 * (kaiming_uniform_ with a = sqrt(5)) and biases. */
RICCI_API ricci_init ricci_uniform_fan_in(int64_t fan_in);

#ifdef __cplusplus
}
#endif
#endif

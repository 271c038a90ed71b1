/* ricci_nn.h - layers, losses, optimisers, data, checkpoints and the training loop of Ricci, all of
 * them made of what ricci.h offers. Errors, ownership and threads: as there. */
#ifndef RICCI_NN_H
#define RICCI_NN_H

#include <ricci.h>
#include <signal.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layers (nn/layers/)
 * Each is a few equations added to the graph of its first operand, so gradients, fusion and kernels
 * come from those alone; ricci_show prints them. f32 or f64 throughout, labels and indices I32 or
 * I64. They return one tensor of that graph, or the inert tensor after an error (kept by the graph,
 * like ricci_op's); NULL only when the first operand is NULL. Same rule on threads as the graph.
 * "[...]" are any dimensions, also none; weights and biases have PyTorch's layouts. Where a layer
 * differs in training, `training` of the notation decides, so one graph serves both. */

/* x [...,k], w [n,k], bias [n] or NULL -> [...,n]: x w' + bias. */
RICCI_API ricci_tensor *ricci_linear(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias);
/* indices [...] of integers in 0..n-1, w [n,k] -> [...,k]: row t of w for each t. */
RICCI_API ricci_tensor *ricci_embedding(ricci_tensor *indices, ricci_tensor *w);

/* A number for all dimensions of the image, or an array of one for each in its place. */
typedef struct {
	size_t size;  /* by RICCI_CONV */
	int stride;   /* 0: 1 */
	int pad;      /* zeros on either side */
	int dilation; /* 0: 1 */
	int groups; /* of channels, each with its own weights; 0: 1. As many as channels: depthwise */
	int transposed; /* 1: the gradient of the convolution by x, "deconvolution" */
	int output_pad; /* transposed: elements more at the end, less than the stride */
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
	int dilation;	 /* 0: 1. Of ricci_max_pool only */
	int exclude_pad; /* 1: means are over elements of the image only; 0: padding counts as zeros */
	const int *kernels, *strides, *pads, *dilations;
} ricci_pool_options;
#define RICCI_POOL(...) ((ricci_pool_options){.size = sizeof(ricci_pool_options), __VA_ARGS__})
/* x [b,c,h..] -> [b,c,p..], p as of a convolution. The gradient of a maximum is shared equally among
 * ties (PyTorch gives it to the first). */
RICCI_API ricci_tensor *ricci_max_pool(ricci_tensor *x, const ricci_pool_options *options);
RICCI_API ricci_tensor *ricci_avg_pool(ricci_tensor *x, const ricci_pool_options *options);
/* x [b,c,h..] -> [b,c,out..], out[d] <= h: window p is from floor(p h / out) to before
 * ceil((p + 1) h / out). `out` has one number for each dimension of the image. */
RICCI_API ricci_tensor *ricci_adaptive_max_pool(ricci_tensor *x, const int64_t *out);
RICCI_API ricci_tensor *ricci_adaptive_avg_pool(ricci_tensor *x, const int64_t *out);
/* [b,c,h..] -> [b,c]. */
RICCI_API ricci_tensor *ricci_global_max_pool(ricci_tensor *x);
RICCI_API ricci_tensor *ricci_global_avg_pool(ricci_tensor *x);
/* x [b,c,h,w] -> [b,c,p,q], windows of size x size inside the image. */
RICCI_API ricci_tensor *ricci_max_pool2d(ricci_tensor *x, int size, int stride);
/* [b,c,h,w] -> [b,c]: the mean over the places. */
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
/* Over the last dimension. */
RICCI_API ricci_tensor *ricci_softmax(ricci_tensor *x);
RICCI_API ricci_tensor *ricci_log_softmax(ricci_tensor *x);

/* The same elements at other places; any type. An axis counts from 0, or from the end: -1. */
/* n tensors of one shape but for dimension `axis`, one after the other along it. */
RICCI_API ricci_tensor *ricci_concat(int n, ricci_tensor *const *x, int axis);
/* Elements start, start + step, .. along an axis, `count` of them. */
RICCI_API ricci_tensor *ricci_slice_axis(ricci_tensor *x, int axis, int64_t start, int64_t count,
					 int64_t step);
/* So many elements of `value` before and behind each dimension; NULL: none. */
RICCI_API ricci_tensor *ricci_pad(ricci_tensor *x, const int64_t *before, const int64_t *after,
				  double value);
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

/* ---- layers with parameters (nn/layers/module.c)
 * They make "<name>.weight", "<name>.bias" in the open scope, of x's type, with the names, layouts
 * and initial values of PyTorch's modules, and call the layer above. name "": "weight", "bias".
 * To share parameters, give them to a layer above once more: ricci_param_find(g, "fc.weight"). To
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
	double epsilon;	 /* 0: 1e-5; RMS: the type's distance of 1 to the next number */
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
 * point; the shape of what it gives on, the elements of its parameters, and the billions of
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
/* Which keys a query sees, and how they are weighted. */
typedef struct {
	size_t size; /* by RICCI_ATTENTION */
	/* Of operands [b,t,heads*d], whose head h has the columns from h*d on. Of k and v there may be
	 * fewer, key_heads (0: as many), each shared by heads / key_heads queries (Ainslie et al.
	 * 2023, "GQA"). Operands [b,heads,t,d] say both by their shapes. */
	int heads, key_heads;
	int causal;		/* 1: query i sees the keys 0..i */
	ricci_tensor *position; /* I32 [], with causal: query i sees the keys 0..i+position, as the
				   next ones behind a cache do; NULL: 0 */
	ricci_tensor *lengths;	/* I32 [b]: sample b has so many keys, the others are padding */
	ricci_tensor *mask;	/* [tq,tk], [b,tq,tk] or [b,heads,tq,tk]: added to the scores; BOOL:
				   1 where the query sees the key */
	double scale;		/* of the scores; 0: 1 / sqrt(d) */
	double dropout;		/* part of the weights that are 0 in training sessions, 0..1 */
	int no_bias;		/* of ricci_multihead_attention's projections */
	/* Of ricci_multihead_attention: a scope around its parameters' names, or NULL; 1: they are there, by
	 * an earlier call, and are used again. */
	const char *name;
	int share;
} ricci_attention_options;
#define RICCI_ATTENTION(...)                                                                       \
	((ricci_attention_options){.size = sizeof(ricci_attention_options), __VA_ARGS__})
/* softmax(q k' scale + mask) v for each head (Vaswani et al. 2017, equation 1). q [b,heads,tq,d], k
 * [b,key_heads,tk,d], v [b,key_heads,tk,e] -> [b,heads,tq,e]; or q [b,tq,heads*d], .. -> [b,tq,heads*e].
 * A query that sees no key gets zeros. options may be NULL for operands of 4 dimensions. */
RICCI_API ricci_tensor *ricci_attention(ricci_tensor *q, ricci_tensor *k, ricci_tensor *v,
					const ricci_attention_options *options);
/* PyTorch's MultiheadAttention (the same, section 3.2.2) with batch_first: query [b,tq,e], key and
 * value [b,tk,..], NULL: the query, and the key -> [b,tq,e]. options: heads must be given. Makes
 * parameters in the open scope, named and initialised as there: in_proj_weight [3e,e], or
 * q_proj_weight, k_proj_weight and v_proj_weight when widths differ, in_proj_bias,
 * out_proj.weight [e,e], out_proj.bias. */
RICCI_API ricci_tensor *ricci_multihead_attention(ricci_tensor *query, ricci_tensor *key,
						  ricci_tensor *value,
						  const ricci_attention_options *options);
typedef struct {
	size_t size; /* by RICCI_ROTARY */
	int heads;   /* of x [b,t,heads*d] */
	int dims;    /* so many numbers of a head are turned; 0: all */
	int halves;  /* pairs are (i, i + dims/2), as in GPT-NeoX and LLaMA's checkpoints of
				   Hugging Face; 0: (2i, 2i+1), as in the paper */
	double base; /* 0: 10000 */
	ricci_tensor *position; /* I32 []: of the first row; NULL: 0 */
} ricci_rotary_options;
#define RICCI_ROTARY(...)                                                                          \
	((ricci_rotary_options){.size = sizeof(ricci_rotary_options), __VA_ARGS__})
/* Rotary positions of queries or keys, x [b,heads,t,d] or [b,t,heads*d]: pair i at place p is turned by
 * the angle p base^(-2i/dims) (Su et al. 2021, "RoFormer", equation 34). options may be NULL. */
RICCI_API ricci_tensor *ricci_rotary(ricci_tensor *x, const ricci_rotary_options *options);
/* x [b,t,d] plus sin(p / 10000^(2i/d)) in column 2i and its cosine in column 2i+1, p the place of a
 * row (Vaswani et al. 2017, section 3.5). position: of the first row, I32 [], or NULL: 0. */
RICCI_API ricci_tensor *ricci_sinusoidal_positions(ricci_tensor *x, ricci_tensor *position);
/* x [b,t,d] plus the rows of table [n,d], n >= t, from `position` on; rows outside of the table are
 * its first or last. */
RICCI_API ricci_tensor *ricci_learned_positions(ricci_tensor *x, ricci_tensor *table,
						ricci_tensor *position);

/* ---- recurrent layers (nn/layers/recurrent.c, nn/layers/cells.c) */
/* A step of a recurrent layer. With texts of its own it is a user's cell:
 *	RICCI_CELL(.name = "mine", .states = "h", .parameters = "w[h,n] u[h,h]",
 *		   .text = "X, H, W, U -> N: A[b,j] += X[b,k]*W[j,k]; R[b,j] += H[b,k]*U[j,k];"
 *			   "N[b,j] = tanh(A[b,j])*R[b,j]")
 * Sizes are numbers, h (hidden), c (context), n (columns of the layer's input), or products: 4h. */
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
	const char *name; /* a scope around the parameters' names, or NULL */
	int share;	  /* 1: the parameters are there, by an earlier call, and are used again */
} ricci_recurrent_options;
#define RICCI_RECURRENT(...)                                                                       \
	((ricci_recurrent_options){.size = sizeof(ricci_recurrent_options), __VA_ARGS__})
/* x [t,b,n] -> the outputs of the last layer, [t,b,hidden] or [t,b,2*hidden]. The parameters are made
 * in the open scope. The products of x with weights are taken out of the loop, one for all steps. */
RICCI_API ricci_tensor *ricci_recurrent(ricci_tensor *x, const ricci_recurrent_options *options);

/* ---- losses and metrics (nn/losses/)
 * Losses are one number, the mean over what counts. */
/* logits [b,...,m], labels [b,...] with 0 <= label < m: the mean of log sum exp(x) - x[label]. */
RICCI_API ricci_tensor *ricci_cross_entropy(ricci_tensor *logits, ricci_tensor *labels);
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
 * score at j (the first of equal ones). Samples with a NaN are in no place. */
RICCI_API ricci_tensor *ricci_confusion(ricci_tensor *scores, ricci_tensor *labels);
/* Of a mean loss in nats, such as ricci_cross_entropy: exp(loss); loss / log 2, which of a model of
 * characters is bits per character. */
RICCI_API ricci_tensor *ricci_perplexity(ricci_tensor *loss);
RICCI_API ricci_tensor *ricci_bits(ricci_tensor *loss);

/* ---- initialisers (nn/initialisers.c)
 * By the products added up for an element of the result (fan_in) or of the gradient (fan_out): of a
 * convolution, channels times window. Normal with deviation 1/sqrt(fan_in) (LeCun et al. 1998),
 * sqrt(2/fan_in) (He et al. 2015, for what a relu follows), sqrt(2/(fan_in+fan_out)) (Glorot &
 * Bengio 2010); _uniform: uniform with that deviation, so in +-sqrt(3) times it. ricci_glorot is
 * the uniform one. */
RICCI_API ricci_init ricci_lecun(int64_t fan_in);
RICCI_API ricci_init ricci_lecun_uniform(int64_t fan_in);
RICCI_API ricci_init ricci_he(int64_t fan_in);
RICCI_API ricci_init ricci_he_uniform(int64_t fan_in);
RICCI_API ricci_init ricci_glorot(int64_t fan_in, int64_t fan_out);
RICCI_API ricci_init ricci_glorot_normal(int64_t fan_in, int64_t fan_out);
/* Uniform in +-1/sqrt(fan_in): what PyTorch's linear and convolution layers start from, weights
 * (kaiming_uniform_ with a = sqrt(5)) and biases. */
RICCI_API ricci_init ricci_uniform_fan_in(int64_t fan_in);

/* ---- optimisers (nn/optimisers/)
 * An optimiser takes the gradient of a scalar `loss` with respect to the parameters of its graph
 * (not to states) and assigns their next values. What it keeps of a parameter is a state named
 * after it ("votes.moment1"), f32, or f64 for f64 parameters. A parameter on which the loss does
 * not depend keeps its value, as in PyTorch. `rate` is a scalar tensor: ricci_learning_rate or
 * ricci_schedule. Called after the loss is built. 0 or the graph's error. */

/* The state "learning_rate", f32 []; ricci_feed changes it between steps, nothing is compiled anew. */
RICCI_API ricci_tensor *ricci_learning_rate(ricci_graph *g, double value);

/* p: parameter, g: its gradient, r: rate, d: decay. Sources: nn/optimisers/rules.c. */
typedef enum {
	RICCI_SGD,	/* p -= r g; with `momentum` it is RICCI_MOMENTUM */
	RICCI_MOMENTUM, /* v = momentum v + g; p -= r v */
	RICCI_NESTEROV, /* v likewise; p -= r (g + momentum v) */
	RICCI_ADAM,	/* Kingma & Ba 2015, algorithm 1 */
	RICCI_ADAMW,	/* the same, and p -= r d p (Loshchilov & Hutter 2019) */
	RICCI_LAMB,	/* You et al. 2020, algorithm 2 */
	RICCI_RMSPROP,	/* s = beta2 s + (1 - beta2) g^2; p -= r g / (sqrt(s) + epsilon); with
			 * `momentum` p -= r v, v = momentum v + g / (sqrt(s) + epsilon) */
	RICCI_ADAGRAD	/* s += g^2; p -= r g / (sqrt(s) + epsilon) */
} ricci_rule;

/* In place of an option's usual value: zero. */
#define RICCI_NONE (-1.0)

/* Parameters with options of their own. A parameter belongs to the first group that has it, or to
 * none. Both names and match NULL: all. A group that has no parameter is an error. */
typedef struct {
	const char *names; /* a pattern as shells have it: "*.bias", "stage1.*"; NULL: any */
	int (*match)(const ricci_tensor *parameter, void *user); /* other than 0: has it */
	void *user;
	double rate;  /* factor of the rate; 0: 1 */
	double decay; /* 0: that of the optimiser; RICCI_NONE: none */
	int frozen;   /* 1: not trained */
} ricci_group;

/* Options are 0 for the usual value (PyTorch's), RICCI_NONE for zero; one that the rule doesn't
 * have is an error. In this order a step adds up gradients, clips by value, clips by norm, adds the
 * decay, applies the rule, updates the averages. */
typedef struct {
	size_t size; /* by RICCI_OPTIMISER */
	ricci_rule rule;
	double beta1, beta2; /* usually .9 and .999; RMSprop's beta2 .99 */
	double epsilon;	     /* usually 1e-8; LAMB 1e-6, Adagrad 1e-10 */
	double momentum;     /* of RICCI_MOMENTUM and _NESTEROV usually .9 */
	double decay;	     /* weight decay: AdamW's and LAMB's own (AdamW usually .01); in others
				 g + d p takes g's place (usually none) */
	double clip_norm;    /* gradients times min(1, clip_norm / (norm + 1e-6)), norm being that
				 of all gradients together; 0: none */
	double clip_value;   /* gradients clipped to -clip_value..clip_value; 0: none */
	int accumulate;	     /* n: an update in every n-th step only, with the mean of n gradients;
				 the sums are states ("w.gradient"); 0 or 1: in every step */
	double average; /* a: states "ema.w" = a ema + (1 - a) w after each update, the first of
				 which copies w; 0: none. See ricci_averaged */
	int ngroup;
	const ricci_group *group;
	const char *name; /* of its counters ("adam.step"); NULL: the rule's. Two optimisers of one
			     graph, each with frozen groups, need two names */
} ricci_optimiser;
#define RICCI_OPTIMISER(...) ((ricci_optimiser){.size = sizeof(ricci_optimiser), __VA_ARGS__})
/* options may be NULL: SGD. E.g. AdamW without decay of biases:
 *	ricci_group bias = {.names = "*.bias", .decay = RICCI_NONE};
 *	ricci_optimise(loss, rate, &RICCI_OPTIMISER(.rule = RICCI_ADAMW, .clip_norm = 1,
 *						    .ngroup = 1, .group = &bias)); */
RICCI_API int ricci_optimise(ricci_tensor *loss, ricci_tensor *rate,
			     const ricci_optimiser *options);
/* Short forms. */
RICCI_API int ricci_sgd(ricci_tensor *loss, ricci_tensor *rate);
RICCI_API int ricci_momentum(ricci_tensor *loss, ricci_tensor *rate, double momentum);
RICCI_API int ricci_adam(ricci_tensor *loss, ricci_tensor *rate, double beta1, double beta2,
			 double epsilon);
/* y computed with the averages in place of the parameters that have one (before the first update:
 * with the parameters), for evaluation: an output of a session that doesn't train, shared with the
 * one that does. Called after ricci_optimise with `average`, before the first session. One tensor
 * of the graph, or its inert tensor after an error. */
RICCI_API ricci_tensor *ricci_averaged(ricci_tensor *y);

/* The rate as a function of the step. Each is PyTorch's (torch.optim.lr_scheduler), t its count of
 * steps: 0 in the first. */
typedef enum {
	RICCI_CONSTANT, /* rate */
	RICCI_STEPS,	/* rate gamma^floor(t / period); with milestones gamma^(those <= t) */
	RICCI_COSINE,	/* least + (rate - least) (1 + cos(pi t / steps)) / 2; from t = steps on
			  * least (Loshchilov & Hutter 2017, equation 5, without restarts) */
	RICCI_LINEAR,	/* from rate to least within `steps` */
	RICCI_ONE_CYCLE /* rate/25 to rate by a cosine over warmup (usually .3 steps), then to
			  * rate/250000 (Smith & Topin 2019; OneCycleLR's usual values) */
} ricci_schedule_kind;
typedef struct {
	size_t size; /* by RICCI_SCHEDULE */
	ricci_schedule_kind kind;
	double rate;  /* the greatest one, more than 0 */
	double least; /* COSINE, LINEAR: the last one (0) */
	/* Steps: the rate times (t + 1) / warmup while t < warmup, then the schedule from its begin;
	 * ONE_CYCLE: those that rise. */
	int64_t warmup;
	int64_t steps;		   /* COSINE, LINEAR, ONE_CYCLE: in all, warm-up included */
	int64_t period;		   /* STEPS */
	double gamma;		   /* STEPS: usually .1 */
	int nmilestone;		   /* STEPS: steps at which the rate falls, rising */
	const int64_t *milestones; /* counted after the warm-up, as t is */
	int accumulate;		   /* as of ricci_optimiser: t counts updates */
} ricci_schedule_options;
#define RICCI_SCHEDULE(...)                                                                        \
	((ricci_schedule_options){.size = sizeof(ricci_schedule_options), __VA_ARGS__})
/* The rate of the step, f32 [], computed in f64 from the state "schedule.step". One in a graph. It
 * is a few scalar equations, so nothing is compiled anew. The inert tensor after an error. */
RICCI_API ricci_tensor *ricci_schedule(ricci_graph *g, const ricci_schedule_options *options);

/* ---- gradients against differences (nn/check_gradient.c) */
typedef struct {
	const ricci_tensor *tensor;
	const void *data; /* dense, C order, the tensor's type */
	size_t bytes;
} ricci_value;
typedef struct {
	size_t size;	  /* by RICCI_GRADIENT_CHECK */
	double step;	  /* of differences, times max(1, |x|); 0: 1e-3 */
	double tolerance; /* of relative errors; 0: 1e-6 */
	int64_t samples;  /* at most so many elements of each tensor; 0: 32 */
	uint64_t seed;	  /* of drawn values, of samples and of random() in texts */
	int train;	  /* the value of `training` in texts */
	/* Values of inputs, parameters and states. The others are drawn: what begins with a number as
	 * that number plus -1/2..1/2, other parameters and states from a range like their
	 * initialiser's, floats from -1..1, integers from the first ten that they may be. */
	int nvalue;
	const ricci_value *value;
} ricci_gradient_check;
#define RICCI_GRADIENT_CHECK(...)                                                                  \
	((ricci_gradient_check){.size = sizeof(ricci_gradient_check), __VA_ARGS__})
typedef struct {
	size_t size;		  /* by RICCI_GRADIENT_REPORT */
	int64_t checked, skipped; /* elements; skipped: the loss has a kink or a jump beside it */
	ricci_tensor *tensor;	  /* the worst element's; NULL: nothing was checked */
	int64_t element[RICCI_MAX_RANK];
	double gradient, difference; /* its derivative, by ricci_grad and by differences */
	double error; /* |gradient - difference| divided by the greater of both or, where that is
			 more, by the mean of the tensor's |gradient| */
} ricci_gradient_report;
#define RICCI_GRADIENT_REPORT(...)                                                                 \
	((ricci_gradient_report){.size = sizeof(ricci_gradient_report), __VA_ARGS__})
/* Compares the gradient of the sum of loss's elements with respect to wrt[0..n-1] (inputs,
 * parameters or states, f32 or f64; n = 0: all parameters) with central differences. Everything is
 * computed by the reference interpreter, in f64 whatever the graph's types are: it is slow, so give it
 * a small net, before it has sessions. The graph gets the gradients' equations. 0 when all errors are within
 * the tolerance; RICCI_EVALUE and a message with the worst element when not; or another error.
 * options and report may be NULL. */
RICCI_API int ricci_check_gradient(ricci_tensor *loss, int n, ricci_tensor *const *wrt,
				   const ricci_gradient_check *options,
				   ricci_gradient_report *report);

/* ---- data (nn/data/)
 * A data set is a list of named fields with one number of samples, 1 to 2^32-1; a field has a type
 * and a shape of its own: images u8 [28,28], labels u8 [], masks, targets f32 [4], tokens i32 [64].
 * Either a function below makes a whole data set, or ricci_data_new an empty one, to which
 * ricci_data_* add one field each:
 *	ricci_data *d = ricci_data_new();
 *	ricci_data_npy(d, "samples", "images.npy");
 *	ricci_data_hdf5(d, "masks", "masks.h5", "/train/masks");
 * These return 0 or a negative ricci_error, and the first error stays: loaders and ricci_train
 * refuse the data set with its message, so one check at the end is enough. A damaged file is an
 * error that names it and the byte. A data set may feed several loaders; it must outlive them. */
typedef struct ricci_data ricci_data;
RICCI_API ricci_data *ricci_data_new(void); /* NULL: out of memory */
RICCI_API void ricci_data_free(ricci_data *d);
/* 0, or the first error, whose message becomes ricci_error_message(). */
RICCI_API int ricci_data_error(const ricci_data *d);
/* An array in memory, dense, in C order, the samples its first dimension: shape[0..rank-1]. It is
 * not copied, so it must outlive the data set. */
RICCI_API int ricci_data_array(ricci_data *d, const char *field, ricci_type type, int rank,
			       const int64_t *shape, const void *values);
/* An IDX file (the format of MNIST), plain or gzip-compressed, of any rank, the first dimension the
 * samples; elements u8, i8, i32, f32, f64. Unpacked into memory while training already uses the
 * first samples. */
RICCI_API int ricci_data_idx(ricci_data *d, const char *field, const char *path);
/* A .npy file, version 1 to 3, the first dimension the samples; elements bool, u8, i8, i32, i64, f16,
 * f32, f64, little-endian, in C order. Read sample by sample when needed. */
RICCI_API int ricci_data_npy(ricci_data *d, const char *field, const char *path);
/* An uncompressed file of records of one size, each with a sample somewhere in it; little-endian.
 * The file must end with a whole record. Read sample by sample when needed. */
typedef struct {
	size_t size;	      /* by RICCI_RAW */
	ricci_type type;      /* of an element */
	int rank;	      /* of a sample */
	const int64_t *shape; /* of a sample */
	int64_t offset;	      /* bytes before the first record */
	int64_t record;	      /* bytes of a record; 0: as many as a sample has */
	int64_t within;	      /* where in its record a sample begins */
} ricci_raw;
#define RICCI_RAW(...) ((ricci_raw){.size = sizeof(ricci_raw), __VA_ARGS__})
RICCI_API int ricci_data_raw(ricci_data *d, const char *field, const char *path,
			     const ricci_raw *layout);

/* A dataset of an HDF5 file, of any size, its first dimension the samples; elements bool (as h5py has
 * it), u8, i8, i32, i64, f16, bf16, f32, f64, little-endian. Streamed: a process of its own reads and
 * unpacks blocks of samples shortly before they are used; at most 18 blocks are in memory, of 1 to
 * 8 MB each (or one sample, where that is larger). The file's chunks should be that small, and hold
 * whole samples. */
RICCI_API int ricci_data_hdf5(ricci_data *d, const char *field, const char *path,
			      const char *dataset);

/* Samples and labels from two IDX files, as the fields "samples" and "labels"; labels of rank 1.
 * These three and ricci_digits return NULL on an error. */
RICCI_API ricci_data *ricci_idx(const char *samples, const char *labels);
/* MNIST's files by their usual names, with or without ".gz", in a folder: the test set or the
 * other. samples u8 [28,28], labels u8 []. */
RICCI_API ricci_data *ricci_mnist(const char *folder, int test);
/* CIFAR-10 (Krizhevsky 2009): its binary version, data_batch_1.bin to _5 and test_batch.bin, or
 * IDX files cifar10-train-images-idx4-ubyte, ..labels-idx1-ubyte, cifar10-t1k-.., with or without
 * ".gz". samples u8 [3,32,32] (channel, row, column), labels u8 []. */
RICCI_API ricci_data *ricci_cifar10(const char *folder, int test);
/* `count` drawn digits, turned, scaled, shifted and with noise; the same for the same seed. samples
 * u8 [28,28], labels u8 []. */
RICCI_API ricci_data *ricci_digits(int64_t count, uint64_t seed);

/* A text, plain or gzip-compressed, as windows of `length` tokens: samples i32 [length], and targets
 * i32 [length], the tokens that follow each of them. Tokens are the characters of the file (UTF-8),
 * numbered in the order of their code points from 0, or its bytes. In memory, 1 byte a token (4
 * where the file has more than 256 different characters). NULL on an error. */
typedef struct {
	size_t size;	 /* by RICCI_READING */
	int64_t length;	 /* of a window, 1 or more */
	int64_t stride;	 /* from a window's beginning to the next one's; 0: length */
	int bytes;	 /* 1: tokens are bytes, 0..255 */
	double from, to; /* the part, as fractions of the tokens; both 0: all. Same alphabet */
	/* b > 0: for recurrent nets that keep their state from batch to batch. The text is cut into
	 * b streams; batch k, of b samples in this order, has window k of each. Never shuffled. */
	int streams;
} ricci_reading;
#define RICCI_READING(...) ((ricci_reading){.size = sizeof(ricci_reading), __VA_ARGS__})
RICCI_API ricci_data *ricci_text(const char *path, const ricci_reading *reading);
/* The code point (or byte) of each token, and how many there are; the data set's. NULL, 0 for
 * another data set. */
RICCI_API const uint32_t *ricci_text_alphabet(const ricci_data *d, int *n);
/* A text as tokens of d's alphabet: how many it has, of which at most `room` are stored, or
 * RICCI_EVALUE where a character is not in the alphabet. */
RICCI_API int64_t ricci_text_encode(const ricci_data *d, const char *text, int32_t *tokens,
				    int64_t room);

RICCI_API int64_t ricci_data_count(const ricci_data *d); /* samples */
typedef struct {
	size_t size;	  /* by RICCI_FIELD */
	const char *name; /* the data set's */
	ricci_type type;
	int rank; /* of a sample */
	int64_t shape[RICCI_MAX_RANK];
} ricci_field;
#define RICCI_FIELD(...) ((ricci_field){.size = sizeof(ricci_field), __VA_ARGS__})
/* Describes field i, counted from 0 in the order in which they were added; RICCI_EINVAL behind the
 * last one. */
RICCI_API int ricci_data_field(const ricci_data *d, int i, ricci_field *out);
/* Copies sample i of a field out, as it is stored; bytes: of the room, exactly the sample's. Waits
 * for it when it is still being unpacked. */
RICCI_API int ricci_data_get(ricci_data *d, const char *field, int64_t i, void *out, size_t bytes);

/* Batches made before they are needed, by a thread of its own. With `shuffle` each epoch has an
 * order of its own, which depends on seed and epoch only; a last part smaller than a batch is left
 * out then, and without shuffle filled up with the first samples. Of fields that are streamed from
 * compressed files, blocks of samples are shuffled, and then the samples of eight blocks at a time.
 * A loader is used by one thread at a time. */
typedef struct ricci_loader ricci_loader;
typedef struct {
	const char *field;
	/* Of the batch. Integers become integers that hold their values (RICCI_EVALUE where one
	 * does not) or floats, floats become floats. */
	ricci_type type;
	int unit; /* 1, for U8 as a float: divided by 255, so that it is in 0..1 */
} ricci_loaded;
typedef struct {
	size_t size; /* by RICCI_LOADING */
	int batch;
	int shuffle;
	uint64_t seed;
	int nfield; /* 0: all fields of the data set, as they are stored */
	const ricci_loaded *field;
} ricci_loading;
#define RICCI_LOADING(...) ((ricci_loading){.size = sizeof(ricci_loading), __VA_ARGS__})
RICCI_API ricci_loader *ricci_loader_open(ricci_data *d, const ricci_loading *loading);
RICCI_API void ricci_loader_free(ricci_loader *l);
/* The next batch: a pointer for each field loaded, to [batch, shape of a sample], and how many of
 * its samples count (batch, less in a filled-up one); 0 at the end of an epoch, after which the next
 * epoch begins. The arrays live until the next call. Negative: an error. */
RICCI_API int ricci_loader_batch(ricci_loader *l, const void **fields);
/* Continues with sample `index` (a multiple of the batch) of an epoch, counted from 0; its batches
 * are made from now on, the first asked for or not. */
RICCI_API int ricci_loader_seek(ricci_loader *l, uint64_t epoch, int64_t index);

/* ---- augmentation (nn/data/augment.c)
 * Layers for images [batch, .., row, column] of f32 or f64: each sample is changed by draws of its
 * own in training sessions; others see it as it is. Draws follow from the session's seed, the step,
 * the sample's place in the batch and `key` (0 or more): two layers with equal keys draw the same
 * (an image and its mask, say), so independent ones need different keys. Threads and errors as
 * layers. */
/* Zeros all around, `pad` wide; then a window of rows x columns at a random place, in other sessions
 * the one in the centre. With pad 4 and the image's own size: He et al. 2016, section 4.2. */
RICCI_API ricci_tensor *ricci_random_crop(ricci_tensor *x, int pad, int64_t rows, int64_t columns,
					  int64_t key);
/* By -most..most rows and columns, each equally often; zeros move in. */
RICCI_API ricci_tensor *ricci_random_shift(ricci_tensor *x, int most, int64_t key);
/* Columns reversed, of every second sample on average. */
RICCI_API ricci_tensor *ricci_random_flip(ricci_tensor *x, int64_t key);
/* Zeros in a square of size x size around a random place, cut at the edges (DeVries & Taylor 2017,
 * "Improved regularization of convolutional neural networks with cutout"). */
RICCI_API ricci_tensor *ricci_cutout(ricci_tensor *x, int size, int64_t key);
/* (x - mean[c]) / deviation[c] for channel c of x [batch, channel, ..], in all sessions. */
RICCI_API ricci_tensor *ricci_normalise(ricci_tensor *x, int channels, const double *mean,
					const double *deviation);

/* ---- checkpoints (nn/checkpoint.c)
 * HDF5 files, chunked and checksummed: /parameters/<name>, /state/<name>, and attributes. Written
 * beside the old file, flushed, renamed, so that the old one stays whole whatever happens; it stays
 * as path.prev. Permissions of the old file and links to it are kept. ricci_train saves nothing when
 * a parameter is infinite or no number. */
typedef struct {
	size_t size;	       /* by RICCI_POSITION */
	uint64_t step, seed;   /* of the session: all the random state there is */
	uint64_t epoch, index; /* the position in the data: epochs done, samples of this one done */
	double loss_sum;       /* of the running epoch, over `batches` */
	uint64_t batches, wrong;
} ricci_position;
#define RICCI_POSITION(...) ((ricci_position){.size = sizeof(ricci_position), __VA_ARGS__})
/* Saves parameters and states of s. model: an output whose equations are part of the fingerprint.
 * p: step and seed are taken from s; may be NULL. compress: gzip level 0..9. */
RICCI_API int ricci_save(ricci_session *s, const ricci_tensor *model, const char *path,
			 const ricci_position *p, int compress);
/* Loads into s, after everything was checked: on an error s is as it was. weights: parameters only,
 * by name and shape, into any model that has them; else the model must be the same, and s gets the
 * step. */
RICCI_API int ricci_load(ricci_session *s, const ricci_tensor *model, const char *path, int weights,
			 ricci_position *p);
/* The position alone, without a session. */
RICCI_API int ricci_peek(const char *path, ricci_position *p);

/* ---- the training loop (nn/training/, nn/feed.c) */
/* An input of the graph, [batch, ...], and the field of the data sets that feeds it: as many
 * elements as a sample has, converted to the input's type as ricci_loaded says; U8 to floats in
 * 0..1. */
typedef struct {
	ricci_tensor *tensor;
	const char *field;
} ricci_fed;
/* A number that is measured while training and in passes over test and validation data. tensor: of
 * any type; a scalar [], which says something of a batch, or [batch, ...], which does of each sample
 * (those that fill up a last batch do not count). mean is that over samples (over batches of
 * scalars, in passes weighted by the samples that count).
 *	RICCI_MEAN		mean
 *	RICCI_SUM		the sum over samples, or over batches
 *	RICCI_PERCENT		mean, a fraction, shown as a percentage
 *	RICCI_PERPLEXITY	exp(mean), of a loss in nats
 *	RICCI_BITS_PER_CHARACTER mean / log 2, of a loss in nats */
typedef enum {
	RICCI_MEAN,
	RICCI_SUM,
	RICCI_PERCENT,
	RICCI_PERPLEXITY,
	RICCI_BITS_PER_CHARACTER
} ricci_metric_kind;
typedef struct {
	const char *name; /* letters, digits and _, at most 40; not "loss" or "error" */
	ricci_tensor *tensor;
	ricci_metric_kind how;
} ricci_metric;
typedef struct {
	size_t size;			 /* by RICCI_TRAINING */
	ricci_tensor *samples, *labels;	 /* inputs fed by the fields of these names, or NULL */
	ricci_tensor *loss;		 /* F32 [] */
	ricci_tensor *misclassified;	 /* I32 [batch], of ricci_misclassified; or NULL */
	ricci_data *train, *test;	 /* test may be NULL */
	const ricci_options *options;	 /* of its sessions; NULL: the usual ones */
	int epochs;			 /* in all, those before a resume included; 0: no limit */
	uint64_t steps;			 /* in all; 0: no limit. Both 0: an error */
	double tune;			 /* seconds of ricci_tune before the first step */
	int evaluate;			 /* only a pass over test (with resume: of those weights) */
	const char *resume, *checkpoint; /* files, or NULL; saved after each epoch and at the end */
	const char *picture;		 /* curves (SVG), drawn after each epoch, or NULL */
	ricci_tensor *rate; /* with resume: keeps its initial value, not the file's; or NULL */
	int compress;	    /* gzip level of checkpoints */
	FILE *lines;	    /* one line an epoch; NULL: none */
	FILE *progress;	    /* a bar when it is a terminal, and warnings; NULL: none */
	const volatile sig_atomic_t *stop; /* set by a signal handler: ends after the step, saved */
	int overwrite; /* 1: `checkpoint` may replace a file that is not `resume` */
	int ninput;    /* inputs beside samples and labels */
	const ricci_fed *input;
	int nmetric; /* at most 14 */
	const ricci_metric *metric;
	ricci_tensor *learning_rate; /* F32 []: recorded with each step; or NULL */
	/* Validation: a pass over data that is in neither train nor test, after each epoch, or in
	 * every validate_every-th step. */
	ricci_data *validation;
	uint64_t validate_every;
	/* The value that decides: a column's name, such as "validation_error"; NULL:
	 * "validation_loss". The least one is the best, with watch_greatest the greatest. */
	const char *watch;
	int watch_greatest;
	int patience; /* ends the training after so many values in a row that are not better; 0: no */
	int keep_best; /* 1: the checkpoint of the best value stays as `checkpoint`.best */
	int keep; /* n: the checkpoints of the last n epochs stay as `checkpoint`.step<number> */
	/* Files of all numbers; a training that resumes continues them behind the step it resumes
	 * from, another one needs `overwrite` where they are. */
	const char *csv; /* comma-separated values, or NULL */
	const char
		*events; /* an event file of TensorBoard ("logs/events.out.tfevents.1"), or NULL */
	FILE *profile;	 /* after the training, where a step's time went; or NULL */
	/* What the net in checkpoints computes; NULL: `misclassified`, or the loss. */
	ricci_tensor *output;
} ricci_training;
#define RICCI_TRAINING(...) ((ricci_training){.size = sizeof(ricci_training), __VA_ARGS__})
typedef struct {
	size_t size;			      /* by RICCI_REPORT */
	uint64_t step, epoch;		      /* done */
	double loss, train_error, test_error; /* of the last epoch; errors as fractions */
	double images_per_second;	      /* training, evaluation apart */
	int stopped;			      /* by `stop`: what that held; or 0 */
	int exhausted;			      /* 1: `patience` ended the training */
	double best;			      /* of the watched value; NaN: there is none */
	uint64_t best_step;		      /* in which it was measured */
} ricci_report;
#define RICCI_REPORT(...) ((ricci_report){.size = sizeof(ricci_report), __VA_ARGS__})
/* Installs a handler of SIGINT, SIGTERM and SIGHUP that sets the flag it returns, for `stop`, to the
 * signal's number; a second signal, of whichever kind, does what it did before. A program that was
 * stopped so ends with status 128 + that number, as shells have it. */
RICCI_API const volatile sig_atomic_t *ricci_interrupted(void);
/* Trains, or evaluates. The line of an epoch is exactly
 *	epoch 1 loss 0.0123 train_error 1.23% test_error 1.10% images/s 1234
 * (what there is no data or no tensor for is missing; an evaluation prints the test values alone).
 * Between train_error and images/s stand, in this order, train_<metric> .., test_error,
 * test_<metric> .., validation_loss, validation_error, validation_<metric> ..; test_loss where there
 * is no `misclassified`. A validation within an epoch prints a line "step 500 validation_loss ..".
 * These names, and "loss" and "rate", are the columns that `watch` and files know.
 * Passes over test and validation data use the averages of the parameters where the optimiser
 * keeps some (ricci_averaged); a graph with averages can be given to ricci_train once.
 * A loss that is not finite ends the training with RICCI_EVALUE; nothing is saved of it.
 * report may be NULL. 0 or an error with the message. */
RICCI_API int ricci_train(const ricci_training *t, ricci_report *report);

/* ---- serving (nn/serve; docs/serving.md) */
/* Writes the net that computes output[0..n-1] as C99 that needs libm only: `path`, which ends with
 * ".c", and a header beside it, whose comment shows the use. Names begin with the file's ("net.c":
 * net_run, net_size, struct net_in, struct net_out). `training` is 0; parameters and states are
 * those of s. name[k]: of output k in the structs, or name NULL: their own. weights: a file for
 * them, which net_load reads; NULL: they are arrays in the source. A net that draws random numbers
 * where `training` is 0 is RICCI_EUNSUPPORTED. 0 or an error; then the files are as they were. */
RICCI_API int ricci_export(ricci_session *s, int n, ricci_tensor *const *output,
			   const char *const *name, const char *path, const char *weights);
/* The same of a checkpoint, without the program of its net. It computes the `model` of ricci_save,
 * or `output` of ricci_train, as "output". RICCI_EFORMAT where the file holds no equations. */
RICCI_API int ricci_export_checkpoint(const char *checkpoint, const char *path,
				      const char *weights);

/* Modules: the same net with its compiled kernels and its weights in one file (`path`, any name), for
 * programs that link this library and serve without a compiler. Kernels are the fastest that the
 * function cache knows for so many threads (0: as many as the process may run on), and what is
 * missing is compiled and tried now, which takes a C compiler and some seconds. A module runs where
 * it was made or on processors with the same instructions, with the same build of the library.
 * Otherwise as ricci_export, but for random draws, which a module makes as a session with seed 0. */
RICCI_API int ricci_export_module(ricci_session *s, int n, ricci_tensor *const *output,
				  const char *const *name, int threads, const char *path);
RICCI_API int ricci_export_module_checkpoint(const char *checkpoint, int threads, const char *path);
typedef struct ricci_module ricci_module;
/* Loads one: no compiler is started, and no thread but the workers (threads in all; 0: as above).
 * Code is loaded from the file, so it has to be a regular file (links are followed) of this user or
 * root that nobody else may write to; it may be replaced by another, but not written to while it is
 * in use. NULL on error: RICCI_EFORMAT (no module, cut or damaged: checksums are checked),
 * RICCI_EUNSUPPORTED (another version of the library, or instructions that this processor lacks),
 * RICCI_EINVAL (not trusted), RICCI_EIO, RICCI_ENOMEM. A module is used by one thread at a time;
 * modules are independent, and those of one file share the memory of its weights. */
RICCI_API ricci_module *ricci_module_load(const char *path, int threads);
RICCI_API void ricci_module_free(ricci_module *m);
typedef struct { /* an input or output; fields may be added at the end */
	const char *name;
	ricci_type type;
	int rank;
	const int64_t *shape;
	size_t bytes;
} ricci_port;
/* The k-th, in the order of the net, NULL outside; it lives as long as the module. */
RICCI_API const ricci_port *ricci_module_input(const ricci_module *m, int k);
RICCI_API const ricci_port *ricci_module_output(const ricci_module *m, int k);
/* Copies an input in (dense, C order), checked for the range that gathers need; it stays until it is
 * fed again. bytes: of data; it must be the port's. 0 or an error. */
RICCI_API int ricci_module_feed(ricci_module *m, const char *name, const void *data, size_t bytes);
/* Computes all outputs; every input has to be fed before. 0 or an error. */
RICCI_API int ricci_module_run(ricci_module *m);
/* Copies an output of the last run out. 0 or an error. */
RICCI_API int ricci_module_fetch(ricci_module *m, const char *name, void *data, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif

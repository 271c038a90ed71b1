/* layer.c - layers that make their parameters.
 * Input: x, a name, options. Output: one tensor; parameters "<name>.weight" and so on, in the scope
 * that is open, with the names, layouts and initial values of PyTorch's modules. Invariant: what
 * these functions do, a user can do with ricci_param and the layer of the same name. */
#include "nn/layers/internal.h"

ricci_tensor *ricci_linear_layer(ricci_tensor *x, const char *name,
				 const ricci_linear_options *options)
{
	Layer l = {.call = "ricci_linear_layer", .name = name};
	ricci_linear_options o = RICCI_LINEAR();
	if (!layer_begin(&l, &(Operand){x, 1, RICCI_MAX_RANK, "x [..., in]"}, &o, sizeof o, options,
			 "ricci_linear_options") ||
	    !layer_positive(&l, "out", o.out))
		return layer_nil(x);
	int64_t in = ricci_extent(x, ricci_rank(x) - 1);
	ricci_init usual = ricci_uniform_fan_in(in);
	ricci_tensor *w =
		layer_parameter(&l, "weight", 2, (int64_t[]){o.out, in}, o.init ? *o.init : usual);
	ricci_tensor *bias =
		o.no_bias ? NULL : layer_parameter(&l, "bias", 1, (int64_t[]){o.out}, usual);
	return ricci_linear(x, w, bias);
}

ricci_tensor *ricci_embedding_layer(ricci_tensor *indices, const char *name,
				    const ricci_embedding_options *options)
{
	Layer l = {.call = "ricci_embedding_layer", .name = name};
	ricci_embedding_options o = RICCI_EMBEDDING();
	if (!layer_begin(&l, &(Operand){indices, 0, RICCI_MAX_RANK - 1, "indices [...]"}, &o,
			 sizeof o, options, "ricci_embedding_options") ||
	    !layer_positive(&l, "count", o.count) || !layer_positive(&l, "out", o.out))
		return layer_nil(indices);
	l.type = o.type;
	ricci_init init = o.init ? *o.init : ricci_normal(1);
	if (o.padding)
		init = ricci_zero_row(init, *o.padding < 0 ? *o.padding + o.count : *o.padding);
	ricci_tensor *w = layer_parameter(&l, "weight", 2, (int64_t[]){o.count, o.out}, init);
	return o.padding ? ricci_embedding_padded(indices, w, *o.padding)
			 : ricci_embedding(indices, w);
}

ricci_tensor *ricci_conv_layer(ricci_tensor *x, const char *name, const ricci_conv_options *options)
{
	Layer l = {.call = "ricci_conv_layer", .name = name};
	ricci_conv_options o = RICCI_CONV();
	if (!layer_begin(&l, &(Operand){x, 3, RICCI_MAX_RANK, "x [batch, channel, ...]"}, &o,
			 sizeof o, options, "ricci_conv_options") ||
	    !layer_positive(&l, "out", o.out))
		return layer_nil(x);
	int64_t in = ricci_extent(x, 1), groups = o.groups ? o.groups : 1, fan = 1;
	if (groups < 1 || in % groups || o.out % groups)
		return layer_fail(
			x, "%s: %lld channels and %d of the result can't be divided into %d groups",
			l.call, (long long)in, o.out, o.groups);
	int64_t shape[RICCI_MAX_RANK] = {o.transposed ? in : o.out,
					 (o.transposed ? o.out : in) / groups};
	for (int d = 0; d < ricci_rank(x) - 2; d++) {
		shape[d + 2] = o.kernels ? o.kernels[d] : o.kernel;
		if (!layer_positive(&l, "a window's size", shape[d + 2]))
			return layer_nil(x);
		fan *= shape[d + 2];
	}
	ricci_init usual = ricci_uniform_fan_in(fan * shape[1]);
	ricci_tensor *w =
		layer_parameter(&l, "weight", ricci_rank(x), shape, o.init ? *o.init : usual);
	ricci_tensor *bias =
		o.no_bias ? NULL : layer_parameter(&l, "bias", 1, (int64_t[]){o.out}, usual);
	return ricci_conv(x, w, bias, &o);
}

/* The parts of a normalisation layer. */
typedef struct Norm {
	ricci_tensor *w, *bias, *mean, *variance;
} Norm;

static Norm norm_make(const Layer *l, const ricci_norm_options *o, int rank, const int64_t *shape)
{
	ricci_init one = ricci_constant(1), zero = ricci_constant(0);
	Norm n = {0};
	if (!o->plain)
		n.w = layer_parameter(l, "weight", rank, shape, o->init ? *o->init : one);
	if (!o->plain && !o->no_bias && o->kind != RICCI_RMS_NORM)
		n.bias = layer_parameter(l, "bias", rank, shape, zero);
	if (o->kind == RICCI_BATCH_NORM) {
		n.mean = layer_state(l, "running_mean", rank, shape, zero);
		n.variance = layer_state(l, "running_var", rank, shape, one);
	}
	return n;
}

ricci_tensor *ricci_norm_layer(ricci_tensor *x, const char *name, const ricci_norm_options *options)
{
	Layer l = {.call = "ricci_norm_layer", .name = name};
	ricci_norm_options o = RICCI_NORM();
	if (!layer_begin(&l, &(Operand){x, 1, RICCI_MAX_RANK, "x of at least one dimension"}, &o,
			 sizeof o, options, "ricci_norm_options"))
		return layer_nil(x);
	bool tail = o.kind == RICCI_LAYER_NORM || o.kind == RICCI_RMS_NORM;
	int rank = ricci_rank(x), dims = o.dims ? o.dims : 1;
	if (dims < 1 || (tail ? dims > rank : rank < 2))
		return layer_fail(x, "%s: x has %d dimensions, not %d", l.call, rank,
				  tail ? dims : 2);
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < dims; d++)
		shape[d] = ricci_extent(x, tail ? rank - dims + d : 1);
	double usual = o.kind != RICCI_RMS_NORM ? 1e-5 : type_epsilon(ricci_dtype(x));
	double epsilon = o.epsilon ? o.epsilon : usual;
	if (o.kind > RICCI_RMS_NORM)
		return layer_fail(x, "%s: unknown kind %d", l.call, (int)o.kind);
	Norm n = norm_make(&l, &o, tail ? dims : 1, shape);
	switch (o.kind) {
	case RICCI_LAYER_NORM:
		return ricci_layer_norm(x, n.w, n.bias, dims, epsilon);
	case RICCI_GROUP_NORM:
		return ricci_group_norm(x, n.w, n.bias, o.groups, epsilon);
	case RICCI_INSTANCE_NORM:
		return ricci_instance_norm(x, n.w, n.bias, epsilon);
	case RICCI_RMS_NORM:
		return ricci_rms_norm(x, n.w, dims, epsilon);
	default:
		return ricci_batch_norm(x, n.w, n.bias, n.mean, n.variance,
					o.momentum ? o.momentum : 0.1, epsilon);
	}
}

/* module.c - layers that make their parameters.
 * Input: x, a name, options. Output: one tensor; parameters "<name>.weight" and so on, in the scope
 * that is open, with the names, layouts and initial values of PyTorch's modules. Invariant: what
 * these functions do, a user can do with ricci_param and the layer of the same name. */
#include "nn/layers/internal.h"

/* A tensor of x's graph, of this type: trained, or a state. */
static ricci_tensor *make(ricci_tensor *x, ricci_type type, const char *name, const char *leaf,
			  int rank, const int64_t *shape, ricci_init init, bool trained)
{
	ricci_graph *g = ricci_graph_of(x);
	Text t = {0};
	text_add(&t, *name ? "%s.%s" : "%s%s", name, leaf);
	ricci_tensor *y = layer_nil(x);
	if (t.failed)
		error_set(&g->ir.err, RICCI_ENOMEM, "out of memory");
	else
		y = (trained ? ricci_param : ricci_state)(g, t.s, type, rank, shape, init);
	text_free(&t);
	return y;
}

/* Are there x, of a possible rank, and a name? Copies the options. */
static bool begin(const char *who, const Operand *x, const char *name, void *to, size_t size,
		  const void *options, const char *type)
{
	if (!layer_check(who, 1, x))
		return false;
	Error *e = &ricci_graph_of(x->t)->ir.err;
	if (!name || !options) {
		error_set(e, RICCI_EINVAL, "%s: no %s given", who, name ? "options" : "name");
		return false;
	}
	return !struct_take(to, size, options, type, e);
}

/* Is the number 1 or more? */
static bool positive(const char *who, ricci_tensor *x, const char *what, int64_t n)
{
	if (n < 1)
		layer_fail(x, "%s: %s is %lld, it must be 1 or more", who, what, (long long)n);
	return n >= 1;
}

ricci_tensor *ricci_linear_layer(ricci_tensor *x, const char *name,
				 const ricci_linear_options *options)
{
	const char *who = "ricci_linear_layer";
	ricci_linear_options o = RICCI_LINEAR();
	if (!begin(who, &(Operand){x, 1, RICCI_MAX_RANK, "x [..., in]"}, name, &o, sizeof o,
		   options, "ricci_linear_options") ||
	    !positive(who, x, "out", o.out))
		return layer_nil(x);
	int64_t in = ricci_extent(x, ricci_rank(x) - 1);
	ricci_init usual = ricci_uniform_fan_in(in);
	ricci_type type = ricci_dtype(x);
	ricci_tensor *w = make(x, type, name, "weight", 2, (int64_t[]){o.out, in},
			       o.init ? *o.init : usual, true);
	ricci_tensor *bias =
		o.no_bias ? NULL : make(x, type, name, "bias", 1, (int64_t[]){o.out}, usual, true);
	return ricci_linear(x, w, bias);
}

ricci_tensor *ricci_embedding_layer(ricci_tensor *indices, const char *name,
				    const ricci_embedding_options *options)
{
	const char *who = "ricci_embedding_layer";
	ricci_embedding_options o = RICCI_EMBEDDING();
	if (!begin(who, &(Operand){indices, 0, RICCI_MAX_RANK - 1, "indices [...]"}, name, &o,
		   sizeof o, options, "ricci_embedding_options") ||
	    !positive(who, indices, "count", o.count) || !positive(who, indices, "out", o.out))
		return layer_nil(indices);
	return ricci_embedding(indices,
			       make(indices, o.type, name, "weight", 2, (int64_t[]){o.count, o.out},
				    o.init ? *o.init : ricci_normal(1), true));
}

ricci_tensor *ricci_conv_layer(ricci_tensor *x, const char *name, const ricci_conv_options *options)
{
	const char *who = "ricci_conv_layer";
	ricci_conv_options o = RICCI_CONV();
	if (!begin(who, &(Operand){x, 3, RICCI_MAX_RANK, "x [batch, channel, ...]"}, name, &o,
		   sizeof o, options, "ricci_conv_options") ||
	    !positive(who, x, "out", o.out))
		return layer_nil(x);
	int64_t in = ricci_extent(x, 1), groups = o.groups ? o.groups : 1, fan = 1;
	if (groups < 1 || in % groups || o.out % groups)
		return layer_fail(x, "%s: %lld channels and %d of the result in %d groups", who,
				  (long long)in, o.out, o.groups);
	int64_t shape[RICCI_MAX_RANK] = {o.transposed ? in : o.out,
					 (o.transposed ? o.out : in) / groups};
	for (int d = 0; d < ricci_rank(x) - 2; d++) {
		shape[d + 2] = o.kernels ? o.kernels[d] : o.kernel;
		if (!positive(who, x, "a window's size", shape[d + 2]))
			return layer_nil(x);
		fan *= shape[d + 2];
	}
	ricci_init usual = ricci_uniform_fan_in(fan * shape[1]);
	ricci_type type = ricci_dtype(x);
	ricci_tensor *w =
		make(x, type, name, "weight", ricci_rank(x), shape, o.init ? *o.init : usual, true);
	ricci_tensor *bias =
		o.no_bias ? NULL : make(x, type, name, "bias", 1, (int64_t[]){o.out}, usual, true);
	return ricci_conv(x, w, bias, &o);
}

/* The parts of a normalisation layer. */
typedef struct Norm {
	ricci_tensor *w, *bias, *mean, *variance;
} Norm;

static Norm norm_make(ricci_tensor *x, const char *name, const ricci_norm_options *o, int rank,
		      const int64_t *shape)
{
	ricci_init one = ricci_constant(1), zero = ricci_constant(0);
	ricci_type type = ricci_dtype(x);
	Norm n = {0};
	if (!o->plain)
		n.w = make(x, type, name, "weight", rank, shape, o->init ? *o->init : one, true);
	if (!o->plain && !o->no_bias && o->kind != RICCI_RMS_NORM)
		n.bias = make(x, type, name, "bias", rank, shape, zero, true);
	if (o->kind == RICCI_BATCH_NORM) {
		n.mean = make(x, type, name, "running_mean", rank, shape, zero, false);
		n.variance = make(x, type, name, "running_var", rank, shape, one, false);
	}
	return n;
}

ricci_tensor *ricci_norm_layer(ricci_tensor *x, const char *name, const ricci_norm_options *options)
{
	const char *who = "ricci_norm_layer";
	ricci_norm_options o = RICCI_NORM();
	if (!begin(who, &(Operand){x, 1, RICCI_MAX_RANK, "x of at least one dimension"}, name, &o,
		   sizeof o, options, "ricci_norm_options"))
		return layer_nil(x);
	bool tail = o.kind == RICCI_LAYER_NORM || o.kind == RICCI_RMS_NORM;
	int rank = ricci_rank(x), dims = o.dims ? o.dims : 1;
	if (dims < 1 || (tail ? dims > rank : rank < 2))
		return layer_fail(x, "%s: x has %d dimensions, not %d", who, rank, tail ? dims : 2);
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < dims; d++)
		shape[d] = ricci_extent(x, tail ? rank - dims + d : 1);
	double usual = o.kind != RICCI_RMS_NORM ? 1e-5 : type_epsilon(ricci_dtype(x));
	double epsilon = o.epsilon ? o.epsilon : usual;
	if (o.kind > RICCI_RMS_NORM)
		return layer_fail(x, "%s: unknown kind %d", who, (int)o.kind);
	Norm n = norm_make(x, name, &o, tail ? dims : 1, shape);
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

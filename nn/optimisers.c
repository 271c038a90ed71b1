/* optimisers.c - gradients of all parameters, and their next values as index expressions.
 * Input: a loss. Output: assignments (ricci_assign) of every parameter and of the optimiser's own
 * states, which are named after the parameter. Invariant: moments are kept in f32, or f64 for f64
 * parameters; the rate is read anew each step. */
#include "nn/nn.h"

typedef struct Trained {
	ricci_graph *g;
	int n;
	ricci_tensor **param, **grad;
} Trained;

static void trained_free(Trained *t)
{
	mem_free(t->param);
	mem_free(t->grad);
}

/* The parameters of the loss's graph and their gradients. 0 or the graph's error. */
static int trained_start(Trained *t, ricci_tensor *loss, ricci_tensor *rate)
{
	*t = (Trained){.g = loss ? ricci_graph_of(loss) : NULL};
	if (!t->g)
		return RICCI_EINVAL;
	if (!ricci_graph_error(t->g) && (!rate || ricci_rank(rate)))
		layer_fail(loss,
			   "the rate of an optimiser is a scalar tensor (ricci_learning_rate)");
	if (ricci_graph_error(t->g))
		return ricci_graph_error(t->g);
	int count = ricci_param_count(t->g), trained;
	t->param = mem_alloc((size_t)(count + 1) * sizeof *t->param);
	t->grad = mem_zalloc((size_t)(count + 1) * sizeof *t->grad);
	if (!t->param || !t->grad)
		return error_set(&t->g->ir.err, RICCI_ENOMEM, "out of memory");
	for (int i = 0; i < count; i++) {
		ricci_tensor *p = ricci_param_at(t->g, i, &trained);
		if (trained)
			t->param[t->n++] = p;
	}
	return ricci_grad(t->g, loss, NULL, t->n, t->param, t->grad);
}

static const char *moment_type(const ricci_tensor *p)
{
	return type_name(ricci_dtype(p) == RICCI_F64 ? RICCI_F64 : RICCI_F32);
}

/* A state of p's shape, starting at zero. */
static ricci_tensor *moment(ricci_tensor *p, const char *suffix)
{
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < ricci_rank(p); d++)
		shape[d] = ricci_extent(p, d);
	ricci_graph *g = ricci_graph_of(p);
	ricci_tensor *state = layer_nil(p);
	Text name = {0};
	text_add(&name, "%s.%s", ricci_name(p), suffix);
	if (name.failed)
		error_set(&g->ir.err, RICCI_ENOMEM, "out of memory");
	else
		state = ricci_state(g, name.s, ricci_dtype(p) == RICCI_F64 ? RICCI_F64 : RICCI_F32,
				    ricci_rank(p), shape, ricci_constant(0));
	text_free(&name);
	return state;
}

/* One equation over p's indices: '@' in the pattern stands for them, '$' for the moments' type, '#'
 * for p's. */
static ricci_tensor *update(ricci_tensor *p, const char *pattern, int n,
			    ricci_tensor *const *operands)
{
	Text t = {0};
	for (const char *s = pattern; *s; s++) {
		if (*s == '@')
			layer_indices(&t, 0, ricci_rank(p));
		else if (*s == '$')
			text_add(&t, "%s", moment_type(p));
		else if (*s == '#')
			text_add(&t, "%s", type_name(ricci_dtype(p)));
		else
			text_put(&t, s, 1);
	}
	return layer_build(&t, n, operands);
}

ricci_tensor *ricci_learning_rate(ricci_graph *g, double value)
{
	return ricci_state(g, "learning_rate", RICCI_F32, 0, NULL, ricci_constant(value));
}

int ricci_sgd(ricci_tensor *loss, ricci_tensor *rate)
{
	Trained t;
	int status = trained_start(&t, loss, rate);
	for (int i = 0; i < t.n && !status; i++) {
		ricci_tensor *p = t.param[i];
		ricci_tensor *next = update(p, "Y[@] = #($(P[@]) - $(R[]) * $(G[@]))", 3,
					    (ricci_tensor *[]){p, rate, t.grad[i]});
		status = ricci_assign(t.g, p, next);
	}
	trained_free(&t);
	return status;
}

int ricci_momentum(ricci_tensor *loss, ricci_tensor *rate, double momentum)
{
	Trained t;
	int status = trained_start(&t, loss, rate);
	char pattern[96];
	snprintf(pattern, sizeof pattern, "Y[@] = %#.17g * M[@] + $(G[@])", momentum);
	for (int i = 0; i < t.n && !status; i++) {
		ricci_tensor *p = t.param[i], *m = moment(p, "moment");
		ricci_tensor *v = update(p, pattern, 2, (ricci_tensor *[]){m, t.grad[i]});
		ricci_tensor *next = update(p, "Y[@] = #($(P[@]) - $(R[]) * V[@])", 3,
					    (ricci_tensor *[]){p, rate, v});
		ricci_assign(t.g, m, v);
		status = ricci_assign(t.g, p, next);
	}
	trained_free(&t);
	return status;
}

/* The two bias corrections, scalars made once a step: R / (1 - beta1^t) and 1 / (1 - beta2^t), with
 * expm1 against the cancellation of the first steps' 1 - .999. */
static int adam_scalars(Trained *t, ricci_tensor *rate, double beta1, double beta2,
			ricci_tensor **scaled, ricci_tensor **second)
{
	ricci_tensor *step = ricci_state(t->g, "adam.step", RICCI_I32, 0, NULL, ricci_constant(0));
	ricci_tensor *next = ricci_op(t->g, "Y[] = T[] + 1", step);
	char text[128];
	snprintf(text, sizeof text, "Y[] = f32(R[]) / -expm1(f32(T[]) * log(%#.17g))", beta1);
	*scaled = ricci_op(t->g, text, rate, next);
	snprintf(text, sizeof text, "Y[] = 1.0 / -expm1(f32(T[]) * log(%#.17g))", beta2);
	*second = ricci_op(t->g, text, next);
	return ricci_assign(t->g, step, next);
}

int ricci_adam(ricci_tensor *loss, ricci_tensor *rate, double beta1, double beta2, double epsilon)
{
	Trained t;
	ricci_tensor *scaled, *second;
	int status = trained_start(&t, loss, rate);
	if (!status)
		status = adam_scalars(&t, rate, beta1, beta2, &scaled, &second);
	char first[96], square[96], value[128];
	snprintf(first, sizeof first, "Y[@] = %#.17g * M[@] + %#.17g * $(G[@])", beta1, 1 - beta1);
	snprintf(square, sizeof square, "Y[@] = %#.17g * V[@] + %#.17g * $(G[@]) * $(G[@])", beta2,
		 1 - beta2);
	snprintf(value, sizeof value,
		 "Y[@] = #($(P[@]) - $(R[]) * M[@] / (sqrt(V[@] * $(S[])) + %#.17g))", epsilon);
	for (int i = 0; i < t.n && !status; i++) {
		ricci_tensor *p = t.param[i], *g = t.grad[i];
		ricci_tensor *m = moment(p, "moment1"), *v = moment(p, "moment2");
		ricci_tensor *m1 = update(p, first, 2, (ricci_tensor *[]){m, g});
		ricci_tensor *v1 = update(p, square, 2, (ricci_tensor *[]){v, g});
		ricci_tensor *next =
			update(p, value, 5, (ricci_tensor *[]){p, scaled, m1, v1, second});
		ricci_assign(t.g, m, m1);
		ricci_assign(t.g, v, v1);
		status = ricci_assign(t.g, p, next);
	}
	trained_free(&t);
	return status;
}

/* check_gradient.c - symbolic gradients against finite differences.
 * Input: a loss, the tensors to differentiate by, values of what it reads, or none: they are drawn.
 * Output: agreement, or an error that names the worst element. Invariant: the graph gets the
 * equations of the gradients and is otherwise as it was; all values are the reference interpreter's,
 * which computes f32 graphs in f64, too. */
#include "nn/data/data.h"
#include "nn/nn.h"

#include <math.h>
#include <string.h>

typedef struct Check {
	ricci_graph *g;
	ricci_gradient_check o;
	ricci_gradient_report best; /* of the worst element so far */
	Node *loss, **gradient;
	ricci_tensor **wrt, *worst;
	int nwrt, nbind;
	Binding *bind;
	double *values; /* room for the largest tensor */
	double base;	/* the loss at the values */
	Error err;
} Check;

/* ---- values of what the loss reads ---- */

static void store(Type type, void *data, int64_t i, double v)
{
	switch (type) {
	case RICCI_F32:
		((float *)data)[i] = (float)v;
		break;
	case RICCI_F64:
		((double *)data)[i] = v;
		break;
	case RICCI_I8:
		((int8_t *)data)[i] = (int8_t)v;
		break;
	case RICCI_I32:
		((int32_t *)data)[i] = (int32_t)v;
		break;
	case RICCI_I64:
		((int64_t *)data)[i] = (int64_t)v;
		break;
	default:
		((uint8_t *)data)[i] = (uint8_t)v;
		break; /* U8, BOOL */
	}
}

/* A number as the initialiser says, v being uniform in -1..1. */
static double initial(const ricci_tensor *t, int64_t i, double v)
{
	const ricci_init *in = &t->init;
	int64_t rows = ricci_rank(t) ? ricci_extent(t, 0) : 1,
		columns = tensor_size(t->node) / rows;
	switch (in->kind) {
	case INIT_CONSTANT:
		return in->a + v / 2;
	case INIT_VALUES:
		return type_load((Type)in->type, in->values, (size_t)i) + v / 2;
	case INIT_UNIFORM:
		return in->a + (in->b - in->a) * (v + 1) / 2;
	case INIT_ORTHOGONAL:
		return 1.7 * v * in->a / sqrt((double)(rows > columns ? rows : columns));
	default:
		return 1.7 * v * in->a;
	}
}

/* Parameters as their initialisers say, constants and values moved by up to 1/2, so that no element
 * is at a kink, normal and orthogonal ones uniform with that deviation; other floats from -1 to 1;
 * integers among those that an index may be, from 0 on. */
static void draw(Check *c, const ricci_tensor *t, int stream, void *data)
{
	Type type = (Type)t->node->type;
	Rng r = rng_make(c->o.seed, (uint64_t)stream);
	int64_t low = t->need_lo > 0 ? t->need_lo : 0, high = t->need_hi;
	if (type == RICCI_BOOL)
		high = 1;
	else if (high > low + 9)
		high = low + 9;
	for (int64_t i = 0; i < tensor_size(t->node); i++) {
		double v = rng_range(&r, -1, 1);
		if (!type_is_float(type))
			v = (double)(low + (int64_t)rng_below(&r, (uint64_t)(high - low) + 1));
		else if (t->role != ROLE_INPUT)
			v = initial(t, i, v);
		store(type, data, i, v);
	}
}

static const void *given(const Check *c, const ricci_tensor *t)
{
	for (int k = 0; k < c->o.nvalue; k++)
		if (c->o.value[k].tensor == t)
			return c->o.value[k].data;
	return NULL;
}

static int bind(Check *c, const ricci_tensor *t, int stream)
{
	const void *from = given(c, t);
	if (!from && (t->node->type == RICCI_BF16 || t->node->type == RICCI_F16))
		return error_set(&c->err, RICCI_ETYPE,
				 "ricci_check_gradient: %s has 16 bits; give its values", t->name);
	void *data = mem_alloc(ricci_bytes(t) + 1);
	if (!data)
		return error_set(&c->err, RICCI_ENOMEM, "out of memory");
	c->bind[c->nbind++] = (Binding){t->node, data};
	if (from)
		memcpy(data, from, ricci_bytes(t));
	else
		draw(c, t, stream, data);
	return 0;
}

/* Binds every input, parameter and state that the gradients need. */
static int bind_all(Check *c, int nroot, Node *const *roots)
{
	Node **order;
	int stream = 0, n = graph_order(&c->g->ir, nroot, roots, &order);
	NodeMap needed = {0};
	c->bind = mem_alloc(sizeof *c->bind * ((size_t)n + 1));
	if (!c->bind)
		return error_set(&c->err, RICCI_ENOMEM, "out of memory");
	for (int k = 0; k < n; k++)
		node_map_put(&c->g->ir, &needed, order[k], order[k]);
	for (const ricci_tensor *t = c->g->first; t && !c->err.code; t = t->next)
		if ((t->role == ROLE_INPUT || t->role == ROLE_PARAM || t->role == ROLE_STATE) &&
		    node_map_get(&needed, t->node))
			bind(c, t, stream++);
	return c->err.code;
}

/* ---- differences ---- */

static int value_of(Check *c, Node *t)
{
	return interp_tensor(t, c->nbind, c->bind, (RandomState){c->o.seed, 1}, c->values, NULL,
			     &c->err);
}

static double loss_now(Check *c)
{
	double sum = 0;
	if (value_of(c, c->loss))
		return NAN;
	for (int64_t k = 0; k < tensor_size(c->loss); k++)
		sum += c->values[k];
	return sum;
}

/* The loss with element i of the tensor at `delta` from x; *at is what became of x + delta. */
static double loss_at(Check *c, const Binding *b, int64_t i, double x, double delta, double *at)
{
	bool wide = b->tensor->type == RICCI_F64;
	void *data = (void *)(uintptr_t)b->data;
	store((Type)b->tensor->type, data, i, x + delta);
	*at = wide ? ((double *)data)[i] : (double)((float *)data)[i];
	return loss_now(c);
}

/* Central difference; *bend: how much less or more the slopes of both sides are than each other. */
static double central(Check *c, const Binding *b, int64_t i, double x, double step, double *bend)
{
	double high, low;
	double up = loss_at(c, b, i, x, step, &high), down = loss_at(c, b, i, x, -step, &low);
	*bend = (up - c->base) / (high - x) - (c->base - down) / (x - low);
	return (up - down) / (high - low);
}

/* The least relative error of steps h, h/8, h/64 .., by Richardson's extrapolation of central
 * differences; NAN where those of h and 2 h, or the slopes of both sides, never agree, at a kink or
 * a jump. */
static double element_error(Check *c, const Binding *b, int64_t i, double gradient, double scale,
			    double *difference)
{
	bool wide = b->tensor->type == RICCI_F64;
	double x = wide ? ((const double *)b->data)[i] : (double)((const float *)b->data)[i];
	double h = c->o.step * fmax(1, fabs(x)), least = NAN, kept, bend, unused;
	int tries = wide ? 5 : 3; /* smaller steps are rounded away in f32 */
	for (int k = 0; k < tries && !(least <= c->o.tolerance) && !c->err.code; k++, h /= 8) {
		double one = central(c, b, i, x, h, &bend);
		double two = central(c, b, i, x, 2 * h, &unused);
		double d = one + (one - two) / 3, most = fmax(scale, fmax(fabs(d), fabs(gradient)));
		if (!isfinite(d) || fabs(one - two) > 1e-3 * most || fabs(bend) > 1e-2 * most)
			continue;
		double error = isfinite(gradient) ? fabs(gradient - d) : INFINITY;
		error = error > 0 && isfinite(error) ? error / most : error;
		if (!(least <= error)) {
			least = error;
			*difference = d;
		}
	}
	loss_at(c, b, i, x, 0, &kept);
	return least;
}

static void report_element(Check *c, ricci_tensor *t, int64_t i, double gradient, double difference,
			   double error)
{
	c->best.checked++;
	if (c->worst && error <= c->best.error)
		return;
	c->worst = c->best.tensor = t;
	c->best.gradient = gradient;
	c->best.difference = difference;
	c->best.error = error;
	for (int d = ricci_rank(t) - 1; d >= 0; d--) {
		c->best.element[d] = i % ricci_extent(t, d);
		i /= ricci_extent(t, d);
	}
}

/* One tensor: all elements, or a sample of them. */
static int check_tensor(Check *c, int k)
{
	ricci_tensor *t = c->wrt[k];
	const Binding *b = c->bind;
	int64_t n = tensor_size(t->node), most = c->o.samples < n ? c->o.samples : n;
	Rng r = rng_make(c->o.seed + 1, (uint64_t)k);
	if (value_of(c, c->gradient[k]))
		return c->err.code;
	double *gradient = mem_alloc(sizeof *gradient * (size_t)n), sum = 0;
	if (!gradient)
		return error_set(&c->err, RICCI_ENOMEM, "out of memory");
	memcpy(gradient, c->values, sizeof *gradient * (size_t)n);
	for (int64_t i = 0; i < n; i++)
		sum += isfinite(gradient[i]) ? fabs(gradient[i]) : 0;
	while (b < c->bind + c->nbind && b->tensor != t->node)
		b++;
	bool bound = b < c->bind + c->nbind; /* otherwise the loss does not depend on it */
	for (int64_t at = 0; at < most && bound && !c->err.code; at++) {
		/* of each of `most` equal parts one */
		int64_t from = n / most * at + (at < n % most ? at : n % most);
		int64_t size = n / most + (at < n % most);
		int64_t i = from + (int64_t)rng_below(&r, (uint64_t)size);
		double difference = 0;
		double error = element_error(c, b, i, gradient[i], sum / (double)n, &difference);
		if (isnan(error))
			c->best.skipped++;
		else
			report_element(c, t, i, gradient[i], difference, error);
	}
	mem_free(gradient);
	return c->err.code;
}

static int verdict(Check *c)
{
	Text name = {0};
	const ricci_gradient_report *w = &c->best;
	if (c->err.code)
		return c->err.code;
	if (!w->checked && w->skipped)
		return error_set(&c->err, RICCI_EVALUE,
				 "ricci_check_gradient: differences don't converge at any of %lld "
				 "elements: the loss jumps, has kinks, or is rounded to 16 bits",
				 (long long)w->skipped);
	if (!c->worst || w->error <= c->o.tolerance)
		return 0;
	for (int d = 0; d < ricci_rank(c->worst); d++)
		text_add(&name, "%s%lld", d ? "," : "", (long long)w->element[d]);
	error_set(&c->err, RICCI_EVALUE,
		  "ricci_check_gradient: the derivative by %s[%s] is %.9g by the gradient, %.9g by "
		  "differences: a relative error of %.3g, the tolerance is %.3g",
		  ricci_name(c->worst), name.s ? name.s : "", w->gradient, w->difference, w->error,
		  c->o.tolerance);
	text_free(&name);
	return c->err.code;
}

/* ---- the call ---- */

static int options_check(Check *c, const ricci_tensor *loss)
{
	const char *who = "ricci_check_gradient";
	if (!type_is_float((Type)loss->node->type))
		return error_set(&c->err, RICCI_ETYPE, "%s: the loss is %s, it must be a float",
				 who, type_name((Type)loss->node->type));
	if (c->o.step < 0 || c->o.tolerance < 0 || c->o.samples < 0 || c->o.nvalue < 0)
		return error_set(&c->err, RICCI_EINVAL,
				 "%s: step, tolerance, samples and nvalue must not be negative",
				 who);
	c->o.step = c->o.step > 0 ? c->o.step : 1e-3;
	c->o.tolerance = c->o.tolerance > 0 ? c->o.tolerance : 1e-6;
	c->o.samples = c->o.samples ? c->o.samples : 32;
	if (!c->nwrt)
		return error_set(
			&c->err, RICCI_EINVAL,
			"%s: the graph has no parameters; name the tensors to differentiate by",
			who);
	for (int k = 0; k < c->o.nvalue; k++)
		if (!c->o.value[k].tensor || !c->o.value[k].data ||
		    c->o.value[k].bytes != ricci_bytes(c->o.value[k].tensor))
			return error_set(
				&c->err, RICCI_EINVAL,
				"%s: value %d needs a tensor, and as many bytes as that has", who,
				k);
	for (int k = 0; k < c->nwrt; k++) {
		const ricci_tensor *t = c->wrt[k];
		if (!t || t->g != c->g || t->role == ROLE_COMP || t->role == ROLE_VARIABLE ||
		    (t->node->type != RICCI_F32 && t->node->type != RICCI_F64))
			return error_set(
				&c->err, RICCI_EINVAL,
				"%s: wrt[%d] must be an input, a parameter or a state of the "
				"loss's graph, f32 or f64",
				who, k);
	}
	if (graph_frozen(c->g))
		return error_set(&c->err, RICCI_EINVAL,
				 "%s: the graph has sessions; check before they are made", who);
	return 0;
}

/* All parameters, when none are named. */
static int wrt_take(Check *c, int n, ricci_tensor *const *wrt)
{
	int count = n ? n : ricci_param_count(c->g);
	c->wrt = mem_alloc(sizeof *c->wrt * ((size_t)count + 1));
	c->gradient = mem_zalloc(sizeof(Node *) * ((size_t)count + 1));
	if (!c->wrt || !c->gradient)
		return error_set(&c->err, RICCI_ENOMEM, "out of memory");
	for (int k = 0; k < count; k++) {
		int trained = 1;
		ricci_tensor *t = n ? wrt[k] : ricci_param_at(c->g, k, &trained);
		if (trained)
			c->wrt[c->nwrt++] = t;
	}
	return 0;
}

/* The loss and its gradients, as training sessions run them or others, and values for both. */
static int prepare(Check *c, ricci_tensor *loss)
{
	Ir *ir = &c->g->ir;
	ricci_tensor **grads = mem_alloc(sizeof(ricci_tensor *) * ((size_t)c->nwrt + 1));
	if (!grads)
		return error_set(&c->err, RICCI_ENOMEM, "out of memory");
	int code = ricci_grad(c->g, loss, NULL, c->nwrt, c->wrt, grads);
	int64_t most = tensor_size(loss->node);
	for (int k = 0; k < c->nwrt && !code; k++) {
		c->gradient[k] = grads[k]->node;
		if (tensor_size(grads[k]->node) > most)
			most = tensor_size(grads[k]->node);
	}
	mem_free(grads);
	c->values = code ? NULL : mem_alloc(sizeof *c->values * (size_t)most);
	if (code || !c->values)
		return code ? code : error_set(&c->err, RICCI_ENOMEM, "out of memory");
	IR_ENTER(ir, RICCI_ENOMEM);
	Node **roots = arena_alloc(&ir->arena, sizeof(Node *) * ((size_t)c->nwrt + 1));
	memcpy(roots, c->gradient, sizeof(Node *) * (size_t)c->nwrt);
	roots[c->nwrt] = loss->node;
	graph_set_training(ir, c->nwrt + 1, roots, c->o.train != 0);
	memcpy(c->gradient, roots, sizeof(Node *) * (size_t)c->nwrt);
	c->loss = roots[c->nwrt];
	bind_all(c, c->nwrt + 1, roots);
	IR_LEAVE(ir);
	return c->err.code;
}

int ricci_check_gradient(ricci_tensor *loss, int n, ricci_tensor *const *wrt,
			 const ricci_gradient_check *options, ricci_gradient_report *report)
{
	Check c = {.o = {.size = sizeof c.o}, .best = {.size = sizeof c.best}};
	if (!loss || n < 0 || (n && !wrt))
		return error_set(
			ERROR_TELL, RICCI_EINVAL,
			"ricci_check_gradient: no loss, or no tensors to differentiate by");
	c.g = loss->g;
	c.err.tell = true;
	if (ricci_graph_error(c.g))
		return ricci_graph_error(c.g);
	int code = options ? struct_take(&c.o, sizeof c.o, options, "ricci_gradient_check", &c.err)
			   : 0;
	if (!code)
		code = wrt_take(&c, n, wrt);
	if (!code)
		code = options_check(&c, loss);
	if (!code)
		code = prepare(&c, loss);
	if (!code)
		c.base = loss_now(&c);
	for (int k = 0; k < c.nwrt && !code; k++)
		code = check_tensor(&c, k);
	if (!code)
		code = verdict(&c);
	for (int k = 0; k < c.nbind; k++)
		mem_free((void *)(uintptr_t)c.bind[k].data);
	mem_free(c.bind);
	mem_free(c.values);
	mem_free(c.gradient);
	mem_free(c.wrt);
	if (report)
		struct_give(report, &c.best, sizeof c.best);
	return code;
}

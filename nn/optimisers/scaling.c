/* scaling.c - dynamic loss scaling, for gradients that would vanish in 16-bit factors.
 * Input: a scalar loss, options. Output: a seed of its gradient, the scale; from the gradients that
 * it gives, these divided by the scale again, and whether all are finite, from which the scale of
 * the next step follows. Source: Micikevicius et al. 2018, "Mixed precision training", section 3.2,
 * with the rules of PyTorch's GradScaler. Invariant: a scale is a power of two, so that both products
 * are exact; it and its count of steps are states, so nothing leaves the device. */
#include "nn/optimisers/internal.h"

#include <limits.h>

#define fail(g, ...) optimiser_refuse(g, "ricci_scaling", __VA_ARGS__)

/* ---- options ---- */

static bool is_power(double x)
{
	int exponent;
	return x > 0 && isfinite(x) && frexp(x, &exponent) == 0.5;
}

/* A power of two in low..high; `usual` where it is 0. */
static int power_check(ricci_graph *g, const char *name, double *x, double usual, double low,
		       double high)
{
	*x = *x == 0 ? usual : *x;
	if (!is_power(*x))
		return fail(g, "%s is %g, it must be a power of two", name, *x);
	if (*x < low || *x > high)
		return fail(g, "%s is %g, it must be in %g..%g", name, *x, low, high);
	return 0;
}

static int options_check(ricci_graph *g, ricci_scaling *o)
{
	const double most = 0x1p120, first = o->initial ? o->initial : 0x1p16;
	if ((o->initial && power_check(g, "initial", &o->initial, 0, 1 / most, most)) ||
	    power_check(g, "least", &o->least, fmin(1, first), 1 / most, most) ||
	    power_check(g, "greatest", &o->greatest, fmax(fmax(0x1p24, first), o->least), o->least,
			most) ||
	    power_check(g, "initial", &o->initial, fmin(fmax(first, o->least), o->greatest),
			o->least, o->greatest) ||
	    power_check(g, "factor", &o->factor, 2, 2, most))
		return ricci_graph_error(g);
	if (o->period < 0 || o->period == INT_MAX)
		return fail(g,
			    "period is %d steps, it must be 0 (usual: 2000) or more, and below %d",
			    o->period, INT_MAX);
	o->period = o->period ? o->period : 2000;
	return 0;
}

/* ---- equations ---- */

static ricci_tensor *count_new(ricci_graph *g, const char *name)
{
	Text t = {0};
	ricci_tensor *state = &g->nil;
	text_add(&t, "%s.steps", name);
	if (t.failed)
		error_set(&g->ir.err, RICCI_ENOMEM, "out of memory");
	else
		state = ricci_state(g, t.s, RICCI_I32, 0, NULL, ricci_constant(0));
	text_free(&t);
	return state;
}

int scaling_begin(Scaling *s, ricci_graph *g, const ricci_scaling *options)
{
	ricci_scaling *o = &s->o;
	*s = (Scaling){.g = g, .o = RICCI_SCALING()};
	if ((options && struct_take(o, sizeof *o, options, "ricci_scaling", &g->ir.err)) ||
	    options_check(g, o))
		return ricci_graph_error(g);
	const char *name = o->name ? o->name : "loss_scale";
	s->scale = ricci_state(g, name, RICCI_F32, 0, NULL, ricci_constant(o->initial));
	s->steps = count_new(g, name);
	return ricci_graph_error(g);
}

/* In f32, or f64: a gradient of 16 bits would vanish once more. */
static ricci_tensor *unscaled(Formula shared, ricci_tensor *grad, ricci_tensor **infinite)
{
	Formula f = shared;
	formula_over(&f, grad);
	formula_number(&f, "largest",
		       f.type == RICCI_F64 ? 0x1.fffffffffffffp1023 : 0x1.fffffep127);
	formula_set(&f, "A", formula_cast(grad, f.type));
	formula_run(&f, "G[...] = A[...] * inverse[];"
			"B[] += abs(A[...]) <= largest[] ? 0.0 : 1.0");
	*infinite = formula_get(&f, "B");
	return formula_get(&f, "G");
}

/* The scale of the next step. */
static void scale_update(const Scaling *s, Formula *f)
{
	const ricci_scaling *o = &s->o;
	formula_set(f, "C", s->steps);
	formula_set(f, "period", ricci_integer(s->g, o->period));
	formula_number(f, "factor", o->factor);
	formula_number(f, "least", o->least);
	formula_number(f, "greatest", o->greatest);
	formula_run(f, "C, period -> D: D[] = C[] + 1 < period ? C[] + 1 : 0");
	formula_run(f, "N[] = ok[] ? D[] : 0;"
		       "R[] = ok[] ? D[] == 0 ? min(S[] * factor[], greatest[]) : S[]"
		       " : max(S[] / factor[], least[])");
	ricci_assign(s->g, s->steps, formula_get(f, "N"));
	ricci_assign(s->g, s->scale, formula_cast(formula_get(f, "R"), RICCI_F32));
}

ricci_tensor *scaling_end(const Scaling *s, int n, ricci_tensor **grad)
{
	Formula f = {.g = s->g, .type = RICCI_F64};
	ricci_tensor **infinite = mem_zalloc((size_t)(n + 1) * sizeof *infinite);
	if (!infinite) {
		error_set(&s->g->ir.err, RICCI_ENOMEM, "out of memory");
		return &s->g->nil;
	}
	formula_set(&f, "S", formula_cast(s->scale, f.type));
	formula_run(&f, "inverse[] = 1.0 / S[]");
	for (int k = 0; k < n; k++)
		grad[k] = unscaled(f, grad[k], &infinite[k]);
	formula_set(&f, "B", scalars_total(s->g, n, infinite));
	formula_run(&f, "ok[] = B[] == 0.0");
	scale_update(s, &f);
	s->g->may_overflow = true;
	mem_free(infinite);
	return formula_get(&f, "ok");
}

/* ---- for an update of one's own ---- */

int ricci_scaled_grad(ricci_tensor *loss, const ricci_scaling *options, int n,
		      ricci_tensor *const *wrt, ricci_tensor **grads, ricci_tensor **finite)
{
	Scaling s;
	ricci_graph *g = loss ? ricci_graph_of(loss) : NULL;
	if (!g)
		return graph_missing("ricci_scaled_grad");
	int status = ricci_graph_error(g);
	if (!status && (n < 1 || !wrt || !grads || !finite))
		status = error_set(&g->ir.err, RICCI_EINVAL,
				   "ricci_scaled_grad: wrt, grads and finite must be given");
	if (!status && ricci_rank(loss))
		status = error_set(&g->ir.err, RICCI_ESHAPE,
				   "ricci_scaled_grad: the loss has %d dimensions, it must be a "
				   "scalar",
				   ricci_rank(loss));
	if (!status)
		status = scaling_begin(&s, g, options);
	if (!status)
		status = ricci_grad(g, loss, formula_cast(s.scale, ricci_dtype(loss)), n, wrt,
				    grads);
	if (!status) {
		*finite = scaling_end(&s, n, grads);
		status = ricci_graph_error(g);
	}
	for (int k = 0; status && grads && k < n; k++)
		grads[k] = &g->nil;
	if (status && finite)
		*finite = &g->nil;
	return status;
}

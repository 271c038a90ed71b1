/* optimise.c - the next values of all parameters, as index expressions.
 * Input: a scalar loss, a rate and options. Output: assignments (ricci_assign) of every parameter
 * that is trained and of the optimiser's own states, which are named after the parameter.
 * Each parameter goes through the same equations: division by the loss's scale (scaling.c),
 * accumulation over batches, clipping, decay, its rule (rules.c), average. Invariant: states are f32,
 * or f64 for f64 parameters; the rate is read anew each step; a parameter on which the loss does not
 * depend keeps its value, has no states. */
#include "nn/optimisers/internal.h"

#include <fnmatch.h>

typedef struct Trained {
	ricci_tensor *param, *grad;
	double rate, decay; /* the rate's factor */
} Trained;

typedef struct Optimiser {
	ricci_graph *g;
	ricci_optimiser o;
	const Rule *rule;
	ricci_tensor *rate;
	Trained *trained;
	int n;
	Formula shared;		/* t, b, c, options: what all parameters read; f64 */
	ricci_tensor *finite;	/* bool []: are this batch's gradients? NULL: nobody asks */
	ricci_tensor *updates;	/* bool []: does this step update? NULL: each does */
	ricci_tensor *averaged; /* how many updates the averages hold; NULL: no averages */
} Optimiser;

#define fail(z, ...) optimiser_refuse((z)->g, "ricci_optimise", __VA_ARGS__)

/* ---- options ---- */

static bool rule_reads(ricci_graph *g, const Rule *rule, const char *name)
{
	bool read = formula_reads(g, rule->update, name) || formula_reads(g, rule->scalars, name);
	for (int k = 0; k < RULE_STATES; k++)
		read = read || formula_reads(g, rule->state[k].update, name);
	return read;
}

/* An option that the rule reads: `usual` where it is 0, 0 where it is RICCI_NONE. */
static int option(Optimiser *z, const char *name, double *value, double usual, double below)
{
	bool read = rule_reads(z->g, z->rule, name);
	if (*value && !read && strcmp(name, "decay"))
		return fail(z, "the rule %s has no %s", z->rule->name, name);
	*value = *value == 0 ? usual : *value == RICCI_NONE ? 0 : *value;
	if (!(*value >= 0 && *value < below)) {
		if (isinf(below))
			return fail(z, "%s is %g, it must be finite, and 0 or more", name, *value);
		return fail(z, "%s is %g, it must be at least 0 and less than %g", name, *value,
			    below);
	}
	return 0;
}

static int options_check(Optimiser *z)
{
	ricci_optimiser *o = &z->o;
	if ((int)o->rule < 0 || (int)o->rule >= RULE_RMSPROP_MOMENTUM)
		return fail(z, "there is no rule %d", (int)o->rule);
	bool moving = o->momentum != 0 && o->momentum != RICCI_NONE;
	z->rule = &optimiser_rule[moving && o->rule == RICCI_SGD       ? RICCI_MOMENTUM
				  : moving && o->rule == RICCI_RMSPROP ? RULE_RMSPROP_MOMENTUM
								       : (int)o->rule];
	const ricci_optimiser *usual = &z->rule->usual;
	if (o->momentum == RICCI_NONE && (o->rule == RICCI_SGD || o->rule == RICCI_RMSPROP))
		o->momentum = 0;
	if (option(z, "beta1", &o->beta1, usual->beta1, 1) ||
	    option(z, "beta2", &o->beta2, usual->beta2, 1) ||
	    option(z, "momentum", &o->momentum, usual->momentum, 1) ||
	    option(z, "epsilon", &o->epsilon, usual->epsilon, INFINITY) ||
	    option(z, "decay", &o->decay, usual->decay, INFINITY))
		return ricci_graph_error(z->g);
	if (!(o->average >= 0 && o->average < 1))
		return fail(z, "average is %g, it must be at least 0 and less than 1", o->average);
	if (!(o->clip_norm >= 0 && o->clip_value >= 0))
		return fail(z, "gradients are clipped at %g, it must be 0 (no clipping) or more",
			    o->clip_norm >= 0 ? o->clip_value : o->clip_norm);
	if (o->accumulate < 0)
		return fail(z, "accumulate is %d batches, it must be 0 or more", o->accumulate);
	if (o->ngroup < 0 || (o->ngroup && !o->group))
		return fail(z, "ngroup is %d, and group %s", o->ngroup,
			    o->group ? "given" : "NULL");
	return 0;
}

/* ---- which parameters ---- */

static bool group_has(const ricci_group *group, const ricci_tensor *p)
{
	return (!group->names || !fnmatch(group->names, ricci_name(p), 0)) &&
	       (!group->match || group->match(p, group->user));
}

static int group_check(Optimiser *z, int k)
{
	const ricci_group *group = &z->o.group[k];
	ricci_tensor *p;
	int trained;
	if (!(group->rate >= 0 && isfinite(group->rate)))
		return fail(z, "group %d: the rate's factor is %g, it must be 0 (usual: 1) or more",
			    k, group->rate);
	if (!(group->decay == RICCI_NONE || (group->decay >= 0 && isfinite(group->decay))))
		return fail(z, "group %d: decay is %g, it must be finite, and 0 or more", k,
			    group->decay);
	for (int i = 0; (p = ricci_param_at(z->g, i, &trained)); i++)
		if (trained && group_has(group, p))
			return 0;
	return fail(z, "group %d (%s) has no parameter", k, group->names ? group->names : "match");
}

/* The parameters that are not frozen, with what their group says. */
static int trained_find(Optimiser *z)
{
	int count = ricci_param_count(z->g), trained;
	z->trained = mem_zalloc((size_t)(count + 1) * sizeof *z->trained);
	if (!z->trained)
		return error_set(&z->g->ir.err, RICCI_ENOMEM, "out of memory");
	for (int k = 0; k < z->o.ngroup; k++)
		if (group_check(z, k))
			return ricci_graph_error(z->g);
	for (int i = 0; i < count; i++) {
		ricci_tensor *p = ricci_param_at(z->g, i, &trained);
		const ricci_group *group = z->o.group, *end = group + z->o.ngroup;
		while (group < end && !group_has(group, p))
			group++;
		Trained t = {.param = p, .rate = 1, .decay = z->o.decay};
		if (group < end) {
			trained = trained && !group->frozen;
			t.rate = group->rate ? group->rate : 1;
			t.decay = group->decay == RICCI_NONE ? 0
				  : group->decay	     ? group->decay
							     : z->o.decay;
		}
		if (trained)
			z->trained[z->n++] = t;
	}
	return 0;
}

/* Is this gradient zero whatever the values are? So it is where the loss does not depend on the
 * parameter. */
static bool gradient_none(const ricci_tensor *grad)
{
	const Node *n = grad->node;
	return n->op == OP_COMP && node_is_value(comp_body(n), 0);
}

/* Their gradients; leaves out those that have none. */
static int gradients(Optimiser *z, ricci_tensor *loss)
{
	ricci_tensor **list = mem_zalloc(2 * (size_t)(z->n + 1) * sizeof *list);
	ricci_tensor **grad = list + z->n;
	if (!list)
		return error_set(&z->g->ir.err, RICCI_ENOMEM, "out of memory");
	for (int i = 0; i < z->n; i++)
		list[i] = z->trained[i].param;
	if (z->o.maximise)
		loss = ricci_op(z->g, "M[] = -L[]", loss);
	ricci_tensor *seed = NULL;
	Scaling scaling;
	int status = 0, n = 0;
	if (z->o.scaling && !(status = scaling_begin(&scaling, z->g, z->o.scaling)))
		seed = formula_cast(scaling.scale, ricci_dtype(loss));
	if (!status)
		status = ricci_grad(z->g, loss, seed, z->n, list, grad);
	for (int i = 0; i < z->n && !status; i++)
		if (!gradient_none(grad[i])) {
			z->trained[n] = z->trained[i];
			grad[n++] = grad[i];
		}
	z->n = n;
	if (seed && !status && n)
		z->finite = z->updates = scaling_end(&scaling, n, grad);
	for (int i = 0; i < n; i++)
		z->trained[i].grad = grad[i];
	mem_free(list);
	if (!status && !n)
		return fail(z, "the loss depends on no parameter that is to be trained");
	return status;
}

/* ---- accumulation and clipping, of all parameters together ---- */

/* A counter of the optimiser: "name.suffix". */
static ricci_tensor *counter(Optimiser *z, const char *name, const char *suffix)
{
	Text t = {0};
	ricci_tensor *state = &z->g->nil;
	text_add(&t, "%s.%s", name, suffix);
	if (t.failed)
		error_set(&z->g->ir.err, RICCI_ENOMEM, "out of memory");
	else
		state = ricci_state(z->g, t.s, RICCI_I32, 0, NULL, ricci_constant(0));
	text_free(&t);
	return state;
}

/* Of e: an update has only batches whose gradients are all finite. */
static void accumulate_finite(Optimiser *z, const char *name)
{
	ricci_tensor *lost = counter(z, name, "overflow");
	formula_set(&z->shared, "V", lost);
	formula_set(&z->shared, "ok", z->finite);
	formula_run(&z->shared, "W[] = ok[] ? V[] : 1;"
				"V1[] = e[] == 0 ? 0 : W[];"
				"updates[] = e[] == 0 && W[] == 0");
	ricci_assign(z->g, lost, formula_get(&z->shared, "V1"));
}

/* e counts the batches since the last update: 0 in the step that updates. Sums stay finite. */
static int accumulate(Optimiser *z, const char *name)
{
	const char *next = z->finite ? "S1[...] = e[] == 0 ? 0.0 : ok[] ? A[...] : S[...]"
				     : "S1[...] = e[] == 0 ? 0.0 : A[...]";
	ricci_tensor *batch = counter(z, name, "batch");
	formula_set(&z->shared, "K", batch);
	formula_set(&z->shared, "n", ricci_integer(z->g, z->o.accumulate));
	formula_run(&z->shared, "K, n -> e: e[] = K[] + 1 == n ? 0 : K[] + 1");
	formula_number(&z->shared, "batches", z->o.accumulate);
	if (z->finite)
		accumulate_finite(z, name);
	else
		formula_run(&z->shared, "updates[] = e[] == 0");
	z->updates = formula_get(&z->shared, "updates");
	for (int i = 0; i < z->n && !ricci_graph_error(z->g); i++) {
		Formula f = z->shared;
		ricci_tensor *p = z->trained[i].param, *sum = formula_state(p, "", ".gradient");
		formula_over(&f, p);
		formula_set(&f, "S", sum);
		formula_set(&f, "g", formula_cast(z->trained[i].grad, f.type));
		formula_run(&f, "A[...] = S[...] + g[...]");
		formula_run(&f, next);
		formula_run(&f, "G[...] = A[...] / batches[]");
		z->trained[i].grad = formula_get(&f, "G");
		ricci_assign(z->g, sum, formula_get(&f, "S1"));
	}
	return ricci_assign(z->g, batch, formula_get(&z->shared, "e"));
}

/* By value, then by the norm of all of them: the factor is that of PyTorch's clip_grad_norm_. */
static int clip(Optimiser *z)
{
	ricci_tensor **square = mem_zalloc((size_t)z->n * sizeof *square);
	if (!square)
		return error_set(&z->g->ir.err, RICCI_ENOMEM, "out of memory");
	formula_number(&z->shared, "value", z->o.clip_value);
	formula_number(&z->shared, "norm", z->o.clip_norm);
	for (int i = 0; i < z->n; i++) {
		Formula f = z->shared;
		formula_over(&f, z->trained[i].param);
		formula_set(&f, "G", formula_cast(z->trained[i].grad, f.type));
		if (z->o.clip_value)
			formula_run(&f, "C[...] = min(max(G[...], -value[]), value[])");
		z->trained[i].grad = formula_get(&f, z->o.clip_value ? "C" : "G");
		square[i] = ricci_op(z->g, "S[] += G[...] * G[...]", z->trained[i].grad);
	}
	if (z->o.clip_norm && !ricci_graph_error(z->g)) {
		formula_set(&z->shared, "S", scalars_total(z->g, z->n, square));
		formula_run(&z->shared, "k[] = min(norm[] / (sqrt(S[]) + 1e-6), 1.0)");
	}
	for (int i = 0; i < z->n && z->o.clip_norm; i++) {
		Formula f = z->shared;
		formula_over(&f, z->trained[i].param);
		formula_set(&f, "G", z->trained[i].grad);
		formula_run(&f, "C[...] = G[...] * k[]");
		z->trained[i].grad = formula_get(&f, "C");
	}
	mem_free(square);
	return ricci_graph_error(z->g);
}

/* ---- the update of a parameter ---- */

/* Assigns the next value, or the old one where this step does not update. */
static int assign(Optimiser *z, ricci_tensor *to, ricci_tensor *next)
{
	if (z->updates)
		next = ricci_op_named(z->g, "Y[...] = u[] ? N[...] : O[...]", "u", z->updates, "N",
				      next, "O", to);
	return ricci_assign(z->g, to, next);
}

/* The parameter's learning rate, in f's type. */
static ricci_tensor *rate_of(const Optimiser *z, const Trained *t, const Formula *f)
{
	ricci_tensor *rate = z->rate;
	if (t->rate != 1) {
		Formula exact = z->shared;
		formula_set(&exact, "R", formula_cast(rate, exact.type));
		formula_number(&exact, "factor", t->rate);
		formula_run(&exact, "rate[] = R[] * factor[]");
		rate = formula_get(&exact, "rate");
	}
	return formula_cast(rate, f->type);
}

/* The gradient, with the decay of rules that have none of their own. */
static void gradient_set(const Optimiser *z, const Trained *t, Formula *f)
{
	formula_number(f, "decay", t->decay);
	formula_set(f, "p", formula_cast(t->param, f->type));
	formula_set(f, "G", formula_cast(t->grad, f->type));
	if (t->decay && !z->rule->decay)
		formula_run(f, "g[...] = G[...] + decay[] * p[...]");
	else
		formula_set(f, "g", formula_get(f, "G"));
}

static void average_update(Optimiser *z, const Trained *t, Formula *f, ricci_tensor *next)
{
	ricci_tensor *average = formula_state(t->param, AVERAGE_PREFIX, "");
	formula_set(f, "E", average);
	formula_set(f, "N", formula_cast(next, f->type));
	formula_run(f, "E1[...] = a[] == 0 ? N[...] : average[] * E[...] + fresh[] * N[...]");
	assign(z, average, formula_get(f, "E1"));
}

static int update(Optimiser *z, const Trained *t)
{
	Formula f = z->shared;
	ricci_tensor *state[RULE_STATES];
	formula_over(&f, t->param);
	formula_set(&f, "rate", rate_of(z, t, &f));
	gradient_set(z, t, &f);
	for (int k = 0; k < RULE_STATES && z->rule->state[k].name; k++) {
		state[k] = formula_state(t->param, "", z->rule->state[k].suffix);
		formula_set(&f, z->rule->state[k].name, state[k]);
		formula_run(&f, z->rule->state[k].update);
	}
	formula_run(&f, z->rule->update);
	ricci_tensor *next = formula_cast(formula_get(&f, "N"), ricci_dtype(t->param));
	if (z->averaged)
		average_update(z, t, &f, next);
	for (int k = 0; k < RULE_STATES && z->rule->state[k].name; k++) {
		char name[16];
		message_print(name, sizeof name, "%s1", z->rule->state[k].name);
		assign(z, state[k], formula_get(&f, name));
	}
	return assign(z, t->param, next);
}

/* The counts that the updates read, and the scalars that depend on them. */
static int shared_start(Optimiser *z, const char *name)
{
	Formula *f = &z->shared;
	const struct {
		const char *name;
		double value;
	} number[] = {{"beta1", z->o.beta1},	 {"beta2", z->o.beta2},
		      {"rest1", 1 - z->o.beta1}, {"rest2", 1 - z->o.beta2},
		      {"epsilon", z->o.epsilon}, {"momentum", z->o.momentum},
		      {"average", z->o.average}, {"fresh", 1 - z->o.average}};
	*f = (Formula){.g = z->g, .type = RICCI_F64};
	for (int k = 0; k < COUNT(number); k++)
		formula_number(f, number[k].name, number[k].value);
	if (z->o.accumulate > 1)
		accumulate(z, name);
	if (z->rule->scalars) {
		ricci_tensor *step = counter(z, name, "step");
		formula_set(f, "T", step);
		formula_run(f, "t[] = T[] + 1");
		formula_run(f, z->rule->scalars);
		assign(z, step, formula_get(f, "t"));
	}
	if (z->o.average) {
		z->averaged =
			ricci_state(z->g, AVERAGE_COUNT, RICCI_I32, 0, NULL, ricci_constant(0));
		formula_set(f, "a", z->averaged);
		formula_run(f, "a1[] = a[] + 1");
		assign(z, z->averaged, formula_get(f, "a1"));
	}
	return ricci_graph_error(z->g);
}

static int optimise(Optimiser *z, ricci_tensor *loss, const char *name)
{
	int status = trained_find(z);
	if (!status)
		status = gradients(z, loss);
	if (!status)
		status = shared_start(z, name);
	if (!status && (z->o.clip_norm || z->o.clip_value))
		status = clip(z);
	for (int i = 0; i < z->n && !status; i++)
		status = update(z, &z->trained[i]);
	return status;
}

int ricci_optimise(ricci_tensor *loss, ricci_tensor *rate, const ricci_optimiser *options)
{
	Optimiser z = {
		.g = loss ? ricci_graph_of(loss) : NULL, .o = RICCI_OPTIMISER(), .rate = rate};
	if (!z.g)
		return graph_missing("ricci_optimise");
	if (ricci_graph_error(z.g))
		return ricci_graph_error(z.g);
	if (options && struct_take(&z.o, sizeof z.o, options, "ricci_optimiser", &z.g->ir.err))
		return ricci_graph_error(z.g);
	if (ricci_rank(loss))
		return fail(&z,
			    "the loss has %d dimensions, it must be a scalar, such as L[] += X[i]",
			    ricci_rank(loss));
	if (!rate || ricci_rank(rate))
		return fail(&z, "the rate is a scalar tensor (ricci_learning_rate)");
	if (options_check(&z))
		return ricci_graph_error(z.g);
	NameScope *scope = z.g->scope; /* states are named after the parameter alone */
	z.g->scope = NULL;
	int status = optimise(&z, loss, z.o.name ? z.o.name : z.rule->name);
	z.g->scope = scope;
	mem_free(z.trained);
	return status;
}

static double exact(double value)
{
	return value == 0 ? RICCI_NONE : value;
}

int ricci_sgd(ricci_tensor *loss, ricci_tensor *rate)
{
	return ricci_optimise(loss, rate, &RICCI_OPTIMISER(.rule = RICCI_SGD));
}

int ricci_momentum(ricci_tensor *loss, ricci_tensor *rate, double momentum)
{
	return ricci_optimise(
		loss, rate, &RICCI_OPTIMISER(.rule = RICCI_MOMENTUM, .momentum = exact(momentum)));
}

int ricci_adam(ricci_tensor *loss, ricci_tensor *rate, double beta1, double beta2, double epsilon)
{
	return ricci_optimise(loss, rate,
			      &RICCI_OPTIMISER(.rule = RICCI_ADAM, .beta1 = exact(beta1),
					       .beta2 = exact(beta2), .epsilon = exact(epsilon)));
}

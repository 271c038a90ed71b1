/* schedule.c - learning rates: a state that is fed, or a function of the step.
 * Input: options. Output: a scalar f32, computed in f64 by an equation of the state
 * "schedule.step", which counts training steps. Invariant: a schedule is a row of `body`: an
 * expression of v, the steps after the warm-up, and of numbers. */
#include "nn/optimisers/internal.h"

#define PI 3.141592653589793

/* clang-format off */
static const struct {
	bool steps, period; /* does it need them? */
	const char *body;
} schedule[] = {
	[RICCI_CONSTANT] = {
		.body = "R[] = rate[]"},
	[RICCI_STEPS] = {.period = true,
		.body = "R[] = rate[] * pow(gamma[], falls[])"},
	[RICCI_COSINE] = {.steps = true,
		.body = "R[] = least[] + (rate[] - least[]) * (1.0 + cos(pi[] * part[])) / 2.0"},
	[RICCI_LINEAR] = {.steps = true,
		.body = "R[] = rate[] + (least[] - rate[]) * part[]"},
	[RICCI_ONE_CYCLE] = {.steps = true,
		.body = "R[] = u[] <= top[]"
			" ? rate[] - rate[] * 0.48 * (1.0 + cos(pi[] * (u[] / top[])))"
			" : rate[] * 4e-6 + rate[] * (1.0 - 4e-6) / 2.0 *"
			" (1.0 + cos(pi[] * ((min(u[], last[]) - top[]) / (last[] - top[]))))"},
};
/* clang-format on */

ricci_tensor *ricci_learning_rate(ricci_graph *g, double value)
{
	return ricci_state(g, "learning_rate", RICCI_F32, 0, NULL, ricci_constant(value));
}

#define fail(g, ...) optimiser_refuse(g, "ricci_schedule", __VA_ARGS__)

static int milestones_check(ricci_graph *g, const ricci_schedule_options *o)
{
	enum { MOST = 256 };
	if (o->nmilestone < 0 || o->nmilestone > MOST || (o->nmilestone && !o->milestones))
		return fail(g, "%d milestones, 0 to %d can be given", o->nmilestone, MOST);
	for (int k = 1; k < o->nmilestone; k++)
		if (o->milestones[k] <= o->milestones[k - 1])
			return fail(
				g, "milestone %d is %lld, it must be above the one before, %lld", k,
				(long long)o->milestones[k], (long long)o->milestones[k - 1]);
	return 0;
}

static int options_check(ricci_graph *g, const ricci_schedule_options *o)
{
	if ((int)o->kind < 0 || o->kind > RICCI_ONE_CYCLE)
		return fail(g, "there is no kind %d", (int)o->kind);
	if (!(o->rate > 0 && isfinite(o->rate)))
		return fail(g, "the rate is %g, it must be finite, and more than 0", o->rate);
	if (!(o->least >= 0 && o->least <= o->rate))
		return fail(g, "the least rate is %g, it must be 0 to %g", o->least, o->rate);
	if (!(o->gamma >= 0 && isfinite(o->gamma)))
		return fail(g, "gamma is %g, it must be finite, and 0 or more", o->gamma);
	if (o->warmup < 0)
		return fail(g, "the warm-up has %lld steps, it must be 0 or more",
			    (long long)o->warmup);
	if (o->accumulate < 0)
		return fail(g, "accumulate is %d batches, it must be 0 or more", o->accumulate);
	if (schedule[o->kind].steps && o->steps <= o->warmup + (o->kind == RICCI_ONE_CYCLE))
		return fail(g,
			    "%lld steps in all, there must be more than those of the warm-up, %lld",
			    (long long)o->steps, (long long)o->warmup);
	if (o->kind == RICCI_ONE_CYCLE && (o->warmup ? o->warmup < 2 : o->steps < 4))
		return fail(
			g, "RICCI_ONE_CYCLE needs a warm-up of 2 steps or more, or 4 steps in all");
	if (schedule[o->kind].period && o->period < 1 && !o->nmilestone)
		return fail(g, "RICCI_STEPS needs a period of 1 or more, or milestones");
	return milestones_check(g, o);
}

/* falls[]: how often the rate has fallen. */
static void falls(Formula *f, const ricci_schedule_options *o)
{
	Text t = {0};
	if (!o->nmilestone)
		text_add(&t, "falls[] = floor(v[] / %lld.0)", (long long)o->period);
	else
		text_add(&t, "falls[] = 0.0");
	for (int k = 0; k < o->nmilestone; k++)
		text_add(&t, " + f64(v[] >= %lld.0)", (long long)o->milestones[k]);
	if (t.failed)
		error_set(&f->g->ir.err, RICCI_ENOMEM, "out of memory");
	else
		formula_run(f, t.s);
	text_free(&t);
}

/* u: the step; v: the same, counted after the warm-up; part: of the steps after it, in 0..1. */
static ricci_tensor *rate(ricci_graph *g, ricci_tensor *step, const ricci_schedule_options *o)
{
	double warmup = o->kind == RICCI_ONE_CYCLE ? 0 : (double)o->warmup;
	double steps = (double)o->steps;
	double top = (o->warmup ? (double)o->warmup : 0.3 * steps) - 1;
	const struct {
		const char *name;
		double value;
	} number[] = {{"rate", o->rate},
		      {"least", o->least},
		      {"gamma", o->gamma ? o->gamma : 0.1},
		      {"warmup", warmup},
		      {"length", steps - warmup},
		      {"pi", PI},
		      {"top", top},
		      {"last", steps - 1}};
	Formula f = {.g = g, .type = RICCI_F64};
	for (int k = 0; k < COUNT(number); k++)
		formula_number(&f, number[k].name, number[k].value);
	formula_set(&f, "T", step);
	formula_set(&f, "batches", ricci_integer(g, o->accumulate > 1 ? o->accumulate : 1));
	formula_run(&f, "T, batches -> u: u[] = f64(T[] / batches)");
	formula_run(&f, "v[] = max(u[] - warmup[], 0.0)");
	if (schedule[o->kind].steps)
		formula_run(&f, "part[] = min(v[] / length[], 1.0)");
	if (schedule[o->kind].period)
		falls(&f, o);
	formula_run(&f, schedule[o->kind].body);
	if (warmup > 0)
		formula_run(&f, "Y[] = u[] < warmup[] ? rate[] * (u[] + 1.0) / warmup[] : R[]");
	return formula_cast(formula_get(&f, warmup > 0 ? "Y" : "R"), RICCI_F32);
}

ricci_tensor *ricci_schedule(ricci_graph *g, const ricci_schedule_options *options)
{
	ricci_schedule_options o = RICCI_SCHEDULE();
	if (!g)
		return graph_missing("ricci_schedule"), NULL;
	if (!graph_open(g, "ricci_schedule"))
		return &g->nil;
	if (!options)
		return fail(g, "no options are given"), &g->nil;
	if (struct_take(&o, sizeof o, options, "ricci_schedule_options", &g->ir.err) ||
	    options_check(g, &o))
		return &g->nil;
	ricci_tensor *step = ricci_state(g, "schedule.step", RICCI_I64, 0, NULL, ricci_constant(0));
	ricci_assign(g, step, ricci_op(g, "Y[] = T[] + 1", step));
	return rate(g, step, &o);
}

/* stages.c - a subgraph in stages: equations that run one after the other in its place, in one kernel.
 *
 * Input: stages, and a schedule of each. Output: a tree with the phases of all. What a stage computes for later
 * ones is in memory that all threads share. Invariant: a stage knows nothing of the others; its tensors are bound
 * to buffers before it is lowered. */
#include "jit/stages/stages.h"

#include <math.h>

/* Cycles that an element takes which is computed from a few others, so many times more where a tile of them is more than
 * there are registers; results and terms of a product that keep a micro-kernel busy. */
static const double MOVED = 1.2, SPILLED = 4, SIDE_LEAST = 16;
enum { REGISTERS = 32 };

/* The schedules of the stages, behind `stage`. */
static int stage_schedules(const Stages *g, const Schedule *s, Schedule *own, Error *err)
{
	int at = -1;
	for (int k = 1; k < s->n; k++) {
		const ScheduleStep *step = &s->step[k];
		bool begins = step->kind == STEP_STAGE;
		if (begins ? step->axis != at + 1 || step->axis == g->n : at < 0)
			return schedule_misfit(
				err,
				"behind winograd come the steps of each of %d stages, "
				"in their order",
				g->n);
		if (begins)
			at++;
		else
			schedule_add(&own[at], (StepKind)step->kind, step->axis, step->arg);
	}
	return 0;
}

/* The whole's tensors are the caller's buffers, what stages hand on is shared. */
static void bind_tensors(Tree *tree, const Subgraph *whole, const Stages *g)
{
	int param = whole->ninput;
	for (int j = 0; j < whole->ninput; j++)
		tree_bind(tree, g->input[j], tree_param(tree, g->input[j], j, false));
	for (int k = 0; k < whole->nmember; k++)
		if (whole->stored[k])
			tree_bind(tree, g->member[k],
				  tree_param(tree, g->member[k], param++, true));
	for (int k = 0; k + 1 < g->n; k++) {
		const Node *t = g->sub[k].member[0];
		tree_bind(tree, t,
			  tree_buffer(tree, SPACE_SHARED, "stage", (Type)t->type, tensor_size(t)));
	}
}

static int lower_stage(Tree *tree, const Subgraph *sub, const Schedule *s, const Target *target,
		       const Capabilities *caps, Error *err)
{
	if (sub->rows)
		return lower_rows(tree, sub, s, target, caps, err);
	Problem *p = problem_new(tree, sub, NULL);
	if (!p)
		return error_set(err, tree->ir->err.code, "%s", tree->ir->err.text);
	if (s->n && s->step[0].kind == STEP_TENSORISE)
		return lower_contract(p, s, target, caps, err);
	return lower_nest(p, s, caps, err);
}

int lower_stages(Tree *tree, const Subgraph *sub, const Schedule *s, const Target *target,
		 const Capabilities *caps, Error *err)
{
	Stages g;
	Schedule own[STAGES_MOST] = {{0}};
	int code = 0;
	if (caps->grid || !winograd_stages(tree->ir, sub, target, &g))
		return schedule_misfit(
			err, "winograd needs a sum of f32 products over windows, on a processor");
	if (stage_schedules(&g, s, own, err))
		return err->code;
	bind_tensors(tree, sub, &g);
	for (int k = 0; k < g.n && !code; k++) {
		tree->more = k + 1 < g.n;
		code = lower_stage(tree, &g.sub[k], &own[k], target, caps, err);
	}
	tree->shape.blocks = 0; /* it was the last stage's */
	return code;
}

/* The best schedule of a stage by itself; false: there is none. */
static bool stage_offer(Ir *ir, const Subgraph *sub, const Target *target, Schedule *s)
{
	double price;
	RowOffer r;
	if (sub->rows) {
		if (!rows_offer(ir, sub, target, false, &r))
			return false;
		rows_variant(ir, &r, 0, s);
		return true;
	}
	Problem *p = problem_new(tree_new(ir), sub, NULL);
	if (p && !(p->red == RED_ADD && contract_offers(p, target, 1, s, &price)))
		nest_offer(p, target, 0, s);
	return p != NULL;
}

/* Cycles of all stages, in about: those of the products, and of the elements around them. INFINITY: products are too
 * small. */
static double stages_price(Ir *ir, const Stages *g, const Target *target)
{
	Schedule s;
	Node *member = g->products;
	bool stored = true;
	double price = INFINITY;
	if (g->side < SIDE_LEAST)
		return INFINITY;
	Subgraph sub = {.nmember = 1, .member = &member, .stored = &stored};
	subgraph_inputs(ir, &sub);
	Problem *p = problem_new(tree_new(ir), &sub, NULL);
	if (!p || !contract_offers(p, target, 1, &s, &price))
		return INFINITY;
	return price + MOVED * (g->tile > REGISTERS ? SPILLED : 1) * g->moved;
}

/* Are lines of the transformed factors shorter than half a vector? Then each element costs what a vector does, and a
 * condition of its own, which their number doesn't tell. */
static bool has_short_lines(const Stages *g, const Target *target)
{
	int64_t half = (int64_t)(target->vector_bytes / type_size(RICCI_F32) / 2);
	for (int k = 0; k < 2; k++) {
		const Node *t = g->sub[k].member[0];
		int d = tensor_rank(t) - 1;
		while (d > 0 && tensor_extent(t, d) == 1)
			d--;
		if (tensor_extent(t, d) < half)
			return true;
	}
	return false;
}

bool stages_offer(Ir *ir, const Subgraph *sub, const Target *target, double most, Schedule *s,
		  double *price, bool *rough)
{
	Stages g;
	double cycles;
	*s = (Schedule){0};
	if (!winograd_stages(ir, sub, target, &g) || (cycles = stages_price(ir, &g, target)) > most)
		return false;
	schedule_add(s, STEP_WINOGRAD, 0, 0);
	for (int k = 0; k < g.n; k++) {
		Schedule own = {0};
		if (!stage_offer(ir, &g.sub[k], target, &own) ||
		    !schedule_append(s, STEP_STAGE, k, &own))
			return false;
	}
	*price = cycles;
	*rough = has_short_lines(&g, target);
	return true;
}

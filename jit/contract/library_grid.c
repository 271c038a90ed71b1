/* library_grid.c - a contraction on a grid as a phase that is a vendor library's call.
 *
 *	phase: copies of operands that are no tensors of the call's as they lie
 *	phase: the library's call
 *	phase: store it through the members, where it did not go into the result at once
 *
 * Input: a problem read as a contraction (contract.c). An operand may be an element of a tensor whose place grows
 * evenly along all axes; any other, with its conditions and other types, is copied, where the schedule says so.
 * Output: the tree, and the call as numbers (KernelCall): what library_product.c or library_window.c make of the
 * index functions. */
#include "jit/contract/library_grid.h"

#include <string.h>

/* ---- schedules */

enum { CALLS_MOST = 64, WORTH_A_CALL = 1 << 16, THREADS = 256 };

static bool call_find(GridCall *g, Problem *p, const Library *library, int copies)
{
	Contract *c = arena_alloc(&p->ir->arena, sizeof *c);
	bool product = library->calls >> CALL_PRODUCT & 1;
	memset(g, 0, sizeof *g);
	g->c = c;
	g->library = library;
	for (int x = 0; x < COUNT(g->copied); x++)
		g->copied[x] = copies >> x & 1;
	if (!product)
		p = problem_unmerged(p); /* windows are of dimensions */
	if (!contract_find(c, p, target_grid(false), 0) || c->nchoice)
		return false;
	g->operand[OF_A] = c->a;
	g->operand[OF_B] = c->b;
	return product ? product_find(g) : window_find(g);
}

static bool worth_calls(const GridCall *g)
{
	const Contract *c = g->c;
	double points = (double)c->m.extent * (double)c->n.extent * (double)c->k.extent *
			(double)c->batch.extent;
	return g->calls <= CALLS_MOST && points >= WORTH_A_CALL * g->calls;
}

/* What needs no copies, or the fewest; and what then needs fewer calls. */
static int copies_offer(Problem *p, int number, int room, Schedule *out)
{
	GridCall *g = arena_alloc(&p->ir->arena, sizeof *g);
	double calls = CALLS_MOST + 1;
	int n = 0;
	for (int copies = 0; copies < 4 && n < room && calls > 1; copies++) {
		if (!call_find(g, p, library_row(number), copies) || !worth_calls(g) ||
		    g->calls >= calls)
			continue;
		calls = g->calls;
		memset(&out[n], 0, sizeof out[n]);
		schedule_add(&out[n], STEP_LIBRARY, 0, number);
		if (copies)
			schedule_add(&out[n], STEP_SHARE, 0, copies);
		schedule_add(&out[n], STEP_THREADS, 0, THREADS);
		n++;
	}
	return n && library_ready(library_row(number), NULL, 0) ? n : 0;
}

int library_grid_offers(Problem *p, const Target *target, int room, Schedule *out)
{
	const Library *library;
	int n = 0;
	for (int i = 0; (library = library_row(i)) && target->calls; i++)
		if (library->calls)
			n += copies_offer(p, i, room - n, &out[n]);
	return n;
}

static int steps_read(const Schedule *s, int *threads, int *copies, Error *err)
{
	for (int k = 0; k < s->n; k++) {
		const ScheduleStep *step = &s->step[k];
		if (step->kind == STEP_THREADS && step->arg >= 1 && step->arg <= GRID_THREADS_MOST)
			*threads = (int)step->arg;
		else if (step->kind == STEP_SHARE && step->arg >= 0 && step->arg < 4)
			*copies = (int)step->arg;
		else if (step->kind != STEP_LIBRARY)
			return schedule_misfit(err, "step %d does not fit a library's call", k + 1);
	}
	return 0;
}

/* ---- the phases */

/* What the library may use for itself: as much as its own documentation wants for the largest devices. It has
 * to begin where all memory begins. */
enum { WORK_BYTES = 32 << 20 };

/* What is known of the call's tensors once their memory is. sums: where results go that don't go into the result
 * at once. */
static void call_finish(GridCall *g, Node *const *buffer)
{
	for (int k = 0; k < CALL_TENSORS; k++) {
		CallTensor *out = &g->call.tensor[k];
		int x = g->of[k];
		const Buffer *b = tree_find(g->c->t, buffer[x]);
		out->type = g->type[x];
		out->buf = b->space == SPACE_PARAM ? b->param : -1;
		out->at = g->first[x];
		if (b->space == SPACE_SHARED)
			out->at += (int64_t)(b->offset / type_size(g->type[x]));
	}
}

/* What the loop tree shows of it; the call's own numbers are what is run. */
static Stmt *call_stmt(const GridCall *g, Node *const *buffer)
{
	Contract *c = g->c;
	static const char *const name[CALL_KINDS] = {
		[CALL_PRODUCT] = "product",
		[CALL_FORWARD] = "convolution",
		[CALL_DATA] = "data_gradient",
		[CALL_WEIGHTS] = "weight_gradient",
	};
	CallArg arg[TENSORS];
	for (int x = 0; x < TENSORS; x++)
		arg[x] = (CallArg){buffer[x], contract_int(c, g->first[x])};
	return stmt_call(c->t,
			 arena_printf(&c->ir->arena, "%s_%s", g->library->name, name[g->call.kind]),
			 COUNT(arg), arg);
}

static Stmt *result_store(void *user, Node *at, Node *sum)
{
	const GridCall *g = user;
	const Places *s = &g->place[OF_D];
	Node *value[COMP_MAX_AXES];
	axes_at(g->c->ir, at, s->naxis, s->axis, value);
	return problem_store(g->c->p, s->naxis, s->axis, value, sum);
}

/* Element number `at` of operand x into its copy. */
static Stmt *element_copy(const GridCall *g, int x, Node *copy, Node *at)
{
	Contract *c = g->c;
	const Operand *f = &g->operand[x];
	const Places *s = &g->place[x];
	Node *value[COMP_MAX_AXES], *cond = node_const_int(c->ir, RICCI_BOOL, 1);
	axes_at(c->ir, at, s->naxis, s->axis, value);
	for (int k = 0; k < f->nguard; k++)
		cond = node2(c->ir, OP_AND, cond, f->guard[k]);
	cond = node_replace(c->ir, cond, s->naxis, s->axis, value);
	Node *of = node_cast(c->ir, g->type[x],
			     node_replace(c->ir, f->value, s->naxis, s->axis, value));
	Node *zero = node_identity(c->ir, RED_ADD, g->type[x], g->type[x]);
	Stmt *all = stmt_store(c->t, copy, at, of, RED_NONE);
	return f->nguard ? stmt_if(c->t, cond, all, stmt_store(c->t, copy, at, zero, RED_NONE))
			 : all;
}

/* A section that copies operand x, a thread for each element. */
static Node *operand_copy(const GridCall *g, int x)
{
	Contract *c = g->c;
	Tree *t = c->t;
	Ir *ir = c->ir;
	int64_t n = places_count(&g->place[x]), threads = t->shape.threads;
	Node *copy = tree_buffer(t, SPACE_SHARED, x == OF_A ? "ca" : "cb", g->type[x], n);
	Node *block = tree_axis(t, (n + threads - 1) / threads), *thread = tree_axis(t, threads);
	Node *at = node_add(ir, node_scale(ir, block, threads), thread);
	Node *place = node2(ir, OP_MIN, at, node_int(ir, n - 1));
	Stmt *s = element_copy(g, x, copy, place);
	phase_grid(t, block, thread, stmt_if(t, below(c, at, n), s, NULL));
	return copy;
}

static void call_lower(GridCall *g, int library, int threads, bool ordered)
{
	Contract *c = g->c;
	Tree *t = c->t;
	KernelCall *call = &g->call;
	Node *work = tree_buffer(t, SPACE_SHARED, "work", RICCI_U8, WORK_BYTES), *buffer[TENSORS];
	t->shape.threads = threads;
	for (int x = 0; x < COUNT(g->copied); x++)
		buffer[x] = g->copied[x] ? operand_copy(g, x) : g->read[x]->src[0];
	if (g->copied[OF_A] || g->copied[OF_B])
		phase_end(t);
	int64_t points = places_count(&g->place[OF_D]);
	buffer[OF_D] =
		g->direct ? c->p->out[0] : tree_buffer(t, SPACE_SHARED, "sums", c->p->acc, points);
	call_finish(g, buffer);
	call->library = library;
	call->version = cuda_library_number(g->library->cuda);
	call->work_at = (int64_t)tree_find(t, work)->offset;
	call->work = WORK_BYTES;
	call->ordered = ordered;
	t->shape.call = *call;
	phase_call(t, call_stmt(g, buffer));
	if (!g->direct) {
		phase_end(t);
		sums_section(t, buffer[OF_D], RED_ADD, 1, points, result_store, g);
	}
	phases_finish(t, NULL, NULL);
}

int lower_library_grid(Problem *p, const Schedule *s, const Target *target,
		       const Capabilities *caps, Error *err)
{
	GridCall *g = arena_alloc(&p->ir->arena, sizeof *g);
	int number = (int)schedule_find(s, STEP_LIBRARY)->arg, threads = THREADS, copies = 0;
	const Library *library = library_row(number);
	char why[256] = "";
	if (!library)
		return schedule_misfit(err, "there is no such library");
	if (!caps->calls)
		return schedule_misfit(err, "this device has no library's calls");
	if (library->available && !library->calls)
		return schedule_misfit(err, "%s has no calls for devices", library->name);
	if (!library_ready(library, why, sizeof why))
		return error_set(err, RICCI_EUNSUPPORTED, "schedule: there is no %s: %s",
				 library->name, why);
	if (steps_read(s, &threads, &copies, err))
		return err->code;
	if (!call_find(g, p, library, copies))
		return schedule_misfit(
			err, "%s",
			library->calls >> CALL_PRODUCT & 1
				? "on a grid library needs a sum of products of two tensors of one "
				  "type, or copies of them, whose places grow evenly along all "
				  "indices, each contiguous along an index of its own or a reduced "
				  "one"
				: "on a grid library needs a sum of products of two tensors, or "
				  "copies, one read in windows of up to three dimensions, an index "
				  "of the result and a reduced one each; all others are one image, "
				  "channel, result channel and group");
	call_lower(g, number, threads, target->ordered);
	return error_set(err, p->ir->err.code, "%s", p->ir->err.text);
}

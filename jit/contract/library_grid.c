/* library_grid.c - a contraction on a grid as a phase that is a vendor library's product.
 *
 *	phase: copies of operands that are no tensors of the product's as they lie
 *	phase: the library's product, for all of the batch, for each point of other axes
 *	phase: store it through the members, where it did not go into the result at once
 *
 * Input: a problem read as a contraction (contract.c). An operand may be an element of a tensor whose place grows
 * evenly along all axes; any other, with its conditions and other types, is copied, where the schedule says so. Axes of one role that are one in all three tensors become one; one each
 * of M, N, K and the batch is a dimension of the product, and all others, of which there are few points, are
 * calls one after the other. Output: the tree, and the product as numbers (KernelProduct). */
#include "jit/contract/grid.h"
#include "jit/library/library.h"

#include <string.h>

enum { ROLE_M, ROLE_N, ROLE_K, ROLE_BATCH, ROLES };
enum { OF_A, OF_B, OF_D, TENSORS };

/* Axes of one role that are one in all tensors. */
typedef struct Dimension {
	int role;
	int64_t extent, stride[TENSORS]; /* 0: it has no part in that one */
} Dimension;

/* An order of elements: that of these axes, the last one fastest. */
typedef struct Places {
	int naxis;
	Node *axis[COMP_MAX_AXES];
} Places;

/* Where results go: at once into the result, else into memory in this order. */
typedef struct Results {
	bool direct;
	Places order;
} Results;

typedef struct GridProduct {
	Contract *c;
	const Library *library;
	Type type[TENSORS];
	Node *read[2]; /* the operands' elements, in tensors or in copies */
	bool copied[2];
	Places copy[2]; /* whose elements are in this order */
	Results results;
	int ndim, pick[ROLES]; /* -1: there is no batch */
	Dimension dim[COMP_MAX_AXES];
	double calls; /* 0: it fits no library */
} GridProduct;

/* ---- dimensions */

/* The place where all axes are 0; -1: it isn't known. */
static int64_t first_place(const Problem *p, Node *index)
{
	Node *zero[COMP_MAX_AXES];
	for (int k = 0; k < p->naxis; k++)
		zero[k] = node_int(p->ir, 0);
	Node *at = node_replace(p->ir, index, p->naxis, p->axis, zero);
	return node_is_const(at) && at->u.i >= 0 ? at->u.i : -1;
}

static int64_t places_stride(const Places *s, const Node *axis)
{
	int64_t stride = 1;
	for (int k = s->naxis - 1; k >= 0; stride *= axis_extent(s->axis[k--]))
		if (s->axis[k] == axis)
			return stride;
	return 0;
}

static int64_t places_count(const Places *s)
{
	int64_t n = 1;
	for (int k = 0; k < s->naxis; k++)
		n *= axis_extent(s->axis[k]);
	return n;
}

/* How far apart neighbours along the axis are in a tensor. */
static int64_t stride_of(const GridProduct *g, int x, Node *axis)
{
	const Problem *p = g->c->p;
	if (x == OF_D)
		return g->results.direct ? affine_stride(p->ir, p->out_index[0], axis)
					 : places_stride(&g->results.order, axis);
	return g->copied[x] ? places_stride(&g->copy[x], axis)
			    : affine_stride(p->ir, g->read[x]->src[1], axis);
}

/* False where a place does not grow evenly along an axis, or falls. */
static bool dimensions_take(GridProduct *g)
{
	const Contract *c = g->c;
	const IndexGroup *group[ROLES] = {&c->m, &c->n, &c->k, &c->batch};
	g->ndim = 0;
	for (int role = 0; role < ROLES; role++)
		for (int k = 0; k < group[role]->naxis; k++) {
			Node *axis = group[role]->axis[k];
			Dimension *d = &g->dim[g->ndim++];
			*d = (Dimension){role, axis_extent(axis), {0}};
			for (int x = 0; x < TENSORS; x++) {
				d->stride[x] = stride_of(g, x, axis);
				if (d->stride[x] < 0)
					return false;
			}
		}
	return true;
}

/* Is `inner` all that lies between two elements of `outer`, in all tensors? */
static bool is_one(const Dimension *outer, const Dimension *inner)
{
	bool one = outer != inner && outer->role == inner->role;
	for (int x = 0; x < TENSORS; x++)
		one = one && outer->stride[x] == inner->stride[x] * inner->extent;
	return one;
}

static bool merge_once(GridProduct *g)
{
	for (int i = 0; i < g->ndim; i++)
		for (int j = 0; j < g->ndim; j++)
			if (is_one(&g->dim[i], &g->dim[j])) {
				g->dim[j].extent *= g->dim[i].extent;
				g->dim[i] = g->dim[--g->ndim];
				return true;
			}
	return false;
}

/* ---- which are the product's */

/* Lies a matrix of these rows and columns line by line, or column by column, lines apart? */
static bool is_matrix(const Dimension *r, const Dimension *c, int x)
{
	int64_t down = r->stride[x], step = c->stride[x];
	return down < INT32_MAX && step < INT32_MAX &&
	       ((down == 1 && step >= r->extent) || (step == 1 && down >= c->extent));
}

static double calls_of(const GridProduct *g, const int *pick)
{
	double calls = 1;
	int loops = 0;
	bool sums = false;
	for (int k = 0; k < g->ndim; k++) {
		bool picked = false;
		for (int role = 0; role < ROLES; role++)
			picked |= pick[role] == k;
		if (picked)
			continue;
		calls *= (double)g->dim[k].extent;
		sums |= g->dim[k].role == ROLE_K;
		loops++;
	}
	/* What is added to must not have been rounded. */
	return loops > PRODUCT_LOOPS || (sums && g->type[OF_D] != g->c->p->acc) ? 0 : calls;
}

static void pick_try(GridProduct *g, const int *pick)
{
	const Dimension *m = &g->dim[pick[ROLE_M]], *n = &g->dim[pick[ROLE_N]];
	const Dimension *k = &g->dim[pick[ROLE_K]];
	double calls = 0;
	for (int role = 0; role < ROLES; role++)
		if (pick[role] >= 0 && g->dim[pick[role]].extent >= INT32_MAX)
			return;
	if (is_matrix(m, k, OF_A) && is_matrix(k, n, OF_B) && is_matrix(m, n, OF_D))
		calls = calls_of(g, pick);
	if (calls && (!g->calls || calls < g->calls)) {
		g->calls = calls;
		memcpy(g->pick, pick, sizeof g->pick);
	}
}

/* Can the dimension be the batch's? An operand that has no part in it is the same for all of the batch. */
static bool is_batch(const GridProduct *g, int k, const int *pick)
{
	return g->dim[k].role != ROLE_K && k != pick[ROLE_M] && k != pick[ROLE_N];
}

/* All choices of one dimension for each role from `role` on; there may be no batch. */
static void picks_try(GridProduct *g, int role, int *pick)
{
	if (role == ROLES) {
		pick_try(g, pick);
		return;
	}
	for (int k = 0; k < g->ndim; k++)
		if (role == ROLE_BATCH ? is_batch(g, k, pick) : g->dim[k].role == role) {
			pick[role] = k;
			picks_try(g, role + 1, pick);
		}
	pick[role] = -1;
	if (role == ROLE_BATCH)
		picks_try(g, role + 1, pick);
}

/* Takes *r for the results where that needs fewer calls than *best. */
static void results_try(GridProduct *g, const Results *r, GridProduct *best)
{
	int pick[ROLES];
	const Problem *p = g->c->p;
	g->results = *r;
	g->calls = 0;
	g->type[OF_D] = r->direct ? p->type : p->acc;
	if ((!r->direct && places_count(&r->order) > GRID_SUMS) ||
	    !g->library->multiplies(g->type[OF_A], g->type[OF_D]) || !dimensions_take(g))
		return;
	while (merge_once(g)) {
	}
	picks_try(g, 0, pick);
	if (g->calls && (!best->calls || g->calls < best->calls))
		*best = *g;
}

/* Adds a group's axes, by falling strides in an operand. */
static void places_add(const GridProduct *g, Places *s, const IndexGroup *group, int operand)
{
	int first = s->naxis;
	for (int k = 0; k < group->naxis; k++) {
		int at = s->naxis++;
		int64_t stride = stride_of(g, operand, group->axis[k]);
		for (; at > first && stride_of(g, operand, s->axis[at - 1]) < stride; at--)
			s->axis[at] = s->axis[at - 1];
		s->axis[at] = group->axis[k];
	}
}

/* The order of a copy: the batch, the operand's own axes, K; of these the ones that it depends on. The batch and K
 * are as they lie in the other operand, so that they stay one where they are one there. */
static void copy_order(const GridProduct *g, int x, Places *s)
{
	const Contract *c = g->c;
	const Operand *f = x == OF_A ? &c->a : &c->b;
	const IndexGroup *own = x == OF_A ? &c->m : &c->n;
	Places all = {0};
	places_add(g, &all, &c->batch, 1 - x);
	memcpy(all.axis + all.naxis, own->axis, (size_t)own->naxis * sizeof *own->axis);
	all.naxis += own->naxis;
	places_add(g, &all, &c->k, 1 - x);
	s->naxis = 0;
	for (int k = 0; k < all.naxis; k++)
		for (int j = 0; j < c->p->naxis; j++)
			if (c->p->axis[j] == all.axis[k] && f->mask >> j & 1)
				s->axis[s->naxis++] = all.axis[k];
}

/* What is multiplied: 16 bits where both operands have been rounded to the same, else what is added up. */
static bool operands_take(GridProduct *g, int copies)
{
	const Contract *c = g->c;
	const Operand *of[] = {&c->a, &c->b};
	const Fragments *fragments = contract_fragments(c);
	for (int x = 0; x < COUNT(of); x++) {
		Source s;
		g->type[x] = fragments ? fragments->type : c->p->acc;
		g->copied[x] = copies >> x & 1;
		if (g->copied[x])
			continue;
		if (of[x]->nguard || !contract_source(of[x], &s) || s.from != s.through ||
		    s.from != g->type[x] || first_place(c->p, s.read->src[1]) < 0)
			return false;
		g->read[x] = s.read;
	}
	for (int x = 0; x < COUNT(of); x++) {
		if (g->copied[x])
			copy_order(g, x, &g->copy[x]);
		if (g->copied[x] && places_count(&g->copy[x]) > GRID_SUMS)
			return false;
	}
	return g->library->multiplies(g->type[OF_A], c->p->acc);
}

/* Into the result where that can be; else in the order of its elements, as they are stored then; else in the
 * order of the operands. */
static bool product_find(GridProduct *best, Problem *p, const Library *library, int copies)
{
	GridProduct *g = arena_alloc(&p->ir->arena, sizeof *g);
	Contract *c = arena_alloc(&p->ir->arena, sizeof *c);
	memset(best, 0, sizeof *best);
	*g = (GridProduct){.c = c, .library = library};
	if (!contract_find(c, p, target_grid(false), 0) || c->nchoice || !operands_take(g, copies))
		return false;
	p = c->p;
	Results direct = {.direct = true}, dense = {.order.naxis = p->nspatial}, apart = {0};
	memcpy(dense.order.axis, p->axis, (size_t)p->nspatial * sizeof *p->axis);
	places_add(g, &apart.order, &c->batch, OF_A);
	places_add(g, &apart.order, &c->m, OF_A);
	places_add(g, &apart.order, &c->n, OF_B);
	if (p->nout == 1 && p->out_value[0] == p->result && first_place(p, p->out_index[0]) >= 0)
		results_try(g, &direct, best);
	if (!best->calls) /* what was not rounded needs no second phase */
		results_try(g, &dense, best);
	results_try(g, &apart, best);
	return best->calls > 0;
}

/* ---- schedules */

enum { CALLS_MOST = 64, WORTH_A_CALL = 1 << 16, THREADS = 256 };

static const Dimension *picked(const GridProduct *g, int role)
{
	return g->pick[role] < 0 ? NULL : &g->dim[g->pick[role]];
}

static bool worth_calls(const GridProduct *g)
{
	double points = 1;
	for (int k = 0; k < g->ndim; k++)
		points *= (double)g->dim[k].extent;
	return g->calls <= CALLS_MOST && points >= WORTH_A_CALL * g->calls;
}

/* What needs no copies, or the fewest; and what then needs fewer calls. */
static int copies_offer(Problem *p, int number, int room, Schedule *out)
{
	GridProduct *g = arena_alloc(&p->ir->arena, sizeof *g);
	double calls = CALLS_MOST + 1;
	int n = 0;
	for (int copies = 0; copies < 4 && n < room && calls > 1; copies++) {
		if (!product_find(g, p, library_row(number), copies) || !worth_calls(g) ||
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
	for (int i = 0; (library = library_row(i)) && target->products; i++)
		if (library->multiplies)
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
			return schedule_misfit(err, "step %d does not fit a library's product",
					       k + 1);
	}
	return 0;
}

/* ---- the phases */

/* What the library may use for itself: as much as its own documentation wants for the largest devices. It has
 * to begin where all memory begins. */
enum { WORK_BYTES = 32 << 20 };

static ProductMatrix matrix_make(const GridProduct *g, int x, Node *buffer, Node *index, int rows,
				 int cols)
{
	const Problem *p = g->c->p;
	const Buffer *b = tree_find(g->c->t, buffer);
	const Dimension *batch = picked(g, ROLE_BATCH);
	ProductMatrix out = {.type = g->type[x], .buf = -1};
	out.at = first_place(p, index);
	if (b->space == SPACE_SHARED)
		out.at += (int64_t)(b->offset / type_size(g->type[x]));
	if (b->space == SPACE_PARAM)
		out.buf = b->param;
	out.row = g->dim[rows].stride[x];
	out.col = g->dim[cols].stride[x];
	out.batch = batch ? batch->stride[x] : 0;
	int loop = 0;
	for (int k = 0; k < g->ndim; k++)
		if (k != g->pick[ROLE_M] && k != g->pick[ROLE_N] && k != g->pick[ROLE_K] &&
		    k != g->pick[ROLE_BATCH])
			out.loop[loop++] = g->dim[k].stride[x];
	return out;
}

/* sums: where results go that don't go into the result at once. */
static void product_make(const GridProduct *g, Node *sums, KernelProduct *out)
{
	const Problem *p = g->c->p;
	const int m = g->pick[ROLE_M], n = g->pick[ROLE_N], k = g->pick[ROLE_K];
	const Dimension *batch = picked(g, ROLE_BATCH);
	int loop = 0;
	out->version = g->library->number();
	out->m = g->dim[m].extent;
	out->n = g->dim[n].extent;
	out->k = g->dim[k].extent;
	out->batch = batch ? batch->extent : 1;
	for (int i = 0; i < PRODUCT_LOOPS; i++)
		out->loop[i] = 1;
	for (int i = 0; i < g->ndim; i++)
		if (i != m && i != n && i != k && i != g->pick[ROLE_BATCH])
			out->loop[loop++] = g->dim[i].extent;
	out->a = matrix_make(g, OF_A, g->read[0]->src[0], g->read[0]->src[1], m, k);
	out->b = matrix_make(g, OF_B, g->read[1]->src[0], g->read[1]->src[1], k, n);
	out->d = sums ? matrix_make(g, OF_D, sums, node_int(p->ir, 0), m, n)
		      : matrix_make(g, OF_D, p->out[0], p->out_index[0], m, n);
}

/* What the loop tree shows of it; the product's own numbers are what is run. */
static Stmt *product_call(const GridProduct *g, Node *sums)
{
	Contract *c = g->c;
	const KernelProduct *p = &c->t->shape.product;
	Node *d = sums ? sums : c->p->out[0];
	int64_t at = sums ? 0 : p->d.at;
	int64_t from[] = {g->copied[0] ? 0 : p->a.at, g->copied[1] ? 0 : p->b.at};
	CallArg arg[] = {{NULL, contract_int(c, p->m)},
			 {NULL, contract_int(c, p->n)},
			 {NULL, contract_int(c, p->k)},
			 {NULL, contract_int(c, p->batch)},
			 {g->read[0]->src[0], contract_int(c, from[0])},
			 {g->read[1]->src[0], contract_int(c, from[1])},
			 {d, contract_int(c, at)}};
	return stmt_call(c->t, arena_printf(&c->ir->arena, "%s_product", g->library->name),
			 COUNT(arg), arg);
}

static Stmt *result_store(void *user, Node *at, Node *sum)
{
	const GridProduct *g = user;
	const Places *s = &g->results.order;
	Node *value[COMP_MAX_AXES];
	axes_at(g->c->ir, at, s->naxis, s->axis, value);
	return problem_store(g->c->p, s->naxis, s->axis, value, sum);
}

/* Element number `at` of operand x into its copy. */
static Stmt *element_copy(const GridProduct *g, int x, Node *copy, Node *at)
{
	Contract *c = g->c;
	const Operand *f = x == OF_A ? &c->a : &c->b;
	const Places *s = &g->copy[x];
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
static void operand_copy(GridProduct *g, int x)
{
	Contract *c = g->c;
	Tree *t = c->t;
	Ir *ir = c->ir;
	int64_t n = places_count(&g->copy[x]), threads = t->shape.threads;
	Node *zero = node_int(ir, 0);
	Node *copy = tree_buffer(t, SPACE_SHARED, x == OF_A ? "ca" : "cb", g->type[x], n);
	Node *block = tree_axis(t, (n + threads - 1) / threads), *thread = tree_axis(t, threads);
	Node *at = node_add(ir, node_scale(ir, block, threads), thread);
	Node *place = node2(ir, OP_MIN, at, node_int(ir, n - 1));
	Stmt *s = element_copy(g, x, copy, place);
	g->read[x] = node_read(ir, copy, &zero);
	phase_grid(t, block, thread, stmt_if(t, below(c, at, n), s, NULL));
}

static void product_lower(GridProduct *g, int library, int threads)
{
	Contract *c = g->c;
	Tree *t = c->t;
	KernelProduct *product = &t->shape.product;
	Node *work = tree_buffer(t, SPACE_SHARED, "work", RICCI_U8, WORK_BYTES), *sums = NULL;
	t->shape.threads = threads;
	for (int x = 0; x < COUNT(g->copied); x++)
		if (g->copied[x])
			operand_copy(g, x);
	if (g->copied[OF_A] || g->copied[OF_B])
		phase_end(t);
	int64_t points = places_count(&g->results.order);
	if (!g->results.direct)
		sums = tree_buffer(t, SPACE_SHARED, "sums", c->p->acc, points);
	product_make(g, sums, product);
	product->library = library;
	product->work_at = (int64_t)tree_find(t, work)->offset;
	product->work = WORK_BYTES;
	phase_call(t, product_call(g, sums));
	if (sums) {
		phase_end(t);
		sums_section(t, sums, RED_ADD, 1, points, result_store, g);
	}
	phases_finish(t, NULL, NULL);
}

int lower_library_grid(Problem *p, const Schedule *s, const Capabilities *caps, Error *err)
{
	GridProduct *g = arena_alloc(&p->ir->arena, sizeof *g);
	int number = (int)schedule_find(s, STEP_LIBRARY)->arg, threads = THREADS, copies = 0;
	const Library *library = library_row(number);
	char why[256] = "";
	if (!library)
		return schedule_misfit(err, "there is no such library");
	if (!caps->products)
		return schedule_misfit(err, "this device has no library's products");
	if (library->available && !library->multiplies)
		return schedule_misfit(err, "%s does not multiply on devices", library->name);
	if (!library_ready(library, why, sizeof why))
		return error_set(err, RICCI_EUNSUPPORTED, "schedule: there is no %s: %s",
				 library->name, why);
	if (steps_read(s, &threads, &copies, err))
		return err->code;
	if (!product_find(g, p, library, copies))
		return schedule_misfit(
			err, "on a grid library needs a sum of products of two tensors of one "
			     "type, or copies of them, whose places grow evenly along all "
			     "indices, each contiguous along an index of its own or a reduced one");
	product_lower(g, number, threads);
	return error_set(err, p->ir->err.code, "%s", p->ir->err.text);
}

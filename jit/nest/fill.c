/* fill.c - what results hold before anything is added to them, and behind it.
 *
 * Input: a problem whose loops reach its elements in any order, or not all of them. Output: statements that fill
 * the elements, all of them or a part's, and make sums that are wider than the result narrow. Invariant: an
 * element that no point reaches holds what its reduction starts from. */
#include "jit/nest/internal.h"

Node *nest_identity(Build *b, Type t)
{
	return node_identity(b->ir, b->p->red, b->p->type, t);
}

typedef Stmt *ElementFn(Build *b, Node *x);

static Stmt *clear_element(Build *b, Node *x)
{
	return stmt_store(b->t, b->acc, x, nest_identity(b, (Type)b->acc->type), RED_NONE);
}

static Stmt *convert_element(Build *b, Node *x)
{
	Node *v = problem_narrow(b->p, buffer_read(b->t, b->acc, x));
	return stmt_store(b->t, b->p->main_out, x, v, RED_NONE);
}

/* Places of the result in a line of the part: so many, `stride` elements apart, from `from` on (NULL: 0). */
typedef struct Places {
	int64_t extent, stride;
	Node *from, *rest; /* rest: of the axis; NULL: as many as the extent says */
} Places;

enum { PLACES_MOST = RICCI_MAX_RANK + COMP_MAX_AXES };

/* Those of a free axis, whose neighbours are so far apart: all of it, or of one that is in parts those of this. */
static Places axis_places(Build *b, const Node *axis, int64_t stride)
{
	Places x = {axis_extent(axis), stride, NULL, NULL};
	for (int k = 0; k < b->nparallel; k++) {
		const Loop *l = &b->loop[b->order[k]];
		if (b->p->axis[l->axis] != axis)
			continue;
		x.from = nest_point(b, b->p->axis[l->axis]);
		x.extent = l->stride < x.extent ? l->stride : x.extent;
		x.rest = nest_exact(b, l->axis) ? NULL : nest_rest(b, l->axis);
	}
	return x;
}

/* The part's places in the result: of each dimension the axes that number its places, or all of it. */
static int part_places(Build *b, Places *places)
{
	Problem *p = b->p;
	Node *axis[COMP_MAX_AXES];
	int64_t size = p->main_size;
	int n = 0;
	for (int d = 0; d < p->rank; d++) {
		size /= p->shape[d];
		int naxis = problem_place_axes(p, d, axis), first = n;
		for (int k = 0; k < naxis; k++) {
			int64_t step = affine_stride(b->ir, p->lhs[d], axis[k]);
			int at = n++; /* the largest steps first */
			for (; at > first && places[at - 1].stride < step * size; at--)
				places[at] = places[at - 1];
			places[at] = axis_places(b, axis[k], step * size);
		}
		if (!naxis)
			places[n++] = (Places){p->shape[d], size, NULL, NULL};
	}
	return n;
}

static Stmt *fill_loop(Build *b, ElementFn *element, Node *base, int n, const Places *places)
{
	if (n == 0)
		return element(b, base);
	if (places->from)
		base = node_add(b->ir, base, node_scale(b->ir, places->from, places->stride));
	if (places->extent == 1)
		return fill_loop(b, element, base, n - 1, places + 1);
	Node *x = tree_axis(b->t, places->extent), *hi = NULL;
	if (places->rest)
		hi = node2(b->ir, OP_MIN, places->rest, node_int(b->ir, places->extent));
	Node *at = node_add(b->ir, base, node_scale(b->ir, x, places->stride));
	return stmt_loop(b->t, n == 1 ? HOW_VECTOR : HOW_SERIAL, x, NULL, hi,
			 fill_loop(b, element, at, n - 1, places + 1));
}

Stmt *fill_part(Build *b, bool convert)
{
	Places places[PLACES_MOST];
	int n = part_places(b, places);
	return fill_loop(b, convert ? convert_element : clear_element, node_int(b->ir, 0), n,
			 places);
}

void fill_sums(Build *b)
{
	Problem *p = b->p;
	b->acc = p->main_out;
	if (p->acc != p->type)
		b->acc = tree_buffer(b->t, b->caps->grid ? SPACE_SHARED : SPACE_SCRATCH, "sum",
				     p->acc, p->main_size);
}

/* Elements that no point reaches hold the identity of the equation's own reduction, also where each
 * other element is stored just once. */
static Stmt *fill_element(Build *b, Node *x)
{
	Type t = b->p->type;
	Reduce red = comp_reduce(b->p->sub->member[0]);
	return stmt_store(b->t, b->p->main_out, x, node_identity(b->ir, red, t, t), RED_NONE);
}

Stmt *fill_partial(Build *b)
{
	Node *x = tree_axis(b->t, b->p->main_size);
	return stmt_loop(b->t, HOW_VECTOR, x, NULL, NULL, fill_element(b, x));
}

/* A section with a thread for each element of main. */
static void elements_grid(Build *b, ElementFn *element)
{
	Node *thread = tree_axis(b->t, b->threads);
	Node *block = tree_axis(b->t, (b->p->main_size + b->threads - 1) / b->threads);
	Node *x = node_add(b->ir, node_scale(b->ir, block, b->threads), thread);
	Node *cond = node2(b->ir, OP_LT, x, node_int(b->ir, b->p->main_size));
	phase_grid(b->t, block, thread, stmt_if(b->t, cond, element(b, x), NULL));
}

void fill_grid(Build *b)
{
	if (!b->p->partial && !b->p->scatter)
		return;
	if (b->p->scatter)
		fill_sums(b);
	elements_grid(b, b->p->scatter ? clear_element : fill_element);
	phase_end(b->t);
}

void convert_grid(Build *b)
{
	phase_end(b->t);
	elements_grid(b, convert_element);
}

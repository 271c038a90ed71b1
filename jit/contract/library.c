/* library.c - a contraction as calls of a library's matrix product.
 *
 *	for each part (points of the other indices of the result, M block, N block):
 *		for each point of the other reduced indices: the library's product, added up
 *		store it through the members, where it did not go into the result at once
 *
 * Input: a problem read as a contraction (contract.c), of which both operands are plain reads. One
 * index each of M, N and K becomes a dimension of the product, so chosen that every operand is
 * contiguous along one of its two; all others become loops around it. So a convolution without
 * padding is a sum of products over the places of its kernel, and a transpose costs nothing. */
#include "jit/contract/internal.h"
#include "jit/library/library.h"

#include <string.h>

typedef struct Matrix {
	Node *buffer, *index; /* flat, over the problem's axes */
	int64_t lead;	      /* elements from row to row, or column to column */
	bool transposed;
} Matrix;

typedef struct Product {
	Contract *c;
	Matrix left, right, out;
	bool direct;	  /* out is the result itself, else a block of scratch */
	Node *m, *n, *k;  /* the axes that are dimensions; the left operand has m */
	int64_t mc, nc;	  /* of a block */
	int64_t nmc, nnc; /* blocks */
	Node *part;
	Node *rows, *cols, *add;
	const char *function; /* of the library */
	int naxis;	      /* what stands for the problem's axes in a call */
	Node *axis[COMP_MAX_AXES], *value[COMP_MAX_AXES];
} Product;

/* The matrix of rows along r and columns along c, or transposed; false when neither is contiguous. */
static bool matrix_find(const Problem *p, Matrix *x, Node *r, Node *c)
{
	int64_t down = affine_stride(p->ir, x->index, r), step = affine_stride(p->ir, x->index, c);
	x->transposed = step != 1 || down < axis_extent(c);
	x->lead = x->transposed ? step : down;
	return x->transposed ? down == 1 && step >= axis_extent(r) : true;
}

static double product_size(Node *m, Node *n, Node *k)
{
	return (double)axis_extent(m) * (double)axis_extent(n) * (double)axis_extent(k);
}

static bool is_plain(const Contract *c, const Operand *f)
{
	return f->value->op == OP_READ && f->value->type == c->p->acc && f->nguard == 0 &&
	       type_is_float(c->p->acc);
}

/* Tries m, n, k as dimensions, left having m; keeps them in *best when they are more of the work.
 */
static void product_try(const Product *q, bool plain, Node *m, Node *n, Node *k, Product *best)
{
	static const double whole = 1.5; /* times as much work as writing a block and copying it */
	const Problem *p = q->c->p;
	Product t = *q;
	t.m = m, t.n = n, t.k = k;
	if (!matrix_find(p, &t.left, m, k) || !matrix_find(p, &t.right, k, n))
		return;
	t.out = (Matrix){.buffer = p->out[0], .index = p->out_index[0]};
	t.direct = plain && matrix_find(p, &t.out, m, n) && !t.out.transposed;
	double size = product_size(m, n, k) * (t.direct ? whole : 1);
	if (!best->m || size > product_size(best->m, best->n, best->k) * (best->direct ? whole : 1))
		*best = t;
}

static bool product_find(Product *best, Problem *p, const Target *target)
{
	Contract *c = arena_alloc(&p->ir->arena, sizeof *c);
	*best = (Product){0};
	if (!contract_find(c, p, target, false) || c->nchoice || !is_plain(c, &c->a) ||
	    !is_plain(c, &c->b))
		return false;
	bool plain = p->nout == 1 && p->out_value[0] == p->result && p->acc == p->type;
	Matrix a = {.buffer = c->a.value->src[0], .index = c->a.value->src[1]};
	Matrix b = {.buffer = c->b.value->src[0], .index = c->b.value->src[1]};
	Product q[2] = {{.c = c, .left = a, .right = b}, {.c = c, .left = b, .right = a}};
	for (int i = 0; i < c->m.naxis; i++)
		for (int j = 0; j < c->n.naxis; j++)
			for (int k = 0; k < c->k.naxis; k++) {
				Node *m = c->m.axis[i], *n = c->n.axis[j], *s = c->k.axis[k];
				product_try(&q[0], plain, m, n, s, best);
				product_try(&q[1], plain, n, m, s, best);
			}
	return best->m && tensor_size(p->out[0]) < INT32_MAX && best->left.lead < INT32_MAX &&
	       best->right.lead < INT32_MAX;
}

/* ---- schedules ---- */

enum { PARTS_FEW = 4, PARTS_MORE = 12, BLOCK_LEAST = 32, WORTH_A_CALL = 16 * 16 * 16 };

static double other_points(const Product *q)
{
	const Contract *c = q->c;
	return (double)c->m.extent * (double)c->n.extent * (double)c->batch.extent /
	       ((double)axis_extent(q->m) * (double)axis_extent(q->n));
}

/* Blocks of the longer dimension, until there is a part for every thread. */
static void product_offer(const Product *q, int library, int parts, Schedule *s)
{
	int64_t extent[2] = {axis_extent(q->m), axis_extent(q->n)}, block[2];
	double points = other_points(q);
	memcpy(block, extent, sizeof block);
	while (points * (double)((extent[0] + block[0] - 1) / block[0]) *
		       (double)((extent[1] + block[1] - 1) / block[1]) <
	       parts) {
		int longer = block[1] > block[0];
		if (block[longer] <= BLOCK_LEAST)
			break;
		block[longer] = (block[longer] + 1) / 2;
	}
	memset(s, 0, sizeof *s);
	schedule_add(s, STEP_LIBRARY, 0, library);
	schedule_add(s, STEP_BLOCK, 0, block[0]);
	schedule_add(s, STEP_BLOCK, 1, block[1]);
}

int library_offers(Problem *p, const Target *target, int room, Schedule *out)
{
	static const int parts[] = {PARTS_FEW, PARTS_MORE};
	Product *q = arena_alloc(&p->ir->arena, sizeof *q);
	int n = 0;
	const Library *library;
	if (room < 1 || !product_find(q, p, target) ||
	    product_size(q->m, q->n, q->k) < WORTH_A_CALL)
		return 0;
	for (int k = 0; k < COUNT(parts); k++)
		for (int i = 0; (library = library_row(i)) && n < room; i++) {
			if (!library->product[p->acc] || !library_ready(library, NULL, 0))
				continue;
			product_offer(q, i, parts[k], &out[n]);
			n += schedule_is_new(out, n);
		}
	return n;
}

/* ---- loops ---- */

static Node *num(const Product *q, int64_t v)
{
	return node_int(q->c->ir, v);
}

static int read_steps(Product *q, const Schedule *s, Error *err)
{
	int64_t extent[2] = {axis_extent(q->m), axis_extent(q->n)}, block[2];
	memcpy(block, extent, sizeof block);
	for (int k = 0; k < s->n; k++) {
		const ScheduleStep *step = &s->step[k];
		if (step->kind == STEP_LIBRARY)
			continue;
		if (step->kind != STEP_BLOCK || step->axis < 0 || step->axis > 1 || step->arg < 1)
			return schedule_misfit(err, "step %d does not fit a library's product",
					       k + 1);
		if (step->arg < block[step->axis])
			block[step->axis] = step->arg;
	}
	q->mc = block[0], q->nc = block[1];
	q->nmc = (extent[0] + q->mc - 1) / q->mc;
	q->nnc = (extent[1] + q->nc - 1) / q->nc;
	return 0;
}

static void stands_for(Product *q, Node *axis, Node *value)
{
	q->axis[q->naxis] = axis;
	q->value[q->naxis++] = value;
}

static Node *at_call(const Product *q, Node *e)
{
	return node_replace(q->c->ir, e, q->naxis, q->axis, q->value);
}

/* The numbers of a part: its block, and a point of the axes that are no dimensions. */
static void set_part(Product *q, Tree *t)
{
	Contract *c = q->c;
	Ir *ir = c->ir;
	const IndexGroup *group[3] = {&c->m, &c->n, &c->batch};
	int64_t blocks = q->nmc * q->nnc;
	q->part = tree_axis(t, blocks * (int64_t)other_points(q));
	Node *block = node_floormod(ir, q->part, blocks),
	     *point = node_floordiv(ir, q->part, blocks);
	Node *i = node_scale(ir, node_floordiv(ir, block, q->nnc), q->mc);
	Node *j = node_scale(ir, node_floormod(ir, block, q->nnc), q->nc);
	q->rows = node2(ir, OP_MIN, num(q, q->mc), node_sub(ir, num(q, axis_extent(q->m)), i));
	q->cols = node2(ir, OP_MIN, num(q, q->nc), node_sub(ir, num(q, axis_extent(q->n)), j));
	stands_for(q, q->m, i);
	stands_for(q, q->n, j);
	int first = q->naxis;
	for (int s = 0; s < COUNT(group); s++)
		for (int k = 0; k < group[s]->naxis; k++)
			if (group[s]->axis[k] != q->m && group[s]->axis[k] != q->n)
				stands_for(q, group[s]->axis[k], NULL);
	axes_at(ir, point, q->naxis - first, q->axis + first, q->value + first);
}

/* The product, in loops over the other reduced axes; all but the first of them add to it. */
static Stmt *multiply(Product *q, Tree *t)
{
	Contract *c = q->c;
	Node *loop[COMP_MAX_AXES], *add = num(q, 0);
	int nloop = 0;
	stands_for(q, q->k, num(q, 0));
	for (int k = 0; k < c->k.naxis; k++)
		if (c->k.axis[k] != q->k) {
			loop[nloop] = tree_axis(t, axis_extent(c->k.axis[k]));
			stands_for(q, c->k.axis[k], loop[nloop]);
			add = node_add(c->ir, add, loop[nloop++]);
		}
	CallArg arg[] = {{NULL, q->rows},
			 {NULL, q->cols},
			 {NULL, num(q, axis_extent(q->k))},
			 {q->left.buffer, at_call(q, q->left.index)},
			 {NULL, num(q, q->left.lead)},
			 {q->right.buffer, at_call(q, q->right.index)},
			 {NULL, num(q, q->right.lead)},
			 {NULL, num(q, q->left.transposed | q->right.transposed << 1)},
			 {q->out.buffer, at_call(q, q->out.index)},
			 {NULL, num(q, q->out.lead)},
			 {NULL, add}};
	Stmt *s = stmt_call(t, q->function, COUNT(arg), arg);
	while (nloop > 0)
		s = stmt_loop(t, HOW_SERIAL, loop[--nloop], NULL, NULL, s);
	return s;
}

/* Every member at each element of the block. */
static Stmt *store(Product *q, Tree *t)
{
	Contract *c = q->c;
	Node *i = tree_axis(t, q->mc), *j = tree_axis(t, q->nc);
	Node *result =
		buffer_read(t, q->out.buffer, node_add(c->ir, node_scale(c->ir, i, q->nc), j));
	q->value[0] = node_add(c->ir, q->value[0], i); /* m and n came first */
	q->value[1] = node_add(c->ir, q->value[1], j);
	Stmt *body = problem_store(c->p, q->naxis, q->axis, q->value, result);
	return stmt_loop(t, HOW_SERIAL, i, NULL, q->rows,
			 stmt_loop(t, HOW_VECTOR, j, NULL, q->cols, body));
}

int lower_library(Problem *p, const Schedule *s, const Target *target, Error *err)
{
	Product *q = arena_alloc(&p->ir->arena, sizeof *q);
	Tree *t = p->tree;
	char why[256] = "";
	const ScheduleStep *step = schedule_find(s, STEP_LIBRARY);
	const Library *library = step ? library_row((int)step->arg) : NULL;
	if (!library)
		return schedule_misfit(err, "there is no such library");
	if (!library_ready(library, why, sizeof why))
		return error_set(err, RICCI_EUNSUPPORTED, "schedule: there is no %s: %s",
				 library->name, why);
	if (!product_find(q, p, target))
		return schedule_misfit(err,
				       "library needs a sum of products of two tensors, each "
				       "contiguous along an index of its own or a reduced one");
	q->function = library->product[p->acc];
	if (!q->function)
		return schedule_misfit(err, "%s has no product of %s", library->name,
				       type_name(p->acc));
	if (read_steps(q, s, err))
		return err->code;
	set_part(q, t);
	if (!q->direct) {
		q->out = (Matrix){.index = num(q, 0), .lead = q->nc};
		q->out.buffer = tree_buffer(t, SPACE_SCRATCH, "pc", p->acc, q->mc * q->nc);
	}
	Stmt *body = multiply(q, t);
	if (!q->direct)
		body = stmt_seq(body, store(q, t));
	phase_section(t, q->part, body);
	phases_finish(t, NULL, NULL);
	return error_set(err, p->ir->err.code, "%s", p->ir->err.text);
}

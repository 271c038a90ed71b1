/* problem.c - a task's subgraph as one loop problem.
 *
 * Input: a Subgraph (main equation and pointwise members). Output: a Problem in the tree's scratch
 * Ir: bodies over fresh axes, every read and every left side as a flat index, axes that always
 * occur as a*extent(b) + b merged into one. Invariant: values are the same at every point of the
 * domain; nothing is evaluated where its condition is false. */
#include "jit/tree/problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- copying with flat reads ---- */

typedef struct Take {
	Problem *p;
	const Rows *rows; /* NULL: all of the tensors */
	Node **memo;	  /* by id of the source Ir */
	uint32_t room;
	int naxis; /* the axes of the equation being taken, and what stands for them */
	Node *from[COMP_MAX_AXES], *to[COMP_MAX_AXES];
	Node **tensor_from, **tensor_to; /* inputs: the tensor and its buffer */
	int ntensor;
	int nmember; /* members taken already: their values */
	Node *value[PROBLEM_MAX_MEMBERS];
} Take;

static void strides_of(const Node *tensor, int64_t *stride)
{
	int64_t s = 1;
	for (int d = tensor_rank(tensor) - 1; d >= 0; d--) {
		stride[d] = s;
		s *= tensor_extent(tensor, d);
	}
}

static Node *take(Take *k, Node *n);

static Node *take_index(Take *k, Node *e)
{
	Node *i = take(k, e);
	return i->type == RICCI_I64 ? i : node_cast(k->p->ir, RICCI_I64, i);
}

static int rows_find(const Rows *r, const Node *tensor)
{
	int k = 0;
	while (k + 1 < r->ntensor && r->tensor[k] != tensor)
		k++;
	return k;
}

/* Of a fold among rows: what it adds to; NULL: c is none. */
static Node *sums_of(const Take *k, const Node *c)
{
	return k->rows ? k->rows->sums[rows_find(k->rows, c)] : NULL;
}

/* The dimension of c that rows begin at. */
static int lead_of(const Take *k, const Node *c)
{
	return k->rows ? k->rows->lead[rows_find(k->rows, c)] : 0;
}

/* In a buffer of one row only. */
static void strides_local(const Node *tensor, int lead, int rows, int64_t *stride)
{
	int64_t count = 1;
	for (int d = lead; d < lead + rows; d++) {
		count *= tensor_extent(tensor, d);
		stride[d] = 0;
	}
	for (int d = 0; d < lead; d++)
		stride[d] /= count;
}

static Node *take_flat(Take *k, const Node *tensor, Node *const *index)
{
	Ir *ir = k->p->ir;
	int64_t stride[RICCI_MAX_RANK];
	strides_of(tensor, stride);
	if (k->rows && k->rows->local[rows_find(k->rows, tensor)])
		strides_local(tensor, lead_of(k, tensor), k->rows->rows, stride);
	Node *flat = node_int(ir, 0);
	for (int d = 0; d < tensor_rank(tensor); d++)
		flat = node_add(ir, flat, node_scale(ir, take_index(k, index[d]), stride[d]));
	return flat;
}

/* Remembers how main's body reads a tensor. */
static void take_note(Take *k, Node *read, const Node *tensor, Node *const *index)
{
	Problem *p = k->p;
	if (k->nmember > 0)
		return;
	p->read = arena_grow(&k->p->ir->arena, p->read, p->nread, &p->read_room, sizeof *p->read);
	ProblemRead *r = &p->read[p->nread++];
	r->read = read;
	r->rank = tensor_rank(tensor);
	strides_of(tensor, r->stride);
	for (int d = 0; d < r->rank; d++)
		r->dim[d] = take_index(k, index[d]);
}

static Node *take_read(Take *k, Node *n)
{
	Ir *ir = k->p->ir;
	Node *tensor = n->src[0];
	for (int m = 0; m < k->nmember; m++)
		if (k->p->sub->member[m] == tensor)
			return k->value[m];
	for (int j = 0; j < k->ntensor; j++)
		if (k->tensor_from[j] == tensor) {
			Node *flat = take_flat(k, tensor, n->src + 1);
			Node *read = node_read(ir, k->tensor_to[j], &flat);
			take_note(k, read, tensor, n->src + 1);
			return read;
		}
	error_set(&ir->err, RICCI_EINTERNAL, "a subgraph reads a tensor that is not its input");
	return node_const(ir, n->type, 0);
}

static Node *take(Take *k, Node *n)
{
	Ir *ir = k->p->ir;
	if (k->memo[n->id])
		return k->memo[n->id];
	Node *out = NULL;
	if (n->op == OP_READ) {
		out = take_read(k, n);
	} else if (n->op == OP_AXIS) {
		for (int j = 0; j < k->naxis; j++)
			if (k->from[j] == n)
				out = k->to[j];
	} else if (n->op == OP_CONST) {
		out = type_is_float(n->type) ? node_const(ir, n->type, n->u.f)
					     : node_const_int(ir, n->type, n->u.i);
	} else {
		Node *src[4];
		for (int j = 0; j < n->nsrc && j < 4; j++)
			src[j] = take(k, n->src[j]);
		out = node_make(ir, n->op, n->type, n->nsrc, src, n->u.i);
	}
	if (!out) {
		error_set(&ir->err, RICCI_EINTERNAL,
			  "an equation uses an axis that is not its own");
		out = node_int(ir, 0);
	}
	return k->memo[n->id] = out;
}

static uint32_t id_bound(const Subgraph *s)
{
	uint32_t top = 0;
	for (int m = 0; m < s->nmember; m++) /* sources have smaller ids */
		if (s->member[m]->id > top)
			top = s->member[m]->id;
	return top + 1;
}

/* ---- the left side ---- */

/* Has a dimension but d the axis? */
static bool in_another(int rank, Node *const *lhs, int d, Node *axis)
{
	bool found = false;
	for (int e = 0; e < rank; e++)
		found |= e != d && node_has(lhs[e], axis);
	return found;
}

int problem_place_axes(const Problem *p, int d, Node **axis)
{
	bool has[COMP_MAX_AXES], alone = true;
	Node *e = p->lhs[d];
	int64_t points = 1;
	int n = node_axes(p->ir, 1, &e, axis);
	for (int k = 0; k < n; k++) {
		points *= axis_extent(axis[k]);
		alone &= affine_stride(p->ir, e, axis[k]) > 0 &&
			 (n == 1 || !in_another(p->rank, p->lhs, d, axis[k]));
	}
	for (int other = 0; other < p->rank; other++)
		alone &= other == d || p->lhs[other] != e;
	return alone && n && points == p->shape[d] && e->lo == 0 && e->hi == points - 1 &&
			       indices_one_to_one(p->ir, n, axis, 1, &e, has)
		       ? n
		       : 0;
}

static void find_free_axes(Problem *p)
{
	Node *axis[COMP_MAX_AXES];
	for (int d = 0; d < p->rank; d++) {
		int n = problem_place_axes(p, d, axis);
		for (int k = 0; k < n; k++)
			p->free_axis[p->nfree++] = axis[k];
	}
}

/* ---- which axes occur how ---- */

typedef struct Usage {
	Problem *p;
	uint8_t *seen;
	bool bad[COMP_MAX_AXES]; /* occurs other than as an affine term of a flat index */
	int nflat, room;
	Affine *flat;
} Usage;

static int axis_place(const Problem *p, const Node *axis)
{
	for (int k = 0; k < p->naxis; k++)
		if (p->axis[k] == axis)
			return k;
	return -1;
}

static void usage_walk(Usage *u, Node *n);

static void usage_flat(Usage *u, Node *index)
{
	Ir *ir = u->p->ir;
	Affine a = affine_of(ir, index);
	u->flat = arena_grow(&ir->arena, u->flat, u->nflat, &u->room, sizeof a);
	u->flat[u->nflat++] = a;
	for (int j = 0; j < a.n; j++)
		if (a.atom[j]->op != OP_AXIS)
			usage_walk(u, a.atom[j]);
}

static void usage_walk(Usage *u, Node *n)
{
	if (n->op == OP_AXIS) {
		int k = axis_place(u->p, n);
		if (k >= 0)
			u->bad[k] = true;
		return;
	}
	if (u->seen[n->id])
		return;
	u->seen[n->id] = 1;
	if (n->op == OP_READ) {
		usage_flat(u, n->src[1]);
		return;
	}
	for (int j = 0; j < n->nsrc; j++)
		usage_walk(u, n->src[j]);
}

static void usage_init(Usage *u, Problem *p)
{
	memset(u, 0, sizeof *u);
	u->p = p;
	u->seen = arena_alloc(&p->ir->arena, p->ir->count + 64);
	usage_walk(u, p->body);
	usage_flat(u, p->index);
	for (int k = 0; k < p->nout; k++) {
		usage_flat(u, p->out_index[k]);
		usage_walk(u, p->out_value[k]);
	}
	for (int d = 0; p->scatter && d < p->rank; d++)
		usage_walk(u, p->lhs[d]);
}

void problem_replace(Problem *p, int n, Node *const *from, Node *const *to)
{
	Ir *ir = p->ir;
	p->body = node_replace(ir, p->body, n, from, to);
	p->index = node_replace(ir, p->index, n, from, to);
	for (int k = 0; k < p->nread; k++) {
		ProblemRead *r = &p->read[k];
		r->read = node_replace(ir, r->read, n, from, to);
		for (int d = 0; d < r->rank; d++)
			r->dim[d] = node_replace(ir, r->dim[d], n, from, to);
	}
	for (int k = 0; k < p->nout; k++) {
		p->out_index[k] = node_replace(ir, p->out_index[k], n, from, to);
		p->out_value[k] = node_replace(ir, p->out_value[k], n, from, to);
	}
}

/* a and b always occur as a*extent(b) + b? */
static bool can_merge(const Usage *u, int a, int b)
{
	const Problem *p = u->p;
	if (a == b || u->bad[a] || u->bad[b] || (a < p->nspatial) != (b < p->nspatial))
		return false;
	for (int f = 0; f < u->nflat; f++)
		if (affine_coefficient(&u->flat[f], p->axis[a]) !=
		    affine_coefficient(&u->flat[f], p->axis[b]) * axis_extent(p->axis[b]))
			return false;
	return true;
}

static bool merge_once(Problem *p)
{
	Usage u;
	usage_init(&u, p);
	for (int a = 0; a < p->naxis; a++)
		for (int b = 0; b < p->naxis; b++) {
			if (!can_merge(&u, a, b))
				continue;
			int64_t extent = axis_extent(p->axis[a]) * axis_extent(p->axis[b]);
			Node *from[2] = {p->axis[a], p->axis[b]};
			Node *to[2] = {node_int(p->ir, 0), tree_axis(p->tree, extent)};
			problem_replace(p, 2, from, to);
			p->axis[b] = to[1];
			for (int k = a; k + 1 < p->naxis; k++)
				p->axis[k] = p->axis[k + 1];
			p->nspatial -= a < p->nspatial;
			p->naxis--;
			return true;
		}
	return false;
}

const ProblemRead *problem_read(const Problem *p, const Node *read)
{
	for (int k = 0; k < p->nread; k++)
		if (p->read[k].read == read)
			return &p->read[k];
	return NULL;
}

bool problem_read_inside(const Problem *p, const ProblemRead *r, Node *const *at, Node *cond)
{
	Ir *ir = p->ir;
	Polyhedron *poly = poly_new(ir);
	Node *flat = node_int(ir, 0), *size = node_int(ir, tensor_size(r->read->src[0]));
	for (int d = 0; d < r->rank; d++)
		flat = node_add(ir, flat, node_scale(ir, at[d], r->stride[d]));
	poly_assume(poly, cond);
	return poly_implies(poly, node2(ir, OP_LE, node_int(ir, 0), flat)) &&
	       poly_implies(poly, node2(ir, OP_LT, flat, size));
}

/* Does the axis a go outside of b? Of results it does with the larger stride, of what is summed where the reads of the
 * largest tensor that moves otherwise along a move farther: what lies together there is read together. */
static bool goes_outside(const Problem *p, int a, int b)
{
	int64_t size = 0;
	bool farther = false;
	if (a < p->nspatial)
		return affine_stride(p->ir, p->index, p->axis[a]) >
		       affine_stride(p->ir, p->index, p->axis[b]);
	for (int k = 0; k < p->nread; k++) {
		const Node *read = p->read[k].read;
		int64_t of_a = affine_distance(p->ir, read->src[1], p->axis[a]);
		int64_t of_b = affine_distance(p->ir, read->src[1], p->axis[b]);
		if (of_a == INT64_MAX || of_b == INT64_MAX)
			return false;
		if (of_a == of_b || tensor_size(read->src[0]) <= size)
			continue;
		size = tensor_size(read->src[0]);
		farther = of_a > of_b;
	}
	return farther;
}

/* Axes in the order of loops, results' before others; a scatter keeps its own. */
static void sort_axes(Problem *p)
{
	if (p->scatter)
		return;
	for (int i = 1; i < p->naxis; i++) {
		int first = i < p->nspatial ? 0 : p->nspatial;
		for (int j = i; j > first && goes_outside(p, j, j - 1); j--) {
			Node *x = p->axis[j];
			p->axis[j] = p->axis[j - 1];
			p->axis[j - 1] = x;
		}
	}
}

/* ---- the whole ---- */

static void take_tensors(Take *k)
{
	Problem *p = k->p;
	const Subgraph *s = p->sub;
	Ir *ir = p->ir;
	k->ntensor = s->ninput;
	k->tensor_from = s->input;
	k->tensor_to = arena_alloc(&ir->arena, (size_t)(s->ninput + 1) * sizeof(Node *));
	for (int j = 0; j < s->ninput; j++)
		k->tensor_to[j] = k->rows ? k->rows->buffer[rows_find(k->rows, s->input[j])]
					  : tree_param(p->tree, s->input[j], j, false);
}

static void take_axes(Take *k, const Node *comp)
{
	k->naxis = comp_naxis(comp);
	for (int j = 0; j < k->naxis; j++)
		k->from[j] = comp_axis(comp, j);
}

static void take_main(Take *k)
{
	Problem *p = k->p;
	Ir *ir = p->ir;
	const Node *c = p->sub->member[0];
	int rank = tensor_rank(c);
	bool spatial[COMP_MAX_AXES];
	bool fold = sums_of(k, c) != NULL;
	/* dense: axis j is dimension j, then come the reduced ones */
	int rows = k->rows ? k->rows->rows : 0, lead = lead_of(k, c), row = fold ? rank : lead;
	take_axes(k, c);
	for (int j = 0; j < k->naxis; j++) {
		int64_t e = axis_extent(k->from[j]);
		if (j >= row && j < row + rows) {
			k->to[j] = k->rows->index[j - row];
			continue;
		}
		k->to[j] = e == 1 ? node_int(ir, 0) : tree_axis(p->tree, e);
		if (e > 1)
			p->axis[p->naxis++] = k->to[j];
	}
	p->red = comp_reduce(c);
	p->acc = type_accumulator(c->type);
	p->type = fold ? p->acc : (Type)c->type;
	p->body = node_cast(ir, p->type, take(k, comp_body(c)));
	p->rank = rank;
	for (int d = 0; d < rank; d++) {
		int at = d < rows ? lead + d : d < lead + rows ? d - rows : d;
		p->lhs[d] = take_index(k, comp_lhs(c, at));
		p->shape[d] = tensor_extent(c, at);
	}
	p->index = take_flat(k, c, c->src + comp_naxis(c));
	if (fold)
		rows = 0; /* of the left side */
	p->main_size = tensor_size(c);
	p->scatter =
		!indices_one_to_one(ir, p->naxis, p->axis, rank - rows, p->lhs + rows, spatial);
	if (p->scatter) {
		find_free_axes(p);
		p->nspatial = p->naxis;
		return;
	}
	Node *order[COMP_MAX_AXES];
	int n = 0;
	double written = 1;
	for (int pass = 0; pass < 2; pass++) {
		for (int j = 0; j < p->naxis; j++)
			if (spatial[j] == !pass)
				order[n++] = p->axis[j];
		p->nspatial = pass ? p->nspatial : n;
	}
	memcpy(p->axis, order, (size_t)n * sizeof *order);
	for (int j = 0; j < p->nspatial; j++)
		written *= (double)axis_extent(p->axis[j]);
	p->partial = !k->rows && written < (double)p->main_size;
}

static void take_output(Take *k, int m, Node *index, Node *value)
{
	Problem *p = k->p;
	const Node *c = p->sub->member[m];
	Node *sums = sums_of(k, c);
	if (!p->sub->stored[m])
		return;
	if (sums) {
		Node *at = node_scale(p->ir, k->rows->block, tensor_size(c));
		index = node_add(p->ir, index, at);
		value = node_cast(p->ir, (Type)sums->type, value);
	}
	p->out[p->nout] = sums	    ? sums
			  : k->rows ? k->rows->buffer[rows_find(k->rows, c)]
				    : tree_param(p->tree, c, p->sub->ninput + p->nout, true);
	p->out_red[p->nout] = sums ? comp_reduce(c) : RED_NONE;
	if (m == 0)
		p->main_out = p->out[p->nout];
	p->out_index[p->nout] = index;
	p->out_value[p->nout++] = value;
}

/* Another member's axes: those over the rows, and main's over its own space. */
static int take_member_axes(Take *k, const Node *c)
{
	const Problem *p = k->p;
	const Node *main = p->sub->member[0];
	int rows = k->rows ? k->rows->rows : 0, skip = sums_of(k, main) ? 0 : rows;
	int row = sums_of(k, c) ? tensor_rank(c) : lead_of(k, c), place = skip;
	take_axes(k, c);
	for (int j = 0; j < k->naxis; j++) {
		if (j >= row && j < row + rows)
			k->to[j] = k->rows->index[j - row];
		else if (place < tensor_rank(main))
			k->to[j] = p->lhs[place++];
		else
			return error_set(&p->ir->err, RICCI_EINTERNAL,
					 "a member has more axes than the main equation");
	}
	return 0;
}

static int problem_take(Problem *p, Tree *tree, const Subgraph *sub, const Rows *rows)
{
	p->tree = tree;
	p->ir = tree->ir;
	p->sub = sub;
	p->rows = rows;
	Take k = {.p = p, .rows = rows, .room = id_bound(sub)};
	Ir *ir = p->ir;
	if (sub->nmember > PROBLEM_MAX_MEMBERS)
		return error_set(&ir->err, RICCI_EUNSUPPORTED, "a subgraph of %d members",
				 sub->nmember);
	take_tensors(&k);
	k.memo = arena_alloc(&ir->arena, k.room * sizeof(Node *));
	take_main(&k);
	int64_t one[1] = {1};
	Node *zero = node_int(ir, 0);
	p->result = node_read(ir, node_input(ir, "result", p->type, 1, one), &zero);
	Node *value = p->result;
	if (p->red == RED_NONE || (p->naxis == p->nspatial && !p->scatter)) {
		p->red = RED_NONE;
		value = p->body;
	}
	k.value[0] = value;
	k.nmember = 1;
	take_output(&k, 0, p->index, value);
	if ((p->scatter || p->partial) && sub->nmember > 1)
		return error_set(&ir->err, RICCI_EUNSUPPORTED,
				 "members after an equation with a scattered left side");
	for (int m = 1; m < sub->nmember; m++) {
		const Node *c = sub->member[m];
		memset(k.memo, 0, k.room * sizeof(Node *));
		if (take_member_axes(&k, c))
			return ir->err.code;
		k.value[m] = take(&k, comp_body(c));
		k.nmember = m + 1;
		take_output(&k, m, take_flat(&k, c, c->src + comp_naxis(c)), k.value[m]);
	}
	if (ir->err.code)
		return ir->err.code;
	if (!p->scatter)
		while (merge_once(p)) {
		}
	sort_axes(p);
	return ir->err.code;
}

typedef struct Finite {
	const Tree *t;
	bool finite;
} Finite;

/* Rows in local memory have room behind what is written. */
static bool may_be_unwritten(const Tree *t, const Node *buffer)
{
	const Buffer *b = tree_find(t, buffer);
	return b && (buffer_is_local(b) || b->space == SPACE_SCRATCH);
}

static void see_infinite(void *user, Node *n)
{
	Finite *f = user;
	if (type_is_float((Type)n->type))
		f->finite &= n->op == OP_READ ? !may_be_unwritten(f->t, n->src[0])
					      : node_stays_finite(n);
}

bool stays_finite(const Tree *t, Node *e)
{
	Finite f = {t, true};
	node_walk(t->ir, e, see_infinite, &f);
	return f.finite;
}

Node *problem_narrow(const Problem *p, Node *v)
{
	int64_t lo, hi;
	Ir *ir = p->ir;
	if (p->acc == p->type)
		return v;
	if (type_is_float(p->type))
		return node_cast(ir, p->type, v);
	type_range(p->type, &lo, &hi);
	v = node2(ir, OP_ADD, v, node_const_int(ir, p->acc, -lo));
	v = node2(ir, OP_FLOORMOD, v, node_const_int(ir, p->acc, hi - lo + 1));
	return node_cast(ir, p->type, node2(ir, OP_ADD, v, node_const_int(ir, p->acc, lo)));
}

Problem *problem_new(Tree *tree, const Subgraph *sub, const Rows *rows)
{
	Problem *p = arena_alloc(&tree->ir->arena, sizeof *p);
	return problem_take(p, tree, sub, rows) ? NULL : p;
}

Stmt *problem_store(const Problem *p, int n, Node *const *axis, Node *const *at, Node *value)
{
	Stmt *all = NULL;
	Node *result = problem_narrow(p, value);
	for (int k = 0; k < p->nout; k++) {
		Node *index = node_replace(p->ir, p->out_index[k], n, axis, at);
		Node *out = node_replace(p->ir, p->out_value[k], n, axis, at);
		out = node_replace(p->ir, out, 1, &p->result, &result);
		all = stmt_seq(all, stmt_store(p->tree, p->out[k], index, out, p->out_red[k]));
	}
	return all;
}

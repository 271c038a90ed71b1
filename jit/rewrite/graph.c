/* graph.c - equations to equations: the clean-up before fusion.
 * In: roots of a graph. Out: roots of the same types, shapes and values, computed by no more
 * equations. Common subexpressions and dead code need no pass of their own: equal nodes are one,
 * and what no root needs is not met. */
#include "jit/rewrite/rewrite.h"

static bool is_constant(const Node *c)
{
	return c->op == OP_COMP && comp_reduce(c) == RED_NONE && comp_body(c)->op == OP_CONST;
}

static bool is_zero_product(const Node *n)
{
	return (n->op == OP_MUL || n->op == OP_DIV) && type_is_float((Type)n->type) &&
	       (node_is_value(n->src[0], 0) || (n->op == OP_MUL && node_is_value(n->src[1], 0)));
}

/* Products and quotients of 0 are 0. */
static Node *zeros_away(Ir *ir, Node *e)
{
	for (Node *n; (n = node_find(ir, e, is_zero_product, NULL));) {
		Node *zero = node_const(ir, (Type)n->type, 0);
		e = node_replace(ir, e, 1, &n, &zero);
	}
	return e;
}

/* Reads of constants become constants. */
static Node *constants_read(Ir *ir, Node *e)
{
	Node **read;
	int all = node_collect(ir, e, OP_READ, &read), n = 0;
	Node **to = arena_alloc(&ir->arena, (size_t)all * sizeof *to);
	for (int k = 0; k < all; k++)
		if (is_constant(read[k]->src[0])) {
			read[n] = read[k];
			to[n++] = comp_body(read[k]->src[0]);
		}
	return n ? zeros_away(ir, node_replace(ir, e, n, read, to)) : e;
}

/* Only differentiation looks at stop_gradient(a); from here on it is a. One inside another's operand goes in
 * the next round. */
static Node *stops_away(Ir *ir, Node *e)
{
	Node **stop;
	for (int n; (n = node_collect(ir, e, OP_STOP, &stop));) {
		Node **to = arena_alloc(&ir->arena, (size_t)n * sizeof *to);
		for (int k = 0; k < n; k++)
			to[k] = stop[k]->src[0];
		e = node_replace(ir, e, n, stop, to);
	}
	return e;
}

/* Powers of 3 and 4 are products, which take a tenth of the time. */
static Node *powers_written(Ir *ir, Node *e)
{
	Node **power;
	int n = node_collect(ir, e, OP_POW, &power);
	for (int k = n - 1; k >= 0; k--) { /* those in others' operands later */
		Node *x = power[k]->src[0], *square = node2(ir, OP_MUL, x, x);
		bool four = node_is_value(power[k]->src[1], 4);
		if (four || node_is_value(power[k]->src[1], 3)) {
			Node *product = node2(ir, OP_MUL, square, four ? square : x);
			e = node_replace(ir, e, 1, &power[k], &product);
		}
	}
	return e;
}

/* What integers by a condition, or the condition itself, is as a float; NULL: n is none such. */
static Node *chosen_float(Ir *ir, const Node *n)
{
	Node *from = n->src[0];
	if (!type_is_float((Type)n->type))
		return NULL;
	if (from->type == RICCI_BOOL && from->op != OP_CONST && from->op != OP_READ)
		return node_select(ir, from, node_const(ir, (Type)n->type, 1),
				   node_const(ir, (Type)n->type, 0));
	if (from->op != OP_SELECT || !node_is_const(from->src[1]) || !node_is_const(from->src[2]))
		return NULL;
	return node_select(ir, from->src[0], node_cast(ir, (Type)n->type, from->src[1]),
			   node_cast(ir, (Type)n->type, from->src[2]));
}

/* `X*f32(j == i)` is `X*(j == i ? 1.0 : 0.0)`: conditions of a factor are conditions of the sum. */
static Node *choices_as_floats(Ir *ir, Node *e)
{
	Node **cast;
	int all = node_collect(ir, e, OP_CAST, &cast), n = 0;
	Node **to = arena_alloc(&ir->arena, ((size_t)all + 1) * sizeof *to);
	for (int k = 0; k < all; k++)
		if ((to[n] = chosen_float(ir, cast[k])))
			cast[n++] = cast[k];
	return n ? node_replace(ir, e, n, cast, to) : e;
}

/* Old tensors and what stands for them now, by the id of the old one. */
typedef struct Rewrite {
	Ir *ir;
	Node **now;  /* the equation itself, rewritten */
	Node **read; /* what its readers read: the original where it is a copy */
	Node **once; /* the same without the dimensions along which it repeats; NULL: there are none */
	uint32_t *without; /* these dimensions */
	uint32_t nold;	   /* ids of old tensors are less */
	int *readers;	   /* how many equations, loops and roots need it */
	Node **sum;	   /* the reduction that it is; NULL: it is none */
	bool *shared;	   /* each of those that read it is to compute what it reads */
	int nrectifier;
	Node **rectifier; /* those before this equation whose results' signs are asked for */
} Rewrite;

/* e, which reads old tensors, over what stands for them now. */
static Node *reads_now(Rewrite *w, Node *e, int n, Node *const *from, Node *const *to)
{
	Node **read;
	int nread = node_collect(w->ir, e, OP_READ, &read);
	for (int k = nread - 1; k >= 0; k--) { /* those in others' indices later */
		Node *t = read[k]->src[0];
		Node *once = t->id < w->nold ? w->once[t->id] : NULL;
		if (!once)
			continue;
		once = broadcast_read(w->ir, once, w->without[t->id], read[k]->src + 1,
				      tensor_rank(t));
		e = node_replace(w->ir, e, 1, &read[k], &once);
	}
	return node_replace(w->ir, e, n, from, to);
}

/* What `was` has become, `whole`, from `once`, which lacks these dimensions; readers will read that. */
static Node *repeated(Rewrite *w, const Node *was, const Node *whole, Node *once, uint32_t without)
{
	Node *source = tensor_copied(once);
	once = source ? source : once;
	w->once[was->id] = once;
	w->without[was->id] = without;
	once = broadcast_read(w->ir, once, without, whole->src, tensor_rank(whole));
	return comp_with(w->ir, whole, RED_NONE, once);
}

/* The reduction that c is: itself; or another one of no fewer elements, of which `from` is old, that it multiplies and only
 * it reads. */
static Node *reduction_of(const Rewrite *w, Node *c, int n, Node *const *from, Node *const *to)
{
	Node *sum = comp_reduce(c) && comp_is_dense(c) ? c : NULL;
	for (int k = 0; k < n && !sum && !comp_reduce(c); k++)
		if (w->readers[from[k]->id] == 1 && w->sum[from[k]->id] &&
		    tensor_size(c) <= tensor_size(to[k]))
			sum = reduction_inside(w->ir, c, to[k], w->sum[from[k]->id]);
	return sum;
}

/* c with the reductions in it of which it is the only reader, or that all readers are to compute. */
static Node *reductions_read(const Rewrite *w, Node *c, int n, Node *const *from, Node *const *to)
{
	for (int k = 0; k < n; k++) {
		Node *sum = w->sum[from[k]->id], *inside = NULL;
		if (sum && w->shared[from[k]->id])
			inside = reduction_inside(w->ir, c, to[k], sum);
		else if (sum && w->readers[from[k]->id] == 1)
			inside = reduction_joined(w->ir, c, to[k], sum);
		c = inside ? inside : c;
	}
	return c;
}

static Node *rewrite_comp(Rewrite *w, Node *was)
{
	Node *c = was;
	Ir *ir = w->ir;
	Node *axes[COMP_MAX_AXES], *lhs[RICCI_MAX_RANK], **from;
	int64_t shape[RICCI_MAX_RANK], first[RICCI_MAX_RANK];
	int naxis = comp_naxis(c), rank = tensor_rank(c), bare = 0, n = comp_reads(ir, c, &from);
	Node **to = arena_alloc(&ir->arena, ((size_t)n + 1) * sizeof *to);
	for (int k = 0; k < n; k++)
		to[k] = w->read[from[k]->id] ? w->read[from[k]->id] : from[k];
	for (int k = 0; k < naxis; k++)
		axes[k] = comp_axis(c, k);
	for (int d = 0; d < rank; d++) {
		lhs[d] = stops_away(ir, reads_now(w, comp_lhs(c, d), n, from, to));
		shape[d] = tensor_extent(c, d);
		for (int k = bare; k < naxis; k++)
			bare = node_has(lhs[d], axes[k]) ? k + 1 : bare;
	}
	Node *body = stops_away(ir, reads_now(w, comp_body(c), n, from, to));
	body = choices_as_floats(ir, powers_written(ir, constants_read(ir, body)));
	body = conditions_decided(ir, comp_reduce(c) == RED_NONE ? choices_joined(ir, body) : body);
	body = comp_reduce(c) == RED_ADD ? bounds_read(ir, guards_outside(ir, body)) : body;
	body = signs_read(ir, body, w->nrectifier, w->rectifier);
	body = points_found(ir, comp_reduce(c), body, &naxis, axes, bare);
	Node *whole = comp_make(ir, comp_reduce(c), rank, shape, lhs, naxis, axes, body);
	uint32_t without = broadcast_dims(ir, whole);
	Node *once = without ? broadcast_source(ir, whole, without) : whole;
	c = axes_joined(ir, repeats_counted(ir, range_narrowed(ir, once, first)));
	c = known_sum(ir, reductions_read(w, c, n, from, to));
	w->sum[was->id] = tensor_same_shape(c, was) ? reduction_of(w, c, n, from, to) : NULL;
	c = running_apart(ir, c);
	c = look_ups_in_lines(ir, sum_ordered(ir, invariants_apart(ir, c)));
	c = range_placed(ir, once, first, c);
	if (without)
		return repeated(w, was, whole, c, without);
	if (rectifier_saves(ir, c, was, w->readers))
		w->rectifier[w->nrectifier++] = c;
	return c;
}

/* The same result of the loop over its operands, rewritten. */
static Node *rewrite_scan(Rewrite *w, Node *c)
{
	int n = scan_noperand(scan_of(c));
	Node **operand = arena_alloc(&w->ir->arena, ((size_t)n + 1) * sizeof *operand);
	for (int k = 0; k < n; k++) {
		Node *t = scan_operands(c)[k];
		operand[k] = w->read[t->id] ? w->read[t->id] : t;
	}
	return scan_over(w->ir, c, operand);
}

static void count_readers(Rewrite *w, int n, Node *const *order, int nroot, Node *const *roots)
{
	for (int k = 0; k < nroot; k++)
		w->readers[roots[k]->id]++;
	for (int k = 0; k < n; k++) {
		bool scan = order[k]->op == OP_SCAN;
		Node **read = NULL;
		int reads = scan ? scan_noperand(scan_of(order[k])) : 0;
		if (order[k]->op == OP_COMP)
			reads = comp_reads(w->ir, order[k], &read);
		Node *const *from = scan ? scan_operands(order[k]) : read;
		for (int i = 0; i < reads; i++)
			w->readers[from[i]->id]++;
	}
}

/* Is t, one of the old tensors, a sum that each of those that read it, order[0..n-1], is better to compute? */
static bool is_shared(const Rewrite *w, const Node *t, int n, Node *const *order)
{
	Node *reader[READERS_MOST], **read;
	int64_t first[RICCI_MAX_RANK];
	int nreader = 0, readers = w->readers[t->id];
	if (!w->sum[t->id] || readers < 2 || readers > READERS_MOST)
		return false;
	for (int k = 0; k < n && nreader < readers; k++) {
		int m = order[k]->op == OP_COMP ? comp_reads(w->ir, order[k], &read) : 0;
		if (rewrite_place(read, m, t) >= 0)
			reader[nreader++] = range_narrowed(w->ir, order[k], first);
	}
	return nreader == readers && reduction_shared(w->ir, t, w->sum[t->id], nreader, reader);
}

int rewrite_graph(Ir *ir, int nroot, Node **roots)
{
	Node **order;
	rewrite_scans(ir, nroot, roots);
	rewrite_stacks(ir, nroot, roots);
	int n = graph_order(ir, nroot, roots, &order);
	size_t room = ir->count * sizeof(Node *);
	Rewrite w = {ir,
		     arena_alloc(&ir->arena, room),
		     arena_alloc(&ir->arena, room),
		     arena_alloc(&ir->arena, room),
		     arena_alloc(&ir->arena, room),
		     (uint32_t)ir->count,
		     arena_alloc(&ir->arena, room),
		     arena_alloc(&ir->arena, room),
		     arena_alloc(&ir->arena, room),
		     0,
		     arena_alloc(&ir->arena, (size_t)n * sizeof(Node *) + 1)};
	count_readers(&w, n, order, nroot, roots);
	for (int k = 0; k < n; k++) {
		Node *c = order[k];
		if (c->op == OP_INPUT)
			continue;
		Node *out = c->op == OP_SCAN ? rewrite_scan(&w, c) : rewrite_comp(&w, c);
		w.shared[c->id] = is_shared(&w, c, n - k - 1, order + k + 1);
		Node *source = tensor_copied(out);
		w.now[c->id] = source && source->op != OP_INPUT ? source : out;
		w.read[c->id] = source ? source : out;
	}
	for (int k = 0; k < nroot; k++)
		if (w.now[roots[k]->id])
			roots[k] = w.now[roots[k]->id];
	if (env_dump("rewrite")) {
		Text t = {0};
		const char **name = arena_alloc(&ir->arena, (size_t)nroot * sizeof *name + 1);
		for (int k = 0; k < nroot; k++)
			name[k] = arena_printf(&ir->arena, "R%d", k + 1);
		print_program(&t, ir, nroot, roots, name);
		env_dump_text("rewrite", "after clean-up", t.s);
		text_free(&t);
	}
	return ir->err.code;
}

/* rounding_key.c - which random numbers a cast is rounded by: the same wherever the same value is
 * rounded at the same place.
 *
 * In: a graph, perhaps of a loop's body. Out: a number for each of its casts. A loop and its
 * gradient both compute a step, each in a body with variables of its own, and one may read as a
 * slice what the other computes. So the number of a value is that of how it is computed from the
 * tensors around the loop: a variable counts as what it stands for, and a slice of a loop's stack
 * as the tensor of that loop's body; copies as another float type count as what they copy. Numbers
 * that differ where they could be the same make two draws of one; they don't make results biased.
 */
#include "jit/rewrite/rewrite.h"

struct RoundingKeys {
	Ir *ir;
	const Node *scan;	     /* a result of the loop of this body; NULL: no body */
	struct RoundingKeys *inside; /* the body around it, as it was before rewrites; or NULL: */
	const Within *around;	     /* the one around it now; NULL: no body */
	NodeMap number;
};

static uint32_t mix(uint32_t h, uint64_t v)
{
	uint64_t x = ((uint64_t)h << 1 | 1) * 0x9e3779b97f4a7c15u ^ v * 0xff51afd7ed558ccdu;
	return (uint32_t)(x ^ x >> 32);
}

static uint32_t number_get(const RoundingKeys *d, const Node *n)
{
	return (uint32_t)((uintptr_t)node_map_get(&d->number, n) >> 1);
}

/* No number is NULL. */
static void number_put(RoundingKeys *d, Node *n, uint32_t number)
{
	node_map_put(d->ir, &d->number, n, (void *)((uintptr_t)number << 1 | 1));
}

/* Is n another float type's copy of its source? */
static bool is_copy(const Node *n)
{
	Type from = n->op == OP_CAST ? (Type)n->src[0]->type : RICCI_NTYPES;
	return (n->type == RICCI_F32 && from == RICCI_BF16) ||
	       (n->type == RICCI_BF16 && from == RICCI_F32);
}

static void see_node(void *user, Node *n)
{
	RoundingKeys *d = user;
	if (node_map_get(&d->number, n))
		return;
	if (is_copy(n)) {
		number_put(d, n, number_get(d, n->src[0]));
		return;
	}
	uint32_t h = mix(n->op, n->type);
	if (n->nsrc == 0)
		h = mix(mix(h, (uint64_t)n->u.i), (uint64_t)n->hi);
	for (int k = 0; k < n->nsrc; k++)
		h = mix(h, number_get(d, n->src[k]));
	number_put(d, n, h);
}

/* The tensor that c copies, or NULL. */
static const Node *copied(const Node *c)
{
	const Node *e = comp_body(c);
	while (is_copy(e))
		e = e->src[0];
	if (e->op != OP_READ || comp_reduce(c) != RED_NONE ||
	    tensor_rank(e->src[0]) != tensor_rank(c))
		return NULL;
	for (int d = 0; d < tensor_rank(c); d++)
		if (e->src[1 + d] != comp_lhs(c, d))
			return NULL;
	return e->src[0];
}

static uint32_t comp_number(RoundingKeys *d, const Node *c)
{
	const Node *from = copied(c);
	uint32_t h = mix(c->op, (uint64_t)c->u.i);
	node_walk(d->ir, comp_body(c), see_node, d); /* casts of copies have numbers too */
	if (from)
		return number_get(d, from);
	for (int k = 0; k < c->nsrc; k++) {
		node_walk(d->ir, c->src[k], see_node, d);
		h = mix(h, number_get(d, c->src[k]));
	}
	return h;
}

static void numbers_make(RoundingKeys *d, int n, Node *const *order);

static uint32_t number_of(RoundingKeys *d, Node *t)
{
	Node **order;
	int n = graph_order(d->ir, 1, &t, &order);
	numbers_make(d, n, order);
	return number_get(d, t);
}

/* The number of an operand of d's loop. Bodies around it have been rewritten by now, not in all
 * loops alike, so it is that of the variables that the operand comes of. */
static uint32_t operand_number(RoundingKeys *d, Node *t)
{
	Node **order;
	uint32_t h = (uint32_t)tensor_size(t);
	if (d->inside)
		return number_of(d->inside, t);
	if (!d->around)
		return t->hash;
	RoundingKeys outer = {.ir = d->ir, .scan = d->around->scan, .around = d->around->around};
	if (t->op == OP_INPUT)
		return number_of(&outer, t);
	int n = graph_order(d->ir, 1, &t, &order);
	for (int k = 0; k < n; k++)
		h += order[k]->op == OP_INPUT ? mix(0, number_of(&outer, order[k])) : 0;
	return h;
}

/* The stack that t has rows of, and row 0 of t in it; NULL: none. */
static const Node *stack_of(const Node *t, int64_t *first)
{
	*first = 0;
	if (t->op == OP_SCAN)
		return t->u.result->final < 0 ? t : NULL;
	if (t->op != OP_COMP || comp_body(t)->op != OP_READ || !comp_is_dense(t))
		return NULL;
	const Node *read = comp_body(t), *s = read->src[0], *row = read->src[1];
	if (s->op != OP_SCAN || s->u.result->final >= 0 || tensor_rank(s) != tensor_rank(t))
		return NULL;
	for (int k = 1; k < tensor_rank(t); k++)
		if (read->src[1 + k] != comp_axis(t, k))
			return NULL;
	if (row->op == OP_ADD && node_is_const(row->src[1])) {
		*first = row->src[1]->u.i;
		row = row->src[0];
	}
	return row == comp_axis(t, 0) ? s : NULL;
}

/* The tensor of its loop's body of which row t + first of a stack is the value in step t. */
static Node *stacked_in(const Node *stack, int64_t first)
{
	const ScanResult *r = stack->u.result;
	int ends = scan_ends_of(r);
	if (first == scan_row(r, 0))
		return r->value;
	return ends >= 0 && first == !r->scan->backwards ? r->scan->next[ends] : NULL;
}

static uint32_t slice_number(RoundingKeys *d, Node *operand)
{
	int64_t first;
	const Node *stack = stack_of(operand, &first);
	Node *value = stack ? stacked_in(stack, first) : NULL;
	if (!value)
		return mix(OP_SCAN, operand_number(d, operand));
	RoundingKeys other = {.ir = d->ir, .scan = stack, .inside = d->inside, .around = d->around};
	return number_of(&other, value);
}

static uint32_t input_number(RoundingKeys *d, const Node *t)
{
	const Scan *s = d->scan ? scan_of(d->scan) : NULL;
	int n = s ? s->nslice + s->nstate + s->nconst : 0, k = 0;
	while (k < n && s->var[k] != t)
		k++;
	if (k == n)
		return t->hash;
	Node *operand = scan_operands(d->scan)[s->has_length + k];
	if (k < s->nslice)
		return slice_number(d, operand);
	uint32_t number = operand_number(d, operand);
	return k < s->nslice + s->nstate ? mix(number, (uint64_t)(k - s->nslice)) : number;
}

static uint32_t result_number(RoundingKeys *d, const Node *t)
{
	RoundingKeys body = {.ir = d->ir, .scan = t, .inside = d};
	return mix(number_of(&body, t->u.result->value), t->u.result->final >= 0);
}

/* Of tensors, sources first. */
static void numbers_make(RoundingKeys *d, int n, Node *const *order)
{
	for (int k = 0; k < n; k++) {
		Node *t = order[k];
		if (!node_map_get(&d->number, t))
			number_put(d, t,
				   t->op == OP_INPUT  ? input_number(d, t)
				   : t->op == OP_COMP ? comp_number(d, t)
						      : result_number(d, t));
	}
}

RoundingKeys *rounding_keys(Ir *ir, const Within *in, int n, Node *const *order)
{
	RoundingKeys *d = arena_alloc(&ir->arena, sizeof *d);
	*d = (RoundingKeys){.ir = ir};
	if (!in)
		return d;
	d->scan = in->scan;
	d->around = in->around;
	numbers_make(d, n, order);
	return d;
}

uint32_t rounding_key(const RoundingKeys *d, const Node *cast)
{
	return d->scan ? number_get(d, cast) : cast->hash;
}

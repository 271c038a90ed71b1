/* contract.c - reading an equation as a generalised contraction.
 *
 * Input: a Problem whose main equation adds up products. Output: the roles of its axes: M in the
 * first operand and the result, N in the second and the result, K reduced, batch in all three.
 * Nothing here knows an operator: operands may be any expressions, axes any index functions. */
#include "jit/contract/internal.h"

#include <string.h>

enum { PADDED_REST = 96 };
/* The least that padding leaves out; cycles of storing a result alone; products a cycle. */
static const double LEAST_PADDING = 0.04, SCATTERED = 4, MULTIPLIES = 16;

static uint64_t axis_mask(const Problem *p, Node *e)
{
	uint64_t mask = 0;
	for (int k = 0; k < p->naxis; k++)
		if (node_has(e, p->axis[k]))
			mask |= (uint64_t)1 << k;
	return mask;
}

static int flatten(Node *e, int room, int n, Node **factor)
{
	if (e->op == OP_MUL && n >= 0) {
		n = flatten(e->src[0], room, n, factor);
		return n < 0 ? n : flatten(e->src[1], room, n, factor);
	}
	if (n < 0 || n == room)
		return -1;
	factor[n] = e;
	return n + 1;
}

static void operand_times(Problem *p, Operand *f, Node *e, uint64_t mask)
{
	f->value = f->value ? node2(p->ir, OP_MUL, f->value, e) : e;
	f->mask |= mask;
}

/* Two groups of factors: the one with most result axes, with all that depend on no others; and the
 * rest. */
static bool group_factors(Contract *c, Node *body)
{
	Problem *p = c->p;
	Node *factor[16];
	uint64_t mask[16], spatial = ((uint64_t)1 << p->nspatial) - 1;
	int n = flatten(body, COUNT(factor), 0, factor), top = 0;
	if (n < 2)
		return false;
	for (int k = 0; k < n; k++) {
		mask[k] = axis_mask(p, factor[k]);
		if (__builtin_popcountll(mask[k] & spatial) >
		    __builtin_popcountll(mask[top] & spatial))
			top = k;
	}
	uint64_t reach = mask[top] & spatial;
	for (int k = 0; k < n; k++)
		operand_times(p, (mask[k] & spatial & ~reach) ? &c->b : &c->a, factor[k], mask[k]);
	return c->b.value != NULL;
}

/* Do an operand's own conditions keep its reads inside? */
static bool operand_safe(const Contract *c, const Operand *f, int nguard)
{
	Node **read, *cond = node_const_int(c->ir, RICCI_BOOL, 1);
	if (f->nguard == nguard || reads_inside(c->ir, f->value))
		return true;
	for (int g = 0; g < f->nguard; g++)
		cond = node2(c->ir, OP_AND, cond, f->guard[g]);
	int n = node_collect(c->ir, f->value, OP_READ, &read);
	for (int k = 0; k < n; k++) {
		const ProblemRead *r = problem_read(c->p, read[k]);
		if (!r || !problem_read_inside(c->p, r, r->dim, cond))
			return false;
	}
	return true;
}

static bool place_guards(Contract *c, int n, Node *const *guard)
{
	Operand *f[2] = {&c->a, &c->b};
	for (int g = 0; g < n; g++) {
		uint64_t mask = axis_mask(c->p, guard[g]);
		bool placed = false;
		for (int k = 0; k < 2; k++)
			if (!(mask & ~f[k]->mask)) {
				f[k]->guard[f[k]->nguard++] = guard[g];
				placed = true;
			} else if (!stays_finite(c->t, f[k]->value)) {
				return false; /* zero times that is no number */
			}
		if (!placed)
			return false;
	}
	return operand_safe(c, &c->a, n) && operand_safe(c, &c->b, n);
}

static void index_group_add(IndexGroup *s, Node *axis)
{
	s->axis[s->naxis++] = axis;
	s->extent *= axis_extent(axis);
}

/* Does a condition look at the axis? */
static bool guarded(const Contract *c, Node *axis)
{
	const Operand *f[2] = {&c->a, &c->b};
	for (int k = 0; k < 2; k++)
		for (int g = 0; g < f[k]->nguard; g++)
			if (node_has(f[k]->guard[g], axis))
				return true;
	return false;
}

static bool chosen(const Contract *c, Node *axis)
{
	for (int g = 0; g < c->nchoice; g++)
		if (node_has(c->choice[g], axis))
			return true;
	return false;
}

/* Which part of the products a condition on both axes leaves out, were it that of a window that is
 * moved over an edge by less than the shorter of them. */
static double left_out(const Node *own, const Node *reduced)
{
	double a = (double)axis_extent(own), b = (double)axis_extent(reduced);
	double few = a < b ? a : b;
	return (few * few - 1) / (4 * a * b);
}

/* Does it run fastest through the results, before all of the rest? */
static bool fastest(const Contract *c, Node *axis, uint64_t rest)
{
	const Problem *p = c->p;
	int64_t stride = affine_stride(c->ir, p->index, axis);
	for (int k = 0; k < p->nspatial; k++)
		if (rest >> k & 1 && affine_stride(c->ir, p->index, p->axis[k]) <= stride)
			return false;
	return true;
}

/* Axes of an operand's own that share conditions with reduced ones, and whose padding is a good part
 * of them. Where the others are long enough for full tiles these join the batch, so that elements
 * of K which padding leaves out are not multiplied at all (choose). It must save more than storing
 * results one by one costs, if it comes to that. */
static uint64_t padded_axes(const Contract *c, const Operand *f, const Operand *other)
{
	const Problem *p = c->p;
	uint64_t own = f->mask & ~other->mask & (((uint64_t)1 << p->nspatial) - 1), found = 0;
	int64_t rest = 1;
	double saved = 0, depth = 1;
	bool scattered = false;
	for (int k = p->nspatial; k < p->naxis; k++)
		depth *= (double)axis_extent(p->axis[k]);
	for (int g = 0; g < f->nguard; g++) {
		uint64_t mask = axis_mask(p, f->guard[g]);
		for (int k = 0; k < p->nspatial; k++)
			for (int r = p->nspatial; r < p->naxis; r++) {
				double part = left_out(p->axis[k], p->axis[r]);
				if (!((mask & own) >> k & mask >> r & 1) || part < LEAST_PADDING)
					continue;
				found |= (uint64_t)1 << k;
				saved += part * depth / MULTIPLIES;
			}
	}
	for (int k = 0; k < p->nspatial; k++) {
		if ((own & ~found) >> k & 1)
			rest *= axis_extent(p->axis[k]);
		if (found >> k & 1)
			scattered |= fastest(c, p->axis[k], ~found);
	}
	return rest < PADDED_REST || (scattered && saved < SCATTERED) ? 0 : found;
}

static void roles(Contract *c, bool grid)
{
	Problem *p = c->p;
	c->m.extent = c->n.extent = c->k.extent = c->batch.extent = 1;
	uint64_t batch = 0;
	if (!grid)
		batch = padded_axes(c, &c->a, &c->b) | padded_axes(c, &c->b, &c->a);
	for (int k = 0; k < p->nspatial; k++) {
		bool a = c->a.mask >> k & 1, b = c->b.mask >> k & 1;
		if (batch >> k & 1)
			a = b;
		index_group_add(a && !b ? &c->m : b && !a ? &c->n : &c->batch, p->axis[k]);
	}
}

/* Conditions that depend on K and the batch only choose which elements of K there are at all. */
static void choose(Contract *c)
{
	Operand *f[2] = {&c->a, &c->b};
	if (c->k.extent > 1 << 14)
		return;
	for (int x = 0; x < 2; x++) {
		int kept = 0;
		for (int g = 0; g < f[x]->nguard; g++) {
			Node *cond = f[x]->guard[g];
			bool mine = false, foreign = false, known = false;
			for (int k = 0; k < c->k.naxis; k++)
				mine |= node_has(cond, c->k.axis[k]);
			for (int k = 0; k < c->m.naxis; k++)
				foreign |= node_has(cond, c->m.axis[k]);
			for (int k = 0; k < c->n.naxis; k++)
				foreign |= node_has(cond, c->n.axis[k]);
			if (!mine || foreign || !reads_inside(c->ir, cond)) {
				f[x]->guard[kept++] = cond;
				continue;
			}
			for (int k = 0; k < c->nchoice; k++)
				known |= c->choice[k] == cond;
			if (!known && c->nchoice < CONTRACT_MAX_GUARDS)
				c->choice[c->nchoice++] = cond;
		}
		f[x]->nguard = kept;
	}
	c->k.compact = c->nchoice > 0;
}

/* Axes of the choice come first, so that what fails is left early where K is listed anew; those of
 * other conditions last, so that these repeat. */
static void order_reduced(Contract *c)
{
	const Problem *p = c->p;
	bool repeats = true;
	c->k.naxis = 0;
	c->k.extent = 1;
	for (int pass = 0; pass < 3; pass++) {
		c->period = c->k.extent;
		for (int k = p->nspatial; k < p->naxis; k++) {
			bool first = chosen(c, p->axis[k]), last = guarded(c, p->axis[k]);
			repeats &= !first || !last;
			if (pass == (first ? 0 : last ? 2 : 1))
				index_group_add(&c->k, p->axis[k]);
		}
	}
	c->period = repeats ? c->k.extent / c->period : 0;
}

static bool side_has_unit(const Contract *c, const IndexGroup *s)
{
	for (int k = 0; k < s->naxis; k++)
		if (affine_stride(c->ir, c->p->index, s->axis[k]) == 1)
			return true;
	return false;
}

static double padding(const Contract *c, const IndexGroup *m, const IndexGroup *n)
{
	return (double)round_up(m->extent, c->micro->mr) / (double)m->extent *
	       (double)round_up(n->extent, c->micro->nr) / (double)n->extent;
}

double contract_padding(const Contract *c)
{
	return padding(c, &c->m, &c->n);
}

/* Contiguous results belong to N, unless that leaves most lanes empty. */
static bool wants_swap(const Contract *c)
{
	bool unit = side_has_unit(c, &c->m);
	double as_is = padding(c, &c->m, &c->n), swapped = padding(c, &c->n, &c->m);
	return unit ? swapped < 1.6 * as_is : as_is > 1.6 * swapped;
}

static const Micro *find_micro(const Contract *c, const Target *target, bool narrow)
{
	Source a, b;
	if (!narrow)
		return micro_pick(target, c->p->acc);
	if (!contract_source(&c->a, &a) || !contract_source(&c->b, &b))
		return NULL;
	return micro_pick_narrow(target, c->p->acc, a.through, b.through);
}

static void swap_operands(Contract *c)
{
	Operand f = c->a;
	IndexGroup s = c->m;
	c->a = c->b, c->b = f;
	c->m = c->n, c->n = s;
}

/* What decides a zero in one operand need not be asked of the other, if only it reads inside. */
static void ask_once(Ir *ir, Operand *f, const Operand *before, const Operand *other)
{
	int kept = 0;
	for (int g = 0; g < f->nguard; g++) {
		bool had = false, has = !reads_inside(ir, f->value);
		for (int k = 0; k < before->nguard; k++)
			had |= before->guard[k] == f->guard[g];
		for (int k = 0; k < other->nguard; k++)
			has |= other->guard[k] == f->guard[g];
		if (!had || has)
			f->guard[kept++] = f->guard[g];
	}
	f->nguard = kept;
}

/* False where no operand can be copied. */
static bool pad_operands(Contract *c, bool narrow)
{
	Operand a = c->a, b = c->b;
	bool any = contract_padded(c, &c->a, narrow);
	any |= contract_padded(c, &c->b, narrow);
	ask_once(c->ir, &c->a, &b, &c->b);
	ask_once(c->ir, &c->b, &a, &c->a);
	return any;
}

/* False where both operands' lanes are contiguous. */
static bool transpose_operands(Contract *c)
{
	bool any = contract_transposed(c, &c->a, &c->m);
	return contract_transposed(c, &c->b, &c->n) || any;
}

/* On a grid there are no micro-kernels, and every block has all of K. */
static bool find_grid(Contract *c, int way)
{
	if (way & ~(TENSORISE_SWAP | TENSORISE_NARROW | TENSORISE_GROUPS))
		return false;
	roles(c, true);
	order_reduced(c);
	memcpy(c->batch_value, c->batch.axis, sizeof c->batch_value);
	if (side_has_unit(c, &c->m) != (way & TENSORISE_SWAP))
		swap_operands(c);
	return c->m.extent > 1 && c->n.extent > 1 && c->k.extent > 1;
}

static bool find(Contract *c, Problem *p, const Target *target, int way)
{
	Node *guard[CONTRACT_MAX_GUARDS];
	int nguard;
	memset(c, 0, sizeof *c);
	c->p = p;
	c->ir = p->ir;
	c->t = p->tree;
	if (p->red != RED_ADD || p->scatter || p->partial)
		return false;
	for (int k = 0; k < p->nout; k++)
		if (p->out_red[k] != RED_NONE)
			return false;
	Node *body = reduce_guards(p->ir, p->red, p->body, COUNT(guard), &nguard, guard);
	if (!group_factors(c, body) || !place_guards(c, nguard, guard))
		return false;
	if (target->units)
		return find_grid(c, way);
	if (way >= TENSORISE_WAYS ||
	    (way & TENSORISE_PADDED && !pad_operands(c, way & TENSORISE_NARROW)))
		return false;
	c->micro = find_micro(c, target, way & TENSORISE_NARROW);
	if (!c->micro)
		return false;
	roles(c, false);
	order_reduced(c);
	if (way & TENSORISE_TRANSPOSED && !transpose_operands(c))
		return false;
	choose(c);
	order_reduced(c);
	memcpy(c->batch_value, c->batch.axis, sizeof c->batch_value);
	if (wants_swap(c) != (way & TENSORISE_SWAP)) {
		swap_operands(c);
		c->micro = find_micro(c, target, way & TENSORISE_NARROW);
	}
	c->mr = c->micro ? c->micro->mr : 0;
	return c->micro && c->m.extent > 1 && c->n.extent > 1 && c->k.extent > 1;
}

/* Do both operands' places grow evenly along each axis, as far as they are elements of tensors? */
static bool grows_evenly(const Contract *c)
{
	const Node *read[] = {contract_read(&c->a), contract_read(&c->b)};
	for (int x = 0; x < 2; x++)
		for (int k = 0; read[x] && k < c->p->naxis; k++)
			if (affine_stride(c->ir, read[x]->src[1], c->p->axis[k]) == INT64_MIN)
				return false;
	return true;
}

/* Where quotients of axes step, cut axes may show runs that packing and micro-kernels live on, or a
 * contraction at all. */
bool contract_find(Contract *c, Problem *p, const Target *target, int way)
{
	enum { COPIES = TENSORISE_PADDED | TENSORISE_TRANSPOSED };
	Problem *more = problem_cut(p, NULL, NULL);
	if (!more)
		return find(c, p, target, way);
	/* Without copies, whose buffers would stay in the tree. */
	bool uneven = find(c, p, target, way & ~COPIES) && !grows_evenly(c);
	Problem *first = uneven ? more : p, *second = uneven ? p : more;
	return find(c, first, target, way) || find(c, second, target, way);
}

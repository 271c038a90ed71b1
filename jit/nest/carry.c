/* carry.c - running reductions: what is summed for one element of the results is kept for
 * the next, and only what is new is added.
 *
 * Input: a problem with a running reduction (jit/rewrite/running_find.c). Output: the problem of what is new at
 * each place of its axis i, as a function of i; what was in before the first; factors that wait
 * until the sum is stored. Invariant: each point of the domain is added once, before the first
 * element that it belongs to.
 */
#include "jit/nest/internal.h"

static Node *start_of(const Problem *p, Type t)
{
	return node_identity(p->ir, p->red, p->type, t);
}

bool carry_find(const Problem *p, int axis, Carry *c)
{
	*c = (Carry){.r.axis = axis};
	return !p->scatter && type_size(p->acc) >= 4 && axis >= 0 &&
	       running_find(p->ir, p->red, p->body, p->nspatial, p->naxis, p->axis, axis, &c->r);
}

/* body where all of the conditions hold, `also` first. */
static Node *under(const Problem *p, const Carry *c, Node *also)
{
	for (int k = 0; k < c->r.ncond; k++)
		also = node2(p->ir, OP_AND, also, c->r.cond[k]);
	return node_select(p->ir, also, c->r.body, start_of(p, (Type)c->r.body->type));
}

/* Points with e >= step at the first i were in before it. */
static Node *head_of(const Problem *p, const Carry *c)
{
	Ir *ir = p->ir;
	Node *i = p->axis[c->r.axis];
	Node *first = node_int(ir, c->r.along < 0 ? axis_extent(i) - 1 : 0);
	Node *e = node_replace(ir, c->r.e, 1, &i, &first);
	return e->hi < c->r.step ? NULL : under(p, c, node2(ir, OP_LE, node_int(ir, c->r.step), e));
}

/* j where e = t, 0 <= t < step: j itself counts t. *cond: where there is one. */
static Node *newcomer(const Problem *p, const Carry *c, Node **cond)
{
	Ir *ir = p->ir;
	Node *j = p->axis[c->r.over], *zero = node_int(ir, 0);
	int64_t slope = c->r.slope < 0 ? -c->r.slope : c->r.slope;
	Node *at = node_sub(ir, node_scale(ir, j, c->r.slope), c->r.e);
	if (c->r.step > 1)
		at = node_add(ir, at, j);
	at = c->r.slope < 0 ? node_sub(ir, zero, at) : at;
	Node *number = node_floordiv(ir, at, slope);
	*cond = node2(ir, OP_EQ, node_floormod(ir, at, slope), zero);
	*cond = node2(ir, OP_AND, *cond, node2(ir, OP_LE, zero, number));
	*cond = node2(ir, OP_AND, *cond, node2(ir, OP_LT, number, node_int(ir, axis_extent(j))));
	return number;
}

void carry_apply(Problem *p, Carry *c)
{
	Ir *ir = p->ir;
	Node *j = p->axis[c->r.over], *cond, *number = newcomer(p, c, &cond);
	c->head = head_of(p, c);
	for (int k = 0; k < c->r.ncond; k++)
		c->r.cond[k] = node_replace(ir, c->r.cond[k], 1, &j, &number);
	c->r.body = node_replace(ir, c->r.body, 1, &j, &number);
	p->body = under(p, c, cond);
	for (int k = 0; k < p->nread; k++) {
		ProblemRead *r = &p->read[k];
		r->read = node_replace(ir, r->read, 1, &j, &number);
		for (int d = 0; d < r->rank; d++)
			r->dim[d] = node_replace(ir, r->dim[d], 1, &j, &number);
	}
}

Node *carry_value(const Problem *p, const Carry *c, Node *sum)
{
	if (c->r.factor)
		sum = node2(p->ir, OP_MUL, sum, node_cast(p->ir, p->acc, c->r.factor));
	if (c->r.divisor)
		sum = node2(p->ir, OP_DIV, sum, node_cast(p->ir, p->acc, c->r.divisor));
	return c->r.some ? node_select(p->ir, c->r.some, sum, start_of(p, p->acc)) : sum;
}

static int misfit(Error *err, const char *what)
{
	return schedule_misfit(err, "a sum can't be carried along %s", what);
}

int carry_place(Build *b, Error *err)
{
	Carry *c = &b->carry;
	int nover = 0, pieces = 0;
	bool reduced = false;
	if (c->r.axis < 0)
		return 0;
	c->at = b->nouter;
	const Loop *lanes = b->lanes < 0 ? NULL : &b->loop[b->order[b->lanes]];
	c->single = lanes && (lanes->axis == c->r.axis || lanes->reduced);
	for (int k = b->nloop - 1; k >= 0; k--)
		if (b->loop[b->order[k]].axis == c->r.axis && k < c->at)
			c->at = k;
	for (int k = 0; k < b->nloop; k++) {
		const Loop *l = &b->loop[b->order[k]];
		bool along = l->axis == c->r.axis;
		nover += l->axis == c->r.over;
		pieces += along && l->how == HOW_VECTOR && l->stride != 1;
		reduced |= l->reduced;
		if (along && l->how != HOW_VECTOR && reduced)
			return misfit(err, "a loop inside the sum");
		if (l->axis == c->r.over && l->how == HOW_VECTOR)
			return misfit(err, "lanes of the sum itself");
		if (c->single && k >= c->at && !along && !l->reduced)
			return misfit(err, "lanes around other results");
	}
	if (nover > 1 || pieces)
		return misfit(err, "loops that are split like that");
	if (b->nrfactor || (lanes && b->lanes < b->nouter))
		return misfit(err, "loops inside lanes or reductions in blocks (rfactor)");
	if (b->nparallel > c->at)
		b->nparallel = c->at;
	return 0;
}

/* What lanes along the results add becomes their running sums. */
Stmt *carry_lanes(Build *b)
{
	const Carry *c = &b->carry;
	if (c->r.axis < 0 || !c->single || tile_lanes_loop(b)->reduced)
		return NULL;
	static const char *const symbol[RICCI_NTYPES] = {[RICCI_F32] = "ricci_prefix_f32",
							 [RICCI_F64] = "ricci_prefix_f64",
							 [RICCI_I32] = "ricci_prefix_i32",
							 [RICCI_I64] = "ricci_prefix_i64"};
	CallArg arg[] = {{b->acc, node_int(b->ir, 0)},
			 {c->sum, node_int(b->ir, 0)},
			 {NULL, nest_hi(b, tile_lanes_loop(b))},
			 {NULL, node_int(b->ir, b->p->red)},
			 {NULL, node_int(b->ir, c->r.along < 0)}};
	return stmt_call(b->t, symbol[b->p->acc], COUNT(arg), arg);
}

/* What is in before the first element, from loop number k on: added to the tile or the one sum. */
Stmt *carry_head(Build *b, int k)
{
	const Carry *c = &b->carry;
	if (k == b->nloop) {
		Node *v = node_cast(b->ir, b->p->acc, nest_point(b, c->head));
		return stmt_store(b->t, c->single ? c->sum : b->acc,
				  c->single ? node_int(b->ir, 0) : tile_index(b), v, b->p->red);
	}
	Loop *l = &b->loop[b->order[k]];
	if (l->axis == c->r.axis)
		return carry_head(b, k + 1);
	Node *var = l->var;
	if (l->axis == c->r.over) {
		l->extent = axis_extent(b->p->axis[c->r.over]);
		l->var = tree_axis(b->t, l->extent);
	}
	Stmt *s = nest_open(b, l);
	s->how = l->reduced && s->how == HOW_UNROLL ? HOW_SERIAL : s->how;
	s->body = carry_head(b, k + 1);
	l->val = NULL;
	l->var = var;
	if (l->axis == c->r.over)
		l->extent = c->r.step;
	return s;
}

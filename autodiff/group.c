/* group.c - the factors of a product in an order that suits their gradients.
 *
 * Input: an equation. Output: its body with factors of the same forms (form.c) side by side; or its sum without the factors
 * that the result's axes alone tell. Invariant: products of the same factors, none that divides below one that
 * multiplies. */
#include "autodiff/internal.h"

/* ---- factors of the same forms */

/* A factor of a product. */
typedef struct Member {
	Factor factor;
	double points; /* of its forms; 0: no wanted tensor is in it */
	const Forms *forms;
	int beside; /* the member that it stands beside; -1: none */
} Member;

static bool reads_wanted(Tape *tape, Node *e)
{
	Node **reads;
	int n = node_collect(tape->ir, e, OP_READ, &reads);
	for (int k = 0; k < n; k++)
		if (type_is_float((Type)reads[k]->type) && tape->wanted[reads[k]->src[0]->id])
			return true;
	return false;
}

static Member member_of(Tape *tape, Factor from)
{
	Member m = {.factor = from, .beside = -1};
	if (!reads_wanted(tape, from.node) || axes_in(tape->ir, from.node) == UINT64_MAX)
		return m;
	m.forms = forms_of(tape, from.node);
	m.points = forms_points(m.forms);
	return m;
}

/* May k stand beside j? Their order lets none stand beside one that stands beside it. */
static bool goes_beside(const Member *at, int k, int j)
{
	const Member *x = &at[k], *y = &at[j];
	bool later = x->points != y->points		      ? x->points < y->points
		     : x->factor.divides != y->factor.divides ? x->factor.divides
							      : j < k;
	return later && x->points > 0 && (x->factor.divides || !y->factor.divides) &&
	       forms_within(x->forms, y->forms);
}

/* The smallest member with fewer points than the equation that k may stand beside. */
static int find_beside(const Member *at, int n, int k, double most)
{
	int best = -1;
	for (int j = 0; j < n; j++)
		if (j != k && at[j].points < most && goes_beside(at, k, j) &&
		    (best < 0 || at[j].points < at[best].points))
			best = j;
	return best;
}

/* a*b or a/b, under the conditions of choices. */
static Node *joined(Ir *ir, Node *a, Node *b, bool divide)
{
	if (!divide && b->op == OP_SELECT && a->op != OP_SELECT)
		return weighted(ir, b, a);
	if (!divide)
		return weighted(ir, a, b);
	if (a->op == OP_SELECT && node_is_value(a->src[2], 0))
		return node_select(ir, a->src[0], node2(ir, OP_DIV, a->src[1], b), a->src[2]);
	return node2(ir, OP_DIV, a, b);
}

static void members_find(Tape *tape, const Node *comp, const Product *p, Member *at)
{
	for (int k = 0; k < p->n; k++)
		at[k] = member_of(tape, p->at[k]);
	for (int k = 0; k < p->n; k++)
		at[k].beside = find_beside(at, p->n, k, comp_points(comp));
}

/* Member k with all that stands beside it. */
static Node *member_value(Ir *ir, const Member *at, int n, int k)
{
	Node *value = at[k].factor.node;
	for (int j = 0; j < n; j++)
		if (at[j].beside == k)
			value = joined(ir, value, member_value(ir, at, n, j),
				       at[j].factor.divides != at[k].factor.divides);
	return value;
}

/* The product with each factor beside the smallest other one that depends on all that it depends on. */
static Node *product_grouped(Tape *tape, const Node *comp, Node *e)
{
	Ir *ir = tape->ir;
	Member at[MAX_FACTORS];
	Product p = {0}, grouped;
	if (!product_read(&p, e, false) || p.n < 3)
		return e;
	members_find(tape, comp, &p, at);
	grouped = (Product){.minus = p.minus};
	for (int k = 0; k < p.n; k++)
		if (at[k].beside < 0)
			grouped.at[grouped.n++] =
				(Factor){member_value(ir, at, p.n, k), p.at[k].divides};
	return grouped.n < p.n ? product_node(ir, &grouped, (Type)e->type) : e;
}

/* known: what parts of the body became. */
static Node *body_grouped(Tape *tape, const Node *comp, NodeMap *known, Node *e)
{
	Ir *ir = tape->ir;
	Node *out = node_map_get(known, e), *a, *b;
	if (out)
		return out;
	switch (e->op) {
	case OP_MUL:
	case OP_DIV:
		out = product_grouped(tape, comp, e);
		break;
	case OP_ADD:
	case OP_SUB:
		a = body_grouped(tape, comp, known, e->src[0]);
		b = body_grouped(tape, comp, known, e->src[1]);
		out = node2(ir, (Op)e->op, a, b);
		break;
	case OP_SELECT:
		a = body_grouped(tape, comp, known, e->src[1]);
		b = body_grouped(tape, comp, known, e->src[2]);
		out = node_select(ir, e->src[0], a, b);
		break;
	default:
		out = e;
	}
	node_map_put(ir, known, e, out);
	return out;
}

Node *factors_grouped(Tape *tape, const Node *comp)
{
	NodeMap known = {0};
	Node *body = comp_body(comp);
	return type_is_float((Type)body->type) ? body_grouped(tape, comp, &known, body) : body;
}

/* ---- factors of the result */

/* Does nothing stand beside k? */
static bool stands_alone(const Member *at, int n, int k)
{
	bool alone = at[k].beside < 0;
	for (int j = 0; j < n; j++)
		alone &= at[j].beside != k;
	return alone;
}

bool sum_unscaled(Tape *tape, Node *c, Node **sum, Node **scale)
{
	Ir *ir = tape->ir;
	Member at[MAX_FACTORS];
	Product p = {0}, inner = {0}, outer = {0};
	uint64_t kept = axes_mask(tensor_rank(c), c->src);
	bool wanted = false;
	if (comp_reduce(c) != RED_ADD || !comp_is_dense(c) || !bears_rounding(c) ||
	    !product_read(&p, comp_body(c), false) || p.n < 3)
		return false;
	members_find(tape, c, &p, at);
	for (int k = 0; k < p.n; k++) {
		bool scales = !(axes_in(ir, p.at[k].node) & ~kept) && stands_alone(at, p.n, k);
		Product *to = scales ? &outer : &inner;
		to->at[to->n++] = p.at[k];
		wanted |= scales && at[k].points > 0;
	}
	if (!wanted || inner.n < 2)
		return false;
	/* a choice is the whole product's, as rewrites of c have it, so that both are one tensor */
	Node *value = node_const(ir, (Type)c->type, p.minus ? -1 : 1);
	for (int k = 0; k < inner.n; k++)
		value = joined(ir, value, inner.at[k].node, inner.at[k].divides);
	*sum = comp_with(ir, c, RED_ADD, value);
	*scale = product_node(ir, &outer, (Type)c->type);
	return true;
}

/* types.c - the types of an equation's parts ("Types" in docs/notation.md): elements of different
 * types don't meet without a cast; numbers, index names and comparisons adapt to the other side, a
 * quotient of whole numbers is a float; in an index all integers are one, of 64 bits. */
#include "tests/oracle/internal.h"

static bool is_truth(Kind k)
{
	return k == TRUTH || k == BOOL;
}

/* What a and b are together. `truth`: two truth values may stand side by side. */
static Kind join(Oracle *o, const Expr *e, Kind a, Kind b, bool truth)
{
	if (is_truth(a) && is_truth(b) && truth)
		return a == b ? a : BOOL;
	if (a == BOOL || b == BOOL)
		fail(o, e->at, "bool is no number");
	a = a == TRUTH ? NUMBER : a;
	b = b == TRUTH ? NUMBER : b;
	Kind strong = a < TYPES ? a : b, other = a < TYPES ? b : a;
	if (strong >= TYPES) /* both adapt */
		return a > b ? a : b;
	if (strong != other && other != NUMBER && other != WHOLE &&
	    (other != REAL || !is_float(strong)))
		fail(o, e->at, "types differ");
	return strong;
}

static Kind kind_of(Oracle *o, Expr *e, bool index);

static void kinds_of(Oracle *o, Expr *e, bool index)
{
	for (int k = 0; k < e->n; k++)
		kind_of(o, e->arg[k], index);
}

static Kind call_kind(Oracle *o, Expr *e, bool index)
{
	kinds_of(o, e, index);
	Kind k = e->arg[0]->kind;
	k = join(o, e, k, e->n > 1 ? e->arg[1]->kind : k, false);
	if (!function_of_floats((int)e->i))
		return k;
	if (k >= TYPES)
		return REAL;
	if (!is_float(k))
		fail(o, e->at, "%s is of floats", e->name);
	return k;
}

/* The value's definition in this equation, in an index or not; computed in `type`, TYPES: not known
 * yet. */
static Instance *instance_of(Oracle *o, const Expr *e, bool index, Kind type)
{
	Instance *i = o->instance;
	while (i && (i->definition != e->definition || i->index != index ||
		     (i->settled && type != TYPES && i->root->type != type)))
		i = i->next;
	if (i)
		return i;
	i = take(o, sizeof *i);
	*i = (Instance){.definition = e->definition, .index = index, .next = o->instance};
	i->root = expr_copy(o, e->definition);
	kind_of(o, i->root, index);
	i->next = o->instance;
	return o->instance = i;
}

static Kind own_kind(Oracle *o, Expr *e, bool index)
{
	Kind k;
	switch (e->form) {
	case X_REAL:
		return REAL;
	case X_VALUE:
		e->instance = instance_of(o, e, index, TYPES);
		return e->instance->root->kind;
	case X_READ:
		kinds_of(o, e, true);
		if (index && (is_float((Kind)e->tensor->type) || e->tensor->type == BOOL))
			fail(o, e->at, "%s indexes and holds no integers", e->name);
		return index ? WHOLE : (Kind)e->tensor->type;
	case X_CAST:
		kinds_of(o, e, false);
		return index ? WHOLE : (Kind)e->i;
	case X_DRAW:
		kinds_of(o, e, true);
		return F32;
	case X_CALL:
		return call_kind(o, e, index);
	case X_NEG:
		kinds_of(o, e, index);
		return join(o, e, e->arg[0]->kind, e->arg[0]->kind, false);
	case X_CHOICE:
		kind_of(o, e->arg[0], false);
		kind_of(o, e->arg[1], index);
		kind_of(o, e->arg[2], index);
		return join(o, e, e->arg[1]->kind, e->arg[2]->kind, true);
	case X_PADDED:
		kinds_of(o, e, index);
		return join(o, e, e->arg[0]->kind, e->arg[1]->kind, true);
	case X_ADD:
	case X_SUB:
	case X_MUL:
	case X_DIV:
	case X_MOD:
		kinds_of(o, e, index);
		k = join(o, e, e->arg[0]->kind, e->arg[1]->kind, false);
		return e->form == X_DIV && k == NUMBER && !index ? REAL : k;
	case X_INDEX:
	case X_TRAINING:
		return WHOLE;
	case X_WHOLE:
	case X_SIZE:
		return NUMBER;
	default: /* comparisons, logic */
		kinds_of(o, e, false);
		if (e->form >= X_EQ)
			join(o, e, e->arg[0]->kind, e->arg[1]->kind, true);
		return TRUTH;
	}
}

static Kind kind_of(Oracle *o, Expr *e, bool index)
{
	e->kind = own_kind(o, e, index);
	if (index && e->kind != WHOLE && e->kind != NUMBER && e->kind != TRUTH)
		fail(o, e->at, "an index is an integer");
	return e->kind;
}

/* ---- from the kinds to types, from above */

/* The type in which something of this kind is computed where `wanted` is wanted. */
static Kind natural(Kind kind, Kind wanted)
{
	return kind < TYPES	  ? kind
	       : kind == TRUTH	  ? BOOL
	       : kind != REAL	  ? I64
	       : is_float(wanted) ? wanted
				  : F32;
}

static void settle(Oracle *o, Expr **place, Kind wanted);

static void convert(Oracle *o, Expr **place, Kind type)
{
	Expr *e = take(o, sizeof *e), *x = *place;
	if (x->type == type)
		return;
	*e = (Expr){.form = X_CONVERT, .type = type, .n = 1, .at = x->at};
	e->arg = take(o, sizeof x);
	e->arg[0] = x;
	*place = e;
}

/* Any number can be a condition: not 0. */
static void settle_condition(Oracle *o, Expr **place)
{
	settle(o, place, natural((*place)->kind, F32));
	convert(o, place, BOOL);
}

static bool is_number(const Expr *e)
{
	bool number = e->form != X_INDEX && e->form != X_READ && e->form != X_PADDED &&
		      e->form != X_TRAINING;
	if (e->form == X_VALUE)
		return is_number(e->instance->root);
	for (int k = 0; k < e->n; k++)
		number = number && is_number(e->arg[k]);
	return number;
}

/* An index expression compares with a float number exactly. */
static Kind compared_in(Oracle *o, const Expr *e)
{
	Kind a = e->arg[0]->kind, b = e->arg[1]->kind;
	if ((a == WHOLE && b == REAL && is_number(e->arg[1])) ||
	    (a == REAL && b == WHOLE && is_number(e->arg[0])))
		return F64;
	return natural(join(o, e, a, b, true), F32);
}

static void settle_arguments(Oracle *o, Expr *e)
{
	Kind type = e->type;
	switch (e->form) {
	case X_NOT:
	case X_OR:
	case X_AND:
		for (int k = 0; k < e->n; k++)
			settle_condition(o, &e->arg[k]);
		return;
	case X_CHOICE:
		settle_condition(o, &e->arg[0]);
		settle(o, &e->arg[1], type);
		settle(o, &e->arg[2], type);
		return;
	case X_CAST:
		if (e->i == BOOL)
			settle_condition(o, &e->arg[0]);
		else
			settle(o, &e->arg[0], natural(e->arg[0]->kind, (Kind)e->i));
		convert(o, &e->arg[0], (Kind)e->i);
		convert(o, &e->arg[0], type);
		return;
	case X_READ:
	case X_DRAW:
		type = I64;
		break;
	case X_EQ:
	case X_NE:
	case X_LT:
	case X_LE:
	case X_GT:
	case X_GE:
		type = compared_in(o, e);
		break;
	default:
		break;
	}
	for (int k = 0; k < e->n; k++)
		settle(o, &e->arg[k], type);
}

static void settle(Oracle *o, Expr **place, Kind wanted)
{
	Expr *e = *place;
	int64_t lo, hi;
	e->type = natural(e->kind, wanted);
	if (e->form == X_WHOLE && wanted < TYPES && !is_float(wanted) && wanted != BOOL) {
		range_of(wanted, &lo, &hi);
		if (e->i < lo || e->i > hi)
			fail(o, e->at, "%lld does not fit the type", (long long)e->i);
	}
	if (e->form == X_READ)
		e->type = (Kind)e->tensor->type;
	if (e->form == X_VALUE) {
		Instance *i = e->instance = instance_of(o, e, e->instance->index, e->type);
		if (!i->settled)
			settle(o, &i->root, e->type);
		i->settled = true;
	} else {
		settle_arguments(o, e);
	}
	convert(o, place, wanted);
}

static void type_bound(Oracle *o, Expr **place)
{
	if (!*place)
		return;
	kind_of(o, *place, true);
	settle(o, place, I64);
}

void equation_types(Oracle *o, Equation *q)
{
	o->instance = NULL;
	Kind k = kind_of(o, q->body, false);
	settle(o, &q->body, k >= TYPES && k != TRUTH ? F32 : natural(k, F32));
	if (q->body->type == BOOL && (q->assign == SUM || q->assign == PRODUCT))
		fail(o, q->body->at, "truth values can't be summed");
	for (int d = 0; d < q->rank; d++) {
		type_bound(o, &q->left[d]);
		type_bound(o, &q->extent[d]);
	}
	for (int k = 0; k < q->nindex; k++) {
		type_bound(o, &q->index[k].low);
		type_bound(o, &q->index[k].high);
	}
}

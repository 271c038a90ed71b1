/* print.c - nodes to the notation's text. Input: an expression over named axes and tensors. Output:
 * text that parses back to the same node. Invariant: parentheses where precedence or the order of
 * evaluation needs them, casts where the text alone would not say the type. */
#include "core/internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *tensor_name(Printer *p, Node *t)
{
	if (p->name)
		return p->name(p->user, t);
	return t->op == OP_INPUT ? t->u.s : arena_printf(&p->ir->arena, "T%u", t->id);
}

/* ---- what a text says about its type ---- */

static bool is_logic(Op op)
{
	return op == OP_LT || op == OP_LE || op == OP_EQ || op == OP_NE || op == OP_AND ||
	       op == OP_OR || op == OP_NOT;
}

/* Does the text of n, printed as it is, have n's type, rather than adapt to its surroundings? */
static bool says_type(const Node *n)
{
	if (n->op == OP_READ || n->op == OP_CAST || n->op == OP_RANDOM || n->op == OP_NORMAL ||
	    n->type == RICCI_BOOL || is_logic((Op)n->op))
		return true;
	for (int i = n->op == OP_SELECT; i < n->nsrc; i++)
		if (says_type(n->src[i]))
			return true;
	return false;
}

/* What n needs where nothing around it says the type. */
static TypeNeed alone(const Node *n)
{
	if (says_type(n))
		return NEED_NOTHING;
	return n->type == RICCI_F32 ? NEED_FLOAT : NEED_TYPE;
}

/* What n needs beside another operand that says the type. */
static TypeNeed beside(const Node *n)
{
	if (says_type(n) || n->op == OP_CONST || n->type == RICCI_I64)
		return NEED_NOTHING;
	return type_is_float((Type)n->type) ? NEED_FLOAT : NEED_TYPE;
}

/* ---- leaves ---- */

static void print_float(Printer *p, double v, Type t, bool point)
{
	char s[40];

	if (v != v || isinf(v)) {
		text_add(p->out, "%s", v != v ? "nan" : v < 0 ? "-inf" : "inf");
		return;
	}
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(s, sizeof s, "%.*g", digits, v);
		double back[1]; /* room for any type */
		type_store(t, back, 0, strtod(s, NULL));
		if (type_load(t, back, 0) == v)
			break;
	}
	for (char *c = s; *c; c++)
		if (!strchr("0123456789+-e", *c))
			*c = '.'; /* whatever the locale's decimal point is */
	bool plain = !strpbrk(s, ".e");
	text_add(p->out, "%s%s", s, plain && (point || (v == 0 && signbit(v))) ? ".0" : "");
}

static void print_const(Printer *p, Node *n, int level, TypeNeed need)
{
	Type t = (Type)n->type;
	bool negative = type_is_float(t) ? signbit(n->u.f) && n->u.f == n->u.f : n->u.i < 0;
	bool cast = need == NEED_TYPE || t == RICCI_BOOL;
	bool parens = negative && level > LEVEL_SIGN && !cast;

	if (cast)
		text_add(p->out, "%s(", type_name(t));
	if (parens)
		text_add(p->out, "(");
	if (type_is_float(t))
		print_float(p, n->u.f, t, need == NEED_FLOAT);
	else
		text_add(p->out, "%lld", (long long)n->u.i);
	if (cast || parens)
		text_add(p->out, ")");
}

static void print_axis(Printer *p, Node *n)
{
	for (int i = 0; i < p->naxis; i++) {
		if (p->axis[i] == n) {
			text_add(p->out, "%s", p->axis_name[i]);
			return;
		}
	}
	text_add(p->out, "i%lld", (long long)n->u.i);
}

static void print_read(Printer *p, Node *n)
{
	text_add(p->out, "%s[", tensor_name(p, n->src[0]));
	for (int i = 1; i < n->nsrc; i++) {
		if (i > 1)
			text_add(p->out, ",");
		print_value(p, n->src[i], LEVEL_CHOICE, NEED_NOTHING, true);
	}
	text_add(p->out, "]");
}

/* ---- operators ---- */

static void print_infix(Printer *p, Node *n, const char *op, int level, TypeNeed need, bool index)
{
	Node *a = n->src[0], *b = n->src[1];
	bool typed = says_type(a) || says_type(b), logic = is_logic((Op)n->op);
	TypeNeed left = typed ? beside(a) : logic ? alone(a) : need, right = beside(b);

	if (logic && !typed && a->type == RICCI_I64)
		left = NEED_NOTHING;
	print_value(p, a, level, left, index);
	text_add(p->out, index || level == LEVEL_PRODUCT ? "%s" : " %s ", op);
	print_value(p, b, level + 1, right, index);
}

/* One term of an integer sum behind its sign. */
static void print_term(Printer *p, Node *n, bool first, TypeNeed need, bool index)
{
	const char *plus = index ? "+" : " + ", *minus = index ? "-" : " - ";
	bool scaled = n->op == OP_MUL && n->src[0]->op == OP_CONST;
	int64_t k = scaled ? n->src[0]->u.i : n->op == OP_CONST ? n->u.i : 1;
	int64_t least, most;
	type_range((Type)n->type, &least, &most);
	bool negative = k < 0 && k != least && !(first && n->op == OP_CONST);

	if (negative)
		text_add(p->out, "%s", first ? "-" : minus);
	else if (!first)
		text_add(p->out, "%s", plus);
	if (!negative) {
		print_value(p, n, LEVEL_PRODUCT, need, index);
	} else if (!scaled) {
		text_add(p->out, "%lld", (long long)-k);
	} else {
		if (k != -1)
			text_add(p->out, "%lld*", (long long)-k);
		print_value(p, n->src[1], LEVEL_SIGN, need, index);
	}
}

static void print_sum(Printer *p, Node *n, bool first, TypeNeed need, bool index)
{
	if (n->op != OP_ADD) {
		print_term(p, n, first, need, index);
		return;
	}
	bool left = says_type(n->src[0]), right = says_type(n->src[1]);
	print_sum(p, n->src[0], first,
		  left	  ? NEED_NOTHING
		  : right ? beside(n->src[0])
			  : need,
		  index);
	print_sum(p, n->src[1], false, beside(n->src[1]), index);
}

static void print_choice(Printer *p, Node *n, TypeNeed need, bool index)
{
	Node *a = n->src[1], *b = n->src[2];
	bool typed = says_type(a) || says_type(b);

	print_value(p, n->src[0], LEVEL_OR, NEED_NOTHING, false);
	text_add(p->out, " ? ");
	print_value(p, a, LEVEL_CHOICE, typed ? beside(a) : need, index);
	text_add(p->out, " : ");
	print_value(p, b, LEVEL_CHOICE, typed ? beside(b) : need, index);
}

static void print_else(Printer *p, Node *n, bool index)
{
	print_read(p, n->src[1]);
	text_add(p->out, " else ");
	print_value(p, n->src[2], LEVEL_SIGN, beside(n->src[2]), index);
}

static void print_call(Printer *p, Node *n, TypeNeed need, bool index)
{
	bool draw = n->op == OP_RANDOM || n->op == OP_NORMAL, typed = says_type(n);

	text_add(p->out, "%s(", op_info[n->op].text);
	for (int i = 0; i < n->nsrc; i++) {
		Node *x = n->src[i];
		if (i)
			text_add(p->out, ", ");
		print_value(p, x, LEVEL_CHOICE,
			    draw    ? NEED_NOTHING
			    : typed ? beside(x)
			    : i	    ? beside(x)
				    : need,
			    draw || index);
	}
	text_add(p->out, ")");
}

static void print_cast(Printer *p, Node *n, bool index)
{
	Node *x = n->src[0];

	if (index && n->type == RICCI_I64 && x->op == OP_READ && type_is_int((Type)x->type)) {
		/* any integers index */
		print_read(p, x);
		return;
	}
	text_add(p->out, "%s(", type_name((Type)n->type));
	print_value(p, x, LEVEL_CHOICE,
		    x->type == RICCI_I64 ? NEED_NOTHING
		    : says_type(x)	 ? NEED_NOTHING
					 : NEED_TYPE,
		    false);
	text_add(p->out, ")");
}

static void see_guarded(void *guarded, Node *n)
{
	for (int d = 1; n->op == OP_READ && d < n->nsrc; d++)
		*(bool *)guarded |=
			n->src[d]->lo < 0 || n->src[d]->hi >= tensor_extent(n->src[0], d - 1);
}

/* A gather whose own index needs the condition is none: `else` looks inside only afterwards. */
bool print_is_else(Ir *ir, Node *n)
{
	Node *read = n->op == OP_SELECT ? n->src[1] : NULL;
	bool guarded = false;

	if (!read || read->op != OP_READ ||
	    inside_condition(ir, read->src[0], read->src + 1) != n->src[0])
		return false;
	for (int d = 1; d < read->nsrc; d++)
		node_walk(ir, read->src[d], see_guarded, &guarded);
	return !guarded;
}

static int level_of(const Node *n)
{
	switch (n->op) {
	case OP_SELECT:
		return LEVEL_CHOICE;
	case OP_OR:
		return LEVEL_OR;
	case OP_AND:
		return LEVEL_AND;
	case OP_EQ:
	case OP_NE:
		return LEVEL_EQUAL;
	case OP_LT:
	case OP_LE:
		return LEVEL_ORDER;
	case OP_ADD:
	case OP_SUB:
		return LEVEL_SUM;
	case OP_MUL:
		if (type_is_int((Type)n->type) && node_is_value(n->src[0], -1))
			return LEVEL_SIGN;
		return LEVEL_PRODUCT;
	case OP_DIV:
	case OP_FLOORDIV:
	case OP_FLOORMOD:
		return LEVEL_PRODUCT;
	case OP_NEG:
	case OP_NOT:
		return LEVEL_SIGN;
	default:
		return LEVEL_VALUE;
	}
}

static void print_operator(Printer *p, Node *n, int level, TypeNeed need, bool index)
{
	if (level == LEVEL_SUM && !type_is_float((Type)n->type)) {
		print_sum(p, n, true, need, index);
	} else if (n->op == OP_MUL && level == LEVEL_SIGN) {
		print_term(p, n, true, need, index);
	} else if (op_info[n->op].form == FORM_INFIX) {
		print_infix(p, n, op_info[n->op].text, level, need, index && !is_logic((Op)n->op));
	} else if (op_info[n->op].form == FORM_PREFIX) {
		text_add(p->out, "%s", op_info[n->op].text);
		print_value(p, n->src[0], LEVEL_SIGN, n->op == OP_NOT ? NEED_NOTHING : need,
			    index && n->op != OP_NOT);
	} else if (print_is_else(p->ir, n)) {
		print_else(p, n, index);
	} else {
		print_choice(p, n, need, index);
	}
}

/* Prints n where operators below `level` need parentheses. Shared parts are printed each time, so
 * a text longer than any program may be ends there. */
void print_value(Printer *p, Node *n, int level, TypeNeed need, bool index)
{
	if (p->out->n > NOTATION_MAX_TEXT)
		return;
	int mine = level_of(n);
	/* A cast around the whole says the type of an integer expression of index names. */
	bool cast = need == NEED_TYPE && type_is_int((Type)n->type) && n->op != OP_CONST &&
		    n->type == RICCI_I64 && !says_type(n);
	bool parens = mine < level && !cast;

	if (cast) {
		text_add(p->out, "i64(");
		need = NEED_NOTHING;
	}
	if (parens)
		text_add(p->out, "(");
	if (n->op == OP_CONST)
		print_const(p, n, level, need);
	else if (n->op == OP_AXIS)
		print_axis(p, n);
	else if (n->op == OP_READ)
		print_read(p, n);
	else if (n->op == OP_CAST)
		print_cast(p, n, index);
	else if (node_is_tensor(n))
		text_add(p->out, "%s", tensor_name(p, n));
	else if (op_info[n->op].form == FORM_CALL)
		print_call(p, n, need, index);
	else
		print_operator(p, n, mine, need, index);
	if (parens || cast)
		text_add(p->out, ")");
}

/* The text of a whole body: nothing around it says the type, and a lone literal is f32. */
void print_body(Printer *p, Node *n, int level)
{
	TypeNeed need = alone(n);

	if (n->op == OP_CONST && n->type == RICCI_F32)
		need = NEED_NOTHING;
	print_value(p, n, level, need, false);
}

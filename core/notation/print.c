/* print.c - nodes to the notation's text. Input: an expression over named axes and tensors. Output:
 * text that parses back to the same node. Invariant: parentheses where precedence or the order of
 * evaluation needs them, casts where the text alone would not say the type. A long part that stands
 * in several places is printed once, as a value with a name (print_values), so a text is as long as
 * an expression has nodes. */
#include "core/notation/internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool names_have(const Names *t, const char *s)
{
	for (int i = 0; i < t->n; i++)
		if (!strcmp(t->list[i], s))
			return true;
	return false;
}

const char *print_name(Printer *p, Node *t)
{
	if (p->name)
		return p->name(p->user, t);
	return t->op == OP_INPUT ? t->u.s : arena_printf(&p->ir->arena, "T%u", t->id);
}

/* What a text is made of: numbers alone, index names too (it adapts to its surroundings), or
 * something of its type. */
typedef enum { MADE_OF_NUMBERS, MADE_OF_INDICES, MADE_OF_TYPED } MadeOf;

/* What is known of a node: how often and how it is printed. */
typedef struct Part {
	int uses;
	int length; /* nodes of its text, a value counting one; at most INLINE_LONGEST + 1 */
	MadeOf made_of;
	bool is_else;	  /* it is printed as "A[..] else e" */
	const char *name; /* as a value; NULL: it is printed where it stands */
} Part;

enum { INLINE_LONGEST = 64 }; /* a shared part with more nodes than that becomes a value */

static Part *part_of(const Printer *p, const Node *n)
{
	return node_map_get(&p->part, n);
}

/* ---- what a text says about its type ---- */

static MadeOf made_of(const Printer *p, const Node *n)
{
	return part_of(p, n)->made_of;
}

static bool says_type(const Printer *p, const Node *n)
{
	return made_of(p, n) == MADE_OF_TYPED;
}

/* What n is made of, from what is known of its sources. */
static MadeOf find_made_of(const Printer *p, const Node *n)
{
	MadeOf most = n->op == OP_AXIS || n->op == OP_TRAINING ? MADE_OF_INDICES : MADE_OF_NUMBERS;

	if (n->op == OP_READ || n->op == OP_CAST || node_draws(n) || n->type == RICCI_BOOL ||
	    op_is_logic((Op)n->op))
		return MADE_OF_TYPED;
	for (int i = n->op == OP_SELECT; i < n->nsrc && !node_is_tensor(n); i++)
		most = made_of(p, n->src[i]) > most ? made_of(p, n->src[i]) : most;
	/* A quotient of numbers would be a float: print_infix says the type. */
	return n->op == OP_FLOORDIV && most == MADE_OF_NUMBERS ? MADE_OF_TYPED : most;
}

/* What n needs where nothing around it says the type. */
static TypeNeed alone(const Printer *p, const Node *n)
{
	if (says_type(p, n))
		return NEED_NOTHING;
	return n->type == RICCI_F32 ? NEED_FLOAT : NEED_TYPE;
}

/* What n needs beside another operand that says the type. */
static TypeNeed beside(const Printer *p, const Node *n)
{
	if (says_type(p, n) || n->op == OP_CONST || n->type == RICCI_I64)
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
	text_add(p->out, "%s[", print_name(p, n->src[0]));
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
	bool typed = says_type(p, a) || says_type(p, b), logic = op_is_logic((Op)n->op);
	TypeNeed left = typed ? beside(p, a) : logic ? alone(p, a) : need, right = beside(p, b);

	if (logic && !typed && a->type == RICCI_I64)
		left = NEED_NOTHING;
	if (n->op == OP_FLOORDIV && !index && made_of(p, a) == MADE_OF_NUMBERS)
		left = NEED_TYPE;
	print_value(p, a, level, left, index);
	text_add(p->out, index || level == LEVEL_PRODUCT ? "%s" : " %s ", op);
	print_value(p, b, level + 1, right, index);
}

/* One term of an integer sum behind its sign. */
static void print_term(Printer *p, Node *n, bool first, TypeNeed need, bool index)
{
	const char *plus = index ? "+" : " + ", *minus = index ? "-" : " - ";
	bool scaled = n->op == OP_MUL && n->src[0]->op == OP_CONST && !part_of(p, n)->name;
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
	if (n->op != OP_ADD || part_of(p, n)->name) {
		print_term(p, n, first, need, index);
		return;
	}
	bool left = says_type(p, n->src[0]), right = says_type(p, n->src[1]);
	print_sum(p, n->src[0], first,
		  left	  ? NEED_NOTHING
		  : right ? beside(p, n->src[0])
			  : need,
		  index);
	print_sum(p, n->src[1], false, beside(p, n->src[1]), index);
}

static void print_choice(Printer *p, Node *n, TypeNeed need, bool index)
{
	Node *a = n->src[1], *b = n->src[2];
	bool typed = says_type(p, a) || says_type(p, b);

	print_value(p, n->src[0], LEVEL_OR, NEED_NOTHING, false);
	text_add(p->out, " ? ");
	print_value(p, a, LEVEL_CHOICE, typed ? beside(p, a) : need, index);
	text_add(p->out, " : ");
	print_value(p, b, LEVEL_CHOICE, typed ? beside(p, b) : need, index);
}

static void print_else(Printer *p, Node *n, bool index)
{
	print_read(p, n->src[1]);
	text_add(p->out, " else ");
	print_value(p, n->src[2], LEVEL_SIGN, beside(p, n->src[2]), index);
}

static void print_call(Printer *p, Node *n, TypeNeed need, bool index)
{
	bool draw = node_draws(n), typed = says_type(p, n);

	text_add(p->out, "%s(", op_info[n->op].text);
	for (int i = 0; i < n->nsrc; i++) {
		Node *x = n->src[i];
		if (i)
			text_add(p->out, ", ");
		print_value(p, x, LEVEL_CHOICE,
			    draw    ? NEED_NOTHING
			    : typed ? beside(p, x)
			    : i	    ? beside(p, x)
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
		    : says_type(p, x)	 ? NEED_NOTHING
					 : NEED_TYPE,
		    false);
	text_add(p->out, ")");
}

/* Is n printed as "A[..] else e"? A gather whose own index needs the condition is none: `else` looks
 * inside only afterwards. */
static bool print_is_else(Ir *ir, Node *n)
{
	Node *read = n->op == OP_SELECT ? n->src[1] : NULL;
	bool guarded = false;

	if (!read || read->op != OP_READ ||
	    inside_condition(ir, read->src[0], read->src + 1) != n->src[0])
		return false;
	for (int d = 1; d < read->nsrc; d++)
		guarded |= node_any(ir, read->src[d], node_reads_outside);
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
		print_infix(p, n, op_info[n->op].text, level, need,
			    index && !op_is_logic((Op)n->op));
	} else if (op_info[n->op].form == FORM_PREFIX) {
		text_add(p->out, "%s", op_info[n->op].text);
		print_value(p, n->src[0], LEVEL_SIGN, n->op == OP_NOT ? NEED_NOTHING : need,
			    index && n->op != OP_NOT);
	} else if (part_of(p, n)->is_else) {
		print_else(p, n, index);
	} else {
		print_choice(p, n, need, index);
	}
}

/* Prints n where operators below `level` need parentheses. */
void print_value(Printer *p, Node *n, int level, TypeNeed need, bool index)
{
	const char *name = part_of(p, n)->name;
	int mine = name ? LEVEL_VALUE : level_of(n);
	/* A cast around the whole says the type of an integer expression of index names. */
	bool cast = need == NEED_TYPE && type_is_int((Type)n->type) && n->op != OP_CONST &&
		    n->type == RICCI_I64 && !says_type(p, n);
	bool parens = mine < level && !cast;

	if (cast) {
		text_add(p->out, "i64(");
		need = NEED_NOTHING;
	}
	if (parens)
		text_add(p->out, "(");
	if (name)
		text_add(p->out, "%s", name);
	else if (n->op == OP_CONST)
		print_const(p, n, level, need);
	else if (n->op == OP_AXIS)
		print_axis(p, n);
	else if (n->op == OP_TRAINING)
		text_add(p->out, "%s", op_info[n->op].text);
	else if (n->op == OP_READ)
		print_read(p, n);
	else if (n->op == OP_CAST)
		print_cast(p, n, index);
	else if (node_is_tensor(n))
		text_add(p->out, "%s", print_name(p, n));
	else if (op_info[n->op].form == FORM_CALL)
		print_call(p, n, need, index);
	else
		print_operator(p, n, mine, need, index);
	if (parens || cast)
		text_add(p->out, ")");
}

/* ---- shared parts ---- */

typedef struct Parts {
	Printer *p;
	Node **list; /* sources first */
	int n, room;
} Parts;

static void see_part(void *user, Node *n)
{
	Parts *all = user;
	Arena *a = &all->p->ir->arena;
	if (part_of(all->p, n))
		return;
	node_map_put(all->p->ir, &all->p->part, n, arena_alloc(a, sizeof(Part)));
	all->list = arena_grow(a, all->list, all->n, &all->room, sizeof *all->list);
	all->list[all->n++] = n;
}

/* Source k of n as n's text has it; NULL: it is not there, or n is none of that many. */
static Node *printed_source(const Part *part, const Node *n, int k)
{
	if (!part->is_else)
		return k < n->nsrc && !node_is_tensor(n) ? n->src[k] : NULL;
	return k < n->src[1]->nsrc ? n->src[1]->src[k] : k == n->src[1]->nsrc ? n->src[2] : NULL;
}

static void count_uses(const Printer *p, Node *n)
{
	Part *part = part_of(p, n);
	Node *x;
	for (int k = 0; part->uses && (x = printed_source(part, n, k)); k++)
		part_of(p, x)->uses++;
}

static int text_length(const Printer *p, Node *n)
{
	const Part *part = part_of(p, n);
	int length = 1;
	Node *x;
	for (int k = 0; length <= INLINE_LONGEST && (x = printed_source(part, n, k)); k++)
		length += part_of(p, x)->name ? 1 : part_of(p, x)->length;
	return length;
}

static const char *value_name(Printer *p, const Names *taken)
{
	Names axes = {p->axis_name, p->naxis};
	const char *name;
	do
		name = arena_printf(&p->ir->arena, "v%d", ++p->nnamed);
	while (names_have(taken, name) || names_have(&axes, name));
	return name;
}

void print_find_values(Printer *p, int nroot, Node *const *root, const Names *taken)
{
	Parts all = {.p = p};
	p->part = (NodeMap){0};
	p->nvalue = 0;
	for (int k = 0; k < nroot; k++)
		node_walk(p->ir, root[k], see_part, &all);
	for (int k = 0; k < nroot; k++)
		part_of(p, root[k])->uses++;
	for (int k = 0; k < all.n; k++) {
		Part *part = part_of(p, all.list[k]);
		part->made_of = find_made_of(p, all.list[k]);
		part->is_else = print_is_else(p->ir, all.list[k]);
	}
	for (int k = all.n; k-- > 0;)
		count_uses(p, all.list[k]);
	for (int k = 0; k < all.n; k++) {
		Part *part = part_of(p, all.list[k]);
		part->length = text_length(p, all.list[k]);
		if (part->uses < 2 || part->length <= INLINE_LONGEST)
			continue;
		part->name = value_name(p, taken);
		all.list[p->nvalue++] = all.list[k];
	}
	p->value = all.list;
}

void print_values(Printer *p, const char *between)
{
	for (int k = 0; k < p->nvalue; k++) {
		Part *part = part_of(p, p->value[k]);
		const char *name = part->name;
		part->name = NULL;
		text_add(p->out, "%s = ", name);
		print_value(p, p->value[k], LEVEL_CHOICE, alone(p, p->value[k]), false);
		text_add(p->out, "%s", between);
		part->name = name;
	}
}

/* The text of a whole body: nothing around it says the type, and a lone literal is f32. */
void print_body(Printer *p, Node *n, int level)
{
	TypeNeed need = alone(p, n);

	if (n->op == OP_CONST && n->type == RICCI_F32)
		need = NEED_NOTHING;
	print_value(p, n, level, need, false);
}

/* typing.c - what each part of an expression is: one of the data types, or a value that adapts to
 * the other side of its operator (literals, index names, comparisons). Input: a syntax tree whose
 * tensors are bound. Output: Ast.value everywhere. Invariant: elements of different types never
 * meet without a cast that the user wrote; in index expressions all integer types are one. */
#include "core/notation/internal.h"
#include <string.h>

Op call_find(const char *name)
{
	int op = OP_COUNT - 1;
	while (op > 0 && (op_info[op].form != FORM_CALL || strcmp(op_info[op].text, name)))
		op--;
	return (Op)op;
}

/* Is the operator one of floats alone? */
static bool takes_float(Op op)
{
	return op != OP_MIN && op != OP_MAX && op != OP_ABS && op != OP_SIGN && op != OP_FLOOR &&
	       op != OP_CEIL && op != OP_ROUND && op != OP_STOP;
}

static const char *kind_name(int kind)
{
	return kind < RICCI_NTYPES  ? type_name((Type)kind)
	       : kind == KIND_FLOAT ? "a float"
	       : kind == KIND_LOGIC ? "a truth value"
				    : "an integer";
}

static bool kind_is_int(int kind)
{
	return kind == KIND_INT || kind == KIND_NUMBER ||
	       (kind < RICCI_NTYPES && type_is_int((Type)kind));
}

static bool kind_is_logic(int kind)
{
	return kind == KIND_LOGIC || kind == RICCI_BOOL;
}

static bool adapts(int kind)
{
	return kind >= RICCI_NTYPES;
}

/* x of type and y do not go together: which cast would help? */
_Noreturn static void mismatch(Source *s, Ast *a, Ast *x, Ast *y)
{
	int k = x->value, l = y->value;

	if (k == RICCI_BOOL || l == RICCI_BOOL) {
		Ast *b = k == RICCI_BOOL ? x : y, *o = b == x ? y : x;
		notation_fail(s, RICCI_ETYPE, b->pos,
			      "%s is bool and no number: write %s(%s) or use it as a condition",
			      ast_text(s, b), adapts(o->value) ? "f32" : kind_name(o->value),
			      ast_text(s, b));
	}
	if (adapts(k) || adapts(l)) {
		Ast *t = adapts(k) ? y : x, *o = adapts(k) ? x : y;
		notation_fail(s, RICCI_ETYPE, a->mark,
			      "%s is %s and can't take the float %s: write f32(%s)", ast_text(s, t),
			      kind_name(t->value), ast_text(s, o), ast_text(s, t));
	}
	Ast *from = type_is_float((Type)k) && !type_is_float((Type)l)	? y
		    : type_is_float((Type)l) && !type_is_float((Type)k) ? x
		    : type_size((Type)k) < type_size((Type)l)		? x
									: y;
	Ast *to = from == x ? y : x;
	notation_fail(s, RICCI_ETYPE, a->mark, "types differ: %s is %s, %s is %s; write %s(%s)",
		      ast_text(s, x), kind_name(k), ast_text(s, y), kind_name(l),
		      kind_name(to->value), ast_text(s, from));
}

int typing_join(Source *s, Ast *a, Ast *x, Ast *y, bool logic)
{
	int k = x->value, l = y->value;

	if (kind_is_logic(k) && kind_is_logic(l)) {
		if (logic)
			return k == l ? k : RICCI_BOOL;
		if (k == KIND_LOGIC && l == KIND_LOGIC)
			return KIND_NUMBER;
	}
	if (k == RICCI_BOOL || l == RICCI_BOOL)
		mismatch(s, a, x, y);
	if (k == l)
		return k;
	if (adapts(k) && adapts(l))
		return k == KIND_FLOAT || l == KIND_FLOAT ? KIND_FLOAT
		       : k == KIND_INT || l == KIND_INT	  ? KIND_INT
							  : KIND_NUMBER;
	if (adapts(k) || adapts(l)) {
		int t = adapts(k) ? l : k, o = adapts(k) ? k : l;
		if (o != KIND_FLOAT || type_is_float((Type)t))
			return t;
	}
	mismatch(s, a, x, y);
}

/* ---- parts ---- */

static void check_tensor(Source *s, Ast *a)
{
	if (!a->name->tensor)
		notation_fail(s, RICCI_EINVAL, a->pos, "no tensor is given for %s", a->name->s);
}

static int typing_access(Source *s, Ast *a, bool index)
{
	check_tensor(s, a);
	Node *t = a->name->tensor;
	if (a->n != tensor_rank(t))
		notation_fail(s, RICCI_ESHAPE, a->pos, "%s has %d dimension%s, but %d ind%s given",
			      a->name->s, tensor_rank(t), tensor_rank(t) == 1 ? "" : "s", a->n,
			      a->n == 1 ? "ex is" : "ices are");
	for (int i = 0; i < a->n; i++)
		typing_check(s, a->arg[i], true);
	if (!index)
		return t->type;
	if (!type_is_int((Type)t->type))
		notation_fail(s, RICCI_ETYPE, a->pos,
			      "%s indexes, so it must hold integers, but it is %s: write i32(%s)",
			      a->name->s, type_name((Type)t->type), ast_text(s, a));
	return KIND_INT;
}

static int typing_cast(Source *s, Ast *a, Type t, bool index)
{
	if (a->n != 1)
		notation_fail(s, RICCI_ESYNTAX, a->pos, "%s takes 1 argument, %d given", a->name->s,
			      a->n);
	typing_check(s, a->arg[0], false);
	if (!index)
		return t;
	if (!type_is_int(t))
		notation_fail(s, RICCI_ETYPE, a->pos, "an index is an integer, but %s is %s",
			      ast_text(s, a), type_name(t));
	return KIND_INT;
}

static int typing_draw(Source *s, Ast *a)
{
	if (a->n < 1 || a->n > 2)
		notation_fail(s, RICCI_ESYNTAX, a->pos,
			      "%s takes a key, and maybe the number of an element; %d arguments "
			      "given",
			      a->name->s, a->n);
	for (int i = 0; i < a->n; i++)
		typing_check(s, a->arg[i], true);
	return RICCI_F32;
}

static int typing_call(Source *s, Ast *a, bool index)
{
	Op op = call_find(a->name->s);
	int nsrc = op_info[op].nsrc;
	Type t;

	if (!op && type_parse(a->name->s, &t))
		return typing_cast(s, a, t, index);
	if (!op)
		notation_fail(s, RICCI_ESYNTAX, a->pos, "unknown function %s%s", a->name->s,
			      hint_text(s, a->name->s));
	if (op_draws(op))
		return typing_draw(s, a);
	if (a->n != nsrc)
		notation_fail(s, RICCI_ESYNTAX, a->pos, "%s takes %d argument%s, %d given",
			      a->name->s, nsrc, nsrc == 1 ? "" : "s", a->n);
	for (int i = 0; i < a->n; i++)
		typing_check(s, a->arg[i], index);
	Ast *x = a->arg[0];
	int k = a->n == 2 ? typing_join(s, a, x, a->arg[1], false) : x->value;
	if (k == RICCI_BOOL)
		notation_fail(s, RICCI_ETYPE, x->pos, "%s is bool and no number: write f32(%s)",
			      ast_text(s, x), ast_text(s, x));
	if (k == KIND_LOGIC)
		k = KIND_NUMBER;
	if (takes_float(op) && adapts(k))
		k = KIND_FLOAT;
	if (takes_float(op) && kind_is_int(k))
		notation_fail(s, RICCI_ETYPE, x->pos,
			      "%s takes a float, but %s is %s: write f32(%s)", a->name->s,
			      ast_text(s, x), kind_name(k), ast_text(s, x));
	return k;
}

static int typing_unary(Source *s, Ast *a)
{
	Ast *x = a->arg[0];

	if (a->op == TOK_BANG)
		return KIND_LOGIC;
	if (x->value == RICCI_BOOL)
		notation_fail(s, RICCI_ETYPE, x->pos, "%s is bool and has no sign: write !%s",
			      ast_text(s, x), ast_text(s, x));
	return x->value == KIND_LOGIC ? KIND_NUMBER : x->value;
}

static int typing_binary(Source *s, Ast *a, bool index)
{
	int level = tok_level[a->op];
	if (level <= LEVEL_AND)
		return KIND_LOGIC;
	int k = typing_join(s, a, a->arg[0], a->arg[1], level <= LEVEL_ORDER);
	if (level <= LEVEL_ORDER)
		return KIND_LOGIC;
	if (a->op == TOK_PERCENT && !kind_is_int(k))
		notation_fail(s, RICCI_ETYPE, a->mark, "%% is for integers, but %s is %s",
			      ast_text(s, a->arg[kind_is_int(a->arg[0]->value)]),
			      kind_name(a->arg[kind_is_int(a->arg[0]->value)]->value));
	/* Numbers alone are floats: only a quotient would tell them from integers. */
	return a->op == TOK_SLASH && k == KIND_NUMBER && !index ? KIND_FLOAT : k;
}

/* Does argument i of a decide something? Then it is no part of an index, even inside one. */
static bool is_logical(const Ast *a, int i)
{
	if (a->kind == AST_SELECT)
		return i == 0;
	if (a->kind == AST_UNARY)
		return a->op == TOK_BANG;
	return a->kind == AST_BINARY && tok_level[a->op] < LEVEL_SUM;
}

/* Elements of short integers are computed in their type as values, in 64 bits within an index; a
 * quotient of numbers is a float as a value, an integer within an index. */
static void check_uses(Source *s, const Ast *a)
{
	const Shared *x = a->shared;
	int k = x->kind[0];

	if (x->typed[0] == s->typing && x->typed[1] == s->typing &&
	    (k < RICCI_NTYPES || k == KIND_FLOAT) && k != RICCI_I64 && k != RICCI_BOOL)
		notation_fail(s, RICCI_ETYPE, a->pos,
			      "the value %s indexes, in 64 bits, and is used as %s, too: write it "
			      "where it indexes",
			      ast_text(s, a), kind_name(k));
}

static int typing_part(Source *s, Ast *a, bool index)
{
	int k = KIND_NUMBER;

	if (a->kind == AST_ELSE || a->kind == AST_UNARY || a->kind == AST_BINARY ||
	    a->kind == AST_SELECT)
		for (int i = 0; i < a->n; i++)
			typing_check(s, a->arg[i], index && !is_logical(a, i));
	switch (a->kind) {
	case AST_FLOAT:
		k = KIND_FLOAT;
		break;
	case AST_NAME:
		if (a->name->is_tensor)
			notation_fail(s, RICCI_ESYNTAX, a->pos,
				      "%s is a tensor: its elements are written %s[...]",
				      a->name->s, a->name->s);
		k = KIND_INT;
		break;
	case AST_TRAINING:
		k = KIND_INT;
		break;
	case AST_SIZE:
		check_tensor(s, a);
		if (a->u.i >= tensor_rank(a->name->tensor))
			notation_fail(s, RICCI_ESHAPE, a->pos,
				      "%s has %d dimension%s, counted from 0: there is no "
				      "dimension %d",
				      a->name->s, tensor_rank(a->name->tensor),
				      tensor_rank(a->name->tensor) == 1 ? "" : "s", (int)a->u.i);
		break;
	case AST_ACCESS:
		k = typing_access(s, a, index);
		break;
	case AST_ELSE:
		k = typing_join(s, a, a->arg[0], a->arg[1], true);
		break;
	case AST_CALL:
		k = typing_call(s, a, index);
		break;
	case AST_UNARY:
		k = typing_unary(s, a);
		break;
	case AST_BINARY:
		k = typing_binary(s, a, index);
		break;
	case AST_SELECT:
		k = typing_join(s, a, a->arg[1], a->arg[2], true);
		break;
	default:
		break;
	}
	if (index && !kind_is_int(k) && k != KIND_LOGIC)
		notation_fail(s, RICCI_ETYPE, a->pos, "an index is an integer, but %s is %s",
			      ast_text(s, a), kind_name(k));
	return k;
}

int typing_check(Source *s, Ast *a, bool index)
{
	Shared *x = a->shared;

	if (x && x->typed[index] == s->typing)
		return a->value = x->kind[index];
	a->value = (uint8_t)typing_part(s, a, index);
	if (x) {
		x->typed[index] = s->typing;
		x->kind[index] = a->value;
		check_uses(s, a);
	}
	return a->value;
}

/* parse.c - tokens to a syntax tree, by recursive descent. Input: the text of a program. Output: a
 * Program in the arena, its names marked as tensors, its operands numbered in the order in which
 * unassigned names first appear. A name's value stands where the name does, once in memory.
 * Invariant: the tree's depth is bounded, so later passes may recurse. */
#include "core/notation/internal.h"
#include <string.h>

typedef struct Parser {
	Source *src;
	Program *program;
	Lexer l;
	int depth, equation;
	Name **seen; /* tensors read, in the order of first appearance */
	int nseen, room;
	Name **value; /* the names that have one */
	int nvalue, value_room, bare_room;
} Parser;

static Ast *parse_expr(Parser *p);

_Noreturn static void unexpected(Parser *p, const char *wanted)
{
	Source *s = p->src;

	if (p->l.tok == TOK_END)
		notation_fail(s, RICCI_ESYNTAX, p->l.start, "expected %s, but the text ends",
			      wanted);
	bool power = p->l.start > 0 && !strncmp(s->text + p->l.start - 1, "**", 2);
	notation_fail(s, RICCI_ESYNTAX, p->l.start, "expected %s, found '%.*s'%s", wanted,
		      p->l.stop - p->l.start > 40 ? 40 : p->l.stop - p->l.start,
		      s->text + p->l.start, hint_text(s, power ? "**" : ""));
}

static void expect(Parser *p, Tok t, const char *wanted)
{
	if (p->l.tok != t)
		unexpected(p, wanted);
	lex_next(&p->l);
}

static bool accept(Parser *p, Tok t)
{
	if (p->l.tok != t)
		return false;
	lex_next(&p->l);
	return true;
}

static void enter(Parser *p, int pos)
{
	if (++p->depth > NOTATION_MAX_DEPTH)
		notation_fail(p->src, RICCI_ESYNTAX, pos,
			      "the expression is nested deeper than %d levels", NOTATION_MAX_DEPTH);
}

static void leave(Parser *p)
{
	p->depth--;
}

static Ast *ast_new(Parser *p, AstKind kind, int pos, int n, Ast *const *arg)
{
	Ast *a = arena_alloc(&p->src->ir->arena, sizeof *a + (size_t)n * sizeof *arg);

	a->kind = (uint8_t)kind;
	a->value = KIND_NONE;
	a->pos = a->mark = pos;
	a->end = p->l.last;
	a->n = n;
	for (int i = 0; i < n; i++) {
		a->arg[i] = arg[i];
		if (a->height < arg[i]->height)
			a->height = arg[i]->height;
	}
	int most = p->nvalue ? NOTATION_MAX_VALUES : NOTATION_MAX_HEIGHT;
	const char *why = "";
	if (++a->height > STACK_DEPTH_ANY && stack_levels() < most) {
		most = stack_levels();
		why = ", for which this thread's stack has room";
	}
	if (a->height > most)
		notation_fail(p->src, RICCI_ESYNTAX, pos,
			      "the expression has more than %d levels%s", most, why);
	return a;
}

static void see_tensor(Parser *p, Name *name, int pos)
{
	if (name->value)
		notation_fail(p->src, RICCI_ESYNTAX, pos,
			      "%s is a value: it has no indices and no size", name->s);
	name->is_tensor = true;
	if (name->first_read >= 0)
		return;
	name->first_read = pos;
	p->seen = arena_grow(&p->src->ir->arena, p->seen, p->nseen, &p->room, sizeof *p->seen);
	p->seen[p->nseen++] = name;
}

static void see_bare(Parser *p, Name *name, int pos)
{
	Program *q = p->program;

	if (name->first_bare >= 0)
		return;
	name->first_bare = pos;
	q->bare = arena_grow(&p->src->ir->arena, q->bare, q->nbare, &p->bare_room, sizeof *q->bare);
	q->bare[q->nbare++] = name;
}

/* ---- expressions ---- */

static Ast *parse_size(Parser *p, Name *name, int pos)
{
	expect(p, TOK_DOT, "'.'");
	if (p->l.tok != TOK_NAME || strcmp(p->l.name->s, "size"))
		unexpected(p, "'size' after the '.', as in A.size(0)");
	lex_next(&p->l);
	expect(p, TOK_LPAREN, "'(' after size");
	if (p->l.tok != TOK_INT || p->l.overflow || p->l.i > RICCI_MAX_RANK)
		unexpected(p, "the number of a dimension");
	int64_t d = (int64_t)p->l.i;
	lex_next(&p->l);
	expect(p, TOK_RPAREN, "')' after the dimension");
	see_tensor(p, name, pos);
	Ast *a = ast_new(p, AST_SIZE, pos, 0, NULL);
	a->name = name;
	a->u.i = d;
	return a;
}

/* `...` in the brackets of a tensor, at most once; *dots: the one before, or NULL. */
static Ast *parse_dots(Parser *p, const Ast *dots)
{
	int pos = p->l.start;

	if (dots)
		notation_fail_both(p->src, RICCI_ESYNTAX, dots->pos, pos,
				   "... stands twice in the brackets of one tensor");
	lex_next(&p->l);
	return ast_new(p, AST_DOTS, pos, 0, NULL);
}

/* Arguments up to a closing bracket; at most 64, more than any rank or function takes. dots: where
 * `...` may stand, its place in the list, from 1; else NULL. */
static int parse_list(Parser *p, Tok close, const char *wanted, Ast **list, int *dots)
{
	int n = 0;

	if (accept(p, close))
		return 0;
	do {
		if (n == 64)
			notation_fail(p->src, RICCI_ESYNTAX, p->l.start,
				      "more than 64 expressions in one list");
		if (dots && p->l.tok == TOK_ELLIPSIS) {
			list[n] = parse_dots(p, *dots ? list[*dots - 1] : NULL);
			*dots = ++n;
		} else {
			list[n++] = parse_expr(p);
		}
	} while (accept(p, TOK_COMMA));
	expect(p, close, wanted);
	return n;
}

static Ast *parse_unary(Parser *p);

static Ast *parse_access(Parser *p, Name *name, int pos)
{
	Ast *list[64 + RICCI_MAX_RANK];
	int dots = 0;

	lex_next(&p->l);
	see_tensor(p, name, pos);
	int n = parse_list(p, TOK_RBRACKET, "',' or ']' after an index", list, &dots);
	for (int i = 0; i < n; i++)
		if (list[i]->kind == AST_NAME)
			list[i]->name->is_index = true;
	for (int i = n; dots && i < n + RICCI_MAX_RANK; i++)
		list[i] = list[dots - 1]; /* room for what it stands for */
	Ast *a = ast_new(p, AST_ACCESS, pos, dots ? n + RICCI_MAX_RANK : n, list);
	a->name = name;
	a->n = n;
	a->dots = dots;
	a->ndots = -1;
	if (p->l.tok != TOK_ELSE)
		return a;
	int mark = p->l.start;
	lex_next(&p->l);
	Ast *both[2] = {a, parse_unary(p)};
	a = ast_new(p, AST_ELSE, pos, 2, both);
	a->mark = mark;
	return a;
}

static Ast *parse_name(Parser *p)
{
	Name *name = p->l.name;
	int pos = p->l.start;
	Ast *list[64], *a;

	lex_next(&p->l);
	if (p->l.tok == TOK_LBRACKET)
		return parse_access(p, name, pos);
	if (p->l.tok == TOK_DOT)
		return parse_size(p, name, pos);
	if (p->l.tok == TOK_LPAREN) {
		lex_next(&p->l);
		int n = parse_list(p, TOK_RPAREN, "',' or ')' after an argument", list, NULL);
		a = ast_new(p, AST_CALL, pos, n, list);
	} else {
		see_bare(p, name, pos);
		if (name->value)
			return name->value;
		a = ast_new(p, AST_NAME, pos, 0, NULL);
	}
	a->name = name;
	return a;
}

static Ast *parse_literal(Parser *p, bool negative, int pos)
{
	uint64_t i = p->l.i, most = (uint64_t)INT64_MAX + negative;
	double f = p->l.f;
	bool is_int = p->l.tok == TOK_INT;

	if (is_int && (p->l.overflow || i > most))
		notation_fail(p->src, RICCI_ESYNTAX, p->l.start,
			      "the number does not fit 64 bits; as a float it needs a point");
	lex_next(&p->l);
	Ast *a = ast_new(p, is_int ? AST_INT : AST_FLOAT, pos, 0, NULL);
	if (is_int)
		a->u.i = negative ? (int64_t)(0 - i) : (int64_t)i;
	else
		a->u.f = negative ? -f : f;
	return a;
}

static Ast *parse_primary(Parser *p)
{
	int pos = p->l.start;

	switch (p->l.tok) {
	case TOK_INT:
	case TOK_FLOAT:
		return parse_literal(p, false, pos);
	case TOK_NAME:
		return parse_name(p);
	case TOK_TRAINING:
		lex_next(&p->l);
		return ast_new(p, AST_TRAINING, pos, 0, NULL);
	case TOK_LPAREN: {
		lex_next(&p->l);
		Ast *a = parse_expr(p);
		expect(p, TOK_RPAREN, "')'");
		return a;
	}
	default:
		unexpected(p, "a value");
	}
}

static Ast *parse_unary(Parser *p)
{
	int pos = p->l.start;
	Tok op = p->l.tok;
	Ast *a;

	enter(p, pos);
	if (op == TOK_MINUS || op == TOK_BANG) {
		lex_next(&p->l);
		if (op == TOK_MINUS && (p->l.tok == TOK_INT || p->l.tok == TOK_FLOAT)) {
			a = parse_literal(p, true, pos);
		} else {
			Ast *x = parse_unary(p);
			a = ast_new(p, AST_UNARY, pos, 1, &x);
			a->op = (uint8_t)op;
		}
	} else {
		a = parse_primary(p);
	}
	leave(p);
	return a;
}

static Ast *parse_binary(Parser *p, int least)
{
	int pos = p->l.start;
	Ast *a = parse_unary(p);

	for (;;) {
		Tok op = p->l.tok;
		int level = tok_level[op], mark = p->l.start;
		if (!level || level < least)
			return a;
		lex_next(&p->l);
		Ast *both[2] = {a, parse_binary(p, level + 1)};
		a = ast_new(p, AST_BINARY, pos, 2, both);
		a->op = (uint8_t)op;
		a->mark = mark;
	}
}

static Ast *parse_expr(Parser *p)
{
	int pos = p->l.start;

	enter(p, pos);
	Ast *a = parse_binary(p, LEVEL_OR);
	if (p->l.tok == TOK_QUESTION) {
		int mark = p->l.start;
		lex_next(&p->l);
		Ast *yes = parse_expr(p);
		expect(p, TOK_COLON, "':' of a choice");
		Ast *all[3] = {a, yes, parse_expr(p)};
		a = ast_new(p, AST_SELECT, pos, 3, all);
		a->mark = mark;
	}
	leave(p);
	return a;
}

/* ---- equations ---- */

static void parse_left(Parser *p, Equation *q)
{
	Ast *left[RICCI_MAX_RANK + 1], *extent[RICCI_MAX_RANK + 1] = {NULL};
	int n = 0;

	if (p->l.tok != TOK_RBRACKET) {
		do {
			if (n == RICCI_MAX_RANK + (q->dots != NULL))
				notation_fail(p->src, RICCI_ESHAPE, p->l.start,
					      "a tensor has at most %d dimensions", RICCI_MAX_RANK);
			if (p->l.tok == TOK_ELLIPSIS) {
				q->dots = left[n] = parse_dots(p, q->dots);
				q->dots_at = n++;
				continue;
			}
			left[n] = parse_expr(p);
			if (left[n]->kind == AST_NAME)
				left[n]->name->is_index = true;
			if (accept(p, TOK_COLON))
				extent[n] = parse_expr(p);
			n++;
		} while (accept(p, TOK_COMMA));
	}
	expect(p, TOK_RBRACKET, "',' or ']' after an index");
	size_t room = sizeof *left * (size_t)(n + 1 + RICCI_MAX_RANK);
	q->nleft = n;
	q->left = arena_alloc(&p->src->ir->arena, room);
	q->extent = arena_alloc(&p->src->ir->arena, room);
	memcpy(q->left, left, (size_t)n * sizeof *left);
	memcpy(q->extent, extent, (size_t)n * sizeof *left);
}

static Reduce parse_assign(Parser *p)
{
	Reduce red = RED_NONE;

	if (p->l.tok == TOK_NAME && p->src->text[p->l.pos] == '=') {
		if (!strcmp(p->l.name->s, "max"))
			red = RED_MAX;
		else if (!strcmp(p->l.name->s, "min"))
			red = RED_MIN;
		if (red != RED_NONE)
			lex_next(&p->l);
	} else if (p->l.tok == TOK_PLUSEQ) {
		red = RED_ADD;
	} else if (p->l.tok == TOK_STAREQ) {
		red = RED_MUL;
	}
	if (red == RED_ADD || red == RED_MUL)
		lex_next(&p->l);
	else
		expect(p, TOK_EQ, "'=', '+=', '*=', 'max=' or 'min='");
	return red;
}

static void parse_where(Parser *p, Equation *q)
{
	int room = 0;

	do {
		q->range = arena_grow(&p->src->ir->arena, q->range, q->nrange, &room,
				      sizeof *q->range);
		RangeAst *r = &q->range[q->nrange++];
		*r = (RangeAst){.pos = p->l.start, .name = p->l.name};
		expect(p, TOK_NAME, "the name of an index");
		r->name->is_index = true;
		if (accept(p, TOK_LT)) {
			r->high = parse_binary(p, LEVEL_SUM);
		} else if (accept(p, TOK_IN)) {
			r->low = parse_binary(p, LEVEL_SUM);
			expect(p, TOK_DOTDOT, "'..' between the bounds of a range");
			r->high = parse_binary(p, LEVEL_SUM);
		} else {
			unexpected(p, "'<' or 'in' after the index of a range");
		}
		if (q->nrange > NOTATION_MAX_INDEX)
			notation_fail(p->src, RICCI_ESYNTAX, r->pos, "more than %d ranges",
				      NOTATION_MAX_INDEX);
	} while (accept(p, TOK_COMMA));
}

/* NAME = expr: from here on the name stands for the expression. */
static void parse_value(Parser *p, Name *name, int pos)
{
	if (name->is_tensor)
		notation_fail(p->src, RICCI_ESYNTAX, pos, "%s is a tensor and can't be a value",
			      name->s);
	if (name->value)
		notation_fail(p->src, RICCI_ESYNTAX, pos, "the value %s is given twice", name->s);
	if (name->first_bare >= 0)
		notation_fail(p->src, RICCI_ESYNTAX, name->first_bare,
			      "%s is used before its value is given", name->s);
	lex_next(&p->l);
	Ast *a = parse_expr(p);
	if (name->first_bare >= 0 || name->is_tensor)
		notation_fail(p->src, RICCI_ESYNTAX, pos, "the value of %s depends on %s", name->s,
			      name->s);
	if (p->l.tok != TOK_SEMICOLON)
		unexpected(p, "an operator or ';' after a value");
	if (!a->shared)
		a->shared = arena_alloc(&p->src->ir->arena, sizeof *a->shared);
	name->value = a;
	p->value = arena_grow(&p->src->ir->arena, p->value, p->nvalue, &p->value_room,
			      sizeof *p->value);
	p->value[p->nvalue++] = name;
}

/* NULL: it is a value. */
static Equation *parse_equation(Parser *p)
{
	Equation *q = arena_alloc(&p->src->ir->arena, sizeof *q);

	q->number = p->equation;
	q->pos = p->l.start;
	q->name = p->l.name;
	expect(p, TOK_NAME, "the name of a tensor");
	if (p->l.tok == TOK_EQ) {
		parse_value(p, q->name, q->pos);
		return NULL;
	}
	if (p->l.tok != TOK_LBRACKET)
		unexpected(p, "'[' after the tensor (a scalar is written Y[])");
	lex_next(&p->l);
	if (q->name->value)
		notation_fail(p->src, RICCI_ESYNTAX, q->pos, "%s is a value and can't be a tensor",
			      q->name->s);
	q->name->is_tensor = true;
	if (q->name->assigned >= 0)
		notation_fail(p->src, RICCI_ESYNTAX, q->pos,
			      "%s is assigned twice; each tensor has one equation", q->name->s);
	parse_left(p, q);
	if (q->name->first_read >= 0)
		notation_fail(p->src, RICCI_ESYNTAX, q->name->first_read,
			      "%s is read before it is assigned", q->name->s);
	q->mark = p->l.start;
	q->red = parse_assign(p);
	q->body = parse_expr(p);
	if (q->name->first_read >= 0)
		notation_fail(p->src, RICCI_ESYNTAX, q->name->first_read,
			      "%s is read in its own equation", q->name->s);
	q->name->assigned = q->number;
	if (accept(p, TOK_WHERE))
		parse_where(p, q);
	if (p->l.tok != TOK_SEMICOLON && p->l.tok != TOK_END)
		unexpected(p, q->nrange ? "',' or ';' after a range"
					: "an operator, 'where' or ';' after the expression");
	return q;
}

Program *program_parse(Ir *ir, const char *text)
{
	Program *program = arena_alloc(&ir->arena, sizeof *program);
	Parser p = {.src = &program->src, .program = program};
	int room = 0;

	source_init(&program->src, ir, text);
	p.l = (Lexer){.src = &program->src};
	lex_next(&p.l);
	if (p.l.tok == TOK_END)
		notation_fail(p.src, RICCI_ESYNTAX, 0, "the program is empty");
	signature_parse(program, &p.l);
	do {
		if (p.l.tok == TOK_END && program->nequation)
			break;
		program->equation =
			arena_grow(&p.src->ir->arena, program->equation, program->nequation, &room,
				   sizeof *program->equation);
		p.equation = program->nequation;
		program->equation[program->nequation] = parse_equation(&p);
		program->nequation += program->equation[program->nequation] != NULL;
	} while (accept(&p, TOK_SEMICOLON));
	for (int i = 0; i < p.nvalue; i++)
		if (p.value[i]->first_bare < 0)
			notation_fail(p.src, RICCI_ESYNTAX, p.value[i]->value->pos,
				      "the value %s is not used", p.value[i]->s);
	signature_order(program, p.nseen, p.seen);
	return program;
}

const char *ast_text(Source *s, const Ast *a)
{
	int n = a->end - a->pos;
	bool cut = n > 48;
	char *t = arena_printf(&s->ir->arena, "%.*s%s", cut ? 45 : n, s->text + a->pos,
			       cut ? "..." : "");

	for (char *c = t; *c; c++) {
		if (*c == '\n' || *c == '\t' || *c == '\r')
			*c = ' ';
	}
	return t;
}

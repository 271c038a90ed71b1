/* signature.c - "X, W -> Y: .." before a program, and the order of operands and results. Input: the
 * tokens of a text, then what was parsed. Output: Program.operand and .result. Invariant: with a
 * signature, it names all that is read and not assigned, and all that is assigned and not read. */
#include "core/notation/internal.h"
#include <string.h>

/* Does the text begin with a signature: a name and then a comma or an arrow, or an arrow? */
static bool is_signature(Lexer l)
{
	if (l.tok == TOK_NAME)
		lex_next(&l);
	return l.tok == TOK_ARROW || l.tok == TOK_COMMA;
}

_Noreturn static void unexpected(Program *p, const Lexer *l, const char *wanted)
{
	if (l->tok == TOK_END)
		notation_fail(&p->src, RICCI_ESYNTAX, l->start, "expected %s, but the text ends",
			      wanted);
	notation_fail(&p->src, RICCI_ESYNTAX, l->start, "expected %s, found '%.*s'", wanted,
		      l->stop - l->start > 40 ? 40 : l->stop - l->start, p->src.text + l->start);
}

/* Names between commas, at least one. */
static int names_parse(Program *p, Lexer *l, const char *wanted, Name ***list, int **at)
{
	Arena *a = &p->src.ir->arena;
	int n = 0, room = 0, at_room = 0;

	*list = NULL;
	*at = NULL;
	for (;; lex_next(l)) {
		if (l->tok != TOK_NAME)
			unexpected(p, l, wanted);
		*list = arena_grow(a, *list, n, &room, sizeof **list);
		*at = arena_grow(a, *at, n, &at_room, sizeof **at);
		(*list)[n] = l->name;
		(*at)[n++] = l->start;
		lex_next(l);
		if (l->tok != TOK_COMMA)
			return n;
	}
}

void signature_parse(Program *p, Lexer *l)
{
	if (!is_signature(*l))
		return;
	Signature *s = arena_alloc(&p->src.ir->arena, sizeof *s);
	if (l->tok != TOK_ARROW)
		s->noperand =
			names_parse(p, l, "the name of an operand", &s->operand, &s->operand_at);
	if (l->tok != TOK_ARROW)
		unexpected(p, l, "',' or '->' after the name of an operand");
	lex_next(l);
	s->nresult = names_parse(p, l, "the name of a result", &s->result, &s->result_at);
	if (l->tok != TOK_COLON)
		unexpected(p, l, "',' or ':' after the name of a result");
	lex_next(l);
	p->signature = s;
}

/* ---- what it says is what the program does ---- */

/* Is a name given twice? */
static void check_twice(Program *p, int n, Name *const *name, const int *at)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < i; k++)
			if (name[i] == name[k])
				notation_fail_both(&p->src, RICCI_ESYNTAX, at[k], at[i],
						   "%s stands twice in the signature", name[i]->s);
}

static void check_operand(Program *p, Name *x, int at)
{
	if (x->assigned >= 0)
		notation_fail_both(&p->src, RICCI_ESYNTAX, at, p->equation[x->assigned]->pos,
				   "%s is an operand by the signature, and assigned", x->s);
	if (x->value)
		notation_fail(&p->src, RICCI_ESYNTAX, at,
			      "%s is a value of the program and can't be an operand", x->s);
	if (!x->is_tensor && x->first_bare < 0)
		notation_fail(&p->src, RICCI_ESYNTAX, at,
			      "the operand %s of the signature is never read", x->s);
}

static void check_signature(Program *p, int nseen, Name *const *seen)
{
	const Signature *s = p->signature;

	check_twice(p, s->noperand, s->operand, s->operand_at);
	check_twice(p, s->nresult, s->result, s->result_at);
	for (int i = 0; i < s->noperand; i++)
		check_operand(p, s->operand[i], s->operand_at[i]);
	for (int i = 0; i < s->nresult; i++)
		if (s->result[i]->assigned < 0)
			notation_fail(&p->src, RICCI_ESYNTAX, s->result_at[i],
				      "the result %s of the signature is never assigned",
				      s->result[i]->s);
	for (int i = 0; i < nseen; i++)
		if (seen[i]->assigned < 0 && seen[i]->operand < 0)
			notation_fail(&p->src, RICCI_ESYNTAX, seen[i]->first_read,
				      "%s is read, but neither assigned nor an operand of the "
				      "signature",
				      seen[i]->s);
	for (int i = 0; i < p->nequation; i++) {
		const Name *y = p->equation[i]->name;
		if (y->first_read < 0 && !y->is_result)
			notation_fail(&p->src, RICCI_ESYNTAX, p->equation[i]->pos,
				      "%s is assigned, but neither read nor a result of the "
				      "signature",
				      y->s);
	}
}

void signature_order(Program *p, int nseen, Name *const *seen)
{
	Arena *a = &p->src.ir->arena;
	Signature *s = p->signature;

	if (s) {
		p->operand = s->operand;
		p->noperand = s->noperand;
		p->result = s->result;
		p->nresult = s->nresult;
	} else {
		p->operand = arena_alloc(a, sizeof *p->operand * ((size_t)nseen + 1));
		p->result = arena_alloc(a, sizeof *p->result * ((size_t)p->nequation + 1));
		for (int i = 0; i < nseen; i++)
			if (seen[i]->assigned < 0)
				p->operand[p->noperand++] = seen[i];
		for (int i = 0; i < p->nequation; i++)
			if (p->equation[i]->name->first_read < 0)
				p->result[p->nresult++] = p->equation[i]->name;
	}
	for (int i = 0; i < p->noperand; i++)
		p->operand[i]->operand = i;
	for (int i = 0; i < p->nresult; i++)
		p->result[i]->is_result = true;
	if (s)
		check_signature(p, nseen, seen);
}

/* scope.c - the texts of open loops and branches.
 *
 * Input: lines of code. Output: the text of each open scope, which becomes part of the one around it when it
 * is closed; declarations that stand before the function, each once. Invariant: names that depend on memory
 * which changes don't outlive the opening of a scope. */
#include "jit/emit/internal.h"

#include <stdarg.h>
#include <string.h>

void emit_line(Emit *e, const char *fmt, ...)
{
	Text *t = e->scope[e->depth].text;
	char s[4096];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(s, sizeof s, fmt, ap);
	text_add(t, "%*s", e->depth + 1, "");
	if (n < (int)sizeof s) {
		text_put(t, s, (size_t)n);
	} else {
		va_end(ap);
		va_start(ap, fmt);
		char *big = arena_alloc(&e->ir->arena, (size_t)n + 1);
		vsnprintf(big, (size_t)n + 1, fmt, ap);
		text_put(t, big, (size_t)n);
	}
	va_end(ap);
	text_add(t, "\n");
}

void emit_declare(Emit *e, const char *text)
{
	for (int k = 0; k < e->ncall; k++)
		if (strcmp(e->call[k], text) == 0)
			return;
	if (e->ncall < EMIT_MAX_CALLS)
		e->call[e->ncall++] = text;
}

void emit_forget_changing(Emit *e)
{
	for (int d = 0; d <= e->depth; d++)
		emit_forget(e, d, true);
}

void emit_open(Emit *e, Node *axis, bool guarded)
{
	if (e->depth + 1 == EMIT_MAX_SCOPES) {
		error_set(&e->ir->err, RICCI_EUNSUPPORTED, "a kernel of more than %d nested loops",
			  EMIT_MAX_SCOPES);
		return;
	}
	emit_forget_changing(e);
	Scope *s = &e->scope[++e->depth];
	e->scopes++;
	s->axis = axis;
	s->guarded = guarded;
	s->lanes = false;
	s->body = NULL;
	s->text->n = 0;
}

/* Appends the scope's text to the one around it. */
void emit_close(Emit *e)
{
	Scope *s = &e->scope[e->depth];
	emit_forget(e, e->depth, false);
	s->axis = NULL;
	e->depth--;
	e->scopes++;
	Text *around = e->scope[e->depth].text;
	if (s->text->n)
		text_put(around, s->text->s, s->text->n);
	around->failed |= s->text->failed;
}

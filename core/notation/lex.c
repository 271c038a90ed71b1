/* lex.c - text to tokens, names interned, and the one place where errors of the notation are
 * written. Input: a text of at most 1 MiB. Output: tokens on demand, so that garbage stops at its
 * first character. Invariant: positions are byte offsets into the text. */
#include "core/notation/internal.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const tok_names[TOK_COUNT] = {
#define TOK(name, text, level) text,
#include "core/notation/tokens.def"
#undef TOK
};

const uint8_t tok_level[TOK_COUNT] = {
#define TOK(name, text, level) LEVEL_##level,
#include "core/notation/tokens.def"
#undef TOK
};

void source_init(Source *s, Ir *ir, const char *text)
{
	size_t n = text ? strnlen(text, NOTATION_MAX_TEXT + 1) : 0;

	*s = (Source){.ir = ir, .text = text ? text : "", .len = (int)n};
	if (n > NOTATION_MAX_TEXT)
		notation_fail(s, RICCI_ESYNTAX, 0, "the text is longer than %d bytes",
			      NOTATION_MAX_TEXT);
}

/* ---- errors ---- */

enum { SHOWN = 100 }; /* columns of the line that a message shows */

/* The line around pos without tabs and control characters, at most SHOWN columns; *caret: the
 * column of pos. Columns are characters of UTF-8. */
static void line_around(const Source *s, int pos, char *line, int *caret)
{
	int from = pos, to = pos, n = 0, column = 0;

	while (from > 0 && s->text[from - 1] != '\n')
		from--;
	while (to < s->len && s->text[to] != '\n' && to - from < NOTATION_MAX_TEXT)
		to++;
	bool cut = pos - from > SHOWN - 30;
	if (cut) {
		from = pos - (SHOWN - 40);
		while (((unsigned char)s->text[from] & 0xc0) == 0x80 && from < pos)
			from++;
		n = sprintf(line, "...");
		column = 3;
	}
	*caret = column;
	for (; from < to && column < SHOWN && n < 4 * SHOWN; from++) {
		unsigned char c = (unsigned char)s->text[from];
		if (from == pos)
			*caret = column;
		if ((c & 0xc0) != 0x80)
			column++;
		line[n++] = (char)(c == '\t' || c == '\r' ? ' ' : c < 32 || c == 127 ? '?' : c);
	}
	while (from < to && ((unsigned char)s->text[from] & 0xc0) == 0x80 && n < 4 * SHOWN)
		line[n++] = s->text[from++];
	if (pos >= from)
		*caret = column;
	if (from < to)
		n += sprintf(line + n, "...");
	line[n] = 0;
}

/* other: -1, or a second place. Both stand under one line where it shows both. */
_Noreturn static void fail_at(Source *s, int code, int pos, int other, const char *message)
{
	char line[4 * SHOWN + 16], second[4 * SHOWN + 16] = "";
	int caret = 0, next = 0;

	line_around(s, pos, line, &caret);
	if (other >= 0)
		line_around(s, other, second, &next);
	if (other < 0)
		error_set(&s->ir->err, code, "equation: %s\n  %s\n  %*s^", message, line, caret,
			  "");
	else if (!strcmp(line, second) && caret < next)
		error_set(&s->ir->err, code, "equation: %s\n  %s\n  %*s^%*s^", message, line, caret,
			  "", next - caret - 1, "");
	else
		error_set(&s->ir->err, code, "equation: %s\n  %s\n  %*s^\n  %s\n  %*s^", message,
			  line, caret, "", second, next, "");
	longjmp(*s->ir->arena.oom, 1);
}

void notation_fail(Source *s, int code, int pos, const char *fmt, ...)
{
	char message[1024];
	va_list ap;

	va_start(ap, fmt);
	message_vprint(message, sizeof message, fmt, ap);
	va_end(ap);
	fail_at(s, code, pos, -1, message);
}

void notation_fail_both(Source *s, int code, int pos, int other, const char *fmt, ...)
{
	char message[1024];
	va_list ap;

	va_start(ap, fmt);
	message_vprint(message, sizeof message, fmt, ap);
	va_end(ap);
	fail_at(s, code, pos < other ? pos : other, pos < other ? other : pos, message);
}

/* ---- names ---- */

static void names_grow(Source *s)
{
	int room = s->room ? 2 * s->room : 64;
	Name **table = arena_alloc(&s->ir->arena, (size_t)room * sizeof *table);

	for (int i = 0; i < s->room; i++) {
		if (!s->table[i])
			continue;
		uint32_t at = s->table[i]->hash;
		while (table[at & (uint32_t)(room - 1)])
			at++;
		table[at & (uint32_t)(room - 1)] = s->table[i];
	}
	s->table = table;
	s->room = room;
}

static Name *source_name(Source *s, const char *text, int len)
{
	uint32_t hash = 2166136261u;

	for (int i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	if (2 * (s->count + 1) > s->room)
		names_grow(s);
	uint32_t at = hash, mask = (uint32_t)(s->room - 1);
	for (; s->table[at & mask]; at++) {
		Name *n = s->table[at & mask];
		if (n->hash == hash && n->len == len && !memcmp(n->s, text, (size_t)len))
			return n;
	}
	Name *n = arena_alloc(&s->ir->arena, sizeof *n);
	*n = (Name){.s = arena_printf(&s->ir->arena, "%.*s", len, text),
		    .len = len,
		    .hash = hash,
		    .assigned = -1,
		    .first_read = -1,
		    .operand = -1,
		    .first_bare = -1,
		    .slot_of = -1};
	s->table[at & mask] = n;
	s->count++;
	return n;
}

/* ---- tokens ---- */

static bool is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static void lex_name(Lexer *l)
{
	Source *s = l->src;

	while (is_letter(s->text[l->pos]) || is_digit(s->text[l->pos]))
		l->pos++;
	int len = l->pos - l->start;
	if (len > NOTATION_MAX_NAME)
		notation_fail(s, RICCI_ESYNTAX, l->start, "a name is longer than %d characters",
			      NOTATION_MAX_NAME);
	const char *text = s->text + l->start;
	for (l->tok = TOK_WHERE; l->tok <= TOK_TRAINING; l->tok++)
		if ((int)strlen(tok_names[l->tok]) == len && !memcmp(text, tok_names[l->tok], len))
			return;
	if (len == 3 && (!memcmp(text, "inf", 3) || !memcmp(text, "nan", 3))) {
		l->tok = TOK_FLOAT;
		l->f = strtod(*text == 'i' ? "inf" : "nan", NULL);
		return;
	}
	l->tok = TOK_NAME;
	l->name = source_name(s, text, len);
}

/* A literal's value does not depend on the program's locale: a decimal point is the only sign that
 * a locale changes, so the digits before and after are gathered by hand into an exponent form. */
static double parse_float(Source *s, const char *text, int len, int pos)
{
	char digits[1100];
	int n = 0, scale = 0, exponent = 0;
	bool point = false;

	for (int i = 0; i < len; i++) {
		if (text[i] == 'e' || text[i] == 'E') {
			exponent = (int)strtol(text + i + 1, NULL, 10);
			break;
		}
		if (text[i] == '.') {
			point = true;
			continue;
		}
		scale -= point;
		if (n + 32 >= (int)sizeof digits)
			notation_fail(s, RICCI_ESYNTAX, pos, "a number has too many digits");
		digits[n++] = text[i];
	}
	if (exponent > 100000 || exponent < -100000)
		exponent = exponent > 0 ? 100000 : -100000;
	sprintf(digits + n, "e%d", exponent + scale);
	return strtod(digits, NULL);
}

static void lex_number(Lexer *l)
{
	Source *s = l->src;
	const char *t = s->text;
	bool is_float = false;

	while (is_digit(t[l->pos]))
		l->pos++;
	if (t[l->pos] == '.' && t[l->pos + 1] != '.') {
		is_float = true;
		l->pos++;
		while (is_digit(t[l->pos]))
			l->pos++;
	}
	if (t[l->pos] == 'e' || t[l->pos] == 'E') {
		int p = l->pos + 1;
		if (t[p] == '+' || t[p] == '-')
			p++;
		if (!is_digit(t[p]))
			notation_fail(s, RICCI_ESYNTAX, l->start,
				      "a number's exponent has no digits");
		while (is_digit(t[p]))
			p++;
		is_float = true;
		l->pos = p;
	}
	if (is_letter(t[l->pos]))
		notation_fail(s, RICCI_ESYNTAX, l->pos, "a number runs into a name");
	l->tok = is_float ? TOK_FLOAT : TOK_INT;
	if (is_float) {
		l->f = parse_float(s, t + l->start, l->pos - l->start, l->start);
		if (!(l->f <= 1.7976931348623157e308))
			notation_fail(s, RICCI_ESYNTAX, l->start, "the number is too large");
		return;
	}
	l->i = 0;
	l->overflow = false;
	for (int p = l->start; p < l->pos; p++)
		l->overflow |= __builtin_mul_overflow(l->i, (uint64_t)10, &l->i) ||
			       __builtin_add_overflow(l->i, (uint64_t)(t[p] - '0'), &l->i);
}

void lex_next(Lexer *l)
{
	Source *s = l->src;

	l->last = l->stop;
	while (l->pos < s->len && strchr(" \t\r\n", s->text[l->pos]))
		l->pos++;
	l->start = l->pos;
	int c = (unsigned char)s->text[l->pos];
	if (l->pos >= s->len) {
		l->tok = TOK_END;
	} else if (is_letter(c)) {
		lex_name(l);
	} else if (is_digit(c) || (c == '.' && is_digit(s->text[l->pos + 1]))) {
		lex_number(l);
	} else {
		Tok t = TOK_ELLIPSIS; /* longer ones stand first in the table */
		while (t < TOK_COUNT &&
		       strncmp(s->text + l->pos, tok_names[t], strlen(tok_names[t])))
			t++;
		if (t == TOK_COUNT && c > 32 && c < 127)
			notation_fail(s, RICCI_ESYNTAX, l->pos, "unknown character '%c'%s", c,
				      hint_text(s, (char[]){(char)c, 0}));
		if (t == TOK_COUNT)
			notation_fail(s, RICCI_ESYNTAX, l->pos, "unknown character (byte 0x%02x)",
				      (unsigned)c);
		l->pos += (int)strlen(tok_names[t]);
		l->tok = t;
	}
	l->stop = l->pos;
}

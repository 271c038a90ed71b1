/* text.c - the grammar of docs/notation.md: from the text at hand to one equation at a time. */
#include "tests/oracle/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static int number_length(const char *s)
{
	int n = 0;
	while (isdigit((unsigned char)s[n]))
		n++;
	if (s[n] == '.' && s[n + 1] != '.') /* 1..2 is a range */
		for (n++; isdigit((unsigned char)s[n]);)
			n++;
	if (s[n] != 'e' && s[n] != 'E')
		return n;
	int e = n + 1 + (s[n + 1] == '+' || s[n + 1] == '-');
	if (isdigit((unsigned char)s[e]))
		for (n = e; isdigit((unsigned char)s[n]);)
			n++;
	return n;
}

void token_next(Oracle *o)
{
	static const char *const pairs[] = {
		"..", "<=", ">=", "==", "!=", "&&", "||", "+=", "*=", "->"};
	const char *s = o->at;
	s += strspn(s, " \t\r\n");
	o->token = s;
	o->length = *s != 0;
	for (int k = 0; k < COUNT_OF(pairs); k++)
		if (!strncmp(s, pairs[k], 2))
			o->length = 2;
	if (!strncmp(s, "...", 3))
		o->length = 3;
	if (isdigit((unsigned char)*s) || (*s == '.' && isdigit((unsigned char)s[1])))
		o->length = number_length(s);
	else
		for (int n = 0; in_name(s[n]);)
			o->length = ++n;
	o->at = s + o->length;
}

bool token_is(const Oracle *o, const char *what)
{
	return (int)strlen(what) == o->length && !strncmp(o->token, what, (size_t)o->length);
}

bool token_take(Oracle *o, const char *what)
{
	bool is = token_is(o, what);
	if (is)
		token_next(o);
	return is;
}

void token_need(Oracle *o, const char *what)
{
	if (!token_take(o, what))
		fail(o, o->token, "%s is missing", what);
}

const char *token_name(Oracle *o)
{
	char *name = take(o, (size_t)o->length + 1);
	if (!in_name(*o->token) || isdigit((unsigned char)*o->token))
		fail(o, o->token, "a name is missing");
	memcpy(name, o->token, (size_t)o->length);
	token_next(o);
	return name;
}

/* A whole number; `negative`: behind a minus, so that the least one fits. */
static int64_t whole(Oracle *o, bool negative)
{
	unsigned __int128 v = 0, most = (unsigned __int128)INT64_MAX + negative;
	for (int k = 0; k < o->length && v <= most; k++) {
		if (!isdigit((unsigned char)o->token[k]))
			fail(o, o->token, "a whole number is missing");
		v = 10 * v + (unsigned)(o->token[k] - '0');
	}
	if (v > most)
		fail(o, o->token, "the number does not fit 64 bits");
	token_next(o);
	return (int64_t)(negative ? -(__int128)v : (__int128)v);
}

int64_t token_whole(Oracle *o)
{
	return whole(o, false);
}

/* ---- expressions */

static Expr *expr_new(Oracle *o, Form form, const char *at, int n, Expr *const *arg)
{
	Expr *e = take(o, sizeof *e);
	*e = (Expr){.form = form, .at = at, .n = n};
	e->arg = take(o, (size_t)(n + 1) * sizeof *arg);
	if (n)
		memcpy(e->arg, arg, (size_t)n * sizeof *arg);
	return e;
}

static Expr *choice(Oracle *o);
static Expr *unary(Oracle *o);

static Expr *number(Oracle *o, bool negative)
{
	bool real = token_is(o, "inf") || token_is(o, "nan");
	for (int k = 0; k < o->length; k++)
		real = real || strchr(".eE", o->token[k]);
	Expr *e = expr_new(o, real ? X_REAL : X_WHOLE, o->token, 0, NULL);
	if (!real) {
		e->i = whole(o, negative);
		return e;
	}
	e->f = token_is(o, "inf") ? INFINITY : token_is(o, "nan") ? NAN : strtod(o->token, NULL);
	e->f = negative ? -e->f : e->f;
	token_next(o);
	return e;
}

/* Expressions up to the closing bracket; *dots: where `...` stands among them, -1 nowhere; NULL: it
 * can't. */
static int list(Oracle *o, const char *end, Expr **e, int *dots)
{
	int n = 0;
	while (!token_take(o, end)) {
		if (n)
			token_need(o, ",");
		if (n == ORACLE_RANK)
			fail(o, o->token, "too many expressions");
		if (dots && *dots < 0 && token_take(o, "...")) {
			*dots = n++;
			continue;
		}
		e[n++] = choice(o);
	}
	return n;
}

/* Index names that no text has, in place of e[at]; the new length. */
static int dots_fill(Oracle *o, Expr **e, int n, int at, int count)
{
	if (count < 0 || n - 1 + count > ORACLE_RANK)
		fail(o, o->token, "... stands for %d dimensions", count);
	memmove(e + at + count, e + at + 1, sizeof *e * (size_t)(n - at - 1));
	for (int k = 0; k < count; k++) {
		char *name = take(o, 8);
		sprintf(name, "...%d", k);
		e[at + k] = expr_new(o, X_INDEX, o->token, 0, NULL);
		e[at + k]->name = name;
	}
	return n - 1 + count;
}

/* How many dimensions `...` is in all accesses of e; *count: -1 where there was none yet. */
static void dots_count(Oracle *o, const Expr *e, int *count)
{
	if (e->form == X_READ && e->dots) {
		if (*count >= 0 && *count != e->dots - 1)
			fail(o, e->at, "... is %d dimensions here, and %d", e->dots - 1, *count);
		*count = e->dots - 1;
	}
	if (e->form == X_VALUE)
		dots_count(o, e->definition, count);
	for (int k = 0; k < e->n; k++)
		dots_count(o, e->arg[k], count);
}

static Expr *access(Oracle *o, const char *name, const char *at)
{
	Expr *e[2 * ORACLE_RANK], *both[2];
	int dots = -1, n = list(o, "]", e, &dots), given = n;
	const OracleTensor *t = tensor_find(o, name);
	if (t && dots >= 0)
		n = dots_fill(o, e, n, dots, t->rank - n + 1);
	both[0] = expr_new(o, X_READ, at, n, e);
	both[0]->name = name;
	both[0]->dots = dots < 0 ? 0 : n - given + 2;
	both[0]->tensor = tensor_find(o, name);
	if (!both[0]->tensor)
		fail(o, at, "no tensor is %s", name);
	both[0]->tensor->read = true;
	if (both[0]->tensor->rank != n)
		fail(o, at, "%s has %d dimensions", name, both[0]->tensor->rank);
	if (!token_take(o, "else"))
		return both[0];
	both[1] = unary(o);
	return expr_new(o, X_PADDED, at, 2, both);
}

static Expr *call(Oracle *o, const char *name, const char *at)
{
	Expr *e[ORACLE_RANK], *x;
	int n = list(o, ")", e, NULL), f = function_find(name), type = oracle_type(name);
	bool draws = !strcmp(name, "random") || !strcmp(name, "normal");
	if (draws ? n != 1 && n != 2 : n != (f < 0 ? 1 : function_arguments(f)))
		fail(o, at, "%s doesn't take %d arguments", name, n);
	x = expr_new(o, draws ? X_DRAW : type >= 0 ? X_CAST : X_CALL, at, n, e);
	x->name = name;
	x->i = type >= 0 ? type : f;
	if (!draws && x->i < 0)
		fail(o, at, "no function is %s", name);
	return x;
}

static Expr *operand(Oracle *o)
{
	const char *at = o->token;
	Expr *e;
	if (token_take(o, "(")) {
		e = choice(o);
		token_need(o, ")");
		return e;
	}
	if (isdigit((unsigned char)*at) || *at == '.' || token_is(o, "inf") || token_is(o, "nan"))
		return number(o, false);
	if (token_take(o, "training"))
		return expr_new(o, X_TRAINING, at, 0, NULL);
	const char *name = token_name(o);
	if (token_take(o, "["))
		return access(o, name, at);
	if (token_take(o, "("))
		return call(o, name, at);
	OracleTensor *number = tensor_find(o, name);
	if (number && !token_is(o, ".")) { /* an operand that is a known integer */
		if (number->rank || oracle_is_float(number->type) || number->assigned)
			fail(o, at, "%s is no integer", name);
		number->read = true;
		e = expr_new(o, X_WHOLE, at, 0, NULL);
		e->i = number->at[0].i;
		return e;
	}
	e = expr_new(o, X_INDEX, at, 0, NULL);
	e->name = name;
	for (const Named *v = o->named; v && e->form == X_INDEX; v = v->next)
		if (!strcmp(v->name, name)) {
			e->form = X_VALUE;
			e->definition = v->definition;
		}
	if (!token_take(o, "."))
		return e;
	token_need(o, "size");
	token_need(o, "(");
	e->form = X_SIZE;
	e->i = token_whole(o);
	e->tensor = tensor_find(o, name);
	token_need(o, ")");
	if (!e->tensor || e->i >= e->tensor->rank)
		fail(o, at, "%s has no dimension %lld", name, (long long)e->i);
	e->tensor->read = true;
	return e;
}

static Expr *unary(Oracle *o)
{
	const char *at = o->token;
	if (token_take(o, "!")) {
		Expr *x = unary(o);
		return expr_new(o, X_NOT, at, 1, &x);
	}
	if (!token_take(o, "-"))
		return operand(o);
	if (isdigit((unsigned char)*o->token) || *o->token == '.' || token_is(o, "inf") ||
	    token_is(o, "nan"))
		return number(o, true);
	Expr *x = unary(o);
	return expr_new(o, X_NEG, at, 1, &x);
}

static const struct {
	const char *text;
	int level;
	Form form;
} infix[] = {{"||", 0, X_OR}, {"&&", 1, X_AND}, {"==", 2, X_EQ}, {"!=", 2, X_NE}, {"<", 3, X_LT},
	     {"<=", 3, X_LE}, {">", 3, X_GT},	{">=", 3, X_GE}, {"+", 4, X_ADD}, {"-", 4, X_SUB},
	     {"*", 5, X_MUL}, {"/", 5, X_DIV},	{"%", 5, X_MOD}};
enum { SUMS = 4, LEVELS = 6 };

static Expr *binary(Oracle *o, int level)
{
	if (level == LEVELS)
		return unary(o);
	const char *at = o->token;
	Expr *both[2] = {binary(o, level + 1)};
	for (int k = 0; k < COUNT_OF(infix); k++)
		if (infix[k].level == level && token_take(o, infix[k].text)) {
			both[1] = binary(o, level + 1);
			both[0] = expr_new(o, infix[k].form, at, 2, both);
			k = -1; /* the next operator, from the left */
		}
	return both[0];
}

static Expr *choice(Oracle *o)
{
	const char *at = o->token;
	Expr *all[3] = {binary(o, 0)};
	if (!token_take(o, "?"))
		return all[0];
	all[1] = choice(o);
	token_need(o, ":");
	all[2] = choice(o);
	return expr_new(o, X_CHOICE, at, 3, all);
}

Expr *expr_copy(Oracle *o, const Expr *e)
{
	Expr *copy = take(o, sizeof *copy);
	step(o, 1);
	*copy = *e;
	copy->arg = take(o, (size_t)(e->n + 1) * sizeof e);
	for (int k = 0; k < e->n; k++)
		copy->arg[k] = expr_copy(o, e->arg[k]);
	return copy;
}

void named_read(Oracle *o)
{
	Named *v = take(o, sizeof *v);
	v->name = token_name(o);
	token_need(o, "=");
	v->definition = choice(o);
	v->next = o->named;
	o->named = v;
}

/* ---- equations */

static Assign assignment(Oracle *o)
{
	if (token_take(o, "+="))
		return SUM;
	if (token_take(o, "*="))
		return PRODUCT;
	Assign how = token_take(o, "max") ? GREATEST : token_take(o, "min") ? LEAST : SET;
	token_need(o, "=");
	return how;
}

Equation *equation_read(Oracle *o)
{
	Equation *q = take(o, sizeof *q);
	int dots = -1, count = -1;
	q->name = token_name(o);
	token_need(o, "[");
	while (!token_take(o, "]")) {
		if (q->rank)
			token_need(o, ",");
		if (q->rank == ORACLE_RANK)
			fail(o, o->token, "too many dimensions");
		if (dots < 0 && token_take(o, "...")) {
			dots = q->rank++;
			continue;
		}
		q->left[q->rank] = choice(o);
		q->extent[q->rank++] = token_take(o, ":") ? choice(o) : NULL;
	}
	q->assign = assignment(o);
	q->body = choice(o);
	dots_count(o, q->body, &count);
	for (int d = 0; d < q->rank; d++)
		if (d != dots)
			dots_count(o, q->left[d], &count);
	if (dots >= 0) {
		dots_fill(o, q->left, q->rank, dots, count);
		memmove(q->extent + dots + count, q->extent + dots + 1,
			sizeof *q->extent * (size_t)(q->rank - dots - 1));
		for (int k = 0; k < count; k++)
			q->extent[dots + k] = NULL;
		q->rank += count - 1;
	}
	if (!token_take(o, "where"))
		return q;
	do {
		int k = q->nrange++;
		if (k == ORACLE_INDICES)
			fail(o, o->token, "too many ranges");
		q->range[k].name = token_name(o);
		if (token_take(o, "in")) {
			q->range[k].low = binary(o, SUMS);
			token_need(o, "..");
		} else {
			token_need(o, "<");
		}
		q->range[k].high = binary(o, SUMS);
	} while (token_take(o, ","));
	return q;
}

/* program_shrink.h - a failing random program made smaller while it fails in the same way: spans of
 * its text taken out or replaced by a number, numbers and operands made smaller. Each attempt runs
 * in a process of its own, so that crashes and hangs are verdicts as well. Programs are kept in
 * files and read back.
 *
 * The format of a kept program, several in one file:
 *	number 17
 *	text Y[i] = A[i]
 *	operand A f64 -5 9 4x3         (type, range of the data where integer, shape or `scalar`)
 *	end by tcc                     (the backends that it fails with)
 */
#ifndef PROGRAM_SHRINK_H
#define PROGRAM_SHRINK_H

#include "tests/tools/program_case.h"

#include <ctype.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const verdict_text[] = {"good",
					   "not accepted",
					   "prints as something else",
					   "gradient refused",
					   "no result",
					   "wrong result",
					   "wrong gradient",
					   "forward and reverse mode disagree",
					   "crash",
					   "hang"};

/* ---- verdicts in a process of their own */

enum { CHILD_LIMIT = 30, BATCH_LIMIT = 600, SHRINK_SECONDS = 240, CHILD_STATUS = 64 };

static Verdict verdict_apart(int n, const RandomProgram *p, int nbackend,
			     const char *const *backend, Text *why)
{
	int fd[2], status = 0;
	char part[4096];
	fflush(NULL);
	if (pipe(fd))
		return NO_RESULT;
	pid_t child = fork();
	if (!child) {
		Text own = {0};
		alarm(n > 1 ? BATCH_LIMIT : CHILD_LIMIT);
		close(fd[0]);
		Verdict v = programs_verdict(n, p, nbackend, backend, &own);
		if (own.n && write(fd[1], own.s, own.n) < 0)
			v = CRASHED;
		_exit(CHILD_STATUS + v);
	}
	close(fd[1]);
	for (ssize_t got; child > 0 && (got = read(fd[0], part, sizeof part)) > 0;)
		text_put(why, part, (size_t)got);
	close(fd[0]);
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return NO_RESULT;
	if (WIFEXITED(status) && WEXITSTATUS(status) >= CHILD_STATUS)
		return (Verdict)(WEXITSTATUS(status) - CHILD_STATUS);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		return HANGS;
	text_add(why, "status %#x\n", status);
	return CRASHED;
}

/* ---- text */

static bool operand_used(const RandomProgram *p, const Operand *x)
{
	const char *s = p->text.s, *at = s;
	size_t n = strlen(x->name);
	for (; (at = strstr(at, x->name)); at++)
		if ((at == s || !isalnum((unsigned char)at[-1])) && (at[n] == '[' || at[n] == '.'))
			return true;
	return false;
}

static void operand_shape(Text *t, const Operand *x)
{
	for (int d = 0; d < x->rank; d++)
		text_add(t, d ? "x%lld" : "%lld", (long long)x->shape[d]);
	text_add(t, x->rank ? "" : "scalar");
}

/* The arguments of the tool `ricci` that show the program. */
static void program_print(Text *t, const RandomProgram *p)
{
	text_add(t, "'%s'", p->text.s);
	for (int k = 0; k < p->n; k++) {
		const Operand *x = &p->tensor[k];
		if (x->local || !operand_used(p, x))
			continue;
		text_add(t, " %s=", x->name);
		operand_shape(t, x);
		text_add(t, ":%s", type_name(x->type));
	}
}

__attribute__((unused)) static void program_write(FILE *out, const RandomProgram *p, const char *by)
{
	fprintf(out, "number %llu\ntext %s\n", (unsigned long long)p->number, p->text.s);
	for (int k = 0; k < p->n; k++) {
		const Operand *x = &p->tensor[k];
		Text shape = {0};
		operand_shape(&shape, x);
		if (!x->local && operand_used(p, x))
			fprintf(out, "operand %s %s %lld %lld %s\n", x->name, type_name(x->type),
				(long long)x->low, (long long)x->high, shape.s);
		text_free(&shape);
	}
	fprintf(out, "end by %s\n", by);
}

/* The type of all values is that of the first cast that is written; it decides how far the program
 * is judged. */
static Type program_type(const RandomProgram *p)
{
	for (int k = 0; k < p->n; k++)
		if (type_is_float(p->tensor[k].type))
			return p->tensor[k].type;
	return RICCI_I64;
}

static bool operand_read(Operand *x, const char *line)
{
	char type[8], shape[100], *at = shape;
	long long low, high;
	*x = (Operand){0};
	if (sscanf(line, "operand %7s %7s %lld %lld %99s", x->name, type, &low, &high, shape) != 5)
		return false;
	x->low = low;
	x->high = high;
	while (isdigit((unsigned char)*at)) {
		x->shape[x->rank++] = strtoll(at, &at, 10);
		at += *at == 'x';
	}
	return type_parse(type, &x->type);
}

/* The next program of a file, false at its end; text_free its text. */
__attribute__((unused)) static bool program_read(FILE *in, RandomProgram *p)
{
	char line[20000];
	*p = (RandomProgram){0};
	while (fgets(line, sizeof line, in)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "number ", 7))
			p->number = strtoull(line + 7, NULL, 10);
		else if (!strncmp(line, "text ", 5))
			text_add(&p->text, "%s", line + 5);
		else if (!strncmp(line, "operand ", 8) && p->n < PROGRAM_TENSORS)
			p->n += operand_read(&p->tensor[p->n], line);
		else if (!strncmp(line, "end", 3)) {
			p->type = program_type(p);
			return p->text.s != NULL;
		}
	}
	return false;
}

/* ---- tokens */

enum { TOKENS = 3000 };

typedef struct Tokens {
	int n;
	Text text; /* what they point into */
	struct Token {
		const char *s;
		int n;
	} at[TOKENS];
} Tokens;

static int token_length(const char *s)
{
	int n = 0;
	if (isalpha((unsigned char)*s)) {
		while (isalnum((unsigned char)s[n]))
			n++;
	} else if (isdigit((unsigned char)*s)) {
		while (isdigit((unsigned char)s[n]) || (s[n] == '.' && s[n + 1] != '.'))
			n++;
	} else {
		n = 1 + (s[1] == '=' || (s[0] == s[1] && strchr("&|.", *s)));
	}
	return n;
}

static bool token_is(const struct Token *t, const char *s)
{
	return t->n == (int)strlen(s) && !memcmp(t->s, s, (size_t)t->n);
}

static void tokens_make(Tokens *t, const char *text)
{
	*t = (Tokens){0};
	text_add(&t->text, "%s", text);
	for (const char *s = t->text.s; *s && t->n < TOKENS; s += t->at[t->n++].n) {
		while (*s == ' ')
			s++;
		t->at[t->n] = (struct Token){s, token_length(s)};
	}
}

static bool token_is_word(const struct Token *t)
{
	return token_is(t, "where") || token_is(t, "else") || token_is(t, "in");
}

/* Is the name of the where's range at w+1.. used in tokens from..w or in another range? */
static bool name_used(const Tokens *t, int from, int name, int to)
{
	for (int k = from; k < to; k++)
		if (k != name && t->at[k].n == t->at[name].n &&
		    !memcmp(t->at[k].s, t->at[name].s, (size_t)t->at[k].n))
			return true;
	return false;
}

/* The text without tokens lo..hi-1, `by` in their place, and without ranges of names that are no
 * longer used. */
static void tokens_text(const Tokens *all, int lo, int hi, const char *by, Text *out)
{
	static Tokens t;
	t.n = 0;
	for (int k = 0; k < all->n; k++) {
		if (k == lo && *by)
			t.at[t.n++] = (struct Token){by, (int)strlen(by)};
		if (k < lo || k >= hi)
			t.at[t.n++] = all->at[k];
	}
	for (int from = 0, to; from < t.n; from = to + 1) {
		bool put = from > 0;
		int where = -1;
		for (to = from; to < t.n && !token_is(&t.at[to], ";"); to++)
			where = token_is(&t.at[to], "where") ? to : where;
		text_add(out, put ? "; " : "");
		for (int k = from; k < (where < 0 ? to : where); k++)
			text_add(out, token_is_word(&t.at[k]) ? " %.*s " : "%.*s", t.at[k].n,
				 t.at[k].s);
		const char *before = " where ";
		for (int k = where + 1, end; where >= 0 && k < to; k = end + 1) {
			int depth = 0;
			for (end = k; end < to && (depth || !token_is(&t.at[end], ",")); end++)
				depth += token_is(&t.at[end], "(") - token_is(&t.at[end], ")");
			if (!name_used(&t, from, k, to))
				continue;
			text_add(out, "%s", before);
			for (int j = k; j < end; j++)
				text_add(out, token_is_word(&t.at[j]) ? " %.*s " : "%.*s",
					 t.at[j].n, t.at[j].s);
			before = ", ";
		}
	}
}

static bool tokens_balanced(const Tokens *t, int lo, int hi)
{
	int depth = 0;
	for (int k = lo; k < hi && depth >= 0; k++) {
		char c = t->at[k].n == 1 ? *t->at[k].s : 0;
		depth += (c == '(' || c == '[') - (c == ')' || c == ']');
	}
	return depth == 0;
}

/* ---- shrinking */

typedef struct Shrink {
	RandomProgram *p;
	Verdict verdict;
	int nbackend;
	const char *const *backend;
	double until; /* the clock's time at which it is small enough */
} Shrink;

static bool still_fails(Shrink *s)
{
	Text why = {0};
	bool same = clock_seconds() < s->until &&
		    verdict_apart(1, s->p, s->nbackend, s->backend, &why) == s->verdict;
	text_free(&why);
	return same;
}

static bool text_try(Shrink *s, const Tokens *t, int lo, int hi, const char *by)
{
	Text old = s->p->text, text = {0};
	tokens_text(t, lo, hi, by, &text);
	s->p->text = text;
	if (text.n && strcmp(text.s, old.s) && still_fails(s)) {
		text_free(&old);
		return true;
	}
	text_free(&text);
	s->p->text = old;
	return false;
}

/* One pass over all balanced spans, the long ones first. */
static bool shrink_spans(Shrink *s)
{
	static Tokens t;
	bool any = false;
	tokens_make(&t, s->p->text.s);
	for (int len = t.n < 400 ? t.n - 1 : 400; len > 0; len = len > 64 ? len / 2 : len - 1)
		for (int lo = 0; lo + len <= t.n;) {
			if (tokens_balanced(&t, lo, lo + len) &&
			    (text_try(s, &t, lo, lo + len, "") ||
			     (len > 1 && (text_try(s, &t, lo, lo + len, "0.5") ||
					  text_try(s, &t, lo, lo + len, "1"))))) {
				text_free(&t.text);
				tokens_make(&t, s->p->text.s);
				any = true;
			} else {
				lo++;
			}
		}
	text_free(&t.text);
	return any;
}

static bool shrink_numbers(Shrink *s)
{
	static Tokens t;
	bool any = false;
	tokens_make(&t, s->p->text.s);
	for (int k = 0; k < t.n; k++) {
		char half[24], less[24];
		if (!isdigit((unsigned char)*t.at[k].s) ||
		    memchr(t.at[k].s, '.', (size_t)t.at[k].n))
			continue;
		long v = strtol(t.at[k].s, NULL, 10);
		snprintf(half, sizeof half, "%ld", v / 2);
		snprintf(less, sizeof less, "%ld", v - 1);
		if (v > 0 && (text_try(s, &t, k, k + 1, half) || text_try(s, &t, k, k + 1, less))) {
			text_free(&t.text);
			tokens_make(&t, s->p->text.s);
			any = true;
			k--;
		}
	}
	text_free(&t.text);
	return any;
}

static bool shrink_operands(Shrink *s)
{
	bool any = false;
	for (int k = 0; k < s->p->n; k++) {
		Operand *x = &s->p->tensor[k];
		for (int d = 0; d < x->rank && operand_used(s->p, x); d++)
			for (int64_t by = x->shape[d] / 2; by > 0;) {
				x->shape[d] -= by;
				if (still_fails(s)) {
					any = true;
					by = x->shape[d] > by ? by : x->shape[d] / 2;
				} else {
					x->shape[d] += by;
					by /= 2;
				}
			}
	}
	return any;
}

/* Makes p smaller while its verdict stays; why: what it says at the end. */
__attribute__((unused)) static Verdict program_shrink(RandomProgram *p, int nbackend,
						      const char *const *backend, Text *why)
{
	Shrink s = {p, GOOD, nbackend, backend, clock_seconds() + SHRINK_SECONDS};
	s.verdict = verdict_apart(1, p, nbackend, backend, why);
	while (s.verdict != GOOD && s.verdict != INVALID && clock_seconds() < s.until &&
	       (shrink_spans(&s) | shrink_numbers(&s) | shrink_operands(&s)))
		;
	text_free(why);
	return verdict_apart(1, p, nbackend, backend, why);
}

#endif

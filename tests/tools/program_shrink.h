/* program_shrink.h - a failing random program made smaller while it fails in the same way: spans of
 * its texts taken out or replaced by a number, numbers and operands made smaller, loops simpler.
 * Each attempt runs in a process of its own, so that crashes and hangs are verdicts as well. */
#ifndef PROGRAM_SHRINK_H
#define PROGRAM_SHRINK_H

#include "tests/tools/program_file.h"
#include "tests/tools/program_judge.h"

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const verdict_text[] = {"good",
					   "not accepted",
					   "prints as something else",
					   "gradient refused",
					   "no result",
					   "wrong result",
					   "not what its text says",
					   "wrong gradient",
					   "forward and reverse mode disagree",
					   "a loop is not its steps",
					   "wrong rounding",
					   "crash",
					   "hang"};

/* ---- verdicts in a process of their own */

/* Seconds of the processor's time; PATIENCE times that may pass, so that a machine that is busy, or
 * a process that was stopped, doesn't decide what fails. */
enum {
	CHILD_LIMIT = 30,
	BATCH_LIMIT = 600,
	PATIENCE = 10,
	SHRINK_SECONDS = 240,
	CHILD_STATUS = 64
};

static void limit_set(int seconds)
{
	setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
	alarm((unsigned)(PATIENCE * seconds));
}

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
		limit_set(n > 1 ? BATCH_LIMIT : CHILD_LIMIT);
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
	if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM))
		return HANGS;
	text_add(why, "status %#x\n", status);
	return CRASHED;
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

/* of: the program's text or what is behind its loop, which may go as a whole. */
static bool text_try(Shrink *s, Text *of, const Tokens *t, int lo, int hi, const char *by)
{
	Text old = *of, text = {0};
	tokens_text(t, lo, hi, by, &text);
	*of = text;
	if ((text.n || of != &s->p->text) && strcmp(text.n ? text.s : "", old.s) &&
	    still_fails(s)) {
		text_free(&old);
		return true;
	}
	text_free(&text);
	*of = old;
	return false;
}

/* One pass over all balanced spans, the long ones first. */
static bool shrink_spans(Shrink *s, Text *of)
{
	static Tokens t;
	bool any = false;
	if (!of->n)
		return false;
	tokens_make(&t, of->n ? of->s : "");
	for (int len = t.n < 400 ? t.n - 1 : 400; len > 0; len = len > 64 ? len / 2 : len - 1)
		for (int lo = 0; lo + len <= t.n;) {
			if (tokens_balanced(&t, lo, lo + len) &&
			    (text_try(s, of, &t, lo, lo + len, "") ||
			     (len > 1 && (text_try(s, of, &t, lo, lo + len, "0.5") ||
					  text_try(s, of, &t, lo, lo + len, "1"))))) {
				text_free(&t.text);
				tokens_make(&t, of->n ? of->s : "");
				any = true;
			} else {
				lo++;
			}
		}
	text_free(&t.text);
	return any;
}

static bool shrink_numbers(Shrink *s, Text *of)
{
	static Tokens t;
	bool any = false;
	if (!of->n)
		return false;
	tokens_make(&t, of->n ? of->s : "");
	for (int k = 0; k < t.n; k++) {
		char half[24], less[24];
		if (!isdigit((unsigned char)*t.at[k].s) ||
		    memchr(t.at[k].s, '.', (size_t)t.at[k].n))
			continue;
		long v = strtol(t.at[k].s, NULL, 10);
		snprintf(half, sizeof half, "%ld", v / 2);
		snprintf(less, sizeof less, "%ld", v - 1);
		if (v > 0 &&
		    (text_try(s, of, &t, k, k + 1, half) || text_try(s, of, &t, k, k + 1, less))) {
			text_free(&t.text);
			tokens_make(&t, of->n ? of->s : "");
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

static bool number_try(Shrink *s, int *number, int by)
{
	int old = *number;
	*number = by;
	if (old != by && still_fails(s))
		return true;
	*number = old;
	return false;
}

static bool flag_try(Shrink *s, bool *flag)
{
	bool old = *flag;
	*flag = false;
	if (old && still_fails(s))
		return true;
	*flag = old;
	return false;
}

static bool shrink_loop(Shrink *s)
{
	RandomLoop *l = &s->p->loop;
	bool any = false;
	if (!l->steps)
		return false;
	any |= number_try(s, &l->repeat, 0) || (l->repeat > 1 && number_try(s, &l->repeat, 1));
	any |= number_try(s, &l->segment, 0);
	any |= number_try(s, &l->length, -1);
	any |= flag_try(s, &l->region);
	any |= flag_try(s, &l->recompute);
	any |= flag_try(s, &l->backwards);
	for (int k = 0; k < s->p->n; k++) {
		LoopRole *role = &s->p->tensor[k].role, old = *role;
		*role = CONSTANT;
		if (old != CONSTANT && still_fails(s))
			any = true;
		else
			*role = old;
	}
	while (l->steps > 1 && l->steps > l->length && number_try(s, &l->steps, l->steps - 1))
		any = true;
	return any;
}

/* Everything there is to try, once. */
static bool shrink_all(Shrink *s, RandomProgram *p)
{
	bool any = shrink_loop(s);
	any |= shrink_spans(s, &p->after);
	any |= shrink_spans(s, &p->text);
	any |= shrink_numbers(s, &p->after);
	any |= shrink_numbers(s, &p->text);
	any |= shrink_operands(s);
	return any;
}

/* Makes p smaller while its verdict stays; why: what it says at the end. */
__attribute__((unused)) static Verdict program_shrink(RandomProgram *p, int nbackend,
						      const char *const *backend, Text *why)
{
	Shrink s = {p, GOOD, nbackend, backend, clock_seconds() + SHRINK_SECONDS};
	s.verdict = verdict_apart(1, p, nbackend, backend, why);
	while (s.verdict != GOOD && s.verdict != INVALID && clock_seconds() < s.until &&
	       shrink_all(&s, p))
		;
	text_free(why);
	return verdict_apart(1, p, nbackend, backend, why);
}

#endif

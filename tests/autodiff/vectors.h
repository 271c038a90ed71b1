/* vectors.h - reads the files of recorded cases (make_vectors.py, make_numbers.py): a name, a text,
 * operands, the value, its seed, and for each float operand its gradient, a direction and the
 * second-order product with that. */
#ifndef VECTORS_H
#define VECTORS_H

#include "tests/autodiff/harness.h"

#include <ctype.h>

typedef struct Reader {
	FILE *f;
	char *line;
	size_t room;
	Arena *arena; /* of the current case */
} Reader;

/* The next line without its end; "" at the end of the file. */
static char *line_next(Reader *r)
{
	ssize_t n = getline(&r->line, &r->room, r->f);
	if (n < 0)
		return "";
	if (n > 0 && r->line[n - 1] == '\n')
		r->line[n - 1] = 0;
	return r->line;
}

typedef struct Record {
	char kind[16];
	int rank;
	int64_t shape[RICCI_MAX_RANK], size;
	double *value;
} Record;

static Record record_next(Reader *r, char *head)
{
	Record a = {.size = 1};
	int used = 0, more;
	sscanf(head, "%15s %d%n", a.kind, &a.rank, &used);
	for (int d = 0; d < a.rank; d++) {
		long n = 0;
		sscanf(head + used, "%ld%n", &n, &more);
		used += more;
		a.shape[d] = n;
		a.size *= n;
	}
	char *at = line_next(r);
	a.value = arena_alloc(r->arena, sizeof *a.value * (size_t)(a.size + 1));
	for (int64_t k = 0; k < a.size; k++)
		a.value[k] = strtod(at, &at);
	while (isspace((unsigned char)*at))
		at++;
	CHECK_REPORT(*at == 0, "a %s line has too many numbers", a.kind);
	return a;
}

static Node *operand(Bench *b, const Record *a)
{
	Type type = strcmp(a->kind, "i64") ? RICCI_F64 : RICCI_I64;
	const char *name = arena_printf(&b->ir.arena, "o%d", b->n);
	Node *t = bench_input(b, name, type, a->rank, a->shape);
	for (int64_t k = 0; k < a->size; k++) {
		if (type == RICCI_F64)
			bench_data(b, b->n - 1)[k] = a->value[k];
		else
			((int64_t *)(uintptr_t)b->bind[b->n - 1].data)[k] = (int64_t)a->value[k];
	}
	return t;
}

typedef struct Case {
	int noperand, n, nwant; /* n: floats among the operands */
	Node *operand[MAX_OPERANDS], *wrt[MAX_OPERANDS];
	Record value, seed, want[3 * MAX_OPERANDS]; /* gradient, direction, second order */
} Case;

/* What follows a case's text; returns the head of the next one. */
static char *case_next(Reader *r, Bench *b, Case *c)
{
	char *head = line_next(r);
	*c = (Case){0};
	for (; head[0] == 'f' || head[0] == 'i'; head = line_next(r)) {
		Record a = record_next(r, head);
		Node *t = operand(b, &a);
		c->operand[c->noperand++] = t;
		if (t->type == RICCI_F64)
			c->wrt[c->n++] = t;
	}
	c->value = record_next(r, head);
	c->seed = record_next(r, line_next(r));
	for (head = line_next(r); head[0] == 'g' || head[0] == 'u' || head[0] == 's';
	     head = line_next(r))
		c->want[c->nwant++] = record_next(r, head);
	CHECK_INT(c->nwant, 3 * c->n);
	return head;
}

/* Calls f(user, bench, reader, name, text) for each case of a file, in an Ir of its own; f returns
 * the head of the next case. Returns the count, or -1 where the file is not whole. */
static int cases_run(const char *path,
		     char *(*f)(void *user, Bench *b, Reader *r, const char *name,
				const char *text),
		     void *user)
{
	Reader r = {.f = fopen(path, "r")};
	int cases = 0, expected = -1;
	char *head = r.f ? line_next(&r) : "";
	for (; !strncmp(head, "case ", 5); cases++) {
		char *name = strdup(head + 5), *text = strdup(line_next(&r));
		Bench b = {0};
		jmp_buf oom;
		ir_init(&b.ir);
		b.ir.arena.oom = &oom;
		r.arena = &b.ir.arena;
		head = "";
		if (setjmp(oom))
			CHECK_REPORT(false, "%s: %s", name, b.ir.err.text);
		else
			head = f(user, &b, &r, name, text);
		ir_free(&b.ir);
		free(name);
		free(text);
	}
	sscanf(head, "end %d", &expected);
	if (r.f)
		fclose(r.f);
	free(r.line);
	return cases == expected ? cases : -1;
}

#endif

/* program_file.h - random programs as text: kept in files and read back, several in one, and shown.
 *
 * The format of a kept program:
 *	number 17
 *	type f64		(that of its values decides how far it is judged;
 *				left out: that of the first operand of floats)
 *	by chance		(stochastic rounding)
 *	loop 5 length -1 segment 0 repeat 0 backwards recompute region
 *				(the words last: if so)
 *	text Y[i] = A[i]
 *	after Z[] += Y[t,i]	(of the loop's results)
 *	operand A f64 -5 9 4x3	(type, range of the data where integer, shape or `scalar`;
 *				in a loop `slice`, or `state` and what it becomes; `integer`:
				a known integer)
 *	end by tcc		(the backends that it fails with)
 */
#ifndef PROGRAM_FILE_H
#define PROGRAM_FILE_H

#include "tests/tools/random_program.h"

#include <stdlib.h>

static void operand_shape(Text *t, const Operand *x)
{
	for (int d = 0; d < x->rank; d++)
		text_add(t, d ? "x%lld" : "%lld", (long long)x->shape[d]);
	text_add(t, x->rank ? "" : "scalar");
}

/* The arguments of the tool `ricci` that show the program. */
__attribute__((unused)) static void program_print(Text *t, const RandomProgram *p)
{
	if (p->loop.steps)
		text_add(t, "a loop of %d steps, its body ", p->loop.steps);
	text_add(t, "'%s'", p->text.s);
	if (p->after.n)
		text_add(t, ", behind it '%s'", p->after.s);
	for (int k = 0; k < p->n; k++) {
		const Operand *x = &p->tensor[k];
		if (x->local || !operand_used(p, x))
			continue;
		text_add(t, " %s=", x->name);
		operand_shape(t, x);
		text_add(t, ":%s", type_name(x->type));
	}
}

static void loop_write(FILE *out, const RandomLoop *l)
{
	fprintf(out, "loop %d length %d segment %d repeat %d%s%s%s\n", l->steps, l->length,
		l->segment, l->repeat, l->backwards ? " backwards" : "",
		l->recompute ? " recompute" : "", l->region ? " region" : "");
}

static bool loop_read(RandomLoop *l, const char *line)
{
	*l = (RandomLoop){0};
	if (sscanf(line, "loop %d length %d segment %d repeat %d", &l->steps, &l->length,
		   &l->segment, &l->repeat) != 4)
		return false;
	l->backwards = strstr(line, " backwards");
	l->recompute = strstr(line, " recompute");
	l->region = strstr(line, " region");
	return true;
}

__attribute__((unused)) static void program_write(FILE *out, const RandomProgram *p, const char *by)
{
	fprintf(out, "number %llu\ntype %s\n", (unsigned long long)p->number, type_name(p->type));
	if (p->by_chance)
		fprintf(out, "by chance\n");
	if (p->special)
		fprintf(out, "special\n");
	if (p->loop.steps)
		loop_write(out, &p->loop);
	fprintf(out, "text %s\n", p->text.s);
	if (p->after.n)
		fprintf(out, "after %s\n", p->after.s);
	for (int k = 0; k < p->n; k++) {
		const Operand *x = &p->tensor[k];
		Text shape = {0};
		operand_shape(&shape, x);
		if (!x->local && operand_used(p, x))
			fprintf(out, "operand %s %s %lld %lld %s%s%s\n", x->name,
				type_name(x->type), (long long)x->low, (long long)x->high, shape.s,
				x->integer	   ? " integer"
				: x->role == SLICE ? " slice"
				: x->role == STATE ? " state "
						   : "",
				x->role == STATE ? x->next : "");
		text_free(&shape);
	}
	fprintf(out, "end by %s\n", by);
}

/* Where none is written. */
static Type program_type(const RandomProgram *p)
{
	for (int k = 0; k < p->n; k++)
		if (type_is_float(p->tensor[k].type))
			return p->tensor[k].type;
	return RICCI_I64;
}

static bool operand_read(Operand *x, const char *line)
{
	char type[8], shape[100], role[8] = "", *at = shape;
	long long low, high;
	*x = (Operand){0};
	if (sscanf(line, "operand %7s %7s %lld %lld %99s %7s %7s", x->name, type, &low, &high,
		   shape, role, x->next) < 5)
		return false;
	x->role = !strcmp(role, "slice") ? SLICE : !strcmp(role, "state") ? STATE : CONSTANT;
	x->integer = !strcmp(role, "integer");
	x->low = low;
	x->high = high;
	while (isdigit((unsigned char)*at)) {
		x->shape[x->rank++] = strtoll(at, &at, 10);
		at += *at == 'x';
	}
	return type_parse(type, &x->type);
}

/* The next program of a file, false at its end; program_free. */
__attribute__((unused)) static bool program_read(FILE *in, RandomProgram *p)
{
	char line[20000];
	*p = (RandomProgram){.type = RICCI_NTYPES};
	while (fgets(line, sizeof line, in)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "number ", 7))
			p->number = strtoull(line + 7, NULL, 10);
		else if (!strncmp(line, "type ", 5) && !type_parse(line + 5, &p->type))
			return false;
		else if (!strncmp(line, "text ", 5))
			text_add(&p->text, "%s", line + 5);
		else if (!strncmp(line, "after ", 6))
			text_add(&p->after, "%s", line + 6);
		else if (!strcmp(line, "by chance"))
			p->by_chance = true;
		else if (!strcmp(line, "special"))
			p->special = true;
		else if (!strncmp(line, "loop ", 5) && !loop_read(&p->loop, line))
			return false;
		else if (!strncmp(line, "operand ", 8) && p->n < PROGRAM_TENSORS)
			p->n += operand_read(&p->tensor[p->n], line);
		else if (!strncmp(line, "end", 3)) {
			p->type = p->type == RICCI_NTYPES ? program_type(p) : p->type;
			return p->text.s != NULL;
		}
	}
	return false;
}

#endif

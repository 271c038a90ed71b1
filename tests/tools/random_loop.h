/* random_loop.h - a random program that is a loop over time: equations of random_equation.h are its
 * body, of which some operands are rows of the steps and some are states; others may follow that
 * read its results. The body's tensors that no equation reads are what the loop stacks. Behind the
 * loop a state's name is its last value, that of what is stacked the stack. */
#ifndef RANDOM_LOOP_H
#define RANDOM_LOOP_H

#include "tests/tools/random_equation.h"

#include <ctype.h>

enum { MOST_STATES = 3, LOOP_TENSORS = 20 };

/* How often a text names a tensor. */
static int name_count(const char *text, const char *name)
{
	size_t n = strlen(name);
	int count = 0;
	for (const char *at = text; at && (at = strstr(at, name)); at++)
		count += (at == text || !isalnum((unsigned char)at[-1])) &&
			 (at[n] == '[' || at[n] == '.');
	return count;
}

/* Does a text have this name without brackets? */
static bool has_name(const char *text, const char *name)
{
	size_t n = strlen(name);
	for (const char *at = strstr(text, name); at; at = strstr(at + 1, name))
		if ((at == text || !isalnum((unsigned char)at[-1])) &&
		    !isalnum((unsigned char)at[n]))
			return true;
	return false;
}

/* Does the program read this operand? */
__attribute__((unused)) static bool operand_used(const RandomProgram *r, const Operand *x)
{
	if (x->integer)
		return has_name(r->text.s, x->name);
	return name_count(r->text.s, x->name) || (r->after.n && name_count(r->after.s, x->name));
}

static void loop_new(RandomProgram *r)
{
	RandomLoop *l = &r->loop;
	l->steps = 1 + draw(r, 6);
	l->length = draw(r, 3) ? -1 : draw(r, l->steps + 1);
	l->backwards = draw(r, 3) == 0;
	l->recompute = draw(r, 4) == 0;
	l->region = draw(r, 6) == 0;
	l->segment = draw(r, 4) ? 0 : 1 + draw(r, 4);
	l->repeat = draw(r, 6) ? 0 : 1 + draw(r, 3);
	if (draw(r, 3))
		return;
	Operand *x = operand_new(r, draw(r, 2) ? RICCI_I32 : RICCI_I64, 0);
	x->role = STATE;
	snprintf(l->counter, sizeof l->counter, "%s", x->name);
}

static void loop_equation(RandomProgram *r)
{
	if (r->noperand < 8 && draw(r, 8) == 0) {
		equation_dots(r);
		return;
	}
	switch (draw(r, 8)) {
	case 0:
		if (r->type != RICCI_BOOL && r->noperand < 8) {
			equation_contraction(r);
			break;
		} /* fall through */
	case 1:
		if (r->type != RICCI_BOOL && r->noperand < 8) {
			equation_window(r);
			break;
		} /* fall through */
	case 2:
		equation_scatter(r);
		break;
	case 3:
		if (type_is_float(r->type) && r->noperand < 8 && r->n < LOOP_TENSORS) {
			equation_softmax(r);
			break;
		} /* fall through */
	default:
		equation_any(r);
	}
}

/* Roles of the operands from the first-th on. */
static void loop_roles(RandomProgram *r, int first, int states)
{
	for (int k = first; k < r->n; k++) {
		Operand *x = &r->tensor[k];
		int how = draw(r, 5);
		if (x->local || x->role)
			continue;
		if (how < 2 && x->type == r->type && !x->index && states > 0) {
			x->role = STATE;
			states--;
		} else if (how < 4) {
			x->role = SLICE;
		}
	}
}

/* The value at the axes on the left, such that it doesn't grow much from step to step. */
static void next_value(RandomProgram *r, Text *t, const Operand *x)
{
	typedef struct Form {
		const char *self; /* what follows the state itself, or NULL */
		const char *before, *after;
	} Form;
	static const Form floats[] = {{NULL, "tanh(", ")"},
				      {"*0.5", " + 0.5*sin(", ")"},
				      {"*", "tanh(", ")"},
				      {NULL, "sigmoid(", ")"}};
	static const Form whole[] = {{NULL, "(", ")"}, {"", " + (", ")"}, {"/3", " - (", ")"}};
	static const Form truth[] = {{NULL, "(", ")"}, {"", " != (", ")"}, {NULL, "!(", ")"}};
	Form f = type_is_float(r->type)	 ? floats[draw(r, COUNT(floats))]
		 : r->type == RICCI_BOOL ? truth[draw(r, COUNT(truth))]
					 : whole[draw(r, COUNT(whole))];
	if (f.self) {
		text_add(t, "%s[", x->name);
		for (int d = 0; d < x->rank; d++)
			text_add(t, d ? ",%c" : "%c", letter(d));
		text_add(t, "]%s", f.self);
	}
	text_add(t, "%s", f.before);
	random_value(r, t, 1 + draw(r, 2));
	text_add(t, "%s", f.after);
}

static void state_next(RandomProgram *r, Operand *x)
{
	Text body = {0};
	int left = x->rank, more = !left || draw(r, 3) == 0;
	axes_new(r, left, left + more, 3);
	memcpy(r->extent, x->shape, (size_t)left * sizeof *x->shape);
	if (!strcmp(x->name, r->loop.counter))
		text_add(&body, "%s[] + %d", x->name, 1 + draw(r, 3));
	else
		next_value(r, &body, x);
	Operand *y = local_new(r, left, r->extent);
	y->type = x->type;
	add_left(r, y);
	text_add(&r->text, " %s %s(%s)", left < r->naxis && r->used[left] ? random_reduce(r) : "=",
		 type_name(x->type), body.s);
	add_where(r);
	snprintf(x->next, sizeof x->next, "%s", y->name);
	text_free(&body);
}

static void loop_states(RandomProgram *r)
{
	for (int k = 0, n = r->n; k < n; k++)
		if (r->tensor[k].role == STATE)
			state_next(r, &r->tensor[k]);
}

/* Is there a rank left for the steps of everything that has some? */
static bool repeat_fits(const RandomProgram *r)
{
	bool fits = true;
	for (int k = 0; k < r->n; k++)
		fits = fits && r->tensor[k].rank + 2 <= PROGRAM_DIMS;
	return fits;
}

/* ---- behind the loop */

/* What the name of a tensor is there; false: nothing. */
static bool tensor_outside(const RandomProgram *r, const char *body, Operand *x)
{
	int more = 1 + (r->loop.repeat > 0);
	if (x->local && name_count(body, x->name) > 1)
		return false;
	if (!x->local && x->role != SLICE)
		return true;
	memmove(x->shape + more, x->shape, (size_t)x->rank * sizeof *x->shape);
	x->shape[0] = r->loop.repeat;
	x->shape[more - 1] = r->loop.steps;
	x->rank += more;
	return true;
}

/* An equation that reads the loop's results, four at most. */
static void equation_results(RandomProgram *r, int n)
{
	Text body = {0};
	int left = draw(r, 3), reads = 0, reduced = 0;
	axes_new(r, left, left + draw(r, 2) + !left, 4);
	text_add(&body, "(");
	random_value(r, &body, 1);
	text_add(&body, ")");
	for (int k = 0; k < n && reads < 4; k++) {
		const Operand *x = &r->tensor[k];
		if (x->type != r->type || (!x->local && x->role != STATE))
			continue;
		text_add(&body, r->type == RICCI_BOOL ? " != " : " + ");
		tensor_again(r, &body, x);
		reads++;
	}
	for (int k = left; k < r->naxis; k++)
		reduced += r->used[k];
	add_left(r, local_new(r, left, r->extent));
	text_add(&r->text, " %s %s(%s)", reduced ? random_reduce(r) : "=", type_name(r->type),
		 body.s);
	add_where(r);
	text_free(&body);
}

static void loop_after(RandomProgram *r)
{
	Operand inside[PROGRAM_TENSORS];
	Text body = r->text;
	int n = r->n;
	memcpy(inside, r->tensor, sizeof inside);
	r->text = (Text){0};
	for (int k = 0; k < n; k++)
		if (!tensor_outside(r, body.s, &r->tensor[k])) {
			r->tensor[k].type = RICCI_NTYPES; /* no value has it */
			r->tensor[k].rank = 0;
		}
	if (draw(r, 2) && n < LOOP_TENSORS)
		equation_any(r);
	equation_results(r, n);
	memcpy(r->tensor, inside, (size_t)n * sizeof *inside);
	r->after = r->text;
	r->text = body;
}

static void random_loop(RandomProgram *r)
{
	if (type_size(r->type) == 2) /* rounding errors of chains are hard to judge */
		r->type = RICCI_F64;
	loop_new(r);
	for (int k = 1 + draw(r, 3); k > 0 && r->n < LOOP_TENSORS - 6; k--)
		loop_equation(r);
	int n = r->n;
	loop_roles(r, 0, MOST_STATES);
	loop_states(r);
	loop_roles(r, n, 0);
	if (!repeat_fits(r))
		r->loop.repeat = 0;
	if (draw(r, 3))
		loop_after(r);
}

#endif

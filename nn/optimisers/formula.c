/* formula.c - equations whose operands are found by name, for updates that apply to a parameter of
 * any rank and type.
 * Input: a text, and the tensors and numbers that its names stand for. Output: the tensors of its
 * equations, by name. Invariant: an equation is given the operands that it reads and no other, and
 * the numbers that it reads as values of the notation. */
#include "nn/optimisers/internal.h"

#include <ctype.h>

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The next name at or after s and before end (NULL: none), its length in *n. Numbers are passed
 * over with the letters in them. */
static const char *name_next(const char *s, const char *end, size_t *n)
{
	while (s < end) {
		if (!name_char(*s)) {
			s++;
			continue;
		}
		bool name = !isdigit((unsigned char)*s);
		for (*n = 0; s + *n < end && (name_char(s[*n]) || (!name && s[*n] == '.'));)
			++*n;
		if (name)
			return s;
		s += *n;
	}
	return NULL;
}

static bool name_is(const char *s, size_t n, const char *name)
{
	return strlen(name) == n && !memcmp(s, name, n);
}

bool formula_reads(const char *text, const char *name)
{
	const char *end = text + strlen(text);
	size_t n = 0;
	for (const char *s = text; (s = name_next(s, end, &n)); s += n)
		if (name_is(s, n, name))
			return true;
	return false;
}

void formula_set(Formula *f, const char *name, ricci_tensor *t)
{
	int k = 0;
	while (k < f->n && strcmp(f->operand[k].name, name))
		k++;
	assert(k < FORMULA_ROOM && strlen(name) < FORMULA_NAME);
	f->n += k == f->n;
	message_print(f->operand[k].name, FORMULA_NAME, "%s", name);
	f->operand[k].t = t;
}

void formula_number(Formula *f, const char *name, double value)
{
	int k = 0;
	while (k < f->nnumber && strcmp(f->number[k].name, name))
		k++;
	assert(k < FORMULA_ROOM);
	f->nnumber += k == f->nnumber;
	f->number[k].name = name;
	f->number[k].value = value;
}

ricci_tensor *formula_get(const Formula *f, const char *name)
{
	for (int k = 0; k < f->n; k++)
		if (!strcmp(f->operand[k].name, name))
			return f->operand[k].t;
	return &f->g->nil;
}

void formula_over(Formula *f, const ricci_tensor *p)
{
	f->rank = ricci_rank(p);
	f->type = ricci_dtype(p) == RICCI_F64 ? RICCI_F64 : RICCI_F32;
}

/* The operands of the equation s..end, whose left name ends at `right`, in the order in which it
 * names them; the numbers that it reads go to `t`. */
static int operands_of(const Formula *f, const char *s, const char *right, const char *end, Text *t,
		       ricci_tensor **operand)
{
	bool seen[FORMULA_ROOM] = {false};
	size_t length = 0;
	int n = 0;
	for (int k = 0; k < f->nnumber; k++)
		for (s = right; (s = name_next(s, end, &length)); s += length)
			if (name_is(s, length, f->number[k].name)) {
				text_add(t, "%s = %#.17g; ", f->number[k].name, f->number[k].value);
				break;
			}
	for (s = right; (s = name_next(s, end, &length)); s += length)
		for (int k = 0; k < f->n; k++)
			if (!seen[k] && name_is(s, length, f->operand[k].name)) {
				seen[k] = true;
				operand[n++] = f->operand[k].t;
			}
	return n;
}

static int equation(Formula *f, const char *s, const char *end)
{
	Text t = {0};
	ricci_tensor *operand[FORMULA_ROOM], *y = &f->g->nil;
	size_t length = 0;
	char name[FORMULA_NAME];
	s = name_next(s, end, &length);
	assert(s && length < FORMULA_NAME);
	message_print(name, sizeof name, "%.*s", (int)length, s);
	int n = operands_of(f, s, s + length, end, &t, operand);
	text_add(&t, "L_"); /* an older tensor of this name may be an operand */
	for (s += length; s < end; s++) {
		if (*s == '@')
			layer_indices(&t, 0, f->rank);
		else if (*s == '$')
			text_add(&t, "%s", type_name(f->type));
		else
			text_put(&t, s, 1);
	}
	if (t.failed)
		error_set(&f->g->ir.err, RICCI_ENOMEM, "out of memory");
	else if (ricci_ops(f->g, t.s, n, operand, &(int){1}, &y))
		y = &f->g->nil;
	text_free(&t);
	formula_set(f, name, y);
	return ricci_graph_error(f->g);
}

int formula_run(Formula *f, const char *text)
{
	int status = ricci_graph_error(f->g);
	while (*text && !status) {
		size_t n = strcspn(text, ";");
		status = equation(f, text, text + n);
		text += n + (text[n] == ';');
	}
	return status;
}

ricci_tensor *formula_state(Formula *f, ricci_tensor *p, const char *prefix, const char *suffix)
{
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < ricci_rank(p); d++)
		shape[d] = ricci_extent(p, d);
	ricci_tensor *state = &f->g->nil;
	Text name = {0};
	text_add(&name, "%s%s%s", prefix, ricci_name(p), suffix);
	if (name.failed)
		error_set(&f->g->ir.err, RICCI_ENOMEM, "out of memory");
	else
		state = ricci_state(f->g, name.s, f->type, ricci_rank(p), shape, ricci_constant(0));
	text_free(&name);
	return state;
}

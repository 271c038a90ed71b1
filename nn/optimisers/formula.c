/* formula.c - equations over named tensors and numbers, for updates that apply to a parameter of any
 * rank and type.
 * Input: programs of the notation, and what their names stand for. Output: their results, by name.
 * Invariant: a program is given the operands that it reads and no other; a number is a scalar of the
 * type in which the update is computed. */
#include "nn/optimisers/internal.h"

int optimiser_refuse(ricci_graph *g, const char *function, const char *fmt, ...)
{
	char message[1024];
	va_list ap;
	va_start(ap, fmt);
	message_vprint(message, sizeof message, fmt, ap);
	va_end(ap);
	return error_set(&g->ir.err, RICCI_EINVAL, "%s: %s", function, message);
}

/* What the program reads and gives. false: the graph has an error. */
static bool names_of(ricci_graph *g, const char *text, Notation *names)
{
	IR_ENTER(&g->ir, false);
	notation_parse(&g->ir, text, names);
	IR_LEAVE(&g->ir);
	return true;
}

bool formula_reads(ricci_graph *g, const char *text, const char *name)
{
	Notation names;
	if (!text || ricci_graph_error(g) || !names_of(g, text, &names))
		return false;
	for (int k = 0; k < names.noperand; k++)
		if (!strcmp(names.operand[k], name))
			return true;
	return false;
}

void formula_set(Formula *f, const char *name, ricci_tensor *t)
{
	int k = 0;
	while (k < f->n && strcmp(f->operand[k].name, name))
		k++;
	assert(k < FORMULA_ROOM);
	f->n += k == f->n;
	f->operand[k].name = name;
	f->operand[k].t = t;
}

void formula_number(Formula *f, const char *name, double value)
{
	formula_set(f, name, NULL);
	for (int k = 0; k < f->n; k++)
		if (!strcmp(f->operand[k].name, name))
			f->operand[k].value = value;
}

static ricci_tensor *number(ricci_graph *g, ricci_type type, double value)
{
	IR_ENTER(&g->ir, &g->nil);
	Node *body = node_const(&g->ir, (Type)type, value);
	ricci_tensor *t = graph_handle(g, comp_dense(&g->ir, RED_NONE, 0, 0, NULL, body));
	IR_LEAVE(&g->ir);
	return t;
}

ricci_tensor *formula_get(const Formula *f, const char *name)
{
	for (int k = 0; k < f->n; k++)
		if (!strcmp(f->operand[k].name, name))
			return f->operand[k].t ? f->operand[k].t
					       : number(f->g, f->type, f->operand[k].value);
	return &f->g->nil;
}

static ricci_type formula_type(const ricci_tensor *p)
{
	return ricci_dtype(p) == RICCI_F64 ? RICCI_F64 : RICCI_F32;
}

ricci_tensor *formula_cast(ricci_tensor *t, ricci_type type)
{
	char text[32];
	if (ricci_dtype(t) == type)
		return t;
	message_print(text, sizeof text, "Y[...] = %s(X[...])", type_name((Type)type));
	return ricci_op(ricci_graph_of(t), text, t);
}

void formula_over(Formula *f, const ricci_tensor *p)
{
	f->type = formula_type(p);
	for (int k = 0; k < f->n; k++)
		if (f->operand[k].t && ricci_dtype(f->operand[k].t) == RICCI_F64)
			f->operand[k].t = formula_cast(f->operand[k].t, f->type);
}

int formula_run(Formula *f, const char *text)
{
	Notation names;
	ricci_tensor *operand[FORMULA_ROOM], *result[FORMULA_ROOM];
	if (ricci_graph_error(f->g) || !names_of(f->g, text, &names))
		return ricci_graph_error(f->g);
	assert(names.noperand <= FORMULA_ROOM && names.nresult <= FORMULA_ROOM);
	for (int k = 0; k < names.noperand; k++)
		operand[k] = formula_get(f, names.operand[k]);
	ricci_ops_named(f->g, text, names.noperand, names.operand, operand, &(int){names.nresult},
			result);
	for (int k = 0; k < names.nresult; k++)
		formula_set(f, names.result[k], result[k]);
	return ricci_graph_error(f->g);
}

ricci_tensor *formula_state(ricci_tensor *p, const char *prefix, const char *suffix)
{
	ricci_graph *g = ricci_graph_of(p);
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < ricci_rank(p); d++)
		shape[d] = ricci_extent(p, d);
	ricci_tensor *state = &g->nil;
	Text name = {0};
	text_add(&name, "%s%s%s", prefix, ricci_name(p), suffix);
	if (name.failed)
		error_set(&g->ir.err, RICCI_ENOMEM, "out of memory");
	else
		state = ricci_state(g, name.s, formula_type(p), ricci_rank(p), shape,
				    ricci_constant(0));
	text_free(&name);
	return state;
}

/* Some at a time: an equation has so many operators at most. */
ricci_tensor *scalars_total(ricci_graph *g, int n, ricci_tensor *const *part)
{
	enum { AT_ONCE = 64 };
	ricci_tensor *sum = NULL, *operand[AT_ONCE + 1];
	for (int from = 0; from < n; from += AT_ONCE) {
		Text t = {0};
		int k = 0;
		text_add(&t, "Y[] = %s", sum ? "T[]" : "0.0");
		if (sum)
			operand[k++] = sum;
		for (int i = from; i < n && i < from + AT_ONCE; i++) {
			text_add(&t, " + f64(S%d[])", i);
			operand[k++] = part[i];
		}
		if (t.failed)
			error_set(&g->ir.err, RICCI_ENOMEM, "out of memory");
		else if (ricci_ops(g, t.s, k, operand, &(int){1}, &sum))
			sum = &g->nil;
		text_free(&t);
	}
	return sum;
}

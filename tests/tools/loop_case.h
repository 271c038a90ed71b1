/* loop_case.h - a random program's loop in a graph: run by ricci_scan, or unrolled. Input: the
 * program, and tensors with the data of its operands. Output: the results of the program. */
#ifndef LOOP_CASE_H
#define LOOP_CASE_H

#include "tests/tools/random_program.h"
#include "tests/unroll.h"

enum { LOOP_STACKS = 16, LOOP_PARTS = PROGRAM_OPERANDS, LOOP_RESULTS = LOOP_STACKS + LOOP_PARTS };

typedef struct LoopCase {
	ricci_graph *g;
	const RandomProgram *p;
	ricci_tensor *bound[PROGRAM_TENSORS]; /* the data of the operand there */
	ricci_tensor *length;		      /* or NULL */
	int nslice, nstate, nout;
	const Operand *sliced[LOOP_PARTS], *state[LOOP_PARTS];
	ricci_slice slice[LOOP_PARTS], around_slice[LOOP_PARTS]; /* around: of the repetition */
	ricci_carry carry[LOOP_PARTS], around_carry[LOOP_PARTS];
	ricci_tensor *out[LOOP_STACKS];
	const char *out_name[LOOP_STACKS];
	ricci_tensor *final[LOOP_PARTS], *stacked[LOOP_STACKS];
} LoopCase;

static const Operand *operand_named(const RandomProgram *p, const char *name)
{
	for (int k = 0; k < p->n; k++)
		if (!p->tensor[k].local && !strcmp(p->tensor[k].name, name))
			return &p->tensor[k];
	return NULL;
}

/* An operand as it is bound: a slice with a row for each step. */
static Operand operand_bound(const RandomProgram *p, const Operand *x)
{
	Operand y = *x;
	tensor_outside(p, p->text.s, &y);
	return y;
}

static ricci_tensor *loop_variable(LoopCase *l, const char *prefix, const Operand *x)
{
	char name[48];
	snprintf(name, sizeof name, "%s_%s_%llu", prefix, x->name,
		 (unsigned long long)l->p->number);
	return ricci_input(l->g, name, x->type, x->rank, x->shape);
}

/* The variables of the loop, and of the one around it. */
static void loop_variables(LoopCase *l)
{
	RandomProgram within = *l->p;
	within.loop.repeat = 0;
	for (int k = 0; k < l->p->n; k++) {
		const Operand *x = &l->p->tensor[k];
		ricci_tensor *bound = l->bound[k];
		if (!bound || x->role == CONSTANT)
			continue;
		if (l->p->loop.repeat) {
			Operand y = operand_bound(&within, x);
			bound = loop_variable(l, "each", &y);
		}
		ricci_tensor *v = loop_variable(l, "step", x);
		if (x->role == SLICE) {
			l->sliced[l->nslice] = x;
			l->around_slice[l->nslice] = (ricci_slice){bound, l->bound[k]};
			l->slice[l->nslice++] = (ricci_slice){v, bound};
		} else {
			l->state[l->nstate] = x;
			l->around_carry[l->nstate] = (ricci_carry){bound, l->bound[k], NULL};
			l->carry[l->nstate++] = (ricci_carry){v, bound, NULL};
		}
	}
}

/* What a name of the body stands for, or NULL. */
static ricci_tensor *body_operand(const LoopCase *l, const char *name)
{
	const Operand *x = operand_named(l->p, name);
	for (int k = 0; k < l->nslice; k++)
		if (l->sliced[k] == x)
			return l->slice[k].variable;
	for (int k = 0; k < l->nstate; k++)
		if (l->state[k] == x)
			return l->carry[k].variable;
	return x ? l->bound[x - l->p->tensor] : NULL;
}

/* The tensor of an equation of the body: the next value of states, or stacked, or both. */
static void body_tensor(LoopCase *l, const char *name, bool is_result, Node *t)
{
	for (int k = 0; k < l->nstate; k++)
		if (!strcmp(l->state[k]->next, name))
			l->carry[k].next = graph_handle(l->g, t);
	if (!is_result || l->nout == LOOP_STACKS)
		return;
	l->out_name[l->nout] = name;
	l->out[l->nout++] = graph_handle(l->g, t);
}

static int body_equations(LoopCase *l)
{
	Ir *ir = &l->g->ir;
	Notation body;
	Node *operand[PROGRAM_OPERANDS];
	IR_ENTER(ir, ir->err.code);
	notation_parse(ir, l->p->text.s, &body);
	for (int k = 0; k < body.noperand && !ir->err.code; k++) {
		ricci_tensor *t = k < COUNT(operand) ? body_operand(l, body.operand[k]) : NULL;
		if (t)
			operand[k] = t->node;
		else
			error_set(&ir->err, RICCI_ESYNTAX, "an operand is missing");
	}
	if (!ir->err.code) {
		notation_bind(&body, operand);
		for (int k = 0; k < body.nequation; k++)
			body_tensor(l, body.assigned[k], body.is_result[k], body.tensor[k]);
	}
	for (int k = 0; k < l->nstate; k++)
		if (!l->carry[k].next)
			error_set(&ir->err, RICCI_ESYNTAX, "a state has no next value");
	IR_LEAVE(ir);
	return ir->err.code;
}

/* All that leaves a step is made a region of what varies. */
static int body_region(LoopCase *l)
{
	ricci_tensor *from[2 * LOOP_PARTS], *y[LOOP_RESULTS];
	int nfrom = 0, n = 0;
	for (int k = 0; k < l->nslice; k++)
		from[nfrom++] = l->slice[k].variable;
	for (int k = 0; k < l->nstate; k++) {
		from[nfrom++] = l->carry[k].variable;
		y[n++] = l->carry[k].next;
	}
	for (int k = 0; k < l->nout; k++)
		y[n++] = l->out[k];
	int code = ricci_recompute(l->g, nfrom, from, n, y, y);
	for (int k = 0; k < l->nstate; k++)
		l->carry[k].next = y[k];
	for (int k = 0; k < l->nout; k++)
		l->out[k] = y[l->nstate + k];
	return code;
}

static int loop_open(LoopCase *l)
{
	loop_variables(l);
	int code = body_equations(l);
	return code || !l->p->loop.region ? code : body_region(l);
}

/* By ricci_scan, or unrolled; final and stacked become its results. */
static int loop_run(LoopCase *l, const ricci_loop *loop, int64_t length)
{
	Ir *ir = &l->g->ir;
	Node *final[LOOP_PARTS], *stacked[LOOP_STACKS];
	if (length < 0)
		return ricci_scan(l->g, loop, l->final, l->stacked);
	IR_ENTER(ir, ir->err.code);
	unroll(ir, loop, length, final, stacked);
	for (int k = 0; k < l->nstate; k++)
		l->final[k] = graph_handle(l->g, final[k]);
	for (int k = 0; k < l->nout; k++)
		l->stacked[k] = graph_handle(l->g, stacked[k]);
	IR_LEAVE(ir);
	return ir->err.code;
}

static int loop_close(LoopCase *l, bool unrolled)
{
	const RandomLoop *r = &l->p->loop;
	ricci_loop loop =
		RICCI_LOOP(.steps = r->steps, .length = l->length, .backwards = r->backwards,
			   .nslice = l->nslice, .slice = l->slice, .ncarry = l->nstate,
			   .carry = l->carry, .nout = l->nout, .out = l->out,
			   .recompute = r->recompute, .segment = r->segment);
	int64_t length = r->length < 0 ? r->steps : r->length;
	int code = loop_run(l, &loop, unrolled ? length : -1);
	if (code || !r->repeat)
		return code;
	ricci_tensor *out[LOOP_STACKS];
	memcpy(out, l->stacked, sizeof out);
	for (int k = 0; k < l->nstate; k++)
		l->around_carry[k].next = l->final[k];
	loop = RICCI_LOOP(.steps = r->repeat, .nslice = l->nslice, .slice = l->around_slice,
			  .ncarry = l->nstate, .carry = l->around_carry, .nout = l->nout,
			  .out = out, .recompute = r->recompute);
	return loop_run(l, &loop, unrolled ? r->repeat : -1);
}

/* What a name stands for behind the loop, or NULL. */
static ricci_tensor *after_operand(const LoopCase *l, const char *name)
{
	const Operand *x = operand_named(l->p, name);
	for (int k = 0; k < l->nstate; k++)
		if (l->state[k] == x)
			return l->final[k];
	for (int k = 0; k < l->nout; k++)
		if (!strcmp(l->out_name[k], name))
			return l->stacked[k];
	return x ? l->bound[x - l->p->tensor] : NULL;
}

/* The results of the program; *n: in the room, out their number. */
static int loop_results(LoopCase *l, bool unrolled, int *n, ricci_tensor **result)
{
	Ir *ir = &l->g->ir;
	const char **names;
	ricci_tensor *operand[LOOP_RESULTS + PROGRAM_OPERANDS];
	int code = loop_close(l, unrolled), room = *n;
	if (code)
		return code;
	if (!l->p->after.n) {
		*n = 0;
		for (int k = 0; k < l->nstate && *n < room; k++)
			result[(*n)++] = l->final[k];
		for (int k = 0; k < l->nout && *n < room; k++)
			result[(*n)++] = l->stacked[k];
		return *n ? 0 : error_set(&ir->err, RICCI_ESYNTAX, "the loop has no result");
	}
	IR_ENTER(ir, ir->err.code);
	int noperand = notation_operands(ir, l->p->after.s, &names);
	for (int k = 0; k < noperand; k++)
		if (k == COUNT(operand) || !(operand[k] = after_operand(l, names[k])))
			noperand = error_set(&ir->err, RICCI_ESYNTAX, "an operand is missing");
	IR_LEAVE(ir);
	return noperand < 0 ? ir->err.code
			    : ricci_ops(l->g, l->p->after.s, noperand, operand, n, result);
}

#endif

/* program.c - a text in two steps for those above core: its names first, then its tensors by these
 * names, whether they are results or not. Both run under the caller's IR_ENTER, and errors jump. */
#include "core/notation/internal.h"

void notation_parse(Ir *ir, const char *text, Notation *out)
{
	Program *p = program_parse(ir, text);
	*out = (Notation){.program = p, .noperand = p->noperand, .nequation = p->nequation};
	size_t room = (size_t)(p->noperand + p->nequation + 1) * sizeof(void *);
	out->operand = arena_alloc(&ir->arena, room);
	out->assigned = arena_alloc(&ir->arena, room);
	out->is_result = arena_alloc(&ir->arena, room);
	out->tensor = arena_alloc(&ir->arena, room);
	for (int k = 0; k < p->noperand; k++)
		out->operand[k] = p->operand[k]->s;
	for (int k = 0; k < p->nequation; k++) {
		out->assigned[k] = p->equation[k]->name->s;
		out->is_result[k] = p->equation[k]->name->is_result;
	}
	out->nresult = p->nresult;
	out->result = arena_alloc(&ir->arena, room);
	for (int k = 0; k < p->nresult; k++)
		out->result[k] = p->result[k]->s;
}

void notation_integer(Notation *n, const char *name, const Node *tensor)
{
	names_bind_integer(n->program, name, tensor);
}

void notation_bind(Notation *n, Node *const *operands)
{
	Program *p = n->program;
	Node **results = arena_alloc(&p->src.ir->arena, sizeof *results * (size_t)p->nequation);
	int nresult = 0;
	names_bind(p, p->noperand, operands);
	program_elaborate(p, &nresult, results, p->nequation);
	for (int k = 0; k < p->nequation; k++)
		n->tensor[k] = p->equation[k]->name->tensor;
}

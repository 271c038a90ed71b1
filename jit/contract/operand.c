/* operand.c - what an operand of a contraction is made of: an element of a tensor, or that element as another
 * type. Input: its expression. Output: the element, its types. */
#include "jit/contract/internal.h"

bool contract_source(const Operand *f, Source *s)
{
	Node *e = f->value;
	if (e->op == OP_CAST)
		e = e->src[0];
	s->through = e->type;
	if (e->op == OP_CAST)
		e = e->src[0];
	s->read = e;
	s->from = e->type;
	return e->op == OP_READ;
}

Node *contract_read(const Operand *f)
{
	Source s;
	return contract_source(f, &s) ? s.read : NULL;
}

bool contract_plain(const Contract *c, const Operand *f)
{
	return f->value->op == OP_READ && f->value->type == c->p->acc;
}

/* scan.c - loops: interning, and SCAN nodes, their results over operands (scan_close.c closes
 * them). Invariant: equal loops are one pointer, and so are equal results of one.
 */
#include "core/node/internal.h"

#include <string.h>

/* ---- interning ---- */

static uint32_t mix(uint32_t h, uint64_t v)
{
	uint64_t x = (h ^ v) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(x ^ x >> 29);
}

static uint32_t scan_hash(const Scan *s)
{
	uint32_t h = mix(mix((uint32_t)s->bound, (uint64_t)s->given),
			 (uint64_t)(s->backwards | s->has_length << 1 | s->recompute << 2));
	h = mix(mix(h, (uint64_t)s->nslice), (uint64_t)s->nstate << 32 | (uint64_t)s->nconst);
	for (int k = 0; k < scan_nvar(s); k++)
		h = mix(h, s->var[k]->hash);
	for (int k = 0; k < s->nstate; k++)
		h = mix(h, s->next[k]->hash);
	return h;
}

static bool scan_same(const Scan *a, const Scan *b)
{
	if (a->hash != b->hash || a->bound != b->bound || a->given != b->given ||
	    a->backwards != b->backwards || a->has_length != b->has_length ||
	    a->recompute != b->recompute || a->nslice != b->nslice || a->nstate != b->nstate ||
	    a->nconst != b->nconst)
		return false;
	for (int k = 0; k < scan_nvar(a); k++)
		if (a->var[k] != b->var[k])
			return false;
	for (int k = 0; k < a->nstate; k++)
		if (a->next[k] != b->next[k])
			return false;
	return true;
}

Scan *scan_intern(Ir *ir, const Scan *scan)
{
	Scan *s = ir->scan;
	Scan key = *scan;
	key.hash = scan_hash(scan);
	while (s && !scan_same(s, &key))
		s = s->below;
	if (s)
		return s;
	s = arena_alloc(&ir->arena, sizeof *s);
	*s = key;
	s->result = NULL;
	s->below = ir->scan;
	ir->scan = s;
	return s;
}

static ScanResult *result_intern(Ir *ir, Scan *s, int final, bool ends, Node *value)
{
	int rank = tensor_rank(value) + (final < 0);
	for (ScanResult *r = s->result; r; r = r->next)
		if (r->final == final && r->ends == ends && r->value == value)
			return r;
	ScanResult *r = arena_alloc(&ir->arena, sizeof *r);
	uint32_t h = mix(mix(s->hash, (uint64_t) final + ends), value->hash);
	*r = (ScanResult){s, rank, final, ends, h, value, s->result};
	s->result = r;
	return r;
}

static Node *result_node(Ir *ir, ScanResult *r, Node *const *operand)
{
	int stack = r->final < 0, n = scan_noperand(r->scan);
	Node **src = arena_alloc(&ir->arena, sizeof *src * (size_t)(r->rank + n + 1));
	if (stack)
		src[0] = node_int(ir, r->scan->bound + r->ends);
	for (int d = stack; d < r->rank; d++)
		src[d] = node_int(ir, tensor_extent(r->value, d - stack));
	if (n)
		memcpy(src + r->rank, operand, sizeof *src * (size_t)n);
	return node_raw(ir, OP_SCAN, (Type)r->value->type, r->rank + n, src, (int64_t)(uintptr_t)r,
			NULL);
}

Node *scan_final(Ir *ir, const ScanCall *call, int state)
{
	return result_node(ir, result_intern(ir, call->scan, state, false, call->scan->next[state]),
			   call->operand);
}

Node *scan_stack(Ir *ir, const ScanCall *call, Node *value)
{
	return result_node(ir, result_intern(ir, call->scan, -1, false, value), call->operand);
}

Node *scan_ends(Ir *ir, const ScanCall *call, int state)
{
	Scan *s = call->scan;
	return result_node(ir, result_intern(ir, s, -1, true, s->var[s->nslice + state]),
			   call->operand);
}

int scan_ends_of(const ScanResult *r)
{
	int k = 0;
	while (r->ends && r->value != r->scan->var[r->scan->nslice + k])
		k++;
	return r->ends ? k : -1;
}

Node *scan_only(Ir *ir, const ScanCall *call, Node *value)
{
	Node *index[RICCI_MAX_RANK] = {node_int(ir, 0)};
	int rank = tensor_rank(value);
	tensor_axes(ir, value, index + 1);
	return comp_dense(ir, RED_NONE, rank, rank, index + 1,
			  node_read(ir, scan_stack(ir, call, value), index));
}

Node *scan_over(Ir *ir, const Node *n, Node *const *operand)
{
	return result_node(ir, (ScanResult *)n->u.result, operand);
}

const ScanResult *scan_import(Ir *ir, const ScanResult *r, Node *(*copy)(void *user, Node *n),
			      void *user)
{
	const Scan *from = r->scan;
	Scan s = *from;
	s.var = arena_alloc(&ir->arena, sizeof *s.var * ((size_t)scan_nvar(from) + 1));
	s.next = arena_alloc(&ir->arena, sizeof *s.next * ((size_t)from->nstate + 1));
	for (int k = 0; k < scan_nvar(from); k++)
		s.var[k] = copy(user, from->var[k]);
	for (int k = 0; k < from->nstate; k++)
		s.next[k] = copy(user, from->next[k]);
	return result_intern(ir, scan_intern(ir, &s), r->final, r->ends, copy(user, r->value));
}

bool scan_same_run(const Node *a, const Node *b)
{
	const Scan *s = scan_of(a);
	return s == scan_of(b) && !memcmp(scan_operands(a), scan_operands(b),
					  sizeof(Node *) * (size_t)scan_noperand(s));
}

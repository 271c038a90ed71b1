/* stacks.c - tensors that are computed, or copied, as one with an axis more: which there are, what they cost, and
 * the equations of the graph that they become. */
#include "jit/fuse/siblings.h"

#include <math.h>
#include <string.h>

static Stack *stack_find(const Siblings *s, int n, Node *const *t)
{
	for (Stack *k = node_map_get(&s->stacks, t[0]); k; k = k->next)
		if (k->n == n && !memcmp(k->t, t, (size_t)n * sizeof *t))
			return k;
	return NULL;
}

Stack *stack_add(Siblings *s, int n, Node *const *t, bool computed)
{
	Arena *a = &s->ir->arena;
	Stack *k = arena_alloc(a, sizeof *k);
	*k = (Stack){n, arena_alloc(a, (size_t)n * sizeof *t), computed, NULL,
		     node_map_get(&s->stacks, t[0])};
	memcpy(k->t, t, (size_t)n * sizeof *t);
	node_map_put(s->ir, &s->stacks, t[0], k);
	for (int i = 0; i < n && computed; i++)
		s->of[t[i]->id] = k;
	s->made = arena_grow(a, s->made, s->nmade, &s->room, sizeof *s->made);
	return s->made[s->nmade++] = k;
}

void stacks_drop(Siblings *s, int most)
{
	while (s->nmade > most) {
		Stack *k = s->made[--s->nmade];
		node_map_put(s->ir, &s->stacks, k->t[0], k->next);
		for (int i = 0; i < k->n && k->computed; i++)
			s->of[k->t[i]->id] = NULL;
	}
}

double stack_bytes(int n, Node *const *t)
{
	double bytes = 0;
	for (int k = 0; k < n; k++)
		bytes += (double)tensor_bytes(t[k]);
	return bytes;
}

bool stack_may_join(const Siblings *s, int n, Node *const *c, Form *form)
{
	for (int k = 0; k < n; k++) {
		if (c[k]->op != OP_COMP || s->of[c[k]->id] || s->summand[c[k]->id] ||
		    s->level[c[k]->id] != s->level[c[0]->id])
			return false;
		for (int i = 0; i < k; i++)
			if (c[i] == c[k])
				return false;
	}
	return tensor_rank(c[0]) < RICCI_MAX_RANK && comp_naxis(c[0]) < COMP_MAX_AXES &&
	       form_find(s->ir, n, c, form);
}

double stack_slices_copied(const Siblings *s, int n, Node *const *t)
{
	double bytes = 0;
	for (int k = 0; k < n; k++) {
		bool whole = s->root[t[k]->id];
		for (Use *u = s->uses[t[k]->id]; u; u = u->next)
			whole |= u->reader->op == OP_SCAN;
		bytes += whole ? 2 * (double)tensor_bytes(t[k]) : 0;
	}
	return bytes;
}

static double stack_take(Siblings *s, int n, Node *const *t, int depth);

double stacks_take(Siblings *s, const Form *form, int depth)
{
	Node *t[SIBLINGS_MOST];
	double bytes = 0;
	for (int i = 0; i < form->nrow; i++) {
		form_row(form, i, t);
		bytes += form_row_differs(form, i) ? stack_take(s, form->n, t, depth) : 0;
	}
	return bytes;
}

/* Makes a stack of these tensors if there is none: by one equation where that copies less than they have. */
static double stack_take(Siblings *s, int n, Node *const *t, int depth)
{
	double copy = 2 * stack_bytes(n, t);
	int made = s->nmade;
	Form form;
	if (stack_find(s, n, t))
		return 0;
	if (tensor_rank(t[0]) == RICCI_MAX_RANK)
		return INFINITY;
	if (depth < DEPTH_MOST && t[0]->op == OP_COMP && comp_reduce(t[0]) == RED_NONE &&
	    stack_may_join(s, n, t, &form)) {
		double slices = stack_slices_copied(s, n, t);
		stack_add(s, n, t, true);
		double bytes = slices + stacks_take(s, &form, depth + 1);
		if (bytes < copy)
			return bytes;
		stacks_drop(s, made);
	}
	stack_add(s, n, t, false);
	return copy;
}

bool stacks_decide(Siblings *s, const char *what, const Node *first, int n, double bytes, int made)
{
	bool yes = fuse_reward(s->f, bytes, 0, n - 1) > 0;
	fuse_say(s->f, what, first, bytes, 0, n - 1, yes ? "yes" : "no");
	if (!yes)
		stacks_drop(s, made);
	return yes;
}

/* ---- the equations ---- */

Node *stack_now(const Siblings *s, Node *t)
{
	Node *now = node_map_get(&s->now, t);
	return now ? now : t;
}

Node *stacks_join(Siblings *s, int n, Node *const *c, bool summed)
{
	Form form;
	form_find(s->ir, n, c, &form);
	Node **tensor = arena_alloc(&s->ir->arena, (size_t)(form.nrow + 1) * sizeof *tensor);
	for (int i = 0; i < form.nrow; i++) {
		Node *t[SIBLINGS_MOST];
		form_row(&form, i, t);
		if (form_row_differs(&form, i))
			tensor[i] = stack_tensor(s, stack_find(s, n, t));
	}
	return tensor_over(s->ir, form_stack(s->ir, &form, c[0], tensor, summed), &s->now);
}

Node *stack_tensor(Siblings *s, Stack *k)
{
	Node *t[SIBLINGS_MOST];
	for (int i = 0; i < k->n; i++)
		t[i] = stack_now(s, k->t[i]);
	if (!k->tensor)
		k->tensor = k->computed ? stacks_join(s, k->n, k->t, false)
					: stack_copy(s->ir, k->n, t);
	return k->tensor;
}

/* bind.c - what a program's names stand for: operands, among them known integers, and the indices
 * of `...`. Input: a parsed program and its operands. Output: names with tensors or numbers, and
 * equations in which only indices are left. Errors jump (notation_fail). */
#include "core/notation/internal.h"
#include <stdlib.h>
#include <string.h>

static int name_place(const Name *x)
{
	return x->first_read >= 0 ? x->first_read : x->first_bare;
}

static const char *name_list(Program *p, int n, Name *const *name)
{
	const char *list = "";

	for (int i = 0; i < n && i < 8; i++)
		list = arena_printf(&p->src.ir->arena, "%s%s%s", list, i ? ", " : "",
				    i == 7 ? ".." : name[i]->s);
	return list;
}

/* "f32 [4,5]" */
static const char *tensor_text(Ir *ir, const Node *t)
{
	const char *s = arena_printf(&ir->arena, "%s [", type_name((Type)t->type));

	for (int d = 0; d < tensor_rank(t); d++)
		s = arena_printf(&ir->arena, "%s%s%lld", s, d ? "," : "",
				 (long long)tensor_extent(t, d));
	return arena_printf(&ir->arena, "%s]", s);
}

static void bind_one(Program *p, Name *x, Node *operand)
{
	if (!operand)
		notation_fail(&p->src, RICCI_EINVAL, name_place(x), "the operand for %s is NULL",
			      x->s);
	x->tensor = operand;
	if (x->is_tensor)
		return;
	x->is_number = tensor_integer(operand, &x->number);
	if (!x->is_number)
		notation_fail(&p->src, RICCI_EINVAL, x->first_bare,
			      "%s stands without brackets, so its operand must be a known integer "
			      "(ricci_integer), but it is %s",
			      x->s, tensor_text(p->src.ir, operand));
}

/* ---- in order ---- */

/* Could it be an integer, for all that the text says? */
static bool may_be_integer(const Name *x)
{
	return !x->value && !x->is_tensor && !x->is_index;
}

static int by_place(const void *a, const void *b)
{
	const Name *x = *(Name *const *)a, *y = *(Name *const *)b;

	return name_place(x) < name_place(y) ? -1 : name_place(x) > name_place(y);
}

/* Without a signature: as many integers more as operands are given, if that is how many names can
 * stand for some. */
static void add_integers(Program *p, int noperand, Node *const *operands)
{
	Arena *a = &p->src.ir->arena;
	int more = noperand - p->noperand, given = 0, n = 0;
	Name **found = arena_alloc(a, sizeof *found * ((size_t)p->nbare + 1));
	int64_t unused;

	for (int i = 0; i < noperand; i++)
		given += operands[i] && tensor_integer(operands[i], &unused);
	for (int i = 0; i < p->nbare; i++)
		if (may_be_integer(p->bare[i]))
			found[n++] = p->bare[i];
	if (given < more)
		return;
	if (n != more)
		notation_fail(&p->src, RICCI_EINVAL, n ? found[0]->first_bare : 0,
			      "%d integer%s given, and %d name%s could stand for %s%s%s: say which "
			      "by a signature (X, G -> Y: ..) or by names (ricci_op_named)",
			      more, more == 1 ? " is" : "s are", n, n == 1 ? "" : "s",
			      more == 1 ? "it" : "them", n ? ": " : "", name_list(p, n, found));
	Name **all = arena_alloc(a, sizeof *all * ((size_t)noperand + 1));
	memcpy(all, p->operand, sizeof *all * (size_t)p->noperand);
	memcpy(all + p->noperand, found, sizeof *all * (size_t)n);
	qsort(all, (size_t)noperand, sizeof *all, by_place);
	p->operand = all;
	p->noperand = noperand;
}

void names_bind(Program *p, int noperand, Node *const *operands)
{
	if (noperand > p->noperand && !p->signature)
		add_integers(p, noperand, operands);
	if (noperand < p->noperand)
		notation_fail(&p->src, RICCI_EINVAL, name_place(p->operand[noperand]),
			      "no tensor is given for %s: the program reads %d (%s), %d given",
			      p->operand[noperand]->s, p->noperand,
			      name_list(p, p->noperand, p->operand), noperand);
	if (noperand && !p->noperand)
		notation_fail(&p->src, RICCI_EINVAL, 0,
			      "operand 1 is not used: the program reads no tensor, as A[i] or A[] "
			      "would");
	if (noperand > p->noperand)
		notation_fail(&p->src, RICCI_EINVAL, 0,
			      "operand %d is not used: the program reads %d (%s), %d given",
			      p->noperand + 1, p->noperand, name_list(p, p->noperand, p->operand),
			      noperand);
	for (int i = 0; i < noperand; i++)
		bind_one(p, p->operand[i], operands[i]);
}

/* ---- by name ---- */

/* A name that is read and can have an operand, or NULL. */
static Name *name_find(Program *p, const char *s)
{
	for (int i = 0; i < p->noperand; i++)
		if (!strcmp(p->operand[i]->s, s))
			return p->operand[i];
	for (int i = 0; i < p->nbare && !p->signature; i++)
		if (!strcmp(p->bare[i]->s, s) && !p->bare[i]->value && !p->bare[i]->is_tensor)
			return p->bare[i];
	return NULL;
}

void names_bind_named(Program *p, int n, const char *const *names, Node *const *operands)
{
	for (int i = 0; i < n; i++) {
		Name *x = names[i] ? name_find(p, names[i]) : NULL;
		if (!names[i])
			notation_fail(&p->src, RICCI_EINVAL, 0, "the name of operand %d is NULL",
				      i + 1);
		if (!x)
			notation_fail(&p->src, RICCI_EINVAL, 0,
				      "no operand is named %s: the program reads %d (%s)", names[i],
				      p->noperand, name_list(p, p->noperand, p->operand));
		if (x->tensor)
			notation_fail(&p->src, RICCI_EINVAL, name_place(x),
				      "the operand %s is given twice", x->s);
		bind_one(p, x, operands[i]);
	}
	for (int i = 0; i < p->noperand; i++)
		if (!p->operand[i]->tensor)
			notation_fail(&p->src, RICCI_EINVAL, name_place(p->operand[i]),
				      "no tensor is given for %s: the program reads %d (%s)",
				      p->operand[i]->s, p->noperand,
				      name_list(p, p->noperand, p->operand));
}

void names_bind_integer(Program *p, const char *name, const Node *tensor)
{
	int64_t number;

	for (int i = 0; i < p->nbare; i++)
		if (!strcmp(p->bare[i]->s, name) && !p->bare[i]->value && !p->bare[i]->is_tensor &&
		    tensor_integer(tensor, &number)) {
			p->bare[i]->is_number = true;
			p->bare[i]->number = number;
		}
}

/* ---- what only stands for something else ---- */

typedef struct Expand {
	Program *p;
	const Ast *first; /* the first access of the equation with `...` */
} Expand;

static Name *dots_name(Program *p, int k)
{
	Name *x = p->dots[k];

	if (x)
		return x;
	x = p->dots[k] = arena_alloc(&p->src.ir->arena, sizeof *x);
	*x = (Name){.s = "...",
		    .len = 3,
		    .assigned = -1,
		    .first_read = -1,
		    .operand = -1,
		    .first_bare = -1,
		    .slot_of = -1,
		    .is_dots = true};
	return x;
}

/* Makes room for n entries in place of list[at], out of *count. */
static void list_widen(Ast **list, int *count, int at, int n)
{
	memmove(list + at + n, list + at + 1, sizeof *list * (size_t)(*count - at - 1));
	*count += n - 1;
}

static void dots_fill(Program *p, Ast **list, const Ast *dots, int n)
{
	for (int k = 0; k < n; k++) {
		list[k] = arena_alloc(&p->src.ir->arena, sizeof **list);
		*list[k] = (Ast){.kind = AST_NAME,
				 .value = KIND_NONE,
				 .pos = dots->pos,
				 .end = dots->end,
				 .mark = dots->mark,
				 .height = 1,
				 .name = dots_name(p, k)};
	}
}

static void expand_access(Expand *x, Ast *a)
{
	Program *p = x->p;
	const Node *tensor = a->name->tensor;

	if (a->ndots < 0) {
		Ast *dots = a->arg[a->dots - 1];
		int rank = tensor_rank(tensor), n = rank - (a->n - 1);
		if (n < 0)
			notation_fail(&p->src, RICCI_ESHAPE, a->pos,
				      "%s has %d dimension%s, but %d ind%s given beside ...",
				      a->name->s, rank, rank == 1 ? "" : "s", a->n - 1,
				      a->n == 2 ? "ex is" : "ices are");
		list_widen(a->arg, &a->n, a->dots - 1, n);
		dots_fill(p, a->arg + a->dots - 1, dots, n);
		a->ndots = n;
		a->mark = dots->pos;
	}
	if (!x->first)
		x->first = a;
	if (x->first->ndots != a->ndots)
		notation_fail_both(&p->src, RICCI_ESHAPE, x->first->mark, a->mark,
				   "... stands for %d dimension%s of %s, but for %d of %s",
				   x->first->ndots, x->first->ndots == 1 ? "" : "s",
				   x->first->name->s, a->ndots, a->name->s);
}

static void expand(Expand *x, Ast *a)
{
	if (!a || !ast_enter(&x->p->src, a))
		return;
	if (a->kind == AST_ACCESS && a->dots && a->name->tensor)
		expand_access(x, a);
	if (a->kind == AST_NAME && a->name->is_number) {
		a->kind = AST_INT;
		a->u.i = a->name->number;
	}
	for (int i = 0; i < a->n; i++)
		expand(x, a->arg[i]);
}

static void expand_left(Expand *x, Equation *q)
{
	Source *s = &x->p->src;
	int n = x->first ? x->first->ndots : 0, count = q->nleft;

	if (!x->first)
		notation_fail(s, RICCI_ESHAPE, q->dots->pos,
			      "... stands on the left only, so nothing says which dimensions it "
			      "is: it has to stand in what is read");
	if (q->nleft - 1 + n > RICCI_MAX_RANK)
		notation_fail(s, RICCI_ESHAPE, q->dots->pos,
			      "a tensor has at most %d dimensions, %s would have %d",
			      RICCI_MAX_RANK, q->name->s, q->nleft - 1 + n);
	list_widen(q->extent, &count, q->dots_at, n);
	list_widen(q->left, &q->nleft, q->dots_at, n);
	dots_fill(x->p, q->left + q->dots_at, q->dots, n);
	for (int k = 0; k < n; k++)
		q->extent[q->dots_at + k] = NULL;
}

void equation_expand(Program *p, Equation *q)
{
	Expand x = {.p = p};

	p->src.walk++;
	for (int d = 0; d < q->nleft; d++) {
		expand(&x, q->left[d]);
		expand(&x, q->extent[d]);
	}
	expand(&x, q->body);
	for (int i = 0; i < q->nrange; i++) {
		const RangeAst *r = &q->range[i];
		if (r->name->is_number)
			notation_fail(&p->src, RICCI_ESHAPE, r->pos,
				      "%s is a known integer and no index", r->name->s);
		expand(&x, r->low);
		expand(&x, r->high);
	}
	if (q->dots)
		expand_left(&x, q);
}

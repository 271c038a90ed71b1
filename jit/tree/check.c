/* check.c - is a loop tree well formed? For those who change how trees are made: RICCI_CHECK=trees, as
 * the tests and the fuzzers have it.
 *
 * Input: a tree after a pass. Output: what is wrong with it first. What must hold: an axis stands
 * inside its own loop only; a buffer is one of the tree's, a local one is allocated before; nobody
 * writes an input, nor a table while parts run; a value has its buffer's type; no access lies outside
 * whatever the loops' values are; a loop that can't be empty isn't; all threads of a block come to a
 * barrier. */
#include "jit/tree/tree.h"

#include <stdlib.h>

typedef struct Checker {
	const Tree *tree;
	bool *open;	   /* axes, by number */
	bool *allocated;   /* buffers */
	bool parts;	   /* inside the parallel loop */
	Node *thread;	   /* the open loop over a block's threads, */
	int apart;	   /* and how many branches and loops are open that these may do unlike */
	const char *fault; /* the first */
} Checker;

static void fail(Checker *c, const char *what, const char *which)
{
	if (!c->fault)
		c->fault = arena_printf(&c->tree->ir->arena, "%s%s%s", which ? which : "",
					which ? ": " : "", what);
}

static int buffer_number(const Checker *c, const Node *node)
{
	const Buffer *b = tree_find(c->tree, node);
	return b ? (int)(b - c->tree->buffer) : -1;
}

/* An access of buffer[index]; `whole`: the element itself, and not where a function begins. */
static void check_access(Checker *c, const Node *buffer, const Node *index, bool whole)
{
	int k = buffer_number(c, buffer);
	if (k < 0)
		fail(c, "a buffer is none of the tree's", buffer->u.s);
	else if ((buffer_is_local(&c->tree->buffer[k]) ||
		  c->tree->buffer[k].space == SPACE_BLOCK) &&
		 !c->allocated[k])
		fail(c, "a local buffer is not allocated here", buffer->u.s);
	else if (whole && (index->hi < 0 || index->lo >= tensor_size(buffer)))
		fail(c, "an access lies outside of its buffer", buffer->u.s);
}

static void see_node(void *user, Node *n)
{
	Checker *c = user;
	if (n->op == OP_AXIS && (n->u.i >= c->tree->next_axis || !c->open[n->u.i]))
		fail(c, "an axis stands outside of its loop", NULL);
	if (n->op == OP_READ)
		check_access(c, n->src[0], n->src[1], false);
}

static void check_node(Checker *c, Node *n)
{
	if (n)
		node_walk(c->tree->ir, n, see_node, c);
}

static void check_store(Checker *c, const Stmt *s)
{
	const Buffer *b = tree_find(c->tree, s->buffer);
	check_access(c, s->buffer, s->index, true);
	if (b && b->space == SPACE_PARAM && !b->output)
		fail(c, "an input is written", s->buffer->u.s);
	if (b && b->space == SPACE_TABLE && c->parts && s->index->lo == s->index->hi)
		fail(c, "a table is written while parts run", s->buffer->u.s);
	if (s->value->type != s->buffer->type)
		fail(c, "a value has another type than its buffer", s->buffer->u.s);
}

/* May the threads of a block differ in e? */
static bool is_apart(const Checker *c, Node *e)
{
	Node **read;
	int n = e && c->thread ? node_collect(c->tree->ir, e, OP_READ, &read) : 0;
	bool apart = e && c->thread && node_has(e, c->thread);
	for (int k = 0; k < n; k++) {
		const Buffer *b = tree_find(c->tree, read[k]->src[0]);
		apart |= b && (b->space != SPACE_PARAM || b->output);
	}
	return apart;
}

static void check_list(Checker *c, const Stmt *s);

static void check_loop(Checker *c, const Stmt *s)
{
	if (c->open[s->axis->u.i])
		fail(c, "a loop stands inside a loop of the same axis", NULL);
	if (!s->maybe && s->hi->hi <= s->lo->lo)
		fail(c, "a loop is empty that must not be", NULL);
	bool outer = c->parts, apart = is_apart(c, s->lo) || is_apart(c, s->hi);
	Node *thread = c->thread;
	c->parts |= s->how == HOW_PARALLEL;
	c->thread = s->how == HOW_THREAD ? s->axis : thread;
	c->apart += apart;
	c->open[s->axis->u.i] = true;
	check_list(c, s->body);
	c->open[s->axis->u.i] = false;
	c->apart -= apart;
	c->thread = thread;
	c->parts = outer;
}

static void check_stmt(Checker *c, const Stmt *s)
{
	Node *part[] = {s->lo, s->hi, s->cond, s->index, s->value};
	for (int k = 0; k < COUNT(part); k++)
		check_node(c, part[k]);
	for (int k = 0; k < s->narg; k++) {
		check_node(c, s->arg[k].value);
		if (s->arg[k].buffer)
			check_access(c, s->arg[k].buffer, s->arg[k].value, false);
	}
	if (s->kind == STMT_LOOP)
		check_loop(c, s);
	if (s->kind == STMT_STORE)
		check_store(c, s);
	if (s->kind == STMT_IF) {
		bool apart = is_apart(c, s->cond);
		c->apart += apart;
		check_list(c, s->body);
		check_list(c, s->otherwise);
		c->apart -= apart;
	}
	if (s->kind == STMT_SYNC && (!c->thread || c->apart))
		fail(c, "a barrier stands where not all threads of a block come", NULL);
}

static void check_list(Checker *c, const Stmt *s)
{
	const Stmt *first = s;
	for (; s; s = s->next) {
		int k = s->kind == STMT_ALLOC ? buffer_number(c, s->buffer) : -1;
		if (k >= 0)
			c->allocated[k] = true;
		check_stmt(c, s);
	}
	for (s = first; s; s = s->next)
		if (s->kind == STMT_ALLOC)
			c->allocated[buffer_number(c, s->buffer)] = false;
}

const char *tree_fault(const Tree *t)
{
	Checker c = {.tree = t};
	c.open = arena_alloc(&t->ir->arena, (size_t)t->next_axis);
	c.allocated = arena_alloc(&t->ir->arena, (size_t)t->nbuffer + 1);
	check_list(&c, t->root);
	return c.fault;
}

void tree_check(const Tree *t, const char *pass)
{
	const char *fault = env_check("trees") && !t->ir->err.code ? tree_fault(t) : NULL;
	if (!fault)
		return;
	Text tree = {0};
	tree_print(&tree, t);
	fprintf(stderr, "%s\nloop tree after %s: %s\n", tree.s ? tree.s : "", pass, fault);
	abort();
}

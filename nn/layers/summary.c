/* summary.c - what a net consists of: layers, shapes, parameters, arithmetic.
 * Input: a tensor. Output: a table. An equation belongs to the layer of the first parameter or state
 * that it reads, else to that of the last result it reads. Invariant: the graph stays as it was. */
#include "nn/layers/internal.h"

#include "jit/jit.h"

#include <string.h>

typedef struct Row {
	const char *name;
	int n;	      /* characters of it */
	Node *result; /* its output */
	int64_t elements;
	double flops;
} Row;
typedef struct Summary {
	ricci_graph *g;
	NodeMap row; /* of tensors: their Row */
	Row **list;
	int n, room;
} Summary;

static int64_t elements(const ricci_tensor *t)
{
	return t->role == ROLE_PARAM ? tensor_size(t->node) : 0;
}

int64_t ricci_param_elements(const ricci_graph *g)
{
	int64_t sum = 0;
	for (int i = 0; g && i < g->nkept; i++)
		sum += elements(g->kept[i]);
	return sum;
}

static Row *row_named(Summary *s, const char *name, int n)
{
	for (int k = 0; k < s->n; k++)
		if (s->list[k]->n == n && !memcmp(s->list[k]->name, name, (size_t)n))
			return s->list[k];
	Arena *a = &s->g->ir.arena;
	Row *r = arena_alloc(a, sizeof *r);
	*r = (Row){.name = name, .n = n};
	s->list = arena_grow(a, s->list, s->n, &s->room, sizeof(Row *));
	return s->list[s->n++] = r;
}

/* The handle of a parameter or state; NULL for other tensors. */
static const ricci_tensor *kept(const Summary *s, const Node *t)
{
	const ricci_tensor *h = t->op == OP_INPUT ? node_map_get(&s->g->handle, t) : NULL;
	return h && (h->role == ROLE_PARAM || h->role == ROLE_STATE) ? h : NULL;
}

/* The row of an equation or loop that reads these. */
static Row *row_of(Summary *s, int n, Node *const *reads)
{
	Row *r = NULL;
	for (int k = 0; k < n; k++) {
		const ricci_tensor *h = kept(s, reads[k]);
		if (h) {
			const char *point = strrchr(h->name, '.');
			return row_named(s, h->name,
					 (int)(point ? point - h->name : (long)strlen(h->name)));
		}
		Row *of = node_map_get(&s->row, reads[k]);
		r = of ? of : r;
	}
	return r ? r : row_named(s, "-", 1);
}

static double flops_of(Ir *ir, int n, Node *const *order);

/* Of all steps of the loop of scan order[k], with all results of the same run; 0 when an earlier one
 * of them stands in order. */
static double scan_flops(Ir *ir, int n, Node *const *order, int k)
{
	const Scan *l = scan_of(order[k]);
	int nroot = l->nstate;
	Node **roots = arena_alloc(&ir->arena, sizeof(Node *) * (size_t)(l->nstate + n)), **body;
	for (int j = 0; j < l->nstate; j++)
		roots[j] = l->next[j];
	for (int j = 0; j < n; j++)
		if (order[j]->op == OP_SCAN && scan_same_run(order[j], order[k])) {
			if (j < k)
				return 0;
			roots[nroot++] = order[j]->u.result->value;
		}
	int nbody = graph_order(ir, nroot, roots, &body);
	return (double)l->bound * flops_of(ir, nbody, body);
}

static double tensor_flops(Ir *ir, int n, Node *const *order, int k)
{
	return order[k]->op == OP_COMP	 ? comp_flops(ir, order[k])
	       : order[k]->op == OP_SCAN ? scan_flops(ir, n, order, k)
					 : 0;
}

static double flops_of(Ir *ir, int n, Node *const *order)
{
	double sum = 0;
	for (int k = 0; k < n; k++)
		sum += tensor_flops(ir, n, order, k);
	return sum;
}

/* Another row reads t of row r, so t may be its output: the largest such, of equal ones the last. */
static void output_add(Row *r, const Row *to, Node *t)
{
	if (r && r != to && (!r->result || tensor_size(r->result) <= tensor_size(t)))
		r->result = t;
}

static void rows_find(Summary *s, Node *y)
{
	Ir *ir = &s->g->ir;
	Node **order, **reads;
	int n = graph_order(ir, 1, &y, &order);
	for (int k = 0; k < n; k++) {
		if (order[k]->op == OP_INPUT)
			continue;
		int nread = comp_reads(ir, order[k], &reads);
		Row *r = row_of(s, nread, reads);
		node_map_put(ir, &s->row, order[k], r);
		r->flops += tensor_flops(ir, n, order, k);
		for (int j = 0; j < nread; j++)
			output_add(node_map_get(&s->row, reads[j]), r, reads[j]);
	}
	output_add(node_map_get(&s->row, y), NULL, y);
	for (int k = 0; k < n; k++)
		if (kept(s, order[k]))
			row_of(s, 1, &order[k])->elements += elements(kept(s, order[k]));
}

/* The table as text. */
static void rows_print(const Summary *s, Text *t)
{
	int width = 5;
	int64_t all = 0;
	double flops = 0;
	for (int k = 0; k < s->n; k++)
		width = s->list[k]->n > width ? s->list[k]->n : width;
	text_add(t, "%-*s  %-24s %14s %12s\n", width, "layer", "output", "parameters", "GFLOP");
	for (int k = 0; k < s->n; k++) {
		const Row *r = s->list[k];
		Text shape = {0};
		text_add(&shape, "[");
		for (int d = 0; r->result && d < tensor_rank(r->result); d++)
			text_add(&shape, "%s%lld", d ? "," : "",
				 (long long)tensor_extent(r->result, d));
		text_add(&shape, "]");
		text_add(t, "%-*.*s  %-24s %14lld %12.4g\n", width, r->n, r->name,
			 shape.failed ? "" : shape.s, (long long)r->elements, r->flops / 1e9);
		t->failed |= shape.failed;
		text_free(&shape);
		all += r->elements;
		flops += r->flops;
	}
	text_add(t, "%-*s  %-24s %14lld %12.4g\n", width, "total", "", (long long)all, flops / 1e9);
}

static int summary(ricci_graph *g, Node *y, Text *t)
{
	Ir *ir = &g->ir;
	Summary s = {.g = g};
	IR_ENTER(ir, RICCI_ENOMEM);
	rows_find(&s, y);
	IR_LEAVE(ir);
	rows_print(&s, t);
	return t->failed ? RICCI_ENOMEM : 0;
}

int ricci_summary(const ricci_tensor *y, FILE *out)
{
	if (!y || !out)
		return error_set(ERROR_TELL, RICCI_EINVAL, "ricci_summary: no %s given",
				 y ? "file" : "tensor");
	ricci_graph *g = ricci_graph_of(y);
	if (ricci_graph_error(g))
		return ricci_graph_error(g);
	if (!y->node)
		return error_set(ERROR_TELL, RICCI_EINVAL, "ricci_summary: an inert tensor");
	Text t = {0};
	lock_take(LOCK_GRAPHS);	  /* another thread may make a session */
	Error before = g->ir.err; /* a table that found no memory does not spoil the graph */
	int status = summary(g, y->node, &t);
	g->ir.err = before;
	lock_leave(LOCK_GRAPHS);
	if (status)
		error_set(ERROR_TELL, status, "ricci_summary: out of memory");
	else if (fputs(t.s, out) < 0 || fflush(out))
		status = error_set(ERROR_TELL, RICCI_EIO,
				   "ricci_summary: the file can't be written");
	text_free(&t);
	return status;
}

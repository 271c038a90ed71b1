/* subgraph.c - what a subgraph reads and keeps, and its canonical form as a task.
 * A task's text is its identity: a version line, the inputs, and one equation a line, marked keep
 * or local. It is exact, since it parses back to the same nodes, and linear in their number: parts
 * that are shared are printed once. */
#include "jit/fuse/subgraph.h"

#include <stdlib.h>
#include <string.h>

/* ---- cost ---- */

double node_flops(const Node *n)
{
	enum { ROUNDING = 8 };
	static const uint8_t heavy[OP_COUNT] = {
		[OP_DIV] = 4,	 [OP_SQRT] = 4,	    [OP_RSQRT] = 4,   [OP_EXP] = 12,
		[OP_EXPM1] = 16, [OP_LOG] = 14,	    [OP_LOG1P] = 16,  [OP_POW] = 40,
		[OP_SIN] = 16,	 [OP_COS] = 16,	    [OP_TAN] = 24,    [OP_TANH] = 18,
		[OP_ERF] = 20,	 [OP_SIGMOID] = 16, [OP_RANDOM] = 60, [OP_NORMAL] = 90,
	};
	if (!n->nsrc || n->op == OP_READ || node_is_tensor(n))
		return 0;
	if (n->op == OP_CAST) { /* to 16 bits, by integer operations */
		bool wide = type_size((Type)n->src[0]->type) > 2;
		return type_is_float((Type)n->type) && type_size((Type)n->type) == 2 && wide
			       ? ROUNDING
			       : 0;
	}
	return heavy[n->op] ? heavy[n->op] : 1;
}

bool node_is_function(const Node *n)
{
	return type_is_float((Type)n->type) && op_info[n->op].form == FORM_CALL &&
	       node_flops(n) > 1;
}

static void see_cost(void *user, Node *n)
{
	double *sum = user;
	double flops = node_flops(n);
	if (n->type != RICCI_I64 || flops > 1)
		*sum += flops;
}

double expr_flops(Ir *ir, Node *e)
{
	double sum = 0;
	node_walk(ir, e, see_cost, &sum);
	return sum;
}

static void see_arithmetic(void *user, Node *n)
{
	if (n->op != OP_SELECT && n->op != OP_CAST && n->type != RICCI_BOOL)
		see_cost(user, n);
}

double expr_arithmetic(Ir *ir, Node *e)
{
	double sum = 0;
	node_walk(ir, e, see_arithmetic, &sum);
	return sum;
}

double comp_flops(Ir *ir, Node *comp)
{
	double sum = comp_reduce(comp) != RED_NONE;
	return comp_work(ir, comp, 0) * (sum + expr_arithmetic(ir, comp_body(comp)));
}

/* ---- what it reads ---- */

static void input_add(Subgraph *s, Node *t)
{
	bool there = subgraph_member(s, t) >= 0;
	for (int i = 0; i < s->ninput; i++)
		there |= s->input[i] == t;
	if (!there)
		s->input[s->ninput++] = t;
}

void subgraph_inputs(Ir *ir, Subgraph *s)
{
	const Node *main = s->member[0];
	Node **reads;
	int room = 0;
	if (main->op == OP_SCAN) {
		s->ninput = scan_noperand(scan_of(main));
		s->input = arena_alloc(&ir->arena, ((size_t)s->ninput + 1) * sizeof *s->input);
		memcpy(s->input, scan_operands(main), (size_t)s->ninput * sizeof *s->input);
		return;
	}
	for (int k = 0; k < s->nmember; k++)
		room += comp_reads(ir, s->member[k], &reads);
	s->input = arena_alloc(&ir->arena, ((size_t)room + 1) * sizeof *s->input);
	for (int k = 0; k < s->nmember; k++) {
		int n = comp_reads(ir, s->member[k], &reads);
		for (int j = 0; j < n; j++)
			input_add(s, reads[j]);
	}
}

/* ---- canonical form ---- */

typedef struct Names { /* the printer holds names, so each has its own place */
	const Subgraph *sub;
	char **name; /* of members, then of inputs */
} Names;

static int find(Node *const *list, int n, const Node *x)
{
	for (int k = 0; k < n; k++)
		if (list[k] == x)
			return k;
	return -1;
}

static const char *task_name(void *user, Node *t)
{
	Names *names = user;
	const Subgraph *sub = names->sub;
	int k = find(sub->member, sub->nmember, t);
	return names->name[k >= 0 ? k : sub->nmember + find(sub->input, sub->ninput, t)];
}

static Names task_names(Ir *ir, const Subgraph *sub)
{
	int n = sub->nmember, all = n + sub->ninput;
	Names names = {sub, arena_alloc(&ir->arena, ((size_t)all + 1) * sizeof *names.name)};
	for (int k = 0; k < all; k++)
		names.name[k] = arena_printf(&ir->arena, k < n ? "m%d" : "a%d", k < n ? k : k - n);
	return names;
}

static void task_print(Text *out, Ir *ir, const Subgraph *sub)
{
	text_add(out, "ricci-task 1\n");
	for (int k = 0; k < sub->ninput; k++) {
		const Node *t = sub->input[k];
		text_add(out, "input %s ", type_name((Type)t->type));
		for (int d = 0; d < tensor_rank(t); d++)
			text_add(out, "%s%lld", d ? "x" : "", (long long)tensor_extent(t, d));
		text_add(out, "%s\n", tensor_rank(t) ? "" : "scalar");
	}
	Names names = task_names(ir, sub);
	for (int k = 0; k < sub->nmember; k++) {
		text_add(out, "%s ", sub->stored[k] ? "keep" : "local");
		print_equation_ranged(out, ir, sub->member[k], task_name, &names);
		text_add(out, "\n");
	}
}

static void task_cost(Task *t)
{
	for (int k = 0; k < t->sub.nmember; k++) {
		Node *c = t->sub.member[k];
		double ops = expr_flops(&t->ir, comp_body(c)) + (comp_reduce(c) != RED_NONE);
		t->cost += comp_work(&t->ir, c, t->sub.rows) * ops;
		t->flops += comp_flops(&t->ir, c);
		if (t->sub.stored[k])
			t->bytes += (double)tensor_bytes(c);
	}
	for (int k = 0; k < t->sub.ninput; k++)
		t->read += (double)tensor_bytes(t->sub.input[k]);
	t->bytes += t->read;
}

/* Room for the arrays of a task's subgraph. */
static void task_arrays(Task *t, int nmember, int ninput)
{
	Arena *a = &t->ir.arena;
	t->sub.member = arena_alloc(a, (size_t)(nmember + 1) * sizeof *t->sub.member);
	t->sub.input = arena_alloc(a, (size_t)(ninput + 1) * sizeof *t->sub.input);
	t->sub.stored = arena_alloc(a, (size_t)nmember + 1);
}

/* Under a jump of its own: the caller owns the text. */
static void task_describe(Task *t, Text *text)
{
	IR_ENTER(&t->ir, );
	task_print(text, &t->ir, &t->sub);
	t->text = text->failed ? NULL : arena_strdup(&t->ir.arena, text->s);
	t->nbatch = subgraph_batches(&t->ir, &t->sub, t->batch);
	IR_LEAVE(&t->ir);
}

static int task_finish(Task *t)
{
	Text text = {0};
	task_describe(t, &text);
	text_free(&text);
	if (!t->text)
		return error_set(&t->ir.err, RICCI_ENOMEM, "out of memory");
	if (!subgraph_rows(&t->ir, &t->sub))
		return error_set(&t->ir.err, RICCI_EUNSUPPORTED,
				 "these equations share no rows: one kernel can't compute them");
	if (t->sub.rows)
		subgraph_loops(&t->ir, &t->sub);
	task_cost(t);
	return t->ir.err.code;
}

typedef struct TaskImport {
	Task *task;
	const Subgraph *from;
} TaskImport;

static Node *task_tensor(void *user, Node *t)
{
	TaskImport *m = user;
	int k = find(m->from->member, m->from->nmember, t);
	if (k >= 0 && k < m->task->sub.nmember)
		return m->task->sub.member[k];
	k = find(m->from->input, m->from->ninput, t);
	return k >= 0 ? m->task->sub.input[k] : NULL;
}

static int task_fill(Task *t, const Subgraph *sub)
{
	IR_ENTER(&t->ir, RICCI_ENOMEM);
	task_arrays(t, sub->nmember, sub->ninput);
	for (int k = 0; k < sub->ninput; k++) {
		int64_t shape[RICCI_MAX_RANK];
		char name[16];
		for (int d = 0; d < tensor_rank(sub->input[k]); d++)
			shape[d] = tensor_extent(sub->input[k], d);
		snprintf(name, sizeof name, "a%d", k);
		t->sub.input[k] = node_input(&t->ir, name, (Type)sub->input[k]->type,
					     tensor_rank(sub->input[k]), shape);
	}
	t->sub.ninput = sub->ninput;
	TaskImport m = {t, sub};
	for (int k = 0; k < sub->nmember; k++) {
		Node *c = sub->member[k], **src = arena_alloc(&t->ir.arena, c->nsrc * sizeof *src);
		for (int j = 0; j < c->nsrc; j++)
			src[j] = node_import(&t->ir, c->src[j], task_tensor, &m);
		t->sub.member[k] = node_make(&t->ir, OP_COMP, (Type)c->type, c->nsrc, src, c->u.i);
		t->sub.stored[k] = sub->stored[k];
		t->sub.nmember = k + 1;
	}
	int rc = task_finish(t);
	IR_LEAVE(&t->ir);
	return rc;
}

static Task *task_alloc(Error *err)
{
	Task *t = mem_zalloc(sizeof *t);
	if (!t)
		error_set(err, RICCI_ENOMEM, "out of memory");
	else
		ir_init(&t->ir);
	return t;
}

static Task *task_give(Task *t, int rc, Error *err)
{
	if (!rc)
		return t;
	error_set(err, rc, "%s", t->ir.err.text);
	task_free(t);
	return NULL;
}

Task *task_new(const Subgraph *sub, Error *err)
{
	Task *t = task_alloc(err);
	return t ? task_give(t, task_fill(t, sub), err) : NULL;
}

void task_free(Task *t)
{
	if (!t)
		return;
	ir_free(&t->ir);
	mem_free(t);
}

/* ---- reading a task back ---- */

static int bad_task(Task *t, int line, const char *what)
{
	return error_set(&t->ir.err, RICCI_EFORMAT, "line %d of a task: %s", line, what);
}

static int task_input_line(Task *t, char *s, int line)
{
	char *shape = strchr(s, ' ');
	int64_t extent[RICCI_MAX_RANK];
	int rank = 0;
	Type type;
	if (!shape)
		return bad_task(t, line, "an input without a shape");
	*shape++ = 0;
	if (!type_parse(s, &type))
		return bad_task(t, line, "an unknown data type");
	if (strcmp(shape, "scalar"))
		do {
			long long e = strtoll(shape, &shape, 10);
			if (e < 1 || rank == RICCI_MAX_RANK)
				return bad_task(t, line, "a bad shape");
			extent[rank++] = e;
		} while (*shape++ == 'x');
	char name[16];
	snprintf(name, sizeof name, "a%d", t->sub.ninput);
	t->sub.input[t->sub.ninput++] = node_input(&t->ir, name, type, rank, extent);
	return 0;
}

/* The tensor that an equation of a task names: a<k> or m<k>. */
static Node *task_operand(Task *t, const char *name)
{
	char *end;
	long k = strtol(name + 1, &end, 10);
	if (*end || end == name + 1 || k < 0)
		return NULL;
	if (name[0] == 'a' && k < t->sub.ninput)
		return t->sub.input[k];
	return name[0] == 'm' && k < t->sub.nmember ? t->sub.member[k] : NULL;
}

static int task_equation_line(Task *t, const char *s, bool stored, int line)
{
	const char **names;
	int n = notation_operands(&t->ir, s, &names), nresult = 0;
	if (n < 0)
		return t->ir.err.code;
	Node **operand = arena_alloc(&t->ir.arena, (size_t)(n + 1) * sizeof *operand),
	     *result = NULL;
	for (int k = 0; k < n; k++)
		if (!(operand[k] = task_operand(t, names[k])))
			return bad_task(t, line, "an operand that is not there");
	int rc = notation_elaborate(&t->ir, s, n, operand, &nresult, &result, 1);
	if (rc || nresult != 1)
		return rc ? rc : bad_task(t, line, "not one equation");
	t->sub.stored[t->sub.nmember] = stored;
	t->sub.member[t->sub.nmember++] = result;
	return 0;
}

static int count_lines(const char *s)
{
	int n = 1;
	for (; *s; s++)
		n += *s == '\n';
	return n;
}

static int task_lines(Task *t, const char *text)
{
	int rc = 0;
	task_arrays(t, count_lines(text), count_lines(text));
	char *s = arena_strdup(&t->ir.arena, text), *next;
	for (int line = 1; *s && !rc; line++, s = next) {
		next = s + strcspn(s, "\n");
		if (*next)
			*next++ = 0;
		if (line == 1)
			rc = strcmp(s, "ricci-task 1")
				     ? bad_task(t, line, "not a task of this version")
				     : 0;
		else if (!strncmp(s, "input ", 6))
			rc = task_input_line(t, s + 6, line);
		else if (!strncmp(s, "keep ", 5) || !strncmp(s, "local ", 6))
			rc = task_equation_line(t, strchr(s, ' ') + 1, s[0] == 'k', line);
		else
			rc = bad_task(t, line, "neither input, keep nor local");
	}
	if (!rc)
		rc = t->sub.nmember ? task_finish(t) : bad_task(t, 1, "no equation");
	return rc;
}

static int task_read(Task *t, const char *text)
{
	IR_ENTER(&t->ir, RICCI_ENOMEM);
	int rc = task_lines(t, text);
	IR_LEAVE(&t->ir);
	return rc;
}

Task *task_parse(const char *text, Error *err)
{
	Task *t = task_alloc(err);
	return t ? task_give(t, task_read(t, text), err) : NULL;
}

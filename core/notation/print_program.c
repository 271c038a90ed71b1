/* print_program.c - equations and programs to text. Input: tensors. Output: text that elaborates to
 * the same tensors. Ranges that inference finds from the text are left out: the text with all of them
 * is elaborated to see which. */
#include "core/notation/internal.h"
#include <string.h>

/* ---- names of axes ---- */

static void name_axes(Printer *p, const Names *taken)
{
	static const char letters[] = "ijklmnopqrstuvwxyzabcdefgh";

	for (int i = 0, next = 0; i < p->naxis; i++) {
		do {
			int round = next / (COUNT(letters) - 1);
			char c = letters[next++ % (COUNT(letters) - 1)];
			p->axis_name[i] = round ? arena_printf(&p->ir->arena, "%c%d", c, round)
						: arena_printf(&p->ir->arena, "%c", c);
		} while (names_have(taken, p->axis_name[i]));
	}
}

static bool left_is_bare(const Node *c, int d)
{
	Node *x = comp_lhs(c, d);

	if (x->op != OP_AXIS || axis_extent(x) != tensor_extent(c, d))
		return false;
	for (int b = 0; b < d; b++)
		if (comp_lhs(c, b) == x)
			return false;
	return true;
}

/* ---- left sides ---- */

static void print_left(Printer *p, Node *c)
{
	for (int d = 0; d < tensor_rank(c); d++) {
		text_add(p->out, d ? "," : "");
		print_value(p, comp_lhs(c, d), LEVEL_CHOICE, NEED_NOTHING, true);
		if (!left_is_bare(c, d))
			text_add(p->out, ":%lld", (long long)tensor_extent(c, d));
	}
}

static void print_declaration(Printer *p, Node *t, const char *name)
{
	text_add(p->out, "%s=", name);
	for (int d = 0; d < tensor_rank(t); d++)
		text_add(p->out, "%s%lld", d ? "x" : "", (long long)tensor_extent(t, d));
	text_add(p->out, "%s:%s", tensor_rank(t) ? "" : "scalar", type_name((Type)t->type));
}

/* Axes that only repeat the sum are named in a condition that is always true. */
static bool print_repeats(Printer *p, int nroot, Node *const *root)
{
	Node *used[COMP_MAX_AXES];
	int n = node_axes(p->ir, nroot, root, used);
	bool any = false;

	for (int k = 0; k < p->naxis; k++) {
		int at = 0;
		while (at < n && used[at] != p->axis[k])
			at++;
		if (at < n)
			continue;
		text_add(p->out, "%s%s >= 0", any ? " && " : "", p->axis_name[k]);
		any = true;
	}
	text_add(p->out, any ? " ? " : "");
	return any;
}

/* ---- ranges to print ---- */

static const char *number_name(void *ir, Node *t)
{
	return arena_printf(&((Ir *)ir)->arena, "T%u", t->id);
}

/* Which ranges c's text needs, by elaborating it with all of them; false: the notation refuses it,
 * or there is no memory. */
static bool find_needed(Ir *ir, Node *c, Text *text, bool *needed)
{
	IR_ENTER(ir, false);
	print_equation_ranged(text, ir, c, number_name, ir);
	if (text->failed)
		longjmp(*ir->arena.oom, 1);
	Program *p = program_parse(ir, text->s);
	Node **reads;
	int n = comp_reads(ir, c, &reads);
	for (int i = 0; i < p->noperand; i++)
		for (int k = 0; k < n; k++)
			if (!strcmp(p->operand[i]->s, number_name(ir, reads[k])))
				p->operand[i]->tensor = reads[k];
	program_needed(p, needed);
	IR_LEAVE(ir);
	return true;
}

/* written[k]: axis k's range has to be written. Nobody is told of an error in here. */
static void find_ranges(Ir *ir, Node *c, bool *written)
{
	Text text = {0};
	Error before = ir->err;

	ir->err = (Error){0};
	bool found = find_needed(ir, c, &text, written), lost = ir->err.code == RICCI_ENOMEM;
	ir->err = before;
	text_free(&text);
	if (lost)
		longjmp(*ir->arena.oom, 1);
	for (int k = 0; k < comp_naxis(c) && !found; k++)
		written[k] = true;
}

/* ---- equations ---- */

static void print_comp(Printer *p, Node *c, const char *name, const Names *taken)
{
	bool written[COMP_MAX_AXES] = {false}, any = false;
	Node *root[RICCI_MAX_RANK + 1] = {comp_body(c)};
	int rank = tensor_rank(c);

	p->naxis = comp_naxis(c);
	for (int k = 0; k < p->naxis; k++)
		p->axis[k] = comp_axis(c, k);
	name_axes(p, taken);
	if (p->all_ranges)
		memset(written, true, sizeof written);
	else
		find_ranges(p->ir, c, written);
	for (int d = 0; d < rank; d++)
		root[1 + d] = comp_lhs(c, d);
	print_find_values(p, rank + 1, root, taken);
	print_values(p, p->between ? p->between : "; ");
	text_add(p->out, "%s[", name);
	print_left(p, c);
	text_add(p->out, "] %s ", reduce_text[comp_reduce(c)]);
	if (print_repeats(p, rank + 1, root)) {
		print_body(p, comp_body(c), LEVEL_CHOICE + 1);
		text_add(p->out, " : 0");
	} else {
		print_body(p, comp_body(c), LEVEL_CHOICE);
	}
	for (int k = 0; k < p->naxis; k++) {
		if (!written[k])
			continue;
		text_add(p->out, "%s%s<%lld", any ? ", " : " where ", p->axis_name[k],
			 (long long)axis_extent(p->axis[k]));
		any = true;
	}
}

static void print_tensor(Printer *p, Node *c)
{
	Node **reads;

	if (c->op != OP_COMP) {
		print_declaration(p, c, print_name(p, c));
		return;
	}
	int n = comp_reads(p->ir, c, &reads);
	Names t = {arena_alloc(&p->ir->arena, (size_t)(n + 1) * sizeof *t.list), n + 1};
	for (int i = 0; i < n; i++)
		t.list[i] = print_name(p, reads[i]);
	t.list[n] = print_name(p, c);
	print_comp(p, c, t.list[n], &t);
}

void print_equation(Text *out, Ir *ir, Node *c, const char *(*name)(void *user, Node *t),
		    void *user)
{
	print_tensor(&(Printer){.out = out, .ir = ir, .name = name, .user = user}, c);
}

void print_equation_ranged(Text *out, Ir *ir, Node *c, const char *(*name)(void *user, Node *t),
			   void *user)
{
	Printer p = {.out = out, .ir = ir, .name = name, .user = user, .all_ranges = true};

	print_tensor(&p, c);
}

void print_expr(Text *out, Ir *ir, Node *e, const char *(*name)(void *user, Node *t), void *user)
{
	Printer p = {.out = out, .ir = ir, .name = name, .user = user};
	Names none = {NULL, 0};

	print_find_values(&p, 1, &e, &none);
	print_value(&p, e, LEVEL_CHOICE, NEED_NOTHING, e->type == RICCI_I64);
	if (p.nvalue)
		text_add(out, " with ");
	print_values(&p, "; ");
}

/* ---- programs ---- */

typedef struct ProgramNames {
	Ir *ir;
	const char **by_id;
	Names taken;
	int room, local, variable;
	bool all_ranges;
	Names short_ones; /* the taken names that an axis or a value could have */
} ProgramNames;

static const char *program_name(void *user, Node *t)
{
	return ((ProgramNames *)user)->by_id[t->id];
}

static void take_name(ProgramNames *n, const char *s)
{
	n->taken.list = arena_grow(&n->ir->arena, n->taken.list, n->taken.n, &n->room,
				   sizeof *n->taken.list);
	n->taken.list[n->taken.n++] = s;
}

/* A name that the notation can read, made of s, not taken yet. */
static const char *free_name(ProgramNames *n, const char *s)
{
	static const char *const words[] = {"where", "else", "in", "inf", "nan"};
	Arena *a = &n->ir->arena;
	char *name = arena_strdup(a, s);

	for (char *c = name; *c; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		      (*c >= '0' && *c <= '9')))
			*c = '_';
	if (!*name || (*name >= '0' && *name <= '9'))
		name = arena_printf(a, "_%s", name);
	for (int i = 0; i < COUNT(words); i++)
		if (!strcmp(name, words[i]))
			name = arena_printf(a, "%s_", name);
	const char *tried = name;
	for (int k = 2; names_have(&n->taken, tried); k++)
		tried = arena_printf(a, "%s_%d", name, k);
	take_name(n, tried);
	return tried;
}

/* T1, T2.. or V1, V2.., the next that is free. */
static const char *counted_name(ProgramNames *n, char letter, int *count)
{
	const char *name;

	do {
		name = arena_printf(&n->ir->arena, "%c%d", letter, ++*count);
	} while (names_have(&n->taken, name));
	return name;
}

static void print_graph(Text *out, ProgramNames *names, int depth, int n, Node *const *order);

static void print_line(Text *out, int depth, const char *what, const char *a, const char *b)
{
	for (int k = 0; k < depth; k++)
		text_add(out, "\t");
	text_add(out, "%s %s = %s;\n", what, a, b);
}

/* The lines before the equations of a loop's body. An operand may be a variable of the loop around
 * and the node of another variable here: all operands' names are taken before any is given. */
static void print_variables(Text *out, ProgramNames *names, int depth, const Node *scan)
{
	const Scan *s = scan_of(scan);
	Node *const *operand = scan_operands(scan) + s->has_length;
	int n = scan_nvar(s);
	const char **outer = arena_alloc(&names->ir->arena, (size_t)(n + 1) * sizeof *outer);

	for (int k = 0; k < n; k++)
		outer[k] = names->by_id[operand[k]->id];
	for (int k = 0; k < n; k++) {
		const char *name = counted_name(names, 'V', &names->variable);
		const char *what = k < s->nslice	       ? "slice"
				   : k < s->nslice + s->nstate ? "state"
							       : "constant";
		print_line(out, depth, what, name, outer[k]);
		names->by_id[s->var[k]->id] = name;
	}
}

/* The results of scan's run among order[], as lines behind the equations of the body. */
static void print_results(Text *out, ProgramNames *names, int depth, const Node *scan, int n,
			  Node *const *order, const char *const *outer)
{
	const Scan *s = scan_of(scan);

	for (int k = 0; k < s->nstate; k++)
		print_line(out, depth, "next", names->by_id[s->var[s->nslice + k]->id],
			   names->by_id[s->next[k]->id]);
	for (int k = 0; k < n; k++) {
		if (order[k]->op != OP_SCAN || !scan_same_run(order[k], scan))
			continue;
		const ScanResult *r = order[k]->u.result;
		Node *value = r->final < 0 ? r->value : s->var[s->nslice + r->final];
		print_line(out, depth,
			   r->ends	  ? "stack and end"
			   : r->final < 0 ? "stack"
					  : "final",
			   outer[k], names->by_id[value->id]);
	}
}

/* The loop whose first result is order[at]. Its body's tensors may be tensors of the graph around
 * it, too: the names that they have there are kept meanwhile. */
static void print_scan(Text *out, ProgramNames *names, int depth, int n, Node *const *order, int at)
{
	const Scan *s = scan_of(order[at]);
	Arena *a = &names->ir->arena;
	Node **root = arena_alloc(a, (size_t)(s->nstate + n + 1) * sizeof *root), **body;
	const char **outer = arena_alloc(a, (size_t)n * sizeof *outer);
	int nroot = s->nstate, nvar = scan_nvar(s);

	if (s->nstate)
		memcpy(root, s->next, (size_t)s->nstate * sizeof *root);
	for (int k = 0; k < n; k++) {
		outer[k] = names->by_id[order[k]->id];
		if (order[k]->op == OP_SCAN && scan_same_run(order[k], order[at]))
			root[nroot++] = order[k]->u.result->value;
	}
	int nbody = graph_order(names->ir, nroot, root, &body);
	const char **was = arena_alloc(a, (size_t)(nbody + nvar + 1) * sizeof *was);
	for (int k = 0; k < nvar; k++)
		was[k] = names->by_id[s->var[k]->id];
	for (int k = 0; k < nbody; k++)
		was[nvar + k] = names->by_id[body[k]->id];

	text_add(out, "loop %lld", (long long)s->bound);
	if (s->has_length)
		text_add(out, ", %s of them", names->by_id[scan_operands(order[at])[0]->id]);
	text_add(out, "%s%s", s->backwards ? ", backwards" : "", s->recompute ? ", recompute" : "");
	text_add(out, " {\n");
	print_variables(out, names, depth + 1, order[at]);
	for (int k = 0; k < nbody; k++)
		if (body[k]->op != OP_INPUT)
			names->by_id[body[k]->id] = counted_name(names, 'T', &names->local);
	print_graph(out, names, depth + 1, nbody, body);
	print_results(out, names, depth + 1, order[at], n, order, outer);
	for (int k = 0; k < nbody; k++)
		names->by_id[body[k]->id] = was[nvar + k];
	for (int k = 0; k < nvar; k++)
		names->by_id[s->var[k]->id] = was[k];
	for (int k = 0; k < depth; k++)
		text_add(out, "\t");
	text_add(out, "}\n");
}

static bool is_later_result(int at, Node *const *order)
{
	for (int k = 0; k < at; k++)
		if (order[k]->op == OP_SCAN && scan_same_run(order[k], order[at]))
			return true;
	return false;
}

static void print_graph(Text *out, ProgramNames *names, int depth, int n, Node *const *order)
{
	Printer p = {.out = out,
		     .ir = names->ir,
		     .name = program_name,
		     .user = names,
		     .all_ranges = names->all_ranges};
	const char *tabs = "";
	for (int k = 0; k < depth; k++)
		tabs = arena_printf(&names->ir->arena, "%s\t", tabs);
	p.between = arena_printf(&names->ir->arena, ";\n%s", tabs);
	for (int i = 0; i < n; i++) {
		if (order[i]->op == OP_INPUT ||
		    (order[i]->op == OP_SCAN && is_later_result(i, order)))
			continue;
		text_add(out, "%s", tabs);
		if (order[i]->op == OP_SCAN) {
			print_scan(out, names, depth, n, order, i);
			continue;
		}
		print_comp(&p, order[i], names->by_id[order[i]->id], &names->short_ones);
		text_add(out, ";\n");
	}
}

/* The names by which the text knows the graph's tensors, by id. */
static const char **print_roots(Text *out, Ir *ir, int nroot, Node *const *roots,
				const char *const *rootname, bool all_ranges)
{
	Node **order;
	int n = graph_order(ir, nroot, roots, &order);
	ProgramNames names = {.ir = ir,
			      .all_ranges = all_ranges,
			      .by_id = arena_alloc(&ir->arena, ir->count * sizeof(char *))};

	for (int i = 0; i < nroot; i++)
		if (roots[i]->op != OP_INPUT && !names.by_id[roots[i]->id])
			names.by_id[roots[i]->id] = free_name(&names, rootname ? rootname[i] : "R");
	for (int i = 0; i < n; i++)
		if (order[i]->op == OP_INPUT)
			names.by_id[order[i]->id] = free_name(&names, order[i]->u.s);
	for (int i = 0; i < n; i++)
		if (!names.by_id[order[i]->id])
			names.by_id[order[i]->id] = counted_name(&names, 'T', &names.local);
	names.short_ones.list =
		arena_alloc(&ir->arena, (size_t)(names.taken.n + 1) * sizeof(char *));
	for (int i = 0; i < names.taken.n; i++) /* T1, T2.. are none */
		if (*names.taken.list[i] == 'v' ||
		    (strlen(names.taken.list[i]) <= 4 && *names.taken.list[i] >= 'a'))
			names.short_ones.list[names.short_ones.n++] = names.taken.list[i];
	print_graph(out, &names, 0, n, order);
	return names.by_id;
}

void print_program(Text *out, Ir *ir, int nroot, Node *const *roots, const char *const *rootname)
{
	print_roots(out, ir, nroot, roots, rootname, false);
}

void print_program_ranged(Text *out, Ir *ir, int nroot, Node *const *roots,
			  const char *const *rootname)
{
	print_roots(out, ir, nroot, roots, rootname, true);
}

const char **print_program_named(Text *out, Ir *ir, int nroot, Node *const *roots,
				 const char *const *rootname)
{
	return print_roots(out, ir, nroot, roots, rootname, true);
}

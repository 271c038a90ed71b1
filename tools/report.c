/* report.c - what the tool prints: equations with domains, types and sizes; values of small
 * tensors. All of a command's output is collected and printed at the end, so that an error prints
 * none. */
#include "tools/tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MOST = 1000 }; /* a tensor with more elements is not printed */

static void add_type(Text *out, const Node *t)
{
	text_add(out, "%s [", type_name((Type)t->type));
	for (int d = 0; d < tensor_rank(t); d++)
		text_add(out, d ? ",%lld" : "%lld", (long long)tensor_extent(t, d));
	text_add(out, "]");
}

/* ---- equations ---- */

typedef struct Names {
	int n;
	Node **tensor;
	const char **name;
} Names;

static const char *name_of(void *user, Node *t)
{
	Names *names = user;
	for (int k = 0; k < names->n; k++)
		if (names->tensor[k] == t)
			return names->name[k];
	return "?";
}

static bool name_is_taken(const Names *names, const char *name)
{
	for (int k = 0; k < names->n; k++)
		if (names->name[k] && !strcmp(names->name[k], name))
			return true;
	return false;
}

/* Inputs keep their names, roots get theirs, the others T1, T2 ... */
static Names names_give(Ir *ir, int n, Node **order, int nroot, Node *const *roots,
			const char *const *rootname)
{
	Names names = {n, order, take(arena_alloc(&ir->arena, (size_t)n * sizeof *names.name))};
	for (int k = 0; k < n; k++) {
		if (order[k]->op == OP_INPUT)
			names.name[k] = order[k]->u.s;
		for (int r = 0; r < nroot && !names.name[k]; r++)
			if (roots[r] == order[k])
				names.name[k] = rootname[r];
	}
	int local = 0;
	for (int k = 0; k < n; k++) {
		const char *name = names.name[k];
		while (!name) {
			name = take(arena_printf(&ir->arena, "T%d", ++local));
			if (name_is_taken(&names, name))
				name = NULL;
		}
		names.name[k] = name;
	}
	return names;
}

static void add_tensor(Text *out, Ir *ir, Node *t, const Names *names)
{
	if (t->op == OP_INPUT) {
		text_add(out, "%s is ", t->u.s);
		add_type(out, t);
		text_add(out, ", %zu bytes\n", tensor_bytes(t));
		return;
	}
	print_equation(out, ir, t, name_of, (void *)names);
	text_add(out, "\n\tis ");
	add_type(out, t);
	text_add(out, ", %zu bytes; domain ", tensor_bytes(t));
	for (int k = 0; k < comp_naxis(t); k++)
		text_add(out, k ? "x%lld" : "%lld", (long long)axis_extent(comp_axis(t, k)));
	text_add(out, "%s%.15g point%s\n", comp_naxis(t) ? " = " : "", comp_points(t),
		 comp_points(t) == 1 ? "" : "s");
}

static int program_add(Text *out, Ir *ir, int nroot, Node *const *roots,
		       const char *const *rootname)
{
	Node **order;
	IR_ENTER(ir, -1);
	int n = graph_order(ir, nroot, roots, &order);
	if (n >= 0) {
		Names names = names_give(ir, n, order, nroot, roots, rootname);
		for (int input = 1; input >= 0; input--)
			for (int k = 0; k < n; k++)
				if ((order[k]->op == OP_INPUT) == input)
					add_tensor(out, ir, order[k], &names);
		for (int r = 0; r < nroot; r++) /* one tensor under two names, or an operand */
			for (int k = 0; k < n; k++)
				if (order[k] == roots[r] && strcmp(names.name[k], rootname[r]))
					text_add(out, "%s is %s\n", rootname[r], names.name[k]);
	}
	IR_LEAVE(ir);
	return n;
}

void report_program(Text *out, Ir *ir, int nroot, Node *const *roots, const char *const *names)
{
	if (program_add(out, ir, nroot, roots, names) < 0)
		die(STATUS_WRONG, "%s", ir->err.text);
}

/* ---- values ---- */

/* The fewest digits that give the number back. */
static void add_value(Text *out, Type type, const void *data, size_t i)
{
	static const int digits[RICCI_NTYPES] = {
		[RICCI_F32] = 9, [RICCI_F64] = 17, [RICCI_BF16] = 4, [RICCI_F16] = 5};
	if (!type_is_float(type)) {
		text_add(out, "%lld", (long long)type_load_int(type, data, i));
		return;
	}
	double v = type_load(type, data, i);
	char s[40];
	if (v > -1e6 && v < 1e6 && v == (int)v) { /* 10, not 1e+01 */
		text_add(out, "%.0f", v);
		return;
	}
	for (int n = 1; n <= digits[type]; n++) {
		snprintf(s, sizeof s, "%.*g", n, v);
		double w = strtod(s, NULL);
		if (w == v || (type == RICCI_F32 && (float)w == (float)v))
			break;
	}
	text_add(out, "%s", s);
}

static void add_block(Text *out, const Node *t, const void *data, int d, size_t *i)
{
	int rank = tensor_rank(t);
	if (d == rank) {
		add_value(out, (Type)t->type, data, (*i)++);
		return;
	}
	text_add(out, "[");
	for (int64_t k = 0; k < tensor_extent(t, d); k++) {
		if (k && d == rank - 1)
			text_add(out, " ");
		else if (k)
			text_add(out, "%.*s%*s", rank - 1 - d, "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
				 d + 1, "");
		add_block(out, t, data, d + 1, i);
	}
	text_add(out, "]");
}

void report_values(Text *out, const char *name, const Node *t, const void *data)
{
	text_add(out, "%s is ", name);
	add_type(out, t);
	if (tensor_size(t) > VALUES_MOST) {
		text_add(out, ", %lld elements: too many to print, -o %s=FILE.npy keeps them\n",
			 (long long)tensor_size(t), name);
		return;
	}
	size_t i = 0;
	text_add(out, "\n");
	add_block(out, t, data, 0, &i);
	text_add(out, "\n");
}

void report_flush(Text *out)
{
	if (out->failed)
		take(NULL);
	if ((out->n && fwrite(out->s, 1, out->n, stdout) != out->n) || fflush(stdout))
		die(STATUS_WRONG, "standard output: %s", strerror(errno));
	text_free(out);
}

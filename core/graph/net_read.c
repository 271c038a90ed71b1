/* net_read.c - the text of net_print to a graph. Input: text, from files: anything may be wrong in it.
 * Output: a graph with the inputs, parameters and states by their names, and the outputs' handles.
 * Invariant: names are known from the line that makes them to the end of their block. */
#include "core/graph/graph.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_NESTED = 16 };
typedef struct Known {
	const char *name;
	Node *node;
} Known;
typedef struct Reader {
	ricci_graph *g;
	Ir *ir;
	ReadNet *net;
	char *at; /* the next line */
	int line; /* the number of the one before */
	int nknown, room, output_room;
	Known *known;
} Reader;

_Noreturn static void fail(Reader *r, const char *what, const char *name)
{
	error_set(&r->ir->err, RICCI_EFORMAT, "line %d of the net: %s%s", r->line, what, name);
	longjmp(*r->ir->arena.oom, 1);
}

/* The next line without its indentation; NULL at the end. */
static char *line_next(Reader *r)
{
	char *s = r->at;

	if (!*s)
		return NULL;
	r->at = s + strcspn(s, "\n");
	if (*r->at)
		*r->at++ = 0;
	r->line++;
	return s + strspn(s, "\t");
}

/* The next word of *s, ended in place; "" at the end. A line's last one may end with ";". */
static char *word(char **s)
{
	char *w = *s + strspn(*s, " "), *end = w + strcspn(w, " ;");

	*s = *end ? end + 1 : end;
	*end = 0;
	return w;
}

/* "name" with its octal numbers, in place. */
static char *quoted(Reader *r, char *s)
{
	char *from = s + strspn(s, " "), *to, *out;

	if (*from++ != '"')
		fail(r, "a name in quotes is missing", "");
	for (to = out = from; *from && *from != '"'; from++)
		if (*from == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to++ = (char)(((from[1] - '0') * 8 + from[2] - '0') * 8 + from[3] - '0');
			from += 3;
		} else {
			*to++ = *from;
		}
	if (*from != '"')
		fail(r, "a name's quotes are not closed", "");
	*to = 0;
	return out;
}

static void know(Reader *r, const char *name, Node *n)
{
	r->known = arena_grow(&r->ir->arena, r->known, r->nknown, &r->room, sizeof *r->known);
	r->known[r->nknown++] = (Known){arena_strdup(&r->ir->arena, name), n};
}

static Node *node_of(Reader *r, const char *name)
{
	for (int k = r->nknown - 1; k >= 0; k--)
		if (!strcmp(r->known[k].name, name))
			return r->known[k].node;
	fail(r, "there is no tensor ", name);
}

static int64_t number(Reader *r, const char *s, char **end, int64_t low)
{
	int64_t v = strtoll(s, end, 10);

	if (*end == s || v < low)
		fail(r, "a number is wrong: ", s);
	return v;
}

static void read_declaration(Reader *r, const char *role, char *s)
{
	char *name = word(&s), *type_text = word(&s), *shape = word(&s), *end;
	int64_t extent[RICCI_MAX_RANK];
	int rank = 0;
	Type type;
	ricci_tensor *t;

	if (!type_parse(type_text, &type))
		fail(r, "an unknown data type: ", type_text);
	for (char *p = shape; strcmp(shape, "scalar");) {
		if (rank == RICCI_MAX_RANK)
			fail(r, "too many dimensions", "");
		extent[rank++] = number(r, p, &end, 1);
		if (!*end)
			break;
		if (*end != 'x')
			fail(r, "a wrong shape: ", shape);
		p = end + 1;
	}
	char *range = *s == '"' ? NULL : word(&s), *full = quoted(r, s);
	if (*role == 'i')
		t = ricci_input(r->g, full, type, rank, extent);
	else
		t = (*role == 'p' ? ricci_param : ricci_state)(r->g, full, type, rank, extent,
							       ricci_constant(0));
	if (r->ir->err.code)
		longjmp(*r->ir->arena.oom, 1);
	if (range) {
		t->need_lo = number(r, range, &end, INT64_MIN);
		if (strncmp(end, "..", 2))
			fail(r, "a wrong range: ", range);
		t->need_hi = number(r, end + 2, &end, t->need_lo);
	}
	know(r, name, t->node);
}

/* One equation, with the values before it. */
static void read_equation(Reader *r, const char *text)
{
	Notation n;

	notation_parse(r->ir, text, &n);
	Node **operand = arena_alloc(&r->ir->arena, ((size_t)n.noperand + 1) * sizeof *operand);
	for (int k = 0; k < n.noperand; k++)
		operand[k] = node_of(r, n.operand[k]);
	notation_bind(&n, operand);
	for (int k = 0; k < n.nequation; k++)
		know(r, n.assigned[k], n.tensor[k]);
}

/* ---- loops ---- */

typedef struct Result { /* a line behind the equations of a body */
	char kind;	/* f final, s stack, e stack and end */
	const char *name, *value;
	Node *node; /* of the body */
} Result;
typedef struct LoopText {
	Scan spec;
	Node *length, **operand; /* operand: one each variable */
	int nvar, nresult, var_room, operand_room, next_room, result_room, nnext;
	Node **next, **next_of;
	int next_of_room;
	Result *result;
} LoopText;

static void read_block(Reader *r, LoopText *l, int depth);

static void read_head(Reader *r, LoopText *l, char *s)
{
	char *end;

	l->spec.bound = number(r, s, &end, 1);
	s = end;
	while (*s && strcmp(s, " {")) {
		char *part = s + strspn(s, ", ");
		s = part + strcspn(part, " ,");
		if (!strncmp(part, "backwards", 9)) {
			l->spec.backwards = true;
		} else if (!strncmp(part, "recompute", 9)) {
			l->spec.recompute = true;
		} else if (!strncmp(s, " of them", 8)) {
			*s = 0;
			l->spec.has_length = true;
			l->length = node_of(r, part);
			s += 8;
			if (!*s)
				break;
		} else {
			fail(r, "a loop's head is wrong: ", part);
		}
	}
	if (strcmp(s, " {"))
		fail(r, "a loop's { is missing", "");
}

/* "V = operand": a variable of the kind that has `drop` dimensions less. */
static void read_variable(Reader *r, LoopText *l, char *s, int drop)
{
	Arena *a = &r->ir->arena;
	char *name = word(&s), *equal = word(&s);
	Node *t = node_of(r, word(&s));
	int64_t shape[RICCI_MAX_RANK];

	if (strcmp(equal, "=") || tensor_rank(t) < drop)
		fail(r, "a loop's variable is wrong: ", name);
	if (drop && tensor_extent(t, 0) != l->spec.bound)
		fail(r, "a slice has not as many rows as the loop has steps: ", name);
	for (int d = drop; d < tensor_rank(t); d++)
		shape[d - drop] = tensor_extent(t, d);
	Node *v = node_input(r->ir, arena_printf(a, "%%%s", name), (Type)t->type,
			     tensor_rank(t) - drop, shape);
	graph_handle(r->g, v)->role = ROLE_VARIABLE;
	l->spec.var = arena_grow(a, l->spec.var, l->nvar, &l->var_room, sizeof(Node *));
	l->operand = arena_grow(a, l->operand, l->nvar, &l->operand_room, sizeof(Node *));
	l->spec.var[l->nvar] = v;
	l->operand[l->nvar++] = t;
	know(r, name, v);
}

static void read_next(Reader *r, LoopText *l, char *s)
{
	Arena *a = &r->ir->arena;
	Node *v = node_of(r, word(&s));
	char *equal = word(&s);

	l->next_of = arena_grow(a, l->next_of, l->nnext, &l->next_of_room, sizeof(Node *));
	l->next = arena_grow(a, l->next, l->nnext, &l->next_room, sizeof(Node *));
	l->next_of[l->nnext] = v;
	l->next[l->nnext] = node_of(r, word(&s));
	if (strcmp(equal, "=") || !tensor_same_shape(v, l->next[l->nnext]) ||
	    v->type != l->next[l->nnext]->type)
		fail(r, "a state's next value has another type or shape", "");
	l->nnext++;
}

static void read_result(Reader *r, LoopText *l, char kind, char *s)
{
	char *name = word(&s), *equal = word(&s), *value = word(&s);

	if (strcmp(equal, "="))
		fail(r, "a loop's result is wrong: ", name);
	l->result = arena_grow(&r->ir->arena, l->result, l->nresult, &l->result_room,
			       sizeof *l->result);
	l->result[l->nresult++] =
		(Result){kind, arena_strdup(&r->ir->arena, name), NULL, node_of(r, value)};
}

/* A line of a loop's block that is no equation; false: it is one. */
static bool read_loop_line(Reader *r, LoopText *l, char *s)
{
	static const char *const kind[] = {"slice ", "state ", "constant "};

	for (int k = 0; k < COUNT(kind); k++)
		if (!strncmp(s, kind[k], strlen(kind[k]))) {
			int *n = k == 0	  ? &l->spec.nslice
				 : k == 1 ? &l->spec.nstate
					  : &l->spec.nconst;
			if ((k < 2 && l->spec.nconst) || (k < 1 && l->spec.nstate))
				fail(r, "slices come before states before constants", "");
			read_variable(r, l, s + strlen(kind[k]), k == 0);
			++*n;
			return true;
		}
	if (!strncmp(s, "next ", 5))
		read_next(r, l, s + 5);
	else if (!strncmp(s, "stack and end ", 14))
		read_result(r, l, 'e', s + 14);
	else if (!strncmp(s, "stack ", 6))
		read_result(r, l, 's', s + 6);
	else if (!strncmp(s, "final ", 6))
		read_result(r, l, 'f', s + 6);
	else
		return false;
	return true;
}

static int state_of(Reader *r, const LoopText *l, const Node *v)
{
	for (int k = 0; k < l->spec.nstate; k++)
		if (l->spec.var[l->spec.nslice + k] == v)
			return k;
	fail(r, "a loop's result is of no state", "");
}

static void loop_close(Reader *r, LoopText *l)
{
	Ir *ir = r->ir;
	Scan *s = &l->spec;
	Node **operand = arena_alloc(&ir->arena, ((size_t)l->nvar + 2) * sizeof *operand);
	Node **stacked = arena_alloc(&ir->arena, ((size_t)l->nresult + 1) * sizeof *stacked);
	int nstacked = 0;

	if (l->nnext != s->nstate)
		fail(r, "a loop has not one next value for each state", "");
	s->next = arena_alloc(&ir->arena, ((size_t)s->nstate + 1) * sizeof *s->next);
	for (int k = 0; k < l->nnext; k++)
		s->next[state_of(r, l, l->next_of[k])] = l->next[k];
	for (int k = 0; k < s->nstate; k++)
		if (!s->next[k])
			fail(r, "a state has two next values", "");
	operand[0] = l->length;
	for (int k = 0; k < l->nvar; k++)
		operand[s->has_length + k] = l->operand[k];
	for (int k = 0; k < l->nresult; k++)
		if (l->result[k].kind == 's')
			stacked[nstacked++] = l->result[k].node;
	ScanCall call = scan_close(ir, s, operand, nstacked, stacked, true);
	nstacked = 0;
	for (int k = 0; k < l->nresult; k++) {
		const Result *x = &l->result[k];
		know(r, x->name,
		     x->kind == 's'   ? scan_stack(ir, &call, call.result[nstacked++])
		     : x->kind == 'f' ? scan_final(ir, &call, state_of(r, l, x->node))
				      : scan_ends(ir, &call, state_of(r, l, x->node)));
	}
}

static void read_loop(Reader *r, char *s, int depth)
{
	LoopText l = {0};
	int known = r->nknown;

	if (depth == MOST_NESTED)
		fail(r, "loops are nested too deeply", "");
	read_head(r, &l, s);
	read_block(r, &l, depth + 1);
	r->nknown = known;
	loop_close(r, &l);
}

/* ---- the whole ---- */

static void read_output(Reader *r, char *s)
{
	ReadNet *net = r->net;
	Arena *a = &r->ir->arena;
	Node *n = node_of(r, word(&s));
	int room = r->output_room;

	net->output = arena_grow(a, net->output, net->noutput, &room, sizeof(ricci_tensor *));
	net->name = arena_grow(a, net->name, net->noutput, &r->output_room, sizeof(char *));
	net->output[net->noutput] = graph_handle(r->g, n);
	net->name[net->noutput++] = arena_strdup(a, quoted(r, s));
}

static bool read_graph_line(Reader *r, char *s)
{
	static const char *const role[] = {"input ", "param ", "state "};

	for (int k = 0; k < COUNT(role); k++)
		if (!strncmp(s, role[k], 6)) {
			read_declaration(r, role[k], s + 6);
			return true;
		}
	if (!strcmp(s, "precision bf16"))
		r->g->precision = RICCI_BF16;
	else if (!strcmp(s, "precision f16"))
		r->g->precision = RICCI_F16;
	else if (!strcmp(s, "precision tf32"))
		r->g->precision = RICCI_TF32;
	else if (!strcmp(s, "rounding stochastic"))
		r->g->rounding = RICCI_STOCHASTIC;
	else if (!strncmp(s, "output ", 7))
		read_output(r, s + 7);
	else
		return false;
	return true;
}

/* Lines up to the loop's end (l), or the text's (NULL). */
static void read_block(Reader *r, LoopText *l, int depth)
{
	char *s, *values = NULL;

	while ((s = line_next(r)) && (!l || strcmp(s, "}"))) {
		if (l ? read_loop_line(r, l, s) : read_graph_line(r, s))
			continue;
		if (!strncmp(s, "loop ", 5)) {
			read_loop(r, s + 5, depth);
			continue;
		}
		/* "v1 = ..;" belongs to the equation that follows, "Y[i] = ..;" */
		bool value = !strncmp(s + strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_"
						    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
				      " = ", 3);
		values = arena_printf(&r->ir->arena, "%s%s\n", values ? values : "", s);
		if (value)
			continue;
		read_equation(r, values);
		values = NULL;
	}
	if (values)
		fail(r, "an equation is missing at the end of its block", "");
	if (l && !s)
		fail(r, "a loop is not closed", "");
}

static void read_entered(Reader *r, const char *text)
{
	IR_ENTER(r->ir, );
	r->at = arena_strdup(&r->ir->arena, text);
	char *first = line_next(r);
	if (!first || strcmp(first, "ricci net 1"))
		fail(r, "it is not the text of a net of this version", "");
	read_block(r, NULL, 0);
	if (!r->net->noutput)
		fail(r, "the net has no output", "");
	IR_LEAVE(r->ir);
}

int net_read(ReadNet *net, const char *text, Error *err)
{
	*net = (ReadNet){.g = ricci_graph_new()};
	if (!net->g)
		return error_set(err, RICCI_ENOMEM, "out of memory for a net");
	Reader *r = mem_zalloc(sizeof *r);
	Error *own = &net->g->ir.err;
	if (r) {
		*r = (Reader){.g = net->g, .ir = &net->g->ir, .net = net};
		read_entered(r, text);
	}
	int code = !r ? error_set(err, RICCI_ENOMEM, "out of memory for a net") : own->code;
	if (code && r && (code == RICCI_ENOMEM || code == RICCI_EFORMAT))
		error_set(err, code, "%s", own->text);
	else if (code && r)
		code = error_set(err, RICCI_EFORMAT, "line %d of the net: %s", r->line, own->text);
	mem_free(r);
	if (code) {
		ricci_graph_free(net->g);
		*net = (ReadNet){0};
	}
	return code;
}

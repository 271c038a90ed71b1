/* loop.c - loops run by kernels: a body's program, step after step.
 *
 * Input: the results of one run of a Scan. Its body becomes a program of its own, compiled once
 * whatever the length. The body's variables are storages that are pointed at rows of the operands,
 * its outputs cells that are pointed at rows of the stacks, so that a step copies nothing but
 * states that can be nowhere else. Where a state is, and its next value goes:
 *	in place     its kernel writes over the old value
 *	kept         what it was before each step is wanted: the next row of that stack, of which
 *		     the last may be missing
 *	stacked      its next value is an output of the body: the row where that is
 *	alternating  to and fro between the result and a place of its own, so that the last value
 *		     ends in the result
 */
#include "runtime/program/program.h"
#include <string.h>

typedef enum { CARRY_IN_PLACE, CARRY_KEPT, CARRY_STACKED, CARRY_ALTERNATING } CarryHow;
typedef struct Carry { /* a state */
	CarryHow how;
	Storage *var;
	const Cell *next; /* of the body */
	int first, last;  /* buffers of the run: the initial value and the result; -1: not wanted */
	const struct Stack *kept; /* of what it was before each step */
	size_t offset[2];	  /* its own places in the loop's memory */
	char *own[2], *target;	  /* target: for its next value in this step */
} Carry;
typedef struct Stack { /* a result with a row for each step */
	const ScanResult *of;
	int buffer;  /* of the run */
	Cell *cell;  /* of the body; NULL: the rows are those before a kept state's steps */
	bool copied; /* another stack holds the cell */
	size_t row;  /* bytes */
} Stack;
struct Loop {
	const Scan *scan;
	Within within;
	ProgramSpec spec;
	Program *body;
	Storage *var;
	int nstack;
	Stack *stack;
	Carry *carry;
	size_t bytes;  /* of its memory: the body's arena, then the states' own places */
	int64_t steps; /* its length, where that is known before the program around it runs */
	Arena memory;  /* of the arrays */
};

/* ---- building ---- */
static int variable_count(const Scan *s)
{
	return s->nslice + s->nstate + s->nconst;
}

static Storage *loop_find(void *user, Node *input)
{
	Loop *l = user;

	for (int k = 0; k < variable_count(l->scan); k++)
		if (l->var[k].node == input)
			return &l->var[k];
	return NULL;
}

static bool loop_arrays(Loop *l, const ProgramSpec *outer, int nresult)
{
	const Scan *s = l->scan;
	size_t nvar = (size_t)variable_count(s) + 1, nroot = nvar + (size_t)nresult;
	Arena *a = &l->memory;

	l->var = arena_alloc(a, nvar * sizeof *l->var);
	l->carry = arena_alloc(a, nvar * sizeof *l->carry);
	l->stack = arena_alloc(a, ((size_t)nresult + 1) * sizeof *l->stack);
	l->spec = (ProgramSpec){.ir = outer->ir,
				.root = arena_alloc(a, nroot * sizeof *l->spec.root),
				.assigned = arena_alloc(a, nroot * sizeof *l->spec.assigned),
				.find = loop_find,
				.user = l,
				.request = outer->request,
				.threads = outer->threads,
				.timing = outer->timing,
				.device = outer->device,
				.precision = outer->precision,
				.by_chance = outer->by_chance,
				.within = &l->within};
	return l->var && l->carry && l->stack && l->spec.root && l->spec.assigned;
}

/* The state that the stack of `value` keeps; NULL: none. */
static Carry *loop_kept(Loop *l, const Node *value)
{
	const Scan *s = l->scan;

	for (int k = 0; k < s->nstate; k++)
		if (s->var[s->nslice + k] == value)
			return &l->carry[k];
	return NULL;
}

static void loop_result(Loop *l, const Node *n, int buffer)
{
	const ScanResult *r = n->u.result;
	Carry *kept = loop_kept(l, r->value);

	if (r->final >= 0) {
		l->carry[r->final].last = buffer;
		return;
	}
	l->stack[l->nstack] = (Stack){.of = r, .buffer = buffer, .row = tensor_bytes(r->value)};
	if (kept) {
		kept->kept = &l->stack[l->nstack];
		kept->var->kept = true;
	} else {
		l->spec.root[l->spec.noutput++] = r->value;
	}
	l->nstack++;
}

/* The roots of the body, and where they belong among the run's buffers. */
static void loop_roots(Loop *l, const Subgraph *sub)
{
	const Scan *s = l->scan;
	ProgramSpec *spec = &l->spec;

	for (int k = 0; k < variable_count(s); k++)
		l->var[k] = (Storage){.node = s->var[k], .bytes = tensor_bytes(s->var[k])};
	for (int k = 0; k < s->nstate; k++)
		l->carry[k] = (Carry){.var = &l->var[s->nslice + k],
				      .first = s->has_length + s->nslice + k,
				      .last = -1};
	for (int k = 0; k < sub->nmember; k++)
		loop_result(l, sub->member[k], sub->ninput + k);
	for (int k = 0; k < s->nstate; k++) {
		spec->root[spec->noutput + k] = s->next[k];
		spec->assigned[k] = l->carry[k].var;
	}
	spec->nassign = s->nstate;
}

static CarryHow carry_how(const Carry *c)
{
	if (c->kept)
		return CARRY_KEPT;
	if (c->next->kind == CELL_OUTPUT)
		return CARRY_STACKED;
	return c->next->kind == CELL_NEXT && c->next->storage == c->var && c->next->in_place
		       ? CARRY_IN_PLACE
		       : CARRY_ALTERNATING;
}

/* The body's cells of stacks and states, and the memory that they need. */
static void loop_cells(Loop *l)
{
	Program *b = l->body;
	int output = 0;

	for (int k = 0; k < l->nstack; k++) {
		Stack *st = &l->stack[k];
		bool kept = false;

		for (int i = 0; i < l->scan->nstate; i++)
			kept = kept || l->carry[i].kept == st;
		if (kept)
			continue;
		st->cell = &b->cell[b->root[output++]];
		st->copied = st->cell->kind != CELL_OUTPUT;
		for (int i = 0; i < k; i++)
			st->copied = st->copied || l->stack[i].cell == st->cell;
	}
	l->steps = l->scan->bound;
	l->bytes = align_up(b->arena_bytes);
	for (int k = 0; k < l->scan->nstate; k++) {
		Carry *c = &l->carry[k];

		c->next = &b->cell[b->root[output + k]];
		c->how = carry_how(c);
		for (int i = 0; i < 2; i++) {
			c->offset[i] = l->bytes;
			if (i ? c->how == CARRY_ALTERNATING
			      : c->how != CARRY_STACKED && c->last < 0)
				l->bytes += align_up(c->var->bytes);
		}
	}
}

Loop *loop_new(const ProgramSpec *outer, const Subgraph *sub, Error *err)
{
	Loop *l = mem_zalloc(sizeof *l);

	if (l) {
		l->scan = scan_of(sub->member[0]);
		l->within = (Within){sub->member[0], outer->within};
	}
	if (!l || !loop_arrays(l, outer, sub->nmember)) {
		loop_free(l);
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	loop_roots(l, sub);
	if (!(l->body = program_new(&l->spec, err))) {
		loop_free(l);
		return NULL;
	}
	loop_cells(l);
	return l;
}

void loop_free(Loop *l)
{
	if (!l)
		return;
	program_free(l->body);
	arena_free(&l->memory);
	mem_free(l);
}

Program *loop_program(Loop *l)
{
	return l->body;
}

size_t loop_bytes(const Loop *l)
{
	return l->bytes ? l->bytes : 1;
}

void loop_bind(Loop *l, char *arena)
{
	program_bind(l->body, arena);
	for (int k = 0; k < l->scan->nstate; k++)
		for (int i = 0; i < 2; i++)
			l->carry[k].own[i] = arena + l->carry[k].offset[i];
}

/* ---- the length ---- */
/* Can't a loop's length be wrong, from what its node says? */
static bool length_sure(const Node *length, int64_t bound)
{
	const Node *body = length->op == OP_COMP ? comp_body(length) : NULL;

	return body && comp_reduce(length) == RED_NONE && body->lo >= 0 && body->hi <= bound;
}

bool loop_may_fail(const Program *p, const Run *r)
{
	const Loop *l = r->loop;
	const Cell *c = cell_whole(&p->cell[r->cell[0]]);
	bool fails = l->scan->has_length && !length_sure(c->node, l->scan->bound) &&
		     (p->inner || c->kind != CELL_STATE);

	for (int i = 0; i < l->body->nrun && !fails; i++)
		fails = l->body->run[i].loop && loop_may_fail(l->body, &l->body->run[i]);
	return fails;
}

/* Is the length among the data that p finds? */
static bool length_given(const Program *p, const Run *r)
{
	return cell_whole(&p->cell[r->cell[0]])->kind == CELL_STATE;
}

bool loop_known(const Program *p, const Run *r)
{
	const Program *b = r->loop->body;
	bool known = !r->loop->scan->has_length || (!p->inner && length_given(p, r));

	for (int i = 0; i < b->nrun && known; i++)
		known = !b->run[i].loop || loop_known(b, &b->run[i]);
	return known;
}

int64_t loop_steps(const Loop *l)
{
	return l->steps;
}

const Cell *loop_cell(const Loop *l, const ScanResult *r)
{
	const Carry *c = r->final >= 0 ? &l->carry[r->final] : NULL;
	const Cell *cell = NULL;

	for (int k = 0; k < l->scan->nstate; k++)
		if (l->carry[k].kept && l->carry[k].kept->of == r)
			c = &l->carry[k];
	for (int k = 0; k < l->nstack; k++)
		cell = l->stack[k].of == r ? l->stack[k].cell : cell;
	cell = !cell && c ? c->next : cell;
	cell = cell ? cell_whole(cell) : NULL;
	return cell && cell->kind != CELL_STATE ? cell : NULL;
}

int64_t run_steps(const Run *r)
{
	return r->loop ? r->loop->scan->bound : 1;
}

static int loop_length(const Program *p, const Run *r, int64_t *n, Error *err)
{
	const Scan *s = r->loop->scan;
	const Cell *cell = &p->cell[r->cell[0]], *c = cell_whole(cell);
	Type type = (Type)c->node->type;
	int64_t length = 0;
	int code;

	*n = s->bound;
	if (!s->has_length)
		return 0;
	code = device_copy(p->device, COPY_OUT, &length, cell_data(cell), type_size(type), err);
	if (code)
		return code;
	*n = type_load_int(type, &length, 0);
	return scan_length_check(s, *n, c->node->op == OP_INPUT ? c->node->u.s : NULL, err);
}

int loops_check(const Program *p, Error *err)
{
	int code = 0;

	for (int i = 0; i < p->nrun && !code; i++) {
		const Run *r = &p->run[i];

		if (r->loop && length_given(p, r))
			code = loop_length(p, r, &r->loop->steps, err);
	}
	return code;
}

/* ---- running ---- */
typedef struct Walk { /* a run of the loop */
	Loop *l;
	void *const *buf;
	int64_t n, i, t; /* steps; the present one's number, and its row */
	Error *err;
	int code; /* of copies */
} Walk;

static void walk_copy(Walk *w, void *to, const void *from, size_t bytes)
{
	if (!w->code)
		w->code = device_copy(w->l->body->device, COPY_WITHIN, to, from, bytes, w->err);
}

static char *row(const Walk *w, int buffer, int64_t t, size_t bytes)
{
	return (char *)w->buf[buffer] + (size_t)t * bytes;
}

static char *stack_row(const Walk *w, const Stack *st, int64_t t)
{
	return row(w, st->buffer, scan_row(st->of, t), st->row);
}

/* Where the state's last value goes. */
static char *carry_end(const Walk *w, const Carry *c)
{
	return c->last >= 0 ? w->buf[c->last] : c->own[0];
}

static void walk_begin(Walk *w)
{
	const Scan *s = w->l->scan;
	int64_t t = s->backwards ? w->n - 1 : 0;

	for (int k = s->nslice + s->nstate; k < variable_count(s); k++)
		w->l->var[k].data = w->buf[s->has_length + k];
	for (int k = 0; k < s->nstate; k++) {
		Carry *c = &w->l->carry[k];

		c->var->data = w->buf[c->first];
		if (c->how == CARRY_IN_PLACE)
			c->var->data = carry_end(w, c);
		else if (c->how == CARRY_KEPT && (w->n > 0 || c->kept->of->ends))
			c->var->data = stack_row(w, c->kept, t);
		if (c->var->data != w->buf[c->first])
			walk_copy(w, c->var->data, w->buf[c->first], c->var->bytes);
	}
}

static char *carry_target(const Walk *w, const Carry *c)
{
	bool last = w->i + 1 == w->n;

	if (c->how == CARRY_KEPT && (!last || c->kept->of->ends))
		return stack_row(w, c->kept, w->t + (w->l->scan->backwards ? -1 : 1));
	if (c->how == CARRY_ALTERNATING && (w->n - 1 - w->i) % 2)
		return c->own[1];
	return carry_end(w, c);
}

static void walk_aim(Walk *w)
{
	Loop *l = w->l;
	const Scan *s = l->scan;

	w->t = s->backwards ? w->n - 1 - w->i : w->i;
	for (int k = 0; k < s->nslice; k++)
		l->var[k].data = row(w, s->has_length + k, w->t, l->var[k].bytes);
	for (int k = 0; k < l->nstack; k++)
		if (l->stack[k].cell && !l->stack[k].copied)
			l->stack[k].cell->data = stack_row(w, &l->stack[k], w->t);
	for (int k = 0; k < s->nstate; k++) {
		Carry *c = &l->carry[k];

		c->target = c->how == CARRY_STACKED ? c->next->data : carry_target(w, c);
		c->var->spare = c->target;
	}
}

/* After a step: what its kernels did not write where it belongs is copied, then all states move. */
static void walk_move(Walk *w)
{
	Loop *l = w->l;

	for (int k = 0; k < l->nstack; k++)
		if (l->stack[k].cell && l->stack[k].copied)
			walk_copy(w, stack_row(w, &l->stack[k], w->t), cell_data(l->stack[k].cell),
				  l->stack[k].row);
	for (int k = 0; k < l->scan->nstate; k++) {
		const Carry *c = &l->carry[k];

		if (cell_data(c->next) != c->target)
			walk_copy(w, c->target, cell_data(c->next), c->var->bytes);
	}
	for (int k = 0; k < l->scan->nstate; k++)
		l->carry[k].var->data = l->carry[k].target;
}

static void walk_end(Walk *w)
{
	Loop *l = w->l;

	for (int k = 0; k < l->scan->nstate; k++) {
		const Carry *c = &l->carry[k];

		if (c->last >= 0 && c->var->data != w->buf[c->last])
			walk_copy(w, w->buf[c->last], c->var->data, c->var->bytes);
	}
	for (int k = 0; k < l->nstack; k++) {
		const Stack *st = &l->stack[k];

		if (!w->code)
			w->code = device_zero(l->body->device,
					      row(w, st->buffer, w->n + st->of->ends, st->row),
					      (size_t)(l->scan->bound - w->n) * st->row, w->err);
	}
}

int loop_run(const Program *p, Run *r, Pool *pool, RandomState rs, Tuner *tuner, Error *err)
{
	Walk w = {.l = r->loop, .buf = r->buf, .n = r->loop->steps, .err = err};
	int code = length_given(p, r) ? 0 : loop_length(p, r, &w.n, err);

	if (code)
		return code;
	w.l->body->again = p->again || r->again;
	if (r->again || r->repeated) /* which have one body, each its own memory */
		loop_bind(w.l, (char *)p->arena + r->offset);
	walk_begin(&w);
	for (w.i = 0; w.i < w.n && !code && !w.code; w.i++) {
		walk_aim(&w);
		w.l->body->iteration = w.t;
		w.l->body->turn = p->turn * w.l->scan->bound + w.t;
		code = program_run(w.l->body, pool, random_step(rs, w.l->scan->bound, w.t), tuner,
				   err);
		walk_move(&w);
	}
	walk_end(&w);
	return code ? code : w.code;
}

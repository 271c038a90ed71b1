/* program.c - equations one after the other, each over its whole domain; loops ("loop 3 {..}", as
 * ricci_show prints them, docs/loops.md) step by step, their bodies read anew in each. */
#include "tests/oracle/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory, errors, names */

typedef struct Chunk {
	struct Chunk *next;
	max_align_t data[];
} Chunk;

void *take(Oracle *o, size_t bytes)
{
	Chunk *c = calloc(1, sizeof *c + bytes);
	if (!c)
		fail(o, o->token, "out of memory");
	c->next = o->memory;
	o->memory = c;
	return c->data;
}

_Noreturn void fail(Oracle *o, const char *at, const char *format, ...)
{
	char what[200];
	va_list list;
	va_start(list, format);
	vsnprintf(what, sizeof what, format, list);
	va_end(list);
	snprintf(o->error, sizeof o->error, "%s, at \"%.60s\"", what, at);
	longjmp(o->stop, 1);
}

void step(Oracle *o, double n)
{
	o->steps -= n;
	if (o->steps < 0) {
		o->gave_up = true;
		longjmp(o->stop, 1);
	}
}

OracleTensor *tensor_find(const Oracle *o, const char *name)
{
	for (int k = o->ntensor - 1; k >= 0; k--)
		if (!strcmp(o->tensor[k].name, name))
			return &o->tensor[k];
	return NULL;
}

static const OracleTensor *tensor_needed(Oracle *o)
{
	const char *at = o->token, *name = token_name(o);
	OracleTensor *t = tensor_find(o, name);
	if (!t)
		fail(o, at, "no tensor is %s", name);
	t->read = true;
	return t;
}

/* Tensors keep their place in memory: expressions point at copies of what they read. */
static void tensor_add(Oracle *o, OracleTensor t)
{
	if (o->ntensor == o->room)
		fail(o, o->token, "too many tensors");
	o->tensor[o->ntensor++] = t;
}

static OracleTensor tensor_new(Oracle *o, const char *name, int type, int rank,
			       const int64_t *shape)
{
	OracleTensor t = {.name = name, .type = type, .rank = rank, .size = 1};
	for (int d = 0; d < rank; d++)
		t.size *= t.shape[d] = shape[d];
	step(o, (double)t.size);
	t.at = take(o, (size_t)t.size * sizeof *t.at + 1);
	return t;
}

/* ---- equations */

static Index *index_named(Equation *q, const char *name)
{
	for (int k = 0; k < q->nindex; k++)
		if (!strcmp(q->index[k].name, name))
			return &q->index[k];
	return NULL;
}

/* Those in e that are new, in order of appearance. */
static void indices_of(Oracle *o, Equation *q, Expr *e)
{
	Index *i = e->form == X_INDEX ? index_named(q, e->name) : NULL;
	if (e->form == X_VALUE && e->definition->seen != q) {
		e->definition->seen = q;
		indices_of(o, q, e->definition);
	}
	if (e->form == X_INDEX && !i) {
		if (q->nindex == ORACLE_INDICES)
			fail(o, e->at, "too many indices");
		i = &q->index[q->nindex++];
		i->name = e->name;
	}
	if (i)
		e->i = i - q->index;
	for (int k = 0; k < e->n; k++)
		indices_of(o, q, e->arg[k]);
}

static bool is_bare(const Equation *q, int d)
{
	return q->left[d]->form == X_INDEX && (!q->extent[d] || q->assign == SET);
}

static void indices_find(Oracle *o, Equation *q)
{
	for (int d = 0; d < q->rank; d++) {
		if (!is_bare(q, d) && q->left[d]->form == X_INDEX)
			indices_of(o, q, q->left[d]);
		if (!is_bare(q, d))
			continue;
		if (index_named(q, q->left[d]->name))
			fail(o, q->left[d]->at, "an index stands twice on the left");
		indices_of(o, q, q->left[d]);
		q->index[q->nindex - 1].left = true;
	}
	for (int d = 0; d < q->rank; d++) {
		if (!is_bare(q, d) && (q->assign == SET || q->assign == PRODUCT || !q->extent[d]))
			fail(o, q->left[d]->at, "an index name is missing");
		indices_of(o, q, q->left[d]);
	}
	indices_of(o, q, q->body);
	int n = q->nindex;
	for (int k = 0; k < q->nrange; k++) {
		Index *i = index_named(q, q->range[k].name);
		if (!i || i->high)
			fail(o, q->body->at, "a range of %s", q->range[k].name);
		i->low = q->range[k].low;
		i->high = q->range[k].high;
		if (i->low)
			indices_of(o, q, i->low);
		indices_of(o, q, i->high);
	}
	for (int k = 0; k < q->nindex; k++)
		if (k >= n || (q->assign == SET && !q->index[k].left))
			fail(o, q->body->at, "index %s is not on the left", q->index[k].name);
}

/* Is the point at hand within all ranges? */
static bool is_within(Oracle *o, Equation *q)
{
	for (int k = 0; k < q->nindex; k++) {
		const Index *i = &q->index[k];
		if (i->high && i->value >= value_of(o, i->high).i)
			return false;
		if (i->low && i->value < value_of(o, i->low).i)
			return false;
	}
	return true;
}

/* One point's value joins the element that the left side names. */
static void point_take(Oracle *o, Equation *q, OracleTensor *y, double *most)
{
	int64_t at = 0;
	bool anywhere = false;
	if (!is_within(o, q)) {
		if (q->assign == SET)
			fail(o, q->body->at, "'=' sets every element");
		return;
	}
	for (int d = 0; d < q->rank; d++) {
		OracleValue i = value_of(o, q->left[d]);
		anywhere = anywhere || is_lost(i);
		if (!is_lost(i) && (i.i < 0 || i.i >= y->shape[d]))
			fail(o, q->left[d]->at, "index %lld leaves the result", (long long)i.i);
		at = at * y->shape[d] + i.i;
	}
	OracleValue x = value_of(o, q->body);
	for (int64_t k = anywhere ? 0 : at; k < (anywhere ? y->size : at + 1); k++) {
		x.magnitude = anywhere ? INFINITY : x.magnitude;
		y->at[k] = reduce(q->assign, (Kind)y->type, y->at[k], x, &most[k]);
	}
}

/* The indices' values become those of the next point, the last index fastest; false at the end. */
static bool point_next(Equation *q)
{
	for (int k = q->nindex - 1; k >= 0; k--) {
		if (++q->index[k].value < q->index[k].first + q->index[k].extent)
			return true;
		q->index[k].value = q->index[k].first;
	}
	return false;
}

static void equation_run(Oracle *o, Equation *q)
{
	int64_t shape[ORACLE_RANK];
	indices_find(o, q);
	equation_types(o, q);
	equation_ranges(o, q);
	for (int d = 0; d < q->rank; d++) {
		const Index *i = &q->index[q->left[d]->i];
		shape[d] = is_bare(q, d) ? i->extent : value_of(o, q->extent[d]).i;
		if (is_bare(q, d) && i->first)
			fail(o, q->left[d]->at, "an index on the left starts at 0");
		if (q->extent[d] && value_of(o, q->extent[d]).i != shape[d])
			fail(o, q->left[d]->at, "'=' sets every element");
	}
	OracleTensor y = tensor_new(o, q->name, q->body->type, q->rank, shape);
	double *most = take(o, (size_t)y.size * sizeof *most + 1);
	for (int64_t k = 0; k < y.size; k++)
		y.at[k] = reduce_start(q->assign, (Kind)y.type);
	for (int k = 0; k < q->nindex; k++)
		q->index[k].value = q->index[k].first;
	o->element = 0;
	do {
		o->point++;
		point_take(o, q, &y, most);
		o->element++;
	} while (point_next(q));
	y.assigned = true;
	y.points = o->element;
	tensor_add(o, y);
}

/* ---- loops */

enum { LOOP_NAMES = 400 };

typedef struct LoopState {
	const char *name;
	OracleTensor now, next;
} LoopState;

typedef struct LoopResult {
	OracleTensor tensor;
	bool final, end; /* the last state; a stack whose last row is that */
	int state;	 /* -1: of any other tensor */
} LoopResult;

typedef struct Loop {
	int64_t bound, length, t;
	bool backwards;
	int nstate, nresult, result_at; /* result_at: of this step's lines */
	LoopState state[LOOP_NAMES];
	LoopResult result[LOOP_NAMES];
} Loop;

static void statements(Oracle *o, Loop *l);

static int state_named(const Loop *l, const char *name)
{
	int k = l->nstate - 1;
	while (k >= 0 && strcmp(l->state[k].name, name))
		k--;
	return k;
}

/* Row t of a tensor. */
static OracleTensor row_of(OracleTensor x, int64_t t)
{
	x.size /= x.shape[0];
	x.at += t * x.size;
	memmove(x.shape, x.shape + 1, sizeof *x.shape * (size_t)--x.rank);
	return x;
}

/* slice V = x; state V = x; constant V = x; */
static void loop_variable(Oracle *o, Loop *l)
{
	bool slice = token_take(o, "slice"), state = !slice && token_take(o, "state");
	if (!slice && !state)
		token_need(o, "constant");
	const char *name = token_name(o);
	token_need(o, "=");
	OracleTensor t = *tensor_needed(o);
	int k = state_named(l, name);
	if (state && k < 0)
		l->state[k = l->nstate++] = (LoopState){name, t, t};
	t = state ? l->state[k].now : slice ? row_of(t, l->t) : t;
	t.name = name;
	tensor_add(o, t);
}

/* stack Y = T; stack and end Y = V; final Y = V; */
static void loop_result(Oracle *o, Loop *l)
{
	bool final = token_take(o, "final"), end = false;
	if (!final) {
		token_need(o, "stack");
		end = token_take(o, "and") && token_take(o, "end");
	}
	const char *name = token_name(o);
	token_need(o, "=");
	const OracleTensor *t = tensor_needed(o);
	LoopResult *r = &l->result[l->result_at++];
	if (l->result_at > l->nresult) {
		int64_t shape[ORACLE_RANK + 1] = {l->bound + end};
		memcpy(shape + 1, t->shape, sizeof *shape * (size_t)t->rank);
		r->tensor = tensor_new(o, name, t->type, t->rank + !final, shape + final);
		r->final = final;
		r->end = end;
		r->state = state_named(l, t->name);
		l->nresult++;
	}
	if (!final && l->t < l->length)
		memcpy(r->tensor.at + (l->t + (end && l->backwards)) * t->size, t->at,
		       (size_t)t->size * sizeof *t->at);
}

static void loop_line(Oracle *o, Loop *l)
{
	if (token_take(o, "next")) {
		int k = state_named(l, token_name(o));
		token_need(o, "=");
		if (k < 0)
			fail(o, o->token, "no state is that");
		l->state[k].next = *tensor_needed(o);
	} else if (token_is(o, "final") || token_is(o, "stack")) {
		loop_result(o, l);
	} else {
		loop_variable(o, l);
	}
}

static void loop_head(Oracle *o, Loop *l)
{
	token_need(o, "loop");
	l->bound = l->length = token_whole(o);
	while (!token_take(o, "{")) {
		token_need(o, ",");
		if (token_take(o, "backwards"))
			l->backwards = true;
		else if (!token_take(o, "recompute")) {
			l->length = tensor_needed(o)->at[0].i;
			token_need(o, "of");
			token_need(o, "them");
		}
	}
	if (l->bound < 1 || l->length < 0 || l->length > l->bound)
		fail(o, o->token, "%lld steps", (long long)l->length);
}

/* Each step reads the body's text; one that isn't taken says at least what it would stack. */
static void loop_run(Oracle *o)
{
	Loop *l = take(o, sizeof *l);
	uint64_t seed = o->seed;
	loop_head(o, l);
	const char *body = o->token;
	int outside = o->ntensor;
	Named *named = o->named;
	for (int64_t k = 0; k < l->length || k == 0; k++) {
		l->t = l->backwards && l->length ? l->length - 1 - k : k;
		l->result_at = 0;
		o->seed = l->bound == 1 ? seed : seed_of_step(seed, l->t);
		o->at = body;
		token_next(o);
		statements(o, l);
		o->ntensor = outside;
		o->named = named;
		for (int s = 0; s < l->nstate && l->length; s++)
			l->state[s].now = l->state[s].next;
	}
	o->seed = seed;
	for (int k = 0; k < l->nresult; k++) {
		LoopResult *r = &l->result[k];
		if ((r->final || r->end) && r->state < 0)
			fail(o, o->token, "%s is of no state", r->tensor.name);
		const OracleTensor *last = r->state < 0 ? NULL : &l->state[r->state].now;
		int64_t row = r->end && !l->backwards ? l->length : 0;
		if (r->final || r->end)
			memcpy(r->tensor.at + row * last->size, last->at,
			       (size_t)last->size * sizeof *last->at);
		tensor_add(o, r->tensor);
	}
	token_need(o, "}");
}

/* ---- programs */

/* Up to the end of the text, or of the loop's body. */
static void statements(Oracle *o, Loop *l)
{
	while (o->length && !token_is(o, "}")) {
		const char *next = o->at + strspn(o->at, " \t\r\n");
		bool equation = *next == '[';
		if (!equation && token_is(o, "loop")) {
			loop_run(o);
			continue;
		}
		if (equation)
			equation_run(o, equation_read(o));
		else if (*next == '=')
			named_read(o);
		else if (l)
			loop_line(o, l);
		else
			fail(o, o->token, "an equation is missing");
		if (o->length)
			token_need(o, ";");
	}
}

/* A, B -> Y: */
static void signature_read(Oracle *o)
{
	const char *arrow = strstr(o->text, "->");
	if (!arrow)
		return;
	while (!token_take(o, "->")) {
		if (!tensor_find(o, token_name(o)))
			fail(o, o->token, "an operand is missing");
		token_take(o, ",");
	}
	o->result = take(o, (strlen(o->text) + 1) * sizeof *o->result);
	do
		o->result[o->nresult++] = token_name(o);
	while (token_take(o, ","));
	token_need(o, ":");
}

Oracle *oracle_run(const char *text, bool training, int noperand, const OracleTensor *operand,
		   double most)
{
	Oracle *o = calloc(1, sizeof *o);
	if (!o)
		return NULL;
	o->text = o->at = o->token = text;
	o->steps = most;
	o->training = training;
	o->room = noperand;
	for (const char *s = text; *s; s++)
		o->room += *s == '=';
	if (setjmp(o->stop)) {
		o->ntensor = 0;
		return o;
	}
	o->tensor = take(o, (size_t)(o->room + 1) * sizeof *o->tensor);
	for (int k = 0; k < noperand; k++)
		tensor_add(o, operand[k]);
	token_next(o);
	signature_read(o);
	statements(o, NULL);
	return o;
}

const char *oracle_error(const Oracle *o)
{
	return *o->error ? o->error : NULL;
}

bool oracle_gave_up(const Oracle *o)
{
	return o->gave_up;
}

const OracleTensor *oracle_tensor(const Oracle *o, const char *name)
{
	return tensor_find(o, name);
}

const OracleTensor *oracle_result(const Oracle *o, int k)
{
	if (o->result)
		return k < o->nresult && o->ntensor ? tensor_find(o, o->result[k]) : NULL;
	for (int i = 0; i < o->ntensor; i++)
		if (o->tensor[i].assigned && !o->tensor[i].read && k-- == 0)
			return &o->tensor[i];
	return NULL;
}

void oracle_free(Oracle *o)
{
	while (o->memory) {
		Chunk *c = o->memory;
		o->memory = c->next;
		free(c);
	}
	free(o);
}

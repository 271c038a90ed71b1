/* schedule.c - schedules as text, and the ones offered for a task.
 *
 * Input: a task. Output: a few schedules, the one that its structure suggests first. Invariant:
 * print and parse are inverse, and every offered schedule fits the task. */
#include "jit/internal.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *text;
	bool axis;
} step_info[STEP_COUNT] = {
#define STEP(name, text, axis, help) {text, axis},
#include "jit/steps.def"
#undef STEP
};

/* ---- text ---- */

void schedule_print(Text *out, const Schedule *s)
{
	for (int k = 0; k < s->n; k++) {
		const ScheduleStep *p = &s->step[k];
		text_add(out, "%s%s", k ? "; " : "", step_info[p->kind].text);
		if (step_info[p->kind].axis)
			text_add(out, " %d", p->axis);
		if (p->kind != STEP_VECTORISE && p->kind != STEP_UNROLL)
			text_add(out, " %lld", (long long)p->arg);
	}
}

bool step_has_axis(int kind)
{
	return step_info[kind].axis;
}

static const char *skip(const char *s)
{
	while (*s == ' ' || *s == '\t' || *s == '\n')
		s++;
	return s;
}

static bool parse_number(const char **s, int64_t *out)
{
	char *end;
	const char *p = skip(*s);
	*out = strtoll(p, &end, 10);
	*s = end;
	return end != p;
}

int schedule_parse(const char *text, Schedule *s, Error *err)
{
	memset(s, 0, sizeof *s);
	const char *p = skip(text);
	while (*p) {
		size_t n = strcspn(p, " \t\n;");
		int kind = 0;
		while (kind < STEP_COUNT && (strlen(step_info[kind].text) != n ||
					     strncmp(step_info[kind].text, p, n) != 0))
			kind++;
		if (kind == STEP_COUNT)
			return error_set(err, RICCI_ESYNTAX, "schedule: there is no step \"%.*s\"",
					 (int)n, p);
		int64_t axis = -1, arg = 0;
		bool wants_arg = kind != STEP_VECTORISE && kind != STEP_UNROLL;
		p += n;
		if ((step_info[kind].axis && !parse_number(&p, &axis)) ||
		    (wants_arg && !parse_number(&p, &arg)))
			return error_set(err, RICCI_ESYNTAX,
					 "schedule: step %d (%s) lacks a number", s->n + 1,
					 step_info[kind].text);
		if (s->n == COUNT(s->step))
			return error_set(err, RICCI_ESYNTAX, "schedule: more than %d steps",
					 COUNT(s->step));
		schedule_add(s, (StepKind)kind, (int)axis, arg);
		p = skip(p);
		if (*p && *p != ';')
			return error_set(err, RICCI_ESYNTAX,
					 "schedule: \";\" is missing before \"%.20s\"", p);
		if (*p)
			p = skip(p + 1);
	}
	return 0;
}

void schedule_add(Schedule *s, StepKind kind, int axis, int64_t arg)
{
	if (s->n < COUNT(s->step))
		s->step[s->n++] = (ScheduleStep){(int)kind, axis, arg};
}

bool schedule_is_new(const Schedule *offers, int n)
{
	for (int k = 0; k < n; k++)
		if (!memcmp(&offers[n], &offers[k], sizeof *offers))
			return false;
	return true;
}

/* ---- offers ---- */

/* Ways to run p as panels: the best few of ours, the libraries', our others. */
static int offer_panels(Problem *p, const Target *target, int room, Schedule *out, bool *first)
{
	enum { BEST = 3 };
	Schedule called[4];
	int n = contract_offers(p, target, room - COUNT(called), out, first);
	int ncalled = library_offers(p, target, COUNT(called), called);
	int best = n < BEST ? n : BEST;
	memmove(out + best + ncalled, out + best, (size_t)(n - best) * sizeof *out);
	memcpy(out + best, called, (size_t)ncalled * sizeof *out);
	return n + ncalled;
}

/* Results that are a good part of what the last cache holds may be written past it. */
static bool offer_stream(const Task *t, const Target *target, Schedule *s)
{
	int64_t least = (int64_t)target->l3 / 4;
	bool large = false;
	for (int k = 0; k < t->sub.nmember; k++)
		large |= t->sub.stored[k] && (int64_t)tensor_bytes(t->sub.member[k]) >= least;
	if (large && least)
		schedule_add(s, STEP_STREAM, 0, least);
	return large && least;
}

static int offers(Ir *ir, const Task *t, const Target *target, int room, Schedule *out)
{
	IR_ENTER(ir, 0);
	Tree tree = {.ir = ir, .next_axis = 64};
	Problem *p = arena_alloc(&ir->arena, sizeof *p);
	int n = 0;
	if (problem_init(p, &tree, &t->sub) == 0) {
		Schedule panels[16];
		bool first;
		/* No library is the first: opening it would delay every start. */
		int npanel = room > 1 ? offer_panels(p, target, COUNT(panels), panels, &first)
				      : contract_offers(p, target, 1, panels, &first);
		for (int k = 0; first && k < npanel && n < room; k++)
			out[n++] = panels[k];
		for (int v = 0; v < NEST_OFFERS && n < room; v++) {
			nest_offer(p, v, &out[n]);
			n += schedule_is_new(out, n);
		}
		if (p->red == RED_NONE && !p->scatter && n < room) {
			nest_offer(p, 0, &out[n]);
			n += offer_stream(t, target, &out[n]);
		}
		for (int k = 0; !first && k < npanel && n < room; k++)
			out[n++] = panels[k];
	}
	IR_LEAVE(ir);
	return n;
}

static int axes(Ir *ir, const Task *t)
{
	IR_ENTER(ir, 0);
	Tree tree = {.ir = ir, .next_axis = 64};
	Problem *p = arena_alloc(&ir->arena, sizeof *p);
	int n = problem_init(p, &tree, &t->sub) ? 0 : p->naxis;
	IR_LEAVE(ir);
	return n;
}

int schedule_axes(const Task *t)
{
	if (t->sub.rows)
		return 1;
	Ir ir;
	ir_init(&ir);
	int n = axes(&ir, t);
	ir_free(&ir);
	return n;
}

int schedule_offers(const Task *t, const Target *target, int room, Schedule *out)
{
	Ir ir;
	int n = 0;
	for (; t->sub.rows && n < room && n < NEST_OFFERS; n++) {
		memset(&out[n], 0, sizeof *out);
		schedule_add(&out[n], STEP_ROWS, 0, n);
	}
	if (n && n < room) {
		out[n] = out[0];
		n += offer_stream(t, target, &out[n]);
	}
	if (n)
		return n;
	ir_init(&ir);
	n = offers(&ir, t, target, room, out);
	ir_free(&ir);
	if (n == 0 && room > 0) {
		memset(out, 0, sizeof *out);
		n = 1; /* no steps: the plain nest */
	}
	return n;
}

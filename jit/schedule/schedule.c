/* schedule.c - schedules as text. Invariant: print and parse are inverse. */
#include "jit/schedule/schedule.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *text;
	bool axis, arg;
} step_info[STEP_COUNT] = {
#define STEP(name, text, axis, arg, help) {text, axis, arg},
#include "jit/schedule/steps.def"
#undef STEP
};

void schedule_print(Text *out, const Schedule *s)
{
	for (int k = 0; k < s->n; k++) {
		const ScheduleStep *p = &s->step[k];
		text_add(out, "%s%s", k ? "; " : "", step_info[p->kind].text);
		if (step_info[p->kind].axis)
			text_add(out, " %d", (int)p->axis);
		if (step_info[p->kind].arg)
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

/* A number that `bits` can hold. */
static bool parse_number(const char **s, int bits, int64_t *out)
{
	int64_t most = (INT64_C(1) << (bits - 1)) - 1;
	char *end;
	const char *p = skip(*s);
	*out = strtoll(p, &end, 10);
	*s = end;
	return end != p && *out >= -most && *out <= most;
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
		p += n;
		if ((step_info[kind].axis && !parse_number(&p, 8, &axis)) ||
		    (step_info[kind].arg && !parse_number(&p, 48, &arg)))
			return error_set(
				err, RICCI_ESYNTAX,
				"schedule: step %d (%s) lacks a number, or it is too large",
				s->n + 1, step_info[kind].text);
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
	assert(s->n < COUNT(s->step));
	s->step[s->n++] = (ScheduleStep){(int)kind, axis, arg};
}

bool schedule_insert(Schedule *s, int at, StepKind kind, int axis, int64_t arg)
{
	if (s->n == COUNT(s->step))
		return false;
	memmove(s->step + at + 1, s->step + at, (size_t)(s->n++ - at) * sizeof *s->step);
	s->step[at] = (ScheduleStep){(int)kind, axis, arg};
	return true;
}

bool schedule_append(Schedule *s, StepKind whose, int axis, const Schedule *own)
{
	if (s->n + 1 + own->n > COUNT(s->step))
		return false;
	schedule_add(s, whose, axis, 0);
	memcpy(s->step + s->n, own->step, (size_t)own->n * sizeof *own->step);
	s->n += own->n;
	return true;
}

const ScheduleStep *schedule_find(const Schedule *s, StepKind kind)
{
	for (int k = 0; k < s->n; k++)
		if ((StepKind)s->step[k].kind == kind)
			return &s->step[k];
	return NULL;
}

bool schedule_staged(const Schedule *s)
{
	return s->n && s->step[0].kind == STEP_WINOGRAD;
}

int schedule_misfit(Error *err, const char *why, ...)
{
	char text[256];
	va_list ap;
	va_start(ap, why);
	vsnprintf(text, sizeof text, why, ap);
	va_end(ap);
	return error_set(err, RICCI_EINVAL, "schedule: %s", text);
}

bool schedule_is_new(const Schedule *offers, int n)
{
	for (int k = 0; k < n; k++)
		if (!memcmp(&offers[n], &offers[k], sizeof *offers))
			return false;
	return true;
}

/* test_search.c - strategies over a task whose "times" are made up: nothing is proposed twice, the
 * best come first, and a strategy that learns ends below one that does not. */
#include "jit/lower.h"
#include "runtime/search/strategy.h"
#include "tests/check.h"
#include <math.h>
#include <string.h>

static Task *task(void)
{
	Error err = {0};
	Task *t = task_parse("ricci-task 1\ninput f32 64x96\ninput f32 96x80\n"
			     "keep m0[i,j] += a0[i,k]*a1[k,j] where i<64, j<80, k<96\n",
			     &err);

	CHECK_REPORT(t != NULL, "%s", err.text);
	return t;
}

/* A valley: blocks of 48 x 32 x 40 and unswapped operands are best. */
static double made_up(const Schedule *s)
{
	static const double best[] = {48, 32, 40};
	double cost = 1;

	if (!s->n || s->step[0].kind != STEP_TENSORISE)
		return 50;
	for (int k = 0; k < s->n; k++)
		if (s->step[k].kind == STEP_BLOCK && s->step[k].axis < COUNT(best))
			cost += fabs(log((double)s->step[k].arg / best[s->step[k].axis]));
		else if (s->step[k].kind == STEP_TENSORISE)
			cost += (double)s->step[k].arg;
	return cost;
}

static bool is_new(const Search *s, const Schedule *what)
{
	for (int i = 0; i < s->n; i++)
		if (!memcmp(&s->tried[i].schedule, what, sizeof *what))
			return false;
	return true;
}

/* The best after so many trials. */
static double run(const Strategy *how, const Task *t, uint64_t seed, int trials)
{
	Search s;
	Schedule next;
	Error err = {0};
	int twice = 0, disorder = 0;

	CHECK_INT(search_init(&s, t, target_host(), seed, &err), 0);
	CHECK(s.noffer > 1);
	for (int i = 0; i < s.noffer; i++) {
		Schedule offer = s.tried[i].schedule;
		CHECK_INT(search_report(&s, &offer, made_up(&offer), &err), 0);
	}
	for (int i = 0; i < trials && search_next(&s, how, &next); i++) {
		twice += !is_new(&s, &next);
		/* some are refused, as lowering would */
		CHECK_INT(search_report(&s, &next, i % 5 ? made_up(&next) : INFINITY, &err), 0);
	}
	for (int i = 1; i < s.nbest; i++)
		disorder += s.tried[s.best[i]].seconds < s.tried[s.best[i - 1]].seconds;
	CHECK_INT(twice, 0);
	CHECK_INT(disorder, 0);
	double best = s.nbest ? s.tried[s.best[0]].seconds : INFINITY;
	for (int i = 0; i < s.n; i++)
		CHECK(s.tried[i].seconds >= best);
	search_free(&s);
	return best;
}

/* A task of a single element: nothing can be changed. */
static void test_scalar(void)
{
	Error err = {0};
	Schedule s = {0};
	Search search;
	Task *t = task_parse("ricci-task 1\ninput f32 scalar\nkeep m0[] = a0[] + 1\n", &err);
	CHECK_REPORT(t, "%s", err.text);
	if (!t)
		return;
	CHECK_INT(search_init(&search, t, target_host(), 1, &err), 0);
	for (int k = 0; strategies[k].name; k++)
		CHECK(!search_next(&search, &strategies[k], &s));
	search_free(&search);
	task_free(t);
}

int main(void)
{
	Task *t = task();
	double sum[2] = {0, 0};

	for (uint64_t seed = 1; seed <= 10 && t; seed++)
		for (int k = 0; k < 2; k++)
			sum[k] += run(&strategies[k], t, seed, 400);
	CHECK_STR(strategies[0].name, "genetic");
	CHECK_STR(strategies[1].name, "random");
	CHECK_REPORT(sum[0] < sum[1], "genetic %g, random %g", sum[0], sum[1]);
	test_scalar();
	if (t)
		task_free(t);
	return check_done();
}

/* test_recompute.c - what a step computes again to fit into a limit: chains whose launches are known,
 * and random steps, in which every launch must find what it reads. */
#include "runtime/program/recompute.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS = 160, READS = 4, UNIT = 64 };

typedef struct Case {
	Step step;
	StepRun run[RUNS];
	size_t bytes[2 * RUNS];
	int read[RUNS][READS], write[RUNS][2];
} Case;

/* A run that reads tensors (up to -1 or two of them) and writes one more, of so many units. */
static void run_add(Case *c, int a, int b, size_t units)
{
	int i = c->step.nrun++;
	StepRun *r = &c->run[i];

	c->step.run = c->run;
	c->step.bytes = c->bytes;
	*r = (StepRun){.read = c->read[i], .write = c->write[i], .seconds = 1, .until = INT_MAX};
	if (a >= 0)
		c->read[i][r->nread++] = a;
	if (b >= 0)
		c->read[i][r->nread++] = b;
	c->bytes[c->step.ntensor] = units * UNIT;
	c->write[i][r->nwrite++] = c->step.ntensor++;
}

/* x0 .. x3, each of the one before, then g3 of x3, g2 of g3 and x2, .. g0 of g1 and x0: what a chain
 * and its gradient read. */
static void chain(Case *c, int n)
{
	memset(c, 0, sizeof *c);
	for (int k = 0; k < n; k++)
		run_add(c, k - 1, -1, 1);
	run_add(c, n - 1, -1, 1);
	for (int k = n - 2; k >= 0; k--)
		run_add(c, c->step.ntensor - 1, k, 1);
	c->run[c->step.nrun - 1].stays = true;
}

static void launches_print(const LaunchPlan *p, char *text, size_t room)
{
	size_t n = 0;

	text[0] = 0;
	for (int i = 0; i < p->nlaunch && n < room; i++)
		n += (size_t)snprintf(text + n, room - n, "%s%d", i ? " " : "", p->launch[i].run);
}

/* Lives of copies: written before they are read, and what lives together takes no more than bytes. */
static void plan_check(const Case *c, const LaunchPlan *p)
{
	int *tensor = calloc((size_t)p->ncopy + 1, sizeof *tensor);
	bool *runs = calloc((size_t)c->step.nrun + 1, sizeof *runs);
	size_t most = 0;
	int due = -1;

	for (int i = 0; i < p->nlaunch; i++) {
		const Launch *l = &p->launch[i];
		const StepRun *r = &c->run[l->run];
		size_t lives = r->bytes;

		for (int k = 0; k < r->nread; k++) {
			CHECK(tensor[l->read[k]] == r->read[k] + 1);
			CHECK(p->copy[l->read[k]].first < i && i <= p->copy[l->read[k]].last);
		}
		for (int k = 0; k < r->nwrite; k++) {
			tensor[l->write[k]] = r->write[k] + 1;
			CHECK(p->copy[l->write[k]].first <= i && i <= p->copy[l->write[k]].last);
		}
		for (int k = 0; k < p->ncopy; k++)
			if (p->copy[k].first >= 0 && p->copy[k].first <= i && i <= p->copy[k].last)
				lives += c->bytes[p->copy[k].tensor];
		most = lives > most ? lives : most;
		if (l->due) {
			CHECK(l->run > due); /* in the order of the step */
			due = l->run;
		} else { /* before run due + 1 or a later one */
			CHECK(r->until > due);
		}
		runs[l->run] = true;
	}
	for (int i = 0; i < c->step.nrun; i++)
		CHECK(runs[i]);
	CHECK_REPORT(most <= p->bytes, "%zu live, but there are %zu", most, p->bytes);
	free(tensor);
	free(runs);
}

static LaunchPlan fit(const Case *c, size_t units, Arena *a)
{
	LaunchPlan p;
	Error err = {0};

	CHECK_INT(step_fit(&c->step, units * UNIT, a, &p, &err), 0);
	plan_check(c, &p);
	return p;
}

static void fits(const Case *c, size_t limit, size_t bytes, const char *want)
{
	Arena a = {0};
	char text[200];
	LaunchPlan p = fit(c, limit, &a);

	launches_print(&p, text, sizeof text);
	CHECK_STR(text, want);
	CHECK_INT(p.bytes, bytes * UNIT);
	arena_free(&a);
}

/* By hand: with four units x0 has no room when g3 comes, and is read last. With three, x0 has none
 * for x3; for g3 goes x2, one run by two launches' time, not x1, two runs by three; when x2 is
 * there again, x1 has no room for g2, and x0 none for g1. With two, g2 needs g3 and x2, and x2's
 * own x1. */
static void test_chain(void)
{
	Case c;

	chain(&c, 4);
	fits(&c, 5, 5, "0 1 2 3 4 5 6 7");
	fits(&c, 4, 4, "0 1 2 3 4 5 6 0 7");
	fits(&c, 3, 3, "0 1 2 3 4 2 5 0 1 6 0 7");
	fits(&c, 2, 3, "0 1 2 3 4 2 5 0 1 6 0 7");
	fits(&c, 0, 3, "0 1 2 3 4 2 5 0 1 6 0 7");
}

/* What is dear is kept, and so is what may not be computed again. */
static void test_choice(void)
{
	Case c;

	chain(&c, 4);
	c.run[0].seconds = 10; /* x0: 10 by 4; x1: 1 by 3, and x0 is there for it */
	fits(&c, 4, 4, "0 1 2 3 4 5 1 6 7");
	chain(&c, 4);
	c.run[0].until = 7; /* before run 7: what it reads is still there */
	fits(&c, 4, 4, "0 1 2 3 4 5 6 0 7");
	c.run[0].until = 6;
	fits(&c, 4, 4, "0 1 2 3 4 5 1 6 7");
	c.run[0].until = c.run[1].until = c.run[2].until = -1;
	fits(&c, 4, 5, "0 1 2 3 4 5 6 7");
	chain(&c, 4);
	c.bytes[0] = 3 * UNIT; /* it frees most; at the end it is there with g1 and g0 */
	fits(&c, 6, 5, "0 1 2 3 4 5 6 0 7");
}

/* What nobody has read yet is computed later, and nothing again; not where the run has to stay. */
static void test_later(void)
{
	Case c;

	memset(&c, 0, sizeof c);
	run_add(&c, -1, -1, 4); /* a mask */
	run_add(&c, -1, -1, 1);
	run_add(&c, 1, -1, 4);
	run_add(&c, 2, -1, 1);
	run_add(&c, 0, 3, 1);
	c.run[4].stays = true;
	fits(&c, 9, 9, "0 1 2 3 4");
	fits(&c, 6, 6, "1 2 3 0 4");
	c.run[0].stays = true;
	fits(&c, 6, 6, "0 1 2 3 0 4");
}

/* A chain of n needs about twice the square root of n where each is computed once more. */
static void test_long(void)
{
	static Case c;
	Arena a = {0};
	enum { N = 64 };
	LaunchPlan p;

	chain(&c, N);
	p = fit(&c, 24, &a);
	CHECK_INT(p.bytes <= 24 * UNIT, true);
	CHECK_REPORT(p.nlaunch <= 3 * N + 16, "%d launches", p.nlaunch);
	arena_free(&a);
}

static unsigned draw(unsigned *seed, unsigned n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % n;
}

/* Runs of one or two results; some can't run again, some only until a place, some have to stay. */
static void draw_step(Case *c, unsigned seed)
{
	int n = 8 + (int)draw(&seed, RUNS - 8);

	memset(c, 0, sizeof *c);
	for (int i = 0; i < n; i++) {
		int far = draw(&seed, 3) ? 4 : 1000, t = c->step.ntensor;
		int a = t ? t - 1 - (int)draw(&seed, (unsigned)(t < far ? t : far)) : -1;
		int b = t && draw(&seed, 2) ? (int)draw(&seed, (unsigned)t) : -1;

		run_add(c, a, a == b ? -1 : b, 1 + draw(&seed, 9) * draw(&seed, 9));
		c->run[i].seconds = 1 + draw(&seed, 9);
		if (!draw(&seed, 4)) {
			c->bytes[c->step.ntensor] = UNIT * (1 + draw(&seed, 9));
			c->write[i][c->run[i].nwrite++] = c->step.ntensor++;
		}
		if (!draw(&seed, 8))
			c->run[i].until = -1;
		else if (!draw(&seed, 4))
			c->run[i].until = i + 1 + (int)draw(&seed, (unsigned)(n - i));
		c->run[i].bytes = draw(&seed, 8) ? 0 : UNIT * draw(&seed, 9);
		c->run[i].stays = !draw(&seed, 8);
	}
	for (int i = 0; i < n; i++) { /* what nobody reads */
		bool read = false;

		for (int j = i + 1; j < n; j++)
			for (int k = 0; k < c->run[j].nread; k++)
				for (int w = 0; w < c->run[i].nwrite; w++)
					read |= c->read[j][k] == c->write[i][w];
		c->run[i].stays |= !read;
	}
}

static void test_random(void)
{
	static Case c;
	int less = 0;

	for (unsigned seed = 1; seed <= 300; seed++) {
		Arena a = {0};
		LaunchPlan all, some;

		draw_step(&c, seed);
		all = fit(&c, SIZE_MAX / UNIT, &a);
		CHECK_INT(all.nlaunch, c.step.nrun);
		for (int part = 9; part > 0; part -= 2) {
			size_t limit = all.bytes / UNIT * (size_t)part / 10;

			some = fit(&c, limit, &a);
			CHECK(some.bytes <= all.bytes);
			less += some.bytes <= limit * UNIT;
		}
		arena_free(&a);
	}
	CHECK_REPORT(less > 100, "%d limits were met", less);
}

int main(void)
{
	test_chain();
	test_choice();
	test_later();
	test_long();
	test_random();
	return check_done();
}

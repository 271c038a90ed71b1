/* strategy.c - strategies of search over schedules.
 *
 * A strategy is a row of the table: a function that proposes a schedule from what was tried. New
 * ones need a row, nothing else. Invariant: no schedule is proposed twice; the offers come first.
 */
#include "runtime/search/strategy.h"
#include <math.h>
#include <string.h>

int search_init(Search *s, const Task *t, const Target *target, uint64_t seed, Error *err)
{
	Schedule offer[OFFERS];
	int code = 0;

	*s = (Search){.naxis = schedule_axes(t), .random = seed};
	int n = schedule_offers(t, target, OFFERS, offer);
	for (int i = 0; i < n && !code; i++)
		code = search_report(s, &offer[i], INFINITY, err);
	s->noffer = s->n;
	return code;
}

void search_free(Search *s)
{
	mem_free(s->tried);
	s->tried = NULL;
}

static int search_find(const Search *s, const Schedule *what)
{
	for (int i = 0; i < s->n; i++)
		if (!memcmp(&s->tried[i].schedule, what, sizeof *what))
			return i;
	return -1;
}

/* Keeps `best` in order. */
static void search_rank(Search *s, int which)
{
	int at = s->nbest;

	while (at > 0 && s->tried[which].seconds < s->tried[s->best[at - 1]].seconds)
		at--;
	if (at == COUNT(s->best))
		return;
	s->nbest += s->nbest < COUNT(s->best);
	memmove(s->best + at + 1, s->best + at, (size_t)(s->nbest - at - 1) * sizeof *s->best);
	s->best[at] = which;
}

int search_report(Search *s, const Schedule *what, double seconds, Error *err)
{
	int at = search_find(s, what);

	if (at < 0) {
		Tried *tried = mem_grow(s->tried, s->n, &s->room, sizeof *tried);

		if (!tried)
			return error_set(err, RICCI_ENOMEM, "out of memory");
		s->tried = tried;
		at = s->n++;
		s->tried[at].schedule = *what;
	}
	s->tried[at].seconds = seconds;
	if (isfinite(seconds))
		search_rank(s, at);
	return 0;
}

/* ---- strategies ---- */
static const Schedule *any_offer(Search *s)
{
	return &s->tried[random_below(&s->random, (uint64_t)s->noffer)].schedule;
}

/* An offer after a few random steps: covers the space, learns nothing. */
static void propose_random(Search *s, Schedule *out)
{
	*out = *any_offer(s);
	do
		schedule_mutate(out, s->naxis, &s->random);
	while (random_below(&s->random, 3));
}

/* The better of two among the best. */
static const Schedule *parent(Search *s)
{
	uint64_t a = random_below(&s->random, (uint64_t)s->nbest);
	uint64_t b = random_below(&s->random, (uint64_t)s->nbest);

	return &s->tried[s->best[a < b ? a : b]].schedule;
}

/* Children of the fastest ones, crossed at times and changed a little. */
static void propose_genetic(Search *s, Schedule *out)
{
	if (!s->nbest) {
		propose_random(s, out);
		return;
	}
	*out = *parent(s);
	if (random_below(&s->random, 3) == 0)
		schedule_cross(out, parent(s), &s->random);
	do
		schedule_mutate(out, s->naxis, &s->random);
	while (random_below(&s->random, 2));
}

const Strategy strategies[] = {
	{"genetic", "children of the fastest schedules, crossed and changed", propose_genetic},
	{"random", "random changes of the offered schedules", propose_random},
	{0},
};

bool search_next(Search *s, const Strategy *how, Schedule *out)
{
	for (int i = 0; i < 64 && s->noffer; i++) {
		how->propose(s, out);
		if (search_find(s, out) < 0)
			return true;
	}
	return false;
}

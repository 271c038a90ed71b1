/* strategy.h - strategies of search over the schedules of a task (strategy.c); tune.c runs them. */
#ifndef RUNTIME_STRATEGY_H
#define RUNTIME_STRATEGY_H

#include "runtime/search/search.h"

typedef struct Tried {
	Schedule schedule;
	double seconds; /* of a run; INFINITY: refused, wrong, or far too slow */
} Tried;
typedef struct Search {
	int naxis;
	uint64_t random;
	int n, room, noffer; /* tried[0..noffer-1]: the offers, where searches start */
	Tried *tried;	     /* in the order of trial */
	int nbest, best[16]; /* the fastest, fastest first */
} Search;
int search_init(Search *s, const Task *t, const Target *target, uint64_t seed, Error *err);
void search_free(Search *s);
/* A schedule that was not tried yet; false: none came up. */
bool search_next(Search *s, const struct Strategy *how, Schedule *out);
/* What came of it. */
int search_report(Search *s, const Schedule *what, double seconds, Error *err);

#endif

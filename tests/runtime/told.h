/* told.h - what a search (ricci_tune) tells while it runs. */
#ifndef TESTS_TOLD_H
#define TESTS_TOLD_H

#include <stdbool.h>

typedef struct Told {
	int calls, stop_at; /* ends the search at that call; 0: never */
	double spent, part;
	bool wrong; /* time went back, or a part was none */
} Told;

static int told(void *user, double spent, double part)
{
	Told *t = user;

	t->wrong |= spent < t->spent || !(part > 0 && part < 1.01);
	t->spent = spent;
	t->part = part;
	return ++t->calls == t->stop_at;
}

#endif

/* env.c - environment variables and the clock. docs/variables.md lists the variables. They name
 * files and programs: where a program has more rights than who started it, none is looked at. */
#define _GNU_SOURCE
#include "core/base/base.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *env_text(const char *name, const char *otherwise)
{
	const char *s = secure_getenv(name);
	return s && *s ? s : otherwise;
}

long env_long(const char *name, long otherwise)
{
	const char *s = env_text(name, NULL);
	char *end;
	long v = s ? strtol(s, &end, 10) : otherwise;
	return s && (*end || end == s) ? otherwise : v;
}

/* Is the word in the variable's list, between commas, or else `every`? */
static bool env_lists(const char *name, const char *word, const char *every)
{
	const char *s = secure_getenv(name);
	for (; s && *s; s += *s == ',') {
		size_t m = strcspn(s, ",");
		if ((m == strlen(word) && !memcmp(s, word, m)) ||
		    (every && m == strlen(every) && !memcmp(s, every, m)))
			return true;
		s += m;
	}
	return false;
}

bool env_dump(const char *pass)
{
	return env_lists("RICCI_DUMP", pass, "all");
}

bool env_unfused(const char *depth)
{
	return env_lists("RICCI_UNFUSED", depth, "all");
}

bool env_check(const char *what)
{
	return env_lists("RICCI_CHECK", what, NULL);
}

void env_dump_text(const char *pass, const char *title, const char *text)
{
	if (env_dump(pass))
		fprintf(stderr, "-- %s: %s\n%s\n", pass, title, text ? text : "");
}

double clock_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double process_seconds(pid_t process)
{
	clockid_t clock;
	struct timespec t;
	if (clock_getcpuclockid(process, &clock) || clock_gettime(clock, &t))
		return -1;
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

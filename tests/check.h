/* check.h - the macros of the tests. A failed CHECK is counted and named by file and line on
 * stderr, and the test goes on. main ends with `return check_done();`, which prints "N passed, N
 * failed" as the last line (", N skipped" follows where CHECK_SKIP said why) and gives the exit
 * status; tests/run adds these lines up. Checks may run in several threads. Invariant: no argument
 * is evaluated twice. */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int check_passed, check_failed, check_skipped;

/* Counts ok; where it is false, `what` and what follows it are printed after the place. */
#define CHECK_REPORT(ok, ...)                                                                      \
	((ok) ? (void)__atomic_add_fetch(&check_passed, 1, __ATOMIC_RELAXED)                       \
	      : (void)(__atomic_add_fetch(&check_failed, 1, __ATOMIC_RELAXED),                     \
		       fprintf(stderr, "%s:%d: ", __FILE__, __LINE__),                             \
		       fprintf(stderr, __VA_ARGS__), fputc('\n', stderr)))

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		bool check_ok_ = (cond);                                                           \
		CHECK_REPORT(check_ok_, "not true: %s", #cond);                                    \
	} while (0)

#define CHECK_INT(got, want)                                                                       \
	do {                                                                                       \
		int64_t check_a_ = (int64_t)(got), check_b_ = (int64_t)(want);                     \
		CHECK_REPORT(check_a_ == check_b_, "%s is %" PRId64 ", should be %s = %" PRId64,   \
			     #got, check_a_, #want, check_b_);                                     \
	} while (0)

/* Has the graph no error? */
#define CHECK_GRAPH(g) CHECK_REPORT(!ricci_graph_error(g), "%s", ricci_error_message())

/* NULL equals NULL only. */
#define CHECK_STR(got, want)                                                                       \
	do {                                                                                       \
		const char *check_a_ = (got), *check_b_ = (want);                                  \
		bool check_ok_ =                                                                   \
			check_a_ && check_b_ ? !strcmp(check_a_, check_b_) : check_a_ == check_b_; \
		CHECK_REPORT(check_ok_, "%s is\n%s\nshould be\n%s", #got,                          \
			     check_a_ ? check_a_ : "(null)", check_b_ ? check_b_ : "(null)");      \
	} while (0)

/* |got - want| <= tol; equal infinities and two NaNs agree. */
#define CHECK_NEAR(got, want, tol)                                                                 \
	do {                                                                                       \
		double check_a_ = (got), check_b_ = (want), check_t_ = (tol);                      \
		CHECK_REPORT(check_near(check_a_, check_b_, check_t_),                             \
			     "%s is %.17g, should be %.17g within %g", #got, check_a_, check_b_,   \
			     check_t_);                                                            \
	} while (0)

/* Counts a test that can't run here and says why; the caller then leaves it out. */
#define CHECK_SKIP(why)                                                                            \
	do {                                                                                       \
		__atomic_add_fetch(&check_skipped, 1, __ATOMIC_RELAXED);                           \
		fprintf(stderr, "%s:%d: skipped: %s\n", __FILE__, __LINE__, (why));                \
	} while (0)

__attribute__((unused)) static bool check_near(double a, double b, double tol)
{
	return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tol;
}

/* The totals and the exit status: 0 when all passed. */
__attribute__((unused)) static int check_done(void)
{
	fflush(stderr);
	printf("%d passed, %d failed", check_passed, check_failed);
	if (check_skipped)
		printf(", %d skipped", check_skipped);
	printf("\n");
	return check_failed != 0;
}

#if defined(__SANITIZE_ADDRESS__)
/* What PoCL (OpenCL on processors) keeps for a thread that compiles is its own. */
__attribute__((weak, used, visibility("default"))) const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl";
}
#endif

#endif

/* test_lower_opencl.c - the OpenCL C row of the dialects: all schedules of the cases of lowering on the
 * first device there is (PoCL, where there is no GPU). */
#include "tests/jit/lower_cases.h"

/* A compiler takes a second for some of them. */
enum { OFFERS_MOST = 1 };

int main(void)
{
	harness_grid = true;
	harness_backend = "opencl";
	Trial *list = lower_cases();
	for (Trial *t = list; t; t = t->next)
		t->noffer = t->noffer < OFFERS_MOST ? t->noffer : OFFERS_MOST;
	harness_check(list, backend_find("opencl"), 1);
	return harness_done();
}

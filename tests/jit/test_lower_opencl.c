/* test_lower_opencl.c - the OpenCL C row of the dialects: all schedules of the cases of lowering on the
 * first device there is (PoCL, where there is no GPU). */
#include "tests/jit/lower_cases.h"

int main(void)
{
	harness_grid = true;
	harness_check(lower_cases(), backend_find("opencl"), 1);
	return harness_done();
}

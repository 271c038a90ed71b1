/* test_lower.c - every offered schedule of many equations gives what the interpreter gives. */
#include "tests/jit/lower_cases.h"

int main(void)
{
	Trial *list = lower_cases();
	harness_check(list, backend_find("tcc"), 100);
	harness_check(list, backend_find("cc"), 100);
	return harness_done();
}

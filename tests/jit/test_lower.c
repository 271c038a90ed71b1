/* test_lower.c - every offered schedule of many equations gives what the interpreter gives. */
#include "tests/jit/lower_cases.h"

int main(void)
{
	Trial *list = lower_cases();
	char why[256];
	harness_check(list, backend_find("tcc"), 100);
	CHECK_INT(harness_prefetch, 0); /* tcc has no word for it */
	harness_check(list, backend_find("cc"), 100);
	CHECK(harness_prefetch > 0 || !backend_find("cc")->available(why, sizeof why));
	return harness_done();
}

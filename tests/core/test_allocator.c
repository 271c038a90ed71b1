/* test_allocator.c - blocks, mapped ones and arenas: zeroed, counted, freed, and failing when told to. */
#include "core/base/base.h"
#include "tests/check.h"
#include <string.h>

static bool all_zero(const char *p, size_t n)
{
	return n == 0 || (!p[0] && !memcmp(p, p + 1, n - 1));
}

static void test_map(void)
{
	enum { N = (1 << 20) + 12345 };
	long live = mem_live();

	for (int k = 0; k < 3; k++) { /* what was written before is gone */
		char *p = mem_map(N);

		CHECK(p && all_zero(p, N));
		CHECK_INT(mem_live(), live + 1);
		memset(p, 0xff, N);
		mem_unmap(p, N);
		CHECK_INT(mem_live(), live);
	}
	mem_fail_at(1);
	CHECK(!mem_map(N));
	mem_fail_at(0);
	mem_unmap(NULL, N);
	CHECK_INT(mem_live(), live);
}

/* Small chunks and large ones in one arena. */
static void test_arena(void)
{
	static const size_t size[] = {10, 5000, 3 << 20, 100, 1 << 20, 7 << 20, 16};
	Arena a = {0};
	char *p[COUNT(size)];
	long live = mem_live();

	for (int i = 0; i < COUNT(size); i++) {
		p[i] = arena_alloc(&a, size[i]);
		CHECK(p[i] && all_zero(p[i], size[i]));
		memset(p[i], 'a' + i, size[i]);
	}
	for (int i = 0; i < COUNT(size); i++)
		CHECK(p[i][0] == 'a' + i && !memcmp(p[i], p[i] + 1, size[i] - 1));
	mem_fail_at(1);
	CHECK(!arena_alloc(&a, 9 << 20));
	mem_fail_at(0);
	arena_free(&a);
	CHECK_INT(mem_live(), live);
}

int main(void)
{
	test_map();
	test_arena();
	return check_done();
}

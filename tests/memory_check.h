/* memory_check.h - what happens where memory ends. */
#ifndef MEMORY_CHECK_H
#define MEMORY_CHECK_H

#include "core/core.h"
#include "tests/check.h"

/* The n-th allocation of build fails, for every n: it says so, and nothing is kept. */
static void check_memory(int (*build)(void))
{
	long live = mem_live(), n = 1;
	int code;

	do {
		mem_fail_at(n++);
		code = build();
		mem_fail_at(0);
		CHECK(code == 0 || code == RICCI_ENOMEM);
		CHECK_INT(mem_live(), live);
	} while (code && n < 1000);
	CHECK(n > 4 && n < 1000);
	CHECK_INT(build(), 0);
}

#endif

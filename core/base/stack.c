/* stack.c - how deep expressions may be on a thread. Walks of expressions are recursive: each level
 * takes less than LEVEL bytes of stack in each of them (measured: 400, gcc 12 -O1). */
#define _GNU_SOURCE
#include "core/base/base.h"

#include <pthread.h>

enum { LEVEL = 768, MOST = 1 << 20 };

int stack_levels(void)
{
	static __thread int levels;
	pthread_attr_t a;
	size_t size = (size_t)8 << 20;
	void *low;
	if (levels)
		return levels;
	if (!pthread_getattr_np(pthread_self(), &a)) {
		pthread_attr_getstack(&a, &low, &size);
		pthread_attr_destroy(&a);
	}
	size /= LEVEL;
	levels = size < STACK_DEPTH_ANY ? STACK_DEPTH_ANY : size > MOST ? MOST : (int)size;
	return levels;
}

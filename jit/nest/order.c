/* order.c - what offers of nests write about the order of loops.
 *
 * Input: loops in an order, and the order that is wanted. Output: steps that make it; how many of the outermost
 * loops are parts. Invariant: an inner loop that a split makes stands behind its outer one, as in replay.c. */
#include "jit/nest/internal.h"

#include <string.h>

int offer_parallel(int n, const int64_t *extent)
{
	int64_t parts = 1;
	int k = 0;
	while (k < n && parts < MIN_PARTS)
		parts *= extent[k++];
	return k;
}

int offer_split(Schedule *s, int axis, int64_t arg, int *loops, int *now)
{
	int at = 0;
	while (now[at] != axis)
		at++;
	memmove(now + at + 2, now + at + 1, (size_t)(*loops - at - 1) * sizeof *now);
	now[at + 1] = *loops;
	schedule_add(s, STEP_SPLIT, axis, arg);
	return (*loops)++;
}

int64_t offer_divisor(int64_t n, int64_t most)
{
	int64_t d = n < most ? n : most;
	while (n % d)
		d--;
	return d;
}

void offer_order(Schedule *s, int n, const int *want, int *now)
{
	for (int k = 0; k < n; k++) {
		int at = k;
		while (now[at] != want[k])
			at++;
		if (at == k)
			continue;
		schedule_add(s, STEP_MOVE, want[k], k);
		memmove(now + k + 1, now + k, (size_t)(at - k) * sizeof *now);
		now[k] = want[k];
	}
}

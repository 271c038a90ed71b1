/* plan.c - the memory plan: offsets in one arena for tensors that live from one step to another.
 *
 * Largest first, each into the tightest gap between those placed already whose lives meet its own
 * (after Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020).
 * Invariant: two items that live in a common step do not overlap.
 */
#include "runtime/program/program.h"
#include <stdlib.h>

enum { PLAN_FEW = 2048 }; /* each item is compared with all larger ones */

static int by_size(const void *a, const void *b)
{
	const PlanItem *x = *(PlanItem *const *)a, *y = *(PlanItem *const *)b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* The offset for it among placed[0..n-1], which are in order of offset: copies, side by side, since
 * each item is compared with all larger ones. */
static size_t best_gap(const PlanItem *placed, int n, const PlanItem *it)
{
	size_t end = 0, best = 0, waste = SIZE_MAX, need = align_up(it->bytes);

	for (int i = 0; i < n; i++) {
		const PlanItem *p = &placed[i];

		if (p->last < it->first || it->last < p->first)
			continue;
		if (p->offset >= end + need && p->offset - end - need < waste) {
			waste = p->offset - end - need;
			best = end;
		}
		if (p->offset + align_up(p->bytes) > end)
			end = p->offset + align_up(p->bytes);
	}
	return waste == SIZE_MAX ? end : best;
}

int plan_offsets(int n, PlanItem *item, size_t *total, Error *err)
{
	PlanItem **order, *placed;

	*total = 0;
	if (n == 0)
		return 0;
	placed = mem_alloc((size_t)n * (sizeof *placed + sizeof *order));
	if (!placed)
		return error_set(err, RICCI_ENOMEM, "out of memory for the memory plan");
	order = (PlanItem **)(placed + n);
	for (int i = 0; i < n; i++)
		order[i] = &item[i];
	qsort(order, (size_t)n, sizeof *order, by_size);
	if (n > PLAN_FEW) {
		int code = plan_many(n, order, total, err);
		mem_free(placed);
		return code;
	}
	for (int i = 0; i < n; i++) {
		PlanItem *it = order[i];
		int at = i;

		it->offset = best_gap(placed, i, it);
		if (it->offset + align_up(it->bytes) > *total)
			*total = it->offset + align_up(it->bytes);
		for (; at > 0 && placed[at - 1].offset > it->offset; at--)
			placed[at] = placed[at - 1];
		placed[at] = *it;
	}
	mem_free(placed);
	return 0;
}

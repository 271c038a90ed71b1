/* plan_many.c - the memory plan of many items, in time in proportion to n log n.
 *
 * In: items, the largest first. Each comes into the tightest known hole that is free for its life,
 * else into a new row on top of all. A hole is free for some steps from one offset to another; what
 * an item leaves of its hole are holes again: beside it, as high as it is, and above it. They are
 * kept in a tree over the steps. Measured: nets of layers need as much as by plan.c, random lives of
 * random sizes up to a quarter more. Invariant: holes overlap neither each other nor an item.
 */
#include "runtime/program/program.h"

/* Free from one step to another. */
typedef struct Hole {
	int first, last;
	size_t low, high;
	bool gone;
} Hole;

typedef struct Entry { /* of a list; 0: its end */
	int hole, next;
} Entry;

typedef struct Tree {
	int room;  /* steps: a power of two; node k has the children 2k and 2k + 1 */
	int *list; /* a node's holes, which are free in all its steps: the latest first */
	Hole *hole;
	Entry *entry;
	int nhole, hole_room, nentry, entry_room;
	Arena arena;
} Tree;

/* So many holes of a node are tried. */
enum { TRIES = 64 };

static void hole_list(Tree *t, int node, int begin, int end, int hole)
{
	const Hole *h = &t->hole[hole];

	if (h->last < begin || end <= h->first)
		return;
	if (h->first <= begin && end <= h->last + 1) {
		t->entry = arena_grow(&t->arena, t->entry, t->nentry, &t->entry_room,
				      sizeof *t->entry);
		t->entry[t->nentry] = (Entry){hole, t->list[node]};
		t->list[node] = t->nentry++;
		return;
	}
	int mid = begin + (end - begin) / 2;

	hole_list(t, 2 * node, begin, mid, hole);
	hole_list(t, 2 * node + 1, mid, end, hole);
}

static void hole_add(Tree *t, Hole h)
{
	if (h.first > h.last || h.low >= h.high)
		return;
	t->hole = arena_grow(&t->arena, t->hole, t->nhole, &t->hole_room, sizeof *t->hole);
	t->hole[t->nhole] = h;
	hole_list(t, 1, 0, t->room, t->nhole++);
}

/* The tightest hole for `it` among the latest; -1: there is none. */
static int best_hole(Tree *t, const PlanItem *it, size_t need)
{
	int best = -1;
	size_t waste = SIZE_MAX;

	for (int node = t->room + it->first; node; node /= 2) {
		int *link = &t->list[node];
		for (int tried = 0; *link && tried < TRIES; tried++) {
			const Entry *e = &t->entry[*link];
			const Hole *h = &t->hole[e->hole];
			if (h->gone) {
				*link = e->next;
				continue;
			}
			size_t room = h->high - h->low;
			if (h->last >= it->last && room >= need && room - need < waste) {
				waste = room - need;
				best = e->hole;
			}
			link = &t->entry[*link].next;
		}
	}
	return best;
}

static void place(Tree *t, PlanItem *it, size_t *total)
{
	size_t need = align_up(it->bytes);
	int best = best_hole(t, it, need);
	Hole h = {0, t->room - 1, *total, *total + need, false}; /* on top of all */

	if (best >= 0) {
		h = t->hole[best];
		t->hole[best].gone = true;
	} else {
		*total += need;
	}
	it->offset = h.low;
	hole_add(t, (Hole){h.first, h.last, h.low + need, h.high, false});
	hole_add(t, (Hole){h.first, it->first - 1, h.low, h.low + need, false});
	hole_add(t, (Hole){it->last + 1, h.last, h.low, h.low + need, false});
}

int plan_many(int n, PlanItem **item, size_t *total, Error *err)
{
	Tree t = {.room = 1, .nentry = 1};
	jmp_buf oom;

	t.arena.oom = &oom;
	if (setjmp(oom)) {
		arena_free(&t.arena);
		return error_set(err, RICCI_ENOMEM, "out of memory for the memory plan");
	}
	for (int i = 0; i < n; i++)
		while (t.room <= item[i]->last)
			t.room *= 2;
	t.list = arena_alloc(&t.arena, 2 * (size_t)t.room * sizeof *t.list);
	t.entry = arena_grow(&t.arena, NULL, 0, &t.entry_room, sizeof *t.entry);
	for (int i = 0; i < n; i++)
		place(&t, item[i], total);
	arena_free(&t.arena);
	return 0;
}

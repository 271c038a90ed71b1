/* group.c - which equations become one kernel: greedily, in the order of the graph.
 *
 * In: equations as they are after producers were inlined. Out: subgraphs in an order that can run.
 * Invariant: no path leads from a kernel around to itself. */
#include "jit/fuse/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- what must run before what ---- */

/* The bits of g, without those of groups that are no longer among the latest. */
static uint64_t before_now(Fuse *f, Group *g)
{
	for (; g->known < f->ngroup; g->known++) {
		if (f->ngroup - g->known >= GROUPS_BACK) {
			g->before = 0;
			g->known = f->ngroup;
			break;
		}
		g->before &= ~((uint64_t)1 << g->known % GROUPS_BACK);
	}
	return g->before;
}

/* Must group `at`, one of the latest, run before group h? */
static bool runs_before(Fuse *f, int at, int h)
{
	return before_now(f, &f->group[h]) >> at % GROUPS_BACK & 1;
}

/* Could one kernel compute c with all of g? With c its rows may have to be other ones, which lie across lines. */
static bool may_group(Fuse *f, const Group *g, Node *c)
{
	Node *all[MEMBERS_MOST + 1];
	Subgraph s = {.member = all, .nmember = g->nmember + 1};
	memcpy(all, g->member, (size_t)g->nmember * sizeof *all);
	all[g->nmember] = c;
	return subgraph_rows(f->ir, &s) && !rows_go_across(f->ir, &s);
}

/* What is known of an equation c and the groups that it might belong to. */
typedef struct Candidate {
	Node *c;
	int nread;
	Node **reads;
	int8_t *own; /* of each: fuse_reads_own, 1 or -1; 0: not known yet */
} Candidate;

static bool candidate_own(Fuse *f, const Candidate *j, int i)
{
	if (!j->own[i])
		j->own[i] = fuse_reads_own(f->ir, j->c, j->reads[i]) ? 1 : -1;
	return j->own[i] > 0;
}

/* Do neighbours in its lines come from different phases (Y[x] = x%2 == 1 ? A[x/2] : B[x/2])? Its
 * lanes run along each of them, those of a sum's tiles along whole lines; and its phases may be had
 * row by row. */
static bool interleaves(Fuse *f, const Node *c)
{
	int rank = tensor_rank(c);
	Node *body = comp_body(c), *last = rank ? comp_axis(c, rank - 1) : NULL;
	int64_t period = last ? index_phases(f->ir, last, 1, &body, PHASES_MOST) : 1;
	return period > 1 && index_phases_decide(f->ir, last, period, 1, &body);
}

/* Bytes that c need not move when it joins g; < 0 when it may not, with the reason, or when they
 * are no more than `most`. */
static double group_saves(Fuse *f, int at, const Candidate *candidate, double most,
			  const char **why)
{
	Node *c = candidate->c, *const *reads = candidate->reads;
	int nread = candidate->nread;
	Group *g = &f->group[at];
	const Node *main = g->member[0];
	double saved = 0;
	*why = "another space";
	if (main->op == OP_SCAN || !tensor_same_shape(main, c) || !comp_is_dense(main))
		return -1;
	*why = "interleaves phases";
	if (comp_reduce(main) != RED_NONE && interleaves(f, c))
		return -1;
	*why = "too many members or inputs";
	if (g->nmember == MEMBERS_MOST)
		return -1;
	int inputs = nread;
	for (int k = 0; k < g->nmember; k++) {
		Node **theirs;
		int n = group_reads(f, g->member[k], &theirs);
		inputs += n;
		for (int j = 0; j < n && comp_reduce(main) == RED_NONE; j++)
			for (int i = 0; i < nread; i++)
				if (theirs[j] == reads[i] && candidate_own(f, candidate, i))
					saved += (double)tensor_bytes(reads[i]);
	}
	if (inputs > 2 * INPUTS_MOST)
		return -1;
	for (int i = 0; i < nread; i++) {
		int h = group_of(f, reads[i]);
		if (h == at) {
			*why = "reads a member at other elements";
			if (!candidate_own(f, candidate, i))
				return -1;
			saved += (double)tensor_bytes(reads[i]);
		} else if (h >= 0) {
			*why = "a path leads around";
			if (runs_before(f, at, h))
				return -1;
		}
	}
	*why = "shares nothing";
	return saved > most && may_group(f, g, c) ? saved : -1;
}

/* What it saves that these bytes come from a thread's own cache, as bytes of memory. */
static double rows_near(const Fuse *f, double bytes)
{
	return bytes * (1 - f->pd / f->dev->pd_core);
}

/* What threads wait for each other where rows are few, in seconds: what one does longer than its share of
 * the equations' arithmetic and traffic. */
static double rows_wait(const Fuse *f, int n, Node *const *member, double imbalance)
{
	double seconds = 0;
	for (int k = 0; k < n; k++)
		seconds += comp_flops(f->ir, member[k]) / f->dev->pc +
			   (double)tensor_bytes(member[k]) / f->pd;
	return (imbalance - 1) * seconds;
}

/* Bytes that c need not load when it runs row by row with group at: they are in a thread's own cache. < 0
 * when it may not, or when they are no more than `most`, or when nothing is won. */
static double rows_save(Fuse *f, int at, Node *c, int nread, Node *const *reads, double most)
{
	const Group *g = &f->group[at];
	Node *all[MEMBERS_MOST + 1];
	double saved = 0;
	int inputs = nread;
	if (g->member[0]->op == OP_SCAN || g->nmember == MEMBERS_MOST)
		return -1;
	for (int i = 0; i < nread; i++) {
		int h = group_of(f, reads[i]);
		if (h == at)
			saved += (double)tensor_bytes(reads[i]);
		else if (h >= 0 && runs_before(f, at, h))
			return -1;
	}
	for (int k = 0; k < g->nmember; k++) {
		Node **theirs;
		int n = group_reads(f, g->member[k], &theirs);
		all[k] = g->member[k];
		inputs += n;
		for (int j = 0; j < n; j++)
			for (int i = 0; i < nread; i++)
				if (theirs[j] == reads[i] && group_member(g, reads[i]) < 0)
					saved += (double)tensor_bytes(reads[i]);
	}
	all[g->nmember] = c;
	if (saved <= most || inputs > 2 * INPUTS_MOST)
		return -1;
	double imbalance = subgraph_rows_suit(f->ir, g->nmember + 1, all, f->dev);
	double won = fuse_reward(f, rows_near(f, saved), 0, 1);
	bool yes = imbalance > 0 && won > rows_wait(f, g->nmember + 1, all, imbalance);
	return yes ? saved : -1;
}

/* Records that group h runs before group `at`, and what follows from it for those behind. */
static void set_before(Fuse *f, int at, int h)
{
	Arena *a = &f->ir->arena;
	Group *from = &f->group[h];
	uint64_t more = before_now(f, from);
	int *open = NULL, nopen = 0, room = 0;
	if (f->ngroup - h <= GROUPS_BACK)
		more |= (uint64_t)1 << h % GROUPS_BACK;
	if (!from->nafter || from->after[from->nafter - 1] != at) {
		from->after = arena_grow(a, from->after, from->nafter, &from->after_room,
					 sizeof *from->after);
		from->after[from->nafter++] = at;
	}
	open = arena_grow(a, open, nopen, &room, sizeof *open);
	open[nopen++] = at;
	while (nopen) {
		Group *g = &f->group[open[--nopen]];
		if ((before_now(f, g) | more) == g->before)
			continue;
		g->before |= more;
		for (int k = 0; k < g->nafter; k++) {
			open = arena_grow(a, open, nopen, &room, sizeof *open);
			open[nopen++] = g->after[k];
		}
	}
}

/* The group of other results of c's run of its loop; -1: none yet. */
static int scan_group(const Fuse *f, const Node *c)
{
	for (int at = 0; at < f->ngroup; at++)
		if (f->group[at].member[0]->op == OP_SCAN &&
		    scan_same_run(f->group[at].member[0], c))
			return at;
	return -1;
}

static void group_one(Fuse *f, Node *c)
{
	Node **reads;
	int nread = group_reads(f, c, &reads), best = -1;
	double most = 0;
	const char *why = "";
	Candidate candidate = {c, nread, reads, arena_alloc(&f->ir->arena, (size_t)nread + 1)};
	bool loop = c->op == OP_SCAN;
	bool elementwise = !loop && comp_reduce(c) == RED_NONE && comp_is_dense(c);
	if (loop)
		best = scan_group(f, c);
	for (int at = f->ngroup - 1;
	     f->tiles && elementwise && at >= 0 && at > f->ngroup - GROUPS_BACK; at--) {
		double saved = group_saves(f, at, &candidate, most, &why);
		if (saved > most && fuse_reward(f, saved, 0, 1) > 0) {
			most = saved;
			best = at;
		}
	}
	bool dense = !loop && comp_is_dense(c), rows = false;
	for (int at = f->ngroup - 1; f->axes && dense && at >= 0 && at > f->ngroup - GROUPS_BACK;
	     at--) {
		double saved = rows_save(f, at, c, nread, reads, most);
		if (saved > most) {
			most = saved;
			best = at;
			rows = true;
		}
	}
	if (best < 0) {
		best = f->ngroup++;
		if (elementwise)
			fuse_say(f, "fuse", c, 0, 0, 0, best ? why : "the first");
	} else if (!loop) {
		fuse_say(f, "fuse", c, rows ? rows_near(f, most) : most, 0, 1,
			 rows ? "row by row" : "yes");
	}
	group_add(f, &f->group[best], c);
	f->group_of[c->id] = best;
	for (int i = 0; i < nread; i++) {
		int h = group_of(f, reads[i]);
		if (h >= 0 && h != best)
			set_before(f, best, h);
	}
}

/* ---- the result ---- */

static void put_subgraph(Fuse *f, Subgraph *s, int at, const bool *needed)
{
	Group *g = &f->group[at];
	s->nmember = g->nmember;
	s->member = g->member;
	s->stored = arena_alloc(&f->ir->arena, (size_t)g->nmember);
	for (int k = 0; k < g->nmember; k++)
		s->stored[k] = needed[g->member[k]->id];
	subgraph_rows(f->ir, s);
	subgraph_inputs(f->ir, s);
}

typedef struct Rank {
	int group, level, before; /* before: how many groups that it waits for are not out yet */
} Rank;

static int by_level(const void *a, const void *b)
{
	const Rank *x = a, *y = b;
	return x->level != y->level  ? (x->level < y->level ? -1 : 1)
	       : x->group < y->group ? -1
				     : x->group > y->group;
}

/* Groups in an order that can run: by the longest path that leads to them. So the consumer of
 * a gradient runs soon after it, whatever comes later in the graph. */
static Rank *rank_groups(Fuse *f)
{
	Arena *a = &f->ir->arena;
	size_t n = (size_t)f->ngroup + 1;
	Rank *rank = arena_alloc(a, n * sizeof *rank);
	int *ready = arena_alloc(a, n * sizeof *ready), nready = 0;
	for (int k = 0; k < f->ngroup; k++) {
		rank[k].group = k;
		for (int j = 0; j < f->group[k].nafter; j++)
			rank[f->group[k].after[j]].before++;
	}
	for (int k = 0; k < f->ngroup; k++)
		if (!rank[k].before)
			ready[nready++] = k;
	for (int i = 0; i < nready; i++) {
		const Group *g = &f->group[ready[i]];
		for (int j = 0; j < g->nafter; j++) {
			Rank *r = &rank[g->after[j]];
			if (r->level <= rank[ready[i]].level)
				r->level = rank[ready[i]].level + 1;
			if (!--r->before)
				ready[nready++] = g->after[j];
		}
	}
	qsort(rank, (size_t)f->ngroup, sizeof *rank, by_level);
	return rank;
}

void fuse_group(Fuse *f, int nroot, Node *const *roots, int *nsub, Subgraph **subs)
{
	Node **order;
	Arena *a = &f->ir->arena;
	int n = graph_order(f->ir, nroot, roots, &order);
	f->group_ids = f->ir->count;
	f->group_of = arena_alloc(a, f->group_ids * sizeof *f->group_of);
	f->group = arena_alloc(a, (size_t)(n + 1) * sizeof *f->group);
	f->reads = arena_alloc(a, f->group_ids * sizeof *f->reads);
	f->nread = arena_alloc(a, f->group_ids * sizeof *f->nread);
	bool *needed = arena_alloc(a, f->group_ids);
	memset(f->group_of, -1, f->group_ids * sizeof *f->group_of);
	for (int k = 0; k < n; k++)
		if (order[k]->op != OP_INPUT)
			group_one(f, order[k]);
	for (int k = 0; k < nroot; k++)
		needed[roots[k]->id] = true;
	Use **uses = fuse_uses(f->ir, n, order);
	for (int k = 0; k < n && f->axes; k++)
		if (order[k]->op != OP_INPUT && !needed[order[k]->id])
			fuse_repeat(f, uses[order[k]->id], order[k]);
	for (int k = 0; k < n; k++) {
		Node **reads;
		int m = group_reads(f, order[k], &reads);
		const Group *own =
			group_of(f, order[k]) < 0 ? NULL : &f->group[group_of(f, order[k])];
		for (int j = 0; j < m; j++)
			if (group_of(f, reads[j]) >= 0 && group_member(own, reads[j]) < 0)
				needed[reads[j]->id] = true;
	}
	const Rank *rank = rank_groups(f);
	*nsub = f->ngroup;
	*subs = arena_alloc(a, (size_t)(f->ngroup + 1) * sizeof **subs);
	for (int k = 0; k < f->ngroup; k++)
		put_subgraph(f, &(*subs)[k], rank[k].group, needed);
}

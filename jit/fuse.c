/* fuse.c - partition: one subgraph per equation, then greedy fusion by the reward R = dT/Pd + dC/Pc
 * + dK*L (NeoFlow, eq. 4). In: roots of a cleaned graph. Out: subgraphs in an order that can run;
 * roots updated.
 *
 * Three decisions, all properties of index functions:
 *	take in: a dense "=" equation is substituted into all its readers and disappears. Always
 *		legal; R weighs the traffic and the launch saved against what is computed again.
 *	join: a dense "=" equation becomes a member of an earlier kernel over the same space, when
 *it reads that kernel's members at its own element only, or shares inputs with it, and no path
 *leads from the kernel around to it. Forward and backward are one graph here, so a decision sees
 *both.
 *	rows: a dense equation, reductions too, joins a kernel that will run row by row (rows.c), so
 *that what they share is loaded once and what only they need is never stored. A loop is a subgraph
 *of its own, of all its results that are needed; its body is partitioned apart. */
#include "jit/internal.h"

#include <stdlib.h>
#include <string.h>

enum {
	BODY_LARGEST = 160,
	INPUTS_MOST = 24,
	MEMBERS_MOST = 16,
	GROUPS_BACK = 64,
	GATHER = 10,
	NEAR = 8 /* traffic between equations of one row is so many times cheaper */
};

typedef struct Use { /* one reader of a tensor */
	Node *reader;
	struct Use *next;
} Use;

typedef struct Group {
	Node **member;
	int nmember, room;
	uint64_t *before; /* bit set of groups that must run before this one */
} Group;

typedef struct Fuse {
	Ir *ir;
	const DeviceModel *dev;
	size_t nid;    /* ids of the original graph */
	Use **uses;    /* by id */
	bool *root;    /* by id */
	Node **now;    /* by id: the equation as it is now; its body when taken in */
	bool *taken;   /* by id: substituted into its readers */
	int *group_of; /* by id of the equation as it is now; -1 none */
	size_t group_ids;
	Group *group;
	int ngroup, words;
	Text dump;
	bool dumping;
} Fuse;

static double reward(const Fuse *f, double bytes, double flops, double launches)
{
	return bytes / f->dev->pd + flops / f->dev->pc + launches * f->dev->launch;
}

static void say(Fuse *f, const char *what, const Node *c, double bytes, double flops,
		double launches, const char *verdict)
{
	if (f->dumping)
		text_add(&f->dump, "%-8s #%u dT %.0f dC %.0f dK %.0f R %.3g us: %s\n", what, c->id,
			 bytes, flops, launches, 1e6 * reward(f, bytes, flops, launches), verdict);
}

/* ---- take in ---- */

typedef struct Reads { /* the READ nodes of one tensor in an expression, sources first */
	Node *tensor, *read[64];
	int n;
	bool overflow;
} Reads;

static void see_read(void *user, Node *n)
{
	Reads *r = user;
	if (n->op != OP_READ || (r->tensor && n->src[0] != r->tensor))
		return;
	if (r->n == COUNT(r->read))
		r->overflow = true;
	else
		r->read[r->n++] = n;
}

static Reads reads_of(Ir *ir, const Node *c, Node *tensor)
{
	Reads r = {.tensor = tensor};
	node_walk(ir, comp_body(c), see_read, &r);
	for (int d = 0; d < tensor_rank(c); d++)
		node_walk(ir, comp_lhs(c, d), see_read, &r);
	return r;
}

/* A sum of products: its factors may be gathered into panels, each element a few times, not once a
 * multiplication. */
static bool is_contraction(const Node *c)
{
	const Node *b = comp_body(c);
	return comp_reduce(c) == RED_ADD && b->op == OP_MUL &&
	       comp_points(c) > 64 * (double)tensor_size(c);
}

/* How many times reader c evaluates what it reads at `read`. */
static double evaluations(const Node *c, const Node *read)
{
	double n = 1;
	for (int k = 0; k < comp_naxis(c); k++) {
		bool there = false;
		for (int d = 1; d < read->nsrc && !there; d++)
			there = node_has(read->src[d], comp_axis(c, k));
		if (there || !is_contraction(c))
			n *= (double)axis_extent(comp_axis(c, k));
	}
	return is_contraction(c) ? 2 * n : n;
}

static void see_any(void *user, Node *n)
{
	*(int *)user += !node_is_tensor(n);
}

static int count_nodes(Ir *ir, Node *e)
{
	int n = 0;
	node_walk(ir, e, see_any, &n);
	return n;
}

static void see_load(void *user, Node *n)
{
	*(int *)user += n->op == OP_READ;
}

/* Arithmetic of one evaluation of `now` inside reader c. While panels are packed an element is
 * gathered, not streamed: each load beyond the one it replaces costs as much as GATHER operations.
 */
static double evaluation_flops(Fuse *f, const Node *reader, Node *now)
{
	int loads = 0;
	node_walk(f->ir, comp_body(now), see_load, &loads);
	double gathers = is_contraction(reader) && loads > 1 ? loads - 1 : 0;
	return expr_flops(f->ir, comp_body(now)) + GATHER * gathers;
}

typedef struct Equality {
	const Reads *reads;
	bool found;
} Equality;

static void see_equality(void *user, Node *n)
{
	Equality *e = user;
	if ((n->op != OP_EQ && n->op != OP_NE) || !type_is_float((Type)n->src[0]->type) ||
	    node_is_const(n->src[0]) || node_is_const(n->src[1])) /* x == 0 of relu may be near */
		return;
	for (int k = 0; k < e->reads->n; k++)
		e->found |= node_has(n, e->reads->read[k]);
}

/* Does the reader ask whether what it reads equals another float (the ties of max=)? Computed
 * again, in another kernel, a value may be rounded otherwise and equal nothing. */
static bool compares_equal(Fuse *f, const Node *reader, const Reads *reads)
{
	Equality e = {reads, false};
	node_walk(f->ir, comp_body(reader), see_equality, &e);
	return e.found;
}

/* What keeps c (now `now`) from being substituted whatever the reward, or NULL. */
static const char *take_in_illegal(Fuse *f, Node *c, Node *now)
{
	if (comp_reduce(now) != RED_NONE || !comp_is_dense(now))
		return "a reduction or a scatter";
	if (f->root[c->id])
		return "a result";
	if (!f->uses[c->id])
		return "not read";
	if (count_nodes(f->ir, comp_body(now)) > BODY_LARGEST)
		return "the body is too large";
	return NULL;
}

/* Would c run row by row with all its readers? Then they find it in the nearest cache. */
static bool near_readers(Fuse *f, Node *c)
{
	Node *all[MEMBERS_MOST] = {c};
	int n = 1;
	for (Use *u = f->uses[c->id]; u; u = u->next) {
		if (n == COUNT(all))
			return false;
		all[n++] = u->reader;
	}
	return subgraph_rows_suit(f->ir, n, all);
}

static bool decide_take_in(Fuse *f, Node *c, Node *now)
{
	const char *why = take_in_illegal(f, c, now);
	if (why) {
		say(f, "take in", c, 0, 0, 0, why);
		return false;
	}
	Node **inputs, **theirs;
	int ninput = comp_reads(f->ir, now, &inputs);
	/* Its own kernel's stores and loads go. */
	double bytes = (double)tensor_bytes(c),
	       flops = expr_flops(f->ir, comp_body(now)) * (double)tensor_size(c);
	for (int k = 0; k < ninput; k++)
		bytes += (double)tensor_bytes(inputs[k]);
	for (Use *u = f->uses[c->id]; u; u = u->next) {
		bool loop = u->reader->op == OP_SCAN;
		Reads r = {0};
		int n = loop ? 0 : comp_reads(f->ir, u->reader, &theirs);
		double each = loop ? 0 : evaluation_flops(f, u->reader, now);
		if (!loop)
			r = reads_of(f->ir, u->reader, c);
		if (loop)
			why = "a loop reads it";
		else if (r.overflow || n + ninput > INPUTS_MOST)
			why = "a reader has too many inputs";
		else if (ninput && compares_equal(f, u->reader, &r))
			why = "a reader compares it for equality";
		if (why) {
			say(f, "take in", c, 0, 0, 0, why);
			return false;
		}
		bytes += (double)tensor_bytes(
			c); /* no longer loaded; its inputs are, unless they are there already */
		for (int k = 0; k < ninput; k++) {
			bool there = false;
			for (int j = 0; j < n; j++)
				there |= theirs[j] == inputs[k];
			bytes -= there ? 0 : (double)tensor_bytes(inputs[k]);
		}
		for (int k = 0; k < r.n; k++)
			flops -= each * evaluations(u->reader, r.read[k]);
	}
	if (flops < 0 && near_readers(f, c))
		bytes /= NEAR;
	bool yes = reward(f, bytes, flops, 1) > 0;
	say(f, "take in", c, bytes, flops, 1, yes ? "yes" : "no");
	return yes;
}

/* e with reads of earlier equations replaced by what those are now. */
static Node *substitute(Fuse *f, Node *e)
{
	Reads all = {0};
	Node *to[64];
	node_walk(f->ir, e, see_read, &all);
	int n = 0;
	for (int k = 0; k < all.n; k++) {
		Node *read = all.read[k], *t = read->src[0], *index[RICCI_MAX_RANK],
		     *axes[RICCI_MAX_RANK];
		if (t->id >= f->nid || !f->now[t->id])
			continue;
		Node *now = f->now[t->id];
		for (int d = 0; d < tensor_rank(t); d++) {
			index[d] = node_replace(f->ir, read->src[1 + d], n, all.read, to);
			axes[d] = f->taken[t->id] ? comp_axis(now, d) : NULL;
		}
		to[n] = f->taken[t->id]
				? node_replace(f->ir, comp_body(now), tensor_rank(t), axes, index)
				: node_read(f->ir, now, index);
		all.read[n++] = read;
	}
	return n ? node_replace(f->ir, e, n, all.read, to) : e;
}

static Node *rebuild(Fuse *f, Node *c)
{
	Node *axes[COMP_MAX_AXES], *lhs[RICCI_MAX_RANK];
	int64_t shape[RICCI_MAX_RANK];
	for (int k = 0; k < comp_naxis(c); k++)
		axes[k] = comp_axis(c, k);
	for (int d = 0; d < tensor_rank(c); d++) {
		lhs[d] = substitute(f, comp_lhs(c, d));
		shape[d] = tensor_extent(c, d);
	}
	return comp_make(f->ir, comp_reduce(c), tensor_rank(c), shape, lhs, comp_naxis(c), axes,
			 substitute(f, comp_body(c)));
}

/* The same result of the loop over what its operands are now. */
static Node *rebuild_scan(Fuse *f, Node *c)
{
	int n = scan_noperand(scan_of(c));
	Node **operand = arena_alloc(&f->ir->arena, (size_t)(n + 1) * sizeof *operand);
	for (int k = 0; k < n; k++) {
		Node *t = scan_operands(c)[k];
		operand[k] = f->now[t->id] ? f->now[t->id] : t;
	}
	return scan_over(f->ir, c, operand);
}

static void find_uses(Fuse *f, int n, Node *const *order)
{
	for (int k = 0; k < n; k++) {
		Node **reads;
		int m = comp_reads(f->ir, order[k], &reads);
		for (int j = 0; j < m; j++) {
			Use *u = arena_alloc(&f->ir->arena, sizeof *u);
			*u = (Use){order[k], f->uses[reads[j]->id]};
			f->uses[reads[j]->id] = u;
		}
	}
}

static void take_in_all(Fuse *f, int nroot, Node **roots)
{
	Node **order;
	int n = graph_order(f->ir, nroot, roots, &order);
	Arena *a = &f->ir->arena;
	f->nid = f->ir->count;
	f->uses = arena_alloc(a, f->nid * sizeof *f->uses);
	f->root = arena_alloc(a, f->nid);
	f->now = arena_alloc(a, f->nid * sizeof *f->now);
	f->taken = arena_alloc(a, f->nid);
	for (int k = 0; k < nroot; k++)
		f->root[roots[k]->id] = true;
	find_uses(f, n, order);
	for (int k = 0; k < n; k++) {
		Node *c = order[k];
		if (c->op == OP_SCAN)
			f->now[c->id] = rebuild_scan(f, c);
		if (c->op != OP_COMP)
			continue;
		f->now[c->id] = rebuild(f, c);
		f->taken[c->id] = decide_take_in(f, c, f->now[c->id]);
	}
	for (int k = 0; k < nroot; k++)
		if (f->now[roots[k]->id])
			roots[k] = f->now[roots[k]->id];
}

/* ---- join ---- */

static bool bit_get(const uint64_t *set, int k)
{
	return set[k / 64] >> (k % 64) & 1;
}

static bool same_space(const Node *a, const Node *b)
{
	if (tensor_rank(a) != tensor_rank(b))
		return false;
	for (int d = 0; d < tensor_rank(a); d++)
		if (tensor_extent(a, d) != tensor_extent(b, d))
			return false;
	return true;
}

/* Does c read t at its own element only? */
static bool reads_own(Ir *ir, const Node *c, Node *t)
{
	Reads r = reads_of(ir, c, t);
	if (r.overflow)
		return false;
	for (int k = 0; k < r.n; k++)
		for (int d = 0; d < tensor_rank(t); d++)
			if (r.read[k]->src[1 + d] != comp_axis(c, d))
				return false;
	return true;
}

static int member_index(const Group *g, const Node *t)
{
	for (int k = 0; k < g->nmember; k++)
		if (g->member[k] == t)
			return k;
	return -1;
}

static int group_of(const Fuse *f, const Node *t)
{
	return t->id < f->group_ids ? f->group_of[t->id] : -1;
}

/* Bytes that c need not move when it joins g; < 0 when it may not, with the reason. */
static double join_saves(Fuse *f, int at, Node *c, int nread, Node *const *reads, const char **why)
{
	Group *g = &f->group[at];
	const Node *main = g->member[0];
	double saved = 0;
	*why = "another space";
	if (main->op == OP_SCAN || !same_space(main, c) || !comp_is_dense(main))
		return -1;
	*why = "too many members or inputs";
	if (g->nmember == MEMBERS_MOST)
		return -1;
	int inputs = nread;
	for (int k = 0; k < g->nmember; k++) {
		Node **theirs;
		int n = comp_reads(f->ir, g->member[k], &theirs);
		inputs += n;
		for (int j = 0; j < n && comp_reduce(main) == RED_NONE; j++)
			for (int i = 0; i < nread; i++)
				if (theirs[j] == reads[i] && reads_own(f->ir, c, reads[i]))
					saved += (double)tensor_bytes(reads[i]);
	}
	if (inputs > 2 * INPUTS_MOST)
		return -1;
	for (int i = 0; i < nread; i++) {
		int h = group_of(f, reads[i]);
		if (h == at) {
			*why = "reads a member at other elements";
			if (!reads_own(f->ir, c, reads[i]))
				return -1;
			saved += (double)tensor_bytes(reads[i]);
		} else if (h >= 0) {
			*why = "a path leads around";
			if (bit_get(f->group[h].before, at))
				return -1;
		}
	}
	*why = "shares nothing";
	return saved > 0 ? saved : -1;
}

/* Bytes that c need not load when it runs row by row with group at; < 0 when it may not. */
static double rows_save(Fuse *f, int at, Node *c, int nread, Node *const *reads)
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
		else if (h >= 0 && bit_get(f->group[h].before, at))
			return -1;
	}
	for (int k = 0; k < g->nmember; k++) {
		Node **theirs;
		int n = comp_reads(f->ir, g->member[k], &theirs);
		all[k] = g->member[k];
		inputs += n;
		for (int j = 0; j < n; j++)
			for (int i = 0; i < nread; i++)
				if (theirs[j] == reads[i] && member_index(g, reads[i]) < 0)
					saved += (double)tensor_bytes(reads[i]);
	}
	all[g->nmember] = c;
	return saved > 0 && inputs <= 2 * INPUTS_MOST &&
			       subgraph_rows_suit(f->ir, g->nmember + 1, all)
		       ? saved
		       : -1;
}

/* Records that group h runs before group at, and all that follows from it. */
static void set_before(Fuse *f, int at, int h)
{
	uint64_t *b = f->group[h].before;
	if (bit_get(f->group[at].before, h))
		return;
	for (int k = 0; k < f->ngroup; k++) {
		if (k != at && !bit_get(f->group[k].before, at))
			continue;
		uint64_t *mine = f->group[k].before;
		mine[h / 64] |= (uint64_t)1 << (h % 64);
		for (int w = 0; w < f->words; w++)
			mine[w] |= b[w];
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

static void group_add(Fuse *f, Group *g, Node *c)
{
	Arena *a = &f->ir->arena;
	if (!g->before)
		g->before = arena_alloc(a, (size_t)f->words * sizeof *g->before);
	if (g->nmember == g->room) { /* a loop may have any number of results */
		Node **member = g->member;
		g->room = g->room ? 2 * g->room : 4;
		g->member = arena_alloc(a, (size_t)g->room * sizeof *g->member);
		if (g->nmember)
			memcpy(g->member, member, (size_t)g->nmember * sizeof *member);
	}
	g->member[g->nmember++] = c;
}

static void join_one(Fuse *f, Node *c)
{
	Node **reads;
	int nread = comp_reads(f->ir, c, &reads), best = -1;
	double most = 0;
	const char *why = "";
	bool loop = c->op == OP_SCAN;
	bool elementwise = !loop && comp_reduce(c) == RED_NONE && comp_is_dense(c);
	if (loop)
		best = scan_group(f, c);
	for (int at = f->ngroup - 1; elementwise && at >= 0 && at > f->ngroup - GROUPS_BACK; at--) {
		double saved = join_saves(f, at, c, nread, reads, &why);
		if (saved > most && reward(f, saved, 0, 1) > 0) {
			most = saved;
			best = at;
		}
	}
	bool dense = !loop && comp_is_dense(c), rows = false;
	for (int at = f->ngroup - 1; dense && at >= 0 && at > f->ngroup - GROUPS_BACK; at--) {
		double saved = rows_save(f, at, c, nread, reads);
		if (saved > most && reward(f, saved, 0, 1) > 0) {
			most = saved;
			best = at;
			rows = true;
		}
	}
	if (best < 0) {
		best = f->ngroup++;
		if (elementwise)
			say(f, "join", c, 0, 0, 0, best ? why : "the first");
	} else if (!loop) {
		say(f, "join", c, most, 0, 1, rows ? "row by row" : "yes");
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

/* What a kernel's equations read, each tensor once; of a loop the operands. */
static void put_inputs(Fuse *f, Subgraph *s, const Group *g)
{
	int room = 0;
	const Node *main = g->member[0];
	if (main->op == OP_SCAN) {
		s->ninput = scan_noperand(scan_of(main));
		s->input = arena_alloc(&f->ir->arena, ((size_t)s->ninput + 1) * sizeof *s->input);
		memcpy(s->input, scan_operands(main), (size_t)s->ninput * sizeof *s->input);
		return;
	}
	for (int pass = 0; pass < 2; pass++) {
		for (int k = 0; k < g->nmember; k++) {
			Node **reads;
			int n = comp_reads(f->ir, g->member[k], &reads);
			room += pass == 0 ? n : 0;
			for (int j = 0; j < n && pass; j++) {
				bool there = member_index(g, reads[j]) >= 0;
				for (int i = 0; i < s->ninput; i++)
					there |= s->input[i] == reads[j];
				if (!there)
					s->input[s->ninput++] = reads[j];
			}
		}
		if (pass == 0)
			s->input =
				arena_alloc(&f->ir->arena, (size_t)(room + 1) * sizeof *s->input);
	}
}

static void put_subgraph(Fuse *f, Subgraph *s, int at, const bool *needed)
{
	Group *g = &f->group[at];
	s->nmember = g->nmember;
	s->member = g->member;
	s->stored = arena_alloc(&f->ir->arena, (size_t)g->nmember);
	for (int k = 0; k < g->nmember; k++)
		s->stored[k] = needed[g->member[k]->id];
	s->rows = subgraph_rows(f->ir, g->nmember, g->member);
	put_inputs(f, s, g);
}

/* Groups in an order that can run: the first whose predecessors are all out, again and again. The
 * bit sets are closed, so a group with fewer predecessors never depends on one with more: sorting
 * by their number is enough. */
static int popcount(const uint64_t *set, int words)
{
	int n = 0;
	for (int k = 0; k < words; k++)
		n += __builtin_popcountll(set[k]);
	return n;
}

typedef struct Rank {
	int group, before;
} Rank;

static int by_before(const void *a, const void *b)
{
	const Rank *x = a, *y = b;
	return x->before != y->before ? (x->before < y->before ? -1 : 1)
	       : x->group < y->group  ? -1
				      : x->group > y->group;
}

static void join_all(Fuse *f, int nroot, Node *const *roots, int *nsub, Subgraph **subs)
{
	Node **order;
	Arena *a = &f->ir->arena;
	int n = graph_order(f->ir, nroot, roots, &order);
	f->group_ids = f->ir->count;
	f->group_of = arena_alloc(a, f->group_ids * sizeof *f->group_of);
	f->group = arena_alloc(a, (size_t)(n + 1) * sizeof *f->group);
	f->words = n / 64 + 1;
	bool *needed = arena_alloc(a, f->group_ids);
	memset(f->group_of, -1, f->group_ids * sizeof *f->group_of);
	for (int k = 0; k < n; k++)
		if (order[k]->op != OP_INPUT)
			join_one(f, order[k]);
	for (int k = 0; k < nroot; k++)
		needed[roots[k]->id] = true;
	for (int k = 0; k < n; k++) {
		Node **reads;
		int m = comp_reads(f->ir, order[k], &reads);
		for (int j = 0; j < m; j++)
			if (group_of(f, reads[j]) >= 0 &&
			    group_of(f, reads[j]) != group_of(f, order[k]))
				needed[reads[j]->id] = true;
	}
	Rank *rank = arena_alloc(a, (size_t)(f->ngroup + 1) * sizeof *rank);
	for (int k = 0; k < f->ngroup; k++)
		rank[k] = (Rank){k, popcount(f->group[k].before, f->words)};
	qsort(rank, (size_t)f->ngroup, sizeof *rank, by_before);
	*nsub = f->ngroup;
	*subs = arena_alloc(a, (size_t)(f->ngroup + 1) * sizeof **subs);
	for (int k = 0; k < f->ngroup; k++)
		put_subgraph(f, &(*subs)[k], rank[k].group, needed);
}

int fuse_partition(Ir *ir, int nroot, Node **roots, const DeviceModel *dev, int *nsub,
		   Subgraph **subs)
{
	Fuse f = {.ir = ir, .dev = dev, .dumping = env_dump("fuse")};
	take_in_all(&f, nroot, roots);
	join_all(&f, nroot, roots, nsub, subs);
	env_dump_text("fuse", "decisions", f.dump.s);
	text_free(&f.dump);
	return ir->err.code;
}

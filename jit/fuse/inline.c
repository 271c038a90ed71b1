/* inline.c - elementwise equations are substituted into all their readers (inlined), where R says so.
 *
 * In: roots of a cleaned graph. Out: the equations as they are now, by the id of the old ones;
 * roots updated. Invariant: an equation whose readers compare it for equality stays. A sum of a few
 * points counts as elementwise where it is one phase's part of its readers. */
#include "jit/fuse/internal.h"
#include "jit/rewrite/products.h"

enum {
	BODY_LARGEST = 160,
	READS_MOST = 64, /* places of one reader where a body would be written */
	SUM_SHORT = 4,	 /* points that are written out */
	GATHER = 10,
	NEAR = 8, /* traffic between equations of one row is so many times cheaper, where it is of so many */
	NEAR_BYTES = 1 << 17, /* bytes, and there are so many rows */
	NEAR_ROWS = 64
};

bool fuse_is_contraction(Ir *ir, const Node *c)
{
	const Node *b = comp_body(c);
	return comp_reduce(c) == RED_ADD && b->op == OP_MUL &&
	       comp_work(ir, c, 0) > 64 * (double)tensor_size(c) && !product_beside(ir, c);
}

/* The condition of a choice by a remainder, or NULL. */
static Node *remainder_compared(const Node *e)
{
	Node *c = e->op == OP_SELECT ? e->src[0] : NULL;
	return c && c->op == OP_EQ && c->src[0]->op == OP_FLOORMOD && node_is_const(c->src[1])
		       ? c
		       : NULL;
}

typedef struct Shares {
	Ir *ir;
	Node *read;
	NodeMap known; /* share_find of a node met before */
} Shares;

/* The part of its points for which e, a choice by remainders, comes to the read. */
static double share_find(Shares *s, Node *e)
{
	double sum = 0, left = 1, *known = node_map_get(&s->known, e);
	Node *c = remainder_compared(e), *key = e;
	if (known)
		return *known;
	for (Node *by = c ? c->src[0] : NULL; c && c->src[0] == by; c = remainder_compared(e)) {
		if (node_has(c, s->read))
			break;
		double part = 1 / (double)by->src[1]->u.i;
		sum += part * share_find(s, e->src[1]);
		left -= part;
		e = e->src[2];
	}
	if (c && !node_has(c, s->read)) /* by another remainder */
		sum += left * share_find(s, e);
	else
		sum += node_has(e, s->read) ? left : 0;
	known = arena_alloc(&s->ir->arena, sizeof *known);
	*known = sum;
	node_map_put(s->ir, &s->known, key, known);
	return sum;
}

static double share_of(Ir *ir, Node *e, Node *read)
{
	Shares s = {.ir = ir, .read = read};
	return share_find(&s, e);
}

/* How many times reader c evaluates what it reads at `read`. */
static double evaluations(Ir *ir, const Node *c, Node *read)
{
	bool contraction = fuse_is_contraction(ir, c);
	double n = comp_reduce(c) == RED_NONE ? share_of(ir, comp_body(c), read)
					      : comp_work(ir, c, 0) / comp_points(c);
	for (int k = 0; k < comp_naxis(c); k++) {
		bool there = false;
		for (int d = 1; d < read->nsrc && !there; d++)
			there = node_has(read->src[d], comp_axis(c, k));
		if (there || !contraction)
			n *= (double)axis_extent(comp_axis(c, k));
	}
	return contraction ? 2 * n : n;
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

/* How many tensors are read across the lines of c. */
static int reads_across_lines(Ir *ir, Node *c)
{
	Node **read;
	int rank = tensor_rank(c), found = 0, n = node_collect(ir, comp_body(c), OP_READ, &read);
	for (int k = 0; k < n && rank; k++)
		for (int d = 1; d + 1 < read[k]->nsrc; d++)
			found += node_has(read[k]->src[d], comp_axis(c, rank - 1));
	return found;
}

/* Arithmetic of one evaluation of `now` inside reader c. While panels are packed an element is
 * gathered, not streamed: each load beyond the one it replaces costs as much as GATHER operations. Elsewhere those are
 * gathered that lie across the lines of `now`. */
static double evaluation_flops(Fuse *f, const Node *reader, Node *now)
{
	int loads = 0;
	node_walk(f->ir, comp_body(now), see_load, &loads);
	double gathers = !fuse_is_contraction(f->ir, reader) ? reads_across_lines(f->ir, now)
			 : loads > 1			     ? loads - 1
							     : 0;
	return expr_flops(f->ir, comp_body(now)) + GATHER * gathers;
}

typedef struct Equality {
	const Reads *reads;
	bool found;
} Equality;

/* a == b, a != b, and !(a < b) where a does not exceed b. */
static void see_equality(void *user, Node *n)
{
	Equality *e = user;
	if (n->op == OP_NOT)
		n = n->src[0];
	else if (n->op != OP_EQ && n->op != OP_NE)
		return;
	if (n->nsrc != 2 || !type_is_float((Type)n->src[0]->type) || node_is_const(n->src[0]) ||
	    node_is_const(n->src[1])) /* x == 0 of relu may be near */
		return;
	for (int k = 0; k < e->reads->n; k++)
		e->found |= node_has(n, e->reads->read[k]);
}

bool fuse_compares_equal(Fuse *f, const Node *reader, const Reads *reads)
{
	Equality e = {reads, false};
	node_walk(f->ir, comp_body(reader), see_equality, &e);
	return e.found;
}

/* Would substituting `now` lose what keeps its reads inside of their tensors? That may follow from its conditions
 * and the ranges of its axes; a gather's index, which would stand in their place, has the range of its data type. */
static bool loses_ranges(Fuse *f, const Node *now, const Reads *reads)
{
	bool gather = false;
	for (int k = 0; k < reads->n; k++)
		for (int d = 1; d < reads->read[k]->nsrc; d++)
			gather |= node_reads(f->ir, reads->read[k]->src[d]);
	return gather && node_any(f->ir, comp_body(now), node_reads_outside);
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

/* Is it one phase's part of all its readers? */
static bool is_part(Fuse *f, Node *c)
{
	bool part = f->uses[c->id] != NULL;
	for (Use *u = f->uses[c->id]; u && part; u = u->next) {
		const Node *reader = u->reader;
		part = reader->op == OP_COMP && comp_reduce(reader) == RED_NONE;
		if (!part)
			break;
		Reads r = fuse_reads(f->ir, reader, c);
		for (int k = 0; k < r.n && part; k++)
			part = share_of(f->ir, comp_body(reader), r.read[k]) < 1;
	}
	return part;
}

/* How many points make an element of c; more than SUM_SHORT: many. */
static int64_t points_each(const Node *c)
{
	int64_t points = 1;
	for (int k = tensor_rank(c); k < comp_naxis(c) && points <= SUM_SHORT; k++)
		points *= axis_extent(comp_axis(c, k));
	return points;
}

/* c (now `now`), a sum of few points, as an elementwise equation; NULL: it is none, or not one
 * phase's part. */
static Node *write_out(Fuse *f, Node *c, const Node *now)
{
	Ir *ir = f->ir;
	int rank = tensor_rank(now), n = comp_naxis(now) - rank;
	Node *axes[COMP_MAX_AXES], *at[COMP_MAX_AXES], *sum = NULL;
	int64_t shape[RICCI_MAX_RANK], points = points_each(now);
	if (comp_reduce(now) != RED_ADD || points > SUM_SHORT || !comp_is_dense(now) ||
	    type_accumulator(now->type) != now->type || !is_part(f, c))
		return NULL;
	for (int k = 0; k < rank + n; k++)
		axes[k] = comp_axis(now, k);
	for (int d = 0; d < rank; d++)
		shape[d] = tensor_extent(now, d);
	for (int64_t p = 0; p < points; p++) {
		int64_t left = p;
		for (int k = n - 1; k >= 0; k--) {
			at[k] = node_int(ir, left % axis_extent(axes[rank + k]));
			left /= axis_extent(axes[rank + k]);
		}
		Node *term = node_replace(ir, comp_body(now), n, axes + rank, at);
		sum = sum ? node2(ir, OP_ADD, sum, term) : term;
	}
	return sum ? comp_make(ir, RED_NONE, rank, shape, axes, rank, axes, sum) : NULL;
}

/* Would c run row by row with all its readers, on rows so small that they find it in the nearest cache, and
 * so many that nothing else decides? */
static bool near_readers(Fuse *f, Node *c)
{
	Node *all[MEMBERS_MOST] = {c};
	DeviceModel nearest = *f->dev;
	int n = 1;
	for (Use *u = f->uses[c->id]; u; u = u->next) {
		if (n == COUNT(all))
			return false;
		all[n++] = u->reader;
	}
	nearest.core = nearest.core < NEAR_BYTES ? nearest.core : NEAR_BYTES;
	nearest.threads = NEAR_ROWS / 2;
	return subgraph_rows_suit(f->ir, n, all, &nearest) > 0;
}

static bool decide_inline(Fuse *f, Node *c, Node *now)
{
	const char *why = take_in_illegal(f, c, now);
	if (why) {
		fuse_say(f, "inline", c, 0, 0, 0, why);
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
			r = fuse_reads(f->ir, u->reader, c);
		if (loop)
			why = "a loop reads it";
		else if (r.n > READS_MOST)
			why = "a reader reads it too often";
		else if (n + ninput > INPUTS_MOST)
			why = "a reader has too many inputs";
		else if (ninput && fuse_compares_equal(f, u->reader, &r))
			why = "a reader compares it for equality";
		else if (loses_ranges(f, now, &r))
			why = "a reader gathers from it, and its conditions need its ranges";
		if (why) {
			fuse_say(f, "inline", c, 0, 0, 0, why);
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
			flops -= each * evaluations(f->ir, u->reader, r.read[k]);
	}
	if (flops < 0 && f->axes && near_readers(f, c))
		bytes /= NEAR;
	bool yes = fuse_reward(f, bytes, flops, 1) > 0;
	fuse_say(f, "inline", c, bytes, flops, 1, yes ? "yes" : "no");
	return yes;
}

/* e with reads of earlier equations replaced by what those are now. */
static Node *substitute(Fuse *f, Node *e)
{
	Reads all = fuse_reads_in(f->ir, e);
	Node **to = arena_alloc(&f->ir->arena, ((size_t)all.n + 1) * sizeof *to);
	int n = 0;
	for (int k = 0; k < all.n; k++) {
		Node *read = all.read[k], *t = read->src[0], *index[RICCI_MAX_RANK],
		     *axes[RICCI_MAX_RANK];
		if (t->id >= f->nid || !f->now[t->id])
			continue;
		Node *now = f->now[t->id];
		for (int d = 0; d < tensor_rank(t); d++) {
			index[d] = node_replace(f->ir, read->src[1 + d], n, all.read, to);
			axes[d] = f->inlined[t->id] ? comp_axis(now, d) : NULL;
		}
		to[n] = f->inlined[t->id]
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
	Node *body = substitute(f, comp_body(c));
	bool same = body == comp_body(c);
	/* What was inside of an equation that is substituted is inside of what that reads. */
	if (!same && comp_reduce(c) == RED_ADD)
		body = bounds_read(f->ir, body);
	Node *now = comp_make(f->ir, comp_reduce(c), tensor_rank(c), shape, lhs, comp_naxis(c),
			      axes, body);
	return same ? now : axes_joined(f->ir, now);
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

void fuse_inline(Fuse *f, int nroot, Node **roots)
{
	Node **order;
	int n = graph_order(f->ir, nroot, roots, &order);
	Arena *a = &f->ir->arena;
	f->nid = f->ir->count;
	f->uses = fuse_uses(f->ir, n, order);
	f->root = arena_alloc(a, f->nid);
	f->now = arena_alloc(a, f->nid * sizeof *f->now);
	f->inlined = arena_alloc(a, f->nid);
	for (int k = 0; k < nroot; k++)
		f->root[roots[k]->id] = true;
	for (int k = 0; k < n; k++) {
		Node *c = order[k];
		if (c->op == OP_SCAN)
			f->now[c->id] = rebuild_scan(f, c);
		if (c->op != OP_COMP)
			continue;
		f->now[c->id] = rebuild(f, c);
		Node *flat = write_out(f, c, f->now[c->id]);
		f->inlined[c->id] = f->inlines && decide_inline(f, c, flat ? flat : f->now[c->id]);
		if (flat && f->inlined[c->id])
			f->now[c->id] = flat;
	}
	for (int k = 0; k < nroot; k++)
		if (f->now[roots[k]->id])
			roots[k] = f->now[roots[k]->id];
}

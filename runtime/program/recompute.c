/* recompute.c - what a step computes again, so that the tensors between its kernels fit into a limit.
 *
 * Input: the runs of a step in order, what each reads and writes, what it takes. Output: launches,
 * which are the runs in the same order, some of them more than once, and copies of tensors, each
 * with the launches from which and to which it lives. The step is simulated with all its reads
 * known. Where a launch finds no room, tensors are dropped: those first that cost least to compute
 * again, with all that is gone of what they are made of, by bytes and by the time until they are
 * read next. What a launch reads and doesn't find is computed again just before it (after Kirisame
 * et al., "Dynamic tensor rematerialization", 2021, where a step is followed while it runs; on a
 * chain of n equal tensors this takes the square root of n of them, as the segments of Chen et al.,
 * "Training deep nets with sublinear memory cost", 2016). A tensor that is dropped before it was
 * read is computed later, not again. At the end, what turns out to have room is kept after all.
 * Invariant: copies that live in a common launch take no more than the limit.
 */
#include "runtime/program/recompute.h"
#include <string.h>

enum {
	CHAIN_MOST = 64,   /* runs of which a tensor's price is made */
	LAUNCHES_MOST = 8, /* times as many as there are runs */
	TRIES = 12
};

/* A tensor while the step is simulated. */
typedef struct Held {
	int run;	       /* that writes it */
	int nuse, next, *use;  /* the runs that read it; those before `next` are done */
	int copy, place, pins; /* copy: -1, it is not there; place: among those there */
	bool may;	       /* it may be dropped */
} Held;

/* A run to be done as soon as all that it reads is there. */
typedef struct Pending {
	int run, pins; /* pins: where its own begin */
} Pending;

typedef struct Fit {
	const Step *s;
	LaunchPlan *p;
	Arena *arena;
	size_t limit, held;
	int at; /* the run that is due */
	Held *tensor;
	int *there, nthere; /* tensors */
	Pending *pending;
	int npending, pending_room, *pin, npin, pin_room;
	int *seen, search; /* by run: the last search that met it */
	int launch_room, copy_room;
} Fit;

/* ---- what may be dropped ---- */
static void find_uses(Fit *f)
{
	const Step *s = f->s;

	for (int i = 0; i < s->nrun; i++) {
		for (int k = 0; k < s->run[i].nwrite; k++)
			f->tensor[s->run[i].write[k]].run = i;
		for (int k = 0; k < s->run[i].nread; k++)
			f->tensor[s->run[i].read[k]].nuse++;
	}
	for (int t = 0; t < s->ntensor; t++) {
		Held *h = &f->tensor[t];

		h->use = arena_alloc(f->arena, ((size_t)h->nuse + 1) * sizeof *h->use);
		h->nuse = 0;
		h->copy = -1;
	}
	for (int i = 0; i < s->nrun; i++)
		for (int k = 0; k < s->run[i].nread; k++) {
			Held *h = &f->tensor[s->run[i].read[k]];
			h->use[h->nuse++] = i;
		}
}

/* Until its last use a tensor that may be dropped can be computed again at any time: its run may run
 * again, and all that this reads is there or can be had so. */
static void find_droppable(Fit *f)
{
	const Step *s = f->s;
	int *until = arena_alloc(f->arena, ((size_t)s->ntensor + 1) * sizeof *until);

	for (int i = 0; i < s->nrun; i++) {
		const StepRun *r = &s->run[i];
		int again = r->until;

		for (int k = 0; k < r->nread; k++)
			again = until[r->read[k]] < again ? until[r->read[k]] : again;
		for (int k = 0; k < r->nwrite; k++) {
			Held *h = &f->tensor[r->write[k]];
			int last = h->nuse ? h->use[h->nuse - 1] : i;

			h->may = again >= last;
			until[r->write[k]] = h->may ? again : last;
		}
	}
}

/* ---- dropping ---- */
static void put(Fit *f, int tensor, int copy)
{
	Held *h = &f->tensor[tensor];

	h->copy = copy;
	h->place = f->nthere;
	f->there[f->nthere++] = tensor;
	f->held += f->s->bytes[tensor];
}

static void drop(Fit *f, int tensor)
{
	Held *h = &f->tensor[tensor];
	int other = f->there[--f->nthere];

	f->there[h->place] = other;
	f->tensor[other].place = h->place;
	h->copy = -1;
	f->held -= f->s->bytes[tensor];
}

/* Seconds of the runs that make the tensor from what is there, as far as CHAIN_MOST of them tell. One
 * that nobody has read yet is made later instead. */
static double price(Fit *f, int tensor)
{
	int open[CHAIN_MOST], n = 0;
	const Held *h = &f->tensor[tensor];
	double seconds = 0;

	if (!f->p->copy[h->copy].read && !f->s->run[h->run].stays)
		seconds -= f->s->run[h->run].seconds;
	f->search++;
	f->seen[h->run] = f->search;
	open[n++] = h->run;
	for (int i = 0; i < n; i++) {
		const StepRun *r = &f->s->run[open[i]];

		seconds += r->seconds;
		for (int k = 0; k < r->nread && n < CHAIN_MOST; k++) {
			const Held *from = &f->tensor[r->read[k]];

			if (from->copy >= 0 || f->seen[from->run] == f->search)
				continue;
			f->seen[from->run] = f->search;
			open[n++] = from->run;
		}
	}
	return seconds;
}

/* Drops the best one; false: there is none. */
static bool drop_one(Fit *f)
{
	int best = -1;
	double least = 0;

	for (int i = 0; i < f->nthere; i++) {
		int t = f->there[i];
		const Held *h = &f->tensor[t];
		double score;

		if (h->pins || !h->may || h->next == h->nuse)
			continue;
		score = price(f, t) /
			((double)f->s->bytes[t] * (double)(h->use[h->next] - f->at + 1));
		if (best < 0 || score < least) {
			best = t;
			least = score;
		}
	}
	if (best >= 0)
		drop(f, best);
	return best >= 0;
}

/* ---- the simulation ---- */
static void pin(Fit *f, int from, int tensor)
{
	for (int i = from; i < f->npin; i++)
		if (f->pin[i] == tensor)
			return;
	f->pin = arena_grow(f->arena, f->pin, f->npin, &f->pin_room, sizeof *f->pin);
	f->pin[f->npin++] = tensor;
	f->tensor[tensor].pins++;
}

static void pin_there(Fit *f, int from, const int *tensor, int n)
{
	for (int k = 0; k < n; k++)
		if (f->tensor[tensor[k]].copy >= 0)
			pin(f, from, tensor[k]);
}

static void push(Fit *f, int run)
{
	f->pending =
		arena_grow(f->arena, f->pending, f->npending, &f->pending_room, sizeof *f->pending);
	f->pending[f->npending++] = (Pending){run, f->npin};
}

static int copy_new(Fit *f, int tensor)
{
	LaunchPlan *p = f->p;

	p->copy = arena_grow(f->arena, p->copy, p->ncopy, &f->copy_room, sizeof *p->copy);
	p->copy[p->ncopy] = (TensorCopy){.tensor = tensor};
	put(f, tensor, p->ncopy);
	return p->ncopy++;
}

static void launch(Fit *f, int run)
{
	LaunchPlan *p = f->p;
	const StepRun *r = &f->s->run[run];
	Launch l = {.run = run, .due = f->npending == 1, .seen = f->npending == 1};

	l.read = arena_alloc(f->arena, ((size_t)r->nread + 1) * sizeof *l.read);
	l.write = arena_alloc(f->arena, ((size_t)r->nwrite + 1) * sizeof *l.write);
	for (int k = 0; k < r->nread; k++) {
		l.read[k] = f->tensor[r->read[k]].copy;
		p->copy[l.read[k]].read = true;
	}
	for (int k = 0; k < r->nwrite; k++) {
		int copy = f->tensor[r->write[k]].copy;
		l.write[k] = copy >= 0 ? copy : copy_new(f, r->write[k]);
	}
	p->launch = arena_grow(f->arena, p->launch, p->nlaunch, &f->launch_room, sizeof *p->launch);
	p->launch[p->nlaunch++] = l;
}

static bool make_room(Fit *f, const StepRun *r)
{
	size_t more = r->bytes;

	for (int k = 0; k < r->nwrite; k++)
		more += f->tensor[r->write[k]].copy < 0 ? f->s->bytes[r->write[k]] : 0;
	while (f->held + more > f->limit)
		if (!drop_one(f))
			return false;
	return true;
}

static void release(Fit *f, const int *tensor, int n)
{
	for (int k = 0; k < n; k++) {
		const Held *h = &f->tensor[tensor[k]];

		if (h->copy >= 0 && !h->pins && h->next == h->nuse)
			drop(f, tensor[k]);
	}
}

/* The run on top has all that it reads. */
static bool finish(Fit *f)
{
	Pending top = f->pending[f->npending - 1];
	const StepRun *r = &f->s->run[top.run];

	pin_there(f, top.pins, r->write, r->nwrite);
	if (!make_room(f, r))
		return false;
	launch(f, top.run);
	while (f->npin > top.pins)
		f->tensor[f->pin[--f->npin]].pins--;
	if (--f->npending) {
		const Pending *on = &f->pending[f->npending - 1];
		pin_there(f, on->pins, f->s->run[on->run].read, f->s->run[on->run].nread);
	} else {
		for (int k = 0; k < r->nread; k++)
			f->tensor[r->read[k]].next++;
	}
	release(f, r->read, r->nread);
	release(f, r->write, r->nwrite);
	return true;
}

/* Run number f->at, and before it what it reads and doesn't find. */
static bool due(Fit *f)
{
	push(f, f->at);
	while (f->npending) {
		const Pending *top = &f->pending[f->npending - 1];
		const StepRun *r = &f->s->run[top->run];
		int k = 0;

		pin_there(f, top->pins, r->read, r->nread);
		while (k < r->nread && f->tensor[r->read[k]].copy >= 0)
			k++;
		if (k < r->nread)
			push(f, f->tensor[r->read[k]].run);
		else if (f->p->nlaunch >= LAUNCHES_MOST * (f->s->nrun + 8) || !finish(f))
			return false;
	}
	return true;
}

/* ---- afterwards ---- */
/* From what launches read and write: the lives of copies. */
static void find_lives(const Step *s, LaunchPlan *p)
{
	for (int c = 0; c < p->ncopy; c++)
		p->copy[c] = (TensorCopy){p->copy[c].tensor, -1, -1, false};
	for (int i = 0; i < p->nlaunch; i++) {
		const Launch *l = &p->launch[i];

		for (int k = 0; k < s->run[l->run].nread; k++) {
			p->copy[l->read[k]].last = i;
			p->copy[l->read[k]].read = true;
		}
		for (int k = 0; k < s->run[l->run].nwrite; k++) {
			TensorCopy *c = &p->copy[l->write[k]];
			c->first = c->first < 0 ? i : c->first;
			c->last = i;
		}
	}
}

/* Launches whose results nobody reads go, then those that only these needed. */
static void prune(const Step *s, LaunchPlan *p)
{
	int n = 0;

	find_lives(s, p);
	for (int c = 0; c < p->ncopy; c++)
		p->copy[c].read = false;
	for (int i = p->nlaunch - 1; i >= 0; i--) {
		Launch *l = &p->launch[i];

		l->needed = l->due && s->run[l->run].stays;
		for (int k = 0; k < s->run[l->run].nwrite; k++)
			l->needed |= p->copy[l->write[k]].read && p->copy[l->write[k]].first == i;
		for (int k = 0; k < s->run[l->run].nread && l->needed; k++)
			p->copy[l->read[k]].read = true;
	}
	for (int i = 0; i < p->nlaunch; i++)
		if (p->launch[i].needed)
			p->launch[n++] = p->launch[i];
	p->nlaunch = n;
	find_lives(s, p);
}

/* The bytes of each launch. held: one more than there are launches. */
static size_t find_held(const Step *s, const LaunchPlan *p, size_t *held)
{
	size_t sum = 0, most = 0;

	memset(held, 0, ((size_t)p->nlaunch + 1) * sizeof *held);
	for (int c = 0; c < p->ncopy; c++)
		if (p->copy[c].first >= 0) {
			held[p->copy[c].first] += s->bytes[p->copy[c].tensor];
			held[p->copy[c].last + 1] -= s->bytes[p->copy[c].tensor];
		}
	for (int i = 0; i < p->nlaunch; i++) {
		sum += held[i];
		held[i] = sum + s->run[p->launch[i].run].bytes;
		most = held[i] > most ? held[i] : most;
	}
	return most;
}

typedef struct Merge { /* a copy that a launch makes, and the one of the same tensor before it */
	int copy, before;
} Merge;

static int copy_before(const LaunchPlan *p, int c)
{
	int best = -1;

	for (int k = 0; k < p->ncopy; k++)
		if (p->copy[k].tensor == p->copy[c].tensor && p->copy[k].first >= 0 &&
		    p->copy[k].first < p->copy[c].first &&
		    (best < 0 || p->copy[k].first > p->copy[best].first))
			best = k;
	return best;
}

/* What of launch `at` others read; -1: some of it was not computed before. */
static int find_merges(const Step *s, const LaunchPlan *p, int at, Merge *m)
{
	const Launch *l = &p->launch[at];
	int n = 0;

	for (int k = 0; k < s->run[l->run].nwrite; k++) {
		const TensorCopy *c = &p->copy[l->write[k]];

		if (c->first < at || !c->read)
			continue;
		m[n] = (Merge){l->write[k], copy_before(p, l->write[k])};
		if (m[n++].before < 0)
			return -1;
	}
	return n;
}

/* Would the copies before have room until launch `at`? Then they are counted there. */
static bool merges_fit(const Step *s, const LaunchPlan *p, int at, int n, const Merge *m,
		       size_t limit, size_t *held)
{
	bool fit = true;

	for (int undo = 0; undo <= !fit; undo++)
		for (int k = 0; k < n; k++)
			for (int i = p->copy[m[k].before].last + 1; i < at; i++) {
				size_t bytes = s->bytes[p->copy[m[k].copy].tensor];

				held[i] += undo ? -bytes : bytes;
				fit &= undo || held[i] <= limit;
			}
	return fit;
}

static void merge_do(const Step *s, LaunchPlan *p, const Merge *m)
{
	for (int i = p->copy[m->copy].first; i <= p->copy[m->copy].last; i++) {
		const Launch *l = &p->launch[i];
		const StepRun *r = &s->run[l->run];

		for (int k = 0; k < r->nread; k++)
			l->read[k] = l->read[k] == m->copy ? m->before : l->read[k];
		for (int k = 0; k < r->nwrite; k++)
			l->write[k] = l->write[k] == m->copy ? m->before : l->write[k];
	}
}

/* The dearest launch that computes again and was not looked at yet; -1: none is left. */
static int next_dear(const Step *s, const LaunchPlan *p)
{
	int best = -1;

	for (int i = 0; i < p->nlaunch; i++)
		if (!p->launch[i].seen && (best < 0 || s->run[p->launch[i].run].seconds >
							       s->run[p->launch[best].run].seconds))
			best = i;
	return best;
}

/* What launches compute again although there is room for it all the time is kept. */
static void keep(Fit *f)
{
	const Step *s = f->s;
	LaunchPlan *p = f->p;
	size_t *held = arena_alloc(f->arena, ((size_t)p->nlaunch + 1) * sizeof *held);
	Merge *m = arena_alloc(f->arena, ((size_t)s->ntensor + 1) * sizeof *m);

	find_held(s, p, held);
	for (int at = next_dear(s, p); at >= 0; at = next_dear(s, p)) {
		int n = find_merges(s, p, at, m);

		p->launch[at].seen = true;
		if (n <= 0 || !merges_fit(s, p, at, n, m, f->limit, held))
			continue;
		for (int k = 0; k < n; k++)
			merge_do(s, p, &m[k]);
		prune(s, p);
		find_held(s, p, held);
	}
	p->bytes = find_held(s, p, held);
}

/* ---- one limit, and those that its memory plan needs ---- */
static bool simulate(const Step *s, size_t limit, Arena *a, LaunchPlan *p)
{
	Fit f = {.s = s, .p = p, .arena = a, .limit = limit};
	bool fits = true;

	*p = (LaunchPlan){0};
	f.tensor = arena_alloc(a, ((size_t)s->ntensor + 1) * sizeof *f.tensor);
	f.there = arena_alloc(a, ((size_t)s->ntensor + 1) * sizeof *f.there);
	f.seen = arena_alloc(a, ((size_t)s->nrun + 1) * sizeof *f.seen);
	find_uses(&f);
	find_droppable(&f);
	for (; f.at < s->nrun && fits; f.at++)
		fits = due(&f);
	if (!fits)
		return false;
	prune(s, p);
	keep(&f);
	return true;
}

/* Where the copies are in one piece of memory, and how large it is. */
static int place(const Step *s, Arena *a, LaunchPlan *p, Error *err)
{
	PlanItem *item = arena_alloc(a, ((size_t)p->ncopy + (size_t)p->nlaunch + 1) * sizeof *item);
	int n = 0;

	for (int c = 0; c < p->ncopy; c++)
		if (p->copy[c].first >= 0)
			item[n++] = (PlanItem){s->bytes[p->copy[c].tensor], p->copy[c].first,
					       p->copy[c].last, 0};
	for (int i = 0; i < p->nlaunch; i++)
		if (s->run[p->launch[i].run].bytes)
			item[n++] = (PlanItem){s->run[p->launch[i].run].bytes, i, i, 0};
	return plan_offsets(n, item, &p->bytes, err);
}

int step_fit(const Step *s, size_t limit, Arena *a, LaunchPlan *out, Error *err)
{
	size_t low = 0, high, at = limit ? limit : 1;
	int code;

	simulate(s, SIZE_MAX, a, out); /* nothing again */
	high = out->bytes;
	code = place(s, a, out, err);
	for (int k = 0; k < TRIES && !code && out->bytes > limit; k++) {
		LaunchPlan p;
		bool fits = simulate(s, at, a, &p);
		size_t lives = fits ? p.bytes : 0;

		code = fits ? place(s, a, &p, err) : 0;
		if (fits && p.bytes < out->bytes)
			*out = p;
		if (fits)
			high = lives < high ? lives : high;
		else
			low = at;
		/* What is lost between tensors is known now; or else, how low it can be. */
		if (fits && !low)
			at = p.bytes - limit < lives ? lives - (p.bytes - limit) : lives / 2 + 1;
		else
			at = low + (high - low) / 2;
	}
	return code;
}

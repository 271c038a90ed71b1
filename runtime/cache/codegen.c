/* codegen.c - making kernels: candidates to kernels, and the first kernels of entries.
 *
 * Sources that go to an outside compiler go there several at a time; where one of them is refused,
 * each is tried alone. The first kernel of an entry comes from the cache's folder; or it is that of a larger
 * batch, in memory or in the folder, until its own is made; or else it comes from the backend that answers
 * fastest among those the request allows.
 */
#include "runtime/host/folder.h"
#include "runtime/cache/cache.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_TCC = 16, BATCH_CC = 6, BATCH_GRID = 1 /* they are compiled one by one anyway */ };

/* ---- candidates ---- */
static void compile_trace(const Backend *b, int n, Candidate **c, double start)
{
	char first[120], name[40];

	if (!trace_on())
		return;
	entry_title(c[0]->entry, first, sizeof first);
	message_print(name, sizeof name, "%s compiles %d", b->name, n);
	trace_span("compile", name, start, first);
}

static int batch_compile(int n, Candidate **c, Error *err)
{
	const Backend *b = c[0]->backend;
	Kernel **k = mem_alloc((size_t)n * sizeof *k);
	char name[sizeof c[0]->origin.object] = "";
	Text object = {0};
	bool keep = b->load && folder_writable(); /* and so the compiler works there */
	int code;

	if (!k)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	for (int i = 0; i < n; i++)
		k[i] = c[i]->kernel;
	double start = clock_seconds();
	code = b->compile(b, n, k, keep ? &object : NULL, err);
	compile_trace(b, n, c, start);
	if (!code && keep && disk_keep(&object, name))
		for (int i = 0; i < n; i++) {
			memcpy(c[i]->origin.object, name, sizeof name);
			c[i]->origin.index = i;
			c[i]->origin.count = n;
		}
	text_free(&object);
	mem_free(k);
	return code;
}

static void candidate_drop(Candidate *c)
{
	if (c->kernel)
		kernel_unref(c->kernel);
	c->kernel = NULL;
}

const Target *entry_target(const CacheEntry *e, const Backend *b)
{
	const Target *t = backend_target(b);

	return e->request.ordered ? target_ordered(t) : t;
}

/* The schedule of our own choice fits, or the entry would wait for another backend: with RICCI_CHECK=trees the process
 * ends where it doesn't. */
static void usual_check(const Candidate *c)
{
	char first[120];

	if (c->kernel || !c->usual || c->err.code != RICCI_EINVAL || !env_check("trees"))
		return;
	entry_title(c->entry, first, sizeof first);
	fprintf(stderr, "%s by %s: %s\n", first, c->backend->name, c->err.text);
	abort();
}

static void candidate_lower(Candidate *c)
{
	if (!c->kernel && c->usual)
		schedule_default(c->entry->task, entry_target(c->entry, c->backend),
				 c->backend == backend_find("cc") && !c->unstaged, &c->schedule);
	if (!c->kernel)
		c->kernel = kernel_lower(c->entry->task, &c->schedule, c->backend,
					 backend_target(c->backend), &c->err);
	usual_check(c);
	if (c->kernel && c->entry->request.device)
		c->kernel->device = c->entry->request.device->index;
}

static void lower_each(int n, Candidate **c)
{
	for (int i = 0; i < n; i++)
		candidate_lower(c[i]);
}

static void make_together(int n, Candidate **c)
{
	Candidate **ready = mem_alloc((size_t)n * sizeof *ready);
	Error err = {0};
	int m = 0;

	for (int i = 0; i < n; i++) {
		if (!ready) {
			error_set(&c[i]->err, RICCI_ENOMEM, "out of memory");
			continue;
		}
		if (!c[i]->err.code)
			candidate_lower(c[i]);
		if (c[i]->kernel && !c[i]->kernel->run)
			ready[m++] = c[i];
	}
	if (m > 0 && batch_compile(m, ready, &err))
		for (int i = 0; i < m; i++)
			if (m == 1 || batch_compile(1, &ready[i], &ready[i]->err)) {
				error_set(&ready[i]->err, err.code, "%s", err.text);
				candidate_drop(ready[i]);
			}
	mem_free(ready);
}

typedef struct Making { /* shared by the threads that work on it */
	int n, batch;
	Candidate **c;
	void (*work)(int n, Candidate **c);
	void (*after)(Candidate *c); /* or NULL */
	atomic_int next;
} Making;

static void *making_work(void *arg)
{
	Making *m = arg;

	for (;;) {
		int at = atomic_fetch_add(&m->next, m->batch);
		int n = m->n - at < m->batch ? m->n - at : m->batch;

		if (n <= 0)
			return NULL;
		m->work(n, m->c + at);
		for (int i = 0; m->after && i < n; i++)
			m->after(m->c[at + i]);
	}
}

/* In batches of at most `most`, smaller ones where threads would have nothing to do. */
static void making_run(Making *m, int most, int threads)
{
	m->batch = m->n < most * threads ? (m->n + threads - 1) / threads : most;
	int batches = m->n > 0 ? (m->n + m->batch - 1) / m->batch : 0;
	threads_work(batches < threads ? batches : threads, making_work, m);
}

void candidates_make(int n, Candidate **c, int threads)
{
	Making m = {.n = n, .c = c, .work = make_together};

	making_run(&m, n, threads);
}

/* ---- the first kernels ---- */
static bool usable(const Backend *b)
{
	char why[256];

	return b && b->available(why, sizeof why);
}

const Backend *entry_tuning(const CacheEntry *e)
{
	const Backend *b = e->request.backend;

	if (e->request.frozen || (b && !strcmp(b->name, "interp")))
		return NULL;
	if (!b)
		b = usable(backend_find("cc")) ? backend_find("cc") : backend_find("tcc");
	return b;
}

/* The backends to try in turn for a first kernel, best first; NULL at the end. */
static void first_backends(Request r, const Backend *out[4])
{
	int n = 0;

	if (r.backend) {
		out[n++] = r.backend;
	} else {
		if (r.frozen && usable(backend_find("cc")))
			out[n++] = backend_find("cc");
		if (usable(backend_find("tcc")))
			out[n++] = backend_find("tcc");
		out[n++] = backend_find("interp");
	}
	out[n] = NULL;
}

/* tcc's first kernels are checked during the first step, on its data; all others now. */
static bool check_waits(const Candidate *c)
{
	return !c->entry->request.frozen && !strcmp(c->backend->name, "tcc");
}

static void candidate_admit(Candidate *c)
{
	bool check = !check_waits(c) && strcmp(c->backend->name, "interp") != 0;
	const Backend *tuning = entry_tuning(c->entry);

	if (!c->kernel)
		return;
	if (check && verify_within(c->entry->task, c->kernel, NULL, true,
				   verify_seconds(c->entry->task), &c->err)) {
		candidate_drop(c);
		return;
	}
	if (c->entry->offered == 0)
		c->entry->offered = tuning == c->backend;
	entry_put(c->entry, c->kernel, &c->origin, 0, !check_waits(c));
	c->kernel = NULL;
	if (*c->origin.object)
		disk_store(c->entry);
}

static int batch_most(const Backend *b)
{
	return backend_grid(b) ? BATCH_GRID : !strcmp(b->name, "cc") ? BATCH_CC : BATCH_TCC;
}

static int by_source(const void *a, const void *b)
{
	const Kernel *x = (*(Candidate *const *)a)->kernel, *y = (*(Candidate *const *)b)->kernel;
	size_t n = x && x->source ? strlen(x->source) : 0;
	size_t m = y && y->source ? strlen(y->source) : 0;

	return (n < m) - (n > m);
}

/* What is compiled one by one: the longest texts first, so that no thread is left with one of them at the end. */
static void longest_first(int n, Candidate **c, int threads)
{
	Making m = {.n = n, .c = c, .work = lower_each};

	making_run(&m, 1, threads);
	qsort(c, (size_t)n, sizeof *c, by_source);
}

/* Those whose stages were refused, which round otherwise than the equation: to be made without. Returns how many; they come
 * first. */
static int without_stages(int n, Candidate **c)
{
	int m = 0;

	for (int i = 0; i < n; i++) {
		Candidate *k = c[i];

		if (!k->err.code || !schedule_staged(&k->schedule))
			continue;
		error_clear(&k->err);
		k->usual = k->unstaged = true;
		c[i] = c[m];
		c[m++] = k;
	}
	return m;
}

/* One attempt for all entries that have no kernel yet, with the round-th backend each. */
static int fill_round(int n, CacheEntry **entries, const Kept *kept, Candidate *room, Candidate **c,
		      int round, int threads, Error *last)
{
	Making f = {.c = c, .work = make_together, .after = candidate_admit};

	for (int i = 0; i < n; i++) {
		const Backend *way[4] = {0};
		Candidate *k = &room[f.n];

		if (entry_ready(entries[i]))
			continue;
		first_backends(entries[i]->request, way);
		if (!way[round])
			continue;
		*k = (Candidate){.entry = entries[i], .backend = way[round]};
		if (kept[i].backend && kept[i].backend == way[round] && !kept[i].lent) {
			k->schedule = kept[i].schedule;
			entries[i]->offered = kept[i].offered;
		} else {
			k->usual = true;
		}
		c[f.n] = k;
		f.n++;
	}
	if (f.n == 0)
		return 0;
	if (batch_most(c[0]->backend) == 1)
		longest_first(f.n, c, threads);
	making_run(&f, batch_most(c[0]->backend), threads);
	Making again = {.n = without_stages(f.n, c), .c = c, .work = f.work, .after = f.after};
	if (again.n)
		making_run(&again, BATCH_CC, threads);
	for (int i = f.n - 1; i >= 0; i--) /* the first entry's error stays */
		if (room[i].err.code) {
			error_clear(last);
			error_set(last, room[i].err.code, "%s", room[i].err.text);
			env_dump_text("kernels", room[i].backend->name, room[i].err.text);
		}
	return f.n;
}

/* Entries that have no kernel of their own get that of a larger batch. */
static void fill_lent(int n, CacheEntry **entries, Kept *kept)
{
	for (int i = 0; i < n; i++) {
		Origin o;
		Kernel *k = entry_ready(entries[i]) ? NULL : entry_lend(entries[i], &o);

		if (k)
			entry_put(entries[i], k, &o, 0, false);
		else if (!entry_ready(entries[i]) && !kept[i].backend)
			disk_lend(entries[i], &kept[i]);
	}
	disk_load(n, entries, kept);
}

static int fill_all(int n, CacheEntry **entries, Kept *kept, Candidate *room, Candidate **c,
		    int threads, Error *err)
{
	Error last = {0};

	for (int i = 0; i < n; i++)
		disk_find(entries[i], &kept[i]);
	disk_load(n, entries, kept);
	fill_lent(n, entries, kept);
	for (int round = 0; round < 3; round++)
		if (fill_round(n, entries, kept, room, c, round, threads, &last) == 0)
			break;
	for (int i = 0; i < n; i++)
		if (!entry_ready(entries[i])) {
			char task[600];

			message_print(task, sizeof task, "%s", entries[i]->task->text);
			return error_set(err, last.code ? last.code : RICCI_ECOMPILE,
					 "no kernel could be made for\n%s\n%s", task, last.text);
		}
	return 0;
}

int entries_fill(int n, CacheEntry **entries, int threads, Error *err)
{
	CacheEntry **need = mem_alloc(((size_t)n + 1) * sizeof *need);
	Kept *kept = mem_zalloc(((size_t)n + 1) * sizeof *kept);
	Candidate *room = mem_zalloc(((size_t)n + 1) * sizeof *room);
	Candidate **c = mem_zalloc(((size_t)n + 1) * sizeof *c);
	int m = 0, code = 0;

	if (!need || !kept || !room || !c) {
		code = error_set(err, RICCI_ENOMEM, "out of memory");
	} else {
		/* One at a time, so that entries shared with another session are filled once. */
		lock_take(LOCK_FILL);
		for (int i = 0; i < n; i++) {
			int k = 0;

			while (k < m && need[k] != entries[i])
				k++;
			if (k == m && !entry_ready(entries[i]))
				need[m++] = entries[i];
		}
		code = m ? fill_all(m, need, kept, room, c, threads, err) : 0;
		lock_leave(LOCK_FILL);
	}
	mem_free(need);
	mem_free(kept);
	mem_free(room);
	mem_free(c);
	return code;
}

/* cache.c - the function cache in memory: entries, shared by all sessions of the process.
 *
 * An entry lives while a session or a tuner uses it. Its kernels change under its lock; launches look
 * at `version` only, and come here when it has changed. While a second kernel is on trial, launches
 * alternate between the two and report their times; the faster stays.
 */
#include "runtime/cache/cache.h"
#include <string.h>

enum { BUCKETS = 256 };

static CacheEntry *bucket[BUCKETS];

/* Takes the lock. A forked child begins with an empty table: the parent's threads may have held the
 * locks of its entries, and their kernels may call libraries that are no longer to be called. */
static void table_take(void)
{
	static unsigned generation;

	lock_take(LOCK_CACHE);
	if (generation != fork_generation())
		memset(bucket, 0, sizeof bucket);
	generation = fork_generation();
}

static uint64_t entry_hash(const char *text, Request r)
{
	uint64_t h = 0xcbf29ce484222325u ^ (uint64_t)r.frozen ^ (uint64_t)r.threads << 8 ^
		     (uint64_t)r.ordered << 1 ^ (uint64_t)r.own << 2;

	for (const char *s = r.backend ? r.backend->name : ""; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return h;
}

static bool request_is(Request a, Request b)
{
	return a.backend == b.backend && a.frozen == b.frozen && a.threads == b.threads &&
	       a.pack == b.pack && a.device == b.device && a.ordered == b.ordered && a.own == b.own;
}

static bool entry_is(const CacheEntry *e, uint64_t hash, const char *text, Request r)
{
	return e->hash == hash && request_is(e->request, r) && !strcmp(e->task->text, text);
}

/* Kernels of a larger batch are for what a processor runs, and may be replaced. */
static void entry_families(CacheEntry *e)
{
	const Request *r = &e->request;
	bool borrows = !r->frozen && !r->own && !r->pack && !r->device && entry_tuning(e);

	for (int b = 0; b < e->task->nbatch && borrows; b++) {
		Text text = {0};

		task_family(&text, e->task, b);
		e->family[b] = text.failed ? 0 : entry_hash(text.s, e->request);
		text_free(&text);
	}
}

CacheEntry *entry_get(Task *t, Request r, Error *err)
{
	uint64_t hash = entry_hash(t->text, r);
	CacheEntry **at = &bucket[hash % BUCKETS], *e;

	table_take();
	for (e = *at; e && !entry_is(e, hash, t->text, r); e = e->next)
		;
	if (e) {
		e->refs++;
		task_free(t);
	} else if ((e = mem_zalloc(sizeof *e))) {
		e->refs = 1;
		e->request = r;
		e->task = t;
		e->hash = hash;
		entry_families(e);
		atomic_init(&e->version, 1);
		pthread_mutex_init(&e->lock, NULL);
		e->next = *at;
		*at = e;
	} else {
		task_free(t);
		error_set(err, RICCI_ENOMEM, "out of memory");
	}
	lock_leave(LOCK_CACHE);
	return e;
}

CacheEntry *entry_ref(CacheEntry *e)
{
	lock_take(LOCK_CACHE);
	e->refs++;
	lock_leave(LOCK_CACHE);
	return e;
}

void entry_unref(CacheEntry *e)
{
	CacheEntry **at;

	if (!e)
		return;
	lock_take(LOCK_CACHE);
	if (--e->refs > 0) {
		lock_leave(LOCK_CACHE);
		return;
	}
	for (at = &bucket[e->hash % BUCKETS]; *at != e; at = &(*at)->next)
		;
	*at = e->next;
	lock_leave(LOCK_CACHE);
	if (e->best)
		kernel_unref(e->best);
	if (e->trial)
		kernel_unref(e->trial);
	if (e->former)
		kernel_unref(e->former);
	pthread_mutex_destroy(&e->lock);
	task_free(e->task);
	mem_free(e);
}

bool entry_ready(CacheEntry *e)
{
	bool ready;

	pthread_mutex_lock(&e->lock);
	ready = e->best != NULL;
	pthread_mutex_unlock(&e->lock);
	return ready;
}

/* ---- kernels of larger batches ---- */
Kernel *entry_fewer(const CacheEntry *e, Kernel *k, int b, int64_t all)
{
	enum { MOST_BYTES = 256 << 20 };
	Kernel *own = kernel_fewer(k, e->task, b, all, NULL);

	if (own && own->shape.shared < MOST_BYTES)
		return own;
	kernel_unref(own);
	return NULL;
}

typedef struct Lender {
	Kernel *kernel; /* a reference */
	int batch;	/* in which the tasks differ */
	int64_t rows;	/* of the kernel's, there */
	double more;	/* times as many as are wanted */
} Lender;

/* Which batch is it in which alone `from` has more rows than e? -1: none. */
static int entry_differs(const CacheEntry *e, const CacheEntry *from)
{
	const Task *t = e->task, *larger = from->task;
	Text a = {0}, b = {0};
	int k = 0;

	while (k < t->nbatch && k < larger->nbatch &&
	       (e->family[k] != from->family[k] || !e->family[k] ||
		larger->batch[k].extent <= t->batch[k].extent))
		k++;
	if (k >= t->nbatch || k >= larger->nbatch || !request_is(from->request, e->request))
		return -1;
	task_family(&a, t, k);
	task_family(&b, larger, k);
	bool same = !a.failed && !b.failed && !strcmp(a.s, b.s);
	text_free(&a);
	text_free(&b);
	return same ? k : -1;
}

/* Takes the kernel of `from` where it is better for e: one of cc, of the smallest batch. */
static void entry_lender(const CacheEntry *e, CacheEntry *from, int b, Lender *best, Origin *o)
{
	const Backend *cc = entry_tuning(e);
	int64_t rows = from->task->batch[b].extent;
	double more = (double)rows / (double)e->task->batch[b].extent;

	pthread_mutex_lock(&from->lock);
	Kernel *k = from->best, *known = best->kernel;
	bool fits = k && !k->fewer;
	bool fast = fits && k->backend == cc, was = known && known->backend == cc;

	if (fits && (!known || fast > was || (fast == was && more < best->more))) {
		kernel_unref(known);
		*best = (Lender){kernel_ref(k), b, rows, more};
		*o = from->origin;
	}
	pthread_mutex_unlock(&from->lock);
}

Kernel *entry_lend(const CacheEntry *e, Origin *o)
{
	Lender best = {0};
	Kernel *own;
	int b;

	table_take();
	for (int i = 0; i < BUCKETS; i++)
		for (CacheEntry *from = bucket[i]; from; from = from->next)
			if ((b = entry_differs(e, from)) >= 0)
				entry_lender(e, from, b, &best, o);
	lock_leave(LOCK_CACHE);
	own = best.kernel ? entry_fewer(e, best.kernel, best.batch, best.rows) : NULL;
	kernel_unref(best.kernel);
	return own;
}

void entry_title(const CacheEntry *e, char *s, size_t room)
{
	const char *text = e->task->text, *local = strstr(text, "\nlocal "),
		   *keep = strstr(text, "\nkeep ");
	const char *first = local && (!keep || local < keep) ? local : keep ? keep : text;

	first += strcspn(first, " ");
	first += *first == ' ';
	message_print(s, room, "%.*s", (int)strcspn(first, "\n"), first);
}

/* What was timed is of another kernel. */
static void entry_forget(CacheEntry *e)
{
	atomic_store(&e->timed, 0);
	atomic_store(&e->spent, 0);
	atomic_store(&e->quickest, 0);
}

void entry_put(CacheEntry *e, Kernel *k, const Origin *o, double seconds, bool checked)
{
	Kernel *old, *former;

	pthread_mutex_lock(&e->lock);
	old = e->best;
	former = e->former;
	e->best = k;
	e->former = NULL;
	entry_forget(e);
	e->origin = o ? *o : (Origin){0};
	atomic_store(&e->quickest, (long long)(1e9 * seconds));
	e->checked = e->validated = checked;
	e->unseen = false;
	atomic_fetch_add(&e->version, 1);
	pthread_mutex_unlock(&e->lock);
	if (old)
		kernel_unref(old);
	if (former)
		kernel_unref(former);
}

/* Under the lock. Launches of a device see nothing of trials. */
static void entry_news(CacheEntry *e, bool seen)
{
	if (seen)
		atomic_fetch_add(&e->version, 1);
}

/* Under its lock; returns the trial that was. */
static Kernel *trial_begin(CacheEntry *e, Kernel *k, const Origin *o, bool tested)
{
	Kernel *old = e->trial;

	e->trial = k;
	e->trial_origin = *o;
	e->tested = tested;
	for (int i = 0; i < 2; i++) {
		e->runs[i] = 0;
		e->least[i] = 1e30;
	}
	entry_news(e, !e->request.device);
	return old;
}

void entry_try(CacheEntry *e, Kernel *k, const Origin *o)
{
	pthread_mutex_lock(&e->lock);
	Kernel *old = trial_begin(e, k, o, false);
	pthread_mutex_unlock(&e->lock);
	if (old)
		kernel_unref(old);
}

bool entry_revises(CacheEntry *e)
{
	pthread_mutex_lock(&e->lock);
	bool revises = e->former != NULL;
	pthread_mutex_unlock(&e->lock);
	return revises;
}

bool entry_revise(CacheEntry *e)
{
	enum { LAUNCHES = 64 }; /* in which best has shown what it can */
	Kernel *done = NULL;
	bool again = false;

	pthread_mutex_lock(&e->lock);
	if (e->former && !e->trial && atomic_load(&e->timed) >= LAUNCHES) {
		again = (double)atomic_load(&e->quickest) > 1.02 * (double)e->former_quickest;
		if (again)
			trial_begin(e, e->former, &e->former_origin, true);
		else
			done = e->former;
		e->former = NULL;
	}
	pthread_mutex_unlock(&e->lock);
	if (done)
		kernel_unref(done);
	return again;
}

/* Under the lock, which it gives back. */
static Taken entry_taken(CacheEntry *e, bool trial)
{
	Taken t = {.which = -1};

	t.seen = atomic_load(&e->version);
	if (trial && e->trial) {
		t.which = e->runs[1] < e->runs[0];
		t.seen -= 1;
	}
	t.kernel = kernel_ref(t.which == 1 ? e->trial : e->best);
	t.checked = t.which == 1 ? e->tested : e->checked;
	pthread_mutex_unlock(&e->lock);
	return t;
}

Taken entry_take(CacheEntry *e)
{
	pthread_mutex_lock(&e->lock);
	return entry_taken(e, !e->request.device);
}

bool entry_take_now(CacheEntry *e, Taken *t)
{
	if (pthread_mutex_trylock(&e->lock))
		return false;
	*t = entry_taken(e, !e->request.device);
	return true;
}

Taken entry_turn(CacheEntry *e)
{
	pthread_mutex_lock(&e->lock);
	return entry_taken(e, true);
}

int entry_wrong(CacheEntry *e, Error *err)
{
	pthread_mutex_lock(&e->lock);
	int code = e->wrong.code ? error_set(err, e->wrong.code, "%s", e->wrong.text) : 0;
	pthread_mutex_unlock(&e->lock);
	return code;
}

void entry_launched(CacheEntry *e, double seconds)
{
	atomic_fetch_add_explicit(&e->launches, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&e->timed, 1, memory_order_relaxed);
	long long ns = (long long)(1e9 * seconds), quickest = atomic_load(&e->quickest);
	atomic_fetch_add_explicit(&e->spent, ns, memory_order_relaxed);
	if (quickest == 0 || ns < quickest)
		atomic_store(&e->quickest, ns);
}

void entry_counted(CacheEntry *e, int64_t launches)
{
	atomic_fetch_add_explicit(&e->launches, launches, memory_order_relaxed);
}

double entry_roof(const CacheEntry *e)
{
	DeviceModel d = e->request.device ? e->request.device->kind->model : device_model(0);
	double arithmetic = e->task->flops / (2 * d.pc), memory = e->task->bytes / d.pd;
	double longest = arithmetic > memory ? arithmetic : memory;

	return (longest + d.launch) * (double)atomic_load(&e->launches);
}

double entry_seconds(const CacheEntry *e)
{
	long long timed = atomic_load(&e->timed), spent = atomic_load(&e->spent);

	return timed > 0 ? 1e-9 * (double)spent / (double)timed : 0;
}

double entry_cost(const CacheEntry *e)
{
	double seconds = entry_seconds(e);

	return seconds > 0 ? seconds * (double)atomic_load(&e->launches) : entry_roof(e);
}

Kernel *entry_best(CacheEntry *e)
{
	pthread_mutex_lock(&e->lock);
	Kernel *k = kernel_ref(e->best);
	pthread_mutex_unlock(&e->lock);
	return k;
}

void entry_checked(CacheEntry *e, const Kernel *k, bool seen)
{
	pthread_mutex_lock(&e->lock);
	if (e->best == k && !e->checked) {
		e->checked = true;
		e->unseen = !seen;
		atomic_fetch_add(&e->version, 1);
	}
	pthread_mutex_unlock(&e->lock);
}

void entry_tested(CacheEntry *e, const Kernel *k, bool good)
{
	Kernel *loser = NULL;

	pthread_mutex_lock(&e->lock);
	if (e->trial == k && good) {
		e->tested = true;
	} else if (e->trial == k) {
		loser = e->trial;
		e->trial = NULL;
		entry_news(e, !e->request.device);
		if (e->tuner)
			tuner_poke(e->tuner);
	}
	pthread_mutex_unlock(&e->lock);
	if (loser)
		kernel_unref(loser);
}

Kernel *entry_unvalidated(CacheEntry *e, bool unseen)
{
	Kernel *k = NULL;

	pthread_mutex_lock(&e->lock);
	if (!e->validated && strcmp(e->best->backend->name, "interp") && (e->unseen || !unseen))
		k = kernel_ref(e->best);
	pthread_mutex_unlock(&e->lock);
	return k;
}

void entry_validate(CacheEntry *e, const Kernel *k)
{
	pthread_mutex_lock(&e->lock);
	e->validated = e->validated || e->best == k;
	pthread_mutex_unlock(&e->lock);
}

int entry_interpret(CacheEntry *e, const Kernel *wrong, Error *err)
{
	Schedule none = {0};
	Kernel *k = kernel_make(e->task, &none, backend_find("interp"), target_host(), err);
	Kernel *best = entry_best(e);
	bool still = best == wrong;

	kernel_unref(best);
	if (!k)
		return err ? err->code : RICCI_ECOMPILE;
	if (still)
		entry_put(e, k, NULL, 0, true);
	else
		kernel_unref(k);
	return 0;
}

void entry_condemn(CacheEntry *e, const Kernel *k, const Error *why)
{
	pthread_mutex_lock(&e->lock);
	error_clear(&e->wrong);
	error_set(&e->wrong, why->code,
		  "results of the steps so far may be wrong: %s, made by %s for\n%.600s", why->text,
		  k->backend->name, e->task->text);
	pthread_mutex_unlock(&e->lock);
	entry_interpret(e, k, NULL);
	atomic_fetch_add(&e->wrongs, 1);
}

/* Is best slower than it has been, by more than a processor's clock changes? Then something else takes one of its
 * cores, and which of two kernels that disturbs is chance. */
static bool trial_disturbed(const CacheEntry *e)
{
	double quickest = 1e-9 * (double)atomic_load(&e->quickest);
	return quickest > 0 && e->least[0] > 1.25 * quickest;
}

/* Enough seen? A clear difference needs two runs each only; a disturbed trial goes on, though not for ever. */
static bool trial_over(const CacheEntry *e)
{
	int fewer = e->runs[0] < e->runs[1] ? e->runs[0] : e->runs[1];
	double a = e->least[0], b = e->least[1];

	if (fewer >= TRIAL_MOST || (fewer >= 1 && b > 5 * a))
		return true;
	return !trial_disturbed(e) &&
	       (fewer >= TRIAL_RUNS || (fewer >= 2 && (a > 1.5 * b || b > 1.5 * a)));
}

/* Of a trial that is over: is the new kernel faster, for sure? */
static bool trial_won(const CacheEntry *e)
{
	return e->least[1] < (trial_disturbed(e) ? 0.9 : 0.98) * e->least[0];
}

/* The trial becomes the best. Returns what is no longer needed, or NULL. */
static Kernel *trial_takes(CacheEntry *e)
{
	Kernel *before = e->request.device ? e->best : e->former;

	if (!e->request.device) { /* whose launches would show what best can */
		e->former = e->best;
		e->former_origin = e->origin;
		e->former_quickest = atomic_load(&e->quickest);
	}
	e->best = e->trial;
	e->origin = e->trial_origin;
	e->checked = e->validated = true;
	entry_forget(e);
	atomic_store(&e->quickest, (long long)(1e9 * e->least[1]));
	return before;
}

bool entry_timed(CacheEntry *e, const Kernel *k, int which, double seconds)
{
	Kernel *loser = NULL, *trial;
	bool over = false;

	pthread_mutex_lock(&e->lock);
	trial = e->trial;
	if (trial && k == (which ? e->trial : e->best)) {
		e->runs[which]++;
		if (seconds < e->least[which])
			e->least[which] = seconds;
		over = trial_over(e);
		if (over) {
			loser = trial_won(e) ? trial_takes(e) : e->trial;
			if (atomic_load(&e->quickest) == 0)
				atomic_store(&e->quickest, (long long)(1e9 * e->least[0]));
			e->trial = NULL;
			if (e->request.device) { /* its launches are not timed again */
				atomic_store(&e->timed, 1);
				atomic_store(&e->spent, atomic_load(&e->quickest));
			}
			entry_news(e, loser != trial || !e->request.device);
			if (e->tuner)
				tuner_poke(e->tuner);
		}
	}
	pthread_mutex_unlock(&e->lock);
	if (loser)
		kernel_unref(loser);
	return over;
}

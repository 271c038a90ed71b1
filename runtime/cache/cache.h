/* cache.h - the function cache: an entry for each task, in memory and on disk, and how its first kernel is made. */
#ifndef RUNTIME_CACHE_H
#define RUNTIME_CACHE_H

#include "runtime/verify/verify.h"
#include <pthread.h>
#include <stdatomic.h>

/* ---- the function cache (cache.c, disk.c) ---- */
typedef struct Request {
	const Backend *backend; /* NULL: the best */
	bool frozen;		/* static mode: the default schedule, never changed */
	int threads;		/* that run it, for which it is tuned; 0 when frozen */
	const KernelPack *pack; /* frozen: the only kernels there are; NULL: they are made */
	Device *device;		/* whose kernels they are; NULL: the processor's */
	bool ordered; /* of a device: the same bits each time, since it is static, or computes again */
	bool own;     /* kernels of larger batches are not lent: nobody would replace them */
} Request;
typedef struct Origin {	  /* where a kernel's compiled code is kept */
	char object[48];  /* a file of the cache's folder; "" when it is not kept */
	int index, count; /* which of the object's functions */
} Origin;
enum { TRIAL_RUNS = 4, TRIAL_MOST = 24, OFFERS = 8 };
typedef struct CacheEntry {
	struct CacheEntry *next;
	int refs; /* under the cache's lock */
	Request request;
	Task *task;
	uint64_t hash;		       /* of the task's text, */
	uint64_t family[TASK_BATCHES]; /* and of its families'; 0: none */
	atomic_llong launches;	       /* while they were timed, trials' not counted */
	atomic_llong timed, spent;     /* of best: so many of them, and nanoseconds in them */
	atomic_llong quickest; /* of best: nanoseconds of its quickest launch; 0: not known */
	atomic_uint version;   /* changes whenever a launch has to look at the entry */
	pthread_mutex_t lock;  /* of what follows */
	bool checked;	       /* best was right on the data of a step, or is validated */
	bool validated;	       /* best has passed verify_within */
	bool unseen;	       /* best's first launch was too long to be checked */
	bool tested;	       /* the trial agreed with best on the data of a step */
	atomic_uint wrongs;    /* kernels that were found wrong after they had been used */
	Error wrong;	       /* what the last of them did */
	struct Tuner *tuner;   /* that works on it; or NULL */
	int offered;	       /* schedules of schedule_offers that have been tried */
	Kernel *best, *trial;
	Kernel *former; /* which best has replaced after a trial, until that proves to be right; or NULL */
	Origin origin, trial_origin, former_origin;
	long long former_quickest; /* `quickest` of former */
	int runs[2];		   /* timed launches of best, trial since the trial began */
	double least[2];	   /* and the least time of one */
} CacheEntry;
typedef struct Tuner Tuner;
void tuner_poke(Tuner *t); /* search/: a trial of its entries ended; takes no lock */
/* Takes the task. The entry of an equal task and request where there is one. */
CacheEntry *entry_get(Task *t, Request r, Error *err);
CacheEntry *entry_ref(CacheEntry *e);
const Target *entry_target(const CacheEntry *e,
			   const Backend *b); /* of its kernels by b (codegen.c) */
void entry_unref(CacheEntry *e);
bool entry_ready(CacheEntry *e); /* it has a kernel */
/* Kernel k, of a task that differs from e's in batch b alone, which has `all` rows there, for e; NULL: it isn't
 * worth it. */
Kernel *entry_fewer(const CacheEntry *e, Kernel *k, int b, int64_t all);
/* The same of an entry that is in memory; *o: where its code is kept. NULL: there is none. */
Kernel *entry_lend(const CacheEntry *e, Origin *o);
/* The first equation of its task, in s[0..room-1]. */
void entry_title(const CacheEntry *e, char *s, size_t room);
/* Takes k as the best, of which a launch takes so many seconds at least (0: not known). */
void entry_put(CacheEntry *e, Kernel *k, const Origin *o, double seconds, bool checked);
/* Takes k as the one on trial. */
void entry_try(CacheEntry *e, Kernel *k, const Origin *o);
/* The kernel to launch now (a new reference). */
typedef struct Taken {
	Kernel *kernel;
	unsigned seen; /* the version for which this answer holds */
	int which;     /* -1; or 0 best, 1 trial: then time the launch and tell entry_timed */
	bool checked;  /* else run_checked launches it, or run_trial */
} Taken;
Taken entry_take(CacheEntry *e);
bool entry_take_now(CacheEntry *e, Taken *t); /* false: somebody has the lock */
/* The same where there is a trial, for who times it: whose turn it is. Launches of a device don't take part in
 * trials, so entry_take is the best there. */
Taken entry_turn(CacheEntry *e);
Kernel *entry_best(CacheEntry *e); /* a new reference */
/* What entry_condemn has said last. */
int entry_wrong(CacheEntry *e, Error *err);
/* A launch of its best kernel took so long. */
void entry_launched(CacheEntry *e, double seconds);
void entry_counted(CacheEntry *e, int64_t launches); /* and so many were not timed */
/* Seconds of a launch of its best kernel; 0: not known. */
double entry_seconds(const CacheEntry *e);
/* Seconds that its launches so far take at the present speed; as entry_roof until best's are timed. */
double entry_cost(const CacheEntry *e);
/* And what of that no kernel can save: arithmetic, memory and launches at the device's rates. 0: no launches
 * were timed. */
double entry_roof(const CacheEntry *e);
/* k was right on the data of a step, as far as results could be seen. */
void entry_checked(CacheEntry *e, const Kernel *k, bool seen);
/* The trial's results on the data of a step were right; or not: then it ends. */
void entry_tested(CacheEntry *e, const Kernel *k, bool good);
/* The best kernel, where it has to be validated still (unseen: and no result of it could be checked
 * by then), or NULL; then its validation's outcome. */
Kernel *entry_unvalidated(CacheEntry *e, bool unseen);
void entry_validate(CacheEntry *e, const Kernel *k);
void entry_condemn(CacheEntry *e, const Kernel *k, const Error *why);
/* The interpreter's kernel in place of one that is wrong. */
int entry_interpret(CacheEntry *e, const Kernel *wrong, Error *err);
bool entry_timed(CacheEntry *e, const Kernel *k, int which,
		 double seconds); /* true: the trial ended */
/* Has best, which won its trial, been slower since than what it replaced? That is on trial again (true). */
bool entry_revise(CacheEntry *e);
bool entry_revises(CacheEntry *e); /* will that be asked? */

/* Keeps the entry's best; false: it can't be. */
bool disk_store(CacheEntry *e);
/* What is kept of an entry; false: nothing. */
typedef struct Kept {
	const Backend *backend;
	Schedule schedule;
	Origin origin;
	KernelShape shape;
	double seconds;
	int offered;
	bool lent;    /* it was made for a larger batch: */
	int batch;    /* which of the task's that is, */
	int64_t rows; /* and how many rows it has there */
} Kept;
bool disk_find(const CacheEntry *e, Kept *k);
/* The same of the largest batch of one of e's families that is kept. */
bool disk_lend(const CacheEntry *e, Kept *k);
/* Kernels of kept objects for entries[i] with kept[i].origin; entries that stay without a best are to
 * be made. */
void disk_load(int n, CacheEntry **entries, const Kept *kept);
/* Takes a compiled object into the folder and names it; false: it is not kept. */
bool disk_keep(const Text *object, char name[48]);

/* ---- making kernels (codegen.c) ---- */
typedef struct Candidate {
	struct Candidate *next;
	struct Job *job; /* a tuner's */
	CacheEntry *entry;
	const Backend *backend;
	Schedule schedule;
	bool usual;    /* the schedule is still to be chosen: the first one offered, */
	bool unstaged; /* without stages, for these were refused */
	Kernel *kernel;
	bool validates; /* kernel is the entry's, of the first iteration: only to be validated */
	bool urgent;	/* worth the processor; else training goes before */
	Origin origin;
	Error err;
} Candidate;
/* Lowers (those that are not) and compiles candidates of one backend together, in as many parts as
 * threads; each gets a kernel or an error. */
void candidates_make(int n, Candidate **c, int threads);
/* The backend that schedules of the entry are tried on; NULL: none. */
const Backend *entry_tuning(const CacheEntry *e);
/* Gives every entry a kernel: from memory, from disk, or made now by `threads` threads. */
int entries_fill(int n, CacheEntry **entries, int threads, Error *err);

#endif

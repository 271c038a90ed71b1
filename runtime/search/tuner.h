/* tuner.h - what the exploration and the code generation threads share: explore.c, generate.c. */
#ifndef RUNTIME_TUNER_H
#define RUNTIME_TUNER_H

#include "runtime/search/search.h"
#include <semaphore.h>

enum { MOST_GENERATORS = 4, BATCH = 6 /* candidates that go to a compiler together */ };
typedef enum { JOB_IDLE, JOB_QUEUED, JOB_TRYING, JOB_DONE } JobState;
/* An entry and what has been tried on it. QUEUED, it belongs to the code generation threads, else to
 * the exploration thread. */
typedef struct Job {
	struct Job *older; /* never changes */
	CacheEntry *entry;
	_Atomic JobState state;
	int noffer, next;
	Schedule *offer;
	bool validated;	    /* its first kernel was queued to be */
	bool urgent;	    /* its next kernel is: see explore.c */
	double cost, waste; /* of the entry, when the round began: see entry_cost, entry_roof */
} Job;
/* Training threads take no lock here: they add jobs to the list and post `news`. */
struct Tuner {
	_Atomic(Job *) newest;
	atomic_int left; /* jobs not done */
	sem_t news;	 /* the exploration thread has something to look at */
	atomic_bool started, quit;
	atomic_int settling;  /* calls that wait for all: then nothing waits until it pays */
	atomic_int measuring; /* those of them that time kernels: then nothing is queued */
	pthread_mutex_t lock; /* of the queue; and whoever settles waits under it */
	pthread_cond_t change;
	Candidate *queue, **tail; /* the schedule queue */
	pthread_t explore, generate[2 * MOST_GENERATORS];
	atomic_int begun; /* threads that make kernels */
	atomic_bool both; /* there are all of them, those that stand back too */
	Front front;	  /* what those call, if it was started */
	bool fronted;
	double began; /* when exploration did */
	/* The exploration thread's: how many candidates may be queued besides; what those beyond the first
	 * of each entry have cost training, in seconds. */
	int room;
	double paid;
	int generators; /* threads of either kind to start */
	int running;	/* threads started, exploration included */
};
void *generate_main(void *tuner);
/* The outcome of a candidate: JOB_TRYING when it is on trial, else JOB_IDLE. */
void tuner_outcome(Tuner *t, Candidate *c, JobState state);

#endif

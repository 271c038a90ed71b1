/* tuner.h - what the exploration and the code generation threads share: explore.c, generate.c. */
#ifndef RUNTIME_TUNER_H
#define RUNTIME_TUNER_H

#include "runtime/internal.h"

enum { MOST_GENERATORS = 4 };
typedef enum { JOB_IDLE, JOB_QUEUED, JOB_TRYING, JOB_DONE } JobState;
typedef struct Job { /* a line and what has been tried on it */
	Line *line;
	JobState state;
	int noffer, next;
	Schedule *offer;
	Candidate *candidate; /* QUEUED */
} Job;
struct Tuner {
	pthread_mutex_t lock; /* of all but the atomics */
	pthread_cond_t change;
	int njob, room, left; /* left: jobs not done */
	Job *job;
	Candidate *queue, **tail; /* the schedule queue */
	bool started, urgent;	  /* urgent: someone waits for the end */
	atomic_bool quit, busy;
	pthread_t explore, generate[MOST_GENERATORS];
	int generators;
};
void *generate_main(void *tuner);
/* The outcome of a candidate, under the lock: JOB_TRYING when it is on trial, else JOB_IDLE. */
void tuner_outcome(Tuner *t, Candidate *c, JobState state);

#endif

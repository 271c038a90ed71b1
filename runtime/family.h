/* family.h - sessions that share parameters (family.c), for the sessions themselves. */
#ifndef RUNTIME_FAMILY_H
#define RUNTIME_FAMILY_H

#include "runtime/program/program.h"

typedef struct Family {
	int refs;	     /* atomic; family_unref */
	unsigned generation; /* of forks: the process that it belongs to */
	ricci_graph *g;
	pthread_mutex_t lock; /* of the data of states, inputs and outputs */
	Request request;
	uint64_t seed;
	bool check_finite; /* of new sessions */
	Device *device;	   /* that holds the data */
	Pool *pool;
	Tuner *tuner; /* NULL: nothing is tuned */
	double began; /* clock_seconds */
	int nstate;
	Storage *state;
} Family;

typedef struct Given { /* what a net brings along; see session_packed */
	const KernelPack *pack;
	const char *data;
} Given;
/* given: or NULL */
Family *family_new(ricci_graph *g, const ricci_options *o, const Given *given, Error *err);
void family_unref(Family *f);
int family_check(const Family *f, Error *err); /* does it belong to this process? */
/* Gives a parameter or state its initial value, unless it has one: drawn, or fed. Under the family's
 * lock. RICCI_EVALUE: it is outside the range that gathers need. */
int family_draw(Family *f, Storage *st, Error *err);

/* ---- storage ---- */
bool tensor_kept(const ricci_tensor *t); /* a parameter or state */
/* Storages of the graph's parameters and states, or of its inputs, in the order of their nodes. */
int storage_list(const ricci_graph *g, bool kept, int *n, Storage **list, Error *err);
Storage *storage_find(int n, Storage *list,
		      const Node *x);			 /* in such a list; NULL: it is not there */
int storage_reserve(Device *d, Storage *st, Error *err); /* its data, where it has none */
void storage_free(Device *d, int n, Storage *list);

#endif

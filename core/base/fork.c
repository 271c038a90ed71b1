/* fork.c - the library in a process that forks.
 *
 * A forked child has one thread, the memory as it was at that moment, and every lock that another
 * thread held then. Locks of the whole process are taken before a fork and free on both sides of
 * it, so that what they guard is whole in the child. Everything else that several threads use notes
 * the generation in which it was made; in a later one it still belongs to the parent: it refuses
 * work, and freeing it leaves it alone.
 */
#define _GNU_SOURCE
#include "core/base/base.h"
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock[NLOCKS];
static unsigned generation;

static void locks_make(int from)
{
	for (int i = from; i < NLOCKS; i++)
		pthread_mutex_init(&lock[i], NULL);
}

static void fork_before(void)
{
	for (int i = 0; i < LOCK_ORDER; i++)
		pthread_mutex_lock(&lock[i]);
}

static void locks_leave(void)
{
	for (int i = LOCK_ORDER; i-- > 0;)
		pthread_mutex_unlock(&lock[i]);
}

/* The forking thread is the child's only one: it holds what fork_before took. The other locks may
 * be held by threads that the child does not have, so they are made anew. */
static void fork_child(void)
{
	generation++;
	locks_leave();
	locks_make(LOCK_ORDER);
}

__attribute__((constructor)) static void fork_watch(void)
{
	locks_make(0);
	pthread_atfork(fork_before, locks_leave, fork_child);
}

void lock_take(GlobalLock l)
{
	pthread_mutex_lock(&lock[l]);
}

void lock_leave(GlobalLock l)
{
	pthread_mutex_unlock(&lock[l]);
}

unsigned fork_generation(void)
{
	return generation;
}

/* ThreadSanitizer and glibc before 2.34 know fork() only. */
pid_t fork_bare(void)
{
#if defined(__SANITIZE_THREAD__) || !defined(__GLIBC__) || __GLIBC_PREREQ(2, 34) == 0
	return fork();
#else
	return _Fork();
#endif
}

/* signals.c - the flag that a signal sets, for a training to end after its step. */
#include "nn/nn.h"

static const int ends[] = {SIGINT, SIGTERM, SIGHUP}; /* the process, unless they are handled */
/* What a signal handler can reach: the flag, and what the signals did before. */
static volatile sig_atomic_t interrupted;
static struct sigaction before[COUNT(ends)];

static void interrupt(int number)
{
	for (int i = 0; i < COUNT(ends); i++)
		sigaction(ends[i], &before[i], NULL);
	interrupted = number;
}

const volatile sig_atomic_t *ricci_interrupted(void)
{
	struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART}, old;
	interrupted = 0;
	for (int i = 0; i < COUNT(ends); i++)
		sigaddset(&action.sa_mask, ends[i]);
	for (int i = 0; i < COUNT(ends); i++) {
		sigaction(ends[i], NULL, &old);
		if (old.sa_handler == interrupt ||
		    (ends[i] == SIGHUP && old.sa_handler == SIG_IGN)) /* nohup */
			continue;
		before[i] = old;
		/* A shell starts what runs in the background with ctrl-C ignored: then the first
		 * signal is meant for it, and so is the second. */
		if (old.sa_handler == SIG_IGN)
			before[i] = (struct sigaction){.sa_handler = SIG_DFL};
		sigaction(ends[i], &action, NULL);
	}
	return &interrupted;
}

/* tcc_host.h - running libtcc, for tcc.c. */
#ifndef JIT_TCC_HOST_H
#define JIT_TCC_HOST_H

#include "core/core.h"

/* Calls work(user), which may call libtcc, one thread at a time. Where libtcc finds no memory or
 * would end the process, work is left at once (what it made is the caller's to free) and the error
 * says so. All that libtcc allocated is gone afterwards. */
int tcc_run_work(void (*work)(void *user), void *user, Error *err);

#endif

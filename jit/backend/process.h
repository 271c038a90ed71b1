/* process.h - running another program, for cc.c, and work in a process of its own, for nvrtc.c. */
#ifndef JIT_PROCESS_H
#define JIT_PROCESS_H

#include "core/core.h"

/* The path of a program: name itself when it holds a slash, else the first on the PATH. */
bool process_find(const char *name, char *path, size_t room);
/* Runs path with arg (NULL at the end), without input, in the folder of that descriptor, which is
 * its $TMPDIR too (-1: here), and appends the first 64 KB of what it says
 * on stdout and stderr to said. 0, its exit status > 0, or an error < 0: it can't start, was
 * killed, or took longer than `seconds` and was stopped. The child gets no more processor time than
 * that either, even if this process ends first. */
int process_run(const char *path, const char *const *arg, int folder, double seconds, Text *said,
		Error *err);
/* Does the work in a child of this process, a copy of it with one thread, and appends the result to out. 0, the status
 * > 0 that work returns, or an error < 0 as above; `what` names the work in it. A child that stalls, waiting for a lock
 * that a thread of this process held at the fork, is stopped and forked again: work may start more than once. */
int process_fork(const char *what, int (*work)(void *user, Text *out), void *user, double seconds,
		 Text *out, Error *err);

#endif

/* session.h - what tests may know of a session. */
#ifndef RUNTIME_SESSION_H
#define RUNTIME_SESSION_H

#include "runtime/program/program.h"

/* session.c: the entries of a session's kernels, in order; how many */
int session_entries(const ricci_session *s, CacheEntry **entries, int room);
/* Has the parameter or state t been drawn, or fed? */
bool session_drawn(const ricci_session *s, const ricci_tensor *t);
/* What the tensors between a step's kernels take. */
size_t session_bytes(const ricci_session *s);

#endif

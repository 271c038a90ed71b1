/* test_waits.c - a step waits for nobody in the background: it ends while somebody else holds every
 * lock that the background takes, with news of all its entries. */
#include "core/core.h"
#include "runtime/search/tuner.h"
#include "runtime/session.h"
#include "tests/check.h"
#include <signal.h>
#include <unistd.h>

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})
enum { N = 64, STEPS = 5, MOST = 100, HANGS = 60 /* seconds */ };

static const GlobalLock locks[] = {LOCK_GRAPHS, LOCK_CACHE, LOCK_TCC};

/* Takes or gives back the locks of entries, their tuner and the process. */
static void locks_hold(int n, CacheEntry **e, bool hold)
{
	Tuner *t = n ? e[0]->tuner : NULL;

	for (int i = 0; i < n; i++)
		if (hold) {
			pthread_mutex_lock(&e[i]->lock);
			atomic_fetch_add(&e[i]->version, 1);
		} else {
			pthread_mutex_unlock(&e[i]->lock);
		}
	for (int i = 0; i < COUNT(locks); i++)
		hold ? lock_take(locks[i]) : lock_leave(locks[i]);
	if (t)
		hold ? pthread_mutex_lock(&t->lock) : pthread_mutex_unlock(&t->lock);
}

/* Entries of both sessions, each once, none of them on trial. */
static int entries_of(ricci_session *train, ricci_session *eval, CacheEntry **e)
{
	CacheEntry *all[2 * MOST];
	int n = session_entries(train, all, MOST), kept = 0;

	n += session_entries(eval, all + n, MOST);
	for (int i = 0; i < n; i++) {
		int k = 0;

		while (k < kept && e[k] != all[i])
			k++;
		if (k == kept)
			e[kept++] = all[i];
	}
	return kept;
}

/* No trial is on, nor begins: this thread has the locks of all. */
static bool locks_hold_quiet(int n, CacheEntry **e)
{
	locks_hold(n, e, true);
	for (int i = 0; i < n; i++)
		if (e[i]->trial) {
			locks_hold(n, e, false);
			return false;
		}
	return true;
}

int main(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, SHAPE(N, N)), *loss, *y, *d;
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, SHAPE(N, N), ricci_constant(0.01));
	ricci_options o = RICCI_OPTIONS(.threads = 2);
	static float data[N * N];
	CacheEntry *e[2 * MOST];

#ifdef __SANITIZE_THREAD__
	CHECK_SKIP("ThreadSanitizer takes locks that a thread holds while it steps for a circle");
	return check_done();
#endif
	y = ricci_op(g, "Y[i,j] += X[i,k]*W[k,j]; Z[i,j] = tanh(Y[i,j])", x, w);
	loss = ricci_op(g, "L[] += Y[i,j]*Y[i,j]", y);
	CHECK_INT(ricci_grad(g, loss, NULL, 1, &w, &d), 0);
	ricci_assign(g, w, ricci_op(g, "V[i,j] = W[i,j] - 0.01*D[i,j]", w, d));
	CHECK_GRAPH(g);
	ricci_session *train = ricci_session_new(g, &o, 1, 1, &loss);
	ricci_session *eval = train ? ricci_session_share(train, 0, 1, &y) : NULL;
	CHECK_REPORT(eval != NULL, "%s", ricci_error_message());
	if (!eval)
		return check_done();
	for (int i = 0; i < N * N; i++)
		data[i] = (float)(i % 7) / 7;
	CHECK_INT(ricci_feed(train, x, data, sizeof data), 0);
	CHECK_INT(ricci_feed(eval, x, data, sizeof data), 0);
	int n = entries_of(train, eval, e), done = 0;
	CHECK(n > 1);
	for (int i = 0; i < 10000 && done < STEPS; i++) {
		CHECK_INT(ricci_step(train), 0);
		CHECK_INT(ricci_step(eval), 0);
		if (!locks_hold_quiet(n, e))
			continue;
		alarm(HANGS); /* a step that waits ends the test */
		int code = ricci_step(train) || ricci_step(eval);
		alarm(0);
		locks_hold(n, e, false);
		CHECK_INT(code, 0);
		done++;
	}
	CHECK_INT(done, STEPS);
	ricci_session_free(eval);
	ricci_session_free(train);
	ricci_graph_free(g);
	return check_done();
}

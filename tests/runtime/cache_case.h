/* cache_case.h - a training whose kernels the function cache keeps, and a look at the folder they
 * lie in. */
#ifndef TESTS_CACHE_CASE_H
#define TESTS_CACHE_CASE_H

#include "runtime/session.h"
#include "tests/check.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static char folder[200];

/* A session of three kernels: how many of them came from cc, and whether the result is right. */
static int train(ricci_backend backend, int frozen, int settle, int threads, int *ncc)
{
	enum { B = 33, K = 48, N = 20 };
	static float xs[B * K], y[B * N];
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){B, K});
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){K, N}, ricci_constant(2));
	ricci_tensor *h = ricci_op(g, "H[b,n] += X[b,k] * W[k,n]", x, w);
	ricci_tensor *p = ricci_op(g, "m[b] max= H[b,n]; Y[b,n] = H[b,n] - 0.5*m[b]", h);
	ricci_options o =
		RICCI_OPTIONS(.backend = backend, .static_mode = frozen, .threads = threads);
	ricci_session *s = ricci_session_new(g, &o, 0, 1, &p);
	CacheEntry *l[8];
	int n = 0, bad = 0;

	if (!s) {
		fprintf(stderr, "%s\n", ricci_error_message());
		return 1;
	}
	for (int i = 0; i < B * K; i++)
		xs[i] = 0.25f;
	bad += ricci_feed(s, x, xs, ricci_bytes(x)) != 0;
	for (int i = 0; i < 3; i++)
		bad += ricci_step(s) != 0;
	if (settle) {
		bad += ricci_settle(s) != 0;
		bad += ricci_step(s) != 0;
	}
	bad += ricci_fetch(s, p, y, ricci_bytes(p)) != 0;
	for (int i = 0; i < B * N; i++)
		bad += !(fabsf(y[i] - 12) < 1e-4f);
	if (*ricci_error_message())
		fprintf(stderr, "%s\n", ricci_error_message());
	*ncc = 0;
	for (n = session_entries(s, l, COUNT(l)); n > 0; n--)
		*ncc += !strcmp(l[n - 1]->best->backend->name, "cc");
	ricci_session_free(s);
	ricci_graph_free(g);
	return bad != 0;
}

/* Files whose names end so ("": all). */
static int count_files(const char *suffix)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d))) {
		size_t a = strlen(e->d_name), b = strlen(suffix);

		n += a > b && !strcmp(e->d_name + a - b, suffix);
	}
	if (d)
		closedir(d);
	return n;
}

/* Folders that a compiler or a writer worked in. */
static int count_work(void)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += !strncmp(e->d_name, "ricci-work-", 11);
	if (d)
		closedir(d);
	return n;
}

/* Exit status: the number of kernels by cc; 100 on wrong results. */
static int run_settled(void)
{
	int ncc, bad = train(RICCI_BACKEND_AUTO, 0, 1, 2, &ncc);

	return bad ? 100 : ncc;
}

/* The same without time for the background: only what is kept can be from cc. */
static int run_at_once(void)
{
	int ncc, bad;

	setenv("RICCI_CC_TIMEOUT", "0", 1); /* compiling can only fail */
	bad = train(RICCI_BACKEND_AUTO, 0, 0, 2, &ncc);
	return bad ? 100 : ncc;
}

#endif

/* keep.c - which checkpoints a training has: the last one, the last n, the best one.
 * Input: a run between two steps. Output: files. Invariant: what is kept depends on the steps and
 * what was measured only, so that a resumed training ends with the files of one that never stopped. */
#include "nn/training/internal.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the last n: <checkpoint>.step<number> */

/* The step of a kept checkpoint of that base name; false: it is none. */
static bool kept_step(const char *name, const char *base, uint64_t *step)
{
	size_t n = strlen(base);
	char *end;
	if (strncmp(name, base, n) || strncmp(name + n, ".step", 5))
		return false;
	const char *number = name + n + 5;
	*step = strtoull(number, &end, 10);
	return *number >= '1' && *number <= '9' && !*end;
}

static int step_order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x < y) - (x > y);
}

/* The steps of all kept ones, the largest first. */
static int kept_list(DIR *d, const char *base, uint64_t **steps, int *n)
{
	int room = 0;
	*n = 0;
	*steps = NULL;
	rewinddir(d);
	for (struct dirent *e; (e = readdir(d));) {
		uint64_t step;
		if (!kept_step(e->d_name, base, &step))
			continue;
		uint64_t *more = mem_grow(*steps, *n, &room, sizeof *more);
		if (!more)
			return RICCI_ENOMEM;
		*steps = more;
		more[(*n)++] = step;
	}
	if (*n)
		qsort(*steps, (size_t)*n, sizeof **steps, step_order);
	return 0;
}

/* Those behind this step are of a training that went another way. */
static int kept_remove(const Run *r, DIR *d, const char *base, uint64_t now)
{
	uint64_t *steps;
	char name[512];
	int n, stay = r->t->keep, status = kept_list(d, base, &steps, &n);
	for (int i = 0; i < n && !status; i++) {
		if (steps[i] <= now && stay-- > 0)
			continue;
		snprintf(name, sizeof name, "%s.step%llu", base, (unsigned long long)steps[i]);
		unlinkat(dirfd(d), name, 0);
	}
	mem_free(steps);
	return status;
}

/* A second name for the checkpoint that was just saved, and fewer old ones. */
static int keep_last(Run *r)
{
	const char *path = r->t->checkpoint, *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	uint64_t now = ricci_step_count(r->session);
	Text folder = {0}, name = {0};
	text_put(&folder, path, (size_t)(base - path));
	if (!slash)
		text_add(&folder, ".");
	text_add(&name, "%s.step%llu", path, (unsigned long long)now);
	int status = folder.failed || name.failed ? RICCI_ENOMEM : 0;
	DIR *d = status ? NULL : opendir(folder.s);
	if (!status && !d)
		status = RICCI_EIO;
	if (!status)
		status = kept_remove(r, d, base, now);
	if (!status && unlink(name.s) && errno != ENOENT)
		status = RICCI_EIO;
	char *real = status ? NULL : realpath(path, NULL);
	if (!status && (!real || link(real, name.s)))
		status = RICCI_EIO;
	int cause = errno;
	if (!status)
		status = kept_remove(r, d, base, now);
	if (status == RICCI_EIO)
		FAIL(r, status, "cannot keep %s: %s", name.s, strerror(cause));
	else if (status)
		FAIL(r, status, "out of memory");
	free(real);
	if (d)
		closedir(d);
	text_free(&folder);
	text_free(&name);
	return status;
}

/* Behind an epoch only: where a training was stopped leaves no trace. */
int run_keep(Run *r)
{
	return r->t->keep && r->at.epoch && !r->at.index ? keep_last(r) : 0;
}

/* ---- saving */

static int save_at(Run *r, const char *path)
{
	const ricci_training *t = r->t;
	ricci_tensor *output = t->output	  ? t->output
			       : t->misclassified ? t->misclassified
						  : t->loss;
	Contents c = {
		.output = output, .at = &r->at, .history = &r->history, .compress = t->compress};
	c.alphabet = ricci_text_alphabet(t->train, &c.nalphabet);
	return checkpoint_save(r->session, t->loss, path, &c, true, &r->err);
}

int run_save(Run *r)
{
	const ricci_training *t = r->t;
	run_flush(r, true); /* rows of steps that the checkpoint holds are not made again */
	if (!t->checkpoint)
		return 0;
	int status = save_at(r, t->checkpoint);
	if (status)
		return status;
	r->saved = t->checkpoint;
	r->saved_step = ricci_step_count(r->session);
	r->saved_here = true;
	return run_keep(r);
}

int run_save_best(Run *r)
{
	const ricci_training *t = r->t;
	Text path = {0};
	if (!t->keep_best || !r->improved)
		return 0;
	r->improved = false;
	text_add(&path, "%s.best", t->checkpoint);
	int status = path.failed ? FAIL(r, RICCI_ENOMEM, "out of memory") : save_at(r, path.s);
	text_free(&path);
	return status;
}

/* ---- the value that decides */

void run_watch(Run *r, const double *value)
{
	Watch *w = &r->history.watch;
	double v = r->watched < 0 ? NAN : value[r->watched];
	if (isnan(v))
		return;
	bool better = isnan(w->best) || (r->t->watch_greatest ? v > w->best : v < w->best);
	w->since = better ? 0 : w->since + 1;
	if (!better)
		return;
	w->best = v;
	w->step = (double)ricci_step_count(r->session);
	r->improved = true;
}

bool run_exhausted(const Run *r)
{
	return r->t->patience > 0 && r->history.watch.since >= r->t->patience;
}

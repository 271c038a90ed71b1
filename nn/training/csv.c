/* csv.c - the numbers of a training as comma-separated values.
 *	of,epoch,step,<column>..,seconds_per_step
 *	step,1,20,2.30,..,0.0051
 *	epoch,1,20,2.41,..,
 * `of` says what a row tells of: a step, a whole epoch (means), or a validation within one. Errors
 * and percentages are fractions. Invariant: steps never fall from row to row. */
#include "nn/training/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Resumed {
	History *h;
	const Text *head;
	const char *path;
} Resumed;

/* The step of a row, and its seconds (NaN: none); false: it is no row. */
static bool row_read(const char *row, const char *end, uint64_t *step, double *seconds)
{
	const char *epoch = memchr(row, ',', (size_t)(end - row));
	const char *at = epoch ? memchr(epoch + 1, ',', (size_t)(end - epoch - 1)) : NULL;
	char *behind;
	if (!at || at[1] < '0' || at[1] > '9')
		return false;
	*step = strtoull(at + 1, &behind, 10);
	const char *last = end;
	while (last > row && last[-1] != ',')
		last--;
	*seconds = last < end ? strtod(last, NULL) : NAN;
	return behind < end && *behind == ',';
}

/* Rows up to the step stay; times of steps, which no checkpoint holds, come back from them. */
static int64_t csv_cut(const char *data, size_t n, const void *user, uint64_t step, Error *err)
{
	const Resumed *v = user;
	if (n < v->head->n || memcmp(data, v->head->s, v->head->n))
		return error_set(err, RICCI_EFORMAT,
				 "%s has other columns than this training: it cannot be continued; "
				 "choose another path",
				 v->path);
	const char *row = data + v->head->n, *all = data + n, *end;
	for (; row < all && (end = memchr(row, '\n', (size_t)(all - row))); row = end + 1) {
		uint64_t at;
		double seconds;
		if (!row_read(row, end, &at, &seconds) || at > step)
			break;
		if (!isnan(seconds))
			curve_add(&v->h->seconds, at, seconds);
	}
	return row - data;
}

int csv_open(Log *l, const char *path, bool resumed, uint64_t step, History *h, Error *err)
{
	Text head = {0};
	text_add(&head, "of,epoch,step");
	for (int i = 0; i < h->ncolumn; i++)
		text_add(&head, ",%s", h->column[i]);
	text_add(&head, ",seconds_per_step\n");
	int status = head.failed ? error_set(err, RICCI_ENOMEM, "out of memory")
				 : log_open(l, path, resumed, step, csv_cut,
					    &(Resumed){h, &head, path}, &head, err);
	text_free(&head);
	return status;
}

void csv_add(Log *l, const History *h, const Entry *e)
{
	Text *t = &l->pending;
	text_add(t, "%s,%llu,%llu", e->of, (unsigned long long)e->epoch,
		 (unsigned long long)e->step);
	for (int i = 0; i < h->ncolumn; i++)
		if (isnan(e->value[i]))
			text_add(t, ",");
		else
			text_add(t, ",%.9g", e->value[i]);
	if (isnan(e->seconds))
		text_add(t, ",\n");
	else
		text_add(t, ",%.6g\n", e->seconds);
}

/* hdf5.c - opening HDF5's library, and its one lock.
 * RICCI_HDF5_LIBRARY is the name that ./configure found programs to be linked against; the variable
 * RICCI_HDF5 names another. */
#include "nn/hdf5.h"
#include "nn/nn.h"

#include <dlfcn.h>
#include <pthread.h>

Hdf5 h5;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char why[512]; /* it can't be used; "" when it can */

static void h5_open(void)
{
	const char *name = env_text("RICCI_HDF5", RICCI_HDF5_LIBRARY);
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL), *at = library;
	const char *missing = NULL;
#define TAKE(name, symbol)                                                                         \
	if (at && !(at = h5.name = dlsym(library, #symbol)))                                       \
		missing = #symbol;
#define FUNCTION(name)	       TAKE(name, H5##name)
#define VARIABLE(name, symbol) TAKE(name, symbol)
#include "nn/hdf5.def"
	if (!library)
		snprintf(why, sizeof why, "%s", dlerror());
	else if (missing)
		snprintf(why, sizeof why, "%s has no %s", name, missing);
	else if (h5.open() < 0)
		snprintf(why, sizeof why, "%s does not start", name);
}

int h5_enter(Quiet *q, char *err, size_t nerr)
{
	pthread_once(&once, h5_open);
	if (*why)
		return nn_fail(err, nerr, RICCI_EUNSUPPORTED,
			       "checkpoints need HDF5 (Debian: libhdf5-103-1): %s", why);
	pthread_mutex_lock(&lock);
	h5.Eget_auto2(H5E_DEFAULT, &q->print, &q->data);
	h5.Eset_auto2(H5E_DEFAULT, NULL, NULL);
	h5.Eclear2(H5E_DEFAULT);
	return 0;
}

void h5_leave(Quiet q)
{
	h5.Eset_auto2(H5E_DEFAULT, q.print, q.data);
	pthread_mutex_unlock(&lock);
}

static herr_t innermost(unsigned n, const H5E_error2_t *e, void *out)
{
	if (!n && e->desc)
		snprintf(out, 160, "%s", e->desc);
	return 0;
}

const char *h5_reason(char *room)
{
	snprintf(room, 160, "no reason given");
	h5.Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, room);
	return room;
}

/* calls.c - phases of kernels that are calls of vendor libraries: of which one, planned once, and where tensors lie.
 *
 * Input: a call as numbers (KernelCall). Output: what its library's row (cublaslt.c, cudnn.c) starts on the device's
 * stream, which can be captured. Invariant: a binary has one call, so one plan. */
#include "jit/device/internal.h"

enum { WORK_ALIGNED = 256 };

static const DeviceLibrary *const rows[DEVICE_LIBRARIES] = {&device_cublaslt, &device_cudnn};

/* The handle of row k. */
static int library_enter(Device *d, int k, Error *err)
{
	void *handle = NULL;
	char why[320];
	const Library *l = rows[k]->library;
	if (!library_ready(l, why, sizeof why))
		return error_set(err, RICCI_EUNSUPPORTED, "there is no %s: %s", l->name, why);
	int code = d->library[k] ? 0 : rows[k]->open(d, &handle, err);
	if (!code && !d->library[k])
		d->library[k] = handle;
	return code;
}

static int row_of(const DeviceLibrary *library)
{
	int k = 0;
	while (rows[k] != library)
		k++;
	return k;
}

int call_plan(Device *d, Binary *b, const KernelCall *c, Error *err)
{
	int k = 0;
	if (b->plan)
		return 0;
	while (rows[k]->library != library_row((int)c->library))
		k++;
	int code = library_enter(d, k, err);
	if (!code)
		code = rows[k]->plan(d->library[k], c, &b->plan, err);
	b->library = rows[k];
	b->device = d;
	return code;
}

void call_forget(Binary *b)
{
	if (b->plan)
		b->library->forget(b->plan);
}

/* Its first element at this point of the loops. */
static char *tensor_at(const Device *d, const CallTensor *x, const Arguments *a,
		       const int64_t *point)
{
	int64_t at = x->at;
	for (int k = 0; k < CALL_LOOPS; k++)
		at += point[k] * x->loop[k];
	return (char *)(x->buf < 0 ? d->shared : a->pointer[x->buf]) +
	       at * (int64_t)type_size((Type)x->type);
}

static CallPlace place_at(const Device *d, const KernelCall *c, const Arguments *a,
			  const int64_t *point)
{
	CallPlace out = {.work = (char *)d->shared + c->work_at};
	uintptr_t all = 0;
	for (int k = 0; k < CALL_TENSORS; k++) {
		out.tensor[k] = tensor_at(d, &c->tensor[k], a, point);
		all |= (uintptr_t)out.tensor[k];
	}
	/* Results of this point add to those of another, which came before, where it has the same places. */
	for (int k = 0; k < CALL_LOOPS; k++)
		out.adds |= point[k] && !c->tensor[CALL_D].loop[k];
	out.aligned = all % CALL_ALIGNED == 0;
	return out;
}

int call_launch(Device *d, const Binary *b, const KernelCall *c, const Arguments *a, Error *err)
{
	int64_t point[CALL_LOOPS] = {0};
	void *handle = d->library[row_of(b->library)];
	int code = 0, k = 0;
	if (c->work && ((uintptr_t)d->shared + (uintptr_t)c->work_at) % WORK_ALIGNED)
		return error_set(err, RICCI_EINTERNAL, "a library's memory is at an odd address");
	while (k < CALL_LOOPS && !code) {
		const CallPlace place = place_at(d, c, a, point);
		code = b->library->launch(d, handle, b->plan, c, &place, err);
		for (k = 0; k < CALL_LOOPS && ++point[k] == c->loop[k]; k++)
			point[k] = 0;
	}
	return code;
}

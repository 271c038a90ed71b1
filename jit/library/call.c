/* call.c - a library's call on a device, as numbers: written, read, and what it touches.
 *
 * Invariant: a text that is read was perhaps written by no one we know; call_inside judges it. */
#include "jit/library/library.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = sizeof(KernelCall) / sizeof(int64_t) };
_Static_assert(NUMBERS * sizeof(int64_t) == sizeof(KernelCall), "it is nothing but numbers");

void call_print(Text *out, const KernelCall *c)
{
	const int64_t *number = (const int64_t *)(const void *)c;
	for (int k = 0; k < NUMBERS; k++)
		text_add(out, "%s%" PRId64, k ? " " : "", number[k]);
}

const char *call_parse(const char *s, KernelCall *c)
{
	int64_t *number = (int64_t *)(void *)c;
	for (int k = 0; k < NUMBERS; k++) {
		char *end;
		number[k] = strtoll(s, &end, 10);
		if (end == s)
			return NULL;
		s = end;
	}
	return s;
}

const int *call_roles(CallKind kind)
{
	static const int roles[CALL_KINDS][CALL_TENSORS] = {
		[CALL_FORWARD] = {CALL_A, CALL_B, CALL_D},
		[CALL_DATA] = {CALL_D, CALL_B, CALL_A},
		[CALL_WEIGHTS] = {CALL_A, CALL_D, CALL_B},
	};
	return roles[kind];
}

/* ---- judging */

bool call_available(const KernelCall *c)
{
	const Library *l = library_row((int)c->library);
	return !c->kind || (l && l->calls && library_ready(l, NULL, 0) &&
			    cuda_library_number(l->cuda) == c->version);
}

/* As far as sizes and steps go that no device has memory for. */
static bool is_size(int64_t v)
{
	return v >= 1 && v < INT32_MAX;
}

static bool reach_add(int64_t *last, int64_t extent, int64_t stride)
{
	int64_t more;
	return is_size(extent) && stride >= 0 &&
	       !__builtin_mul_overflow(extent - 1, stride, &more) &&
	       !__builtin_add_overflow(*last, more, last);
}

static bool tensor_inside(const KernelCall *c, const CallTensor *x, int nbuf, const size_t *bytes,
			  size_t shared)
{
	int64_t last = x->at;
	if (x->buf < -1 || x->buf >= nbuf || x->at < 0 || x->type < 0 || x->type >= RICCI_NTYPES)
		return false;
	for (int k = 0; k < CALL_RANK; k++)
		if (!reach_add(&last, x->extent[k], x->stride[k]))
			return false;
	for (int k = 0; k < CALL_LOOPS; k++)
		if (!reach_add(&last, c->loop[k], x->loop[k]))
			return false;
	size_t room = (x->buf < 0 ? shared : bytes[x->buf]) / type_size((Type)x->type);
	return (uint64_t)last < room;
}

/* A matrix, one of whose dimensions lies in one piece: elements of lines don't meet. */
static bool is_matrix(const CallTensor *x)
{
	bool down = x->stride[1] == 1 && x->stride[2] >= x->extent[1];
	bool along = x->stride[2] == 1 && x->stride[1] >= x->extent[2];
	return (down || along) && is_size(x->stride[1]) && is_size(x->stride[2]) &&
	       x->extent[3] == 1 && x->extent[4] == 1;
}

static bool product_fits(const KernelCall *c)
{
	const CallTensor *a = &c->tensor[CALL_A], *b = &c->tensor[CALL_B], *d = &c->tensor[CALL_D];
	return is_matrix(a) && is_matrix(b) && is_matrix(d) && a->extent[0] == d->extent[0] &&
	       b->extent[0] == d->extent[0] && a->extent[1] == d->extent[1] &&
	       b->extent[2] == d->extent[2] && a->extent[2] == b->extent[1];
}

static bool window_fits(const CallWindow *w, int64_t x, int64_t filter, int64_t y)
{
	if (!is_size(w->stride) || !is_size(w->dilation) || w->before < 0 || w->after < 0 ||
	    w->before >= INT32_MAX || w->after >= INT32_MAX)
		return false;
	int64_t rest = x + w->before + w->after - w->dilation * (filter - 1) - 1;
	return rest >= 0 && rest / w->stride + 1 == y;
}

static bool convolution_fits(const KernelCall *c)
{
	const int *role = call_roles((CallKind)c->kind);
	const CallTensor *x = &c->tensor[role[ROLE_X]], *w = &c->tensor[role[ROLE_W]];
	const CallTensor *y = &c->tensor[role[ROLE_Y]];
	bool good = c->windows >= 1 && c->windows <= CALL_WINDOWS && x->extent[0] == y->extent[0] &&
		    w->extent[0] == y->extent[1] && x->extent[1] % w->extent[1] == 0 &&
		    w->extent[0] % (x->extent[1] / w->extent[1]) == 0;
	for (int k = 0; k < CALL_LOOPS; k++)
		good = good && c->loop[k] == 1;
	for (int k = 0; k < CALL_WINDOWS && good; k++)
		good = k < c->windows ? window_fits(&c->window[k], x->extent[2 + k],
						    w->extent[2 + k], y->extent[2 + k])
				      : x->extent[2 + k] * w->extent[2 + k] * y->extent[2 + k] == 1;
	return good;
}

static bool library_fits(const KernelCall *c)
{
	const Library *l = library_row((int)c->library);
	const CallTensor *x = c->tensor;
	return c->library == (int)c->library && c->kind > CALL_NONE && c->kind < CALL_KINDS && l &&
	       l->calls >> c->kind & 1 && x[CALL_A].type == x[CALL_B].type &&
	       l->multiplies((Type)x[CALL_A].type, (Type)x[CALL_D].type);
}

bool call_inside(const KernelCall *c, int ninput, int nbuf, const size_t *bytes, size_t shared)
{
	if (!c->kind)
		return true;
	bool good = c->work >= 0 && c->work_at >= 0 && (uint64_t)c->work <= shared &&
		    (uint64_t)c->work_at <= shared - (uint64_t)c->work &&
		    (c->tensor[CALL_D].buf < 0 || c->tensor[CALL_D].buf >= ninput);
	for (int k = 0; k < CALL_TENSORS; k++)
		good = good && tensor_inside(c, &c->tensor[k], nbuf, bytes, shared);
	return good && library_fits(c) &&
	       (c->kind == CALL_PRODUCT ? product_fits(c) : convolution_fits(c));
}

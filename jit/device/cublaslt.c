/* cublaslt.c - phases of kernels that are products of cuBLASLt's (jit/library/cublaslt.c opens it).
 *
 * Input: a product as numbers (KernelCall), where its matrices lie. Output: the product on the device's stream.
 * cuBLASLt's matrices are column by column; where d lies row by row its transpose is
 * computed, d' = b' a'. A kernel's plan has the descriptors and the algorithm that
 * cuBLASLt thinks best: one for addresses at multiples of CALL_ALIGNED bytes, one for all others, which slices of
 * tensors may have. Invariant: sums are added up in f32 (f64 for f64) and rounded once; no algorithm is
 * allowed that adds up rounded results.
 */
#include "jit/device/internal.h"

#include <string.h>

enum { /* of cublasLt.h, cublas_api.h and library_types.h */
       COMPUTE_32F = 68,
       COMPUTE_64F = 70,
       PRODUCT_TRANSA = 3,
       PRODUCT_TRANSB = 4,
       TRANSPOSED = 1,
       LAYOUT_BATCH = 5,
       LAYOUT_BATCH_STRIDE = 6,
       WISH_WORK = 1,
       WISH_REDUCTION = 3,
       WISH_ALIGNMENT = 5, /* of a, b, c and d */
       REDUCTION_COMPUTE_TYPE = 2
};
static const int cuda_type[RICCI_NTYPES] = {
	[RICCI_F32] = 0, [RICCI_F64] = 1, [RICCI_F16] = 2, [RICCI_BF16] = 14};

typedef struct Algorithm { /* cublasLtMatmulHeuristicResult_t */
	uint64_t algorithm[8];
	size_t work;
	int state;
	float waves;
	int reserved[4];
} Algorithm;

typedef struct Plan {
	bool swapped; /* the first factor is b' */
	void *product, *first, *second, *result;
	Algorithm best[2]; /* for any addresses, for aligned ones */
} Plan;

/* ---- errors */

static const char *status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} known[] = {
		{1, "not initialised"},	     {3, "no memory"},
		{7, "an invalid value"},     {8, "not on this device"},
		{11, "no access to memory"}, {13, "a kernel failed"},
		{14, "an internal error"},   {15, "not supported"},
		{16, "no licence"},
	};
	for (int k = 0; k < COUNT(known); k++)
		if (known[k].status == status)
			return known[k].text;
	return "an unknown error";
}

static int lt_call(int status, const char *what, Error *err)
{
	return status ? error_set(err, RICCI_EDEVICE, "cuBLASLt: %s failed: %s (error %d)", what,
				  status_text(status), status)
		      : 0;
}

/* ---- plans */

static void lt_forget(void *plan)
{
	Plan *p = plan;
	void *layout[] = {p->first, p->second, p->result};
	for (int k = 0; k < COUNT(layout); k++)
		if (layout[k])
			cublaslt.layout_free(layout[k]);
	if (p->product)
		cublaslt.product_free(p->product);
	mem_free(p);
}

static int layout_make(void **layout, Type type, int64_t rows, int64_t cols, int64_t line,
		       int64_t batch, int64_t stride, Error *err)
{
	int32_t count = (int32_t)batch;
	int status = cublaslt.layout(layout, cuda_type[type], (uint64_t)rows, (uint64_t)cols, line);
	if (!status && batch > 1)
		status = cublaslt.layout_set(*layout, LAYOUT_BATCH, &count, sizeof count);
	if (!status && batch > 1)
		status = cublaslt.layout_set(*layout, LAYOUT_BATCH_STRIDE, &stride, sizeof stride);
	return lt_call(status, "describing a matrix", err);
}

enum { BATCH, ROWS, COLUMNS }; /* dimensions of a matrix */

/* A factor, or its transpose: as it lies, or turned. */
static int factor_make(Plan *plan, int which, const CallTensor *x, bool transpose, Error *err)
{
	void **layout = which == PRODUCT_TRANSA ? &plan->first : &plan->second;
	int32_t turned = TRANSPOSED;
	int rows = transpose ? COLUMNS : ROWS, cols = transpose ? ROWS : COLUMNS, code = 0;
	if (x->stride[rows] != 1 || x->stride[cols] < x->extent[rows]) {
		code = lt_call(cublaslt.product_set(plan->product, which, &turned, sizeof turned),
			       "describing a product", err);
		rows = cols, cols = ROWS + COLUMNS - rows;
	}
	return code ? code
		    : layout_make(layout, (Type)x->type, x->extent[rows], x->extent[cols],
				  x->stride[cols], x->extent[BATCH], x->stride[BATCH], err);
}

static int plan_describe(Plan *plan, const KernelCall *c, Error *err)
{
	const CallTensor *a = &c->tensor[CALL_A], *b = &c->tensor[CALL_B], *d = &c->tensor[CALL_D];
	bool wide = d->type == RICCI_F64, swapped = d->stride[COLUMNS] == 1;
	int rows = swapped ? COLUMNS : ROWS, cols = swapped ? ROWS : COLUMNS;
	int code = lt_call(cublaslt.product(&plan->product, wide ? COMPUTE_64F : COMPUTE_32F,
					    cuda_type[wide ? RICCI_F64 : RICCI_F32]),
			   "describing a product", err);
	plan->swapped = swapped;
	if (!code)
		code = factor_make(plan, PRODUCT_TRANSA, swapped ? b : a, swapped, err);
	if (!code)
		code = factor_make(plan, PRODUCT_TRANSB, swapped ? a : b, swapped, err);
	return code ? code
		    : layout_make(&plan->result, (Type)d->type, d->extent[rows], d->extent[cols],
				  d->stride[cols], d->extent[BATCH], d->stride[BATCH], err);
}

/* What addresses are multiples of, in bytes, in the order of WISH_ALIGNMENT. */
static int wish_set(void *wish, const KernelCall *c, bool aligned)
{
	uint64_t work = (uint64_t)c->work;
	uint32_t reduction = REDUCTION_COMPUTE_TYPE;
	const int of[] = {CALL_A, CALL_B, CALL_D, CALL_D};
	int status = cublaslt.wish_set(wish, WISH_WORK, &work, sizeof work);
	if (!status)
		status = cublaslt.wish_set(wish, WISH_REDUCTION, &reduction, sizeof reduction);
	for (int k = 0; k < COUNT(of) && !status; k++) {
		size_t size = type_size((Type)c->tensor[of[k]].type);
		uint32_t bytes = aligned ? CALL_ALIGNED : (uint32_t)size;
		status = cublaslt.wish_set(wish, WISH_ALIGNMENT + k, &bytes, sizeof bytes);
	}
	return status;
}

static int plan_choose(void *handle, Plan *plan, const KernelCall *c, bool aligned, Error *err)
{
	const CallTensor *a = &c->tensor[CALL_A], *b = &c->tensor[CALL_B];
	void *wish = NULL;
	Algorithm found = {0};
	int n = 0;
	int code = lt_call(cublaslt.wish(&wish), "asking for an algorithm", err);
	if (!code)
		code = lt_call(wish_set(wish, c, aligned), "asking for an algorithm", err);
	if (!code)
		code = lt_call(cublaslt.choose(handle, plan->product, plan->first, plan->second,
					       plan->result, plan->result, wish, 1, &found, &n),
			       "choosing an algorithm", err);
	if (wish)
		cublaslt.wish_free(wish);
	if (!code && (n < 1 || found.state || found.work > (size_t)c->work))
		code = error_set(err, RICCI_EDEVICE,
				 "cuBLASLt has no algorithm for a product of %lld x %lld x %lld",
				 (long long)a->extent[ROWS], (long long)b->extent[COLUMNS],
				 (long long)a->extent[COLUMNS]);
	plan->best[aligned] = found;
	return code;
}

static int lt_plan(void *handle, const KernelCall *c, void **out, Error *err)
{
	Plan *plan = mem_zalloc(sizeof *plan);
	if (!plan)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	int code = plan_describe(plan, c, err);
	for (int aligned = 0; aligned < 2 && !code; aligned++)
		code = plan_choose(handle, plan, c, aligned, err);
	if (code)
		lt_forget(plan);
	else
		*out = plan;
	return code;
}

/* ---- the device */

static int lt_open(Device *d, void **handle, Error *err)
{
	(void)d;
	return lt_call(cublaslt.create(handle), "opening a device", err);
}

static int lt_launch(Device *d, void *handle, const void *planned, const KernelCall *c,
		     const CallPlace *place, Error *err)
{
	static const double wide[] = {0, 1};
	static const float narrow[] = {0, 1};
	const Plan *plan = planned;
	bool f64 = c->tensor[CALL_D].type == RICCI_F64;
	const void *one = f64 ? (const void *)&wide[1] : &narrow[1];
	const void *beta = f64 ? (const void *)&wide[place->adds] : &narrow[place->adds];
	void *a = place->tensor[CALL_A], *b = place->tensor[CALL_B], *to = place->tensor[CALL_D];
	const Algorithm *best = &plan->best[place->aligned];
	int status = cublaslt.multiply(handle, plan->product, one, plan->swapped ? b : a,
				       plan->first, plan->swapped ? a : b, plan->second, beta, to,
				       plan->result, to, plan->result, best->algorithm, place->work,
				       (size_t)c->work, d->queue);
	return lt_call(status, "starting a product", err);
}

const DeviceLibrary device_cublaslt = {&library_cublaslt, lt_open, lt_plan, lt_launch, lt_forget};

/* cublaslt.c - phases of kernels that are products of cuBLASLt's (jit/library/cublaslt.c opens it).
 *
 * Input: a product as numbers (KernelProduct), where its matrices lie. Output: calls on the device's stream,
 * which can be captured. cuBLASLt's matrices are column by column; where d lies row by row its transpose is
 * computed, d' = b' a'. A kernel's plan, made before it first runs, has the descriptors and the algorithm that
 * cuBLASLt thinks best: one for addresses at multiples of ALIGNED bytes, one for all others, which slices of
 * tensors may have. Invariant: sums are added up in f32 (f64 for f64) and rounded once; no algorithm is
 * allowed that adds up rounded results.
 */
#include "jit/device/internal.h"
#include "jit/library/library.h"

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

enum { ALIGNED = 16, WORK_ALIGNED = 256 };

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

void cublaslt_forget(void *plan)
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

/* A factor of so many rows, `row` elements apart, and columns: as it lies, or transposed. */
static int factor_make(Plan *plan, int which, const ProductMatrix *x, int64_t rows, int64_t cols,
		       int64_t row, int64_t col, int64_t batch, Error *err)
{
	void **layout = which == PRODUCT_TRANSA ? &plan->first : &plan->second;
	int32_t turned = TRANSPOSED;
	if (row == 1 && col >= rows)
		return layout_make(layout, x->type, rows, cols, col, batch, x->batch, err);
	int code = lt_call(cublaslt.product_set(plan->product, which, &turned, sizeof turned),
			   "describing a product", err);
	return code ? code : layout_make(layout, x->type, cols, rows, row, batch, x->batch, err);
}

static int plan_describe(Plan *plan, const KernelProduct *p, Error *err)
{
	const ProductMatrix *a = &p->a, *b = &p->b, *d = &p->d;
	bool wide = d->type == RICCI_F64;
	int code = lt_call(cublaslt.product(&plan->product, wide ? COMPUTE_64F : COMPUTE_32F,
					    cuda_type[wide ? RICCI_F64 : RICCI_F32]),
			   "describing a product", err);
	plan->swapped = d->col == 1;
	if (code)
		return code;
	if (plan->swapped) {
		code = factor_make(plan, PRODUCT_TRANSA, b, p->n, p->k, b->col, b->row, p->batch,
				   err);
		if (!code)
			code = factor_make(plan, PRODUCT_TRANSB, a, p->k, p->m, a->col, a->row,
					   p->batch, err);
		return code ? code
			    : layout_make(&plan->result, d->type, p->n, p->m, d->row, p->batch,
					  d->batch, err);
	}
	code = factor_make(plan, PRODUCT_TRANSA, a, p->m, p->k, a->row, a->col, p->batch, err);
	if (!code)
		code = factor_make(plan, PRODUCT_TRANSB, b, p->k, p->n, b->row, b->col, p->batch,
				   err);
	return code ? code
		    : layout_make(&plan->result, d->type, p->m, p->n, d->col, p->batch, d->batch,
				  err);
}

/* What addresses are multiples of, in bytes, in the order of WISH_ALIGNMENT. */
static int wish_set(void *wish, const KernelProduct *p, bool aligned)
{
	uint64_t work = (uint64_t)p->work;
	uint32_t reduction = REDUCTION_COMPUTE_TYPE;
	const Type type[] = {p->a.type, p->b.type, p->d.type, p->d.type};
	int status = cublaslt.wish_set(wish, WISH_WORK, &work, sizeof work);
	if (!status)
		status = cublaslt.wish_set(wish, WISH_REDUCTION, &reduction, sizeof reduction);
	for (int k = 0; k < COUNT(type) && !status; k++) {
		uint32_t bytes = aligned ? ALIGNED : (uint32_t)type_size(type[k]);
		status = cublaslt.wish_set(wish, WISH_ALIGNMENT + k, &bytes, sizeof bytes);
	}
	return status;
}

static int plan_choose(Device *d, Plan *plan, const KernelProduct *p, bool aligned, Error *err)
{
	void *wish = NULL;
	Algorithm found = {0};
	int n = 0;
	int code = lt_call(cublaslt.wish(&wish), "asking for an algorithm", err);
	if (!code)
		code = lt_call(wish_set(wish, p, aligned), "asking for an algorithm", err);
	if (!code)
		code = lt_call(cublaslt.choose(d->library, plan->product, plan->first, plan->second,
					       plan->result, plan->result, wish, 1, &found, &n),
			       "choosing an algorithm", err);
	if (wish)
		cublaslt.wish_free(wish);
	if (!code && (n < 1 || found.state || found.work > (size_t)p->work))
		code = error_set(err, RICCI_EDEVICE,
				 "cuBLASLt has no algorithm for a product of %lld x %lld x %lld",
				 (long long)p->m, (long long)p->n, (long long)p->k);
	plan->best[aligned] = found;
	return code;
}

int cublaslt_plan(Device *d, Binary *b, const KernelProduct *p, Error *err)
{
	char why[256];
	if (b->plan)
		return 0;
	if (!library_ready(&library_cublaslt, why, sizeof why))
		return error_set(err, RICCI_EUNSUPPORTED, "there is no cuBLASLt: %s", why);
	void *handle = d->library;
	int code = handle ? 0 : lt_call(cublaslt.create(&handle), "opening a device", err);
	if (code)
		return code;
	d->library = handle;
	Plan *plan = mem_zalloc(sizeof *plan);
	if (!plan)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	code = plan_describe(plan, p, err);
	for (int aligned = 0; aligned < 2 && !code; aligned++)
		code = plan_choose(d, plan, p, aligned, err);
	if (code) {
		cublaslt_forget(plan);
		return code;
	}
	b->device = d;
	b->plan = plan;
	return 0;
}

/* ---- launches */

/* Its first element at this point of the loops. */
static char *matrix_at(const Device *d, const ProductMatrix *x, const Arguments *a,
		       const int64_t *point)
{
	int64_t at = x->at;
	for (int k = 0; k < PRODUCT_LOOPS; k++)
		at += point[k] * x->loop[k];
	return (char *)(x->buf < 0 ? d->shared : a->pointer[x->buf]) +
	       at * (int64_t)type_size(x->type);
}

/* Do results of this point add to those of another, which came before? */
static bool point_adds(const KernelProduct *p, const int64_t *point)
{
	for (int k = 0; k < PRODUCT_LOOPS; k++)
		if (point[k] && !p->d.loop[k])
			return true;
	return false;
}

static int point_launch(Device *d, const Plan *plan, const KernelProduct *p, const Arguments *args,
			const int64_t *point, Error *err)
{
	static const double wide[] = {0, 1};
	static const float narrow[] = {0, 1};
	bool f64 = p->d.type == RICCI_F64, adds = point_adds(p, point);
	const void *one = f64 ? (const void *)&wide[1] : &narrow[1];
	const void *beta = f64 ? (const void *)&wide[adds] : &narrow[adds];
	char *a = matrix_at(d, &p->a, args, point), *b = matrix_at(d, &p->b, args, point);
	char *result = matrix_at(d, &p->d, args, point), *work = (char *)d->shared + p->work_at;
	uintptr_t all = (uintptr_t)a | (uintptr_t)b | (uintptr_t)result;
	if (p->work && (uintptr_t)work % WORK_ALIGNED)
		return error_set(err, RICCI_EINTERNAL, "cuBLASLt's memory is at an odd address");
	const Algorithm *best = &plan->best[all % ALIGNED == 0];
	int status = cublaslt.multiply(d->library, plan->product, one, plan->swapped ? b : a,
				       plan->first, plan->swapped ? a : b, plan->second, beta,
				       result, plan->result, result, plan->result, best->algorithm,
				       work, (size_t)p->work, d->queue);
	return lt_call(status, "starting a product", err);
}

int cublaslt_launch(Device *d, const Binary *b, const KernelProduct *p, const Arguments *a,
		    Error *err)
{
	int64_t point[PRODUCT_LOOPS] = {0};
	int code = 0, k = 0;
	while (k < PRODUCT_LOOPS && !code) {
		code = point_launch(d, b->plan, p, a, point, err);
		for (k = 0; k < PRODUCT_LOOPS && ++point[k] == p->loop[k]; k++)
			point[k] = 0;
	}
	return code;
}

/* fake_cublaslt.c - stands for NVIDIA's cuBLASLt beside fake_cuda.c, for tests.
 *
 * Input: the calls of cublaslt_api.def. Output: products in the device's memory as its documentation has them:
 * matrices column by column, batches by strides, d = alpha*op(a)*op(b) + beta*c with sums of the compute type,
 * rounded once; or the status that it gives for descriptors that don't fit each other, types that it doesn't
 * multiply, addresses that are not what its algorithm was chosen for. A call named by $FAKE_CUDA_FAIL ("lt_create",
 * "lt_multiply:3" ..) fails; "lt_none" finds no algorithm; "lt_wrong" multiplies wrongly. Its major version is
 * $FAKE_CUBLASLT, or 13. What is in its memory (the workspace) is overwritten.
 */
#include "tests/jit/fake_cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID = 7, UNSUPPORTED = 15, FAILED = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70 };

typedef struct Product {
	int compute, scale, turned[2];
} Product;

typedef struct Layout {
	int type, batch;
	uint64_t rows, cols;
	int64_t line, stride;
} Layout;

typedef struct Wish {
	uint64_t work;
	uint32_t reduction, aligned[4];
} Wish;

typedef struct Algorithm {
	uint64_t magic, work, aligned[4], unused[2];
} Algorithm;
typedef struct Found {
	Algorithm algorithm;
	size_t work;
	int state;
	float waves;
	int reserved[4];
} Found;
_Static_assert(sizeof(Algorithm) == 64 && sizeof(Found) == 96, "cublasLt.h");

enum { MAGIC = 0x17ab };
static int handle, products;

/* Products that were computed. */
int fake_cublaslt_products(void)
{
	return __atomic_load_n(&products, __ATOMIC_RELAXED);
}

int cublasLtGetProperty(int which, int *value)
{
	const char *major = getenv("FAKE_CUBLASLT");
	*value = which == 0 ? (major ? atoi(major) : 13) : which == 1;
	return which < 0 || which > 2 ? INVALID : fake_fails("lt_property") ? FAILED : 0;
}

int cublasLtCreate(void **out)
{
	*out = fake_fails("lt_create") ? NULL : &handle;
	return *out ? 0 : 1;
}

static int make(void **out, const char *call, const void *from, size_t n)
{
	*out = fake_fails(call) ? NULL : malloc(n);
	if (!*out)
		return 3;
	memcpy(*out, from, n);
	fake_live_add(1);
	return 0;
}

static int drop(void *of)
{
	free(of);
	fake_live_add(-(of != NULL));
	return of ? 0 : INVALID;
}

int cublasLtMatmulDescCreate(void **out, int compute, int scale)
{
	return make(out, "lt_product", &(Product){compute, scale, {0, 0}}, sizeof(Product));
}

int cublasLtMatmulDescDestroy(void *of)
{
	return drop(of);
}

int cublasLtMatmulDescSetAttribute(void *of, int which, const void *value, size_t n)
{
	int32_t turned;
	if ((which != 3 && which != 4) || n != sizeof turned)
		return INVALID;
	memcpy(&turned, value, n);
	((Product *)of)->turned[which - 3] = turned;
	return turned != 0 && turned != 1 ? INVALID : fake_fails("lt_product_set") ? FAILED : 0;
}

int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t cols, int64_t line)
{
	return make(out, "lt_layout", &(Layout){type, 1, rows, cols, line, 0}, sizeof(Layout));
}

int cublasLtMatrixLayoutDestroy(void *of)
{
	return drop(of);
}

int cublasLtMatrixLayoutSetAttribute(void *of, int which, const void *value, size_t n)
{
	Layout *l = of;
	if (which == 5 && n == sizeof l->batch)
		memcpy(&l->batch, value, n);
	else if (which == 6 && n == sizeof l->stride)
		memcpy(&l->stride, value, n);
	else
		return INVALID;
	return l->batch < 1 ? INVALID : fake_fails("lt_layout_set") ? FAILED : 0;
}

int cublasLtMatmulPreferenceCreate(void **out)
{
	const Wish usual = {0, 7, {256, 256, 256, 256}};
	return make(out, "lt_wish", &usual, sizeof usual);
}

int cublasLtMatmulPreferenceDestroy(void *of)
{
	return drop(of);
}

int cublasLtMatmulPreferenceSetAttribute(void *of, int which, const void *value, size_t n)
{
	Wish *w = of;
	if (which == 1 && n == sizeof w->work)
		memcpy(&w->work, value, n);
	else if (which == 3 && n == sizeof w->reduction)
		memcpy(&w->reduction, value, n);
	else if (which >= 5 && which <= 8 && n == sizeof w->aligned[0])
		memcpy(&w->aligned[which - 5], value, n);
	else
		return INVALID;
	return fake_fails("lt_wish_set") ? FAILED : 0;
}

/* ---- what fits together */

static size_t size_of(int type)
{
	return type == R_64F ? 8 : type == R_32F ? 4 : 2;
}

static int types_fit(const Product *p, const Layout *a, const Layout *b, const Layout *d)
{
	if (p->compute == COMPUTE_64F)
		return p->scale == R_64F && a->type == R_64F && b->type == R_64F &&
		       d->type == R_64F;
	return p->compute == COMPUTE_32F && p->scale == R_32F && a->type == b->type &&
	       (a->type == R_32F || a->type == R_16F || a->type == R_16BF) &&
	       (d->type == R_32F || d->type == a->type);
}

static int sizes_fit(const Product *p, const Layout *a, const Layout *b, const Layout *d)
{
	const Layout *all[] = {a, b, d};
	for (int k = 0; k < 3; k++)
		if (!all[k]->rows || !all[k]->cols || all[k]->line < (int64_t)all[k]->rows ||
		    all[k]->batch != d->batch)
			return 0;
	uint64_t m = p->turned[0] ? a->cols : a->rows, ka = p->turned[0] ? a->rows : a->cols;
	uint64_t n = p->turned[1] ? b->rows : b->cols, kb = p->turned[1] ? b->cols : b->rows;
	return m == d->rows && n == d->cols && ka == kb;
}

int cublasLtMatmulAlgoGetHeuristic(void *of, void *product, void *a, void *b, void *c, void *d,
				   void *wish, int most, void *out, int *found)
{
	const Wish *w = wish;
	Found *f = out;
	*found = 0;
	if (of != &handle || c != d || most < 1 || !sizes_fit(product, a, b, d))
		return INVALID;
	if (!types_fit(product, a, b, d))
		return UNSUPPORTED;
	if (fake_fails("lt_choose"))
		return FAILED;
	if (fake_fails("lt_none"))
		return 0;
	*f = (Found){.algorithm = {MAGIC, 0, {0}, {0}},
		     .work = w->work < 4096 ? w->work : 4096,
		     .waves = 1};
	f->algorithm.work = f->work;
	for (int k = 0; k < 4; k++)
		f->algorithm.aligned[k] = w->aligned[k];
	*found = 1;
	return 0;
}

/* ---- products */

static float from_f16(uint16_t h)
{
	int e = h >> 10 & 31, m = h & 1023;
	float f = e == 31 ? (m ? NAN : INFINITY)
		  : e	  ? ldexpf((float)(1024 + m), e - 25)
			  : ldexpf((float)m, -24);
	return h >> 15 ? -f : f;
}

static uint16_t to_f16(float f)
{
	uint16_t sign = signbit(f) ? 0x8000 : 0;
	if (isnan(f))
		return 0x7e00;
	f = fabsf(f);
	if (f >= 65520)
		return sign | 0x7c00;
	int e = f > 0 ? ilogbf(f) : -14;
	e = e < -14 ? -14 : e;
	/* a mantissa of 2048 carries into the exponent */
	unsigned m = (unsigned)rintf(ldexpf(f, 10 - e));
	return (uint16_t)(sign | (m + ((unsigned)(e + 14) << 10)));
}

double fake_element(const char *at, int type, int64_t i)
{
	uint16_t h;
	uint32_t u;
	float f;
	switch (type) {
	case R_64F:
		return ((const double *)(const void *)at)[i];
	case R_32F:
		return (double)((const float *)(const void *)at)[i];
	case R_16F:
		memcpy(&h, at + 2 * i, 2);
		return (double)from_f16(h);
	default:
		memcpy(&h, at + 2 * i, 2);
		u = (uint32_t)h << 16;
		memcpy(&f, &u, 4);
		return (double)f;
	}
}

void fake_element_put(char *at, int type, int64_t i, double v)
{
	float f = (float)v;
	uint32_t u;
	uint16_t h;
	if (type == R_64F) {
		((double *)(void *)at)[i] = v;
		return;
	}
	if (type == R_32F) {
		((float *)(void *)at)[i] = f;
		return;
	}
	memcpy(&u, &f, 4);
	h = type == R_16F ? to_f16(f)
	    : isnan(f)	  ? 0x7fc0
			  : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
	memcpy(at + 2 * i, &h, 2);
}

typedef struct Call {
	Product product;
	Layout a, b, d;
	double alpha, beta;
	Algorithm algorithm;
	const char *at_a, *at_b;
	char *at_d, *work;
	size_t work_bytes;
} Call;

static int place_fits(const char *at, const Layout *l, uint64_t aligned)
{
	int64_t last = (int64_t)(l->cols - 1) * l->line + (int64_t)l->rows - 1 +
		       (l->batch - 1) * l->stride;
	return l->stride >= 0 && (uintptr_t)at % aligned == 0 && aligned >= size_of(l->type) &&
	       fake_inside((uint64_t)(uintptr_t)at, (size_t)(last + 1) * size_of(l->type));
}

static double factor(const char *at, const Layout *l, int turned, int64_t batch, int64_t r,
		     int64_t c)
{
	int64_t row = turned ? c : r, col = turned ? r : c;
	return fake_element(at, l->type, batch * l->stride + col * l->line + row);
}

/* The factor's lines along K, one after the other, of a matrix of the batch. */
static double *lines(const char *at, const Layout *l, int turned, int is_a, int64_t batch,
		     int64_t n, int64_t depth)
{
	double *out = malloc((size_t)(n * depth) * sizeof *out);
	for (int64_t i = 0; i < n && out; i++)
		for (int64_t k = 0; k < depth; k++)
			out[i * depth + k] = is_a ? factor(at, l, turned, batch, i, k)
						  : factor(at, l, turned, batch, k, i);
	return out;
}

/* Sums in the compute type, term by term. */
static double dot(int compute, const double *x, const double *y, int64_t depth)
{
	double wide = 0;
	float narrow = 0;
	if (compute == COMPUTE_64F)
		for (int64_t k = 0; k < depth; k++)
			wide += x[k] * y[k];
	else
		for (int64_t k = 0; k < depth; k++)
			narrow += (float)x[k] * (float)y[k];
	return compute == COMPUTE_64F ? wide : (double)narrow;
}

static int multiply(const Call *c, int64_t batch, int64_t depth, int wrong)
{
	const Product *p = &c->product;
	int64_t m = (int64_t)c->d.rows, n = (int64_t)c->d.cols;
	double *x = lines(c->at_a, &c->a, p->turned[0], 1, batch, m, depth);
	double *y = lines(c->at_b, &c->b, p->turned[1], 0, batch, n, depth);
	for (int64_t j = 0; j < n && x && y; j++)
		for (int64_t i = 0; i < m; i++) {
			int64_t at = batch * c->d.stride + j * c->d.line + i;
			double v = dot(p->compute, x + i * depth, y + j * depth, depth - wrong);
			v *= c->alpha;
			if (c->beta != 0)
				v += c->beta * fake_element(c->at_d, c->d.type, at);
			fake_element_put(c->at_d, c->d.type, at, v);
		}
	int status = x && y ? 0 : 3;
	free(x);
	free(y);
	return status;
}

static int call_run(const void *data)
{
	const Call *c = data;
	int64_t depth = (int64_t)(c->product.turned[0] ? c->a.rows : c->a.cols);
	int wrong = fake_fails("lt_wrong");
	if (!place_fits(c->at_a, &c->a, c->algorithm.aligned[0]) ||
	    !place_fits(c->at_b, &c->b, c->algorithm.aligned[1]) ||
	    !place_fits(c->at_d, &c->d, c->algorithm.aligned[3]) ||
	    (c->work_bytes && ((uintptr_t)c->work % 256 ||
			       !fake_inside((uint64_t)(uintptr_t)c->work, c->work_bytes))))
		return INVALID;
	if (fake_fails("lt_run"))
		return FAILED;
	memset(c->work, 0xff, c->algorithm.work);
	int status = 0;
	for (int64_t batch = 0; batch < c->d.batch && !status; batch++)
		status = multiply(c, batch, depth, wrong);
	__atomic_add_fetch(&products, 1, __ATOMIC_RELAXED);
	return status;
}

static double scale(const Product *p, const void *at)
{
	return p->scale == R_64F ? *(const double *)at : (double)*(const float *)at;
}

int cublasLtMatmul(void *of, void *product, const void *alpha, const void *a, void *layout_a,
		   const void *b, void *layout_b, const void *beta, const void *c, void *layout_c,
		   void *d, void *layout_d, const void *algorithm, void *work, size_t work_bytes,
		   void *stream)
{
	const Product *p = product;
	Call call = {.product = *p,
		     .a = *(Layout *)layout_a,
		     .b = *(Layout *)layout_b,
		     .d = *(Layout *)layout_d,
		     .algorithm = *(const Algorithm *)algorithm,
		     .at_a = a,
		     .at_b = b,
		     .at_d = d,
		     .work = work,
		     .work_bytes = work_bytes};
	if (of != &handle || !stream || c != d || layout_c != layout_d ||
	    call.algorithm.magic != MAGIC || call.algorithm.work > work_bytes ||
	    !sizes_fit(p, &call.a, &call.b, &call.d))
		return INVALID;
	if (!types_fit(p, &call.a, &call.b, &call.d))
		return UNSUPPORTED;
	call.alpha = scale(p, alpha);
	call.beta = scale(p, beta);
	return fake_fails("lt_multiply") ? FAILED : fake_call(call_run, &call, sizeof call);
}

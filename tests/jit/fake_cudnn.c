/* fake_cudnn.c - stands for NVIDIA's cuDNN beside fake_cuda.c, for tests.
 *
 * Input: the calls of cudnn_api.def. Output: convolutions and their gradients in the device's memory as the
 * documentation of the backend API has them, by the strides of all tensors, with sums of the compute type; or the
 * status that it gives for descriptors that lack something or don't fit each other, addresses that are not what an
 * engine was chosen for. Its engines are of all kinds, the fastest first: those that note that they round, transform or
 * need too much memory do it, so that choosing one shows. A call named by $FAKE_CUDA_FAIL ("dnn_create",
 * "dnn_set:3" ..) fails; "dnn_none" finds no engine, "dnn_few" only in the fallback mode; "dnn_wrong" convolves wrongly.
 * Its major version is $FAKE_CUDNN, or 9. What is in its memory (the workspace) is overwritten.
 */
#include "tests/jit/fake_cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNINITIALISED = 1001, BAD = 2000, SHAPE = 2008, UNSUPPORTED = 3000, FAILED = 4000 };
enum {
	CONVOLUTION = 1,
	ENGINE,
	CONFIG,
	HEURISTIC,
	PLAN,
	FORWARD = 10,
	WEIGHTS,
	DATA,
	GRAPH = 15,
	PACK,
	TENSOR
};
enum {
	OF_HANDLE,
	OF_TYPE,
	OF_INT64 = 3,
	OF_FLOAT,
	OF_DOUBLE,
	OF_POINTER,
	OF_MODE,
	OF_HEURISTIC,
	OF_NOTE = 11,
	OF_DESCRIPTOR = 15
};
enum { RANK = 8, MOST = 8 };

typedef struct Attribute {
	int name, type;
	int64_t n;
	char data[RANK * 8];
} Attribute;

typedef struct Descriptor {
	int type, final, n, engine; /* engine: of a configuration, or an engine */
	Attribute has[MOST];
} Descriptor;

/* What its engines note of themselves, and the memory that they need. */
static const struct {
	int notes, note[2];
	int64_t work;
} engines[] = {
	{1, {0}, 4096},			     /* tensor cores: f32 is rounded to TF32 */
	{2, {0, 1}, 4096},		     /* rounds what it reads */
	{2, {5, 6}, 4096},		     /* Winograd */
	{1, {3}, 4096},			     /* Fourier */
	{1, {2}, 4096},			     /* rounds sums */
	{0, {0}, 1ll << 40}, {1, {4}, 4096}, /* in any order */
	{1, {9}, 4096},
};
enum { TENSOR_CORES = 0, HUGE_WORK = 5, ANY_ORDER = 6, EXACT = 7, ENGINES };

static int handle, handles, convolutions, last_engine;

int fake_cudnn_convolutions(void)
{
	return __atomic_load_n(&convolutions, __ATOMIC_RELAXED);
}

/* Which engine the last of them had. */
int fake_cudnn_engine(void)
{
	return last_engine;
}

/* How many are open. */
int fake_cudnn_handles(void)
{
	return handles;
}

int cudnnGetProperty(int which, int *value)
{
	const char *major = getenv("FAKE_CUDNN");
	*value = which == 0 ? (major ? atoi(major) : 9) : which == 1 ? 19 : 0;
	return which < 0 || which > 2 ? BAD : fake_fails("dnn_property") ? FAILED : 0;
}

const char *cudnnGetErrorString(int status)
{
	return status == FAILED	       ? "CUDNN_STATUS_INTERNAL_ERROR"
	       : status == UNSUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
				       : "CUDNN_STATUS_BAD_PARAM";
}

int cudnnCreate(void **out)
{
	*out = fake_fails("dnn_open") ? NULL : &handle;
	handles += *out != NULL;
	return *out ? 0 : UNINITIALISED;
}

int cudnnDestroy(void *of)
{
	handles--;
	return of == &handle ? 0 : BAD;
}

int cudnnSetStream(void *of, void *stream)
{
	return of != &handle || !stream ? BAD : fake_fails("dnn_stream") ? FAILED : 0;
}

/* ---- descriptors */

int cudnnBackendCreateDescriptor(int type, void **out)
{
	Descriptor *d = fake_fails("dnn_create") ? NULL : calloc(1, sizeof *d);
	*out = d;
	if (!d)
		return FAILED;
	d->type = type;
	fake_live_add(1);
	return 0;
}

int cudnnBackendDestroyDescriptor(void *of)
{
	free(of);
	fake_live_add(-(of != NULL));
	return of ? 0 : BAD;
}

static size_t size_of(int type)
{
	return type == OF_TYPE || type == OF_FLOAT || type == OF_MODE || type == OF_HEURISTIC ||
			       type == OF_NOTE
		       ? 4
		       : 8;
}

/* The names of a descriptor's attributes, and how many there are. */
static int attributes(int type, int *first)
{
	static const struct {
		int type, first, n;
	} known[] = {{CONVOLUTION, 100, 7}, {HEURISTIC, 200, 2}, {PLAN, 400, 2},
		     {FORWARD, 700, 6},	    {DATA, 706, 6},	 {WEIGHTS, 712, 6},
		     {GRAPH, 800, 2},	    {TENSOR, 900, 7},	 {PACK, 1000, 4}};
	for (int k = 0; k < 9; k++)
		if (known[k].type == type)
			return *first = known[k].first, known[k].n;
	return 0;
}

int cudnnBackendSetAttribute(void *of, int name, int type, int64_t n, const void *from)
{
	Descriptor *d = of;
	int first, count = d ? attributes(d->type, &first) : 0;
	if (!count || d->final || name < first || name >= first + count || n < 1 || n > RANK ||
	    d->n == MOST)
		return BAD;
	Attribute *a = &d->has[d->n++];
	*a = (Attribute){.name = name, .type = type, .n = n};
	memcpy(a->data, from, (size_t)n * size_of(type));
	return fake_fails("dnn_set") ? FAILED : 0;
}

/* NULL: it hasn't been set, as that. */
static const Attribute *find(const Descriptor *d, int name, int type)
{
	for (int k = 0; k < d->n; k++)
		if (d->has[k].name == name && d->has[k].type == type)
			return &d->has[k];
	return NULL;
}

static int64_t number(const Descriptor *d, int name, int k)
{
	int64_t v;
	memcpy(&v, find(d, name, OF_INT64)->data + 8 * k, sizeof v);
	return v;
}

static int word(const Descriptor *d, int name, int type)
{
	int v;
	memcpy(&v, find(d, name, type)->data, sizeof v);
	return v;
}

/* A finished descriptor that it refers to; NULL: it does not. */
static const Descriptor *refer(const Descriptor *d, int name, int type)
{
	const Attribute *a = find(d, name, OF_DESCRIPTOR);
	const Descriptor *to = NULL;
	if (a)
		memcpy(&to, a->data, sizeof to);
	return to && to->type == type && to->final ? to : NULL;
}

/* ---- what fits together */

enum { UNKNOWN = -1 };
static int cuda_type(int type)
{
	return type == 0   ? R_32F
	       : type == 1 ? R_64F
	       : type == 2 ? R_16F
	       : type == 9 ? R_16BF
			   : UNKNOWN;
}

static int64_t bytes_of(int type)
{
	return type == R_64F ? 8 : type == R_32F ? 4 : 2;
}

static int tensor_final(const Descriptor *d)
{
	const Attribute *dims = find(d, 902, OF_INT64), *strides = find(d, 903, OF_INT64);
	if (!find(d, 901, OF_TYPE) || !find(d, 900, OF_INT64) || !find(d, 906, OF_INT64) || !dims ||
	    !strides || dims->n != strides->n || dims->n < 3)
		return BAD;
	int type = cuda_type(word(d, 901, OF_TYPE));
	if (type == UNKNOWN || number(d, 900, 0) <= 0 || number(d, 900, 0) % bytes_of(type))
		return BAD;
	for (int k = 0; k < dims->n; k++)
		if (number(d, 902, k) < 1 || number(d, 903, k) < 1)
			return BAD;
	return 0;
}

static int convolution_final(const Descriptor *d)
{
	if (!find(d, 100, OF_TYPE) || !find(d, 101, OF_MODE) || word(d, 101, OF_MODE) != 1 ||
	    !find(d, 106, OF_INT64))
		return BAD;
	for (int name = 102; name < 106; name++) {
		const Attribute *a = find(d, name, OF_INT64);
		if (!a || a->n != number(d, 106, 0))
			return BAD;
		for (int k = 0; k < a->n; k++)
			if (number(d, name, k) < (name < 104))
				return BAD;
	}
	return 0;
}

typedef struct Operation {
	const Descriptor *convolution, *w, *x, *y;
	int spatial;
} Operation;

static Operation operation(const Descriptor *d)
{
	int first = 0;
	attributes(d->type, &first);
	Operation o = {refer(d, first + 2, CONVOLUTION), refer(d, first + 3, TENSOR),
		       refer(d, first + 4, TENSOR), refer(d, first + 5, TENSOR), 0};
	o.spatial = o.convolution ? (int)number(o.convolution, 106, 0) : 0;
	return o;
}

static int shapes_fit(const Operation *o)
{
	const Descriptor *all[] = {o->w, o->x, o->y};
	for (int k = 0; k < 3; k++)
		if (find(all[k], 902, OF_INT64)->n != o->spatial + 2)
			return 0;
	int64_t last = 0, count = 1; /* filters have no gaps */
	for (int s = 0; s < o->spatial + 2; s++) {
		last += (number(o->w, 902, s) - 1) * number(o->w, 903, s);
		count *= number(o->w, 902, s);
	}
	if (last + 1 != count)
		return 0;
	int64_t c = number(o->x, 902, 1), inner = number(o->w, 902, 1), k = number(o->w, 902, 0);
	if (number(o->x, 902, 0) != number(o->y, 902, 0) || k != number(o->y, 902, 1) ||
	    c % inner || k % (c / inner))
		return 0;
	for (int s = 0; s < o->spatial; s++) {
		const Descriptor *v = o->convolution;
		int64_t reach = number(v, 102, s) * (number(o->w, 902, 2 + s) - 1) + 1;
		int64_t rest =
			number(o->x, 902, 2 + s) + number(v, 105, s) + number(v, 104, s) - reach;
		if (rest < 0 || rest / number(v, 103, s) + 1 != number(o->y, 902, 2 + s))
			return 0;
	}
	return 1;
}

/* Alpha is 1, beta 0, of the type that is added up. */
static int scale_fits(const Descriptor *d, int first, int wide)
{
	const double wide_one = 1, wide_zero = 0;
	const float one = 1, zero = 0;
	const Attribute *alpha = find(d, first, wide ? OF_DOUBLE : OF_FLOAT);
	const Attribute *beta = find(d, first + 1, wide ? OF_DOUBLE : OF_FLOAT);
	size_t n = wide ? 8 : 4;
	return alpha && beta && !memcmp(alpha->data, wide ? (const void *)&wide_one : &one, n) &&
	       !memcmp(beta->data, wide ? (const void *)&wide_zero : &zero, n);
}

static int operation_final(const Descriptor *d)
{
	int first = 0;
	attributes(d->type, &first);
	Operation o = operation(d);
	if (!o.convolution || !o.w || !o.x || !o.y ||
	    !scale_fits(d, first, word(o.convolution, 100, OF_TYPE) == 1))
		return BAD;
	return shapes_fit(&o) ? 0 : SHAPE;
}

/* It has engines for tensors of one type only, and sums of f32, of f64 for f64. */
static int has_engines(const Operation *o)
{
	int type = word(o->x, 901, OF_TYPE);
	return word(o->w, 901, OF_TYPE) == type && word(o->y, 901, OF_TYPE) == type &&
	       word(o->convolution, 100, OF_TYPE) == (type == 1);
}

static const Descriptor *graph_operation(const Descriptor *graph)
{
	const Descriptor *op = NULL;
	for (int type = FORWARD; type <= DATA && !op; type++)
		op = refer(graph, 801, type);
	return op;
}

static int is_handle(const Descriptor *d, int name)
{
	const Attribute *a = find(d, name, OF_HANDLE);
	const void *at = &handle;
	return a && !memcmp(a->data, &at, sizeof at);
}

static int pack_final(const Descriptor *d)
{
	const Attribute *id = find(d, 1000, OF_INT64), *at = find(d, 1001, OF_POINTER);
	return id && at && id->n == 3 && at->n == 3 && find(d, 1003, OF_POINTER) ? 0 : BAD;
}

int cudnnBackendFinalize(void *of)
{
	static const char *const name[] = {[CONVOLUTION] = "dnn_convolution",
					   [HEURISTIC] = "dnn_heuristic",
					   [PLAN] = "dnn_plan",
					   [FORWARD] = "dnn_operation",
					   [WEIGHTS] = "dnn_operation",
					   [DATA] = "dnn_operation",
					   [GRAPH] = "dnn_graph",
					   [PACK] = "dnn_pack",
					   [TENSOR] = "dnn_tensor"};
	Descriptor *d = of;
	int status = BAD;
	if (!d || d->final || d->type < 0 || d->type > TENSOR || !name[d->type])
		return BAD;
	if (d->type == TENSOR)
		status = tensor_final(d);
	else if (d->type == CONVOLUTION)
		status = convolution_final(d);
	else if (d->type >= FORWARD && d->type <= DATA)
		status = operation_final(d);
	else if (d->type == GRAPH)
		status = is_handle(d, 800) && graph_operation(d) ? 0 : BAD;
	else if (d->type == HEURISTIC)
		status = find(d, 200, OF_HEURISTIC) && refer(d, 201, GRAPH) ? 0 : BAD;
	else if (d->type == PLAN)
		status = is_handle(d, 400) && refer(d, 401, CONFIG) ? 0 : BAD;
	else if (d->type == PACK)
		status = pack_final(d);
	if (!status && fake_fails(name[d->type]))
		status = FAILED;
	d->final = !status;
	return status;
}

/* ---- engines */

/* All of them where the mode is A, that which fits everybody in the fallback mode. */
static int engines_give(const Descriptor *d, int64_t most, int64_t *n, void *const *out)
{
	const Descriptor *graph = refer(d, 201, GRAPH);
	const Operation o = operation(graph_operation(graph));
	int mode = word(d, 200, OF_HEURISTIC), few = fake_fails("dnn_few");
	*n = 0;
	if (fake_fails("dnn_none") || !has_engines(&o))
		return 0;
	for (int k = mode == 3 ? 0 : EXACT;
	     k < (few && mode == 3 ? EXACT - 1 : ENGINES) && *n < most; k++) {
		Descriptor *c = out[(*n)++];
		if (!c || c->type != CONFIG)
			return BAD;
		c->engine = k;
		c->final = 1;
		c->n = 1;
		c->has[0] = *find(d, 201, OF_DESCRIPTOR);
	}
	return fake_fails("dnn_choose") ? FAILED : 0;
}

int cudnnBackendGetAttribute(void *of, int name, int type, int64_t most, int64_t *n, void *out)
{
	const Descriptor *d = of;
	if (!d || !d->final || most < 1)
		return BAD;
	if (d->type == HEURISTIC && name == 202 && type == OF_DESCRIPTOR)
		return engines_give(d, most, n, out);
	*n = 1;
	if (d->type == CONFIG && name == 300 && type == OF_DESCRIPTOR) {
		Descriptor *e = *(Descriptor **)out;
		if (!e || e->type != ENGINE)
			return BAD;
		e->engine = d->engine;
		e->final = 1;
		return 0;
	}
	if (d->type == CONFIG && name == 303 && type == OF_INT64) {
		*(int64_t *)out = engines[d->engine].work;
		return 0;
	}
	if (d->type != ENGINE || name != 1303 || type != OF_NOTE)
		return BAD;
	*n = engines[d->engine].notes;
	memcpy(out, engines[d->engine].note, (size_t)(*n < most ? *n : most) * sizeof(int));
	return 0;
}

/* ---- convolutions */

typedef struct Tensor {
	int type, id;
	int64_t aligned, extent[5], stride[5];
	char *at;
} Tensor;

typedef struct Call {
	Tensor x, w, y;
	int kind, engine, wide;
	int64_t stride[3], dilation[3], before[3];
	char *work;
	int64_t work_bytes;
} Call;

static Tensor tensor_of(const Descriptor *d, const Descriptor *pack, int spatial)
{
	Tensor t = {.type = cuda_type(word(d, 901, OF_TYPE)),
		    .id = (int)number(d, 906, 0),
		    .aligned = number(d, 900, 0)};
	for (int k = 0; k < 5; k++) {
		t.extent[k] = k < spatial + 2 ? number(d, 902, k) : 1;
		t.stride[k] = k < spatial + 2 ? number(d, 903, k) : 1;
	}
	for (int k = 0; k < 3; k++)
		if (number(pack, 1000, k) == t.id)
			memcpy(&t.at, find(pack, 1001, OF_POINTER)->data + 8 * k, sizeof t.at);
	return t;
}

static int place_fits(const Tensor *t)
{
	int64_t last = 0;
	for (int k = 0; k < 5; k++)
		last += (t->extent[k] - 1) * t->stride[k];
	return t->at && (uintptr_t)t->at % (uint64_t)t->aligned == 0 &&
	       fake_inside((uint64_t)(uintptr_t)t->at, (size_t)((last + 1) * bytes_of(t->type)));
}

static int64_t place(const Tensor *t, const int64_t *at)
{
	int64_t sum = 0;
	for (int k = 0; k < 5; k++)
		sum += at[k] * t->stride[k];
	return sum;
}

static double tf32(double v)
{
	int e;
	double m = frexp(v, &e);
	return v == 0 || !isfinite(v) ? v : ldexp(rint(ldexp(m, 11)), e - 11);
}

/* What the engine takes for a factor. */
static double factor(const Call *c, const Tensor *t, const int64_t *at)
{
	double v = fake_element(t->at, t->type, place(t, at));
	return c->engine == TENSOR_CORES && t->type == R_32F	    ? tf32(v)
	       : c->engine < ANY_ORDER && c->engine != TENSOR_CORES ? v * 1.01
								    : v;
}

/* One product; false: it is one with padding. at: of x, w, y. */
static int product_at(const Call *c, const int64_t *p, int64_t at[3][5])
{
	/* p: image, result channel, channel of the group, places of y, places of w */
	int64_t group = p[1] / (c->w.extent[0] / (c->x.extent[1] / c->w.extent[1]));
	at[0][0] = at[2][0] = p[0];
	at[0][1] = group * c->w.extent[1] + p[2];
	at[1][0] = at[2][1] = p[1];
	at[1][1] = p[2];
	for (int k = 0; k < 3; k++) {
		int64_t x = p[3 + k] * c->stride[k] + p[6 + k] * c->dilation[k] - c->before[k];
		if (x < 0 || x >= c->x.extent[2 + k])
			return 0;
		at[0][2 + k] = x;
		at[1][2 + k] = p[6 + k];
		at[2][2 + k] = p[3 + k];
	}
	return 1;
}

static int64_t count(const Tensor *t)
{
	int64_t n = 1;
	for (int k = 0; k < 5; k++)
		n *= t->extent[k];
	return n;
}

/* The number of an element, and the other way. */
static int64_t flat(const Tensor *t, const int64_t *at)
{
	int64_t n = 0;
	for (int k = 0; k < 5; k++)
		n = n * t->extent[k] + at[k];
	return n;
}

static void unflat(const Tensor *t, int64_t n, int64_t *at)
{
	for (int k = 4; k >= 0; n /= t->extent[k--])
		at[k] = n % t->extent[k];
}

static void convolve(const Call *c, double *sum, int wrong)
{
	const Tensor *all[] = {&c->x, &c->w, &c->y};
	int to = c->kind == DATA ? 0 : c->kind == WEIGHTS ? 1 : 2, a = to == 0, b = to == 2 ? 1 : 2;
	const int64_t end[9] = {c->x.extent[0], c->w.extent[0], c->w.extent[1],
				c->y.extent[2], c->y.extent[3], c->y.extent[4],
				c->w.extent[2], c->w.extent[3], c->w.extent[4]};
	int64_t p[9] = {0}, at[3][5];
	int k = 0;
	while (k < 9) {
		if (product_at(c, p, at)) {
			double v = factor(c, all[a], at[a]) * factor(c, all[b], at[b]);
			double *s = &sum[flat(all[to], at[to])];
			*s = c->wide ? *s + v : (double)((float)*s + (float)v);
			*s += wrong;
		}
		for (k = 0; k < 9 && ++p[k] == end[k]; k++)
			p[k] = 0;
	}
}

static int call_run(const void *data)
{
	const Call *c = data;
	const Tensor *to = c->kind == DATA ? &c->x : c->kind == WEIGHTS ? &c->w : &c->y;
	int64_t n = count(to), at[5];
	if (!place_fits(&c->x) || !place_fits(&c->w) || !place_fits(&c->y) ||
	    !fake_inside((uint64_t)(uintptr_t)c->work, (size_t)c->work_bytes))
		return BAD;
	if (fake_fails("dnn_run"))
		return FAILED;
	double *sum = calloc((size_t)n, sizeof *sum);
	if (!sum)
		return FAILED;
	memset(c->work, 0xff, (size_t)c->work_bytes);
	convolve(c, sum, fake_fails("dnn_wrong"));
	for (int64_t k = 0; k < n; k++) {
		unflat(to, k, at);
		fake_element_put(to->at, to->type, place(to, at), sum[k]);
	}
	free(sum);
	__atomic_add_fetch(&convolutions, 1, __ATOMIC_RELAXED);
	return 0;
}

int cudnnBackendExecute(void *of, void *plan, void *pack)
{
	const Descriptor *p = plan, *v = pack;
	if (of != &handle || !p || !v || p->type != PLAN || v->type != PACK || !p->final ||
	    !v->final)
		return BAD;
	const Descriptor *config = refer(p, 401, CONFIG);
	const Descriptor *op = graph_operation(refer(config, 201, GRAPH));
	const Operation o = operation(op);
	Call c = {.x = tensor_of(o.x, v, o.spatial),
		  .w = tensor_of(o.w, v, o.spatial),
		  .y = tensor_of(o.y, v, o.spatial),
		  .kind = op->type,
		  .engine = last_engine = config->engine,
		  .wide = word(o.convolution, 100, OF_TYPE) == 1,
		  .work_bytes = engines[config->engine].work};
	for (int k = 0; k < 3; k++) {
		c.stride[k] = k < o.spatial ? number(o.convolution, 103, k) : 1;
		c.dilation[k] = k < o.spatial ? number(o.convolution, 102, k) : 1;
		c.before[k] = k < o.spatial ? number(o.convolution, 105, k) : 0;
	}
	memcpy(&c.work, find(v, 1003, OF_POINTER)->data, sizeof c.work);
	return fake_fails("dnn_execute") ? FAILED : fake_call(call_run, &c, sizeof c);
}

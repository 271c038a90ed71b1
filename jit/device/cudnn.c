/* cudnn.c - phases of kernels that are convolutions of cuDNN's (jit/library/cudnn.c opens it), and their gradients.
 *
 * Input: a convolution as numbers (KernelCall), where its tensors lie. Output: it is started on the device's stream.
 * cuDNN's backend API describes it, since that has strides for all three tensors and tells how each engine computes.
 * A kernel's plan has the first engine of those that cuDNN's heuristic thinks fastest which fits: one for addresses at
 * multiples of CALL_ALIGNED bytes, one for all others, which slices of tensors may have. Invariant: results are sums
 * of the products themselves, added up in f32 (f64 for f64) and rounded once. So no engine transforms (FFT,
 * Winograd), rounds its inputs, or sums of f32, and f32 goes to tensor cores (TF32) only where rounding to 16 bits has
 * left of it what these hold. Where the bits have to be the same in every run the engine promises that. */
#include "jit/device/internal.h"

#include <string.h>

enum { /* of cudnn_graph.h: descriptors, */
       CONVOLUTION = 1,
       ENGINE = 2,
       CONFIG = 3,
       HEURISTIC = 4,
       PLAN = 5,
       GRAPH = 15,
       PACK = 16,
       TENSOR = 17,
       /* their attributes (those of operations begin where `operation` says), */
       CONVOLUTION_SUMS = 100,
       CONVOLUTION_MODE,
       CONVOLUTION_DILATIONS,
       CONVOLUTION_STRIDES,
       CONVOLUTION_AFTER,
       CONVOLUTION_BEFORE,
       CONVOLUTION_DIMENSIONS,
       HEURISTIC_MODE = 200,
       HEURISTIC_GRAPH,
       HEURISTIC_RESULTS,
       CONFIG_ENGINE = 300,
       CONFIG_WORK = 303,
       PLAN_HANDLE = 400,
       PLAN_CONFIG,
       GRAPH_HANDLE = 800,
       GRAPH_OPERATIONS,
       TENSOR_ALIGNMENT = 900,
       TENSOR_TYPE,
       TENSOR_EXTENTS,
       TENSOR_STRIDES,
       TENSOR_ID = 906,
       PACK_IDS = 1000,
       PACK_POINTERS,
       PACK_WORK = 1003,
       ENGINE_NOTES = 1303,
       /* what these are, */
       OF_HANDLE = 0,
       OF_TYPE = 1,
       OF_INT64 = 3,
       OF_FLOAT = 4,
       OF_DOUBLE = 5,
       OF_POINTER = 6,
       OF_MODE = 7,
       OF_HEURISTIC = 8,
       OF_NOTE = 11,
       OF_DESCRIPTOR = 15,
       /* ways to convolve and to choose, and what an engine notes of itself */
       CROSS_CORRELATION = 1,
       MODE_FALLBACK = 2,
       MODE_A = 3,
       NOTE_TENSOR_CORE = 0,
       NOTE_ROUNDS_INPUTS = 1,
       NOTE_ROUNDS_SUMS = 2,
       NOTE_FFT = 3,
       NOTE_NONDETERMINISTIC = 4,
       NOTE_WINOGRAD = 5
};
static const int dnn_type[RICCI_NTYPES] = {
	[RICCI_F32] = 0, [RICCI_F64] = 1, [RICCI_F16] = 2, [RICCI_BF16] = 9};
/* An operation, and the first of its attributes: the factor of the result, that of what was there, the convolution,
 * w, x, y. */
static const struct {
	int descriptor, first;
} operation[CALL_KINDS] = {
	[CALL_FORWARD] = {10, 700}, [CALL_DATA] = {12, 706}, [CALL_WEIGHTS] = {11, 712}};

/* OWNED: of each kind of addresses three tensors, convolution, operation, graph, configuration, plan. */
enum { CONFIGS = 64, NOTES = 16, OWNED = 2 * 8 };

typedef struct Plan {
	void *best[2];	    /* for any addresses, for aligned ones */
	void *owned[OWNED]; /* all descriptors of both */
	int n;
} Plan;

static int dnn_call(int status, const char *what, Error *err)
{
	return status ? error_set(err, RICCI_EDEVICE, "cuDNN: %s failed: %s (error %d)", what,
				  cudnn.status(status), status)
		      : 0;
}

/* ---- descriptors */

typedef struct Attribute {
	int name, type;
	int64_t n;
	const void *from;
} Attribute;

/* A descriptor with these attributes; its status. */
static int describe(int type, int n, const Attribute *attribute, void **out)
{
	int status = cudnn.create(type, out);
	if (status)
		*out = NULL;
	for (int k = 0; k < n && !status; k++)
		status = cudnn.set(*out, attribute[k].name, attribute[k].type, attribute[k].n,
				   attribute[k].from);
	return status ? status : cudnn.finalize(*out);
}

static void dnn_forget(void *planned)
{
	Plan *plan = planned;
	while (plan->n)
		cudnn.destroy(plan->owned[--plan->n]);
	mem_free(plan);
}

/* One that the plan keeps. */
static int plan_describe(Plan *plan, int type, int n, const Attribute *attribute, void **out,
			 Error *err)
{
	int status = describe(type, n, attribute, out);
	if (*out)
		plan->owned[plan->n++] = *out;
	return dnn_call(status, "describing a convolution", err);
}

static int tensor_make(Plan *plan, const KernelCall *c, int k, bool aligned, void **out, Error *err)
{
	const CallTensor *x = &c->tensor[k];
	int64_t rank = c->windows + 2, id = k;
	int64_t bytes = aligned ? CALL_ALIGNED : (int64_t)type_size((Type)x->type);
	const Attribute is[] = {{TENSOR_ALIGNMENT, OF_INT64, 1, &bytes},
				{TENSOR_TYPE, OF_TYPE, 1, &dnn_type[x->type]},
				{TENSOR_EXTENTS, OF_INT64, rank, x->extent},
				{TENSOR_STRIDES, OF_INT64, rank, x->stride},
				{TENSOR_ID, OF_INT64, 1, &id}};
	return plan_describe(plan, TENSOR, COUNT(is), is, out, err);
}

static int convolution_make(Plan *plan, const KernelCall *c, void **out, Error *err)
{
	int64_t of[4][CALL_WINDOWS], n = c->windows;
	const int mode = CROSS_CORRELATION;
	const int *sums = &dnn_type[c->tensor[CALL_D].type == RICCI_F64 ? RICCI_F64 : RICCI_F32];
	for (int k = 0; k < n; k++) {
		of[0][k] = c->window[k].dilation;
		of[1][k] = c->window[k].stride;
		of[2][k] = c->window[k].after;
		of[3][k] = c->window[k].before;
	}
	const Attribute is[] = {{CONVOLUTION_SUMS, OF_TYPE, 1, sums},
				{CONVOLUTION_MODE, OF_MODE, 1, &mode},
				{CONVOLUTION_DILATIONS, OF_INT64, n, of[0]},
				{CONVOLUTION_STRIDES, OF_INT64, n, of[1]},
				{CONVOLUTION_AFTER, OF_INT64, n, of[2]},
				{CONVOLUTION_BEFORE, OF_INT64, n, of[3]},
				{CONVOLUTION_DIMENSIONS, OF_INT64, 1, &n}};
	return plan_describe(plan, CONVOLUTION, COUNT(is), is, out, err);
}

/* The graph of one operation that engines are looked for. */
static int graph_make(Plan *plan, void *handle, const KernelCall *c, bool aligned, void **out,
		      Error *err)
{
	static const double wide[] = {1, 0};
	static const float narrow[] = {1, 0};
	const int *role = call_roles((CallKind)c->kind), at = operation[c->kind].first;
	bool f64 = c->tensor[CALL_D].type == RICCI_F64;
	int scale = f64 ? OF_DOUBLE : OF_FLOAT;
	void *tensor[CALL_TENSORS], *convolution, *op;
	int code = convolution_make(plan, c, &convolution, err);
	for (int k = 0; k < CALL_TENSORS && !code; k++)
		code = tensor_make(plan, c, k, aligned, &tensor[k], err);
	if (code)
		return code;
	const Attribute is[] = {
		{at, scale, 1, f64 ? (const void *)&wide[0] : &narrow[0]},
		{at + 1, scale, 1, f64 ? (const void *)&wide[1] : &narrow[1]},
		{at + 2, OF_DESCRIPTOR, 1, &convolution},
		{at + 3, OF_DESCRIPTOR, 1, &tensor[role[ROLE_W]]},
		{at + 4, OF_DESCRIPTOR, 1, &tensor[role[ROLE_X]]},
		{at + 5, OF_DESCRIPTOR, 1, &tensor[role[ROLE_Y]]},
	};
	code = plan_describe(plan, operation[c->kind].descriptor, COUNT(is), is, &op, err);
	const Attribute all[] = {{GRAPH_HANDLE, OF_HANDLE, 1, &handle},
				 {GRAPH_OPERATIONS, OF_DESCRIPTOR, 1, &op}};
	return code ? code : plan_describe(plan, GRAPH, COUNT(all), all, out, err);
}

/* ---- engines */

/* Does a configuration's engine keep what this file promises, and need no more memory than there is? */
static bool config_fits(void *config, const KernelCall *c)
{
	int refused = 1 << NOTE_ROUNDS_INPUTS | 1 << NOTE_ROUNDS_SUMS | 1 << NOTE_FFT |
		      1 << NOTE_WINOGRAD;
	int note[NOTES], has = 0;
	int64_t work = 0, n = 0, found = 0;
	void *engine = NULL;
	if (c->tensor[CALL_A].type == RICCI_F32 && !c->rounded)
		refused |= 1 << NOTE_TENSOR_CORE;
	if (c->ordered)
		refused |= 1 << NOTE_NONDETERMINISTIC;
	bool known = !cudnn.create(ENGINE, &engine) &&
		     !cudnn.get(config, CONFIG_ENGINE, OF_DESCRIPTOR, 1, &found, &engine) &&
		     !cudnn.get(engine, ENGINE_NOTES, OF_NOTE, NOTES, &n, note) &&
		     !cudnn.get(config, CONFIG_WORK, OF_INT64, 1, &found, &work);
	for (int k = 0; known && k < n && k < NOTES; k++)
		has |= note[k] < 31 ? 1 << note[k] : 0;
	if (engine)
		cudnn.destroy(engine);
	return known && n <= NOTES && !(has & refused) && work <= c->work;
}

/* The first configuration that fits and can be made a plan, kept by it; NULL: there is none. *status: why the last
 * one could not. */
static void *configs_try(Plan *plan, void *handle, const KernelCall *c, void **config, int n,
			 int *status)
{
	for (int k = 0; k < n; k++) {
		const Attribute is[] = {{PLAN_HANDLE, OF_HANDLE, 1, &handle},
					{PLAN_CONFIG, OF_DESCRIPTOR, 1, &config[k]}};
		void *made = NULL;
		if (!config_fits(config[k], c))
			continue;
		*status = describe(PLAN, COUNT(is), is, &made);
		if (!*status) {
			plan->owned[plan->n++] = config[k];
			config[k] = NULL;
			return plan->owned[plan->n++] = made;
		}
		if (made)
			cudnn.destroy(made);
	}
	return NULL;
}

/* The best that the heuristic gives in that mode. */
static void *configs_find(Plan *plan, void *handle, const KernelCall *c, void *graph, int mode,
			  int *status)
{
	void *config[CONFIGS] = {NULL}, *heuristic, *best = NULL;
	int64_t n = 0;
	int made = 0;
	const Attribute is[] = {{HEURISTIC_MODE, OF_HEURISTIC, 1, &mode},
				{HEURISTIC_GRAPH, OF_DESCRIPTOR, 1, &graph}};
	*status = describe(HEURISTIC, COUNT(is), is, &heuristic);
	while (made < CONFIGS && !*status)
		*status = cudnn.create(CONFIG, &config[made++]);
	if (!*status)
		*status =
			cudnn.get(heuristic, HEURISTIC_RESULTS, OF_DESCRIPTOR, CONFIGS, &n, config);
	if (!*status)
		best = configs_try(plan, handle, c, config, n < CONFIGS ? (int)n : CONFIGS, status);
	for (int k = 0; k < made; k++)
		if (config[k])
			cudnn.destroy(config[k]);
	if (heuristic)
		cudnn.destroy(heuristic);
	return best;
}

static int engine_choose(Plan *plan, void *handle, const KernelCall *c, bool aligned, Error *err)
{
	static const int mode[] = {MODE_A, MODE_FALLBACK};
	void *graph = NULL, **best = &plan->best[aligned];
	int code = graph_make(plan, handle, c, aligned, &graph, err), status = 0;
	for (int k = 0; k < COUNT(mode) && !code && !*best; k++)
		*best = configs_find(plan, handle, c, graph, mode[k], &status);
	if (code || *best)
		return code;
	code = dnn_call(status, "choosing an engine", err);
	return code ? code
		    : error_set(err, RICCI_EDEVICE, "cuDNN has no exact engine for a convolution%s",
				c->ordered ? " with the same bits in every run" : "");
}

static int dnn_plan(void *handle, const KernelCall *c, void **out, Error *err)
{
	Plan *plan = mem_zalloc(sizeof *plan);
	if (!plan)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	int code = 0;
	for (int aligned = 0; aligned < 2 && !code; aligned++)
		code = engine_choose(plan, handle, c, aligned, err);
	if (code)
		dnn_forget(plan);
	else
		*out = plan;
	return code;
}

/* ---- the device */

static int dnn_open(Device *d, void **handle, Error *err)
{
	int status = cudnn.open(handle), code = dnn_call(status, "opening a device", err);
	if (!code)
		code = dnn_call(cudnn.stream(*handle, d->queue), "opening a device", err);
	if (code && !status)
		cudnn.close(*handle);
	return code;
}

static int dnn_launch(Device *d, void *handle, const void *planned, const KernelCall *c,
		      const CallPlace *place, Error *err)
{
	static const int64_t id[CALL_TENSORS] = {CALL_A, CALL_B, CALL_D};
	const Plan *plan = planned;
	const Attribute is[] = {{PACK_IDS, OF_INT64, CALL_TENSORS, id},
				{PACK_POINTERS, OF_POINTER, CALL_TENSORS, place->tensor},
				{PACK_WORK, OF_POINTER, 1, &place->work}};
	void *pack = NULL;
	int status = describe(PACK, COUNT(is), is, &pack);
	(void)d;
	(void)c;
	if (!status)
		status = cudnn.execute(handle, plan->best[place->aligned], pack);
	if (pack)
		cudnn.destroy(pack);
	return dnn_call(status, "starting a convolution", err);
}

const DeviceLibrary device_cudnn = {&library_cudnn, dnn_open, dnn_plan, dnn_launch, dnn_forget};

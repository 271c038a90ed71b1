/* test_batch.c - kernels of larger batches: each is validated for a smaller one as any kernel is; and sessions
 * of several batch sizes, in one process and in one folder. */
#include "runtime/session.h"
#include "tests/check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- kernels ---- */
/* Tasks, with @ for the batch. */
static const char *const tasks[] = {
	"input f32 @x300\ninput f32 300\nkeep m0[i,j] = tanh(a0[i,j])*a1[j] where i<@, j<300\n",
	"input f32 @x7\nkeep m0[i,j] = a0[i,j]*f32(i) + random(3) where i<@, j<7\n",
	"input f32 @x200\nkeep m0[i,j] = i%2 == 1 ? a0[i,j] : exp(a0[i,j]) where i<@, j<200\n",
	"input f32 @x64\nkeep m0[i] += a0[i,j] where i<@, j<64\n",
	"input i32 @x9\ninput f32 50x4\nkeep m0[i,j,k] = a1[a0[i,j],k] where i<@, j<9, k<4\n",
	"input f32 @x48\ninput f32 40x48\nkeep m0[i,j] += a0[i,k]*a1[j,k] where i<@, j<40, k<48\n",
	"input f32 @x48\ninput f32 40x48\nlocal m0[i,j] += a0[i,k]*a1[j,k] where i<@, j<40, k<48\n"
	"keep m1[i,j] = max(m0[i,j], 0.0) where i<@, j<40\n",
	"input f32 @x6x30x20\ninput f32 @x6x25x20\n"
	"keep m0[i,l,j,k] += a0[i,l,j,m]*a1[i,l,k,m] where i<@, l<6, j<30, k<25, m<20\n",
	"input f32 @x8x12x12\ninput f32 24x8x3x3\n"
	"keep m0[i,j,k,l] += (a0[i,o,k+m-1,l+n-1] else 0)*a1[j,o,m,n] "
	"where i<@, j<24, k<12, l<12, m<3, n<3, o<8\n",
	"input f32 @x90\nlocal m0[i] max= a0[i,j] where i<@, j<90\n"
	"local m1[i] += exp(a0[i,j] - m0[i]) where i<@, j<90\n"
	"keep m2[i,j] = exp(a0[i,j] - m0[i])/m1[i] where i<@, j<90\n",
	/* over the batch */
	"input f32 @x90\nkeep m0[i] += a0[j,i] where i<90, j<@\n",
	"input f32 @x48\ninput f32 @x40\n"
	"keep m0[i,j] += a0[k,i]*a1[k,j] where i<48, j<40, k<@\n",
	"input f32 @x8x12x12\ninput f32 @x24x12x12\n"
	"keep m0[i,j,k,l] += a1[m,i,n,o]*(a0[m,j,n+k-1,o+l-1] else 0) "
	"where i<24, j<8, k<3, l<3, m<@, n<12, o<12\n",
	/* not the first dimension: of all, of the result, of some inputs */
	"input f32 7x@x30\ninput f32 30\nkeep m0[i,j,k] = tanh(a0[i,j,k])*a1[k] where i<7, j<@, "
	"k<30\n",
	"input f32 @x48\ninput f32 60x48\nkeep m0[j,i] += a0[i,k]*a1[j,k] where j<60, i<@, k<48\n",
	"input i32 9x@\ninput f32 50x4\nkeep m0[j,i,k] = a1[a0[i,j],k] where j<@, i<9, k<4\n",
	"input f32 5x@x48\ninput f32 @x48\ninput f32 5x@\n"
	"local m0[i,j] += a0[i,j,k]*a1[j,k] where i<5, j<@, k<48\n"
	"keep m1[i,j] = max(m0[i,j], a2[i,j]) where i<5, j<@\n",
	"input f32 3x@x90\nlocal m0[i,j] max= a0[i,j,k] where i<3, j<@, k<90\n"
	"keep m1[i,j,k] = exp(a0[i,j,k] - m0[i,j]) where i<3, j<@, k<90\n",
	"input f32 16x@x48\ninput f32 16x@x40\n"
	"keep m0[i,j] += a0[l,k,i]*a1[l,k,j] where i<48, j<40, l<16, k<@\n",
	"input f32 6x@x90\ninput f32 6x@\n"
	"keep m0[i] += a0[k,j,i]*rsqrt(a1[k,j]*a1[k,j] + 0.5) where i<90, k<6, j<@\n"};

static Task *task_of(const char *form, int batch)
{
	Text text = {0};
	Error err = {0};

	text_add(&text, "ricci-task 1\n");
	for (const char *s = form; *s; s++)
		if (*s == '@')
			text_add(&text, "%d", batch);
		else
			text_put(&text, s, 1);
	Task *t = task_parse(text.s, &err);
	CHECK_REPORT(t, "%s\n%s", text.s, err.text);
	text_free(&text);
	return t;
}

/* In which batch they differ; -1: in none alone. */
static int family_of(const Task *large, const Task *small)
{
	for (int b = 0; b < large->nbatch && b < small->nbatch; b++) {
		Text l = {0}, s = {0};

		task_family(&l, large, b);
		task_family(&s, small, b);
		bool same = !strcmp(l.s, s.s);
		text_free(&l);
		text_free(&s);
		if (same)
			return b;
	}
	return -1;
}

static int skipped; /* kernels that leave out parts for a smaller batch */

static void check_kernel(Kernel *k, const Task *t, int b, int large, const char *schedule)
{
	Error err = {0};
	Kernel *own = kernel_fewer(k, t, b, large, &err);

	if (!own) {
		CHECK_INT(err.code, RICCI_EUNSUPPORTED);
		CHECK(4 * t->batch[b].extent < large);
		error_clear(&err);
		return;
	}
	CHECK(kernel_shape_sound(&own->shape));
	CHECK_REPORT(!verify_kernel(t, own, true, &err), "%s [%s] %s, of %d rows: %s", t->text,
		     schedule, k->backend->name, large, err.text);
	/* both copies have a part for each tensor at least */
	skipped += own->shape.parts < k->shape.parts;
	error_clear(&err);
	kernel_unref(own);
}

static void check_task(const char *form, const Backend *backend, int large, const int *small,
		       int nsmall)
{
	Task *t = task_of(form, large);
	Schedule offer[3];
	int n = schedule_offers(t, target_host(), COUNT(offer), offer);

	CHECK(n > 0);
	for (int i = 0; i < n; i++) {
		Error err = {0};
		Text text = {0};
		Kernel *k = kernel_make(t, &offer[i], backend, target_host(), &err);

		schedule_print(&text, &offer[i]);
		CHECK_REPORT(k, "%s", err.text);
		for (int j = 0; j < nsmall; j++) {
			Task *s = task_of(form, small[j]);
			int b = family_of(t, s);

			CHECK_REPORT(b >= 0, "no family: %s", t->text);
			if (b >= 0)
				check_kernel(k, s, b, large, text.s);
			task_free(s);
		}
		kernel_unref(k);
		text_free(&text);
	}
	task_free(t);
}

static void check_kernels(const char *backend)
{
	const Backend *b = backend_find(backend);
	uint64_t state = (uint64_t)env_long("RICCI_SEED", 1);
	char why[200];

	if (!b->available(why, sizeof why)) {
		CHECK_SKIP(why);
		return;
	}
	for (int i = 0; i < COUNT(tasks); i++) {
		int large = 20 + (int)random_below(&state, 30);
		int small[] = {3, large - 1, 4 + (int)random_below(&state, (uint64_t)large - 5)};

		check_task(tasks[i], b, large, small, COUNT(small));
	}
	CHECK(skipped > 5);
}

/* ---- sessions ---- */
enum { LARGE = 40, SMALL = 20, SIDE = 12, FILTERS = 24, NAMES = 64, ENTRIES = 32 };

typedef struct Net {
	ricci_graph *g;
	ricci_tensor *x, *y, *noise, *w;
	ricci_session *s;
} Net;

static const ricci_options usual = {.size = sizeof usual, .threads = 2, .seed = 7};

/* A convolution, a product, softmax, and noise, which counts elements; or its training. Batches are even, so that
 * two threads have as many rows: else fusion may decide otherwise, and the smaller one has other tasks. */
static void net_make(Net *n, int batch, bool train, ricci_options o)
{
	ricci_graph *g = n->g = ricci_graph_new();
	ricci_tensor *h, *v, *loss, *gradient;

	n->x = ricci_input(g, "x", RICCI_F32, 4, (int64_t[]){batch, 3, SIDE, SIDE});
	n->w = ricci_param(g, "w", RICCI_F32, 4, (int64_t[]){FILTERS, 3, 3, 3}, ricci_normal(0.2));
	v = ricci_param(g, "v", RICCI_F32, 4, (int64_t[]){NAMES, FILTERS, SIDE, SIDE},
			ricci_normal(0.02));
	h = ricci_op(g,
		     "H[b,f,p,q] += (X[b,c,p+r-1,q+s-1] else 0) * W[f,c,r,s] where p<12, q<12; "
		     "R[b,f,p,q] = max(H[b,f,p,q], 0)",
		     n->x, n->w);
	h = ricci_op(g, "Z[b,n] += H[b,f,p,q] * V[n,f,p,q]", h, v);
	n->y = ricci_op(g,
			"m[b] max= Z[b,n]; e[b,n] = exp(Z[b,n]-m[b]); s[b] += e[b,n]; "
			"Y[b,n] = e[b,n]/s[b]",
			h);
	n->noise = ricci_op(g, "Y[b,c,p,q] = X[b,c,p,q] * random(5)", n->x);
	if (train) {
		loss = ricci_op(g, "L[] += Y[b,0] * Y[b,0]", n->y);
		ricci_grad(g, loss, NULL, 1, &n->w, &gradient);
		ricci_assign(
			g, n->w,
			ricci_op(g, "U[f,c,r,s] = W[f,c,r,s] - 0.01*D[f,c,r,s]", n->w, gradient));
	}
	CHECK_GRAPH(g);
	n->s = ricci_session_new(g, &o, train, 2, (ricci_tensor *[]){n->y, n->noise});
	CHECK_REPORT(n->s, "%s", ricci_error_message());
}

static void net_free(Net *n)
{
	ricci_session_free(n->s);
	ricci_graph_free(n->g);
}

static void net_step(Net *n)
{
	size_t bytes = ricci_bytes(n->x);
	float *x = malloc(bytes);

	for (size_t i = 0; i < bytes / sizeof *x; i++)
		x[i] = (float)(i * 7919 % 1024) / 512 - 1;
	CHECK_INT(ricci_feed(n->s, n->x, x, bytes), 0);
	CHECK_INT(ricci_step(n->s), 0);
	free(x);
}

static void compare(Net *a, ricci_tensor *x, Net *b, ricci_tensor *y)
{
	size_t bytes = ricci_bytes(x), n = bytes / sizeof(float), wrong = 0;
	float *p = malloc(bytes), *q = malloc(bytes);

	CHECK_INT(ricci_fetch(a->s, x, p, bytes), 0);
	CHECK_INT(ricci_fetch(b->s, y, q, bytes), 0);
	for (size_t i = 0; i < n; i++)
		wrong += !(fabsf(p[i] - q[i]) <= 1e-5f);
	CHECK_INT(wrong, 0);
	free(p);
	free(q);
}

/* How many kernels of the session are lent, of those by that backend (NULL: any); all: how many it has. */
static int lent(const Net *n, int *all, const char *backend)
{
	CacheEntry *e[ENTRIES];
	int count = 0;

	*all = session_entries(n->s, e, ENTRIES);
	for (int i = 0; i < *all; i++) {
		Kernel *k = entry_best(e[i]);

		count += k->fewer && (!backend || !strcmp(k->backend->name, backend));
		kernel_unref(k);
	}
	return count;
}

/* The smaller one has the results that it has in static mode, where nothing is lent. */
static void check_small(Net *small, int batch, bool train)
{
	ricci_options o = usual;
	Net own;
	int all;

	o.static_mode = 1;
	net_make(&own, batch, train, o);
	CHECK_INT(lent(&own, &all, NULL), 0);
	CHECK(all > 0);
	for (int i = 0; i < 3; i++) {
		ricci_set_step(own.s, ricci_step_count(small->s));
		net_step(small);
		net_step(&own);
		compare(small, small->y, &own, own.y);
		compare(small, small->noise, &own, own.noise);
		if (train && i == 0)
			compare(small, small->w, &own, own.w);
	}
	net_free(&own);
}

static void check_memory(bool train)
{
	Net large, small;
	int all, batch = train ? SMALL + 2 : SMALL;

	net_make(&large, LARGE, train, usual);
	net_step(&large);
	net_make(&small, batch, train, usual);
	CHECK_INT(lent(&small, &all, NULL), all); /* nothing was compiled */
	check_small(&small, batch, train);
	CHECK_INT(ricci_settle(small.s), 0);
	CHECK_INT(lent(&small, &all, NULL), 0); /* it has its own */
	net_free(&large);
	net_free(&small);
}

/* A larger batch borrows nothing. */
static void check_larger(void)
{
	Net small, large;
	int all;

	net_make(&small, SMALL - 6, false, usual);
	net_make(&large, SMALL - 4, false, usual);
	CHECK_INT(lent(&large, &all, NULL), 0);
	net_free(&large);
	net_free(&small);
}

/* What one process has kept a later one begins with: its memory holds nothing of it. */
static void check_folder(void)
{
	Net net;
	int all;
	char why[200];

	if (!backend_find("cc")->available(why, sizeof why)) {
		CHECK_SKIP(why);
		return;
	}
	net_make(&net, LARGE + 2, false, usual);
	net_step(&net);
	CHECK_INT(ricci_settle(net.s), 0);
	net_free(&net);
	net_make(&net, SMALL, false, usual);
	CHECK_INT(lent(&net, &all, "cc"), all);
	check_small(&net, SMALL, false);
	net_free(&net);
}

/* What an earlier run kept would be found, too. */
static int own_folder(char *folder, int (*tests)(void))
{
	char command[60];
	int code;

	if (!mkdtemp(folder) || setenv("RICCI_CACHE", folder, 1))
		return 1;
	code = tests();
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command) ? 1 : code;
}

static int all_tests(void)
{
	char why[200];

	setenv("RICCI_DEVICE", "20e9,50e9,2e-6", 1); /* both batches are fused alike */
	check_kernels("tcc");
	check_kernels("cc");
	if (!backend_find("tcc")->available(why, sizeof why)) {
		CHECK_SKIP(why);
		return check_done();
	}
	check_larger();
	check_folder();
	check_memory(false);
	check_memory(true);
	return check_done();
}

int main(void)
{
	return own_folder((char[]){"/tmp/ricci-batch-XXXXXX"}, all_tests);
}

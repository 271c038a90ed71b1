/* test_stages.c - sums over random windows, computed in stages, give what the interpreter gives.
 *
 * One to three windows of any numbers of results and taps, forwards and backwards, some with strides or dilations,
 * which have no stages; over their edges or not; convolutions and gradients of their weights, with images, channels or
 * matrices in lines; of expressions; with members behind them. RICCI_FUZZ: how many programs (100); RICCI_SEED: the first one's number. */
#include "tests/jit/lower_harness.h"

enum { PROGRAMS = 100, WINDOWS = 3, BATCH = 50 };

static uint64_t state;

static int draw(int least, int most)
{
	return least + (int)random_below(&state, (uint64_t)(most - least + 1));
}

typedef struct Window {
	int results, taps, stride, dilation, sign, before, margin, extent;
} Window;

/* `edges`: it reaches beyond what it reads, but no result is a sum of nothing: that is 0, stages round. */
static Window window_draw(int windows, bool edges, bool weights)
{
	int most = windows == 1 ? 40 : windows == 2 ? 18 : 6;
	Window w = {draw(1, most), draw(1, 6), 1, 1, draw(0, 2) ? 1 : -1, 0, 0, 0};
	int odd = draw(0, 9);
	w.stride = odd == 0 ? 2 : 1;
	w.dilation = odd == 1 ? 2 : 1;
	w.extent = w.stride * (w.results - 1) + w.dilation * (w.taps - 1) + 1;
	w.before = w.sign > 0 ? 0 : w.dilation * (w.taps - 1);
	w.margin = edges ? draw(0, (weights ? w.results : w.taps) - 1) : 0;
	if (w.extent > 2 * w.margin)
		w.extent -= 2 * w.margin;
	return w;
}

/* Axes before and behind a tensor's windows: those of X, of D, of the results. */
typedef struct Layout {
	const char *x[2], *d[2], *y[2];
} Layout;

/* Lines along the windows; along channels; of matrices. Of convolutions, and of gradients of weights. */
static const Layout layouts[2][3] = {
	{{{"nc", ""}, {"kc", ""}, {"nk", ""}},
	 {{"n", "c"}, {"k", "c"}, {"n", "k"}},
	 {{"nc", "mt"}, {"kc", "tu"}, {"nk", "mu"}}},
	{{{"nc", ""}, {"nk", ""}, {"kc", ""}},
	 {{"n", "c"}, {"n", "k"}, {"k", "c"}},
	 {{"nc", "mt"}, {"nk", "mu"}, {"kc", "tu"}}},
};

/* "n,c,p,q,m,t]" with the letters of so many windows. */
static void access(Text *t, const char *const axes[2], int n, const char *windows)
{
	const char *comma = "";
	for (const char *a = axes[0]; *a; a++, comma = ",")
		text_add(t, "%s%c", comma, *a);
	for (int i = 0; i < n; i++)
		text_add(t, ",%c", windows[i]);
	for (const char *a = axes[1]; *a; a++)
		text_add(t, ",%c", *a);
	text_add(t, "]");
}

/* X at its window; `edges`: windows reach beyond it. */
static void operand(Text *t, const Layout *l, int n, const Window *w, bool edges)
{
	const char *comma = "";
	text_add(t, edges ? "(X[" : "X[");
	for (const char *a = l->x[0]; *a; a++, comma = ",")
		text_add(t, "%s%c", comma, *a);
	for (int i = 0; i < n; i++)
		text_add(t, ",%d*%c%+d*%c%+d", w[i].stride, "pqo"[i], w[i].sign * w[i].dilation,
			 "rsv"[i], w[i].before - w[i].margin);
	for (const char *a = l->x[1]; *a; a++)
		text_add(t, ",%c", *a);
	text_add(t, edges ? "] else 0)" : "]");
}

/* " X=2x3x8x8": the axes' extents are those of letters, the windows' as given. */
static void shape(Text *t, char name, const char *const axes[2], const int *of, int n,
		  const int *windows)
{
	text_add(t, " %c=", name);
	for (const char *a = axes[0]; *a; a++)
		text_add(t, a == axes[0] ? "%d" : "x%d", of[(int)*a]);
	for (int i = 0; i < n; i++)
		text_add(t, "x%d", windows[i]);
	for (const char *a = axes[1]; *a; a++)
		text_add(t, "x%d", of[(int)*a]);
}

static void program_draw(Text *text, Text *operands)
{
	static const char *const form[] = {"%s", "max(%s, 0)", "%s*0.5"};
	Window w[WINDOWS];
	int n = draw(1, WINDOWS), of[128], extents[WINDOWS], others[WINDOWS];
	bool weights = draw(0, 2) == 0, edges = draw(0, 1), member = draw(0, 2) == 0;
	const char *kept = weights ? "rsv" : "pqo", *other = weights ? "pqo" : "rsv";
	const Layout *l = &layouts[weights][draw(0, 2)];
	Text x = {0};

	of['n'] = draw(1, 4);
	of['c'] = draw(2, 9);
	of['k'] = draw(2, 20);
	of['m'] = of['t'] = of['u'] = draw(2, 4);
	for (int i = 0; i < n; i++) {
		w[i] = window_draw(n, edges, weights);
		extents[i] = w[i].extent;
		others[i] = weights ? w[i].results : w[i].taps;
	}
	operand(&x, l, n, w, edges);
	text_add(text, "Y[");
	access(text, l->y, n, kept);
	text_add(text, " += ");
	text_add(text, form[draw(0, 2)], x.s);
	text_add(text, "*D[");
	access(text, l->d, n, other);
	text_add(text, " where n<%d", of['n']);
	for (int i = 0; i < n; i++)
		text_add(text, ", %c<%d, %c<%d", "pqo"[i], w[i].results, "rsv"[i], w[i].taps);
	shape(operands, 'X', l->x, of, n, extents);
	shape(operands, 'D', l->d, of, n, others);
	if (member) {
		text_add(text, "; Z[");
		access(text, l->y, n, kept);
		text_add(text, weights ? " = B[k] - Y[" : " = max(Y[");
		access(text, l->y, n, kept);
		text_add(text, weights ? "" : ", B[k])");
		text_add(operands, " B=%d", of['k']);
	}
	text_free(&x);
}

/* Keeps the schedules that are in stages; false: there is none. */
static bool keep_staged(Trial *t)
{
	int n = 0;

	for (int k = 0; k < t->noffer; k++)
		if (schedule_staged(&t->offer[k]))
			t->offer[n++] = t->offer[k];
	t->noffer = n;
	return n > 0;
}

static Trial *trials(uint64_t seed, int count, int *staged)
{
	Trial *list = NULL, *all = NULL;

	for (int i = 0; i < count; i++) {
		Text text = {0}, operands = {0};
		state = seed + (uint64_t)i;
		program_draw(&text, &operands);
		char *kept = harness_alloc(text.n + operands.n + 2);
		memcpy(kept, text.s, text.n + 1);
		memcpy(kept + text.n + 1, operands.s, operands.n + 1);
		list = harness_trials(&(Case){kept, kept + text.n + 1}, true, list);
		text_free(&text);
		text_free(&operands);
	}
	for (Trial *t = list, *next; t; t = next) {
		next = t->next;
		if (!keep_staged(t))
			continue;
		++*staged;
		t->next = all;
		all = t;
	}
	return all;
}

static bool is_staged(Ir *ir, const Task *t, Schedule *s)
{
	double price;
	bool rough;
	IR_ENTER(ir, false);
	bool staged = stages_offer(ir, &t->sub, target_host(), INFINITY, s, &price, &rough);
	IR_LEAVE(ir);
	return staged;
}

/* Bytes that the stages of a gradient of windows of 3 x 3 hand on, for so many places along each side; by one sample
 * and 16 channels. */
static size_t handed_on(int places)
{
	char text[300];
	Error err = {0};
	Schedule s;
	snprintf(text, sizeof text,
		 "ricci-task 1\ninput f32 1x16x%dx%d\ninput f32 16x16x3x3\n"
		 "keep m0[i,j,k,l] += 0 <= k - m && k - m < %d && 0 <= l - n && l - n < %d ? "
		 "a0[i,o,k-m,l-n]*a1[j,o,m,n] : 0 where i<1, j<16, k<%d, l<%d, m<3, n<3, o<16\n",
		 places, places, places, places, places + 2, places + 2);
	Task *t = task_parse(text, &err);
	CHECK_REPORT(t, "%s", err.text);
	size_t bytes = 0;
	Ir ir;
	ir_init(&ir);
	if (t && is_staged(&ir, t, &s)) {
		Kernel *k = kernel_lower(t, &s, backend_find("tcc"), target_host(), &err);
		bytes = k ? k->shape.shared : 0;
		kernel_unref(k);
	}
	ir_free(&ir);
	if (t)
		task_free(t);
	return bytes;
}

/* Tiles are of what is read where they are far fewer than those of the results. */
static void check_tiles(void)
{
	enum { EACH = 16 * sizeof(float), SQUARE = 16 * 16, BOTH = 2 * 16 };
	CHECK_INT(handed_on(4), EACH * (SQUARE + BOTH * 2 * 2));
	CHECK_INT(handed_on(14), EACH * (SQUARE + BOTH * 8 * 8));
	CHECK_INT(handed_on(16), EACH * (SQUARE + BOTH * 9 * 9));
}

int main(void)
{
	const char *seed = getenv("RICCI_SEED"), *fuzz = getenv("RICCI_FUZZ");
	int count = fuzz ? atoi(fuzz) : PROGRAMS, staged = 0;
	Trial *list = trials(seed ? strtoull(seed, NULL, 10) : 1, count, &staged);

	check_tiles();
	CHECK(staged > count / 4);
	harness_check(list, backend_find("tcc"), BATCH);
	harness_check(list, backend_find("cc"), BATCH);
	return harness_done();
}

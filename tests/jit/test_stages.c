/* test_stages.c - sums over random windows, computed in stages, give what the interpreter gives.
 *
 * One to three windows of any numbers of results and taps, forwards and backwards, some with strides or dilations,
 * which have no stages; over their edges or not; convolutions and gradients of their weights; of expressions; with
 * members behind them. RICCI_FUZZ: how many programs (100); RICCI_SEED: the first one's number. */
#include "tests/jit/lower_harness.h"

enum { PROGRAMS = 100, WINDOWS = 3, BATCH = 50 };

static uint64_t state;

static int draw(int least, int most)
{
	return least + (int)random_below(&state, (uint64_t)(most - least + 1));
}

typedef struct Window {
	int results, taps, stride, dilation, sign, before, extent;
} Window;

static Window window_draw(int windows)
{
	int most = windows == 1 ? 40 : windows == 2 ? 18 : 6;
	Window w = {draw(1, most), draw(1, 6), 1, 1, draw(0, 2) ? 1 : -1, 0, 0};
	int odd = draw(0, 9);
	w.stride = odd == 0 ? 2 : 1;
	w.dilation = odd == 1 ? 2 : 1;
	w.extent = w.stride * (w.results - 1) + w.dilation * (w.taps - 1) + 1;
	w.before = w.sign > 0 ? 0 : w.dilation * (w.taps - 1);
	return w;
}

/* ",p,q" with the letters of so many windows. */
static void letters(Text *t, int n, const char *names)
{
	for (int i = 0; i < n; i++)
		text_add(t, ",%c", names[i]);
}

/* X at its window; `edges`: windows reach beyond it. */
static void operand(Text *t, int n, const Window *w, bool edges)
{
	text_add(t, edges ? "(X[n,c" : "X[n,c");
	for (int i = 0; i < n; i++)
		text_add(t, ",%d*%c%+d*%c%+d", w[i].stride, "pqo"[i], w[i].sign * w[i].dilation,
			 "rst"[i], w[i].before - edges);
	text_add(t, edges ? "] else 0)" : "]");
}

static void program_draw(Text *text, Text *operands)
{
	static const char *const form[] = {"%s", "max(%s, 0)", "%s*0.5"};
	Window w[WINDOWS];
	int n = draw(1, WINDOWS), images = draw(1, 4), from = draw(2, 9), to = draw(2, 20);
	bool weights = draw(0, 2) == 0, edges = draw(0, 1), member = draw(0, 2) == 0;
	const char *kept = weights ? "rst" : "pqo", *other = weights ? "pqo" : "rst";
	Text x = {0};

	for (int i = 0; i < n; i++)
		w[i] = window_draw(n);
	operand(&x, n, w, edges);
	text_add(text, weights ? "Y[k,c" : "Y[n,k");
	letters(text, n, kept);
	text_add(text, "] += ");
	text_add(text, form[draw(0, 2)], x.s);
	text_add(text, weights ? "*D[n,k" : "*D[k,c");
	letters(text, n, other);
	text_add(text, "] where n<%d", images);
	text_add(operands, "X=%dx%d", images, from);
	for (int i = 0; i < n; i++) {
		text_add(text, ", %c<%d, %c<%d", "pqo"[i], w[i].results, "rst"[i], w[i].taps);
		text_add(operands, "x%d", w[i].extent);
	}
	text_add(operands, " D=%dx%d", weights ? images : to, weights ? to : from);
	for (int i = 0; i < n; i++)
		text_add(operands, "x%d", weights ? w[i].results : w[i].taps);
	if (member) {
		text_add(text, weights ? "; Z[k,c" : "; Z[n,k");
		letters(text, n, kept);
		text_add(text, weights ? "] = B[k] - Y[k,c" : "] = max(Y[n,k");
		letters(text, n, kept);
		text_add(text, weights ? "]" : "], B[k])");
		text_add(operands, " B=%d", to);
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

int main(void)
{
	const char *seed = getenv("RICCI_SEED"), *fuzz = getenv("RICCI_FUZZ");
	int count = fuzz ? atoi(fuzz) : PROGRAMS, staged = 0;
	Trial *list = trials(seed ? strtoull(seed, NULL, 10) : 1, count, &staged);

	CHECK(staged > count / 4);
	harness_check(list, backend_find("tcc"), BATCH);
	harness_check(list, backend_find("cc"), BATCH);
	return harness_done();
}

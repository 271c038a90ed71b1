/* test_terms.c - long sums, products and extremes are judged by few of their terms: right kernels
 * pass, those of an equation that is nearly the same are refused, and what can't be judged so is
 * said. A walk that met a shared part of a term once for each of its users would never end. */
#include "runtime/verify/terms.h"
#include "tests/check.h"
#include <stdlib.h>
#include <string.h>

typedef struct Case {
	const char *right, *wrong, *inputs; /* wrong: NULL, it can't be judged so */
} Case;
#define SUM(body)   "keep m0[] += " body " where i<1500007\n"
#define SHORT(body) "keep m0[] += " body " where i<1500006\n"
#define ONE	    "input f32 1500007\n"
#define TWO	    "input f32 1500007\ninput f32 1500007\n"
static const Case cases[] = {
	{SUM("a0[i]"), SHORT("a0[i]"), ONE},
	{SUM("a0[i]"), SHORT("a0[i+1]"), ONE},
	{SUM("a0[i]*a1[i]"), SHORT("a0[i]*a1[i]"), TWO},
	{SUM("a0[i]*a1[i]"), SUM("a0[i]*a1[1500006-i]"), TWO},
	{SUM("a0[i]*f32(i%7)"), SHORT("a0[i]*f32(i%7)"), ONE},
	{SUM("exp(a0[i])"), SHORT("exp(a0[i])"), ONE},
	{SUM("-a0[i]*log(a1[i])"), SHORT("-a0[i]*log(a1[i])"), TWO},
	{SUM("(a0[i]-a1[i])*(a0[i]-a1[i])"), SUM("(a0[i]-a1[i])*(a0[i]+a1[i])"), TWO},
	{SUM("abs(a0[i]) < 1 ? a0[i]*a0[i] : abs(a0[i])"),
	 SUM("abs(a0[i]) < 2 ? a0[i]*a0[i] : abs(a0[i])"), ONE},
	{SUM("a0[i]"), SUM("a0[i/16*16]"), ONE},
	/* an element that no chosen term reads is lost, and one is added twice */
	{SUM("a0[i]"), SUM("i == 777777 ? 0 : a0[i]"), ONE},
	{SUM("a0[i]"), SUM("i == 777777 ? 2*a0[i] : a0[i]"), ONE},
	{"keep m0[] max= a0[i] where i<1500007\n", "keep m0[] max= a0[i] where i<1500006\n", ONE},
	{"keep m0[] min= abs(a0[i]) where i<1500007\n",
	 "keep m0[] min= abs(a0[i+1]) where i<1500006\n", ONE},
	/* a chosen term that is no number makes the result none */
	{"keep m0[] min= pow(a0[i], 0.75) where i<1500007\n",
	 "keep m0[] min= pow(a0[i+1], 0.75) where i<1500006\n", ONE},
	{"keep m0[] *= a0[i] where i<1500007\n", "keep m0[] *= a0[i] where i<1500006\n", ONE},
	{"keep m0[j] += a0[i,j] where i<300001, j<5\n",
	 "keep m0[j] += a0[i,j] where i<300000, j<5\n", "input f32 300001x5\n"},
	{"keep m0[j,k] += a0[i,j]*a1[i,k] where i<300001, j<5, k<4\n",
	 "keep m0[j,k] += a0[i,j]*a1[i,k] where i<300000, j<5, k<4\n",
	 "input f32 300001x5\ninput f32 300001x4\n"},
	/* the gradient of a convolution's weights */
	{"keep m0[j,r,s] += a0[n,j,p,q]*a1[n,p+r,q+s] where n<130, j<2, p<100, q<100, r<3, s<3\n",
	 "keep m0[j,r,s] += a0[n,j,p,q]*a1[n,p+r,q+2-s] where n<130, j<2, p<100, q<100, r<3, s<3\n",
	 "input f32 130x2x100x100\ninput f32 130x102x102\n"},
	{"keep m0[] += a0[i]*a1[a2[i]] where i<1500007\n",
	 "keep m0[] += a0[i]*a1[a2[1500006-i]] where i<1500007\n",
	 "input f32 1500007\ninput f32 99\ninput i32 1500007 0..98\n"},
	{SUM("a0[i]"), SHORT("a0[i]"), "input f64 1500007\n"},
	{SUM("a0[i]"), SHORT("a0[i]"), "input i32 1500007\n"},
	{"keep m0[j] += a0[i,j]*f32(a1[j]) where i<300001, j<5\n",
	 "keep m0[j] += a0[i,j]*f32(a1[4-j]) where i<300001, j<5\n",
	 "input f32 300001x5\ninput i8 5\n"},
	{"keep m0[i] max= a0[i,j,a1[i]] where i<3, j<300001\n", NULL,
	 "input f32 3x300001x2\ninput i32 3 0..1\n"},
	{SUM("sin(a0[i] + f32(i%7))"), NULL, ONE},
	{SUM("a0[i/2]"), NULL, ONE},
};

/* Terms whose parts are shared at every one of DEPTH levels, so that their trees have 2^DEPTH parts.
 * each: %1$d is the level, %2$d the next one. */
enum { DEPTH = 40 };
typedef struct Family {
	const char *head, *each, *body, *inputs;
} Family;
static const Family families[] = {
	{"v0 = a0[i]; ", "v%2$d = max(v%1$d, -v%1$d); ", "v%d", ONE},
	{"p0 = a1[i]; ", "p%2$d = (p%1$d + p%1$d/2) %% 8; ", "a0[i]*a2[p%d]",
	 "input f32 1500007\ninput i32 1500007\ninput f32 8\n"},
};

static Task *task_from(const Case *c, const char *equation)
{
	Text text = {0};
	Error err = {0};

	text_add(&text, "ricci-task 1\n%s%s", c->inputs, equation);
	Task *t = task_parse(text.s, &err);
	CHECK_REPORT(t, "%s\n%s", err.text, text.s);
	text_free(&text);
	return t;
}

static Kernel *kernel_of(const Task *t)
{
	Schedule s;
	Error err = {0};

	if (schedule_offers(t, target_host(), 1, &s) < 1)
		s.n = 0;
	Kernel *k = kernel_make(t, &s, backend_find("tcc"), target_host(), &err);
	CHECK_REPORT(k, "%s", err.text);
	return k;
}

static void case_run(const Case *c)
{
	for (int wrong = 0; wrong < 1 + (c->wrong != NULL); wrong++) {
		Task *t = task_from(c, c->right), *of = task_from(c, wrong ? c->wrong : c->right);
		Kernel *k = of ? kernel_of(of) : NULL;
		Error err = {0};
		bool judged = false;

		if (t && k) {
			int code = verify_terms(t, k, &judged, &err);

			CHECK_REPORT(judged == (c->wrong != NULL), "%s", c->right);
			CHECK_REPORT(code == (wrong ? RICCI_ECOMPILE : 0), "%s by %s: %s", c->right,
				     wrong ? c->wrong : c->right, err.text);
		}
		kernel_unref(k);
		task_free(t);
		task_free(of);
	}
}

static void family_equation(const Family *f, int n, Text *t)
{
	text_add(t, "keep %s", f->head);
	for (int k = 0; k < DEPTH; k++)
		text_add(t, f->each, k, k + 1);
	text_add(t, "m0[] += ");
	text_add(t, f->body, DEPTH);
	text_add(t, " where i<%d\n", n);
}

static void family_run(const Family *f)
{
	Text right = {0}, wrong = {0};

	family_equation(f, 1500007, &right);
	family_equation(f, 1500006, &wrong);
	case_run(&(Case){right.s, wrong.s, f->inputs});
	text_free(&right);
	text_free(&wrong);
}

/* Every allocation fails once: what was found is the same, or an error, and nothing is left. */
static void memory_fails(const Task *t, int terms)
{
	long live = mem_live();
	bool all = false;

	for (int n = 1; !all; n++) {
		Error err = {0};
		Terms x;

		mem_fail_at(n);
		int code = terms_new(&x, t, 4, terms, 1, &err);
		mem_fail_at(0);
		CHECK_REPORT(!code || code == RICCI_ENOMEM, "%d: %s", code, err.text);
		all = x.usable[TERMS_ZEROS] && x.usable[TERMS_ONES] && x.usable[TERMS_BASE];
		terms_free(&x);
		CHECK_INT(mem_live(), live);
		CHECK(n < 10000);
	}
}

/* Of many sizes, since an arena's blocks end elsewhere in each. */
static void test_memory(void)
{
	static const Family f = {"p0 = i; ", "p%2$d = (p%1$d/2 + 5) %% 8; ", "a0[i,p%d]*a1[i]",
				 "input f32 1500007x8\ninput f32 1500007\n"};
	Text text = {0};

	family_equation(&f, 1500007, &text);
	Task *t = task_from(&(Case){.inputs = f.inputs}, text.s);
	for (int terms = 16; t && terms <= 512; terms += 16)
		memory_fails(t, terms);
	task_free(t);
	text_free(&text);
}

int main(void)
{
	char why[256];

	setenv("RICCI_CACHE", "off", 1);
	if (!backend_find("tcc")->available(why, sizeof why)) {
		CHECK_SKIP(why);
		return check_done();
	}
	test_memory();
	for (int i = 0; i < COUNT(cases); i++)
		case_run(&cases[i]);
	for (int i = 0; i < COUNT(families); i++)
		family_run(&families[i]);
	CHECK_INT(mem_live(), 0);
	return check_done();
}

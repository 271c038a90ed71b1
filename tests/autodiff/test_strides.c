/* test_strides.c - windows of any stride in many dimensions: the gradient's sums take the
 * multiply-adds of the forward pass, at no more points than those, and ask for no remainders. */
#include "tests/autodiff/costs.h"
#include "tests/autodiff/program.h"

typedef struct Case {
	const char *text;
	int rank[2];
	int64_t shape[2][6];
	double most; /* multiply-adds, as multiples of the forward pass's */
	bool exact;  /* the sums have no point beyond the multiply-adds but at borders */
} Case;

static const Case cases[] = {
	{"Y[p] += X[65*p+r]*W[r]", {1, 1}, {{600}, {66}}, 1, true},
	{"Y[p] += X[200*p+r]*W[r]", {1, 1}, {{1000}, {130}}, 1, true},
	{"Y[p] += X[100*p]*W[r]", {1, 1}, {{900}, {3}}, 1, true},
	{"Y[p] += X[599-65*p-r]*W[r] where p<9", {1, 1}, {{600}, {66}}, 1, true},
	{"Y[p] += (X[65*p+r-20] else 0)*W[r] where p<9", {1, 1}, {{570}, {66}}, 1, true},
	{"Y[p] += (X[70*p+r-80] else 1.5)*W[r] where p<8", {1, 1}, {{500}, {150}}, 1, false},
	{"Y[i,j,k,l] += X[3*i+r,3*j+s,3*k+t,3*l+u]*W[r,s,t,u]",
	 {4, 4},
	 {{10, 10, 10, 10}, {4, 4, 4, 4}},
	 1,
	 false},
	{"Y[p,q] += X[11*p+r,13*q+s]*W[r,s]", {2, 2}, {{60, 60}, {16, 17}}, 1, false},
	{"Y[k,p] += X[67*p+r]*W[k,r]", {1, 2}, {{400}, {40, 68}}, 1.03, true},
	{"Y[p] max= X[66*p+r]*W[r]", {1, 1}, {{400}, {70}}, 2.02, false},
	{"Y[p] += X[65*p+2*r]*W[r]", {1, 1}, {{600}, {66}}, 1, true},
	{"Y[p] += X[7*p+5*r]*W[r]", {1, 1}, {{100}, {9}}, 1, false},
	{"Y[p] += X[83-7*p-3*r]*W[r] where p<9", {1, 1}, {{84}, {9}}, 1, false},
	{"Y[p] += X[130*p+4*r+3]*W[r] where p<9", {1, 1}, {{2000}, {200}}, 1, false},
	{"Y[p] += (X[700-195*p-3*r] else 0)*W[r] where p<9", {1, 1}, {{701}, {200}}, 1, false},
	{"Y[p] += X[6*p+4*r]*W[r] where p<9", {1, 1}, {{84}, {9}}, 1, false},
	{"Y[p,q] += (X[7*p+3*r-4,6*q+4*s] else 0)*W[r,s] where p<9, q<9",
	 {2, 2},
	 {{70, 70}, {9, 4}},
	 1,
	 false},
};

static void see_remainder(void *user, Node *n)
{
	*(bool *)user |= n->op == OP_FLOORMOD || n->op == OP_FLOORDIV;
}

/* The points of the sums that roots need and that are not in `known`. */
static double points_of(Bench *b, Node *root, int nknown, Node *const *known, bool *remainders)
{
	Node **order;
	double points = 0;
	int n = graph_order(&b->ir, 1, &root, &order);
	for (int k = 0; k < n; k++) {
		bool skip = order[k]->op != OP_COMP || comp_reduce(order[k]) == RED_NONE;
		for (int j = 0; j < nknown && !skip; j++)
			skip = known[j] == order[k];
		if (skip)
			continue;
		points += comp_points(order[k]);
		node_walk(&b->ir, comp_body(order[k]), see_remainder, remainders);
	}
	return points;
}

static void stride_case(Bench *b, int which)
{
	const Case *c = &cases[which];
	Node *x[2], *y, *g, **known;
	int nresult = 1;
	int64_t shape[RICCI_MAX_RANK];
	for (int k = 0; k < 2; k++)
		x[k] = filled(b, c->rank[k], c->shape[k], 0.3, 1.3);
	notation_elaborate(&b->ir, c->text, 2, x, &nresult, &y, 1);
	CHECK_REPORT(!b->ir.err.code, "%s: %s", c->text, b->ir.err.text);
	if (b->ir.err.code)
		return;
	for (int d = 0; d < tensor_rank(y); d++)
		shape[d] = tensor_extent(y, d);
	Node *loss = inner(&b->ir, y, filled(b, tensor_rank(y), shape, 0.5, 1.5));
	if (!differences_agree(b, loss, 1e-5, 1e-5, 12, NULL))
		fprintf(stderr, "in %s\n", c->text);
	CHECK_INT(autodiff_reverse(&b->ir, loss, NULL, 1, x, &g), 0);
	kernels_agree(b, "tcc", 1, &g);
	int nknown = graph_order(&b->ir, 1, &y, &known);
	double unused = 0, forward = costs_way(b, y, 1, x).bound;
	double back = costs_of(b, 1, &g, nknown, known, &unused);
	CHECK_REPORT(back <= c->most * forward, "%s: %.0f multiply-adds of %.0f", c->text, back,
		     forward);
	bool remainders = false;
	double points = points_of(b, g, nknown, known, &remainders);
	/* a border adds one point to a window's taps; ties of extrema, another sum */
	CHECK_REPORT(points <= (c->exact ? 1.3 : 3) * forward, "%s: %.0f points of %.0f", c->text,
		     points, forward);
	CHECK_REPORT(!remainders, "%s: a sum asks for remainders", c->text);
}

/* ---- random windows, of one or two dimensions */

static void random_window(Text *t, const char *p, const char *r)
{
	int64_t stride = 1 + draw(draw(2) ? 9 : 90), step = 1 + draw(draw(3) ? 3 : 12);
	const char *sign = draw(4) ? "" : "-";
	text_add(t, draw(6) ? "%s%d*%s+%d*%s-%d" : "(%s%d*%s+%d*%s-%d)/2", sign, (int)stride, p,
		 (int)(draw(5) ? step : -step), r, (int)draw(20) - 10);
	if (*sign)
		text_add(t, "+%d", (int)(5 * stride));
}

static void random_case(Bench *b, int which)
{
	Text t = {0};
	bool two = which % 3 == 0;
	Node *x[2], *y, *g[3]; /* g: of the weights of `inner`, too */
	int64_t size[2] = {30 + draw(200), two ? 3 + draw(40) : 1};
	int64_t taps[2] = {1 + draw(draw(2) ? 6 : 100), two ? 1 + draw(5) : 1};
	int nresult = 1;
	text_add(&t, "Y[p,q] += (X[");
	random_window(&t, "p", "r");
	text_add(&t, two ? "," : ",q] else 0.5)*W[r,0] where p<7, q<1");
	if (two) {
		random_window(&t, "q", "s");
		text_add(&t, "] else 0.5)*W[r,s] where p<6, q<4");
	}
	x[0] = filled(b, 2, size, 0.3, 1.3);
	x[1] = filled(b, 2, taps, 0.3, 1.3);
	notation_elaborate(&b->ir, t.s, 2, x, &nresult, &y, 1);
	CHECK_REPORT(!b->ir.err.code, "%s: %s", t.s, b->ir.err.text);
	if (!b->ir.err.code) {
		int64_t shape[2] = {tensor_extent(y, 0), tensor_extent(y, 1)};
		y = inner(&b->ir, y, filled(b, 2, shape, 0.5, 1.5));
		if (!differences_agree(b, y, 1e-4, 1e-6, 60, g) || !kernels_agree(b, "tcc", 2, g))
			fprintf(stderr, "in %s\n", t.s);
	}
	text_free(&t);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 60, bad = 0;
	for (int k = 0; k < COUNT(cases); k++)
		in_bench(stride_case, k);
	for (int k = 0; k < rounds && bad < 5; k++)
		bad += !in_bench(random_case, k);
	return check_done();
}

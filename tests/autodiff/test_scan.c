/* test_scan.c - gradients and tangents of loops: against the same loops unrolled (values,
 * gradients, gradients of gradients, tangents), against central differences and the identity <u, J
 * t> = <J' u, t>; all lengths, both directions, the ways to keep states; random loops; kernels;
 * running out of memory. */
#include "tests/autodiff/loops.h"

static void test_way(int which, Way w, bool second)
{
	Case c;
	ricci_tensor *loss[2], *grad[2][MOST], *mix[2], *tangent[2], *again[2][MOST];
	make(&c, which, w);
	CHECK_INT(build(&c, loss), 0);
	CHECK_GRAPH(c.g);
	report(agree(&c, loss[0], loss[1], 1e-12), which, w, "the value");
	for (int k = 0; k < 2; k++) {
		CHECK_INT(ricci_grad(c.g, loss[k], NULL, c.nwrt, c.wrt, grad[k]), 0);
		ricci_jvp(c.g, loss[k], c.nwrt, c.wrt, c.wrt, &tangent[k]);
	}
	bool ok = agree(&c, tangent[0], tangent[1], 1e-11);
	report(ok, which, w, "the tangent");
	for (int k = 0; k < c.nwrt && ok; k++) {
		ok = agree(&c, grad[0][k], grad[1][k], 1e-11);
		report(ok, which, w, ricci_name(c.wrt[k]));
	}
	for (int k = 0; k < 2 && second; k++) {
		mix[k] = mixture(&c, c.nwrt, grad[k]);
		CHECK_INT(ricci_grad(c.g, mix[k], NULL, c.nwrt, c.wrt, again[k]), 0);
		ricci_jvp(c.g, mix[k], c.nwrt, c.wrt, c.wrt, &tangent[k]);
	}
	if (second) {
		ok = agree(&c, tangent[0], tangent[1], 1e-9);
		report(ok, which, w, "the tangent of the gradient");
	}
	for (int k = 0; k < c.nwrt && ok && second; k++) {
		ok = agree(&c, again[0][k], again[1][k], 1e-9);
		report(ok, which, w, "the gradient's gradient");
	}
	ricci_graph_free(c.g);
}

static void test_all(void)
{
	static const Way ways[] = {{-1, 0, 0, 0}, {-1, 1, 0, 0}, {-1, 0, 1, 0}, {-1, 0, 0, 2},
				   {-1, 1, 1, 3}, {0, 0, 0, 0},	 {1, 0, 0, 0},	{2, 1, 0, 0},
				   {3, 0, 1, 0},  {3, 1, 0, 2},	 {3, 0, 0, 9},	{0, 0, 0, 2}};
	for (int which = 0; which < FIXED; which++)
		for (int k = 0; k < COUNT(ways); k++)
			test_way(which, ways[k], k < 4 || k == 7 || k == 9);
}

/* Central differences at some elements of each input. */
static void test_differences(int which, Way w)
{
	Case c;
	ricci_tensor *loss[2], *grad[MOST];
	make(&c, which, w);
	build(&c, loss);
	CHECK_INT(ricci_grad(c.g, loss[0], NULL, c.nwrt, c.wrt, grad), 0);
	for (int k = 0; k < c.nwrt; k++) {
		double g[ROOM], up, down, *x = c.value[k];
		if (!values(&c, grad[k], g))
			break;
		for (int64_t i = 0; i < tensor_size(c.wrt[k]->node); i += 3) {
			double old = x[i], step = 1e-5;
			x[i] = old + step;
			values(&c, loss[0], &up);
			x[i] = old - step;
			values(&c, loss[0], &down);
			x[i] = old;
			CHECK_NEAR(g[i], (up - down) / (2 * step), 1e-7 * (1 + fabs(g[i])));
		}
	}
	ricci_graph_free(c.g);
}

/* <u, J t> = <J' u, t> for a u that is a tensor, through the stack alone. */
static void test_identity(int which, Way w)
{
	Case c;
	ricci_tensor *final[3], *stacked[3], *grad[MOST], *jt;
	double u[ROOM], t[ROOM], left = 0, right = 0;
	make(&c, which, w);
	CHECK_INT(ricci_scan(c.g, &c.loop, final, stacked), 0);
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < ricci_rank(stacked[0]); d++)
		shape[d] = ricci_extent(stacked[0], d);
	ricci_tensor *seed = input(&c, "seed", ricci_rank(stacked[0]), shape, .2);
	ricci_grad(c.g, stacked[0], seed, c.nwrt - 1, c.wrt, grad);
	ricci_jvp(c.g, stacked[0], c.nwrt - 1, c.wrt, c.wrt, &jt);
	if (values(&c, jt, t) && values(&c, seed, u))
		for (int64_t i = 0; i < tensor_size(seed->node); i++)
			left += u[i] * t[i];
	for (int k = 0; k < c.nwrt - 1 && values(&c, grad[k], t) && values(&c, c.wrt[k], u); k++)
		for (int64_t i = 0; i < tensor_size(c.wrt[k]->node); i++)
			right += u[i] * t[i];
	CHECK_NEAR(left, right, 1e-10 * (1 + fabs(left)));
	report(fabs(left) > 1e-3, which, w, "an identity of zeros");
	ricci_graph_free(c.g);
}

static int try(int which, Way w)
{
	Case c;
	ricci_tensor *loss[2], *grad[MOST], *tangent;
	make(&c, which, w);
	if (!c.g)
		return RICCI_ENOMEM;
	int code = build(&c, loss);
	if (!code)
		code = ricci_grad(c.g, loss[0], NULL, c.nwrt, c.wrt, grad);
	if (!code)
		code = ricci_jvp(c.g, loss[0], c.nwrt, c.wrt, c.wrt, &tangent);
	ricci_graph_free(c.g);
	return code;
}

static void test_memory(void)
{
	for (int segment = 0; segment < 3; segment += 2) {
		long live = mem_live(), n = 1;
		int code;
		do {
			mem_fail_at(n);
			code = try(3, (Way){2, 0, 0, segment});
			mem_fail_at(0);
			n += 1 + n / 40;
			CHECK(code == 0 || code == RICCI_ENOMEM);
			CHECK_INT(mem_live(), live);
		} while (code && n < 100000);
		CHECK(n > 5 && n < 100000);
	}
}

/* Kernels of the loop's value and gradients against the interpreter. */
static void test_kernels(int which, Way w)
{
	Case c;
	ricci_tensor *loss[2], *grad[MOST];
	double got[MOST + 1][ROOM], want[ROOM];
	void *out[MOST + 1];
	Node *root[MOST + 1];
	Error err = {0};
	Evaluation e = {
		.backend = backend_find("tcc"), .threads = 1, .seed = 1, .step = 1, .repeat = 1};
	make(&c, which, w);
	build(&c, loss);
	ricci_grad(c.g, loss[0], NULL, c.nwrt, c.wrt, grad);
	CHECK_GRAPH(c.g);
	for (int k = 0; k <= c.nwrt; k++) {
		root[k] = k < c.nwrt ? grad[k]->node : loss[0]->node;
		out[k] = got[k];
	}
	int code = evaluate(&c.g->ir, c.nwrt + 1, root, c.n, c.bind, out, &e, &err);
	CHECK_REPORT(code == 0, "kernels: %s", err.text);
	bool ok = !code;
	for (int k = 0; k <= c.nwrt && ok; k++) {
		values(&c, k < c.nwrt ? grad[k] : loss[0], want);
		for (int64_t i = 0; i < tensor_size(root[k]) && ok; i++) {
			ok = check_near(got[k][i], want[i], 1e-9 * (1 + fabs(want[i])));
			CHECK_REPORT(ok, "kernels: root %d at %d is %g, should be %g", k, (int)i,
				     got[k][i], want[i]);
		}
	}
	report(ok, which, w, "the kernels");
	ricci_graph_free(c.g);
}

static void test_random(void)
{
	const char *count = getenv("RICCI_FUZZ");
	for (int k = 0; k < (count ? atoi(count) : 60) && !check_failed; k++) {
		Way way = {draw(4) - 1, draw(2), draw(3) == 0, draw(3) ? 0 : 1 + draw(3)};
		test_way(FIXED, way, k % 4 == 0);
		if (k % 8 == 0)
			test_kernels(FIXED, way);
	}
}

int main(void)
{
	test_all();
	test_random();
	for (int which = 0; which < FIXED; which++) {
		test_differences(which, (Way){-1, 0, 0, 0});
		test_differences(which, (Way){2, 1, 0, 2});
		test_identity(which, (Way){-1, 1, 0, 0});
		test_identity(which, (Way){3, 0, 0, 2});
		test_kernels(which, (Way){-1, 0, 0, 0});
		test_kernels(which, (Way){2, 1, 0, 0});
		test_kernels(which, (Way){3, 0, 1, 2});
	}
	test_memory();
	return check_done();
}

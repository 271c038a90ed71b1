/* test_gathered.c - a scatter that adds is the same as a sum for each element, and sums no more terms than it has to. */
#include "runtime/verify/verify.h"
#include "tests/check.h"
#include <stdlib.h>
#include <string.h>

typedef struct Case {
	const char *equation, *inputs;
	int terms; /* of an element's sum */
} Case;
static const Case cases[] = {
	{"keep m0[4*i+j:12] += a0[i,j] where i<3, j<4\n", "input f64 3x4\n", 1},
	{"keep m0[j+4*i+1:14] += a0[i,j] where i<3, j<4\n", "input f64 3x4\n", 1},
	/* elements between that have none */
	{"keep m0[5*i+j:15] += a0[i,j] where i<3, j<4\n", "input f64 3x4\n", 1},
	{"keep m0[6*i+2*j:18] += a0[i,j] where i<3, j<3\n", "input f64 3x3\n", 1},
	{"keep m0[8*i+2*j+k:24] += a0[i,j,k] where i<3, j<4, k<2\n", "input f64 3x4x2\n", 1},
	{"keep m0[8*i+2*j+k:24] += a0[i,j,k,l]*a1[l] where i<3, j<4, k<2, l<5\n",
	 "input f64 3x4x2x5\ninput f64 5\n", 5},
	/* windows that overlap: the shorter axis is summed */
	{"keep m0[2*i+j:19] += a0[i,j] where i<8, j<5\n", "input f64 8x5\n", 5},
	{"keep m0[i+j:10] += a0[i,j] where i<3, j<8\n", "input f64 3x8\n", 3},
	{"keep m0[i+3-j:10] += a0[i,j] where i<7, j<4\n", "input f64 7x4\n", 4},
	{"keep m0[6-i:7] += a0[i] where i<7\n", "input f64 7\n", 7},
	{"keep m0[3*i+j:9, k:4] += a0[i,j,k] where i<3, j<3, k<3\n", "input f64 3x3x3\n", 1},
	/* an axis in two dimensions: by the one that is nothing else */
	{"keep m0[2*i+j:8, i:4] += a0[i,j] where i<3, j<2\n", "input f64 3x2\n", 1},
	{"keep m0[i+j:6, i-j+2:6] += a0[i,j] where i<3, j<3\n", "input f64 3x3\n", 3},
	{"keep m0[i:4, i:5] += a0[i,j] where i<4, j<6\n", "input f64 4x6\n", 6},
	/* places that data or quotients tell */
	{"keep m0[a1[i]:9, j:2] += a0[i,j] where i<7, j<2\n", "input f64 7x2\ninput i32 7 0..8\n",
	 7},
	{"keep m0[a1[i]+3*j:14] += a0[i,j] where i<7, j<3\n", "input f64 7x3\ninput i32 7 0..7\n",
	 7},
	{"keep m0[i/2*3+i%2:12] += a0[i] where i<8\n", "input f64 8\n", 8},
	{"keep m0[1:3, i:4] += a0[i] where i<4\n", "input f64 4\n", 1},
};

static double number(const Task *t, int k, int64_t i)
{
	int extent = t->sub.input[k]->type == RICCI_I32 ? 7 : 1000;

	return (double)((uint64_t)(i * 7919 + k * 31 + 5) * 2654435761u % (uint64_t)extent);
}

static void input_fill(const Task *t, int k, void *data)
{
	for (int64_t i = 0; i < tensor_size(t->sub.input[k]); i++)
		if (t->sub.input[k]->type == RICCI_I32)
			((int32_t *)data)[i] = (int32_t)number(t, k, i);
		else
			((double *)data)[i] = number(t, k, i);
}

static void case_run(const Case *c)
{
	Text text = {0};
	Error err = {0};
	TaskCopy copy;

	text_add(&text, "ricci-task 1\n%s%s", c->inputs, c->equation);
	Task *t = task_parse(text.s, &err);
	CHECK_REPORT(t, "%s\n%s", err.text, text.s);
	text_free(&text);
	if (!t)
		return;
	CHECK_INT((int)scatter_terms(t->sub.member[0]), c->terms);
	CHECK_INT(task_copy(t, &copy, &err), 0);
	static double data[2][512], want[512], found[512];
	Binding bind[2];
	for (int k = 0; k < t->sub.ninput; k++) {
		input_fill(t, k, data[k]);
		bind[k] = (Binding){copy.input[k], data[k]};
	}
	int64_t n = tensor_size(copy.member[0]);
	RandomState none = {0, 0};
	CHECK_INT(interp_tensor(copy.member[0], t->sub.ninput, bind, none, want, NULL, &err), 0);
	Node *sum = scatter_gathered(&copy.ir, copy.member[0]);
	CHECK(comp_is_dense(sum));
	CHECK_INT(interp_tensor(sum, t->sub.ninput, bind, none, found, NULL, &err), 0);
	for (int64_t i = 0; i < n; i++)
		CHECK_REPORT(found[i] == want[i], "%s[%lld]: %g, but %g by the sum", c->equation,
			     (long long)i, want[i], found[i]);
	task_copy_free(&copy);
	task_free(t);
}

int main(void)
{
	for (int i = 0; i < COUNT(cases); i++)
		case_run(&cases[i]);
	CHECK_INT(mem_live(), 0);
	return check_done();
}

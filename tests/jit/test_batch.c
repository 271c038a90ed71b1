/* test_batch.c - which equations have a batch, and what tasks of other batches have in common. That their
 * kernels are right: tests/runtime/test_batch.c. */
#include "jit/jit.h"
#include "tests/check.h"

#include <string.h>

static Task *task_of(const char *lines)
{
	Text text = {0};
	Error err = {0};
	text_add(&text, "ricci-task 1\n%s", lines);
	Task *t = task_parse(text.s, &err);
	CHECK_REPORT(t, "%s\n%s", text.s, err.text);
	text_free(&text);
	return t;
}

/* zeros: the task sums over its batch. */
static void check_batch(const char *lines, int64_t want, bool zeros)
{
	Task *t = task_of(lines);
	if (!t)
		return;
	CHECK_REPORT(t->batch.extent == want, "%s: the batch is %lld, not %lld", lines,
		     (long long)t->batch.extent, (long long)want);
	CHECK_REPORT((want > 0) == (t->family != NULL), "%s: a family", lines);
	CHECK_REPORT(!want || t->batch.zeros == zeros, "%s: zeros", lines);
	task_free(t);
}

static void check_rows(void)
{
	check_batch("input f32 6x9\ninput f32 9\nkeep m0[i,j] = a0[i,j]*2 + a1[j] where i<6, j<9\n",
		    6, false);
	/* the row's number is a value */
	check_batch("input f32 6x9\nkeep m0[i,j] = i < 3 ? a0[i,j]*f32(i) : 0.0 where i<6, j<9\n",
		    6, false);
	/* a table that is as long */
	check_batch("input f32 6x9\ninput f32 6x9\n"
		    "keep m0[i,j] += a0[i,k]*a1[j,k] where i<6, j<6, k<9\n",
		    6, false);
	check_batch("input f32 6x4x8x8\ninput f32 5x4x3x3\n"
		    "keep m0[i,j,k,l] += (a0[i,o,k+m-1,l+n-1] else 0)*a1[j,o,m,n] "
		    "where i<6, j<5, k<8, l<8, m<3, n<3, o<4\n",
		    6, false);
	check_batch("input f32 6x9\nlocal m0[i] max= a0[i,j] where i<6, j<9\n"
		    "local m1[i] += exp(a0[i,j] - m0[i]) where i<6, j<9\n"
		    "keep m2[i,j] = exp(a0[i,j] - m0[i])/m1[i] where i<6, j<9\n",
		    6, false);
	check_batch("input f32 6x9\nkeep m0[i,j] = a0[i,j]*random(3) where i<6, j<9\n", 6, false);
	/* a gather by what varies, from a table of any length; or from the batch, which may be anywhere */
	check_batch("input i32 6x9\ninput f32 50x4\n"
		    "keep m0[i,j,k] = a1[a0[i,j],k] where i<6, j<9, k<4\n",
		    6, false);
	check_batch("input i32 6\ninput f32 6x4\n"
		    "keep m0[i,k] = a1[a0[i],k]*a1[i,k] where i<6, k<4\n",
		    0, false);
	/* an axis of one element is none */
	check_batch("input f32 1x9\nkeep m0[i,j] = a0[i,j]*2 where i<1, j<9\n", 0, false);
	check_batch("input f32 6x9\nkeep m0[j,i] = a0[i,j] where i<6, j<9\n", 0, false);
	check_batch("input f32 6x9\nkeep m0[i,j] = a0[5-i,j] where i<6, j<9\n", 0, false);
	check_batch("input f32 7x9\nkeep m0[i,j] = a0[i+1,j] - a0[i,j] where i<6, j<9\n", 0, false);
	check_batch("input f32 6x9\nkeep m0[i,j] = (a0[i-1,j] else 0) where i<6, j<9\n", 0, false);
	check_batch("input f32 6x6\nkeep m0[i,j] = a0[i,j] + a0[j,i] where i<6, j<6\n", 0, false);
	check_batch("input f32 6x9\ninput i32 6\nkeep m0[a1[i]:6,j] += a0[i,j] where i<6, j<9\n", 0,
		    false);
}

static void check_sums(void)
{
	check_batch("input f32 6x9\nkeep m0[i] += a0[j,i] where i<9, j<6\n", 6, true);
	check_batch("input f32 6x9\ninput f32 6x5\n"
		    "keep m0[i,j] += a0[k,i]*a1[k,j] where i<9, j<5, k<6\n",
		    6, true);
	/* in both operands, under conditions, rounded */
	check_batch("input f32 6x4x8\ninput f32 6x5x8\n"
		    "keep m0[i,j,k] += f32(bf16(a1[l,i,m]))*(a0[l,j,m+k-1] else 0) "
		    "where i<5, j<4, k<3, l<6, m<8\nkeep m1[i,j,k] = m0[i,j,k]*0.5 "
		    "where i<5, j<4, k<3\n",
		    6, true);
	check_batch("input f32 6x9\nlocal m0[i,j] = max(a0[i,j], 0.0) where i<6, j<9\n"
		    "keep m1[j] += m0[i,j]*m0[i,j] where i<6, j<9\n",
		    6, true);
	/* rows of zeros would count */
	check_batch("input f32 6x9\nkeep m0[i] += exp(a0[j,i]) where i<9, j<6\n", 0, false);
	check_batch("input f32 6x9\ninput f32 9\n"
		    "keep m0[i] += (a0[j,i] - a1[i])*(a0[j,i] - a1[i]) where i<9, j<6\n",
		    0, false);
	check_batch("input f32 6x9\nkeep m0[i] += a0[j,i]*exp(a0[j,i]) where i<9, j<6\n", 0, false);
	check_batch("input f32 6x9\nkeep m0[i] max= a0[j,i] where i<9, j<6\n", 0, false);
	check_batch("input f32 6x9\nkeep m0[i] *= a0[j,i] where i<9, j<6\n", 0, false);
	check_batch("input f32 6x9\nlocal m0[i,j] = a0[i,j] + 1.0 where i<6, j<9\n"
		    "keep m1[j] += m0[i,j] where i<6, j<9\n",
		    0, false);
	/* nor are they indices, and their draws would be others */
	check_batch("input f32 6x9\ninput i32 6\ninput f32 30\n"
		    "keep m0[i] += a0[j,i]*a2[a1[j]] where i<9, j<6\n",
		    0, false);
	check_batch("input f32 6x9\nkeep m0[i] += a0[j,i]*random(3) where i<9, j<6\n", 0, false);
}

/* Tasks that differ in the batch alone have one family; other numbers that are equal to it stay. */
static void check_families(void)
{
	static const char form[] = "input f32 %dx6\ninput f32 6x%d\n"
				   "keep m0[i,j] += a0[i,k]*a1[j,k]/%d.0 where i<%d, j<6, k<6\n";
	static const int other[][4] = {{6, 6, 6, 6}, {40, 6, 6, 40}, {40, 6, 40, 40}, {7, 6, 6, 7}};
	Task *t[COUNT(other)];
	char lines[400];
	for (int k = 0; k < COUNT(other); k++) {
		snprintf(lines, sizeof lines, form, other[k][0], other[k][1], other[k][2],
			 other[k][3]);
		t[k] = task_of(lines);
	}
	CHECK_STR(t[1]->family, t[0]->family);
	CHECK_STR(t[3]->family, t[0]->family);
	CHECK(strstr(t[0]->family, "input f32 ?x6\ninput f32 6x6\nkeep m0[i,j] += "));
	CHECK(strstr(t[0]->family, " where i<?, j<6, k<6\n"));
	CHECK(strcmp(t[2]->family, t[0]->family) != 0);
	for (int k = 0; k < COUNT(other); k++)
		task_free(t[k]);
	t[0] = task_of("input f32 6x9\ninput f32 6x5\n"
		       "keep m0[i,j] += a0[k,i]*a1[k,j] where i<9, j<5, k<6\n");
	CHECK_STR(t[0]->family, "ricci-task 1\ninput f32 ?x9\ninput f32 ?x5\n"
				"keep m0[i,j] += a0[k,i]*a1[k,j] where i<9, j<5, k<?\n");
	task_free(t[0]);
}

int main(void)
{
	check_rows();
	check_sums();
	check_families();
	return check_done();
}

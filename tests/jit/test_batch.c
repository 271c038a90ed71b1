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

/* The extents of its batches in order, those that it sums over marked by a plus: "6 9+"; "" where there is none. */
static void check_batch(const char *lines, const char *want)
{
	Task *t = task_of(lines);
	Text found = {0};
	if (!t)
		return;
	text_put(&found, "", 0);
	for (int b = 0; b < t->nbatch; b++)
		text_add(&found, "%s%lld%s", b ? " " : "", (long long)t->batch[b].extent,
			 t->batch[b].zeros ? "+" : "");
	CHECK_REPORT(!strcmp(found.s, want), "%s: the batches are \"%s\", not \"%s\"", lines,
		     found.s, want);
	text_free(&found);
	task_free(t);
}

static void check_rows(void)
{
	check_batch("input f32 6x9\ninput f32 9\nkeep m0[i,j] = a0[i,j]*2 + a1[j] where i<6, j<9\n",
		    "6 9");
	/* the row's number is a value */
	check_batch("input f32 6x9\nkeep m0[i,j] = i < 3 ? a0[i,j]*f32(i) : 0.0 where i<6, j<9\n",
		    "6 9");
	/* a table that is as long */
	check_batch("input f32 6x9\ninput f32 6x9\n"
		    "keep m0[i,j] += a0[i,k]*a1[j,k] where i<6, j<6, k<9\n",
		    "6 6 9+");
	check_batch("input f32 6x4x8x8\ninput f32 5x4x3x3\n"
		    "keep m0[i,j,k,l] += (a0[i,o,k+m-1,l+n-1] else 0)*a1[j,o,m,n] "
		    "where i<6, j<5, k<8, l<8, m<3, n<3, o<4\n",
		    "6 5 4+");
	check_batch("input f32 6x9\nlocal m0[i] max= a0[i,j] where i<6, j<9\n"
		    "local m1[i] += exp(a0[i,j] - m0[i]) where i<6, j<9\n"
		    "keep m2[i,j] = exp(a0[i,j] - m0[i])/m1[i] where i<6, j<9\n",
		    "6");
	check_batch("input f32 6x9\nkeep m0[i,j] = a0[i,j]*random(3) where i<6, j<9\n", "6");
	/* elements draw by their number */
	check_batch("input f32 1x9\nkeep m0[i,j] = a0[i,j]*random(3) where i<1, j<9\n", "");
	/* a gather by what varies, from a table of any length; or from the batch, which may be anywhere */
	check_batch("input i32 6x9\ninput f32 50x4\n"
		    "keep m0[i,j,k] = a1[a0[i,j],k] where i<6, j<9, k<4\n",
		    "6 9 4");
	check_batch("input i32 6\ninput f32 6x4\n"
		    "keep m0[i,k] = a1[a0[i],k]*a1[i,k] where i<6, k<4\n",
		    "4");
	/* an axis of one element is none */
	check_batch("input f32 1x9\nkeep m0[i,j] = a0[i,j]*2 where i<1, j<9\n", "9");
	check_batch("input f32 6x9\nkeep m0[j,i] = a0[i,j] where i<6, j<9\n", "9 6");
	check_batch("input f32 6x9\nkeep m0[i,j] = a0[5-i,j] where i<6, j<9\n", "9");
	check_batch("input f32 7x9\nkeep m0[i,j] = a0[i+1,j] - a0[i,j] where i<6, j<9\n", "9");
	check_batch("input f32 6x9\nkeep m0[i,j] = (a0[i-1,j] else 0) where i<6, j<9\n", "9");
	check_batch("input f32 6x6\nkeep m0[i,j] = a0[i,j] + a0[j,i] where i<6, j<6\n", "");
	check_batch("input f32 6x9\ninput i32 6\nkeep m0[a1[i]:6,j] += a0[i,j] where i<6, j<9\n",
		    "9");
}

static void check_sums(void)
{
	check_batch("input f32 6x9\nkeep m0[i] += a0[j,i] where i<9, j<6\n", "9 6+");
	check_batch("input f32 6x9\ninput f32 6x5\n"
		    "keep m0[i,j] += a0[k,i]*a1[k,j] where i<9, j<5, k<6\n",
		    "9 5 6+");
	/* in both operands, under conditions, rounded */
	check_batch("input f32 6x4x8\ninput f32 6x5x8\n"
		    "keep m0[i,j,k] += f32(bf16(a1[l,i,m]))*(a0[l,j,m+k-1] else 0) "
		    "where i<5, j<4, k<3, l<6, m<8\nkeep m1[i,j,k] = m0[i,j,k]*0.5 "
		    "where i<5, j<4, k<3\n",
		    "5 4 6+");
	check_batch("input f32 6x9\nlocal m0[i,j] = max(a0[i,j], 0.0) where i<6, j<9\n"
		    "keep m1[j] += m0[i,j]*m0[i,j] where i<6, j<9\n",
		    "6+ 9");
	/* what is in a row of zeros is known: here the number that a root is taken of */
	check_batch("input f32 6x9\ninput f32 6\n"
		    "keep m0[i] += a0[j,i]*rsqrt(a1[j] + 1e-05) where i<9, j<6\n",
		    "9 6+");
	check_batch("input f32 6x9\ninput f32 6\n"
		    "local m0[i] = rsqrt(a1[i] + 1e-05) where i<6\n"
		    "keep m1[i] += a0[j,i]*m0[j] where i<9, j<6\n",
		    "6+");
	check_batch("input f32 6x9\ninput f32 6\n"
		    "keep m0[i] += a0[j,i]*rsqrt(a1[j]) where i<9, j<6\n",
		    "9");
	check_batch("input f32 6x9\ninput f32 6\nlocal m0[i] = rsqrt(a1[i]) where i<6\n"
		    "keep m1[i] += a0[j,i]*m0[j] where i<9, j<6\n",
		    "");
	/* rows of zeros would count */
	check_batch("input f32 6x9\nkeep m0[i] += exp(a0[j,i]) where i<9, j<6\n", "9");
	check_batch("input f32 6x9\ninput f32 9\n"
		    "keep m0[i] += (a0[j,i] - a1[i])*(a0[j,i] - a1[i]) where i<9, j<6\n",
		    "9");
	check_batch("input f32 6x9\nkeep m0[i] += a0[j,i]*exp(a0[j,i]) where i<9, j<6\n", "9 6+");
	check_batch("input f32 6x9\nkeep m0[i] max= a0[j,i] where i<9, j<6\n", "9");
	check_batch("input f32 6x9\nkeep m0[i] *= a0[j,i] where i<9, j<6\n", "9");
	check_batch("input f32 6x9\nlocal m0[i,j] = a0[i,j] + 1.0 where i<6, j<9\n"
		    "keep m1[j] += m0[i,j] where i<6, j<9\n",
		    "9");
	/* nor are they indices, and their draws would be others */
	check_batch("input f32 6x9\ninput i32 6\ninput f32 30\n"
		    "keep m0[i] += a0[j,i]*a2[a1[j]] where i<9, j<6\n",
		    "9");
	check_batch("input f32 6x9\nkeep m0[i] += a0[j,i]*random(3) where i<9, j<6\n", "9");
}

static bool family_is(const Task *t, int b, const char *want)
{
	Text text = {0};
	bool same;
	task_family(&text, t, b);
	same = t->nbatch > b && !strcmp(text.s, want);
	CHECK_REPORT(same, "batch %d: %s", b, text.s);
	text_free(&text);
	return same;
}

/* Tasks that differ in a batch alone have one family; other numbers that are equal to it stay. */
static void check_families(void)
{
	static const char form[] = "input f32 %sx6\ninput f32 6x%d\n"
				   "keep m0[i,j] += a0[i,k]*a1[j,k]/%d where i<%s, j<6, k<6\n";
	char lines[400], want[420];
	for (int divisor = 6; divisor <= 7; divisor++)
		for (int rows = 6; rows <= 40; rows += 34) {
			char number[8];
			snprintf(number, sizeof number, "%d", rows);
			snprintf(lines, sizeof lines, form, number, 6, divisor, number);
			Task *t = task_of(lines);
			snprintf(lines, sizeof lines, form, "?", 6, divisor, "?");
			snprintf(want, sizeof want, "ricci-task 1\n%s", lines);
			CHECK(family_is(t, 0, want));
			task_free(t);
		}
	Task *t = task_of("input f32 6x9\ninput f32 6x5\n"
			  "keep m0[i,j] += a0[k,i]*a1[k,j] where i<9, j<5, k<6\n");
	CHECK(family_is(t, 0,
			"ricci-task 1\ninput f32 6x?\ninput f32 6x5\n"
			"keep m0[i,j] += a0[k,i]*a1[k,j] where i<?, j<5, k<6\n"));
	CHECK(family_is(t, 2,
			"ricci-task 1\ninput f32 ?x9\ninput f32 ?x5\n"
			"keep m0[i,j] += a0[k,i]*a1[k,j] where i<9, j<5, k<?\n"));
	task_free(t);
}

int main(void)
{
	check_rows();
	check_sums();
	check_families();
	return check_done();
}

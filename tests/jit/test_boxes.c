/* test_boxes.c - where tcc's text calls a function for a box of short lines, or for a whole chunk, and what it computes. */
#include "tests/jit/lower_harness.h"

static const struct {
	Case c;
	const char *call;
	bool fused;
} boxes[] = {
	{{"Y[n,c,y,x] += X[n,c,y+r,x+s]*W[c,r,s] where y<6, x<6", "X=3x5x8x8 W=5x3x3"},
	 "fma_box",
	 false},
	/* of the rows that padding leaves */
	{{"Y[n,c,y,x] += (X[n,c,y+r-1,x+s-1] else 0)*W[c,r,s] where y<8, x<8", "X=3x5x8x8 W=5x3x3"},
	 "fma_box",
	 false},
	{{"W[c,r,s] += G[n,c,y,x]*(X[n,c,y+r-1,x+s-1] else 0) where r<3, s<3",
	  "G=3x5x8x8 X=3x5x8x8"},
	 "dot_box",
	 false},
	/* sums of short rows, and what is made of them */
	{{"S[b,i] += X[b,i,c]*W[i,c]; Y[b,i] = tanh(S[b,i])", "X=64x256x16 W=256x16"},
	 "dot_box",
	 true},
	{{"M[b,i] max= X[b,i,c]; E[b,i,c] = exp(X[b,i,c] - M[b,i]); S[b,i] += E[b,i,c]; "
	  "Y[b,i,c] = E[b,i,c]/S[b,i]",
	  "X=64x64x48"},
	 "hmax_box",
	 true},
	/* a sum over an interval alone */
	{{"Y[c,r] += (X[c,q+r-2] else 0)*G[c,q] where r<5", "X=9x140 G=9x140"}, "v_dot_", false},
	/* conditions whose second part reads what the first one has read */
	{{"t[b,k,p] += G[b,c,p]*W[c,k]; d[b,k,p] = 0 < X[b,k,p]*a[k] && X[b,k,p]*a[k] < 1 ? "
	  "t[b,k,p] : 0",
	  "G=3x16x64 W=16x40 X=3x40x64 a=40"},
	 "v_and_u8",
	 true},
	/* of panels with unequal numbers of rows, whose results have a tile of their own */
	{{"t[b,k,p] += G[b,c,p]*W[c,k]; d[b,k,p] = 0 < X[b,k,p]*a[k] ? t[b,k,p] : 0",
	  "G=16x24x1024 W=24x96 X=16x96x1024 a=96"},
	 "v_select_f32",
	 true},
	/* a condition on one axis of a box is computed for one line, and goes to all */
	{{"s[c] += A[b,c,y,x]; Y[b,c,y,x] = x*x < 50 ? A[b,c,2*y,2*x]-s[c] : 0 where y<14, x<14",
	  "A=16x40x28x28"},
	 "v_box_u8",
	 true},
	/* sums of elements, of the columns and rows that padding leaves */
	{{"Y[n,c,y,x] += X[n,c,2*y+r-1,2*x+s-1] else 0 where y<8, x<8, r<3, s<3", "X=3x5x16x16"},
	 "fma_box",
	 false},
	/* a box with padding, in a value that isn't added */
	{{"s[c] += A[n,c,y,x]; Y[n,c,y,x] = 0 < B[n,c,y,x] ? (y < 7 && x < 7 ? A[n,c,y+1,x+1]*s[c] "
	  ": 0) + "
	  "A[n,c,y,x] : 0 where y<8, x<8",
	  "A=16x40x8x8 B=16x40x8x8"},
	 "v_pad_f32",
	 true},
	/* padding of some rows within padding of some columns */
	{{"s[c] += A[n,c,y,x]; Y[n,c,y,x] = 0 < B[n,c,y,x] ? (x < 7 && 5 < n ? "
	  "(n < 15 ? A[n+1,c,y,x+1]*s[c] : 2)*s[c] : 1) + A[n,c,y,x] : 0 where n<16, y<8, x<8",
	  "A=16x40x8x8 B=16x40x8x8"},
	 "v_pad_f32",
	 true},
	/* what doesn't change over a box is read where its place is valid alone */
	{{"s[c] += A[n,c,y,x]; Y[n,c,y,x] = 0 < B[n,c,y,x] ? (x < 7 && c < 39 ? "
	  "A[n,c,y,x+1]*D[c+1] : 0) + "
	  "A[n,c,y,x] : 0 where y<8, x<8",
	  "A=16x40x8x8 B=16x40x8x8 D=40"},
	 "v_select_f32",
	 true},
	/* choices by place take each element from one side alone */
	{{"Y[i,j] = j < 300 ? exp(A[i,j]) : j < 700 ? B[i,j-300] : tanh(C[i,j-700]) where j<1000",
	  "A=9x300 B=9x400 C=9x300"},
	 "v_tanh_f32(n",
	 false},
	/* a choice whose sides are valid by their own conditions */
	{{"t[i,j] = 0 < i ? A[i-1,j]-s[i-1] : B[j]; Y[i,j] = 0 < t[i,j] ? t[i,j] : 0 where i<10",
	  "A=9x300 s=9 B=300"},
	 "v_sub_f32",
	 true},
};

static void check_call(const Case *c, bool fused, const char *call)
{
	const Backend *tcc = backend_find("tcc");
	Schedule s;
	Error err = {0};
	Trial *t = harness_trials(c, fused, NULL);
	CHECK(schedule_offers(&t->task, backend_target(tcc), 1, &s) == 1);
	Kernel *k = kernel_lower(&t->task, &s, tcc, backend_target(tcc), &err);
	CHECK_REPORT(k && strstr(k->source, call), "%s: no %s", c->text, call);
	if (!k)
		return;
	CHECK_REPORT(tcc->compile(tcc, 1, &k, NULL, &err) == 0, "%s", err.text);
	if (!err.code)
		harness_run(t, k);
	kernel_unref(k);
}

int main(void)
{
	if (!backend_find("tcc"))
		return harness_done();
	for (int k = 0; k < COUNT(boxes); k++)
		check_call(&boxes[k].c, boxes[k].fused, boxes[k].call);
	return harness_done();
}

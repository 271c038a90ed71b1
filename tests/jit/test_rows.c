/* test_rows.c - several equations in one kernel, row by row: each loop under a schedule of its own, and
 * contractions as pieces in the loop over the rows, against the interpreter. */
#include "jit/schedule/schedule.h"
#include "tests/jit/lower_harness.h"

static const Case cases[] = {
	/* attention, a head a row: scores and softmax never leave the row */
	{"S[h,i,j] += Q[h,i,d]*K[h,j,d]; M[h,i] max= S[h,i,j]; E[h,i,j] = exp(S[h,i,j]-M[h,i]); "
	 "Z[h,i] += E[h,i,j]; P[h,i,j] = E[h,i,j]/Z[h,i]; O[h,i,e] += P[h,i,j]*V[h,j,e]",
	 "Q=6x40x24 K=6x40x24 V=6x40x32"},
	/* a hidden layer of each sample's points, and a sum over all samples behind it */
	{"H[b,p,k] += X[b,p,c]*W[c,k]; R[b,p,k] = max(H[b,p,k] + B[k], 0); Y[b,p,n] += "
	 "R[b,p,k]*U[k,n]; G[n] += Y[b,p,n]",
	 "X=20x24x36 W=36x48 B=48 U=48x20"},
	/* windows over the row's own result, with borders; an index of the row in a condition */
	{"H[b,k,p,q] += X[b,c,p,q]*W[k,c]; Y[b,n,p,q] += (H[b,k,p+r-1,q+s-1] else 0)*U[n,k,r,s] "
	 "where "
	 "p<9, q<9, r<3, s<3; Z[b,n,p,q] = b<2 ? Y[b,n,p,q] : Y[b,n,p,q]*0.5",
	 "X=5x16x9x9 W=16x16 U=18x16x3x3"},
	/* the row inside a quotient with an index of the product */
	{"C[b,i,j] += A[(b+i)/2,i,k]*B[b,k,j]; M[b,i] max= C[b,i,j]; "
	 "Y[b,i,j] = C[b,i,j]-M[b,i]",
	 "A=40x33x20 B=48x20x50"},
	{"M[i] max= X[i,j]; E[i,j] = exp(X[i,j]-M[i]); S[i] += E[i,j]; Y[i,j] = E[i,j]/S[i]",
	 "X=64x500"},
	/* channels, the second dimension of images, are rows: of them a part is kept in memory of one row,
	 * with windows over it */
	{"S[c] += X[b,c,y,x]; M[c] = S[c]/315; V[c] += (X[b,c,y,x]-M[c])*(X[b,c,y,x]-M[c]); "
	 "N[b,c,y,x] = (X[b,c,y,x]-M[c])*rsqrt(V[c]+0.5); "
	 "Y[b,c,y,x] += (N[b,c,y+r-1,x] else 0)*W[c,r] where y<7, r<3; Z[c] max= Y[b,c,y,x]",
	 "X=5x70x7x9 W=70x3"},
	/* rows of the first equation are its third dimension */
	{"D[b,y,c,x] = X[b,y,c,x]*G[b,y,c,x]; S[c] += D[b,y,c,x]; Y[b,c] += D[b,y,c,x]*S[c]; "
	 "Z[b,y,c,x] = D[b,y,c,x]*Y[b,c]-S[c]",
	 "X=6x5x64x9 G=6x5x64x9"},
	/* a row's tile of whole vectors, fewer than the blocks of lanes would fill */
	{"M[i,j,k] min= F[min(p,i)%2] where i<18, j<6, k<17, p<11; N[i,j,k] += !(M[i,j,k] < "
	 "F[min(p,i)%2]) ? f64(1) : f64(0) where p<11; Y[i,j,k] = D[i,j,k]/N[i,j,k]",
	 "F=2:f64 D=18x6x17:f64"},
};

static int count_steps(const Schedule *s, StepKind kind)
{
	int n = 0;
	for (int k = 0; k < s->n; k++)
		n += (StepKind)s->step[k].kind == kind;
	return n;
}

/* Panels of the offer that has most of them: which loops have them is known, not which nests are cheaper. */
static int most_panels(const Trial *t)
{
	int most = 0;
	for (int k = 0; k < t->noffer; k++) {
		int n = count_steps(&t->offer[k], STEP_TENSORISE);
		most = n > most ? n : most;
	}
	return most;
}

/* Where products are much of the work their panels are cheaper than any nest: the first offer's. */
static void check_first_panels(void)
{
	static const Case attention = {
		"S[h,i,j] += Q[h,i,d]*K[h,j,d]; M[h,i] max= S[h,i,j]; E[h,i,j] = "
		"exp(S[h,i,j]-M[h,i]); "
		"Z[h,i] += E[h,i,j]; P[h,i,j] = E[h,i,j]/Z[h,i]; O[h,i,e] += P[h,i,j]*V[h,j,e]",
		"Q=2x128x256 K=2x128x256 V=2x128x256"};
	Trial *t = harness_rows(&attention);
	CHECK_INT(count_steps(&t->offer[0], STEP_TENSORISE), 2);
}

static void check_refused(const Trial *t, const char *text, const char *message)
{
	Schedule s;
	Error err = {0};
	CHECK_INT(schedule_parse(text, &s, &err), 0);
	Kernel *k = kernel_lower(&t->task, &s, backend_find("tcc"), target_host(), &err);
	CHECK(!k);
	CHECK_STR(err.text, message);
	kernel_unref(k);
}

static void check_refusals(const Trial *attention)
{
	static const char form[] = "schedule: several equations that run row by row take the step "
				   "rows, at most a step "
				   "stream, and then the steps of each loop behind its member";
	check_refused(attention, "vectorise 0", form);
	check_refused(attention, "rows 1; vectorise 0", form);
	check_refused(attention, "rows 3", "schedule: 1 to 2 dimensions can be rows, not 3");
	check_refused(
		attention, "rows 1; member 7",
		"schedule: no loop begins with member 7, or those before it are not in order");
	check_refused(
		attention, "rows 1; member 1; member 0",
		"schedule: no loop begins with member 0, or those before it are not in order");
	check_refused(attention, "rows 1; member 0; parallel 1",
		      "schedule: a piece of a tree has no parts");
	check_refused(
		attention, "rows 1; member 0; tensorise 0; share 2",
		"schedule: a piece of a tree has no phases: no copies, no shared panels, K in "
		"one piece");
	check_refused(attention, "rows 2; member 0; tensorise 0",
		      "schedule: tensorise needs a sum of products whose operands share reduced "
		      "indices and each have indices of their own");
}

/* Neighbours of the offers, as a search tries them: those that fit. */
static void check_random(Trial *t, int wanted)
{
	static Schedule offer[HARNESS_OFFERS];
	uint64_t state = 11;
	int n = t->noffer, tries = 0;
	memcpy(offer, t->offer, sizeof offer);
	for (t->noffer = 0; t->noffer < wanted && tries < 400; tries++) {
		Schedule *s = &t->offer[t->noffer];
		Error err = {0};
		*s = offer[random_below(&state, (uint64_t)n)];
		if (random_below(&state, 3) == 0)
			schedule_cross(s, &offer[random_below(&state, (uint64_t)n)], &state);
		for (int k = (int)random_below(&state, 3); k >= 0; k--)
			schedule_mutate(s, schedule_axes(&t->task), &state);
		Kernel *k = kernel_lower(&t->task, s, backend_find("tcc"), target_host(), &err);
		t->noffer += k != NULL;
		kernel_unref(k);
	}
	CHECK_INT(t->noffer, wanted);
}

/* What sums over rows are added to isn't written past the caches. */
static void check_streamed_sums(void)
{
	static const Case sums = {"c[i,j] += A[k]*X[k,j,i]; Y[k,i,j] = A[k]*X[k,j,i]",
				  "A=17 X=17x17x17"};
	Error err = {0};
	Trial *t = harness_trials(&sums, true, NULL);
	t->noffer = 1;
	CHECK_INT(schedule_parse("rows 1; member 0; stream 16; vectorise 1", &t->offer[0], &err),
		  0);
	harness_check(t, backend_find("tcc"), 1);
	harness_check(t, backend_find("cc"), 1);
}

int main(void)
{
	Trial *list = NULL;
	static const int panels[COUNT(cases)] = {2, 2, 2, 1, 0, 0, 0, 0};
	for (int k = COUNT(cases) - 1; k >= 0; k--) {
		Trial *t = harness_rows(&cases[k]);
		CHECK_INT(most_panels(t), panels[k]);
		t->next = list;
		list = t;
	}
	check_first_panels();
	check_refusals(list);
	check_streamed_sums();
	harness_check(list, backend_find("tcc"), 32);
	harness_check(list, backend_find("cc"), 64);
	for (Trial *t = list; t; t = t->next)
		check_random(t, HARNESS_MOST);
	harness_check(list, backend_find("tcc"), 32);
	return harness_done();
}

/* test_schedule.c - schedules as text, schedules that do not fit, and random ones: whatever the
 * order and the splits, the numbers stay. */
#include "jit/micro/micro.h"
#include "tests/jit/lower_harness.h"

static void check_text(const char *text)
{
	Schedule s, again;
	Error err = {0};
	Text out = {0};
	CHECK_INT(schedule_parse(text, &s, &err), 0);
	schedule_print(&out, &s);
	CHECK_STR(out.s ? out.s : "", text);
	CHECK_INT(schedule_parse(out.s ? out.s : "", &again, &err), 0);
	CHECK(memcmp(&s, &again, sizeof s) == 0);
	text_free(&out);
}

static void check_refused(const char *text, const char *message)
{
	Schedule s;
	Error err = {0};
	CHECK_INT(schedule_parse(text, &s, &err), RICCI_ESYNTAX);
	CHECK_STR(err.text, message);
}

static void check_misfit(const Trial *t, const char *text, const char *message)
{
	Schedule s;
	Error err = {0};
	CHECK_INT(schedule_parse(text, &s, &err), 0);
	Kernel *k = kernel_lower(&t->task, &s, backend_find("tcc"), target_host(), &err);
	CHECK(k == NULL);
	CHECK_INT(err.code, RICCI_EINVAL);
	CHECK_STR(err.text, message);
	kernel_unref(k);
}

/* Loops in any order; inside the lanes all are written out; reads are staged somewhere. */
static Schedule random_window(int n)
{
	Schedule s = {0};
	int lanes = (int)(harness_random() * n);
	for (int k = 0; k < n; k++)
		schedule_add(&s, STEP_MOVE, (int)(harness_random() * n),
			     (int)(harness_random() * n));
	schedule_add(&s, STEP_MOVE, lanes, n - 1 - (int)(harness_random() * (n - 1)));
	schedule_add(&s, STEP_VECTORISE, lanes, 0);
	for (int k = 0; k < n; k++)
		if (k != lanes)
			schedule_add(&s, STEP_UNROLL, k, 0);
	schedule_add(&s, STEP_CACHE_READ, 0, (int)(harness_random() * (n + 1)));
	schedule_add(&s, STEP_PARALLEL, 0, (int)(harness_random() * 2));
	return s;
}

/* A random replayable schedule of a nest of n loops. */
static Schedule random_schedule(int n)
{
	Schedule s = {0};
	if (harness_random() < 0.3)
		return random_window(n);
	int steps = (int)(harness_random() * 6), loops = n;
	for (int k = 0; k < steps; k++) {
		int axis = (int)(harness_random() * loops);
		switch ((int)(harness_random() * 4)) {
		case 0:
			schedule_add(&s, STEP_SPLIT, axis, 1 + (int)(harness_random() * 9));
			loops++;
			break;
		case 1:
			schedule_add(&s, STEP_MOVE, axis, (int)(harness_random() * loops));
			break;
		case 2:
			schedule_add(&s, STEP_UNROLL, axis, 0);
			break;
		default:
			schedule_add(&s, STEP_MOVE, axis, loops - 1);
			schedule_add(&s, STEP_VECTORISE, axis, 0);
			break;
		}
	}
	if (harness_random() < 0.4)
		schedule_add(&s, STEP_CACHE_READ, 0, (int)(harness_random() * loops));
	if (harness_random() < 0.4)
		schedule_add(&s, STEP_STREAM, 0, 1);
	if (harness_random() < 0.3) {
		schedule_add(&s, STEP_MOVE, (int)(harness_random() * loops), 0);
		schedule_add(&s, STEP_RFACTOR, 0, 1);
		schedule_add(&s, STEP_PARALLEL, 0, 1 + (int)(harness_random() * 2));
	} else {
		schedule_add(&s, STEP_PARALLEL, 0, (int)(harness_random() * 3));
	}
	return s;
}

static const Case cases[] = {
	{"Y[i,j] = A[j,i] + B[i]", "A=33x17 B=17"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=13x19 B=19x23"},
	{"Y[i,j] += A[i,k]*B[1024*j+k] where j<26, k<20", "A=9x20 B=25620"}, /* pages apart */
	{"Y[n,c,p,q] += (X[n,c,2*p+r-1,2*q+s-1] else 0)*W[c,r,s] where p<5, q<6",
	 "X=2x3x9x11 W=3x3x3"},
	{"Y[i,p] max= (X[i,2*p+r-1] else -1e9) where p<11, r<3", "X=7x20"},
	{"Y[c,p,q] += (X[c,p+r-1,q+2*s-2] else 0)*W[c,r,s] where p<4, q<5", "X=3x4x5 W=3x3x3"},
	{"Y[i] += T[j]*A[i,j/3]", "T=31 A=9x11"},
	{"Y[T[i]:5,d] += X[i,d] where i<20, d<19", "T=20:i32 X=20x19"},
	{"Y[i,j] = A[j,i]*A[i,j] - A[j,i]", "A=20x20"},
	{"Y[k] += A[i,j,k]; Z[k] = Y[k] + k", "A=23x11x5"},
	{"Y[i,j,k] = j == 1 ? exp(A[i,k]) : j < 3 ? A[i,k]*B[j,k] : A[i,k] - 1 where j<5",
	 "A=33x17 B=5x17"},
};

/* Does it fit the task? */
static bool fits(const Trial *t, const Schedule *s)
{
	Error err = {0};
	Kernel *k = kernel_lower(&t->task, s, backend_find("tcc"), target_host(), &err);
	kernel_unref(k);
	return k != NULL;
}

/* Reductions that can go on from one element of the results to the next, along the first axis. */
static const Case running[] = {
	{"Y[i] += X[j] where j < i+1, i < X.size(0)", "X=1100"},
	{"Y[i,j] += k <= i ? A[k,j]*B[i] : 0", "A=33x9 B=33"},
	{"Y[i,j] *= i < k ? 1 - A[k,j]/50 : 1 where i<33", "A=33x19:f64"},
	{"Y[i] max= i < j+3 && k != 2 ? A[j,k] : -inf where i<53", "A=53x5"},
	{"Y[i] += j < 2*i+5 ? X[j,k] : 0 where i<20", "X=47x40"},
};

/* Loops in any order around what is new. */
static void check_running(const char *backend, int wanted)
{
	Trial *list = NULL;
	int carried = 0;
	for (int k = 0; k < COUNT(running); k++)
		list = harness_trials(&running[k], false, list);
	for (Trial *t = list; t; t = t->next) {
		t->noffer = 0;
		for (int k = 0; k < 400 && t->noffer < wanted; k++) {
			Schedule s = {0};
			Schedule rest = random_schedule(comp_naxis(t->task.sub.member[0]));
			schedule_add(&s, STEP_CARRY, 0, 0);
			for (int j = 0; j < rest.n; j++)
				schedule_add(&s, rest.step[j].kind, rest.step[j].axis,
					     rest.step[j].arg);
			if (fits(t, &s))
				t->offer[t->noffer++] = s;
		}
		carried += t->noffer;
	}
	CHECK(carried > wanted * COUNT(running) / 2);
	harness_check(list, backend_find(backend), 200);
}

/* The offered one reads each element once, whatever the length: no loop but that along the results,
 * and the lanes. */
static void check_once(const char *text, const char *operands, int loops)
{
	const Case sum = {text, operands};
	Trial *t = harness_trials(&sum, false, NULL);
	Error err = {0};
	Kernel *k = kernel_lower(&t->task, &t->offer[0], backend_find("cc"), target_host(), &err);
	int n = 0;
	CHECK_INT(t->offer[0].step[0].kind, STEP_CARRY);
	for (const char *s = k ? strstr(k->source, "kernel_0(") : ""; (s = strstr(s, "for (")); s++)
		n++;
	CHECK_INT(n, loops);
	if (k)
		kernel_unref(k);
	harness_check(t, backend_find("cc"), 100);
}

/* Most random schedules break a rule and are refused by name; the others must be right. */
static void check_random(Trial *list, const char *backend, int wanted)
{
	for (Trial *t = list; t; t = t->next) {
		int good = 0;
		t->noffer = 0;
		for (int k = 0; k < 400 && good < wanted; k++) {
			Schedule s = random_schedule(comp_naxis(t->task.sub.member[0]));
			Error err = {0};
			Kernel *kernel = kernel_lower(&t->task, &s, backend_find(backend),
						      target_host(), &err);
			if (!kernel) {
				CHECK_INT(err.code, RICCI_EINVAL);
				CHECK(strncmp(err.text, "schedule: ", 10) == 0);
				continue;
			}
			kernel_unref(kernel);
			t->offer[t->noffer++] = s;
			good++;
		}
		CHECK(good > 0);
	}
	harness_check(list, backend_find(backend), strcmp(backend, "cc") ? 200 : 16);
}

/* A short axis that the values ask for is written out, so that nothing asks any more. */
static void check_written(const Trial *t)
{
	Text text = {0};
	Error err = {0};
	Kernel *k = kernel_lower(&t->task, &t->offer[0], backend_find("cc"), target_host(), &err);

	schedule_print(&text, &t->offer[0]);
	CHECK_STR(text.s, "vectorise 2; move 1 2; unroll 1; parallel 1");
	CHECK(k && !strstr(strstr(k->source, "kernel_0("), " ? "));
	CHECK_INT(k ? k->shape.parts : 0, 33);
	if (k)
		kernel_unref(k);
	text_free(&text);
}

/* Statements that read other elements are loops of their own; those that read the same share a loop, and a load. */
static void check_shared(void)
{
	static const struct {
		Case text;
		const char *schedule;
		int loops; /* that of parts, too */
	} one[] = {{{"U[u,j] = u == 0 ? A[j] : u == 1 ? B[j] : u == 2 ? C[j] : D[j] where u<4",
		     "A=160 B=160 C=160 D=160"},
		    "vectorise 1; move 0 0; unroll 0; parallel 0",
		    5},
		   {{"U[u,j] = u == 0 ? A[j,0] : u == 1 ? A[j,0] + A[j,1] : u == 2 ? "
		     "A[j,0] - A[j,1] : A[j,1] where u<4",
		     "A=160x2"},
		    "vectorise 1; move 0 1; unroll 0; parallel 0",
		    2},
		   {{"Y[j,u] = u == 0 ? A[0,j] + A[1,j] : u == 1 ? A[0,j] - A[1,j] : A[1,j] "
		     "where u<3",
		     "A=2x160"},
		    "vectorise 0; unroll 1; parallel 0",
		    2},
		   /* phases of lines, not of their lanes alone */
		   {{"Y[d] = A[d]*C[d%64/2] + (d%2 == 0 ? -A[d+1] : A[d-1])*S[d%64/2] where d<192",
		     "A=192 C=32 S=32"},
		    "split 0 64; split 1 2; move 1 2; vectorise 1; move 2 2; unroll 2; parallel 1",
		    1},
		   /* longer than a chunk: chunks are whole phases, too */
		   {{"Y[d] = A[d]*C[d%64/2] + (d%2 == 0 ? -A[d+1] : A[d-1])*S[d%64/2] where d<384",
		     "A=384 C=32 S=32"},
		    "split 0 64; split 1 2; move 1 2; vectorise 1; move 2 2; unroll 2; parallel 1",
		    1}};
	for (int i = 0; i < COUNT(one); i++) {
		Trial *t = harness_trials(&one[i].text, false, NULL);
		Text text = {0};
		Error err = {0};
		Kernel *k = kernel_lower(&t->task, &t->offer[0], backend_find("cc"), target_host(),
					 &err);
		const char *at = k ? strstr(k->source, "kernel_0(") : NULL;
		int loops = 0;
		while (at && (at = strstr(at, "for (int64_t"))) {
			loops++;
			at++;
		}
		schedule_print(&text, &t->offer[0]);
		CHECK_STR(text.s, one[i].schedule);
		CHECK_INT(loops, one[i].loops);
		if (k)
			kernel_unref(k);
		text_free(&text);
		harness_check(t, backend_find("tcc"), 100);
		harness_check(t, backend_find("cc"), 100);
	}
}

/* So are residues: each is stored in lines of its own, those of the lanes side by side. */
static void check_residues(void)
{
	static const Case join = {"Y[c,k,l] = k%2 == 1 && l%2 == 0 ? A[c,k/2,l/2] : 0 where k<56, "
				  "l<56",
				  "A=64x28x28"};
	Trial *t = harness_trials(&join, false, NULL);
	Text text = {0};
	Error err = {0};
	Kernel *k = kernel_lower(&t->task, &t->offer[0], backend_find("cc"), target_host(), &err);

	schedule_print(&text, &t->offer[0]);
	CHECK_STR(text.s, "split 1 2; split 2 2; move 3 4; unroll 3; move 2 4; vectorise 2; "
			  "move 4 4; unroll 4; parallel 1");
	const char *text_of = k ? strstr(k->source, "kernel_0(") : NULL;
	CHECK(text_of && !strpbrk(text_of, "?%") && !strstr(text_of, " & "));
	if (k)
		kernel_unref(k);
	text_free(&text);
	harness_check(t, backend_find("cc"), 100);
}

/* Lanes whose index wraps around are two loops that don't ask. */
static void check_wraps(void)
{
	static const Case roll = {"Y[i,j] = X[i,(j+7)%70] where i<9, j<70", "X=9x70"};
	Trial *t = harness_trials(&roll, false, NULL);
	Error err = {0};
	Kernel *k = kernel_lower(&t->task, &t->offer[0], backend_find("cc"), target_host(), &err);
	const char *text = k ? strstr(k->source, "kernel_0(") : NULL;

	CHECK(text && !strpbrk(text, "?%"));
	kernel_unref(k);
	harness_check(t, backend_find("cc"), 100);
}

/* Lanes over a tile run to whole vectors; of a large window what is read stands together, for all
 * rows that share it. */
static void check_whole_lanes(void)
{
	static const Case window = {"Y[c,p,q] += (X[c,p+r-3,q+s-3] else 0)*W[c,r,s] where p<8, "
				    "q<14",
				    "X=3x8x14 W=3x7x7"};
	Trial *t = harness_trials(&window, false, NULL);
	Error err = {0};
	Kernel *k = kernel_lower(&t->task, &t->offer[0], backend_find("cc"), target_host(), &err);
	const char *text = k ? strstr(k->source, "kernel_0(") : NULL;

	/* a vector of the second row is loaded once */
	const char *load = text ? strstr(text, "&tile3[22L]") : NULL;
	CHECK(load && !strstr(load + 1, "&tile3[22L]"));
	kernel_unref(k);
	harness_check(t, backend_find("cc"), 100);
}

static const Case contractions[] = {
	{"Y[i,j] += A[i,k]*B[k,j]", "A=53x71 B=71x45"},
	{"Y[h,i,j] += exp(A[h,i,k])*B[h,k,j]", "A=3x17x21:f64 B=3x21x35:f64"},
	{"Y[n,c,p,q] += (X[n,k,2*p+r-1,q+s-1] else 0)*W[c,k,r,s] where p<5, q<11",
	 "X=2x3x9x11 W=5x3x3x3"},
	{"Y[i,q,k,n] += (0 <= k/2-o && k/2-o <= 2 && 2*o+k%2 <= 2) ? "
	 "G[i,j,k/2-o,n,r]*W[j,q,2*o+k%2,r] : 0 "
	 "where k<7, o<2",
	 "G=3x8x3x4x6 W=8x10x3x6"},
	{"Y[a,b,c] += A[a,k]*B[b,k]*C[c,k]", "A=9x37 B=6x37 C=9x37"},
	/* stored where it belongs: lines of N hold whole panels and lie apart */
	{"Y[b,k,q] += X[b,c,q]*W[k,c]", "X=3x37x32 W=10x37"},
	{"Y[g,b,k,q] += X[g,b,c,q]*W[k,c]", "X=2x3x21x32 W=8x21"},
	/* both factors reach over edges */
	{"Y[b,k,p] += (X[b,c,3*p-2*r] else 0)*(W[k,c+r-1] else 0) where p<9, r<4",
	 "X=2x5x20 W=7x5"},
	{"Y[k,2*u+h:12,2*v+g:10] += (X[c,u+(h+1)/2-m,v+(g+1)/2-n] else 0)"
	 "*W[c,k,(h+1)%2+2*m,(g+1)%2+2*n] where u<6, v<5, h<2, g<2, m<2, n<2",
	 "X=7x6x5 W=7x9x4x4"},
	/* and one is a function of what it reads: transposed convolutions' weight gradients */
	{"Y[i,j,4*k+l:8] += (0 <= l+4*m-2 && l+4*m-2 <= 39 ? B[n,j,l+4*m-2] : 0)"
	 "*(0 <= m-k && m-k < 10 ? (0 < A[n,i,m-k] ? A[n,i,m-k] : 0.1*A[n,i,m-k]) : 0) "
	 "where k<2, l<4, m<11",
	 "B=2x7x40 A=2x9x10"},
	/* matrices wider than what is transposed at once */
	{"Y[h,i,j] += A[h,i,3*k]*B[k,j,2*h]", "A=2x53x200:f64 B=66x45x7:f64"},
	/* results side by side in runs, shorter than a block and longer; what members read grows
	 * along them, falls, stays, or goes its own way */
	{"D[b,c,y,x] += G[b,k,y,x]*W[k,c]; Y[b,c,y,x] = 0 < Z[b,c,y,x] ? D[b,c,y,x] : 0.0",
	 "G=5x7x5x9 W=7x37 Z=5x37x5x9"},
	{"D[b,c,y,x] += G[b,k,y,x]*W[k,c]; "
	 "Y[b,c,y,x] = D[b,c,y,x]*S[c] + T[b,12-x] + V[y*13+x/2] + N[x]",
	 "G=3x9x4x13 W=9x20 S=20 T=3x13 V=64 N=13"},
	/* as large as what is multiplied, and nothing that may stay where it is */
	{"Y[i,j] += f32(A[i,k])*f32(B[k,j])", "A=20x33:i32 B=33x64:i32"},
	{"Y[i,j] += f64(A[i,k])*B[k,j]", "A=9x33:i64 B=33x24:f64"},
	/* no element of K is left for some points of the batch */
	{"S[b,i,j] += k < b ? A[b,i,k]*B[b,k,j] : 0; Y[b,i,j] = max(S[b,i,j], 0.0) + C[i,j]",
	 "A=3x9x5 B=3x5x37 C=9x37"},
	/* windows of matrices over an edge, pairs along K together: elements of K are chosen in pairs */
	{"Y[b,k,p,q,i,j] += 0 <= p-r && p-r <= 3 && 0 <= q-s && q-s <= 3 ? "
	 "f32(X[b,c,p-r,q-s,i,t])*f32(bf16(W[c,k,r,s,j,t])) : 0 where p<6, q<6",
	 "X=24x2x4x4x4x4:bf16 W=2x24x3x3x4x4"},
	/* groups, written as quotients and remainders */
	{"Y[b,k,p] += X[b,k/5*7+c,p]*W[k,c] where k<15", "X=2x21x33 W=15x7"},
	{"Y[b,p,k] += X[b,c,k%6,p/4]*W[k/6,p%4,c] where p<20, k<18", "X=2x9x6x5 W=3x4x9"},
	/* panels that need no packing: as they are wide for AVX-512, AVX2 and SSE2; of each point of a batch;
	 * over two axes of K; and such as only look like it */
	{"Y[i,j] += X[i,k]*P[j/32,k,j%32] where j<96", "X=19x75 P=3x75x32"},
	{"Y[i,j] += X[i,k]*P[j/16,k,j%16] where j<80", "X=19x75 P=5x75x16"},
	{"Y[i,j] += X[i,k]*P[j/8,k,j%8] where j<24", "X=19x75 P=3x75x8"},
	{"Y[b,i,j] += X[b,i,k,l]*P[b,j/32,k,l,j%32] where j<64", "X=2x17x9x8 P=2x2x9x8x32"},
	{"Y[i,j] += X[i,k]*P[j/32,k,j%32] where j<40", "X=19x75 P=2x75x32"},
	{"Y[i,j] += X[i,k]*P[j/32,2*k,j%32] where j<64, k<37", "X=19x37 P=2x75x32"},
	{"Y[i,j] += X[i,k]*f32(bf16(P[j/32,k,j%32])) where j<64", "X=19x75 P=2x75x32"},
	/* functions of one index, along each of the three and of the result; of the batch and of two indices */
	{"Y[3*j+k:30,i] += A[l,i]*sin(X[l,k]*pow(2.0, 0.125*f32(j)))", "A=75x37 X=75x3"},
	{"Y[i,o] += sin(X[i,l%3]*pow(2.0, 0.125*f32(l/3)))*W[l,o] where l<30", "X=53x3 W=30x37"},
	{"Y[i,j] += A[i,k]*(B[k,j] + cos(f64(j))*exp(-0.1*f64(k)))", "A=17x71:f64 B=71x45:f64"},
	{"s[b,i,j] += A[b,i,k]*(B[b,k,j]*sin(f32(b)) + cos(f32(j*k))); "
	 "Y[b,i,j] = s[b,i,j]*exp(-0.1*f32(i))*tanh(f32(j))",
	 "A=3x17x21 B=3x21x35"},
};

/* Zero blocks are skipped in one of the ways to read each case, in the first two of `rest`. */
static void check_trims_of(const char *backend, const Case *windows, int n, int way, int wanted)
{
	static const char *const rest[] = {"; unpacked 1", "; unpacked 1; block 0 28; block 2 7",
					   "; unpacked 2", ""};
	Trial *list = NULL;
	for (int k = 0; k < n; k++)
		list = harness_trials(&windows[k], false, list);
	for (Trial *t = list; t; t = t->next) {
		int trims = 0;
		int ways = way & TENSORISE_NARROW ? 4 : 2 * COUNT(rest); /* B is packed */
		for (t->noffer = 0; t->noffer < ways; t->noffer++) {
			char text[80];
			Error err = {0};
			Schedule *s = &t->offer[t->noffer];
			snprintf(text, sizeof text, "tensorise %d%s", way + t->noffer % 2,
				 rest[t->noffer / 2]);
			CHECK(!schedule_parse(text, s, &err));
			Kernel *k = kernel_lower(&t->task, s, backend_find(backend), target_host(),
						 &err);
			trims += k && strstr(k->source, " ricci_zero_blocks(tab");
			kernel_unref(k);
		}
		CHECK_INT(trims, wanted);
	}
	harness_check(list, backend_find(backend), 100);
}

/* Windows over an edge across lines of at least as many places as panels have rows, in both
 * readings, as M and as N: panels of M in place list what they meet inside. */
static void check_trims(const char *backend)
{
	static const Case windows[] = {
		{"Y[k,p,q] += (X[c,p+2*r-2,q] else 0)*W[k,c,r] where p<4, q<30",
		 "X=20x4x30 W=33x20x3"},
		{"Y[k,2*u+h:24,q] += (X[c,u+(h+1)/2-m,q] else 0)*W[c,k,(h+1)%2+2*m] where u<12, "
		 "h<2, m<2",
		 "X=9x12x28 W=9x34x4"},
		{"Y[k,p,q,o] += (X[c,p+r-1,q+s-1,o] else 0)*W[k,c,r,s] where p<5, q<3, o<16",
		 "X=6x5x3x16:f64 W=35x6x3x3:f64"},
		/* functions of an element are computed once, in the copy */
		{"Y[k,p,q] += (0 <= p+2*r-2 && p+2*r-2 < 4 ? tanh(X[c,p+2*r-2,q]-0.5) : "
		 "0)*W[k,c,r] where p<4, q<30",
		 "X=20x4x30 W=33x20x3"},
		/* K is contiguous in A, what is listed of it is not */
		{"Y[k,y,x] += (X[x,y+r-7] else 0)*W[k,r] where y<20, r<14", "X=28x20 W=40x14"},
	};
	/* pairs along K together in memory */
	static const Case pairs[] = {
		{"Y[p,q,k] += (X[p+2*r-2,q,c] else 0)*W[k,r,c] where p<4, q<30",
		 "X=4x30x20:bf16 W=33x3x20:bf16"},
		{"Y[p,i,q,k] += 0 <= p+2*r-2 && p+2*r-2 < 4 ? "
		 "f32(X[c,p+2*r-2,i,q,t])*f32(W[k,r,c,t]) : 0 where p<4",
		 "X=2x4x3x7x6:bf16 W=33x3x2x6:bf16"},
	};
	const Micro *micro = micro_pick_narrow(target_host(), RICCI_F32, RICCI_BF16, RICCI_BF16);
	check_trims_of(backend, windows, COUNT(windows), TENSORISE_PADDED, 2);
	if (!micro || !micro->listed) {
		CHECK_SKIP("pairs of bf16 in place: this processor has no instructions for them");
		return;
	}
	check_trims_of(backend, pairs, COUNT(pairs), TENSORISE_PADDED | TENSORISE_NARROW, 2);
}

/* Any block sizes, either operand as M, K in any pieces, panels shared, A unpacked where that can be:
 * up to three phases. */
static void check_blocks(const char *backend, int wanted)
{
	Trial *list = NULL;
	int shared = 0, phases = 0, padded = 0, transposed = 0;
	static const char unshared[] = "schedule: shared panels have to be packed, of a plain read "
				       "that they don't unfold";
	for (int k = 0; k < COUNT(contractions); k++)
		list = harness_trials(&contractions[k], true, list);
	for (Trial *t = list; t; t = t->next) {
		if (strstr(t->text, "exp(A[")) /* one of its operands is no tensor */
			check_misfit(t, "tensorise 0; unpacked 1",
				     "schedule: the first operand can't stay unpacked, only a "
				     "plain read of the type that is multiplied, without "
				     "conditions, can");
		if (strstr(t->text, "exp(A["))
			check_misfit(t, "tensorise 1; unpacked 2",
				     "schedule: the second operand can't stay unpacked, only a "
				     "plain read of the sum's type under affine conditions can");
		if (strstr(t->text, "exp(A["))
			check_misfit(t, "tensorise 0; share 1", unshared);
		if (!strcmp(t->text, contractions[0].text)) {
			check_misfit(t, "tensorise 0; unpacked 1; share 3", unshared);
			check_misfit(
				t, "tensorise 8",
				"schedule: transposed copies are for operands that are plain reads "
				"without conditions, with lanes apart in memory");
			check_misfit(t, "tensorise 4",
				     "schedule: padded copies are for operands that one read "
				     "tells, under conditions on its indices");
		}
		for (t->noffer = 0; t->noffer < wanted; t->noffer++) {
			Schedule *s = &t->offer[t->noffer];
			memset(s, 0, sizeof *s);
			schedule_add(s, STEP_TENSORISE, 0, (t->noffer & 1) | TENSORISE_PADDED);
			if (t->noffer & 2 || !fits(t, s))
				s->step[0].arg &= ~TENSORISE_PADDED;
			s->step[0].arg |= t->noffer & 4 ? TENSORISE_NARROW : 0;
			if (!fits(t, s))
				s->step[0].arg &= ~TENSORISE_NARROW;
			s->step[0].arg |= TENSORISE_TRANSPOSED;
			if (harness_random() < 0.4 || !fits(t, s))
				s->step[0].arg &= ~TENSORISE_TRANSPOSED;
			for (int d = 0; d < 4; d++)
				schedule_add(s, STEP_BLOCK, d, 1 + (int)(harness_random() * 80));
			schedule_add(s, STEP_SHARE, 0, (int)(harness_random() * 4));
			schedule_add(s, STEP_RFACTOR, 0, 1 + (int)(harness_random() * 5));
			schedule_add(s, STEP_UNPACKED, 0,
				     t->noffer % 4 - 1 > 0 ? t->noffer % 4 - 1 : 0);
			for (int last = s->n - 1; !fits(t, s) && last > 4; last -= 2)
				s->step[last].arg = 0;
			shared += s->step[5].arg != 0;
			phases += s->step[5].arg != 0 && s->step[6].arg > 1;
			padded += (s->step[0].arg & TENSORISE_PADDED) != 0;
			transposed += (s->step[0].arg & TENSORISE_TRANSPOSED) != 0;
		}
	}
	CHECK(shared > wanted);
	CHECK(phases > wanted);
	CHECK(padded >= 2 * wanted);
	CHECK(transposed >= 2 * wanted);
	harness_check(list, backend_find(backend), 100);
}

/* The n-th allocation fails, for every n: an error, and nothing is kept. */
static void check_memory(const Trial *t, const Schedule *s, const char *backend)
{
	for (long n = 1; n < 100000; n++) {
		long live = mem_live();
		Error err = {0};
		mem_fail_at(n);
		Kernel *k = kernel_lower(&t->task, s, backend_find(backend), target_host(), &err);
		mem_fail_at(0);
		if (k) {
			kernel_unref(k);
			CHECK_INT(mem_live(), live);
			return;
		}
		CHECK_INT(err.code, RICCI_ENOMEM);
		CHECK_INT(mem_live(), live);
	}
	CHECK(false);
}

/* Rows 8 KB apart meet in one set of the first cache: a wide factor in such rows is packed first of
 * all, not read where it lies for each panel of the other. (With AVX-512 there are half as many,
 * and either takes as long.) */
static void check_crowded(void)
{
	const char *text = "ricci-task 1\ninput f32 64x512\ninput f32 512x2048\n"
			   "keep m0[i,j] += a0[i,k]*a1[k,j] where i<64, j<2048, k<512\n";
	Target target = *target_host();
	Error err = {0};
	Schedule s = {0};
	target.isa &= ISA_SSE2 | ISA_AVX2 | ISA_FMA | ISA_NEON;
	target.l1 = 32 << 10, target.l2 = 512 << 10, target.l3 = 32 << 20;
	Task *t = task_parse(text, &err);
	CHECK(t && schedule_offers(t, &target, 1, &s) == 1);
	for (int k = 0; t && k < s.n; k++)
		CHECK(s.step[k].kind != STEP_UNPACKED || s.step[k].arg < 2);
	task_free(t);
}

int main(void)
{
	Trial *list = NULL;
	check_crowded();
	check_text("");
	check_text("split 1 32; move 3 3; vectorise 3; unroll 2; parallel 1");
	check_text("split 1 4; vectorise 2; unroll 3; cache-read 2; parallel 1");
	check_text("split 1 64; move 2 0; rfactor 1; parallel 2; stream 4096");
	check_text("rows 1; stream 1; member 0; vectorise 1; member 2; split 0 64");
	check_text("carry 0; split 0 512; move 1 1; vectorise 2; parallel 0");
	check_text("tensorise 0; block 0 96; block 1 512; block 2 256; block 3 64; rfactor 4; "
		   "unpacked 1");
	check_text("threads 256; parallel 2; tile 0 4; thread 2 1");
	check_text("rows 1; threads 128; parallel 1");
	check_refused("spilt 1 2", "schedule: there is no step \"spilt\"");
	check_refused("split 1", "schedule: step 1 (split) lacks a number, or it is too large");
	check_refused("split 1000 2",
		      "schedule: step 1 (split) lacks a number, or it is too large");
	check_refused("unroll 1 split 1 2", "schedule: \";\" is missing before \"split 1 2\"");
	for (int k = COUNT(cases) - 1; k >= 0; k--)
		list = harness_trials(&cases[k], false, list);
	const Trial *product = list->next;
	check_misfit(product, "split 7 2",
		     "schedule: there is no loop 7 (the nest has 3 at this step)");
	check_misfit(product, "vectorise 0",
		     "schedule: inside vector loop 0 there may only be short loops that are "
		     "unrolled");
	check_misfit(product, "cache-read 3", "schedule: reads can't be cached before loop 3 of 3");
	check_misfit(
		product, "move 2 0; parallel 1",
		"schedule: loop 2 can't run in parallel, its iterations write the same elements");
	check_misfit(product, "rfactor 1; parallel 1",
		     "schedule: loop 0 can't be blocks, it is not a reduced one without lanes that "
		     "ends with its axis");
	check_misfit(product, "move 2 0; rfactor 1",
		     "schedule: 1 loops can't be blocks, only 0 run in parallel");
	check_misfit(list, "rfactor 1; parallel 1",
		     "schedule: there is no reduction in this nest that can run in blocks");
	check_misfit(product, "split 1 4; move 3 0",
		     "schedule: loop 1 runs inside a piece of itself");
	check_misfit(product, "split 1 8; split 3 6", "schedule: loop 3 can't be split by 6");
	check_misfit(product, "threads 64", "schedule: blocks of 64 threads are none of this nest");
	check_misfit(product, "thread 2 0",
		     "schedule: there are threads of a block on a grid only");
	check_misfit(
		list, "tensorise 0",
		"schedule: tensorise needs a sum of products whose operands share reduced indices "
		"and each have indices of their own");
	check_misfit(product, "tensorise 18", "schedule: groups of warps are a GPU's");
	check_misfit(product, "tensorise 0; unroll 1",
		     "schedule: step 2 does not fit a tensorised contraction");
	const Trial *parts = list;
	while (parts->next)
		parts = parts->next;
	check_written(parts);
	check_whole_lanes();
	check_wraps();
	check_shared();
	check_residues();
	check_memory(product, &product->offer[0], "tcc");
	check_memory(product->next, &product->next->offer[0], "cc");
	check_memory(product, &product->offer[product->noffer - 1], "cc");
	check_random(list, "tcc", 12);
	check_random(list, "cc", 3);
	check_blocks("tcc", 12);
	check_blocks("cc", 2);
	check_trims("tcc");
	check_running("tcc", 12);
	check_running("cc", 4);
	/* parts, lines, lanes of reads, lanes of results */
	check_once("Y[b,i] += X[b,j] where j < i+1, i < X.size(1)", "X=3x2048", 4);
	check_once("Y[b,i] max= i <= j ? X[b,j] : -inf where i<4096", "X=3x4096", 4);
	/* parts, elements: the lanes are written out */
	check_once("Y[b,i,c] += X[b,j,c] where j < i+1, i < X.size(1)", "X=20x64x32", 2);
	check_misfit(product, "carry 0", "schedule: nothing can be carried along loop 0");
	return harness_done();
}

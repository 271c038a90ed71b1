/* test_oracle.c - the oracle (oracle.h) against values from docs/notation.md by hand: it judges the
 * library, so nothing of the library judges it. */
#include "tests/check.h"
#include "tests/oracle/oracle.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 1000000 };

static OracleTensor tensor(const char *name, const char *type, int rank, const int64_t *shape,
			   const double *v)
{
	OracleTensor t = {.name = name, .type = oracle_type(type), .rank = rank, .size = 1};
	for (int d = 0; d < rank; d++)
		t.size *= t.shape[d] = shape[d];
	t.at = calloc((size_t)t.size, sizeof *t.at);
	for (int64_t i = 0; i < t.size; i++) {
		if (oracle_is_float(t.type))
			t.at[i] = (OracleValue){.f = v[i], .magnitude = 1, .exact = true};
		else
			t.at[i] = (OracleValue){.i = (int64_t)v[i], .exact = true};
	}
	return t;
}

static const double numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
static const double places[] = {2, 0, 1};

/* The result of a text over A (f64, 10), M (f64, 2x3), B (f32, 2), T (i32, 3) and S (i8, 2), as
 * text, numbers one after the other; or the error. */
static const char *result(const char *text)
{
	static char out[500];
	OracleTensor x[] = {tensor("A", "f64", 1, (int64_t[]){10}, numbers),
			    tensor("M", "f64", 2, (int64_t[]){2, 3}, numbers),
			    tensor("B", "f32", 1, (int64_t[]){2}, numbers),
			    tensor("T", "i32", 1, (int64_t[]){3}, places),
			    tensor("S", "i8", 1, (int64_t[]){2}, (double[]){100, -100})};
	Oracle *o = oracle_run(text, true, 5, x, MOST);
	int n = 0;
	const OracleTensor *y = oracle_result(o, 0);
	if (!y)
		snprintf(out, sizeof out, "%s", oracle_error(o) ? oracle_error(o) : "gave up");
	for (int64_t i = 0; y && i < y->size; i++) {
		double v = oracle_is_float(y->type) ? y->at[i].f : (double)y->at[i].i;
		bool lost = isinf(y->at[i].magnitude);
		n += snprintf(out + n, sizeof out - (size_t)n, i ? " %s%.9g" : "%s%.9g",
			      lost ? "~" : "", v);
	}
	oracle_free(o);
	for (int k = 0; k < 5; k++)
		free(x[k].at);
	return out;
}

static void test_assignments(void)
{
	CHECK_STR(result("Y[i] = A[i+1] - A[i]"), "1 1 1 1 1 1 1 1 1");
	CHECK_STR(result("Y[i] += M[i,j]"), "6 15");
	CHECK_STR(result("Y[j] *= M[i,j]"), "4 10 18");
	CHECK_STR(result("Y[] max= M[i,j]"), "6");
	CHECK_STR(result("Y[T[i]:4] += A[i] where i < 3"), "2 3 1 0");
	CHECK_STR(result("Y[2*i+j:6] max= M[i,j]"), "1 2 4 5 6 -inf");
	CHECK_STR(result("Y[i:3] = 7"), "7 7 7");
	CHECK_STR(result("m[i] max= M[i,j]; Y[i,j] = M[i,j]/m[i]"),
		  "0.333333333 0.666666667 1 0.666666667 0.833333333 1");
}

static void test_ranges(void)
{
	CHECK_STR(result("Y[p] += A[p+r]*M[0,r]"), "14 20 26 32 38 44 50 56");
	CHECK_STR(result("Y[i] += A[j] where j < i+1, i < 4"), "1 3 6 10");
	CHECK_STR(result("Y[i] = i > 0 ? B[i-1] : 0"), "0 1 2");
	CHECK_STR(result("Y[i,j] = j <= i ? M[i,j] : 0"), "1 0 0 4 5 0");
	CHECK_STR(result("Y[i] = A[i] + (i%2 == 0 ? A[i+1] : A[i-1])"),
		  "3 3 7 7 11 11 15 15 19 19");
	CHECK_STR(result("Y[i] = i%2 == 0 ? A[i+1] : A[i-1]"), "2 1 4 3 6 5 8 7 10 9");
	CHECK_STR(result("Y[i] = A[i+1-2*(i%2)]"), "2 1 4 3 6 5 8 7 10 9");
	CHECK_STR(result("Y[i] = A[i] + (i < 2 ? f64(B[i]) : 0)"), "2 4 3 4 5 6 7 8 9 10");
	CHECK_STR(result("Y[i] = A[i] + f64(B[i])"),
		  "the range of i is ambiguous, at \"A[i] + f64(B[i])\"");
	CHECK_STR(result("Y[i] = B[i-1] else 5 where i < 4"), "5 1 2 5");
	CHECK_STR(result("Y[i] = A[T[i]]"), "3 1 2");
	CHECK_STR(result("Y[p] += A[p+r] where r in 0..2, p < 2"), "3 5");
	CHECK_STR(result("Y[i] = B[i-1]"), "index -1 leaves dimension 0 of B, of extent 2, at "
					   "\"B[i-1]\"");
	CHECK_STR(result("Y[i] = A[0]"), "the range of i is not known, at \"A[0]\"");
}

static void test_types(void)
{
	CHECK_STR(result("Y[i] = S[i] + S[i]"), "-56 56"); /* wraps */
	CHECK_STR(result("Y[i] = -S[i]*S[i]"), "-16 -16");
	CHECK_STR(result("Y[i] = i8(i32(S[i])*2)"), "127 -128"); /* clipped */
	CHECK_STR(result("Y[i] = S[i]/3"), "33 -34");
	CHECK_STR(result("Y[i] = S[i]%3"), "1 2");
	CHECK_STR(result("Y[i] = i32(-A[i]/2) where i < 3"), "0 -1 -1");
	CHECK_STR(result("Y[i] = i8(A[i]*100)where i < 2"), "100 127");
	CHECK_STR(result("Y[i] = B[i]*0.1"), "0.100000001 0.200000003"); /* 0.1 in f32 */
	CHECK_STR(result("Y[i] = f64(f16(A[i]/3)) where i < 1"), "0.333251953");
	CHECK_STR(result("Y[i] = (A[i] > 1) where i < 2"), "0 1");
	CHECK_STR(result("Y[i] = A[i] + B[i]"), "types differ, at \"A[i] + B[i]\"");
	CHECK_STR(result("Y[i] = S[i]*300"), "300 does not fit the type, at \"300\"");
}

static void test_doubts(void)
{
	CHECK_STR(result("Y[] = sqrt(A[1])*sqrt(A[1]) < 2 ? 1 : 0"), "~0");
	CHECK_STR(result("Y[i] = floor(A[i]/3) where i < 3"), "0 0 1");
	CHECK_STR(result("Y[i] = floor(A[i]*(1.0/A[2]))where i < 3"), "0 0 ~0");
	CHECK_STR(result("Y[] = 0*(1e300*(A[9]*1e300))"), "~0");
	CHECK_STR(result("Y[] = log(A[0]-1)"), "-inf");
	/* NaN where the last three terms are added first */
	CHECK_STR(result("Y[] += i == 0 ? -inf : 8e307*A[0] where i < 4"), "~0");
	CHECK_STR(result("Y[] = -inf + 8e307*A[0] + 8e307*A[0] + 8e307*A[0]"), "~0");
	CHECK_STR(result("Y[] += i == 0 ? -inf : A[i] where i < 4"), "-inf");
	CHECK_STR(result("Y[] += i == 0 ? -inf : 8e307*A[0] where i < 2"), "-inf");
}

static void test_loops(void)
{
	static const char text[] = "loop 2 {\n"
				   "\tslice V1 = M;\n"
				   "\tstate V2 = Z;\n"
				   "\tT1[i] = V2[i] + V1[i];\n"
				   "\tnext V2 = T1;\n"
				   "\tstack S1 = T1;\n"
				   "\tstack and end S2 = V2;\n"
				   "\tfinal S3 = V2;\n"
				   "}\n";
	char whole[600];
	snprintf(whole, sizeof whole, "Z[i:3] = f64(0); %sY[i,j] = S1[i,j];", text);
	CHECK_STR(result(whole), "1 2 3 5 7 9");
	snprintf(whole, sizeof whole, "Z[i:3] = f64(0); %sY[i,j] = S2[i,j];", text);
	CHECK_STR(result(whole), "0 0 0 1 2 3 5 7 9");
	snprintf(whole, sizeof whole, "Z[i:3] = f64(0); %sY[i] = S3[i];", text);
	CHECK_STR(result(whole), "5 7 9");
}

int main(void)
{
	test_assignments();
	test_ranges();
	test_types();
	test_doubts();
	test_loops();
	return check_done();
}

/* test_summation.c - sums of products of several factors are computed by partial sums where these cost less, over the
 * range where their conditions hold, functions of few axes once, look-ups along lines, and all keep their values.
 *
 * A table of programs says what becomes of each. Random products, with conditions, padding, quotients, sums of terms
 * with common factors, scatters, and their gradients are judged by the interpreter. RICCI_FUZZ: the number of
 * products; RICCI_SEED: the first one's number. */
#include "jit/rewrite/rewrite.h"
#include "tests/autodiff/program.h"

enum { PRODUCTS = 100, AXES = 6, OPERANDS = 20 };

/* ---- which partial sums ---- */

typedef struct Case {
	const char *text;
	int n;
	int rank[4];
	int64_t shape[4][6];
	const char *want;
} Case;

static const Case cases[] = {
	/* a chain of products */
	{"Y[i,l] += A[i,j]*B[j,k]*C[k,l]",
	 3,
	 {2, 2, 2},
	 {{16, 64}, {64, 64}, {64, 64}},
	 "T1[i,j] += x0[i,k]*x1[k,j];\nR0[i,j] += x2[k,j]*T1[i,k];\n"},
	/* a convolution over points: their sums come before the weights */
	{"Y[b,n,o] += X[b,n,j,c]*W[b,n,j,m]*H[c,m,o]",
	 3,
	 {4, 4, 3},
	 {{2, 16, 16, 32}, {2, 16, 16, 8}, {32, 8, 64}},
	 "T1[i,j,k,l] += x0[i,j,m,l]*x1[i,j,m,k];\nR0[i,j,k] += x2[l,m,k]*T1[i,j,m,l];\n"},
	/* pairs of rows side by side: each row meets its half of the weights once */
	{"Z[i,j,c] = c < 32 ? H[i,c] : G[j,c-32] where c<64; Y[i,j,k] += Z[i,j,c]*W[k,c]",
	 3,
	 {2, 2, 2},
	 {{64, 32}, {64, 32}, {64, 64}},
	 "T1[i,j] += x0[i,k]*x2[j,k] where k<32;\n"
	 "T2[i,j] += x1[i,k]*x2[j,k+32];\n"
	 "R0[i,j,k] = T1[i,k] + T2[j,k];\n"},
	/* functions of these, and gradients of the weights, whose parts they are */
	{"Z[i,j,c] = c < 32 ? H[i,c] : G[j,c-32] where c<64; Y[k,c] += max(Z[i,j,c],0)*D[i,j,k]",
	 3,
	 {2, 2, 3},
	 {{64, 32}, {64, 32}, {64, 64, 64}},
	 "T1[i,j] += x2[i,k,j];\n"
	 "T2[i,j] += T1[k,i]*max(x0[k,j], 0);\n"
	 "T3[i,j] += x2[k,i,j];\n"
	 "T4[i,j] += T3[k,i]*max(x1[k,j], 0);\n"
	 "R0[i,j] = T2[i,j] else (T4[i,j-32] else 0) where j<64;\n"},
	/* but not where each point has its own */
	{"Z[i,c] = c < 32 ? H[i,c] : G[i,c-32] where c<64; Y[i,k] += Z[i,c]*W[k,c]",
	 3,
	 {2, 2, 2},
	 {{512, 32}, {512, 32}, {64, 64}},
	 "T1[i,j] = x0[i,j] else x1[i,j-32] where j<64;\n"
	 "R0[i,j] += T1[i,k]*x2[j,k];\n"},
	/* rows that are looked up: each meets the weights once */
	{"U[e,c] = H[max(min(i32(S[e]),7),0),c] where e<512; Y[e,k] += U[e,c]*W[k,c]",
	 3,
	 {2, 1, 2},
	 {{8, 64}, {512}, {64, 64}},
	 "T1[i,j] += x2[j,k]*x0[i,k];\n"
	 "R0[i,j] = T1[max(min(i64(i32(x1[i])), 7), 0),j];\n"},
	/* products of products, with a factor between them */
	{"S[i,j] += Q[i,c]*K[j,c]; T[i,j] = S[i,j]*B[i]; Y[i,d] += T[i,j]*V[j,d]",
	 4,
	 {2, 2, 1, 2},
	 {{256, 16}, {256, 16}, {256}, {256, 16}},
	 "T1[i,j] += x1[k,j]*x3[k,i];\n"
	 "R0[i,j] += x0[i,k]*x2[i]*T1[j,k];\n"},
	/* a sum of which several equations read a part */
	{"T[i,j,c] += D[i,j,k]*W[k,c]; A[i,c] += T[i,j,c] where c<32; B[j,c] += T[i,j,c+32] "
	 "where c<32; Y[i,c] = A[i,c]*B[i,c]",
	 2,
	 {3, 2},
	 {{64, 64, 64}, {64, 64}},
	 "T1[i,j] += x0[i,k,j];\n"
	 "T2[i,j] += T1[i,k]*x1[k,j] where j<32;\n"
	 "T3[i,j] += x0[k,i,j];\n"
	 "T4[i,j] += T3[i,k]*x1[k,j+32];\n"
	 "R0[i,j] = T2[i,j]*T4[i,j];\n"},
	/* the sum over a diagonal isn't one over a dimension */
	{"Y[] += sqrt(A[i%2,k,k]) where i<20000",
	 1,
	 {3},
	 {{2, 8, 8}},
	 "R0[] += sqrt(x0[i%2,j,j]) where i<20000;\n"},
	/* a factor with an axis of its own */
	{"Y[b,o] += X[b,i]*W[o,i,j]",
	 2,
	 {2, 3},
	 {{64, 32}, {64, 32, 32}},
	 "T1[i,j] += x1[i,j,k];\nR0[i,j] += x0[i,k]*T1[j,k];\n"},
	{"Y[b] += A[b,i]*B[b,j]",
	 2,
	 {2, 2},
	 {{64, 256}, {64, 256}},
	 "T1[i] += x1[i,j];\nR0[i] += x0[i,j]*T1[i];\n"},
	/* terms with common factors; a divisor is one, too */
	{"Y[i,j] += A[i,k]*C[k,j,l]*exp(B[i,j,l]) - A[i,k]*C[k,j,l]/D[i,j,l]",
	 4,
	 {2, 3, 3, 3},
	 {{64, 512}, {512, 32, 8}, {64, 32, 8}, {64, 32, 8}},
	 "T1[i,j,k] = exp(x2[i,j,k]);\n"
	 "T2[i,j,k] += x0[i,l]*x1[l,j,k];\n"
	 "R0[i,j] += (T1[i,j,k] - 1/x3[i,j,k])*T2[i,j,k];\n"},
	/* functions of some of the axes that meet nowhere but in a sum */
	{"Y[i,k] += X[i,n]*cos(k*n*0.1) - X[i,n]*Z[n]*sin(k*n*0.1) where k<64",
	 2,
	 {2, 1},
	 {{64, 64}, {64}},
	 "T1[i,j] = cos(0.1*f64(i*j)) where i<64, j<64;\n"
	 "T2[i,j] = sin(0.1*f64(i*j)) where i<64, j<64;\n"
	 "R0[i,j] += x0[i,k]*T1[j,k] - x0[i,k]*x1[k]*T2[j,k];\n"},
	/* terms that are products of matrices each, with what all have in common */
	{"Y[i,j] += (A[i,k,0]*B[k,j,0] - A[i,k,1]*B[k,j,1])*D[k]",
	 3,
	 {3, 3, 1},
	 {{64, 64, 2}, {64, 64, 2}, {64}},
	 "T1[i,j] += x0[i,k,0]*x1[k,j,0]*x2[k];\n"
	 "T2[i,j] += x0[i,k,1]*x1[k,j,1]*x2[k];\n"
	 "R0[i,j] = T1[i,j] - T2[i,j];\n"},
	/* but for differences, which lose less in front of a product */
	{"Y[i,j] += (A[i,k] - B[k])*C[k,j] - D[i,k]",
	 4,
	 {2, 1, 2, 2},
	 {{64, 64}, {64}, {64, 64}, {64, 64}},
	 "T1[i,j] += (x0[i,k] - x1[k])*x2[k,j];\n"
	 "T2[i] += x3[i,j];\n"
	 "R0[i,j] = T1[i,j] - T2[i];\n"},
	/* terms of some of the result's axes, once for all that they repeat along */
	{"Y[i,j,o] += X[i,c]*A[o,c] + Z[j,c]*B[o,c]",
	 4,
	 {2, 2, 2, 2},
	 {{32, 32}, {64, 32}, {32, 32}, {64, 32}},
	 "T1[i,j] += x0[i,k]*x1[j,k];\n"
	 "T2[i,j] += x2[i,k]*x3[j,k];\n"
	 "R0[i,j,k] = T1[i,k] + T2[j,k];\n"},
	/* rows are multiplied before they are gathered, an image before it is enlarged */
	{"Y[p,o] += H[min(max(i32(P[p]*9), 0), 15),c]*W[o,c]",
	 3,
	 {2, 1, 2},
	 {{16, 64}, {256}, {64, 64}},
	 "T1[i,j] += x2[j,k]*x0[i,k];\n"
	 "R0[i,j] = T1[min(max(i64(i32(9*x1[i])), 0), 15),j];\n"},
	{"Y[b,k,p,q] += X[b,c,p/2,q/2]*W[k,c] where p<32, q<32",
	 2,
	 {4, 2},
	 {{2, 32, 16, 16}, {32, 32}},
	 "T1[i,j,k,l] += x1[j,m]*x0[i,m,k,l];\nR0[i,j,k,l] = T1[i,j,k/2,l/2];\n"},
	/* terms with the same gathered index are added up first, */
	{"Y[o,c] += G[p,o]*H[min(max(i32(P[p]*9), 0), 15),c]",
	 3,
	 {2, 2, 1},
	 {{256, 64}, {16, 64}, {256}},
	 "T1[min(max(i64(i32(9*x2[j])), 0), 15):16,i] += x0[j,i];\n"
	 "R0[i,j] += T1[k,i]*x1[k,j];\n"},
	/* and those with the same scattered index, */
	{"Y[min(max(i32(P[p]*9), 0), 15):16,c] += G[p,o]*W[o,c]",
	 3,
	 {1, 2, 2},
	 {{256}, {256, 64}, {64, 64}},
	 "T1[min(max(i64(i32(9*x0[j])), 0), 15):16,i] += x1[j,i];\n"
	 "R0[i,j] += T1[i,k]*x2[k,j];\n"},
	/* but not for more rows than indices */
	{"Y[p,o] += H[min(max(i32(P[p]*9), 0), 299),c]*W[o,c]",
	 3,
	 {2, 1, 2},
	 {{300, 64}, {256}, {64, 64}},
	 "R0[i,j] += x0[min(max(i64(i32(9*x1[i])), 0), 299),k]*x2[j,k];\n"},
	/* what repeats along an axis that is summed, between others */
	{"T[l,m] = A[l]*2 where m<6; Y[i] += T[l,m]*D[n]*(C[l] < 1 ? 0 : B[l,i])",
	 4,
	 {1, 1, 1, 2},
	 {{8}, {4}, {8}, {8, 16}},
	 "T1[i] = 2*x0[i];\n"
	 "R0[i] += 6*(T1[j]*x1[k]*(x2[j] < 1 ? 0 : x3[j,i]));\n"},
	/* choices of several conditions: of the result, with the range that they leave; of what is summed */
	{"T[i,j,k,l] += k < 2 || k == 2 && l < 3 ? G[m,i,n]*(0 <= k+n-2 ? X[m,j,k+n-2] : 0) : 0"
	 " where k<5, l<5",
	 2,
	 {3, 3},
	 {{8, 24, 16}, {8, 24, 16}},
	 "T1[i,j,k,l] += 0 <= k + m - 2 ? x0[n,i,m]*x1[n,j,k+m-2] : 0 where l<5;\n"
	 "T2[i,j,k,l] = k < 2 || l < 3 ? T1[i,j,k,l] : 0;\n"
	 "R0[i,j,k,l] = T2[i,j,k,l] else 0 where k<5;\n"},
	{"Y[b,o,p] += k < 2 || k == 2 && l < 3 ? (X[b,c,p+k-2,l] else 0)*W[o,c,k,l] : 0 where p<16",
	 2,
	 {4, 4},
	 {{8, 24, 16, 5}, {24, 24, 5, 5}},
	 "T1[i,j,k,l] = k < 2 || l < 3 ? x1[i,j,k,l] : 0 where k<3;\n"
	 "R0[i,j,k] += 0 <= k + l - 2 ? x0[i,m,k+l-2,n]*T1[j,m,l,n] : 0;\n"},
	/* what data tell of the result leaves the sum; of what is summed it stays */
	{"D[j,l] += !(Z[j,l] < 0) ? (G[k,l-n+1] else 0)*W[k,j,n] : 0",
	 3,
	 {2, 2, 3},
	 {{24, 64}, {32, 64}, {32, 24, 3}},
	 "T1[i,j] += 0 <= j - k + 1 && j - k + 1 < 64 ? x1[l,j-k+1]*x2[l,i,k] : 0 where j<64;\n"
	 "R0[i,j] = !(x0[i,j] < 0) ? T1[i,j] : 0;\n"},
	{"Y[i,j] += 0 < M[i,k] ? A[i,k]*B[k,j] : 0",
	 3,
	 {2, 2, 2},
	 {{64, 64}, {64, 64}, {64, 64}},
	 "R0[i,j] += 0 < x0[i,k] ? x1[i,k]*x2[k,j] : 0;\n"},
	/* functions of what is padded are under its condition, where they are 0 outside; others are not */
	{"Y[k,p] += max(X[c,p+r-1] else 0, 0)*W[k,c,r] where p<64",
	 2,
	 {2, 3},
	 {{24, 64}, {32, 24, 3}},
	 "R0[i,j] += (0 <= j + k - 1 && j + k - 1 < 64 ? max(x0[l,j+k-1], 0) : 0)*x1[i,l,k] where "
	 "j<64;\n"},
	{"x = X[c,p+r-1] else 0; Y[k,p] += max(x, 0.5*x)*W[k,c,r] where p<64",
	 2,
	 {2, 3},
	 {{24, 64}, {32, 24, 3}},
	 "R0[i,j] += (0 <= j + k - 1 && j + k - 1 < 64 ? max(x0[l,j+k-1], 0.5*x0[l,j+k-1]) : "
	 "0)*x1[i,l,k] where j<64;\n"},
	{"x = X[c,p+r-1] else 0; Y[k,p] += x*sigmoid(x)*W[k,c,r] where p<64",
	 2,
	 {2, 3},
	 {{24, 64}, {32, 24, 3}},
	 "R0[i,j] += (x0[l,j+k-1] else 0)*(0 <= j + k - 1 && j + k - 1 < 64 ? sigmoid(x0[l,j+k-1]) "
	 ": 0)*x1[i,l,k] where j<64;\n"},
	{"D[j,l] += 0 <= l-n+1 && l-n+1 < 64 ? W[k,j,n]*((!(Z[j,l] < 0) ? G[k,l-n+1] : 0)+(!(0 < "
	 "Z[j,l]) ? 0.5*G[k,l-n+1] : 0)) : 0",
	 3,
	 {3, 2, 2},
	 {{32, 24, 3}, {24, 64}, {32, 64}},
	 "T1[i,j] += 0 <= j - k + 1 && j - k + 1 < 64 ? x2[l,j-k+1]*x0[l,i,k] : 0 where j<64;\n"
	 "R0[i,j] = ((!(x1[i,j] < 0) ? 1.0 : 0.0) + (!(0 < x1[i,j]) ? 0.5 : 0.0))*T1[i,j];\n"},
	/* leaves a condition that is met at each of its places */
	{"Y[j,l] += 0 <= l-n+1 && l-n+1 < 64 ? G[k,l-n+1]*exp(W[k,j,n]) : 0 where l<64",
	 2,
	 {2, 3},
	 {{32, 64}, {32, 24, 3}},
	 "T1[i,j,k] = exp(x1[j,i,k]);\n"
	 "R0[i,j] += 0 <= j - k + 1 && j - k + 1 < 64 ? x0[l,j-k+1]*T1[i,l,k] : 0 where j<64;\n"},
	/* what data tell of few elements that are used often is a tensor */
	{"Y[i,j] += 0 < M[i,k] ? A[i,k]*B[k,j] : 0",
	 3,
	 {2, 2, 2},
	 {{64, 64}, {64, 64}, {64, 512}},
	 "T1[i,j] = 0 < x0[i,j] ? x1[i,j] : 0;\n"
	 "R0[i,j] += T1[i,k]*x2[k,j];\n"},
	{"Y[k,p] += max(X[c,p+r-1] else 0, 1)*W[k,c,r] where p<64",
	 2,
	 {2, 3},
	 {{24, 64}, {32, 24, 3}},
	 "R0[i,j] += max(x0[l,j+k-1] else 0, 1)*x1[i,l,k] where j<64;\n"},
	/* a product of quaternions whose table stands in an index */
	{"Y[k,u,p] += W[k,c,v]*X[c,u == v ? 0 : u == 0 ? v : v == 0 ? u : 6-u-v,p] where u<4, v<4",
	 2,
	 {3, 3},
	 {{16, 24, 4}, {24, 4, 256}},
	 "T1[i,j,k,l] += k == (l == m ? 0 : l == 0 ? m : m == 0 ? l : -l - m + 6) ? x0[i,j,m] : 0 "
	 "where k<4, l<4;\n"
	 "R0[i,j,k] += x1[l,m,k]*T1[i,l,m,j];\n"},
	/* but not where the table leaves the tensor, and something else is summed */
	{"Y[k,u,p] += W[k,c,v]*(X[c,u == v ? 0 : u+v-1,p] else 2) where u<4, v<4",
	 2,
	 {3, 3},
	 {{16, 24, 4}, {24, 3, 256}},
	 "R0[i,j,k] += x0[i,l,m]*(x1[l,j == m ? 0 : j+m-1,k] else 2) where j<4;\n"},
	{"Y[i,j] += A[i,k]*B[k,j] - C[i,k]*D[k,j]",
	 4,
	 {2, 2, 2, 2},
	 {{64, 4}, {4, 64}, {64, 4}, {4, 64}},
	 "R0[i,j] += x0[i,k]*x1[k,j] - x2[i,k]*x3[k,j];\n"},
	/* a condition stays with the reads that it keeps inside, and with no others */
	{"Y[i,l] += j+k < 64 ? A[i,j]*B[j+k]*C[k,m]*D[m,l] : 0 where k<64",
	 4,
	 {2, 1, 2, 2},
	 {{64, 64}, {64}, {64, 64}, {64, 64}},
	 "T1[i,j] += i + k < 64 ? x1[i+k]*x2[k,j] : 0 where i<64;\n"
	 "T2[i,j] += x3[k,j]*T1[i,k];\n"
	 "R0[i,j] += x0[i,k]*T2[k,j];\n"},
	{"Y[i,m] += j < k+1 ? A[i,j]*B[j,k]*C[k,l]*D[l,m] : 0",
	 4,
	 {2, 2, 2, 2},
	 {{32, 64}, {64, 64}, {64, 64}, {64, 32}},
	 "T1[i,j] += x2[i,k]*x3[k,j];\n"
	 "T2[i,j] += i < k + 1 ? x1[i,k]*T1[k,j] : 0;\n"
	 "R0[i,j] += x0[i,k]*T2[k,j];\n"},
	/* a condition around some of the factors, whose other branch they are, too */
	{"Y[b,i] += (1 - abs(X[b,i] - k) < 0 ? 0 : 2*(G[b,o]*C[o,i,k]))*sign(X[b,i] - k)",
	 3,
	 {2, 2, 3},
	 {{64, 64}, {64, 64}, {64, 64, 8}},
	 "T1[i,j,k] += x2[l,j,k]*(2*x1[i,l]);\n"
	 "R0[i,j] += !(1 - abs(x0[i,j] - f64(k)) < 0) ? sign(x0[i,j] - f64(k))*T1[i,j,k] : 0;\n"},
	/* conditions of one axis shorten its range: of the result, in which the part is placed, */
	{"Y[b,3*n+c:24] += 2 <= n && n < 4 ? A[b,k,n-2]*B[n,k,c] : 0 where c<3",
	 2,
	 {3, 3},
	 {{8, 16, 2}, {8, 16, 3}},
	 "T1[i,3*j+k:6] += x0[i,l,j]*x1[j+2,l,k];\n"
	 "R0[i,j] = T1[i,j-6] else 0 where j<24;\n"},
	/* of a place that has a condition, */
	{"Y[c < 8 ? min(max(i32(9*P[n]), 0), 11) : 0:12,c < 8 ? c : 0:8] += c < 8 ? X[n,c] : 0",
	 2,
	 {1, 2},
	 {{16}, {16, 24}},
	 "R0[min(max(i64(i32(9*x0[j])), 0), 11):12,i] += x1[j,i] where i<8;\n"},
	/* of what is summed; but not where nearly all of it stays */
	{"Y[i,n] += n < 30 && 3 <= k && k < 20 ? A[i,k]*B[k,n] : 0",
	 2,
	 {2, 2},
	 {{8, 24}, {24, 32}},
	 "R0[i,j] += j < 30 ? x0[i,k+3]*x1[k+3,j] : 0 where k<17;\n"},
	/* what a rectifier let through is positive: the sum isn't kept */
	{"T[i,j] += A[i,k]*B[k,j]; Y[i,j] = 0 < T[i,j] + C[j] ? T[i,j] + C[j] : 0;"
	 "Z[i,j] = Y[i,j] + (0 < T[i,j] + C[j] ? D[i,j] : 0)",
	 4,
	 {2, 2, 1, 2},
	 {{8, 24}, {24, 16}, {16}, {8, 16}},
	 "T1[i,j] += x0[i,k]*x1[k,j];\n"
	 "T2[i,j] = 0 < T1[i,j] + x2[j] ? T1[i,j] + x2[j] : 0;\n"
	 "R0[i,j] = T2[i,j] + (0 < T2[i,j] ? x3[i,j] : 0);\n"},
	/* elements that indices scatter and gather */
	{"Y[2*i:64,l] += A[i,j]*B[j,k]*C[k,l]",
	 3,
	 {2, 2, 2},
	 {{32, 64}, {64, 64}, {64, 64}},
	 "T1[i,j] += x0[i,k]*x1[k,j];\nR0[2*j:64,i] += x2[k,i]*T1[j,k];\n"},
	/* each of the many products is a sum's own, but those of a matrix are not */
	{"Y[i] += A[i,j]*B[j,k]*C[k,i]",
	 3,
	 {2, 2, 2},
	 {{96, 96}, {96, 96}, {96, 96}},
	 "T1[i,j] += x1[i,k]*x2[k,j];\nR0[i] += x0[i,j]*T1[j,i];\n"},
	/* what the place of a scatter has no part in */
	{"Y[i+j:63,l] += A[i,k]*B[k,j,l]*C[j]",
	 3,
	 {2, 3, 1},
	 {{32, 64}, {64, 32, 16}, {32}},
	 "T1[i,j,k] += x0[i,l]*x1[l,j,k];\nR0[j+k:63,i] += T1[j,k,i]*x2[k];\n"},
	/* sums that a window's place has no part in; padding stays with the window */
	{"Y[b,j,p] += (X[b,o,p+r-1] else 0)*W[o,j]*D[j,r] where p<32",
	 3,
	 {3, 2, 2},
	 {{4, 128, 32}, {128, 32}, {32, 3}},
	 "T1[i,j,k] += x1[l,j]*x0[i,l,k];\n"
	 "R0[i,j,k] += 0 <= k + l - 1 && k + l - 1 < 32 ? x2[j,l]*T1[i,j,k+l-1] : 0 where "
	 "k<32;\n"},
	{"Y[b,j,p] += X[b,o,p+2*r]*W[o,j] where p<60, r<3",
	 2,
	 {3, 2},
	 {{4, 128, 64}, {128, 32}},
	 "T1[i,j,k] += x1[l,j]*x0[i,l,k];\nR0[i,j,k] += T1[i,j,k+2*l] where k<60;\n"},
	/* of a gather, but for rows of a table that nothing reads and that are no numbers */
	{"N[min(max(i32(3*A[p])-1, 0), 2):5] += f64(1); H[v,c] = X[v,c]/N[v]; "
	 "Y[o,c] += G[p,o]*H[min(max(i32(3*A[p])-1, 0), 2),c]",
	 3,
	 {1, 2, 2},
	 {{256}, {5, 64}, {256, 64}},
	 "T1[min(max(i64(i32(3*x0[i]))-1, 0), 2):5] += f64(1);\n"
	 "T2[i,j] = x1[i,j]/T1[i];\n"
	 "T3[min(max(i64(i32(3*x0[j]))-1, 0), 2):5,i] += x2[j,i];\n"
	 "T4[i] max= abs(T3[i,j]);\n"
	 "T5[i,j] = T4[i] == 0 ? 0 : T2[i,j];\n"
	 "R0[i,j] += T3[k,i]*T5[k,j];\n"},
	/* an axis along which the sum repeats once its condition is decided counts */
	{"Y[i,l] += j < 3 ? A[i,k]*B[k,m]*C[m,l] : 0 where j<4",
	 3,
	 {2, 2, 2},
	 {{64, 64}, {64, 64}, {64, 64}},
	 "T1[i,j] += 3*x0[i,k]*x1[k,j];\nR0[i,j] += x2[k,j]*T1[i,k];\n"},
	/* also of a window of places that several elements of the result share */
	{"Y[b,k,p:64] += (X[b,c,(p+r+1)/2-1] else 0)*W[k,c,r]",
	 2,
	 {3, 3},
	 {{2, 256, 32}, {32, 256, 3}},
	 "T1[i,j,k,l] += x1[j,m,k]*x0[i,m,l];\n"
	 "R0[i,j,k] += T1[i,j,l,(k+l+1)/2-1] else 0 where k<64;\n"},
	/* of a function of what is read; what the result's elements lie along comes last */
	{"Y[b,p:64,k] += max(X[b,(p+r+1)/2-1,c] else 0, 0)*W[r,c,k]",
	 2,
	 {3, 3},
	 {{2, 32, 256}, {3, 256, 32}},
	 "T1[i,j,k,l] += x1[k,m,l]*max(x0[i,j,m], 0);\n"
	 "R0[i,j,k] += T1[i,(j+l+1)/2-1,l,k] else 0 where j<64;\n"},
	/* through what is only repeated */
	{"U[b,c,p:64] = X[b,c,p/2]; Y[b,k,p:64] += (U[b,c,p+r-1] else 0)*W[k,c,r]",
	 2,
	 {3, 3},
	 {{2, 256, 32}, {32, 256, 3}},
	 "T1[i,j,k,l] += x1[j,m,k]*x0[i,m,l];\n"
	 "R0[i,j,k] += 0 <= k + l - 1 && k + l - 1 < 64 ? T1[i,j,l,(k+l+1)/2-1] : 0 where k<64;\n"},
	/* what elements of a sum's axis share, and what is summed of others before */
	{"V[k,c,r] += D[b,k,p]*(X[b,c,(p+r+1)/2-1] else 0) where r<3",
	 2,
	 {3, 3},
	 {{4, 32, 128}, {4, 256, 64}},
	 "T1[i,j,k,l] += 0 <= -k + 2*l + m + 1 && -k + 2*l + m + 1 <= 127 ? x0[i,j,-k+2*l+m+1] : 0 "
	 "where k<3, l<64, m<2;\n"
	 "R0[i,j,k] += x1[l,j,m]*T1[l,i,k,m];\n"},
	{"V[k,c] += D[b,k,p]*X[b,c,p/3]",
	 2,
	 {3, 3},
	 {{64, 64, 48}, {64, 64, 16}},
	 "T1[i,j,k] += x0[i,j,3*k+l] where k<16;\n"
	 "R0[i,j] += x1[k,j,l]*T1[k,i,l];\n"},
	/* sums of sums, where that has cheaper partial sums */
	{"T[b,c,p:64] += 0 <= p-r+1 && p-r+1 < 64 ? D[b,k,p-r+1]*W[k,c,r] : 0; X[b,c,u:32] += "
	 "T[b,c,2*u+e] where e<2",
	 2,
	 {3, 3},
	 {{2, 128, 64}, {128, 128, 3}},
	 "T1[i,j,k,l] += x0[i,j,-k+2*l+m+1] else 0 where k<3, l<32, m<2;\n"
	 "R0[i,j,k] += x1[l,j,m]*T1[i,l,m,k];\n"},
	/* (a power that is short is a product, too) */
	{"Y[i] = pow(A[i], 3.0) + pow(pow(A[i], 2.5), 4.0)",
	 1,
	 {1},
	 {{8}},
	 "R0[i] = x0[i]*x0[i]*x0[i] + "
	 "pow(x0[i], 2.5)*pow(x0[i], 2.5)*(pow(x0[i], 2.5)*pow(x0[i], 2.5));\n"},
	/* functions of a few of the axes, the largest that are the same for many elements */
	{"Y[b,t,d] = X[b,t,d]*cos(W[t]*pow(2.5, -f64(d)/64))",
	 2,
	 {3, 1},
	 {{32, 32, 64}, {32}},
	 "T1[i,j] = cos(x1[i]*pow(2.5, -f64(j)/64)) where j<64;\n"
	 "R0[i,j,k] = x0[i,j,k]*T1[j,k];\n"},
	/* draws, too; but not those that are the same along a line */
	{"Y[b,t,d] = X[b,t,d]*exp(W[t])*f64(random(3, d))",
	 2,
	 {3, 1},
	 {{32, 32, 64}, {32}},
	 "T1[i] = f64(random(3, i)) where i<64;\n"
	 "R0[i,j,k] = x0[i,j,k]*exp(x1[j])*T1[k];\n"},
	/* a function that has two axes in their difference only is one of that, */
	{"Y[t,d] += s <= t ? X[s,d]*exp(-abs(A[d])*(t-s)) : 0 where t < 96",
	 2,
	 {2, 1},
	 {{96, 64}, {64}},
	 "T1[i,j] = exp(-(abs(x1[j])*f64(-i + 95))) where i<96;\n"
	 "R0[i,j] += k <= i ? x0[k,j]*T1[-i+k+95,j] : 0;\n"},
	/* without a sum, too: lanes run forwards; */
	{"Y[b,h,t,s] = s <= t ? X[b,h,t,s]*pow(G[h], f64(t-s)) : 0",
	 2,
	 {4, 1},
	 {{4, 4, 48, 48}, {4}},
	 "T1[i,j] = pow(x1[i], f64(-j + 47)) where j<48;\n"
	 "R0[i,j,k,l] = l <= k ? x0[i,j,k,l]*T1[j,-k+l+47] : 0;\n"},
	/* one of the result's axes multiplies the sum */
	{"Y[u,d] += u+s < 96 ? D[u+s,d]*X[s,d]*exp(-abs(A[d])*u) : 0 where u < 96",
	 3,
	 {2, 2, 1},
	 {{96, 64}, {96, 64}, {64}},
	 "T1[i,j] += i + k < 96 ? x0[i+k,j]*x1[k,j] : 0 where i<96;\n"
	 "R0[i,j] = T1[i,j]*exp(-(abs(x2[j])*f64(i)));\n"},
	/* unless it may be infinite where no term is in */
	{"Y[u,d] += u+s < 96 ? D[u+s,d]*X[s,d]*exp(A[d]*u) : 0 where u < 96",
	 3,
	 {2, 2, 1},
	 {{96, 64}, {96, 64}, {64}},
	 "R0[i,j] += i + k < 96 ? x0[i+k,j]*x1[k,j]*exp(x2[j]*f64(i)) : 0 where i<96;\n"},
	/* a function of the terms' axes that is no factor of its own is computed apart */
	{"Y[i,j] += abs(exp(A[i,k]) - B[j,k])",
	 2,
	 {2, 2},
	 {{64, 64}, {64, 64}},
	 "T1[i,j] = exp(x0[i,j]);\nR0[i,j] += abs(T1[i,k] - x1[j,k]);\n"},
	{"Y[i,j] += exp(A[i,k])*B[k,j]",
	 2,
	 {2, 2},
	 {{64, 64}, {64, 64}},
	 "R0[i,j] += exp(x0[i,k])*x1[k,j];\n"},
	/* two axes that are one; conditions that are a read's bounds; */
	{"Y[k] += (X[2*k+2*m+n-1] else 0)*W[2*m+n] where k<8, m<2, n<2",
	 2,
	 {1, 1},
	 {{16}, {4}},
	 "R0[i] += (x0[2*i+j-1] else 0)*x1[j] where i<8;\n"},
	{"Y[k] += 0 <= k+n-1 && k+n < 9 ? X[2*k+n-1]*W[n] : 0 where k<8, n<2",
	 2,
	 {1, 1},
	 {{16}, {2}},
	 "R0[i] += 0 <= 2*i + j - 1 ? x0[2*i+j-1]*x1[j] : 0;\n"},
	/* choices of which one is made, */
	{"Y[i,j] = (j < 8 ? A[i,j] : 0) + (8 <= j && j < 20 ? 3*B[i,j-8] : 0) + (20 <= j ? "
	 "A[i,j-12] : 0)"
	 " where j<32",
	 2,
	 {2, 2},
	 {{4, 20}, {4, 12}},
	 "R0[i,j] = j < 8 ? x0[i,j] : j < 20 ? 3*x1[i,j-8] : x0[i,j-12];\n"},
	/* and of which both may be */
	{"Y[i,j] = (j < 9 ? A[i,j] : 0) + (8 <= j ? B[i,j-8] : 0) where j<20",
	 2,
	 {2, 2},
	 {{4, 9}, {4, 12}},
	 "R0[i,j] = (x0[i,j] else 0) + (8 <= j ? x1[i,j-8] : 0) where j<20;\n"},
	/* products of factors with the same few axes, of differences or sums of axes, too; */
	{"Y[b,t,d] += s <= t ? V[b,s,d]*K[b,s,d]*F[t-s,d]*G[t-s,d] : 0 where t < 96",
	 4,
	 {3, 3, 2, 2},
	 {{4, 96, 64}, {4, 96, 64}, {96, 64}, {96, 64}},
	 "T1[i,j,k] = x0[i,j,k]*x1[i,j,k];\n"
	 "T2[i,j] = x2[-i+95,j]*x3[-i+95,j];\n"
	 "R0[i,j,k] += l <= j ? T1[i,l,k]*T2[-j+l+95,k] : 0;\n"},
	{"Y[u,d] += u+s < 96 ? V[b,s,d]*K[b,s,d]/D[b,u+s,d] : 0 where u < 96",
	 3,
	 {3, 3, 3},
	 {{4, 96, 64}, {4, 96, 64}, {4, 96, 64}},
	 "T1[i,j,k] = x0[j,i,k]*x1[j,i,k];\n"
	 "T2[i,j,k] = 1/x2[j,i,k];\n"
	 "R0[i,j] += i + k < 96 ? T1[k,l,j]*T2[i+k,l,j] : 0 where i<96;\n"},
	/* not of what is packed into panels */
	{"Y[b,t,d] += V[b,s,e]*K[b,s,e]*F[t,s,e,d]",
	 3,
	 {3, 3, 4},
	 {{4, 96, 8}, {4, 96, 8}, {8, 96, 8, 64}},
	 "R0[i,j,k] += x0[i,l,m]*x1[i,l,m]*x2[j,l,m,k];\n"},
	/* what is looked up, or scattered, at places that an axis outside has no part in: along that; */
	{"Y[b,c,p] += (X[b,c,i32(P[b,p]*8)+u] else 0)*W[u,p] where u<8, p<40",
	 3,
	 {3, 2, 2},
	 {{2, 8, 16}, {2, 40}, {8, 40}},
	 "T1[i,j,k] = x0[i,k,j];\n"
	 "T2[i,j,k] += (T1[i,l+i64(i32(8*x1[i,j])),k] else 0)*x2[l,j];\n"
	 "R0[i,j,k] = T2[i,k,j];\n"},
	{"Y[b,c,min(max(i32(P[b,p]*9), 0), 11):12] += X[b,c,p]*W[p,u]",
	 3,
	 {2, 3, 2},
	 {{2, 40}, {2, 16, 40}, {40, 3}},
	 "T1[i,j,k] = x1[i,k,j];\n"
	 "T2[i,min(max(i64(i32(9*x0[i,k])), 0), 11):12,j] += T1[i,k,j]*x2[k,l];\n"
	 "R0[i,j,k] = T2[i,k,j];\n"},
	/* of few points, as it is */
	{"Y[b,c,p] = X[b,c,i32(P[b,p]*8)] else 0 where p<20",
	 2,
	 {3, 2},
	 {{2, 8, 16}, {2, 20}},
	 "R0[i,j,k] = x0[i,j,i64(i32(8*x1[i,k]))] else 0;\n"},
	/* as it is: one side of a contraction is the product of the small factors, */
	{"Y[b,o] += T[o,i,j]*X[b,i]*Z[b,j]",
	 3,
	 {3, 2, 2},
	 {{64, 32, 32}, {64, 32}, {64, 32}},
	 "R0[i,j] += x0[j,k,l]*x1[i,k]*x2[i,l];\n"},
	/* it is small, */
	{"Y[i+j:15,l] += A[i,k]*B[j,l]",
	 2,
	 {2, 2},
	 {{8, 4}, {8, 16}},
	 "R0[j+k:15,i] += x0[j,l]*x1[k,i];\n"},
	/* it is smaller than a launch, */
	{"Y[i,l] += A[i,j]*B[j,k]*C[k,l]",
	 3,
	 {2, 2, 2},
	 {{8, 8}, {8, 8}, {8, 8}},
	 "R0[i,j] += x0[i,k]*x1[k,l]*x2[l,j];\n"},
	/* or the partial sum costs more than it saves */
	{"Y[i] += A[i,j]*B[j,k]*C[k,i]",
	 3,
	 {2, 2, 2},
	 {{32, 32}, {32, 32}, {32, 32}},
	 "R0[i] += x0[i,j]*x1[j,k]*x2[k,i];\n"},
	/* conditions that say where an axis is: no sum over it */
	{"Y[n] += X[m]*W[n]*f64(m == n)", 2, {1, 1}, {{9}, {9}}, "R0[i] = x0[i]*x1[i];\n"},
	{"Y[n] += X[m]*W[n]*(2*n - m == 3 ? 2 : 0)",
	 2,
	 {1, 1},
	 {{9}, {9}},
	 "R0[i] = 0 <= i - 2 && i - 2 <= 3 ? 2*(x0[2*i-3]*x1[i]) : 0;\n"},
	{"Y[] += i == j ? X[i,j] : 0", 1, {2}, {{9, 7}}, "R0[] += x0[i,i] where i<7;\n"},
	{"Y[n] max= m == n + 1 && k < n ? X[m,k] : -inf where n<8",
	 1,
	 {2},
	 {{9, 7}},
	 "R0[i] max= j < i ? x0[i+1,j] : -inf;\n"},
	/* what repeats along a dimension is read without it: sums see which axes a factor has, */
	{"T[b,h,d] = G[b,h]/2 where d<16; Y[h,i,j] += T[b,h,d]*X[b,i,d]*Z[b,j,d]",
	 3,
	 {2, 3, 3},
	 {{64, 16}, {64, 16, 16}, {64, 16, 16}},
	 "T1[i,j] = x0[i,j]/2;\n"
	 "T2[i,j,k] += x1[i,j,l]*x2[i,k,l];\n"
	 "R0[i,j,k] += T2[l,j,k]*T1[l,i];\n"},
	/* and a sum is no sum for each place; in an index, too; */
	{"S[b,d] += X[b,k] where d<5; Y[b,d] = S[b,d]*Z[b,d]",
	 2,
	 {2, 2},
	 {{4, 8}, {4, 5}},
	 "T1[i] += x0[i,j];\nR0[i,j] = T1[i]*x1[i,j];\n"},
	{"P[b,d] = i32(8*X[b]) where d<5; Q[b,d] = Z[min(max(P[b,d],0),7)]; Y[b,d] = Q[b,d]*W[b,d]",
	 3,
	 {1, 1, 2},
	 {{4}, {8}, {4, 5}},
	 "T1[i] = i32(8*x0[i]);\n"
	 "T2[i] = x1[min(max(T1[i], 0), 7)];\n"
	 "R0[i,j] = T2[i]*x2[i,j];\n"},
	{"Y[b,d] max= X[b,k] where d<5",
	 1,
	 {2},
	 {{4, 8}},
	 "T1[i] max= x0[i,j];\nR0[i,j] = T1[i] where j<5;\n"},
	/* not draws, which are others for each element */
	{"T[b,d] = f64(random(3)) where b<4, d<5; Y[b,d] = T[b,d]*X[b] where d<5",
	 1,
	 {1},
	 {{4}},
	 "T1[i,j] = f64(random(3, 5*i+j)) where i<4, j<5;\nR0[i,j] = T1[i,j]*x0[i];\n"},
	/* one that bounds it */
	{"Y[n] += X[m]*f64(m <= n) where n<5",
	 1,
	 {1},
	 {{9}},
	 "R0[i] += x0[j]*(j <= i ? 1.0 : 0.0) where i<5;\n"},
};

static Node *parsed(Bench *b, const char *text, int n, Node *const *x)
{
	Node *y = NULL;
	int ny = 1;
	notation_elaborate(&b->ir, text, n, x, &ny, &y, 1);
	CHECK_REPORT(!b->ir.err.code, "%s: %s", text, b->ir.err.text);
	return b->ir.err.code ? NULL : y;
}

/* Has what it was rewritten to the values of y? */
static bool values_kept(Bench *b, Node *y, Node *now)
{
	double *want = bench_value(b, y), *got = bench_value(b, now);
	double size = 0;
	bool good = want && got;
	for (int64_t i = 0; good && i < tensor_size(y); i++)
		size = fmax(size, fabs(want[i]));
	for (int64_t i = 0; good && i < tensor_size(y); i++)
		good = check_near(got[i], want[i], 1e-11 * size);
	return good;
}

static void case_check(Bench *b, int which)
{
	const Case *c = &cases[which];
	Node *x[4];
	for (int k = 0; k < c->n; k++)
		x[k] = filled(b, c->rank[k], c->shape[k], 0.2, 1.4);
	Node *y = parsed(b, c->text, c->n, x), *now = y;
	if (!y)
		return;
	CHECK_INT(rewrite_graph(&b->ir, 1, &now), 0);
	Text text = {0};
	const char *name = "R0";
	print_program(&text, &b->ir, 1, &now, &name);
	CHECK_STR(text.s, c->want);
	text_free(&text);
	CHECK_REPORT(values_kept(b, y, now), "%s: other values", c->text);
}

/* ---- random products */

typedef struct Product {
	Bench *b;
	int64_t extent[AXES];
	bool used[AXES];
	int n;
	Node *x[OPERANDS];
	Text text;
} Product;

static char axis_name(int k)
{
	return (char)('i' + k);
}

/* A new operand's read by random axes, or by a sum of two that reaches beyond its end. */
static void read_put(Product *p, bool leaves)
{
	int64_t shape[AXES];
	int rank = 0, twice = leaves ? (int)draw(AXES) : -1;
	text_add(&p->text, "x%d[", p->n);
	for (int k = 0; k < AXES; k++) {
		if (draw(3) && k != twice)
			continue;
		p->used[k] = true;
		shape[rank] = p->extent[k];
		text_add(&p->text, rank++ ? ",%c" : "%c", axis_name(k));
		if (k == twice)
			text_add(&p->text, "+%c", axis_name((k + 1) % AXES));
	}
	text_add(&p->text, "]");
	p->x[p->n] = filled(p->b, rank, shape, 0.5, 1.5);
	p->n++;
}

static void factor_put(Product *p)
{
	switch (p->n + 4 + AXES < OPERANDS ? draw(12) : 0) {
	case 0:
		text_add(&p->text, "exp(0.3*");
		read_put(p, false);
		text_add(&p->text, ")");
		break;
	case 1:
		text_add(&p->text, "(");
		read_put(p, true);
		text_add(&p->text, " else 0)");
		break;
	case 2:
		text_add(&p->text, "(-");
		read_put(p, false);
		text_add(&p->text, "/");
		read_put(p, false);
		text_add(&p->text, ")");
		break;
	case 3: {
		size_t from = p->text.n;
		read_put(p, false);
		char *common = arena_printf(&p->b->ir.arena, "%s", p->text.s + from);
		text_add(&p->text, "*(");
		read_put(p, false);
		text_add(&p->text, "*%s - ", common);
		read_put(p, false);
		text_add(&p->text, "*2*%s/", common);
		read_put(p, false);
		text_add(&p->text, ")");
		break;
	}
	case 5: { /* of a difference, or a sum, of two axes */
		int a = (int)draw(AXES), b = (a + 1 + (int)draw(AXES - 1)) % AXES;
		p->used[a] = p->used[b] = true;
		text_add(&p->text, "sigmoid(0.2*(%c%s%c)+", axis_name(a), draw(2) ? "-" : "+",
			 axis_name(b));
		read_put(p, false);
		text_add(&p->text, ")");
		break;
	}
	case 7: { /* what two axes choose */
		int a = (int)draw(AXES), b = (a + 1 + (int)draw(AXES - 1)) % AXES;
		int c = (int)draw(AXES);
		p->used[a] = p->used[b] = p->used[c] = true;
		text_add(&p->text, "x%d[%c == %c ? 0 : %c < %c ? 1 : 2,%c]", p->n, axis_name(a),
			 axis_name(b), axis_name(b), axis_name(a), axis_name(c));
		p->x[p->n++] = filled(p->b, 2, (int64_t[]){3, p->extent[c]}, 0.5, 1.5);
		break;
	}
	case 8: { /* a gather */
		int c = (int)draw(AXES), table = p->n++;
		p->used[c] = true;
		text_add(&p->text, "x%d[min(max(i32(3*", table);
		read_put(p, false);
		text_add(&p->text, ")-1, 0), 2),%c]", axis_name(c));
		p->x[table] = filled(p->b, 2, (int64_t[]){3, p->extent[c]}, 0.5, 1.5);
		break;
	}
	case 9: { /* of an enlarged line */
		int a = (int)draw(AXES), b = (a + 1 + (int)draw(AXES - 1)) % AXES;
		int c = (int)draw(AXES), by = 2 + (int)draw(2);
		p->used[a] = p->used[b] = p->used[c] = true;
		text_add(&p->text, "(x%d[(%c+%c+%d)/%d-1,%c] else 0)", p->n, axis_name(a),
			 axis_name(b), (int)draw(4), by, axis_name(c));
		int64_t line = (p->extent[a] + by - 1) / by;
		p->x[p->n++] = filled(p->b, 2, (int64_t[]){line, p->extent[c]}, 0.5, 1.5);
		break;
	}
	case 10: { /* two tensors, and a third perhaps, side by side */
		int a = (int)draw(AXES), c = (a + 1 + (int)draw(AXES - 1)) % AXES;
		int64_t cut = 1 + draw((uint32_t)p->extent[c] - 1);
		p->used[a] = p->used[c] = true;
		text_add(&p->text, "(%c < %d ? ", axis_name(c), (int)cut);
		read_put(p, false);
		text_add(&p->text, draw(2) ? " : " : " : %c < %d ? 0 : ", axis_name(c),
			 (int)cut + 1);
		text_add(&p->text, "x%d[%c,%c-%d])", p->n, axis_name(a), axis_name(c), (int)cut);
		p->x[p->n++] =
			filled(p->b, 2, (int64_t[]){p->extent[a], p->extent[c] - cut}, 0.5, 1.5);
		break;
	}
	case 6: /* terms that are products, and don't cancel */
		text_add(&p->text, "(");
		for (int k = 0; k < 4; k++) {
			read_put(p, false);
			text_add(&p->text, "%s", (const char *[]){"*", " - 0.25*", "*", ")"}[k]);
		}
		break;
	case 4: /* one of the branches is the product */
		text_add(&p->text, "(");
		read_put(p, false);
		text_add(&p->text, draw(2) ? " < 1 ? 0 : " : " < 1 ? 2*");
		bool first = p->text.s[p->text.n - 1] == '*';
		read_put(p, false);
		text_add(&p->text, "*");
		read_put(p, false);
		text_add(&p->text, first ? " : 0)" : ")");
		break;
	default:
		read_put(p, false);
	}
}

/* "Y[..] += condition ? product : 0 where ..", some of it left out. */
static void product_put(Product *p)
{
	static const char *const choice[] = {" && (i < 2 || i == 2 && j < 2)",
					     " && (m < 1 || k == 2 || m == 2 && l < 2)",
					     " && (j == 1 || k+l < 3)", " && !(i == 1 && k < 2)"};
	int factors = 2 + (int)draw(4), k;
	bool conditioned = draw(3) == 0, any = false;
	text_add(&p->text, "Y[");
	for (k = 0; k < AXES; k++)
		if (draw(3) == 0) {
			text_add(&p->text, any ? ",%c" : "%c", axis_name(k));
			any = p->used[k] = true;
		}
	if (draw(6) == 0)
		text_add(&p->text, any ? ",2*i+j:31" : "2*i+j:31");
	text_add(&p->text, "] += ");
	if (conditioned)
		text_add(&p->text, "k+l < %d && i < m+2%s ? ", (int)p->extent[2],
			 draw(2) ? "" : choice[draw(COUNT(choice))]);
	if (conditioned) {
		read_put(p, false);
		int64_t shape[] = {p->extent[2]};
		text_add(&p->text, "*x%d[k+l]*", p->n);
		p->x[p->n++] = filled(p->b, 1, shape, 0.5, 1.5);
	}
	for (k = 0; k < factors && p->n + AXES < OPERANDS; k++) {
		text_add(&p->text, "%s", k ? "*" : "");
		factor_put(p);
	}
	for (k = 0; k < AXES; k++)
		if (!p->used[k]) {
			text_add(&p->text, "*x%d[%c]", p->n, axis_name(k));
			p->x[p->n++] = filled(p->b, 1, &p->extent[k], 0.5, 1.5);
		}
	text_add(&p->text, "%s", conditioned ? " : 0 where " : " where ");
	for (k = 0; k < AXES; k++)
		text_add(&p->text, k ? ", %c<%d" : "%c<%d", axis_name(k), (int)p->extent[k]);
}

/* The interpreter goes through all axes in each gradient: a few products would take all of the test's time. */
static void extents_limit(int64_t extent[AXES])
{
	enum { TERMS = 20000 };
	for (;;) {
		int64_t terms = 1;
		int most = 0;
		for (int k = 0; k < AXES; k++) {
			terms *= extent[k];
			most = extent[k] > extent[most] ? k : most;
		}
		if (terms <= TERMS)
			return;
		extent[most]--;
	}
}

static int split; /* products that were */

static void product_check(Bench *b, int number)
{
	Product p = {.b = b};
	Node *now[1 + OPERANDS], *was[1 + OPERANDS];
	random_state = 88172645463325252u + (uint64_t)number * 0x9e3779b97f4a7c15u;
	for (int k = 0; k < 8; k++)
		draw(2);
	for (int k = 0; k < AXES; k++)
		p.extent[k] = 3 + draw(8);
	extents_limit(p.extent);
	product_put(&p);
	Node *y = parsed(b, p.text.s, p.n, p.x);
	if (y) {
		was[0] = inner(&b->ir, y, y);
		CHECK_INT(autodiff_reverse(&b->ir, was[0], NULL, p.n, p.x, was + 1), 0);
		was[0] = y;
		memcpy(now, was, sizeof *now * (size_t)(1 + p.n));
		CHECK_INT(rewrite_graph(&b->ir, 1 + p.n, now), 0);
		for (int k = 0; k <= p.n; k++)
			CHECK_REPORT(values_kept(b, was[k], now[k]),
				     "product %d, root %d: other values\n%s", number, k, p.text.s);
		split += now[0] != y;
	}
	text_free(&p.text);
}

int main(void)
{
	const char *fuzz = getenv("RICCI_FUZZ"), *seed = getenv("RICCI_SEED");
	int n = fuzz ? atoi(fuzz) : PRODUCTS, first = seed ? atoi(seed) : 0;
	for (int k = 0; k < (int)COUNT(cases); k++)
		in_bench(case_check, k);
	for (int k = first; k < first + n; k++)
		in_bench(product_check, k);
	CHECK_REPORT(n < PRODUCTS || split > n / 10, "%d of %d products by partial sums", split, n);
	return check_done();
}

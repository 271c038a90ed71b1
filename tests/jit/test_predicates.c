/* test_predicates.c - short padded lines are vectors under masks: they are made where they should be,
 * give what the interpreter gives, and touch nothing beyond a tensor whose neighbours are pages
 * that can't be read. */
#include "tests/jit/lower_harness.h"

#include <sys/mman.h>
#include <unistd.h>

static const Case masked[] = {
	{"Y[c,p,q] += (X[c,p+r-1,q+s-1] else 0)*W[c,r,s] where p<28, q<28", "X=4x28x28 W=4x3x3"},
	{"Y[c,p,q] += (X[c,p+r-1,q+s-1] else 0)*W[c,r,s] where p<14, q<14", "X=8x14x14 W=8x3x3"},
	{"Y[c,p,q] += (X[c,p+r-1,q+s-1] else 0)*W[c,r,s] where p<6, q<7", "X=16x6x7 W=16x3x3"},
	{"Y[c,p,q] += (X[c,p+r-1,q+s-1] else 0)*W[c,r,s] where p<7, q<112", "X=2x7x112 W=2x3x3"},
	/* lines shorter than a vector */
	{"Y[c,p,q] += (X[c,p+r-1,q+s-1] else 0)*W[c,r,s] where p<4, q<4", "X=16x4x4 W=16x3x3"},
	{"Y[n,c,p,q] += (X[n,c,p+r-1,q+s-1] else 0)*W[c,r,s] where p<8, q<8", "X=3x5x8x8 W=5x3x3"},
	{"W[c,r,s] += G[n,c,p,q]*(X[n,c,p+r-1,q+s-1] else 0) where r<3, s<3",
	 "G=3x5x4x4 X=3x5x4x4"},
	{"W[c,r,s] += G[n,c,p,q]*(X[n,c,p+r-1,q+s-1] else 0) where r<3, s<3",
	 "G=3x5x8x8 X=3x5x8x8"},
	/* two padded factors, values that are no factor, other fills, quotients */
	{"Y[p,q] += (X[p+r-1,q+s-1] else 0.5)*W[r,s] where p<8, q<20", "X=8x20 W=3x3"},
	{"Y[p,q] += ((X[p+r-1,q+s-1] else -0.0) - W[r,s])/9 where p<8, q<20", "X=8x20 W=3x3"},
	{"Y[p,q] += (X[p+r-2,q+s-2] else 0)/9 where p<10, q<18, r<3, s<3", "X=8x16"},
	{"Y[p,q] += (X[p+r-1,q+s-1] else 0)*(Z[p,q+s-3] else 2) where p<8, q<36, r<3, s<3",
	 "X=8x36 Z=8x36"},
	/* every other element: even and odd ends */
	{"Y[c,p,q] += (X[c,2*p+r-1,2*q+s-1] else 0)*W[c,r,s] where p<14, q<14",
	 "X=8x28x28 W=8x3x3"},
	{"Y[c,p,q] += (X[c,2*p+r-1,2*q+s-1] else 0)*W[c,r,s] where p<28, q<28",
	 "X=2x56x56 W=2x3x3"},
	{"Y[c,p,q] += (X[c,2*p+r-1,2*q+s-1] else 0)*W[c,r,s] where p<16, q<33",
	 "X=4x32x65 W=4x3x3"},
	{"Y[c,p,q] += (X[c,2*p+r-2,2*q+s-1] else 3)*W[c,r,s] where p<8, q<48", "X=4x16x96 W=4x3x3"},
	/* backwards: each element, every other one, narrow ones, at the ends of lines */
	{"Y[c,p] += (X[c,r-p+7] else 0)*W[c,r] where p<37, r<24", "X=3x40 W=3x24"},
	{"Y[c,p] += r <= p ? X[c,p-r]*W[c,r]*V[c,51-p] : 0 where p<52, r<9", "X=3x52 W=3x9 V=3x52"},
	{"Y[c,p] += (X[c,r-2*p+60] else 0)*W[c,r] where p<45, r<5", "X=3x64 W=3x5"},
	{"Y[c,p] += (X[c,4*r-4*p+61] else 2)*W[c,r] where p<19, r<5", "X=3x70 W=3x5"},
	{"Y[c,p] += f32(X[c,r-p+21] else 0)*W[c,r] where p<29, r<7", "X=3x33:i8 W=3x7"},
	{"Y[c,p] += p%4 < 3 ? (X[c,r-p+20] else 0)*W[c,r] : 0 where p<31, r<7",
	 "X=3x33:f64 W=3x7:f64"},
	/* the lanes ask from both sides, for what is never there too */
	{"Y[p,q] += (X[p+r-1,q+41*s-61] else 0)*W[r,s] where p<8, q<32, s<4", "X=8x32 W=3x4"},
	{"Y[p,q] += (X[p+r-1,q+s-1] else 0)*W[r,s] where p<8, q<48", "X=8x48 W=3x3"},
	/* each result is the sum at one of a window's points */
	{"D[c,r,s] += (X[m,c,p+r-1,q+s-1] else 0)*G[m,c,p,q] where r<3, s<3",
	 "X=2x4x6x32 G=2x4x6x32"},
	{"D[c,r,s] += (X[m,c,p+r-1,q+s-1] else 0)*G[m,c,p,q] where r<3, s<3",
	 "X=2x4x14x14 G=2x4x14x14"},
	{"D[c,r,s] += (X[m,c,p+r-1,q+s-1] else 0)*G[m,c,p,q] where r<3, s<3",
	 "X=2x4x4x4 G=2x4x4x4"},
	{"D[c,r,s] += (X[m,c,2*p+r-1,2*q+s-1] else 0)*G[m,c,p,q] where r<3, s<3",
	 "X=2x3x14x14 G=2x3x7x7"},
	{"D[c,r,s] max= (X[m,c,p+r-1,q+s-1] else -inf)*G[m,c,p,q] where r<3, s<3",
	 "X=2x4x9x9 G=2x4x9x9"},
	/* lanes behind the last one add zero, or have to be left out */
	{"D[c,r,s] += G[m,c,p,q]*(X[m,c,p+r-1,q+s-1] else 0) where r<3, s<3",
	 "X=2x4x5x5 G=2x4x5x5"},
	{"D[c,r,s] += G[m,c,p,q] + (X[m,c,p+r-1,q+s-1] else 1) - 2.0 where r<3, s<3",
	 "X=2x4x5x5 G=2x4x5x5"},
	/* sums in lanes behind the last one are no one's, unless a longer piece of the row has them */
	{"Y[i,j] += A[i,k]*B[k,j] where i<6, j<9", "A=6x7 B=7x9"},
	{"Y[i,j] max= A[i,k] - B[k,j] where i<6, j<9", "A=6x7 B=7x9"},
	{"Y[i] += exp(A[i,k])*B[k] where i<6, k<41", "A=6x41 B=41"},
	/* lanes compare values */
	{"Y[p,q] += (X[p+r-1,q+s-1] else 0) < W[r,s] ? (X[p+r-1,q+s-1] else 1) : W[r,s] "
	 "where p<8, q<20",
	 "X=8x20 W=3x3"},
	{"Y[p,q] += !((X[p,q+s-1] else 0) <= 0.1) || X[p,q] == 0.5 && W[s] < 0 ? X[p,q] : 3.0 "
	 "where p<8, q<20, s<3",
	 "X=8x20 W=3"},
	{"Y[p,q] += q+s >= 1 && q+s <= 20 && X[p,q+s-1] < Z[p,q] ? Z[p,q] : W[s] "
	 "where p<8, q<20, s<3",
	 "X=8x20 Z=8x20 W=3"},
};

/* Elements alone, and with what is computed from each result. */
static const Case pointwise[] = {
	{"Y[i,j] = 2*X[i,j] - (X[i-1,j] else 0) - (X[i,j+1] else 1)", "X=8x40"},
	{"Y[i,j] = j < 5 ? A[i] : 0 where j<20", "A=8"},
	{"Y[i,j] = (j >= 1 ? A[0] : 0) + (X[i,j-1] else 0) where j<20", "A=8 X=8x20"},
	{"Y[i,j] = max((X[i,j-3] else -inf), min((X[i+1,j+3] else 7), -X[i,j]))", "X=8x40"},
	{"S[p,q] += (X[p+r-1,q+s-1] else 0)*W[r,s] where p<8, q<20; Y[p,q] = max(S[p,q]+B[p], 0)",
	 "X=8x20 W=3x3 B=8"},
	{"S[p,q] += (X[p+r-1,q+s-1] else 0)*W[r,s] where p<8, q<20; "
	 "Y[p,q] = 0 < S[p,q]+B[p] ? (S[p,q]+B[p] < 0.5 ? S[p,q]+B[p] : 0.5) : 0",
	 "X=8x20 W=3x3 B=8"},
	{"S[p,q] += (X[p+r-1,q+s-1] else 0)*W[r,s] where p<8, q<20; "
	 "Y[p,q] = 0 < Z[p,q] && Z[p,q] < 0.5 ? S[p,q] : 0",
	 "X=8x20 W=3x3 Z=8x20"},
};

/* What the other side of a condition reads is not there for all lanes. */
static const Case otherwise[] = {
	{"Y[i,j] = X[i/8,j] + (i < 3 ? B[i,j] : X[i-3,j]) where i<11", "X=8x40 B=3x40"},
	{"Y[i,j] = A[i/8] + (i < 3 ? B[i,j] : A[i-3]) where i<11", "A=8 B=3x40"},
	{"Y[i,j] = A[i/8] + (j < 13 ? B[i,j] : A[j-13]) where i<11, j<40", "A=27 B=11x13"},
	{"Y[i,j] = X[i/8,j] + (i < 3 ? B[i,j] : (X[i-3,j-1] else 0)) where i<11", "X=8x40 B=3x40"},
	{"Y[i,j] = X[i/8,j] + (i < 3 ? B[i,j] : 0 < X[i-3,j] ? X[i-3,j] : 0) where i<11",
	 "X=8x40 B=3x40"},
};

/* Vectors of other types, of several in one loop, of half and a quarter the size. */
static const Case types[] = {
	{"Y[i] = exp(A[i])*B[i] + max(A[i], 0) - 3*A[i]/7", "A=1003:f64 B=1003:f64"},
	{"Y[i] = A[i] > 0 ? A[i] : 0.01*B[i]", "A=1003:f64 B=1003:f64"},
	{"Y[c,p,q] += (X[c,p+r-1,q+s-1] else 0)*W[c,r,s] where p<6, q<7",
	 "X=4x6x7:f64 W=4x3x3:f64"},
	{"M[i] max= X[i,j]; E[i,j] = exp(X[i,j]-M[i]); S[i] += E[i,j]; Y[i,j] = E[i,j]/S[i]",
	 "X=8x53:f64"},
	{"Y[i] = max(A[i]*3 - B[i], 7)*A[i] + min(B[i], 5)", "A=1003:i32 B=1003:i32"},
	{"Y[i] = max(A[i]*3 - B[i], 7) + A[i]", "A=103:i64 B=103:i64"},
	{"Y[i] += X[i,k]; Z[i] max= X[i,k]", "X=5x131:i32"},
	{"Y[i] min= X[i,k]", "X=5x131:i64"},
	{"Y[i] *= X[i,k]", "X=5x131:f64"},
	{"Y[i] = f64(A[i])*B[i] + f64(T[i])", "A=1003 B=1003:f64 T=1003:i32"},
	{"Y[b] min= i < 7 ? A[b] : i-9 where i<53", "A=5:u8"}, /* -2 becomes 0 */
	{"Y[i] = A[i] < 0.5 ? B[i] : T[i] == 1 ? f64(A[i]) : -B[i]",
	 "A=1003 B=1003:f64 T=1003:i32"},
	{"Y[i,j] = T[i] == j ? A[i,j] : f32(2*i+j)*A[i,j]", "T=9:i32 A=9x53"},
	{"Y[i,j] = T[i] == j || j == 7 || !(j != 9) ? 1.0 : 0.0 where j<53", "T=9:i32"},
	{"S[i,j] += X[i,j,k]*X[i,j,k]; Y[i,j,k] = X[i,j,k]*sqrt(S[i,j])/(1+S[i,j])", "X=5x3x4"},
	{"S[i,j] += X[i,j,k]*X[i,j,k]; Y[i,j,k] = X[i,j,k]*sqrt(S[i,j])/(1+S[i,j])", "X=5x3x2"},
	{"M[i] max= X[i,j]; E[i,j] = exp(X[i,j]-M[i]); S[i] += E[i,j]; Y[i,j] = E[i,j]/S[i]",
	 "X=21x10"},
};

/* Lanes that are apart in memory, where they read and where they write; bounds that are known when the
 * loop runs. */
static const Case apart[] = {
	{"Y[i,j] = A[i,3*j+1]*B[j] where j<13", "A=5x40 B=13"},
	{"Y[j] += X[j,i]", "X=37x64"},
	{"Y[j,i] = X[i,j]*A[i] + B[j]", "X=19x23 A=19 B=23"},
	{"Y[i,j] = j%2 == 0 ? A[i,j/2] : B[i,j/2] where j<54", "A=6x27 B=6x27"},
	{"Y[i,j] = j%3 == 0 ? A[i,j/3] : j%3 == 1 ? B[i,j/3] : A[i,j/3]*2 where j<81",
	 "A=6x27 B=6x27"},
	{"Y[i,j] = A[i,52-j]", "A=5x53"},
	{"Y[i,j] += A[i,k]*B[k,j] where i<3, j<44, k<5", "A=3x5 B=5x44"},
	{"Y[i,j] += A[i,k]*B[k,j] where i<3, j<203, k<5", "A=3x5:f64 B=5x203:f64"},
	/* every fourth element: of four vectors */
	{"Y[i,j] = A[i,4*j+2]*B[j] where j<21", "A=5x87 B=21"},
	{"Y[i,j] = A[i,4*j+3]*B[j] where j<21", "A=5x84:f64 B=21:f64"},
};

/* And under conditions on their places, beyond which there is nothing. */
static const Case apart_masked[] = {
	{"Y[i,j] = (A[i,4*j-2] else 0)*B[j] where j<21", "A=5x79 B=21"},
	{"Y[i,j] = (A[i,4*j-1] else 1)*B[j] where j<40", "A=5x97:f64 B=40:f64"},
	{"Y[i,j] = (A[i,3*j-2] else 0)*B[j] where j<40", "A=5x99 B=40"},
	{"Y[i,j] = (A[i,5*j-7] else 3)*2 where j<40", "A=5x99:i32"},
	{"Y[i,j] = f32(A[i,3*j-2] else 0)*B[j] where j<40", "A=5x99:bf16 B=40"},
	{"Y[i,j] = f32(A[i,4*j-2] else 1)*B[j] where j<40", "A=5x99:u8 B=40"},
	{"Y[i,j] += (A[i,3*j+r-1] else 0)*W[r] where j<33", "A=7x99 W=3"},
	{"Y[i,j] = (A[j-4,i] else 0) where i<37, j<45", "A=38x37"},
	{"Y[i,j,k] = A[i,j,k] else 0 where i<1, j<32, k<3", "A=1x1x3:i32"},
	{"Y[i,j,k] = (A[i,j-1,k] else 0)*2 where i<3, j<37, k<3", "A=3x35x3"},
};

/* Comparisons of places, not of values, that are no interval of lanes: beyond them is no tensor. */
static const Case places[] = {
	{"Y[i,j,k] = k == 0 ? A[i,k+1]*B[k+1,j] : A[i,k-1]*B[k-1,j] where i<3, j<89, k<2",
	 "A=3x2 B=2x89"},
	{"Y[i,j] = j != 0 && j != 52 ? A[i,j-1] + A[i,j+1] : B[i] where i<5, j<53", "A=5x53 B=5"},
	{"Y[i,j] = j != 7 && A[i,j] > 0 ? A[i,j] : 0.5*A[i,j]", "A=5x53"},
};

/* A condition that all lanes share is no lane's: it stands around them, or in their mask. */
static const Case shared[] = {
	{"Y[i,j] = i < 24 ? A[i,j] : B[i-24,j] where i<40, j<20", "A=24x20 B=16x20"},
	{"Y[i,j] = i < 3 ? A[i,j] : i < 7 ? B[i-3,j] : i == 8 ? C[j] : 0.5 where i<12, j<13",
	 "A=3x13 B=4x13 C=13"},
	{"Y[i,j] = (i < 3 ? A[i,j] : 2*B[i-3,j]) + (j < 9 ? C[j] : 1) where i<7, j<21",
	 "A=3x21 B=4x21 C=9"},
	{"m[] max= X[i,0,j] else 0 where i<2, j<2", "X=1x1x2"},
	{"Y[i,j] = (X[i,j] else 0)*2 where i<5, j<4", "X=3x4"},
	{"Y[i,j] += (i+k < 5 ? A[i+k,j] : B[i+k-5,j])*W[k] where i<6, j<21", "A=5x21 B=4x21 W=4"},
};

/* Elements of 8 and 16 bits in lanes of 32 or 64: read side by side, apart, under masks and conditions,
 * rounded in between and when they are stored. */
static const Case narrow[] = {
	{"Y[i] = bf16(f32(A[i])*2 + B[i])", "A=1003:bf16 B=1003"},
	{"Y[i] = bf16(A[i])", "A=1003:f64"},
	{"Y[i] = f64(A[i])*B[i]", "A=1003:bf16 B=1003:f64"},
	{"Y[i] = f32(bf16(A[i]))*f32(f16(B[i])) + f32(bf16(A[i]))", "A=1003 B=1003"},
	{"Y[i] = A[i] < B[i] ? A[i] : B[i]", "A=1003:bf16 B=1003:bf16"},
	{"Y[i,j] = f16(f32(X[i,j])*S[i])", "X=7x53:f16 S=7"},
	{"Y[i] = f16(A[i])", "A=1003"},
	{"Y[i] = f64(A[i])*B[i]", "A=1003:f16 B=1003:f64"},
	{"Y[i,j] = f32(f16(A[i,j]*3))*B[i,j]", "A=9x7 B=9x7"},
	{"S[i,j] += f32(X[i,j,k])*f32(X[i,j,k]); Y[i,j,k] = f16(f32(X[i,j,k])*S[i,j])",
	 "X=5x3x4:f16"},
	{"Y[i,j] = f32(X[i,j])/255 - M[j]", "X=7x53:u8 M=53"},
	{"Y[i,j] = i32(X[i,j])*3 + M[j]", "X=7x53:i8 M=53:i32"},
	{"Y[i,j] = X[i,j] == T[i] ? M[j] : 0.0", "X=7x53:u8 T=7:u8 M=53"},
	{"Y[i] += f32(X[i,k])*f32(W[k])", "X=5x131:bf16 W=131:bf16"},
	{"Y[i] max= f32(X[i,k])*W[k]", "X=5x131:i8 W=131"},
	{"Y[i,j] = f32(X[i,3*j+1]) where j<13", "X=5x40:i8"},
	{"Y[i,j] = f32(X[i,2*j])*M[j] where j<26", "X=5x52:bf16 M=26"},
	{"Y[j,i] = bf16(X[i,j])", "X=19x23"},
	{"Y[i,j] = j%2 == 0 ? bf16(A[i,j/2]) : bf16(B[i,j/2]) where j<54", "A=6x27 B=6x27"},
	{"Y[c,p,q] += f32(X[c,p+r-1,q+s-1] else 0)*W[c,r,s] where p<6, q<7",
	 "X=4x6x7:bf16 W=4x3x3"},
	{"Y[c,p,q] += f32(X[c,2*p+r-1,2*q+s-1] else 0)*W[c,r,s] where p<14, q<14",
	 "X=4x28x28:u8 W=4x3x3"},
	{"Y[i,j] = bf16(2*f32(X[i,j-1] else 0) - f32(X[i,j+1] else 1)) where j<40", "X=8x40:bf16"},
	{"Y[i,j] = i < 3 ? A[i,j] : B[i-3,j] where i<7, j<13", "A=3x13:bf16 B=4x13:bf16"},
	{"Y[i,j] = A[j] < 0.5 ? bf16(301*j+i) : bf16(A[j]) where i<3", "A=53"},
	{"M[i] max= f32(X[i,j]); E[i,j] = exp(f32(X[i,j])-M[i]); S[i] += E[i,j]; "
	 "Y[i,j] = bf16(E[i,j]/S[i])",
	 "X=8x53:bf16"},
	{"M[i] max= f32(X[i,j]); E[i,j] = exp(f32(X[i,j])-M[i]); S[i] += E[i,j]; "
	 "Y[i,j] = bf16(E[i,j]/S[i])",
	 "X=21x10:bf16"},
	{"S[i,j] += f32(X[i,j,k])*f32(X[i,j,k]); Y[i,j,k] = bf16(f32(X[i,j,k])*S[i,j])",
	 "X=5x3x4:bf16"},
	{"S[i,j] += f32(X[i,j,k])*f32(X[i,j,k]); Y[i,j,k] = bf16(f32(X[i,j,k])*S[i,j])",
	 "X=5x3x2:bf16"},
	/* integers of 8 bits, beyond which a cast ends; conditions that are stored and read */
	{"Y[i,j] = i8(300*X[i,j]) where j<53", "X=7x53"},
	{"Y[i,j] = u8(A[i,j]*B[j])", "A=7x53:i32 B=53:i32"},
	{"Y[i,j] = u8(X[i,j])", "X=7x53:i8"},
	{"Y[i,j] = i8(300*X[i,j])", "X=7x53:f64"},
	{"Y[i,j] = i8(f32(X[i,2*j])*M[j]) where j<26", "X=5x52:bf16 M=26"},
	{"Y[i,j] = A[i,j] < B[j] ? C[i,j] : 3", "A=7x53 B=53 C=7x53:u8"},
	{"Y[i,j] = C[i,j-1] else 5 where j<58", "C=7x53:i8"},
	{"Y[i,j] = j%2 == 0 ? A[i,j/2] : B[i,j/2] where j<54", "A=6x27:u8 B=6x27:u8"},
	{"Y[i,j] = X[i,j] < 0.5 || X[i,j] == Z[j]", "X=7x53 Z=53"},
	{"Y[i,j] = X[i,j] < 0.5 && !B[j]", "X=7x53:f64 B=53:bool"},
	{"Y[i,j] = B[i,j] ? X[i,j] : 0.1*X[i,j]", "B=7x53:bool X=7x53"},
	{"Y[i,j] = j >= 1 && B[i,j-1] ? X[i,j] : bf16(f32(B[i,j]))", "B=7x53:bool X=7x53:bf16"},
	{"Y[i] += f32(B[i,k])*W[k]", "B=5x131:bool W=131"},
};

/* Lanes draw: the numbers of their elements are apart, the same, behind a condition. */
static const Case drawn[] = {
	{"Y[i,j] = X[i,j]*normal(1)", "X=7x53"},
	{"Y[i,j] = random(3) < 0.5 ? 0 : 2*X[i,j]", "X=7x53"},
	{"Y[i,j] = X[i,j] + random(i, 100-3*j) + normal(2, i)", "X=7x53"},
	{"Y[i] += X[i,k]*W[k]*normal(4)", "X=5x131 W=131"},
	{"Y[i,j] += A[i,k]*B[k,j]*normal(5, k)", "A=6x9 B=9x53"},
	{"Y[i,j] = j < 50 && X[i,j] > 0 ? normal(6)*X[i,j] : 1", "X=7x53"},
};

/* Elements at places that are data, or computed from numbers: beyond the first operand there is nothing, and not in all
 * lanes or iterations is there one. */
static const Case looked_up[] = {
	{"Y[i] = X[T[i]]*2", "X=3 T=103:i32"},
	{"Y[i] = X[T[i]]*2", "X=3:f64 T=103:i32"},
	{"Y[i] = X[T[i]]*2 + i", "X=3:i32 T=103:i8"},
	{"Y[i,j] = X[i,T[j]] + X[3-i,2-T[j]]", "X=4x3 T=53:u8"},
	{"Y[i] = X[T[i]]*2", "X=3 T=103:i64"},
	{"Y[i,j] = X[2*T[j]+i] where i<13", "X=17:i64 T=53:i64"},
	{"Y[i] = (X[T[i]] else 5) - 1", "X=2 T=103:i64"},
	{"Y[i] = f32(X[T[i]])*2", "X=3:bf16 T=103:i32"},
	{"Y[i,j] += f32(X[T[i,k],j] else 1)*W[k]", "X=2x40:f16 T=7x5:i64 W=5"},
	{"Y[i] += f32(X[i,T[k]])*W[k]", "X=5x3:i8 T=131:u8 W=131"},
	{"Y[i] = X[T[i]] ? A[i] : 0", "X=3:bool T=103:i32 A=103"},
	{"Y[i,j] = X[T[i]+2*j,j]*B[j]", "X=89x44 T=7:i32 B=44"},
	{"Y[i,j] = X[2*T[j]+j,i]", "X=48x5 T=44:i32"},
	{"Y[i] = X[T[U[i]]]", "X=3 T=3:i32 U=103:i32"},
	{"Y[i] += X[i,T[k]]*W[k]", "X=5x3 T=131:i32 W=131"},
	{"Y[i] max= X[i,T[k]]*W[k]", "X=5x3 T=131:i32 W=131"},
	{"Y[i] += X[T[i],k]*W[k]", "X=3x40 T=53:i32 W=40"},
	/* under conditions: of places, values, of both */
	{"Y[i] = (X[T[i]-1] else 7) + B[i]", "X=2 T=103:i32 B=103"},
	{"Y[i] = (X[T[i]-1] else 7) + (X[T[i]] else 0)", "X=2:f64 T=103:i32"},
	{"Y[i] = X[i32(A[i]*4e9)+i-30] else 0.5", "X=53 A=103"},
	{"Y[i] = X[i-30-i32(A[i]*4e9)] else 0.5", "X=53 A=103"},
	{"Y[i,j] = (X[i,i32(floor(60*A[j]))] else 0)*(1-abs(A[j]-floor(A[j])))", "X=4x53 A=103"},
	{"Y[i] = X[min(max(i32(A[i]*1e10), 0), 52)]", "X=53 A=103"},
	{"X, A, T, B -> Y: Y[i] = A[i] > 0 ? X[T[i]] : B[i]", "X=3 A=103 T=103:i32 B=103"},
	{"X, A, T -> Y: Y[i] = A[i] > 0 ? 1.0 : X[T[i]]", "X=3 A=103 T=103:i32"},
	{"X, A, T, B -> Y: Y[i] = i < 40 && A[i] > 0 ? X[T[i]] : B[i] where i<103",
	 "X=3 A=103 T=40:i32 B=103"},
	{"X, T -> Y: Y[i] = T[i] != 1 ? (X[T[i]-1] else 0) : 3.0", "X=2 T=103:i32"},
	{"X, T -> Y: Y[i] = T[i] < 1 ? 3.0 : X[T[i]-1]", "X=2 T=103:i32"},
	{"X, A, T -> Y: Y[i] = A[i] > 0 && i > 7 ? X[2-T[i]]*A[i] : X[T[i]]",
	 "X=3 A=103 T=103:i32"},
	/* what is looked up with is inside in all iterations of a block, not of all blocks */
	{"Y[p] += (X[i32(7*U[p])+r,i32(7*V[p])+s] else 0)*U[p] where r<5, s<5",
	 "X=7x7 U=839 V=839"},
	{"X, T, W -> Y: Y[i] += T[i] != 1 && (X[T[i]-1] else 0.5) < W[k] ? W[k] : 0",
	 "X=2 T=103:i32 W=5"},
	/* quotients, and what is left */
	{"X, A -> Y: Y[i,j] = j%2 == 1 && X[i,j/2] != X[i,j/2+1] ? A[i,j] : 3.0",
	 "X=3x25:i32 A=3x47"},
	{"Y[i,j] = X[i,j/3]*W[T[j]]", "X=5x35 W=3 T=103:i32"},
	{"Y[i] = X[(T[i]+i)/4] else 1", "X=23 T=103:u8"},
	{"Y[i] = X[min(T[i]+i/2, max(T[i]+3, 2*i))]*A[i]", "X=360 T=103:u8 A=103"},
	{"Y[i] = X[(T[i]+i-40)/8] else 1", "X=23 T=103:i8"},
	{"Y[i] = X[(T[i]+i)/7+(T[i]+2*i)%5]*A[i] where i<103", "X=60 T=103:u8 A=103"},
	{"Y[i] = X[(T[i]-i)%16]*X[(T[i]-i)/16+15]", "X=32:f64 T=103:i8"},
	{"X, T, A -> Y: Y[i] = X[T[i]+i/3] < A[i] ? X[i/3+T[i]%7] : 0 where i<103",
	 "X=300 T=103:u8 A=103"},
};

/* What is compared with what is looked up, or cast; and what lanes don't look up. */
static const Case computed[] = {
	{"A, T, B -> Y: Y[i] = T[i]+i < 20 ? A[i] : B[i]", "A=103 T=103:i32 B=103"},
	{"Y[i] = i32(A[i]*4e9)+i < 7 ? A[i] : B[i]", "A=103 B=103"},
	{"Y[i] = i64(i32(A[i]*4e9))-i > -7 ? A[i] : B[i]", "A=103 B=103"},
	{"Y[i] = f32(i64(T[i])+2*i)*A[i]", "T=103:i32 A=103"},
	{"Y[i] = X[T[i]] < 0 || X[2-T[i]] < 0.5 ? A[i] : 0", "X=3 T=103:i32 A=103"},
	{"Y[i,j] = X[T[i]-1,3-T[j]] else 5", "X=2x3:i64 T=53:i64"},
	{"Y[i,j] = X[2-T[j],i-T[j]] else 5 where i<14", "X=2x13:f64 T=53:i64"},
	{"Y[i] = X[T[i]*1000000000+i] else 1", "X=53 T=103:i32"},
	{"Y[i] = X[(T[i]+i-40)/7] else 1", "X=23 T=103:i8"},
	{"Y[i] = X[(T[i]+i)/4] else 1", "X=23 T=103:i32"},
	{"Y[i] = X[(T[i]+1000*i)/3] else 1", "X=23 T=103:u8"},
	{"Y[i] = X[min(max(T[U[i]]-1, 0)+i-40, 52)] else 3", "X=53 T=3:i32 U=103:i32"},
	{"Y[i] = i >= 40 ? (X[T[i-40]-1] else 0) : B[i] where i<103", "X=2 T=63:i32 B=40"},
	{"Y[i] = X[(T[U[i]-1] else 1)+i-40] else 3", "X=53 T=2:i32 U=103:i32"},
};

/* A copy of t's first operand between two such pages: its start touches one, or its end. */
static void *fenced(const Trial *t, bool end)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = tensor_bytes(t->task.sub.input[0]);
	size_t room = (n + page - 1) / page * page;
	char *map = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED || mprotect(map + page, room, PROT_READ | PROT_WRITE))
		return NULL;
	char *at = map + page + (end ? room - n : 0);
	memcpy(at, t->in[0], n);
	return at;
}

static void check_fenced(Trial *t)
{
	for (int end = 0; end < 2; end++) {
		t->in[0] = fenced(t, end);
		CHECK(t->in[0]);
		harness_check(t, backend_find("cc"), 100);
	}
}

/* Does a source of the first n offers contain the text? */
static void check_source(const Case *c, Trial *t, int n, const char *text)
{
	bool made = false;
	for (int k = 0; k < n; k++) {
		Error err = {0};
		Kernel *kernel = kernel_lower(&t->task, &t->offer[k], backend_find("cc"),
					      target_host(), &err);
		made |= kernel && strstr(kernel->source, text);
		if (kernel)
			kernel_unref(kernel);
	}
	CHECK_REPORT(made, "%s: has no %s", c->text, text);
}

/* first: the first offer makes masks. */
static void check_masks(const Case *c, bool fused, bool first)
{
	Trial *t = harness_trials(c, fused, NULL);
	check_source(c, t, first ? 1 : t->noffer, "_m t");
	check_fenced(t);
}

/* An offer has the text. */
static void check_text(const Case *c, const char *text)
{
	Trial *t = harness_trials(c, false, NULL);
	check_source(c, t, t->noffer, text);
	check_fenced(t);
}

static void check_narrow(const Case *c)
{
	Trial *t = harness_trials(c, true, NULL);
	check_source(c, t, t->noffer, "RK_NARROW(");
	check_fenced(t);
}

int main(void)
{
	for (int k = 0; k < COUNT(masked); k++)
		check_masks(&masked[k], false, true);
	for (int k = 0; k < COUNT(pointwise); k++)
		check_masks(&pointwise[k], true, false);
	for (int k = 0; k < COUNT(types); k++)
		check_fenced(harness_trials(&types[k], true, NULL));
	for (int k = 0; k < COUNT(apart); k++)
		check_fenced(harness_trials(&apart[k], true, NULL));
	for (int k = 0; k < COUNT(apart_masked); k++)
		check_fenced(harness_trials(&apart_masked[k], false, NULL));
	for (int k = 0; k < COUNT(places); k++)
		check_fenced(harness_trials(&places[k], false, NULL));
	for (int k = 0; k < COUNT(shared); k++)
		check_fenced(harness_trials(&shared[k], false, NULL));
	for (int k = 0; k < COUNT(narrow); k++)
		check_narrow(&narrow[k]);
	for (int k = 0; k < COUNT(looked_up); k++)
		check_text(&looked_up[k], "_look_up(");
	for (int k = 0; k < COUNT(drawn); k++)
		check_text(&drawn[k], "RK_DRAW(");
	for (int k = 0; k < COUNT(computed); k++)
		check_fenced(harness_trials(&computed[k], false, NULL));
	for (int k = 0; k < COUNT(otherwise); k++)
		check_fenced(harness_trials(&otherwise[k], false, NULL));
	return harness_done();
}

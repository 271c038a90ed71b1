/* lower_cases.h - equations and programs whose every offered schedule a backend must run right. */
#ifndef LOWER_CASES_H
#define LOWER_CASES_H

#include "tests/jit/lower_harness.h"

static const Case lower_equations[] = {
	{"Y[i,j] = A[i,j]*2 + B[j]", "A=5x37 B=37"},
	{"Y[i,j] = A[j,i]", "A=33x17"},
	{"Y[i] = exp(A[i]) + tanh(A[i])*sigmoid(A[i]) - max(A[i], 0.25)", "A=1000"},
	/* of neighbours a power of two apart from lane to lane, gcc made vectors for minutes */
	{"Y[i] += A[i,2*k]*X[2*k] - A[i,2*k+1]*X[k]", "A=64x4096 X=4096"},
	{"Y[i] = A[i,0] + B[7-i,2]*A[i,1]", "A=8x512 B=8x64"},
	/* a short last axis, written out inside of the lanes along the one before */
	{"Y[n,d] = A[n,(d+1)%3]*B[n,(d+2)%3] - A[n,(d+2)%3]*B[n,(d+1)%3] where d<3",
	 "A=75x3 B=75x3"},
	{"Y[n,d] = A[n,d]*exp(S[n])", "A=75x3 S=75"},
	{"Y[j,p,q] = A[p%2,q%2,j,p/2,q/2] + A[1,q%2,j,p/2,q/2] - A[p%2,1,j,p/2,q/2] where p<4, q<4",
	 "A=2x2x40x2x2"},
	/* pairs that turn, in heads of 32 or 64 */
	{"Y[t,d] = A[t,d]*C[t,d%64/2] + (d%2 == 0 ? -A[t,d+1] : A[t,d-1])*S[t,d%64/2] where d<128",
	 "A=5x128 C=5x32 S=5x32"},
	{"Y[t,d] = ((d + 1)%2 != 0 ? A[t,d+1]*S[t,(d+1)%32/2] : 0) + (((d + 1)%2 == 0 ? "
	 "-(A[t,d-1]*S[t,(d+31)%32/2]) : 0) + A[t,d]*C[t,d%32/2]) where d<96",
	 "A=5x96 C=5x16 S=5x16"},
	/* conditions that come again in each vector, of reads beyond the end */
	{"Y[i,j,k] += k - m + 1 <= 3 ? A[i,j,k-m+1] : 0 where k<4, m<2", "A=3x70x4"},
	{"Y[j] = ((j/4 + 1)%2 == 0 ? A[j-4]*B[j-4] : 0) + (((j/4 + 1)%2 != 0 ? A[j+4]*B[j+4] : 0) "
	 "+ "
	 "A[j]) where j<200",
	 "A=200 B=200"},
	/* mirrored beyond the edges; a part moved to the left, another one to the right */
	{"Y[c,p] = A[c,p-3 < 0 ? 3-p : p-3 >= 64 ? 129-p : p-3] where p<70", "A=5x64"},
	{"Y[c,p] = c < 2 ? (A[c,p-1] else 0) : c < 4 ? (A[c,p+1] else 0) : A[c,p]", "A=6x70"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=13x29 B=29x41"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=70x130:f64 B=130x90:f64"},
	{"Y[b,i,c,j] += A[b,i,k]*B[b,c,k,j]", "A=2x38x20 B=2x3x20x32"},
	{"Y[b,j,i] += A[b,i,k]*B[b,k,j]", "A=3x64x20 B=3x20x34"},
	{"Y[i] += A[i,j]", "A=19x1037"},
	{"Y[j] += A[i,j]", "A=119x103"},
	{"Y[] += A[i,j]*A[i,j]", "A=119x103"},
	{"Y[i] max= A[i,j]", "A=19x77"},
	{"Y[j] min= A[i,j]", "A=19x77:f64"},
	{"Y[i] *= 1 + A[i,j]/8", "A=7x35"},
	{"m[i] max= X[i,j]; e[i,j] = exp(X[i,j]-m[i]); s[i] += e[i,j]; Y[i,j] = e[i,j]/s[i]",
	 "X=9x50"},
	{"Y[n,c,p,q] += (X[n,k,p+r-1,q+s-1] else 0) * W[c,k,r,s] where p<9, q<11",
	 "X=2x3x9x11 W=5x3x3x3"},
	{"Y[n,c,p,q] += (X[n,c,2*p+r-1,2*q+s-1] else 0) * W[c,r,s] where p<5, q<6",
	 "X=2x7x9x11 W=7x3x3"},
	{"Y[n,c,p,q] max= X[n,c,2*p+r,2*q+s] where r<2, s<2", "X=2x7x10x12"},
	/* lines so short that those of tcc are calls for the loop around them, too */
	{"Y[b,i,j,m,n] += A[b,i,m,k]*W[i,j,k,n]", "A=20x6x4x4 W=6x5x4x4"},
	{"Y[b,i,m,n] += T[b,i,j,m,k]*W[i,j,n,k]", "T=20x6x10x4x4 W=6x10x4x4"},
	{"Y[b,i,j] += T[b,i,j,k]*W[i,k,j]", "T=20x7x9x5:f64 W=7x5x9:f64"},
	{"Y[n,c,y,x] += (X[n,c,y+r-1,x+s-1] else 0)*W[c,r,s] where y<8, x<8",
	 "X=12x20x8x8 W=20x3x3"},
	{"Y[n,c,y,x] += (X[n,c,2*y+r-1,2*x+s-1] else inf)*W[c,r,s] where y<4, x<4",
	 "X=12x20x8x8 W=20x3x3"},
	{"Y[n,c,y,x] += (X[n,c,y+r-1,x+s-1] else 0.25)*W[c,r,s] where y<6, x<9",
	 "X=12x20x6x9:f64 W=20x3x3:f64"},
	/* totals of what changes nothing around an interval of the lanes */
	{"Y[c,r] max= (X[c,q+r-2] else -inf) where r<5, q<40", "X=9x40"},
	{"Y[c,r] += (X[c,q+r-2] else 0)*(G[c,q] < 0 ? 2 : 3) where r<5, q<40", "X=9x40 G=9x40"},
	{"Y[b,n] += 0 <= k+n-3 && k+n-3 < 6 ? A[b,k+n-3]*B[b,k] : 0 where n<7", "A=70x6 B=70x9"},
	/* so short that two axes run in lanes: windows, their gradients, filters' */
	{"Y[n,c,y,x] += (X[n,c,y+r-1,x+s-1] else 0)*W[c,r,s] where y<4, x<4", "X=5x9x4x4 W=9x3x3"},
	{"Y[n,c,y,x] += (X[n,c,y+r-1,x+s-1] else 0)*W[c,r,s] where y<7, x<7", "X=3x5x7x7 W=5x3x3"},
	{"Y[c,y,x] += (X[c,y+r-2,x+s-2] else 2)*W[c,r,s] where y<5, x<6",
	 "X=9x5x6:f64 W=9x4x4:f64"},
	{"Y[n,c,y,x] += 0 <= y-r+1 && y-r+1 <= 7 && 0 <= x-s+1 && x-s+1 <= 7 ? "
	 "G[n,c,y-r+1,x-s+1]*W[c,r,s] : 0 where y<8, x<8",
	 "G=3x7x8x8 W=7x3x3"},
	{"W[c,r,s] += G[n,c,y,x]*(X[n,c,y+r-1,x+s-1] else 0) where r<3, s<3",
	 "G=5x9x4x4 X=5x9x4x4"},
	{"W[c,r,s] += G[n,c,y,x]*(X[n,c,y+r-1,x+s-1] else 0) where r<3, s<3",
	 "G=3x5x8x8 X=3x5x8x8"},
	{"W[c,r,s] += G[n,c,y,x]*(X[n,c,y+r-1,x+s-1] else 0) where r<3, s<3",
	 "G=3x5x7x7 X=3x5x7x7"},
	{"W[c,r] += G[n,c,y,x]*(X[n,c,y,x+r-1] else 1) where r<3", "G=3x5x16x4:f64 X=3x5x16x4:f64"},
	{"V[b,i,m] += A[b,i,m,k]*W[i,k]; S[b,i] += V[b,i,m]*V[b,i,m]; Y[b,i,m] = "
	 "V[b,i,m]*rsqrt(S[b,i] + 1)",
	 "A=20x30x4x5 W=30x5"},
	{"E[b,i] max= A[b,i,j]; Y[b,i,j] = exp(A[b,i,j] - E[b,i])*tanh(G[b,i]) + B[b,j]*C[i,b]",
	 "A=20x30x6 G=20x30 B=20x6 C=30x20"},
	{"E[b,i] += A[b,i,j]; Y[b,j,i] = 0 < A[b,i,j] ? E[b,i]*f32(H[b,i,j]) : 2*B[b,j]; Z[b,i,j] "
	 "= i < j ? E[b,i] : A[b,i,j]",
	 "A=20x30x6 H=20x30x6:bf16 B=20x6"},
	{"E[b] += A[b,i,j]; Y[b,i,j] = A[b,i,j]/E[b] + f64(K[b,i,j])*(A[b,i,j] < G[i] && G[i] < 1 "
	 "? G[i] : 3)",
	 "A=20x30x6:f64 K=20x30x6:i32 G=30:f64"},
	{"Y[n,c,p,q] max= (X[n,c,2*p+r-1,2*q+s-1] else -inf) where p<8, q<9, r<3, s<3",
	 "X=2x3x16x17"},
	{"Y[c,p,q] += (X[c,p+r-1,q+s-1] else 0) * W[c,r,s] where p<7, q<7", "X=5x7x7 W=5x3x3"},
	{"Y[c,p,q] += (X[c,p+2*r-2,q+2*s-2] else 0) * W[c,r,s] where p<24, q<25",
	 "X=3x24x25 W=3x3x3"},
	{"Y[c,p,q] += (X[c,3*p+r-2,3*q+s-2] else 1) * W[r,s] where p<8, q<9", "X=3x20x24 W=5x4"},
	{"Y[c,p,q] += 0 <= p-r+1 && p-r+1 <= 11 && 0 <= q-s+1 && q-s+1 <= 13 ? "
	 "G[c,p-r+1,q-s+1]*W[c,r,s] : 0 where p<12, q<14",
	 "G=3x12x14 W=3x3x3"},
	{"Y[c,p,q] += (X[c,p+r-1,q+s-1] else -inf) == M[c,p,q] ? 1.0 : 0.0 where r<3, s<3",
	 "X=3x16x10 M=3x16x10"},
	{"Y[p,q] += (X[p+r-1,q-1+s] else 0) where p<6, q<1030, r<3, s<3", "X=6x1030:f64"},
	{"V[b,k,p,q,i,j] += P[b,c,2*p+r,2*q+s,i,t] * W[k,c,r,s,t,j]",
	 "P=2x3x7x7x4x4 W=5x3x3x3x4x4"},
	{"Y[i] = T[i/3]*A[i%5]", "T=7 A=5"},
	/* running reductions: lanes along the results, and beside them */
	{"Y[i] += X[j] where j < i+1, i < X.size(0)", "X=1100"},
	{"Y[i] += X[j] where j < i, i < X.size(0)", "X=100"},
	{"Y[i] += i <= j ? X[j] : 0 where i<1100", "X=1100"},
	{"Y[b,i] max= j <= i ? X[b,j] : -inf where i<70", "X=5x70"},
	{"Y[b,i] min= j > i ? X[b,j] : inf where i<70", "X=5x70:f64"},
	{"Y[b,i] *= j <= i ? 1 + X[b,j]/64 : 1 where i<50", "X=5x50"},
	{"Y[b,i,c] += i <= j ? X[b,j,c] : 0 where i<40", "X=2x40x70"},
	{"Y[b,i,c] max= j < i+4 ? X[b,j,c] : -inf where i<40", "X=2x50x70"},
	{"Y[b,i,c] += j < i+4 ? X[b,j,c] : 0 where i<40", "X=2x50x3:bf16"},
	{"Y[i] += j < i+9 ? X[j] : 0 where i<600", "X=650"},
	{"Y[i] += i < j+9 ? X[j] : 0 where i<600", "X=650"},
	{"Y[i] += j < 3*i+2 ? X[j] : 0 where i<250", "X=650"},
	{"Y[i] += i < 3*j+2 ? X[j] : 0 where i<600", "X=100"},
	{"Y[b,i] += j + b < i+5 ? X[b,j] : 0 where i<60", "X=9x70:i32"},
	{"Y[i] += j + k <= i ? A[j,k] : 0 where i<60", "A=40x30"},
	{"Y[i] += j <= i ? A[j,k] : 0 where i<40", "A=40x130"},
	{"Y[i,k] += j1 <= i && j2 <= k ? A[j1,j2] : 0 where i<30, k<40", "A=30x40"},
	{"Y[i] += j <= i ? X[j]/(i+1) : 0 where i<600", "X=600"},
	{"Y[i] += j < i ? A[i-1]*X[j]*B[j] : 0 where i<600", "A=599 X=600 B=600"},
	{"Y[b,i,d] += j <= i ? A[b,j,d]*B[b,j,d] : 0 where i<50", "A=3x50x20 B=3x50x20"},
	{"Y[i,d,e] += j <= i ? A[j,d]*B[j,e] : 0 where i<50", "A=50x20 B=50x33"},
	{"Y[i] max= j <= i ? X[j] : 0 where i<600", "X=600:u8"},
	{"Y[T[i]:5,d] += X[i,d] where i<20, d<9", "T=20:i32 X=20x9"},
	{"Y[T[i]:5,d] += X[i,d]", "T=20:i32 X=20x150"},
	{"Y[T[i]:5,d] += X[i,d]", "T=20:i32 X=20x70:bf16"},
	{"Y[d,T[i]:5,h] max= X[i,d,h]", "T=20:i32 X=20x67x3"},
	{"Y[b,T[b,i]:5,d] += X[b,i,d]", "T=3x20:i32 X=3x20x9"},
	{"Y[b,T[i]+b:9] += X[b,i]", "T=20:i32 X=7x20"},
	/* two axes number the places of a dimension; or not all of them, or of another one, too */
	{"Y[T[i]:5,24*j+k:72] += X[i,j]*Z[24*j+k]*A[i] where k<24", "T=20:i32 X=20x3 Z=72 A=20"},
	{"Y[k+19*j:57,T[i]:5] += X[i,j]*Z[j,k]", "T=20:i32 X=20x3:bf16 Z=3x19:bf16"},
	{"Y[T[i]:5,24*j+k+8:80] += X[i,j]*Z[24*j+k] where k<24", "T=20:i32 X=20x3 Z=72"},
	{"Y[T[i]+j:8,24*j+k:72] += X[i,j]*Z[24*j+k] where k<24", "T=20:i32 X=20x3 Z=72"},
	{"Y[T[i]:5,71-24*j-k:72] += X[i,j]*Z[24*j+k] where k<24", "T=20:i32 X=20x3 Z=72"},
	/* what members read lies along one of the axes that the sum's lines are made of */
	{"T[i,j,k] += G[i,l]*W[j,l,k]; Y[i,j,k] = U[i,j,k] < 0 ? 0 : T[i,j,k]/Z[i]*S[i,j] + B[k]",
	 "G=37x24 W=3x24x40 U=37x3x40 Z=37 S=37x3 B=40"},
	{"Y[i,d] = X[T[i],d]", "X=5x9 T=20:i64"},
	{"Y[2*u+h:20] += X[u,h] where u<10, h<2", "X=10x2"},
	{"Y[i,j] += i<=j ? A[i,k]*B[k,j] : 0", "A=20x6 B=6x33"},
	{"Y[i] += j<=i ? A[i,j] : 0 where j<40", "A=40x40"},
	{"Y[i] = random(3) + normal(4)*A[i]", "A=100"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=13x29:bf16 B=29x41:bf16"},
	{"Y[i,j] += f32(A[i,k])*f32(B[k,j])", "A=13x29:f16 B=29x41:f16"},
	{"Y[i,j] += f32(f16(A[i,k]))*f32(f16(B[j,k]))", "A=33x70 B=41x70"},
	{"Y[i,j] = A[i,j]*B[i,j]", "A=13x29:f16 B=13x29:f16"},
	{"Y[i] += A[i,j]", "A=13x300:i8"},
	{"Y[i,j] = A[i,j] + B[i,j]", "A=13x29:i32 B=13x29:i32"},
	{"Y[i] max= A[i,j]", "A=13x29:u8"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=33x129:i8 B=129x41:i8"},
	{"Y[i,j] += i32(A[i,k])*i32(B[j,k])", "A=33x70:u8 B=41x70:i8"},
	{"Y[i,j] += i32(A[i,k])*i32(B[k,j])", "A=35x67:i8 B=67x50:u8"},
	{"Y[i,j] += i32(A[i,k])*i32(B[k,j])", "A=48x5:u8 B=5x96:u8"},
	{"Y[i,j] += i32(A[i,k])*i32(B[j,k])", "A=90x3:i8 B=70x3:i8"},
	{"Y[k,p,q] += i32(X[c,p+r-1,q+s-1] else 0)*i32(W[k,c,r,s]) where p<19, q<19",
	 "X=7x19x19:u8 W=30x7x3x3:u8"},
	{"Y[k,p,q] += i32(X[c,2*p+r-1,2*q+s-1] else 0)*i32(W[k,c,r,s]) where p<12, q<12",
	 "X=7x24x24:i8 W=30x7x3x3:i8"},
	{"W[k,c,r,s] += f32(Y[k,p,q])*f32(X[c,p+r-1,q+s-1] else 0) where r<3, s<3",
	 "Y=30x19x19:bf16 X=7x19x19:bf16"},
	{"Y[b,k,p] += (X[b,c,2*p+r-1] else 0)*W[k,c,r] where p<20", "X=3x9x40:i32 W=17x9x3:i32"},
	{"Y[i,j] += A[i,k]*f32(B[j,k])", "A=33x70 B=41x70:i8"},
	{"Y[k,c,r,s] += D[k,p,q]*(X[c,p+r-1,q+s-1] else 0) where r<3, s<3", "D=37x7x7 X=14x7x7"},
	/* Windows by fewer products: of rows whose tiles are panels, of five taps, forwards and backwards, of sums over
	 * a window's places; under conditions, of an expression. */
	{"Y[n,k,p,q] += (X[n,c,p+r-1,q+s-1] else 0)*W[k,c,r,s] where p<32, q<32",
	 "X=2x3x32x32 W=4x3x3x3"},
	{"Y[n,k,p,q] += (X[n,c,p+r,q+s] else 0)*W[k,c,r,s] where p<16, q<64",
	 "X=3x2x16x64 W=2x2x3x3"},
	{"Y[n,k,p] += max(X[n,c,p+r], 0)*W[k,c,r] where p<61", "X=3x5x65 W=6x5x5"},
	{"Y[n,c,p,q] += 0 <= p-r+1 && p-r+1 < 9 && 0 <= q-s+1 && q-s+1 < 8 ? "
	 "D[n,k,p-r+1,q-s+1]*W[k,c,r,s] : 0 "
	 "where p<9, q<8",
	 "D=2x5x9x8 W=5x3x3x3"},
	{"Y[k,c,r] += D[n,k,p]*X[n,c,p-r+2] where r<3", "D=3x7x19 X=3x5x21"},
	{"Y[k,o,p,q] += (X[c,o+t-1,p+r-1,q+s-1] else 0)*W[k,c,t,r,s] where o<4, p<10, q<11",
	 "X=5x4x10x11 W=13x5x3x3x3"},
	{"Y[i] = f32(A[i]) * 0.5 + f32(i)", "A=130:i8"},
	/* a list of the elements of a sum, longer than a block */
	{"Y[m,n] += S[t] < 0.5 ? A[t,b,m]*B[t,b,n] : 0", "S=64 A=64x32x24 B=64x32x96"},
	{"Y[i] = A[i] > 0 && B[i] < 0.5 ? A[i] : B[i]", "A=77 B=77"},
	/* guarded reads through index tables that are filled anew in each part */
	{"Y[n,c,p,q] += f32(bf16(X[n,k,2*p+r-2,2*q+s-2] else 0)) * f32(bf16(W[c,k,r,s])) where "
	 "p<9, "
	 "q<9",
	 "X=2x3x17x17 W=16x3x5x5"},
	{"Y[n,c,p,q] += f32(f16(X[n,k,2*p+r-2,2*q+s-2] else 0)) * f32(f16(W[c,k,r,s])) where "
	 "p<9, "
	 "q<9",
	 "X=2x3x17x17 W=16x3x5x5"},
	{"Y[a,b,c] += A[a,k]*B[b,k]*C[c,k]", "A=5x7 B=6x7 C=9x7"},
	{"Y[h,i,j] += A[h,i,k]*B[h,k,j]", "A=3x17x21 B=3x21x35"},
	{"Y[] = A[]+1", "A="},
	/* residues, each written out */
	{"Y[c,k,l] = k%2 == 1 ? l%2 == 1 ? A[c,k/2,l/2] : B[c,k/2,l/2] : l%2 == 1 ? C[c,k/2] : 0 "
	 "where k<14, l<18",
	 "A=5x7x9 B=5x7x9 C=5x7"},
	{"Y[h,i] = i%3 == 1 ? A[h,i/3] : B[i] where i<9000", "A=2x3000:f64 B=9000:f64"},
	{"Y[i,j] = A[i/2,(2*j+1)/4]*B[(-j)%4] where i<9, j<20", "A=5x10 B=4"},
	{"Y[i,j] = A[i,j]%3 * B[i,j/2]", "A=5x16:i32 B=5x8:i32"},
	{"Y[i,j] = i%2 <= j%2 ? A[i/2,j/2] : B[j/2] where i<7, j<16", "A=4x8:i32 B=8:i32"},
	/* along the lanes: periods that are long */
	{"Y[i,j] = A[j/24,i]*B[j%24] + C[j/48] where j<96", "A=4x5 B=24 C=2"},
	/* a short last axis: numbers of many places, complex ones */
	{"Y[p,c] = (f32(X[p,c]) - M[c])*S[c]", "X=201x3:u8 M=3 S=3"},
	{"Y[i,c] = c == 0 ? A[i,0]*B[i,0] - A[i,1]*B[i,1] : A[i,0]*B[i,1] + A[i,1]*B[i,0] where "
	 "c<2",
	 "A=3000x2 B=3000x2"},
	{"Y[i,j] = min(1, A[i,min(j+2,3)]) where j<4", "A=32x32"},
	/* quotients by constants: of sums, of windows with borders, of functions that jump */
	{"Y[i] += A[i,j]/49 where j<49", "A=9x49"},
	{"Y[i,j] += (X[i-r,j-s] else 0)/9 where i<20, j<40, r<3, s<3", "X=18x38"},
	{"Y[i,j] += (0 <= i-r && i-r < 18 && 0 <= j-s && j-s < 38) ? -X[i-r,j-s]/9 : 0 "
	 "where i<20, j<40, r<3, s<3",
	 "X=18x38"},
	{"Y[i] = floor(A[i]*98/49)/3 + 7/A[i]", "A=500:f64"},
	/* lanes that are combined by halves: some powers of two, and none */
	{"Y[i] max= A[i,j]", "A=7x128"},
	{"Y[i] += A[i,j]*B[i,j]", "A=7x20 B=7x20"},
	{"Y[i] min= A[i,j]", "A=7x49:i8"},
	{"Y[i] *= A[i,j]", "A=5x10"},
	/* sums in blocks, the last of them shorter */
	{"Y[] += A[i,j]", "A=701x503"},
	{"Y[j] max= A[i,j]", "A=9001x19:f64"},
	{"Y[i] += A[i,j]", "A=3x100003:i32"},
	{"Y[i,k] += A[j,i,k]*B[j]", "A=40001x2x3 B=40001"},
	/* turned squares and their rests */
	{"Y[i,j] = A[j,i]*2 + B[i,j]", "A=137x201 B=201x137"},
	{"Y[b,i,j] = A[b,j,i] - A[b,j,i]*B[j,b,i]", "A=3x70x90:f64 B=70x3x90:f64"},
	{"Y[i,j] = A[j,i] + B[j,i]", "A=80x90:i32 B=80x90:i32"},
	/* windows whose padded elements are compared */
	{"Y[c,p,q] += (X[c,p+r-1,q+s-1] else 0) > 0.5 ? 1.0 : 0.0 where p<16, q<10, r<3, s<3",
	 "X=3x16x10"},
	{"Y[c,p,q] += 0 <= p-r+1 && p-r+1 <= 11 && 0 <= q-s+1 && q-s+1 <= 13 && "
	 "G[c,p-r+1,q-s+1] > H[c,p,q] ? F[c,p-r+1,q-s+1] : 0 where p<12, q<14, r<3, s<3",
	 "G=3x12x14 H=3x12x14 F=3x12x14"},
	{"Y[c,p] += (X[c,p+r-1] else 0)*W[c,r] where r<3, p<40", "X=20x40 W=20x3"},
	/* lanes over tiles in whole vectors: many points, phases, f64, a read that has no tile */
	{"Y[c,p,q] += (X[c,p+r-3,q+s-3] else 0)*W[c,r,s] where p<8, q<14", "X=3x8x14 W=3x7x7"},
	{"Y[c,p,q] += (X[c,2*p+r-2,2*q+s-2] else 1)*W[r,c,s] where p<6, q<11", "X=3x12x22 W=5x3x5"},
	{"Y[c,p,q] += (X[c,p+r-1,q+s-1] else 0)*W[r,s] where p<7, q<7", "X=3x7x7:f64 W=3x3:f64"},
	{"Y[c,p,q] max= (X[c,2*p+r-1,2*q+s-1] else -inf) where p<5, q<5, r<3, s<3", "X=9x10x10"},
	{"Y[c,p,q] += (X[c,p+r-2,q+s-2] else 0)*Z[c,p,q+s] where p<6, q<13, r<5, s<5",
	 "X=3x6x13 Z=3x6x17"},
	/* conditions that hold inside */
	{"Y[i,j] = (A[i,j-1] else 0) + (A[i,j+2] else 1) where j<70", "A=5x70"},
	{"Y[i,j] += j+k >= 3 && j-k < 90 ? A[i,j+k-3] : B[i] where j<97, k<5", "A=40x98 B=40"},
	/* indices that wrap around: both ways, several, with quotients, not at all */
	{"Y[i,j] = X[(i+5)%9,(j+7)%70] where i<9, j<70", "X=9x70"},
	{"Y[i,j] = X[i,j] + X[i,(j-1)%90] - X[i,(j+1)%90]*X[(i+1)%4,(j+45)%90] where i<4, j<90",
	 "X=4x90"},
	{"Y[i,j] = A[(j+3)/40]*B[(2*j+9)%88] + C[(3*j+1)%50] where i<3, j<41", "A=2 B=88 C=50"},
	{"Y[i] += A[(i+k)%64]*B[k] where i<64, k<5", "A=64 B=5"},
	/* and some that fail inside */
	{"Y[c,j] = X[c,j<2 ? 2-j : j>65 ? 128-j : j-2] where j<68", "X=5x64"},
	{"Y[i,j] = (A[i,j] else 0) + (j < 3 ? B[i] : 0) + (299-j < 5 ? C[j] : A[i,0]) where j<300",
	 "A=4x297 B=4 C=300"},
};

/* Programs whose equations end up in common kernels: consumers applied to the tile. */
static const Case lower_programs[] = {
	{"y[i,j] += A[i,k]*B[k,j]; z[i,j] = y[i,j] + b[j]; Y[i,j] = max(z[i,j], 0)",
	 "A=33x29 B=29x41 b=41"},
	{"y[i,j] += A[i,k]*B[k,j]; Y[i,j] = y[i,j] / (1 + y[i,j]*y[i,j]); Z[i,j] = "
	 "exp(Y[i,j])*y[i,j]",
	 "A=65x69 B=69x47"},
	{"y[n,k,p,q] += (X[n,c,p+r-1,q+s-1] else 0)*W[k,c,r,s] where p<16, q<16; "
	 "z[n,k,p,q] = M[n,k,p,q] > 0 ? y[n,k,p,q] + B[k] : 0",
	 "X=2x3x16x16 W=4x3x3x3 M=2x4x16x16 B=4"},
	{"y[c,p,q] += (X[c,p+r-2,q+s-2] else 0)*W[c,r,s] where p<7, q<7; "
	 "Y[c,p,q] = max(y[c,p,q] + A[p,q], 0)",
	 "X=5x7x7 W=5x5x5 A=7x7"},
	{"n[b,m] += P[b,m,i,j]*P[b,m,i,j]; f[b,m] = n[b,m]/(1+n[b,m])/sqrt(n[b,m]+1e-7); "
	 "Y[b,m,i,j] = P[b,m,i,j]*f[b,m]",
	 "P=5x33x4x4"},
	{"m[i] max= X[i,j]; e[i,j] = exp(X[i,j]-m[i]); s[i] += e[i,j]; Y[i,j] = e[i,j]/s[i]",
	 "X=37x10"},
	{"t[b,k,p] += G[b,c,p]*W[c,k]; d[b,k,p] = 0 < X[b,k,p]*a[k] && X[b,k,p]*a[k] < 1 ? "
	 "t[b,k,p] : 0",
	 "G=3x16x64 W=16x40 X=3x40x64 a=40"},
	{"t[n,k,p,q] += (X[n,c,2*p+r-2,2*q+s-2] else 0)*W[k,c,r,s] where p<7, q<7; d[n,k,p,q] = "
	 "t[n,k,p,q]+b[k]; "
	 "Y[n,k,p,q] = max(d[n,k,p,q], 0)",
	 "X=3x2x14x14 W=20x2x5x5 b=20"},
	{"v[b,k,p,i,j] += P[b,c,2*p+r,i,t]*W[k,c,r,t,j]; Y[b,k,p,i,j] = max(v[b,k,p,i,j], 0)*s[k]",
	 "P=7x3x9x4x4 W=11x3x3x4x4 s=11"},
	{"d[k,c,r,t,j] += P[b,c,2*p+r,i,t]*G[b,k,p,i,j]; m[k,c,r,t,j] = 0.9*M[k,c,r,t,j] + "
	 "d[k,c,r,t,j]; "
	 "w[k,c,r,t,j] = W[k,c,r,t,j] - 0.1*m[k,c,r,t,j] where r<3",
	 "P=7x3x9x4x4 G=7x11x4x4x4 M=11x3x3x4x4 W=11x3x3x4x4"},
	{"Y[i,q,j,k,l,n] += (0 <= k/2-o && k/2-o <= 2 && 0 <= l/2-p && l/2-p <= 2 && 2*o+k%2 <= 2 "
	 "&& "
	 "2*p+l%2 <= 2) ? G[i,j,k/2-o,l/2-p,n,r]*W[j,q,2*o+k%2,2*p+l%2,r] : 0 where k<7, l<7, o<2, "
	 "p<2",
	 "G=3x8x3x3x4x6 W=8x10x3x3x6"},
	{"s[j] += A[i,j]; Y[j] = sqrt(abs(s[j])) + j; Z[j] = s[j] * B[j]",
	 "A=9001x33:bf16 B=33:bf16"},
	{"s[i] += A[i,j]; Y[i] = s[i] > 0 ? sqrt(s[i]) : 0; Z[i] = Y[i] + B[i]",
	 "A=17x70:bf16 B=17:bf16"},
	{"s[j] += A[i,j]; M[j] = 0.9*m[j] + 0.1*s[j]; V[j] = 0.99*v[j] + 0.01*s[j]*s[j]; "
	 "W[j] = w[j] - 0.001*M[j]/(sqrt(V[j])+1e-8)",
	 "A=9x300 m=300 v=300 w=300"},
	/* row by row: tiles in the stack and in scratch memory, two dimensions of rows, 16 bits */
	{"m[i] max= X[i,j]; e[i,j] = exp(X[i,j]-m[i]); s[i] += e[i,j]; Y[i,j] = e[i,j]/s[i]",
	 "X=70x83"},
	{"m[i] max= X[i,j]; e[i,j] = exp(X[i,j]-m[i]); s[i] += e[i,j]; Y[i,j] = e[i,j]/s[i]",
	 "X=65x5001"},
	{"m[h,i] max= X[h,i,j]; e[h,i,j] = exp(X[h,i,j]-m[h,i]); s[h,i] += e[h,i,j]; Y[h,i,j] = "
	 "e[h,i,j]/s[h,i]",
	 "X=5x16x70:f64"},
	{"M[i] += X[i,j]/96; V[i] += (X[i,j]-M[i])*(X[i,j]-M[i])/96; Y[i,j] = "
	 "(X[i,j]-M[i])*rsqrt(V[i]+1e-5)*G[j]+B[j]",
	 "X=64x96 G=96 B=96"},
	{"s[i] += Y[i,j]*D[i,j]; G[i,j] = Y[i,j]*(D[i,j]-s[i]); n[i] max= G[i,j]",
	 "Y=64x72:bf16 D=64x72:bf16"},
	{"c[i,j] += X[i,j,k]; r[i] += c[i,j]; Y[i,j] = c[i,j] - r[i]; Z[i,j] = X[i,j,3]*r[i]",
	 "X=80x9x10"},
	/* windows of the same staged lines: one loop for both, and two where the second is ahead */
	{"m[c,p,q] max= (X[c,2*p+r-1,2*q+s-1] else -inf) where p<32, q<16, r<3, s<3; "
	 "n[c,p,q] += !((X[c,2*p+r-1,2*q+s-1] else -inf) < m[c,p,q]) ? 1.0 : 0.0 where r<3, s<3; "
	 "Y[c,p,q] = D[c,p,q]/n[c,p,q]; Z[c,p,q] = Y[c,31-p,q]*m[c,p,q]",
	 "X=66x64x32 D=66x32x16"},
	{"m[c,p,q] min= (X[c,2*p+r-1,2*q+s-1] else 2) where p<32, q<16, r<3, s<3; "
	 "n[c,p,q] += !(m[c,(p+1)%32,q] < (X[c,2*p+r-1,2*q+s-1] else 2)) ? 1.0 : 0.0 where p<32, "
	 "q<16, r<3, "
	 "s<3; Z[c,p,q] = n[c,31-p,q]*m[c,p,q]",
	 "X=66x64x32"},
	/* lanes behind the whole blocks add the same to sums of different things */
	{"s[i] += j<3 ? X[i,j] : 0; t[i] += j<3 ? Z[i,j] : 0; Y[i,j] = X[i,j]*s[i] + t[i]",
	 "X=64x65 Z=64x65"},
	{"m[i] max= X[i,j]; Y[i,j] = X[i,j]-m[i]; Z[i,j,k] = X[i,j]-m[i] where k<1", "X=64x70"},
	/* and sums over the rows */
	{"M[i] += X[i,j]/96; Y[i,j] = X[i,j]-M[i]; g[j] += D[i,j]*(X[i,j]-M[i]); b[j] += D[i,j]",
	 "X=67x96 D=67x96"},
	{"s[i] += Y[i,j]*D[i,j]; G[i,j] = Y[i,j]*(D[i,j]-s[i]); c[j] += Y[i,j]-s[i]",
	 "Y=80x72:bf16 D=80x72:bf16"},
	{"m[i] max= X[i,j]; L[] += exp(X[i,j]-m[i]); T[j] max= X[i,j]-m[i]", "X=130x70:f64"},
	{"s[h,i] += X[h,i,j]; Y[h,i,j] = X[h,i,j]*s[h,i]; c[j] += X[h,i,j]-s[h,i]; p[] *= "
	 "1+0.001*s[h,i]",
	 "X=5x30x70"},
	{"c[j] += X[i,j]*X[i,j]; d[j] += X[i,j]*A[i]; e[j] min= X[i,j]", "X=70x1030 A=70"},
	{"s[i] += X[i,j]; c[j] min= X[i,j]-s[i]; d[] += X[i,j]", "X=64x80:i32"},
	{"t[i,j] = exp(X[i,j])*W[j]; Y[i,j] = t[i,j]*t[i,j]; c[j] += t[i,j]*X[i,j]; b[j] += "
	 "t[i,j]; s[i] max= t[i,j]; Z[i,j] = t[i,j]-s[i]; d[j] *= 1+0.01*t[i,j]",
	 "X=100x70 W=70"},
	{"t[h,i,j] = exp(X[h,i,j]); Y[h,i,j] = t[h,i,j]+t[h,i,69-j]; c[j] += t[h,i,j]; Z[h,i,j] = "
	 "t[h,i,j]*W[j]",
	 "X=5x20x70:bf16 W=70:bf16"},
};

/* Their trials. */
__attribute__((unused)) static Trial *lower_cases(void)
{
	Trial *list = NULL;
	for (int k = COUNT(lower_equations) - 1; k >= 0; k--)
		list = harness_trials(&lower_equations[k], false, list);
	for (int k = COUNT(lower_programs) - 1; k >= 0; k--)
		list = harness_trials(&lower_programs[k], true, list);
	return list;
}

#endif

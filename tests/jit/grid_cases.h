/* grid_cases.h - small equations and programs for random schedules of a grid. */
#ifndef GRID_CASES_H
#define GRID_CASES_H

#include "tests/jit/lower_harness.h"

static const Case grid_cases[] = {
	{"Y[i,j] = A[j,i] + B[i]", "A=33x17 B=17"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=33x39 B=39x43"},
	{"Y[i,j] = 2*A[j,i] + B[i,j]*A[j,i] - C[j]", "A=45x70 B=70x45 C=45"},
	{"Y[n,c,p,q] = f32(X[n,p,q,c]) + exp(Z[p,q,n,c])", "X=2x7x6x40:bf16 Z=7x6x2x40"},
	{"Y[b,i,j] += A[b,k,i]*B[j,k]", "A=2x37x20:f16 B=33x37:f16"},
	{"Y[n,k,p,q] += (X[n,c,2*p+r-1,2*q+s-1] else 0)*W[k,c,r,s] where p<5, q<6",
	 "X=2x3x9x11 W=7x3x3x3"},
	{"Y[i,j] += f32(A[i,k])*f32(B[j,k])", "A=37x50:bf16 B=41x50:bf16"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=40x72:bf16 B=72x136:bf16"},
	{"Y[i,j] += f32(A[i,k])*f32(B[k,j])", "A=40x72:f16 B=72x136:f16"},
	{"Y[b,i,j] += A[b,k,i]*B[j,k]", "A=2x40x24 B=33x40"},
	{"Y[n,k,p,q] += f32(bf16(X[n,c,p+r-1,q+s-1] else 0))*f32(W[k,c,r,s]) where p<5, q<6",
	 "X=2x3x5x6 W=7x3x3x3:bf16"},
	{"Y[n,k,p,q] += f32(f16(X[n,c,p+r-1,q+s-1] else 0))*f32(W[k,c,r,s]) where p<5, q<6",
	 "X=2x3x5x6 W=7x3x3x3:f16"},
	{"Y[i,j] += tf32(A[i,k])*tf32(B[k,j])", "A=40x72 B=72x136"},
	{"Y[b,i,j] += tf32(A[b,k,i])*tf32(B[j,k]+1)", "A=2x37x20 B=33x37"},
	{"Y[n,k,p,q] += tf32(X[n,c,p+r-1,q+s-1] else 0)*f32(W[k,c,r,s]) where p<5, q<6",
	 "X=2x3x5x6 W=7x3x3x3:bf16"},
	{"Y[i] += T[j]*A[i,j/3]", "T=31 A=9x11"},
	{"Y[i] max= A[i,j,k] - B[j]", "A=7x13x10 B=13"},
	{"Y[k] += A[i,j,k]; Z[k] = Y[k] + k", "A=23x11x5:f64"},
	{"Y[] += A[i,j]*A[i,j]", "A=31x45"},
	{"Y[] *= 1 + A[i]/64", "A=70"},
	{"Y[T[i]:5,d] += X[i,d] where i<20, d<19", "T=20:i32 X=20x19:bf16"},
	{"Y[i,j] += f32(A[i,k])*B[j,k]", "A=20x33:i8 B=19x33"},
	{"V[b,k,p,i,j] += P[b,c,2*p+r,i,t]*W[k,c,r,t,j]", "P=2x3x9x4x4 W=5x3x3x4x4"},
};

/* That run row by row. */
static const Case grid_rows[] = {
	{"m[i] max= X[i,j]; e[i,j] = exp(X[i,j]-m[i]); s[i] += e[i,j]; Y[i,j] = e[i,j]/s[i]",
	 "X=9x50"},
	{"M[i] += X[i,j]/96; Y[i,j] = X[i,j]-M[i]; g[j] += D[i,j]*(X[i,j]-M[i]); b[j] += D[i,j]",
	 "X=37x96 D=37x96"},
	{"s[h,i] += X[h,i,j]; Y[h,i,j] = X[h,i,j]*s[h,i]; c[j] += X[h,i,j]-s[h,i]; p[] *= "
	 "1+0.001*s[h,i]",
	 "X=5x7x20"},
	{"t[h,i,j] = exp(X[h,i,j]); Y[h,i,j] = t[h,i,j]+t[h,i,29-j]; c[j] += t[h,i,j]; Z[h,i,j] = "
	 "t[h,i,j]*W[j]",
	 "X=3x5x30:bf16 W=30:bf16"},
};

/* Their trials, in order of the equations. */
static Trial *grid_trials(void)
{
	Trial *list = NULL;
	for (int k = 0; k < COUNT(grid_rows); k++) {
		Trial *t = harness_rows(&grid_rows[k]);
		t->next = list;
		list = t;
	}
	for (int k = COUNT(grid_cases) - 1; k >= 0; k--)
		list = harness_trials(&grid_cases[k], false, list);
	return list;
}

#endif

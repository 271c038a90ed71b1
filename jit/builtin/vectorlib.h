/* vectorlib.h - operations over chunks of elements, for tcc's kernels: tcc makes no vector code, so
 * a loop over elements becomes a few calls over a thousand of them. Built for several instruction
 * sets; generated code calls them by one name, ricci_v_<op>, and jit_symbols() gives the best that
 * the processor runs.
 *
 *	void ricci_v_<unary>(int64_t n, T *dst, const T *a, int64_t sa)
 *	void ricci_v_<binary>(int64_t n, T *dst, const T *a, int64_t sa, const T *b, int64_t sb)
 *	void ricci_v_pow_f32(the same)
 *	void ricci_v_<compare>(int64_t n, unsigned char *dst, const T *a, int64_t sa,
 *			       const T *b, int64_t sb)
 *	void ricci_v_select_<t>(int64_t n, T *dst, const unsigned char *c, int64_t sc,
 *				const T *a, int64_t sa, const T *b, int64_t sb)
 *							dst = c ? a : b
 *	void ricci_v_fma_<t>(int64_t n, T *dst, const T *a, int64_t sa, const T *b, int64_t sb)
 *							dst += a * b
 *	void ricci_v_store_<t>(int64_t n, T *dst, int64_t sd, const T *a)
 *	void ricci_v_box_<t>(int64_t rows, int64_t width, T *dst, const T *a, int64_t la, int64_t sa)
 *							dst[r*width + i] = a[r*la + i*sa]
 *	void ricci_v_pad_<t>(int64_t rows, int64_t width, T *dst, const T *a, int64_t la, int64_t sa,
 *			     const T *other, int64_t top, int64_t bottom, int64_t left, int64_t right)
 *							the same of rows top..bottom-1 and their elements
 *							left..right-1, which alone are read; *other around
 *	void ricci_v_store_box_<t>(int64_t rows, int64_t width, T *dst, int64_t ld, int64_t sd,
 *				   const T *a)		dst[r*ld + i*sd] = a[r*width + i]
 *	void ricci_v_fma_box_<t>(int64_t rows, int64_t width, T *dst, int64_t ld, const T *a, int64_t la,
 *				 int64_t sa, const T *b, int64_t lb, int64_t sb)
 *							dst[r*ld + i] += a[r*la + i*sa] * b[r*lb + i*sb],
 *							r by r: rows may be in one place (ld 0)
 *	void ricci_v_dot_box_<t>(the same)		dst[r*ld] += the sum over i of the products
 *	T ricci_v_{hsum,hprod,hmax,hmin}_<t>(int64_t n, const T *a, int64_t sa)
 *							of n >= 0 elements, from the identity
 *	void ricci_v_{hsum,hprod,hmax,hmin}_box_<t>(int64_t rows, int64_t width, T *dst, int64_t ld,
 *				 const T *a, int64_t la, int64_t sa)
 *							dst[r*ld] combined with those of row r, each its own
 *	T ricci_v_dot_<t>(int64_t n, const T *a, int64_t sa, const T *b, int64_t sb)
 *
 * Strides are in elements: 1 fast, 0 one value for all, others gather. dst is contiguous; it may be
 * one of the operands exactly (in place), not overlap it otherwise. t is f32 or f64, of
 * ricci_v_box u8 and u16, too. The rows of the table are in jit/builtin/vector_ops.def. */
#ifndef VECTORLIB_H
#define VECTORLIB_H

#include "jit/builtin/builtin.h"

/* Ends with NULL. */
extern const JitSymbol vector_symbols_sse2[], vector_symbols_avx2[], vector_symbols_avx512[],
	vector_symbols_neon[];

#endif

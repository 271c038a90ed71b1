/* mathlib.c - the mathematics of generated code: functions for tcc's kernels, text for cc's.
 *
 * Output: math_symbols, by which jit_symbols() offers every function of jit/builtin/mathlib.inc and
 * mathlib_f64.inc, and some of f64 of libm; and jit_math_prelude, the same functions as C text.
 * Random draws equal core/base/philox.c's.
 */
#include "jit/builtin/builtin.h"
#include <math.h>

#define ricci_normal   kernel_normal /* <ricci.h> has another ricci_normal */
#define MATH_TEXT(...) __VA_ARGS__
#include "jit/builtin/mathlib.inc"
#include "jit/builtin/mathlib_f64.inc"
#undef MATH_TEXT
#undef ricci_normal

/* f64 functions that come from libm: in kernels they are calls. */
#define MATH_LIBM(F) F(sin) F(cos) F(tan) F(erf)

#define DECLARE(f)     "double ricci_" #f "_f64(double) __attribute__((const));\n"
#define MATH_TEXT(...) #__VA_ARGS__
/* clang-format off */
const char jit_math_prelude[] = "#ifndef RICCI_MATH\n#define RICCI_MATH\n"
	MATH_LIBM(DECLARE)
	"double ricci_pow_f64(double, double) __attribute__((const));\n"
#include "jit/builtin/mathlib.inc"
#include "jit/builtin/mathlib_f64.inc"
	"\n#endif\n";
/* clang-format on */

#define LIBM(f)	   {"ricci_" #f "_f64", (const void *)(double (*)(double))f},
#define OWN(f)	   {"ricci_" #f, (const void *)ricci_##f},
#define OWN_F32(f) OWN(f##_f32)
#define OWN_F64(f) OWN(f##_f32) OWN(f##_f64)
/* clang-format off */
const JitSymbol math_symbols[] = {
	MATH_LIBM(LIBM)
	MATH_LIBM(OWN_F32)
	OWN_F64(exp) OWN_F64(expm1) OWN_F64(log) OWN_F64(log1p) OWN_F64(tanh) OWN_F64(sigmoid)
	OWN_F64(abs) OWN_F64(sign) OWN_F64(floor) OWN_F64(ceil) OWN_F64(round) OWN_F64(tf32) OWN_F64(sqrt) OWN_F64(rsqrt)
	OWN(pow_f32)
	{"ricci_pow_f64", (const void *)(double (*)(double, double))pow},
	OWN(random)
	{"ricci_normal", (const void *)kernel_normal},
	OWN(f32_of_bf16) OWN(bf16_of_f32) OWN(f32_of_f16) OWN(f16_of_f32)
	OWN(round_bf16) OWN(round_f16)
	{NULL, NULL},
};
/* clang-format on */

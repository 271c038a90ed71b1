/* prelude.h - helpers that the texts of several dialects begin with, as string literals. FN stands
 * before each function: static inline, or what a language has instead. */
#ifndef JIT_DIALECT_PRELUDE_H
#define JIT_DIALECT_PRELUDE_H

#include "jit/emit/emit.h"

#define TYPES                                                                                      \
	"#ifndef RICCI_PRELUDE\n"                                                                  \
	"#define RICCI_PRELUDE\n"                                                                  \
	"typedef long int64_t;\n"                                                                  \
	"typedef unsigned long uint64_t;\n"                                                        \
	"typedef struct KernelEnv { uint64_t seed, step; void *scratch, *shared; } KernelEnv;\n"

/* No number, or one between -1 and 1, is chosen to be 0: gcc 12 turns float(int(v)) into trunc(v), which
 * gives -0 for -0.5. */
#define ZERO "!((v >= 1) | (v <= -1)) ? 0"
/* Saturating conversions, floor division, absolute values: rarely met, the same everywhere. */
#define HELPERS(FN)                                                                                \
	FN "int64_t rk_i64_of_float(double v)\n"                                                   \
	   "{ return " ZERO " : v >= 9223372036854775808.0 ? 9223372036854775807L :"               \
	   " v <= -9223372036854775808.0 ? -9223372036854775807L - 1 : (int64_t)v; }\n" FN         \
	   "int rk_i32_of_float(double v)\n"                                                       \
	   "{ return " ZERO " : v >= 2147483647.0 ? 2147483647 :"                                  \
	   " v <= -2147483648.0 ? -2147483647 - 1 : (int)v; }\n" FN                                \
	   "int rk_i8_of_float(double v)\n"                                                        \
	   "{ return " ZERO " : v >= 127.0 ? 127 : v <= -128.0 ? -128 : (int)v; }\n" FN            \
	   "int rk_u8_of_float(double v)\n"                                                        \
	   "{ return " ZERO " : v >= 255.0 ? 255 : v <= 0.0 ? 0 : (int)v; }\n" FN                  \
	   "int rk_i32_of_f32(float v)\n"                                                          \
	   "{ return " ZERO " : v >= 2147483648.0f ? 2147483647 :"                                 \
	   " v <= -2147483648.0f ? -2147483647 - 1 : (int)v; }\n" FN "int rk_i8_of_f32(float v)\n" \
	   "{ float a = -128.0f > v ? -128.0f : v, b = 127.0f < a ? 127.0f : a;"                   \
	   " return " ZERO " : (int)b; }\n" FN "int rk_u8_of_f32(float v)\n"                       \
	   "{ float a = 0.0f > v ? 0.0f : v, b = 255.0f < a ? 255.0f : a;"                         \
	   " return " ZERO " : (int)b; }\n" FN "int rk_i32_of_int(int64_t v)\n"                    \
	   "{ return v > 2147483647L ? 2147483647 : v < -2147483648L ? -2147483647 - 1 : (int)v; " \
	   "}\n" FN                                                                                \
	   "int rk_i8_of_int(int64_t v) { return v > 127 ? 127 : v < -128 ? -128 : (int)v; }\n" FN \
	   "int rk_u8_of_int(int64_t v) { return v > 255 ? 255 : v < 0 ? 0 : (int)v; }\n" FN       \
	   "int64_t rk_div(int64_t a, int64_t c) { return a / c - (a % c < 0); }\n" FN             \
	   "int64_t rk_mod(int64_t a, int64_t c) { return a % c + (a % c < 0 ? c : 0); }\n" FN     \
	   "int64_t rk_abs_i64(int64_t a) { return a < 0 ? (int64_t)-(uint64_t)a : a; }\n" FN      \
	   "int rk_abs_i32(int a) { return a < 0 ? (int)-(unsigned)a : a; }\n" FN                  \
	   "int64_t rk_sign_i64(int64_t a) { return (a > 0) - (a < 0); }\n" FN                     \
	   "int rk_sign_i32(int a) { return (a > 0) - (a < 0); }\n"

/* min and max give NaN if either is NaN: by two choices, for with || gcc leaves loops as they are.
 */
#define EXTREME(type, name, compare)                                                               \
	type " rk_" name "(" type " a, " type " b) { " type " m = a " compare                      \
	     " b ? a : b; return a != a ? a : m; }\n"
/* Of a number and a constant that is one. */
#define LIMIT(type, name, compare)                                                                 \
	"static inline " type " rk_" name "(" type " x, " type " c) { return c " compare           \
	" x ? c : x; }\n"
#define LIMITS                                                                                     \
	LIMIT("float", "least_f32", ">")                                                           \
	LIMIT("float", "most_f32", "<")                                                            \
	LIMIT("double", "least_f64", ">") LIMIT("double", "most_f64", "<")
#define EXTREMES(FN)                                                                               \
	FN EXTREME("float", "max_f32", ">") FN EXTREME("float", "min_f32", "<")                    \
		FN EXTREME("double", "max_f64", ">") FN EXTREME("double", "min_f64", "<") FN       \
		"int rk_max_i32(int a, int b) { return a > b ? a : b; }\n" FN                      \
		"int rk_min_i32(int a, int b) { return a < b ? a : b; }\n" FN                      \
		"int64_t rk_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }\n" FN          \
		"int64_t rk_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }\n"

/* x / c for a constant c >= 1, rounded like a division (P. Markstein), which takes as long as five
 * multiplications or more: the quotient to one place, then what it leaves. That is no number where
 * x or the quotient is none or infinite. */
#define QUOTIENT(type, name, fma)                                                                  \
	"static inline " type " rk_over_" name "(" type " x, " type " c) { const " type            \
	" r = 1 / c, q = x * r; " type " y = " fma "(" fma "(q, c, -x), -r, q);"                   \
	" return y == y ? y : q; }\n"
#define QUOTIENTS                                                                                  \
	"#ifdef __FMA__\n" QUOTIENT("float", "f32", "__builtin_fmaf") QUOTIENT(                    \
		"double", "f64", "__builtin_fma") "#else\n"                                        \
						  "#define rk_over_f32(x, c) ((x) / (c))\n"        \
						  "#define rk_over_f64(x, c) ((x) / (c))\n"        \
						  "#endif\n"

#define SPECIALS(FN)                                                                               \
	FN "float rk_inf_f32(void) { union { unsigned u; float f; } v; v.u = 0x7f800000u; return " \
	   "v.f; }\n" FN "float rk_minus_inf_f32(void) { union { unsigned u; float f; } v; v.u = " \
	   "0xff800000u; return v.f; }\n" FN                                                       \
	   "float rk_nan_f32(void) { union { unsigned u; float f; } v; v.u = 0x7fc00000u; return " \
	   "v.f; }\n" FN "double rk_inf_f64(void) { return rk_inf_f32(); }\n" FN                   \
	   "double rk_minus_inf_f64(void) { return rk_minus_inf_f32(); }\n" FN                     \
	   "double rk_nan_f64(void) { return rk_nan_f32(); }\n"

#endif

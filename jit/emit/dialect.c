/* dialect.c - how the backends spell a loop tree: one row each, and the helpers their text needs.
 *
 * Invariant: the text includes no headers. tcc gets plain C99 scalars only (it takes vector types,
 * alignment of locals and unknown builtins without a word and does the wrong thing), and what needs
 * more than an operator is a call of a function compiled ahead. */
#include "jit/builtin/builtin.h"
#include "jit/emit/emit.h"

#include <string.h>

const char *const dialect_ctype[RICCI_NTYPES] = {
	[RICCI_F32] = "float",
	[RICCI_F64] = "double",
	[RICCI_BF16] = "unsigned short",
	[RICCI_F16] = "unsigned short",
	[RICCI_I8] = "signed char",
	[RICCI_U8] = "unsigned char",
	[RICCI_I32] = "int",
	[RICCI_I64] = "int64_t",
	[RICCI_BOOL] = "unsigned char",
};

const char *const dialect_compute[RICCI_NTYPES] = {
	[RICCI_F32] = "float", [RICCI_F64] = "double",	[RICCI_BF16] = "float",
	[RICCI_F16] = "float", [RICCI_I8] = "int",	[RICCI_U8] = "int",
	[RICCI_I32] = "int",   [RICCI_I64] = "int64_t", [RICCI_BOOL] = "int",
};

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

/* A statement expression costs tcc no call. */
#define EXTREME_MACRO(name, type, compare)                                                         \
	"#define rk_" name "(a, b) ({ const " type " a_ = (a), b_ = (b); " compare                 \
	" ? a_ : b_; })\n"

static const char tcc_prelude[] = TYPES HELPERS("static ") SPECIALS("static ")
	EXTREME_MACRO("max_f32", "float", "a_ > b_ || a_ != a_")
		EXTREME_MACRO("min_f32", "float", "a_ < b_ || a_ != a_")
			EXTREME_MACRO("max_f64", "double", "a_ > b_ || a_ != a_")
				EXTREME_MACRO("min_f64", "double", "a_ < b_ || a_ != a_")
					EXTREME_MACRO("max_i32", "int", "a_ > b_") EXTREME_MACRO(
						"min_i32", "int", "a_ < b_")
						EXTREME_MACRO("max_i64", "int64_t", "a_ > b_")
							EXTREME_MACRO("min_i64", "int64_t",
								      "a_ < b_") "#endif\n";

static const char cc_prelude[] = TYPES HELPERS("static inline ") EXTREMES("static inline ")
	LIMITS QUOTIENTS SPECIALS("static inline ") "#endif\n";

static const char cuda_prelude[] =
	TYPES HELPERS("static __device__ __inline__ ") EXTREMES("static __device__ __inline__ ")
		SPECIALS("static __device__ __inline__ ") "#endif\n";

/* Vectors under masks. A mask comes from where compilers do not see it: gcc 12.2 loads under one
 * that it knows by an instruction that reads the whole vector. */
static const char cc_lanes[] =
	"#ifndef RICCI_LANES\n#define RICCI_LANES\n"
	"#ifdef __AVX512F__\n"
	"typedef float rk_v __attribute__((vector_size(64)));\n"
	"typedef float rk_u __attribute__((vector_size(64), aligned(4), may_alias));\n"
	"typedef int rk_i __attribute__((vector_size(64)));\n"
	"typedef unsigned short rk_m;\n"
	"static inline rk_m rk_lanes(int64_t lo, int64_t hi)\n"
	"{ lo = lo < 0 ? 0 : lo; hi = hi > 16 ? 16 : hi;\n"
	"unsigned m = hi > lo ? (0xffffu >> (16 - hi)) & (0xffffu << lo) : 0;\n"
	"__asm__(\"\" : \"+r\"(m)); return (rk_m)m; }\n"
	"static inline rk_m rk_where(int c, rk_m m) { return c ? m : 0; }\n"
	"static inline rk_v rk_load(const float *p, rk_m m)\n"
	"{ return (rk_v)__builtin_ia32_loadups512_mask((const void *)p, (rk_v){0}, m); }\n"
	"static inline void rk_store(float *p, rk_v v, rk_m m)\n"
	"{ __builtin_ia32_storeups512_mask((void *)p, v, m); }\n"
	"#define RK_EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30\n"
	"#ifdef __clang__\n"
	"#define rk_pick(m, a, b) ((rk_v)__builtin_ia32_selectps_512(m, a, b))\n"
	"#else\n"
	"#define rk_pick(m, a, b) ((rk_v)__builtin_ia32_blendmps_512_mask(b, a, m))\n"
	"#endif\n"
	"#elif defined __AVX2__\n"
	"typedef float rk_v __attribute__((vector_size(32)));\n"
	"typedef float rk_u __attribute__((vector_size(32), aligned(4), may_alias));\n"
	"typedef int rk_i __attribute__((vector_size(32)));\n"
	"typedef rk_i rk_m;\n"
	"static inline rk_m rk_lanes(int64_t lo, int64_t hi)\n"
	"{ lo = lo < 0 ? 0 : lo > 8 ? 8 : lo; hi = hi > 8 ? 8 : hi < 0 ? 0 : hi;\n"
	"const rk_i n = {0, 1, 2, 3, 4, 5, 6, 7};\n"
	"rk_m m = (n >= (int)lo) & (n < (int)hi); __asm__(\"\" : \"+x\"(m)); return m; }\n"
	"static inline rk_m rk_where(int c, rk_m m) { return m & -(c != 0); }\n"
	"static inline rk_v rk_load(const float *p, rk_m m)\n"
	"{ return (rk_v)__builtin_ia32_maskloadps256((const void *)p, m); }\n"
	"static inline void rk_store(float *p, rk_v v, rk_m m)\n"
	"{ __builtin_ia32_maskstoreps256((void *)p, m, v); }\n"
	"#define rk_pick(m, a, b) rk_either(m, a, b)\n"
	"#define RK_EVEN 0, 2, 4, 6, 8, 10, 12, 14\n"
	"#endif\n"
	"#ifdef __clang__\n"
	"#define rk_even(a, b) __builtin_shufflevector(a, b, RK_EVEN)\n"
	"#else\n"
	"#define rk_even(a, b) __builtin_shuffle(a, b, (rk_i){RK_EVEN})\n"
	"#endif\n"
	"static inline rk_v rk_either(rk_i m, rk_v a, rk_v b)\n"
	"{ return (rk_v)((m & (rk_i)a) | (~m & (rk_i)b)); }\n"
	"static inline rk_i rk_agree(int c) { return (rk_i){0} - (c != 0); }\n"
	"static inline rk_v rk_vmax(rk_v a, rk_v b)\n"
	"{ return rk_either(a != a, a, rk_either(a > b, a, b)); }\n"
	"static inline rk_v rk_vmin(rk_v a, rk_v b)\n"
	"{ return rk_either(a != a, a, rk_either(a < b, a, b)); }\n"
	"static inline rk_v rk_all(float x) { return x - (rk_v){0}; }\n"
	"static inline rk_v rk_load_all(const float *p) { return *(const rk_u *)p; }\n"
	"static inline void rk_store_all(float *p, rk_v v) { *(rk_u *)p = v; }\n"
	"#endif\n";

#define UNARY(f) "float ricci_" f "_f32(float);\ndouble ricci_" f "_f64(double);\n"

/* What the library compiled ahead for tcc. */
static const char tcc_math[] = "#ifndef RICCI_MATH\n#define RICCI_MATH\n" UNARY("exp") UNARY(
	"expm1") UNARY("log") UNARY("log1p") UNARY("sqrt") UNARY("rsqrt") UNARY("sin") UNARY("cos")
	UNARY("tan") UNARY("tanh") UNARY("sigmoid") UNARY("erf") UNARY("abs") UNARY("sign")
		UNARY("floor") UNARY("ceil") UNARY(
			"round") "float ricci_pow_f32(float, float);\n"
				 "double ricci_pow_f64(double, double);\n"
				 "float ricci_random(uint64_t, uint64_t, uint64_t, uint64_t);\n"
				 "float ricci_normal(uint64_t, uint64_t, uint64_t, uint64_t);\n"
				 "float ricci_f32_of_bf16(unsigned short);\n"
				 "unsigned short ricci_bf16_of_f32(float);\n"
				 "float ricci_f32_of_f16(unsigned short);\n"
				 "unsigned short ricci_f16_of_f32(float);\n"
				 "#endif\n";

/* A loop that calls a function is none of vectors, and what is called twice gcc leaves a call. */
static const char cc_before[] = "#define inline inline __attribute__((always_inline))\n";

/* The library's own text serves the device too, once its builtins have the names they have there.
 */
static const char cuda_before[] = "#define __attribute__(x)\n"
				  "#define inline __device__ __inline__\n"
				  "#define __builtin_memcpy memcpy\n"
				  "#define __builtin_inff() __int_as_float(0x7f800000)\n"
				  "#define __builtin_nanf(s) __int_as_float(0x7fc00000)\n"
				  "#define __builtin_fabs fabs\n#define __builtin_fabsf fabsf\n"
				  "#define __builtin_copysign copysign\n"
				  "#define __builtin_copysignf copysignf\n"
				  "#define __builtin_sqrt sqrt\n#define __builtin_sqrtf sqrtf\n";

#define CUDA_F64(f) "#define ricci_" f "_f64(x) " f "(x)\n"

static const char cuda_after[] =
	"#undef inline\n#undef __attribute__\n" CUDA_F64("exp") CUDA_F64("expm1") CUDA_F64("log")
		CUDA_F64("log1p") CUDA_F64("sin") CUDA_F64("cos") CUDA_F64("tan") CUDA_F64("tanh")
			CUDA_F64("erf") "#define ricci_sigmoid_f64(x) (1.0 / (1.0 + exp(-(x))))\n"
					"#define ricci_pow_f64(x, y) pow(x, y)\n";

/* The library's mathematics in the names of C99, a function a line. */
static void math_in_c99(Text *out, const char *math)
{
	static const struct {
		const char *from, *to;
	} word[] = {{"__builtin_inff()", "INFINITY"},
		    {"__builtin_nanf(\"\")", "NAN"},
		    {"__builtin_", ""},
		    {"__attribute__((const))", ""},
		    {"unsigned long", "uint64_t"},
		    {"~0ul", "~(uint64_t)0"},
		    {"} static inline ", "}\nstatic inline "},
		    {"#endif", ""}};

	while (*math) {
		int k = 0;
		while (k < COUNT(word) && strncmp(math, word[k].from, strlen(word[k].from)))
			k++;
		text_add(out, "%s", k < COUNT(word) ? word[k].to : "");
		if (k == COUNT(word))
			text_put(out, math, 1);
		math += k < COUNT(word) ? strlen(word[k].from) : 1;
	}
}

/* What direct nests call (jit/builtin/moves.inc, prefix.inc), as plain loops. */
#define PORTABLE_TURN(n)                                                                           \
	"static inline void ricci_turn_" #n "(const void *to, int64_t line, const void *from, "    \
	"int64_t step, int64_t rows, int64_t cols)\n"                                              \
	"{ for (int64_t r = 0; r < rows; r++) for (int64_t c = 0; c < cols; c++) "                 \
	"memcpy((char *)to + (r * line + c) * " #n ", (const char *)from + (c * step + r) * " #n   \
	", " #n "); }\n"
#define PORTABLE_PREFIX(name, type, wide)                                                          \
	"static inline void ricci_prefix_" name "(const void *line, const void *all, int64_t n, "  \
	"int64_t red, int64_t back)\n"                                                             \
	"{ " type " *x = (" type " *)line, *sum = (" type " *)all, s = *sum;"                      \
	" for (int64_t k = 0; k < n; k++) { " type " *at = x + (back ? n - 1 - k : k);"            \
	" s = red == 1 ? (" type ")((" wide ")s + (" wide ")*at) : red == 2 ? (" type ")((" wide   \
	")s * (" wide ")*at) : red == 3 ? rk_max_" name "(s, *at) : rk_min_" name                  \
	"(s, *at); *at = s; } *sum = s; }\n"
static const char portable_calls[] =
	PORTABLE_TURN(4) PORTABLE_TURN(8) PORTABLE_PREFIX("f32", "float", "float")
		PORTABLE_PREFIX("f64", "double", "double") PORTABLE_PREFIX("i32", "int", "unsigned")
			PORTABLE_PREFIX("i64", "int64_t", "uint64_t");

void portable_prelude(Text *out)
{
	text_add(out, "%s",
		 "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n"
		 "typedef struct KernelEnv { uint64_t seed, step; void *scratch, *shared; } "
		 "KernelEnv;\n" HELPERS("static inline ") EXTREMES("static inline ")
			 LIMITS QUOTIENTS SPECIALS("static inline "));
	text_add(out, "%s",
		 "#define ricci_sin_f64 sin\n#define ricci_cos_f64 cos\n"
		 "#define ricci_tan_f64 tan\n#define ricci_erf_f64 erf\n"
		 "#define ricci_pow_f64 pow\n");
	/* gcc turns a loop of one vector's lanes into vectors while it is a loop; written out, it takes
	 * sums along the loop around it. */
	text_add(out, "%s",
		 "#if defined __GNUC__ && !defined __clang__ && __GNUC__ >= 8\n"
		 "#define KEEP_LOOP _Pragma(\"GCC unroll 1\")\n#else\n#define KEEP_LOOP\n#endif\n");
	text_add(out, "%s", portable_calls);
	math_in_c99(out, strstr(jit_math_prelude, "static inline"));
	text_add(out, "\n");
}

static const Dialect dialects[] = {
	{.backend = "tcc",
	 .prelude = tcc_prelude,
	 .math = tcc_math,
	 .restrict_ = "",
	 .vector = "",
	 .unroll = "",
	 .align = "",
	 .sync = "",
	 .chunk = 256},
	{.backend = "cc",
	 .prelude = cc_prelude,
	 .before_math = cc_before,
	 .math = jit_math_prelude,
	 .after_math = "#undef inline\n",
	 .restrict_ = "restrict",
	 .vector = "#pragma omp simd",
	 .unroll = "#pragma GCC unroll %d",
	 .align = " __attribute__((aligned(64)))",
	 .sync = "",
	 .ahead = "__builtin_prefetch",
	 .hide = " int64_t s%lld = %lldL;\n __asm__(\"\" : \"+r\"(s%lld));\n",
	 .zero = " int64_t s0 = 0L;\n#ifdef __AVX512VL__\n __asm__(\"\" : \"+r\"(s0));\n#endif\n",
	 .lanes = cc_lanes,
	 .versions = true},
	/* What any compiler of C99 takes; the prelude stands once in the file (portable_prelude). */
	{.backend = "c99",
	 .prelude = "",
	 .math = "",
	 .restrict_ = "restrict",
	 .vector = "",
	 .unroll = "",
	 .few_lanes = "KEEP_LOOP",
	 .align = "",
	 .sync = "",
	 .strict = true,
	 .versions = true},
	{.backend = "nvrtc",
	 .prelude = cuda_prelude,
	 .before_math = cuda_before,
	 .math = jit_math_prelude,
	 .after_math = cuda_after,
	 .restrict_ = "__restrict__",
	 .vector = "",
	 .unroll = "#pragma unroll %d",
	 .align = "",
	 .sync = "__syncthreads();",
	 .grid = true},
};

const Dialect *dialect_find(const char *backend)
{
	for (int k = 0; k < COUNT(dialects); k++)
		if (strcmp(dialects[k].backend, backend) == 0)
			return &dialects[k];
	return NULL;
}

bool backend_grid(const Backend *b)
{
	const Dialect *d = b ? dialect_find(b->name) : NULL;
	return d && d->grid;
}

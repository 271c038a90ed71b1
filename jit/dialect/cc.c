/* cc.c - C for gcc and clang: loops that they make vectors of, and vectors under masks in their
 * extensions. */
#include "jit/builtin/builtin.h"
#include "jit/dialect/prelude.h"

static const char cc_prelude[] = TYPES HELPERS("static inline ") EXTREMES("static inline ")
	LIMITS QUOTIENTS SPECIALS("static inline ") "#endif\n";

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

/* A loop that calls a function is none of vectors, and what is called twice gcc leaves a call. */
static const char cc_before[] = "#define inline inline __attribute__((always_inline))\n";

const Dialect dialect_cc = {
	.backend = "cc",
	.caps = {.vectorises = true, .predicates = true, .specialises = true, .prefetches = true},
	.prelude = cc_prelude,
	.before_math = cc_before,
	.math = jit_math_prelude,
	.after_math = "#undef inline\n",
	.restrict_ = "restrict",
	.vector = "#pragma omp simd",
	.unroll = "#pragma GCC unroll %d",
	.align = " __attribute__((aligned(64)))",
	.sync = "",
	.prefetch = "__builtin_prefetch",
	.hide = " int64_t s%lld = %lldL;\n __asm__(\"\" : \"+r\"(s%lld));\n",
	.zero = " int64_t s0 = 0L;\n#ifdef __AVX512VL__\n __asm__(\"\" : \"+r\"(s0));\n#endif\n",
	.lanes = cc_lanes,
};

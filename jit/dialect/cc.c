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
	"typedef float rk_8 __attribute__((vector_size(32)));\n"
	"typedef float rk_4 __attribute__((vector_size(16)));\n"
	"#ifdef __AVX512F__\n"
	"typedef float rk_v __attribute__((vector_size(64)));\n"
	"typedef float rk_u __attribute__((vector_size(64), aligned(4), may_alias));\n"
	"typedef int rk_i __attribute__((vector_size(64)));\n"
	"typedef unsigned short rk_m;\n"
	"#define RK_N 16\n"
	"#define RK_8(f) f((const float *)&a)\n"
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
	"#define RK_N 8\n"
	"#define RK_8(f) a\n"
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
	"#define rk_even(a, b) __builtin_shufflevector(a, b, RK_EVEN)\n"
	"static inline rk_v rk_either(rk_i m, rk_v a, rk_v b)\n"
	"{ return (rk_v)((m & (rk_i)a) | (~m & (rk_i)b)); }\n"
	/* Of scalars, for the lanes of a vector: a loop of just that is its instructions. */
	"#define RK_EACH(type, n, name, args, before, x) static inline \\\n"
	"__attribute__((always_inline)) type name args { before float r[n]; \\\n"
	"_Pragma(\"omp simd\") for (int i = 0; i < n; i++) r[i] = x; \\\n"
	"type y; __builtin_memcpy(&y, r, sizeof y); return y; }\n"
	"#define RK_ARRAY(a, v) float a[RK_N]; __builtin_memcpy(a, &v, sizeof a);\n"
	"#define RK_MAP1(name, f) RK_EACH(rk_v, RK_N, name, (rk_v v), RK_ARRAY(a, v), f(a[i]))\n"
	"#define RK_MAP2(name, f) RK_EACH(rk_v, RK_N, name, (rk_v v, rk_v w), \\\n"
	"RK_ARRAY(a, v) RK_ARRAY(b, w), f(a[i], b[i]))\n"
	"RK_MAP2(rk_vmax, rk_max_f32) RK_MAP2(rk_vmin, rk_min_f32)\n"
	"RK_MAP2(rk_vleast, rk_least_f32) RK_MAP2(rk_vmost, rk_most_f32)\n"
	"RK_MAP2(rk_vover, rk_over_f32)\n"
	/* All lanes combined, by halves. */
	"#define RK_HALF(n, name, f) \\\n"
	"RK_EACH(rk_##n, n, name, (const float *p), , f(p[i], p[i + n]))\n"
	"#define RK_FOLD(name, f) RK_HALF(8, name##8, f) RK_HALF(4, name##4, f) \\\n"
	"static inline float name(rk_v a) { rk_8 h = RK_8(name##8); \\\n"
	"rk_4 q = name##4((const float *)&h); return f(f(q[0], q[2]), f(q[1], q[3])); }\n"
	"static inline float rk_add_f32(float a, float b) { return a + b; }\n"
	"static inline float rk_mul_f32(float a, float b) { return a * b; }\n"
	"RK_FOLD(rk_sum, rk_add_f32) RK_FOLD(rk_product, rk_mul_f32)\n"
	"RK_FOLD(rk_highest, rk_max_f32) RK_FOLD(rk_lowest, rk_min_f32)\n"
	"static inline rk_i rk_agree(int c) { return (rk_i){0} - (c != 0); }\n"
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

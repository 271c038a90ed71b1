/* cc.c - C for gcc and clang: loops that they make vectors of, and vectors under masks in their
 * extensions. */
#include "jit/builtin/builtin.h"
#include "jit/dialect/prelude.h"

static const char cc_prelude[] = TYPES HELPERS("static inline ") EXTREMES("static inline ")
	LIMITS QUOTIENTS SPECIALS("static inline ") "#endif\n";

/* Vectors under masks, of any type and length. A mask comes from where compilers do not see it: gcc 12.2
 * loads under one that it knows by an instruction that reads the whole vector. */
static const char cc_lanes[] =
	"#ifndef RICCI_LANES\n"
	"#define RICCI_LANES\n"
	/* x of each lane's number. */
	"#define RK_2(x) x(0), x(1)\n"
	"#define RK_4(x) RK_2(x), x(2), x(3)\n"
	"#define RK_8(x) RK_4(x), x(4), x(5), x(6), x(7)\n"
	"#define RK_16(x) RK_8(x), x(8), x(9), x(10), x(11), x(12), x(13), x(14), x(15)\n"
	"#define RK_NUMBER(i) i\n"
	"#define RK_EVEN(i) 2 * i\n"
	"#define RK_LOW(i) (i) / 2 + (i) % 2 * n\n"
	"#define RK_HIGH(i) n / 2 + (i) / 2 + (i) % 2 * n\n"
	"#define RK_ELEMENT(i) p[(i < n ? i : n - 1) * step]\n"
	/* Of scalars, for the lanes of a vector: a loop of just that is its instructions. */
	"#define RK_EACH(V, T, N, name, args, before, x) static inline \\\n"
	"__attribute__((always_inline)) V name args { before T r[N]; \\\n"
	"_Pragma(\"omp simd\") for (int i = 0; i < N; i++) r[i] = x; \\\n"
	"V y; __builtin_memcpy(&y, r, sizeof y); return y; }\n"
	"#define RK_ARRAY(T, N, a, v) T a[N]; __builtin_memcpy(a, &v, sizeof a);\n"
	"#define RK_MAP1(V, T, N, name, f) RK_EACH(V, T, N, name, (V v), RK_ARRAY(T, N, a, v), "
	"f(a[i]))\n"
	"#define RK_MAP2(V, T, N, name, f) RK_EACH(V, T, N, name, (V v, V w), \\\n"
	"RK_ARRAY(T, N, a, v) RK_ARRAY(T, N, b, w), f(a[i], b[i]))\n"
	/* V: N elements T, of which functions are called S, and as which U sums them; I: integers of that size. */
	"#define RK_VECTOR(V, S, T, I, U, N) \\\n"
	"typedef T V __attribute__((vector_size(N * sizeof(T)))); \\\n"
	"typedef T V##_t __attribute__((vector_size(N * sizeof(T)), aligned(sizeof(T)), "
	"may_alias)); \\\n"
	"typedef I V##_i __attribute__((vector_size(N * sizeof(T)))); \\\n"
	"typedef U V##_u __attribute__((vector_size(N * sizeof(T)))); \\\n"
	"static const V##_i V##_number = {RK_##N(RK_NUMBER)}; \\\n"
	"static inline V##_i V##_agree(int c) { return (V##_i){0} - (c != 0); } \\\n"
	"static inline V V##_all(T x) { return x - (V){0}; } \\\n"
	"static inline V V##_load(const T *p) { return *(const V##_t *)p; } \\\n"
	"static inline void V##_store(T *p, V v) { *(V##_t *)p = v; } \\\n"
	"static inline V V##_gather(const T *p, int64_t step, int64_t n) { return "
	"(V){RK_##N(RK_ELEMENT)}; } \\\n"
	"static inline void V##_scatter(T *p, int64_t step, int64_t n, V v) \\\n"
	"{ _Pragma(\"GCC unroll 16\") for (int i = 0; i < N; i++) if (i < n) p[i * step] = v[i]; } "
	"\\\n"
	"static inline void V##_interleave(T *p, V a, V b) { enum { n = N }; \\\n"
	"V##_store(p, __builtin_shufflevector(a, b, RK_##N(RK_LOW))); \\\n"
	"V##_store(p + N, __builtin_shufflevector(a, b, RK_##N(RK_HIGH))); } \\\n"
	"static inline V V##_even(V a, V b) { return __builtin_shufflevector(a, b, "
	"RK_##N(RK_EVEN)); } \\\n"
	"static inline V V##_either(V##_i m, V a, V b) \\\n"
	"{ return (V)((m & (V##_i)a) | (~m & (V##_i)b)); } \\\n"
	"RK_MAP2(V, T, N, V##_max, rk_max_##S) RK_MAP2(V, T, N, V##_min, rk_min_##S)\n"
	/* What floats have besides. */
	"#define RK_REAL(V, S, T, N) RK_MAP2(V, T, N, V##_least, rk_least_##S) \\\n"
	"RK_MAP2(V, T, N, V##_most, rk_most_##S) RK_MAP2(V, T, N, V##_over, rk_over_##S)\n"
	/* All lanes combined, by halves. */
	"#define RK_X8(i) i ^ 8\n"
	"#define RK_X4(i) i ^ 4\n"
	"#define RK_X2(i) i ^ 2\n"
	"#define RK_X1(i) i ^ 1\n"
	"#define RK_HALVE(V, N, h, f) { V y = __builtin_shufflevector(x, x, RK_##N(RK_X##h)); x = "
	"f; }\n"
	"#define RK_HALVE2(V, N, f) RK_HALVE(V, N, 1, f)\n"
	"#define RK_HALVE4(V, N, f) RK_HALVE(V, N, 2, f) RK_HALVE2(V, N, f)\n"
	"#define RK_HALVE8(V, N, f) RK_HALVE(V, N, 4, f) RK_HALVE4(V, N, f)\n"
	"#define RK_HALVE16(V, N, f) RK_HALVE(V, N, 8, f) RK_HALVE8(V, N, f)\n"
	"#define RK_FOLD(V, T, N, name, f) static inline T name(V x) { RK_HALVE##N(V, N, f) return "
	"x[0]; }\n"
	"#define RK_FOLDS(V, T, N) RK_FOLD(V, T, N, V##_sum, (V)((V##_u)x + (V##_u)y)) \\\n"
	"RK_FOLD(V, T, N, V##_product, (V)((V##_u)x * (V##_u)y)) \\\n"
	"RK_FOLD(V, T, N, V##_highest, V##_max(x, y)) RK_FOLD(V, T, N, V##_lowest, V##_min(x, y))\n"
	/* Masks: builtin functions take vectors of floats F, of which they call the elements p, and the bytes. */
	"#define RK_BYTES_16 128\n"
	"#define RK_BYTES_32 256\n"
	"#define RK_BYTES_64 512\n"
	"#define RK_JOIN(a, b, c, d) a##b##c##d\n"
	"#define RK_NAME(a, b, c, d) RK_JOIN(a, b, c, d)\n"
	"#ifdef __AVX512VL__\n"
	"#ifdef __clang__\n"
	"#define RK_BLEND(p, bytes, m, a, b) RK_NAME(__builtin_ia32_select, p, _, "
	"RK_BYTES_##bytes)(m, a, b)\n"
	"#else\n"
	"#define RK_BLEND(p, bytes, m, a, b) RK_NAME(__builtin_ia32_blendm, p, _, "
	"RK_NAME(RK_BYTES_##bytes, _mask,,))(b, a, m)\n"
	"#endif\n"
	"#define RK_MASKED(V, T, F, p, N, bytes) \\\n"
	"typedef F V##_f __attribute__((vector_size(bytes))); typedef unsigned short V##_m; \\\n"
	"static inline V##_m V##_lanes(int64_t lo, int64_t hi) \\\n"
	"{ lo = lo < 0 ? 0 : lo; hi = hi > N ? N : hi; \\\n"
	"unsigned m = hi > lo ? (0xffffu >> (16 - hi)) & (0xffffu << lo) : 0; \\\n"
	"__asm__(\"\" : \"+r\"(m)); return (V##_m)m; } \\\n"
	"static inline V##_m V##_where(int c, V##_m m) { return c ? m : 0; } \\\n"
	"static inline V V##_load_some(const T *a, V##_m m) { return "
	"(V)RK_NAME(__builtin_ia32_loadu, p, \\\n"
	"RK_BYTES_##bytes, _mask)((const void *)a, (V##_f){0}, m); } \\\n"
	"static inline void V##_store_some(T *a, V v, V##_m m) \\\n"
	"{ RK_NAME(__builtin_ia32_storeu, p, RK_BYTES_##bytes, _mask)((void *)a, (V##_f)v, m); } "
	"\\\n"
	"static inline V V##_pick(V##_m m, V a, V b) \\\n"
	"{ return (V)RK_BLEND(p, bytes, m, (V##_f)a, (V##_f)b); }\n"
	"#elif defined __AVX2__\n"
	"#undef RK_BYTES_16\n"
	"#define RK_BYTES_16\n"
	"#define RK_MASKED(V, T, F, p, N, bytes) typedef V##_i V##_m; \\\n"
	"static inline V##_m V##_lanes(int64_t lo, int64_t hi) \\\n"
	"{ lo = lo < 0 ? 0 : lo > N ? N : lo; hi = hi > N ? N : hi < 0 ? 0 : hi; \\\n"
	"V##_m m = (V##_number >= (int)lo) & (V##_number < (int)hi); __asm__(\"\" : \"+x\"(m)); "
	"return m; } \\\n"
	"static inline V##_m V##_where(int c, V##_m m) { return m & -(c != 0); } \\\n"
	"static inline V V##_load_some(const T *a, V##_m m) \\\n"
	"{ return (V)RK_NAME(__builtin_ia32_maskload, p, RK_BYTES_##bytes,)((const void *)a, m); } "
	"\\\n"
	"static inline void V##_store_some(T *a, V v, V##_m m) \\\n"
	"{ RK_NAME(__builtin_ia32_maskstore, p, RK_BYTES_##bytes,)((void *)a, m, (RK_F(F, "
	"bytes))v); } \\\n"
	"static inline V V##_pick(V##_m m, V a, V b) { return V##_either(m, a, b); }\n"
	"#define RK_F(F, bytes) F __attribute__((vector_size(bytes)))\n"
	"#endif\n"
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

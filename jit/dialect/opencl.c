/* opencl.c - OpenCL C 1.2 with double precision. */
#include "jit/builtin/builtin.h"
#include "jit/dialect/prelude.h"

static const char opencl_prelude[] =
	"#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" TYPES HELPERS("static inline ")
		EXTREMES("static inline ") SPECIALS("static inline ") "#endif\n";

/* The library's own text serves here, too, once its builtins have their names here. It copies bits
 * by memcpy, which is not one of them; `half` is a type. */
static const char opencl_before[] =
	"static inline void rk_copy(char *to, const char *from, int n)\n"
	"{ for (int i = 0; i < n; i++) to[i] = from[i]; }\n"
	"#define __builtin_memcpy(to, from, n) rk_copy((char *)(to), (const char *)(from), n)\n"
	"#define __attribute__(x)\n#define half half_\n"
	"#define __builtin_inff() INFINITY\n#define __builtin_nanf(s) NAN\n"
	"#define __builtin_fabs fabs\n#define __builtin_fabsf fabs\n"
	"#define __builtin_copysign copysign\n#define __builtin_copysignf copysign\n"
	"#define __builtin_sqrt sqrt\n#define __builtin_sqrtf sqrt\n";

#define OPENCL_F64(f) "#define ricci_" f "_f64(x) " f "(x)\n"

static const char opencl_after[] = "#undef half\n#undef __attribute__\n" OPENCL_F64("exp")
	OPENCL_F64("expm1") OPENCL_F64("log") OPENCL_F64("log1p") OPENCL_F64("sin")
		OPENCL_F64("cos") OPENCL_F64("tan") OPENCL_F64("tanh")
			OPENCL_F64("erf") "#define ricci_sigmoid_f64(x) (1.0 / (1.0 + exp(-(x))))\n"
					  "#define ricci_pow_f64(x, y) pow(x, y)\n";

/* Elements of 4 bytes are exchanged as words until no other thread came between. */
#define OPENCL_ATOMIC(name, type, combined)                                                        \
	"static inline void ricci_atomic_" name "(volatile __global " type " *at, " type " b)\n"   \
	"{ volatile __global unsigned *w = (volatile __global unsigned *)at;\n"                    \
	"unsigned old = atomic_or(w, 0u), next, seen;\n"                                           \
	"for (;; old = seen) { const " type " a = as_" type "(old); next = as_uint(" combined      \
	");\nif (next == old || (seen = atomic_cmpxchg(w, old, next)) == old) return; } }\n"
#define OPENCL_ATOMICS(suffix, type, sum)                                                          \
	OPENCL_ATOMIC("add_" suffix, type, sum)                                                    \
	OPENCL_ATOMIC("max_" suffix, type, "rk_max_" suffix "(a, b)")                              \
	OPENCL_ATOMIC("min_" suffix, type, "rk_min_" suffix "(a, b)")

static const char opencl_atomics[] =
	"#ifndef RICCI_ATOMICS\n#define RICCI_ATOMICS\n" OPENCL_ATOMICS("f32", "float", "a + b")
		OPENCL_ATOMICS("i32", "int", "(unsigned)a + (unsigned)b") "#endif\n";

const Dialect dialect_opencl = {
	.backend = "opencl",
	.caps = {.grid = true, .atomics = 4},
	.prelude = opencl_prelude,
	.before_math = opencl_before,
	.math = jit_math_prelude,
	.after_math = opencl_after,
	.restrict_ = "restrict",
	.vector = "",
	.unroll = "#pragma unroll %d",
	.align = "",
	.sync = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
	.kernel = "__kernel void %s(",
	.atomics = opencl_atomics,
	.memory = "__global ",
	.block_memory = "__local ",
	.wide = "typedef struct __attribute__((aligned(%d))) { %s v[%d]; } %s;",
	.bounds = "__attribute__((reqd_work_group_size(%d, 1, 1))) ",
	.block = "const int i%d = (int)get_group_id(0);",
	.thread = "const int i%d = (int)get_local_id(0);",
};

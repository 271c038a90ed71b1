/* cuda.c - CUDA C, for NVRTC. */
#include "jit/builtin/builtin.h"
#include "jit/dialect/prelude.h"

static const char cuda_prelude[] =
	TYPES HELPERS("static __device__ __inline__ ") EXTREMES("static __device__ __inline__ ")
		SPECIALS("static __device__ __inline__ ") "#endif\n";

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

/* One product of 16 x 16 and 16 x 8 by a warp's tensor cores (PTX: mma.m16n8k16): a and b are the lane's
 * places in tiles that K is contiguous in, c its sums: two of a row, and two of the row `row` behind. */
#define CUDA_MMA(name, ptx)                                                                        \
	"__device__ __inline__ void ricci_mma_" name                                               \
	"(float *c, int row, const unsigned short *a, const unsigned short *b, int pitch)\n"       \
	"{ const unsigned a0 = *(const unsigned *)a, a1 = *(const unsigned *)(a + 8 * pitch), "    \
	"a2 = *(const unsigned *)(a + 8), a3 = *(const unsigned *)(a + 8 * pitch + 8), "           \
	"b0 = *(const unsigned *)b, b1 = *(const unsigned *)(b + 8);\n"                            \
	"asm(\"mma.sync.aligned.m16n8k16.row.col.f32." ptx "." ptx                                 \
	".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"                 \
	" : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[row]), \"+f\"(c[row + 1])"                        \
	" : \"r\"(a0), \"r\"(a1), \"r\"(a2), \"r\"(a3), \"r\"(b0), \"r\"(b1)); }\n"
static const char cuda_calls[] = "#ifndef RICCI_MMA\n#define RICCI_MMA\n" CUDA_MMA("bf16", "bf16")
	CUDA_MMA("f16", "f16") "#endif\n";

const Dialect dialect_cuda = {
	.backend = "nvrtc",
	.caps = {.grid = true, .branch_barriers = true, .fragments = true},
	.prelude = cuda_prelude,
	.before_math = cuda_before,
	.math = jit_math_prelude,
	.after_math = cuda_after,
	.restrict_ = "__restrict__",
	.vector = "",
	.unroll = "#pragma unroll %d",
	.align = "",
	.sync = "__syncthreads();",
	.block_memory = "__shared__ __align__(16) ",
	.kernel = "extern \"C\" __global__ void %s(",
	.calls = cuda_calls,
	.bounds = "__launch_bounds__(%d) ",
	.block = "const int i%d = (int)blockIdx.x;",
	.thread = "const int i%d = (int)threadIdx.x;",
};

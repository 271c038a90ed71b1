/* cuda.c - CUDA C, for NVRTC. */
#include "jit/builtin/builtin.h"
#include "jit/dialect/cuda_groups.inc"
#include "jit/dialect/prelude.h"

static const char cuda_prelude[] =
	"#ifndef RICCI_BLOCK_MEMORY\n"
	"#define RICCI_BLOCK_MEMORY extern __shared__ __align__(1024) char "
	"block_memory[]\n#endif\n" TYPES HELPERS("static __device__ __inline__ ")
		EXTREMES("static __device__ __inline__ ")
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
				  "#define __builtin_sqrt sqrt\n#define __builtin_sqrtf sqrtf\n"
				  "#if __CUDA_ARCH__ >= 800\n"
				  "#define ricci_bf16_of_f32 rm_bf16_of_f32\n"
				  "#define ricci_f16_of_f32 rm_f16_of_f32\n"
				  "#define ricci_f32_of_f16 rm_f32_of_f16\n#endif\n";

#define CUDA_F64(f) "#define ricci_" f "_f64(x) " f "(x)\n"

/* Conversions that devices have instructions for. The result is taken from the upper half of a register: from the
 * lower one ptxas 13.0 lets products of groups wait for each other, before sums that are stored so. */
#define CUDA_NARROW(type)                                                                          \
	"#undef ricci_" type "_of_f32\n"                                                           \
	"static __device__ __inline__ unsigned short ricci_" type "_of_f32(float x)\n"             \
	"{ unsigned y; asm(\"cvt.rn." type "x2.f32 %0, %1, %2;\" : \"=r\"(y) : \"f\"(x), "         \
	"\"f\"(0.0f)); return (unsigned short)(y >> 16); }\n"
#define CUDA_CONVERSIONS                                                                           \
	"#if __CUDA_ARCH__ >= 800\n" CUDA_NARROW("bf16") CUDA_NARROW(                              \
		"f16") "#undef ricci_f32_of_f16\n"                                                 \
		       "static __device__ __inline__ float ricci_f32_of_f16(unsigned short x)\n"   \
		       "{ float y; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x)); return "   \
		       "y; }\n#endif\n"

static const char cuda_after[] = CUDA_CONVERSIONS
	"#undef inline\n#undef __attribute__\n" CUDA_F64("exp") CUDA_F64("expm1") CUDA_F64("log")
		CUDA_F64("log1p") CUDA_F64("sin") CUDA_F64("cos") CUDA_F64("tan") CUDA_F64("tanh")
			CUDA_F64("erf") "#define ricci_sigmoid_f64(x) (1.0 / (1.0 + exp(-(x))))\n"
					"#define ricci_pow_f64(x, y) pow(x, y)\n";

/* Which row of four 8 x 8 matrices the lane says the place of (PTX: ldmatrix): the four of a 16 x 16 tile, those
 * below each other first, or those beside each other. Of words in lines of the other axis, register m: the place
 * of its own. */
#define CUDA_LANES                                                                                 \
	"__device__ __inline__ int ricci_lane_below(int lane, int pitch)\n"                        \
	"{ return lane % 16 * pitch + lane / 16 * 8; }\n"                                          \
	"__device__ __inline__ int ricci_lane_beside(int lane, int pitch)\n"                       \
	"{ return (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 8; }\n"                      \
	"__device__ __inline__ int ricci_word_below(int lane, int m, int pitch)\n"                 \
	"{ return (m / 2 * 4 + lane % 4) * pitch + m % 2 * 8 + lane / 4; }\n"                      \
	"__device__ __inline__ int ricci_word_beside(int lane, int m, int pitch)\n"                \
	"{ return (m % 2 * 4 + lane % 4) * pitch + m / 2 * 8 + lane / 4; }\n"

/* The fragments of a tile that K is contiguous in; _across: that the other axis is. */
#define CUDA_FRAGMENT(name, lane, trans)                                                           \
	"__device__ __inline__ void ricci_fragment_" name                                          \
	"(int *r, const unsigned short *tile, int pitch)\n"                                        \
	"{ const unsigned at = (unsigned)__cvta_generic_to_shared("                                \
	"tile + ricci_lane_" lane "((int)threadIdx.x % 32, pitch));\n"                             \
	"asm volatile(\"ldmatrix.sync.aligned.m8n8.x4" trans                                       \
	".shared.b16 {%0, %1, %2, %3}, [%4];\""                                                    \
	" : \"=r\"(r[0]), \"=r\"(r[1]), \"=r\"(r[2]), \"=r\"(r[3]) : \"r\"(at) : \"memory\"); }\n"

/* One product of 16 x 16 and 16 x 8 by a warp's tensor cores (PTX: mma.m16n8k16; of tf32 m16n8k8) of fragments a and b: c are the
 * lane's sums, two of a row, and two of the row `row` behind. */
#define CUDA_MMA(type, deep)                                                                       \
	"__device__ __inline__ void ricci_mma_" type                                               \
	"(float *c, int row, const int *a, const int *b)\n"                                        \
	"{ asm(\"mma.sync.aligned.m16n8k" deep ".row.col.f32." type "." type                       \
	".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"                 \
	" : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[row]), \"+f\"(c[row + 1])"                        \
	" : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1])); }\n"
/* Of words a fragment is 16 x 8, which lie as 16 x 16 of 16 bits do; those of tf32 are rounded in registers. */
#define CUDA_WORDS(type, to, name, lane)                                                           \
	"__device__ __inline__ void ricci_fragment_" type name                                     \
	"(int *r, const float *tile, int pitch)\n"                                                 \
	"{ ricci_fragment_" name "(r, (const unsigned short *)tile, 2 * pitch);\n"                 \
	"for (int m = 0; m < 4; m++) r[m] = " to "(__int_as_float(r[m])); }\n"                     \
	"__device__ __inline__ void ricci_fragment_" type name                                     \
	"_across(int *r, const float *tile, int pitch)\n"                                          \
	"{ for (int m = 0; m < 4; m++)\n"                                                          \
	"r[m] = " to "(tile[ricci_word_" lane "((int)threadIdx.x % 32, m, pitch)]); }\n"
/* A word is the sum of its upper 11 bits, rounded, and the lower ones: three products of these (the fourth would be
 * below the last place), the small ones first. Of an infinite word the lower ones are no number. */
#define CUDA_PARTS                                                                                 \
	"__device__ __inline__ int ricci_upper(int x) { return (x + 0x1000) & ~0x1fff; }\n"        \
	"__device__ __inline__ int ricci_lower(int x)\n"                                           \
	"{ return __float_as_int(__int_as_float(x) - __int_as_float(ricci_upper(x))); }\n"         \
	"__device__ __inline__ void ricci_mma_f32(float *c, int row, const int *a, const int "     \
	"*b)\n"                                                                                    \
	"{ const int au[] = {ricci_upper(a[0]), ricci_upper(a[1]), ricci_upper(a[2]), "            \
	"ricci_upper(a[3])};\n"                                                                    \
	"const int al[] = {ricci_lower(a[0]), ricci_lower(a[1]), ricci_lower(a[2]), "              \
	"ricci_lower(a[3])};\n"                                                                    \
	"const int bu[] = {ricci_upper(b[0]), ricci_upper(b[1])};\n"                               \
	"const int bl[] = {ricci_lower(b[0]), ricci_lower(b[1])};\n"                               \
	"ricci_mma_tf32(c, row, al, bu); ricci_mma_tf32(c, row, au, bl); "                         \
	"ricci_mma_tf32(c, row, au, bu); }\n"
#define CUDA_TF32                                                                                  \
	"__device__ __inline__ int ricci_to_tf32(float x)\n"                                       \
	"{ int r; asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(r) : \"f\"(x)); return r; "            \
	"}\n" CUDA_WORDS("tf32_", "ricci_to_tf32", "a", "below")                                   \
		CUDA_WORDS("tf32_", "ricci_to_tf32", "b", "beside")                                \
			CUDA_WORDS("f32_", "__float_as_int", "a", "below")                         \
				CUDA_WORDS("f32_", "__float_as_int", "b", "beside")                \
					CUDA_MMA("tf32", "8") CUDA_PARTS

#define CUDA_FRAGMENTS                                                                             \
	"#ifndef RICCI_LANES\n#define RICCI_LANES\n" CUDA_LANES                                    \
	"#ifndef RICCI_MMA\n#define RICCI_MMA\n" CUDA_FRAGMENT("a", "below", "")                   \
		CUDA_FRAGMENT("a_across", "beside", ".trans") CUDA_FRAGMENT("b", "beside", "")     \
			CUDA_FRAGMENT("b_across", "below", ".trans") CUDA_MMA("bf16", "16")        \
				CUDA_MMA("f16", "16") CUDA_TF32 "#endif\n#endif\n"

/* Copies into a block's memory that go on behind the thread (PTX: cp.async), zeros where it is not `inside`; the
 * end of a group of them; a wait for all groups but the last few. Both places are at multiples of `bytes`: 4,
 * 8 or 16. */
#define CUDA_COPY(size, way)                                                                       \
	"if (bytes == " size ") asm volatile(\"cp.async." way ".shared.global [%0], [%1], " size   \
	", %2;\" : : \"r\"(at), \"l\"(from), \"r\"(n) : \"memory\");\n"
#define CUDA_WAIT(n)                                                                               \
	"if (later == " n ") asm volatile(\"cp.async.wait_group " n ";\" ::: \"memory\");\n"
static const char cuda_calls[] =
	"#ifndef RICCI_COPIES\n#define RICCI_COPIES\n#if __CUDA_ARCH__ >= 800\n"
	"__device__ __inline__ void ricci_copy(void *to, const void *from, int bytes, int inside)\n"
	"{ const unsigned at = (unsigned)__cvta_generic_to_shared(to);\n"
	"const int n = inside ? bytes : 0;\n" CUDA_COPY("16", "cg") CUDA_COPY("8", "ca") CUDA_COPY(
		"4", "ca") "}\n"
			   "__device__ __inline__ void ricci_copies_end()\n"
			   "{ asm volatile(\"cp.async.commit_group;\" ::: \"memory\"); }\n"
			   "__device__ __inline__ void ricci_copies_wait(int later)\n{ " CUDA_WAIT(
				   "0") CUDA_WAIT("1")
				   CUDA_WAIT("2") "}\n"
						  "#else\n"
						  "__device__ __inline__ void ricci_copy(void *to, "
						  "const void *from, int bytes, int inside)\n"
						  "{ for (int k = 0; k < bytes / 4; k++) "
						  "((int *)to)[k] = inside ? ((const int "
						  "*)from)[k] : 0; }\n"
						  "#define ricci_copies_end()\n#define "
						  "ricci_copies_wait(later)\n#endif\n#"
						  "endif\n" CUDA_FRAGMENTS CUDA_GROUPS;

/* An element is exchanged as a word until no other thread came between; what the hardware combines itself
 * is left to it. */
#define CUDA_ATOMIC(name, type, word, combined)                                                    \
	"static __device__ __inline__ void ricci_atomic_" name "(" type " *at, " type " b)\n"      \
	"{ union { " type " v; " word " w; } old, next;\n" word                                    \
	" seen;\nfor (old.v = *(volatile " type " *)at;; old.w = seen) {\nconst " type             \
	" a = old.v; next.v = " combined ";\n"                                                     \
	"if (next.w == old.w || (seen = atomicCAS((" word                                          \
	" *)at, old.w, next.w)) == old.w) return; } }\n"
#define CUDA_EXTREMES(suffix, type, word)                                                          \
	CUDA_ATOMIC("max_" suffix, type, word, "rk_max_" suffix "(a, b)")                          \
	CUDA_ATOMIC("min_" suffix, type, word, "rk_min_" suffix "(a, b)")

static const char cuda_atomics[] =
	"#ifndef RICCI_ATOMICS\n#define RICCI_ATOMICS\n"
	"#define ricci_atomic_add_f32(at, b) atomicAdd(at, b)\n"
	"#define ricci_atomic_add_f64(at, b) atomicAdd(at, b)\n"
	"#define ricci_atomic_add_i32(at, b) atomicAdd((unsigned *)(at), (unsigned)(b))\n"
	"#define ricci_atomic_add_i64(at, b) "
	"atomicAdd((unsigned long long *)(at), (unsigned long long)(b))\n" CUDA_EXTREMES(
		"f32", "float", "unsigned") CUDA_EXTREMES("f64", "double", "unsigned long long")
		CUDA_EXTREMES("i32", "int", "unsigned")
			CUDA_EXTREMES("i64", "int64_t", "unsigned long long") "#endif\n";

const Dialect dialect_cuda = {
	.backend = "nvrtc",
	.caps = {.grid = true,
		 .branch_barriers = true,
		 .fragments = true,
		 .groups = true,
		 .copies = true,
		 .atomics = 8,
		 .block_memory = true,
		 .calls = true},
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
	.block_arrays = "RICCI_BLOCK_MEMORY;",
	.kernel = "extern \"C\" __global__ void %s(",
	.calls = cuda_calls,
	.atomics = cuda_atomics,
	.wide = "typedef struct __align__(%d) { %s v[%d]; } %s;",
	.bounds = "__launch_bounds__(%d) ",
	.block = "const int i%d = (int)blockIdx.x;",
	.thread = "const int i%d = (int)threadIdx.x;",
};

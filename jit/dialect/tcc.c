/* tcc.c - C for libtcc: plain C99 scalars only (it takes vector types, alignment of locals and
 * unknown builtins without a word and does the wrong thing); what needs more than an operator is a
 * call of a function compiled ahead. */
#include "jit/dialect/prelude.h"

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

#define UNARY(f) "float ricci_" f "_f32(float);\ndouble ricci_" f "_f64(double);\n"

/* What the library compiled ahead. */
static const char tcc_math[] = "#ifndef RICCI_MATH\n#define RICCI_MATH\n" UNARY("exp") UNARY(
	"expm1") UNARY("log") UNARY("log1p") UNARY("sqrt") UNARY("rsqrt") UNARY("sin") UNARY("cos")
	UNARY("tan") UNARY("tanh") UNARY("sigmoid") UNARY("erf") UNARY("abs") UNARY("sign")
		UNARY("floor") UNARY("ceil") UNARY("tf32") UNARY(
			"round") "float ricci_pow_f32(float, float);\n"
				 "double ricci_pow_f64(double, double);\n"
				 "float ricci_random(uint64_t, uint64_t, uint64_t, uint64_t);\n"
				 "float ricci_normal(uint64_t, uint64_t, uint64_t, uint64_t);\n"
				 "float ricci_f32_of_bf16(unsigned short);\n"
				 "unsigned short ricci_bf16_of_f32(float);\n"
				 "float ricci_f32_of_f16(unsigned short);\n"
				 "unsigned short ricci_f16_of_f32(float);\n"
				 "float ricci_round_bf16(float);\n"
				 "float ricci_round_f16(float);\n"
				 "#endif\n";

const Dialect dialect_tcc = {
	.backend = "tcc",
	.caps = {.chunk = 256},
	.prelude = tcc_prelude,
	.math = tcc_math,
	.restrict_ = "",
	.vector = "",
	.unroll = "",
	.align = "",
	.sync = "",
};

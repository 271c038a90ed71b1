/* c99.c - what any compiler of C99 takes, for exported nets; the prelude stands once in the file. */
#include "jit/builtin/builtin.h"
#include "jit/dialect/prelude.h"

#include <string.h>

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
#define PORTABLE_TRANSPOSE(n)                                                                      \
	"static inline void ricci_transpose_" #n                                                   \
	"(const void *to, int64_t line, const void *from, "                                        \
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
	PORTABLE_TRANSPOSE(4) PORTABLE_TRANSPOSE(8) PORTABLE_PREFIX("f32", "float", "float")
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

const Dialect dialect_c99 = {
	.backend = "c99",
	.caps = {.specialises = true},
	.prelude = "",
	.math = "",
	.restrict_ = "restrict",
	.vector = "",
	.unroll = "",
	.few_lanes = "KEEP_LOOP",
	.align = "",
	.sync = "",
	.strict = true,
};

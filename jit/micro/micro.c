/* micro.c - the table of register micro-kernels and the choice among them.
 *
 * Input: a target. Output: the widest micro-kernel that it runs. The plain one at the end serves
 * processors that no other row knows; it is also what the others are tested against.
 */
#include "jit/micro/kernel.h"

enum { PLAIN = 4 }; /* rows and columns */

#define PLAIN_MICRO(name, T)                                                                       \
	static void name##_at(int64_t rows, int64_t cols, int64_t k, const void *pa,               \
			      const int64_t *ts, const int64_t *tk, const void *pb,                \
			      const int64_t *tb, void *pc, int64_t ldc, int64_t add)               \
	{                                                                                          \
		const T *a = pa, *b = pb;                                                          \
		T *c = pc;                                                                         \
		for (int64_t i = 0; i < rows; i++)                                                 \
			for (int64_t j = 0; j < cols; j++) {                                       \
				T sum = add & MICRO_ADD_UP ? c[i * ldc + j] : 0;                   \
				for (int64_t p = 0; p < k; p++)                                    \
					sum += a[ts ? ts[i] + tk[p] : p * PLAIN + i] *             \
					       b[(tb ? tb[p] : p * PLAIN) + j];                    \
				c[i * ldc + j] = sum;                                              \
			}                                                                          \
	}                                                                                          \
	static void name(int64_t rows, int64_t cols, int64_t k, const void *a, const void *b,      \
			 void *c, int64_t ldc, int64_t add, const void *a_next, int64_t a_ahead,   \
			 const void *b_next, int64_t b_ahead)                                      \
	{                                                                                          \
		(void)a_next, (void)a_ahead, (void)b_next, (void)b_ahead;                          \
		name##_at(rows, cols, k, a, NULL, NULL, b, NULL, c, ldc, add);                     \
	}                                                                                          \
	static void name##_placed(int64_t rows, int64_t cols, int64_t k, const void *a,            \
				  const int64_t *ts, const int64_t *tk, const void *b, void *c,    \
				  int64_t ldc, int64_t add)                                        \
	{                                                                                          \
		name##_at(rows, cols, k, a, ts, tk, b, NULL, c, ldc, add);                         \
	}                                                                                          \
	static void name##_both(int64_t rows, int64_t cols, int64_t k, const void *a,              \
				const int64_t *ts, const int64_t *tk, const void *panel, void *c,  \
				int64_t ldc, int64_t add, int64_t b_next)                          \
	{                                                                                          \
		const MicroPanel *b = panel;                                                       \
		(void)b_next;                                                                      \
		name##_at(rows, cols, k, a, ts, tk, b->at, b->tk, c, ldc, add);                    \
	}                                                                                          \
	static void name##_listed(int64_t rows, int64_t cols, const MicroList *list,               \
				  const void *a, const int64_t *ts, const void *b, void *c,        \
				  int64_t ldc, int64_t add)                                        \
	{                                                                                          \
		name##_at(rows, cols, list->k, a, ts, list->a, b, list->b, c, ldc, add);           \
	}
PLAIN_MICRO(plain_f32, float)
PLAIN_MICRO(plain_f64, double)
PLAIN_MICRO(plain_i32, unsigned)

enum { FMA2 = ISA_AVX2 | ISA_FMA };
#define FORM(of, held_, group_, ...)                                                               \
	{                                                                                          \
		.from = of, .held = held_, .group = group_, __VA_ARGS__                            \
	}
#define MICRO(symbol_, fn_, type_, mr_, nr_, isa_)                                                 \
	{                                                                                          \
		.symbol = symbol_, .placed_symbol = symbol_ "_placed",                             \
		.both_symbol = symbol_ "_both", .listed_symbol = symbol_ "_listed", .fn = fn_,     \
		.placed = fn_##_placed, .both = fn_##_both, .listed = fn_##_listed, .type = type_, \
		.mr = mr_, .nr = nr_, .isa = isa_, .a = FORM(0, type_, 1), .b = FORM(0, type_, 1), \
		.speed = 1                                                                         \
	}

/* Panels of what may be one of several types; each side in groups of its own. */
#define BIT(type) (1u << RICCI_##type)
#define BYTES	  (BIT(I8) | BIT(U8))
#define PAIRS(of) .a = FORM(of, RICCI_BF16, 2), .b = FORM(of, RICCI_BF16, 2)
#define UNPACKED(fn_)                                                                              \
	.placed_symbol = #fn_ "_placed", .placed = fn_##_placed, .listed_symbol = #fn_ "_listed",  \
	.listed = fn_##_listed
#define TILES                                                                                      \
	.enter_symbol = "ricci_tiles_enter", .leave_symbol = "ricci_tiles_leave",                  \
	.enter = ricci_tiles_enter, .leave = ricci_tiles_leave, .whole = true, .streams_a = true
#define TILED(of)      .a = FORM(of, RICCI_BF16, 32), .b = FORM(of, RICCI_BF16, 2), TILES
#define TILED8(a_, b_) .a = FORM(BIT(a_), RICCI_U8, 64), .b = FORM(BIT(b_), RICCI_U8, 4), TILES
/* Quadruples, those of equal types finished (kernel_bytes.inc). */
#define QUAD(of, ...) FORM(BIT(of), RICCI_##of, 4, __VA_ARGS__)
#define DONE(fn_)     .finish_symbol = #fn_, .finish = fn_
#define BYTE_MICROS(set, mr_, nr_, isa_)                                                           \
	NARROW(ricci_micro_i8i8_##set, RICCI_I32, mr_, nr_, isa_, 4,                               \
	       .a = QUAD(I8, DONE(ricci_flip_##set)),                                              \
	       .b = QUAD(I8, .more = 4, DONE(ricci_sums_i8_##set))),                               \
		NARROW(ricci_micro_u8u8_##set, RICCI_I32, mr_, nr_, isa_, 4,                       \
		       .a = QUAD(U8, DONE(ricci_flip_##set)),                                      \
		       .b = QUAD(U8, .more = 4, DONE(ricci_sums_u8_##set))),                       \
		NARROW(ricci_micro_i8u8_##set, RICCI_I32, mr_, nr_, isa_, 4,                       \
		       .a = QUAD(I8, .more = 0), .b = QUAD(U8, .more = 0)),                        \
		NARROW(ricci_micro_u8i8_##set, RICCI_I32, mr_, nr_, isa_, 4,                       \
		       .a = QUAD(U8, .more = 0), .b = QUAD(I8, .more = 0))
#define NARROW(fn_, type_, mr_, nr_, isa_, speed_, ...)                                            \
	{                                                                                          \
		.symbol = #fn_, .fn = fn_, .type = type_, .mr = mr_, .nr = nr_, .isa = isa_,       \
		.speed = speed_, __VA_ARGS__                                                       \
	}

/* Widest first; of those for narrow factors, before them, the most at once. */
static const Micro micro[] = {
#if defined(__x86_64__)
	NARROW(ricci_micro_bf16_amx, RICCI_F32, 32, 32, ISA_AMX, 16, TILED(BIT(BF16))),
	NARROW(ricci_micro_i8i8_amx, RICCI_I32, 32, 32, ISA_AMX, 32, TILED8(I8, I8)),
	NARROW(ricci_micro_i8u8_amx, RICCI_I32, 32, 32, ISA_AMX, 32, TILED8(I8, U8)),
	NARROW(ricci_micro_u8i8_amx, RICCI_I32, 32, 32, ISA_AMX, 32, TILED8(U8, I8)),
	NARROW(ricci_micro_u8u8_amx, RICCI_I32, 32, 32, ISA_AMX, 32, TILED8(U8, U8)),
	NARROW(ricci_micro_bf16_avx512bf16, RICCI_F32, 14, 32, ISA_AVX512BF16, 2, PAIRS(BIT(BF16)),
	       UNPACKED(ricci_micro_bf16_avx512bf16)),
	BYTE_MICROS(avx512vnni, 14, 32, ISA_AVX512VNNI),
	NARROW(ricci_micro_i8_avx2, RICCI_I32, 6, 16, FMA2, 2, PAIRS(BYTES)),
	NARROW(ricci_micro_i8_sse2, RICCI_I32, 4, 8, ISA_SSE2, 2, PAIRS(BYTES)),
	MICRO("ricci_micro_f32_avx512", ricci_micro_f32_avx512, RICCI_F32, 14, 32, ISA_AVX512),
	MICRO("ricci_micro_f64_avx512", ricci_micro_f64_avx512, RICCI_F64, 14, 16, ISA_AVX512),
	MICRO("ricci_micro_i32_avx512", ricci_micro_i32_avx512, RICCI_I32, 14, 32, ISA_AVX512),
	MICRO("ricci_micro_f32_avx2", ricci_micro_f32_avx2, RICCI_F32, 6, 16, FMA2),
	MICRO("ricci_micro_f64_avx2", ricci_micro_f64_avx2, RICCI_F64, 6, 8, FMA2),
	MICRO("ricci_micro_i32_avx2", ricci_micro_i32_avx2, RICCI_I32, 6, 16, FMA2),
	MICRO("ricci_micro_f32_sse2", ricci_micro_f32_sse2, RICCI_F32, 4, 8, ISA_SSE2),
	MICRO("ricci_micro_f64_sse2", ricci_micro_f64_sse2, RICCI_F64, 4, 4, ISA_SSE2),
	MICRO("ricci_micro_i32_sse2", ricci_micro_i32_sse2, RICCI_I32, 4, 8, ISA_SSE2),
#elif defined(__aarch64__)
	MICRO("ricci_micro_f32_neon", ricci_micro_f32_neon, RICCI_F32, 8, 12, ISA_NEON),
	MICRO("ricci_micro_f64_neon", ricci_micro_f64_neon, RICCI_F64, 8, 6, ISA_NEON),
	MICRO("ricci_micro_i32_neon", ricci_micro_i32_neon, RICCI_I32, 8, 12, ISA_NEON),
#endif
	MICRO("ricci_micro_f32_plain", plain_f32, RICCI_F32, 4, 4, 0),
	MICRO("ricci_micro_f64_plain", plain_f64, RICCI_F64, 4, 4, 0),
	MICRO("ricci_micro_i32_plain", plain_i32, RICCI_I32, 4, 4, 0),
};

const JitSymbol micro_state_symbols[] = {
#if defined(__x86_64__)
	{"ricci_tiles_enter", (const void *)ricci_tiles_enter},
	{"ricci_tiles_leave", (const void *)ricci_tiles_leave},
#endif
	{NULL, NULL},
};

const Micro *micro_at(int i)
{
	return i < COUNT(micro) ? micro + i : NULL;
}

static bool takes(const PanelForm *f, unsigned from)
{
	return f->from == from || f->from & from;
}

static const Micro *pick(const Target *t, Type type, unsigned a, unsigned b)
{
	for (int i = 0; i < COUNT(micro); i++) {
		const Micro *m = micro + i;
		if (m->type == type && (t->isa & m->isa) == m->isa && takes(&m->a, a) &&
		    takes(&m->b, b))
			return m;
	}
	return NULL;
}

const Micro *micro_pick(const Target *t, Type type)
{
	return pick(t, type, 0, 0);
}

const Micro *micro_pick_narrow(const Target *t, Type type, Type a, Type b)
{
	return pick(t, type, 1u << a, 1u << b);
}

/* kernel_amx.c - micro-kernels on Intel's tile registers: bf16 factors with f32 sums, bytes
 * with i32 sums (Intel 64 and IA-32 Software Developer's Manual, volume 1, chapter 18).
 *
 * Input: panels of 32 lanes, A's in groups of 64 bytes of K, B's in groups of 4. Output: 32 x 32
 * sums, four tiles of 16 x 16. target.c has asked the system for the registers. Tiles are set up
 * before a row of calls, because that takes as long as a quarter of one, and given back after it:
 * other libraries of the same thread use them too, and a thread that holds none is switched faster.
 * Nothing is prefetched: the tiles' own loads keep L2 busy.
 * The processor takes subnormal bf16 numbers and f32 sums for zero.
 */
#include "jit/micro/kernel.h"

/* The second is what clang calls it before version 16. */
#if defined(__AMX_TILE__) || defined(__AMXTILE__)
#include <immintrin.h>
#include <string.h>

enum { SIDE = 32, HALF = 16, LINE = 64 }; /* rows and columns of c, of a tile; bytes of its row */

typedef struct TileConfig {
	uint8_t palette, start_row, reserved[14];
	uint16_t row_bytes[16];
	uint8_t rows[16];
} TileConfig;

/* Eight full tiles: c's 0 to 3, two of a, two of b. */
static const TileConfig full = {
	.palette = 1,
	.row_bytes = {LINE, LINE, LINE, LINE, LINE, LINE, LINE, LINE},
	.rows = {HALF, HALF, HALF, HALF, HALF, HALF, HALF, HALF},
};

/* The assembly statements here and below keep the compiler from moving memory accesses over the
 * instructions, of which it does not know that they read and write memory. */
void ricci_tiles_enter(void)
{
	__asm__ volatile("" : : "r"(&full) : "memory");
	_tile_loadconfig(&full);
}

void ricci_tiles_leave(void)
{
	_tile_release();
}

/* c += a * b for a block of K: 64 bytes of each of a's rows. */
#define STEP(multiply)                                                                             \
	_tile_stream_loadd(4, a, LINE);                                                            \
	_tile_loadd(6, b, 2 * LINE);                                                               \
	_tile_loadd(7, b + LINE, 2 * LINE);                                                        \
	multiply(0, 4, 6);                                                                         \
	multiply(1, 4, 7);                                                                         \
	_tile_stream_loadd(5, a + HALF * LINE, LINE);                                              \
	multiply(2, 5, 6);                                                                         \
	multiply(3, 5, 7);

/* Both types of c have four bytes. */
#define TILE_KERNEL(name, T, multiply, depth)                                                      \
	static void name##_full(int64_t k, const char *a, const char *b, T *c, int64_t ldc,        \
				bool add)                                                          \
	{                                                                                          \
		int64_t line = ldc * (int64_t)sizeof(T);                                           \
		__asm__ volatile("" ::: "memory");                                                 \
		_tile_zero(0);                                                                     \
		_tile_zero(1);                                                                     \
		_tile_zero(2);                                                                     \
		_tile_zero(3);                                                                     \
		if (add) {                                                                         \
			_tile_stream_loadd(0, c, line);                                            \
			_tile_stream_loadd(1, c + HALF, line);                                     \
			_tile_stream_loadd(2, c + HALF * ldc, line);                               \
			_tile_stream_loadd(3, c + HALF * ldc + HALF, line);                        \
		}                                                                                  \
		for (; k > 0; k -= depth, a += SIDE * LINE, b += SIDE * LINE) {                    \
			STEP(multiply)                                                             \
		}                                                                                  \
		_tile_stored(0, c, line);                                                          \
		_tile_stored(1, c + HALF, line);                                                   \
		_tile_stored(2, c + HALF * ldc, line);                                             \
		_tile_stored(3, c + HALF * ldc + HALF, line);                                      \
		__asm__ volatile("" ::: "memory");                                                 \
	}                                                                                          \
	void name(int64_t rows, int64_t cols, int64_t k, const void *a, const void *b, void *pc,   \
		  int64_t ldc, int64_t add, const void *a_next, int64_t a_ahead,                   \
		  const void *b_next, int64_t b_ahead)                                             \
	{                                                                                          \
		(void)a_next, (void)a_ahead, (void)b_next, (void)b_ahead;                          \
		T *c = pc, edge[SIDE * SIDE];                                                      \
		if (rows == SIDE && cols == SIDE) {                                                \
			name##_full(k, a, b, c, ldc, add &MICRO_ADD_UP);                           \
			return;                                                                    \
		}                                                                                  \
		name##_full(k, a, b, edge, SIDE, false);                                           \
		for (int64_t i = 0; i < rows; i++)                                                 \
			for (int64_t j = 0; j < cols; j++)                                         \
				c[i * ldc + j] = (add & MICRO_ADD_UP ? c[i * ldc + j] : 0) +       \
						 edge[i * SIDE + j];                               \
	}

TILE_KERNEL(ricci_micro_bf16_amx, float, _tile_dpbf16ps, 32)
TILE_KERNEL(ricci_micro_i8i8_amx, unsigned, _tile_dpbssd, 64)
TILE_KERNEL(ricci_micro_i8u8_amx, unsigned, _tile_dpbsud, 64)
TILE_KERNEL(ricci_micro_u8i8_amx, unsigned, _tile_dpbusd, 64)
TILE_KERNEL(ricci_micro_u8u8_amx, unsigned, _tile_dpbuud, 64)
#endif

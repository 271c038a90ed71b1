/* stand_in_tiles.h - Intel's tile registers and dot products in plain C, by their definitions
 * (Software Developer's Manual, volume 2), so that micro-kernels written with them are tested on
 * processors without. Included before the micro-kernel's file. */
#ifndef STAND_IN_TILES_H
#define STAND_IN_TILES_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread struct {
	unsigned char palette, start, reserved[14];
	uint16_t row_bytes[16];
	unsigned char rows[16];
} tile_config;
static __thread unsigned char tile[8][16][64];

static void tile_must(int good, const char *what)
{
	if (!good) {
		fprintf(stderr, "tile registers: %s\n", what);
		abort();
	}
}

static void tile_check(int t)
{
	tile_must(tile_config.palette == 1, "used before they are configured");
	tile_must(tile_config.rows[t] > 0 && tile_config.rows[t] <= 16 &&
			  tile_config.row_bytes[t] > 0 && tile_config.row_bytes[t] <= 64,
		  "a tile without rows or columns");
}

static void stand_in_config(const void *p)
{
	tile_must(tile_config.palette == 0, "not given back before they are configured again");
	memcpy(&tile_config, p, sizeof tile_config);
	memset(tile, 0, sizeof tile);
}

static void stand_in_move(int t, char *p, int64_t stride, int store)
{
	tile_check(t);
	for (int r = 0; r < tile_config.rows[t]; r++) {
		if (store)
			memcpy(p + r * stride, tile[t][r], tile_config.row_bytes[t]);
		else
			memcpy(tile[t][r], p + r * stride, tile_config.row_bytes[t]);
	}
}

/* Subnormal numbers count as zero. */
static float flushed(float x)
{
	return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static float bf16_value(const unsigned char *p)
{
	uint32_t u = (uint32_t)p[1] << 24 | (uint32_t)p[0] << 16;
	float x;
	memcpy(&x, &u, 4);
	return flushed(x);
}

static void tile_shapes(int c, int a, int b)
{
	tile_check(a), tile_check(b), tile_check(c);
	tile_must(tile_config.rows[a] == tile_config.rows[c] &&
			  tile_config.row_bytes[b] == tile_config.row_bytes[c] &&
			  tile_config.rows[b] * 4 == tile_config.row_bytes[a],
		  "shapes that don't fit");
}

static void stand_in_bf16(int c, int a, int b)
{
	tile_shapes(c, a, b);
	for (int i = 0; i < tile_config.rows[c]; i++)
		for (int j = 0; j < tile_config.row_bytes[c] / 4; j++) {
			float even = 0, odd = 0, *sum = (float *)tile[c][i] + j;
			for (int k = 0; k < tile_config.rows[b]; k++) {
				const unsigned char *x = tile[a][i] + 4 * k,
						    *y = tile[b][k] + 4 * j;
				even = flushed(fmaf(bf16_value(x), bf16_value(y), even));
				odd = flushed(fmaf(bf16_value(x + 2), bf16_value(y + 2), odd));
			}
			*sum = flushed(flushed(*sum) + flushed(even + odd));
		}
}

static int byte_value(const unsigned char *p, int is_signed)
{
	return is_signed ? (signed char)*p : *p;
}

static void stand_in_bytes(int c, int a, int b, int sa, int sb)
{
	tile_shapes(c, a, b);
	for (int i = 0; i < tile_config.rows[c]; i++)
		for (int j = 0; j < tile_config.row_bytes[c] / 4; j++)
			for (int k = 0; k < 4 * tile_config.rows[b]; k++)
				((unsigned *)tile[c][i])[j] +=
					(unsigned)(byte_value(tile[a][i] + k, sa) *
						   byte_value(tile[b][k / 4] + 4 * j + k % 4, sb));
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _tile_dpbssd
#undef _tile_dpbsud
#undef _tile_dpbusd
#undef _tile_dpbuud
#define _tile_loadconfig(p)	   stand_in_config(p)
#define _tile_release()		   memset(&tile_config, 0, sizeof tile_config)
#define _tile_zero(t)		   (tile_check(t), (void)memset(tile[t], 0, sizeof tile[t]))
#define _tile_loadd(t, p, stride)  stand_in_move(t, (char *)(p), stride, 0)
#define _tile_stream_loadd	   _tile_loadd
#define _tile_stored(t, p, stride) stand_in_move(t, (char *)(p), stride, 1)
#define _tile_dpbf16ps(c, a, b)	   stand_in_bf16(c, a, b)
#define _tile_dpbssd(c, a, b)	   stand_in_bytes(c, a, b, 1, 1)
#define _tile_dpbsud(c, a, b)	   stand_in_bytes(c, a, b, 1, 0)
#define _tile_dpbusd(c, a, b)	   stand_in_bytes(c, a, b, 0, 1)
#define _tile_dpbuud(c, a, b)	   stand_in_bytes(c, a, b, 0, 0)

#pragma GCC diagnostic ignored "-Wpsabi" /* inline functions only */
typedef float Stand16f __attribute__((vector_size(64)));
typedef int Stand16i __attribute__((vector_size(64)));

/* Each sum takes its pair's second product first. */
static inline Stand16f stand_in_dot_bf16(Stand16f c, Stand16i a, Stand16i b)
{
	for (int i = 0; i < 16; i++) {
		const unsigned char *x = (unsigned char *)&a + 4 * i,
				    *y = (unsigned char *)&b + 4 * i;
		float sum = flushed(fmaf(bf16_value(x + 2), bf16_value(y + 2), flushed(c[i])));
		c[i] = flushed(fmaf(bf16_value(x), bf16_value(y), sum));
	}
	return c;
}

/* Of unsigned bytes and signed ones. */
static inline Stand16i stand_in_dot_bytes(Stand16i c, Stand16i a, Stand16i b)
{
	for (int i = 0; i < 64; i++)
		c[i / 4] = (int)((unsigned)c[i / 4] +
				 (unsigned)(((unsigned char *)&a)[i] * ((signed char *)&b)[i]));
	return c;
}

#define __m512			     Stand16f
#define __m512i			     Stand16i
#define __m512bh		     Stand16i
#define _mm512_dpbf16_ps(c, a, b)    stand_in_dot_bf16(c, a, b)
#define _mm512_dpbusd_epi32(c, a, b) stand_in_dot_bytes(c, a, b)

#define __AMX_TILE__   1
#define __AMX_BF16__   1
#define __AMX_INT8__   1
#define __AVX512BF16__ 1
#define __AVX512VNNI__ 1

#endif

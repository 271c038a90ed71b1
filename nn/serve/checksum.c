/* checksum.c - XXH64, a checksum of 64 bits at the speed of memory (Collet, "xxHash fast digest
 * algorithm", version 0.1.1). Input: bytes. Output: the checksum with seed 0. Not cryptographic: it
 * finds damage, not forgery. */
#include "nn/serve/serve.h"
#include <string.h>

#define PRIME1 0x9e3779b185ebca87u
#define PRIME2 0xc2b2ae3d27d4eb4fu
#define PRIME3 0x165667b19e3779f9u
#define PRIME4 0x85ebca77c2b2ae63u
#define PRIME5 0x27d4eb2f165667c5u

static uint64_t rotate(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

/* Little-endian, as every processor that runs kernels. */
static uint64_t load(const unsigned char *s, size_t bytes)
{
	uint64_t v = 0;

	memcpy(&v, s, bytes);
	return v;
}

static uint64_t mix(uint64_t lane, uint64_t v)
{
	return rotate(lane + v * PRIME2, 31) * PRIME1;
}

static uint64_t lanes_fold(const uint64_t lane[4])
{
	uint64_t h =
		rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);

	for (int i = 0; i < 4; i++)
		h = (h ^ mix(0, lane[i])) * PRIME1 + PRIME4;
	return h;
}

uint64_t serve_checksum(const void *data, size_t n)
{
	const unsigned char *s = data, *end = s + n;
	uint64_t lane[4] = {PRIME1 + PRIME2, PRIME2, 0, -PRIME1}, h = PRIME5;

	for (; end - s >= 32; s += 32)
		for (int i = 0; i < 4; i++)
			lane[i] = mix(lane[i], load(s + (ptrdiff_t)8 * i, 8));
	if (n >= 32)
		h = lanes_fold(lane);
	h += n;
	for (; end - s >= 8; s += 8)
		h = rotate(h ^ mix(0, load(s, 8)), 27) * PRIME1 + PRIME4;
	if (end - s >= 4) {
		h = rotate(h ^ load(s, 4) * PRIME1, 23) * PRIME2 + PRIME3;
		s += 4;
	}
	for (; s < end; s++)
		h = rotate(h ^ *s * PRIME5, 11) * PRIME1;
	h = (h ^ h >> 33) * PRIME2;
	h = (h ^ h >> 29) * PRIME3;
	return h ^ h >> 32;
}

/* random.c - random numbers of data handling: orders of samples and drawn digits.
 * Invariant: the same numbers on every machine, whatever the threads do. */
#include "nn/data/data.h"

uint64_t rng_next(Rng *r)
{
	uint64_t z = r->s += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Mixed twice, so that neighbouring seeds and streams have nothing in common. */
Rng rng_make(uint64_t seed, uint64_t stream)
{
	Rng r = {seed};
	r.s = rng_next(&r) ^ stream * 0xd1342543de82ef95u;
	r.s = rng_next(&r);
	return r;
}

/* Lemire 2019: the high word of a product, with the few values rejected that would come too often.
 */
uint64_t rng_below(Rng *r, uint64_t n)
{
	unsigned __int128 m = (unsigned __int128)rng_next(r) * n;
	if ((uint64_t)m < n) {
		uint64_t least = -n % n;
		while ((uint64_t)m < least)
			m = (unsigned __int128)rng_next(r) * n;
	}
	return (uint64_t)(m >> 64);
}

double rng_range(Rng *r, double low, double high)
{
	return low + (high - low) * (double)(rng_next(r) >> 11) * 0x1p-53;
}

static void swap(uint32_t *order, int64_t i, int64_t j)
{
	uint32_t t = order[i];
	order[i] = order[j];
	order[j] = t;
}

/* Fisher-Yates. In the first epoch the file may still be being unpacked: the first 32 positions
 * choose among the first 64 samples, the next 32 among 128, and so on, so that the first step
 * need not wait. Positions past the limit still hold their own number, so what is chosen lies below
 * it. */
static void order_each(Rng *r, bool first, int64_t n, uint32_t *order)
{
	for (int64_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	for (int64_t i = 0; i < n; i++) {
		int64_t limit = !first || i / 32 > 20 ? n : INT64_C(64) << i / 32;
		if (limit > n)
			limit = n;
		swap(order, i, i + (int64_t)rng_below(r, (uint64_t)(limit - i)));
	}
}

/* Blocks in random order, then ORDER_POOL of them at a time mixed. The blocks' order is made in the
 * first elements of `order` and spread from the back, so that no memory is needed. */
static void order_blocks(Rng *r, int64_t n, int64_t block, uint32_t *order)
{
	int64_t nblock = (n + block - 1) / block, at = n, end;
	order_each(r, false, nblock, order);
	for (int64_t k = nblock; k-- > 0;) {
		int64_t from = order[k] * block, most = n - from < block ? n - from : block;
		for (int64_t i = most; i-- > 0;)
			order[--at] = (uint32_t)(from + i);
	}
	for (int64_t from = 0; from < n; from = end) {
		end = from + ORDER_POOL * block < n ? from + ORDER_POOL * block : n;
		for (int64_t i = from; i < end; i++)
			swap(order, i, i + (int64_t)rng_below(r, (uint64_t)(end - i)));
	}
}

void rng_order(uint64_t seed, uint64_t epoch, int64_t n, int64_t block, uint32_t *order)
{
	Rng r = rng_make(seed, epoch);
	if (block > 1)
		order_blocks(&r, n, block, order);
	else
		order_each(&r, !epoch, n, order);
}

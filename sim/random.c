/*
 * xoshiro256** (Blackman and Vigna), its state filled by
 * splitmix64 (Steele, Lea and Flood), as their authors advise.
 */
#include "sim/random.h"

static uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static uint64_t split(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

void wr_random_seed(struct wr_random *random, uint64_t seed, uint64_t stream)
{
	/* Mixed before they are added, or (seed + 1, stream) and (seed, stream + 1) would be related. */
	uint64_t mixed = split(&seed) + rotate(split(&stream), 32);

	for (int i = 0; i < 4; i++)
		random->state[i] = split(&mixed);
}

uint64_t wr_random_next(struct wr_random *random)
{
	uint64_t *s = random->state;
	uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate(s[3], 45);
	return result;
}

uint64_t wr_random_below(struct wr_random *random, uint64_t n)
{
	/* skips the first 2^64 mod n numbers, so that the rest splits evenly */
	uint64_t uneven = -n % n;
	uint64_t x;

	do
		x = wr_random_next(random);
	while (x < uneven);
	return x % n;
}

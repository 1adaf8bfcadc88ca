/*
 * xoshiro256** 1.0 and splitmix64, by David Blackman and Sebastiano Vigna (public domain, prng.di.unimi.it). splitmix64
 * never makes the all-zero state, from which xoshiro couldn't leave.
 */
#include "base/rng.h"

#include <string.h>

static uint64_t splitmix_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

void rng_seed(struct rng *rng, uint64_t seed)
{
	for (size_t i = 0; i < 4; i++)
		rng->state[i] = splitmix_next(&seed);
}

static uint64_t rotate_left(uint64_t word, int count)
{
	return word << count | word >> (64 - count);
}

uint64_t rng_next(struct rng *rng)
{
	uint64_t *s = rng->state;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rotate_left(s[3], 45);
	return result;
}

/* Draws below the remainder of 2^64 / range are thrown away, so that every result is equally likely. */
uint64_t rng_between(struct rng *rng, uint64_t low, uint64_t high)
{
	if (high <= low)
		return low;

	uint64_t range = high - low;
	uint64_t unfair = (UINT64_MAX - range + 1) % range; /* 2^64 modulo range */
	uint64_t drawn;

	do {
		drawn = rng_next(rng);
	} while (drawn < unfair);
	return low + drawn % range;
}

double rng_unit(struct rng *rng)
{
	return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

void rng_fill(struct rng *rng, void *data, size_t length)
{
	unsigned char *bytes = data;

	while (length > 0) {
		uint64_t word = rng_next(rng);
		size_t part = length < sizeof word ? length : sizeof word;

		memcpy(bytes, &word, part);
		bytes += part;
		length -= part;
	}
}

/*
 * Pseudo-random numbers from a seed (xoshiro256**): for jitter, masks of the simulator and tests. Not for keys.
 */
#ifndef BALLAST_BASE_RNG_H
#define BALLAST_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t state[4];
};

void rng_seed(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);
/* Uniform in [low, high); low if the range is empty. */
uint64_t rng_between(struct rng *rng, uint64_t low, uint64_t high);
/* Uniform in [0, 1). */
double rng_unit(struct rng *rng);
void rng_fill(struct rng *rng, void *data, size_t length);

#endif

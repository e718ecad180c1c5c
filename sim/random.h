/* Random numbers from a seed: small, fast, the same on every machine; not for secrets. */
#ifndef WR_SIM_RANDOM_H
#define WR_SIM_RANDOM_H

#include <stdint.h>

struct wr_random {
	uint64_t state[4];
};

/* Generators of one seed and different streams are independent. */
void wr_random_seed(struct wr_random *random, uint64_t seed, uint64_t stream);
uint64_t wr_random_next(struct wr_random *random);
uint64_t wr_random_below(struct wr_random *random, uint64_t n); /* 0..n-1; n > 0 */

#endif

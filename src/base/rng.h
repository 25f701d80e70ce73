/* Random numbers in named streams: nothing in Rubato draws from a global generator.
 *
 * A stream is a function of (seed, what it is for, index), so that adding a draw in one place never shifts the numbers
 * of another. The generator is xoshiro256**, seeded through splitmix64. The same on every machine: integer arithmetic,
 * and for the normal distribution only operations that IEEE 754 defines exactly. Proved by tests/unit/test_rng.c.
 */
#ifndef RBT_BASE_RNG_H
#define RBT_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

typedef enum rbt_stream {
    RBT_STREAM_GENERATE = 1, /* synthetic data */
    RBT_STREAM_SHUFFLE,      /* assignment of rows to workers, order within a shard */
    RBT_STREAM_BATCH,        /* choice of mini-batches */
    RBT_STREAM_STRAGGLER,    /* who is slow, and when */
    RBT_STREAM_NETWORK,      /* jitter of links in the simulator */
    RBT_STREAM_FAULT,        /* faults in the simulator */
    RBT_STREAM_SWARM,        /* random configurations of the swarm */
    RBT_STREAM_TEST,
    RBT_STREAM_METHOD, /* what methods draw */
    RBT_STREAM_GOSSIP, /* whom a peer averages with */
} rbt_stream;

typedef struct rbt_rng {
    uint64_t s[4];
} rbt_rng;

rbt_rng rbt_rng_stream(uint64_t seed, rbt_stream stream, uint64_t index);
uint64_t rbt_rng_u64(rbt_rng *rng);
uint64_t rbt_rng_below(rbt_rng *rng, uint64_t n); /* uniform in [0, n), n > 0, without bias */
double rbt_rng_f64(rbt_rng *rng);                 /* uniform in [0, 1) */
double rbt_rng_normal(rbt_rng *rng);              /* mean 0, variance 1 */
void rbt_rng_shuffle_u32(rbt_rng *rng, uint32_t *items, size_t n);

#endif

/* Proximal steps on servers: what they make of the derivatives that workers send of a range of features.
 *
 *     w_j = soft(w_j - g_j / h_j, penalty / h_j)
 *
 * A table with this procedure has a row, which is a block, per range: the features' weights, which are read, and first
 * derivatives, which are sent, share the first `width` cells; then come `width` cells to which bounds of the second derivatives
 * are sent, and in which those features are read that are watched; then some for the row itself. What workers send are
 * differences from what they sent before, so the servers' sums are always made of one derivative of each worker, an old one
 * at worst. A step is made when all workers have sent something since the last one, which is always so under BSP and SSP; or,
 * without a bound, when one of them has come round again before, and what the others sent is at most RBT_PROX_DELAY
 * steps old: it is then smaller by that (eta = 1 / (L (1 + tau)), Li et al.).
 *
 * A feature is watched if its weight is 0 and |g_j| above kkt * penalty: it may become another one soon. Of features that
 * are neither watched nor have a weight workers need not send anything (the KKT filter of Li et al.). Called by l1lr.c.
 * Proved by tests/unit/test_lasso.c.
 */
#ifndef RBT_METHOD_PROX_H
#define RBT_METHOD_PROX_H

#include "rubato.h"

#define RBT_PROX_DELAY 4 /* steps of a row without a worker's latest derivatives, at the most */

typedef struct rbt_prox {
    size_t width;   /* features of a row */
    double penalty; /* times rows, as derivatives are sums over these */
    double kkt;     /* 0: nothing is watched */
    rbt_procedure procedure;
} rbt_prox;

/* Where things are sent: 1 with every update, so that there is one; differences of the rate, by which steps are larger than
 * 1 / h. And how many columns the table has. */
static inline uint64_t rbt_prox_count(const rbt_prox *prox)
{
    return 2 * prox->width;
}

static inline uint64_t rbt_prox_rate(const rbt_prox *prox)
{
    return 2 * prox->width + 1;
}

static inline uint64_t rbt_prox_cols(const rbt_prox *prox, uint32_t workers)
{
    return 2 * prox->width + 3 + workers;
}

/* Fills in the procedure, whose argument is this struct: it must stay where it is. */
void rbt_prox_init(rbt_prox *prox);

#endif

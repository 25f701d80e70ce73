/* How likely a topic model's counts are: ln p(words, topics), the objective of lda, as Griffiths and Steyvers (2004) have it.
 *
 *     ln p(topics)         = sum over documents:  sum over k of r(alpha, n[d][k])  -  r(alpha K, n[d])
 *     ln p(words | topics) = sum over words and k of r(beta, n[w][k])  -  sum over k of r(beta V, n[k])
 *
 * where r(x, n) = ln gamma(x + n) - ln gamma(x): the logarithm of x (x + 1) ... (x + n - 1). Most counts are small, and
 * looked up. Called by lda.c and lda_sampler.c. Proved by tests/unit/test_lda.c, against the C library's gamma function.
 */
#ifndef RBT_METHOD_LDA_LIKELIHOOD_H
#define RBT_METHOD_LDA_LIKELIHOOD_H

#include <stddef.h>
#include <stdint.h>

enum { RBT_RISING_KNOWN = 256 };

typedef struct rbt_rising {
    double from;                 /* x, above 0 */
    double ln[RBT_RISING_KNOWN]; /* r(x, n) of small n */
} rbt_rising;

void rbt_rising_init(rbt_rising *rising, double from);

/* r(x, n); of what is below 0, that of 0. */
double rbt_rising_ln(const rbt_rising *rising, int64_t n);

/* The sum over a row of counts. */
double rbt_rising_ln_row(const rbt_rising *rising, const int32_t *count, size_t n);

#endif

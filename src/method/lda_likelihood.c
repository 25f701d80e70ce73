/* How likely a topic model's counts are. Contract in lda_likelihood.h. */
#include "method/lda_likelihood.h"

#include "math/functions.h"

void rbt_rising_init(rbt_rising *rising, double from)
{
    double none = rbt_ln_gamma(from);

    rising->from = from;
    for (size_t n = 0; n < RBT_RISING_KNOWN; n++)
        rising->ln[n] = n == 0 ? 0 : rbt_ln_gamma(from + (double)n) - none;
}

double rbt_rising_ln(const rbt_rising *rising, int64_t n)
{
    if (n < RBT_RISING_KNOWN)
        return rising->ln[n > 0 ? n : 0];
    return rbt_ln_gamma(rising->from + (double)n) - rbt_ln_gamma(rising->from);
}

double rbt_rising_ln_row(const rbt_rising *rising, const int32_t *count, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        if (count[i] > 0) /* seldom, where there are many topics */
            sum += rbt_rising_ln(rising, count[i]);
    return sum;
}

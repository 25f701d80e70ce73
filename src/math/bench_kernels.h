/* `rubato bench kernels`: what the fixed order of summation costs against an unconstrained loop.
 *
 * Both sides run in one go, interleaved, and the ratio of each round is taken, so that a busy machine slows both.
 */
#ifndef RBT_MATH_BENCH_KERNELS_H
#define RBT_MATH_BENCH_KERNELS_H

/* Times every kernel of every variant this processor has on 1 M elements; hands over the table line by line. */
void rbt_bench_kernels(void (*write)(void *context, const char *line), void *context);

#endif

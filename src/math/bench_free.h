/* Unconstrained kernels: what a compiler makes of plain loops when it may reorder sums and fuse multiply-adds.
 * For bench_kernels.c only; their results differ from machine to machine. */
#ifndef RBT_MATH_BENCH_FREE_H
#define RBT_MATH_BENCH_FREE_H

#include "math/kernels.h"

/* Compiled for the best instruction set this processor has. */
const rbt_kernels *rbt_bench_free(void);

#endif

/* The variants of the kernels, for kernels.c and the variants themselves; everybody else goes through kernels.h.
 *
 * What every variant must keep, so that all give the same bits:
 *   - Lanes start at +0.0 and element i goes into lane i % 16. A lane is never -0.0 (+0.0 + -0.0 is +0.0, and x - x is
 *     +0.0), so adding the +0.0 of a masked-off tail element changes nothing.
 *   - A product is rounded before it is added.
 *   - Only which NaN comes out (sign and payload) is left open: the processor takes one operand's, and compilers swap
 * them.
 */
#ifndef RBT_MATH_KERNELS_VARIANTS_H
#define RBT_MATH_KERNELS_VARIANTS_H

#include "math/functions_inline.h"
#include "math/kernels.h"

#define RBT_LANES 16

extern const rbt_kernels rbt_kernels_portable;

/* Sparse writes go one after the other in every variant: indices may repeat, and the order is promised. */
void rbt_axpy_sparse_portable(float a, const uint32_t *index, const float *value, size_t n, float *y);
void rbt_scatter_portable(const float *value, const uint32_t *index, size_t n, float *x);

#if defined(__x86_64__)
#define RBT_HAVE_X86 1
extern const rbt_kernels rbt_kernels_avx2;
extern const rbt_kernels rbt_kernels_avx512;
#else
#define RBT_HAVE_X86 0
#endif

#endif

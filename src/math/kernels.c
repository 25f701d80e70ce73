/* The choice of a kernel variant at run time.
 *
 * Called once or seldom: callers keep the table they got. Always: the answer is the same for every thread and every
 * call; threads that ask first at the same time work out the same pointer, so a relaxed atomic is enough. Proved by
 * tests/unit/test_kernels.c.
 */
#include "math/kernels_variants.h"

#include <stdatomic.h>

const rbt_kernels *rbt_kernels_of(rbt_simd simd)
{
    switch (simd) {
    case RBT_SIMD_PORTABLE:
        return &rbt_kernels_portable;
#if RBT_HAVE_X86
    case RBT_SIMD_AVX2:
        return __builtin_cpu_supports("avx2") ? &rbt_kernels_avx2 : NULL;
    case RBT_SIMD_AVX512:
        return __builtin_cpu_supports("avx512f") ? &rbt_kernels_avx512 : NULL;
#else
    case RBT_SIMD_AVX2:
    case RBT_SIMD_AVX512:
        return NULL;
#endif
    }
    return NULL;
}

const rbt_kernels *rbt_kernels_best(void)
{
    static _Atomic(const rbt_kernels *) chosen;
    const rbt_kernels *kernels = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (kernels == NULL) {
        kernels = rbt_kernels_of(RBT_SIMD_AVX512);
        if (kernels == NULL)
            kernels = rbt_kernels_of(RBT_SIMD_AVX2);
        if (kernels == NULL)
            kernels = rbt_kernels_of(RBT_SIMD_PORTABLE);
        atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
    }
    return kernels;
}

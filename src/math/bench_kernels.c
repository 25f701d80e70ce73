/* Times the kernels against plain loops that may do as they like (bench_free.c).
 *
 * Called by `rubato bench kernels`. Always: each round runs every variant and the plain loop one after the other, the
 * first of them changing from round to round, and a round gives one ratio per variant; the table shows the median ratio
 * with its quartiles, which a machine that is busy with other things disturbs little. Proved by reading: a benchmark's
 * figures are no test.
 */
#include "math/bench_kernels.h"

#include "base/mem.h"
#include "base/rng.h"
#include "math/bench_free.h"
#include "math/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ELEMENTS   ((size_t)1 << 20)
#define ROUNDS     31
#define REPEATS    4 /* calls per timing: long against the clock, short against a time slice */
#define CONTENDERS 4 /* the plain loop and at most three variants */

typedef struct bench_data {
    float *a, *b, *c;
    uint32_t *index;
    int32_t *i, *j;
    int64_t *k, *l;
    volatile double sink; /* keeps results alive */
} bench_data;

static void run_dot(const rbt_kernels *kernels, bench_data *d)
{
    d->sink = (double)kernels->dot(d->a, d->b, ELEMENTS);
}

static void run_dot_sparse(const rbt_kernels *kernels, bench_data *d)
{
    d->sink = (double)kernels->dot_sparse(d->index, d->a, ELEMENTS, d->b);
}

static void run_axpy(const rbt_kernels *kernels, bench_data *d)
{
    kernels->axpy(1e-3f, d->a, d->b, ELEMENTS);
}

static void run_blend(const rbt_kernels *kernels, bench_data *d)
{
    kernels->blend(0.5f, d->a, 0.5f, d->b, d->c, ELEMENTS);
}

static void run_axpy_sparse(const rbt_kernels *kernels, bench_data *d)
{
    kernels->axpy_sparse(1e-3f, d->index, d->a, ELEMENTS, d->b);
}

static void run_scale(const rbt_kernels *kernels, bench_data *d)
{
    kernels->scale(1.0f, d->a, ELEMENTS);
}

static void run_add(const rbt_kernels *kernels, bench_data *d)
{
    kernels->add(d->a, d->b, ELEMENTS);
}

static void run_add_i32(const rbt_kernels *kernels, bench_data *d)
{
    kernels->add_i32(d->i, d->j, ELEMENTS);
}

static void run_add_i64(const rbt_kernels *kernels, bench_data *d)
{
    kernels->add_i64(d->k, d->l, ELEMENTS);
}

static void run_gather(const rbt_kernels *kernels, bench_data *d)
{
    kernels->gather(d->a, d->index, ELEMENTS, d->c);
}

static void run_scatter(const rbt_kernels *kernels, bench_data *d)
{
    kernels->scatter(d->a, d->index, ELEMENTS, d->c);
}

static void run_norm1(const rbt_kernels *kernels, bench_data *d)
{
    d->sink = kernels->norm1(d->a, ELEMENTS);
}

static void run_norm2_squared(const rbt_kernels *kernels, bench_data *d)
{
    d->sink = kernels->norm2_squared(d->a, ELEMENTS);
}

static void run_norm_max(const rbt_kernels *kernels, bench_data *d)
{
    d->sink = (double)kernels->norm_max(d->a, ELEMENTS);
}

static void run_sgd_step(const rbt_kernels *kernels, bench_data *d)
{
    kernels->sgd_step(-1e-3f, 1e-3f, d->a, d->b, d->c, ELEMENTS);
}

/* What is timed, and how many bytes per element it reads and writes. sgd_step clears a vector: it stands last. */
static const struct {
    const char *name;
    void (*run)(const rbt_kernels *kernels, bench_data *data);
    unsigned bytes;
} benches[] = {
    {"dot", run_dot, 8},
    {"axpy", run_axpy, 12},
    {"blend", run_blend, 12},
    {"dot_sparse", run_dot_sparse, 12},
    {"axpy_sparse", run_axpy_sparse, 16},
    {"scale", run_scale, 8},
    {"add", run_add, 12},
    {"add_i32", run_add_i32, 12},
    {"add_i64", run_add_i64, 24},
    {"gather", run_gather, 12},
    {"scatter", run_scatter, 12},
    {"norm1", run_norm1, 4},
    {"norm2_squared", run_norm2_squared, 4},
    {"norm_max", run_norm_max, 4},
    {"sgd_step", run_sgd_step, 24},
};

#define BENCHES (sizeof benches / sizeof benches[0])

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static bool data_init(bench_data *data)
{
    *data = (bench_data){
        .a = rbt_try_alloc(ELEMENTS, sizeof(float)),
        .b = rbt_try_alloc(ELEMENTS, sizeof(float)),
        .c = rbt_try_alloc(ELEMENTS, sizeof(float)),
        .index = rbt_try_alloc(ELEMENTS, sizeof(uint32_t)),
        .i = rbt_try_alloc(ELEMENTS, sizeof(int32_t)),
        .j = rbt_try_alloc(ELEMENTS, sizeof(int32_t)),
        .k = rbt_try_alloc(ELEMENTS, sizeof(int64_t)),
        .l = rbt_try_alloc(ELEMENTS, sizeof(int64_t)),
    };
    if (!data->a || !data->b || !data->c || !data->index || !data->i || !data->j || !data->k || !data->l)
        return false;
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    for (size_t n = 0; n < ELEMENTS; n++) {
        data->a[n] = (float)rbt_rng_normal(&rng);
        data->b[n] = (float)rbt_rng_normal(&rng);
        data->index[n] = (uint32_t)rbt_rng_below(&rng, ELEMENTS);
        data->i[n] = (int32_t)rbt_rng_below(&rng, 1000);
        data->k[n] = (int64_t)rbt_rng_below(&rng, 1000);
    }
    return true;
}

static void data_deinit(bench_data *data)
{
    rbt_free(data->a);
    rbt_free(data->b);
    rbt_free(data->c);
    rbt_free(data->index);
    rbt_free(data->i);
    rbt_free(data->j);
    rbt_free(data->k);
    rbt_free(data->l);
}

/* seconds[c][round] for each contender; the one that begins changes from round to round. */
static void time_bench(size_t bench, const rbt_kernels *const *contender, size_t contenders, bench_data *data,
                       double seconds[CONTENDERS][ROUNDS])
{
    for (size_t c = 0; c < contenders; c++)
        benches[bench].run(contender[c], data); /* warms caches and pages */
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t turn = 0; turn < contenders; turn++) {
            size_t c = (round + turn) % contenders;
            double begin = now_s();
            for (int repeat = 0; repeat < REPEATS; repeat++)
                benches[bench].run(contender[c], data);
            seconds[c][round] = (now_s() - begin) / REPEATS;
        }
    }
}

/* One line per variant: contender 0 is the plain loop. */
static void tell_bench(size_t bench, const rbt_kernels *const *contender, size_t contenders,
                       double seconds[CONTENDERS][ROUNDS], void (*write)(void *context, const char *line),
                       void *context)
{
    for (size_t c = 1; c < contenders; c++) {
        double ratio[ROUNDS];
        double ours[ROUNDS];
        for (size_t round = 0; round < ROUNDS; round++) {
            ratio[round] = seconds[c][round] / seconds[0][round];
            ours[round] = seconds[c][round];
        }
        qsort(ratio, ROUNDS, sizeof ratio[0], compare_doubles);
        qsort(ours, ROUNDS, sizeof ours[0], compare_doubles);
        double gigabytes_per_s = (double)(benches[bench].bytes * ELEMENTS) / ours[ROUNDS / 2] * 1e-9;
        char line[160];
        snprintf(line, sizeof line, "%-14s %-9s %6.2f  (%.2f .. %.2f)  %7.1f us  %6.1f GB/s", benches[bench].name,
                 contender[c]->name, ratio[ROUNDS / 2], ratio[ROUNDS / 4], ratio[ROUNDS * 3 / 4],
                 ours[ROUNDS / 2] * 1e6, gigabytes_per_s);
        write(context, line);
    }
}

void rbt_bench_kernels(void (*write)(void *context, const char *line), void *context)
{
    const rbt_kernels *contender[CONTENDERS];
    size_t contenders = 0;
    contender[contenders++] = rbt_bench_free();
    for (rbt_simd simd = RBT_SIMD_PORTABLE; simd <= RBT_SIMD_AVX512; simd++)
        if (rbt_kernels_of(simd) != NULL)
            contender[contenders++] = rbt_kernels_of(simd);

    char line[160];
    snprintf(line, sizeof line, "time of a kernel / time of an unconstrained loop (%s), %zu elements, %d rounds",
             contender[0]->name, ELEMENTS, ROUNDS);
    write(context, line);
    write(context, "kernel         variant   median  (quartiles)");

    bench_data data;
    if (data_init(&data)) {
        double seconds[CONTENDERS][ROUNDS];
        for (size_t bench = 0; bench < BENCHES; bench++) {
            time_bench(bench, contender, contenders, &data, seconds);
            tell_bench(bench, contender, contenders, seconds, write, context);
        }
    } else {
        write(context, "not enough memory for the vectors (48 MiB): free some and run again");
    }
    data_deinit(&data);
}

/* Proves what BSP promises: with the same seed the same parameters, bit for bit, on both runtimes, for any number of
 * servers, on every run, with messages passed as pointers or encoded, whoever is slow and whatever the network does to
 * messages; and that the mean of W workers' updates is the update of one worker with all their rows. */
#include "sim/jobs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "data/shard.h"

#define ROWS         240
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const char *const RULES[] = {"con",    "sum",     "dyn partition-sync=off", "dyn partition-sync=on", "adagrad",
                                    "adarev", "momentum"};
static const uint32_t WORKERS[] = {1, 2, 4, 8};

#define JOB "data=data.svm sync=bsp rule=%s workers=%u servers=%u seed=%u clocks=5 batch=25%% l2=0.01 lr=0.2 "

#define STRAGGLERS "straggler=frac=0.3,slow=5;p=0.2,slow=4;lognormal=0.5 "
#define FAULTS     "faults=drop=0.1,dup=0.2,delay=0.2,partition=3,within=20ms net=bw=100Mbit,lat=50us,jitter=200us "

/* Every way to run the same job. */
static const char *const WAYS[] = {
    "runtime=local",
    "runtime=local encode=true straggler=worker=0,slow=2",
    "runtime=sim",
    "runtime=sim encode=true eval-every=0",
    "runtime=sim per-process=3",
    "runtime=sim " STRAGGLERS,
    "runtime=sim " FAULTS,
    "runtime=sim encode=true verify=true " STRAGGLERS FAULTS,
};

/* Runs a job in every way with 1 to `servers` servers; all must give `expected`. */
static void all_ways_give(uint64_t expected, const char *rule, uint32_t workers, uint32_t servers, uint32_t seed)
{
    for (uint32_t p = 1; p <= servers; p++)
        for (size_t way = 0; way < COUNT(WAYS); way++)
            if (job_hash(JOB "%s", rule, workers, p, seed, WAYS[way]) != expected)
                fail_msg("rule %s, %u workers, %u servers, seed %u: '%s' gives other bits", rule, workers, p, seed,
                         WAYS[way]);
}

static void bsp_is_the_same_on_local_and_sim_for_1_2_4_8_workers_and_1_to_4_servers(void **state)
{
    (void)state;
    for (size_t rule = 0; rule < COUNT(RULES); rule++)
        for (size_t w = 0; w < COUNT(WORKERS); w++)
            for (uint32_t seed = 1; seed <= 3; seed++) {
                uint64_t expected = job_hash(JOB "runtime=sim", RULES[rule], WORKERS[w], 1, seed);

                all_ways_give(expected, RULES[rule], WORKERS[w], 4, seed);
            }
}

/* 245 rows, 4 workers, one batch of 61 rows a clock: the first worker has 62 rows and twice as many clocks. */
static void workers_that_run_dry_leave_the_same_bits_everywhere(void **state)
{
    (void)state;
    data_write("uneven.svm", 245, 57, 6, 4);
    for (size_t rule = 0; rule < COUNT(RULES); rule++) {
        uint64_t expected = 0;

        for (uint32_t servers = 1; servers <= 3; servers++)
            for (size_t way = 0; way < COUNT(WAYS); way++) {
                job_outcome o =
                    job_run("data=uneven.svm sync=bsp rule=%s workers=4 servers=%u batch=61 batches-per-clock=1 "
                            "epochs=3 %s",
                            RULES[rule], servers, WAYS[way]);

                if (o.err != RBT_OK)
                    fail_msg("%s: %s", WAYS[way], o.error.text);
                assert_int_equal(o.result.updates, 6 + 3 * 3);
                expected = expected == 0 ? o.result.param_hash : expected;
                assert_int_equal(o.result.param_hash, expected);
                outcome_deinit(&o);
            }
    }
}

static void bsp_repeats_itself_on_threads(void **state)
{
    uint64_t expected = job_hash(JOB "runtime=local", "sum", 8, 3, 9);

    (void)state;
    for (int run = 0; run < 20; run++)
        assert_int_equal(job_hash(JOB "runtime=local", "sum", 8, 3, 9), expected);
}

static void another_seed_or_another_number_of_workers_is_another_result(void **state)
{
    uint64_t one = job_hash(JOB "runtime=sim", "con", 4, 2, 1);

    (void)state;
    assert_int_not_equal(one, job_hash(JOB "runtime=sim", "con", 4, 2, 2));
    assert_int_not_equal(one, job_hash(JOB "runtime=sim", "con", 2, 2, 1));
    assert_int_not_equal(one, job_hash(JOB "runtime=sim", "sum", 4, 2, 1));
}

/* ----------------------------------------------------------------------------------- averages of workers */

static void assert_close(const float *a, const float *b, size_t n)
{
    double difference = 0, size = 0;

    for (size_t i = 0; i < n; i++) {
        difference = fmax(difference, fabs((double)a[i] - (double)b[i]));
        size = fmax(size, fabs((double)b[i]));
    }
    assert_true(size > 0.01);
    if (!(difference <= 1e-5 * size))
        fail_msg("parameters of size %g differ by %g", size, difference);
}

static void workers_averaged_on_whole_shards_equal_one_worker_on_all_rows(void **state)
{
    job_outcome one =
        job_run("data=data.svm sync=bsp rule=con workers=1 runtime=sim clocks=10 batch=100%% lr=2 l2=0.01");

    (void)state;
    for (uint32_t workers = 2; workers <= 8; workers *= 2) { /* 240 rows: shards of equal size */
        job_outcome many = job_run("data=data.svm sync=bsp rule=con workers=%u servers=2 runtime=local clocks=10 "
                                   "batch=%d batches-per-clock=1 lr=2 l2=0.01",
                                   workers, ROWS / (int)workers);

        assert_int_equal(many.err, RBT_OK);
        assert_close(many.w, one.w, one.n);
        outcome_deinit(&many);
    }
    outcome_deinit(&one);
}

/* One worker by hand, whose k-th batch is the union of the k-th batches of `workers` workers of `batch` rows each. */
static void big_batches(uint32_t workers, size_t batch, uint64_t clocks, float *w, size_t n)
{
    const rbt_model *lr = rbt_model_find("lr");
    size_t shard = ROWS / workers;
    float *g = malloc(n * sizeof *g);
    rbt_shape shape = {0};
    rbt_shards shards;
    rbt_error error;
    rbt_data data;

    assert_int_equal(rbt_data_read("data.svm", &data, &error), RBT_OK);
    assert_int_equal(lr->prepare(&data, &shape, &error), RBT_OK);
    shape.bias = true;
    assert_int_equal(lr->size(&shape), n);
    assert_int_equal(rbt_shards_create(&data, 1, 1, &shards, &error), RBT_OK);
    memset(w, 0, n * sizeof *w);
    for (uint64_t clock = 0; clock < clocks; clock++) {
        size_t first = clock * batch % shard;

        memset(g, 0, n * sizeof *g);
        for (uint32_t m = 0; m < workers; m++)
            lr->gradient(&shape, &data, shards.order + m * shard + first, batch, w, g);
        for (size_t i = 0; i < n; i++)
            w[i] -= 2.0f * (g[i] / (float)(workers * batch) + (i < n - 1 ? 0.01f * w[i] : 0));
    }
    free(g);
    rbt_shards_destroy(&shards);
    rbt_data_deinit(&data);
    rbt_shape_deinit(&shape);
}

static void workers_averaged_on_batches_equal_one_worker_with_their_union(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        job_outcome many =
            job_run("data=data.svm sync=bsp rule=con workers=%u servers=3 runtime=sim clocks=12 batch=10 "
                    "batches-per-clock=1 lr=2 l2=0.01",
                    workers);
        float *one = malloc(many.n * sizeof *one);

        assert_int_equal(many.err, RBT_OK);
        big_batches(workers, 10, 12, one, many.n);
        assert_close(many.w, one, many.n);
        free(one);
        outcome_deinit(&many);
    }
}

static int write_data(void **state)
{
    (void)state;
    data_write("data.svm", ROWS, 57, 6, 4);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bsp_is_the_same_on_local_and_sim_for_1_2_4_8_workers_and_1_to_4_servers),
        cmocka_unit_test(workers_that_run_dry_leave_the_same_bits_everywhere),
        cmocka_unit_test(bsp_repeats_itself_on_threads),
        cmocka_unit_test(another_seed_or_another_number_of_workers_is_another_result),
        cmocka_unit_test(workers_averaged_on_whole_shards_equal_one_worker_on_all_rows),
        cmocka_unit_test(workers_averaged_on_batches_equal_one_worker_with_their_union),
    };

    return cmocka_run_group_tests(tests, write_data, NULL);
}

/* What the engine costs; the contract is in bench_job.h. */
#include "job/bench_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/time.h"
#include "data/generate.h"
#include "job/gradient.h"
#include "runtime/sim.h"

#define ROUNDS 15

/* A job on generated data without a reader, an evaluator or a file: only what is to be measured. */
typedef struct bench {
    rbt_options options;
    rbt_data data;
    rbt_shards shards;
    rbt_training training;
    rbt_topology topology;
} bench;

static void bench_deinit(bench *b)
{
    rbt_topology_deinit(&b->topology);
    rbt_shards_destroy(&b->shards);
    rbt_data_deinit(&b->data);
    rbt_options_deinit(&b->options);
}

static rbt_err bench_init(bench *b, const rbt_generate_options *data, uint32_t workers, uint32_t servers,
                          rbt_error *error)
{
    rbt_table_spec spec = {.name = "parameters", .rows = 1, .type = RBT_F32};
    rbt_rule_config rule = {.rule = &rbt_rule_sum, .workers = workers};
    rbt_err err = rbt_generate_lr(data, &b->data, error);

    rbt_options_init(&b->options);
    b->options.optimizer = RBT_OPTIMIZER_SGD; /* what is settled from data elsewhere */
    b->options.decay = RBT_DECAY_NONE;
    b->options.lr = 0.5;
    b->options.batch = 10;
    b->options.batch_percent = true;
    if (err == RBT_OK)
        err = rbt_shards_create(&b->data, workers, 1, &b->shards, error);
    b->training =
        (rbt_training){.options = &b->options, .model = rbt_model_find("lr"), .data = &b->data, .shards = &b->shards};
    if (err == RBT_OK)
        err = b->training.model->prepare(&b->data, &b->training.shape, error);
    if (err == RBT_OK)
        err = rbt_shape_apply(&b->training.shape, true, &b->data, error);
    if (err != RBT_OK)
        return err;
    b->training.shape.bias = true;
    b->training.problem = rbt_problem_of(b->training.model, &b->training.shape, &b->data, 0, 0);
    b->training.n = b->training.problem.n;
    spec.cols = b->training.n;
    b->topology = (rbt_topology){.workers = workers, .servers = servers};
    return rbt_topology_init(&b->topology, &spec, 1, &rule, error);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static rbt_err time_plain(bench *b, double *seconds, rbt_error *error)
{
    float *w = rbt_alloc(b->training.n, sizeof *w);
    double started = rbt_now_seconds();
    rbt_err err = rbt_training_sequential(&b->training, w, error);

    *seconds = rbt_now_seconds() - started;
    rbt_free(w);
    return err;
}

static rbt_err time_local(bench *b, double *seconds, rbt_error *error)
{
    rbt_err err;
    rbt_run run;

    rbt_run_init(&run, &b->topology);
    run.program = (rbt_program){.name = "bench", .work = rbt_training_work, .argument = &b->training};
    err = rbt_local_run(&run, error);
    *seconds = (double)run.elapsed_ns / 1e9;
    rbt_run_deinit(&run);
    return err;
}

/* One round: both sides, every other time in the other order; the ratio of their times. */
static rbt_err time_round(bench *b, size_t round, double *ratio, rbt_error *error)
{
    double plain = 0, local = 0;
    rbt_err err = round % 2 == 0 ? time_plain(b, &plain, error) : time_local(b, &local, error);

    if (err == RBT_OK)
        err = round % 2 == 0 ? time_local(b, &local, error) : time_plain(b, &plain, error);
    *ratio = plain > 0 ? local / plain : 0;
    return err;
}

rbt_err rbt_bench_local(void (*write)(void *context, const char *line), void *context, rbt_error *error)
{
    static const struct {
        const char *name;
        rbt_generate_options data;
        double batch;
        uint64_t batches_per_clock;
        double epochs; /* so that a side takes a few tenths of a second: shorter ones measure the machine's moods */
    } cases[] = {
        {"clock = a pass of 10 batches, 50 k x 10 k x 40", {50000, 10000, 40, 1.1, 0.05, 1}, 10, 0, 10},
        {"clock = one batch of 10 %, 50 k x 10 k x 40", {50000, 10000, 40, 1.1, 0.05, 1}, 10, 1, 10},
        {"clock = one batch of 1 %, 50 k x 1 k x 20", {50000, 1000, 20, 1.1, 0.05, 1}, 1, 1, 30},
    };
    rbt_err err = RBT_OK;

    for (size_t i = 0; err == RBT_OK && i < sizeof cases / sizeof cases[0]; i++) {
        double ratios[ROUNDS];
        char line[160];
        bench b = {0};

        err = bench_init(&b, &cases[i].data, 1, 1, error);
        b.options.epochs = cases[i].epochs;
        b.options.batch = cases[i].batch;
        b.options.batch_percent = true;
        b.options.batches_per_clock = cases[i].batches_per_clock;
        for (size_t round = 0; err == RBT_OK && round < ROUNDS; round++)
            err = time_round(&b, round, &ratios[round], error);
        bench_deinit(&b);
        if (err != RBT_OK)
            break;
        qsort(ratios, ROUNDS, sizeof *ratios, compare_doubles);
        snprintf(line, sizeof line, "local, 1 worker / plain loop: %.3f (quartiles %.3f to %.3f)  %s",
                 ratios[ROUNDS / 2], ratios[ROUNDS / 4], ratios[3 * ROUNDS / 4], cases[i].name);
        write(context, line);
    }
    return err;
}

rbt_err rbt_bench_sim(void (*write)(void *context, const char *line), void *context, rbt_error *error)
{
    const rbt_generate_options data = {1000, 20, 3, 1.1, 0.05, 1};
    bench b = {0};
    rbt_sim_options sim = {0};
    rbt_err err = bench_init(&b, &data, 100, 4, error);

    b.options.clocks = 500;
    if (err == RBT_OK)
        err = rbt_sim_options_parse(&sim, NULL, NULL, NULL, error);
    for (int round = 0; err == RBT_OK && round < 3; round++) {
        double started;
        char line[160];
        rbt_run run;

        rbt_run_init(&run, &b.topology);
        run.program = (rbt_program){.name = "bench", .work = rbt_training_work, .argument = &b.training};
        started = rbt_now_seconds();
        err = rbt_sim_run(&run, &sim, error);
        snprintf(line, sizeof line, "sim, 100 workers, 4 servers, BSP, 21 parameters: %llu events, %.2f M per second",
                 (unsigned long long)run.events, (double)run.events / (rbt_now_seconds() - started) / 1e6);
        write(context, line);
        rbt_run_deinit(&run);
    }
    bench_deinit(&b);
    return err;
}

/* Exchange and average beside memcpy; the contract is in bench_hop.h. */
#include "job/bench_hop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/time.h"
#include "runtime/handle.h"

#define PARAMETERS 10000000u
#define PEERS      2u
#define ROUNDS     21
#define WARM_UP    4 /* the first touch of memory is not what is measured */

typedef struct measured {
    double exchange[ROUNDS]; /* seconds */
    double copy[ROUNDS];
    double exchange_cpu[ROUNDS];
    double copy_cpu[ROUNDS];
} measured;

typedef struct bench {
    measured of[PEERS];
} bench;

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static rbt_err exchange(rbt_worker *worker, rbt_error *error)
{
    rbt_snap *mixed = NULL;
    rbt_err err = rbt_hop_send(worker, error);

    if (err == RBT_OK)
        err = rbt_hop_receive(worker, NULL, 0, &mixed, error);
    return err == RBT_OK ? rbt_hop_next(worker, mixed, error) : err;
}

static rbt_err work(rbt_worker *worker, void *argument, rbt_error *error)
{
    bench *b = argument;
    measured *m = &b->of[rbt_worker_id(worker)];
    float *from = rbt_try_alloc(PARAMETERS, sizeof *from), *to = rbt_try_alloc(PARAMETERS, sizeof *to);
    rbt_err err = RBT_OK;

    if (from == NULL || to == NULL)
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory to measure with %u parameters", PARAMETERS);
    for (size_t i = 0; from != NULL && to != NULL && i < PARAMETERS; i++)
        from[i] = to[i] = (float)i;
    for (int round = -WARM_UP; from != NULL && to != NULL && err == RBT_OK && round < ROUNDS; round++) {
        double began = rbt_now_seconds(), cpu = cpu_seconds(), between, between_cpu;

        err = exchange(worker, error);
        between = rbt_now_seconds();
        between_cpu = cpu_seconds();
        memcpy(to, from, PARAMETERS * sizeof *to);
        from[round + WARM_UP] = to[round + WARM_UP] + 1; /* so that it is needed */
        if (round < 0)
            continue;
        m->exchange[round] = between - began;
        m->exchange_cpu[round] = between_cpu - cpu;
        m->copy[round] = rbt_now_seconds() - between;
        m->copy_cpu[round] = cpu_seconds() - between_cpu;
    }
    rbt_free(from);
    rbt_free(to);
    return err;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

static rbt_err run_bench(bench *b, rbt_error *error)
{
    rbt_hop hop = {.parameters = PARAMETERS, .damping = 1};
    rbt_topology topology = {.workers = PEERS};
    rbt_rule_config rule = {.rule = &rbt_rule_sum, .workers = 1};
    rbt_stragglers stragglers;
    rbt_run run;
    rbt_err err = rbt_graph_init(&hop.graph, RBT_GRAPH_COMPLETE, PEERS, NULL, error);

    if (err != RBT_OK)
        return err;
    err = rbt_topology_init(&topology, NULL, 0, &rule, error);
    if (err != RBT_OK)
        goto graph;
    topology.hop = &hop;
    err = rbt_stragglers_init(&stragglers, NULL, PEERS, 1, error);
    if (err != RBT_OK)
        goto topology;
    rbt_run_init(&run, &topology);
    run.program = (rbt_program){.name = "bench", .work = work, .argument = b};
    run.stragglers = &stragglers;
    err = rbt_local_run(&run, error);
    rbt_run_deinit(&run);
    rbt_stragglers_deinit(&stragglers);
topology:
    rbt_topology_deinit(&topology);
graph:
    rbt_graph_deinit(&hop.graph);
    return err;
}

rbt_err rbt_bench_hop(void (*write)(void *context, const char *line), void *context, rbt_error *error)
{
    bench *b = rbt_alloc(1, sizeof *b);
    rbt_err err = run_bench(b, error);
    char line[160];

    if (err == RBT_OK)
        write(context, "peer   exchange+average     memcpy   ratio to what it needs   processor time");
    for (uint32_t p = 0; err == RBT_OK && p < PEERS; p++) {
        measured *m = &b->of[p];
        double exchange = median(m->exchange), copy = median(m->copy);
        double cpu = median(m->exchange_cpu), copy_cpu = median(m->copy_cpu);

        snprintf(line, sizeof line, "%4u   %13.2f ms %7.2f ms   %22.2f   %14.2f", p, 1e3 * exchange, 1e3 * copy,
                 exchange / (1.5 * copy), cpu / (1.5 * copy_cpu));
        write(context, line);
    }
    if (err == RBT_OK) {
        snprintf(line, sizeof line,
                 "%u parameters; medians of %d rounds in turn. An average of two needs 3 vectors of traffic, memcpy 2.",
                 PARAMETERS, ROUNDS);
        write(context, line);
    }
    rbt_free(b);
    return err;
}

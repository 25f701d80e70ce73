/* Exchange and average beside memcpy; the contract is in bench_hop.h. */
#include "job/bench_hop.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/time.h"
#include "runtime/handle.h"

#define PARAMETERS 10000000u
#define PEERS      2u
#define ROUNDS     21
#define WARM_UP    4 /* the first touch of memory is not what is measured */

typedef struct measured {
    float *written; /* what this peer writes for the other to copy */
    float *copied;
    atomic_int stage;
    double exchange[ROUNDS]; /* seconds */
    double copy[ROUNDS];     /* of what the peer wrote itself */
    double copy_other[ROUNDS];
} measured;

typedef struct bench {
    measured of[PEERS];
    atomic_bool is_over; /* an exchange failed: nobody waits for the other any more */
} bench;

static rbt_err exchange(rbt_worker *worker, rbt_error *error)
{
    rbt_snap *mixed = NULL;
    rbt_err err = rbt_hop_send(worker, error);

    if (err == RBT_OK)
        err = rbt_hop_receive(worker, NULL, 0, &mixed, error);
    return err == RBT_OK ? rbt_hop_next(worker, mixed, error) : err;
}

static double copy_seconds(float *to, const float *from)
{
    double began = rbt_now_seconds();

    memcpy(to, from, PARAMETERS * sizeof *to);
    return rbt_now_seconds() - began;
}

/* Returns when both peers have come that far. */
static void wait_for_both(bench *b, measured *mine, const measured *other, int stage)
{
    atomic_store(&mine->stage, stage);
    while (atomic_load(&other->stage) < stage && !atomic_load(&b->is_over))
        (void)sched_yield();
}

static rbt_err work(rbt_worker *worker, void *argument, rbt_error *error)
{
    bench *b = argument;
    measured *mine = &b->of[rbt_worker_id(worker)];
    const measured *other = &b->of[1 - rbt_worker_id(worker)];
    rbt_err err = RBT_OK;

    for (int round = -WARM_UP; err == RBT_OK && !atomic_load(&b->is_over) && round < ROUNDS; round++) {
        double began = rbt_now_seconds(), exchanged, copied, copied_other;

        err = exchange(worker, error);
        exchanged = rbt_now_seconds() - began;
        atomic_store(&b->is_over, err != RBT_OK);
        for (size_t i = 0; i < PARAMETERS; i++)
            mine->written[i] = mine->copied[i] + 1;
        wait_for_both(b, mine, other, 2 * (round + WARM_UP) + 1);
        copied = copy_seconds(mine->copied, mine->written);
        copied_other = copy_seconds(mine->copied, other->written);
        wait_for_both(b, mine, other, 2 * (round + WARM_UP) + 2); /* nobody writes what the other still copies */
        if (round < 0)
            continue;
        mine->exchange[round] = exchanged;
        mine->copy[round] = copied;
        mine->copy_other[round] = copied_other;
    }
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

static rbt_err make_vectors(bench *b, rbt_error *error)
{
    for (uint32_t p = 0; p < PEERS; p++) {
        b->of[p].written = rbt_try_alloc(PARAMETERS, sizeof(float));
        b->of[p].copied = rbt_try_alloc(PARAMETERS, sizeof(float));
        if (b->of[p].written == NULL || b->of[p].copied == NULL)
            return rbt_fail(error, RBT_E_MEMORY, "not enough memory to measure with %u parameters", PARAMETERS);
    }
    return RBT_OK;
}

rbt_err rbt_bench_hop(void (*write)(void *context, const char *line), void *context, rbt_error *error)
{
    bench *b = rbt_alloc(1, sizeof *b);
    rbt_err err = make_vectors(b, error);
    char line[160];

    if (err == RBT_OK)
        err = run_bench(b, error);
    if (err == RBT_OK)
        write(context, "peer   exchange+average   memcpy, own   memcpy, the other's   ratio to what it needs");
    for (uint32_t p = 0; err == RBT_OK && p < PEERS; p++) {
        measured *m = &b->of[p];
        double exchange = median(m->exchange), copy = median(m->copy), copy_other = median(m->copy_other);

        snprintf(line, sizeof line, "%4u   %13.2f ms %10.2f ms %18.2f ms   %22.2f", p, 1e3 * exchange, 1e3 * copy,
                 1e3 * copy_other, exchange / (copy_other + copy / 2));
        write(context, line);
    }
    if (err == RBT_OK) {
        snprintf(line, sizeof line,
                 "%u parameters; medians of %d rounds in turn. An average of two needs to read the "
                 "other's vector, to read the own one and to write one.",
                 PARAMETERS, ROUNDS);
        write(context, line);
    }
    for (uint32_t p = 0; p < PEERS; p++) {
        rbt_free(b->of[p].written);
        rbt_free(b->of[p].copied);
    }
    rbt_free(b);
    return err;
}

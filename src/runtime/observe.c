/* The observer's calls: tables read as a whole or by rows, round by round, and its word to the master; see handle.h.
 *
 * Called by the evaluators of src/job. Always holds: what is read has every update of the rounds asked for, and only blocks of
 * the rows asked for travel. Proved by tests/unit/test_local.c and, that work stays linear in clocks, by tests/unit/test_plan.c. */
#include "base/error.h"
#include "runtime/calls.h"

static const rbt_layout *layout_of(const rbt_worker *observer, rbt_table table)
{
    return &observer->run->topology->layout[table];
}

/* Waits until the observer has the blocks first .. end - 1 as they are after so many rounds. */
static rbt_err observe_blocks(rbt_worker *observer, rbt_table table, uint32_t first, uint32_t end, uint64_t need,
                              uint64_t *slowest, rbt_error *error)
{
    observer->spans.count = 0;
    for (uint32_t b = first; b < end; b++)
        rbt_array_push(&observer->spans, ((rbt_span){.table = table, .block = b}));
    for (bool waited = false;; waited = true) {
        rbt_env env;
        bool fresh;

        if (!observer->ops->receive(observer, waited))
            return rbt_call_gone(error, observer);
        env = rbt_call_env(observer);
        fresh = rbt_client_observe(&observer->client, observer->spans.at, observer->spans.count, need, &env);
        rbt_call_deliver(observer, &env);
        if (fresh)
            break;
    }
    *slowest = RBT_UNBOUNDED;
    for (uint32_t b = first; b < end; b++) {
        observer->run->observed += rbt_layout_length(layout_of(observer, table), b);
        if (observer->client.cache[table].copies[b].slowest < *slowest)
            *slowest = observer->client.cache[table].copies[b].slowest;
    }
    return RBT_OK;
}

rbt_err rbt_observe_wait(rbt_worker *observer, rbt_table table, uint64_t need, uint64_t *slowest, rbt_error *error)
{
    return observe_blocks(observer, table, 0, layout_of(observer, table)->blocks, need, slowest, error);
}

static uint64_t updates_of(const rbt_worker *observer, rbt_table table, uint32_t first, uint32_t end)
{
    uint64_t least = RBT_UNBOUNDED;

    for (uint32_t b = first; b < end; b++)
        if (observer->client.cache[table].copies[b].included < least)
            least = observer->client.cache[table].copies[b].included;
    return least;
}

uint64_t rbt_observed_updates(const rbt_worker *observer, rbt_table table)
{
    if (observer->onlooker != NULL)
        return rbt_hop_observed_updates(observer);
    return updates_of(observer, table, 0, layout_of(observer, table)->blocks);
}

uint64_t rbt_observed_skipped(const rbt_worker *observer)
{
    return observer->onlooker != NULL ? rbt_hop_observed_skipped(observer) : 0;
}

uint64_t rbt_observed_clock(const rbt_worker *observer, uint32_t worker)
{
    const rbt_topology *topology = observer->run->topology;
    uint64_t least = RBT_UNBOUNDED;

    if (observer->onlooker != NULL)
        return observer->onlooker->poses[worker].iteration;
    for (size_t i = 0; i < observer->spans.count; i++) {
        rbt_span span = observer->spans.at[i];
        size_t server = topology->layout[span.table].server[span.block];
        uint64_t clock = observer->client.seen[server * topology->workers + worker];

        least = clock < least ? clock : least;
    }
    return least;
}

static void copy_row(rbt_worker *observer, rbt_table table, uint64_t row, char *out)
{
    const rbt_layout *layout = layout_of(observer, table);

    for (uint64_t col = 0, n; col < layout->cols; col += n) {
        const rbt_span span = {.table = table, .block = rbt_layout_block(layout, row, col)};

        n = rbt_layout_run(layout, col);
        rbt_client_read(&observer->client, span, rbt_layout_offset(layout, row, col), (uint32_t)n, RBT_UNBOUNDED,
                        out + col * rbt_type_size(layout->type));
    }
}

rbt_err rbt_observe_rows(rbt_worker *observer, rbt_table table, uint64_t row, uint64_t n, uint64_t need, void *out,
                         uint64_t *slowest, uint64_t *updates, rbt_error *error)
{
    const rbt_layout *layout = layout_of(observer, table);
    uint32_t first = rbt_layout_block(layout, row, 0),
             end = rbt_layout_block(layout, row + n - 1, layout->cols - 1) + 1;
    rbt_err err = observe_blocks(observer, table, first, end, need, slowest, error);

    for (uint64_t i = 0; err == RBT_OK && i < n; i++)
        copy_row(observer, table, row + i, (char *)out + i * layout->cols * rbt_type_size(layout->type));
    *updates = updates_of(observer, table, first, end);
    return err;
}

rbt_err rbt_observe(rbt_worker *observer, rbt_table table, uint64_t need, void *out, uint64_t *slowest,
                    rbt_error *error)
{
    const rbt_layout *layout = layout_of(observer, table);
    size_t size;
    rbt_err err;

    if (observer->onlooker != NULL)
        return rbt_hop_observe(observer, need, out, slowest, error);
    size = rbt_type_size(layout->type);
    err = rbt_observe_wait(observer, table, need, slowest, error);

    for (uint64_t row = 0; err == RBT_OK && row < layout->rows; row++)
        copy_row(observer, table, row, (char *)out + row * layout->cols * size);
    return err;
}

void rbt_observer_report(rbt_worker *observer, uint64_t clock, double objective)
{
    rbt_env env = rbt_call_env(observer);
    rbt_message *metric = rbt_message_create(RBT_MSG_METRIC, observer->client.node, RBT_MASTER);

    metric->view = observer->client.view;
    metric->worker = observer->client.worker;
    metric->clock = clock;
    metric->number = objective;
    atomic_store_explicit(&observer->run->loss, objective, memory_order_relaxed);
    rbt_outbox_put(&env.out, metric);
    rbt_call_deliver(observer, &env);
}

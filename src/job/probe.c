/* Checking what workers see. Contract in probe.h. */
#include "job/probe.h"

#include "base/error.h"
#include "base/mem.h"
#include "runtime/handle.h"

#define SUSPECT_TRIES  100
#define SUSPECT_NAP_NS 10000000u

static bool is_lost(const rbt_worker *worker, uint32_t other)
{
    return atomic_load_explicit(&worker->run->published[other].is_lost, memory_order_relaxed);
}

rbt_err rbt_probe_end(rbt_worker *worker, const rbt_probe *probe, rbt_error *error)
{
    for (int i = 0; probe->suspicion.code != RBT_OK && i < SUSPECT_TRIES && !is_lost(worker, probe->suspect); i++)
        worker->ops->sleep_ns(worker, SUSPECT_NAP_NS);
    if (probe->suspicion.code == RBT_OK || is_lost(worker, probe->suspect))
        return RBT_OK;
    return rbt_fail(error, probe->suspicion.code, "%s", probe->suspicion.text);
}

void rbt_probe_deinit(rbt_probe *probe)
{
    rbt_free(probe->seen);
    probe->seen = NULL;
}

rbt_err rbt_probe_clock(rbt_worker *worker, rbt_probe *probe, const rbt_options *options,
                        uint64_t (*clocks)(const void *context, uint32_t worker), const void *context, rbt_error *error)
{
    uint64_t clock = rbt_worker_clock(worker), staleness = options->staleness;
    uint32_t me = rbt_worker_id(worker);
    rbt_err err;

    if (probe->seen == NULL)
        probe->seen = rbt_alloc(rbt_worker_count(worker), sizeof *probe->seen);
    err = rbt_get_row(worker, probe->table, 0, RBT_STALENESS_OF_JOB, probe->seen, error);
    if (probe->suspicion.code != RBT_OK && is_lost(worker, probe->suspect))
        probe->suspicion.code = RBT_OK;

    for (uint32_t m = 0; err == RBT_OK && m < rbt_worker_count(worker); m++) {
        uint64_t total = clocks(context, m), seen = (uint64_t)probe->seen[m];
        uint64_t must = staleness == RBT_UNBOUNDED || clock < staleness ? 0 : clock - staleness;

        if (seen < (must < total ? must : total) && !options->has_target && !rbt_worker_should_stop(worker) &&
            !is_lost(worker, m) && probe->suspicion.code == RBT_OK) {
            probe->suspect = m;
            rbt_fail(&probe->suspicion, RBT_E_BROKEN,
                     "worker %u at clock %llu misses updates of worker %u: it sees %llu clocks, staleness is %llu", me,
                     (unsigned long long)clock, m, (unsigned long long)seen, (unsigned long long)staleness);
            if (!worker->run->topology->lost_is_gone) /* nobody can have been lost */
                err = rbt_fail(error, probe->suspicion.code, "%s", probe->suspicion.text);
        }
        if (m == me && seen < clock) /* more after a restart: this server had more than the others */
            err = rbt_fail(error, RBT_E_BROKEN,
                           "worker %u at clock %llu does not see its own writes: it sees %llu clocks", me,
                           (unsigned long long)clock, (unsigned long long)seen);
    }
    if (err == RBT_OK)
        err = rbt_inc(worker, probe->table, 0, me, 1, error);
    return err;
}

rbt_err rbt_probe_observe(rbt_worker *observer, rbt_table table, int64_t *probe, rbt_error *error)
{
    uint64_t slowest;
    rbt_err err = rbt_observe(observer, table, RBT_UNBOUNDED, probe, &slowest, error);

    for (uint32_t m = 0; err == RBT_OK && m < observer->run->topology->workers; m++)
        probe[m] %= RBT_PROBE_LEFT;
    return err;
}

rbt_err rbt_probe_compare(const rbt_worker *observer, const int64_t *probe, int64_t *sum, rbt_error *error)
{
    int64_t finished = 0;

    *sum = 0;
    for (uint32_t m = 0; m < observer->run->topology->workers; m++) {
        *sum += probe[m];
        finished += is_lost(observer, m) /* what one that was lost had finished, nobody knows but the servers */
                        ? probe[m]
                        : (int64_t)atomic_load_explicit(&observer->run->published[m].clock, memory_order_relaxed);
    }
    if (*sum != finished)
        return rbt_fail(error, RBT_E_BROKEN, "the workers finished %lld clocks, the servers have %lld of them",
                        (long long)finished, (long long)*sum);
    return RBT_OK;
}

/* The blocking calls of a job without servers, written once for all runtimes; see handle.h.
 *
 * A peer's messages are handled by the runtime when they come, on whatever thread brings them. So whoever touches a peer holds it
 * meanwhile (ops->hold); what it says while it is held is posted before it is let go of, in order. Averages, which take long, are
 * worked out while it is not held. Proved by tests/sim/test_hop.c and, with threads, under ThreadSanitizer by tests/unit/test_local.c. */
#include <string.h>

#include "base/error.h"
#include "runtime/calls.h"

static rbt_env hold(rbt_worker *worker)
{
    if (worker->ops->hold != NULL)
        worker->ops->hold(worker);
    return rbt_call_env(worker);
}

static void let_go(rbt_worker *worker, rbt_env *env)
{
    worker->client.stopping = worker->peer->stopping;
    if (worker->ops->let_go != NULL)
        worker->ops->let_go(worker, &env->out);
    else
        rbt_call_deliver(worker, env);
}

/* Waits until `is_ready` says yes; all of it is waiting for others. */
static rbt_err wait_for_peers(rbt_worker *worker, bool (*is_ready)(rbt_worker *worker, rbt_env *env), rbt_error *error)
{
    for (bool waited = false;; waited = true) {
        rbt_env env;
        bool ready;

        if (!worker->ops->receive(worker, waited))
            return rbt_call_gone(error, worker);
        env = hold(worker);
        ready = is_ready(worker, &env);
        let_go(worker, &env);
        if (ready)
            return RBT_OK;
    }
}

/* The same as a call of its own. */
static rbt_err call(rbt_worker *worker, bool (*is_ready)(rbt_worker *worker, rbt_env *env), rbt_error *error)
{
    rbt_err err;

    rbt_call_enter(worker);
    err = wait_for_peers(worker, is_ready, error);
    rbt_call_leave(worker, UINT64_MAX);
    return err;
}

/* ------------------------------------------------------------------------------------------------- parameters */

void rbt_hop_read(rbt_worker *worker, float *to)
{
    rbt_env env = hold(worker);
    rbt_snap *x = rbt_snap_ref(worker->peer->x);

    let_go(worker, &env);
    memcpy(to, x->f32, x->length * sizeof *to);
    rbt_snap_unref(x);
}

void rbt_hop_add(rbt_worker *worker, const float *update, float factor)
{
    rbt_env env = hold(worker);

    rbt_peer_add(worker->peer, update, factor);
    let_go(worker, &env);
}

/* ------------------------------------------------------------------------------------------------ neighbours */

static bool send_if_ready(rbt_worker *worker, rbt_env *env)
{
    if (!rbt_peer_may_send(worker->peer))
        return false;
    rbt_peer_send(worker->peer, env);
    return true;
}

rbt_err rbt_hop_send(rbt_worker *worker, rbt_error *error)
{
    return call(worker, send_if_ready, error);
}

static bool reduce_if_ready(rbt_worker *worker, rbt_env *env)
{
    return rbt_peer_reduce(worker->peer, &worker->mix, env);
}

rbt_err rbt_hop_receive(rbt_worker *worker, const float *add, float factor, rbt_snap **mixed, rbt_error *error)
{
    rbt_err err = call(worker, reduce_if_ready, error);

    if (err == RBT_OK && worker->mix.out == NULL)
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for an average of %u parameters; use fewer --workers",
                       worker->peer->x->length);
    if (err != RBT_OK)
        return err;
    *mixed = rbt_mix_average(&worker->mix, add, factor);
    return RBT_OK;
}

static bool enter_if_ready(rbt_worker *worker, rbt_env *env)
{
    if (!rbt_peer_may_enter(worker->peer))
        return false;
    rbt_peer_enter(worker->peer, env);
    worker->client.clock = worker->peer->iteration;
    memcpy(worker->client.staleness_seen, worker->peer->staleness_seen, sizeof worker->peer->staleness_seen);
    worker->client.staleness_sum = worker->peer->staleness_sum;
    worker->reads = worker->peer->taken;
    return true;
}

/* Hands new parameters over; jumps if it may. Says over how many iterations. */
static uint64_t hand_over(rbt_worker *worker, rbt_snap *x, bool may_jump)
{
    rbt_env env = hold(worker);
    uint64_t jump;

    if (x != NULL)
        rbt_peer_take(worker->peer, x);
    jump = may_jump ? rbt_peer_jump(worker->peer) : 0;
    if (jump > 0)
        rbt_peer_skip(worker->peer, jump, &env);
    let_go(worker, &env);
    return jump;
}

rbt_err rbt_hop_next(rbt_worker *worker, rbt_snap *x, rbt_error *error)
{
    rbt_err err = RBT_OK;
    uint64_t jump;

    rbt_call_enter(worker);
    rbt_call_slow_down(worker);
    jump = hand_over(worker, x, true);
    rbt_call_leave(worker, 0);
    if (jump > 0) { /* the parameters are renewed */
        rbt_snap *mixed = NULL;

        err = rbt_hop_receive(worker, NULL, 0, &mixed, error);
        if (err == RBT_OK)
            hand_over(worker, mixed, false);
    }
    if (err == RBT_OK)
        err = call(worker, enter_if_ready, error);
    if (err == RBT_OK)
        atomic_fetch_add(&worker->run->skipped, jump);
    worker->clock_compute_ns = 0;
    rbt_call_publish(worker);
    return err;
}

/* ------------------------------------------------------------------------------------------------- baselines */

static bool sum_if_ready(rbt_worker *worker, rbt_env *env)
{
    return rbt_allreduce_go_on(&worker->peer->ring, worker->peer->view, env);
}

rbt_err rbt_hop_sum(rbt_worker *worker, float *values, size_t n, rbt_error *error)
{
    rbt_env env = hold(worker);

    rbt_allreduce_begin(&worker->peer->ring, values, n);
    let_go(worker, &env);
    return call(worker, sum_if_ready, error);
}

static bool averaged_if_ready(rbt_worker *worker, rbt_env *env)
{
    (void)env;
    return rbt_gossip_is_over(worker->peer);
}

rbt_err rbt_hop_gossip(rbt_worker *worker, rbt_error *error)
{
    rbt_env env = hold(worker);

    rbt_gossip_begin(worker->peer, &env);
    let_go(worker, &env);
    return call(worker, averaged_if_ready, error);
}

static bool alone_if_ready(rbt_worker *worker, rbt_env *env)
{
    (void)env;
    return worker->peer->gossip.asks || rbt_peer_is_alone(worker->peer);
}

rbt_err rbt_hop_linger(rbt_worker *worker, rbt_error *error)
{
    return call(worker, alone_if_ready, error);
}

/* ----------------------------------------------------------------------------------------- the end, observers */

rbt_err rbt_hop_retire(rbt_worker *worker)
{
    rbt_env env = hold(worker);

    rbt_peer_retire(worker->peer, &env);
    let_go(worker, &env);
    return RBT_OK;
}

rbt_err rbt_hop_observe(rbt_worker *observer, uint64_t need, void *out, uint64_t *slowest, rbt_error *error)
{
    rbt_onlooker *onlooker = observer->onlooker;

    for (bool waited = false;; waited = true) {
        rbt_env env;
        bool ready;

        if (!observer->ops->receive(observer, waited))
            return rbt_call_gone(error, observer);
        env = rbt_call_env(observer);
        ready = need == RBT_UNBOUNDED ? rbt_onlooker_is_over(onlooker) : rbt_onlooker_look(onlooker, need, &env);
        rbt_call_deliver(observer, &env);
        if (ready)
            break;
    }
    if (rbt_onlooker_peers(onlooker) == 0)
        return rbt_fail(error, RBT_E_LOST,
                        "no worker is left: all %u were lost, and their parameters with them; use fewer crashes in "
                        "--faults, or more --workers",
                        observer->run->topology->workers);
    *slowest = RBT_UNBOUNDED;
    for (uint32_t m = 0; m < observer->run->topology->workers; m++) {
        const rbt_pose *pose = &onlooker->poses[m];

        if (!pose->has_ended && !pose->is_lost && pose->iteration < *slowest) /* who has left holds nobody up */
            *slowest = pose->iteration;
    }
    rbt_onlooker_mean(onlooker, out, &observer->run->spread);
    return RBT_OK;
}

uint64_t rbt_hop_observed_updates(const rbt_worker *observer)
{
    uint64_t sum = 0;

    for (uint32_t m = 0; m < observer->run->topology->workers; m++)
        sum += observer->onlooker->poses[m].iteration;
    return sum;
}

uint64_t rbt_hop_observed_skipped(const rbt_worker *observer)
{
    uint64_t sum = 0;

    for (uint32_t m = 0; m < observer->run->topology->workers; m++)
        sum += observer->onlooker->poses[m].skipped;
    return sum;
}

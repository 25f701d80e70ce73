/* What options mean for peers without servers: what makes no sense is refused with the reason, what was left open is settled. The contract
 * stands in options.h. Proved by tests/unit/test_options.c. */
#include <math.h>

#include "base/error.h"
#include "base/mem.h"
#include "job/options.h"
#include "job/trainee.h"

#define BATCH_OF_PEERS  128
#define BATCH_OF_METHOD 10 /* percent: rows of methods are of all sizes */
#define EPOCHS_DEFAULT  10

const char *rbt_sync_name(rbt_sync sync)
{
    static const char *const NAMES[] = {"auto",      "bsp",     "ssp", "asp",         "hop",  "adpsgd",
                                        "allreduce", "hogwild", "aig", "round-robin", "psgd", "sequential"};

    return NAMES[sync];
}

static rbt_err check_hop(const rbt_options *o, rbt_error *error)
{
    if ((o->backup > 0 || o->skip > 0) && o->max_gap == 0)
        return rbt_fail(error, RBT_E_USAGE,
                        "--%s needs tokens, which bound how far peers get apart; give --max-gap too, as in --max-gap 5",
                        o->backup > 0 ? "backup" : "skip");
    if (o->skip == 1)
        return rbt_fail(error, RBT_E_USAGE,
                        "--skip 1 is a step as any other; a peer that is far behind advances by more: give 2 or more");
    if (o->notify_ack && (o->max_gap > 0 || o->backup > 0 || (o->staleness_given && o->staleness > 0) || o->skip > 0))
        return rbt_fail(
            error, RBT_E_USAGE,
            "--notify-ack is the plain protocol in which everybody waits for everybody's answer; leave it out, "
            "or leave out --max-gap, --backup, --staleness and --skip");
    if (o->staleness_given && o->staleness == RBT_UNBOUNDED)
        return rbt_fail(error, RBT_E_USAGE, "--staleness inf makes no sense with --sync hop; give a number");
    return RBT_OK;
}

/* What is left of Hop's options in the protocols that it is compared with: AD-PSGD has a graph. */
static rbt_err check_baseline(const rbt_options *o, rbt_sync sync, rbt_error *error)
{
    bool has_graph = sync == RBT_SYNC_ADPSGD;
    const char *given = o->graph != NULL && !has_graph      ? "graph"
                        : o->machines != NULL && !has_graph ? "machines"
                        : o->max_gap > 0                    ? "max-gap"
                        : o->backup > 0                     ? "backup"
                        : o->skip > 0                       ? "skip"
                        : o->order != RBT_ORDER_PARALLEL    ? "order"
                        : o->notify_ack                     ? "notify-ack"
                        : o->staleness_given                ? "staleness"
                                                            : NULL;

    if (given == NULL)
        return RBT_OK;
    return rbt_fail(
        error, RBT_E_USAGE, "--%s makes no sense with --sync %s, where %s; use --sync hop", given, rbt_sync_name(sync),
        has_graph ? "peers average in pairs and keep no iterations apart" : "everybody waits for everybody");
}

/* Whoever is lost takes its parameters along, and all-reduce sums over everybody. */
static rbt_err check_loss(const rbt_options *o, rbt_sync sync, rbt_error *error)
{
    if (o->on_worker_loss == RBT_LOSS_WAIT)
        return rbt_fail(error, RBT_E_USAGE,
                        "--on-worker-loss wait makes no sense with --sync %s: a peer's parameters are lost with it, so "
                        "nobody can come back in its place; use %s",
                        rbt_sync_name(sync), sync == RBT_SYNC_ALLREDUCE ? "stop" : "continue or stop");
    if (o->on_worker_loss == RBT_LOSS_CONTINUE && sync == RBT_SYNC_ALLREDUCE)
        return rbt_fail(
            error, RBT_E_USAGE,
            "--on-worker-loss continue makes no sense with --sync allreduce, which needs every worker; leave "
            "it out, or use --sync hop");
    return RBT_OK;
}

/* What is for peers alone, and what makes no sense for them. */
rbt_err rbt_options_check_peers(const rbt_options *o, rbt_sync sync, const char *served, rbt_error *error)
{
    const char *given = o->graph != NULL                 ? "graph"
                        : o->machines != NULL            ? "machines"
                        : o->max_gap > 0                 ? "max-gap"
                        : o->backup > 0                  ? "backup"
                        : o->skip > 0                    ? "skip"
                        : o->order != RBT_ORDER_PARALLEL ? "order"
                        : o->notify_ack                  ? "notify-ack"
                                                         : NULL;

    if (sync < RBT_SYNC_HOP || sync > RBT_SYNC_ALLREDUCE)
        return given == NULL
                   ? RBT_OK
                   : rbt_fail(error, RBT_E_USAGE,
                              "--%s is for peers without servers and makes no sense with --sync %s; use --sync hop",
                              given, rbt_sync_name(sync));
    if (served != NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "--%s is for servers, and --sync %s has none; leave it out, or use --sync bsp, ssp or asp",
                        served, rbt_sync_name(sync));
    if (o->model == NULL)
        return rbt_fail(error, RBT_E_USAGE, "--sync %s trains models; a table program needs bsp, ssp or asp",
                        rbt_sync_name(sync));
    rbt_err err = check_loss(o, sync, error);
    if (err != RBT_OK)
        return err;
    return sync == RBT_SYNC_HOP ? check_hop(o, error) : check_baseline(o, sync, error);
}

/* What is settled for peers: an iteration is a mini-batch. AD-PSGD needs a bipartite graph, which ring-based seldom is. */
void rbt_options_settle_peers(rbt_options *o)
{
    if (o->graph == NULL && o->sync != RBT_SYNC_ALLREDUCE)
        o->graph = rbt_strdup(o->sync == RBT_SYNC_ADPSGD ? "ring" : "ring-based");
    if (o->batch == 0 && rbt_trainee_method(o->model) != NULL) {
        o->batch = BATCH_OF_METHOD;
        o->batch_percent = true;
    } else if (o->batch == 0) { /* a step size found by trying rows is one for rows */
        bool by_row = o->lr == 0 && (o->optimizer == RBT_OPTIMIZER_SGD || o->optimizer == RBT_OPTIMIZER_MOMENTUM);
        o->batch = by_row ? 1 : BATCH_OF_PEERS;
        o->batches_per_clock = o->batches_per_clock > 0 || !by_row ? o->batches_per_clock : BATCH_OF_PEERS;
    }
    if (o->batches_per_clock == 0)
        o->batches_per_clock = 1;
    if (o->decay == RBT_DECAY_AUTO)
        o->decay = RBT_DECAY_NONE;
    if (isnan(o->tolerance))
        o->tolerance = 0;
    if (!o->staleness_given)
        o->staleness = 0;
    if (o->clocks == 0 && o->epochs == 0)
        o->epochs = EPOCHS_DEFAULT;
    o->eager = o->partition_sync = RBT_OFF;
}

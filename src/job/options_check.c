/* What options mean together: combinations that make no sense are refused with the reason, "auto" is settled.
 * The contract stands in options.h, the table in options.c, what peers are about in options_peers.c. Proved by
 * tests/unit/test_options.c.
 */
#include "job/options.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/part.h"
#include "job/trainee.h"
#include "job/plan.h"
#include "method/method.h"
#include "runtime/spec.h"

#define EPOCHS_DEFAULT    10
#define EPOCHS_SHARED     100 /* at most: the tolerance ends it before */
#define TOLERANCE_DEFAULT 1e-3
#define EPOCHS_LIMIT      1e9

/* ------------------------------------------------------------------------------------------------ check */

/* How many cores this process may use: what taskset or a container leaves of the machine's. */
static uint32_t cores(void)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (uint32_t)CPU_COUNT(&set);
    return online > 0 && online < RBT_WORKERS_LIMIT ? (uint32_t)online : 1;
}

/* Values that were not set by text (a program filled the struct) get the same checks. */
static rbt_err check_values(const rbt_options *o, rbt_error *error)
{
    if (o->workers > RBT_WORKERS_LIMIT)
        return rbt_fail(error, RBT_E_USAGE, "--workers %u is out of range; give a number from 1 to %d", o->workers,
                        RBT_WORKERS_LIMIT);
    if (o->servers > RBT_SERVERS_LIMIT)
        return rbt_fail(error, RBT_E_USAGE, "--servers %u is out of range; give a number from 1 to %d", o->servers,
                        RBT_SERVERS_LIMIT);
    if (!(isfinite(o->lr) && o->lr >= 0))
        return rbt_fail(error, RBT_E_USAGE, "--lr %g is out of range; give a number greater than 0, or auto", o->lr);
    if (!isnan(o->l2) && !(isfinite(o->l2) && o->l2 >= 0))
        return rbt_fail(error, RBT_E_USAGE, "--l2 %g is out of range; give a number of at least 0", o->l2);
    if (!(o->epochs >= 0 && o->epochs <= EPOCHS_LIMIT))
        return rbt_fail(error, RBT_E_USAGE, "--epochs %g is out of range; give a number greater than 0, at most %g",
                        o->epochs, EPOCHS_LIMIT);
    if (!(isfinite(o->global_rate) && o->global_rate >= 0))
        return rbt_fail(error, RBT_E_USAGE, "--global-rate %g is out of range; give a number greater than 0",
                        o->global_rate);
    if (!(isfinite(o->l1) && o->l1 >= 0))
        return rbt_fail(error, RBT_E_USAGE, "--l1 %g is out of range; give a number of at least 0", o->l1);
    if (!isnan(o->delta) && !(isfinite(o->delta) && o->delta > 0))
        return rbt_fail(error, RBT_E_USAGE, "--delta %g is out of range; give a number greater than 0", o->delta);
    if (!(o->momentum >= 0 && o->momentum < 1))
        return rbt_fail(error, RBT_E_USAGE, "--momentum %g is out of range; give a number from 0 to below 1",
                        o->momentum);
    if (o->folds == 1)
        return rbt_fail(error, RBT_E_USAGE, "--folds 1 leaves nothing to train on; give 2 or more");
    if (o->batch != 0 && (!(isfinite(o->batch) && o->batch > 0) || (o->batch_percent && o->batch > 100) ||
                          (!o->batch_percent && o->batch < 1)))
        return rbt_fail(error, RBT_E_USAGE, "--batch %g%s is out of range; give at least one row, or at most 100%%",
                        o->batch, o->batch_percent ? "%" : "");
    if ((o->decay == RBT_DECAY_SQRT && !(isfinite(o->decay_factor) && o->decay_factor > 0)) ||
        (o->decay == RBT_DECAY_MULT && !(o->decay_factor > 0 && o->decay_factor <= 1)))
        return rbt_fail(error, RBT_E_USAGE,
                        "--decay's factor %g is out of range; sqrt takes one above 0, mult one above "
                        "0 and at most 1",
                        o->decay_factor);
    return RBT_OK;
}

static const char *runtime_name(rbt_runtime_kind runtime)
{
    static const char *const NAMES[] = {"local", "sim", "cluster"};

    return NAMES[runtime];
}

static const char *rule_name(rbt_rule_kind rule)
{
    static const char *const NAMES[] = {"auto", "sum", "con", "dyn", "adagrad", "adarev", "momentum"};

    return NAMES[rule];
}

/* Why a rule's updates cannot be sent in parts; NULL: they can. */
static const char *why_not_in_parts(rbt_rule_kind rule)
{
    switch (rule) {
    case RBT_RULE_DYN:
        return "an update of a clock is one term of a mean, and parts of it would count as several; use --rule con";
    case RBT_RULE_ADAGRAD:
        return "the squares of a gradient's parts do not add up to the square of the whole; use --rule adarev, which "
               "knows what a part has missed of the others";
    case RBT_RULE_MOMENTUM:
        return "its velocity begins anew with the first update of a clock, and parts of the one before would come "
               "after it; use --rule con";
    default:
        return NULL;
    }
}

/* Managed communication sends parts of updates, which must come to the same as the whole, before a clock ends, which BSP
 * forbids. */
rbt_err rbt_options_check_budget(const rbt_options *o, rbt_sync sync, rbt_rule_kind rule, rbt_error *error)
{
    if (sync != RBT_SYNC_SSP && sync != RBT_SYNC_ASP)
        return rbt_fail(error, RBT_E_USAGE,
                        "--budget makes no sense with --sync %s, where nobody may see a clock's updates before it "
                        "ends or there are no servers; use --sync ssp",
                        rbt_sync_name(sync));
    if (sync == RBT_SYNC_SSP && o->staleness_given && o->staleness == 0)
        return rbt_fail(error, RBT_E_USAGE,
                        "--budget makes no sense with --staleness 0, where nobody may see a clock's updates before it "
                        "ends; use --staleness 1 or more");
    if (why_not_in_parts(rule) != NULL)
        return rbt_fail(error, RBT_E_USAGE, "--budget makes no sense with --rule %s: %s", rule_name(rule),
                        why_not_in_parts(rule));
    return RBT_OK;
}

static rbt_err check_budget(const rbt_options *o, rbt_sync sync, rbt_rule_kind rule, rbt_error *error)
{
    uint64_t bytes, burst;

    if (o->budget == NULL && o->priority != RBT_PRIORITY_ROUND_ROBIN)
        return rbt_fail(error, RBT_E_USAGE,
                        "--priority makes no sense without --budget: it says what is sent first within a budget; "
                        "give --budget, say 200Mbit");
    if (o->budget == NULL)
        return RBT_OK;
    rbt_err err = rbt_options_check_budget(o, sync, rule, error);
    return err == RBT_OK ? rbt_budget_parse(o->budget, &bytes, &burst, error) : err;
}

/* Is how long it trains to be found out on the way? */
static bool ends_by_looking(const rbt_options *o, rbt_sync sync)
{
    bool is_open = o->clocks == 0 && o->epochs == 0;

    return o->tolerance > 0 || (is_open && (o->has_target || (isnan(o->tolerance) && sync >= RBT_SYNC_HOGWILD &&
                                                              rbt_trainee_method(o->model) == NULL)));
}

/* The option that is about servers and was given, or NULL. */
static const char *server_option(const rbt_options *o)
{
    return o->servers > 0                            ? "servers"
           : o->rule != RBT_RULE_AUTO                ? "rule"
           : o->global_rate > 0                      ? "global-rate"
           : o->partition_sync == RBT_ON             ? "partition-sync"
           : o->eager == RBT_ON                      ? "eager"
           : o->filter_given || o->significant_given ? "filter"
           : o->budget != NULL                       ? "budget"
           : o->verify                               ? "verify"
                                                     : NULL;
}

/* The option that makes no sense in shared memory and was given, or NULL. */
static const char *asks_for_servers(const rbt_options *o)
{
    const char *given = server_option(o);

    return given != NULL              ? given
           : o->staleness_given       ? "staleness"
           : o->encode                ? "encode"
           : rbt_options_squeeze(o)   ? "codec"
           : o->batches_per_clock > 0 ? "batches-per-clock"
           : o->batch > 0             ? "batch"
                                      : NULL;
}

/* What makes no sense without servers. */
static rbt_err check_shared(const rbt_options *o, rbt_error *error)
{
    const char *asked = asks_for_servers(o);

    if (o->runtime != RBT_RUNTIME_LOCAL)
        return rbt_fail(error, RBT_E_USAGE,
                        "--sync %s is for threads that share memory and makes no sense with --runtime %s; use --sync "
                        "bsp, ssp or asp",
                        rbt_sync_name(o->sync), runtime_name(o->runtime));
    if (o->model == NULL)
        return rbt_fail(error, RBT_E_USAGE, "--sync %s trains models; a table program needs bsp, ssp or asp",
                        rbt_sync_name(o->sync));
    if (asked != NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "--%s makes no sense with --sync %s, where workers step row by row through one memory without "
                        "servers; leave it out, or use --sync bsp, ssp or asp",
                        asked, rbt_sync_name(o->sync));
    if (o->sync == RBT_SYNC_SEQUENTIAL && o->workers > 1)
        return rbt_fail(error, RBT_E_USAGE, "--sync sequential has one worker; leave out --workers, or use hogwild");
    if (o->sync == RBT_SYNC_PSGD && o->optimizer != RBT_OPTIMIZER_AUTO && o->optimizer != RBT_OPTIMIZER_SGD)
        return rbt_fail(error, RBT_E_USAGE,
                        "--sync psgd averages what plain steps of workers alone lead to; use --optimizer sgd");
    if (rbt_options_takes_turns(o) && o->optimizer == RBT_OPTIMIZER_NEWTON)
        return rbt_fail(error, RBT_E_USAGE,
                        "--sync %s makes no sense with --optimizer newton, whose threads share passes and no "
                        "steps; use --sync hogwild, or --optimizer sdca",
                        rbt_sync_name(o->sync));
    return RBT_OK;
}

/* What describes another runtime. */
static rbt_err check_runtime(const rbt_options *o, rbt_error *error)
{
    const char *simulated = o->net != NULL       ? "net"
                            : o->speed != NULL   ? "speed"
                            : o->cluster != NULL ? "cluster"
                            : o->cost != NULL    ? "cost"
                            : o->faults != NULL  ? "faults"
                                                 : NULL;
    const char *clustered = o->key != NULL                       ? "key"
                            : o->listen != NULL                  ? "listen"
                            : o->advertise != NULL               ? "advertise"
                            : o->insecure                        ? "insecure"
                            : o->shm != RBT_AUTO                 ? "shm"
                            : o->on_worker_loss != RBT_LOSS_AUTO ? "on-worker-loss"
                            : o->colocate != RBT_AUTO            ? "colocate"
                                                                 : NULL;

    if (o->runtime != RBT_RUNTIME_SIM && simulated != NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "--%s describes the simulator and makes no sense with --runtime %s; use --runtime sim",
                        simulated, runtime_name(o->runtime));
    if (o->runtime != RBT_RUNTIME_CLUSTER && clustered != NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "--%s is for several processes and makes no sense with --runtime %s; use rubato launch, or "
                        "--runtime cluster under srun or mpirun",
                        clustered, runtime_name(o->runtime));
    if (o->runtime == RBT_RUNTIME_LOCAL && o->per_process > 1)
        return rbt_fail(error, RBT_E_USAGE,
                        "--per-process makes no sense with --runtime local, where all workers share one process; leave "
                        "it out");
    if (o->runtime == RBT_RUNTIME_CLUSTER && o->folds > 0)
        return rbt_fail(error, RBT_E_USAGE,
                        "--folds makes no sense with --runtime cluster; cross-validate on one machine");
    if (o->runtime == RBT_RUNTIME_CLUSTER && o->store != RBT_STORE_MEMORY)
        return rbt_fail(error, RBT_E_USAGE,
                        "--store %s makes no sense with --runtime cluster, where every process has its share of the "
                        "rows in memory; leave it out",
                        o->store == RBT_STORE_DISK ? "disk" : "both");
    if (o->runtime == RBT_RUNTIME_CLUSTER && o->cache == RBT_CACHE_AUTO && rbt_trainee_method(o->model) == NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "--cache auto makes no sense with --runtime cluster, where every process reads its own part of "
                        "the data; make a cache with rubato convert and give it as --data");
    return RBT_OK;
}

static rbt_err check_learning(const rbt_options *o, rbt_error *error)
{
    bool stepless = o->optimizer == RBT_OPTIMIZER_SDCA || o->optimizer == RBT_OPTIMIZER_NEWTON;
    const char *name = o->optimizer == RBT_OPTIMIZER_SDCA ? "sdca" : "newton";

    if (o->optimizer == RBT_OPTIMIZER_SDCA && o->l2 == 0)
        return rbt_fail(error, RBT_E_USAGE, "--optimizer sdca needs --l2 above 0; give one, or use --optimizer sgd");
    if (stepless && (o->lr > 0 || o->decay != RBT_DECAY_AUTO))
        return rbt_fail(error, RBT_E_USAGE,
                        "--%s makes no sense with --optimizer %s, which has no step size; leave it out",
                        o->lr > 0 ? "lr" : "decay", name);
    if (o->data != NULL && o->valid != NULL && strcmp(o->data, "-") == 0 && strcmp(o->valid, "-") == 0)
        return rbt_fail(error, RBT_E_USAGE, "--data and --valid cannot both be the standard input, which is read once");
    if (o->patience > 0 && o->valid == NULL)
        return rbt_fail(error, RBT_E_USAGE, "--patience watches the loss on --valid; give --valid PATH");
    if (o->patience > 0 && o->eval_every == 0)
        return rbt_fail(error, RBT_E_USAGE,
                        "--patience counts evaluations, of which --eval-every 0 leaves the last one only; give "
                        "--eval-every 1 or more, or leave --patience out");
    if (o->folds > 0 && o->valid != NULL)
        return rbt_fail(error, RBT_E_USAGE, "--folds measures on parts of --data; leave out --valid");
    return RBT_OK;
}

/* With {rank} in --data every worker has its own files. */
static rbt_err check_ranked(const rbt_options *o, rbt_error *error)
{
    if (o->data == NULL || !rbt_path_is_ranked(o->data))
        return RBT_OK;
    if (o->workers == 0 || o->workers_auto)
        return rbt_fail(error, RBT_E_USAGE,
                        "--data %s stands for one path per worker, from 0 on; say how many there are with --workers",
                        o->data);
    if (o->folds > 0 || o->store != RBT_STORE_MEMORY || o->cache == RBT_CACHE_AUTO)
        return rbt_fail(error, RBT_E_USAGE,
                        "--%s makes no sense with {rank} in --data, where every worker has its own files; leave it out",
                        o->folds > 0                   ? "folds"
                        : o->store != RBT_STORE_MEMORY ? "store"
                                                       : "cache");
    return RBT_OK;
}

/* Is every update multiplied by the same factor? */
static bool has_factor(rbt_rule_kind rule)
{
    return rule == RBT_RULE_CON || rule == RBT_RULE_MOMENTUM;
}

/* What the rules that make the steps themselves do not go with. */
static rbt_err check_rule(const rbt_options *o, rbt_error *error)
{
    if (rbt_options_adaptive(o) && (o->decay == RBT_DECAY_SQRT || o->decay == RBT_DECAY_MULT))
        return rbt_fail(error, RBT_E_USAGE,
                        "--decay makes no sense with --rule %s, which shrinks its own steps; leave it out",
                        rule_name(o->rule));
    if (rbt_options_adaptive(o) && (o->l1 > 0 || o->optimizer > RBT_OPTIMIZER_SGD))
        return rbt_fail(error, RBT_E_USAGE,
                        "--%s makes no sense with --rule %s, where workers send gradients and servers make the "
                        "steps; use --rule con or dyn",
                        o->l1 > 0 ? "l1" : "optimizer", rule_name(o->rule));
    if (o->rule == RBT_RULE_MOMENTUM && o->optimizer == RBT_OPTIMIZER_MOMENTUM)
        return rbt_fail(error, RBT_E_USAGE,
                        "--rule momentum and --optimizer momentum would both go on with the same steps; choose one");
    return RBT_OK;
}

/* What makes no sense for a method, which has no gradients. */
static rbt_err check_method(const rbt_options *o, const rbt_method *method, rbt_sync sync, rbt_error *error)
{
    const char *gradient = o->optimizer != RBT_OPTIMIZER_AUTO         ? "optimizer"
                           : o->normalize != RBT_NORMALIZE_NONE       ? "normalize"
                           : o->class_weight != NULL                  ? "class-weight"
                           : o->folds > 0                             ? "folds"
                           : !isnan(o->tolerance) && o->tolerance > 0 ? "tolerance"
                           : o->no_bias && !method->has_bias          ? "no-bias"
                           : o->store != RBT_STORE_MEMORY             ? "store"
                                                                      : NULL;
    double *values = rbt_alloc(RBT_METHOD_OPTIONS_MOST, sizeof *values);
    rbt_err err = rbt_method_settings(method, o->settings, values, error);

    bool shared = method->pass != NULL && (sync == RBT_SYNC_HOGWILD || sync == RBT_SYNC_SEQUENTIAL);
    bool peers = method->update != NULL && sync >= RBT_SYNC_HOP && sync <= RBT_SYNC_ALLREDUCE;

    rbt_free(values);
    if (err == RBT_OK && !shared && !peers && sync >= RBT_SYNC_HOP)
        err = rbt_fail(error, RBT_E_USAGE,
                       "--sync %s is for models that learn from gradients; %s needs %s%sbsp, ssp or asp",
                       rbt_sync_name(sync), method->name, method->pass != NULL ? "hogwild, sequential, " : "",
                       method->update != NULL ? "hop, adpsgd, allreduce, " : "");
    if (err == RBT_OK && o->has_target && method->objective == NULL)
        err = rbt_fail(error, RBT_E_USAGE, "--target-loss makes no sense for %s, which has no loss; leave it out",
                       method->name);
    if (err == RBT_OK && o->patience > 0 && !shared && !peers)
        err = rbt_fail(error, RBT_E_USAGE,
                       "--patience makes no sense for %s with --sync %s, where --valid is looked at when training has "
                       "ended; %s",
                       method->name, rbt_sync_name(sync),
                       method->pass != NULL ? "use --sync hogwild, or leave it out" : "leave it out");
    if (err == RBT_OK && gradient != NULL)
        err = rbt_fail(error, RBT_E_USAGE, "--%s makes no sense for %s; %s", gradient, method->name,
                       strcmp(gradient, "no-bias") == 0 && rbt_method_option_find(method, "biases") != NULL
                           ? "use --biases off"
                           : "leave it out");
    if (err == RBT_OK && o->data != NULL && rbt_path_is_ranked(o->data))
        err = rbt_fail(
            error, RBT_E_USAGE,
            "{rank} in --data makes no sense for %s, which deals out what all files have; give them as a pattern",
            method->name);
    if (err == RBT_OK && method->needs_sums && o->rule != RBT_RULE_AUTO && o->rule != RBT_RULE_SUM)
        err = rbt_fail(error, RBT_E_USAGE, "--rule %s makes no sense for %s, whose updates must add up; leave it out",
                       rule_name(o->rule), method->name);
    if (err == RBT_OK && method->reads_itself && o->runtime == RBT_RUNTIME_CLUSTER && o->data != NULL &&
        strcmp(o->data, "-") == 0)
        err = rbt_fail(error, RBT_E_USAGE,
                       "the processes of a cluster job have no common standard input; save the data of %s to a file",
                       method->name);
    if (err == RBT_OK && method->keeps_state &&
        (o->on_worker_loss == RBT_LOSS_WAIT || (o->faults != NULL && strstr(o->faults, "crash") != NULL)))
        err = rbt_fail(error, RBT_E_USAGE,
                       "workers of %s remember things between clocks, so one that was lost cannot be replaced; use "
                       "--on-worker-loss continue or stop, and no crashes",
                       method->name);
    return err;
}

/* An optimizer for threads in one memory, and a job with servers or peers: what stands in its way? */
static rbt_err refuse_to_share(const rbt_options *o, rbt_error *error)
{
    const char *name = o->optimizer == RBT_OPTIMIZER_SDCA     ? "sdca"
                       : o->optimizer == RBT_OPTIMIZER_NEWTON ? "newton"
                                                              : "asgd";
    const char *asked = asks_for_servers(o);

    if (o->runtime != RBT_RUNTIME_LOCAL)
        return rbt_fail(error, RBT_E_USAGE,
                        "--optimizer %s needs all of the data's steps in one memory, which --runtime %s has not; use "
                        "--optimizer sgd",
                        name, runtime_name(o->runtime));
    return rbt_fail(error, RBT_E_USAGE,
                    "--optimizer %s needs all of the data's steps in one memory; use --sync hogwild%s%s, or "
                    "--optimizer sgd",
                    name, asked != NULL ? " and leave out --" : "", asked != NULL ? asked : "");
}

static rbt_err check_combinations(const rbt_options *o, rbt_sync sync, rbt_rule_kind rule, rbt_error *error)
{
    rbt_err err = rbt_options_check_peers(o, sync, server_option(o), error);

    if (err != RBT_OK)
        return err;
    if (sync < RBT_SYNC_HOGWILD && o->optimizer >= RBT_OPTIMIZER_ASGD)
        return refuse_to_share(o, error);
    if (o->staleness_given && sync != RBT_SYNC_SSP && (sync < RBT_SYNC_HOP || sync > RBT_SYNC_ALLREDUCE))
        return rbt_fail(error, RBT_E_USAGE, "--staleness makes no sense with --sync %s, where %s; use --sync ssp",
                        rbt_sync_name(sync), sync == RBT_SYNC_BSP ? "it is always 0" : "nobody ever waits");
    if (o->global_rate > 0 && !has_factor(rule))
        return rbt_fail(error, RBT_E_USAGE,
                        "--global-rate makes no sense with --rule %s: only con and momentum scale every update "
                        "by the same factor; use --rule con",
                        rule_name(rule));
    if (o->partition_sync == RBT_ON && rule != RBT_RULE_DYN)
        return rbt_fail(error, RBT_E_USAGE,
                        "--partition-sync on makes no sense with --rule %s: only dyn keeps versions; "
                        "use --rule dyn",
                        rule_name(rule));
    if (o->eager == RBT_ON && sync != RBT_SYNC_SSP)
        return rbt_fail(error, RBT_E_USAGE,
                        "--eager on makes no sense with --sync %s: only ssp reads from a cache that "
                        "a push can keep fresh; use --sync ssp",
                        rbt_sync_name(sync));
    if (o->eager == RBT_ON && o->partition_sync == RBT_ON)
        return rbt_fail(error, RBT_E_USAGE,
                        "--eager on and --partition-sync on exclude each other: a pushed block would "
                        "bypass the stable version; choose one");
    if (o->store == RBT_STORE_DISK && (o->normalize != RBT_NORMALIZE_NONE || o->folds > 0))
        return rbt_fail(
            error, RBT_E_USAGE,
            "--%s makes no sense with --store disk: it takes a copy of the data in memory; use --store memory",
            o->folds > 0 ? "folds" : "normalize");
    if ((o->cache == RBT_CACHE_AUTO || o->store == RBT_STORE_BOTH) &&
        ((o->data != NULL && strcmp(o->data, "-") == 0) || (o->valid != NULL && strcmp(o->valid, "-") == 0)))
        return rbt_fail(
            error, RBT_E_USAGE,
            "%s makes no sense with the standard input, whose cache could not be found again; save the data "
            "to a file",
            o->cache == RBT_CACHE_AUTO ? "--cache auto" : "--store both");
    if (o->clocks > 0 && o->epochs > 0)
        return rbt_fail(error, RBT_E_USAGE, "--clocks and --epochs both say how long to train; give one of them");
    if (o->eval_every == 0 && ends_by_looking(o, sync))
        return rbt_fail(error, RBT_E_USAGE,
                        "--eval-every 0 leaves the last look only, and what shall end the training is seen by looking; "
                        "give --epochs and no --tolerance, or --eval-every 1 or more");
    err = check_rule(o, error);
    if (err == RBT_OK)
        err = check_budget(o, sync, rule, error);
    if (err == RBT_OK)
        err = rbt_options_check_codec(o, sync, rule, error);
    return err == RBT_OK ? check_runtime(o, error) : err;
}

/* A model on one machine is trained in shared memory, if it can be and nothing is asked for that needs servers. */
static bool may_share(const rbt_options *o)
{
    return o->runtime == RBT_RUNTIME_LOCAL && o->model != NULL && !rbt_trainee_needs_servers(o->model);
}

/* A method's increments add up. */
rbt_rule_kind rbt_options_rule(const rbt_options *options, rbt_sync sync)
{
    return options->rule != RBT_RULE_AUTO               ? options->rule
           : rbt_trainee_method(options->model) != NULL ? RBT_RULE_SUM
           : sync == RBT_SYNC_BSP                       ? RBT_RULE_CON
                                                        : RBT_RULE_DYN;
}

static rbt_sync settled_sync(const rbt_options *o)
{
    if (o->sync != RBT_SYNC_AUTO)
        return o->sync;
    return may_share(o) && asks_for_servers(o) == NULL ? RBT_SYNC_HOGWILD : RBT_SYNC_SSP;
}

/* Steps of gradients with servers, without l2, and for whoever gives a step size or its decay. What else fits depends on the data
 * (loading.c). */
static rbt_optimizer settled_optimizer(const rbt_options *o)
{
    if (o->optimizer != RBT_OPTIMIZER_AUTO || rbt_trainee_method(o->model) != NULL)
        return o->optimizer;
    return !rbt_options_shared(o) || o->sync == RBT_SYNC_PSGD || o->lr > 0 || o->decay != RBT_DECAY_AUTO
               ? RBT_OPTIMIZER_SGD
               : RBT_OPTIMIZER_AUTO;
}

void rbt_options_settle_decay(rbt_options *o)
{
    if (o->decay != RBT_DECAY_AUTO || o->optimizer >= RBT_OPTIMIZER_SDCA) /* which have no steps to shrink */
        return;
    bool shrinks = o->optimizer == RBT_OPTIMIZER_SGD || o->optimizer == RBT_OPTIMIZER_MOMENTUM ||
                   o->optimizer == RBT_OPTIMIZER_ADAM; /* adagrad's do so by themselves, asgd's are averaged */
    o->decay = shrinks ? RBT_DECAY_SQRT : RBT_DECAY_NONE;
    o->decay_factor = shrinks ? 1 : 0;
}

/* What is settled in shared memory. */
static void settle_shared(rbt_options *o)
{
    if (o->sync == RBT_SYNC_SEQUENTIAL)
        o->workers = 1;
    bool method = rbt_trainee_method(o->model) != NULL; /* nobody knows how far from the optimum it is */
    if (o->optimizer != RBT_OPTIMIZER_AUTO || method)   /* else when the data is known */
        rbt_options_settle_decay(o);

    if (isnan(o->tolerance))
        o->tolerance = o->clocks == 0 && o->epochs == 0 && !o->has_target && !method ? TOLERANCE_DEFAULT : 0;
    if (o->clocks == 0 && o->epochs == 0) {
        o->epochs = method ? EPOCHS_DEFAULT : EPOCHS_SHARED;
        o->epochs_auto = o->tolerance > 0 && !method;
    }
    o->staleness = RBT_UNBOUNDED;
}

static void settle(rbt_options *o)
{
    const rbt_method *method = rbt_trainee_method(o->model);

    if (o->sync == RBT_SYNC_AUTO && may_share(o) && o->servers == 0 && o->rule == RBT_RULE_AUTO && !o->staleness_given)
        o->sync_for = asks_for_servers(o);
    o->sync = settled_sync(o);
    o->optimizer = settled_optimizer(o);
    if (o->workers == 0) {
        o->workers = cores();
        o->workers_auto = true;
    }
    if (rbt_options_shared(o)) {
        settle_shared(o);
        return;
    }
    if (rbt_options_peers(o)) {
        rbt_options_settle_peers(o);
        return;
    }
    if (o->servers == 0)
        o->servers = 1;
    if (method == NULL && o->batch == 0) { /* a step size found by trying rows is one for rows */
        bool by_row = o->lr == 0 && !rbt_options_adaptive(o) && o->optimizer == RBT_OPTIMIZER_SGD;
        o->batch = by_row ? 1 : 10;
        o->batch_percent = !by_row;
    }
    if (o->decay == RBT_DECAY_AUTO)
        o->decay = RBT_DECAY_NONE;
    if (isnan(o->tolerance))
        o->tolerance = 0;
    o->rule = rbt_options_rule(o, o->sync);
    if (o->sync != RBT_SYNC_SSP)
        o->staleness = o->sync == RBT_SYNC_BSP ? 0 : RBT_UNBOUNDED;
    if (has_factor(o->rule) && o->global_rate == 0)
        o->global_rate = 1.0 / o->workers;
    if (o->partition_sync == RBT_AUTO) /* what was asked for by name wins over what is automatic */
        o->partition_sync = o->rule == RBT_RULE_DYN && o->servers > 1 && o->eager != RBT_ON ? RBT_ON : RBT_OFF;
    if (o->eager == RBT_AUTO)
        o->eager = o->sync == RBT_SYNC_SSP && o->staleness > 0 && o->staleness != RBT_UNBOUNDED &&
                           o->partition_sync != RBT_ON && (method == NULL || !method->reads_once)
                       ? RBT_ON
                       : RBT_OFF;
    if (o->clocks == 0 && o->epochs == 0) /* a method that does not heed them goes once through the data */
        o->epochs = method != NULL && rbt_method_unheeds(method, "epochs") ? 1 : EPOCHS_DEFAULT;
    rbt_options_settle_filter(o);
}

rbt_err rbt_options_check(rbt_options *options, rbt_error *error)
{
    const rbt_method *method = rbt_trainee_method(options->model);
    rbt_sync sync = settled_sync(options);
    rbt_rule_kind rule = rbt_options_rule(options, sync);
    rbt_err err = check_values(options, error);

    if (err == RBT_OK)
        err = check_learning(options, error);
    if (err == RBT_OK)
        err = rbt_options_check_filter(options, rule, error);
    if (err == RBT_OK && sync >= RBT_SYNC_HOGWILD && options->sync != RBT_SYNC_AUTO)
        err = check_shared(options, error);
    if (err == RBT_OK && method != NULL)
        err = check_method(options, method, sync, error);
    else if (err == RBT_OK && options->settings != NULL)
        err = rbt_fail(error, RBT_E_USAGE, "%s has no options of its own: leave out %.60s",
                       options->model != NULL ? options->model : "a table program", options->settings);
    if (err == RBT_OK)
        err = check_combinations(options, sync, rule, error);
    if (err == RBT_OK)
        err = rbt_options_check_unused(options, sync, method, error);
    if (err == RBT_OK)
        err = rbt_options_check_hosts(options, sync <= RBT_SYNC_ASP, error);
    if (err == RBT_OK)
        err = check_ranked(options, error);
    if (err == RBT_OK)
        settle(options);
    return err;
}

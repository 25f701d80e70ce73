/* The shorthand for protocols of `rubato compare`: what it says is set, what makes no sense under it forgotten. The contract stands in
 * options.h. Proved by tests/unit/test_options.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "job/options.h"
#include "job/options_table.h"

#define PROTOCOL_ROOM 512

/* Forgets what makes no sense under the options' sync and rule. */
static void drop_senseless(rbt_options *o)
{
    rbt_rule_kind rule = rbt_options_rule(o, o->sync);

    if (o->sync != RBT_SYNC_SSP && o->sync != RBT_SYNC_HOP)
        o->staleness_given = false;
    if (o->sync != RBT_SYNC_SSP)
        o->eager = RBT_AUTO;
    if (o->sync != RBT_SYNC_HOP) {
        o->max_gap = o->skip = 0;
        o->skip_trigger = RBT_SKIP_TRIGGER_DEFAULT;
        o->backup = 0;
        o->order = RBT_ORDER_PARALLEL;
        o->notify_ack = false;
    }
    if (o->sync != RBT_SYNC_HOP && o->sync != RBT_SYNC_ADPSGD) {
        rbt_free(o->graph);
        rbt_free(o->machines);
        o->graph = o->machines = NULL;
    }
    if (o->machines != NULL && (o->graph == NULL || strcmp(o->graph, "clique") != 0)) {
        rbt_free(o->machines);
        o->machines = NULL;
    }
    if (rule != RBT_RULE_MOMENTUM && o->optimizer != RBT_OPTIMIZER_MOMENTUM)
        o->momentum = RBT_MOMENTUM_DEFAULT;
    if (rbt_options_peers(o)) { /* what servers are about */
        o->servers = 0;
        o->rule = RBT_RULE_AUTO;
        o->partition_sync = RBT_AUTO;
        o->global_rate = o->filter = o->significant = 0;
        o->filter_given = o->significant_given = false;
        o->verify = false;
        rbt_options_drop_codec(o, false);
    }
    if (rule != RBT_RULE_CON && rule != RBT_RULE_MOMENTUM)
        o->global_rate = 0;
    if (rbt_options_adaptive(o)) {
        o->decay = RBT_DECAY_AUTO;
        rbt_options_drop_codec(o, false);
    }
    if (rule != RBT_RULE_DYN)
        o->partition_sync = RBT_AUTO;
    if (rbt_options_check_budget(o, o->sync, rule, NULL) != RBT_OK) {
        rbt_free(o->budget);
        o->budget = NULL;
        o->priority = RBT_PRIORITY_ROUND_ROBIN;
    }
    if (rbt_options_shared(o)) { /* what servers and batches are about */
        o->servers = 0;
        o->rule = RBT_RULE_AUTO;
        o->batch = 0;
        o->batches_per_clock = 0;
        o->partition_sync = RBT_AUTO;
        o->global_rate = o->filter = o->significant = 0;
        o->filter_given = o->significant_given = false;
        rbt_options_drop_codec(o, true);
        o->verify = o->encode = false;
        o->epochs = ceil(o->epochs); /* a clock is a pass */
        if (rbt_options_takes_turns(o) && o->optimizer == RBT_OPTIMIZER_NEWTON)
            o->optimizer = RBT_OPTIMIZER_AUTO;
        if (o->sync == RBT_SYNC_SEQUENTIAL)
            o->workers = 1;
    } else if (o->optimizer >= RBT_OPTIMIZER_ASGD) {
        o->optimizer = RBT_OPTIMIZER_AUTO;
    }
}

/* Peers: "hop:ring-based/max-gap=5/backup=1", "hop:ring/notify-ack", "adpsgd:ring", "allreduce". `rest` is what follows the graph. */
static rbt_err set_peers(rbt_options *options, const char *graph, char *rest, rbt_error *error)
{
    static const char *const OPTIONS[] = {"max-gap", "backup",   "staleness",  "skip",
                                          "order",   "machines", "notify-ack", "skip-trigger"};
    rbt_err err = graph != NULL ? rbt_options_set(options, "graph", graph, error) : RBT_OK;

    while (err == RBT_OK && rest != NULL) {
        char *name = rest, *next = strchr(rest, '/'), *value;
        bool known = false;

        if (next != NULL)
            *next++ = '\0';
        value = strchr(name, '=');
        if (value != NULL)
            *value++ = '\0';
        for (size_t i = 0; i < sizeof OPTIONS / sizeof OPTIONS[0]; i++)
            known = known || strcmp(name, OPTIONS[i]) == 0;
        if (!known || (value == NULL) != (strcmp(name, "notify-ack") == 0))
            return rbt_fail(error, RBT_E_USAGE,
                            "'%s' is no part of one for peers; write it like hop:ring-based/max-gap=5/backup=1", name);
        err = rbt_options_set(options, name, value != NULL ? value : "true", error);
        rest = next;
    }
    return err;
}

static rbt_err set_servers(rbt_options *options, const char *staleness, const char *rule, rbt_error *error)
{
    rbt_err err = RBT_OK;

    if (staleness != NULL && options->sync != RBT_SYNC_SSP)
        return rbt_fail(error, RBT_E_USAGE, "only ssp takes a staleness; write it like ssp:3/dyn");
    if (staleness != NULL)
        err = rbt_options_set(options, "staleness", staleness, error);
    if (err == RBT_OK && rule != NULL)
        err = rbt_options_set(options, "rule", rule, error);
    return err;
}

rbt_err rbt_options_set_protocol(rbt_options *options, const char *text, rbt_error *error)
{
    char name[PROTOCOL_ROOM], *rest, *after;
    rbt_error inner = {RBT_OK, ""};
    rbt_err err;

    if (strlen(text) >= sizeof name)
        return rbt_fail(error, RBT_E_USAGE, "protocol '%.60s...' is too long to be one; write it like ssp:3/dyn", text);
    snprintf(name, sizeof name, "%s", text);
    rest = strchr(name, '/');
    if (rest != NULL)
        *rest++ = '\0';
    after = strchr(name, ':');
    if (after != NULL)
        *after++ = '\0';
    err = rbt_options_set(options, "sync", name, &inner);
    if (err == RBT_OK)
        err = rbt_options_peers(options) ? set_peers(options, after, rest, &inner)
                                         : set_servers(options, after, rest, &inner);
    if (err != RBT_OK)
        return rbt_fail(error, err, "protocol '%s': %.900s", text, inner.text);
    drop_senseless(options);
    return RBT_OK;
}

rbt_err rbt_options_check_protocols(const rbt_options *asked, const rbt_options *runs, size_t n, rbt_error *error)
{
    const rbt_option *o = NULL, *lost = NULL;
    rbt_options fresh;

    if (asked->sync != RBT_SYNC_AUTO)
        return rbt_fail(error, RBT_E_USAGE, "--sync makes no sense here: --protocols says it; leave it out");
    rbt_options_init(&fresh);
    for (size_t i = 0; lost == NULL && (o = rbt_option_at(i)) != NULL; i++) {
        bool taken = rbt_option_is_same(o, asked, &fresh);

        for (size_t k = 0; k < n && !taken; k++)
            taken = rbt_option_is_same(o, asked, &runs[k]);
        lost = taken ? NULL : o;
    }
    rbt_options_deinit(&fresh);
    if (lost == NULL)
        return RBT_OK;
    return rbt_fail(error, RBT_E_USAGE,
                    "--%s makes no sense here: each of the --protocols says it itself, or does not take it; leave it "
                    "out, or add a protocol that does",
                    lost->name);
}

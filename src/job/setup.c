/* From options to something that runs; the contract is in setup.h. */
#include "job/setup.h"

#include <stdlib.h>

#include "base/error.h"
#include "comm/squeeze.h"
#include "runtime/spec.h"
#include "solve/rate.h"
#include "wire/codec.h"

rbt_err rbt_setup_init(rbt_setup *setup, const rbt_options *options, rbt_error *error)
{
    rbt_err err = rbt_stragglers_init(&setup->stragglers, options->straggler, options->workers, options->seed, error);

    if (err == RBT_OK)
        err = rbt_sim_options_parse(&setup->sim, options->net, options->cost, options->faults, error);
    if (err == RBT_OK)
        err = rbt_sim_hosts_init(&setup->sim.hosts, options->speed, options->cluster, options->workers, &setup->sim.net,
                                 error);
    setup->sim.seed = options->seed;
    return err;
}

static const rbt_rule *rule_of(rbt_rule_kind kind)
{
    switch (kind) {
    case RBT_RULE_SUM:
        return &rbt_rule_sum;
    case RBT_RULE_CON:
        return &rbt_rule_con;
    case RBT_RULE_ADAGRAD:
        return &rbt_rule_adagrad;
    case RBT_RULE_ADAREV:
        return &rbt_rule_adarev;
    case RBT_RULE_MOMENTUM:
        return &rbt_rule_momentum;
    case RBT_RULE_DYN:
    case RBT_RULE_AUTO:
        break;
    }
    return &rbt_rule_dyn;
}

/* Is there room for the tables at all, and for what their rules remember? The system is asked, nothing is touched; better
 * now than in the middle. */
static rbt_err check_memory(const rbt_table_spec *specs, uint32_t tables, const rbt_rule *rule, rbt_error *error)
{
    for (uint32_t t = 0; t < tables; t++) {
        const rbt_procedure *procedure = specs[t].rule != NULL ? specs[t].rule : rule->procedure;
        double numbers = specs[t].type == RBT_F32 && procedure != NULL ? 1 + (double)procedure->memory : 1;
        double bytes = (double)specs[t].rows * (double)specs[t].cols * (double)rbt_type_size(specs[t].type) * numbers;
        void *room = specs[t].sparse ? NULL : bytes < 1e18 ? malloc((size_t)bytes + 1) : NULL;

        if (room == NULL && !specs[t].sparse)
            return rbt_fail(
                error, RBT_E_MEMORY,
                "not enough memory for table '%s' of %llu x %llu elements (%.0f MB); make it sparse or smaller",
                specs[t].name, (unsigned long long)specs[t].rows, (unsigned long long)specs[t].cols, bytes / 1e6);
        free(room);
    }
    return RBT_OK;
}

static rbt_err check_half(const rbt_table_spec *specs, uint32_t tables, rbt_error *error)
{
    for (uint32_t t = 0; t < tables; t++)
        if (specs[t].type == RBT_F32 && specs[t].rule == NULL)
            return RBT_OK;
    return rbt_fail(error, RBT_E_USAGE,
                    "--codec fp16 makes no sense where every table holds integers or has a rule of its own: there is "
                    "nothing to round; leave fp16 out");
}

rbt_err rbt_setup_lay_out(rbt_setup *setup, const rbt_options *options, const rbt_table_spec *specs, uint32_t tables,
                          rbt_error *error)
{
    rbt_topology *topology = &setup->topology;
    rbt_rule_config rule = {.rule = rule_of(options->rule),
                            .workers = options->workers,
                            .staleness = options->staleness,
                            .factor = (float)(options->global_rate > 0 ? options->global_rate : 1.0 / options->workers),
                            .rate = (float)(options->lr > 0 ? options->lr : RBT_RATE_ADAPTIVE),
                            .momentum = (float)options->momentum,
                            .partition_sync = options->partition_sync == RBT_ON};
    unsigned codec = 0;
    rbt_err err = check_memory(specs, tables, rule.rule, error);

    if (err == RBT_OK)
        err = rbt_codec_parse(options->codec, &codec, error);
    if (err == RBT_OK && codec & RBT_CODEC_FP16)
        err = check_half(specs, tables, error);
    if (err != RBT_OK)
        return err;
    topology->workers = options->workers;
    topology->servers = options->servers;
    topology->observers = 1;
    topology->process_workers = options->runtime == RBT_RUNTIME_LOCAL ? options->workers : options->per_process;
    topology->staleness = options->staleness;
    topology->eager = options->eager == RBT_ON;
    topology->partition_sync = rule.partition_sync;
    topology->lost_is_gone = options->runtime == RBT_RUNTIME_CLUSTER && options->on_worker_loss != RBT_LOSS_WAIT;
    topology->filter = (float)options->filter;
    topology->significant = (float)options->significant;
    topology->half = codec & RBT_CODEC_FP16;
    topology->slice_bytes = options->runtime == RBT_RUNTIME_LOCAL ? 0 : RBT_SLICE_BYTES; /* nothing arrives there */
    topology->message_blocks = RBT_WIRE_PARTS_MAX;
    topology->priority = options->priority;
    if (options->budget != NULL)
        err = rbt_budget_parse(options->budget, &topology->budget_bytes, &topology->burst_bytes, error);
    if (err == RBT_OK)
        err = rbt_topology_init(topology, specs, tables, &rule, error);
    if (err != RBT_OK)
        return err;
    rbt_run_init(&setup->run, topology);
    setup->run.stragglers = &setup->stragglers;
    setup->run.encode = options->encode;
    setup->run.codec = codec;
    return RBT_OK;
}

rbt_err rbt_setup_lay_out_peers(rbt_setup *setup, const rbt_options *options, rbt_error *error)
{
    rbt_err err = rbt_setup_lay_out(setup, options, NULL, 0, error);

    setup->topology.servers = 0;
    setup->topology.lost_is_gone = true; /* a peer has nothing to come back to */
    setup->topology.hop = &setup->hop;
    return err;
}

rbt_err rbt_setup_run(rbt_setup *setup, const rbt_options *options, rbt_error *error)
{
    return options->runtime == RBT_RUNTIME_SIM ? rbt_sim_run(&setup->run, &setup->sim, error)
                                               : rbt_local_run(&setup->run, error);
}

void rbt_setup_deinit(rbt_setup *setup)
{
    rbt_run_deinit(&setup->run);
    rbt_topology_deinit(&setup->topology);
    rbt_stragglers_deinit(&setup->stragglers);
    rbt_sim_hosts_deinit(&setup->sim.hosts);
}

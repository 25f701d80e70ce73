/* From options to something that runs: the rule, the topology with its tables, the stragglers, the simulator.
 *
 * Shared by jobs that train a model (job.c) and jobs that run a table program (table_job.c). */
#ifndef RBT_JOB_SETUP_H
#define RBT_JOB_SETUP_H

#include "job/options.h"
#include "runtime/sim.h"

typedef struct rbt_setup {
    rbt_hop hop; /* peers without servers */
    rbt_topology topology;
    rbt_stragglers stragglers;
    rbt_sim_options sim;
    rbt_run run;
} rbt_setup;

/* Reads what the options say in words (stragglers, network, costs, faults), so that a slip is found before anything is
 * loaded. `setup` is all zero before; rbt_setup_deinit is fine whatever succeeded. */
rbt_err rbt_setup_init(rbt_setup *setup, const rbt_options *options, rbt_error *error);

/* Lays the tables out and prepares the run; its programs, log and target are the caller's to fill in. */
rbt_err rbt_setup_lay_out(rbt_setup *setup, const rbt_options *options, const rbt_table_spec *specs, uint32_t tables,
                          rbt_error *error);

/* The same for peers, which have no tables; setup->hop is filled in. */
rbt_err rbt_setup_lay_out_peers(rbt_setup *setup, const rbt_options *options, rbt_error *error);

/* Runs on the runtime the options name. */
rbt_err rbt_setup_run(rbt_setup *setup, const rbt_options *options, rbt_error *error);

void rbt_setup_deinit(rbt_setup *setup);

#endif

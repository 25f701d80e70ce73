/* --speed and --cluster: who takes part is told there, too. A part of rbt_options_check (options.h); checking twice
 * changes nothing. Proved by tests/unit/test_options.c and tests/cli/test_hosts.sh.
 */
#include "job/options.h"

#include <string.h>

#include "base/error.h"
#include "runtime/sim_hosts.h"

/* How many speeds are given in order; 0: they are given by name. */
static uint32_t speeds_in_order(const char *text)
{
    uint32_t n = 1;

    if (strchr(text, '=') != NULL)
        return 0;
    for (; *text != '\0' && n < RBT_WORKERS_LIMIT; text++)
        n += *text == ',';
    return n;
}

rbt_err rbt_options_check_hosts(rbt_options *o, bool served, rbt_error *error)
{
    const rbt_net link = {0}; /* who is there is all that is asked */
    rbt_sim_hosts hosts;
    rbt_err err;

    if (o->speed != NULL && o->cluster != NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "--speed and --cluster both say how fast hosts are; leave --speed out, and put speed=... into "
                        "the lines of %s",
                        o->cluster);
    if (o->speed != NULL && o->workers == 0)
        o->workers = speeds_in_order(o->speed);
    if (o->cluster == NULL)
        return RBT_OK;
    err = rbt_sim_hosts_init(&hosts, NULL, o->cluster, 0, &link, error);
    if (err != RBT_OK)
        return err;
    if (o->workers > 0 && o->workers != hosts.workers)
        err =
            rbt_fail(error, RBT_E_USAGE, "--workers %u, but %s has %u workers; leave --workers out, or change the file",
                     o->workers, o->cluster, hosts.workers);
    else if (hosts.servers > RBT_SERVERS_LIMIT)
        err = rbt_fail(error, RBT_E_LIMIT, "%s has %u servers; a job has at most %d", o->cluster, hosts.servers,
                       RBT_SERVERS_LIMIT);
    else if (served && o->servers > 0 && hosts.servers > 0 && o->servers != hosts.servers)
        err =
            rbt_fail(error, RBT_E_USAGE, "--servers %u, but %s has %u servers; leave --servers out, or change the file",
                     o->servers, o->cluster, hosts.servers);
    if (err == RBT_OK) {
        o->workers = hosts.workers;
        if (served && o->servers == 0)
            o->servers = hosts.servers;
    }
    rbt_sim_hosts_deinit(&hosts);
    return err;
}

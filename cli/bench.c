/* rubato bench: measures this machine. */
#include "cli/cli.h"

#include <string.h>

#include "base/error.h"
#include "job/bench_hop.h"
#include "job/bench_job.h"
#include "math/bench_kernels.h"
#include "runtime/cluster/bench_net.h"

/* They are of one measurement alone. */
static rbt_err refuse_options(const char *what, const rbt_bench_net_options *net, rbt_error *error)
{
    const char *given = net->only != NULL      ? "only"
                        : net->netns != NULL   ? "netns"
                        : net->address != NULL ? "address"
                                               : NULL;

    if (given == NULL || strcmp(what, "net") == 0)
        return RBT_OK;
    return rbt_fail(error, RBT_E_USAGE, "--%s makes no sense with bench %s; it is of bench net: leave it out", given,
                    what);
}

int cli_bench(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    const char *what = NULL;
    rbt_bench_net_options net = {NULL, NULL, NULL};
    const cli_option own[] = {
        {"only", "unix|ring|tcp|tls", "net: one kind of connection. [all]", &net.only},
        {"netns", "FILE", "net: the network namespace of the other process, such as /run/netns/NAME.", &net.netns},
        {"address", "ADDRESS", "net: where the other process listens. [127.0.0.1]", &net.address},
    };
    cli_arguments arguments = {.own = own, .own_count = sizeof own / sizeof own[0], .words = &what, .words_room = 1};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK && what != NULL)
        err = refuse_options(what, &net, &error);
    if (err == RBT_OK && what == NULL)
        err = rbt_fail(&error, RBT_E_USAGE, "which measurement? There is: hop, kernels, local, net, sim");
    else if (err == RBT_OK && strcmp(what, "hop") == 0)
        err = rbt_bench_hop(cli_write_line, stdout, &error);
    else if (err == RBT_OK && strcmp(what, "kernels") == 0)
        rbt_bench_kernels(cli_write_line, stdout);
    else if (err == RBT_OK && strcmp(what, "local") == 0)
        err = rbt_bench_local(cli_write_line, stdout, &error);
    else if (err == RBT_OK && strcmp(what, "net") == 0)
        err = rbt_bench_net(&net, cli_write_line, stdout, &error);
    else if (err == RBT_OK && strcmp(what, "sim") == 0)
        err = rbt_bench_sim(cli_write_line, stdout, &error);
    else if (err == RBT_OK)
        err = rbt_fail(&error, RBT_E_USAGE, "unknown measurement '%s'; there is: hop, kernels, local, net, sim", what);
    return err == RBT_OK ? 0 : cli_fail(command, &error);
}

/* rubato bench: measures this machine. */
#include "cli/cli.h"

#include <string.h>

#include "base/error.h"
#include "math/bench_kernels.h"

int cli_bench(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    const char *what = NULL;
    cli_arguments arguments = {NULL, 0, NULL, &what, 1, 0, false};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK && (what == NULL || strcmp(what, "kernels") != 0))
        err = rbt_fail(&error, RBT_E_USAGE, "%s%s%s; there is: kernels",
                       what != NULL ? "unknown measurement '" : "which measurement?", what != NULL ? what : "",
                       what != NULL ? "'" : "");
    if (err != RBT_OK)
        return cli_fail(command, &error);
    rbt_bench_kernels(cli_write_line, stdout);
    return 0;
}

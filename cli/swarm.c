/* rubato swarm: random jobs in the simulator, every guarantee checked; the work is done by src/job/swarm.c. */
#include "cli/cli.h"

#include "base/error.h"
#include "job/swarm.h"
#include "job/text.h"

static rbt_err options_of(const char *seeds, const char *first, const char *replay, rbt_swarm_options *options,
                          rbt_error *error)
{
    rbt_err err = RBT_OK;

    if (replay != NULL) {
        if (seeds != NULL || first != NULL)
            return rbt_fail(error, RBT_E_USAGE, "--replay runs one seed; leave out --seeds and --seed");
        options->seeds = 1;
        options->verbose = true;
        return rbt_text_to_count("--replay", replay, 0, UINT64_MAX, &options->first_seed, error);
    }
    err = cli_require("seeds", seeds, "N", error);
    if (err == RBT_OK)
        err = rbt_text_to_count("--seeds", seeds, 1, UINT32_MAX, &options->seeds, error);
    if (err == RBT_OK && first != NULL)
        err = rbt_text_to_count("--seed", first, 0, UINT64_MAX - UINT32_MAX, &options->first_seed, error);
    return err;
}

int cli_swarm(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    const char *seeds = NULL, *first = NULL, *replay = NULL, *verbose = NULL;
    const cli_option own[] = {
        {"seeds", "N", "How many seeds to run.", &seeds},
        {"seed", "FIRST", "The first of them. [1]", &first},
        {"replay", "SEED", "Runs this seed alone, and tells what it does.", &replay},
        {"verbose", NULL, "One line per seed.", &verbose},
    };
    cli_arguments arguments = {.own = own, .own_count = sizeof own / sizeof own[0]};
    rbt_swarm_options options = {.first_seed = 1};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    options.verbose = verbose != NULL;
    if (err == RBT_OK)
        err = options_of(seeds, first, replay, &options, &error);
    if (err == RBT_OK)
        err = rbt_swarm_run(&options, cli_write_line, stdout, &error);
    return err == RBT_OK ? 0 : cli_fail(command, &error);
}

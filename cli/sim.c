/* rubato sim: a line of train or compare in the simulator, which is what --runtime sim behind it would say, too. Proved by
 * tests/cli/test_usage.sh. */
#include "cli/cli.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* The simulator is the only runtime there is here; whoever asks for help gets it. */
static rbt_err refuse_runtime(int argc, char **argv, rbt_error *error)
{
    bool found = false;

    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return RBT_OK;
        found = found || strcmp(argv[i], "--runtime") == 0 || strncmp(argv[i], "--runtime=", 10) == 0;
    }
    return !found ? RBT_OK
                  : rbt_fail(error, RBT_E_USAGE,
                             "--runtime makes no sense with rubato sim, which is the simulator; leave it out, or leave "
                             "out sim");
}

int cli_sim(const cli_command *command, int argc, char **argv)
{
    static const cli_command LINES[] = {
        {"sim train", "MODEL --data PATH... [options]", "Trains a model in the simulator.", cli_train},
        {"sim compare", "MODEL --data PATH... --protocols LIST [--grid lr=LIST] [options]",
         "Trains the same model under several protocols in the simulator and shows them side by side.", cli_compare},
    };
    const cli_command *line = NULL;
    rbt_error error = {RBT_OK, ""};

    for (size_t i = 0; i < sizeof LINES / sizeof LINES[0] && argc > 0; i++)
        if (strcmp(argv[0], LINES[i].name + strlen("sim ")) == 0)
            line = &LINES[i];
    if (argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
        cli_help(command, &(cli_arguments){0});
        return 0;
    }
    if (line == NULL) {
        rbt_fail(&error, RBT_E_USAGE,
                 "what is to be simulated? write `sim train MODEL --data PATH` or `sim compare ...`");
        return cli_fail(command, &error);
    }
    if (refuse_runtime(argc, argv, &error) != RBT_OK)
        return cli_fail(line, &error);
    /* behind the model, which stands first if it is there; before what may lack its value */
    int before = argc > 1 && argv[1][0] != '-' ? 1 : 0, count = 0;
    char **all = rbt_alloc((size_t)argc + 2, sizeof *all), runtime[] = "--runtime", sim[] = "sim";

    for (int i = 1; i <= before; i++)
        all[count++] = argv[i];
    all[count++] = runtime;
    all[count++] = sim;
    for (int i = before + 1; i < argc; i++)
        all[count++] = argv[i];
    int code = line->run(line, count, all);
    rbt_free(all);
    return code;
}

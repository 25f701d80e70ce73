/* Arguments of a sub-command; the contract stands in cli.h. */
#include "cli/cli.h"

#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "job/text.h"

#define OPTION_NAME_ROOM 64

/* One option as it stands on the command line. */
typedef struct given {
    char name[OPTION_NAME_ROOM];
    const char *value; /* NULL: not given with it */
    const cli_option *own;
    bool takes_value;
    bool names_file; /* its value may be the name of a file */
} given;

static const cli_option *own_find(const cli_arguments *arguments, const char *name)
{
    for (size_t i = 0; i < arguments->own_count; i++)
        if (strcmp(arguments->own[i].name, name) == 0)
            return &arguments->own[i];
    return NULL;
}

/* What is this option: one of the command's own, or one of a job? The nearest name is looked for among both. */
static rbt_err identify(const cli_arguments *arguments, given *g, rbt_error *error)
{
    rbt_nearest nearest = {.word = g->name};

    g->own = own_find(arguments, g->name);
    if (g->own != NULL) {
        g->takes_value = g->own->syntax != NULL;
        g->names_file = g->takes_value && (strstr(g->own->syntax, "FILE") || strstr(g->own->syntax, "PATH"));
        return RBT_OK;
    }
    for (size_t i = 0; i < arguments->own_count; i++)
        rbt_nearest_offer(&nearest, arguments->own[i].name);
    rbt_nearest_offer(&nearest, "help");
    if (arguments->job != NULL) {
        rbt_err err = rbt_options_takes_value(g->name, &g->takes_value, error);
        g->names_file = err == RBT_OK && rbt_options_names_file(g->name);
        if (err == RBT_OK || rbt_nearest_found(&nearest) == NULL || nearest.distance > 1)
            return err;
    }
    if (rbt_nearest_found(&nearest) != NULL)
        return rbt_fail(error, RBT_E_USAGE, "unknown option '--%s'; did you mean '--%s'?", g->name,
                        rbt_nearest_found(&nearest));
    return rbt_fail(error, RBT_E_USAGE, "unknown option '--%s'; --help lists the options there are", g->name);
}

static bool is_option(const char *argument)
{
    return strncmp(argument, "--", 2) == 0 && argument[2] != '\0';
}

/* Splits argv[*i] into name and value, taking the next argument for the value when it needs one. An option is no value:
 * `--data $FILES --store disk` with nothing in $FILES would read a file called --store. */
static rbt_err take(const cli_arguments *arguments, int argc, char **argv, int *i, given *g, rbt_error *error)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);

    memset(g, 0, sizeof *g);
    if (length >= OPTION_NAME_ROOM)
        return rbt_fail(error, RBT_E_USAGE, "unknown option '--%.60s...'; --help lists the options there are", name);
    memcpy(g->name, name, length);
    g->value = equals != NULL ? equals + 1 : NULL;
    rbt_err err = identify(arguments, g, error);
    if (err != RBT_OK)
        return err;
    if (!g->takes_value && g->value != NULL)
        return rbt_fail(error, RBT_E_USAGE, "--%s takes no value on the command line", g->name);
    if (!g->takes_value)
        g->value = "true";
    if (g->value == NULL && *i + 1 < argc && is_option(argv[*i + 1]))
        return rbt_fail(error, RBT_E_USAGE,
                        g->names_file ? "--%s needs a value (a file of that name: ./%s)"
                                      : "--%s needs a value, and %s is an option",
                        g->name, argv[*i + 1]);
    if (g->value == NULL && *i + 1 < argc)
        g->value = argv[++*i];
    if (g->value == NULL || g->value[0] == '\0')
        return rbt_fail(error, RBT_E_USAGE, "--%s needs a value", g->name);
    return RBT_OK;
}

rbt_err cli_add_path(const char *option, const char *path, char paths[RBT_OPTION_ROOM], rbt_error *error)
{
    size_t used = strlen(paths);

    if (path == NULL || path[0] == '\0')
        return rbt_fail(error, RBT_E_USAGE, "%s needs a value", option);
    if (used + strlen(path) + 2 > RBT_OPTION_ROOM)
        return rbt_fail(error, RBT_E_USAGE,
                        "the paths of %s are longer than %d characters together; give a pattern in quotes, as in "
                        "%s 'part-*.svm'",
                        option, RBT_OPTION_ROOM - 2, option);
    (void)snprintf(paths + used, RBT_OPTION_ROOM - used, used > 0 ? "\n%s" : "%s", path);
    return RBT_OK;
}

/* --data and --valid take the words that follow, too, once the command has all of its own. They are put into `paths`. */
static rbt_err take_more(const cli_arguments *arguments, int argc, char **argv, int *i, given *g, char *paths,
                         rbt_error *error)
{
    const char *option = strcmp(g->name, "data") == 0 ? "--data" : "--valid";
    rbt_err err = cli_add_path(option, g->value, paths, error);

    while (err == RBT_OK && arguments->words_count == arguments->words_room && *i + 1 < argc &&
           (argv[*i + 1][0] != '-' || argv[*i + 1][1] == '\0'))
        err = cli_add_path(option, argv[++*i], paths, error);
    g->value = paths;
    return err;
}

/* The first pass: reads the job file, so that the command line, read afterwards, has the last word. */
static rbt_err read_config(cli_arguments *arguments, int argc, char **argv, rbt_error *error)
{
    given g;

    for (int i = 0; i < argc && arguments->job != NULL; i++) {
        if (!is_option(argv[i]) || strcmp(argv[i], "--help") == 0)
            continue;
        rbt_err err = take(arguments, argc, argv, &i, &g, error);
        if (err == RBT_OK && strcmp(g.name, "config") == 0)
            err = rbt_options_read_file(arguments->job, g.value, error);
        if (err != RBT_OK)
            return err;
    }
    return RBT_OK;
}

static rbt_err parse_one(cli_arguments *arguments, int argc, char **argv, int *i, given *g, rbt_error *error)
{
    if (strcmp(argv[*i], "--help") == 0 || strcmp(argv[*i], "-h") == 0) {
        arguments->help = true;
        return RBT_OK;
    }
    if (!is_option(argv[*i])) {
        if (strcmp(argv[*i], "--") == 0)
            return rbt_fail(error, RBT_E_USAGE, "'--' says nothing here; leave it out");
        if (argv[*i][0] == '-' && argv[*i][1] != '\0')
            return rbt_fail(error, RBT_E_USAGE, "unknown option '%s'; options begin with two dashes", argv[*i]);
        bool takes_data = arguments->job != NULL || own_find(arguments, "data") != NULL;
        if (arguments->words_count == arguments->words_room && takes_data && access(argv[*i], F_OK) == 0)
            return rbt_fail(error, RBT_E_USAGE, "unexpected '%s'; data is given with --data", argv[*i]);
        if (arguments->words_count == arguments->words_room)
            return rbt_fail(error, RBT_E_USAGE, "unexpected '%s'; --help shows what the command takes", argv[*i]);
        arguments->words[arguments->words_count++] = argv[*i];
        return RBT_OK;
    }
    rbt_err err = take(arguments, argc, argv, i, g, error);
    if (err == RBT_OK && (strcmp(g->name, "data") == 0 || (g->own == NULL && strcmp(g->name, "valid") == 0)))
        err = take_more(arguments, argc, argv, i, g, strcmp(g->name, "data") == 0 ? arguments->data : arguments->valid,
                        error);
    if (err == RBT_OK && g->own == NULL)
        err = rbt_options_set(arguments->job, g->name, g->value, error);
    if (err != RBT_OK || g->own == NULL)
        return err;
    *g->own->value = g->value;
    return RBT_OK;
}

/* No output of a job goes over its job file. */
static rbt_err keep_config(const cli_arguments *arguments, rbt_error *error)
{
    const cli_option *config = own_find(arguments, "config");
    const rbt_options *job = arguments->job;
    rbt_err err = RBT_OK;

    if (config == NULL || job == NULL)
        return RBT_OK;
    const char *const outputs[] = {job->out, job->json, job->report};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0] && err == RBT_OK; i++)
        err = cli_keep_apart(*config->value, outputs[i], error);
    return err;
}

rbt_err cli_parse(cli_arguments *arguments, int argc, char **argv, rbt_error *error)
{
    given *seen = rbt_alloc((size_t)argc, sizeof *seen);
    size_t count = 0;
    rbt_err err = RBT_OK;

    for (int i = 0; i < argc; i++) /* whoever asks for help gets it, whatever else is wrong */
        arguments->help = arguments->help || strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
    if (!arguments->help)
        err = read_config(arguments, argc, argv, error);
    for (int i = 0; i < argc && err == RBT_OK && !arguments->help; i++) {
        given g = {0};
        err = parse_one(arguments, argc, argv, &i, &g, error);
        for (size_t k = 0; k < count && err == RBT_OK && g.name[0] != '\0'; k++)
            if (strcmp(seen[k].name, g.name) == 0 && strcmp(g.name, "data") != 0)
                err = rbt_fail(error, RBT_E_USAGE, "--%s is given twice; give it once", g.name);
        seen[count++] = g;
    }
    rbt_free(seen);
    return err == RBT_OK && !arguments->help ? keep_config(arguments, error) : err;
}

void cli_help(const cli_command *command, const cli_arguments *arguments)
{
    printf("rubato %s %s\n\n%s\n", command->name, command->form, command->about);
    if (arguments->own_count > 0)
        printf("\nOptions:\n");
    for (size_t i = 0; i < arguments->own_count; i++)
        rbt_options_help_line(arguments->own[i].name, arguments->own[i].syntax, arguments->own[i].help, cli_write_line,
                              stdout);
    if (arguments->job != NULL) {
        printf("\n");
        rbt_options_help(arguments->without, cli_write_line, stdout);
        printf("\nEvery option of a job may also stand in a job file (--config FILE) as 'option = value'.\n");
    }
}

rbt_err cli_require(const char *name, const char *value, const char *syntax, rbt_error *error)
{
    if (value == NULL)
        return rbt_fail(error, RBT_E_USAGE, "--%s is missing; give --%s %s", name, name, syntax);
    return RBT_OK;
}

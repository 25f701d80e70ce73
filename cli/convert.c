/* rubato convert: data in whatever format, from wherever it may come, written as a cache or as LIBSVM text. */
#include "cli/cli.h"

#include <string.h>

#include "base/error.h"
#include "data/cache.h"
#include "data/data.h"

/* LIBSVM text has no weights, and numbers as labels. */
static rbt_err tell_what_text_loses(const cli_command *command, const rbt_data *data, rbt_error *error)
{
    if (data->weight != NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "the rows have weights, which LIBSVM text has no place for; write a cache (--to cache)");
    for (size_t i = 0; i < data->label_count; i++)
        (void)fprintf(stderr, "rubato %s: label %zu is '%s'\n", command->name, i, data->label_names[i]);
    return RBT_OK;
}

int cli_convert(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    const char *path = NULL, *out = NULL, *to = NULL;
    cli_reading given = {0};
    rbt_read_report report = {0};
    rbt_reading reading;
    const cli_option own[] = {
        {"data", "PATH", "The data: a file, a quoted pattern, or - = standard input.", &path},
        {"out", "FILE", "Where it goes; - = standard output.", &out},
        CLI_READING_OPTIONS(&given),
        {"to", "cache|libsvm", "A cache, which every command loads faster than text, or LIBSVM text. [cache]", &to},
    };
    cli_arguments arguments = {own, sizeof own / sizeof own[0], NULL, NULL, 0, 0, false};
    rbt_data data = {0};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK)
        err = cli_require("data", path, "PATH", &error);
    if (err == RBT_OK)
        err = cli_require("out", out, "FILE", &error);
    bool text = to != NULL && strcmp(to, "libsvm") == 0;
    if (err == RBT_OK && to != NULL && !text && strcmp(to, "cache") != 0)
        err = rbt_fail(&error, RBT_E_USAGE, "--to '%s' is unknown; choose cache or libsvm", to);
    if (err == RBT_OK)
        err = cli_reading_settle(&given, &report, &reading, &error);
    if (err == RBT_OK)
        err = rbt_data_read_as(path, &reading, &data, &error);
    if (err == RBT_OK) {
        cli_reading_note(command, &report);
        if (text)
            err = tell_what_text_loses(command, &data, &error);
    }
    if (err == RBT_OK)
        err = text ? rbt_data_write_libsvm(&data, out, &error) : rbt_cache_write(&data, out, &error);
    rbt_data_deinit(&data);
    return err == RBT_OK ? 0 : cli_fail(command, &error);
}

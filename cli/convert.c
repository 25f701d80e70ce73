/* rubato convert: data in whatever format, from wherever it may come, written as a cache or as text. */
#include "cli/cli.h"

#include <string.h>
#include <sys/stat.h>

#include "data/cache_build.h"
#include "data/origin.h"
#include "data/paths.h"
#include "data/write_rows.h"

/* A model that was trained on the original counts from 0, whatever it is given. */
static void base_note(const cli_command *command, const rbt_data *data, rbt_format format)
{
    if (format == RBT_FORMAT_LIBSVM && rbt_reading_base(&(rbt_reading){.origin = data->origin}) == RBT_BASE_0)
        (void)fprintf(stderr,
                      "rubato %s: features are counted from 0 in the data and from 1 in what is written; give --base 1 "
                      "when a model that was trained on the data reads it\n",
                      command->name);
}

/* How many files those are; 0: several, of which one can be read only once. */
static size_t count_files(const char *path)
{
    struct stat status;
    rbt_paths paths;
    if (rbt_paths_list(path, &paths, NULL) != RBT_OK) /* reading will say why */
        return 1;
    size_t count = paths.count;
    for (size_t i = 0; paths.count > 1 && i < paths.count; i++)
        if (strcmp(paths.at[i], "-") == 0 || stat(paths.at[i], &status) != 0 || !S_ISREG(status.st_mode))
            count = 0;
    rbt_paths_free(&paths);
    return count;
}

/* Is that a file, there or to be made, next to which others can be? */
static bool is_place(const char *out)
{
    struct stat status;
    return strcmp(out, "-") != 0 && (stat(out, &status) != 0 || S_ISREG(status.st_mode));
}

static rbt_err convert(const cli_command *command, const char *path, const rbt_reading *reading, rbt_format format,
                       const char *out, rbt_error *error)
{
    rbt_data data = {0};
    size_t files = format == RBT_FORMAT_CACHE && is_place(out) ? count_files(path) : 0;
    rbt_err err;
    if (files > 0) { /* in bounded memory */
        const rbt_cache_building how = {.reading = reading, .whole = true, .stop = cli_stop_flag};
        err = rbt_cache_build(path, &how, out, error);
        if (err != RBT_E_UNSUPPORTED || files == 1)
            return err;
        *reading->report = (rbt_read_report){0};
    }
    err = rbt_data_read_as(path, reading, &data, error);
    if (err != RBT_OK && format != RBT_FORMAT_CACHE)
        cli_memory_hint(error);
    if (err == RBT_OK)
        err = rbt_data_write(&data, format, &(rbt_writing){.path = out, .stop = cli_stop_flag()}, error);
    if (err == RBT_OK) {
        base_note(command, &data, format);
        if (format == RBT_FORMAT_VW)
            cli_bits_note(command, data.cols);
    }
    rbt_data_deinit(&data);
    return err;
}

int cli_convert(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    const char *path = NULL, *out = NULL, *to = NULL;
    cli_reading given = {0};
    rbt_read_report report = {0};
    rbt_reading reading;
    const cli_option own[] = {
        {"data", "PATH...", "The data: files, patterns, or - = standard input.", &path},
        {"out", "FILE", "Where it goes; - = standard output.", &out},
        CLI_READING_OPTIONS(&given),
        {"to", "FORMAT",
         "cache, which every command loads faster than text, or libsvm, csv, vw, ratings, docword. [as FILE ends, else "
         "cache]",
         &to},
    };
    cli_arguments arguments = {.own = own, .own_count = sizeof own / sizeof own[0]};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    if (err == RBT_OK)
        err = cli_require("data", path, "PATH", &error);
    if (err == RBT_OK)
        err = cli_require("out", out, "FILE", &error);
    if (err == RBT_OK)
        err = cli_keep_data_apart(&(cli_data){path, given.label, 0}, out, &error);
    rbt_format format = RBT_FORMAT_CACHE;
    if (err == RBT_OK)
        err = rbt_format_of_path(out, RBT_FORMAT_CACHE, &format, &error);
    if (err == RBT_OK && to != NULL)
        err = rbt_format_find(to, true, &format, &error);
    if (err == RBT_OK)
        err = rbt_format_check_path(format, out, &error);
    if (err == RBT_OK)
        err = cli_reading_settle(&given, &report, &reading, &error);
    if (err == RBT_OK)
        err = convert(command, path, &reading, format, out, &error);
    if (err != RBT_OK)
        return cli_fail(command, &error);
    cli_reading_note(command, &report);
    return 0;
}

/* Job files: a line per option. The contract stands in options.h, the format in docs/formats.md. Proved by tests/unit/test_options.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/file.h"
#include "job/options.h"

#define FILE_LINES_LIMIT 10000

/* The text without blanks around it; cuts in place. */
static char *trim(char *text)
{
    text += strspn(text, " \t\r\n");
    for (size_t n = strlen(text); n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL; n--)
        text[n - 1] = '\0';
    return text;
}

/* An option that was set, and where. */
typedef struct said {
    char *name;
    size_t line;
} said;

typedef struct job_file {
    rbt_options *options;
    size_t line;
    RBT_ARRAY(said) said;
} job_file;

/* The last word would win, and somebody counts on the first. */
static rbt_err set_once(job_file *file, const char *name, const char *value, rbt_error *error)
{
    for (size_t i = 0; i < file->said.count; i++)
        if (strcmp(file->said.at[i].name, name) == 0)
            return rbt_fail(error, RBT_E_USAGE, "'%s' is given twice, first in line %zu; give it once", name,
                            file->said.at[i].line);
    rbt_err err = rbt_options_set(file->options, name, value, error);
    if (err == RBT_OK)
        rbt_array_push(&file->said, ((said){rbt_strdup(name), file->line}));
    return err;
}

/* One line. A # starts a comment at the beginning of a line or after a blank, so that paths may hold one. */
static rbt_err read_line(job_file *file, char *line, rbt_error *error)
{
    for (char *mark = strchr(line, '#'); mark != NULL; mark = strchr(mark + 1, '#')) {
        if (mark == line || mark[-1] == ' ' || mark[-1] == '\t') {
            *mark = '\0';
            break;
        }
    }
    line = trim(line);
    if (*line == '\0')
        return RBT_OK;
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return rbt_fail(error, RBT_E_USAGE, "'%.60s' is not of the form 'option = value'", line);
    *equals = '\0';
    char *name = trim(line), *value = trim(equals + 1);
    if (strncmp(name, "--", 2) == 0)
        name += 2;
    return set_once(file, name, value, error);
}

rbt_err rbt_options_read_file(rbt_options *options, const char *path, rbt_error *error)
{
    rbt_error inner = {RBT_OK, ""};
    rbt_err err = RBT_OK;
    job_file job = {.options = options};
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return rbt_fail(error, RBT_E_IO, "cannot open job file %s: %s", path, strerror(errno));
    while (err == RBT_OK && getline(&line, &room, file) >= 0) {
        size_t mark = job.line == 0 ? rbt_mark_bytes(line, strlen(line)) : 0;

        if (++job.line > FILE_LINES_LIMIT)
            err = rbt_fail(&inner, RBT_E_LIMIT, "a job file has at most %d lines; is this the right file?",
                           FILE_LINES_LIMIT);
        else
            err = read_line(&job, line + mark, &inner);
    }
    if (err != RBT_OK)
        rbt_fail(error, err, "%s:%zu: %.900s", path, job.line, inner.text);
    else if (ferror(file))
        err = rbt_fail(error, RBT_E_IO, "cannot read job file %s: %s", path, strerror(errno));
    for (size_t i = 0; i < job.said.count; i++)
        rbt_free(job.said.at[i].name);
    rbt_array_free(&job.said);
    free(line);
    fclose(file);
    return err;
}

/* rubato train: one job, from options to a model file, with what it did on the way. */
#include "cli/cli.h"

#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "job/trainee.h"
#include "method/method.h"
#include "report/html.h"

/* "ssp:3/dyn": the protocol in short, as compare writes it. */
static void protocol_name(const rbt_options *options, char *name, size_t room)
{
    rbt_options settled;
    char sync[16] = "", staleness[32] = "", rule[16] = "", value[RBT_OPTION_ROOM];
    const char *option = NULL;

    rbt_options_init(&settled);
    rbt_options_copy(&settled, options);
    (void)rbt_options_check(&settled, NULL); /* cli_job_check has refused what it refuses */
    for (size_t i = 0; rbt_options_at(&settled, i, &option, value, sizeof value); i++) {
        if (strcmp(option, "sync") == 0)
            snprintf(sync, sizeof sync, "%.15s", value);
        else if (strcmp(option, "staleness") == 0)
            snprintf(staleness, sizeof staleness, ":%.30s", value);
        else if (strcmp(option, "rule") == 0)
            snprintf(rule, sizeof rule, "%.15s", value);
    }
    snprintf(name, room, "%s%s%s%s", sync, staleness, rule[0] != '\0' ? "/" : "", rule);
    rbt_options_deinit(&settled);
}

/* Keeps the first error: a job that missed its target and then could not be saved has failed to save. */
static void keep(rbt_err err, const rbt_error *from, rbt_error *to)
{
    if (err != RBT_OK && (to->code == RBT_OK || to->code == RBT_E_TARGET || to->code == RBT_E_INTERRUPTED))
        *to = *from;
}

/* What comes after training: the model file, the page, the summary. A result exists. */
static void finish(const rbt_options *options, const rbt_job *job, const rbt_recorder *recorder, FILE *text,
                   rbt_error *error)
{
    rbt_error late = {RBT_OK, ""};

    if (text != NULL)
        rbt_summary_result(recorder, text);
    if (options->out != NULL)
        keep(rbt_job_save(job, options->out, &late), &late, error);
    if (options->report != NULL)
        keep(rbt_html_write(options->report, recorder, 1, &late), &late, error);
    if (text != NULL && late.code == RBT_OK && (options->out != NULL || options->report != NULL)) {
        fprintf(text, "\n");
        if (options->out != NULL)
            fprintf(text, "model written to %s\n", options->out);
        if (options->report != NULL)
            fprintf(text, "report written to %s\n", options->report);
    }
}

/* Data that has no room in memory may be streamed, if such a job can be. */
static void add_store_hint(const rbt_options *options, rbt_error *error)
{
    rbt_options streamed;

    if (error->code != RBT_E_MEMORY || options->store == RBT_STORE_DISK || rbt_trainee_method(options->model) != NULL ||
        strstr(error->text, "--store disk") != NULL)
        return;
    rbt_options_init(&streamed);
    rbt_options_copy(&streamed, options);
    if (rbt_options_set(&streamed, "store", "disk", NULL) == RBT_OK && rbt_options_check(&streamed, NULL) == RBT_OK)
        (void)rbt_text_add(error->text, sizeof error->text, strlen(error->text), ", or train with --store disk");
    rbt_options_deinit(&streamed);
}

int cli_train_run(const cli_command *command, const rbt_options *options, const rbt_gathering *gathering)
{
    rbt_error error = {RBT_OK, ""}, late = {RBT_OK, ""};
    rbt_job *job = NULL;
    rbt_recorder recorder;
    rbt_jsonlines lines = {0};
    rbt_progress_line line;
    FILE *text = cli_text_stream(options);
    char name[96];

    protocol_name(options, name, sizeof name);
    rbt_recorder_init(&recorder, name);
    cli_listener listener = {.recorder = &recorder, .text = text, .title = "rubato train", .prefix = ""};
    listener.early_end = options->runtime != RBT_RUNTIME_CLUSTER && options->cache == RBT_CACHE_OFF &&
                         options->store == RBT_STORE_MEMORY; /* others have processes to end, files to remove */
    listener.has_folds = options->folds > 0;
    if (text != NULL) {
        rbt_progress_line_init(&line, text, isatty(fileno(text)) != 0);
        listener.line = &line;
    }
    if (options->json != NULL) {
        if (rbt_jsonlines_open(&lines, options->json, &error) != RBT_OK)
            goto deinit_recorder;
        listener.lines = &lines;
    }
    if (cli_job_create(options, &job, &error) != RBT_OK)
        goto close_lines;
    if (gathering != NULL)
        rbt_job_set_gathering(job, gathering);
    (void)cli_job_run(job, &listener, &error);
    if (rbt_job_result(job) == NULL)
        add_store_hint(options, &error);
    if (rbt_job_result(job) != NULL &&
        (error.code == RBT_OK || error.code == RBT_E_TARGET || error.code == RBT_E_INTERRUPTED))
        finish(options, job, &recorder, lines.failed == 0 ? text : NULL, &error);
    if (lines.failed == 0)
        keep(cli_flush(&late), &late, &error);
    rbt_job_destroy(job);
close_lines:
    keep(rbt_jsonlines_close(&lines, &late), &late, &error);
    if (cli_job_release(&late) != RBT_OK && error.code == RBT_OK)
        error = late;
deinit_recorder:
    rbt_recorder_deinit(&recorder);
    return error.code == RBT_OK ? 0 : cli_fail(command, &error);
}

/* The method of a shared object in the model's place, which is the first word; NULL: none. */
static const rbt_method *own_method(int argc, char **argv)
{
    rbt_trainee trainee;

    if (argc < 1 || argv[0][0] == '-' || rbt_trainee_find(argv[0], &trainee, NULL) != RBT_OK || !trainee.is_plugin)
        return NULL;
    return trainee.method;
}

/* An option that is unknown here, and known to the shared object. */
static void explain_own(int argc, char **argv, rbt_error *error)
{
    const rbt_method *method = strncmp(error->text, "unknown option", 14) == 0 ? own_method(argc, argv) : NULL;

    for (int i = 1; method != NULL && i < argc; i++) {
        char name[64];

        snprintf(name, sizeof name, "%.*s", (int)strcspn(argv[i], "="), argv[i]);
        if (strncmp(name, "--", 2) == 0 && rbt_method_option_find(method, name + 2) != NULL) {
            rbt_fail(error, RBT_E_USAGE, "%s is an option of %s; give it as --set %s=VALUE", name, argv[0], name + 2);
            return;
        }
    }
}

rbt_err cli_refuse_two_models(int argc, char **argv, const char *word, rbt_error *error)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--model") == 0 || strncmp(argv[i], "--model=", 8) == 0)
            return rbt_fail(error, RBT_E_USAGE, "which model is to be trained? '%s' and --model both say; give one",
                            word);
    return RBT_OK;
}

rbt_err cli_train_options(const cli_command *command, int argc, char **argv, rbt_options *options, bool *helped,
                          rbt_error *error)
{
    const char *config = NULL, *word = NULL;
    const cli_option own[] = {
        {"config", "FILE", "A job file with options; the command line has the last word.", &config}};
    cli_arguments arguments = {.own = own, .own_count = 1, .job = options, .words = &word, .words_room = 1};
    rbt_err err = cli_parse(&arguments, argc, argv, error);

    *helped = err == RBT_OK && arguments.help;
    if (*helped) {
        const rbt_method *method = own_method(argc, argv);

        cli_help(command, &arguments);
        if (method != NULL && method->options != NULL)
            printf("\nOf %s alone; several with commas between:\n", argv[0]);
        if (method != NULL)
            rbt_options_help_method(method, cli_write_line, stdout);
    }
    if (err != RBT_OK)
        explain_own(argc, argv, error);
    if (err == RBT_OK && word != NULL)
        err = cli_refuse_two_models(argc, argv, word, error);
    if (err == RBT_OK && word != NULL)
        err = rbt_options_set(options, "model", word, error);
    return err;
}

int cli_train(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    rbt_options options;
    bool helped;
    int code = 0;

    rbt_options_init(&options);
    rbt_err err = cli_train_options(command, argc, argv, &options, &helped, &error);
    if (!helped) {
        if (err == RBT_OK && options.runtime != RBT_RUNTIME_CLUSTER)
            err = cli_job_check(&options, &error);
        if (err != RBT_OK)
            code = cli_fail(command, &error);
        else if (options.runtime == RBT_RUNTIME_CLUSTER)
            code = cli_train_standing(command, &options);
        else
            code = cli_train_run(command, &options, NULL);
    }
    rbt_options_deinit(&options);
    return code;
}

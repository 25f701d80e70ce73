/* rubato compare: the same job under several protocols, one after the other, and one table of what came out.
 *
 * With --grid every protocol is tried with every step size and its best run is kept: by time to the target, or by final
 * loss when there is no target. A run that diverges is a row that says so.
 */
#include "cli/cli.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "job/text.h"
#include "report/compare.h"
#include "report/html.h"

#define PROTOCOLS_LIMIT 64

/* A list of words separated by commas; `text` is cut in place. */
typedef struct list {
    char *text;
    const char *at[PROTOCOLS_LIMIT];
    size_t count;
} list;

typedef struct comparison {
    const cli_command *command;
    const rbt_options *options;
    list protocols;
    list grid;          /* step sizes; empty: the one of --lr */
    rbt_recorder *best; /* one per protocol that ran */
    size_t done;
    FILE *text;
    rbt_jsonlines lines;
    bool has_lines;
    rbt_progress_line line;
} comparison;

static rbt_err list_init(list *l, const char *option, const char *text, rbt_error *error)
{
    char *rest = NULL;

    l->text = rbt_strdup(text);
    for (char *word = strtok_r(l->text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (l->count == PROTOCOLS_LIMIT)
            return rbt_fail(error, RBT_E_USAGE, "--%s has more than %d entries", option, PROTOCOLS_LIMIT);
        l->at[l->count++] = word;
    }
    if (l->count == 0)
        return rbt_fail(error, RBT_E_USAGE, "--%s is empty; give a list separated by commas", option);
    return RBT_OK;
}

/* The options of one run. */
static rbt_err run_options(const comparison *c, size_t protocol, size_t step, rbt_options *options, rbt_error *error)
{
    rbt_options_copy(options, c->options);
    rbt_err err = rbt_options_set_protocol(options, c->protocols.at[protocol], error);

    if (err == RBT_OK && c->grid.count > 0)
        err = rbt_options_set(options, "lr", c->grid.at[step], error);
    return err;
}

static size_t steps(const comparison *c)
{
    return c->grid.count > 0 ? c->grid.count : 1;
}

/* Refuses what none of the protocols takes. */
static rbt_err check_unused(const comparison *c, rbt_error *error)
{
    rbt_options *runs = rbt_alloc(c->protocols.count, sizeof *runs);
    rbt_err err = RBT_OK;

    for (size_t p = 0; p < c->protocols.count; p++) {
        rbt_options_init(&runs[p]);
        rbt_options_copy(&runs[p], c->options);
        if (err == RBT_OK)
            err = rbt_options_set_protocol(&runs[p], c->protocols.at[p], error);
    }
    if (err == RBT_OK)
        err = rbt_options_check_protocols(c->options, runs, c->protocols.count, error);
    for (size_t p = 0; p < c->protocols.count; p++)
        rbt_options_deinit(&runs[p]);
    rbt_free(runs);
    return err;
}

/* Refuses whatever any of the runs would refuse, before the first one starts. */
static rbt_err check_all(const comparison *c, rbt_error *error)
{
    rbt_err err = RBT_OK;

    if (c->options->out != NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "--out makes no sense here: compare trains several models and keeps none; use "
                        "rubato train with the protocol you choose");
    if (c->options->runtime == RBT_RUNTIME_CLUSTER)
        return rbt_fail(error, RBT_E_USAGE,
                        "--runtime cluster makes no sense here: compare runs on one machine or in the simulator; give "
                        "--runtime local or --runtime sim");
    if (c->grid.count > 0 && c->options->lr > 0)
        return rbt_fail(error, RBT_E_USAGE, "--lr and --grid both say the step size; give one of them");
    err = check_unused(c, error);
    for (size_t p = 0; p < c->protocols.count && err == RBT_OK; p++) {
        for (size_t s = 0; s < steps(c) && err == RBT_OK; s++) {
            rbt_options options;
            rbt_options_init(&options);
            err = run_options(c, p, s, &options, error);
            if (err == RBT_OK)
                err = cli_job_check(&options, error);
            rbt_options_deinit(&options);
        }
    }
    return err;
}

static void write_start(comparison *c)
{
    rbt_json *json = &c->lines.json;
    rbt_recorder described;
    char value[RBT_OPTION_ROOM];
    const char *name = NULL;

    rbt_recorder_init(&described, "");
    for (size_t i = 0; rbt_options_at(c->options, i, &name, value, sizeof value); i++)
        if (strcmp(name, "sync") != 0 && strcmp(name, "staleness") != 0 && strcmp(name, "rule") != 0)
            rbt_recorder_add_setting(&described, name, value);
    rbt_json_object(json, NULL);
    rbt_json_text(json, "event", "start");
    rbt_json_text(json, "version", rbt_version());
    rbt_json_array(json, "protocols");
    for (size_t i = 0; i < c->protocols.count; i++)
        rbt_json_text(json, NULL, c->protocols.at[i]);
    rbt_json_end(json);
    rbt_json_array(json, "grid");
    for (size_t i = 0; i < c->grid.count; i++)
        rbt_json_guess(json, NULL, c->grid.at[i]);
    rbt_json_end(json);
    rbt_jsonlines_settings(json, &described);
    rbt_json_end(json);
    rbt_jsonlines_flush(&c->lines);
    rbt_recorder_deinit(&described);
}

static void write_result(comparison *c, const rbt_recorder *run)
{
    rbt_json *json = &c->lines.json;

    rbt_json_object(json, NULL);
    rbt_json_text(json, "event", "result");
    rbt_json_text(json, "protocol", run->name);
    rbt_json_guess(json, "lr", rbt_recorder_setting(run, "lr", ""));
    rbt_json_text(json, "state", rbt_compare_state(run));
    if (run->error.code != RBT_OK)
        rbt_json_text(json, "reason", run->error.text);
    if (run->has_result)
        rbt_jsonlines_result(json, run);
    rbt_json_end(json);
    rbt_jsonlines_flush(&c->lines);
}

static void say_result(comparison *c, const rbt_recorder *run, size_t number, size_t of)
{
    char seconds[RBT_CELL_ROOM], loss[RBT_REAL_ROOM];

    if (c->text == NULL)
        return;
    fprintf(c->text, "[%zu/%zu] %-14s lr %-8s %s", number, of, run->name, rbt_recorder_setting(run, "lr", "-"),
            rbt_compare_state(run));
    if (run->has_result && run->error.code != RBT_E_DIVERGED) {
        if (!isnan(run->result.loss))
            fprintf(c->text, ", loss %s", rbt_text_from_loss(run->result.loss, loss));
        fprintf(c->text, " after %s and %llu updates", rbt_show_seconds(seconds, run->result.seconds),
                (unsigned long long)run->result.updates);
    }
    if (run->error.code == RBT_E_DIVERGED)
        fprintf(c->text, ": %s", run->error.text);
    fprintf(c->text, "\n");
    fflush(c->text);
}

/* Is there something to tell of a run that ended so? */
static bool is_answer(rbt_err err)
{
    return err == RBT_OK || err == RBT_E_TARGET || err == RBT_E_DIVERGED || err == RBT_E_INTERRUPTED;
}

/* The run that notes are of. */
typedef struct noting {
    comparison *c;
    size_t protocol, step;
    const char *prefix;
} noting;

/* In a terminal the progress line has shown it. */
static void on_note(void *context, const char *text)
{
    const noting *n = context;
    rbt_json *json = &n->c->lines.json;

    if (n->c->text != NULL && !n->c->line.redraw) {
        fprintf(n->c->text, "%snote: %s\n", n->prefix, text);
        fflush(n->c->text);
    }
    if (!n->c->has_lines)
        return;
    rbt_json_object(json, NULL);
    rbt_json_text(json, "event", "note");
    rbt_json_text(json, "protocol", n->c->protocols.at[n->protocol]);
    if (n->c->grid.count > 0)
        rbt_json_guess(json, "lr", n->c->grid.at[n->step]);
    rbt_json_text(json, "note", text);
    rbt_json_end(json);
    rbt_jsonlines_flush(&n->c->lines);
}

/* One run. Diverged and target missed are answers; anything else ends the comparison. */
static rbt_err run_one(comparison *c, size_t protocol, size_t step, rbt_recorder *run, rbt_error *error)
{
    size_t number = protocol * steps(c) + step + 1, of = c->protocols.count * steps(c);
    rbt_options options;
    rbt_job *job = NULL;
    char prefix[128];

    rbt_options_init(&options);
    rbt_err err = run_options(c, protocol, step, &options, error);
    if (err == RBT_OK)
        err = cli_job_create(&options, &job, error);
    if (err != RBT_OK)
        goto deinit_options;
    snprintf(prefix, sizeof prefix, "[%zu/%zu] %.40s ", number, of, c->protocols.at[protocol]);
    noting notes = {c, protocol, step, prefix};
    cli_listener listener = {.recorder = run, .prefix = prefix, .note = on_note, .context = &notes};
    if (c->text != NULL && c->line.redraw) /* in a log the line per run is enough, and its notes */
        listener.line = &c->line;
    err = cli_job_run(job, &listener, error);
    if (cli_job_interrupted_ns() != 0 && is_answer(err)) { /* whatever this run has come to: no more are wanted */
        err = rbt_fail(error, RBT_E_INTERRUPTED, "interrupted in run %zu of %zu; the table has what there is so far",
                       number, of);
        run->error = *error;
    }
    if (!run->has_result && rbt_job_result(job) != NULL)
        rbt_recorder_set_result(run, rbt_job_result(job));
    if (is_answer(err)) {
        say_result(c, run, number, of);
        if (c->has_lines)
            write_result(c, run);
        if (c->lines.failed != 0) /* nobody will read about the others; compare() tells why */
            err = RBT_E_INTERRUPTED;
    }
    if (err == RBT_E_TARGET || err == RBT_E_DIVERGED)
        err = RBT_OK;
    rbt_job_destroy(job);
deinit_options:
    rbt_options_deinit(&options);
    return err;
}

static rbt_err run_all(comparison *c, rbt_error *error)
{
    rbt_err err = RBT_OK;

    for (size_t p = 0; p < c->protocols.count && err == RBT_OK; p++) {
        for (size_t s = 0; s < steps(c) && err == RBT_OK; s++) {
            rbt_recorder run;
            rbt_recorder_init(&run, c->protocols.at[p]);
            err = run_one(c, p, s, &run, error);
            bool first = c->done == p, worth = err == RBT_OK || (err == RBT_E_INTERRUPTED && first);
            if (worth && (first || rbt_compare_better(&run, &c->best[p]))) {
                if (!first)
                    rbt_recorder_deinit(&c->best[p]);
                c->best[p] = run;
                c->done = p + 1;
            } else {
                rbt_recorder_deinit(&run);
            }
        }
    }
    return err;
}

/* The table, the last JSON line and the page: of what was run, also when it was interrupted. */
static rbt_err conclude(comparison *c, rbt_error *error)
{
    rbt_grid grid;

    if (c->text != NULL) {
        rbt_compare_grid(c->best, c->done, &grid);
        fprintf(c->text, "\n");
        rbt_grid_print(&grid, "", c->text);
        fflush(c->text);
        rbt_grid_deinit(&grid);
    }
    if (c->has_lines) {
        rbt_json_object(&c->lines.json, NULL);
        rbt_json_text(&c->lines.json, "event", "done");
        rbt_compare_json(c->best, c->done, &c->lines.json, "table");
        rbt_json_end(&c->lines.json);
        rbt_jsonlines_flush(&c->lines);
    }
    if (c->options->report != NULL) {
        rbt_err err = rbt_html_write(c->options->report, c->best, c->done, error);
        if (err != RBT_OK)
            return err;
        if (c->text != NULL)
            fprintf(c->text, "\nreport written to %s\n", c->options->report);
    }
    return cli_flush(error);
}

/* With a target, somebody must have reached it. */
static rbt_err judge(const comparison *c, rbt_error *error)
{
    char value[RBT_CELL_ROOM];

    if (!c->options->has_target)
        return RBT_OK;
    for (size_t i = 0; i < c->done; i++)
        if (c->best[i].has_result && c->best[i].result.reached)
            return RBT_OK;
    return rbt_fail(error, RBT_E_TARGET,
                    "no protocol reached the target loss %s; give more --clocks, or other step sizes "
                    "with --grid",
                    rbt_show_real(value, c->options->target_loss));
}

static rbt_err compare(comparison *c, rbt_error *error)
{
    rbt_err err = check_all(c, error);

    if (err != RBT_OK)
        return err;
    c->best = rbt_alloc(c->protocols.count, sizeof *c->best);
    c->text = cli_text_stream(c->options);
    if (c->text != NULL)
        rbt_progress_line_init(&c->line, c->text, isatty(fileno(c->text)) != 0);
    if (c->options->json != NULL) {
        err = rbt_jsonlines_open(&c->lines, c->options->json, error);
        if (err != RBT_OK)
            return err;
        c->has_lines = true;
        write_start(c);
    }
    err = run_all(c, error);
    if (c->done > 0 && c->lines.failed == 0 && (err == RBT_OK || err == RBT_E_INTERRUPTED)) {
        rbt_error late = {RBT_OK, ""};
        rbt_err end = conclude(c, &late);
        if (end == RBT_OK && err == RBT_OK)
            end = judge(c, &late);
        if (end != RBT_OK) {
            err = end;
            *error = late;
        }
    }
    if (c->has_lines) {
        rbt_error late = {RBT_OK, ""};
        if (rbt_jsonlines_close(&c->lines, &late) != RBT_OK &&
            (err == RBT_OK || err == RBT_E_TARGET || err == RBT_E_INTERRUPTED)) {
            err = late.code;
            *error = late;
        }
    }
    return err == RBT_OK ? cli_job_release(error) : err;
}

static rbt_err lists_init(comparison *c, const char *protocols, const char *grid, rbt_error *error)
{
    rbt_err err = cli_require("protocols", protocols, "LIST, e.g. bsp,ssp:3/sum,ssp:3/dyn", error);

    if (err == RBT_OK)
        err = list_init(&c->protocols, "protocols", protocols, error);
    if (err == RBT_OK && grid != NULL) {
        if (strncmp(grid, "lr=", 3) != 0)
            return rbt_fail(error, RBT_E_USAGE, "--grid '%s' is unknown; give step sizes like lr=0.01,0.1,1", grid);
        err = list_init(&c->grid, "grid", grid + 3, error);
    }
    return err;
}

int cli_compare(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    rbt_options options;
    const char *config = NULL, *protocols = NULL, *grid = NULL, *word = NULL;
    const cli_option own[] = {
        {"protocols", "LIST",
         "What to compare: bsp,asp/sum,ssp:3/con,ssp:10/dyn; peers: "
         "hop:ring-based/max-gap=5/backup=1,adpsgd:ring,allreduce.",
         &protocols},
        {"grid", "lr=LIST", "Step sizes to try with each protocol; the best is kept.", &grid},
        {"config", "FILE", "A job file with options; the command line has the last word.", &config},
    };
    static const char *const WITHOUT[] = {"out", "sync", NULL};
    cli_arguments arguments = {.own = own,
                               .own_count = sizeof own / sizeof own[0],
                               .job = &options,
                               .without = WITHOUT,
                               .words = &word,
                               .words_room = 1};
    comparison c = {.command = command, .options = &options};

    rbt_options_init(&options);
    rbt_err err = cli_parse(&arguments, argc, argv, &error);
    if (err == RBT_OK && arguments.help)
        cli_help(command, &arguments);
    if (err == RBT_OK && word != NULL)
        err = cli_refuse_two_models(argc, argv, word, &error);
    if (err == RBT_OK && word != NULL)
        err = rbt_options_set(&options, "model", word, &error);
    if (err == RBT_OK && !arguments.help)
        err = lists_init(&c, protocols, grid, &error);
    if (err == RBT_OK && !arguments.help)
        err = compare(&c, &error);
    for (size_t i = 0; i < c.done; i++)
        rbt_recorder_deinit(&c.best[i]);
    rbt_free(c.best);
    rbt_free(c.protocols.text);
    rbt_free(c.grid.text);
    rbt_options_deinit(&options);
    return err == RBT_OK ? 0 : cli_fail(command, &error);
}

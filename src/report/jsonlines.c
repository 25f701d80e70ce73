/* The --json stream; the contract stands in jsonlines.h. */
#include "report/jsonlines.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "job/options.h"

rbt_err rbt_jsonlines_open(rbt_jsonlines *lines, const char *path, rbt_error *error)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");

    if (file == NULL)
        return rbt_fail(error, RBT_E_IO, "cannot write --json %s: %s", path, strerror(errno));
    memset(lines, 0, sizeof *lines);
    lines->json.file = file;
    lines->path = rbt_strdup(path);
    return RBT_OK;
}

void rbt_jsonlines_flush(rbt_jsonlines *lines)
{
    errno = 0;
    if ((fflush(lines->json.file) != 0 || ferror(lines->json.file)) && lines->failed == 0)
        lines->failed = errno != 0 ? errno : EIO;
}

rbt_err rbt_jsonlines_close(rbt_jsonlines *lines, rbt_error *error)
{
    bool is_standard = lines->json.file == stdout;
    rbt_err err = RBT_OK;

    if (lines->json.file == NULL)
        return RBT_OK;
    rbt_jsonlines_flush(lines);
    if (!is_standard && fclose(lines->json.file) != 0 && lines->failed == 0)
        lines->failed = errno;
    if (lines->failed != 0)
        err = rbt_fail(error, is_standard && lines->failed == EPIPE ? RBT_E_PIPE : RBT_E_IO,
                       "cannot write --json %s: %s; the file is incomplete", lines->path, strerror(lines->failed));
    rbt_free(lines->path);
    memset(lines, 0, sizeof *lines);
    return err;
}

/* Where output goes is no part of the job. */
static bool is_output(const char *name)
{
    static const char *const NAMES[] = {"out", "json", "report", "quiet"};

    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (strcmp(NAMES[i], name) == 0)
            return true;
    return false;
}

void rbt_jsonlines_settings(rbt_json *json, const rbt_recorder *run)
{
    for (size_t i = 0; i < run->settings.count; i++) {
        const rbt_setting *s = &run->settings.at[i];
        if (is_output(s->name))
            continue;
        if (rbt_options_is_text(s->name)) /* a file may be called 7 */
            rbt_json_text(json, s->name, s->value);
        else
            rbt_json_guess(json, s->name, s->value);
    }
}

static void write_progress(rbt_json *json, const rbt_progress *p)
{
    rbt_json_count(json, "clock_min", p->clock_min);
    rbt_json_count(json, "clock_max", p->clock_max);
    rbt_json_real(json, "seconds", p->seconds);
    rbt_json_real(json, "loss", p->loss);
    rbt_json_count(json, "updates", p->updates);
    rbt_json_count(json, "samples", p->samples);
    rbt_json_real(json, "samples_per_second", p->samples_per_second);
    rbt_json_real(json, "wait_fraction", p->wait_fraction);
    rbt_json_real(json, "staleness_mean", p->staleness_mean);
    rbt_json_count(json, "bytes_sent", p->bytes_sent);
}

static void write_workers(rbt_json *json, const rbt_result *r)
{
    rbt_json_array(json, "workers");
    for (size_t i = 0; i < r->workers; i++) {
        const rbt_worker_report *w = &r->worker[i];
        rbt_json_object(json, NULL);
        rbt_json_count(json, "worker", i);
        rbt_json_real(json, "compute", w->compute_seconds);
        rbt_json_real(json, "wait", w->wait_seconds);
        rbt_json_real(json, "communication", w->communication_seconds);
        rbt_json_real(json, "slowed", w->slowed_seconds);
        rbt_json_count(json, "rows", w->rows);
        rbt_json_count(json, "nonzeros", w->nonzeros);
        if (w->classes > 0)
            rbt_json_array(json, "labels");
        for (size_t k = 0; k < w->classes; k++)
            rbt_json_count(json, NULL, w->labels[k]);
        if (w->classes > 0)
            rbt_json_end(json);
        rbt_json_count(json, "clocks", w->clocks);
        rbt_json_count(json, "samples", w->samples);
        rbt_json_end(json);
    }
    rbt_json_end(json);
}

static void write_histogram(rbt_json *json, const rbt_result *r)
{
    size_t bins = RBT_STALENESS_BINS;

    while (bins > 0 && r->staleness_histogram[bins - 1] == 0)
        bins--;
    rbt_json_array(json, "staleness_histogram");
    for (size_t i = 0; i < bins; i++)
        rbt_json_count(json, NULL, r->staleness_histogram[i]);
    rbt_json_end(json);
}

void rbt_jsonlines_result(rbt_json *json, const rbt_recorder *run)
{
    const rbt_result *r = &run->result;
    bool sim = strcmp(rbt_recorder_setting(run, "runtime", ""), "sim") == 0;

    rbt_json_real(json, "loss", r->loss);
    rbt_json_real(json, "seconds", r->seconds);
    if (sim)
        rbt_json_null(json, "load_seconds");
    else
        rbt_json_real(json, "load_seconds", r->load_seconds);
    rbt_json_count(json, "clocks", r->clocks);
    rbt_json_count(json, "updates", r->updates);
    rbt_json_real(json, "seconds_per_update", r->seconds_per_update);
    rbt_json_count(json, "bytes_sent", r->bytes_sent);
    rbt_json_count(json, "bytes_plain", r->bytes_plain);
    rbt_json_count(json, "messages", r->messages);
    rbt_json_real(json, "wait_fraction", r->wait_fraction);
    rbt_json_count(json, "max_gap", r->max_gap);
    write_histogram(json, r);
    rbt_json_count(json, "peak_versions", r->peak_versions);
    rbt_json_count(json, "version_bytes", r->version_bytes);
    rbt_json_count(json, "parameter_bytes", r->parameter_bytes);
    rbt_json_real(json, "samples_per_second", r->samples_per_second);
    rbt_json_real(json, "minobj", r->minobj);
    rbt_json_real(json, "varobj", r->varobj);
    if (r->has_target)
        rbt_json_bool(json, "reached", r->reached);
    else
        rbt_json_null(json, "reached");
    rbt_json_bool(json, "interrupted", r->interrupted);
    if (r->ended != NULL)
        rbt_json_text(json, "ended", r->ended);
    if (r->folds > 0) {
        rbt_json_count(json, "folds", r->folds);
        rbt_json_real(json, "fold_loss", r->fold_loss);
        rbt_json_real(json, "fold_loss_deviation", r->fold_loss_deviation);
        rbt_json_real(json, "fold_score", r->fold_score);
        rbt_json_real(json, "fold_score_deviation", r->fold_score_deviation);
    }
    if (r->has_peers) {
        rbt_json_real(json, "spread", r->spread);
        rbt_json_count(json, "skipped", r->skipped);
    }
    rbt_json_hex(json, "param_hash", r->param_hash);
    if (r->has_table_sum)
        rbt_json_integer(json, "table_sum", r->table_sum);
    rbt_json_count(json, "seed", r->seed);
    rbt_json_count(json, "events", r->events);
    rbt_json_count(json, "threads", r->threads);
    rbt_json_count(json, "servers", r->servers);
    write_workers(json, r);
}

void rbt_jsonlines_event(rbt_jsonlines *lines, const rbt_recorder *run, const rbt_event *event)
{
    static const char *const NAMES[] = {"start", "clock", "eval", "note", "done"};
    rbt_json *json = &lines->json;

    rbt_json_object(json, NULL);
    rbt_json_text(json, "event", NAMES[event->kind]);
    switch (event->kind) {
    case RBT_EVENT_START:
        rbt_json_text(json, "version", rbt_version());
        rbt_jsonlines_settings(json, run);
        break;
    case RBT_EVENT_CLOCK:
        write_progress(json, event->progress);
        break;
    case RBT_EVENT_EVAL:
        rbt_json_count(json, "clock", event->eval_clock);
        rbt_json_real(json, "seconds", event->eval_seconds);
        for (size_t i = 0; i < event->eval_figures; i++)
            rbt_json_real(json, event->eval_figure[i].name, event->eval_figure[i].value);
        if (event->eval_figures > 0)
            break;
        rbt_json_real(json, "loss", event->eval_loss);
        if (isnan(event->eval_accuracy))
            rbt_json_real(json, "rmse", event->eval_rmse);
        else
            rbt_json_real(json, "accuracy", event->eval_accuracy);
        break;
    case RBT_EVENT_NOTE:
        rbt_json_text(json, "note", event->note);
        break;
    case RBT_EVENT_DONE:
        rbt_jsonlines_result(json, run);
        break;
    }
    rbt_json_end(json);
    rbt_jsonlines_flush(lines);
}

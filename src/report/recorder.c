/* What a run said; the contract stands in recorder.h. */
#include "report/recorder.h"

#include <string.h>

void rbt_recorder_init(rbt_recorder *recorder, const char *name)
{
    memset(recorder, 0, sizeof *recorder);
    recorder->name = rbt_strdup(name);
}

void rbt_recorder_deinit(rbt_recorder *recorder)
{
    for (size_t i = 0; i < recorder->settings.count; i++) {
        rbt_free(recorder->settings.at[i].name);
        rbt_free(recorder->settings.at[i].value);
    }
    rbt_array_free(&recorder->settings);
    rbt_array_free(&recorder->points);
    rbt_array_free(&recorder->evaluations);
    rbt_free(recorder->workers);
    rbt_free(recorder->name);
    memset(recorder, 0, sizeof *recorder);
}

void rbt_recorder_add_setting(rbt_recorder *recorder, const char *name, const char *value)
{
    rbt_setting setting = {rbt_strdup(name), rbt_strdup(value)};

    rbt_array_push(&recorder->settings, setting);
}

void rbt_recorder_set_result(rbt_recorder *recorder, const rbt_result *result)
{
    rbt_free(recorder->workers);
    recorder->workers = rbt_alloc(result->workers, sizeof *recorder->workers);
    for (size_t i = 0; i < result->workers; i++)
        recorder->workers[i] = result->worker[i];
    recorder->result = *result;
    recorder->result.worker = recorder->workers;
    recorder->has_result = true;
}

const rbt_figure *rbt_figure_shown(const rbt_figure *figures, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(figures[i].name, "loss") != 0)
            return &figures[i];
    return n > 0 ? figures : NULL;
}

void rbt_recorder_event(rbt_recorder *recorder, const rbt_event *event)
{
    const char *name = NULL, *value = NULL;
    rbt_evaluation evaluation = {.clock = event->eval_clock,
                                 .seconds = event->eval_seconds,
                                 .loss = event->eval_loss,
                                 .accuracy = event->eval_accuracy,
                                 .rmse = event->eval_rmse};

    while (evaluation.figures < event->eval_figures) {
        evaluation.figure[evaluation.figures] = event->eval_figure[evaluation.figures];
        evaluation.figures++;
    }
    switch (event->kind) {
    case RBT_EVENT_START:
        for (size_t i = 0; rbt_job_option(event->job, i, &name, &value); i++)
            rbt_recorder_add_setting(recorder, name, value);
        break;
    case RBT_EVENT_CLOCK:
        rbt_array_push(&recorder->points, *event->progress);
        break;
    case RBT_EVENT_EVAL:
        rbt_array_push(&recorder->evaluations, evaluation);
        break;
    case RBT_EVENT_NOTE:
        break;
    case RBT_EVENT_DONE:
        rbt_recorder_set_result(recorder, event->result);
        break;
    }
}

const char *rbt_recorder_setting(const rbt_recorder *recorder, const char *name, const char *otherwise)
{
    for (size_t i = 0; i < recorder->settings.count; i++)
        if (strcmp(recorder->settings.at[i].name, name) == 0)
            return recorder->settings.at[i].value;
    return otherwise;
}

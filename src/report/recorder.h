/* What a run said: its settings, its progress, its evaluations and its result, kept for tables and curves.
 *
 * A recorder listens to the events of one job (rbt_recorder_event) and copies all it needs, so that it outlives the
 * job. Summary, JSON, comparison and HTML page are made from recorders alone. Proved by tests/unit/test_report.c.
 */
#ifndef RBT_REPORT_RECORDER_H
#define RBT_REPORT_RECORDER_H

#include "base/mem.h"
#include "rubato.h"

typedef struct rbt_setting {
    char *name;
    char *value;
} rbt_setting;

typedef struct rbt_evaluation {
    uint64_t clock;
    double seconds;
    double loss;
    double accuracy; /* NaN: the model predicts numbers, see rmse */
    double rmse;
    size_t figures; /* of a method: all it found, in the place of these three */
    rbt_figure figure[RBT_FIGURES_MOST];
} rbt_evaluation;

/* The one to show when there is room for one: the first that is not the loss, if there is such a one. NULL: none at all. */
const rbt_figure *rbt_figure_shown(const rbt_figure *figures, size_t n);

typedef struct rbt_recorder {
    char *name;                      /* what tables and legends call the run */
    RBT_ARRAY(rbt_setting) settings; /* the effective options */
    RBT_ARRAY(rbt_progress) points;
    RBT_ARRAY(rbt_evaluation) evaluations;
    bool has_result;
    rbt_result result; /* `worker` points to `workers` */
    rbt_worker_report *workers;
    rbt_error error; /* how the run ended: RBT_OK, target not reached, interrupted, diverged */
} rbt_recorder;

void rbt_recorder_init(rbt_recorder *recorder, const char *name);
void rbt_recorder_deinit(rbt_recorder *recorder);
void rbt_recorder_event(rbt_recorder *recorder, const rbt_event *event);
void rbt_recorder_add_setting(rbt_recorder *recorder, const char *name, const char *value);
void rbt_recorder_set_result(rbt_recorder *recorder, const rbt_result *result);

/* The effective value of an option, or `otherwise` when the job has none. */
const char *rbt_recorder_setting(const rbt_recorder *recorder, const char *name, const char *otherwise);

#endif

/* How good is a trained model on data.
 *
 * Called by the job (validation) and by the command eval. Rows come in blocks, so data need not be in memory at once;
 * only AUC keeps something per row (16 bytes: its decision value and weight). Weights of rows count everywhere. Always
 * holds: a metric that does not fit the model, or is not defined for the data (AUC of one class), is NaN. Proved by
 * tests/unit/test_metrics.c, against the definitions.
 */
#ifndef RBT_MODEL_METRICS_H
#define RBT_MODEL_METRICS_H

#include "rubato.h"

typedef enum rbt_metric {
    RBT_METRIC_LOSS,     /* the model's own, no regularisation */
    RBT_METRIC_LOGLOSS,  /* minus the logarithm of the probability of the true class */
    RBT_METRIC_ACCURACY, /* share of the rows whose label is predicted */
    RBT_METRIC_AUC,      /* that a row of "yes" has a larger decision value than one of "no"; ties count half */
    RBT_METRIC_F1,       /* these three of "yes"; with more classes, the mean of each class's own */
    RBT_METRIC_PRECISION,
    RBT_METRIC_RECALL,
    RBT_METRIC_RMSE,
    RBT_METRIC_MAE,
    RBT_METRIC_HUBER, /* with the model's delta; 1 when it has none */
    RBT_METRIC_R2,    /* 1 is perfect, 0 as good as the labels' mean */
    RBT_METRIC_COUNT
} rbt_metric;

#define RBT_METRIC_BIT(metric) (1U << (metric))
#define RBT_METRICS_ALL        (RBT_METRIC_BIT(RBT_METRIC_COUNT) - 1)

/* Larger numbers of classes have no confusion matrix. */
#define RBT_CONFUSION_CLASSES_MAX 256

/* Which of value[] mean something is rbt_metric_fit's answer; the rest is NaN. */
typedef struct rbt_metrics {
    size_t rows;
    double weight; /* of all rows */
    double value[RBT_METRIC_COUNT];
    size_t classes;
    double *confusion; /* weight of rows of class t predicted as p: [t * classes + p]; NULL: not worked out */

    /* Sums on the way, the caller's business no more than how they are kept. */
    struct rbt_metrics_sums *sums;
} rbt_metrics;

/* From which error on its Huber loss is linear. */
double rbt_metrics_delta(const rbt_shape *shape);

const char *rbt_metric_name(rbt_metric metric);
bool rbt_metric_find(const char *name, rbt_metric *metric);

/* Does the metric make sense for this model? If not, the error says why not and which do. */
rbt_err rbt_metric_fit(rbt_metric metric, const rbt_model *model, const rbt_shape *shape, rbt_error *error);

/* Measures block after block of data that was made to fit the model's shape (rbt_shape_apply). Features the model was
 * not trained on are ignored. `want` are bits of metrics; those that do not fit stay NaN. */
void rbt_metrics_init(rbt_metrics *metrics, const rbt_trained *trained, unsigned want);
rbt_err rbt_metrics_add(rbt_metrics *metrics, const rbt_trained *trained, const rbt_data *data, rbt_error *error);
rbt_err rbt_metrics_finish(rbt_metrics *metrics, rbt_error *error); /* refuses no rows at all */
void rbt_metrics_deinit(rbt_metrics *metrics);

/* All of that for data in memory; to be deinitialised when it succeeds. */
rbt_err rbt_metrics_compute(const rbt_trained *trained, const rbt_data *data, unsigned want, rbt_metrics *metrics,
                            rbt_error *error);

#endif

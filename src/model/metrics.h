/* How good is a trained model on data: accuracy and mean loss.
 *
 * Called by the job (validation) and by the commands eval and info. Proved by tests/unit/test_metrics.c. */
#ifndef RBT_MODEL_METRICS_H
#define RBT_MODEL_METRICS_H

#include "rubato.h"

typedef struct rbt_metrics {
    size_t rows;
    double accuracy; /* share of the rows whose label is predicted */
    double loss;     /* mean over the rows, no regularisation */
} rbt_metrics;

/* The sum of the model's losses over all rows; data that streams from the disk is given back as it has been visited. */
double rbt_model_loss(const rbt_model *model, const rbt_shape *shape, const rbt_data *data, const float *w);

/* Measures the model on data that was made to fit its shape (rbt_shape_apply). Features the model was not trained on are
 * ignored. */
rbt_err rbt_metrics_compute(const rbt_trained *trained, const rbt_data *data, rbt_metrics *metrics, rbt_error *error);

#endif

/* How good is a trained model on data. Contract in metrics.h; proved by tests/unit/test_metrics.c. */
#include "model/metrics.h"

#include "base/error.h"

rbt_err rbt_metrics_check(const rbt_shape *shape, const rbt_data *data, rbt_error *error)
{
    if (data->rows == 0)
        return rbt_fail(error, RBT_E_DATA, "the data has no rows to measure the model on");
    for (size_t row = 0; row < data->rows; row++) {
        double label = (double)data->label[row];
        if (label != shape->labels[0] && label != shape->labels[1])
            return rbt_fail(
                error, RBT_E_DATA,
                "row %zu has the label %g, but the model was trained on the labels %g and %g; use data with "
                "the same labels",
                row + 1, label, shape->labels[0], shape->labels[1]);
    }
    return RBT_OK;
}

rbt_err rbt_metrics_compute(const rbt_trained *trained, const rbt_data *data, rbt_metrics *metrics, rbt_error *error)
{
    rbt_err err = rbt_metrics_check(&trained->shape, data, error);
    if (err != RBT_OK)
        return err;
    size_t right = 0;
    for (size_t row = 0; row < data->rows; row++) {
        double score = trained->model->score(&trained->shape, data, row, trained->w);
        right += trained->model->label(&trained->shape, score) == (double)data->label[row];
    }
    *metrics = (rbt_metrics){
        .rows = data->rows,
        .accuracy = (double)right / (double)data->rows,
        .loss = trained->model->loss(&trained->shape, data, 0, data->rows, trained->w) / (double)data->rows,
    };
    return RBT_OK;
}

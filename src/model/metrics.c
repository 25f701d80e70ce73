/* How good is a trained model on data. Contract in metrics.h; proved by tests/unit/test_metrics.c. */
#include "model/metrics.h"

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"

double rbt_model_loss(const rbt_model *model, const rbt_shape *shape, const rbt_data *data, const float *w)
{
    size_t block = data->streamed ? rbt_data_block_rows(data) : data->rows;
    double loss = 0;
    for (size_t row = 0; row < data->rows; row += block) {
        size_t n = data->rows - row < block ? data->rows - row : block;
        loss += model->loss(shape, data, row, n, w);
        rbt_data_release_rows(data, row, n);
    }
    return loss;
}

rbt_err rbt_metrics_compute(const rbt_trained *trained, const rbt_data *data, rbt_metrics *metrics, rbt_error *error)
{
    if (data->rows == 0)
        return rbt_fail(error, RBT_E_DATA, "the data has no rows to measure the model on");
    double *score = rbt_alloc(trained->model->outputs(&trained->shape), sizeof *score);
    size_t right = 0;
    for (size_t row = 0; row < data->rows; row++) {
        trained->model->score(&trained->shape, data, row, trained->w, score);
        right += trained->model->label(&trained->shape, score) == (double)data->label[row];
        rbt_data_release_passed(data, row, 1);
    }
    rbt_free(score);
    *metrics = (rbt_metrics){
        .rows = data->rows,
        .accuracy = (double)right / (double)data->rows,
        .loss = rbt_model_loss(trained->model, &trained->shape, data, trained->w) / (double)data->rows,
    };
    return RBT_OK;
}

/* A table program as a shared object: mean and variance of every feature, over any number of workers.
 *
 *     cc -shared -fPIC -o moments.so moments.c $(pkg-config --cflags rubato) -lm
 *     rubato train ./moments.so --data train.svm --workers 4 --epochs 1 --out moments.rbt    # one pass is enough
 *     rubato info moments.rbt --plugin ./moments.so
 */
#include <math.h>
#include <rubato.h>
#include <stdlib.h>

typedef struct tables {
    rbt_table sums; /* of the values, then of their squares */
    rbt_table rows; /* how many have been visited: each once in every epoch */
} tables;

static const rbt_method_option options[] = {
    {.name = "scale", .fallback = 1, .least = 1e-9, .most = 1e9, .about = "What values are multiplied by."}, {0}};

static rbt_err plan(rbt_plan *p, rbt_error *error)
{
    tables *t = p->state = calloc(1, sizeof *t);
    rbt_table_spec sums = {.name = "sums", .rows = 1, .cols = 2 * p->data->cols, .type = RBT_F32};
    rbt_table_spec rows = {.name = "rows", .rows = 1, .cols = 1, .type = RBT_I64};
    rbt_err err = rbt_plan_table(p, &sums, &t->sums, error);

    return err == RBT_OK ? rbt_plan_table(p, &rows, &t->rows, error) : err;
}

static void end(rbt_plan *p)
{
    free(p->state);
}

static rbt_err work(rbt_worker *worker, rbt_plan *p, rbt_error *error)
{
    const tables *t = p->state;
    const rbt_data *data = p->data;
    double scale = rbt_plan_option(p, "scale");
    size_t all, first, n;
    const uint32_t *rows = rbt_plan_rows(p, worker, &all);
    rbt_err err = RBT_OK;

    while (err == RBT_OK && rbt_plan_batch(p, worker, &first, &n)) {
        float *sums = calloc(2 * data->cols, sizeof *sums);
        size_t nonzeros = 0;

        for (size_t k = first; k < first + n; k++) {
            for (size_t i = data->start[rows[k]]; i < data->start[rows[k] + 1]; i++, nonzeros++) {
                float x = (float)(scale * (double)data->value[i]);

                sums[data->index[i]] += x;
                sums[data->cols + data->index[i]] += x * x;
            }
        }
        err = rbt_inc_row(worker, t->sums, 0, sums, error);
        if (err == RBT_OK)
            err = rbt_inc(worker, t->rows, 0, 0, (double)n, error);
        free(sums);
        rbt_worker_did(worker, n, nonzeros);
        if (err == RBT_OK)
            err = rbt_clock(worker, error);
    }
    return err;
}

static rbt_err keep(const rbt_plan *p, rbt_fitted *fitted, rbt_error *error)
{
    const tables *t = p->state;
    size_t cols = p->data->cols;
    int64_t rows = 0;
    float *m = rbt_fitted_add(fitted, "moments", RBT_F32, 2, cols); /* means, variances */
    rbt_err err = rbt_plan_read(p, t->sums, 0, 0, 2 * cols, m, error);

    if (err == RBT_OK)
        err = rbt_plan_read(p, t->rows, 0, 0, 1, &rows, error);
    for (size_t j = 0; err == RBT_OK && j < cols; j++) {
        m[j] /= (float)rows;
        m[cols + j] = m[cols + j] / (float)rows - m[j] * m[j];
    }
    return err;
}

static const rbt_method moments = {.name = "moments",
                                   .about = "mean and variance of every feature",
                                   .options = options,
                                   .plan = plan,
                                   .work = work,
                                   .keep = keep,
                                   .end = end};

const rbt_plugin *rbt_plugin_entry(void);

const rbt_plugin *rbt_plugin_entry(void)
{
    static const rbt_plugin plugin = {.version = RBT_PLUGIN_VERSION, .method = &moments};

    return &plugin;
}

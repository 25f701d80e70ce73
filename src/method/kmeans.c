/* k-means: clusters around their means (Lloyd), by full passes or mini-batches, from a k-means++ start.
 *
 * The servers hold, per cluster, the sum and the number of its rows. A worker remembers where each of its rows belongs; when
 * a row changes, it is taken out of one sum and put into another. So with clocks of whole passes under BSP this is Lloyd's
 * algorithm, with --batch it moves the means after every batch, and under any protocol the numbers add up to the rows that
 * have been visited. Every process finds the same start from the same rows. Distances go over transposed means, so that
 * a row costs its non-zeros, and all clusters are looked at side by side. Proved by tests/unit/test_kmeans.c.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "math/kernels.h"
#include "method/method.h"

#define SAMPLE_PER_CLUSTER 200 /* rows that k-means++ chooses from */

static const rbt_method_option kmeans_options[] = {
    {.name = "clusters", .fallback = 8, .least = 1, .most = 1e6, .whole = true, .about = "kmeans: how many clusters."},
    {.name = "start", .words = "plusplus|random", .about = "kmeans: rows far apart, or any rows, as the first means."},
    {0}};

/* Means and what distances need: cols x k, the means' squared lengths. */
typedef struct means {
    size_t k, cols;
    float *transposed;
    float *square;
} means;

typedef struct kmeans_state {
    rbt_table sums, counts;
    means start;
} kmeans_state;

static bool means_init(means *m, size_t k, size_t cols)
{
    *m = (means){k, cols, rbt_try_alloc(k, cols * sizeof(float)), rbt_alloc(k, sizeof(float))};
    return m->transposed != NULL;
}

static void means_deinit(means *m)
{
    rbt_free(m->transposed);
    rbt_free(m->square);
}

static void means_set(means *m, size_t cluster, const float *mean)
{
    double square = 0;

    for (size_t j = 0; j < m->cols; j++) {
        m->transposed[j * m->k + cluster] = mean[j];
        square += (double)mean[j] * (double)mean[j];
    }
    m->square[cluster] = (float)square;
}

static double row_square(const rbt_data *data, size_t row)
{
    double square = 0;

    for (size_t i = data->start[row]; i < data->start[row + 1]; i++)
        square += (double)data->value[i] * (double)data->value[i];
    return square;
}

/* The cluster nearest to a row, of the first `among`, and the squared distance; `score` has room for k. A feature that the
 * means do not have is far from all of them alike. */
static size_t nearest(const means *m, size_t among, const rbt_data *data, size_t row, float *score, double *distance)
{
    const rbt_kernels *kernels = rbt_kernels_best();
    size_t best = 0;

    memset(score, 0, among * sizeof *score);
    for (size_t i = data->start[row]; i < data->start[row + 1]; i++)
        if (data->index[i] < m->cols)
            kernels->axpy(data->value[i], m->transposed + (size_t)data->index[i] * m->k, score, among);
    for (size_t c = 0; c < among; c++) {
        score[c] = m->square[c] - 2 * score[c];
        if (score[c] < score[best])
            best = c;
    }
    *distance = fmax(0, (double)score[best] + row_square(data, row));
    return best;
}

/* --------------------------------------------------------------------------------------------------------- start */

static void set_to_row(means *m, size_t cluster, const rbt_data *data, size_t row, float *dense)
{
    memset(dense, 0, m->cols * sizeof *dense);
    for (size_t i = data->start[row]; i < data->start[row + 1]; i++)
        dense[data->index[i]] = data->value[i];
    means_set(m, cluster, dense);
}

/* k-means++ over a sample: each next mean is a row drawn with its squared distance from those there are as weight. */
static void choose(const rbt_plan *plan, means *m, bool far)
{
    const rbt_data *data = plan->data;
    rbt_rng rng = rbt_rng_stream(plan->seed, RBT_STREAM_METHOD, 0);
    size_t sample = m->k * SAMPLE_PER_CLUSTER < data->rows ? m->k * SAMPLE_PER_CLUSTER : data->rows;
    size_t *rows = rbt_alloc(sample, sizeof *rows);
    double *distance = rbt_alloc(sample, sizeof *distance);
    float *dense = rbt_alloc(m->cols, sizeof *dense), *score = rbt_alloc(m->k, sizeof *score);

    for (size_t i = 0; i < sample; i++) {
        rows[i] = sample == data->rows ? i : (size_t)rbt_rng_below(&rng, data->rows);
        distance[i] = INFINITY;
    }
    for (size_t c = 0; c < m->k; c++) {
        double total = 0, point;
        size_t pick = (size_t)rbt_rng_below(&rng, sample);

        for (size_t i = 0; far && c > 0 && i < sample; i++)
            total += distance[i];
        point = rbt_rng_f64(&rng) * total;
        for (size_t i = 0; total > 0 && i < sample; i++) {
            point -= distance[i];
            if (distance[i] > 0 && point <= 0) {
                pick = i;
                break;
            }
        }
        set_to_row(m, c, data, rows[pick], dense);
        for (size_t i = 0; far && i < sample; i++) { /* only the new mean can be nearer */
            means one = {1, m->cols, dense, m->square + c};
            double d;

            (void)nearest(&one, 1, data, rows[i], score, &d);
            distance[i] = d < distance[i] ? d : distance[i];
        }
    }
    rbt_free(rows);
    rbt_free(distance);
    rbt_free(dense);
    rbt_free(score);
}

static rbt_err kmeans_plan(rbt_plan *plan, rbt_error *error)
{
    size_t k = (size_t)rbt_plan_option(plan, "clusters"), cols = plan->data->cols;
    kmeans_state *state = rbt_alloc(1, sizeof *state);
    rbt_err err;

    plan->state = state;
    if (k > plan->data->rows)
        return rbt_fail(error, RBT_E_USAGE, "--clusters %zu: the data has only %zu rows", k, plan->data->rows);
    if (!means_init(&state->start, k, cols))
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu means of %zu features; use fewer --clusters", k,
                        cols);
    choose(plan, &state->start, rbt_plan_option(plan, "start") == 0);
    err = rbt_plan_table(plan, &(rbt_table_spec){.name = "sums", .rows = k, .cols = cols, .type = RBT_F32},
                         &state->sums, error);
    if (err == RBT_OK)
        err = rbt_plan_table(plan, &(rbt_table_spec){.name = "counts", .rows = 1, .cols = k, .type = RBT_I64},
                             &state->counts, error);
    return err;
}

static void kmeans_end(rbt_plan *plan)
{
    kmeans_state *state = plan->state;

    if (state != NULL)
        means_deinit(&state->start);
    rbt_free(state);
}

/* ---------------------------------------------------------------------------------------------------------- work */

typedef struct kmeans_worker {
    means now;
    float *sum;     /* k x cols: what this clock changes */
    float *read;    /* a row of the table */
    int64_t *count; /* as read; then what this clock changes */
    float *score;
    uint32_t *where; /* per row of the worker: its cluster; k: none yet */
} kmeans_worker;

/* The means as the servers have them; an empty cluster keeps its start. */
static rbt_err read_means(rbt_worker *worker, const kmeans_state *s, kmeans_worker *w, rbt_error *error)
{
    size_t k = w->now.k, cols = w->now.cols;
    rbt_err err = rbt_get_row(worker, s->counts, 0, RBT_STALENESS_OF_JOB, w->count, error);

    for (size_t c = 0; err == RBT_OK && c < k; c++) {
        err = rbt_get_row(worker, s->sums, c, RBT_STALENESS_OF_JOB, w->read, error);
        if (err == RBT_OK && w->count[c] <= 0) /* none, or, for a moment, more taken out than has been put in */
            for (size_t j = 0; j < cols; j++)
                w->read[j] = s->start.transposed[j * k + c];
        for (size_t j = 0; err == RBT_OK && w->count[c] > 0 && j < cols; j++)
            w->read[j] /= (float)w->count[c];
        if (err == RBT_OK)
            means_set(&w->now, c, w->read);
    }
    memset(w->count, 0, k * sizeof *w->count);
    return err;
}

static void move_row(kmeans_worker *w, const rbt_data *data, size_t row, size_t cluster, float sign)
{
    float *sum = w->sum + cluster * w->now.cols;

    for (size_t i = data->start[row]; i < data->start[row + 1]; i++)
        sum[data->index[i]] += sign * data->value[i];
    w->count[cluster] += sign > 0 ? 1 : -1;
}

static rbt_err write_changes(rbt_worker *worker, const kmeans_state *s, kmeans_worker *w, const bool *changed,
                             rbt_error *error)
{
    size_t k = w->now.k, cols = w->now.cols;
    rbt_err err = rbt_inc_row(worker, s->counts, 0, w->count, error);

    for (size_t c = 0; err == RBT_OK && c < k; c++) {
        if (!changed[c])
            continue;
        err = rbt_inc_row(worker, s->sums, c, w->sum + c * cols, error);
        memset(w->sum + c * cols, 0, cols * sizeof *w->sum);
    }
    return err;
}

static rbt_err kmeans_clock(rbt_worker *worker, const rbt_plan *plan, kmeans_worker *w, size_t first, size_t n,
                            rbt_error *error)
{
    const kmeans_state *s = plan->state;
    size_t all, nonzeros = 0;
    const uint32_t *rows = rbt_plan_rows(plan, worker, &all);
    bool *changed = rbt_alloc(w->now.k, sizeof *changed);
    double sum = 0;
    rbt_err err = read_means(worker, s, w, error);

    for (size_t i = first; err == RBT_OK && i < first + n; i++) {
        double distance;
        size_t to = nearest(&w->now, w->now.k, plan->data, rows[i], w->score, &distance), from = w->where[i];

        sum += distance;
        nonzeros += plan->data->start[rows[i] + 1] - plan->data->start[rows[i]];
        if (to == from)
            continue;
        if (from < w->now.k) {
            move_row(w, plan->data, rows[i], from, -1);
            changed[from] = true;
        }
        move_row(w, plan->data, rows[i], to, 1);
        changed[to] = true;
        w->where[i] = (uint32_t)to;
    }
    if (err == RBT_OK)
        err = write_changes(worker, s, w, changed, error);
    if (err == RBT_OK)
        err = rbt_plan_tell(plan, worker, sum, n, error);
    rbt_worker_did(worker, n, nonzeros * w->now.k);
    rbt_free(changed);
    return err == RBT_OK ? rbt_clock(worker, error) : err;
}

static rbt_err kmeans_work(rbt_worker *worker, rbt_plan *plan, rbt_error *error)
{
    const kmeans_state *s = plan->state;
    size_t k = s->start.k, cols = s->start.cols, rows, first, n;
    kmeans_worker w = {.sum = rbt_try_alloc(k, cols * sizeof(float)),
                       .read = rbt_alloc(cols, sizeof *w.read),
                       .count = rbt_alloc(k, sizeof *w.count),
                       .score = rbt_alloc(k, sizeof *w.score)};
    rbt_err err = RBT_OK;

    (void)rbt_plan_rows(plan, worker, &rows);
    w.where = rbt_alloc(rows, sizeof *w.where);
    for (size_t i = 0; i < rows; i++)
        w.where[i] = (uint32_t)k;
    if (!means_init(&w.now, k, cols) || w.sum == NULL)
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for a worker's %zu means of %zu features", k, cols);
    while (err == RBT_OK && rbt_plan_batch(plan, worker, &first, &n))
        err = kmeans_clock(worker, plan, &w, first, n, error);
    means_deinit(&w.now);
    rbt_free(w.sum);
    rbt_free(w.read);
    rbt_free(w.count);
    rbt_free(w.score);
    rbt_free(w.where);
    return err;
}

/* -------------------------------------------------------------------------------------------------------- fitted */

static rbt_err kmeans_keep(const rbt_plan *plan, rbt_fitted *fitted, rbt_error *error)
{
    const kmeans_state *s = plan->state;
    size_t k = s->start.k, cols = s->start.cols;
    float *out = rbt_fitted_add(fitted, "means", RBT_F32, k, cols);
    int64_t *sizes = rbt_fitted_add(fitted, "sizes", RBT_I64, 1, k);
    rbt_err err = out != NULL && sizes != NULL
                      ? rbt_plan_read(plan, s->counts, 0, 0, k, sizes, error)
                      : rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu means of %zu features", k, cols);

    for (size_t c = 0; out != NULL && sizes != NULL && err == RBT_OK && c < k; c++) {
        err = rbt_plan_read(plan, s->sums, c, 0, cols, out + c * cols, error);
        for (size_t j = 0; err == RBT_OK && j < cols; j++)
            out[c * cols + j] = sizes[c] > 0 ? out[c * cols + j] / (float)sizes[c] : s->start.transposed[j * k + c];
    }
    return err;
}

static rbt_err kmeans_open(const rbt_fitted *fitted, rbt_error *error)
{
    const rbt_values *m = rbt_fitted_values(fitted, "means"), *sizes = rbt_fitted_values(fitted, "sizes");

    if (m == NULL || sizes == NULL || m->type != RBT_F32 || sizes->type != RBT_I64 || m->rows == 0 ||
        sizes->rows * sizes->cols != m->rows)
        return rbt_fail(error, RBT_E_DATA, "the model file does not hold the means of clusters; train it again");
    return RBT_OK;
}

static void means_of(const rbt_fitted *fitted, means *m)
{
    const rbt_values *values = rbt_fitted_values(fitted, "means");

    if (means_init(m, (size_t)values->rows, (size_t)values->cols))
        for (size_t c = 0; c < m->k; c++)
            means_set(m, c, (const float *)values->at + c * m->cols);
}

static rbt_err kmeans_predict(const rbt_fitted *fitted, const rbt_data *data, size_t row, FILE *out, rbt_error *error)
{
    const rbt_values *values = rbt_fitted_values(fitted, "means");
    double least = INFINITY;
    size_t best = 0;

    (void)error;
    for (size_t c = 0; c < values->rows; c++) { /* one row: the means as they lie are good enough */
        const float *mean = (const float *)values->at + c * values->cols;
        double square = 0, dot = 0;

        for (size_t j = 0; j < values->cols; j++)
            square += (double)mean[j] * (double)mean[j];
        for (size_t i = data->start[row]; i < data->start[row + 1]; i++)
            if (data->index[i] < values->cols)
                dot += (double)mean[data->index[i]] * (double)data->value[i];
        if (square - 2 * dot < least) {
            least = square - 2 * dot;
            best = c;
        }
    }
    fprintf(out, "%zu\n", best);
    return RBT_OK;
}

static rbt_err kmeans_evaluate(const rbt_fitted *fitted, const rbt_data *data, rbt_figure *figures, size_t *n,
                               rbt_error *error)
{
    means m;
    float *score;
    double sum = 0;

    means_of(fitted, &m);
    if (m.transposed == NULL) {
        means_deinit(&m);
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for the means");
    }
    score = rbt_alloc(m.k, sizeof *score);
    for (size_t r = 0; r < data->rows; r++) {
        double distance;

        (void)nearest(&m, m.k, data, r, score, &distance);
        sum += distance;
    }
    figures[0] = (rbt_figure){"distance", data->rows > 0 ? sum / (double)data->rows : NAN};
    *n = 1;
    rbt_free(score);
    means_deinit(&m);
    return RBT_OK;
}

static void kmeans_describe(const rbt_fitted *fitted, FILE *out)
{
    const rbt_values *sizes = rbt_fitted_values(fitted, "sizes"), *m = rbt_fitted_values(fitted, "means");

    fprintf(out, "clusters    %llu, of %llu features\n", (unsigned long long)m->rows, (unsigned long long)m->cols);
    for (size_t c = 0; c < sizes->cols && c < 50; c++)
        fprintf(out, "%-11s %zu: %lld rows\n", c == 0 ? "sizes" : "", c, (long long)((const int64_t *)sizes->at)[c]);
}

const rbt_method rbt_method_kmeans = {.name = "kmeans",
                                      .about = "clusters around their means",
                                      .objective = "squared distance from the nearest mean",
                                      .options = kmeans_options,
                                      .unheeded = "lr decay l1 l2",
                                      .keeps_state = true,
                                      .needs_sums = true,
                                      .unfiltered = "sums and numbers of rows must agree in every clock",
                                      .plan = kmeans_plan,
                                      .work = kmeans_work,
                                      .keep = kmeans_keep,
                                      .end = kmeans_end,
                                      .open = kmeans_open,
                                      .predict = kmeans_predict,
                                      .evaluate = kmeans_evaluate,
                                      .describe = kmeans_describe};

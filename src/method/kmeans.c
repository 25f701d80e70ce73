/* k-means: clusters around their means (Lloyd), by full passes or mini-batches, from a k-means++ start.
 *
 * The servers hold, per cluster, the sum and the number of its rows. A worker remembers where each of its rows belongs; when
 * a row changes, it is taken out of one sum and put into another. So with clocks of whole passes under BSP this is Lloyd's
 * algorithm, with --batch it moves the means after every batch, and under any protocol the numbers add up to the rows that
 * have been visited. Where rows have weights, these are divided by their mean (so that only their proportions matter), sums are of
 * weighted rows, and servers hold the sum of the weights, too. Every process finds the same start from the same sample of rows, which all have. Distances go over transposed
 * means, so that a row costs its non-zeros, and all clusters are looked at side by side. Proved by tests/unit/test_plan.c,
 * tests/cli/test_methods.sh and test_kmeans.sh.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/data.h"
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
    rbt_table weights; /* per cluster the weights of its rows; only if weighted */
    bool weighted;
    double mean_weight;
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

/* How much a row counts: 1 in the mean. */
static double weight_of(const kmeans_state *s, const rbt_data *data, size_t row)
{
    return s->weighted ? (double)data->weight[row] / s->mean_weight : 1;
}

/* What a cluster's sum is divided by; 0: it has no rows or, for a moment, more have been taken out than put in. */
static float size_of(int64_t count, const float *weight)
{
    if (count <= 0)
        return 0;
    return weight == NULL ? (float)count : *weight > 0 ? *weight : 0;
}

/* --------------------------------------------------------------------------------------------------------- start */

static void set_to_row(means *m, size_t cluster, const rbt_data *data, size_t row, float *dense)
{
    memset(dense, 0, m->cols * sizeof *dense);
    for (size_t i = data->start[row]; i < data->start[row + 1]; i++)
        dense[data->index[i]] = data->value[i];
    means_set(m, cluster, dense);
}

/* The rows that first means are chosen from: all, or some at random. */
static size_t draw_sample(const rbt_plan *plan, size_t rows, rbt_rng *rng, uint32_t *list)
{
    size_t most = (size_t)rbt_plan_option(plan, "clusters") * SAMPLE_PER_CLUSTER, n = most < rows ? most : rows;

    for (size_t i = 0; list != NULL && i < n; i++)
        list[i] = (uint32_t)(n == rows ? i : rbt_rng_below(rng, rows));
    return n;
}

static size_t kmeans_common(const rbt_plan *plan, size_t rows, uint32_t *list)
{
    rbt_rng rng = rbt_rng_stream(plan->seed, RBT_STREAM_METHOD, 0);

    return draw_sample(plan, rows, &rng, list);
}

/* Draws one of a sample of rows, by weights (NULL: all alike) times squared distances (NULL: likewise). */
static size_t draw_row(rbt_rng *rng, size_t sample, const double *weight, const double *distance)
{
    size_t pick = (size_t)rbt_rng_below(rng, sample);
    double total = 0, point;

    if (weight == NULL && distance == NULL) {
        (void)rbt_rng_f64(rng);
        return pick;
    }
    for (size_t i = 0; i < sample; i++)
        total += (weight != NULL ? weight[i] : 1) * (distance != NULL ? distance[i] : 1);
    point = rbt_rng_f64(rng) * total;
    for (size_t i = 0; total > 0 && i < sample; i++) {
        double share = (weight != NULL ? weight[i] : 1) * (distance != NULL ? distance[i] : 1);

        point -= share;
        if (share > 0 && point <= 0)
            return i;
    }
    return pick;
}

/* k-means++ over a sample: each next mean is a row drawn with its squared distance from those there are as weight. */
static void choose(const rbt_plan *plan, means *m, bool far)
{
    const rbt_data *data = plan->data;
    const kmeans_state *s = plan->state;
    rbt_rng rng = rbt_rng_stream(plan->seed, RBT_STREAM_METHOD, 0);
    size_t sample = draw_sample(plan, data->rows, &rng, NULL);
    uint32_t *rows = rbt_alloc(sample, sizeof *rows);
    double *distance = rbt_alloc(sample, sizeof *distance);
    double *weight = s->weighted ? rbt_alloc(sample, sizeof *weight) : NULL;
    float *dense = rbt_alloc(m->cols, sizeof *dense), *score = rbt_alloc(m->k, sizeof *score);

    (void)draw_sample(plan, data->rows, &rng, rows);
    for (size_t i = 0; i < sample; i++) {
        distance[i] = INFINITY;
        if (weight != NULL)
            weight[i] = weight_of(s, data, rows[i]);
    }
    for (size_t c = 0; c < m->k; c++) {
        size_t pick = draw_row(&rng, sample, weight, far && c > 0 ? distance : NULL);

        set_to_row(m, c, data, rows[pick], dense);
        for (size_t i = 0; far && i < sample; i++) { /* only the new mean can be nearer */
            means one = {1, m->cols, dense, m->square + c};
            double d;

            (void)nearest(&one, 1, data, rows[i], score, &d);
            distance[i] = d < distance[i] ? d : distance[i];
        }
    }
    rbt_free(rows);
    rbt_free(weight);
    rbt_free(distance);
    rbt_free(dense);
    rbt_free(score);
}

/* Rows of workers elsewhere have their weights here, too. */
static void find_weights(kmeans_state *s, const rbt_data *data)
{
    double sum = 0;

    s->weighted = data->weight != NULL;
    for (size_t r = 0; s->weighted && r < data->rows; r++)
        sum += (double)data->weight[r];
    s->mean_weight = s->weighted ? sum / (double)data->rows : 1;
}

static rbt_err kmeans_plan(rbt_plan *plan, rbt_error *error)
{
    size_t k = (size_t)rbt_plan_option(plan, "clusters"), cols = plan->data->cols;
    kmeans_state *state = rbt_alloc(1, sizeof *state);
    rbt_err err;

    plan->state = state;
    err = rbt_method_refuse_ratings("kmeans", plan->data, error);
    if (err != RBT_OK)
        return err;
    if (k > plan->data->rows)
        return rbt_fail(error, RBT_E_USAGE, "--clusters %zu: the data has only %zu rows", k, plan->data->rows);
    if (cols == 0)
        return rbt_fail(error, RBT_E_DATA, "kmeans: none of the %zu rows has a feature, so there is nothing to cluster",
                        plan->data->rows);
    if (!means_init(&state->start, k, cols))
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu means of %zu features; use fewer --clusters", k,
                        cols);
    find_weights(state, plan->data);
    choose(plan, &state->start, rbt_plan_option(plan, "start") == 0);
    err = rbt_plan_table(plan, &(rbt_table_spec){.name = "sums", .rows = k, .cols = cols, .type = RBT_F32},
                         &state->sums, error);
    if (err == RBT_OK)
        err = rbt_plan_table(plan, &(rbt_table_spec){.name = "counts", .rows = 1, .cols = k, .type = RBT_I64},
                             &state->counts, error);
    if (err == RBT_OK && state->weighted)
        err = rbt_plan_table(plan, &(rbt_table_spec){.name = "weights", .rows = 1, .cols = k, .type = RBT_F32},
                             &state->weights, error);
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
    double *sum;    /* k x cols: what is not written yet; of many rows, floats would lose a part of each */
    float *row;     /* of the table of sums: as read, or to be written */
    int64_t *count; /* as read; then what this clock changes */
    double *weight; /* as sum; NULL: not weighted */
    float *weights; /* as row; NULL likewise */
    float *score;
    uint32_t *where; /* per row of the worker: its cluster; k: none yet */
} kmeans_worker;

/* The means as the servers have them; an empty cluster keeps its start. */
static rbt_err read_means(rbt_worker *worker, const kmeans_state *s, kmeans_worker *w, rbt_error *error)
{
    size_t k = w->now.k, cols = w->now.cols;
    rbt_err err = rbt_get_row(worker, s->counts, 0, RBT_STALENESS_OF_JOB, w->count, error);

    if (err == RBT_OK && s->weighted)
        err = rbt_get_row(worker, s->weights, 0, RBT_STALENESS_OF_JOB, w->weights, error);
    for (size_t c = 0; err == RBT_OK && c < k; c++) {
        float size = size_of(w->count[c], s->weighted ? &w->weights[c] : NULL);

        err = rbt_get_row(worker, s->sums, c, RBT_STALENESS_OF_JOB, w->row, error);
        for (size_t j = 0; err == RBT_OK && j < cols; j++)
            w->row[j] = size > 0 ? w->row[j] / size : s->start.transposed[j * k + c];
        if (err == RBT_OK)
            means_set(&w->now, c, w->row);
    }
    memset(w->count, 0, k * sizeof *w->count);
    return err;
}

/* Puts a row into a cluster, with its weight, or takes it out, with that below zero. */
static void move_row(kmeans_worker *w, const rbt_data *data, size_t row, size_t cluster, double weight)
{
    double *sum = w->sum + cluster * w->now.cols;

    for (size_t i = data->start[row]; i < data->start[row + 1]; i++)
        sum[data->index[i]] += weight * (double)data->value[i];
    w->count[cluster] += weight > 0 ? 1 : -1;
    if (w->weight != NULL)
        w->weight[cluster] += weight;
}

/* What a table's row is changed by, as floats; what these round off stays and is written the next time. */
static const float *take_rounded(double *change, size_t n, float *rounded)
{
    for (size_t i = 0; i < n; i++) {
        rounded[i] = (float)change[i];
        change[i] -= (double)rounded[i];
    }
    return rounded;
}

static rbt_err write_changes(rbt_worker *worker, const kmeans_state *s, kmeans_worker *w, const bool *changed,
                             rbt_error *error)
{
    size_t k = w->now.k, cols = w->now.cols;
    rbt_err err = rbt_inc_row(worker, s->counts, 0, w->count, error);

    if (err == RBT_OK && s->weighted)
        err = rbt_inc_row(worker, s->weights, 0, take_rounded(w->weight, k, w->weights), error);
    for (size_t c = 0; err == RBT_OK && c < k; c++)
        if (changed[c])
            err = rbt_inc_row(worker, s->sums, c, take_rounded(w->sum + c * cols, cols, w->row), error);
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
        double distance, weight = weight_of(s, plan->data, rows[i]);
        size_t to = nearest(&w->now, w->now.k, plan->data, rows[i], w->score, &distance), from = w->where[i];

        sum += weight * distance;
        nonzeros += plan->data->start[rows[i] + 1] - plan->data->start[rows[i]];
        if (to == from)
            continue;
        if (from < w->now.k) {
            move_row(w, plan->data, rows[i], from, -weight);
            changed[from] = true;
        }
        move_row(w, plan->data, rows[i], to, weight);
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
    kmeans_worker w = {.sum = rbt_try_alloc(k, cols * sizeof *w.sum),
                       .row = rbt_alloc(cols, sizeof *w.row),
                       .count = rbt_alloc(k, sizeof *w.count),
                       .weight = s->weighted ? rbt_alloc(k, sizeof *w.weight) : NULL,
                       .weights = s->weighted ? rbt_alloc(k, sizeof *w.weights) : NULL,
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
    rbt_free(w.row);
    rbt_free(w.count);
    rbt_free(w.weight);
    rbt_free(w.weights);
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
    float *weight = s->weighted ? rbt_alloc(k, sizeof *weight) : NULL;
    rbt_err err = out != NULL && sizes != NULL
                      ? rbt_plan_read(plan, s->counts, 0, 0, k, sizes, error)
                      : rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu means of %zu features", k, cols);

    if (err == RBT_OK && s->weighted)
        err = rbt_plan_read(plan, s->weights, 0, 0, k, weight, error);
    for (size_t c = 0; out != NULL && sizes != NULL && err == RBT_OK && c < k; c++) {
        float size = size_of(sizes[c], s->weighted ? &weight[c] : NULL);

        err = rbt_plan_read(plan, s->sums, c, 0, cols, out + c * cols, error);
        for (size_t j = 0; err == RBT_OK && j < cols; j++)
            out[c * cols + j] = size > 0 ? out[c * cols + j] / size : s->start.transposed[j * k + c];
    }
    rbt_free(weight);
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
    rbt_err err = rbt_method_refuse_ratings("kmeans", data, error);

    for (size_t c = 0; err == RBT_OK && c < values->rows; c++) { /* one row: the means as they lie are good enough */
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
    if (err == RBT_OK)
        fprintf(out, "%zu\n", best);
    return err;
}

static rbt_err kmeans_evaluate(const rbt_fitted *fitted, const rbt_data *data, rbt_figure *figures, size_t *n,
                               rbt_error *error)
{
    means m;
    float *score;
    double sum = 0, weight = 0;
    rbt_err err = rbt_method_refuse_ratings("kmeans", data, error);

    if (err != RBT_OK)
        return err;
    means_of(fitted, &m);
    if (m.transposed == NULL) {
        means_deinit(&m);
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for the means");
    }
    score = rbt_alloc(m.k, sizeof *score);
    for (size_t r = 0; r < data->rows; r++) {
        double distance;

        (void)nearest(&m, m.k, data, r, score, &distance);
        sum += rbt_data_weight(data, r) * distance;
        weight += rbt_data_weight(data, r);
    }
    figures[0] = (rbt_figure){"loss", data->rows > 0 ? sum / weight : NAN};
    figures[1] = (rbt_figure){"distance", figures[0].value};
    *n = 2;
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
                                      .content = RBT_CONTENT_POINTS,
                                      .options = kmeans_options,
                                      .own_rows = true,
                                      .common = kmeans_common,
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

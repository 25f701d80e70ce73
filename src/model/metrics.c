/* How good is a trained model on data. Contract in metrics.h; proved by tests/unit/test_metrics.c. */
#include "model/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "model/link.h"
#include "model/model.h"

static const char *const names[RBT_METRIC_COUNT] = {"loss",   "logloss", "accuracy", "auc",   "f1", "precision",
                                                    "recall", "rmse",    "mae",      "huber", "r2"};

/* A row for AUC: "no" has minus its weight. */
typedef struct ranked {
    double score;
    double weight;
} ranked;

typedef struct rbt_metrics_sums {
    unsigned want;
    double *score;
    double loss;
    double *hit, *said, *true_of; /* weights by class: rightly predicted, predicted, of that class */
    double squares, absolute, huber, delta;
    double mean, scatter; /* of the labels: Welford's running mean and sum of squared differences */
    ranked *rank;
    size_t rank_count, rank_room;
} sums;

double rbt_metrics_delta(const rbt_shape *shape)
{
    return shape->delta > 0 ? shape->delta : 1;
}

const char *rbt_metric_name(rbt_metric metric)
{
    return names[metric];
}

bool rbt_metric_find(const char *name, rbt_metric *metric)
{
    for (unsigned i = 0; i < RBT_METRIC_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            *metric = (rbt_metric)i;
            return true;
        }
    }
    return false;
}

rbt_err rbt_metric_fit(rbt_metric metric, const rbt_model *model, const rbt_shape *shape, rbt_error *error)
{
    const char *name = names[metric];
    if (metric == RBT_METRIC_LOSS)
        return RBT_OK;
    if (metric >= RBT_METRIC_RMSE && shape->classes > 0)
        return rbt_fail(error, RBT_E_USAGE,
                        "metric %s is for models that predict numbers; %s predicts classes: use accuracy, f1, "
                        "precision or recall",
                        name, model->name);
    if (metric < RBT_METRIC_RMSE && shape->classes == 0)
        return rbt_fail(error, RBT_E_USAGE,
                        "metric %s is for models that predict classes; %s predicts numbers: use rmse, mae, huber or r2",
                        name, model->name);
    if (metric == RBT_METRIC_LOGLOSS && model->probability == NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "metric logloss needs probabilities, which %s does not have; use loss, or train lr or softmax",
                        model->name);
    if (metric == RBT_METRIC_AUC && shape->classes != 2)
        return rbt_fail(error, RBT_E_USAGE, "metric auc is for two classes, the model has %zu; use accuracy or f1",
                        shape->classes);
    return RBT_OK;
}

static bool wanted(const sums *s, rbt_metric metric)
{
    return (s->want & RBT_METRIC_BIT(metric)) != 0;
}

void rbt_metrics_init(rbt_metrics *metrics, const rbt_trained *trained, unsigned want)
{
    const rbt_shape *shape = &trained->shape;
    sums *s = rbt_alloc(1, sizeof *s);
    *metrics = (rbt_metrics){.classes = shape->classes, .sums = s};
    for (unsigned i = 0; i < RBT_METRIC_COUNT; i++) {
        metrics->value[i] = NAN;
        if ((want & RBT_METRIC_BIT(i)) != 0 && rbt_metric_fit((rbt_metric)i, trained->model, shape, NULL) == RBT_OK)
            s->want |= RBT_METRIC_BIT(i);
    }
    s->score = rbt_alloc(trained->model->outputs(shape), sizeof *s->score);
    s->delta = rbt_metrics_delta(shape);
    if (shape->classes == 0)
        return;
    s->hit = rbt_alloc(3 * shape->classes, sizeof *s->hit);
    s->said = s->hit + shape->classes;
    s->true_of = s->said + shape->classes;
    if (shape->classes <= RBT_CONFUSION_CLASSES_MAX)
        metrics->confusion = rbt_alloc(shape->classes * shape->classes, sizeof *metrics->confusion);
}

void rbt_metrics_deinit(rbt_metrics *metrics)
{
    if (metrics->sums != NULL) {
        rbt_free(metrics->sums->score);
        rbt_free(metrics->sums->hit);
        rbt_free(metrics->sums->rank);
        rbt_free(metrics->sums);
    }
    rbt_free(metrics->confusion);
    *metrics = (rbt_metrics){0};
}

/* ------------------------------------------------------------------------------------------------- block by block */

/* Room for the block's decision values. */
static rbt_err reserve_ranks(sums *s, size_t rows, rbt_error *error)
{
    size_t need = s->rank_count + rows, room = 2 * s->rank_room > need ? 2 * s->rank_room : need;
    if (need <= s->rank_room)
        return RBT_OK;
    ranked *more = rbt_try_alloc_raw(room, sizeof *more);
    if (more == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for the decision values of %zu rows, which auc needs",
                        need);
    if (s->rank_count > 0)
        memcpy(more, s->rank, s->rank_count * sizeof *more);
    rbt_free(s->rank);
    s->rank = more;
    s->rank_room = room;
    return RBT_OK;
}

static void add_class(rbt_metrics *metrics, size_t label, size_t said, double weight)
{
    sums *s = metrics->sums;
    s->true_of[label] += weight;
    s->said[said] += weight;
    s->hit[label] += label == said ? weight : 0;
    if (metrics->confusion != NULL)
        metrics->confusion[label * metrics->classes + said] += weight;
}

/* metrics->weight counts this row already. */
static void add_number(rbt_metrics *metrics, double label, double said, double weight)
{
    sums *s = metrics->sums;
    double error = said - label, away = label - s->mean;
    s->squares += weight * error * error;
    s->absolute += weight * fabs(error);
    s->huber += weight * rbt_link_huber.loss(said, label, s->delta);
    s->mean += away * weight / metrics->weight;
    s->scatter += weight * away * (label - s->mean);
}

rbt_err rbt_metrics_add(rbt_metrics *metrics, const rbt_trained *trained, const rbt_data *data, rbt_error *error)
{
    const rbt_model *model = trained->model;
    const rbt_shape *shape = &trained->shape;
    sums *s = metrics->sums;
    size_t outputs = model->outputs(shape);
    rbt_err err = wanted(s, RBT_METRIC_AUC) ? reserve_ranks(s, data->rows, error) : RBT_OK;
    if (err != RBT_OK)
        return err;
    for (size_t row = 0; row < data->rows; row++) {
        /* One at a time: the sum is the same however the rows are cut into blocks. */
        s->loss += model->loss(shape, data, row, 1, trained->w);
        double weight = data->weight != NULL ? (double)data->weight[row] : 1, label = (double)data->label[row];
        model->score(shape, data, row, trained->w, s->score);
        double said = model->label(shape, s->score);
        metrics->weight += weight;
        if (shape->classes == 0)
            add_number(metrics, label, said, weight);
        else
            add_class(metrics, (size_t)label, (size_t)said, weight);
        if (wanted(s, RBT_METRIC_AUC))
            s->rank[s->rank_count++] = (ranked){.score = outputs == 1 ? s->score[0] : s->score[1] - s->score[0],
                                                .weight = label > 0 ? weight : -weight};
        rbt_data_release_passed(data, row, 1);
    }
    metrics->rows += data->rows;
    return RBT_OK;
}

/* --------------------------------------------------------------------------------------------------- at the end */

static int by_score(const void *a, const void *b)
{
    double x = ((const ranked *)a)->score, y = ((const ranked *)b)->score;
    return (x > y) - (x < y);
}

/* Pairs of a "yes" and a "no" in the right order, those with equal values half, over all pairs. */
static double auc(sums *s)
{
    double yes = 0, no = 0, right = 0;
    qsort(s->rank, s->rank_count, sizeof *s->rank, by_score);
    for (size_t i = 0, end; i < s->rank_count; i = end) {
        double tied_yes = 0, tied_no = 0;
        for (end = i; end < s->rank_count && (end == i || s->rank[end].score == s->rank[i].score); end++) {
            tied_yes += fmax(s->rank[end].weight, 0);
            tied_no += fmax(-s->rank[end].weight, 0);
        }
        right += tied_yes * (no + tied_no / 2);
        yes += tied_yes;
        no += tied_no;
    }
    return yes > 0 && no > 0 ? right / (yes * no) : NAN;
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static void finish_classes(rbt_metrics *metrics)
{
    const sums *s = metrics->sums;
    size_t first = metrics->classes == 2 ? 1 : 0, count = metrics->classes - first;
    double right = 0, f1 = 0, precision = 0, recall = 0;
    for (size_t k = 0; k < metrics->classes; k++)
        right += s->hit[k];
    for (size_t k = first; k < metrics->classes; k++) {
        f1 += 2 * ratio(s->hit[k], s->said[k] + s->true_of[k]) / (double)count;
        precision += ratio(s->hit[k], s->said[k]) / (double)count;
        recall += ratio(s->hit[k], s->true_of[k]) / (double)count;
    }
    metrics->value[RBT_METRIC_ACCURACY] = right / metrics->weight;
    metrics->value[RBT_METRIC_F1] = f1;
    metrics->value[RBT_METRIC_PRECISION] = precision;
    metrics->value[RBT_METRIC_RECALL] = recall;
}

rbt_err rbt_metrics_finish(rbt_metrics *metrics, rbt_error *error)
{
    sums *s = metrics->sums;
    double *value = metrics->value;
    if (metrics->rows == 0)
        return rbt_fail(error, RBT_E_DATA, "the data has no rows to measure the model on");
    value[RBT_METRIC_LOSS] = value[RBT_METRIC_LOGLOSS] = s->loss / metrics->weight;
    if (metrics->classes > 0) {
        finish_classes(metrics);
        value[RBT_METRIC_AUC] = wanted(s, RBT_METRIC_AUC) ? auc(s) : NAN;
    } else {
        value[RBT_METRIC_RMSE] = sqrt(s->squares / metrics->weight);
        value[RBT_METRIC_MAE] = s->absolute / metrics->weight;
        value[RBT_METRIC_HUBER] = s->huber / metrics->weight;
        value[RBT_METRIC_R2] = s->scatter > 0 ? 1 - s->squares / s->scatter : NAN;
    }
    for (unsigned i = 0; i < RBT_METRIC_COUNT; i++)
        if (!wanted(s, (rbt_metric)i))
            value[i] = NAN;
    return RBT_OK;
}

rbt_err rbt_metrics_compute(const rbt_trained *trained, const rbt_data *data, unsigned want, rbt_metrics *metrics,
                            rbt_error *error)
{
    rbt_metrics m;
    rbt_metrics_init(&m, trained, want);
    rbt_err err = rbt_metrics_add(&m, trained, data, error);
    if (err == RBT_OK)
        err = rbt_metrics_finish(&m, error);
    if (err == RBT_OK)
        *metrics = m;
    else
        rbt_metrics_deinit(&m);
    return err;
}

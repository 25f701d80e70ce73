/* Small problems, their optima, and training on them. Contract in problems.h. */
#include "unit/problems.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/data.h"
#include "model/link.h"
#include "model/model.h"
#include "solve/newton.h"
#include "solve/rate.h"

static double class_labels[TEST_CLASSES] = {0, 1, 2, 3};

/* ------------------------------------------------------------------------------------------------------ making */

static bool is(const test_kind *kind, const char *model)
{
    return strcmp(kind->model, model) == 0;
}

/* The label of a row whose decision values are z. */
static double label_of(const test_kind *kind, const double *z, size_t row, rbt_rng *rng)
{
    size_t best = 0;
    if (is(kind, "linear") || is(kind, "huber"))
        return z[0] + kind->noise * rbt_rng_normal(rng) + (is(kind, "huber") && row % 10 == 0 ? 30 : 0);
    if (!is(kind, "softmax"))
        return z[0] + kind->noise * rbt_rng_normal(rng) > 0 ? 1 : 0;
    for (size_t c = 1; c < (kind->classes > 0 ? kind->classes : TEST_CLASSES); c++)
        if (z[c] + kind->noise * rbt_rng_normal(rng) > z[best])
            best = c;
    return (double)best;
}

static void fill_rows(test_problem *p, const test_kind *kind, const double *truth)
{
    rbt_data *d = &p->data;
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 1);
    double unit = 2 / sqrt(kind->density * (double)kind->cols), sum = 0;
    for (size_t r = 0; r < kind->rows; r++) {
        double z[TEST_CLASSES];
        for (size_t c = 0; c < TEST_CLASSES; c++)
            z[c] = 0.5 - 0.4 * (double)c;
        for (size_t j = 0; j < kind->cols; j++) {
            double x = kind->mean + rbt_rng_normal(&rng);
            if (rbt_rng_f64(&rng) >= kind->density)
                continue;
            for (size_t c = 0; c < TEST_CLASSES; c++)
                z[c] += x * truth[j * TEST_CLASSES + c] * unit;
            d->index[d->nnz] = (uint32_t)j;
            d->value[d->nnz++] =
                (float)(x * (kind->spread > 0 ? pow(kind->spread, (double)j / (double)kind->cols) : 1));
        }
        d->start[r + 1] = d->nnz;
        d->label[r] = (float)label_of(kind, z, r, &rng);
        if (kind->weights)
            sum += (double)(d->weight[r] = (float)(0.1 + 3 * rbt_rng_f64(&rng)));
    }
    for (size_t r = 0; kind->weights && r < kind->rows; r++)
        d->weight[r] = (float)((double)d->weight[r] * (double)kind->rows / sum);
}

void test_problem_init(test_problem *p, const test_kind *kind)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    const rbt_model *model = rbt_model_find(kind->model);
    double *truth = rbt_alloc(kind->cols * TEST_CLASSES, sizeof *truth);
    assert_non_null(model);
    *p = (test_problem){.shape = {.cols = kind->cols, .bias = !kind->no_bias, .delta = 1}};
    assert_int_equal(rbt_data_alloc(kind->rows, kind->rows * kind->cols, &p->data, NULL), RBT_OK);
    p->data.rows = kind->rows;
    p->data.cols = kind->cols;
    if (kind->weights)
        p->data.weight = rbt_alloc(kind->rows, sizeof *p->data.weight);
    for (size_t i = 0; i < kind->cols * TEST_CLASSES; i++)
        truth[i] = i / TEST_CLASSES % 3 == 2 ? 0 : rbt_rng_normal(&rng); /* some features mean nothing */
    fill_rows(p, kind, truth);
    p->shape.classes = is(kind, "softmax")              ? (kind->classes > 0 ? kind->classes : TEST_CLASSES)
                       : rbt_model_is_classifier(model) ? 2
                                                        : 0;
    p->shape.labels = p->shape.classes > 0 ? class_labels : NULL;
    p->problem = rbt_problem_of(model, &p->shape, &p->data, kind->l1, kind->l2);
    rbt_free(truth);
}

void test_problem_deinit(test_problem *p)
{
    rbt_data_deinit(&p->data);
}

rbt_team *make_team(uint32_t threads)
{
    rbt_team *team = NULL;
    assert_int_equal(rbt_team_create(threads, &team, NULL), RBT_OK);
    return team;
}

bool within(double a, double b, double share)
{
    bool good = fabs(a - b) <= share * fabs(b);
    if (!good)
        print_message("%.9g is not within %g of %.9g: off by %.3g\n", a, share, b, (a - b) / fabs(b));
    return good;
}

/* ---------------------------------------------------------------------------------------------------- optima */

/* No curvature of the mean loss is larger than the mean of the rows' squares times the loss's own. */
static double steepness(const rbt_problem *problem)
{
    const rbt_data *d = problem->data;
    double sum = 0, steepest = problem->model->link != NULL ? problem->model->link->steepest : 0.5;
    for (size_t r = 0; r < d->rows; r++) {
        double squares = problem->shape->bias ? 1 : 0;
        for (size_t i = d->start[r]; i < d->start[r + 1]; i++)
            squares += (double)d->value[i] * (double)d->value[i];
        sum += squares * (d->weight != NULL ? (double)d->weight[r] : 1);
    }
    return steepest * sum / (double)d->rows + problem->l2;
}

static double objective_of(const rbt_problem *problem, const float *w)
{
    rbt_team *team = make_team(1);
    double objective = rbt_problem_objective(problem, w, team);
    rbt_team_destroy(team);
    return objective;
}

double reference_optimum(const rbt_problem *problem, float *out)
{
    size_t n = problem->n, rows = problem->data->rows;
    float *w = rbt_alloc(n, sizeof *w), *ahead = rbt_alloc(n, sizeof *ahead), *g = rbt_alloc(n, sizeof *g);
    uint32_t *all = rbt_alloc(rows, sizeof *all);
    double step = 1 / steepness(problem), speed = 1, objective;
    for (size_t r = 0; r < rows; r++)
        all[r] = (uint32_t)r;
    for (int i = 0; i < 2500; i++) {
        double next = (1 + sqrt(1 + 4 * speed * speed)) / 2, push = (speed - 1) / next, uphill = 0;
        memset(g, 0, n * sizeof *g);
        (void)problem->model->gradient(problem->shape, problem->data, all, rows, ahead, g);
        for (size_t j = 0; j < n; j++) {
            bool free = j >= problem->weights;
            double to =
                (double)ahead[j] - step * ((double)g[j] / (double)rows + (free ? 0 : problem->l2 * (double)ahead[j]));
            double by = free ? 0 : step * problem->l1, was = (double)w[j];
            to = to > by ? to - by : to < -by ? to + by : 0;
            uphill += ((double)ahead[j] - to) * (to - was);
            w[j] = (float)to;
            ahead[j] = (float)(to + push * (to - was));
        }
        speed = uphill > 0 ? 1 : next; /* starts anew when the momentum points uphill */
    }
    objective = objective_of(problem, w);
    if (out != NULL)
        memcpy(out, w, n * sizeof *w);
    rbt_free(w);
    rbt_free(ahead);
    rbt_free(g);
    rbt_free(all);
    return objective;
}

static double dot_rows(const rbt_data *d, size_t r, size_t s)
{
    double sum = 0;
    for (size_t i = d->start[r], k = d->start[s]; i < d->start[r + 1] && k < d->start[s + 1];) {
        if (d->index[i] == d->index[k])
            sum += (double)d->value[i++] * (double)d->value[k++];
        else if (d->index[i] < d->index[k])
            i++;
        else
            k++;
    }
    return sum;
}

/* The objective of dual variables b[r] = y a weight / (l2 rows), with the best bias among those that put a row on its
 * margin. */
static double svm_objective(const rbt_problem *p, const double *z, double squares)
{
    const rbt_data *d = p->data;
    double best = INFINITY;
    for (size_t s = 0; s < (p->shape->bias ? d->rows : 1); s++) {
        double bias = p->shape->bias ? (d->label[s] > 0 ? 1 : -1) - z[s] : 0, loss = 0;
        for (size_t r = 0; r < d->rows; r++) {
            double short_by = 1 - (d->label[r] > 0 ? 1 : -1) * (z[r] + bias);
            loss += short_by > 0 ? short_by * (d->weight != NULL ? (double)d->weight[r] : 1) : 0;
        }
        loss = loss / (double)d->rows + p->l2 / 2 * squares;
        best = loss < best ? loss : best;
    }
    return best;
}

/* Minimises 1/2 sum K b b - sum y b with b between 0 and y * most, and the sum of the b zero when there is a bias. */
double reference_svm(const rbt_problem *p)
{
    const rbt_data *d = p->data;
    size_t n = d->rows;
    double *K = rbt_alloc(n * n, sizeof *K), *b = rbt_alloc(n, sizeof *b), *z = rbt_alloc(n, sizeof *z), squares = 0;
    for (size_t r = 0; r < n; r++)
        for (size_t s = 0; s < n; s++)
            K[r * n + s] = dot_rows(d, r, s);
    for (int step = 0; step < 200000; step++) {
        size_t up = n, down = n;
        for (size_t r = 0; r < n; r++) { /* whom it pays most to raise, and to lower */
            double y = d->label[r] > 0 ? 1 : -1, weight = d->weight != NULL ? (double)d->weight[r] : 1;
            double most = weight / (p->l2 * (double)n), low = y > 0 ? 0 : -most, high = y > 0 ? most : 0;
            if (b[r] < high && (up == n || y - z[r] > (d->label[up] > 0 ? 1 : -1) - z[up]))
                up = r;
            if (b[r] > low && (down == n || y - z[r] < (d->label[down] > 0 ? 1 : -1) - z[down]))
                down = r;
        }
        double gain_up = (d->label[up] > 0 ? 1 : -1) - z[up], gain_down = (d->label[down] > 0 ? 1 : -1) - z[down];
        bool pair = p->shape->bias, raise = pair || gain_up > -gain_down;
        double gain = pair ? gain_up - gain_down : raise ? gain_up : -gain_down;
        size_t a = raise ? up : down;
        double bend = pair ? K[up * n + up] + K[down * n + down] - 2 * K[up * n + down] : K[a * n + a];
        double move = gain / (bend > 1e-12 ? bend : 1e-12);
        if (gain < 1e-9)
            break;
        for (int end = 0; end < 2; end++) { /* not beyond the bounds */
            size_t r = end == 0 ? up : down;
            double most = (d->weight != NULL ? (double)d->weight[r] : 1) / (p->l2 * (double)n);
            double room = end == 0 ? (d->label[r] > 0 ? most : 0) - b[r] : b[r] - (d->label[r] > 0 ? 0 : -most);
            if ((pair || r == a) && (pair || raise == (end == 0)) && move > room)
                move = room;
        }
        if (pair || raise)
            b[up] += move;
        if (pair || !raise)
            b[down] -= move;
        for (size_t r = 0; r < n; r++)
            z[r] += move * ((pair || raise ? K[up * n + r] : 0) - (pair || !raise ? K[down * n + r] : 0));
    }
    for (size_t r = 0; r < n; r++)
        squares += b[r] * z[r];
    double objective = svm_objective(p, z, squares);
    rbt_free(K);
    rbt_free(b);
    rbt_free(z);
    return objective;
}

/* ---------------------------------------------------------------------------------------------------- training */

static double rate_of(const void *context, uint64_t clock)
{
    const test_training *t = context;
    return t->rate * (t->decay > 0 ? pow(t->decay, (double)clock) : 1);
}

static bool note(void *context, const rbt_shared_pass *pass)
{
    test_training *t = context;
    if (pass->w != NULL && t->looks < sizeof t->objective / sizeof t->objective[0]) {
        t->objective[t->looks] = pass->objective;
        t->gap[t->looks++] = pass->gap;
    }
    bool is_close = t->close > 0 && pass->w != NULL && pass->gap <= t->close * pass->objective;
    return pass->clock != t->stop_after && !is_close;
}

static double note_thread(const void *context, uint32_t worker, uint64_t clock)
{
    test_training *const *t = context;
    (void)clock;
    if (worker == 1 && !pthread_equal(pthread_self(), (*t)->caller))
        (*t)->together++;
    return 1;
}

double train(const rbt_problem *problem, test_training *t, float *out)
{
    rbt_team *team = make_team(t->workers);
    rbt_shared_worker *reports = rbt_alloc(t->workers, sizeof *reports);
    float *w = rbt_alloc(problem->n, sizeof *w);
    rbt_shards shards;
    rbt_error error = {RBT_OK, ""};
    rbt_shared_options options = {.access = t->access,
                                  .optimizer = t->optimizer,
                                  .average = t->average,
                                  .momentum = 0.9,
                                  .rate = rate_of,
                                  .rate_context = t,
                                  .seed = 7,
                                  .clocks = t->passes,
                                  .close = t->prove ? INFINITY : t->close,
                                  .slow = note_thread,
                                  .slow_context = &t,
                                  .eval_every = t->eval_last        ? 0
                                                : t->eval_every > 0 ? t->eval_every
                                                                    : 1};
    if (t->rate == 0 && t->optimizer < RBT_OPTIMIZER_SDCA)
        assert_int_equal(rbt_rate_find(problem, t->optimizer, 0.9, 1, 7, &t->rate, &error), RBT_OK);
    assert_int_equal(rbt_shards_create(problem->data, t->workers, 7, &shards, &error), RBT_OK);
    t->looks = 0;
    t->together = 0;
    t->caller = pthread_self();
    assert_int_equal(rbt_shared_train(problem, &options, &shards, team, w, reports, note, t, &error), RBT_OK);
    t->outcome = rbt_problem_objective(problem, w, team);
    if (out != NULL)
        memcpy(out, w, problem->n * sizeof *w);
    rbt_shards_destroy(&shards);
    rbt_team_destroy(team);
    rbt_free(reports);
    rbt_free(w);
    return t->outcome;
}

double newton_optimum(const rbt_problem *problem, float *w)
{
    test_training t = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = 1, .passes = 40};
    return train(problem, &t, w);
}

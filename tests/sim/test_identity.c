/* Proves that one worker and one server train exactly like a plain loop: with sum, con and dyn like mini-batch gradient
 * descent, with adagrad like sequential AdaGrad, bit for bit, on both runtimes, whatever the batches, the clocks, the
 * staleness, the regularisation and the step sizes are.
 *
 * The loops below know nothing of tables, servers or messages, and share nothing with job/gradient.c but the model's
 * gradient and the order of the rows. */
#include "sim/jobs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "math/functions.h"
#include "data/shard.h"

#define ROWS 203

/* What the loop is told: the same as the job's line, worked out by hand. */
typedef struct recipe {
    const char *line;
    size_t batch;
    uint64_t batches_per_clock;
    uint64_t clocks;
    double rate;
    double root;  /* rate / sqrt(root * clock + 1) */
    double power; /* rate * power^clock */
    double l2;
    bool bias;
    double filter;
    float factor; /* con: of every update */
    float momentum;
} recipe;

typedef struct problem {
    rbt_data data;
    rbt_shards shards;
    rbt_shape shape;
    const rbt_model *model;
    size_t n;
    float *w;
    float *local; /* as the steps of one clock change it */
    float *u;
    float *g;
} problem;

static void problem_init(problem *p, const recipe *plain, uint64_t seed)
{
    rbt_error error = {0};

    memset(p, 0, sizeof *p);
    p->model = rbt_model_find("lr");
    assert_int_equal(rbt_data_read("data.svm", &p->data, &error), RBT_OK);
    assert_int_equal(p->model->prepare(&p->data, &p->shape, &error), RBT_OK);
    assert_int_equal(rbt_shape_apply(&p->shape, true, &p->data, &error), RBT_OK);
    assert_int_equal(rbt_shards_create(&p->data, 1, seed, &p->shards, &error), RBT_OK);
    p->shape.bias = plain->bias;
    p->n = p->model->size(&p->shape);
    p->w = calloc(p->n, sizeof *p->w);
    p->local = calloc(p->n, sizeof *p->local);
    p->u = calloc(p->n, sizeof *p->u);
    p->g = calloc(p->n, sizeof *p->g);
}

static void problem_deinit(problem *p)
{
    free(p->w);
    free(p->local);
    free(p->u);
    free(p->g);
    rbt_shards_destroy(&p->shards);
    rbt_data_deinit(&p->data);
    rbt_shape_deinit(&p->shape);
}

/* The gradient summed over the k-th batch since the beginning goes to p->g; returns the batch's rows. */
static size_t batch_gradient(problem *p, const recipe *plain, uint64_t k, const float *at)
{
    size_t batches = (ROWS + plain->batch - 1) / plain->batch, first = (size_t)(k % batches) * plain->batch;
    size_t n = ROWS - first < plain->batch ? ROWS - first : plain->batch;

    memset(p->g, 0, p->n * sizeof *p->g);
    p->model->gradient(&p->shape, &p->data, p->shards.order + first, n, at, p->g);
    return n;
}

static double rate_of(const recipe *plain, uint64_t clock)
{
    double rate = plain->rate;

    if (plain->root > 0)
        return rate / sqrt(plain->root * (double)clock + 1);
    for (uint64_t i = 0; plain->power > 0 && i < clock; i++)
        rate *= plain->power;
    return rate;
}

/* Batches of one row: a clock's steps on the row's own features, the bias, in double until the clock ends, in smaller steps; the update is
 * what has changed. */
static void walk_clock(problem *p, const recipe *plain, uint64_t clock)
{
    float rate = (float)rate_of(plain, clock);
    double bias = plain->bias ? (double)p->local[p->n - 1] : 0, square = 0;

    assert_true(plain->l2 == 0);
    for (size_t i = 0; i < p->data.nnz; i++)
        square += (double)p->data.value[i] * (double)p->data.value[i];
    square = square > (double)p->data.nnz ? 1 : square / (double)p->data.nnz;
    for (uint64_t k = 0; k < plain->batches_per_clock; k++) {
        size_t row = p->shards.order[(clock * plain->batches_per_clock + k) % ROWS];
        size_t first = p->data.start[row], end = p->data.start[row + 1];
        double y = p->data.label[row] > 0 ? 1 : -1;
        float lane[4] = {0, 0, 0, 0};

        for (size_t i = first; i < end; i++)
            lane[(i - first) % 4] += p->data.value[i] * p->local[p->data.index[i]];
        double z = bias + (double)((lane[0] + lane[1]) + (lane[2] + lane[3])), slope = -y * rbt_sigmoid(-y * z);
        for (size_t i = first; i < end; i++)
            p->local[p->data.index[i]] -= rate * (float)slope * p->data.value[i];
        bias -= rate_of(plain, clock) * square * slope;
        /* a pass over the rows ends: the bias is written */
        if ((clock * plain->batches_per_clock + k) % ROWS == ROWS - 1)
            bias = (double)(float)bias;
    }
    if (plain->bias)
        p->local[p->n - 1] = (float)bias;
    for (size_t i = 0; i < p->n; i++)
        p->u[i] = p->local[i] - p->w[i];
}

/* w -= rate * (mean gradient + l2 * w), batch after batch; a clock's steps together, without the small ones, are what
 * is added to the parameters when the clock ends. */
static uint64_t descend(const recipe *plain, uint64_t seed)
{
    problem p;
    float *velocity;
    uint64_t hash;

    problem_init(&p, plain, seed);
    velocity = calloc(p.n, sizeof *velocity);
    for (uint64_t clock = 0; clock < plain->clocks; clock++) {
        memcpy(p.local, p.w, p.n * sizeof *p.w);
        memset(p.u, 0, p.n * sizeof *p.u);
        if (plain->batch == 1)
            walk_clock(&p, plain, clock);
        for (uint64_t k = 0; plain->batch > 1 && k < plain->batches_per_clock; k++) {
            size_t n = batch_gradient(&p, plain, clock * plain->batches_per_clock + k, p.local);
            float step = (float)(-rate_of(plain, clock) / (double)n), l2 = (float)(plain->l2 * (double)n);

            for (size_t i = 0; i < p.n; i++) {
                bool is_bias = plain->bias && i == p.n - 1;
                float d = step * (p.g[i] + (is_bias ? 0 : l2) * p.local[i]);

                p.local[i] += d;
                p.u[i] += d;
            }
        }
        for (size_t i = 0; plain->momentum > 0 && i < p.n; i++) {
            velocity[i] *= plain->momentum;
            p.w[i] += velocity[i];
            velocity[i] += plain->factor * p.u[i];
        }
        for (size_t i = 0; i < p.n; i++)
            if (!(fabsf(p.u[i]) < (float)plain->filter))
                p.w[i] += plain->factor * p.u[i];
    }
    hash = rbt_hash(p.w, p.n * sizeof *p.w, 0);
    free(velocity);
    problem_deinit(&p);
    return hash;
}

/* Sequential AdaGrad on the mean gradient of a clock's batches. */
static uint64_t adagrad(const recipe *plain, uint64_t seed)
{
    problem p;
    float *squares;
    uint64_t hash;

    problem_init(&p, plain, seed);
    squares = calloc(p.n, sizeof *squares);
    for (uint64_t clock = 0; clock < plain->clocks; clock++) {
        memset(p.u, 0, p.n * sizeof *p.u);
        for (uint64_t k = 0; k < plain->batches_per_clock; k++) {
            size_t n = batch_gradient(&p, plain, clock * plain->batches_per_clock + k, p.w);
            float share = (float)(1 / ((double)n * (double)plain->batches_per_clock));
            float l2 = (float)(plain->l2 / (double)plain->batches_per_clock);

            for (size_t i = 0; i < p.n; i++) {
                p.u[i] += share * p.g[i];
                if (!plain->bias || i < p.n - 1)
                    p.u[i] += l2 * p.w[i];
            }
        }
        for (size_t i = 0; i < p.n; i++) {
            squares[i] += p.u[i] * p.u[i];
            if (p.u[i] != 0)
                p.w[i] -= (float)plain->rate * p.u[i] / (sqrtf(squares[i]) + 1e-8f);
        }
    }
    hash = rbt_hash(p.w, p.n * sizeof *p.w, 0);
    free(squares);
    problem_deinit(&p);
    return hash;
}

/* Batches of the worker's rows, clocks, steps, with what they mean. The last batch of a pass is a short one. */
static const recipe SETTINGS[] = {
    {"l2=0 batch=20 clocks=9 lr=0.5", 20, 11, 9, 0.5, .bias = true},
    {"batch=10% clocks=5 lr=0.5 l2=0.01", 20, 11, 5, 0.5, .l2 = 0.01, .bias = true},
    {"l2=0 batch=7 batches-per-clock=3 clocks=40 lr=1 decay=sqrt:0.3", 7, 3, 40, 1, .root = 0.3, .bias = true},
    {"batch=50 batches-per-clock=1 clocks=23 lr=2 decay=mult:0.9 l2=0.001 no-bias=true", 50, 1, 23, 2, .power = 0.9,
     .l2 = 0.001},
    {"l2=0 batch=100% clocks=12 lr=3 no-bias=true", 203, 1, 12, 3, .bias = false},
    {"l2=0 batch=1 batches-per-clock=17 epochs=2 lr=0.1", 1, 17, 24, 0.1, .bias = true},
};

static const char *const SYNCS[] = {"sync=bsp", "sync=ssp staleness=0", "sync=ssp staleness=3", "sync=asp"};
static const char *const RUNTIMES[] = {"runtime=sim", "runtime=local", "runtime=sim encode=true"};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Every setting under every synchronisation on every runtime equals the loop. */
static void compare_with(const char *rule, double filter, float factor, float momentum,
                         uint64_t (*loop)(const recipe *, uint64_t), size_t syncs)
{
    for (size_t i = 0; i < COUNT(SETTINGS); i++) {
        recipe setting = SETTINGS[i];
        uint64_t expected;

        if (loop == adagrad && (setting.root > 0 || setting.power > 0))
            continue; /* it shrinks its own steps */
        setting.filter = filter;
        setting.factor = factor;
        setting.momentum = momentum;
        expected = loop(&setting, 5);
        for (size_t s = 0; s < syncs; s++)
            for (size_t r = 0; r < COUNT(RUNTIMES); r++) {
                uint64_t got = job_hash("data=data.svm workers=1 servers=1 seed=5 eval-every=0 %s %s %s %s",
                                        setting.line, rule, SYNCS[s], RUNTIMES[r]);

                if (got != expected)
                    fail_msg("%s %s %s %s differs from the plain loop", setting.line, rule, SYNCS[s], RUNTIMES[r]);
            }
    }
}

static void compare(const char *rule, double filter, float factor, uint64_t (*loop)(const recipe *, uint64_t),
                    size_t syncs)
{
    compare_with(rule, filter, factor, 0, loop, syncs);
}

static void one_worker_with_sum_equals_a_plain_loop(void **state)
{
    (void)state;
    compare("rule=sum", 0, 1, descend, COUNT(SYNCS));
}

static void one_worker_with_con_equals_a_plain_loop(void **state)
{
    (void)state;
    compare("rule=con", 0, 1, descend, COUNT(SYNCS));
    compare("rule=con global-rate=0.25", 0, 0.25f, descend, 2); /* a cache would show the worker its whole update */
}

static void one_worker_with_dyn_equals_a_plain_loop(void **state)
{
    (void)state;
    compare("rule=dyn", 1e-6, 1, descend, COUNT(SYNCS));
    compare("rule=dyn partition-sync=on", 1e-6, 1, descend, COUNT(SYNCS));
}

static void small_entries_are_left_out_and_that_is_visible(void **state)
{
    recipe all = SETTINGS[0], large;

    (void)state;
    compare("rule=dyn filter=threshold=0.01", 0.01, 1, descend, COUNT(SYNCS));
    all.factor = 1;
    large = all;
    large.filter = 0.01;
    assert_int_not_equal(descend(&all, 5), descend(&large, 5));
}

static void one_worker_with_adagrad_equals_sequential_adagrad(void **state)
{
    (void)state;
    compare("rule=adagrad", 0, 1, adagrad, COUNT(SYNCS));
}

/* One worker always computes from the newest version: there is nothing to revise. */
static void one_worker_with_adarev_equals_sequential_adagrad(void **state)
{
    (void)state;
    compare("rule=adarev", 0, 1, adagrad, COUNT(SYNCS));
}

/* Nor is there when its gradients go out row by row before the clock ends. */
static void early_sends_of_adarev_equal_sequential_adagrad(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(SETTINGS); i++) {
        recipe setting = SETTINGS[i];

        if (setting.root > 0 || setting.power > 0)
            continue;
        setting.factor = 1;
        for (size_t r = 0; r < COUNT(RUNTIMES); r++)
            assert_int_equal(job_hash("data=data.svm workers=1 servers=1 seed=5 eval-every=0 sync=ssp staleness=2 "
                                      "rule=adarev budget=50Mbit %s %s",
                                      setting.line, RUNTIMES[r]),
                             adagrad(&setting, 5));
    }
}

static void one_worker_with_momentum_equals_a_plain_loop(void **state)
{
    (void)state;
    compare_with("rule=momentum momentum=0.75", 0, 1, 0.75f, descend, 2); /* a cache would lack the velocity */
}

static void another_seed_is_another_result(void **state)
{
    recipe setting = SETTINGS[0];

    (void)state;
    setting.factor = 1;
    assert_int_not_equal(descend(&setting, 5), descend(&setting, 6));
    assert_int_equal(job_hash("data=data.svm workers=1 sync=bsp rule=sum seed=6 %s", setting.line),
                     descend(&setting, 6));
}

static int write_data(void **state)
{
    (void)state;
    data_write("data.svm", ROWS, 61, 7, 11);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_worker_with_sum_equals_a_plain_loop),
        cmocka_unit_test(one_worker_with_con_equals_a_plain_loop),
        cmocka_unit_test(one_worker_with_dyn_equals_a_plain_loop),
        cmocka_unit_test(small_entries_are_left_out_and_that_is_visible),
        cmocka_unit_test(one_worker_with_adagrad_equals_sequential_adagrad),
        cmocka_unit_test(one_worker_with_adarev_equals_sequential_adagrad),
        cmocka_unit_test(early_sends_of_adarev_equal_sequential_adagrad),
        cmocka_unit_test(one_worker_with_momentum_equals_a_plain_loop),
        cmocka_unit_test(another_seed_is_another_result),
    };

    return cmocka_run_group_tests(tests, write_data, NULL);
}

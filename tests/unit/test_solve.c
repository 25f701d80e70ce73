/* Proves src/solve: rows, teams and their sums, gradient steps of every kind, the search for a step size, Newton's method.
 * Dual coordinate ascent is in test_sdca.c, several threads at once in test_shared_local.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "solve/columns.h"
#include "solve/newton.h"
#include "solve/rate.h"
#include "unit/problems.h"

static const char *const SMOOTH[] = {"lr", "svm2", "linear", "huber", "softmax"};
#define SMOOTH_COUNT (sizeof SMOOTH / sizeof SMOOTH[0])

static test_kind kind_of(const char *model)
{
    return (test_kind){.model = model, .rows = 300, .cols = 20, .density = 0.3, .noise = 1, .l2 = 0.01};
}

/* -------------------------------------------------------------------------------------------------------- rows */

static void rows_are_multiplied_and_added_as_the_definition_says(void **state)
{
    uint32_t index[11];
    float value[11], w[40], many[120], scale[3] = {0.5F, -2, 3};
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 0);
    (void)state;
    for (size_t n = 0; n <= 11; n++) {
        rbt_row row = {index, value, n};
        double dot = 0, z[3] = {1, 2, 3}, wanted[3] = {1, 2, 3};
        for (size_t i = 0; i < n; i++) {
            index[i] = (uint32_t)(3 * i + 1);
            value[i] = (float)rbt_rng_normal(&rng);
        }
        for (size_t i = 0; i < 40; i++)
            w[i] = (float)rbt_rng_normal(&rng);
        for (size_t i = 0; i < 120; i++)
            many[i] = (float)rbt_rng_normal(&rng);
        for (size_t i = 0; i < n; i++) {
            dot += (double)value[i] * (double)w[index[i]];
            for (size_t c = 0; c < 3; c++)
                wanted[c] += (double)value[i] * (double)many[index[i] * 3 + c];
        }
        assert_true(fabs((double)rbt_row_dot(row, w) - dot) < 1e-5);
        rbt_row_dot_many(row, many, 3, z);
        for (size_t c = 0; c < 3; c++)
            assert_true(fabs(z[c] - wanted[c]) < 1e-12);
        float before[40], many_before[120];
        memcpy(before, w, sizeof w);
        memcpy(many_before, many, sizeof many);
        rbt_row_add(row, 2, w);
        rbt_row_add_many(row, scale, 3, many);
        for (size_t i = 0; i < n; i++) {
            before[index[i]] += 2 * value[i];
            for (size_t c = 0; c < 3; c++)
                many_before[index[i] * 3 + c] += scale[c] * value[i];
        }
        assert_memory_equal(before, w, sizeof w);
        assert_memory_equal(many_before, many, sizeof many);
    }
}

static void a_row_shows_only_the_features_the_model_knows(void **state)
{
    size_t start[] = {0, 3, 3};
    uint32_t index[] = {0, 4, 9};
    float value[] = {1, 2, 3};
    rbt_data d = {.rows = 2, .cols = 10, .nnz = 3, .start = start, .index = index, .value = value};
    (void)state;
    assert_int_equal(rbt_row_of(&d, 0, 10).n, 3);
    assert_int_equal(rbt_row_of(&d, 0, 9).n, 2);
    assert_int_equal(rbt_row_of(&d, 0, 0).n, 0);
    assert_int_equal(rbt_row_of(&d, 1, 10).n, 0);
}

/* ------------------------------------------------------------------------------------------------------- teams */

static void count_me(void *context, uint32_t thread)
{
    int *calls = context;
    calls[thread]++;
}

static void every_thread_of_a_team_works_once_per_run(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 5; threads++) {
        int calls[5] = {0};
        rbt_team *team = make_team(threads);
        assert_int_equal(rbt_team_threads(team), threads);
        for (int run = 0; run < 50; run++)
            rbt_team_run(team, count_me, calls);
        for (uint32_t t = 0; t < 5; t++)
            assert_int_equal(calls[t], t < threads ? 50 : 0);
        rbt_team_destroy(team);
    }
    rbt_team_destroy(NULL);
}

static double sum_of_sines(void *context, size_t first, size_t n)
{
    double sum = 0;
    (void)context;
    for (size_t i = first; i < first + n; i++)
        sum += sin((double)i) * 1e3 / (double)(i + 1);
    return sum;
}

static void a_sum_has_the_same_bits_whatever_the_number_of_threads(void **state)
{
    static const size_t ROWS[] = {0, 1, RBT_BLOCK_ROWS - 1, RBT_BLOCK_ROWS, RBT_BLOCK_ROWS + 1, 50000};
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        double first = 0;
        for (uint32_t threads = 1; threads <= 4; threads++) {
            rbt_team *team = make_team(threads);
            double sum = rbt_team_sum(team, ROWS[i], sum_of_sines, NULL);
            first = threads == 1 ? sum : first;
            assert_memory_equal(&sum, &first, sizeof sum);
            assert_true(fabs(sum - sum_of_sines(NULL, 0, ROWS[i])) <= 1e-9);
            rbt_team_destroy(team);
        }
    }
}

static void the_objective_counts_both_penalties_and_no_bias(void **state)
{
    test_kind kind = kind_of("linear");
    test_problem p;
    float w[21] = {0};
    (void)state;
    kind.l1 = 0.1;
    kind.l2 = 0.5;
    test_problem_init(&p, &kind);
    w[0] = 3;
    w[1] = -2;
    w[20] = 100;
    assert_int_equal(p.problem.n, 21);
    assert_int_equal(p.problem.weights, 20);
    assert_true(within(rbt_problem_penalty(&p.problem, w), 0.25 * 13 + 0.1 * 5, 1e-9));
    test_problem_deinit(&p);
}

/* --------------------------------------------------------------------------------------------- gradient steps */

static const rbt_optimizer GRADIENT[] = {RBT_OPTIMIZER_SGD, RBT_OPTIMIZER_MOMENTUM, RBT_OPTIMIZER_ADAGRAD,
                                         RBT_OPTIMIZER_ADAM, RBT_OPTIMIZER_ASGD};
#define GRADIENT_COUNT (sizeof GRADIENT / sizeof GRADIENT[0])

/* The penalties are taken with the rows that have a feature: the optimum must be that of the whole objective. Features here
 * differ in how rare they are, and the penalties are strong. */
static void lazy_penalties_lead_to_the_optimum_of_the_whole_objective(void **state)
{
    (void)state;
    for (size_t m = 0; m < SMOOTH_COUNT; m++)
        for (size_t o = 0; o < 2 * GRADIENT_COUNT; o++) {
            test_kind kind = kind_of(SMOOTH[m]);
            test_training t = {.optimizer = GRADIENT[o % GRADIENT_COUNT], .workers = 1, .passes = 150, .decay = 0.94};
            test_problem p;
            kind.l2 = 0.1;
            kind.no_bias = kind.weights = o >= GRADIENT_COUNT;
            test_problem_init(&p, &kind);
            if (!within(train(&p.problem, &t, NULL), newton_optimum(&p.problem, NULL), 1e-3))
                fail_msg("%s, optimizer %d, rate %g", kind.model, (int)t.optimizer, t.rate);
            test_problem_deinit(&p);
        }
}

static void l1_by_steps_leads_to_the_optimum_of_proximal_gradients(void **state)
{
    (void)state;
    for (size_t o = 0; o < GRADIENT_COUNT; o++)
        for (unsigned variant = 0; variant < 2; variant++) {
            test_kind kind = kind_of("lr");
            test_training t = {.optimizer = GRADIENT[o], .workers = 1, .passes = 150, .decay = 0.94};
            test_problem p;
            float w[21], reference[21];
            size_t zeros = 0;
            kind.l1 = 0.03;
            kind.l2 = variant == 0 ? 0 : 0.01;
            test_problem_init(&p, &kind);
            if (!within(train(&p.problem, &t, w), reference_optimum(&p.problem, reference), 1e-3))
                fail_msg("optimizer %d, rate %g", (int)GRADIENT[o], t.rate);
            for (size_t i = 0; i < 20; i++) {
                zeros += reference[i] == 0;
                assert_true(reference[i] != 0 || fabsf(w[i]) < 5e-3F);
            }
            assert_true(zeros >= 3 && zeros <= 17);
            test_problem_deinit(&p);
        }
}

/* A penalty above every single row's slope: all weights are zero after each step. */
static void l1_makes_true_zeros(void **state)
{
    (void)state;
    for (size_t o = 0; o < GRADIENT_COUNT; o++) {
        test_kind kind = kind_of("lr");
        test_training t = {.optimizer = GRADIENT[o], .workers = 1, .passes = 3, .rate = 0.1};
        test_problem p;
        float w[21];
        kind.l1 = 5;
        test_problem_init(&p, &kind);
        (void)train(&p.problem, &t, w);
        for (size_t i = 0; i < 20; i++)
            assert_true(w[i] == 0);
        assert_true(w[20] != 0);
        test_problem_deinit(&p);
    }
}

static void every_optimizer_lowers_the_objective_of_every_loss(void **state)
{
    static const char *const MODELS[] = {"lr", "svm", "svm2", "linear", "huber", "softmax"};
    (void)state;
    for (size_t m = 0; m < sizeof MODELS / sizeof MODELS[0]; m++)
        for (size_t o = 0; o < GRADIENT_COUNT; o++)
            for (unsigned variant = 0; variant < 2; variant++) {
                test_kind kind = kind_of(MODELS[m]);
                test_training t = {.optimizer = GRADIENT[o], .workers = 1, .passes = 5};
                test_problem p;
                float zero[84] = {0};
                rbt_team *team = make_team(1);
                kind.weights = kind.no_bias = variant == 1;
                test_problem_init(&p, &kind);
                double found = train(&p.problem, &t, NULL), start = rbt_problem_objective(&p.problem, zero, team);
                if (!(found < 0.95 * start))
                    fail_msg("%s, optimizer %d: from %g to %g", MODELS[m], (int)GRADIENT[o], start, found);
                rbt_team_destroy(team);
                test_problem_deinit(&p);
            }
}

static void averaged_steps_end_with_the_mean_over_the_steps(void **state)
{
    test_kind kind = kind_of("softmax");
    test_problem p;
    float w[2][84] = {{0}}, mean[84];
    double sum[84] = {0};
    (void)state;
    test_problem_init(&p, &kind);
    for (unsigned averaged = 0; averaged < 2; averaged++) {
        rbt_sgd sgd;
        rbt_walk walk;
        rbt_walker walker;
        assert_int_equal(
            rbt_sgd_init(&sgd, &p.problem, averaged ? RBT_OPTIMIZER_ASGD : RBT_OPTIMIZER_SGD, 0, NULL, NULL), 0);
        assert_int_equal(rbt_walk_init(&walk, &p.problem, RBT_ACCESS_ALONE, 1, NULL), RBT_OK);
        rbt_sgd_attach(&sgd, &walk);
        rbt_walker_init(&walker, &walk, w[averaged], 0);
        walker.rate = 0.1;
        rbt_sgd_begin(&sgd, 0.1);
        for (uint32_t r = 0; r < 300; r++) {
            rbt_walker_rows(&walker, &r, 1, 1);
            for (size_t i = 0; averaged == 0 && i < 84; i++)
                sum[i] += (double)w[0][i];
        }
        if (averaged)
            rbt_sgd_average(&sgd, w[1], 300, mean);
        rbt_walker_deinit(&walker);
        rbt_walk_deinit(&walk);
        rbt_sgd_deinit(&sgd);
    }
    for (size_t i = 0; i < 84; i++)
        assert_true(fabs((double)mean[i] - sum[i] / 300) < 1e-5);
    test_problem_deinit(&p);
}

/* One of two threads may do nearly all rows before the other begins: the mean is over the steps there were. */
static void averaged_steps_by_threads_in_turn_have_the_same_mean(void **state)
{
    static const size_t FIRST[] = {300, 260, 64, 10};
    test_kind kind = kind_of("lr");
    test_problem p;
    (void)state;
    kind.no_bias = true; /* a thread writes it back now and then */
    test_problem_init(&p, &kind);
    float mean[5][21];
    for (size_t i = 0; i < 5; i++) { /* the last: one thread */
        size_t threads = i < 4 ? 2 : 1, first = i < 4 ? FIRST[i] : 300;
        float w[21] = {0};
        uint32_t order[300];
        rbt_sgd sgd;
        rbt_walk walk;
        rbt_walker walker[2];
        assert_int_equal(rbt_sgd_init(&sgd, &p.problem, RBT_OPTIMIZER_ASGD, 0, NULL, NULL), 0);
        assert_int_equal(rbt_walk_init(&walk, &p.problem, RBT_ACCESS_HOGWILD, (uint32_t)threads, NULL), RBT_OK);
        rbt_sgd_attach(&sgd, &walk);
        for (uint32_t r = 0; r < 300; r++)
            order[r] = r;
        for (uint32_t m = 0; m < threads; m++) {
            rbt_walker_init(&walker[m], &walk, w, m);
            walker[m].rate = 0.1;
            walker[m].step = m;
        }
        rbt_sgd_begin(&sgd, 0.1);
        rbt_walker_rows(&walker[0], order, first, 300);
        rbt_walker_rows(&walker[threads - 1], order + first, 300 - first, 300 - first);
        rbt_sgd_average(&sgd, w, 300, mean[i]);
        for (uint32_t m = 0; m < threads; m++)
            rbt_walker_deinit(&walker[m]);
        rbt_walk_deinit(&walk);
        rbt_sgd_deinit(&sgd);
    }
    for (size_t i = 0; i < 4; i++)
        assert_memory_equal(mean[i], mean[4], p.problem.n * sizeof(float));
    test_problem_deinit(&p);
}

/* The mean of averaged steps is of the last pass, however seldom one looks at it. */
static void averaged_steps_do_not_depend_on_how_often_one_looks(void **state)
{
    test_kind kind = kind_of("lr");
    float often[21], seldom[21], last[21];
    test_training t = {.optimizer = RBT_OPTIMIZER_ASGD, .workers = 1, .passes = 9, .rate = 0.1};
    test_problem p;
    (void)state;
    test_problem_init(&p, &kind);
    (void)train(&p.problem, &t, often);
    t.eval_every = 4;
    (void)train(&p.problem, &t, seldom);
    t.eval_last = true;
    (void)train(&p.problem, &t, last);
    assert_memory_equal(often, last, sizeof often);
    assert_memory_equal(often, seldom, sizeof often);
    test_problem_deinit(&p);
}

/* Whoever stops a training between two looks gets the parameters of that moment. */
static void stopping_between_two_looks_keeps_what_was_learned(void **state)
{
    static const rbt_optimizer ALL[] = {RBT_OPTIMIZER_SGD, RBT_OPTIMIZER_ASGD, RBT_OPTIMIZER_SDCA,
                                        RBT_OPTIMIZER_NEWTON};
    (void)state;
    for (size_t o = 0; o < 4; o++)
        for (unsigned variant = 0; variant < 2; variant++) {
            test_kind kind = kind_of("lr");
            float stopped[21], ended[21];
            test_training t = {.optimizer = ALL[o], .workers = 1, .passes = 3, .rate = 0.1, .eval_last = true};
            test_problem p;
            kind.l1 = variant == 1 && ALL[o] != RBT_OPTIMIZER_NEWTON ? 0.01 : 0;
            test_problem_init(&p, &kind);
            (void)train(&p.problem, &t, ended);
            t.passes = 1000;
            t.stop_after = 3;
            (void)train(&p.problem, &t, stopped);
            assert_int_equal(t.looks, 1); /* once, when it ended */
            assert_true(within(t.objective[0], t.outcome, 1e-6));
            assert_memory_equal(stopped, ended, sizeof ended);
            test_problem_deinit(&p);
        }
}

static void the_rate_found_neither_blows_up_nor_crawls_on_badly_scaled_data(void **state)
{
    static const double SPREAD[] = {1, 1e4, 1e-4};
    (void)state;
    for (size_t m = 0; m < SMOOTH_COUNT; m++)
        for (size_t s = 0; s < 3; s++)
            for (size_t o = 0; o < GRADIENT_COUNT; o++) {
                test_kind kind = kind_of(SMOOTH[m]);
                test_training t = {.optimizer = GRADIENT[o], .workers = 1, .passes = 5, .decay = 0.8};
                test_problem p;
                float zero[84] = {0};
                rbt_team *team = make_team(1);
                kind.spread = SPREAD[s];
                kind.l2 = 1e-3;
                test_problem_init(&p, &kind);
                double found = train(&p.problem, &t, NULL), start = rbt_problem_objective(&p.problem, zero, team);
                if (!(found < 0.97 * start))
                    fail_msg("%s, spread %g, optimizer %d: from %g to %g with rate %g", kind.model, kind.spread,
                             (int)GRADIENT[o], start, found, t.rate);
                rbt_team_destroy(team);
                test_problem_deinit(&p);
            }
}

/* ------------------------------------------------------------------------------------------------------ newton */

static void newton_reaches_the_optimum_of_every_smooth_loss_and_never_rises(void **state)
{
    (void)state;
    for (size_t m = 0; m < SMOOTH_COUNT; m++)
        for (unsigned variant = 0; variant < 4; variant++) {
            test_kind kind = kind_of(SMOOTH[m]);
            test_training t = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = 1, .passes = 25};
            test_problem p;
            kind.no_bias = variant & 1;
            kind.weights = variant & 2;
            test_problem_init(&p, &kind);
            assert_true(within(train(&p.problem, &t, NULL), reference_optimum(&p.problem, NULL), 1e-6));
            for (size_t i = 1; i < t.looks; i++)
                assert_true(t.objective[i] <= t.objective[i - 1] * (1 + 1e-6));
            test_problem_deinit(&p);
        }
}

/* Gauss: A x = b for a symmetric A above 0, in place; b becomes x. */
static void solve(double *A, double *b, size_t n)
{
    for (size_t k = 0; k < n; k++)
        for (size_t i = k + 1; i < n; i++) {
            double f = A[i * n + k] / A[k * n + k];
            for (size_t j = k; j < n; j++)
                A[i * n + j] -= f * A[k * n + j];
            b[i] -= f * b[k];
        }
    for (size_t k = n; k-- > 0;) {
        for (size_t j = k + 1; j < n; j++)
            b[k] -= A[k * n + j] * b[j];
        b[k] /= A[k * n + k];
    }
}

static void newton_on_least_squares_is_the_closed_form(void **state)
{
    test_kind kind = kind_of("linear");
    test_problem p;
    double A[21 * 21] = {0}, b[21] = {0};
    float w[21];
    (void)state;
    kind.weights = true;
    kind.spread = 100;
    test_problem_init(&p, &kind);
    for (size_t r = 0; r < p.data.rows; r++) {
        double x[21] = {[20] = 1};
        for (size_t i = p.data.start[r]; i < p.data.start[r + 1]; i++)
            x[p.data.index[i]] = (double)p.data.value[i];
        for (size_t i = 0; i < 21; i++) {
            for (size_t j = 0; j < 21; j++)
                A[i * 21 + j] += (double)p.data.weight[r] * x[i] * x[j] / (double)p.data.rows;
            b[i] += (double)p.data.weight[r] * x[i] * (double)p.data.label[r] / (double)p.data.rows;
        }
    }
    for (size_t i = 0; i < 20; i++)
        A[i * 21 + i] += kind.l2;
    solve(A, b, 21);
    (void)newton_optimum(&p.problem, w);
    for (size_t i = 0; i < 21; i++)
        assert_true(fabs((double)w[i] - b[i]) < 1e-4 * (1 + fabs(b[i])));
    test_problem_deinit(&p);
}

/* One row in ten is 30 off, all to one side: squares follow them, huber hardly does. */
static void huber_withstands_outliers_that_squares_follow(void **state)
{
    test_kind kind = kind_of("huber");
    test_problem p;
    float huber[21], squares[21];
    (void)state;
    kind.noise = 0.1;
    kind.l2 = 1e-4;
    test_problem_init(&p, &kind);
    (void)newton_optimum(&p.problem, huber);
    rbt_problem same = rbt_problem_of(rbt_model_find("linear"), &p.shape, &p.data, 0, kind.l2);
    (void)newton_optimum(&same, squares);
    assert_true(fabsf(huber[20] - 0.5F) < 0.3F);
    assert_true(squares[20] > 2);
    test_problem_deinit(&p);
}

static void separable_data_has_an_optimum_with_l2(void **state)
{
    (void)state;
    for (size_t m = 0; m < SMOOTH_COUNT; m++) {
        test_kind kind = kind_of(SMOOTH[m]);
        test_problem p;
        kind.noise = 0;
        kind.rows = 30; /* fewer than would be needed to contradict each other */
        kind.l2 = 1e-3;
        test_problem_init(&p, &kind);
        double newton = newton_optimum(&p.problem, NULL);
        test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 1, .passes = 500};
        assert_true(newton > 0 && within(train(&p.problem, &t, NULL), newton, 1e-3));
        test_problem_deinit(&p);
    }
}

/* When it says that it is near, it is: also where columns differ much in size, and iterations bring little before they bring
 * much. */
static void newton_knows_how_far_it_is(void **state)
{
    static const double SPREAD[] = {1, 1e3, 1e8}, MEAN[] = {0, 1};
    (void)state;
    for (size_t m = 0; m < SMOOTH_COUNT; m++)
        for (size_t s = 0; s < 6; s++) {
            test_kind kind = kind_of(SMOOTH[m]);
            test_training t = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = 1, .passes = 100};
            test_problem p;
            size_t end = 0;
            kind.spread = SPREAD[s % 3];
            kind.mean = MEAN[s / 3];
            kind.density = kind.mean > 0 ? 1 : 0.3;
            kind.l2 = 1e-3;
            test_problem_init(&p, &kind);
            double best = train(&p.problem, &t, NULL);
            while (end < t.looks && !(t.gap[end] <= 1e-3 * t.objective[end]))
                end++;
            if (end == t.looks || !within(t.objective[end], best, 2e-3))
                fail_msg("%s, spread %g, mean %g: it says that it is near after %zu iterations", SMOOTH[m], kind.spread,
                         kind.mean, end + 1);
            test_problem_deinit(&p);
        }
}

/* Nothing holds the bias: it must not run away to where numbers end. */
static void newton_on_one_class_stays_finite(void **state)
{
    test_kind kind = kind_of("lr");
    test_training t = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = 1, .passes = 300};
    test_problem p;
    (void)state;
    test_problem_init(&p, &kind);
    for (size_t r = 0; r < p.data.rows; r++)
        p.data.label[r] = 1;
    assert_true(train(&p.problem, &t, NULL) < 1e-9);
    for (size_t i = 0; i < t.looks; i++)
        assert_true(t.objective[i] >= 0 && t.objective[i] < 1);
    test_problem_deinit(&p);
}

/* The same rows with their columns far apart. */
static void newton_does_not_mind_columns_that_do_not_occur(void **state)
{
    static const char *const MODELS[] = {"lr", "softmax"};
    (void)state;
    for (size_t m = 0; m < 2; m++) {
        test_kind kind = kind_of(MODELS[m]);
        test_training t = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = 2, .passes = 5};
        test_problem p;
        float dense[84];
        test_problem_init(&p, &kind);
        size_t k = p.problem.outputs;
        double found = train(&p.problem, &t, dense);
        for (size_t i = 0; i < p.data.nnz; i++)
            p.data.index[i] = p.data.index[i] * 4999 + 63;
        p.data.cols = p.shape.cols = 100000;
        p.problem = rbt_problem_of(p.problem.model, &p.shape, &p.data, kind.l1, kind.l2);
        float *sparse = rbt_alloc(p.problem.n, sizeof *sparse);
        assert_true(train(&p.problem, &t, sparse) == found);
        for (size_t j = 0; j < 20; j++)
            assert_memory_equal(sparse + (j * 4999 + 63) * k, dense + j * k, k * sizeof *sparse);
        assert_memory_equal(sparse + p.problem.weights, dense + 20 * k, k * sizeof *sparse);
        rbt_free(sparse);
        test_problem_deinit(&p);
    }
}

/* Of few columns second derivatives are added up once and the model is solved exactly, of more every product goes through the rows:
 * they come to the same place. */
static void newton_comes_to_the_same_place_with_few_columns_and_with_more(void **state)
{
    (void)state;
    for (size_t m = 0; m < SMOOTH_COUNT; m++)
        for (uint32_t workers = 1; workers < 4; workers++) {
            test_kind kind = kind_of(SMOOTH[m]);
            test_training few = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = workers, .passes = 20}, more = few;
            test_problem p;
            kind.weights = workers == 2;
            kind.no_bias = workers == 3;
            test_problem_init(&p, &kind);
            (void)train(&p.problem, &few, NULL);
            p.data.cols = p.shape.cols = 3000; /* most of which no row has */
            p.problem = rbt_problem_of(p.problem.model, &p.shape, &p.data, kind.l1, kind.l2);
            (void)train(&p.problem, &more, NULL);
            if (!within(few.outcome, more.outcome, 1e-8))
                fail_msg("%s, %u workers: %.12g and %.12g", SMOOTH[m], workers, few.outcome, more.outcome);
            test_problem_deinit(&p);
        }
}

static void columns_that_occur_have_places_in_their_order(void **state)
{
    test_kind kind = kind_of("lr");
    test_problem p;
    rbt_columns columns;
    (void)state;
    test_problem_init(&p, &kind);
    for (size_t i = 0; i < p.data.nnz; i++)
        p.data.index[i] = p.data.index[i] * 37 + 63;
    p.shape.cols = 19 * 37 + 63; /* the last one is not known to the model */
    assert_int_equal(rbt_columns_init(&columns, &p.problem, SIZE_MAX, NULL), RBT_OK);
    assert_int_equal(columns.count, 19);
    for (uint32_t j = 0; j < 19; j++) {
        assert_true(rbt_columns_occurs(&columns, j * 37 + 63));
        assert_false(rbt_columns_occurs(&columns, j * 37 + 64));
        assert_int_equal(rbt_columns_place(&columns, j * 37 + 63), j);
    }
    rbt_columns_deinit(&columns);
    assert_int_equal(rbt_columns_init(&columns, &p.problem, 3, NULL), RBT_OK);
    assert_true(columns.count > 3);
    rbt_columns_deinit(&columns);
    test_problem_deinit(&p);
}

/* Columns of very unlike size, of which dual steps make nothing. */
static void newton_with_l1_reaches_the_optimum_and_makes_true_zeros(void **state)
{
    (void)state;
    for (size_t m = 0; m + 1 < SMOOTH_COUNT; m++)
        for (unsigned variant = 0; variant < 8; variant++) {
            test_kind kind = kind_of(SMOOTH[m]);
            test_training t = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = 1 + variant % 2, .passes = 100};
            test_problem p;
            float w[21], reference[21];
            size_t zeros = 0;
            kind.l1 = 0.05;
            kind.l2 = variant & 2 ? 0.01 : 0;
            kind.no_bias = variant & 4;
            test_problem_init(&p, &kind);
            double optimum = reference_optimum(&p.problem, reference);
            if (!within(train(&p.problem, &t, w), optimum, 1e-6))
                fail_msg("%s %u: %.9g, optimum %.9g", SMOOTH[m], variant, t.outcome, optimum);
            for (size_t i = 0; i < 20; i++)
                zeros += w[i] == 0 && fabsf(reference[i]) < 1e-3F;
            assert_true(zeros > 0);
            for (size_t i = 1; i < t.looks; i++)
                assert_true(t.objective[i] <= t.objective[i - 1] * (1 + 1e-6));
            test_problem_deinit(&p);
        }
}

/* Most columns occur, and yet few enough: none of the others may stand in the way of the penalty. */
static void newton_with_l1_sees_the_columns_that_occur(void **state)
{
    test_kind kind = {.model = "lr", .rows = 300, .cols = 200, .density = 0.3, .noise = 1, .l1 = 0.02, .l2 = 0.01};
    test_training t = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = 1, .passes = 50};
    test_problem p;
    (void)state;
    test_problem_init(&p, &kind);
    double optimum = reference_optimum(&p.problem, NULL);
    p.data.cols = p.shape.cols = 300;
    p.problem = rbt_problem_of(p.problem.model, &p.shape, &p.data, kind.l1, kind.l2);
    assert_true(rbt_newton_fits(&p.problem));
    assert_true(within(train(&p.problem, &t, NULL), optimum, 1e-5));
    test_problem_deinit(&p);
}

static void newton_needs_no_l2(void **state)
{
    static const char *const MODELS[] = {"lr", "linear", "huber"};
    (void)state;
    for (size_t m = 0; m < 3; m++)
        for (int cols = 0; cols < 2; cols++) {
            test_kind kind = kind_of(MODELS[m]);
            test_training t = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = 1, .passes = 60}, little = t;
            test_problem p;
            kind.l2 = 0;
            test_problem_init(&p, &kind);
            p.data.cols = p.shape.cols = cols == 0 ? 20 : 3000; /* without second derivatives at hand */
            p.problem = rbt_problem_of(p.problem.model, &p.shape, &p.data, 0, 0);
            double found = train(&p.problem, &t, NULL);
            p.problem = rbt_problem_of(p.problem.model, &p.shape, &p.data, 0, 1e-9);
            assert_true(within(found, train(&p.problem, &little, NULL), 1e-4));
            test_problem_deinit(&p);
        }
}

static void newton_is_only_for_smooth_losses_and_with_l1_for_few_columns(void **state)
{
    static const struct {
        const char *model;
        double l1, l2;
        bool fits;
    } CASES[] = {{"lr", 0, 0.1, true}, {"softmax", 0, 0.1, true}, {"huber", 0, 0.1, true},     {"svm", 0, 0.1, false},
                 {"lr", 0, 0, true},   {"lr", 0.1, 0.1, true},    {"softmax", 0.1, 0.1, false}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        test_kind kind = kind_of(CASES[i].model);
        test_problem p;
        kind.l1 = CASES[i].l1;
        kind.l2 = CASES[i].l2;
        test_problem_init(&p, &kind);
        assert_int_equal(rbt_newton_fits(&p.problem), CASES[i].fits);
        p.data.cols = p.shape.cols = 2000; /* of which only those count that a row has */
        p.problem = rbt_problem_of(p.problem.model, &p.shape, &p.data, kind.l1, kind.l2);
        assert_int_equal(rbt_newton_fits(&p.problem), CASES[i].fits);
        test_problem_deinit(&p);
    }
    test_kind kind = {.model = "lr", .rows = 300, .cols = 400, .density = 1, .l1 = 0.1, .l2 = 0.1};
    test_problem p;
    test_problem_init(&p, &kind);
    assert_false(rbt_newton_fits(&p.problem));
    test_problem_deinit(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_multiplied_and_added_as_the_definition_says),
        cmocka_unit_test(a_row_shows_only_the_features_the_model_knows),
        cmocka_unit_test(every_thread_of_a_team_works_once_per_run),
        cmocka_unit_test(a_sum_has_the_same_bits_whatever_the_number_of_threads),
        cmocka_unit_test(the_objective_counts_both_penalties_and_no_bias),
        cmocka_unit_test(lazy_penalties_lead_to_the_optimum_of_the_whole_objective),
        cmocka_unit_test(l1_by_steps_leads_to_the_optimum_of_proximal_gradients),
        cmocka_unit_test(l1_makes_true_zeros),
        cmocka_unit_test(every_optimizer_lowers_the_objective_of_every_loss),
        cmocka_unit_test(averaged_steps_end_with_the_mean_over_the_steps),
        cmocka_unit_test(averaged_steps_by_threads_in_turn_have_the_same_mean),
        cmocka_unit_test(averaged_steps_do_not_depend_on_how_often_one_looks),
        cmocka_unit_test(stopping_between_two_looks_keeps_what_was_learned),
        cmocka_unit_test(the_rate_found_neither_blows_up_nor_crawls_on_badly_scaled_data),
        cmocka_unit_test(newton_reaches_the_optimum_of_every_smooth_loss_and_never_rises),
        cmocka_unit_test(newton_on_least_squares_is_the_closed_form),
        cmocka_unit_test(huber_withstands_outliers_that_squares_follow),
        cmocka_unit_test(separable_data_has_an_optimum_with_l2),
        cmocka_unit_test(newton_knows_how_far_it_is),
        cmocka_unit_test(newton_on_one_class_stays_finite),
        cmocka_unit_test(newton_does_not_mind_columns_that_do_not_occur),
        cmocka_unit_test(newton_comes_to_the_same_place_with_few_columns_and_with_more),
        cmocka_unit_test(newton_with_l1_reaches_the_optimum_and_makes_true_zeros),
        cmocka_unit_test(newton_with_l1_sees_the_columns_that_occur),
        cmocka_unit_test(newton_needs_no_l2),
        cmocka_unit_test(columns_that_occur_have_places_in_their_order),
        cmocka_unit_test(newton_is_only_for_smooth_losses_and_with_l1_for_few_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

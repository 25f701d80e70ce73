/* Proves src/solve: rows, teams and their sums, gradient steps of every kind, the search for a step size. Dual coordinate ascent is
 * in test_sdca.c, Newton's method in test_newton.c, several threads at once in test_shared_local.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

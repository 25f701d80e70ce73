/* Proves src/solve/sdca.c: it reaches the optimum that other methods find, for every loss and penalty, and its duality gap
 * is a bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "solve/sdca.h"
#include "unit/problems.h"

static const char *const SMOOTH[] = {"lr", "svm2", "linear", "huber", "softmax"};
#define SMOOTH_COUNT (sizeof SMOOTH / sizeof SMOOTH[0])

static test_kind kind_of(const char *model)
{
    return (test_kind){.model = model, .rows = 200, .cols = 20, .density = 0.3, .noise = 1, .l2 = 0.01};
}

/* Trains with one thread; the outcome must be within `share` of the optimum, and the objective told that of the outcome. */
static void reaches(const test_kind *kind, const rbt_problem *problem, double optimum, double share, uint64_t passes)
{
    test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 1, .passes = passes};
    double found = train(problem, &t, NULL);
    bool good = within(found, optimum, share) && within(t.objective[t.looks - 1], found, 1e-6);
    if (!good)
        fail_msg("%s, bias %d, weights %d, l1 %g", kind->model, !kind->no_bias, kind->weights, kind->l1);
}

static void every_smooth_loss_reaches_the_optimum_with_and_without_bias_weights_and_l1(void **state)
{
    (void)state;
    for (size_t m = 0; m < SMOOTH_COUNT; m++)
        for (unsigned variant = 0; variant < 8; variant++) {
            test_kind kind = kind_of(SMOOTH[m]);
            test_problem p;
            kind.no_bias = variant & 1;
            kind.weights = variant & 2;
            kind.l1 = variant & 4 ? 0.01 : 0;
            test_problem_init(&p, &kind);
            reaches(&kind, &p.problem,
                    kind.l1 > 0 ? reference_optimum(&p.problem, NULL) : newton_optimum(&p.problem, NULL), 1e-5, 150);
            test_problem_deinit(&p);
        }
}

/* The hinge's corners make it slow to the last digits; its bias must not be stuck at a corner. */
static void the_hinge_reaches_the_optimum(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 4; variant++) {
        test_kind kind = kind_of("svm");
        test_problem p;
        kind.no_bias = variant & 1;
        kind.weights = variant & 2;
        test_problem_init(&p, &kind);
        reaches(&kind, &p.problem, reference_svm(&p.problem), 1e-4, 400);
        test_problem_deinit(&p);
    }
}

static void softmax_of_two_classes_settles_its_biases(void **state)
{
    test_kind kind = kind_of("softmax");
    test_problem p;
    (void)state;
    kind.classes = 2;
    test_problem_init(&p, &kind);
    reaches(&kind, &p.problem, newton_optimum(&p.problem, NULL), 1e-5, 150);
    test_problem_deinit(&p);
}

static void the_outcome_does_not_depend_on_how_often_one_looks(void **state)
{
    test_kind kind = kind_of("lr");
    test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 1, .passes = 30};
    float often[21], once[21];
    test_problem p;
    (void)state;
    test_problem_init(&p, &kind);
    (void)train(&p.problem, &t, often);
    t.eval_last = true;
    (void)train(&p.problem, &t, once);
    assert_memory_equal(often, once, sizeof often);
    test_problem_deinit(&p);
}

/* Far from the optimum hardly any row bends: a bias that trusted that would be lost for ever. */
static void the_biases_stay_bounded_when_features_are_large(void **state)
{
    (void)state;
    for (size_t m = 0; m < SMOOTH_COUNT; m++) {
        test_kind kind = kind_of(SMOOTH[m]);
        test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 1, .passes = 60};
        test_problem p;
        kind.mean = 5;
        kind.density = 1;
        test_problem_init(&p, &kind);
        float *zero = rbt_alloc(p.problem.n, sizeof *zero);
        rbt_team *team = make_team(1);
        assert_true(train(&p.problem, &t, NULL) < rbt_problem_objective(&p.problem, zero, team));
        rbt_team_destroy(team);
        rbt_free(zero);
        test_problem_deinit(&p);
    }
}

static void the_gap_bounds_the_distance_to_the_optimum_and_vanishes(void **state)
{
    (void)state;
    for (size_t m = 0; m <= SMOOTH_COUNT; m++)
        for (unsigned variant = 0; variant < 8; variant++) {
            test_kind kind = kind_of(m < SMOOTH_COUNT ? SMOOTH[m] : "svm");
            test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 1, .passes = 200, .prove = true};
            test_problem p;
            kind.no_bias = variant & 1;
            kind.l1 = variant & 2 && m < SMOOTH_COUNT ? 0.01 : 0;
            kind.weights = variant & 4;
            test_problem_init(&p, &kind);
            double optimum = m < SMOOTH_COUNT ? reference_optimum(&p.problem, NULL) : reference_svm(&p.problem);
            (void)train(&p.problem, &t, NULL);
            for (size_t i = 0; i < t.looks; i++)
                if (!(t.gap[i] >= t.objective[i] - optimum - 1e-6 * (1 + optimum)))
                    fail_msg("%s %u, pass %zu: gap %g, but %g above the optimum", kind.model, variant, i, t.gap[i],
                             t.objective[i] - optimum);
            if (!(fabs(t.gap[t.looks - 1]) < 1e-4 * optimum))
                fail_msg("%s %u: gap %g in the end, optimum %g", kind.model, variant, t.gap[t.looks - 1], optimum);
            test_problem_deinit(&p);
        }
}

/* The biases are not in the dual, and where features are alike those that are best for the weights follow these slowly: the end
 * must not be told before. */
static void with_biases_the_gap_is_an_honest_estimate(void **state)
{
    (void)state;
    for (size_t m = 0; m < SMOOTH_COUNT; m++) {
        test_kind kind = {
            .model = SMOOTH[m], .rows = 1000, .cols = 1500, .density = 0.02, .noise = 1, .mean = 1, .l2 = 0.01};
        test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 1, .passes = 30};
        test_problem p;
        size_t end = 0;
        test_problem_init(&p, &kind);
        double optimum = newton_optimum(&p.problem, NULL);
        (void)train(&p.problem, &t, NULL);
        while (end < t.looks && !(t.gap[end] <= 1e-3 * t.objective[end]))
            end++;
        if (end == t.looks || !within(t.objective[end], optimum, 1e-3))
            fail_msg("%s: it says that it is near after %zu passes", kind.model, end + 1);
        test_problem_deinit(&p);
    }
}

/* Rows of four kinds, of which the best weight is 0 and the best bias 1: at its corner the hinge does not tell where to go. */
static void the_hinge_finds_a_bias_at_a_corner(void **state)
{
    static const size_t MANY[] = {76, 45, 81, 98};
    size_t start[301], nnz = 0, rows = 0;
    uint32_t index[300] = {0};
    float value[300], label[300];
    (void)state;
    start[0] = 0;
    for (size_t kind = 0; kind < 4; kind++)
        for (size_t i = 0; i < MANY[kind]; i++) {
            if (kind % 2 == 1)
                value[nnz++] = 1;
            label[rows++] = kind < 2 ? 0 : 1;
            start[rows] = nnz;
        }
    rbt_data data = {
        .rows = rows, .cols = 1, .nnz = nnz, .start = start, .index = index, .value = value, .label = label};
    double labels[2] = {-1, 1};
    rbt_shape shape = {.cols = 1, .classes = 2, .labels = labels, .bias = true};
    for (int strong = 0; strong < 2; strong++) {
        rbt_problem problem = rbt_problem_of(rbt_model_find("svm"), &shape, &data, 0, strong ? 0.1 : 1.0 / 300);
        test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 1, .passes = 500, .close = 1e-3};
        (void)train(&problem, &t, NULL);
        assert_true(t.looks < 100);
        assert_true(t.outcome <= 242.0 / 300 * (1 + 1e-3));
    }
}

/* Features so small beside l2 that there is hardly anything to learn but the biases, which nothing may hold back. */
static void small_features_do_not_hold_the_biases_back(void **state)
{
    (void)state;
    for (size_t m = 0; m <= SMOOTH_COUNT; m++) {
        test_kind kind = kind_of(m < SMOOTH_COUNT ? SMOOTH[m] : "svm");
        test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 1, .passes = 100, .close = 1e-3};
        test_problem p;
        kind.l2 = 0.1;
        test_problem_init(&p, &kind);
        for (size_t i = 0; i < p.data.nnz; i++)
            p.data.value[i] *= 0.01F;
        (void)train(&p.problem, &t, NULL);
        if (!(t.looks < 30))
            fail_msg("%s: %zu passes", kind.model, t.looks);
        test_problem_deinit(&p);
    }
}

/* As in a fold that the only row of a class is not in. */
static void a_class_without_rows_does_not_spoil_the_proof(void **state)
{
    test_kind kind = kind_of("softmax");
    test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 1, .passes = 300, .close = 1e-3};
    test_problem p;
    (void)state;
    kind.classes = 4;
    test_problem_init(&p, &kind);
    for (size_t r = 0; r < p.data.rows; r++)
        p.data.label[r] = p.data.label[r] == 3 ? 0 : p.data.label[r];
    (void)train(&p.problem, &t, NULL);
    assert_true(t.looks < 100);
    assert_true(within(t.outcome, newton_optimum(&p.problem, NULL), 1e-3));
    test_problem_deinit(&p);
}

/* Labels far from 0 beside their spread: the bias has a long way to go, and nothing says that the end is near before. */
static void a_bias_far_away_is_reached_and_the_end_is_not_told_before(void **state)
{
    (void)state;
    for (size_t m = 0; m < 2; m++) {
        test_kind kind = kind_of(m == 0 ? "huber" : "linear");
        test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 1, .passes = 500, .close = 1e-3};
        test_problem p;
        test_problem_init(&p, &kind);
        for (size_t r = 0; r < p.problem.data->rows; r++)
            p.problem.data->label[r] += 1000;
        (void)train(&p.problem, &t, NULL);
        assert_true(t.looks < 500);
        assert_true(within(t.outcome, newton_optimum(&p.problem, NULL), 1e-3));
        test_problem_deinit(&p);
    }
}

static void l1_makes_true_zeros_where_the_reference_has_them(void **state)
{
    test_kind kind = kind_of("lr");
    test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 1, .passes = 150};
    test_problem p;
    float w[21], reference[21];
    size_t zeros = 0;
    (void)state;
    kind.l1 = 0.03;
    test_problem_init(&p, &kind);
    (void)train(&p.problem, &t, w);
    (void)reference_optimum(&p.problem, reference);
    for (size_t i = 0; i < 20; i++) {
        zeros += w[i] == 0;
        assert_true((w[i] == 0) == (reference[i] == 0));
    }
    assert_true(zeros >= 3 && zeros <= 17);
    test_problem_deinit(&p);
}

static void an_empty_row_and_one_without_other_rows_features_do_no_harm(void **state)
{
    (void)state;
    for (size_t m = 0; m <= SMOOTH_COUNT; m++) {
        test_kind kind = kind_of(m < SMOOTH_COUNT ? SMOOTH[m] : "svm");
        test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 1, .passes = 150};
        test_problem p;
        kind.rows = 40;
        kind.density = 0.05; /* a third of the rows is empty */
        test_problem_init(&p, &kind);
        double optimum = m < SMOOTH_COUNT ? reference_optimum(&p.problem, NULL) : reference_svm(&p.problem);
        assert_true(within(train(&p.problem, &t, NULL), optimum, 1e-3));
        test_problem_deinit(&p);
    }
}

static void restoring_gives_what_the_steps_have_added_up(void **state)
{
    test_kind kind = kind_of("softmax");
    test_problem p;
    rbt_sdca sdca;
    rbt_walk walk;
    rbt_walker walker;
    uint32_t rows[200];
    float w[84] = {0}, again[84];
    rbt_team *team = make_team(1);
    (void)state;
    kind.weights = true;
    test_problem_init(&p, &kind);
    for (uint32_t r = 0; r < 200; r++)
        rows[r] = r;
    assert_int_equal(rbt_sdca_init(&sdca, &p.problem, team, NULL), RBT_OK);
    assert_int_equal(rbt_walk_init(&walk, &p.problem, RBT_ACCESS_ALONE, 1, NULL), RBT_OK);
    rbt_sdca_attach(&sdca, &walk);
    rbt_walker_init(&walker, &walk, w, 0);
    for (int pass = 0; pass < 5; pass++)
        rbt_walker_rows(&walker, rows, 200, 200);
    memcpy(again, w, sizeof w);
    rbt_sdca_restore(&sdca, again, team);
    for (size_t i = 0; i < 84; i++)
        assert_true(fabsf(w[i] - again[i]) < 1e-4F);
    rbt_walker_deinit(&walker);
    rbt_walk_deinit(&walk);
    rbt_sdca_deinit(&sdca);
    rbt_team_destroy(team);
    test_problem_deinit(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_smooth_loss_reaches_the_optimum_with_and_without_bias_weights_and_l1),
        cmocka_unit_test(the_hinge_reaches_the_optimum),
        cmocka_unit_test(softmax_of_two_classes_settles_its_biases),
        cmocka_unit_test(the_outcome_does_not_depend_on_how_often_one_looks),
        cmocka_unit_test(the_biases_stay_bounded_when_features_are_large),
        cmocka_unit_test(the_gap_bounds_the_distance_to_the_optimum_and_vanishes),
        cmocka_unit_test(with_biases_the_gap_is_an_honest_estimate),
        cmocka_unit_test(the_hinge_finds_a_bias_at_a_corner),
        cmocka_unit_test(small_features_do_not_hold_the_biases_back),
        cmocka_unit_test(a_class_without_rows_does_not_spoil_the_proof),
        cmocka_unit_test(a_bias_far_away_is_reached_and_the_end_is_not_told_before),
        cmocka_unit_test(l1_makes_true_zeros_where_the_reference_has_them),
        cmocka_unit_test(an_empty_row_and_one_without_other_rows_features_do_no_harm),
        cmocka_unit_test(restoring_gives_what_the_steps_have_added_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

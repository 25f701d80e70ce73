/* Proves src/solve/newton*.c and columns.c: known optima, the closed form of least squares, l1 and no l2, rounded corners, and that it
 * knows how far it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "solve/columns.h"
#include "solve/newton.h"
#include "unit/problems.h"

static const char *const SMOOTH[] = {"lr", "svm2", "linear", "huber", "softmax"};
#define SMOOTH_COUNT (sizeof SMOOTH / sizeof SMOOTH[0])

static test_kind kind_of(const char *model)
{
    return (test_kind){.model = model, .rows = 300, .cols = 20, .density = 0.3, .noise = 1, .l2 = 0.01};
}

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
    static const char *const MODELS[] = {"lr", "svm"};
    (void)state;
    for (size_t m = 0; m < 2; m++) {
        test_kind kind = kind_of(MODELS[m]);
        test_training t = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = 1, .passes = 300};
        test_problem p;
        test_problem_init(&p, &kind);
        for (size_t r = 0; r < p.data.rows; r++)
            p.data.label[r] = 1;
        assert_true(train(&p.problem, &t, NULL) < 1e-9);
        for (size_t i = 0; i < t.looks; i++)
            assert_true(t.objective[i] >= 0 && t.objective[i] < 1);
        test_problem_deinit(&p);
    }
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

/* Of many rows it begins with some: the first iteration over all of them already comes near. */
static void newton_on_many_rows_begins_with_some(void **state)
{
    static const char *const MODELS[] = {"lr", "svm2", "huber"};
    (void)state;
    for (size_t m = 0; m < 3; m++)
        for (unsigned variant = 0; variant < 4; variant++) {
            test_kind kind = kind_of(MODELS[m]);
            test_training t = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = 1 + variant % 2, .passes = 20};
            test_problem p;
            kind.rows = 2000;
            kind.weights = variant & 1;
            kind.l1 = variant & 2 ? 1e-3 : 0;
            test_problem_init(&p, &kind);
            double best = reference_optimum(&p.problem, NULL);
            assert_true(within(train(&p.problem, &t, NULL), best, 1e-6));
            assert_true(within(t.objective[0], best, 0.01));
            for (size_t i = 1; i < t.looks; i++)
                assert_true(t.objective[i] <= t.objective[i - 1] * (1 + 1e-6));
            test_problem_deinit(&p);
        }
}

/* A few rows weigh more than all others, and say the opposite: whether they are among the first or not, it is no worse than
 * having learned nothing, and ends where it should. */
static void newton_is_not_misled_by_the_rows_it_begins_with(void **state)
{
    (void)state;
    for (size_t place = 0; place < 8; place++) {
        test_kind kind = kind_of("lr");
        test_training t = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = 2, .passes = 40};
        test_problem p;
        kind.rows = 6000;
        kind.noise = 0.1;
        kind.l2 = 1e-3;
        kind.weights = true;
        test_problem_init(&p, &kind);
        for (size_t r = 0; r < kind.rows; r++)
            p.data.weight[r] = 0.1F;
        for (size_t i = 0; i < 2; i++) {
            size_t r = 37 * place + 1000 * (i + 1);
            p.data.weight[r] = 0.9F * (float)kind.rows / 2;
            p.data.label[r] = 1 - p.data.label[r];
        }
        assert_true(within(train(&p.problem, &t, NULL), reference_optimum(&p.problem, NULL), 1e-5));
        assert_true(t.objective[0] <= log(2) * (1 + 1e-6));
        for (size_t i = 1; i < t.looks; i++)
            assert_true(t.objective[i] <= t.objective[i - 1] * (1 + 1e-6));
        test_problem_deinit(&p);
    }
}

/* A hinge by ever less round corners: the optimum that dual variables taken in pairs come to, with each tolerance, and not said to be
 * near before it is. */
static void newton_comes_to_the_corners_of_a_hinge(void **state)
{
    static const double CLOSE[] = {1e-2, 1e-3, 1e-5};
    (void)state;
    for (unsigned variant = 0; variant < 16; variant++) {
        test_kind kind = kind_of("svm");
        test_problem p;
        kind.rows = 150;
        kind.no_bias = variant & 1;
        kind.weights = variant & 2;
        kind.l2 = variant & 4 ? 1e-3 : 0.01;
        test_problem_init(&p, &kind);
        double optimum = reference_svm(&p.problem);
        for (size_t c = 0; c < 3; c++) {
            test_training t = {
                .optimizer = RBT_OPTIMIZER_NEWTON, .workers = 1 + variant / 8, .passes = 100, .close = CLOSE[c]};
            (void)train(&p.problem, &t, NULL);
            if (t.looks == t.passes || !within(t.outcome, optimum, CLOSE[c]))
                fail_msg("close %g, %u: %.9g after %zu iterations, optimum %.9g", CLOSE[c], variant, t.outcome, t.looks,
                         optimum);
            for (size_t i = 0; i < t.looks; i++)
                assert_true(t.gap[i] >= t.objective[i] - optimum - 1e-6 * optimum);
        }
        test_problem_deinit(&p);
    }
}

/* Columns of unlike size, on which dual steps would take many thousands of passes. */
static void newton_on_a_hinge_does_not_mind_columns_of_unlike_size(void **state)
{
    test_kind kind = kind_of("svm");
    test_training t = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = 1, .passes = 40, .close = 1e-3};
    test_problem p;
    (void)state;
    kind.spread = 1e4;
    kind.l2 = 1e-5;
    test_problem_init(&p, &kind);
    (void)train(&p.problem, &t, NULL);
    assert_true(t.looks < t.passes);
    t.close = 1e-7;
    t.passes = 300;
    double found = t.outcome;
    assert_true(within(found, train(&p.problem, &t, NULL), 1e-3));
    test_problem_deinit(&p);
}

static void newton_on_a_hinge_with_l1_comes_where_dual_steps_come(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 4; variant++) {
        test_kind kind = kind_of("svm");
        test_training t = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = 1, .passes = 60, .close = 1e-4};
        test_training dual = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 1, .passes = 2000};
        test_problem p;
        float w[21];
        size_t zeros = 0;
        kind.l1 = 0.02;
        kind.no_bias = variant & 1;
        kind.weights = variant & 2;
        test_problem_init(&p, &kind);
        double found = train(&p.problem, &t, w);
        assert_true(within(found, train(&p.problem, &dual, NULL), 1e-3));
        for (size_t i = 0; i < 20; i++)
            zeros += w[i] == 0;
        assert_true(zeros > 0);
        test_problem_deinit(&p);
    }
}

static void newton_is_with_l1_or_a_corner_for_few_columns(void **state)
{
    static const struct {
        const char *model;
        double l1, l2;
        bool fits;
    } CASES[] = {{"lr", 0, 0.1, true}, {"softmax", 0, 0.1, true}, {"huber", 0, 0.1, true},     {"svm", 0, 0.1, true},
                 {"lr", 0, 0, true},   {"lr", 0.1, 0.1, true},    {"softmax", 0.1, 0.1, false}};
    static const struct {
        const char *model;
        double l1;
        bool fits;
    } WIDE[] = {{"lr", 0, true}, {"lr", 0.1, false}, {"svm", 0, false}};
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
    for (size_t i = 0; i < sizeof WIDE / sizeof WIDE[0]; i++) {
        test_kind kind = {.model = WIDE[i].model, .rows = 300, .cols = 400, .density = 1, .l1 = WIDE[i].l1, .l2 = 0.1};
        test_problem p;
        test_problem_init(&p, &kind);
        assert_int_equal(rbt_newton_fits(&p.problem), WIDE[i].fits);
        test_problem_deinit(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        cmocka_unit_test(newton_on_many_rows_begins_with_some),
        cmocka_unit_test(newton_is_not_misled_by_the_rows_it_begins_with),
        cmocka_unit_test(columns_that_occur_have_places_in_their_order),
        cmocka_unit_test(newton_comes_to_the_corners_of_a_hinge),
        cmocka_unit_test(newton_on_a_hinge_does_not_mind_columns_of_unlike_size),
        cmocka_unit_test(newton_on_a_hinge_with_l1_comes_where_dual_steps_come),
        cmocka_unit_test(newton_is_with_l1_or_a_corner_for_few_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Proves src/solve/shared.c and walk.c with several threads at once: every manner of access reaches the optimum with every
 * optimizer, and what is promised to repeat repeats. The ThreadSanitizer build runs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "data/data.h"
#include "model/model.h"
#include "unit/problems.h"

#define COLS 30

static test_kind kind_of(const char *model)
{
    return (test_kind){.model = model, .rows = 400, .cols = COLS, .density = 0.1, .noise = 1, .l2 = 0.05};
}

static const rbt_access SHARING[] = {RBT_ACCESS_HOGWILD, RBT_ACCESS_AIG, RBT_ACCESS_ROUND_ROBIN};
static const char *const NAMES[] = {"hogwild", "aig", "round-robin", "alone"};
static const uint32_t WORKERS[] = {1, 2, 4};

static void every_access_with_every_optimizer_reaches_the_optimum(void **state)
{
    static const char *const MODELS[] = {"lr", "softmax"};
    (void)state;
    for (size_t m = 0; m < 2; m++) {
        test_kind kind = kind_of(MODELS[m]);
        test_problem p;
        test_problem_init(&p, &kind);
        double optimum = newton_optimum(&p.problem, NULL);
        for (size_t a = 0; a < 3; a++)
            for (size_t n = 0; n < 3; n++)
                for (rbt_optimizer o = RBT_OPTIMIZER_SGD; o <= RBT_OPTIMIZER_SDCA; o++) {
                    if (SHARING[a] == RBT_ACCESS_ROUND_ROBIN && WORKERS[n] > 2 && o > RBT_OPTIMIZER_SGD)
                        continue; /* turns of more threads than processors take long, and one optimizer shows what they do */
                    test_training t = {.access = SHARING[a],
                                       .optimizer = o,
                                       .workers = WORKERS[n],
                                       .passes = o == RBT_OPTIMIZER_SDCA ? 30 : 60,
                                       .decay = 0.9};
                    if (!within(train(&p.problem, &t, NULL), optimum, 5e-3))
                        fail_msg("%s, %s, optimizer %d, %u workers", MODELS[m], NAMES[SHARING[a]], (int)o, WORKERS[n]);
                    assert_true(within(t.objective[t.looks - 1], t.outcome, 1e-6));
                }
        test_problem_deinit(&p);
    }
}

/* All look before any of them moves: what takes all of a row's error away takes it several times. */
static void many_workers_in_turn_do_not_overshoot(void **state)
{
    static const char *const MODELS[] = {"lr", "svm2"};
    (void)state;
    for (size_t m = 0; m < 2; m++) {
        test_kind kind = {
            .model = MODELS[m], .rows = 320, .cols = 20, .density = 1, .noise = 1, .mean = 1, .l2 = 1.0 / 320};
        test_training t = {
            .access = RBT_ACCESS_ROUND_ROBIN, .optimizer = RBT_OPTIMIZER_SDCA, .workers = 8, .passes = 400};
        test_problem p;
        test_problem_init(&p, &kind);
        assert_true(within(train(&p.problem, &t, NULL), newton_optimum(&p.problem, NULL), 5e-3));
        test_problem_deinit(&p);
    }
}

/* As a job with a tolerance does: it ends at a gap that is true, whatever the threads lost on the way. */
static void the_gap_closes_with_several_threads_as_with_one(void **state)
{
    test_kind kind = {
        .model = "svm", .rows = 4000, .cols = 1000, .density = 0.02, .noise = 1, .no_bias = true, .l2 = 0.005};
    test_problem p;
    (void)state;
    test_problem_init(&p, &kind);
    test_training alone = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 1, .passes = 60};
    double optimum = train(&p.problem, &alone, NULL);
    for (size_t n = 0; n < 3; n++) {
        test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = WORKERS[n], .passes = 60, .close = 1e-3};
        double outcome = train(&p.problem, &t, NULL);
        assert_true(t.looks < 60 && t.gap[t.looks - 1] <= 1e-3 * outcome);
        assert_true(outcome - optimum <= 1e-3 * outcome);
    }
    test_problem_deinit(&p);
}

static void newton_by_several_threads_reaches_the_optimum(void **state)
{
    test_kind kind = kind_of("softmax");
    test_problem p;
    (void)state;
    test_problem_init(&p, &kind);
    double optimum = newton_optimum(&p.problem, NULL);
    for (size_t n = 0; n < 3; n++) {
        test_training t = {.optimizer = RBT_OPTIMIZER_NEWTON, .workers = WORKERS[n], .passes = 20};
        assert_true(within(train(&p.problem, &t, NULL), optimum, 1e-6));
    }
    test_problem_deinit(&p);
}

/* A first look after many passes has nothing to compare with: it is no reason to go on without company. */
static void who_looks_seldom_keeps_all_threads(void **state)
{
    test_kind kind = {
        .model = "svm", .rows = 4000, .cols = 1000, .density = 0.02, .noise = 1, .no_bias = true, .l2 = 0.05};
    test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 2, .passes = 12, .eval_every = 5};
    test_problem p;
    (void)state;
    test_problem_init(&p, &kind);
    (void)train(&p.problem, &t, NULL);
    if (t.together <= t.eval_every)
        fail_msg("only %llu passes had two threads", (unsigned long long)t.together);
    test_problem_deinit(&p);
}

/* Each worker finds the optimum of its own rows; their mean is near that of all. */
static void the_mean_of_workers_alone_is_near_the_optimum(void **state)
{
    test_kind kind = kind_of("lr");
    test_problem p;
    (void)state;
    test_problem_init(&p, &kind);
    double optimum = newton_optimum(&p.problem, NULL);
    for (size_t n = 0; n < 3; n++) {
        test_training t = {.access = RBT_ACCESS_ALONE,
                           .optimizer = RBT_OPTIMIZER_SGD,
                           .average = true,
                           .workers = WORKERS[n],
                           .passes = 60,
                           .decay = 0.9};
        assert_true(within(train(&p.problem, &t, NULL), optimum, 5e-2));
    }
    test_problem_deinit(&p);
}

/* Trains twice; the same bits? */
static bool repeats(const rbt_problem *problem, test_training t)
{
    float first[(COLS + 1) * TEST_CLASSES], second[(COLS + 1) * TEST_CLASSES];
    (void)train(problem, &t, first);
    (void)train(problem, &t, second);
    return memcmp(first, second, problem->n * sizeof(float)) == 0;
}

static void one_worker_gives_the_same_bits_twice(void **state)
{
    test_kind kind = kind_of("softmax");
    test_problem p;
    (void)state;
    test_problem_init(&p, &kind);
    for (size_t a = 0; a < 3; a++)
        for (rbt_optimizer o = RBT_OPTIMIZER_SGD; o <= RBT_OPTIMIZER_NEWTON; o++)
            assert_true(
                repeats(&p.problem,
                        (test_training){.access = SHARING[a], .optimizer = o, .workers = 1, .passes = 3, .rate = 0.1}));
    test_problem_deinit(&p);
}

/* Nobody sees what another does: their number matters, their speed does not. */
static void workers_alone_and_newtons_give_the_same_bits_twice(void **state)
{
    test_kind kind = kind_of("lr");
    test_problem p;
    (void)state;
    test_problem_init(&p, &kind);
    assert_true(repeats(&p.problem, (test_training){.access = RBT_ACCESS_ALONE,
                                                    .optimizer = RBT_OPTIMIZER_SGD,
                                                    .average = true,
                                                    .workers = 3,
                                                    .passes = 3,
                                                    .rate = 0.1}));
    assert_true(repeats(&p.problem, (test_training){.optimizer = RBT_OPTIMIZER_NEWTON, .workers = 3, .passes = 3}));
    test_problem_deinit(&p);
}

/* Rows that share all features, threads that run into each other all the time: additions are lost, the outcome is sound. */
static void dense_rows_under_hogwild_end_with_a_true_objective(void **state)
{
    test_kind kind = kind_of("lr");
    test_problem p;
    (void)state;
    kind.density = 1;
    kind.rows = 1000;
    test_problem_init(&p, &kind);
    double optimum = newton_optimum(&p.problem, NULL);
    for (int turn = 0; turn < 5; turn++) {
        test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 4, .passes = 400, .close = 1e-3};
        assert_true(within(train(&p.problem, &t, NULL), optimum, 1e-3));
        assert_true(t.looks < 400 && within(t.objective[t.looks - 1], t.outcome, 1e-5));
    }
    test_problem_deinit(&p);
}

/* Two threads on copies lose no addition: the gap that they tell is a true bound, and they come near the optimum. */
static void dual_steps_on_copies_tell_a_true_gap(void **state)
{
    static const char *const MODELS[] = {"lr", "svm2", "linear", "softmax"};
    (void)state;
    for (size_t m = 0; m < sizeof MODELS / sizeof *MODELS; m++) {
        test_kind kind = kind_of(MODELS[m]);
        test_problem p;
        kind.rows = 4000;
        kind.cols = 300;
        kind.no_bias = true;
        test_problem_init(&p, &kind);
        assert_true(rbt_replicas_pay(&p.problem, 2));
        double optimum = newton_optimum(&p.problem, NULL);
        test_training t = {.optimizer = RBT_OPTIMIZER_SDCA, .workers = 2, .passes = 30};
        assert_true(within(train(&p.problem, &t, NULL), optimum, 5e-3));
        for (size_t i = 0; i < t.looks; i++)
            assert_true(t.objective[i] - t.gap[i] <= optimum * (1 + 1e-5));
        test_problem_deinit(&p);
    }
}

/* Shards of 3 and 2 rows: the one with less passes its turn on. */
static void more_turns_than_rows_do_not_block_anybody(void **state)
{
    test_kind kind = kind_of("linear");
    test_problem p;
    (void)state;
    kind.rows = 11;
    test_problem_init(&p, &kind);
    test_training t = {
        .access = RBT_ACCESS_ROUND_ROBIN, .optimizer = RBT_OPTIMIZER_SGD, .workers = 4, .passes = 50, .rate = 0.01};
    (void)train(&p.problem, &t, NULL);
    assert_int_equal(t.looks, 50);
    test_problem_deinit(&p);
}

#define OWN_ROWS 6000
#define PASSES   3

static double half(const void *context, uint64_t clock)
{
    (void)context;
    (void)clock;
    return 0.5;
}

static bool go_on(void *context, const rbt_shared_pass *pass)
{
    (void)context;
    (void)pass;
    return true;
}

/* Every row has a feature of its own, and each visit adds half of what its weight lacks: the weights tell how often rows
 * were visited. All rows are the first worker's, so the others can only help. */
static void threads_that_help_visit_every_row_once_in_a_pass(void **state)
{
    rbt_data data;
    rbt_shape shape = {.cols = OWN_ROWS};
    uint32_t *rows = rbt_alloc(OWN_ROWS, sizeof *rows);
    rbt_shard shard[3] = {{.rows = rows, .n = OWN_ROWS, .nnz = OWN_ROWS}, {.rows = rows}, {.rows = rows}};
    rbt_shards shards = {.workers = 3, .shard = shard, .order = rows};
    rbt_team *team = make_team(3);
    (void)state;
    assert_int_equal(rbt_data_alloc(OWN_ROWS, OWN_ROWS, &data, NULL), RBT_OK);
    for (uint32_t i = 0; i < OWN_ROWS; i++) {
        rows[i] = data.index[i] = i;
        data.value[i] = data.label[i] = 1;
        data.start[i + 1] = ++data.nnz;
    }
    rbt_problem problem = rbt_problem_of(rbt_model_find("linear"), &shape, &data, 0, 0);
    for (size_t a = 0; a < 2; a++) { /* hogwild, aig */
        rbt_shared_options options = {
            .access = SHARING[a], .optimizer = RBT_OPTIMIZER_SGD, .rate = half, .clocks = PASSES, .seed = 7};
        rbt_shared_worker reports[3] = {0};
        float *w = rbt_alloc(OWN_ROWS, sizeof *w);
        assert_int_equal(rbt_shared_train(&problem, &options, &shards, team, w, reports, go_on, NULL, NULL), RBT_OK);
        for (size_t i = 0; i < OWN_ROWS; i++)
            assert_true(w[i] == 0.875F);
        assert_int_equal(reports[0].samples + reports[1].samples + reports[2].samples, PASSES * OWN_ROWS);
        rbt_free(w);
    }
    rbt_team_destroy(team);
    rbt_data_deinit(&data);
    rbt_free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_access_with_every_optimizer_reaches_the_optimum),
        cmocka_unit_test(many_workers_in_turn_do_not_overshoot),
        cmocka_unit_test(the_gap_closes_with_several_threads_as_with_one),
        cmocka_unit_test(newton_by_several_threads_reaches_the_optimum),
        cmocka_unit_test(who_looks_seldom_keeps_all_threads),
        cmocka_unit_test(the_mean_of_workers_alone_is_near_the_optimum),
        cmocka_unit_test(one_worker_gives_the_same_bits_twice),
        cmocka_unit_test(workers_alone_and_newtons_give_the_same_bits_twice),
        cmocka_unit_test(dense_rows_under_hogwild_end_with_a_true_objective),
        cmocka_unit_test(dual_steps_on_copies_tell_a_true_gap),
        cmocka_unit_test(more_turns_than_rows_do_not_block_anybody),
        cmocka_unit_test(threads_that_help_visit_every_row_once_in_a_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

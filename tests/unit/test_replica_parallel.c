/* Proves src/solve/replica.c: threads that work on copies lose nothing, hear of each other in time, and train as well as
 * one. The ThreadSanitizer build runs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "data/data.h"
#include "solve/replica.h"
#include "unit/problems.h"

#define COLS   600
#define ROWS   3000
#define PASSES 3
#define MOST   4
#define LOOKS  20000

/* Features of a few rows and features of nearly all: what is beyond COMMON is made rare. */
#define COMMON 20

static void skewed(test_problem *p, const char *model)
{
    test_kind kind = {.model = model, .rows = ROWS, .cols = COLS, .density = 0.1, .noise = 1, .l2 = 0.01, .classes = 3};
    test_problem_init(p, &kind);
    for (size_t r = 0; r < p->data.rows; r++)
        for (size_t i = p->data.start[r], next = 0; i < p->data.start[r + 1]; i++, next++)
            if (next < COMMON) /* the row's first ones */
                p->data.index[i] = (uint32_t)next;
            else if (p->data.index[i] < next)
                p->data.index[i] = (uint32_t)next;
    for (size_t r = 0; r < p->data.rows; r++) /* indices ascend */
        for (size_t i = p->data.start[r] + 1; i < p->data.start[r + 1]; i++)
            assert_true(p->data.index[i] > p->data.index[i - 1]);
}

/* Every thread adds 1 to each parameter of the rows that are its own: whole numbers, so no order rounds differently. */
typedef struct adding {
    const test_problem *p;
    rbt_replicas *replicas;
    uint32_t threads;
} adding;

static void add_rows(void *context, uint32_t thread)
{
    const adding *a = context;
    const rbt_data *data = &a->p->data;
    size_t k = a->p->problem.outputs;
    float *w = rbt_replicas_of(a->replicas, thread);
    rbt_replicas_begin(a->replicas, thread);
    for (size_t r = thread, met = 1; r < data->rows; r += a->threads, met++) {
        for (size_t i = data->start[r]; i < data->start[r + 1]; i++)
            for (size_t c = 0; c < k; c++)
                w[data->index[i] * k + c] += 1;
        if (met % RBT_REPLICA_ROWS == 0)
            rbt_replicas_look(a->replicas, thread);
    }
    rbt_replicas_end(a->replicas, thread);
}

static void settle(void *context, uint32_t thread)
{
    const adding *a = context;
    rbt_replicas_settle(a->replicas, thread);
}

static void no_addition_is_lost_between_threads(void **state)
{
    static const char *const MODELS[] = {"lr", "softmax"};
    (void)state;
    for (size_t m = 0; m < 2; m++)
        for (uint32_t threads = 1; threads <= MOST; threads++) {
            test_problem p;
            skewed(&p, MODELS[m]);
            size_t k = p.problem.outputs;
            float *w = test_calloc(p.problem.n, sizeof *w), *expected = test_calloc(p.problem.n, sizeof *w);
            for (size_t j = 0; j < p.problem.n; j++)
                expected[j] = w[j] = (float)j;
            for (size_t i = 0; i < p.data.nnz; i++)
                for (size_t c = 0; c < k; c++)
                    expected[p.data.index[i] * k + c] += PASSES;
            rbt_team *team = make_team(threads);
            adding a = {&p, rbt_replicas_create(&p.problem, w, threads, 128), threads};
            assert_non_null(a.replicas);
            for (int pass = 0; pass < PASSES; pass++) {
                rbt_team_run(team, add_rows, &a);
                rbt_team_run(team, settle, &a);
            }
            assert_memory_equal(w, expected, p.problem.n * sizeof *w); /* the biases are as they were */
            rbt_replicas_destroy(a.replicas);
            rbt_team_destroy(team);
            test_free(w);
            test_free(expected);
            test_problem_deinit(&p);
        }
}

static void common_features_are_exchanged_during_a_pass_and_rare_ones_at_its_end(void **state)
{
    test_problem p;
    skewed(&p, "lr");
    float *w = test_calloc(p.problem.n, sizeof *w);
    rbt_replicas *replicas = rbt_replicas_create(&p.problem, w, 2, 128);
    (void)state;
    float *one = rbt_replicas_of(replicas, 0), *other = rbt_replicas_of(replicas, 1);
    rbt_replicas_begin(replicas, 0);
    rbt_replicas_begin(replicas, 1);
    one[0] += 1;
    one[COLS - 1] += 1;
    other[0] += 2;
    for (int looks = 0; looks < 8; looks++) /* 64 rows: long enough for a feature of every row */
        rbt_replicas_look(replicas, 0);
    for (int looks = 0; looks < 8; looks++)
        rbt_replicas_look(replicas, 1);
    assert_true(other[0] == 3);
    assert_true(other[COLS - 1] == 0);
    rbt_replicas_end(replicas, 0);
    rbt_replicas_end(replicas, 1);
    rbt_replicas_settle(replicas, 0);
    rbt_replicas_settle(replicas, 1);
    rbt_replicas_begin(replicas, 0);
    rbt_replicas_begin(replicas, 1);
    assert_true(w[0] == 3 && one[0] == 3 && other[0] == 3);
    assert_true(w[COLS - 1] == 1 && one[COLS - 1] == 1 && other[COLS - 1] == 1);
    rbt_replicas_destroy(replicas);
    test_free(w);
    test_problem_deinit(&p);
}

/* Threads that add 1 to a feature before each look, and tell after it how far they are. */
typedef struct telling {
    rbt_replicas *replicas;
    uint32_t threads;
    atomic_uint told[MOST];
    atomic_uint missed;
} telling;

static void add_and_tell(void *context, uint32_t thread)
{
    telling *t = context;
    const float *w = rbt_replicas_of(t->replicas, thread);
    for (unsigned look = 1; look <= LOOKS; look++) {
        unsigned known = 1;
        for (uint32_t m = 0; m < t->threads; m++)
            known += atomic_load(&t->told[m]);
        rbt_replicas_of(t->replicas, thread)[0] += 1;
        rbt_replicas_look(t->replicas, thread);
        if ((unsigned)w[0] < known)
            atomic_fetch_add(&t->missed, 1);
        atomic_store(&t->told[thread], look);
    }
}

/* However many threads are busy with it at the same time. */
static void a_look_that_is_due_brings_all_that_others_had_brought(void **state)
{
    test_problem p;
    telling t = {.threads = MOST};
    (void)state;
    skewed(&p, "lr");
    float *w = test_calloc(p.problem.n, sizeof *w);
    t.replicas = rbt_replicas_create(&p.problem, w, MOST, 1); /* every look is due */
    for (uint32_t thread = 0; thread < MOST; thread++)
        rbt_replicas_begin(t.replicas, thread);
    rbt_team *team = make_team(MOST);
    rbt_team_run(team, add_and_tell, &t);
    assert_int_equal(atomic_load(&t.missed), 0);
    rbt_team_destroy(team);
    rbt_replicas_destroy(t.replicas);
    test_free(w);
    test_problem_deinit(&p);
}

/* Rows of one feature each, all of them as often: none is common, and yet each is visited oftener in a pass than is good
 * between two exchanges. */
static void wide(test_problem *p, size_t rows, uint32_t cols)
{
    test_problem_init(p, &(test_kind){.model = "lr", .rows = 1, .cols = cols, .density = 1, .l2 = 0.01});
    rbt_data_deinit(&p->data);
    assert_int_equal(rbt_data_alloc(rows, rows, &p->data, NULL), RBT_OK);
    p->data.rows = p->data.nnz = rows;
    p->data.cols = cols;
    for (size_t r = 0; r < rows; r++) {
        p->data.start[r + 1] = r + 1;
        p->data.index[r] = (uint32_t)(r * 7919 % cols);
        p->data.value[r] = 1;
    }
}

static void of_many_features_few_wait_for_the_end_of_a_pass(void **state)
{
    size_t rows = 200000, told = 0;
    uint32_t cols = 8000;
    test_problem p;
    wide(&p, rows, cols);
    float *w = test_calloc(p.problem.n, sizeof *w);
    rbt_replicas *replicas = rbt_replicas_create(&p.problem, w, 2, 8);
    (void)state;
    rbt_replicas_begin(replicas, 0);
    rbt_replicas_begin(replicas, 1);
    for (uint32_t j = 0; j < cols; j++)
        rbt_replicas_of(replicas, 0)[j] += 1;
    for (uint32_t thread = 0; thread < 2; thread++)
        for (size_t looks = 0; looks < rows / 2 / RBT_REPLICA_ROWS; looks++)
            rbt_replicas_look(replicas, thread);
    for (uint32_t j = 0; j < cols; j++)
        told += rbt_replicas_of(replicas, 1)[j] == 1;
    assert_true(told > cols / 10 * 9); /* of 25 visits each, after 8 */
    rbt_replicas_destroy(replicas);
    test_free(w);
    test_problem_deinit(&p);
}

static void copies_meet_the_sooner_the_larger_the_steps_and_the_more_threads_there_are(void **state)
{
    static const struct {
        uint32_t threads;
        double heat, visits;
    } CASES[] = {{2, 0, 128}, {2, 0.01, 128}, {2, 0.25, 128}, {2, 0.5, 16},   {2, 1, 2},       {2, 1.0000001, 2},
                 {2, 2, 2},   {2, 2.1, 0},    {4, 0.25, 64},  {4, 0.05, 128}, {4, 1, 2},       {8, 0.25, 32},
                 {8, 1, 2},   {16, 0.25, 16}, {16, 1, 0},     {64, 0.25, 0},  {64, 0.01, 128}, {2, INFINITY, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (rbt_replicas_visits(CASES[i].threads, CASES[i].heat) != CASES[i].visits)
            fail_msg("%u threads, heat %g: %g", CASES[i].threads, CASES[i].heat,
                     rbt_replicas_visits(CASES[i].threads, CASES[i].heat));
}

/* With small steps, and with steps that take all of a row's error away or more. */
static void copies_train_as_well_as_one_thread(void **state)
{
    static const struct {
        const char *model;
        double rates[2];
    } CASES[] = {{"lr", {0.002, 0.06}},
                 {"svm", {0.002, 0.02}},
                 {"svm2", {0.002, 0.01}},
                 {"linear", {0.002, 0.015}},
                 {"softmax", {0.002, 0.02}}};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof CASES / sizeof *CASES; i++) {
        test_problem p;
        skewed(&p, CASES[i / 2].model);
        test_training one = {.access = RBT_ACCESS_HOGWILD,
                             .optimizer = RBT_OPTIMIZER_SGD,
                             .workers = 1,
                             .rate = CASES[i / 2].rates[i % 2],
                             .decay = i % 2 == 0 ? 0.9 : 0.7,
                             .passes = 20};
        double alone = train(&p.problem, &one, NULL);
        for (uint32_t workers = 2; workers <= MOST; workers += 2) {
            test_training several = one;
            several.workers = workers;
            several.looks = 0;
            assert_true(rbt_replicas_pay(&p.problem, workers));
            if (!within(train(&p.problem, &several, NULL), alone, 5e-3))
                fail_msg("%s, %u workers, rate %g", CASES[i / 2].model, workers, one.rate);
            assert_true(within(several.objective[several.looks - 1], several.outcome, 1e-6));
        }
        test_problem_deinit(&p);
    }
}

static void copies_are_made_only_where_they_are_small_beside_the_data(void **state)
{
    test_problem p;
    skewed(&p, "lr");
    rbt_problem wide = p.problem;
    (void)state;
    assert_true(rbt_replicas_pay(&p.problem, 2));
    assert_false(rbt_replicas_pay(&p.problem, 4096)); /* the more threads, the more copies */
    wide.weights = p.data.nnz;
    assert_false(rbt_replicas_pay(&wide, 2));
    wide.weights = 0;
    assert_false(rbt_replicas_pay(&wide, 2));
    test_problem_deinit(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_addition_is_lost_between_threads),
        cmocka_unit_test(common_features_are_exchanged_during_a_pass_and_rare_ones_at_its_end),
        cmocka_unit_test(a_look_that_is_due_brings_all_that_others_had_brought),
        cmocka_unit_test(of_many_features_few_wait_for_the_end_of_a_pass),
        cmocka_unit_test(copies_meet_the_sooner_the_larger_the_steps_and_the_more_threads_there_are),
        cmocka_unit_test(copies_train_as_well_as_one_thread),
        cmocka_unit_test(copies_are_made_only_where_they_are_small_beside_the_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

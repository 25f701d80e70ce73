/* Proves jobs of table programs through the public interface (rubato.h, sections 4 and 5), on every runtime: tables are
 * created, read and incremented by a program, and read again when it has ended. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rubato.h"

#define WORKERS 5
#define CLOCKS  12
#define COLS    300

typedef struct tables {
    rbt_table counts; /* i64, 2 x COLS */
    rbt_table means;  /* f32, 1 x COLS */
    rbt_table rare;   /* i32, sparse, 3 x 1e12 */
} tables;

#define try(call)                                                                                                      \
    do {                                                                                                               \
        rbt_err err_ = (call);                                                                                         \
        if (err_ != RBT_OK)                                                                                            \
            return err_;                                                                                               \
    } while (0)

/* Every worker adds 1 to all of row 0, its number + 1 to one element of row 1, and touches far-apart keys. */
static rbt_err count(rbt_worker *worker, void *argument, rbt_error *error)
{
    const tables *t = argument;
    uint32_t me = rbt_worker_id(worker);
    uint64_t keys[3] = {me, 500000000000u + me, 999999999999u};
    int64_t ones[COLS], row[COLS];
    float halves[COLS];
    int32_t one[3] = {1, 1, 1}, seen[3];

    for (size_t i = 0; i < COLS; i++) {
        ones[i] = 1;
        halves[i] = 0.5f;
    }
    while (rbt_worker_clock(worker) < CLOCKS) {
        uint64_t clock = rbt_worker_clock(worker);

        try(rbt_get_row(worker, t->counts, 0, RBT_STALENESS_OF_JOB, row, error));
        if (row[7] < (int64_t)clock)
            return RBT_E_BROKEN; /* its own are always there */
        try(rbt_get_keys(worker, t->rare, 2, keys, 3, RBT_STALENESS_OF_JOB, seen, error));
        if (seen[0] != (int32_t)clock)
            return RBT_E_BROKEN;
        try(rbt_inc_row(worker, t->counts, 0, ones, error));
        try(rbt_inc(worker, t->counts, 1, me, me + 1, error));
        try(rbt_inc_range(worker, t->means, 0, 10, 20, halves, error));
        try(rbt_inc_keys(worker, t->rare, 2, keys, 3, one, error));
        rbt_worker_did(worker, 1, 10);
        try(rbt_clock(worker, error));
    }
    return RBT_OK;
}

static rbt_job *counting_job(const char *runtime, const char *sync, tables *t)
{
    rbt_error error;
    rbt_job *job = rbt_job_create(NULL);
    rbt_table_spec counts = {.name = "counts", .rows = 2, .cols = COLS, .type = RBT_I64};
    rbt_table_spec means = {.name = "means", .rows = 1, .cols = COLS, .type = RBT_F32};
    rbt_table_spec rare = {.name = "rare", .rows = 3, .cols = 1000000000000u, .type = RBT_I32, .sparse = true};

    assert_int_equal(rbt_table_create(job, &counts, &t->counts, &error), RBT_OK);
    assert_int_equal(rbt_table_create(job, &means, &t->means, &error), RBT_OK);
    assert_int_equal(rbt_table_create(job, &rare, &t->rare, &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "runtime", runtime, &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "workers", "5", &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "servers", "3", &error), RBT_OK);
    assert_int_equal(rbt_job_set(job, "sync", sync, &error), RBT_OK);
    return job;
}

/* There is no loss; there are samples, and values. */
static void assert_result_is_true(const rbt_result *r, uint64_t *hash)
{
    assert_true(isnan(r->loss) && isnan(r->minobj) && isnan(r->varobj));
    assert_true(fabs(r->samples_per_second * r->seconds - WORKERS * CLOCKS) < 1e-6);
    assert_true(r->has_table_sum);
    assert_int_equal(r->table_sum, (COLS + 3 + (WORKERS + 1) / 2) * WORKERS * CLOCKS);
    if (*hash == 0)
        *hash = r->param_hash;
    assert_true(*hash != 0 && r->param_hash == *hash); /* whoever has the blocks */
}

static void a_programs_increments_are_all_there_when_it_has_ended(void **state)
{
    static const char *const runtimes[] = {"local", "sim"}, *const syncs[] = {"bsp", "ssp", "asp"};
    uint64_t hash = 0;

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        tables t;
        rbt_error error = {0};
        rbt_job *job = counting_job(runtimes[i % 2], syncs[i / 2], &t);
        rbt_program program = {.name = "count", .work = count, .argument = &t};
        int64_t row[COLS];
        float means[COLS];
        int32_t rare;

        assert_int_equal(rbt_job_set(job, "servers", i < 4 ? "3" : "2", &error), RBT_OK);
        assert_int_equal(rbt_job_run_program(job, &program, NULL, NULL, &error), RBT_OK);
        assert_int_equal(rbt_job_result(job)->updates, WORKERS * CLOCKS);
        assert_result_is_true(rbt_job_result(job), &hash);
        assert_int_equal(rbt_table_read(job, t.counts, 0, 0, COLS, row, &error), RBT_OK);
        for (size_t k = 0; k < COLS; k++)
            assert_int_equal(row[k], WORKERS * CLOCKS);
        assert_int_equal(rbt_table_read(job, t.counts, 1, 0, COLS, row, &error), RBT_OK);
        for (size_t k = 0; k < COLS; k++)
            assert_int_equal(row[k], k < WORKERS ? (k + 1) * CLOCKS : 0);
        assert_int_equal(rbt_table_read(job, t.means, 0, 5, 30, means, &error), RBT_OK);
        for (size_t k = 0; k < 30; k++)
            assert_true(means[k] == (k >= 5 && k < 25 ? 0.5f * WORKERS * CLOCKS : 0));
        assert_int_equal(rbt_table_read(job, t.rare, 2, 999999999999u, 1, &rare, &error), RBT_OK);
        assert_int_equal(rare, WORKERS * CLOCKS);
        rbt_job_destroy(job);
    }
}

static void what_is_out_of_place_is_refused(void **state)
{
    tables t;
    rbt_error error;
    rbt_job *job = counting_job("sim", "bsp", &t), *model = rbt_job_create("lr");
    rbt_table_spec empty = {.name = "empty", .rows = 0, .cols = 5}, fine = {.name = "fine", .rows = 1, .cols = 5};
    rbt_table_spec nameless = {.rows = 1, .cols = 5},
                   typeless = {.name = "t", .rows = 1, .cols = 5, .type = (rbt_type)7};
    int64_t value;
    rbt_table table;

    (void)state;
    assert_int_equal(rbt_table_create(job, &empty, &table, &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "'empty'"));
    assert_int_equal(rbt_table_create(model, &fine, &table, &error), RBT_E_USAGE);
    assert_int_equal(rbt_table_create(job, &nameless, &table, &error), RBT_E_USAGE);
    assert_int_equal(rbt_table_create(job, &typeless, &table, &error), RBT_E_USAGE);
    assert_int_equal(rbt_job_save(job, "m.rbt", &error), RBT_E_USAGE);
    assert_int_equal(rbt_job_run(job, NULL, NULL, &error), RBT_E_USAGE); /* no model */
    assert_int_equal(rbt_table_read(job, t.counts, 0, 0, 1, &value, &error), RBT_E_USAGE);
    assert_non_null(strstr(error.text, "not been run"));
    rbt_job_destroy(job);
    rbt_job_destroy(model);
}

static void a_cluster_is_refused_and_another_runtime_will_do(void **state)
{
    tables t;
    rbt_error error;
    rbt_job *job = counting_job("cluster", "ssp", &t);
    rbt_program program = {.name = "count", .work = count, .argument = &t};

    (void)state;
    assert_int_equal(rbt_job_run_program(job, &program, NULL, NULL, &error), RBT_E_UNSUPPORTED);
    assert_non_null(strstr(error.text, "'count' cannot run with runtime cluster; use local or sim"));
    assert_int_equal(rbt_job_set(job, "runtime", "sim", &error), RBT_OK);
    assert_int_equal(rbt_job_run_program(job, &program, NULL, NULL, &error), RBT_OK);
    rbt_job_destroy(job);
}

/* Reads outside its table. */
static rbt_err stray(rbt_worker *worker, void *argument, rbt_error *error)
{
    const tables *t = argument;
    int64_t row[COLS];

    return rbt_get_range(worker, t->counts, 2, 0, 1, RBT_STALENESS_OF_JOB, row, error);
}

static void a_program_that_strays_ends_the_job_with_its_error(void **state)
{
    static const char *const runtimes[] = {"local", "sim"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        tables t;
        rbt_error error;
        rbt_job *job = counting_job(runtimes[i], "ssp", &t);
        rbt_program program = {.name = "stray", .work = stray, .argument = &t};

        assert_int_equal(rbt_job_run_program(job, &program, NULL, NULL, &error), RBT_E_USAGE);
        assert_non_null(strstr(error.text, "outside table 0"));
        assert_int_equal(rbt_job_run_program(job, &program, NULL, NULL, &error), RBT_E_USAGE); /* once only */
        assert_non_null(strstr(error.text, "not run before"));
        rbt_job_destroy(job);
    }
}

/* A table whose elements are the largest value that anybody has sent. */
static void take_largest(const rbt_procedure *procedure, const rbt_procedure_job *job, rbt_procedure_block *block,
                         const rbt_procedure_update *update)
{
    (void)procedure;
    (void)job;
    for (uint32_t k = 0; k < update->count; k++) {
        uint32_t i = update->index != NULL ? update->index[k] : k;

        if (update->value[k] > block->value[i])
            block->value[i] = update->value[k];
    }
}

static const rbt_procedure LARGEST = {.name = "largest", .takes_gradients = true, .apply = take_largest};

typedef struct own {
    rbt_table largest, steps, sums, counts;
} own;

static rbt_err send_all(rbt_worker *worker, void *argument, rbt_error *error)
{
    const own *t = argument;
    float me = (float)rbt_worker_id(worker) + 1, row[COLS], one = 1;

    while (rbt_worker_clock(worker) < CLOCKS) {
        for (size_t i = 0; i < COLS; i++)
            row[i] = me * (float)((i + rbt_worker_clock(worker)) % 7);
        try(rbt_inc_row(worker, t->largest, 0, row, error));
        try(rbt_get_row(worker, t->steps, 0, RBT_STALENESS_OF_JOB, row, error));
        for (size_t i = 0; i < COLS; i++)
            row[i] -= (float)i;
        try(rbt_inc_row(worker, t->steps, 0, row, error));
        try(rbt_inc_range(worker, t->sums, 0, 3, 1, &one, error));
        try(rbt_inc(worker, t->counts, 0, 3, 1, error));
        try(rbt_clock(worker, error));
    }
    return RBT_OK;
}

static void a_table_can_bring_its_own_procedure(void **state)
{
    static const char *const runtimes[] = {"local", "sim"}, *const syncs[] = {"bsp", "ssp", "asp"};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        own t;
        rbt_error error = {0};
        rbt_job *job = rbt_job_create(NULL);
        rbt_program program = {.name = "send", .work = send_all, .argument = &t};
        rbt_table_spec spec = {.name = "largest", .rows = 1, .cols = COLS, .type = RBT_F32, .rule = &LARGEST};
        float row[COLS], steps[COLS];
        int64_t counts[COLS];

        assert_int_equal(rbt_table_create(job, &spec, &t.largest, &error), RBT_OK);
        spec.rule = rbt_procedure_find("adarev");
        assert_int_equal(rbt_table_create(job, &spec, &t.steps, &error), RBT_OK);
        spec.rule = NULL;
        assert_int_equal(rbt_table_create(job, &spec, &t.sums, &error), RBT_OK);
        spec.rule = &LARGEST; /* integers are added up all the same */
        spec.type = RBT_I64;
        assert_int_equal(rbt_table_create(job, &spec, &t.counts, &error), RBT_OK);
        assert_int_equal(rbt_job_set(job, "runtime", runtimes[i % 2], &error), RBT_OK);
        assert_int_equal(rbt_job_set(job, "workers", "5", &error), RBT_OK);
        assert_int_equal(rbt_job_set(job, "servers", "3", &error), RBT_OK);
        assert_int_equal(rbt_job_set(job, "lr", "2", &error), RBT_OK);
        assert_int_equal(rbt_job_set(job, "sync", syncs[i / 2], &error), RBT_OK);
        if (rbt_job_run_program(job, &program, NULL, NULL, &error) != RBT_OK)
            fail_msg("%s %s: %s", runtimes[i % 2], syncs[i / 2], error.text);
        assert_int_equal(rbt_table_read(job, t.largest, 0, 0, COLS, row, &error), RBT_OK);
        assert_int_equal(rbt_table_read(job, t.steps, 0, 0, COLS, steps, &error), RBT_OK);
        for (size_t k = 0; k < COLS; k++) {
            assert_true(row[k] == 6 * WORKERS);                    /* every residue came by */
            assert_true(k == 0 ? steps[k] == 0 : steps[k] > 0.5f); /* on its way to k */
        }
        assert_int_equal(rbt_table_read(job, t.sums, 0, 0, COLS, row, &error), RBT_OK);
        assert_int_equal(rbt_table_read(job, t.counts, 0, 0, COLS, counts, &error), RBT_OK);
        assert_true(row[3] == WORKERS * CLOCKS && counts[3] == WORKERS * CLOCKS);
        assert_true(rbt_job_result(job)->peak_versions >= 1 && rbt_job_result(job)->version_bytes > 0);
        rbt_job_destroy(job);
    }
}

static void a_procedure_that_does_not_fit_its_table_is_refused(void **state)
{
    const rbt_procedure useless = {.name = "useless"};
    const rbt_table_spec specs[] = {
        {.name = "far", .rows = 1, .cols = 1000, .type = RBT_F32, .sparse = true, .rule = &LARGEST},
        {.name = "near", .rows = 1, .cols = 1000, .type = RBT_F32, .rule = &useless}};
    static const char *const says[] = {"table 'far' is sparse, and rule largest", "procedure 'useless' needs"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        own t = {0};
        rbt_error error = {0};
        rbt_job *job = rbt_job_create(NULL);
        rbt_program program = {.name = "send", .work = send_all, .argument = &t};

        assert_int_equal(rbt_table_create(job, &specs[i], &t.largest, &error), RBT_OK);
        assert_int_equal(rbt_job_run_program(job, &program, NULL, NULL, &error), RBT_E_USAGE);
        assert_non_null(strstr(error.text, says[i]));
        rbt_job_destroy(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_programs_increments_are_all_there_when_it_has_ended),
        cmocka_unit_test(what_is_out_of_place_is_refused),
        cmocka_unit_test(a_cluster_is_refused_and_another_runtime_will_do),
        cmocka_unit_test(a_program_that_strays_ends_the_job_with_its_error),
        cmocka_unit_test(a_table_can_bring_its_own_procedure),
        cmocka_unit_test(a_procedure_that_does_not_fit_its_table_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

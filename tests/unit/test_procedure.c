/* Proves src/rule/procedure.c and the procedures made with it: adarev is AdaptiveRevision, and adagrad bit for bit where
 * there is no delay; a version is kept as long as a worker can name it, and within the limit; momentum goes on with what
 * a clock changed; the four functions are called when the header says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "rule/procedure.h"

#define N 6

static const rbt_rule_config ADAREV = {.rule = &rbt_rule_adarev, .workers = 3, .staleness = 5, .rate = 0.3f};

/* A worker reads: returns the version its next gradients name. */
static uint64_t lend(rbt_cell *cell, const rbt_rule_config *config, uint32_t worker)
{
    uint64_t version;

    rbt_cell_lend(cell, config, worker);
    rbt_snap_unref(rbt_cell_read(cell, config, 0, &version));
    return version;
}

static void push(rbt_cell *cell, const rbt_rule_config *config, uint32_t worker, uint64_t clock, uint64_t version,
                 const float *g)
{
    rbt_snap *update = g != NULL ? rbt_snap_pack(RBT_F32, cell->value->length, g, 0) : NULL;
    rbt_push p = {.worker = worker, .clock = clock, .version = version, .update = update};

    assert_true(rbt_cell_accepts(cell, config, &p));
    rbt_cell_push(cell, config, &p);
    rbt_snap_unref(update);
}

static void draw(rbt_rng *rng, float g[N])
{
    bool sparse = rbt_rng_below(rng, 2) == 0;

    for (int i = 0; i < N; i++)
        g[i] = sparse && rbt_rng_below(rng, 3) != 0 ? 0 : (float)(rbt_rng_normal(rng) * exp(3 * rbt_rng_normal(rng)));
}

/* ------------------------------------------------------------------------------------------------ adarev */

static void adarev_without_delay_is_adagrad_bit_for_bit(void **state)
{
    const rbt_rule_config adagrad = {.rule = &rbt_rule_adagrad, .workers = 3, .rate = 0.3f};
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 1);
    rbt_cell a, b;

    (void)state;
    rbt_cell_init(&a, &adagrad, RBT_F32, N, false);
    rbt_cell_init(&b, &ADAREV, RBT_F32, N, false);
    for (uint64_t t = 0; t < 5000; t++) { /* every worker pushes what it computed from the newest version */
        uint32_t worker = (uint32_t)rbt_rng_below(&rng, 3);
        uint64_t version = rbt_rng_below(&rng, 8) == 0 ? RBT_UNBOUNDED : lend(&b, &ADAREV, worker);
        float g[N];

        draw(&rng, g);
        push(&a, &adagrad, worker, t, 0, g);
        push(&b, &ADAREV, worker, t, version, g);
        assert_memory_equal(a.value->f32, b.value->f32, N * sizeof(float));
    }
    rbt_cell_deinit(&a);
    rbt_cell_deinit(&b);
}

/* x, G, z, zmax of one coordinate, in double precision, after docs/protocols.md. */
typedef struct plain {
    double x, sum, z, most;
} plain;

static void revise(plain *p, double rate, double g, double sum_old)
{
    double b = p->sum - sum_old, e_old = rate / (sqrt(p->most) + 1e-8), e;

    p->z += g * g + 2 * g * b;
    p->most = fmax(p->most, p->z);
    e = rate / (sqrt(p->most) + 1e-8);
    p->x += -e * g + (e_old - e) * b;
    p->sum += g;
}

static void adarev_revises_by_what_a_delayed_gradient_has_missed(void **state)
{
    rbt_rng rng = rbt_rng_stream(2, RBT_STREAM_TEST, 2);
    uint64_t version[3] = {0};
    double sum_old[3][N] = {{0}};
    plain expected[N] = {{0}};
    rbt_cell cell;

    (void)state;
    rbt_cell_init(&cell, &ADAREV, RBT_F32, N, false);
    for (uint32_t m = 0; m < 3; m++)
        version[m] = lend(&cell, &ADAREV, m);
    for (uint64_t t = 0; t < 300; t++) {
        uint32_t m = (uint32_t)rbt_rng_below(&rng, 3);
        float g[N];

        for (int i = 0; i < N; i++) { /* coarse, so that sums are exact */
            g[i] = (float)((int)rbt_rng_below(&rng, 33) - 16) / 16;
            revise(&expected[i], (double)ADAREV.rate, (double)g[i], sum_old[m][i]);
        }
        push(&cell, &ADAREV, m, t, version[m], g);
        for (int i = 0; i < N; i++) {
            assert_true(cell.memory[i] == (float)expected[i].sum);
            assert_true(fabs((double)cell.value->f32[i] - expected[i].x) < 1e-4);
        }
        if (rbt_rng_below(&rng, 3) != 0)
            continue; /* computes from the same copy once more */
        version[m] = lend(&cell, &ADAREV, m);
        for (int i = 0; i < N; i++)
            sum_old[m][i] = expected[i].sum;
    }
    rbt_cell_deinit(&cell);
}

/* Two workers at the same version: as if one had sent the sum of both. */
static void gradients_of_one_version_end_where_their_sum_would(void **state)
{
    const float g[2][N] = {{1, -2, 0.5f, 0, 3, 1}, {2, -1, 0.25f, 4, 0, 1}};
    rbt_cell one, two;
    float sum[N];

    (void)state;
    rbt_cell_init(&one, &ADAREV, RBT_F32, N, false);
    rbt_cell_init(&two, &ADAREV, RBT_F32, N, false);
    for (int i = 0; i < N; i++)
        sum[i] = g[0][i] + g[1][i];
    for (uint32_t m = 0; m < 2; m++)
        lend(&two, &ADAREV, m);
    push(&one, &ADAREV, 0, 0, lend(&one, &ADAREV, 0), sum);
    push(&two, &ADAREV, 0, 0, 0, g[0]);
    push(&two, &ADAREV, 1, 0, 0, g[1]);
    for (int i = 0; i < N; i++)
        assert_true(fabsf(one.value->f32[i] - two.value->f32[i]) < 1e-6f);
    rbt_cell_deinit(&one);
    rbt_cell_deinit(&two);
}

static void a_version_there_has_not_been_is_not_accepted(void **state)
{
    rbt_cell cell;

    (void)state;
    rbt_cell_init(&cell, &ADAREV, RBT_F32, N, false);
    assert_true(rbt_cell_accepts(&cell, &ADAREV, &(rbt_push){.version = 0}));
    assert_true(rbt_cell_accepts(&cell, &ADAREV, &(rbt_push){.version = RBT_UNBOUNDED}));
    assert_false(rbt_cell_accepts(&cell, &ADAREV, &(rbt_push){.version = 1}));
    rbt_cell_deinit(&cell);
}

/* ----------------------------------------------------------------------------------------------- versions */

static void a_version_is_kept_until_nobody_can_name_it(void **state)
{
    const float g[N] = {1, 1, 1, 1, 1, 1};
    rbt_cell cell;

    (void)state;
    rbt_cell_init(&cell, &ADAREV, RBT_F32, N, false);
    for (uint32_t m = 0; m < 3; m++)
        assert_int_equal(lend(&cell, &ADAREV, m), 0);
    assert_int_equal(rbt_cell_version_count(&cell), 1); /* the same for all */
    assert_int_equal(rbt_cell_version_bytes(&cell), N * sizeof(float));
    push(&cell, &ADAREV, 0, 0, 0, g);
    push(&cell, &ADAREV, 0, 1, 0, g); /* without reading again */
    assert_int_equal(lend(&cell, &ADAREV, 0), 2);
    assert_int_equal(rbt_cell_version_count(&cell), 2);
    push(&cell, &ADAREV, 0, 2, 2, NULL); /* names it, though nothing changed */
    assert_int_equal(cell.updates, 2);
    assert_int_equal(rbt_cell_version_count(&cell), 2); /* 1 and 2 hold version 0 */
    assert_int_equal(lend(&cell, &ADAREV, 1), 2);
    push(&cell, &ADAREV, 1, 0, 2, g);
    assert_int_equal(rbt_cell_version_count(&cell), 2);
    rbt_cell_leave(&cell, &ADAREV, 2);
    assert_int_equal(rbt_cell_version_count(&cell), 1);
    assert_int_equal(cell.kept.at[0].version, 2);
    rbt_cell_leave(&cell, &ADAREV, 0);
    rbt_cell_leave(&cell, &ADAREV, 1);
    assert_int_equal(rbt_cell_version_count(&cell), 0);
    rbt_cell_deinit(&cell);
}

static void beyond_the_limit_the_oldest_version_counts_as_the_next(void **state)
{
    const float g[N] = {1, 1, 1, 1, 1, 1};
    rbt_rule_config config = ADAREV;
    rbt_cell cell, other;

    (void)state;
    config.most_kept = 3;
    rbt_cell_init(&cell, &config, RBT_F32, N, false);
    rbt_cell_init(&other, &config, RBT_F32, N, false);
    for (uint64_t t = 0; t < 6; t++) { /* worker 1 reads every version, 2 only the first, nobody names any */
        if (t == 0)
            lend(&cell, &config, 2);
        lend(&cell, &config, 1);
        assert_true(rbt_cell_version_count(&cell) <= 3);
        assert_int_equal(rbt_cell_may_spread(&cell, &config), true); /* this version is kept already */
        push(&cell, &config, 0, t, RBT_UNBOUNDED, g);
        assert_int_equal(rbt_cell_may_spread(&cell, &config), t < 2);
        push(&other, &config, 0, t, t == 3 ? lend(&other, &config, 2) : RBT_UNBOUNDED, g);
    }
    assert_int_equal(cell.kept.at[0].version, 3); /* 0, 1 and 2 are gone */
    push(&cell, &config, 2, 0, 0, g);
    push(&other, &config, 2, 0, 3, g);
    assert_memory_equal(cell.value->f32, other.value->f32, N * sizeof(float));
    assert_true(cell.memory[0] == 7); /* no gradient is lost */
    rbt_cell_deinit(&cell);
    rbt_cell_deinit(&other);
}

static void the_limit_holds_whatever_readers_do(void **state)
{
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 3);
    rbt_rule_config config = ADAREV;

    (void)state;
    config.workers = 200;
    for (uint32_t most = 0; most < 4; most++) {
        rbt_cell cell;

        config.most_kept = most;
        rbt_cell_init(&cell, &config, RBT_F32, N, false);
        for (uint64_t t = 0; t < 3000; t++) {
            uint32_t worker = (uint32_t)rbt_rng_below(&rng, 200);
            float g[N];

            draw(&rng, g);
            lend(&cell, &config, worker);
            push(&cell, &config, worker, t, rbt_rng_below(&rng, cell.updates + 1), g);
            assert_true(rbt_cell_version_count(&cell) <= (most > 0 ? most : RBT_KEPT_MAX));
        }
        for (uint32_t m = 0; m < 200; m++)
            rbt_cell_leave(&cell, &config, m);
        assert_int_equal(rbt_cell_version_count(&cell), 0);
        rbt_cell_deinit(&cell);
    }
}

/* ----------------------------------------------------------------------------------------------- momentum */

static void momentum_goes_on_with_what_a_clock_changed(void **state)
{
    const rbt_rule_config config = {
        .rule = &rbt_rule_momentum, .workers = 2, .staleness = 2, .factor = 0.5f, .momentum = 0.5f};
    const float u[2][N] = {{8, 0, 0, 4, 0, 0}, {0, 16, 0, 4, 0, 0}};
    rbt_cell cell;

    (void)state;
    rbt_cell_init(&cell, &config, RBT_F32, N, false);
    for (uint32_t m = 0; m < 2; m++)
        push(&cell, &config, m, 0, 0, u[m]);
    assert_memory_equal(cell.value->f32, ((float[N]){4, 8, 0, 4}), N * sizeof(float)); /* the mean's sum, once */
    push(&cell, &config, 0, 1, 0, NULL); /* the velocity, 4 8 0 4, goes on at half of it: once a clock */
    push(&cell, &config, 1, 1, 0, NULL);
    assert_memory_equal(cell.value->f32, ((float[N]){6, 12, 0, 6}), N * sizeof(float));
    push(&cell, &config, 0, 2, 0, u[0]);
    assert_memory_equal(cell.value->f32, ((float[N]){11, 14, 0, 9}), N * sizeof(float));
    push(&cell, &config, 0, 3, 0, NULL); /* velocity 5 2 0 3 */
    push(&cell, &config, 1, 2, 0, u[1]); /* late: joins the velocity, does not move it */
    assert_memory_equal(cell.value->f32, ((float[N]){13.5f, 23, 0, 12.5f}), N * sizeof(float));
    push(&cell, &config, 0, 4, 0, NULL); /* velocity 2.5 9 0 3.5 */
    assert_memory_equal(cell.value->f32, ((float[N]){14.75f, 27.5f, 0, 14.25f}), N * sizeof(float));
    rbt_cell_deinit(&cell);
}

/* ----------------------------------------------------------------------------------------- a user's own */

typedef struct calls {
    int inits, reads, applied, expired;
    float seen[8]; /* what on_read had written down, as apply got it; -1: nothing */
    uint64_t clock;
} calls;

static void count_init(const rbt_procedure *p, const rbt_procedure_job *job, rbt_procedure_block *block)
{
    calls *c = *(calls *const *)p->argument;

    c->inits++;
    assert_int_equal(job->workers, 2);
    assert_true(job->rate == 0.125f && job->momentum == 0.75f && job->factor == 0.5f);
    for (uint32_t i = 0; i < block->n; i++) {
        assert_true(block->value[i] == 0 && block->memory[i] == 0 && block->memory[block->n + i] == 0);
        block->value[i] = 10;
    }
}

static void count_read(const rbt_procedure *p, const rbt_procedure_job *job, const rbt_procedure_block *block,
                       float *kept)
{
    (void)job;
    (*(calls *const *)p->argument)->reads++;
    for (uint32_t i = 0; i < block->n; i++)
        kept[i] = (float)block->version;
}

static void count_apply(const rbt_procedure *p, const rbt_procedure_job *job, rbt_procedure_block *block,
                        const rbt_procedure_update *update)
{
    calls *c = *(calls *const *)p->argument;

    (void)job;
    c->clock = block->clock;
    c->seen[c->applied++] = update->kept != NULL ? update->kept[0] : -1;
    for (uint32_t k = 0; k < update->count; k++)
        block->value[update->index != NULL ? update->index[k] : k] += update->value[k];
}

static void count_expire(const rbt_procedure *p, const rbt_procedure_job *job, rbt_procedure_block *block,
                         const float *kept)
{
    (void)job;
    (*(calls *const *)p->argument)->expired++;
    block->memory[0] += kept[0];
}

static void the_four_functions_are_called_when_the_header_says(void **state)
{
    calls c = {0}, *where = &c;
    const rbt_procedure own = {.name = "own",
                               .argument = &where,
                               .memory = 2,
                               .kept = 1,
                               .counts_empty = true,
                               .init = count_init,
                               .on_read = count_read,
                               .apply = count_apply,
                               .expire = count_expire};
    const float u[N] = {1, 0, 0, 0, 0, 0};
    rbt_rule rule;
    rbt_rule_config config = {.rule = &rule, .workers = 2, .rate = 0.125f, .momentum = 0.75f, .factor = 0.5f};
    rbt_error error;
    rbt_cell cell;

    (void)state;
    assert_int_equal(rbt_rule_of_procedure(&own, &rule, &error), RBT_OK);
    assert_true(rule.versions == RBT_VERSIONS_READ && rule.counts_empty && !rule.takes_gradients);
    rbt_cell_init(&cell, &config, RBT_F32, N, false);
    assert_true(c.inits == 1 && cell.value->f32[3] == 10);
    lend(&cell, &config, 0);
    lend(&cell, &config, 1);
    assert_int_equal(c.reads, 1); /* once for a version */
    push(&cell, &config, 0, 0, 0, u);
    lend(&cell, &config, 0);
    push(&cell, &config, 0, 1, 1, u);
    push(&cell, &config, 1, 0, 0, NULL); /* an empty one counts */
    lend(&cell, &config, 1);
    push(&cell, &config, 1, 1, RBT_UNBOUNDED, u); /* tells nothing of what it holds */
    assert_int_equal(c.expired, 0);
    push(&cell, &config, 1, 2, 2, u);
    assert_int_equal(c.expired, 1); /* version 0 */
    assert_true(c.reads == 3 && c.applied == 5);
    assert_true(c.seen[0] == 0 && c.seen[1] == 1 && c.seen[2] == -1 && c.seen[3] == -1 && c.seen[4] == 2);
    assert_int_equal(c.clock, 2); /* before this one, which ended clock 2 */
    assert_true(cell.value->f32[0] == 14);
    rbt_cell_leave(&cell, &config, 0);
    rbt_cell_leave(&cell, &config, 1);
    assert_true(c.expired == 3 && cell.memory[0] == 3);
    rbt_cell_deinit(&cell);
}

static void a_procedure_that_lacks_something_is_refused(void **state)
{
    rbt_error error;
    rbt_rule rule;

    (void)state;
    assert_int_equal(rbt_rule_of_procedure(&(rbt_procedure){.name = "a"}, &rule, &error), RBT_E_USAGE);
    assert_int_equal(rbt_rule_of_procedure(&(rbt_procedure){.apply = count_apply}, &rule, &error), RBT_E_USAGE);
    assert_int_equal(
        rbt_rule_of_procedure(&(rbt_procedure){.name = "a", .apply = count_apply, .kept = 1}, &rule, &error),
        RBT_E_USAGE);
    assert_int_equal(
        rbt_rule_of_procedure(&(rbt_procedure){.name = "a", .apply = count_apply, .memory = 65}, &rule, &error),
        RBT_E_LIMIT);
    assert_non_null(strstr(error.text, "'a'"));
}

static void the_servers_own_procedures_are_found_by_name(void **state)
{
    (void)state;
    assert_string_equal(rbt_procedure_find("adarev")->name, "adarev");
    assert_ptr_equal(rbt_procedure_find("adagrad"), rbt_rule_adagrad.procedure);
    assert_non_null(rbt_procedure_find("momentum"));
    assert_null(rbt_procedure_find("sum"));
    assert_null(rbt_procedure_find(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adarev_without_delay_is_adagrad_bit_for_bit),
        cmocka_unit_test(adarev_revises_by_what_a_delayed_gradient_has_missed),
        cmocka_unit_test(gradients_of_one_version_end_where_their_sum_would),
        cmocka_unit_test(a_version_there_has_not_been_is_not_accepted),
        cmocka_unit_test(a_version_is_kept_until_nobody_can_name_it),
        cmocka_unit_test(beyond_the_limit_the_oldest_version_counts_as_the_next),
        cmocka_unit_test(the_limit_holds_whatever_readers_do),
        cmocka_unit_test(momentum_goes_on_with_what_a_clock_changed),
        cmocka_unit_test(the_four_functions_are_called_when_the_header_says),
        cmocka_unit_test(a_procedure_that_lacks_something_is_refused),
        cmocka_unit_test(the_servers_own_procedures_are_found_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

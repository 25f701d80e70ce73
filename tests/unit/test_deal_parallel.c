/* Proves src/data/deal.h: a worker has the same rows in the same order whoever has read them and wherever it lives, and
 * what is lost or changed on the way is noticed; copies of some rows are the same everywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/error.h"
#include "data/data.h"
#include "data/deal.h"
#include "data/ids.h"
#include "unit/crew.h"
#include "unit/files.h"

#define MOST 8

static const uint32_t sizes[] = {1, 2, 3, 5, 8};
#define SIZES (sizeof sizes / sizeof sizes[0])

typedef struct trial {
    const rbt_data *whole;
    uint32_t workers;
    uint64_t seed;
    size_t round_bytes;
    size_t first[MOST + 1]; /* of each process's part */
    uint32_t first_worker[MOST];
    uint32_t workers_of[MOST];
    rbt_data data[MOST];
    rbt_shards shards[MOST];
    rbt_err err[MOST];
    rbt_error error[MOST];
    size_t most_bytes;
    size_t damage; /* flip a bit in messages of at least so many bytes; 0: none */
} trial;

static size_t damage_from;

/* A crew whose messages are damaged on the way to the last rank. */
static rbt_err damaging_swap(rbt_crew *crew, const rbt_bytes *out, rbt_bytes *in, rbt_error *error)
{
    rbt_err err = crew_swap(crew, out, in, error);
    for (uint32_t r = 0; err == RBT_OK && crew->rank + 1 == crew->size && r < crew->size; r++)
        if (in[r].n >= damage_from)
            in[r].at[in[r].n / 2] ^= 4;
    return err;
}

static void deal_out(rbt_crew *crew, void *context)
{
    trial *t = context;
    uint32_t r = crew->rank;
    size_t rows_of[MOST], nnz_of[MOST], n = t->first[r + 1] - t->first[r];
    rbt_data_part part = {.rows_of = rows_of, .nnz_of = nnz_of, .rows = t->whole->rows, .nnz = t->whole->nnz};
    for (uint32_t q = 0; q < crew->size; q++)
        rows_of[q] = t->first[q + 1] - t->first[q];
    part.first = t->first[r];
    t->err[r] = rbt_data_slice(t->whole, t->first[r], n, &part.data, &t->error[r]);
    if (t->damage > 0)
        crew->swap = damaging_swap;
    if (t->err[r] == RBT_OK)
        t->err[r] = rbt_deal(&part, &(rbt_hosting){t->first_worker, t->workers_of}, t->workers, t->seed, t->round_bytes,
                             crew, &t->data[r], &t->shards[r], &t->error[r]);
    /* everybody has the names of all users, in their order; a thread must not assert */
    for (size_t u = 0; t->err[r] == RBT_OK && t->whole->row_names != NULL && u < t->whole->rows; u++)
        if (rbt_ids_count(part.users) != t->whole->rows ||
            strcmp(rbt_ids_name(part.users, u), rbt_ids_name(t->whole->row_names, u)) != 0)
            t->err[r] = rbt_fail(&t->error[r], RBT_E_BROKEN, "the names of all users are not those of the whole");
    rbt_ids_unref(part.users);
    rbt_data_deinit(&part.data);
    if (r == 0)
        t->most_bytes = crew_most_bytes(crew);
}

/* Parts of all sizes, none among them; workers unevenly, none on rank 0 when that can be. */
static void lay_out(trial *t, uint32_t size, rbt_rng *rng)
{
    uint32_t next = 0;
    for (uint32_t r = 0; r < size; r++) {
        size_t left = t->whole->rows - t->first[r];
        t->first[r + 1] = r + 1 == size ? t->whole->rows : t->first[r] + (size_t)rbt_rng_below(rng, left + 1);
        t->first_worker[r] = next;
        t->workers_of[r] = r + 1 == size       ? t->workers - next
                           : r == 0            ? 0
                           : t->workers > next ? (uint32_t)rbt_rng_below(rng, t->workers - next + 1)
                                               : 0;
        next += t->workers_of[r];
    }
}

static void same_rows(const rbt_data *a, size_t row, const rbt_data *b, size_t other)
{
    size_t n = a->start[row + 1] - a->start[row];
    assert_int_equal(b->start[other + 1] - b->start[other], n);
    assert_memory_equal(a->index + a->start[row], b->index + b->start[other], n * sizeof *a->index);
    assert_memory_equal(a->value + a->start[row], b->value + b->start[other], n * sizeof *a->value);
    assert_memory_equal(&a->label[row], &b->label[other], sizeof *a->label);
    assert_int_equal(a->content, b->content);
    if (a->row_names != NULL)
        assert_string_equal(rbt_ids_name(a->row_names, row), rbt_ids_name(b->row_names, other));
    if (a->col_names != NULL)
        assert_int_equal(rbt_ids_count(a->col_names), rbt_ids_count(b->col_names));
    if (a->weight != NULL)
        assert_memory_equal(&a->weight[row], &b->weight[other], sizeof *a->weight);
}

static void same_shards(const trial *t, uint32_t size)
{
    rbt_shards expected;
    assert_int_equal(rbt_shards_create(t->whole, t->workers, t->seed, &expected, NULL), RBT_OK);
    for (uint32_t r = 0; r < size; r++) {
        const rbt_data *d = &t->data[r];
        if (t->err[r] != RBT_OK)
            fail_msg("process %u of %u: %s", r, size, t->error[r].text);
        assert_int_equal(d->cols, t->whole->cols);
        assert_int_equal(d->label_count, t->whole->label_count);
        for (uint32_t m = 0, next = 0; m < t->workers; m++) {
            const rbt_shard *e = &expected.shard[m], *s = &t->shards[r].shard[m];
            bool here = m >= t->first_worker[r] && m < t->first_worker[r] + t->workers_of[r];
            assert_int_equal(s->n, e->n);
            assert_int_equal(s->nnz, e->nnz);
            assert_int_equal(s->rows != NULL, here);
            for (size_t i = 0; here && i < e->n; i++, next++) {
                assert_int_equal(s->rows[i], next); /* in the order of training, one worker's after the other */
                same_rows(t->whole, e->rows[i], d, s->rows[i]);
            }
        }
    }
    rbt_shards_destroy(&expected);
}

static void end(trial *t, uint32_t size)
{
    for (uint32_t r = 0; r < size; r++) {
        rbt_data_deinit(&t->data[r]);
        rbt_shards_destroy(&t->shards[r]);
    }
}

static void make_data(rbt_data *d, size_t n, bool weighted, rbt_rng *rng)
{
    assert_int_equal(rbt_data_alloc(n, n * 9, d, NULL), RBT_OK);
    d->weight = weighted ? rbt_alloc(n, sizeof *d->weight) : NULL;
    for (size_t r = 0; r < n; r++) {
        size_t features = (size_t)rbt_rng_below(rng, 10);
        for (size_t i = 0; i < features; i++) {
            d->index[d->nnz] = (uint32_t)(i * 7 + rbt_rng_below(rng, 7));
            d->value[d->nnz++] = (float)rbt_rng_f64(rng) + 1;
        }
        d->label[r] = (float)rbt_rng_below(rng, 4);
        if (weighted)
            d->weight[r] = (float)rbt_rng_f64(rng) + 1;
        d->start[r + 1] = d->nnz;
    }
    d->rows = n;
    d->cols = 70;
}

static void every_worker_gets_its_rows_in_their_order(void **state)
{
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        for (uint32_t workers = 1; workers <= 9; workers += 4) {
            for (int again = 0; again < 6; again++) {
                rbt_data d = {0};
                make_data(&d, again == 0 ? workers : 10 + (size_t)rbt_rng_below(&rng, 300), again % 2 == 1, &rng);
                trial t = {.whole = &d, .workers = workers, .seed = (uint64_t)again, .round_bytes = 1000};
                lay_out(&t, sizes[i], &rng);
                run_crew(sizes[i], deal_out, &t);
                same_shards(&t, sizes[i]);
                end(&t, sizes[i]);
                rbt_data_deinit(&d);
            }
        }
    }
}

/* Every third row, copied for all before rows are dealt out. */
static void copy_some(rbt_crew *crew, void *context)
{
    trial *t = context;
    uint32_t r = crew->rank, list[100];
    size_t rows_of[MOST], n = 0;
    rbt_data_part part = {.rows_of = rows_of, .rows = t->whole->rows, .first = t->first[r]};
    for (uint32_t q = 0; q < crew->size; q++)
        rows_of[q] = t->first[q + 1] - t->first[q];
    for (uint32_t row = 1; row < t->whole->rows; row += 3)
        list[n++] = row;
    t->err[r] = rbt_data_slice(t->whole, t->first[r], rows_of[r], &part.data, &t->error[r]);
    if (t->err[r] == RBT_OK)
        t->err[r] = rbt_deal_copies(&part, list, n, t->round_bytes, crew, &t->data[r], &t->error[r]);
    rbt_data_deinit(&part.data);
}

static void copies_of_rows_are_the_same_everywhere(void **state)
{
    rbt_rng rng = rbt_rng_stream(9, RBT_STREAM_TEST, 0);
    rbt_data whole = {0};
    (void)state;
    make_data(&whole, 100, true, &rng);
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t bytes = 200; bytes <= RBT_DEAL_ROUND_BYTES; bytes *= 1000) { /* in many rounds, and in one */
            trial t = {.whole = &whole, .workers = sizes[i], .round_bytes = bytes};
            lay_out(&t, sizes[i], &rng);
            run_crew(sizes[i], copy_some, &t);
            for (uint32_t r = 0; r < sizes[i]; r++) {
                if (t.err[r] != RBT_OK)
                    fail_msg("process %u of %u: %s", r, sizes[i], t.error[r].text);
                assert_int_equal(t.data[r].rows, 33);
                assert_int_equal(t.data[r].cols, whole.cols);
                for (size_t row = 0; row < 33; row++)
                    same_rows(&whole, 1 + 3 * row, &t.data[r], row);
                rbt_data_deinit(&t.data[r]);
            }
        }
    }
    rbt_data_deinit(&whole);
}

static void users_go_with_their_ratings(void **state)
{
    rbt_rng rng = rbt_rng_stream(4, RBT_STREAM_TEST, 0);
    char name[32];
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        rbt_data d = {0};
        make_data(&d, 100, false, &rng);
        d.content = RBT_CONTENT_RATINGS;
        d.row_names = rbt_ids_create();
        d.col_names = rbt_ids_create();
        for (size_t r = 0; r < d.rows; r++)
            assert_int_equal(rbt_ids_add(d.row_names, name, (size_t)sprintf(name, "u%zu", r * r)), r);
        for (size_t c = 0; c < d.cols; c++)
            assert_int_equal(rbt_ids_add(d.col_names, name, (size_t)sprintf(name, "i%zu", c)), c);
        trial t = {.whole = &d, .workers = 7, .seed = 5, .round_bytes = 1000};
        lay_out(&t, sizes[i], &rng);
        run_crew(sizes[i], deal_out, &t);
        same_shards(&t, sizes[i]);
        end(&t, sizes[i]);
        rbt_data_deinit(&d);
    }
}

static void a_round_stays_within_its_bytes(void **state)
{
    rbt_rng rng = rbt_rng_stream(2, RBT_STREAM_TEST, 0);
    rbt_data d = {0};
    (void)state;
    make_data(&d, 5000, true, &rng);
    trial t = {.whole = &d, .workers = 7, .seed = 3, .round_bytes = 2000};
    lay_out(&t, 5, &rng);
    run_crew(5, deal_out, &t);
    same_shards(&t, 5);
    assert_true(t.most_bytes <= 2000 / 5 + 2);
    end(&t, 5);
    rbt_data_deinit(&d);
}

static void what_is_damaged_on_the_way_is_noticed_by_all(void **state)
{
    rbt_rng rng = rbt_rng_stream(3, RBT_STREAM_TEST, 0);
    rbt_data d = {0};
    (void)state;
    make_data(&d, 3000, false, &rng);
    trial t = {.whole = &d, .workers = 3, .seed = 3, .round_bytes = RBT_DEAL_ROUND_BYTES, .damage = 8000};
    t.first[1] = 1000;
    t.first[2] = 2000;
    t.first[3] = 3000;
    for (uint32_t r = 0; r < 3; r++) {
        t.first_worker[r] = r;
        t.workers_of[r] = 1;
    }
    /* The rows of one process for another take above 8000 bytes, their lengths a few hundred. */
    damage_from = t.damage;
    run_crew(3, deal_out, &t);
    for (uint32_t r = 0; r < 3; r++) {
        assert_int_equal(t.err[r], RBT_E_BROKEN);
        assert_non_null(strstr(t.error[r].text, "3000 rows"));
    }
    end(&t, 3);
    rbt_data_deinit(&d);
}

static void more_workers_than_rows_are_refused_everywhere(void **state)
{
    rbt_rng rng = rbt_rng_stream(4, RBT_STREAM_TEST, 0);
    rbt_data d = {0};
    (void)state;
    make_data(&d, 4, false, &rng);
    trial t = {.whole = &d, .workers = 5, .round_bytes = 100};
    lay_out(&t, 3, &rng);
    run_crew(3, deal_out, &t);
    for (uint32_t r = 0; r < 3; r++)
        assert_int_equal(t.err[r], RBT_E_USAGE);
    rbt_data_deinit(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_worker_gets_its_rows_in_their_order),
        cmocka_unit_test(copies_of_rows_are_the_same_everywhere),
        cmocka_unit_test(users_go_with_their_ratings),
        cmocka_unit_test(a_round_stays_within_its_bytes),
        cmocka_unit_test(what_is_damaged_on_the_way_is_noticed_by_all),
        cmocka_unit_test(more_workers_than_rows_are_refused_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Proves src/method/lda_sampler.c and lda_apply.c: the sampler visits states as often as their probability says, and does as
 * well as a plain collapsed Gibbs sampler, which stands here as the reference; lists, counts and totals agree; data that does
 * not count words is refused; new documents get the topics of their words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "math/functions.h"
#include "method/lda_apply.h"
#include "method/lda_sampler.h"
#include "method/method.h"
#include "unit/plain_lda.h"

/* The sampler with all there is around it: counts of all words, as the servers would have them. */
typedef struct world {
    rbt_lda lda;
    rbt_lda_batch batch;
    uint32_t *rows;
    int32_t *counts;
    int64_t *totals;
    size_t tokens;
} world;

static void world_init(world *w, const rbt_data *data, const rbt_lda_shape *shape)
{
    size_t k = shape->topics;

    *w = (world){.rows = rbt_alloc(data->rows, sizeof *w->rows),
                 .counts = rbt_alloc(shape->words * k, sizeof *w->counts),
                 .totals = rbt_alloc(k, sizeof *w->totals)};
    for (size_t r = 0; r < data->rows; r++)
        w->rows[r] = (uint32_t)r;
    assert_int_equal(rbt_lda_init(&w->lda, shape, data, w->rows, data->rows, 0, NULL), RBT_OK);
    assert_int_equal(rbt_lda_batch_init(&w->batch, &w->lda, 0, data->rows, NULL), RBT_OK);
    w->tokens = w->batch.start[w->batch.words];
    for (size_t i = 0; i < w->batch.words; i++) {
        for (size_t t = w->batch.start[i]; t < w->batch.start[i + 1]; t++) {
            w->counts[w->batch.word[i] * k + w->batch.token[t].topic]++;
            w->totals[w->batch.token[t].topic]++;
        }
    }
}

static void world_deinit(world *w)
{
    rbt_lda_batch_deinit(&w->batch);
    rbt_lda_deinit(&w->lda);
    rbt_free(w->rows);
    rbt_free(w->counts);
    rbt_free(w->totals);
}

static void sweep(world *w)
{
    size_t k = w->lda.shape.topics;

    memcpy(w->lda.total, w->totals, k * sizeof *w->totals);
    rbt_lda_begin(&w->lda);
    for (size_t i = 0; i < w->batch.words; i++) {
        int32_t *row = w->counts + w->batch.word[i] * k;

        memcpy(w->lda.count, row, k * sizeof *row);
        rbt_lda_sample(&w->lda, &w->batch, i);
        memcpy(row, w->lda.count, k * sizeof *row);
    }
    memcpy(w->totals, w->lda.total, k * sizeof *w->totals);
}

static double joint(const world *w)
{
    size_t k = w->lda.shape.topics, words = w->lda.shape.words;
    double sum = rbt_lda_ln_topics(&w->lda, 0, w->lda.documents);
    rbt_rising beta, all_beta;

    rbt_rising_init(&beta, w->lda.shape.beta);
    rbt_rising_init(&all_beta, w->lda.shape.beta * (double)words);
    sum += rbt_rising_ln_row(&beta, w->counts, words * k);
    for (size_t t = 0; t < k; t++)
        sum -= rbt_rising_ln(&all_beta, w->totals[t]);
    return sum / (double)w->tokens;
}

/* ----------------------------------------------------------------------------------------------------------- tests */

/* Five tokens and three topics have 243 states: each comes up as often as p(words, topics) says. */
static void states_come_up_as_often_as_their_probability_says(void **unused)
{
    enum { TOKENS = 5, K = 3, STATES = 243, SWEEPS = 400000 };
    static const uint32_t count[] = {2, 1, 0, 0, 1, 1};
    rbt_data data = plain_docs_of(count, 2, 3);
    rbt_lda_shape shape = {.topics = K, .words = 3, .alpha = 0.4, .beta = 0.3, .seed = 5};
    static double expected[STATES], seen[STATES];
    double sum = 0, distance = 0;
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    world w;
    plain p;

    (void)unused;
    world_init(&w, &data, &shape);
    plain_init(&p, &data, K, &rng);
    for (size_t s = 0; s < STATES; s++) { /* by document or by word, these tokens lie in the same order */
        for (size_t t = 0, code = s; t < TOKENS; t++, code /= K) {
            plain_change(&p, t, -1);
            p.topic[t] = (uint32_t)(code % K);
            plain_change(&p, t, 1);
        }
        expected[s] = exp(TOKENS * plain_joint(&p, &shape, &data));
        sum += expected[s];
    }
    for (size_t i = 0; i < SWEEPS; i++) {
        size_t code = 0;

        sweep(&w);
        for (size_t t = TOKENS; t-- > 0;)
            code = code * K + w.batch.token[t].topic;
        seen[code]++;
    }
    for (size_t s = 0; s < STATES; s++)
        distance += fabs(seen[s] / SWEEPS - expected[s] / sum) / 2;
    assert_true(distance < 0.01); /* of independent draws: 0.009 would be large */
    world_deinit(&w);
    plain_deinit(&p);
    rbt_data_deinit(&data);
}

static void compare_with_plain(size_t k, size_t docs, size_t words, size_t length)
{
    enum { RUNS = 6, SWEEPS = 100 };
    rbt_data data = plain_docs_draw(docs, words, 10, length, 3);
    rbt_lda_shape shape = {.topics = (uint32_t)k, .words = words, .alpha = 50.0 / (double)k, .beta = 0.01};
    plain_outcome theirs = plain_run(&data, &shape, SWEEPS, RUNS);
    double ours = 0;

    for (shape.seed = 1; shape.seed <= RUNS; shape.seed++) {
        world w;

        world_init(&w, &data, &shape);
        for (int i = 0; i < SWEEPS; i++)
            sweep(&w);
        ours += joint(&w) / RUNS;
        world_deinit(&w);
    }
    rbt_data_deinit(&data);
    if (ours < theirs.mean - theirs.deviation)
        fail_msg("K = %zu: %.4f per token, a plain sampler has %.4f with a deviation of %.4f", k, ours, theirs.mean,
                 theirs.deviation);
}

static void as_likely_as_a_plain_samplers_after_100_sweeps(void **unused)
{
    (void)unused;
    compare_with_plain(10, 150, 200, 60);
    compare_with_plain(50, 100, 200, 40);
}

static void check_lists(const world *w)
{
    size_t k = w->lda.shape.topics;
    uint32_t *there = rbt_alloc(w->lda.documents * k, sizeof *there);

    for (size_t t = 0; t < w->tokens; t++)
        there[w->batch.token[t].document * k + w->batch.token[t].topic]++;
    for (size_t d = 0; d < w->lda.documents; d++) {
        const rbt_lda_line *line = w->lda.line + w->lda.line_start[d];
        size_t topics = 0;

        for (size_t z = 0; z < k; z++)
            topics += there[d * k + z] > 0;
        assert_int_equal(w->lda.used[d], topics);
        for (size_t i = 0; i < w->lda.used[d]; i++)
            assert_true(line[i / RBT_LDA_LANES].count[i % RBT_LDA_LANES] ==
                        (float)there[d * k + line[i / RBT_LDA_LANES].topic[i % RBT_LDA_LANES]]);
    }
    rbt_free(there);
}

/* Also with one topic, with as many as fill whole blocks and lines, and with documents without words. */
static void lists_counts_and_totals_agree(void **unused)
{
    static const uint32_t topics[] = {1, 2, 8, 31, 32, 33, 64, 300};
    rbt_data data = plain_docs_draw(40, 60, 4, 30, 9);

    (void)unused;
    data.start[++data.rows] = data.nnz; /* one without words */
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++) {
        rbt_lda_shape shape = {.topics = topics[i], .words = 60, .alpha = 0.1, .beta = 0.05, .seed = i};
        int64_t sum = 0;
        world w;

        world_init(&w, &data, &shape);
        check_lists(&w);
        for (int s = 0; s < 10; s++)
            sweep(&w);
        check_lists(&w);
        for (size_t z = 0; z < topics[i]; z++) {
            int64_t column = 0;

            for (size_t v = 0; v < 60; v++) {
                assert_true(w.counts[v * topics[i] + z] >= 0);
                column += w.counts[v * topics[i] + z];
            }
            assert_int_equal(column, w.totals[z]);
            sum += column;
        }
        assert_int_equal(sum, w.tokens);
        world_deinit(&w);
    }
    rbt_data_deinit(&data);
}

static void likelihood_is_that_of_the_formula(void **unused)
{
    rbt_data data = plain_docs_draw(20, 30, 3, 25, 4);
    rbt_lda_shape shape = {.topics = 7, .words = 30, .alpha = 0.3, .beta = 0.02, .seed = 2};
    rbt_rng rng = rbt_rng_stream(1, RBT_STREAM_TEST, 0);
    world w;
    plain p;
    size_t *next = rbt_alloc(20 * 30, sizeof *next);

    (void)unused;
    world_init(&w, &data, &shape);
    plain_init(&p, &data, 7, &rng);
    sweep(&w);
    for (size_t t = 0; t < p.tokens; t++) { /* the same topics for the plain one */
        size_t i = 0, at;

        while (w.batch.word[i] != p.word[t])
            i++;
        at = w.batch.start[i];
        while (w.batch.token[at].document != p.doc[t])
            at++;
        plain_change(&p, t, -1);
        p.topic[t] = w.batch.token[at + next[p.doc[t] * 30 + p.word[t]]++].topic;
        plain_change(&p, t, 1);
    }
    assert_true(fabs(joint(&w) - plain_joint(&p, &shape, &data)) < 1e-9);
    rbt_free(next);
    world_deinit(&w);
    plain_deinit(&p);
    rbt_data_deinit(&data);
}

/* What a worker may see of others for a moment must not lead it astray. */
static void counts_below_0_count_as_0(void **unused)
{
    rbt_data data = plain_docs_draw(30, 40, 4, 30, 6);
    rbt_lda_shape shape = {.topics = 20, .words = 40, .alpha = 0.5, .beta = 0.01, .seed = 2};
    world w;

    (void)unused;
    world_init(&w, &data, &shape);
    for (size_t i = 0; i < 40 * 20; i += 3)
        w.counts[i] -= 50;
    for (size_t k = 0; k < 20; k += 2)
        w.totals[k] -= 1000;
    for (int s = 0; s < 5; s++)
        sweep(&w);
    check_lists(&w);
    world_deinit(&w);
    rbt_data_deinit(&data);
}

static void rows_that_do_not_count_are_refused(void **unused)
{
    static const float bad[] = {0.5f, -1, NAN, INFINITY, 3e7f};
    uint32_t index[2] = {0, 1};
    float value[2] = {16777216, 0};
    size_t start[2] = {0, 2};
    rbt_data data = {.rows = 1, .cols = 2, .nnz = 2, .start = start, .index = index, .value = value};
    rbt_error error;
    uint64_t tokens;

    (void)unused;
    assert_int_equal(rbt_lda_check_row(&data, 0, 0, &tokens, &error), RBT_OK);
    assert_int_equal(tokens, 16777216);
    value[1] = 1;
    assert_int_equal(rbt_lda_check_row(&data, 0, 0, &tokens, &error), RBT_E_LIMIT);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        value[0] = bad[i];
        assert_int_equal(rbt_lda_check_row(&data, 0, 0, &tokens, &error), RBT_E_DATA);
        assert_non_null(strstr(error.text, "document 1 has word 1"));
    }
}

/* Two topics with words of their own. */
static void new_documents_get_the_topics_of_their_words(void **unused)
{
    static const uint32_t count[] = {6, 6, 0, 0, 0, 0, 5, 5, 3, 3, 3, 3, 0, 0, 0, 0};
    rbt_data data = plain_docs_of(count, 4, 4);
    rbt_fitted fitted = {.method = &rbt_method_lda};
    int32_t *counts = rbt_fitted_add(&fitted, "word_topic", RBT_I32, 4, 2);
    int64_t *totals = rbt_fitted_add(&fitted, "totals", RBT_I64, 1, 2);
    rbt_lda_model model;
    float theta[2];
    double ln_sum = 0;
    uint64_t tokens = 0;

    (void)unused;
    counts[0] = counts[2] = counts[5] = counts[7] = 100;
    totals[0] = totals[1] = 200;
    rbt_fitted_set(&fitted, "alpha", 0.1);
    rbt_fitted_set(&fitted, "beta", 0.01);
    assert_int_equal(rbt_method_lda.open(&fitted, NULL), RBT_OK);
    rbt_lda_model_init(&model, &fitted);
    assert_int_equal(rbt_lda_proportions(&model, &data, 0, theta, NULL), RBT_OK);
    assert_true(theta[0] > 0.98f && fabsf(theta[0] + theta[1] - 1) < 1e-5f);
    assert_int_equal(rbt_lda_proportions(&model, &data, 1, theta, NULL), RBT_OK);
    assert_true(theta[1] > 0.98f);
    assert_int_equal(rbt_lda_proportions(&model, &data, 2, theta, NULL), RBT_OK);
    assert_true(fabsf(theta[0] - 0.5f) < 0.01f);
    assert_int_equal(rbt_lda_proportions(&model, &data, 3, theta, NULL), RBT_OK); /* nothing is known of it */
    assert_true(fabsf(theta[0] - 0.5f) < 1e-6f);
    assert_int_equal(rbt_lda_complete(&model, &data, 0, &ln_sum, &tokens, NULL), RBT_OK);
    assert_int_equal(tokens, 6); /* every second of 12, of two words that are equally likely */
    assert_true(fabs(ln_sum / 6 - log(0.5)) < 0.05);
    model.words = 2; /* words 3 and 4 are new */
    assert_int_equal(rbt_lda_proportions(&model, &data, 2, theta, NULL), RBT_OK);
    assert_true(theta[0] > 0.95f);
    rbt_lda_model_deinit(&model);
    counts[0] = -1;
    assert_int_equal(rbt_method_lda.open(&fitted, NULL), RBT_E_DATA);
    rbt_fitted_deinit(&fitted);
    rbt_data_deinit(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_come_up_as_often_as_their_probability_says),
        cmocka_unit_test(as_likely_as_a_plain_samplers_after_100_sweeps),
        cmocka_unit_test(lists_counts_and_totals_agree),
        cmocka_unit_test(likelihood_is_that_of_the_formula),
        cmocka_unit_test(counts_below_0_count_as_0),
        cmocka_unit_test(rows_that_do_not_count_are_refused),
        cmocka_unit_test(new_documents_get_the_topics_of_their_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

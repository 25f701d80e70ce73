/* Proves src/job/sharing.h: however many processes share a job's data, every worker has the rows, the shape and the
 * options, bit for bit, that it has in one process, and makes the same updates of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/cache.h"
#include "data/data.h"
#include "data/generate.h"
#include "job/gradient.h"
#include "job/sharing.h"
#include "unit/crew.h"
#include "unit/files.h"

#define MOST    8
#define WORKERS 6

static const uint32_t sizes[] = {1, 2, 3, 5, 8};
#define SIZES         (sizeof sizes / sizeof sizes[0])
#define PAIRS(...)    ((const char *const[]){__VA_ARGS__, NULL})
#define NO_PAIRS      ((const char *const[]){NULL})
#define UPDATE_CLOCKS 3

typedef struct trial {
    rbt_options options[MOST];
    rbt_loaded loaded[MOST];
    uint32_t first_worker[MOST];
    uint32_t workers_of[MOST];
    rbt_err err[MOST];
    rbt_error error[MOST];
} trial;

static void share(rbt_crew *crew, void *context)
{
    trial *t = context;
    uint32_t r = crew->rank;
    t->err[r] =
        rbt_loaded_share(&t->loaded[r], &t->options[r], crew, t->first_worker, t->workers_of, NULL, &t->error[r]);
}

static void set_options(rbt_options *o, const char *model, const char *path, const char *const *pairs)
{
    static const char *const common[] = {"workers", "6", "sync", "bsp", "seed", "5", NULL};
    rbt_error error = {RBT_OK, ""};
    rbt_options_init(o);
    assert_int_equal(rbt_options_set(o, "model", model, &error), RBT_OK);
    assert_int_equal(rbt_options_set(o, "data", path, &error), RBT_OK);
    for (const char *const *p = common; p[0] != NULL; p += 2)
        assert_int_equal(rbt_options_set(o, p[0], p[1], &error), RBT_OK);
    for (; pairs[0] != NULL; pairs += 2)
        if (rbt_options_set(o, pairs[0], pairs[1], &error) != RBT_OK)
            fail_msg("%s", error.text);
    if (rbt_options_check(o, &error) != RBT_OK)
        fail_msg("%s", error.text);
}

/* Rank 0 has no workers when there are others; the rest have as many as each other, the last ones perhaps fewer. */
static void host(trial *t, uint32_t size)
{
    uint32_t next = 0, hosts = size > 1 ? size - 1 : 1;
    for (uint32_t r = 0; r < size; r++) {
        uint32_t each = (WORKERS + hosts - 1) / hosts;
        t->first_worker[r] = next;
        t->workers_of[r] = r == 0 && size > 1 ? 0 : WORKERS - next < each ? WORKERS - next : each;
        next += t->workers_of[r];
    }
    assert_int_equal(next, WORKERS);
}

/* ----------------------------------------------------------------------------------------------------- comparing */

static void same_bits(const void *a, const void *b, size_t bytes)
{
    assert_int_equal(a != NULL, b != NULL);
    if (a != NULL)
        assert_memory_equal(a, b, bytes);
}

static void same_settings(const rbt_loaded *a, const rbt_options *x, const rbt_loaded *b, const rbt_options *y)
{
    same_bits(&x->l2, &y->l2, sizeof x->l2);
    same_bits(&x->lr, &y->lr, sizeof x->lr);
    assert_int_equal(x->workers, y->workers);
    assert_int_equal(a->shape.cols, b->shape.cols);
    assert_int_equal(a->shape.bias, b->shape.bias);
    same_bits(&a->shape.delta, &b->shape.delta, sizeof a->shape.delta);
    assert_int_equal(a->shape.unit_rows, b->shape.unit_rows);
    assert_int_equal(a->shape.classes, b->shape.classes);
    same_bits(a->shape.labels, b->shape.labels, a->shape.classes * sizeof *a->shape.labels);
    for (size_t k = 0; a->shape.names != NULL && k < a->shape.classes; k++)
        assert_string_equal(a->shape.names[k], b->shape.names[k]);
    assert_int_equal(a->scaling.cols, b->scaling.cols);
    same_bits(a->scaling.mean, b->scaling.mean, a->scaling.cols * sizeof(float));
    same_bits(a->scaling.scale, b->scaling.scale, a->scaling.cols * sizeof(float));
    assert_int_equal(a->total_rows, b->total_rows);
    assert_int_equal(a->report.skipped, b->report.skipped);
    same_bits(a->labels, b->labels, WORKERS * sizeof *a->labels);
    assert_int_equal(a->data.cols, b->data.cols);
}

static void same_row(const rbt_data *a, size_t row, const rbt_data *b, size_t other)
{
    size_t n = a->start[row + 1] - a->start[row];
    assert_int_equal(b->start[other + 1] - b->start[other], n);
    assert_memory_equal(a->index + a->start[row], b->index + b->start[other], n * sizeof *a->index);
    assert_memory_equal(a->value + a->start[row], b->value + b->start[other], n * sizeof *a->value);
    assert_memory_equal(&a->label[row], &b->label[other], sizeof *a->label);
    assert_int_equal(a->weight != NULL, b->weight != NULL);
    if (a->weight != NULL)
        assert_memory_equal(&a->weight[row], &b->weight[other], sizeof *a->weight);
}

static rbt_training training_of(const rbt_loaded *loaded, const rbt_options *options)
{
    rbt_training t = {.options = options,
                      .model = loaded->model,
                      .shape = loaded->shape,
                      .data = &loaded->data,
                      .shards = &loaded->shards,
                      .total_rows = loaded->total_rows};
    return t;
}

/* A few clocks of a worker by itself, here and there. */
static void same_updates(const rbt_loaded *a, const rbt_options *x, const rbt_loaded *b, const rbt_options *y,
                         uint32_t m)
{
    rbt_training here = training_of(a, x), there = training_of(b, y);
    rbt_scratch s, t;
    here.problem = rbt_problem_of(here.model, &here.shape, here.data, x->l1, x->l2);
    there.problem = rbt_problem_of(there.model, &there.shape, there.data, y->l1, y->l2);
    there.problem.facts = b->facts.rows > 0 ? &b->facts : NULL;
    here.n = there.n = here.problem.n;
    here.takes_gradients = there.takes_gradients = x->rule == RBT_RULE_ADAGRAD;
    assert_int_equal(rbt_scratch_init(&s, &here, NULL), RBT_OK);
    assert_int_equal(rbt_scratch_init(&t, &there, NULL), RBT_OK);
    for (uint64_t clock = 0; clock < UPDATE_CLOCKS; clock++) {
        rbt_clock_work p = rbt_training_clock(&here, m, clock, &s), q = rbt_training_clock(&there, m, clock, &t);
        assert_int_equal(p.nonzeros, q.nonzeros);
        assert_memory_equal(&p.loss, &q.loss, sizeof p.loss);
        assert_memory_equal(s.u, t.u, here.n * sizeof *s.u);
        assert_memory_equal(s.w, t.w, here.n * sizeof *s.w);
    }
    rbt_scratch_deinit(&s);
    rbt_scratch_deinit(&t);
}

static void same_share(const rbt_loaded *a, const rbt_options *x, const trial *t, uint32_t size)
{
    double losses = 0, expected;
    rbt_training all = training_of(a, x);
    all.problem = rbt_problem_of(all.model, &all.shape, all.data, x->l1, x->l2);
    float *w = rbt_alloc(all.problem.n, sizeof *w);
    for (uint32_t r = 0; r < size; r++) {
        const rbt_loaded *b = &t->loaded[r];
        rbt_training some = training_of(b, &t->options[r]);
        if (t->err[r] != RBT_OK)
            fail_msg("process %u of %u: %s", r, size, t->error[r].text);
        same_settings(a, x, b, &t->options[r]);
        for (uint32_t m = 0; m < WORKERS; m++) {
            const rbt_shard *e = &a->shards.shard[m], *s = &b->shards.shard[m];
            bool here = m >= t->first_worker[r] && m < t->first_worker[r] + t->workers_of[r];
            assert_int_equal(s->n, e->n);
            assert_int_equal(s->nnz, e->nnz);
            assert_int_equal(s->rows != NULL, here);
            for (size_t i = 0; here && i < e->n; i++)
                same_row(&a->data, e->rows[i], &b->data, s->rows[i]);
            if (here)
                same_updates(a, x, b, &t->options[r], m);
        }
        losses += rbt_training_losses(&some, w);
    }
    expected = rbt_training_objective(&all, w);
    assert_true(fabs(rbt_training_mean(&all, w, losses) - expected) <= 1e-12 * fabs(expected));
    rbt_free(w);
}

static void same_for_every_crew(const char *model, const char *path, const char *const *pairs)
{
    rbt_options o;
    rbt_loaded loaded = {0};
    rbt_error error = {RBT_OK, ""};
    set_options(&o, model, path, pairs);
    rbt_err err = rbt_loaded_read(&loaded, &o, NULL, &error);
    if (err == RBT_OK)
        err = rbt_loaded_prepare(&loaded, &o, &error);
    for (size_t i = 0; i < SIZES; i++) {
        uint32_t size = sizes[i];
        trial *t = rbt_alloc(1, sizeof *t);
        host(t, size);
        for (uint32_t r = 0; r < size; r++)
            set_options(&t->options[r], model, path, pairs);
        run_crew(size, share, t);
        if (err == RBT_OK)
            same_share(&loaded, &o, t, size);
        for (uint32_t r = 0; r < size; r++) {
            if (err != RBT_OK) {
                assert_int_equal(t->err[r], err);
                assert_string_equal(t->error[r].text, error.text);
            }
            rbt_loaded_deinit(&t->loaded[r]);
            rbt_options_deinit(&t->options[r]);
        }
        rbt_free(t);
    }
    rbt_loaded_deinit(&loaded);
    rbt_options_deinit(&o);
}

/* ----------------------------------------------------------------------------------------------------------- data */

/* Rows with `classes` labels, or numbers to predict, as text of a format; weights when VW has them. */
static void put_rows(const char *path, const char *format, size_t rows, unsigned classes, bool dense)
{
    rbt_rng rng = rbt_rng_stream(rows, RBT_STREAM_TEST, classes);
    FILE *f = fopen(path, "w");
    bool vw = strcmp(format, "vw") == 0, csv = strcmp(format, "csv") == 0;
    assert_non_null(f);
    for (size_t r = 0; r < rows; r++) {
        if (classes > 0)
            (void)fprintf(f, csv ? "class%u" : "%u", (unsigned)rbt_rng_below(&rng, classes));
        else
            (void)fprintf(f, "%.5f", rbt_rng_normal(&rng));
        if (vw)
            (void)fprintf(f, " %.3f |", 0.5 + rbt_rng_f64(&rng));
        for (unsigned j = 1; j < 30; j++) {
            bool there = dense || rbt_rng_below(&rng, 5) == 0;
            if (csv)
                (void)fprintf(f, there ? ",%.4f" : ",0", rbt_rng_normal(&rng) * j);
            else if (there)
                (void)fprintf(f, vw ? " f%u:%.4f" : " %u:%.4f", j, rbt_rng_normal(&rng) * j);
        }
        (void)fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
}

static void two_classes_of_libsvm_text(void **state)
{
    (void)state;
    put_rows("a", "libsvm", 700, 2, false);
    same_for_every_crew("lr", "a", NO_PAIRS);
    same_for_every_crew("lr", "a", PAIRS("lr", "0.1", "batch", "10%"));
    same_for_every_crew("svm", "a", PAIRS("normalize", "unit", "class-weight", "balanced"));
    same_for_every_crew("lr", "a", PAIRS("normalize", "standard"));
    same_for_every_crew("lr", "a", PAIRS("l1", "0.001", "l2", "0", "optimizer", "adam"));
    same_for_every_crew("lr", "a", PAIRS("optimizer", "momentum", "no-bias", "true"));
    same_for_every_crew("svm2", "a", PAIRS("class-weight", "1=3.5"));
    same_for_every_crew("lr", "a", PAIRS("rule", "adagrad"));
}

static void more_rows_than_a_sample(void **state)
{
    (void)state;
    put_rows("a", "libsvm", 6000, 2, false);
    same_for_every_crew("lr", "a", NO_PAIRS);
}

static void numbers_of_dense_csv_text(void **state)
{
    (void)state;
    put_rows("a.csv", "csv", 300, 0, true);
    same_for_every_crew("linear", "a.csv", NO_PAIRS);
    same_for_every_crew("linear", "a.csv", PAIRS("normalize", "standard"));
    same_for_every_crew("huber", "a.csv", NO_PAIRS);
    same_for_every_crew("huber", "a.csv", PAIRS("normalize", "standard", "no-bias", "true"));
}

static void words_of_csv_text(void **state)
{
    (void)state;
    put_rows("a.csv", "csv", 300, 12, false);
    same_for_every_crew("softmax", "a.csv", NO_PAIRS);
    put_rows("a.csv", "csv", 300, 4, false);
    same_for_every_crew("softmax", "a.csv", PAIRS("class-weight", "balanced"));
    same_for_every_crew("softmax", "a.csv", PAIRS("class-weight", "class9=2"));
}

static void weights_of_vw_text(void **state)
{
    (void)state;
    put_rows("a.vw", "vw", 400, 2, false);
    same_for_every_crew("lr", "a.vw", PAIRS("bits", "8"));
    same_for_every_crew("lr", "a.vw", PAIRS("bits", "8", "class-weight", "balanced", "normalize", "standard"));
    same_for_every_crew("linear", "a.vw", PAIRS("bits", "8"));
}

static void a_cache(void **state)
{
    rbt_data d;
    (void)state;
    put_rows("a", "libsvm", 500, 3, false);
    assert_int_equal(rbt_data_read("a", &d, NULL), RBT_OK);
    assert_int_equal(rbt_cache_write(&d, "b", NULL), RBT_OK);
    rbt_data_deinit(&d);
    same_for_every_crew("softmax", "b", PAIRS("normalize", "unit"));
}

static void as_many_rows_as_workers(void **state)
{
    (void)state;
    put_file("a", "1 1:1\n0 2:1\n1 3:1\n0 4:1\n1 1:2\n0 2:2\n");
    same_for_every_crew("lr", "a", NO_PAIRS);
    put_file("a", "1 1:1\n0 2:1\n1 3:1\n0 4:1\n1 1:2\n");
    same_for_every_crew("lr", "a", NO_PAIRS); /* too few */
}

static void refusals_name_the_rows_of_the_whole(void **state)
{
    (void)state;
    put_file("a", "1 1:1\n1 2:1\n1 3:1\n0 4:1\n1 1:2\n0 2:2\n1 3:3\n7 1:1\n0 1:1\n");
    same_for_every_crew("lr", "a", NO_PAIRS); /* three labels, the third in row 8 */
    put_file("a", "2 1:1\n2 2:1\n2 3:1\n2 4:1\n2 1:2\n2 2:2\n2 3:3\n");
    same_for_every_crew("softmax", "a", NO_PAIRS); /* only one */
    put_file("a.csv", "red,1\nblue,2\nred,3\nblue,4\nred,5\nred,6\n");
    same_for_every_crew("linear", "a.csv", NO_PAIRS); /* words */
    put_file("a", "1 1:1\n0 2:x\n1 3:1\n0 4:1\n1 1:2\n0 2:2\n1 3:\n1 3:3\n0 1:1\n");
    same_for_every_crew("lr", "a", NO_PAIRS);
    same_for_every_crew("lr", "a", PAIRS("skip-bad", "1"));
    same_for_every_crew("lr", "a", PAIRS("skip-bad", "2"));
}

static void every_worker_has_files_of_its_own(void **state)
{
    (void)state;
    for (unsigned m = 0; m < WORKERS; m++) {
        char path[8];
        (void)snprintf(path, sizeof path, "w%u", m);
        put_rows(path, "libsvm", 40 + 3 * m, 2, false);
    }
    same_for_every_crew("lr", "w{rank}", NO_PAIRS);
    same_for_every_crew("lr", "w{rank}", PAIRS("normalize", "standard", "batch", "5"));
    put_file("w4", "1 1:1\n3 2:1\n");
    same_for_every_crew("softmax", "w{rank}", NO_PAIRS);
    same_for_every_crew("lr", "w{rank}", NO_PAIRS);
}

static void what_only_one_process_can_do_is_refused(void **state)
{
    static const struct {
        const char *name, *value, *part;
    } cases[] = {{"folds", "3", "--folds"}, {"store", "disk", "--store disk"}, {"cache", "auto", "--cache auto"}};
    (void)state;
    put_rows("a", "libsvm", 100, 2, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        trial *t = rbt_alloc(1, sizeof *t);
        host(t, 3);
        for (uint32_t r = 0; r < 3; r++)
            set_options(&t->options[r], "lr", "a", PAIRS(cases[i].name, cases[i].value));
        run_crew(3, share, t);
        for (uint32_t r = 0; r < 3; r++) {
            assert_int_equal(t->err[r], RBT_E_USAGE);
            assert_non_null(strstr(t->error[r].text, cases[i].part));
            rbt_loaded_deinit(&t->loaded[r]);
            rbt_options_deinit(&t->options[r]);
        }
        rbt_free(t);
    }
}

static void validation_data_is_at_rank_0_alone(void **state)
{
    trial *t = rbt_alloc(1, sizeof *t);
    (void)state;
    put_rows("a", "libsvm", 100, 2, false);
    put_file("b", "0 1:1\n1 2:5\n");
    host(t, 3);
    for (uint32_t r = 0; r < 3; r++)
        set_options(&t->options[r], "lr", "a", PAIRS("valid", "b", "normalize", "standard"));
    run_crew(3, share, t);
    for (uint32_t r = 0; r < 3; r++) {
        assert_int_equal(t->err[r], RBT_OK);
        assert_int_equal(t->loaded[r].has_valid, r == 0);
        assert_int_equal(t->loaded[r].valid.rows, r == 0 ? 2 : 0);
        rbt_loaded_deinit(&t->loaded[r]);
        rbt_options_deinit(&t->options[r]);
    }
    memset(t, 0, sizeof *t);
    put_file("b", "0 1:1\n9 2:5\n"); /* a label that the training data does not have */
    host(t, 3);
    for (uint32_t r = 0; r < 3; r++)
        set_options(&t->options[r], "lr", "a", PAIRS("valid", "b"));
    run_crew(3, share, t);
    for (uint32_t r = 0; r < 3; r++) {
        assert_int_equal(t->err[r], RBT_E_DATA);
        assert_non_null(strstr(t->error[r].text, "b:2: the row has the label 9"));
        rbt_loaded_deinit(&t->loaded[r]);
        rbt_options_deinit(&t->options[r]);
    }
    rbt_free(t);
}

static int leave_folder(void **state)
{
    static const char *const names[] = {"a", "b", "a.csv", "a.vw", "w0", "w1", "w2", "w3", "w4", "w5"};
    return remove_folder(state, names, sizeof names / sizeof names[0]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_classes_of_libsvm_text),
        TEST(more_rows_than_a_sample),
        TEST(numbers_of_dense_csv_text),
        TEST(words_of_csv_text),
        TEST(weights_of_vw_text),
        TEST(a_cache),
        TEST(as_many_rows_as_workers),
        TEST(refusals_name_the_rows_of_the_whole),
        TEST(every_worker_has_files_of_its_own),
        TEST(what_only_one_process_can_do_is_refused),
        TEST(validation_data_is_at_rank_0_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* lda: topic models by collapsed Gibbs sampling (latent Dirichlet allocation).
 *
 * A row of data is a document: columns are words, values how often they occur. The servers hold how many tokens of each word
 * have each topic (word_topic) and the topics' totals; a worker remembers the topics of its own documents' tokens. In the
 * opening clock all tokens get topics at random. Each later clock goes over the words of the batch: reads the word's row,
 * samples its tokens (lda_sampler.h), adds what has changed. Within a clock a worker sees its own changes and the others' as the
 * protocol brings them (Newman et al. 2009). In the closing clock workers tell how likely their documents' topics are.
 *
 * Always holds: word_topic adds up to the number of tokens after every clock, under every protocol. The table of totals has a last
 * column that balances the others, so that it adds up to 0 and the sum over all tables is the number of tokens. Proved by
 * tests/unit/test_lda.c and tests/cli/test_lda.sh; what servers do with such a table under faults, by the swarm.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "math/functions.h"
#include "method/lda_apply.h"
#include "method/lda_sampler.h"
#include "method/method.h"

#define ALPHA_IN_ALL     50.0      /* over the topics, unless --alpha says otherwise (Griffiths and Steyvers 2004) */
#define UNITS            1048576.0 /* 2^20: of a logarithm in an integer table */
#define PARTS            10        /* workers that hear of each other once a sweep end with less likely topics */
#define TOP_WORDS        10
#define DESCRIBED_TOPICS 100

static const rbt_method_option lda_options[] = {
    {.name = "topics",
     .fallback = 100,
     .least = 1,
     .most = RBT_LDA_TOPICS_MOST,
     .whole = true,
     .about = "lda: how many topics."},
    {.name = "alpha",
     .fallback = 0,
     .least = 0,
     .most = 1e6,
     .about = "lda: how even the topics of a document are: what each has in advance; 0 = 50 / topics."},
    {.name = "beta",
     .fallback = 0.01,
     .least = 1e-9,
     .most = 1e6,
     .about = "lda: how even the words of a topic are: what each has in advance."},
    {.name = "pieces",
     .fallback = 1,
     .least = 1,
     .most = 1e6,
     .whole = true,
     .about = "lda, with --budget: a clock's words in so many pieces, between which changes may come and go."},
    {0}};

typedef struct lda_state {
    rbt_lda_shape shape;
    rbt_table counts; /* words x topics */
    rbt_table totals; /* per topic; then LIKELIHOOD and BALANCE */
} lda_state;

/* The columns of the totals' table after those of the topics. */
enum { LIKELIHOOD, BALANCE, MORE_COLUMNS };

/* ------------------------------------------------------------------------------------------------------------- plan */

/* What is known of all documents. */
typedef struct lda_facts {
    rbt_error refusal; /* of the first one that cannot be used */
    uint64_t tokens;
    uint64_t times[]; /* per word */
} lda_facts;

static size_t lda_facts_bytes(const rbt_data *data)
{
    return sizeof(lda_facts) + data->cols * sizeof(uint64_t);
}

static void lda_survey(const rbt_data *rows, size_t first, void *facts)
{
    lda_facts *f = facts;

    for (size_t r = 0; f->refusal.code == RBT_OK && r < rows->rows; r++) {
        uint64_t n = 0;
        rbt_err err = rbt_lda_check_row(rows, r, first + r, &n, &f->refusal);

        for (size_t i = rows->start[r]; err == RBT_OK && i < rows->start[r + 1]; i++) {
            f->times[rows->index[i]] += (uint64_t)rows->value[i];
            if (f->times[rows->index[i]] > INT32_MAX)
                err = rbt_fail(&f->refusal, RBT_E_LIMIT,
                               "word %zu occurs more than %d times, which cannot be counted; leave it out",
                               (size_t)rows->index[i] + 1, INT32_MAX);
        }
        f->tokens += n;
    }
}

static rbt_err check_facts(const lda_facts *f, rbt_error *error)
{
    if (f->refusal.code != RBT_OK)
        return rbt_fail(error, f->refusal.code, "%s", f->refusal.text);
    if (f->tokens == 0)
        return rbt_fail(error, RBT_E_DATA, "the data has no words; a document is a row of word numbers and counts");
    return RBT_OK;
}

static rbt_err lda_plan(rbt_plan *plan, rbt_error *error)
{
    lda_state *s = rbt_alloc(1, sizeof *s);
    double alpha = rbt_plan_option(plan, "alpha"), topics = rbt_plan_option(plan, "topics");
    rbt_err err;

    plan->state = s;
    s->shape = (rbt_lda_shape){.topics = (uint32_t)topics,
                               .words = plan->data->cols,
                               .alpha = alpha > 0 ? alpha : ALPHA_IN_ALL / topics,
                               .beta = rbt_plan_option(plan, "beta"),
                               .seed = plan->seed};
    err = check_facts(plan->facts, error);
    if (err == RBT_OK)
        err = rbt_plan_table(
            plan,
            &(rbt_table_spec){.name = "word_topic", .rows = s->shape.words, .cols = s->shape.topics, .type = RBT_I32},
            &s->counts, error);
    if (err == RBT_OK)
        err = rbt_plan_table(
            plan,
            &(rbt_table_spec){
                .name = "totals", .rows = 1, .cols = (uint64_t)s->shape.topics + MORE_COLUMNS, .type = RBT_I64},
            &s->totals, error);
    return err;
}

static void lda_end(rbt_plan *plan)
{
    rbt_free(plan->state);
}

/* ------------------------------------------------------------------------------------------------------------- work */

typedef struct lda_worker {
    rbt_lda lda;
    rbt_lda_batch *batch; /* one for each clock of a pass; made when first needed */
    int32_t *before;      /* a row as it was read; then how it changes */
    int64_t *totals;      /* the same for the totals, and their other columns */
} lda_worker;

/* Adds w->totals to the table, with what makes it add up to 0. */
static rbt_err add_totals(rbt_worker *worker, const lda_state *s, lda_worker *w, rbt_error *error)
{
    size_t k = s->shape.topics;

    w->totals[k + BALANCE] = 0;
    for (size_t i = 0; i < k + BALANCE; i++)
        w->totals[k + BALANCE] -= w->totals[i];
    return rbt_inc_row(worker, s->totals, 0, w->totals, error);
}

/* The opening clock: the topics that tokens start with. */
static rbt_err add_start(rbt_worker *worker, const rbt_data *data, const lda_state *s, lda_worker *w, rbt_error *error)
{
    uint32_t *topic = NULL;
    rbt_err err = RBT_OK;

    for (size_t d = 0; err == RBT_OK && d < w->lda.documents; d++) {
        size_t row = w->lda.rows[d], at = 0;
        uint64_t n;

        err = rbt_lda_check_row(data, row, row, &n, error);
        topic = rbt_realloc(topic, (size_t)n + 1, sizeof *topic);
        rbt_lda_start_topics(&w->lda, d, topic);
        for (size_t i = data->start[row]; i < data->start[row + 1]; i++) {
            for (size_t end = at + (size_t)data->value[i]; err == RBT_OK && at < end; at++) {
                err = rbt_inc(worker, s->counts, data->index[i], topic[at], 1, error);
                w->totals[topic[at]]++;
            }
        }
    }
    rbt_free(topic);
    if (err == RBT_OK)
        err = add_totals(worker, s, w, error);
    return err == RBT_OK ? rbt_clock(worker, error) : err;
}

static rbt_err sample_word(rbt_worker *worker, const lda_state *s, lda_worker *w, rbt_lda_batch *batch, size_t i,
                           rbt_error *error)
{
    size_t k = s->shape.topics;
    rbt_err err = rbt_get_row(worker, s->counts, batch->word[i], RBT_STALENESS_OF_JOB, w->before, error);

    if (err != RBT_OK)
        return err;
    memcpy(w->lda.count, w->before, k * sizeof *w->before);
    if (!rbt_lda_sample(&w->lda, batch, i))
        return RBT_OK;
    for (size_t t = 0; t < k; t++)
        w->before[t] = w->lda.count[t] - w->before[t];
    return rbt_inc_row(worker, s->counts, batch->word[i], w->before, error);
}

/* Adds how the totals have changed since they were read. */
static rbt_err write_totals(rbt_worker *worker, const lda_state *s, lda_worker *w, rbt_error *error)
{
    for (size_t t = 0; t < s->shape.topics; t++)
        w->totals[t] = w->lda.total[t] - w->totals[t];
    return add_totals(worker, s, w, error);
}

static rbt_err read_totals(rbt_worker *worker, const lda_state *s, lda_worker *w, rbt_error *error)
{
    rbt_err err = rbt_get_range(worker, s->totals, 0, 0, s->shape.topics, RBT_STALENESS_OF_JOB, w->totals, error);

    if (err == RBT_OK)
        memcpy(w->lda.total, w->totals, s->shape.topics * sizeof *w->totals);
    return err;
}

/* All words of a batch. In several pieces every worker begins at another word, so that what others have just changed of a
 * word comes before its turn, and the totals are exchanged in between. How much of the work has not been told is left in
 * `untold`. */
static rbt_err sample_words(rbt_worker *worker, const rbt_plan *plan, lda_worker *w, rbt_lda_batch *batch,
                            size_t *untold, rbt_error *error)
{
    const lda_state *s = plan->state;
    size_t pieces = (size_t)rbt_plan_option(plan, "pieces"), tokens = batch->start[batch->words];
    size_t from = pieces > 1 ? batch->words * rbt_worker_id(worker) / rbt_worker_count(worker) : 0;
    rbt_err err = RBT_OK;

    *untold = 0;
    for (size_t i = 0; err == RBT_OK && i < batch->words; i++) {
        size_t word = (from + i) % batch->words;

        err = sample_word(worker, s, w, batch, word, error);
        *untold += batch->start[word + 1] - batch->start[word];
        if (err != RBT_OK || pieces <= 1 || *untold < tokens / pieces)
            continue;
        err = write_totals(worker, s, w, error);
        rbt_worker_did(worker, 0, *untold);
        *untold = 0;
        if (err == RBT_OK)
            err = read_totals(worker, s, w, error);
        rbt_lda_refresh(&w->lda);
    }
    return err;
}

static rbt_err lda_clock(rbt_worker *worker, const rbt_plan *plan, lda_worker *w, size_t first, size_t n,
                         rbt_error *error)
{
    const lda_state *s = plan->state;
    size_t tokens, untold = 0;
    rbt_lda_batch *batch = &w->batch[(rbt_worker_clock(worker) - plan->method->opening) % rbt_plan_pass_clocks(plan)];
    rbt_err err = read_totals(worker, s, w, error);

    if (err == RBT_OK && batch->start == NULL)
        err = rbt_lda_batch_init(batch, &w->lda, first, n, error);
    if (err != RBT_OK)
        return err;
    rbt_lda_begin(&w->lda);
    err = sample_words(worker, plan, w, batch, &untold, error);
    if (err == RBT_OK)
        err = write_totals(worker, s, w, error);
    tokens = batch->start[batch->words];
    if (err == RBT_OK)
        err = rbt_plan_tell(plan, worker, -rbt_lda_ln_predictive(&w->lda, batch), tokens, error);
    rbt_worker_did(worker, n, untold);
    return err == RBT_OK ? rbt_clock(worker, error) : err;
}

static rbt_err lda_work(rbt_worker *worker, rbt_plan *plan, rbt_error *error)
{
    const lda_state *s = plan->state;
    size_t k = s->shape.topics, n, first;
    uint64_t batches = rbt_plan_pass_clocks(plan);
    const uint32_t *rows = rbt_plan_rows(plan, worker, &n);
    lda_worker w = {.batch = rbt_alloc((size_t)batches, sizeof *w.batch),
                    .before = rbt_alloc(k, sizeof *w.before),
                    .totals = rbt_alloc(k + MORE_COLUMNS, sizeof *w.totals)};
    rbt_err err = rbt_lda_init(&w.lda, &s->shape, plan->data, rows, n, rbt_worker_id(worker), error);

    if (err == RBT_OK)
        err = add_start(worker, plan->data, s, &w, error);
    memset(w.totals, 0, (k + MORE_COLUMNS) * sizeof *w.totals);
    while (err == RBT_OK && rbt_plan_batch(plan, worker, &first, &n))
        err = lda_clock(worker, plan, &w, first, n, error);
    if (err == RBT_OK) { /* the closing clock */
        memset(w.totals, 0, (k + MORE_COLUMNS) * sizeof *w.totals);
        w.totals[k + LIKELIHOOD] = (int64_t)floor(rbt_lda_ln_topics(&w.lda) * UNITS);
        err = add_totals(worker, s, &w, error);
    }
    if (err == RBT_OK)
        err = rbt_clock(worker, error);
    for (uint64_t i = 0; i < batches; i++)
        rbt_lda_batch_deinit(&w.batch[i]);
    rbt_lda_deinit(&w.lda);
    rbt_free(w.batch);
    rbt_free(w.before);
    rbt_free(w.totals);
    return err;
}

/* ----------------------------------------------------------------------------------------------------------- fitted */

static rbt_err lda_keep(const rbt_plan *plan, rbt_fitted *fitted, rbt_error *error)
{
    const lda_state *s = plan->state;
    size_t k = s->shape.topics, words = s->shape.words;
    int32_t *counts = rbt_fitted_add(fitted, "word_topic", RBT_I32, words, k);
    int64_t *totals = rbt_fitted_add(fitted, "totals", RBT_I64, 1, k), ln_topics = 0, tokens = 0;
    rbt_err err;

    if (counts == NULL || totals == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu words in %zu topics", words, k);
    err = rbt_plan_read(plan, s->totals, 0, k + LIKELIHOOD, 1, &ln_topics, error);
    for (size_t i = 0; err == RBT_OK && i < words; i++)
        err = rbt_plan_read(plan, s->counts, i, 0, k, counts + i * k, error);
    if (err != RBT_OK)
        return err;
    for (size_t i = 0; i < words; i++)
        for (size_t t = 0; t < k; t++)
            totals[t] += counts[i * k + t];
    for (size_t t = 0; t < k; t++)
        tokens += totals[t];
    rbt_fitted_set(fitted, "alpha", s->shape.alpha);
    rbt_fitted_set(fitted, "beta", s->shape.beta);
    rbt_fitted_set(fitted, "tokens", (double)tokens);
    rbt_fitted_set(fitted, "log_likelihood",
                   (rbt_lda_ln_words(&s->shape, counts, totals) + (double)ln_topics / UNITS) / (double)tokens);
    return RBT_OK;
}

static rbt_err lda_open(const rbt_fitted *fitted, rbt_error *error)
{
    const rbt_values *counts = rbt_fitted_values(fitted, "word_topic"), *totals = rbt_fitted_values(fitted, "totals");
    bool sound = counts != NULL && totals != NULL && counts->type == RBT_I32 && totals->type == RBT_I64 &&
                 counts->rows > 0 && counts->cols > 0 && totals->rows == 1 && totals->cols == counts->cols &&
                 rbt_fitted_number(fitted, "alpha") > 0 && rbt_fitted_number(fitted, "beta") > 0;

    for (uint64_t i = 0; sound && i < counts->rows * counts->cols; i++)
        sound = ((const int32_t *)counts->at)[i] >= 0;
    for (uint64_t i = 0; sound && i < totals->cols; i++)
        sound = ((const int64_t *)totals->at)[i] >= 0;
    return sound ? RBT_OK
                 : rbt_fail(error, RBT_E_DATA, "the model file does not hold the topics of words; train it again");
}

static rbt_err lda_predict(const rbt_fitted *fitted, const rbt_data *data, size_t row, FILE *out, rbt_error *error)
{
    rbt_lda_model model;
    float *theta;
    rbt_err err;

    rbt_lda_model_init(&model, fitted);
    theta = rbt_alloc(model.topics, sizeof *theta);
    err = rbt_lda_proportions(&model, data, row, theta, error);
    for (size_t k = 0; err == RBT_OK && k < model.topics; k++)
        fprintf(out, "%s%.6g", k > 0 ? " " : "", (double)theta[k]);
    if (err == RBT_OK)
        fputc('\n', out);
    rbt_free(theta);
    rbt_lda_model_deinit(&model);
    return err;
}

static rbt_err lda_evaluate(const rbt_fitted *fitted, const rbt_data *data, rbt_figure *figures, size_t *n,
                            rbt_error *error)
{
    rbt_lda_model model;
    double ln_sum = 0, mean;
    uint64_t tokens = 0;
    rbt_err err = RBT_OK;

    rbt_lda_model_init(&model, fitted);
    for (size_t r = 0; err == RBT_OK && r < data->rows; r++)
        err = rbt_lda_complete(&model, data, r, &ln_sum, &tokens, error);
    rbt_lda_model_deinit(&model);
    if (err != RBT_OK)
        return err;
    mean = tokens > 0 ? ln_sum / (double)tokens : NAN;
    figures[0] = (rbt_figure){"loss", -mean};
    figures[1] = (rbt_figure){"log_likelihood", mean};
    figures[2] = (rbt_figure){"perplexity", rbt_exp(-mean)};
    figures[3] = (rbt_figure){"tokens", (double)tokens};
    *n = 4;
    return RBT_OK;
}

typedef struct top_word {
    int32_t count;
    size_t word;
} top_word;

/* The most frequent words of each topic, the first of equals first. */
static top_word *find_top_words(const int32_t *count, size_t words, size_t k)
{
    top_word *top = rbt_alloc(k, TOP_WORDS * sizeof *top);

    for (size_t w = 0; w < words; w++) {
        for (size_t t = 0; t < k; t++) {
            int32_t here = count[w * k + t];
            top_word *list = top + t * TOP_WORDS;
            size_t place = TOP_WORDS;

            while (place > 0 && here > list[place - 1].count)
                place--;
            if (place == TOP_WORDS)
                continue;
            memmove(list + place + 1, list + place, (TOP_WORDS - 1 - place) * sizeof *list);
            list[place] = (top_word){here, w};
        }
    }
    return top;
}

static void lda_describe(const rbt_fitted *fitted, FILE *out)
{
    const rbt_values *counts = rbt_fitted_values(fitted, "word_topic"), *totals = rbt_fitted_values(fitted, "totals");
    const rbt_name_list *names = rbt_fitted_names(fitted, "vocabulary");
    size_t k = (size_t)counts->cols;
    double tokens = rbt_fitted_number(fitted, "tokens");
    top_word *top = find_top_words(counts->at, (size_t)counts->rows, k);

    fprintf(out, "topics      %zu, of %" PRIu64 " words\n", k, counts->rows);
    fprintf(out, "tokens      %.0f\n", tokens);
    fprintf(out, "alpha, beta %g, %g\n", rbt_fitted_number(fitted, "alpha"), rbt_fitted_number(fitted, "beta"));
    fprintf(out, "likelihood  %.6g per token (logarithm, of the words and their topics together)\n",
            rbt_fitted_number(fitted, "log_likelihood"));
    for (size_t t = 0; t < k && t < DESCRIBED_TOPICS; t++) {
        fprintf(out, "topic %-5zu %.2f %%:", t, 100 * (double)((const int64_t *)totals->at)[t] / tokens);
        for (size_t i = 0; i < TOP_WORDS && top[t * TOP_WORDS + i].count > 0; i++) {
            size_t word = top[t * TOP_WORDS + i].word;

            if (names != NULL && word < names->n && names->at[word][0] != '\0')
                fprintf(out, " %s", names->at[word]);
            else
                fprintf(out, " %zu", word + 1);
        }
        fputc('\n', out);
    }
    if (k > DESCRIBED_TOPICS)
        fprintf(out, "            and %zu more; `rubato export` has them all\n", k - DESCRIBED_TOPICS);
    rbt_free(top);
}

const rbt_method rbt_method_lda = {.name = "lda",
                                   .about = "topics of documents",
                                   .objective = "minus the logarithm of a word's predicted probability",
                                   .content = RBT_CONTENT_DOCS,
                                   .options = lda_options,
                                   .opening = 1,
                                   .closing = 1,
                                   .parts = PARTS,
                                   .keeps_state = true,
                                   .own_rows = true,
                                   .facts = lda_facts_bytes,
                                   .survey = lda_survey,
                                   .unfiltered = "its counts must add up to the tokens in every clock",
                                   .plan = lda_plan,
                                   .work = lda_work,
                                   .keep = lda_keep,
                                   .end = lda_end,
                                   .open = lda_open,
                                   .predict = lda_predict,
                                   .evaluate = lda_evaluate,
                                   .describe = lda_describe};

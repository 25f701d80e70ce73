/* lda: topic models by collapsed Gibbs sampling (latent Dirichlet allocation).
 *
 * A row of data is a document: columns are words, values how often they occur. The servers hold how many tokens of each word
 * have each topic (word_topic) and the topics' totals; a worker remembers the topics of its own documents' tokens. In the
 * opening clock all tokens get topics at random. Each later clock goes over some words: reads the word's row, samples its tokens
 * (lda_sampler.h), adds what has changed. Which words, says --cut:
 *
 *   words      a range of the words, in all of the worker's documents. Workers go round the ranges at equal distances, so
 *              that a row is read once a sweep, and nobody else changes it meanwhile: draws are those of one sampler but for the totals,
 *              which lack what others do in the same clock (model parallelism: Lee et al. 2014, Yu et al. 2015).
 *   documents  all words of some documents. Rows are read in every clock, and several workers draw from copies that lack what
 *              the others do in it (Newman et al. 2009).
 *
 * The objective is ln p(words, topics) per token. Workers tell the documents' part, which they alone know; the words' part is
 * worked out by the servers' counts where the job is watched (lda_judge): copies of workers that others have moved away from look
 * better than the model is.
 *
 * Always holds: word_topic adds up to the number of tokens after every clock, under every protocol. The table of totals has a last
 * column that balances the others, so that it adds up to 0 and the sum over all tables is the number of tokens. Proved by
 * tests/unit/test_lda.c, test_lda_local.c and tests/cli/test_lda.sh; what servers do with such a table under faults, by the swarm.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "method/lda_fitted.h"
#include "method/lda_sampler.h"
#include "method/method.h"

#define ALPHA_IN_ALL 50.0      /* over the topics, unless --alpha says otherwise (Griffiths and Steyvers 2004) */
#define UNITS        1048576.0 /* 2^20: of a logarithm in an integer table */
#define PARTS        10        /* clocks of a sweep, or more: the totals of others are as old as a clock is long */
#define APART_MOST   4         /* clocks between two workers at a range: copies may be older, ranges no smaller */

enum { CUT_WORDS, CUT_DOCUMENTS }; /* the places of --cut's words */

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
    {.name = "cut",
     .fallback = CUT_WORDS,
     .words = "words|documents",
     .about =
         "lda: what a clock is for: a range of the words in all documents, another one for each worker; or some of the "
         "documents."},
    {.name = "pieces",
     .fallback = 1,
     .least = 1,
     .most = 1e6,
     .whole = true,
     .about = "lda, with --budget: a clock's words in so many pieces, between which changes may come and go."},
    {0}};

typedef struct lda_state {
    rbt_lda_shape shape;
    int64_t tokens;
    uint32_t *times;  /* per word: how many tokens it has in all documents */
    size_t *range;    /* the words of each clock of a sweep, one more at the end; NULL: clocks are for documents */
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

/* Cuts the words into a range for each clock of a sweep, with about as many tokens each: unless a sweep is a single clock, enough of
 * them that no worker comes to a range before all that others have changed there is in the copy it reads. */
static rbt_err cut_words(lda_state *s, rbt_plan *plan, rbt_error *error)
{
    const lda_facts *facts = plan->facts;
    uint64_t apart = plan->staleness < APART_MOST ? plan->staleness + 1 : APART_MOST;
    uint64_t clocks = rbt_plan_pass_clocks(plan), before = 0, at = 1;

    if (clocks > 1 && clocks < plan->workers * apart)
        rbt_plan_set_pass_clocks(plan, clocks = plan->workers * apart);
    s->range = rbt_try_alloc((size_t)clocks + 1, sizeof *s->range);
    if (s->range == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %llu clocks a sweep; use a larger --batch",
                        (unsigned long long)clocks);
    for (size_t w = 0; w < s->shape.words; w++) {
        before += facts->times[w];
        while (at < clocks && (double)before * (double)clocks >= (double)s->tokens * (double)at)
            s->range[at++] = w + 1;
    }
    while (at <= clocks)
        s->range[at++] = s->shape.words;
    return RBT_OK;
}

/* Judging costs about a nanosecond per count, drawing a few hundred per token: so often that it costs a twentieth. */
static uint64_t judge_every(const lda_state *s, uint64_t pass_clocks)
{
    double counts = (double)s->shape.words * s->shape.topics, tokens = (double)s->tokens / (double)pass_clocks;

    return (uint64_t)ceil(counts / (10 * tokens));
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
    err = rbt_method_refuse_ratings("lda", plan->data, error);
    if (err == RBT_OK)
        err = check_facts(plan->facts, error);
    if (err == RBT_OK)
        s->tokens = (int64_t)((const lda_facts *)plan->facts)->tokens;
    if (err == RBT_OK && rbt_plan_option(plan, "cut") == CUT_WORDS)
        err = cut_words(s, plan, error);
    if (err == RBT_OK)
        plan->judge_every = judge_every(s, rbt_plan_pass_clocks(plan));
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
    lda_state *s = plan->state;

    if (s != NULL) {
        rbt_free(s->range);
    }
    rbt_free(s);
}

/* ------------------------------------------------------------------------------------------------------------- work */

typedef struct lda_worker {
    rbt_lda lda;
    uint64_t tokens;
    rbt_lda_batch *batch; /* one for each clock of a pass, or one of all documents; made when first needed */
    int32_t *before;      /* a row as it was read; then how it changes */
    int64_t *totals;      /* the same for the totals, and their other columns */
    double ln_topics;     /* ln p(topics) of all documents, where clocks are for some */
} lda_worker;

/* The words of a batch that a clock is for. */
typedef struct stretch {
    rbt_lda_batch *batch;
    size_t first, n;
} stretch;

/* Adds w->totals to the table, with what makes it add up to 0. */
static rbt_err add_totals(rbt_worker *worker, const lda_state *s, lda_worker *w, rbt_error *error)
{
    size_t k = s->shape.topics;

    w->totals[k + BALANCE] = 0;
    for (size_t i = 0; i < k + BALANCE; i++)
        w->totals[k + BALANCE] -= w->totals[i];
    return rbt_inc_row(worker, s->totals, 0, w->totals, error);
}

/* Tells ln p(topics) of the worker's documents, the part of the objective that it alone knows; lda_judge has the rest. */
static rbt_err tell(rbt_worker *worker, const rbt_plan *plan, const lda_worker *w, rbt_error *error)
{
    return rbt_plan_tell(plan, worker, -w->ln_topics, w->tokens, error);
}

/* The opening clock: the topics that tokens start with. */
static rbt_err add_start(rbt_worker *worker, const rbt_plan *plan, lda_worker *w, rbt_error *error)
{
    const lda_state *s = plan->state;
    const rbt_data *data = plan->data;
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
        w->tokens += n;
    }
    rbt_free(topic);
    w->ln_topics = rbt_lda_ln_topics(&w->lda, 0, w->lda.documents);
    if (err == RBT_OK)
        err = add_totals(worker, s, w, error);
    if (err == RBT_OK)
        err = tell(worker, plan, w, error);
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

    if (err != RBT_OK)
        return err;
    memcpy(w->lda.total, w->totals, s->shape.topics * sizeof *w->totals);
    rbt_lda_begin(&w->lda);
    return RBT_OK;
}

/* All words of a stretch. In several pieces every worker begins at another word, so that what others have just changed of a
 * word comes before its turn, and the totals are exchanged in between. How much of the work has not been told is left in
 * `untold`. */
static rbt_err sample_words(rbt_worker *worker, const rbt_plan *plan, lda_worker *w, stretch words, size_t *untold,
                            rbt_error *error)
{
    const lda_state *s = plan->state;
    const size_t *start = words.batch->start;
    size_t pieces = (size_t)rbt_plan_option(plan, "pieces"), tokens = start[words.first + words.n] - start[words.first];
    size_t from = pieces > 1 ? words.n * rbt_worker_id(worker) / rbt_worker_count(worker) : 0;
    rbt_err err = RBT_OK;

    *untold = 0;
    for (size_t i = 0; err == RBT_OK && i < words.n; i++) {
        size_t word = words.first + (from + i) % words.n;

        err = sample_word(worker, s, w, words.batch, word, error);
        *untold += start[word + 1] - start[word];
        if (err != RBT_OK || pieces <= 1 || *untold < tokens / pieces)
            continue;
        err = write_totals(worker, s, w, error);
        rbt_worker_did(worker, 0, *untold);
        *untold = 0;
        if (err == RBT_OK)
            err = read_totals(worker, s, w, error);
    }
    return err;
}

/* Where the first word from this one on stands in a batch. */
static size_t place_of(const rbt_lda_batch *batch, size_t word)
{
    size_t low = 0, high = batch->words;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (batch->word[middle] < word)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What this clock is for: all words of some documents, or a range of the words in all documents, at which no other worker
 * is when there are enough ranges. Then nobody changes a row that another is drawing from, but for workers that are
 * clocks apart. */
static rbt_err find_stretch(const rbt_worker *worker, const rbt_plan *plan, lda_worker *w, size_t first, size_t n,
                            stretch *words, rbt_error *error)
{
    const lda_state *s = plan->state;
    uint64_t clocks = rbt_plan_pass_clocks(plan);
    size_t place = (size_t)((rbt_worker_clock(worker) - plan->method->opening) % clocks), range;
    rbt_err err = RBT_OK;

    words->batch = &w->batch[s->range != NULL ? 0 : place];
    if (words->batch->start == NULL)
        err = s->range != NULL ? rbt_lda_batch_init(words->batch, &w->lda, 0, w->lda.documents, error)
                               : rbt_lda_batch_init(words->batch, &w->lda, first, n, error);
    if (err != RBT_OK)
        return err;
    words->first = 0;
    words->n = words->batch->words;
    if (s->range == NULL)
        return RBT_OK;
    range = (size_t)((place + clocks * rbt_worker_id(worker) / rbt_worker_count(worker)) % clocks);
    words->first = place_of(words->batch, s->range[range]);
    words->n = place_of(words->batch, s->range[range + 1]) - words->first;
    return RBT_OK;
}

static rbt_err lda_clock(rbt_worker *worker, const rbt_plan *plan, lda_worker *w, size_t first, size_t n,
                         rbt_error *error)
{
    const lda_state *s = plan->state;
    size_t untold = 0;
    stretch words;
    rbt_err err = read_totals(worker, s, w, error);

    if (err == RBT_OK)
        err = find_stretch(worker, plan, w, first, n, &words, error);
    if (err != RBT_OK)
        return err;
    w->ln_topics = s->range != NULL ? 0 : w->ln_topics - rbt_lda_ln_topics(&w->lda, first, n);
    err = sample_words(worker, plan, w, words, &untold, error);
    w->ln_topics +=
        s->range != NULL ? rbt_lda_ln_topics(&w->lda, 0, w->lda.documents) : rbt_lda_ln_topics(&w->lda, first, n);
    if (err == RBT_OK)
        err = write_totals(worker, s, w, error);
    if (err == RBT_OK)
        err = tell(worker, plan, w, error);
    rbt_worker_did(worker, n, untold);
    return err == RBT_OK ? rbt_clock(worker, error) : err;
}

/* The closing clock: what the documents have come to. */
static rbt_err lda_close(rbt_worker *worker, const rbt_plan *plan, lda_worker *w, rbt_error *error)
{
    const lda_state *s = plan->state;
    size_t k = s->shape.topics;
    rbt_err err;

    w->ln_topics = rbt_lda_ln_topics(&w->lda, 0, w->lda.documents);
    memset(w->totals, 0, (k + MORE_COLUMNS) * sizeof *w->totals);
    w->totals[k + LIKELIHOOD] = (int64_t)floor(w->ln_topics * UNITS);
    err = add_totals(worker, s, w, error);
    if (err == RBT_OK)
        err = tell(worker, plan, w, error);
    return err == RBT_OK ? rbt_clock(worker, error) : err;
}

static rbt_err lda_work(rbt_worker *worker, rbt_plan *plan, rbt_error *error)
{
    const lda_state *s = plan->state;
    size_t k = s->shape.topics, n, first, batches = s->range != NULL ? 1 : (size_t)rbt_plan_pass_clocks(plan);
    const uint32_t *rows = rbt_plan_rows(plan, worker, &n);
    lda_worker w = {.batch = rbt_alloc(batches, sizeof *w.batch),
                    .before = rbt_alloc(k, sizeof *w.before),
                    .totals = rbt_alloc(k + MORE_COLUMNS, sizeof *w.totals)};
    rbt_err err = rbt_lda_init(&w.lda, &s->shape, plan->data, rows, n, rbt_worker_id(worker), error);

    if (err == RBT_OK)
        err = add_start(worker, plan, &w, error);
    memset(w.totals, 0, (k + MORE_COLUMNS) * sizeof *w.totals);
    while (err == RBT_OK && rbt_plan_batch(plan, worker, &first, &n))
        err = lda_clock(worker, plan, &w, first, n, error);
    if (err == RBT_OK)
        err = lda_close(worker, plan, &w, error);
    for (size_t i = 0; i < batches; i++)
        rbt_lda_batch_deinit(&w.batch[i]);
    rbt_lda_deinit(&w.lda);
    rbt_free(w.batch);
    rbt_free(w.before);
    rbt_free(w.totals);
    return err;
}

/* ----------------------------------------------------------------------------------------------------------- outcome */

/* ln p(words | topics) by the tables; their totals go to `totals`, and the counts to `counts` unless it is NULL. */
static rbt_err find_ln_words(const rbt_plan *plan, int32_t *counts, int64_t *totals, double *ln_words, rbt_error *error)
{
    const lda_state *s = plan->state;
    size_t k = s->shape.topics;
    int32_t *room = rbt_alloc(k, sizeof *room);
    rbt_rising beta, all_beta;
    rbt_err err = RBT_OK;

    rbt_rising_init(&beta, s->shape.beta);
    rbt_rising_init(&all_beta, s->shape.beta * (double)s->shape.words);
    *ln_words = 0;
    for (size_t w = 0; err == RBT_OK && w < s->shape.words; w++) {
        int32_t *row = counts != NULL ? counts + w * k : room;

        err = rbt_plan_read(plan, s->counts, w, 0, k, row, error);
        if (err == RBT_OK)
            *ln_words += rbt_rising_ln_row(&beta, row, k);
        for (size_t t = 0; err == RBT_OK && t < k; t++)
            totals[t] += row[t];
    }
    for (size_t t = 0; t < k; t++)
        *ln_words -= rbt_rising_ln(&all_beta, totals[t]);
    rbt_free(room);
    return err;
}

static rbt_err lda_judge(const rbt_plan *plan, double told, double *objective, rbt_error *error)
{
    const lda_state *s = plan->state;
    int64_t *totals = rbt_alloc(s->shape.topics, sizeof *totals);
    double ln_words;
    rbt_err err = find_ln_words(plan, NULL, totals, &ln_words, error);

    *objective = told - ln_words / (double)s->tokens;
    rbt_free(totals);
    return err;
}

static rbt_err lda_keep(const rbt_plan *plan, rbt_fitted *fitted, rbt_error *error)
{
    const lda_state *s = plan->state;
    size_t k = s->shape.topics, words = s->shape.words;
    int32_t *counts = rbt_fitted_add(fitted, "word_topic", RBT_I32, words, k);
    int64_t *totals = rbt_fitted_add(fitted, "totals", RBT_I64, 1, k), ln_topics = 0;
    double ln_words;
    rbt_err err;

    if (counts == NULL || totals == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu words in %zu topics", words, k);
    err = rbt_plan_read(plan, s->totals, 0, k + LIKELIHOOD, 1, &ln_topics, error);
    if (err == RBT_OK)
        err = find_ln_words(plan, counts, totals, &ln_words, error);
    if (err != RBT_OK)
        return err;
    rbt_fitted_set(fitted, "alpha", s->shape.alpha);
    rbt_fitted_set(fitted, "beta", s->shape.beta);
    rbt_fitted_set(fitted, "tokens", (double)s->tokens);
    rbt_fitted_set(fitted, "log_likelihood", (ln_words + (double)ln_topics / UNITS) / (double)s->tokens);
    return RBT_OK;
}

const rbt_method rbt_method_lda = {.name = "lda",
                                   .about = "topics of documents",
                                   .objective = "minus the log-likelihood of words and topics, per token",
                                   .content = RBT_CONTENT_DOCS,
                                   .options = lda_options,
                                   .unheeded = "lr decay l1 l2",
                                   .opening = 1,
                                   .closing = 1,
                                   .parts = PARTS,
                                   .keeps_state = true,
                                   .needs_sums = true,
                                   .reads_once = true,
                                   .own_rows = true,
                                   .facts = lda_facts_bytes,
                                   .survey = lda_survey,
                                   .unfiltered = "its counts must add up to the tokens in every clock",
                                   .plan = lda_plan,
                                   .work = lda_work,
                                   .keep = lda_keep,
                                   .judge = lda_judge,
                                   .end = lda_end,
                                   .open = rbt_lda_open,
                                   .predict = rbt_lda_predict,
                                   .evaluate = rbt_lda_evaluate,
                                   .describe = rbt_lda_describe};

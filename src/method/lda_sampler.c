/* The sampler of topic models. Contract in lda_sampler.h. */
#include "method/lda_sampler.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

enum { LANES = RBT_LDA_LANES, BLOCK = 32, AHEAD = 6 };

/* -------------------------------------------------------------------------------------------------------- documents */

rbt_err rbt_lda_check_row(const rbt_data *data, size_t row, size_t number, uint64_t *tokens, rbt_error *error)
{
    uint64_t sum = 0;

    for (size_t i = data->start[row]; i < data->start[row + 1]; i++) {
        float value = data->value[i];

        if (!(value >= 0) || value != floorf(value) || value > (float)RBT_LDA_TOKENS_MOST)
            return rbt_fail(error, RBT_E_DATA,
                            "document %zu has word %zu %g times; topic models count words: give whole numbers of "
                            "occurrences, at most %u, not weights",
                            number + 1, (size_t)data->index[i] + 1, (double)value, RBT_LDA_TOKENS_MOST);
        sum += (uint64_t)value;
    }
    if (sum > RBT_LDA_TOKENS_MOST)
        return rbt_fail(error, RBT_E_LIMIT, "document %zu has %llu words, at most %u can be sampled; cut it into parts",
                        number + 1, (unsigned long long)sum, RBT_LDA_TOKENS_MOST);
    *tokens = sum;
    return RBT_OK;
}

static size_t length_of(const rbt_data *data, size_t row)
{
    size_t n = 0;

    for (size_t i = data->start[row]; i < data->start[row + 1]; i++)
        n += (size_t)data->value[i];
    return n;
}

void rbt_lda_start_topics(const rbt_lda *lda, size_t document, uint32_t *topic)
{
    rbt_rng rng = rbt_rng_stream(lda->shape.seed, RBT_STREAM_METHOD, ((uint64_t)1 << 32) + lda->rows[document]);
    size_t n = length_of(lda->data, lda->rows[document]);

    for (size_t t = 0; t < n; t++)
        topic[t] = (uint32_t)rbt_rng_below(&rng, lda->shape.topics);
}

/* Where a topic stands in a document's list; `used` when it does not. A line is looked at as a whole: its places are added up
 * where the topic is, and it is in one place at the most. */
static inline uint32_t find(const rbt_lda_line *line, uint32_t used, uint32_t topic)
{
    for (uint32_t first = 0; first < used; first += LANES) {
        const uint32_t *at = line[first / LANES].topic;
        uint32_t place = 0;

        for (uint32_t i = 0; i < LANES; i++)
            place += at[i] == topic ? i + 1 : 0;
        if (place != 0)
            return first + place - 1;
    }
    return used;
}

static inline float *count_at(rbt_lda_line *line, uint32_t place)
{
    return &line[place / LANES].count[place % LANES];
}

/* One more token of a topic, which stands at `place`, or, when that is past the last, nowhere yet. */
static inline void put(rbt_lda_line *line, uint32_t *used, uint32_t place, uint32_t topic)
{
    if (place == *used) {
        line[place / LANES].topic[place % LANES] = topic;
        ++*used;
    }
    *count_at(line, place) += 1;
}

/* The last topic takes the place of one that is gone. Unused places have a topic that does not exist. */
static inline void close_gap(rbt_lda_line *line, uint32_t *used, uint32_t place, uint32_t none)
{
    uint32_t last = --*used;

    *count_at(line, place) = *count_at(line, last);
    line[place / LANES].topic[place % LANES] = line[last / LANES].topic[last % LANES];
    *count_at(line, last) = 0;
    line[last / LANES].topic[last % LANES] = none;
}

static bool fill_lists(rbt_lda *lda, size_t longest)
{
    uint32_t *topic = rbt_try_alloc_raw(longest + 1, sizeof *topic);

    for (size_t l = 0; l < lda->line_start[lda->documents]; l++)
        for (size_t i = 0; i < LANES; i++)
            lda->line[l].topic[i] = lda->shape.topics;
    for (size_t d = 0; topic != NULL && d < lda->documents; d++) {
        rbt_lda_line *line = lda->line + lda->line_start[d];
        size_t n = length_of(lda->data, lda->rows[d]);

        rbt_lda_start_topics(lda, d, topic);
        for (size_t t = 0; t < n; t++)
            put(line, &lda->used[d], find(line, lda->used[d], topic[t]), topic[t]);
    }
    rbt_free(topic);
    return topic != NULL;
}

rbt_err rbt_lda_init(rbt_lda *lda, const rbt_lda_shape *shape, const rbt_data *data, const uint32_t *rows, size_t n,
                     uint64_t stream, rbt_error *error)
{
    size_t k = shape->topics, room = (k / BLOCK + 1) * BLOCK, longest = 0;

    *lda = (rbt_lda){.shape = *shape, .data = data, .rows = rows, .documents = n};
    lda->rng = rbt_rng_stream(shape->seed, RBT_STREAM_METHOD, stream);
    rbt_rising_init(&lda->alpha, shape->alpha);
    rbt_rising_init(&lda->all_alpha, shape->alpha * (double)k);
    lda->line_start = rbt_try_alloc(n + 1, sizeof *lda->line_start);
    lda->used = rbt_try_alloc(n + 1, sizeof *lda->used);
    lda->total = rbt_alloc(room, sizeof *lda->total);
    lda->inverse = rbt_alloc(room, sizeof *lda->inverse);
    lda->count = rbt_alloc(room, sizeof *lda->count);
    lda->q = rbt_alloc(room, sizeof *lda->q);
    lda->block = rbt_alloc(room / BLOCK, sizeof *lda->block);
    lda->weight = rbt_alloc(room, sizeof *lda->weight);
    lda->upto = rbt_alloc(room / LANES, sizeof *lda->upto);
    for (size_t d = 0; lda->line_start != NULL && d < n; d++) {
        size_t length = length_of(data, rows[d]), most = length < k ? length : k;

        lda->line_start[d + 1] = lda->line_start[d] + (most + LANES - 1) / LANES;
        longest = length > longest ? length : longest;
    }
    if (lda->line_start != NULL)
        lda->line = rbt_try_alloc(lda->line_start[n] + 1, sizeof *lda->line);
    if (lda->line_start != NULL && lda->line != NULL && lda->used != NULL && fill_lists(lda, longest))
        return RBT_OK;
    rbt_lda_deinit(lda);
    return rbt_fail(error, RBT_E_MEMORY, "not enough memory for the topics of %zu documents; use more machines", n);
}

void rbt_lda_deinit(rbt_lda *lda)
{
    rbt_free(lda->line_start);
    rbt_free(lda->used);
    rbt_free(lda->line);
    rbt_free(lda->total);
    rbt_free(lda->inverse);
    rbt_free(lda->count);
    rbt_free(lda->q);
    rbt_free(lda->block);
    rbt_free(lda->weight);
    rbt_free(lda->upto);
    *lda = (rbt_lda){0};
}

/* ---------------------------------------------------------------------------------------------------------- batches */

/* How many tokens of each word the documents have; the sum, and the longest document. */
static size_t count_words(const rbt_lda *lda, size_t first, size_t n, size_t *count, size_t *longest)
{
    const rbt_data *data = lda->data;
    size_t all = 0;

    *longest = 0;
    for (size_t d = first; d < first + n; d++) {
        size_t row = lda->rows[d], length = 0;

        for (size_t i = data->start[row]; i < data->start[row + 1]; i++) {
            count[data->index[i]] += (size_t)data->value[i];
            length += (size_t)data->value[i];
        }
        all += length;
        *longest = length > *longest ? length : *longest;
    }
    return all;
}

/* Puts the tokens where their words want them; `next` says where each word's next one goes. */
static void place_tokens(rbt_lda_batch *batch, const rbt_lda *lda, size_t first, size_t n, size_t *next,
                         uint32_t *topic)
{
    const rbt_data *data = lda->data;

    for (size_t d = first; d < first + n; d++) {
        size_t row = lda->rows[d], t = 0;

        rbt_lda_start_topics(lda, d, topic);
        for (size_t i = data->start[row]; i < data->start[row + 1]; i++)
            for (size_t copies = (size_t)data->value[i]; copies > 0; copies--)
                batch->token[next[data->index[i]]++] = (rbt_lda_token){(uint32_t)d, topic[t++]};
    }
}

rbt_err rbt_lda_batch_init(rbt_lda_batch *batch, const rbt_lda *lda, size_t first, size_t n, rbt_error *error)
{
    size_t words = lda->shape.words, longest = 0, tokens = 0, at = 0;
    size_t *count = rbt_try_alloc(words + 1, sizeof *count);
    uint32_t *topic = NULL;

    *batch = (rbt_lda_batch){0};
    if (count != NULL)
        tokens = count_words(lda, first, n, count, &longest);
    for (size_t w = 0; count != NULL && w < words; w++)
        batch->words += count[w] > 0;
    batch->word = rbt_try_alloc(batch->words + 1, sizeof *batch->word);
    batch->start = rbt_try_alloc(batch->words + 1, sizeof *batch->start);
    batch->token = rbt_try_alloc_raw(tokens + 1, sizeof *batch->token);
    topic = rbt_try_alloc_raw(longest + 1, sizeof *topic);
    if (count == NULL || batch->word == NULL || batch->start == NULL || batch->token == NULL || topic == NULL) {
        rbt_free(count);
        rbt_free(topic);
        rbt_lda_batch_deinit(batch);
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu tokens; use more machines", tokens);
    }
    for (size_t w = 0, i = 0; w < words; w++) {
        size_t here = count[w];

        if (here > 0) {
            batch->word[i] = (uint32_t)w;
            batch->start[i++] = at;
        }
        count[w] = at;
        at += here;
    }
    batch->start[batch->words] = at;
    place_tokens(batch, lda, first, n, count, topic);
    rbt_free(count);
    rbt_free(topic);
    return RBT_OK;
}

void rbt_lda_batch_deinit(rbt_lda_batch *batch)
{
    rbt_free(batch->word);
    rbt_free(batch->start);
    rbt_free(batch->token);
    *batch = (rbt_lda_batch){0};
}

/* --------------------------------------------------------------------------------------------------------- sampling */

static inline float inverse_of(const rbt_lda *lda, int64_t total)
{
    return 1.0f / ((float)(total > 0 ? total : 0) + (float)(lda->shape.beta * (double)lda->shape.words));
}

void rbt_lda_begin(rbt_lda *lda)
{
    for (size_t k = 0; k < lda->shape.topics; k++)
        lda->inverse[k] = inverse_of(lda, lda->total[k]);
}

/* q and its sums for the counts at hand. Four sums side by side, always in the same order. */
static void open_word(rbt_lda *lda)
{
    size_t topics = lda->shape.topics;
    float beta = (float)lda->shape.beta;

    for (size_t k = 0; k < topics; k++)
        lda->q[k] = ((float)(lda->count[k] > 0 ? lda->count[k] : 0) + beta) * lda->inverse[k];
    lda->mass = 0;
    for (size_t first = 0; first < topics; first += BLOCK) { /* beyond the last topic q is 0 */
        float sum[4] = {0};

        for (size_t k = first; k < first + BLOCK; k += 4)
            for (size_t i = 0; i < 4; i++)
                sum[i] += lda->q[k + i];
        lda->block[first / BLOCK] = (double)((sum[0] + sum[1]) + (sum[2] + sum[3]));
        lda->mass += lda->block[first / BLOCK];
    }
}

static inline void set_q(rbt_lda *lda, uint32_t k, float q)
{
    double change = (double)q - (double)lda->q[k];

    lda->q[k] = q;
    lda->block[k / BLOCK] += change;
    lda->mass += change;
}

/* One token more or less of the word at hand in a topic. */
static inline void change_count(rbt_lda *lda, uint32_t k, int32_t by)
{
    int32_t count = lda->count[k] += by;

    lda->inverse[k] = inverse_of(lda, lda->total[k] += by);
    set_q(lda, k, ((float)(count > 0 ? count : 0) + (float)lda->shape.beta) * lda->inverse[k]);
}

/* The topic at a point of the sum of q. */
static uint32_t topic_by_word(const rbt_lda *lda, double point)
{
    uint32_t topics = lda->shape.topics, blocks = (topics + BLOCK - 1) / BLOCK, b = 0, k;

    while (b + 1 < blocks && point >= lda->block[b])
        point -= lda->block[b++];
    k = b * BLOCK;
    while (k + 1 < topics && k + 1 < (b + 1) * BLOCK && point >= (double)lda->q[k])
        point -= (double)lda->q[k++];
    return k;
}

/* The weights n[d][k] q[k] of a document's topics, and their sum; `upto` has the sum up to the end of each line. */
static inline float weigh(const rbt_lda *lda, const rbt_lda_line *line, uint32_t used)
{
    const float *restrict q = lda->q;
    float sum = 0;

    for (uint32_t l = 0; l * LANES < used; l++) {
        const rbt_lda_line *at = &line[l];
        float *restrict weight = lda->weight + (size_t)l * LANES;

        for (uint32_t i = 0; i < LANES; i++)
            weight[i] = at->count[i] * q[at->topic[i]];
        sum +=
            ((weight[0] + weight[1]) + (weight[2] + weight[3])) + ((weight[4] + weight[5]) + (weight[6] + weight[7]));
        lda->upto[l] = sum;
    }
    return sum;
}

/* The place in the document's list at a point of the sum of weights; not one whose weight is 0. */
static inline uint32_t place_by_document(const rbt_lda *lda, uint32_t used, float point)
{
    uint32_t l = 0, lines = (used + LANES - 1) / LANES, place, end;

    while (l + 1 < lines && point >= lda->upto[l])
        l++;
    point -= l > 0 ? lda->upto[l - 1] : 0;
    place = l * LANES;
    end = used - place < LANES ? used : place + LANES;
    while (place + 1 < end && point >= lda->weight[place])
        point -= lda->weight[place++];
    while (!(lda->weight[place] > 0) && place > 0) /* rounding led past the last */
        place--;
    return place;
}

/* Draws a topic for a token that is counted nowhere. `place` is where the topic stands in the document's list, past the last
 * when it does not. */
static inline uint32_t draw(rbt_lda *lda, const rbt_lda_line *line, uint32_t used, uint32_t *place)
{
    double by_document = (double)weigh(lda, line, used);
    double point = rbt_rng_f64(&lda->rng) * (by_document + lda->shape.alpha * lda->mass);
    uint32_t topic;

    if (point < by_document) {
        *place = place_by_document(lda, used, (float)point);
        return line[*place / LANES].topic[*place % LANES];
    }
    topic = topic_by_word(lda, (point - by_document) / lda->shape.alpha);
    *place = find(line, used, topic);
    return topic;
}

/* A new topic for one token. True when it is another. */
static inline bool sample_token(rbt_lda *lda, rbt_lda_token *token)
{
    rbt_lda_line *line = lda->line + lda->line_start[token->document];
    uint32_t *used = &lda->used[token->document];
    uint32_t old = token->topic, from = find(line, *used, old), to, new;
    float q = lda->q[old], inverse = lda->inverse[old];

    *count_at(line, from) -= 1;
    change_count(lda, old, -1);
    new = draw(lda, line, *used, &to);
    if (new == old) {
        *count_at(line, from) += 1;
        lda->count[old]++;
        lda->total[old]++;
        lda->inverse[old] = inverse;
        set_q(lda, old, q);
        return false;
    }
    change_count(lda, new, 1);
    if (*count_at(line, from) > 0) {
        put(line, used, to, new);
    } else if (to == *used) { /* the list stays as long as it is: it has room */
        line[from / LANES].topic[from % LANES] = new;
        *count_at(line, from) = 1;
    } else {
        *count_at(line, to) += 1;
        close_gap(line, used, from, lda->shape.topics);
    }
    token->topic = new;
    return true;
}

bool rbt_lda_sample(rbt_lda *lda, rbt_lda_batch *batch, size_t word)
{
    bool changed = false;
    size_t end = batch->start[word + 1];

    open_word(lda);
    for (size_t t = batch->start[word]; t < end; t++) {
        if (t + AHEAD < end) {
            const rbt_lda_line *next = lda->line + lda->line_start[batch->token[t + AHEAD].document];

            __builtin_prefetch(next);
            __builtin_prefetch(next + 1);
        }
        changed |= sample_token(lda, &batch->token[t]);
    }
    return changed;
}

/* ------------------------------------------------------------------------------------------------------- likelihood */

double rbt_lda_ln_topics(const rbt_lda *lda, size_t first, size_t n)
{
    double sum = 0;

    for (size_t d = first; d < first + n; d++) {
        rbt_lda_line *line = lda->line + lda->line_start[d];
        int64_t tokens = 0;

        for (uint32_t i = 0; i < lda->used[d]; i++) {
            int64_t count = (int64_t)*count_at(line, i);

            sum += rbt_rising_ln(&lda->alpha, count);
            tokens += count;
        }
        sum -= rbt_rising_ln(&lda->all_alpha, tokens);
    }
    return sum;
}

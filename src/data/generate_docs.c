/* Generated documents. Contract in generate.h; proved by tests/unit/test_generate_files.c.
 *
 * A document is a function of the seed and its number. How many distinct words it has is the first draw of its stream,
 * so that their sum, which stands at the top of the file, is known before any document is made.
 */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/draw.h"
#include "data/generate.h"
#include "data/number.h"
#include "math/functions.h"

#define TOPICS_OF_A_DOCUMENT 5
#define TOPICS_MOST          (size_t)1000000
#define PIECE_TRIPLES        (size_t)16384
#define LINE_ROOM            80

enum { PURPOSE_TOPICS = 1 };

/* A topic's word of rank k is (factor * k + offset) mod words, which is a different order for each topic. */
typedef struct topic {
    uint64_t factor, offset;
} topic;

typedef struct docs {
    const rbt_docs_options *options;
    topic *topics;
    rbt_popularity popularity;
    size_t piece_docs;
} docs;

/* What a thread needs. */
typedef struct room {
    rbt_draw draw;
    uint32_t *words;  /* distinct */
    uint32_t *tokens; /* all */
    uint32_t *count;
} room;

static size_t most_words(const rbt_docs_options *o)
{
    size_t below = o->nnz - 1, above = o->words - o->nnz;
    return o->nnz + (below < above ? below : above);
}

/* Words that a document may have at most, those that fill it up included. */
static size_t tokens_of(size_t n)
{
    return 11 * n + 100;
}

static rbt_err check(const rbt_docs_options *o, rbt_error *error)
{
    rbt_err err = rbt_generate_check_count("docs", o->docs, UINT32_MAX, error);
    if (err == RBT_OK)
        err = rbt_generate_check_count("words", o->words, RBT_DATA_INDEX_LIMIT - 1, error);
    if (err == RBT_OK)
        err = rbt_generate_check_count("nnz", o->nnz, o->words, error);
    if (err == RBT_OK)
        err = rbt_generate_check_count("topics", o->topics, TOPICS_MOST, error);
    if (err == RBT_OK)
        err = rbt_generate_check_skew(o->skew, error);
    return err == RBT_OK ? rbt_generate_check_noise(o->noise, 1, error) : err;
}

static rbt_err room_init(room *r, const rbt_docs_options *o, rbt_error *error)
{
    size_t most = most_words(o);
    rbt_err err = rbt_draw_init(&r->draw, most, error);
    if (err != RBT_OK)
        return err;
    r->words = rbt_try_alloc_raw(most, sizeof *r->words);
    r->tokens = rbt_try_alloc_raw(tokens_of(most), sizeof *r->tokens);
    r->count = rbt_try_alloc_raw(most, sizeof *r->count);
    if (r->words == NULL || r->tokens == NULL || r->count == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for documents of up to %zu words; use shorter ones",
                        most);
    return RBT_OK;
}

static void room_deinit(room *r)
{
    rbt_draw_deinit(&r->draw);
    rbt_free(r->words);
    rbt_free(r->tokens);
    rbt_free(r->count);
}

static size_t greatest_common_divisor(size_t a, size_t b)
{
    while (b != 0) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void make_topics(docs *d)
{
    const rbt_docs_options *o = d->options;
    for (size_t t = 0; t < o->topics; t++) {
        rbt_rng rng = rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, RBT_GENERATE_OTHER(PURPOSE_TOPICS, t));
        do
            d->topics[t].factor = 1 + rbt_rng_below(&rng, o->words);
        while (greatest_common_divisor(d->topics[t].factor, o->words) != 1);
        d->topics[t].offset = rbt_rng_below(&rng, o->words);
    }
}

static uint32_t word_of(const docs *d, size_t t, size_t rank)
{
    return (uint32_t)((d->topics[t].factor * rank + d->topics[t].offset) % d->options->words);
}

static rbt_rng stream_of(const rbt_docs_options *o, size_t doc)
{
    return rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, RBT_GENERATE_ROWS + (uint64_t)doc);
}

/* The topics of a document and the sums of their weights, the last of which is 1. */
static void draw_topics(const docs *d, rbt_rng *rng, size_t *chosen, double *until)
{
    size_t most = d->options->topics < TOPICS_OF_A_DOCUMENT ? d->options->topics : TOPICS_OF_A_DOCUMENT;
    size_t n = 1 + (size_t)rbt_rng_below(rng, most);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        chosen[i] = (size_t)rbt_rng_below(rng, d->options->topics);
        sum -= rbt_ln(rbt_rng_f64(rng) + 0x1p-54);
        until[i] = sum;
    }
    for (size_t i = 0; i < n; i++)
        until[i] /= sum;
    until[n - 1] = 1;
}

/* Draws words until n distinct ones are there; returns how many were drawn. */
static size_t draw_words(const docs *d, room *r, rbt_rng *rng, size_t n)
{
    size_t chosen[TOPICS_OF_A_DOCUMENT] = {0}, have = 0, drawn = 0;
    double until[TOPICS_OF_A_DOCUMENT] = {1, 1, 1, 1, 1};
    draw_topics(d, rng, chosen, until);
    rbt_draw_begin(&r->draw, n);
    while (have < n && drawn < 10 * n + 100) {
        uint32_t word;
        if (rbt_rng_f64(rng) < d->options->noise) {
            word = (uint32_t)rbt_rng_below(rng, d->options->words);
        } else {
            double u = rbt_rng_f64(rng);
            size_t i = 0;
            while (u >= until[i])
                i++;
            word = word_of(d, chosen[i], rbt_popularity_draw(&d->popularity, rng));
        }
        r->tokens[drawn++] = word;
        if (rbt_draw_add(&r->draw, word))
            r->words[have++] = word;
    }
    for (size_t k = 0; have < n; k++) { /* chance finds no others soon: the most popular that are missing */
        uint32_t word = word_of(d, chosen[0], k);
        if (rbt_draw_add(&r->draw, word))
            r->words[have++] = r->tokens[drawn++] = word;
    }
    return drawn;
}

static void count_words(room *r, size_t n, size_t drawn)
{
    memset(r->count, 0, n * sizeof *r->count);
    for (size_t i = 0; i < drawn; i++) {
        size_t low = 0, high = n - 1;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (r->words[middle] < r->tokens[i])
                low = middle + 1;
            else
                high = middle;
        }
        r->count[low]++;
    }
}

static rbt_err print_doc(const docs *d, room *r, size_t doc, rbt_buffer *out, rbt_error *error)
{
    rbt_rng rng = stream_of(d->options, doc);
    size_t n = rbt_generate_length(d->options->nnz, d->options->words, &rng);
    rbt_err err = rbt_buffer_reserve(out, n * LINE_ROOM, error);
    if (err != RBT_OK)
        return err;
    size_t drawn = draw_words(d, r, &rng, n);
    rbt_draw_sort(&r->draw, r->words, n, d->options->words);
    count_words(r, n, drawn);
    char *at = out->at + out->n;
    for (size_t i = 0; i < n; i++) {
        at += rbt_number_print_count(doc + 1, at);
        *at++ = ' ';
        at += rbt_number_print_count((uint64_t)r->words[i] + 1, at);
        *at++ = ' ';
        at += rbt_number_print_count(r->count[i], at);
        *at++ = '\n';
    }
    out->n = (size_t)(at - out->at);
    return RBT_OK;
}

static rbt_err print_piece(void *context, size_t piece, rbt_buffer *out, rbt_error *error)
{
    const docs *d = context;
    room r = {0};
    size_t doc = piece * d->piece_docs, left = d->options->docs - doc;
    size_t end = doc + (left < d->piece_docs ? left : d->piece_docs);
    rbt_err err = room_init(&r, d->options, error);
    for (; err == RBT_OK && doc < end; doc++)
        err = print_doc(d, &r, doc, out, error);
    room_deinit(&r);
    return err;
}

/* The three lines at the top. */
static size_t print_head(const rbt_docs_options *o, char *out)
{
    size_t triples = 0;
    for (size_t doc = 0; doc < o->docs; doc++) {
        rbt_rng rng = stream_of(o, doc);
        triples += rbt_generate_length(o->nnz, o->words, &rng);
    }
    const size_t numbers[] = {o->docs, o->words, triples};
    char *at = out;
    for (size_t i = 0; i < 3; i++) {
        at += rbt_number_print_count(numbers[i], at);
        *at++ = '\n';
    }
    return (size_t)(at - out);
}

rbt_err rbt_generate_docs(const rbt_docs_options *options, const rbt_writing *how, rbt_error *error)
{
    rbt_err err = check(options, error);
    if (err != RBT_OK)
        return err;
    char text[LINE_ROOM];
    docs d = {.options = options,
              .topics = rbt_alloc(options->topics, sizeof *d.topics),
              .piece_docs = PIECE_TRIPLES / options->nnz + 1};
    rbt_popularity_init(&d.popularity, options->words, options->skew);
    make_topics(&d);
    rbt_buffer head = {.at = text, .n = print_head(options, text)};
    rbt_making pieces = {
        .count = (options->docs + d.piece_docs - 1) / d.piece_docs, .make = print_piece, .context = &d};
    err = rbt_making_write_file(&pieces, how, &head, error);
    rbt_free(d.topics);
    return err;
}

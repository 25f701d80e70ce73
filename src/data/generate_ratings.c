/* Generated ratings. Contract in generate.h; proved by tests/unit/test_generate_files.c.
 *
 * How many ratings each user has is worked out beforehand; a piece of the file is the ratings of some users. What a user
 * rates, and how, comes from a stream of the user's own.
 */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/draw.h"
#include "data/generate.h"
#include "data/number.h"
#include "math/functions.h"

#define PIECE_RATINGS (size_t)8192
#define LINE_ROOM     80
#define RATING_MEAN   3.25
#define FIRST_TIME    UINT64_C(1000000000)
#define TIME_SPAN     UINT64_C(100000000) /* seconds in which users begin */
#define TIME_STEP     UINT64_C(600)       /* seconds between two ratings of a user, at most */
#define RANK_MOST     (size_t)4096

enum { PURPOSE_ITEMS = 1, PURPOSE_USERS };

typedef struct ratings {
    const rbt_ratings_options *options;
    bool csv;
    size_t *start;    /* ratings of the users before each user, then all */
    size_t most;      /* that one user has */
    uint32_t *item;   /* of a rank */
    float *character; /* of the items, `rank` numbers each */
    double root;      /* what gives the product of two vectors a standard deviation of 1 */
    rbt_popularity popularity;
} ratings;

static rbt_err check(const rbt_ratings_options *o, rbt_error *error)
{
    rbt_err err = rbt_generate_check_count("users", o->users, RBT_DATA_INDEX_LIMIT - 1, error);
    if (err == RBT_OK)
        err = rbt_generate_check_count("items", o->items, RBT_DATA_INDEX_LIMIT - 1, error);
    if (err == RBT_OK)
        err = rbt_generate_check_count("rank", o->rank, RANK_MOST, error);
    if (err == RBT_OK)
        err = rbt_generate_check_skew(o->skew, error);
    if (err == RBT_OK)
        err = rbt_generate_check_noise(o->noise, 1e6, error);
    if (err == RBT_OK && (o->rows < 1 || o->rows > o->users * o->items)) /* both are below 2^32 */
        err = rbt_fail(error, RBT_E_USAGE,
                       "--rows %zu is out of range; give a number from 1 to --users times --items, %zu: nobody rates "
                       "an item twice",
                       o->rows, o->users * o->items);
    if (err == RBT_OK)
        err = rbt_draw_check_memory((double)o->users * 12 + (double)o->items * (4 + 4 * (double)o->rank),
                                    "that many users and items of that rank", error);
    return err;
}

static void ratings_deinit(ratings *r)
{
    rbt_free(r->start);
    rbt_free(r->item);
    rbt_free(r->character);
}

static void permute(uint32_t *list, size_t n, uint64_t seed, uint64_t stream)
{
    rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_GENERATE, stream);
    for (size_t i = 0; i < n; i++)
        list[i] = (uint32_t)i;
    rbt_rng_shuffle_u32(&rng, list, n);
}

/* Users' shares of the ratings by their popularity, none more than there are items; start[u + 1] is the count of user u
 * first, and the sum in the end. */
static void share_out(ratings *r, const uint32_t *user)
{
    const rbt_ratings_options *o = r->options;
    double total = 0, sum = 0;
    size_t before = 0, excess = o->rows, *count = r->start + 1;
    for (size_t k = 0; k < o->users; k++)
        total += rbt_exp(-o->skew / 2 * rbt_ln((double)k + 1));
    for (size_t k = 0; k < o->users; k++) {
        sum += rbt_exp(-o->skew / 2 * rbt_ln((double)k + 1));
        size_t until = sum < total ? (size_t)((double)o->rows * (sum / total)) : o->rows;
        until = until > o->rows ? o->rows : until;
        size_t n = until > before ? until - before : 0;
        count[user[k]] = n < o->items ? n : o->items;
        excess -= count[user[k]];
        before = until > before ? until : before;
    }
    while (excess > 0) /* what the popular ones have no items for goes to the others evenly */
        for (size_t k = 0; k < o->users && excess > 0; k++) {
            size_t room = o->items - count[user[k]], share = excess / (o->users - k) + 1;
            share = share < room ? share : room;
            share = share < excess ? share : excess;
            count[user[k]] += share;
            excess -= share;
        }
    r->start[0] = 0;
    for (size_t u = 0; u < o->users; u++) {
        r->most = count[u] > r->most ? count[u] : r->most;
        count[u] += r->start[u];
    }
}

static rbt_err ratings_init(ratings *r, const rbt_ratings_options *o, bool csv, rbt_error *error)
{
    uint32_t *user = rbt_try_alloc_raw(o->users, sizeof *user);
    *r = (ratings){
        .options = o,
        .csv = csv,
        .start = rbt_try_alloc_raw(o->users + 1, sizeof *r->start),
        .item = rbt_try_alloc_raw(o->items, sizeof *r->item),
        .character = rbt_try_alloc_raw(o->items * o->rank, sizeof *r->character),
        .root = rbt_exp(-0.25 * rbt_ln((double)o->rank)),
    };
    if (user == NULL || r->start == NULL || r->item == NULL || r->character == NULL) {
        rbt_free(user);
        ratings_deinit(r);
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu users and %zu items of rank %zu; use fewer",
                        o->users, o->items, o->rank);
    }
    rbt_popularity_init(&r->popularity, o->items, o->skew);
    permute(user, o->users, o->seed, RBT_GENERATE_LENGTHS);
    permute(r->item, o->items, o->seed, RBT_GENERATE_RANKS);
    share_out(r, user);
    for (size_t i = 0; i < o->items; i++) {
        rbt_rng rng = rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, RBT_GENERATE_OTHER(PURPOSE_ITEMS, i));
        for (size_t k = 0; k < o->rank; k++)
            r->character[i * o->rank + k] = (float)(r->root * rbt_rng_normal(&rng));
    }
    rbt_free(user);
    return RBT_OK;
}

/* The nearest of 0.5, 1, ... 5, doubled. */
static uint64_t halves_of(double rating)
{
    double doubled = 2 * rating + 0.5;
    return doubled < 1 ? 1 : doubled >= 10 ? 10 : (uint64_t)doubled;
}

static char *print_line(const ratings *r, size_t user, size_t item, uint64_t halves, uint64_t time, char *at)
{
    const char *between = r->csv ? "," : "::";
    size_t n = r->csv ? 1 : 2;
    at += rbt_number_print_count(user + 1, at);
    memcpy(at, between, n);
    at += n;
    at += rbt_number_print_count(item + 1, at);
    memcpy(at, between, n);
    at += n;
    at += rbt_number_print_count(halves / 2, at);
    if (halves % 2 == 1) {
        memcpy(at, ".5", 2);
        at += 2;
    }
    if (!r->csv) {
        memcpy(at, between, n);
        at += n;
        at += rbt_number_print_count(time, at);
    }
    *at++ = '\n';
    return at;
}

static char *print_user(const ratings *r, rbt_draw *draw, size_t user, float *taste, uint32_t *items, char *at)
{
    const rbt_ratings_options *o = r->options;
    size_t n = r->start[user + 1] - r->start[user];
    rbt_rng rng = rbt_rng_stream(o->seed, RBT_STREAM_GENERATE, RBT_GENERATE_OTHER(PURPOSE_USERS, user));
    uint64_t time = FIRST_TIME + rbt_rng_below(&rng, TIME_SPAN);
    for (size_t k = 0; k < o->rank; k++)
        taste[k] = (float)(r->root * rbt_rng_normal(&rng));
    rbt_draw_distinct(draw, &r->popularity, r->item, &rng, items, n);
    for (size_t i = 0; i < n; i++) {
        const float *character = r->character + (size_t)items[i] * o->rank;
        double product = 0;
        for (size_t k = 0; k < o->rank; k++)
            product += (double)taste[k] * (double)character[k];
        double rating = RATING_MEAN + product + o->noise * rbt_rng_normal(&rng);
        time += rbt_rng_below(&rng, TIME_STEP);
        at = print_line(r, user, items[i], halves_of(rating), time, at);
    }
    return at;
}

/* The first user with so many ratings before. */
static size_t user_at(const ratings *r, size_t rating)
{
    size_t low = 0, high = r->options->users;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->start[middle] < rating)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static rbt_err print_piece(void *context, size_t piece, rbt_buffer *out, rbt_error *error)
{
    const ratings *r = context;
    size_t first = user_at(r, piece * PIECE_RATINGS), end = user_at(r, (piece + 1) * PIECE_RATINGS);
    size_t lines = r->start[end] - r->start[first];
    rbt_draw draw;
    rbt_err err = rbt_draw_init(&draw, r->most, error);
    if (err != RBT_OK)
        return err;
    float *taste = rbt_alloc(r->options->rank, sizeof *taste);
    uint32_t *items = rbt_try_alloc_raw(r->most, sizeof *items);
    err = items != NULL
              ? rbt_buffer_reserve(out, lines * LINE_ROOM, error)
              : rbt_fail(error, RBT_E_MEMORY, "not enough memory for a user of %zu ratings; use fewer", r->most);
    if (err == RBT_OK) {
        char *at = out->at;
        for (size_t user = first; user < end; user++)
            at = print_user(r, &draw, user, taste, items, at);
        out->n = (size_t)(at - out->at);
    }
    rbt_free(taste);
    rbt_free(items);
    rbt_draw_deinit(&draw);
    return err;
}

rbt_err rbt_generate_ratings(const rbt_ratings_options *options, bool csv, const rbt_writing *how, rbt_error *error)
{
    ratings r;
    rbt_err err = check(options, error);
    if (err == RBT_OK)
        err = ratings_init(&r, options, csv, error);
    if (err != RBT_OK)
        return err;
    char text[] = "user,item,rating\n";
    rbt_buffer head = {.at = text, .n = csv ? sizeof text - 1 : 0};
    /* Up to the piece in which the last user begins. */
    rbt_making pieces = {.count = r.start[options->users - 1] / PIECE_RATINGS + 1, .make = print_piece, .context = &r};
    err = rbt_making_write_file(&pieces, how, &head, error);
    ratings_deinit(&r);
    return err;
}

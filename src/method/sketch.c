/* Count-min: how often each key of an event stream occurs, in memory that does not grow with the number of keys (Cormode and
 * Muthukrishnan 2005), and which keys occur most.
 *
 * The servers hold depth x width counts. Every event adds one to one count of each row; a key's estimate is the least of its
 * counts: never too low, and more than e * events / width too high with a probability of at most e^-depth. Each worker reads and counts
 * its own part of the files (data/events.h; a pipe has one reader: worker 0 counts all of it), so the counts are the same under every protocol and
 * add up to depth x events. Candidates for the most frequent keys are kept
 * by each worker (Misra and Gries 1982, emptied in bulk): a key that makes up more than 1 / (64 * top) of all events
 * makes up as much of some worker's, and is kept there. At the end they go through a table of floats, since sums of integer tables
 * are sums of counts; so does what a worker has left out, and how long the files are for it. Proved by tests/unit/test_sketch.c and
 * tests/cli/test_lasso.sh.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "data/events.h"
#include "method/method.h"

#define CHUNK        4096 /* events that are counted together */
#define TEXT_MOST    120  /* bytes of a candidate's key that are kept */
#define KEPT_PER_TOP 64   /* candidates kept for one that is listed */

enum { NUMBER = 4 }; /* floats of a large number: 16 bits each */
enum { SLOT_HASH = 0, SLOT_LENGTH = NUMBER, SLOT_TEXT, SLOT = SLOT_TEXT + TEXT_MOST / 2 }; /* of a candidate */
enum {
    LEFT_OUT = 0,
    BYTES = LEFT_OUT + NUMBER,
    STOPPED = BYTES + NUMBER, /* 1: it was interrupted */
    REPORT = STOPPED + 1
}; /* of what a worker says behind its candidates */

static const rbt_method_option sketch_options[] = {
    {.name = "width",
     .fallback = 65536,
     .least = 16,
     .most = 268435456,
     .whole = true,
     .about = "sketch: counts per row; an estimate is about e * events / width too high at most."},
    {.name = "depth", .fallback = 4, .least = 1, .most = 32, .whole = true, .about = "sketch: rows of counts."},
    {.name = "column",
     .fallback = 0,
     .least = 0,
     .most = 1e6,
     .whole = true,
     .about = "sketch: the column of each line that is its key, from 1; 0 = the whole line."},
    {.name = "separator", .words = "tab|comma|semicolon|space", .about = "sketch: what stands between columns."},
    {.name = "top",
     .fallback = 20,
     .least = 1,
     .most = 1000,
     .whole = true,
     .about = "sketch: how many of the most frequent keys are listed."},
    {.name = "events-per-clock",
     .fallback = 524288,
     .least = 1,
     .most = 1e12,
     .whole = true,
     .about = "sketch: a worker's clock ends after so many."},
    {0}};

static const char separators[] = {'\t', ',', ';', ' '};

typedef struct sketch_state {
    rbt_table counts, heavy;
    size_t depth, width, top;
    rbt_events_options events;
    bool is_pipe;
} sketch_state;

static void put_number(uint64_t number, float *to)
{
    for (size_t i = 0; i < NUMBER; i++)
        to[i] = (float)(number >> 16 * i & 0xffff);
}

static uint64_t get_number(const float *from)
{
    uint64_t number = 0;

    for (size_t i = 0; i < NUMBER; i++)
        number |= (uint64_t)from[i] << 16 * i;
    return number;
}

/* Where a worker's candidates end. */
static uint64_t candidates_end(size_t top)
{
    return 2 * KEPT_PER_TOP * (uint64_t)top * SLOT;
}

/* Where a key's count is in a row: the hash mixed with the row's number, scaled to the width. */
static uint64_t place(uint64_t hash, uint64_t row, uint64_t width)
{
    uint64_t x = hash + (row + 1) * 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return ((x >> 32) * width) >> 32;
}

/* ---------------------------------------------------------------------------------------------------- candidates */

typedef struct candidate {
    uint64_t hash, count;
    uint32_t n;
    char text[TEXT_MOST];
} candidate;

typedef struct candidates {
    candidate *at; /* 2 * kept */
    size_t count, kept;
    rbt_map where; /* hash -> place */
    uint64_t *scratch;
} candidates;

/* Of n numbers, which are reordered, the one that would be at place k in descending order. */
static uint64_t at_rank(uint64_t *at, size_t n, size_t k)
{
    size_t low = 0, high = n;

    for (;;) {
        uint64_t pivot = at[low + (high - low) / 2];
        size_t more = low, less = high; /* before `more` are larger ones, from `less` on smaller ones */

        for (size_t i = low; i < less;) {
            uint64_t x = at[i];

            if (x > pivot) {
                at[i++] = at[more];
                at[more++] = x;
            } else if (x < pivot) {
                at[i] = at[--less];
                at[less] = x;
            } else {
                i++;
            }
        }
        if (k >= more && k < less)
            return pivot;
        low = k < more ? low : less;
        high = k < more ? more : high;
    }
}

/* Takes the count of the first one too many from all; who has nothing left goes. */
static void candidates_thin(candidates *c)
{
    size_t left = 0;
    uint64_t least;

    for (size_t i = 0; i < c->count; i++)
        c->scratch[i] = c->at[i].count;
    least = at_rank(c->scratch, c->count, c->kept);
    rbt_map_deinit(&c->where);
    for (size_t i = 0; i < c->count; i++) {
        bool is_new;

        if (c->at[i].count <= least)
            continue;
        c->at[left] = c->at[i];
        c->at[left].count -= least;
        *rbt_map_put(&c->where, c->at[left].hash, &is_new) = left;
        left++;
    }
    c->count = left;
}

static void candidates_add(candidates *c, const rbt_event_key *key)
{
    uint64_t *found = rbt_map_get(&c->where, key->hash);
    bool is_new;

    if (found != NULL) {
        c->at[*found].count++;
        return;
    }
    if (c->count == 2 * c->kept)
        candidates_thin(c);
    *rbt_map_put(&c->where, key->hash, &is_new) = c->count;
    c->at[c->count] = (candidate){key->hash, 1, (uint32_t)(key->n < TEXT_MOST ? key->n : TEXT_MOST), {0}};
    memcpy(c->at[c->count].text, key->text, c->at[c->count].n);
    c->count++;
}

/* ---------------------------------------------------------------------------------------------------------- work */

static rbt_err sketch_plan(rbt_plan *plan, rbt_error *error)
{
    sketch_state *s = plan->state = rbt_alloc(1, sizeof *s);
    struct stat status;
    rbt_err err;

    s->width = (size_t)rbt_plan_option(plan, "width");
    s->depth = (size_t)rbt_plan_option(plan, "depth");
    s->top = (size_t)rbt_plan_option(plan, "top");
    s->events = (rbt_events_options){.column = (size_t)rbt_plan_option(plan, "column"),
                                     .separator = separators[(size_t)rbt_plan_option(plan, "separator")],
                                     .skip_bad = plan->skip_bad};
    if (plan->path == NULL)
        return rbt_fail(error, RBT_E_USAGE, "sketch counts the keys of a file or pipe; give --data PATH");
    s->is_pipe = strcmp(plan->path, "-") == 0 || (stat(plan->path, &status) == 0 && !S_ISREG(status.st_mode));
    err = rbt_plan_table(plan, &(rbt_table_spec){.name = "counts", .rows = s->depth, .cols = s->width, .type = RBT_I64},
                         &s->counts, error);
    if (err == RBT_OK)
        err = rbt_plan_table(plan,
                             &(rbt_table_spec){.name = "heavy",
                                               .rows = plan->workers,
                                               .cols = candidates_end(s->top) + REPORT,
                                               .type = RBT_F32,
                                               .sparse = true},
                             &s->heavy, error);
    return err;
}

static void sketch_end(rbt_plan *plan)
{
    rbt_free(plan->state);
}

/* What a worker has at hand. */
typedef struct counter {
    rbt_events *events;
    rbt_event_key keys[CHUNK];
    uint64_t cols[CHUNK];
    int64_t ones[CHUNK];
    candidates best;
} counter;

/* Counts the keys of one chunk. */
static rbt_err count_keys(rbt_worker *worker, const sketch_state *s, counter *c, const rbt_event_key *keys, size_t n,
                          rbt_error *error)
{
    rbt_err err = RBT_OK;

    for (size_t row = 0; err == RBT_OK && row < s->depth; row++) {
        for (size_t i = 0; i < n; i++)
            c->cols[i] = place(keys[i].hash, row, s->width);
        err = rbt_inc_keys(worker, s->counts, row, c->cols, n, c->ones, error);
    }
    for (size_t i = 0; i < n; i++)
        candidates_add(&c->best, &keys[i]);
    return err;
}

/* Goes on reading until there are so many events, or no more. */
static rbt_err count_events(rbt_worker *worker, const sketch_state *s, counter *c, uint64_t wanted, bool *more,
                            rbt_error *error)
{
    uint64_t counted = 0;
    rbt_err err = RBT_OK;

    while (err == RBT_OK && *more && counted < wanted) {
        size_t room = (size_t)(wanted - counted < CHUNK ? wanted - counted : CHUNK), n;

        err = rbt_events_next(c->events, c->keys, room, &n, error);
        *more = err == RBT_OK && n > 0;
        if (*more)
            err = count_keys(worker, s, c, c->keys, n, error);
        counted += *more ? n : 0;
    }
    rbt_worker_did(worker, counted, counted * s->depth);
    return err;
}

static rbt_err send_candidates(rbt_worker *worker, const sketch_state *s, const candidates *best, rbt_error *error)
{
    rbt_err err = RBT_OK;

    for (size_t k = 0; err == RBT_OK && k < best->count; k++) {
        const candidate *c = &best->at[k];
        const unsigned char *text = (const unsigned char *)c->text;
        uint64_t cols[SLOT];
        float values[SLOT];
        size_t n = SLOT_TEXT + (c->n + 1) / 2;

        for (size_t i = 0; i < n; i++)
            cols[i] = k * SLOT + i;
        put_number(c->hash, values + SLOT_HASH);
        values[SLOT_LENGTH] = (float)c->n;
        for (size_t i = 0; i < (c->n + 1) / 2; i++) /* the byte after an odd one is 0, or not the key's */
            values[SLOT_TEXT + i] = (float)(text[2 * i] + 256 * text[2 * i + 1]);
        err = rbt_inc_keys(worker, s->heavy, rbt_worker_id(worker), cols, n, values, error);
    }
    return err;
}

static rbt_err send_report(rbt_worker *worker, const sketch_state *s, const rbt_events *events, rbt_error *error)
{
    rbt_read_report report;
    uint64_t cols[REPORT];
    float values[REPORT];

    rbt_events_report(events, &report);
    put_number(report.skipped, values + LEFT_OUT);
    put_number(rbt_events_total(events), values + BYTES);
    values[STOPPED] = rbt_worker_is_interrupted(worker);
    for (size_t i = 0; i < REPORT; i++)
        cols[i] = candidates_end(s->top) + i;
    return rbt_inc_keys(worker, s->heavy, rbt_worker_id(worker), cols, REPORT, values, error);
}

static bool is_interrupted(const void *worker)
{
    return rbt_worker_is_interrupted(worker);
}

static rbt_err sketch_work(rbt_worker *worker, rbt_plan *plan, rbt_error *error)
{
    const sketch_state *s = plan->state;
    uint64_t wanted = (uint64_t)rbt_plan_option(plan, "events-per-clock");
    counter *c = rbt_alloc(1, sizeof *c);
    bool more = !s->is_pipe || rbt_worker_id(worker) == 0;
    rbt_events_options options = s->events;
    rbt_err err;

    options.part = rbt_worker_id(worker);
    options.parts = s->is_pipe ? 1 : rbt_worker_count(worker);
    options.stop = is_interrupted;
    options.context = worker;
    err = rbt_events_open(plan->path, &options, &c->events, error);
    c->best.kept = KEPT_PER_TOP * s->top;
    c->best.at = rbt_alloc(2 * c->best.kept, sizeof *c->best.at);
    c->best.scratch = rbt_alloc(2 * c->best.kept, sizeof *c->best.scratch);
    for (size_t i = 0; i < CHUNK; i++)
        c->ones[i] = 1;
    while (err == RBT_OK && more && !rbt_worker_should_stop(worker)) {
        err = count_events(worker, s, c, wanted, &more, error);
        if (err == RBT_OK && more)
            err = rbt_clock(worker, error);
    }
    if (err == RBT_OK)
        err = send_candidates(worker, s, &c->best, error);
    if (err == RBT_OK)
        err = send_report(worker, s, c->events, error);
    if (err == RBT_OK)
        err = rbt_clock(worker, error);
    rbt_events_close(c->events);
    rbt_map_deinit(&c->best.where);
    rbt_free(c->best.at);
    rbt_free(c->best.scratch);
    rbt_free(c);
    return err;
}

/* -------------------------------------------------------------------------------------------------------- fitted */

static int64_t estimate(const rbt_values *counts, uint64_t hash)
{
    int64_t least = INT64_MAX;

    for (uint64_t row = 0; row < counts->rows; row++) {
        int64_t count = ((const int64_t *)counts->at)[row * counts->cols + place(hash, row, counts->cols)];

        least = count < least ? count : least;
    }
    return least;
}

/* The candidates of all workers, in `at`, which has room for them; of each key one. `count` becomes its estimate. */
static rbt_err read_candidates(const rbt_plan *plan, const rbt_values *counts, candidate *at, size_t *n,
                               rbt_error *error)
{
    const sketch_state *s = plan->state;
    rbt_map seen = {0};
    rbt_err err = RBT_OK;

    for (uint32_t m = 0; err == RBT_OK && m < plan->workers; m++)
        for (uint64_t k = 0; err == RBT_OK && k < 2 * KEPT_PER_TOP * s->top; k++) {
            candidate *c = &at[*n];
            float values[SLOT];
            bool is_new;

            err = rbt_plan_read(plan, s->heavy, m, k * SLOT, SLOT, values, error);
            if (err != RBT_OK || values[SLOT_LENGTH] == 0)
                break;
            *c = (candidate){.n = (uint32_t)values[SLOT_LENGTH], .hash = get_number(values + SLOT_HASH)};
            for (size_t i = 0; i < TEXT_MOST; i++)
                c->text[i] = (char)((uint32_t)values[SLOT_TEXT + i / 2] >> 8 * (i % 2) & 0xff);
            c->count = (uint64_t)estimate(counts, c->hash);
            (void)rbt_map_put(&seen, c->hash, &is_new);
            *n += is_new;
        }
    rbt_map_deinit(&seen);
    return err;
}

/* Most frequent first; equal ones by name. */
static int compare_candidates(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    int order = memcmp(x->text, y->text, TEXT_MOST);

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return order != 0 ? order : (x->hash > y->hash) - (x->hash < y->hash);
}

static rbt_err keep_heavy(const rbt_plan *plan, const rbt_values *counts, rbt_fitted *fitted, rbt_error *error)
{
    const sketch_state *s = plan->state;
    size_t n = 0, listed;
    candidate *at = rbt_try_alloc(2 * KEPT_PER_TOP * s->top * plan->workers + 1, sizeof *at);
    int64_t *estimates;
    char(*names)[TEXT_MOST + 4] = rbt_alloc(s->top, sizeof *names);
    const char **list = rbt_alloc(s->top, sizeof *list);
    rbt_err err =
        at != NULL ? read_candidates(plan, counts, at, &n, error)
                   : rbt_fail(error, RBT_E_MEMORY, "not enough memory for the candidates of %u workers", plan->workers);

    if (err == RBT_OK && at != NULL) {
        qsort(at, n, sizeof *at, compare_candidates);
        listed = n < s->top ? n : s->top;
        estimates = rbt_fitted_add(fitted, "heavy", RBT_I64, 1, listed);
        for (size_t i = 0; estimates != NULL && i < listed; i++) {
            estimates[i] = (int64_t)at[i].count;
            snprintf(names[i], sizeof names[i], "%.*s%s", TEXT_MOST, at[i].text, at[i].n == TEXT_MOST ? "..." : "");
            list[i] = names[i];
        }
        if (estimates != NULL)
            rbt_fitted_add_names(fitted, "heavy_names", listed, list);
        else
            err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu keys", listed);
    }
    rbt_free(at);
    rbt_free(names);
    rbt_free(list);
    return err;
}

/* What workers have left out in all: not more than was allowed. And they have had parts of the same files, of which somebody must have
 * counted something. */
static rbt_err check_reports(const rbt_plan *plan, int64_t events, uint64_t *left_out, rbt_error *error)
{
    const sketch_state *s = plan->state;
    uint64_t bytes = 0;
    bool is_stopped = false;

    *left_out = 0;
    for (uint32_t m = 0; m < plan->workers; m++) {
        float values[REPORT];
        uint64_t seen;
        rbt_err err = rbt_plan_read(plan, s->heavy, m, candidates_end(s->top), REPORT, values, error);

        if (err != RBT_OK)
            return err;
        *left_out += get_number(values + LEFT_OUT);
        is_stopped = is_stopped || values[STOPPED] != 0;
        seen = get_number(values + BYTES);
        if (seen > 0 && bytes > 0 && seen != bytes) /* 0: it was lost, and said nothing */
            return rbt_fail(error, RBT_E_DATA,
                            "%s: has %llu bytes for worker %u and %llu for another one, so they have counted parts of "
                            "different files; give all hosts the same",
                            plan->path, (unsigned long long)seen, m, (unsigned long long)bytes);
        bytes = seen > 0 ? seen : bytes;
    }
    if (*left_out > plan->skip_bad)
        return rbt_fail(error, RBT_E_DATA, "%s: %llu lines have no key in column %zu, and --skip-bad allows %llu",
                        plan->path, (unsigned long long)*left_out, s->events.column,
                        (unsigned long long)plan->skip_bad);
    if (events == 0 && !is_stopped)
        return rbt_fail(error, RBT_E_DATA, "%s: has no events, which are lines with a key", plan->path);
    return RBT_OK;
}

static rbt_err sketch_keep(const rbt_plan *plan, rbt_fitted *fitted, rbt_error *error)
{
    const sketch_state *s = plan->state;
    int64_t *counts = rbt_fitted_add(fitted, "counts", RBT_I64, s->depth, s->width), events = 0;
    uint64_t left_out = 0;
    rbt_err err = counts != NULL
                      ? RBT_OK
                      : rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu x %zu counts", s->depth, s->width);

    for (size_t row = 0; err == RBT_OK && row < s->depth; row++)
        err = rbt_plan_read(plan, s->counts, row, 0, s->width, counts + row * s->width, error);
    for (size_t i = 0; err == RBT_OK && counts != NULL && i < s->width; i++)
        events += counts[i];
    if (err == RBT_OK)
        err = check_reports(plan, events, &left_out, error);
    if (err != RBT_OK || counts == NULL)
        return err;
    rbt_fitted_set(fitted, "events", (double)events);
    if (left_out > 0)
        rbt_fitted_set(fitted, "left_out", (double)left_out);
    rbt_fitted_set(fitted, "column", (double)s->events.column);
    rbt_fitted_set(fitted, "separator", s->events.separator);
    return keep_heavy(plan, rbt_fitted_values(fitted, "counts"), fitted, error);
}

static rbt_err sketch_open(const rbt_fitted *fitted, rbt_error *error)
{
    const rbt_values *counts = rbt_fitted_values(fitted, "counts"), *heavy = rbt_fitted_values(fitted, "heavy");
    const rbt_name_list *names = rbt_fitted_names(fitted, "heavy_names");
    double column = rbt_fitted_number(fitted, "column"), separator = rbt_fitted_number(fitted, "separator");

    if (counts == NULL || heavy == NULL || names == NULL || counts->type != RBT_I64 || heavy->type != RBT_I64 ||
        counts->rows == 0 || counts->cols == 0 || counts->cols > UINT32_MAX || heavy->rows * heavy->cols != names->n ||
        !(column >= 0 && column < 1e9) || !(separator >= 0 && separator < 128) ||
        isnan(rbt_fitted_number(fitted, "events")))
        return rbt_fail(error, RBT_E_DATA, "the model file does not hold a sketch's counts; train it again");
    return RBT_OK;
}

static rbt_err sketch_answer(const rbt_fitted *fitted, const char *line, size_t n, FILE *out, rbt_error *error)
{
    (void)error; /* an empty line has no key, so none has been counted */
    fprintf(out, "%lld\n",
            n > 0 ? (long long)estimate(rbt_fitted_values(fitted, "counts"), rbt_hash(line, n, 0)) : 0LL);
    return RBT_OK;
}

/* What an estimate exceeds with a probability of at most e^-depth, above the true count. */
static double bound(const rbt_fitted *fitted)
{
    return exp(1) * rbt_fitted_number(fitted, "events") / (double)rbt_fitted_values(fitted, "counts")->cols;
}

/* The exact counts of a file's keys, by hash. */
static rbt_err count_exactly(const rbt_fitted *fitted, const char *path, rbt_map *exact, uint64_t *total,
                             rbt_error *error)
{
    rbt_events_options options = {.column = (size_t)rbt_fitted_number(fitted, "column"),
                                  .separator = (char)rbt_fitted_number(fitted, "separator")};
    rbt_event_key *keys = rbt_alloc(CHUNK, sizeof *keys);
    rbt_events *events = NULL;
    rbt_err err = rbt_events_open(path, &options, &events, error);
    size_t n = err == RBT_OK;

    while (err == RBT_OK && n > 0) {
        err = rbt_events_next(events, keys, CHUNK, &n, error);
        for (size_t i = 0; err == RBT_OK && i < n; i++) {
            bool is_new;

            ++*rbt_map_put(exact, keys[i].hash, &is_new);
            ++*total;
        }
    }
    rbt_events_close(events);
    rbt_free(keys);
    return err;
}

static rbt_err sketch_measure(const rbt_fitted *fitted, const char *path, rbt_figure *figures, size_t *n,
                              rbt_error *error)
{
    const rbt_values *counts = rbt_fitted_values(fitted, "counts");
    double sum = 0, largest = 0, limit = bound(fitted);
    uint64_t total = 0, hash, count, within = 0;
    rbt_map exact = {0};
    size_t cursor = 0;
    rbt_err err = count_exactly(fitted, path, &exact, &total, error);

    while (err == RBT_OK && rbt_map_next(&exact, &cursor, &hash, &count)) {
        double over = (double)estimate(counts, hash) - (double)count;

        sum += over;
        largest = over > largest ? over : largest;
        within += over <= limit;
    }
    if (err == RBT_OK && total == 0)
        err = rbt_fail(error, RBT_E_DATA, "%s: has no events, which are lines with a key", path);
    if (err == RBT_OK) {
        double keys = (double)exact.count;

        figures[0] = (rbt_figure){"overcount", sum / keys};
        figures[1] = (rbt_figure){"largest", largest};
        figures[2] = (rbt_figure){"bound", limit};
        figures[3] = (rbt_figure){"within_bound", (double)within / keys};
        figures[4] = (rbt_figure){"keys", keys};
        figures[5] = (rbt_figure){"events", (double)total};
        *n = 6;
    }
    rbt_map_deinit(&exact);
    return err;
}

static void sketch_describe(const rbt_fitted *fitted, FILE *out)
{
    const rbt_values *counts = rbt_fitted_values(fitted, "counts"), *heavy = rbt_fitted_values(fitted, "heavy");
    const rbt_name_list *names = rbt_fitted_names(fitted, "heavy_names");

    fprintf(out, "estimates   never too low; more than %.6g too high with a probability of at most %.2g\n",
            bound(fitted), exp(-(double)counts->rows));
    for (size_t i = 0; i < names->n; i++)
        fprintf(out, "%-13s %lld %s\n", i == 0 ? "most frequent" : "", (long long)((const int64_t *)heavy->at)[i],
                names->at[i]);
}

const rbt_method rbt_method_sketch = {.name = "sketch",
                                      .about = "how often keys occur, and which most: count-min",
                                      .reads_itself = true,
                                      .options = sketch_options,
                                      .unheeded = "lr decay l1 l2 batch epochs valid",
                                      .keeps_state = true,
                                      .needs_sums = true,
                                      .unfiltered = "its counts must add up to the events in every clock",
                                      .plan = sketch_plan,
                                      .work = sketch_work,
                                      .keep = sketch_keep,
                                      .end = sketch_end,
                                      .open = sketch_open,
                                      .answer = sketch_answer,
                                      .measure = sketch_measure,
                                      .describe = sketch_describe};

/* Who is slow; the contract is in straggler.h.
 *
 * A share is kept as the first of the slow workers, so that asking is one comparison. A trace is a head (with the
 * number of its lines in `clock`) followed by its lines, sorted by worker and clock, so that asking is a binary search.
 * Chances and log-normal factors are drawn anew for every question from a stream named by (worker, clock, place in the
 * list). */
#include "runtime/straggler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/rng.h"
#include "data/file.h"
#include "math/functions.h"
#include "runtime/spec.h"

#define SIGMA_MAX 10.0 /* exp(10) is far beyond any machine that is still called slow */
#define CLOCK_MAX 1e15
#define FIELDS    3 /* of a line of a trace */

/* --------------------------------------------------------------------------------------------------- traces */

typedef struct field {
    const char *at;
    size_t bytes;
} field;

static int shown(field f)
{
    return f.bytes > 40 ? 40 : (int)f.bytes;
}

/* A number that is the whole field, from least to most. */
static bool field_number(field f, double least, double most, double *value)
{
    return rbt_spec_number(f.at, f.at + f.bytes, value) == f.at + f.bytes && *value >= least && *value <= most;
}

static rbt_err parse_fields(const char *name, size_t line, const field f[FIELDS], uint32_t workers,
                            rbt_straggler *entry, rbt_error *error)
{
    double worker = 0, clock = 0, factor = 0;

    if (!field_number(f[0], 0, (double)workers - 1, &worker) || worker != floor(worker))
        return rbt_fail(error, RBT_E_DATA, "%s:%zu: worker '%.*s' is not one of the job's workers, 0 to %u", name, line,
                        shown(f[0]), f[0].at, workers - 1);
    if (!field_number(f[1], 0, CLOCK_MAX, &clock) || clock != floor(clock))
        return rbt_fail(error, RBT_E_DATA, "%s:%zu: clock '%.*s' is not a whole number from 0 to %g", name, line,
                        shown(f[1]), f[1].at, CLOCK_MAX);
    if (!field_number(f[2], 1, RBT_SLOW_MAX, &factor))
        return rbt_fail(error, RBT_E_DATA, "%s:%zu: factor '%.*s' is not a number from 1 (not slow) to %g", name, line,
                        shown(f[2]), f[2].at, RBT_SLOW_MAX);
    *entry = (rbt_straggler){.kind = RBT_SLOW_TRACE,
                             .amount = (double)line,
                             .worker = (uint32_t)worker,
                             .clock = (uint64_t)clock,
                             .factor = factor};
    return RBT_OK;
}

/* Cuts a line into its words, up to a comment; returns how many there are, also those that found no place. */
static size_t cut_line(const char *at, const char *end, field f[FIELDS])
{
    const char *comment = memchr(at, '#', (size_t)(end - at));
    size_t count = 0;

    if (comment != NULL)
        end = comment;
    for (;;) {
        const char *start;

        while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
            at++;
        if (at == end)
            return count;
        start = at;
        while (at < end && *at != ' ' && *at != '\t' && *at != '\r')
            at++;
        if (count < FIELDS)
            f[count] = (field){start, (size_t)(at - start)};
        count++;
    }
}

static int compare_entries(const void *a, const void *b)
{
    const rbt_straggler *x = a, *y = b;

    if (x->worker != y->worker)
        return x->worker < y->worker ? -1 : 1;
    if (x->clock != y->clock)
        return x->clock < y->clock ? -1 : 1;
    return x->amount < y->amount ? -1 : x->amount > y->amount; /* lines, so that the later one is blamed */
}

static rbt_err parse_lines(rbt_stragglers *s, const rbt_input *input, rbt_error *error)
{
    const char *at = input->bytes, *end = input->bytes + input->n;

    for (size_t line = 1; at < end; line++) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        const char *stop = feed != NULL ? feed : end;
        field f[FIELDS] = {{0}};
        size_t count = cut_line(at, stop, f);
        rbt_straggler entry = {0};
        rbt_err err = RBT_OK;

        at = feed != NULL ? feed + 1 : end;
        if (count == 0)
            continue;
        if (count != FIELDS)
            return rbt_fail(error, RBT_E_DATA,
                            "%s:%zu: %zu words where 'worker clock factor' is expected; write for example '3 10 2.5'",
                            input->name, line, count);
        err = parse_fields(input->name, line, f, s->workers, &entry, error);
        if (err != RBT_OK)
            return err;
        rbt_array_push(&s->list, entry);
    }
    return RBT_OK;
}

static rbt_err add_trace(rbt_stragglers *s, const char *path, rbt_error *error)
{
    size_t head = s->list.count, lines;
    rbt_straggler *first;
    rbt_input input;
    rbt_err err = rbt_input_open(path, &input, error);

    if (err != RBT_OK)
        return err;
    rbt_array_push(&s->list, ((rbt_straggler){.kind = RBT_SLOW_TRACE}));
    err = parse_lines(s, &input, error);
    lines = s->list.count - head - 1;
    if (err == RBT_OK && lines == 0)
        err = rbt_fail(error, RBT_E_DATA, "%s: no lines; write 'worker clock factor', for example '3 10 2.5'",
                       input.name);
    if (err != RBT_OK)
        goto close;
    first = &s->list.at[head + 1];
    qsort(first, lines, sizeof *first, compare_entries);
    s->list.at[head].clock = lines;
    for (size_t i = 1; err == RBT_OK && i < lines; i++)
        if (first[i].worker == first[i - 1].worker && first[i].clock == first[i - 1].clock)
            err = rbt_fail(error, RBT_E_DATA, "%s:%.0f: worker %u at clock %llu was given in line %.0f; give it once",
                           input.name, first[i].amount, first[i].worker, (unsigned long long)first[i].clock,
                           first[i - 1].amount);
close:
    rbt_input_close(&input);
    return err;
}

/* ---------------------------------------------------------------------------------------------------- specs */

enum { FRAC, P, WORKER, LOGNORMAL, TRACE, SLOW, KEYS };

/* Exactly one way of being slow, and `slow` with those that need it. */
static rbt_err check_keys(const rbt_spec_key keys[KEYS], int *way, rbt_error *error)
{
    int found = -1;

    for (int i = FRAC; i < SLOW; i++)
        if (keys[i].given && found >= 0)
            return rbt_fail(error, RBT_E_USAGE,
                            "--straggler: %s and %s stand in one part; put a ';' between them: %s;%s", keys[found].name,
                            keys[i].name, keys[found].example, keys[i].example);
        else if (keys[i].given)
            found = i;
    if (found < 0)
        return rbt_fail(
            error, RBT_E_USAGE,
            "--straggler: slow does not say who is slow; add frac, p or worker, for example frac=0.2,slow=2");
    if (found < LOGNORMAL && !keys[SLOW].given)
        return rbt_fail(error, RBT_E_USAGE, "--straggler: %s needs slow, the factor; give for example %s",
                        keys[found].name, keys[found].example);
    if (found >= LOGNORMAL && keys[SLOW].given)
        return rbt_fail(error, RBT_E_USAGE, "--straggler: %s brings its own factors; leave slow out: %s",
                        keys[found].name, keys[found].example);
    *way = found;
    return RBT_OK;
}

/* The last round(share * workers) workers, and at least one when the share is not 0. */
static uint32_t first_of_share(double share, uint32_t workers)
{
    uint32_t slow = (uint32_t)floor(share * workers + 0.5);

    if (slow == 0 && share > 0)
        slow = 1;
    return workers - slow;
}

static rbt_err add_part(rbt_stragglers *s, const char *text, size_t n, rbt_error *error)
{
    rbt_spec_key keys[KEYS] = {
        [FRAC] = {.name = "frac", .kind = RBT_SPEC_CHANCE, .most = 1, .example = "frac=0.2,slow=2"},
        [P] = {.name = "p", .kind = RBT_SPEC_CHANCE, .most = 1, .example = "p=0.0625,slow=6"},
        [WORKER] = {.name = "worker", .kind = RBT_SPEC_COUNT, .most = s->workers - 1.0, .example = "worker=0,slow=4"},
        [LOGNORMAL] = {.name = "lognormal", .most = SIGMA_MAX, .example = "lognormal=0.5"},
        [TRACE] = {.name = "trace", .kind = RBT_SPEC_TEXT, .example = "trace=slow.txt"},
        [SLOW] = {.name = "slow", .least = 1, .most = RBT_SLOW_MAX, .example = "frac=0.2,slow=2"},
    };
    rbt_straggler entry = {.factor = 1};
    int way = 0;
    rbt_err err = rbt_spec_parse("--straggler", text, n, keys, KEYS, error);

    if (err == RBT_OK)
        err = check_keys(keys, &way, error);
    if (err != RBT_OK)
        return err;
    if (way == TRACE) {
        char *path = rbt_alloc(keys[TRACE].text_bytes + 1, 1);

        memcpy(path, keys[TRACE].text, keys[TRACE].text_bytes);
        err = add_trace(s, path, error);
        rbt_free(path);
        return err;
    }
    entry.kind = way == FRAC     ? RBT_SLOW_SHARE
                 : way == P      ? RBT_SLOW_CHANCE
                 : way == WORKER ? RBT_SLOW_ONE
                                 : RBT_SLOW_LOGNORMAL;
    entry.amount = keys[way].number;
    entry.worker =
        way == WORKER ? (uint32_t)keys[WORKER].number : first_of_share(way == FRAC ? entry.amount : 0, s->workers);
    if (keys[SLOW].given)
        entry.factor = keys[SLOW].number;
    rbt_array_push(&s->list, entry);
    return RBT_OK;
}

rbt_err rbt_stragglers_init(rbt_stragglers *stragglers, const char *spec, uint32_t workers, uint64_t seed,
                            rbt_error *error)
{
    const char *end;

    RBT_ASSERT(workers > 0);
    *stragglers = (rbt_stragglers){.seed = seed, .workers = workers};
    if (spec == NULL)
        return RBT_OK;
    end = spec + strlen(spec);
    for (;;) {
        const char *next = memchr(spec, ';', (size_t)(end - spec));
        const char *stop = next != NULL ? next : end;
        rbt_err err = add_part(stragglers, spec, (size_t)(stop - spec), error);

        if (err != RBT_OK) {
            rbt_stragglers_deinit(stragglers);
            return err;
        }
        if (next == NULL)
            return RBT_OK;
        spec = next + 1;
    }
}

void rbt_stragglers_deinit(rbt_stragglers *stragglers)
{
    rbt_array_free(&stragglers->list);
}

/* ---------------------------------------------------------------------------------------------------- asking */

/* The last line at or before (worker, clock), if it is the worker's. */
static double trace_factor(const rbt_straggler *line, size_t lines, uint32_t worker, uint64_t clock)
{
    size_t low = 0, high = lines;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const rbt_straggler *m = &line[middle];

        if (m->worker < worker || (m->worker == worker && m->clock <= clock))
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && line[low - 1].worker == worker ? line[low - 1].factor : 1;
}

static double drawn_factor(const rbt_stragglers *s, size_t place, uint32_t worker, uint64_t clock)
{
    const rbt_straggler *entry = &s->list.at[place];
    uint64_t index = rbt_hash_mix(rbt_hash_mix(worker, clock), place);
    rbt_rng rng = rbt_rng_stream(s->seed, RBT_STREAM_STRAGGLER, index);

    if (entry->kind == RBT_SLOW_CHANCE)
        return rbt_rng_f64(&rng) < entry->amount ? entry->factor : 1;
    return fmax(rbt_exp(entry->amount * rbt_rng_normal(&rng)), 1);
}

double rbt_stragglers_factor(const rbt_stragglers *stragglers, uint32_t worker, uint64_t clock)
{
    double factor = 1;

    for (size_t i = 0; stragglers != NULL && i < stragglers->list.count; i++) {
        const rbt_straggler *entry = &stragglers->list.at[i];

        switch (entry->kind) {
        case RBT_SLOW_SHARE:
            factor *= worker >= entry->worker ? entry->factor : 1;
            break;
        case RBT_SLOW_ONE:
            factor *= worker == entry->worker ? entry->factor : 1;
            break;
        case RBT_SLOW_CHANCE:
        case RBT_SLOW_LOGNORMAL:
            factor *= drawn_factor(stragglers, i, worker, clock);
            break;
        case RBT_SLOW_TRACE:
            factor *= trace_factor(entry + 1, (size_t)entry->clock, worker, clock);
            i += (size_t)entry->clock;
            break;
        }
    }
    return fmin(factor, RBT_SLOW_MAX);
}

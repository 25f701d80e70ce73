/* Rows dealt out to processes. Contract in deal.h; proved by tests/unit/test_deal_parallel.c.
 *
 * A place is a row's number in the order of all shards, one after the other. What goes from one process to another are
 * the rows of the one that have places of the other, in the order of places: both can work that out, so rows carry no
 * numbers. First their lengths are sent, so that each has its place in memory, then they themselves.
 */
#include "data/deal.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/ids.h"

typedef struct dealing {
    rbt_crew *crew;
    const rbt_data *from; /* the rows of the part */
    rbt_data to;          /* the rows of the workers here */
    uint32_t *order;      /* which row has a place */
    size_t *first_row;    /* of each process's part, and of none behind the last */
    size_t *first_place;  /* of each process's workers, likewise */
    bool weighted;
    size_t limit;   /* bytes to one other process in a round */
    size_t *sent;   /* per other process: all of its places before this one have been dealt with */
    rbt_ids *users; /* ratings: of all rows */
    size_t *got;    /* per other process: all places here before this one have been filled from it */
} dealing;

/* How a row is sent: how many bytes it takes, writing it, and reading it to the place. */
typedef struct way {
    size_t (*bytes)(const dealing *d, const rbt_data *data, size_t row);
    void (*put)(const dealing *d, size_t row, uint8_t *out);
    void (*take)(dealing *d, size_t row, const uint8_t *in);
} way;

/* ------------------------------------------------------------------------------------------------------- two ways */

static size_t features_of(const rbt_data *data, size_t row)
{
    return data->start[row + 1] - data->start[row];
}

static size_t length_bytes(const dealing *d, const rbt_data *data, size_t row)
{
    (void)d;
    (void)data;
    (void)row;
    return sizeof(uint32_t);
}

static void put_length(const dealing *d, size_t row, uint8_t *out)
{
    uint32_t n = (uint32_t)features_of(d->from, row);
    memcpy(out, &n, sizeof n);
}

static void take_length(dealing *d, size_t row, const uint8_t *in)
{
    uint32_t n;
    memcpy(&n, in, sizeof n);
    d->to.start[row + 1] = n;
}

static size_t row_bytes(const dealing *d, const rbt_data *data, size_t row)
{
    return (1 + d->weighted) * sizeof(float) + features_of(data, row) * (sizeof(uint32_t) + sizeof(float));
}

static void put_row(const dealing *d, size_t row, uint8_t *out)
{
    size_t at = d->from->start[row], n = features_of(d->from, row);
    memcpy(out, &d->from->label[row], sizeof(float));
    out += sizeof(float);
    if (d->weighted) {
        memcpy(out, &d->from->weight[row], sizeof(float));
        out += sizeof(float);
    }
    memcpy(out, d->from->index + at, n * sizeof(uint32_t));
    memcpy(out + n * sizeof(uint32_t), d->from->value + at, n * sizeof(float));
}

static void take_row(dealing *d, size_t row, const uint8_t *in)
{
    size_t at = d->to.start[row], n = features_of(&d->to, row);
    memcpy(&d->to.label[row], in, sizeof(float));
    in += sizeof(float);
    if (d->weighted) {
        memcpy(&d->to.weight[row], in, sizeof(float));
        in += sizeof(float);
    }
    memcpy(d->to.index + at, in, n * sizeof(uint32_t));
    memcpy(d->to.value + at, in + n * sizeof(uint32_t), n * sizeof(float));
}

static const way lengths = {length_bytes, put_length, take_length};
static const way rows = {row_bytes, put_row, take_row};

/* --------------------------------------------------------------------------------------------------------- rounds */

/* The first place from `at` on, before the end of `holder`'s places, that a row of `owner`'s part has. */
static size_t next_place(const dealing *d, uint32_t holder, uint32_t owner, size_t at)
{
    size_t end = d->first_place[holder + 1], low = d->first_row[owner], high = d->first_row[owner + 1];
    while (at < end && (d->order[at] < low || d->order[at] >= high))
        at++;
    return at;
}

/* The next rows for a process, as many as a round takes, and room for a byte behind them. */
static rbt_err pack(dealing *d, const way *w, uint32_t to, rbt_bytes *out, bool *more, rbt_error *error)
{
    uint32_t me = d->crew->rank;
    size_t end = d->first_place[to + 1], at = next_place(d, to, me, d->sent[to]), n = 0, stop = at;
    while (stop < end) {
        size_t bytes = w->bytes(d, d->from, d->order[stop] - d->first_row[me]);
        if (n > 0 && n + bytes > d->limit)
            break;
        n += bytes;
        stop = next_place(d, to, me, stop + 1);
    }
    out->n = n + 1;
    out->at = rbt_try_alloc_raw(out->n, 1);
    if (out->at == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory to send %zu bytes of rows; use a larger machine", n);
    for (n = 0; at < stop; at = next_place(d, to, me, at + 1)) {
        size_t row = d->order[at] - d->first_row[me];
        w->put(d, row, out->at + n);
        n += w->bytes(d, d->from, row);
    }
    d->sent[to] = stop;
    *more |= stop < end;
    return RBT_OK;
}

static rbt_err unpack(dealing *d, const way *w, uint32_t from, rbt_bytes in, rbt_error *error)
{
    uint32_t me = d->crew->rank;
    size_t at = d->got[from], left = in.n > 0 ? in.n - 1 : 0, end = d->first_place[me + 1];
    for (const uint8_t *bytes = in.at; left > 0;) {
        at = next_place(d, me, from, at);
        size_t row = at - d->first_place[me], n = at < end ? w->bytes(d, &d->to, row) : SIZE_MAX;
        if (n > left)
            return rbt_fail(error, RBT_E_BROKEN, "process %u sent %zu bytes that are no rows of workers here", from,
                            left);
        w->take(d, row, bytes);
        bytes += n;
        left -= n;
        at++;
    }
    d->got[from] = at;
    return RBT_OK;
}

/* Everything goes where it belongs. */
static rbt_err exchange(dealing *d, const way *w, rbt_err err, rbt_error *error)
{
    uint32_t size = d->crew->size;
    rbt_bytes *out = rbt_alloc(size, sizeof *out), *in = rbt_alloc(size, sizeof *in);
    bool more = true;
    RBT_ASSERT(err != RBT_OK || d->order != NULL);
    for (uint32_t q = 0; q < size; q++) {
        d->sent[q] = d->first_place[q];
        d->got[q] = d->first_place[d->crew->rank];
    }
    while (more) {
        more = false;
        for (uint32_t q = 0; err == RBT_OK && q < size; q++)
            err = pack(d, w, q, &out[q], &more, error);
        for (uint32_t q = 0; err == RBT_OK && q < size; q++)
            out[q].at[out[q].n - 1] = more; /* for anybody: all end with the same round */
        err = rbt_crew_swap(d->crew, err, out, in, error);
        rbt_crew_free(d->crew, out);
        if (err != RBT_OK)
            break;
        RBT_ASSERT(d->order != NULL); /* what fails before is everybody's failure */
        more = false;
        for (uint32_t q = 0; q < size; q++)
            more |= in[q].n > 0 && in[q].at[in[q].n - 1] != 0;
        for (uint32_t q = 0; err == RBT_OK && q < size; q++)
            err = unpack(d, w, q, in[q], error); /* of a failure the others learn in the next common step */
        rbt_crew_free(d->crew, in);
    }
    rbt_free(out);
    rbt_free(in);
    return err;
}

/* ------------------------------------------------------------------------------------------------------- checking */

/* Rows, non-zeros and a sum over the hashes of all rows, which does not depend on their order. */
typedef struct total {
    uint64_t rows;
    uint64_t nnz;
    uint64_t hashes;
} total;

static total total_of(const rbt_data *data, bool weighted)
{
    total t = {data->rows, data->nnz, 0};
    for (size_t r = 0; r < data->rows; r++) {
        size_t at = data->start[r], n = features_of(data, r);
        float head[2] = {data->label[r], weighted ? data->weight[r] : 1};
        uint64_t hash = rbt_hash(data->index + at, n * sizeof *data->index, rbt_hash(head, sizeof head, 0));
        t.hashes += rbt_hash(data->value + at, n * sizeof *data->value, hash);
    }
    return t;
}

static rbt_err check_totals(const dealing *d, rbt_err err, total before, rbt_error *error)
{
    total mine[2] = {before, {0}}, sum[2] = {{0}}, *all = rbt_alloc(d->crew->size, sizeof mine);
    if (err == RBT_OK)
        mine[1] = total_of(&d->to, d->weighted);
    err = rbt_crew_share(d->crew, err, mine, sizeof mine, all, error);
    for (size_t i = 0; err == RBT_OK && i < 2 * (size_t)d->crew->size; i++) {
        sum[i % 2].rows += all[i].rows;
        sum[i % 2].nnz += all[i].nnz;
        sum[i % 2].hashes += all[i].hashes;
    }
    rbt_free(all);
    if (err == RBT_OK && memcmp(&sum[0], &sum[1], sizeof sum[0]) != 0)
        err = rbt_fail(error, RBT_E_BROKEN,
                       "dealing out the data went wrong: %llu rows, %llu non-zeros and the checksum %016llx were read, "
                       "and %llu, %llu and %016llx arrived",
                       (unsigned long long)sum[0].rows, (unsigned long long)sum[0].nnz,
                       (unsigned long long)sum[0].hashes, (unsigned long long)sum[1].rows,
                       (unsigned long long)sum[1].nnz, (unsigned long long)sum[1].hashes);
    return err;
}

/* --------------------------------------------------------------------------------------------------------- shards */

/* The sizes of the shards elsewhere. */
static rbt_err share_sizes(rbt_shards *s, const rbt_hosting *hosting, rbt_crew *crew, rbt_err err, rbt_error *error)
{
    uint32_t first = hosting->first_worker[crew->rank], n = hosting->workers_of[crew->rank];
    uint64_t *mine = rbt_alloc(n + (size_t)1, 2 * sizeof *mine);
    rbt_bytes *all = rbt_alloc(crew->size, sizeof *all);
    for (uint32_t m = 0; err == RBT_OK && m < n; m++) {
        mine[2 * (size_t)m] = s->shard[first + m].n;
        mine[2 * (size_t)m + 1] = s->shard[first + m].nnz;
    }
    err = rbt_crew_collect(crew, err, (rbt_bytes){(uint8_t *)mine, n * 2 * sizeof *mine}, all, error);
    for (uint32_t q = 0; err == RBT_OK && q < crew->size; q++) {
        if (all[q].n != hosting->workers_of[q] * 2 * sizeof *mine)
            err = rbt_fail(error, RBT_E_PROTOCOL,
                           "process %u tells the sizes of other shards than those of its workers", q);
        for (uint32_t m = 0; err == RBT_OK && m < hosting->workers_of[q]; m++) {
            uint64_t numbers[2];
            memcpy(numbers, all[q].at + m * sizeof numbers, sizeof numbers);
            s->shard[hosting->first_worker[q] + m].n = (size_t)numbers[0];
            s->shard[hosting->first_worker[q] + m].nnz = (size_t)numbers[1];
        }
    }
    rbt_crew_free(crew, all);
    rbt_free(all);
    rbt_free(mine);
    return err;
}

/* Shards of consecutive rows, one worker here after the other: so many each. */
static rbt_err make_shards(rbt_shards *s, const rbt_data *data, uint32_t first, uint32_t n, const size_t *sizes,
                           rbt_error *error)
{
    s->shard = rbt_try_alloc(s->workers, sizeof *s->shard);
    s->order = rbt_try_alloc_raw(data->rows + 1, sizeof *s->order);
    if (s->shard == NULL || s->order == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "not enough memory for the shards of %zu rows", data->rows);
    for (size_t r = 0; r < data->rows; r++)
        s->order[r] = (uint32_t)r;
    for (size_t m = 0, row = 0; m < n; m++) {
        s->shard[first + m] = (rbt_shard){s->order + row, sizes[m], data->start[row + sizes[m]] - data->start[row]};
        row += sizes[m];
    }
    return RBT_OK;
}

/* -------------------------------------------------------------------------------------------------------- dealing */

/* Room for what is known of the others, and where their rows begin. */
static void meet_others(dealing *d, const rbt_data_part *part)
{
    uint32_t size = d->crew->size;
    d->first_row = rbt_alloc(size + (size_t)1, sizeof *d->first_row);
    d->first_place = rbt_alloc(size + (size_t)1, sizeof *d->first_place);
    d->sent = rbt_alloc(size, sizeof *d->sent);
    d->got = rbt_alloc(size, sizeof *d->got);
    for (uint32_t q = 0; q < size; q++)
        d->first_row[q + 1] = d->first_row[q] + part->rows_of[q];
}

static void dealing_deinit(dealing *d)
{
    rbt_free(d->order);
    rbt_free(d->first_row);
    rbt_free(d->first_place);
    rbt_free(d->sent);
    rbt_free(d->got);
}

static rbt_err prepare(dealing *d, const rbt_data_part *part, const rbt_hosting *hosting, uint32_t workers,
                       uint64_t seed, rbt_error *error)
{
    uint32_t next = 0;
    meet_others(d, part);
    rbt_err err = rbt_shards_order(part->rows, workers, seed, &d->order, error);
    for (uint32_t q = 0; q < d->crew->size; q++) {
        RBT_ASSERT(hosting->first_worker[q] == next);
        next += hosting->workers_of[q];
        d->first_place[q + 1] = workers > 0 ? rbt_shards_begin(part->rows, workers, next) : 0;
    }
    RBT_ASSERT(next == workers);
    return err;
}

static rbt_err allocate_lengths(dealing *d, rbt_error *error)
{
    d->to.rows = d->first_place[d->crew->rank + 1] - d->first_place[d->crew->rank];
    d->to.start = rbt_try_alloc(d->to.rows + 1, sizeof *d->to.start);
    return d->to.start != NULL
               ? RBT_OK
               : rbt_fail(error, RBT_E_MEMORY, "not enough memory for %zu rows; use more processes", d->to.rows);
}

/* Memory for the rows, whose lengths are known. */
static rbt_err allocate_rows(dealing *d, rbt_error *error)
{
    rbt_data data = {0};
    RBT_ASSERT(d->to.start != NULL);
    for (size_t r = 0; r < d->to.rows; r++)
        d->to.start[r + 1] += d->to.start[r];
    size_t n = d->to.rows, nnz = d->to.start[n];
    rbt_err err = rbt_data_alloc(n, nnz, &data, error);
    if (err == RBT_OK && d->weighted && (data.weight = rbt_try_alloc_raw(n + 1, sizeof *data.weight)) == NULL)
        err = rbt_fail(error, RBT_E_MEMORY, "not enough memory for the weights of %zu rows", n);
    if (err == RBT_OK) {
        rbt_free(data.start);
        data.start = d->to.start;
        data.rows = n;
        data.nnz = nnz;
        d->to = data;
    } else {
        rbt_data_deinit(&data);
    }
    return err;
}

/* The names of labels move over with the rows; the columns are those of all. */
static void hand_over(rbt_data_part *part, rbt_data *to)
{
    to->cols = part->data.cols;
    to->content = part->data.content;
    to->col_names = part->data.col_names;
    part->data.col_names = NULL;
    to->label_names = part->data.label_names;
    to->label_count = part->data.label_count;
    part->data.label_names = NULL;
    part->data.label_count = 0;
    rbt_data_deinit(&part->data);
}

/* Users go where their ratings do: all tell theirs, which everybody knows the order of. */
static rbt_err deal_names(dealing *d, const rbt_data_part *part, rbt_err err, rbt_error *error)
{
    if (part->data.content != RBT_CONTENT_RATINGS) /* all have the same */
        return rbt_crew_agree(d->crew, err, error);
    rbt_bytes *all = rbt_alloc(d->crew->size, sizeof *all), mine = {0};
    if (err == RBT_OK && part->data.row_names != NULL)
        mine.at = (uint8_t *)(uintptr_t)rbt_ids_bytes(part->data.row_names, &mine.n);
    err = rbt_crew_collect(d->crew, err, mine, all, error);
    if (err != RBT_OK)
        goto free_all;
    size_t n = 0;
    for (uint32_t q = 0; q < d->crew->size; q++)
        n += all[q].n;
    char *bytes = rbt_try_alloc_raw(n + 1, 1), *to = bytes;
    for (uint32_t q = 0; bytes != NULL && q < d->crew->size; to += all[q].n, q++)
        if (all[q].n > 0)
            memcpy(to, all[q].at, all[q].n);
    if (bytes != NULL && rbt_ids_read(bytes, bytes + n, part->rows, &d->users) == bytes + n)
        d->to.row_names = rbt_ids_select(d->users, d->order + d->first_place[d->crew->rank], d->to.rows);
    if (d->to.row_names == NULL)
        err = rbt_fail(error, RBT_E_BROKEN,
                       "the names of %zu users cannot be dealt out: not each is there once, or "
                       "there is no memory for them",
                       part->rows);
    rbt_free(bytes);
    rbt_crew_free(d->crew, all);
    err = rbt_crew_agree(d->crew, err, error);
free_all:
    rbt_free(all);
    return err;
}

/* The rows, first their lengths; `err`: how it went so far. */
static rbt_err move_rows(dealing *d, rbt_err err, rbt_error *error)
{
    err = exchange(d, &lengths, err, error);
    if (err == RBT_OK)
        err = allocate_rows(d, error);
    err = rbt_crew_agree(d->crew, err, error);
    return err == RBT_OK ? exchange(d, &rows, RBT_OK, error) : err;
}

/* Nobody trains on what another process might have made up. */
static rbt_err check_features(const dealing *d, rbt_err err, rbt_error *error)
{
    for (size_t i = 0; err == RBT_OK && i < d->to.nnz; i++)
        if (d->to.index[i] >= d->from->cols)
            err = rbt_fail(error, RBT_E_BROKEN, "a row that arrived has a feature %u, there are %zu", d->to.index[i],
                           d->from->cols);
    return err;
}

static rbt_err deal(dealing *d, const rbt_data_part *part, const rbt_hosting *hosting, uint32_t workers, uint64_t seed,
                    rbt_error *error)
{
    rbt_err err = prepare(d, part, hosting, workers, seed, error);
    if (err != RBT_OK)
        return err; /* everywhere: it depends on what all know */
    total before = total_of(d->from, d->weighted);
    err = move_rows(d, allocate_lengths(d, error), error);
    err = check_totals(d, err, before, error);
    return deal_names(d, part, check_features(d, err, error), error);
}

static size_t limit_of(size_t round_bytes, uint32_t size)
{
    size_t limit = round_bytes / size;
    return limit > RBT_DEAL_PEER_BYTES ? RBT_DEAL_PEER_BYTES : limit;
}

rbt_err rbt_deal(rbt_data_part *part, const rbt_hosting *hosting, uint32_t workers, uint64_t seed, size_t round_bytes,
                 rbt_crew *crew, rbt_data *data, rbt_shards *shards, rbt_error *error)
{
    uint32_t first = hosting->first_worker[crew->rank], n = hosting->workers_of[crew->rank];
    dealing d = {.crew = crew,
                 .from = &part->data,
                 .weighted = part->data.weight != NULL,
                 .limit = limit_of(round_bytes, crew->size)};
    rbt_shards s = {.workers = workers};
    size_t *sizes = rbt_alloc(n + (size_t)1, sizeof *sizes);
    rbt_err err = deal(&d, part, hosting, workers, seed, error);
    if (err == RBT_OK) {
        for (uint32_t m = 0; m < n; m++)
            sizes[m] =
                rbt_shards_begin(part->rows, workers, first + m + 1) - rbt_shards_begin(part->rows, workers, first + m);
        err = make_shards(&s, &d.to, first, n, sizes, error);
        err = share_sizes(&s, hosting, crew, err, error);
    }
    if (err == RBT_OK) {
        hand_over(part, &d.to);
        part->users = d.users;
        *data = d.to;
        *shards = s;
    } else {
        rbt_ids_unref(d.users);
        rbt_data_deinit(&d.to);
        rbt_shards_destroy(&s);
    }
    rbt_free(sizes);
    dealing_deinit(&d);
    return err;
}

rbt_err rbt_deal_copies(const rbt_data_part *part, const uint32_t *list, size_t n, size_t round_bytes, rbt_crew *crew,
                        rbt_data *data, rbt_error *error)
{
    dealing d = {.crew = crew,
                 .from = &part->data,
                 .weighted = part->data.weight != NULL,
                 .limit = limit_of(round_bytes, crew->size)};
    meet_others(&d, part);
    d.order = rbt_try_alloc(n * crew->size + 1, sizeof *d.order); /* everybody has a place for each */
    for (uint32_t q = 0; q < crew->size; q++) {
        d.first_place[q + 1] = (q + (size_t)1) * n;
        if (d.order != NULL && n > 0)
            memcpy(d.order + q * n, list, n * sizeof *list);
    }
    rbt_err err = d.order != NULL
                      ? allocate_lengths(&d, error)
                      : rbt_fail(error, RBT_E_MEMORY, "not enough memory for the numbers of %zu rows that all get", n);
    err = check_features(&d, move_rows(&d, err, error), error);
    err = rbt_crew_agree(crew, err, error);
    if (err == RBT_OK) {
        d.to.cols = part->data.cols;
        *data = d.to;
    } else {
        rbt_data_deinit(&d.to);
    }
    dealing_deinit(&d);
    return err;
}

rbt_err rbt_deal_ranked(rbt_data_part *part, const rbt_hosting *hosting, uint32_t workers, uint64_t seed, bool dealt,
                        rbt_crew *crew, rbt_data *data, rbt_shards *shards, rbt_error *error)
{
    uint32_t first = hosting->first_worker[crew->rank], n = hosting->workers_of[crew->rank];
    rbt_shards s = {.workers = workers, .dealt = dealt};
    rbt_err err = RBT_OK;
    if (part->data.rows > UINT32_MAX)
        err = rbt_fail(error, RBT_E_LIMIT, "the workers here have %zu rows, the limit is %u; use more processes",
                       part->data.rows, UINT32_MAX);
    if (err == RBT_OK)
        err = make_shards(&s, &part->data, first, n, part->worker_rows, error);
    for (uint32_t m = 0; err == RBT_OK && !dealt && m < n; m++) {
        rbt_rng rng = rbt_rng_stream(seed, RBT_STREAM_SHUFFLE, 1 + (uint64_t)first + m);
        rbt_rng_shuffle_u32(&rng, s.shard[first + m].rows, s.shard[first + m].n);
    }
    err = share_sizes(&s, hosting, crew, err, error);
    if (err != RBT_OK) {
        rbt_shards_destroy(&s);
        return err;
    }
    *data = part->data;
    part->data = (rbt_data){0};
    *shards = s;
    return RBT_OK;
}

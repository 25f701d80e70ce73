/* Going over the arrays of a cache. Contract in cache_scan.h.
 *
 * All memory is met once, block after block, by all cores. The indices ascend within every row when all the places
 * where they do not are ends of rows: falls are counted while a piece of a block is at hand, ends when all of it is.
 */
#include "data/cache_scan.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/parallel.h"

#define ROWS_AT_A_TIME  4096                /* rows checked by a thread before it takes the next */
#define PIECE_BYTES     (size_t)(64 * 1024) /* of a block: it stays in a cache while it is looked at twice */
#define NNZ_FOR_THREADS 500000              /* fewer are hashed before a second thread has begun */
#define INDEX_SECTION   1
#define VALUE_SECTION   2
#define SECTIONS        RBT_CACHE_SECTIONS

/* ------------------------------------------------------------------------------------------------------- loops */

/* What is counted in blocks, without branches and with 32 bits: compilers make these loops many numbers wide. */
#define INLINE static inline __attribute__((always_inline))

/* How often an index is not larger than the one before it, among n + 1; is one of the first n beyond the columns? */
INLINE uint32_t count_falls(const uint32_t *index, size_t n, uint32_t cols, uint32_t *is_beyond)
{
    uint32_t falls = 0, beyond = 0;
    for (size_t i = 0; i < n; i++) {
        falls += index[i] >= index[i + 1];
        beyond |= index[i] >= cols;
    }
    *is_beyond = beyond;
    return falls;
}

/* Is one of them not finite or, unless `least` is 0, zero: not a magnitude from `least` to below infinity's? */
INLINE uint32_t is_bad(const float *value, size_t n, uint32_t least)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &value[i], sizeof bits);
        bad |= (bits & 0x7fffffff) - least >= 0x7f800000 - least;
    }
    return bad;
}

typedef struct loops {
    uint32_t (*count_falls)(const uint32_t *index, size_t n, uint32_t cols, uint32_t *is_beyond);
    uint32_t (*is_bad)(const float *value, size_t n, uint32_t least);
} loops;

#define LOOPS(name, target)                                                                                            \
    target static uint32_t name##_falls(const uint32_t *index, size_t n, uint32_t cols, uint32_t *is_beyond)           \
    {                                                                                                                  \
        return count_falls(index, n, cols, is_beyond);                                                                 \
    }                                                                                                                  \
    target static uint32_t name##_bad(const float *value, size_t n, uint32_t least)                                    \
    {                                                                                                                  \
        return is_bad(value, n, least);                                                                                \
    }                                                                                                                  \
    static const loops name = {name##_falls, name##_bad}

LOOPS(plain, );
#ifdef __x86_64__
LOOPS(wide, __attribute__((target("avx2"))));
#endif

static const loops *best_loops(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        return &wide;
#endif
    return &plain;
}

/* ------------------------------------------------------------------------------------------------------ blocks */

typedef struct scan {
    const rbt_data *data;
    const rbt_cache_section *sections;
    rbt_cache_look *look;
    size_t first[SECTIONS + 1]; /* the number of each section's first block */
    uint32_t threads;
    const loops *loops;
    atomic_size_t falls;
    atomic_size_t ends;
    atomic_bool wrong;
} scan;

/* The first row that ends behind `at`, if ends ascend; if they do not, any. */
static size_t row_behind(const rbt_data *d, size_t at)
{
    size_t low = 0, high = d->rows;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->start[middle + 1] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void release_starts(const rbt_data *d, size_t row, size_t n)
{
    if (d->streamed)
        rbt_mapping_release(d->mapping, d->mapping_bytes, d->start + row, (n + 1) * sizeof *d->start);
}

/* How many of the falls between the indices first .. first + n are at the ends of rows. */
static size_t count_ends(const rbt_data *d, size_t first, size_t n)
{
    size_t ends = 0, last = first, begin = row_behind(d, first), row = begin;
    for (; row < d->rows; row++) {
        size_t end = d->start[row + 1];
        if (end < last || end > first + n || end >= d->nnz)
            break;
        ends += end > last && d->index[end - 1] >= d->index[end]; /* not once more for empty rows */
        last = end;
    }
    release_starts(d, begin, row - begin);
    return ends;
}

/* How many of n indices from the first on have one after them: the last of all has none. */
static size_t pairs_of(const rbt_data *d, size_t first, size_t n)
{
    return first + n < d->nnz ? n : n - 1;
}

/* While a piece of a block is at hand: what can be said about its features. */
static void look_at(scan *s, size_t section, size_t from, size_t bytes)
{
    const rbt_data *d = s->data;
    size_t first = from / sizeof(uint32_t), n = bytes / sizeof(uint32_t);
    uint32_t bad = 0;
    if (section == INDEX_SECTION) {
        uint32_t cols = (uint32_t)d->cols; /* below RBT_DATA_INDEX_LIMIT */
        uint32_t falls = s->loops->count_falls(d->index + first, pairs_of(d, first, n), cols, &bad);
        atomic_fetch_add_explicit(&s->falls, falls, memory_order_relaxed);
        bad |= d->index[first + n - 1] >= cols;
    } else if (section == VALUE_SECTION) {
        bad = s->loops->is_bad(d->value + first, n, d->content != RBT_CONTENT_RATINGS);
    }
    if (bad != 0)
        atomic_store_explicit(&s->wrong, true, memory_order_relaxed);
}

/* All pieces of a block have been looked at: how many of its falls are at the ends of rows. */
static void look_at_ends(scan *s, size_t section, size_t from, size_t bytes)
{
    size_t first = from / sizeof(uint32_t), n = bytes / sizeof(uint32_t);
    if (section == INDEX_SECTION)
        atomic_fetch_add_explicit(&s->ends, count_ends(s->data, first, pairs_of(s->data, first, n)),
                                  memory_order_relaxed);
}

/* Threads that meet new pages close to each other wait for the same lock of the system: each begins in a stretch of its
 * own. A permutation of the n items for `lanes` that take them in turn. */
static size_t spread(size_t item, size_t n, size_t lanes)
{
    size_t lane = item % lanes, longer = n % lanes;
    return lane * (n / lanes) + (lane < longer ? lane : longer) + item / lanes;
}

static void scan_block(void *context, size_t item)
{
    scan *s = context;
    size_t section = 0;
    item = spread(item, s->first[SECTIONS], s->threads);
    while (item >= s->first[section + 1])
        section++;
    uint64_t block = item - s->first[section], blocks = s->first[section + 1] - s->first[section];
    if (s->look->parts > 1 && block * s->look->parts / blocks != s->look->part)
        return;
    const unsigned char *at = s->sections[section].at;
    size_t from = block * RBT_CACHE_BLOCK_BYTES, left = s->sections[section].bytes - from;
    size_t bytes = left < RBT_CACHE_BLOCK_BYTES ? left : RBT_CACHE_BLOCK_BYTES;
    rbt_hasher *hasher = rbt_hasher_create(0);
    for (size_t done = 0, n; done < bytes; done += n) {
        n = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        rbt_hasher_add(hasher, at + from + done, n);
        look_at(s, section, from + done, n);
    }
    look_at_ends(s, section, from, bytes);
    s->look->hashes[item] = rbt_hasher_value(hasher);
    rbt_hasher_destroy(hasher);
    if (s->data->streamed)
        rbt_mapping_release(s->data->mapping, s->data->mapping_bytes, at + from, bytes);
}

/* -------------------------------------------------------------------------------------------------------- rows */

/* Is it the number of one of so many names? */
static inline bool is_label(float label, size_t count)
{
    return label >= 0 && label < (float)count && label == floorf(label);
}

static void check_rows(void *context, size_t item)
{
    scan *s = context;
    const rbt_data *d = s->data;
    size_t first = s->look->first + item * ROWS_AT_A_TIME, end = s->look->first + s->look->rows;
    uint32_t bad = 0;
    end = end - first > ROWS_AT_A_TIME ? first + ROWS_AT_A_TIME : end;
    for (size_t row = first; row < end; row++) {
        bad |= d->start[row] > d->start[row + 1] || !isfinite(d->label[row]);
        bad |= d->weight != NULL && !(d->weight[row] > 0 && isfinite(d->weight[row]));
        bad |= d->label_count > 0 && !is_label(d->label[row], d->label_count);
    }
    if (bad != 0)
        atomic_store_explicit(&s->wrong, true, memory_order_relaxed);
    release_starts(d, first, end - first);
}

static void scan_item(void *context, size_t item)
{
    const scan *s = context;
    if (item < s->look->blocks)
        scan_block(context, item);
    else
        check_rows(context, item - s->look->blocks);
}

void rbt_cache_scan(const rbt_data *data, const rbt_cache_section sections[SECTIONS], rbt_cache_look *look)
{
    scan s = {.data = data, .sections = sections, .look = look, .loops = best_loops()};
    for (size_t i = 0; i < SECTIONS; i++)
        s.first[i + 1] = s.first[i] + (sections[i].bytes + RBT_CACHE_BLOCK_BYTES - 1) / RBT_CACHE_BLOCK_BYTES;
    look->blocks = s.first[SECTIONS];
    look->hashes = rbt_alloc(look->blocks, sizeof *look->hashes);
    s.threads = data->nnz >= NNZ_FOR_THREADS ? rbt_parallel_threads() : 1;
    rbt_parallel_for(look->blocks + (look->rows + ROWS_AT_A_TIME - 1) / ROWS_AT_A_TIME, s.threads, scan_item, &s);
    look->falls = atomic_load_explicit(&s.falls, memory_order_relaxed);
    look->ends = atomic_load_explicit(&s.ends, memory_order_relaxed);
    look->wrong = atomic_load_explicit(&s.wrong, memory_order_relaxed) || data->start[0] != 0 ||
                  data->start[data->rows] != data->nnz;
}

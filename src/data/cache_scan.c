/* Going over the arrays of a cache. Contract in cache_scan.h.
 *
 * All memory is met once, block after block, by all cores. The indices ascend within every row when all the places
 * where they do not are ends of rows; then a row's last index is its largest, and no other need be compared with the columns.
 */
#include "data/cache_scan.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/parallel.h"

#define ROWS_AT_A_TIME  4096    /* rows checked by a thread before it takes the next */
#define RELEASED_BLOCKS 8       /* at once, as memory leaves in pieces of 2 MiB */
#define NNZ_FOR_THREADS 1000000 /* fewer are hashed before a second thread has begun */
#define INDEX_SECTION   1
#define VALUE_SECTION   2
#define SECTIONS        RBT_CACHE_SECTIONS

/* ------------------------------------------------------------------------------------------------------- loops */

/* What is counted in blocks, without branches and with 32 bits: compilers make these loops many numbers wide. */
#define INLINE static inline __attribute__((always_inline))

/* How often an index is not larger than the one before it, among n + 1. */
INLINE uint32_t count_falls(const uint32_t *index, size_t n)
{
    uint32_t falls = 0;
    for (size_t i = 0; i < n; i++)
        falls += index[i] >= index[i + 1];
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
    uint32_t (*count_falls)(const uint32_t *index, size_t n);
    uint32_t (*is_bad)(const float *value, size_t n, uint32_t least);
} loops;

#define LOOPS(name, target)                                                                                            \
    target static uint32_t name##_falls(const uint32_t *index, size_t n)                                               \
    {                                                                                                                  \
        return count_falls(index, n);                                                                                  \
    }                                                                                                                  \
    target static uint32_t name##_bad(const float *value, size_t n, uint32_t least)                                    \
    {                                                                                                                  \
        return is_bad(value, n, least);                                                                                \
    }                                                                                                                  \
    static const loops name = {name##_falls, name##_bad}

LOOPS(plain, );
#ifdef __x86_64__
LOOPS(wide, __attribute__((target("avx2"))));
#ifdef __clang__ /* takes what the target has */
LOOPS(widest, __attribute__((target("avx512f,avx512bw,avx512vl"))));
#else
LOOPS(widest, __attribute__((target("avx512f,avx512bw,avx512vl,prefer-vector-width=512"))));
#endif
#endif

static const loops *best_loops(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return &widest;
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

/* What the ends of rows behind the indices first .. first + n tell. */
typedef struct ending {
    size_t falls;    /* how many of the falls are there */
    uint32_t beyond; /* is an index there beyond the columns? It is its row's largest, if the row ascends */
} ending;

static ending look_at_ends(const rbt_data *d, size_t first, size_t n)
{
    ending found = {0};
    size_t last = first, begin = row_behind(d, first), row = begin;
    uint32_t cols = (uint32_t)d->cols; /* below RBT_DATA_INDEX_LIMIT */
    for (; row < d->rows; row++) {
        size_t end = d->start[row + 1];
        if (end < last || end > first + n)
            break;
        if (end == last) /* not once more for empty rows */
            continue;
        found.falls += end < d->nnz && d->index[end - 1] >= d->index[end];
        found.beyond |= d->index[end - 1] >= cols;
        last = end;
    }
    release_starts(d, begin, row - begin);
    return found;
}

static void look_at_indices(scan *s, size_t first, size_t n)
{
    const rbt_data *d = s->data;
    size_t pairs = first + n < d->nnz ? n : n - 1; /* the last of all has none after it */
    uint32_t falls = s->loops->count_falls(d->index + first, pairs);
    ending ends = look_at_ends(d, first, n);
    atomic_fetch_add_explicit(&s->falls, falls, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->ends, ends.falls, memory_order_relaxed);
    if (ends.beyond != 0)
        atomic_store_explicit(&s->wrong, true, memory_order_relaxed);
}

static void look_at_values(scan *s, size_t first, size_t n)
{
    if (s->loops->is_bad(s->data->value + first, n, s->data->content != RBT_CONTENT_RATINGS) != 0)
        atomic_store_explicit(&s->wrong, true, memory_order_relaxed);
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
    s->look->hashes[item] = rbt_hash(at + from, bytes, 0);
    if (section == INDEX_SECTION) /* while the block is at hand */
        look_at_indices(s, from / sizeof(uint32_t), bytes / sizeof(uint32_t));
    else if (section == VALUE_SECTION)
        look_at_values(s, from / sizeof(float), bytes / sizeof(float));
    if (s->data->streamed && ((block + 1) % RELEASED_BLOCKS == 0 || block + 1 == blocks)) {
        size_t first = block / RELEASED_BLOCKS * RELEASED_BLOCKS * RBT_CACHE_BLOCK_BYTES;
        rbt_mapping_release(s->data->mapping, s->data->mapping_bytes, at + first, from + bytes - first);
    }
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

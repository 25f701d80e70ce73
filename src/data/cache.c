/* The binary cache of a data set. Contract in cache.h, format in docs/formats.md; proved by tests/unit/test_datacache.c
 * and tests/fuzz/fuzz_cache.c.
 *
 * The checksum is a hash of hashes, one per block of each array, so that all cores can verify it. Of a file's bytes the
 * header's and the arrays' are in the checksum; the padding between them is compared with zero.
 */
#include "data/cache.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/parallel.h"

#define FLAGS_AT       40
#define CHECKSUM_AT    56
#define ROWS_AT_A_TIME 4096 /* rows checked by a thread before it takes the next */
#define SECTIONS       5
#define FLAG_SOURCE    UINT64_C(2) /* the last array is the source's number */

/* Not text, and broken by whatever changes line ends or cuts the eighth bit. */
static const unsigned char magic[8] = {0x89, 'R', 'B', 'D', '\r', '\n', 0x1a, '\n'};

/* The arrays lie in the file as they lie in memory: on other machines a cache can be neither written nor read. */
static bool machine_fits(void)
{
    const uint32_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 1 && sizeof(size_t) == 8;
}

static rbt_err refuse_machine(const char *name, rbt_error *error)
{
    return rbt_fail(error, RBT_E_UNSUPPORTED,
                    "%s: caches are for 64-bit little-endian machines, and this is none; use LIBSVM text", name);
}

/* ------------------------------------------------------------------------------------------------------ layout */

static void put_u64(unsigned char *at, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(x >> (8 * i));
}

static uint64_t get_u64(const unsigned char *at)
{
    uint64_t x = 0;
    for (int i = 0; i < 8; i++)
        x |= (uint64_t)at[i] << (8 * i);
    return x;
}

/* One of the file's arrays. */
typedef struct section {
    const unsigned char *at;
    size_t bytes;
} section;

static size_t padded(size_t bytes)
{
    return (bytes + RBT_CACHE_ALIGNMENT - 1) / RBT_CACHE_ALIGNMENT * RBT_CACHE_ALIGNMENT;
}

static void sections_of(const rbt_data *data, const uint64_t *source, section sections[SECTIONS])
{
    sections[0] = (section){(const void *)data->start, (data->rows + 1) * sizeof *data->start};
    sections[1] = (section){(const void *)data->index, data->nnz * sizeof *data->index};
    sections[2] = (section){(const void *)data->value, data->nnz * sizeof *data->value};
    sections[3] = (section){(const void *)data->label, data->rows * sizeof *data->label};
    sections[4] = (section){(const void *)source, source != NULL ? sizeof *source : 0};
}

/* ---------------------------------------------------------------------------------------------------- checksum */

typedef struct hashing {
    const rbt_data *data;
    section sections[SECTIONS];
    size_t first[SECTIONS + 1]; /* the number of each section's first block */
    uint64_t *hashes;
} hashing;

static void hash_block(void *context, size_t item)
{
    hashing *h = context;
    size_t s = 0;
    while (item >= h->first[s + 1])
        s++;
    size_t from = (item - h->first[s]) * RBT_CACHE_BLOCK_BYTES, left = h->sections[s].bytes - from;
    size_t bytes = left < RBT_CACHE_BLOCK_BYTES ? left : RBT_CACHE_BLOCK_BYTES;
    h->hashes[item] = rbt_hash(h->sections[s].at + from, bytes, 0);
    if (h->data->streamed)
        rbt_mapping_release(h->data->mapping, h->data->mapping_bytes, h->sections[s].at + from, bytes);
}

uint64_t rbt_cache_checksum_of(const unsigned char header[RBT_CACHE_HEADER_BYTES], const uint64_t *hashes, size_t n)
{
    /* machine_fits: the hashes lie in memory as the format has them, little-endian. */
    return rbt_hash(hashes, n * sizeof *hashes, rbt_hash(header, CHECKSUM_AT, 0));
}

uint64_t rbt_cache_checksum(const unsigned char header[RBT_CACHE_HEADER_BYTES], const rbt_data *data,
                            const uint64_t *source)
{
    hashing h = {.data = data};
    sections_of(data, source, h.sections);
    for (size_t s = 0; s < SECTIONS; s++)
        h.first[s + 1] = h.first[s] + (h.sections[s].bytes + RBT_CACHE_BLOCK_BYTES - 1) / RBT_CACHE_BLOCK_BYTES;
    size_t blocks = h.first[SECTIONS];
    h.hashes = rbt_alloc(blocks, sizeof *h.hashes);
    /* Up to four blocks are hashed before a second thread has begun. */
    rbt_parallel_for(blocks, blocks > SECTIONS ? rbt_parallel_threads() : 1, hash_block, &h);
    uint64_t sum = rbt_cache_checksum_of(header, h.hashes, blocks);
    rbt_free(h.hashes);
    return sum;
}

/* ----------------------------------------------------------------------------------------------------- reading */

bool rbt_cache_recognise(const void *bytes, size_t n)
{
    return n >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

static rbt_err refuse(const char *name, const char *what, rbt_error *error)
{
    return rbt_fail(error, RBT_E_DATA, "%s: the cache is damaged: %s; make it again with rubato convert", name, what);
}

/* The number of the source, in the last 64 bytes of a file whose flags say so; else NULL. */
static const uint64_t *source_in(const unsigned char *at, size_t n)
{
    bool has = n >= RBT_CACHE_HEADER_BYTES + RBT_CACHE_ALIGNMENT && (get_u64(at + FLAGS_AT) & FLAG_SOURCE) != 0;
    return has ? (const uint64_t *)(const void *)(at + n - RBT_CACHE_ALIGNMENT) : NULL;
}

uint64_t rbt_cache_source(const unsigned char header[RBT_CACHE_HEADER_BYTES],
                          const unsigned char end[RBT_CACHE_ALIGNMENT])
{
    bool has = rbt_cache_recognise(header, RBT_CACHE_HEADER_BYTES) && (get_u64(header + FLAGS_AT) & FLAG_SOURCE) != 0;
    return has ? get_u64(end) : 0;
}

/* The header's numbers, and whether the file is as long as they demand. */
static rbt_err decode_header(const unsigned char *at, size_t n, const char *name, rbt_data *view, rbt_error *error)
{
    if (n < RBT_CACHE_HEADER_BYTES)
        return refuse(name, "it ends within its header", error);
    uint64_t version = get_u64(at + 8), rows = get_u64(at + 16), cols = get_u64(at + 24), nnz = get_u64(at + 32);
    if (version != RBT_CACHE_VERSION)
        return rbt_fail(error, RBT_E_UNSUPPORTED,
                        "%s: the cache has format version %llu, this program reads version %d; make it again with "
                        "rubato convert",
                        name, (unsigned long long)version, RBT_CACHE_VERSION);
    if ((get_u64(at + FLAGS_AT) & ~FLAG_SOURCE) != 0 || get_u64(at + 48) != 0)
        return refuse(name, "bytes 40 to 55 have flags that do not exist", error);
    if (cols >= RBT_DATA_INDEX_LIMIT)
        return refuse(name, "byte 24 has more columns than there can be", error);
    /* Neither can be more than the file has bytes; after this no sum below overflows. */
    if (rows == 0 || rows > n / 12 || nnz > n / 8)
        return refuse(name, "its length does not fit the rows and features it promises", error);
    view->rows = (size_t)rows;
    view->cols = (size_t)cols;
    view->nnz = (size_t)nnz;
    section s[SECTIONS];
    sections_of(view, source_in(at, n), s);
    size_t need = RBT_CACHE_HEADER_BYTES;
    for (size_t i = 0; i < SECTIONS; i++)
        need += padded(s[i].bytes);
    if (need != n)
        return rbt_fail(error, RBT_E_DATA,
                        "%s: the cache is damaged: it has %zu bytes and should have %zu; make it again with rubato "
                        "convert",
                        name, n, need);
    return RBT_OK;
}

/* Points the view's arrays into the file; false when the padding after one of them is not zero. */
static bool lay_out(const unsigned char *at, size_t n, rbt_data *view)
{
    section s[SECTIONS];
    const unsigned char *begin[SECTIONS];
    bool zero = true;
    sections_of(view, source_in(at, n), s);
    at += RBT_CACHE_HEADER_BYTES;
    for (size_t i = 0; i < SECTIONS; i++) {
        begin[i] = at;
        for (size_t k = s[i].bytes; k < padded(s[i].bytes); k++)
            zero = zero && at[k] == 0;
        at += padded(s[i].bytes);
    }
    view->start = (size_t *)(uintptr_t)begin[0];
    view->index = (uint32_t *)(uintptr_t)begin[1];
    view->value = (float *)(uintptr_t)begin[2];
    view->label = (float *)(uintptr_t)begin[3];
    return zero;
}

typedef struct checking {
    const rbt_data *data;
    size_t rows; /* checked at a time */
    atomic_bool wrong;
} checking;

/* Not zero and finite, without a branch: a magnitude above 0 and below infinity's. */
static inline uint32_t is_bad_value(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x7fffffff) - 1 >= 0x7f800000 - 1;
}

/* What a correct checksum does not vouch for: the promises of data.h, for some rows. */
static void check_rows(void *context, size_t item)
{
    checking *c = context;
    const rbt_data *d = c->data;
    size_t row = item * c->rows, first = row, end = d->rows - row > c->rows ? row + c->rows : d->rows;
    uint32_t bad = 0;
    for (; row < end && bad == 0; row++) {
        size_t from = d->start[row], to = d->start[row + 1];
        bad |= from > to || to > d->nnz || !isfinite(d->label[row]);
        if (bad != 0 || from == to)
            continue;
        bad |= d->index[to - 1] >= d->cols; /* the last is the largest when they ascend */
        for (size_t i = from; i + 1 < to; i++)
            bad |= d->index[i] >= d->index[i + 1];
        for (size_t i = from; i < to; i++)
            bad |= is_bad_value(d->value[i]);
    }
    if (bad != 0)
        atomic_store_explicit(&c->wrong, true, memory_order_relaxed);
    else
        rbt_data_release_rows(d, first, end - first);
}

static bool rows_are_right(const rbt_data *data)
{
    checking c = {.data = data, .rows = ROWS_AT_A_TIME};
    if (data->start[0] != 0 || data->start[data->rows] != data->nnz)
        return false;
    if (data->streamed && rbt_data_block_rows(data) < c.rows)
        c.rows = rbt_data_block_rows(data);
    rbt_parallel_for((data->rows + c.rows - 1) / c.rows, rbt_parallel_threads(), check_rows, &c);
    return !atomic_load_explicit(&c.wrong, memory_order_relaxed);
}

/* Checks everything; a streamed view's bytes leave memory again as they have been looked at. */
static rbt_err decode(const void *bytes, size_t n, const char *name, rbt_data *view, rbt_error *error)
{
    const unsigned char *at = bytes;
    if (!machine_fits())
        return refuse_machine(name, error);
    if (!rbt_cache_recognise(bytes, n))
        return refuse(name, "its first bytes are others", error);
    rbt_err err = decode_header(at, n, name, view, error);
    if (err != RBT_OK)
        return err;
    if (!lay_out(at, n, view))
        return refuse(name, "padding between its arrays should be zero", error);
    if (get_u64(at + CHECKSUM_AT) != rbt_cache_checksum(at, view, source_in(at, n)))
        return refuse(name, "its checksum does not match", error);
    if (!rows_are_right(view))
        return refuse(name, "a row in it breaks the rules for rows", error);
    return RBT_OK;
}

rbt_err rbt_cache_decode(const void *bytes, size_t n, const char *name, rbt_data *view, rbt_error *error)
{
    rbt_data d = {0};
    rbt_err err = decode(bytes, n, name, &d, error);
    if (err == RBT_OK)
        *view = d;
    return err;
}

/* Data that takes the mapping over, with labels in memory: whoever trains renumbers them. */
static rbt_err take_mapped(rbt_input *input, bool streamed, rbt_data *data, rbt_error *error)
{
    void *mapping = (void *)(uintptr_t)input->bytes;
    rbt_data d = {.mapping = mapping, .mapping_bytes = input->n, .streamed = streamed};
    rbt_err err = decode(input->bytes, input->n, input->name, &d, error);
    if (err != RBT_OK)
        return err;
    float *label = rbt_try_alloc_raw(d.rows, sizeof *label);
    if (label == NULL)
        return rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for the labels of %zu rows", input->name, d.rows);
    memcpy(label, d.label, d.rows * sizeof *label);
    if (streamed)
        rbt_mapping_release(mapping, input->n, d.label, d.rows * sizeof *label);
    d.label = label;
    (void)madvise(mapping, input->n, MADV_NORMAL); /* training goes to and fro */
    *input = (rbt_input){.name = input->name};
    *data = d;
    return RBT_OK;
}

rbt_err rbt_cache_take(rbt_input *input, rbt_data *data, rbt_error *error)
{
    rbt_data view = {0};
    if (input->mapped)
        return take_mapped(input, false, data, error);
    rbt_err err = decode(input->bytes, input->n, input->name, &view, error);
    return err == RBT_OK ? rbt_data_join(&view, 1, data, error) : err;
}

rbt_err rbt_cache_read_streamed(const char *path, rbt_data *data, rbt_error *error)
{
    rbt_input input;
    rbt_err err = rbt_input_open(path, &input, error);
    if (err != RBT_OK)
        return err;
    err = input.mapped ? take_mapped(&input, true, data, error) : rbt_cache_take(&input, data, error);
    rbt_input_close(&input);
    return err;
}

/* ----------------------------------------------------------------------------------------------------- writing */

static rbt_err put_sections(const rbt_data *data, const uint64_t *source, rbt_output *output, rbt_error *error)
{
    static const unsigned char zeros[RBT_CACHE_ALIGNMENT];
    section s[SECTIONS];
    rbt_err err = RBT_OK;
    sections_of(data, source, s);
    for (size_t i = 0; err == RBT_OK && i < SECTIONS; i++) {
        err = rbt_output_put(output, s[i].at, s[i].bytes, error);
        if (err == RBT_OK)
            err = rbt_output_put(output, zeros, padded(s[i].bytes) - s[i].bytes, error);
    }
    return err;
}

rbt_err rbt_cache_header(const rbt_data *data, uint64_t source, const char *name,
                         unsigned char header[RBT_CACHE_HEADER_BYTES], rbt_error *error)
{
    if (!machine_fits())
        return refuse_machine(name, error);
    if (data->rows == 0)
        return rbt_fail(error, RBT_E_USAGE, "%s: not written: the data has no rows", name);
    memset(header, 0, RBT_CACHE_HEADER_BYTES);
    memcpy(header, magic, sizeof magic);
    put_u64(header + 8, RBT_CACHE_VERSION);
    put_u64(header + 16, data->rows);
    put_u64(header + 24, data->cols);
    put_u64(header + 32, data->nnz);
    put_u64(header + FLAGS_AT, source != 0 ? FLAG_SOURCE : 0);
    return RBT_OK;
}

void rbt_cache_seal(unsigned char header[RBT_CACHE_HEADER_BYTES], uint64_t checksum)
{
    put_u64(header + CHECKSUM_AT, checksum);
}

rbt_err rbt_cache_write(const rbt_data *data, const char *path, rbt_error *error)
{
    return rbt_cache_write_of(data, 0, path, error);
}

rbt_err rbt_cache_write_of(const rbt_data *data, uint64_t source, const char *path, rbt_error *error)
{
    unsigned char header[RBT_CACHE_HEADER_BYTES];
    const uint64_t *number = source != 0 ? &source : NULL;
    rbt_output output;
    rbt_err err = rbt_cache_header(data, source, path, header, error);
    if (err != RBT_OK)
        return err;
    if (!rows_are_right(data))
        return rbt_fail(error, RBT_E_DATA,
                        "%s: not written: a row's indices do not ascend below %zu, or a value is zero or not finite",
                        path, data->cols);
    rbt_cache_seal(header, rbt_cache_checksum(header, data, number));
    err = rbt_output_open(path, &output, error);
    if (err != RBT_OK)
        return err;
    err = rbt_output_put(&output, header, sizeof header, error);
    if (err == RBT_OK)
        err = put_sections(data, number, &output, error);
    if (err == RBT_OK)
        return rbt_output_finish(&output, source == 0, error); /* one that can be made again need not be synchronised */
    rbt_output_abandon(&output);
    return err;
}

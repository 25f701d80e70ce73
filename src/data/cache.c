/* The binary cache of a data set. Contract in cache.h, format in docs/formats.md; proved by tests/unit/test_datacache.c
 * and tests/fuzz/fuzz_cache.c.
 *
 * The checksum is a hash of hashes, one per block of each array, so that all cores can verify it. Of a file's bytes the
 * header's and the arrays' are in the checksum; the padding between them is compared with zero.
 */
#include "data/cache.h"

#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "data/cache_scan.h"
#include "data/data.h"

#define FLAGS_AT     40
#define CHECKSUM_AT  56
#define SECTIONS     RBT_CACHE_SECTIONS
#define FLAG_WEIGHTS 1U
#define FLAG_SOURCE  2U /* the last array is the source's number */
#define FLAG_RATINGS 4U /* the names are those of users and items */
#define FLAG_DOCS    8U
#define FLAG_ORIGIN  16U /* behind the names stands how the data was read */

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

static size_t padded(size_t bytes)
{
    return (bytes + RBT_CACHE_ALIGNMENT - 1) / RBT_CACHE_ALIGNMENT * RBT_CACHE_ALIGNMENT;
}

static void sections_of(const rbt_data *data, rbt_cache_names names, const uint64_t *source,
                        rbt_cache_section sections[SECTIONS])
{
    sections[0] = (rbt_cache_section){(const void *)data->start, (data->rows + 1) * sizeof *data->start};
    sections[1] = (rbt_cache_section){(const void *)data->index, data->nnz * sizeof *data->index};
    sections[2] = (rbt_cache_section){(const void *)data->value, data->nnz * sizeof *data->value};
    sections[3] = (rbt_cache_section){(const void *)data->label, data->rows * sizeof *data->label};
    sections[4] =
        (rbt_cache_section){(const void *)data->weight, data->weight != NULL ? data->rows * sizeof *data->weight : 0};
    sections[5] = (rbt_cache_section){(const void *)names.at, names.bytes};
    sections[6] = (rbt_cache_section){(const void *)source, source != NULL ? sizeof *source : 0};
}

/* ---------------------------------------------------------------------------------------------------- checksum */

uint64_t rbt_cache_checksum_of(const unsigned char header[RBT_CACHE_HEADER_BYTES], const uint64_t *hashes, size_t n)
{
    /* machine_fits: the hashes lie in memory as the format has them, little-endian. */
    return rbt_hash(hashes, n * sizeof *hashes, rbt_hash(header, CHECKSUM_AT, 0));
}

static uint64_t look_over(const unsigned char header[RBT_CACHE_HEADER_BYTES], const rbt_data *data,
                          rbt_cache_names names, const uint64_t *source, rbt_cache_look *look)
{
    rbt_cache_section sections[SECTIONS];
    sections_of(data, names, source, sections);
    rbt_cache_scan(data, sections, look);
    uint64_t sum = rbt_cache_checksum_of(header, look->hashes, look->blocks);
    rbt_free(look->hashes);
    return sum;
}

uint64_t rbt_cache_checksum(const unsigned char header[RBT_CACHE_HEADER_BYTES], const rbt_data *data,
                            rbt_cache_names names, const uint64_t *source)
{
    rbt_cache_look look = {.parts = 1};
    return look_over(header, data, names, source, &look);
}

/* ----------------------------------------------------------------------------------------------------- reading */

bool rbt_cache_recognise(const void *bytes, size_t n)
{
    return n >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

uint64_t rbt_cache_rows(const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    bool known = n >= RBT_CACHE_HEADER_BYTES && rbt_cache_recognise(at, n) && get_u64(at + 8) == RBT_CACHE_VERSION;
    return known ? get_u64(at + 16) : 0;
}

static rbt_err refuse(const char *name, const char *what, rbt_error *error)
{
    return rbt_fail(error, RBT_E_DATA, "%s: the cache is damaged: %s" RBT_CACHE_REMEDY " with rubato convert", name,
                    what);
}

uint64_t rbt_cache_source(const unsigned char header[RBT_CACHE_HEADER_BYTES],
                          const unsigned char end[RBT_CACHE_ALIGNMENT])
{
    bool has = rbt_cache_recognise(header, RBT_CACHE_HEADER_BYTES) && (get_u64(header + FLAGS_AT) & FLAG_SOURCE) != 0;
    return has ? get_u64(end) : 0;
}

/* A cache being read: what its header says, and where its arrays lie. */
typedef struct reading {
    rbt_data data;
    rbt_cache_names names;
    bool weighted;
    bool has_source;
    const uint64_t *source;
} reading;

/* How many bytes each array takes, padding left out. */
static void sizes_of(const reading *r, size_t sizes[SECTIONS])
{
    const size_t all[SECTIONS] = {(r->data.rows + 1) * sizeof *r->data.start,
                                  r->data.nnz * sizeof *r->data.index,
                                  r->data.nnz * sizeof *r->data.value,
                                  r->data.rows * sizeof *r->data.label,
                                  r->weighted ? r->data.rows * sizeof *r->data.weight : 0,
                                  r->names.bytes,
                                  r->has_source ? sizeof *r->source : 0};
    memcpy(sizes, all, sizeof all);
}

/* The header's numbers, and whether the file is as long as they demand. */
static rbt_err decode_header(const unsigned char *at, size_t n, const char *name, reading *r, rbt_error *error)
{
    if (n < RBT_CACHE_HEADER_BYTES)
        return refuse(name, "it ends within its header", error);
    uint64_t version = get_u64(at + 8), rows = get_u64(at + 16), cols = get_u64(at + 24), nnz = get_u64(at + 32);
    uint64_t flags = get_u64(at + 40) & UINT32_MAX, labels = get_u64(at + 40) >> 32, names = get_u64(at + 48);
    if (version != RBT_CACHE_VERSION)
        return rbt_fail(error, RBT_E_UNSUPPORTED,
                        "%s: the cache has format version %llu, this program reads version %d" RBT_CACHE_REMEDY
                        " from its text with rubato convert",
                        name, (unsigned long long)version, RBT_CACHE_VERSION);
    bool ratings = (flags & FLAG_RATINGS) != 0, docs = (flags & FLAG_DOCS) != 0, origin = (flags & FLAG_ORIGIN) != 0;
    if ((flags & ~(uint64_t)(FLAG_WEIGHTS | FLAG_SOURCE | FLAG_RATINGS | FLAG_DOCS | FLAG_ORIGIN)) != 0 ||
        (ratings && (docs || origin)))
        return refuse(name, "byte 40 has flags that do not exist", error);
    if (cols >= RBT_DATA_INDEX_LIMIT)
        return refuse(name, "byte 24 has more columns than there can be", error);
    /* None can be more than the file has bytes; after this no sum below overflows. */
    if (rows == 0 || rows > n / 12 || nnz > n / 8 || names > n || labels > names ||
        (ratings ? labels > 0 || names < rows + cols : (labels == 0 && !origin) != (names == 0)))
        return refuse(name, "its length does not fit the rows, features and labels it promises", error);
    r->data.rows = (size_t)rows;
    r->data.cols = (size_t)cols;
    r->data.nnz = (size_t)nnz;
    r->data.label_count = (size_t)labels;
    r->data.content = ratings ? RBT_CONTENT_RATINGS : docs ? RBT_CONTENT_DOCS : RBT_CONTENT_ROWS;
    r->names.bytes = (size_t)names;
    r->names.origin = origin;
    r->weighted = (flags & FLAG_WEIGHTS) != 0;
    r->has_source = (flags & FLAG_SOURCE) != 0;
    size_t sizes[SECTIONS], need = RBT_CACHE_HEADER_BYTES;
    sizes_of(r, sizes);
    for (size_t i = 0; i < SECTIONS; i++)
        need += padded(sizes[i]);
    if (need != n)
        return rbt_fail(error, RBT_E_DATA,
                        "%s: the cache is damaged: it has %zu bytes and should have %zu" RBT_CACHE_REMEDY
                        " with rubato convert",
                        name, n, need);
    return RBT_OK;
}

rbt_err rbt_cache_is_whole(const void *bytes, size_t n, const char *name, rbt_error *error)
{
    if (!rbt_cache_recognise(bytes, n))
        return refuse(name, "its first bytes are others", error);
    return decode_header(bytes, n, name, &(reading){0}, error);
}

/* Points the arrays into the file; false when the padding after one of them is not zero. */
static bool lay_out(const unsigned char *at, reading *r)
{
    size_t sizes[SECTIONS];
    const unsigned char *begin[SECTIONS];
    bool zero = true;
    sizes_of(r, sizes);
    at += RBT_CACHE_HEADER_BYTES;
    for (size_t i = 0; i < SECTIONS; i++) {
        begin[i] = at;
        for (size_t k = sizes[i]; k < padded(sizes[i]); k++)
            zero = zero && at[k] == 0;
        at += padded(sizes[i]);
    }
    r->data.start = (size_t *)(uintptr_t)begin[0];
    r->data.index = (uint32_t *)(uintptr_t)begin[1];
    r->data.value = (float *)(uintptr_t)begin[2];
    r->data.label = (float *)(uintptr_t)begin[3];
    r->data.weight = r->weighted ? (float *)(uintptr_t)begin[4] : NULL;
    r->names.at = (const char *)begin[5];
    r->source = r->has_source ? (const uint64_t *)(const void *)begin[6] : NULL;
    return zero;
}

static rbt_err look_at(const void *bytes, size_t n, const char *name, reading *r, rbt_cache_look *look,
                       rbt_error *error)
{
    const unsigned char *at = bytes;
    if (!machine_fits())
        return refuse_machine(name, error);
    if (!rbt_cache_recognise(bytes, n))
        return refuse(name, "its first bytes are others", error);
    rbt_err err = decode_header(at, n, name, r, error);
    if (err != RBT_OK)
        return err;
    if (!lay_out(at, r))
        return refuse(name, "padding between its arrays should be zero", error);
    rbt_cache_section sections[SECTIONS];
    sections_of(&r->data, r->names, r->source, sections);
    look->first = look->first < r->data.rows ? look->first : r->data.rows;
    look->rows = look->rows < r->data.rows - look->first ? look->rows : r->data.rows - look->first;
    rbt_cache_scan(&r->data, sections, look);
    look->wrong = look->wrong || !rbt_cache_names_fit(r->names, &r->data);
    return RBT_OK;
}

rbt_err rbt_cache_look_at(const void *bytes, size_t n, const char *name, rbt_cache_look *look, rbt_data *view,
                          rbt_cache_names *names, rbt_error *error)
{
    reading r = {.weighted = false};
    rbt_err err = look_at(bytes, n, name, &r, look, error);
    if (err != RBT_OK)
        return err;
    *view = r.data;
    *names = r.names;
    return RBT_OK;
}

rbt_err rbt_cache_judge(const void *bytes, const char *name, const rbt_cache_look *look, rbt_error *error)
{
    const unsigned char *at = bytes;
    if (get_u64(at + CHECKSUM_AT) != rbt_cache_checksum_of(at, look->hashes, look->blocks))
        return refuse(name, "its checksum does not match", error);
    return look->wrong || look->falls != look->ends ? refuse(name, "a row or a name in it breaks the rules", error)
                                                    : RBT_OK;
}

/* Checks everything; the bytes of streamed data leave memory again as they have been looked at. */
static rbt_err decode(const void *bytes, size_t n, const char *name, reading *r, rbt_error *error)
{
    rbt_cache_look look = {.parts = 1, .rows = SIZE_MAX};
    rbt_err err = look_at(bytes, n, name, r, &look, error);
    if (err == RBT_OK)
        err = rbt_cache_judge(bytes, name, &look, error);
    rbt_free(look.hashes);
    return err;
}

rbt_err rbt_cache_decode(const void *bytes, size_t n, const char *name, rbt_data *view, rbt_cache_names *names,
                         rbt_error *error)
{
    reading r = {.weighted = false};
    rbt_err err = decode(bytes, n, name, &r, error);
    if (err != RBT_OK)
        return err;
    *view = r.data;
    *names = r.names;
    return RBT_OK;
}

/* A copy of an array of rows, NULL for NULL. */
static float *copy_of(const float *from, size_t rows)
{
    float *to = from != NULL ? rbt_try_alloc_raw(rows, sizeof *to) : NULL;
    if (to != NULL)
        memcpy(to, from, rows * sizeof *to);
    return to;
}

/* Data that takes the mapping over, with labels and weights in memory: whoever trains changes them. */
static rbt_err take_mapped(rbt_input *input, bool streamed, rbt_data *data, rbt_error *error)
{
    void *mapping = (void *)(uintptr_t)input->bytes;
    reading r = {.data = {.mapping = mapping, .mapping_bytes = input->n, .streamed = streamed}};
    rbt_data *d = &r.data;
    rbt_err err = decode(input->bytes, input->n, input->name, &r, error);
    if (err != RBT_OK)
        return err;
    float *label = copy_of(d->label, d->rows), *weight = copy_of(d->weight, d->rows);
    if (label == NULL || (d->weight != NULL && weight == NULL))
        err = rbt_fail(error, RBT_E_MEMORY, "%s: not enough memory for the labels of %zu rows", input->name, d->rows);
    if (err == RBT_OK)
        err = rbt_cache_names_take(r.names, input->name, d, error);
    if (err != RBT_OK) {
        rbt_free(label);
        rbt_free(weight);
        return err;
    }
    if (streamed)
        rbt_mapping_release(mapping, input->n, d->label, (size_t)((char *)mapping + input->n - (char *)d->label));
    d->label = label;
    d->weight = weight;
    (void)madvise(mapping, input->n, MADV_NORMAL); /* training goes to and fro */
    *input = (rbt_input){.name = input->name};
    *data = *d;
    return RBT_OK;
}

rbt_err rbt_cache_take(rbt_input *input, rbt_data *data, rbt_error *error)
{
    reading r = {.weighted = false};
    if (input->mapped)
        return take_mapped(input, false, data, error);
    rbt_err err = decode(input->bytes, input->n, input->name, &r, error);
    if (err != RBT_OK)
        return err;
    err = rbt_cache_names_take(r.names, input->name, &r.data, error);
    if (err != RBT_OK)
        return err;
    err = rbt_data_join(&r.data, 1, data, error);
    rbt_cache_names_drop(&r.data);
    return err;
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

static rbt_err put_sections(const rbt_data *data, rbt_cache_names names, const uint64_t *source, rbt_output *output,
                            rbt_error *error)
{
    static const unsigned char zeros[RBT_CACHE_ALIGNMENT];
    rbt_cache_section s[SECTIONS];
    rbt_err err = RBT_OK;
    sections_of(data, names, source, s);
    for (size_t i = 0; err == RBT_OK && i < SECTIONS; i++) {
        err = rbt_output_put(output, s[i].at, s[i].bytes, error);
        if (err == RBT_OK)
            err = rbt_output_put(output, zeros, padded(s[i].bytes) - s[i].bytes, error);
    }
    return err;
}

static rbt_err check_data(const rbt_data *data, rbt_cache_names names, const rbt_cache_look *look, const char *path,
                          rbt_error *error)
{
    if (!rbt_cache_names_fit(names, data) || look->wrong || look->falls != look->ends)
        return rbt_fail(
            error, RBT_E_DATA,
            "%s: not written: a row's indices do not ascend below %zu, or a value is zero or not finite, or a "
            "weight or a label is none",
            path, data->cols);
    return RBT_OK;
}

rbt_err rbt_cache_header(const rbt_data *data, size_t names_bytes, uint64_t source, const char *name,
                         unsigned char header[RBT_CACHE_HEADER_BYTES], rbt_error *error)
{
    uint64_t flags = (data->weight != NULL ? FLAG_WEIGHTS : 0) | (source != 0 ? FLAG_SOURCE : 0) |
                     (data->content == RBT_CONTENT_RATINGS ? FLAG_RATINGS : 0) |
                     (data->content == RBT_CONTENT_DOCS ? FLAG_DOCS : 0) | (data->origin != NULL ? FLAG_ORIGIN : 0);
    if (!machine_fits())
        return refuse_machine(name, error);
    if (data->rows == 0)
        return rbt_fail(error, RBT_E_USAGE, "%s: not written: the data has no rows", name);
    if (data->cols >= RBT_DATA_INDEX_LIMIT)
        return rbt_fail(error, RBT_E_LIMIT, "%s: not written: the data has %zu columns, and there may be fewer than %u",
                        name, data->cols, RBT_DATA_INDEX_LIMIT);
    memset(header, 0, RBT_CACHE_HEADER_BYTES);
    memcpy(header, magic, sizeof magic);
    put_u64(header + 8, RBT_CACHE_VERSION);
    put_u64(header + 16, data->rows);
    put_u64(header + 24, data->cols);
    put_u64(header + 32, data->nnz);
    put_u64(header + FLAGS_AT, flags | (uint64_t)data->label_count << 32);
    put_u64(header + 48, names_bytes);
    return RBT_OK;
}

void rbt_cache_seal(unsigned char header[RBT_CACHE_HEADER_BYTES], uint64_t checksum)
{
    put_u64(header + CHECKSUM_AT, checksum);
}

static rbt_err write_file(const rbt_data *data, rbt_cache_names names, uint64_t source, const char *path,
                          rbt_error *error)
{
    unsigned char header[RBT_CACHE_HEADER_BYTES];
    const uint64_t *number = source != 0 ? &source : NULL;
    rbt_cache_look look = {.parts = 1, .rows = data->rows};
    rbt_output output;
    rbt_err err = rbt_cache_header(data, names.bytes, source, path, header, error);
    if (err != RBT_OK)
        return err;
    rbt_cache_seal(header, look_over(header, data, names, number, &look));
    err = check_data(data, names, &look, path, error);
    if (err == RBT_OK)
        err = rbt_output_open(path, &output, error);
    if (err != RBT_OK)
        return err;
    err = rbt_output_put(&output, header, sizeof header, error);
    if (err == RBT_OK)
        err = put_sections(data, names, number, &output, error);
    if (err == RBT_OK)
        return rbt_output_finish(&output, source == 0, error); /* one that can be made again need not be synchronised */
    rbt_output_abandon(&output);
    return err;
}

rbt_err rbt_cache_write_of(const rbt_data *data, uint64_t source, const char *path, rbt_error *error)
{
    rbt_bytes names = {0};
    if (data->rows == 0)
        return rbt_fail(error, RBT_E_USAGE, "%s: not written: the data has no rows", path);
    rbt_err err = rbt_cache_names_write(data, path, &names, error);
    if (err == RBT_OK)
        err = write_file(data, (rbt_cache_names){(const char *)names.at, names.n, data->origin != NULL}, source, path,
                         error);
    rbt_free(names.at);
    return err;
}

rbt_err rbt_cache_write(const rbt_data *data, const char *path, rbt_error *error)
{
    return rbt_cache_write_of(data, 0, path, error);
}

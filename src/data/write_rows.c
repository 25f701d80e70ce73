/* Rows as text or as a cache. Contract in write_rows.h; proved by tests/unit/test_write.c and test_libsvm.c. */
#include "data/write_rows.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "data/cache.h"
#include "data/data.h"
#include "data/docs.h"
#include "data/number.h"
#include "data/read.h"

#define PIECE_ITEMS  8192 /* rows and features in a piece of sparse text: about 150 kB */
#define PIECE_CELLS  (size_t)65536
#define FEATURE_ROOM (RBT_NUMBER_ROOM + 16) /* a blank, an index, a colon, a value */

static const char *const names[] = {"libsvm", "csv", "vw", "cache", "ratings", "docword"};

rbt_err rbt_format_find(const char *name, bool sets, rbt_format *format, rbt_error *error)
{
    for (size_t i = 0; i < (sets ? sizeof names / sizeof names[0] : RBT_FORMAT_RATINGS); i++)
        if (strcmp(name, names[i]) == 0) {
            *format = (rbt_format)i;
            return RBT_OK;
        }
    return rbt_fail(error, RBT_E_USAGE, "--to '%s' is unknown; choose libsvm, csv, vw%s cache%s", name,
                    sets ? "," : " or", sets ? ", ratings or docword" : "");
}

static rbt_format format_of_kind(rbt_kind kind, rbt_format otherwise)
{
    return kind == RBT_KIND_LIBSVM  ? RBT_FORMAT_LIBSVM
           : kind == RBT_KIND_CSV   ? RBT_FORMAT_CSV
           : kind == RBT_KIND_VW    ? RBT_FORMAT_VW
           : kind == RBT_KIND_CACHE ? RBT_FORMAT_CACHE
                                    : otherwise;
}

rbt_err rbt_format_of_path(const char *path, rbt_format otherwise, rbt_format *format, rbt_error *error)
{
    const char *packing = rbt_name_packing(path), *dot = strrchr(path, '.');
    if (packing != NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "%s: Rubato writes nothing compressed; leave %s out, and compress the file afterwards", path,
                        packing);
    if (dot != NULL && strcasecmp(dot, ".tsv") == 0)
        return rbt_fail(error, RBT_E_USAGE,
                        "%s: Rubato writes no tabs between cells, only commas; let the name end with .csv", path);
    *format = format_of_kind(rbt_kind_of_name(path), otherwise);
    return RBT_OK;
}

rbt_err rbt_format_check_path(rbt_format format, const char *path, rbt_error *error)
{
    rbt_format named = format_of_kind(rbt_kind_of_name(path), format);
    if (named == format || named == RBT_FORMAT_CACHE || format == RBT_FORMAT_CACHE)
        return RBT_OK;
    return rbt_fail(error, RBT_E_USAGE,
                    "%s: would hold %s, and be read as %s because of its name; let it end otherwise", path,
                    names[format], names[named]);
}

rbt_err rbt_format_check_cols(rbt_format format, size_t cols, const char *path, rbt_error *error)
{
    if (format == RBT_FORMAT_CSV && cols > RBT_CSV_COLS_MOST)
        return rbt_fail(error, RBT_E_LIMIT,
                        "%s: not written: CSV has every column in every row, and %zu columns are more than %zu; choose "
                        "libsvm, vw or cache",
                        path, cols, RBT_CSV_COLS_MOST);
    if (format == RBT_FORMAT_VW && cols > (size_t)1 << RBT_BITS_LIMIT)
        return rbt_fail(
            error, RBT_E_LIMIT,
            "%s: not written: Vowpal Wabbit text is read as 2^%d columns at most, and these are %zu; choose "
            "libsvm or cache",
            path, RBT_BITS_LIMIT, cols);
    return RBT_OK;
}

/* One rating per line, with the names of its user and its item, and not a row per line? */
static bool has_ratings(rbt_format format, const rbt_data *data)
{
    return format == RBT_FORMAT_RATINGS || (format == RBT_FORMAT_CSV && data->content == RBT_CONTENT_RATINGS);
}

/* What text cannot hold at all. */
static rbt_err check(const rbt_data *data, rbt_format format, const char *path, rbt_error *error)
{
    if (data->rows == 0)
        return rbt_fail(error, RBT_E_USAGE, "%s: not written: the data has no rows", path);
    if (has_ratings(format, data))
        return data->row_names != NULL && data->col_names != NULL
                   ? RBT_OK
                   : rbt_fail(error, RBT_E_USAGE,
                              "%s: not written: the data has no users and items; choose another format", path);
    if ((format == RBT_FORMAT_LIBSVM || format == RBT_FORMAT_VW) && data->content == RBT_CONTENT_RATINGS)
        return rbt_fail(error, RBT_E_USAGE,
                        "%s: not written: the data has ratings, and %s has no place for the names of their users and "
                        "items; choose ratings, csv or cache",
                        path, format == RBT_FORMAT_VW ? "VW text" : "LIBSVM text");
    if (format == RBT_FORMAT_LIBSVM && data->weight != NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "%s: not written: the rows have weights, which LIBSVM text cannot hold; choose vw or csv",
                        path);
    if ((format == RBT_FORMAT_LIBSVM || format == RBT_FORMAT_VW) && data->label_names != NULL)
        return rbt_fail(error, RBT_E_USAGE,
                        "%s: not written: the labels are words, and %s has numbers only; choose cache, or csv%s", path,
                        format == RBT_FORMAT_VW ? "VW text" : "LIBSVM text",
                        data->cols > RBT_CSV_COLS_MOST ? " with fewer columns (--bits 16)" : "");
    if (format == RBT_FORMAT_CSV && data->cols > RBT_CSV_COLS_MOST)
        return rbt_fail(error, RBT_E_LIMIT,
                        "%s: not written: CSV has every column in every row, and %zu columns are more than %zu; where "
                        "words are hashed, give fewer with --bits 16, or choose %s",
                        path, data->cols, RBT_CSV_COLS_MOST,
                        data->label_names != NULL ? "cache, which can hold labels that are words"
                                                  : "libsvm, vw or cache");
    if (format == RBT_FORMAT_DOCWORD && data->content != RBT_CONTENT_DOCS)
        return rbt_fail(error, RBT_E_USAGE, "%s: not written: the data has no documents; choose another format", path);
    return rbt_format_check_cols(format, data->cols, path, error);
}

/* -------------------------------------------------------------------------------------------------------- lines */

static rbt_err check_row(const rbt_data *data, size_t row, rbt_error *error)
{
    bool finite = isfinite(data->label[row]);
    for (size_t i = data->start[row]; i < data->start[row + 1]; i++)
        finite &= isfinite(data->value[i]) != 0;
    return finite ? RBT_OK
                  : rbt_fail(error, RBT_E_DATA,
                             "row %zu has a label or a value that is not finite; nothing was written", row + 1);
}

/* index:value for all of a row's features, each after a blank; there is room. */
static char *print_features(const rbt_data *data, size_t row, size_t base, char *at)
{
    for (size_t i = data->start[row]; i < data->start[row + 1]; i++) {
        *at++ = ' ';
        at += rbt_number_print_count((uint64_t)data->index[i] + base, at);
        *at++ = ':';
        at += rbt_number_print(data->value[i], at);
    }
    return at;
}

static char *print_sparse(rbt_format format, const rbt_data *data, size_t row, char *at)
{
    at += rbt_number_print(data->label[row], at);
    if (format == RBT_FORMAT_VW) {
        if (data->weight != NULL) {
            *at++ = ' ';
            at += rbt_number_print(data->weight[row], at);
        }
        /* Blanks on both sides: what touches the bar would be a tag or a namespace. */
        *at++ = ' ';
        *at++ = '|';
    }
    return print_features(data, row, format == RBT_FORMAT_VW ? 0 : 1, at);
}

static char *print_word(const char *word, char *at)
{
    size_t n = strlen(word);
    bool padded = n > 0 && (strchr(" \t", word[0]) != NULL || strchr(" \t", word[n - 1]) != NULL);
    if (!padded && strpbrk(word, ",\"\r\n") == NULL) {
        memcpy(at, word, n);
        return at + n;
    }
    *at++ = '"';
    for (; *word != '\0'; word++) {
        if (*word == '"')
            *at++ = '"';
        *at++ = *word;
    }
    *at++ = '"';
    return at;
}

/* A user's or an item's, quoted if need be. */
static char *print_name(bool quoted, const char *name, char *at)
{
    if (quoted)
        return print_word(name, at);
    size_t n = strlen(name);
    memcpy(at, name, n);
    return at + n;
}

/* A name that "::" sets apart from the next? */
static bool is_plain(const char *name)
{
    size_t n = strlen(name);
    return strstr(name, "::") == NULL && strpbrk(name, "\r\n") == NULL && strchr(": \t", name[0]) == NULL &&
           strchr(": \t", name[n - 1]) == NULL;
}

/* The same between commas, where what does not stand plain stands in quotes; only a line cannot end in it. */
static bool is_quotable(const char *name)
{
    return strchr(name, '\n') == NULL;
}

/* user::item::rating or, as CSV, user,item,rating */
static rbt_err print_ratings(rbt_format format, const rbt_data *data, size_t row, rbt_buffer *out, rbt_error *error)
{
    bool csv = format == RBT_FORMAT_CSV, (*stands)(const char *) = csv ? is_quotable : is_plain;
    const char *user = rbt_ids_name(data->row_names, row), *between = csv ? "," : "::";
    size_t gap = strlen(between);
    for (size_t i = data->start[row]; i < data->start[row + 1]; i++) {
        const char *item = rbt_ids_name(data->col_names, data->index[i]);
        if (user[0] == '\0' || item[0] == '\0' || !stands(user) || !stands(item))
            return rbt_fail(error, RBT_E_DATA, "user '%.60s' or item '%.60s' is no name that stands between two %s",
                            user, item, csv ? "commas; choose cache" : "colons; choose csv or cache");
        rbt_err err = rbt_buffer_reserve(out, 2 * (strlen(user) + strlen(item)) + FEATURE_ROOM + 8, error);
        if (err != RBT_OK)
            return err;
        char *at = print_name(csv, user, out->at + out->n);
        memcpy(at, between, gap);
        at = print_name(csv, item, at + gap);
        memcpy(at, between, gap);
        at += gap;
        at += rbt_number_print(data->value[i], at);
        *at++ = '\n';
        out->n = (size_t)(at - out->at);
    }
    return RBT_OK;
}

static rbt_err print_counts(const rbt_data *data, size_t row, rbt_buffer *out, rbt_error *error)
{
    size_t n = data->start[row + 1] - data->start[row];
    rbt_err err = rbt_buffer_reserve(out, n * 2 * FEATURE_ROOM, error);
    if (err != RBT_OK)
        return err;
    char *at = out->at + out->n;
    for (size_t i = data->start[row]; i < data->start[row + 1]; i++) {
        float count = data->value[i];
        if (!(count >= 1 && count <= (float)RBT_DOCS_COUNT_MOST) || count != floorf(count))
            return rbt_fail(error, RBT_E_DATA, "document %zu has a count that is no whole number from 1 to %u", row + 1,
                            RBT_DOCS_COUNT_MOST);
        at += rbt_number_print_count(row + 1, at);
        *at++ = ' ';
        at += rbt_number_print_count((uint64_t)data->index[i] + 1, at);
        *at++ = ' ';
        at += rbt_number_print_count((uint64_t)count, at);
        *at++ = '\n';
    }
    out->n = (size_t)(at - out->at);
    return RBT_OK;
}

static char *print_dense(const rbt_data *data, size_t row, char *at)
{
    if (data->label_names != NULL)
        at = print_word(data->label_names[(size_t)data->label[row]], at);
    else
        at += rbt_number_print(data->label[row], at);
    if (data->weight != NULL) {
        *at++ = ',';
        at += rbt_number_print(data->weight[row], at);
    }
    size_t column = 0;
    for (size_t i = data->start[row]; i < data->start[row + 1]; i++, column++) {
        for (; column < data->index[i]; column++, at += 2)
            memcpy(at, ",0", 2);
        *at++ = ',';
        at += rbt_number_print(data->value[i], at);
    }
    for (; column < data->cols; column++, at += 2)
        memcpy(at, ",0", 2);
    return at;
}

/* Room that a row needs at most, its end of line included. */
static size_t room_of(rbt_format format, const rbt_data *data, size_t row)
{
    size_t room = 2 * FEATURE_ROOM + (data->start[row + 1] - data->start[row]) * FEATURE_ROOM;
    if (format == RBT_FORMAT_CSV) {
        room += 2 * data->cols;
        if (data->label_names != NULL)
            room += 2 * strlen(data->label_names[(size_t)data->label[row]]);
    }
    return room;
}

/* The numbers of documents, words and lines. */
static rbt_err print_docs_head(const rbt_data *like, rbt_buffer *out, rbt_error *error)
{
    const size_t numbers[] = {like->rows, like->cols, like->nnz};
    rbt_err err = rbt_buffer_reserve(out, 3 * FEATURE_ROOM, error);
    for (size_t i = 0; err == RBT_OK && i < 3; i++) {
        out->n += rbt_number_print_count(numbers[i], out->at + out->n);
        out->at[out->n++] = '\n';
    }
    return err;
}

rbt_err rbt_rows_print_head(rbt_format format, const rbt_data *like, rbt_buffer *out, rbt_error *error)
{
    if (format == RBT_FORMAT_DOCWORD)
        return print_docs_head(like, out, error);
    if (format != RBT_FORMAT_CSV)
        return RBT_OK;
    bool ratings = has_ratings(format, like);
    size_t cols = ratings ? 0 : like->cols;
    rbt_err err = rbt_buffer_reserve(out, 32 + cols * 16, error);
    if (err != RBT_OK)
        return err;
    const char *first = ratings ? "user,item,rating" : like->weight != NULL ? "label,weight" : "label";
    memcpy(out->at + out->n, first, strlen(first));
    char *at = out->at + out->n + strlen(first);
    for (size_t column = 1; column <= cols; column++) {
        memcpy(at, ",f", 2);
        at += 2 + rbt_number_print_count(column, at + 2);
    }
    *at++ = '\n';
    out->n = (size_t)(at - out->at);
    return RBT_OK;
}

rbt_err rbt_rows_print(rbt_format format, const rbt_data *data, size_t first, size_t end, rbt_buffer *out,
                       rbt_error *error)
{
    rbt_err err = RBT_OK;
    for (size_t row = first; err == RBT_OK && row < end; row++) {
        err = check_row(data, row, error);
        if (has_ratings(format, data) || format == RBT_FORMAT_DOCWORD) {
            if (err == RBT_OK)
                err = format == RBT_FORMAT_DOCWORD ? print_counts(data, row, out, error)
                                                   : print_ratings(format, data, row, out, error);
            continue;
        }
        if (err == RBT_OK)
            err = rbt_buffer_reserve(out, room_of(format, data, row), error);
        if (err != RBT_OK)
            break;
        char *at = out->at + out->n;
        at = format == RBT_FORMAT_CSV ? print_dense(data, row, at) : print_sparse(format, data, row, at);
        *at++ = '\n';
        out->n = (size_t)(at - out->at);
    }
    return err;
}

rbt_err rbt_rows_print_width(size_t cols, rbt_buffer *last, rbt_error *error)
{
    rbt_err err = rbt_buffer_reserve(last, FEATURE_ROOM, error);
    if (err != RBT_OK)
        return err;
    RBT_ASSERT(last->n > 0 && last->at[last->n - 1] == '\n');
    last->at[last->n - 1] = ' ';
    last->n += rbt_number_print_count(cols, last->at + last->n);
    memcpy(last->at + last->n, ":0\n", 3);
    last->n += 3;
    return RBT_OK;
}

/* ------------------------------------------------------------------------------------------------- whole data sets */

typedef struct writer {
    const rbt_data *data;
    rbt_format format;
    const char *path;
} writer;

/* Has every row all columns? */
static bool is_dense(const writer *w)
{
    return w->format == RBT_FORMAT_CSV && !has_ratings(w->format, w->data);
}

/* The first row with as many rows and features before it, so that pieces are of a size. */
static size_t row_at(const rbt_data *data, size_t items)
{
    size_t low = 0, high = data->rows;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (data->start[middle] + middle < items)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Where a piece begins, and the next one. */
static void range_of(const writer *w, size_t piece, size_t *first, size_t *end)
{
    if (is_dense(w)) {
        size_t rows = PIECE_CELLS / (w->data->cols + 1) + 1;
        *first = piece * rows;
        *end = w->data->rows - *first < rows ? w->data->rows : *first + rows;
        return;
    }
    *first = row_at(w->data, piece * PIECE_ITEMS);
    *end = row_at(w->data, (piece + 1) * PIECE_ITEMS);
}

static size_t pieces_of(const writer *w)
{
    const rbt_data *d = w->data;
    if (is_dense(w)) {
        size_t rows = PIECE_CELLS / (d->cols + 1) + 1;
        return (d->rows + rows - 1) / rows;
    }
    return (d->start[d->rows - 1] + d->rows - 1) / PIECE_ITEMS + 1; /* up to the one in which the last row begins */
}

static rbt_err make_piece(void *context, size_t piece, rbt_buffer *out, rbt_error *error)
{
    const writer *w = context;
    size_t first, end;
    range_of(w, piece, &first, &end);
    rbt_err err = rbt_rows_print(w->format, w->data, first, end, out, error);
    if (err != RBT_OK && error != NULL)
        return rbt_fail(error, err, "%s: %s", w->path, error->text);
    return err;
}

/* The largest index used, plus one. */
static size_t columns_used(const rbt_data *data)
{
    size_t used = 0;
    for (size_t row = 0; row < data->rows; row++)
        if (data->start[row + 1] > data->start[row] && (size_t)data->index[data->start[row + 1] - 1] + 1 > used)
            used = (size_t)data->index[data->start[row + 1] - 1] + 1;
    return used;
}

static rbt_err end_libsvm(void *context, rbt_buffer *last, rbt_error *error)
{
    const writer *w = context;
    return columns_used(w->data) < w->data->cols ? rbt_rows_print_width(w->data->cols, last, error) : RBT_OK;
}

rbt_err rbt_data_write(const rbt_data *data, rbt_format format, const rbt_writing *how, rbt_error *error)
{
    if (format == RBT_FORMAT_CACHE)
        return rbt_cache_write(data, how->path, error);
    rbt_err err = check(data, format, how->path, error);
    if (err != RBT_OK)
        return err;
    writer w = {.data = data, .format = format, .path = how->path};
    rbt_making pieces = {.count = pieces_of(&w), .make = make_piece, .context = &w};
    if (format == RBT_FORMAT_LIBSVM)
        pieces.end = end_libsvm;
    rbt_buffer head = {0};
    err = rbt_rows_print_head(format, data, &head, error);
    if (err == RBT_OK)
        err = rbt_making_write_file(&pieces, how, &head, error);
    rbt_buffer_deinit(&head);
    return err;
}

rbt_err rbt_data_write_libsvm(const rbt_data *data, const char *path, rbt_error *error)
{
    return rbt_data_write(data, RBT_FORMAT_LIBSVM, &(rbt_writing){.path = path}, error);
}
